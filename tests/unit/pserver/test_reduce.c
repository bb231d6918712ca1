/* SPDX-License-Identifier: Apache-2.0 */
/* Reduces at lane 0 of pserver 0, with trainers that are dropped and others that join in their
 * places: nothing is complete before everybody has done his part. Thread: the test's. */
#include "pserver/service.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define TRAINERS 3u

static const struct wf_lane_service service = {.name = "test", .peer_bytes = 8};

static int
set_up(void **state)
{
	static struct wf_lane lane;
	static int members; /* nobody looks into them here */
	memset(&lane, 0, sizeof(lane));
	assert_int_equal(wf_env_system_create(WF_LOG_ERROR, -1, &lane.env), WEFT_OK);
	lane.service = &service;
	lane.opts.members = (struct wf_members *)(void *)&members;
	assert_int_equal(wf_peers_open(&lane, TRAINERS), WEFT_OK);
	wf_peers_begin_all(&lane);
	*state = &lane;
	return 0;
}

static int
tear_down(void **state)
{
	struct wf_lane *lane = *state;
	wf_peers_close(lane);
	wf_env_system_destroy(lane->env);
	return 0;
}

/* The trainer's first reduce since it has joined, or its next one. */
static void
ask(struct wf_lane *lane, uint32_t trainer, uint64_t request, uint64_t step, double value)
{
	const struct wf_msg_reduce msg = {
		.request_id = request, .step = step, .count = 1, .value = {value}};
	struct wf_peer *peer = &lane->peers.all[trainer];
	assert_int_equal(wf_reduce_on_message(lane, peer, &msg), WEFT_OK);
}

static void
check_result(const struct wf_lane *lane, uint64_t id, uint64_t step, double value)
{
	assert_int_equal(lane->reduction.id, id);
	assert_int_equal(lane->reduction.step, step);
	assert_true(lane->reduction.value[0] >= value && lane->reduction.value[0] <= value);
	assert_int_equal(wf_reduce_since(lane), 0);
}

static void
a_reduce_is_complete_when_all_have_asked(void **state)
{
	struct wf_lane *lane = *state;
	ask(lane, 2, 1, 7, 4);
	ask(lane, 2, 1, 7, 4); /* again, after a reconnect */
	ask(lane, 0, 1, 9, 1);
	assert_int_equal(lane->reduction.id, 0);
	ask(lane, 1, 1, 8, 2);
	check_result(lane, 1, 9, 7);
}

static void
what_a_dropped_trainer_has_sent_counts(void **state)
{
	struct wf_lane *lane = *state;
	ask(lane, 2, 1, 9, 4);
	lane->peers.all[2].leaving.is_dropped = true;
	wf_reduce_try_complete(lane);
	ask(lane, 0, 1, 8, 1);
	assert_int_equal(lane->reduction.id, 0);
	ask(lane, 1, 1, 8, 2);
	check_result(lane, 1, 9, 7);
}

/* Trainer 2 has asked, is dropped, and another one takes its place before the others have asked. */
static void
who_joins_meanwhile_does_the_part_of_its_predecessor(void **state)
{
	struct wf_lane *lane = *state;
	struct wf_peer *peer = &lane->peers.all[2];
	ask(lane, 2, 1, 9, 4);
	peer->leaving.is_dropped = true;
	wf_reduce_enter(lane, peer);
	peer->leaving.is_dropped = false;
	assert_int_equal(wf_reduce_since(lane), 0); /* nobody waits for the others */
	ask(lane, 2, 1, 5, 8);
	ask(lane, 0, 1, 6, 1);
	assert_int_equal(lane->reduction.id, 0); /* not without trainer 1 */
	ask(lane, 1, 1, 6, 2);
	check_result(lane, 1, 6, 11);
	ask(lane, 0, 2, 7, 1);
	ask(lane, 1, 2, 7, 1);
	ask(lane, 2, 2, 7, 1);
	check_result(lane, 2, 7, 3);
}

static void
who_joins_later_counts_its_own_reduces(void **state)
{
	struct wf_lane *lane = *state;
	struct wf_peer *peer = &lane->peers.all[2];
	for (uint32_t t = 0; t < TRAINERS; t++) {
		ask(lane, t, 1, 3, 1);
	}
	peer->leaving.is_dropped = true;
	ask(lane, 0, 2, 4, 1);
	wf_reduce_enter(lane, peer);
	peer->leaving.is_dropped = false;
	assert_int_not_equal(wf_reduce_since(lane), 0); /* trainer 0 waits */
	ask(lane, 1, 2, 4, 1);
	assert_int_equal(lane->reduction.id, 1);
	ask(lane, 2, 1, 4, 1);
	check_result(lane, 2, 4, 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_reduce_is_complete_when_all_have_asked, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_a_dropped_trainer_has_sent_counts, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			who_joins_meanwhile_does_the_part_of_its_predecessor, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_joins_later_counts_its_own_reduces, set_up,
						tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
