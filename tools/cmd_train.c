/* SPDX-License-Identifier: Apache-2.0 */
/* weft train: executes the training program, weft-train. That is a separate program because
 * OpenBLAS starts threads as soon as it is loaded, and nothing else needs them. Thread: main. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/own_path.h"
#include "base/url.h"
#include "tools/command.h"
#include "tools/doctor/start.h"
#include "tools/launch/train_options.h"

/* The directory of this executable, without a slash at its end. */
static enum weft_status
own_directory(char *out, size_t bytes)
{
	enum weft_status st = wf_own_path(out, bytes);
	if (st == WEFT_OK) {
		*strrchr(out, '/') = '\0'; /* an absolute path has one */
	}
	return st;
}

/* Beside this program, then where the build puts it, then where an installation does. */
static enum weft_status
find_trainer(char *out, size_t bytes)
{
	static const char *const beside[] = {
		"weft-train",
		"../trainer/program/weft-train",
		"../libexec/weft/weft-train",
	};
	char directory[PATH_MAX];

	enum weft_status st = own_directory(directory, sizeof(directory));
	if (st != WEFT_OK) {
		return st;
	}
	for (size_t i = 0; i < WF_ARRAY_COUNT(beside); i++) {
		int wanted = snprintf(out, bytes, "%s/%s", directory, beside[i]);
		if (wanted > 0 && (size_t)wanted < bytes && access(out, X_OK) == 0) {
			return WEFT_OK;
		}
	}
	snprintf(out, bytes, "%s/weft-train", WEFT_LIBEXECDIR);
	if (access(out, X_OK) == 0) {
		return WEFT_OK;
	}
	return wf_fail(
		WEFT_UNSUPPORTED,
		"the training program weft-train is neither beside %s/weft nor in %s: OpenBLAS "
		"was not found when weft was built; install it (libopenblas-dev) and build again",
		directory, WEFT_LIBEXECDIR);
}

/* The training program reads its options itself. */
static bool
only_prints(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "--help", 6) == 0 || strcmp(argv[i], "-h") == 0 ||
		    strncmp(argv[i], "--print_options", 15) == 0) {
			return true;
		}
	}
	return false;
}

/* Findings of weft doctor that matter for this trainer. What is wrong with the options the training
 * program says. */
static void
warn_at_start(int argc, char **argv)
{
	static struct wf_train_command command; /* large */
	struct wf_host first = {0};

	if (wf_train_options_check(&command, argc, argv) != WEFT_OK || command.opts.sequential) {
		return;
	}
	const struct weft_session_opts *session = &command.opts.session;
	unsigned count = 0;
	enum weft_status st = wf_host_list_parse(session->pservers, 0, &first, 1, &count);
	const struct wf_doctor_ask ask = {
		.root = "",
		.transport = session->transport != NULL ? session->transport : "auto",
		.tcp_congestion = session->tcp_congestion,
		.listen = st == WEFT_OK ? first.name : "0.0.0.0",
		.trainers = 1,
		.memory_bytes = WF_DOCTOR_START_BYTES,
	};
	wf_doctor_warn_at_start("weft train", &ask);
}

int
wf_cmd_train(int argc, char **argv)
{
	char path[PATH_MAX + 64];

	WF_ASSERT(argc >= 1);
	enum weft_status st = find_trainer(path, sizeof(path));
	if (st != WEFT_OK) {
		return wf_command_fail("weft train", st);
	}
	if (!only_prints(argc, argv)) {
		wf_cmd_env_warn("weft train", WF_ROLE_TRAINER);
		warn_at_start(argc, argv);
	}
	signal(SIGPIPE, SIG_DFL);
	argv[0] = path;
	execv(path, argv);
	st = wf_fail_errno(WEFT_IO, errno, "%s: cannot be executed", path);
	return wf_command_fail("weft train", st);
}
