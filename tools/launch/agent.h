/* SPDX-License-Identifier: Apache-2.0 */
/* agent: starts and ends the processes of a job on one host for a `weft launch` on another, which
 * starts it as `weft _node` by ssh. It receives requests (frame.h) from its standard input and
 * sends replies and the lines of its processes to its standard output; nothing is on its command
 * line. When its input ends, because the launcher or the connection has, or when it gets a signal
 * that stops, it ends its processes, which also die with it. Thread: main. */
#pragma once

#include "base/env.h"

/* Serves until the end of the input. Returns the exit code. */
int wf_agent_run(struct wf_env *env, const char *version);
