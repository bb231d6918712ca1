/* SPDX-License-Identifier: Apache-2.0 */
/* check_machine: CPUs, time and memory nodes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/pin.h"
#include "base/quota.h"
#include "tools/doctor/doctor_internal.h"

#define STAT_BYTES 512u
#define STEAL_PERCENT 5u
#define OK (&(struct wf_doctor_about){.level = WF_DOCTOR_OK})
#define NOTE (&(struct wf_doctor_about){.level = WF_DOCTOR_NOTE})

void
wf_doctor_check_kernel(const struct wf_doctor *doctor)
{
	char release[128];
	if (wf_doctor_line(doctor, release, sizeof(release), "/proc/sys/kernel/osrelease")) {
		wf_doctor_add(doctor, OK, "Linux %s", release);
		return;
	}
	wf_doctor_add(doctor,
		      &(struct wf_doctor_about){
			      .level = WF_DOCTOR_FINDING,
			      .remedy = "mount /proc and /sys, so that the checks can read them"},
		      "/proc cannot be read, so most checks find nothing");
}

void
wf_doctor_check_clock(const struct wf_doctor *doctor)
{
	static const char *const slow[] = {"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"};
	char name[64];
	if (!wf_doctor_line(doctor, name, sizeof(name),
			    "/sys/devices/system/clocksource/clocksource0/current_clocksource")) {
		wf_doctor_add(doctor, NOTE, "the clock source is unknown");
		return;
	}
	for (size_t i = 0; i < WF_ARRAY_COUNT(slow); i++) {
		if (strcmp(name, slow[i]) == 0) {
			wf_doctor_add(doctor,
				      &(struct wf_doctor_about){
					      .level = WF_DOCTOR_FINDING,
					      .remedy =
						      "use the processor's counter: see "
						      "available_clocksource beside it, and "
						      "boot with clocksource=tsc if it is listed"},
				      "the clock source is %s: each reading of the time takes a "
				      "system call",
				      name);
			return;
		}
	}
	wf_doctor_add(doctor, OK, "the clock source is %s", name);
}

/* The quota of the container as the tree has it. */
static uint32_t
read_quota(const struct wf_doctor *doctor)
{
	char groups[4096];
	char root[WF_DOCTOR_PATH_BYTES];
	(void)snprintf(root, sizeof(root), "%.400s/sys/fs/cgroup", doctor->ask->root);
	return wf_doctor_read(doctor, groups, sizeof(groups), "/proc/self/cgroup")
		       ? wf_quota_cpus_at(root, groups)
		       : 0;
}

/* The number of CPUs in a list such as "0-5,12-17"; 0: it is none. */
static uint32_t
count_list(const char *list)
{
	uint32_t count = 0;
	for (const char *at = list; *at != '\0';) {
		unsigned first = 0;
		unsigned last = 0;
		int used = 0;
		if (sscanf(at, "%6u-%6u%n", &first, &last, &used) != 2) {
			used = 0;
			if (sscanf(at, "%6u%n", &first, &used) != 1) {
				return 0;
			}
			last = first;
		}
		if (last < first || (at[used] != ',' && at[used] != '\0')) {
			return 0;
		}
		count += last - first + 1;
		at += used + (at[used] == ',');
	}
	return count;
}

/* The list of CPUs in /proc/self/status. */
static void
read_allowed(const struct wf_doctor *doctor, char *out, size_t bytes)
{
	static const char key[] = "Cpus_allowed_list:";
	char status[8192];
	out[0] = '\0';
	if (wf_doctor_read(doctor, status, sizeof(status), "/proc/self/status")) {
		const char *at = strstr(status, key);
		if (at != NULL) {
			at += sizeof(key) - 1;
			at += strspn(at, " \t");
			(void)snprintf(out, bytes, "%.*s", (int)strcspn(at, "\n"), at);
		}
	}
}

void
wf_doctor_check_cpus(const struct wf_doctor *doctor)
{
	char list[256];
	read_allowed(doctor, list, sizeof(list));
	uint32_t allowed = count_list(list);
	uint32_t quota = read_quota(doctor);
	if (allowed == 0) {
		wf_doctor_add(doctor, NOTE, "the CPUs of this process are unknown");
	} else if (quota > 0 && quota < allowed) {
		wf_doctor_add(doctor,
			      &(struct wf_doctor_about){
				      .level = WF_DOCTOR_FINDING,
				      .remedy = "raise the quota of the container (docker --cpus, "
						"resources.limits.cpu), or start fewer lanes and "
						"threads"},
			      "this process may run on %u CPUs (%s), and its container has the "
			      "time of %u: threads stop when it is used up",
			      allowed, list, quota);
	} else if (doctor->ask->lanes > allowed) {
		wf_doctor_add(doctor,
			      &(struct wf_doctor_about){
				      .level = WF_DOCTOR_FINDING,
				      .remedy = "start fewer lanes (--ports_num), or allow more "
						"CPUs (taskset, cpuset)"},
			      "%u lanes share %u CPUs (%s)", doctor->ask->lanes, allowed, list);
	} else {
		wf_doctor_add(doctor, OK, "%u CPUs (%s)", allowed, list);
	}
}

struct governors {
	unsigned count, slow;
	char name[32];
};

static void
look_at_governor(const struct wf_doctor *doctor, const char *name, void *arg)
{
	struct governors *all = arg;
	char governor[32];
	char driver[32];
	if (!wf_doctor_line(doctor, governor, sizeof(governor),
			    "/sys/devices/system/cpu/cpufreq/%s/scaling_governor", name)) {
		return;
	}
	(void)wf_doctor_line(doctor, driver, sizeof(driver),
			     "/sys/devices/system/cpu/cpufreq/%s/scaling_driver", name);
	/* These two drivers raise the frequency under "powersave", too. */
	bool is_active = strncmp(driver, "intel_pstate", 12) == 0 ||
			 strncmp(driver, "amd-pstate-epp", 14) == 0;
	all->count++;
	all->slow += strcmp(governor, "powersave") == 0 && !is_active;
	(void)snprintf(all->name, sizeof(all->name), "%s", governor);
}

void
wf_doctor_check_governor(const struct wf_doctor *doctor)
{
	struct governors all = {0};
	(void)wf_doctor_each(doctor, "/sys/devices/system/cpu/cpufreq", look_at_governor, &all);
	if (all.slow > 0) {
		wf_doctor_add(doctor,
			      &(struct wf_doctor_about){
				      .level = WF_DOCTOR_FINDING,
				      .remedy = "cpupower frequency-set -g performance"},
			      "the governor powersave keeps CPUs at their lowest frequency (%u of "
			      "%u)",
			      all.slow, all.count);
	} else if (all.count > 0) {
		wf_doctor_add(doctor, OK, "the frequency governor is %s", all.name);
	} else {
		wf_doctor_add(doctor, NOTE, "this machine does not show the frequency of CPUs");
	}
}

void
wf_doctor_check_isolated(const struct wf_doctor *doctor)
{
	char list[128];
	if (!wf_doctor_line(doctor, list, sizeof(list), "/sys/devices/system/cpu/isolated")) {
		wf_doctor_add(doctor, OK, "no CPU is isolated");
	} else {
		wf_doctor_add(doctor, NOTE,
			      "CPUs %s are isolated: only threads that are pinned there "
			      "(--pin=%s) use them",
			      list, list);
	}
}

void
wf_doctor_check_steal(const struct wf_doctor *doctor)
{
	char text[STAT_BYTES];
	uint64_t part[8] = {0};
	uint64_t sum = 0;
	if (!wf_doctor_read(doctor, text, sizeof(text), "/proc/stat") ||
	    sscanf(text,
		   "cpu %15" SCNu64 " %15" SCNu64 " %15" SCNu64 " %15" SCNu64 " %15" SCNu64
		   " %15" SCNu64 " %15" SCNu64 " %15" SCNu64,
		   &part[0], &part[1], &part[2], &part[3], &part[4], &part[5], &part[6],
		   &part[7]) != 8) {
		wf_doctor_add(doctor, NOTE, "the CPU time of this machine is unknown");
		return;
	}
	for (size_t i = 0; i < WF_ARRAY_COUNT(part); i++) {
		sum += part[i];
	}
	uint64_t percent = sum == 0 ? 0 : part[7] * 100 / sum;
	if (percent >= STEAL_PERCENT) {
		wf_doctor_add(doctor,
			      &(struct wf_doctor_about){
				      .level = WF_DOCTOR_FINDING,
				      .remedy = "ask for CPUs that are not shared, or use another "
						"kind of virtual machine"},
			      "the host has given %" PRIu64 " %% of the CPU time to other machines "
			      "since the start",
			      percent);
	} else {
		wf_doctor_add(doctor, OK,
			      "the host has given %" PRIu64 " %% of the CPU time to other machines "
			      "since the start",
			      percent);
	}
}

void
wf_doctor_check_numa(const struct wf_doctor *doctor)
{
	char list[128];
	if (!wf_doctor_line(doctor, list, sizeof(list), "/sys/devices/system/node/online")) {
		wf_doctor_add(doctor, NOTE, "the memory nodes are unknown");
		return;
	}
	uint32_t count = count_list(list);
	if (count == 0) {
		wf_doctor_add(doctor, NOTE, "the list of memory nodes is malformed: %s", list);
	} else {
		wf_doctor_add(doctor, OK, "%u memory node%s (%s); weft topo shows what is near",
			      count, count == 1 ? "" : "s", list);
	}
}
