/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_rails: the order in which the devices of a host serve a lane. Thread: any. */
#pragma once

#include "base/seats.h"
#include "transport/rdma.h"

#define WF_VERBS_CANDIDATES_MAX 64u
#define WF_VERBS_NEAR 10u /* distance within a NUMA node, as firmware reports it */

/* An address that leads to a device. */
struct wf_verbs_candidate {
	struct wf_rdma_address address;
	unsigned place;    /* the device's place in the list of the settings; 0 if they name none */
	unsigned distance; /* from the lane's NUMA node; WF_VERBS_NEAR if unknown */
	/* Speed of the port; 0: unknown, or not weighed because the settings name the device. */
	uint32_t mbps;
	bool active; /* the port is active now */
};

/* Orders devices by distance, place, speed and name; among those that are equally far and fast the
 * lanes take turns. Devices that are slower than the fastest active one by more than a factor of
 * WF_SEAT_SLOWER come apart, behind all others, and are reported in out->slow. Each device (and
 * port) is listed once, then their second addresses, and so on. A pure function, except that it
 * reorders `list`. */
void wf_verbs_rails_order(struct wf_verbs_candidate *list, unsigned count, unsigned lane,
			  struct wf_rdma_addresses *out);
/* Mbit/s of a port, from speed and width as InfiniBand encodes them; 0: unknown. */
uint32_t wf_verbs_rails_mbps(unsigned speed, unsigned width);
/* The distance from NUMA node `node` (-1: any) to the device. */
unsigned wf_verbs_rails_distance(const char *device, int node);
