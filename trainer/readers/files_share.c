/* SPDX-License-Identifier: Apache-2.0 */
/* Which files of a set are a trainer's, by the numbers in their names or by their places, and
 * whether a numbered set is whole. Thread: the caller's. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "trainer/readers/files.h"

#define DIGITS_MIN 5u /* of "%05d" */
#define DIGITS_MAX 9u

#define MIXED_SETS_MAX 16u /* numbered ones, that files without numbers are compared with */

/* A name cut up: stem-NUMBER-of-LAST.extension, or without "-of-LAST". */
struct numbered {
	struct wf_file *file;
	size_t place;      /* in the set */
	size_t stem_bytes; /* before the dash */
	uint32_t number;
	uint32_t of;           /* as it stands there, if */
	bool has_of;           /* it does */
	const char *extension; /* from its dot, or "" */
	size_t kind_bytes;     /* of the extension, without .gz or .zst at its end */
};

/* Digits as "%05d" writes them. 0: there are none; else how many. */
static size_t
parse_digits(const char *at, uint32_t *out)
{
	const size_t count = strspn(at, "0123456789");
	uint32_t value = 0;

	if (count < DIGITS_MIN || count > DIGITS_MAX || (count > DIGITS_MIN && at[0] == '0')) {
		return 0;
	}
	for (size_t i = 0; i < count; i++) {
		value = 10 * value + (uint32_t)(at[i] - '0');
	}
	*out = value;
	return count;
}

/* Some files of a set may be packed, and others not. */
static size_t
kind_bytes(const char *extension)
{
	static const char *const packed[] = {".gz", ".zst"};
	const size_t count = strlen(extension);

	for (unsigned i = 0; i < WF_ARRAY_COUNT(packed); i++) {
		const size_t end = strlen(packed[i]);
		if (count >= end && strcmp(extension + count - end, packed[i]) == 0) {
			return count - end;
		}
	}
	return count;
}

/* The number behind the dash at `dash`, and what may follow it. */
static bool
parse_at(const char *dash, struct numbered *out)
{
	const size_t number_digits = parse_digits(dash + 1, &out->number);
	const char *at = dash + 1 + number_digits;

	if (number_digits == 0) {
		return false;
	}
	out->has_of = strncmp(at, "-of-", 4) == 0;
	if (out->has_of) {
		const size_t digits = parse_digits(at + 4, &out->of);
		at += 4 + digits;
		if (digits == 0) {
			return false;
		}
	}
	if (!out->has_of && number_digits != DIGITS_MIN) {
		return false; /* a date, say */
	}
	out->extension = at;
	out->kind_bytes = kind_bytes(at);
	return at[0] == '\0' || at[0] == '.';
}

/* false: the file has no number at the end of its name. */
static bool
parse_name(struct wf_file *file, size_t place, struct numbered *out)
{
	const char *slash = strrchr(file->path, '/');

	/* The first that fits: the dash of "-of-" comes later. */
	for (const char *dash = strchr(slash == NULL ? file->path : slash, '-'); dash != NULL;
	     dash = strchr(dash + 1, '-')) {
		struct numbered numbered = {0};
		if (parse_at(dash, &numbered)) {
			numbered.file = file;
			numbered.place = place;
			numbered.stem_bytes = (size_t)(dash - file->path);
			*out = numbered;
			return true;
		}
	}
	return false;
}

static int
by_group(const struct numbered *a, const struct numbered *b)
{
	if (a->stem_bytes != b->stem_bytes) {
		return a->stem_bytes < b->stem_bytes ? -1 : 1;
	}
	const int order = memcmp(a->file->path, b->file->path, a->stem_bytes);
	if (order != 0) {
		return order;
	}
	if (a->of != b->of) {
		return a->of < b->of ? -1 : 1;
	}
	if (a->kind_bytes != b->kind_bytes) {
		return a->kind_bytes < b->kind_bytes ? -1 : 1;
	}
	return memcmp(a->extension, b->extension, a->kind_bytes);
}

static int
by_number(const void *left, const void *right)
{
	const struct numbered *a = left;
	const struct numbered *b = right;
	const int order = by_group(a, b);
	if (order != 0 || a->number != b->number) {
		return order != 0 ? order : (a->number > b->number) - (a->number < b->number);
	}
	return strcmp(a->file->path, b->file->path);
}

static int
by_path(const void *left, const void *right)
{
	const struct numbered *a = left;
	const struct numbered *b = right;
	return strcmp(a->file->path, b->file->path);
}

/* What is found in one group. */
struct findings {
	const struct numbered *first; /* any file of the group */
	wf_files_finding_fn *fn;
	void *arg;
	size_t count;
};

/* Whether another finding of the group is passed on. */
static bool
has_room(struct findings *findings)
{
	return ++findings->count <= WF_FILES_FINDINGS_MAX;
}

/* The numbers from `from` to `to`, which no file has. */
static enum weft_status
report_gap(struct findings *findings, uint64_t from, uint64_t to)
{
	const struct numbered *file = findings->first;
	const char *path = file->file->path;
	const int stem = (int)file->stem_bytes;

	if (!has_room(findings)) {
		return WEFT_OK;
	}
	enum weft_status st =
		from == to ? wf_fail(WEFT_DATA,
				     "%.*s-%05" PRIu64 "-of-%05" PRIu32
				     "%s: is missing; name the files one by one to do without it",
				     stem, path, from, file->of, file->extension)
			   : wf_fail(WEFT_DATA,
				     "%.*s-%05" PRIu64 "-of-%05" PRIu32 "%s to -%05" PRIu64
				     "-of-%05" PRIu32 "%s: %" PRIu64
				     " files are missing; name the files one by one to do without "
				     "them",
				     stem, path, from, file->of, file->extension, to, file->of,
				     file->extension, to - from + 1);
	return findings->fn(findings->arg, st);
}

static enum weft_status
report_twice(struct findings *findings, const struct numbered *file)
{
	return has_room(findings)
		       ? findings->fn(findings->arg,
				      wf_fail(WEFT_DATA, "%s: is there twice, packed and not: %s",
					      file->file->path, file[-1].file->path))
		       : WEFT_OK;
}

static enum weft_status
report_too_many(struct findings *findings, const struct numbered *file)
{
	return has_room(findings)
		       ? findings->fn(findings->arg,
				      wf_fail(WEFT_DATA,
					      "%s: is one file too many: by their names there are "
					      "%" PRIu32,
					      file->file->path, file->of))
		       : WEFT_OK;
}

static enum weft_status
report_rest(const struct findings *findings)
{
	const struct numbered *file = findings->first;

	if (findings->count <= WF_FILES_FINDINGS_MAX) {
		return WEFT_OK;
	}
	return findings->fn(findings->arg,
			    wf_fail(WEFT_DATA,
				    "%.*s-*-of-%05" PRIu32
				    "%s: %zu more gaps or files too many are not listed",
				    (int)file->stem_bytes, file->file->path, file->of,
				    file->extension, findings->count - WF_FILES_FINDINGS_MAX));
}

/* How many numbers the files of a group count, sorted by number: `of` is the number of files here,
 * the highest number in sets of the original. */
static uint64_t
numbers_of(const struct numbered *first, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (first[i].number == first[i].of) {
			return (uint64_t)first->of + 1;
		}
	}
	return first->of;
}

/* The files of one group, sorted by number. */
static enum weft_status
check_group(const struct numbered *first, size_t count, struct findings *findings)
{
	const uint64_t end = numbers_of(first, count);
	enum weft_status st = WEFT_OK;
	uint64_t want = 0;

	for (size_t i = 0; st == WEFT_OK && i < count && first[i].number < end; i++) {
		const uint64_t number = first[i].number;
		if (number < want) {
			st = report_twice(findings, &first[i]);
		} else if (number > want) {
			st = report_gap(findings, want, number - 1);
		}
		want = number + 1;
	}
	if (st == WEFT_OK && want < end) {
		st = report_gap(findings, want, end - 1);
	}
	for (size_t i = 0; st == WEFT_OK && i < count; i++) {
		if (first[i].number >= end) {
			st = report_too_many(findings, &first[i]);
		}
	}
	return st == WEFT_OK ? report_rest(findings) : st;
}

enum weft_status
wf_files_find_gaps(struct wf_env *env, const struct wf_files *files, wf_files_finding_fn *fn,
		   void *arg)
{
	struct numbered *list = wf_zalloc_array(env, files->count, sizeof(*list));
	enum weft_status st = WEFT_OK;
	size_t count = 0;

	if (list == NULL) {
		return wf_fail(WEFT_NOMEM, "list of %zu files", files->count);
	}
	for (size_t i = 0; i < files->count; i++) {
		struct wf_file *file = &files->file[i];
		if (file->is_found && parse_name(file, i, &list[count]) && list[count].has_of) {
			count++;
		}
	}
	qsort(list, count, sizeof(*list), by_number);
	for (size_t first = 0; st == WEFT_OK && first < count;) {
		struct findings findings = {.first = &list[first], .fn = fn, .arg = arg};
		size_t end = first + 1;
		while (end < count && by_group(&list[first], &list[end]) == 0) {
			end++;
		}
		st = check_group(&list[first], end - first, &findings);
		first = end;
	}
	wf_free(env, list, files->count * sizeof(*list));
	return st;
}

static enum weft_status
refuse(void *arg, enum weft_status found)
{
	(void)arg;
	return found;
}

enum weft_status
wf_files_check_whole(struct wf_env *env, const struct wf_files *files)
{
	return wf_files_find_gaps(env, files, refuse, NULL);
}

enum weft_status
wf_files_owners(struct wf_env *env, const struct wf_files *files, uint32_t trainers, uint32_t *out)
{
	struct numbered *list = wf_zalloc_array(env, files->count, sizeof(*list));
	bool has_numbers = true;

	if (list == NULL) {
		return wf_fail(WEFT_NOMEM, "list of %zu files", files->count);
	}
	for (size_t i = 0; i < files->count; i++) {
		if (!parse_name(&files->file[i], i, &list[i])) {
			list[i] = (struct numbered){.file = &files->file[i], .place = i};
			has_numbers = false;
		}
	}
	qsort(list, files->count, sizeof(*list), by_path);
	for (size_t i = 0; i < files->count; i++) {
		const uint64_t number = has_numbers ? list[i].number : i;
		out[list[i].place] = (uint32_t)(number % trainers);
	}
	wf_free(env, list, files->count * sizeof(*list));
	return WEFT_OK;
}

/* Whether `path` is the name of the numbered file without its number, packed or not, as the file is
 * that was cut into parts. */
static bool
is_whole_of(const char *path, const struct numbered *part)
{
	const size_t count = part->stem_bytes;

	return strncmp(path, part->file->path, count) == 0 &&
	       (path[count] == '\0' || path[count] == '.');
}

/* NULL: there is none. `parts` have [count] files. */
static const struct wf_file *
find_whole(const struct wf_files *files, const struct numbered *parts, size_t count,
	   struct numbered *part)
{
	struct numbered unused;

	for (size_t i = 0; i < files->count; i++) {
		struct wf_file *file = &files->file[i];
		const size_t others = parse_name(file, i, &unused) ? 0 : count;
		for (size_t k = 0; k < others; k++) {
			if (is_whole_of(file->path, &parts[k])) {
				*part = parts[k];
				return file;
			}
		}
	}
	return NULL;
}

void
wf_files_warn_mixed(struct wf_env *env, const struct wf_files *files, bool is_shared)
{
	struct numbered first[MIXED_SETS_MAX]; /* files of different sets */
	struct numbered numbered;
	const struct wf_file *plain = NULL;
	size_t count = 0;

	for (size_t i = 0; i < files->count; i++) {
		struct wf_file *file = &files->file[i];
		if (!parse_name(file, i, &numbered)) {
			plain = plain == NULL ? file : plain;
		} else if (count == 0 || (count < MIXED_SETS_MAX &&
					  by_group(&first[count - 1], &numbered) != 0)) {
			first[count++] = numbered;
		}
	}
	if (plain == NULL || count == 0) {
		return;
	}
	if (is_shared) {
		wf_log(env, WF_LOG_WARN,
		       "%s: has no number at the end of its name, as %s has: the %zu files of the "
		       "set are shared by their places among the sorted names, not by numbers",
		       plain->path, first[0].file->path, files->count);
	}
	plain = find_whole(files, first, count, &numbered);
	if (plain != NULL) {
		wf_log(env, WF_LOG_WARN,
		       "%s: is in the set beside %s: if that is a part of it, its rows are read "
		       "twice; '%.*s-*' names the parts alone",
		       plain->path, numbered.file->path, (int)numbered.stem_bytes,
		       numbered.file->path);
	}
}

enum weft_status
wf_files_keep(struct wf_env *env, struct wf_files *files, uint32_t trainer, uint32_t trainers)
{
	const size_t all = files->count;
	uint32_t *owner;
	size_t kept = 0;

	WF_ASSERT(trainer < trainers && files->count > 0);
	enum weft_status st = wf_files_check_whole(env, files);
	if (st != WEFT_OK) {
		return st;
	}
	owner = wf_zalloc_array(env, all, sizeof(*owner));
	if (owner == NULL) {
		return wf_fail(WEFT_NOMEM, "list of %zu files", all);
	}
	st = wf_files_owners(env, files, trainers, owner);
	for (size_t i = 0; st == WEFT_OK && i < all; i++) {
		if (owner[i] == trainer) {
			files->file[kept++] = files->file[i];
		} else {
			wf_free(env, files->file[i].path, strlen(files->file[i].path) + 1);
		}
	}
	wf_free(env, owner, all * sizeof(*owner));
	if (st == WEFT_OK) {
		files->count = kept;
	}
	if (st == WEFT_OK && kept == 0) {
		st = wf_fail(WEFT_DATA,
			     "none of the %zu files of the set is trainer %" PRIu32 "'s: %" PRIu32
			     " trainers share them by number",
			     all, trainer, trainers);
	}
	return st;
}
