/* SPDX-License-Identifier: Apache-2.0 */
/* peer_control: the TCP connection on which the two ends of a run agree on what comes next. Nothing
 * that is measured goes over it. Calls block, up to a limit. Thread: main. */
#pragma once

#include "tools/rdma_bench/peer_words.h"

struct wf_env;
struct wf_host;

#define WF_PEER_REPLY_NS (30 * WF_NS_PER_S) /* limit of waiting for the other side's next message */

struct wf_peer_control {
	struct wf_env *env;
	int fd;       /* -1: none */
	int listener; /* server; -1: none */
};

struct wf_peer_frame {
	enum wf_peer_word type;
	size_t bytes;
	uint8_t body[WF_PEER_BODY_MAX];
};

/* `address` NULL: any. WEFT_UNAVAILABLE: in use. */
enum weft_status wf_peer_control_listen(struct wf_peer_control *control, const char *address,
					uint16_t port) WEFT_MUST_CHECK;
/* The next connection, at the latest after `timeout_ns` (WF_NEVER: whenever); into `*fd`. */
enum weft_status wf_peer_control_accept(const struct wf_peer_control *control, uint64_t timeout_ns,
					int *fd) WEFT_MUST_CHECK;
/* WEFT_UNAVAILABLE: no process listens there. */
enum weft_status wf_peer_control_connect(struct wf_env *env, const struct wf_host *to,
					 int *fd) WEFT_MUST_CHECK;
void wf_peer_control_close(struct wf_peer_control *control);

enum weft_status wf_peer_control_send(const struct wf_peer_control *control, enum wf_peer_word type,
				      const void *body, size_t bytes) WEFT_MUST_CHECK;
/* The next frame from the other side. FAIL becomes a failure of this end, with the other's status
 * and text. WEFT_MISMATCH: it has another version, and is notified; WEFT_LOST, WEFT_TIMEOUT. */
enum weft_status wf_peer_control_recv(const struct wf_peer_control *control, uint64_t timeout_ns,
				      struct wf_peer_frame *out) WEFT_MUST_CHECK;
/* The same, and it must be `type`. */
enum weft_status wf_peer_control_expect(const struct wf_peer_control *control,
					enum wf_peer_word type,
					struct wf_peer_frame *out) WEFT_MUST_CHECK;
/* Is the other side still there, without a failure? Does not block. */
enum weft_status wf_peer_control_look(const struct wf_peer_control *control) WEFT_MUST_CHECK;
/* Sends the recorded failure of this end to the other side, if that is possible. */
void wf_peer_control_fail(const struct wf_peer_control *control, enum weft_status status);

/* Addresses of the connection, in figures. `out` has room for 64. */
void wf_peer_control_own_address(int fd, char *out);
void wf_peer_control_peer_address(int fd, char *out);
