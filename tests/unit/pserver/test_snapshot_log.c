/* SPDX-License-Identifier: Apache-2.0 */
/* The registrar's lines about snapshots, of which a full disk would write one for each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "pserver/snapshot_log.h"

static uint64_t now;
static unsigned lines;
static char last[300], before[300];

static uint64_t
read_now(struct wf_env *env)
{
	(void)env;
	return now;
}

static void
keep_line(struct wf_env *env, enum weft_log_level level, const char *line)
{
	(void)env;
	(void)level;
	lines++;
	memcpy(before, last, sizeof(before));
	(void)snprintf(last, sizeof(last), "%s", line);
}

static const struct wf_env_ops ops = {.now_ns = read_now, .log = keep_line};
static struct wf_env env = {.ops = &ops};
static const char full[] = "it is full";

static void
a_disk_that_stays_full_is_logged_once_a_minute(void **state)
{
	struct wf_snapshot_log log = {0};
	(void)state;
	for (unsigned second = 0; second < 60; second++, now += WF_NS_PER_S) {
		wf_snapshot_log_failed(&log, &env, 10 + second, full);
	}
	assert_int_equal(lines, 1);
	assert_string_equal(last, "there is no snapshot of step 10, and the training goes on: it "
				  "is full");
	wf_snapshot_log_failed(&log, &env, 70, full);
	assert_int_equal(lines, 2);
	assert_string_equal(last, "there is no snapshot of step 70 (59 more failed before it), and "
				  "the training goes on: it is full");
}

static void
a_snapshot_that_was_made_counts_those_before_it(void **state)
{
	const struct wf_snapshot_made made = {
		.id = {.epoch = 2, .step = 80}, .bytes = 7, .ns = WF_NS_PER_S};
	struct wf_snapshot_log log = {0};
	(void)state;
	lines = 0;
	for (unsigned i = 0; i < 3; i++) {
		wf_snapshot_log_failed(&log, &env, 10 + i, full);
	}
	wf_snapshot_log_made(&log, &env, &made);
	assert_int_equal(lines, 3);
	assert_string_equal(before, "2 more snapshots failed before that of step 80");
	assert_string_equal(last, "snapshot of step 80 in epoch 2: 7 bytes in 1.000 s");
	wf_snapshot_log_failed(&log, &env, 90, full);
	assert_int_equal(lines, 4);
	assert_string_equal(last, "there is no snapshot of step 90, and the training goes on: it "
				  "is full");
}

static void
another_reason_is_logged_at_once(void **state)
{
	struct wf_snapshot_log log = {0};
	(void)state;
	lines = 0;
	wf_snapshot_log_failed(&log, &env, 10, "lane 0 had applied step 12 when it was ordered");
	wf_snapshot_log_failed(&log, &env, 20, "lane 1 had applied step 21 when it was ordered");
	assert_int_equal(lines, 1);
	wf_snapshot_log_failed(&log, &env, 30, "a/.dense-0.tmp-1: cannot be written: it is full");
	assert_int_equal(lines, 2);
	assert_non_null(strstr(last, "step 30 (1 more failed before it), and the training goes on: "
				     "a/.dense-0.tmp-1: cannot be written: it is full"));
	wf_snapshot_log_failed(&log, &env, 40,
			       "pserver 1: a/.dense-1.tmp-2: cannot be written: it is full");
	assert_int_equal(lines, 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_disk_that_stays_full_is_logged_once_a_minute),
		cmocka_unit_test(another_reason_is_logged_at_once),
		cmocka_unit_test(a_snapshot_that_was_made_counts_those_before_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
