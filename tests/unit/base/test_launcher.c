/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of launcher: what each launcher says, in environments as they set them, and which one
 * counts where there are several. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/launcher.h"

static struct wf_launcher launcher;

static void
detect(const char *const *variables, enum wf_launcher_role role, const char *root)
{
	const struct wf_launcher_source source = {.variables = variables, .root = root};
	wf_launcher_detect(&source, role, &launcher);
}

/* NULL: nothing is said. */
static void
says(enum wf_launcher_fact fact, const char *value)
{
	const struct wf_launcher_finding *finding = wf_launcher_find(&launcher, fact);
	if (value == NULL) {
		assert_null(finding);
		return;
	}
	assert_non_null(finding);
	assert_string_equal(finding->value, value);
}

static void
is_place(const char *rank, const char *size, const char *pservers, const char *port)
{
	says(WF_FACT_RANK, rank);
	says(WF_FACT_SIZE, size);
	says(WF_FACT_PSERVERS, pservers);
	says(WF_FACT_PORT, port);
}

/* The reason why what this variable says is not used. */
static const char *
ignored(const char *variable)
{
	for (unsigned i = 0; i < launcher.count; i++) {
		const struct wf_launcher_finding *finding = &launcher.finding[i];
		size_t bytes = strlen(variable);
		if (strncmp(finding->text, variable, bytes) == 0 && finding->text[bytes] == '=' &&
		    finding->ignored != NULL) {
			return finding->ignored;
		}
	}
	return "";
}

static void
without_a_launcher_nothing_is_said(void **state)
{
	static const char *const none[] = {"HOME=/root", "SLURM_PROCID=0", "SLURM_NTASKS=4", NULL};

	detect(none, WF_ROLE_UNKNOWN, NULL);
	assert_int_equal(launcher.count, 0);
	assert_int_equal(launcher.role, WF_ROLE_TRAINER);
}

static const char *const mpirun[] = {"OMPI_COMM_WORLD_RANK=3",  "OMPI_COMM_WORLD_SIZE=4",
				     "OMPI_NUM_APP_CTX=1",      "OMPI_APP_CTX_NUM_PROCS=4",
				     "OMPI_MCA_orte_app_num=0", NULL};
/* mpirun -np 2 weft pserver : -np 4 weft train: rank 2 is the first trainer. */
static const char *const programs[] = {"OMPI_COMM_WORLD_RANK=3",  "OMPI_COMM_WORLD_SIZE=6",
				       "OMPI_NUM_APP_CTX=2",      "OMPI_APP_CTX_NUM_PROCS=2 4",
				       "OMPI_MCA_orte_app_num=1", NULL};

static void
open_mpi_says_rank_and_size(void **state)
{
	detect(mpirun, WF_ROLE_TRAINER, NULL);
	is_place("3", "4", NULL, NULL);
	assert_string_equal(launcher.finding[0].launcher, "Open MPI");
	assert_ptr_equal(wf_launcher_find_setting(&launcher, "trainer_id"), &launcher.finding[0]);
	assert_null(wf_launcher_find_setting(&launcher, "role"));
	assert_null(wf_launcher_find_setting(&launcher, "pin"));

	/* An mpirun of pservers counts pservers. */
	detect(mpirun, WF_ROLE_PSERVER, NULL);
	is_place(NULL, NULL, NULL, NULL);
	assert_string_equal(ignored("OMPI_COMM_WORLD_RANK"), "this process is no trainer");
}

/* On one host pserver 0 is here, on several it has to be given. */
static void
open_mpi_on_several_hosts_names_none(void **state)
{
	static const char *const several[] = {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2",
					      "OMPI_MCA_orte_num_nodes=2", NULL};
	static const char *const one[] = {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2",
					  "OMPI_MCA_orte_num_nodes=1", NULL};

	detect(several, WF_ROLE_TRAINER, NULL);
	is_place("1", "2", NULL, NULL);
	assert_non_null(strstr(ignored("OMPI_MCA_orte_num_nodes"), "not which"));
	detect(one, WF_ROLE_TRAINER, NULL);
	is_place("1", "2", NULL, NULL);
	assert_string_equal(ignored("OMPI_MCA_orte_num_nodes"), "");
}

static void
each_program_of_one_mpirun_counts_by_itself(void **state)
{
	static const char *const first[] = {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=6",
					    "OMPI_APP_CTX_NUM_PROCS=2 4", "OMPI_MCA_orte_app_num=0",
					    NULL};
	static const char *const three[] = {"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=6",
					    "OMPI_APP_CTX_NUM_PROCS=2 3 1",
					    "OMPI_MCA_orte_app_num=0", NULL};
	static const char *const broken[] = {"OMPI_COMM_WORLD_RANK=5", "OMPI_COMM_WORLD_SIZE=6",
					     "OMPI_APP_CTX_NUM_PROCS=2 3 -1",
					     "OMPI_MCA_orte_app_num=2", NULL};

	detect(programs, WF_ROLE_TRAINER, NULL);
	is_place("1", "4", NULL, NULL);
	detect(first, WF_ROLE_PSERVER, NULL);
	is_place(NULL, "4", NULL, NULL);
	detect(three, WF_ROLE_PSERVER, NULL);
	is_place(NULL, NULL, NULL, NULL);
	detect(broken, WF_ROLE_TRAINER, NULL);
	is_place("5", "6", NULL, NULL);
}

static const char *const srun[] = {"SLURM_STEP_ID=0",
				   "SLURM_PROCID=2",
				   "SLURM_NTASKS=5",
				   "SLURM_STEP_NUM_TASKS=3",
				   "SLURM_JOB_NODELIST=n[08-10]",
				   NULL};

static void
slurm_says_rank_size_and_the_first_host(void **state)
{
	static const char *const one[] = {"SLURM_STEP_ID=0", "SLURM_PROCID=2", "SLURM_NTASKS=5",
					  "SLURM_JOB_NODELIST=n7", NULL};
	static const char *const broken[] = {"SLURM_STEP_ID=0", "SLURM_PROCID=2", "SLURM_NTASKS=0",
					     "SLURM_JOB_NODELIST=n[7", NULL};
	static const char *const large[] = {"SLURM_STEP_ID=0", "SLURM_PROCID=2", "SLURM_NTASKS=5",
					    "SLURM_JOB_NODELIST=node[00001-02000]", NULL};
	static const char *const mixed[] = {"SLURM_STEP_ID=0",
					    "SLURM_PROCID=2",
					    "SLURM_NTASKS=5",
					    "SLURM_HET_SIZE=2",
					    "SLURM_JOB_NODELIST=b",
					    "SLURM_NODELIST=b",
					    "SLURM_JOB_NODELIST_HET_GROUP_0=a[1-2]",
					    NULL};

	detect(srun, WF_ROLE_TRAINER, NULL);
	is_place("2", "3", "n08", NULL);
	detect(one, WF_ROLE_TRAINER, NULL);
	is_place("2", "5", NULL, NULL);
	detect(broken, WF_ROLE_TRAINER, NULL);
	is_place("2", NULL, NULL, NULL);
	assert_string_equal(ignored("SLURM_NTASKS"), "it is not a number from 1");
	assert_string_equal(ignored("SLURM_JOB_NODELIST"), "it is not a list of hosts");
	detect(large, WF_ROLE_TRAINER, NULL);
	is_place("2", "5", "node00001", NULL);
	detect(mixed, WF_ROLE_TRAINER, NULL);
	is_place(NULL, NULL, "a1", NULL);
	assert_non_null(strstr(ignored("SLURM_PROCID"), "heterogeneous"));
}

/* A job of 1 and 3 tasks on one and two nodes, as Slurm 22.05 says it in its steps. */
#define HET_JOB                                                                                    \
	"SLURM_STEP_ID=0", "SLURM_HET_SIZE=2", "SLURM_JOB_NUM_NODES_HET_GROUP_0=1",                \
		"SLURM_JOB_NUM_NODES_HET_GROUP_1=2", "SLURM_JOB_NODELIST_HET_GROUP_0=n1",          \
		"SLURM_JOB_NODELIST_HET_GROUP_1=n[2-3]"
#define HET_STEP(rank, per_node)                                                                   \
	{                                                                                          \
		HET_JOB, "SLURM_PROCID=" rank, "SLURM_JOB_NODELIST=n[1-3]",                        \
			"SLURM_STEP_NUM_TASKS=4", "SLURM_STEP_TASKS_PER_NODE=" per_node, NULL      \
	}

static void
a_step_over_two_components_counts_each_by_itself(void **state)
{
	static const char *const first[] = HET_STEP("0", "1,2,1");
	static const char *const second[] = HET_STEP("1", "1,2,1");
	static const char *const last[] = HET_STEP("3", "1,2,1");
	static const char *const repeated[] = HET_STEP("5", "2(x3)");
	static const char *const beyond[] = HET_STEP("4", "1,2,1");

	detect(first, WF_ROLE_PSERVER, NULL);
	is_place(NULL, "3", "n1", NULL);
	detect(second, WF_ROLE_TRAINER, NULL);
	is_place("0", "3", "n1", NULL);
	detect(last, WF_ROLE_TRAINER, NULL);
	is_place("2", "3", "n1", NULL);
	detect(repeated, WF_ROLE_TRAINER, NULL);
	is_place("3", "4", "n1", NULL);
	detect(beyond, WF_ROLE_TRAINER, NULL);
	is_place(NULL, NULL, "n1", NULL);
	assert_non_null(strstr(ignored("SLURM_PROCID"), "not clear"));
}

static void
a_step_of_one_component_is_an_ordinary_one(void **state)
{
	static const char *const part[] = {HET_JOB,
					   "SLURM_PROCID=2",
					   "SLURM_JOB_NODELIST=n[2-3]",
					   "SLURM_STEP_NUM_TASKS=3",
					   "SLURM_STEP_TASKS_PER_NODE=2,1",
					   NULL};
	/* Both components on one host: a step over both looks like a step of one. */
	static const char *const same[] = {"SLURM_STEP_ID=0",
					   "SLURM_HET_SIZE=2",
					   "SLURM_JOB_NUM_NODES_HET_GROUP_0=1",
					   "SLURM_JOB_NUM_NODES_HET_GROUP_1=1",
					   "SLURM_JOB_NODELIST_HET_GROUP_0=n1",
					   "SLURM_JOB_NODELIST_HET_GROUP_1=n1",
					   "SLURM_JOB_NODELIST=n1",
					   "SLURM_PROCID=1",
					   "SLURM_STEP_NUM_TASKS=4",
					   "SLURM_STEP_TASKS_PER_NODE=4",
					   NULL};

	detect(part, WF_ROLE_TRAINER, NULL);
	is_place("2", "3", "n1", NULL);
	detect(part, WF_ROLE_PSERVER, NULL);
	is_place(NULL, NULL, "n1", NULL);
	detect(same, WF_ROLE_TRAINER, NULL);
	is_place(NULL, NULL, NULL, NULL);
}

/* mpirun in a batch script forks the ranks of its own host; Slurm starts the others. */
static void
all_ranks_of_an_mpirun_in_a_job_of_slurm_get_its_first_host(void **state)
{
	static const char *const here[] = {
		"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=4",    "SLURM_PROCID=0",
		"SLURM_NTASKS=8",         "SLURM_JOB_NODELIST=n[1-4]", NULL};
	static const char *const there[] = {"OMPI_COMM_WORLD_RANK=2",
					    "OMPI_COMM_WORLD_SIZE=4",
					    "SLURM_STEP_ID=0",
					    "SLURM_PROCID=1",
					    "SLURM_STEP_NUM_TASKS=3",
					    "SLURM_JOB_NODELIST=n[1-4]",
					    NULL};

	detect(here, WF_ROLE_TRAINER, NULL);
	is_place("0", "4", "n1", NULL);
	detect(there, WF_ROLE_TRAINER, NULL);
	is_place("2", "4", "n1", NULL);
	detect(here + 2, WF_ROLE_TRAINER, NULL);
	assert_int_equal(launcher.count, 0);
}

static void
malformed_tasks_of_nodes_are_not_used(void **state)
{
	static const char *const lists[] = {
		"1,2",    "1,2,1,1", "1,,1",  "1,2,1,",   "1(x,2",       "1(x3",        "x",
		"1,2,-1", "1 2 1",   "1(x0)", "1(x2),1b", "1234567,1,1", "1(x99999999)"};

	for (size_t i = 0; i < WF_ARRAY_COUNT(lists); i++) {
		char per_node[64];
		const char *variables[] = {
			HET_JOB,          "SLURM_PROCID=1", "SLURM_JOB_NODELIST=n[1-3]",
			"SLURM_NTASKS=4", per_node,         NULL};
		snprintf(per_node, sizeof(per_node), "SLURM_STEP_TASKS_PER_NODE=%s", lists[i]);
		detect(variables, WF_ROLE_TRAINER, NULL);
		is_place(NULL, NULL, "n1", NULL);
	}
}

/* 4,294 nodes of 999,999 tasks and one of 971,592 have 2^32 + 2 tasks, which a 32-bit sum counts as
 * 2. */
static void
more_tasks_than_ranks_can_number_are_not_used(void **state)
{
	static const char *const wraps[] = {"SLURM_STEP_ID=0",
					    "SLURM_HET_SIZE=2",
					    "SLURM_JOB_NUM_NODES_HET_GROUP_0=1",
					    "SLURM_JOB_NUM_NODES_HET_GROUP_1=4295",
					    "SLURM_JOB_NODELIST=n[1-4296]",
					    "SLURM_PROCID=1",
					    "SLURM_STEP_TASKS_PER_NODE=1,999999(x4294),971592",
					    NULL};

	detect(wraps, WF_ROLE_TRAINER, NULL);
	is_place(NULL, NULL, "n1", NULL);
	assert_non_null(strstr(ignored("SLURM_PROCID"), "not clear"));
}

static void
torchrun_says_rank_size_and_host(void **state)
{
	static const char *const variables[] = {"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=node7",
						"MASTER_PORT=29500", NULL};
	static const char *const v6[] = {"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=fd00::7", NULL};

	detect(variables, WF_ROLE_TRAINER, NULL);
	is_place("1", "2", "node7", NULL);
	detect(v6, WF_ROLE_TRAINER, NULL);
	is_place("1", "2", "[fd00::7]", NULL);
}

/* Programs of PyTorch are also started with these two alone. */
static void
parts_of_what_torchrun_sets_are_ignored_with_the_reason(void **state)
{
	static const char *const variables[] = {"RANK=1", "WORLD_SIZE=2", NULL};
	static const char *const one[] = {"WORLD_SIZE=", "MASTER_ADDR=node7", NULL};
	static const char *const inside[] = {"RANK=1", "WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=3",
					     "OMPI_COMM_WORLD_SIZE=4", NULL};

	detect(variables, WF_ROLE_TRAINER, NULL);
	is_place(NULL, NULL, NULL, NULL);
	assert_int_equal(launcher.count, 2);
	assert_non_null(strstr(ignored("RANK"), "where RANK, WORLD_SIZE and MASTER_ADDR are all"));
	assert_non_null(strstr(ignored("WORLD_SIZE"), "MASTER_ADDR are all set"));
	detect(one, WF_ROLE_TRAINER, NULL);
	is_place(NULL, NULL, NULL, NULL);
	assert_non_null(strstr(ignored("MASTER_ADDR"), "RANK, WORLD_SIZE and MASTER_ADDR"));
	detect(inside, WF_ROLE_TRAINER, NULL);
	is_place("3", "4", NULL, NULL);
}

/* As the original's document for Volcano has them. */
static void
a_paddle_job_says_everything(void **state)
{
	static const char *const trainer[] = {"TRAINING_ROLE=TRAINER",
					      "PADDLE_TRAINING_ROLE=TRAINER",
					      "PADDLE_TRAINER_ID=1",
					      "PADDLE_TRAINERS_NUM=2",
					      "PADDLE_TRAINERS=10.0.0.1,10.0.0.2",
					      "PADDLE_PSERVERS=10.0.0.3,10.0.0.4",
					      "PADDLE_PORT=30236",
					      "PADDLE_CURRENT_IP=10.0.0.1",
					      NULL};
	static const char *const pserver[] = {"PADDLE_TRAINING_ROLE=pserver",
					      "PADDLE_TRAINER_ID=1",
					      "PADDLE_TRAINERS=2",
					      "PADDLE_PSERVERS=2",
					      "PADDLE_PSERVER_IPS=10.0.0.3,10.0.0.4",
					      "PADDLE_PORT=70000",
					      NULL};
	static const char *const strange[] = {"TRAINING_ROLE=HETER_TRAINER",
					      "PADDLE_TRAINER_ENDPOINTS=a:1,b:1,c:1", NULL};

	detect(trainer, WF_ROLE_UNKNOWN, NULL);
	assert_int_equal(launcher.role, WF_ROLE_TRAINER);
	says(WF_FACT_ROLE, "trainer");
	is_place("1", "2", "10.0.0.3,10.0.0.4", "30236");
	detect(pserver, WF_ROLE_UNKNOWN, NULL);
	assert_int_equal(launcher.role, WF_ROLE_PSERVER);
	is_place(NULL, "2", "10.0.0.3,10.0.0.4", NULL);
	says(WF_FACT_PSERVER_COUNT, "2");
	assert_string_equal(ignored("PADDLE_PORT"), "it is not a port number");
	detect(strange, WF_ROLE_UNKNOWN, NULL);
	assert_int_equal(launcher.role, WF_ROLE_TRAINER);
	is_place(NULL, "3", NULL, NULL);
	assert_non_null(strstr(ignored("TRAINING_ROLE"), "neither"));
}

/* Of a pserver alone, and only what is an address; POD_IP is that of many other pods. */
static void
a_pserver_of_a_paddle_job_has_its_own_address(void **state)
{
	static const char *const own[] = {"PADDLE_CURRENT_IP=fd00::7", "POD_IP=10.0.0.9",
					  "TRAINING_ROLE=PSERVER", NULL};
	static const char *const name[] = {"PADDLE_CURRENT_IP=host7", NULL};
	static const char *const pod[] = {"POD_IP=10.0.0.9", NULL};
	static const char *const job[] = {"POD_IP=10.0.0.9", "PADDLE_TRAINING_ROLE=PSERVER", NULL};

	detect(own, WF_ROLE_UNKNOWN, NULL);
	says(WF_FACT_LISTEN, "fd00::7");
	assert_non_null(wf_launcher_find_setting(&launcher, "listen"));
	detect(own, WF_ROLE_TRAINER, NULL);
	says(WF_FACT_LISTEN, NULL);
	assert_string_equal(ignored("PADDLE_CURRENT_IP"), "this process is no pserver");
	detect(name, WF_ROLE_PSERVER, NULL);
	says(WF_FACT_LISTEN, NULL);
	assert_string_equal(ignored("PADDLE_CURRENT_IP"), "it is not an IP address");
	detect(pod, WF_ROLE_PSERVER, NULL);
	assert_int_equal(launcher.count, 0);
	detect(job, WF_ROLE_PSERVER, NULL);
	says(WF_FACT_LISTEN, "10.0.0.9");
}

/* Returns whether the list of pservers may be used. */
static bool
fits(const char *count, const char *list)
{
	const char *const variables[] = {count, list, NULL};
	detect(variables, WF_ROLE_TRAINER, NULL);
	const struct wf_launcher_finding *said = wf_launcher_find(&launcher, WF_FACT_PSERVERS);
	assert_non_null(said);
	return wf_launcher_check(&launcher, said) == WEFT_OK;
}

static void
the_number_of_pservers_has_to_fit_their_list(void **state)
{
	static const char *const alone[] = {"PADDLE_PSERVERS_NUM=2", NULL};

	assert_true(fits("PADDLE_PSERVERS_NUM=2", "PADDLE_PSERVERS=a,b"));
	assert_true(fits("PADDLE_PSERVERS=2", "PADDLE_PSERVER_IPS=10.0.0.1,10.0.0.2"));
	assert_true(fits("PADDLE_PSERVERS_NUM=two", "PADDLE_PSERVERS=a"));
	assert_false(fits("PADDLE_PSERVERS_NUM=3", "PADDLE_PSERVER_IPS=10.0.0.1,10.0.0.2"));
	assert_non_null(strstr(wf_error_record()->text, "PADDLE_PSERVERS_NUM=3 does not fit "
							"PADDLE_PSERVER_IPS=10.0.0.1,10.0.0.2, a "
							"list of 2"));
	detect(alone, WF_ROLE_TRAINER, NULL);
	says(WF_FACT_PSERVER_COUNT, NULL);
	assert_string_equal(ignored("PADDLE_PSERVERS_NUM"),
			    "it says how many there are, not where");
}

static void
write_hosts(const char *root, const char *text)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/etc", root);
	(void)mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/etc/volcano", root);
	(void)mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/etc/volcano/pserver.host", root);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void
remove_hosts(const char *root)
{
	static const char *const parts[] = {"/etc/volcano/pserver.host", "/etc/volcano", "/etc",
					    ""};
	for (size_t i = 0; i < WF_ARRAY_COUNT(parts); i++) {
		char path[256];
		snprintf(path, sizeof(path), "%s%s", root, parts[i]);
		assert_int_equal(remove(path), 0);
	}
}

static void
volcano_says_hosts_by_variable_or_file(void **state)
{
	static const char *const variables[] = {"VC_TASK_INDEX=1", "VC_TRAINER_NUM=3",
						"VC_PSERVER_HOSTS=j-pserver-0.j,j-pserver-1.j",
						NULL};
	static const char *const old[] = {"VK_TASK_INDEX=2", "VC_TRAINER_HOSTS=t-0.j,t-1.j,t-2.j",
					  NULL};
	char root[] = "/tmp/weft_launcher_XXXXXX";

	detect(variables, WF_ROLE_TRAINER, "/nonexistent");
	is_place("1", "3", "j-pserver-0.j,j-pserver-1.j", NULL);
	assert_non_null(mkdtemp(root));
	write_hosts(root, "p-0.j\np-1.j\n");
	detect(old, WF_ROLE_TRAINER, root);
	is_place("2", "3", "p-0.j,p-1.j", NULL);
	detect(old, WF_ROLE_PSERVER, root);
	is_place(NULL, "3", "p-0.j,p-1.j", NULL);
	write_hosts(root, "\r\np-0.j\r\n\np-1.j\r\np-2.j");
	detect(old, WF_ROLE_TRAINER, root);
	is_place("2", "3", "p-0.j,p-1.j,p-2.j", NULL);
	write_hosts(root, "\n\r\n");
	detect(old, WF_ROLE_TRAINER, root);
	says(WF_FACT_PSERVERS, NULL);
	write_hosts(root, "");
	detect(old, WF_ROLE_TRAINER, root);
	says(WF_FACT_PSERVERS, NULL);
	remove_hosts(root);
}

/* Without HOSTNAME nobody knows which of two tasks is this one's. */
static void
tasks_of_any_name_are_found_by_the_name_of_the_host(void **state)
{
	static const char *const worker[] = {"VC_TASK_INDEX=1",
					     "VC_MY_PS_HOSTS=j-my-ps-0.j",
					     "VC_WORKER_HOSTS=j-w-0.j,j-w-1.j",
					     "HOSTNAME=j-w-1",
					     "VC__HOSTS=x",
					     NULL};
	static const char *const lost[] = {"VC_TASK_INDEX=1", "VC_PS_HOSTS=j-ps-0.j",
					   "VC_WORKER_HOSTS=j-w-0.j,j-w-11.j", "HOSTNAME=j-w-1",
					   NULL};
	static const char *const one[] = {"VC_TASK_INDEX=1", "VC_W_HOSTS=j-w-0.j,j-w-1.j",
					  "HOSTNAME=j-w-1", NULL};

	(void)state;
	detect(worker, WF_ROLE_TRAINER, NULL);
	is_place("1", "2", "j-my-ps-0.j", NULL);
	detect(worker, WF_ROLE_PSERVER, NULL);
	is_place(NULL, "1", "j-w-0.j,j-w-1.j", NULL);
	detect(lost, WF_ROLE_TRAINER, NULL);
	is_place("1", NULL, NULL, NULL);
	assert_non_null(strstr(ignored("VC_PS_HOSTS"), "HOSTNAME is in no list"));
	detect(one, WF_ROLE_TRAINER, NULL);
	is_place("1", NULL, NULL, NULL);
	assert_non_null(strstr(ignored("VC_W_HOSTS"), "other than two tasks"));
}

static void
an_indexed_job_says_the_rank(void **state)
{
	static const char *const variables[] = {"JOB_COMPLETION_INDEX=4", NULL};

	detect(variables, WF_ROLE_TRAINER, NULL);
	is_place("4", NULL, NULL, NULL);
}

/* mpirun in a job of Slurm, in a pod of Volcano: each fact by the one that is nearest. */
static void
of_several_the_innermost_counts(void **state)
{
	static const char *const variables[] = {"VC_TASK_INDEX=7",        "VC_PSERVER_HOSTS=p-0",
						"SLURM_STEP_ID=0",        "SLURM_PROCID=0",
						"SLURM_NTASKS=1",         "OMPI_COMM_WORLD_RANK=3",
						"OMPI_COMM_WORLD_SIZE=4", NULL};
	static const char *const broken[] = {"SLURM_STEP_ID=0", "SLURM_PROCID=0", "SLURM_NTASKS=1",
					     "OMPI_COMM_WORLD_RANK=-3", NULL};

	detect(variables, WF_ROLE_TRAINER, NULL);
	is_place("3", "4", "p-0", NULL);
	assert_string_equal(ignored("SLURM_PROCID"), "another variable above counts");
	assert_string_equal(ignored("VC_TASK_INDEX"), "another variable above counts");
	detect(broken, WF_ROLE_TRAINER, NULL);
	is_place("0", "1", NULL, NULL);
	assert_string_equal(ignored("OMPI_COMM_WORLD_RANK"), "it is not a number");
}

static void
no_environment_is_too_large(void **state)
{
	static char list[WF_LAUNCHER_TEXT_BYTES + 64] = "PADDLE_PSERVERS=";
	static const char *const variables[] = {list, "PADDLE_TRAINERS=7", NULL};

	memset(list + strlen(list), 'a', sizeof(list) - strlen(list) - 1);
	detect(variables, WF_ROLE_TRAINER, NULL);
	is_place(NULL, "7", NULL, NULL);
	assert_string_equal(ignored("PADDLE_PSERVERS"), "it is too long");
}

/* The first list fills the room for texts to the last byte; what is found after it is left out. */
static void
nothing_is_written_behind_the_texts(void **state)
{
	static char list[WF_LAUNCHER_TEXT_BYTES] = "PADDLE_PSERVERS=";
	static const char *const variables[] = {list, "PADDLE_PORT=7164", NULL};
	static struct {
		struct wf_launcher launcher;
		unsigned char behind[8];
	} out;
	const struct wf_launcher_source source = {.variables = variables};

	memset(list + strlen(list), 'a', sizeof(list) - strlen(list) - 1);
	memset(out.behind, 0xff, sizeof(out.behind));
	wf_launcher_detect(&source, WF_ROLE_TRAINER, &out.launcher);
	assert_int_equal(out.launcher.text_used, WF_LAUNCHER_TEXT_BYTES);
	assert_int_equal(out.launcher.count, 1);
	for (size_t i = 0; i < sizeof(out.behind); i++) {
		assert_int_equal(out.behind[i], 0xff);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_launcher_nothing_is_said),
		cmocka_unit_test(open_mpi_says_rank_and_size),
		cmocka_unit_test(open_mpi_on_several_hosts_names_none),
		cmocka_unit_test(each_program_of_one_mpirun_counts_by_itself),
		cmocka_unit_test(slurm_says_rank_size_and_the_first_host),
		cmocka_unit_test(a_step_over_two_components_counts_each_by_itself),
		cmocka_unit_test(a_step_of_one_component_is_an_ordinary_one),
		cmocka_unit_test(all_ranks_of_an_mpirun_in_a_job_of_slurm_get_its_first_host),
		cmocka_unit_test(malformed_tasks_of_nodes_are_not_used),
		cmocka_unit_test(more_tasks_than_ranks_can_number_are_not_used),
		cmocka_unit_test(torchrun_says_rank_size_and_host),
		cmocka_unit_test(parts_of_what_torchrun_sets_are_ignored_with_the_reason),
		cmocka_unit_test(a_paddle_job_says_everything),
		cmocka_unit_test(a_pserver_of_a_paddle_job_has_its_own_address),
		cmocka_unit_test(the_number_of_pservers_has_to_fit_their_list),
		cmocka_unit_test(volcano_says_hosts_by_variable_or_file),
		cmocka_unit_test(tasks_of_any_name_are_found_by_the_name_of_the_host),
		cmocka_unit_test(an_indexed_job_says_the_rank),
		cmocka_unit_test(of_several_the_innermost_counts),
		cmocka_unit_test(no_environment_is_too_large),
		cmocka_unit_test(nothing_is_written_behind_the_texts),
	};

	return cmocka_run_group_tests_name("base_launcher", tests, NULL, NULL);
}
