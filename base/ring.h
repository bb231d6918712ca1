/* SPDX-License-Identifier: Apache-2.0 */
/* ring: bounded queue of fixed-size items from one producer thread to one consumer thread.
 * Neither side ever waits: push on full and pop on empty return false. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"

struct wf_ring;

/* `item_count` is a power of two; `item_bytes` > 0. */
enum weft_status wf_ring_create(struct wf_env *env, size_t item_count, size_t item_bytes,
				struct wf_ring **out) WEFT_MUST_CHECK;
/* Accepts NULL. Neither side may use the ring any more. */
void wf_ring_destroy(struct wf_ring *ring);
/* Producer: copies one item in. Returns false if the ring is full. */
bool wf_ring_push(struct wf_ring *ring, const void *item);
/* Consumer: copies the oldest item out. Returns false if the ring is empty. */
bool wf_ring_pop(struct wf_ring *ring, void *item);
/* Either side: the answer may be out of date by the time it returns. */
bool wf_ring_is_empty(const struct wf_ring *ring);
