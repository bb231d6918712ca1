/* SPDX-License-Identifier: Apache-2.0 */
/* topo: what a machine is made of, as far as placing threads, memory and traffic goes: cores and
 * their hardware threads, NUMA nodes, caches, network and RDMA devices and the node each is at.
 *
 * It comes from the machine at hand, from a file that hwloc wrote on another one, or from hwloc's
 * synthetic text. Of the machine at hand only what this process may use is there: its cgroup's
 * cpuset and memory nodes, its affinity mask. Plain data, fixed once open. Thread: opened and
 * closed by one; any may read. */
#pragma once

#include "base/env.h"
#include "base/numa.h"

#define WF_TOPO_NAME_BYTES 64
#define WF_TOPO_CLOSED_BYTES 256
#define WF_TOPO_PORTS_MAX 4u /* of one device that are looked at */

struct wf_topo_core {
	uint32_t cpu_first; /* its usable hardware threads: topo->cpu[cpu_first ...] */
	uint32_t cpu_count; /* at least 1 */
	uint32_t package;   /* 0-based */
	int numa_node;      /* the system's number; -1: not known */
};

struct wf_topo_node {
	int numa_node; /* the system's number */
	uint64_t memory_bytes;
	uint64_t available_bytes; /* of them: numa.h; 0: not the machine at hand, or not known */
	enum wf_numa_rule rule;   /* what a slab there gets: numa.h */
	uint64_t huge_page_bytes; /* 0: none reserved */
	uint64_t huge_page_count; /* set aside, in use or not */
	uint32_t core_count;      /* usable */
	uint32_t cpu_count;       /* usable */
};

/* All caches of one kind. */
struct wf_topo_cache {
	uint32_t level;
	char kind; /* 'd', 'i' or 'u', unified */
	uint64_t bytes;
	uint32_t count;
	uint32_t core_count; /* that share one: of the first */
};

enum wf_topo_device_kind {
	WF_TOPO_RDMA,
	WF_TOPO_NET,
};

enum wf_topo_state {
	WF_TOPO_UNKNOWN, /* unknown: treated as usable */
	WF_TOPO_ACTIVE,
	WF_TOPO_DOWN,
};

struct wf_topo_device {
	char name[WF_TOPO_NAME_BYTES]; /* "mlx5_0", "eth0" */
	enum wf_topo_device_kind kind;
	int numa_node; /* -1: none is nearer than others, or nobody knows */
	char pci[16];  /* "0000:05:00.0"; "": no PCI device, or not known */
	char vendor[WF_TOPO_NAME_BYTES];
	uint32_t port_count;                        /* at least 1; a network device has one */
	enum wf_topo_state port[WF_TOPO_PORTS_MAX]; /* port n is port[n - 1] */
	uint32_t port_mbps[WF_TOPO_PORTS_MAX];      /* 0: not known */
	char closed[WF_TOPO_CLOSED_BYTES]; /* why this process cannot open it; "": it can, or
					    * nobody knows (another machine's) */
};

/* Port `number` (from 1) may carry a lane: its link is not known to be down, and its device can be
 * opened. */
static inline bool
wf_topo_port_is_usable(const struct wf_topo_device *device, uint32_t number)
{
	return device->port[number - 1] != WF_TOPO_DOWN && device->closed[0] == '\0';
}

struct wf_topo_huge_pages {
	/* The kernel's word for when shared memory gets them ("advise", "never"); "": not the
	 * machine at hand, or it does not say. */
	char word[32];
	bool are_shared; /* slabs get them */
};

struct wf_topo {
	struct wf_env *env;
	bool is_here; /* the machine at hand */
	struct wf_topo_huge_pages huge_pages;
	uint32_t quota_cpus; /* quota.h; 0: none, or not the machine at hand */
	uint32_t package_count;
	uint32_t *cpu; /* [cpu_count], the system's numbers, those of a core side by side */
	uint32_t cpu_count;
	struct wf_topo_core *core; /* [core_count], neighbours in the machine are neighbours here */
	uint32_t core_count;
	struct wf_topo_node *node; /* [node_count] */
	uint32_t node_count;
	struct wf_topo_cache *cache; /* [cache_count] */
	uint32_t cache_count;
	struct wf_topo_device *device; /* [device_count], RDMA first */
	uint32_t device_count;
	/* What was allocated, which is more. */
	uint32_t cpu_room, core_room, node_room, cache_room, device_room;
};

/* Where a description comes from: at most one is set; none: the machine at hand. */
struct wf_topo_source {
	const char *xml;       /* file that hwloc (lstopo, weft topo --save) wrote */
	const char *synthetic; /* "node:2 core:4 pu:2" */
	const char *xml_copy;  /* path of what was read of the file: wf_topo_open's own */
};

/* WEFT_DATA: a file that cannot be read, that hwloc cannot read, or one without CPUs; WEFT_INVALID:
 * such a text, or the environment names a file in place of the machine at hand; WEFT_UNSUPPORTED:
 * hwloc cannot read this machine; WEFT_NOMEM. A file is read for as long as that takes, and then
 * understood by a child process within limits, so that what is damaged cannot do harm. */
enum weft_status wf_topo_open(struct wf_env *env, const struct wf_topo_source *source,
			      struct wf_topo **out) WEFT_MUST_CHECK;
void wf_topo_close(struct wf_topo *topo); /* accepts NULL */
/* Write the machine at hand to a file that wf_topo_open can read elsewhere. WEFT_IO: it cannot be
 * written, or what has its name is no file of ours (own_file.h). */
enum weft_status wf_topo_save(const char *path) WEFT_MUST_CHECK;

/* The core that has this CPU; NULL: this process may not use it, or there is none. */
const struct wf_topo_core *wf_topo_core_of(const struct wf_topo *topo, uint32_t cpu);
/* The usable CPUs of a node (-1: all) as "0-5,12-17". Cut off where it does not fit. */
void wf_topo_cpu_list(const struct wf_topo *topo, int numa_node, char *out, size_t bytes);
