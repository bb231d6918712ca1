/* SPDX-License-Identifier: Apache-2.0 */
/* weft env: which variables of the environment say something about this process's place in a job,
 * which of them are used, and why others are not. Thread: main, the only one. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/exit_code.h"
#include "base/launcher.h"
#include "tools/command.h"
#include "tools/launch/train_options.h"
#include "tools/pserver_options.h"

#define PROGRAM "weft env"
#define VALUE_COLUMNS 32 /* of what is shown of a value */
#define SOURCE_BYTES 96

extern char **environ;

struct settings {
	const char *role;
};

static const struct wf_option table[] = {
	{.name = "role",
	 .type = WF_OPTION_CHOICE,
	 .offset = offsetof(struct settings, role),
	 .initial = "auto",
	 .choices = "auto|trainer|pserver",
	 .help = "The role to show the variables for. auto: the role in TRAINING_ROLE or "
		 "PADDLE_TRAINING_ROLE, else trainer."},
};

static const struct wf_help help = {
	.usage = "weft env [--role=trainer|pserver]",
	.about = "Shows which variables of the environment state this process's place in a job: "
		 "its role, number, the number of trainers, and the addresses of pservers. For "
		 "each setting the first of these counts: an option, WEFT_<NAME>, "
		 "PADDLE_INIT_<NAME>, a file of --config, and the innermost launcher. Known "
		 "launchers are torchrun, Open MPI, Slurm, Volcano, PaddlePaddle's jobs and "
		 "indexed jobs of Kubernetes.",
	.examples = "  mpirun -np 4 weft env\n"
		    "  weft env --role=pserver",
};

/* Variables that are no option of a command. */
static const char *const others[] = {
	"WEFT_ROLE",    "WEFT_RANK",   "WEFT_DATA_DIR",
	"WEFT_LIBRARY", "WEFT_CONFIG", "PADDLE_INIT_CONFIG",
};

/* The variables of PaddlePaddle's jobs that have another use, or none here. */
static const char *const paddle[] = {
	"PADDLE_TRAINER_ID",
	"PADDLE_TRAINERS",
	"PADDLE_TRAINERS_NUM",
	"PADDLE_TRAINER_ENDPOINTS",
	"PADDLE_TRAINER_IPS",
	"PADDLE_TRAINING_ROLE",
	"PADDLE_PSERVERS",
	"PADDLE_PSERVERS_NUM",
	"PADDLE_PSERVERS_IP_PORT_LIST",
	"PADDLE_PSERVER_ENDPOINTS",
	"PADDLE_PSERVER_ID",
	"PADDLE_PSERVER_IPS",
	"PADDLE_PSERVER_PORT",
	"PADDLE_PORT",
	"PADDLE_CURRENT_IP",
	"PADDLE_CURRENT_ENDPOINT",
	"PADDLE_IS_LOCAL",
	"PADDLE_JOB_NAME",
	"PADDLE_JOB_ID",
	"PADDLE_CLUSTER_TRAIN",
	"PADDLE_CLOUD_CURRENT_DATACENTER",
	"PADDLE_CLOUD_USERNAME",
	"PADDLE_NO_STAT",
	"PADDLE_MASTER",
	"PADDLE_NNODES",
	"PADDLE_SERVER_NUM",
	"PADDLE_TRAINER_NUM",
};

struct tables {
	struct wf_options pserver;
	struct wf_option pserver_table[WF_PSERVER_OPTION_MAX];
	struct wf_train_command train;
};

/* A long value is cut, and what is no printable character is a question mark: a variable may hold
 * anything, and the terminal shall not obey it. */
static void
print_row(const char *setting, const char *value, const char *from, const char *ignored)
{
	char shown[VALUE_COLUMNS + 1];
	bool fits = strlen(value) <= VALUE_COLUMNS;

	snprintf(shown, sizeof(shown), "%.*s%s", fits ? VALUE_COLUMNS : VALUE_COLUMNS - 3, value,
		 fits ? "" : "...");
	for (char *at = shown; *at != '\0'; at++) {
		*at = isprint((unsigned char)*at) ? *at : '?';
	}
	printf("%-21s %-*s %-40s %s%s\n", setting, VALUE_COLUMNS, shown, from,
	       ignored != NULL ? "ignored: " : "used", ignored != NULL ? ignored : "");
}

/* The variables of weft's own that give this setting; true: there is one. */
static bool
print_own(const char *name, bool print, char *used, size_t bytes)
{
	static const char *const prefixes[] = {"WEFT_", "PADDLE_INIT_"};
	bool found = false;

	for (size_t i = 0; i < WF_ARRAY_COUNT(prefixes); i++) {
		char variable[WF_OPTION_VARIABLE_BYTES];
		char why[WF_OPTION_VARIABLE_BYTES + 16];
		wf_option_variable(prefixes[i], name, variable);
		const char *value = getenv(variable);
		if (value == NULL || value[0] == '\0') {
			continue;
		}
		snprintf(why, sizeof(why), "%s is set", used);
		if (print) {
			print_row(name, value, variable, found ? why : NULL);
		}
		if (!found) {
			snprintf(used, bytes, "%s", variable);
		}
		found = true;
	}
	return found;
}

/* How many settings there were. */
static unsigned
print_options_of(const struct wf_options *options)
{
	char used[WF_OPTION_VARIABLE_BYTES] = "";
	unsigned count = 0;
	for (unsigned i = 0; i < options->option_count; i++) {
		count += print_own(options->table[i].name, true, used, sizeof(used));
	}
	return count;
}

static void
print_launchers(const struct wf_launcher *launcher)
{
	for (unsigned i = 0; i < launcher->count; i++) {
		const struct wf_launcher_finding *finding = &launcher->finding[i];
		const char *name = wf_launcher_fact_name(finding->fact);
		char from[SOURCE_BYTES];
		char used[WF_OPTION_VARIABLE_BYTES] = "";
		char why[sizeof(used) + 16];
		const char *ignored = finding->ignored;

		snprintf(from, sizeof(from), "%.*s (%s)", (int)strcspn(finding->text, "="),
			 finding->text, finding->launcher);
		if (ignored == NULL && finding->fact != WF_FACT_ROLE &&
		    print_own(name, false, used, sizeof(used))) {
			snprintf(why, sizeof(why), "%s is set", used);
			ignored = why;
		}
		print_row(name, finding->value, from, ignored);
	}
}

static bool
is_listed(const char *const *list, size_t count, const char *name, size_t bytes)
{
	for (size_t i = 0; i < count; i++) {
		if (strlen(list[i]) == bytes && strncmp(list[i], name, bytes) == 0) {
			return true;
		}
	}
	return false;
}

/* A variable of these prefixes that no command knows, with the nearest name that one does. */
static void
print_unknown(const struct tables *tables, const char *variable)
{
	size_t bytes = strcspn(variable, "=");
	bool ours = strncmp(variable, "WEFT_", 5) == 0;
	bool original = strncmp(variable, "PADDLE_INIT_", 12) == 0;
	char name[WF_OPTION_NAME_BYTES];
	size_t prefix = ours ? 5 : 12;

	if (variable[bytes] == '\0' || variable[bytes + 1] == '\0' ||
	    is_listed(others, WF_ARRAY_COUNT(others), variable, bytes) ||
	    is_listed(paddle, WF_ARRAY_COUNT(paddle), variable, bytes)) {
		return;
	}
	if (!ours && !original) {
		if (strncmp(variable, "PADDLE_", 7) == 0) {
			printf("%.*s: weft does not know this variable\n", (int)bytes, variable);
		}
		return;
	}
	size_t length = bytes - prefix < sizeof(name) ? bytes - prefix : sizeof(name) - 1;
	for (size_t i = 0; i < length; i++) {
		name[i] = (char)tolower((unsigned char)variable[prefix + i]);
	}
	name[length] = '\0';
	if (wf_option_find(&tables->pserver, name, length) != NULL ||
	    wf_option_find(&tables->train.options, name, length) != NULL ||
	    wf_cmd_launch_has(name)) {
		return;
	}
	const struct wf_option *near =
		wf_option_nearest(&tables->train.options, name, length, false);
	if (near == NULL) {
		near = wf_option_nearest(&tables->pserver, name, length, false);
	}
	printf("%.*s: weft does not know this variable", (int)bytes, variable);
	if (near != NULL) {
		char meant[WF_OPTION_VARIABLE_BYTES];
		wf_option_variable(ours ? "WEFT_" : "PADDLE_INIT_", near->name, meant);
		printf("; did you mean %s?", meant);
	}
	printf("\n");
}

/* What a file of --config holds is for each command to read. */
static void
print_file(void)
{
	static const char *const variables[] = {"WEFT_CONFIG", "PADDLE_INIT_CONFIG"};
	for (size_t i = 0; i < WF_ARRAY_COUNT(variables); i++) {
		const char *path = getenv(variables[i]);
		if (path != NULL && path[0] != '\0') {
			printf("%s names a file: its settings are not shown here, and count before "
			       "those of launchers\n",
			       variables[i]);
			return;
		}
	}
}

static enum weft_status
work(const struct wf_options *options)
{
	static struct tables tables;
	static struct wf_launcher launcher;
	const struct settings *set = options->target;
	enum wf_launcher_role role = WF_ROLE_UNKNOWN;

	if (strcmp(set->role, "auto") != 0) {
		role = strcmp(set->role, "pserver") == 0 ? WF_ROLE_PSERVER : WF_ROLE_TRAINER;
	}
	wf_launcher_detect(&(struct wf_launcher_source){0}, role, &launcher);
	tables.pserver.table = tables.pserver_table;
	tables.pserver.option_count = wf_pserver_options(tables.pserver_table);
	wf_train_options_open(&tables.train);
	bool serves = launcher.role == WF_ROLE_PSERVER;
	printf("as a %s:\n", serves ? "pserver" : "trainer");
	unsigned own = print_options_of(serves ? &tables.pserver : &tables.train.options);
	print_launchers(&launcher);
	if (own + launcher.count == 0) {
		printf("no variable of weft or of a launcher is set\n");
	}
	print_file();
	for (char **variable = environ; *variable != NULL; variable++) {
		print_unknown(&tables, *variable);
	}
	return WEFT_OK;
}

int
wf_cmd_env(int argc, char **argv)
{
	struct settings set;
	enum wf_option_origin origin[WF_ARRAY_COUNT(table)];
	const char *env_name[WF_ARRAY_COUNT(table)];
	struct wf_options options = {.table = table,
				     .option_count = (unsigned)WF_ARRAY_COUNT(table),
				     .program = PROGRAM,
				     .help = &help,
				     .target = &set,
				     .origin = origin,
				     .env_name = env_name};

	return wf_command_run(work, &options, argc, argv);
}
