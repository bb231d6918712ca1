/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_queues: the queues that connections of a device share: two completion queues and, if the
 * device supports it, one shared receive queue. Thread: the transport's owner. */
#include <errno.h>
#include <stdio.h>

#include "transport/verbs/verbs_internal.h"

#define CQ_EVENTS_UNACKED_MAX 64u

static enum weft_status
open_cq(struct wf_verbs_device *dev, struct wf_verbs_cq *q, uint32_t entries)
{
	q->cq = dev->t->lib->create_cq(dev->context, (int)entries, q, dev->channel, dev->vector);
	if (q->cq == NULL) {
		return wf_verbs_fail_made(dev, errno, "a completion queue of %u entries", entries);
	}
	return WEFT_OK;
}

static void
close_cq(struct wf_verbs_device *dev, struct wf_verbs_cq *q)
{
	if (q->cq == NULL) {
		return;
	}
	if (q->unacked > 0) {
		/* Destroying the queue would wait for it. */
		dev->t->lib->ack_cq_events(q->cq, q->unacked);
	}
	(void)dev->t->lib->destroy_cq(q->cq);
	q->cq = NULL;
}

static void
close_queues(struct wf_verbs_queues *q)
{
	struct wf_verbs_device *dev = q->dev;
	WF_ASSERT(q->conn_count == 0);
	close_cq(dev, &q->send);
	close_cq(dev, &q->receive);
	if (q->srq != NULL) {
		(void)dev->t->lib->destroy_srq(q->srq);
		q->srq = NULL;
	}
}

/* A flush completes every work request, signalled or not: room for all of them. */
static enum weft_status
open_queues(struct wf_verbs_device *dev, struct wf_verbs_queues **out)
{
	const struct wf_verbs_caps *caps = &dev->caps;
	struct wf_verbs_queues *q = wf_zalloc(dev->t->medium.transport.env, sizeof(*q));
	if (q == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: %zu bytes", dev->name, sizeof(*q));
	}
	q->dev = dev;
	enum weft_status st = open_cq(dev, &q->send, caps->queues_share * caps->send_queue);
	if (st == WEFT_OK) {
		st = open_cq(dev, &q->receive, caps->queues_share * caps->rx_share);
	}
	if (st == WEFT_OK && caps->shared_queue) {
		struct ibv_srq_init_attr init = {
			.attr = {.max_wr = caps->queues_share * caps->rx_share, .max_sge = 1}};
		q->srq = dev->t->lib->create_srq(dev->pd, &init);
		if (q->srq == NULL) {
			st = wf_verbs_fail_made(dev, errno, "a shared receive queue of %u buffers",
						init.attr.max_wr);
		}
	}
	if (st != WEFT_OK) {
		close_queues(q);
		wf_free(dev->t->medium.transport.env, q, sizeof(*q));
		return st;
	}
	*out = q;
	return WEFT_OK;
}

enum weft_status
wf_verbs_queues_get(struct wf_verbs_device *dev, struct wf_verbs_queues **out)
{
	for (uint32_t i = 0; i < dev->queues.count; i++) {
		const struct wf_verbs_queues *q = dev->queues.at[i];
		if (!q->retired && q->conn_count < dev->caps.queues_share) {
			*out = dev->queues.at[i];
			return WEFT_OK;
		}
	}
	WF_ASSERT(dev->queues.count < dev->queues.max);
	enum weft_status st = open_queues(dev, &dev->queues.at[dev->queues.count]);
	if (st == WEFT_OK) {
		*out = dev->queues.at[dev->queues.count++];
		(*out)->next = dev->t->queues;
		dev->t->queues = *out;
	}
	return st;
}

static void
leave_transport(const struct wf_verbs_queues *q)
{
	struct wf_verbs_queues **at = &q->dev->t->queues;
	while (*at != q) {
		at = &(*at)->next;
	}
	*at = q->next;
}

void
wf_verbs_queues_retire(struct wf_verbs_queues *q)
{
	struct wf_verbs_device *dev = q->dev;
	if (q->srq == NULL || q->retired || dev->queues.retired_count == WF_VERBS_RETIRED_MAX) {
		return;
	}
	q->retired = true;
	dev->queues.retired_count++;
	wf_log(dev->t->medium.transport.env, WF_LOG_INFO,
	       "verbs: %s: a shared receive queue may have lost buffers: it ends with the last of "
	       "%u connections",
	       dev->name, q->conn_count);
}

static void
free_queues(struct wf_verbs_queues *q)
{
	struct wf_verbs_device *dev = q->dev;
	leave_transport(q);
	close_queues(q);
	wf_verbs_chunks_free(q);
	wf_free(dev->t->medium.transport.env, q, sizeof(*q));
}

void
wf_verbs_queues_reap(struct wf_verbs_device *dev)
{
	uint32_t i = 0;
	while (dev->queues.retired_count > 0 && i < dev->queues.count) {
		struct wf_verbs_queues *q = dev->queues.at[i];
		if (!q->retired || q->conn_count > 0) {
			i++;
			continue;
		}
		dev->queues.at[i] = dev->queues.at[--dev->queues.count];
		dev->queues.retired_count--;
		free_queues(q);
	}
}

void
wf_verbs_queues_read(struct wf_verbs_device *dev)
{
	struct ibv_cq *cq = NULL;
	void *context = NULL;
	while (dev->t->lib->get_cq_event(dev->channel, &cq, &context) == 0) {
		struct wf_verbs_cq *q = context;
		q->armed = false;
		q->owed_ns = 0;
		if (++q->unacked == CQ_EVENTS_UNACKED_MAX) { /* each call takes a lock */
			dev->t->lib->ack_cq_events(q->cq, q->unacked);
			q->unacked = 0;
		}
	}
}

unsigned
wf_verbs_queues_poll(struct wf_verbs_device *dev, struct ibv_cq *cq, struct ibv_wc *wc)
{
	int n = ibv_poll_cq(cq, (int)WF_VERBS_POLL, wc);
	if (n < 0) {
		char why[WF_WHY_BYTES];
		snprintf(why, sizeof(why), "a completion queue cannot be read (ibv_poll_cq: %d)",
			 n);
		wf_verbs_device_lost(dev, why);
	}
	return n > 0 ? (unsigned)n : 0;
}

enum weft_status
wf_verbs_queues_open(struct wf_verbs_device *dev)
{
	uint32_t share = dev->caps.queues_share;
	struct wf_verbs_queue_table *table = &dev->queues;
	table->max = (dev->caps.conn_max + share - 1) / share + WF_VERBS_RETIRED_MAX;
	table->at = wf_zalloc_array(dev->t->medium.transport.env, table->max,
				    sizeof(struct wf_verbs_queues *));
	if (table->at == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: tables for %u connections", dev->name,
			       dev->caps.conn_max);
	}
	return wf_verbs_chunks_open(dev, table->max * share);
}

void
wf_verbs_queues_close(struct wf_verbs_device *dev)
{
	for (uint32_t i = 0; i < dev->queues.count; i++) {
		free_queues(dev->queues.at[i]);
	}
	wf_verbs_chunks_close(dev);
	wf_free(dev->t->medium.transport.env, dev->queues.at,
		dev->queues.max * sizeof(struct wf_verbs_queues *));
	dev->queues = (struct wf_verbs_queue_table){0};
}
