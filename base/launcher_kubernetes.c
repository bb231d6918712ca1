/* SPDX-License-Identifier: Apache-2.0 */
/* launcher_kubernetes: what engines of Kubernetes say beside what launcher_readers.c has: the tasks
 * of a Volcano job that have names of their own, and the variables of torchrun's options. Thread:
 * the caller's. */
#include <stdio.h>
#include <string.h>

#include "base/launcher_internal.h"

#define TASKS_MAX 8u
#define NAME_BYTES 96u /* of a variable */

struct task {
	char hosts_name[NAME_BYTES]; /* "VC_PS_HOSTS" */
	char num_name[NAME_BYTES];   /* "VC_PS_NUM" */
	const char *hosts;           /* "job-ps-0.job,job-ps-1.job" */
};

static bool
parse_task(const char *variable, struct task *out)
{
	static const char before[] = "VC_";
	static const char behind[] = "_HOSTS";
	size_t bytes = strcspn(variable, "=");

	if (strncmp(variable, before, strlen(before)) != 0 || bytes >= sizeof(out->hosts_name) ||
	    bytes <= strlen(before) + strlen(behind) || variable[bytes] == '\0' ||
	    variable[bytes + 1] == '\0' ||
	    strncmp(variable + bytes - strlen(behind), behind, strlen(behind)) != 0) {
		return false;
	}
	size_t stem_bytes = bytes - strlen(behind);
	snprintf(out->hosts_name, sizeof(out->hosts_name), "%.*s", (int)bytes, variable);
	snprintf(out->num_name, sizeof(out->num_name), "%.*s_NUM", (int)stem_bytes, variable);
	out->hosts = variable + bytes + 1;
	return true;
}

/* Whether the pod is in this list: one of its names begins with that of the host. */
static bool
has_host(const struct task *task, const char *host)
{
	size_t bytes = strlen(host);

	for (const char *at = task->hosts; at != NULL;) {
		if (strncmp(at, host, bytes) == 0 &&
		    (at[bytes] == '.' || at[bytes] == ',' || at[bytes] == '\0')) {
			return true;
		}
		at = strchr(at, ',');
		at = at != NULL ? at + 1 : NULL;
	}
	return false;
}

static void
add_trainers(struct wf_launcher_probe *probe, const struct task *task)
{
	const char *num = wf_probe_get(probe, task->num_name);
	char text[16];

	if (num != NULL) {
		wf_probe_add(probe, WF_FACT_SIZE, task->num_name, num, NULL);
	}
	snprintf(text, sizeof(text), "%u", wf_probe_count_entries(task->hosts));
	wf_probe_add(probe, WF_FACT_SIZE, task->hosts_name, text, NULL);
}

static void
add_pservers(struct wf_launcher_probe *probe, const struct task *task)
{
	const char *num = wf_probe_get(probe, task->num_name);

	if (num != NULL) {
		wf_probe_add(probe, WF_FACT_PSERVER_COUNT, task->num_name, num, NULL);
	}
	wf_probe_add(probe, WF_FACT_PSERVERS, task->hosts_name, task->hosts, NULL);
}

void
wf_launcher_read_tasks(struct wf_launcher_probe *probe, bool wants_size, bool wants_pservers)
{
	struct task task[TASKS_MAX];
	const char *host = wf_probe_get(probe, "HOSTNAME");
	bool serves = probe->out->role == WF_ROLE_PSERVER;
	unsigned count = 0;
	unsigned own = TASKS_MAX;

	for (const char *const *i = wf_probe_variables(probe); *i != NULL && count < TASKS_MAX;
	     i++) {
		if (parse_task(*i, &task[count])) {
			own = host != NULL && has_host(&task[count], host) ? count : own;
			count++;
		}
	}
	if (count == 2 && own < count && wants_size) {
		add_trainers(probe, &task[serves ? 1 - own : own]);
	}
	if (count == 2 && own < count && wants_pservers) {
		add_pservers(probe, &task[serves ? own : 1 - own]);
	}
	bool is_known = (count == 2 && own < count) || !wants_size || !wants_pservers;
	for (unsigned i = 0; i < count && !is_known; i++) {
		wf_probe_add(probe, WF_FACT_PSERVERS, task[i].hosts_name, task[i].hosts,
			     count == 2
				     ? "HOSTNAME is in no list, so it is not known which task is "
				       "that of this process"
				     : "a job of other than two tasks needs one named pserver, and "
				       "one named trainer");
	}
}

void
wf_launcher_read_torchrun_options(struct wf_launcher_probe *probe)
{
	const char *rank = wf_probe_get(probe, "PET_NODE_RANK");
	const char *size = wf_probe_get(probe, "PET_NNODES");

	if (rank == NULL || size == NULL) {
		return;
	}
	wf_probe_add(probe, WF_FACT_RANK, "PET_NODE_RANK", rank, NULL);
	wf_probe_add(probe, WF_FACT_SIZE, "PET_NNODES", size, wf_probe_size_objection(probe));
	wf_probe_add_master(probe, "PET_MASTER_ADDR");
}
