/* SPDX-License-Identifier: Apache-2.0 */
/* admit: which trainers may join, the job's description, reconnecting. Thread: the lane's. */
#include "pserver/service.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "pserver/members.h"
#include "pserver/refuse.h"
#include "pserver/snapshots.h"
#include "pserver/view.h"
#include "pserver/watch.h"
#include "wire/job.h"

/* For the job's description to arrive; less than a held trainer's attempt to connect may take. */
#define LOADING_TIMEOUT_NS (4 * WF_NS_PER_S)

static void
count_refusal(struct wf_lane *lane)
{
	wf_stats_add(&lane->stats, WF_LANE_HELLO_REFUSED_COUNT, 1);
}

static void
refuse(struct wf_lane *lane, struct wf_conn *conn, bool job_is_over)
{
	count_refusal(lane);
	if (wf_lane_may_warn(lane)) {
		wf_log(lane->env, WF_LOG_WARN, "lane %u: refused a trainer: %.255s", lane->opts.idx,
		       weft_last_error());
	}
	wf_refuse_unlogged(conn, job_is_over);
}

static const char *
expected_lane(unsigned service)
{
	return service == WF_SERVICE_DENSE    ? "a dense lane"
	       : service == WF_SERVICE_SPARSE ? "a sparse lane"
					      : "a service that weft does not have";
}

static enum weft_status
check_address(const struct wf_lane *lane, const struct wf_hello *hello)
{
	const struct wf_lane_opts *opts = &lane->opts;
	const struct wf_lane_service *service = lane->service;
	if (hello->service != service->number) {
		return wf_fail(WEFT_MISMATCH,
			       "trainer %u expects %s on this port, and this is a %s lane; give "
			       "both the same ports_num and ports_num_for_sparse",
			       hello->trainer_id, expected_lane(hello->service), service->name);
	}
	if (hello->lane_count != opts->lane_count) {
		return wf_fail(WEFT_MISMATCH,
			       "trainer %u has %s %u, this pserver has %u; give both the same",
			       hello->trainer_id, service->ports, hello->lane_count,
			       opts->lane_count);
	}
	if (hello->lane_idx != opts->service_idx) {
		return wf_fail(
			WEFT_MISMATCH,
			"trainer %u looks for lane %u and has found lane %u; check --port and the "
			"order of --pservers",
			hello->trainer_id, hello->lane_idx, opts->service_idx);
	}
	if (opts->num_gradient_servers != 0 && hello->trainer_count != opts->num_gradient_servers) {
		return wf_fail(
			WEFT_MISMATCH,
			"trainer %u has num_gradient_servers %u, this pserver has %u; give both "
			"the same",
			hello->trainer_id, hello->trainer_count, opts->num_gradient_servers);
	}
	if (opts->num_gradient_servers == 0 && hello->trainer_count > opts->max_trainers) {
		return wf_fail(
			WEFT_MISMATCH,
			"trainer %u has num_gradient_servers %u, this pserver was not told how "
			"many there are and takes up to %u; start it with "
			"--num_gradient_servers=%u, or with a larger --max_trainers",
			hello->trainer_id, hello->trainer_count, opts->max_trainers,
			hello->trainer_count);
	}
	if (hello->version_min > WF_WIRE_VERSION || hello->version_max < WF_WIRE_VERSION_MIN) {
		return wf_fail(WEFT_MISMATCH,
			       "trainer %u speaks wire versions %u to %u, this pserver %u to %u",
			       hello->trainer_id, hello->version_min, hello->version_max,
			       WF_WIRE_VERSION_MIN, WF_WIRE_VERSION);
	}
	if (hello->job_bytes == 0 || hello->job_bytes > WF_JOB_BYTES_MAX) {
		return wf_fail(WEFT_PROTOCOL, "job of %" PRIu64 " bytes, allowed are 1 to %llu",
			       hello->job_bytes, WF_JOB_BYTES_MAX);
	}
	return WEFT_OK;
}

/* Is it a hello of the job that is open here? */
static enum weft_status
match(const struct wf_lane *lane, const struct wf_hello *hello)
{
	enum weft_status st = wf_hello_match_compared(&lane->admission.spoken, hello);
	return st == WEFT_OK ? wf_hello_match(&lane->admission.first, hello) : st;
}

/* Another process wants the place of a trainer that is here: of another job, as a difference shows,
 * or of the same one. */
static enum weft_status
refuse_second(const struct wf_lane *lane, const struct wf_hello *hello, const char *who)
{
	if (match(lane, hello) != WEFT_OK) {
		char difference[WF_REASON_BYTES];
		(void)snprintf(difference, sizeof(difference), "%.*s", WF_REASON_BYTES - 1,
			       weft_last_error());
		return wf_fail(WEFT_MISMATCH,
			       "this pserver has another job, with %.60s; wait for its end, or use "
			       "another pserver or port; they differ: %.140s",
			       who, difference);
	}
	return wf_fail(WEFT_MISMATCH,
		       "trainer_id %u is used by two processes: %.60s is here, host %.40s, pid %u "
		       "wants to join; give each trainer of a job its own trainer_id, and each job "
		       "its own pserver",
		       hello->trainer_id, who, hello->host, hello->pid);
}

/* In a job that goes back: a trainer that was started again wants the place of its predecessor,
 * which ends the life that had that one. */
static enum weft_status
await_successor(struct wf_lane *lane, const struct wf_peer *peer, const struct wf_hello *hello,
		const char *who)
{
	bool is_same_job = match(lane, hello) == WEFT_OK;
	if (is_same_job && lane->end.holds) {
		wf_lane_fail(lane, WEFT_ROLLED_BACK, lane->order.sum.step,
			     "trainer %u has come back from host %.40s, pid %u: the job has not "
			     "ended at another pserver",
			     hello->trainer_id, hello->host, hello->pid);
	} else if (is_same_job && peer->state == WF_PEER_LOST) {
		wf_lane_fail(lane, WEFT_ROLLED_BACK, lane->order.sum.step,
			     "%.100s was lost: %.60s; host %.40s, pid %u takes its place", who,
			     peer->lost.why, hello->host, hello->pid);
	}
	return wf_fail(WEFT_UNAVAILABLE,
		       "%.100s is of a life of the job that has not ended yet; try again", who);
}

/* May this incarnation be trainer `peer`? */
static enum weft_status
check_identity(struct wf_lane *lane, const struct wf_peer *peer, const struct wf_hello *hello)
{
	if (peer->state == WF_PEER_ABSENT) {
		return WEFT_OK;
	}
	char who[WF_REASON_BYTES];
	wf_peer_describe(peer, who, sizeof(who));
	if (hello->incarnation == peer->hello.incarnation && peer->lost.offended) {
		return wf_fail(WEFT_PROTOCOL, "%.60s broke the protocol: %.160s", who,
			       peer->lost.why);
	}
	if (hello->incarnation == peer->hello.incarnation) {
		uint32_t newest = wf_peer_has_newer_path(peer) ? peer->successor.hello.path
							       : peer->hello.path;
		if (hello->path > newest) {
			return WEFT_OK;
		}
		return wf_fail(WEFT_REFUSED, "path %u of %.100s is older than path %u", hello->path,
			       who, newest);
	}
	if (lane->opts.rejoin_timeout_ns > 0) {
		return await_successor(lane, peer, hello, who);
	}
	if (hello->epoch != 0) {
		return wf_fail(WEFT_UNAVAILABLE,
			       "%.80s has the place of trainer %u, which is empty only when it "
			       "was dropped or has left; try again",
			       who, hello->trainer_id);
	}
	if (peer->state == WF_PEER_UP) {
		return refuse_second(lane, hello, who);
	}
	/* Lost or gone: the old job is about to end, the new process may be the next job's. */
	return wf_fail(WEFT_UNAVAILABLE, "%.100s belongs to a job that is ending; try again", who);
}

/* Is it a member of the job that has failed here, on its way back or late? */
static bool
is_of_this_job(const struct wf_lane *lane, const struct wf_hello *hello)
{
	if (hello->trainer_id >= lane->peers.count) {
		return false;
	}
	const struct wf_peer *peer = &lane->peers.all[hello->trainer_id];
	if (peer->state == WF_PEER_ABSENT) {
		return match(lane, hello) == WEFT_OK;
	}
	return peer->hello.incarnation == hello->incarnation;
}

static enum weft_status
check_failed(const struct wf_lane *lane, const struct wf_hello *hello)
{
	if (is_of_this_job(lane, hello)) {
		return wf_fail(lane->end.cause.status, "%s", lane->end.cause.reason);
	}
	return wf_fail(WEFT_UNAVAILABLE, "lane %u: another job is ending here; try again",
		       lane->opts.idx);
}

/* May it come, if a trainer may be dropped from the job? */
static enum weft_status
check_dropped(const struct wf_lane *lane, const struct wf_peer *peer, const struct wf_hello *hello)
{
	char who[WF_REASON_BYTES];
	if (lane->opts.members == NULL || !(peer->leaving.asked || peer->leaving.ordered)) {
		return WEFT_OK;
	}
	wf_peer_describe(peer, who, sizeof(who));
	return wf_members_check(lane, peer, hello, who);
}

static enum weft_status
check_hello(struct wf_lane *lane, const struct wf_hello *hello)
{
	enum weft_status st = check_address(lane, hello);
	if (st != WEFT_OK) {
		return st;
	}
	if (lane->state == WF_LANE_FAILED) {
		return check_failed(lane, hello);
	}
	if (hello->epoch != 0 && lane->opts.members == NULL) {
		return wf_fail(WEFT_MISMATCH,
			       "trainer %u asks to join a job that runs (join), for which "
			       "pservers need --on_trainer_death=drop",
			       hello->trainer_id);
	}
	if (!lane->admission.is_open) {
		return WEFT_OK;
	}
	struct wf_peer *peer =
		hello->trainer_id < lane->peers.count ? &lane->peers.all[hello->trainer_id] : NULL;
	st = peer != NULL ? check_dropped(lane, peer, hello) : WEFT_OK;
	bool is_newcomer = peer != NULL && wf_members_is_newcomer(lane, peer, hello);
	if (st == WEFT_OK && peer != NULL && peer->state != WF_PEER_ABSENT && !is_newcomer) {
		st = check_identity(lane, peer,
				    hello); /* more specific than a difference of the job
						   * would be */
	}
	return st == WEFT_OK ? match(lane, hello) : st;
}

static enum weft_status
open_job(struct wf_lane *lane, const struct wf_hello *hello)
{
	enum weft_status st = wf_peers_open(lane, hello->trainer_count);
	if (st != WEFT_OK) {
		return st;
	}
	lane->admission.first = *hello;
	lane->admission.is_open = true;
	lane->state = WF_LANE_RUNNING;
	lane->admission.start_ns = wf_now_ns(lane->env);
	lane->admission.deadline_ns =
		lane->admission.start_ns + (lane->end.rolled_back ? lane->opts.rejoin_timeout_ns
								  : lane->opts.connect_timeout_ns);
	wf_lane_report_job_begins(lane);
	return WEFT_OK;
}

static void
warn_numerics(struct wf_lane *lane, const struct wf_hello *hello)
{
	if (lane->admission.numerics_said ||
	    hello->numerics_digest == lane->admission.first.numerics_digest) {
		return;
	}
	lane->admission.numerics_said = true;
	wf_log(lane->env, WF_LOG_WARN,
	       "lane %u: trainer %u computes with another binary, BLAS or thread setting than "
	       "trainer "
	       "%u: equal bits are not promised",
	       lane->opts.idx, hello->trainer_id, lane->admission.first.trainer_id);
}

/* The connection is gone already, and its DOWN says how. */
static void
await_end(struct wf_lane *lane, struct wf_conn *conn, const struct wf_hello *hello)
{
	struct wf_newcomers *newcomers = &lane->newcomers;
	if (newcomers->held_count == WF_HELD_MAX) {
		wf_absent_note_gone(lane, hello, WEFT_LOST, weft_last_error());
		return;
	}
	newcomers->held[newcomers->held_count++] = (struct wf_held){.conn = conn, .hello = *hello};
}

/* Accepts. The path begins when the job is here. */
static void
welcome(struct wf_lane *lane, struct wf_peer *peer, struct wf_conn *conn,
	const struct wf_hello *hello)
{
	/* A joiner that has just been taken in has no path yet. */
	bool returns = peer->state != WF_PEER_ABSENT && peer->hello.path != 0;
	bool gone = peer->state == WF_PEER_GONE;
	bool send_job = !lane->job.is_here;
	struct wf_welcome yes = {
		.version = WF_WIRE_VERSION,
		.flags = (send_job ? WF_WELCOME_SEND_JOB : 0) |
			 (lane->opts.rejoin_timeout_ns > 0 ? WF_WELCOME_GOES_BACK : 0) |
			 (wf_lane_ends_together(lane) ? WF_WELCOME_ENDS_TOGETHER : 0) |
			 (wf_view_is_watched(lane) ? WF_WELCOME_MEASURES : 0) |
			 (lane->opts.members != NULL ? WF_WELCOME_MAY_LEAVE : 0) |
			 (peer->came_later ? WF_WELCOME_JOINS : 0),
		.incarnation = lane->opts.incarnation,
		.epoch = 0,
		.slot_count = lane->opts.slot_count,
		.msg_bytes_max = WF_MSG_BODY_MAX,
		.put_bytes_max = lane->opts.slot_bytes_max,
	};
	uint8_t bytes[WF_HELLO_MAX];
	size_t used = wf_welcome_encode(&yes, bytes);
	if (wf_transport_answer(conn, true, bytes, used) != WEFT_OK) {
		conn->user = NULL;
		await_end(lane, conn, hello);
		return;
	}
	wf_absent_forget(lane, peer->trainer);
	if (lane->opts.snapshots != NULL) {
		wf_snapshots_admit(lane->opts.snapshots, lane->opts.idx, hello);
	}
	conn->user = peer;
	peer->conn = conn;
	peer->hello = *hello;
	if (lane->admission.spoken.compared[0] == '\0') {
		lane->admission.spoken = *hello;
	}
	peer->state = gone ? WF_PEER_GONE : WF_PEER_UP;
	peer->closing = false;
	peer->lost.why[0] = '\0'; /* before */
	peer->loading.is_due = send_job;
	peer->loading.looked_ns = wf_now_ns(lane->env);
	peer->loading.deadline_ns = peer->loading.looked_ns + LOADING_TIMEOUT_NS;
	/* It was a successor when the job failed. */
	peer->abort_due = lane->state == WF_LANE_FAILED;
	wf_peer_due(peer);
	wf_control_path_begins(peer);
	/* It may have missed that a trainer has joined, or moves again. */
	if (returns || wf_absent_is_any(lane)) {
		wf_absent_send(lane, peer);
	}
	if (send_job) {
		lane->job.received_bytes = 0;
	}
	warn_numerics(lane, hello);
	wf_stats_add(&lane->stats, WF_LANE_PEER_RECONNECTED_COUNT, returns ? 1 : 0);
	char who[WF_REASON_BYTES];
	wf_peer_describe(peer, who, sizeof(who));
	struct wf_path_info path;
	wf_transport_path(conn, &path);
	wf_log(lane->env, WF_LOG_INFO, "lane %u: %s %s over %s: %s", lane->opts.idx, who,
	       returns ? "is back" : "is here", path.name, path.why);
	if (lane->job.is_ready) {
		wf_path_begins(lane, peer);
	}
}

/* A hello that passed all checks. */
static void
let_in(struct wf_lane *lane, struct wf_conn *conn, const struct wf_hello *hello)
{
	struct wf_peer *peer = wf_peers_begin(lane, hello->trainer_id);
	conn->user = NULL;
	if (peer->conn != NULL) { /* the old path goes DOWN before the new one is UP */
		if (peer->successor.conn != NULL) {
			wf_transport_disconnect(peer->successor.conn, WF_DISCONNECT_NOW);
		}
		peer->successor.conn = conn;
		peer->successor.hello = *hello;
		peer->closing = true;
		wf_transport_disconnect(peer->conn, WF_DISCONNECT_NOW);
		return;
	}
	welcome(lane, peer, conn, hello);
}

/* One place for each trainer: only the same incarnation takes over from its older path. */
static void
hold(struct wf_lane *lane, struct wf_conn *conn, const struct wf_hello *hello)
{
	struct wf_held *same = NULL;
	for (uint32_t i = 0; i < lane->newcomers.held_count && same == NULL; i++) {
		bool is_same = lane->newcomers.held[i].hello.trainer_id == hello->trainer_id;
		same = is_same ? &lane->newcomers.held[i] : NULL;
	}
	bool returns = same != NULL && same->hello.incarnation == hello->incarnation &&
		       same->hello.path < hello->path;
	if (same != NULL && !returns) {
		(void)wf_fail(WEFT_UNAVAILABLE,
			      "the job is still being read, and a trainer %u waits here; try again",
			      hello->trainer_id);
	} else if (same == NULL && lane->newcomers.held_count == WF_HELD_MAX) {
		same = lane->newcomers.held;
		(void)wf_fail(WEFT_UNAVAILABLE, "the job is still being read; try again");
	}
	if (same != NULL && !returns) {
		refuse(lane, conn, false);
		return;
	}
	conn->user = NULL;
	if (returns) {
		wf_transport_disconnect(same->conn, WF_DISCONNECT_NOW);
		*same = (struct wf_held){.conn = conn, .hello = *hello};
		return;
	}
	lane->newcomers.held[lane->newcomers.held_count++] =
		(struct wf_held){.conn = conn, .hello = *hello};
}

/* A process that asks for an empty place waits for a border. */
static void
hold_newcomer(struct wf_lane *lane, struct wf_peer *peer, struct wf_conn *conn,
	      const struct wf_hello *hello)
{
	conn->user = NULL;
	if (peer->successor.conn != NULL) {
		wf_transport_disconnect(peer->successor.conn, WF_DISCONNECT_NOW);
	}
	peer->successor = (struct wf_held){.conn = conn, .hello = *hello};
	wf_members_on_newcomer(lane, peer, hello);
}

void
wf_admit_enter(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_held newcomer = peer->successor;
	WF_ASSERT(peer->conn == NULL && newcomer.conn != NULL);
	peer->successor.conn = NULL;
	welcome(lane, peer, newcomer.conn, &newcomer.hello);
}

static void
consider(struct wf_lane *lane, struct wf_conn *conn, const struct wf_hello *hello)
{
	/* Called first: it records the reason, and check_hello then records the refusal. */
	bool over = lane->state == WF_LANE_FAILED && is_of_this_job(lane, hello);
	enum weft_status st = check_hello(lane, hello);
	if (st == WEFT_OK && !lane->admission.is_open) {
		st = open_job(lane, hello);
	}
	if (st == WEFT_UNAVAILABLE && hello->epoch != 0) {
		count_refusal(lane); /* it asks until the place is empty, and says so itself */
		wf_refuse_unlogged(conn, false);
		return;
	}
	if (st != WEFT_OK) {
		wf_absent_note_refusal(lane, hello);
		refuse(lane, conn, over && st == lane->end.cause.status);
		return;
	}
	struct wf_peer *peer = &lane->peers.all[hello->trainer_id];
	if (wf_members_is_newcomer(lane, peer, hello)) {
		hold_newcomer(lane, peer, conn, hello);
		return;
	}
	bool loader = peer->loading.is_due;
	if (!lane->job.is_here && wf_peers_is_loading(&lane->peers) && !loader) {
		hold(lane, conn, hello);
		return;
	}
	let_in(lane, conn, hello);
}

void
wf_admit_up(struct wf_lane *lane, const struct wf_event *event)
{
	struct wf_hello hello;
	if (!event->up.incoming) {
		wf_lane_registry(lane, event, NULL);
		return;
	}
	if (wf_hello_decode(event->up.blob, event->up.blob_bytes, &hello) != WEFT_OK) {
		refuse(lane, event->conn, false);
		return;
	}
	if (hello.service == WF_SERVICE_WATCH) {
		wf_watch_up(lane, event->conn);
		return;
	}
	if (hello.service == WF_SERVICE_REGISTRY && lane->service->registry == NULL) {
		wf_refuse_other_port(lane, event->conn);
		return;
	}
	if (hello.service == WF_SERVICE_REGISTRY) {
		wf_lane_registry(lane, event, &hello);
		return;
	}
	consider(lane, event->conn, &hello);
}

bool
wf_admit_knows(void *lane_arg, const uint8_t *bytes, size_t hello_bytes)
{
	const struct wf_lane *lane = lane_arg;
	struct wf_hello hello;
	if (wf_hello_decode(bytes, hello_bytes, &hello) != WEFT_OK || !lane->admission.is_open ||
	    hello.trainer_id >= lane->peers.count) {
		return false;
	}
	const struct wf_peer *peer = &lane->peers.all[hello.trainer_id];
	return peer->state != WF_PEER_ABSENT && peer->hello.incarnation == hello.incarnation;
}

/* The job is here, or its sender is gone: examines the held hellos again. */
static void
reconsider_held(struct wf_lane *lane)
{
	uint32_t count = lane->newcomers.held_count;
	for (uint32_t i = 0; i < count; i++) {
		struct wf_held next = lane->newcomers.held[0];
		lane->newcomers.held_count--;
		memmove(&lane->newcomers.held[0], &lane->newcomers.held[1],
			lane->newcomers.held_count * sizeof(lane->newcomers.held[0]));
		consider(lane, next.conn, &next.hello);
	}
}

static void
forget_held(struct wf_lane *lane, const struct wf_event *event)
{
	for (uint32_t i = 0; i < lane->newcomers.held_count; i++) {
		if (lane->newcomers.held[i].conn == event->conn) {
			const struct wf_hello hello = lane->newcomers.held[i].hello;
			lane->newcomers.held[i] =
				lane->newcomers.held[--lane->newcomers.held_count];
			wf_absent_note_gone(lane, &hello, event->down.status, event->down.why);
			return;
		}
	}
}

/* The path is gone: drops what belonged to it. What was received stays. */
static void
forget_path(struct wf_lane *lane, struct wf_peer *peer)
{
	peer->conn = NULL;
	wf_path_ends(lane, peer);
	peer->beat = (struct wf_beat){0};
	peer->loading.is_due = false;
	wf_control_path_ends(peer);
	wf_reduce_path_ends(peer);
	peer->absent_due = false;
}

/* Its attempt to connect took too long, and it gave up before it knew that it was admitted: it has
 * not joined. Returns false if that is not so. */
static bool
is_given_up(const struct wf_lane *lane, const struct wf_peer *peer, const struct wf_event *event)
{
	bool by_this_end = peer->lost.why[0] != '\0';
	return lane->state == WF_LANE_RUNNING && peer->state == WF_PEER_UP && !peer->has_joined &&
	       event->down.status == WEFT_CLOSED && !by_this_end &&
	       wf_now_ns(lane->env) < lane->admission.deadline_ns;
}

static void
note_loss(struct wf_lane *lane, struct wf_peer *peer, const struct wf_event *event)
{
	if (peer->state == WF_PEER_GONE) {
		return; /* it reconnects if it has not received the acknowledgement of its GOODBYE
			 * */
	}
	if (is_given_up(lane, peer, event)) {
		peer->state = WF_PEER_ABSENT;
		if (peer->successor.conn == NULL) {
			wf_absent_note_gone(lane, &peer->hello, WEFT_CLOSED, event->down.why);
		}
		return;
	}
	peer->state = WF_PEER_LOST;
	if (peer->leaving.ordered) {
		return;
	}
	peer->lost.deadline_ns = wf_now_ns(lane->env) + lane->opts.reconnect_timeout_ns;
	/* A lane that refused it, if one did, has the reason. */
	if (!peer->lost.offended && !wf_lane_has_run(lane)) {
		peer->lost.deadline_ns += WF_REFUSAL_FIRST_NS;
	}
	if (peer->lost.why[0] == '\0') { /* else this end closed it, and has noted why */
		(void)snprintf(peer->lost.why, sizeof(peer->lost.why), "%.*s", WF_WHY_BYTES - 1,
			       event->down.why);
	}
	if (lane->state == WF_LANE_RUNNING && peer->successor.conn == NULL) {
		wf_log(lane->env, WF_LOG_WARN,
		       "lane %u: trainer %u is lost: %s; it has %.1f s to come back",
		       lane->opts.idx, peer->trainer, peer->lost.why,
		       (double)lane->opts.reconnect_timeout_ns / 1e9);
	}
}

void
wf_admit_down(struct wf_lane *lane, const struct wf_event *event)
{
	forget_held(lane, event);
	struct wf_peer *heir = wf_peers_find_successor(&lane->peers, event->conn);
	if (heir != NULL) {
		heir->successor.conn = NULL;
		return;
	}
	struct wf_peer *peer = wf_admit_peer_of(lane, event->conn);
	if (peer == NULL) {
		if (!wf_watch_event(lane, event)) {
			wf_lane_registry(lane, event, NULL);
		}
		return;
	}
	bool was_loading = peer->loading.is_due;
	forget_path(lane, peer);
	note_loss(lane, peer, event);
	if (wf_peer_has_newer_path(peer)) {
		struct wf_conn *next = peer->successor.conn;
		struct wf_hello hello = peer->successor.hello;
		peer->successor.conn = NULL;
		welcome(lane, peer, next, &hello);
	} else if (was_loading) {
		reconsider_held(lane);
	}
}

void
wf_admit_job_is_here(struct wf_lane *lane, struct wf_peer *peer, enum weft_status st)
{
	WF_ASSERT(peer->loading.is_due && !lane->job.is_here);
	peer->loading.is_due = false;
	if (st != WEFT_OK) {
		wf_lane_fail(lane, st, 0, "%.200s", weft_last_error());
		return; /* by ABORT */
	}
	lane->job.is_here = true;
	wf_start_look(lane);
	if (lane->state == WF_LANE_RUNNING) {
		reconsider_held(lane);
	}
}

void
wf_admit_release_job(struct wf_lane *lane)
{
	if (lane->own != NULL) {
		lane->service->release(lane);
	}
	wf_path_close(lane);
	wf_peers_close(lane);
	lane->turn.due = NULL;
	lane->admission = (struct wf_admission){0};
	lane->job = (struct wf_described){0};
	lane->turn.works = false;
	lane->turn.tick_ns = 0;
	lane->newcomers.held_count = 0;
	wf_absent_release(lane);
	lane->reduction = (struct wf_reduction){0};
	lane->members = (struct wf_lane_members){0};
}
