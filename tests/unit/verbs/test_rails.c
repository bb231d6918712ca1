/* SPDX-License-Identifier: Apache-2.0 */
/* In which order devices serve a lane: by distance, then round and round. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "transport/verbs/verbs_rails.h"

static struct wf_verbs_candidate
candidate(const char *device, unsigned port, const char *address, unsigned distance)
{
	struct wf_verbs_candidate c = {.address.port = port, .distance = distance};
	(void)snprintf(c.address.device, sizeof(c.address.device), "%s", device);
	(void)snprintf(c.address.text, sizeof(c.address.text), "%s", address);
	return c;
}

/* "A B C": the addresses in order. */
static const char *
order(const struct wf_verbs_candidate *list, unsigned count, unsigned lane)
{
	static char text[512];
	struct wf_verbs_candidate copy[WF_VERBS_CANDIDATES_MAX];
	struct wf_rdma_addresses out;
	memcpy(copy, list, count * sizeof(copy[0]));
	wf_verbs_rails_order(copy, count, lane, &out);
	text[0] = '\0';
	for (unsigned i = 0; i < out.count; i++) {
		size_t used = strlen(text);
		(void)snprintf(text + used, sizeof(text) - used, "%s%s", i == 0 ? "" : " ",
			       out.at[i].text);
	}
	return text;
}

static void
lanes_go_round_devices_of_equal_distance(void **state)
{
	const struct wf_verbs_candidate list[] = {
		candidate("c", 1, "C", 10), candidate("a", 1, "A", 10), candidate("b", 1, "B", 10)};
	assert_string_equal(order(list, 3, 0), "A B C");
	assert_string_equal(order(list, 3, 1), "B C A");
	assert_string_equal(order(list, 3, 2), "C A B");
	assert_string_equal(order(list, 3, 3), "A B C");
}

static void
near_devices_come_first_and_far_ones_go_round_too(void **state)
{
	const struct wf_verbs_candidate list[] = {
		candidate("a", 1, "A", 21), candidate("b", 1, "B", 10), candidate("c", 1, "C", 21),
		candidate("d", 1, "D", 10)};
	assert_string_equal(order(list, 4, 0), "B D A C");
	assert_string_equal(order(list, 4, 1), "D B C A");
}

static void
named_devices_keep_their_order(void **state)
{
	struct wf_verbs_candidate list[] = {candidate("a", 1, "A", 10), candidate("b", 1, "B", 10)};
	list[0].place = 1;
	assert_string_equal(order(list, 2, 0), "B A");
	assert_string_equal(order(list, 2, 1), "A B");
}

static struct wf_verbs_candidate
fast(const char *device, uint32_t mbps, unsigned distance)
{
	struct wf_verbs_candidate c = candidate(device, 1, device, distance);
	c.mbps = mbps;
	c.active = true;
	return c;
}

static void
of_equally_near_devices_the_faster_ones_come_first(void **state)
{
	const struct wf_verbs_candidate list[] = {fast("a", 50000, 10), fast("b", 100000, 10),
						  fast("c", 100000, 10), fast("d", 200000, 21)};
	assert_string_equal(order(list, 4, 0), "b c a d");
	assert_string_equal(order(list, 4, 1), "c b a d");
}

static void
a_device_much_slower_than_the_fastest_stands_apart(void **state)
{
	struct wf_verbs_candidate list[] = {fast("a", 24000, 10), fast("b", 100000, 21),
					    fast("c", 25000, 10), candidate("d", 1, "d", 10)};
	struct wf_rdma_addresses out;
	wf_verbs_rails_order(list, 4, 0, &out);
	assert_int_equal(out.count, 3);
	assert_int_equal(out.slow_count, 1);
	assert_string_equal(out.at[0].text, "c");
	assert_string_equal(out.at[1].text, "d"); /* nobody knows how fast that is */
	assert_string_equal(out.at[2].text, "b");
	assert_string_equal(out.at[3].text, "a");
	assert_string_equal(out.slow, "a port 1 has 24000 Mb/s, the fastest one 100000");
}

/* Who is down holds up nobody, and makes nobody look slow. */
static void
only_active_ports_make_others_slow(void **state)
{
	struct wf_verbs_candidate list[] = {fast("a", 10000, 10), fast("b", 100000, 10)};
	struct wf_rdma_addresses out;
	list[1].active = false;
	wf_verbs_rails_order(list, 2, 0, &out);
	assert_int_equal(out.count, 2);
	assert_int_equal(out.slow_count, 0);
	assert_string_equal(out.slow, "");
}

static void
a_port_without_link_is_not_slow(void **state)
{
	struct wf_verbs_candidate list[] = {fast("a", 10000, 10), fast("b", 100000, 10)};
	struct wf_rdma_addresses out;
	list[0].active = false;
	wf_verbs_rails_order(list, 2, 0, &out);
	assert_int_equal(out.count, 2);
	assert_int_equal(out.slow_count, 0);
	assert_string_equal(out.slow, "");
}

static void
speeds_are_those_of_infiniband(void **state)
{
	assert_int_equal(wf_verbs_rails_mbps(1, 1), 2500);     /* SDR, 1 lane */
	assert_int_equal(wf_verbs_rails_mbps(4, 2), 40000);    /* QDR, 4 lanes */
	assert_int_equal(wf_verbs_rails_mbps(32, 2), 100000);  /* EDR */
	assert_int_equal(wf_verbs_rails_mbps(64, 16), 100000); /* HDR, 2 lanes */
	assert_int_equal(wf_verbs_rails_mbps(128, 2), 400000); /* NDR */
	assert_int_equal(wf_verbs_rails_mbps(0, 2), 0);
	assert_int_equal(wf_verbs_rails_mbps(32, 0), 0);
	assert_int_equal(wf_verbs_rails_mbps(1u << 31, 1u << 31), 0);
}

static void
ports_are_rails_of_their_own(void **state)
{
	const struct wf_verbs_candidate list[] = {candidate("a", 2, "A2", 10),
						  candidate("a", 1, "A1", 10),
						  candidate("b", 1, "B", 10)};
	assert_string_equal(order(list, 3, 0), "A1 A2 B");
}

static void
each_device_comes_once_before_any_comes_twice(void **state)
{
	const struct wf_verbs_candidate list[] = {
		candidate("a", 1, "A4", 10), candidate("b", 1, "B4", 10),
		candidate("a", 1, "A6", 10), candidate("b", 1, "B6", 10)};
	assert_string_equal(order(list, 4, 0), "A4 B4 A6 B6");
	assert_string_equal(order(list, 4, 1), "B4 A4 B6 A6");
}

static void
more_than_there_is_room_for_are_left_out(void **state)
{
	struct wf_verbs_candidate list[WF_VERBS_CANDIDATES_MAX];
	struct wf_rdma_addresses out;
	for (unsigned i = 0; i < WF_VERBS_CANDIDATES_MAX; i++) {
		char name[8];
		(void)snprintf(name, sizeof(name), "d%02u", i);
		list[i] = candidate(name, 1, name, 10);
	}
	wf_verbs_rails_order(list, WF_VERBS_CANDIDATES_MAX, 60, &out);
	assert_int_equal(out.count, WF_RDMA_ADDRESSES_MAX);
	assert_string_equal(out.at[0].text, "d60");
	assert_string_equal(out.at[4].text, "d00");
	assert_string_equal(order(list, 0, 3), "");
}

static void
what_is_said_of_a_lane_goes_before_the_users_words(void **state)
{
	char out[WF_RDMA_SETTINGS_BYTES];
	char many[WF_RDMA_SETTINGS_BYTES];
	assert_int_equal(wf_rdma_settings_for_lane(NULL, 3, -1, out), WEFT_OK);
	assert_string_equal(out, "lane=3");
	assert_int_equal(wf_rdma_settings_for_lane("retry=2,node=0", 1, 1, out), WEFT_OK);
	assert_string_equal(out, "lane=1,node=1,retry=2,node=0"); /* the last one counts */
	memset(many, 'x', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	assert_int_equal(wf_rdma_settings_for_lane(many, 1, 1, out), WEFT_INVALID);
}

static void
devices_that_are_not_there_are_not_up(void **state)
{
	char out[WF_RDMA_DEVICE_BYTES];
	assert_false(wf_rdma_is_up("no_such_device", 1));
	assert_int_equal(wf_rdma_device_for("", 0, out), WEFT_OK);
	assert_string_equal(out, "");
	assert_int_equal(wf_rdma_device_for("device=no_a+no_b", 3, out), WEFT_UNAVAILABLE);
	assert_string_equal(out, "no_b");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lanes_go_round_devices_of_equal_distance),
		cmocka_unit_test(near_devices_come_first_and_far_ones_go_round_too),
		cmocka_unit_test(named_devices_keep_their_order),
		cmocka_unit_test(of_equally_near_devices_the_faster_ones_come_first),
		cmocka_unit_test(a_device_much_slower_than_the_fastest_stands_apart),
		cmocka_unit_test(only_active_ports_make_others_slow),
		cmocka_unit_test(a_port_without_link_is_not_slow),
		cmocka_unit_test(speeds_are_those_of_infiniband),
		cmocka_unit_test(ports_are_rails_of_their_own),
		cmocka_unit_test(each_device_comes_once_before_any_comes_twice),
		cmocka_unit_test(more_than_there_is_room_for_are_left_out),
		cmocka_unit_test(what_is_said_of_a_lane_goes_before_the_users_words),
		cmocka_unit_test(devices_that_are_not_there_are_not_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
