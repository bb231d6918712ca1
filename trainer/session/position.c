/* SPDX-License-Identifier: Apache-2.0 */
/* position: how far this trainer's data has come, as the program says, and where a session begins
 * whose lanes have a state of the job. position_send.c sends and receives positions. Thread: the
 * owner's. */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "trainer/session/dense.h"
#include "trainer/session/gate.h"
#include "trainer/session/session.h"
#include "weft/restart.h"

WF_STATIC_ASSERT(WF_POSITION_PASS_BYTES + WEFT_POSITION_BYTES_MAX == WF_POSITION_BYTES_MAX,
		 "the pass and the program's bytes are all of it");

enum weft_status
weft_session_position(struct weft_session *session, const void *bytes, size_t count)
{
	WF_ENTER(session);
	enum weft_status st = wf_exchange_check_running(session);
	if (st != WEFT_OK) {
		return st;
	}
	if (count > WEFT_POSITION_BYTES_MAX) {
		return wf_fail(WEFT_INVALID, "position of %zu bytes, %u at most", count,
			       WEFT_POSITION_BYTES_MAX);
	}
	if (session->core.links.dense[0].pushable_count == 0) {
		return wf_fail(WEFT_UNSUPPORTED,
			       "position: it travels with the steps of pserver 0 lane 0, to which "
			       "this job pushes no tensor; use fewer pservers or a smaller "
			       "ports_num, or keep the position yourself");
	}
	if (count > 0) {
		memcpy(session->position.bytes + WF_POSITION_PASS_BYTES, bytes, count);
	}
	session->position.count = WF_POSITION_PASS_BYTES + (uint32_t)count;
	session->position_given = true;
	return WEFT_OK;
}

void
wf_position_begin_step(struct weft_session *session)
{
	const uint32_t pass = (uint32_t)session->past.pass_count + 1;
	wf_store_u32(session->position.bytes, pass);
	session->core.position.own = session->position;
	session->core.position.own.step = session->step;
	session->core.preceded_step = session->step;
	session->position_given = false;
}

void
wf_position_resume(struct weft_session *session)
{
	const struct wf_msg_position *begins = &session->core.position.begins;
	const uint32_t ended = begins->step > 0 ? wf_position_pass(begins) - 1 : 0;
	session->past.old_samples = session->core.start.init.samples;
	session->past.pass_count = ended;
	session->local.pass += ended;
	session->resumed = true;
}

bool
weft_session_resumed(const struct weft_session *session, struct weft_resumed *out)
{
	const struct wf_core *core = &session->core;
	const struct wf_msg_position *begins = &core->position.begins;
	if (!session->resumed) {
		return false;
	}
	*out = (struct weft_resumed){
		.step = core->start.init.step,
		.samples = core->start.init.samples,
		.pass_count = begins->step > 0 ? wf_position_pass(begins) - 1 : 0,
	};
	if (begins->step > 0) {
		out->position_bytes = begins->count - WF_POSITION_PASS_BYTES;
		memcpy(out->position, begins->bytes + WF_POSITION_PASS_BYTES, out->position_bytes);
	}
	return true;
}
