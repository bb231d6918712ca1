/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_conn: how a connection begins and ends. Code at any level that finds a failure ends the
 * connection here: the queue pair is stopped at once, and the rest is done at the connection's next
 * visit (verbs_life.c). Thread: the transport's owner. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "transport/verbs/verbs_internal.h"

void
wf_verbs_conn_init(struct wf_verbs_conn *c)
{
	struct wf_verbs *t = wf_verbs_of(c->life.conn.transport);
	c->t = t;
	while (t->conn[c->idx] != NULL) {
		c->idx++;
	}
	t->conn[c->idx] = c;
	c->generation = ++t->conn_generation;
	c->mark = 1 + (uint32_t)(wf_random(t->medium.transport.env) % WF_VERBS_MARK_MAX);
}

void
wf_verbs_conn_adopt(struct wf_verbs_conn *c, const struct wf_verbs_private *p)
{
	c->peer = (struct wf_verbs_peer){
		.mark = p->mark,
		.takes_immediate = (p->features & WF_VERBS_TAKES_IMMEDIATE) != 0,
		.credits = p->credits,
		.put_bytes_max = p->put_bytes_max,
	};
}

struct wf_verbs_private
wf_verbs_private_of(const struct wf_verbs_conn *c, enum wf_verbs_private_type type)
{
	return (struct wf_verbs_private){
		.type = type,
		.features = c->link.dev != NULL && c->link.dev->caps.immediate
				    ? WF_VERBS_TAKES_IMMEDIATE
				    : 0,
		.credits = (uint16_t)c->t->settings.credits,
		.mark = c->mark,
		.put_bytes_max = c->t->medium.opts.put_bytes_max,
	};
}

/* On iWARP: once the connection is established, the rdma_connect on the helper thread has its
 * answer and is about to return. Until it has returned the link must not be touched, and bytes
 * could still land. */
void
wf_verbs_link_await(struct wf_verbs_conn *c)
{
	if (c->link.linked) {
		wf_verbs_task_await(&c->attempt.task, c->t->medium.transport.env);
	}
}

void
wf_verbs_link_stop(struct wf_verbs_conn *c)
{
	wf_verbs_link_await(c);
	if (c->link.qp != NULL && !c->attempt.task.running) {
		struct ibv_qp_attr attr;
		memset(&attr, 0, sizeof(attr));
		attr.qp_state = IBV_QPS_ERR;
		(void)c->t->lib->modify_qp(c->link.qp, &attr, IBV_QP_STATE);
	}
}

/* The last work request of a list is signalled, and fails if it is not executed, so it marks the
 * end of all others. A queue of its own returns each buffer; for a shared one the device reports
 * that no more are used. On iWARP what was posted to a queue pair that had ended may be lost.
 */
bool
wf_verbs_link_is_drained(const struct wf_verbs_conn *c)
{
	const struct wf_verbs_device *dev = c->link.dev;
	if (c->link.qp == NULL || !c->link.receives || c->link.undrained || dev->gone ||
	    dev->undrained >= WF_VERBS_UNDRAINED_MAX) {
		return true;
	}
	bool sent = dev->caps.iwarp || wf_verbs_sq_is_ended(&c->tx.sq);
	bool received = c->link.queues->srq == NULL ? c->rx.posted == 0
						    : c->link.last_said || !dev->caps.says_last;
	return sent && received;
}

bool
wf_verbs_link_was_violated(const struct wf_verbs_conn *c)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	memset(&attr, 0, sizeof(attr));
	return c->link.qp != NULL && c->link.dev->caps.query_is_true && !c->link.dev->gone &&
	       c->t->lib->query_qp(c->link.qp, &attr, IBV_QP_STATE, &init) == 0 &&
	       attr.qp_state == IBV_QPS_ERR;
}

void
wf_verbs_conn_end(struct wf_verbs_conn *c, enum weft_status status, const char *format, ...)
{
	if (c->life.state >= WF_LIFE_ENDING) {
		return;
	}
	va_list args;
	char text[WF_WHY_BYTES];
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	c->end.status = wf_life_cause(&c->life, status, text, c->end.why);
	wf_places_end(&c->t->medium.places, &c->life.place);
	wf_life_enter(&c->life, WF_LIFE_ENDING);
	c->end.verdict_waits = false;
	wf_verbs_link_stop(c);
	c->end.drains = !wf_verbs_link_is_drained(c);
	wf_life_deadline(&c->life, wf_now_ns(c->t->medium.transport.env) + WF_VERBS_DRAINED_NS);
	wf_life_ready(&c->life);
}

void
wf_verbs_conn_suspect(struct wf_verbs_conn *c)
{
	if (c->life.state < WF_LIFE_ENDING) {
		c->end.suspected = true;
		wf_life_ready(&c->life);
	}
}

void
wf_verbs_conn_clear(struct wf_verbs_conn *c)
{
	c->end.suspected = false;
}

/* Ends it if this device refused what the peer sent. */
static void
end_violated(struct wf_verbs_conn *c)
{
	if (wf_verbs_link_was_violated(c)) {
		wf_verbs_conn_end(c, WEFT_PROTOCOL, "%s refused what the peer sent",
				  c->link.dev->name);
	}
}

void
wf_verbs_conn_judge(struct wf_verbs_conn *c)
{
	if (c->life.state < WF_LIFE_ENDING) {
		end_violated(c);
	}
	if (c->life.state < WF_LIFE_ENDING) {
		wf_verbs_conn_end(c, WEFT_LOST, "the queue pair broke");
		c->end.verdict_waits = true;
		wf_life_deadline(&c->life,
				 wf_now_ns(c->t->medium.transport.env) + WF_VERBS_VERDICT_NS);
	}
}

void
wf_verbs_conn_left(struct wf_verbs_conn *c)
{
	static const char left[] = "the peer closed without warning";
	if (c->life.state == WF_LIFE_ENDING && c->end.verdict_waits) {
		c->end.verdict_waits = false; /* it has arrived */
		if (c->end.status == WEFT_LOST) {
			snprintf(c->end.why, sizeof(c->end.why), "%s", left);
		}
		wf_life_ready(&c->life);
	}
	if (c->life.state < WF_LIFE_ENDING) {
		end_violated(c);
	}
	wf_verbs_conn_end(c, WEFT_LOST, "%s", left); /* unless it is ending already */
}

void
wf_verbs_device_lost(struct wf_verbs_device *dev, const char *why)
{
	struct wf_verbs *t = dev->t;
	if (dev->gone) {
		return;
	}
	dev->gone = true;
	wf_log(t->medium.transport.env, WF_LOG_WARN, "verbs: %s is gone: %s", dev->name, why);
	for (struct wf_verbs_conn *c = wf_verbs_conn_first(t); c != NULL;
	     c = wf_verbs_conn_next(c)) {
		if (c->link.dev == dev) {
			wf_verbs_conn_end(c, WEFT_LOST, "%s: %s", dev->name, why);
		}
	}
}
