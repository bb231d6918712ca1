/* SPDX-License-Identifier: Apache-2.0 */
/* history: see history.h. */
#include "pserver/history.h"

#include <inttypes.h>

enum weft_status
wf_history_read(struct wf_env *env, const char *dir, const struct wf_epochs *epochs,
		struct wf_snapshot_list *out)
{
	uint32_t kept = 0;
	enum weft_status st = wf_snapshot_list(env, wf_saved_posix(), dir, out);
	if (st != WEFT_OK) {
		return st;
	}
	for (uint32_t i = 0; i < out->count; i++) {
		if (wf_epochs_have(epochs, &out->id[i])) {
			out->id[kept++] = out->id[i];
		}
	}
	out->count = kept;
	return WEFT_OK;
}

enum weft_status
wf_history_check_empty(struct wf_env *env, const char *dir, const struct wf_epochs *epochs)
{
	struct wf_snapshot_list history = {0};
	enum weft_status st = wf_history_read(env, dir, epochs, &history);
	if (st == WEFT_OK && history.count > 0) {
		st = wf_fail(WEFT_INVALID,
			     "%s has snapshots of a job that did not end, the newest of step "
			     "%" PRIu64 " in epoch %" PRIu64
			     "; give --resume=auto to go on from it, --resume=never to begin anew, "
			     "or another --snapshot_dir",
			     dir, history.id[0].step, history.id[0].epoch);
	}
	wf_snapshot_list_fini(env, &history);
	return st;
}

/* Reads a snapshot from end to end. */
static enum weft_status
try_snapshot(struct wf_env *env, const char *dir, struct wf_snapshot_id id,
	     struct wf_history_choice *out)
{
	struct wf_snapshot *snapshot = NULL;
	enum weft_status st = wf_snapshot_open(env, wf_saved_posix(), dir, id, &snapshot);
	st = st == WEFT_OK ? wf_snapshot_verify(snapshot) : st;
	st = st == WEFT_OK ? wf_snapshot_crc(snapshot, &out->crc) : st;
	if (st == WEFT_OK) {
		out->id = id;
		out->samples = wf_snapshot_manifest(snapshot)->about.samples;
	}
	wf_snapshot_close(snapshot);
	return st;
}

static enum weft_status
choose_among(struct wf_env *env, const char *dir, const struct wf_snapshot_list *history,
	     struct wf_history_choice *out)
{
	for (uint32_t i = 0; i < history->count; i++) {
		const struct wf_snapshot_id *id = &history->id[i];
		if (try_snapshot(env, dir, *id, out) == WEFT_OK) {
			wf_log(env, WF_LOG_INFO,
			       "the job goes on from the snapshot of step %" PRIu64
			       " in epoch %" PRIu64 " in %s",
			       id->step, id->epoch, dir);
			return WEFT_OK;
		}
		wf_log(env, WF_LOG_WARN,
		       "the snapshot of step %" PRIu64 " in epoch %" PRIu64
		       " cannot be used, and the one before it is: %s",
		       id->step, id->epoch, weft_last_error());
	}
	return history->count == 0
		       ? WEFT_OK
		       : wf_fail(WEFT_DATA,
				 "%s: none of its %u snapshots is whole; `weft ckpt verify` says "
				 "why. To begin anew give --resume=never",
				 dir, history->count);
}

enum weft_status
wf_history_choose(struct wf_env *env, const char *dir, const struct wf_epochs *epochs,
		  struct wf_history_choice *out)
{
	struct wf_snapshot_list history = {0};
	*out = (struct wf_history_choice){0};
	enum weft_status st = wf_history_read(env, dir, epochs, &history);
	st = st == WEFT_OK ? choose_among(env, dir, &history, out) : st;
	wf_snapshot_list_fini(env, &history);
	return st;
}
