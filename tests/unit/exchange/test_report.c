/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of report: what a line says is what came since the beginning of what it is about, periods
 * follow each other without a gap, and late ones are left out. The transport is a struct that the
 * test fills, and the end has one counter of its own. Thread: the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "exchange/report.h"
#include "transport/ops.h"

enum { STEP_COUNT = WF_END_COUNTER_COUNT, OWN_COUNT, COUNTER_COUNT };
static const char *const name[COUNTER_COUNT] = {
	WF_END_COUNTER_NAMES,
	[STEP_COUNT] = "step_count",
	[OWN_COUNT] = "own_count",
};

static struct wf_transport_info traffic;

static void
answer_query(struct wf_transport *transport, struct wf_transport_info *out)
{
	(void)transport;
	*out = traffic;
}

static const struct wf_transport_ops transport_ops = {.query = answer_query};
static struct wf_transport transport = {.ops = &transport_ops};

static struct wf_stats stats;
static struct wf_hist times;
static struct wf_report report;
static unsigned gathered, written;
static uint64_t own;               /* what gather finds */
static struct wf_report_line line; /* the last one */

static void
gather(void *end, const struct wf_transport_info *info)
{
	assert_ptr_equal(end, &own);
	assert_int_equal(info->bytes_sent, traffic.bytes_sent);
	wf_stats_set(&stats, OWN_COUNT, own);
	gathered++;
}

static void
write(void *end, const struct wf_report_line *said)
{
	assert_ptr_equal(end, &own);
	line = *said;
	written++;
}

static const struct wf_report_ops ops = {.gather = gather, .write = write};

static int
set_up(void **state)
{
	(void)state;
	memset(&report, 0, sizeof(report));
	memset(&times, 0, sizeof(times));
	memset(&traffic, 0, sizeof(traffic));
	traffic.path_count = 1;
	traffic.path[0].name = "tcp";
	wf_stats_init(&stats, name, COUNTER_COUNT);
	wf_report_init(&report, &stats, &times, "the job", STEP_COUNT);
	gathered = 0;
	written = 0;
	own = 0;
	return 0;
}

/* One step, whose time was `us`, and its bytes. */
static void
work(uint64_t us)
{
	wf_stats_add(&stats, STEP_COUNT, 1);
	wf_hist_record(&times, us * 1000);
	traffic.bytes_sent += 500000;
	traffic.path[0].bytes_sent += 500000;
	traffic.msgs_received += 2;
	traffic.puts_sent += 3;
	own += 7;
}

static void
say(uint64_t now_ns)
{
	wf_report_period(&report, &transport, &ops, &own, now_ns);
}

static void
a_line_says_what_came_in_its_period(void **state)
{
	(void)state;
	wf_report_begin(&report, true, WF_NS_PER_S, 2 * WF_NS_PER_S);
	assert_int_equal(report.next_ns, 3 * WF_NS_PER_S);
	work(64);
	work(64);
	say(3 * WF_NS_PER_S);
	assert_string_equal(line.head,
			    "stats of 2.0 s: steps 2 steps_per_s 1.0 received_mb_per_s 0.000 "
			    "sent_mb_per_s 0.500 messages_received 4 messages_sent 0 "
			    "puts_received 0 puts_sent 6");
	assert_non_null(strstr(line.paths, " tcp_sent_bytes 1000000"));
	assert_int_equal(line.since[OWN_COUNT], 14);
	assert_true(line.p50_us >= 64 && line.p50_us < 66);
	work(512);
	say(5 * WF_NS_PER_S);
	assert_int_equal(line.since[STEP_COUNT], 1);
	assert_int_equal(line.since[OWN_COUNT], 7);
	assert_int_equal(line.at[OWN_COUNT], 21);
	assert_non_null(strstr(line.paths, " tcp_sent_bytes 500000"));
	assert_true(line.p50_us >= 512 && line.p50_us < 521); /* the others were before */
	assert_false(line.whole);
	assert_int_equal(written, 2);
}

static void
the_last_line_is_about_the_whole_and_said_once(void **state)
{
	(void)state;
	work(64); /* before */
	wf_report_gather(&report, &transport, &ops, &own);
	wf_report_begin(&report, true, WF_NS_PER_S, 2 * WF_NS_PER_S);
	work(512);
	say(3 * WF_NS_PER_S);
	work(512);
	for (unsigned i = 0; i < 2; i++) {
		wf_report_end(&report, &transport, &ops, &own, 5 * WF_NS_PER_S);
		assert_int_equal(written, 2);
		assert_int_equal(report.next_ns, WF_NEVER);
	}
	assert_true(line.whole);
	assert_int_equal(strncmp(line.head, "stats of the job, 4.0 s: steps 2 ", 33), 0);
	assert_int_equal(line.since[OWN_COUNT], 14);
	assert_true(line.p50_us >= 512);
	wf_report_begin(&report, true, 6 * WF_NS_PER_S, 2 * WF_NS_PER_S); /* the next job */
	work(64);
	wf_report_end(&report, &transport, &ops, &own, 7 * WF_NS_PER_S);
	assert_int_equal(written, 3);
	assert_int_equal(line.since[STEP_COUNT], 1);
}

static void
a_whole_that_is_not_anew_has_all_that_was_counted(void **state)
{
	(void)state;
	work(64);
	wf_report_begin(&report, false, WF_NS_PER_S, 2 * WF_NS_PER_S);
	work(64);
	wf_report_end(&report, &transport, &ops, &own, 2 * WF_NS_PER_S);
	assert_int_equal(line.since[STEP_COUNT], 2);
	assert_non_null(strstr(line.paths, " tcp_sent_bytes 1000000"));
}

static void
periods_that_were_missed_are_left_out(void **state)
{
	(void)state;
	wf_report_begin(&report, true, WF_NS_PER_S, 2 * WF_NS_PER_S);
	say(4 * WF_NS_PER_S); /* late, and the next one is not */
	assert_int_equal(report.next_ns, 5 * WF_NS_PER_S);
	say(10 * WF_NS_PER_S);
	assert_int_equal(report.next_ns, 12 * WF_NS_PER_S);
	assert_true(line.s > 5.99 && line.s < 6.01); /* what it says is of all that time */
}

static void
without_a_period_the_counters_are_exact_and_nothing_is_said(void **state)
{
	(void)state;
	wf_report_begin(&report, true, WF_NS_PER_S, 0);
	assert_int_equal(report.next_ns, WF_NEVER);
	work(64);
	wf_report_end(&report, &transport, &ops, &own, 2 * WF_NS_PER_S);
	assert_int_equal(written, 0);
	assert_int_equal(gathered, 1);
	assert_int_equal(wf_stats_get(&stats, WF_END_PUT_SENT_COUNT), 3);
	assert_int_equal(wf_stats_get(&stats, OWN_COUNT), 7);
}

static void
each_counter_is_of_its_own_field(void **state)
{
	(void)state;
	traffic.bytes_received = 1;
	traffic.bytes_sent = 2;
	traffic.msgs_received = 3;
	traffic.msgs_sent = 4;
	traffic.puts_received = 5;
	traffic.puts_sent = 6;
	traffic.posts_again = 7;
	wf_report_gather(&report, &transport, &ops, &own);
	for (unsigned i = 0; i < 7; i++) {
		assert_int_equal(wf_stats_get(&stats, i), i + 1);
	}
	assert_string_equal(wf_stats_name(&stats, 0), "transport_received_bytes");
	assert_string_equal(wf_stats_name(&stats, 6), "wait_post_count");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_line_says_what_came_in_its_period, set_up),
		cmocka_unit_test_setup(the_last_line_is_about_the_whole_and_said_once, set_up),
		cmocka_unit_test_setup(a_whole_that_is_not_anew_has_all_that_was_counted, set_up),
		cmocka_unit_test_setup(periods_that_were_missed_are_left_out, set_up),
		cmocka_unit_test_setup(without_a_period_the_counters_are_exact_and_nothing_is_said,
				       set_up),
		cmocka_unit_test_setup(each_counter_is_of_its_own_field, set_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
