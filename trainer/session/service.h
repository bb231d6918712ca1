/* SPDX-License-Identifier: Apache-2.0 */
/* service: what a session carries beside its tensors, on its own links: sparse tables.
 *
 * Connecting, reconnecting, retries, deadlines, what opens a path, reduces, reports, GOODBYE and
 * ABORT are handled by the core for every link. The messages in between belong to the payload,
 * behind these tables; so the trainer does not depend on sparse tables, and a program without them
 * links none of that code. A payload embeds struct wf_link in its own struct. That of dense links
 * is dense.h; a session has at most one more service, which weft_table_add sets. Thread: as each
 * slot states. */
#pragma once

#include "trainer/session/core.h"

struct weft_session;
struct wf_command;

extern const struct wf_link_ops wf_dense_link_ops;

struct wf_service_ops {
	const char *name; /* of its stats lines */
	const struct wf_link_ops *link;

	/* Thread: the owner's. */
	/* The link of a lane, over all pservers: in memory that is the service's, from seal to
	 * close. */
	struct wf_link *(*lane_link)(const struct wf_core *core, uint32_t lane);
	enum weft_status (*seal)(struct weft_session *session); /* may be tried again */
	/* The transport and the links are open, and nothing moves yet. */
	enum weft_status (*open)(struct weft_session *session);
	/* Waits until every lane is connected, and prepares the first step. */
	enum weft_status (*start)(struct weft_session *session);
	/* The step begun last is complete: what was not pushed counts as empty. If no step is
	 * begun, or it was handed in already, nothing happens. Never blocks. */
	enum weft_status (*hand_in)(struct weft_session *session);
	/* Waits until every lane has applied what was handed in. */
	enum weft_status (*wait)(struct weft_session *session);
	/* Before the pass ends: waits for every answer that is still to come. From then on lanes do
	 * not wait for this trainer, and would answer as of later steps. */
	enum weft_status (*wait_answers)(struct weft_session *session);
	bool (*is_busy)(const struct weft_session *session); /* wait would wait */
	/* WEFT_INVALID names what of the step begun last is not handed in, or not applied. */
	enum weft_status (*finished)(const struct weft_session *session);
	/* Before GOODBYE: wait for every answer that is still to come. */
	void (*drain)(struct weft_session *session);
	/* The core is closed: back to what seal has left. Batches that the caller has are void. */
	void (*reset)(struct weft_session *session);
	void (*close)(struct weft_session *session);                  /* the core is closed */
	unsigned (*commands_max)(const struct weft_session *session); /* under way at a time */

	/* Thread: the core's. */
	/* Every lane, of tensors too, has been there: once. */
	void (*all_up)(struct wf_core *core);
	void (*command)(struct wf_core *core, const struct wf_command *command);
	uint64_t (*waiting_since)(const struct wf_core *core); /* 0: it does not wait */
	/* Why it waits. False: it does not. */
	bool (*describe_wait)(const struct wf_core *core, char *out, size_t bytes);
	/* The words of a stats line, with a blank before each; `whole`: since the start, else since
	 * the last such call. */
	void (*report)(struct wf_core *core, bool whole, char *out, size_t bytes);
};
