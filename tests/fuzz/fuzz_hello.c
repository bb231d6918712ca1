/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of wf_hello_decode and wf_hello_match. */
#include <string.h>

#include "base/assert.h"
#include "tests/fuzz/fuzz_target.h"
#include "wire/head.h"
#include "wire/hello.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct wf_hello hello;
	uint8_t again[WF_HELLO_MAX];

	if (wf_hello_decode(data, bytes, &hello) != WEFT_OK) {
		WF_ASSERT(weft_last_error()[0] != '\0');
		return 0;
	}
	WF_ASSERT(wf_hello_encode(&hello, again) == bytes);
	WF_ASSERT(memcmp(again, data, bytes) == 0);
	WF_ASSERT(wf_hello_version(&hello) <= WF_WIRE_VERSION);

	struct wf_hello other = hello;
	WF_ASSERT(wf_hello_match(&hello, &other) == WEFT_OK);
	/* Texts of any shape: who is asked first does not matter. */
	memcpy(other.compared, hello.options, sizeof(other.compared));
	WF_ASSERT(wf_hello_match_compared(&hello, &hello) == WEFT_OK);
	WF_ASSERT(wf_hello_match_compared(&hello, &other) ==
		  wf_hello_match_compared(&other, &hello));
	other.tensors_digest ^= 1;
	WF_ASSERT(wf_hello_match(&hello, &other) == WEFT_MISMATCH);
	return 0;
}
