/* SPDX-License-Identifier: Apache-2.0 */
/* snapshots: see snapshots.h. The lock guards the places and what the job begins with. Thread: any
 * lane's. */
#include "pserver/snapshots.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/url.h"

#define WAIT_TEXT_BYTES 200u

/* What is known of the job's beginning. */
enum beginning {
	UNKNOWN,
	KNOWN,
	REFUSED,
};

struct wf_snapshots {
	struct wf_env *env;
	struct wf_snapshots_opts opts;
	char dir[WF_SAVED_PATH_BYTES];
	char registrar[WF_HOST_BYTES];
	struct wf_saved_folder *folder;
	uint32_t lane_count;
	_Atomic uint64_t border; /* B1 */
	uint64_t epoch;          /* lane 0 writes it before any border of it */
	_Atomic uint64_t delta;  /* likewise, of the border that is wanted; relaxed, B1 orders it */

	pthread_mutex_t lock;
	struct wf_snapshot_seat *seat; /* [lane_count] */
	enum beginning beginning;      /* of lane 0's job */
	struct wf_snapshot_base base;  /* KNOWN */
	struct wf_error failure;       /* REFUSED */
	bool has_run;                  /* KNOWN, now or before */
	char wait[WAIT_TEXT_BYTES];    /* UNKNOWN: what is waited for */
};

static void
lock(struct wf_snapshots *self)
{
	(void)pthread_mutex_lock(&self->lock);
}

static void
unlock(struct wf_snapshots *self)
{
	(void)pthread_mutex_unlock(&self->lock);
}

static enum weft_status
copy_text(char *out, size_t bytes, const char *text, const char *option)
{
	int used = snprintf(out, bytes, "%s", text != NULL ? text : "");
	return used >= 0 && (size_t)used < bytes
		       ? WEFT_OK
		       : wf_fail(WEFT_INVALID, "--%s: a text of up to %zu bytes is needed", option,
				 bytes - 1);
}

static enum weft_status
open_folder(struct wf_snapshots *self)
{
	const struct wf_saved_place place = {
		.env = self->env,
		.calls = wf_saved_posix(),
		.dir = self->dir,
	};
	return wf_snapshot_folder_open(&place, &self->folder);
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
	(void)pthread_mutex_init(&self->lock, NULL);
	enum weft_status st = copy_text(self->dir, sizeof(self->dir), opts->dir, "snapshot_dir");
	if (st == WEFT_OK) {
		st = copy_text(self->registrar, sizeof(self->registrar), opts->registrar,
			       "registrar");
	}
	self->opts.dir = self->dir;
	self->opts.registrar = self->registrar;
	self->seat = wf_zalloc_array(env, lane_count, sizeof(*self->seat));
	if (st == WEFT_OK && self->seat == NULL) {
		st = wf_fail(WEFT_NOMEM, "snapshots: %u lanes", lane_count);
	}
	st = st == WEFT_OK ? open_folder(self) : st;
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

void
wf_snapshots_close(struct wf_snapshots *self)
{
	if (self == NULL) {
		return;
	}
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
wf_snapshots_join(struct wf_snapshots *self, uint32_t lane, const struct wf_hello *member,
		  const struct wf_snapshot_tables *tables)
{
	WF_ASSERT(lane < self->lane_count);
	struct wf_snapshot_seat *seat = &self->seat[lane];
	lock(self);
	WF_ASSERT(seat->state == WF_SEAT_EMPTY);
	seat->border = &self->border;
	seat->reported = 0;
	seat->state = lane == 0 ? WF_SEAT_IN : WF_SEAT_TAKEN;
	seat->trainer = member->trainer_id;
	seat->incarnation = member->incarnation;
	seat->tables = tables != NULL ? *tables : (struct wf_snapshot_tables){0};
	atomic_store_explicit(&seat->step, 0, memory_order_relaxed);
	unlock(self);
	return seat;
}

void
wf_snapshots_admit(struct wf_snapshots *self, uint32_t lane, const struct wf_hello *hello)
{
	struct wf_snapshot_seat *seat = &self->seat[lane];
	lock(self);
	if (seat->state == WF_SEAT_TAKEN) {
		seat->trainer = hello->trainer_id;
		seat->incarnation = hello->incarnation;
	}
	unlock(self);
}

void
wf_snapshots_leave(struct wf_snapshots *self, struct wf_snapshot_seat *seat)
{
	lock(self);
	seat->state = WF_SEAT_EMPTY;
	seat->tables = (struct wf_snapshot_tables){0};
	unlock(self);
}

enum weft_status
wf_snapshots_base(struct wf_snapshots *self, uint32_t lane, struct wf_snapshot_base *out)
{
	enum weft_status st = WEFT_AGAIN;
	lock(self);
	bool is_in = self->seat[lane].state == WF_SEAT_IN;
	if (is_in && self->beginning == KNOWN) {
		*out = self->base;
		st = WEFT_OK;
	} else if (is_in && self->beginning == REFUSED) {
		*wf_error_record() = self->failure;
		st = self->failure.status;
	}
	unlock(self);
	return st;
}

void
wf_snapshots_waits_for(struct wf_snapshots *self, char *out, size_t bytes)
{
	lock(self);
	(void)snprintf(out, bytes, "%s",
		       self->wait[0] != '\0' ? self->wait : "lane 0 to have the job");
	unlock(self);
}

void
wf_snapshots_begin_at(struct wf_snapshots *self, uint32_t lane, uint64_t step)
{
	(void)wf_snapshot_seat_applied(&self->seat[lane], step);
}

struct wf_snapshot_id
wf_snapshots_id(const struct wf_snapshots *self, uint64_t border)
{
	return (struct wf_snapshot_id){.epoch = self->epoch, .step = border};
}

uint64_t
wf_snapshots_delta(const struct wf_snapshots *self)
{
	return atomic_load_explicit(&self->delta, memory_order_relaxed);
}

void
wf_snapshots_report(struct wf_snapshots *self, struct wf_snapshot_seat *seat, uint64_t border,
		    const struct wf_part_sum *sum)
{
	lock(self);
	seat->reported = border;
	seat->error = (struct wf_error){0};
	if (sum != NULL) {
		seat->sum = *sum;
	} else {
		seat->error = *wf_error_record();
	}
	unlock(self);
}

/* ---- lane 0 ---- */

void
wf_snapshots_begin(struct wf_snapshots *self)
{
	lock(self);
	self->beginning = UNKNOWN;
	self->wait[0] = '\0';
	for (uint32_t i = 1; i < self->lane_count; i++) {
		struct wf_snapshot_seat *seat = &self->seat[i];
		seat->state = seat->state == WF_SEAT_IN ? WF_SEAT_TAKEN : seat->state;
	}
	unlock(self);
}

void
wf_snapshots_end(struct wf_snapshots *self)
{
	wf_snapshots_order(self, 0, 0);
	wf_snapshots_begin(self);
}

uint32_t
wf_snapshots_match(struct wf_snapshots *self,
		   bool (*is_here)(const void *arg, uint32_t trainer, uint64_t incarnation),
		   const void *arg)
{
	uint32_t count = 0;
	lock(self);
	for (uint32_t i = 0; i < self->lane_count; i++) {
		struct wf_snapshot_seat *seat = &self->seat[i];
		if (seat->state == WF_SEAT_TAKEN &&
		    is_here(arg, seat->trainer, seat->incarnation)) {
			seat->state = WF_SEAT_IN;
		}
		count += seat->state == WF_SEAT_IN ? 1 : 0;
	}
	unlock(self);
	return count;
}

void
wf_snapshots_run(struct wf_snapshots *self, const struct wf_snapshot_base *base)
{
	lock(self);
	self->epoch = base->epoch;
	self->base = *base;
	self->beginning = KNOWN;
	self->has_run = true;
	unlock(self);
}

bool
wf_snapshots_has_run(struct wf_snapshots *self)
{
	lock(self);
	bool has_run = self->has_run;
	unlock(self);
	return has_run;
}

void
wf_snapshots_refuse(struct wf_snapshots *self)
{
	lock(self);
	self->failure = *wf_error_record();
	self->beginning = REFUSED;
	unlock(self);
}

void
wf_snapshots_set_wait(struct wf_snapshots *self, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	lock(self);
	(void)vsnprintf(self->wait, sizeof(self->wait), format, args);
	unlock(self);
	va_end(args);
}

bool
wf_snapshots_highest(struct wf_snapshots *self, uint64_t *out)
{
	bool all = true;
	lock(self);
	*out = 0;
	for (uint32_t i = 0; i < self->lane_count; i++) {
		const struct wf_snapshot_seat *seat = &self->seat[i];
		uint64_t step = atomic_load_explicit(&seat->step, memory_order_relaxed);
		*out = step > *out ? step : *out;
		all = all && seat->state == WF_SEAT_IN;
	}
	unlock(self);
	return all;
}

void
wf_snapshots_order(struct wf_snapshots *self, uint64_t border, uint64_t base)
{
	atomic_store_explicit(&self->delta, base, memory_order_relaxed);
	atomic_store_explicit(&self->border, border, memory_order_release); /* B1 */
}

bool
wf_snapshots_outcome(struct wf_snapshots *self, uint32_t lane, uint64_t border,
		     struct wf_snapshot_outcome *out)
{
	const struct wf_snapshot_seat *seat = &self->seat[lane];
	lock(self);
	bool is_reported = seat->reported == border;
	if (is_reported) {
		WF_ASSERT(seat->tables.count <= WF_TABLE_COUNT_MAX);
		out->error = seat->error;
		out->sum = seat->sum;
		out->table_count = seat->tables.count;
		for (uint32_t t = 0; t < seat->tables.count; t++) {
			out->rows[t] = seat->tables.rows[t];
		}
	}
	unlock(self);
	return is_reported;
}

enum weft_status
wf_snapshots_describe_tables(struct wf_snapshots *self, struct wf_manifest *manifest)
{
	enum weft_status st = WEFT_OK;
	lock(self);
	for (uint32_t i = 0; i < self->lane_count && manifest->table_count == 0; i++) {
		const struct wf_snapshot_tables *tables = &self->seat[i].tables;
		size_t bytes = tables->count * sizeof(*manifest->table);
		if (tables->count == 0) {
			continue;
		}
		manifest->table = wf_zalloc(self->env, bytes);
		if (manifest->table == NULL) {
			st = wf_fail(WEFT_NOMEM, "no memory to describe %u tables", tables->count);
			break;
		}
		memcpy(manifest->table, tables->table, bytes);
		manifest->table_count = tables->count;
	}
	unlock(self);
	return st;
}
