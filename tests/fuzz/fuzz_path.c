/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of wf_path_decode. */
#include <string.h>

#include "base/assert.h"
#include "tests/fuzz/fuzz_target.h"
#include "wire/path.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct wf_path_head head;
	uint8_t again[WF_PATH_UPGRADE_MAX];
	size_t used = 0;

	if (wf_path_decode(data, bytes, &head, &used) != WEFT_OK) {
		WF_ASSERT(weft_last_error()[0] != '\0');
		return 0;
	}
	WF_ASSERT(used <= bytes && bytes - used <= WF_PATH_USER_MAX);
	WF_ASSERT(wf_path_encode(&head, again) == used);
	WF_ASSERT(memcmp(again, data, used) == 0);
	return 0;
}
