/* SPDX-License-Identifier: Apache-2.0 */
/* service_load: the tables of a lane out of the parts of a snapshot, whatever the number of lanes
 * that wrote them: each lane reads all sparse parts, and keeps the rows and counters of its own
 * partitions. A snapshot that has only changes comes after those on which it builds: first the rows
 * that are gone go, then those that changed are put over those that were there.
 * Memory does not depend on the files, but for the rows themselves. Thread: the lane's. */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "saved/names.h"
#include "saved/snapshot.h"
#include "sparse/server/service_internal.h"
#include "wire/little.h"
#include "wire/partition.h"

/* A table of the job, by its number in the manifest. */
struct target {
	uint32_t idx;                              /* in the job */
	struct wf_part_table shape;                /* of the job's */
	bool is_described;                         /* in the part that is being read */
	uint64_t rows;                             /* in all parts so far, of any lane */
	uint64_t counted[WF_PARTITION_COUNT / 64]; /* partitions whose counters were there */
	uint32_t counted_count;                    /* of them, those of any lane */
};

struct loading {
	struct wf_lane *lane;
	const struct wf_snapshot *from; /* the link that is being read */
	uint32_t base;                  /* the border on which it builds; 0: it is complete */
	uint32_t border;                /* its own */
	bool is_for_gone;               /* only what is gone is read */
	struct target *target;          /* [desc_count] */
	uint8_t *bytes;                 /* [room] a record, or the counters of a partition */
	size_t room;
};

static const char *
name_of(const struct loading *loading, const struct target *target)
{
	return wf_sparse_of(loading->lane)->desc[target->idx].name;
}

/* ---- the manifest ---- */

static enum weft_status
check_table(const struct loading *loading, const struct target *target,
	    const struct wf_manifest_table *saved)
{
	const struct wf_sparse *sparse = loading->lane->own;
	const char *optimizer = wf_row_optimizer_name(sparse->served[target->idx].row.kind);
	const uint32_t dim = sparse->desc[target->idx].set.dim;
	char name[WF_SAVED_NAME_BYTES];
	enum weft_status st = wf_saved_name_settle(name_of(loading, target), name);
	if (st != WEFT_OK) {
		return st;
	}
	if (strcmp(saved->name, name) != 0) {
		return wf_fail(WEFT_MISMATCH, "table %.60s is not in the snapshot, which has %.60s",
			       name, saved->name);
	}
	if (saved->dim != dim || strcmp(saved->optimizer, optimizer) != 0) {
		return wf_fail(WEFT_MISMATCH,
			       "table %.60s has %u values and the optimizer %s, in the snapshot %u "
			       "and %.31s",
			       name, dim, optimizer, saved->dim, saved->optimizer);
	}
	return WEFT_OK;
}

static enum weft_status
check_tables(const struct loading *loading)
{
	const struct wf_sparse *sparse = loading->lane->own;
	const struct wf_manifest *manifest = wf_snapshot_manifest(loading->from);
	enum weft_status st = WEFT_OK;
	if (manifest->table_count != sparse->desc_count) {
		return wf_fail(WEFT_MISMATCH, "the job has %u tables, the snapshot %u",
			       sparse->desc_count, manifest->table_count);
	}
	for (uint32_t i = 0; i < sparse->desc_count && st == WEFT_OK; i++) {
		st = check_table(loading, &loading->target[i], &manifest->table[i]);
	}
	return st;
}

/* ---- blocks ---- */

/* The block that describes a table, before all others of it in the part. */
static enum weft_status
load_shape(const struct loading *loading, struct target *target, struct wf_part_reader *reader,
	   const struct wf_part_block *block)
{
	const struct wf_part_table *want = &target->shape;
	uint8_t payload[WF_PART_TABLE_BYTES];
	struct wf_part_table is;
	if (block->bytes != sizeof(payload) || target->is_described) {
		return wf_fail(WEFT_DATA,
			       "table %.60s is described in %" PRIu64 " bytes, not %zu%s",
			       name_of(loading, target), block->bytes, sizeof(payload),
			       target->is_described ? ", or twice" : "");
	}
	enum weft_status st = wf_part_read(reader, payload, sizeof(payload));
	st = st == WEFT_OK ? wf_part_table_get(payload, &is) : st;
	if (st != WEFT_OK) {
		return st;
	}
	target->is_described = true;
	bool is_same = is.vocabulary == want->vocabulary && is.row.dim == want->row.dim &&
		       is.row.state_floats == want->row.state_floats &&
		       is.row.has_score == want->row.has_score &&
		       is.counter_count == want->counter_count && is.rest == want->rest;
	return is_same ? WEFT_OK
		       : wf_fail(WEFT_MISMATCH,
				 "table %.60s has vocabulary %" PRIu64
				 ", %u values at rest in format %u, %u floats of state, scores %d "
				 "and %u counters in a partition; in the snapshot %" PRIu64
				 ", %u, %u, %u, %d and %u",
				 name_of(loading, target), want->vocabulary, want->row.dim,
				 want->rest, want->row.state_floats, want->row.has_score,
				 want->counter_count, is.vocabulary, is.row.dim, is.rest,
				 is.row.state_floats, is.row.has_score, is.counter_count);
}

static bool
has_partition(const struct wf_served *served, uint32_t partition)
{
	return served->table != NULL &&
	       partition - served->partition_first < served->partition_count;
}

static enum weft_status
load_counters(const struct loading *loading, struct target *target, struct wf_part_reader *reader,
	      const struct wf_part_block *block)
{
	const struct wf_served *served = &wf_sparse_of(loading->lane)->served[target->idx];
	const uint32_t count = target->shape.counter_count;
	if (count == 0 || block->count != count || block->bytes != 2ull * count ||
	    block->first >= WF_PARTITION_COUNT) {
		return wf_fail(WEFT_DATA,
			       "table %.60s: %" PRIu64 " counters of partition %" PRIu64
			       " in %" PRIu64 " bytes, but there are %u",
			       name_of(loading, target), block->count, block->first, block->bytes,
			       count);
	}
	const uint32_t partition = (uint32_t)block->first;
	const uint64_t bit = (uint64_t)1 << partition % 64;
	if ((target->counted[partition / 64] & bit) != 0) {
		return wf_fail(WEFT_DATA, "table %.60s: the counters of partition %u stand twice",
			       name_of(loading, target), partition);
	}
	target->counted[partition / 64] |= bit;
	target->counted_count++;
	if (!has_partition(served, partition)) {
		return wf_part_skip(reader);
	}
	enum weft_status st = wf_part_read(reader, loading->bytes, 2ull * count);
	uint16_t *counter = (uint16_t *)(void *)loading->bytes;
	for (uint32_t i = 0; i < count && st == WEFT_OK; i++) {
		counter[i] = wf_load_u16(loading->bytes + 2 * (size_t)i);
	}
	return st == WEFT_OK ? wf_table_set_counters(served->table, partition, counter, count) : st;
}

static enum weft_status
load_row(const struct loading *loading, const struct target *target)
{
	struct wf_sparse *sparse = loading->lane->own;
	const struct wf_served *served = &sparse->served[target->idx];
	struct wf_row_record row;
	wf_row_record_get(&target->shape.row, loading->bytes, sparse->save.floats, &row);
	const uint64_t vocabulary = target->shape.vocabulary;
	if (vocabulary > 0 && row.key >= vocabulary) {
		return wf_fail(WEFT_DATA,
			       "table %.60s: key %" PRIu64 " is outside its vocabulary of %" PRIu64,
			       name_of(loading, target), row.key, vocabulary);
	}
	if (row.stamp > loading->border || row.born > loading->border) {
		return wf_fail(WEFT_DATA,
			       "table %.60s: the row of key %" PRIu64
			       " is of step %u, later than its snapshot",
			       name_of(loading, target), row.key,
			       row.stamp > row.born ? row.stamp : row.born);
	}
	uint32_t partition =
		vocabulary > 0 ? wf_partition_of_fixed(row.key) : wf_partition_of(row.key);
	if (!has_partition(served, partition)) {
		return WEFT_OK;
	}
	return loading->base == 0 ? wf_table_put_record(served->table, &row)
				  : wf_table_put_later_record(served->table, &row, loading->base);
}

/* Keys of rows that are gone since the snapshot on which this one builds. */
static enum weft_status
load_gone(const struct loading *loading, const struct target *target, struct wf_part_reader *reader,
	  const struct wf_part_block *block)
{
	const struct wf_served *served = &wf_sparse_of(loading->lane)->served[target->idx];
	enum weft_status st = WEFT_OK;
	if (loading->base == 0 || target->shape.vocabulary > 0 ||
	    block->count != block->bytes / sizeof(uint64_t) ||
	    block->bytes % sizeof(uint64_t) != 0) {
		return wf_fail(WEFT_DATA,
			       "table %.60s: %" PRIu64 " keys of rows that are gone in %" PRIu64
			       " bytes, which it cannot have",
			       name_of(loading, target), block->count, block->bytes);
	}
	for (uint64_t i = 0; i < block->count && st == WEFT_OK; i++) {
		uint8_t bytes[sizeof(uint64_t)];
		st = wf_part_read(reader, bytes, sizeof(bytes));
		const uint64_t key = wf_load_u64(bytes);
		if (st == WEFT_OK && has_partition(served, wf_partition_of(key))) {
			st = wf_table_drop(served->table, key);
		}
	}
	return st;
}

static enum weft_status
load_rows(const struct loading *loading, struct target *target, struct wf_part_reader *reader,
	  const struct wf_part_block *block)
{
	const struct wf_sparse *sparse = loading->lane->own;
	const uint64_t refused = sparse->ceiling.refused_count;
	const size_t record = wf_row_record_bytes(&target->shape.row);
	enum weft_status st = WEFT_OK;
	if (block->count != block->bytes / record || block->bytes % record != 0) {
		return wf_fail(WEFT_DATA,
			       "table %.60s: %" PRIu64 " rows of %zu bytes in %" PRIu64 " bytes",
			       name_of(loading, target), block->count, record, block->bytes);
	}
	for (uint64_t i = 0; i < block->count && st == WEFT_OK; i++) {
		st = wf_part_read(reader, loading->bytes, record);
		st = st == WEFT_OK ? load_row(loading, target) : st;
	}
	target->rows += block->count;
	return st == WEFT_OK ? st : wf_sparse_fail_table(sparse, target->idx, refused);
}

static enum weft_status
load_block(const struct loading *loading, struct wf_part_reader *reader,
	   const struct wf_part_block *block)
{
	const struct wf_sparse *sparse = loading->lane->own;
	if (block->item >= sparse->desc_count) {
		return wf_fail(WEFT_DATA, "a block is of table %u of %u", block->item,
			       sparse->desc_count);
	}
	struct target *target = &loading->target[block->item];
	if (block->kind == WF_PART_LANE) {
		return load_shape(loading, target, reader, block);
	}
	if (!target->is_described) {
		return wf_fail(WEFT_DATA, "table %.60s: a block comes before its description",
			       name_of(loading, target));
	}
	if ((block->kind == WF_PART_GONE) != loading->is_for_gone) {
		return wf_part_skip(reader);
	}
	if (block->kind == WF_PART_GONE) {
		return load_gone(loading, target, reader, block);
	}
	if (block->kind == WF_PART_COUNTERS) {
		return load_counters(loading, target, reader, block);
	}
	return block->kind == WF_PART_ROWS
		       ? load_rows(loading, target, reader, block)
		       : wf_fail(WEFT_DATA, "a block is of kind %u, which a sparse part has not",
				 block->kind);
}

static enum weft_status
load_part(const struct loading *loading, struct wf_part_reader *reader)
{
	const struct wf_sparse *sparse = loading->lane->own;
	struct wf_part_block block;
	for (uint32_t i = 0; i < sparse->desc_count; i++) {
		loading->target[i].is_described = false;
	}
	enum weft_status st = wf_part_next(reader, &block);
	while (st == WEFT_OK) {
		st = load_block(loading, reader, &block);
		st = st == WEFT_OK ? wf_part_next(reader, &block) : st;
	}
	return st == WEFT_CLOSED ? WEFT_OK : st;
}

/* ---- all of it ---- */

/* The parts have as many rows as the manifest says, and all counters. A row that is there twice has
 * been refused. The manifest of a delta counts rows that it does not have, too. */
static enum weft_status
check_loaded(const struct loading *loading)
{
	const struct wf_sparse *sparse = loading->lane->own;
	const struct wf_manifest *manifest = wf_snapshot_manifest(loading->from);
	for (uint32_t i = 0; i < sparse->desc_count; i++) {
		const struct target *target = &loading->target[i];
		const uint32_t due = target->shape.counter_count > 0 ? WF_PARTITION_COUNT : 0;
		const uint64_t rows = manifest->table[i].rows;
		bool is_whole = loading->base == 0 ? target->rows == rows : target->rows <= rows;
		if (!is_whole || target->counted_count != due) {
			return wf_fail(WEFT_DATA,
				       "table %.60s: the parts have %" PRIu64
				       " rows and counters of %u partitions, not %" PRIu64
				       " and %u",
				       name_of(loading, target), target->rows,
				       target->counted_count, rows, due);
		}
	}
	return WEFT_OK;
}

static enum weft_status
set_steps(struct wf_sparse *sparse, uint64_t step)
{
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < sparse->desc_count && st == WEFT_OK; i++) {
		struct wf_table *table = sparse->served[i].table;
		st = table == NULL ? WEFT_OK : wf_table_set_step(table, step);
	}
	return st;
}

/* Reads all sparse parts of a link. */
static enum weft_status
load_parts(const struct loading *loading)
{
	const struct wf_manifest *manifest = wf_snapshot_manifest(loading->from);
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < manifest->parts.part_count && st == WEFT_OK; i++) {
		struct wf_part_reader *reader = NULL;
		char path[WF_SAVED_PATH_BYTES];
		st = wf_snapshot_part_path(loading->from, i, path);
		if (st == WEFT_OK) {
			st = wf_part_open(loading->lane->env, wf_saved_posix(), path, &reader);
		}
		if (st == WEFT_OK && wf_part_head(reader)->service == WF_SERVICE_SPARSE) {
			st = load_part(loading, reader);
		}
		wf_part_close(reader);
	}
	return st;
}

/* Forgets what was counted of another link. */
static void
begin_link(struct loading *loading, const struct wf_snapshot *from)
{
	const struct wf_manifest *manifest = wf_snapshot_manifest(from);
	loading->from = from;
	loading->base = (uint32_t)manifest->parts.base_step; /* below the step, which is set */
	loading->border = (uint32_t)manifest->about.step;
	for (uint32_t i = 0; i < wf_sparse_of(loading->lane)->desc_count; i++) {
		struct target *target = &loading->target[i];
		target->rows = 0;
		target->counted_count = 0;
		memset(target->counted, 0, sizeof(target->counted));
	}
}

static enum weft_status
load_link(struct loading *loading, const struct wf_snapshot *from)
{
	enum weft_status st = WEFT_OK;
	begin_link(loading, from);
	if (loading->base != 0) {
		loading->is_for_gone = true;
		st = load_parts(loading);
		loading->is_for_gone = false;
	}
	st = st == WEFT_OK ? load_parts(loading) : st;
	return st == WEFT_OK ? check_loaded(loading) : st;
}

/* The complete snapshot and its deltas, oldest first; the newest is `from`. */
static enum weft_status
load_chain(struct loading *loading, const struct wf_snapshot *from)
{
	struct wf_snapshot *open[WF_SNAPSHOT_CHAIN_MAX];
	struct wf_snapshot_id base;
	uint32_t count = 0;
	const struct wf_snapshot *at = from;
	enum weft_status st = WEFT_OK;
	while (st == WEFT_OK && wf_snapshot_base(at, &base)) {
		st = count < WF_SNAPSHOT_CHAIN_MAX
			     ? wf_snapshot_open_base(at, &open[count])
			     : wf_fail(WEFT_DATA, "more than %u snapshots build on each other",
				       WF_SNAPSHOT_CHAIN_MAX);
		at = st == WEFT_OK ? open[count++] : at;
	}
	for (uint32_t i = count; i > 0; i--) {
		st = st == WEFT_OK ? load_link(loading, open[i - 1]) : st;
		wf_snapshot_close(open[i - 1]);
	}
	return st == WEFT_OK ? load_link(loading, from) : st;
}

static enum weft_status
load_all(struct loading *loading)
{
	const struct wf_snapshot *from = loading->from;
	enum weft_status st = check_tables(loading);
	if (st == WEFT_OK) {
		st = set_steps(wf_sparse_of(loading->lane), wf_snapshot_manifest(from)->about.step);
	}
	return st == WEFT_OK ? load_chain(loading, from) : st;
}

static void
list_targets(struct loading *loading)
{
	const struct wf_sparse *sparse = loading->lane->own;
	loading->room = WF_ROW_RECORD_BYTES_MAX;
	for (uint32_t i = 0; i < sparse->desc_count; i++) {
		struct target *target = &loading->target[sparse->served[i].item];
		target->idx = i;
		target->shape = wf_sparse_shape_of(sparse, i);
		size_t bytes = 2 * (size_t)target->shape.counter_count;
		loading->room = bytes > loading->room ? bytes : loading->room;
	}
}

enum weft_status
wf_sparse_load(struct wf_lane *lane, const struct wf_snapshot *from)
{
	const struct wf_sparse *sparse = lane->own;
	struct loading loading = {
		.lane = lane,
		.from = from,
		.target = wf_zalloc_array(lane->env, sparse->desc_count, sizeof(*loading.target)),
	};
	enum weft_status st = WEFT_OK;
	if (loading.target != NULL) {
		list_targets(&loading);
		loading.bytes = wf_zalloc(lane->env, loading.room);
	}
	st = loading.bytes == NULL
		     ? wf_fail(WEFT_NOMEM, "no memory to load %u tables", sparse->desc_count)
		     : load_all(&loading);
	wf_free(lane->env, loading.bytes, loading.room);
	wf_free(lane->env, loading.target, sparse->desc_count * sizeof(*loading.target));
	return st;
}
