/* SPDX-License-Identifier: Apache-2.0 */
/* gate: see gate.h. */
#include "trainer/session/gate.h"

enum weft_status
wf_gate_refuse(const struct weft_session *session)
{
	if (wf_gate_is_forked(session)) {
		return wf_fail(WEFT_INVALID,
			       "session: its process forked, and this is the child: call it in the "
			       "parent, and start processes before the session is opened");
	}
	return wf_fail(WEFT_INVALID,
		       "session: another thread is in one of its calls, or this is a callback of "
		       "one: one thread at a time, so put a lock around the calls, or a session "
		       "into each thread");
}
