/* SPDX-License-Identifier: Apache-2.0 */
/* placement: cut tensors into slices and deal the slices to lanes. Thread: any; at setup only. */
#include "wire/placement.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/digest.h"
#include "wire/bytes.h"

#define DIGEST_SLICES 64 /* slices hashed at a time */
#define DIGEST_SLICE_BYTES 28

/* A slice in the order of dealing: largest first, then by number. */
struct deal {
	uint64_t count; /* elements */
	uint32_t slice;
};

static uint64_t
slices_of(const struct wf_job *job, uint64_t slice_bytes)
{
	uint64_t elements = slice_bytes / sizeof(float);
	uint64_t slices = 0;

	for (uint32_t t = 0; t < job->tensor_count; t++) {
		slices += (job->tensor[t].count + elements - 1) / elements;
	}
	return slices;
}

static uint64_t
slices_max(uint64_t lane_count)
{
	uint64_t on_lanes = lane_count * WF_SLICE_COUNT_MAX;
	return on_lanes < WF_JOB_SLICE_COUNT_MAX ? on_lanes : WF_JOB_SLICE_COUNT_MAX;
}

/* Refuses a job with too many slices; `limit` is the most that are allowed. */
static enum weft_status
too_many(const struct wf_job *job, uint64_t slices, uint64_t limit)
{
	uint64_t bytes = job->set.slice_bytes;

	do {
		bytes *= 2;
	} while (bytes <= WF_SLICE_BYTES_MAX && slices_of(job, bytes) > limit);
	if (bytes > WF_SLICE_BYTES_MAX) {
		return wf_fail(WEFT_INVALID,
			       "placement: slice_bytes %" PRIu64 " gives %" PRIu64
			       " slices, the limit is %" PRIu64
			       " and no slice_bytes keeps it: use more pservers or ports_num",
			       job->set.slice_bytes, slices, limit);
	}
	return wf_fail(WEFT_INVALID,
		       "placement: slice_bytes %" PRIu64 " gives %" PRIu64
		       " slices, the limit is %" PRIu64 ": use slice_bytes %" PRIu64,
		       job->set.slice_bytes, slices, limit, bytes);
}

static enum weft_status
allocate(struct wf_env *env, struct wf_placement *p)
{
	p->slice = wf_zalloc_array(env, p->slice_count, sizeof(p->slice[0]));
	p->lane_slice = wf_zalloc_array(env, p->slice_count, sizeof(p->lane_slice[0]));
	p->tensor_first = wf_zalloc_array(env, p->tensor_count + 1u, sizeof(p->tensor_first[0]));
	p->lane_first = wf_zalloc_array(env, p->lane_count + 1u, sizeof(p->lane_first[0]));
	p->lane_elements = wf_zalloc_array(env, p->lane_count, sizeof(p->lane_elements[0]));
	if (p->slice == NULL || p->lane_slice == NULL || p->tensor_first == NULL ||
	    p->lane_first == NULL || p->lane_elements == NULL) {
		return wf_fail(WEFT_NOMEM,
			       "placement: no memory for %" PRIu32 " slices on %" PRIu32 " lanes",
			       p->slice_count, p->lane_count);
	}
	return WEFT_OK;
}

static void
cut(const struct wf_job *job, struct wf_placement *p)
{
	uint64_t elements = job->set.slice_bytes / sizeof(float);
	uint32_t s = 0;

	for (uint32_t t = 0; t < job->tensor_count; t++) {
		p->tensor_first[t] = s;
		for (uint64_t first = 0; first < job->tensor[t].count; first += elements) {
			uint64_t left = job->tensor[t].count - first;
			p->slice[s].tensor = t;
			p->slice[s].first = first;
			p->slice[s].count = left < elements ? left : elements;
			s++;
		}
	}
	p->tensor_first[job->tensor_count] = s;
	WF_ASSERT(s == p->slice_count);
}

static int
compare_deals(const void *a, const void *b)
{
	const struct deal *x = a;
	const struct deal *y = b;
	if (x->count != y->count) {
		return x->count > y->count ? -1 : 1;
	}
	return x->slice < y->slice ? -1 : x->slice > y->slice;
}

static bool
lane_less(const struct wf_placement *p, uint32_t a, uint32_t b)
{
	if (p->lane_elements[a] != p->lane_elements[b]) {
		return p->lane_elements[a] < p->lane_elements[b];
	}
	return a < b;
}

/* The lane at the root got heavier: moves it down the heap. */
static void
sink_root(const struct wf_placement *p, uint32_t *heap)
{
	uint32_t at = 0;

	for (;;) {
		uint32_t child = 2 * at + 1;
		if (child >= p->lane_count) {
			return;
		}
		if (child + 1 < p->lane_count && lane_less(p, heap[child + 1], heap[child])) {
			child++;
		}
		if (!lane_less(p, heap[child], heap[at])) {
			return;
		}
		uint32_t lane = heap[at];
		heap[at] = heap[child];
		heap[child] = lane;
		at = child;
	}
}

/* `order` has slice_count entries, `heap` lane_count. */
static void
deal_out(struct wf_placement *p, struct deal *order, uint32_t *heap)
{
	for (uint32_t s = 0; s < p->slice_count; s++) {
		order[s] = (struct deal){.count = p->slice[s].count, .slice = s};
	}
	qsort(order, p->slice_count, sizeof(order[0]), compare_deals);
	for (uint32_t lane = 0; lane < p->lane_count; lane++) {
		heap[lane] = lane; /* all empty: a heap by lane number */
	}
	for (uint32_t i = 0; i < p->slice_count; i++) {
		p->slice[order[i].slice].lane = heap[0];
		p->lane_elements[heap[0]] += order[i].count;
		sink_root(p, heap);
	}
}

static enum weft_status
deal_slices(struct wf_env *env, struct wf_placement *p)
{
	size_t order_bytes = p->slice_count * sizeof(struct deal);
	size_t heap_bytes = p->lane_count * sizeof(uint32_t);
	struct deal *order = wf_zalloc(env, order_bytes);
	uint32_t *heap = wf_zalloc(env, heap_bytes);
	enum weft_status st = WEFT_OK;

	if (order == NULL || heap == NULL) {
		st = wf_fail(WEFT_NOMEM, "placement: no memory to deal %" PRIu32 " slices",
			     p->slice_count);
	} else {
		deal_out(p, order, heap);
	}
	wf_free(env, heap, heap_bytes);
	wf_free(env, order, order_bytes);
	return st;
}

/* Counting sort: slices by lane, ascending on each. */
static void
group_by_lane(struct wf_placement *p)
{
	for (uint32_t s = 0; s < p->slice_count; s++) {
		p->slice[s].on_lane = p->lane_first[p->slice[s].lane + 1]++;
	}
	for (uint32_t lane = 0; lane < p->lane_count; lane++) {
		p->lane_first[lane + 1] += p->lane_first[lane];
	}
	WF_ASSERT(p->lane_first[p->lane_count] == p->slice_count);
	for (uint32_t s = 0; s < p->slice_count; s++) {
		p->lane_slice[p->lane_first[p->slice[s].lane] + p->slice[s].on_lane] = s;
	}
}

/* Checks the slices of each lane: one with many small slices may hold more than its share. */
static enum weft_status
check_lanes(const struct wf_job *job, const struct wf_placement *p)
{
	for (uint32_t lane = 0; lane < p->lane_count; lane++) {
		uint32_t count = p->lane_first[lane + 1] - p->lane_first[lane];
		if (count > WF_SLICE_COUNT_MAX) {
			return too_many(job, p->slice_count, WF_SLICE_COUNT_MAX);
		}
	}
	return WEFT_OK;
}

enum weft_status
wf_placement_init(struct wf_env *env, const struct wf_job *job, struct wf_placement *out)
{
	struct wf_placement p = {0};
	uint64_t slices = slices_of(job, job->set.slice_bytes);

	p.lane_count = job->pserver_count * job->set.ports_num;
	p.tensor_count = job->tensor_count;
	WF_ASSERT(p.lane_count > 0 && p.lane_count <= WF_LANE_COUNT_MAX);
	if (slices > slices_max(p.lane_count)) {
		return too_many(job, slices, slices_max(p.lane_count));
	}
	p.slice_count = (uint32_t)slices;
	enum weft_status st = allocate(env, &p);
	if (st != WEFT_OK) {
		goto fail;
	}
	cut(job, &p);
	st = deal_slices(env, &p);
	if (st != WEFT_OK) {
		goto fail;
	}
	group_by_lane(&p);
	st = check_lanes(job, &p);
	if (st != WEFT_OK) {
		goto fail;
	}
	*out = p;
	return WEFT_OK;
fail:
	wf_placement_fini(env, &p);
	return st;
}

void
wf_placement_fini(struct wf_env *env, struct wf_placement *p)
{
	wf_free(env, p->slice, p->slice_count * sizeof(p->slice[0]));
	wf_free(env, p->lane_slice, p->slice_count * sizeof(p->lane_slice[0]));
	wf_free(env, p->tensor_first, (p->tensor_count + 1u) * sizeof(p->tensor_first[0]));
	wf_free(env, p->lane_first, (p->lane_count + 1u) * sizeof(p->lane_first[0]));
	wf_free(env, p->lane_elements, p->lane_count * sizeof(p->lane_elements[0]));
	*p = (struct wf_placement){0};
}

static void
put_slice(struct wf_writer *w, const struct wf_slice *slice)
{
	wf_put_u32(w, slice->tensor);
	wf_put_u32(w, slice->lane);
	wf_put_u32(w, slice->on_lane);
	wf_put_u64(w, slice->first);
	wf_put_u64(w, slice->count);
}

/* A chain: digest of (digest so far, up to DIGEST_SLICES slices), beginning with the counts. */
uint64_t
wf_placement_digest(const struct wf_placement *p)
{
	uint8_t bytes[sizeof(uint64_t) + DIGEST_SLICES * DIGEST_SLICE_BYTES];
	struct wf_writer w = {.base = bytes, .capacity = sizeof(bytes)};

	wf_put_u32(&w, p->lane_count);
	wf_put_u32(&w, p->tensor_count);
	wf_put_u32(&w, p->slice_count);
	uint64_t digest = wf_digest_of(bytes, w.used);
	for (uint32_t s = 0; s < p->slice_count;) {
		w.used = 0;
		wf_put_u64(&w, digest);
		for (uint32_t i = 0; i < DIGEST_SLICES && s < p->slice_count; i++, s++) {
			put_slice(&w, &p->slice[s]);
		}
		WF_ASSERT(!w.bad);
		digest = wf_digest_of(bytes, w.used);
	}
	return digest;
}
