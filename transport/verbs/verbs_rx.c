/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_rx: receive buffers: their chunks, posting them, and getting them back. Buffers into which
 * events point are posted again with the next poll, the others at once, all of them in lists.
 * Thread: the transport's owner. */
#include <errno.h>
#include <string.h>

#include "transport/verbs/verbs_internal.h"

static size_t
chunk_bytes(uint32_t count)
{
	return sizeof(struct wf_verbs_chunk) + count * sizeof(struct wf_verbs_rx);
}

static void
chunk_free(struct wf_verbs_chunk *chunk)
{
	struct wf_verbs_device *dev = chunk->queues->dev;
	struct wf_env *env = dev->t->medium.transport.env;
	wf_verbs_deregister(dev, &chunk->mr);
	if (dev->chunks.at[chunk->idx] == chunk) {
		dev->chunks.at[chunk->idx] = NULL;
	}
	wf_free(env, chunk->memory, (size_t)chunk->count * WF_VERBS_RX_BYTES);
	wf_free(env, chunk, chunk_bytes(chunk->count));
}

enum weft_status
wf_verbs_chunks_open(struct wf_verbs_device *dev, uint32_t max)
{
	dev->chunks.max = max;
	dev->chunks.at =
		wf_zalloc_array(dev->t->medium.transport.env, max, sizeof(struct wf_verbs_chunk *));
	if (dev->chunks.at == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: a table of %u chunks of receive buffers", dev->name,
			       max);
	}
	return WEFT_OK;
}

void
wf_verbs_chunks_close(struct wf_verbs_device *dev)
{
	wf_free(dev->t->medium.transport.env, dev->chunks.at,
		dev->chunks.max * sizeof(struct wf_verbs_chunk *));
	dev->chunks = (struct wf_verbs_chunk_table){0};
}

void
wf_verbs_chunks_free(const struct wf_verbs_queues *q)
{
	const struct wf_verbs_chunk_table *chunks = &q->dev->chunks;
	for (uint32_t i = 0; i < chunks->count; i++) {
		if (chunks->at[i] != NULL && chunks->at[i]->queues == q) {
			chunk_free(chunks->at[i]);
		}
	}
}

static uint32_t
free_chunk_idx(struct wf_verbs_device *dev)
{
	uint32_t idx = 0;
	while (idx < dev->chunks.count && dev->chunks.at[idx] != NULL) {
		idx++;
	}
	if (idx == dev->chunks.count) {
		WF_ASSERT(dev->chunks.count < dev->chunks.max);
		dev->chunks.count++;
	}
	return idx;
}

static enum weft_status
chunk_open(struct wf_verbs_queues *queues, struct ibv_pd *pd, struct wf_verbs_chunk **out)
{
	struct wf_verbs_device *dev = queues->dev;
	struct wf_env *env = dev->t->medium.transport.env;
	uint32_t count = dev->caps.rx_share;
	size_t bytes = (size_t)count * WF_VERBS_RX_BYTES;
	struct wf_verbs_chunk *chunk = wf_zalloc(env, chunk_bytes(count));
	if (chunk == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: %u receive buffers", dev->name, count);
	}
	chunk->queues = queues;
	chunk->count = count;
	chunk->idx = free_chunk_idx(dev);
	chunk->generation = ++dev->chunks.generation;
	chunk->memory = env->ops->alloc(env, bytes, 4096);
	dev->chunks.at[chunk->idx] = chunk;
	enum weft_status st = WEFT_OK;
	if (chunk->memory == NULL) {
		st = wf_fail(WEFT_NOMEM, "%s: %zu bytes of receive buffers", dev->name, bytes);
	} else {
		st = wf_verbs_register_own(dev, pd, chunk->memory, bytes, &chunk->mr);
	}
	if (st != WEFT_OK) {
		chunk_free(chunk);
		return st;
	}
	for (uint32_t i = 0; i < count; i++) {
		chunk->rx[i].chunk = chunk;
		chunk->rx[i].data = chunk->memory + (size_t)i * WF_VERBS_RX_BYTES;
	}
	*out = chunk;
	return WEFT_OK;
}

static uint64_t
wr_id_of(const struct wf_verbs_rx *rx)
{
	uint32_t idx = (uint32_t)(rx - rx->chunk->rx);
	return (uint64_t)rx->chunk->generation << 32 | rx->chunk->idx << WF_VERBS_RX_IDX_BITS | idx;
}

/* How many of a list were posted; `bad` NULL: all of them. */
static unsigned
count_posted(const struct ibv_recv_wr *first, const struct ibv_recv_wr *bad)
{
	unsigned count = 0;
	for (; first != NULL && first != bad; first = first->next) {
		count++;
	}
	return count;
}

/* Posts buffers to the shared queue, or to the connection's own (`c`). Returns 0, or errno: then
 * the device, or the queue pair, cannot be used any more. */
static int
post_list(struct wf_verbs_queues *q, struct wf_verbs_conn *c, struct wf_verbs_rx_list *list)
{
	int err = 0;
	struct ibv_recv_wr wr[WF_VERBS_BATCH];
	struct ibv_sge sge[WF_VERBS_BATCH];
	while (list->first != NULL && err == 0) {
		unsigned count = 0;
		for (; list->first != NULL && count < WF_VERBS_BATCH; count++) {
			struct wf_verbs_rx *rx = wf_verbs_rx_pop(list);
			rx->conn = NULL;
			sge[count] = (struct ibv_sge){.addr = (uintptr_t)rx->data,
						      .length = WF_VERBS_RX_BYTES,
						      .lkey = rx->chunk->mr->lkey};
			wr[count] = (struct ibv_recv_wr){
				.wr_id = wr_id_of(rx), .sg_list = &sge[count], .num_sge = 1};
			if (count > 0) {
				wr[count - 1].next = &wr[count];
			}
		}
		struct ibv_recv_wr *bad = NULL;
		err = c == NULL ? ibv_post_srq_recv(q->srq, wr, &bad)
				: ibv_post_recv(c->link.qp, wr, &bad);
		if (c != NULL) {
			c->rx.posted += count_posted(wr, err == 0 ? NULL : bad);
		}
	}
	if (err != 0 && c == NULL) {
		wf_verbs_device_lost(q->dev, "it takes no more receive buffers");
	}
	return err;
}

static enum weft_status
chunk_post(struct wf_verbs_conn *c, struct wf_verbs_chunk *chunk)
{
	struct wf_verbs_rx_list list = {0};
	for (uint32_t i = 0; i < chunk->count; i++) {
		wf_verbs_rx_push(&list, &chunk->rx[i]);
	}
	int err = post_list(chunk->queues, c, &list);
	if (err != 0) {
		return wf_fail_errno(WEFT_NOMEM, err, "%s: %u receive buffers cannot be posted",
				     chunk->queues->dev->name, chunk->count);
	}
	return WEFT_OK;
}

enum weft_status
wf_verbs_rx_open(struct wf_verbs_conn *c)
{
	struct wf_verbs_queues *q = c->link.queues;
	struct wf_verbs_chunk *chunk = NULL;
	if (q->srq != NULL && q->conn_count <= q->shares_used) {
		return WEFT_OK; /* an ended connection has left its share */
	}
	enum weft_status st = chunk_open(q, c->link.pd, &chunk);
	if (st != WEFT_OK) {
		return st;
	}
	if (q->srq != NULL) {
		q->shares_used++;
		return chunk_post(NULL, chunk);
	}
	chunk->conn = c;
	c->rx.chunk = chunk;
	c->rx.posted = 0;
	return chunk_post(c, chunk);
}

void
wf_verbs_rx_flush_shared(struct wf_verbs_queues *q)
{
	if (q->srq != NULL) {
		(void)post_list(q, NULL, &q->fresh); /* its connections end with the device */
	}
}

void
wf_verbs_rx_flush(struct wf_verbs_conn *c)
{
	struct wf_verbs_queues *q = c->link.queues;
	if (q->srq != NULL) {
		wf_verbs_rx_flush_shared(q);
	} else if (c->link.qp != NULL && c->life.state < WF_LIFE_ENDING) {
		int err = post_list(q, c, &c->rx.fresh);
		if (err != 0) {
			wf_verbs_conn_end(c, WEFT_LOST, "%s takes no more receive buffers: %s",
					  q->dev->name, strerror(err));
		}
	}
}

void
wf_verbs_rx_reclaim(struct wf_verbs *t)
{
	while (t->lent.first != NULL) {
		struct wf_verbs_rx *rx = wf_verbs_rx_pop(&t->lent);
		struct wf_verbs_conn *c = rx->conn;
		wf_verbs_rx_forget(rx);
		if (c != NULL) {
			wf_life_ready(&c->life); /* credits may be due */
		}
	}
}

void
wf_verbs_rx_drop(struct wf_verbs_conn *c)
{
	while (c->rx.list.first != NULL) {
		struct wf_verbs_rx *rx = wf_verbs_rx_pop(&c->rx.list);
		rx->conn = NULL;
		wf_verbs_rx_forget(rx);
	}
	/* Buffers into which events point come back with the next poll, without a connection. */
	for (struct wf_verbs_rx *rx = c->t->lent.first; rx != NULL; rx = rx->next) {
		if (rx->conn == c) {
			rx->conn = NULL;
		}
	}
}

void
wf_verbs_rx_close(struct wf_verbs_conn *c)
{
	if (c->rx.chunk != NULL) {
		wf_verbs_deregister(c->link.dev, &c->rx.chunk->mr);
	}
}

void
wf_verbs_rx_leave(struct wf_verbs_conn *c)
{
	if (c->rx.chunk != NULL) {
		chunk_free(c->rx.chunk);
		c->rx.chunk = NULL;
	}
}
