/* SPDX-License-Identifier: Apache-2.0 */
/* Thread: the caller's. */
#include "saved/blocks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "saved/rows_layout.h"
#include "wire/little.h"
#include "wire/partition.h"

#define FIRST_ROOM 256u
#define VALUE_BYTES 4u

/* The list on its way. */
struct listing {
	const struct wf_block_walk *walk;
	struct wf_blocks *blocks;
	uint8_t record[WF_ROW_RECORD_BYTES_MAX];
	float floats[WF_ROW_RECORD_FLOATS_MAX];
};

static enum weft_status
make_room(struct listing *listing)
{
	struct wf_blocks *blocks = listing->blocks;
	const size_t room = blocks->room == 0 ? FIRST_ROOM : 2 * blocks->room;
	struct wf_blocks_entry *more =
		wf_zalloc_array(listing->walk->env, room, sizeof(*blocks->entry));

	if (more == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: list of %zu blocks", listing->walk->path, room);
	}
	if (blocks->count > 0) {
		memcpy(more, blocks->entry, blocks->count * sizeof(*more));
	}
	wf_free(listing->walk->env, blocks->entry, blocks->room * sizeof(*more));
	blocks->entry = more;
	blocks->room = room;
	return WEFT_OK;
}

/* Adds the block, whose payload is read to its end first. */
static enum weft_status
add(struct listing *listing, struct wf_part_reader *reader, const struct wf_blocks_entry *entry)
{
	struct wf_blocks *blocks = listing->blocks;

	enum weft_status st = wf_part_skip(reader);
	if (st == WEFT_OK && blocks->count == blocks->room) {
		st = make_room(listing);
	}
	if (st == WEFT_OK) {
		blocks->entry[blocks->count] = *entry;
		blocks->entry[blocks->count++].place.crc = wf_part_block_crc(reader);
	}
	return st;
}

/* ---- dense parts ---- */

static const char *
slice_objection(const struct wf_manifest *manifest, const struct wf_part_block *block)
{
	if (block->item >= manifest->tensor_count) {
		return "is of a tensor that the manifest does not have";
	}
	const struct wf_manifest_tensor *tensor = &manifest->tensor[block->item];
	const uint64_t elements = tensor->rows * tensor->cols;
	if (block->first > elements || block->count > elements - block->first) {
		return "has elements that its tensor does not have";
	}
	/* The product must not overflow. */
	if (block->count > WF_PART_BLOCK_BYTES_MAX / VALUE_BYTES ||
	    block->bytes != block->count * (1 + tensor->state_count) * VALUE_BYTES) {
		return "does not have the bytes of its elements and their state";
	}
	return NULL;
}

static enum weft_status
list_dense(void *arg, struct wf_part_reader *reader, const struct wf_block_walk_block *place)
{
	struct listing *listing = arg;
	const struct wf_part_block *block = &place->block;
	const struct wf_manifest *manifest = listing->walk->manifest;

	if (block->kind == WF_PART_NUMBERS || block->kind == WF_PART_VERSIONS) {
		return block->item < manifest->tensor_count
			       ? WEFT_OK
			       : wf_part_refuse(reader,
						"is of a tensor that the manifest does not have");
	}
	if (block->kind != WF_PART_SLICE) {
		return wf_part_refuse(reader, "is of a kind that a dense part does not have");
	}
	const char *why = slice_objection(manifest, block);
	if (why != NULL) {
		return wf_part_refuse(reader, why);
	}
	return block->count == 0 ? WEFT_OK
				 : add(listing, reader, &(struct wf_blocks_entry){.place = *place});
}

/* ---- sparse parts ---- */

struct wf_rows_head
wf_blocks_head(const struct wf_block_walk *walk, const struct wf_part_table *about)
{
	return (struct wf_rows_head){
		.shape = about->row,
		.counter_count = about->counter_count,
		.vocabulary = about->vocabulary,
		.step = walk->manifest->about.step,
	};
}

uint32_t
wf_blocks_partition(const struct wf_rows_head *head, uint64_t key)
{
	return head->vocabulary > 0 ? wf_partition_of_fixed(key) : wf_partition_of(key);
}

static bool
is_same(const struct wf_part_table *a, const struct wf_part_table *b)
{
	return a->row.dim == b->row.dim && a->row.state_floats == b->row.state_floats &&
	       a->row.has_score == b->row.has_score && a->vocabulary == b->vocabulary &&
	       a->counter_count == b->counter_count && a->rest == b->rest;
}

bool
wf_blocks_has_same_table(const struct wf_blocks *a, const struct wf_blocks *b, uint32_t idx)
{
	return is_same(&a->table[idx].about, &b->table[idx].about);
}

static enum weft_status
list_description(struct listing *listing, struct wf_part_reader *reader,
		 const struct wf_block_walk_block *place)
{
	const struct wf_manifest *manifest = listing->walk->manifest;
	struct wf_blocks_table *table = &listing->blocks->table[place->block.item];
	uint8_t payload[WF_PART_TABLE_BYTES];
	struct wf_part_table about;

	if (place->block.bytes != sizeof(payload) || table->described_in == place->part + 1) {
		return wf_part_refuse(reader, "describes its table at another length, or again");
	}
	enum weft_status st = wf_part_read(reader, payload, sizeof(payload));
	if (st != WEFT_OK) {
		return st;
	}
	if (wf_part_table_get(payload, &about) != WEFT_OK ||
	    about.row.dim != manifest->table[place->block.item].dim) {
		return wf_part_refuse(reader, "describes another table than the manifest");
	}
	const struct wf_rows_head head = wf_blocks_head(listing->walk, &about);
	if (wf_rows_check_head(&head) != WEFT_OK) {
		return wf_part_refuse(reader, "describes a table that cannot be");
	}
	if (table->described_in > 0 && !is_same(&about, &table->about)) {
		return wf_part_refuse(reader, "describes its table in another way than a part "
					      "before it");
	}
	table->about = about;
	table->described_in = place->part + 1;
	return WEFT_OK;
}

static enum weft_status
list_counters(struct listing *listing, struct wf_part_reader *reader,
	      const struct wf_block_walk_block *place)
{
	const struct wf_part_block *block = &place->block;
	const uint32_t count = listing->blocks->table[block->item].about.counter_count;

	if (count == 0 || block->count != count || block->bytes != 2ull * count ||
	    block->first >= WF_PARTITION_COUNT) {
		return wf_part_refuse(reader, "has other counters than its table");
	}
	return add(listing, reader, &(struct wf_blocks_entry){.place = *place});
}

/* A row of a delta was updated, or born, since the snapshot on which it builds. */
static const char *
row_objection(const struct listing *listing, const struct wf_rows_head *head, uint32_t partition,
	      const struct wf_row_record *row)
{
	const uint64_t base = listing->walk->manifest->parts.base_step;

	if (row->stamp <= base && row->born < base) {
		return "has a row that has not changed since the snapshot on which this one builds";
	}
	return wf_rows_objection(head, partition, NULL, row);
}

static enum weft_status
list_rows(struct listing *listing, struct wf_part_reader *reader,
	  const struct wf_block_walk_block *place)
{
	const struct wf_part_block *block = &place->block;
	struct wf_blocks_table *table = &listing->blocks->table[block->item];
	const struct wf_rows_head head = wf_blocks_head(listing->walk, &table->about);
	const size_t bytes = wf_row_record_bytes(&head.shape);
	struct wf_blocks_entry entry = {.place = *place, .low = WF_PARTITION_COUNT};
	struct wf_row_record row;
	enum weft_status st = WEFT_OK;

	if (block->count != block->bytes / bytes || block->bytes % bytes != 0) {
		return wf_part_refuse(reader, "does not have the bytes of its rows");
	}
	for (uint64_t i = 0; st == WEFT_OK && i < block->count; i++) {
		st = wf_part_read(reader, listing->record, bytes);
		if (st != WEFT_OK) {
			return st;
		}
		wf_row_record_get(&head.shape, listing->record, listing->floats, &row);
		const uint32_t partition = wf_blocks_partition(&head, row.key);
		const char *why = row_objection(listing, &head, partition, &row);
		st = why == NULL ? st : wf_part_refuse(reader, why);
		entry.low = partition < entry.low ? partition : entry.low;
		entry.high = partition > entry.high ? partition : entry.high;
	}
	table->rows += block->count;
	return st == WEFT_OK && block->count > 0 ? add(listing, reader, &entry) : st;
}

/* Keys of rows that are gone since the snapshot on which a delta builds. */
static enum weft_status
list_gone(struct listing *listing, struct wf_part_reader *reader,
	  const struct wf_block_walk_block *place)
{
	const struct wf_part_block *block = &place->block;
	const struct wf_rows_head head =
		wf_blocks_head(listing->walk, &listing->blocks->table[block->item].about);
	struct wf_blocks_entry entry = {.place = *place, .low = WF_PARTITION_COUNT};
	uint8_t bytes[sizeof(uint64_t)];
	enum weft_status st = WEFT_OK;

	if (listing->walk->manifest->parts.base_step == 0 || head.vocabulary > 0 ||
	    block->count != block->bytes / sizeof(bytes) || block->bytes % sizeof(bytes) != 0) {
		return wf_part_refuse(reader,
				      "has keys of rows that are gone, which it cannot have");
	}
	for (uint64_t i = 0; st == WEFT_OK && i < block->count; i++) {
		st = wf_part_read(reader, bytes, sizeof(bytes));
		const uint32_t partition = wf_blocks_partition(&head, wf_load_u64(bytes));
		entry.low = partition < entry.low ? partition : entry.low;
		entry.high = partition > entry.high ? partition : entry.high;
	}
	return st == WEFT_OK && block->count > 0 ? add(listing, reader, &entry) : st;
}

static enum weft_status
list_sparse(void *arg, struct wf_part_reader *reader, const struct wf_block_walk_block *place)
{
	struct listing *listing = arg;
	const struct wf_part_block *block = &place->block;

	if (block->item >= listing->blocks->table_count) {
		return wf_part_refuse(reader, "is of a table that the manifest does not have");
	}
	if (block->kind == WF_PART_LANE) {
		return list_description(listing, reader, place);
	}
	if (listing->blocks->table[block->item].described_in != place->part + 1) {
		return wf_part_refuse(reader, "comes before the one that describes its table");
	}
	if (block->kind == WF_PART_COUNTERS) {
		return list_counters(listing, reader, place);
	}
	if (block->kind == WF_PART_GONE) {
		return list_gone(listing, reader, place);
	}
	return block->kind == WF_PART_ROWS
		       ? list_rows(listing, reader, place)
		       : wf_part_refuse(reader, "is of a kind that a sparse part does not have");
}

/* ---- all of it ---- */

static int
compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int
compare_entries(const void *a, const void *b)
{
	const struct wf_block_walk_block *x = &((const struct wf_blocks_entry *)a)->place;
	const struct wf_block_walk_block *y = &((const struct wf_blocks_entry *)b)->place;
	int order = compare_u64(x->block.kind, y->block.kind);

	order = order != 0 ? order : compare_u64(x->block.item, y->block.item);
	/* Numbers of rows and keys are the part's own. */
	if (x->block.kind != WF_PART_ROWS && x->block.kind != WF_PART_GONE) {
		order = order != 0 ? order : compare_u64(x->block.first, y->block.first);
	}
	order = order != 0 ? order : compare_u64(x->part, y->part);
	return order != 0 ? order : compare_u64(x->number, y->number);
}

/* The first entry that is not before the kind and item. */
static size_t
find(const struct wf_blocks *blocks, uint32_t kind, uint64_t item)
{
	size_t low = 0;
	size_t high = blocks->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const struct wf_part_block *block = &blocks->entry[middle].place.block;
		const bool is_before =
			block->kind < kind || (block->kind == kind && block->item < item);
		low = is_before ? middle + 1 : low;
		high = is_before ? high : middle;
	}
	return low;
}

const struct wf_blocks_entry *
wf_blocks_of(const struct wf_blocks *blocks, enum wf_part_kind kind, uint32_t item, size_t *count)
{
	const size_t first = find(blocks, kind, item);

	*count = find(blocks, kind, (uint64_t)item + 1) - first;
	return *count == 0 ? NULL : &blocks->entry[first];
}

/* Each element is in one block. */
static enum weft_status
check_tensor(const struct wf_block_walk *walk, const struct wf_blocks *blocks, uint32_t idx)
{
	const struct wf_manifest_tensor *tensor = &walk->manifest->tensor[idx];
	const uint64_t elements = tensor->rows * tensor->cols;
	uint64_t next = 0;
	size_t count = 0;
	const struct wf_blocks_entry *entry = wf_blocks_of(blocks, WF_PART_SLICE, idx, &count);

	for (size_t i = 0; i < count && entry[i].place.block.first == next; i++) {
		next += entry[i].place.block.count;
	}
	return next == elements ? WEFT_OK
				: wf_fail(WEFT_DATA,
					  "%s: tensor %s: no block goes on at element %" PRIu64
					  " of %" PRIu64 ": elements are missing or there twice",
					  walk->path, tensor->name, next, elements);
}

/* Rows that are there twice show when they are sorted. */
static enum weft_status
check_table(const struct wf_block_walk *walk, const struct wf_blocks *blocks, uint32_t idx)
{
	const struct wf_manifest_table *named = &walk->manifest->table[idx];
	const struct wf_blocks_table *table = &blocks->table[idx];
	const size_t due = table->about.counter_count > 0 ? WF_PARTITION_COUNT : 0;
	size_t count = 0;
	size_t good = 0;
	const struct wf_blocks_entry *entry = wf_blocks_of(blocks, WF_PART_COUNTERS, idx, &count);

	while (good < count && entry[good].place.block.first == good) {
		good++;
	}
	const bool is_delta = walk->manifest->parts.base_step != 0;
	const bool is_whole = is_delta ? table->rows <= named->rows : table->rows == named->rows;
	if (table->described_in > 0 && is_whole && good == due && count == due) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_DATA,
		       "%s: table %s: the parts have %" PRIu64
		       " rows and counters of %zu partitions, not %" PRIu64 " and %zu%s",
		       walk->path, named->name, table->rows, good, named->rows, due,
		       table->described_in > 0 ? "" : ", and do not describe it");
}

static enum weft_status
check_all(const struct wf_block_walk *walk, const struct wf_blocks *blocks)
{
	enum weft_status st = WEFT_OK;

	for (uint32_t i = 0; st == WEFT_OK && i < walk->manifest->tensor_count; i++) {
		st = check_tensor(walk, blocks, i);
	}
	for (uint32_t i = 0; st == WEFT_OK && i < walk->manifest->table_count; i++) {
		st = check_table(walk, blocks, i);
	}
	return st;
}

static enum weft_status
list_all(struct listing *listing)
{
	struct wf_blocks *blocks = listing->blocks;

	enum weft_status st =
		wf_block_walk_service(listing->walk, WF_SERVICE_DENSE, list_dense, listing);
	if (st == WEFT_OK) {
		st = wf_block_walk_service(listing->walk, WF_SERVICE_SPARSE, list_sparse, listing);
	}
	if (st == WEFT_OK && blocks->count > 0) {
		qsort(blocks->entry, blocks->count, sizeof(*blocks->entry), compare_entries);
	}
	return st == WEFT_OK ? check_all(listing->walk, blocks) : st;
}

enum weft_status
wf_blocks_read(const struct wf_block_walk *walk, struct wf_blocks *out)
{
	struct wf_blocks blocks = {.table_count = walk->manifest->table_count};
	struct listing *listing = wf_zalloc(walk->env, sizeof(*listing));
	enum weft_status st = WEFT_OK;

	blocks.table = wf_zalloc_array(walk->env, blocks.table_count + 1u, sizeof(*blocks.table));
	if (listing == NULL || blocks.table == NULL) {
		st = wf_fail(WEFT_NOMEM, "%s: list of its blocks", walk->path);
	} else {
		listing->walk = walk;
		listing->blocks = &blocks;
		st = list_all(listing);
	}
	wf_free(walk->env, listing, sizeof(*listing));
	if (st != WEFT_OK) {
		wf_blocks_fini(walk->env, &blocks);
		return st;
	}
	*out = blocks;
	return WEFT_OK;
}

void
wf_blocks_fini(struct wf_env *env, struct wf_blocks *blocks)
{
	wf_free(env, blocks->entry, blocks->room * sizeof(*blocks->entry));
	wf_free(env, blocks->table, (blocks->table_count + 1u) * sizeof(*blocks->table));
	*blocks = (struct wf_blocks){0};
}

/* ---- a tensor ---- */

struct copying {
	const struct wf_tensor_target *to;
	unsigned array, array_count;
};

/* One array after the other, of which one is wanted. */
static enum weft_status
copy_slice(void *arg, struct wf_part_reader *reader, const struct wf_block_walk_block *place)
{
	const struct copying *copying = arg;
	const uint64_t count = place->block.count;
	uint8_t chunk[WF_TENSOR_CHUNK_COUNT * VALUE_BYTES];
	enum weft_status st = WEFT_OK;

	for (unsigned array = 0; array < copying->array_count; array++) {
		for (uint64_t done = 0; st == WEFT_OK && done < count;) {
			const uint64_t left = count - done;
			const size_t piece =
				left < WF_TENSOR_CHUNK_COUNT ? (size_t)left : WF_TENSOR_CHUNK_COUNT;
			st = wf_part_read(reader, chunk, piece * VALUE_BYTES);
			if (st == WEFT_OK && array == copying->array) {
				st = wf_tensor_store(chunk, piece, place->block.first + done,
						     copying->to);
			}
			done += piece;
		}
	}
	return st;
}

enum weft_status
wf_blocks_read_tensor(const struct wf_block_walk *walk, const struct wf_blocks *blocks,
		      uint32_t idx, unsigned array, const struct wf_tensor_target *to)
{
	struct copying copying = {
		.to = to,
		.array = array,
		.array_count = 1 + walk->manifest->tensor[idx].state_count,
	};
	struct wf_block_walk_cursor cursor = {0};
	enum weft_status st = WEFT_OK;
	size_t count = 0;
	const struct wf_blocks_entry *entry = wf_blocks_of(blocks, WF_PART_SLICE, idx, &count);

	WF_ASSERT(array < copying.array_count);
	for (size_t i = 0; st == WEFT_OK && i < count; i++) {
		st = wf_block_walk_again(walk, &cursor, &entry[i].place, copy_slice, &copying);
	}
	wf_block_walk_close(&cursor);
	return st;
}
