/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of one lane: where slices lie, parking, limits, and each allocation refused in turn.
 * Thread: the test's. */
#include "pserver/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/failing_env.h"
#include "wire/layout.h"

#define TENSORS 4u
#define ROOM (1u << 20)

struct fixture {
	struct wf_env *system;
	struct wf_failing_env failing;
	struct wf_job job;
	struct wf_job_tensor tensor[TENSORS];
	struct wf_placement placement;
	struct wf_store store;
};

static int
set_up(void **state)
{
	static struct fixture f;
	static const uint64_t counts[TENSORS] = {100, 7, 33, 40};
	struct wf_optimizer_opts adam = wf_optimizer_defaults();
	memset(&f, 0, sizeof(f));
	assert_int_equal(wf_env_system_create(WF_LOG_ERROR, -1, &f.system), WEFT_OK);
	wf_failing_env_init(&f.failing, f.system);
	for (uint32_t i = 0; i < TENSORS; i++) {
		(void)snprintf(f.tensor[i].name, sizeof(f.tensor[i].name), "t%u", i);
		f.tensor[i].count = counts[i];
		f.tensor[i].rate_multiplier = 1;
		f.tensor[i].is_static = i == 1;
		f.tensor[i].is_reduced = i == 3;
	}
	f.job = (struct wf_job){
		.pserver_count = 1,
		.set = {.num_gradient_servers = 3,
			.ports_num = 2,
			.slice_bytes = 128, /* 32 elements: 4 + 1 + 2 + 2 slices */
			.optimizer = {.learning_rate = 0.1,
				      .beta1 = adam.set.beta1,
				      .beta2 = adam.set.beta2,
				      .epsilon = adam.set.epsilon}},
		.method = {.kind = WF_ADAM},
		.tensor = f.tensor,
		.tensor_count = TENSORS,
	};
	assert_int_equal(wf_placement_init(f.system, &f.job, &f.placement), WEFT_OK);
	*state = &f;
	return 0;
}

static int
tear_down(void **state)
{
	struct fixture *f = *state;
	wf_store_fini(&f->store);
	assert_true(wf_failing_env_is_clean(&f->failing));
	wf_placement_fini(f->system, &f->placement);
	wf_env_system_destroy(f->system);
	return 0;
}

static enum weft_status
init(struct fixture *f, uint32_t lane, uint64_t room)
{
	const struct wf_store_room limits = {.max_shard_bytes = room, .numa_node = -1};
	return wf_store_init(&f->failing.env, &f->job, &f->placement, lane, &limits, &f->store);
}

/* Array `idx` of a slice: its values, then its state. NULL: there is none. */
static float *
array_of(const struct wf_store *store, const struct wf_stored *stored, unsigned idx)
{
	if (idx == 0) {
		return wf_store_param(store, stored);
	}
	return stored->has_state ? wf_store_state(store, stored, idx - 1) : NULL;
}

/* Each element of each array is written with a number of its own, and keeps it. */
static void
check_apart(const struct wf_store *store, bool write)
{
	for (uint32_t i = 0; i < store->stored_count; i++) {
		for (unsigned idx = 0; idx < 3; idx++) {
			float *at = array_of(store, &store->stored[i], idx);
			for (uint64_t e = 0; at != NULL && e < store->stored[i].count; e++) {
				float own = (float)(i * 1000 + idx * 100 + e);
				at[e] = write ? own : at[e];
				assert_true(at[e] == own);
			}
		}
	}
}

static void
each_slice_has_cache_lines_of_its_own_in_every_array(void **state)
{
	struct fixture *f = *state;
	uint64_t place[TENSORS];
	uint32_t stored_count = 0;
	uint32_t with_state = 0;
	(void)wf_layout_offsets(&f->job, place);
	for (uint32_t lane = 0; lane < 2; lane++) {
		assert_int_equal(init(f, lane, ROOM), WEFT_OK);
		const struct wf_store *store = &f->store;
		assert_int_equal(store->state_count, 2);
		for (uint32_t i = 0; i < store->stored_count; i++) {
			const struct wf_stored *stored = &store->stored[i];
			const struct wf_slice *slice = &f->placement.slice[stored->slice];
			assert_int_equal(slice->lane, lane);
			assert_int_equal(slice->on_lane, i);
			assert_int_equal(stored->count, slice->count);
			assert_int_equal(stored->place_offset,
					 place[slice->tensor] + slice->first * sizeof(float));
			assert_int_equal(stored->has_state,
					 slice->tensor == 0 || slice->tensor == 2);
			with_state += stored->has_state ? 1 : 0;
			for (unsigned idx = 0; idx < 3; idx++) {
				char *at = (char *)array_of(store, stored, idx);
				char *end = (char *)store->slab.base + wf_store_bytes(store);
				assert_int_equal((uintptr_t)at % 64, 0);
				assert_true(at == NULL || at + stored->count * 4 <= end);
			}
		}
		check_apart(store, true);
		check_apart(store, false);
		stored_count += store->stored_count;
		wf_store_fini(&f->store);
	}
	assert_int_equal(stored_count, f->placement.slice_count);
	assert_int_equal(with_state, 6);
}

static void
static_slices_are_stored_and_not_pushable(void **state)
{
	struct fixture *f = *state;
	uint32_t stored = 0;
	uint32_t pushable = 0;
	for (uint32_t lane = 0; lane < 2; lane++) {
		assert_int_equal(init(f, lane, ROOM), WEFT_OK);
		stored += f->store.stored_count;
		pushable += f->store.pushable_count;
		wf_store_fini(&f->store);
	}
	assert_int_equal(stored, 9);
	assert_int_equal(pushable, 8); /* those that are only reduced too */
}

static void
parked_chunks_keep_their_bytes_and_the_last_released_is_used_first(void **state)
{
	struct fixture *f = *state;
	float from[32];
	assert_int_equal(init(f, 0, ROOM), WEFT_OK);
	struct wf_store *store = &f->store;
	assert_int_equal(store->park.count, 3 * store->stored_count);
	assert_int_equal(store->park.bytes, 128);
	uint32_t chunk[3];
	for (uint32_t c = 0; c < 3; c++) {
		for (uint32_t e = 0; e < 32; e++) {
			from[e] = (float)(c * 100 + e);
		}
		chunk[c] = wf_store_park(store, from, sizeof(from));
		assert_int_equal(chunk[c], c);
		assert_int_equal(wf_store_parked_bytes(store), (c + 1) * 128);
	}
	for (uint32_t c = 0; c < 3; c++) {
		const float *parked = wf_store_parked(store, chunk[c]);
		assert_true(parked[31] == (float)(c * 100 + 31));
	}
	wf_store_unpark(store, chunk[0]);
	wf_store_unpark(store, chunk[2]);
	assert_int_equal(wf_store_park(store, from, sizeof(from)), chunk[2]);
	assert_int_equal(wf_store_park(store, from, sizeof(from)), chunk[0]);
	for (uint32_t c = 0; c < 3; c++) {
		wf_store_unpark(store, chunk[c]);
	}
	assert_int_equal(wf_store_parked_bytes(store), 0);
}

static void
there_is_a_chunk_for_each_trainer_and_slice(void **state)
{
	struct fixture *f = *state;
	const float from[32] = {0};
	assert_int_equal(init(f, 0, ROOM), WEFT_OK);
	uint32_t count = f->store.park.count;
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(wf_store_park(&f->store, from, sizeof(from)), i);
	}
	assert_int_equal(f->store.park.free_count, 0);
	assert_int_equal(wf_store_parked_bytes(&f->store), (uint64_t)count * 128);
}

static void
a_shard_may_be_exactly_as_large_as_the_limit_and_no_byte_larger(void **state)
{
	struct fixture *f = *state;
	char bytes[32];
	assert_int_equal(init(f, 0, ROOM), WEFT_OK);
	uint64_t exact = (f->store.elements + 2 * f->store.state_elements) * sizeof(float);
	assert_true(f->store.state_elements < f->store.elements);
	wf_store_fini(&f->store);
	assert_int_equal(init(f, 0, exact), WEFT_OK);
	wf_store_fini(&f->store);
	assert_int_equal(init(f, 0, exact - 1), WEFT_NOMEM);
	(void)snprintf(bytes, sizeof(bytes), "%llu bytes", (unsigned long long)exact);
	assert_non_null(strstr(weft_last_error(), bytes));
	assert_non_null(strstr(weft_last_error(), "--max_shard_bytes"));
	assert_true(wf_failing_env_is_clean(&f->failing));
}

static void
settings_the_optimizer_cannot_have_are_refused(void **state)
{
	struct fixture *f = *state;
	f->job.set.optimizer.beta1 = 2;
	assert_int_equal(init(f, 0, ROOM), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "beta1"));
	f->job.method.kind = 99;
	assert_int_equal(init(f, 0, ROOM), WEFT_INVALID);
}

static void
is_refused(struct fixture *f, const char *text)
{
	assert_int_equal(init(f, 0, ROOM), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), text));
}

/* A description may say it; trainers refuse it at once. */
static void
what_takes_whole_steps_is_refused_where_pushes_are_applied_as_they_come(void **state)
{
	struct fixture *f = *state;
	f->job.set.optimizer.clip_norm = 2;
	f->job.set.dense_mode = WEFT_DENSE_ASYNC;
	is_refused(f, "clip_norm=2 with dense_mode=async: there is a whole gradient");
	f->job.set.dense_mode = WEFT_DENSE_SYNC;
	f->tensor[2].mode = WEFT_TENSOR_ASYNC;
	is_refused(f, ": mode async: with clip_norm");
	f->job.set.optimizer.clip_norm = 0;
	f->job.set.optimizer.average_window = 0.5;
	f->job.set.optimizer.max_average_window = 9;
	is_refused(f, ": mode async: with average_window");
	f->tensor[2].mode = WEFT_TENSOR_AS_SESSION;
	f->job.set.dense_mode = WEFT_DENSE_BOUNDED;
	f->job.set.dense_staleness = 1;
	is_refused(f, "average_window=0.5 with dense_mode=bounded: averages are kept");
}

static void
a_lane_without_slices_takes_no_slab(void **state)
{
	struct fixture *f = *state;
	wf_placement_fini(f->system, &f->placement);
	f->job.set.ports_num = 11;
	assert_int_equal(wf_placement_init(f->system, &f->job, &f->placement), WEFT_OK);
	assert_int_equal(init(f, 10, 0), WEFT_OK);
	assert_int_equal(f->store.stored_count, 0);
	assert_null(f->store.slab.base);
	assert_int_equal(wf_store_parked_bytes(&f->store), 0);
}

static void
each_allocation_that_fails_is_refused_and_leaks_nothing(void **state)
{
	struct fixture *f = *state;
	uint64_t nth = 1;
	for (;; nth++) {
		wf_failing_env_fail(&f->failing, nth, false);
		enum weft_status st = init(f, 0, ROOM);
		if (f->failing.failed == 0) {
			assert_int_equal(st, WEFT_OK);
			break;
		}
		assert_int_equal(st, WEFT_NOMEM);
		assert_true(wf_failing_env_is_clean(&f->failing));
	}
	assert_true(nth > 4);
}

int
main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(each_slice_has_cache_lines_of_its_own_in_every_array),
		WITH_FIXTURE(static_slices_are_stored_and_not_pushable),
		WITH_FIXTURE(parked_chunks_keep_their_bytes_and_the_last_released_is_used_first),
		WITH_FIXTURE(there_is_a_chunk_for_each_trainer_and_slice),
		WITH_FIXTURE(a_shard_may_be_exactly_as_large_as_the_limit_and_no_byte_larger),
		WITH_FIXTURE(settings_the_optimizer_cannot_have_are_refused),
		WITH_FIXTURE(
			what_takes_whole_steps_is_refused_where_pushes_are_applied_as_they_come),
		WITH_FIXTURE(a_lane_without_slices_takes_no_slab),
		WITH_FIXTURE(each_allocation_that_fails_is_refused_and_leaks_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
