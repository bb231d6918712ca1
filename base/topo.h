/* SPDX-License-Identifier: Apache-2.0 */
/* topo: the topology of a machine as needed to place threads, memory and traffic: cores and their
 * hardware threads, NUMA nodes, caches, network and RDMA devices and the node of each.
 *
 * It is read from this machine, from a file that hwloc wrote on another one, or from hwloc's
 * synthetic text. For this machine it has only what this process may use: the cpuset and memory
 * nodes of its cgroup, its affinity mask. Plain data, constant once open. Thread: one opens and
 * closes; any may read. */
#pragma once

#include "base/env.h"
#include "base/numa.h"

#define WF_TOPO_NAME_BYTES 64
#define WF_TOPO_CLOSED_BYTES 256
#define WF_TOPO_PORTS_MAX 4u /* the most ports of one device that are considered */

struct wf_topo_core {
	uint32_t cpu_first; /* its usable hardware threads: topo->cpu[cpu_first ...] */
	uint32_t cpu_count; /* at least 1 */
	uint32_t package;   /* 0-based */
	int numa_node;      /* the system's number; -1: unknown */
};

struct wf_topo_node {
	int numa_node; /* the system's number */
	uint64_t memory_bytes;
	uint64_t available_bytes; /* available bytes: numa.h; 0: another machine, or unknown */
	enum wf_numa_rule rule;   /* how a slab there is bound: numa.h */
	uint64_t huge_page_bytes; /* 0: none reserved */
	uint64_t huge_page_count; /* reserved pages, in use or not */
	uint32_t core_count;      /* usable */
	uint32_t cpu_count;       /* usable */
};

/* All caches of one kind. */
struct wf_topo_cache {
	uint32_t level;
	char kind; /* 'd', 'i' or 'u', unified */
	uint64_t bytes;
	uint32_t count;
	uint32_t core_count; /* cores that share the first one */
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
	int numa_node; /* -1: no node is nearer than others, or unknown */
	char pci[16];  /* "0000:05:00.0"; "": not a PCI device, or unknown */
	char vendor[WF_TOPO_NAME_BYTES];
	uint32_t port_count;                        /* at least 1; a network device has one */
	enum wf_topo_state port[WF_TOPO_PORTS_MAX]; /* port n is port[n - 1] */
	uint32_t port_mbps[WF_TOPO_PORTS_MAX];      /* 0: unknown */
	/* Why this process cannot open it; "": it can, or unknown (another machine). */
	char closed[WF_TOPO_CLOSED_BYTES];
};

/* Whether port `number` (from 1) may carry a lane: its link is not known to be down, and its device
 * can be opened. */
static inline bool
wf_topo_port_is_usable(const struct wf_topo_device *device, uint32_t number)
{
	return device->port[number - 1] != WF_TOPO_DOWN && device->closed[0] == '\0';
}

struct wf_topo_huge_pages {
	/* The kernel's setting for shared memory ("advise", "never"); "": another machine, or
	 * unknown. */
	char word[32];
	bool are_shared; /* slabs get huge pages */
};

struct wf_topo {
	struct wf_env *env;
	bool is_here; /* it is this machine */
	struct wf_topo_huge_pages huge_pages;
	uint32_t quota_cpus; /* quota.h; 0: none, or another machine */
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
	/* The allocated lengths, which may be larger. */
	uint32_t cpu_room, core_room, node_room, cache_room, device_room;
};

/* The source of a description: at most one is set; none: this machine. */
struct wf_topo_source {
	const char *xml;       /* file that hwloc (lstopo, weft topo --save) wrote */
	const char *synthetic; /* "node:2 core:4 pu:2" */
	const char *xml_copy;  /* path of the copy that wf_topo_open made of the file; its own */
};

/* WEFT_DATA: a file that cannot be read, that hwloc cannot read, or one without CPUs; WEFT_INVALID:
 * such a text, or the environment names a file in place of this machine; WEFT_UNSUPPORTED: hwloc
 * cannot read this machine; WEFT_NOMEM. Reading a file may block; a child process then parses it
 * within limits, so that a damaged file does no harm. */
enum weft_status wf_topo_open(struct wf_env *env, const struct wf_topo_source *source,
			      struct wf_topo **out) WEFT_MUST_CHECK;
void wf_topo_close(struct wf_topo *topo); /* accepts NULL */
/* Writes this machine to a file that wf_topo_open can read elsewhere. WEFT_IO: it cannot be
 * written, or a file that is not ours has its name (own_file.h). */
enum weft_status wf_topo_save(const char *path) WEFT_MUST_CHECK;

/* The core that has this CPU; NULL: this process may not use it, or it does not exist. */
const struct wf_topo_core *wf_topo_core_of(const struct wf_topo *topo, uint32_t cpu);
/* Writes the usable CPUs of a node (-1: all) as "0-5,12-17". A longer text is cut. */
void wf_topo_cpu_list(const struct wf_topo *topo, int numa_node, char *out, size_t bytes);
