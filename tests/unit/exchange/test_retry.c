/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of retry: how long waits are, and what is remembered of a loss. Time and random numbers are
 * the test's. Thread: the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "exchange/retry.h"

static uint64_t clock_ns, chance;

static uint64_t
now_ns(struct wf_env *env)
{
	(void)env;
	return clock_ns;
}

static uint64_t
next_chance(struct wf_env *env)
{
	(void)env;
	return chance;
}

static const struct wf_env_ops ops = {.now_ns = now_ns, .random = next_chance};
static struct wf_env env = {&ops};

/* Returns the wait that begins now. */
static uint64_t
wait_ns(struct wf_retry *retry)
{
	wf_retry_later(retry, &env);
	return retry->at_ns - clock_ns;
}

static void
waits_double_up_to_a_second(void **state)
{
	struct wf_retry retry = {0};
	(void)state;
	clock_ns = 5 * WF_NS_PER_S;
	chance = 0;
	wf_retry_begin(&retry);
	assert_int_equal(retry.at_ns, 0); /* the first attempt is due at once */
	for (uint64_t ms = 20; ms < 1000; ms *= 2) {
		assert_int_equal(wait_ns(&retry), ms * WF_NS_PER_MS);
	}
	assert_int_equal(wait_ns(&retry), WF_NS_PER_S);
	assert_int_equal(wait_ns(&retry), WF_NS_PER_S);
	wf_retry_begin(&retry);
	assert_int_equal(wait_ns(&retry), 20 * WF_NS_PER_MS);
}

static void
chance_adds_up_to_a_quarter(void **state)
{
	struct wf_retry retry = {0};
	(void)state;
	clock_ns = 0;
	chance = 5 * WF_NS_PER_MS - 1;
	wf_retry_begin(&retry);
	assert_int_equal(wait_ns(&retry), 25 * WF_NS_PER_MS - 1);
	chance = 10 * WF_NS_PER_MS;
	assert_int_equal(wait_ns(&retry), 40 * WF_NS_PER_MS); /* the chance is not doubled */
}

static void
a_loss_counts_from_its_beginning_until_it_is_over(void **state)
{
	struct wf_retry retry = {0};
	(void)state;
	assert_false(wf_retry_is_over(&retry, UINT64_MAX, 0));
	wf_retry_lost(&retry, 100);
	wf_retry_lost(&retry, 150); /* the attempt after it failed, too */
	assert_false(wf_retry_is_over(&retry, 119, 20));
	assert_true(wf_retry_is_over(&retry, 120, 20));
	wf_retry_found(&retry);
	assert_false(wf_retry_is_over(&retry, 1000, 20));
	wf_retry_lost(&retry, 1000);
	assert_false(wf_retry_is_over(&retry, 1019, 20));
	assert_true(wf_retry_is_over(&retry, 1020, 20));
}

static void
the_last_reason_is_kept_as_far_as_there_is_room(void **state)
{
	struct wf_retry retry = {0};
	char longer[WF_WHY_BYTES + 8];
	(void)state;
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	wf_retry_fail(&retry, "refused: %s", "full");
	assert_string_equal(retry.why, "refused: full");
	wf_retry_found(&retry);
	assert_string_equal(retry.why, "refused: full");
	wf_retry_fail(&retry, "%s", longer);
	assert_int_equal(strlen(retry.why), WF_WHY_BYTES - 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_double_up_to_a_second),
		cmocka_unit_test(chance_adds_up_to_a_quarter),
		cmocka_unit_test(a_loss_counts_from_its_beginning_until_it_is_over),
		cmocka_unit_test(the_last_reason_is_kept_as_far_as_there_is_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
