/* SPDX-License-Identifier: Apache-2.0 */
/* At every moment, and after a crash at any moment, the folder has the older save or the newer one,
 * whole: under its name, or aside with nothing under its name (wf_saved_recover). The holder of the
 * folder's lock knows that no other process is at work, so half-done saves are leftovers and may be
 * removed. To give a save its name back needs no lock: it is one rename, which replaces no name,
 * and a save that is between its two renames repeats them. Thread: the caller's. */
#include "saved/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "saved/internal.h"
#include "saved/manifest.h"
#include "saved/removal.h"

#define PASS_NAME "pass-"
#define TEMPORARY ".tmp-"
#define ASIDE ".old-"
#define LEFTOVERS_MAX 10000u /* of one pass that could not be removed */
#define EXCHANGES_MAX 100u   /* of one save, while others give the older one its name back */

static void
pass_name(uint64_t pass, char out[WF_SAVED_LEAF_BYTES])
{
	snprintf(out, WF_SAVED_LEAF_BYTES, PASS_NAME "%05" PRIu64, pass);
}

enum weft_status
wf_saved_pass_path(const char *dir, uint64_t pass, char *out)
{
	char name[WF_SAVED_LEAF_BYTES];

	pass_name(pass, name);
	return wf_saved_join(dir, name, out);
}

/* The pass of a name, if the name has its exact spelling. */
static bool
pass_of(const char *name, uint64_t *out)
{
	char again[WF_SAVED_LEAF_BYTES];

	if (strncmp(name, PASS_NAME, sizeof(PASS_NAME) - 1) != 0) {
		return false;
	}
	*out = strtoull(name + sizeof(PASS_NAME) - 1, NULL, 10);
	pass_name(*out, again);
	return strcmp(again, name) == 0;
}

/* The pass of ".pass-00003<mark>1", and the number, which may be NULL. */
static bool
hidden_pass_of(const char *name, const char *mark, uint64_t *out, uint64_t *number_out)
{
	char pass[WF_SAVED_LEAF_BYTES];
	const char *at = strstr(name, mark);

	if (name[0] != '.' || at == NULL || at - name >= (ptrdiff_t)sizeof(pass)) {
		return false;
	}
	snprintf(pass, sizeof(pass), "%.*s", (int)(at - name - 1), name + 1);
	const char *number = at + strlen(mark);
	if (number_out != NULL) {
		*number_out = strtoull(number, NULL, 10);
	}
	return number[0] != '\0' && number[strspn(number, "0123456789")] == '\0' &&
	       strlen(name) < WF_SAVED_LEAF_BYTES && pass_of(pass, out);
}

/* The entry itself, without following a link. -1: nothing, or errno. */
static int
look_at(const struct wf_saved_folder *folder, const char *name, struct stat *out)
{
	return fstatat(folder->fd, name, out, AT_SYMLINK_NOFOLLOW);
}

/* ".pass-00003<mark>1", or the next number that is free. */
static enum weft_status
free_name(const struct wf_saved_folder *folder, uint64_t pass, const char *mark,
	  char out[WF_SAVED_LEAF_BYTES])
{
	struct stat info;

	for (unsigned i = 1; i <= LEFTOVERS_MAX; i++) {
		snprintf(out, WF_SAVED_LEAF_BYTES, "." PASS_NAME "%05" PRIu64 "%s%u", pass, mark,
			 i);
		if (look_at(folder, out, &info) != 0) {
			return errno == ENOENT
				       ? WEFT_OK
				       : wf_fail_errno(WEFT_IO, errno, "%s/%s: cannot be examined",
						       folder->path, out);
		}
	}
	return wf_fail(WEFT_IO, "%s: %u names like %s are in use; remove those files", folder->path,
		       LEFTOVERS_MAX, out);
}

static enum weft_status
move(const struct wf_saved_folder *folder, const char *from, const char *to)
{
	if (folder->calls->renameat(folder->fd, from, folder->fd, to) != 0) {
		return wf_fail_errno(WEFT_IO, errno, "%s/%s: cannot be renamed to %s", folder->path,
				     from, to);
	}
	return WEFT_OK;
}

/* Removes a save of the pass under a name that clean_up removes, so that a crash leaves no half of
 * a save that could be taken for a whole one. */
static enum weft_status
discard(const struct wf_saved_folder *folder, uint64_t pass, const char *name)
{
	char temporary[WF_SAVED_LEAF_BYTES];
	struct stat info;

	enum weft_status st = wf_saved_check_ours(folder, name, &info);
	if (st == WEFT_OK) {
		st = free_name(folder, pass, TEMPORARY, temporary);
	}
	if (st == WEFT_OK) {
		st = move(folder, name, temporary);
	}
	return st == WEFT_OK ? wf_saved_remove(folder, temporary) : st;
}

/* What has the name is a folder and a save that can be read, to its last byte. WEFT_DATA, WEFT_IO
 */
static enum weft_status
check_whole(const struct wf_saved_folder *folder, const char *name)
{
	char path[WF_SAVED_PATH_BYTES];
	struct wf_saved *saved = NULL;
	struct stat info;

	enum weft_status st = wf_saved_join(folder->path, name, path);
	if (st != WEFT_OK) {
		return st;
	}
	if (look_at(folder, name, &info) != 0) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be examined", path);
	}
	if (!S_ISDIR(info.st_mode)) {
		return wf_fail(WEFT_IO, "%s: is a link or a file, not a folder that weft made",
			       path);
	}
	st = wf_saved_read(folder->env, folder->calls, path, &saved);
	wf_saved_close(saved);
	return st;
}

/* The pass's save aside with the highest number below `*below`, which becomes that number. false:
 * there is none. */
static bool
last_aside(const struct wf_saved_folder *folder, uint64_t pass, uint64_t *below,
	   char out[WF_SAVED_LEAF_BYTES])
{
	DIR *names = wf_saved_names(folder->calls, folder->fd);
	uint64_t of = 0;
	uint64_t number = 0;
	uint64_t highest = 0;
	bool has = false;

	for (struct dirent *e = names == NULL ? NULL : readdir(names); e != NULL;
	     e = readdir(names)) {
		if (hidden_pass_of(e->d_name, ASIDE, &of, &number) && of == pass &&
		    number < *below && (!has || number > highest)) {
			snprintf(out, WF_SAVED_LEAF_BYTES, "%.*s", (int)WF_SAVED_LEAF_BYTES - 1,
				 e->d_name);
			highest = number;
			has = true;
		}
	}
	if (names != NULL) {
		closedir(names);
	}
	*below = highest;
	return has;
}

/* The newest whole save aside gets its name back; a link or something half does not. The failure is
 * that of the oldest. */
static enum weft_status
put_back(const struct wf_saved_folder *folder, uint64_t pass, const char *name)
{
	char aside[WF_SAVED_LEAF_BYTES];
	enum weft_status st = WEFT_OK;
	uint64_t below = UINT64_MAX;

	while (last_aside(folder, pass, &below, aside)) {
		st = check_whole(folder, aside);
		if (st == WEFT_OK) {
			return move(folder, aside, name);
		}
	}
	return st;
}

/* A save aside gets its name back if that is free, and is removed if a complete save has it. If
 * something else has the name, the save stays aside. */
static enum weft_status
settle_aside(const struct wf_saved_folder *folder, uint64_t pass, const char *aside)
{
	char name[WF_SAVED_LEAF_BYTES];
	struct stat info;

	pass_name(pass, name);
	enum weft_status st = WEFT_OK;
	if (look_at(folder, name, &info) != 0) {
		st = errno == ENOENT ? put_back(folder, pass, name)
				     : wf_fail_errno(WEFT_IO, errno, "%s/%s: cannot be examined",
						     folder->path, name);
	}
	/* Without the lock its owner is unknown. */
	if (st != WEFT_OK || !folder->is_locked || look_at(folder, aside, &info) != 0) {
		return st;
	}
	st = wf_saved_check_ours(folder, aside, &info);
	if (st != WEFT_OK) {
		return st;
	}
	st = wf_saved_check_ours(folder, name, &info);
	if (st == WEFT_OK) {
		st = check_whole(folder, name);
	}
	if (st != WEFT_OK) {
		const struct wf_error why = *wf_error_record();
		return wf_fail(
			WEFT_IO,
			"%s/%s is kept, because %s is not a complete save that could replace it "
			"(%.300s); once you move that elsewhere, the save gets its name back",
			folder->path, aside, name, why.text);
	}
	return discard(folder, pass, aside);
}

/* Cleans up what interrupted saves left in the folder. `aside_of` not NULL: only what they put
 * aside of that pass, because a reader removes nothing else. Without the lock nothing is removed at
 * all. What cannot be removed stays and is reported. */
static void
clean_up(const struct wf_saved_folder *folder, const uint64_t *aside_of)
{
	const struct wf_error why = *wf_error_record();
	uint64_t pass = 0;
	DIR *names = wf_saved_names(folder->calls, folder->fd);

	if (names == NULL) {
		return;
	}
	for (struct dirent *e = readdir(names); e != NULL; e = readdir(names)) {
		enum weft_status st = WEFT_OK;
		if (hidden_pass_of(e->d_name, ASIDE, &pass, NULL)) {
			if (aside_of == NULL || pass == *aside_of) {
				st = settle_aside(folder, pass, e->d_name);
			}
		} else if (aside_of == NULL && folder->is_locked &&
			   hidden_pass_of(e->d_name, TEMPORARY, &pass, NULL)) {
			st = wf_saved_remove(folder, e->d_name);
		}
		if (st != WEFT_OK) {
			wf_log(folder->env, WF_LOG_WARN,
			       "remains of an interrupted save are still there: %s",
			       weft_last_error());
		}
	}
	closedir(names);
	*wf_error_record() = why;
}

enum weft_status
wf_saved_folder_open(const struct wf_saved_place *place, struct wf_saved_folder **out)
{
	if (place->calls->mkdirat(AT_FDCWD, place->dir, 0777) != 0 && errno != EEXIST) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be created", place->dir);
	}
	enum weft_status st = wf_saved_folder_lock(place, out);
	if (st == WEFT_OK) {
		clean_up(*out, NULL);
	}
	return st;
}

enum weft_status
wf_saved_folder_check(const struct wf_saved_folder *folder, uint64_t first, uint64_t end)
{
	enum weft_status st = WEFT_OK;
	uint64_t pass = 0;
	struct stat info;
	DIR *names = wf_saved_names(folder->calls, folder->fd);

	if (names == NULL) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be listed", folder->path);
	}
	for (struct dirent *e = readdir(names); st == WEFT_OK && e != NULL; e = readdir(names)) {
		if (pass_of(e->d_name, &pass) && pass >= first && pass < end) {
			st = wf_saved_check_ours(folder, e->d_name, &info);
		}
	}
	closedir(names);
	return st;
}

enum weft_status
wf_saved_check_free(const struct wf_saved_folder *folder, uint64_t pass)
{
	char name[WF_SAVED_LEAF_BYTES];
	struct stat info;

	pass_name(pass, name);
	return look_at(folder, name, &info) != 0
		       ? WEFT_OK
		       : wf_fail(WEFT_INVALID, "%s/%s: exists already; name another folder or pass",
				 folder->path, name);
}

/* Whether there is something of the pass aside in a folder that is not open. */
static bool
has_aside(const struct wf_saved_calls *calls, const char *dir, uint64_t pass)
{
	uint64_t other = 0;
	bool has = false;
	int fd = calls->openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	DIR *names = fd < 0 ? NULL : wf_saved_names(calls, fd);

	for (struct dirent *e = names == NULL ? NULL : readdir(names); e != NULL && !has;
	     e = readdir(names)) {
		has = hidden_pass_of(e->d_name, ASIDE, &other, NULL) && other == pass;
	}
	if (names != NULL) {
		closedir(names);
	}
	if (fd >= 0) {
		(void)calls->close(fd);
	}
	return has;
}

enum weft_status
wf_saved_find_last(const struct wf_saved_calls *calls, const char *dir, uint64_t *out)
{
	return wf_saved_find_before(calls, dir, UINT64_MAX, out);
}

enum weft_status
wf_saved_find_before(const struct wf_saved_calls *calls, const char *dir, uint64_t end,
		     uint64_t *out)
{
	const int fd = calls->openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	DIR *names = fd < 0 ? NULL : wf_saved_names(calls, fd);
	bool is_found = false;
	uint64_t pass = 0;

	if (names == NULL) {
		enum weft_status st = wf_fail_errno(WEFT_IO, errno, "%s: cannot be listed", dir);
		if (fd >= 0) {
			(void)calls->close(fd); /* nothing was written through it */
		}
		return st;
	}
	for (struct dirent *e = readdir(names); e != NULL; e = readdir(names)) {
		if ((pass_of(e->d_name, &pass) || hidden_pass_of(e->d_name, ASIDE, &pass, NULL)) &&
		    pass < end && (!is_found || pass > *out)) {
			*out = pass;
			is_found = true;
		}
	}
	closedir(names);
	(void)calls->close(fd);
	return is_found ? WEFT_OK : wf_fail(WEFT_DATA, "%s: has no saved pass", dir);
}

void
wf_saved_recover(struct wf_env *env, const struct wf_saved_calls *calls, const char *path)
{
	char dir[WF_SAVED_PATH_BYTES] = ".";
	const struct wf_saved_place place = {.env = env, .calls = calls, .dir = dir};
	const char *slash = strrchr(path, '/');
	struct wf_saved_folder *folder = NULL;
	struct stat info;
	uint64_t pass = 0;

	if (lstat(path, &info) == 0 || errno != ENOENT ||
	    !pass_of(slash == NULL ? path : slash + 1, &pass)) {
		return;
	}
	if (slash != NULL) {
		/* With the slash, so that "/" stays "/". */
		snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path) + 1, path);
	}
	if (has_aside(calls, dir, pass) && wf_saved_folder_lock(&place, &folder) == WEFT_OK) {
		clean_up(folder, &pass);
		wf_saved_folder_close(folder);
	}
}

/* The save that is to be replaced, which must be one. `*is_there` and then `*out`. */
static enum weft_status
check_older(const struct wf_saved_folder *folder, const char *name, bool *is_there,
	    struct stat *out)
{
	*is_there = look_at(folder, name, out) == 0;
	return *is_there ? wf_saved_check_ours(folder, name, out) : WEFT_OK;
}

static enum weft_status
make_temporary(struct wf_saved_way *way)
{
	const struct wf_saved_folder *folder = way->folder;

	enum weft_status st = free_name(folder, way->pass, TEMPORARY, way->temporary);
	if (st == WEFT_OK) {
		st = wf_saved_join(folder->path, way->temporary, way->path);
	}
	if (st != WEFT_OK) {
		return st;
	}
	if (folder->calls->mkdirat(folder->fd, way->temporary, 0777) != 0) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be created", way->path);
	}
	way->fd = wf_saved_open_folder(folder->calls, folder->fd, way->temporary);
	if (way->fd < 0) {
		st = wf_fail_errno(WEFT_IO, errno, "%s: cannot be opened", way->path);
		(void)folder->calls->unlinkat(folder->fd, way->temporary, AT_REMOVEDIR);
	}
	return st;
}

enum weft_status
wf_saved_way_begin(struct wf_saved_folder *folder, uint64_t pass, struct wf_saved_way *out)
{
	char name[WF_SAVED_LEAF_BYTES];
	struct stat info;
	bool is_there = false;

	*out = (struct wf_saved_way){.folder = folder, .pass = pass, .fd = -1};
	pass_name(pass, name);
	clean_up(folder, NULL);
	enum weft_status st = check_older(folder, name, &is_there, &info);
	return st == WEFT_OK ? make_temporary(out) : st;
}

/* The moved save is the one that was examined. */
static enum weft_status
check_moved(const struct wf_saved_folder *folder, const char *name, const char *aside,
	    const struct stat *older)
{
	struct stat info;

	if (look_at(folder, aside, &info) == 0 && info.st_dev == older->st_dev &&
	    info.st_ino == older->st_ino) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_IO, "%s/%s: another process has created it meanwhile", folder->path,
		       name);
}

/* Puts the older save aside and the newer one under its name. Between the two renames a process
 * without the lock may give the older one its name back: then they are repeated. */
static enum weft_status
swap(const struct wf_saved_way *way, const char *name, const char *aside, const struct stat *older)
{
	const struct wf_saved_folder *folder = way->folder;

	for (unsigned i = 0; i < EXCHANGES_MAX; i++) {
		struct stat info;
		enum weft_status st = older == NULL ? WEFT_OK : move(folder, name, aside);
		if (st != WEFT_OK) {
			return st;
		}
		if (older != NULL) {
			st = check_moved(folder, name, aside, older);
		}
		if (st == WEFT_OK) {
			st = move(folder, way->temporary, name);
		}
		if (st == WEFT_OK || older == NULL || look_at(folder, aside, &info) == 0 ||
		    errno != ENOENT) {
			return st;
		}
	}
	return wf_fail(WEFT_IO, "%s/%s: its older save keeps coming back", folder->path, name);
}

/* Undone if it cannot be made durable. */
static enum weft_status
exchange(const struct wf_saved_way *way, const char *name, const char *aside,
	 const struct stat *older)
{
	const struct wf_saved_folder *folder = way->folder;

	enum weft_status st = swap(way, name, aside, older);
	if (st == WEFT_OK) {
		st = wf_saved_sync_folder(folder->calls, folder->fd, folder->path);
		if (st != WEFT_OK) {
			(void)folder->calls->renameat(folder->fd, name, folder->fd, way->temporary);
		}
	}
	if (st != WEFT_OK && older != NULL) {
		(void)folder->calls->renameat(folder->fd, aside, folder->fd, name);
	}
	return st;
}

/* Under its name, and what had the name is gone. */
static enum weft_status
put_in_place(const struct wf_saved_way *way)
{
	const struct wf_saved_folder *folder = way->folder;
	char name[WF_SAVED_LEAF_BYTES];
	char aside[WF_SAVED_LEAF_BYTES];
	struct stat older;
	bool is_replacing = false;

	pass_name(way->pass, name);
	enum weft_status st = check_older(folder, name, &is_replacing, &older);
	if (st == WEFT_OK) {
		st = free_name(folder, way->pass, ASIDE, aside);
	}
	if (st == WEFT_OK) {
		st = exchange(way, name, aside, is_replacing ? &older : NULL);
	}
	if (st == WEFT_OK && is_replacing && discard(folder, way->pass, aside) != WEFT_OK) {
		wf_log(folder->env, WF_LOG_WARN, "the save that was replaced is still there: %s",
		       weft_last_error());
	}
	return st;
}

enum weft_status
wf_saved_way_end(struct wf_saved_way *way, enum weft_status st)
{
	const struct wf_saved_folder *folder = way->folder;

	if (st == WEFT_OK && folder->calls->unlinkat(way->fd, WF_MANIFEST_DRAFT, 0) != 0) {
		st = wf_fail_errno(WEFT_IO, errno, "%s/" WF_MANIFEST_DRAFT ": cannot be removed",
				   way->path);
	}
	if (st == WEFT_OK) {
		st = wf_saved_sync_folder(folder->calls, way->fd, way->path);
	}
	(void)folder->calls->close(way->fd); /* nothing was written through it */
	if (st == WEFT_OK) {
		st = put_in_place(way);
	}
	if (st != WEFT_OK) {
		const struct wf_error why = *wf_error_record();
		if (wf_saved_remove(folder, way->temporary) != WEFT_OK) {
			wf_log(folder->env, WF_LOG_WARN, "part of a save is still there: %s",
			       weft_last_error());
		}
		*wf_error_record() = why;
	}
	return st;
}

enum weft_status
wf_saved_remove_older(struct wf_saved_folder *folder, uint64_t pass)
{
	enum weft_status first = WEFT_OK;
	struct wf_error why = {0};
	uint64_t older = 0;
	DIR *names = wf_saved_names(folder->calls, folder->fd);

	if (names == NULL) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be listed", folder->path);
	}
	for (struct dirent *e = readdir(names); e != NULL; e = readdir(names)) {
		if (pass_of(e->d_name, &older) && older < pass) {
			enum weft_status st = discard(folder, older, e->d_name);
			if (first == WEFT_OK && st != WEFT_OK) {
				first = st;
				why = *wf_error_record();
			}
		}
	}
	closedir(names);
	if (first != WEFT_OK) {
		*wf_error_record() = why;
	}
	return first;
}
