/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that are only reduced, beside one that is updated and one that is static, in synchronous
 * and asynchronous jobs, under seeded delays, cuts, refusals and stalls: every trainer gets, in
 * every step and after a pass, the bits of a sum in trainer order that this file computes by
 * itself, NaN and infinities too. Usage: test_reduce [FIRST COUNT]; WEFT_SEED=S runs one seed, and
 * WEFT_CLUSTER_LOG=1 shows the log lines of all processes. Thread: one. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/settings.h"
#include "tests/support/crew.h"
#include "tests/support/sweep.h"

#define PASSES 2u
#define STEPS_MAX 6u
#define TENSORS 4u
#define ELEMENTS_MAX 90u
#define UPDATED 0u
#define FIXED 3u

static const uint32_t elements[TENSORS] = {70, ELEMENTS_MAX, 33, 20};
static const char *const names[TENSORS] = {"w", "sums", "more", "fixed"};

struct run {
	struct crew crew;
	enum weft_dense_mode mode;
	enum weft_grad_reduce reduce;
	uint64_t slice_bytes;
	bool averages, keeps_state;
	bool in_place; /* of every second reduced tensor, another one on each trainer */
	uint32_t steps[PASSES][CREW_TRAINERS_MAX];
};

struct member {
	const struct run *run;
	uint32_t idx;
	struct weft_session *session;
	struct weft_tensor *tensor[TENSORS];
};

static uint64_t
samples_of(uint32_t trainer, uint32_t step)
{
	return 1 + (trainer + 3 * step) % 5;
}

/* Of sizes so different that the order of a sum shows, and now and then no number. */
static float
gradient(const struct run *run, uint32_t trainer, uint32_t pass, uint32_t step, uint32_t element)
{
	static const float special[] = {NAN, INFINITY, -INFINITY, -0.0f, 3e38f, 1e-45f};
	struct wf_rng rng;
	wf_rng_init(&rng, run->crew.seed * 64 + pass * 32 + step, trainer * 1000 + element);
	uint64_t drawn = wf_rng_below(&rng, 60);
	float size = ldexpf(1, (int)wf_rng_below(&rng, 60) - 30);
	return drawn < 6 ? special[drawn] : ((float)wf_rng_f64(&rng) - 0.5f) * size;
}

/* What the trainers' pushes come to: element of a tensor in a step of a pass. */
static float
reduced(const struct run *run, uint32_t pass, uint32_t step, uint32_t element)
{
	uint64_t samples = 0;
	float sum = 0;
	for (uint32_t t = 0; t < run->crew.trainers; t++) {
		if (step > run->steps[pass][t]) {
			continue;
		}
		float pushed = gradient(run, t, pass, step, element);
		sum = samples == 0 ? pushed : sum + pushed;
		samples += samples_of(t, step);
	}
	return run->reduce == WEFT_REDUCE_MEAN ? sum / (float)samples : sum;
}

static bool
same(float a, float b)
{
	return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof(a)) == 0;
}

static uint32_t
last_step(const struct run *run, uint32_t pass)
{
	uint32_t last = 0;
	for (uint32_t t = 0; t < run->crew.trainers; t++) {
		last = run->steps[pass][t] > last ? run->steps[pass][t] : last;
	}
	return last;
}

/* The reduced tensors are what they should be; else WEFT_DATA. */
static enum weft_status
compare(const struct member *m, uint32_t pass, uint32_t step, const char *when)
{
	for (uint32_t t = UPDATED + 1; t < FIXED; t++) {
		const float *got = weft_tensor_param(m->tensor[t]);
		for (uint32_t i = 0; i < elements[t]; i++) {
			float wanted = reduced(m->run, pass, step, 100 * t + i);
			if (!same(got[i], wanted)) {
				return wf_fail(WEFT_DATA,
					       "%s, pass %u step %u: element %u of %s is %a, not "
					       "%a",
					       when, pass, step, i, names[t], (double)got[i],
					       (double)wanted);
			}
		}
	}
	return weft_tensor_param(m->tensor[FIXED])[7] == 7
		       ? WEFT_OK
		       : wf_fail(WEFT_DATA, "%s: the static tensor has changed", when);
}

/* Whether answers come into the tensor's gradient, which is each trainer's own choice. */
static bool
is_in_place(const struct run *run, uint32_t trainer, uint32_t tensor)
{
	return run->in_place && tensor > UPDATED && tensor < FIXED && (trainer + tensor) % 2 == 0;
}

static enum weft_status
open_session(struct member *m, struct wf_env *env)
{
	const struct run *run = m->run;
	struct weft_session_opts opts;
	crew_fill_opts(&run->crew, m->idx, &opts);
	opts.slice_bytes = run->slice_bytes;
	opts.dense_mode = run->mode;
	opts.grad_reduce = run->reduce;
	opts.optimizer.method = "adam";
	opts.optimizer.average_window = run->averages ? 0.5 : 0;
	opts.keep_state = run->keeps_state;
	struct weft_settings *in_place = NULL;
	enum weft_status st = wf_session_open_in(env, &opts, &m->session);
	if (st == WEFT_OK) {
		st = weft_settings_create(WEFT_SETTINGS_TENSOR, &in_place);
	}
	if (st == WEFT_OK) {
		st = weft_settings_set(in_place, "in_place", "1");
	}
	for (uint32_t t = 0; t < TENSORS && st == WEFT_OK; t++) {
		const struct weft_tensor_opts declared = {
			.name = names[t],
			.rows = elements[t],
			.is_static = t == FIXED,
			.is_reduced = t > UPDATED && t < FIXED,
			.priority = t == 2 ? 5 : 0,
			.settings = is_in_place(run, m->idx, t) ? in_place : NULL,
		};
		st = weft_tensor_add(m->session, &declared, &m->tensor[t]);
	}
	weft_settings_destroy(in_place);
	if (st == WEFT_OK) {
		st = weft_session_seal(m->session);
	}
	for (uint32_t t = 0; t < TENSORS && st == WEFT_OK; t++) {
		for (uint32_t i = 0; i < elements[t]; i++) {
			weft_tensor_param(m->tensor[t])[i] = m->idx == 0 ? (float)i : -1;
		}
	}
	return st == WEFT_OK ? weft_session_start(m->session) : st;
}

/* A tensor's first values are trainer 0's, as of any other; where pushes are applied as they come,
 * somebody may have made a step by now. */
static enum weft_status
check_first(const struct member *m)
{
	for (uint32_t t = m->run->mode == WEFT_DENSE_SYNC ? 0 : 1; t < TENSORS; t++) {
		for (uint32_t i = 0; i < elements[t]; i++) {
			if (weft_tensor_param(m->tensor[t])[i] != (float)i) {
				return wf_fail(WEFT_DATA, "%s begins with other values", names[t]);
			}
		}
	}
	return WEFT_OK;
}

static enum weft_status
take_step(struct member *m, uint32_t pass, uint32_t step)
{
	enum weft_status st = weft_step(m->session, samples_of(m->idx, step), 0);
	for (uint32_t n = 0; n < FIXED && st == WEFT_OK; n++) {
		uint32_t t = (n + m->idx) % FIXED; /* in another order on each trainer */
		for (uint32_t i = 0; i < elements[t]; i++) {
			weft_tensor_grad(m->tensor[t])[i] =
				t == UPDATED ? (float)(i % 3)
					     : gradient(m->run, m->idx, pass, step, 100 * t + i);
		}
		st = weft_push(m->tensor[t]);
	}
	for (uint32_t t = 0; t < FIXED && st == WEFT_OK; t++) {
		st = weft_wait(m->tensor[t]);
	}
	return st == WEFT_OK ? compare(m, pass, step, "answered") : st;
}

static enum weft_status
check_state(struct member *m)
{
	if (!m->run->keeps_state) {
		return WEFT_OK;
	}
	enum weft_status st = weft_pull_state(m->session);
	bool none = weft_tensor_state(m->tensor[1], 0) == NULL;
	if (st == WEFT_OK && (!none || weft_tensor_state(m->tensor[UPDATED], 1)[1] == 0)) {
		return wf_fail(WEFT_DATA, "a reduced tensor has state, or an updated one none");
	}
	return st;
}

static enum weft_status
train(struct member *m)
{
	const struct run *run = m->run;
	enum weft_status st = check_first(m);
	for (uint32_t pass = 0; pass < PASSES && st == WEFT_OK; pass++) {
		for (uint32_t s = 1; s <= run->steps[pass][m->idx] && st == WEFT_OK; s++) {
			st = take_step(m, pass, s);
		}
		st = st == WEFT_OK ? weft_pass_end(m->session) : st;
		st = st == WEFT_OK ? compare(m, pass, last_step(run, pass), "pulled") : st;
		st = st == WEFT_OK ? check_state(m) : st;
	}
	return st;
}

static int
run_trainer(struct wf_env *env, void *arg)
{
	const struct crew_seat *seat = arg;
	struct member member = {.run = seat->crew->run, .idx = seat->idx};
	struct member *m = &member;
	enum weft_status st = open_session(m, env);
	st = st == WEFT_OK ? train(m) : st;
	st = st == WEFT_OK ? weft_barrier(m->session) : st;
	(void)crew_end_session(seat, m->session, st);
	return 0;
}

static void
draw(uint64_t seed, struct run *run)
{
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 51);
	bool calm = wf_rng_below(&rng, 5) == 0;
	*run = (struct run){
		.crew.seed = seed,
		.crew.transport = "sim",
		.crew.pservers = 1 + (uint32_t)wf_rng_below(&rng, CREW_PSERVERS_MAX),
		.crew.lanes = 1 + (uint32_t)wf_rng_below(&rng, 3),
		.crew.trainers = 1 + (uint32_t)wf_rng_below(&rng, CREW_TRAINERS_MAX),
		.crew.slot_count = 1u << wf_rng_below(&rng, 4),
		.reduce = (enum weft_grad_reduce)wf_rng_below(&rng, 2),
		.slice_bytes = 64u << wf_rng_below(&rng, 3),
		.keeps_state = wf_rng_below(&rng, 2) == 0,
	};
	run->mode = seed % 3 == 2 ? WEFT_DENSE_ASYNC : WEFT_DENSE_SYNC;
	run->averages = run->mode == WEFT_DENSE_SYNC && seed % 4 == 1;
	run->crew.inbox_bytes = seed % 5 == 3 ? run->crew.trainers * run->slice_bytes * 2 : 0;
	for (uint32_t pass = 0; pass < PASSES; pass++) {
		for (uint32_t t = 0; t < run->crew.trainers; t++) {
			run->steps[pass][t] = 1 + (uint32_t)wf_rng_below(&rng, STEPS_MAX);
		}
	}
	crew_draw_world(&rng, calm, 30000, 200, &run->crew);
	/* An answer says that the gradient was read, which is before its PUT is DONE here. */
	run->in_place = seed / 2 % 2 == 1;
	run->crew.world.writes_lent = run->in_place;
	run->crew.run_trainer = run_trainer;
	run->crew.run = run;
}

int
main(int argc, char **argv)
{
	const struct wf_sweep sweep = wf_sweep_of(argc, argv, 60, 10);
	uint64_t failed = 0;
	uint64_t cuts = 0;
	for (uint64_t seed = sweep.first; seed < sweep.first + sweep.count; seed++) {
		struct run run;
		draw(seed, &run);
		if (!crew_ends_well(&run.crew, &cuts)) {
			failed++;
			(void)printf("FAILED seed %" PRIu64
				     " (mode %d, %u pservers, %u lanes, %u trainers, %u slots): "
				     "%s; repeat: WEFT_SEED=%" PRIu64 " test_reduce\n",
				     seed, (int)run.mode, run.crew.pservers, run.crew.lanes,
				     run.crew.trainers, run.crew.slot_count, run.crew.why, seed);
		}
	}
	(void)printf("%" PRIu64 " seeds, %" PRIu64 " failed, %" PRIu64 " cuts\n", sweep.count,
		     failed, cuts);
	/* A sweep that injected nothing proves nothing. */
	return failed == 0 && (sweep.is_part || sweep.count < 20 || cuts > 0) ? 0 : 1;
}
