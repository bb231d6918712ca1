/* SPDX-License-Identifier: Apache-2.0 */
/* fake_meet: how identifiers of one process find each other: by port. Requests, replies and RTUs
 * are datagrams, but on iWARP. Thread: one; on iWARP connect_to runs as a task of the env. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "fake_internal.h"

#define PORT_FIRST 7164u

static uint16_t port_next;

static struct fake_id *
peer_of(const struct fake_id *id)
{
	return id->far;
}

uint32_t
fake_meet_qp_num(const struct fake_id *id)
{
	return peer_of(id) != NULL ? peer_of(id)->qp_num : 0;
}

static __be16
port_of(const struct fake_id *id)
{
	struct sockaddr_storage address = id->id.route.addr.src_storage;
	return *fake_cm_port(&address);
}

static struct fake_id *
find_listener(__be16 port)
{
	for (unsigned i = 0; i < FAKE_IDS_MAX; i++) {
		struct fake_id *id = fake_id_of[i];
		if (id != NULL && id->listens && port_of(id) == port) {
			return id;
		}
	}
	return NULL;
}

static int
listen_at(struct rdma_cm_id *base, int backlog)
{
	__be16 *port = fake_cm_port(&base->route.addr.src_storage);
	if (*port != 0 && find_listener(*port) != NULL) {
		errno = EADDRINUSE;
		return -1;
	}
	while (*port == 0) {
		__be16 tried = htons(port_next++);
		*port = find_listener(tried) == NULL ? tried : 0;
	}
	((struct fake_id *)base)->listens = true;
	return 0;
}

static void
show_request(struct fake_id *id, struct fake_id *listener, const struct rdma_conn_param *param)
{
	struct fake_id *incoming = fake_cm_incoming(listener, &id->id.route.addr.dst_storage);
	uint8_t data[FAKE_REQUEST_BYTES] = {0};
	WF_ASSERT(param->private_data_len <= sizeof(data));
	memcpy(data, param->private_data, param->private_data_len);
	id->far = incoming;
	incoming->far = id;
	fake_cm_show(incoming, listener, data,
		     fake_now_is()->iwarp ? param->private_data_len : sizeof(data));
}

static int
connect_to(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
	struct fake_id *id = (struct fake_id *)base;
	struct fake_id *listener = find_listener(*fake_cm_port(&base->route.addr.dst_storage));
	bool iwarp = fake_now_is()->iwarp;
	id->qp_num = param->qp_num;
	fake_seen.requests++;
	if (fake_device.lost_requests > 0) {
		fake_device.lost_requests--;
	} else if (fake_device.stale_requests > 0) {
		fake_device.stale_requests--;
		fake_cm_tell(id, RDMA_CM_EVENT_REJECTED, FAKE_REASON_STALE, NULL, 0);
	} else if (listener == NULL) {
		fake_cm_tell(id, RDMA_CM_EVENT_REJECTED, iwarp ? -ECONNREFUSED : FAKE_REASON_NOBODY,
			     NULL, 0);
	} else if (!fake_cm_is_lost()) {
		show_request(id, listener, param);
	}
	return 0;
}

/* On iWARP the kernel moves the queue pairs. */
static void
link_stream(const struct fake_id *a, const struct fake_id *b)
{
	struct fake_qp *left = fake_qp_of[a->qp_num];
	struct fake_qp *right = fake_qp_of[b->qp_num];
	if (left != NULL && right != NULL) {
		left->peer = right->qp.qp_num;
		right->peer = left->qp.qp_num;
		left->state = IBV_QPS_RTS;
		right->state = IBV_QPS_RTS;
	}
}

static int
accept_from(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
	struct fake_id *id = (struct fake_id *)base;
	id->qp_num = param->qp_num;
	if (peer_of(id) == NULL) {
		errno = EINVAL;
		return -1;
	}
	id->accepted = true;
	if (fake_now_is()->iwarp) {
		peer_of(id)->accepted = true;
		link_stream(id, peer_of(id));
		fake_cm_tell(peer_of(id), RDMA_CM_EVENT_ESTABLISHED, 0, param->private_data,
			     param->private_data_len);
		fake_cm_tell(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
	} else if (!fake_cm_is_lost()) {
		fake_cm_tell(peer_of(id), RDMA_CM_EVENT_CONNECT_RESPONSE, 0, param->private_data,
			     param->private_data_len);
	}
	return 0;
}

static int
establish(struct rdma_cm_id *base)
{
	struct fake_id *id = (struct fake_id *)base;
	id->accepted = true;
	if (peer_of(id) != NULL && !fake_cm_is_lost()) {
		fake_cm_tell(peer_of(id), RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
	}
	return 0;
}

static int
reject_from(struct rdma_cm_id *base, const void *data, uint8_t bytes)
{
	struct fake_id *id = (struct fake_id *)base;
	id->rejected = true;
	if (peer_of(id) != NULL) {
		fake_cm_tell(peer_of(id), RDMA_CM_EVENT_REJECTED,
			     fake_now_is()->iwarp ? -ECONNRESET : FAKE_REASON_CONSUMER, data,
			     bytes);
	}
	return 0;
}

void
fake_meet_disconnect(struct fake_id *id)
{
	if (peer_of(id) != NULL) {
		fake_cm_tell(peer_of(id), RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
	}
}

void
fake_meet_leave(struct fake_id *id)
{
	struct fake_id *peer = peer_of(id);
	if (peer == NULL) {
		return;
	}
	peer->withdrawn = !peer->accepted;
	peer->far = NULL;
	if (!id->accepted && !id->rejected && peer->qp_num != 0 && !peer->listens &&
	    id->qp_num == 0) {
		fake_cm_tell(peer, RDMA_CM_EVENT_REJECTED, FAKE_REASON_CONSUMER, NULL, 0);
	} else if (id->accepted && !id->disconnected && !fake_now_is()->iwarp) {
		fake_cm_tell(peer, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
	}
}

void
fake_meet_reset(void)
{
	port_next = PORT_FIRST;
}

void
fake_meet_fill(struct wf_verbs_lib *lib)
{
	lib->connect = connect_to;
	lib->establish = establish;
	lib->listen = listen_at;
	lib->accept = accept_from;
	lib->reject = reject_from;
}
