/* SPDX-License-Identifier: Apache-2.0 */
/* sim_grant: keys, and the memory that they grant. The sender's PUT is checked when it is posted,
 * against the receiver's books: a buffer that is not free then is never written. Thread: the
 * world's. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tests/double/sim/sanitizers.h"
#include "tests/double/sim/sim.h"

/* Inside struct wf_grant_key. */
struct key {
	uint64_t link_id;
	uint64_t nonce;
	uint32_t side; /* who granted */
	uint32_t idx;
};
WF_STATIC_ASSERT(sizeof(struct key) <= WF_GRANT_KEY_BYTES, "fits");

static enum weft_status
check_kind(const struct wf_sim_conn *conn, const struct wf_grant *grant)
{
	if (conn->grant_count == 0) {
		return WEFT_OK;
	}
	if (grant->kind == WF_GRANT_SLOTS || conn->slots != NULL) {
		return wf_fail(WEFT_INVALID,
			       "grant to %s: one end grants either places or slots, and slots once",
			       conn->peer);
	}
	if (conn->grant_count == WF_SIM_GRANT_MAX) {
		return wf_fail(WEFT_NOMEM, "grant to %s: %u places are the most", conn->peer,
			       WF_SIM_GRANT_MAX);
	}
	return WEFT_OK;
}

static enum weft_status
check_region(const struct wf_sim_conn *conn, const struct wf_grant *grant)
{
	const struct wf_sim_transport *t = conn->transport;
	uint64_t bytes = grant->bytes;
	uint64_t count = grant->kind == WF_GRANT_SLOTS ? grant->slot_count : 1;
	bool is_inside = grant->region < t->region_count &&
			 t->regions[grant->region].base != NULL &&
			 !__builtin_mul_overflow(bytes, count, &bytes) &&
			 bytes <= t->regions[grant->region].bytes &&
			 grant->offset <= t->regions[grant->region].bytes - bytes;
	if (!is_inside) {
		return wf_fail(WEFT_INVALID,
			       "grant to %s: %llu bytes at offset %llu are outside region %u",
			       conn->peer, (unsigned long long)bytes,
			       (unsigned long long)grant->offset, grant->region);
	}
	return WEFT_OK;
}

static void
grow(struct wf_sim_conn *conn)
{
	if (conn->grant_count < conn->grant_capacity) {
		return;
	}
	uint32_t capacity = conn->grant_capacity == 0 ? 8 : conn->grant_capacity * 2;
	struct wf_sim_grant *grants = wf_sim_zalloc(capacity * sizeof(*grants));
	if (conn->grant_count > 0) {
		memcpy(grants, conn->grants, conn->grant_count * sizeof(*grants));
	}
	free(conn->grants);
	conn->grants = grants;
	conn->grant_capacity = capacity;
}

enum weft_status
wf_sim_grant_make(struct wf_sim_conn *conn, const struct wf_grant *grant, struct wf_grant_key *out)
{
	enum weft_status st = check_kind(conn, grant);
	if (st != WEFT_OK) {
		return st;
	}
	st = check_region(conn, grant);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_sim_transport *t = conn->transport;
	grow(conn);
	struct key key = {.link_id = conn->link->id,
			  .nonce = wf_rng_u64(&t->world->rng),
			  .side = conn->side,
			  .idx = conn->grant_count};
	uint8_t *base = t->regions[grant->region].base;
	conn->grants[conn->grant_count++] = (struct wf_sim_grant){
		.grant = *grant, .nonce = key.nonce, .base = base + grant->offset};
	if (grant->kind == WF_GRANT_SLOTS) {
		conn->slots = wf_sim_zalloc(grant->slot_count);
		conn->slot_count = grant->slot_count;
	}
	memset(out->bytes, 0, sizeof(out->bytes));
	memcpy(out->bytes, &key, sizeof(key));
	return WEFT_OK;
}

static const struct wf_sim_grant *
find(const struct wf_sim_conn *conn, const struct wf_grant_key *opaque)
{
	struct key key;
	memcpy(&key, opaque->bytes, sizeof(key));
	if (key.link_id != conn->link->id || key.side != conn->side ||
	    key.idx >= conn->grant_count || conn->grants[key.idx].nonce != key.nonce) {
		return NULL;
	}
	return &conn->grants[key.idx];
}

void
wf_sim_grant_resolve(struct wf_sim_conn *conn, const struct wf_op *op, struct wf_sim_frame *frame)
{
	const struct wf_sim_grant *grant = find(conn, &op->key);
	if (grant == NULL) {
		frame->bad = "PUT under a key that was not granted to this peer";
		return;
	}
	if (op->bytes > conn->transport->opts.put_bytes_max) {
		frame->bad = "PUT longer than put_bytes_max";
		return;
	}
	if (op->bytes > grant->grant.bytes || op->offset > grant->grant.bytes - op->bytes) {
		frame->bad = "PUT outside its grant";
		return;
	}
	frame->target = grant->base + op->offset;
	frame->bytes = op->bytes;
	if (grant->grant.kind == WF_GRANT_PLACE) {
		return;
	}
	if (op->offset != 0) {
		frame->bad = "PUT not at the beginning of its slot";
		return;
	}
	uint32_t slot = wf_tag_slot(op->tag) % conn->slot_count;
	if (conn->slots[slot] != WF_SIM_SLOT_FREE) {
		frame->bad = "PUT into a slot that was not released";
		return;
	}
	conn->slots[slot] = WF_SIM_SLOT_FLYING;
	frame->in_slot = true;
	frame->target += slot * grant->grant.bytes;
}

/* Of the one grant of slots. */
static uint8_t *
slot_at(const struct wf_sim_conn *conn, uint32_t slot)
{
	return conn->grants[0].base + slot * conn->grants[0].grant.bytes;
}

void
wf_sim_grant_hold(struct wf_sim_conn *conn, const struct wf_sim_frame *frame)
{
	uint32_t slot = wf_tag_slot(frame->tag) % conn->slot_count;
	const uint8_t *end = slot_at(conn, slot + 1);
	const uint8_t *behind = frame->target + frame->bytes;
	conn->slots[slot] = WF_SIM_SLOT_HELD;
	wf_sanitizer_forbid(behind, (size_t)(end - behind));
}

static void
let_go(struct wf_sim_conn *conn, uint32_t slot)
{
	conn->slots[slot] = WF_SIM_SLOT_FREE;
	wf_sanitizer_allow(slot_at(conn, slot), conn->grants[0].grant.bytes);
}

void
wf_sim_grant_release(struct wf_sim_conn *conn, uint32_t number)
{
	WF_ASSERT(conn->slots != NULL);
	uint32_t slot = number % conn->slot_count;
	WF_ASSERT(conn->slots[slot] == WF_SIM_SLOT_HELD);
	let_go(conn, slot);
}

void
wf_sim_grants_free(struct wf_sim_conn *conn)
{
	for (uint32_t slot = 0; conn->slots != NULL && slot < conn->slot_count; slot++) {
		if (conn->slots[slot] == WF_SIM_SLOT_HELD) {
			let_go(conn, slot);
		}
	}
	free(conn->grants);
	free(conn->slots);
}
