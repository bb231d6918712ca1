/* SPDX-License-Identifier: Apache-2.0 */
/* fake_queues: completion queues, receive queues and queue pairs of the fake, as objects;
 * fake_wire.c moves what goes through them. Queues have exactly the requested number of entries.
 * Thread: one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fake_internal.h"

#define QP_FIRST 0x11u
#define CQE_BYTES 64u  /* of memory, as on mlx5 */
#define WQE_BYTES 256u /* of a send queue */
#define RWQE_BYTES 32u /* of a receive queue */

struct channel {
	struct ibv_comp_channel channel; /* first */
	void *owner;
};

struct fake_qp *fake_qp_of[FAKE_QPS_MAX];
static struct fake_cq *cqs;
static uint32_t qp_next;

/* ---- completion queues ---- */

static void
announce(struct fake_cq *cq)
{
	cq->announced++;
	if (!cq->armed) {
		return;
	}
	cq->armed = false;
	if (fake_device.lost_events > 0) {
		fake_device.lost_events--;
	} else if (fake_chance(fake_knobs_now()->unwoken_per_mille, 1000)) {
		fake_happened.unwoken++;
	} else {
		cq->told = true;
		fake_ring(cq->cq.channel->fd, cq->owner);
	}
}

static struct fake_entry *
entry_at(struct fake_cq *cq, unsigned place)
{
	return &cq->at[(cq->head + place) % cq->depth];
}

static void
announce_due(struct fake_cq *cq, uint64_t now_ns)
{
	while (cq->announced < cq->count && entry_at(cq, cq->announced)->at_ns <= now_ns) {
		announce(cq);
	}
	if (cq->announced < cq->count) {
		fake_due(entry_at(cq, cq->announced)->at_ns);
	}
}

void
fake_complete(struct ibv_cq *base, const struct fake_entry *entry)
{
	struct fake_cq *cq = (struct fake_cq *)base;
	uint64_t now_ns = fake_now_ns();
	uint64_t at_ns = now_ns + fake_draw(fake_knobs_now()->completion_ns);
	WF_ASSERT(cq->count < cq->depth); /* the backend asked for too few */
	if (cq->count > 0 && entry_at(cq, cq->count - 1)->at_ns > at_ns) {
		at_ns = entry_at(cq, cq->count - 1)->at_ns; /* in order */
	}
	struct fake_entry *at = entry_at(cq, cq->count++);
	*at = *entry;
	at->at_ns = at_ns;
	if (entry->source != NULL) {
		entry->source->completed++;
		struct fake_qp *qp = fake_qp_of[entry->wc.qp_num];
		qp->last_ns = at_ns;
	}
	announce_due(cq, now_ns);
}

static void
take(struct fake_cq *cq, struct ibv_wc *out)
{
	const struct fake_entry *entry = entry_at(cq, 0);
	struct fake_qp *qp = fake_qp_of[entry->wc.qp_num];
	*out = entry->wc;
	if (entry->source != NULL) {
		entry->source->completed--;
	}
	if (qp != NULL && entry->source != NULL) {
		fake_place(qp);
	} else if (qp != NULL && entry->position > 0) {
		qp->released = entry->position;
	}
	cq->head = (cq->head + 1) % cq->depth;
	cq->count--;
	cq->announced--;
}

static int
poll_cq(struct ibv_cq *base, int most, struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)base;
	int n = 0;
	fake_pass();
	fake_turn();
	if (cq->broken) {
		fake_leave(base->context);
		return fake_now_is()->poll_error;
	}
	announce_due(cq, fake_now_ns());
	while (n < most && cq->announced > 0) {
		take(cq, &wc[n++]);
	}
	return n;
}

/* Those of a queue pair that is destroyed, and with them the buffers of a shared queue. */
static void
purge(struct fake_cq *cq, const struct fake_qp *qp)
{
	unsigned kept = 0;
	unsigned announced = 0;
	for (unsigned i = 0; i < cq->count; i++) {
		struct fake_entry *entry = entry_at(cq, i);
		if (entry->wc.qp_num != qp->qp.qp_num) {
			announced += i < cq->announced ? 1 : 0;
			*entry_at(cq, kept++) = *entry;
		} else if (entry->source != NULL) {
			entry->source->completed--;
			fake_seen.lost +=
				qp->qp.srq != NULL && !fake_is_left(cq->cq.context) ? 1 : 0;
		}
	}
	cq->count = kept;
	cq->announced = announced;
}

/* They stay, and name work that nobody knows any more. */
static void
disown(struct fake_cq *cq, const struct fake_qp *qp)
{
	for (unsigned i = 0; i < cq->count; i++) {
		struct fake_entry *entry = entry_at(cq, i);
		if (entry->wc.qp_num == qp->qp.qp_num) {
			entry->source = entry->source == &qp->own ? NULL : entry->source;
			entry->position = 0;
		}
	}
}

static int
req_notify_cq(struct ibv_cq *base, int solicited_only)
{
	((struct fake_cq *)base)->armed = true;
	return 0;
}

void
fake_queues_turn(uint64_t now_ns)
{
	for (struct fake_cq *cq = cqs; cq != NULL; cq = cq->next) {
		announce_due(cq, now_ns);
	}
}

void
fake_break_polls(void)
{
	for (struct fake_cq *cq = cqs; cq != NULL; cq = cq->next) {
		cq->broken = true;
	}
}

static struct ibv_comp_channel *
create_comp_channel(struct ibv_context *context)
{
	struct channel *channel = fake_make(FAKE_CHANNEL, sizeof(*channel));
	if (channel == NULL) {
		return NULL;
	}
	channel->channel.context = context;
	channel->channel.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	channel->owner = fake_self();
	fake_hold(fake_device_holds(context));
	return &channel->channel;
}

static int
destroy_comp_channel(struct ibv_comp_channel *channel)
{
	for (const struct fake_cq *cq = cqs; cq != NULL; cq = cq->next) {
		WF_ASSERT(cq->cq.channel != channel);
	}
	(void)close(channel->fd);
	fake_let_go(fake_device_holds(channel->context));
	fake_unmade(FAKE_CHANNEL);
	free(channel);
	return 0;
}

static struct ibv_cq *
create_cq(struct ibv_context *context, int entries, void *cq_context, struct ibv_comp_channel *base,
	  int vector)
{
	if (vector < 0 || vector >= context->num_comp_vectors || entries < 1 ||
	    entries > fake_now_is()->cqe_max) {
		errno = EINVAL;
		return NULL;
	}
	if (fake_nomem() || !fake_lock((uint64_t)entries * CQE_BYTES, true)) {
		return NULL;
	}
	struct fake_cq *cq = calloc(1, sizeof(*cq));
	WF_ASSERT(cq != NULL && base != NULL);
	cq->depth = (unsigned)entries;
	cq->at = calloc(cq->depth, sizeof(*cq->at));
	WF_ASSERT(cq->at != NULL);
	cq->cq = (struct ibv_cq){.context = context, .channel = base, .cq_context = cq_context};
	cq->owner = fake_self();
	cq->next = cqs;
	cqs = cq;
	fake_seen.vector = vector;
	fake_seen.cq_count++;
	fake_hold(fake_device_holds(context));
	fake_made(FAKE_CQ);
	return &cq->cq;
}

static int
destroy_cq(struct ibv_cq *base)
{
	struct fake_cq *cq = (struct fake_cq *)base;
	struct fake_cq **at = &cqs;
	WF_ASSERT(cq->users == 0);
	WF_ASSERT(cq->unacked == 0); /* it would be waited for without end */
	while (*at != cq) {
		at = &(*at)->next;
	}
	*at = cq->next;
	fake_let_go(fake_device_holds(base->context));
	fake_unlock((uint64_t)cq->depth * CQE_BYTES, true);
	fake_unmade(FAKE_CQ);
	free(cq->at);
	free(cq);
	return 0;
}

static int
get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **out, void **cq_context)
{
	fake_turn();
	for (struct fake_cq *cq = cqs; cq != NULL; cq = cq->next) {
		if (cq->cq.channel == channel && cq->told) {
			cq->told = false;
			cq->unacked++;
			*out = &cq->cq;
			*cq_context = cq->cq.cq_context;
			return 0;
		}
	}
	uint64_t count = 0;
	(void)!read(channel->fd, &count, sizeof(count));
	errno = EAGAIN;
	return -1;
}

static void
ack_cq_events(struct ibv_cq *base, unsigned int count)
{
	struct fake_cq *cq = (struct fake_cq *)base;
	WF_ASSERT(count > 0 && count <= cq->unacked);
	cq->unacked -= count;
}

/* ---- receive queues ---- */

struct fake_receives *
fake_receives_of(struct fake_qp *qp)
{
	return qp->qp.srq == NULL ? &qp->own : &((struct fake_srq *)qp->qp.srq)->receives;
}

static int
post_receives(struct fake_receives *r, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	fake_seen.recv_calls++;
	for (; wr != NULL; wr = wr->next) {
		if (fake_nomem()) {
			*bad = wr;
			return ENOMEM;
		}
		WF_ASSERT(r->count < r->depth && wr->num_sge == 1);
		uint8_t *data = fake_find(wr->sg_list[0].lkey, wr->sg_list[0].addr,
					  wr->sg_list[0].length, NULL);
		WF_ASSERT(data != NULL);
		r->at[(r->head + r->count++) % r->depth] =
			(struct fake_receive){wr->wr_id, data, wr->sg_list[0].length};
	}
	return 0;
}

static int
post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)base;
	WF_ASSERT(base->srq == NULL && qp->state != IBV_QPS_RESET);
	if (qp->state == IBV_QPS_ERR) {
		*bad = wr;
		return EINVAL; /* as some: others take it, and flush it */
	}
	return post_receives(&qp->own, wr, bad);
}

static int
post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int err = post_receives(&((struct fake_srq *)srq)->receives, wr, bad);
	if (err != 0) {
		fake_leave(srq->context);
	}
	return err;
}

static struct ibv_srq *
create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	uint64_t locked = (uint64_t)attr->attr.max_wr * RWQE_BYTES;
	if (fake_nomem() || !fake_lock(locked, true)) {
		return NULL;
	}
	struct fake_srq *srq = calloc(1, sizeof(*srq));
	WF_ASSERT(srq != NULL && fake_now_is()->shared_queue);
	srq->srq.context = pd->context;
	srq->srq.pd = pd;
	fake_hold(fake_domain_holds(pd));
	srq->locked = locked;
	srq->receives.depth = attr->attr.max_wr;
	srq->receives.at = calloc(srq->receives.depth, sizeof(struct fake_receive));
	WF_ASSERT(srq->receives.at != NULL);
	fake_made(FAKE_SRQ);
	return &srq->srq;
}

static int
destroy_srq(struct ibv_srq *base)
{
	struct fake_srq *srq = (struct fake_srq *)base;
	fake_let_go(fake_domain_holds(base->pd));
	fake_unlock(srq->locked, true);
	fake_unmade(FAKE_SRQ);
	for (struct fake_cq *cq = cqs; cq != NULL; cq = cq->next) {
		for (unsigned i = 0; i < cq->count; i++) { /* it goes before them */
			WF_ASSERT(entry_at(cq, i)->source != &srq->receives);
		}
	}
	free(srq->receives.at);
	free(srq);
	return 0;
}

unsigned
fake_srq_left(const struct ibv_srq *srq)
{
	const struct fake_receives *r = &((const struct fake_srq *)srq)->receives;
	return r->count + r->completed;
}

unsigned
fake_qp_left(const struct ibv_qp *qp)
{
	const struct fake_receives *r = &((const struct fake_qp *)qp)->own;
	return r->count + r->completed;
}

/* ---- queue pairs ---- */

/* As on devices, a number comes back late. */
static uint32_t
new_number(void)
{
	uint32_t number = 0;
	for (uint32_t i = 0; i < FAKE_QPS_MAX && number == 0; i++) {
		uint32_t tried = (QP_FIRST + qp_next++) % FAKE_QPS_MAX;
		number = fake_qp_of[tried] == NULL ? tried : 0;
	}
	WF_ASSERT(number != 0);
	return number;
}

static struct ibv_qp *
create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	const struct ibv_qp_cap *cap = &attr->cap;
	uint64_t locked = (uint64_t)cap->max_send_wr * WQE_BYTES + cap->max_recv_wr * RWQE_BYTES;
	if (cap->max_inline_data > fake_now_is()->inline_max) {
		errno = EINVAL;
		return NULL;
	}
	if (fake_nomem() || !fake_lock(locked, true)) {
		return NULL;
	}
	struct fake_qp *qp = calloc(1, sizeof(*qp));
	WF_ASSERT(qp != NULL);
	qp->qp = (struct ibv_qp){.context = pd->context,
				 .pd = pd,
				 .send_cq = attr->send_cq,
				 .recv_cq = attr->recv_cq,
				 .srq = attr->srq,
				 .qp_num = new_number()};
	qp->own.depth = cap->max_recv_wr;
	qp->own.at = calloc(qp->own.depth + 1u, sizeof(struct fake_receive));
	qp->depth = cap->max_send_wr;
	qp->work = calloc(qp->depth, sizeof(*qp->work));
	WF_ASSERT(qp->own.at != NULL && qp->work != NULL);
	qp->locked = locked;
	((struct fake_cq *)attr->send_cq)->users++;
	((struct fake_cq *)attr->recv_cq)->users++;
	fake_qp_of[qp->qp.qp_num] = qp;
	fake_hold(fake_domain_holds(pd));
	fake_made(FAKE_QP);
	return &qp->qp;
}

/* One step after the other; there is no way back from the error state but destroying it. */
static bool
is_next(enum ibv_qp_state from, enum ibv_qp_state to)
{
	return (from == IBV_QPS_RESET && to == IBV_QPS_INIT) ||
	       (from == IBV_QPS_INIT && to == IBV_QPS_RTR) ||
	       (from == IBV_QPS_RTR && to == IBV_QPS_RTS);
}

static int
modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask)
{
	struct fake_qp *qp = (struct fake_qp *)base;
	if (attr->qp_state != IBV_QPS_ERR && !is_next(qp->state, attr->qp_state)) {
		return EINVAL;
	}
	if ((mask & IBV_QP_DEST_QPN) != 0) {
		qp->peer = attr->dest_qp_num;
	}
	if ((mask & IBV_QP_AV) != 0) {
		qp->sl = attr->ah_attr.sl;
		fake_seen.sl = qp->sl;
	}
	if (attr->qp_state == IBV_QPS_RTR) {
		qp->rnr_timer = attr->min_rnr_timer;
	} else if (attr->qp_state == IBV_QPS_RTS) {
		qp->timeout = attr->timeout;
		qp->retry_count = attr->retry_cnt;
		qp->rnr_retry = attr->rnr_retry;
		qp->rnr_left = attr->rnr_retry;
	}
	if (attr->qp_state == IBV_QPS_ERR) {
		fake_qp_error(qp);
	} else {
		qp->state = attr->qp_state;
	}
	return 0;
}

static int
query_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	const struct fake_qp *qp = (const struct fake_qp *)base;
	attr->qp_state = fake_now_is()->iwarp ? IBV_QPS_RESET : qp->state;
	attr->ah_attr.sl = qp->sl;
	return 0;
}

static unsigned
count_of(struct fake_cq *cq, const struct fake_qp *qp)
{
	unsigned count = 0;
	for (unsigned i = 0; i < cq->count; i++) {
		count += entry_at(cq, i)->wc.qp_num == qp->qp.qp_num ? 1 : 0;
	}
	return count;
}

/* Completions that nobody will read, though the device says when it is through with them. On iWARP
 * it does not say so of what is sent. */
static void
note_unread(const struct fake_qp *qp)
{
	bool told = qp->qp.srq == NULL || (fake_now_is()->says_last && !fake_device.silent_last);
	if (fake_is_left(qp->qp.context) || !told) {
		return;
	}
	fake_seen.unread += count_of((struct fake_cq *)qp->qp.recv_cq, qp);
	fake_seen.unread +=
		fake_now_is()->iwarp ? 0 : count_of((struct fake_cq *)qp->qp.send_cq, qp);
}

static int
destroy_qp(struct ibv_qp *base)
{
	struct fake_qp *qp = (struct fake_qp *)base;
	struct fake_cq *send = (struct fake_cq *)base->send_cq;
	struct fake_cq *receive = (struct fake_cq *)base->recv_cq;
	fake_qp_error(qp);
	fake_place(qp);
	WF_ASSERT(qp->unacked == 0); /* it would be waited for without end */
	note_unread(qp);
	if (fake_now_is()->purges) {
		purge(receive, qp);
		purge(send, qp);
	}
	disown(receive, qp);
	disown(send, qp);
	send->users--;
	receive->users--;
	fake_forget_qp(base);
	fake_qp_of[base->qp_num] = NULL;
	fake_let_go(fake_domain_holds(base->pd));
	fake_unlock(qp->locked, true);
	fake_unmade(FAKE_QP);
	free(qp->own.at);
	free(qp->work);
	free(qp);
	return 0;
}

void
fake_queues_reset(void)
{
	memset(fake_qp_of, 0, sizeof(fake_qp_of));
	cqs = NULL;
	qp_next = 0;
}

void
fake_queues_fill(struct wf_verbs_lib *lib, struct ibv_context_ops *ops)
{
	ops->poll_cq = poll_cq;
	ops->req_notify_cq = req_notify_cq;
	ops->post_recv = post_recv;
	ops->post_srq_recv = post_srq_recv;
	lib->create_comp_channel = create_comp_channel;
	lib->destroy_comp_channel = destroy_comp_channel;
	lib->create_cq = create_cq;
	lib->destroy_cq = destroy_cq;
	lib->get_cq_event = get_cq_event;
	lib->ack_cq_events = ack_cq_events;
	lib->create_srq = create_srq;
	lib->destroy_srq = destroy_srq;
	lib->create_qp = create_qp;
	lib->modify_qp = modify_qp;
	lib->query_qp = query_qp;
	lib->destroy_qp = destroy_qp;
}
