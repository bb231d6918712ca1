/* SPDX-License-Identifier: Apache-2.0 */
/* registrar: see registrar.h. It goes through these states:
 *
 *     COME     | the job has not begun               | all pservers are here
 *     LOAD     | they look at what it begins with    | all have that: the record is made
 *     IDLE     | no snapshot is under way            | one is due: its border is named
 *     PARTS    | lanes come to the border and write  | all of all pservers have reported
 *     MANIFEST | the helper thread writes the manifest, and removes older snapshots; or, if a lane
 *              | failed, what the others have written | the task is done: IDLE
 *
 * Thread: lane 0's; the helper thread's while its task runs. */
#include "pserver/registrar.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "pserver/history.h"
#include "pserver/snapshot_log.h"
#include "pserver/view.h"
#include "saved/epochs.h"

#define START_NS (10 * WF_NS_PER_MS) /* the same until all lanes have a job */
#define MISSING_NS (5 * WF_NS_PER_S) /* until it is said that they have not */
#define LOOK_NS WF_NS_PER_MS         /* between two looks while a snapshot is under way */
#define LEAD_MIN 2u
#define LEAD_MAX 4096u
/* For a message to the other pservers: their lanes are one step ahead at most. */
#define NOTICE_NS (20 * WF_NS_PER_MS)
#define PACE_NS (50 * WF_NS_PER_MS) /* that steps are counted for, at least */

enum state { COME, LOAD, IDLE, PARTS, MANIFEST };

struct member {
	uint64_t incarnation; /* 0: it has never been here */
	bool is_here;
	bool has_loaded; /* before the job begins */
	bool serves;     /* after that, as it says when it comes */
};

/* What one lane of one pserver has reported of the border. */
struct part {
	bool is_here;
	uint32_t table_next; /* tables before this one are here */
};

/* What the helper thread does last. */
struct last_task {
	struct wf_task task; /* first: run is called with it */
	struct wf_registrar *registrar;
	uint64_t border;
	struct wf_error reason;  /* of the lane or pserver that has no part; status OK: all have */
	struct wf_error failure; /* of the task; status OK: none */
};

/* When a snapshot is due, and how far ahead its border is named. */
struct schedule {
	uint32_t lead;         /* steps by which a border is named ahead */
	uint64_t due_ns;       /* of the next one by time */
	uint64_t begin_ns;     /* of the one under way */
	uint64_t missing_ns;   /* since when one is due, and a lane has no job; 0: none */
	uint64_t pace_ns;      /* when steps were counted last, */
	uint64_t pace_step;    /* the highest then, */
	uint64_t notice_steps; /* and those of NOTICE_NS */
	bool is_noted;         /* lane 0 has come to the border */
	bool may_order;        /* a vector of versions, now */
};

struct wf_registrar {
	struct wf_env *env;
	struct wf_snapshots *snapshots;
	const struct wf_snapshots_opts *set;
	struct wf_saved_folder *folder;
	struct wf_epochs epochs;
	struct wf_views *views; /* NULL: nobody learns of snapshots */
	uint64_t deadline_ns;
	enum state state;
	bool is_refused;                 /* the job could not begin */
	struct wf_history_choice choice; /* what the job begins with, */
	struct wf_snapshot_base base;    /* and in which epoch */
	struct member *member;           /* [pserver_count]; 0 is not used */
	uint32_t pserver_count;

	struct wf_manifest manifest;        /* of the job; parts and positions are the snapshot's */
	struct part *part;                  /* [part_count] of the manifest */
	uint64_t *rows;                     /* [part_count][table_count] */
	struct wf_snapshot_outcome outcome; /* of one lane, scratch */
	uint64_t border;                    /* PARTS, MANIFEST */
	uint64_t last_border; /* of the snapshot on which the next one may build; 0: on none */
	uint32_t delta_count; /* deltas since the one that is complete */
	struct last_task last;
	struct wf_snapshot_log log;

	struct schedule schedule;
};

/* ---- opening ---- */

static void
set_snapshots(struct wf_registrar *self, struct wf_env *env, struct wf_snapshots *snapshots)
{
	self->env = env;
	self->snapshots = snapshots;
	self->set = wf_snapshots_opts(snapshots);
	self->folder = wf_snapshots_folder(snapshots);
}

/* Whether the job before did not end. */
static bool
may_go_on(const struct wf_registrar *self)
{
	bool is_next_life = self->set->goes_back && wf_snapshots_has_run(self->snapshots);
	return wf_epochs_are_open(&self->epochs) &&
	       (self->set->resume != WF_RESUME_NEVER || is_next_life);
}

enum weft_status
wf_registrar_check_start(struct wf_env *env, struct wf_snapshots *snapshots)
{
	struct wf_registrar self = {0};
	set_snapshots(&self, env, snapshots);
	enum weft_status st = wf_epochs_read(env, self.folder, &self.epochs);
	if (st == WEFT_OK && may_go_on(&self) && self.set->resume == WF_RESUME_ASK) {
		st = wf_history_check_empty(env, self.set->dir, &self.epochs);
	}
	wf_epochs_fini(env, &self.epochs);
	return st;
}

static enum weft_status
choose_base(struct wf_registrar *self)
{
	wf_snapshot_sweep(self->folder, NULL);
	enum weft_status st = wf_epochs_read(self->env, self->folder, &self->epochs);
	return st == WEFT_OK && may_go_on(self)
		       ? wf_history_choose(self->env, self->set->dir, &self->epochs, &self->choice)
		       : st;
}

static enum weft_status
alloc(struct wf_registrar *self)
{
	const struct wf_manifest_parts *parts = &self->manifest.parts;
	self->pserver_count = parts->pserver_count;
	self->member = wf_zalloc_array(self->env, self->pserver_count, sizeof(*self->member));
	self->part = wf_zalloc_array(self->env, parts->part_count, sizeof(*self->part));
	return self->member != NULL && self->part != NULL
		       ? WEFT_OK
		       : wf_fail(WEFT_NOMEM, "no memory for a registrar of %u pservers",
				 self->pserver_count);
}

enum weft_status
wf_registrar_open(const struct wf_registrar_opts *opts, struct wf_manifest *about,
		  struct wf_registrar **out)
{
	struct wf_registrar *self = wf_zalloc(opts->env, sizeof(*self));
	if (self == NULL) {
		wf_manifest_fini(opts->env, about);
		return wf_fail(WEFT_NOMEM, "registrar: %zu bytes", sizeof(*self));
	}
	set_snapshots(self, opts->env, opts->snapshots);
	self->deadline_ns = opts->deadline_ns;
	self->views = opts->views;
	self->schedule.lead = LEAD_MIN;
	self->manifest = *about;
	enum weft_status st = alloc(self);
	st = st == WEFT_OK ? choose_base(self) : st;
	if (st != WEFT_OK) {
		wf_registrar_close(self);
		return st;
	}
	*out = self;
	return WEFT_OK;
}

static void
wait_for_task(struct wf_registrar *self)
{
	while (self->state == MANIFEST &&
	       !atomic_load_explicit(&self->last.task.done, memory_order_acquire)) {
		wf_wait(self->env, -1, wf_now_ns(self->env) + WF_NS_PER_MS);
	}
}

static void
free_rows(struct wf_registrar *self)
{
	wf_free(self->env, self->rows,
		(uint64_t)self->manifest.parts.part_count * self->manifest.table_count *
			sizeof(*self->rows));
	self->rows = NULL;
}

void
wf_registrar_end(struct wf_registrar *self)
{
	const struct wf_epoch_record end = {.is_end = true};
	wait_for_task(self); /* it reads the records */
	if (self->state >= IDLE &&
	    wf_epochs_add(self->env, self->folder, &end, &self->epochs) != WEFT_OK) {
		wf_log(self->env, WF_LOG_ERROR,
		       "the end of the job could not be recorded in %s, so its snapshots will be "
		       "taken for those of a job that goes on: %s",
		       self->set->dir, weft_last_error());
	}
}

void
wf_registrar_close(struct wf_registrar *self)
{
	if (self == NULL) {
		return;
	}
	wait_for_task(self);
	free_rows(self);
	wf_free(self->env, self->part, self->manifest.parts.part_count * sizeof(*self->part));
	wf_free(self->env, self->member, self->pserver_count * sizeof(*self->member));
	wf_manifest_fini(self->env, &self->manifest);
	wf_epochs_fini(self->env, &self->epochs);
	wf_free(self->env, self, sizeof(*self));
}

/* ---- the beginning ---- */

/* The first pserver that is not `so`; 0: all are. */
static uint32_t
find_not(const struct wf_registrar *self, bool (*so)(const struct member *member))
{
	for (uint32_t i = 1; i < self->pserver_count; i++) {
		if (!so(&self->member[i])) {
			return i;
		}
	}
	return 0;
}

static bool
is_here(const struct member *member)
{
	return member->is_here;
}

static bool
has_loaded(const struct member *member)
{
	return member->is_here && member->has_loaded;
}

/* The job may begin: the record is durable before any lane serves (rule 11). */
static void
begin(struct wf_registrar *self, uint64_t now_ns)
{
	const struct wf_epoch_record record = {.has_base = self->base.id.step != 0,
					       .base = self->base.id};
	if (wf_epochs_add(self->env, self->folder, &record, &self->epochs) != WEFT_OK) {
		self->is_refused = true;
		wf_snapshots_refuse(self->snapshots);
		return;
	}
	WF_ASSERT(self->epochs.count == self->base.epoch);
	self->manifest.parts.epoch = self->base.epoch;
	self->schedule.due_ns = now_ns + self->set->period_ns;
	self->border = self->base.id.step;
	self->state = IDLE;
	wf_snapshots_run(self->snapshots, &self->base);
}

static uint64_t
look_at_start(struct wf_registrar *self, uint64_t now_ns)
{
	if (self->is_refused) {
		return WF_NEVER; /* the job ends */
	}
	uint32_t missing = find_not(self, is_here);
	uint32_t behind = find_not(self, has_loaded);
	if (missing == 0 && self->state == COME) {
		self->base.epoch = self->epochs.count + 1;
		self->base.id = self->choice.id;
		self->state = LOAD;
	}
	if (behind == 0) {
		begin(self, now_ns);
		return 0;
	}
	if (missing != 0) {
		wf_snapshots_set_wait(self->snapshots, "pserver %u to come to pserver 0", missing);
	} else {
		wf_snapshots_set_wait(self->snapshots, "pserver %u to look at %.80s", behind,
				      self->set->dir);
	}
	if (now_ns >= self->deadline_ns) {
		(void)wf_fail(WEFT_TIMEOUT,
			      "pserver %u did not come to pserver 0 in time; give all pservers of "
			      "the job the same --snapshot_dir, in a directory that they share, "
			      "and --registrar=HOST:PORT, which is where pserver 0 listens",
			      behind);
		wf_snapshots_refuse(self->snapshots);
		return WF_NEVER;
	}
	return now_ns + START_NS;
}

/* ---- borders ---- */

/* Counts the steps that may pass while a message is under way. */
static void
count_pace(struct wf_registrar *self, uint64_t now_ns)
{
	uint64_t highest = 0;
	if (self->pserver_count == 1 || now_ns < self->schedule.pace_ns + PACE_NS) {
		return;
	}
	(void)wf_snapshots_highest(self->snapshots, &highest);
	if (self->schedule.pace_ns != 0 && highest >= self->schedule.pace_step) {
		self->schedule.notice_steps = (highest - self->schedule.pace_step) * NOTICE_NS /
					      (now_ns - self->schedule.pace_ns);
	}
	self->schedule.pace_ns = now_ns;
	self->schedule.pace_step = highest;
}

/* Sparse lanes of a job without tables stay without one, and a snapshot needs all lanes. */
static void
warn_missing(struct wf_registrar *self, uint64_t now_ns)
{
	if (self->schedule.missing_ns == 0) {
		self->schedule.missing_ns = now_ns;
	} else if (self->schedule.missing_ns != WF_NEVER &&
		   now_ns - self->schedule.missing_ns >= MISSING_NS) {
		self->schedule.missing_ns = WF_NEVER;
		wf_log(self->env, WF_LOG_WARN,
		       "no snapshot is taken, because some lanes of this pserver have no job; give "
		       "--ports_num_for_sparse=0 if the job has no tables");
	}
}

/* Room for what lanes report of their tables. */
static enum weft_status
prepare_parts(struct wf_registrar *self)
{
	struct wf_manifest *manifest = &self->manifest;
	const uint32_t parts = manifest->parts.part_count;
	memset(self->part, 0, parts * sizeof(*self->part));
	enum weft_status st = wf_snapshots_describe_tables(self->snapshots, manifest);
	if (st != WEFT_OK || manifest->table_count == 0 || self->rows != NULL) {
		return st;
	}
	self->rows = wf_zalloc_array(self->env, (uint64_t)parts * manifest->table_count,
				     sizeof(*self->rows));
	return self->rows != NULL ? WEFT_OK
				  : wf_fail(WEFT_NOMEM, "no memory for %u tables of %u lanes",
					    manifest->table_count, parts);
}

/* What the next snapshot builds on; 0: it is complete. The one behind a snapshot that failed is
 * complete, because some lanes have forgotten what was gone before it. */
static uint64_t
choose_delta(const struct wf_registrar *self)
{
	bool is_delta = self->manifest.table_count > 0 && self->delta_count + 1 < self->set->full;
	return is_delta ? self->last_border : 0;
}

void
wf_registrar_allow(struct wf_registrar *self, bool may_order)
{
	self->schedule.may_order = may_order;
}

/* The border after step `highest`, ahead of all lanes. That of a vector of versions is only a name,
 * of now; 0: none is ordered now. */
static uint64_t
choose_border(const struct wf_registrar *self, uint64_t highest, bool by_time)
{
	const uint64_t steps = self->set->steps;
	if (self->manifest.parts.is_vector) {
		bool is_due = by_time || highest / steps > self->border / steps;
		bool may = self->schedule.may_order && highest > self->border;
		return is_due && may ? highest : 0;
	}
	uint64_t border = highest + self->schedule.lead + self->schedule.notice_steps;
	return by_time ? border : (border + steps - 1) / steps * steps;
}

/* Names a border ahead, if a snapshot is due. Returns when it wants to be called again. */
static uint64_t
name_border(struct wf_registrar *self, uint64_t now_ns)
{
	const uint64_t steps = self->set->steps;
	bool by_time = self->set->period_ns != 0 && now_ns >= self->schedule.due_ns;
	uint64_t highest, border;
	if (!by_time && steps == 0) {
		return WF_NEVER;
	}
	if (!wf_snapshots_highest(self->snapshots, &highest)) {
		warn_missing(self, now_ns);
		return self->schedule.missing_ns == WF_NEVER ? WF_NEVER : now_ns + START_NS;
	}
	border = choose_border(self, highest, by_time);
	if (border == 0) {
		return WF_NEVER; /* until a trainer makes a step */
	}
	if (prepare_parts(self) != WEFT_OK) {
		wf_log(self->env, WF_LOG_WARN, "there is no snapshot: %s", weft_last_error());
		self->schedule.due_ns = now_ns + self->set->period_ns;
		return WF_NEVER;
	}
	self->border = border;
	self->last = (struct last_task){.border = border, .registrar = self};
	self->manifest.parts.base_step = choose_delta(self);
	self->state = PARTS;
	self->schedule.is_noted = false;
	wf_snapshots_order(self->snapshots, border, self->manifest.parts.base_step);
	return WF_NEVER;
}

struct wf_manifest_position *
wf_registrar_note(struct wf_registrar *self, uint64_t border,
		  const struct wf_snapshot_moment *moment)
{
	struct wf_manifest *manifest = &self->manifest;
	WF_ASSERT(self->state == PARTS && border == self->border);
	manifest->about.step = border;
	manifest->about.samples = moment->samples;
	manifest->about.pass = moment->pass;
	self->schedule.begin_ns = wf_now_ns(self->env);
	self->schedule.is_noted = true;
	return manifest->parts.position;
}

/* ---- parts ---- */

/* The first failure counts. */
static void
note_failure(struct wf_registrar *self, const struct wf_error *why)
{
	if (self->last.reason.status == WEFT_OK) {
		self->last.reason = *why;
	}
}

/* The place in the manifest of lane `lane` of pserver `idx`, dense ones before sparse ones. */
static uint32_t
place_of(const struct wf_registrar *self, uint32_t idx, uint32_t lane)
{
	const struct wf_manifest_parts *parts = &self->manifest.parts;
	if (lane < parts->dense_lanes) {
		return idx * parts->dense_lanes + lane;
	}
	return parts->pserver_count * parts->dense_lanes + idx * parts->sparse_lanes + lane -
	       parts->dense_lanes;
}

/* Tables `first` to `first + count` of the part that stands at `place`. */
static void
note_part(struct wf_registrar *self, uint32_t place, const struct wf_part_sum *sum)
{
	self->manifest.parts.part[place].bytes = sum->bytes;
	self->manifest.parts.part[place].crc = sum->crc;
}

static void
note_rows(struct wf_registrar *self, uint32_t place, uint32_t first, uint32_t count,
	  const uint64_t *rows)
{
	uint64_t *to = self->rows + (uint64_t)place * self->manifest.table_count + first;
	memcpy(to, rows, count * sizeof(*rows));
}

/* What this pserver's own lanes have reported. */
static void
gather_own(struct wf_registrar *self)
{
	const uint32_t lanes = wf_snapshots_lane_count(self->snapshots);
	for (uint32_t i = 0; i < lanes; i++) {
		struct wf_snapshot_outcome *outcome = &self->outcome;
		const uint32_t place = place_of(self, 0, i);
		struct part *part = &self->part[place];
		if (part->is_here ||
		    !wf_snapshots_outcome(self->snapshots, i, self->border, outcome)) {
			continue;
		}
		part->is_here = true;
		if (outcome->error.status != WEFT_OK) {
			note_failure(self, &outcome->error);
			continue;
		}
		WF_ASSERT(outcome->table_count == 0 ||
			  outcome->table_count == self->manifest.table_count);
		note_part(self, place, &outcome->sum);
		if (outcome->table_count > 0) {
			note_rows(self, place, 0, outcome->table_count, outcome->rows);
		}
	}
}

static bool
is_all_here(const struct wf_registrar *self)
{
	bool all = true;
	for (uint32_t i = 0; i < self->manifest.parts.part_count && all; i++) {
		all = self->part[i].is_here;
	}
	return all;
}

static void
sum_rows(struct wf_registrar *self)
{
	struct wf_manifest *manifest = &self->manifest;
	for (uint32_t t = 0; t < manifest->table_count; t++) {
		manifest->table[t].rows = 0;
		for (uint32_t i = 0; i < manifest->parts.part_count; i++) {
			manifest->table[t].rows +=
				self->rows[(uint64_t)i * manifest->table_count + t];
		}
	}
}

static enum weft_status
remove_snapshot(struct wf_registrar *self, struct wf_snapshot_id id)
{
	enum weft_status st = wf_snapshot_remove_manifest(self->folder, id);
	return st == WEFT_OK ? wf_snapshot_remove_parts(self->folder, id) : st;
}

/* Writes the manifest, and removes what is no longer kept. */
static enum weft_status
write_manifest(struct wf_registrar *self, const struct wf_snapshot_id *id)
{
	struct wf_snapshot_list history = {0};
	enum weft_status st = wf_snapshot_manifest_write(self->folder, *id, &self->manifest);
	if (st == WEFT_OK) {
		st = wf_history_read(self->env, self->set->dir, &self->epochs, &history);
	}
	st = st == WEFT_OK
		     ? wf_history_drop_kept(self->env, self->set->dir, self->set->keep, &history)
		     : st;
	for (uint32_t i = 0; i < history.count && st == WEFT_OK; i++) {
		st = remove_snapshot(self, history.id[i]);
	}
	wf_snapshot_list_fini(self->env, &history);
	return st;
}

static void
run_last(struct wf_task *task)
{
	struct last_task *last = (struct last_task *)task;
	struct wf_registrar *self = last->registrar;
	const struct wf_snapshot_id id = wf_snapshots_id(self->snapshots, last->border);
	bool is_whole = last->reason.status == WEFT_OK;
	enum weft_status st = is_whole ? write_manifest(self, &id) : remove_snapshot(self, id);
	if (st != WEFT_OK) {
		last->failure = *wf_error_record();
	}
}

static void
look_at_parts(struct wf_registrar *self)
{
	gather_own(self);
	if (!is_all_here(self)) {
		return;
	}
	sum_rows(self);
	self->state = MANIFEST;
	wf_snapshots_order(self->snapshots, 0, 0);
	self->last.task = (struct wf_task){.run = run_last, .wake_fd = -1};
	if (self->env->ops->submit(self->env, &self->last.task) != WEFT_OK) {
		self->last.failure = *wf_error_record();
		atomic_store_explicit(&self->last.task.done, true, memory_order_relaxed);
	}
}

/* Logs what has become of the snapshot, and when the next one is due. */
static void
look_at_task(struct wf_registrar *self, uint64_t now_ns)
{
	const struct last_task *last = &self->last;
	uint64_t bytes = 0;
	if (!atomic_load_explicit(&last->task.done, memory_order_acquire)) {
		return;
	}
	self->state = IDLE;
	for (uint32_t i = 0; i < self->manifest.parts.part_count; i++) {
		bytes += self->manifest.parts.part[i].bytes;
	}
	const struct wf_error *why =
		last->reason.status != WEFT_OK ? &last->reason : &last->failure;
	if (self->views != NULL) {
		wf_views_note_snapshot(self->views, why->status == WEFT_OK ? last->border : 0,
				       now_ns);
	}
	if (why->status == WEFT_OK) {
		bool is_delta = self->manifest.parts.base_step != 0;
		self->schedule.lead = LEAD_MIN;
		self->delta_count = is_delta ? self->delta_count + 1 : 0;
		self->last_border = last->border;
		wf_snapshot_log_made(&self->log, self->env,
				     &(struct wf_snapshot_made){
					     .id = wf_snapshots_id(self->snapshots, last->border),
					     .is_delta = is_delta,
					     .bytes = bytes,
					     .ns = now_ns - self->schedule.begin_ns});
	} else {
		self->last_border = 0;
		self->schedule.lead =
			self->schedule.lead < LEAD_MAX ? 2 * self->schedule.lead : LEAD_MAX;
		wf_snapshot_log_failed(&self->log, self->env, last->border, why->text);
	}
	self->schedule.due_ns = now_ns + self->set->period_ns;
}

uint64_t
wf_registrar_look(struct wf_registrar *self, uint64_t now_ns)
{
	if (self->state < IDLE) {
		return look_at_start(self, now_ns);
	}
	count_pace(self, now_ns);
	if (self->state == PARTS) {
		look_at_parts(self);
	}
	if (self->state == MANIFEST) {
		look_at_task(self, now_ns);
	}
	if (self->state == IDLE) {
		return name_border(self, now_ns);
	}
	bool waits = self->state == MANIFEST || (self->state == PARTS && self->schedule.is_noted);
	return waits ? now_ns + LOOK_NS : WF_NEVER;
}

/* ---- the other pservers ---- */

static bool
is_reported_by(const struct wf_registrar *self, uint32_t idx)
{
	const uint32_t lanes = wf_snapshots_lane_count(self->snapshots);
	bool all = true;
	for (uint32_t i = 0; i < lanes && all; i++) {
		all = self->part[place_of(self, idx, i)].is_here;
	}
	return all;
}

struct wf_registrar_orders
wf_registrar_orders(const struct wf_registrar *self, uint32_t idx)
{
	const struct member *member = &self->member[idx];
	bool has_border = self->state == PARTS && !is_reported_by(self, idx);
	return (struct wf_registrar_orders){
		.load = self->state == LOAD && !member->has_loaded,
		.run = self->state >= IDLE && !member->serves,
		.border = has_border ? self->border : 0,
		.builds_on = has_border ? self->manifest.parts.base_step : 0,
		.base = self->base,
		.crc = self->choice.crc,
		.samples = self->choice.samples,
	};
}

enum weft_status
wf_registrar_join(struct wf_registrar *self, uint32_t idx, uint64_t incarnation,
		  const struct wf_registry_join *join)
{
	const struct wf_manifest_parts *parts = &self->manifest.parts;
	struct member *member = &self->member[idx];
	WF_ASSERT(idx > 0 && idx < self->pserver_count);
	if (join->dense_lanes != parts->dense_lanes || join->sparse_lanes != parts->sparse_lanes) {
		return wf_fail(WEFT_MISMATCH,
			       "pserver %u has %u dense and %u sparse lanes, pserver 0 has %u and "
			       "%u; give all the same ports_num and ports_num_for_sparse",
			       idx, join->dense_lanes, join->sparse_lanes, parts->dense_lanes,
			       parts->sparse_lanes);
	}
	bool is_other = member->incarnation != 0 && member->incarnation != incarnation;
	if (is_other && self->state >= IDLE && self->set->goes_back) {
		return wf_fail(WEFT_ROLLED_BACK, "pserver %u was started again", idx);
	}
	if (is_other && (member->is_here || self->state >= IDLE)) {
		return wf_fail(WEFT_REFUSED,
			       "another process was pserver %u of this job before, and the job "
			       "does not go on with a new one",
			       idx);
	}
	member->incarnation = incarnation;
	member->is_here = true;
	member->has_loaded = false;
	member->serves = self->state >= IDLE && join->serves == self->base.epoch;
	return WEFT_OK;
}

void
wf_registrar_lose(struct wf_registrar *self, uint32_t idx)
{
	self->member[idx].is_here = false;
}

static bool
is_base(const struct wf_registrar *self, uint64_t epoch, const struct wf_registry_id *id)
{
	return self->state == LOAD && epoch == self->base.epoch &&
	       id->epoch == self->base.id.epoch && id->step == self->base.id.step;
}

enum weft_status
wf_registrar_on_loaded(struct wf_registrar *self, uint32_t idx,
		       const struct wf_registry_loaded *msg)
{
	if (!is_base(self, msg->epoch, &msg->base)) {
		return wf_fail(WEFT_PROTOCOL, "LOADED: pserver %u was not asked for that", idx);
	}
	self->member[idx].has_loaded = true;
	return WEFT_OK;
}

/* The directory has a snapshot that is whole, and this pserver does not see it. */
enum weft_status
wf_registrar_on_bad(struct wf_registrar *self, uint32_t idx, const struct wf_registry_bad *msg)
{
	if (!is_base(self, msg->epoch, &msg->base)) {
		return wf_fail(WEFT_PROTOCOL, "BAD: pserver %u was not asked for that", idx);
	}
	(void)wf_fail(WEFT_DATA,
		      "pserver %u cannot go on from the snapshot of step %" PRIu64 ": %.200s", idx,
		      self->base.id.step, msg->reason);
	wf_snapshots_refuse(self->snapshots);
	return WEFT_OK;
}

/* The lane of a part, within its pserver; false: it is none of that pserver's. */
static bool
find_lane(const struct wf_registrar *self, uint32_t idx, const struct wf_registry_part *msg,
	  uint32_t *lane)
{
	const struct wf_manifest_parts *parts = &self->manifest.parts;
	bool is_dense = msg->service == WF_SERVICE_DENSE;
	uint32_t lanes = is_dense ? parts->dense_lanes : parts->sparse_lanes;
	*lane = is_dense ? 0 : parts->dense_lanes;
	if (msg->lane / (lanes > 0 ? lanes : 1) != idx || lanes == 0) {
		return false;
	}
	*lane += msg->lane % lanes;
	return true;
}

enum weft_status
wf_registrar_on_part(struct wf_registrar *self, uint32_t idx, const struct wf_registry_part *msg)
{
	uint32_t lane = 0;
	if (self->state != PARTS || msg->epoch != self->base.epoch || msg->border != self->border) {
		return WEFT_OK; /* of a snapshot that has ended: the message was under way */
	}
	uint32_t tables = msg->service == WF_SERVICE_DENSE ? 0 : self->manifest.table_count;
	if (!find_lane(self, idx, msg, &lane) || msg->table_count != tables) {
		return wf_fail(WEFT_PROTOCOL,
			       "PART: lane %u of service %u with %u tables is none of pserver %u",
			       msg->lane, msg->service, msg->table_count, idx);
	}
	const uint32_t place = place_of(self, idx, lane);
	struct part *part = &self->part[place];
	part->table_next = msg->first == 0 ? 0 : part->table_next;
	if (msg->first != part->table_next) {
		return wf_fail(WEFT_PROTOCOL, "PART: tables from %u on, and %u is next", msg->first,
			       part->table_next);
	}
	note_part(self, place, &(struct wf_part_sum){.bytes = msg->bytes, .crc = msg->crc});
	if (msg->count > 0) {
		note_rows(self, place, msg->first, msg->count, msg->rows);
	}
	part->table_next += msg->count;
	part->is_here = part->table_next == tables;
	return WEFT_OK;
}

enum weft_status
wf_registrar_on_failed(struct wf_registrar *self, uint32_t idx,
		       const struct wf_registry_failed *msg)
{
	const uint32_t lanes = wf_snapshots_lane_count(self->snapshots);
	struct wf_error why = {.status = WEFT_UNAVAILABLE};
	if (self->state != PARTS || msg->epoch != self->base.epoch || msg->border != self->border) {
		return WEFT_OK;
	}
	(void)snprintf(why.text, sizeof(why.text), "pserver %u: %s", idx, msg->reason);
	note_failure(self, &why);
	for (uint32_t i = 0; i < lanes; i++) {
		self->part[place_of(self, idx, i)].is_here = true;
	}
	return WEFT_OK;
}
