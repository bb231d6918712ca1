/* SPDX-License-Identifier: Apache-2.0 */
/* fake_device: the device "fake0" of the fake, its reports and its failures. Each process opens its
 * own. Thread: one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fake_internal.h"

struct told {
	struct told *next;
	struct ibv_async_event event;
	uint64_t at_ns;
	bool rung;
};

struct context {
	struct ibv_context context; /* first */
	struct context *next;
	void *owner;
	bool dead, left;
	uint64_t down_ns; /* its port is down until then; 0 */
	struct told *told;
	struct fake_holds holds;
};

static struct ibv_device device = {.name = "fake0"};
static struct context *contexts;
struct ibv_context_ops fake_ops;

/* That of librdmacm, which nothing is made in. */
struct ibv_context fake_cm_context = {.device = &device};

/* ---- events ---- */

static void
ring_due(struct context *c, uint64_t now_ns)
{
	for (struct told *t = c->told; t != NULL; t = t->next) {
		if (t->at_ns > now_ns) {
			fake_due(t->at_ns);
		} else if (!t->rung) {
			t->rung = true;
			fake_ring(c->context.async_fd, c->owner);
		}
	}
}

void
fake_tell(struct ibv_context *context, const struct ibv_async_event *event, uint64_t at_ns)
{
	struct context *c = (struct context *)context;
	struct told *told = calloc(1, sizeof(*told));
	struct told **at = &c->told;
	WF_ASSERT(told != NULL);
	*told = (struct told){.event = *event, .at_ns = at_ns};
	while (*at != NULL) {
		at = &(*at)->next;
	}
	*at = told;
	ring_due(c, fake_now_ns());
}

void
fake_say(enum ibv_event_type type)
{
	for (struct context *c = contexts; c != NULL; c = c->next) {
		struct ibv_async_event event = {.element.port_num = 1, .event_type = type};
		fake_tell(&c->context, &event, fake_now_ns());
	}
}

void
fake_say_of(struct ibv_qp *qp, enum ibv_event_type type)
{
	struct ibv_async_event event = {.element.qp = qp, .event_type = type};
	fake_tell(qp->context, &event, fake_now_ns());
}

static bool
is_of_qp(const struct ibv_async_event *event)
{
	return event->event_type == IBV_EVENT_QP_LAST_WQE_REACHED ||
	       event->event_type == IBV_EVENT_QP_FATAL ||
	       event->event_type == IBV_EVENT_QP_REQ_ERR ||
	       event->event_type == IBV_EVENT_QP_ACCESS_ERR;
}

void
fake_forget_qp(const struct ibv_qp *qp)
{
	struct told **at = &((struct context *)qp->context)->told;
	while (*at != NULL) {
		struct told *told = *at;
		if (is_of_qp(&told->event) && told->event.element.qp == qp) {
			*at = told->next;
			free(told);
		} else {
			at = &told->next;
		}
	}
}

static int
get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct context *c = (struct context *)context;
	uint64_t count = 0;
	fake_turn();
	for (struct told **at = &c->told; *at != NULL; at = &(*at)->next) {
		struct told *told = *at;
		if (told->rung) {
			*event = told->event;
			*at = told->next;
			if (is_of_qp(event)) {
				((struct fake_qp *)event->element.qp)->unacked++;
			}
			free(told);
			return 0;
		}
	}
	(void)!read(context->async_fd, &count, sizeof(count));
	errno = EAGAIN;
	return -1;
}

static void
ack_async_event(struct ibv_async_event *event)
{
	if (is_of_qp(event)) {
		struct fake_qp *qp = (struct fake_qp *)event->element.qp;
		WF_ASSERT(qp->unacked > 0);
		qp->unacked--;
	}
}

/* ---- what befalls it ---- */

bool
fake_is_dead(const struct ibv_context *context)
{
	return ((const struct context *)context)->dead;
}

void
fake_leave(struct ibv_context *context)
{
	((struct context *)context)->left = true;
}

bool
fake_is_left(const struct ibv_context *context)
{
	const struct context *c = (const struct context *)context;
	return c->left || c->dead;
}

void
fake_device_told_removed(const void *owner)
{
	for (struct context *c = contexts; c != NULL; c = c->next) {
		if (c->owner == owner) {
			fake_leave(&c->context);
		}
	}
}

struct fake_holds *
fake_device_holds(struct ibv_context *context)
{
	return &((struct context *)context)->holds;
}

uint64_t
fake_down_until_ns(const struct ibv_context *context)
{
	return ((const struct context *)context)->down_ns;
}

static void
port_down(struct context *c, uint64_t until_ns)
{
	struct ibv_async_event event = {.element.port_num = 1, .event_type = IBV_EVENT_PORT_ERR};
	c->down_ns = until_ns;
	fake_tell(&c->context, &event, fake_now_ns());
	fake_due(until_ns);
}

/* Of everybody on that host: it is one port. */
static void
take_port_down(const void *owner, uint64_t until_ns)
{
	for (struct context *c = contexts; c != NULL; c = c->next) {
		if (c->owner == owner) {
			port_down(c, until_ns);
		}
	}
}

void
fake_break_ports(uint64_t span_ns)
{
	for (struct context *c = contexts; c != NULL; c = c->next) {
		port_down(c, fake_now_ns() + span_ns);
	}
}

void
fake_device_port(const void *owner, bool up)
{
	fake_device.state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
	if (!up) {
		take_port_down(owner, WF_NEVER);
		return;
	}
	for (struct context *c = contexts; c != NULL; c = c->next) {
		if (c->owner == owner && c->down_ns > 0) {
			c->down_ns = fake_now_ns();
			fake_due(c->down_ns);
		}
	}
}

static void
die(struct context *c)
{
	struct ibv_async_event event = {.event_type = IBV_EVENT_DEVICE_FATAL};
	c->dead = true;
	fake_tell(&c->context, &event, fake_now_ns());
}

void
fake_device_remove(const void *owner)
{
	for (struct context *c = contexts; c != NULL; c = c->next) {
		if (c->owner == owner && !c->dead) {
			die(c);
		}
	}
	fake_cm_removed(owner);
}

void
fake_maybe_break(struct fake_qp *qp)
{
	const struct fake_knobs *k = fake_knobs_now();
	struct context *c = (struct context *)qp->qp.context;
	if (k->breaks_max == 0) {
		return;
	}
	if (fake_breaks(k->cut_per_million)) {
		fake_happened.cuts++;
		qp->cut = true;
	} else if (fake_breaks(k->fatal_per_million)) {
		fake_happened.fatals++;
		die(c);
	} else if (fake_breaks(k->remove_per_million)) {
		fake_happened.removals++;
		fake_device_remove(c->owner);
	} else if (fake_breaks(k->port_per_million)) {
		fake_happened.ports++;
		take_port_down(c->owner, fake_now_ns() + 1 + fake_draw(k->port_ns));
	} else if (fake_breaks(k->gid_per_million)) {
		struct ibv_async_event event = {.element.port_num = 1,
						.event_type = IBV_EVENT_GID_CHANGE};
		fake_happened.gids++;
		fake_tell(&c->context, &event, fake_now_ns());
	} else if (fake_breaks(k->poll_per_million)) {
		fake_happened.polls++;
		((struct fake_cq *)qp->qp.recv_cq)->broken = true;
	}
}

void
fake_device_turn(uint64_t now_ns)
{
	for (struct context *c = contexts; c != NULL; c = c->next) {
		if (c->down_ns > 0 && c->down_ns <= now_ns) {
			struct ibv_async_event event = {.element.port_num = 1,
							.event_type = IBV_EVENT_PORT_ACTIVE};
			c->down_ns = 0;
			fake_tell(&c->context, &event, now_ns);
		} else if (c->down_ns > 0) {
			fake_due(c->down_ns);
		}
		ring_due(c, now_ns);
	}
}

/* ---- what it says ---- */

void
fake_device_know_kind(void)
{
	enum ibv_transport_type type =
		fake_now_is()->iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
	if (device.transport_type != type) {
		device.transport_type = type;
	}
}

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
	struct context *c = fake_make(FAKE_CONTEXT, sizeof(*c));
	if (c == NULL) {
		return NULL;
	}
	fake_device_know_kind();
	c->context.device = at;
	c->context.num_comp_vectors = fake_device.vectors;
	c->context.async_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	c->context.ops = fake_ops;
	c->owner = fake_self();
	c->next = contexts;
	contexts = c;
	return &c->context;
}

static int
close_device(struct ibv_context *context)
{
	struct context *c = (struct context *)context;
	struct context **at = &contexts;
	WF_ASSERT(!fake_is_held(&c->holds)); /* who asks for it behind this asks nobody */
	while (*at != c) {
		at = &(*at)->next;
	}
	*at = c->next;
	while (c->told != NULL) {
		struct told *told = c->told;
		c->told = told->next;
		free(told);
	}
	(void)close(context->async_fd);
	fake_unmade(FAKE_CONTEXT);
	free(c);
	return 0;
}

static int
query_device(struct ibv_context *context, struct ibv_device_attr *out)
{
	const struct fake_habits *habits = fake_now_is();
	unsigned windows = habits->windows ? IBV_DEVICE_MEM_WINDOW_TYPE_2B : IBV_DEVICE_MEM_WINDOW;
	*out = (struct ibv_device_attr){.vendor_id = habits->vendor_id,
					.max_qp = (int)FAKE_QPS_MAX,
					.max_qp_wr = 4096,
					.max_cqe = habits->cqe_max,
					.max_srq = habits->shared_queue ? 16 : 0,
					.max_srq_wr = 1 << 16,
					.max_mw = 1024,
					.device_cap_flags = windows};
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

static ssize_t
query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max_entries,
		uint32_t flags, size_t entry_bytes)
{
	return 0;
}

static const char *
wc_status_str(enum ibv_wc_status status)
{
	return status == IBV_WC_WR_FLUSH_ERR    ? "flushed"
	       : status == IBV_WC_RETRY_EXC_ERR ? "transport retry counter exceeded"
						: "an error";
}

static const char *
event_type_str(enum ibv_event_type type)
{
	return "an event";
}

void
fake_device_reset(void)
{
	contexts = NULL;
	device.transport_type = IBV_TRANSPORT_IB;
}

void
fake_device_fill(struct wf_verbs_lib *lib)
{
	lib->get_device_list = get_device_list;
	lib->free_device_list = free_device_list;
	lib->get_device_name = get_device_name;
	lib->open_device = open_device;
	lib->close_device = close_device;
	lib->query_device = query_device;
	lib->query_port = query_port;
	lib->query_gid_table = query_gid_table;
	lib->get_async_event = get_async_event;
	lib->ack_async_event = ack_async_event;
	lib->wc_status_str = wc_status_str;
	lib->event_type_str = event_type_str;
}
