/* SPDX-License-Identifier: Apache-2.0 */
/* weft_session_load. Thread: the session's owner. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "saved/records.h"
#include "saved/snapshot.h"
#include "sparse/client/session.h"
#include "trainer/passes/content.h"
#include "trainer/session/gate.h"

#define MANIFEST "manifest"

static enum weft_status
check(const struct weft_session *session)
{
	if (!session->sealed || session->started) {
		return wf_fail(WEFT_INVALID,
			       "load: call it between weft_session_seal and weft_session_start");
	}
	if (session->past.is_loaded) {
		return wf_fail(WEFT_INVALID, "load: a pass was loaded already");
	}
	return wf_pass_check_mode(session, "load");
}

/* The pass itself, or the last one in the folder. What does not exist may be a pass that an
 * interrupted save put aside: wf_saved_open looks for it. `out` is [WF_SAVED_PATH_BYTES]. */
static enum weft_status
find_pass(const char *dir, char *out)
{
	struct stat info;
	uint64_t pass = 0;

	enum weft_status st = wf_saved_join(dir, MANIFEST, out);
	if (st == WEFT_OK && (stat(out, &info) == 0 || stat(dir, &info) != 0)) {
		snprintf(out, WF_SAVED_PATH_BYTES, "%s", dir);
		return WEFT_OK;
	}
	if (st == WEFT_OK) {
		st = wf_saved_find_last(wf_saved_posix(), dir, &pass);
	}
	return st == WEFT_OK ? wf_saved_pass_path(dir, pass, out) : st;
}

static enum weft_status
check_about(const struct weft_session *session, const struct wf_saved_about *about,
	    const char *path)
{
	const char *method = session->core.opts.optimizer.method;

	if (strcmp(about->optimizer, method) != 0) {
		return wf_fail(WEFT_MISMATCH,
			       "%s: was saved with optimizer %s, this session has %s", path,
			       about->optimizer, method);
	}
	if (about->batch > 0) {
		return wf_fail(WEFT_DATA,
			       "%s: was saved in the middle of a pass, after %" PRIu64
			       " batches; only weft train goes on there",
			       path, about->batch);
	}
	return WEFT_OK;
}

/* Each table of the session is one of the pass, and there are no more. */
static enum weft_status
check_tables(const struct weft_session *session, const struct wf_saved *saved,
	     const struct wf_pass_content *content, const char *path)
{
	const bool is_sync = session->core.opts.sparse_mode == WEFT_SPARSE_SYNC;
	const uint64_t step = wf_saved_about(saved)->step;
	enum weft_status st = WEFT_OK;

	for (uint32_t i = 0; st == WEFT_OK && i < content->table_count; i++) {
		struct wf_rows_reader *rows = NULL;
		st = wf_saved_open_table(saved, &content->table[i], &rows);
		if (st == WEFT_OK && is_sync && wf_rows_head(rows)->step != step) {
			st = wf_fail(WEFT_DATA,
				     "table %s: saved at step %" PRIu64
				     ", but the tensors after step %" PRIu64
				     ", as in an asynchronous job; go on with sparse_mode=async",
				     content->table[i].name, wf_rows_head(rows)->step, step);
		}
		wf_rows_close(rows);
	}
	if (st == WEFT_OK && wf_saved_table_count(saved) != content->table_count) {
		st = wf_fail(WEFT_DATA, "%s: has %u tables; this session has %u", path,
			     wf_saved_table_count(saved), content->table_count);
	}
	return st;
}

static enum weft_status
write_table(const struct wf_saved *saved, const struct wf_saved_table *table)
{
	struct wf_rows_reader *rows = NULL;
	struct weft_table_writer writer;

	enum weft_status st = wf_saved_open_table(saved, table, &rows);
	if (st == WEFT_OK) {
		wf_records_load(rows, &writer);
		st = weft_table_write(table->source, &writer);
	}
	wf_rows_close(rows);
	return st;
}

/* At the end of weft_session_start: trainer 0 writes the rows, and nobody pulls before that. */
static enum weft_status
start(struct weft_session *session)
{
	struct wf_saved *saved = session->past.state; /* NULL on the other trainers */
	struct wf_pass_content content;

	enum weft_status st = wf_pass_content_init(session, false, &content);
	if (st != WEFT_OK) {
		return st;
	}
	for (uint32_t i = 0; st == WEFT_OK && saved != NULL && i < content.table_count; i++) {
		st = write_table(saved, &content.table[i]);
	}
	const bool has_tables = content.table_count > 0;
	wf_pass_content_fini(&content);
	wf_saved_close(saved);
	session->past.state = NULL;
	return st == WEFT_OK && has_tables ? weft_barrier(session) : st;
}

static void
close_saved(void *saved)
{
	wf_saved_close(saved);
}

/* Trainer 0: the arrays, and how far the job had come. */
static enum weft_status
read_pass(struct weft_session *session, struct wf_saved *saved, const char *path)
{
	const struct wf_saved_about *about = wf_saved_about(saved);
	struct wf_pass_content content = {0};

	enum weft_status st = check_about(session, about, path);
	if (st == WEFT_OK) {
		st = wf_pass_content_init(session, false, &content);
	}
	if (st == WEFT_OK) {
		st = check_tables(session, saved, &content, path);
	}
	if (st == WEFT_OK) {
		st = wf_saved_load(saved, content.tensor, content.tensor_count, true);
	}
	if (st == WEFT_OK) {
		st = weft_session_restore(session, about->step, about->samples);
	}
	wf_pass_content_fini(&content);
	return st;
}

/* A snapshot is of a step in its pass, which the program goes on with. */
static uint64_t
next_pass(const struct weft_session *session, const struct wf_saved *saved)
{
	struct wf_snapshot_id id;

	if (!wf_saved_snapshot(saved, &id)) {
		return wf_saved_about(saved)->pass + 1;
	}
	wf_log(session->core.end.env, WF_LOG_INFO,
	       "load: %s is the snapshot of step %" PRIu64 " in epoch %" PRIu64
	       "; the positions in the data and the numbers of the optimizer that trainers have "
	       "changed are not used",
	       wf_saved_path(saved), id.step, id.epoch);
	return wf_saved_about(saved)->pass;
}

static enum weft_status
load_first(struct weft_session *session, const char *dir)
{
	struct wf_saved *saved = NULL;
	char path[WF_SAVED_PATH_BYTES];

	enum weft_status st = wf_pass_check_first(session, dir, "load");
	if (st == WEFT_OK) {
		st = find_pass(dir, path);
	}
	if (st == WEFT_OK) {
		st = wf_saved_open_any(session->core.end.env, wf_saved_posix(), path, &saved);
	}
	if (st == WEFT_OK) {
		st = read_pass(session, saved, path);
	}
	if (st != WEFT_OK) {
		wf_saved_close(saved);
		return st;
	}
	session->past.next_pass = next_pass(session, saved);
	session->past.state = saved;
	session->past.close = close_saved;
	return WEFT_OK;
}

enum weft_status
weft_session_load(struct weft_session *session, const char *dir)
{
	WF_ENTER(session);
	enum weft_status st = check(session);
	if (st == WEFT_OK && session->core.opts.trainer_id == 0) {
		st = load_first(session, dir);
	}
	if (st == WEFT_OK) {
		session->past.is_loaded = true;
		session->past.start = start;
	}
	return st;
}
