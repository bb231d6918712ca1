/* SPDX-License-Identifier: Apache-2.0 */
/* At every moment, and after a death at any, the folder has the older save or the newer one, whole:
 * under its name, or aside with nothing under its name (wf_saved_recover). Thread: the caller's. */
#include "trainer/saved/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"

#define PASS_NAME "pass-"
#define TEMPORARY ".tmp-"
#define ASIDE ".old-"
#define LEAF_BYTES 128u

enum weft_status
wf_saved_pass_path(const char *dir, uint64_t pass, char *out)
{
	char name[LEAF_BYTES];

	snprintf(name, sizeof(name), PASS_NAME "%05" PRIu64, pass);
	return wf_saved_join(dir, name, out);
}

static enum weft_status
make_folder(const struct wf_saved_calls *calls, const char *path)
{
	if (calls->mkdir(path, 0777) != 0) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be made", path);
	}
	return WEFT_OK;
}

enum weft_status
wf_saved_prepare(const struct wf_saved_place *place)
{
	struct stat info;

	if (stat(place->dir, &info) != 0) {
		return make_folder(place->calls, place->dir);
	}
	if (!S_ISDIR(info.st_mode)) {
		return wf_fail(WEFT_IO, "%s: is no folder", place->dir);
	}
	if (access(place->dir, W_OK | X_OK) != 0) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be written to", place->dir);
	}
	return WEFT_OK;
}

/* What stays is found again by the next save. What is no directory goes too. */
int
wf_saved_remove_folder(const char *path)
{
	char file[WF_SAVED_PATH_BYTES];
	DIR *dir = opendir(path);

	if (dir == NULL) {
		return errno == ENOTDIR ? unlink(path) : -1;
	}
	for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
		    wf_saved_join(path, e->d_name, file) == WEFT_OK) {
			(void)unlink(file);
		}
	}
	closedir(dir);
	return rmdir(path);
}

/* Whether the number behind `mark` in a name is that of a process that is gone, or our own: one
 * thread at a time uses a folder, so ours is not at work. */
static bool
is_abandoned(const char *name, const char *mark)
{
	char *end = NULL;
	const char *number = strstr(name, mark);

	if (number == NULL) {
		return false;
	}
	number += strlen(mark);
	if (*number < '1' || *number > '9') {
		return false;
	}
	errno = 0;
	long pid = strtol(number, &end, 10);
	if (errno != 0 || *end != '\0' || (long)(pid_t)pid != pid) {
		return false;
	}
	return pid == (long)getpid() || (kill((pid_t)pid, 0) != 0 && errno == ESRCH);
}

/* ".pass-00003.old-7" is one of "pass-00003". */
static bool
is_aside_of(const char *aside, const char *name)
{
	const size_t bytes = strlen(name);

	return strncmp(aside + 1, name, bytes) == 0 &&
	       strncmp(aside + 1 + bytes, ASIDE, sizeof(ASIDE) - 1) == 0;
}

/* The save aside gets its name back if there is no other of that name. */
static void
put_back(const struct wf_saved_calls *calls, const char *dir, const char *aside)
{
	char from[WF_SAVED_PATH_BYTES];
	char to[WF_SAVED_PATH_BYTES];
	char name[LEAF_BYTES];
	struct stat info;

	snprintf(name, sizeof(name), "%.*s", (int)(strstr(aside, ASIDE) - aside - 1), aside + 1);
	if (wf_saved_join(dir, aside, from) != WEFT_OK || wf_saved_join(dir, name, to) != WEFT_OK) {
		return;
	}
	if (lstat(to, &info) == 0) {
		(void)wf_saved_remove_folder(from);
	} else if (errno == ENOENT) {
		(void)calls->rename(from, to);
	}
}

/* What dead processes left in the folder; `aside_of` not NULL: only what they put aside of that
 * pass, for who only reads removes nothing. */
static void
clean_up(const struct wf_saved_calls *calls, const char *dir, const char *aside_of)
{
	char path[WF_SAVED_PATH_BYTES];
	DIR *folder = opendir(dir);

	if (folder == NULL) {
		return;
	}
	for (struct dirent *e = readdir(folder); e != NULL; e = readdir(folder)) {
		if (strncmp(e->d_name, "." PASS_NAME, sizeof("." PASS_NAME) - 1) != 0 ||
		    strlen(e->d_name) >= LEAF_BYTES) {
			continue;
		}
		if (is_abandoned(e->d_name, ASIDE)) {
			if (aside_of == NULL || is_aside_of(e->d_name, aside_of)) {
				put_back(calls, dir, e->d_name);
			}
		} else if (aside_of == NULL && is_abandoned(e->d_name, TEMPORARY) &&
			   wf_saved_join(dir, e->d_name, path) == WEFT_OK) {
			(void)wf_saved_remove_folder(path);
		}
	}
	closedir(folder);
}

void
wf_saved_recover(const struct wf_saved_calls *calls, const char *path)
{
	char dir[WF_SAVED_PATH_BYTES];
	struct stat info;

	if (lstat(path, &info) == 0 || errno != ENOENT) {
		return;
	}
	const char *slash = strrchr(path, '/');
	if (slash == NULL) {
		clean_up(calls, ".", path);
		return;
	}
	/* With the slash, so that "/" stays what it is. */
	snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path) + 1, path);
	clean_up(calls, dir, slash + 1);
}

/* "dir/.pass-00003<mark>PID" */
static enum weft_status
hidden_path(const char *dir, uint64_t pass, const char *mark, char *out)
{
	char name[LEAF_BYTES];

	snprintf(name, sizeof(name), "." PASS_NAME "%05" PRIu64 "%s%ld", pass, mark,
		 (long)getpid());
	return wf_saved_join(dir, name, out);
}

enum weft_status
wf_saved_way_begin(const struct wf_saved_place *place, uint64_t pass, struct wf_saved_way *out)
{
	out->calls = place->calls;
	out->dir = place->dir;
	enum weft_status st = wf_saved_pass_path(place->dir, pass, out->final);
	if (st == WEFT_OK) {
		st = hidden_path(place->dir, pass, TEMPORARY, out->temporary);
	}
	if (st == WEFT_OK) {
		st = hidden_path(place->dir, pass, ASIDE, out->aside);
	}
	if (st == WEFT_OK) {
		st = wf_saved_prepare(place);
	}
	if (st == WEFT_OK) {
		clean_up(place->calls, place->dir, NULL);
		st = make_folder(place->calls, out->temporary);
	}
	return st;
}

static enum weft_status
move(const struct wf_saved_calls *calls, const char *from, const char *to)
{
	if (calls->rename(from, to) != 0) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be renamed to %s", from, to);
	}
	return WEFT_OK;
}

/* The newer save under its name, the older one aside. Undone if it cannot be made durable. */
static enum weft_status
exchange(struct wf_saved_way *way, bool is_replacing)
{
	enum weft_status st = WEFT_OK;

	if (is_replacing) {
		st = move(way->calls, way->final, way->aside);
	}
	if (st != WEFT_OK) {
		return st;
	}
	st = move(way->calls, way->temporary, way->final);
	if (st == WEFT_OK) {
		st = wf_saved_sync_folder(way->calls, way->dir);
		if (st != WEFT_OK) {
			(void)way->calls->rename(way->final, way->temporary);
		}
	}
	if (st != WEFT_OK && is_replacing) {
		(void)way->calls->rename(way->aside, way->final);
	}
	return st;
}

enum weft_status
wf_saved_way_end(struct wf_saved_way *way, enum weft_status st)
{
	struct stat info;
	const bool is_replacing = lstat(way->final, &info) == 0;

	if (st == WEFT_OK) {
		st = wf_saved_sync_folder(way->calls, way->temporary);
	}
	if (st == WEFT_OK) {
		st = exchange(way, is_replacing);
	}
	if (st != WEFT_OK) {
		const struct wf_error why = *wf_error_record();
		(void)wf_saved_remove_folder(way->temporary);
		*wf_error_record() = why;
		return st;
	}
	if (is_replacing) {
		(void)wf_saved_remove_folder(way->aside);
	}
	return WEFT_OK;
}

/* The pass that a name says, in its own spelling. */
static bool
pass_of(const char *name, uint64_t *out)
{
	char again[LEAF_BYTES];

	if (strncmp(name, PASS_NAME, sizeof(PASS_NAME) - 1) != 0) {
		return false;
	}
	*out = strtoull(name + sizeof(PASS_NAME) - 1, NULL, 10);
	snprintf(again, sizeof(again), PASS_NAME "%05" PRIu64, *out);
	return strcmp(again, name) == 0;
}

/* Under a name that clean_up removes, so that a death on the way leaves no half of a save. */
static enum weft_status
remove_pass(const struct wf_saved_place *place, uint64_t pass)
{
	char from[WF_SAVED_PATH_BYTES];
	char to[WF_SAVED_PATH_BYTES];

	enum weft_status st = wf_saved_pass_path(place->dir, pass, from);
	if (st == WEFT_OK) {
		st = hidden_path(place->dir, pass, TEMPORARY, to);
	}
	if (st == WEFT_OK) {
		st = move(place->calls, from, to);
	}
	if (st == WEFT_OK && wf_saved_remove_folder(to) != 0) {
		st = wf_fail_errno(WEFT_IO, errno, "%s: cannot be removed", to);
	}
	return st;
}

enum weft_status
wf_saved_remove_older(const struct wf_saved_place *place, uint64_t pass)
{
	enum weft_status first = WEFT_OK;
	uint64_t older = 0;
	DIR *folder = opendir(place->dir);

	if (folder == NULL) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be listed", place->dir);
	}
	for (struct dirent *e = readdir(folder); e != NULL; e = readdir(folder)) {
		if (pass_of(e->d_name, &older) && older < pass) {
			enum weft_status st = remove_pass(place, older);
			first = first == WEFT_OK ? st : first;
		}
	}
	closedir(folder);
	return first;
}
