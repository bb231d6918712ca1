/* SPDX-License-Identifier: Apache-2.0 */
/* capture: see capture.h. Whether a row was live at the border can be told as long as it has not
 * been copied: it has not changed since, a row that was born later has a later `born`, and
 * whether it had expired follows from the row and the step. Thread: the lane's. */
#include "sparse/table/capture.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "kernels/prefetch.h"
#include "sparse/table/table_internal.h"
#include "wire/little.h"

/* Rows that a push evicts for each of its keys without a row; an expired one of the key itself is
 * copied before. */
#define REPLACED (WF_CAPTURE_GONE_OF_KEY - 1u)
#define EVICTED_BYTES_MAX ((uint64_t)8 << 20)
#define BIT_WORDS(bits) (((size_t)(bits) + 63) / 64)

struct wf_capture {
	struct wf_table *table;
	struct wf_capture_sink *sink;
	struct wf_env *env;
	struct wf_row_shape shape;
	size_t record_bytes;
	uint32_t block_rows;
	uint32_t pending_capacity; /* rows; block_rows, and room for evicted ones */
	uint8_t *pending;          /* [pending_capacity * record_bytes] */
	uint64_t *copied;          /* [copied_words] a bit of each rank: the row needs no copy */
	size_t copied_words;
	struct wf_gone gone; /* of a capture with deltas */

	/* From begin on. */
	bool is_on;
	uint32_t border;
	uint32_t base;  /* border of the copy of which this one is a delta; 0: it is complete */
	uint32_t limit; /* ranks of the rows that there were at the border */
	uint32_t next;  /* rank that the walk comes to next; those before need no copy */
	uint32_t next_counters; /* the same of partitions, from the table's first on */
	uint64_t counted[WF_PARTITION_COUNT / 64]; /* a bit of each partition that is copied */
	uint32_t pending_count;
	uint32_t block_count;
	uint32_t gone_next; /* key of `gone` that is sent next */
	uint32_t gone_block_count;
	uint64_t row_count;
	uint64_t ready_step; /* a push of this step may be applied; 0: none */
};

static bool
has_bit(const uint64_t *bits, uint32_t at)
{
	return (bits[at / 64] >> at % 64 & 1u) != 0;
}

static void
set_bit(uint64_t *bits, uint32_t at)
{
	bits[at / 64] |= (uint64_t)1 << at % 64;
}

static uint64_t
counter_bytes(const struct wf_capture *capture)
{
	return (uint64_t)capture->table->admit.slot_count * sizeof(uint16_t);
}

static void
set_sizes(struct wf_capture *capture, const struct wf_capture_opts *opts)
{
	const struct wf_table *t = opts->table;
	uint64_t rows = opts->block_bytes / capture->record_bytes;
	uint64_t evicted = 0;
	if (t->evict.opts.at_cap) {
		uint64_t bytes = opts->evicted_bytes_max;
		uint64_t most = (bytes != 0 ? bytes : EVICTED_BYTES_MAX) / capture->record_bytes;
		evicted = (uint64_t)REPLACED * t->opts.entries_max;
		evicted = evicted < most ? evicted : most;
	}
	rows = rows < WF_CAPTURE_GONE_OF_KEY ? WF_CAPTURE_GONE_OF_KEY : rows;
	capture->block_rows = (uint32_t)rows;
	capture->pending_capacity = (uint32_t)(rows + evicted);
}

enum weft_status
wf_capture_create(const struct wf_capture_opts *opts, struct wf_capture **out)
{
	struct wf_table *t = opts->table;
	if (t->motions.varies) {
		return wf_fail(WEFT_UNSUPPORTED,
			       "table %" PRIu32
			       ": steps missed are made up for under a schedule, and the rates of "
			       "the steps before a snapshot are not in it: use a constant one, or "
			       "lazy rows",
			       t->opts.init.table);
	}
	struct wf_capture *capture = wf_zalloc(t->env, sizeof(*capture));
	if (capture != NULL) {
		capture->table = t;
		capture->sink = opts->sink;
		capture->env = t->env;
		capture->gone.env = t->env;
		capture->shape = wf_table_shape(t);
		capture->record_bytes = wf_row_record_bytes(&capture->shape);
		set_sizes(capture, opts);
		capture->pending =
			wf_zalloc_array(t->env, capture->pending_capacity, capture->record_bytes);
	}
	if (capture == NULL || capture->pending == NULL) {
		wf_capture_destroy(capture);
		return wf_fail(WEFT_NOMEM, "table %" PRIu32 ": no memory for snapshots",
			       t->opts.init.table);
	}
	t->gone = opts->has_deltas ? &capture->gone : NULL;
	*out = capture;
	return WEFT_OK;
}

void
wf_capture_destroy(struct wf_capture *capture)
{
	if (capture == NULL) {
		return;
	}
	wf_capture_end(capture);
	if (capture->table->gone == &capture->gone) {
		capture->table->gone = NULL;
	}
	wf_gone_fini(&capture->gone);
	wf_free(capture->env, capture->copied, capture->copied_words * sizeof(*capture->copied));
	wf_free(capture->env, capture->pending, capture->pending_capacity * capture->record_bytes);
	wf_free(capture->env, capture, sizeof(*capture));
}

uint64_t
wf_capture_longest(const struct wf_capture *capture)
{
	uint64_t rows = capture->block_rows * capture->record_bytes;
	return rows > counter_bytes(capture) ? rows : counter_bytes(capture);
}

/* A bit for each rank below `limit`, all 0. */
static bool
clear_copied(struct wf_capture *capture, uint32_t limit)
{
	const size_t words = BIT_WORDS(limit);
	if (words <= capture->copied_words) {
		if (words > 0) {
			memset(capture->copied, 0, words * sizeof(*capture->copied));
		}
		return true;
	}
	wf_free(capture->env, capture->copied, capture->copied_words * sizeof(*capture->copied));
	capture->copied_words = words + words / 4; /* the table grows */
	capture->copied =
		wf_zalloc_array(capture->env, capture->copied_words, sizeof(*capture->copied));
	capture->copied_words = capture->copied == NULL ? 0 : capture->copied_words;
	return capture->copied != NULL;
}

/* What is gone since `base` is known from the last copy on, if all of it could be listed. */
static enum weft_status
check_base(const struct wf_capture *capture, uint64_t base)
{
	const struct wf_gone *gone = &capture->gone;
	const uint32_t number = capture->table->opts.init.table;
	if (capture->table->gone != gone || gone->border != base) {
		return wf_fail(WEFT_UNAVAILABLE,
			       "table %" PRIu32 ": the last copy is of step %" PRIu32
			       ", and what has changed since step %" PRIu64 " is not known",
			       number, gone->border, base);
	}
	return !gone->is_short ? WEFT_OK
			       : wf_fail(WEFT_UNAVAILABLE,
					 "table %" PRIu32 ": more rows are gone since step %" PRIu64
					 " than the %" PRIu32 " that could be listed",
					 number, base, gone->count);
}

static void
begin_gone(struct wf_capture *capture)
{
	if (capture->base == 0) {
		wf_gone_begin_full(&capture->gone, capture->border);
	} else {
		wf_gone_begin_delta(&capture->gone, capture->border);
	}
	capture->gone_next = 0;
	capture->gone_block_count = 0;
}

enum weft_status
wf_capture_begin(struct wf_capture *capture, uint64_t base)
{
	struct wf_table *t = capture->table;
	WF_ASSERT(t->capture == NULL && t->push_step == 0);
	enum weft_status st = base == 0 ? WEFT_OK : check_base(capture, base);
	if (st != WEFT_OK) {
		return st;
	}
	if (!clear_copied(capture, t->rows.used_count)) {
		return wf_fail(WEFT_NOMEM,
			       "table %" PRIu32 ": no memory to mark %" PRIu32
			       " rows for a snapshot",
			       t->opts.init.table, t->rows.used_count);
	}
	memset(capture->counted, 0, sizeof(capture->counted));
	capture->border = t->step;
	capture->base = (uint32_t)base; /* that of a copy of this table */
	begin_gone(capture);
	capture->limit = t->rows.used_count;
	capture->next = 0;
	capture->next_counters = t->admit.slot_count == 0 ? t->opts.partition_count : 0;
	capture->pending_count = 0;
	capture->block_count = 0;
	capture->row_count = 0;
	capture->ready_step = 0;
	capture->is_on = true;
	t->capture = capture;
	return WEFT_OK;
}

bool
wf_capture_is_on(const struct wf_capture *capture)
{
	return capture->is_on;
}

void
wf_capture_end(struct wf_capture *capture)
{
	if (capture->is_on) {
		capture->is_on = false;
		capture->table->capture = NULL;
	}
}

uint64_t
wf_capture_rows(const struct wf_capture *capture)
{
	return capture->row_count;
}

/* ---- rows ---- */

/* Moves the last pending rows to the sink, a block of them at most. */
static bool
send_block(struct wf_capture *capture)
{
	const uint32_t count = capture->pending_count < capture->block_rows ? capture->pending_count
									    : capture->block_rows;
	const struct wf_capture_block block = {
		.first = capture->block_count,
		.count = count,
		.bytes = count * capture->record_bytes,
	};
	WF_ASSERT(count > 0);
	void *to = capture->sink->claim(capture->sink, &block);
	if (to == NULL) {
		return false;
	}
	capture->pending_count -= count;
	memcpy(to, capture->pending + capture->pending_count * capture->record_bytes, block.bytes);
	capture->sink->add(capture->sink);
	capture->block_count++;
	return true;
}

/* Makes room in `pending` for this many rows. */
static bool
make_room(struct wf_capture *capture, uint64_t rows)
{
	while (capture->pending_capacity - capture->pending_count < rows) {
		if (capture->pending_count == 0 || !send_block(capture)) {
			return false;
		}
	}
	return true;
}

static bool
needs_copy(const struct wf_capture *capture, uint32_t rank)
{
	return rank >= capture->next && rank < capture->limit && !has_bit(capture->copied, rank);
}

/* Of a row that has not been copied. */
static bool
was_live(const struct wf_capture *capture, struct wf_row_head *head)
{
	const struct wf_table *t = capture->table;
	if (head->born == 0 || head->born > capture->border) { /* 1 + the step of its birth */
		return false;
	}
	WF_ASSERT(head->stamp <= capture->border);
	return !t->evict.can_expire || !wf_evict_is_expired(&t->evict, head, capture->border);
}

/* Whether the copy of which this one is a delta does not have the row, or not as it is. */
static bool
has_changed(const struct wf_capture *capture, const struct wf_row_head *head)
{
	return capture->base == 0 || head->born > capture->base || head->stamp > capture->base;
}

/* A row that was no longer live at the border: its memory is still in use. */
static void
note_expired(struct wf_capture *capture, const struct wf_row_head *head)
{
	if (capture->base != 0 && head->born != 0 && head->born <= capture->base) {
		wf_gone_add_due(&capture->gone, head->key);
	}
}

/* There is room in `pending`. */
static void
copy_row(struct wf_capture *capture, struct wf_row_head *head)
{
	struct wf_table_row row;
	WF_ASSERT(capture->pending_count < capture->pending_capacity);
	wf_table_read(capture->table, head, &row);
	const struct wf_row_record record = {
		.key = row.key,
		.stamp = row.stamp,
		.born = row.born,
		.show = row.show,
		.click = row.click,
		.floats = row.floats,
	};
	wf_row_record_put(&capture->shape, &record,
			  capture->pending + capture->pending_count * capture->record_bytes);
	capture->pending_count++;
}

/* Copies the row if that is needed. What is left of `pending` for evicted rows is not used. */
static bool
settle_row(struct wf_capture *capture, uint32_t row)
{
	const struct wf_rows *rows = &capture->table->rows;
	const uint32_t rank = wf_slabs_rank(&rows->slabs, row);
	if (!needs_copy(capture, rank)) {
		return true;
	}
	struct wf_row_head *head = wf_row_at(rows, row);
	if (was_live(capture, head)) {
		if (has_changed(capture, head)) {
			if (capture->pending_count >= capture->block_rows && !send_block(capture)) {
				return false;
			}
			copy_row(capture, head);
		}
		capture->row_count++;
	} else {
		note_expired(capture, head);
	}
	set_bit(capture->copied, rank);
	return true;
}

bool
wf_capture_may_remove(struct wf_capture *capture, uint64_t rows)
{
	return capture->next == capture->limit || make_room(capture, rows);
}

void
wf_capture_remove(struct wf_capture *capture, uint32_t row)
{
	const struct wf_rows *rows = &capture->table->rows;
	const uint32_t rank = wf_slabs_rank(&rows->slabs, row);
	struct wf_row_head *head = wf_row_at(rows, row);
	if (!needs_copy(capture, rank)) {
		return;
	}
	if (was_live(capture, head)) {
		if (has_changed(capture, head)) {
			copy_row(capture, head);
		}
		capture->row_count++;
	} else {
		note_expired(capture, head);
	}
	set_bit(capture->copied, rank);
}

/* Moves what is due of the keys of rows that are gone to the sink, a block of them at most. */
static bool
send_gone(struct wf_capture *capture)
{
	const struct wf_gone *gone = &capture->gone;
	const uint64_t most = capture->block_rows * capture->record_bytes / sizeof(uint64_t);
	const uint32_t left = gone->due - capture->gone_next;
	const uint32_t count = left < most ? left : (uint32_t)most;
	const struct wf_capture_block block = {
		.has_gone = true,
		.first = capture->gone_block_count,
		.count = count,
		.bytes = count * sizeof(uint64_t),
	};
	WF_ASSERT(count > 0);
	uint8_t *to = capture->sink->claim(capture->sink, &block);
	if (to == NULL) {
		return false;
	}
	for (uint32_t i = 0; i < count; i++) {
		wf_store_u64(to + 8 * (size_t)i, gone->key[capture->gone_next++]);
	}
	capture->sink->add(capture->sink);
	capture->gone_block_count++;
	return true;
}

/* ---- counters of admission ---- */

static bool
settle_counters(struct wf_capture *capture, uint32_t partition)
{
	const struct wf_capture_block block = {
		.has_counters = true,
		.first = partition,
		.count = capture->table->admit.slot_count,
		.bytes = counter_bytes(capture),
	};
	uint32_t count = 0;
	if (block.count == 0 || has_bit(capture->counted, partition)) {
		return true;
	}
	const uint16_t *counter = wf_table_counters(capture->table, partition, &count);
	uint8_t *to = capture->sink->claim(capture->sink, &block);
	if (to == NULL) {
		return false;
	}
	for (uint32_t i = 0; i < count; i++) {
		wf_store_u16(to + 2 * (size_t)i, counter[i]);
	}
	capture->sink->add(capture->sink);
	set_bit(capture->counted, partition);
	return true;
}

/* ---- before a push ---- */

/* Up to WF_CHUNK_KEYS keys. Adds those that have no row to *missing. */
static bool
copy_keys(struct wf_capture *capture, const uint64_t *key, size_t count, uint64_t *missing)
{
	const struct wf_table *t = capture->table;
	const unsigned lines = wf_rows_lines(&t->rows, t->rows.value_bytes);
	struct wf_row_head *head[WF_CHUNK_KEYS];
	if (wf_table_locate(t, key, count, lines, head) == WF_NOT_OURS) {
		return true; /* the push will be refused */
	}
	for (size_t i = 0; i < count; i++) {
		uint32_t row = wf_table_find(t, key[i]); /* in cache now; also if it has expired */
		if (row != WF_ROW_NONE && !settle_row(capture, row)) {
			return false;
		}
		if (head[i] == NULL) {
			(*missing)++;
			if (!wf_table_is_fixed(t) &&
			    !settle_counters(capture, wf_partition_of(key[i]))) {
				return false;
			}
		}
	}
	return true;
}

/* Rows that new ones may replace, which are known only as they go. */
static bool
prepare_for_new(struct wf_capture *capture, uint64_t missing)
{
	const uint64_t rows = REPLACED * missing;
	if (missing == 0 || !capture->table->evict.opts.at_cap) {
		return true;
	}
	if (rows <= capture->pending_capacity) {
		return wf_capture_may_remove(capture, rows);
	}
	while (capture->next < capture->limit) {
		if (!settle_row(capture, wf_rows_nth(&capture->table->rows, capture->next))) {
			return false;
		}
		capture->next++;
	}
	return true;
}

bool
wf_capture_copy_before(struct wf_capture *capture, const struct wf_table_push *push)
{
	uint64_t missing = 0;
	WF_ASSERT(capture->is_on);
	for (size_t b = 0; b < push->batch_count; b++) {
		const struct wf_table_batch *batch = &push->batch[b];
		for (size_t at = 0; at < batch->count; at += WF_CHUNK_KEYS) {
			size_t left = batch->count - at;
			size_t count = left < WF_CHUNK_KEYS ? left : WF_CHUNK_KEYS;
			if (!copy_keys(capture, batch->key + at, count, &missing)) {
				return false;
			}
		}
	}
	if (!prepare_for_new(capture, missing)) {
		return false;
	}
	capture->ready_step = push->step;
	return true;
}

bool
wf_capture_is_ready(const struct wf_capture *capture, uint64_t step)
{
	return capture->ready_step == step;
}

/* ---- the walk ---- */

#define LINE_BYTES 64u /* of a row that needs no copy, whose head is read */

/* The nth row, and *done of it. */
static bool
walk_row(struct wf_capture *capture, uint64_t *done)
{
	const struct wf_rows *rows = &capture->table->rows;
	const uint32_t pending_count = capture->pending_count;
	if (!settle_row(capture, wf_rows_nth(rows, capture->next))) {
		return false;
	}
	bool is_copied = capture->pending_count != pending_count;
	*done += is_copied || capture->base == 0 ? rows->slabs.row_bytes : LINE_BYTES;
	capture->next++;
	return true;
}

/* What has gathered. */
static bool
send_rest(struct wf_capture *capture)
{
	while (capture->pending_count > 0) {
		if (!send_block(capture)) {
			return false;
		}
	}
	while (capture->gone_next < capture->gone.due) {
		if (!send_gone(capture)) {
			return false;
		}
	}
	return true;
}

enum wf_capture_news
wf_capture_copy_some(struct wf_capture *capture, uint64_t bytes)
{
	const struct wf_table *t = capture->table;
	uint64_t done = 0;
	WF_ASSERT(capture->is_on);
	for (; capture->next_counters < t->opts.partition_count && done < bytes;
	     capture->next_counters++, done += counter_bytes(capture)) {
		if (!settle_counters(capture, t->opts.partition_first + capture->next_counters)) {
			return WF_CAPTURE_FULL;
		}
	}
	while (capture->next < capture->limit && done < bytes) {
		if (!walk_row(capture, &done)) {
			return WF_CAPTURE_FULL;
		}
	}
	if (capture->next_counters < t->opts.partition_count || capture->next < capture->limit) {
		return WF_CAPTURE_MORE;
	}
	if (!send_rest(capture)) {
		return WF_CAPTURE_FULL;
	}
	bool is_short = capture->base != 0 && capture->gone.is_short;
	wf_gone_end(&capture->gone);
	wf_capture_end(capture);
	return is_short ? WF_CAPTURE_SHORT : WF_CAPTURE_DONE;
}
