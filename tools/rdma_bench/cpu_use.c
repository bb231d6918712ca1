/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_use: see cpu_use.h. Linux' /proc. */
#include "tools/rdma_bench/cpu_use.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROW_BYTES 4096 /* that of interrupts is longer, and of no interest */

/* A row of /proc/stat: user nice system idle iowait irq softirq, in ticks; time that the host stole
 * is not counted. Below 0: the row is not of these CPUs. */
static double
busy_of_row(const char *row, const int cpu[2])
{
	unsigned long long t[7];
	int idx;
	if (sscanf(row, "cpu%d %llu %llu %llu %llu %llu %llu %llu", &idx, &t[0], &t[1], &t[2],
		   &t[3], &t[4], &t[5], &t[6]) != 8 ||
	    (idx != cpu[0] && idx != cpu[1])) {
		return -1;
	}
	return (double)(t[0] + t[1] + t[2] + t[5] + t[6]) / (double)sysconf(_SC_CLK_TCK);
}

static double
busy_seconds(const int cpu[2])
{
	char row[ROW_BYTES];
	double busy = 0;
	int rows = 0;
	FILE *file = fopen("/proc/stat", "re");
	if (file == NULL) {
		return -1;
	}
	while (fgets(row, sizeof(row), file) != NULL) {
		double one = strncmp(row, "cpu", 3) == 0 ? busy_of_row(row, cpu) : -1;
		busy += one >= 0 ? one : 0;
		rows += one >= 0 ? 1 : 0;
	}
	fclose(file);
	return rows == (cpu[0] == cpu[1] ? 1 : 2) ? busy : -1;
}

double
wf_cpu_use_process(pid_t pid)
{
	clockid_t clock;
	struct timespec used;
	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0) {
		return 0;
	}
	return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

static double
own_seconds(void)
{
	char path[64];
	int pid;
	double sum = wf_cpu_use_process(0);
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	FILE *file = fopen(path, "re");
	if (file == NULL) {
		return -1;
	}
	while (fscanf(file, "%d", &pid) == 1) {
		sum += wf_cpu_use_process((pid_t)pid);
	}
	fclose(file);
	return sum;
}

struct wf_cpu_use
wf_cpu_use_now(struct wf_env *env, const int cpu[2])
{
	return (struct wf_cpu_use){
		.when_ns = wf_now_ns(env),
		.busy_s = busy_seconds(cpu),
		.own_s = own_seconds(),
	};
}

double
wf_cpu_use_foreign(const struct wf_cpu_use *before, const struct wf_cpu_use *after)
{
	if (before->busy_s < 0 || after->busy_s < 0 || before->own_s < 0 || after->own_s < 0 ||
	    after->when_ns <= before->when_ns) {
		return -1;
	}
	double others_s = (after->busy_s - before->busy_s) - (after->own_s - before->own_s);
	double cores = others_s / ((double)(after->when_ns - before->when_ns) / 1e9);
	return cores > 0 ? cores : 0;
}
