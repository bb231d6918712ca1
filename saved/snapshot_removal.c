/* SPDX-License-Identifier: Apache-2.0 */
/* Removing snapshots: the manifest first, so that no crash leaves one that names what is gone.
 * Thread: the caller's. */
#include "saved/snapshot_removal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "saved/removal.h"

#define DIGITS "0123456789abcdef"

/* ".dense-0.tmp-" and 16 digits, or with "manifest". */
static bool
is_temporary(const char *name)
{
	char leaf[WF_MANIFEST_PART_NAME_BYTES];
	const char *mark = strstr(name, ".tmp-");
	enum wf_service service = WF_SERVICE_DENSE;
	uint32_t lane = 0;

	if (name[0] != '.' || mark == NULL || mark - name > (ptrdiff_t)sizeof(leaf)) {
		return false;
	}
	snprintf(leaf, sizeof(leaf), "%.*s", (int)(mark - name - 1), name + 1);
	return strlen(mark + 5) == 16 && strspn(mark + 5, DIGITS) == 16 &&
	       (strcmp(leaf, WF_MANIFEST_FILE) == 0 ||
		wf_manifest_part_lane(leaf, &service, &lane));
}

/* Names that weft gives to files in the directory of a snapshot. */
static bool
is_ours(const char *name)
{
	enum wf_service service = WF_SERVICE_DENSE;
	uint32_t lane = 0;

	return strcmp(name, WF_MANIFEST_FILE) == 0 || is_temporary(name) ||
	       wf_manifest_part_lane(name, &service, &lane);
}

static bool
is_manifest(const char *name)
{
	return strcmp(name, WF_MANIFEST_FILE) == 0;
}

enum weft_status
wf_snapshot_remove_manifest(struct wf_saved_folder *folder, struct wf_snapshot_id id)
{
	char name[WF_SNAPSHOT_LEAF_BYTES];

	wf_snapshot_name(id, name);
	return wf_saved_remove_files(folder, name, is_ours, is_manifest);
}

enum weft_status
wf_snapshot_remove_parts(struct wf_saved_folder *folder, struct wf_snapshot_id id)
{
	char name[WF_SNAPSHOT_LEAF_BYTES];

	wf_snapshot_name(id, name);
	if (wf_snapshot_has_manifest(folder->calls, folder->fd, name)) {
		return wf_fail(WEFT_INVALID,
			       "%s/%s: still has its manifest, which is removed before its parts",
			       folder->path, name);
	}
	enum weft_status st = wf_saved_remove_files(folder, name, is_ours, is_ours);
	if (st == WEFT_OK && folder->calls->unlinkat(folder->fd, name, AT_REMOVEDIR) != 0 &&
	    errno != ENOENT) {
		st = wf_fail_errno(WEFT_IO, errno, "%s/%s: cannot be removed", folder->path, name);
	}
	return st;
}

static enum weft_status
sweep_one(struct wf_saved_folder *folder, const char *name, struct wf_snapshot_id id)
{
	return wf_snapshot_has_manifest(folder->calls, folder->fd, name)
		       ? wf_saved_remove_files(folder, name, is_ours, is_temporary)
		       : wf_snapshot_remove_parts(folder, id);
}

void
wf_snapshot_sweep(struct wf_saved_folder *folder, const struct wf_snapshot_id *under_way)
{
	const struct wf_error why = *wf_error_record();
	DIR *names = wf_saved_names(folder->calls, folder->fd);
	struct wf_snapshot_id id;

	if (names == NULL) {
		wf_log(folder->env, WF_LOG_WARN, "%s: cannot be listed: %s", folder->path,
		       strerror(errno));
		return;
	}
	for (struct dirent *e = readdir(names); e != NULL; e = readdir(names)) {
		if (!wf_snapshot_of_name(e->d_name, &id) ||
		    (under_way != NULL && id.epoch == under_way->epoch &&
		     id.step == under_way->step)) {
			continue;
		}
		if (sweep_one(folder, e->d_name, id) != WEFT_OK) {
			wf_log(folder->env, WF_LOG_WARN,
			       "remains of an interrupted snapshot are still there: %s",
			       weft_last_error());
		}
	}
	closedir(names);
	*wf_error_record() = why;
}
