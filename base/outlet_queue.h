/* SPDX-License-Identifier: Apache-2.0 */
/* outlet_queue: lines that an outlet has not written yet, in a ring of bytes. Whole lines go in and
 * come out in order; what does not fit is dropped and counted, and so is what was popped and could
 * not be written. Positions are bytes of the queue's whole history, heads of lines included.
 * Thread: any, under the outlet's lock; wf_outlet_queue_put_at and _done_at also without it. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/outlet.h"

/* Lines that are written at a time. */
struct wf_outlet_batch {
	uint64_t dropped; /* lines, to be reported first */
	uint64_t lines;
	size_t bytes;
	char text[WF_OUTLET_LINE_BYTES];
};

/* Zero but for `text` and `bytes`, it is empty. */
struct wf_outlet_queue {
	char *text;   /* [bytes] the outlet's */
	size_t bytes; /* at least those of the longest line and its head */
	uint64_t popped_at;
	uint64_t dropped; /* lines since the last one that was put */
	uint64_t lost;    /* lines that were popped and not written, since the last pop */
	_Atomic uint64_t put_at;
	_Atomic uint64_t done_at; /* what lies before is written or lost */
};

/* What comes next begins at this byte. */
uint64_t wf_outlet_queue_put_at(const struct wf_outlet_queue *queue);
/* What lies before this byte is written or lost. */
uint64_t wf_outlet_queue_done_at(const struct wf_outlet_queue *queue);
/* The number of bytes that fit, WF_OUTLET_HEAD_BYTES of each line included. */
size_t wf_outlet_queue_room(const struct wf_outlet_queue *queue);
bool wf_outlet_queue_is_empty(const struct wf_outlet_queue *queue);
/* False: the line does not fit, and is counted as dropped. */
bool wf_outlet_queue_put(struct wf_outlet_queue *queue, const char *line, size_t bytes);
/* Whole lines, up to what a pipe accepts at once; a longer line alone. Where lines were dropped a
 * batch ends, because that is reported before the next. */
void wf_outlet_queue_pop(struct wf_outlet_queue *queue, struct wf_outlet_batch *batch);
/* The batch that was popped is written, but for `lost` lines of it, the dropped ones that it was to
 * report included. `all`: what is still in the queue is given up, too. */
void wf_outlet_queue_settle(struct wf_outlet_queue *queue, uint64_t lost, bool all);
