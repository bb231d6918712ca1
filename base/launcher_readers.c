/* SPDX-License-Identifier: Apache-2.0 */
/* launcher_readers: the variables and files of each launcher; Slurm's are in launcher_slurm.c.
 * Thread: the caller's.
 *
 * | launcher | what it is known by | what it says |
 * | torchrun | RANK, WORLD_SIZE and MASTER_ADDR; fewer are found, and ignored | rank, size, host of
 *   rank 0 |
 * | Open MPI | OMPI_COMM_WORLD_RANK | rank, size; with several programs in one mpirun, of each |
 * | Slurm | SLURM_STEP_ID: a task that srun started | rank, size, hosts |
 * | PaddlePaddle's job | TRAINING_ROLE, PADDLE_* of its operators and documents | all |
 * | Volcano | VC_TASK_INDEX (once VK_TASK_INDEX), of its plugins env and svc | rank, size, hosts |
 * | Kubeflow | PET_NODE_RANK and PET_NNODES, torchrun's options | rank, size, host of rank 0 |
 * | Kubernetes Job | JOB_COMPLETION_INDEX, of indexed ones, those of a JobSet too | rank |
 *
 * A rank and a size that do not say of what are those of the group that this process is in. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/launcher_internal.h"

#define LIST_BYTES 8192u
#define APPS_MAX 16u

/* The first of these variables that is set becomes a finding. */
static void
add_first(struct wf_launcher_probe *probe, enum wf_launcher_fact fact, const char *const *names,
	  const char *ignored)
{
	for (; *names != NULL; names++) {
		const char *value = wf_probe_get(probe, *names);
		if (value != NULL) {
			wf_probe_add(probe, fact, *names, value, ignored);
			return;
		}
	}
}

/* These names are nobody's own, so one or two of them are no proof of torchrun, which always sets
 * all three: whoever set them finds out why they do not count. */
static void
ignore_parts_of_torchrun(struct wf_launcher_probe *probe)
{
	static const struct {
		enum wf_launcher_fact fact;
		const char *name;
	} parts[] = {
		{WF_FACT_RANK, "RANK"},
		{WF_FACT_SIZE, "WORLD_SIZE"},
		{WF_FACT_PSERVERS, "MASTER_ADDR"},
	};

	for (size_t i = 0; i < WF_ARRAY_COUNT(parts); i++) {
		const char *value = wf_probe_get(probe, parts[i].name);
		if (value != NULL) {
			wf_probe_add(probe, parts[i].fact, parts[i].name, value,
				     "it counts only where RANK, WORLD_SIZE and MASTER_ADDR are "
				     "all set, as torchrun sets them");
		}
	}
}

void
wf_launcher_read_torchrun(struct wf_launcher_probe *probe)
{
	const char *rank = wf_probe_get(probe, "RANK");
	const char *size = wf_probe_get(probe, "WORLD_SIZE");

	if (rank == NULL || size == NULL || wf_probe_get(probe, "MASTER_ADDR") == NULL) {
		ignore_parts_of_torchrun(probe);
		return;
	}
	wf_probe_add(probe, WF_FACT_RANK, "RANK", rank, NULL);
	wf_probe_add(probe, WF_FACT_SIZE, "WORLD_SIZE", size, wf_probe_size_objection(probe));
	wf_probe_add_master(probe, "MASTER_ADDR");
}

/* ---- Open MPI ---- */

/* Parses "1 2": the numbers of processes of the programs of one mpirun. */
static unsigned
parse_counts(const char *text, unsigned counts[APPS_MAX])
{
	unsigned apps = 0;
	while (*text != '\0' && apps < APPS_MAX) {
		char number[8];
		size_t digits = strcspn(text, " ");
		if (digits >= sizeof(number)) {
			return 0;
		}
		memcpy(number, text, digits);
		number[digits] = '\0';
		if (!wf_probe_number(number, &counts[apps])) {
			return 0;
		}
		apps++;
		text += digits + strspn(text + digits, " ");
	}
	return *text == '\0' ? apps : 0;
}

/* `mpirun -np 2 weft pserver : -np 4 weft train` has one row of ranks for both programs. */
static bool
read_programs(struct wf_launcher_probe *probe, unsigned rank)
{
	unsigned counts[APPS_MAX];
	unsigned own;
	const char *list = wf_probe_get(probe, "OMPI_APP_CTX_NUM_PROCS");
	const char *number = wf_probe_get(probe, "OMPI_MCA_orte_app_num");
	unsigned apps = list != NULL ? parse_counts(list, counts) : 0;

	if (apps < 2 || number == NULL || !wf_probe_number(number, &own) || own >= apps) {
		return false;
	}
	return wf_probe_add_group(probe,
				  &(struct wf_probe_groups){
					  .counts = counts,
					  .group_count = apps,
					  .rank_name = "OMPI_COMM_WORLD_RANK",
					  .size_name = "OMPI_APP_CTX_NUM_PROCS",
					  .too_many = "mpirun has more than two programs",
				  },
				  own, rank);
}

void
wf_launcher_read_open_mpi(struct wf_launcher_probe *probe)
{
	unsigned number;
	const char *rank = wf_probe_get(probe, "OMPI_COMM_WORLD_RANK");
	const char *size = wf_probe_get(probe, "OMPI_COMM_WORLD_SIZE");

	if (rank == NULL) {
		return;
	}
	const char *nodes = wf_probe_get(probe, "OMPI_MCA_orte_num_nodes");
	if (nodes != NULL && wf_probe_number(nodes, &number) && number > 1) {
		wf_probe_add(probe, WF_FACT_PSERVERS, "OMPI_MCA_orte_num_nodes", nodes,
			     "it says how many hosts there are, not which; give pservers");
	}
	if (wf_probe_number(rank, &number) && read_programs(probe, number)) {
		return;
	}
	wf_probe_add(probe, WF_FACT_RANK, "OMPI_COMM_WORLD_RANK", rank, NULL);
	if (size != NULL) {
		wf_probe_add(probe, WF_FACT_SIZE, "OMPI_COMM_WORLD_SIZE", size,
			     wf_probe_size_objection(probe));
	}
}

/* ---- the original's jobs ---- */

static void
read_role(struct wf_launcher_probe *probe)
{
	static const char *const names[] = {"TRAINING_ROLE", "PADDLE_TRAINING_ROLE", NULL};
	for (const char *const *name = names; *name != NULL; name++) {
		const char *value = wf_probe_get(probe, *name);
		if (value == NULL) {
			continue;
		}
		if (strcasecmp(value, "PSERVER") == 0) {
			wf_probe_add(probe, WF_FACT_ROLE, *name, "pserver", NULL);
		} else if (strcasecmp(value, "TRAINER") == 0 || strcasecmp(value, "WORKER") == 0) {
			wf_probe_add(probe, WF_FACT_ROLE, *name, "trainer", NULL);
		} else {
			wf_probe_add(probe, WF_FACT_ROLE, *name, value,
				     "it is neither TRAINER nor PSERVER");
		}
		return;
	}
}

/* Reads the number of trainers: a number, or the length of a list of them. */
static void
read_trainers(struct wf_launcher_probe *probe)
{
	static const char *const numbers[] = {"PADDLE_TRAINERS_NUM", NULL};
	static const char *const lists[] = {"PADDLE_TRAINERS", "PADDLE_TRAINER_ENDPOINTS",
					    "PADDLE_TRAINER_IPS", NULL};
	unsigned number;
	char text[16];

	add_first(probe, WF_FACT_SIZE, numbers, NULL);
	for (const char *const *name = lists; *name != NULL; name++) {
		const char *value = wf_probe_get(probe, *name);
		if (value != NULL) {
			bool is_number = wf_probe_number(value, &number);
			snprintf(text, sizeof(text), "%u",
				 is_number ? number : wf_probe_count_entries(value));
			wf_probe_add(probe, WF_FACT_SIZE, *name, text, NULL);
		}
	}
}

/* A number of them, where it is no list, is there to check the list. */
static void
read_pservers(struct wf_launcher_probe *probe)
{
	static const char *const counts[] = {"PADDLE_PSERVERS_NUM", NULL};
	static const char *const lists[] = {"PADDLE_PSERVERS_IP_PORT_LIST",
					    "PADDLE_PSERVER_ENDPOINTS", "PADDLE_PSERVERS",
					    "PADDLE_PSERVER_IPS", NULL};
	unsigned number;

	add_first(probe, WF_FACT_PSERVER_COUNT, counts, NULL);
	for (const char *const *name = lists; *name != NULL; name++) {
		const char *value = wf_probe_get(probe, *name);
		if (value != NULL) {
			bool is_number = wf_probe_number(value, &number);
			wf_probe_add(probe, is_number ? WF_FACT_PSERVER_COUNT : WF_FACT_PSERVERS,
				     *name, value, NULL);
		}
	}
}

/* Reads the address of this pod. The original's jobs have it under a name of their own, those of
 * the operator under that of many other pods. */
static void
read_own_address(struct wf_launcher_probe *probe)
{
	static const char *const own[] = {"PADDLE_CURRENT_IP", NULL};
	static const char *const pods[] = {"PADDLE_CURRENT_IP", "POD_IP", NULL};
	bool is_job = wf_probe_get(probe, "TRAINING_ROLE") != NULL ||
		      wf_probe_get(probe, "PADDLE_TRAINING_ROLE") != NULL;

	add_first(probe, WF_FACT_LISTEN, is_job ? pods : own, NULL);
}

void
wf_launcher_read_paddle(struct wf_launcher_probe *probe)
{
	static const char *const ids[] = {"PADDLE_TRAINER_ID", NULL};
	static const char *const ports[] = {"PADDLE_PSERVER_PORT", "PADDLE_PORT", NULL};

	read_role(probe);
	add_first(probe, WF_FACT_RANK, ids, NULL);
	read_trainers(probe);
	read_pservers(probe);
	add_first(probe, WF_FACT_PORT, ports, NULL);
	read_own_address(probe);
}

/* ---- Volcano, Kubernetes ---- */

/* Reads a file with one name per line as a list with commas. Returns false if there is none, or if
 * it is too long. */
static bool
read_list(const struct wf_launcher_probe *probe, const char *path, char *out, size_t bytes)
{
	char whole[4096];
	const char *root = probe->source->root != NULL ? probe->source->root : "";
	int wanted = snprintf(whole, sizeof(whole), "%s%s", root, path);

	if (wanted < 0 || (size_t)wanted >= sizeof(whole)) {
		return false;
	}
	int fd = open(whole, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		return false;
	}
	ssize_t count = read(fd, out, bytes);
	close(fd);
	if (count <= 0 || (size_t)count == bytes) {
		return false;
	}
	out[count] = '\0';
	size_t used = 0;
	for (const char *line = out; *line != '\0';) {
		line += strspn(line, "\r\n");
		size_t name_bytes = strcspn(line, "\r\n");
		if (name_bytes > 0 && used > 0) {
			out[used++] = ','; /* where a line ended */
		}
		memmove(out + used, line, name_bytes);
		used += name_bytes;
		line += name_bytes;
	}
	out[used] = '\0';
	return used > 0;
}

void
wf_launcher_read_volcano(struct wf_launcher_probe *probe)
{
	static const char file[] = "/etc/volcano/pserver.host";
	static const char *const ids[] = {"VC_TASK_INDEX", "VK_TASK_INDEX", NULL};
	static const char *const sizes[] = {"VC_TRAINER_NUM", NULL};
	static const char *const counts[] = {"VC_PSERVER_NUM", NULL};
	static const char *const hosts[] = {"VC_PSERVER_HOSTS", NULL};
	char list[LIST_BYTES];
	char text[16];

	if (wf_probe_get(probe, ids[0]) == NULL && wf_probe_get(probe, ids[1]) == NULL) {
		return;
	}
	add_first(probe, WF_FACT_RANK, ids, NULL);
	add_first(probe, WF_FACT_SIZE, sizes, NULL);
	const char *trainers = wf_probe_get(probe, "VC_TRAINER_HOSTS");
	if (trainers != NULL) {
		snprintf(text, sizeof(text), "%u", wf_probe_count_entries(trainers));
		wf_probe_add(probe, WF_FACT_SIZE, "VC_TRAINER_HOSTS", text, NULL);
	}
	add_first(probe, WF_FACT_PSERVER_COUNT, counts, NULL);
	add_first(probe, WF_FACT_PSERVERS, hosts, NULL);
	bool has_file = read_list(probe, file, list, sizeof(list));
	if (has_file) {
		wf_probe_add(probe, WF_FACT_PSERVERS, file, list, NULL);
	}
	wf_launcher_read_tasks(probe, trainers == NULL && wf_probe_get(probe, sizes[0]) == NULL,
			       !has_file && wf_probe_get(probe, hosts[0]) == NULL);
}

void
wf_launcher_read_indexed_job(struct wf_launcher_probe *probe)
{
	static const char *const ids[] = {"JOB_COMPLETION_INDEX", NULL};
	add_first(probe, WF_FACT_RANK, ids, NULL);
}
