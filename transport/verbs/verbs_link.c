/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_link: the queue pair of a connection and what belongs to it. It is created here and not by
 * librdmacm, so that it is in this transport's own context, and so that its timers are ours: those
 * of the connection manager would be seconds. Thread: the transport's owner. */
#include <errno.h>
#include <string.h>

#include "transport/verbs/verbs_internal.h"

#define RING_ALL_BYTES (WF_VERBS_RING_BYTES + WF_VERBS_CREDIT_FRAMES * WF_VERBS_FRAME_BYTES)
#define SQ_RESERVE 4u /* slots for CREDIT frames */
#define TASK_LOOK_NS (20 * WF_NS_PER_US)

static enum weft_status
open_memory(struct wf_verbs_conn *c)
{
	struct wf_verbs_device *dev = c->link.dev;
	struct wf_env *env = c->t->medium.transport.env;
	c->tx.entry_count = 1;
	while (c->tx.entry_count < c->t->medium.opts.op_max + WF_VERBS_INTERNAL_OPS) {
		c->tx.entry_count *= 2;
	}
	if (c->tx.entry == NULL) {
		c->tx.entry = wf_zalloc_array(env, c->tx.entry_count, sizeof(*c->tx.entry));
		c->tx.ring = env->ops->alloc(env, RING_ALL_BYTES, 4096);
	}
	if (c->tx.entry == NULL || c->tx.ring == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: no memory for the connection's buffers, %zu bytes",
			       c->life.peer,
			       c->tx.entry_count * sizeof(*c->tx.entry) + RING_ALL_BYTES);
	}
	c->link.pd = dev->pd;
	if (!dev->caps.window) {
		c->link.pd = dev->t->lib->alloc_pd(dev->context);
		if (c->link.pd == NULL) {
			return wf_verbs_fail_made(dev, errno, "a protection domain");
		}
	}
	enum weft_status st = wf_verbs_regions_start(c);
	if (st != WEFT_OK) {
		return st;
	}
	return wf_verbs_register_own(dev, c->link.pd, c->tx.ring, RING_ALL_BYTES, &c->tx.mr);
}

/* Devices refuse more inline data than they support instead of reporting how much they do. */
static struct ibv_qp *
create_qp(struct wf_verbs_conn *c, uint32_t inline_bytes)
{
	struct wf_verbs_device *dev = c->link.dev;
	struct ibv_qp_init_attr init = {
		.send_cq = c->link.queues->send.cq,
		.recv_cq = c->link.queues->receive.cq,
		.srq = c->link.queues->srq,
		.qp_type = IBV_QPT_RC,
		.cap =
			{
				.max_send_wr = dev->caps.send_queue,
				.max_recv_wr = c->link.queues->srq == NULL ? dev->caps.rx_share : 0,
				.max_send_sge = 1,
				.max_recv_sge = 1,
				.max_inline_data = inline_bytes,
			},
	};
	struct ibv_qp *qp = dev->t->lib->create_qp(c->link.pd, &init);
	if (qp != NULL) {
		/* As requested: what rounding up adds is not used on other queue pairs, and not all
		 * devices report it. */
		dev->inline_bytes = inline_bytes;
		dev->inline_known = true;
	}
	return qp;
}

static enum weft_status
open_qp(struct wf_verbs_conn *c)
{
	struct wf_verbs_device *dev = c->link.dev;
	uint32_t asked = dev->inline_known ? dev->inline_bytes : dev->t->settings.inline_bytes;
	errno = ENOMEM; /* some providers do not set it */
	c->link.qp = create_qp(c, asked);
	while (c->link.qp == NULL && asked > 0) {
		asked = asked >= 2 * WF_VERBS_FRAME_BYTES ? asked / 2
			: asked > WF_VERBS_FRAME_BYTES    ? WF_VERBS_FRAME_BYTES
							  : 0;
		c->link.qp = create_qp(c, asked);
	}
	if (c->link.qp == NULL) {
		return wf_verbs_fail_made(dev, errno, "a queue pair");
	}
	c->link.receives = false;
	c->link.last_said = false;
	c->link.undrained = false;
	c->link.qp_num = c->link.qp->qp_num;
	wf_verbs_device_add(dev, c);
	wf_verbs_sq_init(&c->tx.sq, dev->caps.send_queue, SQ_RESERVE);
	return WEFT_OK;
}

static uint32_t
mtu_code(int32_t bytes)
{
	uint32_t code = IBV_MTU_256;
	for (int32_t mtu = 256; mtu * 2 <= bytes && code < IBV_MTU_4096; mtu *= 2) {
		code++;
	}
	return code;
}

/* Corrects the attributes that the connection manager would set. */
static void
adjust(const struct wf_verbs_conn *c, struct ibv_qp_attr *attr, int *mask)
{
	const struct wf_verbs_settings *s = &c->t->settings;
	if ((*mask & IBV_QP_ACCESS_FLAGS) != 0) {
		attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	}
	if (c->link.dev->caps.iwarp) {
		return;
	}
	if (attr->qp_state == IBV_QPS_INIT && s->pkey >= 0) {
		attr->pkey_index = (uint16_t)s->pkey;
	}
	if (attr->qp_state == IBV_QPS_RTR) {
		attr->min_rnr_timer = (uint8_t)s->rnr_timer;
		*mask |= IBV_QP_MIN_RNR_TIMER;
		if (s->mtu >= 0 && mtu_code(s->mtu) < (uint32_t)attr->path_mtu) {
			attr->path_mtu = (enum ibv_mtu)mtu_code(s->mtu);
		}
		if (s->service_level >= 0) {
			attr->ah_attr.sl = (uint8_t)s->service_level;
		}
		if (s->traffic_class >= 0 && attr->ah_attr.is_global != 0) {
			attr->ah_attr.grh.traffic_class = (uint8_t)s->traffic_class;
		}
	}
	if (attr->qp_state == IBV_QPS_RTS) {
		attr->timeout = (uint8_t)s->ack_timeout;
		attr->retry_cnt = (uint8_t)s->retry_count;
		attr->rnr_retry = (uint8_t)s->rnr_retry;
	}
}

static enum weft_status
change_state(struct wf_verbs_conn *c, enum ibv_qp_state state)
{
	const struct wf_verbs_lib *lib = c->t->lib;
	struct ibv_qp_attr attr;
	memset(&attr, 0, sizeof(attr));
	attr.qp_state = state;
	int mask = 0;
	if (lib->init_qp_attr(c->link.id, &attr, &mask) != 0) {
		return wf_fail_errno(WEFT_IO, errno, "%s: no attributes for state %d", c->life.peer,
				     (int)state);
	}
	adjust(c, &attr, &mask);
	int err = lib->modify_qp(c->link.qp, &attr, mask);
	if (err != 0) {
		return wf_fail_errno(WEFT_IO, err, "%s: the queue pair does not go to state %d",
				     c->life.peer, (int)state);
	}
	return WEFT_OK;
}

void
wf_verbs_link_leave(struct wf_verbs_conn *c)
{
	if (c->link.dev == NULL) {
		return;
	}
	wf_verbs_rx_leave(c);
	c->link.queues->conn_count--;
	c->t->medium.dead_waiting |= c->link.queues->retired;
	c->link.dev->conn_count--;
	c->link.dev = NULL;
	c->link.queues = NULL;
}

/* Joins the connections of the device; leaves the device to which an earlier address led. */
static enum weft_status
claim_place(struct wf_verbs_conn *c, struct wf_verbs_device *dev)
{
	wf_verbs_link_leave(c);
	if (dev->conn_count >= dev->caps.conn_max) {
		return wf_fail(WEFT_NOMEM, "%s: it has room for %u connections, no more", dev->name,
			       dev->caps.conn_max);
	}
	struct wf_verbs_queues *queues = NULL;
	enum weft_status st = wf_verbs_queues_get(dev, &queues);
	if (st == WEFT_OK) {
		c->link.dev = dev;
		c->link.queues = queues;
		dev->conn_count++;
		queues->conn_count++;
	}
	return st;
}

/* Some devices accept any index, and then nothing gets through. */
static enum weft_status
check_pkey(const struct wf_verbs_conn *c, const struct wf_verbs_device *dev)
{
	const int32_t pkey = c->t->settings.pkey;
	struct ibv_port_attr port;
	if (pkey < 0 || dev->caps.iwarp) {
		return WEFT_OK;
	}
	memset(&port, 0, sizeof(port));
	int err = c->t->lib->query_port(dev->context, c->link.id->port_num,
					(struct _compat_ibv_port_attr *)&port);
	if (err != 0) {
		return wf_fail_errno(WEFT_IO, err, "%s: port %u cannot be queried", dev->name,
				     c->link.id->port_num);
	}
	if (pkey >= port.pkey_tbl_len) {
		return wf_fail(WEFT_UNAVAILABLE,
			       "pkey=%d: port %u of %s has %u partition keys, counted from 0",
			       (int)pkey, c->link.id->port_num, dev->name, port.pkey_tbl_len);
	}
	return WEFT_OK;
}

void
wf_verbs_link_adopt(struct wf_verbs_conn *c, struct rdma_cm_id *id)
{
	id->context = c;
	c->link.id = id;
}

enum weft_status
wf_verbs_link_begin(struct wf_verbs_conn *c)
{
	if (c->t->lib->create_id(c->t->cm, &c->link.id, c, RDMA_PS_TCP) != 0) {
		return wf_fail_errno(WEFT_UNAVAILABLE, errno, "no connection identifier");
	}
	return WEFT_OK;
}

enum weft_status
wf_verbs_link_open(struct wf_verbs_conn *c)
{
	WF_ASSERT(c->link.qp == NULL && c->link.id != NULL);
	struct wf_verbs_device *dev = NULL;
	enum weft_status st = wf_verbs_device_get(c->t, c->link.id, &dev);
	if (st == WEFT_OK) {
		st = check_pkey(c, dev);
	}
	if (st != WEFT_OK) {
		return st;
	}
	st = claim_place(c, dev);
	if (st != WEFT_OK) {
		return st;
	}
	st = open_memory(c);
	if (st == WEFT_OK) {
		st = open_qp(c);
	}
	if (st == WEFT_OK) {
		st = change_state(c, IBV_QPS_INIT);
	}
	return st == WEFT_OK ? wf_verbs_rx_open(c) : st;
}

enum weft_status
wf_verbs_link_start(struct wf_verbs_conn *c)
{
	c->link.receives = true;
	if (c->link.dev->caps.iwarp) {
		return WEFT_OK;
	}
	enum weft_status st = change_state(c, IBV_QPS_RTR);
	c->link.receives = st == WEFT_OK;
	return st == WEFT_OK ? change_state(c, IBV_QPS_RTS) : st;
}

bool
wf_verbs_link_is_asked(const struct wf_verbs_conn *c)
{
	struct ibv_qp_attr attr;
	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_INIT;
	int mask = 0;
	/* The state of the request decides whether there are attributes for a queue pair. */
	return c->link.id != NULL && c->t->lib->init_qp_attr(c->link.id, &attr, &mask) == 0;
}

void
wf_verbs_link_look(struct wf_verbs_conn *c)
{
	if (c->link.qp != NULL) {
		wf_verbs_async_read(c->link.dev);
		wf_verbs_poll_send(c->link.queues);
	}
}

void
wf_verbs_link_undrained(struct wf_verbs_conn *c)
{
	struct wf_verbs_device *dev = c->link.dev;
	c->link.undrained = true;
	wf_verbs_queues_retire(c->link.queues);
	if (++dev->undrained == WF_VERBS_UNDRAINED_MAX) {
		wf_log(c->t->medium.transport.env, WF_LOG_WARN,
		       "verbs: %s does not report when a queue pair has ended (%u times within "
		       "%llu "
		       "ms): it is not waited for any more",
		       dev->name, dev->undrained, WF_VERBS_DRAINED_NS / WF_NS_PER_MS);
	}
}

/* Many devices remove the completions of a queue pair from the queue when it is destroyed, and with
 * them the shared queue's buffers that they name: so all of them are polled first. */
static void
drain(struct wf_verbs_conn *c)
{
	struct wf_env *env = c->t->medium.transport.env;
	uint64_t limit_ns = wf_now_ns(env) + WF_VERBS_DRAINED_NS;
	bool waits = c->end.drains || !wf_verbs_link_is_drained(c);
	bool drained = false;
	do {
		wf_verbs_link_look(c);
		drained = wf_verbs_link_is_drained(c);
		wf_verbs_poll_receive_all(c->link.queues);
		drained = drained || wf_verbs_link_is_drained(c);
		if (!drained) {
			wf_wait(env, c->link.dev->context->async_fd, wf_now_ns(env) + TASK_LOOK_NS);
		}
	} while (!drained && wf_now_ns(env) < limit_ns);
	if (!drained) {
		wf_verbs_link_undrained(c);
	} else if (waits && !c->link.undrained && c->link.dev->undrained < WF_VERBS_UNDRAINED_MAX) {
		c->link.dev->undrained = 0;
	}
}

/* Windows and regions refer to what they were made from, so they are freed first; completions name
 * the queue pair, so they are polled before its number is removed. */
static void
close_qp(struct wf_verbs_conn *c)
{
	wf_verbs_link_stop(c);
	drain(c);
	wf_verbs_access_close(c);
	(void)c->t->lib->destroy_qp(c->link.qp);
	c->link.qp = NULL;
	wf_verbs_poll_receive(c->link.queues);
	wf_verbs_device_remove(c->link.dev, c);
}

static void
close_memory(struct wf_verbs_conn *c)
{
	struct wf_verbs_device *dev = c->link.dev;
	wf_verbs_access_close(c);
	wf_verbs_deregister(dev, &c->tx.mr);
	wf_verbs_rx_close(c);
	bool in_use = wf_verbs_registrations_leave(c);
	if (c->link.pd != NULL && c->link.pd != dev->pd && !in_use) {
		(void)c->t->lib->dealloc_pd(c->link.pd);
	}
	c->link.pd = NULL;
}

void
wf_verbs_link_close(struct wf_verbs_conn *c)
{
	wf_verbs_link_await(c);
	if (c->attempt.task.running) {
		return; /* the helper thread uses it: the connection is freed when that has ended */
	}
	if (c->link.id != NULL && c->link.linked) {
		/* EINVAL: the peer has disconnected first. */
		(void)c->t->lib->disconnect(c->link.id);
	}
	if (c->link.qp != NULL) {
		close_qp(c);
	}
	if (c->link.dev != NULL) {
		close_memory(c);
	}
	if (c->link.id != NULL) {
		(void)c->t->lib->destroy_id(c->link.id);
		c->link.id = NULL;
	}
	c->link.linked = false;
}
