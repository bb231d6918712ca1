/* SPDX-License-Identifier: Apache-2.0 */
/* weft doctor: what works on this machine, why the rest does not, and what to do about it. Thread:
 * main, the only one. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/settings.h"
#include "tools/command.h"
#include "tools/doctor/report.h"

#define PROGRAM "weft doctor"

struct settings {
	bool json;
	bool all;
	const char *transport;
	const char *verbs;
	const char *tcp_congestion;
	const char *listen;
	const char *secret_file;
	uint16_t port;
	uint32_t ports_num;
	uint32_t ports_num_for_sparse;
	uint64_t trainers;
	uint64_t memory;
};

#define FIELD(name) offsetof(struct settings, name)
#define SETTING(field)                                                                             \
	.name = #field, .is_setting = true, .offset = FIELD(field),                                \
	.bytes = sizeof(((struct settings *)NULL)->field)

static const struct wf_option table[] = {
	{.name = "transport",
	 .type = WF_OPTION_CHOICE,
	 .offset = FIELD(transport),
	 .initial = "auto",
	 .choices = "auto|tcp|shm|verbs",
	 .help = "Check for a job with this --transport. What it needs and is missing is a "
		 "failure then, and the exit code is 69."},
	{SETTING(verbs), .help = "As for weft pserver; device and port choose RDMA devices."},
	{SETTING(tcp_congestion)},
	{.name = "listen",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(listen),
	 .initial = "",
	 .metavar = "ADDR",
	 .help = "The address that pservers would listen on; loopback unless given."},
	{.name = "secret_file",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(secret_file),
	 .initial = "",
	 .metavar = "FILE",
	 .help = "File with the secret of the job, as for weft pserver."},
	{SETTING(port), .help = "Port of the first lane."},
	{SETTING(ports_num)},
	{SETTING(ports_num_for_sparse)},
	{.name = "trainers",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(trainers),
	 .initial = "1",
	 .max = 65536,
	 .help = "Number of trainers of the job."},
	{.name = "memory",
	 .type = WF_OPTION_BYTES,
	 .offset = FIELD(memory),
	 .initial = "256M",
	 .metavar = "BYTES",
	 .help = "Memory that one process of the job needs: its share of parameters, state of "
		 "the optimizer, and buffers."},
	{.name = "json",
	 .type = WF_OPTION_BOOL,
	 .offset = FIELD(json),
	 .help = "Print JSON instead of text, with all findings."},
	{.name = "all",
	 .type = WF_OPTION_BOOL,
	 .offset = FIELD(all),
	 .initial = "true",
	 .help = "Print what works, too; --no-all prints only what there is to do."},
};

static const struct wf_help_group groups[] = {
	{"The job", "transport verbs tcp_congestion listen port ports_num ports_num_for_sparse "
		    "trainers memory secret_file"},
	{"Output", "json all"},
};

static void
print_checks(FILE *out)
{
	for (unsigned i = 0; i < wf_doctor_check_count(); i++) {
		fprintf(out, "  %-15s %s\n", wf_doctor_check_name(i), wf_doctor_check_purpose(i));
	}
}

static const struct wf_help help = {
	.usage = "weft doctor [options]",
	.about = "Checks what works on this machine, and prints why the rest does not and what to "
		 "do about it. It changes nothing. Each line is one of: ok; note, which needs no "
		 "action; finding, which works and could work better; fails, which was asked for "
		 "and cannot work. weft pserver and weft train print some of the findings when "
		 "they start. docs/doctor.md explains each check.",
	.list_title = "Checks",
	.print_list = print_checks,
	.examples = "  weft doctor\n"
		    "  weft doctor --transport=verbs --memory=8G\n"
		    "  weft doctor --json --ports_num=4 --trainers=64",
	.group = groups,
	.group_count = (unsigned)WF_ARRAY_COUNT(groups),
	.exit_codes = "  0   all works\n"
		      "  1   it works, with findings\n"
		      "  64  usage\n"
		      "  69  something that was asked for cannot work",
};

static int
examine(const struct settings *set)
{
	const struct wf_doctor_ask ask = {
		.root = "",
		.transport = set->transport,
		.verbs = set->verbs,
		.tcp_congestion = set->tcp_congestion,
		.listen = set->listen,
		.secret_file = set->secret_file,
		.port = set->port,
		.lanes = set->ports_num + set->ports_num_for_sparse,
		.trainers = (uint32_t)set->trainers,
		.memory_bytes = set->memory,
	};
	struct wf_doctor_report report = {
		.out = stdout, .json = set->json, .all = set->all, .host = ""};
	wf_doctor_report_begin(&report, set->transport);
	wf_doctor_run(&ask, wf_doctor_report_add, &report);
	int code = wf_doctor_report_end(&report);
	return fflush(stdout) == 0 ? code : WF_EXIT_IO;
}

int
wf_cmd_doctor(int argc, char **argv)
{
	struct settings set;
	struct wf_option rows[WF_ARRAY_COUNT(table)];
	enum wf_option_origin origin[WF_ARRAY_COUNT(table)];
	const char *env_name[WF_ARRAY_COUNT(table)];
	struct wf_option_file file;
	struct wf_options options = {.table = rows,
				     .option_count = (unsigned)WF_ARRAY_COUNT(table),
				     .program = PROGRAM,
				     .help = &help,
				     .target = &set,
				     .origin = origin,
				     .env_name = env_name,
				     .file = &file};

	memcpy(rows, table, sizeof(table));
	wf_settings_complete(rows, WF_ARRAY_COUNT(rows));
	enum weft_status st = wf_options_parse(&options, argc, argv);
	if (st == WEFT_OK && options.help_wanted) {
		return wf_command_print_help(&options);
	}
	if (st == WEFT_OK && options.print_wanted) {
		return wf_command_print_options(&options);
	}
	if (st == WEFT_OK) {
		st = wf_command_check_verbs(set.verbs);
	}
	return st == WEFT_OK ? examine(&set) : wf_command_fail(PROGRAM, st);
}
