/* SPDX-License-Identifier: Apache-2.0 */
/* line: a counter on its own cache line, which one process counts up and another one polls: two
 * processes meet by it in shared memory. What was written before a count is published is visible to
 * a reader of that count. Thread: one writes, one reads. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define WF_LINE_BYTES 128u /* two lines: a processor may fetch the neighbour */

struct wf_line {
	/* L1: wf_line_publish: store release; wf_line_read: load acquire. */
	_Alignas(WF_LINE_BYTES) _Atomic uint64_t count;
};

static inline void
wf_line_publish(struct wf_line *line, uint64_t count)
{
	atomic_store_explicit(&line->count, count, memory_order_release); /* L1 */
}

static inline uint64_t
wf_line_read(const struct wf_line *line)
{
	return atomic_load_explicit(&line->count, memory_order_acquire); /* L1 */
}

/* Spins until the count is at least `count`, and returns it. */
static inline uint64_t
wf_line_await(const struct wf_line *line, uint64_t count)
{
	uint64_t now;
	do {
		now = wf_line_read(line);
	} while (now < count);
	return now;
}
