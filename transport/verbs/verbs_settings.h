/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_settings: the user's settings of devices, links and timers, and their defaults. Thread:
 * any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define WF_VERBS_DEVICE_BYTES 64
#define WF_VERBS_DEVICES_BYTES 256  /* a list of devices, as text */
#define WF_VERBS_SEND_QUEUE_MIN 32u /* work requests: two batches of full length */

enum wf_verbs_choice {
	WF_VERBS_AUTO, /* use it if the device has it */
	WF_VERBS_OFF,  /* do not use it */
	WF_VERBS_ON,   /* use it if the device reports it, even if it is known to be faulty */
};

struct wf_verbs_settings {
	char device[WF_VERBS_DEVICES_BYTES]; /* "": any to which an address leads; "a+b": these */
	uint32_t port;                       /* 0: any */
	uint32_t lane;         /* the lane's number in its process: lanes take turns at devices */
	int32_t node;          /* NUMA node of the lane; -1: all devices are near */
	int32_t gid;           /* index of the GID; -1: by address */
	int32_t mtu;           /* 256 to 4096; -1: that of the path */
	int32_t traffic_class; /* 0 to 255; -1: the system's */
	int32_t service_level; /* 0 to 15; -1: that of the path */
	int32_t pkey;          /* index of the partition key; -1: that of the path */
	uint32_t ack_timeout;  /* n: a packet is sent again after 4.096 us * 2^n */
	uint32_t retry_count;  /* retries; with 7 some devices never stop */
	uint32_t rnr_timer;    /* as InfiniBand encodes it; 12: 0.64 ms, 0: 655 ms */
	uint32_t rnr_retry;    /* retries; 7: without limit */
	int32_t vector;        /* completion vector; -1: by the thread's CPU */
	uint32_t inline_bytes; /* requested; the device may grant less */
	uint32_t credits;      /* messages and notices of a peer that may be outstanding */
	uint32_t send_queue;   /* work requests of a connection */
	uint32_t small_put_bytes;          /* a PUT of up to this size is one work request */
	enum wf_verbs_choice immediate;    /* OFF: notices are messages, as on iWARP */
	enum wf_verbs_choice window;       /* OFF: a region in a protection domain per peer */
	enum wf_verbs_choice shared_queue; /* OFF: a receive queue for each connection */
	enum wf_verbs_choice relaxed;      /* OFF: strict ordering of writes on the bus */
};

/* Parses "device=mlx5_0+mlx5_1,port=1,retry=5"; NULL and "" stand for the defaults. WEFT_INVALID:
 * the text names key, value and what is allowed. */
enum weft_status wf_verbs_settings_parse(const char *text,
					 struct wf_verbs_settings *out) WEFT_MUST_CHECK;
/* The number of devices that are named; 0: any device may be used. */
unsigned wf_verbs_settings_device_count(const struct wf_verbs_settings *settings);
/* The idx-th of them. */
void wf_verbs_settings_device(const struct wf_verbs_settings *settings, unsigned idx,
			      char out[WF_VERBS_DEVICE_BYTES]);
/* The device's place among those that are named; 0 if none is named; -1: it is not one of them. */
int wf_verbs_settings_find_device(const struct wf_verbs_settings *settings, const char *name);
