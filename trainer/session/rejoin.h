/* SPDX-License-Identifier: Apache-2.0 */
/* rejoin: a session's part in the next life of a job that has lost a member. Thread: the owner's.
 */
#pragma once

#include "trainer/session/session.h"

/* wf_session_begin, again as long as the job loses members before this trainer has joined it, and
 * there is time. */
enum weft_status wf_rejoin_start(struct weft_session *session) WEFT_MUST_CHECK;
