/* SPDX-License-Identifier: Apache-2.0 */
/* weft topo: the parts of this machine, or of one that hwloc described, and the placement of a
 * job's threads on it. Thread: main, the only one. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/settings.h"
#include "tools/command.h"
#include "tools/topo_report.h"
#include "transport/transport.h"
#include "transport/verbs/verbs_settings.h"

#define PROGRAM "weft topo"

struct settings {
	const char *xml;
	const char *synthetic;
	const char *save;
	bool json;
	uint64_t pservers;
	uint64_t trainers;
	uint16_t port;
	uint32_t ports_num;
	uint32_t ports_num_for_sparse;
	uint64_t trainer_count;
	enum weft_progress progress;
	const char *verbs;
};

#define FIELD(name) offsetof(struct settings, name)
#define SETTING(field)                                                                             \
	.name = #field, .is_setting = true, .offset = FIELD(field),                                \
	.bytes = sizeof(((struct settings *)NULL)->field)

static const struct wf_option table[] = {
	{.name = "xml",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(xml),
	 .metavar = "FILE",
	 .help = "Use the machine in this hwloc file (from --save, or from lstopo FILE.xml) "
		 "instead of this one."},
	{.name = "synthetic",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(synthetic),
	 .metavar = "TEXT",
	 .help = "Use a machine made up by hwloc instead of this one: \"node:2 core:8 "
		 "pu:2\"."},
	{.name = "save",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(save),
	 .metavar = "FILE",
	 .help = "Write this machine to a file, for --xml elsewhere, and print nothing."},
	{.name = "json",
	 .type = WF_OPTION_BOOL,
	 .offset = FIELD(json),
	 .help = "Print JSON instead of text."},
	{.name = "pservers",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(pservers),
	 .initial = "1",
	 .max = 64,
	 .help = "Number of pservers on the host."},
	{.name = "trainers",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(trainers),
	 .initial = "1",
	 .max = 256,
	 .help = "Number of trainers on the host."},
	{SETTING(port), .help = "Port of the first lane, as for weft launch."},
	{SETTING(ports_num)},
	{SETTING(ports_num_for_sparse)},
	{.name = "trainer_count",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(trainer_count),
	 .initial = "1",
	 .min = 1,
	 .max = 256,
	 .help = "Number of compute threads of each trainer."},
	{SETTING(progress),
	 .help = "Whether a trainer has a thread that moves bytes, as for weft train."},
	{SETTING(verbs),
	 .help = "As for weft pserver; device and port choose the RDMA devices to plan with."},
};

static const struct wf_help_group groups[] = {
	{"Machine", "xml synthetic save"},
	{"Processes on it", "pservers trainers port ports_num ports_num_for_sparse trainer_count "
			    "progress verbs"},
	{"Output", "json"},
};

static const struct wf_help help = {
	.usage = "weft topo [options]",
	.about = "Shows this machine, and where --pin=auto places each lane and thread: its CPU, "
		 "the NUMA node of the CPU and of the memory, and the RDMA device that is best for "
		 "its traffic. Only what this process may use is considered (cpuset, container, "
		 "taskset). The rules are in docs/placement.md.",
	.examples = "  weft topo                  a plan for one pserver and one trainer\n"
		    "  weft topo --ports_num=4 --trainers=2 --trainer_count=8\n"
		    "  weft topo --save=big.xml   on one machine, and on another:\n"
		    "  weft topo --xml=big.xml --ports_num=8 --json",
	.group = groups,
	.group_count = (unsigned)WF_ARRAY_COUNT(groups),
};

static enum weft_status
check(const struct settings *set)
{
	if (set->xml != NULL && set->synthetic != NULL) {
		return wf_fail(WEFT_INVALID,
			       "--xml=%s and --synthetic=%s name two machines; give "
			       "one of them",
			       set->xml, set->synthetic);
	}
	if (set->save != NULL && (set->xml != NULL || set->synthetic != NULL)) {
		return wf_fail(WEFT_INVALID,
			       "--save=%s writes this machine; leave --xml and "
			       "--synthetic out",
			       set->save);
	}
	return wf_command_check_verbs(set->verbs);
}

static enum weft_status
report(const struct settings *set, const struct wf_topo *topo)
{
	struct wf_verbs_settings verbs;
	struct wf_seating seating;
	enum weft_status st = wf_verbs_settings_parse(set->verbs, &verbs);
	if (st != WEFT_OK) {
		return st;
	}
	const struct wf_seating_job job = {
		.pservers = (uint32_t)set->pservers,
		.dense = set->ports_num,
		.sparse = set->ports_num_for_sparse,
		.trainers = (uint32_t)set->trainers,
		.compute = (uint32_t)set->trainer_count,
		.progress = set->progress == WEFT_PROGRESS_THREAD,
		.device = verbs.device[0] != '\0' ? verbs.device : NULL,
		.port = verbs.port,
	};
	st = wf_seating_plan(topo, &job, &seating);
	if (st != WEFT_OK) {
		return st;
	}
	const struct wf_topo_report what = {
		.topo = topo,
		.name = set->xml != NULL         ? set->xml
			: set->synthetic != NULL ? set->synthetic
						 : "this machine",
		.job = &job,
		.seating = &seating,
		.port = set->port,
	};
	if (set->json) {
		wf_topo_report_json(&what, stdout);
	} else {
		wf_topo_report_text(&what, stdout);
	}
	wf_seating_fini(&seating);
	return WEFT_OK;
}

/* Without the libraries a program reaches no device, whatever its files allow. */
static void
close_without_libraries(struct wf_topo *topo)
{
	if (wf_rdma_probe() == WEFT_OK) {
		return;
	}
	for (uint32_t i = 0; i < topo->device_count; i++) {
		struct wf_topo_device *device = &topo->device[i];
		if (device->kind == WF_TOPO_RDMA) {
			(void)snprintf(device->closed, sizeof(device->closed), "%.*s",
				       (int)sizeof(device->closed) - 1, weft_last_error());
		}
	}
}

static enum weft_status
run(const struct settings *set)
{
	struct wf_env *env = NULL;
	struct wf_topo *topo = NULL;
	const struct wf_topo_source source = {.xml = set->xml, .synthetic = set->synthetic};

	if (set->save != NULL) {
		return wf_topo_save(set->save);
	}
	enum weft_status st = wf_env_system_create(WF_LOG_INFO, STDERR_FILENO, &env);
	if (st == WEFT_OK) {
		st = wf_topo_open(env, &source, &topo);
	}
	if (st == WEFT_OK && topo->is_here) {
		close_without_libraries(topo);
	}
	if (st == WEFT_OK) {
		st = report(set, topo);
	}
	wf_topo_close(topo);
	wf_env_system_destroy(env);
	return st;
}

static enum weft_status
work(const struct wf_options *options)
{
	const struct settings *set = options->target;

	enum weft_status st = check(set);
	return st == WEFT_OK ? run(set) : st;
}

int
wf_cmd_topo(int argc, char **argv)
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
	return wf_command_run(work, &options, argc, argv);
}
