/* SPDX-License-Identifier: Apache-2.0 */
/* Which trainers are admitted, which are refused and with what reason, and which take over. Thread:
 * the test's. */
#include "tests/unit/pserver/stage.h"
#include "transport/paths/paths_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct stranger {
	const char *name;
	void (*dress)(struct puppet *puppet);
	enum weft_status status;
	const char *says;
	uint32_t lanes;                /* of the pserver */
	uint32_t num_gradient_servers; /* of the pserver */
};

/* Trainers 0 and 1, puppets `zero` and `one`, do one step. */
static void
work(struct stage *stage, struct puppet *zero, struct puppet *one)
{
	puppet_initialise(zero);
	puppet_initialise(one);
	stage_settle(stage);
	puppet_continue(zero, 1);
	puppet_continue(one, 1);
	stage_settle(stage);
	stage_expect_step(stage, 1);
	CHECK(stage, puppet_values_are_right(zero) && puppet_values_are_right(one));
}

static void
refuse(struct stage *stage)
{
	const struct stranger *stranger = stage->arg;
	struct puppet *zero = puppet_add(stage, 0, 0);
	struct puppet *one = puppet_add(stage, 1, 0);
	struct puppet *odd = puppet_add(stage, 1, 0);
	puppet_meet(zero);
	odd->peer.hello.incarnation = 5000;
	stranger->dress(odd);
	puppet_connect(odd);
	stage_settle(stage);
	CHECK(stage, odd->peer.down && !odd->peer.up && odd->peer.down_status == WEFT_REFUSED);
	CHECK(stage, odd->peer.welcome.refusal == stranger->status);
	CHECK_SAYS(stage, odd->peer.welcome.reason, stranger->says);
	CHECK(stage, wf_stats_get(&stage->lane[0]->stats, WF_LANE_HELLO_REFUSED_COUNT) == 1);
	CHECK(stage, !zero->peer.down);
	if (!script_failed(&stage->script) && stage->opts.lanes == 1) {
		puppet_meet(one);
		work(stage, zero, one);
	}
}

static void
run_stranger(void **state)
{
	const struct stranger *stranger = *state;
	const struct stage_opts opts = {
		.trainers = 2,
		.lanes = stranger->lanes,
		.num_gradient_servers = stranger->num_gradient_servers,
	};
	stage_play(&opts, refuse, stranger);
}

static void
wrong_lane(struct puppet *p)
{
	p->peer.hello.lane_idx = 1;
}

static void
wrong_ports_num(struct puppet *p)
{
	p->peer.hello.lane_count = 3;
}

static void
wrong_trainer_count(struct puppet *p)
{
	p->peer.hello.trainer_count = 3;
}

static void
more_trainers_than_the_pserver_has(struct puppet *p)
{
	p->peer.hello.trainer_count = 3;
}

static void
wrong_pserver_count(struct puppet *p)
{
	p->peer.hello.pserver_count = 2;
}

static void
wrong_pserver(struct puppet *p)
{
	p->peer.hello.pserver_count = 2;
	p->peer.hello.pserver_idx = 1;
}

static void
wrong_version(struct puppet *p)
{
	p->peer.hello.version_min = 7;
	p->peer.hello.version_max = 9;
}

static void
auth_scheme(struct puppet *p)
{
	p->peer.tamper_at = -72;
	p->peer.tamper_byte = 1;
}

static void
auth_mac(struct puppet *p)
{
	p->peer.tamper_at = -7; /* the last of the MAC: three empty texts of two bytes follow */
	p->peer.tamper_byte = 9;
}

static void
unprintable_host(struct puppet *p)
{
	p->peer.tamper_at = 107;
	p->peer.tamper_byte = 0x1b;
}

static void
wrong_service(struct puppet *p)
{
	p->peer.tamper_at = 4;
	p->peer.tamper_byte = WF_SERVICE_SPARSE;
}

static void
trainer_beyond_the_count(struct puppet *p)
{
	p->peer.tamper_at = 21;
	p->peer.tamper_byte = 2;
}

static void
id_in_use(struct puppet *p)
{
	p->peer.hello.trainer_id = 0;
}

static void
id_in_use_in_another_job(struct puppet *p)
{
	p->peer.hello.trainer_id = 0;
	p->peer.hello.job_digest ^= 1;
}

static void
older_path(struct puppet *p)
{
	p->peer.hello = p->stage->puppet[0].peer.hello; /* path 1 is here */
	p->peer.hello.path = 0;                         /* connect makes it 1 */
}

static void
other_options(struct puppet *p)
{
	p->peer.hello.job_digest ^= 1;
}

static void
other_tensors(struct puppet *p)
{
	p->peer.hello.tensors_digest ^= 1;
}

static void
other_placement(struct puppet *p)
{
	p->peer.hello.placement_digest ^= 1;
}

static void
other_job_bytes(struct puppet *p)
{
	p->peer.hello.job_bytes++;
}

#define STRANGER(function, code, text, ports, trainers)                                            \
	{                                                                                          \
		.name = #function "_is_refused_and_told_why", .dress = (function),                 \
		.status = (code), .says = (text), .lanes = (ports),                                \
		.num_gradient_servers = (trainers)                                                 \
	}

static const struct stranger strangers[] = {
	STRANGER(wrong_lane, WEFT_MISMATCH, "looks for lane 1 and has found lane 0", 2, 0),
	STRANGER(wrong_ports_num, WEFT_MISMATCH, "ports_num 3, this pserver has 1", 1, 0),
	STRANGER(wrong_trainer_count, WEFT_MISMATCH, "num_gradient_servers 3", 1, 0),
	STRANGER(more_trainers_than_the_pserver_has, WEFT_MISMATCH,
		 "num_gradient_servers 3, this pserver has 2", 1, 2),
	STRANGER(wrong_pserver_count, WEFT_MISMATCH, "pserver", 1, 0),
	STRANGER(wrong_pserver, WEFT_MISMATCH, "pserver", 1, 0),
	STRANGER(wrong_version, WEFT_MISMATCH, "7 to 9", 1, 0),
	STRANGER(auth_scheme, WEFT_PROTOCOL, "auth", 1, 0),
	STRANGER(auth_mac, WEFT_PROTOCOL, "auth", 1, 0),
	STRANGER(unprintable_host, WEFT_PROTOCOL, "host", 1, 0),
	STRANGER(wrong_service, WEFT_MISMATCH,
		 "expects a sparse lane on this port, and this is a dense lane", 1, 0),
	STRANGER(trainer_beyond_the_count, WEFT_PROTOCOL, "trainer_id", 1, 0),
	STRANGER(id_in_use, WEFT_MISMATCH, "trainer_id 0 is used by two processes", 1, 0),
	STRANGER(id_in_use_in_another_job, WEFT_MISMATCH, "this pserver has another job", 1, 0),
	STRANGER(older_path, WEFT_REFUSED, "is older than path 1", 1, 0),
	STRANGER(other_options, WEFT_MISMATCH, "has job digest", 1, 0),
	STRANGER(other_tensors, WEFT_MISMATCH, "tensor", 1, 0),
	STRANGER(other_placement, WEFT_MISMATCH, "place", 1, 0),
	STRANGER(other_job_bytes, WEFT_MISMATCH, "job", 1, 0),
};
#define OTHER_COUNT 17u
#define STRANGER_COUNT (sizeof(strangers) / sizeof(strangers[0]))

/* --- coming in --- */

static void
take_over(struct stage *stage)
{
	struct puppet *old = puppet_add(stage, 0, 0);
	struct puppet *one = puppet_add(stage, 1, 0);
	struct puppet *heir = puppet_add(stage, 0, 0);
	puppet_meet(old);
	puppet_meet(one);
	puppet_initialise(old);
	stage_settle(stage);
	for (uint32_t i = 0; i < stage_slice_count(stage, 0); i++) {
		heir->have[i] = old->have[i];
	}
	heir->peer.hello = old->peer.hello;
	puppet_meet(heir);
	CHECK(stage, old->peer.down && heir->peer.up && !heir->peer.down);
	CHECK(stage,
	      heir->peer.steps.initialised && heir->received[0] == 0 && heir->peer.steps.step == 0);
	CHECK(stage, wf_stats_get(&stage->lane[0]->stats, WF_LANE_PEER_RECONNECTED_COUNT) == 1);
	puppet_initialise(one);
	stage_settle(stage);
	puppet_continue(heir, 1);
	puppet_continue(one, 1);
	stage_settle(stage);
	stage_expect_step(stage, 1);
	CHECK(stage, puppet_values_are_right(one));
	CHECK(stage, heir->answers == stage_slice_count(stage, 0) - 1); /* of step 1 only */
}

static void
a_newer_path_of_the_same_incarnation_takes_over(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		stage_play(&(struct stage_opts){.trainers = 2, .seed = seed}, take_over, NULL);
	}
}

/* Refused, let in, superseded by a path that ends before it is let in. */
static void
lose_both_paths(struct stage *stage)
{
	struct puppet *zero = puppet_add(stage, 0, 0);
	struct puppet *one = puppet_add(stage, 1, 0);
	struct puppet *heir = puppet_add(stage, 1, 0);
	puppet_meet(zero);
	const struct wf_peer *peer = &stage->lane[0]->peers.all[1];
	one->peer.hello.job_digest ^= 1;
	puppet_connect(one);
	stage_settle(stage);
	CHECK_SAYS(stage, wf_absent_why(stage->lane[0], 1), "job digest");
	one->peer.hello.job_digest ^= 1;
	puppet_meet(one);
	CHECK(stage, wf_absent_why(stage->lane[0], 1)[0] == '\0');
	heir->peer.hello = one->peer.hello;
	puppet_connect(heir);
	while (!peer->closing && peer->hello.path < heir->peer.hello.path &&
	       !script_failed(&stage->script)) {
		stage_run(stage, WF_NS_PER_US);
	}
	wf_transport_disconnect(heir->peer.conn, WF_DISCONNECT_NOW);
	stage_settle(stage);
	CHECK(stage, one->peer.down && peer->state == WF_PEER_LOST && peer->lost.why[0] != '\0');
	stage_run(stage, 4 * WF_NS_PER_S);
	CHECK(stage, zero->peer.aborted && zero->peer.abort.status == WEFT_LOST);
	CHECK_SAYS(stage, zero->peer.abort.reason, "was lost in step");
	CHECK(stage, strstr(zero->peer.abort.reason, "digest") == NULL);
}

static void
what_a_trainer_was_once_refused_for_is_not_why_it_is_lost(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		stage_play(&(struct stage_opts){.trainers = 2, .seed = seed}, lose_both_paths,
			   NULL);
	}
}

static void
hold(struct stage *stage)
{
	struct puppet *zero = puppet_add(stage, 0, 0);
	struct puppet *one = puppet_add(stage, 1, 0);
	puppet_connect(zero);
	stage_settle(stage);
	puppet_connect(one);
	stage_settle(stage);
	CHECK(stage, zero->peer.up && (zero->peer.welcome.flags & WF_WELCOME_SEND_JOB) != 0);
	CHECK(stage, !one->peer.up && !one->peer.down);
	puppet_send_job(zero);
	stage_settle(stage);
	CHECK(stage, one->peer.up && (one->peer.welcome.flags & WF_WELCOME_SEND_JOB) == 0);
	CHECK(stage, zero->peer.resumed && one->peer.resumed);
	puppet_grant(zero, 0);
	puppet_have(zero);
	puppet_grant(one, 0);
	puppet_have(one);
	work(stage, zero, one);
}

static void
who_comes_while_the_job_is_read_waits_for_it(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2}, hold, NULL);
}

/* The one that was to send the job sends its first half, then its first half again. */
static void
bad_loader(struct stage *stage)
{
	struct puppet *zero = puppet_add(stage, 0, 0);
	struct puppet *one = puppet_add(stage, 1, 0);
	struct wf_msg out;
	const struct wf_msg_job half = {
		.total_bytes = stage->job_byte_count, .bytes = stage->job_bytes, .byte_count = 100};
	puppet_connect(zero);
	stage_settle(stage);
	puppet_connect(one);
	stage_settle(stage);
	wf_msg_job_encode(&half, &out);
	peer_send(&zero->peer, &out);
	peer_send(&zero->peer, &out);
	stage_settle(stage);
	CHECK(stage, zero->peer.down && !one->peer.down);
	CHECK_SAYS(stage, stage->lane[0]->peers.all[0].lost.why, "JOB: bytes 0 of");
	CHECK(stage, one->peer.up && (one->peer.welcome.flags & WF_WELCOME_SEND_JOB) != 0);
	puppet_send_job(one);
	stage_settle(stage);
	CHECK(stage, one->peer.granted && one->peer.resumed);
}

static void
too_many(struct stage *stage)
{
	struct puppet *zero = puppet_add(stage, 0, 0);
	puppet_connect(zero);
	stage_settle(stage);
	CHECK(stage, zero->peer.down && zero->peer.welcome.refusal == WEFT_MISMATCH);
	CHECK_SAYS(stage, zero->peer.welcome.reason, "takes up to 2; start it with");
	CHECK_SAYS(stage, zero->peer.welcome.reason, "--num_gradient_servers=3");
	CHECK(stage, stage->lane[0]->peers.all == NULL);
}

static void
a_job_of_more_than_max_trainers_is_refused(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 3, .max_trainers = 2}, too_many, NULL);
}

/* What trainers' states take is counted before it is taken, beside windows and tables of slices. */
static void
claim_many(struct stage *stage)
{
	struct puppet *zero = puppet_add(stage, 0, 0);
	puppet_connect(zero);
	stage_settle(stage);
	CHECK(stage, zero->peer.up);
	puppet_send_job(zero);
	stage_settle(stage);
	CHECK(stage, zero->peer.aborted && zero->peer.abort.status == WEFT_NOMEM);
	CHECK_SAYS(stage, zero->peer.abort.reason, "windows of 1000 trainers");
	CHECK_SAYS(stage, zero->peer.abort.reason, "--max_shard_bytes allows 2097152");
}

static void
states_of_trainers_are_within_max_shard_bytes(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 1000,
					.max_trainers = 1000,
					.max_shard_bytes = 2 << 20},
		   claim_many, NULL);
}

/* While the job is read each trainer has one place: its newer path takes it, another process does
 * not. */
static void
hold_one(struct stage *stage)
{
	struct puppet *zero = puppet_add(stage, 0, 0);
	struct puppet *one = puppet_add(stage, 1, 0);
	struct puppet *odd = puppet_add(stage, 1, 0);
	struct puppet *heir = puppet_add(stage, 1, 0);
	puppet_connect(zero);
	stage_settle(stage);
	puppet_connect(one);
	stage_settle(stage);
	odd->peer.hello.incarnation = 5000;
	puppet_connect(odd);
	stage_settle(stage);
	CHECK(stage, odd->peer.down && odd->peer.welcome.refusal == WEFT_UNAVAILABLE);
	CHECK_SAYS(stage, odd->peer.welcome.reason, "a trainer 1 waits here");
	heir->peer.hello = one->peer.hello;
	heir->peer.hello.path++;
	puppet_connect(heir);
	stage_settle(stage);
	CHECK(stage,
	      one->peer.down && !heir->peer.down && stage->lane[0]->newcomers.held_count == 1);
	puppet_send_job(zero);
	stage_settle(stage);
	CHECK(stage, heir->peer.up && zero->peer.resumed && heir->peer.resumed);
}

static void
a_trainer_has_one_place_while_the_job_is_read(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2}, hold_one, NULL);
}

/* One connection after another, each of another trainer, and none of them goes. */
static void
come_in_crowds(struct stage *stage)
{
	struct puppet *zero = puppet_add(stage, 0, 0);
	struct puppet *crowd = puppet_add(stage, 1, 0);
	puppet_connect(zero);
	stage_settle(stage);
	for (uint32_t i = 0; i < WF_HELD_MAX; i++) {
		crowd->peer.hello.trainer_id = 1 + i;
		crowd->peer.hello.incarnation = 2000 + i;
		puppet_connect(crowd);
	}
	stage_settle(stage);
	CHECK(stage, stage->lane[0]->newcomers.held_count == WF_HELD_MAX && !crowd->peer.down);
	crowd->peer.hello.trainer_id++;
	puppet_connect(crowd);
	stage_settle(stage);
	CHECK(stage, stage->lane[0]->newcomers.held_count == WF_HELD_MAX);
	CHECK(stage, crowd->peer.down && crowd->peer.welcome.refusal == WEFT_UNAVAILABLE);
	CHECK_SAYS(stage, crowd->peer.welcome.reason, "the job is still being read; try again");
}

static void
more_trainers_than_can_wait_are_told_to_try_again(void **state)
{
	(void)state;
	stage_play(
		&(struct stage_opts){.trainers = WF_HELD_MAX + 2, .max_trainers = WF_HELD_MAX + 2},
		come_in_crowds, NULL);
}

/* Nobody's state but that of who came is taken before the description is there. */
static void
come_alone(struct stage *stage)
{
	struct puppet *one = puppet_add(stage, 1, 0);
	puppet_connect(one);
	stage_settle(stage);
	const struct wf_peer *peer = stage->lane[0]->peers.all;
	CHECK(stage, one->peer.up && peer[1].lane != NULL && peer[1].own != NULL);
	CHECK(stage, peer[0].lane == NULL && peer[2].lane == NULL);
	puppet_send_job(one);
	stage_settle(stage);
	CHECK(stage, one->peer.resumed && peer[0].lane != NULL && peer[2].own != NULL);
}

static void
a_trainers_state_is_taken_when_it_is_admitted(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 3}, come_alone, NULL);
}

static bool
is_known(struct stage *stage, const struct wf_hello *hello)
{
	uint8_t bytes[WF_HELLO_MAX];
	return wf_admit_knows(stage->lane[0], bytes, wf_hello_encode(hello, bytes));
}

/* Two strangers, while the log has said all that it may: they are counted, each once. */
static void
unnamed_strangers(struct stage *stage)
{
	struct wf_lane *lane = stage->lane[0];
	uint64_t now_ns = wf_now_ns(lane->env);
	stage_run(stage, WF_NS_PER_S);
	lane->newcomers.warnings.said = lane->newcomers.warnings.most;
	lane->newcomers.warnings.end_ns = now_ns + 10 * WF_NS_PER_S;
	wf_paths_of(lane->turn.transport)->info.strangers_refused += 2;
	stage_run(stage, 5 * WF_NS_PER_S);
	CHECK(stage, lane->newcomers.strangers_said == 2 && lane->newcomers.warnings.unsaid == 2);
	stage_run(stage, 6 * WF_NS_PER_S);
	CHECK(stage, lane->newcomers.warnings.unsaid == 0); /* a line has said how many */
	wf_paths_of(lane->turn.transport)->info.strangers_refused++;
	stage_run(stage, 2 * WF_NS_PER_S);
	CHECK(stage, lane->newcomers.strangers_said == 3 &&
			     lane->newcomers.warnings.unsaid == 0); /* named */
}

static void
a_stranger_that_the_log_does_not_name_is_counted_once(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 1}, unnamed_strangers, NULL);
}

/* Whom the lane's transport spares where strangers are too many. */
static void
come_back(struct stage *stage)
{
	struct puppet *zero = puppet_add(stage, 0, 0);
	struct puppet *one = puppet_add(stage, 1, 0);
	struct puppet *odd = puppet_add(stage, 1, 0);
	CHECK(stage, !is_known(stage, &zero->peer.hello)); /* no job */
	puppet_meet(zero);
	CHECK(stage, is_known(stage, &zero->peer.hello) && !is_known(stage, &one->peer.hello));
	puppet_meet(one);
	wf_transport_disconnect(one->peer.conn, WF_DISCONNECT_NOW);
	stage_settle(stage);
	odd->peer.hello.incarnation = 5000;
	CHECK(stage, is_known(stage, &one->peer.hello) && !is_known(stage, &odd->peer.hello));
	odd->peer.hello.trainer_id = 5;
	odd->peer.hello.trainer_count = 6;
	CHECK(stage, !is_known(stage, &odd->peer.hello));
	CHECK(stage, !wf_admit_knows(stage->lane[0], (const uint8_t *)"noise", 5));
}

static void
a_lane_knows_who_is_or_was_in_its_job(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2}, come_back, NULL);
}

static void
when_the_loader_fails_the_next_is_asked_for_the_job(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2}, bad_loader, NULL);
}

static void
slow_loader(struct stage *stage)
{
	struct puppet *zero = puppet_add(stage, 0, 0);
	struct puppet *one = puppet_add(stage, 1, 0);
	puppet_connect(zero);
	stage_run(stage, 3 * WF_NS_PER_S);
	puppet_connect(one);
	stage_run(stage, WF_NS_PER_S);
	CHECK(stage, !zero->peer.down && !one->peer.up);
	stage_run(stage, 2 * WF_NS_PER_S);
	CHECK(stage, zero->peer.down && one->peer.up);
	CHECK_SAYS(stage, stage->lane[0]->peers.all[0].lost.why, "JOB: 0 of");
	puppet_send_job(one);
	stage_settle(stage);
	CHECK(stage, one->peer.granted && one->peer.resumed);
	puppet_grant(one, 0);
	puppet_have(one);
	puppet_meet(zero); /* it was lost, no more */
	work(stage, zero, one);
}

static void
when_the_loader_says_nothing_the_next_is_asked_for_the_job(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2}, slow_loader, NULL);
}

static void
gone_loader(struct stage *stage)
{
	struct puppet *zero = puppet_add(stage, 0, 0);
	struct puppet *one = puppet_add(stage, 1, 0);
	puppet_connect(zero);
	stage_run(stage, 5 * WF_NS_PER_S);
	puppet_meet(one);
	stage_run(stage, 2 * WF_NS_PER_S);
	CHECK(stage, zero->peer.down && !one->peer.aborted);
	stage_run(stage, 2 * WF_NS_PER_S);
	CHECK(stage, one->peer.aborted && one->peer.abort.status == WEFT_LOST);
	CHECK_SAYS(stage, one->peer.abort.reason, "trainer 0 (host puppet, pid 100) was lost");
	CHECK_SAYS(stage, one->peer.abort.reason, "JOB: 0 of");
	CHECK_SAYS(stage, one->peer.abort.reason, "not back within 3.0 s");
}

static void
a_loader_that_says_nothing_and_stays_away_ends_the_job_by_name(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2}, gone_loader, NULL);
}

/* Who has begun to send the job is there, and does not come in again. */
static void
half_loader(struct stage *stage)
{
	struct puppet *zero = puppet_add(stage, 0, 0);
	struct wf_msg out;
	const struct wf_msg_job half = {
		.total_bytes = stage->job_byte_count, .bytes = stage->job_bytes, .byte_count = 100};
	puppet_connect(zero);
	stage_settle(stage);
	wf_msg_job_encode(&half, &out);
	peer_send(&zero->peer, &out);
	stage_run(stage, 5 * WF_NS_PER_S);
	CHECK(stage, zero->peer.down);
	puppet_connect(zero);
	stage_settle(stage);
	CHECK(stage, !zero->peer.up && zero->peer.welcome.refusal == WEFT_PROTOCOL);
	CHECK_SAYS(stage, zero->peer.welcome.reason, "broke the protocol: JOB: 100 of");
}

/* It comes back each time, until nobody may come any more. */
static void
mute_loader(struct stage *stage)
{
	struct puppet *zero = puppet_add(stage, 0, 0);
	unsigned times = 0;
	do {
		puppet_connect(zero);
		stage_run(stage, 5 * WF_NS_PER_S);
		times += zero->peer.up ? 1 : 0;
	} while (zero->peer.up && times < 100);
	CHECK(stage, times >= 58 && times <= 61); /* 300 s */
	CHECK(stage, zero->peer.welcome.refusal == WEFT_PROTOCOL);
	CHECK_SAYS(stage, zero->peer.welcome.reason, "broke the protocol: JOB: 0 of");
}

static void
a_loader_that_goes_on_to_send_no_job_is_not_let_in_for_ever(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 1}, half_loader, NULL);
	stage_play(&(struct stage_opts){.trainers = 1}, mute_loader, NULL);
}

static void
speak(struct puppet *puppet, const char *words)
{
	(void)snprintf(puppet->peer.hello.compared, sizeof(puppet->peer.hello.compared), "%s",
		       words);
}

/* The first has no words; what the second says is what the third is compared with, and its tensors
 * differ for that reason. */
static void
compare_words(struct stage *stage)
{
	struct puppet *zero = puppet_add(stage, 0, 0);
	struct puppet *one = puppet_add(stage, 1, 0);
	struct puppet *two = puppet_add(stage, 2, 0);
	struct puppet *back = puppet_add(stage, 1, 0);
	puppet_meet(zero);
	speak(one, "seed=1 batch_size=32");
	puppet_meet(one);
	two->peer.hello.pid = 7;
	two->peer.hello.tensors_digest ^= 1;
	speak(two, "seed=1 batch_size=64");
	puppet_connect(two);
	stage_settle(stage);
	CHECK(stage, two->peer.down && two->peer.welcome.refusal == WEFT_MISMATCH);
	CHECK_SAYS(stage, two->peer.welcome.reason, "trainer 2 on ");
	CHECK_SAYS(stage, two->peer.welcome.reason, "(pid 7) has batch_size=64, trainer 1 on ");
	CHECK_SAYS(stage, two->peer.welcome.reason,
		   "has batch_size=32: give every trainer the same");
	back->peer.hello = one->peer.hello;
	puppet_meet(back);
	two->peer.hello.tensors_digest ^= 1;
	speak(two, "seed=1 batch_size=32");
	puppet_meet(two);
	CHECK(stage, two->peer.up && !two->peer.down);
}

static void
the_words_of_a_program_are_compared_with_the_first_that_has_any(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 3}, compare_words, NULL);
}

static void
restart(struct stage *stage)
{
	struct puppet *zero = puppet_add(stage, 0, 0);
	struct puppet *again = puppet_add(stage, 0, 0);
	puppet_meet(zero);
	wf_transport_disconnect(zero->peer.conn, WF_DISCONNECT_NOW);
	stage_settle(stage);
	again->peer.hello.incarnation = 9;
	puppet_connect(again);
	stage_settle(stage);
	CHECK(stage, again->peer.down && again->peer.welcome.refusal == WEFT_UNAVAILABLE);
	CHECK_SAYS(stage, again->peer.welcome.reason, "a job that is ending; try again");
	puppet_meet(zero); /* the first one may still come back */
}

static void
a_new_process_does_not_inherit_the_place_of_a_lost_one(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2}, restart, NULL);
}

/* 15 refusals within the first second: ten lines, and one that counts the rest. */
static void
pester(struct stage *stage)
{
	struct puppet *odd = puppet_add(stage, 1, 0);
	const struct wf_lane *lane = stage->lane[0];
	odd->peer.hello.incarnation = 5000;
	odd->peer.hello.lane_count = 3;
	for (unsigned i = 0; i < 15; i++) {
		puppet_connect(odd);
		stage_settle(stage);
		CHECK(stage, odd->peer.down && odd->peer.down_status == WEFT_REFUSED);
		CHECK(stage, lane->newcomers.warnings.said == (i < 10 ? i + 1 : 10));
		CHECK(stage, lane->newcomers.warnings.unsaid == (i < 10 ? 0 : i - 9));
	}
	CHECK(stage, wf_stats_get(&lane->stats, WF_LANE_HELLO_REFUSED_COUNT) == 15);
	stage_run(stage, WF_NS_PER_S);
	CHECK(stage, lane->newcomers.warnings.unsaid == 0);
	puppet_connect(odd);
	stage_settle(stage);
	CHECK(stage, lane->newcomers.warnings.said == 1);
}

static void
who_is_refused_again_and_again_does_not_fill_the_log(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2}, pester, NULL);
}

int
main(void)
{
	static struct CMUnitTest tests[STRANGER_COUNT + OTHER_COUNT];
	static struct stranger copy[STRANGER_COUNT]; /* cmocka's state is not const */
	for (size_t i = 0; i < STRANGER_COUNT; i++) {
		copy[i] = strangers[i];
		tests[i].name = strangers[i].name;
		tests[i].test_func = run_stranger;
		tests[i].initial_state = &copy[i];
	}
	const struct CMUnitTest others[OTHER_COUNT] = {
		cmocka_unit_test(a_newer_path_of_the_same_incarnation_takes_over),
		cmocka_unit_test(what_a_trainer_was_once_refused_for_is_not_why_it_is_lost),
		cmocka_unit_test(who_comes_while_the_job_is_read_waits_for_it),
		cmocka_unit_test(a_job_of_more_than_max_trainers_is_refused),
		cmocka_unit_test(states_of_trainers_are_within_max_shard_bytes),
		cmocka_unit_test(a_stranger_that_the_log_does_not_name_is_counted_once),
		cmocka_unit_test(a_lane_knows_who_is_or_was_in_its_job),
		cmocka_unit_test(a_trainer_has_one_place_while_the_job_is_read),
		cmocka_unit_test(more_trainers_than_can_wait_are_told_to_try_again),
		cmocka_unit_test(a_trainers_state_is_taken_when_it_is_admitted),
		cmocka_unit_test(when_the_loader_fails_the_next_is_asked_for_the_job),
		cmocka_unit_test(when_the_loader_says_nothing_the_next_is_asked_for_the_job),
		cmocka_unit_test(a_loader_that_says_nothing_and_stays_away_ends_the_job_by_name),
		cmocka_unit_test(a_loader_that_goes_on_to_send_no_job_is_not_let_in_for_ever),
		cmocka_unit_test(the_words_of_a_program_are_compared_with_the_first_that_has_any),
		cmocka_unit_test(a_new_process_does_not_inherit_the_place_of_a_lost_one),
		cmocka_unit_test(who_is_refused_again_and_again_does_not_fill_the_log),
	};
	for (size_t i = 0; i < OTHER_COUNT; i++) {
		tests[STRANGER_COUNT + i] = others[i];
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
