/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a snapshot as a source of a table's rows, a window of partitions at a time: the
 * records of its rows lie in one place, in whatever order blocks had them, and a list of them is
 * sorted. Thread: the caller's. */
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

/* A row of the window. */
struct listed {
	uint32_t partition;
	uint64_t key;
	const uint8_t *record;
};

struct collected {
	struct wf_rows_reader reader; /* first */
	struct wf_walk walk;
	struct wf_walk_cursor cursor;
	const struct wf_blocks *blocks; /* lent */
	uint32_t idx;                   /* of the table */
	uint64_t window_bytes;
	uint64_t rows[WF_PARTITION_COUNT]; /* of each partition */
	uint32_t first, end;               /* partitions of the window */
	uint64_t due;                      /* its rows */
	uint64_t found, popped;            /* of them */
	uint8_t *record;                   /* [due] of row_bytes each */
	struct listed *list;               /* [due] */
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
	wf_free(self->reader.env, self->list, self->due * sizeof(*self->list));
	self->record = NULL;
	self->list = NULL;
	self->due = 0;
	self->found = 0;
	self->popped = 0;
}

/* From partition `first` on. There are no more rows than were read from the files. */
static enum weft_status
alloc_window(struct collected *self, uint32_t first)
{
	const uint64_t each = self->reader.row_bytes + sizeof(*self->list);

	free_window(self);
	self->first = first;
	self->end = first;
	do {
		self->due += self->rows[self->end++];
	} while (self->end < WF_PARTITION_COUNT &&
		 self->due + self->rows[self->end] <= self->window_bytes / each);
	self->record = wf_zalloc_array(self->reader.env, self->due, self->reader.row_bytes);
	self->list = wf_zalloc_array(self->reader.env, self->due, sizeof(*self->list));
	return self->record != NULL && self->list != NULL
		       ? WEFT_OK
		       : wf_fail(WEFT_NOMEM, "%s: %" PRIu64 " rows of %" PRIu32 " partitions",
				 self->reader.path, self->due, self->end - self->first);
}

/* Rows of a block that belong to the window. */
static enum weft_status
collect_block(void *arg, struct wf_part_reader *part, const struct wf_walk_block *place)
{
	struct collected *self = arg;
	const size_t bytes = self->reader.row_bytes;
	enum weft_status st = WEFT_OK;

	for (uint64_t i = 0; st == WEFT_OK && i < place->block.count; i++) {
		st = wf_part_read(part, self->one, bytes);
		const uint64_t key = wf_load_u64(self->one);
		const uint32_t partition = wf_blocks_partition(&self->reader.head, key);
		if (st != WEFT_OK || partition < self->first || partition >= self->end) {
			continue;
		}
		if (self->found == self->due) {
			return wf_part_refuse(part, "has changed since it was read first");
		}
		uint8_t *to = self->record + self->found * bytes;
		memcpy(to, self->one, bytes);
		self->list[self->found++] = (struct listed){partition, key, to};
	}
	return st;
}

static int
compare_listed(const void *a, const void *b)
{
	const struct listed *x = a;
	const struct listed *y = b;

	if (x->partition != y->partition) {
		return x->partition < y->partition ? -1 : 1;
	}
	return x->key < y->key ? -1 : x->key > y->key;
}

static enum weft_status
sort_window(struct collected *self)
{
	if (self->found != self->due) {
		return wf_fail(WEFT_DATA, "%s: has changed since it was read first",
			       self->reader.path);
	}
	if (self->due > 0) {
		qsort(self->list, self->due, sizeof(*self->list), compare_listed);
	}
	for (uint64_t i = 1; i < self->due; i++) {
		if (self->list[i].key == self->list[i - 1].key) {
			return wf_fail(WEFT_DATA, "%s: the row of key %" PRIu64 " is in two blocks",
				       self->reader.path, self->list[i].key);
		}
	}
	return WEFT_OK;
}

static enum weft_status
load_window(struct collected *self, uint32_t first)
{
	size_t count = 0;
	const struct wf_blocks_entry *entry =
		wf_blocks_of(self->blocks, WF_PART_ROWS, self->idx, &count);

	enum weft_status st = alloc_window(self, first);
	for (size_t i = 0; st == WEFT_OK && i < count; i++) {
		if (entry[i].low < self->end && entry[i].high >= self->first) {
			st = wf_walk_again(&self->walk, &self->cursor, &entry[i].place,
					   collect_block, self);
		}
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
read_counters(void *arg, struct wf_part_reader *part, const struct wf_walk_block *place)
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
		st = wf_walk_again(&self->walk, &self->cursor, &entry[partition].place,
				   read_counters, self);
	}
	if (st == WEFT_OK && partition >= self->end) {
		st = load_window(self, partition);
	}
	*row_count = self->rows[partition];
	return st;
}

static const uint8_t *
next(struct wf_rows_reader *reader, enum weft_status *st)
{
	struct collected *self = collected_of(reader);

	*st = WEFT_OK;
	WF_ASSERT(self->popped < self->due); /* as many as were counted have been found */
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

	wf_walk_close(&self->cursor);
	free_window(self);
}

/* ---- opening ---- */

static enum weft_status
count_block(void *arg, struct wf_part_reader *part, const struct wf_walk_block *place)
{
	struct collected *self = arg;
	enum weft_status st = WEFT_OK;

	for (uint64_t i = 0; st == WEFT_OK && i < place->block.count; i++) {
		st = wf_part_read(part, self->one, self->reader.row_bytes);
		self->rows[wf_blocks_partition(&self->reader.head, wf_load_u64(self->one))] +=
			st == WEFT_OK;
	}
	return st;
}

static enum weft_status
count_rows(struct collected *self)
{
	enum weft_status st = WEFT_OK;
	size_t count = 0;
	const struct wf_blocks_entry *entry =
		wf_blocks_of(self->blocks, WF_PART_ROWS, self->idx, &count);

	for (size_t i = 0; st == WEFT_OK && i < count; i++) {
		st = wf_walk_again(&self->walk, &self->cursor, &entry[i].place, count_block, self);
	}
	return st;
}

enum weft_status
wf_blocks_open_rows(const struct wf_walk *walk, const struct wf_blocks *blocks, uint32_t idx,
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
	if (st == WEFT_OK) {
		st = count_rows(self);
	}
	if (st != WEFT_OK) {
		wf_rows_close(reader);
		return st;
	}
	*out = reader;
	return WEFT_OK;
}
