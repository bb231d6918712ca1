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

struct choosing {
	struct wf_env *env;
	const char *dir;
	struct wf_history_choice *out;
};

/* Reads a snapshot from end to end, and those on which it builds. */
static enum weft_status
read_all(void *arg, struct wf_snapshot_id id)
{
	const struct choosing *choosing = arg;
	struct wf_history_choice *out = choosing->out;
	struct wf_snapshot *snapshot = NULL;
	enum weft_status st =
		wf_snapshot_open(choosing->env, wf_saved_posix(), choosing->dir, id, &snapshot);
	st = st == WEFT_OK ? wf_snapshot_verify_chain(snapshot) : st;
	st = st == WEFT_OK ? wf_snapshot_crc(snapshot, &out->crc) : st;
	if (st == WEFT_OK) {
		out->id = id;
		out->samples = wf_snapshot_manifest(snapshot)->about.samples;
	}
	wf_snapshot_close(snapshot);
	return st;
}

static enum weft_status
choose_among(struct choosing *choosing, const struct wf_snapshot_list *history)
{
	if (history->count == 0) {
		return WEFT_OK;
	}
	enum weft_status st =
		wf_snapshot_choose(choosing->env, choosing->dir, history, read_all, choosing);
	if (st == WEFT_OK) {
		wf_log(choosing->env, WF_LOG_INFO,
		       "the job goes on from the snapshot of step %" PRIu64 " in epoch %" PRIu64
		       " in %s",
		       choosing->out->id.step, choosing->out->id.epoch, choosing->dir);
	} else if (st == WEFT_DATA) {
		const struct wf_error why = *wf_error_record();
		st = wf_fail(st, "%.400s; to begin anew give --resume=never", why.text);
	}
	return st;
}

enum weft_status
wf_history_choose(struct wf_env *env, const char *dir, const struct wf_epochs *epochs,
		  struct wf_history_choice *out)
{
	struct wf_snapshot_list history = {0};
	*out = (struct wf_history_choice){0};
	enum weft_status st = wf_history_read(env, dir, epochs, &history);
	struct choosing choosing = {env, dir, out};
	st = st == WEFT_OK ? choose_among(&choosing, &history) : st;
	wf_snapshot_list_fini(env, &history);
	return st;
}

/* ---- which ones stay ---- */

/* Where the snapshot of that id stands, from place `from` on; list->count: nowhere. */
static uint32_t
find(const struct wf_snapshot_list *list, uint32_t from, const struct wf_snapshot_id *id)
{
	uint32_t i = from;
	while (i < list->count &&
	       (list->id[i].epoch != id->epoch || list->id[i].step != id->step)) {
		i++;
	}
	return i;
}

/* The place of the one on which number i builds; i itself: it is complete; list->count: there is
 * none, or the manifest cannot be read. */
static enum weft_status
find_base(struct wf_env *env, const char *dir, const struct wf_snapshot_list *list, uint32_t i,
	  uint32_t *out)
{
	struct wf_snapshot *snapshot = NULL;
	struct wf_snapshot_id base;
	enum weft_status st = wf_snapshot_open(env, wf_saved_posix(), dir, list->id[i], &snapshot);
	*out = i;
	if (st == WEFT_OK && wf_snapshot_base(snapshot, &base)) {
		*out = find(list, i + 1, &base);
	} else if (st == WEFT_DATA) {
		*out = list->count;
		st = WEFT_OK;
	}
	wf_snapshot_close(snapshot);
	return st;
}

/* Marks the newest `keep` whose chain is there, and all of these chains. What is newer than the
 * last of them stays, too: nobody knows what it is. */
static void
mark(const uint32_t *base, uint32_t count, uint32_t keep, bool *stays)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < count && kept < keep; i++) {
		uint32_t at = i;
		stays[i] = true;
		while (at < count && base[at] != at) {
			at = base[at];
		}
		if (at == count) {
			continue; /* some link is missing */
		}
		for (at = i; base[at] != at; at = base[at]) {
			stays[base[at]] = true;
		}
		kept++;
	}
}

enum weft_status
wf_history_drop_kept(struct wf_env *env, const char *dir, uint32_t keep,
		     struct wf_snapshot_list *list)
{
	const uint32_t count = list->count;
	uint32_t *base = wf_zalloc_array(env, count, sizeof(*base));
	bool *stays = wf_zalloc_array(env, count, sizeof(*stays));
	uint32_t left = 0;
	enum weft_status st = base != NULL && stays != NULL
				      ? WEFT_OK
				      : wf_fail(WEFT_NOMEM, "%s: list of %u snapshots", dir, count);
	for (uint32_t i = 0; i < count && st == WEFT_OK; i++) {
		st = find_base(env, dir, list, i, &base[i]);
	}
	if (st == WEFT_OK) {
		mark(base, count, keep, stays);
		for (uint32_t i = 0; i < count; i++) {
			if (!stays[i]) {
				list->id[left++] = list->id[i];
			}
		}
		list->count = left;
	}
	wf_free(env, stays, count * sizeof(*stays));
	wf_free(env, base, count * sizeof(*base));
	return st;
}
