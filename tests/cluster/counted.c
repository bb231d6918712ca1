/* SPDX-License-Identifier: Apache-2.0 */
/* counted: see counted.h. Every push subtracts 1 from each element of "count" and from the rows of
 * its keys, with a rate of 1; "sum" has gradients that follow from the seed. Thread: one. */
#include "tests/cluster/counted.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/settings.h"
#include "sparse/server/service.h"
#include "weft/restart.h"

#define SLICE_FLOATS 64u
#define KEYS 40u
#define BATCH_MAX 12u
#define DIM 2u
#define RING_BYTES (32 * SLICE_FLOATS * sizeof(float))
#define TABLE_RING_BYTES ((uint64_t)2 << 20) /* the least is two blocks of 256 KiB */

struct member {
	struct counted *run;
	uint32_t idx;
	uint32_t step; /* that it has made */
	struct weft_session *session;
	struct weft_tensor *count, *sum;    /* sum: NULL in the asynchronous modes */
	struct weft_table *table;           /* NULL: none */
	float expected[COUNTED_FLOATS_MAX]; /* of `sum`, after so many steps: */
	uint32_t computed;
	float least[COUNTED_FLOATS_MAX]; /* of `count`: what was seen last */
};

static bool
is_sync(const struct counted *run)
{
	return run->mode != COUNTED_ASYNC && run->mode != COUNTED_BOUNDED;
}

static bool
has_table(const struct counted *run)
{
	return run->mode == COUNTED_SPARSE ||
	       (run->mode == COUNTED_SNAPSHOTS && run->crew.seed % 8 == 0);
}

/* ---- what follows from the seed ---- */

static void
draw_gradient(const struct counted *run, uint32_t trainer, uint32_t step, float *out)
{
	struct wf_rng rng;
	wf_rng_init(&rng, run->crew.seed, 1000 * (trainer + 1) + step);
	for (uint32_t i = 0; i < run->floats; i++) {
		out[i] = (float)(wf_rng_f64(&rng) - 0.5);
	}
}

static uint32_t
draw_keys(const struct counted *run, uint32_t trainer, uint32_t step, uint64_t *out)
{
	struct wf_rng rng;
	wf_rng_init(&rng, run->crew.seed, 100000 + 1000 * (trainer + 1) + step);
	uint32_t count = (uint32_t)wf_rng_below(&rng, BATCH_MAX + 1);
	for (uint32_t i = 0; i < count; i++) {
		out[i] = wf_rng_below(&rng, KEYS);
	}
	return count;
}

/* Adds to the parameters what one step of all trainers does to them. */
static void
add_step(const struct counted *run, uint32_t step, float *param)
{
	float sum[COUNTED_FLOATS_MAX] = {0};
	float grad[COUNTED_FLOATS_MAX];
	for (uint32_t t = 0; t < run->crew.trainers; t++) {
		if (run->steps[t] < step) {
			continue;
		}
		draw_gradient(run, t, step, grad);
		for (uint32_t i = 0; i < run->floats; i++) {
			sum[i] += grad[i];
		}
	}
	for (uint32_t i = 0; i < run->floats; i++) {
		param[i] -= sum[i];
	}
}

/* The sum after a step, which is not before the last one. */
static void
compute(struct member *m, uint32_t step)
{
	while (m->computed < step) {
		add_step(m->run, ++m->computed, m->expected);
	}
}

/* Pushes of all trainers up to a step. */
static uint32_t
count_pushes(const struct counted *run, uint32_t step)
{
	uint32_t count = 0;
	for (uint32_t t = 0; t < run->crew.trainers; t++) {
		count += run->steps[t] < step ? run->steps[t] : step;
	}
	return count;
}

static void
count_keys(const struct counted *run, uint32_t step, uint32_t out[KEYS])
{
	uint64_t key[BATCH_MAX];
	memset(out, 0, KEYS * sizeof(*out));
	for (uint32_t t = 0; t < run->crew.trainers; t++) {
		for (uint32_t s = 1; s <= step && s <= run->steps[t]; s++) {
			uint32_t count = draw_keys(run, t, s, key);
			for (uint32_t i = 0; i < count; i++) {
				out[key[i]]++;
			}
		}
	}
}

/* ---- what a trainer compares ---- */

/* Of one version, and a whole number between what it has seen and all that were ever pushed. */
static enum weft_status
check_count(struct member *m)
{
	const struct counted *run = m->run;
	const float *value = weft_tensor_param(m->count);
	uint32_t begun = 0;
	for (uint32_t t = 0; t < run->crew.trainers; t++) {
		begun += run->pushed[t];
	}
	for (uint32_t i = 0; i < run->floats; i++) {
		const float first = value[i - i % SLICE_FLOATS];
		const bool in_range = is_sync(run) ? first == (float)count_pushes(run, m->step)
						   : first > m->least[i] && first <= (float)begun;
		if (value[i] != first || !in_range) {
			return wf_fail(WEFT_DATA,
				       "element %u is %g after step %u, its slice begins with %g, "
				       "before that step it was %g; %u pushes were begun",
				       i, (double)value[i], m->step, (double)first,
				       (double)m->least[i], begun);
		}
		m->least[i] = value[i];
	}
	return WEFT_OK;
}

static enum weft_status
check_sum(struct member *m)
{
	if (m->sum == NULL) {
		return WEFT_OK;
	}
	compute(m, m->step);
	const bool same =
		memcmp(weft_tensor_param(m->sum), m->expected, m->run->floats * sizeof(float)) == 0;
	return same ? WEFT_OK
		    : wf_fail(WEFT_DATA, "the sum after step %u has other bits than computed",
			      m->step);
}

/* Rows that were pulled after `step` steps. */
static enum weft_status
check_rows(const struct member *m, const uint64_t *key, uint32_t count, uint32_t step,
	   const struct weft_rows *rows)
{
	uint32_t expected[KEYS];
	count_keys(m->run, step, expected);
	for (uint32_t i = 0; i < count; i++) {
		const float *row = weft_rows_values(rows) + (size_t)weft_rows_place(rows)[i] * DIM;
		for (uint32_t d = 0; d < DIM; d++) {
			if (row[d] != (float)expected[key[i]]) {
				return wf_fail(WEFT_DATA,
					       "row %u is %g after step %u, not %u: a push "
					       "counted twice, or not",
					       (unsigned)key[i], (double)row[d], step,
					       expected[key[i]]);
			}
		}
	}
	return WEFT_OK;
}

static enum weft_status
check_bound(const struct member *m)
{
	const struct counted *run = m->run;
	for (uint32_t t = 0; t < run->crew.trainers && run->mode == COUNTED_BOUNDED; t++) {
		const bool is_done = run->pushed[t] == run->steps[t];
		if (!is_done && run->pushed[t] + run->staleness < m->step) {
			return wf_fail(WEFT_DATA, "step %u was answered, trainer %u has pushed %u",
				       m->step, t, run->pushed[t]);
		}
	}
	return WEFT_OK;
}

/* ---- a trainer ---- */

static enum weft_status
add_table(struct member *m)
{
	struct weft_table_opts table;
	weft_table_opts_init(&table);
	table.name = "rows";
	table.dim = DIM;
	table.batch_keys_max = KEYS;
	table.vocabulary = KEYS;
	table.optimizer.method = "sgd";
	table.optimizer.learning_rate = 1;
	return weft_table_add(m->session, &table, &m->table);
}

static enum weft_status
open_session(struct member *m, struct wf_env *env)
{
	const struct counted *run = m->run;
	const struct weft_tensor_opts count = {.name = "count", .rows = run->floats};
	const struct weft_tensor_opts sum = {.name = "sum", .rows = run->floats};
	struct weft_session_opts opts;
	crew_fill_opts(&run->crew, m->idx, &opts);
	opts.slice_bytes = SLICE_FLOATS * sizeof(float);
	opts.optimizer.learning_rate = 1;
	opts.dense_mode = run->mode == COUNTED_ASYNC     ? WEFT_DENSE_ASYNC
			  : run->mode == COUNTED_BOUNDED ? WEFT_DENSE_BOUNDED
							 : WEFT_DENSE_SYNC;
	opts.dense_staleness = run->staleness;
	enum weft_status st = wf_session_open_in(env, &opts, &m->session);
	st = st == WEFT_OK ? weft_tensor_add(m->session, &count, &m->count) : st;
	if (st == WEFT_OK && is_sync(run)) {
		st = weft_tensor_add(m->session, &sum, &m->sum);
	}
	if (st == WEFT_OK && has_table(run)) {
		st = add_table(m);
	}
	st = st == WEFT_OK ? weft_session_seal(m->session) : st;
	return st == WEFT_OK ? weft_session_start(m->session) : st;
}

static enum weft_status
pull(struct member *m, uint32_t step, struct weft_rows **out)
{
	uint64_t key[BATCH_MAX];
	const uint32_t count = draw_keys(m->run, m->idx, step, key);
	enum weft_status st = weft_rows_pull(m->table, key, count, WEFT_ROWS_CREATE, out);
	st = st == WEFT_OK ? weft_rows_wait(*out) : st;
	return st == WEFT_OK ? check_rows(m, key, count, step - 1, *out) : st;
}

static enum weft_status
push(struct member *m, struct weft_rows *rows)
{
	float minus[BATCH_MAX * DIM];
	for (uint32_t i = 0; i < BATCH_MAX * DIM; i++) {
		minus[i] = -1;
	}
	enum weft_status st = rows != NULL ? weft_rows_push(rows, minus, NULL, NULL) : WEFT_OK;
	for (uint32_t i = 0; i < m->run->floats; i++) {
		weft_tensor_grad(m->count)[i] = -1;
	}
	st = st == WEFT_OK ? weft_push(m->count) : st;
	if (st == WEFT_OK && m->sum != NULL) {
		draw_gradient(m->run, m->idx, m->step, weft_tensor_grad(m->sum));
		st = weft_push(m->sum);
	}
	return st == WEFT_OK ? weft_wait_all(m->session) : st;
}

static enum weft_status
step(struct member *m)
{
	struct weft_rows *rows = NULL;
	const uint32_t after = m->step + 1;
	enum weft_status st = m->table != NULL ? pull(m, after, &rows) : WEFT_OK;
	if (st == WEFT_OK && m->run->mode == COUNTED_SNAPSHOTS) {
		st = weft_session_position(m->session, &after, sizeof(after));
	}
	st = st == WEFT_OK ? weft_step(m->session, 1, 0) : st;
	m->run->pushed[m->idx]++;
	m->step = after;
	st = st == WEFT_OK ? push(m, rows) : st;
	st = st == WEFT_OK ? check_count(m) : st;
	st = st == WEFT_OK ? check_sum(m) : st;
	return st == WEFT_OK ? check_bound(m) : st;
}

/* Where the trainer goes on. */
static enum weft_status
find_place(struct member *m)
{
	struct weft_resumed resumed;
	if (!weft_session_resumed(m->session, &resumed)) {
		return WEFT_OK;
	}
	m->run->job.resumed++;
	if (resumed.position_bytes == sizeof(m->step)) {
		memcpy(&m->step, resumed.position, sizeof(m->step));
	}
	m->run->pushed[m->idx] = m->step;
	const uint32_t own = m->run->steps[m->idx];
	const uint32_t at = (uint32_t)resumed.step < own ? (uint32_t)resumed.step : own;
	return m->step == at ? WEFT_OK
			     : wf_fail(WEFT_DATA, "trainer %u goes on at its step %u, not %u",
				       m->idx, m->step, at);
}

/* When all trainers have pushed all: each push has counted once. */
static enum weft_status
check_end(struct member *m)
{
	const struct counted *run = m->run;
	const uint32_t all = count_pushes(run, COUNTED_STEPS_MAX);
	for (uint32_t i = 0; i < run->floats; i++) {
		if (weft_tensor_param(m->count)[i] != (float)all) {
			return wf_fail(WEFT_DATA, "element %u is %g at the end, not %u", i,
				       (double)weft_tensor_param(m->count)[i], all);
		}
	}
	compute(m, COUNTED_STEPS_MAX);
	const bool same = m->sum == NULL || memcmp(weft_tensor_param(m->sum), m->expected,
						   run->floats * sizeof(float)) == 0;
	return same ? WEFT_OK : wf_fail(WEFT_DATA, "the last sum has other bits than computed");
}

static enum weft_status
check_all_rows(struct member *m)
{
	uint64_t key[KEYS];
	struct weft_rows *rows = NULL;
	for (uint32_t k = 0; k < KEYS; k++) {
		key[k] = k;
	}
	enum weft_status st = weft_rows_pull(m->table, key, KEYS, 0, &rows);
	st = st == WEFT_OK ? weft_rows_wait(rows) : st;
	st = st == WEFT_OK ? check_rows(m, key, KEYS, COUNTED_STEPS_MAX, rows) : st;
	weft_rows_free(rows);
	return st;
}

static enum weft_status
train(struct member *m)
{
	enum weft_status st = find_place(m);
	while (m->step < m->run->steps[m->idx] && st == WEFT_OK) {
		st = step(m);
	}
	st = st == WEFT_OK ? weft_pass_end(m->session) : st;
	st = st == WEFT_OK ? check_end(m) : st;
	m->run->end[m->idx].trained = st == WEFT_OK;
	return st == WEFT_OK && m->table != NULL ? check_all_rows(m) : st;
}

static int
run_trainer(struct wf_env *env, void *arg)
{
	const struct crew_seat *seat = arg;
	struct member member = {.run = seat->crew->run, .idx = seat->idx};
	struct counted_end *end = &member.run->end[seat->idx];
	enum weft_status st = open_session(&member, env);
	st = st == WEFT_OK ? train(&member) : st;
	(void)snprintf(end->text, sizeof(end->text), "%s", st == WEFT_OK ? "" : weft_last_error());
	if (st == WEFT_OK) {
		st = weft_session_close(member.session);
		(void)snprintf(end->text, sizeof(end->text), "%s",
			       st == WEFT_OK ? "" : weft_last_error());
	} else {
		(void)weft_session_abort(member.session, st, "failed");
	}
	end->returned = true;
	end->status = st;
	seat->crew->ended += st == WEFT_OK ? 1 : 0;
	return 0;
}

/* ---- a job ---- */

static void
fill_server(const struct crew *crew, struct wf_server_opts *out)
{
	const struct counted *run = crew->run;
	killed_fill_server(&run->job, out);
}

void
counted_draw(struct wf_rng *rng, uint64_t seed, enum counted_mode mode, struct counted *out)
{
	*out = (struct counted){.mode = mode};
	killed_draw(rng, seed, &out->crew);
	out->crew.run_trainer = run_trainer;
	out->crew.fill_server = fill_server;
	out->crew.ends_badly = true;
	out->crew.sparse = has_table(out) ? &wf_sparse_service : NULL;
	out->floats = 1 + (uint32_t)wf_rng_below(rng, COUNTED_FLOATS_MAX);
	out->staleness = mode == COUNTED_BOUNDED ? 1 + (uint32_t)wf_rng_below(rng, 3) : 0;
	out->job.snapshot_steps = 1 + wf_rng_below(rng, 3);
	out->job.keep = 2;
	out->job.ring_bytes = has_table(out) ? TABLE_RING_BYTES : RING_BYTES;
	const uint32_t most = mode == COUNTED_SNAPSHOTS ? COUNTED_STEPS_MAX : 16;
	for (uint32_t t = 0; t < out->crew.trainers; t++) {
		out->steps[t] = 1 + (uint32_t)wf_rng_below(rng, most);
	}
}

void
counted_reset(struct counted *run)
{
	run->crew.run = run;
	run->crew.why[0] = '\0';
	memset(run->pushed, 0, sizeof(run->pushed));
	memset(run->end, 0, sizeof(run->end));
}
