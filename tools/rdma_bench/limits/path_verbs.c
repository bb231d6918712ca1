/* SPDX-License-Identifier: Apache-2.0 */
/* path_verbs: one queue pair without weft, with hand-written post and poll: the limit of the
 * transport verbs. Round trips: WRITE with immediate (WRITE and an empty SEND on iWARP), or SEND.
 * Streams: WRITEs of which only the last notifies the receiver, or SENDs. Counters of the other end
 * are written into memory and polled there, which weft may not do. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "tools/rdma_bench/limits/memory.h"
#include "tools/rdma_bench/limits/paths.h"
#include "tools/rdma_bench/limits/verbs_link.h"

#define RX_COUNT 256u
#define RX_BYTES WF_PEER_MESSAGE_MAX
#define SQ_COUNT 512u
#define SIGNAL_EVERY 16u /* messages */
#define CQ_POLL 16
#define INLINE_BYTES 220u /* as many as weft requests */

/* At the start of the memory; the other end's device writes the first two, this end's reads the
 * others. Numbers only grow, over all legs. */
struct counters {
	/* V1: messages that the other end has got; a device stores, this end: load acquire. */
	_Atomic uint64_t told;
	/* V2: streams of WRITEs that are whole; as V1. */
	_Atomic uint64_t streams;
	uint64_t told_out, streams_out;
};
#define COUNTERS_BYTES 4096u

struct verbs_path {
	struct wf_peer_path path; /* first */
	struct wf_bare_link link;
	struct counters *counters;
	uint8_t *rx; /* RX_COUNT of RX_BYTES */
	uint32_t inline_bytes;
	uint64_t posted, completed; /* work requests */
	/* The values of the counters at the end of earlier legs. They are not read when a leg
	 * begins, because the other end may be ahead. */
	uint64_t streamed, streams_seen;
	uint64_t streaming; /* in this one; 0: to and fro */
	uint64_t in_base;
};

static struct verbs_path *
verbs_of(struct wf_peer_path *path)
{
	return (struct verbs_path *)path;
}

static const char *
verbs_name(const struct wf_peer_path *path, const struct wf_peer_leg *leg)
{
	const struct verbs_path *v = (const struct verbs_path *)path;
	if (leg->op == WF_PEER_SEND) {
		return "raw SEND";
	}
	if (!leg->ping) {
		return "raw WRITE";
	}
	return v->link.iwarp ? "raw WRITE and SEND" : "raw WRITE with imm";
}

static void
verbs_begin(struct wf_peer_path *path)
{
	struct verbs_path *v = verbs_of(path);
	bool sends = path->leg->op == WF_PEER_SEND;
	path->room = !path->leg->ping && sends ? RX_COUNT / 2 : 0;
	v->in_base = v->counters->told_out;
	v->streamed += v->streaming;
	v->streaming = path->leg->ping ? 0 : path->leg->send_count;
}

/* ---- sending ---- */

struct batch {
	unsigned count;
	struct ibv_send_wr wr[2 * WF_PEER_TOGETHER + 2];
	struct ibv_sge sge[2 * WF_PEER_TOGETHER + 2];
};

static uint64_t
room_of(const struct verbs_path *v)
{
	return SQ_COUNT - (v->posted - v->completed);
}

static struct ibv_send_wr *
add(struct verbs_path *v, struct batch *batch, const void *at, uint64_t bytes)
{
	struct ibv_send_wr *wr = &batch->wr[batch->count];
	struct ibv_sge *sge = &batch->sge[batch->count];
	memset(wr, 0, sizeof(*wr));
	*sge = (struct ibv_sge){
		.addr = (uintptr_t)at, .length = (uint32_t)bytes, .lkey = v->link.mr->lkey};
	wr->sg_list = sge;
	wr->num_sge = bytes > 0 ? 1 : 0;
	wr->opcode = IBV_WR_SEND;
	if (bytes <= v->inline_bytes) {
		wr->send_flags = IBV_SEND_INLINE;
	}
	if (batch->count > 0) {
		batch->wr[batch->count - 1].next = wr;
	}
	batch->count++;
	v->posted++;
	return wr;
}

static void
set_target(struct verbs_path *v, struct ibv_send_wr *wr, uint64_t offset)
{
	wr->opcode = IBV_WR_RDMA_WRITE;
	wr->wr.rdma.remote_addr = v->link.remote_at + offset;
	wr->wr.rdma.rkey = v->link.remote_key;
}

/* A completion gives the number of messages, and of work requests, that are over. */
static void
signal_it(const struct verbs_path *v, struct ibv_send_wr *wr, uint64_t messages)
{
	wr->send_flags |= IBV_SEND_SIGNALED;
	wr->wr_id = messages << 32 | (uint32_t)v->posted;
}

static enum weft_status
post(struct verbs_path *v, struct batch *batch)
{
	struct ibv_send_wr *bad = NULL;
	int err = ibv_post_send(v->link.qp, batch->wr, &bad);
	return err == 0 ? WEFT_OK : wf_fail_errno(WEFT_LOST, err, "raw verbs: post");
}

static uint64_t
offset_of(const struct verbs_path *v, const uint8_t *dst)
{
	return (uint64_t)(dst - (const uint8_t *)v->counters);
}

static void
add_message(struct verbs_path *v, struct batch *batch, uint64_t number)
{
	const struct wf_peer_path *path = &v->path;
	const struct wf_peer_leg *leg = path->leg;
	struct ibv_send_wr *wr = add(v, batch, wf_peer_src(path, number), leg->bytes);
	if (leg->op == WF_PEER_SEND) {
		return;
	}
	set_target(v, wr, offset_of(v, wf_peer_dst(path, number)));
	if (leg->ping && v->link.iwarp) {
		(void)add(v, batch, NULL, 0);
	} else if (leg->ping) {
		wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	}
}

static enum weft_status
verbs_send(struct wf_peer_path *path, uint64_t first, uint64_t count, uint64_t *taken)
{
	struct verbs_path *v = verbs_of(path);
	const struct wf_peer_leg *leg = path->leg;
	struct batch batch;
	uint64_t depth = path->end->plan.depth;
	uint64_t every = depth / 2 < SIGNAL_EVERY ? depth / 2 + 1 : SIGNAL_EVERY;
	batch.count = 0;
	if (room_of(v) < 2 * count + 2) {
		return WEFT_OK;
	}
	for (uint64_t i = first + 1; i <= first + count; i++) {
		add_message(v, &batch, i - 1);
		if (i % every == 0 || i == leg->send_count) {
			signal_it(v, &batch.wr[batch.count - 1], i);
		}
	}
	if (!leg->ping && leg->op == WF_PEER_PUT && first + count == leg->send_count) {
		v->counters->streams_out++;
		struct ibv_send_wr *wr =
			add(v, &batch, &v->counters->streams_out, sizeof(v->counters->streams_out));
		set_target(v, wr, offsetof(struct counters, streams));
		signal_it(v, wr, leg->send_count);
	}
	*taken = count;
	return post(v, &batch);
}

static enum weft_status
verbs_report(struct wf_peer_path *path, uint64_t count, bool *taken)
{
	struct verbs_path *v = verbs_of(path);
	struct batch batch;
	batch.count = 0;
	if (room_of(v) == 0) {
		return WEFT_OK;
	}
	v->counters->told_out = v->in_base + count;
	struct ibv_send_wr *wr =
		add(v, &batch, &v->counters->told_out, sizeof(v->counters->told_out));
	set_target(v, wr, offsetof(struct counters, told));
	signal_it(v, wr, path->done);
	path->busy++;
	*taken = true;
	return post(v, &batch);
}

/* ---- what comes ---- */

static enum weft_status
fail_completion(const struct verbs_path *v, const struct ibv_wc *wc)
{
	return wf_fail(WEFT_LOST, "raw verbs on %s: %s", v->link.name,
		       v->link.calls->wc_status_str(wc->status));
}

static enum weft_status
poll_sent(struct verbs_path *v)
{
	struct wf_peer_path *path = &v->path;
	struct ibv_wc wc[CQ_POLL];
	int n = ibv_poll_cq(v->link.send_cq, CQ_POLL, wc);
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			return fail_completion(v, &wc[i]);
		}
		uint64_t messages = wc[i].wr_id >> 32;
		v->completed += (uint32_t)((uint32_t)wc[i].wr_id - (uint32_t)v->completed);
		path->done = messages > path->done ? messages : path->done;
		path->moved = true;
	}
	path->busy = v->completed == v->posted ? 0 : path->busy;
	return n < 0 ? wf_fail(WEFT_LOST, "raw verbs: the completion queue") : WEFT_OK;
}

static enum weft_status
post_receives(struct verbs_path *v, const uint64_t *which, unsigned count)
{
	struct ibv_recv_wr wr[CQ_POLL], *bad = NULL;
	struct ibv_sge sge[CQ_POLL];
	for (unsigned i = 0; i < count; i++) {
		sge[i] = (struct ibv_sge){.addr = (uintptr_t)(v->rx + which[i] * RX_BYTES),
					  .length = RX_BYTES,
					  .lkey = v->link.mr->lkey};
		wr[i] = (struct ibv_recv_wr){.wr_id = which[i],
					     .sg_list = &sge[i],
					     .num_sge = 1,
					     .next = i + 1 < count ? &wr[i + 1] : NULL};
	}
	int err = ibv_post_recv(v->link.qp, wr, &bad);
	return err == 0 ? WEFT_OK : wf_fail_errno(WEFT_LOST, err, "raw verbs: receive");
}

static enum weft_status
poll_received(struct verbs_path *v)
{
	struct wf_peer_path *path = &v->path;
	struct ibv_wc wc[CQ_POLL];
	uint64_t which[CQ_POLL];
	enum weft_status st = WEFT_OK;
	int n = ibv_poll_cq(v->link.receive_cq, CQ_POLL, wc);
	for (int i = 0; i < n && st == WEFT_OK; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			return fail_completion(v, &wc[i]);
		}
		which[i] = wc[i].wr_id;
		const uint8_t *data = path->leg->op == WF_PEER_SEND
					      ? v->rx + which[i] * RX_BYTES
					      : wf_peer_dst(path, path->received);
		st = wf_peer_on_message(path, data);
	}
	return st == WEFT_OK && n > 0 ? post_receives(v, which, (unsigned)n) : st;
}

/* A stream of WRITEs is not notified before all of it has arrived. */
static enum weft_status
look_at_counters(struct verbs_path *v)
{
	struct wf_peer_path *path = &v->path;
	const struct wf_peer_leg *leg = path->leg;
	enum weft_status st = WEFT_OK;
	uint64_t has = atomic_load_explicit(&v->counters->told, memory_order_acquire); /* V1 */
	path->moved = path->moved || path->peer_has != has - v->streamed;
	path->peer_has = has - v->streamed;
	if (leg->op == WF_PEER_PUT && path->received < leg->receive_count &&
	    atomic_load_explicit(&v->counters->streams, memory_order_acquire) > /* V2 */
		    v->streams_seen) {
		v->streams_seen++;
		path->received = leg->receive_count - 1;
		st = wf_peer_on_message(path, wf_peer_dst(path, path->received));
	}
	return st;
}

static enum weft_status
verbs_progress(struct wf_peer_path *path)
{
	struct verbs_path *v = verbs_of(path);
	bool write_stream = path->leg->op == WF_PEER_PUT && !path->leg->ping;
	enum weft_status st = write_stream ? WEFT_OK : poll_received(v);
	bool hurry = path->leg->ping && path->sent < path->leg->send_count;
	if (st == WEFT_OK && v->posted - v->completed > (hurry ? SQ_COUNT / 2 : 0)) {
		st = poll_sent(v);
	}
	if (st == WEFT_OK && !path->leg->ping) {
		st = look_at_counters(v);
	}
	return st;
}

static uint64_t
memory_bytes(const struct verbs_path *v)
{
	return COUNTERS_BYTES + 2 * v->path.areas.half_bytes + (uint64_t)RX_COUNT * RX_BYTES;
}

static void
verbs_close(struct wf_peer_path *path)
{
	struct verbs_path *v = verbs_of(path);
	wf_bare_link_close(&v->link);
	wf_limit_unmap(v->counters, memory_bytes(v));
	wf_bare_destroy(path);
}

static const struct wf_peer_path_ops verbs_ops = {
	.name = verbs_name,
	.begin = verbs_begin,
	.send = verbs_send,
	.report = verbs_report,
	.progress = verbs_progress,
	.close = verbs_close,
};

/* ---- before the first leg ---- */

enum weft_status
wf_bare_verbs_open(struct wf_peer_end *end, struct wf_peer_path **out)
{
	float *memory;
	enum weft_status st = wf_bare_create(end, &verbs_ops, sizeof(struct verbs_path), out);
	if (st != WEFT_OK) {
		return st;
	}
	struct verbs_path *v = verbs_of(*out);
	st = wf_limit_floats(memory_bytes(v), 1, &memory);
	if (st != WEFT_OK) {
		return st;
	}
	memset(memory, 0, COUNTERS_BYTES);
	v->counters = (struct counters *)(void *)memory;
	v->path.areas.src = (uint8_t *)memory + COUNTERS_BYTES;
	v->path.areas.dst = v->path.areas.src + v->path.areas.half_bytes;
	v->rx = v->path.areas.dst + v->path.areas.half_bytes;
	return wf_bare_link_open(&v->link, end);
}

static enum weft_status
on_link(struct wf_bare_link *link)
{
	struct verbs_path *v = link->context;
	enum weft_status st = WEFT_OK;
	v->inline_bytes = link->inline_bytes;
	for (uint64_t i = 0; i < RX_COUNT && st == WEFT_OK; i += CQ_POLL) {
		uint64_t which[CQ_POLL];
		for (unsigned j = 0; j < CQ_POLL; j++) {
			which[j] = i + j;
		}
		st = post_receives(v, which, CQ_POLL);
	}
	return st;
}

enum weft_status
wf_bare_verbs_join(struct wf_peer_path *path)
{
	struct verbs_path *v = verbs_of(path);
	const struct wf_bare_link_opts opts = {
		.memory = v->counters,
		.bytes = memory_bytes(v),
		.send_count = SQ_COUNT,
		.receive_count = RX_COUNT,
		.inline_bytes = INLINE_BYTES,
		.made = on_link,
		.context = v,
	};
	return wf_bare_link_join(&v->link, &opts);
}
