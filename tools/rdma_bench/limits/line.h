/* SPDX-License-Identifier: Apache-2.0 */
/* line: a counter on a cache line of its own, which one process counts up and another one polls:
 * how two processes meet in shared memory. What was written before a count is published is there
 * for who has read that count. Thread: one that writes, one that reads. */
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

/* Spin until it is `count` or more; what it is then. */
static inline uint64_t
wf_line_await(const struct wf_line *line, uint64_t count)
{
	uint64_t now;
	do {
		now = wf_line_read(line);
	} while (now < count);
	return now;
}
