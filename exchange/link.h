/* SPDX-License-Identifier: Apache-2.0 */
/* link: one connection of a session to one lane: finding it, HELLO and WELCOME, what opens a path
 * (GRANT, RESUME, HAVE), coming back after a loss, GOODBYE. What the link carries, tensors or rows,
 * is a payload, which embeds it; what all links of a session share is its end.
 *
 *     from \ by  | tick        | UP       | RESUME | DOWN               | GOODBYE heard
 *     -----------+-------------+----------+--------+--------------------+--------------
 *     IDLE       | CONNECTING  |          |        |                    |
 *     CONNECTING |             | GREETING |        | IDLE, or a failure | -
 *     GREETING   |             |          | READY  | IDLE, or a failure | -
 *     READY      |             |          | -      | IDLE               | LEFT
 *     LEFT       |             |          | -      | LEFT               | -
 *
 * A tick ends it where the lane was not found in time, or did not come back (-: an offence).
 * Thread: the end's. */
#pragma once

#include "base/beats.h"
#include "base/env.h"
#include "exchange/cursors.h"
#include "exchange/places.h"
#include "exchange/retry.h"
#include "exchange/send.h"
#include "exchange/turn.h"
#include "exchange/window.h"
#include "transport/transport.h"
#include "weft/weft.h"
#include "wire/hello.h"
#include "wire/messages.h"

struct wf_link;
struct wf_link_end;

/* What links ask of the session whose they are. */
struct wf_link_end_ops {
	/* It has failed: nothing is tried any more. */
	bool (*failed)(const struct wf_link_end *end);
	/* It fails. The first cause is the one that stays. */
	void (*fail)(struct wf_link_end *end, enum weft_status status, const char *text);
	void (*log)(struct wf_link_end *end, enum weft_log_level level, const char *text);
	/* The last step that it has begun. */
	uint64_t (*step)(const struct wf_link_end *end);
	/* RESUME is complete; `again`: it was on an earlier path, too. */
	void (*ready)(struct wf_link *link, bool again);
	/* A control message that is not the link's own. A failure is the lane's offence. */
	enum weft_status (*control)(struct wf_link *link, const struct wf_event *event);
};

/* What all links of a session share. Embedded in it; set before its links are opened. */
struct wf_link_end {
	const struct wf_link_end_ops *ops;
	struct wf_env *env;
	struct wf_turn *turn;  /* with the transport */
	char name[32];         /* "trainer 3", in lines of the log */
	struct wf_hello hello; /* but for what differs by lane and attempt */
	uint64_t connect_timeout_ns, reconnect_timeout_ns;
	uint64_t started_ns;                 /* 0: not started */
	bool leaving;                        /* GOODBYE is being said, */
	uint64_t leaving_ns;                 /* since then */
	char unacknowledged[WF_ERROR_BYTES]; /* who did not answer GOODBYE; "": nobody */
	struct wf_beat_clock beats;

	struct wf_msg msg; /* scratch of one encode, like the next */
	struct wf_msg_steps steps;
};

enum wf_link_state {
	WF_LINK_IDLE,       /* waits for retry.at_ns */
	WF_LINK_CONNECTING, /* one attempt is under way */
	WF_LINK_GREETING,   /* UP; the lane has not sent all of RESUME */
	WF_LINK_READY,
	WF_LINK_LEFT, /* GOODBYE acknowledged, or given up on while leaving */
};

/* What a link carries. Thread: the end's. */
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
	/* READY: send what is due. Returns whether something is left. Of to_send, `step` and
	 * `out` are its business; a reduce is said when both are clear. */
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

/* What the payload has on the lane: set by its open. */
struct wf_link_content {
	/* What RESUME and HAVE speak of: the slices of a dense lane, the one push of rows; 0: there
	 * is nothing to put on the lane, nor to be granted. */
	uint32_t unit_count;
	unsigned place_count;
	const struct wf_answer_place *place; /* [place_count] what answers land in, the payload's */
	bool takes_steps; /* something is pushed to the lane: it hears of steps, and of their end */
};

/* How far the two ends have come in opening the path. Written by link.c alone. */
struct wf_link_opening {
	struct wf_cursor resume, have;
	struct wf_answer_grants places;
};

/* What the lane said last of a trainer that has not come in, or takes no turns. Written where the
 * session handles ABSENT. */
struct wf_link_absent {
	struct wf_msg_absent msg; /* reason "": of nobody */
	uint64_t since_ns;        /* when it was said */
};

/* Messages of the session that are to be sent on this path. Set where they come about, cleared by
 * whoever sends them, and forgotten at DOWN. */
struct wf_link_to_send {
	bool job, step, out, reduce, goodbye, abort;
};

struct wf_link {
	struct wf_link_end *end;
	const struct wf_link_ops *ops; /* of the service that it carries */
	uint32_t idx;                  /* of the session: dense lanes, then those of the service */
	uint32_t pserver_idx, lane_idx;
	struct wf_host host;
	enum wf_link_state state;
	struct wf_conn *conn;
	uint32_t path;               /* generation of the newest connection */
	uint64_t server_incarnation; /* 0: never seen */
	bool was_ready;
	struct wf_beat beat; /* of the path that is READY */
	struct wf_retry retry;

	struct wf_link_content content;

	/* Path: forgotten at DOWN. */
	struct wf_send_window window;
	struct wf_link_opening opening;
	struct wf_link_absent absent;
	struct wf_link_to_send to_send;
	struct wf_due due; /* in end->turn */
};

/* `link`: zeroed. */
void wf_link_init(struct wf_link *link, struct wf_link_end *end, const struct wf_link_ops *ops);
/* NULL, and one that was never given an end, are accepted. */
void wf_link_close(struct wf_link *link);
/* The clock was read. */
void wf_link_tick(struct wf_link *link, uint64_t now);
void wf_link_up(struct wf_link *link, const struct wf_event *event);
void wf_link_down(struct wf_link *link, const struct wf_event *event);
/* WEFT_PROTOCOL: an offence of the lane. */
enum weft_status wf_link_msg(struct wf_link *link, const struct wf_event *event) WEFT_MUST_CHECK;
/* "pserver 1 lane 0 (10.0.0.2:7164)" */
void wf_link_describe(const struct wf_link *link, char *out, size_t bytes);
static inline bool
wf_link_send(const struct wf_link *link, const struct wf_msg *msg)
{
	return wf_send(link->conn, msg, 0);
}
/* Something is to be sent: the next turn does. */
static inline void
wf_link_due(struct wf_link *link)
{
	wf_turn_due(link->end->turn, &link->due);
}
/* READY: what opens the path at this end, while `have` is open: GRANT of each place, then HAVE. And
 * GOODBYE, while it is due. False: the transport takes no more now. */
bool wf_link_flush_opening(struct wf_link *link);
bool wf_link_flush_goodbye(struct wf_link *link);

/* Cookies of a link's PUTs; 0 is for what nobody waits for. */
static inline uint64_t
wf_link_cookie(const struct wf_link *link, uint32_t what)
{
	return ((uint64_t)link->idx << 32 | what) + 1;
}
