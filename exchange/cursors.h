/* SPDX-License-Identifier: Apache-2.0 */
/* cursors: how RESUME and HAVE cover the units of a lane, from the first to the last, in as many
 * messages as are needed (struct wf_msg_steps). The end that sends one of the two and the end that
 * receives it each keep a cursor:
 *
 *     wf_cursor_begin(&cursor, units);                  a path begins: parts are to be sent
 *     while (wf_cursor_is_open(&cursor)) {
 *             wf_cursor_fill(&cursor, msg);             first, count and last of the next part
 *             ... msg->step, and msg->step_of[i] of unit msg->first + i ...
 *             if (!send(msg)) {
 *                     break;                            the transport accepts no more now
 *             }
 *             wf_cursor_advance(&cursor, msg);
 *     }
 *
 *     wf_cursor_begin(&cursor, units);                  a path begins: parts will be received
 *     status = wf_cursor_recv(&cursor, "RESUME", msg);  if it is the next part, the cursor moves
 *                                                       past it
 *
 * For a lane without units one message is sent and received, which is the last. Thread: the end's.
 */
#pragma once

#include "base/status.h"
#include "wire/messages.h"

/* Zero: nothing is to be sent or received. */
struct wf_cursor {
	uint32_t next;  /* the unit that the next part begins with */
	uint32_t count; /* number of units of the lane */
	bool open;      /* the last part has not been sent or received */
};

static inline void
wf_cursor_begin(struct wf_cursor *cursor, uint32_t count)
{
	*cursor = (struct wf_cursor){.count = count, .open = true};
}

/* The path has ended. */
static inline void
wf_cursor_end(struct wf_cursor *cursor)
{
	*cursor = (struct wf_cursor){0};
}

static inline bool
wf_cursor_is_open(const struct wf_cursor *cursor)
{
	return cursor->open;
}

/* Fills in first, count and last of the next part of an open cursor; the rest is zeroed. */
void wf_cursor_fill(const struct wf_cursor *cursor, struct wf_msg_steps *out);
/* This part was sent. */
void wf_cursor_advance(struct wf_cursor *cursor, const struct wf_msg_steps *part);
/* A part was received. WEFT_PROTOCOL, with the cursor unchanged: it is not the next part. `name`:
 * the message's name, for the text. */
enum weft_status wf_cursor_recv(struct wf_cursor *cursor, const char *name,
				const struct wf_msg_steps *part) WEFT_MUST_CHECK;
