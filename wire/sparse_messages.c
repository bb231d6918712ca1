/* SPDX-License-Identifier: Apache-2.0 */
/* sparse_messages: encode and decode the messages of the sparse service. Layouts: wire/protocol.md.
 * Thread: any; pure functions. */
#include "wire/sparse_messages.h"

#include "base/assert.h"
#include "wire/shape.h"

#define TABLE_FIXED_BYTES WF_TABLE_FIXED_BYTES
#define PUSH_FIXED_BYTES 18
#define PUSH_PART_BYTES 12
#define PULL_FIXED_BYTES 6
#define PULL_PART_BYTES 20
#define APPLIED_BYTES 33
#define NACK_FIXED_BYTES 4

WF_STATIC_ASSERT(PULL_FIXED_BYTES + WF_SPARSE_PARTS_MAX * PULL_PART_BYTES <= WF_MSG_BODY_MAX,
		 "a full PULL fits a message");
WF_STATIC_ASSERT(WF_SPARSE_PARTS_MAX *WF_GRANT_SLOT_COUNT_MAX <= WF_SLOT_MAX,
		 "part and buffer fit a tag");

static const struct wf_shape table_shape = {
	.name = "TABLE",
	.service = WF_SERVICE_SPARSE,
	.type = WF_SPARSE_TABLE,
	.uses = WF_USE_SLICE,
	.body_min = TABLE_FIXED_BYTES + 1,
	.body_max = TABLE_FIXED_BYTES + WF_TABLE_BYTES_MAX,
};

static const struct wf_shape push_shape = {
	.name = "PUSH",
	.service = WF_SERVICE_SPARSE,
	.type = WF_SPARSE_PUSH,
	.uses = WF_USE_STEP | WF_USE_EPOCH,
	.body_min = PUSH_FIXED_BYTES,
	.body_max = PUSH_FIXED_BYTES + WF_SPARSE_PARTS_MAX * PUSH_PART_BYTES,
};

static const struct wf_shape pull_shape = {
	.name = "PULL",
	.service = WF_SERVICE_SPARSE,
	.type = WF_SPARSE_PULL,
	.uses = WF_USE_REQUEST_ID | WF_USE_STEP,
	.body_min = PULL_FIXED_BYTES + PULL_PART_BYTES,
	.body_max = PULL_FIXED_BYTES + WF_SPARSE_PARTS_MAX * PULL_PART_BYTES,
};

static const struct wf_shape applied_shape = {
	.name = "APPLIED",
	.service = WF_SERVICE_SPARSE,
	.type = WF_SPARSE_APPLIED,
	.uses = WF_USE_STEP,
	.body_min = APPLIED_BYTES,
	.body_max = APPLIED_BYTES,
};

static const struct wf_shape nack_shape = {
	.name = "NACK",
	.service = WF_SERVICE_SPARSE,
	.type = WF_SPARSE_NACK,
	.uses = WF_USE_REQUEST_ID | WF_USE_STEP | WF_USE_SLICE,
	.body_min = NACK_FIXED_BYTES,
	.body_max = NACK_FIXED_BYTES + WF_REASON_BYTES - 1,
};

/* TABLE. */

void
wf_sparse_table_encode(const struct wf_sparse_table *in, struct wf_msg *out)
{
	WF_ASSERT(in->idx < in->table_count);

	struct wf_writer w = wf_shape_begin(&table_shape, out);
	out->head.slice = in->idx;
	wf_put_u32(&w, in->table_count);
	wf_put_u8(&w, in->grad_reduce);
	wf_put_u8(&w, in->nonfinite);
	wf_table_desc_put(&w, &in->table);
	wf_put_u8(&w, in->mode);
	wf_put_u32(&w, in->staleness);
	wf_put_f64(&w, in->discard_ratio);
	wf_shape_end(&table_shape, &w, out);
}

static enum weft_status
check_table(const struct wf_sparse_table *table)
{
	if (table->table_count == 0 || table->table_count > WF_TABLE_COUNT_MAX) {
		return wf_refuse("TABLE", "table_count", table->table_count, "1 to 1024");
	}
	if (table->idx >= table->table_count) {
		return wf_refuse("TABLE", "slice", table->idx, "below table_count");
	}
	if (table->grad_reduce > WEFT_REDUCE_MEAN) {
		return wf_refuse("TABLE", "grad_reduce", table->grad_reduce, "0 (sum) or 1 (mean)");
	}
	if (table->nonfinite > 1) {
		return wf_refuse("TABLE", "nonfinite", table->nonfinite, "0 (abort) or 1 (skip)");
	}
	return WEFT_OK;
}

enum weft_status
wf_sparse_table_decode(const struct wf_head *head, const uint8_t *body, struct wf_sparse_table *out)
{
	enum weft_status st = wf_shape_check(&table_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_sparse_table table = {.idx = head->slice};
	table.table_count = wf_get_u32(&r);
	table.grad_reduce = wf_get_u8(&r);
	table.nonfinite = wf_get_u8(&r);
	st = check_table(&table);
	if (st != WEFT_OK) {
		return st;
	}
	st = wf_table_desc_get(&r, &table.table);
	if (st != WEFT_OK) {
		return st;
	}
	table.mode = wf_get_u8(&r);
	table.staleness = wf_get_u32(&r);
	table.discard_ratio = wf_get_f64(&r);
	if (!wf_reader_done(&r)) {
		return wf_refuse_length("TABLE", &r);
	}
	const struct wf_tables mode = {
		.mode = table.mode,
		.staleness = table.staleness,
		.discard_ratio = table.discard_ratio,
	};
	if (wf_tables_check_mode(&mode) != WEFT_OK) {
		struct wf_error why = *wf_error_record();
		return wf_fail(WEFT_PROTOCOL, "TABLE: %s", why.text);
	}
	*out = table;
	return WEFT_OK;
}

/* Parts of PUSH and of PULL. */

static void
put_part(struct wf_writer *w, const struct wf_sparse_part *part)
{
	wf_put_u16(w, part->table);
	wf_put_u16(w, part->coding);
	wf_put_u32(w, part->row_count);
	wf_put_u32(w, part->key_bytes);
}

static enum weft_status
check_key_bytes(const char *message, const struct wf_sparse_part *part)
{
	uint64_t raw = (uint64_t)part->row_count * WF_KEY_BYTES;

	if (part->coding != WF_KEYS_DELTA && part->key_bytes != raw) {
		return wf_refuse(message, "key_bytes", part->key_bytes, "8 a row");
	}
	if (part->coding == WF_KEYS_DELTA &&
	    (part->key_bytes < part->row_count || part->key_bytes >= raw)) {
		return wf_refuse(message, "key_bytes", part->key_bytes,
				 "1 a row or more, and fewer than 8");
	}
	return WEFT_OK;
}

/* Reads a part without its offset; `*rows` counts rows over the message. */
static enum weft_status
get_part(const char *message, struct wf_reader *r, struct wf_sparse_part *part, uint64_t *rows)
{
	uint16_t table = wf_get_u16(r);
	uint16_t coding = wf_get_u16(r);
	*part = (struct wf_sparse_part){.table = table, .coding = (uint8_t)coding};
	part->row_count = wf_get_u32(r);
	part->key_bytes = wf_get_u32(r);
	*rows += part->row_count;
	WF_ASSERT(!r->bad);
	if (table >= WF_TABLE_COUNT_MAX) {
		return wf_refuse(message, "table", table, "below 1024");
	}
	if (coding >= WF_KEYS_CODING_COUNT) {
		return wf_refuse(message, "coding", coding,
				 "0 (raw), 1 (differences) or 2 (any order)");
	}
	if (part->row_count == 0 || *rows > WF_SPARSE_ROWS_MAX) {
		return wf_refuse(message, "row_count", part->row_count,
				 "1 or more, over all parts at most 1048576");
	}
	return check_key_bytes(message, part);
}

static enum weft_status
check_part_count(const char *message, uint32_t count, size_t part_bytes, const struct wf_reader *r)
{
	if (count > WF_SPARSE_PARTS_MAX || r->bytes - r->used != count * part_bytes) {
		return wf_refuse(message, "part_count", count,
				 "at most 192, and the parts that follow");
	}
	return WEFT_OK;
}

/* PUSH. */

void
wf_sparse_push_encode(const struct wf_sparse_push *in, struct wf_msg *out)
{
	WF_ASSERT(in->part_count <= WF_SPARSE_PARTS_MAX);

	struct wf_writer w = wf_shape_begin(&push_shape, out);
	out->head.step = in->step;
	out->head.epoch = in->epoch;
	wf_put_u64(&w, in->samples);
	wf_put_u32(&w, in->flags);
	wf_put_u32(&w, in->pass);
	wf_put_u16(&w, (uint16_t)in->part_count);
	for (uint32_t i = 0; i < in->part_count; i++) {
		put_part(&w, &in->part[i]);
	}
	wf_shape_end(&push_shape, &w, out);
}

static enum weft_status
check_push(const struct wf_sparse_push *push)
{
	bool last = (push->flags & WF_SPARSE_PUSH_LAST) != 0;
	bool out_of_data = (push->flags & WF_SPARSE_PUSH_OUT_OF_DATA) != 0;
	uint32_t verdict = wf_sparse_push_verdict(push);

	if (push->step == 0 || push->step == WF_STEP_NONE) {
		return wf_refuse("PUSH", "step", push->step, "the number of a step, from 1");
	}
	if (push->flags >> 4 != 0 || verdict == WF_SPARSE_PUSH_VERDICT ||
	    (out_of_data && verdict != 0)) {
		return wf_refuse("PUSH", "flags", push->flags,
				 "0 to 11, and without a verdict when out of data");
	}
	if (out_of_data && (!last || push->samples != 0 || push->part_count != 0)) {
		return wf_refuse("PUSH", "part_count or samples", push->part_count + push->samples,
				 "0 and the last, when out of data");
	}
	if (!out_of_data && (push->samples == 0 || push->samples > WF_STEP_SAMPLES_MAX)) {
		return wf_refuse("PUSH", "samples", push->samples, "1 to 2^40");
	}
	if (!last && push->part_count == 0) {
		return wf_refuse("PUSH", "part_count", 0, "1 or more, except in the last");
	}
	return WEFT_OK;
}

static enum weft_status
get_push_parts(struct wf_reader *r, struct wf_sparse_push *push)
{
	uint64_t rows = 0;
	enum weft_status st = check_part_count("PUSH", push->part_count, PUSH_PART_BYTES, r);

	for (uint32_t i = 0; i < push->part_count && st == WEFT_OK; i++) {
		st = get_part("PUSH", r, &push->part[i], &rows);
		if (st == WEFT_OK && push->part[i].coding == WF_KEYS_ANY) {
			st = wf_refuse("PUSH", "coding", WF_KEYS_ANY, "0 (raw) or 1 (differences)");
		}
	}
	return st;
}

enum weft_status
wf_sparse_push_decode(const struct wf_head *head, const uint8_t *body, struct wf_sparse_push *out)
{
	enum weft_status st = wf_shape_check(&push_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_sparse_push push;
	push.step = head->step;
	push.epoch = head->epoch;
	push.samples = wf_get_u64(&r);
	push.flags = wf_get_u32(&r);
	push.pass = wf_get_u32(&r);
	push.part_count = wf_get_u16(&r);
	st = check_push(&push);
	if (st != WEFT_OK) {
		return st;
	}
	st = get_push_parts(&r, &push);
	if (st != WEFT_OK) {
		return st;
	}
	WF_ASSERT(wf_reader_done(&r));
	memcpy(out, &push, offsetof(struct wf_sparse_push, part));
	memcpy(out->part, push.part, push.part_count * sizeof(push.part[0]));
	return WEFT_OK;
}

/* PULL. */

void
wf_sparse_pull_encode(const struct wf_sparse_pull *in, struct wf_msg *out)
{
	WF_ASSERT(in->part_count >= 1 && in->part_count <= WF_SPARSE_PARTS_MAX);

	struct wf_writer w = wf_shape_begin(&pull_shape, out);
	out->head.request_id = in->request_id;
	out->head.step = in->step;
	wf_put_u32(&w, in->flags);
	wf_put_u16(&w, (uint16_t)in->part_count);
	for (uint32_t i = 0; i < in->part_count; i++) {
		put_part(&w, &in->part[i]);
		wf_put_u64(&w, in->part[i].offset);
	}
	wf_shape_end(&pull_shape, &w, out);
}

static enum weft_status
check_pull(const struct wf_sparse_pull *pull)
{
	if (pull->request_id == 0) {
		return wf_refuse("PULL", "request_id", 0, "1 or more");
	}
	if (pull->step == WF_STEP_NONE) {
		return wf_refuse("PULL", "step", pull->step, "the number of a step");
	}
	if (pull->flags >> 2 != 0) {
		return wf_refuse("PULL", "flags", pull->flags, "0 to 3");
	}
	if ((pull->flags & WF_SPARSE_PULL_AHEAD) != 0 && pull->step == 0) {
		return wf_refuse("PULL", "step", 0,
				 "that of a step, where rows may come ahead of it");
	}
	if (pull->part_count == 0) {
		return wf_refuse("PULL", "part_count", 0, "1 or more");
	}
	return WEFT_OK;
}

static enum weft_status
get_pull_parts(struct wf_reader *r, struct wf_sparse_pull *pull)
{
	uint64_t rows = 0;
	enum weft_status st = check_part_count("PULL", pull->part_count, PULL_PART_BYTES, r);

	for (uint32_t i = 0; i < pull->part_count && st == WEFT_OK; i++) {
		st = get_part("PULL", r, &pull->part[i], &rows);
		pull->part[i].offset = wf_get_u64(r);
		if (st == WEFT_OK && pull->part[i].offset > WF_SPARSE_RANGE_MAX) {
			st = wf_refuse("PULL", "offset", pull->part[i].offset, "at most 2^58");
		}
	}
	return st;
}

enum weft_status
wf_sparse_pull_decode(const struct wf_head *head, const uint8_t *body, struct wf_sparse_pull *out)
{
	enum weft_status st = wf_shape_check(&pull_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_sparse_pull pull;
	pull.request_id = head->request_id;
	pull.step = head->step;
	pull.flags = wf_get_u32(&r);
	pull.part_count = wf_get_u16(&r);
	st = check_pull(&pull);
	if (st != WEFT_OK) {
		return st;
	}
	st = get_pull_parts(&r, &pull);
	if (st != WEFT_OK) {
		return st;
	}
	WF_ASSERT(wf_reader_done(&r));
	memcpy(out, &pull, offsetof(struct wf_sparse_pull, part));
	memcpy(out->part, pull.part, pull.part_count * sizeof(pull.part[0]));
	return WEFT_OK;
}

/* APPLIED and NACK. */

void
wf_sparse_applied_encode(const struct wf_sparse_applied *in, struct wf_msg *out)
{
	struct wf_writer w = wf_shape_begin(&applied_shape, out);
	out->head.step = in->step;
	wf_put_u64(&w, in->samples);
	wf_put_u64(&w, in->rows_updated);
	wf_put_u64(&w, in->pushes_lost);
	wf_put_u64(&w, in->grads_nonfinite);
	wf_put_u8(&w, in->dropped);
	wf_shape_end(&applied_shape, &w, out);
}

enum weft_status
wf_sparse_applied_decode(const struct wf_head *head, const uint8_t *body,
			 struct wf_sparse_applied *out)
{
	enum weft_status st = wf_shape_check(&applied_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	if (head->step == 0 || head->step == WF_STEP_NONE) {
		return wf_refuse("APPLIED", "step", head->step, "the number of a step, from 1");
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_sparse_applied applied = {.step = head->step};
	applied.samples = wf_get_u64(&r);
	applied.rows_updated = wf_get_u64(&r);
	applied.pushes_lost = wf_get_u64(&r);
	applied.grads_nonfinite = wf_get_u64(&r);
	uint8_t dropped = wf_get_u8(&r);
	WF_ASSERT(wf_reader_done(&r));
	if (dropped > 1) {
		return wf_refuse("APPLIED", "dropped", dropped, "0 or 1");
	}
	applied.dropped = dropped != 0;
	*out = applied;
	return WEFT_OK;
}

void
wf_sparse_nack_encode(const struct wf_sparse_nack *in, struct wf_msg *out)
{
	struct wf_writer w = wf_shape_begin(&nack_shape, out);
	out->head.request_id = in->request_id;
	out->head.step = in->step;
	out->head.slice = in->part;
	wf_refusal_put(&w, in->status, in->reason);
	wf_shape_end(&nack_shape, &w, out);
}

enum weft_status
wf_sparse_nack_decode(const struct wf_head *head, const uint8_t *body, struct wf_sparse_nack *out)
{
	enum weft_status st = wf_shape_check(&nack_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_sparse_nack nack = {
		.request_id = head->request_id, .step = head->step, .part = head->slice};
	if (nack.part >= WF_SPARSE_PARTS_MAX) {
		return wf_refuse("NACK", "slice", nack.part, "below 192");
	}
	st = wf_refusal_get(&r, &nack.status, nack.reason);
	if (st != WEFT_OK) {
		return st;
	}
	*out = nack;
	return WEFT_OK;
}
