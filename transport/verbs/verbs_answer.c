/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_answer: the accepting end, from a request that is shown to the answer. Thread: the
 * transport's owner. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "transport/verbs/verbs_internal.h"

void
wf_verbs_deny(struct wf_verbs_conn *c, const char *why)
{
	struct wf_verbs_private p = wf_verbs_private_of(c, WF_VERBS_DENY);
	uint8_t data[WF_VERBS_PRIVATE_MAX];
	(void)snprintf((char *)p.blob, sizeof(p.blob), "%.*s", (int)sizeof(p.blob) - 1, why);
	p.blob_bytes = (uint8_t)strlen((const char *)p.blob);
	size_t bytes = wf_verbs_private_encode(&p, data);
	(void)c->t->lib->reject(c->link.id, data, (uint8_t)bytes);
	uint64_t now_ns = wf_now_ns(c->t->medium.transport.env);
	uint64_t unsaid = wf_log_limit_unsaid(&c->t->denied_log, now_ns);
	if (unsaid > 0) {
		wf_log(c->t->medium.transport.env, WF_LOG_WARN,
		       "verbs: %" PRIu64 " more peers were turned away than the log names", unsaid);
	}
	if (wf_log_limit_pass(&c->t->denied_log, now_ns, WF_NS_PER_S)) {
		wf_log(c->t->medium.transport.env, WF_LOG_WARN, "verbs: %s is turned away: %s",
		       c->life.peer, why);
	}
}

void
wf_verbs_accept_link(struct wf_verbs_conn *c, const void *verdict, size_t verdict_bytes)
{
	enum weft_status st = wf_verbs_link_open(c);
	if (st == WEFT_OK) {
		st = wf_verbs_link_start(c);
	}
	if (st != WEFT_OK && !c->life.visible) {
		wf_verbs_deny(c, weft_last_error());
	}
	if (st != WEFT_OK) {
		wf_life_down(&c->life, st, "%s", weft_last_error());
		return;
	}
	struct wf_verbs_private p = wf_verbs_private_of(c, WF_VERBS_REPLY);
	bool follows = verdict == NULL || verdict_bytes > WF_VERBS_VERDICT_SHORT;
	if (follows) {
		p.features |= WF_VERBS_BLOB_FOLLOWS;
	} else {
		p.blob_bytes = (uint8_t)verdict_bytes;
		memcpy(p.blob, verdict, verdict_bytes);
	}
	uint8_t data[WF_VERBS_PRIVATE_MAX];
	size_t bytes = wf_verbs_private_encode(&p, data);
	struct rdma_conn_param param = {
		.private_data = data,
		.private_data_len = (uint8_t)bytes,
		.responder_resources = 1,
		.initiator_depth = 1,
		.flow_control = 1,
		.rnr_retry_count = (uint8_t)c->t->settings.rnr_retry,
		.srq = c->link.queues->srq != NULL,
		.qp_num = c->link.qp_num,
	};
	c->rx.heard_ns = c->t->medium.loop.now_ns;
	if (c->t->lib->accept(c->link.id, &param) != 0) {
		wf_life_down(&c->life, WEFT_LOST, "it cannot be accepted: %s", strerror(errno));
	}
}

static bool
is_iwarp(const struct wf_verbs_conn *c)
{
	return c->link.id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
}

/* iWARP does not report that a request was withdrawn, so there the link is made at once. */
void
wf_verbs_shown(struct wf_life *life)
{
	struct wf_verbs_conn *c = wf_verbs_conn_of(&life->conn);
	if (c->link.qp == NULL && is_iwarp(c)) {
		wf_verbs_accept_link(c, NULL, 0);
	} else if (c->link.qp == NULL) {
		wf_life_deadline(life, c->t->medium.loop.now_ns + WF_VERBS_WITHDRAWN_NS);
	}
}

/* Whether memory for its grants is still being registered. The peer has a limit for the answer, so
 * this ends: then the connection comes UP, and operations that need the region wait in its queue.
 */
static bool
is_held_up(struct wf_verbs_conn *c)
{
	return c->t->medium.loop.now_ns < c->show_ns && wf_verbs_regions_hold_up(c);
}

bool
wf_verbs_may_show(struct wf_life *life)
{
	struct wf_verbs_conn *c = wf_verbs_conn_of(&life->conn);
	if (is_held_up(c)) {
		wf_life_deadline(life, c->show_ns);
		return false;
	}
	if (life->incoming && c->link.qp == NULL && !is_iwarp(c) && !wf_verbs_link_is_asked(c)) {
		/* Its peer may repeat the request, and what the request carries may be valid only
		 * once. */
		wf_life_down(life, WEFT_LOST, "the peer gave up before it was shown");
		return false;
	}
	return true;
}

/* Rejects the request: nothing was created for it yet. */
static void
reject(struct wf_verbs_conn *c, const void *verdict, size_t verdict_bytes)
{
	struct wf_verbs_private p = wf_verbs_private_of(c, WF_VERBS_REFUSE);
	uint8_t data[WF_VERBS_PRIVATE_MAX];
	p.blob_bytes = (uint8_t)verdict_bytes;
	if (verdict_bytes > 0) {
		memcpy(p.blob, verdict, verdict_bytes);
	}
	size_t bytes = wf_verbs_private_encode(&p, data);
	(void)c->t->lib->reject(c->link.id, data, (uint8_t)bytes);
}

bool
wf_verbs_answer(struct wf_life *life, bool accept, const void *verdict, size_t verdict_bytes)
{
	static const uint8_t none[1];
	struct wf_verbs_conn *c = wf_verbs_conn_of(&life->conn);
	bool linked = c->link.qp != NULL;
	bool frame = linked || verdict_bytes > WF_VERBS_VERDICT_SHORT;
	if (!accept && !frame) {
		reject(c, verdict, verdict_bytes);
		return true;
	}
	if (!linked) {
		wf_verbs_accept_link(c, verdict_bytes == 0 ? none : verdict, verdict_bytes);
	}
	if (frame && life->state < WF_LIFE_ENDING) {
		wf_verbs_send_frame(c, accept ? WF_VERBS_ACCEPTS : WF_VERBS_REFUSES, verdict,
				    verdict_bytes);
	}
	c->last_queued = !accept;
	return false;
}
