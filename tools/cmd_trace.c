/* SPDX-License-Identifier: Apache-2.0 */
/* weft trace: a timeline of the next steps of a running job, of all its members. Thread: main. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/settings.h"
#include "tools/command.h"
#include "tools/trace/pftrace.h"

#define PROGRAM "weft trace"
#define DEFAULT_AT "127.0.0.1:7164"

struct settings {
	uint64_t steps;
	const char *output;
	const char *secret_file;
};

#define AT(field) offsetof(struct settings, field)

static const struct wf_option table[] = {
	{.name = "steps",
	 .type = WF_OPTION_U64,
	 .offset = AT(steps),
	 .initial = "10",
	 .min = 1,
	 .max = 1000,
	 .help = "How many steps to record."},
	{.name = "output",
	 .type = WF_OPTION_STRING,
	 .offset = AT(output),
	 .initial = "weft.pftrace",
	 .metavar = "FILE",
	 .help = "The file to write, also -o FILE. An existing file is replaced."},
	{.name = "secret_file",
	 .is_setting = true,
	 .offset = AT(secret_file),
	 .bytes = sizeof(const char *),
	 .help = "The file with the job's secret, if the job has one."},
};

static const struct wf_help help = {
	.usage = "weft trace [HOST:PORT[,HOST:PORT...]] [-o FILE] [options]",
	.about =
		"Records the next steps of a running job, and writes a timeline of all lanes and "
		"trainers on one clock, with arrows from each push to its apply and to its answer. "
		"https://ui.perfetto.dev shows it, without sending it anywhere, and weft why reads "
		"it. HOST:PORT is the first port of a pserver, of several pservers the first port "
		"of each; the default is " DEFAULT_AT ". Each member keeps its last 32,768 events: "
		"of a job with many slices these are few steps, and the last line says how many.",
	.examples = "  weft trace --steps=10 -o t.pftrace\n"
		    "  weft trace nodea:7164,nodeb:7164 -o t.pftrace\n"
		    "  weft why t.pftrace",
	.exit_codes = "   0  the file is written\n"
		      "  64  an option or argument is wrong\n"
		      "  69  no pserver answers there, or it has no job\n"
		      "  70  an internal error\n"
		      "  74  input or output failed",
};

static uint64_t
worst_error(const struct wf_recording *recording)
{
	uint64_t worst = 0;
	for (uint32_t i = 0; i < recording->count; i++) {
		uint64_t error = recording->member[i].error_ns;
		worst = error > worst ? error : worst;
	}
	return worst;
}

static void
print_members(const struct wf_recording *recording)
{
	for (uint32_t i = 0; i < recording->count; i++) {
		const struct wf_recording_member *member = &recording->member[i];
		char who[64];
		wf_recording_name(recording, member, who, sizeof(who));
		if (!member->has_clock) {
			printf("%s: its clock is not known, because no message went to and fro\n",
			       who);
		}
		if (member->dropped > 0) {
			printf("%s: %" PRIu64 " older events were not kept\n", who,
			       member->dropped);
		}
	}
}

static enum weft_status
save(const struct settings *set, struct wf_recording *recording)
{
	struct wf_pushes pushes;
	wf_recording_align(recording);
	enum weft_status st = wf_pushes_find(recording, &pushes);
	if (st != WEFT_OK) {
		return st;
	}
	st = wf_pftrace_write(set->output, recording, &pushes);
	if (st == WEFT_OK) {
		print_members(recording);
		printf("%s: %u members, %u whole steps; %u of %u pushes have their apply; clocks "
		       "within %.1f us\n",
		       set->output, recording->count, pushes.end_step - pushes.first_step,
		       pushes.applied, pushes.posted, (double)worst_error(recording) / 1e3);
	}
	wf_pushes_fini(&pushes);
	return st;
}

static enum weft_status
work(const struct wf_options *options)
{
	const struct settings *set = options->target;
	const char *at = options->positional_count > 0 ? options->positional[0] : DEFAULT_AT;
	struct wf_env *env = NULL;
	struct wf_recording recording;
	enum weft_status st = wf_env_system_create(WF_LOG_WARN, STDERR_FILENO, &env);
	if (st != WEFT_OK) {
		return st;
	}
	wf_recording_init(&recording, env);
	st = wf_recording_collect(&recording, at, set->secret_file, (uint32_t)set->steps);
	st = st == WEFT_OK ? save(set, &recording) : st;
	wf_recording_fini(&recording);
	wf_env_system_destroy(env);
	return st;
}

int
wf_cmd_trace(int argc, char **argv)
{
	struct settings set;
	struct wf_option rows[WF_ARRAY_COUNT(table)];
	const char *positional[1];
	enum wf_option_origin origin[WF_ARRAY_COUNT(table)];
	const char *env_name[WF_ARRAY_COUNT(table)];
	struct wf_options options = {.table = rows,
				     .option_count = (unsigned)WF_ARRAY_COUNT(table),
				     .program = PROGRAM,
				     .help = &help,
				     .target = &set,
				     .origin = origin,
				     .env_name = env_name,
				     .positional = positional,
				     .positional_max = 1};
	for (size_t i = 0; i < WF_ARRAY_COUNT(table); i++) {
		rows[i] = table[i];
	}
	wf_settings_complete(rows, WF_ARRAY_COUNT(rows));
	wf_command_spell_out_output(argc, argv);
	return wf_command_run(work, &options, argc, argv);
}
