/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that are not declared, reduced between and inside the steps of synchronous, asynchronous
 * and bounded jobs, and of jobs without tensors, under seeded delays, cuts, refusals and stalls:
 * every trainer gets the bits of a sum in trainer order that this file computes by itself, in each
 * type, whatever the size of the ring, and the tensors have the bits that they have without it.
 * Usage: test_all_reduce [FIRST COUNT]; WEFT_SEED=S runs one seed, and WEFT_CLUSTER_LOG=1 shows the
 * log lines of all processes. Thread: one. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/settings.h"
#include "kernels/half.h"
#include "tests/support/crew.h"
#include "tests/support/sweep.h"

#define PASSES 2u
#define STEPS_MAX 5u
#define TENSORS 2u
#define ELEMENTS 70u
#define COUNT_MAX 2000u
#define TYPES 6u

struct run {
	struct crew crew;
	enum weft_dense_mode mode;
	uint64_t slice_bytes, ring_bytes;
	uint32_t tensors; /* 0: arrays are all that the job exchanges */
	uint32_t steps[PASSES][CREW_TRAINERS_MAX];
};

struct member {
	const struct run *run;
	uint32_t idx;
	uint32_t calls;
	struct weft_session *session;
	struct weft_tensor *tensor[TENSORS];
};

union value {
	float f32;
	double f64;
	uint16_t half;
	uint32_t i32;
	uint64_t i64;
};

static const size_t bytes_of[TYPES] = {4, 8, 2, 2, 4, 8};

struct what {
	uint32_t count;
	enum weft_type type;
	enum weft_grad_reduce how;
};

/* A call is the same on all trainers. */
static struct what
call_of(const struct run *run, uint32_t call)
{
	struct wf_rng rng;
	wf_rng_init(&rng, run->crew.seed, 7000 + call);
	struct what what = {.type = (enum weft_type)wf_rng_below(&rng, TYPES)};
	bool large = wf_rng_below(&rng, 4) == 0;
	what.count = (uint32_t)wf_rng_below(&rng, large ? COUNT_MAX : 40);
	if (what.type < WEFT_TYPE_I32) {
		what.how = (enum weft_grad_reduce)wf_rng_below(&rng, 2);
	}
	return what;
}

/* Of sizes so different that the order of a sum shows, and now and then no number. */
static union value
element(const struct run *run, uint32_t trainer, uint32_t call, enum weft_type type, uint32_t i)
{
	static const float special[] = {NAN, INFINITY, -INFINITY, -0.0f, 3e38f, 1e-45f};
	struct wf_rng rng;
	wf_rng_init(&rng, run->crew.seed * 64 + trainer, call * 100000ull + i);
	uint64_t drawn = wf_rng_below(&rng, 60);
	double size = ldexp(1, (int)wf_rng_below(&rng, 24) - 12);
	double x = drawn < 6 ? (double)special[drawn] : (wf_rng_f64(&rng) - 0.5) * size;
	union value value = {.i64 = wf_rng_u64(&rng)};
	if (type == WEFT_TYPE_F32) {
		value.f32 = (float)x;
	} else if (type == WEFT_TYPE_F64) {
		value.f64 = x;
	} else if (type == WEFT_TYPE_BF16) {
		value.half = wf_bf16_of((float)x);
	} else if (type == WEFT_TYPE_F16) {
		value.half = wf_f16_of((float)x);
	}
	return value;
}

static float
widen(enum weft_type type, uint16_t half)
{
	return type == WEFT_TYPE_BF16 ? wf_f32_of_bf16(half) : wf_f32_of_f16(half);
}

static uint16_t
narrow(enum weft_type type, float x)
{
	return type == WEFT_TYPE_BF16 ? wf_bf16_of(x) : wf_f16_of(x);
}

static void
add(enum weft_type type, union value *sum, const union value *next)
{
	switch (type) {
	case WEFT_TYPE_F32:
		sum->f32 += next->f32;
		break;
	case WEFT_TYPE_F64:
		sum->f64 += next->f64;
		break;
	case WEFT_TYPE_BF16:
	case WEFT_TYPE_F16:
		sum->half = narrow(type, widen(type, sum->half) + widen(type, next->half));
		break;
	case WEFT_TYPE_I32:
		sum->i32 += next->i32;
		break;
	case WEFT_TYPE_I64:
		sum->i64 += next->i64;
		break;
	}
}

static union value
wanted(const struct run *run, uint32_t call, const struct what *what, uint32_t i)
{
	union value sum = element(run, 0, call, what->type, i);
	for (uint32_t t = 1; t < run->crew.trainers; t++) {
		union value next = element(run, t, call, what->type, i);
		add(what->type, &sum, &next);
	}
	float by = (float)run->crew.trainers;
	if (what->how == WEFT_REDUCE_MEAN && what->type == WEFT_TYPE_F32) {
		sum.f32 /= by;
	} else if (what->how == WEFT_REDUCE_MEAN && what->type == WEFT_TYPE_F64) {
		sum.f64 /= (double)by;
	} else if (what->how == WEFT_REDUCE_MEAN) {
		sum.half = narrow(what->type, widen(what->type, sum.half) / by);
	}
	return sum;
}

/* The same bits, or both no number. */
static bool
same(enum weft_type type, const union value *a, const union value *b)
{
	bool nan = false;
	if (type == WEFT_TYPE_F32) {
		nan = isnan(a->f32) && isnan(b->f32);
	} else if (type == WEFT_TYPE_F64) {
		nan = isnan(a->f64) && isnan(b->f64);
	} else if (type == WEFT_TYPE_BF16 || type == WEFT_TYPE_F16) {
		nan = isnan(widen(type, a->half)) && isnan(widen(type, b->half));
	}
	return nan || memcmp(a, b, bytes_of[type]) == 0;
}

static enum weft_status
reduce(struct member *m)
{
	static uint64_t room[COUNT_MAX];
	const struct run *run = m->run;
	uint32_t call = ++m->calls;
	struct what what = call_of(run, call);
	size_t each = bytes_of[what.type];
	uint8_t *array = malloc(sizeof(room)); /* exact bounds are the sanitizer's to check */
	if (array == NULL) {
		return wf_fail(WEFT_NOMEM, "test: no memory");
	}
	for (uint32_t i = 0; i < what.count; i++) {
		union value value = element(run, m->idx, call, what.type, i);
		memcpy(array + i * each, &value, each);
	}
	enum weft_status st = weft_all_reduce(m->session, array, what.count, what.type, what.how);
	for (uint32_t i = 0; i < what.count && st == WEFT_OK; i++) {
		union value got = {.i64 = 0}, due = wanted(run, call, &what, i);
		memcpy(&got, array + i * each, each);
		if (!same(what.type, &got, &due)) {
			st = wf_fail(WEFT_DATA,
				     "call %u, element %u of %u of type %d: %" PRIx64
				     ", not %" PRIx64,
				     call, i, what.count, (int)what.type, got.i64, due.i64);
		}
	}
	free(array);
	return st;
}

static enum weft_status
open_session(struct member *m, struct wf_env *env)
{
	const struct run *run = m->run;
	struct weft_session_opts opts;
	struct weft_settings *settings = NULL;
	char ring[24];
	(void)snprintf(ring, sizeof(ring), "%" PRIu64, run->ring_bytes);
	crew_fill_opts(&run->crew, m->idx, &opts);
	opts.slice_bytes = run->slice_bytes;
	opts.dense_mode = run->mode;
	opts.dense_staleness = run->mode == WEFT_DENSE_BOUNDED ? 2 : 0;
	opts.optimizer.learning_rate = 1;
	enum weft_status st = weft_settings_create(WEFT_SETTINGS_SESSION, &settings);
	st = st == WEFT_OK ? weft_settings_set(settings, "all_reduce_ring", ring) : st;
	if (st == WEFT_OK) {
		wf_settings_set_env(settings, env);
		opts.settings = settings;
		st = weft_session_open(&opts, &m->session);
	}
	weft_settings_destroy(settings);
	for (uint32_t t = 0; t < run->tensors && st == WEFT_OK; t++) {
		const struct weft_tensor_opts declared = {
			.name = t == 0 ? "w" : "fixed", .rows = ELEMENTS, .is_static = t == 1};
		st = weft_tensor_add(m->session, &declared, &m->tensor[t]);
	}
	st = st == WEFT_OK ? weft_session_seal(m->session) : st;
	for (uint32_t t = 0; t < run->tensors && st == WEFT_OK; t++) {
		for (uint32_t i = 0; i < ELEMENTS; i++) {
			weft_tensor_param(m->tensor[t])[i] = m->idx == 0 ? (float)i : -1;
		}
	}
	return st == WEFT_OK ? weft_session_start(m->session) : st;
}

/* Steps that all trainers make in the pass. */
static uint32_t
common_steps(const struct run *run, uint32_t pass)
{
	uint32_t least = STEPS_MAX;
	for (uint32_t t = 0; t < run->crew.trainers; t++) {
		least = run->steps[pass][t] < least ? run->steps[pass][t] : least;
	}
	return least;
}

static enum weft_status
make_step(struct member *m, uint32_t step, bool reduces)
{
	enum weft_status st = weft_step(m->session, 1, 0);
	for (uint32_t i = 0; i < ELEMENTS && st == WEFT_OK; i++) {
		weft_tensor_grad(m->tensor[0])[i] = (float)(i % 3);
	}
	st = st == WEFT_OK ? weft_push(m->tensor[0]) : st;
	if (st == WEFT_OK && reduces && step % 2 == 0) {
		st = reduce(m); /* while the push is under way */
	}
	st = st == WEFT_OK ? weft_wait(m->tensor[0]) : st;
	return st == WEFT_OK && reduces ? reduce(m) : st;
}

static enum weft_status
train(struct member *m)
{
	const struct run *run = m->run;
	enum weft_status st = WEFT_OK;
	for (uint32_t pass = 0; pass < PASSES && st == WEFT_OK; pass++) {
		st = reduce(m);
		uint32_t steps = run->tensors > 0 ? run->steps[pass][m->idx] : 0;
		for (uint32_t s = 1; s <= steps && st == WEFT_OK; s++) {
			st = make_step(m, s, s <= common_steps(run, pass));
		}
		st = st == WEFT_OK ? weft_pass_end(m->session) : st;
	}
	for (uint32_t i = 0; i < 6 && st == WEFT_OK; i++) {
		st = reduce(m);
	}
	return st;
}

/* All pushes are multiples of a power of two, so that sums have no order. */
static enum weft_status
check_tensors(const struct member *m)
{
	const struct run *run = m->run;
	uint32_t pushes = 0;
	for (uint32_t pass = 0; pass < PASSES; pass++) {
		for (uint32_t t = 0; t < run->crew.trainers; t++) {
			pushes += run->steps[pass][t];
		}
	}
	for (uint32_t i = 0; i < ELEMENTS && run->tensors > 0; i++) {
		float due = (float)i - (float)(i % 3) * (float)pushes;
		if (weft_tensor_param(m->tensor[0])[i] != due ||
		    weft_tensor_param(m->tensor[1])[i] != (float)i) {
			return wf_fail(WEFT_DATA,
				       "element %u of the tensors is not what it should "
				       "be",
				       i);
		}
	}
	return WEFT_OK;
}

static int
run_trainer(struct wf_env *env, void *arg)
{
	const struct crew_seat *seat = arg;
	struct member member = {.run = seat->crew->run, .idx = seat->idx};
	struct member *m = &member;
	enum weft_status st = open_session(m, env);
	st = st == WEFT_OK ? train(m) : st;
	st = st == WEFT_OK ? check_tensors(m) : st;
	(void)crew_end_session(seat, m->session, st);
	return 0;
}

static void
draw(uint64_t seed, struct run *run)
{
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 52);
	bool calm = wf_rng_below(&rng, 5) == 0;
	*run = (struct run){
		.crew.seed = seed,
		.crew.transport = "sim",
		.crew.pservers = 1 + (uint32_t)wf_rng_below(&rng, CREW_PSERVERS_MAX),
		.crew.lanes = 1 + (uint32_t)wf_rng_below(&rng, 3),
		.crew.trainers = 1 + (uint32_t)wf_rng_below(&rng, CREW_TRAINERS_MAX),
		.crew.slot_count = 1u << wf_rng_below(&rng, 4),
		.slice_bytes = 128u << wf_rng_below(&rng, 3),
		.tensors = seed % 7 == 0 ? 0 : TENSORS,
	};
	run->ring_bytes = 1 + wf_rng_below(&rng, 12 * run->slice_bytes);
	run->mode = (enum weft_dense_mode)(seed % 3);
	run->crew.inbox_bytes = seed % 5 == 3 ? run->crew.trainers * run->slice_bytes : 0;
	for (uint32_t pass = 0; pass < PASSES; pass++) {
		for (uint32_t t = 0; t < run->crew.trainers; t++) {
			run->steps[pass][t] = 1 + (uint32_t)wf_rng_below(&rng, STEPS_MAX);
		}
	}
	crew_draw_world(&rng, calm, 30000, 200, &run->crew);
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
				     "%s; repeat: WEFT_SEED=%" PRIu64 " test_all_reduce\n",
				     seed, (int)run.mode, run.crew.pservers, run.crew.lanes,
				     run.crew.trainers, run.crew.slot_count, run.crew.why, seed);
		}
	}
	(void)printf("%" PRIu64 " seeds, %" PRIu64 " failed, %" PRIu64 " cuts\n", sweep.count,
		     failed, cuts);
	/* A sweep that injected nothing proves nothing. */
	return failed == 0 && (sweep.is_part || sweep.count < 20 || cuts > 0) ? 0 : 1;
}
