/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs whose trainers make steps of their own and average, or draw a center towards them, under
 * seeded delays, cuts, refusals and stalls: each ends, and each trainer's parameters are after each
 * of its steps, with the bits of a computation in this file that has no fabric. And with one step
 * between exchanges, SGD and numbers that nothing rounds, they are those of the synchronous mode.
 * Usage: test_local [FIRST COUNT]; WEFT_SEED=S runs one seed, and WEFT_CLUSTER_LOG=1 shows the log
 * lines of all processes. Thread: one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/settings.h"
#include "kernels/kernels.h"
#include "tests/cluster/drawn.h"
#include "tests/support/sweep.h"

#define PASSES DRAWN_PASSES
#define STEPS_MAX 9u
#define COUNT 150u /* elements; slices of 16 */

struct model {
	float param[COUNT];
	float state[WF_STATE_MAX][COUNT];
};

struct run {
	struct crew crew;
	struct drawn drawn; /* its steps */
	enum weft_dense_mode mode;
	enum weft_grad_reduce reduce;
	enum wf_optimizer optimizer;
	uint32_t local_steps;
	double elastic_rate;
	bool exact; /* whole numbers */

	/* What trainers' parameters should be after each step, and after each pass. */
	float expected[PASSES][CREW_TRAINERS_MAX][STEPS_MAX + 1][COUNT];
	float center[PASSES][COUNT];
};

struct member {
	struct run *run;
	uint32_t idx;
	struct weft_session *session;
	struct weft_tensor *tensor;
};

static uint64_t
samples_of(const struct run *run, uint32_t trainer, uint32_t step)
{
	return run->exact ? 1 : 1 + (trainer + step) % 3;
}

/* Depends on the parameters, as gradients do. */
static float
gradient_of(const struct run *run, uint32_t trainer, uint32_t step, uint32_t i, float param)
{
	float own = (float)((trainer + 1) * (step + 2) % 5) - (float)(i % 7);
	return run->exact ? own : 0.1f * own + 0.25f * param;
}

static float
initial(uint32_t i)
{
	return (float)(i % 11) - 4.0f;
}

/* --- without a fabric --- */

static void
apply(struct run *run, enum wf_optimizer kind, float rate, struct wf_apply *apply, uint64_t updates)
{
	struct wf_optimizer_opts opts = wf_optimizer_defaults();
	opts.method.kind = kind;
	opts.set.momentum = 0.5;
	opts.set.learning_rate = (double)rate;
	wf_apply_scalars(&opts, (double)rate, updates, apply);
	if (wf_kernels_best()->apply[kind](apply) > 0) {
		(void)snprintf(run->crew.why, sizeof(run->crew.why), "not finite");
	}
}

static void
step_alone(struct run *run, struct model *own, uint32_t trainer, uint32_t step, uint64_t updates)
{
	float gradient[COUNT];
	const float *list[] = {gradient};
	for (uint32_t i = 0; i < COUNT; i++) {
		gradient[i] = gradient_of(run, trainer, step, i, own->param[i]);
	}
	bool mean = run->reduce == WEFT_REDUCE_MEAN;
	struct wf_apply a = {
		.param = own->param,
		.grad = list,
		.grad_count = 1,
		.count = COUNT,
		.divisor = mean ? (float)samples_of(run, trainer, step) : 1,
	};
	for (unsigned s = 0; s < WF_STATE_MAX; s++) {
		a.state[s] = own->state[s];
	}
	apply(run, run->optimizer, 0.125f, &a, updates);
}

struct exchange {
	float push[CREW_TRAINERS_MAX][COUNT];
	const float *list[CREW_TRAINERS_MAX];
	uint32_t count;
	uint64_t samples;
};

/* The center moves. */
static void
meet(struct run *run, struct exchange *x, float *center)
{
	bool mean = run->mode == WEFT_DENSE_LOCAL && run->reduce == WEFT_REDUCE_MEAN;
	struct wf_apply a = {
		.param = center,
		.grad = x->list,
		.grad_count = x->count,
		.count = COUNT,
		.divisor = mean ? (float)x->samples : 1,
	};
	apply(run, WF_SGD, 1, &a, 1);
}

static void
offer(struct run *run, struct model *own, const float *base, uint64_t samples, struct exchange *x)
{
	float *push = x->push[x->count];
	bool elastic = run->mode == WEFT_DENSE_ELASTIC;
	float share = run->reduce == WEFT_REDUCE_MEAN ? (float)samples : 1.0f;
	share = elastic ? (float)run->elastic_rate : share;
	for (uint32_t i = 0; i < COUNT; i++) {
		push[i] = share * (base[i] - own->param[i]);
		own->param[i] += elastic ? push[i] : 0;
	}
	x->list[x->count++] = push;
	x->samples += samples;
}

/* One trainer's steps up to its exchange number `round`; false: it has none left. */
static bool
play_steps(struct run *run, uint32_t pass, uint32_t t, uint32_t round, struct model *own,
	   uint64_t *updates, uint64_t *samples)
{
	uint32_t first = round * run->local_steps;
	uint32_t end = first + run->local_steps;
	end = end < run->drawn.steps[pass][t] ? end : run->drawn.steps[pass][t];
	*samples = 0;
	for (uint32_t step = first; step < end; step++) {
		step_alone(run, own, t, step, ++*updates);
		*samples += samples_of(run, t, step);
		memcpy(run->expected[pass][t][step], own->param, sizeof(own->param));
	}
	return first < end;
}

static void
play_pass(struct run *run, uint32_t pass, struct model *own, float *center, uint64_t *updates)
{
	static struct exchange x;
	bool more = true;
	for (uint32_t round = 0; more; round++) {
		float base[COUNT];
		bool takes_part[CREW_TRAINERS_MAX] = {false};
		memcpy(base, center, sizeof(base));
		x.count = 0;
		x.samples = 0;
		for (uint32_t t = 0; t < run->crew.trainers; t++) {
			uint64_t samples;
			takes_part[t] =
				play_steps(run, pass, t, round, &own[t], &updates[t], &samples);
			if (takes_part[t]) {
				offer(run, &own[t], base, samples, &x);
			}
		}
		more = x.count > 0;
		if (more) {
			meet(run, &x, center);
		}
		for (uint32_t t = 0; t < run->crew.trainers; t++) {
			uint32_t last = (round + 1) * run->local_steps;
			if (!takes_part[t]) {
				continue;
			}
			if (run->mode == WEFT_DENSE_LOCAL) {
				memcpy(own[t].param, center, sizeof(own[t].param));
			}
			if (last <= run->drawn.steps[pass][t]) {
				memcpy(run->expected[pass][t][last - 1], own[t].param,
				       sizeof(own[t].param));
			}
		}
	}
	for (uint32_t t = 0; t < run->crew.trainers; t++) {
		memcpy(own[t].param, center, sizeof(own[t].param));
	}
	memcpy(run->center[pass], center, sizeof(run->center[pass]));
}

static void
compute(struct run *run)
{
	static struct model own[CREW_TRAINERS_MAX];
	float center[COUNT];
	uint64_t updates[CREW_TRAINERS_MAX] = {0};
	memset(own, 0, sizeof(own));
	for (uint32_t i = 0; i < COUNT; i++) {
		center[i] = initial(i);
		for (uint32_t t = 0; t < run->crew.trainers; t++) {
			own[t].param[i] = center[i];
		}
	}
	for (uint32_t pass = 0; pass < PASSES; pass++) {
		play_pass(run, pass, own, center, updates);
	}
}

/* The synchronous mode: sums of whole numbers in any order. */
static void
compute_exactly(struct run *run)
{
	float param[COUNT];
	for (uint32_t i = 0; i < COUNT; i++) {
		param[i] = initial(i);
	}
	for (uint32_t pass = 0; pass < PASSES; pass++) {
		for (uint32_t step = 0; step < STEPS_MAX; step++) {
			uint32_t members = 0;
			for (uint32_t t = 0; t < run->crew.trainers; t++) {
				members += step < run->drawn.steps[pass][t] ? 1 : 0;
			}
			for (uint32_t i = 0; i < COUNT && members > 0; i++) {
				float sum = 0;
				for (uint32_t t = 0; t < run->crew.trainers; t++) {
					sum += step < run->drawn.steps[pass][t]
						       ? gradient_of(run, t, step, i, 0)
						       : 0;
				}
				param[i] -= 0.125f * sum;
			}
		}
		memcpy(run->center[pass], param, sizeof(param));
	}
}

/* --- with one --- */

static enum weft_status
open_session(struct member *m, struct wf_env *env)
{
	const struct run *run = m->run;
	struct weft_session_opts opts;
	crew_fill_opts(&run->crew, m->idx, &opts);
	opts.slice_bytes = 64;
	opts.grad_reduce = run->reduce;
	opts.dense_mode = run->mode;
	opts.local_steps = run->mode == WEFT_DENSE_SYNC ? 0 : run->local_steps;
	opts.elastic_rate = run->elastic_rate;
	opts.optimizer.method = wf_optimizer_name(run->optimizer);
	bool has_momentum = run->optimizer == WF_MOMENTUM || run->optimizer == WF_NESTEROV ||
			    run->optimizer == WF_TORCH_MOMENTUM || run->optimizer == WF_TORCH_SGD;
	opts.optimizer.momentum = has_momentum ? 0.5 : 0;
	opts.optimizer.learning_rate = 0.125;
	enum weft_status st = wf_session_open_in(env, &opts, &m->session);
	const struct weft_tensor_opts tensor = {.name = "w", .rows = COUNT};
	if (st == WEFT_OK) {
		st = weft_tensor_add(m->session, &tensor, &m->tensor);
	}
	if (st == WEFT_OK) {
		st = weft_session_seal(m->session);
	}
	for (uint32_t i = 0; i < COUNT && st == WEFT_OK && m->idx == 0; i++) {
		weft_tensor_param(m->tensor)[i] = initial(i);
	}
	return st == WEFT_OK ? weft_session_start(m->session) : st;
}

static enum weft_status
compare(const struct member *m, const float *expected, const char *when, uint32_t number)
{
	const float *param = weft_tensor_param(m->tensor);
	for (uint32_t i = 0; i < COUNT; i++) {
		if (memcmp(&param[i], &expected[i], sizeof(float)) != 0 &&
		    param[i] != expected[i]) {
			return wf_fail(WEFT_DATA, "%s %u: element %u is %.9g, not %.9g", when,
				       number, i, (double)param[i], (double)expected[i]);
		}
	}
	return WEFT_OK;
}

static enum weft_status
train(struct member *m)
{
	const struct run *run = m->run;
	enum weft_status st = WEFT_OK;
	for (uint32_t pass = 0; pass < PASSES && st == WEFT_OK; pass++) {
		for (uint32_t step = 0; step < run->drawn.steps[pass][m->idx] && st == WEFT_OK;
		     step++) {
			for (uint32_t i = 0; i < COUNT; i++) {
				float param = weft_tensor_param(m->tensor)[i];
				weft_tensor_grad(m->tensor)[i] =
					gradient_of(run, m->idx, step, i, param);
			}
			st = weft_exchange(m->session, samples_of(run, m->idx, step), 0);
			if (st == WEFT_OK && !run->exact) {
				st = compare(m, run->expected[pass][m->idx][step], "step",
					     step + 1);
			}
		}
		if (st == WEFT_OK) {
			st = weft_pass_end(m->session);
		}
		if (st == WEFT_OK) {
			st = compare(m, run->center[pass], "pass", pass);
		}
	}
	return st;
}

static int
run_trainer(struct wf_env *env, void *arg)
{
	const struct crew_seat *seat = arg;
	struct member member = {.run = seat->crew->run, .idx = seat->idx};
	enum weft_status st = open_session(&member, env);
	st = st == WEFT_OK ? train(&member) : st;
	(void)crew_end_session(seat, member.session, st);
	return 0;
}

/* --- runs --- */

static void
draw(uint64_t seed, struct run *run)
{
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 47);
	bool calm = wf_rng_below(&rng, 5) == 0;
	memset(run, 0, sizeof(*run));
	run->crew.seed = seed;
	run->mode = wf_rng_below(&rng, 2) == 0 ? WEFT_DENSE_LOCAL : WEFT_DENSE_ELASTIC;
	run->reduce = wf_rng_below(&rng, 2) == 0 ? WEFT_REDUCE_SUM : WEFT_REDUCE_MEAN;
	run->optimizer = (enum wf_optimizer)wf_rng_below(&rng, WF_OPTIMIZER_COUNT);
	run->local_steps = 1 + (uint32_t)wf_rng_below(&rng, 4);
	run->crew.pservers = 1 + (uint32_t)wf_rng_below(&rng, CREW_PSERVERS_MAX);
	run->crew.lanes = 1 + (uint32_t)wf_rng_below(&rng, 2);
	run->crew.trainers = 1 + (uint32_t)wf_rng_below(&rng, CREW_TRAINERS_MAX);
	run->crew.slot_count = 1u << wf_rng_below(&rng, 4);
	run->crew.transport = wf_rng_below(&rng, 2) == 0 ? "sim" : "sim-auto";
	run->elastic_rate = run->mode == WEFT_DENSE_ELASTIC ? 0.25 : 0;
	drawn_steps(&rng, run->crew.trainers, STEPS_MAX, 0, &run->drawn);
	/* As many of the runs as there are modes and reductions. */
	run->exact = seed % 5 == 0;
	if (run->exact) {
		bool sync = seed % 2 == 0; /* the oracle's oracle */
		run->mode = sync ? WEFT_DENSE_SYNC : WEFT_DENSE_LOCAL;
		run->reduce = WEFT_REDUCE_SUM;
		run->optimizer = WF_SGD;
		run->local_steps = 1;
		run->elastic_rate = 0;
	}
	crew_draw_world(&rng, calm, 8000, 200, &run->crew);
	run->crew.run_trainer = run_trainer;
	run->crew.run = run;
}

int
main(int argc, char **argv)
{
	const struct wf_sweep sweep = wf_sweep_of(argc, argv, 100, 10);
	uint64_t failed = 0;
	uint64_t cuts = 0;
	for (uint64_t seed = sweep.first; seed < sweep.first + sweep.count; seed++) {
		static struct run run;
		draw(seed, &run);
		if (run.exact) {
			compute_exactly(&run);
		} else {
			compute(&run);
		}
		if (!crew_ends_well(&run.crew, &cuts)) {
			failed++;
			(void)printf("FAILED seed %" PRIu64
				     " (mode %d, reduce %d, optimizer %d, %u local steps, "
				     "%u pservers, %u lanes, %u trainers, %u slots, %s%s): %s; "
				     "repeat: WEFT_SEED=%" PRIu64 " test_local\n",
				     seed, (int)run.mode, (int)run.reduce, (int)run.optimizer,
				     run.local_steps, run.crew.pservers, run.crew.lanes,
				     run.crew.trainers, run.crew.slot_count, run.crew.transport,
				     run.exact ? ", exact" : "", run.crew.why, seed);
		}
	}
	(void)printf("%" PRIu64 " seeds, %" PRIu64 " failed, %" PRIu64 " cuts\n", sweep.count,
		     failed, cuts);
	/* A sweep that injected nothing proves nothing. */
	return failed == 0 && (sweep.is_part || sweep.count < 20 || cuts > 0) ? 0 : 1;
}
