/* SPDX-License-Identifier: Apache-2.0 */
/* Every call's result is looked at, the one of close after writing too. Thread: the caller's. */
#include "saved/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/crc32c.h"

static int
posix_openat(int folder, const char *path, int flags, mode_t mode)
{
	return openat(folder, path, flags, mode);
}

/* Where the file system cannot rename so, the file, which is whole, has two names for a moment. */
static int
posix_claim_name(int folder, const char *from, const char *to)
{
	int done = renameat2(folder, from, folder, to, RENAME_NOREPLACE);

	if (done == 0 || (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP)) {
		return done;
	}
	done = linkat(folder, from, folder, to, 0);
	if (done == 0) {
		(void)unlinkat(folder, from, 0); /* else a sweep removes it */
	}
	return done;
}

static int
posix_write_back(int fd, off_t at, off_t count)
{
	return sync_file_range(fd, at, count, SYNC_FILE_RANGE_WRITE);
}

const struct wf_saved_calls *
wf_saved_posix(void)
{
	static const struct wf_saved_calls calls = {
		.openat = posix_openat,
		.read = read,
		.pread = pread,
		.write = write,
		.fsync = fsync,
		.write_back = posix_write_back,
		.close = close,
		.renameat = renameat,
		.claim_name = posix_claim_name,
		.mkdirat = mkdirat,
		.unlinkat = unlinkat,
		.flock = flock,
	};

	return &calls;
}

enum weft_status
wf_saved_join(const char *folder, const char *name, char *out)
{
	int bytes = snprintf(out, WF_SAVED_PATH_BYTES, "%s/%s", folder, name);

	if (bytes < 0 || (size_t)bytes >= WF_SAVED_PATH_BYTES) {
		return wf_fail(WEFT_INVALID, "path %.60s...: longer than %u bytes", folder,
			       WF_SAVED_PATH_BYTES - 1);
	}
	return WEFT_OK;
}

/* The flags for the system call. */
static const char *
name_of(const struct wf_saved_spot *spot)
{
	const char *slash = spot->folder == AT_FDCWD ? NULL : strrchr(spot->path, '/');

	return slash == NULL ? spot->path : slash + 1;
}

enum weft_status
wf_saved_file_create(const struct wf_saved_spot *spot, struct wf_saved_file *out)
{
	int fd = spot->calls->openat(spot->folder, name_of(spot),
				     O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);

	if (fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be created", spot->path);
	}
	*out = (struct wf_saved_file){.calls = spot->calls, .path = spot->path, .fd = fd};
	return WEFT_OK;
}

/* What fails is found by fsync. */
static void
write_back(struct wf_saved_file *file)
{
	const uint64_t count = file->bytes - file->begun;

	if (count >= WF_SAVED_WRITE_BACK_BYTES && file->calls->write_back != NULL) {
		(void)file->calls->write_back(file->fd, (off_t)file->begun, (off_t)count);
		file->begun = file->bytes;
	}
}

enum weft_status
wf_saved_file_write(struct wf_saved_file *file, const void *bytes, size_t count)
{
	const char *at = bytes;
	size_t left = count;

	while (left > 0) {
		ssize_t done = file->calls->write(file->fd, at, left);
		if (done < 0 && errno == EINTR) {
			continue;
		}
		if (done <= 0) {
			return wf_fail_errno(WEFT_IO, done < 0 ? errno : ENOSPC,
					     "%s: cannot be written after %" PRIu64 " bytes",
					     file->path, file->bytes + (count - left));
		}
		at += done;
		left -= (size_t)done;
	}
	file->crc = wf_crc32c_long(file->crc, bytes, count);
	if (file->sum_zip != NULL) {
		file->zip_crc = file->sum_zip(file->zip_crc, bytes, count);
	}
	file->bytes += count;
	write_back(file);
	return WEFT_OK;
}

enum weft_status
wf_saved_file_finish(struct wf_saved_file *file, enum weft_status st)
{
	WF_ASSERT(file->fd >= 0);
	if (st == WEFT_OK && file->calls->fsync(file->fd) != 0) {
		st = wf_fail_errno(WEFT_IO, errno, "%s: cannot be synced", file->path);
	}
	if (file->calls->close(file->fd) != 0 && st == WEFT_OK) {
		st = wf_fail_errno(WEFT_IO, errno, "%s: cannot be closed", file->path);
	}
	file->fd = -1;
	return st;
}

static enum weft_status
open_file(const struct wf_saved_spot *spot, int flags, struct wf_saved_file *out)
{
	const struct wf_saved_calls *calls = spot->calls;
	const char *path = spot->path;
	struct stat info;
	/* Not blocking: what lies there might be a pipe. */
	int fd = calls->openat(spot->folder, name_of(spot),
			       O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags, 0);

	if (fd < 0) {
		enum weft_status st = errno == ENOENT || errno == ENOTDIR ? WEFT_DATA : WEFT_IO;
		return wf_fail_errno(st, errno, "%s: cannot be opened", path);
	}
	if (fstat(fd, &info) != 0) {
		enum weft_status st = wf_fail_errno(WEFT_IO, errno, "%s: no size", path);
		(void)calls->close(fd);
		return st;
	}
	if (!S_ISREG(info.st_mode)) {
		(void)calls->close(fd);
		return wf_fail(WEFT_DATA, "%s: is not a regular file", path);
	}
	*out = (struct wf_saved_file){
		.calls = calls,
		.path = path,
		.fd = fd,
		.bytes = (uint64_t)info.st_size,
	};
	return WEFT_OK;
}

enum weft_status
wf_saved_file_open(const struct wf_saved_calls *calls, const char *path, struct wf_saved_file *out)
{
	const struct wf_saved_spot spot = {.calls = calls, .folder = AT_FDCWD, .path = path};

	return open_file(&spot, 0, out);
}

enum weft_status
wf_saved_file_open_at(const struct wf_saved_spot *spot, struct wf_saved_file *out)
{
	return open_file(spot, O_NOFOLLOW, out);
}

enum weft_status
wf_saved_file_read(struct wf_saved_file *file, void *bytes, size_t count)
{
	char *at = bytes;
	size_t left = count;

	while (left > 0) {
		ssize_t done = file->calls->read(file->fd, at, left);
		if (done < 0 && errno == EINTR) {
			continue;
		}
		if (done < 0) {
			return wf_fail_errno(WEFT_IO, errno, "%s: cannot be read", file->path);
		}
		if (done == 0) {
			return wf_fail(WEFT_DATA, "%s: ends %zu bytes too early", file->path, left);
		}
		at += done;
		left -= (size_t)done;
	}
	file->crc = wf_crc32c_long(file->crc, bytes, count);
	return WEFT_OK;
}

enum weft_status
wf_saved_file_read_at(struct wf_saved_file *file, uint64_t at, void *bytes, size_t count)
{
	size_t done = 0;

	if (at > file->bytes || count > file->bytes - at) {
		return wf_fail(WEFT_DATA,
			       "%s: has %" PRIu64 " bytes, but %zu are needed from byte %" PRIu64
			       " on: it is truncated or damaged",
			       file->path, file->bytes, count, at);
	}
	while (done < count) {
		ssize_t got = file->calls->pread(file->fd, (char *)bytes + done, count - done,
						 (off_t)(at + done));
		if (got < 0 && errno == EINTR) {
			continue;
		}
		if (got < 0) {
			return wf_fail_errno(WEFT_IO, errno, "%s: cannot be read", file->path);
		}
		if (got == 0) {
			return wf_fail(WEFT_DATA, "%s: became shorter while it was read",
				       file->path);
		}
		done += (size_t)got;
	}
	return WEFT_OK;
}

void
wf_saved_file_close(struct wf_saved_file *file)
{
	(void)file->calls->close(file->fd);
	file->fd = -1;
}

int
wf_saved_open_folder(const struct wf_saved_calls *calls, int folder, const char *name)
{
	return calls->openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
}

enum weft_status
wf_saved_sync_folder(const struct wf_saved_calls *calls, int folder, const char *path)
{
	return calls->fsync(folder) == 0
		       ? WEFT_OK
		       : wf_fail_errno(WEFT_IO, errno, "%s: cannot be synced", path);
}
