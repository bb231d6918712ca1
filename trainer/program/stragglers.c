/* SPDX-License-Identifier: Apache-2.0 */
/* Which trainers kept the others of a pass waiting, like the original's barrier statistics, and the
 * lag of each trainer's pushes where they are applied as they arrive. The lanes count since the job
 * began, so a pass is the difference. Thread: the session's owner. */
#include "trainer/program/stragglers.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/status.h"

#define LINES_MAX 8u /* trainers reported, each in a line */

enum weft_status
wf_stragglers_init(struct wf_env *env, uint32_t trainer_count, struct wf_stragglers *out)
{
	struct wf_stragglers s = {.trainer_count = trainer_count};

	s.before = wf_zalloc_array(env, trainer_count, sizeof(*s.before));
	s.now = wf_zalloc_array(env, trainer_count, sizeof(*s.now));
	if (s.before == NULL || s.now == NULL) {
		wf_stragglers_fini(env, &s);
		return wf_fail(WEFT_NOMEM, "no memory for statistics of %u trainers",
			       trainer_count);
	}
	*out = s;
	return WEFT_OK;
}

void
wf_stragglers_fini(struct wf_env *env, struct wf_stragglers *s)
{
	wf_free(env, s->before, s->trainer_count * sizeof(*s->before));
	wf_free(env, s->now, s->trainer_count * sizeof(*s->now));
	*s = (struct wf_stragglers){0};
}

/* Of two trainers, the one that is reported first: waited for longer, or dropped more often. */
static bool
comes_first(const struct wf_stragglers *s, uint32_t a, uint32_t b)
{
	const struct weft_trainer_stats *x = &s->before[a];
	const struct weft_trainer_stats *y = &s->before[b];

	if (x->behind_next_ns != y->behind_next_ns) {
		return x->behind_next_ns > y->behind_next_ns;
	}
	if (x->slices_discarded != y->slices_discarded) {
		return x->slices_discarded > y->slices_discarded;
	}
	return x->lag_sum != y->lag_sum ? x->lag_sum > y->lag_sum : a < b;
}

static double
mean(uint64_t sum, uint64_t count)
{
	return count > 0 ? (double)sum / (double)count : 0;
}

/* `of`: the counts of this pass, except for the greatest lag, which is that of the job. */
static void
write_lines(struct wf_env *env, const struct weft_trainer_stats *of, uint64_t pass,
	    uint32_t trainer)
{
	if (of->lane_steps > 0) {
		wf_log(env, WF_LOG_INFO,
		       "pass %" PRIu64 ": straggler trainer %u: last %" PRIu64 " of %" PRIu64
		       " behind_next_ms %.3f behind_first_ms %.3f compute_ms %.3f network_ms %.3f",
		       pass, trainer, of->last, of->lane_steps,
		       mean(of->behind_next_ns, of->last) / 1e6,
		       mean(of->behind_first_ns, of->last) / 1e6,
		       mean(of->compute_ns, of->split_steps) / 1e6,
		       mean(of->network_ns, of->split_steps) / 1e6);
	}
	const uint64_t pushed = of->slices_applied + of->slices_discarded;
	if (pushed > 0) {
		wf_log(env, WF_LOG_INFO,
		       "pass %" PRIu64 ": lag of trainer %u: slices_applied %" PRIu64
		       " slices_discarded %" PRIu64 " lag_mean %.2f lag_max_of_job %" PRIu64,
		       pass, trainer, of->slices_applied, of->slices_discarded,
		       mean(of->lag_sum, pushed), of->lag_max);
	}
}

/* `before` becomes the difference now - before. */
static void
subtract(struct wf_stragglers *s)
{
	for (uint32_t t = 0; t < s->trainer_count; t++) {
		struct weft_trainer_stats *then = &s->before[t];
		const struct weft_trainer_stats *now = &s->now[t];
		*then = (struct weft_trainer_stats){
			.lane_steps = now->lane_steps - then->lane_steps,
			.apply_ns = now->apply_ns - then->apply_ns,
			.last = now->last - then->last,
			.behind_next_ns = now->behind_next_ns - then->behind_next_ns,
			.behind_first_ns = now->behind_first_ns - then->behind_first_ns,
			.split_steps = now->split_steps - then->split_steps,
			.compute_ns = now->compute_ns - then->compute_ns,
			.network_ns = now->network_ns - then->network_ns,
			.slices_applied = now->slices_applied - then->slices_applied,
			.slices_discarded = now->slices_discarded - then->slices_discarded,
			.lag_sum = now->lag_sum - then->lag_sum,
			.lag_max = now->lag_max,
		};
	}
}

static void
write_table(struct wf_env *env, const struct wf_stragglers *s, uint64_t pass)
{
	const struct weft_trainer_stats *lanes = &s->before[0]; /* the same of all trainers */
	uint32_t told = UINT32_MAX;

	if (lanes->lane_steps > 0) {
		wf_log(env, WF_LOG_INFO,
		       "pass %" PRIu64 ": stragglers: lane_steps %" PRIu64 " apply_ms %.3f", pass,
		       lanes->lane_steps, mean(lanes->apply_ns, lanes->lane_steps) / 1e6);
	}
	for (unsigned line = 0; line < LINES_MAX && line < s->trainer_count; line++) {
		uint32_t next = UINT32_MAX;
		for (uint32_t t = 0; t < s->trainer_count; t++) {
			bool before = told != UINT32_MAX && !comes_first(s, told, t);
			if (!before && (next == UINT32_MAX || comes_first(s, t, next))) {
				next = t;
			}
		}
		WF_ASSERT(next != UINT32_MAX);
		write_lines(env, &s->before[next], pass, next);
		told = next;
	}
}

enum weft_status
wf_stragglers_report(struct wf_env *env, struct wf_stragglers *s, struct weft_session *session,
		     uint64_t pass)
{
	enum weft_status st = WEFT_OK;

	for (uint32_t t = 0; t < s->trainer_count && st == WEFT_OK; t++) {
		s->now[t].struct_bytes = sizeof(s->now[t]);
		st = weft_trainer_stats(session, t, &s->now[t]);
	}
	if (st != WEFT_OK) {
		return st;
	}
	subtract(s);
	write_table(env, s, pass);
	memcpy(s->before, s->now, s->trainer_count * sizeof(*s->now));
	return WEFT_OK;
}
