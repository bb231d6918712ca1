/* SPDX-License-Identifier: Apache-2.0 */
/* Items become files: named ones, folders, patterns, list files. Thread: the caller's. */
#include "trainer/readers/files.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "trainer/readers/dataset.h"
#include "trainer/readers/text.h"

#define FIRST_ALLOC 16u
#define WHERE_BYTES (WF_DATA_PATH_BYTES + 32u)

/* What is being listed, and where an item stands, for error texts: "" or "FILE: line N: ". */
struct listing {
	struct wf_env *env;
	struct wf_files files;
	const char *list; /* the list file; NULL: an option */
	char where[WHERE_BYTES];
};

static bool
ends_in(const char *text, const char *end)
{
	const size_t count = strlen(text);
	const size_t end_count = strlen(end);
	return count > end_count && strcmp(text + count - end_count, end) == 0;
}

static enum weft_status
grow(struct wf_env *env, struct wf_files *files)
{
	const size_t alloc = files->alloc == 0 ? FIRST_ALLOC : 2 * files->alloc;
	struct wf_file *file = wf_zalloc_array(env, alloc, sizeof(*file));

	if (file == NULL) {
		return wf_fail(WEFT_NOMEM, "list of %zu files", alloc);
	}
	if (files->count > 0) {
		memcpy(file, files->file, files->count * sizeof(*file));
	}
	wf_free(env, files->file, files->alloc * sizeof(*file));
	files->file = file;
	files->alloc = alloc;
	return WEFT_OK;
}

static enum weft_status
add_file(struct listing *listing, const char *path, const struct stat *about, bool is_found)
{
	struct wf_files *files = &listing->files;
	const size_t path_bytes = strlen(path) + 1;

	if (files->count == WF_FILES_MAX) {
		return wf_fail(WEFT_DATA, "%s%s: is one file too many; a set has at most %u",
			       listing->where, path, WF_FILES_MAX);
	}
	enum weft_status st = files->count == files->alloc ? grow(listing->env, files) : WEFT_OK;
	if (st != WEFT_OK) {
		return st;
	}
	char *copy = wf_zalloc(listing->env, path_bytes);
	if (copy == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: %zu bytes", path, path_bytes);
	}
	memcpy(copy, path, path_bytes);
	files->file[files->count++] = (struct wf_file){
		.path = copy,
		.bytes = (uint64_t)about->st_size,
		.changed = about->st_mtim,
		.is_found = is_found,
	};
	return WEFT_OK;
}

/* A name in a folder, or one that matches a pattern: a regular file joins the set, others do not
 * count. */
static enum weft_status
add_found(struct listing *listing, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash == NULL ? path : slash + 1;
	struct stat about;

	if (name[0] == '.' || ends_in(name, ".lock") || ends_in(name, ".list")) {
		return WEFT_OK;
	}
	if (stat(path, &about) != 0) {
		return wf_fail_errno(errno == ENOENT ? WEFT_DATA : WEFT_IO, errno, "%s%s",
				     listing->where, path);
	}
	return S_ISREG(about.st_mode) ? add_file(listing, path, &about, true) : WEFT_OK;
}

static int
by_path(const void *left, const void *right)
{
	return strcmp(((const struct wf_file *)left)->path, ((const struct wf_file *)right)->path);
}

/* The files from `first` on are those of `item`. */
static enum weft_status
finish_found(struct listing *listing, const char *item, size_t first)
{
	struct wf_files *files = &listing->files;

	if (files->count == first) {
		return wf_fail(WEFT_DATA,
			       "%s%s: no regular file is there; names that begin with a dot or end "
			       "in .lock or .list do not count",
			       listing->where, item);
	}
	qsort(files->file + first, files->count - first, sizeof(*files->file), by_path);
	return WEFT_OK;
}

static enum weft_status
add_entries(struct listing *listing, const char *folder, DIR *open_folder)
{
	const char *slash = ends_in(folder, "/") || strcmp(folder, "/") == 0 ? "" : "/";
	char path[WF_DATA_PATH_BYTES];
	enum weft_status st = WEFT_OK;

	while (st == WEFT_OK) {
		errno = 0;
		const struct dirent *entry = readdir(open_folder);
		if (entry == NULL && errno != 0) {
			return wf_fail_errno(WEFT_IO, errno, "%s%s: cannot be read", listing->where,
					     folder);
		}
		if (entry == NULL) {
			return WEFT_OK;
		}
		int bytes = snprintf(path, sizeof(path), "%s%s%s", folder, slash, entry->d_name);
		if (bytes < 0 || (size_t)bytes >= sizeof(path)) {
			return wf_fail(WEFT_DATA, "%s%s: has a path of more than %u bytes",
				       listing->where, folder, WF_DATA_PATH_BYTES - 1);
		}
		st = add_found(listing, path);
	}
	return st;
}

static enum weft_status
add_folder(struct listing *listing, const char *folder)
{
	const size_t first = listing->files.count;
	DIR *open_folder = opendir(folder);

	if (open_folder == NULL) {
		return wf_fail_errno(WEFT_IO, errno, "%s%s: cannot be opened", listing->where,
				     folder);
	}
	enum weft_status st = add_entries(listing, folder, open_folder);
	closedir(open_folder);
	return st == WEFT_OK ? finish_found(listing, folder, first) : st;
}

static enum weft_status
add_matches(struct listing *listing, const char *pattern)
{
	const size_t first = listing->files.count;
	enum weft_status st = WEFT_OK;
	glob_t found = {0};

	/* A folder that cannot be read would be files that are not seen: an error. */
	int code = glob(pattern, GLOB_NOSORT | GLOB_ERR, NULL, &found);
	if (code == GLOB_NOSPACE) {
		st = wf_fail(WEFT_NOMEM, "%s%s: no memory", listing->where, pattern);
	} else if (code != 0 && code != GLOB_NOMATCH) {
		st = wf_fail_errno(errno == ENOENT ? WEFT_DATA : WEFT_IO, errno,
				   "%s%s: cannot be read", listing->where, pattern);
	}
	for (size_t i = 0; st == WEFT_OK && i < found.gl_pathc; i++) {
		st = add_found(listing, found.gl_pathv[i]);
	}
	globfree(&found);
	return st == WEFT_OK ? finish_found(listing, pattern, first) : st;
}

static enum weft_status add_item(struct listing *listing, const char *item);

/* A name of a list file: as it is, or, if nothing is there, beside the list file. */
static enum weft_status
add_listed(struct listing *listing, const char *name)
{
	char beside[WF_DATA_PATH_BYTES];
	const char *slash = strrchr(listing->list, '/');
	const int folder_bytes = slash == NULL ? 0 : (int)(slash + 1 - listing->list);
	const bool is_pattern = strpbrk(name, "*?[") != NULL;
	struct stat about;
	glob_t found = {0};

	if (ends_in(name, ".list")) {
		return wf_fail(WEFT_DATA, "%s%s: a list file may not name another one",
			       listing->where, name);
	}
	bool is_there = stat(name, &about) == 0;
	if (!is_there && is_pattern) {
		is_there = glob(name, GLOB_NOSORT, NULL, &found) == 0;
		globfree(&found);
	}
	if (is_there || name[0] == '/' || folder_bytes == 0) {
		return add_item(listing, name);
	}
	int bytes = snprintf(beside, sizeof(beside), "%.*s%s", folder_bytes, listing->list, name);
	if (bytes < 0 || (size_t)bytes >= sizeof(beside)) {
		return add_item(listing, name);
	}
	/* Where it is nowhere, the name is missed as it was written. */
	return add_item(listing, is_pattern || stat(beside, &about) == 0 ? beside : name);
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* How many bytes of a line are a name: those in front of a comment, which begins with a # at the
 * beginning of the line or behind a blank, without the blanks there. A name may have a # in it. */
static size_t
name_bytes(const char *at, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (at[i] == '#' && (i == 0 || is_blank(at[i - 1]))) {
			while (i > 0 && is_blank(at[i - 1])) {
				i--;
			}
			return i;
		}
	}
	return count;
}

static enum weft_status
add_lines(struct listing *listing, struct wf_text *text)
{
	struct wf_cut cut = {.text = text, .separator = '\n'};
	char name[WF_DATA_PATH_BYTES];
	enum weft_status st = WEFT_OK;

	while (st == WEFT_OK && wf_cut_line(&cut)) {
		const size_t count = name_bytes(cut.at, (size_t)(cut.end - cut.at));
		snprintf(listing->where, sizeof(listing->where), "%s: line %zu: ", listing->list,
			 cut.line);
		if (count == 0) {
			continue;
		}
		if (count >= sizeof(name) || memchr(cut.at, '\0', count) != NULL) {
			return wf_fail(WEFT_DATA,
				       "%sis no name of a file: it has a zero byte, or "
				       "more than %u bytes",
				       listing->where, WF_DATA_PATH_BYTES - 1);
		}
		memcpy(name, cut.at, count);
		name[count] = '\0';
		st = add_listed(listing, name);
	}
	return st;
}

static enum weft_status
add_list(struct listing *listing, const char *path)
{
	const size_t first = listing->files.count;
	struct wf_text text;

	enum weft_status st = wf_text_read(listing->env, path, &text);
	if (st != WEFT_OK) {
		return st;
	}
	listing->list = path;
	st = add_lines(listing, &text);
	listing->list = NULL;
	listing->where[0] = '\0';
	wf_text_fini(listing->env, &text);
	if (st == WEFT_OK && listing->files.count == first) {
		return wf_fail(WEFT_DATA, "%s: names no file", path);
	}
	return st;
}

static enum weft_status
add_item(struct listing *listing, const char *item)
{
	struct stat about;

	if (stat(item, &about) != 0) {
		if (errno == ENOENT && strpbrk(item, "*?[") != NULL) {
			return add_matches(listing, item);
		}
		return wf_fail_errno(errno == ENOENT || errno == ENOTDIR ? WEFT_DATA : WEFT_IO,
				     errno, "%s%s", listing->where, item);
	}
	if (S_ISDIR(about.st_mode)) {
		return add_folder(listing, item);
	}
	if (!S_ISREG(about.st_mode)) {
		return wf_fail(WEFT_DATA, "%s%s: is neither a regular file nor a folder",
			       listing->where, item);
	}
	if (ends_in(item, ".list")) {
		return add_list(listing, item);
	}
	return add_file(listing, item, &about, false);
}

static enum weft_status
add_items(struct listing *listing, const char *items)
{
	char item[WF_DATA_PATH_BYTES];
	enum weft_status st = WEFT_OK;

	for (const char *at = items; st == WEFT_OK && at != NULL;) {
		const char *comma = strchr(at, ',');
		const size_t count = comma == NULL ? strlen(at) : (size_t)(comma - at);
		if (count == 0 || count >= sizeof(item)) {
			return wf_fail(WEFT_DATA,
				       "%.60s%s: has an empty name, or one of more than %u bytes",
				       items, strlen(items) > 60 ? "..." : "",
				       WF_DATA_PATH_BYTES - 1);
		}
		memcpy(item, at, count);
		item[count] = '\0';
		st = add_item(listing, item);
		at = comma == NULL ? NULL : comma + 1;
	}
	return st;
}

static enum weft_status
check_twice(struct wf_env *env, const struct wf_files *files)
{
	struct wf_file *sorted = wf_zalloc_array(env, files->count, sizeof(*sorted));
	enum weft_status st = WEFT_OK;

	if (sorted == NULL) {
		return wf_fail(WEFT_NOMEM, "list of %zu files", files->count);
	}
	memcpy(sorted, files->file, files->count * sizeof(*sorted));
	qsort(sorted, files->count, sizeof(*sorted), by_path);
	for (size_t i = 1; st == WEFT_OK && i < files->count; i++) {
		if (strcmp(sorted[i - 1].path, sorted[i].path) == 0) {
			st = wf_fail(WEFT_DATA, "%s: is in the set twice", sorted[i].path);
		}
	}
	wf_free(env, sorted, files->count * sizeof(*sorted));
	return st;
}

enum weft_status
wf_files_list(struct wf_env *env, const char *items, struct wf_files *out)
{
	struct listing listing = {.env = env};

	enum weft_status st = add_items(&listing, items);
	if (st == WEFT_OK) {
		st = check_twice(env, &listing.files);
	}
	if (st != WEFT_OK) {
		wf_files_fini(env, &listing.files);
		return st;
	}
	*out = listing.files;
	return WEFT_OK;
}

void
wf_files_fini(struct wf_env *env, struct wf_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		wf_free(env, files->file[i].path, strlen(files->file[i].path) + 1);
	}
	wf_free(env, files->file, files->alloc * sizeof(*files->file));
	*files = (struct wf_files){0};
}
