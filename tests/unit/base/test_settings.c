/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the table of settings: it names each field of the public struct once, and agrees with
 * itself. Which defaults and limits there are, tests/unit/trainer/test_options.c says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/assert.h"
#include "base/settings.h"

#define BYTES sizeof(struct weft_session_opts)

/* Marks the bytes of a field; how many were marked already. */
static unsigned
mark(unsigned char *map, size_t offset, size_t bytes)
{
	unsigned twice = 0;
	for (size_t i = offset; i < offset + bytes; i++) {
		twice += map[i];
		map[i] = 1;
	}
	return twice;
}

#define MARK(field)                                                                                \
	mark(map, offsetof(struct weft_session_opts, field),                                       \
	     sizeof(((struct weft_session_opts *)NULL)->field))

/* A field that has no row would keep what is in the caller's memory, and be checked by nobody. */
static void
each_field_of_the_struct_has_one_row(void **state)
{
	unsigned char map[BYTES] = {0};
	unsigned count = 0;
	const struct wf_option *table = wf_session_settings(&count);
	for (unsigned i = 0; i < count; i++) {
		assert_true(table[i].offset + table[i].bytes <= BYTES);
		assert_int_equal(mark(map, table[i].offset, table[i].bytes), 0);
	}
	/* What is no setting. */
	assert_int_equal(MARK(struct_bytes) + MARK(log) + MARK(log_arg) + MARK(interrupted) +
				 MARK(interrupted_arg) + MARK(env),
			 0);
	/* What is left is padding, which is there between fields of less than 8 bytes only. */
	for (size_t i = 0; i < BYTES; i++) {
		size_t end = i;
		while (end < BYTES && map[end] == 0) {
			end++;
		}
		assert_true(end - i < sizeof(uint64_t));
		assert_true(end == i || end % sizeof(uint32_t) == 0);
		i = end > i ? end : i;
	}
}

static void
no_two_settings_have_one_name(void **state)
{
	unsigned count = 0;
	const struct wf_option *table = wf_session_settings(&count);
	for (unsigned i = 0; i < count; i++) {
		for (unsigned k = 0; k < i; k++) {
			assert_string_not_equal(table[i].name, table[k].name);
		}
	}
}

static void
what_is_no_setting_is_zero_in_the_defaults(void **state)
{
	struct weft_session_opts opts;
	memset(&opts, 0x5a, sizeof(opts));
	wf_session_defaults(&opts);
	assert_int_equal(opts.struct_bytes, sizeof(opts));
	assert_null(opts.log);
	assert_null(opts.log_arg);
	assert_null(opts.interrupted);
	assert_null(opts.interrupted_arg);
	assert_null(opts.env);
	assert_int_equal(wf_session_settings_check(&opts), WEFT_OK);
}

static void
texts_are_found_where_they_stand(void **state)
{
	struct weft_session_opts opts;
	const char **text[WF_SETTING_TEXTS_MAX];
	wf_session_defaults(&opts);
	unsigned count = wf_session_texts(&opts, text);
	unsigned seen = 0;
	for (unsigned i = 0; i < count; i++) {
		seen += text[i] == &opts.pservers || text[i] == &opts.compared ||
			text[i] == &opts.optimizer.method || text[i] == &opts.optimizer.schedule ||
			text[i] == &opts.optimizer.schedule_args || text[i] == &opts.transport ||
			text[i] == &opts.pin || text[i] == &opts.numerics ||
			text[i] == &opts.tcp_congestion || text[i] == &opts.verbs;
	}
	assert_int_equal(seen, 10);
	assert_int_equal(count, 10);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_field_of_the_struct_has_one_row),
		cmocka_unit_test(no_two_settings_have_one_name),
		cmocka_unit_test(what_is_no_setting_is_zero_in_the_defaults),
		cmocka_unit_test(texts_are_found_where_they_stand),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
