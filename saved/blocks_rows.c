/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a snapshot, and of those on which it builds, as a source of a table's rows, a window
 * of partitions at a time: the records of its rows lie in one place, in whatever order blocks had
 * them, and a list of them, and of the keys that are gone, is sorted. Of each key only the newest
 * entry remains, and none that says that it is gone. Thread: the caller's. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "saved/blocks.h"
#include "saved/rows_source.h"
#include "wire/little.h"
#include "wire/partition.h"

/* A row of the window, or a key that is gone. */
struct listed {
	uint32_t partition;
	uint32_t age; /* of its snapshot: 0 of the newest */
	uint64_t key;
	const uint8_t *record; /* NULL: it is gone */
};

struct collected {
	struct wf_rows_reader reader; /* first */
	struct wf_block_walk walk;
	struct wf_block_walk_cursor counters,
		cursor;                 /* in the newest snapshot; in the one at hand */
	const struct wf_blocks *blocks; /* lent */
	uint32_t idx;                   /* of the table */
	uint32_t age;                   /* of the snapshot at hand */
	uint64_t window_bytes;
	uint64_t rows[WF_PARTITION_COUNT]; /* of each partition, in all snapshots */
	uint64_t gone[WF_PARTITION_COUNT]; /* keys, likewise */
	uint64_t kept[WF_PARTITION_COUNT]; /* rows that remain; of the window */
	uint32_t first, end;               /* partitions of the window */
	uint64_t due, due_gone;            /* its rows and keys */
	uint64_t found, listed;            /* of the rows; of both */
	uint64_t popped, popped_end;       /* of those that remain */
	uint8_t *record;                   /* [due] of row_bytes each */
	struct listed *list;               /* [due + due_gone] */
	uint64_t bytes;                    /* of all rows and counters so far */
	uint32_t crc;                      /* likewise */
	uint8_t one[WF_ROW_RECORD_BYTES_MAX];
};

static struct collected *
collected_of(struct wf_rows_reader *reader)
{
	return (struct collected *)reader;
}

/* ---- a window ---- */

static void
free_window(struct collected *self)
{
	wf_free(self->reader.env, self->record, self->due * self->reader.row_bytes);
	wf_free(self->reader.env, self->list, (self->due + self->due_gone) * sizeof(*self->list));
	self->record = NULL;
	self->list = NULL;
	self->due = 0;
	self->due_gone = 0;
	self->found = 0;
	self->listed = 0;
	self->popped = 0;
	self->popped_end = 0;
}

/* Bytes that a partition takes, of which there are no more than were read from the files. */
static uint64_t
bytes_of(const struct collected *self, uint32_t partition)
{
	return self->rows[partition] * (self->reader.row_bytes + sizeof(*self->list)) +
	       self->gone[partition] * sizeof(*self->list);
}

/* From partition `first` on. */
static enum weft_status
alloc_window(struct collected *self, uint32_t first)
{
	uint64_t bytes = 0;

	free_window(self);
	self->first = first;
	self->end = first;
	do {
		bytes += bytes_of(self, self->end);
		self->due += self->rows[self->end];
		self->due_gone += self->gone[self->end++];
	} while (self->end < WF_PARTITION_COUNT &&
		 bytes + bytes_of(self, self->end) <= self->window_bytes);
	self->record = wf_zalloc_array(self->reader.env, self->due, self->reader.row_bytes);
	self->list =
		wf_zalloc_array(self->reader.env, self->due + self->due_gone, sizeof(*self->list));
	return self->record != NULL && self->list != NULL
		       ? WEFT_OK
		       : wf_fail(WEFT_NOMEM, "%s: %" PRIu64 " rows of %" PRIu32 " partitions",
				 self->reader.path, self->due, self->end - self->first);
}

/* Rows of a block, or keys, that belong to the window. */
static enum weft_status
collect_block(void *arg, struct wf_part_reader *part, const struct wf_block_walk_block *place)
{
	struct collected *self = arg;
	const bool is_gone = place->block.kind == WF_PART_GONE;
	const size_t bytes = is_gone ? sizeof(uint64_t) : self->reader.row_bytes;
	enum weft_status st = WEFT_OK;

	for (uint64_t i = 0; st == WEFT_OK && i < place->block.count; i++) {
		st = wf_part_read(part, self->one, bytes);
		const uint64_t key = wf_load_u64(self->one);
		const uint32_t partition = wf_blocks_partition(&self->reader.head, key);
		if (st != WEFT_OK || partition < self->first || partition >= self->end) {
			continue;
		}
		if (self->listed == self->due + self->due_gone ||
		    (!is_gone && self->found == self->due)) {
			return wf_part_refuse(part, "has changed since it was read first");
		}
		uint8_t *to = is_gone ? NULL : self->record + self->found++ * bytes;
		if (to != NULL) {
			memcpy(to, self->one, bytes);
		}
		self->list[self->listed++] = (struct listed){partition, self->age, key, to};
	}
	return st;
}

/* What counts of a key is first: the newest, and there the row before that it is gone. */
static int
compare_listed(const void *a, const void *b)
{
	const struct listed *x = a;
	const struct listed *y = b;

	if (x->partition != y->partition) {
		return x->partition < y->partition ? -1 : 1;
	}
	if (x->key != y->key) {
		return x->key < y->key ? -1 : 1;
	}
	if (x->age != y->age) {
		return x->age < y->age ? -1 : 1;
	}
	return (x->record == NULL) - (y->record == NULL);
}

/* Leaves one entry of each key, and none of those that are gone. */
static enum weft_status
reduce_window(struct collected *self)
{
	const struct listed *before = NULL;
	struct listed last;

	memset(self->kept, 0, sizeof(self->kept));
	for (uint64_t i = 0; i < self->listed; i++) {
		const struct listed at = self->list[i];
		const bool is_new = before == NULL || at.key != before->key;
		if (!is_new && at.age == before->age && at.record != NULL) {
			return wf_fail(WEFT_DATA, "%s: the row of key %" PRIu64 " is in two blocks",
				       self->reader.path, at.key);
		}
		if (is_new && at.record != NULL) {
			self->list[self->popped_end++] = at;
			self->kept[at.partition]++;
		}
		last = at;
		before = &last;
	}
	return WEFT_OK;
}

static enum weft_status
sort_window(struct collected *self)
{
	if (self->found != self->due || self->listed != self->due + self->due_gone) {
		return wf_fail(WEFT_DATA, "%s: has changed since it was read first",
			       self->reader.path);
	}
	if (self->listed > 0) {
		qsort(self->list, self->listed, sizeof(*self->list), compare_listed);
	}
	return reduce_window(self);
}

/* Calls `fn` with each block of a kind that the table has and that has something of partitions
 * `first` to `end` - 1, in the snapshot at hand. */
static enum weft_status
visit(struct collected *self, const struct wf_block_walk *walk, const struct wf_blocks *blocks,
      enum wf_part_kind kind, wf_block_walk_fn *fn)
{
	enum weft_status st = WEFT_OK;
	size_t count = 0;
	const struct wf_blocks_entry *entry = wf_blocks_of(blocks, kind, self->idx, &count);

	for (size_t i = 0; st == WEFT_OK && i < count; i++) {
		if (entry[i].low < self->end && entry[i].high >= self->first) {
			st = wf_block_walk_again(walk, &self->cursor, &entry[i].place, fn, self);
		}
	}
	return st;
}

/* In all snapshots, from the newest to the one that is complete. */
static enum weft_status
visit_all(struct collected *self, wf_block_walk_fn *fn)
{
	const struct wf_block_walk *walk = &self->walk;
	const struct wf_blocks *blocks = self->blocks;
	enum weft_status st = WEFT_OK;

	self->age = 0;
	while (st == WEFT_OK && blocks != NULL) {
		st = visit(self, walk, blocks, WF_PART_ROWS, fn);
		if (st == WEFT_OK) {
			st = visit(self, walk, blocks, WF_PART_GONE, fn);
		}
		wf_block_walk_close(&self->cursor);
		self->age++;
		walk = blocks->base != NULL ? &blocks->base->walk : NULL;
		blocks = blocks->base != NULL ? &blocks->base->blocks : NULL;
	}
	return st;
}

static enum weft_status
load_window(struct collected *self, uint32_t first)
{
	enum weft_status st = alloc_window(self, first);

	if (st == WEFT_OK) {
		st = visit_all(self, collect_block);
	}
	return st == WEFT_OK ? sort_window(self) : st;
}

/* ---- the source ---- */

static void
add_sum(struct collected *self, const uint8_t *at, size_t bytes)
{
	self->crc = wf_crc32c(self->crc, at, bytes);
	self->bytes += bytes;
}

static enum weft_status
read_counters(void *arg, struct wf_part_reader *part, const struct wf_block_walk_block *place)
{
	struct collected *self = arg;
	uint8_t bytes[sizeof(uint16_t)];
	enum weft_status st = WEFT_OK;

	for (uint64_t i = 0; st == WEFT_OK && i < place->block.count; i++) {
		st = wf_part_read(part, bytes, sizeof(bytes));
		self->reader.counter[i] = wf_load_u16(bytes);
		add_sum(self, bytes, sizeof(bytes));
	}
	return st;
}

static enum weft_status
begin(struct wf_rows_reader *reader, uint64_t *row_count)
{
	struct collected *self = collected_of(reader);
	const uint32_t partition = reader->partitions;
	enum weft_status st = WEFT_OK;
	size_t count = 0;

	if (reader->head.counter_count > 0) {
		const struct wf_blocks_entry *entry =
			wf_blocks_of(self->blocks, WF_PART_COUNTERS, self->idx, &count);
		WF_ASSERT(partition < count); /* wf_blocks_read */
		st = wf_block_walk_again(&self->walk, &self->counters, &entry[partition].place,
					 read_counters, self);
	}
	if (st == WEFT_OK && partition >= self->end) {
		st = load_window(self, partition);
	}
	*row_count = self->kept[partition];
	return st;
}

static const uint8_t *
next(struct wf_rows_reader *reader, enum weft_status *st)
{
	struct collected *self = collected_of(reader);

	*st = WEFT_OK;
	WF_ASSERT(self->popped < self->popped_end); /* as many as the reader was told */
	const uint8_t *at = self->list[self->popped++].record;
	add_sum(self, at, reader->row_bytes);
	return at;
}

static enum weft_status
finish(const struct wf_rows_reader *reader)
{
	(void)reader;
	return WEFT_CLOSED;
}

static struct wf_rows_sum
sum(const struct wf_rows_reader *reader)
{
	const struct collected *self = (const struct collected *)reader;

	return (struct wf_rows_sum){.bytes = self->bytes, .crc = self->crc};
}

static void
close_collected(struct wf_rows_reader *reader)
{
	struct collected *self = collected_of(reader);

	wf_block_walk_close(&self->counters);
	wf_block_walk_close(&self->cursor);
	free_window(self);
}

/* ---- opening ---- */

static enum weft_status
count_block(void *arg, struct wf_part_reader *part, const struct wf_block_walk_block *place)
{
	struct collected *self = arg;
	const bool is_gone = place->block.kind == WF_PART_GONE;
	const size_t bytes = is_gone ? sizeof(uint64_t) : self->reader.row_bytes;
	uint64_t *count = is_gone ? self->gone : self->rows;
	enum weft_status st = WEFT_OK;

	for (uint64_t i = 0; st == WEFT_OK && i < place->block.count; i++) {
		st = wf_part_read(part, self->one, bytes);
		count[wf_blocks_partition(&self->reader.head, wf_load_u64(self->one))] +=
			st == WEFT_OK;
	}
	return st;
}

enum weft_status
wf_blocks_open_rows(const struct wf_block_walk *walk, const struct wf_blocks *blocks, uint32_t idx,
		    uint64_t window_bytes, struct wf_rows_reader **out)
{
	static const struct wf_rows_source source = {
		.begin = begin,
		.next = next,
		.finish = finish,
		.sum = sum,
		.close = close_collected,
	};
	const struct wf_rows_head head = wf_blocks_head(walk, &blocks->table[idx].about);
	struct wf_rows_reader *reader =
		wf_rows_reader_create(walk->env, &source, walk->path, sizeof(struct collected));

	if (reader == NULL) {
		return WEFT_NOMEM;
	}
	struct collected *self = collected_of(reader);
	self->walk = *walk;
	self->blocks = blocks;
	self->idx = idx;
	self->window_bytes = window_bytes;
	enum weft_status st = wf_rows_reader_set_head(reader, &head);
	self->end = WF_PARTITION_COUNT;
	if (st == WEFT_OK) {
		st = visit_all(self, count_block);
	}
	self->end = 0;
	if (st != WEFT_OK) {
		wf_rows_close(reader);
		return st;
	}
	*out = reader;
	return WEFT_OK;
}
