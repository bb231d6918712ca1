/* SPDX-License-Identifier: Apache-2.0 */
/* table: settings, making and unmaking, lookups, rows that are put back. Thread: the lane's. */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "kernels/prefetch.h"
#include "sparse/table/rules.h"
#include "sparse/table/table_internal.h"

/* A slab: few enough of them, and of their last huge page little is lost. */
#define SLAB_BYTES ((size_t)8 << 20)
#define SLAB_BYTES_LEAST ((size_t)16 << 10)
#define SLABS_OF_CAP 64u /* a capped table has about this many, or more */
#define AHEAD_BYTES ((uint64_t)32 << 20)

static const char *const stat_names[WF_TABLE_STAT_COUNT] = {
	[WF_TABLE_KEYS_LOOKED_UP] = "table_looked_up_keys",
	[WF_TABLE_KEYS_MISSED] = "table_missed_keys",
	[WF_TABLE_KEYS_PUSHED] = "table_pushed_keys",
	[WF_TABLE_ROWS_UPDATED] = "table_updated_rows",
	[WF_TABLE_ROWS_BORN] = "table_born_rows",
	[WF_TABLE_ROWS_REFUSED] = "table_refused_rows",
	[WF_TABLE_PUSHES_UNADMITTED] = "table_unadmitted_pushes",
	[WF_TABLE_PUSHES_LOST] = "table_lost_pushes",
	[WF_TABLE_GRADS_NONFINITE] = "table_nonfinite_elements",
	[WF_TABLE_EVICTED_BY_AGE] = "table_evicted_by_age_rows",
	[WF_TABLE_EVICTED_BY_SCORE] = "table_evicted_by_score_rows",
	[WF_TABLE_EVICTED_AT_CAP] = "table_evicted_at_cap_rows",
	[WF_TABLE_INDEX_REBUILDS] = "table_index_rebuilds",
	[WF_TABLE_ROWS_LIVE] = "table_live_rows",
	[WF_TABLE_MEMORY_BYTES] = "table_memory_bytes",
	[WF_TABLE_ROW_BYTES] = "table_row_bytes",
	[WF_TABLE_READIED_BYTES] = "table_readied_bytes",
	[WF_TABLE_CLEARED_BYTES] = "table_cleared_bytes",
};

static enum weft_status
check_numbers(const struct wf_table_opts *opts)
{
	uint32_t table = opts->init.table;

	if (opts->dim == 0 || opts->dim > WF_ROW_DIM_MAX) {
		return wf_fail(WEFT_INVALID, "table %" PRIu32 ": dim %" PRIu32 ": give 1 to %u",
			       table, opts->dim, WF_ROW_DIM_MAX);
	}
	if (opts->partition_count == 0 || opts->partition_count > WF_PARTITION_COUNT ||
	    opts->partition_first > WF_PARTITION_COUNT - opts->partition_count) {
		return wf_fail(WEFT_INVALID,
			       "table %" PRIu32 ": %" PRIu32 " partitions from %" PRIu32
			       ": give at least one, within %u",
			       table, opts->partition_count, opts->partition_first,
			       WF_PARTITION_COUNT);
	}
	if (opts->entries_max == 0 || opts->entries_max > WF_TABLE_ENTRIES_MAX) {
		return wf_fail(WEFT_INVALID,
			       "table %" PRIu32 ": entries_max %" PRIu32 ": give 1 to %u", table,
			       opts->entries_max, WF_TABLE_ENTRIES_MAX);
	}
	if (opts->vocabulary >
	    (WF_TABLE_ROWS_MAX / opts->partition_count - 1) * WF_PARTITION_COUNT) {
		return wf_fail(WEFT_INVALID,
			       "table %" PRIu32 ": vocabulary %" PRIu64
			       " gives a lane more than 2^32 rows: use more sparse lanes",
			       table, opts->vocabulary);
	}
	if ((unsigned)opts->value_rest >= WF_VALUE_FORMAT_COUNT) {
		return wf_fail(WEFT_INVALID,
			       "table %" PRIu32 ": value_rest %u: give 0 f32, 1 bf16 or 2 f16",
			       table, (unsigned)opts->value_rest);
	}
	return WEFT_OK;
}

/* Settings of admission and eviction, as users have them. */
static enum weft_status
check_rules(const struct wf_table_opts *opts)
{
	enum weft_status st = wf_table_rules_check(&opts->admit, &opts->evict, opts->vocabulary,
						   opts->memory_cap_bytes);
	if (st != WEFT_OK) {
		const struct wf_error why = *wf_error_record();
		return wf_fail(st, "table %" PRIu32 ": %.400s", opts->init.table, why.text);
	}
	return WEFT_OK;
}

/* Settings that are each in order, and do not go together with the optimizer. */
static enum weft_status
check_together(const struct wf_table_opts *opts)
{
	const struct wf_evict_opts *evict = &opts->evict;
	bool ftrl = opts->row.kind == WF_ROW_FTRL || opts->row.kind == WF_ROW_FTRL_GROUP;

	if (wf_row_motion_varies(&opts->row) &&
	    (evict->age_steps > 0 || evict->score_least > 0.0)) {
		return wf_fail(
			WEFT_UNSUPPORTED,
			"table %" PRIu32 ": eviction by age or score goes by the step of a "
			"row's last update, which a save does not keep where steps missed are "
			"made up for under a schedule: leave out one of them",
			opts->init.table);
	}
	if (wf_row_motion_varies(&opts->row) && evict->at_cap) {
		return wf_fail(
			WEFT_UNSUPPORTED,
			"table %" PRIu32 ": eviction at the cap would leave no room for the steps "
			"to come, each of which is kept where steps missed are made up for under "
			"a schedule: leave out one of them",
			opts->init.table);
	}
	if (opts->row.set.dense_equivalent && ftrl && opts->init.kind != WF_INIT_ZERO) {
		return wf_fail(WEFT_UNSUPPORTED,
			       "table %" PRIu32 ": ftrl has no closed form for first values that "
			       "are not zero: give initialiser zero, or lazy rows",
			       opts->init.table);
	}
	return WEFT_OK;
}

static enum weft_status
check(const struct wf_table_opts *opts)
{
	enum weft_status st = WEFT_OK;

	if ((st = check_numbers(opts)) != WEFT_OK || (st = wf_row_check(&opts->row)) != WEFT_OK ||
	    (st = wf_init_check(&opts->init)) != WEFT_OK || (st = check_rules(opts)) != WEFT_OK) {
		return st;
	}
	return check_together(opts);
}

static size_t
slab_bytes(const struct wf_table_opts *opts)
{
	size_t bytes = SLAB_BYTES;
	if (opts->memory_cap_bytes > 0 && opts->memory_cap_bytes / SLABS_OF_CAP < bytes) {
		bytes = (size_t)(opts->memory_cap_bytes / SLABS_OF_CAP);
	}
	return bytes < SLAB_BYTES_LEAST ? SLAB_BYTES_LEAST : bytes;
}

static bool
alloc_scratch(struct wf_table *t)
{
	t->zero = wf_budget_alloc(&t->budget, t->opts.dim * sizeof(*t->zero));
	t->fresh = wf_budget_alloc(&t->budget, t->rest.wide_floats * sizeof(*t->fresh));
	if (t->motions.varies) {
		t->moved = wf_budget_alloc(&t->budget, t->rest.wide_floats * sizeof(*t->moved));
	}
	return t->zero != NULL && t->fresh != NULL && (t->moved != NULL || !t->motions.varies) &&
	       wf_rest_alloc(&t->rest, &t->budget) &&
	       wf_groups_init(&t->groups, &t->budget, t->opts.entries_max);
}

static void
give_scratch(struct wf_table *t)
{
	wf_budget_give(&t->budget, t->zero, t->opts.dim * sizeof(*t->zero));
	wf_budget_give(&t->budget, t->fresh, t->rest.wide_floats * sizeof(*t->fresh));
	wf_rest_free(&t->rest, &t->budget);
	wf_budget_give(&t->budget, t->moved, t->rest.wide_floats * sizeof(*t->moved));
	wf_groups_fini(&t->groups, &t->budget);
}

static bool
alloc_rows(struct wf_table *t)
{
	const struct wf_table_opts *opts = &t->opts;

	if (!wf_table_is_fixed(t)) {
		struct wf_env *env = opts->ahead_bytes_max == 1 ? NULL : t->env;
		return wf_index_init(&t->index, &t->budget, opts->index_seed, env, opts->node);
	}
	uint64_t ranks = (opts->vocabulary - 1) / WF_PARTITION_COUNT + 1;
	return wf_rows_alloc_all(&t->rows, (uint32_t)(ranks * opts->partition_count));
}

static void
init_rows(struct wf_table *t, size_t value_floats)
{
	const struct wf_table_opts *opts = &t->opts;
	const struct wf_rows_opts rows = {
		.value_floats = value_floats,
		.with_score = t->evict.has_score,
		.slab_bytes = slab_bytes(opts),
		.ahead_bytes_max = opts->ahead_bytes_max == 0 ? AHEAD_BYTES : opts->ahead_bytes_max,
		.helper = opts->ahead_bytes_max == 1 ? NULL : t->env,
		.node = opts->node,
	};

	wf_rows_init(&t->rows, &t->budget, &rows);
}

static void
init_fields(struct wf_table *t, struct wf_env *env, const struct wf_table_opts *opts)
{
	const struct wf_kernels *kernels =
		opts->kernels != NULL ? opts->kernels : wf_kernels_best();

	t->env = env;
	t->opts = *opts;
	wf_rest_init(&t->rest, kernels->rows, &opts->row, opts->dim, opts->value_rest);
	t->uniform = wf_init_uniform(&opts->init);
	t->budget = (struct wf_budget){
		.env = env, .cap_bytes = opts->memory_cap_bytes, .used_bytes = sizeof(*t)};
	if (opts->memory_cap_bytes == 0) {
		t->budget.cap_bytes = UINT64_MAX;
	}
	wf_evict_init(&t->evict, &opts->evict, &t->rows);
	init_rows(t, t->rest.rest_floats + t->rest.wide_floats - opts->dim);
	wf_stats_init(&t->stats, stat_names, WF_TABLE_STAT_COUNT);
	wf_stats_set(&t->stats, WF_TABLE_ROW_BYTES, t->rows.slabs.row_bytes);
}

/* The cap is below what a table needs before its first row: `bytes`, and more. It is refused as a
 * setting. */
static enum weft_status
fail_for_memory(const struct wf_table_opts *opts, uint64_t bytes, bool by_cap)
{
	if (by_cap) {
		return wf_fail(WEFT_INVALID,
			       "table %" PRIu32 ": a memory cap of %" PRIu64
			       " bytes: before its first row it takes more than %" PRIu64
			       ": raise the cap, or make batches smaller",
			       opts->init.table, opts->memory_cap_bytes, bytes);
	}
	return wf_fail(WEFT_NOMEM,
		       "table %" PRIu32 ": no memory beyond %" PRIu64
		       " bytes: make batches or the vocabulary smaller",
		       opts->init.table, bytes);
}

enum weft_status
wf_table_create(struct wf_env *env, const struct wf_table_opts *opts, struct wf_table **out)
{
	enum weft_status st = check(opts);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_table *t = NULL;
	bool fits = opts->memory_cap_bytes == 0 || opts->memory_cap_bytes >= sizeof(*t);
	if (fits) {
		t = wf_zalloc(env, sizeof(*t));
	}
	if (t == NULL) {
		return fail_for_memory(opts, sizeof(*t), !fits);
	}
	init_fields(t, env, opts);
	if (!wf_motions_init(&t->motions, &t->budget, &t->opts.row) || !alloc_scratch(t) ||
	    !wf_admit_init(&t->admit, &t->budget, opts) || !alloc_rows(t)) {
		uint64_t used_bytes = t->budget.used_bytes;
		bool by_cap = t->budget.cap_refused;
		wf_table_destroy(t);
		return fail_for_memory(opts, used_bytes, by_cap);
	}
	wf_table_update_stats(t);
	*out = t;
	return WEFT_OK;
}

void
wf_table_destroy(struct wf_table *t)
{
	if (t == NULL) {
		return;
	}
	WF_ASSERT(t->capture == NULL);
	wf_admit_fini(&t->admit);
	wf_index_fini(&t->index);
	give_scratch(t);
	wf_motions_fini(&t->motions);
	wf_rows_fini(&t->rows);
	WF_ASSERT(t->budget.used_bytes == sizeof(*t));
	wf_free(t->env, t, sizeof(*t));
}

/* Lookups. */

/* The values of a row as of the last step. */
static void
read_row(const struct wf_table *t, struct wf_row_head *head, float *out)
{
	const float *values = wf_row_values(head);

	if (wf_motions_are_still(&t->motions)) {
		wf_rest_gather(&t->rest, out, &values, 1);
		return;
	}
	values = wf_rest_widen(&t->rest, values);
	wf_motions_look(&t->motions, t->step - head->stamp, out, values, t->opts.dim);
}

/* What a row of the key would hold if it were born now. */
static void
read_unborn(struct wf_table *t, uint64_t key, float *out)
{
	wf_table_first_values(t, key, t->fresh);
	wf_rest_round(&t->rest, t->fresh);
	if (wf_motions_are_still(&t->motions)) {
		memcpy(out, t->fresh, t->opts.dim * sizeof(*out));
		return;
	}
	wf_motions_look(&t->motions, t->step, out, t->fresh, t->opts.dim);
}

static void
read_missing(struct wf_table *t, uint64_t key, bool create, float *out)
{
	uint32_t row = wf_table_find(t, key);
	struct wf_row_head *head = NULL;

	if (create && t->capture != NULL) {
		create = wf_capture_may_remove(t->capture, WF_CAPTURE_GONE_OF_KEY);
	}
	if (row != WF_ROW_NONE) {
		head = wf_row_at(&t->rows, row);
		if (!t->evict.can_expire || !wf_table_is_expired(t, head)) {
			read_row(t, head, out); /* born a moment ago: the key stands twice */
			return;
		}
		head = NULL;
		if (create) {
			wf_table_expire(t, row);
		}
	}
	if (!wf_admit_is_open(&t->admit)) {
		memset(out, 0, t->opts.dim * sizeof(*out));
		return;
	}
	if (create) {
		head = wf_table_bear(t, key);
	}
	if (head != NULL) {
		read_row(t, head, out);
	} else {
		read_unborn(t, key, out);
	}
}

/* The keys of a chunk that have no row get one, all at once. */
static void
read_born(struct wf_table *t, const struct wf_table_lookup *lookup, size_t first, size_t count,
	  struct wf_row_head **row)
{
	const uint64_t *key = lookup->key + first;
	float *out = lookup->out + first * t->opts.dim;
	const float *from[WF_CHUNK_KEYS];
	/* Zeros need not be read out of rows that are not in cache. */
	const bool is_zero = t->opts.init.kind == WF_INIT_ZERO && !wf_rest_is_half(&t->rest);

	for (size_t i = 0; i < count; i++) {
		from[i] = row[i] == NULL && is_zero ? t->zero : NULL;
	}
	if (wf_table_bear_chunk(t, key, count, row) == 0) {
		for (size_t i = 0; i < count; i++) {
			from[i] = from[i] == NULL ? wf_row_values(row[i]) : from[i];
		}
		wf_rest_gather(&t->rest, out, from, count);
		return;
	}
	for (size_t i = 0; i < count; i++, out += t->opts.dim) {
		if (row[i] != NULL) {
			read_row(t, row[i], out);
		} else {
			read_unborn(t, key[i], out);
		}
	}
}

/* `row`: NULL if the key has none. Existing rows are read first, all at once, because a row created
 * for another key may evict one of them. */
static void
read_chunk(struct wf_table *t, const struct wf_table_lookup *lookup, size_t first, size_t count,
	   struct wf_row_head *const *row)
{
	const size_t dim = t->opts.dim;
	float *out = lookup->out + first * dim;
	const float *there[WF_CHUNK_KEYS];
	uint64_t missed = 0;

	for (size_t i = 0; i < count; i++) {
		there[i] = row[i] != NULL ? wf_row_values(row[i]) : t->zero;
	}
	if (wf_motions_are_still(&t->motions)) {
		wf_rest_gather(&t->rest, out, there, count);
	}
	for (size_t i = 0; !wf_motions_are_still(&t->motions) && i < count; i++) {
		if (row[i] != NULL) {
			read_row(t, row[i], out + i * dim);
		}
	}
	for (size_t i = 0; i < count; i++) {
		if (row[i] == NULL) {
			const uint64_t key = lookup->key[first + i];
			read_missing(t, key, lookup->create, out + i * dim);
			missed++;
		}
	}
	wf_stats_add(&t->stats, WF_TABLE_KEYS_MISSED, missed);
}

/* Lines of cache of a row's values. */
static unsigned
value_lines(const struct wf_table *t)
{
	return wf_rows_lines(&t->rows, t->rest.rest_floats * sizeof(float));
}

/* The values of rows that all exist. */
static void
gather_rows(const struct wf_table *t, struct wf_row_head *const *row, size_t count, float *out)
{
	const float *values[WF_CHUNK_KEYS];

	for (size_t i = 0; i < count; i++) {
		values[i] = wf_row_values(row[i]);
	}
	wf_rest_gather(&t->rest, out, values, count);
}

void
wf_table_count_lookup(struct wf_table *t, const uint64_t *key, size_t count)
{
	wf_hot_add(&t->hot, key, count);
	wf_stats_add(&t->stats, WF_TABLE_KEYS_LOOKED_UP, count);
	wf_table_update_stats(t);
}

enum weft_status
wf_table_lookup(struct wf_table *t, const struct wf_table_lookup *lookup)
{
	struct wf_row_head *row[WF_CHUNK_KEYS];
	const size_t dim = t->opts.dim;
	const unsigned lines = value_lines(t);
	const bool is_plain =
		!wf_table_is_fixed(t) && !t->evict.can_expire && wf_motions_are_still(&t->motions);
	const bool bears = lookup->create && wf_motions_are_still(&t->motions) &&
			   wf_table_bears_chunks(t) && wf_admit_is_open(&t->admit);
	int missing = 0; /* of the last chunk: where keys are new, the next ones mostly are, too */

	for (size_t first = 0, count = 0; first < lookup->count; first += count) {
		size_t left = lookup->count - first;
		const uint64_t *key = lookup->key + first;
		if (is_plain && missing == 0) {
			count = wf_table_gather_known(t, lookup, first, lines);
			missing = 1;
			continue;
		}
		count = left < WF_CHUNK_KEYS ? left : WF_CHUNK_KEYS;
		missing = wf_table_locate(t, key, count, lines, row);
		if (missing == WF_NOT_OURS) {
			return wf_table_refuse(t, key, count);
		}
		if (missing == 0 && wf_motions_are_still(&t->motions)) {
			gather_rows(t, row, count, lookup->out + first * dim);
		} else if (bears) {
			wf_stats_add(&t->stats, WF_TABLE_KEYS_MISSED, (uint64_t)missing);
			read_born(t, lookup, first, count, row);
		} else {
			read_chunk(t, lookup, first, count, row);
		}
	}
	if (!lookup->again) {
		wf_table_count_lookup(t, lookup->key, lookup->count);
	}
	return WEFT_OK;
}

/* The rows of a fixed vocabulary, which is not looked through as a pipeline. */
static size_t
gather_fixed(const struct wf_table *t, const uint64_t *key, size_t count, unsigned lines,
	     float *out)
{
	struct wf_row_head *row[WF_CHUNK_KEYS];

	for (size_t at = 0, chunk = 0; at < count; at += chunk) {
		chunk = count - at < WF_CHUNK_KEYS ? count - at : WF_CHUNK_KEYS;
		if (wf_table_locate(t, key + at, chunk, lines, row) != 0) {
			return at;
		}
		gather_rows(t, row, chunk, out + at * t->opts.dim);
	}
	return count;
}

bool
wf_table_look_ahead(const struct wf_table *t, const struct wf_table_lookup *lookup)
{
	const unsigned lines = value_lines(t);
	const size_t count = lookup->count;

	if (t->evict.can_expire || t->evict.opts.at_cap || !wf_motions_are_still(&t->motions)) {
		return false;
	}
	size_t found = wf_table_is_fixed(t)
			       ? gather_fixed(t, lookup->key, count, lines, lookup->out)
			       : wf_table_gather_known(t, lookup, 0, lines);
	return found == count;
}

/* Rows in and out. */

/* Whether a saved row may be of this table. */
static enum weft_status
check_row(const struct wf_table *t, const struct wf_table_row *row)
{
	if (!wf_table_owns(t, row->key)) {
		return wf_table_refuse(t, &row->key, 1);
	}
	if (row->stamp > t->step || row->born > t->step) {
		return wf_fail(WEFT_INVALID,
			       "table %" PRIu32 ": a row of step %" PRIu32 ", born after %" PRIu32
			       ", but the last step is %" PRIu32 ": set that first",
			       t->opts.init.table, row->stamp, row->born, t->step);
	}
	return WEFT_OK;
}

static void
store_row(const struct wf_table *t, const struct wf_table_row *row, struct wf_row_head *head)
{
	head->stamp = row->stamp;
	head->born = row->born + 1;
	if (t->evict.has_score) {
		*wf_row_score(&t->rows, head) = (struct wf_row_score){row->show, row->click};
	}
	wf_rest_narrow(&t->rest, wf_row_values(head), row->floats);
}

enum weft_status
wf_table_put(struct wf_table *t, const struct wf_table_row *row)
{
	uint32_t number = t->opts.init.table;

	enum weft_status st = check_row(t, row);
	if (st != WEFT_OK) {
		return st;
	}
	if (wf_table_find(t, row->key) != WF_ROW_NONE) {
		return wf_fail(WEFT_INVALID, "table %" PRIu32 ": key %" PRIu64 " stands twice",
			       number, row->key);
	}
	struct wf_row_head *head = wf_table_bear(t, row->key);
	if (head == NULL) {
		return wf_fail(WEFT_NOMEM,
			       "table %" PRIu32 ": no memory for row %" PRIu32 " at %" PRIu64
			       " bytes, the cap is %" PRIu64 " (0: none)",
			       number, t->rows.live_count, t->budget.used_bytes,
			       t->opts.memory_cap_bytes);
	}
	store_row(t, row, head);
	wf_table_update_stats(t);
	return WEFT_OK;
}

enum weft_status
wf_table_put_later(struct wf_table *t, const struct wf_table_row *row, uint32_t border)
{
	enum weft_status st = check_row(t, row);
	if (st != WEFT_OK) {
		return st;
	}
	if (row->stamp <= border && row->born < border) {
		return wf_fail(WEFT_INVALID,
			       "table %" PRIu32 ": the row of key %" PRIu64
			       " has not changed since step %" PRIu32,
			       t->opts.init.table, row->key, border);
	}
	const uint32_t place = wf_table_find(t, row->key);
	if (place == WF_ROW_NONE) {
		return wf_table_put(t, row);
	}
	struct wf_row_head *head = wf_row_at(&t->rows, place);
	if (head->stamp > border || head->born > border) {
		return wf_fail(WEFT_INVALID, "table %" PRIu32 ": key %" PRIu64 " stands twice",
			       t->opts.init.table, row->key);
	}
	store_row(t, row, head);
	return WEFT_OK;
}

enum weft_status
wf_table_set_counters(struct wf_table *t, uint32_t partition, const uint16_t *counter,
		      uint32_t count)
{
	if (count != t->admit.slot_count) {
		return wf_fail(WEFT_INVALID,
			       "table %" PRIu32 ": %" PRIu32
			       " counters of admission, but it has %" PRIu32
			       " in a partition: load it with the settings it was saved with",
			       t->opts.init.table, count, t->admit.slot_count);
	}
	if (count > 0) {
		memcpy(wf_admit_counters(&t->admit, partition), counter, count * sizeof(*counter));
	}
	return WEFT_OK;
}

enum weft_status
wf_table_set_step(struct wf_table *t, uint64_t step)
{
	if (step > WF_TABLE_STEP_MAX) {
		return wf_fail(WEFT_INVALID,
			       "table %" PRIu32 ": step %" PRIu64 ": at most %" PRIu64,
			       t->opts.init.table, step, WF_TABLE_STEP_MAX);
	}
	if (step > 0 && t->motions.varies) {
		return wf_fail(WEFT_UNSUPPORTED,
			       "table %" PRIu32
			       ": steps missed are made up for under a schedule, and "
			       "the rates of the steps before %" PRIu64
			       " are not saved: go on with a constant one, or lazy rows",
			       t->opts.init.table, step);
	}
	WF_ASSERT(t->rows.live_count == 0);
	t->step = (uint32_t)step;
	return WEFT_OK;
}
