/* SPDX-License-Identifier: Apache-2.0 */
/* history: see history.h. */
#include "status/history.h"

#include <string.h>

#include "base/assert.h"

void
wf_history_add(struct wf_history *history, const struct wf_summary *summary)
{
	/* Without steps in this second there is no split of it, whatever it was before. */
	bool moves = summary->steps_per_s > 0;
	const double none = __builtin_nan("");
	history->point[history->count++ % WF_HISTORY_POINTS] = (struct wf_history_point){
		.steps_per_s = summary->steps_per_s,
		.received_per_s = summary->received_per_s + summary->sparse_received_per_s,
		.sent_per_s = summary->sent_per_s + summary->sparse_sent_per_s,
		.pulled_per_s = summary->pulled_per_s,
		.pushed_per_s = summary->pushed_per_s,
		.compute_ms = moves ? summary->split.compute_ms : none,
		.network_ms = moves ? summary->split.network_ms : none,
		.own_ms = moves ? summary->split.own_ms : none,
		.ahead_ms = moves ? summary->split.ahead_ms : none,
		.apply_ms = moves ? summary->split.apply_ms : none,
	};
}

void
wf_history_emit(const struct wf_history *history, struct wf_emit *emit)
{
	static const struct {
		const char *key;
		size_t at;
	} field[] = {
		{"steps_per_s", offsetof(struct wf_history_point, steps_per_s)},
		{"received_bytes_per_s", offsetof(struct wf_history_point, received_per_s)},
		{"sent_bytes_per_s", offsetof(struct wf_history_point, sent_per_s)},
		{"keys_pulled_per_s", offsetof(struct wf_history_point, pulled_per_s)},
		{"keys_pushed_per_s", offsetof(struct wf_history_point, pushed_per_s)},
		{"own_ms", offsetof(struct wf_history_point, own_ms)},
		{"compute_ms", offsetof(struct wf_history_point, compute_ms)},
		{"network_ms", offsetof(struct wf_history_point, network_ms)},
		{"ahead_ms", offsetof(struct wf_history_point, ahead_ms)},
		{"apply_ms", offsetof(struct wf_history_point, apply_ms)},
	};
	uint64_t kept = history->count < WF_HISTORY_POINTS ? history->count : WF_HISTORY_POINTS;
	wf_emit_open(emit, "history", '{');
	wf_emit_u64(emit, "period_s", 1);
	for (size_t i = 0; i < WF_ARRAY_COUNT(field); i++) {
		wf_emit_open(emit, field[i].key, '[');
		for (uint64_t at = history->count - kept; at < history->count; at++) {
			double value;
			const void *point = &history->point[at % WF_HISTORY_POINTS];
			memcpy(&value, (const char *)point + field[i].at, sizeof(value));
			wf_emit_f64(emit, NULL, value);
		}
		wf_emit_close(emit, ']');
	}
	wf_emit_close(emit, '}');
}
