/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_register: the transport's regions, as registered with devices. Registering locks each page,
 * and zeroes those that were never touched: gigabytes take seconds. So regions that are not small
 * are registered on the env's helper thread. A connect waits for it before the request; operations
 * of connections that are UP wait in their queue. Thread: the transport's owner, except for `run`,
 * which touches only its own struct and constant fields of the device. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "transport/verbs/verbs_internal.h"

#define AT_ONCE_BYTES (1u << 20) /* registering up to this size takes less than a millisecond */

struct wf_verbs_registration {
	struct wf_task task; /* first */
	struct wf_verbs_registration *next;
	struct wf_verbs_device *dev;
	struct wf_verbs_conn *conn; /* the connection in whose domain it is; NULL: the device's */
	struct ibv_pd *pd;
	struct wf_verbs_range range;
	uint32_t idx; /* of the region */
	bool wanted;  /* false: region or connection have gone, and it is undone when it ends */
	/* The result. */
	enum weft_status status;
	struct ibv_mr *mr;
	char why[WF_WHY_BYTES];
};

static struct ibv_mr **
table_of(struct wf_verbs_device *dev, struct wf_verbs_conn *conn)
{
	return conn == NULL ? dev->region_mr : conn->regions.mr;
}

/* The connection in whose domain the regions for `c` are; NULL: the device's. */
static struct wf_verbs_conn *
owner_of(struct wf_verbs_conn *c)
{
	return c->link.dev->caps.window ? NULL : c;
}

struct ibv_mr *
wf_verbs_region_mr(struct wf_verbs_conn *c, uint32_t region)
{
	return table_of(c->link.dev, owner_of(c))[region - 1];
}

/* The range is for PUTs that are read from it and, with windows, for windows that are bound to it:
 * without a window no peer can write into it. */
static struct wf_verbs_range
range_of(const struct wf_verbs_device *dev, uint32_t idx)
{
	const struct wf_region *region = &dev->t->medium.regions.region[idx];
	struct wf_verbs_range range = {
		.base = region->base,
		.bytes = region->bytes,
		.iova = wf_verbs_iova(&dev->caps, region->base, region->base),
		.access = dev->caps.window ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND : 0,
	};
	if (dev->caps.window && dev->t->settings.relaxed != WF_VERBS_OFF) {
		range.access |= IBV_ACCESS_RELAXED_ORDERING;
	}
	return range;
}

static void
run(struct wf_task *task)
{
	struct wf_verbs_registration *r = (struct wf_verbs_registration *)task; /* first member */
	r->status = wf_verbs_register(r->dev, r->pd, &r->range, &r->mr);
	if (r->status != WEFT_OK) {
		snprintf(r->why, sizeof(r->why), "%s", weft_last_error());
	}
}

static bool
is_under_way(const struct wf_verbs_device *dev, const struct wf_verbs_conn *conn, uint32_t idx)
{
	const struct wf_verbs_registration *r = dev->t->registrations;
	while (r != NULL && !(r->wanted && r->dev == dev && r->conn == conn && r->idx == idx)) {
		r = r->next;
	}
	return r != NULL;
}

static enum weft_status
start(struct wf_verbs_device *dev, struct wf_verbs_conn *conn, uint32_t idx)
{
	struct wf_verbs *t = dev->t;
	struct wf_env *env = t->medium.transport.env;
	struct wf_verbs_range range = range_of(dev, idx);
	struct ibv_pd *pd = conn == NULL ? dev->pd : conn->link.pd;
	if (range.bytes <= AT_ONCE_BYTES) {
		return wf_verbs_register(dev, pd, &range, &table_of(dev, conn)[idx]);
	}
	/* A size that is known to be too much is refused at once. */
	enum weft_status st = wf_verbs_memlock_room(dev, range.bytes);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_verbs_registration *r = wf_zalloc(env, sizeof(*r));
	if (r == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: %zu bytes", dev->name, sizeof(*r));
	}
	*r = (struct wf_verbs_registration){
		.task = {.run = run, .wake_fd = t->medium.loop.wake_fd},
		.next = t->registrations,
		.dev = dev,
		.conn = conn,
		.pd = pd,
		.range = range,
		.idx = idx,
		.wanted = true,
	};
	st = env->ops->submit(env, &r->task);
	if (st != WEFT_OK) {
		wf_free(env, r, sizeof(*r));
		return st;
	}
	t->registrations = r;
	dev->registering++;
	return WEFT_OK;
}

static enum weft_status
start_one(struct wf_verbs_device *dev, struct wf_verbs_conn *conn, uint32_t idx)
{
	bool there = dev->t->medium.regions.region[idx].base == NULL ||
		     table_of(dev, conn)[idx] != NULL || is_under_way(dev, conn, idx);
	return there ? WEFT_OK : start(dev, conn, idx);
}

enum weft_status
wf_verbs_regions_start(struct wf_verbs_conn *c)
{
	enum weft_status st = WEFT_OK;
	c->regions.why[0] = '\0';
	for (uint32_t i = 0; i < WF_REGIONS_MAX && st == WEFT_OK; i++) {
		st = start_one(c->link.dev, owner_of(c), i);
	}
	return st;
}

static bool
are_here(struct wf_verbs_device *dev, struct wf_verbs_conn *owner)
{
	for (uint32_t i = 0; i < WF_REGIONS_MAX; i++) {
		if (dev->t->medium.regions.region[i].base != NULL &&
		    table_of(dev, owner)[i] == NULL) {
			return false;
		}
	}
	return true;
}

enum weft_status
wf_verbs_regions_check(struct wf_verbs_conn *c)
{
	if (c->regions.why[0] != '\0') {
		return wf_fail(WEFT_UNAVAILABLE, "%s", c->regions.why);
	}
	return are_here(c->link.dev, owner_of(c)) ? WEFT_OK : WEFT_AGAIN;
}

/* Whether `c` is on the device. A request has its device before it has a link. */
static bool
is_on(const struct wf_verbs_conn *c, const struct wf_verbs_device *dev)
{
	if (c->link.dev != NULL || c->link.id == NULL || c->link.id->verbs == NULL) {
		return c->link.dev == dev;
	}
	return !dev->gone &&
	       strcmp(c->t->lib->get_device_name(c->link.id->verbs->device), dev->name) == 0;
}

enum weft_status
wf_verbs_regions_begin(struct wf_verbs_conn *c)
{
	struct wf_verbs_device *dev = NULL;
	enum weft_status st = wf_verbs_device_get(c->t, c->link.id, &dev);
	for (uint32_t i = 0; i < WF_REGIONS_MAX && st == WEFT_OK && dev->caps.window; i++) {
		st = start_one(dev, NULL, i);
	}
	return st;
}

bool
wf_verbs_regions_hold_up(struct wf_verbs_conn *c)
{
	for (unsigned i = 0; c->life.incoming && i < WF_VERBS_DEVICES_MAX; i++) {
		struct wf_verbs_device *dev = c->t->device[i];
		if (dev != NULL && dev->caps.window && is_on(c, dev)) {
			return !are_here(dev, NULL);
		}
	}
	return false;
}

/* ---- the end of one ---- */

/* Whether the connection waits for the registration, or may wait for it. */
static bool
concerns(const struct wf_verbs_registration *r, const struct wf_verbs_conn *c)
{
	return c != NULL &&
	       (r->conn == NULL ? r->dev->caps.window && is_on(c, r->dev) : c == r->conn);
}

static void
notify(struct wf_verbs *t, const struct wf_verbs_registration *r)
{
	for (struct wf_verbs_conn *c = wf_verbs_conn_first(t); c != NULL;
	     c = wf_verbs_conn_next(c)) {
		if (!concerns(r, c)) {
			continue;
		}
		if (r->status == WEFT_OK) {
			wf_life_ready(&c->life);
		} else if (wf_verbs_conn_is_at(c, WF_VERBS_PREPARING)) {
			snprintf(c->regions.why, sizeof(c->regions.why), "%s", r->why);
			wf_life_ready(&c->life); /* which continues with its other addresses */
		} else {
			wf_verbs_conn_end(c, WEFT_LOST, "%s", r->why);
		}
	}
}

/* Releases the domain of a connection that has gone, with the last of its registrations. */
static void
release_domain(struct wf_verbs *t, const struct wf_verbs_registration *r)
{
	if (r->wanted || r->pd == r->dev->pd) {
		return;
	}
	for (const struct wf_verbs_registration *o = t->registrations; o != NULL; o = o->next) {
		if (o->pd == r->pd) {
			return;
		}
	}
	if (r->conn == NULL) { /* the connection has gone */
		(void)t->lib->dealloc_pd(r->pd);
	}
}

static void
finish(struct wf_verbs *t, struct wf_verbs_registration *r)
{
	r->dev->registering--;
	if (r->wanted && r->status == WEFT_OK) {
		table_of(r->dev, r->conn)[r->idx] = r->mr;
	} else {
		wf_verbs_deregister(r->dev, &r->mr);
	}
	if (r->wanted) {
		notify(t, r);
	}
	release_domain(t, r);
	t->medium.dead_waiting |= r->dev->gone; /* it may be closed now */
	wf_free(t->medium.transport.env, r, sizeof(*r));
}

void
wf_verbs_registrations_visit(struct wf_verbs *t)
{
	struct wf_verbs_registration **at = &t->registrations;
	while (*at != NULL) {
		struct wf_verbs_registration *r = *at;
		if (atomic_load_explicit(&r->task.done, memory_order_acquire)) { /* env's release */
			*at = r->next;
			finish(t, r);
			/* A connection that ended may have changed other registrations. */
			at = &t->registrations;
		} else {
			at = &r->next;
		}
	}
}

bool
wf_verbs_registrations_leave(struct wf_verbs_conn *c)
{
	bool left = false;
	for (uint32_t i = 0; i < WF_REGIONS_MAX; i++) {
		wf_verbs_deregister(c->link.dev, &c->regions.mr[i]);
	}
	for (struct wf_verbs_registration *r = c->t->registrations; r != NULL; r = r->next) {
		if (r->conn == c) {
			r->conn = NULL;
			r->wanted = false;
			left = true;
		}
	}
	return left;
}

/* ---- regions ---- */

static void
deregister_everywhere(struct wf_verbs *t, uint32_t idx)
{
	for (struct wf_verbs_registration *r = t->registrations; r != NULL; r = r->next) {
		r->wanted = r->wanted && r->idx != idx;
	}
	for (struct wf_verbs_conn *c = wf_verbs_conn_first(t); c != NULL;
	     c = wf_verbs_conn_next(c)) {
		if (c->link.dev != NULL) {
			wf_verbs_deregister(c->link.dev, &c->regions.mr[idx]);
		}
	}
	for (unsigned i = 0; i < WF_VERBS_DEVICES_MAX; i++) {
		if (t->device[i] != NULL) {
			wf_verbs_deregister(t->device[i], &t->device[i]->region_mr[idx]);
		}
	}
}

static enum weft_status
register_everywhere(struct wf_verbs *t, uint32_t idx)
{
	enum weft_status st = WEFT_OK;
	for (unsigned i = 0; i < WF_VERBS_DEVICES_MAX && st == WEFT_OK; i++) {
		struct wf_verbs_device *dev = t->device[i];
		if (dev != NULL && !dev->gone && dev->caps.window) {
			st = start_one(dev, NULL, idx);
		}
	}
	for (struct wf_verbs_conn *c = wf_verbs_conn_first(t); c != NULL && st == WEFT_OK;
	     c = wf_verbs_conn_next(c)) {
		if (c->link.qp != NULL && !c->link.dev->gone && !c->link.dev->caps.window) {
			st = start_one(c->link.dev, c, idx);
		}
	}
	return st;
}

enum weft_status
wf_verbs_region_add(struct wf_transport *transport, const struct wf_region *region, uint32_t *out)
{
	struct wf_verbs *t = wf_verbs_of(transport);
	if (region->bytes > 1ull << 46) {
		return wf_fail(WEFT_INVALID, "region: %zu bytes; 64 TiB are the most",
			       region->bytes);
	}
	uint32_t number = 0;
	enum weft_status st = wf_regions_add(&t->medium.regions, "verbs", region, &number);
	if (st != WEFT_OK) {
		return st;
	}
	st = register_everywhere(t, number - 1);
	if (st != WEFT_OK) {
		deregister_everywhere(t, number - 1);
		wf_regions_remove(&t->medium.regions, number);
		return st;
	}
	*out = number;
	return WEFT_OK;
}

void
wf_verbs_region_remove(struct wf_transport *transport, uint32_t region)
{
	struct wf_verbs *t = wf_verbs_of(transport);
	WF_ASSERT(wf_regions_find(&t->medium.regions, region) != NULL);
	deregister_everywhere(t, region - 1);
	wf_regions_remove(&t->medium.regions, region);
	for (struct wf_verbs_conn *c = wf_verbs_conn_first(t); c != NULL;
	     c = wf_verbs_conn_next(c)) {
		if ((wf_verbs_conn_is_at(c, WF_VERBS_PREPARING) ||
		     c->life.state == WF_LIFE_DECIDED)) {
			wf_life_ready(&c->life); /* it may have waited for this one */
		}
	}
}
