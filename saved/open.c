/* SPDX-License-Identifier: Apache-2.0 */
/* What a path means: a pass, a snapshot, or the one of a folder of snapshots with which a job would
 * go on. Thread: the caller's. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "saved/directory.h"
#include "saved/epochs.h"
#include "saved/internal.h"
#include "saved/snapshot.h"

/* The path without slashes at its end, of which a pass aside gets its name back. `out` is
 * [WF_SAVED_PATH_BYTES]. */
static enum weft_status
settle(const struct wf_saved_place *place, char *out)
{
	int bytes = snprintf(out, WF_SAVED_PATH_BYTES, "%s", place->dir);

	if (bytes <= 0 || (size_t)bytes >= WF_SAVED_PATH_BYTES) {
		return wf_fail(WEFT_INVALID, "save \"%.60s\": must be a path of 1 to %u bytes",
			       place->dir, WF_SAVED_PATH_BYTES - 1);
	}
	while (bytes > 1 && out[bytes - 1] == '/') {
		out[--bytes] = '\0';
	}
	wf_saved_recover(place->env, place->calls, out);
	return WEFT_OK;
}

/* Opens what `read` reads. */
static enum weft_status
open_by(const struct wf_saved_place *place,
	enum weft_status (*read)(struct wf_env *env, const struct wf_saved_calls *calls,
				 const char *path, struct wf_saved **out),
	struct wf_saved **out)
{
	char plain[WF_SAVED_PATH_BYTES];

	enum weft_status st = settle(place, plain);
	return st == WEFT_OK ? read(place->env, place->calls, plain, out) : st;
}

enum weft_status
wf_saved_open(struct wf_env *env, const struct wf_saved_calls *calls, const char *path,
	      struct wf_saved **out)
{
	return open_by(&(struct wf_saved_place){env, calls, path}, wf_saved_read, out);
}

enum weft_status
wf_saved_open_any(struct wf_env *env, const struct wf_saved_calls *calls, const char *path,
		  struct wf_saved **out)
{
	return open_by(&(struct wf_saved_place){env, calls, path}, wf_saved_read_any, out);
}

/* ---- a folder of snapshots ---- */

/* The records of a folder that is only read. */
static enum weft_status
read_epochs(const struct wf_saved_place *place, struct wf_epochs *out)
{
	struct wf_saved_folder folder = {.env = place->env, .calls = place->calls, .lock_fd = -1};

	snprintf(folder.path, sizeof(folder.path), "%s", place->dir);
	folder.fd =
		place->calls->openat(AT_FDCWD, place->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (folder.fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be opened", place->dir);
	}
	enum weft_status st = wf_epochs_read(place->env, &folder, out);
	(void)place->calls->close(folder.fd); /* nothing was written through it */
	return st;
}

/* Leaves the snapshots of the history that remains. After a job that has ended well that is its
 * own, though no job would go on from there. */
static enum weft_status
keep_history(const struct wf_saved_place *place, struct wf_snapshot_list *list)
{
	struct wf_epochs epochs = {0};
	uint32_t kept = 0;

	enum weft_status st = read_epochs(place, &epochs);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_epochs history = epochs;
	if (history.count > 0 && !wf_epochs_are_open(&history)) {
		history.count--;
	}
	for (uint32_t i = 0; i < list->count; i++) {
		if (wf_epochs_have(&history, &list->id[i])) {
			list->id[kept++] = list->id[i];
		}
	}
	list->count = kept;
	wf_epochs_fini(place->env, &epochs);
	return WEFT_OK;
}

/* A manifest may have been copied to another name. */
static enum weft_status
check_id(struct wf_saved *saved, struct wf_snapshot_id named)
{
	struct wf_snapshot_id id;

	if (wf_saved_snapshot(saved, &id) && id.epoch == named.epoch && id.step == named.step) {
		return WEFT_OK;
	}
	enum weft_status st =
		wf_fail(WEFT_DATA, "%s/" WF_MANIFEST_FILE ": is not the manifest of this snapshot",
			saved->path);
	wf_saved_close(saved);
	return st;
}

struct opening {
	const struct wf_saved_place *place;
	struct wf_saved **out;
};

static enum weft_status
open_one(void *arg, struct wf_snapshot_id id)
{
	const struct opening *opening = arg;
	const struct wf_saved_place *place = opening->place;
	char name[WF_SNAPSHOT_LEAF_BYTES];
	char path[WF_SAVED_PATH_BYTES];

	wf_snapshot_name(id, name);
	enum weft_status st = wf_saved_join(place->dir, name, path);
	if (st == WEFT_OK) {
		st = wf_saved_read_any(place->env, place->calls, path, opening->out);
	}
	return st == WEFT_OK ? check_id(*opening->out, id) : st;
}

static enum weft_status
open_of_folder(const struct wf_saved_place *place, struct wf_snapshot_list *list,
	       struct wf_saved **out)
{
	const uint32_t count = list->count;

	enum weft_status st = keep_history(place, list);
	if (st == WEFT_OK && list->count == 0) {
		return wf_fail(WEFT_DATA,
			       "%s: none of its %" PRIu32 " snapshots is of the history that "
			       "remains; name the one that is meant",
			       place->dir, count);
	}
	struct opening opening = {place, out};
	return st == WEFT_OK ? wf_snapshot_choose(place->env, place->dir, list, open_one, &opening)
			     : st;
}

/* Whether the path has a manifest of its own. */
static bool
is_itself(const char *path)
{
	char manifest[WF_SAVED_PATH_BYTES];
	struct stat info;

	return wf_saved_join(path, WF_MANIFEST_FILE, manifest) != WEFT_OK ||
	       lstat(manifest, &info) == 0;
}

/* The snapshots of a folder; none of what is no folder. */
static struct wf_snapshot_list
list_of(const struct wf_saved_place *place)
{
	struct wf_snapshot_list list = {0};

	if (is_itself(place->dir) ||
	    wf_snapshot_list(place->env, place->calls, place->dir, &list) != WEFT_OK) {
		return (struct wf_snapshot_list){0};
	}
	return list;
}

enum weft_status
wf_saved_open_newest(struct wf_env *env, const struct wf_saved_calls *calls, const char *path,
		     struct wf_saved **out)
{
	char plain[WF_SAVED_PATH_BYTES];
	const struct wf_saved_place place = {env, calls, plain};

	enum weft_status st = settle(&(struct wf_saved_place){env, calls, path}, plain);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_snapshot_list list = list_of(&place);
	st = list.count > 0 ? open_of_folder(&place, &list, out)
			    : wf_saved_read_any(env, calls, plain, out);
	wf_snapshot_list_fini(env, &list);
	return st;
}
