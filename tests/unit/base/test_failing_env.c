/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the failing env itself: other tests lean on its counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/assert.h"
#include "tests/support/failing_env.h"

static struct wf_env *inner;
static struct wf_failing_env failing;

static int
set_up(void **state)
{
	if (wf_env_system_create(WF_LOG_ERROR, -1, &inner) != WEFT_OK) {
		return -1;
	}
	wf_failing_env_init(&failing, inner);
	return 0;
}

static int
tear_down(void **state)
{
	wf_env_system_destroy(inner);
	return 0;
}

/* Allocates `count` times and tells, as bits, which were refused. */
static unsigned
refused(unsigned count)
{
	unsigned bits = 0;
	for (unsigned i = 0; i < count; i++) {
		void *memory = wf_zalloc(&failing.env, 10);
		bits |= memory == NULL ? 1u << i : 0;
		wf_free(&failing.env, memory, 10);
	}
	return bits;
}

static void
only_the_named_allocation_fails(void **state)
{
	assert_int_equal(refused(4), 0);
	wf_failing_env_fail(&failing, 2, false);
	assert_int_equal(refused(4), 2);
	assert_int_equal(failing.failed, 1);
	assert_int_equal(failing.asked, 4);
	assert_true(wf_failing_env_is_clean(&failing));
}

static void
all_from_the_named_allocation_on_fail(void **state)
{
	wf_failing_env_fail(&failing, 3, true);
	assert_int_equal(refused(5), 4 + 8 + 16);
	assert_int_equal(failing.failed, 3);
	wf_failing_env_fail(&failing, 0, true);
	assert_int_equal(refused(5), 0);
}

static void
slabs_count_and_fail_like_allocations(void **state)
{
	struct wf_slab slab = {.memfd = -1};
	wf_failing_env_fail(&failing, 2, false);
	struct wf_env *env = &failing.env;
	assert_int_equal(env->ops->slab_open(env, 100, -1, &slab), WEFT_OK);
	assert_int_equal(failing.live_count, 1);
	assert_int_equal(failing.live_bytes, slab.bytes);
	struct wf_slab other = {.memfd = -1};
	assert_int_equal(env->ops->slab_open(env, 100, -1, &other), WEFT_NOMEM);
	assert_null(other.base);
	env->ops->slab_close(env, &slab);
	env->ops->slab_close(env, &slab); /* closed already: no effect */
	assert_true(wf_failing_env_is_clean(&failing));
}

static void
what_is_held_or_given_back_with_a_wrong_size_shows(void **state)
{
	void *memory = wf_zalloc(&failing.env, 100);
	assert_non_null(memory);
	assert_false(wf_failing_env_is_clean(&failing));
	wf_free(&failing.env, memory, 99);
	assert_false(wf_failing_env_is_clean(&failing));
	wf_failing_env_init(&failing, inner);
	assert_true(wf_failing_env_is_clean(&failing));
}

static void
the_rest_is_the_inner_envs(void **state)
{
	uint64_t before_ns = wf_now_ns(inner);
	assert_true(wf_now_ns(&failing.env) >= before_ns);
	wf_wait(&failing.env, -1, before_ns);
	assert_true(wf_now_ns(inner) >= before_ns);
	assert_true(wf_random(&failing.env) != wf_random(&failing.env));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(only_the_named_allocation_fails, set_up, tear_down),
		cmocka_unit_test_setup_teardown(all_from_the_named_allocation_on_fail, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(slabs_count_and_fail_like_allocations, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_is_held_or_given_back_with_a_wrong_size_shows,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_rest_is_the_inner_envs, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
