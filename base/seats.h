/* SPDX-License-Identifier: Apache-2.0 */
/* seats: the CPU, memory node, device and port of each lane and each thread of a trainer.
 *
 * A pure function of the machine (topo) and of the processes on it: the same at every call, on
 * every host. Rules:
 * 1. If there are as many cores as threads, each thread gets a core. Otherwise, if there are as
 *    many hardware threads, each gets one, and cores are shared only when all are in use. Otherwise
 *    no thread is bound.
 * 2. Traffic: lanes, and then progress threads, are assigned the ports of RDMA devices in turn; a
 *    thread that has to be at another node is assigned the ports there. Ports that are down are
 *    left out, and so are those slower than the fastest by more than a factor of WF_SEAT_SLOWER.
 *    Without RDMA devices, network devices count only if all that are up are at one node.
 * 3. A lane is placed at the node of its device while there is room, otherwise at the node with the
 *    most room. Without devices lanes are therefore spread over the nodes and their memory.
 * 4. The threads of a trainer are placed at one node: its device's if there is room for all of
 *    them, otherwise the one with the most room. If no node has room for all, they are spread, the
 *    progress thread first.
 * 5. Memory is at the node of the CPU.
 * Thread: any. */
#pragma once

#include "base/topo.h"

#define WF_SEAT_SLOWER 4u

enum wf_seat_role {
	WF_SEAT_DENSE,    /* a lane of dense parameters */
	WF_SEAT_SPARSE,   /* a lane of sparse tables */
	WF_SEAT_COMPUTE,  /* a compute thread of a trainer */
	WF_SEAT_PROGRESS, /* the progress thread of a trainer, which transfers data */
};

/* The number of threads of one process in each role. */
struct wf_seat_process {
	uint32_t dense, sparse, compute, progress;
};

struct wf_seat {
	enum wf_seat_role role;
	uint32_t process;
	uint32_t idx;  /* among the process's threads of this role */
	int cpu;       /* the system's number; -1: not bound */
	int numa_node; /* of the CPU and of the thread's memory; -1: any */
	int device;    /* topo->device[device] carries its traffic, or is preferred; -1: any */
	uint32_t port; /* of that device, from 1; 0: any */
};

struct wf_seat_ask {
	const struct wf_seat_process *process; /* [process_count] */
	uint32_t process_count;
	const char *device; /* the only devices to use, "mlx5_0+mlx5_1"; NULL: all */
	uint32_t port;      /* the only port of them to use; 0: any */
};

enum wf_seat_share {
	WF_SEAT_CORES,   /* a core for each thread */
	WF_SEAT_CPUS,    /* a hardware thread for each, cores are shared */
	WF_SEAT_NOTHING, /* more threads than CPUs: no thread is bound */
};

/* The number of seats. */
uint32_t wf_seat_count(const struct wf_seat_ask *ask);
/* Fill in `seat`, [wf_seat_count]: process by process; dense, sparse, compute, progress; by idx.
 * WEFT_INVALID: the machine has no such device; it names those it has. WEFT_NOMEM. */
enum weft_status wf_seats_plan(const struct wf_topo *topo, const struct wf_seat_ask *ask,
			       struct wf_seat *seat, enum wf_seat_share *share) WEFT_MUST_CHECK;
/* The same for CPUs that the user chose: the i-th seat of a process gets cpu[i % cpu_count], which
 * topo has. Lanes and progress threads take turns on the ports at their own node, or, where there
 * is none, on all. */
enum weft_status wf_seats_on(const struct wf_topo *topo, const struct wf_seat_ask *ask,
			     const uint32_t *cpu, uint32_t cpu_count,
			     struct wf_seat *seat) WEFT_MUST_CHECK;
/* "dense lane", "compute thread" */
const char *wf_seat_role_name(enum wf_seat_role role);
