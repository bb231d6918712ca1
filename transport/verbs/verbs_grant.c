/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_grant: what allows a peer to write. The device checks each WRITE against the key: a window
 * of this queue pair, or a region in this peer's domain, of exactly what was granted. This end's
 * own table (transport/grants.h) decides which notices are valid. Thread: the transport's owner. */
#include <errno.h>
#include <string.h>

#include "transport/verbs/verbs_internal.h"

/* The range of the newest grant. */
static struct wf_verbs_range
granted_range(const struct wf_verbs_conn *c, const struct wf_grant *grant)
{
	const struct wf_granted *g = &c->life.grants.granted[c->life.grants.count - 1];
	const struct wf_region *region = wf_regions_find(&c->t->medium.regions, grant->region);
	WF_ASSERT(region != NULL);
	return (struct wf_verbs_range){
		.base = g->base,
		.bytes = g->slot_count > 0 ? g->bytes * g->slot_count : g->bytes,
		.iova = wf_verbs_iova(&c->link.dev->caps, region->base, g->base),
		.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
	};
}

/* `mr` NULL: the region is being registered. The window has its key before it is bound, and binding
 * may also wait for room in the send queue; nothing that is posted on this connection, including
 * the key for the peer, is sent before that. */
static enum weft_status
open_window(struct wf_verbs_conn *c, struct ibv_mr *mr, const struct wf_verbs_range *range,
	    uint32_t *rkey)
{
	struct wf_verbs_access *access = &c->access.of[c->life.grants.count - 1];
	access->window = ibv_alloc_mw(c->link.pd, IBV_MW_TYPE_2);
	if (access->window == NULL) {
		return wf_verbs_fail_made(c->link.dev, errno, "a memory window");
	}
	access->at = range->iova;
	access->bytes = range->bytes;
	access->rkey = ibv_inc_rkey(access->window->rkey);
	*rkey = access->rkey;
	if (mr == NULL || !wf_verbs_bind(c, access, mr)) {
		access->waits = true;
		c->access.waiting++;
		return WEFT_OK;
	}
	return wf_verbs_bind_settle(c);
}

void
wf_verbs_access_bind(struct wf_verbs_conn *c)
{
	if (!wf_verbs_can_send(c)) {
		return;
	}
	for (unsigned i = 0; i < WF_GRANTS_MAX && c->access.waiting > 0; i++) {
		struct wf_verbs_access *access = &c->access.of[i];
		if (!access->waits) {
			continue;
		}
		struct ibv_mr *mr =
			access->mr != NULL ? access->mr : wf_verbs_region_mr(c, access->region);
		if (mr == NULL || !wf_verbs_bind(c, access, mr)) {
			return;
		}
		access->waits = false;
		c->access.waiting--;
	}
}

static enum weft_status
open_access(struct wf_verbs_conn *c, const struct wf_grant *grant, struct wf_verbs_key *key)
{
	struct wf_verbs_range range = granted_range(c, grant);
	struct wf_verbs_access *access = &c->access.of[c->life.grants.count - 1];
	const struct wf_verbs_caps *caps = &c->link.dev->caps;
	key->at = range.iova;
	access->region = grant->region;
	if (caps->window && !caps->window_is_loose) {
		return open_window(c, wf_verbs_region_mr(c, grant->region), &range, &key->rkey);
	}
	if (caps->window) { /* a region of no more than the grant, behind the window */
		range.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
	}
	if (c->t->settings.relaxed != WF_VERBS_OFF) {
		range.access |= IBV_ACCESS_RELAXED_ORDERING;
	}
	enum weft_status st = wf_verbs_register(c->link.dev, c->link.pd, &range, &access->mr);
	if (st == WEFT_OK && caps->window) {
		return open_window(c, access->mr, &range, &key->rkey);
	}
	if (st == WEFT_OK) {
		key->rkey = access->mr->rkey;
	}
	return st;
}

enum weft_status
wf_verbs_grant(struct wf_conn *conn, const struct wf_grant *grant, struct wf_grant_key *out)
{
	struct wf_verbs_conn *c = wf_verbs_conn_of(conn);
	struct wf_grant_key key;
	enum weft_status st = wf_life_grant(conn, grant, &key);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_verbs_key mine = {
		.mark = c->mark,
		.bytes = grant->bytes,
		.slots = grant->kind == WF_GRANT_SLOTS ? grant->slot_count : 0,
	};
	st = open_access(c, grant, &mine);
	if (st != WEFT_OK) {
		/* The grant stays in the table, under a nonce that no peer knows. A lack of
		 * resources of the device is not the fault of the peer or the caller, and another
		 * path may work. */
		wf_verbs_conn_end(c, WEFT_LOST, "%s", weft_last_error());
		return wf_fail(WEFT_CLOSED, "grant to %s: %s", c->life.peer, c->end.why);
	}
	wf_verbs_key_write(&mine, &key);
	*out = key;
	return WEFT_OK;
}

void
wf_verbs_access_close(struct wf_verbs_conn *c)
{
	for (unsigned i = 0; i < WF_GRANTS_MAX; i++) {
		if (c->access.of[i].window != NULL) {
			(void)ibv_dealloc_mw(c->access.of[i].window);
			c->access.of[i].window = NULL;
			c->access.waiting -= c->access.of[i].waits ? 1 : 0;
			c->access.of[i].waits = false;
		}
		if (c->link.qp == NULL) { /* the peer may write until the queue pair is destroyed */
			wf_verbs_deregister(c->link.dev, &c->access.of[i].mr);
		}
	}
}

void
wf_verbs_release(struct wf_conn *conn, uint32_t slot)
{
	uint32_t buffer = 0;
	(void)wf_grants_release(&wf_life_of(conn)->grants, slot, &buffer);
}

enum weft_status
wf_verbs_put_notice(struct wf_verbs_conn *c, uint32_t tag, struct wf_landing *out)
{
	const struct wf_granted *g = &c->life.grants.granted[0];
	/* The device has checked where the bytes went: a place is not looked up, a slot is named by
	 * the tag.
	 */
	if (c->life.grants.count > 0 && g->slot_count == 0) {
		*out = (struct wf_landing){.put.tag = tag};
		return WEFT_OK;
	}
	struct wf_put_claim claim = {.grant = 1, .tag = tag, .nonce = g->nonce};
	if (c->life.grants.count == 0) {
		return wf_put_claim_refuse(claim, "a notice, and nothing was granted");
	}
	return wf_grants_open(&c->life.grants, &claim, out);
}

enum weft_status
wf_verbs_put_claim(struct wf_verbs_conn *c, const struct wf_head *head, struct wf_landing *out)
{
	struct wf_put_claim claim = {
		.grant = head->region,
		.tag = head->slice,
		.nonce = head->request_id,
		.offset = head->offset,
		.bytes = head->step,
	};
	if (claim.bytes == 0 || claim.bytes > c->t->medium.opts.put_bytes_max) {
		return wf_put_claim_refuse(claim, "its length is not allowed");
	}
	enum weft_status st = wf_grants_open(&c->life.grants, &claim, out);
	if (st != WEFT_OK) {
		return st;
	}
	if ((head->flags & WF_VERBS_UNWRITTEN) != 0) {
		return wf_put_claim_refuse(claim, "its key is not of this connection");
	}
	out->put.bytes = 0; /* it is only the peer's claim: the device does not report it */
	return WEFT_OK;
}
