/* SPDX-License-Identifier: Apache-2.0 */
/* send: one message on one connection, for both ends of a link. Thread: the end's. */
#pragma once

#include "base/assert.h"
#include "transport/transport.h"
#include "wire/messages.h"

/* Sends one message. `cookie` comes back with DONE; 0: its DONE is ignored. `msg` may change once
 * this has returned. Returns false if it was not sent, because the transport accepts no more now or
 * the connection is going down. */
static inline bool
wf_send(struct wf_conn *conn, const struct wf_msg *msg, uint64_t cookie)
{
	const struct wf_op op = {
		.kind = WF_OP_SEND,
		.cookie = cookie,
		.head = &msg->head,
		.body = msg->body,
		.body_bytes = msg->body_bytes,
	};
	unsigned taken = 0;
	enum weft_status st = wf_transport_post(conn, &op, 1, &taken);
	WF_ASSERT(st != WEFT_INVALID);
	return taken == 1;
}
