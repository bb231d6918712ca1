/* SPDX-License-Identifier: Apache-2.0 */
/* messages_change: CHANGE, what a trainer changes of tensors' optimizers. Layout: wire/protocol.md.
 * Thread: any; pure functions. */
#include "base/assert.h"
#include "wire/job.h"
#include "wire/messages.h"
#include "wire/shape.h"

#define CHANGES_FIXED_BYTES 4
#define CHANGE_BYTES 16

static const struct wf_shape change_shape = {
	.name = "CHANGE",
	.service = WF_SERVICE_DENSE,
	.type = WF_MSG_CHANGE,
	.uses = WF_USE_STEP,
	.body_min = CHANGES_FIXED_BYTES + CHANGE_BYTES,
	.body_max = CHANGES_FIXED_BYTES + WF_CHANGES_PER_MSG * CHANGE_BYTES,
};

void
wf_msg_change_encode(const struct wf_msg_changes *in, struct wf_msg *out)
{
	WF_ASSERT(in->count >= 1 && in->count <= WF_CHANGES_PER_MSG);
	struct wf_writer w = wf_shape_begin(&change_shape, out);
	out->head.step = in->step;
	wf_put_u32(&w, in->count);
	for (uint32_t i = 0; i < in->count; i++) {
		wf_put_u32(&w, in->change[i].tensor);
		wf_put_u32(&w, in->change[i].number);
		wf_put_f64(&w, in->change[i].value);
	}
	wf_shape_end(&change_shape, &w, out);
}

static struct wf_change
get_change(struct wf_reader *r)
{
	struct wf_change change;
	change.tensor = wf_get_u32(r);
	change.number = wf_get_u32(r);
	change.value = wf_get_f64(r);
	return change;
}

/* They are in order, so each is there once, and lists can be compared. */
static enum weft_status
check_changes(struct wf_reader r, uint32_t count)
{
	struct wf_change before = {0};
	for (uint32_t i = 0; i < count; i++) {
		struct wf_change change = get_change(&r);
		if (change.tensor >= WF_TENSOR_COUNT_MAX) {
			return wf_refuse("CHANGE", "tensor", change.tensor, "below 65536");
		}
		if (i > 0 && !wf_change_is_before(&before, &change)) {
			return wf_refuse("CHANGE", "number", change.number,
					 "above the one before it of the same tensor");
		}
		before = change;
	}
	return WEFT_OK;
}

enum weft_status
wf_msg_change_decode(const struct wf_head *head, const uint8_t *body, struct wf_msg_changes *out)
{
	enum weft_status st = wf_shape_check(&change_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	uint32_t count = wf_get_u32(&r);
	if (count == 0 || count > WF_CHANGES_PER_MSG) {
		return wf_refuse("CHANGE", "count", count, "1 to 250");
	}
	if (head->body_bytes != CHANGES_FIXED_BYTES + (uint64_t)count * CHANGE_BYTES) {
		return wf_refuse("CHANGE", "count", count, "a sixteenth of the bytes after it");
	}
	if (head->step == 0 || head->step > INT64_MAX) {
		return wf_refuse("CHANGE", "step", head->step, "above 0 and below 2^63");
	}
	st = check_changes(r, count); /* before anything is written */
	if (st != WEFT_OK) {
		return st;
	}
	out->step = head->step;
	out->count = count;
	for (uint32_t i = 0; i < count; i++) {
		out->change[i] = get_change(&r);
	}
	WF_ASSERT(wf_reader_done(&r));
	return WEFT_OK;
}
