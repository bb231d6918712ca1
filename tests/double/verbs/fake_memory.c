/* SPDX-License-Identifier: Apache-2.0 */
/* fake_memory: domains, regions and windows of the fake. Bounds, domain and queue pair of a key are
 * checked. Thread: one; regions come and go on the helper, too, and are handed over with its
 * task. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake_internal.h"

#define KEYS_MAX 65536u

/* lkey and rkey of a region, and rkey of a window; the low byte of a window's key counts. */
struct key {
	const struct ibv_pd *pd;
	uint8_t *base;          /* NULL: it leads nowhere */
	struct fake_mr *behind; /* a window that is bound; else NULL */
	uint64_t iova, bytes;
	uint32_t rkey;
	uint32_t qp_num; /* a window's; 0: of a region */
	bool remote;
	bool taken;
};

struct fake_pd {
	struct ibv_pd pd; /* first */
	struct fake_holds holds;
};

struct fake_mr {
	struct ibv_mr mr; /* first */
	struct fake_holds holds;
};

static struct key key_of[KEYS_MAX];
static _Atomic uint32_t key_next; /* FK: the helper registers, too */

/* As on devices, a number comes back late, so that who uses an old key is found. */
static uint32_t
key_new(void)
{
	uint32_t number = 0;
	do {
		number = atomic_fetch_add_explicit(&key_next, 1, memory_order_relaxed) %
				 (KEYS_MAX - 1) + /* FK */
			 1;
	} while (key_of[number].taken);
	key_of[number].taken = true;
	return number;
}

uint8_t *
fake_find(uint32_t key, uint64_t at, uint64_t bytes, const struct ibv_qp *to)
{
	const struct key *k = &key_of[key >> 8 & (KEYS_MAX - 1)];
	bool mine = to == NULL ||
		    (k->remote && (k->qp_num != 0 ? k->qp_num == to->qp_num : k->pd == to->pd));
	if (k->base == NULL || k->rkey != key || !mine || at < k->iova || bytes > k->bytes ||
	    at - k->iova > k->bytes - bytes) {
		return NULL;
	}
	return k->base + (at - k->iova);
}

void
fake_bind(const struct ibv_send_wr *wr, const struct ibv_qp *qp)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;
	const struct key *region = &key_of[info->mr->rkey >> 8];
	uint8_t *base = fake_find(region->rkey, info->addr, info->length, NULL);
	WF_ASSERT(base != NULL && region->pd == qp->pd);
	WF_ASSERT(key_of[wr->bind_mw.rkey >> 8].behind == NULL); /* once, as the backend does */
	fake_hold(&((struct fake_mr *)info->mr)->holds);
	key_of[wr->bind_mw.rkey >> 8] = (struct key){.pd = region->pd,
						     .base = base,
						     .behind = (struct fake_mr *)info->mr,
						     .iova = info->addr,
						     .bytes = info->length,
						     .rkey = wr->bind_mw.rkey,
						     .qp_num = qp->qp_num,
						     .remote = true,
						     .taken = true};
}

struct fake_holds *
fake_domain_holds(struct ibv_pd *pd)
{
	return &((struct fake_pd *)pd)->holds;
}

static struct ibv_mr *
reg_mr_iova2(struct ibv_pd *pd, void *base, size_t bytes, uint64_t iova, unsigned int access)
{
	if (fake_nomem() || !fake_lock(bytes, false)) {
		return NULL;
	}
	fake_register_takes(bytes);
	struct fake_mr *mr = calloc(1, sizeof(*mr));
	uint32_t number = key_new();
	WF_ASSERT(mr != NULL);
	fake_hold(fake_domain_holds(pd));
	mr->mr = (struct ibv_mr){.context = pd->context,
				 .pd = pd,
				 .addr = base,
				 .length = bytes,
				 .lkey = number << 8,
				 .rkey = number << 8};
	key_of[number] = (struct key){.pd = pd,
				      .base = base,
				      .iova = iova,
				      .bytes = bytes,
				      .rkey = mr->mr.rkey,
				      .remote = (access & IBV_ACCESS_REMOTE_WRITE) != 0,
				      .taken = true};
	fake_made(FAKE_REGION);
	return &mr->mr;
}

static int
dereg_mr(struct ibv_mr *mr)
{
	fake_place_all(); /* what has arrived has its way through the bus behind it */
	WF_ASSERT(
		!fake_is_held(&((struct fake_mr *)mr)->holds)); /* EBUSY: a window is bound to it */
	fake_let_go(fake_domain_holds(mr->pd));
	key_of[mr->rkey >> 8] = (struct key){0};
	fake_unlock(mr->length, false);
	fake_unmade(FAKE_REGION);
	free(mr);
	return 0;
}

static struct ibv_mw *
alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ibv_mw *mw = fake_make(FAKE_WINDOW, sizeof(*mw));
	WF_ASSERT(fake_now_is()->windows);
	if (mw != NULL) {
		fake_hold(fake_domain_holds(pd));
		*mw = (struct ibv_mw){
			.context = pd->context, .pd = pd, .rkey = key_new() << 8, .type = type};
	}
	return mw;
}

static int
dealloc_mw(struct ibv_mw *mw)
{
	struct fake_mr *behind = key_of[mw->rkey >> 8].behind;
	if (behind != NULL) {
		fake_let_go(&behind->holds);
	}
	fake_let_go(fake_domain_holds(mw->pd));
	key_of[mw->rkey >> 8] = (struct key){0};
	fake_unmade(FAKE_WINDOW);
	free(mw);
	return 0;
}

static struct ibv_pd *
alloc_pd(struct ibv_context *context)
{
	struct fake_pd *pd = fake_make(FAKE_DOMAIN, sizeof(*pd));
	if (pd == NULL) {
		return NULL;
	}
	pd->pd.context = context;
	fake_hold(fake_device_holds(context));
	return &pd->pd;
}

static int
dealloc_pd(struct ibv_pd *pd)
{
	WF_ASSERT(!fake_is_held(fake_domain_holds(pd))); /* EBUSY */
	fake_let_go(fake_device_holds(pd->context));
	fake_unmade(FAKE_DOMAIN);
	free(pd);
	return 0;
}

void
fake_memory_reset(void)
{
	memset(key_of, 0, sizeof(key_of));
	atomic_store_explicit(&key_next, 0, memory_order_relaxed);
}

void
fake_memory_fill(struct wf_verbs_lib *lib, struct ibv_context_ops *ops)
{
	lib->alloc_pd = alloc_pd;
	lib->dealloc_pd = dealloc_pd;
	lib->reg_mr_iova2 = reg_mr_iova2;
	lib->dereg_mr = dereg_mr;
	ops->alloc_mw = alloc_mw;
	ops->dealloc_mw = dealloc_mw;
}
