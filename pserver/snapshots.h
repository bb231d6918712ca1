/* SPDX-License-Identifier: Apache-2.0 */
/* snapshots: those that the lanes of one pserver take of a running job: the directory, the lanes'
 * places, which border is wanted, and what has become of each lane's part.
 *
 * A snapshot is of a *border*: the state after that step and before the next. The border is named
 * before any lane has come to it. A lane that comes to it copies each slice, or each group of rows,
 * before it changes again, and reports its part when that is durable.
 *
 * Lane 0 passes on what is decided: by the registrar (registrar.h), which is lane 0 of pserver 0,
 * or a message of it (registry.h). The other lanes share with it what is here, and nothing else.
 * Thread: any lane's, unless it says otherwise. */
#pragma once

#include <stdatomic.h>

#include "base/env.h"
#include "saved/manifest.h"
#include "saved/part.h"
#include "saved/snapshot.h"
#include "wire/hello.h"
#include "wire/tables.h"

/* What a job begins with where the directory has snapshots of a job that did not end. */
enum wf_resume {
	WF_RESUME_ASK,   /* refuse to start, and name the newest */
	WF_RESUME_AUTO,  /* the newest one that is whole */
	WF_RESUME_NEVER, /* nothing: the job begins anew, and they stay */
};

/* What becomes of a job that has lost a member. */
enum wf_on_death {
	WF_ON_DEATH_END,
	WF_ON_DEATH_WAIT, /* its members go back to the newest snapshot */
	WF_ON_DEATH_DROP, /* it goes on without the trainer */
};

struct wf_snapshots_opts {
	const char *dir;       /* NULL or "": none are taken, and nothing is loaded */
	const char *registrar; /* lane 0 of pserver 0, "HOST:PORT"; NULL or "": this pserver's */
	uint64_t period_ns;    /* between the beginnings of two; 0: not by time */
	uint64_t steps;        /* between two borders; 0: not by steps */
	uint64_t ring_bytes;   /* of a lane's copies; 0: as much as it keeps */
	uint64_t rate;         /* bytes per second that each lane writes; 0: no limit */
	uint32_t keep;         /* that are kept, 1 or more */
	uint32_t full;         /* of tables, each of so many has all rows; 0 and 1: each has */
	enum wf_resume resume;
	bool goes_back; /* WF_ON_DEATH_WAIT */
};

struct wf_snapshots;

/* What a sparse lane has. */
struct wf_snapshot_tables {
	const struct wf_manifest_table *table; /* [count], names ascending; their rows count not */
	const uint64_t *rows; /* [count] of the lane's last part, written before its report */
	uint32_t count;
};

/* Where a lane's job stands beside that of lane 0. */
enum wf_seat_state {
	WF_SEAT_EMPTY, /* the lane has no job */
	WF_SEAT_TAKEN, /* it has one, which lane 0 does not have, or not yet */
	WF_SEAT_IN,    /* it has that of lane 0 */
};

/* One lane's place, by which it knows of the border. */
struct wf_snapshot_seat {
	/* The last step that the lane has applied. Lane: store relaxed; lane 0: load relaxed;
	 * carries no data. */
	_Alignas(64) _Atomic uint64_t step;
	/* The border that is wanted; 0: none. Lane 0: store release; lanes: load acquire; B1. */
	const _Atomic uint64_t *border;
	/* Under the lock, like the rest. */
	enum wf_seat_state state;
	uint32_t trainer;       /* that the lane has admitted last; once it is in, that counts */
	uint64_t incarnation;   /* no more */
	uint64_t reported;      /* the border for which the lane has reported last */
	struct wf_part_sum sum; /* unless it failed: */
	struct wf_error error;
	struct wf_snapshot_tables tables; /* of a sparse lane */
};

/* What a job begins with. */
struct wf_snapshot_base {
	uint64_t epoch;
	struct wf_snapshot_id id; /* step 0: nothing */
};

/* Opens the directory. WEFT_INVALID: a text is too long; WEFT_IO: the directory and why;
 * WEFT_NOMEM */
enum weft_status wf_snapshots_open(struct wf_env *env, const struct wf_snapshots_opts *opts,
				   uint32_t lane_count, struct wf_snapshots **out) WEFT_MUST_CHECK;
void wf_snapshots_close(struct wf_snapshots *snapshots); /* all lanes are gone; accepts NULL */
const struct wf_snapshots_opts *wf_snapshots_opts(const struct wf_snapshots *snapshots);
/* Of the pserver: dense ones, then sparse ones. */
uint32_t wf_snapshots_lane_count(const struct wf_snapshots *snapshots);
struct wf_saved_folder *wf_snapshots_folder(const struct wf_snapshots *snapshots);

/* ---- lanes ---- */

/* The lane has a job, of which the trainer of `member` is here. `tables`: of a sparse lane, the
 * same on all of them, which are lent until it leaves; NULL: it has none. */
struct wf_snapshot_seat *wf_snapshots_join(struct wf_snapshots *snapshots, uint32_t lane,
					   const struct wf_hello *member,
					   const struct wf_snapshot_tables *tables);
/* A trainer was admitted: from here on it is the one by which a lane that is not in is known,
 * because earlier ones may have been replaced. */
void wf_snapshots_admit(struct wf_snapshots *snapshots, uint32_t lane,
			const struct wf_hello *hello);
/* The lane's job has ended, and nothing of its part is under way. */
void wf_snapshots_leave(struct wf_snapshots *snapshots, struct wf_snapshot_seat *seat);
/* What the lane's job begins with. WEFT_AGAIN: that is not known yet; other failures end the job.
 */
enum weft_status wf_snapshots_base(struct wf_snapshots *snapshots, uint32_t lane,
				   struct wf_snapshot_base *out) WEFT_MUST_CHECK;
/* What the lanes wait for after WEFT_AGAIN: "pserver 1 to come to the registrar". */
void wf_snapshots_waits_for(struct wf_snapshots *snapshots, char *out, size_t bytes);
/* The lane has applied the step, or begins after it. Returns the border that is wanted, which the
 * lane may have passed; 0: none. */
static inline uint64_t
wf_snapshot_seat_applied(struct wf_snapshot_seat *seat, uint64_t step)
{
	atomic_store_explicit(&seat->step, step, memory_order_relaxed);
	return atomic_load_explicit(seat->border, memory_order_acquire); /* B1 */
}
/* The same for a lane that has only its number. */
void wf_snapshots_begin_at(struct wf_snapshots *snapshots, uint32_t lane, uint64_t step);
struct wf_snapshot_id wf_snapshots_id(const struct wf_snapshots *snapshots, uint64_t border);
/* For a lane that has not reported the border yet: that of the snapshot of which it is a delta; 0:
 * it is complete. */
uint64_t wf_snapshots_delta(const struct wf_snapshots *snapshots);
/* The lane's part of the border is durable, or `sum` is NULL and the recorded failure says why
 * there is none. */
void wf_snapshots_report(struct wf_snapshots *snapshots, struct wf_snapshot_seat *seat,
			 uint64_t border, const struct wf_part_sum *sum);

/* ---- lane 0 ---- */

/* Lane 0 has a job, of which nothing is known yet. */
void wf_snapshots_begin(struct wf_snapshots *snapshots);
/* It is over: lanes that ask from here on wait for the next one. */
void wf_snapshots_end(struct wf_snapshots *snapshots);
/* Lets lanes in whose job is that of lane 0: `is_here` knows their trainer. Returns the number of
 * lanes that are in. */
uint32_t wf_snapshots_match(struct wf_snapshots *snapshots,
			    bool (*is_here)(const void *arg, uint32_t trainer,
					    uint64_t incarnation),
			    const void *arg);
/* The lanes that are in may begin. */
void wf_snapshots_run(struct wf_snapshots *snapshots, const struct wf_snapshot_base *base);
/* Whether a job of this process has begun, and those that come are its next lives. */
bool wf_snapshots_has_run(struct wf_snapshots *snapshots);
/* They cannot: the recorded failure ends the job. */
void wf_snapshots_refuse(struct wf_snapshots *snapshots);
/* What the lanes wait for. */
void wf_snapshots_set_wait(struct wf_snapshots *snapshots, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The highest step that a lane has applied; false: some lane is not in. */
bool wf_snapshots_highest(struct wf_snapshots *snapshots, uint64_t *out);
/* The border is wanted from here on; 0: none is. `base`: of the snapshot of which this one is a
 * delta; 0: it is complete. */
void wf_snapshots_order(struct wf_snapshots *snapshots, uint64_t border, uint64_t base);
/* What a lane has reported of the border; false: nothing yet. */
struct wf_snapshot_outcome {
	struct wf_error error; /* status OK: none, and this is its part: */
	struct wf_part_sum sum;
	uint32_t table_count;
	uint64_t rows[WF_TABLE_COUNT_MAX]; /* [table_count] */
};
bool wf_snapshots_outcome(struct wf_snapshots *snapshots, uint32_t lane, uint64_t border,
			  struct wf_snapshot_outcome *out);
/* Copies the tables that the lanes have, with 0 rows, if `manifest` has none. WEFT_NOMEM */
enum weft_status wf_snapshots_describe_tables(struct wf_snapshots *snapshots,
					      struct wf_manifest *manifest) WEFT_MUST_CHECK;
