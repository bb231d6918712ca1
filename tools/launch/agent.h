/* SPDX-License-Identifier: Apache-2.0 */
/* agent: starts and ends the processes of a job on one host for a `weft launch` on another, which
 * starts it as `weft _node` by ssh. It receives requests (frame.h) from its standard input and
 * sends replies and the lines of its processes to its standard output; nothing is on its command
 * line. When its input ends, because the launcher or the connection has, or when it gets a signal
 * that stops, it ends its processes, which also die with it. Thread: main. */
#pragma once

#include "base/env.h"

/* How an agent examines its host for weft doctor: the finding `idx` as a line of text without
 * control characters; "": there are no more. Those of index 0 are found anew. */
typedef void wf_agent_examine(uint32_t idx, const char *transport, uint32_t memory_mib, char *out,
			      size_t bytes);

/* Serves until the end of the input. `examine`: NULL: it does not examine. Returns the
 * exit code. */
int wf_agent_run(struct wf_env *env, const char *version, wf_agent_examine *examine);
