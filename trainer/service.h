/* SPDX-License-Identifier: Apache-2.0 */
/* service: what a session carries beside its tensors, on links of its own: sparse tables.
 *
 * Connecting, coming back, retries, deadlines, what opens a path, reduces, reports, GOODBYE and
 * ABORT are the core's for every link. What is said between them is the payload's, behind these
 * tables; so trainer knows no sparse table, and a program without one links none of it. A payload
 * embeds struct wf_link in a struct of its own. That of dense links is dense.h; a session has at
 * most one more service, which weft_table_add sets.
 * Thread: as each slot says. */
#pragma once

#include "trainer/core.h"

struct weft_session;
struct wf_command;

/* What a link carries. Thread: the core's. */
struct wf_link_ops {
	uint8_t service;       /* enum wf_service: of its hello and of its messages */
	const char *lane_name; /* for messages to people: "lane", "sparse lane" */
	bool says_steps; /* STEP is a message of its own; else it is said with what is pushed */
	/* The link is that of lane `lane` of the payload's, and all zero but for what wf_link_open
	 * knows: say what it has. close: give it back; it may be half open. */
	enum weft_status (*open)(struct wf_link *link, uint32_t lane);
	void (*close)(struct wf_link *link);
	/* What differs from the hello of a dense link. NULL: nothing. */
	void (*fill_hello)(const struct wf_link *link, struct wf_hello *hello);
	/* The next turns tell the lane the job, where it asked for it. False: not all of it yet. */
	bool (*flush_job)(struct wf_link *link);
	/* READY: send what is due. Returns whether something is left. step_due and out_due are the
	 * link's; a reduce is said when both are clear. */
	bool (*flush)(struct wf_link *link);
	/* The lane's window: is it large enough? NULL: any is. */
	enum weft_status (*check_window)(struct wf_link *link, const struct wf_msg_grant *msg);
	/* RESUME, or a part of it: units first to first + count - 1. READY follows the last one. */
	enum weft_status (*resume)(struct wf_link *link, const struct wf_msg_steps *msg);
	/* The last step of a unit that the lane has answered, or WF_STEP_NONE, for HAVE. */
	uint64_t (*answered)(const struct wf_link *link, uint32_t unit);
	/* A message of the payload's own. */
	enum weft_status (*msg)(struct wf_link *link, const struct wf_event *event);
	enum weft_status (*put)(struct wf_link *link, const struct wf_put *put);
	/* DONE of a PUT; `what` as the service made it with wf_link_cookie. Also without a
	 * connection. */
	void (*done)(struct wf_link *link, uint32_t what);
	/* DOWN: the window and all that was granted and said are gone. */
	void (*forget_path)(struct wf_link *link);
};

extern const struct wf_link_ops wf_dense_link_ops;

/* Cookies of a link's PUTs; 0 is for what nobody waits for. */
static inline uint64_t
wf_link_cookie(const struct wf_link *link, uint32_t what)
{
	return ((uint64_t)link->idx << 32 | what) + 1;
}

struct wf_service_ops {
	const char *name; /* of its stats lines */
	const struct wf_link_ops *link;

	/* Thread: the owner's. */
	/* The link of a lane, over all pservers: in memory that is the service's, from seal to
	 * close. */
	struct wf_link *(*lane_link)(const struct wf_core *core, uint32_t lane);
	enum weft_status (*seal)(struct weft_session *session); /* may be tried again */
	/* The transport and the links are there, and nothing moves yet. */
	enum weft_status (*open)(struct weft_session *session);
	/* Wait until every lane is there, and get ready for the first step. */
	enum weft_status (*start)(struct weft_session *session);
	/* The step begun last is complete: what was not pushed counts as empty. No step begun, or
	 * handed in already: nothing happens. Never blocks. */
	enum weft_status (*hand_in)(struct weft_session *session);
	/* Wait until every lane has applied what was handed in. */
	enum weft_status (*wait)(struct weft_session *session);
	bool (*is_busy)(const struct weft_session *session); /* wait would wait */
	/* WEFT_INVALID says what of the step begun last is not handed in, or not applied. */
	enum weft_status (*finished)(const struct weft_session *session);
	/* Before GOODBYE: wait for every answer that is still to come. */
	void (*drain)(struct weft_session *session);
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
