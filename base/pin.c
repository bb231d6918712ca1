/* SPDX-License-Identifier: Apache-2.0 */
/* pin: which CPU each thread gets, decided once at start. Thread: create and destroy on the main
 * thread; in between nothing changes, so any thread may ask. */
#include "base/pin.h"

#include <errno.h>
#include <hwloc.h>
#include <sched.h>
#include <string.h>

#include "base/assert.h"

struct wf_pin {
	struct wf_env *env;
	hwloc_topology_t topology;   /* NULL: pinning is off */
	unsigned place_count;        /* threads that will ask */
	struct wf_pin_place place[]; /* [place_count] */
};

static size_t
pin_bytes(unsigned place_count)
{
	return sizeof(struct wf_pin) + place_count * sizeof(struct wf_pin_place);
}

static int
node_of(hwloc_topology_t topology, hwloc_const_bitmap_t set)
{
	hwloc_obj_t node =
		hwloc_get_next_obj_covering_cpuset_by_type(topology, set, HWLOC_OBJ_NUMANODE, NULL);
	return node == NULL ? -1 : (int)node->os_index;
}

static void
set_place(struct wf_pin *pin, unsigned idx, unsigned cpu, hwloc_bitmap_t scratch)
{
	WF_ASSERT(idx < pin->place_count);
	(void)hwloc_bitmap_only(scratch, cpu);
	pin->place[idx] = (struct wf_pin_place){.cpu = (int)cpu,
						.numa_node = node_of(pin->topology, scratch)};
}

static void
unpin_all(struct wf_pin *pin)
{
	for (unsigned i = 0; i < pin->place_count; i++) {
		pin->place[i] = (struct wf_pin_place){.cpu = -1, .numa_node = -1};
	}
}

/* hwloc numbers cores along the tree of the machine, so those of one node are neighbours. */
static enum weft_status
place_auto(struct wf_pin *pin, hwloc_const_bitmap_t allowed, hwloc_bitmap_t scratch)
{
	unsigned found = 0;
	hwloc_obj_type_t type = HWLOC_OBJ_CORE;
	if (hwloc_get_nbobjs_by_type(pin->topology, type) <= 0) {
		type = HWLOC_OBJ_PU; /* some virtual machines tell of no cores */
	}
	hwloc_obj_t core = NULL;
	while ((core = hwloc_get_next_obj_by_type(pin->topology, type, core)) != NULL) {
		(void)hwloc_bitmap_and(scratch, core->cpuset, allowed);
		int cpu = hwloc_bitmap_first(scratch);
		if (cpu < 0) {
			continue;
		}
		if (found < pin->place_count) {
			set_place(pin, found, (unsigned)cpu, scratch);
		}
		found++;
	}
	if (found < pin->place_count) {
		wf_log(pin->env, WF_LOG_INFO, "pin: threads %u cores %u, nobody is pinned",
		       pin->place_count, found);
		unpin_all(pin);
	}
	return WEFT_OK;
}

/* Digits at *at, moved behind them; false: none, or a number that is no CPU's. */
static bool
read_cpu(const char **at, unsigned *out)
{
	const char *start = *at;
	unsigned cpu = 0;
	for (; **at >= '0' && **at <= '9'; (*at)++) {
		if (cpu > 1000000) {
			return false;
		}
		cpu = cpu * 10 + (unsigned)(**at - '0');
	}
	*out = cpu;
	return *at != start;
}

/* "3" or "2-5" at *at, moved behind it. */
static enum weft_status
read_range(const char *setting, const char **at, unsigned *first, unsigned *last)
{
	bool good = read_cpu(at, first);
	*last = *first;
	if (good && **at == '-') {
		(*at)++;
		good = read_cpu(at, last);
	}
	if (!good || (**at != ',' && **at != '\0')) {
		return wf_fail(WEFT_INVALID,
			       "--pin=%.80s: must be auto, off or a CPU list like 0,2-5", setting);
	}
	if (*last < *first) {
		return wf_fail(WEFT_INVALID,
			       "--pin=%.80s: the range %u-%u runs backwards; write %u-%u", setting,
			       *first, *last, *last, *first);
	}
	return WEFT_OK;
}

static enum weft_status
refuse_cpu(const char *setting, unsigned cpu, hwloc_const_bitmap_t allowed)
{
	char list[128] = "";
	(void)hwloc_bitmap_list_snprintf(list, sizeof(list), allowed);
	return wf_fail(WEFT_INVALID, "--pin=%.80s: this process may not run on cpu %u, only on %s",
		       setting, cpu, list);
}

static enum weft_status
place_list(struct wf_pin *pin, const char *setting, hwloc_const_bitmap_t allowed,
	   hwloc_bitmap_t scratch)
{
	unsigned found = 0;
	for (const char *at = setting;; at++) {
		unsigned first = 0;
		unsigned last = 0;
		enum weft_status st = read_range(setting, &at, &first, &last);
		if (st != WEFT_OK) {
			return st;
		}
		/* Ends at the first CPU that is not ours, however far the range goes. */
		for (unsigned cpu = first; cpu <= last; cpu++) {
			if (!hwloc_bitmap_isset(allowed, cpu)) {
				return refuse_cpu(setting, cpu, allowed);
			}
			if (found < pin->place_count) {
				set_place(pin, found, cpu, scratch);
			}
			found++;
		}
		if (*at == '\0') {
			break;
		}
	}
	for (unsigned i = found; i < pin->place_count; i++) {
		pin->place[i] = pin->place[i % found];
	}
	return WEFT_OK;
}

static enum weft_status
open_topology(struct wf_pin *pin)
{
	if (hwloc_topology_init(&pin->topology) != 0) {
		pin->topology = NULL;
		return wf_fail_errno(WEFT_NOMEM, errno, "pin: hwloc topology");
	}
	if (hwloc_topology_load(pin->topology) != 0) {
		return wf_fail_errno(WEFT_UNSUPPORTED, errno,
				     "pin: hwloc cannot read this machine; use --pin=off");
	}
	return WEFT_OK;
}

static enum weft_status
place_all(struct wf_pin *pin, const char *setting)
{
	enum weft_status st = open_topology(pin);
	if (st != WEFT_OK) {
		return st;
	}
	hwloc_bitmap_t allowed = hwloc_bitmap_alloc();
	hwloc_bitmap_t scratch = hwloc_bitmap_alloc();
	if (allowed == NULL || scratch == NULL) {
		st = wf_fail(WEFT_NOMEM, "pin: cpu sets");
	} else if (hwloc_get_cpubind(pin->topology, allowed, HWLOC_CPUBIND_THREAD) != 0) {
		st = wf_fail_errno(WEFT_UNSUPPORTED, errno,
				   "pin: this process's cpus cannot be read; use --pin=off");
	} else if (strcmp(setting, "auto") == 0) {
		st = place_auto(pin, allowed, scratch);
	} else {
		st = place_list(pin, setting, allowed, scratch);
	}
	hwloc_bitmap_free(allowed);
	hwloc_bitmap_free(scratch);
	return st;
}

enum weft_status
wf_pin_create(struct wf_env *env, const char *setting, unsigned thread_count, struct wf_pin **out)
{
	struct wf_pin *pin = wf_zalloc(env, pin_bytes(thread_count));
	if (pin == NULL) {
		return wf_fail(WEFT_NOMEM, "pin: %u places", thread_count);
	}
	pin->env = env;
	pin->place_count = thread_count;
	unpin_all(pin);
	if (strcmp(setting, "off") != 0) {
		enum weft_status st = place_all(pin, setting);
		if (st != WEFT_OK) {
			wf_pin_destroy(pin);
			return st;
		}
	}
	*out = pin;
	return WEFT_OK;
}

void
wf_pin_destroy(struct wf_pin *pin)
{
	if (pin == NULL) {
		return;
	}
	if (pin->topology != NULL) {
		hwloc_topology_destroy(pin->topology);
	}
	wf_free(pin->env, pin, pin_bytes(pin->place_count));
}

struct wf_pin_place
wf_pin_place_of(const struct wf_pin *pin, unsigned idx)
{
	WF_ASSERT(idx < pin->place_count);
	return pin->place[idx];
}

enum weft_status
wf_pin_self(const struct wf_pin *pin, unsigned idx)
{
	struct wf_pin_place place = wf_pin_place_of(pin, idx);
	if (place.cpu < 0) {
		return WEFT_OK;
	}
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	if (set == NULL) {
		return wf_fail(WEFT_NOMEM, "pin: cpu set");
	}
	(void)hwloc_bitmap_only(set, (unsigned)place.cpu);
	enum weft_status st = WEFT_OK;
	if (hwloc_set_cpubind(pin->topology, set, HWLOC_CPUBIND_THREAD) != 0) {
		st = wf_fail_errno(WEFT_PERM, errno, "pin: thread %u to cpu %d; use --pin=off", idx,
				   place.cpu);
	}
	hwloc_bitmap_free(set);
	return st;
}

unsigned
wf_pin_cpu_count(void)
{
	/* Room for 65,536 CPUs: the kernel refuses a mask smaller than its own. */
	cpu_set_t set[65536 / CPU_SETSIZE];
	memset(set, 0, sizeof(set));
	if (sched_getaffinity(0, sizeof(set), set) != 0) {
		return 1;
	}
	int count = CPU_COUNT_S(sizeof(set), set);
	return count < 1 ? 1 : (unsigned)count;
}
