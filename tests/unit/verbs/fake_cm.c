/* SPDX-License-Identifier: Apache-2.0 */
/* fake_cm: librdmacm of the fake (fake.h): identifiers of this process find each other by port.
 * Thread: one. */
#include "fake.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"

#define IDS_MAX 256u
#define STALE 10 /* a reason of a rejection: stale connection */

struct fake_id {
	struct rdma_cm_id id; /* first */
	struct fake_id *peer;
	bool listens, accepted, withdrawn;
	uint32_t qp_num; /* of its end */
	uint8_t tos;
};

struct fake_event {
	struct rdma_cm_event event; /* first */
	uint8_t data[256];
	struct fake_event *next;
};

struct fake_channel {
	struct rdma_event_channel channel; /* first */
	struct fake_event *first, *last;
};

static struct fake_id *id_of[IDS_MAX];

static struct rdma_event_channel *
create_event_channel(void)
{
	struct fake_channel *channel = calloc(1, sizeof(*channel));
	WF_ASSERT(channel != NULL);
	channel->channel.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return &channel->channel;
}

static void
destroy_event_channel(struct rdma_event_channel *base)
{
	struct fake_channel *channel = (struct fake_channel *)base;
	while (channel->first != NULL) {
		struct fake_event *event = channel->first;
		channel->first = event->next;
		free(event);
	}
	(void)close(base->fd);
	free(channel);
}

static void
tell(struct fake_id *id, enum rdma_cm_event_type type, const void *data, size_t bytes)
{
	struct fake_channel *channel = (struct fake_channel *)id->id.channel;
	struct fake_event *event = calloc(1, sizeof(*event));
	uint64_t one = 1;
	WF_ASSERT(event != NULL && bytes <= sizeof(event->data));
	event->event.id = &id->id;
	event->event.event = type;
	if (bytes > 0) {
		memcpy(event->data, data, bytes);
		event->event.param.conn.private_data = event->data;
		event->event.param.conn.private_data_len = (uint8_t)bytes;
	}
	if (channel->first == NULL) {
		channel->first = event;
	} else {
		channel->last->next = event;
	}
	channel->last = event;
	ssize_t n = write(channel->channel.fd, &one, sizeof(one));
	WF_ASSERT(n == sizeof(one));
}

static int
get_cm_event(struct rdma_event_channel *base, struct rdma_cm_event **out)
{
	struct fake_channel *channel = (struct fake_channel *)base;
	struct fake_event *event = channel->first;
	uint64_t count = 0;
	if (event == NULL) {
		(void)!read(base->fd, &count, sizeof(count));
		errno = EAGAIN;
		return -1;
	}
	channel->first = event->next;
	*out = &event->event;
	return 0;
}

static int
ack_cm_event(struct rdma_cm_event *event)
{
	free(event);
	return 0;
}

static int
create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context,
	  enum rdma_port_space ps)
{
	struct fake_id *id = calloc(1, sizeof(*id));
	unsigned at = 0;
	while (at < IDS_MAX && id_of[at] != NULL) {
		at++;
	}
	WF_ASSERT(id != NULL && at < IDS_MAX);
	id->id = (struct rdma_cm_id){.channel = channel, .context = context, .ps = ps};
	id_of[at] = id;
	*out = &id->id;
	return 0;
}

static int
destroy_id(struct rdma_cm_id *base)
{
	struct fake_id *id = (struct fake_id *)base;
	for (unsigned i = 0; i < IDS_MAX; i++) {
		if (id_of[i] == id) {
			id_of[i] = NULL;
		}
	}
	if (id->peer != NULL) {
		id->peer->withdrawn = !id->peer->accepted;
		id->peer->peer = NULL;
	}
	free(id);
	return 0;
}

static int
bind_addr(struct rdma_cm_id *id, struct sockaddr *address)
{
	memcpy(&id->route.addr.src_addr, address, sizeof(struct sockaddr_in));
	id->verbs = &fake_cm_context;
	id->port_num = 1;
	return 0;
}

static __be16
get_src_port(struct rdma_cm_id *id)
{
	return ((struct sockaddr_in *)(void *)&id->route.addr.src_addr)->sin_port;
}

static int
listen_at(struct rdma_cm_id *base, int backlog)
{
	static uint16_t next = 7164;
	struct sockaddr_in *at = (struct sockaddr_in *)(void *)&base->route.addr.src_addr;
	if (at->sin_port == 0) {
		at->sin_port = htons(next++);
	}
	((struct fake_id *)base)->listens = true;
	return 0;
}

static int
resolve_addr(struct rdma_cm_id *base, struct sockaddr *source, struct sockaddr *to, int timeout_ms)
{
	memcpy(&base->route.addr.dst_addr, to, sizeof(struct sockaddr_in));
	base->verbs = &fake_cm_context;
	base->port_num = 1;
	tell((struct fake_id *)base, RDMA_CM_EVENT_ADDR_RESOLVED, NULL, 0);
	return 0;
}

static int
resolve_route(struct rdma_cm_id *base, int timeout_ms)
{
	tell((struct fake_id *)base, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL, 0);
	return 0;
}

static struct fake_id *
find_listener(const struct rdma_cm_id *base)
{
	const struct sockaddr_in *to = (const void *)&base->route.addr.dst_addr;
	for (unsigned i = 0; i < IDS_MAX; i++) {
		if (id_of[i] != NULL && id_of[i]->listens &&
		    get_src_port(&id_of[i]->id) == to->sin_port) {
			return id_of[i];
		}
	}
	return NULL;
}

static int
connect_to(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
	struct fake_id *id = (struct fake_id *)base;
	struct fake_id *listener = find_listener(base);
	struct rdma_cm_id *incoming = NULL;
	id->qp_num = param->qp_num;
	fake_seen.requests++;
	if (fake_device.lost_requests > 0) {
		fake_device.lost_requests--;
		return 0;
	}
	if (fake_device.stale_requests > 0) {
		fake_device.stale_requests--;
		tell(id, RDMA_CM_EVENT_REJECTED, NULL, 0);
		((struct fake_channel *)base->channel)->last->event.status = STALE;
		return 0;
	}
	if (listener == NULL) {
		tell(id, RDMA_CM_EVENT_REJECTED, NULL, 0);
		return 0;
	}
	(void)create_id(listener->id.channel, &incoming, NULL, RDMA_PS_TCP);
	memcpy(&incoming->route.addr.dst_addr, &base->route.addr.dst_addr,
	       sizeof(struct sockaddr_in));
	incoming->verbs = &fake_cm_context;
	incoming->port_num = 1;
	id->peer = (struct fake_id *)incoming;
	id->peer->peer = id;
	/* What is padded on InfiniBand is padded here. */
	uint8_t data[56] = {0};
	WF_ASSERT(param->private_data_len <= sizeof(data));
	memcpy(data, param->private_data, param->private_data_len);
	tell(id->peer, RDMA_CM_EVENT_CONNECT_REQUEST, data, sizeof(data));
	return 0;
}

static int
accept_from(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
	struct fake_id *id = (struct fake_id *)base;
	id->qp_num = param->qp_num;
	if (id->peer == NULL) {
		errno = EINVAL;
		return -1;
	}
	id->accepted = true;
	tell(id->peer, RDMA_CM_EVENT_CONNECT_RESPONSE, param->private_data,
	     param->private_data_len);
	return 0;
}

static int
establish(struct rdma_cm_id *base)
{
	struct fake_id *peer = ((struct fake_id *)base)->peer;
	if (peer != NULL) {
		tell(peer, RDMA_CM_EVENT_ESTABLISHED, NULL, 0);
	}
	return 0;
}

static int
reject_from(struct rdma_cm_id *base, const void *data, uint8_t bytes)
{
	struct fake_id *peer = ((struct fake_id *)base)->peer;
	if (peer != NULL) {
		tell(peer, RDMA_CM_EVENT_REJECTED, data, bytes);
	}
	return 0;
}

static int
disconnect_from(struct rdma_cm_id *base)
{
	struct fake_id *peer = ((struct fake_id *)base)->peer;
	if (peer != NULL) {
		tell(peer, RDMA_CM_EVENT_DISCONNECTED, NULL, 0);
	}
	return 0;
}

static const char *
event_str(enum rdma_cm_event_type type)
{
	return "an event of the connection manager";
}

static int
init_qp_attr(struct rdma_cm_id *base, struct ibv_qp_attr *attr, int *mask)
{
	const struct fake_id *id = (const struct fake_id *)base;
	*mask = IBV_QP_STATE;
	if (id->withdrawn) {
		errno = EINVAL;
		return -1;
	}
	if (attr->qp_state == IBV_QPS_RTR) {
		if (id->peer == NULL) {
			errno = EINVAL;
			return -1;
		}
		*mask |= IBV_QP_DEST_QPN | IBV_QP_AV | IBV_QP_PATH_MTU;
		attr->dest_qp_num = id->peer->qp_num;
		attr->path_mtu = IBV_MTU_4096;
		attr->ah_attr.sl = fake_device.path_sl;
		attr->ah_attr.is_global = 1;
		attr->ah_attr.grh.traffic_class = id->tos;
	}
	return 0;
}

static int
set_option(struct rdma_cm_id *base, int level, int name, void *value, size_t bytes)
{
	if (level == RDMA_OPTION_ID && name == RDMA_OPTION_ID_TOS && bytes == 1) {
		memcpy(&((struct fake_id *)base)->tos, value, 1);
		fake_seen.tos = ((struct fake_id *)base)->tos;
	}
	return 0;
}

static struct ibv_context **
get_devices(int *count)
{
	*count = 0;
	return NULL;
}

static void
free_devices(struct ibv_context **list)
{
}

void
fake_cm_fill(struct wf_verbs_lib *lib)
{
	lib->get_devices = get_devices;
	lib->free_devices = free_devices;
	lib->create_event_channel = create_event_channel;
	lib->destroy_event_channel = destroy_event_channel;
	lib->create_id = create_id;
	lib->destroy_id = destroy_id;
	lib->bind_addr = bind_addr;
	lib->resolve_addr = resolve_addr;
	lib->resolve_route = resolve_route;
	lib->connect = connect_to;
	lib->establish = establish;
	lib->listen = listen_at;
	lib->accept = accept_from;
	lib->reject = reject_from;
	lib->disconnect = disconnect_from;
	lib->get_cm_event = get_cm_event;
	lib->ack_cm_event = ack_cm_event;
	lib->event_str = event_str;
	lib->get_src_port = get_src_port;
	lib->init_qp_attr = init_qp_attr;
	lib->set_option = set_option;
}
