/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of wf_head_decode: an accepted head encodes to the same bytes. */
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "tests/fuzz/fuzz_target.h"
#include "wire/head.h"

#define BODY_MAX (1u << 20)

static void
check(const uint8_t in[WF_HEAD_BYTES])
{
	struct wf_head head;
	uint8_t again[WF_HEAD_BYTES];

	if (wf_head_decode(in, BODY_MAX, &head) != WEFT_OK) {
		WF_ASSERT(weft_last_error()[0] != '\0');
		return;
	}
	WF_ASSERT(head.body_bytes <= BODY_MAX);
	wf_head_encode(&head, again);
	WF_ASSERT(memcmp(again, in, WF_HEAD_BYTES) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	uint8_t mended[WF_HEAD_BYTES];

	if (bytes < WF_HEAD_BYTES) {
		return 0;
	}
	check(data);
	/* Again with a good CRC, which chance does not find. */
	memcpy(mended, data, sizeof(mended));
	uint32_t crc = wf_crc32c(0, mended, 60);
	for (unsigned i = 0; i < 4; i++) {
		mended[60 + i] = (uint8_t)(crc >> (8 * i));
	}
	check(mended);
	return 0;
}
