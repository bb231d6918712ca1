/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of what the verbs backend reads from a peer: private data, frames, keys. The first
 * byte selects which. */
#include <string.h>

#include "base/assert.h"
#include "tests/fuzz/fuzz_target.h"
#include "transport/verbs/verbs_wire.h"

static void
private_data(const uint8_t *data, size_t bytes)
{
	struct wf_verbs_private p;
	uint8_t again[WF_VERBS_PRIVATE_MAX];
	if (wf_verbs_private_decode(data, bytes, &p) != WEFT_OK) {
		WF_ASSERT(weft_last_error()[0] != '\0');
		return;
	}
	size_t used = wf_verbs_private_encode(&p, again);
	WF_ASSERT(used <= bytes && memcmp(again, data, used) == 0);
}

static void
frame(const uint8_t *data, size_t bytes)
{
	struct wf_verbs_frame f;
	uint8_t again[WF_VERBS_FRAME_BYTES];
	if (wf_verbs_frame_decode(data, bytes, &f) != WEFT_OK) {
		WF_ASSERT(weft_last_error()[0] != '\0');
		return;
	}
	WF_ASSERT(f.head.body_bytes == bytes - WF_VERBS_FRAME_BYTES);
	WF_ASSERT(f.head.body_bytes <= WF_MSG_BODY_MAX);
	wf_verbs_frame_encode(&f, again);
	WF_ASSERT(memcmp(again, data, WF_VERBS_FRAME_BYTES) == 0);
}

static void
key(const uint8_t *data, size_t bytes)
{
	struct wf_grant_key k = {0};
	struct wf_verbs_key read;
	memcpy(k.bytes, data, bytes < sizeof(k.bytes) ? bytes : sizeof(k.bytes));
	wf_verbs_key_read(&k, &read);
	WF_ASSERT(read.slots <= WF_SLOT_COUNT_MAX && (read.slots & (read.slots - 1)) == 0);
	wf_verbs_key_write(&read, &k);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	if (bytes == 0) {
		return 0;
	}
	switch (data[0] % 3) {
	case 0:
		private_data(data + 1, bytes - 1);
		break;
	case 1:
		frame(data + 1, bytes - 1);
		break;
	default:
		key(data + 1, bytes - 1);
		break;
	}
	return 0;
}
