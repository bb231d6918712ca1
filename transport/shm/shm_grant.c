/* SPDX-License-Identifier: Apache-2.0 */
/* shm_grant: regions, grants, and what a peer's PUT may touch. The key names a grant by number and
 * by a nonce; everything else about the grant is looked up here, never read from what the peer
 * writes. Thread: the transport's owner. */
#include "transport/shm/shm_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "wire/bytes.h"

/* Peers are given the descriptor, so nobody who holds it may cut the memory short, or write it; the
 * mapping that is there stays writable. */
static enum weft_status
seal(const struct wf_region *region)
{
	const int needed = F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE;
	int seals = fcntl(region->memfd, F_GET_SEALS);
	if (seals < 0) {
		return wf_fail_errno(WEFT_INVALID, errno, "region: descriptor %d has no seals",
				     region->memfd);
	}
	if ((seals & needed) != needed && fcntl(region->memfd, F_ADD_SEALS, needed & ~seals) != 0) {
		return wf_fail_errno(WEFT_INVALID, errno,
				     "region: its memfd (seals %#x) cannot be sealed against "
				     "shrinking and new writers",
				     (unsigned)seals);
	}
	enum weft_status st = wf_shm_memfd_check(region->memfd, region->bytes);
	return st == WEFT_OK ? WEFT_OK : wf_fail(WEFT_INVALID, "region: %s", weft_last_error());
}

enum weft_status
wf_shm_region_add(struct wf_transport *transport, const struct wf_region *region, uint32_t *out)
{
	struct wf_shm *t = wf_shm_of(transport);
	if (region->memfd >= 0) {
		enum weft_status st = seal(region);
		if (st != WEFT_OK) {
			return st;
		}
	}
	for (uint32_t i = 0; i < WF_SHM_REGION_MAX; i++) {
		if (t->region[i].base == NULL) {
			t->region[i] = (struct wf_shm_region){
				.base = region->base,
				.bytes = region->bytes,
				.memfd = region->memfd,
				.generation = ++t->region_generation,
			};
			*out = i + 1;
			return WEFT_OK;
		}
	}
	return wf_fail(WEFT_NOMEM, "shm: %u regions are the most; use fewer and larger ones",
		       WF_SHM_REGION_MAX);
}

static struct wf_shm_region *
region_find(struct wf_shm *t, uint32_t region)
{
	if (region == 0 || region > WF_SHM_REGION_MAX || t->region[region - 1].base == NULL) {
		return NULL;
	}
	return &t->region[region - 1];
}

void
wf_shm_region_remove(struct wf_transport *transport, uint32_t region)
{
	struct wf_shm_region *found = region_find(wf_shm_of(transport), region);
	WF_ASSERT(found != NULL);
	*found = (struct wf_shm_region){.memfd = -1};
}

bool
wf_shm_region_holds(const struct wf_shm *t, uint32_t region, const void *src, uint64_t bytes)
{
	if (region == 0 || region > WF_SHM_REGION_MAX) {
		return false;
	}
	const struct wf_shm_region *r = &t->region[region - 1];
	uintptr_t base = (uintptr_t)r->base;
	uintptr_t at = (uintptr_t)src;
	return r->base != NULL && at >= base && at - base <= r->bytes &&
	       bytes <= r->bytes - (at - base);
}

/* One end grants places or slots, and slots once. */
static enum weft_status
check_kind(const struct wf_shm_conn *c, enum wf_grant_kind kind)
{
	if (c->grant_count == 0) {
		return WEFT_OK;
	}
	if (c->grant[0].slot_count > 0) {
		return wf_fail(WEFT_INVALID, "grant to %s: this end has granted its slots already",
			       c->peer);
	}
	if (kind == WF_GRANT_SLOTS) {
		return wf_fail(WEFT_INVALID, "grant to %s: slots, and this end has granted places",
			       c->peer);
	}
	return WEFT_OK;
}

static void
key_write(struct wf_grant_key *key, uint32_t number, uint64_t nonce)
{
	memset(key, 0, sizeof(*key));
	struct wf_writer w = {.base = key->bytes, .capacity = sizeof(key->bytes)};
	wf_put_u32(&w, number);
	wf_put_u64(&w, nonce);
	WF_ASSERT(!w.bad);
}

void
wf_shm_key_read(const struct wf_grant_key *key, uint32_t *number, uint64_t *nonce)
{
	struct wf_reader r = {.base = key->bytes, .bytes = sizeof(key->bytes)};
	*number = wf_get_u32(&r);
	*nonce = wf_get_u64(&r);
	WF_ASSERT(!r.bad);
}

enum weft_status
wf_shm_grant(struct wf_conn *conn, const struct wf_grant *grant, struct wf_grant_key *out)
{
	struct wf_shm_conn *c = wf_shm_conn_of(conn);
	if (c->state != WF_SHM_UP) {
		return wf_fail(WEFT_INVALID, "grant to %s: the connection is not up", c->peer);
	}
	enum weft_status st = check_kind(c, grant->kind);
	if (st != WEFT_OK) {
		return st;
	}
	uint32_t slot_count = grant->kind == WF_GRANT_SLOTS ? grant->slot_count : 0;
	uint64_t bytes = slot_count > 0 ? grant->bytes * slot_count : grant->bytes;
	const struct wf_shm_region *region = region_find(c->t, grant->region);
	if (region == NULL || grant->offset > region->bytes ||
	    bytes > region->bytes - grant->offset) {
		return wf_fail(WEFT_INVALID,
			       "grant to %s: %llu bytes at offset %llu are not in region %u",
			       c->peer, (unsigned long long)bytes,
			       (unsigned long long)grant->offset, grant->region);
	}
	if (c->grant_count == WF_SHM_GRANT_MAX) {
		return wf_fail(WEFT_NOMEM, "grant to %s: %u grants are the most", c->peer,
			       WF_SHM_GRANT_MAX);
	}
	uint64_t nonce = wf_random(c->t->transport.env);
	struct wf_shm_grant *g = &c->grant[c->grant_count++];
	*g = (struct wf_shm_grant){
		.base = region->base + grant->offset,
		.bytes = grant->bytes,
		.nonce = nonce == 0 ? 1 : nonce,
		.slot_count = slot_count,
	};
	key_write(out, c->grant_count, g->nonce);
	return WEFT_OK;
}

void
wf_shm_release(struct wf_conn *conn, uint32_t number)
{
	struct wf_shm_conn *c = wf_shm_conn_of(conn);
	if (c->grant_count == 0) {
		return; /* down: the grants have gone */
	}
	WF_ASSERT(c->grant[0].slot_count > 0);
	struct wf_shm_slot *slot = &c->slot[number & (c->grant[0].slot_count - 1)];
	WF_ASSERT(slot->state == WF_SHM_SLOT_HELD);
	slot->state = WF_SHM_SLOT_FREE;
	if (slot->foreign != NULL) {
		WF_ASSERT(slot->foreign->held > 0);
		slot->foreign->held--;
		slot->foreign = NULL;
		wf_shm_completion_write(c, slot->op);
	}
}

static struct wf_shm_grant *
grant_find(struct wf_shm_conn *c, const struct wf_shm_put *put)
{
	if (put->grant == 0 || put->grant > c->grant_count) {
		return NULL;
	}
	struct wf_shm_grant *g = &c->grant[put->grant - 1];
	return g->nonce == put->nonce ? g : NULL;
}

static enum weft_status
fail_put(const struct wf_shm_put *put, const char *what)
{
	return wf_fail(WEFT_PROTOCOL, "PUT of %llu bytes at offset %llu, grant %u, tag %#x: %s",
		       (unsigned long long)put->bytes, (unsigned long long)put->offset, put->grant,
		       put->tag, what);
}

/* Where the bytes of a published PUT are. */
static enum weft_status
find_source(struct wf_shm_conn *c, const struct wf_shm_put *put)
{
	const struct wf_shm_foreign *f = wf_shm_foreign_find(c, put->region);
	if (f == NULL) {
		return fail_put(put, "from a region that was not sent");
	}
	if (put->at > f->bytes || put->bytes > f->bytes - put->at) {
		return fail_put(put, "from outside the peer's region");
	}
	c->rx.put_src = f->base + put->at;
	c->rx.put_op = put->op;
	return WEFT_OK;
}

/* A published PUT lies where it is until the slot is released. */
static void
take_in_place(struct wf_shm_conn *c, const struct wf_shm_put *put, struct wf_shm_slot *slot)
{
	slot->foreign = wf_shm_foreign_find(c, put->region);
	slot->foreign->held++;
	slot->op = put->op;
	c->rx.put_data = c->rx.put_src;
	c->rx.put_src = NULL;
	c->rx.put_left = 0;
}

enum weft_status
wf_shm_put_open(struct wf_shm_conn *c, const struct wf_shm_put *put)
{
	struct wf_shm_rx *rx = &c->rx;
	if (put->bytes == 0 || put->bytes > c->t->opts.put_bytes_max) {
		return fail_put(put, "its length is not allowed");
	}
	struct wf_shm_grant *g = grant_find(c, put);
	if (g == NULL) {
		return fail_put(put, "no such grant");
	}
	if (put->offset > g->bytes || put->bytes > g->bytes - put->offset) {
		return fail_put(put, "outside its grant");
	}
	uint32_t buffer = g->slot_count > 0 ? wf_tag_slot(put->tag) & (g->slot_count - 1) : 0;
	struct wf_shm_slot *slot = g->slot_count > 0 ? &c->slot[buffer] : NULL;
	if (slot != NULL && slot->state != WF_SHM_SLOT_FREE) {
		return fail_put(put, "its slot has not been released");
	}
	rx->put_src = NULL;
	if (put->where == WF_SHM_REF) {
		enum weft_status st = find_source(c, put);
		if (st != WEFT_OK) {
			return st;
		}
	}
	rx->put_open = true;
	rx->put_at = g->base + buffer * g->bytes + put->offset;
	rx->put_left = put->bytes;
	rx->put_tag = put->tag;
	rx->put_grant = g;
	rx->put_data = slot == NULL ? NULL : rx->put_at;
	if (slot != NULL) {
		slot->state = WF_SHM_SLOT_FILLING;
		slot->foreign = NULL;
		if (put->where == WF_SHM_REF) {
			take_in_place(c, put, slot);
		}
	}
	return WEFT_OK;
}
