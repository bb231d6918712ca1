/* SPDX-License-Identifier: Apache-2.0 */
/* ready: tells whoever waits for a pserver that it listens: a file, and the service manager that
 * started it. Thread: main. */
#pragma once

#include <stdbool.h>

#include "base/env.h"

struct wf_ready {
	const char *path; /* lent; NULL: no file is there */
	bool is_managed;  /* a service manager has been told */
};

/**
 * Write the file, and send READY=1 to the socket in NOTIFY_SOCKET, if there is one, as systemd's
 * sd_notify(3) describes. What was logged before is written by then, unless nobody reads the log.
 * The file appears with its whole text: it is written under another name first. A service manager
 * that cannot be reached, or that reads nothing for two seconds, costs a warning in the log.
 * @param path NULL: no file
 * @param text what the file holds; a newline is added
 * @return WEFT_OK; WEFT_IO: the file cannot be written; nobody has been told
 */
enum weft_status wf_ready_announce(struct wf_ready *ready, struct wf_env *env, const char *path,
				   const char *text) WEFT_MUST_CHECK;
/* Removes the file, and sends STOPPING=1. Accepts a zeroed struct. */
void wf_ready_withdraw(struct wf_ready *ready, struct wf_env *env);
