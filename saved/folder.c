/* SPDX-License-Identifier: Apache-2.0 */
/* The lock is flock on a file of the folder: it ends with the process that holds it, however that
 * ends, and works over NFS, where a process number means nothing. The file itself stays, because
 * removing it would let two processes lock two files of one name. Its contents are only for the
 * message of the next process. Thread: the caller's. */
#include "saved/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"

#define HOLDER_WORDS "weft lock: "
#define HOLDER_BYTES 160u /* of the file: one line, filled up with blanks */
#define HOST_BYTES 96u

DIR *
wf_saved_names(const struct wf_saved_calls *calls, int folder)
{
	int fd = calls->openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	DIR *names = fd < 0 ? NULL : fdopendir(fd);

	if (names == NULL && fd >= 0) {
		(void)calls->close(fd);
	}
	return names;
}

/* The text of the file, which may be "". Returns false if it is not a lock of weft. */
static bool
read_holder(int fd, char out[HOLDER_BYTES + 1])
{
	const size_t head = sizeof(HOLDER_WORDS) - 1;
	ssize_t bytes = pread(fd, out, HOLDER_BYTES, 0);

	out[bytes > 0 ? bytes : 0] = '\0';
	if (bytes == 0) {
		return true;
	}
	if (bytes < (ssize_t)head || memcmp(out, HOLDER_WORDS, head) != 0) {
		return false;
	}
	memmove(out, out + head, (size_t)bytes - head + 1);
	size_t end = 0;
	for (size_t i = 0; out[i] != '\0' && out[i] != '\n'; i++) {
		out[i] = out[i] < 0x20 || out[i] > 0x7e ? '?' : out[i];
		end = out[i] == ' ' ? end : i + 1;
	}
	out[end] = '\0';
	return true;
}

/* If it fails, the next one's message lacks a name. */
static void
write_holder(int fd)
{
	char host[HOST_BYTES] = "?";
	char words[HOLDER_BYTES];
	char line[HOLDER_BYTES + 1];

	(void)gethostname(host, sizeof(host) - 1);
	snprintf(words, sizeof(words), HOLDER_WORDS "process %ld on %s", (long)getpid(), host);
	snprintf(line, sizeof(line), "%-*s\n", (int)HOLDER_BYTES - 1, words);
	ssize_t done = pwrite(fd, line, HOLDER_BYTES, 0);
	(void)done;
}

/* The lock is a file of another user, and its mode excludes this process. */
static enum weft_status
fail_shut_out(const struct wf_saved_folder *folder, int error)
{
	return wf_fail_errno(WEFT_IO, error,
			     "%s/" WF_SAVED_LOCK_FILE
			     ": cannot be locked by this user; its owner can run chmod g+rw (or "
			     "a+rw) on it, or remove it while nobody saves there",
			     folder->path);
}

static bool
has_no_locks(int error)
{
	return error == ENOLCK || error == ENOSYS || error == EOPNOTSUPP || error == EINVAL;
}

static enum weft_status
lock(struct wf_saved_folder *folder)
{
	char holder[HOLDER_BYTES + 1] = "";
	int done = 0;

	do {
		done = folder->calls->flock(folder->lock_fd, LOCK_EX | LOCK_NB);
	} while (done != 0 && errno == EINTR);
	folder->is_locked = done == 0;
	if (done == 0) {
		write_holder(folder->lock_fd);
		return WEFT_OK;
	}
	if (has_no_locks(errno)) {
		wf_log(folder->env, WF_LOG_WARN,
		       "%s: this file system has no locks (%s): make sure that only one job saves "
		       "there; remains of an interrupted save are not removed",
		       folder->path, strerror(errno));
		return WEFT_OK;
	}
	if (errno == EBADF) { /* NFS locks only files that are open for writing */
		return fail_shut_out(folder, EACCES);
	}
	if (errno != EWOULDBLOCK) {
		return wf_fail_errno(WEFT_IO, errno, "%s/" WF_SAVED_LOCK_FILE ": cannot be locked",
				     folder->path);
	}
	(void)read_holder(folder->lock_fd, holder);
	return wf_fail(WEFT_UNAVAILABLE,
		       "%s: %s saves there; wait until it ends, or name another folder",
		       folder->path, holder[0] == '\0' ? "another process" : holder);
}

/* Whoever may write to the folder may lock it, whatever the umask of the first user. */
static void
let_others_lock(const struct wf_saved_folder *folder, int fd)
{
	struct stat of_folder;
	struct stat of_lock;

	if (fstat(folder->fd, &of_folder) != 0 || fstat(fd, &of_lock) != 0) {
		return; /* then the next user gets the remedy in the message */
	}
	mode_t mode = of_lock.st_mode & 07777;
	mode |= (of_folder.st_mode & S_IWGRP) != 0 ? S_IRGRP | S_IWGRP : 0;
	mode |= (of_folder.st_mode & S_IWOTH) != 0 ? S_IROTH | S_IWOTH : 0;
	(void)fchmod(fd, mode);
}

static int
open_lock_file(const struct wf_saved_folder *folder, int flags)
{
	return folder->calls->openat(folder->fd, WF_SAVED_LOCK_FILE,
				     flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
}

/* Another user's may be for us to read alone, which is enough for a lock on a local file system. */
static int
open_or_make_lock_file(const struct wf_saved_folder *folder)
{
	int fd = open_lock_file(folder, O_RDWR);

	if (fd < 0 && errno == ENOENT) {
		fd = open_lock_file(folder, O_RDWR | O_CREAT | O_EXCL);
		if (fd >= 0) {
			let_others_lock(folder, fd);
		} else if (errno == EEXIST) {
			fd = open_lock_file(folder, O_RDWR); /* another process was faster */
		}
	}
	return fd < 0 && errno == EACCES ? open_lock_file(folder, O_RDONLY) : fd;
}

/* What lies under the lock's name may be anything, and is written to only if it is a lock. */
static enum weft_status
open_lock(struct wf_saved_folder *folder)
{
	char holder[HOLDER_BYTES + 1];
	struct stat info;

	folder->lock_fd = open_or_make_lock_file(folder);
	if (folder->lock_fd < 0 && errno == EACCES) {
		return fail_shut_out(folder, errno);
	}
	if (folder->lock_fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "%s/" WF_SAVED_LOCK_FILE ": cannot be opened",
				     folder->path);
	}
	if (fstat(folder->lock_fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_nlink != 1 ||
	    !read_holder(folder->lock_fd, holder)) {
		return wf_fail(
			WEFT_IO,
			"%s/" WF_SAVED_LOCK_FILE
			": is not the file with which weft locks the folder; move it elsewhere",
			folder->path);
	}
	return WEFT_OK;
}

static enum weft_status
open_folder(struct wf_saved_folder *folder)
{
	/* The user names it, so it may be a link. */
	folder->fd = folder->calls->openat(AT_FDCWD, folder->path,
					   O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (folder->fd < 0) {
		return errno == ENOTDIR ? wf_fail(WEFT_IO, "%s: is not a folder", folder->path)
					: wf_fail_errno(WEFT_IO, errno, "%s: cannot be opened",
							folder->path);
	}
	if (faccessat(folder->fd, ".", W_OK | X_OK, 0) != 0) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be written to", folder->path);
	}
	return WEFT_OK;
}

enum weft_status
wf_saved_folder_share(const struct wf_saved_place *place, struct wf_saved_folder **out)
{
	struct wf_saved_folder *folder = wf_zalloc(place->env, sizeof(*folder));

	if (folder == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: %zu bytes", place->dir, sizeof(*folder));
	}
	folder->env = place->env;
	folder->calls = place->calls;
	folder->fd = -1;
	folder->lock_fd = -1;
	int bytes = snprintf(folder->path, sizeof(folder->path), "%s", place->dir);
	enum weft_status st = WEFT_OK;
	if (bytes <= 0 || (size_t)bytes >= sizeof(folder->path)) {
		st = wf_fail(WEFT_INVALID, "folder \"%.60s\": must be a path of 1 to %u bytes",
			     place->dir, WF_SAVED_PATH_BYTES - 1);
	}
	if (st == WEFT_OK) {
		st = open_folder(folder);
	}
	if (st != WEFT_OK) {
		wf_saved_folder_close(folder);
		return st;
	}
	*out = folder;
	return WEFT_OK;
}

enum weft_status
wf_saved_folder_lock(const struct wf_saved_place *place, struct wf_saved_folder **out)
{
	struct wf_saved_folder *folder = NULL;

	enum weft_status st = wf_saved_folder_share(place, &folder);
	if (st == WEFT_OK) {
		st = open_lock(folder);
	}
	if (st == WEFT_OK) {
		st = lock(folder);
	}
	if (st != WEFT_OK) {
		wf_saved_folder_close(folder);
		return st;
	}
	*out = folder;
	return WEFT_OK;
}

void
wf_saved_folder_close(struct wf_saved_folder *folder)
{
	if (folder == NULL) {
		return;
	}
	if (folder->lock_fd >= 0) {
		if (folder->is_locked) {
			/* For the next one may not be able to write its own name there. */
			(void)!ftruncate(folder->lock_fd, 0);
		}
		(void)folder->calls->close(folder->lock_fd);
	}
	if (folder->fd >= 0) {
		(void)folder->calls->close(folder->fd);
	}
	wf_free(folder->env, folder, sizeof(*folder));
}
