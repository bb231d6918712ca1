/* SPDX-License-Identifier: Apache-2.0 */
/* pushes: see pushes.h. Thread: main. */
#include "tools/trace/pushes.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

static int
compare(const void *a_arg, const void *b_arg)
{
	const struct wf_pushed *a = a_arg;
	const struct wf_pushed *b = b_arg;
	if (a->step != b->step) {
		return a->step < b->step ? -1 : 1;
	}
	if (a->trainer != b->trainer) {
		return a->trainer < b->trainer ? -1 : 1;
	}
	if (a->lane != b->lane) {
		return a->lane < b->lane ? -1 : 1;
	}
	return a->slice < b->slice ? -1 : a->slice > b->slice;
}

static uint32_t
find_member(const struct wf_recording *recording, bool is_trainer, uint32_t pserver, uint32_t idx)
{
	for (uint32_t i = 0; i < recording->count; i++) {
		const struct wf_recording_member *member = &recording->member[i];
		if (member->is_trainer == is_trainer && member->pserver == pserver &&
		    member->idx == idx) {
			return i;
		}
	}
	return UINT32_MAX;
}

/* One entry for each POSTED of a trainer. */
static void
list_posted(const struct wf_recording *recording, struct wf_pushes *out)
{
	for (uint32_t t = 0; t < recording->count; t++) {
		const struct wf_recording_member *member = &recording->member[t];
		for (uint32_t i = 0; member->is_trainer && i < member->count; i++) {
			const struct wf_trace_event *event = &member->event[i];
			uint32_t lane = find_member(recording, false, event->peer >> 16,
						    event->peer & 0xffff);
			if (event->what == WF_TRACE_POSTED && lane != UINT32_MAX) {
				out->all[out->count++] = (struct wf_pushed){
					.step = event->step,
					.slice = event->slice,
					.trainer = t,
					.lane = lane,
					.bytes = event->value,
					.posted_ns = event->at_ns,
				};
			}
		}
	}
	if (out->count > 0) {
		qsort(out->all, out->count, sizeof(*out->all), compare);
	}
}

static struct wf_pushed *
find_push(const struct wf_pushes *pushes, uint32_t step, uint32_t trainer, uint32_t lane,
	  uint32_t slice)
{
	const struct wf_pushed key = {
		.step = step, .trainer = trainer, .lane = lane, .slice = slice};
	return pushes->count > 0 ? bsearch(&key, pushes->all, pushes->count, sizeof(key), compare)
				 : NULL;
}

static void
fill_of_trainer(struct wf_pushed *push, const struct wf_trace_event *event)
{
	if (event->what == WF_TRACE_QUEUED) {
		push->queued_ns = event->at_ns;
	} else if (event->what == WF_TRACE_SENT) {
		push->sent_ns = event->at_ns;
	} else if (event->what == WF_TRACE_ANSWERED) {
		push->answered_ns = event->at_ns;
	}
}

static void
fill_of_lane(struct wf_pushed *push, const struct wf_trace_event *event)
{
	if (event->what == WF_TRACE_ARRIVED) {
		push->arrived_ns = event->at_ns;
	} else if (event->what == WF_TRACE_PARKED) {
		push->parked_ns = event->at_ns;
	} else if (event->what == WF_TRACE_APPLIED) {
		push->applied_ns = event->at_ns;
	} else if (event->what == WF_TRACE_ANSWER_POSTED) {
		push->posted_back_ns = event->at_ns;
	}
}

static void
fill_for(const struct wf_pushes *pushes, const struct wf_trace_event *event, uint32_t trainer,
	 uint32_t lane, bool is_lane)
{
	struct wf_pushed *push = find_push(pushes, event->step, trainer, lane, event->slice);
	if (push != NULL) {
		(is_lane ? fill_of_lane : fill_of_trainer)(push, event);
	}
}

static void
fill_all(const struct wf_recording *recording, const struct wf_pushes *pushes)
{
	for (uint32_t m = 0; m < recording->count; m++) {
		const struct wf_recording_member *member = &recording->member[m];
		for (uint32_t i = 0; i < member->count; i++) {
			const struct wf_trace_event *event = &member->event[i];
			if (member->is_trainer) {
				uint32_t lane = find_member(recording, false, event->peer >> 16,
							    event->peer & 0xffff);
				fill_for(pushes, event, m, lane, false);
				continue;
			}
			for (uint32_t t = 0; t < recording->count; t++) {
				bool is_its = recording->member[t].is_trainer &&
					      (event->peer == WF_TRACE_ALL ||
					       event->peer == recording->member[t].idx);
				if (is_its) {
					fill_for(pushes, event, t, m, true);
				}
			}
		}
	}
}

static bool
is_whole(const struct wf_pushed *push)
{
	return push->queued_ns != 0 && push->arrived_ns != 0 && push->applied_ns != 0 &&
	       push->answered_ns != 0;
}

/* Steps are whole from the first to the last one that has as many pushes as the fullest, each
 * known. The rings begin at different times, and end so. */
static void
find_steps(struct wf_pushes *pushes, uint32_t steps)
{
	uint32_t most = 0;
	for (uint32_t i = 0, n; i < pushes->count; i += n) {
		for (n = 0; i + n < pushes->count && pushes->all[i + n].step == pushes->all[i].step;
		     n++) {
		}
		most = n > most ? n : most;
	}
	uint32_t run = 0; /* whole steps that follow each other, up to here */
	for (uint32_t i = 0, n; i < pushes->count; i += n) {
		bool whole = true;
		uint32_t step = pushes->all[i].step;
		for (n = 0; i + n < pushes->count && pushes->all[i + n].step == step; n++) {
			whole = whole && is_whole(&pushes->all[i + n]);
		}
		bool follows = run > 0 && step == pushes->end_step;
		if (whole && n == most) {
			pushes->seen_step = pushes->end_step == 0 ? step : pushes->seen_step;
			run = follows ? run + 1 : 1;
			pushes->end_step = step + 1;
			pushes->first_step = pushes->end_step - (run < steps ? run : steps);
		}
	}
}

/* From the first whole step to the last one, whole or not: what was posted, what was applied. */
static void
count_pushes(struct wf_pushes *pushes)
{
	for (uint32_t i = 0; i < pushes->count; i++) {
		const struct wf_pushed *push = &pushes->all[i];
		if (push->step >= pushes->seen_step && push->step < pushes->end_step) {
			pushes->posted++;
			pushes->applied += push->applied_ns != 0 ? 1 : 0;
		}
	}
}

enum weft_status
wf_pushes_find(const struct wf_recording *recording, struct wf_pushes *out)
{
	*out = (struct wf_pushes){.env = recording->env};
	uint32_t most = 1;
	for (uint32_t i = 0; i < recording->count; i++) {
		most += recording->member[i].is_trainer ? recording->member[i].count : 0;
	}
	out->all = wf_zalloc_array(recording->env, most, sizeof(*out->all));
	if (out->all == NULL) {
		return wf_fail(WEFT_NOMEM, "no memory for %u pushes", most);
	}
	out->capacity = most;
	list_posted(recording, out);
	fill_all(recording, out);
	find_steps(out, recording->steps);
	count_pushes(out);
	return WEFT_OK;
}

void
wf_pushes_fini(struct wf_pushes *pushes)
{
	wf_free(pushes->env, pushes->all, pushes->capacity * sizeof(*pushes->all));
	pushes->all = NULL;
	pushes->count = 0;
}
