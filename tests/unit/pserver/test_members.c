/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of members and membership: what lanes have asked for is passed on once, and not any more
 * when it is ordered; what lane 0 of pserver 0 decides when several trainers are lost, leave and
 * join at a time, or when another pserver repeats itself or lies. Thread: the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "pserver/members.h"
#include "pserver/membership.h"
#include "pserver/service.h"
#include "tests/support/failing_env.h"

enum { LANES = 2, PSERVERS = 2, TRAINERS = 4 };

/* In place of the log's and the lane's. */
static char logged[4096];
static char failure[512];

void __wrap_wf_log(struct wf_env *env, enum weft_log_level level, const char *format, ...);
void __wrap_wf_lane_fail(struct wf_lane *lane, enum weft_status status, uint64_t step,
			 const char *format, ...);

__attribute__((format(printf, 3, 4))) void
__wrap_wf_log(struct wf_env *env, enum weft_log_level level, const char *format, ...)
{
	const size_t used = strlen(logged);
	va_list args;
	(void)env;
	(void)level;
	va_start(args, format);
	(void)vsnprintf(logged + used, sizeof(logged) - used, format, args);
	va_end(args);
}

__attribute__((format(printf, 4, 5))) void
__wrap_wf_lane_fail(struct wf_lane *lane, enum weft_status status, uint64_t step,
		    const char *format, ...)
{
	va_list args;
	(void)step;
	va_start(args, format);
	(void)vsnprintf(failure, sizeof(failure), format, args);
	va_end(args);
	assert_int_not_equal(status, WEFT_OK);
	lane->state = WF_LANE_FAILED;
}

static void
assert_logged(const char *text)
{
	if (strstr(logged, text) == NULL) {
		fail_msg("\"%s\" is not in \"%s\"", text, logged);
	}
	logged[0] = '\0';
}

static struct wf_failing_env failing;
static struct wf_members *members;
static struct wf_membership *membership;
static struct wf_lane lane;
static struct wf_peer peer[TRAINERS];

static void
begin(uint32_t min_trainers)
{
	logged[0] = failure[0] = '\0';
	assert_int_equal(wf_members_open(&failing.env, LANES, min_trainers, &members), WEFT_OK);
	assert_int_equal(wf_members_begin(members, TRAINERS), WEFT_OK);
	for (uint32_t i = 0; i < LANES; i++) {
		wf_members_seat(members, i, true);
	}
	memset(peer, 0, sizeof(peer));
	for (uint32_t i = 0; i < TRAINERS; i++) {
		peer[i].member.out = true; /* nobody asks for its place in its data */
	}
	lane = (struct wf_lane){
		.env = &failing.env,
		.opts = {.members = members, .connect_timeout_ns = WF_NS_PER_S},
		.state = WF_LANE_RUNNING,
		.admission.first.pserver_count = PSERVERS,
		.peers = {.count = TRAINERS, .all = peer},
	};
	/* In step 8. */
	lane.order.sum.step = 8;
	lane.job.has_steps = true;
	assert_int_equal(wf_membership_open(&lane, &membership), WEFT_OK);
}

static void
end(void)
{
	wf_membership_close(membership);
	wf_members_close(members);
	assert_true(wf_failing_env_is_clean(&failing));
}

static struct wf_member_news
news_of(enum wf_member_wish what, uint32_t trainer, uint64_t incarnation)
{
	struct wf_member_news news = {.what = what, .trainer = trainer, .incarnation = incarnation};
	(void)snprintf(news.reason, sizeof(news.reason), "trainer %u was killed", trainer);
	return news;
}

static void
ask(enum wf_member_wish what, uint32_t trainer, uint64_t incarnation)
{
	const struct wf_member_news news = news_of(what, trainer, incarnation);
	assert_true(wf_members_ask(members, &news));
}

/* The lanes here answer the order, in step 8 with all of step 7 here; so does pserver 1. */
static void
all_answer(void)
{
	struct wf_registry_member order;
	const uint64_t number = wf_members_read(members, &order);
	const struct wf_member_stand stand = {
		.applied = 7, .received = 7, .total = 70, .shared = true, .ready = true};
	const struct wf_registry_stands stands = {.change = order.change,
						  .applied = 7,
						  .received = 7,
						  .total = 70,
						  .flags = WF_REGISTRY_STANDS_READY |
							   WF_REGISTRY_STANDS_SHARED};
	const bool has_border = order.border != 0;
	for (uint32_t i = 0; i < LANES; i++) {
		wf_members_answer(members, i, number, has_border ? NULL : &stand);
	}
	if (has_border) {
		const struct wf_registry_settled settled = {.change = order.change};
		assert_int_equal(wf_membership_on_settled(membership, 1, &settled), WEFT_OK);
	} else {
		assert_int_equal(wf_membership_on_stands(membership, 1, &stands), WEFT_OK);
	}
	(void)wf_membership_look(membership, 1);
}

/* The change that is next, from its beginning to its end. */
static void
change(void)
{
	(void)wf_membership_look(membership, 1);
	all_answer();
	all_answer();
}

static const struct wf_registry_member *
order_of(uint32_t pserver)
{
	return wf_membership_order(membership, pserver);
}

static enum weft_status
comes_from(uint32_t pserver, uint32_t trainer, uint64_t incarnation)
{
	const struct wf_registry_comes msg = {.incarnation = incarnation, .trainer = trainer};
	return wf_membership_on_comes(membership, pserver, &msg);
}

/* ---- members ---- */

static void
news_are_passed_on_once_with_each_stamp(void **state)
{
	struct wf_member_news news;
	(void)state;
	begin(1);
	ask(WF_MEMBER_LOST, 2, 20);
	ask(WF_MEMBER_LOST, 2, 20); /* another lane */
	assert_true(wf_members_next_asked(members, 1, &news));
	assert_int_equal(news.trainer, 2);
	assert_false(wf_members_next_asked(members, 1, &news));
	wf_members_ask_again(members, 2);
	assert_true(wf_members_next_asked(members, 1, &news));
	assert_true(wf_members_next_asked(members, 7, &news)); /* another connection */
	assert_false(wf_members_next_asked(members, 7, &news));
	end();
}

/* Otherwise a pserver would name the process again on its next connection to the registrar, when
 * that process is gone, and the place empty again or another one's. */
static void
what_is_ordered_is_not_asked_for_any_more(void **state)
{
	struct wf_registry_member order = {
		.change = 1, .incarnation = 21, .trainer = 2, .flags = WF_REGISTRY_MEMBER_JOINS};
	struct wf_member_news news;
	(void)state;
	begin(1);
	ask(WF_MEMBER_COMES, 2, 21);
	ask(WF_MEMBER_LOST, 3, 30);
	wf_members_order(members, &order);
	assert_true(wf_members_next_asked(members, 1, &news)); /* it has no border yet */
	assert_true(wf_members_next_asked(members, 1, &news));
	order.border = 9;
	wf_members_order(members, &order);
	ask(WF_MEMBER_COMES, 2, 21); /* a lane that is not there yet */
	assert_true(wf_members_next_asked(members, 2, &news));
	assert_int_equal(news.trainer, 3);
	assert_false(wf_members_next_asked(members, 2, &news));

	ask(WF_MEMBER_LOST, 2, 21); /* another wish, and then another process */
	assert_true(wf_members_next_asked(members, 2, &news));
	ask(WF_MEMBER_COMES, 2, 22);
	assert_true(wf_members_next_asked(members, 2, &news));
	assert_int_equal(news.incarnation, 22);
	end();
}

/* Other changes may be ordered meanwhile. */
static void
who_has_its_border_does_not_ask_for_it(void **state)
{
	const struct wf_hello hello = {.incarnation = 21};
	struct wf_member_news news;
	(void)state;
	begin(1);
	peer[2] = (struct wf_peer){.trainer = 2, .joining = {.ordered = true, .incarnation = 21}};
	wf_members_on_newcomer(&lane, &peer[2], &hello);
	assert_false(wf_members_next_asked(members, 1, &news));
	peer[2].joining.ordered = false;
	wf_members_on_newcomer(&lane, &peer[2], &hello);
	assert_true(wf_members_next_asked(members, 1, &news));
	end();
}

/* A lane on which nobody has begun the step of its border, because another trainer computes. Its
 * predecessor had left, and would be let in to fetch the acknowledgement. */
static void
a_joiner_that_is_lost_before_a_lane_has_it_is_forgotten(void **state)
{
	const struct wf_registry_member lost = {
		.change = 3, .incarnation = 21, .trainer = 2, .border = 9, .applied = 8};
	const struct wf_hello again = {.incarnation = 21, .epoch = 1};
	struct wf_registry_stands unused;
	(void)state;
	begin(1);
	lane.job.is_ready = lane.job.is_here = true;
	lane.members.joining_count = 1;
	peer[2] = (struct wf_peer){
		.lane = &lane,
		.trainer = 2,
		.state = WF_PEER_GONE,
		.hello.incarnation = 20,
		.leaving = {.ordered = true,
			    .is_dropped = true,
			    .has_left = true,
			    .is_willing = true,
			    .border = 8},
		.joining = {.ordered = true, .incarnation = 21, .border = 9},
	};
	wf_members_order(members, &lost);
	wf_members_look(&lane, 1);
	wf_members_answer(members, 1, wf_members_order_number(members), NULL);
	assert_true(wf_members_answered(members, &unused));
	assert_false(peer[2].joining.ordered);
	assert_int_equal(lane.members.joining_count, 0);
	assert_int_equal(lane.members.leaving_count, 0);
	assert_true(peer[2].leaving.is_dropped); /* its place is empty as before, and not for it */
	assert_int_equal(wf_members_check(&lane, &peer[2], &again, "trainer 2"), WEFT_LOST);
	assert_true(peer[2].farewell.is_over); /* nor is its predecessor waited for any more */
	end();
}

/* A lane reports of the process that it knows in the place, and says so if the order names another
 * one. */
static void
a_lane_reports_of_the_process_that_it_knows(void **state)
{
	struct wf_registry_member order = {.change = 1, .incarnation = 20, .trainer = 2};
	struct wf_registry_stands stands;
	(void)state;
	begin(1);
	lane.job.is_ready = lane.job.is_here = true;
	lane.job.has_steps = false;
	peer[2] = (struct wf_peer){
		.lane = &lane, .trainer = 2, .state = WF_PEER_UP, .hello.incarnation = 20};
	wf_members_seat(members, 1, false);
	wf_members_order(members, &order);
	wf_members_look(&lane, 1);
	assert_true(wf_members_answered(members, &stands));
	assert_int_equal(stands.flags & WF_REGISTRY_STANDS_READY, WF_REGISTRY_STANDS_READY);
	order.change = 2;
	order.incarnation = 99;
	wf_members_order(members, &order);
	wf_members_look(&lane, 2);
	assert_true(wf_members_answered(members, &stands));
	assert_int_equal(stands.flags & WF_REGISTRY_STANDS_READY, 0);
	end();
}

static void
goes_on(struct wf_lane *held)
{
	assert_false(wf_members_hold(held));
}

static void
drops(struct wf_lane *from, struct wf_peer *dropped)
{
	(void)from;
	(void)dropped;
}

/* As a lane of tables may, whose rows are still being copied for a snapshot. */
static void
an_order_is_answered_when_the_step_of_who_was_alone_is_taken(void **state)
{
	static const struct wf_lane_service service = {.go_on = goes_on, .drop = drops};
	const struct wf_registry_member order = {.change = 1,
						 .incarnation = 20,
						 .trainer = 2,
						 .border = 9,
						 .applied = 9,
						 .flags = WF_REGISTRY_MEMBER_HALF |
							  WF_REGISTRY_MEMBER_ALONE};
	struct wf_registry_stands unused;
	(void)state;
	begin(1);
	lane.service = &service;
	lane.job.is_ready = lane.job.is_here = lane.job.has_steps = true;
	lane.order.sum.step = 9;
	for (uint32_t i = 0; i < TRAINERS; i++) {
		peer[i].lane = &lane;
		peer[i].trainer = i;
		peer[i].state = WF_PEER_UP;
	}
	peer[2].hello.incarnation = 20;
	for (uint32_t i = 1; i < LANES; i++) {
		wf_members_seat(members, i, false); /* the first lane is the only one */
	}
	wf_members_order(members, &order);
	wf_members_look(&lane, 1);
	assert_true(peer[2].leaving.is_dropped);
	assert_false(wf_members_answered(members, &unused));
	lane.order.sum.step = 10;
	wf_members_look(&lane, 2);
	assert_true(wf_members_answered(members, &unused));
	end();
}

/* Trainers that count their own steps have made 8 of them and come to the end of their pass, and
 * trainer 2 is to join; the lane has reported them, and lacks the border. */
static void
join_at_the_end_of_a_pass(struct wf_registry_member *order)
{
	static const struct wf_lane_service service = {.go_on = goes_on};
	*order = (struct wf_registry_member){
		.change = 1, .incarnation = 21, .trainer = 2, .flags = WF_REGISTRY_MEMBER_JOINS};
	begin(1);
	lane.service = &service;
	lane.job.is_ready = lane.job.is_here = true;
	lane.order.own_steps = true;
	lane.order.highest = 8;
	for (uint32_t i = 0; i < TRAINERS; i++) {
		peer[i].lane = &lane;
		peer[i].trainer = i;
		peer[i].state = i == 2 ? WF_PEER_GONE : WF_PEER_UP;
		peer[i].reduce.id = i == 2 ? 0 : 1;
	}
	peer[2].leaving = (struct wf_peer_leaving){.ordered = true, .is_dropped = true};
	wf_members_order(members, order);
	wf_members_look(&lane, 1);
	order->border = 9;
}

/* They go on between what a lane reports of them and the border that follows from it. */
static void
no_reduce_ends_before_the_border_of_a_joiner_is_known(void **state)
{
	struct wf_registry_member order;
	(void)state;
	join_at_the_end_of_a_pass(&order);
	lane.reduction.since_ns = 1;
	wf_reduce_try_complete(&lane);
	assert_int_equal(lane.reduction.id, 0);
	wf_members_order(members, &order);
	wf_members_look(&lane, 2); /* nobody has begun step 9: the reduce comes before it */
	assert_int_equal(lane.reduction.id, 1);
	assert_true(peer[2].joining.ordered);
	end();
}

static void
no_reduce_ends_before_who_joins_in_its_pass_is_taken_in(void **state)
{
	struct wf_registry_member order;
	(void)state;
	join_at_the_end_of_a_pass(&order);
	wf_members_order(members, &order);
	wf_members_look(&lane, 2);
	assert_true(peer[2].joining.ordered);
	lane.order.highest = 9; /* somebody has begun it since */
	lane.reduction.since_ns = 1;
	wf_reduce_try_complete(&lane);
	assert_int_equal(lane.reduction.id, 0);
	wf_members_end_join(&lane, &peer[2]); /* it was lost */
	assert_int_equal(lane.reduction.id, 1);
	end();
}

/* ---- membership ---- */

static void
those_who_are_lost_meanwhile_do_not_go_on(void **state)
{
	(void)state;
	begin(1);
	ask(WF_MEMBER_LOST, 1, 10);
	ask(WF_MEMBER_LOST, 3, 30);
	change();
	assert_logged("trainer 1 is dropped from step 8 on, and 2 of 4 trainers go on");
	change();
	assert_logged("trainer 3 is dropped from step 8 on, and 2 of 4 trainers go on");

	ask(WF_MEMBER_COMES, 3, 31);
	(void)wf_membership_look(membership, 1);
	ask(WF_MEMBER_LOST, 2, 20);
	all_answer();
	assert_logged("trainer 3 joins in step 8, and 2 of 4 trainers go on");
	all_answer();
	change();
	assert_logged("trainer 2 is dropped from step 8 on, and 2 of 4 trainers go on");
	ask(WF_MEMBER_COMES, 1, 11);
	change();
	assert_logged("trainer 1 joins in step 8, and 3 of 4 trainers go on");
	end();
}

static void
a_job_that_keeps_too_few_ends_at_once(void **state)
{
	(void)state;
	begin(3);
	ask(WF_MEMBER_LOST, 0, 10);
	ask(WF_MEMBER_LEAVES, 3, 30);
	(void)wf_membership_look(membership, 1);
	assert_string_equal(failure, "trainer 0 was killed; 2 of 4 trainers are left, and "
				     "--min_trainers is 3");
	end();
}

/* A pserver says so again on each new connection. */
static void
a_process_that_has_had_its_place_does_not_come_again(void **state)
{
	(void)state;
	begin(1);
	ask(WF_MEMBER_LOST, 2, 20);
	change();
	assert_int_equal(comes_from(1, 2, 20), WEFT_OK);
	(void)wf_membership_look(membership, 1);
	assert_null(order_of(1));
	assert_int_equal(comes_from(1, 2, 21), WEFT_OK);
	change();
	assert_logged("trainer 2 joins in step 8, and 4 of 4");
	assert_int_equal(comes_from(1, 2, 21), WEFT_OK);
	ask(WF_MEMBER_LOST, 2, 21);
	change();
	assert_int_equal(comes_from(1, 2, 21), WEFT_OK);
	(void)wf_membership_look(membership, 1);
	assert_null(order_of(1));
	end();
}

/* From a lane that began after they were settled, and knows nothing of them. */
static void
news_of_who_is_out_end_the_job(void **state)
{
	const struct wf_registry_lost late = {
		.incarnation = 20, .trainer = 2, .reason = "trainer 2 was lost"};
	(void)state;
	for (uint32_t is_replaced = 0; is_replaced < 2; is_replaced++) {
		begin(1);
		ask(WF_MEMBER_LOST, 2, 20);
		change();
		if (is_replaced != 0) {
			ask(WF_MEMBER_COMES, 2, 21);
			change();
		}
		assert_string_equal(failure, "");
		assert_int_equal(wf_membership_on_lost(membership, 1, &late), WEFT_OK);
		assert_string_equal(failure,
				    "trainer 2 was lost; the job had not begun on all lanes");
		end();
	}
}

/* Another lane may have dropped it, and have settled that, since this one has finished. */
static void
a_lane_that_has_finished_asks_for_nothing(void **state)
{
	struct wf_member_news news;
	(void)state;
	begin(1);
	lane.job.is_ready = true;
	peer[2] = (struct wf_peer){.trainer = 2, .state = WF_PEER_GONE, .hello.incarnation = 20};
	lane.state = WF_LANE_FINISHED;
	assert_true(wf_members_lose_aborted(&lane, &peer[2], WEFT_LOST, "trainer 2", "lane 1"));
	assert_false(wf_members_next_asked(members, 1, &news));
	lane.state = WF_LANE_RUNNING;
	assert_true(wf_members_lose_aborted(&lane, &peer[2], WEFT_LOST, "trainer 2", "lane 1"));
	assert_true(wf_members_next_asked(members, 1, &news));
	assert_string_equal(news.reason, "trainer 2 has given up: lane 1");
	end();
}

static void
what_another_pserver_says_of_trainers_and_changes_is_checked(void **state)
{
	const struct wf_registry_lost lost = {.incarnation = 1, .trainer = TRAINERS};
	struct wf_registry_stands stands = {.change = 1, .applied = 99};
	const struct wf_registry_settled settled = {.change = 1};
	(void)state;
	begin(1);
	assert_int_equal(wf_membership_on_lost(membership, 1, &lost), WEFT_PROTOCOL);
	assert_int_equal(comes_from(1, TRAINERS, 1), WEFT_PROTOCOL);
	assert_int_equal(wf_membership_on_stands(membership, 1, &stands), WEFT_PROTOCOL);
	assert_int_equal(wf_membership_on_settled(membership, 1, &settled), WEFT_PROTOCOL);

	/* An answer to an older change, and one to the order that comes next, do not count. */
	ask(WF_MEMBER_LOST, 2, 20);
	change();
	ask(WF_MEMBER_LOST, 3, 30);
	(void)wf_membership_look(membership, 1);
	assert_int_equal(wf_membership_on_stands(membership, 1, &stands), WEFT_OK);
	assert_non_null(order_of(1));
	stands.change = 2;
	assert_int_equal(
		wf_membership_on_settled(membership, 1, &(struct wf_registry_settled){.change = 2}),
		WEFT_OK);
	assert_non_null(order_of(1));
	assert_int_equal(order_of(1)->border, 0);
	all_answer();
	assert_int_equal(wf_membership_on_settled(membership, 1, &settled), WEFT_OK);
	assert_non_null(order_of(1));
	assert_int_equal(order_of(1)->border, 8);
	all_answer();
	assert_null(order_of(1));
	end();
}

static void
nobody_joins_before_a_step_is_applied(void **state)
{
	(void)state;
	begin(1);
	ask(WF_MEMBER_LOST, 2, 20);
	change();
	ask(WF_MEMBER_COMES, 2, 21);
	lane.order.sum.step = 1;
	(void)wf_membership_look(membership, 1);
	assert_null(order_of(1));
	lane.order.sum.step = 2;
	(void)wf_membership_look(membership, 1);
	assert_non_null(order_of(1));
	end();
}

static void
a_pserver_that_does_not_answer_is_named(void **state)
{
	(void)state;
	begin(1);
	ask(WF_MEMBER_LOST, 2, 20);
	(void)wf_membership_look(membership, 1);
	(void)wf_membership_look(membership, WF_NS_PER_S);
	assert_string_equal(failure, "");
	(void)wf_membership_look(membership, WF_NS_PER_S + 1);
	assert_non_null(strstr(failure, "trainer 2 was lost, and pserver 0 has not said"));
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(news_are_passed_on_once_with_each_stamp),
		cmocka_unit_test(what_is_ordered_is_not_asked_for_any_more),
		cmocka_unit_test(who_has_its_border_does_not_ask_for_it),
		cmocka_unit_test(a_joiner_that_is_lost_before_a_lane_has_it_is_forgotten),
		cmocka_unit_test(a_lane_reports_of_the_process_that_it_knows),
		cmocka_unit_test(an_order_is_answered_when_the_step_of_who_was_alone_is_taken),
		cmocka_unit_test(no_reduce_ends_before_the_border_of_a_joiner_is_known),
		cmocka_unit_test(no_reduce_ends_before_who_joins_in_its_pass_is_taken_in),
		cmocka_unit_test(those_who_are_lost_meanwhile_do_not_go_on),
		cmocka_unit_test(a_job_that_keeps_too_few_ends_at_once),
		cmocka_unit_test(a_process_that_has_had_its_place_does_not_come_again),
		cmocka_unit_test(news_of_who_is_out_end_the_job),
		cmocka_unit_test(a_lane_that_has_finished_asks_for_nothing),
		cmocka_unit_test(what_another_pserver_says_of_trainers_and_changes_is_checked),
		cmocka_unit_test(nobody_joins_before_a_step_is_applied),
		cmocka_unit_test(a_pserver_that_does_not_answer_is_named),
	};
	wf_failing_env_init(&failing, wf_env_memory());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
