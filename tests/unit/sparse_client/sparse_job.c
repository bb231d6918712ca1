/* SPDX-License-Identifier: Apache-2.0 */
/* sparse_job: see sparse_job.h. Thread: the caller's. */
#include "sparse_job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/rng.h"
#include "base/settings.h"
#include "kernels/half.h"
#include "sparse/client/session.h"
#include "sparse/table/table.h"
#include "wire/partition.h"

#define KEYS_MAX 512u
#define DIM_MAX 16u
#define EVAL_KEYS 200u
#define RATE 0.0625
#define SEED 11u

/* Some hundred keys, so that batches meet; of unlimited ones, far apart. */
static uint64_t
spread(const struct sparse_table_kind *kind, uint64_t n)
{
	return kind->vocabulary > 0 ? n % kind->vocabulary : wf_key_mix(n % EVAL_KEYS);
}

static uint32_t
keys_of(const struct sparse_job *job, uint32_t trainer, uint64_t step, uint32_t table,
	uint64_t *key)
{
	struct wf_rng rng;
	wf_rng_init(&rng, job->seed * 1000003 + step, trainer * SPARSE_TABLES_MAX + table);
	uint32_t count = (uint32_t)wf_rng_below(&rng, job->keys_most + 1);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t wide = wf_rng_below(&rng, EVAL_KEYS);
		uint64_t narrow = wf_rng_below(&rng, 8);
		key[i] = spread(&job->table[table], wf_rng_below(&rng, 3) == 0 ? narrow : wide);
	}
	return count;
}

static float
grad_of(const struct sparse_job *job, uint64_t step, uint64_t key, uint32_t column)
{
	uint64_t mixed = wf_key_mix(job->seed ^ wf_key_mix(key + step * 977 + column));
	return (float)(mixed >> 40) / (float)(1u << 24) - 0.5f;
}

static uint64_t
samples_of(uint32_t trainer, uint64_t step)
{
	return 1 + (trainer + step) % 3;
}

static bool
is_idle(const struct sparse_job *job, uint32_t trainer, uint64_t step, uint32_t table)
{
	return job->idle_every > 0 && (step + trainer + table) % job->idle_every == 0;
}

static void
fill_grads(const struct sparse_job *job, uint64_t step, uint32_t dim, const uint64_t *key,
	   uint32_t i, const float *row, float *grad)
{
	for (uint32_t d = 0; d < dim; d++) {
		grad[(size_t)i * dim + d] = row[d] * 0.25f + grad_of(job, step, key[i], d);
	}
}

static void
fill_scores(uint32_t count, const uint64_t *key, float *show, float *click)
{
	for (uint32_t i = 0; i < count; i++) {
		show[i] = 1 + (float)(key[i] % 3);
		click[i] = (float)(key[i] % 2);
	}
}

/* A trainer's part of the sequential run, and what a session's trainer keeps. */
struct batch {
	uint64_t key[KEYS_MAX];
	uint32_t count;
	float grad[KEYS_MAX * DIM_MAX];
	float show[KEYS_MAX], click[KEYS_MAX];
	float row[KEYS_MAX * DIM_MAX];
	struct weft_rows *rows;
	uint64_t merged_key[KEYS_MAX];
	uint32_t merged;
};

/* The sequential run. */

/* What travels in 16 bits is rounded by it: half.h is the definition. */
static void
travel(const struct sparse_table_kind *kind, float *value, size_t count)
{
	for (size_t i = 0; i < count && kind->wire != WEFT_VALUES_F32; i++) {
		value[i] = kind->wire == WEFT_VALUES_BF16 ? wf_f32_of_bf16(wf_bf16_of(value[i]))
							  : wf_f32_of_f16(wf_f16_of(value[i]));
	}
}

static enum weft_status
make_table(struct wf_env *env, const struct sparse_job *job, uint32_t idx, struct wf_table **out)
{
	const struct sparse_table_kind *kind = &job->table[idx];
	struct wf_table_opts opts = {
		.dim = kind->dim,
		.vocabulary = kind->vocabulary,
		.partition_count = WF_PARTITION_COUNT,
		.entries_max = KEYS_MAX * SPARSE_TRAINERS_MAX,
		.row = wf_row_defaults(),
		.init = {.a = -0.5, .b = 0.5, .seed = SEED, .table = idx},
		.admit = {.probability = 1},
		.evict = {.show_weight = 0.25, .click_weight = 1, .fade = 1, .fade_steps = 1},
	};
	opts.row.set.learning_rate = RATE;
	opts.row.set.momentum = strstr(kind->method, "momentum") != NULL ? 0.5 : 0;
	opts.row.set.dense_equivalent = kind->dense_equivalent;
	opts.evict.score_least = kind->scores ? 1e-6 : 0;
	opts.init.kind = strcmp(kind->init, "zero") == 0      ? WF_INIT_ZERO
			 : strcmp(kind->init, "uniform") == 0 ? WF_INIT_UNIFORM
							      : WF_INIT_NORMAL;
	enum weft_status st = wf_row_optimizer_parse(kind->method, &opts.row.kind);
	return st == WEFT_OK ? wf_table_create(env, &opts, out) : st;
}

/* A trainer's repetitions are summed before they are sent: in its order, in f32. */
static void
merge(struct batch *b, uint32_t dim)
{
	b->merged = 0;
	for (uint32_t i = 0; i < b->count; i++) {
		uint32_t at = 0;
		while (at < b->merged && b->merged_key[at] != b->key[i]) {
			at++;
		}
		bool is_new = at == b->merged;
		b->merged += is_new ? 1 : 0;
		b->merged_key[at] = b->key[i];
		for (uint32_t d = 0; d < dim; d++) {
			float *sum = &b->grad[(size_t)at * dim + d];
			float add = b->grad[(size_t)i * dim + d];
			*sum = is_new ? add : *sum + add;
		}
		b->show[at] = is_new ? b->show[i] : b->show[at] + b->show[i];
		b->click[at] = is_new ? b->click[i] : b->click[at] + b->click[i];
	}
}

static enum weft_status
sequential_pull(const struct sparse_job *job, struct wf_table *table, uint32_t idx, uint32_t t,
		uint64_t step, struct batch *batch)
{
	const struct sparse_table_kind *kind = &job->table[idx];
	batch->count = keys_of(job, t, step, idx, batch->key);
	const struct wf_table_lookup lookup = {
		.key = batch->key, .count = batch->count, .out = batch->row, .create = true};
	enum weft_status st = wf_table_lookup(table, &lookup);
	travel(kind, batch->row, (size_t)batch->count * kind->dim);
	for (uint32_t i = 0; i < batch->count; i++) {
		fill_grads(job, step, kind->dim, batch->key, i, batch->row + (size_t)i * kind->dim,
			   batch->grad);
	}
	fill_scores(batch->count, batch->key, batch->show, batch->click);
	merge(batch, kind->dim);
	travel(kind, batch->grad, (size_t)batch->merged * kind->dim);
	return st;
}

/* A step of those trainers that still have data. */
static enum weft_status
sequential_step(const struct sparse_job *job, struct wf_table **table, uint64_t step, uint32_t at,
		uint64_t *samples_before, struct wf_digest **digest, struct batch *batch)
{
	uint64_t samples = 0;
	enum weft_status st = WEFT_OK;
	for (uint32_t t = 0; t < job->trainers; t++) {
		samples += at < job->steps[t] ? samples_of(t, step) : 0;
	}
	for (uint32_t i = 0; i < job->table_count && st == WEFT_OK; i++) {
		struct wf_table_batch pushed[SPARSE_TRAINERS_MAX];
		size_t pushes = 0;
		for (uint32_t t = 0; t < job->trainers && st == WEFT_OK; t++) {
			struct batch *b = &batch[t * SPARSE_TABLES_MAX + i];
			if (at >= job->steps[t]) {
				continue;
			}
			st = sequential_pull(job, table[i], i, t, step, b);
			if (!is_idle(job, t, step, i) && b->count > 0) {
				pushed[pushes++] = (struct wf_table_batch){
					.key = b->merged_key,
					.grad = b->grad,
					.count = b->merged,
					.show = job->table[i].scores ? b->show : NULL,
					.click = job->table[i].scores ? b->click : NULL};
			}
		}
		const struct wf_table_push push = {
			.step = step,
			.rate = RATE,
			.divisor = job->mean ? (float)samples : 1.0f,
			.batch = pushed,
			.batch_count = pushes,
		};
		st = st == WEFT_OK ? wf_table_push(table[i], &push) : st;
	}
	for (uint32_t t = 0; t < job->trainers; t++) {
		for (uint32_t i = 0; i < job->table_count && at < job->steps[t]; i++) {
			const struct batch *b = &batch[t * SPARSE_TABLES_MAX + i];
			wf_digest_bytes(digest[t], b->row,
					sizeof(float) * b->count * job->table[i].dim);
		}
	}
	*samples_before += samples;
	return st;
}

static uint32_t
steps_most(const struct sparse_job *job)
{
	uint32_t most = 0;
	for (uint32_t t = 0; t < job->trainers; t++) {
		most = job->steps[t] > most ? job->steps[t] : most;
	}
	return most;
}

static void
eval_keys(const struct sparse_table_kind *kind, uint64_t *key)
{
	for (uint32_t i = 0; i < EVAL_KEYS; i++) {
		key[i] = spread(kind, i);
	}
}

enum weft_status
sparse_job_sequential(const struct sparse_job *job, struct wf_env *env, uint64_t *out)
{
	struct wf_table *table[SPARSE_TABLES_MAX] = {NULL};
	struct wf_digest *digest[SPARSE_TRAINERS_MAX] = {NULL};
	struct batch *batch = calloc(SPARSE_TRAINERS_MAX * SPARSE_TABLES_MAX, sizeof(*batch));
	uint64_t samples = 0;
	uint64_t step = 0;
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < job->table_count && st == WEFT_OK; i++) {
		st = make_table(env, job, i, &table[i]);
	}
	for (uint32_t t = 0; t < job->trainers && st == WEFT_OK; t++) {
		st = wf_digest_create(env, &digest[t]);
	}
	for (uint32_t p = 0; p < job->passes; p++) {
		for (uint32_t at = 0; at < steps_most(job) && st == WEFT_OK; at++) {
			st = sequential_step(job, table, ++step, at, &samples, digest, batch);
		}
	}
	for (uint32_t i = 0; i < job->table_count && st == WEFT_OK; i++) {
		eval_keys(&job->table[i], batch->key);
		const struct wf_table_lookup lookup = {
			.key = batch->key, .count = EVAL_KEYS, .out = batch->row};
		st = wf_table_lookup(table[i], &lookup);
		travel(&job->table[i], batch->row, (size_t)EVAL_KEYS * job->table[i].dim);
		for (uint32_t t = 0; t < job->trainers; t++) {
			wf_digest_bytes(digest[t], batch->row,
					sizeof(float) * EVAL_KEYS * job->table[i].dim);
		}
	}
	for (uint32_t t = 0; t < job->trainers; t++) {
		out[t] = st == WEFT_OK ? wf_digest_value(digest[t]) : 0;
		wf_digest_destroy(digest[t]);
	}
	for (uint32_t i = 0; i < job->table_count; i++) {
		wf_table_destroy(table[i]);
	}
	free(batch);
	return st;
}

/* A trainer of a session. */

struct trainer {
	const struct sparse_job *job;
	uint32_t id;
	struct weft_session *session;
	struct weft_tensor *tensor[2];
	struct weft_table *table[SPARSE_TABLES_MAX];
	struct batch batch[SPARSE_TABLES_MAX][2];
	struct wf_env *env;
	struct wf_digest *digest;
};

static enum weft_status
declare_table(struct trainer *tr, uint32_t idx)
{
	const struct sparse_job *job = tr->job;
	const struct sparse_table_kind *kind = &job->table[idx];
	struct weft_table_opts opts;
	char name[16];
	weft_table_opts_init(&opts);
	(void)snprintf(name, sizeof(name), "table%u", idx);
	opts.name = name;
	opts.dim = kind->dim;
	opts.vocabulary = kind->vocabulary;
	opts.batch_keys_max = KEYS_MAX;
	opts.optimizer.method = kind->method;
	opts.optimizer.learning_rate = RATE;
	opts.optimizer.momentum = strstr(kind->method, "momentum") != NULL ? 0.5 : 0;
	opts.optimizer.dense_equivalent = kind->dense_equivalent;
	opts.init = kind->init;
	opts.init_a = -0.5;
	opts.init_b = 0.5;
	opts.init_seed = SEED;
	opts.raw_keys = job->raw_keys;
	opts.wire = kind->wire;
	opts.evict_score_least = kind->scores ? 1e-6 : 0;
	return weft_table_add(tr->session, &opts, &tr->table[idx]);
}

/* Keeping, and going on from what was kept. */

struct keeping {
	struct sparse_kept_table *table;
	uint32_t floats, next;
};

static enum weft_status
keep_partition(void *arg, const struct weft_table_partition *partition)
{
	const struct keeping *keeping = arg;
	keeping->table->count[partition->partition] = (uint32_t)partition->record_count;
	return WEFT_OK;
}

static enum weft_status
keep_record(void *arg, const struct weft_table_record *record)
{
	const struct keeping *keeping = arg;
	struct sparse_kept_table *table = keeping->table;
	WF_ASSERT(table->all < SPARSE_RECORDS_MAX && keeping->floats <= SPARSE_FLOATS_MAX);
	memcpy(table->floats[table->all], record->floats, keeping->floats * sizeof(float));
	table->record[table->all] = *record;
	table->record[table->all].floats = table->floats[table->all];
	table->all++;
	return WEFT_OK;
}

static enum weft_status
kept_partition(void *arg, uint32_t partition, struct weft_table_partition *out)
{
	const struct keeping *keeping = arg;
	*out = (struct weft_table_partition){.partition = partition,
					     .record_count = keeping->table->count[partition]};
	return WEFT_OK;
}

static enum weft_status
kept_record(void *arg, struct weft_table_record *out)
{
	struct keeping *keeping = arg;
	*out = keeping->table->record[keeping->next++];
	return WEFT_OK;
}

static uint64_t
samples_of_passes(const struct sparse_job *job, uint32_t passes)
{
	uint32_t most = 0;
	uint64_t sum = 0;
	for (uint32_t t = 0; t < job->trainers; t++) {
		most = job->steps[t] > most ? job->steps[t] : most;
	}
	for (uint32_t t = 0; t < job->trainers; t++) {
		for (uint32_t i = 0; i < passes * most; i++) {
			sum += i % most < job->steps[t] ? samples_of(t, i + 1) : 0;
		}
	}
	return sum;
}

static enum weft_status
keep(struct trainer *tr)
{
	struct sparse_kept *to = tr->job->to;
	enum weft_status st = weft_pull_state(tr->session);
	to->step = weft_steps(tr->session);
	to->samples = samples_of_passes(tr->job, tr->job->passes);
	for (uint32_t i = 0; i < 2 && st == WEFT_OK; i++) {
		memcpy(to->param[i], weft_tensor_param(tr->tensor[i]),
		       weft_tensor_count(tr->tensor[i]) * sizeof(float));
	}
	for (uint32_t i = 0; i < tr->job->table_count && st == WEFT_OK; i++) {
		st = weft_table_step(tr->table[i], &to->table[i].step);
		if (st != WEFT_OK) {
			return st;
		}
		to->table[i].all = 0;
		struct keeping keeping = {.table = &to->table[i],
					  .floats = weft_table_record_floats(tr->table[i])};
		const struct weft_table_reader reader = {keep_partition, keep_record, &keeping};
		st = weft_table_read(tr->table[i], &reader);
	}
	return st;
}

static enum weft_status
restore_tensors(struct trainer *tr)
{
	const struct sparse_kept *from = tr->job->from;
	for (uint32_t i = 0; i < 2; i++) {
		memcpy(weft_tensor_param(tr->tensor[i]), from->param[i],
		       weft_tensor_count(tr->tensor[i]) * sizeof(float));
	}
	return weft_session_restore(tr->session, from->step, from->samples);
}

static enum weft_status
same_record(void *arg, const struct weft_table_record *record)
{
	struct keeping *keeping = arg;
	const struct weft_table_record *kept = &keeping->table->record[keeping->next];
	bool same = keeping->next++ < keeping->table->all && record->key == kept->key &&
		    record->stamp == kept->stamp && record->born == kept->born &&
		    memcmp(&record->show, &kept->show, sizeof(float)) == 0 &&
		    memcmp(&record->click, &kept->click, sizeof(float)) == 0 &&
		    memcmp(record->floats, kept->floats, keeping->floats * sizeof(float)) == 0;
	if (!same) {
		return wf_fail(WEFT_INTERNAL, "row %u, key %" PRIu64 ", is not as it was",
			       keeping->next - 1, record->key);
	}
	return WEFT_OK;
}

static enum weft_status
same_partition(void *arg, const struct weft_table_partition *partition)
{
	const struct keeping *keeping = arg;
	uint32_t count = keeping->table->count[partition->partition];
	if (count != partition->record_count) {
		return wf_fail(WEFT_INTERNAL, "partition %u has %" PRIu64 " rows, had %u",
			       partition->partition, partition->record_count, count);
	}
	return WEFT_OK;
}

/* What was put back is what was fetched, whatever lanes there are now. */
static enum weft_status
compare_table(struct trainer *tr, uint32_t idx)
{
	struct keeping keeping = {.table = &tr->job->from->table[idx],
				  .floats = weft_table_record_floats(tr->table[idx])};
	const struct weft_table_reader reader = {same_partition, same_record, &keeping};
	uint64_t step = 0;
	enum weft_status st = weft_table_step(tr->table[idx], &step);
	if (st == WEFT_OK) {
		st = weft_table_read(tr->table[idx], &reader);
	}
	bool all = step == keeping.table->step && keeping.next == keeping.table->all;
	if (st == WEFT_OK && !all) {
		return wf_fail(WEFT_INTERNAL, "table %u is at step %" PRIu64 ", was at %" PRIu64,
			       idx, step, keeping.table->step);
	}
	return st;
}

static enum weft_status
restore_tables(struct trainer *tr)
{
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < tr->job->table_count && st == WEFT_OK && tr->id == 0; i++) {
		struct keeping keeping = {.table = &tr->job->from->table[i]};
		const struct weft_table_writer writer = {.partition = kept_partition,
							 .record = kept_record,
							 .arg = &keeping,
							 .step = tr->job->from->table[i].step};
		st = weft_table_write(tr->table[i], &writer);
	}
	for (uint32_t i = 0; i < tr->job->table_count && st == WEFT_OK && tr->id == 0; i++) {
		st = compare_table(tr, i);
	}
	return st == WEFT_OK ? weft_barrier(tr->session) : st;
}

static enum weft_status
open_session(struct trainer *tr, struct wf_env *env)
{
	const struct sparse_job *job = tr->job;
	struct weft_session_opts opts;
	weft_session_opts_init(&opts);
	opts.pservers = job->pservers;
	opts.port = job->port != 0 ? job->port : opts.port;
	opts.ports_num = job->ports_num;
	opts.ports_num_for_sparse = job->ports_num_for_sparse;
	opts.num_gradient_servers = job->trainers;
	opts.trainer_id = tr->id;
	opts.grad_reduce = job->mean ? WEFT_REDUCE_MEAN : WEFT_REDUCE_SUM;
	opts.sparse_mode = job->mode;
	opts.sparse_staleness = job->staleness;
	opts.sparse_discard_ratio = job->discard_ratio;
	opts.transport = job->transport;
	opts.progress = job->threaded ? WEFT_PROGRESS_THREAD : WEFT_PROGRESS_CALLER;
	opts.slice_bytes = 256;
	if (job->reconnect_timeout_ns != 0) {
		opts.reconnect_timeout_ns = job->reconnect_timeout_ns;
	}
	if (job->connect_timeout_ns != 0) {
		opts.connect_timeout_ns = job->connect_timeout_ns;
	}
	enum weft_status st = wf_session_open_in(env, &opts, &tr->session);
	for (uint32_t i = 0; i < 2 && job->tensors && st == WEFT_OK; i++) {
		const struct weft_tensor_opts t = {.name = i == 0 ? "a" : "b", .rows = 70 + i};
		st = weft_tensor_add(tr->session, &t, &tr->tensor[i]);
	}
	for (uint32_t i = 0; i < job->table_count && st == WEFT_OK; i++) {
		st = declare_table(tr, i);
	}
	if (st == WEFT_OK) {
		st = weft_session_seal(tr->session);
	}
	if (st == WEFT_OK && job->from != NULL && tr->id == 0) {
		st = restore_tensors(tr);
	}
	if (st == WEFT_OK) {
		st = weft_session_start(tr->session);
	}
	return st == WEFT_OK && job->from != NULL ? restore_tables(tr) : st;
}

static enum weft_status
pull(struct trainer *tr, uint64_t step, uint32_t which)
{
	enum weft_status st = WEFT_OK;
	unsigned flags = WEFT_ROWS_CREATE | (tr->job->in_order ? WEFT_ROWS_IN_ORDER : 0);
	for (uint32_t i = 0; i < tr->job->table_count && st == WEFT_OK; i++) {
		struct batch *b = &tr->batch[i][which];
		b->count = keys_of(tr->job, tr->id, step, i, b->key);
		st = weft_rows_pull(tr->table[i], b->key, b->count, flags, &b->rows);
		if (st == WEFT_AGAIN) {
			st = WEFT_INTERNAL;
		}
	}
	return st;
}

static enum weft_status
push_tensors(struct trainer *tr, uint64_t step)
{
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < 2 && tr->job->tensors && st == WEFT_OK; i++) {
		float *grad = weft_tensor_grad(tr->tensor[i]);
		for (uint64_t e = 0; e < weft_tensor_count(tr->tensor[i]); e++) {
			grad[e] = grad_of(tr->job, step, e + tr->id, i);
		}
		st = weft_push(tr->tensor[i]);
	}
	return st;
}

/* Row by row in the caller's order, as the sequential run has them. */
static void
see(struct trainer *tr, const struct batch *b, uint32_t dim)
{
	const float *values = weft_rows_values(b->rows);
	const uint32_t *place = weft_rows_place(b->rows);
	for (uint32_t i = 0; i < b->count; i++) {
		WF_ASSERT(weft_rows_keys(b->rows)[place[i]] == b->key[i]);
		wf_digest_bytes(tr->digest, values + (size_t)place[i] * dim, sizeof(float) * dim);
	}
}

static enum weft_status
compute_and_push(struct trainer *tr, uint64_t step, uint32_t which)
{
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < tr->job->table_count && st == WEFT_OK; i++) {
		struct batch *b = &tr->batch[i][which];
		uint32_t dim = tr->job->table[i].dim;
		const uint32_t *place = weft_rows_place(b->rows);
		see(tr, b, dim);
		sparse_job_check_order(tr->job, tr->table[i], b->rows, b->key, b->count);
		for (uint32_t k = 0; k < b->count; k++) {
			fill_grads(tr->job, step, dim, b->key, k,
				   weft_rows_values(b->rows) + (size_t)place[k] * dim, b->grad);
		}
		fill_scores(b->count, b->key, b->show, b->click);
		if (is_idle(tr->job, tr->id, step, i)) {
			weft_rows_free(b->rows);
			continue;
		}
		st = weft_rows_push(b->rows, b->grad, b->show, b->click);
	}
	return st;
}

static enum weft_status
wait_rows(struct trainer *tr, uint32_t which)
{
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < tr->job->table_count && st == WEFT_OK; i++) {
		st = weft_rows_wait(tr->batch[i][which].rows);
	}
	return st;
}

static enum weft_status
train_step(struct trainer *tr, uint64_t step, bool is_first, bool is_last)
{
	uint32_t which = (uint32_t)(step % 2);
	bool prefetch = tr->job->prefetch;
	enum weft_status st = WEFT_OK;
	if (!prefetch || is_first) {
		st = pull(tr, step, which);
	}
	if (st == WEFT_OK) {
		st = wait_rows(tr, which);
	}
	if (st == WEFT_OK) {
		st = weft_step(tr->session, samples_of(tr->id, step), 0);
	}
	if (st == WEFT_OK && prefetch && !is_last) {
		st = pull(tr, step + 1, 1 - which);
	}
	if (st == WEFT_OK) {
		st = push_tensors(tr, step);
	}
	if (st == WEFT_OK) {
		st = compute_and_push(tr, step, which);
	}
	return st == WEFT_OK ? weft_wait_all(tr->session) : st;
}

static enum weft_status
evaluate(struct trainer *tr)
{
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < tr->job->table_count && st == WEFT_OK; i++) {
		struct batch *b = &tr->batch[i][0];
		eval_keys(&tr->job->table[i], b->key);
		b->count = EVAL_KEYS;
		st = weft_rows_pull(tr->table[i], b->key, EVAL_KEYS, 0, &b->rows);
		if (st == WEFT_OK) {
			st = weft_rows_wait(b->rows);
		}
		if (st == WEFT_OK) {
			see(tr, b, tr->job->table[i].dim);
			weft_rows_free(b->rows);
		}
	}
	return st;
}

static enum weft_status
train(struct trainer *tr)
{
	const struct sparse_job *job = tr->job;
	enum weft_status st = WEFT_OK;
	for (uint32_t p = job->first_pass; p < job->passes && st == WEFT_OK; p++) {
		if (p == job->digest_pass && p > job->first_pass) {
			wf_digest_destroy(tr->digest);
			tr->digest = NULL;
			st = wf_digest_create(tr->env, &tr->digest);
		}
		for (uint32_t at = 0; at < job->steps[tr->id] && st == WEFT_OK; at++) {
			uint64_t step = weft_steps(tr->session) + 1;
			st = train_step(tr, step, at == 0, at + 1 == job->steps[tr->id]);
		}
		st = st == WEFT_OK ? weft_pass_end(tr->session) : st;
	}
	if (st == WEFT_OK && job->to != NULL && tr->id == 0) {
		st = keep(tr);
	}
	return st == WEFT_OK ? evaluate(tr) : st;
}

/* What is said to have travelled is what rows take in their format. */
static bool
bytes_are_right(struct trainer *tr)
{
	bool right = true;
	for (uint32_t i = 0; i < tr->job->table_count; i++) {
		const struct sparse_table_kind *kind = &tr->job->table[i];
		size_t row = kind->dim * (kind->wire == WEFT_VALUES_F32 ? 4 : 2);
		struct weft_table_stats stats = {.struct_bytes = sizeof(stats)};
		right = right && weft_table_stats(tr->table[i], &stats) == WEFT_OK &&
			stats.row_bytes == stats.rows_pulled * row &&
			stats.grad_bytes == stats.rows_pushed * (row + (kind->scores ? 8 : 0)) &&
			stats.copied_bytes <= 2 * stats.row_bytes * (row != kind->dim * 4);
	}
	return right;
}

static void
note(struct trainer *tr, enum weft_status st, struct sparse_seen *out)
{
	struct weft_sparse_stats stats = {.struct_bytes = sizeof(stats)};
	out->status = st;
	(void)snprintf(out->why, sizeof(out->why), "%.250s",
		       st != WEFT_OK ? weft_last_error() : "");
	out->digest = wf_digest_value(tr->digest);
	if (tr->session != NULL && weft_sparse_stats(tr->session, &stats) == WEFT_OK) {
		out->pulls_repeated = stats.pulls_repeated;
		out->pushes_repeated = stats.pushes_repeated;
		out->pushes_lost = stats.pushes_lost;
		out->parts_ahead = wf_counted(&wf_client_of(tr->session)->counts.parts_ahead);
	}
	if (st == WEFT_OK && !bytes_are_right(tr)) {
		out->status = WEFT_INTERNAL;
		(void)snprintf(out->why, sizeof(out->why), "other bytes than those of its rows");
	}
	if (st == WEFT_OK && tr->job->tensors &&
	    weft_digest(tr->session, &out->dense_digest) != WEFT_OK) {
		out->status = WEFT_INTERNAL;
	}
}

void
sparse_job_train(const struct sparse_job *job, struct wf_env *env, uint32_t trainer,
		 struct sparse_seen *out)
{
	*out = (struct sparse_seen){0};
	struct wf_env *own = NULL;
	if (env == NULL && wf_env_system_create(WF_LOG_WARN, 2, &own) != WEFT_OK) {
		out->status = WEFT_NOMEM;
		return;
	}
	struct wf_env *memory = env != NULL ? env : own; /* a simulated one outlives a kill */
	struct trainer *tr = wf_zalloc(memory, sizeof(*tr));
	if (tr == NULL) {
		out->status = WEFT_NOMEM;
		wf_env_system_destroy(own);
		return;
	}
	tr->job = job;
	tr->id = trainer;
	tr->env = memory;
	enum weft_status st = wf_digest_create(memory, &tr->digest);
	if (st == WEFT_OK) {
		st = open_session(tr, env);
	}
	if (st == WEFT_OK) {
		st = train(tr);
	}
	note(tr, st, out);
	if (st == WEFT_OK) {
		st = weft_session_close(tr->session);
		if (st != WEFT_OK && out->status == WEFT_OK) {
			out->status = st;
			(void)snprintf(out->why, sizeof(out->why), "%.250s", weft_last_error());
		}
	} else {
		weft_session_abort(tr->session, st, out->why);
	}
	wf_digest_destroy(tr->digest);
	wf_free(memory, tr, sizeof(*tr));
	wf_env_system_destroy(own);
}

void
sparse_job_draw_wire(struct sparse_job *job)
{
	static const enum weft_value_format drawn[5] = {WEFT_VALUES_BF16, WEFT_VALUES_F16};
	struct wf_rng rng;
	wf_rng_init(&rng, job->seed, 22);
	for (uint32_t i = 0; i < job->table_count; i++) {
		job->table[i].wire = drawn[wf_rng_below(&rng, 5)]; /* else 0, F32 */
	}
}

void
sparse_job_draw(uint64_t seed, struct sparse_job *out)
{
	static const char *const methods[] = {"sgd",  "momentum",     "adagrad",
					      "adam", "adam_rowwise", "sparse_momentum"};
	static const char *const inits[] = {"zero", "uniform", "normal"};
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 21);
	*out = (struct sparse_job){
		.seed = seed,
		.trainers = 1 + (uint32_t)wf_rng_below(&rng, 3),
		.passes = 1 + (uint32_t)wf_rng_below(&rng, 2),
		.table_count = 1 + (uint32_t)wf_rng_below(&rng, 3),
		.keys_most = 1 + (uint32_t)wf_rng_below(&rng, 120),
		.idle_every = wf_rng_below(&rng, 3) == 0 ? 2 + (uint32_t)wf_rng_below(&rng, 3) : 0,
		.mean = wf_rng_below(&rng, 2) == 0,
	};
	for (uint32_t t = 0; t < out->trainers; t++) {
		out->steps[t] = 2 + (uint32_t)wf_rng_below(&rng, 4);
	}
	for (uint32_t i = 0; i < out->table_count; i++) {
		struct sparse_table_kind *kind = &out->table[i];
		kind->dim = 1 + (uint32_t)wf_rng_below(&rng, DIM_MAX);
		kind->vocabulary = wf_rng_below(&rng, 2) == 0 ? 0 : EVAL_KEYS;
		kind->method = methods[wf_rng_below(&rng, 6)];
		kind->init = inits[wf_rng_below(&rng, 3)];
		kind->scores = kind->vocabulary == 0 && wf_rng_below(&rng, 4) == 0;
	}
}
