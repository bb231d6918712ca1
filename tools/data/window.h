/* SPDX-License-Identifier: Apache-2.0 */
/* window: records that are collected and given back in an order that a seed decides. Thread: the
 * caller's. */
#pragma once

#include "base/env.h"
#include "trainer/readers/payload.h"

struct wf_window_entry {
	size_t at, count; /* of a record in the bytes */
};

/* Start with {.env, .bytes_max, .seed}. */
struct wf_window {
	struct wf_env *env;
	uint64_t bytes_max; /* of records, and of what is kept of each beside it */
	uint64_t seed;
	uint64_t number; /* of this window, from 0 */
	struct wf_bytes bytes;
	struct wf_window_entry *entry; /* [room] */
	size_t count, room;
};

/* Whether a record of this length would make the window larger than it may be. */
bool wf_window_is_full(const struct wf_window *window, size_t count);
/* WEFT_NOMEM */
enum weft_status wf_window_add(struct wf_window *window,
			       const struct wf_record *record) WEFT_MUST_CHECK;
/* Draws the order of what is in it. */
void wf_window_shuffle(struct wf_window *window);
/* Entry `i`, in that order. */
struct wf_record wf_window_record(const struct wf_window *window, size_t i);
/* Empties it, and goes on to the next window. */
void wf_window_next(struct wf_window *window);
void wf_window_fini(struct wf_window *window);
