/* SPDX-License-Identifier: Apache-2.0 */
/* fake: see the header. Strict where the backend relies on it: keys and bounds are checked, receive
 * buffers must be there, a queue has the entries that were asked for. Thread: one; regions come and
 * go on the helper, too, and are handed over with its task. */
#include "fake.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"

#define KEYS_MAX 4096u
#define QPS_MAX 256u
#define QP_FIRST 0x11u

struct fake_device fake_device = {.vectors = 4, .speed = 32, .width = 2, .state = IBV_PORT_ACTIVE};
struct fake_seen fake_seen = {.vector = -1};

/* ---- memory ---- */

/* lkey and rkey of a region, and rkey of a window; the low byte of a window's key counts. */
struct key {
	const void *pd;
	uint8_t *base;
	uint64_t iova, bytes;
	uint32_t rkey;
	bool remote;
};

static struct key key_of[KEYS_MAX];
static _Atomic uint32_t key_count; /* FK: the helper registers, too */

static uint32_t
key_new(void)
{
	uint32_t number =
		atomic_fetch_add_explicit(&key_count, 1, memory_order_relaxed) + 1; /* FK */
	WF_ASSERT(number < KEYS_MAX);
	return number;
}

/* Where the bytes are; NULL: nowhere that this key leads to. */
static uint8_t *
find(uint32_t key, uint64_t at, uint64_t bytes, bool remote)
{
	const struct key *k = &key_of[key >> 8 & (KEYS_MAX - 1)];
	if (k->base == NULL || k->rkey != key || (remote && !k->remote) || at < k->iova ||
	    bytes > k->bytes || at - k->iova > k->bytes - bytes) {
		return NULL;
	}
	return k->base + (at - k->iova);
}

static struct ibv_mr *
reg_mr_iova2(struct ibv_pd *pd, void *base, size_t bytes, uint64_t iova, unsigned int access)
{
	struct ibv_mr *mr = calloc(1, sizeof(*mr));
	uint32_t number = key_new();
	WF_ASSERT(mr != NULL);
	*mr = (struct ibv_mr){.context = pd->context,
			      .pd = pd,
			      .addr = base,
			      .length = bytes,
			      .lkey = number << 8,
			      .rkey = number << 8};
	key_of[number] = (struct key){pd,    base,     iova,
				      bytes, mr->rkey, (access & IBV_ACCESS_REMOTE_WRITE) != 0};
	return mr;
}

static int
dereg_mr(struct ibv_mr *mr)
{
	key_of[mr->rkey >> 8] = (struct key){0};
	free(mr);
	return 0;
}

static struct ibv_mw *
alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ibv_mw *mw = calloc(1, sizeof(*mw));
	WF_ASSERT(mw != NULL);
	*mw = (struct ibv_mw){
		.context = pd->context, .pd = pd, .rkey = key_new() << 8, .type = type};
	return mw;
}

static int
dealloc_mw(struct ibv_mw *mw)
{
	key_of[mw->rkey >> 8] = (struct key){0};
	free(mw);
	return 0;
}

/* ---- queues ---- */

struct fake_cq {
	struct ibv_cq cq; /* first */
	struct ibv_wc *wc;
	unsigned head, count, depth;
	bool armed, told;
};

struct channel {
	struct ibv_comp_channel channel; /* first */
	struct fake_cq *cq[64];
	unsigned cq_count;
};

struct receive {
	uint64_t wr_id;
	uint8_t *data;
	uint32_t bytes;
};

struct receives {
	struct receive *at;
	unsigned head, count, depth;
};

struct fake_srq {
	struct ibv_srq srq; /* first */
	struct receives receives;
};

struct fake_qp {
	struct ibv_qp qp; /* first */
	struct receives own;
	uint32_t peer; /* number */
	uint8_t sl;
	enum ibv_qp_state state;
};

static struct fake_qp *qp_of[QPS_MAX];

static struct receives *
receives_of(struct fake_qp *qp)
{
	return qp->qp.srq == NULL ? &qp->own : &((struct fake_srq *)qp->qp.srq)->receives;
}

static void
complete(struct ibv_cq *base, const struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)base;
	uint64_t one = 1;
	WF_ASSERT(cq->count < cq->depth); /* the backend asked for too few */
	cq->wc[(cq->head + cq->count++) % cq->depth] = *wc;
	if (cq->armed && fake_device.lost_events > 0) {
		cq->armed = false;
		fake_device.lost_events--;
	} else if (cq->armed) {
		cq->armed = false;
		cq->told = true;
		ssize_t n = write(base->channel->fd, &one, sizeof(one));
		WF_ASSERT(n == sizeof(one));
	}
}

static int
poll_cq(struct ibv_cq *base, int most, struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)base;
	int n = 0;
	for (; n < most && cq->count > 0; n++, cq->count--) {
		wc[n] = cq->wc[cq->head++];
		cq->head = cq->head == cq->depth ? 0 : cq->head;
	}
	return n;
}

static int
req_notify_cq(struct ibv_cq *base, int solicited_only)
{
	((struct fake_cq *)base)->armed = true;
	return 0;
}

static void
post_receives(struct receives *r, const struct ibv_recv_wr *wr)
{
	fake_seen.recv_calls++;
	for (; wr != NULL; wr = wr->next) {
		WF_ASSERT(r->count < r->depth);
		uint8_t *data = find(wr->sg_list[0].lkey, wr->sg_list[0].addr,
				     wr->sg_list[0].length, false);
		WF_ASSERT(data != NULL);
		r->at[(r->head + r->count++) % r->depth] =
			(struct receive){wr->wr_id, data, wr->sg_list[0].length};
	}
}

static int
post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	post_receives(&((struct fake_qp *)qp)->own, wr);
	return 0;
}

static int
post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	post_receives(&((struct fake_srq *)srq)->receives, wr);
	return 0;
}

static struct receive
take_receive(struct fake_qp *qp)
{
	struct receives *r = receives_of(qp);
	WF_ASSERT(r->count > 0); /* never a sender without a buffer at the other end */
	struct receive first = r->at[r->head];
	r->head = (r->head + 1) % r->depth;
	r->count--;
	return first;
}

static void
flush(struct fake_qp *qp)
{
	qp->state = IBV_QPS_ERR;
	for (struct receives *r = &qp->own; r->count > 0;) {
		struct receive first = take_receive(qp);
		complete(qp->qp.recv_cq, &(struct ibv_wc){.wr_id = first.wr_id,
							  .status = IBV_WC_WR_FLUSH_ERR,
							  .qp_num = qp->qp.qp_num});
	}
}

/* ---- work requests ---- */

static void
deliver(struct fake_qp *to, const struct ibv_send_wr *wr, const uint8_t *from, uint32_t bytes)
{
	struct receive receive = take_receive(to);
	struct ibv_wc wc = {.wr_id = receive.wr_id,
			    .qp_num = to->qp.qp_num,
			    .byte_len = bytes,
			    .opcode = IBV_WC_RECV};
	if (wr->opcode == IBV_WR_SEND) {
		WF_ASSERT(bytes <= receive.bytes);
		memcpy(receive.data, from, bytes);
	} else {
		wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
		wc.wc_flags = IBV_WC_WITH_IMM;
		wc.imm_data = wr->imm_data;
	}
	complete(to->qp.recv_cq, &wc);
}

/* IBV_WC_SUCCESS, or what it ends with. */
static enum ibv_wc_status
carry_out(struct fake_qp *qp, const struct ibv_send_wr *wr)
{
	const struct ibv_sge *sge = wr->num_sge > 0 ? wr->sg_list : NULL;
	uint32_t bytes = sge == NULL ? 0 : sge->length;
	struct fake_qp *to = qp->peer < QPS_MAX ? qp_of[qp->peer] : NULL;
	if (qp->state == IBV_QPS_ERR) {
		return IBV_WC_WR_FLUSH_ERR;
	}
	if (wr->opcode == IBV_WR_BIND_MW) {
		const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;
		const struct key *region = &key_of[info->mr->rkey >> 8];
		uint8_t *base = find(region->rkey, info->addr, info->length, false);
		WF_ASSERT(base != NULL);
		key_of[wr->bind_mw.rkey >> 8] = (struct key){
			region->pd, base, info->addr, info->length, wr->bind_mw.rkey, true};
		return IBV_WC_SUCCESS;
	}
	if (to == NULL || to->state == IBV_QPS_ERR) {
		return IBV_WC_RETRY_EXC_ERR;
	}
	const uint8_t *from = NULL;
	if (sge != NULL) {
		bool is_inline = (wr->send_flags & IBV_SEND_INLINE) != 0;
		from = is_inline ? (const uint8_t *)(uintptr_t)sge->addr
				 : find(sge->lkey, sge->addr, bytes, false);
		WF_ASSERT(from != NULL);
	}
	if (wr->opcode != IBV_WR_SEND && bytes > 0) {
		uint8_t *at = find(wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, bytes, true);
		if (at == NULL) {
			flush(to);
			return IBV_WC_REM_ACCESS_ERR;
		}
		memcpy(at, from, bytes);
	}
	if (wr->opcode != IBV_WR_RDMA_WRITE) {
		deliver(to, wr, from, bytes);
	}
	return IBV_WC_SUCCESS;
}

static int
post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)base;
	fake_seen.send_calls++;
	for (; wr != NULL; wr = wr->next) {
		if (wr->opcode == IBV_WR_BIND_MW && (wr->num_sge != 0 || wr->imm_data != 0)) {
			*bad = wr;
			return EINVAL; /* as rxe */
		}
		enum ibv_wc_status status = carry_out(qp, wr);
		fake_seen.work_requests++;
		if (status != IBV_WC_SUCCESS) {
			flush(qp);
		}
		if (status != IBV_WC_SUCCESS || (wr->send_flags & IBV_SEND_SIGNALED) != 0) {
			complete(base->send_cq, &(struct ibv_wc){.wr_id = wr->wr_id,
								 .status = status,
								 .qp_num = base->qp_num});
		}
	}
	return 0;
}

/* ---- libibverbs ---- */

static struct ibv_device device = {.transport_type = IBV_TRANSPORT_IB, .name = "fake0"};
/* That of librdmacm, which nothing is made in. */
struct ibv_context fake_cm_context = {.device = &device};

static const char *
get_device_name(struct ibv_device *at)
{
	return at->name;
}

static struct ibv_device **
get_device_list(int *count)
{
	struct ibv_device **list = calloc(2, sizeof(struct ibv_device *));
	WF_ASSERT(list != NULL);
	list[0] = &device;
	*count = 1;
	return list;
}

static void
free_device_list(struct ibv_device **list)
{
	free(list);
}

static struct ibv_context *
open_device(struct ibv_device *at)
{
	struct ibv_context *context = calloc(1, sizeof(*context));
	WF_ASSERT(context != NULL);
	context->device = at;
	context->num_comp_vectors = fake_device.vectors;
	context->async_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	context->ops.poll_cq = poll_cq;
	context->ops.req_notify_cq = req_notify_cq;
	context->ops.post_send = post_send;
	context->ops.post_recv = post_recv;
	context->ops.post_srq_recv = post_srq_recv;
	context->ops.alloc_mw = alloc_mw;
	context->ops.dealloc_mw = dealloc_mw;
	return context;
}

static int
close_device(struct ibv_context *context)
{
	(void)close(context->async_fd);
	free(context);
	return 0;
}

static int
query_device(struct ibv_context *context, struct ibv_device_attr *out)
{
	*out = (struct ibv_device_attr){.max_qp = (int)QPS_MAX,
					.max_qp_wr = 4096,
					.max_cqe = 1 << 20,
					.max_srq = 16,
					.max_srq_wr = 1 << 16,
					.max_mw = 1024,
					.device_cap_flags = IBV_DEVICE_MEM_WINDOW_TYPE_2B};
	return 0;
}

static int
query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *out)
{
	struct ibv_port_attr *attr = (struct ibv_port_attr *)out;
	*attr = (struct ibv_port_attr){.state = fake_device.state,
				       .max_msg_sz = 1u << 30,
				       .pkey_tbl_len = 1,
				       .active_speed = fake_device.speed,
				       .active_width = fake_device.width};
	return 0;
}

static struct ibv_pd *
alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = calloc(1, sizeof(*pd));
	WF_ASSERT(pd != NULL);
	pd->context = context;
	return pd;
}

static int
dealloc_pd(struct ibv_pd *pd)
{
	free(pd);
	return 0;
}

static struct ibv_comp_channel *
create_comp_channel(struct ibv_context *context)
{
	struct channel *channel = calloc(1, sizeof(*channel));
	WF_ASSERT(channel != NULL);
	channel->channel.context = context;
	channel->channel.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return &channel->channel;
}

static int
destroy_comp_channel(struct ibv_comp_channel *channel)
{
	(void)close(channel->fd);
	free(channel);
	return 0;
}

static struct ibv_cq *
create_cq(struct ibv_context *context, int entries, void *cq_context, struct ibv_comp_channel *base,
	  int vector)
{
	struct channel *channel = (struct channel *)base;
	if (vector < 0 || vector >= context->num_comp_vectors) {
		errno = EINVAL;
		return NULL;
	}
	struct fake_cq *cq = calloc(1, sizeof(*cq));
	WF_ASSERT(cq != NULL && channel != NULL && channel->cq_count < 64);
	cq->depth = (unsigned)entries;
	cq->wc = calloc(cq->depth, sizeof(*cq->wc));
	WF_ASSERT(cq->wc != NULL);
	cq->cq = (struct ibv_cq){.context = context, .channel = base, .cq_context = cq_context};
	channel->cq[channel->cq_count++] = cq;
	fake_seen.vector = vector;
	fake_seen.cq_count++;
	return &cq->cq;
}

static int
destroy_cq(struct ibv_cq *base)
{
	struct fake_cq *cq = (struct fake_cq *)base;
	struct channel *channel = (struct channel *)base->channel;
	for (unsigned i = 0; i < channel->cq_count; i++) {
		if (channel->cq[i] == cq) {
			channel->cq[i] = channel->cq[--channel->cq_count];
		}
	}
	free(cq->wc);
	free(cq);
	return 0;
}

static int
get_cq_event(struct ibv_comp_channel *base, struct ibv_cq **out, void **cq_context)
{
	struct channel *channel = (struct channel *)base;
	for (unsigned i = 0; i < channel->cq_count; i++) {
		struct fake_cq *cq = channel->cq[i];
		if (cq->told) {
			cq->told = false;
			*out = &cq->cq;
			*cq_context = cq->cq.cq_context;
			return 0;
		}
	}
	uint64_t count = 0;
	(void)!read(base->fd, &count, sizeof(count));
	errno = EAGAIN;
	return -1;
}

static void
ack_cq_events(struct ibv_cq *cq, unsigned int count)
{
}

static struct ibv_srq *
create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct fake_srq *srq = calloc(1, sizeof(*srq));
	WF_ASSERT(srq != NULL);
	srq->srq.context = pd->context;
	srq->receives.depth = attr->attr.max_wr;
	srq->receives.at = calloc(srq->receives.depth, sizeof(struct receive));
	WF_ASSERT(srq->receives.at != NULL);
	return &srq->srq;
}

static int
destroy_srq(struct ibv_srq *base)
{
	free(((struct fake_srq *)base)->receives.at);
	free(base);
	return 0;
}

static struct ibv_qp *
create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct fake_qp *qp = calloc(1, sizeof(*qp));
	uint32_t number = QP_FIRST;
	while (number < QPS_MAX && qp_of[number] != NULL) {
		number++;
	}
	WF_ASSERT(qp != NULL && number < QPS_MAX);
	qp->qp = (struct ibv_qp){.context = pd->context,
				 .pd = pd,
				 .send_cq = attr->send_cq,
				 .recv_cq = attr->recv_cq,
				 .srq = attr->srq,
				 .qp_num = number};
	qp->own.depth = attr->cap.max_recv_wr;
	qp->own.at = calloc(qp->own.depth + 1u, sizeof(struct receive));
	WF_ASSERT(qp->own.at != NULL);
	qp_of[number] = qp;
	return &qp->qp;
}

static int
modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask)
{
	struct fake_qp *qp = (struct fake_qp *)base;
	if ((mask & IBV_QP_DEST_QPN) != 0) {
		qp->peer = attr->dest_qp_num;
	}
	if ((mask & IBV_QP_AV) != 0) {
		qp->sl = attr->ah_attr.sl;
		fake_seen.sl = qp->sl;
	}
	qp->state = attr->qp_state;
	if (qp->state == IBV_QPS_ERR) {
		flush(qp);
	}
	return 0;
}

static int
query_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	const struct fake_qp *qp = (const struct fake_qp *)base;
	attr->qp_state = qp->state;
	attr->ah_attr.sl = qp->sl;
	return 0;
}

static int
destroy_qp(struct ibv_qp *base)
{
	struct fake_qp *qp = (struct fake_qp *)base;
	qp_of[base->qp_num] = NULL;
	free(qp->own.at);
	free(qp);
	return 0;
}

static int
get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	errno = EAGAIN;
	return -1;
}

static void
ack_async_event(struct ibv_async_event *event)
{
}

static const char *
wc_status_str(enum ibv_wc_status status)
{
	return status == IBV_WC_WR_FLUSH_ERR ? "flushed" : "an error";
}

static const char *
event_type_str(enum ibv_event_type type)
{
	return "an event";
}

static ssize_t
query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max_entries,
		uint32_t flags, size_t entry_bytes)
{
	return 0;
}

void
fake_verbs_fill(struct wf_verbs_lib *lib)
{
	lib->get_device_list = get_device_list;
	lib->free_device_list = free_device_list;
	lib->get_device_name = get_device_name;
	lib->open_device = open_device;
	lib->close_device = close_device;
	lib->query_device = query_device;
	lib->query_port = query_port;
	lib->query_gid_table = query_gid_table;
	lib->alloc_pd = alloc_pd;
	lib->dealloc_pd = dealloc_pd;
	lib->reg_mr_iova2 = reg_mr_iova2;
	lib->dereg_mr = dereg_mr;
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
	lib->get_async_event = get_async_event;
	lib->ack_async_event = ack_async_event;
	lib->wc_status_str = wc_status_str;
	lib->event_type_str = event_type_str;
}

enum weft_status
wf_verbs_lib_get(const struct wf_verbs_lib **out)
{
	static struct wf_verbs_lib lib;
	fake_verbs_fill(&lib);
	fake_cm_fill(&lib);
	*out = &lib;
	return WEFT_OK;
}
