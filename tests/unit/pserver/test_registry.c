/* SPDX-License-Identifier: Apache-2.0 */
/* The registrar's end of the connections between pservers, against a pserver that lies, comes
 * twice, or is cut off: it loses its connection, and the job goes on. Lane 0 of pserver 0 is real,
 * and so is its directory; pserver 1 and the trainer are scripted. Thread: the test's. */
#include "tests/unit/pserver/stage.h"

#include "tests/unit/saved/setup.h"
#include "wire/registry_messages.h"

#define MEMBER_INCARNATION 901u
#define MEMBERS 2u
#define CUTS_MAX 12u /* messages of the beginning and of the first snapshots */

/* What stands in pserver 1's place. */
struct member {
	struct peer peer; /* first: its functions cast back */
	uint64_t epoch;   /* in which it serves; 0: none */
	uint32_t loads, runs, snapshots;
	uint64_t border;   /* of the last SNAPSHOT */
	bool is_silent;    /* it answers nothing */
	uint32_t messages; /* sent and received */
	uint32_t cut_at;   /* the connection breaks after this many; 0: never */
};

/* One at a time. */
static struct {
	struct scene *scene;
	bool (*turn)(struct script *script); /* the stage's */
	struct member member[MEMBERS];       /* all of them say that they are pserver 1 */
	uint64_t step;                       /* the trainer's last one */
} cast;

/* ---- pserver 1 ---- */

static void
count(struct member *member)
{
	member->messages++;
	if (member->messages == member->cut_at) {
		peer_disconnect(&member->peer, WF_DISCONNECT_NOW);
	}
}

static void
send(struct member *member, const struct wf_msg *msg)
{
	peer_send(&member->peer, msg);
	count(member);
}

static void
send_join(struct member *member)
{
	const struct wf_registry_join join = {.serves = member->epoch, .dense_lanes = 1};
	struct wf_msg msg;
	wf_registry_join_encode(&join, &msg);
	send(member, &msg);
}

static void
send_loaded(struct member *member, uint64_t epoch)
{
	struct wf_msg msg;
	wf_registry_loaded_encode(&(struct wf_registry_loaded){.epoch = epoch}, &msg);
	send(member, &msg);
}

static struct wf_msg
part_message(const struct member *member)
{
	const struct wf_registry_part part = {.epoch = member->epoch > 0 ? member->epoch : 1,
					      .border = member->border > 0 ? member->border : 2,
					      .bytes = 100,
					      .crc = 7,
					      .lane = 1,
					      .service = WF_SERVICE_DENSE};
	struct wf_msg msg;
	wf_registry_part_encode(&part, &msg);
	return msg;
}

static enum weft_status
on_load(struct member *member, const struct wf_head *head, const uint8_t *body)
{
	struct wf_registry_load load;
	enum weft_status st = wf_registry_load_decode(head, body, &load);
	member->loads++;
	if (st == WEFT_OK && !member->is_silent) {
		send_loaded(member, load.epoch);
	}
	return st;
}

static enum weft_status
on_snapshot(struct member *member, const struct wf_head *head, const uint8_t *body)
{
	struct wf_registry_snapshot snapshot;
	enum weft_status st = wf_registry_snapshot_decode(head, body, &snapshot);
	member->snapshots++;
	member->border = snapshot.border;
	if (st == WEFT_OK && !member->is_silent) {
		const struct wf_msg msg = part_message(member);
		send(member, &msg);
	}
	return st;
}

static enum weft_status
recv(struct peer *peer, const struct wf_head *head, const uint8_t *body)
{
	struct member *member = (struct member *)peer;
	struct wf_registry_run run;
	enum weft_status st = WEFT_PROTOCOL;
	count(member);
	if (head->service != WF_SERVICE_REGISTRY) {
		return st;
	}
	switch (head->type) {
	case WF_REGISTRY_LOAD:
		return on_load(member, head, body);
	case WF_REGISTRY_RUN:
		st = wf_registry_run_decode(head, body, &run);
		member->runs++;
		member->epoch = run.epoch;
		return st;
	case WF_REGISTRY_SNAPSHOT:
		return on_snapshot(member, head, body);
	default:
		return st;
	}
}

static const struct peer_ops ops = {.recv = recv};

static struct member *
add_member(struct stage *stage, uint32_t idx)
{
	struct member *member = &cast.member[idx];
	const struct puppet *puppet = &stage->puppet[0];
	*member = (struct member){0};
	member->peer.ops = &ops;
	member->peer.to = (struct wf_host){.name = "ps", .port = STAGE_PORT};
	member->peer.hello = puppet->peer.hello;
	member->peer.hello.service = WF_SERVICE_REGISTRY;
	member->peer.hello.trainer_id = 1;
	member->peer.hello.trainer_count = 2;
	member->peer.hello.incarnation = MEMBER_INCARNATION;
	member->peer.hello.path = 0;
	peer_open(&member->peer, &stage->script, "sim", 4096);
	return member;
}

/* Its connection is up, and it has sent nothing. */
static void
meet(struct stage *stage, struct member *member)
{
	peer_connect(&member->peer);
	stage_settle(stage);
	CHECK(stage, member->peer.up && !member->peer.down);
}

static void
come(struct stage *stage, struct member *member)
{
	meet(stage, member);
	send_join(member);
	stage_settle(stage);
}

/* Whether its connection was closed, by the lane. */
static bool
is_closed(const struct member *member)
{
	return member->peer.down && member->peer.conn == NULL;
}

static void
check_refused(struct stage *stage, struct member *member, enum weft_status status, const char *why)
{
	peer_connect(&member->peer);
	stage_settle(stage);
	CHECK(stage, member->peer.down && member->peer.down_status == WEFT_REFUSED);
	CHECK(stage, member->peer.welcome.refusal == status);
	CHECK_SAYS(stage, member->peer.welcome.reason, why);
}

/* ---- the trainer, and the whole ---- */

/* The job is here, and waits for pserver 1. */
static struct puppet *
send_job(struct stage *stage)
{
	struct puppet *puppet = &stage->puppet[0];
	puppet_connect(puppet);
	stage_settle(stage);
	puppet_send_job(puppet);
	stage_settle(stage);
	CHECK(stage, puppet->peer.up && !puppet->peer.down && !puppet->peer.resumed);
	return puppet;
}

/* The job has begun: the trainer sends the initial values. */
static void
initialise(struct stage *stage)
{
	struct puppet *puppet = &stage->puppet[0];
	stage_settle(stage);
	CHECK(stage, puppet->peer.resumed && !puppet->peer.down);
	if (script_failed(&stage->script)) {
		return;
	}
	puppet_grant(puppet, 0);
	puppet_have(puppet);
	puppet_initialise(puppet);
	stage_settle(stage);
}

static void
step(struct stage *stage)
{
	struct puppet *puppet = &stage->puppet[0];
	if (script_failed(&stage->script)) {
		return;
	}
	cast.step++;
	puppet_continue(puppet, cast.step);
	stage_settle(stage);
	stage_expect_step(stage, cast.step);
	CHECK(stage, puppet_values_are_right(puppet) && !puppet->peer.down);
}

static uint32_t
count_snapshots(struct stage *stage)
{
	struct wf_env *env = stage->script.env;
	struct wf_snapshot_list list = {0};
	CHECK(stage, wf_snapshot_list(env, wf_saved_posix(), cast.scene->dir, &list) == WEFT_OK);
	uint32_t snapshots = list.count;
	wf_snapshot_list_fini(env, &list);
	return snapshots;
}

/* The job runs, pserver 1 serves, and they make one more snapshot at least. */
static void
check_goes_on(struct stage *stage, const struct member *member)
{
	uint32_t before = member->snapshots;
	for (unsigned i = 0; i < 6; i++) {
		step(stage);
	}
	CHECK(stage, member->snapshots > before && count_snapshots(stage) > 0);
	CHECK(stage, stage->lane[0]->state == WF_LANE_RUNNING);
}

static bool
turn(struct script *script)
{
	bool busy = cast.turn(script);
	for (uint32_t i = 0; i < MEMBERS; i++) {
		if (cast.member[i].peer.script != NULL) {
			busy = peer_poll(&cast.member[i].peer) > 0 || busy;
		}
	}
	return busy;
}

static void
run(struct stage *stage)
{
	void (*const *body)(struct stage * stage) = stage->arg;
	cast.turn = stage->script.turn;
	stage->script.turn = turn;
	cast.step = 0;
	(void)puppet_add(stage, 0, 0);
	(*body)(stage);
	for (uint32_t i = 0; i < MEMBERS; i++) {
		peer_close(&cast.member[i].peer);
	}
}

static void
play(void **state, uint32_t lanes, void (*const *body)(struct stage *stage))
{
	cast.scene = *state;
	const struct wf_snapshots_opts set = {
		.dir = cast.scene->dir, .steps = 2, .keep = 2, .resume = WF_RESUME_NEVER};
	const struct stage_opts opts = {
		.trainers = 1, .lanes = lanes, .pserver_count = 2, .snapshots = &set};
	stage_play(&opts, run, body);
}

/* A test that is a script. */
#define PLAYED(name)                                                                               \
	static void name(void **state)                                                             \
	{                                                                                          \
		static void (*const body)(struct stage * stage) = name##_body;                     \
		play(state, 1, &body);                                                             \
	}

/* ---- who comes ---- */

static void
the_job_waits_for_pserver_1_body(struct stage *stage)
{
	struct puppet *puppet = send_job(stage);
	stage_check_waits(stage, WF_LANE_AWAITS_START, "pserver 1 to come to pserver 0");
	struct member *member = add_member(stage, 0);
	member->is_silent = true;
	come(stage, member);
	CHECK(stage, member->loads == 1 && member->runs == 0 && !puppet->peer.resumed);
	stage_check_waits(stage, WF_LANE_AWAITS_START, "pserver 1 to look at");
	member->is_silent = false;
	send_loaded(member, 1);
	stage_settle(stage);
	CHECK(stage, member->loads == 1 && member->runs == 1);
	initialise(stage);
	check_goes_on(stage, member);
	CHECK(stage, member->loads == 1 && member->runs == 1);
}
PLAYED(the_job_waits_for_pserver_1)

struct wrong_hello {
	uint32_t idx, pservers;
	uint64_t job, tensors; /* added to the digests */
	enum weft_status status;
	const char *why;
};

static void
hellos_of_other_jobs_are_refused_body(struct stage *stage)
{
	static const struct wrong_hello wrong[] = {
		{.idx = 0, .pservers = 2, .status = WEFT_UNAVAILABLE, .why = "pserver 0 of 2 has"},
		{.idx = 1, .pservers = 3, .status = WEFT_UNAVAILABLE, .why = "pserver 1 of 3 has"},
		{.idx = 2, .pservers = 3, .status = WEFT_UNAVAILABLE, .why = "pserver 2 of 3 has"},
		{.idx = 4000, .pservers = 4096, .status = WEFT_UNAVAILABLE, .why = "another job"},
		{.idx = 2, .pservers = 2, .status = WEFT_PROTOCOL, .why = "trainer_count"},
		{.idx = 1, .pservers = 2, .job = 1, .status = WEFT_UNAVAILABLE, .why = "another"},
		{.idx = 1, .pservers = 2, .tensors = 1, .status = WEFT_UNAVAILABLE, .why = "anot"},
	};
	struct member *member = add_member(stage, 0);
	struct member *liar = add_member(stage, 1);
	const struct wf_hello good = liar->peer.hello;
	check_refused(stage, liar, WEFT_UNAVAILABLE, "no job yet");
	(void)send_job(stage);
	for (unsigned round = 0; round < 2; round++) {
		for (size_t i = 0; i < WF_ARRAY_COUNT(wrong); i++) {
			liar->peer.hello = good;
			liar->peer.hello.trainer_id = wrong[i].idx;
			liar->peer.hello.trainer_count = wrong[i].pservers;
			liar->peer.hello.pserver_count = wrong[i].pservers;
			liar->peer.hello.job_digest += wrong[i].job;
			liar->peer.hello.tensors_digest += wrong[i].tensors;
			check_refused(stage, liar, wrong[i].status, wrong[i].why);
		}
		if (round == 0) {
			come(stage, member);
			initialise(stage);
		}
	}
	check_goes_on(stage, member);
	CHECK(stage, !member->peer.down);
}
PLAYED(hellos_of_other_jobs_are_refused)

static void
other_lanes_are_no_registrar_body(struct stage *stage)
{
	struct member *liar = add_member(stage, 1);
	struct puppet *puppet = puppet_add(stage, 0, 1);
	liar->peer.to.port = STAGE_PORT + 1;
	for (unsigned round = 0; round < 2; round++) {
		check_refused(stage, liar, WEFT_MISMATCH,
			      "this is lane 1 of a pserver, and the registrar is lane 0");
		if (round == 0) {
			puppet_connect(puppet);
			stage_settle(stage);
			puppet_send_job(puppet);
			stage_settle(stage);
		}
	}
}

static void
other_lanes_are_no_registrar(void **state)
{
	static void (*const body)(struct stage * stage) = other_lanes_are_no_registrar_body;
	play(state, 2, &body);
}

/* ---- what comes ---- */

/* What a liar sends. NULL: a PUT. */
struct lie {
	struct wf_msg (*make)(const struct member *member);
	bool is_before_join;
};

static struct wf_msg
loaded(const struct member *member)
{
	struct wf_msg msg;
	(void)member;
	wf_registry_loaded_encode(&(struct wf_registry_loaded){.epoch = 9}, &msg);
	return msg;
}

static struct wf_msg
bad(const struct member *member)
{
	struct wf_msg msg;
	(void)member;
	wf_registry_bad_encode(&(struct wf_registry_bad){.epoch = 9, .reason = "no"}, &msg);
	return msg;
}

static struct wf_msg
failed(const struct member *member)
{
	struct wf_msg msg;
	(void)member;
	wf_registry_failed_encode(
		&(struct wf_registry_failed){.epoch = 1, .border = 2, .reason = "no"}, &msg);
	return msg;
}

static struct wf_msg
load(const struct member *member)
{
	struct wf_msg msg;
	(void)member;
	wf_registry_load_encode(&(struct wf_registry_load){.epoch = 1}, &msg);
	return msg;
}

static struct wf_msg
go(const struct member *member)
{
	struct wf_msg msg;
	(void)member;
	wf_registry_run_encode(&(struct wf_registry_run){.epoch = 1}, &msg);
	return msg;
}

static struct wf_msg
snapshot(const struct member *member)
{
	struct wf_msg msg;
	(void)member;
	wf_registry_snapshot_encode(&(struct wf_registry_snapshot){.epoch = 1, .border = 2}, &msg);
	return msg;
}

static struct wf_msg
nonsense(const struct member *member)
{
	struct wf_msg msg = load(member);
	msg.head.type = 99;
	return msg;
}

static struct wf_msg
short_part(const struct member *member)
{
	struct wf_msg msg = part_message(member);
	msg.body_bytes--;
	return msg;
}

static struct wf_msg
other_lanes(const struct member *member)
{
	struct wf_msg msg;
	(void)member;
	wf_registry_join_encode(&(struct wf_registry_join){.dense_lanes = 2}, &msg);
	return msg;
}

static struct wf_msg
a_trainers_step(const struct member *member)
{
	struct wf_msg msg;
	(void)member;
	wf_msg_step_encode(&(struct wf_msg_step){.step = 1, .samples = 1}, &msg);
	return msg;
}

static struct wf_msg
a_trainers_goodbye(const struct member *member)
{
	struct wf_msg msg;
	(void)member;
	wf_msg_goodbye_encode(&(struct wf_msg_goodbye){.ack = false}, &msg);
	return msg;
}

static const struct lie lies[] = {
	{loaded, true},
	{bad, true},
	{failed, true},
	{part_message, true},
	{loaded, false},
	{bad, false},
	{load, false},
	{go, false},
	{snapshot, false},
	{nonsense, false},
	{nonsense, true},
	{short_part, false},
	{other_lanes, true},
	{other_lanes, false},
	{a_trainers_step, true},
	{a_trainers_step, false},
	{a_trainers_goodbye, false},
	{NULL, false},
};

/* Into a slot of the trainer's, whose key it has. */
static void
put(struct stage *stage, struct member *member)
{
	struct wf_op op = {.kind = WF_OP_PUT,
			   .region = member->peer.region,
			   .src = member->peer.slab.base,
			   .bytes = 64,
			   .tag = wf_tag(0, 1)};
	const struct puppet *puppet = &stage->puppet[0];
	if (puppet->peer.granted) {
		memcpy(op.key.bytes, puppet->peer.grant.key, sizeof(op.key.bytes));
	}
	(void)peer_post(&member->peer, &op);
}

static void
tell(struct stage *stage, struct member *member, const struct lie *lie)
{
	meet(stage, member);
	if (!lie->is_before_join) {
		send_join(member);
		stage_settle(stage);
	}
	CHECK(stage, !member->peer.down);
	if (lie->make != NULL) {
		const struct wf_msg msg = lie->make(member);
		send(member, &msg);
	} else {
		put(stage, member);
	}
	stage_settle(stage);
	CHECK(stage, is_closed(member));
}

static void
a_pserver_that_lies_loses_its_connection_body(struct stage *stage)
{
	struct member *member = add_member(stage, 0);
	(void)send_job(stage);
	for (unsigned round = 0; round < 2; round++) {
		member->is_silent = true;
		for (size_t i = 0; i < WF_ARRAY_COUNT(lies); i++) {
			if (round > 0 || lies[i].make != NULL) {
				tell(stage, member, &lies[i]);
			}
		}
		CHECK(stage, stage->lane[0]->state == WF_LANE_RUNNING);
		CHECK(stage, !stage->puppet[0].peer.down);
		member->is_silent = false;
		come(stage, member);
		if (round == 0) {
			initialise(stage);
		}
		check_goes_on(stage, member);
		peer_disconnect(&member->peer, WF_DISCONNECT_NOW);
		stage_settle(stage);
	}
}
PLAYED(a_pserver_that_lies_loses_its_connection)

/* ---- twice, and again ---- */

static void
a_second_connection_waits_for_the_end_of_the_first_body(struct stage *stage)
{
	struct member *first = add_member(stage, 0);
	struct member *second = add_member(stage, 1);
	(void)send_job(stage);
	first->is_silent = true;
	come(stage, first);
	second->peer.hello.incarnation++;
	check_refused(stage, second, WEFT_UNAVAILABLE, "is connected, and is another process");
	CHECK(stage, !first->peer.down);
	second->peer.hello.incarnation--;
	second->peer.hello.path = first->peer.hello.path;
	check_refused(stage, second, WEFT_UNAVAILABLE, "pserver 1 is connected; try again");
	CHECK(stage, is_closed(first));
	come(stage, second);
	CHECK(stage, second->loads == 1 && second->runs == 1);
	initialise(stage);
	check_goes_on(stage, second);
}
PLAYED(a_second_connection_waits_for_the_end_of_the_first)

static void
another_process_is_not_in_a_job_that_has_begun_body(struct stage *stage)
{
	struct member *member = add_member(stage, 0);
	struct member *other = add_member(stage, 1);
	(void)send_job(stage);
	other->peer.hello.incarnation++;
	member->is_silent = true;
	come(stage, member);
	peer_disconnect(&member->peer, WF_DISCONNECT_NOW);
	stage_settle(stage);
	come(stage, other);
	CHECK(stage, other->runs == 1);
	initialise(stage);
	peer_disconnect(&other->peer, WF_DISCONNECT_NOW);
	stage_settle(stage);
	meet(stage, member);
	send_join(member);
	stage_settle(stage);
	CHECK(stage, is_closed(member));
	come(stage, other);
	check_goes_on(stage, other);
}
PLAYED(another_process_is_not_in_a_job_that_has_begun)

/* The connection breaks after message `cut` of the beginning or of the first snapshots, and comes
 * again. */
static void
cut_and_come_again(struct stage *stage, uint32_t cut)
{
	struct member *member = add_member(stage, 0);
	member->cut_at = cut;
	(void)send_job(stage);
	come(stage, member);
	for (unsigned i = 0; i < 12; i++) {
		if (member->peer.conn == NULL && !script_failed(&stage->script)) {
			come(stage, member);
		}
		if (stage->puppet[0].peer.resumed) {
			if (cast.step == 0) {
				initialise(stage);
			}
			step(stage);
		}
	}
	CHECK(stage, member->messages > cut);
	check_goes_on(stage, member);
}

static uint32_t cut_now;

static void
cut_body(struct stage *stage)
{
	cut_and_come_again(stage, cut_now);
}

static void
a_connection_may_break_after_any_message(void **state)
{
	static void (*const body)(struct stage * stage) = cut_body;
	for (cut_now = 1; cut_now <= CUTS_MAX; cut_now++) {
		play(state, 1, &body);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SCENE(the_job_waits_for_pserver_1),
		WITH_SCENE(hellos_of_other_jobs_are_refused),
		WITH_SCENE(other_lanes_are_no_registrar),
		WITH_SCENE(a_pserver_that_lies_loses_its_connection),
		WITH_SCENE(a_second_connection_waits_for_the_end_of_the_first),
		WITH_SCENE(another_process_is_not_in_a_job_that_has_begun),
		WITH_SCENE(a_connection_may_break_after_any_message),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
