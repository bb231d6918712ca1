/* SPDX-License-Identifier: Apache-2.0 */
/* begin: a session joins its job, at the start and in each next life, and waits until a failed one
 * is quiet. Thread: the owner's. */
#include "trainer/session/session.h"
#include "trainer/session/service.h"
#include "transport/rdma.h"
#include "transport/verbs/verbs_settings.h"

static enum weft_status
open_core(struct weft_session *session)
{
	struct wf_core *core = &session->core;
	char verbs[WF_RDMA_SETTINGS_BYTES]; /* for this trainer: the devices near its thread */
	enum weft_status st = wf_rdma_settings_for_lane(
		core->opts.verbs, core->opts.trainer_id,
		wf_pin_place_of(session->progress.pin, 0).numa_node, verbs);
	if (st == WEFT_OK) {
		session->core_open = true;
		st = wf_core_open(core, verbs);
	}
	if (st != WEFT_OK) {
		return st;
	}
	for (uint32_t i = 0; i < core->links.count; i++) {
		struct wf_link *link = core->links.all[i];
		uint32_t before = link->ops == &wf_dense_link_ops ? 0 : core->job.set.ports_num;
		link->host = session->pserver[link->pserver_idx];
		link->host.port = (uint16_t)(link->host.port + before + link->lane_idx);
	}
	st = core->service.ops != NULL ? core->service.ops->open(session) : WEFT_OK;
	return st != WEFT_OK ? st : wf_progress_open(session);
}

/* Trainer 0 gives the initial values; in a next life all lanes have others. */
static enum weft_status
exchange_values(struct weft_session *session)
{
	const struct wf_core *core = &session->core;
	bool gives = core->opts.trainer_id == 0 && !core->start.is_rejoin;
	return gives ? wf_restore_give(session) : weft_pull_all(session);
}

enum weft_status
wf_session_begin(struct weft_session *session)
{
	struct wf_core *core = &session->core;
	enum weft_status st = open_core(session);
	if (st != WEFT_OK) {
		return st;
	}
	session->running = true;
	session->within = core->start.is_rejoin ? "weft_session_rejoin" : "weft_session_start";
	atomic_store_explicit(&core->start.busy, 1, memory_order_relaxed);
	wf_progress_command(session, &(struct wf_command){.kind = WF_COMMAND_START});
	st = exchange_values(session);
	if (st == WEFT_OK) { /* lanes without slices are connected, too, for a reduce or GOODBYE */
		st = wf_progress_wait_clear(session, &core->start.busy);
	}
	if (st == WEFT_OK) {
		session->step =
			core->start.init.step; /* received before the last initial value arrived
						  * */
		session->known_step = session->step;
		if (core->start.is_loaded) {
			wf_position_resume(session);
		}
		st = core->service.ops != NULL ? core->service.ops->start(session) : WEFT_OK;
	}
	session->within = st == WEFT_OK ? NULL : session->within;
	return st;
}

/* Failed: every connection is down, or the second for their ABORT is over. */
static bool
is_quiet(struct weft_session *session)
{
	return atomic_load_explicit(&session->core.farewell.quiet, memory_order_acquire) != 0;
}

void
wf_session_await_quiet(struct weft_session *session)
{
	wf_progress_wait(session, is_quiet);
}
