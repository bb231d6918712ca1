/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a pserver's connection to the registrar, against a registrar that lies, shows another
 * directory, is cut off, or says nothing: lane 0 of pserver 1 is real, and so is its directory; the
 * registrar and the trainer are scripted. Thread: the test's. */
#include "tests/unit/pserver/stage.h"

#include "saved/epochs.h"
#include "tests/unit/saved/setup.h"
#include "wire/registry_messages.h"

#define REGISTRAR_PORT 7300u
#define DEADLINE_NS (300 * WF_NS_PER_S) /* the stage's */

/* What stands in pserver 0's place. */
struct registrar {
	struct peer peer; /* first: its functions cast back */
	struct wf_transport *transport;
	struct wf_welcome no; /* refusal 0: it welcomes */
	uint32_t hellos, joins, loadeds, bads, parts, faileds;
	struct wf_registry_join join; /* the last ones */
	struct wf_registry_loaded loaded;
	struct wf_registry_bad bad;
	struct wf_registry_part part;
	struct wf_registry_failed failed;
};

/* One at a time. */
static struct {
	struct scene *scene;
	bool (*turn)(struct script *script); /* the stage's */
	struct registrar registrar;
	uint64_t step; /* the trainer's last one */
} cast;

/* ---- the registrar ---- */

static enum weft_status
recv(struct peer *peer, const struct wf_head *head, const uint8_t *body)
{
	struct registrar *self = (struct registrar *)peer;
	if (head->service != WF_SERVICE_REGISTRY) {
		return WEFT_PROTOCOL;
	}
	switch (head->type) {
	case WF_REGISTRY_JOIN:
		self->joins++;
		return wf_registry_join_decode(head, body, &self->join);
	case WF_REGISTRY_LOADED:
		self->loadeds++;
		return wf_registry_loaded_decode(head, body, &self->loaded);
	case WF_REGISTRY_BAD:
		self->bads++;
		return wf_registry_bad_decode(head, body, &self->bad);
	case WF_REGISTRY_PART:
		self->parts++;
		return wf_registry_part_decode(head, body, &self->part);
	case WF_REGISTRY_FAILED:
		self->faileds++;
		return wf_registry_failed_decode(head, body, &self->failed);
	default:
		return WEFT_PROTOCOL;
	}
}

static const struct peer_ops ops = {.recv = recv};

static void
on_hello(struct registrar *self, const struct wf_event *event)
{
	uint8_t bytes[WF_HELLO_MAX];
	struct wf_hello hello;
	const struct wf_welcome yes = {.version = WF_WIRE_VERSION,
				       .incarnation = 66,
				       .slot_count = 4,
				       .msg_bytes_max = WF_MSG_BODY_MAX,
				       .put_bytes_max = 65536};
	script_check(self->peer.script,
		     wf_hello_decode(event->up.blob, event->up.blob_bytes, &hello) == WEFT_OK,
		     "a HELLO", __FILE__, __LINE__);
	self->hellos++;
	if (self->no.refusal == WEFT_OK) {
		peer_accept(&self->peer, event->conn, &hello, &yes);
		return;
	}
	size_t used = wf_welcome_encode(&self->no, bytes);
	script_check(self->peer.script,
		     wf_transport_answer(event->conn, false, bytes, used) == WEFT_OK, "an answer",
		     __FILE__, __LINE__);
}

static bool
poll_registrar(struct registrar *self)
{
	struct wf_event events[16];
	unsigned count = 0;
	if (self->transport == NULL ||
	    wf_transport_poll(self->transport, events, 16, &count) != WEFT_OK) {
		return false;
	}
	for (unsigned i = 0; i < count; i++) {
		if (events[i].kind == WF_EVENT_UP) {
			on_hello(self, &events[i]);
		} else {
			peer_event(&self->peer, &events[i]);
		}
	}
	peer_flush(&self->peer);
	return count > 0;
}

static bool
turn(struct script *script)
{
	bool busy = cast.turn(script);
	return poll_registrar(&cast.registrar) || busy;
}

static void
listen(struct stage *stage)
{
	struct registrar *self = &cast.registrar;
	const struct wf_transport_opts opts = {.env = stage->script.env, .paths = "sim"};
	const struct wf_host at = {.name = "0.0.0.0", .port = REGISTRAR_PORT};
	uint16_t port;
	self->peer.ops = &ops;
	CHECK(stage, wf_transport_open("paths", &opts, &self->transport) == WEFT_OK);
	CHECK(stage, wf_transport_listen(self->transport, &at, &port) == WEFT_OK);
	peer_open_at(&self->peer, &stage->script, self->transport);
}

static void
stop_listening(void)
{
	peer_close(&cast.registrar.peer);
	wf_transport_close(cast.registrar.transport);
	cast.registrar.transport = NULL;
}

static void
send_load(struct stage *stage, const struct wf_registry_load *load)
{
	struct wf_msg msg;
	wf_registry_load_encode(load, &msg);
	peer_send(&cast.registrar.peer, &msg);
	stage_settle(stage);
}

static void
send_run(struct stage *stage, const struct wf_registry_run *go)
{
	struct wf_msg msg;
	wf_registry_run_encode(go, &msg);
	peer_send(&cast.registrar.peer, &msg);
	stage_settle(stage);
}

static void
send_snapshot(struct stage *stage, uint64_t epoch, uint64_t border)
{
	const struct wf_registry_snapshot snapshot = {.epoch = epoch, .border = border};
	struct wf_msg msg;
	wf_registry_snapshot_encode(&snapshot, &msg);
	peer_send(&cast.registrar.peer, &msg);
	stage_settle(stage);
}

/* What the registrar did last has cost it the connection, and the pserver has come again. */
static void
check_comes_again(struct stage *stage, uint32_t joins)
{
	stage_run(stage, WF_NS_PER_S);
	CHECK(stage, cast.registrar.joins == joins + 1 && cast.registrar.peer.conn != NULL);
	CHECK(stage, stage->lane[0]->state == WF_LANE_RUNNING);
}

/* ---- the directory ---- */

/* The record of epoch 1, as pserver 0 makes it. */
static void
make_record(struct stage *stage)
{
	struct wf_env *env = stage->script.env;
	const struct wf_epoch_record record = {.has_base = false};
	struct wf_saved_folder *folder = wf_snapshots_folder(stage->snapshots);
	struct wf_epochs epochs = {0};
	CHECK(stage, wf_epochs_read(env, folder, &epochs) == WEFT_OK);
	CHECK(stage, wf_epochs_add(env, folder, &record, &epochs) == WEFT_OK);
	wf_epochs_fini(env, &epochs);
}

/* A snapshot without the files of its parts, which nobody reads. Its checksum. */
static uint32_t
make_snapshot(struct stage *stage, struct wf_snapshot_id id)
{
	struct wf_env *env = stage->script.env;
	struct wf_manifest_tensor tensor = {.name = "w", .rows = 2, .cols = 2};
	struct wf_manifest_part part[2];
	const struct wf_manifest manifest = {.about = about_pass(1, id.step),
					     .parts = {.epoch = id.epoch,
						       .dense_lanes = 1,
						       .pserver_count = 2,
						       .trainer_count = 1,
						       .part_count = 2,
						       .part = part},
					     .tensor_count = 1,
					     .tensor = &tensor};
	struct wf_saved_folder *folder = wf_snapshots_folder(stage->snapshots);
	static struct wf_snapshot_file file;
	struct wf_snapshot *snapshot = NULL;
	uint32_t crc = 0;
	for (uint32_t i = 0; i < 2; i++) {
		wf_manifest_part_at(&manifest.parts, i, &part[i]);
		part[i].bytes = 100;
	}
	/* Makes the directory, and leaves nothing in it. */
	CHECK(stage, wf_snapshot_part_begin(folder, id, "dense-0", &file) == WEFT_OK);
	CHECK(stage, wf_snapshot_part_end(&file, WEFT_IO) == WEFT_IO);
	CHECK(stage, wf_snapshot_manifest_write(folder, id, &manifest) == WEFT_OK);
	CHECK(stage,
	      wf_snapshot_open(env, wf_saved_posix(), cast.scene->dir, id, &snapshot) == WEFT_OK);
	CHECK(stage, wf_snapshot_crc(snapshot, &crc) == WEFT_OK);
	wf_snapshot_close(snapshot);
	return crc;
}

/* ---- the trainer, and the whole ---- */

/* The job is here, and waits for the registrar. */
static struct puppet *
send_job(struct stage *stage)
{
	struct puppet *puppet = puppet_add(stage, 0, 0);
	puppet_connect(puppet);
	stage_settle(stage);
	puppet_send_job(puppet);
	stage_settle(stage);
	CHECK(stage, puppet->peer.up && !puppet->peer.down && !puppet->peer.resumed);
	return puppet;
}

/* The registrar listens, and the pserver has come. */
static struct puppet *
meet(struct stage *stage)
{
	listen(stage);
	struct puppet *puppet = send_job(stage);
	stage_run(stage, WF_NS_PER_S);
	CHECK(stage, cast.registrar.joins == 1 && cast.registrar.join.serves == 0);
	CHECK(stage, cast.registrar.join.dense_lanes == 1 && cast.registrar.join.sparse_lanes == 0);
	CHECK(stage, cast.registrar.peer.hello.trainer_id == 1);
	CHECK(stage, cast.registrar.peer.hello.trainer_count == 2);
	return puppet;
}

static void
initialise(struct stage *stage, struct puppet *puppet)
{
	CHECK(stage, puppet->peer.resumed && !puppet->peer.down);
	if (!script_failed(&stage->script)) {
		puppet_grant(puppet, 0);
		puppet_have(puppet);
		puppet_initialise(puppet);
		stage_settle(stage);
	}
}

static void
step(struct stage *stage, struct puppet *puppet)
{
	if (!script_failed(&stage->script)) {
		puppet_continue(puppet, ++cast.step);
		stage_settle(stage);
		stage_expect_step(stage, cast.step);
		CHECK(stage, puppet_values_are_right(puppet) && !puppet->peer.down);
	}
}

/* It serves in epoch 1. */
static struct puppet *
serve(struct stage *stage)
{
	struct puppet *puppet = meet(stage);
	send_load(stage, &(struct wf_registry_load){.epoch = 1});
	CHECK(stage, cast.registrar.loadeds == 1 && cast.registrar.loaded.epoch == 1);
	make_record(stage);
	CHECK(stage, !puppet->peer.resumed);
	send_run(stage, &(struct wf_registry_run){.epoch = 1});
	stage_run(stage, WF_NS_PER_S);
	initialise(stage, puppet);
	return puppet;
}

/* The job ends, and its trainers get the reason. */
static void
check_ends(struct stage *stage, const struct puppet *puppet, const char *why)
{
	CHECK(stage, puppet->peer.aborted && !puppet->peer.resumed);
	CHECK_SAYS(stage, puppet->peer.abort.reason, why);
}

static void
run(struct stage *stage)
{
	void (*const *body)(struct stage * stage) = stage->arg;
	cast.turn = stage->script.turn;
	cast.registrar = (struct registrar){0};
	cast.step = 0;
	stage->script.turn = turn;
	(*body)(stage);
	stop_listening();
}

static void
play(void **state, void (*const *body)(struct stage *stage))
{
	cast.scene = *state;
	const struct wf_snapshots_opts set = {.dir = cast.scene->dir,
					      .registrar = "ps:7300",
					      .steps = 2,
					      .keep = 2,
					      .resume = WF_RESUME_AUTO};
	const struct stage_opts opts = {
		.trainers = 1, .pserver_count = 2, .pserver_idx = 1, .snapshots = &set};
	stage_play(&opts, run, body);
}

#define PLAYED(name)                                                                               \
	static void name(void **state)                                                             \
	{                                                                                          \
		static void (*const body)(struct stage * stage) = name##_body;                     \
		play(state, &body);                                                                \
	}

/* ---- the beginning ---- */

static void
a_pserver_begins_when_it_is_told_to_body(struct stage *stage)
{
	struct puppet *puppet = serve(stage);
	for (unsigned i = 0; i < 3; i++) {
		step(stage, puppet);
	}
	CHECK(stage, cast.registrar.hellos == 1 && cast.registrar.bads == 0);
}
PLAYED(a_pserver_begins_when_it_is_told_to)

static void
it_begins_with_nothing_else_than_what_it_has_loaded_body(struct stage *stage)
{
	const struct wf_snapshot_id id = {.epoch = 1, .step = 5};
	struct puppet *puppet = meet(stage);
	struct registrar *registrar = &cast.registrar;
	make_record(stage);
	send_run(stage, &(struct wf_registry_run){.epoch = 1});
	check_comes_again(stage, 1);
	send_load(stage, &(struct wf_registry_load){.epoch = 1});
	CHECK(stage, registrar->loadeds == 1);
	send_run(stage, &(struct wf_registry_run){.epoch = 2});
	check_comes_again(stage, 2);
	CHECK(stage, registrar->join.loaded_epoch == 1 && registrar->join.serves == 0);
	send_run(stage, &(struct wf_registry_run){.epoch = 2, .base = {.epoch = 1, .step = 5}});
	check_comes_again(stage, 3);
	send_load(stage, &(struct wf_registry_load){.epoch = 2, .base = {id.epoch, id.step}});
	CHECK(stage, registrar->bads == 1); /* there is no such snapshot */
	send_run(stage, &(struct wf_registry_run){.epoch = 2, .base = {.epoch = 1, .step = 5}});
	check_comes_again(stage, 4);
	CHECK(stage, registrar->join.loaded_epoch == 0 && !puppet->peer.resumed);
	send_load(stage, &(struct wf_registry_load){.epoch = 1});
	send_run(stage, &(struct wf_registry_run){.epoch = 1});
	stage_run(stage, WF_NS_PER_S);
	initialise(stage, puppet);
	step(stage, puppet);
}
PLAYED(it_begins_with_nothing_else_than_what_it_has_loaded)

static void
a_snapshot_that_it_does_not_see_is_bad_body(struct stage *stage)
{
	const struct wf_snapshot_id id = {.epoch = 1, .step = 5};
	struct wf_registry_load load = {.epoch = 2, .base = {.epoch = 1, .step = 5}, .crc = 7};
	struct registrar *registrar = &cast.registrar;
	(void)meet(stage);
	send_load(stage, &load);
	CHECK(stage, registrar->bads == 1 && registrar->bad.epoch == 2);
	CHECK(stage, registrar->bad.base.epoch == 1 && registrar->bad.base.step == 5);
	CHECK_SAYS(stage, registrar->bad.reason, "epoch-00001-step-0000000005");
	uint32_t crc = make_snapshot(stage, id);
	load.crc = crc ^ 1;
	send_load(stage, &load);
	CHECK(stage, registrar->bads == 2);
	CHECK_SAYS(stage, registrar->bad.reason, "another snapshot of that step than pserver 0");
	CHECK(stage, registrar->loadeds == 0);
	load.crc = crc;
	send_load(stage, &load);
	CHECK(stage, registrar->bads == 2 && registrar->loadeds == 1);
	CHECK(stage, registrar->loaded.epoch == 2 && registrar->loaded.base.step == 5);
	CHECK(stage, registrar->hellos == 1);
}
PLAYED(a_snapshot_that_it_does_not_see_is_bad)

static void
it_serves_when_its_directory_has_the_record_body(struct stage *stage)
{
	struct puppet *puppet = meet(stage);
	send_load(stage, &(struct wf_registry_load){.epoch = 1});
	send_run(stage, &(struct wf_registry_run){.epoch = 1});
	stage_check_waits(stage, WF_LANE_AWAITS_START, "to show what pserver 0 has written there");
	send_snapshot(stage, 1, 2);
	CHECK(stage, !puppet->peer.resumed && cast.registrar.peer.conn != NULL);
	make_record(stage);
	stage_run(stage, WF_NS_PER_S);
	initialise(stage, puppet);
	step(stage, puppet);
	CHECK(stage, cast.registrar.parts == 0);
	step(stage, puppet);
	CHECK(stage, cast.registrar.parts == 1 && cast.registrar.part.border == 2);
}
PLAYED(it_serves_when_its_directory_has_the_record)

static void
a_record_that_never_comes_ends_the_job_body(struct stage *stage)
{
	struct puppet *puppet = meet(stage);
	send_load(stage, &(struct wf_registry_load){.epoch = 1});
	send_run(stage, &(struct wf_registry_run){.epoch = 1});
	stage_run(stage, DEADLINE_NS - 10 * WF_NS_PER_S);
	CHECK(stage, !puppet->peer.aborted && !puppet->peer.resumed);
	stage_run(stage, 10 * WF_NS_PER_S);
	stage_settle(stage);
	check_ends(stage, puppet, "does not show what pserver 0 has written");
}
PLAYED(a_record_that_never_comes_ends_the_job)

static void
a_registrar_that_says_nothing_ends_the_job_body(struct stage *stage)
{
	struct puppet *puppet = meet(stage);
	stage_run(stage, DEADLINE_NS - 10 * WF_NS_PER_S);
	CHECK(stage, !puppet->peer.aborted && !puppet->peer.resumed);
	stage_run(stage, 10 * WF_NS_PER_S);
	stage_settle(stage);
	check_ends(stage, puppet, "did not begin the job in time: it waits for another pserver");
	CHECK(stage, cast.registrar.hellos == 1);
}
PLAYED(a_registrar_that_says_nothing_ends_the_job)

static void
a_registrar_that_is_not_there_ends_the_job_body(struct stage *stage)
{
	struct puppet *puppet = send_job(stage);
	stage_check_waits(stage, WF_LANE_AWAITS_START, "pserver 0 at ps:7300");
	stage_run(stage, DEADLINE_NS);
	stage_settle(stage);
	check_ends(stage, puppet, "the registrar at ps:7300 did not begin the job in time");
}
PLAYED(a_registrar_that_is_not_there_ends_the_job)

static void
a_registrar_that_has_no_job_yet_is_asked_again_body(struct stage *stage)
{
	struct registrar *registrar = &cast.registrar;
	listen(stage);
	registrar->no = (struct wf_welcome){.refusal = WEFT_UNAVAILABLE, .reason = "no job yet"};
	struct puppet *puppet = send_job(stage);
	stage_run(stage, WF_NS_PER_S);
	CHECK(stage, registrar->hellos > 2 && registrar->joins == 0 && !puppet->peer.aborted);
	registrar->no.refusal = WEFT_OK;
	stage_run(stage, WF_NS_PER_S);
	CHECK(stage, registrar->joins == 1 && !puppet->peer.aborted);
}
PLAYED(a_registrar_that_has_no_job_yet_is_asked_again)

static void
a_registrar_that_refuses_for_good_ends_the_job_body(struct stage *stage)
{
	listen(stage);
	cast.registrar.no =
		(struct wf_welcome){.refusal = WEFT_UNAVAILABLE, .reason = "no job yet"};
	struct puppet *puppet = send_job(stage);
	cast.registrar.no = (struct wf_welcome){.refusal = WEFT_MISMATCH, .reason = "not this one"};
	stage_run(stage, WF_NS_PER_S);
	check_ends(stage, puppet, "pserver 1 is refused at --registrar=ps:7300: not this one");
}
PLAYED(a_registrar_that_refuses_for_good_ends_the_job)

/* ---- while it serves ---- */

static void
orders_of_another_epoch_close_the_connection_body(struct stage *stage)
{
	struct puppet *puppet = serve(stage);
	struct registrar *registrar = &cast.registrar;
	send_load(stage, &(struct wf_registry_load){.epoch = 2});
	check_comes_again(stage, 1);
	CHECK(stage, registrar->join.serves == 1 && registrar->join.loaded_epoch == 1);
	send_load(stage, &(struct wf_registry_load){.epoch = 1});
	check_comes_again(stage, 2);
	send_snapshot(stage, 2, 2);
	check_comes_again(stage, 3);
	send_run(stage, &(struct wf_registry_run){.epoch = 2});
	check_comes_again(stage, 4);
	send_run(stage, &(struct wf_registry_run){.epoch = 1}); /* it does already */
	CHECK(stage, registrar->peer.conn != NULL && registrar->joins == 5);
	step(stage, puppet);
	step(stage, puppet);
	CHECK(stage, registrar->parts == 0 && registrar->faileds == 0 && registrar->loadeds == 1);
}
PLAYED(orders_of_another_epoch_close_the_connection)

static void
parts_are_reported_until_they_have_arrived_body(struct stage *stage)
{
	struct puppet *puppet = serve(stage);
	struct registrar *registrar = &cast.registrar;
	send_snapshot(stage, 1, 2);
	step(stage, puppet);
	CHECK(stage, registrar->parts == 0);
	step(stage, puppet);
	CHECK(stage, registrar->parts == 1 && registrar->part.border == 2);
	CHECK(stage, registrar->part.lane == 1 && registrar->part.service == WF_SERVICE_DENSE);
	const struct wf_registry_part first = registrar->part;
	peer_disconnect(&registrar->peer, WF_DISCONNECT_NOW);
	check_comes_again(stage, 1);
	CHECK(stage, registrar->parts == 1); /* nobody has asked again */
	send_snapshot(stage, 1, 2);
	CHECK(stage, registrar->parts == 2 && registrar->part.crc == first.crc);
	CHECK(stage, registrar->part.bytes == first.bytes && registrar->faileds == 0);
	send_snapshot(stage, 1, 3);
	peer_disconnect(&registrar->peer, WF_DISCONNECT_NOW);
	stage_settle(stage);
	step(stage, puppet); /* it may be without a connection */
	check_comes_again(stage, 2);
	send_snapshot(stage, 1, 3);
	CHECK(stage, registrar->parts == 3 && registrar->part.border == 3);
}
PLAYED(parts_are_reported_until_they_have_arrived)

static void
a_border_that_has_passed_has_no_parts_body(struct stage *stage)
{
	struct puppet *puppet = serve(stage);
	struct registrar *registrar = &cast.registrar;
	for (unsigned i = 0; i < 3; i++) {
		step(stage, puppet);
	}
	send_snapshot(stage, 1, 2);
	step(stage, puppet);
	CHECK(stage, registrar->parts == 0 && registrar->faileds == 1);
	CHECK(stage, registrar->failed.border == 2 && registrar->failed.epoch == 1);
	CHECK_SAYS(stage, registrar->failed.reason, "had applied step 4");
	send_snapshot(stage, 1, 5);
	step(stage, puppet);
	CHECK(stage, registrar->parts == 1 && registrar->part.border == 5);
}
PLAYED(a_border_that_has_passed_has_no_parts)

static void
what_only_a_registrar_gets_closes_the_connection_body(struct stage *stage)
{
	struct puppet *puppet = serve(stage);
	struct registrar *registrar = &cast.registrar;
	struct wf_msg msg[7];
	wf_registry_join_encode(&(struct wf_registry_join){.dense_lanes = 1}, &msg[0]);
	wf_registry_loaded_encode(&(struct wf_registry_loaded){.epoch = 1}, &msg[1]);
	wf_registry_bad_encode(&(struct wf_registry_bad){.epoch = 1, .reason = "no"}, &msg[2]);
	wf_registry_failed_encode(
		&(struct wf_registry_failed){.epoch = 1, .border = 2, .reason = "no"}, &msg[3]);
	wf_msg_step_encode(&(struct wf_msg_step){.step = 1, .samples = 1}, &msg[4]);
	wf_msg_goodbye_encode(&(struct wf_msg_goodbye){.ack = false}, &msg[5]);
	msg[6] = msg[0];
	msg[6].head.type = 99;
	for (uint32_t i = 0; i < WF_ARRAY_COUNT(msg); i++) {
		peer_send(&registrar->peer, &msg[i]);
		stage_settle(stage);
		check_comes_again(stage, 1 + i);
		CHECK(stage, registrar->join.serves == 1);
	}
	step(stage, puppet);
}
PLAYED(what_only_a_registrar_gets_closes_the_connection)

/* The lanes of pserver 1 are no registrar. */
static void
another_pserver_that_looks_here_is_refused_body(struct stage *stage)
{
	static const struct peer_ops none = {.recv = NULL};
	struct puppet *puppet = serve(stage);
	struct peer peer = {.ops = &none};
	(void)puppet;
	peer.to = (struct wf_host){.name = "ps", .port = STAGE_PORT};
	peer.hello = puppet->peer.hello;
	peer.hello.service = WF_SERVICE_REGISTRY;
	peer.hello.pserver_idx = 0;
	peer.hello.trainer_id = 1;
	peer.hello.trainer_count = 2;
	peer.hello.path = 0;
	peer_open(&peer, &stage->script, "sim", 4096);
	peer_connect(&peer);
	for (unsigned i = 0; i < 20 && !peer.down; i++) {
		stage_settle(stage);
		(void)peer_poll(&peer);
	}
	CHECK(stage, peer.down && peer.welcome.refusal == WEFT_MISMATCH);
	CHECK_SAYS(stage, peer.welcome.reason, "looks for pserver 0, and this is pserver 1");
	peer_close(&peer);
}
PLAYED(another_pserver_that_looks_here_is_refused)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SCENE(a_pserver_begins_when_it_is_told_to),
		WITH_SCENE(it_begins_with_nothing_else_than_what_it_has_loaded),
		WITH_SCENE(a_snapshot_that_it_does_not_see_is_bad),
		WITH_SCENE(it_serves_when_its_directory_has_the_record),
		WITH_SCENE(a_record_that_never_comes_ends_the_job),
		WITH_SCENE(a_registrar_that_says_nothing_ends_the_job),
		WITH_SCENE(a_registrar_that_is_not_there_ends_the_job),
		WITH_SCENE(a_registrar_that_has_no_job_yet_is_asked_again),
		WITH_SCENE(a_registrar_that_refuses_for_good_ends_the_job),
		WITH_SCENE(orders_of_another_epoch_close_the_connection),
		WITH_SCENE(parts_are_reported_until_they_have_arrived),
		WITH_SCENE(a_border_that_has_passed_has_no_parts),
		WITH_SCENE(what_only_a_registrar_gets_closes_the_connection),
		WITH_SCENE(another_pserver_that_looks_here_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
