/* SPDX-License-Identifier: Apache-2.0 */
/* peer_server: the server: it waits for one client, does its half of what the client requests, and
 * ends. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "tools/rdma_bench/limits/paths.h"
#include "tools/rdma_bench/peer.h"
#include "transport/address.h"

#define PLAN_NS (10 * WF_NS_PER_S)   /* until a client has sent its plan */
#define PAUSE_NS (600 * WF_NS_PER_S) /* between its legs */

struct server {
	struct wf_peer_end *end;
	struct wf_peer_path *weft, *bare; /* NULL: none yet */
};

/* A peer that is not a client is reported, and not waited for. */
static enum weft_status
await_client(struct wf_peer_end *end)
{
	struct wf_peer_control *control = &end->control;
	struct wf_peer_frame frame;
	for (;;) {
		enum weft_status st = wf_peer_control_accept(control, WF_NEVER, &control->fd);
		if (st != WEFT_OK) {
			return st;
		}
		st = wf_peer_control_recv(control, PLAN_NS, &frame);
		if (st == WEFT_OK && frame.type == WF_PEER_PLAN) {
			st = wf_peer_plan_decode(frame.body, frame.bytes, &end->plan);
		} else if (st == WEFT_OK) {
			st = wf_fail(WEFT_PROTOCOL, "it began with %d", (int)frame.type);
		}
		if (st == WEFT_OK || st == WEFT_MISMATCH) {
			return st;
		}
		char from[WF_PEER_ADDRESS_BYTES];
		wf_peer_control_peer_address(control->fd, from);
		fprintf(stderr, "rdma_bench: %s connected but is not a client: %s; still waiting\n",
			from, weft_last_error());
		close(control->fd);
		control->fd = -1;
	}
}

static enum weft_status
find_address(struct wf_peer_end *end)
{
	if (end->plan.over == WF_PEER_SHM) {
		(void)snprintf(end->address, sizeof(end->address), "%s", wf_address_loopback());
		return WEFT_OK;
	}
	wf_peer_control_own_address(end->control.fd, end->address);
	if (end->plan.over == WF_PEER_TCP) {
		return WEFT_OK;
	}
	enum weft_status st = wf_peer_address_find(end);
	if (st == WEFT_OK) {
		(void)snprintf(end->address, sizeof(end->address), "%s", end->local);
	}
	return st;
}

static enum weft_status
offer(struct server *s)
{
	struct wf_peer_end *end = s->end;
	struct wf_peer_offer offer = {0};
	uint8_t body[WF_PEER_BODY_MAX];
	enum weft_status st = find_address(end);
	if (st == WEFT_OK) {
		st = wf_peer_weft_open(end, &s->weft);
	}
	if (st == WEFT_OK) {
		st = wf_bare_open(end, &offer, &s->bare);
	}
	if (st == WEFT_OK) {
		(void)snprintf(offer.address, sizeof(offer.address), "%s", end->address);
		size_t bytes = wf_peer_offer_encode(&offer, body);
		st = wf_peer_control_send(&end->control, WF_PEER_OFFER, body, bytes);
	}
	if (st == WEFT_OK) {
		st = wf_peer_weft_join(s->weft);
	}
	return st == WEFT_OK ? wf_bare_join(s->bare, &offer) : st;
}

static enum weft_status
report(struct server *s)
{
	uint8_t body[WF_PEER_BODY_MAX];
	size_t bytes = wf_peer_report_encode(&s->weft->verified, body);
	return wf_peer_control_send(&s->end->control, WF_PEER_REPORT, body, bytes);
}

static enum weft_status
serve_leg(struct server *s, const struct wf_peer_frame *frame)
{
	struct wf_peer_end *end = s->end;
	struct wf_peer_leg leg;
	enum weft_status st = wf_peer_leg_decode(frame->body, frame->bytes, &end->plan, &leg);
	if (st == WEFT_OK) {
		st = wf_peer_control_send(&end->control, WF_PEER_READY, NULL, 0);
	}
	if (st == WEFT_OK) {
		st = wf_peer_leg_run(leg.bare ? s->bare : s->weft, &leg, NULL);
	}
	return st == WEFT_OK ? report(s) : st;
}

static enum weft_status
serve_legs(struct server *s)
{
	struct wf_peer_frame frame;
	for (;;) {
		enum weft_status st = wf_peer_control_recv(&s->end->control, PAUSE_NS, &frame);
		if (st != WEFT_OK) {
			return st;
		}
		if (frame.type == WF_PEER_BYE) {
			return WEFT_OK;
		}
		if (frame.type != WF_PEER_GO) {
			return wf_fail(WEFT_PROTOCOL,
				       "the client sent message %d where a leg was due",
				       (int)frame.type);
		}
		st = serve_leg(s, &frame);
		if (st != WEFT_OK) {
			return st;
		}
	}
}

enum weft_status
wf_peer_serve(struct wf_peer_end *end, bool *right)
{
	static const char *const names[] = {
		[WF_PEER_TCP] = "tcp", [WF_PEER_SHM] = "shm", [WF_PEER_VERBS] = "verbs"};
	struct server s = {.end = end};
	end->port = (uint16_t)end->set->port;
	enum weft_status st = wf_peer_control_listen(&end->control, end->set->listen, end->port);
	if (st != WEFT_OK) {
		return st;
	}
	fprintf(stderr, "rdma_bench: waiting for a client at port %u\n", end->port);
	st = await_client(end);
	if (st == WEFT_OK) {
		char from[WF_PEER_ADDRESS_BYTES];
		wf_peer_control_peer_address(end->control.fd, from);
		fprintf(stderr, "rdma_bench: serving %s over %s\n", from, names[end->plan.over]);
		st = offer(&s);
	}
	if (st == WEFT_OK) {
		st = serve_legs(&s);
	}
	*right = s.weft == NULL || s.weft->verified.wrong == 0;
	if (st != WEFT_OK) {
		wf_peer_control_fail(&end->control, st);
	}
	if (s.bare != NULL) {
		s.bare->ops->close(s.bare);
	}
	if (s.weft != NULL) {
		s.weft->ops->close(s.weft);
	}
	return st;
}
