/* SPDX-License-Identifier: Apache-2.0 */
/* Making, finding and reading snapshots. A file is written under a name that no other process has,
 * so a process that was replaced and goes on can neither publish what its successor has half
 * written nor be in its way; and it gets its name only if nothing has that name. Thread: the
 * caller's. */
#include "saved/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "saved/folder.h"
#include "saved/snapshot_removal.h"
#include "saved/walk.h"

struct wf_snapshot {
	struct wf_env *env;
	const struct wf_saved_calls *calls;
	struct wf_snapshot_id id;
	char path[WF_SAVED_PATH_BYTES];
	struct wf_manifest manifest;
};

void
wf_snapshot_name(struct wf_snapshot_id id, char *out)
{
	snprintf(out, WF_SNAPSHOT_LEAF_BYTES, "epoch-%05" PRIu64 "-step-%010" PRIu64, id.epoch,
		 id.step);
}

bool
wf_snapshot_of_name(const char *name, struct wf_snapshot_id *out)
{
	char again[WF_SNAPSHOT_LEAF_BYTES];
	const char *step = strstr(name, "-step-");

	if (strncmp(name, "epoch-", 6) != 0 || step == NULL) {
		return false;
	}
	out->epoch = strtoull(name + 6, NULL, 10);
	out->step = strtoull(step + 6, NULL, 10);
	wf_snapshot_name(*out, again);
	return strcmp(again, name) == 0;
}

/* Whoever made the folder may not have come to this. Without the right to read its parent, somebody
 * else has made it long ago. */
static enum weft_status
sync_parent(const struct wf_saved_folder *folder)
{
	const int fd =
		folder->calls->openat(folder->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

	if (fd < 0) {
		return errno == EACCES ? WEFT_OK
				       : wf_fail_errno(WEFT_IO, errno, "%s/..: cannot be opened",
						       folder->path);
	}
	enum weft_status st = wf_saved_sync_folder(folder->calls, fd, folder->path);
	(void)folder->calls->close(fd); /* nothing was written through it */
	return st;
}

enum weft_status
wf_snapshot_folder_open(const struct wf_saved_place *place, struct wf_saved_folder **out)
{
	struct wf_saved_folder *folder = NULL;

	if (place->calls->mkdirat(AT_FDCWD, place->dir, 0777) != 0 && errno != EEXIST) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be created", place->dir);
	}
	enum weft_status st = wf_saved_folder_share(place, &folder);
	if (st == WEFT_OK) {
		st = sync_parent(folder);
	}
	if (st != WEFT_OK) {
		wf_saved_folder_close(folder);
		return st;
	}
	*out = folder;
	return WEFT_OK;
}

/* The directory's name is durable, whoever made it: that process may not have come to this. */
static enum weft_status
make_directory(struct wf_snapshot_file *file)
{
	const struct wf_saved_folder *folder = file->folder;

	if (folder->calls->mkdirat(folder->fd, file->directory, 0777) != 0 && errno != EEXIST) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be created", file->directory_path);
	}
	file->spot.folder = wf_saved_open_folder(folder->calls, folder->fd, file->directory);
	if (file->spot.folder < 0) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be opened as a folder",
				     file->directory_path);
	}
	return wf_saved_sync_folder(folder->calls, folder->fd, folder->path);
}

/* Nothing is left, unless another lane has something there. */
static void
undo_directory(struct wf_snapshot_file *file)
{
	const struct wf_saved_folder *folder = file->folder;

	if (file->spot.folder >= 0) {
		(void)folder->calls->close(file->spot.folder);
		file->spot.folder = -1;
	}
	(void)folder->calls->unlinkat(folder->fd, file->directory, AT_REMOVEDIR);
}

enum weft_status
wf_snapshot_part_begin(struct wf_saved_folder *folder, struct wf_snapshot_id id, const char *leaf,
		       struct wf_snapshot_file *out)
{
	out->folder = folder;
	out->spot = (struct wf_saved_spot){folder->calls, -1, out->path};
	wf_snapshot_name(id, out->directory);
	WF_ASSERT(strlen(leaf) < sizeof(out->leaf));
	snprintf(out->leaf, sizeof(out->leaf), "%s", leaf);
	snprintf(out->temporary, sizeof(out->temporary), ".%s.tmp-%016" PRIx64, leaf,
		 wf_random(folder->env));
	enum weft_status st = wf_saved_join(folder->path, out->directory, out->directory_path);
	if (st == WEFT_OK) {
		st = wf_saved_join(out->directory_path, out->temporary, out->path);
	}
	if (st != WEFT_OK) {
		return st;
	}
	st = make_directory(out);
	if (st != WEFT_OK) {
		undo_directory(out);
	}
	return st;
}

/* From its temporary name to its own, which nothing may have. */
static enum weft_status
publish(const struct wf_snapshot_file *file)
{
	const int fd = file->spot.folder;

	if (file->spot.calls->claim_name(fd, file->temporary, file->leaf) == 0) {
		return WEFT_OK;
	}
	return errno == EEXIST
		       ? wf_fail(WEFT_IO,
				 "%s/%s: exists already and is not replaced; another process may "
				 "have written it",
				 file->directory_path, file->leaf)
		       : wf_fail_errno(WEFT_IO, errno, "%s: cannot be renamed to %s", file->path,
				       file->leaf);
}

enum weft_status
wf_snapshot_part_end(struct wf_snapshot_file *file, enum weft_status st)
{
	const struct wf_saved_calls *calls = file->spot.calls;
	const char *name = file->temporary;

	if (st == WEFT_OK) {
		st = publish(file);
		name = st == WEFT_OK ? file->leaf : name;
	}
	if (st == WEFT_OK) {
		st = wf_saved_sync_folder(calls, file->spot.folder, file->directory_path);
	}
	if (st != WEFT_OK) {
		(void)calls->unlinkat(file->spot.folder, name, 0);
		undo_directory(file);
		return st;
	}
	(void)calls->close(file->spot.folder); /* nothing was written through it */
	file->spot.folder = -1;
	return WEFT_OK;
}

/* What was written, before it gets its name. */
static enum weft_status
check_readable(struct wf_env *env, const struct wf_saved_spot *spot)
{
	struct wf_manifest manifest;
	struct wf_saved_file file;

	enum weft_status st = wf_saved_file_open_at(spot, &file);
	if (st != WEFT_OK) {
		return st;
	}
	st = wf_manifest_read(env, &file, &manifest);
	wf_saved_file_close(&file);
	if (st == WEFT_OK) {
		wf_manifest_fini(env, &manifest);
	}
	return st == WEFT_DATA ? WEFT_INVALID : st;
}

enum weft_status
wf_snapshot_manifest_write(struct wf_saved_folder *folder, struct wf_snapshot_id id,
			   const struct wf_manifest *manifest)
{
	struct wf_snapshot_file file;

	WF_ASSERT(wf_manifest_is_snapshot(manifest));
	WF_ASSERT(manifest->parts.epoch == id.epoch && manifest->about.step == id.step);
	enum weft_status st = wf_snapshot_part_begin(folder, id, WF_MANIFEST_FILE, &file);
	if (st != WEFT_OK) {
		return st;
	}
	st = wf_manifest_write(folder->env, &file.spot, manifest);
	if (st == WEFT_OK) {
		st = check_readable(folder->env, &file.spot);
	}
	return wf_snapshot_part_end(&file, st);
}

/* Negative where `a` is the newer one. */
static int
compare_ids(const void *a, const void *b)
{
	const struct wf_snapshot_id *x = a;
	const struct wf_snapshot_id *y = b;

	if (x->epoch != y->epoch) {
		return x->epoch > y->epoch ? -1 : 1;
	}
	return x->step == y->step ? 0 : x->step > y->step ? -1 : 1;
}

static enum weft_status
add_id(struct wf_env *env, struct wf_snapshot_list *list, struct wf_snapshot_id id)
{
	if (list->count == list->room) {
		const uint32_t room = list->room == 0 ? 64 : 2 * list->room;
		struct wf_snapshot_id *more =
			room > WF_SNAPSHOT_LIST_MAX ? NULL
						    : wf_zalloc_array(env, room, sizeof(*list->id));
		if (more == NULL) {
			return wf_fail(WEFT_NOMEM, "list of %" PRIu32 " snapshots; at most %u",
				       room, WF_SNAPSHOT_LIST_MAX);
		}
		if (list->count > 0) {
			memcpy(more, list->id, list->count * sizeof(*more));
		}
		wf_free(env, list->id, list->room * sizeof(*list->id));
		list->id = more;
		list->room = room;
	}
	list->id[list->count++] = id;
	return WEFT_OK;
}

bool
wf_snapshot_has_manifest(const struct wf_saved_calls *calls, int folder, const char *name)
{
	struct stat info;
	const int fd = wf_saved_open_folder(calls, folder, name);

	if (fd < 0) {
		return errno != ENOENT && errno != ENOTDIR && errno != ELOOP;
	}
	bool has =
		fstatat(fd, WF_MANIFEST_FILE, &info, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
	(void)calls->close(fd);
	return has;
}

static enum weft_status
list_names(struct wf_env *env, const struct wf_saved_calls *calls, int folder, const char *dir,
	   struct wf_snapshot_list *out)
{
	struct wf_snapshot_id id;
	enum weft_status st = WEFT_OK;
	DIR *names = wf_saved_names(calls, folder);

	if (names == NULL) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be listed", dir);
	}
	for (struct dirent *e = readdir(names); st == WEFT_OK && e != NULL; e = readdir(names)) {
		if (wf_snapshot_of_name(e->d_name, &id) &&
		    wf_snapshot_has_manifest(calls, folder, e->d_name)) {
			st = add_id(env, out, id);
		}
	}
	closedir(names);
	return st;
}

enum weft_status
wf_snapshot_list(struct wf_env *env, const struct wf_saved_calls *calls, const char *dir,
		 struct wf_snapshot_list *out)
{
	struct wf_snapshot_list list = {0};
	const int fd = calls->openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

	if (fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be opened", dir);
	}
	enum weft_status st = list_names(env, calls, fd, dir, &list);
	(void)calls->close(fd); /* nothing was written through it */
	if (st != WEFT_OK) {
		wf_snapshot_list_fini(env, &list);
		return st;
	}
	if (list.count > 0) {
		qsort(list.id, list.count, sizeof(*list.id), compare_ids);
	}
	*out = list;
	return WEFT_OK;
}

void
wf_snapshot_list_fini(struct wf_env *env, struct wf_snapshot_list *list)
{
	wf_free(env, list->id, list->room * sizeof(*list->id));
	*list = (struct wf_snapshot_list){0};
}

enum weft_status
wf_snapshot_choose(struct wf_env *env, const char *dir, const struct wf_snapshot_list *list,
		   enum weft_status (*use)(void *arg, struct wf_snapshot_id id), void *arg)
{
	for (uint32_t i = 0; i < list->count; i++) {
		enum weft_status st = use(arg, list->id[i]);
		if (st == WEFT_OK || st == WEFT_NOMEM) {
			return st;
		}
		wf_log(env, WF_LOG_WARN,
		       "the snapshot of step %" PRIu64 " in epoch %" PRIu64
		       " cannot be used, and the one before it is: %s",
		       list->id[i].step, list->id[i].epoch, weft_last_error());
	}
	return wf_fail(WEFT_DATA,
		       "%s: none of the %" PRIu32 " snapshots of its history is whole; `weft ckpt "
		       "verify` says why",
		       dir, list->count);
}

static enum weft_status
check_id(const struct wf_snapshot *snapshot)
{
	const struct wf_manifest *manifest = &snapshot->manifest;

	if (wf_manifest_is_snapshot(manifest) && manifest->parts.epoch == snapshot->id.epoch &&
	    manifest->about.step == snapshot->id.step) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_DATA, "%s/" WF_MANIFEST_FILE ": is not the manifest of this snapshot",
		       snapshot->path);
}

enum weft_status
wf_snapshot_open(struct wf_env *env, const struct wf_saved_calls *calls, const char *dir,
		 struct wf_snapshot_id id, struct wf_snapshot **out)
{
	struct wf_snapshot *snapshot = wf_zalloc(env, sizeof(*snapshot));
	char name[WF_SNAPSHOT_LEAF_BYTES];

	if (snapshot == NULL) {
		return wf_fail(WEFT_NOMEM, "snapshot in %s: %zu bytes", dir, sizeof(*snapshot));
	}
	snapshot->env = env;
	snapshot->calls = calls;
	snapshot->id = id;
	wf_snapshot_name(id, name);
	enum weft_status st = wf_saved_join(dir, name, snapshot->path);
	if (st == WEFT_OK) {
		st = wf_manifest_load(env, calls, snapshot->path, &snapshot->manifest);
	}
	if (st == WEFT_OK) {
		st = check_id(snapshot);
	}
	if (st != WEFT_OK) {
		wf_snapshot_close(snapshot);
		return st;
	}
	*out = snapshot;
	return WEFT_OK;
}

void
wf_snapshot_close(struct wf_snapshot *snapshot)
{
	if (snapshot != NULL) {
		wf_manifest_fini(snapshot->env, &snapshot->manifest);
		wf_free(snapshot->env, snapshot, sizeof(*snapshot));
	}
}

const struct wf_manifest *
wf_snapshot_manifest(const struct wf_snapshot *snapshot)
{
	return &snapshot->manifest;
}

struct wf_block_walk
wf_snapshot_walk(const struct wf_snapshot *snapshot)
{
	return (struct wf_block_walk){
		.env = snapshot->env,
		.calls = snapshot->calls,
		.path = snapshot->path,
		.manifest = &snapshot->manifest,
	};
}

bool
wf_snapshot_base(const struct wf_snapshot *snapshot, struct wf_snapshot_id *out)
{
	*out = (struct wf_snapshot_id){
		.epoch = snapshot->id.epoch,
		.step = snapshot->manifest.parts.base_step,
	};
	return out->step != 0;
}

/* Rows of one are put over rows of the other. */
static bool
has_same_tables(const struct wf_manifest *a, const struct wf_manifest *b)
{
	bool same = a->table_count == b->table_count;

	for (uint32_t i = 0; same && i < a->table_count; i++) {
		const struct wf_manifest_table *x = &a->table[i];
		const struct wf_manifest_table *y = &b->table[i];
		same = x->dim == y->dim && strcmp(x->name, y->name) == 0 &&
		       strcmp(x->optimizer, y->optimizer) == 0;
	}
	return same;
}

/* The folder in which a snapshot's directory is. `out` is [WF_SAVED_PATH_BYTES]. */
static enum weft_status
find_folder(const char *path, char *out)
{
	const char *slash = strrchr(path, '/');
	struct wf_snapshot_id id;

	if (!wf_snapshot_of_name(slash == NULL ? path : slash + 1, &id)) {
		return wf_saved_join(path, "..", out);
	}
	if (slash == NULL) {
		snprintf(out, WF_SAVED_PATH_BYTES, ".");
	} else {
		snprintf(out, WF_SAVED_PATH_BYTES, "%.*s", slash == path ? 1 : (int)(slash - path),
			 path);
	}
	return WEFT_OK;
}

enum weft_status
wf_snapshot_open_base_of(const struct wf_block_walk *walk, struct wf_snapshot **out)
{
	const struct wf_manifest *manifest = walk->manifest;
	const struct wf_snapshot_id id = {manifest->parts.epoch, manifest->parts.base_step};
	char dir[WF_SAVED_PATH_BYTES];
	struct wf_snapshot *base = NULL;

	if (id.step == 0) {
		return wf_fail(WEFT_DATA, "%s: is complete, and builds on nothing", walk->path);
	}
	enum weft_status st = find_folder(walk->path, dir);
	if (st == WEFT_OK) {
		st = wf_snapshot_open(walk->env, walk->calls, dir, id, &base);
	}
	if (st == WEFT_OK && !has_same_tables(manifest, &base->manifest)) {
		st = wf_fail(WEFT_DATA, "%s: has other tables", base->path);
	}
	if (st != WEFT_OK) {
		const struct wf_error why = *wf_error_record();
		wf_snapshot_close(base);
		return wf_fail(st == WEFT_NOMEM ? st : WEFT_DATA,
			       "%s: builds on step %" PRIu64 ", which cannot be used: %.300s",
			       walk->path, id.step, why.text);
	}
	*out = base;
	return WEFT_OK;
}

enum weft_status
wf_snapshot_open_base(const struct wf_snapshot *snapshot, struct wf_snapshot **out)
{
	const struct wf_block_walk walk = wf_snapshot_walk(snapshot);

	return wf_snapshot_open_base_of(&walk, out);
}

enum weft_status
wf_snapshot_crc(const struct wf_snapshot *snapshot, uint32_t *out)
{
	const size_t bytes = wf_manifest_encode(&snapshot->manifest, NULL, 0);
	char *text = wf_zalloc(snapshot->env, bytes + 1);

	if (text == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: %zu bytes of its manifest", snapshot->path, bytes);
	}
	(void)wf_manifest_encode(&snapshot->manifest, text, bytes + 1);
	*out = wf_crc32c(0, text, bytes);
	wf_free(snapshot->env, text, bytes + 1);
	return WEFT_OK;
}

enum weft_status
wf_snapshot_part_path(const struct wf_snapshot *snapshot, uint32_t idx, char *out)
{
	const struct wf_block_walk walk = wf_snapshot_walk(snapshot);

	return wf_block_walk_path(&walk, idx, out);
}

enum weft_status
wf_snapshot_verify_part(const struct wf_snapshot *snapshot, uint32_t idx)
{
	const struct wf_block_walk walk = wf_snapshot_walk(snapshot);

	return wf_block_walk_part(&walk, idx, NULL, NULL);
}

enum weft_status
wf_snapshot_verify(const struct wf_snapshot *snapshot)
{
	enum weft_status st = WEFT_OK;

	for (uint32_t i = 0; st == WEFT_OK && i < snapshot->manifest.parts.part_count; i++) {
		st = wf_snapshot_verify_part(snapshot, i);
	}
	return st;
}

enum weft_status
wf_snapshot_verify_chain(const struct wf_snapshot *snapshot)
{
	struct wf_snapshot_id base;
	struct wf_snapshot *open = NULL;
	const struct wf_snapshot *at = snapshot;

	enum weft_status st = wf_snapshot_verify(at);
	while (st == WEFT_OK && wf_snapshot_base(at, &base)) {
		struct wf_snapshot *next = NULL;
		st = wf_snapshot_open_base(at, &next);
		if (st == WEFT_OK) {
			wf_snapshot_close(open);
			open = next;
			at = next;
			st = wf_snapshot_verify(at);
		}
	}
	wf_snapshot_close(open);
	return st;
}
