/* SPDX-License-Identifier: Apache-2.0 */
/* What a slice is applied with, step after step, for each optimizer: what is kept from the apply
 * before gives the same bits as what is computed anew. Thread: the test's. */
#include "pserver/apply.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define SLICES 3u
#define STEPS 12u
#define SAMPLES 7u

/* A lane with nothing but what an apply needs. */
struct fixture {
	struct wf_lane lane;
	struct wf_dense dense;
	struct wf_stored stored[SLICES];
	struct wf_slice slice[SLICES];
	struct wf_job_tensor tensor[SLICES];
	float values[SLICES * 16];
};

static void
set_up_method(struct fixture *f, enum wf_optimizer kind, enum wf_schedule schedule)
{
	memset(f, 0, sizeof(*f));
	struct wf_store *store = &f->dense.store;
	store->optimizer = wf_optimizer_defaults();
	store->optimizer.method.kind = kind;
	store->optimizer.method.schedule = schedule;
	store->optimizer.set.learning_rate = 0.25;
	store->optimizer.set.schedule_a = schedule == WF_SCHEDULE_LINEAR ? 0.003 : 40;
	store->optimizer.set.schedule_b = 0.0625;
	store->optimizer.set.momentum = 0.9;
	store->optimizer.set.rho = 0.95;
	store->optimizer.dampening = 0.5;
	wf_apply_constants(&store->optimizer, &store->rated.constants);
	store->slab.base = f->values;
	store->slab.bytes = sizeof(f->values);
	store->stored = f->stored;
	store->stored_count = SLICES;
	for (uint32_t i = 0; i < SLICES; i++) {
		f->stored[i].tensor = &f->tensor[i];
		f->stored[i].first = (uint64_t)i * 16;
		f->stored[i].count = 16;
		f->stored[i].rate_multiplier = i == 1 ? 3.0 : 1.0; /* it changes to and fro */
		f->stored[i].decay = (float)i;
	}
	f->lane.own = &f->dense;
}

static struct wf_apply_scale
scale_of(uint64_t step)
{
	return (struct wf_apply_scale){
		/* Two steps of three begin with equal samples, so that rates repeat and change. */
		.samples_before = step / 3 * SAMPLES,
		.samples = SAMPLES,
		.pass = 1,
		.updates = step,
		.divisor = 1.0,
	};
}

static void
assert_same(const struct wf_apply *kept, const struct wf_apply *anew)
{
	assert_memory_equal(&kept->rate, &anew->rate, sizeof(kept->rate));
	assert_memory_equal(&kept->plain_rate, &anew->plain_rate, sizeof(kept->plain_rate));
	assert_memory_equal(&kept->square_share, &anew->square_share, sizeof(kept->square_share));
	assert_memory_equal(&kept->torch, &anew->torch, sizeof(kept->torch));
	assert_memory_equal(&kept->momentum, &anew->momentum, sizeof(kept->momentum));
	assert_memory_equal(&kept->beta1, &anew->beta1, sizeof(kept->beta1));
	assert_memory_equal(&kept->beta2, &anew->beta2, sizeof(kept->beta2));
	assert_memory_equal(&kept->epsilon, &anew->epsilon, sizeof(kept->epsilon));
	assert_memory_equal(&kept->rho, &anew->rho, sizeof(kept->rho));
	assert_memory_equal(&kept->decay, &anew->decay, sizeof(kept->decay));
	assert_ptr_equal(kept->param, anew->param);
}

/* The formulas themselves, of one slice in one step. */
static struct wf_apply
compute(const struct fixture *f, uint32_t ordinal, const struct wf_apply_scale *scale)
{
	const struct wf_store *store = &f->dense.store;
	struct wf_apply apply = store->rated.constants;
	double rate = wf_learning_rate(&store->optimizer, scale->samples_before, scale->samples,
				       scale->pass - 1);
	wf_apply_rates(&store->optimizer, rate * f->stored[ordinal].rate_multiplier, scale->updates,
		       &apply);
	apply.decay = f->stored[ordinal].decay;
	apply.param = wf_store_param(store, &f->stored[ordinal]);
	return apply;
}

static void
play(struct fixture *f, uint64_t from)
{
	for (uint64_t step = from; step < from + STEPS; step++) {
		const struct wf_apply_scale scale = scale_of(step);
		for (uint32_t i = 0; i < SLICES; i++) {
			struct wf_apply kept;
			wf_apply_fill(&f->lane, i, &scale, &kept);
			const struct wf_apply anew = compute(f, i, &scale);
			assert_same(&kept, &anew);
		}
	}
}

static void
each_optimizer_has_the_rates_of_its_step(void **state)
{
	static const enum wf_schedule schedules[] = {WF_SCHEDULE_CONSTANT, WF_SCHEDULE_LINEAR,
						     WF_SCHEDULE_WARMUP};
	static struct fixture f;
	(void)state;
	for (unsigned kind = 0; kind < WF_OPTIMIZER_COUNT; kind++) {
		for (unsigned s = 0; s < WF_ARRAY_COUNT(schedules); s++) {
			set_up_method(&f, (enum wf_optimizer)kind, schedules[s]);
			play(&f, 1);
			play(&f, 1);    /* a job that begins again */
			play(&f, 1000); /* or goes on from a state that was loaded */
		}
	}
}

/* The sign of a rate of 0 is a bit of the parameters. */
static void
a_rate_of_minus_zero_is_not_that_of_zero(void **state)
{
	static struct fixture f;
	(void)state;
	set_up_method(&f, WF_SGD, WF_SCHEDULE_CONSTANT);
	f.stored[0].rate_multiplier = 0.0;
	f.stored[1].rate_multiplier = -0.0;
	play(&f, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_optimizer_has_the_rates_of_its_step),
		cmocka_unit_test(a_rate_of_minus_zero_is_not_that_of_zero),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
