/* SPDX-License-Identifier: Apache-2.0 */
/* The trainers of a job at a lane: their memory, which is touched when they begin, and who they
 * are. Thread: the test's. */
#include "pserver/service.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/failing_env.h"

struct own {
	char bytes[24];
};

static const struct wf_lane_service service = {.name = "test", .peer_bytes = sizeof(struct own)};

struct fixture {
	struct wf_env *system;
	struct wf_failing_env failing;
	struct wf_lane lane;
};

static int
set_up(void **state)
{
	static struct fixture f;
	memset(&f, 0, sizeof(f));
	assert_int_equal(wf_env_system_create(WF_LOG_ERROR, -1, &f.system), WEFT_OK);
	wf_failing_env_init(&f.failing, f.system);
	f.lane.env = &f.failing.env;
	f.lane.service = &service;
	*state = &f;
	return 0;
}

static int
tear_down(void **state)
{
	struct fixture *f = *state;
	wf_peers_close(&f->lane);
	assert_true(wf_failing_env_is_clean(&f->failing));
	assert_true(f->lane.peers.count == 0 && f->lane.order.count == 0);
	wf_env_system_destroy(f->system);
	return 0;
}

static void
a_trainer_has_its_number_and_its_part_of_the_service(void **state)
{
	struct fixture *f = *state;
	struct wf_lane *lane = &f->lane;
	assert_int_equal(wf_peers_open(lane, 3), WEFT_OK);
	assert_true(lane->peers.count == 3 && lane->order.count == 3);
	assert_ptr_equal(lane->order.first, &lane->peers.all[0].member);
	assert_int_equal(lane->order.stride, sizeof(struct wf_peer));
	struct wf_peer *peer = wf_peers_begin(lane, 2);
	assert_ptr_equal(peer, &lane->peers.all[2]);
	assert_true(peer->lane == lane && peer->trainer == 2 && peer->member.step_next == 1);
	assert_ptr_equal(peer->own, (struct own *)lane->peers.own + 2);
	assert_null(lane->peers.all[1].lane); /* not touched */
	peer->member.step_next = 7;
	wf_peers_begin_all(lane);
	assert_int_equal(peer->member.step_next, 7); /* it had begun */
	for (uint32_t t = 0; t < 3; t++) {
		assert_ptr_equal(lane->peers.all[t].lane, lane);
		assert_int_equal(lane->peers.all[t].trainer, t);
	}
}

static void
each_lack_of_memory_leaves_no_trainers(void **state)
{
	struct fixture *f = *state;
	uint64_t nth = 0;
	do {
		wf_failing_env_fail(&f->failing, ++nth, false);
		enum weft_status st = wf_peers_open(&f->lane, 3);
		assert_int_equal(st, f->failing.failed > 0 ? WEFT_NOMEM : WEFT_OK);
		if (st != WEFT_OK) {
			assert_int_equal(f->lane.peers.count, 0);
			assert_true(wf_failing_env_is_clean(&f->failing));
		}
	} while (f->failing.failed > 0);
	assert_int_equal(nth, 3); /* two arrays */
}

static void
who_loads_and_whose_a_held_connection_is_are_found(void **state)
{
	struct fixture *f = *state;
	struct wf_lane *lane = &f->lane;
	struct wf_conn old = {0}, newer = {0};
	assert_int_equal(wf_peers_open(lane, 3), WEFT_OK);
	wf_peers_begin_all(lane);
	assert_false(wf_peers_is_loading(&lane->peers));
	lane->peers.all[2].loading.is_due = true;
	assert_true(wf_peers_is_loading(&lane->peers));
	lane->peers.all[1].conn = &old;
	lane->peers.all[1].successor.conn = &newer;
	assert_ptr_equal(wf_peers_find_successor(&lane->peers, &newer), &lane->peers.all[1]);
	assert_null(wf_peers_find_successor(&lane->peers, &old));
	lane->peers.all[1].conn = NULL;
	lane->peers.all[1].successor.conn = NULL;
}

static bool
is_odd(const struct wf_lane *lane, const struct wf_peer *peer)
{
	(void)lane;
	return peer->trainer % 2 == 1;
}

static void
a_list_of_trainers_ends_with_how_many_more_there_are(void **state)
{
	struct fixture *f = *state;
	struct wf_lane *lane = &f->lane;
	char text[40];
	assert_int_equal(wf_peers_open(lane, 100), WEFT_OK);
	wf_peers_begin_all(lane);
	lane->peers.count = 1;
	wf_peers_list(lane, is_odd, text, sizeof(text));
	assert_string_equal(text, "");
	lane->peers.count = 4;
	wf_peers_list(lane, is_odd, text, sizeof(text));
	assert_string_equal(text, "1, 3");
	lane->peers.count = 100;
	wf_peers_list(lane, is_odd, text, sizeof(text));
	assert_string_equal(text, "1, 3, 5, 7 and 46 more");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_trainer_has_its_number_and_its_part_of_the_service, set_up, tear_down),
		cmocka_unit_test_setup_teardown(each_lack_of_memory_leaves_no_trainers, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(who_loads_and_whose_a_held_connection_is_are_found,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_list_of_trainers_ends_with_how_many_more_there_are, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
