/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs of pservers with --on_trainer_death=drop, whose trainers leave at step borders or are
 * killed, and in whose places other processes join, at times of chance. The others end well, and
 * what they end with is computed: each slice, and each row, is that of a sequential run of those
 * who took part in each step. Of a trainer that was killed the last step may be missing,
 * everywhere, or, if the log names it as counted in half, in some slices. One that has left is
 * counted to its last step, and one that has joined from the first step that it made. Prints what
 * has happened, and fails below the floors. Usage: test_join FIRST COUNT MODE (sync, tables,
 * async, snapshots, or deaths: of those who are about to join or to leave); WEFT_SEED=S runs one
 * seed, WEFT_LONG ten times as many. Thread: one. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/settings.h"
#include "sparse/server/service.h"
#include "tests/cluster/killed.h"
#include "tests/support/crew.h"
#include "tests/support/sweep.h"
#include "weft/members.h"
#include "weft/restart.h"
#include "weft/sparse.h"
#include "weft/weft.h"

#define PASSES 3u
#define STEPS_MAX 14u /* of a pass */
#define STAYS_MAX 9u  /* processes that are trainers, in any place */
#define MADE_MAX (PASSES * STEPS_MAX + 1)
#define FLOATS_MAX 300u
#define SLICE_FLOATS 16u
#define KEYS 24u
#define KEYS_MAX 6u /* of a batch */
#define DIM 2u
#define RATE_A 0.001
#define LOG_BYTES ((size_t)8 << 20)

/* When a process is killed, from when on: it has joined, or says that it leaves. */
enum death { DIES_NOT, DIES_AT_FIRST, DIES_LEAVING };

/* A process in a place. */
struct stay {
	struct job *job;
	uint32_t idx, place;
	bool joins;
	uint32_t leave_after;      /* steps of its own; 0: it does not leave */
	uint64_t begin_ns, end_ns; /* begin 0: with the job; end: it is killed then; 0: it is not */
	enum death death;
	uint64_t dies_after_ns; /* of that */
	struct wf_proc *proc;   /* of the world */

	/* What happened. */
	bool is_in, is_leaving, has_left, has_ended;
	uint64_t joined_after, told_samples; /* joins: as the session says */
	uint32_t made;                       /* steps that it has begun */
	uint64_t number[MADE_MAX];           /* of them, [made], in the job */
	char text[256];
	float param[FLOATS_MAX];
	float rows[KEYS];
};

struct job {
	struct crew crew;
	struct wf_world *world;
	struct killed kept; /* snapshots; dir "": none */
	bool has_table, is_mean, is_async, has_deaths;
	uint64_t think_ns; /* of a step */
	uint32_t floats;
	uint32_t steps[PASSES][CREW_TRAINERS_MAX];
	struct stay stay[STAYS_MAX]; /* those with which the job begins come first */
	uint32_t stays;
	bool has_half;
};

/* All that has happened to all jobs. */
struct sums {
	uint64_t joined, left, dropped, rejoined, died_joining, died_leaving;
};

__attribute__((format(printf, 2, 3))) static bool
complain(struct job *job, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	if (job->crew.why[0] == '\0') {
		(void)vsnprintf(job->crew.why, sizeof(job->crew.why), format, args);
	}
	va_end(args);
	return false;
}

/* ---- what follows from the seed ---- */

/* Sums of them are exact in any order. */
static void
draw_gradient(const struct job *job, uint32_t stay, uint32_t made, float *out)
{
	struct wf_rng rng;
	wf_rng_init(&rng, job->crew.seed, 1000 * (stay + 1) + made);
	for (uint32_t i = 0; i < job->floats; i++) {
		out[i] = (float)wf_rng_below(&rng, 64) - 32;
	}
}

static uint64_t
samples_of(uint32_t stay, uint32_t made)
{
	return 1 + (stay * 7 + made * 3) % 11;
}

static uint32_t
draw_keys(const struct job *job, uint32_t stay, uint32_t made, uint64_t *out)
{
	struct wf_rng rng;
	wf_rng_init(&rng, job->crew.seed, 100000 + 1000 * (stay + 1) + made);
	uint32_t count = (uint32_t)wf_rng_below(&rng, KEYS_MAX + 1);
	for (uint32_t i = 0; i < count; i++) {
		out[i] = (wf_rng_below(&rng, KEYS / KEYS_MAX) * KEYS_MAX + i) % KEYS;
	}
	return count;
}

/* ---- the sequential run ---- */

/* How many steps of a stay count; with `mask` bit i the last one of stay i, which was killed. */
static uint32_t
counted(const struct job *job, uint32_t i, uint32_t mask)
{
	const struct stay *stay = &job->stay[i];
	const bool is_sure = stay->is_leaving || stay->has_ended || stay->made == 0;
	return is_sure || (mask & 1u << i) != 0 ? stay->made : stay->made - 1;
}

/* Adds step `number` of the job. `other`: as counted, of those whose samples make the rate. */
static bool
add_step(const struct job *job, uint32_t mask, uint32_t other, uint64_t number,
	 uint64_t *samples_before, float *param)
{
	float sum[FLOATS_MAX] = {0};
	float grad[FLOATS_MAX];
	uint64_t own = 0, all = 0;
	bool more = false;
	for (uint32_t i = 0; i < job->stays; i++) {
		const struct stay *stay = &job->stay[i];
		for (uint32_t n = 1; n <= stay->made; n++) {
			more = more || stay->number[n] >= number;
			if (stay->number[n] != number) {
				continue;
			}
			all += n <= counted(job, i, other) ? samples_of(i, n) : 0;
			if (n > counted(job, i, mask)) {
				continue;
			}
			own += samples_of(i, n);
			draw_gradient(job, i, n, grad);
			for (uint32_t e = 0; e < job->floats; e++) {
				sum[e] += grad[e];
			}
		}
	}
	for (uint32_t e = 0; e < job->floats && own > 0; e++) {
		double rate = 1.0 / (1.0 + RATE_A * (double)*samples_before);
		param[e] -= job->is_mean ? (float)(rate * (double)sum[e] / (double)own) : sum[e];
	}
	*samples_before += all;
	return more;
}

static void
compute(const struct job *job, uint32_t mask, uint32_t other, float *param)
{
	uint64_t samples = 0;
	memset(param, 0, FLOATS_MAX * sizeof(*param));
	for (uint64_t number = 1; add_step(job, mask, other, number, &samples, param); number++) {
	}
}

static uint32_t
count_key(const struct job *job, uint32_t mask, uint32_t key)
{
	uint64_t keys[KEYS_MAX];
	uint32_t count = 0;
	for (uint32_t i = 0; i < job->stays; i++) {
		for (uint32_t n = 1; n <= counted(job, i, mask); n++) {
			uint32_t drawn = draw_keys(job, i, n, keys);
			for (uint32_t k = 0; k < drawn; k++) {
				count += keys[k] == key ? 1 : 0;
			}
		}
	}
	return count;
}

/* ---- a trainer ---- */

struct member {
	struct stay *stay;
	uint32_t pass, batch;
	struct wf_env *env;
	struct weft_session *session;
	struct weft_tensor *tensor;
	struct weft_table *table;
};

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

static enum weft_dense_mode
mode_of(const struct job *job)
{
	enum weft_dense_mode lags = job->crew.seed % 2 == 0 ? WEFT_DENSE_ASYNC : WEFT_DENSE_BOUNDED;
	return job->is_async ? lags : WEFT_DENSE_SYNC;
}

static enum weft_status
open_session(struct member *m)
{
	const struct job *job = m->stay->job;
	const struct weft_tensor_opts tensor = {.name = "t", .rows = job->floats};
	struct weft_session_opts opts;
	struct weft_settings *settings = NULL;
	crew_fill_opts(&job->crew, m->stay->place, &opts);
	opts.slice_bytes = SLICE_FLOATS * sizeof(float);
	opts.optimizer.learning_rate = 1;
	opts.dense_mode = mode_of(job);
	opts.dense_staleness = opts.dense_mode == WEFT_DENSE_BOUNDED ? 2 : 0;
	if (job->is_mean) {
		opts.grad_reduce = WEFT_REDUCE_MEAN;
		opts.optimizer.schedule = "poly";
		opts.optimizer.schedule_a = RATE_A;
		opts.optimizer.schedule_b = 1;
	}
	enum weft_status st = weft_settings_create(WEFT_SETTINGS_SESSION, &settings);
	st = st == WEFT_OK ? weft_settings_set(settings, "join", m->stay->joins ? "1" : "0") : st;
	if (st == WEFT_OK) {
		wf_settings_set_env(settings, m->env);
		opts.settings = settings;
		st = weft_session_open(&opts, &m->session);
	}
	weft_settings_destroy(settings);
	st = st == WEFT_OK ? weft_tensor_add(m->session, &tensor, &m->tensor) : st;
	st = st == WEFT_OK && job->has_table ? add_table(m) : st;
	st = st == WEFT_OK ? weft_session_seal(m->session) : st;
	return st == WEFT_OK ? weft_session_start(m->session) : st;
}

/* A joiner goes on in the data where its predecessor was, or begins the pass. */
static enum weft_status
find_place(struct member *m)
{
	struct weft_resumed at;
	uint32_t position[2];
	if (!weft_session_resumed(m->session, &at)) {
		return m->stay->joins ? wf_fail(WEFT_DATA, "a joiner is not told where it begins")
				      : WEFT_OK;
	}
	m->pass = (uint32_t)at.pass_count;
	m->stay->joined_after = at.step;
	m->stay->told_samples = at.samples;
	if (at.position_bytes == sizeof(position)) {
		memcpy(position, at.position, sizeof(position));
		m->batch = position[0] == m->pass ? position[1] : 0;
	}
	if (m->pass >= PASSES) {
		return wf_fail(WEFT_DATA, "a joiner begins in pass %u of %u", m->pass, PASSES);
	}
	return WEFT_OK;
}

static enum weft_status
begin_step(struct member *m)
{
	struct stay *stay = m->stay;
	const uint32_t position[2] = {m->pass, m->batch + 1};
	enum weft_status st = weft_session_position(m->session, position, sizeof(position));
	stay->made++;
	st = st == WEFT_OK || st == WEFT_UNSUPPORTED
		     ? weft_step(m->session, samples_of(stay->idx, stay->made), 0)
		     : st;
	stay->number[stay->made] = weft_steps(m->session);
	stay->made -= st == WEFT_OK ? 0 : 1;
	return st;
}

static enum weft_status
push_rows(struct member *m)
{
	uint64_t key[KEYS_MAX];
	float minus[KEYS_MAX * DIM];
	struct weft_rows *rows = NULL;
	const uint32_t count = draw_keys(m->stay->job, m->stay->idx, m->stay->made + 1, key);
	for (uint32_t i = 0; i < KEYS_MAX * DIM; i++) {
		minus[i] = -1;
	}
	enum weft_status st = weft_rows_pull(m->table, key, count, WEFT_ROWS_CREATE, &rows);
	st = st == WEFT_OK ? weft_rows_wait(rows) : st;
	st = st == WEFT_OK ? begin_step(m) : st;
	return st == WEFT_OK ? weft_rows_push(rows, minus, NULL, NULL) : st;
}

static enum weft_status
step(struct member *m)
{
	wf_wait(m->env, -1, wf_now_ns(m->env) + m->stay->job->think_ns);
	enum weft_status st = m->table != NULL ? push_rows(m) : begin_step(m);
	if (st == WEFT_OK) {
		draw_gradient(m->stay->job, m->stay->idx, m->stay->made,
			      weft_tensor_grad(m->tensor));
		st = weft_push(m->tensor);
	}
	m->batch++;
	return st == WEFT_OK ? weft_wait_all(m->session) : st;
}

static enum weft_status
read_rows(struct member *m)
{
	uint64_t key[KEYS];
	struct weft_rows *rows = NULL;
	for (uint32_t k = 0; k < KEYS; k++) {
		key[k] = k;
	}
	enum weft_status st = weft_rows_pull(m->table, key, KEYS, 0, &rows);
	st = st == WEFT_OK ? weft_rows_wait(rows) : st;
	for (uint32_t k = 0; k < KEYS && st == WEFT_OK; k++) {
		m->stay->rows[k] = weft_rows_values(rows)[(size_t)weft_rows_place(rows)[k] * DIM];
	}
	weft_rows_free(rows);
	return st;
}

/* It has come to where it may be killed. */
static void
meet_death(struct member *m, enum death death)
{
	struct stay *stay = m->stay;
	if (stay->death == death) {
		stay->end_ns = wf_now_ns(m->env) + stay->dies_after_ns;
		wf_world_kill_at(stay->job->world, stay->proc, stay->end_ns);
	}
}

/* True: it leaves now. */
static bool
leaves(const struct stay *stay)
{
	return stay->leave_after > 0 && stay->made >= stay->leave_after;
}

/* Passes, with reduces between them and in them, which all make at the same steps. */
static enum weft_status
train(struct member *m)
{
	const struct job *job = m->stay->job;
	double one[2] = {1, 1};
	enum weft_status st = WEFT_OK;
	while (m->pass < PASSES && st == WEFT_OK && !leaves(m->stay)) {
		while (m->batch < job->steps[m->pass][m->stay->place] && st == WEFT_OK &&
		       !leaves(m->stay)) {
			st = step(m);
		}
		if (st != WEFT_OK || leaves(m->stay)) {
			break;
		}
		st = weft_pass_end(m->session);
		st = st == WEFT_OK ? weft_reduce(m->session, one, 2) : st;
		m->pass++;
		m->batch = 0;
	}
	if (st == WEFT_OK && leaves(m->stay) && m->pass < PASSES) {
		meet_death(m, DIES_LEAVING);
		m->stay->is_leaving = true;
		st = weft_session_leave(m->session);
		m->stay->has_left = st == WEFT_OK;
		return st;
	}
	return st == WEFT_OK && m->table != NULL ? read_rows(m) : st;
}

static int
run_stay(struct wf_env *env, struct stay *stay)
{
	struct job *job = stay->job;
	struct member m = {.stay = stay, .env = env};
	enum weft_status st = open_session(&m);
	stay->is_in = st == WEFT_OK;
	if (stay->is_in) {
		meet_death(&m, DIES_AT_FIRST);
	}
	st = st == WEFT_OK ? find_place(&m) : st;
	if (st == WEFT_DATA) {
		complain(job, "%.200s", weft_last_error());
	}
	st = st == WEFT_OK ? train(&m) : st;
	if (st == WEFT_OK) {
		memcpy(stay->param, weft_tensor_param(m.tensor), job->floats * sizeof(float));
		st = weft_session_close(m.session);
	} else {
		(void)snprintf(stay->text, sizeof(stay->text), "%s", weft_last_error());
		(void)weft_session_abort(m.session, st, stay->text);
	}
	if (st != WEFT_OK && stay->text[0] == '\0') {
		(void)snprintf(stay->text, sizeof(stay->text), "%s", weft_last_error());
	}
	stay->has_ended = st == WEFT_OK && !stay->has_left;
	return 0;
}

static int
run_trainer(struct wf_env *env, void *arg)
{
	const struct crew_seat *seat = arg;
	struct job *job = (struct job *)seat->crew->run;
	return run_stay(env, &job->stay[seat->idx]);
}

static int
run_joiner(struct wf_env *env, void *arg)
{
	return run_stay(env, arg);
}

/* ---- a job ---- */

static void
fill_server(const struct crew *crew, struct wf_server_opts *out)
{
	const struct job *job = crew->run;
	killed_fill_server(&job->kept, out);
	out->snapshots.registrar = "ps0";
	out->min_trainers = 1;
}

static void
disturb(struct crew *crew, struct wf_world *world, struct wf_proc *const *proc)
{
	static const char *const host[STAYS_MAX] = {"tr0", "tr1", "tr2", "tr3", "jo4",
						    "jo5", "jo6", "jo7", "jo8"};
	struct job *job = (struct job *)crew->run;
	job->world = world;
	for (uint32_t i = 0; i < job->stays; i++) {
		struct stay *stay = &job->stay[i];
		struct wf_proc *own = i < crew->trainers ? proc[crew->pservers + i] : NULL;
		if (i >= crew->trainers && wf_world_spawn(world, host[i], stay->begin_ns,
							  run_joiner, stay, &own) != WEFT_OK) {
			complain(job, "no process for a joiner: %.200s", weft_last_error());
			return;
		}
		stay->proc = own;
		if (stay->end_ns != 0) {
			wf_world_kill_at(world, own, stay->end_ns);
		}
	}
}

static void
draw(uint64_t seed, const char *mode, struct job *out)
{
	struct wf_rng rng;
	memset(out, 0, sizeof(*out));
	wf_rng_init(&rng, seed, 191);
	killed_draw(&rng, seed, &out->crew);
	out->crew.trainers = 2 + (uint32_t)wf_rng_below(&rng, CREW_TRAINERS_MAX - 1);
	out->has_deaths = strcmp(mode, "deaths") == 0;
	out->has_table = strcmp(mode, "tables") == 0 || (out->has_deaths && seed % 3 == 0);
	out->is_async = strcmp(mode, "async") == 0 || (out->has_deaths && seed % 3 == 1);
	out->is_mean = !out->has_table && !out->is_async && seed % 2 == 1;
	out->crew.sparse = out->has_table ? &wf_sparse_service : NULL;
	out->crew.run_trainer = run_trainer;
	out->crew.fill_server = fill_server;
	out->crew.disturb = disturb;
	out->crew.ends_badly = true;
	out->floats = 1 + (uint32_t)wf_rng_below(&rng, FLOATS_MAX);
	for (uint32_t pass = 0; pass < PASSES; pass++) {
		for (uint32_t t = 0; t < out->crew.trainers; t++) {
			out->steps[pass][t] = 4 + (uint32_t)wf_rng_below(&rng, STEPS_MAX - 3);
		}
	}
	out->think_ns = (20 + wf_rng_below(&rng, 100)) * WF_NS_PER_MS;
	out->stays = out->crew.trainers;
	for (uint32_t i = 0; i < out->stays; i++) {
		out->stay[i] = (struct stay){.job = out, .idx = i, .place = i};
	}
	out->kept.snapshot_steps = 1 + wf_rng_below(&rng, 3);
	out->kept.keep = 2;
	crew_draw_world(&rng, seed % 3 != 0, 2000, 50, &out->crew);
}

/* Who leaves or is killed, and who comes in its place, perhaps twice. One of the first stays. */
static void
draw_stays(struct job *job, uint64_t begin_ns, uint64_t end_ns)
{
	struct wf_rng rng;
	wf_rng_init(&rng, job->crew.seed, 192);
	const uint32_t stays_in = (uint32_t)wf_rng_below(&rng, job->crew.trainers);
	for (uint32_t i = 0; i < job->stays; i++) {
		struct stay *stay = &job->stay[i];
		const uint64_t from_ns = stay->begin_ns > begin_ns ? stay->begin_ns : begin_ns;
		const uint64_t room_ns = end_ns > from_ns ? end_ns - from_ns : 1;
		if (i == stays_in || wf_rng_below(&rng, 4) == 0) {
			continue; /* it stays */
		}
		uint64_t away_ns = from_ns + 1 + wf_rng_below(&rng, room_ns);
		if (wf_rng_below(&rng, 2) == 0) {
			stay->leave_after = 1 + (uint32_t)wf_rng_below(&rng, 2 * STEPS_MAX);
		} else {
			stay->end_ns = away_ns;
		}
		if (job->stays < STAYS_MAX && wf_rng_below(&rng, 4) != 0) {
			/* Often before the others have noticed that the place is empty. */
			uint64_t later_ns = wf_rng_below(&rng, 2) * wf_rng_below(&rng, room_ns);
			job->stay[job->stays] = (struct stay){.job = job,
							      .idx = job->stays,
							      .place = stay->place,
							      .joins = true,
							      .begin_ns = away_ns + later_ns};
			job->stays++;
		}
	}
}

/* Who leaves dies, and so does who joins; then another one joins. */
static void
draw_deaths(struct job *job)
{
	struct wf_rng rng;
	wf_rng_init(&rng, job->crew.seed, 193);
	for (uint32_t i = 0, drawn = job->stays; i < drawn; i++) {
		struct stay *stay = &job->stay[i];
		const bool at_first = wf_rng_below(&rng, 2) == 0;
		const uint64_t later_ns = wf_rng_below(&rng, 3 * WF_NS_PER_S);
		if (stay->joins && job->stays < STAYS_MAX) {
			struct stay *next = &job->stay[job->stays];
			*next = *stay; /* another process, for when this one is dead */
			next->idx = job->stays++;
			next->begin_ns += later_ns;
		}
		stay->dies_after_ns = later_ns / 30;
		if (stay->leave_after > 0) {
			stay->death = DIES_LEAVING;
		} else if (stay->joins && at_first) {
			stay->death = DIES_AT_FIRST;
		} else if (stay->joins) {
			stay->end_ns = stay->begin_ns + later_ns; /* on its way */
		}
	}
}

/* ---- what is compared ---- */

static bool
is_near(float a, float b, bool is_mean)
{
	return is_mean ? fabsf(a - b) <= 1e-3f : a == b;
}

static bool
fits_slice(const struct job *job, const float *expected, const float *actual, uint32_t slice)
{
	bool same = true;
	for (uint32_t i = slice * SLICE_FLOATS; i < (slice + 1) * SLICE_FLOATS && i < job->floats;
	     i++) {
		same = same && is_near(expected[i], actual[i], job->is_mean);
	}
	return same;
}

/* Whether one choice of what counted explains all slices and rows: the same for all, unless a step
 * was counted in half, or is counted where it arrives. */
static bool
explain(const struct job *job, uint32_t other, const struct stay *survivor)
{
	const uint32_t slices = (job->floats + SLICE_FLOATS - 1) / SLICE_FLOATS;
	const bool may_differ = job->has_half || job->is_async;
	bool found[(FLOATS_MAX / SLICE_FLOATS + 1) + KEYS] = {0};
	float expected[FLOATS_MAX];
	for (uint32_t mask = other;; mask = (mask - 1) & other) {
		bool all = true;
		compute(job, mask, other, expected);
		for (uint32_t s = 0; s < slices; s++) {
			bool fits = fits_slice(job, expected, survivor->param, s);
			found[s] = found[s] || fits;
			all = all && (may_differ ? found[s] : fits);
		}
		for (uint32_t k = 0; k < KEYS && job->has_table; k++) {
			bool fits = survivor->rows[k] == (float)count_key(job, mask, k);
			found[slices + k] = found[slices + k] || fits;
			all = all && (may_differ ? found[slices + k] : fits);
		}
		if (all) {
			return true;
		}
		if (mask == 0 || (!may_differ && mask == other)) {
			break;
		}
	}
	return false;
}

static bool
check_values(struct job *job, const struct stay *survivor)
{
	uint32_t lost = 0;
	for (uint32_t i = 0; i < job->stays; i++) {
		const struct stay *stay = &job->stay[i];
		lost |= stay->made > 0 && !stay->has_left && !stay->has_ended ? 1u << i : 0;
	}
	for (uint32_t other = lost;; other = (other - 1) & lost) {
		if (explain(job, other, survivor)) {
			return true;
		}
		if (other == 0) {
			break;
		}
	}
	return complain(job, "trainer %u ends with values that no run explains; lost: %x",
			survivor->idx, lost);
}

/* Whether a joiner was told the samples of all trainers in the steps before its first one: with the
 * last step of those in `mask`, who were killed. */
static bool
fits_samples(const struct job *job, const struct stay *joiner, uint32_t mask)
{
	uint64_t all = 0;
	for (uint32_t i = 0; i < job->stays; i++) {
		const struct stay *stay = &job->stay[i];
		for (uint32_t n = 1; n <= counted(job, i, mask); n++) {
			all += stay->number[n] <= joiner->joined_after ? samples_of(i, n) : 0;
		}
	}
	return all == joiner->told_samples;
}

static bool
check_samples(struct job *job, const struct stay *joiner)
{
	bool fits = !joiner->joins || joiner->made == 0 || job->is_async;
	for (uint32_t mask = 0; mask < 1u << job->stays && !fits; mask++) {
		fits = fits_samples(job, joiner, mask);
	}
	return fits ||
	       complain(job,
			"trainer %u joined after step %" PRIu64 " and was told %" PRIu64 " samples",
			joiner->idx, joiner->joined_after, joiner->told_samples);
}

/* Who is not lost and does not end well has a reason. */
static bool
is_excused(const struct job *job, const struct stay *stay)
{
	bool is_late = stay->joins && !stay->is_in; /* the job has ended before it could join */
	bool is_early = strstr(stay->text, "had not begun on all lanes") != NULL ||
			strstr(stay->text, "was lost in step 1:") != NULL ||
			strstr(stay->text, "did not join within") != NULL;
	for (uint32_t i = 0; i < job->stays && is_early; i++) {
		is_early = job->stay[i].made <= 1;
	}
	return is_late || is_early;
}

static bool
check(struct job *job, struct sums *sums)
{
	const struct stay *first = NULL;
	for (uint32_t i = 0; i < job->stays; i++) {
		const struct stay *stay = &job->stay[i];
		const bool has_joined = stay->joins && stay->made > 0;
		sums->joined += has_joined;
		sums->left += stay->has_left;
		sums->rejoined += has_joined && (stay->has_left || stay->end_ns != 0);
		sums->died_leaving += stay->is_leaving && !stay->has_left;
		sums->died_joining -= has_joined; /* read_log has counted all joins */
		if (stay->end_ns == 0 && !stay->has_left && !stay->has_ended &&
		    !is_excused(job, stay)) {
			return complain(job, "trainer %u in place %u did not end well: %.170s", i,
					stay->place, stay->text);
		}
		if (stay->has_ended && first != NULL &&
		    (memcmp(stay->param, first->param, sizeof(stay->param)) != 0 ||
		     memcmp(stay->rows, first->rows, sizeof(stay->rows)) != 0)) {
			return complain(job, "trainers %u and %u differ", first->idx, i);
		}
		if (!check_samples(job, stay)) {
			return false;
		}
		first = stay->has_ended && first == NULL ? stay : first;
	}
	return first == NULL || check_values(job, first);
}

/* The log of all processes, as far as it says what was decided. */
static void
read_log(struct job *job, int fd, struct sums *sums)
{
	static char text[LOG_BYTES];
	ssize_t bytes = pread(fd, text, sizeof(text) - 1, 0);
	text[bytes > 0 ? bytes : 0] = '\0';
	for (const char *at = text; (at = strstr(at, " is dropped from step ")) != NULL; at++) {
		sums->dropped++;
	}
	for (const char *at = text; (at = strstr(at, " joins in step ")) != NULL; at++) {
		sums->died_joining++;
	}
	job->has_half = strstr(text, " is counted in half of step ") != NULL;
	if (getenv("WEFT_CLUSTER_LOG") != NULL) {
		(void)fputs(text, stderr);
	}
}

static void
check_seed(struct job *job, const char *mode, struct sums *sums)
{
	static struct job calm;
	struct wf_world_stats stats = {0};
	calm = *job;
	calm.crew.run = &calm;
	for (uint32_t i = 0; i < calm.stays; i++) {
		calm.stay[i].job = &calm;
	}
	if (crew_play(&calm.crew, &stats) != WEFT_OK) {
		memcpy(job->crew.why, calm.crew.why, sizeof(job->crew.why));
		return;
	}
	draw_stays(job, 300 * WF_NS_PER_MS, 100 * WF_NS_PER_MS + calm.crew.end_ns);
	if (job->has_deaths) {
		draw_deaths(job);
	}
	job->crew.run = job;
	int fd = memfd_create("log", MFD_CLOEXEC);
	job->crew.world.log_fd = fd;
	job->crew.world.log_level = WF_LOG_WARN;
	if (strcmp(mode, "snapshots") == 0 && !killed_make_dir(&job->kept)) {
		complain(job, "no folder could be made");
		return;
	}
	if (crew_play(&job->crew, &stats) == WEFT_OK) {
		read_log(job, fd, sums);
		(void)check(job, sums);
	}
	if (job->kept.dir[0] != '\0') {
		killed_remove_dir(&job->kept);
	}
	(void)close(fd);
}

static bool
is_enough(const struct wf_sweep *sweep, const char *what, uint64_t have, uint64_t per_mille)
{
	const uint64_t least = sweep->is_part ? 0 : sweep->count * per_mille / 1000;
	(void)printf("%s: %" PRIu64 ", the floor is %" PRIu64 "%s\n", what, have, least,
		     have < least ? ": TOO FEW" : "");
	return have >= least;
}

int
main(int argc, char **argv)
{
	const struct wf_sweep sweep = wf_sweep_of(argc, argv, 200, 10);
	const char *mode = argc > 3 ? argv[3] : "sync";
	struct sums sums = {0};
	uint64_t failed = 0;
	for (uint64_t seed = sweep.first; seed < sweep.first + sweep.count; seed++) {
		static struct job job;
		draw(seed, mode, &job);
		check_seed(&job, mode, &sums);
		if (job.crew.why[0] != '\0') {
			failed++;
			(void)printf("FAILED seed %" PRIu64 " (%s, %u pservers, %u lanes, %u "
				     "trainers): %s; repeat: test_join %" PRIu64 " 1 %s\n",
				     seed, mode, job.crew.pservers, job.crew.lanes,
				     job.crew.trainers, job.crew.why, seed, mode);
		}
	}
	(void)printf("%" PRIu64 " seeds, %" PRIu64 " failed\n", sweep.count, failed);
	const uint64_t deaths = strcmp(mode, "deaths") == 0 ? 100 : 0;
	bool enough = is_enough(&sweep, "trainers joined", sums.joined, 300);
	enough &= is_enough(&sweep, "trainers left", sums.left, deaths > 0 ? 0 : 300);
	enough &= is_enough(&sweep, "trainers dropped", sums.dropped, 200);
	enough &= is_enough(&sweep, "joined and gone again", sums.rejoined, 20);
	enough &= is_enough(&sweep, "joined without a step", sums.died_joining, deaths);
	enough &= is_enough(&sweep, "died while they left", sums.died_leaving, deaths);
	return enough && failed == 0 ? 0 : 1;
}
