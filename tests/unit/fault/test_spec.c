/* SPDX-License-Identifier: Apache-2.0 */
/* What a SPEC may contain, and how a wrong one is refused. One thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/env.h"
#include "transport/fault/fault_spec.h"

static struct wf_fault_spec
good(const char *text)
{
	struct wf_fault_spec spec;
	memset(&spec, 0xee, sizeof(spec));
	enum weft_status st = wf_fault_spec_parse(text, strlen(text), &spec);
	if (st != WEFT_OK) {
		fail_msg("%s: %s", text, weft_last_error());
	}
	return spec;
}

static void
an_empty_spec_has_no_faults(void **state)
{
	(void)state;
	struct wf_fault_spec spec = good("");
	assert_int_equal(spec.seed, 1);
	assert_int_equal(spec.rule_count, 0);
	for (unsigned i = 0; i < WF_FAULT_KINDS; i++) {
		assert_int_equal(spec.chance[i], 0);
		assert_int_equal(spec.lasts_ns[i], 0);
	}
}

static void
chances_are_parts_of_a_million(void **state)
{
	static const struct {
		const char *text;
		uint32_t chance;
	} rows[] = {
		{"cut=0%", 0},
		{"cut=0.0001%", 1},
		{"cut=0.1%", 1000},
		{"cut=2%", 20000},
		{"cut=2.5%", 25000},
		{"cut=2.05%", 20500},
		{"cut=99.9999%", 999999},
		{"cut=100%", 1000000},
		{"cut=100.0%", 1000000},
	};
	(void)state;
	for (size_t i = 0; i < WF_ARRAY_COUNT(rows); i++) {
		assert_int_equal(good(rows[i].text).chance[WF_FAULT_CUT], rows[i].chance);
	}
}

static void
every_kind_has_its_chance_and_time(void **state)
{
	(void)state;
	struct wf_fault_spec spec = good("seed=18446744073709551615,refuse=2%,delay=10%:5ms,cut=1%,"
					 "split=30%,short=20%,stall=1%:50ms");
	assert_true(spec.seed == UINT64_MAX);
	assert_int_equal(spec.chance[WF_FAULT_REFUSE], 20000);
	assert_int_equal(spec.chance[WF_FAULT_DELAY], 100000);
	assert_int_equal(spec.lasts_ns[WF_FAULT_DELAY], 5 * WF_NS_PER_MS);
	assert_int_equal(spec.chance[WF_FAULT_CUT], 10000);
	assert_int_equal(spec.chance[WF_FAULT_SPLIT], 300000);
	assert_int_equal(spec.chance[WF_FAULT_SHORT], 200000);
	assert_int_equal(spec.chance[WF_FAULT_STALL], 10000);
	assert_int_equal(spec.lasts_ns[WF_FAULT_STALL], 50 * WF_NS_PER_MS);
	assert_int_equal(good("delay=700us").chance[WF_FAULT_DELAY], WF_FAULT_CHANCE_ALL);
	assert_int_equal(good("delay=60s").lasts_ns[WF_FAULT_DELAY], 60 * WF_NS_PER_S);
	assert_int_equal(good("stall=3%").lasts_ns[WF_FAULT_STALL], 20 * WF_NS_PER_MS);
}

static void
assert_rule(const char *text, struct wf_fault_rule expected)
{
	struct wf_fault_spec spec = good(text);
	assert_int_equal(spec.rule_count, 1);
	assert_int_equal(spec.rule[0].kind, expected.kind);
	assert_int_equal(spec.rule[0].point, expected.point);
	assert_int_equal(spec.rule[0].first, expected.first);
	assert_int_equal(spec.rule[0].last, expected.last);
	assert_int_equal(spec.rule[0].lasts_ns, expected.lasts_ns);
}

static void
scripts_say_what_happens_where(void **state)
{
	(void)state;
	const uint64_t ms = WF_NS_PER_MS;
	assert_rule("refuse@connect:1-3",
		    (struct wf_fault_rule){WF_FAULT_REFUSE, WF_FAULT_AT_CONNECT, 1, 3, 0});
	assert_rule("refuse@accept:2",
		    (struct wf_fault_rule){WF_FAULT_REFUSE, WF_FAULT_AT_ACCEPT, 2, 2, 0});
	assert_rule("cut@put:120",
		    (struct wf_fault_rule){WF_FAULT_CUT, WF_FAULT_AT_PUT, 120, 120, 0});
	assert_rule("cut@op:7", (struct wf_fault_rule){WF_FAULT_CUT, WF_FAULT_AT_OP, 7, 7, 0});
	assert_rule("cut@ms:1500",
		    (struct wf_fault_rule){WF_FAULT_CUT, WF_FAULT_AT_MS, 1500, 1500, 0});
	assert_rule("delay@down:1-9:50ms",
		    (struct wf_fault_rule){WF_FAULT_DELAY, WF_FAULT_AT_DOWN, 1, 9, 50 * ms});
	assert_rule("split@poll:4-9",
		    (struct wf_fault_rule){WF_FAULT_SPLIT, WF_FAULT_AT_POLL, 4, 9, 0});
	assert_rule("short@post:4",
		    (struct wf_fault_rule){WF_FAULT_SHORT, WF_FAULT_AT_POST, 4, 4, 0});
	assert_rule("stall@poll:500:200ms",
		    (struct wf_fault_rule){WF_FAULT_STALL, WF_FAULT_AT_POLL, 500, 500, 200 * ms});
	assert_int_equal(good("cut@msg:1,cut@msg:3,seed=4,cut@put:9").rule_count, 3);
}

static void
of_two_that_say_the_same_thing_the_last_one_wins(void **state)
{
	(void)state;
	struct wf_fault_spec spec = good("seed=1,cut=1%,seed=2,cut=5%");
	assert_int_equal(spec.seed, 2);
	assert_int_equal(spec.chance[WF_FAULT_CUT], 50000);
}

/* What is wrong, and which words tell what would be right. */
static void
mistakes_are_named_with_their_remedy(void **state)
{
	static const struct {
		const char *text, *item, *remedy;
	} rows[] = {
		{"cutt=1%", "\"cutt=1%\"", "refuse, delay, cut, split, short, stall"},
		{"seed=1,,cut=1%", "\"\"", "refuse, delay, cut"},
		{"seed=1,", "\"\"", "refuse, delay, cut"},
		{"cut", "\"cut\"", "=CHANCE"},
		{"cut@", "\"cut@\"", "cut@put:120"},
		{"=1%", "\"=1%\"", "refuse, delay, cut"},
		{"@put:1", "\"@put:1\"", "refuse, delay, cut"},
		{"seed=x", "\"seed=x\"", "seed=7"},
		{"seed=", "\"seed=\"", "seed=7"},
		{"seed=18446744073709551616", "seed=1844", "seed=7"},
		{"seed=-1", "\"seed=-1\"", "seed=7"},
		{"cut=1", "\"cut=1\"", "cut=0.1%"},
		{"cut=%", "\"cut=%\"", "cut=0.1%"},
		{"cut=.5%", "\"cut=.5%\"", "cut=0.1%"},
		{"cut=1.%", "\"cut=1.%\"", "cut=0.1%"},
		{"cut=0.00001%", "\"cut=0.00001%\"", "cut=0.1%"},
		{"cut=100.1%", "\"cut=100.1%\"", "0 to 100"},
		{"cut=101%", "\"cut=101%\"", "0 to 100"},
		{"cut=1%%", "\"cut=1%%\"", "cut=0.1%"},
		{"cut=1%:5ms", "\"cut=1%:5ms\"", "cut=0.1%"},
		{"delay=1%", "\"delay=1%\"", "delay=10%:5ms"},
		{"delay=5", "\"delay=5\"", "delay=5ms"},
		{"delay=0ms", "\"delay=0ms\"", "duration"},
		{"delay=61s", "\"delay=61s\"", "60s"},
		{"delay=61000001us", "\"delay=61000001us\"", "60s"},
		{"stall=5ms", "\"stall=5ms\"", "stall=1%:50ms"},
		{"stall=1%:", "\"stall=1%:\"", "stall=1%:50ms"},
		{"refuse@put:1", "\"refuse@put:1\"", "refuse@connect:1-3"},
		{"cut@never:1", "\"cut@never:1\"", "cut@put:120"},
		{"cut@put", "\"cut@put\"", "cut@put:120"},
		{"cut@put:", "\"cut@put:\"", "cut@put:120"},
		{"cut@put:0", "\"cut@put:0\"", "from 1 on"},
		{"cut@put:3-2", "\"cut@put:3-2\"", "cut@put:120"},
		{"cut@put:3-", "\"cut@put:3-\"", "cut@put:120"},
		{"cut@put:-3", "\"cut@put:-3\"", "cut@put:120"},
		{"cut@put:1:5ms", "\"cut@put:1:5ms\"", "cut@put:120"},
		{"cut@put:99999999999999", "cut@put:9999", "cut@put:120"},
		{"cut@ms:1-2", "\"cut@ms:1-2\"", "cut@ms:1500"},
		{"stall@poll:5", "\"stall@poll:5\"", "stall@poll:500:200ms"},
		{"delay@put:5:", "\"delay@put:5:\"", "delay@put:7:50ms"},
		{"seed@put:5", "\"seed@put:5\"", "refuse, delay, cut"},
	};
	(void)state;
	for (size_t i = 0; i < WF_ARRAY_COUNT(rows); i++) {
		struct wf_fault_spec spec = {.seed = 77};
		const char *text = rows[i].text;
		if (wf_fault_spec_parse(text, strlen(text), &spec) != WEFT_INVALID ||
		    strstr(weft_last_error(), rows[i].item) == NULL ||
		    strstr(weft_last_error(), rows[i].remedy) == NULL) {
			fail_msg("%s: %s", text, weft_last_error());
		}
		assert_int_equal(spec.seed, 77); /* untouched */
	}
}

static void
a_spec_has_its_limits(void **state)
{
	(void)state;
	char text[WF_FAULT_SPEC_BYTES + 64] = "cut@msg:1";
	struct wf_fault_spec spec;
	for (unsigned i = 1; i < WF_FAULT_RULES_MAX; i++) {
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), ",cut@msg:%u",
			       i + 1);
	}
	assert_int_equal(good(text).rule_count, WF_FAULT_RULES_MAX);
	(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), ",cut@msg:99");
	assert_int_equal(wf_fault_spec_parse(text, strlen(text), &spec), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "16 scripted items"));
	memset(text, ',', sizeof(text));
	assert_int_equal(wf_fault_spec_parse(text, sizeof(text), &spec), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "at most 512"));
}

static void
only_the_bytes_that_are_given_are_read(void **state)
{
	(void)state;
	struct wf_fault_spec spec;
	assert_int_equal(wf_fault_spec_parse("seed=12345", 7, &spec), WEFT_OK);
	assert_int_equal(spec.seed, 12);
}

static void
the_default_is_a_good_spec_without_ends(void **state)
{
	(void)state;
	struct wf_fault_spec spec = good(WF_FAULT_SPEC_DEFAULT);
	assert_int_equal(spec.chance[WF_FAULT_CUT], 0);
	assert_int_equal(spec.chance[WF_FAULT_REFUSE], 0);
	assert_true(spec.chance[WF_FAULT_DELAY] > 0 && spec.chance[WF_FAULT_SHORT] > 0);
	assert_true(spec.chance[WF_FAULT_SPLIT] > 0 && spec.chance[WF_FAULT_STALL] > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_spec_has_no_faults),
		cmocka_unit_test(chances_are_parts_of_a_million),
		cmocka_unit_test(every_kind_has_its_chance_and_time),
		cmocka_unit_test(scripts_say_what_happens_where),
		cmocka_unit_test(of_two_that_say_the_same_thing_the_last_one_wins),
		cmocka_unit_test(mistakes_are_named_with_their_remedy),
		cmocka_unit_test(a_spec_has_its_limits),
		cmocka_unit_test(only_the_bytes_that_are_given_are_read),
		cmocka_unit_test(the_default_is_a_good_spec_without_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
