/* SPDX-License-Identifier: Apache-2.0 */
/* shm_rig: a shm transport with a region, and the events that it has seen. Thread: the test's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "transport/transport.h"

#define SHM_RIG_REGION_BYTES (8u << 20)

struct shm_rig {
	struct wf_env *env;
	struct wf_transport *transport;
	struct wf_host at; /* localhost and the port, if it listens */
	struct wf_slab slab;
	uint32_t region;
	/* The last of each kind, and how many there were. */
	struct wf_conn *conn;
	unsigned ups, downs, msgs, puts, dones;
	enum weft_status down_status;
	char why[WF_WHY_BYTES];
	uint8_t body[64]; /* of a message that is no longer */
	uint32_t tag;
	const void *data;
};

/* `port` 0 and `listens`: any. */
void shm_rig_open(struct shm_rig *rig, bool listens, const struct wf_transport_opts *opts);
void shm_rig_close(struct shm_rig *rig);
/* Polls once; sleeps as a caller does if there was no event. */
unsigned shm_rig_pump(struct shm_rig *rig);
/* Pump until `*count` is `value`; fails the test after a minute. */
void shm_rig_await(struct shm_rig *rig, const unsigned *count, unsigned value);
/* Accepts the next connection, and waits until it is UP. */
void shm_rig_accept(struct shm_rig *rig);
/* Connect and wait for the answer. */
void shm_rig_connect(struct shm_rig *rig, const struct wf_host *to);
