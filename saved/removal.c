/* SPDX-License-Identifier: Apache-2.0 */
/* All is looked at before anything goes. Names that appear between the look and the removal are not
 * touched: only known ones are unlinked, which follows no link, and a folder goes only when it is
 * empty. Thread: the caller's. */
#include "saved/removal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/assert.h"
#include "saved/internal.h"
#include "saved/manifest.h"

#define REMEDY "weft leaves it as it is; move it elsewhere, or remove it yourself"

/* A folder of a pass that is looked at. */
struct held {
	struct wf_env *env;
	const struct wf_saved_calls *calls;
	int fd;
	struct wf_manifest manifest; /* zeroed if there is none */
	/* Of a snapshot, whose names are known without a manifest; NULL: of a pass */
	bool (*is_ours)(const char *name);
	char path[WF_SAVED_PATH_BYTES];
};

static bool
is_list(const char *name)
{
	return strcmp(name, WF_MANIFEST_FILE) == 0 || strcmp(name, WF_MANIFEST_DRAFT) == 0;
}

static bool
is_no_list(const char *name)
{
	return !is_list(name);
}

static bool
is_known(const struct held *held, const char *name)
{
	return held->is_ours != NULL ? held->is_ours(name)
				     : is_list(name) || wf_manifest_has_file(&held->manifest, name);
}

/* WEFT_DATA: it is missing, or not whole. */
static enum weft_status
read_list(struct held *held, const char *name)
{
	char path[WF_SAVED_PATH_BYTES];
	const struct wf_saved_spot spot = {held->calls, held->fd, path};
	struct wf_saved_file file;

	enum weft_status st = wf_saved_join(held->path, name, path);
	if (st == WEFT_OK) {
		st = wf_saved_file_open_at(&spot, &file);
	}
	if (st != WEFT_OK) {
		struct stat info;
		bool is_file = fstatat(held->fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
			       S_ISREG(info.st_mode);
		return st == WEFT_IO && !is_file ? WEFT_DATA : st; /* such as a link */
	}
	st = wf_manifest_read(held->env, &file, &held->manifest);
	wf_saved_file_close(&file);
	return st;
}

static enum weft_status
check_name(const struct held *held, const char *name)
{
	struct stat info;

	if (fstatat(held->fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
		return errno == ENOENT ? WEFT_OK
				       : wf_fail_errno(WEFT_IO, errno, "%s/%s: cannot be examined",
						       held->path, name);
	}
	if (!is_known(held, name)) {
		return wf_fail(WEFT_IO,
			       "%s: holds %s, which is in no manifest of weft there; " REMEDY,
			       held->path, name);
	}
	if (!S_ISREG(info.st_mode)) {
		return wf_fail(WEFT_IO,
			       "%s: holds %s, which is not the file that weft made; " REMEDY,
			       held->path, name);
	}
	return WEFT_OK;
}

static bool
is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static enum weft_status
check_all(const struct held *held)
{
	enum weft_status st = WEFT_OK;
	DIR *names = wf_saved_names(held->calls, held->fd);

	if (names == NULL) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be listed", held->path);
	}
	for (struct dirent *e = readdir(names); st == WEFT_OK && e != NULL; e = readdir(names)) {
		st = is_dots(e->d_name) ? WEFT_OK : check_name(held, e->d_name);
	}
	closedir(names);
	return st;
}

static void
held_fini(struct held *held)
{
	wf_manifest_fini(held->env, &held->manifest);
	(void)held->calls->close(held->fd);
}

/* Opens the directory. After WEFT_OK held_fini ends it. */
static enum weft_status
held_open(struct held *held, const struct wf_saved_folder *folder, const char *name)
{
	held->env = folder->env;
	held->calls = folder->calls;
	held->manifest = (struct wf_manifest){0};
	held->is_ours = NULL;
	enum weft_status st = wf_saved_join(folder->path, name, held->path);
	if (st != WEFT_OK) {
		return st;
	}
	held->fd = wf_saved_open_folder(folder->calls, folder->fd, name);
	if (held->fd < 0 && (errno == ENOTDIR || errno == ELOOP)) {
		return wf_fail(WEFT_IO,
			       "%s: is a link or a file, not a folder that weft made; " REMEDY,
			       held->path);
	}
	if (held->fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be opened", held->path);
	}
	return WEFT_OK;
}

/* Opens the directory of a pass and checks that weft made all of it. */
static enum weft_status
held_init(struct held *held, const struct wf_saved_folder *folder, const char *name)
{
	enum weft_status st = held_open(held, folder, name);
	if (st != WEFT_OK) {
		return st;
	}
	st = read_list(held, WF_MANIFEST_FILE);
	if (st == WEFT_DATA) {
		st = read_list(held, WF_MANIFEST_DRAFT);
	}
	if (st == WEFT_OK || st == WEFT_DATA) {
		st = check_all(held);
	}
	if (st != WEFT_OK) {
		held_fini(held);
	}
	return st;
}

enum weft_status
wf_saved_check_ours(const struct wf_saved_folder *folder, const char *name, struct stat *out)
{
	struct held held;

	enum weft_status st = held_init(&held, folder, name);
	if (st != WEFT_OK) {
		return st;
	}
	if (fstat(held.fd, out) != 0) {
		st = wf_fail_errno(WEFT_IO, errno, "%s: cannot be examined", held.path);
	}
	held_fini(&held);
	return st;
}

static enum weft_status
remove_name(const struct held *held, const char *name)
{
	if (held->calls->unlinkat(held->fd, name, 0) != 0 && errno != ENOENT) {
		return wf_fail_errno(WEFT_IO, errno, "%s/%s: cannot be removed", held->path, name);
	}
	return WEFT_OK;
}

/* Those that are known and wanted. */
static enum weft_status
remove_files(const struct held *held, bool (*is_wanted)(const char *name))
{
	enum weft_status st = WEFT_OK;
	DIR *names = wf_saved_names(held->calls, held->fd);

	if (names == NULL) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be listed", held->path);
	}
	for (struct dirent *e = readdir(names); st == WEFT_OK && e != NULL; e = readdir(names)) {
		if (is_wanted(e->d_name) && is_known(held, e->d_name)) {
			st = remove_name(held, e->d_name);
		}
	}
	closedir(names);
	return st;
}

enum weft_status
wf_saved_remove(const struct wf_saved_folder *folder, const char *name)
{
	struct held held;

	enum weft_status st = held_init(&held, folder, name);
	if (st != WEFT_OK) {
		return st;
	}
	st = remove_files(&held, is_no_list);
	if (st == WEFT_OK) {
		st = remove_name(&held, WF_MANIFEST_FILE);
	}
	if (st == WEFT_OK) {
		st = remove_name(&held, WF_MANIFEST_DRAFT);
	}
	if (st == WEFT_OK && folder->calls->unlinkat(folder->fd, name, AT_REMOVEDIR) != 0) {
		st = wf_fail_errno(WEFT_IO, errno, "%s: cannot be removed", held.path);
	}
	held_fini(&held);
	return st;
}

enum weft_status
wf_saved_remove_files(const struct wf_saved_folder *folder, const char *name,
		      bool (*is_ours)(const char *name), bool (*is_wanted)(const char *name))
{
	struct stat info;
	struct held held;

	if (fstatat(folder->fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT) {
		return WEFT_OK;
	}
	enum weft_status st = held_open(&held, folder, name);
	if (st != WEFT_OK) {
		return st;
	}
	held.is_ours = is_ours;
	st = check_all(&held);
	if (st == WEFT_OK) {
		st = remove_files(&held, is_wanted);
	}
	if (st == WEFT_OK) {
		st = wf_saved_sync_folder(held.calls, held.fd, held.path);
	}
	held_fini(&held);
	return st;
}
