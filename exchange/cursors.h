/* SPDX-License-Identifier: Apache-2.0 */
/* cursors: how RESUME and HAVE cover the units of a lane, from the first to the last, in as many
 * messages as it takes (struct wf_msg_steps). The end that sends one of the two and the end that
 * receives it each keep a cursor:
 *
 *     wf_cursor_begin(&cursor, units);                  a path begins: there is something to say
 *     while (wf_cursor_is_open(&cursor)) {
 *             wf_cursor_fill(&cursor, msg);             first, count and last of the next part
 *             ... msg->step, and msg->step_of[i] of unit msg->first + i ...
 *             if (!send(msg)) {
 *                     break;                            the transport takes no more: later
 *             }
 *             wf_cursor_advance(&cursor, msg);
 *     }
 *
 *     wf_cursor_begin(&cursor, units);                  a path begins: there is something to hear
 *     status = wf_cursor_recv(&cursor, "RESUME", msg);  it is the next part, and the cursor is
 *                                                       behind it
 *
 * Also a lane without units says and hears one message, which is the last. Thread: the end's. */
#pragma once

#include "base/status.h"
#include "wire/messages.h"

/* Zero: nothing is to be said or heard. */
struct wf_cursor {
	uint32_t next;  /* the unit that the next part begins with */
	uint32_t count; /* units of the lane */
	bool open;      /* the last part is still to come */
};

static inline void
wf_cursor_begin(struct wf_cursor *cursor, uint32_t count)
{
	*cursor = (struct wf_cursor){.count = count, .open = true};
}

/* The path is gone. */
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

/* The next part of an open cursor; all that it does not name is zero. */
void wf_cursor_fill(const struct wf_cursor *cursor, struct wf_msg_steps *out);
/* This part was sent. */
void wf_cursor_advance(struct wf_cursor *cursor, const struct wf_msg_steps *part);
/* A part was received. WEFT_PROTOCOL, with the cursor where it was: it is not the next one. `name`:
 * of the message. */
enum weft_status wf_cursor_recv(struct wf_cursor *cursor, const char *name,
				const struct wf_msg_steps *part) WEFT_MUST_CHECK;
