/* SPDX-License-Identifier: Apache-2.0 */
/* service_snapshot: the part of a snapshot that a sparse lane writes. When the step of the border
 * is applied, all rows are of it, and captures of the tables begin (sparse/table/capture.h): a row
 * is copied before it changes, or in the lane's next turns. The first block of each table describes
 * it; blocks of rows and counters follow as they come. Thread: the lane's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "pserver/snapshot.h"
#include "saved/names.h"
#include "sparse/server/service_internal.h"
#include "sparse/table/admit.h"
#include "sparse/table/capture.h"
#include "sparse/table/rules.h"

#define BLOCK_BYTES ((uint64_t)256 << 10) /* of rows */
/* Room for copies where --snapshot_bytes does not set it: tables grow, so nobody knows all. */
#define RING_BYTES ((uint64_t)64 << 20)

/* A table's way to the disk. */
struct way {
	struct wf_capture_sink sink; /* first: claim is called with it */
	struct wf_sparse_snapshot *of;
	struct wf_capture *capture; /* NULL: no partition falls to this lane */
	struct wf_part_table shape;
	uint32_t item;     /* its number in the manifest */
	bool is_described; /* in the part under way */
};

struct wf_sparse_snapshot {
	struct wf_snapshot_lane lane;
	struct way *way;                 /* [table_count] */
	struct wf_manifest_table *about; /* [table_count] by item, lent to lane.all */
	uint64_t *rows;                  /* [table_count] by item, likewise: of the last part */
	uint32_t table_count;
	uint32_t next; /* table that is copied from next */
};

/* ---- the numbers of tables in a manifest ---- */

struct named {
	char name[WF_SAVED_NAME_BYTES];
	uint32_t idx;
};

static int
compare_named(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static enum weft_status
number_tables(struct wf_sparse *sparse, struct named *named)
{
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < sparse->desc_count && st == WEFT_OK; i++) {
		named[i].idx = i;
		st = wf_saved_name_settle(sparse->desc[i].name, named[i].name);
	}
	if (st != WEFT_OK) {
		return st;
	}
	qsort(named, sparse->desc_count, sizeof(*named), compare_named);
	for (uint32_t i = 0; i < sparse->desc_count; i++) {
		sparse->served[named[i].idx].item = i;
		if (i > 0 && strcmp(named[i - 1].name, named[i].name) == 0) {
			return wf_fail(WEFT_INVALID, "table %.60s: another one has the same file",
				       sparse->desc[named[i].idx].name);
		}
	}
	return WEFT_OK;
}

/* ---- what describes a table ---- */

/* Of the description: a lane may own no partition, and so have no table. */
struct wf_part_table
wf_sparse_shape_of(const struct wf_sparse *sparse, uint32_t idx)
{
	const struct wf_table_desc *desc = &sparse->desc[idx];
	const struct wf_admit_opts admit = wf_admit_of(&desc->set);
	const uint32_t dim = desc->set.dim;
	return (struct wf_part_table){
		.row = {.dim = dim,
			.state_floats =
				(uint32_t)wf_row_state_floats(sparse->served[idx].row.kind, dim),
			.has_score = wf_table_has_scores(desc)},
		.vocabulary = desc->set.vocabulary,
		.counter_count = wf_admit_slots(&admit),
		.rest = desc->set.rest,
	};
}

/* ---- captures ---- */

/* The block that describes the table goes before all others of it. */
static bool
describe(struct way *way)
{
	const struct wf_sparse_snapshot *self = way->of;
	const struct wf_part_block block = {
		.kind = WF_PART_LANE, .item = way->item, .bytes = WF_PART_TABLE_BYTES};
	if (way->is_described) {
		return true;
	}
	uint8_t *to = wf_outgoing_claim(self->lane.outgoing, &block);
	if (to == NULL) {
		return false;
	}
	wf_part_table_put(&way->shape, to);
	wf_outgoing_add(self->lane.outgoing);
	way->is_described = true;
	return true;
}

static void *
claim(struct wf_capture_sink *sink, const struct wf_capture_block *block)
{
	struct way *way = (struct way *)sink;
	const struct wf_part_block out = {
		.kind = block->has_counters ? WF_PART_COUNTERS
			: block->has_gone   ? WF_PART_GONE
					    : WF_PART_ROWS,
		.item = way->item,
		.first = block->first,
		.count = block->count,
		.bytes = block->bytes,
	};
	return describe(way) ? wf_outgoing_claim(way->of->lane.outgoing, &out) : NULL;
}

static void
add(struct wf_capture_sink *sink)
{
	wf_outgoing_add(((struct way *)sink)->of->lane.outgoing);
}

/* Nothing is copied any more. */
static void
end_captures(struct wf_sparse_snapshot *self)
{
	for (uint32_t i = 0; i < self->table_count; i++) {
		if (self->way[i].capture != NULL) {
			wf_capture_end(self->way[i].capture);
		}
	}
}

/* ---- the job ---- */

/* Whether snapshots are possible in this job. */
static enum weft_status
check_job(const struct wf_lane *lane)
{
	const struct wf_sparse *sparse = lane->own;
	const char *what = NULL;
	if (wf_sparse_is_async(sparse)) {
		what = "tables are applied as their pushes arrive";
	}
	return what == NULL ? WEFT_OK
			    : wf_fail(WEFT_UNSUPPORTED,
				      "lane %u: --snapshot_dir is not possible with this job: %s",
				      lane->opts.idx, what);
}

static enum weft_status
alloc(struct wf_sparse_snapshot *self, struct wf_lane *lane)
{
	const struct wf_sparse *sparse = lane->own;
	self->table_count = sparse->desc_count;
	self->way = wf_zalloc_array(lane->env, self->table_count, sizeof(*self->way));
	self->about = wf_zalloc_array(lane->env, self->table_count, sizeof(*self->about));
	self->rows = wf_zalloc_array(lane->env, self->table_count, sizeof(*self->rows));
	if (self->way == NULL || self->about == NULL || self->rows == NULL) {
		return wf_fail(WEFT_NOMEM, "lane %u: no memory for snapshots of %u tables",
			       lane->opts.idx, self->table_count);
	}
	return WEFT_OK;
}

static enum weft_status
number(struct wf_lane *lane)
{
	struct wf_sparse *sparse = lane->own;
	struct named *named = wf_zalloc_array(lane->env, sparse->desc_count, sizeof(*named));
	enum weft_status st = named == NULL
				      ? wf_fail(WEFT_NOMEM, "no memory for the names of %u tables",
						sparse->desc_count)
				      : number_tables(sparse, named);
	wf_free(lane->env, named, sparse->desc_count * sizeof(*named));
	return st;
}

static enum weft_status
open_table(struct wf_sparse_snapshot *self, struct wf_lane *lane, uint32_t idx)
{
	const struct wf_sparse *sparse = lane->own;
	const struct wf_served *served = &sparse->served[idx];
	struct way *way = &self->way[idx];
	struct wf_manifest_table *about = &self->about[served->item];
	about->dim = sparse->desc[idx].set.dim;
	(void)snprintf(about->optimizer, sizeof(about->optimizer), "%s",
		       wf_row_optimizer_name(served->row.kind));
	enum weft_status st = wf_saved_name_settle(sparse->desc[idx].name, about->name);
	if (served->table == NULL || st != WEFT_OK) {
		return st;
	}
	*way = (struct way){
		.sink = {.claim = claim, .add = add},
		.of = self,
		.item = served->item,
		.shape = wf_sparse_shape_of(sparse, idx),
	};
	const struct wf_capture_opts opts = {
		.table = served->table,
		.sink = &way->sink,
		.block_bytes = BLOCK_BYTES,
		.has_deltas = wf_snapshots_opts(lane->opts.snapshots)->full > 1,
	};
	const uint64_t refused = sparse->ceiling.refused_count;
	st = wf_capture_create(&opts, &way->capture);
	return st == WEFT_OK ? st : wf_sparse_fail_table(sparse, idx, refused);
}

static enum weft_status
open_lane(struct wf_sparse_snapshot *self, struct wf_lane *lane)
{
	const struct wf_snapshot_tables tables = {
		.table = self->about, .rows = self->rows, .count = self->table_count};
	uint64_t longest = WF_PART_TABLE_BYTES;
	for (uint32_t i = 0; i < self->table_count; i++) {
		const struct wf_capture *capture = self->way[i].capture;
		uint64_t bytes = capture == NULL ? 0 : wf_capture_longest(capture);
		longest = bytes > longest ? bytes : longest;
	}
	const struct wf_snapshot_content content = {
		.longest = longest, .all_bytes = RING_BYTES, .tables = &tables};
	return wf_snapshot_lane_open(lane, &content, &self->lane);
}

enum weft_status
wf_sparse_snapshot_open(struct wf_lane *lane)
{
	struct wf_sparse *sparse = lane->own;
	struct wf_sparse_snapshot *self = wf_zalloc(lane->env, sizeof(*self));
	sparse->snapshot = self;
	if (self == NULL) {
		return wf_fail(WEFT_NOMEM, "lane %u: no memory for snapshots", lane->opts.idx);
	}
	enum weft_status st = check_job(lane);
	st = st == WEFT_OK ? alloc(self, lane) : st;
	st = st == WEFT_OK ? number(lane) : st;
	for (uint32_t i = 0; i < self->table_count && st == WEFT_OK; i++) {
		st = open_table(self, lane, i);
	}
	return st == WEFT_OK ? open_lane(self, lane) : st;
}

void
wf_sparse_snapshot_close(struct wf_lane *lane)
{
	struct wf_sparse *sparse = lane->own;
	struct wf_sparse_snapshot *self = sparse->snapshot;
	if (self == NULL) {
		return;
	}
	wf_snapshot_lane_close(&self->lane);
	for (uint32_t i = 0; self->way != NULL && i < self->table_count; i++) {
		wf_capture_destroy(self->way[i].capture);
	}
	wf_free(lane->env, self->way, self->table_count * sizeof(*self->way));
	wf_free(lane->env, self->about, self->table_count * sizeof(*self->about));
	wf_free(lane->env, self->rows, self->table_count * sizeof(*self->rows));
	wf_free(lane->env, self, sizeof(*self));
	sparse->snapshot = NULL;
}

/* ---- steps ---- */

static enum weft_status
begin_captures(struct wf_sparse_snapshot *self)
{
	const uint64_t base = wf_snapshots_delta(self->lane.all);
	enum weft_status st = WEFT_OK;
	self->next = 0;
	for (uint32_t i = 0; i < self->table_count && st == WEFT_OK; i++) {
		struct way *way = &self->way[i];
		way->is_described = false;
		st = way->capture == NULL ? WEFT_OK : wf_capture_begin(way->capture, base);
	}
	return st;
}

/* The recorded failure is the reason. */
static void
give_up(struct wf_sparse_snapshot *self)
{
	end_captures(self);
	wf_outgoing_give_up(self->lane.outgoing);
	self->lane.is_copying = false;
}

void
wf_sparse_snapshot_applied(struct wf_lane *lane, uint64_t step)
{
	struct wf_sparse_snapshot *self = wf_sparse_of(lane)->snapshot;
	if (!wf_snapshot_lane_applied(&self->lane, lane, step)) {
		return;
	}
	if (begin_captures(self) != WEFT_OK) {
		give_up(self);
	}
}

/* A capture goes on until all of its table is copied, or the snapshot has failed. */
static bool
is_on(const struct wf_sparse_snapshot *self, uint32_t idx)
{
	const struct wf_capture *capture = self->way[idx].capture;
	return capture != NULL && wf_capture_is_on(capture);
}

bool
wf_sparse_snapshot_may_apply(struct wf_lane *lane, uint64_t step)
{
	const struct wf_sparse *sparse = lane->own;
	struct wf_sparse_snapshot *self = sparse->snapshot;
	if (!self->lane.is_copying) {
		end_captures(self);
		return true;
	}
	for (uint32_t i = 0; i < self->table_count; i++) {
		const struct wf_table_push push = {
			.step = step,
			.batch = sparse->served[i].batch,
			.batch_count = sparse->deal.next[i],
		};
		if (is_on(self, i) && !wf_capture_copy_before(self->way[i].capture, &push)) {
			wf_snapshot_lane_hold(&self->lane, lane);
			return false;
		}
	}
	return true;
}

/* Copies some of what has not changed. True: more can be copied at once. */
static bool
copy_some(struct wf_sparse_snapshot *self)
{
	for (; self->next < self->table_count; self->next++) {
		struct way *way = &self->way[self->next];
		if (!is_on(self, self->next)) {
			continue;
		}
		if (!describe(way)) {
			return false;
		}
		enum wf_capture_news news =
			wf_capture_copy_some(way->capture, WF_SNAPSHOT_PIECE_BYTES);
		if (news == WF_CAPTURE_SHORT) {
			(void)wf_fail(WEFT_NOMEM, "a row is gone, and no memory lists it");
			give_up(self);
			return false;
		}
		if (news != WF_CAPTURE_DONE) {
			return news == WF_CAPTURE_MORE;
		}
		self->rows[way->item] = wf_capture_rows(way->capture);
	}
	wf_snapshot_lane_copied(&self->lane);
	return false;
}

void
wf_sparse_snapshot_tick(struct wf_lane *lane, uint64_t now_ns, void (*retry)(struct wf_lane *lane))
{
	struct wf_sparse_snapshot *self = wf_sparse_of(lane)->snapshot;
	if (self == NULL) {
		return;
	}
	if (self->lane.is_copying && copy_some(self)) {
		wf_turn_tick_before(&lane->turn, 0);
	}
	wf_snapshot_lane_tick(&self->lane, lane, now_ns, retry);
	if (!self->lane.is_copying) {
		end_captures(self); /* of a snapshot that has failed */
	}
}
