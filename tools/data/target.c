/* SPDX-License-Identifier: Apache-2.0 */
/* target: see target.h. Thread: the caller's. */
#include "tools/data/target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "saved/file.h"
#include "tools/data/packer.h"

#define NAME_BYTES 256u /* of a file, with its NUL */

struct wf_target {
	struct wf_env *env;
	struct wf_target_opts opts;
	const char *name; /* behind the last slash of the prefix */
	int folder;       /* open; files are created and renamed in it */
	uint64_t mark;    /* by chance: of hidden names */
	uint32_t begun;   /* files that have a hidden name; the last of them may be open */
	uint32_t named;   /* files that have their own */
	bool is_open;
	uint64_t records; /* of the file that is open */
	struct wf_saved_file file;
	char path[WF_SAVED_PATH_BYTES]; /* of it, for messages; its last name is the hidden one */
	struct wf_packer *packer;       /* of a text */
	struct wf_recordio_writer *writer; /* of RecordIO */
};

/* The name that file `i` shall have. */
static void
format_name(const struct wf_target *target, uint32_t i, char out[NAME_BYTES])
{
	int bytes = snprintf(out, NAME_BYTES, "%s-%05" PRIu32 "-of-%05" PRIu32, target->name, i,
			     target->opts.files);
	WF_ASSERT(bytes > 0 && bytes < (int)NAME_BYTES); /* check_prefix */
}

static void
format_hidden(const struct wf_target *target, uint32_t i, char out[NAME_BYTES])
{
	int bytes = snprintf(out, NAME_BYTES, ".%s-%05" PRIu32 ".tmp-%016" PRIx64, target->name, i,
			     target->mark);
	WF_ASSERT(bytes > 0 && bytes < (int)NAME_BYTES);
}

static enum weft_status
check_form(const struct wf_target_form *form)
{
	const char *other = form->is_recordio ? "zstd" : "snappy";

	if (strcmp(form->compressor, other) != 0) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_INVALID, "--compressor=%s: %s; give one of %s", form->compressor,
		       form->is_recordio ? "RecordIO has no code for it"
					 : "no reader of texts knows it",
		       form->is_recordio ? "none, snappy, gzip" : "none, gzip, zstd");
}

static enum weft_status
open_folder(struct wf_target *target)
{
	const char *prefix = target->opts.prefix;
	const char *slash = strrchr(prefix, '/');
	const int folder_bytes = slash == NULL ? 0 : (int)(slash - prefix) + 1;
	char folder[WF_SAVED_PATH_BYTES];

	target->name = prefix + folder_bytes;
	/* 40 bytes are more than what is added to a name. */
	if (target->name[0] == '\0' || target->name[0] == '.' ||
	    strlen(target->name) > NAME_BYTES - 40 || strlen(prefix) > sizeof(folder) - 40) {
		return wf_fail(
			WEFT_INVALID,
			"PREFIX \"%.60s\": must be the beginning of a file's name, without a "
			"dot in front and of at most %u bytes, behind its folder",
			prefix, NAME_BYTES - 40);
	}
	snprintf(folder, sizeof(folder), "%.*s", folder_bytes, prefix);
	if (folder_bytes > 0 && mkdir(folder, 0777) != 0 && errno != EEXIST) {
		return wf_fail_errno(WEFT_IO, errno, "%s: its folder cannot be made", prefix);
	}
	target->folder = open(folder_bytes == 0 ? "." : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return target->folder >= 0
		       ? WEFT_OK
		       : wf_fail_errno(WEFT_IO, errno, "%s: its folder cannot be opened", prefix);
}

/* Whether this is a file of a set of the same name with another number of files: beside the new set
 * its records would be read a second time. */
static bool
is_of_other_set(const struct wf_target *target, const char *name)
{
	static const char shape[] = "-00000-of-00000"; /* of what is behind the set's name */
	size_t bytes = strlen(target->name);

	if (strncmp(name, target->name, bytes) != 0 || strlen(name + bytes) != sizeof(shape) - 1) {
		return false;
	}
	for (size_t i = 0; i + 1 < sizeof(shape); i++) {
		char c = name[bytes + i];
		if (shape[i] == '0' ? c < '0' || c > '9' : c != shape[i]) {
			return false;
		}
	}
	return strtoul(name + strlen(name) - 5, NULL, 10) != target->opts.files;
}

typedef enum weft_status other_fn(const struct wf_target *target, const char *name);

/* Calls `fn` for each file of such a set. */
static enum weft_status
visit_other_sets(const struct wf_target *target, other_fn *fn)
{
	enum weft_status st = WEFT_OK;
	int fd = openat(target->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;

	if (folder == NULL) {
		int err = errno;
		if (fd >= 0) {
			(void)close(fd);
		}
		return wf_fail_errno(WEFT_IO, err, "%s: its folder cannot be read",
				     target->opts.prefix);
	}
	for (struct dirent *one = readdir(folder); st == WEFT_OK && one != NULL;
	     one = readdir(folder)) {
		st = is_of_other_set(target, one->d_name) ? fn(target, one->d_name) : WEFT_OK;
	}
	(void)closedir(folder);
	return st;
}

static enum weft_status
remove_other(const struct wf_target *target, const char *name)
{
	if (unlinkat(target->folder, name, 0) != 0 && errno != ENOENT) {
		return wf_fail_errno(WEFT_IO, errno, "%.*s%s: is of an older set, and stays",
				     (int)(target->name - target->opts.prefix), target->opts.prefix,
				     name);
	}
	return WEFT_OK;
}

/* What may be replaced or removed is a file: a link or a device is not. */
static enum weft_status
check_place(const struct wf_target *target, const char *name)
{
	int folder_bytes = (int)(target->name - target->opts.prefix);
	struct stat info;

	if (fstatat(target->folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
		return WEFT_OK;
	}
	if (!target->opts.replaces) {
		return wf_fail(WEFT_IO, "%.*s%s: exists; --force replaces it", folder_bytes,
			       target->opts.prefix, name);
	}
	return S_ISREG(info.st_mode)
		       ? WEFT_OK
		       : wf_fail(WEFT_IO, "%.*s%s: is no regular file, and is not replaced",
				 folder_bytes, target->opts.prefix, name);
}

/* Before anything is read. */
static enum weft_status
check_places(const struct wf_target *target)
{
	enum weft_status st = WEFT_OK;

	for (uint32_t i = 0; st == WEFT_OK && i < target->opts.files; i++) {
		char name[NAME_BYTES];
		format_name(target, i, name);
		st = check_place(target, name);
	}
	return st == WEFT_OK ? visit_other_sets(target, check_place) : st;
}

static enum weft_status
write_to_file(void *to, const void *bytes, size_t count)
{
	return wf_saved_file_write(to, bytes, count);
}

static enum weft_status
open_packer(struct wf_target *target)
{
	const char *compressor = target->opts.form.compressor;
	enum wf_packing packing = strcmp(compressor, "gzip") == 0   ? WF_PACKING_GZIP
				  : strcmp(compressor, "zstd") == 0 ? WF_PACKING_ZSTD
								    : WF_PACKING_NONE;

	return target->opts.form.is_recordio
		       ? WEFT_OK
		       : wf_packer_open(target->env, packing, &target->packer);
}

enum weft_status
wf_target_open(struct wf_env *env, const struct wf_target_opts *opts, struct wf_target **out)
{
	WF_ASSERT(opts->files >= 1 && opts->files <= WF_TARGET_FILES_MAX);
	enum weft_status st = check_form(&opts->form);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_target *target = wf_zalloc(env, sizeof(*target));
	if (target == NULL) {
		return wf_fail(WEFT_NOMEM, "%zu bytes to write with", sizeof(*target));
	}
	target->env = env;
	target->opts = *opts;
	target->folder = -1;
	target->mark = wf_random(env);
	st = open_folder(target);
	if (st == WEFT_OK) {
		st = check_places(target);
	}
	if (st == WEFT_OK) {
		st = open_packer(target);
	}
	if (st != WEFT_OK) {
		wf_target_close(target);
		return st;
	}
	*out = target;
	return WEFT_OK;
}

/* Each file has a writer of its own, which begins with an empty chunk. */
static enum weft_status
open_writer(struct wf_target *target)
{
	const char *compressor = target->opts.form.compressor;
	const struct wf_recordio_writer_opts opts = {
		.compressor = strcmp(compressor, "none") == 0     ? WF_RECORDIO_NONE
			      : strcmp(compressor, "snappy") == 0 ? WF_RECORDIO_SNAPPY
								  : WF_RECORDIO_GZIP,
		.write = write_to_file,
		.to = &target->file,
	};
	return wf_recordio_writer_open(target->env, &opts, &target->writer);
}

static enum weft_status
end_file(struct wf_target *target)
{
	enum weft_status st = WEFT_OK;

	if (!target->is_open) {
		return WEFT_OK;
	}
	if (target->opts.form.is_recordio) {
		st = wf_recordio_writer_finish(target->writer);
		wf_recordio_writer_close(target->writer);
		target->writer = NULL;
	} else {
		st = wf_packer_finish(target->packer);
	}
	target->is_open = false;
	return wf_saved_file_finish(&target->file, st);
}

enum weft_status
wf_target_next(struct wf_target *target)
{
	char hidden[NAME_BYTES];

	WF_ASSERT(target->begun < target->opts.files);
	enum weft_status st = end_file(target);
	if (st != WEFT_OK) {
		return st;
	}
	format_hidden(target, target->begun, hidden);
	snprintf(target->path, sizeof(target->path), "%.*s%s",
		 (int)(target->name - target->opts.prefix), target->opts.prefix, hidden);
	const struct wf_saved_spot spot = {wf_saved_posix(), target->folder, target->path};
	st = wf_saved_file_create(&spot, &target->file);
	if (st != WEFT_OK) {
		return st;
	}
	target->begun++;
	target->is_open = true;
	target->records = 0;
	if (target->opts.form.is_recordio) {
		return open_writer(target);
	}
	wf_packer_begin(target->packer, &target->file);
	return WEFT_OK;
}

enum weft_status
wf_target_write(struct wf_target *target, const struct wf_record *record)
{
	WF_ASSERT(target->is_open);
	target->records++;
	if (target->opts.form.is_recordio) {
		return wf_recordio_write(target->writer, record->bytes, record->count);
	}
	if (memchr(record->bytes, '\n', record->count) != NULL) {
		return wf_fail(WEFT_DATA,
			       "record %" PRIu64 " of file %" PRIu32
			       " to be written has a line feed in it: in a text it would be two "
			       "lines; --to=recordio keeps it whole",
			       target->records, target->begun - 1);
	}
	enum weft_status st = wf_packer_write(target->packer, record->bytes, record->count);
	return st == WEFT_OK ? wf_packer_write(target->packer, "\n", 1) : st;
}

/* Without --force a file that has appeared in the meantime stays, too. */
static enum weft_status
rename_file(const struct wf_target *target, uint32_t i)
{
	char hidden[NAME_BYTES];
	char name[NAME_BYTES];
	unsigned flags = target->opts.replaces ? 0 : RENAME_NOREPLACE;

	format_hidden(target, i, hidden);
	format_name(target, i, name);
	int code = renameat2(target->folder, hidden, target->folder, name, flags);
	if (code != 0 && errno == EINVAL && flags != 0 &&
	    faccessat(target->folder, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0) {
		/* The file system does not know the flag. */
		code = renameat(target->folder, hidden, target->folder, name);
	}
	return code == 0 ? WEFT_OK
			 : wf_fail_errno(WEFT_IO, errno, "%.*s%s: cannot get its name",
					 (int)(target->name - target->opts.prefix),
					 target->opts.prefix, name);
}

enum weft_status
wf_target_finish(struct wf_target *target)
{
	enum weft_status st = end_file(target);

	WF_ASSERT(st != WEFT_OK || target->begun == target->opts.files);
	while (st == WEFT_OK && target->named < target->opts.files) {
		st = rename_file(target, target->named);
		target->named += st == WEFT_OK;
	}
	if (st == WEFT_OK) {
		st = wf_saved_sync_folder(wf_saved_posix(), target->folder, target->opts.prefix);
	}
	/* The new set is whole and on the disk. */
	return st == WEFT_OK && target->opts.replaces ? visit_other_sets(target, remove_other) : st;
}

void
wf_target_close(struct wf_target *target)
{
	if (target == NULL) {
		return;
	}
	wf_recordio_writer_close(target->writer);
	wf_packer_close(target->packer);
	if (target->is_open) {
		(void)close(target->file.fd); /* it is removed below */
	}
	for (uint32_t i = target->named; i < target->begun; i++) {
		char hidden[NAME_BYTES];
		format_hidden(target, i, hidden);
		(void)unlinkat(target->folder, hidden, 0);
	}
	if (target->folder >= 0) {
		(void)close(target->folder);
	}
	wf_free(target->env, target, sizeof(*target));
}
