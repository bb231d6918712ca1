/* SPDX-License-Identifier: Apache-2.0 */
/* agent_files: see agent_files.h. */
#include "tools/launch/agent_files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECRET_VARIABLE "WEFT_SECRET_FILE"
#define SECRET_NAME "/secret" /* in the folder of the secret */

/* The keeper, a process of its own: it learns the path of the secret, and removes it when nobody
 * has the other end of the pipe any more. It blocks all signals, and outlives a SIGKILL of the
 * agent. */
static _Noreturn void
keep_secret(int fd)
{
	char path[sizeof(((struct wf_agent_files *)NULL)->secret_dir) + sizeof(SECRET_NAME)];
	size_t used = 0;
	ssize_t got = 1;
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	setsid();
	for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++) {
		close(i); /* ssh waits for their ends */
	}
	while (got != 0 && used < sizeof(path) - 1) {
		got = read(fd, path + used, sizeof(path) - 1 - used);
		used += got > 0 ? (size_t)got : 0;
	}
	if (used > strlen(SECRET_NAME)) {
		path[used] = '\0';
		unlink(path);
		path[used - strlen(SECRET_NAME)] = '\0';
		rmdir(path);
	}
	_exit(0);
}

void
wf_agent_files_init(struct wf_agent_files *files)
{
	*files = (struct wf_agent_files){.lock_fd = -1, .keeper_fd = -1};
}

enum weft_status
wf_agent_files_keep(struct wf_agent_files *files)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0) {
		return wf_fail_errno(WEFT_IO, errno, "pipe");
	}
	files->keeper_fd = ends[1];
	files->keeper_pid = fork();
	if (files->keeper_pid == 0) {
		close(ends[1]);
		keep_secret(ends[0]);
	}
	int err = errno;
	close(ends[0]);
	return files->keeper_pid > 0 ? WEFT_OK : wf_fail_errno(WEFT_IO, err, "fork");
}

/* A new folder. Where hosts share the folder above it, the number of the node makes the name
 * another one. */
static enum weft_status
make_folder(struct wf_agent_files *files, uint32_t node)
{
	char *path = files->workspace;
	size_t bytes = strlen(path);

	int err = mkdir(path, 0700) == 0 ? 0 : errno;
	if (err == EEXIST) {
		int wanted = snprintf(path + bytes, sizeof(files->workspace) - bytes, ".%u", node);
		if (wanted < 0 || (size_t)wanted >= sizeof(files->workspace) - bytes) {
			return wf_fail(WEFT_INVALID, "the path of the workspace is too long");
		}
		err = mkdir(path, 0700) == 0 ? 0 : errno;
	}
	return err == 0 ? WEFT_OK
			: wf_fail_errno(WEFT_IO, err, "cannot make the workspace %.300s", path);
}

enum weft_status
wf_agent_folder(const char *name)
{
	if (mkdir(name, 0777) != 0 && errno != EEXIST) {
		return wf_fail_errno(WEFT_IO, errno, "cannot make the folder %s in the workspace",
				     name);
	}
	return WEFT_OK;
}

/* The lock is released by the end of this process; children do not have the descriptor. */
static enum weft_status
write_node_file(struct wf_agent_files *files, uint32_t node)
{
	char text[16];

	int bytes = snprintf(text, sizeof(text), "%u\n", node);
	int fd = open("nodefile", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "%.300s/nodefile", files->workspace);
	}
	files->lock_fd = fd;
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		return errno == EWOULDBLOCK
			       ? wf_fail(WEFT_UNAVAILABLE,
					 "the workspace %.300s is in use by another job, or by "
					 "another host of this one",
					 files->workspace)
			       : wf_fail_errno(WEFT_IO, errno, "nodefile");
	}
	if (ftruncate(fd, 0) != 0 || write(fd, text, (size_t)bytes) != bytes) {
		return wf_fail_errno(WEFT_IO, errno, "%.300s/nodefile", files->workspace);
	}
	return WEFT_OK;
}

enum weft_status
wf_agent_workspace(struct wf_agent_files *files, enum wf_workspace kind, const char *path,
		   uint32_t node)
{
	enum weft_status st = WEFT_OK;

	if (kind == WF_WORKSPACE_NONE) {
		return WEFT_OK;
	}
	int wanted = snprintf(files->workspace, sizeof(files->workspace), "%s", path);
	if (wanted <= 0 || (size_t)wanted >= sizeof(files->workspace)) {
		return wf_fail(WEFT_INVALID, "the path of the workspace is empty or too long");
	}
	if (kind == WF_WORKSPACE_NEW) {
		st = make_folder(files, node);
	}
	if (st == WEFT_OK && chdir(files->workspace) != 0) {
		st = wf_fail_errno(WEFT_IO, errno, "the workspace %.300s", files->workspace);
	}
	if (st == WEFT_OK && getcwd(files->workspace, sizeof(files->workspace)) == NULL) {
		st = wf_fail_errno(WEFT_IO, errno, "the path of the workspace");
	}
	if (st == WEFT_OK) {
		st = write_node_file(files, node);
	}
	if (st == WEFT_OK) {
		st = wf_agent_folder("log");
	}
	return st == WEFT_OK && node == 0 ? wf_agent_folder("output") : st;
}

static enum weft_status
write_secret(const char *path, const void *secret, size_t bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
	if (fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "cannot make the file of the secret");
	}
	bool written = write(fd, secret, bytes) == (ssize_t)bytes;
	int err = errno;
	if (close(fd) != 0 || !written) {
		return wf_fail_errno(WEFT_IO, err, "cannot write the file of the secret");
	}
	return WEFT_OK;
}

enum weft_status
wf_agent_secret(struct wf_agent_files *files, const void *secret, size_t bytes)
{
	char path[sizeof(files->secret_dir) + sizeof(SECRET_NAME)];

	if (files->secret_dir[0] != '\0') {
		return wf_fail(WEFT_PROTOCOL, "a second secret");
	}
	const char *above = getenv("TMPDIR");
	int wanted = snprintf(files->secret_dir, sizeof(files->secret_dir), "%s/weft-secret-XXXXXX",
			      above != NULL && above[0] == '/' ? above : "/tmp");
	if (wanted < 0 || (size_t)wanted >= sizeof(files->secret_dir)) {
		files->secret_dir[0] = '\0';
		return wf_fail(WEFT_INVALID, "the path of TMPDIR is too long");
	}
	if (mkdtemp(files->secret_dir) == NULL) {
		files->secret_dir[0] = '\0';
		return wf_fail_errno(WEFT_IO, errno, "cannot make a folder for the secret");
	}
	int length = snprintf(path, sizeof(path), "%s" SECRET_NAME, files->secret_dir);
	if (write(files->keeper_fd, path, (size_t)length) != length) {
		rmdir(files->secret_dir);
		return wf_fail_errno(WEFT_IO, errno, "nobody would remove the secret");
	}
	enum weft_status st = write_secret(path, secret, bytes);
	if (st == WEFT_OK && setenv(SECRET_VARIABLE, path, 1) != 0) {
		st = wf_fail(WEFT_NOMEM, "no memory for the environment");
	}
	return st;
}

void
wf_agent_files_fini(struct wf_agent_files *files)
{
	if (files->keeper_fd >= 0) {
		close(files->keeper_fd); /* the secret goes */
		files->keeper_fd = -1;
		if (files->keeper_pid > 0) {
			(void)waitpid(files->keeper_pid, NULL, 0);
		}
	}
	if (files->lock_fd >= 0) {
		close(files->lock_fd);
		files->lock_fd = -1;
	}
}
