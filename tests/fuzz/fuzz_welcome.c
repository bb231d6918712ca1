/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of wf_welcome_decode. */
#include <string.h>

#include "base/assert.h"
#include "tests/fuzz/fuzz_target.h"
#include "wire/hello.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct wf_welcome welcome;
	uint8_t again[WF_HELLO_MAX];

	if (wf_welcome_decode(data, bytes, &welcome) != WEFT_OK) {
		WF_ASSERT(weft_last_error()[0] != '\0');
		return 0;
	}
	WF_ASSERT(welcome.refusal != WEFT_AGAIN);
	WF_ASSERT(welcome.refusal < WEFT_STATUS_COUNT);
	WF_ASSERT(wf_welcome_encode(&welcome, again) == bytes);
	WF_ASSERT(memcmp(again, data, bytes) == 0);
	return 0;
}
