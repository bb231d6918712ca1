/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of staging: each buffer belongs to one trainer and is claimed by one answer at a time; what
 * open allocates, close frees, however far open got. Thread: the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "exchange/staging.h"
#include "tests/support/failing_env.h"
#include "transport/ops.h"

enum { TRAINERS = 3, EACH = 4, BUFFER_BYTES = 16, SLAB_BYTES = TRAINERS * EACH * BUFFER_BYTES };

static struct wf_failing_env failing;
static unsigned regions; /* that the transport knows */
static enum weft_status region_status;

static enum weft_status
add_region(struct wf_transport *transport, const struct wf_region *region, uint32_t *out)
{
	(void)transport;
	assert_true(region->base != NULL && region->bytes >= SLAB_BYTES);
	if (region_status == WEFT_OK) {
		*out = 5;
		regions++;
	}
	return region_status;
}

static void
remove_region(struct wf_transport *transport, uint32_t region)
{
	(void)transport;
	assert_int_equal(region, 5);
	regions--;
}

static const struct wf_transport_ops ops = {.region_add = add_region,
					    .region_remove = remove_region};
static struct wf_transport transport = {.ops = &ops};

static enum weft_status
open_staging(struct wf_staging *staging)
{
	const struct wf_staging_opts opts = {.trainer_count = TRAINERS,
					     .each = EACH,
					     .buffer_bytes = BUFFER_BYTES,
					     .numa_node = -1};
	return wf_staging_open(staging, &failing.env, &transport, &opts);
}

static void
begin(struct wf_staging *staging)
{
	region_status = WEFT_OK;
	wf_failing_env_fail(&failing, 0, false);
	assert_int_equal(open_staging(staging), WEFT_OK);
}

static void
end(struct wf_staging *staging)
{
	wf_staging_close(staging, &failing.env, &transport);
	assert_true(wf_failing_env_is_clean(&failing));
	assert_int_equal(regions, 0);
}

static void
a_trainer_claims_each_of_its_buffers_once(void **state)
{
	struct wf_staging staging = {0};
	bool claimed[TRAINERS * EACH] = {false};
	(void)state;
	begin(&staging);
	for (uint32_t t = 0; t < TRAINERS; t++) {
		for (uint32_t i = 0; i < EACH; i++) {
			assert_true(wf_staging_has_free(&staging, t));
			uint32_t buffer = wf_staging_claim(&staging, t);
			assert_int_equal(buffer, t * EACH + i);
			assert_false(claimed[buffer]);
			claimed[buffer] = true;
			assert_ptr_equal(wf_staging_at(&staging, buffer),
					 (char *)staging.memory.slab.base +
						 (size_t)buffer * BUFFER_BYTES);
		}
		assert_false(wf_staging_has_free(&staging, t));
		assert_int_equal(staging.used_up, t + 1);
	}
	end(&staging);
}

static void
a_released_buffer_returns_to_its_trainer_alone(void **state)
{
	struct wf_staging staging = {0};
	(void)state;
	begin(&staging);
	for (uint32_t t = 0; t < TRAINERS; t++) {
		for (uint32_t i = 0; i < EACH; i++) {
			(void)wf_staging_claim(&staging, t);
		}
	}
	for (uint32_t buffer = 0; buffer < TRAINERS * EACH; buffer++) {
		assert_int_equal(wf_staging_release(&staging, buffer), buffer / EACH);
		for (uint32_t t = 0; t < TRAINERS; t++) {
			assert_int_equal(wf_staging_has_free(&staging, t), t == buffer / EACH);
		}
		assert_int_equal(staging.used_up, TRAINERS - 1);
		assert_int_equal(wf_staging_claim(&staging, buffer / EACH), buffer);
	}
	end(&staging);
}

/* Whatever the order in which PUTs are DONE, as many buffers are free as were released. */
static void
buffers_are_released_in_any_order(void **state)
{
	struct wf_staging staging = {0};
	(void)state;
	begin(&staging);
	for (uint32_t mask = 0; mask < 1u << EACH; mask++) {
		uint32_t free_count = 0, again = 0;
		for (uint32_t i = 0; i < EACH; i++) {
			(void)wf_staging_claim(&staging, 1);
		}
		for (uint32_t i = 0; i < EACH; i++) {
			uint32_t at = (i + mask) % EACH;
			if ((mask >> at & 1) != 0) {
				(void)wf_staging_release(&staging, EACH + at);
				free_count++;
			}
		}
		for (; wf_staging_has_free(&staging, 1); again++) {
			uint32_t buffer = wf_staging_claim(&staging, 1);
			assert_true((mask >> (buffer - EACH) & 1) != 0);
		}
		assert_int_equal(again, free_count);
		for (uint32_t i = 0; i < EACH; i++) {
			(void)wf_staging_release(&staging, EACH + i);
		}
	}
	end(&staging);
}

static void
what_open_allocated_is_freed_however_far_it_got(void **state)
{
	uint64_t nth = 0;
	(void)state;
	region_status = WEFT_OK;
	do {
		struct wf_staging staging = {0};
		wf_failing_env_fail(&failing, ++nth, false);
		enum weft_status st = open_staging(&staging);
		assert_int_equal(st, failing.failed > 0 ? WEFT_NOMEM : WEFT_OK);
		end(&staging);
		end(&staging);
	} while (failing.failed > 0);
	assert_int_equal(nth, 4); /* two tables and a slab */
}

static void
a_transport_may_refuse_the_memory(void **state)
{
	struct wf_staging staging = {0};
	(void)state;
	wf_failing_env_fail(&failing, 0, false);
	region_status = WEFT_UNAVAILABLE;
	assert_int_equal(open_staging(&staging), WEFT_UNAVAILABLE);
	end(&staging);
}

static void
open_allocates_the_tables_that_are_budgeted(void **state)
{
	struct wf_staging staging = {0};
	(void)state;
	begin(&staging);
	assert_int_equal(failing.live_bytes,
			 staging.memory.slab.bytes + TRAINERS * wf_staging_table_bytes(EACH));
	end(&staging);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_trainer_claims_each_of_its_buffers_once),
		cmocka_unit_test(a_released_buffer_returns_to_its_trainer_alone),
		cmocka_unit_test(buffers_are_released_in_any_order),
		cmocka_unit_test(what_open_allocated_is_freed_however_far_it_got),
		cmocka_unit_test(a_transport_may_refuse_the_memory),
		cmocka_unit_test(open_allocates_the_tables_that_are_budgeted),
	};
	struct wf_env *env = NULL;
	if (wf_env_system_create(WF_LOG_INFO, -1, &env) != WEFT_OK) {
		return 1;
	}
	wf_failing_env_init(&failing, env);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	wf_env_system_destroy(env);
	return failed;
}
