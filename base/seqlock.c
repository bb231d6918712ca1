/* SPDX-License-Identifier: Apache-2.0 */
/* seqlock: see seqlock.h. */
#include "base/seqlock.h"

#include <stdatomic.h>

#define TRIES_MAX 1000u /* a write takes a microsecond or less */

void
wf_seqlock_write(struct wf_seqlock *lock, _Atomic uint64_t *to, const uint64_t *from, size_t count)
{
	uint64_t version = atomic_load_explicit(&lock->version, memory_order_relaxed); /* own */
	atomic_store_explicit(&lock->version, version + 1, memory_order_relaxed);      /* L1 */
	for (size_t i = 0; i < count; i++) {
		atomic_store_explicit(&to[i], from[i], memory_order_release); /* L1: try_read */
	}
	atomic_store_explicit(&lock->version, version + 2, memory_order_release); /* L2: try_read */
}

static bool
try_read(const struct wf_seqlock *lock, const _Atomic uint64_t *from, uint64_t *out, size_t count)
{
	uint64_t before =
		atomic_load_explicit(&lock->version, memory_order_acquire); /* L2: write */
	for (size_t i = 0; i < count; i++) {
		out[i] = atomic_load_explicit(&from[i], memory_order_acquire); /* L1: write */
	}
	uint64_t after = atomic_load_explicit(&lock->version, memory_order_relaxed); /* L1: write */
	return before != 0 && before % 2 == 0 && before == after;
}

bool
wf_seqlock_read(const struct wf_seqlock *lock, const _Atomic uint64_t *from, uint64_t *out,
		size_t count)
{
	for (unsigned i = 0; i < TRIES_MAX; i++) {
		if (try_read(lock, from, out, count)) {
			return true;
		}
	}
	return false;
}
