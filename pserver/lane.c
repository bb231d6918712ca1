/* SPDX-License-Identifier: Apache-2.0 */
/* lane: the turn of a lane: events and deadlines. Thread: the lane's. */
#include "pserver/dense.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "pserver/members.h"
#include "pserver/trace.h"
#include "pserver/view.h"
#include "pserver/watch.h"
#include "transport/rdma.h"

#define TICK_NS (WF_NS_PER_S / 10) /* deadlines of jobs are coarse */
#define AWAY_NS (10 * TICK_NS)     /* between two looks at a deadline: the lane was not there */
#define STRANGERS_PERIOD_NS WF_NS_PER_S
/* Limit of lines about connections that are refused or closed: connecting costs them nothing. */
#define WARNINGS_PER_S 10

/* Places for all that the lane may keep at a time: of each trainer a path, its successor and one
 * that has just ended; hellos that are held; and those that one poll shows, which are answered
 * before the next. A trainer never finds none, however many others come. */
static uint32_t
conn_max(const struct wf_lane_opts *opts)
{
	uint32_t trainers = opts->num_gradient_servers;
	trainers = trainers > 0 ? trainers : opts->max_trainers;
	uint64_t most = 3 * (uint64_t)trainers + WF_HELD_MAX + WF_TURN_EVENTS + WF_WATCHERS_MAX;
	bool has_registry = opts->snapshots != NULL || opts->members != NULL;
	most += has_registry ? WF_REGISTRY_CONNS_MAX : 0;
	return most < WF_CONN_MAX_LIMIT ? (uint32_t)most : WF_CONN_MAX_LIMIT;
}

/* The service's. */
static enum weft_status
alloc_own(struct wf_lane *lane)
{
	size_t bytes = lane->service->own_bytes;
	lane->own = wf_zalloc(lane->env, bytes);
	return lane->own != NULL ? WEFT_OK
				 : wf_fail(WEFT_NOMEM, "lane %u: %zu bytes", lane->opts.idx, bytes);
}

enum weft_status
wf_lane_create(const struct wf_lane_opts *opts, struct wf_lane **out)
{
	WF_ASSERT(opts->slot_count > 0 && (opts->slot_count & (opts->slot_count - 1)) == 0);
	struct wf_lane *lane = wf_zalloc(opts->env, sizeof(*lane));
	if (lane == NULL) {
		return wf_fail(WEFT_NOMEM, "lane %u: %zu bytes", opts->idx, sizeof(*lane));
	}
	lane->env = opts->env;
	lane->opts = *opts;
	lane->newcomers.warnings.most = WARNINGS_PER_S;
	lane->service = opts->service != NULL ? opts->service : &wf_dense_service;
	wf_turn_init(&lane->turn, opts->env, lane, opts->spin_ns);
	lane->turn.awaits_done = true;
	wf_lane_report_init(lane);
	struct wf_transport_opts transport_opts = {
		.env = opts->env,
		.conn_max = conn_max(opts),
		.newcomer_max = opts->newcomer_max,
		.knows = wf_admit_knows,
		.knows_arg = lane,
		.put_bytes_max = opts->slot_bytes_max,
	};
	wf_transport_opts_set(opts->network, &transport_opts);
	char verbs[WF_RDMA_SETTINGS_BYTES]; /* the transport copies it */
	enum weft_status st =
		wf_rdma_settings_for_lane(transport_opts.verbs, opts->idx, opts->numa_node, verbs);
	transport_opts.verbs = verbs;
	lane->opts.network = NULL;
	if (st == WEFT_OK) {
		st = alloc_own(lane);
	}
	if (st == WEFT_OK) {
		st = wf_transport_open("paths", &transport_opts, &lane->turn.transport);
	}
	if (st == WEFT_OK) {
		st = wf_transport_listen(lane->turn.transport, &opts->listen, &lane->port);
	}
	if (st != WEFT_OK) {
		wf_lane_destroy(lane);
		return st;
	}
	*out = lane;
	return WEFT_OK;
}

static void
log_suppressed(struct wf_lane *lane, uint64_t now)
{
	uint64_t unsaid = wf_log_limit_unsaid(&lane->newcomers.warnings, now);
	if (unsaid > 0) {
		wf_log(lane->env, WF_LOG_WARN,
		       "lane %u: %" PRIu64 " more connections were refused or closed than the log "
		       "names",
		       lane->opts.idx, unsaid);
	}
}

void
wf_lane_destroy(struct wf_lane *lane)
{
	if (lane == NULL) {
		return;
	}
	wf_transport_close(lane->turn.transport);
	lane->turn.transport = NULL;
	wf_watch_close(lane);
	wf_admit_release_job(lane);
	wf_free(lane->env, lane->own, lane->service->own_bytes);
	log_suppressed(lane, WF_NEVER);
	wf_free(lane->env, lane, sizeof(*lane));
}

uint16_t
wf_lane_port(const struct wf_lane *lane)
{
	return lane->port;
}

void
wf_lane_wait(struct wf_lane *lane, uint64_t deadline_ns)
{
	wf_transport_wait(lane->turn.transport, deadline_ns);
}

enum wf_lane_job
wf_lane_job_state(const struct wf_lane *lane)
{
	bool ending = lane->state == WF_LANE_FINISHED || lane->state == WF_LANE_FAILED;
	return ending && !lane->end.complete ? WF_LANE_RUNNING : lane->state;
}

bool
wf_lane_looked(const struct wf_lane *lane)
{
	return lane->turn.ticked;
}

const struct wf_lane_cause *
wf_lane_cause(const struct wf_lane *lane)
{
	return &lane->end.cause;
}

const struct wf_stats *
wf_lane_stats(const struct wf_lane *lane)
{
	return &lane->stats;
}

const struct wf_hist *
wf_lane_step_times(const struct wf_lane *lane)
{
	return &lane->report.step_time;
}

/* A trainer that has sent GOODBYE may send it again on a new path, and what opens a path; nothing
 * else. */
static bool
is_farewell(const struct wf_head *head)
{
	return head->service == WF_SERVICE_CONTROL &&
	       (head->type == WF_MSG_GOODBYE || head->type == WF_MSG_ABORT ||
		head->type == WF_MSG_BEAT || head->type == WF_MSG_GRANT ||
		head->type == WF_MSG_HAVE);
}

static enum weft_status
handle_msg(struct wf_lane *lane, struct wf_peer *peer, const struct wf_event *event)
{
	const struct wf_head *head = event->msg.head;
	if (peer->state == WF_PEER_GONE && !is_farewell(head)) {
		return wf_fail(WEFT_PROTOCOL, "message of type %u after GOODBYE", head->type);
	}
	if (head->service == lane->service->number) {
		return lane->service->message(lane, peer, head, event->msg.body);
	}
	if (head->service == WF_SERVICE_CONTROL) {
		return wf_control_on_message(lane, peer, event);
	}
	return wf_fail(WEFT_PROTOCOL, "message for service %u on a %s lane", head->service,
		       lane->service->name);
}

/* `peer`: NULL for a path without a trainer. */
static void
handle_done(struct wf_lane *lane, struct wf_peer *peer, const struct wf_event *event)
{
	uint64_t cookie = event->done.cookie;
	if (peer != NULL) {
		wf_beat_done(&peer->beat, cookie);
	}
	if (wf_beat_is_other(cookie)) {
		lane->service->done(lane, cookie);
	}
}

static void
handle_event(void *end, const struct wf_event *event)
{
	struct wf_lane *lane = end;
	if (event->kind == WF_EVENT_UP || event->kind == WF_EVENT_DOWN) {
		lane->turn.tick_ns = 0;
		(event->kind == WF_EVENT_UP ? wf_admit_up : wf_admit_down)(lane, event);
		return;
	}
	struct wf_peer *peer = wf_admit_peer_of(lane, event->conn);
	if (event->kind == WF_EVENT_DONE) {
		handle_done(lane, peer, event);
		return;
	}
	if (peer == NULL) {
		if (!wf_watch_event(lane, event)) {
			wf_lane_registry(lane, event, NULL);
		}
		return;
	}
	if (peer->closing || lane->state == WF_LANE_FAILED) {
		return;
	}
	peer->beat.heard = true;
	peer->has_joined = true;
	enum weft_status st = event->kind == WF_EVENT_MSG
				      ? handle_msg(lane, peer, event)
				      : lane->service->put(lane, peer, &event->put);
	if (st != WEFT_OK) {
		wf_lane_offence(lane, peer);
	}
}

/* Names the trainers that are waited for. */
static void
log_waiting(struct wf_lane *lane, uint64_t now)
{
	wf_waits_look(lane);
	for (enum wf_lane_awaits kind = 0; kind < WF_LANE_AWAITS_COUNT; kind++) {
		uint64_t since = wf_waits_reported_since(lane, kind);
		if (!wf_wait_is_due(&lane->waits.gate[kind], since, now)) {
			continue;
		}
		char who[2 * WF_REASON_BYTES];
		char silent[WF_REASON_BYTES];
		wf_waits_describe(lane, kind, who, sizeof(who));
		wf_lane_beats_describe(lane, kind, silent, sizeof(silent));
		wf_log(lane->env, WF_LOG_WARN, "lane %u: %s, for %" PRIu64 " s now%s",
		       lane->opts.idx, who, (uint64_t)((now - since) / WF_NS_PER_S), silent);
	}
}

/* Time in which the lane took no turns does not count: its process stood still, or the clock leapt,
 * and nobody knows what would have arrived meanwhile. */
static bool
is_loading_late(struct wf_peer_loading *loading, uint64_t now)
{
	const uint64_t since_ns = now - loading->looked_ns;
	loading->deadline_ns += since_ns > AWAY_NS ? since_ns : 0;
	loading->looked_ns = now;
	return now >= loading->deadline_ns;
}

/* The job's description does not arrive, and other trainers wait for it. If nothing was received
 * from its sender, the sender's host or the network may be gone without the medium having noticed:
 * the sender is lost, and may reconnect on another path, as long as trainers may connect. */
static void
check_loading(struct wf_lane *lane, struct wf_peer *peer, uint64_t now)
{
	if (!peer->loading.is_due || peer->closing || !is_loading_late(&peer->loading, now)) {
		return;
	}
	(void)wf_fail(WEFT_TIMEOUT, "JOB: %" PRIu64 " of %" PRIu64 " bytes came in time",
		      lane->job.received_bytes, lane->admission.first.job_bytes);
	if (lane->job.received_bytes == 0 && now < lane->admission.deadline_ns) {
		wf_peer_end_path(peer);
	} else {
		wf_lane_offence(lane, peer);
	}
}

static void
check_running(struct wf_lane *lane, uint64_t now)
{
	for (uint32_t i = 0; i < lane->peers.count; i++) {
		struct wf_peer *peer = &lane->peers.all[i];
		check_loading(lane, peer, now);
		if (peer->state == WF_PEER_LOST && now >= peer->lost.deadline_ns) {
			char who[WF_REASON_BYTES];
			char reason[WF_REASON_BYTES];
			wf_peer_describe(peer, who, sizeof(who));
			(void)snprintf(reason, sizeof(reason),
				       "%.80s was lost in step %" PRIu64
				       ": %.100s; not back within %.1f s",
				       who, lane->order.sum.step, peer->lost.why,
				       (double)lane->opts.reconnect_timeout_ns / 1e9);
			if (wf_members_lose(lane, peer, reason)) {
				continue;
			}
			wf_lane_fail(lane, wf_lane_loss(lane), lane->order.sum.step, "%s", reason);
			return;
		}
		if (peer->state == WF_PEER_ABSENT && now >= lane->admission.deadline_ns) {
			const char *why = wf_absent_why(lane, i);
			wf_lane_fail(lane, WEFT_TIMEOUT, 0,
				     "trainer %u of %u did not come within %.0f s%s%.190s", i,
				     lane->peers.count, (double)lane->opts.connect_timeout_ns / 1e9,
				     why[0] != '\0' ? "; " : "", why);
			return;
		}
	}
	wf_absent_check(lane, now);
	if (lane->state == WF_LANE_RUNNING) {
		wf_lane_beats_look(lane, now);
	}
	if (lane->state == WF_LANE_RUNNING) {
		log_waiting(lane, now);
	}
}

/* Connections that were closed before a valid hello: the transport counts them; they are logged
 * here, once a second at most. */
static void
report_strangers(struct wf_lane *lane, uint64_t now)
{
	if (now < lane->newcomers.strangers_look_ns) {
		return;
	}
	lane->newcomers.strangers_look_ns = now + STRANGERS_PERIOD_NS;
	wf_lane_report_gather(lane);
	const struct wf_transport_info *info = &lane->report.lines.info;
	uint64_t news = info->strangers_refused - lane->newcomers.strangers_said;
	if (news == 0) {
		return;
	}
	lane->newcomers.strangers_said = info->strangers_refused;
	if (wf_lane_may_warn(lane)) {
		wf_log(lane->env, WF_LOG_WARN,
		       "lane %u: closed the connection of a stranger: %s; %" PRIu64 " so far",
		       lane->opts.idx, info->last_stranger, info->strangers_refused);
	} else {
		lane->newcomers.warnings.unsaid +=
			news - 1; /* one is counted: each of them, once */
	}
}

/* Everything that the clock decides: not every turn's business. */
static void
tick(void *end, uint64_t now)
{
	struct wf_lane *lane = end;
	lane->turn.tick_ns = now + TICK_NS; /* unless what follows wants it sooner */
	log_suppressed(lane, now);
	report_strangers(lane, now);
	wf_view_look(lane, now);
	wf_trace_look(lane, now);
	wf_watch_look(lane, now);
	if (lane->state == WF_LANE_IDLE || lane->end.complete) {
		return;
	}
	if (lane->state == WF_LANE_RUNNING) {
		check_running(lane, now);
	}
	if (lane->state == WF_LANE_RUNNING) {
		wf_start_look(lane);
	}
	if (lane->state == WF_LANE_RUNNING && lane->opts.members != NULL) {
		wf_members_look(lane, now);
	}
	if (lane->state == WF_LANE_RUNNING && lane->service->tick != NULL) {
		lane->service->tick(lane, now);
	}
	if (lane->state != WF_LANE_RUNNING) {
		if (wf_end_look(lane, now)) {
			wf_lane_report_job_ends(lane);
		}
		wf_turn_tick_before(&lane->turn,
				    now < lane->end.deadline_ns ? lane->end.deadline_ns : WF_NEVER);
	}
	if (now >= lane->report.lines.next_ns) {
		wf_lane_report_period(lane, now);
	}
	wf_turn_tick_before(&lane->turn, lane->report.lines.next_ns);
}

static inline struct wf_peer *
peer_of(struct wf_due *due)
{
	return (void *)((char *)due - offsetof(struct wf_peer, due));
}

static bool
flush(struct wf_due *due)
{
	struct wf_peer *peer = peer_of(due);
	return wf_control_flush(peer->lane, peer);
}

static bool
flush_owed(struct wf_due *due)
{
	struct wf_peer *peer = peer_of(due);
	return peer->lane->service->flush_owed(peer->lane, peer);
}

/* A transport that failed once fails in every poll that follows. The first cause is kept, also
 * where something else ended the job before. */
static void
transport_failed(void *end, enum weft_status st)
{
	struct wf_lane *lane = end;
	if (lane->state == WF_LANE_RUNNING) {
		wf_lane_fail(lane, st, lane->order.sum.step,
			     "lane %u: its transport failed: %.200s", lane->opts.idx,
			     weft_last_error());
		return;
	}
	wf_end_at_once(lane, st);
}

static bool
work(void *end)
{
	struct wf_lane *lane = end;
	return lane->service->work(lane);
}

static const struct wf_turn_ops turn_ops = {
	.event = handle_event,
	.flush = flush,
	.flush_owed = flush_owed,
	.failed = transport_failed,
	.work = work,
	.tick = tick,
};

static void
own(struct wf_lane *lane)
{
	if (lane->owner.thread == 0) {
		wf_owner_claim(&lane->owner);
	}
	WF_ASSERT_OWNER(lane);
}

bool
wf_lane_poll(struct wf_lane *lane)
{
	own(lane);
	return wf_turn_run(&lane->turn, &turn_ops);
}

enum wf_rest
wf_lane_arm(struct wf_lane *lane, uint64_t *deadline_ns)
{
	return wf_turn_arm(&lane->turn, &turn_ops, deadline_ns);
}

bool
wf_lane_advance(struct wf_lane *lane, uint64_t *deadline_ns)
{
	own(lane);
	return wf_turn_round(&lane->turn, &turn_ops, deadline_ns);
}

void
wf_lane_reset(struct wf_lane *lane)
{
	WF_ASSERT(lane->end.complete);
	wf_admit_release_job(lane);
	wf_end_forget(lane);
}
