/* SPDX-License-Identifier: Apache-2.0 */
/* killed: a crew with snapshots, of which one process or all are killed, again and again, and which
 * is started anew, all of it, with another number of lanes. All its pservers write to one
 * directory. Thread: one. */
#pragma once

#include "base/rng.h"
#include "tests/support/crew.h"

#define KILLED_PSERVERS_MAX 3u /* a job has from one to so many */

struct killed {
	/* The test's. */
	char dir[64]; /* "": no snapshots */
	uint64_t snapshot_steps, ring_bytes, rate;
	uint32_t keep;
	uint32_t full;  /* as in wf_snapshots_opts */
	bool goes_back; /* who is killed is started again, and the others go back */

	/* What happens. */
	uint64_t resumed; /* trainers that began with a snapshot; the test counts */
	uint64_t waits;   /* applies that waited for room in a ring */
	/* With goes_back: trainers that went back, and that began again in another process because
	 * there was no snapshot; bits of those that were killed when the job had ended. */
	uint64_t rejoined, anew;
	uint32_t unseen;
};

/* How many there are of whom, and how they are connected. The rest of the crew is zero. */
void killed_draw(struct wf_rng *rng, uint64_t seed, struct crew *out);
/* A directory of its own. */
bool killed_make_dir(struct killed *job);
void killed_remove_dir(const struct killed *job);
/* What a pserver is opened with. */
void killed_fill_server(const struct killed *job, struct wf_server_opts *out);
/* Adds what the lanes from `first` on have counted. */
void killed_add_waits(struct killed *job, struct wf_server *server, uint32_t first);
/* Run `run` of a job, from 0: its lanes, and who is killed. In the last of `runs` nobody is. */
void killed_begin_run(struct crew *crew, uint32_t run, uint32_t runs);
/* The epochs that have begun, and whether the newest record is the end of the job. */
uint64_t killed_count_records(const struct killed *job);
bool killed_has_ended(const struct killed *job, uint64_t epoch);
/* Plays the job in a directory of its own; some processes are killed and started again, while the
 * others go back. Whether all trainers have ended well, with `expected`; `digest` is theirs. */
bool killed_play_lives(struct killed *job, struct crew *crew, uint64_t *digest, uint64_t expected,
		       uint64_t *cuts);
/* Trains and ends the job, and goes back as often as it does; `train` begins where
 * weft_session_resumed says. */
enum weft_status killed_train(struct killed *job, struct weft_session *session,
			      enum weft_status (*train)(void *arg), void *arg);
/* Ends a trainer's process: as crew_end_session. True: it is to be started again. */
bool killed_end_session(struct killed *job, const struct crew_seat *seat,
			struct weft_session *session, enum weft_status st);
/* Whether a job that ended well may be one for which the end was not recorded: a pserver was killed
 * when its trainers had ended. */
bool killed_may_go_on(const struct crew *crew);
