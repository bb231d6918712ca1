/* SPDX-License-Identifier: Apache-2.0 */
/* grants: making keys, and checking PUTs against this end's own table. Thread: the transport's
 * owner. */
#include "transport/grants.h"

#include <string.h>

#include "base/assert.h"
#include "wire/little.h"

void
wf_grants_init(struct wf_grants *grants, struct wf_env *env, const struct wf_regions *regions,
	       const char *peer)
{
	*grants = (struct wf_grants){.env = env, .regions = regions, .peer = peer};
}

/* One end grants either places or slots, and slots once. */
static enum weft_status
check_kind(const struct wf_grants *grants, enum wf_grant_kind kind)
{
	if (grants->count == 0) {
		return WEFT_OK;
	}
	if (grants->granted[0].slot_count > 0) {
		return wf_fail(WEFT_INVALID, "grant to %s: this end has granted its slots already",
			       grants->peer);
	}
	if (kind == WF_GRANT_SLOTS) {
		return wf_fail(WEFT_INVALID, "grant to %s: slots, and this end has granted places",
			       grants->peer);
	}
	return WEFT_OK;
}

/* The range of the grant, or NULL. */
static uint8_t *
find_range(const struct wf_grants *grants, const struct wf_grant *grant, uint64_t bytes)
{
	const struct wf_region *region = wf_regions_find(grants->regions, grant->region);
	if (region == NULL || grant->offset > region->bytes ||
	    bytes > region->bytes - grant->offset) {
		return NULL;
	}
	return (uint8_t *)region->base + grant->offset;
}

static uint64_t
make_nonce(struct wf_env *env)
{
	uint64_t nonce = wf_random(env);
	return nonce == 0 ? 1 : nonce;
}

static void
key_write(struct wf_grant_key *key, uint32_t number, uint64_t nonce)
{
	memset(key, 0, sizeof(*key));
	WF_STATIC_ASSERT(sizeof(number) + sizeof(nonce) == WF_GRANT_KEY_USED_BYTES, "all of it");
	wf_store_u32(key->bytes, number);
	wf_store_u64(key->bytes + sizeof(number), nonce);
}

enum weft_status
wf_grants_add(struct wf_grants *grants, const struct wf_grant *grant, struct wf_grant_key *out)
{
	enum weft_status st = check_kind(grants, grant->kind);
	if (st != WEFT_OK) {
		return st;
	}
	uint32_t slot_count = grant->kind == WF_GRANT_SLOTS ? grant->slot_count : 0;
	WF_ASSERT(slot_count <= WF_SLOT_COUNT_MAX);
	uint64_t bytes = slot_count > 0 ? grant->bytes * slot_count : grant->bytes;
	uint8_t *base = find_range(grants, grant, bytes);
	if (base == NULL) {
		return wf_fail(WEFT_INVALID,
			       "grant to %s: %llu bytes at offset %llu are not in region %u",
			       grants->peer, (unsigned long long)bytes,
			       (unsigned long long)grant->offset, grant->region);
	}
	if (grants->count == WF_GRANTS_MAX) {
		return wf_fail(WEFT_NOMEM, "grant to %s: %u grants are the most", grants->peer,
			       WF_GRANTS_MAX);
	}
	struct wf_granted *g = &grants->granted[grants->count++];
	*g = (struct wf_granted){
		.base = base,
		.bytes = grant->bytes,
		.nonce = make_nonce(grants->env),
		.slot_count = slot_count,
	};
	key_write(out, grants->count, g->nonce);
	return WEFT_OK;
}

void
wf_grants_drop(struct wf_grants *grants)
{
	grants->count = 0;
}

enum weft_status
wf_put_claim_refuse(struct wf_put_claim claim, const char *what)
{
	return wf_fail(WEFT_PROTOCOL, "PUT of %llu bytes at offset %llu, grant %u, tag %#x: %s",
		       (unsigned long long)claim.bytes, (unsigned long long)claim.offset,
		       claim.grant, claim.tag, what);
}
