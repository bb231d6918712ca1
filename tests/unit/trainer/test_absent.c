/* SPDX-License-Identifier: Apache-2.0 */
/* What a trainer says of others that it waits for: each lane speaks for itself. Two lanes have a
 * tensor each; what they say of trainers comes from the test, into the session's own links, and so
 * does the end of a link's path. */
#include "tests/unit/trainer/fabric.h"

#include "trainer/session/session.h"
#include "wire/messages.h"

#define ROWS 16 /* a slice */
#define LANES 2u

struct fixture {
	struct fixture *before;
	struct fabric fabric;
	struct member member;
	struct weft_session *session;
	struct weft_tensor *tensor[LANES];
};

/* A lane whose job has failed stays for a second: all of them for the same one, at the end. */
static struct fixture *ended;

static int
set_up(void **state)
{
	static const char *const names[LANES] = {"a", "b"};
	struct fixture *f = calloc(1, sizeof(*f));
	assert_non_null(f);
	fabric_start(&f->fabric, 1, LANES, 0);
	member_init(&f->member, &f->fabric, 0, 2); /* trainer 1 does not come */
	f->member.opts.slice_bytes = 64;
	f->member.opts.progress = WEFT_PROGRESS_CALLER;
	assert_ok(weft_session_open(&f->member.opts, &f->session));
	for (uint32_t i = 0; i < LANES; i++) {
		const struct weft_tensor_opts tensor = {.name = names[i], .rows = ROWS};
		assert_ok(weft_tensor_add(f->session, &tensor, &f->tensor[i]));
	}
	assert_ok(weft_session_seal(f->session));
	assert_ok(weft_session_start(f->session));
	assert_ok(weft_step(f->session, 1, 0));
	*state = f;
	return 0;
}

static int
tear_down(void **state)
{
	struct fixture *f = *state;
	weft_session_abort(f->session, WEFT_ABORTED, "the test is over");
	f->before = ended;
	ended = f;
	return 0;
}

static int
stop_all(void **state)
{
	(void)state;
	while (ended != NULL) {
		struct fixture *f = ended;
		ended = f->before;
		fabric_stop(&f->fabric);
		free(f);
	}
	return 0;
}

static enum weft_status
take(struct fixture *f, uint32_t lane, const struct wf_msg_absent *absent)
{
	struct wf_link *link = f->session->core.links.all[lane];
	struct wf_msg msg;
	wf_msg_absent_encode(absent, &msg);
	const struct wf_event event = {
		.kind = WF_EVENT_MSG,
		.conn = link->conn,
		.msg = {.head = &msg.head, .body = msg.body},
	};
	return wf_link_msg(link, &event);
}

static void
hear_of(struct fixture *f, uint32_t lane, const char *reason, uint64_t silent_ns)
{
	struct wf_msg_absent absent = {.trainer = reason[0] != '\0' ? 1 : 0,
				       .silent_ns = silent_ns};
	(void)snprintf(absent.reason, sizeof(absent.reason), "%s", reason);
	assert_ok(take(f, lane, &absent));
}

static void
hear(struct fixture *f, uint32_t lane, const char *reason)
{
	hear_of(f, lane, reason, 0);
}

/* Three seconds later. */
static const char *
line(struct fixture *f)
{
	struct wf_core *core = &f->session->core;
	memset(core->waits.gate, 0, sizeof(core->waits.gate));
	f->member.log[0] = '\0';
	wf_core_check_waits(core, wf_now_ns(core->end.env) + 3 * WF_NS_PER_S);
	return f->member.log;
}

static void
push(struct fixture *f, uint32_t lane)
{
	assert_int_equal(f->session->core.placement.slice[lane].lane, lane);
	assert_ok(weft_push(f->tensor[lane]));
	assert_ok(weft_poll(f->session)); /* the wait begins */
}

static void
assert_not_text(const char *text, const char *part)
{
	if (strstr(text, part) != NULL) {
		fail_msg("\"%s\" is in \"%s\"", part, text);
	}
}

static void
the_lane_that_is_waited_for_is_heard_first(void **state)
{
	struct fixture *f = *state;
	push(f, 1);
	hear(f, 1, "refused: by lane 1");
	hear(f, 0, "refused: by lane 0");
	assert_text(line(f), "step 1, b: another trainer has not done its part yet; ");
	assert_text(line(f), "; trainer 1 is not in, refused: by lane 1\n");
	assert_not_text(line(f), "lane 0");
}

static void
of_several_tensors_the_one_that_waits_longest_counts(void **state)
{
	struct fixture *f = *state;
	push(f, 1);
	push(f, 0);
	hear(f, 0, "refused: by lane 0");
	hear(f, 1, "refused: by lane 1");
	assert_text(line(f), "step 1, b: ");
	assert_text(line(f), "is not in, refused: by lane 1\n");
}

static void
what_one_lane_takes_back_stands_for_the_other(void **state)
{
	struct fixture *f = *state;
	push(f, 1);
	hear(f, 1, "refused: by lane 1");
	hear(f, 0, "refused: by lane 0");
	hear(f, 0, "");
	assert_text(line(f), "is not in, refused: by lane 1\n");
	hear(f, 1, "");
	assert_not_text(line(f), "is not in");
}

/* A trainer that one lane refuses may not have got to the other. */
static void
what_another_lane_says_is_better_than_nothing(void **state)
{
	struct fixture *f = *state;
	push(f, 1);
	hear(f, 0, "refused: by lane 0");
	assert_text(line(f), "is not in, refused: by lane 0\n");
}

static void
what_a_lane_said_is_forgotten_with_its_path(void **state)
{
	struct fixture *f = *state;
	push(f, 1);
	hear(f, 1, "refused: by lane 1");
	const struct wf_event down = {
		.kind = WF_EVENT_DOWN,
		.conn = f->session->core.links.all[1]->conn,
		.down = {.status = WEFT_LOST, .why = "the test cut it"},
	};
	wf_link_down(f->session->core.links.all[1], &down);
	assert_text(line(f), "pserver 0 lane 1 (");
	assert_text(line(f), "is not connected, last error: the test cut it\n");
}

/* A link that goes down after the job has failed keeps its state, and a call that had begun before
 * may still begin a step. */
static void
a_step_after_a_failure_is_not_sent_without_a_connection(void **state)
{
	struct fixture *f = *state;
	struct wf_core *core = &f->session->core;
	struct wf_link *link = core->links.all[1];
	const struct wf_event down = {
		.kind = WF_EVENT_DOWN,
		.conn = link->conn,
		.down = {.status = WEFT_LOST, .why = "the test cut it"},
	};
	while (link->state != WF_LINK_READY) {
		(void)wf_core_poll(core);
	}
	wf_core_fail(core, WEFT_DATA, "the test ends the job");
	(void)wf_core_poll(core); /* tells the lanes */
	wf_link_down(link, &down);
	wf_core_step(core, 1, 0);
	assert_true(link->due.queued && link->to_send.step);
	(void)wf_core_poll(core);
	assert_true(link->to_send.step);
	assert_false(link->due.queued);
}

/* Of the news themselves there is one line, whoever says them how often. */
static void
news_are_told_once(void **state)
{
	struct fixture *f = *state;
	f->member.log[0] = '\0';
	hear(f, 0, "refused: it has seed=2");
	assert_text(f->member.log,
		    "trainer 0: the job waits for trainer 1, refused: it has seed=2\n");
	f->session->core.waits.absent_told_ns = 0; /* long ago */
	f->member.log[0] = '\0';
	hear(f, 1, "refused: it has seed=2");
	hear(f, 0, "refused: it has seed=2");
	hear(f, 0, "");
	assert_string_equal(f->member.log, "");
	hear(f, 0, "refused: it has seed=3");
	assert_text(f->member.log, "refused: it has seed=3\n");
}

/* As the lane has it, and no line of its own. A lane that takes no turns itself is not believed. */
static void
who_takes_no_turns_is_named_in_the_line_about_the_wait(void **state)
{
	struct fixture *f = *state;
	struct wf_link *link = f->session->core.links.all[1];
	const char *named = "; trainer 1 (host b, pid 7) has not taken a turn for ";
	push(f, 1);
	f->member.log[0] = '\0';
	hear_of(f, 1, "(host b, pid 7) has not taken a turn", 4100 * WF_NS_PER_MS);
	assert_string_equal(f->member.log, "");
	assert_text(line(f), named);
	assert_not_text(line(f), "is not in");
	link->absent.msg.silent_ns = 0;
	assert_text(line(f), "is not in");
	link->absent.msg.silent_ns = 4100 * WF_NS_PER_MS;
	link->absent.since_ns -= 10 * WF_NS_PER_S;
	assert_text(line(f), "has not taken a turn for 14 s\n");
	struct wf_beat_clock *clock = &f->session->core.end.beats;
	link->beat = (struct wf_beat){.left = true, .heard_ns = 1, .asked_ns = clock->turns_ns};
	clock->turns_ns += 7 * WF_NS_PER_S;
	assert_text(line(f), "pserver 0 lane 1 (");
	assert_text(line(f), "has not taken a turn for 7 s\n");
	assert_not_text(line(f), "trainer 1");
	link->beat = (struct wf_beat){0};
	hear(f, 1, "");
	assert_not_text(line(f), "has not taken a turn");
}

static void
a_trainer_that_the_job_has_not_is_refused(void **state)
{
	struct fixture *f = *state;
	const struct wf_msg_absent absent = {.trainer = 2, .reason = "refused: by lane 0"};
	push(f, 1);
	f->member.log[0] = '\0';
	assert_refused(take(f, 0, &absent), WEFT_PROTOCOL, "ABSENT: trainer 2, the job has 2");
	assert_string_equal(f->member.log, "");
	assert_not_text(line(f), "is not in");
}

int
main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH(the_lane_that_is_waited_for_is_heard_first),
		WITH(of_several_tensors_the_one_that_waits_longest_counts),
		WITH(what_one_lane_takes_back_stands_for_the_other),
		WITH(what_another_lane_says_is_better_than_nothing),
		WITH(what_a_lane_said_is_forgotten_with_its_path),
		WITH(a_step_after_a_failure_is_not_sent_without_a_connection),
		WITH(news_are_told_once),
		WITH(who_takes_no_turns_is_named_in_the_line_about_the_wait),
		WITH(a_trainer_that_the_job_has_not_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, stop_all);
}
