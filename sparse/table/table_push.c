/* SPDX-License-Identifier: Apache-2.0 */
/* table_push: the gradients of a step go to their rows. Thread: the lane's.
 *
 * Find the rows of all entries, which changes nothing and may refuse the push; gather entries of
 * the same row in a group; give rows to keys that have none; put each group's gradients in trainer
 * order; update row by row.
 *
 * Keys in ascending order, as a client sends them, need no groups: batches that follow each other
 * make runs, runs are merged, and rows found and updated chunk by chunk, so they come from memory
 * once. */
#include <inttypes.h>

#include "base/assert.h"
#include "kernels/prefetch.h"
#include "sparse/table/table_internal.h"

/* Where the entries of a push come from, as one walks along them. */
struct walk {
	const struct wf_table_push *push;
	size_t batch;
	size_t within;
};

static struct wf_motions_step
step_of(const struct wf_table *t, const struct wf_table_push *push)
{
	return (struct wf_motions_step){.table = t->opts.init.table,
					.last = t->step,
					.step = push->step,
					.rate = push->rate};
}

static bool
divides_by_rate(const struct wf_table *t)
{
	return t->opts.row.kind == WF_ROW_FTRL || t->opts.row.kind == WF_ROW_FTRL_GROUP;
}

/* Some schedules end at 0. */
static bool
is_rate(const struct wf_table *t, double rate)
{
	return rate < 1e30 && (divides_by_rate(t) ? (float)rate > 0.0f : rate >= 0.0);
}

static enum weft_status
check_push(const struct wf_table *t, const struct wf_table_push *push)
{
	uint32_t table = t->opts.init.table;
	uint64_t entries = 0;

	if (push->step <= t->step || push->step > WF_TABLE_STEP_MAX) {
		return wf_fail(WEFT_INVALID,
			       "table %" PRIu32 ": push of step %" PRIu64 " after step %" PRIu32
			       ": steps grow, up to %" PRIu64,
			       table, push->step, t->step, WF_TABLE_STEP_MAX);
	}
	if (!is_rate(t, push->rate)) {
		return wf_fail(WEFT_INVALID, "table %" PRIu32 ": rate %g: %s", table, push->rate,
			       divides_by_rate(t) ? "ftrl divides by it, so it is above 0, as f32 "
						    "too, and finite"
						  : "it is not below 0, and finite");
	}
	if (!(push->divisor > 0.0f && push->divisor < 1e30f)) {
		return wf_fail(WEFT_INVALID,
			       "table %" PRIu32 ": divisor %g: it is above 0 and finite", table,
			       (double)push->divisor);
	}
	for (size_t b = 0; b < push->batch_count; b++) {
		size_t count = push->batch[b].count;
		entries = count > t->opts.entries_max ? UINT64_MAX : entries + count;
		if (entries > t->opts.entries_max) {
			return wf_fail(WEFT_INVALID,
				       "table %" PRIu32 ": batch %zu brings a push above %" PRIu32
				       " keys: raise entries_max",
				       table, b, t->opts.entries_max);
		}
	}
	const struct wf_motions_step step = step_of(t, push);
	return wf_motions_check(&t->motions, &step);
}

/* Fill entry_row. */
static enum weft_status
find_entries(struct wf_table *t, const struct wf_table_push *push)
{
	size_t entry = 0;

	for (size_t b = 0; b < push->batch_count; b++) {
		const struct wf_table_batch *batch = &push->batch[b];
		for (size_t first = 0; first < batch->count; first += WF_CHUNK_KEYS) {
			size_t left = batch->count - first;
			size_t count = left < WF_CHUNK_KEYS ? left : WF_CHUNK_KEYS;
			const uint64_t *key = batch->key + first;
			if (wf_table_locate(t, key, count, 1, &t->groups.entry_row[entry]) ==
			    WF_NOT_OURS) {
				return wf_table_refuse(t, key, count);
			}
			entry += count;
		}
	}
	return WEFT_OK;
}

static uint64_t
next_key(struct walk *walk)
{
	while (walk->within == walk->push->batch[walk->batch].count) {
		walk->batch++;
		walk->within = 0;
	}
	return walk->push->batch[walk->batch].key[walk->within++];
}

/* A row for a key that had none when the push began. NULL: it gets none. */
static struct wf_row_head *
row_for_missing(struct wf_table *t, uint64_t key, bool *fresh)
{
	uint32_t row = wf_table_find(t, key);
	*fresh = false;

	if (row != WF_ROW_NONE) {
		struct wf_row_head *head = wf_row_at(&t->rows, row);
		/* Born for an entry before this one, or its time is over. */
		if (wf_groups_have(&t->groups, head) || !t->evict.can_expire ||
		    !wf_table_is_expired(t, head)) {
			return head;
		}
		wf_table_expire(t, row);
	}
	*fresh = true;
	return wf_table_bear(t, key);
}

/* Open admission: every key that has no row gets one, and its gradient goes there. */
static void
settle_open(struct wf_table *t, const struct wf_table_push *push, size_t entries)
{
	struct walk walk = {.push = push};

	for (size_t e = 0; e < entries; e++) {
		uint64_t key = next_key(&walk);
		bool fresh = false;
		if (t->groups.entry_row[e] != NULL) {
			continue;
		}
		struct wf_row_head *head = row_for_missing(t, key, &fresh);
		if (head != NULL) {
			t->groups.entry_group[e] = wf_groups_of(&t->groups, head);
		} else {
			wf_stats_add(&t->stats, WF_TABLE_PUSHES_LOST, 1);
		}
	}
}

/* Counts all first, then decides, so that the order of keys does not matter. The gradients of a key
 * that was not admitted were computed from zeros: they are dropped, even if it is admitted now. */
static void
settle_admitted(struct wf_table *t, const struct wf_table_push *push, size_t entries)
{
	struct walk walk = {.push = push};
	struct walk again = {.push = push};

	for (size_t e = 0; e < entries; e++) {
		uint64_t key = next_key(&walk);
		if (t->groups.entry_row[e] == NULL) {
			wf_admit_note(&t->admit, wf_key_mix(key));
		}
	}
	for (size_t e = 0; e < entries; e++) {
		uint64_t key = next_key(&again);
		bool fresh = false;
		if (t->groups.entry_row[e] != NULL) {
			continue;
		}
		wf_stats_add(&t->stats, WF_TABLE_PUSHES_UNADMITTED, 1);
		if (wf_admit_allows(&t->admit, wf_key_mix(key), (uint32_t)push->step)) {
			(void)row_for_missing(t, key, &fresh);
		}
	}
}

/* Shows and clicks of each entry go to its row, faded to this step. */
static void
score_entries(struct wf_table *t, const struct wf_table_push *push)
{
	size_t e = 0;

	for (uint32_t group = 0; group < t->groups.count; group++) {
		struct wf_row_score *score = wf_row_score(&t->rows, t->groups.row[group]);
		wf_evict_fade(&t->evict, score, t->groups.stamp[group], (uint32_t)push->step);
	}
	for (size_t b = 0; b < push->batch_count; b++) {
		const struct wf_table_batch *batch = &push->batch[b];
		for (size_t i = 0; i < batch->count; i++, e++) {
			uint32_t group = t->groups.entry_group[e];
			if (group == WF_ROW_NONE) {
				continue;
			}
			struct wf_row_score *score = wf_row_score(&t->rows, t->groups.row[group]);
			score->show += batch->show != NULL ? batch->show[i] : 1.0f;
			score->click += batch->click != NULL ? batch->click[i] : 0.0f;
		}
	}
}

static void
stamp_groups(struct wf_table *t)
{
	for (uint32_t group = 0; group < t->groups.count; group++) {
		t->groups.row[group]->stamp = t->push_step;
	}
}

/* Whether a row's first step differs from its others: rmsprop's counts its square in full, as that
 * of tensors does in the job's first step. Where steps without a gradient are made up for, every
 * row takes its first in the job's. */
static bool
tells_first(const struct wf_table *t)
{
	return t->opts.row.kind == WF_ROW_RMSPROP &&
	       (wf_motions_are_still(&t->motions) || t->push_step == 1);
}

/* Where the values of the rows are. */
static void
list_values(const struct wf_table *t, struct wf_row_head *const *row, size_t count, float **out)
{
	for (size_t i = 0; i < count; i++) {
		out[i] = wf_row_values(row[i]);
	}
}

static void
update_rows(struct wf_table *t, const struct wf_row_scalars *scalars, bool straight)
{
	const struct wf_groups *groups = &t->groups;
	const bool are_still = wf_motions_are_still(&t->motions);
	const bool has_first = tells_first(t);
	float *values[WF_CHUNK_KEYS];
	size_t nonfinite = 0;

	for (size_t at = 0; at < groups->count; at += WF_CHUNK_KEYS) {
		const size_t left = groups->count - at;
		const struct wf_row_batch batch = {
			.row = values,
			.count = left < WF_CHUNK_KEYS ? left : WF_CHUNK_KEYS,
			.dim = t->opts.dim,
			.grad = straight ? groups->entry_grad + at : groups->entry_grad,
			.first = straight ? NULL : groups->first + at,
			.stamp = has_first ? groups->stamp + at : NULL,
		};
		const struct wf_rest_missed missed = {.motions = &t->motions,
						      .stamp = groups->stamp + at,
						      .last = t->push_step - 1};
		list_values(t, groups->row + at, batch.count, values);
		nonfinite += wf_rest_apply(&t->rest, scalars, &batch, are_still ? NULL : &missed);
	}
	wf_stats_add(&t->stats, WF_TABLE_GRADS_NONFINITE, nonfinite);
	wf_stats_add(&t->stats, WF_TABLE_ROWS_UPDATED, groups->count);
}

static size_t
count_entries(const struct wf_table_push *push)
{
	size_t entries = 0;
	for (size_t b = 0; b < push->batch_count; b++) {
		entries += push->batch[b].count;
	}
	return entries;
}

/* Runs that are merged; more are grouped. */
#define MERGED_MAX 16u

/* Successive batches whose keys ascend from each to the next, as the parts of a trainer do. */
struct run {
	const struct wf_table_batch *batch, *end; /* the current batch; past the last one */
	const uint64_t *key, *key_end;            /* the rest of it; 0: also of the run */
	const float *grad;                        /* of the first key */
};

struct merge {
	struct run run[MERGED_MAX];
	size_t run_count;
	bool has_spared; /* rows of the keys to come are stamped */
};

/* Keys to update together, with their gradients in trainer order. */
struct work {
	const uint64_t *key; /* [count] merged, or within a batch */
	uint64_t merged[WF_CHUNK_KEYS];
	struct wf_row_head *row[WF_CHUNK_KEYS];
	/* Of grad, as wf_row_batch has it; not filled while one_each. */
	uint32_t first[WF_CHUNK_KEYS + 1];
	const float **grad; /* t->groups.entry_grad */
	/* Of the rows, before this step's; filled where first steps are told. */
	uint32_t stamp[WF_CHUNK_KEYS];
	size_t count;
	bool one_each;
};

static inline void
enter_batch(struct run *run)
{
	run->key = run->batch->key;
	run->key_end = run->batch->key + run->batch->count;
	run->grad = run->batch->grad;
}

/* Over so many keys of its batch, and on to the next one at its end. */
static inline void
advance(struct run *run, size_t count, size_t dim)
{
	run->key += count;
	run->grad += count * dim;
	while (run->key == run->key_end && run->batch + 1 < run->end) {
		run->batch++;
		enter_batch(run);
	}
}

/* Find the runs. false: there are too many. */
static bool
begin_merge(const struct wf_table_push *push, struct merge *out)
{
	const uint64_t *last = NULL;

	*out = (struct merge){0};
	for (size_t b = 0; b < push->batch_count; b++) {
		const struct wf_table_batch *batch = &push->batch[b];
		if (batch->count == 0) {
			continue;
		}
		if (last == NULL || batch->key[0] <= *last) {
			if (out->run_count == MERGED_MAX) {
				return false;
			}
			out->run[out->run_count].batch = batch;
			enter_batch(&out->run[out->run_count++]);
		}
		out->run[out->run_count - 1].end = batch + 1;
		last = &batch->key[batch->count - 1];
	}
	return true;
}

/* Whether the keys of each batch ascend; they may repeat. */
static bool
is_ascending(const struct wf_table_push *push)
{
	bool ascending = true;
	for (size_t b = 0; b < push->batch_count; b++) {
		const uint64_t *key = push->batch[b].key;
		for (size_t i = 1; i < push->batch[b].count; i++) {
			ascending &= key[i - 1] <= key[i];
		}
	}
	return ascending;
}

static bool
owns_all(const struct wf_table *t, const struct wf_table_push *push)
{
	if (t->opts.vocabulary == 0 && t->opts.partition_count == WF_PARTITION_COUNT) {
		return true;
	}
	for (size_t b = 0; b < push->batch_count; b++) {
		for (size_t i = 0; i < push->batch[b].count; i++) {
			if (!wf_table_owns(t, push->batch[b].key[i])) {
				return false;
			}
		}
	}
	return true;
}

/* Whether nothing has to be known of a row but where it is; then the runs to merge. A key of
 * another lane is left to find_entries, which refuses it. */
static bool
is_simple(const struct wf_table *t, const struct wf_table_push *push, struct merge *out)
{
	/* Who spares rows at the cap stamps them before their turn. */
	bool loses_first = t->opts.row.kind == WF_ROW_RMSPROP && t->evict.opts.at_cap;
	return !t->evict.can_expire && wf_motions_are_still(&t->motions) && !loses_first &&
	       wf_admit_is_open(&t->admit) && is_ascending(push) && owns_all(t, push) &&
	       begin_merge(push, out);
}

/* The lowest key that is left. false: none is. */
static inline bool
lowest_key(const struct merge *merge, uint64_t *out)
{
	bool found = false;
	for (size_t r = 0; r < merge->run_count; r++) {
		const struct run *run = &merge->run[r];
		if (run->key == run->key_end) {
			continue;
		}
		uint64_t key = *run->key;
		if (!found || key < *out) {
			*out = key;
		}
		found = true;
	}
	return found;
}

static void
merge_chunk(struct merge *merge, size_t dim, struct work *work)
{
	uint64_t key = 0;
	uint32_t grads = 0;

	work->key = work->merged;
	work->one_each = false;
	while (work->count < WF_CHUNK_KEYS && lowest_key(merge, &key)) {
		work->merged[work->count] = key;
		work->first[work->count++] = grads;
		for (size_t r = 0; r < merge->run_count; r++) {
			struct run *run = &merge->run[r];
			while (run->key != run->key_end && *run->key == key) {
				work->grad[grads++] = run->grad;
				advance(run, 1, dim);
			}
		}
	}
	work->first[work->count] = grads;
}

/* Of a single run, while its keys do not repeat: there is nothing to merge. */
static void
copy_chunk(struct merge *merge, size_t dim, struct work *work)
{
	struct run *run = &merge->run[0];
	const uint64_t *key = run->key;
	const float *grad = run->grad;
	const size_t left = (size_t)(run->key_end - key);
	size_t i = 0;

	for (; i < WF_CHUNK_KEYS && i < left; i++, grad += dim) {
		if (i + 1 < left && key[i + 1] == key[i]) {
			break;
		}
		work->grad[i] = grad;
	}
	work->key = key;
	work->one_each = true;
	work->count = i;
	advance(run, i, dim);
}

static void
fill_first(struct work *work)
{
	for (uint32_t i = 0; i <= work->count; i++) {
		work->first[i] = i;
	}
	work->one_each = false;
}

static void
stamp_rows(const struct wf_table *t, struct wf_row_head *const *row, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (row[i] != NULL) {
			row[i]->stamp = t->push_step;
		}
	}
}

/* What the stamps are; 0 of rows that are not born yet. */
static void
keep_stamps(struct work *work)
{
	for (size_t i = 0; i < work->count; i++) {
		const struct wf_row_head *row = work->row[i];
		work->stamp[i] = row == NULL ? 0 : row->stamp;
	}
}

/* Stamp the rows of keys that come later in the push: none of them may go for a new one. */
static void
spare_rest(struct wf_table *t, struct merge *merge)
{
	struct wf_row_head *row[WF_CHUNK_KEYS];

	for (size_t r = 0; r < merge->run_count; r++) {
		struct run run = merge->run[r];
		while (run.key != run.key_end) {
			size_t left = (size_t)(run.key_end - run.key);
			size_t count = left < WF_CHUNK_KEYS ? left : WF_CHUNK_KEYS;
			(void)wf_table_locate(t, run.key, count, 1, row);
			stamp_rows(t, row, count);
			advance(&run, count, t->opts.dim);
		}
	}
	merge->has_spared = true;
}

/* Creates rows for the keys that have none. All existing rows of the push are stamped before one is
 * created at the cap, which keeps them from being evicted for it. */
static void
bear_missing(struct wf_table *t, struct merge *merge, struct work *work)
{
	if (wf_table_bears_chunks(t)) {
		(void)wf_table_bear_chunk(t, work->key, work->count, work->row);
		stamp_rows(t, work->row, work->count);
		return;
	}
	if (t->evict.opts.at_cap && !merge->has_spared) {
		spare_rest(t, merge);
	}
	for (size_t i = 0; i < work->count; i++) {
		if (work->row[i] != NULL) {
			continue;
		}
		struct wf_row_head *head = wf_table_bear(t, work->key[i]);
		if (head != NULL) {
			head->stamp = t->push_step;
			work->row[i] = head;
		}
	}
}

/* Leave out keys that got no row, with their gradients. */
static void
leave_out_lost(struct wf_table *t, struct work *work)
{
	uint32_t grads = 0;
	size_t kept = 0;

	for (size_t i = 0; i < work->count; i++) {
		uint32_t from = work->first[i];
		uint32_t end = work->first[i + 1];
		if (work->row[i] == NULL) {
			wf_stats_add(&t->stats, WF_TABLE_PUSHES_LOST, end - from);
			continue;
		}
		work->row[kept] = work->row[i];
		work->stamp[kept] = work->stamp[i];
		work->first[kept++] = grads;
		for (; from < end; from++) {
			work->grad[grads++] = work->grad[from];
		}
	}
	work->first[kept] = grads;
	work->count = kept;
}

/* Find the heads of rows, and update. Values are sent for by the update, some rows ahead: to send
 * for those of a whole chunk here would fill the nearest cache before any of them is used. */
static void
push_work(struct wf_table *t, const struct wf_row_scalars *scalars, struct merge *merge,
	  struct work *work)
{
	int missing = wf_table_locate(t, work->key, work->count, 1, work->row);

	WF_ASSERT(missing != WF_NOT_OURS);
	bool first = tells_first(t);
	if (first) {
		keep_stamps(work);
	}
	stamp_rows(t, work->row, work->count);
	if (missing > 0) {
		if (work->one_each) {
			fill_first(work);
		}
		bear_missing(t, merge, work);
		leave_out_lost(t, work);
	}
	float *values[WF_CHUNK_KEYS];
	list_values(t, work->row, work->count, values);
	const struct wf_row_batch batch = {
		.row = values,
		.count = work->count,
		.dim = t->opts.dim,
		.grad = work->grad,
		.first = work->one_each ? NULL : work->first,
		.stamp = first ? work->stamp : NULL,
	};
	size_t nonfinite = wf_rest_apply(&t->rest, scalars, &batch, NULL);
	wf_stats_add(&t->stats, WF_TABLE_GRADS_NONFINITE, nonfinite);
	wf_stats_add(&t->stats, WF_TABLE_ROWS_UPDATED, work->count);
}

static void
push_simple(struct wf_table *t, struct merge *merge, const struct wf_row_scalars *scalars)
{
	struct work work = {.grad = t->groups.entry_grad};
	const size_t dim = t->opts.dim;

	for (;;) {
		work.count = 0;
		if (merge->run_count == 1) {
			copy_chunk(merge, dim, &work);
		}
		if (work.count == 0) { /* several runs, or a key that repeats */
			merge_chunk(merge, dim, &work);
		}
		if (work.count == 0) {
			return;
		}
		push_work(t, scalars, merge, &work);
	}
}

static void
push_groups(struct wf_table *t, const struct wf_table_push *push,
	    const struct wf_row_scalars *scalars, size_t entries)
{
	WF_ASSERT(t->groups.count == 0);
	bool straight = wf_groups_gather(&t->groups, entries);
	if (!straight && wf_admit_is_open(&t->admit)) {
		settle_open(t, push, entries);
	} else if (!straight) {
		settle_admitted(t, push, entries);
	}
	if (straight) {
		wf_groups_list(&t->groups, push, t->opts.dim);
	} else {
		wf_groups_sort(&t->groups, push, entries, t->opts.dim);
	}
	if (t->evict.has_score) {
		score_entries(t, push);
	}
	stamp_groups(t);
	update_rows(t, scalars, straight);
	t->groups.count = 0;
}

enum weft_status
wf_table_push(struct wf_table *t, const struct wf_table_push *push)
{
	struct wf_row_scalars scalars;
	enum weft_status st = check_push(t, push);
	if (st != WEFT_OK) {
		return st;
	}
	WF_ASSERT(t->capture == NULL || wf_capture_is_ready(t->capture, push->step));
	size_t entries = count_entries(push);
	struct merge merge;
	bool simple = is_simple(t, push, &merge);
	if (!simple) {
		st = find_entries(t, push);
		if (st != WEFT_OK) {
			return st;
		}
	}
	const struct wf_motions_step step = step_of(t, push);
	st = wf_motions_reserve(&t->motions, &step);
	if (st != WEFT_OK) {
		return st;
	}
	wf_row_scalars_fill(&t->opts.row, push->rate, push->divisor, push->step, &scalars);
	t->push_step = (uint32_t)push->step;
	if (simple) {
		push_simple(t, &merge, &scalars);
	} else {
		push_groups(t, push, &scalars, entries);
	}
	t->push_step = 0;
	t->step = (uint32_t)push->step;
	wf_motions_add(&t->motions, push->rate);
	wf_stats_add(&t->stats, WF_TABLE_KEYS_PUSHED, entries);
	wf_table_update_stats(t);
	return WEFT_OK;
}
