/* SPDX-License-Identifier: Apache-2.0 */
/* beats: see the header. */
#include "base/beats.h"

#include <stdio.h>

#define GAP_MAX_NS WF_NS_PER_S
#define ASK_AFTER_NS (WF_NS_PER_S / 2)
#define NAME_AFTER_NS WF_NS_PER_S

void
wf_beat_clock_look(struct wf_beat_clock *clock, uint64_t now_ns)
{
	if (clock->look_ns == 0) {
		clock->turns_ns = 1; /* 0 would mean no time */
	} else {
		uint64_t gap_ns = now_ns - clock->look_ns;
		clock->turns_ns += gap_ns < GAP_MAX_NS ? gap_ns : GAP_MAX_NS;
	}
	clock->look_ns = now_ns;
}

void
wf_beat_begin(struct wf_beat *beat, const struct wf_beat_clock *clock)
{
	uint64_t now_ns = clock->turns_ns > 0 ? clock->turns_ns : 1;
	*beat = (struct wf_beat){.ask_due = true, .heard_ns = now_ns, .asked_ns = now_ns};
}

bool
wf_beat_look(struct wf_beat *beat, const struct wf_beat_clock *clock, bool waits)
{
	if (beat->heard || beat->heard_ns == 0) {
		beat->heard = false;
		beat->heard_ns = clock->turns_ns;
		beat->asked_ns = 0;
		beat->left = false;
	} else if (beat->moved && beat->asked_ns != 0) {
		beat->asked_ns = clock->turns_ns;
	}
	beat->moved = false;
	if (!waits || beat->asked_ns != 0 || clock->turns_ns - beat->heard_ns < ASK_AFTER_NS) {
		return false;
	}
	beat->asked_ns = clock->turns_ns;
	/* An earlier question may have been sent, and was answered by other traffic. */
	beat->left = false;
	beat->ask_due = true;
	return true;
}

uint64_t
wf_beat_silent_ns(const struct wf_beat *beat, const struct wf_beat_clock *clock)
{
	bool news = beat->heard || beat->moved;
	bool waits = beat->asked_ns != 0 && !news && clock->turns_ns > beat->asked_ns;
	return waits ? clock->turns_ns - beat->asked_ns : 0;
}

const char *
wf_beat_lacks(const struct wf_beat *beat)
{
	return beat->left ? "has not taken a turn" : "has taken nothing in";
}

bool
wf_beat_is_silent(const struct wf_beat *beat, const struct wf_beat_clock *clock)
{
	return wf_beat_silent_ns(beat, clock) >= NAME_AFTER_NS;
}

bool
wf_beat_describe(const struct wf_beat *beat, const struct wf_beat_clock *clock, char *out,
		 size_t bytes)
{
	if (!wf_beat_is_silent(beat, clock)) {
		return false;
	}
	(void)snprintf(out, bytes, " %s for %llu s", wf_beat_lacks(beat),
		       (unsigned long long)(wf_beat_silent_ns(beat, clock) / WF_NS_PER_S));
	return true;
}
