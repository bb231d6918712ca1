/* SPDX-License-Identifier: Apache-2.0 */
/* link: one connection of a session to one lane: connecting, HELLO and WELCOME, what opens a path
 * (GRANT, RESUME, HAVE), reconnecting after a loss, and GOODBYE. What the link carries, tensors or
 * rows, is a payload, which embeds the link. What all links of a session share is its end.
 *
 *     from \ by  | tick        | UP       | RESUME | DOWN               | GOODBYE received
 *     -----------+-------------+----------+--------+--------------------+--------------
 *     IDLE       | CONNECTING  |          |        |                    |
 *     CONNECTING |             | GREETING |        | IDLE, or a failure | -
 *     GREETING   |             |          | READY  | IDLE, or a failure | -
 *     READY      |             |          | -      | IDLE               | LEFT
 *     LEFT       |             |          | -      | LEFT               | -
 *
 * A tick fails the session if the lane was not reached in time, or did not come back. "-" is a
 * protocol error. Thread: the end's. */
#pragma once

#include <stdatomic.h>

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

/* What links need from the session to which they belong. */
struct wf_link_end_ops {
	/* Whether it has failed: no further attempts are made. */
	bool (*failed)(const struct wf_link_end *end);
	/* Fails the session. The first cause is kept. */
	void (*fail)(struct wf_link_end *end, enum weft_status status, const char *text);
	void (*log)(struct wf_link_end *end, enum weft_log_level level, const char *text);
	/* The last step that the session has begun. */
	uint64_t (*step)(const struct wf_link_end *end);
	/* RESUME is complete; `again`: it was also complete on an earlier path. */
	void (*ready)(struct wf_link *link, bool again);
	/* Handles a control message that is not the link's own. A failure is a protocol error of
	 * the lane. */
	enum weft_status (*control)(struct wf_link *link, const struct wf_event *event);
};

/* What all links of a session share. Embedded in the session; set before its links are opened. */
struct wf_link_end {
	const struct wf_link_end_ops *ops;
	struct wf_env *env;
	struct wf_turn *turn;  /* with the transport */
	char name[32];         /* "trainer 3", for log lines */
	struct wf_hello hello; /* except what differs by lane and attempt */
	uint64_t connect_timeout_ns, reconnect_timeout_ns;
	uint64_t started_ns; /* 0: not started */
	bool goes_back;      /* the loss of a lane does not end the job, as a lane says */
	bool measures;       /* a lane wants to know how long the trainer computes */
	/* As lanes say, which may be while the owner looks; relaxed, no data goes with it. */
	_Atomic bool joins;       /* the job was going on */
	_Atomic bool must_stay;   /* no trainer may leave while the job goes on */
	bool leaving;             /* the session is sending GOODBYE, */
	bool leaves;              /* and the job goes on without it, */
	uint64_t leaving_ns;      /* since this time; on the first link, */
	uint64_t last_leaving_ns; /* when the others have left: since this time; 0: not yet */
	char unacknowledged[WF_ERROR_BYTES]; /* the lane that did not answer GOODBYE; "": none */
	struct wf_beat_clock beats;

	struct wf_msg msg; /* scratch for one encode, like the next */
	struct wf_msg_steps steps;
};

enum wf_link_state {
	WF_LINK_IDLE,       /* waiting for retry.at_ns */
	WF_LINK_CONNECTING, /* one attempt is under way */
	WF_LINK_GREETING,   /* UP, but the lane has not sent all of RESUME */
	WF_LINK_READY,
	WF_LINK_LEFT, /* GOODBYE is acknowledged, or was given up on */
};

/* What a link carries. Thread: the end's. */
struct wf_link_ops {
	uint8_t service;       /* enum wf_service, in its hello and its messages */
	const char *lane_name; /* for texts: "lane", "sparse lane" */
	bool says_steps;       /* STEP is a message of its own; otherwise pushes announce it */
	/* Opens the payload of lane `lane` (counted among the payload's lanes) and sets
	 * link->content. The link is zero except for what wf_link_init has set. close: frees it; it
	 * may be half open. */
	enum weft_status (*open)(struct wf_link *link, uint32_t lane);
	void (*close)(struct wf_link *link);
	/* Sets what differs from the hello of a dense link. NULL: nothing differs. */
	void (*fill_hello)(const struct wf_link *link, struct wf_hello *hello);
	/* Sends the job to a lane that asked for it, over several turns if necessary. Returns false
	 * while a part of it is still to be sent. */
	bool (*flush_job)(struct wf_link *link);
	/* READY: sends what is due. Returns whether something is left. In to_send it handles `step`
	 * and `out`; a reduce is sent when both are clear. */
	bool (*flush)(struct wf_link *link);
	/* Sends only what was queued with wf_link_owes, STEP and pushes, which is the most frequent
	 * case; nothing on a link without a path. Returns as flush. NULL: the payload queues
	 * nothing so, and does not say steps. */
	bool (*flush_owed)(struct wf_link *link);
	/* Checks that the lane's window is large enough. NULL: any is. */
	enum weft_status (*check_window)(struct wf_link *link, const struct wf_msg_grant *msg);
	/* Handles RESUME, or a part of it: units first to first + count - 1. READY follows the last
	 * part. */
	enum weft_status (*resume)(struct wf_link *link, const struct wf_msg_steps *msg);
	/* For HAVE: the last step of a unit that the lane has answered, or WF_STEP_NONE. */
	uint64_t (*answered)(const struct wf_link *link, uint32_t unit);
	/* Handles a message of the payload's own service. */
	enum weft_status (*msg)(struct wf_link *link, const struct wf_event *event);
	enum weft_status (*put)(struct wf_link *link, const struct wf_put *put);
	/* DONE of a PUT; `what` as the service passed it to wf_link_cookie. Also called without a
	 * connection. */
	void (*done)(struct wf_link *link, uint32_t what);
	/* DOWN: the window, all grants and everything sent on the path are void. */
	void (*forget_path)(struct wf_link *link);
};

/* What the payload has on the lane. Set by its open. */
struct wf_link_content {
	/* The number of units that RESUME and HAVE cover: the slices of a dense lane, or the one
	 * push of rows. 0: nothing is PUT to the lane, and nothing is granted. */
	uint32_t unit_count;
	unsigned place_count;
	/* [place_count] where answers land; owned by the payload */
	const struct wf_answer_place *place;
	/* Something is pushed to the lane, so it is informed of steps, and of the end of the data.
	 */
	bool takes_steps;
};

/* The progress of opening the path. Written by link.c alone. */
struct wf_link_opening {
	struct wf_cursor resume, have;
	struct wf_answer_grants places;
};

/* The lane's last ABSENT, about a trainer that has not connected or does not run. Written where the
 * session handles ABSENT. */
struct wf_link_absent {
	struct wf_msg_absent msg; /* reason "": no trainer is absent */
	uint64_t since_ns;        /* when it was received */
};

/* Messages of the session that are to be sent on this path. Set where they become due, cleared when
 * they have been sent, and dropped at DOWN. */
struct wf_link_to_send {
	bool job, step, out, reduce, goodbye, abort;
};

struct wf_link {
	struct wf_link_end *end;
	const struct wf_link_ops *ops; /* of the payload */
	uint32_t idx; /* among the session's links: dense lanes first, then sparse lanes */
	uint32_t pserver_idx, lane_idx;
	struct wf_host host;
	enum wf_link_state state;
	struct wf_conn *conn;
	uint32_t path;               /* generation of the newest connection */
	uint64_t server_incarnation; /* 0: no lane has answered yet */
	bool was_ready;
	bool ends_together;  /* the lane answers GOODBYE when all trainers have sent theirs */
	struct wf_beat beat; /* for the path that is READY */
	struct wf_retry retry;

	struct wf_link_content content;

	/* State of the path, reset at DOWN. */
	struct wf_send_window window;
	struct wf_link_opening opening;
	struct wf_link_absent absent;
	struct wf_link_to_send to_send;
	struct wf_due due; /* in end->turn */
};

/* `link` is zeroed. */
void wf_link_init(struct wf_link *link, struct wf_link_end *end, const struct wf_link_ops *ops);
/* Accepts NULL, and a link without an end. */
void wf_link_close(struct wf_link *link);
/* Checks deadlines, and begins an attempt that is due. Called when the clock was read. */
void wf_link_tick(struct wf_link *link, uint64_t now);
void wf_link_up(struct wf_link *link, const struct wf_event *event);
void wf_link_down(struct wf_link *link, const struct wf_event *event);
/* WEFT_PROTOCOL: the lane broke the protocol. */
enum weft_status wf_link_msg(struct wf_link *link, const struct wf_event *event) WEFT_MUST_CHECK;
/* Writes "pserver 1 lane 0 (10.0.0.2:7164)". */
void wf_link_describe(const struct wf_link *link, char *out, size_t bytes);
static inline bool
wf_link_send(const struct wf_link *link, const struct wf_msg *msg)
{
	return wf_send(link->conn, msg, 0);
}
/* Something is due on the link: the next turn sends it. */
static inline void
wf_link_due(struct wf_link *link)
{
	wf_turn_due(link->end->turn, &link->due);
}
/* The same for what the payload's flush_owed sends. The link is READY. */
static inline void
wf_link_owes(struct wf_link *link)
{
	wf_turn_owes(link->end->turn, &link->due);
}
/* READY: sends what opens the path at this end while `have` is open (GRANT of each place, then
 * HAVE), and GOODBYE while it is due. They return false if the transport accepts no more now. */
bool wf_link_flush_opening(struct wf_link *link);
bool wf_link_flush_goodbye(struct wf_link *link);

/* The cookie of a link's PUT. 0 is the cookie of operations whose DONE is ignored. */
static inline uint64_t
wf_link_cookie(const struct wf_link *link, uint32_t what)
{
	return ((uint64_t)link->idx << 32 | what) + 1;
}
