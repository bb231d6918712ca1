/* SPDX-License-Identifier: Apache-2.0 */
/* ring: one producer, one consumer, no lock. Each side caches the other's index, and reads it again
 * only when the ring seems full (empty): a busy ring costs no shared cache line per item. Thread:
 * push on one thread, pop on one; create and destroy while neither runs. */
#include "base/ring.h"

#include <stdatomic.h>
#include <string.h>

#include "base/assert.h"

#define CACHE_LINE_BYTES 64

/* Indices grow without end and wrap with size_t; an item's place is index & mask. */
struct wf_ring {
	/* Fixed at creation. */
	struct wf_env *env;
	size_t mask; /* item_count - 1 */
	size_t item_bytes;
	size_t own_bytes; /* of this allocation */

	/* Owner: producer. */
	_Alignas(CACHE_LINE_BYTES) _Atomic size_t tail; /* next to write; read by the consumer */
	size_t head_seen;                               /* last value read from head */

	/* Owner: consumer. */
	_Alignas(CACHE_LINE_BYTES) _Atomic size_t head; /* next to read; read by the producer */
	size_t tail_seen;                               /* last value read from tail */

	/* Passed from producer to consumer by tail, and back by head. */
	_Alignas(CACHE_LINE_BYTES) unsigned char items[]; /* [mask + 1][item_bytes] */
};

enum weft_status
wf_ring_create(struct wf_env *env, size_t item_count, size_t item_bytes, struct wf_ring **out)
{
	if (item_count == 0 || (item_count & (item_count - 1)) != 0) {
		return wf_fail(WEFT_INVALID, "ring: %zu items, must be a power of two", item_count);
	}
	if (item_bytes == 0) {
		return wf_fail(WEFT_INVALID, "ring: items of 0 bytes");
	}
	size_t bytes = 0;
	if (__builtin_mul_overflow(item_count, item_bytes, &bytes) ||
	    __builtin_add_overflow(bytes, sizeof(struct wf_ring), &bytes)) {
		return wf_fail(WEFT_NOMEM, "ring: %zu items of %zu bytes", item_count, item_bytes);
	}
	struct wf_ring *ring = wf_zalloc(env, bytes);
	if (ring == NULL) {
		return wf_fail(WEFT_NOMEM, "ring: %zu items of %zu bytes", item_count, item_bytes);
	}
	ring->env = env;
	ring->mask = item_count - 1;
	ring->item_bytes = item_bytes;
	ring->own_bytes = bytes;
	*out = ring;
	return WEFT_OK;
}

void
wf_ring_destroy(struct wf_ring *ring)
{
	if (ring != NULL) {
		wf_free(ring->env, ring, ring->own_bytes);
	}
}

bool
wf_ring_push(struct wf_ring *ring, const void *item)
{
	/* relaxed: only this thread writes tail */
	size_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	if (tail - ring->head_seen > ring->mask) {
		/* R1: pop's release; the place is read out before it is written again */
		ring->head_seen = atomic_load_explicit(&ring->head, memory_order_acquire);
		if (tail - ring->head_seen > ring->mask) {
			return false;
		}
	}
	memcpy(ring->items + (tail & ring->mask) * ring->item_bytes, item, ring->item_bytes);
	/* R2: pop's acquire, and is_empty's */
	atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
	return true;
}

bool
wf_ring_pop(struct wf_ring *ring, void *item)
{
	/* relaxed: only this thread writes head */
	size_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	if (head == ring->tail_seen) {
		/* R2: push's release; the item's bytes are there */
		ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
		if (head == ring->tail_seen) {
			return false;
		}
	}
	memcpy(item, ring->items + (head & ring->mask) * ring->item_bytes, ring->item_bytes);
	/* R1: push's acquire */
	atomic_store_explicit(&ring->head, head + 1, memory_order_release);
	return true;
}

bool
wf_ring_is_empty(const struct wf_ring *ring)
{
	/* R2: push's release, so that a consumer that saw "not empty" pops an item. Head first: if
	 * it moves in between, the answer errs towards "not empty". */
	size_t head = atomic_load_explicit(&ring->head, memory_order_acquire); /* R1 */
	size_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire); /* R2 */
	return head == tail;
}
