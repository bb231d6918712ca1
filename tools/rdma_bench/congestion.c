/* SPDX-License-Identifier: Apache-2.0 */
/* congestion: see congestion.h. */
#include "tools/rdma_bench/congestion.h"

#include <string.h>

#include "base/assert.h"
#include "transport/congestion.h"

WF_STATIC_ASSERT(WF_BENCH_CONGESTION_BYTES == WF_CONGESTION_BYTES, "a name fits");

enum weft_status
wf_bench_congestion(const char *asked, char out[WF_BENCH_CONGESTION_BYTES])
{
	struct wf_congestion chosen;
	if (asked == NULL) {
		asked = wf_congestion_choose("cubic", &chosen) == WEFT_OK ? "cubic" : "";
	}
	enum weft_status st = wf_congestion_choose(asked, &chosen);
	if (st == WEFT_OK) {
		memcpy(out, chosen.name, sizeof(chosen.name));
	}
	return st;
}
