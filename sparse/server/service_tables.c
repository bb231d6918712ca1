/* SPDX-License-Identifier: Apache-2.0 */
/* service_tables: the tables of a job as its first trainer describes them, and all memory of the
 * job on this lane, which is allocated and freed here. Thread: the lane's. */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "sparse/server/service_internal.h"
#include "sparse/table/rules.h"
#include "wire/partition.h"

#define SLOT_BYTES_MAX (256ull << 10) /* a window that is reused stays in cache */
#define HELD_BYTES_MAX (64ull << 20)  /* of one trainer, in each of its two uses */
#define HELD_SHARE 8u            /* all trainers may use 1 / HELD_SHARE of max_shard_bytes for it */
#define ENTRY_BYTES 40u          /* of a table's scratch for each row of a push, rounded up */
#define PUSH_ROWS_MAX (1u << 18) /* of a table and trainer in a step: scratch is allocated for it */
#define SCRATCH_SHARE 8u         /* 1 / SCRATCH_SHARE of a table's cap, and of the ceiling */
#define SLOT_ALIGN 64u           /* gradients and answers are read where they lie */

/* The job's description. */

static struct wf_table_opts
table_opts(const struct wf_lane *lane, uint32_t idx)
{
	const struct wf_sparse *sparse = lane->own;
	const struct wf_table_desc *desc = &sparse->desc[idx];
	const struct weft_table_opts *set = &desc->set;
	const struct wf_served *served = &sparse->served[idx];
	return (struct wf_table_opts){
		.dim = set->dim,
		.vocabulary = set->vocabulary,
		.partition_first = served->partition_first,
		.partition_count = served->partition_count,
		.entries_max = served->rows_max * lane->peers.count,
		.memory_cap_bytes = set->memory_cap_bytes,
		.value_rest = set->rest,
		.index_seed = wf_random(lane->env),
		.node = (unsigned)(lane->opts.numa_node + 1),
		.row = served->row,
		.init = {.kind = (enum wf_init_kind)desc->init,
			 .a = set->init_a,
			 .b = set->init_b,
			 .seed = set->init_seed,
			 .table = idx},
		.admit = wf_admit_of(set),
		.evict = wf_evict_of(set),
	};
}

/* The most rows of one trainer's push: they fit held_bytes, and their scratch leaves the table, and
 * all tables together, room for rows. */
static uint32_t
rows_max(const struct wf_lane *lane, uint32_t idx)
{
	const struct wf_sparse *sparse = lane->own;
	const struct wf_table_desc *desc = &sparse->desc[idx];
	uint64_t trainers = lane->peers.count;
	uint64_t rows = sparse->size.held_bytes / (sparse->served[idx].kept_bytes + WF_KEY_BYTES);
	uint64_t capped = desc->set.memory_cap_bytes / SCRATCH_SHARE / ENTRY_BYTES / trainers;
	uint64_t shared = sparse->ceiling.limit_bytes / SCRATCH_SHARE / ENTRY_BYTES / trainers /
			  sparse->desc_count;
	rows = desc->set.memory_cap_bytes > 0 && capped < rows ? capped : rows;
	rows = shared < rows ? shared : rows;
	rows = rows > PUSH_ROWS_MAX ? PUSH_ROWS_MAX : rows;
	rows = rows > WF_TABLE_ENTRIES_MAX / trainers ? WF_TABLE_ENTRIES_MAX / trainers : rows;
	return rows == 0 ? 1 : (uint32_t)rows;
}

static void
set_row_bytes(struct wf_served *served, const struct wf_table_desc *desc)
{
	served->row_bytes = (uint32_t)wf_table_row_bytes(desc);
	served->front_bytes = (uint32_t)wf_table_front_bytes(desc);
	served->kept_bytes = (uint32_t)wf_table_kept_bytes(desc);
	served->half = desc->set.wire == WEFT_VALUES_F32
			       ? NULL
			       : &wf_kernels_best()->rows->half[desc->set.wire];
}

static enum weft_status
serve_table(struct wf_lane *lane, uint32_t idx)
{
	struct wf_sparse *sparse = lane->own;
	const struct wf_table_desc *desc = &sparse->desc[idx];
	struct wf_served *served = &sparse->served[idx];
	uint32_t lanes = lane->admission.first.pserver_count * lane->admission.first.lane_count;
	uint32_t number =
		lane->admission.first.pserver_idx * lane->opts.lane_count + lane->opts.service_idx;
	served->row = wf_table_row(desc);
	set_row_bytes(served, desc);
	served->tends = desc->set.evict_age_steps > 0 || wf_table_has_scores(desc);
	served->partition_first = wf_partition_first(number, lanes);
	served->partition_count = wf_partition_first(number + 1, lanes) - served->partition_first;
	served->rows_max = rows_max(lane, idx);
	if (served->front_bytes + WF_KEY_BYTES > sparse->size.slot_bytes) {
		return wf_fail(WEFT_INVALID,
			       "table %.60s: a row of %u bytes does not fit a slot of %" PRIu64,
			       desc->name, served->front_bytes, sparse->size.slot_bytes);
	}
	const struct wf_table_opts opts = table_opts(lane, idx);
	uint64_t refused = sparse->ceiling.refused_count;
	/* A lane without partitions has no table, but it names the optimizer in the log. */
	enum weft_status st = served->partition_count == 0 ? wf_row_check(&served->row)
							   : wf_table_create(&sparse->ceiling.env,
									     &opts, &served->table);
	return st == WEFT_OK ? WEFT_OK : wf_sparse_fail_table(sparse, idx, refused);
}

/* Memory. */

static void
set_sizes(struct wf_lane *lane)
{
	struct wf_sparse *sparse = lane->own;
	uint64_t share = lane->opts.max_shard_bytes / HELD_SHARE / lane->peers.count;
	sparse->size.slot_count = lane->opts.slot_count;
	sparse->size.slot_bytes = lane->opts.slot_bytes_max < SLOT_BYTES_MAX
					  ? lane->opts.slot_bytes_max
					  : SLOT_BYTES_MAX;
	sparse->size.slot_bytes -= sparse->size.slot_bytes % SLOT_ALIGN;
	sparse->size.slot_bytes =
		sparse->size.slot_bytes > 0 ? sparse->size.slot_bytes : SLOT_ALIGN;
	sparse->size.held_bytes = share < HELD_BYTES_MAX ? share & ~4095ull : HELD_BYTES_MAX;
	if (sparse->size.held_bytes < sparse->size.slot_bytes) {
		sparse->size.held_bytes = (sparse->size.slot_bytes + 4095) & ~4095ull;
	}
	/* Parts are full, except one of each table. */
	sparse->size.parts_max = (uint32_t)(2 * sparse->size.held_bytes / sparse->size.slot_bytes) +
				 sparse->desc_count;
}

/* Bytes of a trainer's state without its window and its rooms. */
static uint64_t
peer_bytes(const struct wf_sparse *sparse)
{
	const struct wf_sparse_peer *own = NULL;
	return sizeof(struct wf_peer) + sizeof(*own) + WF_PULLS_MAX * sizeof(*own->pulls.pull) +
	       sparse->size.parts_max * (sizeof(*own->push.part) + sizeof(*sparse->deal.batch)) +
	       sparse->desc_count * sizeof(*own->push.rows) +
	       wf_staging_table_bytes(sparse->size.slot_count) +
	       wf_slots_table_bytes(sparse->size.slot_count);
}

/* Checks the memory that does not depend on rows against max_shard_bytes, and leaves the rest to
 * the tables. */
static enum weft_status
check_memory(struct wf_lane *lane)
{
	struct wf_sparse *sparse = lane->own;
	uint64_t windows = 2 * (uint64_t)sparse->size.slot_count * sparse->size.slot_bytes;
	uint64_t each = windows + 2 * sparse->size.held_bytes + peer_bytes(sparse);
	uint64_t most = lane->opts.max_shard_bytes;
	if (each > most / lane->peers.count) {
		return wf_fail(WEFT_NOMEM,
			       "lane %u: receive buffers for %u trainers x %" PRIu64
			       " bytes exceed --max_shard_bytes=%" PRIu64
			       "; raise it, or lower --slot_count",
			       lane->opts.idx, lane->peers.count, each, most);
	}
	wf_ceiling_init(&sparse->ceiling, lane->env, most - each * lane->peers.count);
	return WEFT_OK;
}

static enum weft_status
alloc_slab(struct wf_lane *lane, uint64_t bytes_each, struct wf_slab *out)
{
	return lane->env->ops->slab_open(lane->env, bytes_each * lane->peers.count,
					 lane->opts.numa_node, out);
}

static enum weft_status
alloc_slabs(struct wf_lane *lane)
{
	struct wf_sparse *sparse = lane->own;
	const struct wf_staging_opts opts = {
		.trainer_count = lane->peers.count,
		.each = sparse->size.slot_count,
		.buffer_bytes = sparse->size.slot_bytes,
		.numa_node = lane->opts.numa_node,
	};
	enum weft_status st = wf_path_open(lane, sparse->size.slot_count, sparse->size.slot_bytes);
	if (st == WEFT_OK) {
		st = wf_staging_open(&sparse->answers, lane->env, lane->turn.transport, &opts);
	}
	if (st == WEFT_OK) {
		st = alloc_slab(lane, sparse->size.held_bytes, &sparse->rooms.keep);
	}
	if (st == WEFT_OK) {
		st = alloc_slab(lane, sparse->size.held_bytes, &sparse->rooms.keys);
	}
	return st;
}

static enum weft_status
alloc_peer_memory(struct wf_lane *lane, uint32_t idx)
{
	struct wf_sparse *sparse = lane->own;
	struct wf_sparse_peer *own = &sparse->peer[idx];
	own->pulls.pull = wf_zalloc_array(lane->env, WF_PULLS_MAX, sizeof(*own->pulls.pull));
	own->push.part =
		wf_zalloc_array(lane->env, sparse->size.parts_max, sizeof(*own->push.part));
	own->push.rows = wf_zalloc_array(lane->env, sparse->desc_count, sizeof(*own->push.rows));
	if (own->pulls.pull == NULL || own->push.part == NULL || own->push.rows == NULL) {
		return wf_fail(WEFT_NOMEM, "lane %u: no memory for trainer %u", lane->opts.idx,
			       idx);
	}
	for (uint32_t i = 0; i < WF_PULLS_MAX; i++) {
		own->pulls.order[i] = &own->pulls.pull[i];
	}
	own->push.keep = (uint8_t *)sparse->rooms.keep.base + idx * sparse->size.held_bytes;
	uint8_t *keys = (uint8_t *)sparse->rooms.keys.base + idx * sparse->size.held_bytes;
	own->pulls.cells.cell = (struct wf_key_cell *)(void *)keys;
	own->pulls.cells.count = (uint32_t)(sparse->size.held_bytes / sizeof(struct wf_key_cell));
	own->pulls.cells.free_first = WF_CELL_NONE;
	own->pulls.cells.free_count = own->pulls.cells.count;
	return WEFT_OK;
}

static enum weft_status
alloc_memory(struct wf_lane *lane)
{
	struct wf_sparse *sparse = lane->own;
	wf_peers_begin_all(lane);
	sparse->peer = lane->peers.own;
	sparse->deal.batch =
		wf_zalloc_array(lane->env, (size_t)lane->peers.count * sparse->size.parts_max,
				sizeof(*sparse->deal.batch));
	sparse->deal.next =
		wf_zalloc_array(lane->env, sparse->desc_count, sizeof(*sparse->deal.next));
	sparse->key_scratch = wf_zalloc_array(lane->env, sparse->size.slot_bytes / WF_KEY_BYTES,
					      sizeof(*sparse->key_scratch));
	sparse->corrections.pushed = wf_zalloc(lane->env, WF_PUSHED_BITS / 8);
	if (sparse->deal.batch == NULL || sparse->deal.next == NULL ||
	    sparse->key_scratch == NULL || sparse->corrections.pushed == NULL) {
		return wf_fail(WEFT_NOMEM, "lane %u: no memory for parts of %u trainers",
			       lane->opts.idx, lane->peers.count);
	}
	enum weft_status st = alloc_slabs(lane);
	for (uint32_t i = 0; i < lane->peers.count && st == WEFT_OK; i++) {
		st = alloc_peer_memory(lane, i);
	}
	return st;
}

/* All descriptions are here: checks them against the HELLO, then allocates the memory they need. */
static enum weft_status
accept_tables(struct wf_lane *lane)
{
	struct wf_sparse *sparse = lane->own;
	const struct wf_hello *first = &lane->admission.first;
	sparse->tables.table_count = sparse->desc_count;
	sparse->tables.table = sparse->desc;
	enum weft_status st = wf_tables_check(&sparse->tables);
	if (st != WEFT_OK) {
		return st;
	}
	if (wf_tables_digest(&sparse->tables) != first->tensors_digest ||
	    lane->job.received_bytes != first->job_bytes) {
		return wf_fail(WEFT_MISMATCH, "tables and HELLO of trainer %u differ",
			       first->trainer_id);
	}
	set_sizes(lane);
	st = check_memory(lane);
	if (st == WEFT_OK) {
		st = alloc_memory(lane);
	}
	for (uint32_t i = 0; i < sparse->desc_count && st == WEFT_OK; i++) {
		st = serve_table(lane, i);
	}
	lane->job.has_steps = true;
	lane->job.unit_count = 1;
	lane->job.place_count = 1;
	lane->windows.held_bytes = sparse->size.held_bytes;
	lane->job.needs_all = !wf_sparse_is_async(sparse);
	lane->order.own_steps = wf_sparse_is_async(sparse);
	sparse->async.terms = wf_order_add_terms(&lane->order, sparse->tables.discard_ratio,
						 sparse->tables.mode == WEFT_SPARSE_BOUNDED,
						 sparse->tables.staleness);
	return st == WEFT_OK && lane->opts.snapshots != NULL ? wf_sparse_snapshot_open(lane) : st;
}

static void
describe_job(const struct wf_lane *lane)
{
	const struct wf_sparse *sparse = lane->own;
	for (uint32_t i = 0; i < sparse->desc_count; i++) {
		const struct wf_table_desc *desc = &sparse->desc[i];
		const struct wf_served *served = &sparse->served[i];
		wf_log(lane->env, WF_LOG_INFO,
		       "lane %u: table %s: dim %u, %u of %u partitions from %u on, optimizer %s, "
		       "trainers %u, rows_max %u for each in a step",
		       lane->opts.idx, desc->name, desc->set.dim, served->partition_count,
		       WF_PARTITION_COUNT, served->partition_first,
		       wf_row_optimizer_name(served->row.kind), lane->peers.count,
		       served->rows_max);
	}
}

enum weft_status
wf_sparse_begin(struct wf_lane *lane, const struct wf_msg_init *init)
{
	struct wf_sparse *sparse = lane->own;
	if (init != NULL) {
		wf_order_begin(&lane->order, init->step, init->samples);
		sparse->version = init->step;
		sparse->save.version = WF_STEP_NONE; /* rows that no scan has listed */
	}
	describe_job(lane);
	return WEFT_OK;
}

static enum weft_status
begin_tables(struct wf_lane *lane, const struct wf_sparse_table *msg)
{
	struct wf_sparse *sparse = lane->own;
	if (sparse->desc_count != msg->table_count) {
		wf_free(lane->env, sparse->desc, sparse->desc_count * sizeof(*sparse->desc));
		wf_free(lane->env, sparse->served, sparse->desc_count * sizeof(*sparse->served));
		sparse->desc_count = msg->table_count;
		sparse->desc = wf_zalloc_array(lane->env, msg->table_count, sizeof(*sparse->desc));
		sparse->served =
			wf_zalloc_array(lane->env, msg->table_count, sizeof(*sparse->served));
	}
	sparse->desc_received = 0;
	sparse->tables.grad_reduce = (enum weft_grad_reduce)msg->grad_reduce;
	sparse->tables.skips_nonfinite = msg->nonfinite != 0;
	sparse->tables.mode = msg->mode;
	sparse->tables.staleness = msg->staleness;
	sparse->tables.discard_ratio = msg->discard_ratio;
	if (sparse->desc == NULL || sparse->served == NULL) {
		return wf_fail(WEFT_NOMEM, "lane %u: no memory for %u tables", lane->opts.idx,
			       msg->table_count);
	}
	return WEFT_OK;
}

enum weft_status
wf_sparse_on_table(struct wf_lane *lane, struct wf_peer *peer, const struct wf_head *head,
		   const struct wf_sparse_table *msg)
{
	struct wf_sparse *sparse = lane->own;
	bool first = lane->job.received_bytes == 0;
	uint32_t next = first ? 0 : sparse->desc_received;
	if (!peer->loading.is_due || msg->idx != next ||
	    head->body_bytes > lane->admission.first.job_bytes - lane->job.received_bytes) {
		return wf_fail(WEFT_PROTOCOL, "TABLE: number %u of %u was not requested", msg->idx,
			       msg->table_count);
	}
	enum weft_status st = first ? begin_tables(lane, msg) : WEFT_OK;
	if (st != WEFT_OK) {
		wf_admit_job_is_here(lane, peer, st);
		return WEFT_OK;
	}
	if (msg->table_count != sparse->desc_count ||
	    msg->grad_reduce != (uint8_t)sparse->tables.grad_reduce ||
	    (msg->nonfinite != 0) != sparse->tables.skips_nonfinite ||
	    msg->mode != sparse->tables.mode || msg->staleness != sparse->tables.staleness ||
	    msg->discard_ratio != sparse->tables.discard_ratio) {
		return wf_fail(WEFT_PROTOCOL,
			       "TABLE: number %u names other settings of the job than number 0",
			       msg->idx);
	}
	sparse->desc[sparse->desc_received++] = msg->table;
	lane->job.received_bytes += head->body_bytes;
	if (sparse->desc_received < sparse->desc_count) {
		return WEFT_OK;
	}
	wf_admit_job_is_here(lane, peer, accept_tables(lane));
	return WEFT_OK;
}

static void
release_peers(struct wf_lane *lane)
{
	struct wf_sparse *sparse = lane->own;
	for (uint32_t i = 0; sparse->peer != NULL && i < lane->peers.count; i++) {
		struct wf_sparse_peer *own = &sparse->peer[i];
		wf_free(lane->env, own->pulls.pull, WF_PULLS_MAX * sizeof(*own->pulls.pull));
		wf_free(lane->env, own->push.part,
			sparse->size.parts_max * sizeof(*own->push.part));
		wf_free(lane->env, own->push.rows, sparse->desc_count * sizeof(*own->push.rows));
	}
}

static void
release_slab(struct wf_lane *lane, struct wf_slab *slab)
{
	if (slab->base != NULL) {
		lane->env->ops->slab_close(lane->env, slab);
	}
}

void
wf_sparse_release(struct wf_lane *lane)
{
	struct wf_sparse *sparse = lane->own;
	wf_staging_close(&sparse->answers, lane->env, lane->turn.transport);
	wf_save_release(sparse);
	wf_sparse_log_gone(lane);
	wf_sparse_snapshot_close(lane);
	for (uint32_t i = 0; sparse->served != NULL && i < sparse->desc_count; i++) {
		wf_table_destroy(sparse->served[i].table);
	}
	release_peers(lane);
	release_slab(lane, &sparse->rooms.keep);
	release_slab(lane, &sparse->rooms.keys);
	wf_free(lane->env, sparse->deal.batch,
		(size_t)lane->peers.count * sparse->size.parts_max * sizeof(*sparse->deal.batch));
	wf_free(lane->env, sparse->deal.next, sparse->desc_count * sizeof(*sparse->deal.next));
	wf_free(lane->env, sparse->corrections.pushed, WF_PUSHED_BITS / 8);
	wf_free(lane->env, sparse->key_scratch,
		sparse->size.slot_bytes / WF_KEY_BYTES * sizeof(*sparse->key_scratch));
	wf_free(lane->env, sparse->desc, sparse->desc_count * sizeof(*sparse->desc));
	wf_free(lane->env, sparse->served, sparse->desc_count * sizeof(*sparse->served));
	*sparse = (struct wf_sparse){0};
}
