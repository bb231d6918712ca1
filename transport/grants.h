/* SPDX-License-Identifier: Apache-2.0 */
/* grants: the memory into which one end of a connection lets the other PUT, and the check of each
 * PUT against it. A backend embeds one in each connection. A key names a grant by number and by a
 * nonce; everything else about the grant is looked up here, never read from what the peer sends.
 * Thread: the transport's owner. */
#pragma once

#include "base/assert.h"
#include "base/env.h"
#include "transport/regions.h"
#include "wire/little.h"

#define WF_GRANTS_MAX 64u /* the most grants of one end of a connection */
/* Bytes of a key that hold number and nonce. The rest is 0, and a backend may use it. */
#define WF_GRANT_KEY_USED_BYTES 12u

struct wf_granted {
	uint8_t *base;
	uint64_t bytes;      /* SLOTS: bytes of one slot */
	uint64_t nonce;      /* never 0 */
	uint32_t slot_count; /* 0: a place */
};

enum wf_slot_state {
	WF_SLOT_FREE,
	WF_SLOT_FILLING, /* a PUT into it was accepted */
	WF_SLOT_HELD,    /* its event was delivered */
};

struct wf_grants {
	/* Set by init, and borrowed. */
	struct wf_env *env;
	const struct wf_regions *regions;
	const char *peer; /* the peer's name, for texts */

	struct wf_granted granted[WF_GRANTS_MAX]; /* by number - 1 */
	unsigned count;
	uint8_t slot_state[WF_SLOT_COUNT_MAX]; /* enum wf_slot_state */
};

/* What a PUT claims, as it was read from the peer: nothing of it has been checked. */
struct wf_put_claim {
	uint32_t grant; /* number */
	uint32_t tag;
	uint64_t nonce;
	uint64_t offset;
	uint64_t bytes;
};

/* A PUT that was accepted. The code that copies the bytes advances `at` and reduces `left`. */
struct wf_landing {
	uint8_t *at;   /* where the next byte goes */
	uint64_t left; /* bytes still to come */
	bool in_slot;
	uint32_t buffer;   /* in_slot: its index */
	struct wf_put put; /* the contents of its event */
};

/* All three pointers outlive the grants; the text at `peer` may be set later. */
void wf_grants_init(struct wf_grants *grants, struct wf_env *env, const struct wf_regions *regions,
		    const char *peer);
/* WEFT_INVALID: outside its region, of the other kind, or slots for the second time. WEFT_NOMEM:
 * there are WF_GRANTS_MAX already. */
enum weft_status wf_grants_add(struct wf_grants *grants, const struct wf_grant *grant,
			       struct wf_grant_key *out) WEFT_MUST_CHECK;
/* Drops all grants, when the connection goes down. */
void wf_grants_drop(struct wf_grants *grants);

/* Fails with WEFT_PROTOCOL; the text has the claim and what is wrong with it. */
enum weft_status wf_put_claim_refuse(struct wf_put_claim claim, const char *what)
	__attribute__((cold));

/* Accepts the PUT that the peer claims, or fails with WEFT_PROTOCOL. The caller checks the length
 * against put_bytes_max. Inlined, because every PUT that arrives comes here. */
static inline WEFT_MUST_CHECK enum weft_status
wf_grants_open(struct wf_grants *grants, const struct wf_put_claim *claim, struct wf_landing *out)
{
	uint32_t idx = claim->grant - 1; /* number 0 is no grant; it becomes the highest index */
	if (idx >= grants->count || grants->granted[idx].nonce != claim->nonce) {
		return wf_put_claim_refuse(*claim, "no such grant");
	}
	const struct wf_granted *g = &grants->granted[idx];
	if (claim->offset > g->bytes || claim->bytes > g->bytes - claim->offset) {
		return wf_put_claim_refuse(*claim, "outside its grant");
	}
	struct wf_landing landing = {
		.at = g->base + claim->offset,
		.left = claim->bytes,
		.put = {.tag = claim->tag, .bytes = claim->bytes},
	};
	if (g->slot_count > 0) {
		if (claim->offset != 0) {
			return wf_put_claim_refuse(*claim, "not at the beginning of its slot");
		}
		landing.in_slot = true;
		landing.buffer = wf_tag_slot(claim->tag) & (g->slot_count - 1);
		if (grants->slot_state[landing.buffer] != WF_SLOT_FREE) {
			return wf_put_claim_refuse(*claim, "its slot has not been released");
		}
		grants->slot_state[landing.buffer] = WF_SLOT_FILLING;
		landing.at += landing.buffer * g->bytes;
		landing.put.data = landing.at;
	}
	*out = landing;
	return WEFT_OK;
}
/* Fills in the PUT's event, which is delivered now: a slot is the caller's until release. */
static inline void
wf_grants_landed(struct wf_grants *grants, const struct wf_landing *landing, struct wf_event *event)
{
	event->put = landing->put;
	if (landing->in_slot) {
		WF_ASSERT(grants->slot_state[landing->buffer] == WF_SLOT_FILLING);
		grants->slot_state[landing->buffer] = WF_SLOT_HELD;
	}
}

/* Releases a slot, as in wf_transport_release; `*buffer` is the index of the buffer that is free
 * again. Returns false if the grants have been dropped. */
static inline bool
wf_grants_release(struct wf_grants *grants, uint32_t slot, uint32_t *buffer)
{
	if (grants->count == 0) {
		return false;
	}
	WF_ASSERT(grants->granted[0].slot_count > 0);
	uint32_t number = slot & (grants->granted[0].slot_count - 1);
	WF_ASSERT(grants->slot_state[number] == WF_SLOT_HELD);
	grants->slot_state[number] = WF_SLOT_FREE;
	*buffer = number;
	return true;
}

/* Reads number and nonce of a key made by either end. */
static inline void
wf_grant_key_read(const struct wf_grant_key *key, uint32_t *number, uint64_t *nonce)
{
	*number = wf_load_u32(key->bytes);
	*nonce = wf_load_u64(key->bytes + sizeof(*number));
}
