/* SPDX-License-Identifier: Apache-2.0 */
/* snapshots: see snapshots.h. The lock guards the places and what the job begins with; everything
 * else is lane 0's, or the helper thread's while its task runs. Lane 0 goes through these states:
 *
 *     IDLE     | no snapshot is under way                | lane 0 names a border when one is due
 *     PARTS    | lanes come to the border, copy, write   | all have reported
 *     MANIFEST | the helper thread writes the manifest, and removes older snapshots; or, if a lane
 *              | failed, what the others have written    | the task is done
 */
#include "pserver/snapshots.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "saved/epochs.h"

#define START_NS (10 * WF_NS_PER_MS) /* the same until all lanes have a job */
#define MISSING_NS (5 * WF_NS_PER_S) /* until it is said that they have not */
#define LOOK_NS WF_NS_PER_MS         /* between two looks of lane 0 while a snapshot is under way */
#define LEAD_MIN 2u
#define LEAD_MAX 4096u

enum state { IDLE, PARTS, MANIFEST };

/* What the helper thread does last. */
struct last_task {
	struct wf_task task; /* first: run is called with it */
	struct wf_snapshots *snapshots;
	uint64_t border;
	bool has_failed_lane;    /* parts are removed, and there is no manifest */
	struct wf_error reason;  /* of the lane */
	struct wf_error failure; /* of the task; status OK: none */
};

struct wf_snapshots {
	struct wf_env *env;
	struct wf_snapshots_opts opts;
	char dir[WF_SAVED_PATH_BYTES];
	struct wf_saved_folder *folder;
	struct wf_epochs epochs;
	uint32_t lane_count;
	_Atomic uint64_t border; /* B1 */

	pthread_mutex_t lock;
	struct wf_snapshot_seat *seat; /* [lane_count] */
	uint32_t taken_count;          /* of these */
	bool has_chosen;               /* what the job begins with: */
	struct wf_snapshot *source;    /* NULL: nothing */

	/* Lane 0's, and the task's while it runs. */
	enum state state;
	bool has_job;
	uint64_t epoch;
	struct wf_manifest manifest; /* of the job; parts and positions are the snapshot's */
	uint32_t lead;               /* steps by which a border is named ahead */
	uint64_t due_ns;             /* of the next one by time */
	uint64_t begin_ns;           /* of the one under way */
	uint64_t missing_ns; /* since when a snapshot is due, and a lane has no job; 0: none */
	bool is_noted;       /* lane 0 has come to the border */
	struct last_task last;
};

/* ---- opening ---- */

/* The snapshots of the history that remains, newest first. wf_snapshot_list_fini ends it. */
static enum weft_status
read_history(struct wf_snapshots *self, struct wf_snapshot_list *out)
{
	uint32_t kept = 0;
	enum weft_status st = wf_snapshot_list(self->env, wf_saved_posix(), self->dir, out);
	if (st != WEFT_OK) {
		return st;
	}
	for (uint32_t i = 0; i < out->count; i++) {
		if (wf_epochs_have(&self->epochs, &out->id[i])) {
			out->id[kept++] = out->id[i];
		}
	}
	out->count = kept;
	return WEFT_OK;
}

static struct wf_snapshot_id
id_of(const struct wf_snapshot *snapshot)
{
	const struct wf_manifest *manifest = wf_snapshot_manifest(snapshot);
	return (struct wf_snapshot_id){.epoch = manifest->parts.epoch,
				       .step = manifest->about.step};
}

/* The newest one that is whole. Those before it in the list are named in the log. */
static enum weft_status
choose_source(struct wf_snapshots *self, const struct wf_snapshot_list *history)
{
	for (uint32_t i = 0; i < history->count && self->source == NULL; i++) {
		const struct wf_snapshot_id *id = &history->id[i];
		struct wf_snapshot *snapshot = NULL;
		enum weft_status st =
			wf_snapshot_open(self->env, wf_saved_posix(), self->dir, *id, &snapshot);
		st = st == WEFT_OK ? wf_snapshot_verify(snapshot) : st;
		if (st == WEFT_OK) {
			self->source = snapshot;
			break;
		}
		wf_snapshot_close(snapshot);
		wf_log(self->env, WF_LOG_WARN,
		       "the snapshot of step %" PRIu64 " in epoch %" PRIu64
		       " cannot be used, and the one before it is: %s",
		       id->step, id->epoch, weft_last_error());
	}
	if (self->source == NULL && history->count > 0) {
		return wf_fail(WEFT_DATA,
			       "%s: none of its %u snapshots is whole; `weft ckpt verify` says "
			       "why. To begin anew give --resume=never",
			       self->dir, history->count);
	}
	return WEFT_OK;
}

static enum weft_status
resume(struct wf_snapshots *self)
{
	struct wf_snapshot_list history = {0};
	enum weft_status st = WEFT_OK;
	if (!wf_epochs_are_open(&self->epochs) || self->opts.resume == WF_RESUME_NEVER) {
		self->has_chosen = true;
		return WEFT_OK;
	}
	st = read_history(self, &history);
	if (st == WEFT_OK && history.count > 0 && self->opts.resume == WF_RESUME_ASK) {
		st = wf_fail(WEFT_INVALID,
			     "%s has snapshots of a job that did not end, the newest of step "
			     "%" PRIu64 " in epoch %" PRIu64
			     "; give --resume=auto to go on from it, --resume=never to begin anew, "
			     "or another --snapshot_dir",
			     self->dir, history.id[0].step, history.id[0].epoch);
	}
	st = st == WEFT_OK ? choose_source(self, &history) : st;
	wf_snapshot_list_fini(self->env, &history);
	self->has_chosen = st == WEFT_OK;
	if (self->source != NULL) {
		const struct wf_snapshot_id id = id_of(self->source);
		wf_log(self->env, WF_LOG_INFO,
		       "the job will go on from the snapshot of step %" PRIu64 " in epoch %" PRIu64
		       " in %s",
		       id.step, id.epoch, self->dir);
	}
	return st;
}

static enum weft_status
open_folder(struct wf_snapshots *self)
{
	const struct wf_saved_place place = {
		.env = self->env,
		.calls = wf_saved_posix(),
		.dir = self->dir,
	};
	enum weft_status st = wf_snapshot_folder_open(&place, &self->folder);
	st = st == WEFT_OK ? wf_epochs_read(self->env, self->folder, &self->epochs) : st;
	if (st == WEFT_OK) {
		wf_snapshot_sweep(self->folder, NULL);
	}
	return st;
}

enum weft_status
wf_snapshots_open(struct wf_env *env, const struct wf_snapshots_opts *opts, uint32_t lane_count,
		  struct wf_snapshots **out)
{
	struct wf_snapshots *self = wf_zalloc(env, sizeof(*self));
	if (self == NULL) {
		return wf_fail(WEFT_NOMEM, "snapshots: %zu bytes", sizeof(*self));
	}
	self->env = env;
	self->opts = *opts;
	self->lane_count = lane_count;
	self->lead = LEAD_MIN;
	(void)pthread_mutex_init(&self->lock, NULL);
	enum weft_status st = WEFT_OK;
	int bytes = snprintf(self->dir, sizeof(self->dir), "%s", opts->dir);
	if (bytes <= 0 || (size_t)bytes >= sizeof(self->dir)) {
		st = wf_fail(WEFT_INVALID, "--snapshot_dir: a path of 1 to %u bytes is needed",
			     WF_SAVED_PATH_BYTES - 1);
	}
	self->opts.dir = self->dir;
	self->seat = wf_zalloc_array(env, lane_count, sizeof(*self->seat));
	if (st == WEFT_OK && self->seat == NULL) {
		st = wf_fail(WEFT_NOMEM, "snapshots: %u lanes", lane_count);
	}
	st = st == WEFT_OK ? open_folder(self) : st;
	st = st == WEFT_OK ? resume(self) : st;
	if (st == WEFT_OK && opts->period_ns == 0 && opts->steps == 0) {
		wf_log(env, WF_LOG_WARN,
		       "no snapshots are taken to %s: give --snapshot_period=60s, or "
		       "--snapshot_steps",
		       self->dir);
	}
	if (st != WEFT_OK) {
		wf_snapshots_close(self);
		return st;
	}
	*out = self;
	return WEFT_OK;
}

static void
wait_for_task(struct wf_snapshots *self)
{
	while (self->state == MANIFEST &&
	       !atomic_load_explicit(&self->last.task.done, memory_order_acquire)) {
		wf_wait(self->env, -1, wf_now_ns(self->env) + WF_NS_PER_MS);
	}
}

void
wf_snapshots_close(struct wf_snapshots *self)
{
	if (self == NULL) {
		return;
	}
	wait_for_task(self);
	wf_snapshot_close(self->source);
	wf_manifest_fini(self->env, &self->manifest);
	wf_epochs_fini(self->env, &self->epochs);
	wf_saved_folder_close(self->folder);
	wf_free(self->env, self->seat, self->lane_count * sizeof(*self->seat));
	(void)pthread_mutex_destroy(&self->lock);
	wf_free(self->env, self, sizeof(*self));
}

const struct wf_snapshots_opts *
wf_snapshots_opts(const struct wf_snapshots *snapshots)
{
	return &snapshots->opts;
}

uint32_t
wf_snapshots_lane_count(const struct wf_snapshots *snapshots)
{
	return snapshots->lane_count;
}

struct wf_saved_folder *
wf_snapshots_folder(const struct wf_snapshots *snapshots)
{
	return snapshots->folder;
}

/* ---- lanes ---- */

struct wf_snapshot_seat *
wf_snapshots_join(struct wf_snapshots *self, uint32_t lane)
{
	WF_ASSERT(lane < self->lane_count);
	struct wf_snapshot_seat *seat = &self->seat[lane];
	(void)pthread_mutex_lock(&self->lock);
	WF_ASSERT(!seat->is_taken);
	seat->border = &self->border;
	seat->reported = 0;
	seat->is_taken = true;
	seat->is_late = false;
	self->taken_count++;
	atomic_store_explicit(&seat->step, 0, memory_order_relaxed);
	(void)pthread_mutex_unlock(&self->lock);
	return seat;
}

void
wf_snapshots_set_tables(struct wf_snapshots *self, struct wf_snapshot_seat *seat,
			const struct wf_snapshot_tables *tables)
{
	(void)pthread_mutex_lock(&self->lock);
	seat->tables = *tables;
	(void)pthread_mutex_unlock(&self->lock);
}

void
wf_snapshots_leave(struct wf_snapshots *self, struct wf_snapshot_seat *seat)
{
	(void)pthread_mutex_lock(&self->lock);
	seat->is_taken = false;
	seat->tables = (struct wf_snapshot_tables){0};
	if (--self->taken_count == 0) {
		wf_snapshot_close(self->source);
		self->source = NULL;
		self->has_chosen = false;
	}
	(void)pthread_mutex_unlock(&self->lock);
}

enum weft_status
wf_snapshots_choose(struct wf_snapshots *self, const struct wf_snapshot **out)
{
	(void)pthread_mutex_lock(&self->lock);
	WF_ASSERT(self->taken_count > 0);
	enum weft_status st = self->has_chosen ? WEFT_OK : resume(self);
	*out = self->source;
	(void)pthread_mutex_unlock(&self->lock);
	return st;
}

struct wf_snapshot_id
wf_snapshots_id(const struct wf_snapshots *self, uint64_t border)
{
	return (struct wf_snapshot_id){.epoch = self->epoch, .step = border};
}

void
wf_snapshots_report(struct wf_snapshots *self, struct wf_snapshot_seat *seat, uint64_t border,
		    const struct wf_part_sum *sum)
{
	(void)pthread_mutex_lock(&self->lock);
	seat->reported = border;
	seat->error = (struct wf_error){0};
	if (sum != NULL) {
		seat->sum = *sum;
	} else {
		seat->error = *wf_error_record();
	}
	(void)pthread_mutex_unlock(&self->lock);
}

/* ---- lane 0 ---- */

/* No lane of a job has applied a step when lane 0 gets the job: what has, has an older one. */
static void
note_late_lanes(struct wf_snapshots *self, uint64_t begins)
{
	(void)pthread_mutex_lock(&self->lock);
	for (uint32_t i = 0; i < self->lane_count; i++) {
		struct wf_snapshot_seat *seat = &self->seat[i];
		uint64_t step = atomic_load_explicit(&seat->step, memory_order_relaxed);
		seat->is_late = seat->is_taken && step > 0 && step != begins;
	}
	(void)pthread_mutex_unlock(&self->lock);
}

enum weft_status
wf_snapshots_begin_job(struct wf_snapshots *self, const struct wf_manifest *about)
{
	const struct wf_snapshot *source = NULL;
	wf_manifest_fini(self->env, &self->manifest);
	self->manifest = *about;
	enum weft_status st = wf_snapshots_choose(self, &source);
	struct wf_epoch_record record = {.has_base = source != NULL};
	if (source != NULL) {
		record.base = id_of(source);
	}
	st = st == WEFT_OK ? wf_epochs_add(self->env, self->folder, &record, &self->epochs) : st;
	if (st != WEFT_OK) {
		return st;
	}
	note_late_lanes(self, record.base.step);
	self->epoch = self->epochs.count;
	self->manifest.parts.epoch = self->epoch;
	self->has_job = true;
	self->missing_ns = 0;
	self->due_ns = wf_now_ns(self->env) + self->opts.period_ns;
	return WEFT_OK;
}

void
wf_snapshots_end_job(struct wf_snapshots *self, bool well)
{
	const struct wf_epoch_record end = {.is_end = true};
	wait_for_task(self);
	self->state = IDLE;
	atomic_store_explicit(&self->border, 0, memory_order_relaxed);
	if (self->has_job && well &&
	    wf_epochs_add(self->env, self->folder, &end, &self->epochs) != WEFT_OK) {
		wf_log(self->env, WF_LOG_ERROR,
		       "the end of the job could not be recorded in %s, so its snapshots will be "
		       "taken for those of a job that goes on: %s",
		       self->dir, weft_last_error());
	}
	self->has_job = false;
}

struct wf_manifest_position *
wf_snapshots_note(struct wf_snapshots *self, uint64_t border,
		  const struct wf_snapshot_moment *moment)
{
	struct wf_manifest *manifest = &self->manifest;
	WF_ASSERT(self->state == PARTS);
	manifest->about.step = border;
	manifest->about.samples = moment->samples;
	manifest->about.pass = moment->pass;
	self->begin_ns = wf_now_ns(self->env);
	self->is_noted = true;
	return manifest->parts.position;
}

/* The highest step that a lane has applied; false: some lane has no job. */
static bool
find_highest(struct wf_snapshots *self, uint64_t *out)
{
	bool all = true;
	(void)pthread_mutex_lock(&self->lock);
	*out = 0;
	for (uint32_t i = 0; i < self->lane_count; i++) {
		const struct wf_snapshot_seat *seat = &self->seat[i];
		uint64_t step = atomic_load_explicit(&seat->step, memory_order_relaxed);
		*out = step > *out ? step : *out;
		all = all && seat->is_taken && !seat->is_late;
	}
	(void)pthread_mutex_unlock(&self->lock);
	return all;
}

/* Sparse lanes of a job without tables stay without one, and a snapshot needs all lanes. */
static void
warn_missing(struct wf_snapshots *self, uint64_t now_ns)
{
	if (self->missing_ns == 0) {
		self->missing_ns = now_ns;
	} else if (self->missing_ns != WF_NEVER && now_ns - self->missing_ns >= MISSING_NS) {
		self->missing_ns = WF_NEVER;
		wf_log(self->env, WF_LOG_WARN,
		       "no snapshot is taken, because some lanes of this pserver have no job; give "
		       "--ports_num_for_sparse=0 if the job has no tables");
	}
}

/* Names a border ahead, if a snapshot is due. Returns when it wants to be called again. */
static uint64_t
name_border(struct wf_snapshots *self, uint64_t now_ns)
{
	const uint64_t steps = self->opts.steps;
	bool by_time = self->opts.period_ns != 0 && now_ns >= self->due_ns;
	uint64_t highest;
	if (!self->has_job || (!by_time && steps == 0)) {
		return WF_NEVER;
	}
	if (!find_highest(self, &highest)) {
		warn_missing(self, now_ns);
		return self->missing_ns == WF_NEVER ? WF_NEVER : now_ns + START_NS;
	}
	uint64_t border = highest + self->lead;
	if (!by_time) {
		border = (border + steps - 1) / steps * steps;
	}
	self->state = PARTS;
	self->is_noted = false;
	atomic_store_explicit(&self->border, border, memory_order_release); /* B1 */
	return WF_NEVER;
}

static enum weft_status
remove_snapshot(struct wf_snapshots *self, struct wf_snapshot_id id)
{
	enum weft_status st = wf_snapshot_remove_manifest(self->folder, id);
	return st == WEFT_OK ? wf_snapshot_remove_parts(self->folder, id) : st;
}

/* Writes the manifest, and removes what is no longer kept. */
static enum weft_status
write_manifest(struct wf_snapshots *self, const struct wf_snapshot_id *id)
{
	struct wf_snapshot_list history = {0};
	enum weft_status st = wf_snapshot_manifest_write(self->folder, *id, &self->manifest);
	if (st == WEFT_OK) {
		st = read_history(self, &history);
	}
	for (uint32_t i = self->opts.keep; i < history.count && st == WEFT_OK; i++) {
		st = remove_snapshot(self, history.id[i]);
	}
	wf_snapshot_list_fini(self->env, &history);
	return st;
}

static void
run_last(struct wf_task *task)
{
	struct last_task *last = (struct last_task *)task;
	struct wf_snapshots *self = last->snapshots;
	const struct wf_snapshot_id id = {.epoch = self->epoch, .step = self->last.border};
	enum weft_status st =
		last->has_failed_lane ? remove_snapshot(self, id) : write_manifest(self, &id);
	if (st != WEFT_OK) {
		last->failure = *wf_error_record();
	}
}

/* Under the lock: the tables of the job, with the rows of all lanes. */
static enum weft_status
gather_tables(struct wf_snapshots *self)
{
	struct wf_manifest *manifest = &self->manifest;
	for (uint32_t t = 0; t < manifest->table_count; t++) {
		manifest->table[t].rows = 0;
	}
	for (uint32_t i = 0; i < self->lane_count; i++) {
		const struct wf_snapshot_tables *tables = &self->seat[i].tables;
		if (tables->count > 0 && manifest->table_count == 0) {
			manifest->table =
				wf_zalloc_array(self->env, tables->count, sizeof(*manifest->table));
			if (manifest->table == NULL) {
				return wf_fail(WEFT_NOMEM, "no memory to describe %u tables",
					       tables->count);
			}
			manifest->table_count = tables->count;
			memcpy(manifest->table, tables->table,
			       tables->count * sizeof(*manifest->table));
		}
		WF_ASSERT(tables->count == 0 || tables->count == manifest->table_count);
		for (uint32_t t = 0; t < tables->count; t++) {
			manifest->table[t].rows += tables->rows[t];
		}
	}
	return WEFT_OK;
}

/* The lanes' parts, or the first failure; false: some lane has not reported. */
static bool
gather_parts(struct wf_snapshots *self, uint64_t border)
{
	bool all = true;
	(void)pthread_mutex_lock(&self->lock);
	for (uint32_t i = 0; i < self->lane_count && all; i++) {
		const struct wf_snapshot_seat *seat = &self->seat[i];
		all = seat->reported == border;
		if (all && seat->error.status != WEFT_OK && !self->last.has_failed_lane) {
			self->last.has_failed_lane = true;
			self->last.reason = seat->error;
		}
		self->manifest.parts.part[i].bytes = seat->sum.bytes;
		self->manifest.parts.part[i].crc = seat->sum.crc;
	}
	if (all && gather_tables(self) != WEFT_OK && !self->last.has_failed_lane) {
		self->last.has_failed_lane = true;
		self->last.reason = *wf_error_record();
	}
	(void)pthread_mutex_unlock(&self->lock);
	return all;
}

static void
look_at_parts(struct wf_snapshots *self)
{
	const uint64_t border = atomic_load_explicit(&self->border, memory_order_relaxed);
	self->last = (struct last_task){
		.task = {.run = run_last, .wake_fd = -1},
		.snapshots = self,
		.border = border,
	};
	if (!gather_parts(self, border)) {
		return;
	}
	self->state = MANIFEST;
	atomic_store_explicit(&self->border, 0, memory_order_relaxed);
	if (self->env->ops->submit(self->env, &self->last.task) != WEFT_OK) {
		self->last.failure = *wf_error_record();
		atomic_store_explicit(&self->last.task.done, true, memory_order_relaxed);
	}
}

/* Logs what has become of the snapshot, and when the next one is due. */
static void
look_at_task(struct wf_snapshots *self, uint64_t now_ns)
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
	const struct wf_error *why = last->has_failed_lane ? &last->reason : &last->failure;
	if (why->status == WEFT_OK) {
		self->lead = LEAD_MIN;
		wf_log(self->env, WF_LOG_INFO,
		       "snapshot of step %" PRIu64 " in epoch %" PRIu64 ": %" PRIu64
		       " bytes in %.3f s",
		       last->border, self->epoch, bytes, (double)(now_ns - self->begin_ns) / 1e9);
	} else {
		self->lead = self->lead < LEAD_MAX ? 2 * self->lead : LEAD_MAX;
		wf_log(self->env, WF_LOG_WARN,
		       "there is no snapshot of step %" PRIu64 ", and the training goes on: %s",
		       last->border, why->text);
	}
	self->due_ns = now_ns + self->opts.period_ns;
}

uint64_t
wf_snapshots_look(struct wf_snapshots *self, uint64_t now_ns)
{
	if (self->state == PARTS) {
		look_at_parts(self);
	}
	if (self->state == MANIFEST) {
		look_at_task(self, now_ns);
	}
	if (self->state == IDLE) {
		return name_border(self, now_ns);
	}
	bool waits = self->state == MANIFEST || (self->state == PARTS && self->is_noted);
	return waits ? now_ns + LOOK_NS : WF_NEVER;
}
