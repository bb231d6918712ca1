/* SPDX-License-Identifier: Apache-2.0 */
/* peer_join: a second connection between the two ends of a run. */
#include <stdio.h>
#include <unistd.h>

#include "tools/rdma_bench/peer.h"

/* The server accepts the connection that knows the token, and closes others. */
static enum weft_status
accept_one(struct wf_peer_end *end, int *fd)
{
	struct wf_peer_control second = {.env = end->env, .fd = -1, .listener = -1};
	struct wf_peer_frame frame;
	struct wf_peer_plan plan = {0};
	uint64_t deadline_ns = wf_now_ns(end->env) + WF_PEER_REPLY_NS;
	while (wf_now_ns(end->env) < deadline_ns) {
		enum weft_status st =
			wf_peer_control_accept(&end->control, WF_PEER_REPLY_NS, &second.fd);
		if (st != WEFT_OK) {
			return st;
		}
		st = wf_peer_control_expect(&second, WF_PEER_JOIN, &frame);
		if (st == WEFT_OK) {
			st = wf_peer_plan_decode(frame.body, frame.bytes, &plan);
		}
		if (st == WEFT_OK && plan.token == end->plan.token) {
			*fd = second.fd;
			return WEFT_OK;
		}
		close(second.fd);
	}
	return wf_fail(WEFT_TIMEOUT, "the client opened no raw socket within %llu s",
		       WF_PEER_REPLY_NS / WF_NS_PER_S);
}

static enum weft_status
connect_one(struct wf_peer_end *end, int *fd)
{
	struct wf_peer_control second = {.env = end->env, .fd = -1, .listener = -1};
	struct wf_host host = {.port = end->port};
	uint8_t body[WF_PEER_BODY_MAX];
	(void)snprintf(host.name, sizeof(host.name), "%s", end->address);
	enum weft_status st = wf_peer_control_connect(end->env, &host, &second.fd);
	if (st == WEFT_OK) {
		*fd = second.fd;
		size_t bytes = wf_peer_plan_encode(&end->plan, body);
		st = wf_peer_control_send(&second, WF_PEER_JOIN, body, bytes);
	}
	return st;
}

enum weft_status
wf_peer_join(struct wf_peer_end *end, int *fd)
{
	return end->client ? connect_one(end, fd) : accept_one(end, fd);
}
