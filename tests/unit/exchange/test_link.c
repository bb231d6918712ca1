/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of link: a link of one unit over a scripted transport, under a clock that the test
 * moves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchange/link.h"
#include "tests/support/hello.h"
#include "transport/ops.h"

#define INCARNATION 77u

/* ---- the world ---- */

static uint64_t clock_ns;
static uint64_t
read_clock(struct wf_env *env)
{
	return clock_ns;
}

static uint64_t
draw(struct wf_env *env)
{
	return 0;
}

static void *
alloc(struct wf_env *env, size_t bytes, size_t align)
{
	return calloc(1, bytes);
}

static void
release(struct wf_env *env, void *memory, size_t bytes)
{
	free(memory);
}

static const struct wf_env_ops env_ops = {
	.now_ns = read_clock, .random = draw, .alloc = alloc, .free = release};
static struct wf_env env = {&env_ops};

static unsigned connects;
static struct wf_hello said; /* the last hello */
static unsigned disconnects;
static enum wf_disconnect disconnected;
static bool is_full; /* the transport takes nothing */
static unsigned sent;
static uint8_t sent_type[16]; /* control messages */
static struct wf_msg_steps have;

static struct wf_transport transport;
static const struct wf_transport_ops transport_ops;
static struct wf_conn conn;

static enum weft_status
fake_connect(struct wf_transport *t, const struct wf_host *to, const void *hello,
	     size_t hello_bytes, void *user, struct wf_conn **out)
{
	assert_int_equal(wf_hello_decode(hello, hello_bytes, &said), WEFT_OK);
	connects++;
	conn = (struct wf_conn){
		.transport = t, .user = user, .ops = &transport_ops, .carrier = &conn};
	*out = &conn;
	return WEFT_OK;
}

static void
fake_disconnect(struct wf_conn *c, enum wf_disconnect how)
{
	disconnects++;
	disconnected = how;
}

static enum weft_status
fake_grant(struct wf_conn *c, const struct wf_grant *grant, struct wf_grant_key *out)
{
	memset(out->bytes, 5, sizeof(out->bytes));
	return WEFT_OK;
}

static enum weft_status
fake_post(struct wf_conn *c, const struct wf_op *op, unsigned op_count, unsigned *taken)
{
	*taken = is_full ? 0 : op_count;
	if (is_full) {
		return WEFT_AGAIN;
	}
	assert_int_equal(op->head->service, WF_SERVICE_CONTROL);
	struct wf_head head = *op->head;
	head.body_bytes = op->body_bytes;
	if (head.type == WF_MSG_HAVE) {
		assert_int_equal(wf_msg_have_decode(&head, op->body, &have), WEFT_OK);
	}
	sent_type[sent++ % 16] = head.type;
	return WEFT_OK;
}

static const struct wf_transport_ops transport_ops = {
	.name = "fake",
	.connect = fake_connect,
	.disconnect = fake_disconnect,
	.path = wf_path_alone,
	.grant = fake_grant,
	.post = fake_post,
};

/* ---- the end ---- */

static enum weft_status failed_with;
static char failed_text[WF_ERROR_BYTES];
static unsigned ready_count, again_count;

static bool
has_failed(const struct wf_link_end *end)
{
	return failed_with != WEFT_OK;
}

static void
note_failure(struct wf_link_end *end, enum weft_status status, const char *text)
{
	failed_with = status;
	(void)snprintf(failed_text, sizeof(failed_text), "%s", text);
}

static void
note_line(struct wf_link_end *end, enum weft_log_level level, const char *text)
{
}

static uint64_t
last_step(const struct wf_link_end *end)
{
	return 9;
}

static void
note_ready(struct wf_link *link, bool again)
{
	ready_count++;
	again_count += again ? 1 : 0;
}

static enum weft_status
refuse_control(struct wf_link *link, const struct wf_event *event)
{
	return wf_fail(WEFT_PROTOCOL, "control message of type %u", event->msg.head->type);
}

static const struct wf_link_end_ops end_ops = {
	.failed = has_failed,
	.fail = note_failure,
	.log = note_line,
	.step = last_step,
	.ready = note_ready,
	.control = refuse_control,
};

/* ---- the payload: one unit ---- */

static uint64_t resumed_step;
static unsigned forgets;
static uint32_t lodger; /* keeps a slot */

static enum weft_status
resume(struct wf_link *link, const struct wf_msg_steps *msg)
{
	resumed_step = msg->step_of[0];
	return WEFT_OK;
}

static uint64_t
answered(const struct wf_link *link, uint32_t unit)
{
	return 40 + unit;
}

static enum weft_status
recv_own(struct wf_link *link, const struct wf_event *event)
{
	return WEFT_OK;
}

static void
forget(struct wf_link *link)
{
	forgets++;
}

static const struct wf_link_ops ops = {
	.service = WF_SERVICE_SPARSE,
	.lane_name = "lane",
	.resume = resume,
	.answered = answered,
	.msg = recv_own,
	.forget_path = forget,
};

static const struct wf_answer_place place = {.region = 1, .bytes = 64};
static struct wf_turn turn;
static struct wf_link_end end;
static struct wf_link link;

static int
set_up(void **state)
{
	clock_ns = WF_NS_PER_S;
	connects = disconnects = sent = ready_count = again_count = forgets = 0;
	is_full = false;
	failed_with = WEFT_OK;
	failed_text[0] = '\0';
	resumed_step = 0;
	transport = (struct wf_transport){.ops = &transport_ops, .env = &env, .blob_max = 1024};
	turn = (struct wf_turn){.env = &env, .transport = &transport};
	end = (struct wf_link_end){
		.ops = &end_ops,
		.env = &env,
		.turn = &turn,
		.name = "trainer 0",
		.hello = hello_in_order(),
		.connect_timeout_ns = 10 * WF_NS_PER_S,
		.reconnect_timeout_ns = 5 * WF_NS_PER_S,
		.started_ns = clock_ns,
	};
	link = (struct wf_link){
		.content = {.unit_count = 1, .place = &place, .place_count = 1},
		.host = {.name = "127.0.0.1", .port = 7164},
	};
	wf_link_init(&link, &end, &ops);
	return 0;
}

static int
tear_down(void **state)
{
	wf_send_window_close(&link.window, &env);
	return 0;
}

/* ---- what comes ---- */

static void
up(uint32_t flags, uint64_t incarnation)
{
	const struct wf_welcome welcome = {
		.version = WF_WIRE_VERSION,
		.flags = flags,
		.incarnation = incarnation,
		.slot_count = 2,
		.msg_bytes_max = WF_MSG_BODY_MAX,
		.put_bytes_max = 64,
	};
	uint8_t blob[WF_HELLO_MAX];
	const struct wf_event event = {
		.kind = WF_EVENT_UP,
		.conn = &conn,
		.up = {.blob = blob, .blob_bytes = wf_welcome_encode(&welcome, blob)},
	};
	wf_link_up(&link, &event);
}

static void
down(enum weft_status status)
{
	const struct wf_event event = {
		.kind = WF_EVENT_DOWN, .conn = &conn, .down = {.status = status, .why = "a test"}};
	wf_link_down(&link, &event);
}

static void
refuse(enum weft_status refusal, uint32_t flags)
{
	struct wf_welcome verdict = {.refusal = (uint16_t)refusal, .flags = flags};
	uint8_t blob[WF_HELLO_MAX];
	(void)snprintf(verdict.reason, sizeof(verdict.reason), "not today");
	const struct wf_event event = {
		.kind = WF_EVENT_DOWN,
		.conn = &conn,
		.down = {.status = WEFT_REFUSED,
			 .why = "a test",
			 .blob = blob,
			 .blob_bytes = wf_welcome_encode(&verdict, blob)},
	};
	wf_link_down(&link, &event);
}

static enum weft_status
hear(struct wf_msg *msg)
{
	const struct wf_event event = {.kind = WF_EVENT_MSG,
				       .conn = &conn,
				       .msg = {.head = &msg->head, .body = msg->body}};
	return wf_link_msg(&link, &event);
}

static enum weft_status
hear_grant(void)
{
	const struct wf_msg_grant grant = {
		.kind = WF_GRANT_WIRE_SLOTS, .slot_count = 2, .bytes = 64};
	static struct wf_msg msg;
	wf_msg_grant_encode(&grant, &msg);
	return hear(&msg);
}

static enum weft_status
hear_resume(uint64_t step_of)
{
	const struct wf_msg_steps steps = {.last = true, .count = 1, .step_of = {step_of}};
	static struct wf_msg msg;
	wf_msg_resume_encode(&steps, &msg);
	return hear(&msg);
}

static enum weft_status
hear_goodbye(bool ack)
{
	const struct wf_msg_goodbye goodbye = {.ack = ack};
	static struct wf_msg msg;
	wf_msg_goodbye_encode(&goodbye, &msg);
	return hear(&msg);
}

static void
assert_refused(enum weft_status st, const char *text)
{
	assert_int_equal(st, WEFT_PROTOCOL);
	assert_non_null(strstr(weft_last_error(), text));
}

static void
become_ready(void)
{
	wf_link_tick(&link, clock_ns);
	up(0, INCARNATION);
	assert_int_equal(hear_grant(), WEFT_OK);
	assert_int_equal(hear_resume(6), WEFT_OK);
	assert_int_equal(link.state, WF_LINK_READY);
}

/* ---- tests ---- */

static void
a_link_is_ready_when_the_lane_has_granted_and_resumed(void **state)
{
	wf_link_tick(&link, clock_ns);
	assert_int_equal(link.state, WF_LINK_CONNECTING);
	assert_int_equal(said.path, 1);
	up(0, INCARNATION);
	assert_int_equal(link.state, WF_LINK_GREETING);
	assert_refused(hear_resume(6), "there was no grant of slots before it");
	assert_int_equal(hear_grant(), WEFT_OK);
	assert_int_equal(hear_resume(6), WEFT_OK);
	assert_int_equal(link.state, WF_LINK_READY);
	assert_int_equal(resumed_step, 6);
	assert_true(ready_count == 1 && again_count == 0);
	assert_refused(hear_resume(6), "was not expected");
	assert_refused(hear_grant(), "GRANT: kind 1 was not expected");
}

static void
a_path_is_opened_by_a_place_and_have(void **state)
{
	become_ready();
	is_full = true;
	assert_false(wf_link_flush_opening(&link));
	is_full = false;
	assert_true(wf_link_flush_opening(&link));
	assert_int_equal(sent, 2);
	assert_true(sent_type[0] == WF_MSG_GRANT && sent_type[1] == WF_MSG_HAVE);
	assert_true(have.last && have.count == 1 && have.step == 9 && have.step_of[0] == 40);
	assert_false(wf_cursor_is_open(&link.opening.have));
}

static void
a_job_that_the_lane_asks_for_goes_before_resume(void **state)
{
	wf_link_tick(&link, clock_ns);
	up(WF_WELCOME_SEND_JOB, INCARNATION);
	assert_true(link.to_send.job);
	assert_int_equal(hear_grant(), WEFT_OK);
	assert_refused(hear_resume(6), "was not expected");
}

static void
a_link_without_units_needs_no_grant(void **state)
{
	static struct wf_msg msg;
	const struct wf_msg_steps none = {.last = true};
	link.content.unit_count = 0;
	wf_link_tick(&link, clock_ns);
	up(0, INCARNATION);
	assert_refused(hear_grant(), "was not expected");
	wf_msg_resume_encode(&none, &msg);
	assert_int_equal(hear(&msg), WEFT_OK);
	assert_int_equal(link.state, WF_LINK_READY);
	assert_false(wf_cursor_is_open(&link.opening.have));
}

static void
a_lost_link_comes_back_after_ever_longer_waits(void **state)
{
	become_ready();
	wf_send_window_claim(&link.window, &lodger);
	down(WEFT_LOST);
	assert_int_equal(link.state, WF_LINK_IDLE);
	assert_true(lodger == WF_SLOT_NONE && forgets == 1);
	assert_false(wf_send_window_is_open(&link.window));
	uint64_t wait_ns = link.retry.at_ns - clock_ns;
	for (unsigned i = 0; i < 3; i++) {
		clock_ns = link.retry.at_ns - 1;
		wf_link_tick(&link, clock_ns);
		assert_int_equal(connects, 1 + i);
		wf_link_tick(&link, ++clock_ns);
		assert_int_equal(connects, 2 + i);
		down(WEFT_UNAVAILABLE);
		assert_true(link.retry.at_ns - clock_ns == 2 * wait_ns);
		wait_ns *= 2;
	}
	clock_ns = link.retry.at_ns;
	become_ready();
	assert_int_equal(said.path, 5);
	assert_true(ready_count == 2 && again_count == 1 && link.retry.lost_ns == 0);
	assert_int_equal(failed_with, WEFT_OK);
}

static void
a_link_that_stays_lost_is_a_failure(void **state)
{
	become_ready();
	down(WEFT_LOST);
	wf_link_tick(&link, clock_ns + 5 * WF_NS_PER_S - 1);
	assert_int_equal(failed_with, WEFT_OK);
	wf_link_tick(&link, clock_ns + 5 * WF_NS_PER_S);
	assert_int_equal(failed_with, WEFT_LOST);
	assert_non_null(strstr(failed_text, "was lost: a test; not back within 5.0 s"));
}

static void
a_lane_that_is_never_found_is_a_failure(void **state)
{
	wf_link_tick(&link, clock_ns);
	down(WEFT_UNAVAILABLE);
	wf_link_tick(&link, clock_ns + 10 * WF_NS_PER_S);
	assert_int_equal(failed_with, WEFT_TIMEOUT);
	assert_non_null(strstr(failed_text, "did not answer within 10.0 s, last error: a test"));
}

static void
some_refusals_pass_and_others_do_not(void **state)
{
	wf_link_tick(&link, clock_ns);
	refuse(WEFT_UNAVAILABLE, 0);
	assert_int_equal(link.state, WF_LINK_IDLE);
	assert_int_equal(failed_with, WEFT_OK);
	wf_link_tick(&link, link.retry.at_ns);
	refuse(WEFT_MISMATCH, 0);
	assert_int_equal(failed_with, WEFT_MISMATCH);
	assert_non_null(strstr(failed_text, "refused by pserver 0 lane 0"));
	assert_non_null(strstr(failed_text, "not today"));
}

static void
a_job_that_is_over_ends_with_its_first_cause(void **state)
{
	wf_link_tick(&link, clock_ns);
	refuse(WEFT_UNAVAILABLE, WF_WELCOME_JOB_OVER);
	assert_int_equal(failed_with, WEFT_UNAVAILABLE);
	assert_string_equal(failed_text, "not today");
}

static void
a_pserver_that_was_restarted_has_lost_the_job(void **state)
{
	become_ready();
	down(WEFT_LOST);
	wf_link_tick(&link, link.retry.at_ns);
	up(0, INCARNATION + 1);
	assert_int_equal(failed_with, WEFT_LOST);
	assert_non_null(strstr(failed_text, "was restarted and has lost the job"));
}

static void
goodbye_is_answered_in_turn_and_the_link_has_left(void **state)
{
	become_ready();
	assert_refused(hear_goodbye(true), "GOODBYE was not expected");
	end.leaving = true; /* the first lane comes last */
	assert_refused(hear_goodbye(true), "GOODBYE was not expected");
	end.last_leaving_ns = clock_ns;
	assert_refused(hear_goodbye(false), "GOODBYE was not expected");
	link.to_send.goodbye = true;
	assert_true(wf_link_flush_goodbye(&link));
	assert_false(link.to_send.goodbye);
	assert_int_equal(hear_goodbye(true), WEFT_OK);
	assert_int_equal(link.state, WF_LINK_LEFT);
	assert_true(sent == 2 && sent_type[1] == WF_MSG_GOODBYE);
	assert_true(disconnects == 1 && disconnected == WF_DISCONNECT_DRAIN);
	down(WEFT_CLOSED);
	assert_int_equal(link.state, WF_LINK_LEFT);
	assert_int_equal(failed_with, WEFT_OK);
}

static void
a_goodbye_that_nobody_answers_is_given_up(void **state)
{
	become_ready();
	end.leaving = true;
	end.last_leaving_ns = clock_ns;
	wf_link_tick(&link, clock_ns + 5 * WF_NS_PER_S);
	assert_int_equal(link.state, WF_LINK_LEFT);
	assert_non_null(strstr(end.unacknowledged, "did not acknowledge GOODBYE within 5.0 s"));
	assert_true(disconnects == 1 && disconnected == WF_DISCONNECT_NOW);
}

static void
a_goodbye_without_an_answer_may_mean_that_the_job_goes_back(void **state)
{
	become_ready();
	end.goes_back = true;
	end.leaving = true;
	end.last_leaving_ns = clock_ns;
	wf_link_tick(&link, clock_ns + 5 * WF_NS_PER_S);
	assert_int_equal(failed_with, WEFT_LOST);
	assert_non_null(strstr(failed_text, "did not acknowledge GOODBYE within 5.0 s"));
}

static void
a_lane_that_ends_together_may_take_its_time_while_it_is_connected(void **state)
{
	become_ready();
	link.ends_together = true;
	end.leaving = true;
	end.last_leaving_ns = clock_ns;
	wf_link_tick(&link, clock_ns + 500 * WF_NS_PER_S);
	assert_int_equal(link.state, WF_LINK_READY);
	clock_ns += 500 * WF_NS_PER_S;
	down(WEFT_LOST);
	clock_ns += 6 * WF_NS_PER_S;
	wf_link_tick(&link, clock_ns);
	assert_int_equal(failed_with, WEFT_LOST);
	assert_non_null(strstr(failed_text, "not back within 5.0 s"));
}

/* It waits for its border as long as it takes, and then as long for a lane that is lost. */
static void
a_leaver_that_has_waited_long_still_comes_back(void **state)
{
	become_ready();
	end.leaves = end.leaving = true;
	end.last_leaving_ns = clock_ns;
	clock_ns += 500 * WF_NS_PER_S;
	wf_link_tick(&link, clock_ns);
	assert_int_equal(link.state, WF_LINK_READY);
	down(WEFT_LOST);
	wf_link_tick(&link, link.retry.at_ns);
	assert_int_equal(link.state, WF_LINK_CONNECTING);
	assert_int_equal(connects, 2);
	down(WEFT_UNAVAILABLE);
	wf_link_tick(&link, clock_ns + 5 * WF_NS_PER_S - 1);
	assert_int_equal(link.state, WF_LINK_CONNECTING);
	assert_string_equal(end.unacknowledged, "");
	wf_link_tick(&link, clock_ns + 5 * WF_NS_PER_S);
	assert_int_equal(link.state, WF_LINK_LEFT);
	assert_non_null(strstr(end.unacknowledged, "did not acknowledge GOODBYE within 5.0 s"));
	assert_int_equal(failed_with, WEFT_OK);
}

static void
a_welcome_says_whether_the_job_goes_back(void **state)
{
	wf_link_tick(&link, clock_ns);
	up(WF_WELCOME_GOES_BACK | WF_WELCOME_ENDS_TOGETHER, INCARNATION);
	assert_true(end.goes_back && link.ends_together);
}

static void
messages_go_to_who_knows_them(void **state)
{
	static struct wf_msg msg;
	become_ready();
	msg.head = (struct wf_head){.service = WF_SERVICE_SPARSE};
	assert_int_equal(hear(&msg), WEFT_OK);
	msg.head.service = WF_SERVICE_DENSE;
	assert_refused(hear(&msg), "message for service 2 at a trainer");
	msg.head = (struct wf_head){.service = WF_SERVICE_CONTROL, .type = 77};
	assert_refused(hear(&msg), "control message of type 77");
}

#define fresh(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		fresh(a_link_is_ready_when_the_lane_has_granted_and_resumed),
		fresh(a_path_is_opened_by_a_place_and_have),
		fresh(a_job_that_the_lane_asks_for_goes_before_resume),
		fresh(a_link_without_units_needs_no_grant),
		fresh(a_lost_link_comes_back_after_ever_longer_waits),
		fresh(a_link_that_stays_lost_is_a_failure),
		fresh(a_lane_that_is_never_found_is_a_failure),
		fresh(some_refusals_pass_and_others_do_not),
		fresh(a_job_that_is_over_ends_with_its_first_cause),
		fresh(a_pserver_that_was_restarted_has_lost_the_job),
		fresh(goodbye_is_answered_in_turn_and_the_link_has_left),
		fresh(a_goodbye_that_nobody_answers_is_given_up),
		fresh(a_goodbye_without_an_answer_may_mean_that_the_job_goes_back),
		fresh(a_lane_that_ends_together_may_take_its_time_while_it_is_connected),
		fresh(a_leaver_that_has_waited_long_still_comes_back),
		fresh(a_welcome_says_whether_the_job_goes_back),
		fresh(messages_go_to_who_knows_them),
	};
	return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
