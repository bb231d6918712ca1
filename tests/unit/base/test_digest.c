/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of digest: a published value, fields, and what must differ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/digest.h"
#include "tests/support/failing_env.h"

static struct wf_env *env;
static struct wf_digest *digest;

static int
set_up(void **state)
{
	if (wf_env_system_create(WF_LOG_ERROR, -1, &env) != WEFT_OK) {
		return -1;
	}
	return wf_digest_create(env, &digest) == WEFT_OK ? 0 : -1;
}

static int
tear_down(void **state)
{
	wf_digest_destroy(digest);
	wf_env_system_destroy(env);
	return 0;
}

static void
nothing_has_the_published_value(void **state)
{
	assert_true(wf_digest_of("", 0) == 0x2d06800538d394c2u); /* XXH3 64 of no bytes, seed 0 */
	assert_true(wf_digest_value(digest) == 0x2d06800538d394c2u);
}

static void
a_stream_equals_one_shot_wherever_it_is_cut(void **state)
{
	unsigned char bytes[1000];
	for (unsigned i = 0; i < sizeof(bytes); i++) {
		bytes[i] = (unsigned char)(i * 31 + 7);
	}
	uint64_t whole = wf_digest_of(bytes, sizeof(bytes));
	for (size_t cut = 0; cut <= sizeof(bytes); cut += 37) {
		wf_digest_reset(digest);
		wf_digest_bytes(digest, bytes, cut);
		wf_digest_bytes(digest, bytes + cut, sizeof(bytes) - cut);
		assert_true(wf_digest_value(digest) == whole);
	}
}

static void
a_value_may_be_asked_for_in_between(void **state)
{
	wf_digest_reset(digest);
	wf_digest_bytes(digest, "ab", 2);
	assert_true(wf_digest_value(digest) == wf_digest_of("ab", 2));
	wf_digest_bytes(digest, "cd", 2);
	assert_true(wf_digest_value(digest) == wf_digest_of("abcd", 4));
}

static void
integers_are_little_endian(void **state)
{
	wf_digest_reset(digest);
	wf_digest_u64(digest, 0x0807060504030201u);
	assert_true(wf_digest_value(digest) == wf_digest_of("\1\2\3\4\5\6\7\10", 8));
	wf_digest_reset(digest);
	wf_digest_f64(digest, 1.0);
	assert_true(wf_digest_value(digest) == wf_digest_of("\0\0\0\0\0\0\360\77", 8));
}

static uint64_t
of_strings(const char *first, const char *second)
{
	wf_digest_reset(digest);
	wf_digest_string(digest, first);
	wf_digest_string(digest, second);
	return wf_digest_value(digest);
}

static void
a_string_does_not_run_into_the_next(void **state)
{
	assert_true(of_strings("ab", "c") != of_strings("a", "bc"));
	assert_true(of_strings("", "a") != of_strings("a", ""));
	assert_true(of_strings("ab", "c") == of_strings("ab", "c"));
}

static void
no_memory_is_a_status(void **state)
{
	struct wf_failing_env failing;
	struct wf_digest *none = NULL;
	wf_failing_env_init(&failing, env);
	wf_failing_env_fail(&failing, 1, false);
	assert_int_equal(wf_digest_create(&failing.env, &none), WEFT_NOMEM);
	assert_null(none);
	assert_int_equal(wf_digest_create(&failing.env, &none), WEFT_OK);
	wf_digest_destroy(none);
	wf_digest_destroy(NULL);
	assert_true(wf_failing_env_is_clean(&failing));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_has_the_published_value),
		cmocka_unit_test(a_stream_equals_one_shot_wherever_it_is_cut),
		cmocka_unit_test(a_value_may_be_asked_for_in_between),
		cmocka_unit_test(integers_are_little_endian),
		cmocka_unit_test(a_string_does_not_run_into_the_next),
		cmocka_unit_test(no_memory_is_a_status),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
