/* SPDX-License-Identifier: Apache-2.0 */
/* fake_cm: librdmacm of the fake: channels, events, identifiers and their addresses. How two of
 * them find each other is fake_meet.c's. Thread: one. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fake_internal.h"

struct fake_event {
	struct rdma_cm_event event; /* first */
	uint8_t data[256];
	struct fake_event *next;
	uint64_t at_ns;
	bool rung;
};

struct fake_channel {
	struct rdma_event_channel channel; /* first */
	struct fake_channel *next;
	void *owner;
	struct fake_event *first;
};

struct fake_id *fake_id_of[FAKE_IDS_MAX];
static struct fake_channel *channels;

/* ---- events ---- */

static struct rdma_event_channel *
create_event_channel(void)
{
	struct fake_channel *channel = fake_make(FAKE_CM_CHANNEL, sizeof(*channel));
	if (channel == NULL) {
		return NULL;
	}
	channel->channel.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	channel->owner = fake_self();
	channel->next = channels;
	channels = channel;
	return &channel->channel;
}

static void
destroy_event_channel(struct rdma_event_channel *base)
{
	struct fake_channel *channel = (struct fake_channel *)base;
	struct fake_channel **at = &channels;
	for (unsigned i = 0; i < FAKE_IDS_MAX; i++) {
		WF_ASSERT(fake_id_of[i] == NULL || fake_id_of[i]->id.channel != base);
	}
	while (*at != channel) {
		at = &(*at)->next;
	}
	*at = channel->next;
	WF_ASSERT(channel->first == NULL);
	(void)close(base->fd);
	fake_unmade(FAKE_CM_CHANNEL);
	free(channel);
}

static void
ring_due(struct fake_channel *channel, uint64_t now_ns)
{
	for (struct fake_event *e = channel->first; e != NULL; e = e->next) {
		if (e->at_ns > now_ns) {
			fake_due(e->at_ns);
			return; /* in order */
		}
		if (!e->rung) {
			e->rung = true;
			fake_ring(channel->channel.fd, channel->owner);
		}
	}
}

void
fake_cm_turn(uint64_t now_ns)
{
	for (struct fake_channel *channel = channels; channel != NULL; channel = channel->next) {
		ring_due(channel, now_ns);
	}
}

static void
tell_once(struct fake_id *id, enum rdma_cm_event_type type, int status, const void *data,
	  size_t bytes)
{
	struct fake_channel *channel = (struct fake_channel *)id->id.channel;
	struct fake_event *event = calloc(1, sizeof(*event));
	struct fake_event **at = &channel->first;
	uint64_t at_ns = fake_now_ns() + fake_draw(fake_knobs_now()->cm_ns);
	WF_ASSERT(event != NULL && bytes <= sizeof(event->data));
	event->event.id = &id->id;
	event->event.event = type;
	event->event.status = status;
	if (bytes > 0) {
		memcpy(event->data, data, bytes);
		event->event.param.conn.private_data = event->data;
		event->event.param.conn.private_data_len = (uint8_t)bytes;
	}
	while (*at != NULL) {
		at_ns = (*at)->at_ns > at_ns ? (*at)->at_ns : at_ns;
		at = &(*at)->next;
	}
	event->at_ns = at_ns;
	*at = event;
	ring_due(channel, fake_now_ns());
}

void
fake_cm_tell(struct fake_id *id, enum rdma_cm_event_type type, int status, const void *data,
	     size_t bytes)
{
	bool twice = type != RDMA_CM_EVENT_CONNECT_REQUEST &&
		     fake_chance(fake_knobs_now()->cm_twice_per_mille, 1000);
	tell_once(id, type, status, data, bytes);
	if (twice) {
		fake_happened.cm_twice++;
		tell_once(id, type, status, data, bytes);
	}
}

bool
fake_cm_is_lost(void)
{
	bool lost = !fake_now_is()->iwarp && fake_chance(fake_knobs_now()->cm_lost_per_mille, 1000);
	fake_happened.cm_lost += lost ? 1 : 0;
	return lost;
}

/* Whose destruction waits for it: a request is the listener's. */
static struct fake_id *
told_of(const struct fake_event *event)
{
	return (struct fake_id *)(event->event.listen_id != NULL ? event->event.listen_id
								 : event->event.id);
}

static int
get_cm_event(struct rdma_event_channel *base, struct rdma_cm_event **out)
{
	struct fake_channel *channel = (struct fake_channel *)base;
	uint64_t count = 0;
	fake_turn();
	struct fake_event *event = channel->first;
	if (event == NULL || !event->rung) {
		(void)!read(base->fd, &count, sizeof(count));
		errno = EAGAIN;
		return -1;
	}
	channel->first = event->next;
	told_of(event)->unacked++;
	*out = &event->event;
	if (event->event.event == RDMA_CM_EVENT_DEVICE_REMOVAL) {
		fake_device_told_removed(((struct fake_id *)event->event.id)->owner);
	}
	return 0;
}

static int
ack_cm_event(struct rdma_cm_event *event)
{
	told_of((struct fake_event *)event)->unacked--;
	free(event);
	return 0;
}

/* ---- identifiers ---- */

static struct fake_id *
new_id(struct rdma_event_channel *channel, void *context, void *owner)
{
	struct fake_id *id = calloc(1, sizeof(*id));
	unsigned at = 0;
	while (at < FAKE_IDS_MAX && fake_id_of[at] != NULL) {
		at++;
	}
	WF_ASSERT(id != NULL && at < FAKE_IDS_MAX);
	id->id = (struct rdma_cm_id){.channel = channel, .context = context, .ps = RDMA_PS_TCP};
	id->owner = owner;
	fake_id_of[at] = id;
	fake_made(FAKE_ID);
	return id;
}

static int
create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context,
	  enum rdma_port_space ps)
{
	if (fake_nomem()) {
		return -1;
	}
	*out = &new_id(channel, context, fake_self())->id;
	return 0;
}

static void free_id(struct fake_id *id);

/* Nobody reads what it was told. A request that nobody has seen goes with its listener. */
static void
drop_events(struct fake_id *id)
{
	struct fake_event **at = &((struct fake_channel *)id->id.channel)->first;
	while (*at != NULL) {
		struct fake_event *event = *at;
		bool its = event->event.id == &id->id;
		if (its || event->event.listen_id == &id->id) {
			struct fake_id *request = its ? NULL : (struct fake_id *)event->event.id;
			*at = event->next;
			free(event);
			if (request != NULL) {
				free_id(request);
				at = &((struct fake_channel *)id->id.channel)->first;
			}
		} else {
			at = &event->next;
		}
	}
}

static void
free_id(struct fake_id *id)
{
	drop_events(id);
	for (unsigned i = 0; i < FAKE_IDS_MAX; i++) {
		fake_id_of[i] = fake_id_of[i] == id ? NULL : fake_id_of[i];
	}
	fake_meet_leave(id);
	fake_unmade(FAKE_ID);
	free(id);
}

static int
destroy_id(struct rdma_cm_id *base)
{
	struct fake_id *id = (struct fake_id *)base;
	WF_ASSERT(id->unacked == 0); /* it would be waited for without end */
	free_id(id);
	return 0;
}

/* ---- addresses ---- */

__be16 *
fake_cm_port(struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET6 ? &((struct sockaddr_in6 *)address)->sin6_port
					      : &((struct sockaddr_in *)address)->sin_port;
}

static size_t
bytes_of(const struct sockaddr *address)
{
	return address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					      : sizeof(struct sockaddr_in);
}

static void
bind_to_device(struct rdma_cm_id *id)
{
	fake_device_know_kind();
	id->verbs = &fake_cm_context;
	id->port_num = 1;
}

static int
bind_addr(struct rdma_cm_id *id, struct sockaddr *address)
{
	memcpy(&id->route.addr.src_storage, address, bytes_of(address));
	bind_to_device(id);
	return 0;
}

static __be16
get_src_port(struct rdma_cm_id *id)
{
	return *fake_cm_port(&id->route.addr.src_storage);
}

static int
resolve_addr(struct rdma_cm_id *base, struct sockaddr *source, struct sockaddr *to, int timeout_ms)
{
	memcpy(&base->route.addr.dst_storage, to, bytes_of(to));
	bind_to_device(base);
	fake_cm_tell((struct fake_id *)base, RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL, 0);
	return 0;
}

static int
resolve_route(struct rdma_cm_id *base, int timeout_ms)
{
	fake_cm_tell((struct fake_id *)base, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL, 0);
	return 0;
}

/* ---- requests ---- */

struct fake_id *
fake_cm_incoming(const struct fake_id *listener, const struct sockaddr_storage *from)
{
	struct fake_id *incoming = new_id(listener->id.channel, NULL, listener->owner);
	memcpy(&incoming->id.route.addr.dst_storage, from, sizeof(*from));
	bind_to_device(&incoming->id);
	return incoming;
}

void
fake_cm_show(struct fake_id *incoming, struct fake_id *listener, const void *data, size_t bytes)
{
	fake_cm_tell(incoming, RDMA_CM_EVENT_CONNECT_REQUEST, 0, data, bytes);
	struct fake_event *event = ((struct fake_channel *)listener->id.channel)->first;
	while (event->next != NULL) {
		event = event->next;
	}
	event->event.listen_id = &listener->id;
}

void
fake_cm_ended(uint32_t qp_num)
{
	for (unsigned i = 0; i < FAKE_IDS_MAX; i++) {
		if (fake_id_of[i] != NULL && fake_id_of[i]->qp_num == qp_num) {
			fake_cm_tell(fake_id_of[i], RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
		}
	}
}

void
fake_cm_removed(const void *owner)
{
	for (unsigned i = 0; i < FAKE_IDS_MAX; i++) {
		if (fake_id_of[i] != NULL && fake_id_of[i]->owner == owner &&
		    fake_id_of[i]->id.verbs != NULL) {
			fake_cm_tell(fake_id_of[i], RDMA_CM_EVENT_DEVICE_REMOVAL, 0, NULL, 0);
		}
	}
}

static int
disconnect(struct rdma_cm_id *base)
{
	struct fake_id *id = (struct fake_id *)base;
	id->disconnected = true;
	if (fake_now_is()->iwarp && id->qp_num != 0 && fake_qp_of[id->qp_num] != NULL) {
		fake_qp_error(fake_qp_of[id->qp_num]); /* which ends the stream */
	} else {
		fake_meet_disconnect(id);
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
		if (fake_meet_qp_num(id) == 0) {
			errno = EINVAL;
			return -1;
		}
		*mask |= IBV_QP_DEST_QPN | IBV_QP_AV | IBV_QP_PATH_MTU;
		attr->dest_qp_num = fake_meet_qp_num(id);
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
fake_cm_reset(void)
{
	memset(fake_id_of, 0, sizeof(fake_id_of));
	channels = NULL;
	fake_meet_reset();
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
	lib->get_cm_event = get_cm_event;
	lib->ack_cm_event = ack_cm_event;
	lib->event_str = event_str;
	lib->get_src_port = get_src_port;
	lib->disconnect = disconnect;
	lib->init_qp_attr = init_qp_attr;
	lib->set_option = set_option;
	fake_meet_fill(lib);
}
