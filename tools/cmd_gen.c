/* SPDX-License-Identifier: Apache-2.0 */
/* weft gen: a script or manifest that starts a job on a cluster's own engine. It writes text and
 * starts nothing. Thread: main, the only one. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/settings.h"
#include "tools/command.h"
#include "tools/gen/job.h"
#include "tools/gen/secret.h"
#include "tools/gen/submit.h"
#include "tools/launch/split.h"
#include "tools/launch/train_options.h"

#define PROGRAM "weft gen"
#define POSITIONAL_MAX 2 /* the kind; the client's package */

#define FIELD(name) offsetof(struct wf_gen_settings, name)
#define SETTING(field)                                                                             \
	.name = #field, .is_setting = true, .offset = FIELD(field),                                \
	.bytes = sizeof(((struct wf_gen_settings *)NULL)->field)
#define TEXT(field) .name = #field, .type = WF_OPTION_STRING, .offset = FIELD(field)
#define NUMBER(field)                                                                              \
	.name = #field, .type = WF_OPTION_U64, .offset = FIELD(field),                             \
	.bytes = sizeof(((struct wf_gen_settings *)NULL)->field)

#define HEADING_JOB "Job"
#define HEADING_MANIFEST "Volcano and JobSet"
#define HEADING_SCRIPT "Slurm and MPI"

static const struct wf_option table[] = {
	{TEXT(job_name), .initial = "weft", .metavar = "NAME", .heading = HEADING_JOB,
	 .help = "Name of the job, which its processes get, too; in a manifest the names of its "
		 "hosts begin with it."},
	{NUMBER(pservers), .initial = "0", .max = 1024, .heading = HEADING_JOB,
	 .help = "Number of pservers. 0: as many as trainers."},
	{NUMBER(trainers), .initial = "1", .min = 1, .max = WF_GEN_TRAINERS_MAX,
	 .heading = HEADING_JOB, .help = "Number of trainers."},
	{NUMBER(port), .initial = "7164", .min = 1, .max = 65535, .heading = HEADING_JOB,
	 .help = "Port of the first lane of each pserver."},
	{SETTING(ports_num)},
	{SETTING(ports_num_for_sparse)},
	{TEXT(listen), .initial = "0.0.0.0", .metavar = "ADDR", .heading = HEADING_JOB,
	 .help = "Address on which pservers listen; :: where hosts have IPv6 alone."},
	{TEXT(weft), .initial = "weft", .metavar = "PATH", .heading = HEADING_JOB,
	 .help = "The program weft where the job runs."},
	{TEXT(entry), .metavar = "COMMAND", .heading = HEADING_JOB,
	 .help = "Command line of each trainer for sh, in place of what follows --. It gets "
		 "PADDLE_INIT_TRAINER_ID and PADDLE_INIT_NUM_GRADIENT_SERVERS."},
	{TEXT(workdir), .metavar = "DIR", .heading = HEADING_JOB,
	 .help = "Folder in which the trainers' program starts."},
	{NUMBER(num_passes), .max = 1000000000, .heading = HEADING_JOB,
	 .help = "Number of passes, for the trainers as PADDLE_INIT_NUM_PASSES. 0: not set."},
	{TEXT(env), .metavar = "NAME=VALUE", .heading = HEADING_JOB,
	 .help = "A variable of all processes of the job, such as WEFT_STATS_PERIOD=10s; may be "
		 "given several times."},
	{TEXT(secret_file), .metavar = "FILE", .heading = HEADING_JOB,
	 .help = "The job's secret, for pservers and trainers. In a script: a file on every host. "
		 "In a manifest: a file here, of which a command in the manifest's first lines "
		 "makes the object that it names; containers have to run as root to read it."},
	{TEXT(out), .metavar = "FILE", .heading = HEADING_JOB,
	 .help = "Write to this file, which must not exist yet, instead of stdout."},
	{TEXT(image), .metavar = "IMAGE", .heading = HEADING_MANIFEST,
	 .help = "Container image with weft and the trainers' program. Required."},
	{TEXT(registry), .metavar = "NAME", .heading = HEADING_MANIFEST,
	 .help = "Secret with which the image is pulled."},
	{TEXT(cpu), .metavar = "N", .heading = HEADING_MANIFEST,
	 .help = "Cores of each trainer; also for Slurm."},
	{TEXT(memory), .metavar = "BYTES", .heading = HEADING_MANIFEST,
	 .help = "Memory of each trainer, such as 1Gi."},
	{NUMBER(gpu), .max = 1024, .heading = HEADING_MANIFEST,
	 .help = "GPUs of each trainer, for a program that uses them (nvidia.com/gpu)."},
	{TEXT(pscpu), .metavar = "N", .heading = HEADING_MANIFEST,
	 .help = "Cores of each pserver; also for Slurm. A lane uses one."},
	{TEXT(psmemory), .metavar = "BYTES", .heading = HEADING_MANIFEST,
	 .help = "Memory of each pserver."},
	{TEXT(volume), .metavar = "VOLUME", .heading = HEADING_MANIFEST,
	 .help = "pvc:CLAIM:/path or host:/folder:/path, with :ro at the end if nobody writes "
		 "there; may be given several times. All pods have it."},
	{.name = "secret",
	 .type = WF_OPTION_BOOL,
	 .offset = FIELD(secret),
	 .heading = HEADING_MANIFEST,
	 .help = "Write a new secret for the job into the manifest, which is to be kept from "
		 "others "
		 "then; --out makes a file that only its owner reads."},
	{NUMBER(restarts), .initial = "3", .max = 1000000, .heading = HEADING_MANIFEST,
	 .help = "How often the job starts again, as a whole, when a process fails or its host is "
		 "lost. It does not after a wrong option, bad data or a missing permission."},
	{TEXT(queue), .metavar = "NAME", .heading = HEADING_MANIFEST,
	 .help = "Queue of Volcano; also the partition of Slurm."},
	{.name = "save_on_term",
	 .type = WF_OPTION_BOOL,
	 .offset = FIELD(save_on_term),
	 .heading = HEADING_MANIFEST,
	 .help = "Give pservers and trainers --save_on_term and --term_grace: when the job is "
		 "stopped, trainer 0 saves first, if it has --save_dir. Also for Slurm."},
	{.name = "term_grace",
	 .type = WF_OPTION_DURATION,
	 .offset = FIELD(term_grace_ns),
	 .initial = "25s",
	 .min = WF_NS_PER_MS,
	 .max = 86400 * WF_NS_PER_S,
	 .heading = HEADING_MANIFEST,
	 .help = "How long processes have to end when they are stopped; 5 s more pass before they "
		 "are killed. Also for Slurm, with --time_limit."},
	{NUMBER(nodes), .max = 1000000, .heading = HEADING_SCRIPT,
	 .help = "Number of hosts, for Slurm. 0: Slurm decides."},
	{.name = "time_limit",
	 .type = WF_OPTION_DURATION,
	 .offset = FIELD(time_limit_ns),
	 .max = 366ull * 86400 * WF_NS_PER_S,
	 .heading = HEADING_SCRIPT,
	 .help = "The longest that the job may run, for Slurm, in whole minutes, such as "
		 "90m or 01:30:00. 0: no limit."},
	{TEXT(sbatch), .metavar = "OPTIONS", .heading = HEADING_SCRIPT,
	 .help = "Other options of sbatch, as one line of the script has them."},
	{TEXT(hostfile), .metavar = "FILE", .heading = HEADING_SCRIPT,
	 .help = "File of hosts for mpirun, if the script is run without one."},
};

/* Options that are not for all kinds. */
static const struct {
	const char *name;
	unsigned kinds;
} limited[] = {
	{"image", WF_GEN_MANIFESTS},
	{"registry", WF_GEN_MANIFESTS},
	{"cpu", WF_GEN_MANIFESTS | WF_GEN_SLURM},
	{"memory", WF_GEN_MANIFESTS},
	{"gpu", WF_GEN_MANIFESTS},
	{"pscpu", WF_GEN_MANIFESTS | WF_GEN_SLURM},
	{"psmemory", WF_GEN_MANIFESTS},
	{"volume", WF_GEN_MANIFESTS},
	{"secret", WF_GEN_MANIFESTS},
	{"restarts", WF_GEN_MANIFESTS},
	{"queue", WF_GEN_VOLCANO | WF_GEN_SLURM},
	{"save_on_term", WF_GEN_MANIFESTS | WF_GEN_SLURM},
	{"term_grace", WF_GEN_MANIFESTS | WF_GEN_SLURM},
	{"nodes", WF_GEN_SLURM},
	{"time_limit", WF_GEN_SLURM},
	{"sbatch", WF_GEN_SLURM},
	{"hostfile", WF_GEN_MPI},
};

static const struct {
	const char *name;
	enum wf_gen_kind kind;
} kinds[] = {
	{"slurm", WF_GEN_SLURM},
	{"mpi", WF_GEN_MPI},
	{"volcano", WF_GEN_VOLCANO},
	{"jobset", WF_GEN_JOBSET},
};

static const struct wf_help_group groups[] = {
	{.title = HEADING_JOB,
	 .options = "job_name pservers trainers port ports_num ports_num_for_sparse"},
	{.title = HEADING_MANIFEST},
	{.title = HEADING_SCRIPT},
};

static const struct wf_help help = {
	.usage = "weft gen slurm|mpi|volcano|jobset [options] -- train MODEL [its options]\n"
		 "       weft gen slurm|mpi|volcano|jobset [options] -- PROGRAM [arguments]",
	.about =
		"Writes the script or manifest that starts a job on a cluster: a batch script for "
		"Slurm, a script that calls mpirun, a Job of Volcano, or a JobSet of Kubernetes. "
		"It starts nothing: sbatch, bash and kubectl do that. Pservers and trainers then "
		"find their number, their count and each other in what the engine tells them; weft "
		"env shows it.\n\n"
		"The options of the original's client, paddlecloud submit, are understood as they "
		"were written (-jobname, -parallelism, -entry ...), with the package's folder as "
		"the last argument; those that have no meaning any more are refused with what "
		"replaces them.",
	.examples = "  weft gen slurm --pservers=2 --trainers=4 -- python3 train.py > job.sh\n"
		    "  weft gen volcano --pservers=2 --trainers=4 --image=registry/weft \\\n"
		    "       --volume=pvc:data:/data -- train ctr --data=/data/day_0 | \\\n"
		    "       kubectl apply -f -\n"
		    "  weft gen volcano -jobname ctr -parallelism 10 -pservers 3 -image IMAGE \\\n"
		    "       -entry \"python3 train.py\" /pfs/ctr_demo_package",
	.group = groups,
	.group_count = WF_ARRAY_COUNT(groups),
	.exit_codes = "   0  the text is written\n"
		      "  64  an option or argument is wrong\n"
		      "  70  an internal error\n"
		      "  74  output failed, or the file exists already",
};

struct command {
	struct wf_gen_job job;
	struct wf_option table[WF_ARRAY_COUNT(table)];
	enum wf_option_origin origin[WF_ARRAY_COUNT(table)];
	const char *env_name[WF_ARRAY_COUNT(table)];
	struct wf_option_file file;
	const char *positional[POSITIONAL_MAX];
	struct wf_args arguments;
	struct wf_options options;
};

/* --pservers is a number here; the variable of that name is a trainer's list of addresses. */
static void
drop_pservers_variable(void)
{
	unsetenv("WEFT_PSERVERS");
	unsetenv("PADDLE_INIT_PSERVERS");
}

static void
init(struct command *command)
{
	memcpy(command->table, table, sizeof(table));
	wf_settings_complete(command->table, WF_ARRAY_COUNT(table));
	command->options = (struct wf_options){
		.table = command->table,
		.option_count = (unsigned)WF_ARRAY_COUNT(table),
		.program = PROGRAM,
		.help = &help,
		.target = &command->job.set,
		.origin = command->origin,
		.env_name = command->env_name,
		.file = &command->file,
		.positional = command->positional,
		.positional_max = POSITIONAL_MAX,
	};
}

/* ---- checks ---- */

static enum weft_status
find_kind(const struct wf_options *options, enum wf_gen_kind *out)
{
	if (options->positional_count == 0) {
		return wf_fail(WEFT_INVALID, "the kind is missing: slurm, mpi, volcano or jobset");
	}
	for (size_t i = 0; i < WF_ARRAY_COUNT(kinds); i++) {
		if (strcmp(options->positional[0], kinds[i].name) == 0) {
			*out = kinds[i].kind;
			return WEFT_OK;
		}
	}
	return wf_fail(WEFT_INVALID, "'%.80s' is no kind; give slurm, mpi, volcano or jobset",
		       options->positional[0]);
}

/* "Slurm", or several with "and" */
static void
name_kinds(unsigned mask, char *out, size_t bytes)
{
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < WF_ARRAY_COUNT(kinds); i++) {
		if ((mask & kinds[i].kind) != 0 && used < bytes) {
			used += (size_t)snprintf(out + used, bytes - used, "%s%s",
						 used > 0 ? " and " : "", kinds[i].name);
		}
	}
}

/* An option that this kind has no use for is refused, unless it came from a file or variable that
 * others share. */
static enum weft_status
check_kind(const struct wf_options *options, const struct wf_gen_job *job)
{
	for (size_t i = 0; i < WF_ARRAY_COUNT(limited); i++) {
		const char *name = limited[i].name;
		bool is_given = wf_options_origin(options, name) == WF_ORIGIN_ARGUMENT;
		is_given = is_given || (strcmp(name, "volume") == 0 && job->volume_count > 0);
		bool is_zero = strcmp(name, "gpu") == 0 && job->set.gpu == 0;
		if (is_given && !is_zero && (limited[i].kinds & job->kind) == 0) {
			char names[64];
			name_kinds(limited[i].kinds, names, sizeof(names));
			return wf_fail(WEFT_INVALID, "--%s is for %s, not for %s", name, names,
				       options->positional[0]);
		}
	}
	return WEFT_OK;
}

/* What every trainer of the job would refuse, or take for the place of another one. */
static enum weft_status
check_built_in(const struct wf_gen_job *job)
{
	if (!job->is_built_in) {
		return WEFT_OK;
	}
	enum weft_status st =
		wf_train_options_check_model(job->program_count > 1 ? job->program[1] : NULL);
	return st == WEFT_OK
		       ? wf_split_check_trainer(job->program + 2, job->program_count - 2, "the job")
		       : st;
}

/* The client's last argument. */
static enum weft_status
apply_package(const struct wf_options *options, struct wf_gen_settings *set)
{
	if (options->positional_count < 2) {
		return WEFT_OK;
	}
	if (set->workdir != NULL && set->workdir[0] != '\0') {
		return wf_fail(WEFT_INVALID,
			       "'%.80s': --workdir is the folder of the program already; what "
			       "follows -- is the program",
			       options->positional[1]);
	}
	set->workdir = options->positional[1];
	return WEFT_OK;
}

/* ---- output ---- */

static enum weft_status
print(const struct wf_gen_job *job, FILE *out)
{
	if (job->kind == WF_GEN_VOLCANO) {
		return wf_gen_volcano(job, out);
	}
	if (job->kind == WF_GEN_JOBSET) {
		return wf_gen_jobset(job, out);
	}
	wf_gen_script(job, out);
	return WEFT_OK;
}

static enum weft_status
write_all(int fd, const char *name, const char *text, size_t bytes)
{
	while (bytes > 0) {
		ssize_t count = write(fd, text, bytes);
		if (count < 0 && errno == EINTR) {
			continue;
		}
		if (count <= 0) {
			return wf_fail_errno(WEFT_IO, errno, "%s: cannot be written", name);
		}
		text += count;
		bytes -= (size_t)count;
	}
	return WEFT_OK;
}

static enum weft_status
write_text(const struct wf_gen_settings *set, const char *text, size_t bytes)
{
	const char *path = set->out;
	mode_t mode = set->secret ? 0600 : 0666;

	if (path == NULL || path[0] == '\0') {
		return write_all(STDOUT_FILENO, "standard output", text, bytes);
	}
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "--out=%.200s: cannot be created", path);
	}
	enum weft_status st = write_all(fd, path, text, bytes);
	if (close(fd) != 0 && st == WEFT_OK) {
		st = wf_fail_errno(WEFT_IO, errno, "%s: cannot be written", path);
	}
	return st;
}

/* Nothing is written unless all of it can be. */
static enum weft_status
generate(const struct wf_gen_job *job)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	if (out == NULL) {
		return wf_fail(WEFT_NOMEM, "no memory for the text");
	}
	enum weft_status st = print(job, out);
	bool complete = ferror(out) == 0;
	if (fclose(out) != 0 || !complete) {
		st = wf_fail(WEFT_NOMEM, "no memory for the text");
	}
	if (st == WEFT_OK) {
		st = write_text(&job->set, text, bytes);
	}
	free(text);
	return st;
}

static enum weft_status
work(const struct wf_options *options)
{
	struct wf_gen_job *job = options->target; /* of which the settings are the first member */

	enum weft_status st = find_kind(options, &job->kind);
	if (st == WEFT_OK) {
		st = check_kind(options, job);
	}
	if (st == WEFT_OK) {
		st = apply_package(options, &job->set);
	}
	if (st == WEFT_OK) {
		st = wf_gen_job_settle(job);
	}
	if (st == WEFT_OK) {
		st = check_built_in(job);
	}
	if (st == WEFT_OK) {
		st = wf_gen_secret_make(job);
	}
	return st == WEFT_OK ? generate(job) : st;
}

static bool
wants_help(int argc, char *const *argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			return true;
		}
	}
	return false;
}

int
wf_cmd_gen(int argc, char **argv)
{
	static struct command command;
	int own = 1;

	while (own < argc && strcmp(argv[own], "--") != 0) {
		own++;
	}
	if (own < argc) {
		command.job.program = argv + own + 1;
		command.job.program_count = (unsigned)(argc - own - 1);
	}
	drop_pservers_variable();
	init(&command);
	if (wants_help(own, argv)) {
		return wf_command_print_help(&command.options);
	}
	enum weft_status st = wf_gen_read_arguments(&command.options, own, argv, &command.arguments,
						    &command.job);
	if (st != WEFT_OK) {
		return wf_command_fail(PROGRAM, st);
	}
	return wf_command_run(work, &command.options, (int)command.arguments.count,
			      command.arguments.argv);
}
