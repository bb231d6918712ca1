/* SPDX-License-Identifier: Apache-2.0 */
/* messages_position: POSITION, the place in its data that a trainer has reached. Layout:
 * wire/protocol.md. Thread: any; pure functions. */
#include "base/assert.h"
#include "wire/messages.h"
#include "wire/shape.h"

#define POSITION_FIXED_BYTES 4

static const struct wf_shape position_shape = {
	.name = "POSITION",
	.service = WF_SERVICE_DENSE,
	.type = WF_MSG_POSITION,
	.uses = WF_USE_STEP,
	.body_min = POSITION_FIXED_BYTES,
	.body_max = POSITION_FIXED_BYTES + WF_POSITION_BYTES_MAX,
};

void
wf_msg_position_encode(const struct wf_msg_position *in, struct wf_msg *out)
{
	WF_ASSERT(in->count <= WF_POSITION_BYTES_MAX);
	struct wf_writer w = wf_shape_begin(&position_shape, out);
	out->head.step = in->step;
	wf_put_u32(&w, in->count);
	wf_put_bytes(&w, in->bytes, in->count);
	wf_shape_end(&position_shape, &w, out);
}

enum weft_status
wf_msg_position_decode(const struct wf_head *head, const uint8_t *body, struct wf_msg_position *out)
{
	enum weft_status st = wf_shape_check(&position_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	uint32_t count = wf_get_u32(&r);
	if (count > WF_POSITION_BYTES_MAX || (count > 0 && count < WF_POSITION_PASS_BYTES)) {
		return wf_refuse("POSITION", "count", count, "0, or 4 to 260");
	}
	if (head->body_bytes != POSITION_FIXED_BYTES + (uint64_t)count) {
		return wf_refuse("POSITION", "count", count, "the number of bytes after it");
	}
	if (head->step > INT64_MAX) {
		return wf_refuse("POSITION", "step", head->step, "below 2^63");
	}
	uint32_t pass = count > 0 ? wf_load_u32(r.base + r.used) : 0;
	if ((count > 0) != (head->step > 0)) {
		return wf_refuse("POSITION", "step", head->step, "0 without bytes, and only then");
	}
	if (count > 0 && pass == 0) {
		return wf_refuse("POSITION", "pass", pass, "1 or more");
	}
	out->step = head->step;
	out->count = count;
	wf_get_bytes(&r, out->bytes, count);
	WF_ASSERT(wf_reader_done(&r));
	return WEFT_OK;
}
