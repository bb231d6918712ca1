/* SPDX-License-Identifier: Apache-2.0 */
/* seating: see seating.h. */
#include "tools/launch/seating.h"

#include <stdio.h>

#include "base/assert.h"

enum weft_status
wf_seating_plan(const struct wf_topo *topo, const struct wf_seating_job *job,
		struct wf_seating *out)
{
	struct wf_seating s = {.env = topo->env, .process_count = job->pservers + job->trainers};
	s.process = wf_zalloc_array(s.env, s.process_count + 1u, sizeof(*s.process));
	if (s.process == NULL) {
		return wf_fail(WEFT_NOMEM, "seats: %u processes", s.process_count);
	}
	for (uint32_t i = 0; i < s.process_count; i++) {
		if (i < job->pservers) {
			s.process[i].dense = job->dense;
			s.process[i].sparse = job->sparse;
		} else {
			s.process[i].compute = job->compute;
			s.process[i].progress = job->progress;
		}
	}
	const struct wf_seat_ask ask = {.process = s.process,
					.process_count = s.process_count,
					.device = job->device,
					.port = job->port};
	s.seat_count = wf_seat_count(&ask);
	s.seat = wf_zalloc_array(s.env, s.seat_count + 1u, sizeof(*s.seat));
	enum weft_status st = s.seat != NULL ? wf_seats_plan(topo, &ask, s.seat, &s.share)
					     : wf_fail(WEFT_NOMEM, "%u seats", s.seat_count);
	if (st != WEFT_OK) {
		wf_seating_fini(&s);
		return st;
	}
	*out = s;
	return WEFT_OK;
}

void
wf_seating_fini(struct wf_seating *seating)
{
	struct wf_env *env = seating->env;
	wf_free(env, seating->process, (seating->process_count + 1u) * sizeof(*seating->process));
	wf_free(env, seating->seat, (seating->seat_count + 1u) * sizeof(*seating->seat));
	*seating = (struct wf_seating){.env = env};
}

enum weft_status
wf_seating_pin(const struct wf_seating *seating, uint32_t process, char *out, size_t bytes)
{
	size_t used = 0;
	WF_ASSERT(process < seating->process_count);
	(void)snprintf(out, bytes, "off");
	for (uint32_t i = 0; i < seating->seat_count; i++) {
		const struct wf_seat *seat = &seating->seat[i];
		if (seat->process != process || seat->cpu < 0) {
			continue;
		}
		int wrote =
			snprintf(out + used, bytes - used, "%s%d", used > 0 ? "," : "", seat->cpu);
		if (wrote < 0 || (size_t)wrote >= bytes - used) {
			return wf_fail(WEFT_INVALID,
				       "a list of the CPUs of one process is longer "
				       "than %zu bytes; give fewer lanes or threads",
				       bytes);
		}
		used += (size_t)wrote;
	}
	return WEFT_OK;
}
