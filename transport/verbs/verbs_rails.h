/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_rails: in which order the devices of a host serve a lane. Thread: any. */
#pragma once

#include "base/seats.h"
#include "transport/rdma.h"

#define WF_VERBS_CANDIDATES_MAX 64u
#define WF_VERBS_NEAR 10u /* distance within a NUMA node, as the firmware says it */

/* An address that leads to a device. */
struct wf_verbs_candidate {
	struct wf_rdma_address address;
	unsigned place;    /* of the device, among those that were named; 0 where none was */
	unsigned distance; /* from the lane's NUMA node; WF_VERBS_NEAR where nobody knows */
	uint32_t mbps;     /* of the port; 0: not known, or who named the device has weighed it */
	bool active;       /* the port, now */
};

/* Devices by distance, place, speed and name; of those that are equally far and fast lane `lane`
 * begins with the one whose turn it is. Those that are slower than the fastest active one by more
 * than a factor of WF_SEAT_SLOWER stand apart, behind them all, and out->slow says so. Each device
 * (and port) once, then their second addresses, and so on. A pure function; reorders `list`. */
void wf_verbs_rails_order(struct wf_verbs_candidate *list, unsigned count, unsigned lane,
			  struct wf_rdma_addresses *out);
/* Speed and width of a port as InfiniBand codes them; 0: not known. */
uint32_t wf_verbs_rails_mbps(unsigned speed, unsigned width);
/* From NUMA node `node` (-1: any) to the device. */
unsigned wf_verbs_rails_distance(const char *device, int node);
