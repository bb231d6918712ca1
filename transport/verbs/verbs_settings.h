/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_settings: what a user may say about devices, links and timers, and what is best unless he
 * does. Thread: any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define WF_VERBS_DEVICE_BYTES 64
#define WF_VERBS_DEVICES_BYTES 256  /* of a list of them */
#define WF_VERBS_SEND_QUEUE_MIN 32u /* work requests: two lists of the longest */

enum wf_verbs_choice {
	WF_VERBS_AUTO, /* as the device can */
	WF_VERBS_OFF,  /* as if it could not */
	WF_VERBS_ON,   /* as it says that it can, whatever is known of it */
};

struct wf_verbs_settings {
	char device[WF_VERBS_DEVICES_BYTES]; /* "": any that an address leads to; "a+b": these */
	uint32_t port;                       /* 0: any */
	uint32_t lane;                       /* which of a process: lanes go round the devices */
	int32_t node;                        /* NUMA node of the lane; -1: all devices are near */
	int32_t gid;                         /* index; -1: by address */
	int32_t mtu;                         /* 256 to 4096; -1: of the path */
	int32_t traffic_class;               /* 0 to 255; -1: the system's */
	int32_t service_level;               /* 0 to 15; -1: of the path */
	int32_t pkey;                        /* index; -1: of the path */
	uint32_t ack_timeout;                /* 4.096 us * 2^n until a packet is sent again */
	uint32_t retry_count;                /* times; 7 is for ever on some devices */
	uint32_t rnr_timer;                  /* coded as in InfiniBand; 12: 0.64 ms, 0: 655 ms */
	uint32_t rnr_retry;                  /* times; 7: for ever */
	int32_t vector;                      /* completion vector; -1: by the thread's CPU */
	uint32_t inline_bytes;               /* asked of the device, which may give less */
	uint32_t credits;                    /* messages and notices of a peer not yet taken in */
	uint32_t send_queue;                 /* work requests of a connection */
	uint32_t small_put_bytes;            /* up to here a PUT is one work request */
	enum wf_verbs_choice immediate;      /* OFF: notices are messages, as on iWARP */
	enum wf_verbs_choice window;         /* OFF: a region in a domain of the peer's own */
	enum wf_verbs_choice shared_queue;   /* OFF: a receive queue for each connection */
	enum wf_verbs_choice relaxed;        /* OFF: strict ordering of writes on the bus */
};

/* "device=mlx5_0+mlx5_1,port=1,retry=5"; NULL and "": all as is best. WEFT_INVALID names key, value
 * and what is allowed. */
enum weft_status wf_verbs_settings_parse(const char *text,
					 struct wf_verbs_settings *out) WEFT_MUST_CHECK;
/* How many devices are named; 0: any will do. */
unsigned wf_verbs_settings_device_count(const struct wf_verbs_settings *settings);
/* The idx-th of them. */
void wf_verbs_settings_device(const struct wf_verbs_settings *settings, unsigned idx,
			      char out[WF_VERBS_DEVICE_BYTES]);
/* Its place among them; 0 where none is named; -1: it is not one of them. */
int wf_verbs_settings_find_device(const struct wf_verbs_settings *settings, const char *name);
