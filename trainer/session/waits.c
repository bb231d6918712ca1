/* SPDX-License-Identifier: Apache-2.0 */
/* waits: what a session waits for, since when, how that is logged, and when it has lasted too long.
 * Thread: the core's. */
#include "trainer/session/core.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "trainer/session/service.h"

/* Lanes have the same limit for all trainers to connect, and can report which one is missing and
 * why. */
#define LANES_FIRST_NS (2 * WF_NS_PER_S)

static uint64_t
tensors_since(const struct wf_core *core)
{
	return core->waits.tensors.oldest == NULL ? 0 : core->waits.tensors.oldest->since_ns;
}

/* GOODBYE is sent, and the lane answers when all trainers have sent theirs. */
static uint64_t
end_since(const struct wf_core *core)
{
	const struct wf_link *last = core->links.all[0];
	bool waits = last->ends_together && last->state != WF_LINK_LEFT;
	return waits ? core->end.last_leaving_ns : 0;
}

static uint64_t
waiting_since(const struct wf_core *core, enum wf_core_wait kind)
{
	if (core->start.initialised == (kind == WF_CORE_WAIT_START)) {
		return 0;
	}
	switch (kind) {
	case WF_CORE_WAIT_START:
		return core->end.started_ns;
	case WF_CORE_WAIT_TENSORS:
		return tensors_since(core);
	case WF_CORE_WAIT_SERVICE:
		return core->service.ops != NULL ? core->service.ops->waiting_since(core) : 0;
	case WF_CORE_WAIT_REDUCE:
		return core->reduce.since_ns;
	case WF_CORE_WAIT_OTHERS:
		return core->others.since_ns;
	case WF_CORE_WAIT_END:
		return end_since(core);
	}
	return 0;
}

bool
wf_core_waits(const struct wf_core *core)
{
	bool any = false;
	for (enum wf_core_wait kind = 0; kind < WF_CORE_WAIT_COUNT; kind++) {
		any = any || waiting_since(core, kind) != 0;
	}
	return any;
}

/* What is known of a lane that is not READY; whether somebody listens there is not, as long as the
 * first attempt lasts. */
static void
describe_link(const struct wf_link *link, char *out, size_t bytes)
{
	char who[WF_REASON_BYTES];
	wf_link_describe(link, who, sizeof(who));
	if (link->state == WF_LINK_GREETING) {
		(void)snprintf(out, bytes,
			       "%.160s has admitted this trainer, and has not sent what it has "
			       "of the job yet",
			       who);
	} else if (link->retry.why[0] != '\0') {
		(void)snprintf(out, bytes, "%.160s is not connected, last error: %.160s", who,
			       link->retry.why);
	} else {
		(void)snprintf(out, bytes,
			       "%.160s has not answered yet: it may be busy, a firewall may be in "
			       "the way, or the port may be another server's",
			       who);
	}
}

static bool
describe_absent(const struct wf_core *core, char *out, size_t bytes)
{
	for (uint32_t i = 0; i < core->links.count; i++) {
		const struct wf_link *link = core->links.all[i];
		if (link->state != WF_LINK_READY && link->state != WF_LINK_LEFT) {
			describe_link(link, out, bytes);
			return true;
		}
	}
	return false;
}

static const char *
whose_turn(bool pserver)
{
	return pserver ? "the pserver has not answered yet"
		       : "another trainer has not done its part yet";
}

static uint32_t
unpushed_tensor(const struct wf_core *core)
{
	uint32_t unpushed = UINT32_MAX;
	for (uint32_t t = 0; t < core->job.tensor_count; t++) {
		const struct wf_core_tensor *tensor = &core->flow.tensor[t];
		if (tensor->pending == 0 && tensor->pushed_step < core->step.number &&
		    !core->job.tensor[t].is_static) {
			unpushed = t;
		}
	}
	return unpushed;
}

static void
describe_tensors(const struct wf_core *core, char *out, size_t bytes)
{
	uint32_t oldest = wf_core_oldest_tensor(core);
	const struct wf_job_tensor *wanted = &core->job.tensor[oldest];
	/* What is pulled has arrived, except for the initial values. */
	bool pulled = core->start.initialised &&
		      core->flow.tensor[oldest].pushed_step < core->step.number;
	bool alone = core->job.set.num_gradient_servers == 1 || pulled ||
		     wf_job_terms_of(&core->job, wanted).mode == WEFT_DENSE_ASYNC;
	uint32_t unpushed = alone ? UINT32_MAX : unpushed_tensor(core);
	(void)snprintf(out, bytes, "step %" PRIu64 ", %.80s: %s", core->step.number, wanted->name,
		       whose_turn(alone));
	size_t used = strlen(out);
	if (unpushed != UINT32_MAX) {
		(void)snprintf(
			out + used, bytes - used,
			"; %.80s is not under way here: if another trainer waits for it before it "
			"pushes %.80s, both wait for ever",
			core->job.tensor[unpushed].name, wanted->name);
	}
}

static void
describe_own(const struct wf_core *core, enum wf_core_wait kind, char *out, size_t bytes)
{
	bool starts = kind == WF_CORE_WAIT_START;
	if (describe_absent(core, out, bytes) || wf_core_beats_describe(core, out, bytes)) {
		return;
	}
	if ((starts || kind == WF_CORE_WAIT_TENSORS) && core->waits.tensors.oldest != NULL) {
		describe_tensors(core, out, bytes);
		return;
	}
	if ((starts || kind == WF_CORE_WAIT_SERVICE) && core->service.ops != NULL &&
	    core->service.ops->describe_wait(core, out, bytes)) {
		return;
	}
	if (kind == WF_CORE_WAIT_END) {
		(void)snprintf(out, bytes,
			       "this trainer is done after step %" PRIu64
			       ", and another one has not ended the job yet",
			       core->step.number);
		return;
	}
	bool asks = kind == WF_CORE_WAIT_OTHERS;
	(void)snprintf(out, bytes, "step %" PRIu64 ", %s: %s", core->step.number,
		       asks ? "the statistics of a trainer" : "a reduce",
		       whose_turn(asks || core->job.set.num_gradient_servers == 1));
}

/* Why nothing moves, as seen by this trainer; and the lanes' reports of trainers that are
 * missing. */
static void
describe(const struct wf_core *core, enum wf_core_wait kind, char *out, size_t bytes)
{
	describe_own(core, kind, out, bytes);
	size_t used = strlen(out);
	wf_core_absent_describe(core, kind, out + used, bytes - used);
}

static uint64_t
limit_of(const struct wf_core *core, enum wf_core_wait kind)
{
	if (kind == WF_CORE_WAIT_END) {
		return 0; /* others may have many steps left; a lane that stands still is found */
	}
	if (kind != WF_CORE_WAIT_START) {
		return core->opts.step_timeout_ns;
	}
	return core->opts.connect_timeout_ns + (core->start.all_were_up ? LANES_FIRST_NS : 0);
}

static void
log_wait(struct wf_core *core, enum wf_core_wait kind, uint64_t lasts_ns)
{
	uint64_t limit_ns = limit_of(core, kind);
	char why[WF_ERROR_BYTES];
	char limit[48] = "";
	describe(core, kind, why, sizeof(why));
	if (limit_ns != 0) {
		(void)snprintf(limit, sizeof(limit), " of at most %.0f s", (double)limit_ns / 1e9);
	}
	wf_core_log(core, WEFT_LOG_WARN, "trainer %u waits, %.0f s%s: %s", core->opts.trainer_id,
		    (double)lasts_ns / 1e9, limit, why);
}

void
wf_core_check_waits(struct wf_core *core, uint64_t now)
{
	for (enum wf_core_wait kind = 0; kind < WF_CORE_WAIT_COUNT; kind++) {
		uint64_t since = waiting_since(core, kind);
		/* Events that arrived while nothing was polled (a driving caller computes, or the
		 * process was stopped) may take more than one turn to be handled. */
		since = since != 0 && since < core->waits.back_ns ? core->waits.back_ns : since;
		uint64_t limit_ns = limit_of(core, kind);
		if (since != 0 && limit_ns != 0 && now >= since + limit_ns) {
			char why[WF_ERROR_BYTES];
			describe(core, kind, why, sizeof(why));
			wf_core_fail(core, WEFT_TIMEOUT, "no answer within %.1f s: %.400s",
				     (double)limit_ns / 1e9, why);
			return;
		}
		if (wf_wait_is_due(&core->waits.gate[kind], since, now)) {
			log_wait(core, kind, now - since);
		}
	}
}
