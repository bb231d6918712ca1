/* SPDX-License-Identifier: Apache-2.0 */
/* shm_grant: regions and grants of this backend (transport/regions.h, transport/grants.h): sealing
 * memory that peers will map, and finding a PUT's bytes. Thread: the transport's owner. */
#include "transport/shm/shm_internal.h"

#include <errno.h>
#include <fcntl.h>

/* Peers receive the descriptor, so its holders must not be able to truncate the memory, or to write
 * to it; the existing mapping stays writable. */
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
	if (region->memfd >= 0) {
		enum weft_status st = seal(region);
		if (st != WEFT_OK) {
			return st;
		}
	}
	return wf_regions_add(&wf_medium_of(transport)->regions, "shm", region, out);
}

void
wf_shm_region_remove(struct wf_transport *transport, uint32_t region)
{
	wf_regions_remove(&wf_medium_of(transport)->regions, region);
}

void
wf_shm_completion_write(struct wf_shm_conn *c, uint32_t op)
{
	uint64_t number = c->rx.completed++;
	uint64_t word = (uint64_t)(uint32_t)(number + 1) << 32 | op;
	atomic_store_explicit(&c->rx_way->completion[number % WF_SHM_REFS], word,
			      memory_order_release); /* S3: wf_shm_complete's acquire */
	c->tx.dirty = true;
}

void
wf_shm_release(struct wf_conn *conn, uint32_t number)
{
	struct wf_shm_conn *c = wf_shm_conn_of(conn);
	uint32_t buffer = 0;
	if (!wf_grants_release(&c->life.grants, number, &buffer)) {
		return; /* the connection is down: its grants were dropped */
	}
	struct wf_shm_slot *slot = &c->slot[buffer];
	if (slot->foreign != NULL) {
		WF_ASSERT(slot->foreign->held > 0);
		slot->foreign->held--;
		slot->foreign = NULL;
		wf_shm_completion_write(c, slot->op);
	}
}

/* Finds the bytes of a published PUT. */
static enum weft_status
find_source(struct wf_shm_conn *c, const struct wf_shm_put *put, const struct wf_put_claim *claim)
{
	const struct wf_shm_foreign *f = wf_shm_foreign_find(c, put->region);
	if (f == NULL) {
		return wf_put_claim_refuse(*claim, "from a region that was not sent");
	}
	if (put->at > f->bytes || put->bytes > f->bytes - put->at) {
		return wf_put_claim_refuse(*claim, "from outside the peer's region");
	}
	c->rx.put_src = f->base + put->at;
	c->rx.put_op = put->op;
	return WEFT_OK;
}

/* A published PUT stays where it is until its slot is released. */
static void
hold_in_place(struct wf_shm_conn *c, const struct wf_shm_put *put)
{
	struct wf_shm_slot *slot = &c->slot[c->rx.put.buffer];
	WF_ASSERT(slot->foreign == NULL);
	slot->foreign = wf_shm_foreign_find(c, put->region);
	slot->foreign->held++;
	slot->op = put->op;
	c->rx.put.put.data = c->rx.put_src;
	c->rx.put.left = 0;
	c->rx.put_src = NULL;
}

enum weft_status
wf_shm_put_open(struct wf_shm_conn *c, const struct wf_shm_put *put)
{
	struct wf_shm_rx *rx = &c->rx;
	struct wf_put_claim claim = {
		.grant = put->grant,
		.tag = put->tag,
		.nonce = put->nonce,
		.offset = put->offset,
		.bytes = put->bytes,
	};
	if (claim.bytes == 0 || claim.bytes > c->t->medium.opts.put_bytes_max) {
		return wf_put_claim_refuse(claim, "its length is not allowed");
	}
	enum weft_status st = wf_grants_open(&c->life.grants, &claim, &rx->put);
	if (st != WEFT_OK) {
		return st;
	}
	rx->put_src = NULL;
	if (put->where == WF_SHM_REF) {
		st = find_source(c, put, &claim);
		if (st != WEFT_OK) {
			return st;
		}
		if (rx->put.in_slot) {
			hold_in_place(c, put);
		}
	}
	rx->put_open = true;
	return WEFT_OK;
}
