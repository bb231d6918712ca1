/* SPDX-License-Identifier: Apache-2.0 */
/* weft env: which variables of the environment say something about this process's place in a job,
 * which of them are used, and why others are not. Thread: main, the only one. */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/exit_code.h"
#include "base/launcher.h"
#include "tools/command.h"
#include "tools/launch/options.h"
#include "tools/launch/train_options.h"
#include "tools/pserver_options.h"

#define PROGRAM "weft env"
#define VALUE_COLUMNS 32             /* of what is shown of a value */
#define SOURCE_BYTES (PATH_MAX + 16) /* of "FILE:LINE" */
#define PADDLE_BYTES 7u              /* of "PADDLE_" */
#define NAME_COLUMNS 60u             /* of a variable that is not known */

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
		 "launchers are torchrun, Open MPI, Slurm, Volcano, PaddlePaddle's jobs, Kubeflow "
		 "(PET_*) and indexed jobs of Kubernetes.",
	.examples = "  mpirun -np 4 weft env\n"
		    "  weft env --role=pserver",
};

/* Variables that are no option of a command. */
static const char *const others[] = {
	"WEFT_ROLE",    "WEFT_RANK",   "WEFT_DATA_DIR",      "WEFT_LIBRARY",
	"WEFT_PROGRAM", "WEFT_CONFIG", "PADDLE_INIT_CONFIG",
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
	struct wf_pserver_settings pserver_set;
	struct wf_option pserver_table[WF_PSERVER_OPTION_MAX];
	enum wf_option_origin pserver_origin[WF_PSERVER_OPTION_MAX];
	const char *pserver_env_name[WF_PSERVER_OPTION_MAX];
	struct wf_option_file pserver_file;
	struct wf_originals pserver_originals;
	struct wf_train_command train;
};

/* What is no printable character becomes a question mark: a variable's name and value may hold
 * anything, and the terminal shall not obey it. */
static void
make_printable(char *text)
{
	for (; *text != '\0'; text++) {
		*text = isprint((unsigned char)*text) ? *text : '?';
	}
}

/* A long value is cut. */
static void
print_row(const char *setting, const char *value, const char *from, const char *how)
{
	char shown[VALUE_COLUMNS + 1];
	bool fits = strlen(value) <= VALUE_COLUMNS;

	snprintf(shown, sizeof(shown), "%.*s%s", fits ? VALUE_COLUMNS : VALUE_COLUMNS - 3, value,
		 fits ? "" : "...");
	make_printable(shown);
	printf("%-21s %-*s %-40s %s\n", setting, VALUE_COLUMNS, shown, from, how);
}

/* How the commands would take the variable that sets this option: "used", or why they refuse it. */
static void
judge(const struct wf_options *options, const struct wf_option *option, char *out, size_t bytes)
{
	static union {
		struct wf_pserver_settings pserver;
		struct wf_train_opts train;
	} unused;
	char program[] = PROGRAM;
	char *argv[] = {program, NULL};
	enum wf_option_origin origin[1];
	const char *env_name[1];
	struct wf_options one = {.table = option,
				 .option_count = 1,
				 .program = options->program,
				 .target = &unused,
				 .origin = origin,
				 .env_name = env_name};

	if (wf_options_parse(&one, 1, argv) == WEFT_OK) {
		snprintf(out, bytes, "used");
		return;
	}
	const char *why = strstr(weft_last_error(), "must be");
	snprintf(out, bytes, "refused: %s", why != NULL ? why : weft_last_error());
}

/* The variables of weft's own that give this setting; true: there is one. `how` is what becomes of
 * the first one; NULL: nothing is printed. */
static bool
print_own(const char *name, const char *how, char *used, size_t bytes)
{
	static const char *const prefixes[] = {"WEFT_", "PADDLE_INIT_"};
	bool found = false;

	for (size_t i = 0; i < WF_ARRAY_COUNT(prefixes); i++) {
		char variable[WF_OPTION_VARIABLE_BYTES];
		char why[WF_OPTION_VARIABLE_BYTES + 32];
		wf_option_variable(prefixes[i], name, variable);
		const char *value = getenv(variable);
		if (value == NULL || value[0] == '\0') {
			continue;
		}
		snprintf(why, sizeof(why), "ignored: %s is set", used);
		if (how != NULL) {
			print_row(name, value, variable, found ? why : how);
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
		char how[WF_ERROR_BYTES];
		judge(options, &options->table[i], how, sizeof(how));
		count += print_own(options->table[i].name, how, used, sizeof(used));
	}
	return count;
}

/* The setting's line in the file that WEFT_CONFIG names, as "FILE:LINE"; false: it has none that
 * counts. */
static bool
in_file(const struct wf_options *options, unsigned idx, char *out, size_t bytes)
{
	if (options->origin[idx] != WF_ORIGIN_FILE) {
		return false;
	}
	snprintf(out, bytes, "%s:%u", options->file->path, options->file->line[idx]);
	return true;
}

/* The settings of that file. What the commands refuse of it is a line of its own. */
static unsigned
print_file(const struct wf_options *options)
{
	unsigned count = 0;
	for (unsigned i = 0; i < options->option_count; i++) {
		char from[SOURCE_BYTES];
		char value[VALUE_COLUMNS * 2];
		char used[WF_OPTION_VARIABLE_BYTES] = "";
		char how[sizeof(used) + 32] = "used";
		if (!in_file(options, i, from, sizeof(from))) {
			continue;
		}
		/* After a variable that is refused the parser has looked at no other. */
		if (print_own(options->table[i].name, NULL, used, sizeof(used))) {
			snprintf(how, sizeof(how), "ignored: %s is set", used);
		}
		wf_option_value(&options->table[i], options->target, value, sizeof(value));
		print_row(options->table[i].name, value, from, how);
		count++;
	}
	return count;
}

static void
print_launchers(const struct wf_launcher *launcher, const struct wf_options *options)
{
	for (unsigned i = 0; i < launcher->count; i++) {
		const struct wf_launcher_finding *finding = &launcher->finding[i];
		const char *name = wf_launcher_fact_name(finding->fact);
		char from[SOURCE_BYTES];
		char used[WF_OPTION_VARIABLE_BYTES] = "";
		char place[SOURCE_BYTES];
		char how[SOURCE_BYTES + 32] = "used";
		bool checks = finding->fact == WF_FACT_PSERVER_COUNT;
		const char *setting = checks ? "pservers" : name;
		const struct wf_option *option = wf_option_find(options, setting, strlen(setting));

		snprintf(from, sizeof(from), "%.*s (%s)", (int)strcspn(finding->text, "="),
			 finding->text, finding->launcher);
		if (finding->ignored != NULL) {
			snprintf(how, sizeof(how), "ignored: %s", finding->ignored);
		} else if (option != NULL && print_own(setting, NULL, used, sizeof(used))) {
			snprintf(how, sizeof(how), "ignored: %s is set", used);
		} else if (option != NULL && in_file(options, (unsigned)(option - options->table),
						     place, sizeof(place))) {
			snprintf(how, sizeof(how), "ignored: %s sets it", place);
		}
		print_row(name, finding->value, from, how);
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

/* The name of a variable, cut and printable. */
static void
format_name(const char *variable, size_t bytes, char *out, size_t out_bytes)
{
	snprintf(out, out_bytes, "%.*s%s", (int)(bytes < NAME_COLUMNS ? bytes : NAME_COLUMNS),
		 variable, bytes <= NAME_COLUMNS ? "" : "...");
	make_printable(out);
}

/* The nearest name of PaddlePaddle's jobs, or "". */
static void
find_near_of_job(const char *variable, size_t bytes, char *near, size_t near_bytes)
{
	struct wf_option rows[WF_ARRAY_COUNT(paddle)] = {{0}};
	const struct wf_options known = {.table = rows, .option_count = WF_ARRAY_COUNT(paddle)};

	for (size_t i = 0; i < WF_ARRAY_COUNT(paddle); i++) {
		rows[i].name = paddle[i] + PADDLE_BYTES;
	}
	const struct wf_option *row =
		wf_option_nearest(&known, variable + PADDLE_BYTES, bytes - PADDLE_BYTES, false);
	snprintf(near, near_bytes, "%s%s", row != NULL ? "PADDLE_" : "",
		 row != NULL ? row->name : "");
}

/* Whether a variable has one of these prefixes, and no command knows it. `near`: the nearest name
 * that one does, or "". */
static bool
is_unknown(const struct tables *tables, const char *variable, char *near, size_t near_bytes)
{
	size_t bytes = strcspn(variable, "=");
	bool ours = strncmp(variable, "WEFT_", 5) == 0;
	bool original = strncmp(variable, "PADDLE_INIT_", 12) == 0;
	char name[WF_OPTION_NAME_BYTES];
	size_t prefix = ours ? 5 : 12;

	near[0] = '\0';
	if (variable[bytes] == '\0' || variable[bytes + 1] == '\0' ||
	    is_listed(others, WF_ARRAY_COUNT(others), variable, bytes) ||
	    is_listed(paddle, WF_ARRAY_COUNT(paddle), variable, bytes)) {
		return false;
	}
	if (!ours && !original) {
		bool of_job = strncmp(variable, "PADDLE_", PADDLE_BYTES) == 0;
		if (of_job) {
			find_near_of_job(variable, bytes, near, near_bytes);
		}
		return of_job;
	}
	size_t length = bytes - prefix < sizeof(name) ? bytes - prefix : sizeof(name) - 1;
	for (size_t i = 0; i < length; i++) {
		name[i] = (char)tolower((unsigned char)variable[prefix + i]);
	}
	name[length] = '\0';
	if (wf_option_find(&tables->pserver, name, length) != NULL ||
	    wf_option_find(&tables->train.options, name, length) != NULL ||
	    wf_original_find(tables->train.options.originals, name, length) != NULL ||
	    wf_original_find(tables->pserver.originals, name, length) != NULL ||
	    wf_launch_has_option(name)) {
		return false;
	}
	const struct wf_option *row =
		wf_option_nearest(&tables->train.options, name, length, false);
	if (row == NULL) {
		row = wf_option_nearest(&tables->pserver, name, length, false);
	}
	if (row != NULL) {
		char meant[WF_OPTION_VARIABLE_BYTES];
		wf_option_variable(ours ? "WEFT_" : "PADDLE_INIT_", row->name, meant);
		snprintf(near, near_bytes, "%s", meant);
	}
	return true;
}

static void
print_unknown(const struct tables *tables, const char *variable)
{
	char name[NAME_COLUMNS + 4];
	char near[WF_OPTION_VARIABLE_BYTES];

	if (is_unknown(tables, variable, near, sizeof(near))) {
		bool meant = near[0] != '\0';
		format_name(variable, strcspn(variable, "="), name, sizeof(name));
		printf("%s: weft does not know this variable%s%s%s\n", name,
		       meant ? "; did you mean " : "", near, meant ? "?" : "");
	}
}

/* What a command checks after it has read its options, as far as that does not depend on the model;
 * a refusal opens with the command's name, as those of the parser do. */
static enum weft_status
check_command(const struct tables *tables, bool serves)
{
	const struct wf_options *options = serves ? &tables->pserver : &tables->train.options;
	enum weft_status st = serves ? wf_pserver_options_check(options)
				     : wf_session_place_check(&tables->train.opts.session);

	if (st != WEFT_OK) {
		const struct wf_error why = *wf_error_record();
		return wf_fail(st, "%s: %s", options->program, why.text);
	}
	return WEFT_OK;
}

/* The tables of both commands, with what file and launcher say (NULL: no launcher is asked); values
 * of variables that are refused are found one by one. `why` is why the command of this role would
 * refuse to start, or "". */
static void
open_tables(struct tables *tables, const struct wf_launcher *launcher, bool serves, char *why,
	    size_t bytes)
{
	char program[] = PROGRAM;
	char model[] = "linear"; /* any one */
	char *argv[] = {program, NULL};
	char *train[] = {program, model, NULL};
	struct wf_options *pserver = &tables->pserver;

	why[0] = '\0';
	tables->pserver_originals.serves = true;
	*pserver = (struct wf_options){.table = tables->pserver_table,
				       .program = "weft pserver",
				       .target = &tables->pserver_set,
				       .file = &tables->pserver_file,
				       .originals = &tables->pserver_originals,
				       .launcher = serves ? launcher : NULL,
				       .origin = tables->pserver_origin,
				       .env_name = tables->pserver_env_name};
	pserver->option_count = wf_pserver_options(tables->pserver_table);
	enum weft_status pserver_st = wf_options_parse(pserver, 1, argv);
	if (serves && pserver_st == WEFT_OK) {
		pserver_st = check_command(tables, true);
	}
	if (serves && pserver_st != WEFT_OK) {
		snprintf(why, bytes, "%s", weft_last_error());
	}
	enum weft_status train_st =
		wf_train_command_parse(&tables->train, serves ? NULL : launcher, 2, train);
	if (!serves && train_st == WEFT_OK) {
		train_st = check_command(tables, false);
	}
	if (!serves && train_st != WEFT_OK) {
		snprintf(why, bytes, "%s", weft_last_error());
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
	bool serves = launcher.role == WF_ROLE_PSERVER;
	char why[WF_ERROR_BYTES];
	open_tables(&tables, &launcher, serves, why, sizeof(why));
	const struct wf_options *used = serves ? &tables.pserver : &tables.train.options;
	printf("as a %s:\n", serves ? "pserver" : "trainer");
	unsigned own = print_options_of(used) + print_file(used);
	print_launchers(&launcher, used);
	if (own + launcher.count == 0) {
		printf("no variable of weft or of a launcher is set\n");
	}
	if (why[0] != '\0') {
		printf("it would not start: %s\n", why);
	}
	for (char **variable = environ; *variable != NULL; variable++) {
		print_unknown(&tables, *variable);
	}
	return WEFT_OK;
}

/* One line, however many there are; one with a nearest name is the most useful. */
static void
warn_of_unknown(const char *program)
{
	static struct tables tables;
	char name[NAME_COLUMNS + 4] = "";
	char near[WF_OPTION_VARIABLE_BYTES] = "";
	char refusal[WF_ERROR_BYTES]; /* the command finds it itself */
	unsigned count = 0;

	open_tables(&tables, NULL, false, refusal, sizeof(refusal));
	for (char **variable = environ; *variable != NULL; variable++) {
		char meant[WF_OPTION_VARIABLE_BYTES];
		if (!is_unknown(&tables, *variable, meant, sizeof(meant))) {
			continue;
		}
		count++;
		if (name[0] == '\0' || (near[0] == '\0' && meant[0] != '\0')) {
			format_name(*variable, strcspn(*variable, "="), name, sizeof(name));
			snprintf(near, sizeof(near), "%s", meant);
		}
	}
	if (count == 0) {
		return;
	}
	char more[48] = "";
	bool has_near = near[0] != '\0';
	if (count > 1) {
		snprintf(more, sizeof(more), " (%u more: see weft env)", count - 1);
	}
	fprintf(stderr, "%s: warning: weft does not know the variable %s%s%s%s%s\n", program, name,
		has_near ? "; did you mean " : "", near, has_near ? "?" : "", more);
}

/* A role in the environment that is not the command's. */
static void
warn_of_role(const char *program, enum wf_launcher_role role)
{
	static struct wf_launcher launcher;

	wf_launcher_detect(&(struct wf_launcher_source){0}, WF_ROLE_UNKNOWN, &launcher);
	const struct wf_launcher_finding *said = wf_launcher_find(&launcher, WF_FACT_ROLE);
	if (said != NULL && said->ignored == NULL && launcher.role != role) {
		char name[SOURCE_BYTES];
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(said->text, "="), said->text);
		fprintf(stderr, "%s: warning: %s=%s is set, and this command starts a %s\n",
			program, name, getenv(name),
			role == WF_ROLE_PSERVER ? "pserver" : "trainer");
	}
}

void
wf_cmd_env_warn(const char *program, enum wf_launcher_role role)
{
	if (getenv("WEFT_ROLE") != NULL) {
		return; /* weft launch has started it, which has looked */
	}
	warn_of_unknown(program);
	if (role != WF_ROLE_UNKNOWN) {
		warn_of_role(program, role);
	}
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
