/* SPDX-License-Identifier: Apache-2.0 */
/* What is made of records: summaries, JSON, metrics; and which requests are meant for this server.
 * Thread: the test's. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "status/document.h"
#include "status/host.h"
#include "status/http.h"
#include "status/metrics.h"

#define MS WF_NS_PER_MS

static struct wf_summary summary;
static struct wf_picture now, before;

/* ---- whose request ---- */

static void
only_the_servers_own_names_are_accepted(void **state)
{
	static const struct {
		const char *host;
		bool closed, open; /* listening on loopback, and for others */
	} cases[] = {
		{"127.0.0.1:9464", true, true},
		{"localhost:9464", true, true},
		{"LocalHost:9464", true, true},
		{"[::1]:9464", true, true},
		{"given:9464", true, true},
		{"10.1.2.3:9464", false, true},
		{"[fe80::1]:9464", false, true},
		{"node7:9464", false, true},
		{"node7.evil.example:9464", false, false},
		{"127.0.0.1.evil.example:9464", false, false},
		{"evil.example:9464", false, false},
		{"localhost", false, false},
		{"localhost:80", false, false},
		{"localhost:9464:9464", false, false},
		{"", false, false},
		{":9464", false, false},
		{"[::1", false, false},
		{NULL, false, false},
	};
	const struct wf_host given = {.name = "given", .port = 9464};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool closed = wf_status_host_is_ours(cases[i].host, &given, true, "node7");
		bool open = wf_status_host_is_ours(cases[i].host, &given, false, "node7");
		if (closed != cases[i].closed || open != cases[i].open) {
			fail_msg("Host %s: %d on loopback, %d for others", cases[i].host, closed,
				 open);
		}
	}
}

static void
the_value_of_status_is_a_port_or_an_address_with_one(void **state)
{
	struct wf_host out;
	(void)state;
	assert_int_equal(wf_status_parse("9464", &out), WEFT_OK);
	assert_string_equal(out.name, "127.0.0.1");
	assert_int_equal(out.port, 9464);
	assert_int_equal(wf_status_parse("0", &out), WEFT_OK);
	assert_int_equal(out.port, 0);
	assert_int_equal(wf_status_parse("0.0.0.0:10", &out), WEFT_OK);
	assert_string_equal(out.name, "0.0.0.0");
	assert_int_equal(out.port, 10);
	assert_int_equal(wf_status_parse("[::]:0", &out), WEFT_OK);
	assert_int_equal(out.port, 0);
	const char *const wrong[] = {"", "x", "127.0.0.1", "65536", "::", "a:b", ":1", "1:"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (wf_status_parse(wrong[i], &out) != WEFT_INVALID) {
			fail_msg("--status=%s is accepted", wrong[i]);
		}
	}
}

/* ---- records ---- */

static struct wf_watch_record *
add(struct wf_picture *picture, enum wf_watch_kind kind, uint64_t lane, uint64_t idx)
{
	const struct wf_watch_record record = {.kind = kind, .lane = lane, .idx = idx};
	assert_int_equal(wf_picture_add(picture, &record), WEFT_OK);
	return &picture->record[picture->count - 1];
}

static void
add_pserver(struct wf_picture *picture, uint64_t at_ns, uint64_t pid)
{
	struct wf_watch_record *record = add(picture, WF_WATCH_PSERVER, 0, 0);
	record->value[WF_PSERVER_AT_NS] = at_ns;
	record->value[WF_PSERVER_PID] = pid;
	record->value[WF_PSERVER_DENSE_LANES] = 1;
	(void)snprintf(record->text[WF_PSERVER_VERSION], WF_REASON_BYTES, "1 \"beta\"\\");
}

/* A lane that has made so many steps, each of which took 10 ms to apply. */
static void
add_lane(struct wf_picture *picture, uint64_t at_ns, uint64_t steps)
{
	struct wf_watch_record *record = add(picture, WF_WATCH_LANE, 0, 0);
	record->value[WF_WLANE_AT_NS] = at_ns;
	record->value[WF_WLANE_JOB] = WF_WATCH_JOB_RUNNING;
	record->value[WF_WLANE_STEPS] = steps;
	record->value[WF_WLANE_SENT_BYTES] = 1000 * steps;
	record->value[WF_WLANE_SPLIT_STEPS] = steps;
	record->value[WF_WLANE_SPLIT_APPLY_NS] = 10 * MS * steps;
	record->value[WF_WLANE_TRAINERS] = 2;
	record->value[WF_WLANE_IS_TIMED] = 1;
	record->value[WF_WLANE_IDLE_NS] = at_ns / 4;
}

/* A trainer whose steps took so long. */
static void
add_member(struct wf_picture *picture, uint32_t trainer, uint64_t steps, uint64_t compute_ms,
	   uint64_t ahead_ms)
{
	struct wf_watch_record *record = add(picture, WF_WATCH_MEMBER, 0, trainer);
	uint64_t *value = record->value;
	value[WF_MEMBER_STATE] = WF_WATCH_UP;
	value[WF_MEMBER_STEP] = steps - trainer;
	value[WF_MEMBER_ARRIVED] = value[WF_MEMBER_SPLIT] = steps;
	value[WF_MEMBER_COMPUTE_NS] = compute_ms * MS * steps;
	value[WF_MEMBER_NETWORK_NS] = 5 * MS * steps;
	value[WF_MEMBER_ARRIVE_NS] = (compute_ms + 5) * MS * steps;
	value[WF_MEMBER_AHEAD_NS] = ahead_ms * MS * steps;
	value[WF_MEMBER_LAST] = ahead_ms == 0 ? steps : 0;
	value[WF_MEMBER_NEXT_NS] = ahead_ms == 0 ? 80 * MS * steps : 0;
}

static void
add_all(struct wf_picture *picture, uint64_t at_ns, uint64_t pid, uint64_t steps)
{
	add_pserver(picture, at_ns, pid);
	add_lane(picture, at_ns, steps);
	add_member(picture, 0, steps, 20, 80);
	add_member(picture, 1, steps, 100, 0);
}

static int
forget(void **state)
{
	(void)state;
	wf_picture_fini(&now);
	wf_picture_fini(&before);
	return 0;
}

static void
assert_near(double value, double expected)
{
	if (!(fabs(value - expected) <= 1e-6 * fabs(expected) + 1e-9)) {
		fail_msg("%g instead of %g", value, expected);
	}
}

static void
a_summary_is_of_the_time_between_two_pictures(void **state)
{
	(void)state;
	add_all(&before, 10 * WF_NS_PER_S, 1, 100);
	/* Twenty steps more in two seconds, which took twice as long to compute. */
	add_all(&now, 12 * WF_NS_PER_S, 1, 120);
	now.record[2].value[WF_MEMBER_COMPUTE_NS] = 100 * 20 * MS + 20 * 40 * MS;
	wf_summary_make(&now, &before, &summary);
	assert_near(summary.over_s, 2);
	assert_near(summary.steps_per_s, 10);
	assert_near(summary.sent_per_s, 10000);
	assert_near(summary.lane[0].idle, 0.25);
	assert_near(summary.member[0].split.compute_ms, 40);
	assert_near(summary.member[0].split.network_ms, 5);
	assert_near(summary.member[0].split.ahead_ms, 80);
	assert_near(summary.member[0].split.apply_ms, 10);
	assert_near(summary.member[1].split.compute_ms, 100);
	assert_near(summary.member[1].last_share, 1);
	assert_near(summary.member[1].behind_ms, 80);
	assert_near(summary.member[0].last_share, 0);
	assert_near(summary.split.compute_ms, 70);
	assert_int_equal(summary.member[0].lag, 0);
	assert_int_equal(summary.member[1].lag, 1);
}

static void
another_process_has_nothing_before(void **state)
{
	(void)state;
	add_all(&before, 10 * WF_NS_PER_S, 1, 100);
	add_all(&now, 12 * WF_NS_PER_S, 2, 30);
	wf_summary_make(&now, &before, &summary);
	assert_near(summary.over_s, 0);
	assert_near(summary.steps_per_s, 0);
	assert_near(summary.member[0].split.compute_ms, 20); /* since its start */
}

static void
another_job_begins_its_sums_anew(void **state)
{
	(void)state;
	add_all(&before, 10 * WF_NS_PER_S, 1, 100);
	add_all(&now, 12 * WF_NS_PER_S, 1, 30);
	wf_summary_make(&now, &before, &summary);
	assert_near(summary.steps_per_s, 0); /* never below 0 */
	assert_near(summary.member[0].split.compute_ms, 20);
	assert_near(summary.member[1].split.ahead_ms, 0);
}

static void
what_is_not_known_is_not_shown(void **state)
{
	(void)state;
	wf_summary_make(&now, NULL, &summary);
	assert_null(summary.pserver);
	assert_true(isnan(summary.split.own_ms));
	add_pserver(&now, 5, 1);
	add_lane(&now, 5, 0);
	add_member(&now, 0, 3, 20, 0);
	memset(&now.record[2].value[WF_MEMBER_ARRIVED], 0, 8 * sizeof(uint64_t));
	wf_summary_make(&now, NULL, &summary);
	assert_true(isnan(summary.member[0].split.compute_ms));
	assert_true(isnan(summary.member[0].last_share));
}

static void
what_lies_between_lanes_is_the_worst_of_them(void **state)
{
	(void)state;
	add_pserver(&now, 5, 1);
	add_lane(&now, 5, 7);
	add_member(&now, 0, 7, 20, 0);
	struct wf_watch_record *lane = add(&now, WF_WATCH_LANE, 1, 0);
	lane->value[WF_WLANE_JOB] = WF_WATCH_JOB_FAILED;
	(void)snprintf(lane->text[WF_WLANE_CAUSE], WF_REASON_BYTES, "the cause");
	struct wf_watch_record *member = add(&now, WF_WATCH_MEMBER, 1, 0);
	member->value[WF_MEMBER_STATE] = WF_WATCH_LOST;
	member->value[WF_MEMBER_STEP] = 5;
	member->value[WF_MEMBER_WAITS] = WF_WATCH_WAIT_STEP;
	wf_summary_make(&now, NULL, &summary);
	assert_int_equal(summary.job, WF_WATCH_JOB_FAILED);
	assert_string_equal(summary.cause, "the cause");
	assert_int_equal(summary.member_count, 1);
	assert_int_equal(summary.member[0].record->value[WF_MEMBER_STATE], WF_WATCH_LOST);
	assert_int_equal(summary.member[0].step, 5);
	assert_int_equal(summary.member[0].waits, WF_WATCH_WAIT_STEP);
}

static void
numbers_that_lie_write_past_nothing(void **state)
{
	(void)state;
	struct wf_watch_record *table = add(&now, WF_WATCH_TABLE, 3, 0);
	memset(table->value, 0xff, sizeof(table->value));
	struct wf_watch_record *member = add(&now, WF_WATCH_MEMBER, 0, UINT32_MAX);
	memset(member->value, 0xff, sizeof(member->value));
	member = add(&now, WF_WATCH_MEMBER, 0, 0);
	memset(member->value, 0xff, sizeof(member->value));
	struct wf_watch_record *lane = add(&now, WF_WATCH_LANE, 0, 0);
	memset(lane->value, 0xff, sizeof(lane->value));
	struct wf_watch_record *news = add(&now, WF_WATCH_NEWS, 0, 1);
	memset(news->value, 0xff, sizeof(news->value));
	struct wf_watch_record *pserver = add(&now, WF_WATCH_PSERVER, 0, 0);
	memset(pserver->value, 0xff, sizeof(pserver->value));
	wf_summary_make(&now, &now, &summary);
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	wf_document_write(&now, &summary, NULL, out);
	wf_metrics_write(&now, &summary, out);
	assert_int_equal(fclose(out), 0);
	assert_non_null(strstr(text, "\"state\":\"unknown\""));
	free(text);
}

/* ---- texts ---- */

static void
json_is_escaped_and_what_is_no_number_is_null(void **state)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	struct wf_emit emit = {.out = out};
	(void)state;
	wf_emit_open(&emit, NULL, '{');
	wf_emit_text(&emit, "a", "\"\\\n<\x7f\xc3");
	wf_emit_f64(&emit, "b", HUGE_VAL);
	wf_emit_f64(&emit, "c", 0.5);
	wf_emit_open(&emit, "d", '[');
	wf_emit_u64(&emit, NULL, UINT64_MAX);
	wf_emit_bool(&emit, NULL, true);
	wf_emit_words(&emit, NULL, "");
	wf_emit_close(&emit, ']');
	wf_emit_key(&emit, "e", 7);
	wf_emit_close(&emit, '}');
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, "{\"a\":\"\\\"\\\\\\u000a<\\u007f\\u00c3\",\"b\":null,\"c\":0.5,"
				  "\"d\":[18446744073709551615,true,null],\"e\":\"7\"}");
	free(text);
}

static void
labels_of_metrics_are_escaped(void **state)
{
	char *text = NULL;
	size_t bytes = 0;
	(void)state;
	add_all(&now, 5, 1, 3);
	struct wf_watch_record *table = add(&now, WF_WATCH_TABLE, 2, 0);
	(void)snprintf(table->text[WF_TAB_NAME], WF_REASON_BYTES, "a\"} 1\\");
	table->value[WF_TAB_ROWS] = 9;
	wf_summary_make(&now, NULL, &summary);
	FILE *out = open_memstream(&text, &bytes);
	wf_metrics_write(&now, &summary, out);
	assert_int_equal(fclose(out), 0);
	assert_non_null(strstr(text, "weft_table_rows{lane=\"2\",table=\"a\\\"} 1\\\\\"} 9\n"));
	assert_non_null(strstr(text, "weft_build_info{version=\"1 \\\"beta\\\"\\\\\"} 1\n"));
	assert_non_null(strstr(text, "weft_trainer_compute_seconds_total{trainer=\"1\"} 0.3"));
	assert_non_null(
		strstr(text, "weft_step_seconds_bucket{lane=\"0\",kind=\"dense\",le=\"+Inf\""));
	free(text);
}

static void
a_history_keeps_the_last_five_minutes(void **state)
{
	static struct wf_history history;
	char *text = NULL;
	size_t bytes = 0;
	(void)state;
	for (unsigned i = 0; i < WF_HISTORY_POINTS + 2; i++) {
		summary = (struct wf_summary){.steps_per_s = i};
		wf_history_add(&history, &summary);
	}
	FILE *out = open_memstream(&text, &bytes);
	struct wf_emit emit = {.out = out};
	wf_history_emit(&history, &emit);
	assert_int_equal(fclose(out), 0);
	assert_non_null(strstr(text, "\"steps_per_s\":[2,3,4,"));
	assert_non_null(strstr(text, ",300,301]"));
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_servers_own_names_are_accepted),
		cmocka_unit_test(the_value_of_status_is_a_port_or_an_address_with_one),
		cmocka_unit_test_teardown(a_summary_is_of_the_time_between_two_pictures, forget),
		cmocka_unit_test_teardown(another_process_has_nothing_before, forget),
		cmocka_unit_test_teardown(another_job_begins_its_sums_anew, forget),
		cmocka_unit_test_teardown(what_is_not_known_is_not_shown, forget),
		cmocka_unit_test_teardown(what_lies_between_lanes_is_the_worst_of_them, forget),
		cmocka_unit_test_teardown(numbers_that_lie_write_past_nothing, forget),
		cmocka_unit_test(json_is_escaped_and_what_is_no_number_is_null),
		cmocka_unit_test_teardown(labels_of_metrics_are_escaped, forget),
		cmocka_unit_test(a_history_keeps_the_last_five_minutes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
