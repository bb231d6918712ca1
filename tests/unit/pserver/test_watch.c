/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks lane 0 how the job is: what they get, what they may not, and that the job does not
 * notice. Under a virtual clock. Thread: the test's. */
#include "tests/unit/pserver/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pserver/watch.h"

#define ANSWER_NS WF_NS_PER_S

struct watcher {
	struct peer peer; /* first: its functions cast back */
	uint32_t records, ends;
	uint32_t kinds[WF_WATCH_KIND_MAX + 1];
	struct wf_watch_end end;
	struct wf_watch_record lane;
};

static struct watcher cast[WF_WATCHERS_MAX + 1];
static bool (*stage_turn)(struct script *script);

/* Watchers that come while `is_on` take in only as many messages as they are let. */
static struct {
	bool is_on;
	uint32_t lets;
	const struct wf_transport_ops *ops;
	struct wf_transport_ops ops_now;
} jam;

static enum weft_status
post_jammed(struct wf_conn *conn, const struct wf_op *ops, unsigned op_count, unsigned *taken)
{
	*taken = 0;
	if (jam.lets == 0) {
		return WEFT_AGAIN;
	}
	jam.lets--;
	return jam.ops->post(conn, ops, op_count, taken);
}

void __wrap_wf_watch_up(struct wf_lane *lane, struct wf_conn *conn);
void __real_wf_watch_up(struct wf_lane *lane, struct wf_conn *conn);

void
__wrap_wf_watch_up(struct wf_lane *lane, struct wf_conn *conn)
{
	__real_wf_watch_up(lane, conn);
	if (jam.is_on) {
		jam.ops = conn->ops;
		jam.ops_now = *conn->ops;
		jam.ops_now.post = post_jammed;
		conn->ops = &jam.ops_now;
	}
}

static bool
turn(struct script *script)
{
	bool busy = stage_turn(script);
	for (uint32_t i = 0; i < WF_WATCHERS_MAX + 1; i++) {
		if (cast[i].peer.script != NULL) {
			busy = peer_poll(&cast[i].peer) > 0 || busy;
		}
	}
	return busy;
}

/* The trainers are here. */
static void
begin(struct stage *stage)
{
	memset(cast, 0, sizeof(cast));
	stage_turn = stage->script.turn;
	stage->script.turn = turn;
	puppets_begin(stage);
}

static enum weft_status
recv_record(struct watcher *watcher, const struct wf_head *head, const uint8_t *body)
{
	struct wf_watch_answer answer;
	enum weft_status st = wf_watch_answer_decode(head, body, &answer);
	if (st == WEFT_OK) {
		watcher->records++;
		watcher->kinds[answer.record.kind]++;
		watcher->lane = answer.record.kind == WF_WATCH_LANE ? answer.record : watcher->lane;
	}
	return st;
}

static enum weft_status
recv(struct peer *peer, const struct wf_head *head, const uint8_t *body)
{
	struct watcher *watcher = (struct watcher *)peer;
	if (head->service != WF_SERVICE_WATCH) {
		return WEFT_PROTOCOL;
	}
	if (head->type == WF_WATCH_END) {
		watcher->ends++;
		return wf_watch_end_decode(head, body, &watcher->end);
	}
	return recv_record(watcher, head, body);
}

static const struct peer_ops ops = {.recv = recv};

static struct watcher *
add_watcher(struct stage *stage, uint32_t idx)
{
	struct watcher *watcher = &cast[idx];
	*watcher = (struct watcher){0};
	watcher->peer.ops = &ops;
	watcher->peer.to = (struct wf_host){.name = "ps", .port = STAGE_PORT};
	watcher->peer.hello = (struct wf_hello){
		.version_min = WF_WIRE_VERSION_MIN,
		.version_max = WF_WIRE_VERSION,
		.service = WF_SERVICE_WATCH,
		.pserver_count = 1,
		.lane_count = 1,
		.trainer_count = 1,
		.incarnation = 77 + idx,
		.job_bytes = 1,
		.msg_bytes_max = WF_MSG_BODY_MAX,
		.put_bytes_max = 1,
	};
	peer_open(&watcher->peer, &stage->script, "sim", 4096);
	peer_connect(&watcher->peer);
	stage_settle(stage);
	return watcher;
}

static void
ask(struct watcher *watcher, uint16_t question)
{
	static struct wf_msg msg;
	wf_watch_ask_encode(&(struct wf_watch_ask){.request_id = 9, .question = question}, &msg);
	peer_send(&watcher->peer, &msg);
}

static void
close_all(void)
{
	for (uint32_t i = 0; i < WF_WATCHERS_MAX + 1; i++) {
		peer_close(&cast[i].peer);
		cast[i].peer.script = NULL;
	}
}

static void
check_step(struct stage *stage, uint64_t step)
{
	for (uint32_t t = 0; t < stage->puppet_count; t++) {
		puppet_continue(&stage->puppet[t], step);
	}
	stage_expect_step(stage, step);
	stage_settle(stage);
	for (uint32_t t = 0; t < stage->puppet_count; t++) {
		CHECK(stage, puppet_values_are_right(&stage->puppet[t]));
	}
}

static void
answer_one(struct stage *stage)
{
	begin(stage);
	struct watcher *watcher = add_watcher(stage, 0);
	CHECK(stage, watcher->peer.up);
	check_step(stage, 1);
	ask(watcher, WF_WATCH_STATUS);
	stage_run(stage, ANSWER_NS);
	CHECK(stage, watcher->ends == 1 && watcher->end.status == WEFT_OK);
	CHECK(stage, watcher->end.request_id == 9 && watcher->end.count == watcher->records);
	CHECK(stage, watcher->kinds[WF_WATCH_PSERVER] == 1 && watcher->kinds[WF_WATCH_LANE] == 1);
	CHECK(stage, watcher->kinds[WF_WATCH_MEMBER] == 2);
	CHECK(stage, watcher->lane.value[WF_WLANE_STEP] == 1);
	check_step(stage, 2);
	ask(watcher, WF_WATCH_STATUS);
	stage_run(stage, ANSWER_NS);
	CHECK(stage, watcher->ends == 2 && watcher->lane.value[WF_WLANE_STEP] == 2);
	/* Nobody asks any more: after a while nothing is shown. */
	stage_run(stage, 30 * WF_NS_PER_S);
	uint64_t at_ns = watcher->lane.value[WF_WLANE_AT_NS];
	struct wf_watch_record record;
	CHECK(stage, wf_views_read(stage->views, WF_WATCH_LANE, 0, 0, &record));
	CHECK(stage, record.value[WF_WLANE_AT_NS] < at_ns + 15 * WF_NS_PER_S);
	stage_run(stage, 60 * WF_NS_PER_S);
	CHECK(stage, watcher->peer.down); /* silent for too long */
	check_step(stage, 3);
	close_all();
}

static void
who_asks_gets_all_records_and_the_job_goes_on(void **state)
{
	const struct stage_opts opts = {.trainers = 2, .has_views = true};
	(void)state;
	stage_play(&opts, answer_one, NULL);
}

static void
ask_wrongly(struct stage *stage)
{
	begin(stage);
	struct watcher *unknown = add_watcher(stage, 0);
	ask(unknown, 999);
	stage_run(stage, ANSWER_NS);
	CHECK(stage, unknown->ends == 1 && unknown->records == 0 && !unknown->peer.down);
	CHECK(stage, unknown->end.status == WEFT_UNSUPPORTED);
	CHECK_SAYS(stage, unknown->end.reason, "question 999 is not known");
	struct watcher *hasty = add_watcher(stage, 1);
	/* The first is answered at once, the second after a pause, in which the third comes. */
	ask(hasty, WF_WATCH_STATUS);
	ask(hasty, WF_WATCH_STATUS);
	ask(hasty, WF_WATCH_STATUS);
	stage_run(stage, ANSWER_NS);
	CHECK(stage, hasty->peer.down && !unknown->peer.down);
	struct watcher *trainer = add_watcher(stage, 2);
	static struct wf_msg msg;
	wf_msg_goodbye_encode(&(struct wf_msg_goodbye){0}, &msg);
	peer_send(&trainer->peer, &msg);
	stage_run(stage, ANSWER_NS);
	CHECK(stage, trainer->peer.down);
	check_step(stage, 1);
	close_all();
}

static void
a_wrong_question_costs_its_own_connection_at_most(void **state)
{
	const struct stage_opts opts = {.trainers = 2, .has_views = true};
	(void)state;
	stage_play(&opts, ask_wrongly, NULL);
}

static void
come_in_crowds(struct stage *stage)
{
	begin(stage);
	for (uint32_t i = 0; i < WF_WATCHERS_MAX; i++) {
		CHECK(stage, add_watcher(stage, i)->peer.up);
	}
	struct watcher *late = add_watcher(stage, WF_WATCHERS_MAX);
	CHECK(stage, late->peer.down && late->peer.welcome.refusal == WEFT_UNAVAILABLE);
	CHECK_SAYS(stage, late->peer.welcome.reason, "others watch this pserver");
	for (uint32_t i = 0; i < WF_WATCHERS_MAX; i++) {
		ask(&cast[i], WF_WATCH_STATUS);
	}
	stage_run(stage, ANSWER_NS);
	for (uint32_t i = 0; i < WF_WATCHERS_MAX; i++) {
		CHECK(stage, cast[i].ends == 1 && cast[i].kinds[WF_WATCH_MEMBER] == 2);
	}
	peer_close(&late->peer);
	late->peer.script = NULL;
	peer_disconnect(&cast[0].peer, WF_DISCONNECT_NOW);
	stage_settle(stage);
	CHECK(stage, add_watcher(stage, WF_WATCHERS_MAX)->peer.up); /* its place is free */
	check_step(stage, 1);
	close_all();
}

static void
there_are_only_so_many_at_a_time(void **state)
{
	const struct stage_opts opts = {.trainers = 2, .has_views = true};
	(void)state;
	stage_play(&opts, come_in_crowds, NULL);
}

static void
take_nothing(struct stage *stage)
{
	begin(stage);
	jam.is_on = true;
	for (uint32_t i = 0; i < WF_WATCHERS_MAX; i++) {
		struct watcher *watcher = add_watcher(stage, i);
		CHECK(stage, watcher->peer.up);
		ask(watcher, WF_WATCH_STATUS);
	}
	jam.is_on = false;
	check_step(stage, 1);
	stage_run(stage, 100 * WF_NS_PER_S);
	for (uint32_t i = 0; i < WF_WATCHERS_MAX; i++) {
		CHECK(stage, cast[i].peer.down && cast[i].records == 0);
	}
	struct watcher *late = add_watcher(stage, WF_WATCHERS_MAX);
	ask(late, WF_WATCH_STATUS);
	stage_run(stage, ANSWER_NS);
	CHECK(stage, late->ends == 1);
	close_all();
}

static void
who_takes_no_answer_does_not_keep_its_place(void **state)
{
	const struct stage_opts opts = {.trainers = 2, .has_views = true};
	(void)state;
	stage_play(&opts, take_nothing, NULL);
}

/* It asks late, too, and takes a message now and then. */
static void
take_little(struct stage *stage)
{
	begin(stage);
	jam.is_on = true;
	struct watcher *watcher = add_watcher(stage, 0);
	jam.is_on = false;
	stage_run(stage, 40 * WF_NS_PER_S);
	ask(watcher, WF_WATCH_STATUS);
	for (uint32_t i = 0; i < 20 && watcher->ends == 0; i++) {
		stage_run(stage, 40 * WF_NS_PER_S);
		CHECK(stage, !watcher->peer.down);
		jam.lets = 1;
		stage_settle(stage);
	}
	CHECK(stage, watcher->ends == 1 && watcher->end.count == watcher->records);
	close_all();
}

static void
who_takes_its_answer_slowly_gets_it(void **state)
{
	const struct stage_opts opts = {.trainers = 2, .has_views = true};
	(void)state;
	stage_play(&opts, take_little, NULL);
}

static void
ask_without_views(struct stage *stage)
{
	begin(stage);
	struct watcher *watcher = add_watcher(stage, 0);
	CHECK(stage, watcher->peer.down && watcher->peer.welcome.refusal == WEFT_MISMATCH);
	CHECK_SAYS(stage, watcher->peer.welcome.reason, "lane 0 answers questions");
	check_step(stage, 1);
	close_all();
}

static void
a_lane_that_shows_nothing_refuses(void **state)
{
	const struct stage_opts opts = {.trainers = 2};
	(void)state;
	stage_play(&opts, ask_without_views, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_asks_gets_all_records_and_the_job_goes_on),
		cmocka_unit_test(a_wrong_question_costs_its_own_connection_at_most),
		cmocka_unit_test(there_are_only_so_many_at_a_time),
		cmocka_unit_test(who_takes_no_answer_does_not_keep_its_place),
		cmocka_unit_test(who_takes_its_answer_slowly_gets_it),
		cmocka_unit_test(a_lane_that_shows_nothing_refuses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
