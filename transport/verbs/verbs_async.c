/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_async: asynchronous events of a device, and their effect on its connections. Thread: the
 * transport's owner. */
#include "transport/verbs/verbs_internal.h"

/* The link may come back before the retries are used up; an idle connection finds out by a probe.
 */
static void
on_port_error(struct wf_verbs_device *dev, int port)
{
	struct wf_verbs *t = dev->t;
	wf_log(t->medium.transport.env, WF_LOG_WARN, "verbs: %s: port %d is down", dev->name, port);
	for (struct wf_verbs_conn *c = wf_verbs_conn_first(t); c != NULL;
	     c = wf_verbs_conn_next(c)) {
		if (c->link.dev == dev && c->life.state == WF_LIFE_UP) {
			wf_verbs_ask_alive(c);
		}
	}
}

static void
on_qp_event(struct wf_verbs_device *dev, const struct ibv_async_event *event)
{
	struct wf_verbs_conn *c = wf_verbs_device_find(dev, event->element.qp->qp_num);
	if (c == NULL) {
		return;
	}
	if (event->event_type == IBV_EVENT_QP_FATAL) {
		wf_verbs_conn_suspect(c);
	} else {
		wf_verbs_conn_end(c, WEFT_PROTOCOL, "%s refused what the peer sent: %s", dev->name,
				  dev->t->lib->event_type_str(event->event_type));
	}
}

static void
on_last(struct wf_verbs_device *dev, const struct ibv_async_event *event)
{
	struct wf_verbs_conn *c = wf_verbs_device_find(dev, event->element.qp->qp_num);
	if (c != NULL) {
		wf_verbs_link_ended(c);
		wf_life_ready(&c->life); /* it may have waited for this */
	}
}

static void
on_async(struct wf_verbs_device *dev, const struct ibv_async_event *event)
{
	/* Many kinds of events are irrelevant here, and new ones are added. */
	int type = (int)event->event_type;
	if (type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
	    type == IBV_EVENT_QP_ACCESS_ERR) {
		on_qp_event(dev, event);
	} else if (type == IBV_EVENT_QP_LAST_WQE_REACHED) {
		on_last(dev, event);
	} else if (type == IBV_EVENT_DEVICE_FATAL) {
		wf_verbs_device_lost(dev, "the device reports a fatal error");
	} else if (type == IBV_EVENT_CQ_ERR || type == IBV_EVENT_SRQ_ERR) {
		wf_verbs_device_lost(dev, "one of its queues is broken");
	} else if (type == IBV_EVENT_PORT_ERR) {
		on_port_error(dev, event->element.port_num);
	} else if (type == IBV_EVENT_PORT_ACTIVE) {
		wf_log(dev->t->medium.transport.env, WF_LOG_INFO, "verbs: %s: port %d is up",
		       dev->name, event->element.port_num);
	}
}

void
wf_verbs_async_read(struct wf_verbs_device *dev)
{
	struct ibv_async_event event;
	while (dev->t->lib->get_async_event(dev->context, &event) == 0) {
		/* Destroying a queue pair would wait for it. */
		dev->t->lib->ack_async_event(&event);
		on_async(dev, &event);
	}
}

void
wf_verbs_async_notify(struct wf_loop_source *source, uint32_t mask)
{
	(void)mask;
	wf_verbs_async_read(WF_LOOP_OWNER(source, struct wf_verbs_device, async_source));
}
