/* SPDX-License-Identifier: Apache-2.0 */
/* beats: heartbeats that show whether the other end of a connection is running (takes turns). A
 * process that is stopped, swapped out or starved keeps its connections, and its peers wait for it.
 * An end that waits and has received nothing for half a second sends a question, which only a turn
 * of the other end can answer. There is one open question at a time, so that they do not pile up,
 * and none while traffic flows.
 *
 * Silence is measured from when the question could have reached the other end, which is when its
 * SEND was DONE. While it is still queued behind other operations, any operation that is DONE shows
 * that the other end accepts data. If none is, the log says that it accepts nothing: it may be
 * stopped, or the network may be.
 *
 * Silence is counted in the turns of the end that asks, so that an end that was itself stopped, or
 * had no CPU, accuses nobody. Its clock advances at each look by at most a second.
 *
 * Thread: the one that owns the connection. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"

/* The cookie of a question's SEND, and of no other operation. */
#define WF_BEAT_COOKIE UINT64_MAX

/* Zero: not looked at yet. */
struct wf_beat_clock {
	uint64_t turns_ns; /* time in which this end took turns */
	uint64_t look_ns;  /* the env's time at the last look */
};

/* What is known about one peer on one path. Zero when the path begins. */
struct wf_beat {
	bool heard;        /* something has arrived since the last look, */
	bool moved;        /* or something was sent, and the question not before it */
	bool left;         /* the open question was sent */
	bool ask_due;      /* a question has to be sent */
	bool answer_due;   /* an answer has to be sent */
	bool itself;       /* it has a thread that takes turns */
	uint32_t pid;      /* the peer's; 0: not known yet */
	uint64_t heard_ns; /* the last arrival, by the clock of turns */
	uint64_t asked_ns; /* when the open question was asked, by the same clock; 0: none is */
};

/* Whether the cookie belongs to an operation that is not a question. */
static inline bool
wf_beat_is_other(uint64_t cookie)
{
	return cookie - 1 < WF_BEAT_COOKIE - 1;
}

/* An operation of the path is DONE. Operations that are lost with the path may be counted too: a
 * new path begins from zero. */
static inline void
wf_beat_done(struct wf_beat *beat, uint64_t cookie)
{
	if (!beat->left) {
		beat->moved = true;
		beat->left = cookie == WF_BEAT_COOKIE;
	}
}

/* Whether a question or an answer has to be sent. */
static inline bool
wf_beat_speaks(const struct wf_beat *beat)
{
	return beat->ask_due || beat->answer_due;
}

/* Begins a path, with a question. */
void wf_beat_begin(struct wf_beat *beat, const struct wf_beat_clock *clock);
/* Advances the clock; called before the looks of a turn, a few times a second. */
void wf_beat_clock_look(struct wf_beat_clock *clock, uint64_t now_ns);
/* Whether a question has become due. `waits`: somebody waits for this peer. */
bool wf_beat_look(struct wf_beat *beat, const struct wf_beat_clock *clock, bool waits);
/* How long the peer has not answered; 0: there is no open question. */
uint64_t wf_beat_silent_ns(const struct wf_beat *beat, const struct wf_beat_clock *clock);
/* "has not taken a turn", or "has taken nothing in" while the question is still queued. */
const char *wf_beat_lacks(const struct wf_beat *beat);
/* Whether it has been silent for long enough to be named in the log. */
bool wf_beat_is_silent(const struct wf_beat *beat, const struct wf_beat_clock *clock);
/* The same; writes " has not taken a turn for 4 s" to `out`. */
bool wf_beat_describe(const struct wf_beat *beat, const struct wf_beat_clock *clock, char *out,
		      size_t bytes);
