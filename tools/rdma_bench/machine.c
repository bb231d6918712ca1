/* SPDX-License-Identifier: Apache-2.0 */
/* machine: see machine.h. */
#include "tools/rdma_bench/machine.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 4096

static void
copy_line(char *out, const char *text)
{
	snprintf(out, WF_MACHINE_TEXT_BYTES, "%.*s", (int)strcspn(text, "\n"), text);
}

static void
read_cpuinfo(struct wf_machine *out)
{
	char line[LINE_BYTES];
	FILE *file = fopen("/proc/cpuinfo", "re");
	if (file == NULL) {
		return;
	}
	while (fgets(line, sizeof(line), file) != NULL) {
		const char *value = strchr(line, ':');
		if (value == NULL) {
			continue;
		}
		if (strncmp(line, "model name", 10) == 0 && out->cpu[0] == '\0') {
			copy_line(out->cpu, value + strspn(value, ": "));
		}
		if (strncmp(line, "flags", 5) == 0 && strstr(value, " hypervisor") != NULL) {
			out->virtual_machine = true;
		}
	}
	fclose(file);
}

static void
read_congestion(struct wf_machine *out)
{
	char line[WF_MACHINE_TEXT_BYTES] = "";
	FILE *file = fopen("/proc/sys/net/ipv4/tcp_congestion_control", "re");
	if (file == NULL) {
		return;
	}
	if (fgets(line, sizeof(line), file) != NULL) {
		copy_line(out->congestion, line);
	}
	fclose(file);
}

void
wf_machine_describe(struct wf_machine *out)
{
	struct utsname name;
	struct tm utc;
	time_t now = time(NULL);
	long pages = sysconf(_SC_PHYS_PAGES);
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	*out = (struct wf_machine){.cpu_count = cpus > 0 ? (unsigned)cpus : 1};
	if (pages > 0) {
		out->memory_bytes = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
	}
	if (uname(&name) == 0) {
		snprintf(out->kernel, sizeof(out->kernel), "%.40s %.80s", name.sysname,
			 name.release);
		snprintf(out->arch, sizeof(out->arch), "%.40s", name.machine);
	}
	if (gmtime_r(&now, &utc) != NULL) {
		(void)strftime(out->date, sizeof(out->date), "%Y-%m-%dT%H:%M:%SZ", &utc);
	}
	read_cpuinfo(out);
	read_congestion(out);
}
