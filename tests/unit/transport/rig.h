/* SPDX-License-Identifier: Apache-2.0 */
/* rig: a tcp transport under a clock that the test sets ahead or stops, and raw sockets against it.
 * Thread: the test's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "tests/support/failing_env.h"
#include "transport/transport.h"
#include "wire/head.h"

#define RIG_SEEN_MAX 256
#define RIG_MEMORY_BYTES 65536u

struct rig_seen {
	enum wf_event_kind kind;
	struct wf_conn *conn;
	enum weft_status status;
	char why[WF_WHY_BYTES];
	uint64_t request_id; /* MSG */
};

struct rig {
	struct wf_env *system;
	struct wf_failing_env failing; /* around `system` */
	struct wf_env env;             /* around `failing`, with the clock below */
	uint64_t ahead_ns;             /* added to the system's clock */
	uint64_t stopped_ns;           /* what that showed when it was stopped; 0: it goes */
	uint64_t deadline_ns;          /* of the last arm */
	struct wf_transport *transport;
	struct wf_host at; /* 127.0.0.1 and the port */
	uint8_t memory[RIG_MEMORY_BYTES];
	uint32_t region;
	struct rig_seen seen[RIG_SEEN_MAX];
	unsigned seen_count;
};

/* Opens and listens. The env of `opts` is filled in. */
struct rig *rig_open(const struct wf_transport_opts *opts);
void rig_close(struct rig *rig);
/* Polls once, and waits a moment if there was no event. */
void rig_pump(struct rig *rig);
/* Poll until `kind` has been seen `count` times in all; returns the last, or fails the test. */
struct rig_seen *rig_await(struct rig *rig, enum wf_event_kind kind, unsigned count);
unsigned rig_count(const struct rig *rig, enum wf_event_kind kind);
struct wf_transport_info rig_info(struct rig *rig);
/* Pumps until this many strangers have been refused. */
void rig_await_strangers(struct rig *rig, uint64_t count);
/* Pumps until this many are connecting; the kernel decides how long a connection takes. */
void rig_await_newcomers(struct rig *rig, uint32_t count);
/* Pumps until the last sender among them has sent this many bytes. */
void rig_await_spoken(struct rig *rig, size_t bytes);
/* From now on no time limit expires, however long it takes. */
void rig_stop_clock(struct rig *rig);
/* The transport has nothing to do and would let its caller sleep. */
bool rig_would_sleep(struct rig *rig);
/* Arms, as a lane does; polls once more, unless it is quiet and no DONEs are awaited. True: the
 * lane sleeps now. */
bool rig_rests(struct rig *rig, bool awaits_done);
/* After that: sleep until something comes, and poll. */
void rig_sleep(struct rig *rig);

/* A raw connection to the listener. */
int raw_connect(const struct rig *rig);
void raw_send(int fd, const void *bytes, size_t count);
/* From now on the host of this socket behaves as if it were gone: everything sent to it is
 * dropped. */
void raw_fall_silent(int fd);
/* Pump until the transport has closed its end. */
void raw_await_close(struct rig *rig, int fd);
/* Pump until a whole frame has come; its body (at most 1,024 bytes) is thrown away. */
struct wf_head raw_await_frame(struct rig *rig, int fd);
/* Write a frame of service TRANSPORT; returns its bytes. */
size_t raw_frame(uint8_t *out, uint8_t type, const void *body, size_t body_bytes);
/* A raw connection that has sent its hello and been accepted. `*conn` is the rig's end. */
int raw_join(struct rig *rig, struct wf_conn **conn);
