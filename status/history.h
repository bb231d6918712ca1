/* SPDX-License-Identifier: Apache-2.0 */
/* history: the last five minutes of a pserver, a point for each second. Thread: the owner's. */
#pragma once

#include "status/emit.h"
#include "status/summary.h"

#define WF_HISTORY_POINTS 300u

struct wf_history_point {
	double steps_per_s, received_per_s, sent_per_s, pulled_per_s, pushed_per_s;
	double compute_ms, network_ms, own_ms, ahead_ms, apply_ms; /* NAN: not known */
};

struct wf_history {
	struct wf_history_point point[WF_HISTORY_POINTS];
	uint64_t count; /* points ever added; the last WF_HISTORY_POINTS are kept */
};

void wf_history_add(struct wf_history *history, const struct wf_summary *summary);
/* "history": {"period_s": 1, "steps_per_s": [...], ...}, the oldest first. */
void wf_history_emit(const struct wf_history *history, struct wf_emit *emit);
