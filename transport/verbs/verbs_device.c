/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_device: opening a device for one transport. librdmacm has a context of its own that all
 * share; this one belongs to the transport, so that its events are for this transport alone.
 * Thread: the transport's owner. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/pin.h"
#include "transport/verbs/verbs_internal.h"

static void
set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	(void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

/* A vector is an interrupt, and drivers assign these to CPUs in order: so it may be the thread's
 * own CPU, and differs from that of other lanes while there are enough. */
int
wf_verbs_vector(const struct wf_verbs_settings *settings, int cpu, int count)
{
	int64_t wanted = settings->vector;
	if (wanted < 0) {
		wanted = cpu >= 0 ? cpu : (int64_t)settings->lane;
	}
	return count > 0 ? (int)(wanted % count) : 0;
}

/* The queues of queue pairs have an even number of pages, and follow each other. Behind one page
 * none of them begins at an even page, so none begins at the offset that siw's library mistakes for
 * a failure. */
static void
open_filler(struct wf_verbs_device *dev)
{
	if (dev->caps.odd_offsets) {
		dev->filler = dev->t->lib->create_cq(dev->context, 1, NULL, NULL, 0);
	}
}

static enum weft_status
open_parts(struct wf_verbs_device *dev)
{
	enum weft_status st = wf_verbs_queues_open(dev);
	if (st != WEFT_OK) {
		return st;
	}
	dev->channel = dev->t->lib->create_comp_channel(dev->context);
	dev->pd = dev->t->lib->alloc_pd(dev->context);
	if (dev->channel == NULL || dev->pd == NULL) {
		return wf_verbs_fail_made(dev, errno, "a protection domain or event channel");
	}
	set_nonblocking(dev->channel->fd);
	set_nonblocking(dev->context->async_fd);
	open_filler(dev);
	return WEFT_OK;
}

static void
notify_channel(struct wf_loop_source *source, uint32_t mask)
{
	(void)mask;
	wf_verbs_queues_read(WF_LOOP_OWNER(source, struct wf_verbs_device, channel_source));
}

static enum weft_status
watch(struct wf_verbs_device *dev)
{
	struct wf_loop *loop = &dev->t->medium.loop;
	dev->channel_source.notify = notify_channel;
	dev->async_source.notify = dev->t->async_notify;
	enum weft_status st = wf_loop_watch(loop, dev->channel->fd, EPOLLIN, &dev->channel_source);
	if (st == WEFT_OK) {
		st = wf_loop_watch(loop, dev->context->async_fd, EPOLLIN, &dev->async_source);
	}
	return st;
}

void
wf_verbs_device_close(struct wf_verbs_device *dev)
{
	const struct wf_verbs_lib *lib = dev->t->lib;
	WF_ASSERT(dev->conn_count == 0 && dev->registering == 0);
	wf_verbs_queues_close(dev);
	for (uint32_t i = 0; i < WF_REGIONS_MAX; i++) {
		wf_verbs_deregister(dev, &dev->region_mr[i]);
	}
	if (dev->filler != NULL) {
		(void)lib->destroy_cq(dev->filler);
	}
	if (dev->pd != NULL) {
		(void)lib->dealloc_pd(dev->pd);
	}
	if (dev->channel != NULL) {
		wf_loop_unwatch(&dev->t->medium.loop, dev->channel->fd);
		(void)lib->destroy_comp_channel(dev->channel);
	}
	if (dev->context != NULL) {
		wf_loop_unwatch(&dev->t->medium.loop, dev->context->async_fd);
		(void)lib->close_device(dev->context);
	}
	wf_free(dev->t->medium.transport.env, dev, sizeof(*dev));
}

static enum weft_status
set_up(struct wf_verbs_device *dev, const struct rdma_cm_id *id)
{
	struct wf_verbs *t = dev->t;
	dev->context = t->lib->open_device(id->verbs->device);
	if (dev->context == NULL) {
		return wf_fail_errno(WEFT_UNAVAILABLE, errno, "%s: cannot be opened", dev->name);
	}
	dev->vector =
		wf_verbs_vector(&t->settings, wf_pin_own_cpu(), dev->context->num_comp_vectors);
	enum weft_status st = wf_verbs_caps_read(dev);
	if (st != WEFT_OK) {
		return st;
	}
	st = open_parts(dev);
	return st == WEFT_OK ? watch(dev) : st;
}

/* A device that has gone may be back under its old name: the old entry is ignored. */
static struct wf_verbs_device *
find(const struct wf_verbs *t, const char *name)
{
	for (unsigned i = 0; i < WF_VERBS_DEVICES_MAX; i++) {
		struct wf_verbs_device *dev = t->device[i];
		if (dev != NULL && !dev->gone && strcmp(dev->name, name) == 0) {
			return dev;
		}
	}
	return NULL;
}

static unsigned
free_idx(const struct wf_verbs *t)
{
	unsigned idx = 0;
	while (idx < WF_VERBS_DEVICES_MAX && t->device[idx] != NULL) {
		idx++;
	}
	return idx;
}

static enum weft_status
check_wanted(const struct wf_verbs *t, const char *name, uint8_t port)
{
	const struct wf_verbs_settings *s = &t->settings;
	if (wf_verbs_settings_find_device(s, name) < 0 || (s->port != 0 && s->port != port)) {
		return wf_fail(WEFT_UNAVAILABLE, "the way leads over %s port %u, not device=%s%s",
			       name, port, s->device, s->port == 0 ? "" : " at the port asked for");
	}
	return WEFT_OK;
}

static void
log_opened(const struct wf_verbs_device *dev)
{
	const struct wf_verbs_caps *caps = &dev->caps;
	wf_log(dev->t->medium.transport.env, WF_LOG_INFO,
	       "verbs: %s is in use: %s, notices by %s, grants by %s, %s, completion vector %d of "
	       "%d",
	       dev->name, caps->iwarp ? "iWARP" : "InfiniBand or RoCE",
	       caps->immediate ? "immediate" : "message",
	       caps->window ? "memory window" : "a domain per peer",
	       caps->shared_queue ? "a shared receive queue" : "receive queues of their own",
	       dev->vector, dev->context->num_comp_vectors);
}

enum weft_status
wf_verbs_device_get(struct wf_verbs *t, const struct rdma_cm_id *id, struct wf_verbs_device **out)
{
	if (id->verbs == NULL) {
		return wf_fail(WEFT_UNAVAILABLE, "no RDMA device leads there");
	}
	const char *name = t->lib->get_device_name(id->verbs->device);
	enum weft_status st = check_wanted(t, name, id->port_num);
	if (st != WEFT_OK) {
		return st;
	}
	*out = find(t, name);
	if (*out != NULL) {
		return WEFT_OK;
	}
	unsigned idx = free_idx(t);
	if (idx == WF_VERBS_DEVICES_MAX) {
		return wf_fail(WEFT_NOMEM, "%s: %u RDMA devices are the most", name,
			       WF_VERBS_DEVICES_MAX);
	}
	struct wf_verbs_device *dev = wf_zalloc(t->medium.transport.env, sizeof(*dev));
	if (dev == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: %zu bytes", name, sizeof(*dev));
	}
	dev->t = t;
	snprintf(dev->name, sizeof(dev->name), "%s", name);
	st = set_up(dev, id);
	if (st != WEFT_OK) {
		wf_verbs_device_close(dev);
		return st;
	}
	t->device[idx] = dev;
	*out = dev;
	log_opened(dev);
	return WEFT_OK;
}

void
wf_verbs_devices_forget(const struct wf_verbs *t)
{
	/* librdmacm detects devices that have gone when a list is requested. */
	int count = 0;
	struct ibv_context **list = t->lib->get_devices(&count);
	if (list != NULL) {
		t->lib->free_devices(list);
	}
}

/* ---- its connections ---- */

static struct wf_verbs_conn **
bucket_of(struct wf_verbs_device *dev, uint32_t qp_num)
{
	return &dev->bucket[qp_num % WF_VERBS_BUCKETS];
}

void
wf_verbs_device_add(struct wf_verbs_device *dev, struct wf_verbs_conn *c)
{
	struct wf_verbs_conn **at = bucket_of(dev, c->link.qp_num);
	c->link.bucket_next = *at;
	*at = c;
}

void
wf_verbs_device_remove(struct wf_verbs_device *dev, struct wf_verbs_conn *c)
{
	struct wf_verbs_conn **at = bucket_of(dev, c->link.qp_num);
	while (*at != NULL && *at != c) {
		at = &(*at)->link.bucket_next;
	}
	if (*at == c) {
		*at = c->link.bucket_next;
	}
}

struct wf_verbs_conn *
wf_verbs_device_find(const struct wf_verbs_device *dev, uint32_t qp_num)
{
	struct wf_verbs_conn *c = dev->bucket[qp_num % WF_VERBS_BUCKETS];
	while (c != NULL && c->link.qp_num != qp_num) {
		c = c->link.bucket_next;
	}
	return c;
}
