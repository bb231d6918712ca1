/* SPDX-License-Identifier: Apache-2.0 */
/* launcher_slurm: what Slurm says to the tasks of a step. In a heterogeneous job a step runs over
 * all components (`srun --het-group=0 A : --het-group=1 B`) or over one of them. Nothing says
 * which: both have the variables of the whole job, and those of the step. tests/fixtures/launchers
 * has both as Slurm 22.05 writes them. Thread: the caller's. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/launcher_internal.h"

#define LIST_BYTES 8192u
#define COMPONENTS_MAX 16u
#define TASKS_MAX 999999u /* of a component: a rank has at most six digits */

/* The variable of one component: "SLURM_JOB_NODELIST", 1 is SLURM_JOB_NODELIST_HET_GROUP_1. */
static const char *
get_of(const struct wf_launcher_probe *probe, const char *name, unsigned component)
{
	char whole[64];
	snprintf(whole, sizeof(whole), "%s_HET_GROUP_%u", name, component);
	return wf_probe_get(probe, whole);
}

static bool
get_number(const struct wf_launcher_probe *probe, const char *name, unsigned *out)
{
	const char *text = wf_probe_get(probe, name);
	return text != NULL && wf_probe_number(text, out);
}

/* Parses a number of at most six digits, and goes on behind it. */
static bool
parse_number(const char **at, unsigned *out)
{
	char digits[8];
	size_t count = strspn(*at, "0123456789");

	if (count >= sizeof(digits)) {
		return false;
	}
	memcpy(digits, *at, count);
	digits[count] = '\0';
	*at += count;
	return wf_probe_number(digits, out);
}

/* Parses an entry of a list like "2(x3),1": 2 tasks on each of three nodes. */
static bool
parse_entry(const char **at, unsigned *tasks, unsigned *nodes)
{
	*nodes = 1;
	if (!parse_number(at, tasks)) {
		return false;
	}
	if (strncmp(*at, "(x", 2) == 0) {
		*at += 2;
		if (!parse_number(at, nodes) || **at != ')') {
			return false;
		}
		++*at;
	}
	if (**at == ',') {
		++*at;
		return **at != '\0';
	}
	return **at == '\0';
}

/* Counts the tasks of each component, whose nodes follow one another in the list; false: the list
 * is malformed, has other nodes, or has more tasks than ranks can number. */
static bool
count_tasks(const char *list, const unsigned *nodes, unsigned components, unsigned *counts)
{
	unsigned own = 0;
	unsigned left = nodes[0];
	unsigned tasks;
	unsigned repeat;

	memset(counts, 0, components * sizeof(*counts));
	while (*list != '\0') {
		if (!parse_entry(&list, &tasks, &repeat)) {
			return false;
		}
		for (; repeat > 0; repeat--) {
			if (left == 0) {
				own++;
				if (own == components || nodes[own] == 0) {
					return false;
				}
				left = nodes[own];
			}
			if (tasks > TASKS_MAX - counts[own]) {
				return false;
			}
			counts[own] += tasks;
			left--;
		}
	}
	return own == components - 1 && left == 0;
}

/* A step over all components: it has all their nodes, those of component 0 first. How many tasks
 * each has, srun may have been told otherwise than the job. */
static bool
read_components(struct wf_launcher_probe *probe, unsigned components, unsigned rank)
{
	unsigned nodes[COMPONENTS_MAX];
	unsigned counts[COMPONENTS_MAX];
	const char *tasks = wf_probe_get(probe, "SLURM_STEP_TASKS_PER_NODE");

	if (tasks == NULL || components < 2 || components > COMPONENTS_MAX) {
		return false;
	}
	for (unsigned i = 0; i < components; i++) {
		const char *text = get_of(probe, "SLURM_JOB_NUM_NODES", i);
		if (text == NULL || !wf_probe_number(text, &nodes[i])) {
			return false;
		}
	}
	if (!count_tasks(tasks, nodes, components, counts)) {
		return false;
	}
	unsigned own = 0;
	unsigned end = counts[0];
	while (rank >= end && own + 1 < components) {
		own++;
		end += counts[own];
	}
	return wf_probe_add_group(
		probe,
		&(struct wf_probe_groups){
			.counts = counts,
			.group_count = components,
			.rank_name = "SLURM_PROCID",
			.size_name = "SLURM_STEP_TASKS_PER_NODE",
			.too_many = "the heterogeneous step has more than two components",
		},
		own, rank);
}

/* A step of one component alone: the nodes of the job are then those of this component, and of no
 * other. */
static bool
is_one_component(const struct wf_launcher_probe *probe, unsigned components)
{
	const char *nodes = wf_probe_get(probe, "SLURM_JOB_NODELIST");
	unsigned found = 0;

	for (unsigned i = 0; nodes != NULL && i < components && i < COMPONENTS_MAX; i++) {
		const char *own = get_of(probe, "SLURM_JOB_NODELIST", i);
		found += own != NULL && strcmp(own, nodes) == 0;
	}
	return found == 1;
}

/* The first host of a job on several: where pserver 0 is looked for. */
static void
read_first_host(struct wf_launcher_probe *probe)
{
	static const char *const names[] = {"SLURM_JOB_NODELIST_HET_GROUP_0", "SLURM_JOB_NODELIST",
					    "SLURM_NODELIST", NULL};
	char first[LIST_BYTES];
	uint32_t count;

	for (const char *const *name = names; *name != NULL; name++) {
		const char *list = wf_probe_get(probe, *name);
		if (list == NULL) {
			continue;
		}
		const char *next = get_of(probe, "SLURM_JOB_NODELIST", 1);
		bool differs = name == names && next != NULL && strcmp(next, list) != 0;
		if (wf_hostlist_expand(list, 1, first, sizeof(first), &count) != WEFT_OK) {
			wf_probe_add(probe, WF_FACT_PSERVERS, *name, list,
				     "it is not a list of hosts");
		} else if (count > 1 || differs) {
			wf_probe_add(probe, WF_FACT_PSERVERS, *name, first, NULL);
		}
		return;
	}
}

void
wf_launcher_read_slurm(struct wf_launcher_probe *probe)
{
	static const char *const sizes[] = {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"};
	static const char unclear[] = "which component of the heterogeneous job this task belongs "
				      "to is not clear";
	const char *rank = wf_probe_get(probe, "SLURM_PROCID");
	const char *mixed = NULL;
	unsigned components;
	unsigned number;

	if (rank == NULL || wf_probe_get(probe, "SLURM_STEP_ID") == NULL) {
		/* A batch script is no task of a step. The ranks that its mpirun starts on the same
		 * host have its variables, those on other hosts the variables of a step. */
		if (wf_probe_get(probe, "OMPI_COMM_WORLD_RANK") != NULL) {
			read_first_host(probe);
		}
		return;
	}
	if (wf_probe_get(probe, "SLURM_HET_SIZE") != NULL) {
		bool known = get_number(probe, "SLURM_HET_SIZE", &components) &&
			     wf_probe_number(rank, &number);
		if (known && read_components(probe, components, number)) {
			read_first_host(probe);
			return;
		}
		mixed = known && is_one_component(probe, components) ? NULL : unclear;
	}
	wf_probe_add(probe, WF_FACT_RANK, "SLURM_PROCID", rank, mixed);
	for (unsigned i = 0; i < 2; i++) {
		const char *size = wf_probe_get(probe, sizes[i]);
		if (size != NULL) {
			wf_probe_add(probe, WF_FACT_SIZE, sizes[i], size,
				     mixed != NULL ? mixed : wf_probe_size_objection(probe));
			break;
		}
	}
	read_first_host(probe);
}
