/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs of pservers with --on_trainer_death=drop, whose trainers are killed, paused beyond their
 * stall timeout, or cut off from a pserver, at times of chance. The others end well, and what they
 * end with is computed: each slice, and each row, is that of a sequential run in which a lost
 * trainer took part up to its last step, or to the one before. Which of the two is the same
 * everywhere, unless the log names the trainer as counted in half of a step. A job with fewer
 * trainers than min_trainers ends, with that reason. Prints what has happened, and fails below the
 * floors. Usage: test_leave FIRST COUNT MODE (dense, tables, snapshots); WEFT_SEED=S runs one seed,
 * WEFT_LONG ten times as many. Thread: one. */
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
#include "weft/sparse.h"
#include "weft/weft.h"

#define PASSES 2u
#define STEPS_MAX 14u /* of a pass */
#define FLOATS_MAX 300u
#define SLICE_FLOATS 16u
#define SLICES_MAX (FLOATS_MAX / SLICE_FLOATS + 1)
#define KEYS 24u
#define KEYS_MAX 6u /* of a batch */
#define DIM 2u
#define RATE_A 0.001
#define STALL_NS (20 * WF_NS_PER_S)
#define LOG_BYTES ((size_t)8 << 20)
#define TABLE_RING_BYTES ((uint64_t)2 << 20)

struct job {
	struct crew crew;
	struct killed kept; /* snapshots; dir "": none */
	bool has_table, is_mean;
	uint32_t floats;
	uint32_t min_trainers;
	uint32_t steps[PASSES][CREW_TRAINERS_MAX];
	uint64_t kill_ns[CREW_TRAINERS_MAX]; /* 0: it is not lost */
	uint32_t how[CREW_TRAINERS_MAX];

	/* What happened. */
	uint32_t begun[CREW_TRAINERS_MAX]; /* steps, over both passes */
	bool ended[CREW_TRAINERS_MAX];
	char text[CREW_TRAINERS_MAX][256];
	float param[CREW_TRAINERS_MAX][FLOATS_MAX];
	float rows[CREW_TRAINERS_MAX][KEYS];
	bool has_half, has_drop;
};

enum how { KILL, PAUSE, CUT, HOWS };

/* All that has happened to all jobs. */
struct sums {
	uint64_t dropped, halves, two, below, killed, paused, cut;
};

/* ---- what follows from the seed ---- */

static void
draw_gradient(const struct job *job, uint32_t trainer, uint32_t step, float *out)
{
	struct wf_rng rng;
	wf_rng_init(&rng, job->crew.seed, 1000 * (trainer + 1) + step);
	for (uint32_t i = 0; i < job->floats; i++) {
		out[i] = (float)(wf_rng_f64(&rng) - 0.5);
	}
}

static uint64_t
samples_of(uint32_t trainer, uint32_t step)
{
	return 1 + (trainer * 7 + step * 3) % 11;
}

static uint32_t
draw_keys(const struct job *job, uint32_t trainer, uint32_t step, uint64_t *out)
{
	struct wf_rng rng;
	wf_rng_init(&rng, job->crew.seed, 100000 + 1000 * (trainer + 1) + step);
	uint32_t count = (uint32_t)wf_rng_below(&rng, KEYS_MAX + 1);
	for (uint32_t i = 0; i < count; i++) {
		out[i] = (wf_rng_below(&rng, KEYS / KEYS_MAX) * KEYS_MAX + i) % KEYS;
	}
	return count;
}

/* Steps of a trainer, numbered over both passes as it makes them, that a run counts. */
struct run {
	uint32_t last[CREW_TRAINERS_MAX];  /* in this unit */
	uint32_t other[CREW_TRAINERS_MAX]; /* in some unit: samples of rates */
};

/* Whether the trainer takes part in step `i`, from 1, of a pass; `number`: its own step. */
static bool
takes_part(const struct job *job, const uint32_t last[], uint32_t t, uint32_t pass, uint32_t i,
	   uint32_t *number)
{
	*number = i + (pass > 0 ? job->steps[0][t] : 0);
	return i <= job->steps[pass][t] && *number <= last[t];
}

/* One step; whether anybody took part in it, in some unit. */
static bool
add_step(const struct job *job, const struct run *run, uint32_t pass, uint32_t i,
	 uint64_t *samples_before, float *param)
{
	float sum[FLOATS_MAX] = {0};
	float grad[FLOATS_MAX];
	uint64_t own = 0, all = 0;
	uint32_t number;
	bool any = false;
	for (uint32_t t = 0; t < job->crew.trainers; t++) {
		if (takes_part(job, run->other, t, pass, i, &number)) {
			any = true;
			all += samples_of(t, number);
		}
		if (!takes_part(job, run->last, t, pass, i, &number)) {
			continue;
		}
		own += samples_of(t, number);
		draw_gradient(job, t, number, grad);
		for (uint32_t e = 0; e < job->floats; e++) {
			sum[e] += grad[e];
		}
	}
	for (uint32_t e = 0; e < job->floats && own > 0; e++) {
		double rate = 1.0 / (1.0 + RATE_A * (double)*samples_before);
		param[e] -= job->is_mean ? (float)(rate * (double)sum[e] / (double)own) : sum[e];
	}
	*samples_before += all;
	return any;
}

static void
compute(const struct job *job, const struct run *run, float *param)
{
	uint64_t samples = 0;
	memset(param, 0, FLOATS_MAX * sizeof(*param));
	for (uint32_t pass = 0; pass < PASSES; pass++) {
		for (uint32_t i = 1; add_step(job, run, pass, i, &samples, param); i++) {
		}
	}
}

static uint32_t
count_key(const struct job *job, const uint32_t last[], uint32_t key)
{
	uint64_t keys[KEYS_MAX];
	uint32_t count = 0;
	for (uint32_t t = 0; t < job->crew.trainers; t++) {
		const uint32_t all = job->steps[0][t] + job->steps[1][t];
		for (uint32_t s = 1; s <= all && s <= last[t]; s++) {
			uint32_t n = draw_keys(job, t, s, keys);
			for (uint32_t i = 0; i < n; i++) {
				count += keys[i] == key ? 1 : 0;
			}
		}
	}
	return count;
}

/* ---- a trainer ---- */

struct member {
	struct job *job;
	uint32_t idx;
	uint32_t step;
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

static enum weft_status
open_session(struct member *m, struct wf_env *env)
{
	const struct job *job = m->job;
	const struct weft_tensor_opts tensor = {.name = "t", .rows = job->floats};
	struct weft_session_opts opts;
	crew_fill_opts(&job->crew, m->idx, &opts);
	opts.slice_bytes = SLICE_FLOATS * sizeof(float);
	opts.optimizer.learning_rate = 1;
	opts.progress = WEFT_PROGRESS_CALLER;
	if (job->is_mean) {
		opts.grad_reduce = WEFT_REDUCE_MEAN;
		opts.optimizer.schedule = "poly";
		opts.optimizer.schedule_a = RATE_A;
		opts.optimizer.schedule_b = 1;
	}
	enum weft_status st = wf_session_open_in(env, &opts, &m->session);
	st = st == WEFT_OK ? weft_tensor_add(m->session, &tensor, &m->tensor) : st;
	st = st == WEFT_OK && job->has_table ? add_table(m) : st;
	st = st == WEFT_OK ? weft_session_seal(m->session) : st;
	return st == WEFT_OK ? weft_session_start(m->session) : st;
}

static enum weft_status
push_rows(struct member *m)
{
	uint64_t key[KEYS_MAX];
	float minus[KEYS_MAX * DIM];
	struct weft_rows *rows = NULL;
	const uint32_t count = draw_keys(m->job, m->idx, m->step, key);
	for (uint32_t i = 0; i < KEYS_MAX * DIM; i++) {
		minus[i] = -1;
	}
	enum weft_status st = weft_rows_pull(m->table, key, count, WEFT_ROWS_CREATE, &rows);
	st = st == WEFT_OK ? weft_rows_wait(rows) : st;
	st = st == WEFT_OK ? weft_step(m->session, samples_of(m->idx, m->step), 0) : st;
	m->job->begun[m->idx] = m->step;
	return st == WEFT_OK ? weft_rows_push(rows, minus, NULL, NULL) : st;
}

static enum weft_status
step(struct member *m)
{
	enum weft_status st = WEFT_OK;
	m->step++;
	if (m->table != NULL) {
		st = push_rows(m);
	} else {
		st = weft_step(m->session, samples_of(m->idx, m->step), 0);
		m->job->begun[m->idx] = m->step;
	}
	draw_gradient(m->job, m->idx, m->step, weft_tensor_grad(m->tensor));
	st = st == WEFT_OK ? weft_push(m->tensor) : st;
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
		m->job->rows[m->idx][k] =
			weft_rows_values(rows)[(size_t)weft_rows_place(rows)[k] * DIM];
	}
	weft_rows_free(rows);
	return st;
}

static enum weft_status
train(struct member *m)
{
	const struct job *job = m->job;
	enum weft_status st = WEFT_OK;
	for (uint32_t pass = 0; pass < PASSES && st == WEFT_OK; pass++) {
		for (uint32_t i = 0; i < job->steps[pass][m->idx] && st == WEFT_OK; i++) {
			st = step(m);
		}
		st = st == WEFT_OK ? weft_pass_end(m->session) : st;
	}
	return st == WEFT_OK && m->table != NULL ? read_rows(m) : st;
}

static int
run_trainer(struct wf_env *env, void *arg)
{
	const struct crew_seat *seat = arg;
	struct job *job = (struct job *)seat->crew->run;
	struct member m = {.job = job, .idx = seat->idx};
	enum weft_status st = open_session(&m, env);
	st = st == WEFT_OK ? train(&m) : st;
	if (st == WEFT_OK) {
		memcpy(job->param[m.idx], weft_tensor_param(m.tensor), job->floats * sizeof(float));
		st = weft_session_close(m.session);
	} else {
		(void)snprintf(job->text[m.idx], sizeof(job->text[0]), "%s", weft_last_error());
		(void)weft_session_abort(m.session, st, weft_last_error());
	}
	if (st != WEFT_OK && job->text[m.idx][0] == '\0') {
		(void)snprintf(job->text[m.idx], sizeof(job->text[0]), "%s", weft_last_error());
	}
	job->ended[m.idx] = st == WEFT_OK;
	return 0;
}

/* ---- a job ---- */

static void
fill_server(const struct crew *crew, struct wf_server_opts *out)
{
	const struct job *job = crew->run;
	killed_fill_server(&job->kept, out);
	out->snapshots.registrar = "ps0";
	out->min_trainers = job->min_trainers;
	out->session.stall_timeout_ns = STALL_NS;
}

static void
disturb(struct crew *crew, struct wf_world *world, struct wf_proc *const *proc)
{
	static const char *const pserver[] = {"ps0", "ps1", "ps2"};
	static const char *const trainer[] = {"tr0", "tr1", "tr2", "tr3"};
	const struct job *job = (struct job *)crew->run;
	for (uint32_t t = 0; t < crew->trainers; t++) {
		const uint64_t at_ns = job->kill_ns[t];
		struct wf_proc *who = proc[crew->pservers + t];
		const struct wf_world_partition cut = {
			.from = pserver[(crew->seed + t) % crew->pservers],
			.to = trainer[t],
			.both = true,
			.begin_ns = at_ns,
			.end_ns = at_ns + 100 * WF_NS_PER_S,
		};
		if (at_ns == 0) {
			continue;
		}
		if (job->how[t] == KILL) {
			wf_world_kill_at(world, who, at_ns);
		} else if (job->how[t] == PAUSE) {
			wf_world_pause(world, who, at_ns, at_ns + 100 * WF_NS_PER_S);
		} else {
			wf_world_partition(world, &cut);
		}
	}
}

static void
draw(uint64_t seed, const char *mode, struct job *out)
{
	struct wf_rng rng;
	memset(out, 0, sizeof(*out));
	wf_rng_init(&rng, seed, 91);
	killed_draw(&rng, seed, &out->crew);
	out->crew.trainers = 2 + (uint32_t)wf_rng_below(&rng, CREW_TRAINERS_MAX - 1);
	out->has_table = strcmp(mode, "tables") == 0;
	out->is_mean = !out->has_table && seed % 2 == 1;
	out->crew.sparse = out->has_table ? &wf_sparse_service : NULL;
	out->crew.run_trainer = run_trainer;
	out->crew.fill_server = fill_server;
	out->crew.disturb = disturb;
	out->crew.ends_badly = true;
	out->floats = 1 + (uint32_t)wf_rng_below(&rng, FLOATS_MAX);
	out->min_trainers = 1;
	for (uint32_t pass = 0; pass < PASSES; pass++) {
		for (uint32_t t = 0; t < out->crew.trainers; t++) {
			out->steps[pass][t] = (uint32_t)wf_rng_below(&rng, STEPS_MAX + 1);
		}
	}
	out->kept.snapshot_steps = 1 + wf_rng_below(&rng, 3);
	out->kept.keep = 2;
	crew_draw_world(&rng, seed % 3 != 0, 2000, 50, &out->crew);
}

/* Who is lost when: some, but not all. */
static void
draw_losses(struct job *job, uint64_t begin_ns, uint64_t end_ns)
{
	struct wf_rng rng;
	uint32_t count = 0;
	wf_rng_init(&rng, job->crew.seed, 92);
	const uint32_t most = 1 + (uint32_t)wf_rng_below(&rng, job->crew.trainers - 1);
	for (uint32_t i = 0; i < job->crew.trainers && count < most; i++) {
		const uint32_t t = (i + (uint32_t)job->crew.seed) % job->crew.trainers;
		job->kill_ns[t] = begin_ns + 1 + wf_rng_below(&rng, end_ns - begin_ns);
		job->how[t] =
			wf_rng_below(&rng, 2) == 0 ? KILL : (uint32_t)wf_rng_below(&rng, HOWS);
		count++;
	}
	if (job->crew.seed % 8 == 7) {
		job->min_trainers = job->crew.trainers;
	}
}

/* ---- what is compared ---- */

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

static bool
is_near(float a, float b, bool is_mean)
{
	return is_mean ? fabsf(a - b) <= 1e-4f : a == b;
}

/* The sums of all units of one trainer's last step: bit `1 << c` for each c that fits. With `mask`
 * bit t the lost trainer t has its last begun step counted in this unit, else the one before. */
static void
fill_run(const struct job *job, uint32_t mask, uint32_t out[])
{
	for (uint32_t t = 0; t < job->crew.trainers; t++) {
		const uint32_t begun = job->begun[t];
		const bool without = !job->ended[t] && (mask & 1u << t) == 0 && begun > 0;
		out[t] = job->ended[t] ? UINT32_MAX : begun - (without ? 1 : 0);
	}
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

/* Whether one choice of what counted in some unit explains all. `any`, `every`: bits of those whose
 * last step counts in some unit, in each. */
static bool
explain(struct job *job, uint32_t lost, uint32_t global, const float *param, const float *rows,
	uint32_t *any, uint32_t *every)
{
	static float expected[1u << CREW_TRAINERS_MAX][FLOATS_MAX];
	struct run run;
	const uint32_t masks = 1u << job->crew.trainers;
	const uint32_t slices = (job->floats + SLICE_FLOATS - 1) / SLICE_FLOATS;
	fill_run(job, global, run.other);
	*any = 0;
	*every = lost;
	for (uint32_t mask = 0; mask < masks; mask++) {
		if ((mask & ~global) == 0) {
			fill_run(job, mask, run.last);
			compute(job, &run, expected[mask]);
		}
	}
	for (uint32_t s = 0; s < slices; s++) {
		uint32_t mask = 0;
		while (mask < masks &&
		       ((mask & ~global) != 0 || !fits_slice(job, expected[mask], param, s))) {
			mask++;
		}
		if (mask == masks) {
			return false;
		}
		*any |= mask;
		*every &= mask;
	}
	for (uint32_t k = 0; k < KEYS && job->has_table; k++) {
		bool found = false;
		for (uint32_t mask = 0; mask < masks && !found; mask++) {
			fill_run(job, mask, run.last);
			found = (mask & ~lost) == 0 &&
				rows[k] == (float)count_key(job, run.last, k);
		}
		if (!found) {
			return complain(job, "row %u has %u pushes, which no run explains", k,
					(uint32_t)rows[k]);
		}
	}
	return true;
}

static bool
check_values(struct job *job, uint32_t lost, uint32_t survivor)
{
	uint32_t any = 0, every = 0;
	for (uint32_t global = 0; global < 1u << job->crew.trainers; global++) {
		bool fits =
			(global & ~lost) == 0 && explain(job, lost, global, job->param[survivor],
							 job->rows[survivor], &any, &every);
		/* Where all that is here agrees, and a step was counted in half, that was in units
		 * of which there is no trace: rows. */
		if (fits && (any == every || job->has_half)) {
			return true;
		}
	}
	return complain(job, "trainer %u ends with values that no run explains; lost: %x", survivor,
			lost);
}

/* Whoever is lost before the job has begun on all lanes ends it. */
static bool
had_not_begun(const struct job *job, uint32_t t)
{
	bool is_early = strstr(job->text[t], "was lost in step 1:") != NULL ||
			strstr(job->text[t], "had not begun on all lanes") != NULL ||
			strstr(job->text[t], "did not join within") != NULL;
	for (uint32_t i = 0; i < job->crew.trainers && is_early; i++) {
		is_early = job->begun[i] <= 1;
	}
	return is_early;
}

static bool
check(struct job *job, struct sums *sums)
{
	uint32_t lost = 0, first = UINT32_MAX, ended = 0;
	for (uint32_t t = 0; t < job->crew.trainers; t++) {
		lost |= job->ended[t] ? 0 : 1u << t;
		ended += job->ended[t] ? 1 : 0;
		first = job->ended[t] && first == UINT32_MAX ? t : first;
	}
	const bool is_below = job->has_drop && job->min_trainers == job->crew.trainers;
	sums->below += job->min_trainers == job->crew.trainers && ended == 0 ? 1 : 0;
	for (uint32_t t = 0; t < job->crew.trainers; t++) {
		if (job->kill_ns[t] == 0 && !job->ended[t] && job->min_trainers == 1 &&
		    !had_not_begun(job, t)) {
			return complain(job, "trainer %u was not lost, and did not end: %.200s", t,
					job->text[t]);
		}
		if (job->ended[t] && first != t &&
		    (memcmp(job->param[t], job->param[first], sizeof(job->param[t])) != 0 ||
		     memcmp(job->rows[t], job->rows[first], sizeof(job->rows[t])) != 0)) {
			return complain(job, "trainers %u and %u end with other values", first, t);
		}
	}
	if (is_below) {
		return complain(job, "a trainer was dropped below min_trainers %u",
				job->min_trainers);
	}
	return first == UINT32_MAX || check_values(job, lost, first);
}

/* The log of all processes, as far as it says what was decided. */
static void
read_log(struct job *job, int fd, struct sums *sums)
{
	static char text[LOG_BYTES];
	ssize_t bytes = pread(fd, text, sizeof(text) - 1, 0);
	text[bytes > 0 ? bytes : 0] = '\0';
	uint64_t dropped = 0;
	for (const char *at = text; (at = strstr(at, " is dropped from step ")) != NULL; at++) {
		dropped++;
	}
	job->has_drop = dropped > 0;
	job->has_half = strstr(text, " is counted in half of step ") != NULL;
	sums->dropped += dropped;
	sums->two += dropped > 1 ? 1 : 0;
	sums->halves += job->has_half ? 1 : 0;
	if (getenv("WEFT_CLUSTER_LOG") != NULL) {
		(void)fputs(text, stderr);
	}
}

static void
check_seed(struct job *job, const char *mode, struct sums *sums)
{
	struct wf_world_stats stats = {0};
	struct job calm = *job;
	calm.crew.run = &calm;
	if (crew_play(&calm.crew, &stats) != WEFT_OK) {
		memcpy(job->crew.why, calm.crew.why, sizeof(job->crew.why));
		return;
	}
	draw_losses(job, 30 * WF_NS_PER_MS, 60 * WF_NS_PER_MS + calm.crew.end_ns);
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
	for (uint32_t t = 0; t < job->crew.trainers; t++) {
		sums->killed += job->kill_ns[t] != 0 && job->how[t] == KILL ? 1 : 0;
		sums->paused += job->kill_ns[t] != 0 && job->how[t] == PAUSE ? 1 : 0;
		sums->cut += job->kill_ns[t] != 0 && job->how[t] == CUT ? 1 : 0;
	}
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
	const char *mode = argc > 3 ? argv[3] : "dense";
	struct sums sums = {0};
	uint64_t failed = 0;
	for (uint64_t seed = sweep.first; seed < sweep.first + sweep.count; seed++) {
		static struct job job;
		draw(seed, mode, &job);
		check_seed(&job, mode, &sums);
		if (job.crew.why[0] != '\0') {
			failed++;
			(void)printf("FAILED seed %" PRIu64 " (%s, %u pservers, %u lanes, %u "
				     "trainers): %s; repeat: WEFT_SEED=%" PRIu64
				     " test_leave 1 1 %s\n",
				     seed, mode, job.crew.pservers, job.crew.lanes,
				     job.crew.trainers, job.crew.why, seed, mode);
		}
	}
	(void)printf("%" PRIu64 " seeds, %" PRIu64 " failed\n", sweep.count, failed);
	bool enough = is_enough(&sweep, "trainers dropped", sums.dropped, 300);
	enough = is_enough(&sweep, "jobs with a step counted in half", sums.halves, 50) && enough;
	enough = is_enough(&sweep, "jobs that dropped several", sums.two, 50) && enough;
	enough = is_enough(&sweep, "jobs ended below min_trainers", sums.below, 20) && enough;
	enough = is_enough(&sweep, "killed", sums.killed, 400) && enough;
	enough = is_enough(&sweep, "paused", sums.paused, 50) && enough;
	enough = is_enough(&sweep, "cut off", sums.cut, 50) && enough;
	return enough && failed == 0 ? 0 : 1;
}
