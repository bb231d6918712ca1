/* SPDX-License-Identifier: Apache-2.0 */
/* weft why: where the time of a running job's steps goes, and who makes the others wait. Thread:
 * main. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/settings.h"
#include "tools/command.h"
#include "tools/trace/pftrace.h"
#include "tools/trace/why.h"

#define PROGRAM "weft why"
#define DEFAULT_AT "127.0.0.1:7164"

struct settings {
	uint64_t steps;
	const char *secret_file;
	bool json;
};

#define AT(field) offsetof(struct settings, field)

static const struct wf_option table[] = {
	{.name = "steps",
	 .type = WF_OPTION_U64,
	 .offset = AT(steps),
	 .initial = "10",
	 .min = 2,
	 .max = 999, /* one more is recorded, and a recording has at most 1000 */
	 .help = "How many steps to look at; of a file, the last ones that it has."},
	{.name = "secret_file",
	 .is_setting = true,
	 .offset = AT(secret_file),
	 .bytes = sizeof(const char *),
	 .help = "The file with the job's secret, if the job has one."},
	{.name = "json",
	 .type = WF_OPTION_BOOL,
	 .offset = AT(json),
	 .help = "Print one line of JSON instead of text."},
};

static const struct wf_help help = {
	.usage = "weft why [HOST:PORT[,HOST:PORT...] | FILE] [options]",
	.about =
		"Says where the time of a job's steps goes: for each trainer and lane, how long it "
		"computes, waits to be sent, is on the way, waits for other trainers, is applied, "
		"and is answered. Names who makes the others wait, when one member and one cause "
		"explain 80 % of the wait, and what to do. The job is not disturbed: its members "
		"record the next steps, and forget them. HOST:PORT is the first port of a "
		"pserver, of several pservers the first port of each; the default "
		"is " DEFAULT_AT ". FILE is what weft trace has written.",
	.examples = "  weft why\n"
		    "  weft why nodea:7164,nodeb:7164 --steps=50\n"
		    "  weft why t.pftrace",
	.exit_codes = "   0  the answer was printed\n"
		      "  64  an option or argument is wrong\n"
		      "  65  too little was recorded, or the file is damaged\n"
		      "  69  no pserver answers there, or it has no job\n"
		      "  70  an internal error\n"
		      "  74  input or output failed",
};

static enum weft_status
print(const struct settings *set, const struct wf_recording *recording, const struct wf_why *why)
{
	char who[64] = "";
	if (why->kind != WF_WHY_NOBODY) {
		wf_recording_name(recording, &recording->member[why->member], who, sizeof(who));
	}
	if (set->json) {
		printf("{\"steps\": %u, \"step_ms\": %.3f, \"kind\": \"%s\", \"who\": \"%s\", "
		       "\"share\": %.3f, \"wait_ms\": %.3f, \"keys\": [",
		       why->steps, why->step_ns / 1e6, wf_why_kind_name(why->kind), who, why->share,
		       why->wait_ns / 1e6);
		for (uint32_t i = 0; i < why->hot_count; i++) {
			printf("%s%" PRIu64, i > 0 ? ", " : "", why->hot[i].key);
		}
		puts("]}");
	}
	for (uint32_t i = 0; !set->json && i < why->line_count; i++) {
		puts(why->line[i]);
	}
	return fflush(stdout) == 0 ? WEFT_OK
				   : wf_fail(WEFT_IO, "standard output cannot be written");
}

static enum weft_status
answer(const struct settings *set, struct wf_recording *recording)
{
	struct wf_pushes pushes;
	struct wf_why why;
	wf_recording_align(recording);
	enum weft_status st = wf_pushes_find(recording, &pushes);
	if (st != WEFT_OK) {
		return st;
	}
	st = wf_why_find(recording, &pushes, &why);
	st = st == WEFT_OK ? print(set, recording, &why) : st;
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
	struct stat file;
	enum weft_status st = wf_env_system_create(WF_LOG_WARN, STDERR_FILENO, &env);
	if (st != WEFT_OK) {
		return st;
	}
	wf_recording_init(&recording, env);
	recording.steps = (uint32_t)set->steps + 1; /* the first one has no beginning */
	st = stat(at, &file) == 0
		     ? wf_pftrace_read(at, &recording)
		     : wf_recording_collect(&recording, at, set->secret_file, recording.steps);
	st = st == WEFT_OK ? answer(set, &recording) : st;
	wf_recording_fini(&recording);
	wf_env_system_destroy(env);
	return st;
}

int
wf_cmd_why(int argc, char **argv)
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
	return wf_command_run(work, &options, argc, argv);
}
