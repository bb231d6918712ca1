/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs whose tensors, or some of them, are applied as they arrive, under seeded delays, cuts,
 * refusals, stalls and kills. Every push subtracts 1 from each element, so that a slice counts the
 * pushes that were applied to it: none is applied twice, none is lost that was not reported to its
 * sender, no answer is torn (all elements of a slice are equal), all trainers end a pass with the
 * same values, and none is further ahead than the bound allows. Usage: test_async [FIRST COUNT
 * [kill]]; WEFT_SEED=S runs one seed, and WEFT_CLUSTER_LOG=1 shows the log lines of all processes.
 * Thread: one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/settings.h"
#include "tests/support/crew.h"
#include "tests/support/sweep.h"

#define PASSES 2u
#define STEPS_MAX 10u
#define TENSORS 2u
#define SLICE_FLOATS 64u /* 256 bytes */

struct run {
	struct crew crew;
	enum weft_dense_mode mode;
	uint32_t staleness;
	double discard_ratio;
	double clip_norm;        /* of synchronous steps; longer than any gradient here */
	uint32_t count[TENSORS]; /* elements */
	struct weft_tensor_opts own[TENSORS]; /* mode, staleness, discard_ratio: of its own */
	uint32_t steps[PASSES][CREW_TRAINERS_MAX];
	bool goes_on;    /* from step 7 of another job */
	bool one_by_one; /* tensors are waited for one after the other */

	/* What happens. */
	uint32_t pass[CREW_TRAINERS_MAX];   /* under way */
	uint32_t pushed[CREW_TRAINERS_MAX]; /* steps that it has begun to push, in this pass */
	bool out[CREW_TRAINERS_MAX];
	bool done[CREW_TRAINERS_MAX];
	double sum[CREW_TRAINERS_MAX]; /* of all elements / slice, after the last pass */
	uint64_t answered[CREW_TRAINERS_MAX], discarded[CREW_TRAINERS_MAX];
	uint64_t digest[CREW_TRAINERS_MAX];
	uint64_t told_applied, told_discarded; /* of all trainers, by the lanes */
	enum weft_status status[CREW_TRAINERS_MAX];
	uint64_t applied; /* lanes: slices */
};

struct member {
	struct run *run;
	uint32_t idx;
	struct weft_session *session;
	struct weft_tensor *tensor[TENSORS];
};

/* What a tensor is to others: steps that its trainer may be ahead; UINT32_MAX: any. */
static uint32_t
bound_of(const struct run *run, uint32_t tensor)
{
	const struct weft_tensor_opts *own = &run->own[tensor];
	switch (own->mode) {
	case WEFT_TENSOR_SYNC:
		return 0;
	case WEFT_TENSOR_ASYNC:
		return UINT32_MAX;
	case WEFT_TENSOR_BOUNDED:
		return own->staleness;
	case WEFT_TENSOR_AS_SESSION:
	default:
		return run->mode == WEFT_DENSE_SYNC    ? 0
		       : run->mode == WEFT_DENSE_ASYNC ? UINT32_MAX
						       : run->staleness;
	}
}

/* Of all tensors: the least, or the most. */
static uint32_t
bound_of_all(const struct run *run, bool least)
{
	uint32_t bound = bound_of(run, 0);
	for (uint32_t t = 1; t < TENSORS; t++) {
		uint32_t of = bound_of(run, t);
		bound = (of < bound) == least ? of : bound;
	}
	return bound;
}

static enum weft_status
open_session(struct member *m, struct wf_env *env)
{
	const struct run *run = m->run;
	static const char *const name[TENSORS] = {"a", "b"};
	struct weft_session_opts opts;
	crew_fill_opts(&run->crew, m->idx, &opts);
	opts.slice_bytes = SLICE_FLOATS * sizeof(float);
	opts.dense_mode = run->mode;
	opts.dense_staleness = run->staleness;
	opts.dense_discard_ratio = run->discard_ratio;
	opts.optimizer.learning_rate = 1;
	opts.optimizer.clip_norm = run->clip_norm;
	enum weft_status st = wf_session_open_in(env, &opts, &m->session);
	for (uint32_t i = 0; i < TENSORS && st == WEFT_OK; i++) {
		struct weft_tensor_opts tensor = run->own[i];
		tensor.name = name[i];
		tensor.rows = run->count[i];
		st = weft_tensor_add(m->session, &tensor, &m->tensor[i]);
	}
	if (st == WEFT_OK) {
		st = weft_session_seal(m->session);
	}
	if (st == WEFT_OK && run->goes_on && m->idx == 0) {
		st = weft_session_restore(m->session, 7, 50);
	}
	return st == WEFT_OK ? weft_session_start(m->session) : st;
}

/* The elements of each slice are equal, and whole numbers. `sum`: over slices. */
static enum weft_status
check_values(const struct member *m, double *sum)
{
	*sum = 0;
	for (uint32_t t = 0; t < TENSORS; t++) {
		const float *value = weft_tensor_param(m->tensor[t]);
		for (uint32_t i = 0; i < m->run->count[t]; i++) {
			float first = value[i - i % SLICE_FLOATS];
			if (value[i] != first || first != (float)(int)first) {
				return wf_fail(WEFT_DATA,
					       "element %u of tensor %u is %g, its slice begins "
					       "with %g",
					       i, t, (double)value[i], (double)first);
			}
			*sum += i % SLICE_FLOATS == 0 ? (double)first : 0;
		}
	}
	return WEFT_OK;
}

/* Nobody in this pass has pushed too little for this trainer to be where it is. */
static enum weft_status
check_bound(const struct member *m)
{
	const struct run *run = m->run;
	uint32_t pass = run->pass[m->idx];
	uint32_t mine = run->pushed[m->idx];
	uint32_t bound = bound_of_all(run, true);
	for (uint32_t t = 0; t < run->crew.trainers; t++) {
		bool behind = run->pass[t] < pass;
		uint32_t other = behind ? 0 : run->pushed[t];
		bool counts = behind || (run->pass[t] == pass && !run->out[t]);
		if (bound != UINT32_MAX && counts && other + bound < mine) {
			return wf_fail(WEFT_DATA,
				       "step %u of pass %u was answered, trainer %u has pushed %u, "
				       "%u behind are allowed",
				       mine, pass, t, other, bound);
		}
	}
	return WEFT_OK;
}

static enum weft_status
exchange(struct member *m)
{
	if (!m->run->one_by_one) {
		return weft_exchange(m->session, 1, 0);
	}
	enum weft_status st = weft_step(m->session, 1, 0);
	for (uint32_t i = 0; i < TENSORS && st == WEFT_OK; i++) {
		uint32_t t = m->idx % 2 == 0 ? i : TENSORS - 1 - i; /* in opposite orders */
		st = weft_push(m->tensor[t]);
		/* Where all are summed this would wait for ever. */
		if (st == WEFT_OK && bound_of_all(m->run, false) > 0) {
			st = weft_wait(m->tensor[t]);
		}
	}
	return st == WEFT_OK ? weft_wait_all(m->session) : st;
}

static enum weft_status
train_pass(struct member *m, uint32_t pass)
{
	struct run *run = m->run;
	enum weft_status st = WEFT_OK;
	double sum = 0;
	run->pushed[m->idx] = 0;
	run->out[m->idx] = false;
	run->pass[m->idx] = pass;
	for (uint32_t step = 0; step < run->steps[pass][m->idx] && st == WEFT_OK; step++) {
		run->pushed[m->idx]++;
		st = exchange(m);
		if (st == WEFT_OK) {
			st = check_bound(m);
		}
		if (st == WEFT_OK) {
			st = check_values(m, &sum);
		}
	}
	run->out[m->idx] = true;
	return st == WEFT_OK ? weft_pass_end(m->session) : st;
}

static enum weft_status
train(struct member *m)
{
	for (uint32_t t = 0; t < TENSORS; t++) {
		for (uint32_t i = 0; i < m->run->count[t]; i++) {
			weft_tensor_grad(m->tensor[t])[i] = -1;
		}
	}
	enum weft_status st = WEFT_OK;
	for (uint32_t pass = 0; pass < PASSES && st == WEFT_OK; pass++) {
		st = train_pass(m, pass);
	}
	if (st == WEFT_OK) {
		st = check_values(m, &m->run->sum[m->idx]);
	}
	return st == WEFT_OK ? weft_digest(m->session, &m->run->digest[m->idx]) : st;
}

/* Trainer 0, when all have ended the last pass, asks what lanes know of each. */
static enum weft_status
ask(struct member *m)
{
	struct run *run = m->run;
	enum weft_status st = WEFT_OK;
	for (uint32_t t = 0; t < run->crew.trainers && st == WEFT_OK && m->idx == 0; t++) {
		struct weft_trainer_stats stats = {.struct_bytes = sizeof(stats)};
		st = weft_trainer_stats(m->session, t, &stats);
		run->told_applied += stats.slices_applied;
		run->told_discarded += stats.slices_discarded;
	}
	uint64_t samples = 0;
	if (st == WEFT_OK && bound_of_all(run, false) > 0 &&
	    weft_samples(m->session, &samples) != WEFT_INVALID) {
		st = wf_fail(WEFT_DATA, "trainers with steps of their own have common samples");
	}
	return st;
}

static int
run_trainer(struct wf_env *env, void *arg)
{
	const struct crew_seat *seat = arg;
	struct member member = {.run = seat->crew->run, .idx = seat->idx};
	struct member *m = &member;
	struct run *run = m->run;
	struct weft_session_stats stats = {.struct_bytes = sizeof(stats)};
	enum weft_status st = open_session(m, env);
	if (st == WEFT_OK) {
		st = train(m);
	}
	if (st == WEFT_OK) {
		st = ask(m);
	}
	if (st == WEFT_OK) {
		st = weft_session_stats(m->session, &stats);
	}
	run->answered[m->idx] = stats.slices_answered;
	run->discarded[m->idx] = stats.slices_discarded;
	run->status[m->idx] = crew_end_session(seat, m->session, st);
	run->done[m->idx] = true;
	return 0;
}

/* Half of the jobs have tensors with modes of their own. */
static void
draw_own(struct run *run)
{
	struct wf_rng rng;
	wf_rng_init(&rng, run->crew.seed, 45);
	if (wf_rng_below(&rng, 2) == 0) {
		return;
	}
	bool sync = wf_rng_below(&rng, 2) == 0;
	for (uint32_t i = 0; i < TENSORS; i++) {
		struct weft_tensor_opts *own = &run->own[i];
		own->mode = (enum weft_tensor_mode)wf_rng_below(&rng, 4);
		bool bounded = own->mode == WEFT_TENSOR_BOUNDED;
		bool lags = bounded || own->mode == WEFT_TENSOR_ASYNC;
		own->staleness = bounded ? (uint32_t)wf_rng_below(&rng, 4) : 0;
		own->discard_ratio = lags ? 0.5 * (double)wf_rng_below(&rng, 4) : 0;
	}
	if (sync) {
		run->mode = WEFT_DENSE_SYNC;
		run->staleness = 0;
		run->discard_ratio = 0;
	}
}

static void
draw(uint64_t seed, bool kills, struct run *run)
{
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 43);
	bool calm = wf_rng_below(&rng, 5) == 0;
	*run = (struct run){
		.crew.seed = seed,
		.crew.kills = kills,
		.mode = wf_rng_below(&rng, 2) == 0 ? WEFT_DENSE_ASYNC : WEFT_DENSE_BOUNDED,
		.crew.pservers = 1 + (uint32_t)wf_rng_below(&rng, CREW_PSERVERS_MAX),
		.crew.lanes = 1 + (uint32_t)wf_rng_below(&rng, 2),
		.crew.trainers = 1 + (uint32_t)wf_rng_below(&rng, CREW_TRAINERS_MAX),
		.crew.slot_count = 1u << wf_rng_below(&rng, 4),
		.goes_on = wf_rng_below(&rng, 4) == 0,
		.one_by_one = wf_rng_below(&rng, 3) == 0,
		.crew.transport = wf_rng_below(&rng, 2) == 0 ? "sim" : "sim-auto",
	};
	run->crew.trainers += kills && run->crew.trainers == 1 ? 1 : 0;
	run->staleness =
		run->mode == WEFT_DENSE_BOUNDED ? (uint32_t)wf_rng_below(&rng, 4) : 0; /* 0: sync */
	bool drops = wf_rng_below(&rng, 2) == 0;
	run->discard_ratio = drops ? 0.25 * (double)(1 + wf_rng_below(&rng, 6)) : 0;
	for (uint32_t i = 0; i < TENSORS; i++) {
		run->count[i] = 1 + (uint32_t)wf_rng_below(&rng, 20 * SLICE_FLOATS);
	}
	for (uint32_t i = 0; i < PASSES * run->crew.trainers; i++) {
		uint32_t steps = 1 + (uint32_t)wf_rng_below(&rng, STEPS_MAX);
		bool idle = wf_rng_below(&rng, 8) == 0; /* no data in this pass */
		run->steps[i / run->crew.trainers][i % run->crew.trainers] = idle ? 0 : steps;
	}
	bool clips = wf_rng_below(&rng, 2) == 0;
	draw_own(run);
	bool strict = run->mode != WEFT_DENSE_ASYNC && run->staleness == 0 &&
		      bound_of_all(run, false) == 0;
	run->clip_norm = strict && clips ? 1e9 : 0;
	/* More lanes than slices: training begins before all lanes have been reached. */
	bool few = wf_rng_below(&rng, 8) == 0;
	if (few) {
		run->crew.pservers = run->crew.lanes = 2;
		run->count[0] = run->count[1] = 1;
		run->goes_on = true;
		calm = false;
	}
	crew_draw_world(&rng, calm, few ? 40000 : 8000, 200, &run->crew);
	run->crew.world.second_cut_per_million = calm ? 0 : (uint32_t)wf_rng_below(&rng, 8000);
	run->crew.world.second_cut_max = 1 + (uint32_t)wf_rng_below(&rng, 40);
	run->crew.run_trainer = run_trainer;
	run->crew.run = run;
}

/* Slices that were pushed, and what became of them. */
static void
check_counts(struct run *run)
{
	uint64_t slices = 0;
	uint64_t lagging = 0; /* of these, those that are applied as they come */
	uint64_t steps = 0;
	uint64_t pushed = 0;
	uint64_t answered = 0;
	uint64_t discarded = 0;
	for (uint32_t i = 0; i < TENSORS; i++) {
		uint64_t of = (run->count[i] + SLICE_FLOATS - 1) / SLICE_FLOATS;
		slices += of;
		lagging += bound_of(run, i) > 0 ? of : 0;
	}
	for (uint32_t t = 0; t < run->crew.trainers; t++) {
		for (uint32_t p = 0; p < PASSES; p++) {
			pushed += slices * run->steps[p][t];
			steps += run->steps[p][t];
		}
		answered += run->answered[t];
		discarded += run->discarded[t];
	}
	answered -= slices; /* trainer 0's initial values */
	bool same = true;
	for (uint32_t t = 0; t < run->crew.trainers; t++) {
		same = same && run->sum[t] == (double)(pushed - discarded) &&
		       run->digest[t] == run->digest[0];
	}
	same = same && run->told_discarded == discarded &&
	       run->told_applied + discarded == lagging * steps;
	if (run->crew.why[0] == '\0' && (!same || answered != pushed)) {
		(void)snprintf(run->crew.why, sizeof(run->crew.why),
			       "%" PRIu64 " slices pushed, %" PRIu64 " answered, %" PRIu64
			       " reported as discarded, %g applied; the lanes say %" PRIu64
			       " applied as they came, %" PRIu64 " discarded; digests are %s",
			       pushed, answered, discarded, run->sum[0], run->told_applied,
			       run->told_discarded,
			       run->digest[0] == run->digest[run->crew.trainers - 1] ? "equal"
										     : "not equal");
	}
}

/* Trainer 0 was killed: nobody waits for ever, and nobody ends well who needed it. */
static void
check_killed(struct run *run)
{
	for (uint32_t t = 0; t < run->crew.trainers; t++) {
		bool must = run->done[t] || (t == 0 && !run->done[0]);
		if (run->crew.why[0] == '\0' && !must) {
			(void)snprintf(run->crew.why, sizeof(run->crew.why),
				       "trainer %u did not end", t);
		}
	}
}

int
main(int argc, char **argv)
{
	const struct wf_sweep sweep = wf_sweep_of(argc, argv, 100, 10);
	bool kills = argc > 3;
	uint64_t failed = 0;
	uint64_t cuts = 0;
	uint64_t discarded = 0;
	uint64_t killed = 0;
	for (uint64_t seed = sweep.first; seed < sweep.first + sweep.count; seed++) {
		struct run run;
		struct wf_world_stats stats = {0};
		draw(seed, kills, &run);
		enum weft_status st = crew_play(&run.crew, &stats);
		cuts += stats.cuts;
		if (run.crew.ended == run.crew.trainers) {
			check_counts(&run);
		} else if (kills && !run.done[0]) {
			check_killed(&run);
			killed++;
		}
		for (uint32_t t = 0; t < run.crew.trainers; t++) {
			discarded += run.discarded[t];
		}
		bool ended = run.crew.ended == run.crew.trainers || (kills && !run.done[0]);
		if (st != WEFT_OK || !ended || run.crew.why[0] != '\0') {
			failed++;
			(void)printf("FAILED seed %" PRIu64
				     " (mode %d, staleness %u, ratio %g; a: %d, %u; b: %d, %u; "
				     "%u pservers, %u lanes, "
				     "%u trainers, %u slots, %s): %s; repeat: WEFT_SEED=%" PRIu64
				     " test_async%s\n",
				     seed, (int)run.mode, run.staleness, run.discard_ratio,
				     (int)run.own[0].mode, run.own[0].staleness,
				     (int)run.own[1].mode, run.own[1].staleness, run.crew.pservers,
				     run.crew.lanes, run.crew.trainers, run.crew.slot_count,
				     run.crew.transport, run.crew.why, seed,
				     kills ? " 1 1 kill" : "");
		}
	}
	(void)printf("%" PRIu64 " seeds, %" PRIu64 " failed, %" PRIu64 " cuts, %" PRIu64
		     " slices discarded, %" PRIu64 " killed\n",
		     sweep.count, failed, cuts, discarded, killed);
	/* A sweep that injected nothing proves nothing. */
	bool enough = sweep.is_part || sweep.count < 20 ||
		      (kills ? killed > 0 : cuts > 0 && discarded > 0);
	return failed == 0 && enough ? 0 : 1;
}
