/* SPDX-License-Identifier: Apache-2.0 */
/* congestion: see congestion.h. */
#include "tools/rdma_bench/congestion.h"

#include <stdio.h>

#include "base/assert.h"
#include "transport/tcp/tcp_congestion.h"

WF_STATIC_ASSERT(WF_CONGESTION_BYTES == WF_TCP_CONGESTION_BYTES, "a name fits");

enum weft_status
wf_congestion_choose(const char *asked, char out[WF_CONGESTION_BYTES])
{
	if (asked == NULL) {
		asked = wf_tcp_congestion_check("cubic") == WEFT_OK ? "cubic" : "";
	}
	enum weft_status st = wf_tcp_congestion_check(asked);
	if (st == WEFT_OK) {
		(void)snprintf(out, WF_CONGESTION_BYTES, "%s", asked);
	}
	return st;
}
