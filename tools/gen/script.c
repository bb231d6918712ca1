/* SPDX-License-Identifier: Apache-2.0 */
/* script: a job as a script for bash: the batch script of Slurm, or one that calls mpirun. Both
 * start one step for each pserver, on a host of its own while there are such, and one for all
 * trainers, whose number and count the engine gives them; base/launcher.c reads these. The script
 * knows the addresses of the pservers, and exports them. Thread: any one. */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/env.h"
#include "tools/gen/job.h"
#include "tools/gen/shell.h"

/* How the engine is called. */
struct engine {
	const char *hosts;       /* lines that make the array `hosts` */
	const char *no_hosts;    /* why it is empty */
	const char *single;      /* the words before a command that runs once, on "$host" */
	const char *rank, *size; /* its variables */
};

static const char slurm_hosts[] = "mapfile -t hosts < <(scontrol show hostnames "
				  "\"$SLURM_JOB_NODELIST\")\n";

/* A file of hosts as mpirun reads it: a name first in each line, "#" begins a comment. */
static const char mpi_hosts[] =
	"mpirun=(${MPIRUN:-mpirun} --bind-to none)   # MPIRUN='mpirun "
	"--oversubscribe', for example\n"
	"everywhere=()\n"
	"hosts=(127.0.0.1)\n"
	"if [ -n \"$hostfile\" ]; then\n"
	"\teverywhere=(--hostfile \"$hostfile\")\n"
	"\tmapfile -t hosts < <(sed 's/#.*//' \"$hostfile\" | awk 'NF && "
	"!seen[$1]++ { print $1 }')\n"
	"fi\n"
	"# An mpirun that ends removes the folder that all of a user's share, "
	"just as another\n"
	"# makes its own in there, which then fails: each has another one.\n"
	"folders=$(mktemp -d) || exit\n"
	"trap 'rm -rf -- \"$folders\"' EXIT\n";

static const struct engine slurm = {
	.hosts = slurm_hosts,
	.no_hosts = "Slurm names no hosts; start this script with sbatch",
	.single = "srun --overlap --nodes=1 --ntasks=1 --nodelist=\"$host\"",
	.rank = "SLURM_PROCID",
	.size = "SLURM_STEP_NUM_TASKS",
};
static const struct engine mpi = {
	.hosts = mpi_hosts,
	.no_hosts = "$hostfile: no host stands in this file",
	.single = "OMPI_MCA_orte_tmpdir_base=$folders/$i \"${mpirun[@]}\" -np 1 --host \"$host\"",
	.rank = "OMPI_COMM_WORLD_RANK",
	.size = "OMPI_COMM_WORLD_SIZE",
};

/* Who fails first ends the others within seconds by itself; what still runs then is stopped here.
 */
static const char ending[] =
	"trainers=$!\n"
	"\n"
	"# Ends with the trainers, or soon after the first pserver that fails.\n"
	"runs() { [[ $'\\n'$(jobs -rp)$'\\n' == *$'\\n'$1$'\\n'* ]]; }\n"
	"stop() { kill -TERM $(jobs -rp) 2>/dev/null; }\n"
	"trap stop INT TERM HUP\n"
	"first=0\n"
	"while runs \"$trainers\" && [ \"$first\" = 0 ]; do\n"
	"\tsleep 0.5\n"
	"\tfor pid in \"${pservers[@]}\"; do\n"
	"\t\truns \"$pid\" || wait \"$pid\" || first=$?\n"
	"\tdone\n"
	"done\n"
	"for ((i = 0; i < 10; i++)); do\n"
	"\t[ -n \"$(jobs -rp)\" ] || break\n"
	"\tsleep 0.5\n"
	"done\n"
	"stopped=0\n"
	"runs \"$trainers\" && stopped=1\n"
	"stop\n"
	"wait \"$trainers\"\n"
	"code=$?\n"
	"wait\n"
	"[ \"$stopped\" = 0 ] || code=$first\n"
	"exit \"$code\"\n";

static bool
is_given(const char *text)
{
	return text != NULL && text[0] != '\0';
}

/* ---- the top of the script ---- */

/* Without a host bash would skip the pservers, and start the trainers alone. */
static void
print_hosts(const struct engine *engine, FILE *out)
{
	fprintf(out,
		"%sif [ ${#hosts[@]} = 0 ]; then\n"
		"\techo \"%s\" >&2\n"
		"\texit 64\n"
		"fi\n",
		engine->hosts, engine->no_hosts);
}

/* A line that Slurm reads; it takes quotes as a shell does. */
static void
print_sbatch(FILE *out, const char *name, const char *value)
{
	fprintf(out, "#SBATCH --%s=", name);
	wf_shell_word(out, value);
	fputc('\n', out);
}

static void
print_time_limit(const struct wf_gen_job *job, FILE *out)
{
	uint64_t minute_ns = 60 * WF_NS_PER_S;
	uint64_t minutes = (job->set.time_limit_ns + minute_ns - 1) / minute_ns;

	fprintf(out, "#SBATCH --time=%" PRIu64 "-%02" PRIu64 ":%02" PRIu64 ":00\n", minutes / 1440,
		minutes / 60 % 24, minutes % 60);
	/* The signal goes to the steps, which then have that many seconds. */
	fprintf(out, "#SBATCH --signal=TERM@%" PRIu64 "\n", wf_gen_grace_s(job));
}

static void
print_slurm_head(const struct wf_gen_job *job, FILE *out)
{
	const struct wf_gen_settings *set = &job->set;

	fputs("# Submit it with: sbatch FILE\n", out);
	print_sbatch(out, "job-name", set->job_name);
	if (set->nodes > 0) {
		fprintf(out, "#SBATCH --nodes=%" PRIu64 "\n", set->nodes);
	}
	fprintf(out, "#SBATCH --ntasks=%" PRIu64 "\n", job->pservers + set->trainers);
	if (is_given(set->cpu)) {
		print_sbatch(out, "cpus-per-task", set->cpu);
	}
	if (is_given(set->queue)) {
		print_sbatch(out, "partition", set->queue);
	}
	if (set->time_limit_ns > 0) {
		print_time_limit(job, out);
	}
	if (is_given(set->sbatch)) {
		fprintf(out, "#SBATCH %s\n", set->sbatch);
	}
}

static void
print_mpi_head(const struct wf_gen_job *job, FILE *out)
{
	fputs("# Run it with: bash FILE [HOSTFILE]; without a file of hosts all runs on this one\n",
	      out);
	fputs("hostfile=${1:-", out);
	if (is_given(job->set.hostfile)) {
		wf_shell_word(out, job->set.hostfile);
	}
	fputs("}\n", out);
}

/* ---- the processes ---- */

static void
print_export(FILE *out, const char *name, size_t name_bytes, const char *value)
{
	fprintf(out, "export %.*s=", (int)name_bytes, name);
	wf_shell_word(out, value);
	fputc('\n', out);
}

static void
print_environment(const struct wf_gen_job *job, FILE *out)
{
	const struct wf_gen_settings *set = &job->set;

	fprintf(out,
		"export WEFT_PSERVERS=$addresses WEFT_PORT=%u WEFT_PORTS_NUM=%u "
		"WEFT_PORTS_NUM_FOR_SPARSE=%u\n",
		set->port, set->ports_num, set->ports_num_for_sparse);
	if (set->num_passes > 0) {
		fprintf(out, "export PADDLE_INIT_NUM_PASSES=%" PRIu64 "\n", set->num_passes);
	}
	if (is_given(set->workdir)) {
		fputs("cd -- ", out);
		wf_shell_word(out, set->workdir);
		fputs(" || exit\n", out);
	}
}

/* The user's own variables, which the pservers get, too. */
static void
print_variables(const struct wf_gen_job *job, FILE *out)
{
	print_export(out, "WEFT_JOB_NAME", strlen("WEFT_JOB_NAME"), job->set.job_name);
	if (is_given(job->set.secret_file)) {
		print_export(out, "WEFT_SECRET_FILE", strlen("WEFT_SECRET_FILE"),
			     job->set.secret_file);
	}
	if (job->set.save_on_term) { /* Slurm alone */
		uint64_t grace_ms = job->set.term_grace_ns / WF_NS_PER_MS;
		fprintf(out, "export WEFT_SAVE_ON_TERM=true WEFT_TERM_GRACE=%" PRIu64 "ms\n",
			grace_ms);
	}
	for (unsigned i = 0; i < job->variable_count; i++) {
		const struct wf_gen_variable *variable = &job->variable[i];
		print_export(out, variable->name, variable->name_bytes, variable->value);
	}
}

/* mpirun hands on what it is told to. */
static void
print_handed_on(const struct wf_gen_job *job, FILE *out, bool to_trainers)
{
	static const char *const names[] = {"WEFT_PSERVERS", "WEFT_PORT", "WEFT_PORTS_NUM",
					    "WEFT_PORTS_NUM_FOR_SPARSE"};

	for (size_t i = 0; i < WF_ARRAY_COUNT(names) && to_trainers; i++) {
		fprintf(out, " -x %s", names[i]);
	}
	fputs(" -x WEFT_JOB_NAME", out);
	if (is_given(job->set.secret_file)) {
		fputs(" -x WEFT_SECRET_FILE", out);
	}
	if (job->set.num_passes > 0 && to_trainers) {
		fputs(" -x PADDLE_INIT_NUM_PASSES", out);
	}
	for (unsigned i = 0; i < job->variable_count; i++) {
		fprintf(out, " -x %.*s", (int)job->variable[i].name_bytes, job->variable[i].name);
	}
}

static void
print_pservers(const struct wf_gen_job *job, const struct engine *engine, FILE *out)
{
	const struct wf_gen_settings *set = &job->set;

	fprintf(out,
		"\n# One host each; if there are more pservers than hosts, the next ports there.\n"
		"addresses=\n"
		"pservers=()\n"
		"for ((i = 0; i < %" PRIu64 "; i++)); do\n"
		"\thost=${hosts[i %% ${#hosts[@]}]}\n"
		"\tport=$((%u + i / ${#hosts[@]} * %u))\n"
		"\t%s",
		job->pservers, set->port, set->ports_num + set->ports_num_for_sparse,
		engine->single);
	if (job->kind == WF_GEN_SLURM && is_given(set->pscpu)) {
		fprintf(out, " --cpus-per-task=%s", set->pscpu);
	}
	if (job->kind == WF_GEN_MPI) {
		print_handed_on(job, out, false);
	}
	fputs(" \\\n\t\t", out);
	wf_shell_word(out, set->weft);
	fputs(" pserver --listen=", out);
	wf_shell_word(out, set->listen);
	fprintf(out,
		" --port=\"$port\" --ports_num=%u --ports_num_for_sparse=%u \\\n"
		"\t\t--num_gradient_servers=%" PRIu64 " ",
		set->ports_num, set->ports_num_for_sparse, set->trainers);
	if (job->pservers > 1) {
		fprintf(out, "--registrar=\"${hosts[0]}:%u\" ", set->port);
	}
	fputs("--once &\n"
	      "\tpservers+=($!)\n"
	      "\taddresses+=${addresses:+,}$host:$port\n"
	      "done\n",
	      out);
}

/* The job's own command line of a shell. The original's scripts set these variables for it. */
static void
print_entry(const struct wf_gen_job *job, const struct engine *engine, FILE *out)
{
	fprintf(out,
		"sh -c 'export PADDLE_INIT_TRAINER_ID=\"$%s\" "
		"PADDLE_INIT_NUM_GRADIENT_SERVERS=\"$%s\"; eval \"$1\"' sh ",
		engine->rank, engine->size);
	wf_shell_word(out, job->set.entry);
}

static void
print_trainers(const struct wf_gen_job *job, const struct engine *engine, FILE *out)
{
	const struct wf_gen_settings *set = &job->set;

	fputc('\n', out);
	print_environment(job, out);
	if (job->kind == WF_GEN_SLURM) {
		fprintf(out, "srun --overlap --kill-on-bad-exit=1 --ntasks=%" PRIu64,
			set->trainers);
		if (is_given(set->cpu)) {
			fprintf(out, " --cpus-per-task=%s", set->cpu);
		}
	} else {
		fprintf(out,
			"OMPI_MCA_orte_tmpdir_base=$folders/trainers "
			"\"${mpirun[@]}\" \"${everywhere[@]}\" -np %" PRIu64,
			set->trainers);
		print_handed_on(job, out, true);
	}
	fputs(" \\\n\t", out);
	if (is_given(set->entry)) {
		print_entry(job, engine, out);
	} else {
		if (job->is_built_in) {
			wf_shell_word(out, set->weft);
			fputc(' ', out);
		}
		for (unsigned i = 0; i < job->program_count; i++) {
			fputs(i > 0 ? " " : "", out);
			wf_shell_word(out, job->program[i]);
		}
	}
	fputs(" &\n", out);
}

void
wf_gen_script(const struct wf_gen_job *job, FILE *out)
{
	const struct engine *engine = job->kind == WF_GEN_SLURM ? &slurm : &mpi;

	fprintf(out,
		"#!/bin/bash\n"
		"# A job of weft: pservers: %" PRIu64 ", trainers: %" PRIu64 ".\n",
		job->pservers, job->set.trainers);
	if (job->kind == WF_GEN_SLURM) {
		print_slurm_head(job, out);
	} else {
		print_mpi_head(job, out);
	}
	fputc('\n', out);
	print_hosts(engine, out);
	print_variables(job, out);
	print_pservers(job, engine, out);
	print_trainers(job, engine, out);
	fputs(ending, out);
}
