/* SPDX-License-Identifier: Apache-2.0 */
/* Trainers that leave a job, or join it, while it goes on.
 *
 * A job has num_gradient_servers places, and begins when all of them are taken. Pservers with
 * --on_trainer_death=drop do not end it when a trainer is lost: they empty its place, and go on
 * with the others. A trainer may also leave on purpose; and a process may take an empty place: it
 * opens a session with that trainer_id and the setting "join":
 *
 *     struct weft_settings *settings;
 *     weft_settings_create(WEFT_SETTINGS_SESSION, &settings);
 *     weft_settings_set(settings, "join", "true");
 *     opts.settings = settings;
 *     opts.trainer_id = 2;              // whose place is empty
 *     weft_session_open(&opts, &s);     // tensors, tables and settings as those of the others
 *     ...
 *     weft_session_start(s);            // waits for a border
 *     weft_session_resumed(s, &at);     // true: at.step, and where the data was (weft/restart.h)
 *
 * Both happen at a step border, on all lanes in the same step, and no other process is started
 * again. From its first step on the joiner is a trainer like the others: it begins with the values
 * that the job has, in the others' pass, takes part in all reduces and pass ends after that step,
 * and position is what its predecessor has given last.
 *
 * Thread: as for the session (weft/weft.h). */
#ifndef WEFT_MEMBERS_H
#define WEFT_MEMBERS_H

#include <stdbool.h>

#include "weft/status.h"
#include "weft/weft.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Whether the session has joined a job that was running: weft_session_resumed says where. The other
 * trainers are in the midst of it, so calls that all trainers make together when a job begins,
 * such as a barrier, are not made.
 * @return false: the session has begun with the job, or has not started
 */
WEFT_API bool weft_session_joined(const struct weft_session *session);

/**
 * Leave the job, which goes on with the other trainers from the next step on. Called between two
 * steps: everything that was pushed is waited for (weft_wait_all). Everything that this trainer has
 * pushed counts, on every lane, and nothing of it is lost. Waits until every lane knows the border;
 * the other trainers wait for that only as long as the lanes and the registrar need to agree.
 * Afterwards only weft_session_close is allowed. If fewer trainers remain than --min_trainers, the
 * job ends with that reason, for this trainer, too; the last ones end it with weft_session_close.
 * @return WEFT_OK; WEFT_UNSUPPORTED: the pservers do not have --on_trainer_death=drop, and nothing
 *         was done; WEFT_INVALID: before weft_session_start, or in the middle of a step, of which
 *         nothing was lost; otherwise why the session has failed
 */
WEFT_API enum weft_status weft_session_leave(struct weft_session *session) WEFT_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
