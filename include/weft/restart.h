/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that go on where an earlier run of them stopped: where the data was.
 *
 * Pservers that keep snapshots begin a job with the newest one, when all of it is started again
 * with the same command line. Values, optimizer state, steps and samples are there, and every
 * trainer fetches them at the start. What only the program knows is where its data was. It gives
 * this with each step, and has it back when the job goes on:
 *
 *     weft_session_start(s);
 *     if (weft_session_resumed(s, &resumed)) {
 *             go to resumed.position in the data;   // of this trainer, after step resumed.step
 *     }
 *     for each batch:
 *             compute;
 *             weft_session_position(s, &where, sizeof(where));   // after this batch
 *             weft_exchange(s, samples, cost);
 *
 * Thread: as for the session (weft/weft.h). */
#ifndef WEFT_RESTART_H
#define WEFT_RESTART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/status.h"
#include "weft/weft.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_POSITION_BYTES_MAX 256

/**
 * Give the position of this trainer's data after its share of the next step. It travels with that
 * step: with the next weft_step or weft_exchange; with local steps with the next exchange, also the
 * one in weft_pass_end. Given twice before that, the last one counts. A snapshot has, for each
 * trainer, the position of its last step up to the snapshot's that had one; so give it in every
 * step. The bytes are the program's own; another build of it may read them. Costs one message of
 * this size in each step, to one lane. Does not block.
 * @param bytes [count] copied; may be NULL if count is 0
 * @param count at most WEFT_POSITION_BYTES_MAX
 * @return WEFT_OK; WEFT_INVALID: before weft_session_start, or count is too large;
 *         WEFT_UNSUPPORTED: no tensor that is pushed has a part on the first lane of the first
 *         pserver, with whose steps positions travel; AGAIN: another thread is in a call;
 *         otherwise why the session has failed
 */
WEFT_API enum weft_status weft_session_position(struct weft_session *session, const void *bytes,
						size_t count) WEFT_MUST_CHECK;

/* Where a session began whose pservers had a snapshot. */
struct weft_resumed {
	/* The last step that is in the snapshot; weft_steps began with it. In asynchronous and
	 * bounded jobs it is this trainer's own. */
	uint64_t step;
	/* Of all trainers, in the steps up to it; 0 for who joins a job without synchronous steps
	 * (weft/members.h). */
	uint64_t samples;
	/* Passes that the job had ended before that step; the same for all trainers. A trainer
	 * whose position is of an earlier pass has no data left in it, or was dropped in it
	 * (--on_trainer_death=drop), and begins this one. 0 if no trainer gave a position.
	 * weft_session_save counts them. */
	uint64_t pass_count;
	uint32_t position_bytes; /* 0: none was given */
	/* [position_bytes] as this trainer gave it to weft_session_position */
	uint8_t position[WEFT_POSITION_BYTES_MAX];
};

/**
 * Whether the session goes on from a snapshot of the pservers, and where. What the program put into
 * its parameter arrays before weft_session_start was then replaced, on trainer 0 too. It does not
 * change after weft_session_start. Not together with weft_session_restore and weft_session_load:
 * weft_session_start then returns WEFT_INVALID. With local_steps the state of each trainer's
 * optimizer and, with elastic averaging, its own parameters are not in a snapshot; all begin with
 * the center.
 * @param out written if the result is true
 * @return false: the job began with trainer 0's values, or the session has not started
 */
WEFT_API bool weft_session_resumed(const struct weft_session *session, struct weft_resumed *out);

/**
 * Go back: join the next life of a job that has lost a member. Pservers that have
 * --on_trainer_death=wait do not end the job when a trainer or a pserver is lost. Every call of a
 * session that waits, or that is made after it, returns WEFT_ROLLED_BACK, and the text says who was
 * lost. Tensors, tables, settings and the addresses of arrays stay; what is void: batches of rows
 * that were pulled, and everything that was pushed since the newest snapshot. Waits until all
 * members are there again, the lost one in another process; then the parameter arrays have the
 * values of the snapshot, and weft_steps and weft_session_resumed say where the job goes on. As
 * after weft_session_start, weft_session_resumed returns false if it begins anew, because there was
 * no snapshot yet. If yet another member is lost meanwhile, it begins again by itself.
 *
 *     while ((st = train_from(s)) == WEFT_ROLLED_BACK) {
 *             if ((st = weft_session_rejoin(s)) != WEFT_OK) {
 *                     break;
 *             }
 *     }
 *
 * @return WEFT_OK; WEFT_INVALID: the session was not rolled back; WEFT_UNAVAILABLE: not all were
 *         there within rejoin_timeout (300 s; weft_settings_set); or this is trainer 0, and the job
 *         has no snapshot: the initial values are gone, so its process has to be started again, for
 *         which the others wait; as weft_session_start
 */
WEFT_API enum weft_status weft_session_rejoin(struct weft_session *session) WEFT_MUST_CHECK;

/**
 * End the job: say GOODBYE to every lane and wait for the answers, as weft_session_close does, but
 * keep the session. With pservers that take snapshots it waits until all trainers have come here:
 * until then the job can go back, and what this trainer did after the snapshot is to be repeated.
 * So a program that rejoins calls this before weft_session_close, and goes on at the snapshot if
 * it returns WEFT_ROLLED_BACK. After WEFT_OK nothing but weft_session_close is allowed.
 * @return as weft_session_close
 */
WEFT_API enum weft_status weft_session_finish(struct weft_session *session) WEFT_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
