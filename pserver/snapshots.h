/* SPDX-License-Identifier: Apache-2.0 */
/* snapshots: those that the lanes of one pserver take of a running job: which one is wanted, what
 * has become of each lane's part, the manifest, and which older ones are removed.
 *
 * A snapshot is of a *border*: the state after that step and before the next. The border is named
 * before any lane has come to it. A lane that comes to it copies each slice, or each group of rows,
 * before it changes again, and reports its part when that is durable. When the parts of all lanes
 * are, the manifest is written, which makes the snapshot. If one of them fails, there is none: its
 * parts are removed, and the training goes on.
 *
 * Lane 0 decides (wf_snapshots_look). The other lanes share the border and their reports with it,
 * and nothing else. Thread: any lane's, unless it says otherwise. */
#pragma once

#include <stdatomic.h>

#include "base/env.h"
#include "saved/manifest.h"
#include "saved/part.h"
#include "saved/snapshot.h"

/* What a pserver begins with where its directory has snapshots of a job that did not end. */
enum wf_resume {
	WF_RESUME_ASK,   /* refuse to start, and name the newest */
	WF_RESUME_AUTO,  /* the newest one that is whole */
	WF_RESUME_NEVER, /* nothing: the job begins anew, and they stay */
};

struct wf_snapshots_opts {
	const char *dir;     /* NULL or "": none are taken, and nothing is loaded */
	uint64_t period_ns;  /* between the beginnings of two; 0: not by time */
	uint64_t steps;      /* between two borders; 0: not by steps */
	uint64_t ring_bytes; /* of a lane's copies; 0: as much as it keeps */
	uint64_t rate;       /* bytes per second that each lane writes; 0: no limit */
	uint32_t keep;       /* that are kept, 1 or more */
	enum wf_resume resume;
};

struct wf_snapshots;

/* What a sparse lane has. */
struct wf_snapshot_tables {
	const struct wf_manifest_table *table; /* [count], names ascending; their rows count not */
	const uint64_t *rows; /* [count] of the lane's last part, written before its report */
	uint32_t count;
};

/* One lane's place, by which it knows of the border. */
struct wf_snapshot_seat {
	/* The last step that the lane has applied. Lane: store relaxed; lane 0: load relaxed;
	 * carries no data. */
	_Alignas(64) _Atomic uint64_t step;
	/* The border that is wanted; 0: none. Lane 0: store release; lanes: load acquire; B1. */
	const _Atomic uint64_t *border;
	bool is_taken; /* by a job; under the lock, like the rest */
	bool is_late;  /* the job before is not over on this lane, and lane 0 has the next one */
	/* What has become of the part of this border; 0: nothing. */
	uint64_t reported;
	struct wf_part_sum sum; /* unless it failed: */
	struct wf_error error;
	struct wf_snapshot_tables tables; /* of a sparse lane */
};

/**
 * Opens the directory, and decides what the first job begins with.
 * @return WEFT_OK; WEFT_INVALID: WF_RESUME_ASK, and there are snapshots; WEFT_IO, WEFT_DATA: the
 *         directory and why; WEFT_NOMEM
 */
enum weft_status wf_snapshots_open(struct wf_env *env, const struct wf_snapshots_opts *opts,
				   uint32_t lane_count, struct wf_snapshots **out) WEFT_MUST_CHECK;
/* All lanes are gone. Waits for the helper thread. Accepts NULL. */
void wf_snapshots_close(struct wf_snapshots *snapshots);
const struct wf_snapshots_opts *wf_snapshots_opts(const struct wf_snapshots *snapshots);
/* Of the pserver: dense ones, then sparse ones. */
uint32_t wf_snapshots_lane_count(const struct wf_snapshots *snapshots);
struct wf_saved_folder *wf_snapshots_folder(const struct wf_snapshots *snapshots);

/* The lane has a job. */
struct wf_snapshot_seat *wf_snapshots_join(struct wf_snapshots *snapshots, uint32_t lane);
/* A sparse lane's tables, the same on all of them; lent until it leaves. */
void wf_snapshots_set_tables(struct wf_snapshots *snapshots, struct wf_snapshot_seat *seat,
			     const struct wf_snapshot_tables *tables);
/* The lane's job has ended, and nothing of its part is under way. */
void wf_snapshots_leave(struct wf_snapshots *snapshots, struct wf_snapshot_seat *seat);
/* The lane has applied the step. Returns the border that is wanted, which the lane may have passed;
 * 0: none. */
static inline uint64_t
wf_snapshot_seat_applied(struct wf_snapshot_seat *seat, uint64_t step)
{
	atomic_store_explicit(&seat->step, step, memory_order_relaxed);
	return atomic_load_explicit(seat->border, memory_order_acquire); /* B1 */
}
/* What the job begins with, the same for all lanes that have joined; NULL: nothing. It is lent
 * until the lane leaves. Fails as wf_snapshots_open does. */
enum weft_status wf_snapshots_choose(struct wf_snapshots *snapshots,
				     const struct wf_snapshot **out) WEFT_MUST_CHECK;
struct wf_snapshot_id wf_snapshots_id(const struct wf_snapshots *snapshots, uint64_t border);
/* The lane's part of the border is durable, or `sum` is NULL and the recorded failure says why
 * there is none. */
void wf_snapshots_report(struct wf_snapshots *snapshots, struct wf_snapshot_seat *seat,
			 uint64_t border, const struct wf_part_sum *sum);

/* ---- lane 0 ---- */

/* What is known of the border when lane 0 comes to it. */
struct wf_snapshot_moment {
	uint64_t samples;
	uint64_t pass;
};

/* A job begins: makes the record of its epoch. `about` has everything of a manifest but what is the
 * snapshot's own; its positions and parts are named, and it is owned from here on. WEFT_IO: the
 * record could not be made, or another process has made it. */
enum weft_status wf_snapshots_begin_job(struct wf_snapshots *snapshots,
					const struct wf_manifest *about) WEFT_MUST_CHECK;
/* It has ended, well or not. After a good end there is nothing to go on from. */
void wf_snapshots_end_job(struct wf_snapshots *snapshots, bool well);
/* Lane 0 has come to the border. Returns the places of the trainers' positions, of as many as the
 * manifest has, which are filled in at once. */
struct wf_manifest_position *wf_snapshots_note(struct wf_snapshots *snapshots, uint64_t border,
					       const struct wf_snapshot_moment *moment);
/* Does what is due: names a border, ends a snapshot. Returns when it wants to be called again. */
uint64_t wf_snapshots_look(struct wf_snapshots *snapshots, uint64_t now_ns);
