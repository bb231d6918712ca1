/* SPDX-License-Identifier: Apache-2.0 */
/* sim: the backend "sim": the transport contract over the network of a simulated world, as strictly
 * as the contract allows. Thread: the world's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tests/double/sim/sim.h"
#include "transport/events.h"
#include "wire/path.h"

#define PORT_MAX 65535u
#define PORT_FIRST 49152u

static struct wf_sim_transport *
self_of(struct wf_transport *transport)
{
	return (struct wf_sim_transport *)transport;
}

static struct wf_sim_conn *
conn_of(struct wf_conn *conn)
{
	return (struct wf_sim_conn *)conn;
}

/* --- events --- */

void
wf_sim_event_push(struct wf_sim_conn *conn, struct wf_sim_event *event, enum wf_event_kind kind)
{
	struct wf_sim_transport *t = conn->transport;
	WF_ASSERT(!event->queued);
	*event = (struct wf_sim_event){.prev = t->last, .kind = kind, .queued = true, .conn = conn};
	if (t->last != NULL) {
		t->last->next = event;
	} else {
		t->first = event;
	}
	t->last = event;
	t->event_count++;
	t->proc->ready++;
	wf_sim_wake(t->proc);
}

void
wf_sim_event_drop(struct wf_sim_event *event)
{
	if (!event->queued) {
		return;
	}
	struct wf_sim_transport *t = event->conn->transport;
	if (event->prev != NULL) {
		event->prev->next = event->next;
	} else {
		t->first = event->next;
	}
	if (event->next != NULL) {
		event->next->prev = event->prev;
	} else {
		t->last = event->prev;
	}
	event->queued = false;
	t->event_count--;
	t->proc->ready--;
}

static bool
is_of_frame(const struct wf_sim_event *event)
{
	return event->kind != WF_EVENT_DONE && event->kind != WF_EVENT_DOWN;
}

void
wf_sim_events_purge(struct wf_sim_transport *t, const struct wf_sim_conn *conn)
{
	struct wf_sim_event *next = NULL;
	for (struct wf_sim_event *event = t->first; event != NULL; event = next) {
		next = event->next;
		if (is_of_frame(event) && (conn == NULL || event->conn == conn)) {
			wf_sim_event_drop(event);
			free(WF_SIM_OUTER(struct wf_sim_frame, event, event));
		}
	}
}

static void
keep_until_next_poll(struct wf_sim_transport *t, struct wf_sim_frame *frame)
{
	frame->next = t->spent;
	t->spent = frame;
}

static void
report_up(struct wf_sim_transport *t, struct wf_sim_event *event, struct wf_event *out)
{
	struct wf_sim_frame *frame = WF_SIM_OUTER(struct wf_sim_frame, event, event);
	struct wf_sim_conn *conn = event->conn;
	out->up.incoming = frame->kind == WF_SIM_HELLO;
	out->up.blob = frame->body;
	out->up.blob_bytes = frame->body_bytes;
	if (out->up.incoming) {
		conn->asked = true;
	} else {
		t->info.conns_up++;
		if (conn->state == WF_SIM_ANSWERED) {
			conn->state = WF_SIM_UP;
		}
	}
	keep_until_next_poll(t, frame);
}

static void
report_put(struct wf_sim_event *event, struct wf_event *out)
{
	struct wf_sim_frame *frame = WF_SIM_OUTER(struct wf_sim_frame, event, event);
	out->put.tag = frame->tag;
	out->put.data = frame->in_slot ? frame->target : NULL;
	out->put.bytes = frame->bytes;
	free(frame);
}

static void
report_done(struct wf_sim_event *event, struct wf_event *out)
{
	struct wf_sim_op *op = WF_SIM_OUTER(struct wf_sim_op, event, event);
	out->done.cookie = op->cookie;
	out->done.status = op->status;
	wf_sim_op_free(op);
}

static void
report_down(struct wf_sim_transport *t, struct wf_sim_event *event, struct wf_event *out)
{
	struct wf_sim_conn *conn = event->conn;
	out->down.status = conn->down_status;
	out->down.why = conn->why;
	out->down.blob = conn->blob;
	out->down.blob_bytes = conn->blob_bytes;
	t->info.conns_down++;
	wf_sim_conn_detach(conn);
	conn->next = t->gone;
	t->gone = conn;
}

static void
report(struct wf_sim_transport *t, struct wf_sim_event *event, struct wf_event *out)
{
	wf_sim_event_drop(event);
	memset(out, 0, sizeof(*out));
	out->kind = event->kind;
	wf_event_set_conn(out, &event->conn->base);
	switch (event->kind) {
	case WF_EVENT_UP:
		report_up(t, event, out);
		break;
	case WF_EVENT_DOWN:
		report_down(t, event, out);
		break;
	case WF_EVENT_MSG: {
		struct wf_sim_frame *frame = WF_SIM_OUTER(struct wf_sim_frame, event, event);
		out->msg.head = &frame->head;
		out->msg.body = frame->body;
		keep_until_next_poll(t, frame);
		break;
	}
	case WF_EVENT_PUT:
		report_put(event, out);
		break;
	case WF_EVENT_DONE:
	default:
		WF_ASSERT(event->kind == WF_EVENT_DONE);
		report_done(event, out);
		break;
	}
}

static void
free_spent(struct wf_sim_transport *t)
{
	while (t->spent != NULL) {
		struct wf_sim_frame *frame = t->spent;
		t->spent = frame->next;
		free(frame);
	}
	while (t->gone != NULL) {
		struct wf_sim_conn *conn = t->gone;
		t->gone = conn->next;
		wf_sim_conn_free(conn);
	}
}

static enum weft_status
sim_poll(struct wf_transport *transport, struct wf_event *events, unsigned max,
	 unsigned *event_count)
{
	struct wf_sim_transport *t = self_of(transport);
	free_spent(t);
	unsigned count = t->event_count < max ? t->event_count : max;
	if (count > 1 && wf_sim_chance(t->world, 1, 16)) {
		count = (unsigned)wf_sim_draw(t->world, 1, count);
	}
	for (unsigned i = 0; i < count; i++) {
		report(t, t->first, &events[i]);
	}
	*event_count = count;
	return WEFT_OK;
}

static int
sim_wait_fd(struct wf_transport *transport)
{
	return -1;
}

static bool
sim_arm(struct wf_transport *transport, uint64_t *deadline_ns)
{
	struct wf_sim_transport *t = self_of(transport);
	*deadline_ns = t->event_count > 0 ? t->world->now_ns : WF_NEVER;
	return t->event_count == 0;
}

static void
sim_wake(struct wf_transport *transport)
{
	wf_sim_wake(self_of(transport)->proc);
}

/* --- opening and closing --- */

void
wf_sim_transport_vanish(struct wf_sim_transport *t)
{
	wf_sim_events_purge(t, NULL);
	while (t->conns != NULL) {
		struct wf_sim_conn *conn = t->conns;
		wf_sim_conn_detach(conn);
		wf_sim_conn_free(conn);
	}
	WF_ASSERT(t->event_count == 0);
	free_spent(t);
	struct wf_sim_listener **at = &t->world->listeners;
	while (*at != NULL) {
		struct wf_sim_listener *listener = *at;
		if (listener->transport == t) {
			*at = listener->next;
			free(listener);
		} else {
			at = &listener->next;
		}
	}
	struct wf_sim_transport **place = &t->proc->transports;
	while (*place != t) {
		place = &(*place)->next;
	}
	*place = t->next;
}

static void
sim_close(struct wf_transport *transport)
{
	struct wf_sim_transport *t = self_of(transport);
	wf_sim_transport_vanish(t);
	wf_free(transport->env, t, sizeof(*t));
}

static void
sim_query(struct wf_transport *transport, struct wf_transport_info *out)
{
	*out = self_of(transport)->info;
}

static enum weft_status
sim_region_add(struct wf_transport *transport, const struct wf_region *region, uint32_t *out)
{
	struct wf_sim_transport *t = self_of(transport);
	uint32_t idx = 1; /* as the other backends do, so that transport/paths can have it beside
			     one of them */
	while (idx < t->region_count && t->regions[idx].base != NULL) {
		idx++;
	}
	if (idx == WF_SIM_REGION_MAX) {
		return wf_fail(WEFT_NOMEM, "region: %u are the most a transport knows",
			       WF_SIM_REGION_MAX);
	}
	t->regions[idx] = *region;
	t->region_count = idx >= t->region_count ? idx + 1 : t->region_count;
	*out = idx;
	return WEFT_OK;
}

/* Until DOWN is delivered the peer's bytes may land, and lent bytes may be read. */
static void
assert_unused(const struct wf_sim_conn *conn, uint32_t region)
{
	for (uint32_t i = 0; i < conn->grant_count; i++) {
		bool region_is_granted = conn->grants[i].grant.region == region;
		WF_ASSERT(!region_is_granted);
	}
	for (const struct wf_sim_op *op = conn->ops; op != NULL; op = op->next) {
		bool region_is_lent =
			op->source != NULL && op->region == region && !op->event.queued;
		WF_ASSERT(!region_is_lent);
	}
}

static void
sim_region_remove(struct wf_transport *transport, uint32_t region)
{
	struct wf_sim_transport *t = self_of(transport);
	WF_ASSERT(region < t->region_count && t->regions[region].base != NULL);
	for (const struct wf_sim_conn *conn = t->conns; conn != NULL; conn = conn->next) {
		assert_unused(conn, region);
	}
	t->regions[region] = (struct wf_region){.memfd = -1};
}

/* --- coming about --- */

static bool
is_own_host(const char *name)
{
	static const char *const own[] = {"0.0.0.0", "::", "localhost", "127.0.0.1", "::1"};
	for (size_t i = 0; i < WF_ARRAY_COUNT(own); i++) {
		if (strcmp(name, own[i]) == 0) {
			return true;
		}
	}
	return false;
}

static uint16_t
pick_port(struct wf_world *world, unsigned net, const char *host)
{
	for (uint32_t tries = 0; tries <= PORT_MAX - PORT_FIRST; tries++) {
		uint16_t port = (uint16_t)world->port_next;
		world->port_next = world->port_next == PORT_MAX ? PORT_FIRST : world->port_next + 1;
		if (wf_sim_listener_find(world, net, host, port) == NULL) {
			return port;
		}
	}
	return 0;
}

static enum weft_status
sim_listen(struct wf_transport *transport, const struct wf_host *at, uint16_t *port)
{
	struct wf_sim_transport *t = self_of(transport);
	const char *host = t->proc->host;
	if (!is_own_host(at->name) && strcmp(at->name, host) != 0) {
		return wf_fail(WEFT_UNAVAILABLE,
			       "listen on %s:%u: not an address of this host; use %s or ::",
			       at->name, at->port, host);
	}
	uint16_t picked = at->port != 0 ? at->port : pick_port(t->world, t->net, host);
	if (picked == 0 || wf_sim_listener_find(t->world, t->net, host, picked) != NULL) {
		return wf_fail(WEFT_UNAVAILABLE,
			       "listen on %s:%u: address in use; choose another port, or end who "
			       "has it",
			       at->name, picked);
	}
	struct wf_sim_listener *listener = wf_sim_zalloc(sizeof(*listener));
	*listener = (struct wf_sim_listener){
		.next = t->world->listeners, .transport = t, .port = picked};
	t->world->listeners = listener;
	*port = picked;
	return WEFT_OK;
}

static enum weft_status
sim_connect(struct wf_transport *transport, const struct wf_host *to, const void *hello,
	    size_t hello_bytes, void *user, struct wf_conn **out)
{
	struct wf_sim_transport *t = self_of(transport);
	struct wf_world *world = t->world;
	if (t->places.conn_count >= t->opts.conn_max) {
		return wf_fail(WEFT_NOMEM, "connect to %s:%u: conn_max %u reached", to->name,
			       to->port, t->opts.conn_max);
	}
	struct wf_host target = *to;
	if (is_own_host(to->name)) {
		memcpy(target.name, t->proc->host, sizeof(target.name));
	}
	struct wf_sim_link *link = wf_sim_link_create(world, t->net, &target);
	link->caller = t->proc->host;
	struct wf_sim_conn *conn = wf_sim_conn_create(t, link, 0);
	conn->base.user = user;
	wf_host_format(to, conn->peer, sizeof(conn->peer));
	conn->state = WF_SIM_CONNECTING;
	wf_due_add(&world->heap, &conn->attempt, world->now_ns + t->opts.connect_timeout_ns);
	struct wf_sim_frame *frame = wf_sim_frame_create(link, 1, WF_SIM_HELLO, hello_bytes);
	if (hello_bytes > 0) {
		memcpy(frame->body, hello, hello_bytes);
	}
	wf_sim_frame_send(frame);
	*out = &conn->base;
	return WEFT_OK;
}

static enum weft_status
sim_answer(struct wf_conn *base, bool accept, const void *verdict, size_t verdict_bytes)
{
	struct wf_sim_conn *conn = conn_of(base);
	if (conn->state == WF_SIM_DOWN || conn->state == WF_SIM_CLOSING) {
		return wf_fail(WEFT_CLOSED, "answer to %s: the connection is going down",
			       conn->peer);
	}
	if (conn->state != WF_SIM_INCOMING || !conn->asked) {
		return wf_fail(WEFT_INVALID, "answer to %s: nothing was asked", conn->peer);
	}
	struct wf_world *world = conn->transport->world;
	if (conn->link->end[0] != NULL) {
		struct wf_sim_frame *frame = wf_sim_frame_create(
			conn->link, 0, accept ? WF_SIM_VERDICT : WF_SIM_REFUSAL, verdict_bytes);
		if (verdict_bytes > 0) {
			memcpy(frame->body, verdict, verdict_bytes);
		}
		wf_sim_frame_send(frame);
	}
	if (accept) {
		conn->state = WF_SIM_UP;
		conn->transport->info.conns_up++;
		return WEFT_OK;
	}
	wf_places_refuse(&conn->transport->places, &conn->place);
	wf_places_end(&conn->transport->places, &conn->place);
	conn->state = WF_SIM_CLOSING;
	wf_sim_conn_down_at(conn,
			    world->now_ns + wf_sim_draw(world, 0, world->opts.down_delay_max_ns),
			    WEFT_CLOSED, "");
	return WEFT_OK;
}

static void
sim_disconnect(struct wf_conn *conn, enum wf_disconnect how)
{
	wf_sim_conn_close(conn_of(conn), how);
}

/* --- operations --- */

static enum weft_status
check_up(const struct wf_sim_conn *conn, const char *what)
{
	if (conn->state == WF_SIM_DOWN || conn->state == WF_SIM_CLOSING) {
		return wf_fail(WEFT_CLOSED, "%s to %s: the connection is going down", what,
			       conn->peer);
	}
	if (conn->state != WF_SIM_UP) {
		return wf_fail(WEFT_INVALID, "%s to %s: the connection is not up", what,
			       conn->peer);
	}
	return WEFT_OK;
}

static enum weft_status
sim_grant(struct wf_conn *base, const struct wf_grant *grant, struct wf_grant_key *out)
{
	struct wf_sim_conn *conn = conn_of(base);
	enum weft_status st = check_up(conn, "grant");
	return st == WEFT_OK ? wf_sim_grant_make(conn, grant, out) : st;
}

static void
sim_release(struct wf_conn *base, uint32_t slot)
{
	struct wf_sim_conn *conn = conn_of(base);
	if (conn->state != WF_SIM_DOWN && conn->state != WF_SIM_CLOSING) {
		wf_sim_grant_release(conn, slot);
	}
}

/* Now and then fewer than there is room for; never none while no DONE is to come. */
static unsigned
draw_take_count(struct wf_sim_conn *conn, unsigned op_count)
{
	uint32_t room = conn->transport->opts.op_max - conn->op_count;
	unsigned count = op_count < room ? op_count : room;
	if (count > 0 && wf_sim_chance(conn->transport->world, 1, 8)) {
		unsigned least = conn->op_count == 0 ? 1 : 0;
		count = (unsigned)wf_sim_draw(conn->transport->world, least, count);
	}
	return count;
}

static enum weft_status
sim_post(struct wf_conn *base, const struct wf_op *ops, unsigned op_count, unsigned *taken)
{
	struct wf_sim_conn *conn = conn_of(base);
	*taken = 0;
	enum weft_status st = check_up(conn, "post");
	if (st != WEFT_OK) {
		return st;
	}
	unsigned drawn = draw_take_count(conn, op_count);
	/* More than drawn while no DONE is to come, because all were copied. */
	while (*taken < op_count && (*taken < drawn || conn->op_count == 0)) {
		st = wf_sim_conn_take(conn, &ops[*taken]);
		if (st != WEFT_OK) {
			return st;
		}
		(*taken)++;
	}
	if (*taken < op_count) {
		conn->transport->info.posts_again++;
		return WEFT_AGAIN;
	}
	return WEFT_OK;
}

/* "sim2" stands in for a medium that leaves the bytes of slots with their sender. */
static void
sim_path(struct wf_conn *base, struct wf_path_info *out)
{
	wf_path_alone(base, out);
	out->in_place = conn_of(base)->transport->net > 0;
}

#define OPS_OF(network)                                                                            \
	{                                                                                          \
		.name = (network), .close = sim_close, .query = sim_query,                         \
		.region_add = sim_region_add, .region_remove = sim_region_remove,                  \
		.grant = sim_grant, .release = sim_release, .listen = sim_listen,                  \
		.answer = sim_answer, .connect = sim_connect, .disconnect = sim_disconnect,        \
		.path = sim_path, .post = sim_post, .poll = sim_poll, .wait_fd = sim_wait_fd,      \
		.arm = sim_arm, .wait = wf_wait_on_fd, .wake = sim_wake,                           \
	}

static const struct wf_transport_ops sim_ops[] = {OPS_OF("sim"), OPS_OF("sim2")}; /* by network */

static enum weft_status
open_on(unsigned net, const struct wf_transport_opts *opts, struct wf_transport **out)
{
	struct wf_proc *proc = wf_sim_proc_of(opts->env);
	if (proc == NULL) {
		return wf_fail(WEFT_INVALID, "transport sim: works only with the env of a "
					     "simulated world; see wf_world_spawn");
	}
	struct wf_sim_transport *t = wf_zalloc(opts->env, sizeof(*t));
	if (t == NULL) {
		return wf_fail(WEFT_NOMEM, "transport sim: %zu bytes", sizeof(*t));
	}
	t->base = (struct wf_transport){.ops = &sim_ops[net], .env = opts->env};
	t->net = net;
	t->world = proc->world;
	t->proc = proc;
	t->opts = *opts;
	wf_places_init(&t->places, opts->conn_max, opts->newcomer_max);
	t->info.name = t->base.ops->name;
	t->info.put_bytes_max = opts->put_bytes_max;
	t->info.in_place = net > 0;
	t->info.locks_memory = net > 0 && proc->world->opts.second_locks_memory;
	t->next = proc->transports;
	proc->transports = t;
	*out = &t->base;
	return WEFT_OK;
}

static enum weft_status
sim_open(const struct wf_transport_opts *opts, struct wf_transport **out)
{
	return open_on(0, opts, out);
}

static enum weft_status
sim2_open(const struct wf_transport_opts *opts, struct wf_transport **out)
{
	return open_on(1, opts, out);
}

const struct wf_backend wf_backend_sim = {
	.name = "sim",
	.open = sim_open,
	.is_path = true,
	.path_id = WF_PATH_BOOTSTRAP,
	.path_retry_ns = 50 * WF_NS_PER_MS, /* simulated jobs are short */
};

const struct wf_backend wf_backend_sim2 = {
	.name = "sim2",
	.open = sim2_open,
	.is_path = true,
	.path_id = WF_PATH_OTHER,
	.why = "both ends have it",
};
