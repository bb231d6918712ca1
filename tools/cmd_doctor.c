/* SPDX-License-Identifier: Apache-2.0 */
/* weft doctor: what works on this machine, why the rest does not, and what to do about it. Thread:
 * main, the only one. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/settings.h"
#include "tools/command.h"
#include "tools/doctor/hosts.h"
#include "tools/doctor/report.h"
#include "tools/launch/remote_options.h"

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
	struct wf_remote_set remote;
};

/* Of the options of weft launch for several hosts, those that lead to them. */
static const char *const remote_names[] = {"hosts", "hostfile", "ssh", "ssh_port", "remote_weft"};
#define REMOTE_COUNT WF_ARRAY_COUNT(remote_names)

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

#define OPTION_COUNT (WF_ARRAY_COUNT(table) + REMOTE_COUNT)

static const struct wf_help_group groups[] = {
	{"The job", "transport verbs tcp_congestion listen port ports_num ports_num_for_sparse "
		    "trainers memory secret_file"},
	{"Several hosts", "hosts hostfile ssh ssh_port remote_weft"},
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
		 "they start. docs/doctor.md explains each check.\n\n"
		 "With --hosts or --hostfile it examines those hosts instead, over ssh as weft "
		 "launch does, and what is between them: who reaches whose ports, the size of "
		 "packets that arrive, clocks, versions and processors.",
	.list_title = "Checks",
	.print_list = print_checks,
	.examples = "  weft doctor\n"
		    "  weft doctor --transport=verbs --memory=8G\n"
		    "  weft doctor --json --ports_num=4 --trainers=64\n"
		    "  weft doctor --no-all --hosts=gpu1,gpu2",
	.group = groups,
	.group_count = (unsigned)WF_ARRAY_COUNT(groups),
	.exit_codes = "  0   all works\n"
		      "  1   it works, with findings\n"
		      "  64  usage\n"
		      "  69  something that was asked for cannot work",
};

static struct wf_doctor_ask
ask_of(const struct settings *set)
{
	return (struct wf_doctor_ask){
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
}

/* Each host once, with one pserver, however many slots it has. */
static void
drop_slots(struct wf_hosts *hosts)
{
	for (unsigned i = 0; i < hosts->count; i++) {
		hosts->entry[i] = (uint16_t)i;
	}
	hosts->entry_count = hosts->count;
}

static enum weft_status
examine_hosts(const struct settings *set, struct wf_remote_job *job,
	      const struct wf_doctor_ask *ask, struct wf_doctor_report *report)
{
	struct wf_env *env = NULL;
	enum weft_status st = wf_remote_set_check(&set->remote, false);
	if (st == WEFT_OK) {
		st = wf_remote_set_read(&set->remote, job);
	}
	if (st == WEFT_OK) {
		st = wf_env_system_create(WF_LOG_INFO, STDERR_FILENO, &env);
	}
	if (st == WEFT_OK) {
		drop_slots(&job->hosts);
		job->opts.version = WEFT_PROJECT_VERSION;
		wf_doctor_report_begin(report, set->transport);
		st = wf_doctor_hosts_run(&(struct wf_doctor_hosts){
			.env = env,
			.ask = ask,
			.remote = &job->opts,
			.ports_num = set->ports_num,
			.ports_num_for_sparse = set->ports_num_for_sparse,
			.report = report,
		});
	}
	wf_env_system_destroy(env);
	return st;
}

static int
examine(const struct settings *set)
{
	static struct wf_remote_job job; /* large */
	const struct wf_doctor_ask ask = ask_of(set);
	struct wf_doctor_report report = {
		.out = stdout, .json = set->json, .all = set->all, .host = ""};
	if (wf_remote_set_is_used(&set->remote)) {
		enum weft_status st = examine_hosts(set, &job, &ask, &report);
		if (st != WEFT_OK) {
			return wf_command_fail(PROGRAM, st);
		}
	} else {
		wf_doctor_report_begin(&report, set->transport);
		wf_doctor_run(&ask, wf_doctor_report_add, &report);
	}
	int code = wf_doctor_report_end(&report);
	return fflush(stdout) == 0 ? code : WF_EXIT_IO;
}

/* Appends the rows of weft launch to those of `rows`, [count + REMOTE_COUNT]. */
static void
add_remote_rows(struct wf_option *rows, unsigned count, struct settings *set)
{
	struct wf_option all[WF_REMOTE_OPTIONS];
	wf_remote_options(all, FIELD(remote));
	wf_option_defaults(all, WF_REMOTE_OPTIONS, set);
	for (unsigned i = 0; i < WF_REMOTE_OPTIONS; i++) {
		for (size_t name = 0; name < REMOTE_COUNT; name++) {
			if (strcmp(all[i].name, remote_names[name]) == 0) {
				rows[count++] = all[i];
			}
		}
	}
}

int
wf_cmd_doctor(int argc, char **argv)
{
	struct settings set;
	struct wf_option rows[OPTION_COUNT];
	enum wf_option_origin origin[OPTION_COUNT];
	const char *env_name[OPTION_COUNT];
	struct wf_option_file file;
	struct wf_options options = {.table = rows,
				     .option_count = (unsigned)OPTION_COUNT,
				     .program = PROGRAM,
				     .help = &help,
				     .target = &set,
				     .origin = origin,
				     .env_name = env_name,
				     .file = &file};

	memcpy(rows, table, sizeof(table));
	add_remote_rows(rows, (unsigned)WF_ARRAY_COUNT(table), &set);
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
