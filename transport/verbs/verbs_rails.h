/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_rails: in which order the devices of a host serve a lane. Thread: any. */
#pragma once

#include "transport/rdma.h"

#define WF_VERBS_CANDIDATES_MAX 64u
#define WF_VERBS_NEAR 10u /* distance within a NUMA node, as the firmware says it */

/* An address that leads to a device. */
struct wf_verbs_candidate {
	struct wf_rdma_address address;
	unsigned place;    /* of the device, among those that were named; 0 where none was */
	unsigned distance; /* from the lane's NUMA node; WF_VERBS_NEAR where nobody knows */
};

/* Devices by distance, place and name; of those that are equally far lane `lane` begins with the
 * one whose turn it is. Each device (and port) once, then their second addresses, and so on. A pure
 * function; reorders `list`. */
void wf_verbs_rails_order(struct wf_verbs_candidate *list, unsigned count, unsigned lane,
			  struct wf_rdma_addresses *out);
/* From NUMA node `node` (-1: any) to the device. */
unsigned wf_verbs_rails_distance(const char *device, int node);
