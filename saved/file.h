/* SPDX-License-Identifier: Apache-2.0 */
/* file: files read and written whole, with a CRC32C of what passed, over a table of system calls
 * that tests replace to fail one. Thread: the caller's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/status.h"

#define WF_SAVED_PATH_BYTES 4096u

/* As the POSIX calls of these names: -1 and errno. Calls that create, rename or remove a name have
 * an open folder and a name in it as arguments, so that no link on the path is followed. */
struct wf_saved_calls {
	int (*openat)(int folder, const char *path, int flags, mode_t mode);
	ssize_t (*read)(int fd, void *bytes, size_t count);
	ssize_t (*pread)(int fd, void *bytes, size_t count, off_t at);
	ssize_t (*write)(int fd, const void *bytes, size_t count);
	int (*fsync)(int fd);
	/* Has the system begin to write these bytes to the disk, which fsync then need not: a hint.
	 * NULL: it has none. */
	int (*write_back)(int fd, off_t at, off_t count);
	int (*close)(int fd);
	int (*renameat)(int from_folder, const char *from, int to_folder, const char *to);
	/* Renames in a folder, and replaces nothing: EEXIST. */
	int (*claim_name)(int folder, const char *from, const char *to);
	int (*mkdirat)(int folder, const char *name, mode_t mode);
	int (*unlinkat)(int folder, const char *name, int flags);
	int (*flock)(int fd, int operation);
};

const struct wf_saved_calls *wf_saved_posix(void);

/* A name in an open folder. With AT_FDCWD it is `path` itself; otherwise the file has the last name
 * of `path`, the rest of which is for messages. */
struct wf_saved_spot {
	const struct wf_saved_calls *calls;
	int folder;
	const char *path; /* lent while the file is open */
};

#define WF_SAVED_WRITE_BACK_BYTES (4u << 20)

struct wf_saved_file {
	const struct wf_saved_calls *calls;
	const char *path; /* lent while it is open */
	int fd;
	uint64_t bytes; /* reading: the file's size; writing: written so far, */
	uint64_t begun; /* of which the system has begun to write these to the disk */
	uint32_t crc;   /* of the bytes that have passed */
	/* The checksum of zip files, which is computed over what is written, too; NULL: none. Only
	 * who needs it brings it, and zlib with it. */
	uint32_t (*sum_zip)(uint32_t crc, const void *bytes, size_t count);
	uint32_t zip_crc;
};

/* "folder/name". `out` is [WF_SAVED_PATH_BYTES]. WEFT_INVALID: too long. */
enum weft_status wf_saved_join(const char *folder, const char *name, char *out) WEFT_MUST_CHECK;

/* A new file, which must not exist. WEFT_IO */
enum weft_status wf_saved_file_create(const struct wf_saved_spot *spot,
				      struct wf_saved_file *out) WEFT_MUST_CHECK;
/* All of it. A long file is on its way to the disk while it is written, a stretch of
 * WF_SAVED_WRITE_BACK_BYTES after the other. WEFT_IO */
enum weft_status wf_saved_file_write(struct wf_saved_file *file, const void *bytes,
				     size_t count) WEFT_MUST_CHECK;
/* Ends a new file; `st` is the result of writing. After WEFT_OK it is synced; it is closed in any
 * case. */
enum weft_status wf_saved_file_finish(struct wf_saved_file *file,
				      enum weft_status st) WEFT_MUST_CHECK;

/* A regular file, or a link to one. WEFT_DATA: it is missing or none; WEFT_IO */
enum weft_status wf_saved_file_open(const struct wf_saved_calls *calls, const char *path,
				    struct wf_saved_file *out) WEFT_MUST_CHECK;
/* The same in an open folder, and no link. */
enum weft_status wf_saved_file_open_at(const struct wf_saved_spot *spot,
				       struct wf_saved_file *out) WEFT_MUST_CHECK;
/* Exactly `count` bytes. WEFT_DATA: it ends before; WEFT_IO */
enum weft_status wf_saved_file_read(struct wf_saved_file *file, void *bytes,
				    size_t count) WEFT_MUST_CHECK;
/* Exactly `count` bytes from byte `at` on; the checksum does not see them. As above. */
enum weft_status wf_saved_file_read_at(struct wf_saved_file *file, uint64_t at, void *bytes,
				       size_t count) WEFT_MUST_CHECK;
void wf_saved_file_close(struct wf_saved_file *file);

/* A checksum as it is stored behind the bytes that it covers. If a plain CRC followed them, the
 * checksum of the whole file would not depend on either, and would not detect a piece of another
 * save; so it is multiplied first. */
static inline uint32_t
wf_saved_crc_stored(uint32_t crc)
{
	return crc * 0x9e3779b1u;
}

/* Opens a folder in an open one; a link to a folder is refused. -1: errno. */
int wf_saved_open_folder(const struct wf_saved_calls *calls, int folder, const char *name);
/* fsync of an open folder: the names in it are on the disk. `path` is for messages. WEFT_IO */
enum weft_status wf_saved_sync_folder(const struct wf_saved_calls *calls, int folder,
				      const char *path) WEFT_MUST_CHECK;
