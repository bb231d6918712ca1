/* SPDX-License-Identifier: Apache-2.0 */
/* beats: does the other end of a connection take turns? A process that is stopped, swapped out or
 * starved keeps its connections, and is waited for. Who waits, and has heard nothing for half a
 * second, asks by a message that nothing but the other end's own turn answers: one question at a
 * time, so that an end which takes nothing in is not heaped up with them, and none while traffic
 * flows.
 *
 * Silence lasts from when the question could have reached the other end: from when it was DONE,
 * that is, when the medium had taken it. As long as it is not, behind what was to leave before it,
 * any operation that is DONE shows that something is taken in; when none is, that is what is said
 * of the other end, which may be stopped, or behind a network that is.
 *
 * What is silent is counted in the turns of the end that asks: one that was stopped itself, or had
 * no CPU, accuses nobody. Its clock advances with each look, by a second at most.
 *
 * Thread: the one that owns the connection. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"

/* Of the SEND of a question; no other operation has it. */
#define WF_BEAT_COOKIE UINT64_MAX

/* Zero: not looked at yet. */
struct wf_beat_clock {
	uint64_t turns_ns; /* time in which this end took turns */
	uint64_t look_ns;  /* the env's, at the last look */
};

/* What is known of one peer on one path. Zero at its begin. */
struct wf_beat {
	bool heard;        /* something has come since the last look, */
	bool moved;        /* or something has left, and the question not before */
	bool left;         /* the question that is open */
	bool ask_due;      /* to be sent, as is an answer */
	bool answer_due;   /* it has asked */
	bool itself;       /* it has said that it takes turns by itself */
	uint32_t pid;      /* as it has said; 0: not yet */
	uint64_t heard_ns; /* by the clock of turns, as is */
	uint64_t asked_ns; /* since when the open question is unanswered; 0: none is open */
};

/* A cookie that means something, and not to beats. */
static inline bool
wf_beat_is_other(uint64_t cookie)
{
	return cookie - 1 < WF_BEAT_COOKIE - 1;
}

/* An operation of the path is DONE. What is lost with its path may count, too: a path that begins
 * forgets it. */
static inline void
wf_beat_done(struct wf_beat *beat, uint64_t cookie)
{
	if (!beat->left) {
		beat->moved = true;
		beat->left = cookie == WF_BEAT_COOKIE;
	}
}

/* There is something to be sent. */
static inline bool
wf_beat_speaks(const struct wf_beat *beat)
{
	return beat->ask_due || beat->answer_due;
}

/* A path begins, and with it a question. */
void wf_beat_begin(struct wf_beat *beat, const struct wf_beat_clock *clock);
/* Before the looks of one turn. Fit to be called some times a second. */
void wf_beat_clock_look(struct wf_beat_clock *clock, uint64_t now_ns);
/* Is a question to be sent that was not due before? `waits`: somebody waits for this peer. */
bool wf_beat_look(struct wf_beat *beat, const struct wf_beat_clock *clock, bool waits);
/* For so long it has not answered; 0: nobody asks. */
uint64_t wf_beat_silent_ns(const struct wf_beat *beat, const struct wf_beat_clock *clock);
/* "has not taken a turn", or "has taken nothing in": the question waits for its turn to leave. */
const char *wf_beat_lacks(const struct wf_beat *beat);
/* It is silent for long enough to be named. */
bool wf_beat_is_silent(const struct wf_beat *beat, const struct wf_beat_clock *clock);
/* The same. Into `out`: " has not taken a turn for 4 s". */
bool wf_beat_describe(const struct wf_beat *beat, const struct wf_beat_clock *clock, char *out,
		      size_t bytes);
