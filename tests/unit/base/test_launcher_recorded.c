/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of launcher on whole environments of ranks, as engines set them
 * (tests/fixtures/launchers): what is found, and what is not used because of what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/launcher.h"

#define TEXT_BYTES 8192u
#define IGNORED_MAX 4u
#define VARIABLES_MAX 200u

struct ignored_row {
	const char *variable;
	const char *reason; /* a part of it */
};

struct row {
	const char *file;
	enum wf_launcher_role asked; /* as a program asks; unknown: the environment decides */
	const char *root;            /* of the files, below the folder; NULL: none is there */
	enum wf_launcher_role role;
	const char *rank; /* NULL: nothing is found; so below */
	const char *size;
	const char *pservers;
	const char *port;
	const char *listen;
	const char *pserver_count;
	struct ignored_row ignored[IGNORED_MAX]; /* all that are not used */
};

static const struct row rows[] = {
	{
		.file = "torchrun",
		.role = WF_ROLE_TRAINER,
		.rank = "3",
		.size = "4",
		.pservers = "node1",
	},
	{
		.file = "torchrun",
		.asked = WF_ROLE_PSERVER,
		.role = WF_ROLE_PSERVER,
		.pservers = "node1",
		.ignored = {{"RANK", "this process is no trainer"},
			    {"WORLD_SIZE", "counts the group of this process"}},
	},
	{
		.file = "volcano-trainer",
		.asked = WF_ROLE_TRAINER,
		.role = WF_ROLE_TRAINER,
		.rank = "2",
		.size = "3",
		.pservers = "ctr-pserver-0.ctr,ctr-pserver-1.ctr",
		.pserver_count = "2",
		.ignored = {{"VC_TRAINER_HOSTS", "another variable above counts"}},
	},
	{
		.file = "volcano-trainer",
		.asked = WF_ROLE_TRAINER,
		.root = "volcano",
		.role = WF_ROLE_TRAINER,
		.rank = "2",
		.size = "3",
		.pservers = "ctr-pserver-0.ctr,ctr-pserver-1.ctr",
		.pserver_count = "2",
		.ignored = {{"VC_TRAINER_HOSTS", "another variable above counts"},
			    {"/etc/volcano/pserver.host", "another variable above counts"}},
	},
	{
		.file = "volcano-pserver",
		.asked = WF_ROLE_PSERVER,
		.role = WF_ROLE_PSERVER,
		.size = "3",
		.pservers = "ctr-pserver-0.ctr,ctr-pserver-1.ctr",
		.pserver_count = "2",
		.ignored = {{"VC_TASK_INDEX", "this process is no trainer"},
			    {"VC_TRAINER_HOSTS", "another variable above counts"}},
	},
	{
		.file = "volcano-own-names-worker",
		.asked = WF_ROLE_TRAINER,
		.role = WF_ROLE_TRAINER,
		.rank = "1",
		.size = "3",
		.pservers = "ctr-ps-0.ctr,ctr-ps-1.ctr",
		.pserver_count = "2",
		.ignored = {{"VC_WORKER_HOSTS", "another variable above counts"}},
	},
	{
		.file = "volcano-own-names-ps",
		.asked = WF_ROLE_PSERVER,
		.role = WF_ROLE_PSERVER,
		.size = "3",
		.pservers = "ctr-ps-0.ctr,ctr-ps-1.ctr",
		.pserver_count = "2",
		.ignored = {{"VC_TASK_INDEX", "this process is no trainer"},
			    {"VC_WORKER_HOSTS", "another variable above counts"}},
	},
	{
		.file = "volcano-pserver-and-worker",
		.asked = WF_ROLE_TRAINER,
		.role = WF_ROLE_TRAINER,
		.rank = "1",
		.size = "3",
		.pservers = "ctr-pserver-0.ctr",
		.pserver_count = "1",
		.ignored = {{"VC_WORKER_HOSTS", "another variable above counts"}},
	},
	{
		.file = "kubeflow-trainer",
		.asked = WF_ROLE_TRAINER,
		.role = WF_ROLE_TRAINER,
		.rank = "1",
		.size = "2",
		.pservers = "train-node-0-0.train",
		.ignored = {{"JOB_COMPLETION_INDEX", "another variable above counts"}},
	},
	{
		.file = "kubeflow-trainer-torchrun",
		.asked = WF_ROLE_TRAINER,
		.role = WF_ROLE_TRAINER,
		.rank = "3",
		.size = "4",
		.pservers = "train-node-0-0.train",
		.ignored = {{"PET_NODE_RANK", "another variable above counts"},
			    {"PET_NNODES", "another variable above counts"},
			    {"PET_MASTER_ADDR", "another variable above counts"},
			    {"JOB_COMPLETION_INDEX", "another variable above counts"}},
	},
	{
		.file = "torchrun-options-elastic",
		.asked = WF_ROLE_TRAINER,
		.role = WF_ROLE_TRAINER,
		.rank = "0",
		.pservers = "node1",
		.ignored = {{"PET_NNODES", "it is not a number from 1"}},
	},
	{
		.file = "volcano-host-files",
		.asked = WF_ROLE_TRAINER,
		.root = "volcano",
		.role = WF_ROLE_TRAINER,
		.rank = "1",
		.pservers = "ctr-pserver-0.ctr,ctr-pserver-1.ctr",
	},
	{
		.file = "volcano-host-files",
		.asked = WF_ROLE_TRAINER,
		.role = WF_ROLE_TRAINER,
		.rank = "1",
	},
	{
		.file = "paddle-volcano-pserver",
		.role = WF_ROLE_PSERVER,
		.size = "2",
		.port = "30236",
		.listen = "10.0.0.11",
		.ignored = {{"PADDLE_PSERVERS_NUM", "how many there are, not where"}},
	},
	{
		.file = "paddle-volcano-trainer",
		.role = WF_ROLE_TRAINER,
		.rank = "1",
		.size = "2",
		.pservers = "10.0.0.13,10.0.0.14",
		.port = "30236",
		.pserver_count = "2",
		.ignored = {{"PADDLE_TRAINER_IPS", "another variable above counts"},
			    {"PADDLE_CURRENT_IP", "this process is no pserver"}},
	},
	{
		.file = "paddle-cloud-trainer",
		.role = WF_ROLE_TRAINER,
		.rank = "1",
		.size = "2",
		.pservers = "10.0.0.13,10.0.0.14",
		.port = "7164",
		.ignored = {{"PADDLE_TRAINERS", "another variable above counts"},
			    {"POD_IP", "this process is no pserver"}},
	},
	{
		.file = "paddle-operator-pserver",
		.role = WF_ROLE_PSERVER,
		.size = "2",
		.pservers = "10.0.0.13:2379,10.0.0.14:2379",
		.port = "2379",
		.listen = "10.0.0.14",
		.ignored = {{"PADDLE_TRAINERS", "another variable above counts"},
			    {"PADDLE_TRAINER_ENDPOINTS", "another variable above counts"}},
	},
	{
		.file = "indexed-job",
		.role = WF_ROLE_TRAINER,
		.rank = "2",
	},
	{
		.file = "indexed-job",
		.asked = WF_ROLE_PSERVER,
		.role = WF_ROLE_PSERVER,
		.ignored = {{"JOB_COMPLETION_INDEX", "this process is no trainer"}},
	},
	{
		.file = "jobset",
		.role = WF_ROLE_TRAINER,
		.rank = "2",
	},
	{
		.file = "open-mpi-in-slurm-first-host",
		.asked = WF_ROLE_TRAINER,
		.role = WF_ROLE_TRAINER,
		.rank = "0",
		.size = "4",
		.pservers = "node1",
		.ignored = {{"OMPI_MCA_orte_num_nodes", "not which"}},
	},
	{
		.file = "open-mpi-in-slurm-other-host",
		.asked = WF_ROLE_TRAINER,
		.role = WF_ROLE_TRAINER,
		.rank = "2",
		.size = "4",
		.pservers = "node1",
		.ignored = {{"OMPI_MCA_orte_num_nodes", "not which"},
			    {"SLURM_PROCID", "another variable above counts"},
			    {"SLURM_STEP_NUM_TASKS", "another variable above counts"}},
	},
	{
		.file = "open-mpi-nodes-ipv4",
		.asked = WF_ROLE_TRAINER,
		.role = WF_ROLE_TRAINER,
		.rank = "2",
		.size = "3",
		.ignored = {{"OMPI_MCA_orte_num_nodes", "not which"}},
	},
	{
		.file = "open-mpi-nodes-ipv6",
		.asked = WF_ROLE_TRAINER,
		.role = WF_ROLE_TRAINER,
		.rank = "2",
		.size = "3",
		.ignored = {{"OMPI_MCA_orte_num_nodes", "not which"}},
	},
	{
		.file = "open-mpi-one-program",
		.asked = WF_ROLE_TRAINER,
		.role = WF_ROLE_TRAINER,
		.rank = "2",
		.size = "3",
	},
	{
		.file = "open-mpi-two-programs-pserver",
		.asked = WF_ROLE_PSERVER,
		.role = WF_ROLE_PSERVER,
		.size = "2",
		.ignored = {{"OMPI_COMM_WORLD_RANK", "this process is no trainer"}},
	},
	{
		.file = "open-mpi-two-programs-trainer",
		.asked = WF_ROLE_TRAINER,
		.role = WF_ROLE_TRAINER,
		.rank = "1",
		.size = "2",
	},
	{
		.file = "slurm-batch-script",
		.asked = WF_ROLE_TRAINER,
		.role = WF_ROLE_TRAINER,
	},
	{
		.file = "slurm-het-one-component",
		.asked = WF_ROLE_TRAINER,
		.role = WF_ROLE_TRAINER,
		.rank = "2",
		.size = "3",
		.pservers = "node1",
	},
	{
		.file = "slurm-het-pserver",
		.asked = WF_ROLE_PSERVER,
		.role = WF_ROLE_PSERVER,
		.size = "3",
		.pservers = "node1",
		.ignored = {{"SLURM_PROCID", "this process is no trainer"}},
	},
	{
		.file = "slurm-het-trainer",
		.asked = WF_ROLE_TRAINER,
		.role = WF_ROLE_TRAINER,
		.rank = "1",
		.size = "3",
		.pservers = "node1",
	},
	{
		.file = "slurm-step-one-host",
		.asked = WF_ROLE_TRAINER,
		.role = WF_ROLE_TRAINER,
		.rank = "1",
		.size = "2",
	},
	{
		.file = "slurm-step",
		.asked = WF_ROLE_TRAINER,
		.role = WF_ROLE_TRAINER,
		.rank = "2",
		.size = "3",
		.pservers = "one",
	},
};

static char text[TEXT_BYTES];
static const char *variables[VARIABLES_MAX + 1];
static struct wf_launcher launcher;

static void
read_environment(const char *file)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/%s.env", WF_LAUNCHERS, file);
	FILE *stream = fopen(path, "r");
	assert_non_null(stream);
	size_t bytes = fread(text, 1, sizeof(text), stream);
	assert_int_equal(fclose(stream), 0);
	assert_in_range(bytes, 1, sizeof(text) - 1);
	text[bytes] = '\0';
	assert_int_equal(text[0], '#'); /* where it is from */
	assert_int_equal(text[bytes - 1], '\n');
	unsigned count = 0;
	char *rest = NULL;
	for (char *line = strtok_r(text, "\n", &rest); line != NULL;
	     line = strtok_r(NULL, "\n", &rest)) {
		assert_in_range(count, 0, VARIABLES_MAX - 1);
		variables[count++] = line;
	}
	variables[count] = NULL;
}

static void
detect(const struct row *row)
{
	char root[512];
	snprintf(root, sizeof(root), "%s/%s", WF_LAUNCHERS,
		 row->root != NULL ? row->root : "no such folder");
	const struct wf_launcher_source source = {.variables = variables, .root = root};
	read_environment(row->file);
	wf_launcher_detect(&source, row->asked, &launcher);
}

static void
says(const struct row *row, enum wf_launcher_fact fact, const char *expected)
{
	const struct wf_launcher_finding *finding = wf_launcher_find(&launcher, fact);
	const char *found = finding != NULL ? finding->value : "";
	if (strcmp(found, expected != NULL ? expected : "") != 0) {
		fail_msg("%s: %s is '%s', not '%s'", row->file, wf_launcher_fact_name(fact), found,
			 expected != NULL ? expected : "");
	}
}

/* Whether the row has this finding among those that are not used. */
static bool
is_expected(const struct row *row, const struct wf_launcher_finding *finding)
{
	for (size_t i = 0; i < IGNORED_MAX && row->ignored[i].variable != NULL; i++) {
		size_t bytes = strlen(row->ignored[i].variable);
		if (strncmp(finding->text, row->ignored[i].variable, bytes) == 0 &&
		    finding->text[bytes] == '=' &&
		    strstr(finding->ignored, row->ignored[i].reason) != NULL) {
			return true;
		}
	}
	return false;
}

static void
each_environment_says_its_place(void **state)
{
	for (size_t i = 0; i < WF_ARRAY_COUNT(rows); i++) {
		const struct row *row = &rows[i];
		detect(row);
		if (launcher.role != row->role) {
			fail_msg("%s: the role is %d", row->file, (int)launcher.role);
		}
		says(row, WF_FACT_RANK, row->rank);
		says(row, WF_FACT_SIZE, row->size);
		says(row, WF_FACT_PSERVERS, row->pservers);
		says(row, WF_FACT_PORT, row->port);
		says(row, WF_FACT_LISTEN, row->listen);
		says(row, WF_FACT_PSERVER_COUNT, row->pserver_count);
	}
}

static void
what_is_not_used_has_its_reason(void **state)
{
	for (size_t i = 0; i < WF_ARRAY_COUNT(rows); i++) {
		const struct row *row = &rows[i];
		unsigned expected = 0;
		unsigned found = 0;
		detect(row);
		while (expected < IGNORED_MAX && row->ignored[expected].variable != NULL) {
			expected++;
		}
		for (unsigned j = 0; j < launcher.count; j++) {
			const struct wf_launcher_finding *finding = &launcher.finding[j];
			if (finding->ignored == NULL) {
				continue;
			}
			found++;
			if (!is_expected(row, finding)) {
				fail_msg("%s: %s is not used: %s", row->file, finding->text,
					 finding->ignored);
			}
		}
		if (found != expected) {
			fail_msg("%s: %u are not used, not %u", row->file, found, expected);
		}
	}
}

static bool
has_row(const char *name)
{
	for (size_t i = 0; i < WF_ARRAY_COUNT(rows); i++) {
		size_t bytes = strlen(rows[i].file);
		if (strncmp(name, rows[i].file, bytes) == 0 && strcmp(name + bytes, ".env") == 0) {
			return true;
		}
	}
	return false;
}

static void
each_recorded_environment_has_a_row(void **state)
{
	DIR *folder = opendir(WF_LAUNCHERS);
	assert_non_null(folder);
	for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
		if (strstr(entry->d_name, ".env") != NULL && !has_row(entry->d_name)) {
			fail_msg("%s has no row", entry->d_name);
		}
	}
	assert_int_equal(closedir(folder), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_environment_says_its_place),
		cmocka_unit_test(what_is_not_used_has_its_reason),
		cmocka_unit_test(each_recorded_environment_has_a_row),
	};

	return cmocka_run_group_tests_name("base_launcher_recorded", tests, NULL, NULL);
}
