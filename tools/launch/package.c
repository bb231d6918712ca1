/* SPDX-License-Identifier: Apache-2.0 */
/* package: see package.h. */
#include "tools/launch/package.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/launch/lines.h"
#include "tools/launch/process.h"

#define STEP_NS (WF_NS_PER_S / 50)

struct packing {
	struct wf_env *env;
	const char *folder;
	struct wf_process tar;
	struct wf_lines errors;
	char first_error[256];
	wf_package_fn *piece;
	void *arg;
};

static void
on_error(void *arg, const char *text)
{
	struct packing *packing = arg;

	/* The first one names the file; the last one says that there was one. */
	if (packing->first_error[0] == '\0') {
		snprintf(packing->first_error, sizeof(packing->first_error), "%s", text);
	}
}

static void
read_errors(struct packing *packing)
{
	char bytes[4096];
	int fd = packing->tar.fd[WF_PROCESS_STDERR];
	ssize_t got = read(fd, bytes, sizeof(bytes));

	if (got > 0) {
		wf_lines_feed(&packing->errors, bytes, (size_t)got, on_error, packing);
	}
}

/* Until the end of tar's output. */
static enum weft_status
pass_on(struct packing *packing)
{
	char bytes[WF_PACKAGE_PIECE_BYTES];
	enum weft_status st = WEFT_OK;

	while (st == WEFT_OK) {
		int fd = packing->tar.fd[WF_PROCESS_STDOUT];
		ssize_t got = read(fd, bytes, sizeof(bytes));
		read_errors(packing);
		if (got > 0) {
			st = packing->piece(packing->arg, bytes, (size_t)got);
		} else if (got == 0) {
			return WEFT_OK;
		} else if (errno == EAGAIN || errno == EINTR) {
			wf_wait(packing->env, fd, wf_now_ns(packing->env) + STEP_NS);
		} else {
			st = wf_fail_errno(WEFT_IO, errno, "tar");
		}
	}
	return st;
}

static enum weft_status
finish(struct packing *packing, enum weft_status st)
{
	uint64_t deadline_ns = WF_NEVER;

	if (st != WEFT_OK) {
		wf_process_signal(&packing->tar, SIGKILL);
		deadline_ns = wf_now_ns(packing->env) + WF_PROCESS_STUCK_NS;
	}
	while (!wf_process_reap(&packing->tar)) {
		if (wf_now_ns(packing->env) >= deadline_ns) {
			wf_process_leave(&packing->tar);
			break;
		}
		read_errors(packing);
		wf_wait(packing->env, -1, wf_now_ns(packing->env) + STEP_NS);
	}
	read_errors(packing);
	int status = packing->tar.wait_status;
	if (st == WEFT_OK && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
		st = wf_fail(WEFT_IO, "%.200s cannot be packed: %.250s", packing->folder,
			     packing->first_error[0] != '\0' ? packing->first_error
							     : "tar printed nothing");
	}
	return st;
}

enum weft_status
wf_package_pack(struct wf_env *env, const char *folder, wf_package_fn *piece, void *arg)
{
	struct packing packing = {.env = env, .folder = folder, .piece = piece, .arg = arg};
	struct wf_args args;
	struct stat info;
	sigset_t mask;

	if (stat(folder, &info) != 0) {
		return wf_fail_errno(WEFT_IO, errno, "%.300s", folder);
	}
	if (!S_ISDIR(info.st_mode)) {
		return wf_fail(WEFT_INVALID, "%.300s is no folder", folder);
	}
	wf_args_init(&args);
	wf_args_add(&args, "tar");
	wf_args_add(&args, "-c");
	wf_args_add(&args, "-f");
	wf_args_add(&args, "-");
	wf_args_add(&args, "-C");
	wf_args_add(&args, "%s", folder);
	wf_args_add(&args, ".");
	sigprocmask(SIG_SETMASK, NULL, &mask);
	wf_process_init(&packing.tar);
	const struct wf_process_opts opts = {
		.name = "tar", .program = "tar", .args = &args, .mask = &mask};
	enum weft_status st = wf_args_check(&args);
	if (st == WEFT_OK) {
		st = wf_process_start(&packing.tar, &opts);
	}
	if (packing.tar.pid != 0) {
		st = finish(&packing, st == WEFT_OK ? pass_on(&packing) : st);
	}
	wf_process_fini(&packing.tar);
	return st;
}
