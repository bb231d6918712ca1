/* SPDX-License-Identifier: Apache-2.0 */
/* topo_internal: devices as hwloc reports them, and what only Linux reports. Thread: any. */
#pragma once

#include <hwloc.h>

#include "base/topo.h"

/* The resources that a child process may use to parse a file. */
struct wf_topo_limits {
	unsigned wall_ms;
	unsigned cpu_s;
};

/* Reads a machine in this process, without the child's protection; a file is read from
 * source->xml_copy. As wf_topo_open. */
enum weft_status wf_topo_read(struct wf_env *env, const struct wf_topo_source *source,
			      struct wf_topo **out) WEFT_MUST_CHECK;
/* Reads source->xml, and parses it in a child process. WEFT_DATA: it cannot be read, or not within
 * the limits; WEFT_NOMEM. */
enum weft_status wf_topo_ask_child(struct wf_env *env, const struct wf_topo_source *source,
				   const struct wf_topo_limits *limits,
				   struct wf_topo **out) WEFT_MUST_CHECK;
/* Fills in topo->device. */
enum weft_status wf_topo_read_devices(struct wf_topo *topo, hwloc_topology_t machine);
/* Devices without hardware (rxe, siw) are not counted by hwloc. Appends those of /sys to `device`,
 * [room], which has `count`; returns the new count. */
uint32_t wf_topo_add_soft_rdma(struct wf_topo_device *device, uint32_t count, uint32_t room);
/* Whether a network device of this machine has a link. */
enum wf_topo_state wf_topo_net_state(const char *name);
