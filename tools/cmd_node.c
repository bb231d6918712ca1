/* SPDX-License-Identifier: Apache-2.0 */
/* weft _node: the agent that weft launch starts by ssh on each host of a job. Thread: main. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/command.h"
#include "tools/doctor/hosts.h"
#include "tools/launch/agent.h"

#define PROGRAM "weft _node"

static int
print_help(void)
{
	fputs("Usage: weft _node\n\n", stdout);
	wf_help_print_text(stdout, wf_help_columns(stdout), 0,
			   "weft launch --hosts starts this on each host, by ssh, and sends it the "
			   "processes that it has to start. It is not meant to be started by hand. "
			   "It ends, and ends all its processes, when its standard input ends.");
	return WF_EXIT_OK;
}

/* sshd gives a command pipes or sockets. */
static bool
is_started_by_hand(void)
{
	struct stat info;

	return fstat(STDIN_FILENO, &info) != 0 ||
	       (!S_ISFIFO(info.st_mode) && !S_ISSOCK(info.st_mode));
}

int
wf_cmd_node(int argc, char **argv)
{
	struct wf_env *env = NULL;

	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		return print_help();
	}
	if (argc > 1) {
		fprintf(stderr, PROGRAM ": unexpected '%s'; it takes no arguments\n", argv[1]);
		return WF_EXIT_USAGE;
	}
	if (is_started_by_hand()) {
		fputs(PROGRAM
		      ": weft launch --hosts starts this on each host, by ssh, and sends it "
		      "the processes to start over its standard input, which has to be a "
		      "pipe or a socket; it is not meant to be started by hand\n",
		      stderr);
		return WF_EXIT_USAGE;
	}
	enum weft_status st = wf_env_system_create(WF_LOG_INFO, STDERR_FILENO, &env);
	if (st != WEFT_OK) {
		return wf_command_fail(PROGRAM, st);
	}
	int code = wf_agent_run(env, WEFT_PROJECT_VERSION, wf_doctor_examine);
	wf_env_system_destroy(env);
	return code;
}
