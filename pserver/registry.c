/* SPDX-License-Identifier: Apache-2.0 */
/* registry: see registry.h. This is the registrar's end; delegate.c is the other one. Thread: lane
 * 0's. */
#include "pserver/registry.h"

#include <stdio.h>

#include "exchange/send.h"
#include "pserver/delegate.h"
#include "pserver/membership.h"
#include "pserver/refuse.h"
#include "wire/registry_messages.h"

/* The connection of one pserver. */
struct link {
	struct wf_conn *conn; /* NULL: none */
	uint64_t incarnation;
	bool has_joined;
	/* What was sent on it. */
	bool has_load, has_run;
	uint64_t border;
	uint64_t change;  /* MEMBER, */
	bool has_border;  /* with a border */
	uint64_t lost_ns; /* since when there is none, and it is to be logged; 0: it is not */
};

struct wf_registry {
	struct wf_lane *lane;
	struct wf_delegate *delegate;     /* of a pserver that is not the first; else NULL, and: */
	struct wf_registrar *registrar;   /* NULL without snapshots */
	struct wf_membership *membership; /* NULL where a lost trainer ends the job */
	struct link *link;                /* [pserver_count] by pserver; 0 is not used */
	uint32_t pserver_count;
};

static void
drop_manifest(struct wf_lane *lane, struct wf_manifest *about)
{
	if (about != NULL) {
		wf_manifest_fini(lane->env, about);
	}
}

/* `about`: NULL without snapshots. */
static enum weft_status
open_registrar(struct wf_registry *self, struct wf_manifest *about)
{
	struct wf_lane *lane = self->lane;
	const struct wf_registrar_opts opts = {
		.env = lane->env,
		.snapshots = lane->opts.snapshots,
		.deadline_ns = lane->admission.deadline_ns,
		.views = lane->opts.views,
	};
	self->pserver_count = lane->admission.first.pserver_count;
	self->link = wf_zalloc_array(lane->env, self->pserver_count, sizeof(*self->link));
	enum weft_status st =
		self->link != NULL ? WEFT_OK
				   : wf_fail(WEFT_NOMEM, "no memory for connections of %u pservers",
					     self->pserver_count);
	if (st == WEFT_OK && lane->opts.members != NULL) {
		st = wf_membership_open(lane, &self->membership);
	}
	if (st != WEFT_OK) {
		drop_manifest(lane, about);
	}
	return st == WEFT_OK && about != NULL ? wf_registrar_open(&opts, about, &self->registrar)
					      : st;
}

enum weft_status
wf_registry_open(struct wf_lane *lane, struct wf_manifest *about, struct wf_registry **out)
{
	struct wf_registry *self = wf_zalloc(lane->env, sizeof(*self));
	enum weft_status st = WEFT_OK;
	if (self == NULL) {
		drop_manifest(lane, about);
		return wf_fail(WEFT_NOMEM, "registry: %zu bytes", sizeof(*self));
	}
	self->lane = lane;
	if (lane->opts.snapshots != NULL) {
		wf_snapshots_begin(lane->opts.snapshots);
	}
	if (lane->admission.first.pserver_idx == 0) {
		st = open_registrar(self, about);
	} else {
		drop_manifest(lane, about);
		st = wf_delegate_open(lane, &self->delegate);
	}
	if (st != WEFT_OK) {
		wf_registry_close(self);
		return st;
	}
	*out = self;
	return WEFT_OK;
}

void
wf_registry_end(struct wf_registry *self)
{
	if (self->registrar != NULL) {
		wf_registrar_end(self->registrar);
	}
}

bool
wf_registry_is_over(struct wf_registry *self, uint64_t now_ns, uint64_t *next_ns)
{
	return self->delegate == NULL || wf_delegate_is_over(self->delegate, now_ns, next_ns);
}

void
wf_registry_close(struct wf_registry *self)
{
	if (self == NULL) {
		return;
	}
	struct wf_lane *lane = self->lane;
	if (lane->opts.snapshots != NULL) {
		wf_snapshots_end(lane->opts.snapshots);
	}
	wf_registrar_close(self->registrar);
	wf_membership_close(self->membership);
	wf_delegate_close(self->delegate);
	for (uint32_t i = 0; lane->turn.transport != NULL && i < self->pserver_count; i++) {
		if (self->link != NULL && self->link[i].conn != NULL) {
			wf_transport_disconnect(self->link[i].conn, WF_DISCONNECT_DRAIN);
		}
	}
	wf_free(lane->env, self->link, self->pserver_count * sizeof(*self->link));
	wf_free(lane->env, self, sizeof(*self));
}

/* ---- who comes ---- */

static enum weft_status
check_hello(struct wf_registry *self, const struct wf_hello *hello)
{
	const struct wf_hello *first = &self->lane->admission.first;
	if (self->delegate != NULL) {
		return wf_fail(WEFT_MISMATCH,
			       "pserver %u looks for pserver 0, and this is pserver %u; check "
			       "--registrar and the order of --pservers",
			       hello->trainer_id, first->pserver_idx);
	}
	if (hello->trainer_id == 0 || hello->trainer_count != self->pserver_count ||
	    hello->job_digest != first->job_digest ||
	    hello->tensors_digest != first->tensors_digest) {
		return wf_fail(WEFT_UNAVAILABLE,
			       "pserver %u of %u has another job than this pserver; try again",
			       hello->trainer_id, hello->trainer_count);
	}
	struct link *link = &self->link[hello->trainer_id];
	if (link->conn != NULL) {
		bool is_same = link->incarnation == hello->incarnation;
		if (is_same) { /* it has lost this one, and comes again */
			wf_transport_disconnect(link->conn, WF_DISCONNECT_NOW);
		}
		return wf_fail(WEFT_UNAVAILABLE, "pserver %u is connected%s; try again",
			       hello->trainer_id, is_same ? "" : ", and is another process");
	}
	return WEFT_OK;
}

static void
welcome(struct wf_registry *self, struct wf_conn *conn, const struct wf_hello *hello)
{
	const struct wf_lane_opts *opts = &self->lane->opts;
	const struct wf_welcome yes = {
		.version = WF_WIRE_VERSION,
		.incarnation = opts->incarnation,
		.slot_count = opts->slot_count,
		.msg_bytes_max = WF_MSG_BODY_MAX,
		.put_bytes_max = opts->slot_bytes_max,
	};
	uint8_t bytes[WF_HELLO_MAX];
	size_t used = wf_welcome_encode(&yes, bytes);
	conn->user = NULL;
	if (wf_transport_answer(conn, true, bytes, used) == WEFT_OK) {
		self->link[hello->trainer_id] =
			(struct link){.conn = conn, .incarnation = hello->incarnation};
	} /* else it is gone, and comes again */
}

/* ---- messages ---- */

static enum weft_status
on_join(struct wf_registry *self, uint32_t idx, const struct wf_event *event)
{
	struct link *link = &self->link[idx];
	struct wf_registry_join join;
	if (link->has_joined) {
		return wf_fail(WEFT_PROTOCOL, "JOIN: pserver %u has joined on this connection",
			       idx);
	}
	enum weft_status st = wf_registry_join_decode(event->msg.head, event->msg.body, &join);
	if (st == WEFT_OK && self->registrar != NULL) {
		st = wf_registrar_join(self->registrar, idx, link->incarnation, &join);
	}
	if (st == WEFT_ROLLED_BACK) {
		wf_lane_fail(self->lane, st, self->lane->order.sum.step, "%.200s",
			     weft_last_error());
	}
	if (st != WEFT_OK) {
		return st;
	}
	wf_log(self->lane->env, WF_LOG_INFO, "pserver %u has come to the registrar", idx);
	link->has_joined = true;
	return WEFT_OK;
}

/* About snapshots. */
static enum weft_status
on_snapshot_message(struct wf_registry *self, uint32_t idx, const struct wf_head *head,
		    const uint8_t *body)
{
	union {
		struct wf_registry_loaded loaded;
		struct wf_registry_bad bad;
		struct wf_registry_part part;
		struct wf_registry_failed failed;
	} msg;
	enum weft_status st = WEFT_OK;
	switch (head->type) {
	case WF_REGISTRY_LOADED:
		st = wf_registry_loaded_decode(head, body, &msg.loaded);
		return st != WEFT_OK ? st
				     : wf_registrar_on_loaded(self->registrar, idx, &msg.loaded);
	case WF_REGISTRY_BAD:
		st = wf_registry_bad_decode(head, body, &msg.bad);
		return st != WEFT_OK ? st : wf_registrar_on_bad(self->registrar, idx, &msg.bad);
	case WF_REGISTRY_PART:
		st = wf_registry_part_decode(head, body, &msg.part);
		return st != WEFT_OK ? st : wf_registrar_on_part(self->registrar, idx, &msg.part);
	default:
		st = wf_registry_failed_decode(head, body, &msg.failed);
		return st != WEFT_OK ? st
				     : wf_registrar_on_failed(self->registrar, idx, &msg.failed);
	}
}

/* About trainers that are lost, leave or join. */
static enum weft_status
on_member_message(struct wf_registry *self, uint32_t idx, const struct wf_head *head,
		  const uint8_t *body)
{
	union {
		struct wf_registry_lost lost;
		struct wf_registry_stands stands;
		struct wf_registry_settled settled;
		struct wf_registry_comes comes;
	} msg;
	enum weft_status st = WEFT_OK;
	switch (head->type) {
	case WF_REGISTRY_LOST:
		st = wf_registry_lost_decode(head, body, &msg.lost);
		return st != WEFT_OK ? st : wf_membership_on_lost(self->membership, idx, &msg.lost);
	case WF_REGISTRY_COMES:
		st = wf_registry_comes_decode(head, body, &msg.comes);
		return st != WEFT_OK ? st
				     : wf_membership_on_comes(self->membership, idx, &msg.comes);
	case WF_REGISTRY_STANDS:
		st = wf_registry_stands_decode(head, body, &msg.stands);
		return st != WEFT_OK ? st
				     : wf_membership_on_stands(self->membership, idx, &msg.stands);
	default:
		st = wf_registry_settled_decode(head, body, &msg.settled);
		return st != WEFT_OK
			       ? st
			       : wf_membership_on_settled(self->membership, idx, &msg.settled);
	}
}

static enum weft_status
on_message(struct wf_registry *self, uint32_t idx, const struct wf_event *event)
{
	const struct wf_head *head = event->msg.head;
	const uint8_t *body = event->msg.body;
	if (head->service != WF_SERVICE_REGISTRY ||
	    (!self->link[idx].has_joined && head->type != WF_REGISTRY_JOIN)) {
		return wf_fail(WEFT_PROTOCOL, "message of type %u of service %u before JOIN",
			       head->type, head->service);
	}
	bool of_snapshots = head->type == WF_REGISTRY_LOADED || head->type == WF_REGISTRY_BAD ||
			    head->type == WF_REGISTRY_PART || head->type == WF_REGISTRY_FAILED;
	bool of_members = head->type == WF_REGISTRY_LOST || head->type == WF_REGISTRY_STANDS ||
			  head->type == WF_REGISTRY_SETTLED || head->type == WF_REGISTRY_COMES;
	if (head->type == WF_REGISTRY_JOIN) {
		return on_join(self, idx, event);
	}
	if (of_snapshots && self->registrar != NULL) {
		return on_snapshot_message(self, idx, head, body);
	}
	if (of_members && self->membership != NULL) {
		return on_member_message(self, idx, head, body);
	}
	return wf_fail(WEFT_PROTOCOL, "message of type %u, which this registrar does not take",
		       head->type);
}

static void
note_down(struct wf_registry *self, uint32_t idx)
{
	bool has_joined = self->link[idx].has_joined;
	self->link[idx] = (struct link){.lost_ns = has_joined ? wf_now_ns(self->lane->env) : 0};
	if (self->registrar != NULL) {
		wf_registrar_lose(self->registrar, idx);
	}
}

static void
on_link_event(struct wf_registry *self, uint32_t idx, const struct wf_event *event)
{
	if (event->kind == WF_EVENT_DOWN) {
		note_down(self, idx);
		return;
	}
	enum weft_status st = event->kind == WF_EVENT_MSG
				      ? on_message(self, idx, event)
				      : wf_fail(WEFT_PROTOCOL, "only messages go between pservers");
	if (event->kind != WF_EVENT_DONE && st != WEFT_OK) {
		wf_log(self->lane->env, WF_LOG_WARN, "connection of pserver %u is closed: %s", idx,
		       weft_last_error());
		wf_transport_disconnect(self->link[idx].conn, WF_DISCONNECT_NOW);
	}
}

void
wf_registry_event(struct wf_registry *self, const struct wf_event *event,
		  const struct wf_hello *hello)
{
	struct wf_lane *lane = self->lane;
	wf_turn_tick_before(&lane->turn, 0);
	if (hello != NULL) {
		if (check_hello(self, hello) == WEFT_OK) {
			welcome(self, event->conn, hello);
		} else {
			wf_refuse_other(lane, event->conn, "pserver");
		}
		return;
	}
	if (self->delegate != NULL) {
		wf_delegate_event(self->delegate, event);
	}
	for (uint32_t i = 1; i < self->pserver_count; i++) {
		if (self->link[i].conn == event->conn) {
			on_link_event(self, i, event);
			return;
		}
	}
}

/* ---- orders ---- */

/* Each order once on each connection. False: the transport accepts no more. */
static bool
send_orders(struct wf_lane *lane, struct link *link, const struct wf_registrar_orders *orders)
{
	const struct wf_snapshot_base *base = &orders->base;
	if (orders->load && !link->has_load) {
		const struct wf_registry_load msg = {
			.epoch = base->epoch, .base = wf_registry_id_of(base), .crc = orders->crc};
		wf_registry_load_encode(&msg, &lane->msg);
		link->has_load = wf_send(link->conn, &lane->msg, 0);
		return link->has_load;
	}
	if (orders->run && !link->has_run) {
		const struct wf_registry_run msg = {.epoch = base->epoch,
						    .base = wf_registry_id_of(base),
						    .samples = orders->samples};
		wf_registry_run_encode(&msg, &lane->msg);
		link->has_run = wf_send(link->conn, &lane->msg, 0);
		return link->has_run;
	}
	if (orders->border != 0 && link->border != orders->border) {
		const struct wf_registry_snapshot msg = {
			.epoch = base->epoch, .border = orders->border, .base = orders->builds_on};
		wf_registry_snapshot_encode(&msg, &lane->msg);
		bool is_sent = wf_send(link->conn, &lane->msg, 0);
		link->border = is_sent ? orders->border : link->border;
		return is_sent;
	}
	return true;
}

/* Likewise; one without a border, then with one. */
static bool
send_leave(struct wf_lane *lane, struct link *link, const struct wf_registry_member *leave)
{
	bool has_border = leave != NULL && leave->border != 0;
	if (leave == NULL || (link->change == leave->change && link->has_border == has_border)) {
		return true;
	}
	wf_registry_member_encode(leave, &lane->msg);
	if (!wf_send(link->conn, &lane->msg, 0)) {
		return false;
	}
	link->change = leave->change;
	link->has_border = has_border;
	return true;
}

static bool
send_to(struct wf_registry *self, uint32_t idx)
{
	struct link *link = &self->link[idx];
	bool is_sent = true;
	if (self->registrar != NULL) {
		const struct wf_registrar_orders orders = wf_registrar_orders(self->registrar, idx);
		is_sent = send_orders(self->lane, link, &orders);
	}
	if (self->membership != NULL) {
		is_sent =
			send_leave(self->lane, link, wf_membership_order(self->membership, idx)) &&
			is_sent;
	}
	return is_sent;
}

/* At the end of a job one pserver is done a moment before the other. */
static void
warn_lost(struct wf_registry *self, uint32_t idx, uint64_t now_ns)
{
	struct link *link = &self->link[idx];
	if (link->lost_ns == 0 || now_ns < link->lost_ns + WF_REGISTRY_LOST_NS) {
		return;
	}
	link->lost_ns = 0;
	wf_log(self->lane->env, WF_LOG_WARN,
	       "pserver %u is not connected to the registrar, and %s before it is back", idx,
	       self->registrar != NULL ? "no snapshot ends" : "no trainer is dropped");
}

static uint64_t
send_all_orders(struct wf_registry *self, uint64_t now_ns)
{
	uint64_t next_ns = WF_NEVER;
	for (uint32_t i = 1; i < self->pserver_count; i++) {
		const struct link *link = &self->link[i];
		warn_lost(self, i, now_ns);
		if (link->has_joined && !send_to(self, i)) {
			next_ns = now_ns + WF_REGISTRY_RETRY_NS;
		}
	}
	return next_ns;
}

static bool
is_trainer_here(const void *arg, uint32_t trainer, uint64_t incarnation)
{
	const struct wf_lane *lane = arg;
	const struct wf_peer *peer = trainer < lane->peers.count ? &lane->peers.all[trainer] : NULL;
	return peer != NULL && peer->state != WF_PEER_ABSENT &&
	       peer->hello.incarnation == incarnation;
}

/* Lets lanes of this pserver in; until all are, soon again. */
static uint64_t
match_lanes(const struct wf_registry *self, uint64_t now_ns)
{
	struct wf_snapshots *all = self->lane->opts.snapshots;
	bool all_in = all == NULL || wf_snapshots_match(all, is_trainer_here, self->lane) ==
					     wf_snapshots_lane_count(all);
	bool is_early = now_ns < self->lane->admission.start_ns + WF_REGISTRY_EARLY_NS;
	return !all_in && is_early ? now_ns + WF_REGISTRY_RETRY_NS : WF_NEVER;
}

static uint64_t
earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t
wf_registry_look(struct wf_registry *self, uint64_t now_ns)
{
	uint64_t next_ns = match_lanes(self, now_ns);
	if (self->delegate != NULL) {
		return earlier(next_ns, wf_delegate_look(self->delegate, now_ns));
	}
	if (self->registrar != NULL) {
		next_ns = earlier(next_ns, wf_registrar_look(self->registrar, now_ns));
	}
	if (self->membership != NULL) {
		next_ns = earlier(next_ns, wf_membership_look(self->membership, now_ns));
	}
	return earlier(next_ns, send_all_orders(self, now_ns));
}

void
wf_registry_allow(struct wf_registry *self, bool may_order)
{
	if (self->registrar != NULL) {
		wf_registrar_allow(self->registrar, may_order);
	}
}

struct wf_manifest_position *
wf_registry_note(struct wf_registry *self, uint64_t border, const struct wf_snapshot_moment *moment)
{
	return self->registrar != NULL ? wf_registrar_note(self->registrar, border, moment) : NULL;
}
