/* SPDX-License-Identifier: Apache-2.0 */
/* observe: the page of a pserver (status/http.h) over what its lanes show (pserver/view.h). Thread:
 * main; the page has its own. */
#pragma once

#include "base/env.h"
#include "base/status.h"

struct wf_observer;
struct wf_server;

/* `where`: the value of --status; NULL or "": there is no page, and `*out` is NULL. Logs where the
 * page is. The server outlives it. */
enum weft_status wf_observer_start(struct wf_env *env, const struct wf_server *server,
				   const char *where, struct wf_observer **out) WEFT_MUST_CHECK;
void wf_observer_stop(struct wf_observer *observer); /* accepts NULL */
