/* SPDX-License-Identifier: Apache-2.0 */
/* window: the slots that a lane has granted to a trainer on one path, as the trainer sees them:
 * which are free, and which push holds each of the others. Any free slot will do, so they are a
 * stack.
 *
 * The holder of a slot keeps the slot's number in a word of its own (`held`), whose address the
 * window keeps. So CREDIT, which names slots, finds the holder and clears its word, and an answer,
 * which names the holder, finds the slot. One word may hold several slots, for example for a push
 * of rows: it has the number of the last one, and the slots are freed by CREDIT or all together.
 *
 *     on     | function               | free                     | held
 *     -------+------------------------+--------------------------+-------------------------
 *     GRANT  | wf_send_window_open    | all                      |
 *     PUT    | wf_send_window_claim   | one less: the last freed | one more
 *     answer | wf_send_window_release | one more                 | one less
 *     CREDIT | wf_send_window_credit  | more                     | less
 *     DOWN   | wf_send_window_forget  | none: there are no slots | none: their words are cleared
 *
 * Thread: the session's core. */
#pragma once

#include "base/assert.h"
#include "base/env.h"
#include "transport/transport.h"
#include "wire/messages.h"

/* Zero at first. */
struct wf_send_window {
	struct wf_grant_key key;
	uint32_t slot_count; /* 0: nothing is granted on this path */
	uint32_t free_count;
	uint32_t *free;  /* [capacity] stack of slots */
	uint32_t **held; /* [capacity] the holder's word, by slot; NULL: it is free */
	uint32_t capacity;
	bool announced; /* pushes of steps have to be announced first */
};

/* Opens the window with the lane's GRANT. Memory is allocated with the first one, and again only if
 * a lane grants more slots than before. WEFT_PROTOCOL: it does not grant slots, or is not the first
 * on its path. WEFT_NOMEM. */
enum weft_status wf_send_window_open(struct wf_send_window *window, struct wf_env *env,
				     const struct wf_msg_grant *msg) WEFT_MUST_CHECK;
/* Frees the memory. */
void wf_send_window_close(struct wf_send_window *window, struct wf_env *env);
/* CREDIT: the lane does not need the contents of these slots any more. WEFT_PROTOCOL: one of them
 * is not held; those before it are free. */
enum weft_status wf_send_window_credit(struct wf_send_window *window,
				       const struct wf_msg_credit *msg) WEFT_MUST_CHECK;
/* DOWN: there are no slots. Every holder's word becomes WF_SLOT_NONE. */
void wf_send_window_forget(struct wf_send_window *window);
/* Frees all slots that are held by this word. */
void wf_send_window_release_all(struct wf_send_window *window, const uint32_t *held);

static inline bool
wf_send_window_is_open(const struct wf_send_window *window)
{
	return window->slot_count > 0;
}

/* The slot that will be claimed after `ahead` others; below free_count. */
static inline uint32_t
wf_send_window_next(const struct wf_send_window *window, uint32_t ahead)
{
	return window->free[window->free_count - 1 - ahead];
}

/* The next slot has been PUT into; its number is in `*held` until it is free. */
static inline void
wf_send_window_claim(struct wf_send_window *window, uint32_t *held)
{
	uint32_t slot = window->free[--window->free_count];
	window->held[slot] = held;
	*held = slot;
}

/* The slot has another holder from now on. */
static inline void
wf_send_window_pass_on(struct wf_send_window *window, uint32_t slot, uint32_t *to)
{
	window->held[slot] = to;
}

static inline void
wf_send_window_free_slot(struct wf_send_window *window, uint32_t slot)
{
	WF_SLOW_ASSERT(window->free_count < window->slot_count);
	window->held[slot] = NULL;
	window->free[window->free_count++] = slot;
}

/* Frees the slot that `*held` names, if any. */
static inline void
wf_send_window_release(struct wf_send_window *window, uint32_t *held)
{
	if (*held != WF_SLOT_NONE) {
		wf_send_window_free_slot(window, *held);
		*held = WF_SLOT_NONE;
	}
}
