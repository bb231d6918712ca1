/* SPDX-License-Identifier: Apache-2.0 */
/* peer: one end of the connection between a trainer and a lane, in the bytes of wire/: a trainer
 * that connects, or a lane's end that accepts. It sends what a test makes it send, valid or not,
 * and keeps what it receives. What all services have in common is here: HELLO and WELCOME, GOODBYE,
 * ABORT, ABSENT, BEAT, REDUCED, what opens a path, and the buffers of a window; the rest goes to
 * the `peer_ops` of the struct that embeds the peer. Thread: the one that runs the test. */
#pragma once

#include "tests/support/script.h"
#include "transport/transport.h"
#include "wire/hello.h"
#include "wire/messages.h"

#define PEER_OPS_MAX 4096u          /* that wait for the transport */
#define PEER_BUFFER_FREE UINT64_MAX /* of `buffer` */

struct peer;

struct peer_ops {
	/* A message of a service, or one of control that is not known here. Anything but WEFT_OK
	 * fails the script. */
	enum weft_status (*recv)(struct peer *peer, const struct wf_head *head,
				 const uint8_t *body);
	/* A part of RESUME, or at a lane's end of HAVE, is in peer->steps. NULL: ignored. */
	void (*steps)(struct peer *peer);
	/* A PUT of the other end. NULL: none may come. */
	void (*put)(struct peer *peer, const struct wf_event *event);
	/* An operation with a cookie is over, or was dropped before the transport had it. NULL:
	 * ignored. */
	void (*done)(struct peer *peer, uint64_t cookie);
	/* The path is over. NULL: ignored. */
	void (*down)(struct peer *peer);
};

/* An operation that waits for the transport. */
struct peer_op {
	struct wf_op op;
	struct wf_msg msg; /* SEND */
};

struct peer {
	struct script *script;
	const struct peer_ops *ops;
	bool is_lane;                   /* it accepts */
	struct wf_transport *transport; /* a lane's end: the owner's */
	struct wf_slab slab;            /* a trainer: the memory that it reads and writes */
	uint32_t region;                /* of it */
	struct wf_conn *conn;           /* the newest; NULL: none */

	/* A trainer: its destination and its HELLO; a test may change them before peer_connect. A
	 * lane's end: the HELLO that it received. */
	struct wf_host to;
	struct wf_hello hello;
	int tamper_at; /* byte of the encoded hello; negative: from its end; INT32_MIN: none */
	uint8_t tamper_byte;

	/* What it received on this path. */
	bool up, down;
	struct wf_welcome welcome; /* or the refusal */
	enum weft_status down_status;
	bool granted, resumed; /* GRANT was received; RESUME, or at a lane's end HAVE, was received
			        * whole */
	struct wf_msg_grant grant;
	struct wf_msg_steps steps; /* the last part */

	/* Over all paths. */
	uint32_t absents;
	struct wf_msg_absent absent; /* the last one */
	uint32_t beats;
	struct wf_msg_beat beat; /* the last one */
	bool asleep;             /* answers none */
	uint32_t reduced_count;
	struct wf_msg_reduce reduced; /* the last one */
	bool goodbye_heard;           /* a trainer: the answer to its own */
	bool aborted;
	struct wf_msg_abort abort;

	/* The buffers that the lane granted on this path: what lies in each, in the owner's terms,
	 * or PEER_BUFFER_FREE. */
	uint32_t slot_count;
	uint64_t buffer[WF_GRANT_SLOT_COUNT_MAX];
	uint32_t credits; /* buffers that CREDIT gave back, over all paths */

	struct peer_op *queue; /* [PEER_OPS_MAX], a ring */
	uint32_t queue_first, queue_count;
};

/* Opens a transport with these `paths` in the script's env, and this many bytes of memory. The
 * caller fills in `ops`, `hello` and `to`. */
void peer_open(struct peer *peer, struct script *script, const char *paths, size_t slab_bytes);
/* Opens a lane's end at a transport of the caller's, who polls it and passes events on. */
void peer_open_at(struct peer *peer, struct script *script, struct wf_transport *transport);
/* Accepts one that was never opened. */
void peer_close(struct peer *peer);
/* Its next path: HELLO goes out. */
void peer_connect(struct peer *peer);
/* Admits the sender of `hello`, at UP of a connection at the lane's end, and sends WELCOME. */
void peer_accept(struct peer *peer, struct wf_conn *conn, const struct wf_hello *hello,
		 const struct wf_welcome *welcome);
void peer_disconnect(struct peer *peer, enum wf_disconnect how);
/* What its transport has, and what waits for that; how many events. */
unsigned peer_poll(struct peer *peer);
/* Sends as much of what waits as the transport accepts. */
void peer_flush(struct peer *peer);
/* One event of its connection. */
void peer_event(struct peer *peer, const struct wf_event *event);

/* Queues a message after all that it sent before; the message is copied. Without a connection it
 * does nothing and returns false; what waits is dropped when the connection ends. */
bool peer_post(struct peer *peer, const struct wf_op *op);
void peer_send(struct peer *peer, const struct wf_msg *msg);
/* Grants the lane a place in the peer's memory, and sends the GRANT. */
void peer_grant_place(struct peer *peer, uint8_t place, uint64_t offset, uint64_t bytes);
void peer_goodbye(struct peer *peer);
void peer_leave(struct peer *peer); /* while the others go on */
void peer_beat(struct peer *peer, bool asks, bool itself);

/* The first buffer that is free; `slot_count` where none is. */
uint32_t peer_free_buffer(const struct peer *peer);
/* An answer: whatever is called `label` has left its buffers. */
void peer_free_label(struct peer *peer, uint64_t label);
