/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of a sequential run. Thread: the run's. */
#include "trainer/program/local_tables.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

/* One trainer's push of the step: each key once, ascending; the same keys for all tables. */
struct push {
	uint64_t *key;                    /* [batch_entries] */
	float *grad[WF_MODEL_TABLES_MAX]; /* [batch_entries, width] */
	float *show, *click;              /* [batch_entries]; NULL: nothing is scored */
	size_t count;                     /* 0: nothing pushed */
};

struct entry {
	uint64_t key;
	uint32_t idx; /* in the batch */
};

struct wf_local_tables {
	struct wf_run *job;
	uint32_t trainers;
	struct wf_table *table[WF_MODEL_TABLES_MAX];
	struct push *push;               /* [trainers] */
	struct wf_table_batch *batch;    /* [trainers] the gradients to apply */
	struct entry *entry;             /* [batch_entries] scratch */
	uint32_t *place;                 /* [batch_entries] 0, 1, 2, ... */
	float *row[WF_MODEL_TABLES_MAX]; /* [batch_entries, width] */
};

static struct wf_init
init_of(const struct wf_run *job, unsigned table)
{
	const float limit = job->model.table[table].limit;

	return (struct wf_init){
		.kind = limit > 0.0f ? WF_INIT_UNIFORM : WF_INIT_ZERO,
		.a = limit > 0.0f ? -(double)limit : 0.0,
		.b = (double)limit,
		.seed = job->seed,
		.table = table,
	};
}

static enum weft_status
open_table(struct wf_local_tables *tables, unsigned table)
{
	const struct wf_run *job = tables->job;
	const struct wf_train_opts *opts = job->opts;
	const uint64_t pairs = (uint64_t)tables->trainers * job->batches.entries_max;

	if (pairs > WF_TABLE_ENTRIES_MAX) {
		return wf_fail(WEFT_INVALID,
			       "batch_size=%" PRIu64 ": a step of %u trainers has up to %" PRIu64
			       " keys, and at most %u fit; give a smaller batch_size",
			       opts->batch_size, tables->trainers, pairs, WF_TABLE_ENTRIES_MAX);
	}
	const struct wf_table_opts table_opts = {
		.dim = job->model.table[table].width,
		.vocabulary = job->data.source->key_count,
		.partition_count = WF_LOCAL_PARTITIONS,
		.entries_max = (uint32_t)pairs,
		.kernels = job->kernels,
		.row = job->terms.row_optimizer,
		.value_rest = job->terms.row_rest,
		.init = init_of(job, table),
		.admit = {.count = (uint32_t)opts->admit_count,
			  .probability = opts->admit_probability},
		.evict = {.age_steps = opts->evict_age,
			  .score_least = opts->evict_score,
			  .show_weight = opts->evict_show_weight,
			  .click_weight = opts->evict_click_weight,
			  .fade = opts->evict_fade,
			  .fade_steps = opts->evict_fade_steps,
			  .at_cap = opts->evict_at_cap},
		.memory_cap_bytes = opts->table_memory,
	};
	enum weft_status st = wf_table_create(job->env, &table_opts, &tables->table[table]);
	if (st != WEFT_OK) {
		const struct wf_error why = *wf_error_record();
		return wf_fail(st, "table %s: %.400s", job->model.table[table].name, why.text);
	}
	return WEFT_OK;
}

static bool
is_scored(const struct wf_local_tables *tables)
{
	return tables->job->opts->evict_score > 0.0;
}

static enum weft_status
alloc_memory(struct wf_local_tables *tables)
{
	struct wf_env *env = tables->job->env;
	const struct wf_model *model = &tables->job->model;
	const size_t entries = tables->job->batches.entries_max;

	tables->push = wf_zalloc_array(env, tables->trainers, sizeof(*tables->push));
	tables->batch = wf_zalloc_array(env, tables->trainers, sizeof(*tables->batch));
	tables->entry = wf_zalloc_array(env, entries, sizeof(*tables->entry));
	tables->place = wf_zalloc_array(env, entries, sizeof(*tables->place));
	bool is_short = tables->push == NULL || tables->batch == NULL || tables->entry == NULL ||
			tables->place == NULL;
	for (unsigned t = 0; t < model->table_count; t++) {
		const size_t values = entries * model->table[t].width;
		tables->row[t] = wf_zalloc_array(env, values, sizeof(float));
		is_short = is_short || tables->row[t] == NULL;
		for (uint32_t i = 0; !is_short && i < tables->trainers; i++) {
			tables->push[i].grad[t] = wf_zalloc_array(env, values, sizeof(float));
			is_short = tables->push[i].grad[t] == NULL;
		}
	}
	for (uint32_t i = 0; !is_short && i < tables->trainers; i++) {
		tables->push[i].key = wf_zalloc_array(env, entries, sizeof(uint64_t));
		is_short = tables->push[i].key == NULL;
	}
	for (uint32_t i = 0; is_scored(tables) && !is_short && i < tables->trainers; i++) {
		tables->push[i].show = wf_zalloc_array(env, entries, sizeof(float));
		tables->push[i].click = wf_zalloc_array(env, entries, sizeof(float));
		is_short = tables->push[i].show == NULL || tables->push[i].click == NULL;
	}
	if (is_short) {
		return wf_fail(WEFT_NOMEM, "tables: batches of %zu keys of %u trainers", entries,
			       tables->trainers);
	}
	for (uint32_t e = 0; e < entries; e++) {
		tables->place[e] = e;
	}
	return WEFT_OK;
}

enum weft_status
wf_local_tables_create(struct wf_run *job, uint32_t trainers, struct wf_local_tables **out)
{
	struct wf_local_tables *tables = wf_zalloc(job->env, sizeof(*tables));

	WF_ASSERT(trainers >= 1 && job->model.table_count >= 1 && job->batches.entries_max >= 1);
	if (tables == NULL) {
		return wf_fail(WEFT_NOMEM, "tables: %zu bytes", sizeof(*tables));
	}
	tables->job = job;
	tables->trainers = trainers;
	enum weft_status st = WEFT_OK;
	for (unsigned t = 0; st == WEFT_OK && t < job->model.table_count; t++) {
		st = open_table(tables, t);
	}
	if (st == WEFT_OK) {
		st = alloc_memory(tables);
	}
	if (st != WEFT_OK) {
		wf_local_tables_destroy(tables);
		return st;
	}
	*out = tables;
	return WEFT_OK;
}

void
wf_local_tables_destroy(struct wf_local_tables *tables)
{
	if (tables == NULL) {
		return;
	}
	struct wf_env *env = tables->job->env;
	const struct wf_model *model = &tables->job->model;
	const size_t entries = tables->job->batches.entries_max;

	for (unsigned t = 0; t < model->table_count; t++) {
		const size_t bytes = entries * model->table[t].width * sizeof(float);
		wf_table_destroy(tables->table[t]);
		wf_free(env, tables->row[t], bytes);
		for (uint32_t i = 0; tables->push != NULL && i < tables->trainers; i++) {
			wf_free(env, tables->push[i].grad[t], bytes);
		}
	}
	for (uint32_t i = 0; tables->push != NULL && i < tables->trainers; i++) {
		wf_free(env, tables->push[i].key, entries * sizeof(uint64_t));
		wf_free(env, tables->push[i].show, entries * sizeof(float));
		wf_free(env, tables->push[i].click, entries * sizeof(float));
	}
	wf_free(env, tables->place, entries * sizeof(*tables->place));
	wf_free(env, tables->entry, entries * sizeof(*tables->entry));
	wf_free(env, tables->batch, tables->trainers * sizeof(*tables->batch));
	wf_free(env, tables->push, tables->trainers * sizeof(*tables->push));
	wf_free(env, tables, sizeof(*tables));
}

struct wf_table *
wf_local_tables_at(struct wf_local_tables *tables, unsigned table)
{
	WF_ASSERT(table < tables->job->model.table_count);
	return tables->table[table];
}

#define ROUND_BLOCK 512u

/* There and back, as values travel. */
static void
round_values(const struct wf_run *job, float *value, size_t count)
{
	const struct wf_row_half *half = &job->kernels->rows->half[job->terms.row_wire];
	uint16_t block[ROUND_BLOCK];

	if (job->terms.row_wire == WEFT_VALUES_F32) {
		return;
	}
	for (size_t at = 0; at < count; at += ROUND_BLOCK) {
		const size_t n = count - at < ROUND_BLOCK ? count - at : ROUND_BLOCK;
		half->narrow(block, value + at, n);
		half->widen(value + at, block, n);
	}
}

/* Values of rows as a trainer gets them. */
static enum weft_status
look_up(const struct wf_local_tables *tables, unsigned t, const struct wf_table_lookup *lookup)
{
	enum weft_status st = wf_table_lookup(tables->table[t], lookup);

	if (st == WEFT_OK) {
		round_values(tables->job, lookup->out,
			     lookup->count * tables->job->model.table[t].width);
	}
	return st;
}

static uint32_t
entries_of(const struct wf_batch *batch)
{
	return batch->rows->first[batch->rows->rows * batch->rows->slots];
}

enum weft_status
wf_local_tables_pull(struct wf_local_tables *tables, struct wf_batch *batch)
{
	for (unsigned t = 0; t < tables->job->model.table_count; t++) {
		const struct wf_table_lookup lookup = {
			.key = batch->rows->key,
			.count = entries_of(batch),
			.out = tables->row[t],
			.create = true,
		};
		enum weft_status st = look_up(tables, t, &lookup);
		if (st != WEFT_OK) {
			return st;
		}
		batch->row[t] = tables->row[t];
		batch->place[t] = tables->place;
	}
	return WEFT_OK;
}

static int
by_key(const void *left, const void *right)
{
	const struct entry *a = left;
	const struct entry *b = right;

	if (a->key != b->key) {
		return a->key < b->key ? -1 : 1;
	}
	return (a->idx > b->idx) - (a->idx < b->idx);
}

/* One occurrence more of the nth key. */
static void
add_score(struct push *push, size_t nth, bool is_first, float click)
{
	push->show[nth] = is_first ? 1.0f : push->show[nth] + 1.0f;
	push->click[nth] = is_first ? click : push->click[nth] + click;
}

/* The first gradient of a key is copied, bit for bit, the others are added to it in order. */
static void
merge(const struct wf_local_tables *tables, const struct wf_batch *batch, uint32_t entries,
      struct push *push)
{
	for (uint32_t e = 0; e < entries; e++) {
		const struct entry *entry = &tables->entry[e];
		const bool is_first = e == 0 || entry->key != tables->entry[e - 1].key;
		push->count += is_first;
		push->key[push->count - 1] = entry->key;
		if (push->show != NULL) {
			add_score(push, push->count - 1, is_first,
				  tables->job->batches.entry_click[entry->idx]);
		}
		for (unsigned t = 0; t < tables->job->model.table_count; t++) {
			const uint32_t width = tables->job->model.table[t].width;
			const float *in = batch->entry_grad[t] + (size_t)entry->idx * width;
			float *out = push->grad[t] + (push->count - 1) * width;
			for (uint32_t i = 0; i < width; i++) {
				out[i] = is_first ? in[i] : out[i] + in[i];
			}
		}
	}
}

void
wf_local_tables_push(struct wf_local_tables *tables, uint32_t trainer, const struct wf_batch *batch)
{
	struct push *push = &tables->push[trainer];
	const uint32_t entries = entries_of(batch);

	WF_ASSERT(trainer < tables->trainers && push->count == 0);
	for (uint32_t e = 0; e < entries; e++) {
		tables->entry[e] = (struct entry){.key = batch->rows->key[e], .idx = e};
	}
	qsort(tables->entry, entries, sizeof(*tables->entry), by_key);
	wf_run_fill_clicks(tables->job, batch->rows);
	merge(tables, batch, entries, push);
	for (unsigned t = 0; t < tables->job->model.table_count; t++) {
		round_values(tables->job, push->grad[t],
			     push->count * tables->job->model.table[t].width);
	}
}

static enum weft_status
apply_table(struct wf_local_tables *tables, unsigned t, const struct wf_local_step *step,
	    uint64_t *bad)
{
	const struct wf_run *job = tables->job;
	const struct wf_stats *stats = wf_table_stats(tables->table[t]);
	const uint64_t bad_before = wf_stats_get(stats, WF_TABLE_GRADS_NONFINITE);
	const uint64_t lost_before = wf_stats_get(stats, WF_TABLE_PUSHES_LOST);
	size_t count = 0;

	for (uint32_t i = 0; i < tables->trainers; i++) {
		const struct push *push = &tables->push[i];
		if (push->count > 0) {
			tables->batch[count++] = (struct wf_table_batch){
				.key = push->key,
				.grad = push->grad[t],
				.count = push->count,
				.show = push->show,
				.click = push->click,
			};
		}
	}
	/* A lane makes the step also if no trainer has a key, because ages count steps. */
	const struct wf_table_push push = {
		.step = step->step,
		.rate = wf_row_rate(&job->terms.row_optimizer, step->samples_before, step->samples),
		.divisor = job->terms.is_mean ? (float)step->samples : 1.0f,
		.batch = tables->batch,
		.batch_count = count,
	};
	enum weft_status st = wf_table_push(tables->table[t], &push);
	*bad = wf_stats_get(stats, WF_TABLE_GRADS_NONFINITE) - bad_before;
	const uint64_t lost = wf_stats_get(stats, WF_TABLE_PUSHES_LOST) - lost_before;
	if (st == WEFT_OK && lost > 0 && job->opts->table_memory == 0) {
		return wf_fail(WEFT_NOMEM,
			       "table %s: no memory for %" PRIu64 " more rows in step %" PRIu64,
			       job->model.table[t].name, lost, step->step);
	}
	return st;
}

enum weft_status
wf_local_tables_apply(struct wf_local_tables *tables, const struct wf_local_step *step,
		      uint64_t *skipped)
{
	const struct wf_run *job = tables->job;

	for (unsigned t = 0; t < job->model.table_count; t++) {
		uint64_t bad = 0;
		enum weft_status st = apply_table(tables, t, step, &bad);
		if (st != WEFT_OK) {
			return st;
		}
		*skipped += bad;
		if (bad > 0 && !job->terms.is_skipping) {
			return wf_fail(WEFT_DATA,
				       "table %s: %" PRIu64 " gradient elements are not finite in "
				       "step %" PRIu64 "; a smaller sparse_learning_rate may help, "
				       "nonfinite=skip leaves such elements out",
				       job->model.table[t].name, bad, step->step);
		}
	}
	for (uint32_t i = 0; i < tables->trainers; i++) {
		tables->push[i].count = 0;
	}
	return WEFT_OK;
}

enum weft_status
wf_local_tables_rows(void *arg, unsigned table, const uint64_t *key, uint32_t count, float *out)
{
	struct wf_local_tables *tables = arg;
	const struct wf_table_lookup lookup = {.key = key, .count = count, .out = out};

	return look_up(tables, table, &lookup);
}

static void
log_table(const struct wf_run *job, const char *name, const struct wf_stats *stats)
{
	const uint64_t age = wf_stats_get(stats, WF_TABLE_EVICTED_BY_AGE);
	const uint64_t score = wf_stats_get(stats, WF_TABLE_EVICTED_BY_SCORE);
	const uint64_t cap = wf_stats_get(stats, WF_TABLE_EVICTED_AT_CAP);
	const uint64_t refused = wf_stats_get(stats, WF_TABLE_ROWS_REFUSED);

	if (age + score + cap + refused == 0) {
		return;
	}
	wf_log(job->env, WF_LOG_INFO,
	       "table %s: rows %" PRIu64 " bytes %" PRIu64 " born %" PRIu64 " evicted %" PRIu64
	       " (age %" PRIu64 " score %" PRIu64 " cap %" PRIu64 ") refused %" PRIu64
	       " pushes_lost %" PRIu64,
	       name, wf_stats_get(stats, WF_TABLE_ROWS_LIVE),
	       wf_stats_get(stats, WF_TABLE_MEMORY_BYTES), wf_stats_get(stats, WF_TABLE_ROWS_BORN),
	       age + score + cap, age, score, cap, refused,
	       wf_stats_get(stats, WF_TABLE_PUSHES_LOST));
}

void
wf_local_tables_report(const struct wf_local_tables *tables)
{
	for (unsigned t = 0; t < tables->job->model.table_count; t++) {
		log_table(tables->job, tables->job->model.table[t].name,
			  wf_table_stats(tables->table[t]));
	}
}
