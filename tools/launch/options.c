/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the options of `weft launch`. Thread: any one. */
#include "tools/launch/options.h"

#include <stddef.h>
#include <string.h>

#include "base/assert.h"
#include "base/settings.h"
#include "tools/launch/plan.h"

#define FIELD(name) offsetof(struct wf_launch_settings, name)
#define SETTING(field)                                                                             \
	.name = #field, .is_setting = true, .offset = FIELD(field),                                \
	.bytes = sizeof(((struct wf_launch_settings *)NULL)->field)

static const struct wf_option table[] = {
	{.name = "local",
	 .type = WF_OPTION_BOOL,
	 .offset = FIELD(local),
	 .help = "Run all processes on this host."},
	{.name = "pservers",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(pservers),
	 .initial = "1",
	 .min = 1,
	 .max = WF_PLAN_PSERVERS_MAX,
	 .help = "Number of pservers."},
	{.name = "trainers",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(trainers),
	 .initial = "1",
	 .min = 1,
	 .max = WF_PLAN_TRAINERS_MAX,
	 .help = "Number of trainers."},
	{SETTING(port),
	 .help = "First port; pserver i of a host listens on port + i x (ports_num +\n"
		 "ports_num_for_sparse)."},
	{SETTING(ports_num)},
	{SETTING(ports_num_for_sparse)},
	{.name = "num_gradient_servers",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(num_gradient_servers),
	 .max = WF_PLAN_TRAINERS_MAX,
	 .help = "The original's name for the number of trainers. If given, it must agree "
		 "with --trainers."},
	{.name = "listen",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(listen),
	 .initial = "127.0.0.1",
	 .metavar = "ADDR",
	 .help = "Address on which pservers listen, and to which trainers connect; 127.0.0.1 is "
		 "::1 "
		 "on a host that has no IPv4 address. On several "
		 "hosts each pserver has the address by which the others reach its host."},
	{.name = "restarts",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(restarts),
	 .initial = "0",
	 .max = 1000000,
	 .help = "How often a process of the job is started again that has died or failed. With "
		 "--snapshot_dir, it is that process alone: launch gives the pservers "
		 "--on_trainer_death=wait, and the others go back to the newest snapshot and on "
		 "from there. With --on_trainer_death=drop a trainer that has died joins the "
		 "others "
		 "again, which go on meanwhile. With --on_trainer_death=end, and when one has "
		 "ended well "
		 "already or a host is lost, all processes are started again, which counts as one; "
		 "without --snapshot_dir the job then begins anew. A process that ends because of "
		 "its options or its data is not started again, and ends the job."},
	{.name = "log_dir",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(log_dir),
	 .metavar = "DIR",
	 .help = "Write each process's lines to a file in this folder (pserver-0.log, "
		 "trainer-1.log). The folder is created if it does not exist."},
	{.name = "color",
	 .type = WF_OPTION_CHOICE,
	 .offset = FIELD(color),
	 .initial = "auto",
	 .choices = "auto|always|never",
	 .help = "Colour the names in front of lines. auto: on a terminal, unless NO_COLOR "
		 "is set."},
};
WF_STATIC_ASSERT(WF_ARRAY_COUNT(table) + WF_REMOTE_OPTIONS == WF_LAUNCH_OPTIONS, "its rows");

void
wf_launch_options(struct wf_option rows[WF_LAUNCH_OPTIONS])
{
	memcpy(rows, table, sizeof(table));
	wf_remote_options(rows + WF_ARRAY_COUNT(table), FIELD(remote));
	wf_settings_complete(rows, WF_LAUNCH_OPTIONS);
}

bool
wf_launch_has_option(const char *name)
{
	struct wf_option rows[WF_LAUNCH_OPTIONS];
	const struct wf_options options = {.table = rows, .option_count = WF_LAUNCH_OPTIONS};

	wf_launch_options(rows);
	return wf_option_find(&options, name, strlen(name)) != NULL;
}
