/* SPDX-License-Identifier: Apache-2.0 */
/* seqlock: a record that one thread writes now and then, and that any thread may read without ever
 * making the writer wait. A reader that meets a write tries again, so what it gets was written in
 * one piece.
 *
 * Orders. L1: a reader that loads a word with acquire, and finds one that a later write has stored
 * with release, sees that write's odd version afterwards, and drops the copy. L2: a reader that
 * loads the even version with acquire sees all words of the write that has stored it.
 * Thread: one writes; any may read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wf_seqlock {
	_Atomic uint64_t version; /* odd: a write is under way; 0: nothing was written yet */
};

/* Copies `count` words. The writer's thread. */
void wf_seqlock_write(struct wf_seqlock *lock, _Atomic uint64_t *to, const uint64_t *from,
		      size_t count);
/* Copies `count` words as one write has left them. False: nothing was written yet, or the writer
 * was in the way each time; `out` is undefined then. */
bool wf_seqlock_read(const struct wf_seqlock *lock, const _Atomic uint64_t *from, uint64_t *out,
		     size_t count);
