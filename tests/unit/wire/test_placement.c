/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of wire/placement: properties over random jobs (WEFT_SEED repeats a run), and the edges. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "tests/unit/wire/heap_env.h"
#include "tests/unit/wire/refused.h"
#include "wire/placement.h"

#define TENSOR_COUNT_MAX 40
#define ROUNDS 200

static uint64_t
test_seed(void)
{
	const char *text = getenv("WEFT_SEED");
	return text != NULL ? strtoull(text, NULL, 0) : 20170613;
}

static struct wf_job
job_of(struct wf_job_tensor *tensor, uint32_t count, uint64_t slice_bytes, uint32_t lanes)
{
	return (struct wf_job){
		.pserver_count = 1,
		.set = {.num_gradient_servers = 1, .ports_num = lanes, .slice_bytes = slice_bytes},
		.tensor = tensor,
		.tensor_count = count,
	};
}

static struct wf_job
random_job(struct wf_rng *rng, struct wf_job_tensor *tensor)
{
	uint32_t count = 1 + (uint32_t)wf_rng_below(rng, TENSOR_COUNT_MAX);
	uint64_t slice_bytes = 64 * (1 + wf_rng_below(rng, 16));
	uint32_t lanes = 1 + (uint32_t)wf_rng_below(rng, 9);

	memset(tensor, 0, TENSOR_COUNT_MAX * sizeof(*tensor));
	for (uint32_t i = 0; i < count; i++) {
		uint64_t bound = wf_rng_below(rng, 2) == 0 ? 8 : 3000;
		tensor[i].count = 1 + wf_rng_below(rng, bound);
		tensor[i].is_static = wf_rng_below(rng, 5) == 0;
	}
	struct wf_job job = job_of(tensor, count, slice_bytes, lanes);
	job.pserver_count = 1 + (uint32_t)wf_rng_below(rng, 4);
	return job;
}

static void
check_cuts(const struct wf_job *job, const struct wf_placement *p)
{
	uint32_t s = 0;

	for (uint32_t t = 0; t < job->tensor_count; t++) {
		assert_int_equal(p->tensor_first[t], s);
		uint64_t next = 0;
		while (next < job->tensor[t].count) {
			assert_true(s < p->slice_count);
			assert_int_equal(p->slice[s].tensor, t);
			assert_true(p->slice[s].first == next);
			assert_true(p->slice[s].count > 0);
			next += p->slice[s].count;
			bool whole = p->slice[s].count == job->set.slice_bytes / 4;
			assert_true(whole || next == job->tensor[t].count);
			s++;
		}
		assert_true(next == job->tensor[t].count);
	}
	assert_int_equal(p->tensor_first[job->tensor_count], s);
	assert_int_equal(p->slice_count, s);
}

static void
check_lanes(const struct wf_job *job, const struct wf_placement *p)
{
	uint64_t largest = 0;
	uint64_t fullest = 0;
	uint64_t emptiest = UINT64_MAX;

	assert_int_equal(p->lane_count, job->pserver_count * job->set.ports_num);
	assert_int_equal(p->lane_first[0], 0);
	assert_int_equal(p->lane_first[p->lane_count], p->slice_count);
	for (uint32_t lane = 0; lane < p->lane_count; lane++) {
		uint64_t elements = 0;
		for (uint32_t i = p->lane_first[lane]; i < p->lane_first[lane + 1]; i++) {
			const struct wf_slice *slice = &p->slice[p->lane_slice[i]];
			assert_int_equal(slice->lane, lane);
			assert_int_equal(slice->on_lane, i - p->lane_first[lane]);
			if (i > p->lane_first[lane]) {
				assert_true(p->lane_slice[i - 1] < p->lane_slice[i]);
			}
			elements += slice->count;
			largest = slice->count > largest ? slice->count : largest;
		}
		assert_true(elements == p->lane_elements[lane]);
		fullest = elements > fullest ? elements : fullest;
		emptiest = elements < emptiest ? elements : emptiest;
	}
	assert_true(fullest - emptiest <= largest);
}

/* The header's rule, word for word and slowly. */
static void
check_dealing(const struct wf_placement *p)
{
	uint64_t *on_lane = calloc(p->lane_count, sizeof(*on_lane));
	bool *dealt = calloc(p->slice_count, sizeof(*dealt));
	assert_non_null(on_lane);
	assert_non_null(dealt);

	for (uint32_t round = 0; round < p->slice_count; round++) {
		uint32_t best = UINT32_MAX;
		for (uint32_t s = 0; s < p->slice_count; s++) {
			if (!dealt[s] &&
			    (best == UINT32_MAX || p->slice[s].count > p->slice[best].count)) {
				best = s;
			}
		}
		uint32_t lane = 0;
		for (uint32_t l = 1; l < p->lane_count; l++) {
			lane = on_lane[l] < on_lane[lane] ? l : lane;
		}
		assert_int_equal(p->slice[best].lane, lane);
		on_lane[lane] += p->slice[best].count;
		dealt[best] = true;
	}
	free(dealt);
	free(on_lane);
}

static void
random_jobs_are_placed_by_the_rule(void **state)
{
	uint64_t seed = test_seed();
	struct wf_rng rng;

	print_message("WEFT_SEED=%" PRIu64 "\n", seed);
	wf_rng_init(&rng, seed, 0);
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct heap_env heap = heap_env_make();
		struct wf_job_tensor tensor[TENSOR_COUNT_MAX];
		struct wf_job job = random_job(&rng, tensor);
		struct wf_placement p;
		assert_int_equal(wf_placement_init(&heap.env, &job, &p), WEFT_OK);
		check_cuts(&job, &p);
		check_lanes(&job, &p);
		check_dealing(&p);
		wf_placement_fini(&heap.env, &p);
		assert_int_equal(heap.out_bytes, 0);
		wf_placement_fini(&heap.env, &p); /* zeroed */
	}
}

static void
both_ends_compute_the_same(void **state)
{
	struct wf_rng rng;

	wf_rng_init(&rng, test_seed(), 1);
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct heap_env heap = heap_env_make();
		struct wf_job_tensor tensor[TENSOR_COUNT_MAX];
		struct wf_job job = random_job(&rng, tensor);
		struct wf_placement a;
		struct wf_placement b;
		assert_int_equal(wf_placement_init(&heap.env, &job, &a), WEFT_OK);
		assert_int_equal(wf_placement_init(&heap.env, &job, &b), WEFT_OK);
		assert_true(wf_placement_digest(&a) == wf_placement_digest(&b));
		for (uint32_t s = 0; s < a.slice_count; s++) {
			assert_int_equal(a.slice[s].lane, b.slice[s].lane);
			assert_int_equal(a.slice[s].on_lane, b.slice[s].on_lane);
		}
		wf_placement_fini(&heap.env, &a);
		wf_placement_fini(&heap.env, &b);
	}
}

static void
cuts_do_not_depend_on_lanes(void **state)
{
	struct wf_rng rng;

	wf_rng_init(&rng, test_seed(), 2);
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct heap_env heap = heap_env_make();
		struct wf_job_tensor tensor[TENSOR_COUNT_MAX];
		struct wf_job job = random_job(&rng, tensor);
		struct wf_placement a;
		struct wf_placement b;
		assert_int_equal(wf_placement_init(&heap.env, &job, &a), WEFT_OK);
		job.set.ports_num += 3;
		job.set.num_gradient_servers = 5;
		assert_int_equal(wf_placement_init(&heap.env, &job, &b), WEFT_OK);
		assert_int_equal(a.slice_count, b.slice_count);
		for (uint32_t s = 0; s < a.slice_count; s++) {
			assert_int_equal(a.slice[s].tensor, b.slice[s].tensor);
			assert_true(a.slice[s].first == b.slice[s].first);
			assert_true(a.slice[s].count == b.slice[s].count);
		}
		assert_true(wf_placement_digest(&a) != wf_placement_digest(&b));
		wf_placement_fini(&heap.env, &a);
		wf_placement_fini(&heap.env, &b);
	}
}

static void
lanes_may_be_more_than_slices(void **state)
{
	struct heap_env heap = heap_env_make();
	struct wf_job_tensor tensor[2] = {{.count = 1}, {.count = 1}};
	struct wf_job job = job_of(tensor, 2, 64, 5);
	struct wf_placement p;

	assert_int_equal(wf_placement_init(&heap.env, &job, &p), WEFT_OK);
	assert_int_equal(p.slice_count, 2);
	assert_int_equal(p.slice[0].lane, 0);
	assert_int_equal(p.slice[1].lane, 1);
	for (uint32_t lane = 2; lane < 5; lane++) {
		assert_int_equal(p.lane_first[lane], p.lane_first[lane + 1]);
		assert_true(p.lane_elements[lane] == 0);
	}
	wf_placement_fini(&heap.env, &p);
}

static void
a_small_example_is_as_worked_out_by_hand(void **state)
{
	/* 64 bytes are 16 elements: tensor 0 is 16 + 4, tensor 1 is 16, 2 is 5, 3 is 3. Dealt
	 * 16 (s0) to lane 0, 16 (s2) to 1, 5 (s3) to 0, 4 (s1) to 1, 3 (s4) to 1. */
	static const uint32_t lane[] = {0, 1, 1, 0, 1};
	static const uint32_t on_lane[] = {0, 0, 1, 1, 2};
	struct heap_env heap = heap_env_make();
	struct wf_job_tensor tensor[] = {
		{.count = 20}, {.count = 16}, {.count = 5, .is_static = true}, {.count = 3}};
	struct wf_job job = job_of(tensor, 4, 64, 2);
	struct wf_placement p;

	assert_int_equal(wf_placement_init(&heap.env, &job, &p), WEFT_OK);
	assert_int_equal(p.slice_count, 5);
	for (uint32_t s = 0; s < 5; s++) {
		assert_int_equal(p.slice[s].lane, lane[s]);
		assert_int_equal(p.slice[s].on_lane, on_lane[s]);
	}
	assert_true(p.lane_elements[0] == 21 && p.lane_elements[1] == 23);
	wf_placement_fini(&heap.env, &p);
}

static void
the_digest_sees_every_field_of_every_slice(void **state)
{
	struct heap_env heap = heap_env_make();
	struct wf_job_tensor tensor[] = {{.count = 1000}, {.count = 999}};
	struct wf_job job = job_of(tensor, 2, 64, 3);
	struct wf_placement p;

	assert_int_equal(wf_placement_init(&heap.env, &job, &p), WEFT_OK);
	uint64_t digest = wf_placement_digest(&p);
	for (uint32_t s = 0; s < p.slice_count; s++) {
		const struct wf_slice kept = p.slice[s];
		struct wf_slice changed[] = {kept, kept, kept, kept, kept};
		changed[0].tensor ^= 1;
		changed[1].lane ^= 1;
		changed[2].on_lane ^= 1;
		changed[3].first ^= 1;
		changed[4].count ^= 1;
		for (unsigned i = 0; i < 5; i++) {
			p.slice[s] = changed[i];
			assert_true(wf_placement_digest(&p) != digest);
		}
		p.slice[s] = kept;
	}
	p.lane_count++;
	assert_true(wf_placement_digest(&p) != digest);
	p.lane_count--;
	assert_true(wf_placement_digest(&p) == digest);
	wf_placement_fini(&heap.env, &p);
}

static void
without_memory_nothing_is_left_behind(void **state)
{
	struct wf_job_tensor tensor[] = {{.count = 1000}, {.count = 999}};
	struct wf_job job = job_of(tensor, 2, 64, 3);

	for (unsigned at = 1; at <= 7; at++) {
		struct heap_env heap = heap_env_make();
		struct wf_placement p;
		heap.fail_at = at;
		assert_refused(wf_placement_init(&heap.env, &job, &p), WEFT_NOMEM,
			       "placement: no memory");
		assert_int_equal(heap.out_bytes, 0);
	}
}

static void
too_many_slices_name_the_slice_bytes_that_would_do(void **state)
{
	struct heap_env heap = heap_env_make();
	struct wf_placement p;
	struct wf_job_tensor tensor[] = {{.count = 16ull * WF_SLICE_COUNT_MAX + 1}};
	struct wf_job job = job_of(tensor, 1, 64, 1);

	assert_refused(wf_placement_init(&heap.env, &job, &p), WEFT_INVALID,
		       "slice_bytes 64 gives 2097153 slices, the limit is 2097152: use "
		       "slice_bytes 128");
	tensor[0].count = WF_TENSOR_ELEMENTS_MAX;
	assert_refused(wf_placement_init(&heap.env, &job, &p), WEFT_INVALID,
		       "use slice_bytes 2097152");
	job.set.ports_num = WF_LANE_COUNT_MAX;
	assert_refused(wf_placement_init(&heap.env, &job, &p), WEFT_INVALID,
		       "gives 68719476736 slices, the limit is 16777216: use slice_bytes 262144");
	assert_int_equal(heap.calls, 0);
}

static void
jobs_that_no_slice_bytes_fits_are_told_so(void **state)
{
	static struct wf_job_tensor tensor[64];
	struct heap_env heap = heap_env_make();
	struct wf_placement p;
	struct wf_job job = job_of(tensor, 64, 64, 1);

	for (unsigned i = 0; i < 64; i++) {
		tensor[i].count = WF_TENSOR_ELEMENTS_MAX;
	}
	assert_refused(wf_placement_init(&heap.env, &job, &p), WEFT_INVALID,
		       "use more pservers or ports_num");
	job.set.slice_bytes = WF_SLICE_BYTES_MAX;
	assert_refused(wf_placement_init(&heap.env, &job, &p), WEFT_INVALID,
		       "use more pservers or ports_num");
	assert_int_equal(heap.calls, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_jobs_are_placed_by_the_rule),
		cmocka_unit_test(both_ends_compute_the_same),
		cmocka_unit_test(cuts_do_not_depend_on_lanes),
		cmocka_unit_test(lanes_may_be_more_than_slices),
		cmocka_unit_test(a_small_example_is_as_worked_out_by_hand),
		cmocka_unit_test(the_digest_sees_every_field_of_every_slice),
		cmocka_unit_test(without_memory_nothing_is_left_behind),
		cmocka_unit_test(too_many_slices_name_the_slice_bytes_that_would_do),
		cmocka_unit_test(jobs_that_no_slice_bytes_fits_are_told_so),
	};
	return cmocka_run_group_tests_name("wire placement", tests, NULL, NULL);
}
