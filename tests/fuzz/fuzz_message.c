/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_message: decodes one message; an accepted one encodes to the same head and body. */
#include "tests/fuzz/fuzz_message.h"

#include <string.h>

#include "base/assert.h"
#include "tests/unit/wire/catalogue.h"
#include "wire/bytes.h"

static struct wf_head
mended_head(uint8_t service, const uint8_t *data, size_t body_bytes)
{
	struct wf_reader r = {.base = data, .bytes = WF_HEAD_BYTES, .used = 6};
	struct wf_head head = {.version = WF_WIRE_VERSION, .service = service};

	head.type = wf_get_u8(&r);
	(void)wf_get_u8(&r);
	(void)wf_get_u64(&r);
	head.body_bytes = body_bytes;
	head.request_id = wf_get_u64(&r);
	head.step = wf_get_u64(&r);
	head.slice = wf_get_u32(&r);
	head.region = wf_get_u32(&r);
	head.offset = wf_get_u64(&r);
	head.epoch = wf_get_u64(&r);
	return head;
}

void
fuzz_message(uint8_t service, const uint8_t *data, size_t bytes)
{
	static union any_message decoded;
	static struct wf_msg again;
	uint8_t one[WF_HEAD_BYTES];
	uint8_t two[WF_HEAD_BYTES];

	if (bytes < WF_HEAD_BYTES) {
		return;
	}
	struct wf_head head = mended_head(service, data, bytes - WF_HEAD_BYTES);
	const struct catalogue_entry *entry = catalogue_find(service, head.type);
	if (entry == NULL) {
		return;
	}
	const uint8_t *body = data + WF_HEAD_BYTES;
	if (entry->decode(&head, body, &decoded) != WEFT_OK) {
		WF_ASSERT(weft_last_error()[0] != '\0');
		return;
	}
	entry->encode(&decoded, &again);
	wf_head_encode(&head, one);
	wf_head_encode(&again.head, two);
	WF_ASSERT(memcmp(one, two, WF_HEAD_BYTES) == 0);
	WF_ASSERT(again.body_bytes == head.body_bytes);
	WF_ASSERT(memcmp(again.body, body, again.body_bytes) == 0);
}
