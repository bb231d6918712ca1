/* SPDX-License-Identifier: Apache-2.0 */
/* fake: libibverbs and librdmacm without a device. Two ends of a process meet over queue pairs that
 * copy at once; every address leads to the device "fake0". It takes the place of verbs_lib.c: link
 * it into a test, and the backend "verbs" stands on it. Thread: one. */
#pragma once

#include "transport/verbs/verbs_lib.h"

/* What a device made from here on says of itself. */
struct fake_device {
	int vectors;               /* completion vectors */
	uint8_t speed, width;      /* of its port, coded as in InfiniBand */
	enum ibv_port_state state; /* of its port */
	uint8_t path_sl;           /* service level of the path that rdma_cm finds */
	unsigned lost_requests;    /* so many of the next ones do not arrive */
	unsigned stale_requests;   /* so many of the next ones are taken for older connections */
	unsigned lost_events;      /* so many of the next completions' events do not come */
};

extern struct fake_device fake_device;

/* What the backend asked for. */
struct fake_seen {
	int vector;          /* of the last completion queue; -1: none yet */
	unsigned cq_count;   /* made */
	uint8_t sl;          /* of the last address vector */
	uint8_t tos;         /* of the last identifier; 0: none was set */
	unsigned send_calls; /* of post_send */
	unsigned recv_calls; /* of post_recv and post_srq_recv */
	unsigned work_requests;
	unsigned requests; /* of connections */
};

extern struct fake_seen fake_seen;

/* Between fake.c and fake_cm.c. */
extern struct ibv_context fake_cm_context;
void fake_verbs_fill(struct wf_verbs_lib *lib);
void fake_cm_fill(struct wf_verbs_lib *lib);
