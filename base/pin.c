/* SPDX-License-Identifier: Apache-2.0 */
/* pin: which CPU each thread gets, decided once at start. Thread: create and destroy on the main
 * thread; in between nothing changes, so any thread may read. */
#include "base/pin.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/numa.h"
#include "base/quota.h"

#define CPU_MAX 65536u /* the kernel refuses a mask smaller than its own */
#define SHARES_MAX 1024u

struct wf_pin {
	struct wf_env *env;
	struct wf_topo *topo;  /* NULL: pinning is off */
	unsigned place_count;  /* number of threads */
	struct wf_seat seat[]; /* [place_count] */
};

static size_t
pin_bytes(unsigned place_count)
{
	return sizeof(struct wf_pin) + place_count * sizeof(struct wf_seat);
}

/* Reads a number at *at and advances it. Returns false if there is none, or if it is no CPU number.
 */
static bool
read_number(const char **at, uint32_t *out)
{
	const char *start = *at;
	uint32_t number = 0;
	for (; **at >= '0' && **at <= '9'; (*at)++) {
		if (number > 1000000) {
			return false;
		}
		number = number * 10 + (uint32_t)(**at - '0');
	}
	*out = number;
	return *at != start;
}

/* ---- auto ---- */

/* Parses "auto" or "auto:I/N". */
static enum weft_status
read_share(const char *setting, uint32_t *share, uint32_t *shares)
{
	const char *at = setting + strlen("auto");
	*share = 0;
	*shares = 1;
	if (*at == '\0') {
		return WEFT_OK;
	}
	bool good = *at++ == ':' && read_number(&at, share) && *at++ == '/' &&
		    read_number(&at, shares) && *at == '\0';
	if (!good || *shares == 0 || *shares > SHARES_MAX || *share >= *shares) {
		return wf_fail(WEFT_INVALID,
			       "--pin=%.80s: must be auto, or auto:I/N for process I of N on this "
			       "host, with I from 0 to N - 1 and N up to %u",
			       setting, SHARES_MAX);
	}
	return WEFT_OK;
}

static void
log_share(const struct wf_pin *pin, enum wf_seat_share share, uint32_t threads)
{
	const struct wf_topo *topo = pin->topo;
	if (share == WF_SEAT_CPUS) {
		wf_log(pin->env, WF_LOG_INFO,
		       "pin: threads %u cores %u cpus %u, hardware threads of a core are shared "
		       "out",
		       threads, topo->core_count, topo->cpu_count);
	} else if (share == WF_SEAT_NOTHING) {
		wf_log(pin->env, WF_LOG_INFO, "pin: threads %u cpus %u, no thread is pinned",
		       threads, topo->cpu_count);
	}
}

/* Plans for N processes like this one, and keeps the part of this one. */
static enum weft_status
place_auto(struct wf_pin *pin, const char *setting, const struct wf_seat_ask *own)
{
	uint32_t share = 0;
	uint32_t shares = 0;
	enum weft_status st = read_share(setting, &share, &shares);
	if (st != WEFT_OK || pin->place_count == 0) {
		return st;
	}
	struct wf_seat_process all[SHARES_MAX];
	for (uint32_t i = 0; i < shares; i++) {
		all[i] = *own->process;
	}
	struct wf_seat_ask ask = *own;
	ask.process = all;
	ask.process_count = shares;
	uint32_t count = wf_seat_count(&ask);
	struct wf_seat *seat = wf_zalloc_array(pin->env, count, sizeof(*seat));
	if (seat == NULL) {
		return wf_fail(WEFT_NOMEM, "pin: %u seats", count);
	}
	enum wf_seat_share got = WF_SEAT_NOTHING;
	st = wf_seats_plan(pin->topo, &ask, seat, &got);
	if (st == WEFT_OK) {
		memcpy(pin->seat, &seat[share * pin->place_count],
		       pin->place_count * sizeof(*seat));
		log_share(pin, got, count);
	}
	wf_free(pin->env, seat, count * sizeof(*seat));
	return st;
}

/* ---- a list ---- */

/* Reads "3" or "2-5" at *at and advances it. */
static enum weft_status
read_range(const char *setting, const char **at, uint32_t *first, uint32_t *last)
{
	bool good = read_number(at, first);
	*last = *first;
	if (good && **at == '-') {
		(*at)++;
		good = read_number(at, last);
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
refuse_cpu(const struct wf_pin *pin, const char *setting, uint32_t cpu)
{
	char list[128] = "";
	wf_topo_cpu_list(pin->topo, -1, list, sizeof(list));
	return wf_fail(WEFT_INVALID, "--pin=%.80s: this process may not run on cpu %u, only on %s",
		       setting, cpu, list);
}

/* Writes the first `room` CPUs of the list to `cpu`; `*count` may be less. Parses the whole list.
 */
static enum weft_status
read_list(const struct wf_pin *pin, const char *setting, uint32_t *cpu, uint32_t *count)
{
	*count = 0;
	for (const char *at = setting;; at++) {
		uint32_t first = 0;
		uint32_t last = 0;
		enum weft_status st = read_range(setting, &at, &first, &last);
		if (st != WEFT_OK) {
			return st;
		}
		/* Ends at the first CPU that this process may not use, however long the range is.
		 */
		for (uint32_t i = first; i <= last; i++) {
			if (wf_topo_core_of(pin->topo, i) == NULL) {
				return refuse_cpu(pin, setting, i);
			}
			if (*count < pin->place_count) {
				cpu[(*count)++] = i;
			}
		}
		if (*at == '\0') {
			return WEFT_OK;
		}
	}
}

static enum weft_status
place_list(struct wf_pin *pin, const char *setting, const struct wf_seat_ask *ask)
{
	uint32_t count = 0;
	uint32_t *cpu = wf_zalloc_array(pin->env, pin->place_count + 1u, sizeof(*cpu));
	if (cpu == NULL) {
		return wf_fail(WEFT_NOMEM, "pin: %u places", pin->place_count);
	}
	enum weft_status st = read_list(pin, setting, cpu, &count);
	if (st == WEFT_OK && count > 0) {
		st = wf_seats_on(pin->topo, ask, cpu, count, pin->seat);
	}
	wf_free(pin->env, cpu, (pin->place_count + 1u) * sizeof(*cpu));
	return st;
}

/* ---- all of it ---- */

static enum weft_status
place_all(struct wf_pin *pin, const char *setting, const struct wf_seat_ask *ask)
{
	enum weft_status st = wf_topo_open(pin->env, &(struct wf_topo_source){0}, &pin->topo);
	if (st != WEFT_OK) {
		const struct wf_error why = *wf_error_record();
		return wf_fail(st, "--pin=%.80s: %.300s; use --pin=off", setting, why.text);
	}
	bool is_auto =
		strncmp(setting, "auto", 4) == 0 && (setting[4] == '\0' || setting[4] == ':');
	return is_auto ? place_auto(pin, setting, ask) : place_list(pin, setting, ask);
}

enum weft_status
wf_pin_create_for(struct wf_env *env, const char *setting, const struct wf_seat_ask *ask,
		  struct wf_pin **out)
{
	WF_ASSERT(ask->process_count == 1);
	uint32_t count = wf_seat_count(ask);
	struct wf_pin *pin = wf_zalloc(env, pin_bytes(count));
	if (pin == NULL) {
		return wf_fail(WEFT_NOMEM, "pin: %u places", count);
	}
	pin->env = env;
	pin->place_count = count;
	for (uint32_t i = 0; i < count; i++) {
		pin->seat[i] = (struct wf_seat){.cpu = -1, .numa_node = -1, .device = -1};
	}
	if (strcmp(setting, "off") != 0) {
		enum weft_status st = place_all(pin, setting, ask);
		if (st != WEFT_OK) {
			wf_pin_destroy(pin);
			return st;
		}
	}
	*out = pin;
	return WEFT_OK;
}

enum weft_status
wf_pin_create(struct wf_env *env, const char *setting, unsigned thread_count, struct wf_pin **out)
{
	const struct wf_seat_process process = {.compute = thread_count};
	const struct wf_seat_ask ask = {.process = &process, .process_count = 1};
	return wf_pin_create_for(env, setting, &ask, out);
}

void
wf_pin_destroy(struct wf_pin *pin)
{
	if (pin == NULL) {
		return;
	}
	wf_topo_close(pin->topo);
	wf_free(pin->env, pin, pin_bytes(pin->place_count));
}

struct wf_pin_place
wf_pin_place_of(const struct wf_pin *pin, unsigned idx)
{
	WF_ASSERT(idx < pin->place_count);
	const struct wf_seat *seat = &pin->seat[idx];
	return (struct wf_pin_place){
		.cpu = seat->cpu,
		.numa_node = seat->numa_node,
		.device = seat->device >= 0 ? pin->topo->device[seat->device].name : "",
		.port = seat->port,
	};
}

void
wf_pin_describe(const struct wf_pin *pin, unsigned idx, char *out, size_t bytes)
{
	struct wf_pin_place place = wf_pin_place_of(pin, idx);
	char node[48] = "";
	char device[WF_TOPO_NAME_BYTES + 32] = "";
	if (place.cpu < 0) {
		(void)snprintf(out, bytes, "not pinned");
		return;
	}
	if (place.numa_node >= 0) {
		enum wf_numa_rule rule = wf_numa_rule(place.numa_node, 0);
		(void)snprintf(node, sizeof(node), ", node %d (memory %s)", place.numa_node,
			       wf_numa_rule_name(rule));
	}
	if (place.device[0] != '\0') {
		(void)snprintf(device, sizeof(device), ", device %s port %u", place.device,
			       place.port);
	}
	(void)snprintf(out, bytes, "cpu %d%s%s", place.cpu, node, device);
}

enum weft_status
wf_pin_self(const struct wf_pin *pin, unsigned idx)
{
	struct wf_pin_place place = wf_pin_place_of(pin, idx);
	if (place.cpu < 0) {
		return WEFT_OK;
	}
	cpu_set_t set[CPU_MAX / CPU_SETSIZE];
	memset(set, 0, sizeof(set));
	CPU_SET_S((unsigned)place.cpu, sizeof(set), set);
	if (sched_setaffinity(0, sizeof(set), set) != 0) { /* 0: this thread */
		return wf_fail_errno(WEFT_PERM, errno, "pin: thread %u to cpu %d; use --pin=off",
				     idx, place.cpu);
	}
	return WEFT_OK;
}

int
wf_pin_own_cpu(void)
{
	cpu_set_t set[CPU_MAX / CPU_SETSIZE];
	memset(set, 0, sizeof(set));
	if (sched_getaffinity(0, sizeof(set), set) != 0 || CPU_COUNT_S(sizeof(set), set) != 1) {
		return -1;
	}
	int cpu = 0;
	while (!CPU_ISSET_S((unsigned)cpu, sizeof(set), set)) {
		cpu++;
	}
	return cpu;
}

unsigned
wf_pin_cpu_count(void)
{
	cpu_set_t set[CPU_MAX / CPU_SETSIZE];
	memset(set, 0, sizeof(set));
	if (sched_getaffinity(0, sizeof(set), set) != 0) {
		return 1;
	}
	int count = CPU_COUNT_S(sizeof(set), set);
	uint32_t quota = wf_quota_cpus();
	if (quota > 0 && quota < (uint32_t)count) {
		return quota;
	}
	return count < 1 ? 1 : (unsigned)count;
}
