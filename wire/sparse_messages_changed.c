/* SPDX-License-Identifier: Apache-2.0 */
/* sparse_messages_changed: encode and decode CHANGED, which corrects rows that were sent ahead.
 * Layout: wire/protocol.md. Thread: any; pure functions. */
#include "base/assert.h"
#include "wire/shape.h"
#include "wire/sparse_messages.h"

#define CHANGED_ROW_BYTES 4u

static const struct wf_shape changed_shape = {
	.name = "CHANGED",
	.service = WF_SERVICE_SPARSE,
	.type = WF_SPARSE_CHANGED,
	.uses = WF_USE_REQUEST_ID | WF_USE_STEP | WF_USE_SLICE,
	.body_min = WF_SPARSE_CHANGED_FIXED_BYTES,
	.body_max = WF_MSG_BODY_MAX,
};

void
wf_sparse_changed_encode(const struct wf_sparse_changed *in, struct wf_msg *out)
{
	WF_ASSERT(in->row_count <= wf_sparse_changed_most(in->row_bytes));

	struct wf_writer w = wf_shape_begin(&changed_shape, out);
	out->head.request_id = in->request_id;
	out->head.step = in->step;
	out->head.slice = in->part;
	wf_put_u8(&w, in->last);
	wf_put_u32(&w, in->row_count);
	wf_put_u32(&w, in->row_bytes);
	for (uint32_t i = 0; i < in->row_count; i++) {
		wf_put_u32(&w, in->row[i]);
	}
	wf_put_bytes(&w, in->values, (size_t)in->row_count * in->row_bytes);
	wf_shape_end(&changed_shape, &w, out);
}

static enum weft_status
check_head(const struct wf_head *head)
{
	if (head->request_id == 0) {
		return wf_refuse("CHANGED", "request_id", 0, "1 or more");
	}
	if (head->step == 0 || head->step == WF_STEP_NONE) {
		return wf_refuse("CHANGED", "step", head->step, "the number of a step, from 1");
	}
	if (head->slice >= WF_SPARSE_PARTS_MAX) {
		return wf_refuse("CHANGED", "slice", head->slice, "below 192");
	}
	return WEFT_OK;
}

static enum weft_status
get_rows(struct wf_reader *r, struct wf_sparse_changed *out)
{
	if (out->row_bytes == 0 || out->row_bytes > WF_SPARSE_CHANGED_BYTES_MAX) {
		return wf_refuse("CHANGED", "row_bytes", out->row_bytes, "1 to 4019");
	}
	const uint64_t each = CHANGED_ROW_BYTES + (uint64_t)out->row_bytes;
	if (out->row_count > WF_SPARSE_CHANGED_MAX || r->bytes - r->used != out->row_count * each ||
	    (out->row_count == 0 && !out->last)) {
		return wf_refuse("CHANGED", "row_count", out->row_count,
				 "that of the rows that follow, at most 256, 0 only in the last");
	}
	for (uint32_t i = 0; i < out->row_count; i++) {
		out->row[i] = wf_get_u32(r);
		if (out->row[i] >= WF_SPARSE_ROWS_MAX ||
		    (i > 0 && out->row[i] <= out->row[i - 1])) {
			return wf_refuse("CHANGED", "row", out->row[i],
					 "below 1048576, and above the one before it");
		}
	}
	out->values = r->base + r->used;
	return WEFT_OK;
}

enum weft_status
wf_sparse_changed_decode(const struct wf_head *head, const uint8_t *body,
			 struct wf_sparse_changed *out)
{
	enum weft_status st = wf_shape_check(&changed_shape, head);
	if (st == WEFT_OK) {
		st = check_head(head);
	}
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	out->request_id = head->request_id;
	out->step = head->step;
	out->part = head->slice;
	const uint8_t last = wf_get_u8(&r);
	if (last > 1) {
		return wf_refuse("CHANGED", "last", last, "0 or 1");
	}
	out->last = last == 1;
	out->row_count = wf_get_u32(&r);
	out->row_bytes = wf_get_u32(&r);
	return get_rows(&r, out);
}
