/* SPDX-License-Identifier: Apache-2.0 */
/* registrar: what lane 0 of pserver 0 decides for all pservers of a job: which snapshot the job
 * begins with, when it begins, the borders of new snapshots, their manifests, and which older ones
 * are removed: rules 10 to 13 of docs/architecture.md, section 4.
 *
 * A pserver is known by its number. The one with number 0 is this one, whose lanes are reached
 * through snapshots.h; the others report what they have done (the functions with an `idx`), and
 * wf_registrar_orders says what one is to do next. How that travels is registry.h's.
 *
 * A registrar lives as long as the job of lane 0. Thread: lane 0's. */
#pragma once

#include "pserver/snapshots.h"
#include "wire/registry_messages.h"

struct wf_registrar;
struct wf_views; /* view.h */

/* Whether a job may begin, at the start of a pserver. WEFT_INVALID: WF_RESUME_ASK, and there are
 * snapshots; WEFT_IO, WEFT_DATA, WEFT_NOMEM */
enum weft_status wf_registrar_check_start(struct wf_env *env,
					  struct wf_snapshots *snapshots) WEFT_MUST_CHECK;

struct wf_registrar_opts {
	struct wf_env *env;
	struct wf_snapshots *snapshots;
	uint64_t deadline_ns;   /* all pservers are there by then, or the job ends */
	struct wf_views *views; /* learn what becomes of snapshots; NULL: nobody does */
};

/* Chooses what the job begins with. `about` has everything of a manifest but what is a snapshot's
 * own; its positions and parts are named. It is owned from here on, whatever the result. WEFT_DATA:
 * no snapshot is whole; WEFT_IO; WEFT_NOMEM */
enum weft_status wf_registrar_open(const struct wf_registrar_opts *opts, struct wf_manifest *about,
				   struct wf_registrar **out) WEFT_MUST_CHECK;
/* The job has ended well, and there is nothing to go on from: records that. Waits for the helper
 * thread, as close does. */
void wf_registrar_end(struct wf_registrar *registrar);
void wf_registrar_close(struct wf_registrar *registrar); /* accepts NULL */
/* Does what is due: begins the job, names a border, ends a snapshot. Returns when it wants to be
 * called again. */
uint64_t wf_registrar_look(struct wf_registrar *registrar, uint64_t now_ns);

/* Where snapshots are vectors of versions: whether one may be ordered in the next look. */
void wf_registrar_allow(struct wf_registrar *registrar, bool may_order);

/* Lane 0 has come to the border. Returns the places of the trainers' positions, of as many as the
 * manifest has, which are filled in at once. */
struct wf_snapshot_moment {
	uint64_t samples;
	uint64_t pass;
};
struct wf_manifest_position *wf_registrar_note(struct wf_registrar *registrar, uint64_t border,
					       const struct wf_snapshot_moment *moment);

/* ---- the other pservers ---- */

/* What a pserver is to do: each 0 or false if it is not. */
struct wf_registrar_orders {
	bool load;          /* what `base` says, and report */
	bool run;           /* serve in its epoch */
	uint64_t border;    /* take a snapshot of it, and report */
	uint64_t builds_on; /* border of the snapshot of which that is a delta; 0: it is complete */
	struct wf_snapshot_base base;
	uint32_t crc;     /* CRC32C of the base's manifest; 0: no base */
	uint64_t samples; /* of the base */
};
struct wf_registrar_orders wf_registrar_orders(const struct wf_registrar *registrar, uint32_t idx);

/* It is connected. WEFT_MISMATCH: it has other lanes than this pserver; WEFT_REFUSED: another
 * process is in its place;
 * WEFT_ROLLED_BACK: the same in a job that goes back, so this life of it is over. */
enum weft_status wf_registrar_join(struct wf_registrar *registrar, uint32_t idx,
				   uint64_t incarnation,
				   const struct wf_registry_join *join) WEFT_MUST_CHECK;
void wf_registrar_lose(struct wf_registrar *registrar, uint32_t idx); /* it is not connected */
/* Reports. WEFT_PROTOCOL: it was not asked for that. */
enum weft_status wf_registrar_on_loaded(struct wf_registrar *registrar, uint32_t idx,
					const struct wf_registry_loaded *msg) WEFT_MUST_CHECK;
enum weft_status wf_registrar_on_bad(struct wf_registrar *registrar, uint32_t idx,
				     const struct wf_registry_bad *msg) WEFT_MUST_CHECK;
enum weft_status wf_registrar_on_part(struct wf_registrar *registrar, uint32_t idx,
				      const struct wf_registry_part *msg) WEFT_MUST_CHECK;
enum weft_status wf_registrar_on_failed(struct wf_registrar *registrar, uint32_t idx,
					const struct wf_registry_failed *msg) WEFT_MUST_CHECK;
