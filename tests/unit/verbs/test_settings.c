/* SPDX-License-Identifier: Apache-2.0 */
/* What a user may say about devices and timers. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "transport/verbs/verbs_settings.h"

static void
nothing_said_means_sane_timers(void **state)
{
	static const char *const texts[] = {NULL, ""};
	for (unsigned i = 0; i < WF_ARRAY_COUNT(texts); i++) {
		struct wf_verbs_settings s;
		memset(&s, 0xff, sizeof(s));
		assert_int_equal(wf_verbs_settings_parse(texts[i], &s), WEFT_OK);
		assert_string_equal(s.device, "");
		assert_int_equal(s.gid, -1);
		assert_int_equal(s.lane, 0);
		assert_int_equal(s.node, -1);
		assert_int_equal(s.mtu, -1);
		assert_int_equal(s.rnr_timer, 12); /* 0 would be 655 ms */
		assert_true(s.retry_count < 7);    /* 7 is for ever on some devices */
		assert_true((s.retry_count + 1) * (4096ull << s.ack_timeout) < 5000000000ull);
		assert_int_equal(s.immediate, WF_VERBS_AUTO);
		assert_int_equal(s.window, WF_VERBS_AUTO);
		assert_int_equal(s.shared_queue, WF_VERBS_AUTO);
	}
}

static void
each_key_sets_its_field(void **state)
{
	struct wf_verbs_settings s;
	assert_int_equal(
		wf_verbs_settings_parse(
			"device=mlx5_0,port=2,lane=4,node=1,gid=3,mtu=1024,tclass=106,sl=5,pkey=1,"
			"ack_timeout=14,retry=2,rnr_timer=20,rnr_retry=3,inline=64,credits=16,"
			"vector=7,send_queue=64,small_put=0,imm=off,mw=off,srq=off,relaxed=off",
			&s),
		WEFT_OK);
	assert_string_equal(s.device, "mlx5_0");
	assert_int_equal(s.port, 2);
	assert_int_equal(s.lane, 4);
	assert_int_equal(s.node, 1);
	assert_int_equal(s.gid, 3);
	assert_int_equal(s.mtu, 1024);
	assert_int_equal(s.traffic_class, 106);
	assert_int_equal(s.service_level, 5);
	assert_int_equal(s.pkey, 1);
	assert_int_equal(s.ack_timeout, 14);
	assert_int_equal(s.retry_count, 2);
	assert_int_equal(s.rnr_timer, 20);
	assert_int_equal(s.rnr_retry, 3);
	assert_int_equal(s.vector, 7);
	assert_int_equal(s.inline_bytes, 64);
	assert_int_equal(s.credits, 16);
	assert_int_equal(s.send_queue, 64);
	assert_int_equal(s.small_put_bytes, 0);
	assert_int_equal(s.immediate, WF_VERBS_OFF);
	assert_int_equal(s.window, WF_VERBS_OFF);
	assert_int_equal(s.shared_queue, WF_VERBS_OFF);
	assert_int_equal(s.relaxed, WF_VERBS_OFF);
}

static void
the_last_of_two_wins(void **state)
{
	struct wf_verbs_settings s;
	assert_int_equal(wf_verbs_settings_parse("retry=1,imm=off,retry=4,imm=auto", &s), WEFT_OK);
	assert_int_equal(s.retry_count, 4);
	assert_int_equal(s.immediate, WF_VERBS_AUTO);
}

static void
several_devices_may_be_named(void **state)
{
	struct wf_verbs_settings s;
	char name[WF_VERBS_DEVICE_BYTES];
	assert_int_equal(wf_verbs_settings_parse("device=mlx5_0+mlx5_1+bnxt_re0", &s), WEFT_OK);
	assert_int_equal(wf_verbs_settings_device_count(&s), 3);
	wf_verbs_settings_device(&s, 0, name);
	assert_string_equal(name, "mlx5_0");
	wf_verbs_settings_device(&s, 2, name);
	assert_string_equal(name, "bnxt_re0");
	assert_int_equal(wf_verbs_settings_find_device(&s, "mlx5_1"), 1);
	assert_int_equal(wf_verbs_settings_find_device(&s, "mlx5"), -1);
	assert_int_equal(wf_verbs_settings_find_device(&s, "mlx5_1+bnxt_re0"), -1);
	assert_int_equal(wf_verbs_settings_parse("", &s), WEFT_OK);
	assert_int_equal(wf_verbs_settings_device_count(&s), 0);
	assert_int_equal(wf_verbs_settings_find_device(&s, "any"), 0);
}

static void
what_is_wrong_is_named(void **state)
{
	static const struct {
		const char *text, *named;
	} cases[] = {
		{"speed=9", "speed"},
		{"retry", "retry"},
		{"retry=", "retry="},
		{"=5", "=5"},
		{",", "key=value"},
		{"retry=7", "0 to 6"},
		{"retry=-1", "retry=-1"},
		{"retry=5x", "5x"},
		{"retry=99999999999999999999", "retry"},
		{"ack_timeout=0", "1 to 31"},
		{"rnr_timer=0", "1 to 31"},
		{"credits=3", "4 to 1024"},
		{"send_queue=31", "32 to 16384"},
		{"mtu=100", "256 to 4096"},
		{"imm=maybe", "auto, on or off"},
		{"device=a+", "with + between"},
		{"device=+a", "with + between"},
		{"device=a++b", "with + between"},
		{"node=1024", "0 to 1023"},
		{"retry=5,,imm=off", "key=value"},
		{"device=a_name_that_is_much_too_long_to_be_that_of_any_device_there_could_be",
		 "names of devices"},
	};
	for (unsigned i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		struct wf_verbs_settings s = {.retry_count = 99};
		assert_int_equal(wf_verbs_settings_parse(cases[i].text, &s), WEFT_INVALID);
		assert_non_null(strstr(weft_last_error(), cases[i].named));
		assert_int_equal(s.retry_count, 99);
	}
}

/* The keys are those that each_key_sets_its_field sets. */
static void
who_misspells_a_key_reads_all_of_them(void **state)
{
	struct wf_verbs_settings s;
	assert_int_equal(wf_verbs_settings_parse("vektor=5", &s), WEFT_INVALID);
	assert_non_null(
		strstr(weft_last_error(),
		       "\"vektor\"; there are: device, port, lane, node, gid, mtu, tclass, sl, "
		       "pkey, ack_timeout, retry, rnr_timer, rnr_retry, vector, inline, "
		       "credits, send_queue, small_put, imm, mw, srq, relaxed"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_said_means_sane_timers),
		cmocka_unit_test(each_key_sets_its_field),
		cmocka_unit_test(the_last_of_two_wins),
		cmocka_unit_test(several_devices_may_be_named),
		cmocka_unit_test(what_is_wrong_is_named),
		cmocka_unit_test(who_misspells_a_key_reads_all_of_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
