/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of fresh: a buffer is begun for one slice of one trainer, is current only for the version
 * it was begun for, and is the trainer's again at the end; one buffer is always left to others.
 * Thread: the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pserver/fresh.h"
#include "tests/support/failing_env.h"
#include "transport/ops.h"

enum { TRAINERS = 2, EACH = 4, BUFFER_BYTES = 16 };

static struct wf_failing_env failing;

static enum weft_status
add_region(struct wf_transport *transport, const struct wf_region *region, uint32_t *out)
{
	(void)transport;
	(void)region;
	*out = 5;
	return WEFT_OK;
}

static void
remove_region(struct wf_transport *transport, uint32_t region)
{
	(void)transport;
	(void)region;
}

static const struct wf_transport_ops ops = {.region_add = add_region,
					    .region_remove = remove_region};
static struct wf_transport transport = {.ops = &ops};

static struct wf_staging staging;
static struct wf_fresh fresh;

static void
open_staging(uint32_t each)
{
	const struct wf_staging_opts opts = {.trainer_count = TRAINERS,
					     .each = each,
					     .buffer_bytes = BUFFER_BYTES,
					     .numa_node = -1};
	wf_failing_env_fail(&failing, 0, false);
	assert_int_equal(wf_staging_open(&staging, &failing.env, &transport, &opts), WEFT_OK);
}

static void
begin(uint32_t each)
{
	open_staging(each);
	assert_int_equal(wf_fresh_open(&fresh, &failing.env, &staging), WEFT_OK);
}

static void
end(void)
{
	wf_fresh_close(&fresh, &failing.env);
	wf_staging_close(&staging, &failing.env, &transport);
	assert_true(wf_failing_env_is_clean(&failing));
}

static uint32_t
free_count(uint32_t trainer)
{
	uint32_t count = 0;
	for (uint32_t at = staging.first[trainer]; at != WF_STAGING_NONE; at = staging.next[at]) {
		count++;
	}
	return count;
}

static void
a_copy_is_current_for_its_version_alone(void **state)
{
	bool is_current = false;
	(void)state;
	begin(EACH);
	void *to = wf_fresh_begin(&fresh, 1, 6, 3);
	assert_non_null(to);
	assert_int_equal(wf_fresh_pop(&fresh, 0, 6, 3, &is_current), WF_STAGING_NONE);
	assert_int_equal(wf_fresh_pop(&fresh, 1, 2, 3, &is_current), WF_STAGING_NONE);
	uint32_t buffer = wf_fresh_pop(&fresh, 1, 6, 3, &is_current);
	assert_true(is_current);
	assert_ptr_equal(wf_staging_at(&staging, buffer), to);
	assert_int_equal(wf_fresh_pop(&fresh, 1, 6, 3, &is_current), WF_STAGING_NONE);
	assert_int_equal(wf_staging_release(&staging, buffer), 1);
	assert_non_null(wf_fresh_begin(&fresh, 1, 6, 4));
	buffer = wf_fresh_pop(&fresh, 1, 6, 5, &is_current);
	assert_int_not_equal(buffer, WF_STAGING_NONE);
	assert_false(is_current);
	(void)wf_staging_release(&staging, buffer);
	assert_int_equal(free_count(1), EACH);
	end();
}

static void
a_slice_that_is_pushed_again_keeps_its_buffer(void **state)
{
	bool is_current = false;
	(void)state;
	begin(EACH);
	void *to = wf_fresh_begin(&fresh, 0, 1, 7);
	assert_ptr_equal(wf_fresh_begin(&fresh, 0, 1, 8), to);
	assert_null(wf_fresh_begin(&fresh, 0, 1 + EACH, 1)); /* the place has another slice */
	assert_int_equal(free_count(0), EACH - 1);
	assert_int_not_equal(wf_fresh_pop(&fresh, 0, 1, 8, &is_current), WF_STAGING_NONE);
	assert_true(is_current);
	end();
}

static void
one_buffer_is_left_to_others(void **state)
{
	(void)state;
	for (uint32_t each = 1; each <= EACH; each++) {
		begin(each);
		for (uint32_t i = 0; i + 1 < each; i++) {
			assert_non_null(wf_fresh_begin(&fresh, 0, i, 1));
		}
		assert_null(wf_fresh_begin(&fresh, 0, each - 1, 1));
		assert_int_equal(free_count(0), 1);
		assert_int_equal(free_count(1), each);
		end();
	}
}

static void
what_is_forgotten_is_free_again(void **state)
{
	bool is_current = false;
	(void)state;
	begin(EACH);
	for (uint32_t t = 0; t < TRAINERS; t++) {
		assert_non_null(wf_fresh_begin(&fresh, t, 0, 1));
		assert_non_null(wf_fresh_begin(&fresh, t, EACH - 1, 1));
	}
	wf_fresh_forget(&fresh, 0);
	assert_int_equal(free_count(0), EACH);
	assert_int_equal(free_count(1), EACH - 2);
	assert_int_equal(wf_fresh_pop(&fresh, 0, 0, 1, &is_current), WF_STAGING_NONE);
	assert_int_not_equal(wf_fresh_pop(&fresh, 1, 0, 1, &is_current), WF_STAGING_NONE);
	end();
	wf_fresh_forget(&fresh, 0); /* nothing is there */
}

static void
its_table_is_budgeted_and_may_lack_memory(void **state)
{
	(void)state;
	open_staging(EACH);
	const uint64_t before = failing.live_bytes;
	wf_failing_env_fail(&failing, 1, false);
	assert_int_equal(wf_fresh_open(&fresh, &failing.env, &staging), WEFT_NOMEM);
	wf_fresh_close(&fresh, &failing.env);
	wf_failing_env_fail(&failing, 0, false);
	assert_int_equal(wf_fresh_open(&fresh, &failing.env, &staging), WEFT_OK);
	assert_int_equal(failing.live_bytes, before + TRAINERS * wf_fresh_table_bytes(EACH));
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copy_is_current_for_its_version_alone),
		cmocka_unit_test(a_slice_that_is_pushed_again_keeps_its_buffer),
		cmocka_unit_test(one_buffer_is_left_to_others),
		cmocka_unit_test(what_is_forgotten_is_free_again),
		cmocka_unit_test(its_table_is_budgeted_and_may_lack_memory),
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
