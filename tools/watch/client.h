/* SPDX-License-Identifier: Apache-2.0 */
/* client: a connection to lane 0 of a pserver over which questions about its job are asked
 * (wire/watch_messages.h). It goes over TCP, through the pserver's own port, and proves that it has
 * the job's secret where there is one. Thread: the caller's. */
#pragma once

#include "base/env.h"
#include "base/url.h"
#include "status/picture.h"

struct wf_watch_client;

struct wf_watch_opts {
	struct wf_env *env;
	struct wf_host host;     /* lane 0 of the pserver */
	const char *secret_file; /* of the job; NULL or "": it has none */
	uint64_t timeout_ns;     /* for the connection, and for each answer */
};

/* WEFT_UNAVAILABLE, WEFT_REFUSED, WEFT_TIMEOUT, WEFT_PERM and others name the pserver. */
enum weft_status wf_watch_open(const struct wf_watch_opts *opts,
			       struct wf_watch_client **out) WEFT_MUST_CHECK;
/* Asks (question and arguments of `ask`; its request_id is set here), and adds the records of the
 * answer to `into`. After a failure the client can only be closed. */
enum weft_status wf_watch_request(struct wf_watch_client *client, const struct wf_watch_ask *ask,
				  struct wf_picture *into) WEFT_MUST_CHECK;
void wf_watch_client_close(struct wf_watch_client *client); /* accepts NULL */
