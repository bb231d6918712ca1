/* SPDX-License-Identifier: Apache-2.0 */
/* sparse_messages_save: encode and decode FETCH, RESTORE and RESTORED, with which tables are saved
 * and restored. Layouts: wire/protocol.md. Thread: any; pure functions. */
#include "base/assert.h"
#include "wire/partition.h"
#include "wire/shape.h"
#include "wire/sparse_messages.h"

#define FETCH_BYTES 32
#define RESTORE_BYTES 20
#define RESTORED_BYTES 8

static const struct wf_shape fetch_shape = {
	.name = "FETCH",
	.service = WF_SERVICE_SPARSE,
	.type = WF_SPARSE_FETCH,
	.uses = WF_USE_REQUEST_ID | WF_USE_STEP | WF_USE_SLICE,
	.body_min = FETCH_BYTES,
	.body_max = FETCH_BYTES,
};

static const struct wf_shape restore_shape = {
	.name = "RESTORE",
	.service = WF_SERVICE_SPARSE,
	.type = WF_SPARSE_RESTORE,
	.uses = WF_USE_REQUEST_ID | WF_USE_STEP | WF_USE_SLICE,
	.body_min = RESTORE_BYTES,
	.body_max = RESTORE_BYTES,
};

static const struct wf_shape restored_shape = {
	.name = "RESTORED",
	.service = WF_SERVICE_SPARSE,
	.type = WF_SPARSE_RESTORED,
	.uses = WF_USE_REQUEST_ID,
	.body_min = RESTORED_BYTES,
	.body_max = RESTORED_BYTES,
};

void
wf_sparse_fetch_encode(const struct wf_sparse_fetch *in, struct wf_msg *out)
{
	struct wf_writer w = wf_shape_begin(&fetch_shape, out);
	out->head.request_id = in->request_id;
	out->head.step = in->step;
	out->head.slice = in->table;
	wf_put_u32(&w, in->from.partition);
	wf_put_u32(&w, in->from.kind);
	wf_put_u64(&w, in->from.key);
	wf_put_u32(&w, in->bytes);
	wf_put_u32(&w, in->pass);
	wf_put_u64(&w, in->offset);
	wf_shape_end(&fetch_shape, &w, out);
}

static enum weft_status
check_ids(const char *message, const struct wf_head *head)
{
	if (head->request_id == 0) {
		return wf_refuse(message, "request_id", 0, "1 or more");
	}
	if (head->step == WF_STEP_NONE) {
		return wf_refuse(message, "step", head->step, "the number of a step");
	}
	if (head->slice >= WF_TABLE_COUNT_MAX) {
		return wf_refuse(message, "slice", head->slice, "below 1024");
	}
	return WEFT_OK;
}

static enum weft_status
check_fetch(const struct wf_sparse_fetch *fetch)
{
	const struct wf_run_cursor *from = &fetch->from;

	if (from->partition >= WF_PARTITION_COUNT) {
		return wf_refuse("FETCH", "partition", from->partition, "below 1024");
	}
	if (from->kind != WF_RUN_COUNTERS && from->kind != WF_RUN_ROWS) {
		return wf_refuse("FETCH", "kind", from->kind, "1 (counters) or 2 (rows)");
	}
	if (from->kind == WF_RUN_COUNTERS && from->key != 0) {
		return wf_refuse("FETCH", "key", from->key, "0 at the beginning of a partition");
	}
	if (fetch->bytes < WF_RUN_BYTES_MIN || fetch->bytes > WF_RUN_BYTES_MAX) {
		return wf_refuse("FETCH", "bytes", fetch->bytes, "128 to 65536");
	}
	if (fetch->offset > WF_SPARSE_RANGE_MAX) {
		return wf_refuse("FETCH", "offset", fetch->offset, "at most 2^58");
	}
	return WEFT_OK;
}

enum weft_status
wf_sparse_fetch_decode(const struct wf_head *head, const uint8_t *body, struct wf_sparse_fetch *out)
{
	enum weft_status st = wf_shape_check(&fetch_shape, head);
	if (st == WEFT_OK) {
		st = check_ids("FETCH", head);
	}
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_sparse_fetch fetch = {
		.request_id = head->request_id, .step = head->step, .table = head->slice};
	fetch.from.partition = wf_get_u32(&r);
	fetch.from.kind = wf_get_u32(&r);
	fetch.from.key = wf_get_u64(&r);
	fetch.bytes = wf_get_u32(&r);
	fetch.pass = wf_get_u32(&r);
	fetch.offset = wf_get_u64(&r);
	WF_ASSERT(wf_reader_done(&r));
	st = check_fetch(&fetch);
	if (st != WEFT_OK) {
		return st;
	}
	*out = fetch;
	return WEFT_OK;
}

void
wf_sparse_restore_encode(const struct wf_sparse_restore *in, struct wf_msg *out)
{
	struct wf_writer w = wf_shape_begin(&restore_shape, out);
	out->head.request_id = in->request_id;
	out->head.step = in->step;
	out->head.slice = in->table;
	wf_put_u64(&w, in->samples);
	wf_put_u64(&w, in->table_step);
	wf_put_u32(&w, in->bytes);
	wf_shape_end(&restore_shape, &w, out);
}

enum weft_status
wf_sparse_restore_decode(const struct wf_head *head, const uint8_t *body,
			 struct wf_sparse_restore *out)
{
	enum weft_status st = wf_shape_check(&restore_shape, head);
	if (st == WEFT_OK) {
		st = check_ids("RESTORE", head);
	}
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_sparse_restore restore = {
		.request_id = head->request_id, .step = head->step, .table = head->slice};
	restore.samples = wf_get_u64(&r);
	restore.table_step = wf_get_u64(&r);
	restore.bytes = wf_get_u32(&r);
	WF_ASSERT(wf_reader_done(&r));
	if (restore.samples > INT64_MAX) {
		return wf_refuse("RESTORE", "samples", restore.samples, "at most 2^63 - 1");
	}
	if (restore.bytes > WF_RUN_BYTES_MAX) {
		return wf_refuse("RESTORE", "bytes", restore.bytes, "at most 65536");
	}
	*out = restore;
	return WEFT_OK;
}

void
wf_sparse_restored_encode(const struct wf_sparse_restored *in, struct wf_msg *out)
{
	struct wf_writer w = wf_shape_begin(&restored_shape, out);
	out->head.request_id = in->request_id;
	wf_put_u64(&w, in->rows);
	wf_shape_end(&restored_shape, &w, out);
}

enum weft_status
wf_sparse_restored_decode(const struct wf_head *head, const uint8_t *body,
			  struct wf_sparse_restored *out)
{
	enum weft_status st = wf_shape_check(&restored_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	*out = (struct wf_sparse_restored){.request_id = head->request_id, .rows = wf_get_u64(&r)};
	WF_ASSERT(wf_reader_done(&r));
	return out->request_id != 0 ? WEFT_OK : wf_refuse("RESTORED", "request_id", 0, "1 or more");
}
