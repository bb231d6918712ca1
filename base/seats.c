/* SPDX-License-Identifier: Apache-2.0 */
/* seats: see seats.h. Thread: any. */
#include "base/seats.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

/* The CPUs of one node, in the order in which they are assigned. */
struct pool {
	int numa_node; /* -1: cores whose node is unknown */
	uint32_t *cpu; /* [count], the first hardware threads of its cores before others */
	uint32_t count, core_count, taken;
};

struct port {
	int device;
	uint32_t number; /* 0: any */
	int numa_node;
};

struct plan {
	const struct wf_topo *topo;
	const struct wf_seat_ask *ask;
	struct pool *pool; /* [pool_count] */
	uint32_t pool_count;
	uint32_t *cpu;     /* memory of the pools, [topo->cpu_count] */
	struct port *port; /* [port_count] */
	uint32_t port_count;
	uint32_t next_port; /* the port whose turn it is */
	enum wf_seat_share share;
};

static uint32_t
threads_of(const struct wf_seat_process *process)
{
	return process->dense + process->sparse + process->compute + process->progress;
}

uint32_t
wf_seat_count(const struct wf_seat_ask *ask)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < ask->process_count; i++) {
		count += threads_of(&ask->process[i]);
	}
	return count;
}

const char *
wf_seat_role_name(enum wf_seat_role role)
{
	switch (role) {
	case WF_SEAT_DENSE:
		return "dense lane";
	case WF_SEAT_SPARSE:
		return "sparse lane";
	case WF_SEAT_COMPUTE:
		return "compute thread";
	case WF_SEAT_PROGRESS:
		return "progress thread";
	}
	return "?";
}

/* ---- devices ---- */

static uint32_t
port_room(const struct wf_topo *topo)
{
	return (topo->device_count + 1) * WF_TOPO_PORTS_MAX;
}

/* The speed of the fastest port that may be used. */
static uint32_t
fastest_mbps(const struct wf_topo *topo)
{
	uint32_t fastest = 0;
	for (uint32_t i = 0; i < topo->device_count; i++) {
		const struct wf_topo_device *device = &topo->device[i];
		for (uint32_t p = 0; p < device->port_count; p++) {
			if (wf_topo_port_is_usable(device, p + 1) &&
			    device->port_mbps[p] > fastest) {
				fastest = device->port_mbps[p];
			}
		}
	}
	return fastest;
}

/* Adds ports, except those below `slow_mbps`, which would delay evenly divided data. */
static void
add_ports(struct plan *plan, uint32_t idx, uint32_t only, uint32_t slow_mbps)
{
	const struct wf_topo_device *device = &plan->topo->device[idx];
	for (uint32_t number = 1; number <= device->port_count; number++) {
		uint32_t mbps = device->port_mbps[number - 1];
		bool is_slow = mbps > 0 && mbps < slow_mbps;
		bool is_wanted = only == number ||
				 (only == 0 && wf_topo_port_is_usable(device, number) && !is_slow);
		if (is_wanted) {
			plan->port[plan->port_count++] =
				(struct port){(int)idx, number, device->numa_node};
		}
	}
}

static enum weft_status
refuse_device(const struct wf_topo *topo, const char *name, int bytes)
{
	char have[256] = "";
	size_t used = 0;
	for (uint32_t i = 0; i < topo->device_count && used < sizeof(have) - 1; i++) {
		int wrote = snprintf(have + used, sizeof(have) - used, " %s", topo->device[i].name);
		used += wrote > 0 ? (size_t)wrote : 0;
	}
	return wf_fail(WEFT_INVALID, "device %.*s is not in this machine, which has%s", bytes, name,
		       have[0] != '\0' ? have : " none");
}

static int
find_device(const struct wf_topo *topo, const char *name, size_t bytes)
{
	for (uint32_t i = 0; i < topo->device_count; i++) {
		const char *have = topo->device[i].name;
		if (strlen(have) == bytes && memcmp(have, name, bytes) == 0) {
			return (int)i;
		}
	}
	return -1;
}

/* "mlx5_0+mlx5_1": turns are taken in this order. */
static enum weft_status
add_named_devices(struct plan *plan)
{
	const struct wf_topo *topo = plan->topo;
	for (const char *at = plan->ask->device; at != NULL;) {
		size_t bytes = strcspn(at, "+");
		int idx = find_device(topo, at, bytes);
		if (idx < 0) {
			return refuse_device(topo, at, (int)(bytes < 64 ? bytes : 64));
		}
		if (plan->port_count + WF_TOPO_PORTS_MAX < port_room(topo)) {
			add_ports(plan, (uint32_t)idx, plan->ask->port, 0);
		}
		at = at[bytes] == '+' ? at + bytes + 1 : NULL;
	}
	return WEFT_OK;
}

/* Threads take no turns on network devices: addresses decide which one carries. But if all usable
 * ones are at one node, lanes should be there. */
static void
prefer_net_node(struct plan *plan)
{
	const struct wf_topo *topo = plan->topo;
	int first = -1;
	for (uint32_t i = 0; i < topo->device_count; i++) {
		const struct wf_topo_device *device = &topo->device[i];
		if (device->kind != WF_TOPO_NET || device->port[0] == WF_TOPO_DOWN) {
			continue;
		}
		if (device->numa_node < 0 ||
		    (first >= 0 && topo->device[first].numa_node != device->numa_node)) {
			return;
		}
		first = first < 0 ? (int)i : first;
	}
	if (first >= 0) {
		plan->port[plan->port_count++] =
			(struct port){-1, 0, topo->device[first].numa_node};
	}
}

static enum weft_status
collect_ports(struct plan *plan)
{
	const struct wf_topo *topo = plan->topo;
	uint32_t room = port_room(topo);
	plan->port = wf_zalloc_array(topo->env, room, sizeof(*plan->port));
	if (plan->port == NULL) {
		return wf_fail(WEFT_NOMEM, "seats: %u ports", room);
	}
	if (plan->ask->device != NULL) {
		return add_named_devices(plan);
	}
	for (uint32_t i = 0; i < topo->device_count; i++) {
		if (topo->device[i].kind == WF_TOPO_RDMA) {
			add_ports(plan, i, 0, fastest_mbps(topo) / WF_SEAT_SLOWER);
		}
	}
	if (plan->port_count == 0) {
		prefer_net_node(plan);
	}
	return WEFT_OK;
}

static struct port
next_port(struct plan *plan)
{
	if (plan->port_count == 0) {
		return (struct port){-1, 0, -1};
	}
	return plan->port[plan->next_port++ % plan->port_count];
}

/* ---- CPUs ---- */

static struct pool *
pool_of(struct plan *plan, int numa_node)
{
	for (uint32_t i = 0; i < plan->pool_count; i++) {
		if (plan->pool[i].numa_node == numa_node) {
			return &plan->pool[i];
		}
	}
	return NULL;
}

/* Nodes with cores, in the machine's order; each with room for all its CPUs. */
static void
open_pools(struct plan *plan)
{
	const struct wf_topo *topo = plan->topo;
	for (uint32_t i = 0; i < topo->core_count; i++) {
		struct pool *pool = pool_of(plan, topo->core[i].numa_node);
		if (pool == NULL) {
			pool = &plan->pool[plan->pool_count++];
			pool->numa_node = topo->core[i].numa_node;
		}
		pool->count += topo->core[i].cpu_count;
	}
	uint32_t used = 0;
	for (uint32_t i = 0; i < plan->pool_count; i++) {
		plan->pool[i].cpu = &plan->cpu[used];
		used += plan->pool[i].count;
		plan->pool[i].count = 0;
	}
	WF_ASSERT(used <= topo->cpu_count);
}

/* The first hardware thread of each core, then, if cores are shared, their second ones. */
static void
fill_pools(struct plan *plan)
{
	const struct wf_topo *topo = plan->topo;
	uint32_t left = plan->share == WF_SEAT_CORES ? topo->core_count : topo->cpu_count;
	for (uint32_t sibling = 0; left > 0; sibling++) {
		for (uint32_t i = 0; i < topo->core_count; i++) {
			const struct wf_topo_core *core = &topo->core[i];
			if (sibling < core->cpu_count && left > 0) {
				struct pool *pool = pool_of(plan, core->numa_node);
				WF_ASSERT(pool != NULL);
				pool->cpu[pool->count++] = topo->cpu[core->cpu_first + sibling];
				pool->core_count += sibling == 0 ? 1 : 0;
				left--;
			}
		}
	}
}

static enum weft_status
collect_cpus(struct plan *plan)
{
	const struct wf_topo *topo = plan->topo;
	uint32_t threads = wf_seat_count(plan->ask);
	plan->pool = wf_zalloc_array(topo->env, topo->core_count, sizeof(*plan->pool));
	plan->cpu = wf_zalloc_array(topo->env, topo->cpu_count, sizeof(*plan->cpu));
	if (plan->pool == NULL || plan->cpu == NULL) {
		return wf_fail(WEFT_NOMEM, "seats: %u CPUs", topo->cpu_count);
	}
	plan->share = threads <= topo->core_count  ? WF_SEAT_CORES
		      : threads <= topo->cpu_count ? WF_SEAT_CPUS
						   : WF_SEAT_NOTHING;
	if (plan->share != WF_SEAT_NOTHING) {
		open_pools(plan);
		fill_pools(plan);
	}
	return WEFT_OK;
}

static uint32_t
cores_in(const struct pool *pool)
{
	return pool->taken < pool->core_count ? pool->core_count - pool->taken : 0;
}

/* As long as a core is free anywhere, only free cores count as room. */
static uint32_t
room_in(const struct plan *plan, const struct pool *pool)
{
	for (uint32_t i = 0; i < plan->pool_count; i++) {
		if (cores_in(&plan->pool[i]) > 0) {
			return cores_in(pool);
		}
	}
	return pool->count - pool->taken;
}

static struct pool *
roomiest(struct plan *plan)
{
	struct pool *best = &plan->pool[0];
	for (uint32_t i = 1; i < plan->pool_count; i++) {
		if (room_in(plan, &plan->pool[i]) > room_in(plan, best)) {
			best = &plan->pool[i];
		}
	}
	return best;
}

/* Chooses the node for `threads` that belong together: one that holds all of them if there is one.
 * NULL: no thread is bound. */
static struct pool *
choose_pool(struct plan *plan, int numa_node, uint32_t threads)
{
	if (plan->share == WF_SEAT_NOTHING) {
		return NULL;
	}
	struct pool *wanted = numa_node >= 0 ? pool_of(plan, numa_node) : NULL;
	if (wanted != NULL && room_in(plan, wanted) >= threads) {
		return wanted;
	}
	struct pool *best = roomiest(plan);
	if (room_in(plan, best) >= threads || wanted == NULL || room_in(plan, wanted) == 0) {
		return best;
	}
	return wanted;
}

static void
sit_down(struct plan *plan, struct wf_seat *seat, struct pool *pool)
{
	if (pool == NULL) {
		return;
	}
	if (room_in(plan, pool) == 0) {
		pool = roomiest(plan);
	}
	WF_ASSERT(room_in(plan, pool) > 0); /* there are as many CPUs as threads */
	seat->cpu = (int)pool->cpu[pool->taken++];
	seat->numa_node = pool->numa_node;
}

/* ---- processes ---- */

static bool
has_port_at(const struct plan *plan, int numa_node)
{
	for (uint32_t i = 0; i < plan->port_count; i++) {
		if (plan->port[i].numa_node == numa_node) {
			return true;
		}
	}
	return false;
}

/* The next port in turn that is at this node; otherwise the next one. */
static struct port
next_port_at(struct plan *plan, int numa_node)
{
	for (uint32_t i = 0; i < plan->port_count; i++) {
		struct port port = plan->port[(plan->next_port + i) % plan->port_count];
		if (port.numa_node == numa_node) {
			plan->next_port += i + 1;
			return port;
		}
	}
	return next_port(plan);
}

/* Sets the port for the thread's traffic: the one whose turn it was, unless the thread had to be
 * placed at another node that has a port. */
static void
attach(struct plan *plan, struct wf_seat *seat, struct port port)
{
	bool is_far =
		port.numa_node >= 0 && seat->numa_node >= 0 && port.numa_node != seat->numa_node;
	if (is_far && has_port_at(plan, seat->numa_node)) {
		port = next_port_at(plan, seat->numa_node);
	}
	seat->device = port.device;
	seat->port = port.number;
}

static void
sit_lane(struct plan *plan, struct wf_seat *seat)
{
	struct port port = next_port(plan);
	sit_down(plan, seat, choose_pool(plan, port.numa_node, 1));
	attach(plan, seat, port);
}

/* Places one trainer's seats; compute threads come first, as everywhere. */
static void
sit_trainer(struct plan *plan, const struct wf_seat_process *process, struct wf_seat *seat)
{
	uint32_t threads = process->compute + process->progress;
	struct port port = next_port(plan);
	struct pool *pool = choose_pool(plan, port.numa_node, threads);
	for (uint32_t i = 0; i < process->progress; i++) {
		struct wf_seat *mover = &seat[process->compute + i];
		sit_down(plan, mover, pool);
		attach(plan, mover, port);
	}
	for (uint32_t i = 0; i < process->compute; i++) {
		sit_down(plan, &seat[i], pool);
	}
}

static struct wf_seat *
name_seats(struct wf_seat *seat, uint32_t process, enum wf_seat_role role, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		*seat++ = (struct wf_seat){.role = role,
					   .process = process,
					   .idx = i,
					   .cpu = -1,
					   .numa_node = -1,
					   .device = -1};
	}
	return seat;
}

static void
name_all(const struct wf_seat_ask *ask, struct wf_seat *seat)
{
	for (uint32_t i = 0; i < ask->process_count; i++) {
		const struct wf_seat_process *process = &ask->process[i];
		seat = name_seats(seat, i, WF_SEAT_DENSE, process->dense);
		seat = name_seats(seat, i, WF_SEAT_SPARSE, process->sparse);
		seat = name_seats(seat, i, WF_SEAT_COMPUTE, process->compute);
		seat = name_seats(seat, i, WF_SEAT_PROGRESS, process->progress);
	}
}

/* Places the lanes of all processes first, because each serves every trainer. */
static void
sit_all(struct plan *plan, struct wf_seat *seat)
{
	const struct wf_seat_ask *ask = plan->ask;
	uint32_t count = wf_seat_count(ask);
	for (uint32_t i = 0; i < count; i++) {
		if (seat[i].role == WF_SEAT_DENSE || seat[i].role == WF_SEAT_SPARSE) {
			sit_lane(plan, &seat[i]);
		}
	}
	for (uint32_t i = 0; i < ask->process_count; i++) {
		const struct wf_seat_process *process = &ask->process[i];
		if (process->compute + process->progress > 0) {
			sit_trainer(plan, process, seat + process->dense + process->sparse);
		}
		seat += threads_of(process);
	}
}

static void
release(struct plan *plan)
{
	const struct wf_topo *topo = plan->topo;
	wf_free(topo->env, plan->port, port_room(topo) * sizeof(*plan->port));
	wf_free(topo->env, plan->pool, topo->core_count * sizeof(*plan->pool));
	wf_free(topo->env, plan->cpu, topo->cpu_count * sizeof(*plan->cpu));
}

enum weft_status
wf_seats_plan(const struct wf_topo *topo, const struct wf_seat_ask *ask, struct wf_seat *seat,
	      enum wf_seat_share *share)
{
	struct plan plan = {.topo = topo, .ask = ask};
	enum weft_status st = collect_ports(&plan);
	if (st == WEFT_OK) {
		st = collect_cpus(&plan);
	}
	if (st == WEFT_OK) {
		name_all(ask, seat);
		sit_all(&plan, seat);
		*share = plan.share;
	}
	release(&plan);
	return st;
}

enum weft_status
wf_seats_on(const struct wf_topo *topo, const struct wf_seat_ask *ask, const uint32_t *cpu,
	    uint32_t cpu_count, struct wf_seat *seat)
{
	struct plan plan = {.topo = topo, .ask = ask};
	WF_ASSERT(cpu_count > 0);
	enum weft_status st = collect_ports(&plan);
	if (st != WEFT_OK) {
		release(&plan);
		return st;
	}
	name_all(ask, seat);
	for (uint32_t p = 0; p < ask->process_count; p++) {
		uint32_t threads = threads_of(&ask->process[p]);
		for (uint32_t i = 0; i < threads; i++, seat++) {
			const struct wf_topo_core *core = wf_topo_core_of(topo, cpu[i % cpu_count]);
			WF_ASSERT(core != NULL);
			seat->cpu = (int)cpu[i % cpu_count];
			seat->numa_node = core->numa_node;
			if (seat->role != WF_SEAT_COMPUTE) {
				struct port port = next_port_at(&plan, seat->numa_node);
				seat->device = port.device;
				seat->port = port.number;
			}
		}
	}
	release(&plan);
	return WEFT_OK;
}
