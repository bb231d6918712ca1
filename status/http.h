/* SPDX-License-Identifier: Apache-2.0 */
/* http: the page of a pserver, /api/v1/status, /metrics, /healthz and /readyz, over HTTP. A thread
 * of its own takes a picture once a second and answers from that, so requests cost the lanes
 * nothing, however many there are. It answers GET and HEAD, and changes nothing.
 *
 * Thread: start and stop by one thread; `source` is called by the thread that start makes. */
#pragma once

#include "base/env.h"
#include "base/url.h"
#include "status/picture.h"

struct wf_status_server;

/* Where pictures come from. */
struct wf_status_source {
	/* Adds all records to an empty picture. WEFT_NOMEM: it is left out. */
	enum weft_status (*read)(const struct wf_status_source *source, struct wf_picture *into);
};

struct wf_status_opts {
	struct wf_env *env;
	struct wf_host listen;                 /* port 0: the system picks one */
	const struct wf_status_source *source; /* lent until stop */
};

/* "[ADDR:]PORT", the value of --status; without ADDR it is loopback. WEFT_INVALID. */
enum weft_status wf_status_parse(const char *text, struct wf_host *out) WEFT_MUST_CHECK;
/* Listens, and starts the thread. WEFT_UNSUPPORTED: weft was built without it; WEFT_UNAVAILABLE:
 * the address; WEFT_NOMEM. */
enum weft_status wf_status_start(const struct wf_status_opts *opts,
				 struct wf_status_server **out) WEFT_MUST_CHECK;
uint16_t wf_status_port(const struct wf_status_server *server);
void wf_status_stop(struct wf_status_server *server); /* accepts NULL */
