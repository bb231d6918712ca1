/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_grant: regions, grants, and what a peer's PUT may touch. The key names a grant by number and
 * by a nonce; everything else about the grant is looked up here, never read from what the peer
 * sends. Thread: the transport's owner. */
#include "transport/tcp/tcp_internal.h"

#include <string.h>

#include "base/assert.h"
#include "wire/bytes.h"

enum weft_status
wf_tcp_region_add(struct wf_transport *transport, const struct wf_region *region, uint32_t *out)
{
	struct wf_tcp *t = wf_tcp_of(transport);
	for (uint32_t i = 0; i < WF_TCP_REGION_MAX; i++) {
		if (t->region[i].base == NULL) {
			t->region[i].base = region->base;
			t->region[i].bytes = region->bytes;
			*out = i + 1;
			return WEFT_OK;
		}
	}
	return wf_fail(WEFT_NOMEM, "tcp: %u regions are the most; use fewer and larger ones",
		       WF_TCP_REGION_MAX);
}

static struct wf_tcp_region *
region_find(struct wf_tcp *t, uint32_t region)
{
	if (region == 0 || region > WF_TCP_REGION_MAX || t->region[region - 1].base == NULL) {
		return NULL;
	}
	return &t->region[region - 1];
}

void
wf_tcp_region_remove(struct wf_transport *transport, uint32_t region)
{
	struct wf_tcp_region *found = region_find(wf_tcp_of(transport), region);
	WF_ASSERT(found != NULL);
	*found = (struct wf_tcp_region){0};
}

bool
wf_tcp_region_holds(const struct wf_tcp *t, uint32_t region, const void *src, uint64_t bytes)
{
	if (region == 0 || region > WF_TCP_REGION_MAX) {
		return false;
	}
	const struct wf_tcp_region *r = &t->region[region - 1];
	uintptr_t base = (uintptr_t)r->base;
	uintptr_t at = (uintptr_t)src;
	return r->base != NULL && at >= base && at - base <= r->bytes &&
	       bytes <= r->bytes - (at - base);
}

/* One end grants places or slots, and slots once. */
static enum weft_status
check_kind(const struct wf_tcp_conn *c, enum wf_grant_kind kind)
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

static uint64_t
make_nonce(struct wf_tcp *t)
{
	uint64_t nonce = wf_random(t->transport.env);
	return nonce == 0 ? 1 : nonce;
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
wf_tcp_key_read(const struct wf_grant_key *key, uint32_t *number, uint64_t *nonce)
{
	struct wf_reader r = {.base = key->bytes, .bytes = sizeof(key->bytes)};
	*number = wf_get_u32(&r);
	*nonce = wf_get_u64(&r);
	WF_ASSERT(!r.bad);
}

enum weft_status
wf_tcp_grant(struct wf_conn *conn, const struct wf_grant *grant, struct wf_grant_key *out)
{
	struct wf_tcp_conn *c = wf_tcp_conn_of(conn);
	if (c->state != WF_TCP_UP) {
		return wf_fail(WEFT_INVALID, "grant to %s: the connection is not up", c->peer);
	}
	enum weft_status st = check_kind(c, grant->kind);
	if (st != WEFT_OK) {
		return st;
	}
	uint32_t slot_count = grant->kind == WF_GRANT_SLOTS ? grant->slot_count : 0;
	uint64_t bytes = slot_count > 0 ? grant->bytes * slot_count : grant->bytes;
	const struct wf_tcp_region *region = region_find(c->t, grant->region);
	if (region == NULL || grant->offset > region->bytes ||
	    bytes > region->bytes - grant->offset) {
		return wf_fail(WEFT_INVALID,
			       "grant to %s: %llu bytes at offset %llu are not in region %u",
			       c->peer, (unsigned long long)bytes,
			       (unsigned long long)grant->offset, grant->region);
	}
	if (c->grant_count == WF_TCP_GRANT_MAX) {
		return wf_fail(WEFT_NOMEM, "grant to %s: %u grants are the most", c->peer,
			       WF_TCP_GRANT_MAX);
	}
	struct wf_tcp_grant *g = &c->grant[c->grant_count++];
	*g = (struct wf_tcp_grant){
		.base = region->base + grant->offset,
		.bytes = grant->bytes,
		.nonce = make_nonce(c->t),
		.slot_count = slot_count,
	};
	key_write(out, c->grant_count, g->nonce);
	return WEFT_OK;
}

void
wf_tcp_release(struct wf_conn *conn, uint32_t slot)
{
	struct wf_tcp_conn *c = wf_tcp_conn_of(conn);
	if (c->grant_count == 0) {
		return; /* down: the grants have gone */
	}
	WF_ASSERT(c->grant[0].slot_count > 0);
	uint8_t *state = &c->slot_state[slot & (c->grant[0].slot_count - 1)];
	WF_ASSERT(*state == WF_TCP_SLOT_HELD);
	*state = WF_TCP_SLOT_FREE;
}

static struct wf_tcp_grant *
grant_find(struct wf_tcp_conn *c, const struct wf_head *head)
{
	if (head->region == 0 || head->region > c->grant_count) {
		return NULL;
	}
	struct wf_tcp_grant *g = &c->grant[head->region - 1];
	return g->nonce == head->request_id ? g : NULL;
}

static enum weft_status
fail_put(const struct wf_head *head, const char *what)
{
	return wf_fail(WEFT_PROTOCOL, "PUT of %llu bytes at offset %llu, grant %u, tag %#x: %s",
		       (unsigned long long)head->body_bytes, (unsigned long long)head->offset,
		       head->region, head->slice, what);
}

enum weft_status
wf_tcp_put_open(struct wf_tcp_conn *c, const struct wf_head *head)
{
	uint64_t bytes = head->body_bytes;
	if (bytes == 0 || bytes > c->t->opts.put_bytes_max || head->flags != 0) {
		return fail_put(head, "its length or flags are not allowed");
	}
	struct wf_tcp_grant *g = grant_find(c, head);
	if (g == NULL) {
		return fail_put(head, "no such grant");
	}
	if (head->offset > g->bytes || bytes > g->bytes - head->offset) {
		return fail_put(head, "outside its grant");
	}
	uint8_t *at = g->base + head->offset;
	if (g->slot_count > 0) {
		uint32_t buffer = wf_tag_slot(head->slice) & (g->slot_count - 1);
		if (c->slot_state[buffer] != WF_TCP_SLOT_FREE) {
			return fail_put(head, "its slot has not been released");
		}
		c->slot_state[buffer] = WF_TCP_SLOT_FILLING;
		at += buffer * g->bytes;
	}
	c->rx.put_open = true;
	c->rx.put_at = at;
	c->rx.put_left = bytes;
	c->rx.put_tag = head->slice;
	c->rx.put_grant = g;
	c->rx.put_data = g->slot_count > 0 ? at : NULL;
	return WEFT_OK;
}
