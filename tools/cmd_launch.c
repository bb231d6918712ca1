/* SPDX-License-Identifier: Apache-2.0 */
/* weft launch: all processes of one job, on this host or on several. Thread: main, the only one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/outlet.h"
#include "base/pin.h"
#include "pserver/snapshots.h"
#include "tools/command.h"
#include "tools/launch/options.h"
#include "tools/launch/plan.h"
#include "tools/launch/ports.h"
#include "tools/launch/program.h"
#include "tools/launch/reach.h"
#include "tools/launch/seating.h"
#include "tools/launch/split.h"
#include "tools/launch/train_options.h"
#include "tools/pserver_options.h"
#include "transport/address.h"
#include "transport/verbs/verbs_settings.h"

#define PROGRAM "weft launch"
#define GRACE_NS (5 * WF_NS_PER_S)
#define JOINER_GRACE_NS (10 * WF_NS_PER_S)
#define PIN_BYTES 4096 /* of the text of one --pin */
#define PATH_BYTES 4096
#define RESUME "--resume=auto" /* of pservers that are started again */

#define WHERE_BYTES 300u /* of "FILE:LINE: NAME" */

struct command {
	struct wf_launch_settings set;
	struct wf_options options;
	struct wf_option table[WF_LAUNCH_OPTIONS];
	enum wf_option_origin origin[WF_LAUNCH_OPTIONS];
	const char *env_name[WF_LAUNCH_OPTIONS];
	struct wf_option_file file;

	/* The target of the parser when it is asked about other tables. */
	struct wf_pserver_settings pserver_set;
	struct wf_option pserver_table[WF_PSERVER_OPTION_MAX];
	enum wf_option_origin pserver_origin[WF_PSERVER_OPTION_MAX];
	const char *pserver_env_name[WF_PSERVER_OPTION_MAX];
	struct wf_option_file pserver_file;
	struct wf_originals pserver_originals;
	struct wf_train_command train;
	struct wf_program_options program_set;
	struct wf_split_tables tables;
	struct wf_split split;

	/* Of a user's program; empty: the trainers are weft's own. */
	char program[PATH_BYTES];
	struct wf_args variables;

	struct wf_remote_job remote; /* with hosts */
	struct wf_supervise_restarts restarts;
};

static const struct wf_help help = {
	.usage = "weft launch --local [options] -- train MODEL [options of trainers]\n"
		 "       weft launch --local [options] -- PROGRAM [arguments]\n"
		 "       weft launch --hosts=HOST,HOST [options] -- (train MODEL or PROGRAM)",
	.about = "Starts the pservers and trainers of one job, with ports and numbers that fit. "
		 "Options of weft pserver and weft train may stand before --: each goes to those "
		 "that know it. What follows the model goes to the trainers, and --config goes to "
		 "all. The help of weft pserver and of weft train lists their options; "
		 "--print_options shows them where -- train MODEL is given.\n\n"
		 "PROGRAM is any program that uses weft, such as python3 train.py. Each trainer is "
		 "one process of it. It finds the addresses of the pservers, its number and the "
		 "number of trainers in its environment, as WEFT_<NAME> and PADDLE_INIT_<NAME>; "
		 "weft.init() in Python reads them. Settings of a session, such as --slice_bytes, "
		 "may stand before -- and reach it in the same way.\n\n"
		 "With --hosts or --hostfile, ssh starts weft on each host. Before the first "
		 "process, all versions are compared, and each host has to reach the ports of all "
		 "pservers. Launch makes a secret for the job and hands it to the hosts over ssh. "
		 "The processes read it from a file of mode 0400, and refuse peers that do not "
		 "have it. Variables WEFT_<NAME> and PADDLE_INIT_<NAME> of this host are passed "
		 "on.\n\n"
		 "Lines that trainer 0 prints appear on stdout as they are. All other lines appear "
		 "on stderr, after the name of the process.\n\n"
		 "Ctrl-C stops all processes. If one fails, the others have 5 seconds to end by "
		 "themselves before they are stopped. The last line says which process failed "
		 "first, and its exit code is that of weft launch (128 + the signal, if a signal "
		 "ended it). With --restarts=N the process that failed is started again, or the "
		 "whole job, up to N times. With --on_trainer_death=drop the job goes on without a "
		 "trainer that has died, and ends with 0 if the others do, as long as "
		 "--min_trainers are left; with --restarts=N, too, the trainer is started again "
		 "and joins the others.",
	.examples = "  weft launch --local --pservers=2 --trainers=2 -- train linear\n"
		    "  weft launch --local --pservers=3 --trainers=4 --ports_num=2 \\\n"
		    "              --slice_bytes=256 -- train mlp --num_passes=3\n"
		    "  weft launch --local --trainers=2 --log_dir=logs -- train linear\n"
		    "  weft launch --local --trainers=2 -- python3 train.py --epochs=3\n"
		    "  weft launch --hosts=gpu1,gpu2 --job_dispatch_package=job \\\n"
		    "              -- python3 train.py",
};

/* --pservers is a number here, and a list of addresses for a trainer; launch makes that list
 * itself, so the trainers' variable does not apply to it. */
static void
drop_pservers_variable(void)
{
	static const char *const names[] = {"WEFT_PSERVERS", "PADDLE_INIT_PSERVERS"};

	for (size_t i = 0; i < WF_ARRAY_COUNT(names); i++) {
		if (getenv(names[i]) != NULL) {
			fprintf(stderr,
				PROGRAM ": %s is not used: launch starts its own pservers\n",
				names[i]);
			unsetenv(names[i]);
		}
	}
}

static enum weft_status
parse(struct command *command, int argc, char **argv)
{
	struct wf_options *options = &command->options;
	struct wf_split_tables *tables = &command->tables;

	wf_launch_options(command->table);
	options->table = command->table;
	options->option_count = WF_LAUNCH_OPTIONS;
	options->program = PROGRAM;
	options->help = &help;
	options->target = &command->set;
	options->origin = command->origin;
	options->env_name = command->env_name;
	options->file = &command->file;
	tables->own = *options;
	tables->pserver = *options;
	tables->pserver.program = "weft pserver";
	tables->pserver.table = command->pserver_table;
	tables->pserver.option_count = wf_pserver_options(command->pserver_table);
	tables->pserver.target = &command->pserver_set;
	tables->pserver.origin = command->pserver_origin;
	tables->pserver.env_name = command->pserver_env_name;
	tables->pserver.file = &command->pserver_file;
	command->pserver_originals.serves = true;
	tables->pserver.originals = &command->pserver_originals;
	wf_train_options_open(&command->train);
	tables->trainer = command->train.options;
	wf_program_options_init(&command->program_set);
	tables->program = command->program_set.options;
	enum weft_status st = wf_split_arguments(tables, argc, argv, &command->split);
	if (st != WEFT_OK) {
		return st;
	}
	return wf_options_parse(options, (int)command->split.own.count, command->split.own.argv);
}

static bool
is_remote(const struct command *command)
{
	return wf_remote_set_is_used(&command->set.remote);
}

static bool
has_program(const struct command *command)
{
	return command->split.program.count > 0;
}

/* What the trainers' session is set to, as far as the launcher knows. */
static const struct weft_session_opts *
trainer_session(const struct command *command)
{
	return has_program(command) ? &command->program_set.values.opts
				    : &command->train.opts.session;
}

/* A user's program has no option for its job's name. What the environment gives, it inherits. */
static void
export_job_name(struct command *command)
{
	enum wf_option_origin origin = wf_options_origin(&command->tables.pserver, "job_name");

	if (origin == WF_ORIGIN_ARGUMENT || origin == WF_ORIGIN_FILE) {
		wf_plan_variable(&command->variables, "job_name", command->pserver_set.job_name);
	}
}

/* The user's program, and the settings that its session gets. The pservers' options are parsed. */
static enum weft_status
check_program(struct command *command)
{
	struct wf_split *split = &command->split;

	enum weft_status st = wf_program_options_parse(
		&command->program_set, (int)split->trainer.count, split->trainer.argv);
	if (st == WEFT_OK && is_remote(command)) {
		snprintf(command->program, sizeof(command->program), "%s", split->program.argv[0]);
	} else if (st == WEFT_OK) {
		st = wf_program_find(split->program.argv[0], command->program,
				     sizeof(command->program));
	}
	if (st == WEFT_OK) {
		wf_args_init(&command->variables);
		wf_program_options_export(&command->program_set, &command->variables);
		export_job_name(command);
		st = wf_args_check(&command->variables);
	}
	return st;
}

/* Where an option was given, as an argument or in a file; false: in neither. */
static bool
is_given(const struct wf_options *options, const char *name, const char *argument, char *where,
	 size_t bytes)
{
	enum wf_option_origin origin = wf_options_origin(options, name);

	if (origin == WF_ORIGIN_FILE) {
		snprintf(where, bytes, "%.200s:%u: %s", options->file->path,
			 wf_options_line(options, name), name);
	} else {
		snprintf(where, bytes, "%s", argument);
	}
	return origin == WF_ORIGIN_FILE || origin == WF_ORIGIN_ARGUMENT;
}

/* Both have parsed the file of --config, if there is one. */
static enum weft_status
check_given(const struct command *command, const struct wf_options *pserver,
	    const struct wf_options *trainer)
{
	const struct wf_options *own = &command->options;
	const bool gives_secret = is_remote(command) || command->set.remote.secret_file[0] != '\0';

	enum weft_status st = wf_split_check_file(own, pserver);
	if (st == WEFT_OK) {
		st = wf_split_check_file(own, trainer);
	}
	if (st == WEFT_OK && gives_secret) {
		st = wf_split_check_secret(own, pserver);
	}
	return st == WEFT_OK && gives_secret ? wf_split_check_secret(own, trainer) : st;
}

/* What launch gives to its children itself would override these without a word. */
static enum weft_status
check_overridden(const struct command *command)
{
	const struct wf_options *train = &command->train.options;
	const struct wf_train_opts *opts = &command->train.opts;
	const struct wf_options *pserver = &command->tables.pserver;
	bool has_train = !has_program(command);
	char where[WHERE_BYTES];

	if (has_train && ((opts->sequential &&
			   is_given(train, "sequential", "--sequential", where, sizeof(where))) ||
			  (opts->local && is_given(train, "local", "--local after the model", where,
						   sizeof(where))))) {
		return wf_fail(WEFT_INVALID,
			       "%s: the trainers of launch have pservers, which a sequential run "
			       "has not; for that run weft train by itself",
			       where);
	}
	if (!command->pserver_set.once &&
	    is_given(pserver, "once", "--no-once", where, sizeof(where))) {
		return wf_fail(WEFT_INVALID,
			       "%s: the pservers of launch end with their job; for others start "
			       "weft pserver by itself",
			       where);
	}
	return check_given(command, pserver, has_train ? train : &command->program_set.options);
}

/* What one of the children would refuse is refused before any is started. */
static enum weft_status
check_children(struct command *command)
{
	struct wf_split *split = &command->split;

	enum weft_status st = wf_options_parse(&command->tables.pserver, (int)split->pserver.count,
					       split->pserver.argv);
	if (st != WEFT_OK) {
		return st;
	}
	st = has_program(command)
		     ? check_program(command)
		     : wf_train_options_check(&command->train, (int)split->trainer.count,
					      split->trainer.argv);
	if (st == WEFT_OK) {
		st = check_overridden(command);
	}
	if (st == WEFT_OK) {
		st = wf_command_check_verbs(command->pserver_set.session.verbs);
	}
	return st == WEFT_OK ? wf_command_check_verbs(trainer_session(command)->verbs) : st;
}

/* The options of launch, and of its children as far as they are known. What launch itself passes to
 * each child is not shown. */
static int
print_options(struct command *command)
{
	enum weft_status st = command->split.has_trainer ? check_children(command) : WEFT_OK;

	if (st != WEFT_OK) {
		return wf_command_fail(PROGRAM, st);
	}
	if (command->split.has_trainer) {
		wf_options_print(&command->tables.pserver, stdout);
		wf_options_print(has_program(command) ? &command->program_set.options
						      : &command->train.options,
				 stdout);
	}
	return wf_command_print_options(&command->options);
}

/* With hosts, each entry has a pserver and a trainer, as the original's did. */
static enum weft_status
read_hosts(struct command *command)
{
	struct wf_launch_settings *set = &command->set;

	if (!is_remote(command)) {
		return WEFT_OK;
	}
	if (wf_options_origin(&command->options, "listen") != WF_ORIGIN_DEFAULT) {
		return wf_fail(WEFT_INVALID,
			       "--listen=%.100s: pservers on several hosts listen on the address "
			       "by which the others reach their host; leave it out",
			       set->listen);
	}
	enum weft_status st = wf_remote_set_read(&set->remote, &command->remote);
	if (st != WEFT_OK) {
		return st;
	}
	uint64_t entries = command->remote.hosts.entry_count;
	if (wf_options_origin(&command->options, "pservers") == WF_ORIGIN_DEFAULT) {
		set->pservers = entries < WF_PLAN_PSERVERS_MAX ? entries : WF_PLAN_PSERVERS_MAX;
	}
	if (wf_options_origin(&command->options, "trainers") == WF_ORIGIN_DEFAULT) {
		set->trainers = entries;
	}
	if (command->remote.lowest_port != 0) {
		set->port = command->remote.lowest_port;
	}
	return WEFT_OK;
}

static enum weft_status
check(const struct command *command)
{
	const struct wf_launch_settings *set = &command->set;
	uint64_t lanes = set->ports_num + set->ports_num_for_sparse;
	uint64_t ports = set->pservers * lanes;

	if (!command->split.has_trainer) {
		return wf_fail(WEFT_INVALID, "no command is given for the trainers; end with -- "
					     "train MODEL, as in: -- train linear, or with a "
					     "program of yours: -- python3 train.py");
	}
	enum wf_option_origin from = wf_options_origin(&command->options, "num_gradient_servers");
	if ((from == WF_ORIGIN_ARGUMENT || from == WF_ORIGIN_FILE) &&
	    set->num_gradient_servers != set->trainers) {
		return wf_fail(WEFT_INVALID,
			       "--num_gradient_servers=%" PRIu64 " and --trainers=%" PRIu64
			       " both are the number of trainers; give --trainers only",
			       set->num_gradient_servers, set->trainers);
	}
	if (is_remote(command) && ports > WF_REACH_LISTENERS_MAX) {
		return wf_fail(WEFT_INVALID,
			       "%" PRIu64 " pservers of %" PRIu64 " ports each have %" PRIu64
			       " ports, and a job on several hosts has %u at most; use fewer "
			       "--pservers or --ports_num",
			       set->pservers, lanes, ports, WF_REACH_LISTENERS_MAX);
	}
	if (!is_remote(command) && set->port + ports - 1 > 65535) {
		return wf_fail(WEFT_INVALID,
			       "--port=%u: the pservers need %" PRIu64
			       " ports, which would go past 65535; use a lower port",
			       set->port, ports);
	}
	return WEFT_OK;
}

static bool
wants_colour(const char *setting)
{
	const char *no_colour = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	if (strcmp(setting, "auto") != 0) {
		return strcmp(setting, "always") == 0;
	}
	return (no_colour == NULL || no_colour[0] == '\0') &&
	       (term == NULL || strcmp(term, "dumb") != 0) && isatty(STDERR_FILENO) == 1;
}

static enum weft_status
plan_opts(const struct command *command, struct wf_plan_opts *out)
{
	const struct wf_launch_settings *set = &command->set;

	*out = (struct wf_plan_opts){
		.pservers = (uint32_t)set->pservers,
		.trainers = (uint32_t)set->trainers,
		.ports_num = set->ports_num,
		.ports_num_for_sparse = set->ports_num_for_sparse,
		.pserver_args = &command->split.pserver,
		.trainer_args = &command->split.trainer,
		.pserver_again =
			command->restarts.alone && !command->restarts.joins ? RESUME : NULL,
		.trainers_join = command->restarts.joins,
	};
	if (has_program(command)) {
		out->program = command->program;
		out->trainer_args = &command->split.program;
		out->variables = &command->variables;
	}
	bool is_default = wf_options_origin(&command->options, "listen") == WF_ORIGIN_DEFAULT;
	enum weft_status st = wf_host_parse(is_default ? wf_address_loopback() : set->listen,
					    set->port, &out->listen);
	if (st != WEFT_OK) {
		return st;
	}
	out->listen.port = set->port;
	return WEFT_OK;
}

/* Before anything is started. */
static enum weft_status
check_ports(const struct wf_plan_opts *plan)
{
	char why[WF_ERROR_BYTES];
	unsigned count = wf_plan_port_count(plan);

	enum weft_status st = wf_ports_probe(&plan->listen, count);
	if (st != WEFT_UNAVAILABLE) {
		return st;
	}
	snprintf(why, sizeof(why), "%s", weft_last_error());
	return wf_fail(WEFT_UNAVAILABLE,
		       "%.300s; this job needs ports %u to %u: stop the process that uses it, or "
		       "choose others with --port",
		       why, plan->listen.port, plan->listen.port + count - 1);
}

static const char *
plural(unsigned count)
{
	return count == 1 ? "" : "s";
}

static void
print_start(const struct wf_plan_opts *plan)
{
	unsigned lanes = plan->ports_num + plan->ports_num_for_sparse;
	unsigned cpus = wf_pin_cpu_count();
	fprintf(stderr,
		PROGRAM ": %u pserver%s with %u lane%s%s on %s, ports %u-%u; %u trainer%s; "
			"%u threads transfer data, on %u core%s\n",
		plan->pservers, plural(plan->pservers), lanes, plural(lanes),
		plan->pservers == 1 ? "" : " each", plan->listen.name, plan->listen.port,
		plan->listen.port + wf_plan_port_count(plan) - 1, plan->trainers,
		plural(plan->trainers), wf_plan_thread_count(plan), cpus, plural(cpus));
}

static bool
is_auto(const char *pin)
{
	return strcmp(pin, "auto") == 0;
}

static enum weft_status
seat_children(const struct wf_seating *seating, uint32_t first, struct wf_child_spec *spec)
{
	enum weft_status st = WEFT_OK;
	char pin[PIN_BYTES];
	for (uint32_t i = 0; i < seating->process_count && st == WEFT_OK; i++) {
		st = wf_seating_pin(seating, i, pin, sizeof(pin));
		if (st == WEFT_OK) {
			st = wf_plan_set(&spec[first + i], "pin", pin);
		}
	}
	return st;
}

/* With --pin=auto each process gets its own CPUs; by itself each would use the same ones. Processes
 * that are bound in another way are left out. */
static enum weft_status
pin_children(const struct command *command, const struct wf_plan_opts *plan,
	     struct wf_child_spec *spec, struct wf_env *env)
{
	const struct weft_session_opts *trainer = trainer_session(command);
	struct wf_topo *topo = NULL;
	struct wf_seating seating = {.env = env};
	struct wf_verbs_settings verbs;
	enum weft_status st = wf_verbs_settings_parse(command->pserver_set.session.verbs, &verbs);
	if (st != WEFT_OK) {
		return st;
	}
	const struct wf_seating_job job = {
		.pservers = is_auto(command->pserver_set.session.pin) ? plan->pservers : 0,
		.dense = plan->ports_num,
		.sparse = plan->ports_num_for_sparse,
		.trainers = is_auto(trainer->pin) ? plan->trainers : 0,
		.compute = has_program(command) ? 1 : (uint32_t)command->train.opts.trainer_count,
		.progress = trainer->progress == WEFT_PROGRESS_THREAD,
		.device = verbs.device[0] != '\0' ? verbs.device : NULL,
		.port = verbs.port,
	};
	if (job.pservers + job.trainers == 0) {
		return WEFT_OK;
	}
	st = wf_topo_open(env, &(struct wf_topo_source){0}, &topo);
	if (st == WEFT_OK) {
		st = wf_seating_plan(topo, &job, &seating);
	}
	if (st == WEFT_OK && seating.share == WF_SEAT_NOTHING) {
		fprintf(stderr,
			PROGRAM ": --pin=auto: %u threads on %u CPUs, no thread is pinned\n",
			seating.seat_count, topo->cpu_count);
	}
	if (st == WEFT_OK) {
		st = seat_children(&seating, job.pservers > 0 ? 0 : plan->pservers, spec);
	}
	wf_seating_fini(&seating);
	wf_topo_close(topo);
	return st;
}

/* With more threads that move bytes than CPUs, a polling thread would use the CPU of the one that
 * would answer, so none polls unless it is configured to. Each process by itself would count its
 * own threads only. */
static enum weft_status
calm_children(const struct command *command, const struct wf_plan_opts *plan,
	      struct wf_child_spec *spec)
{
	enum weft_status st = WEFT_OK;
	bool crowded = wf_plan_thread_count(plan) > wf_pin_cpu_count();
	for (uint32_t i = 0; crowded && i < plan->pservers + plan->trainers && st == WEFT_OK; i++) {
		uint64_t spin_ns = i < plan->pservers ? command->pserver_set.session.spin_ns
						      : trainer_session(command)->spin_ns;
		if (spin_ns == WEFT_SPIN_AUTO) {
			st = wf_plan_set(&spec[i], "spin", "0");
		}
	}
	return st;
}

/* How long children may save after SIGTERM. */
static uint64_t
save_grace(const struct command *command)
{
	const struct wf_pserver_settings *pserver = &command->pserver_set;
	const struct wf_train_opts *train = &command->train.opts;
	uint64_t pserver_ns = pserver->save_on_term ? pserver->term_grace_ns : 0;
	uint64_t train_ns = !has_program(command) && train->save_on_term ? train->term_grace_ns : 0;

	return pserver_ns > train_ns ? pserver_ns : train_ns;
}

/* The secret of the job, if it has one. */
static enum weft_status
give_secret(const struct command *command, const struct wf_plan_opts *plan,
	    struct wf_child_spec *spec)
{
	const char *path = command->set.remote.secret_file;
	enum weft_status st = WEFT_OK;

	for (uint32_t i = 0; path[0] != '\0' && i < plan->pservers + plan->trainers; i++) {
		st = st == WEFT_OK ? wf_plan_set(&spec[i], "secret_file", path) : st;
	}
	return st;
}

static enum weft_status
run_here(const struct command *command, struct wf_plan_opts *plan, struct wf_supervise_opts *opts,
	 struct wf_supervise_end *end)
{
	enum weft_status st = check_ports(plan);
	if (st != WEFT_OK) {
		return st;
	}
	opts->count = plan->pservers + plan->trainers;
	struct wf_child_spec *spec = wf_zalloc_array(opts->env, opts->count, sizeof(*spec));
	if (spec == NULL) {
		return wf_fail(WEFT_NOMEM, "no memory for %u processes", opts->count);
	}
	opts->spec = spec;
	st = wf_plan_job(plan, spec);
	if (st == WEFT_OK) {
		st = give_secret(command, plan, spec);
	}
	if (st == WEFT_OK) {
		st = calm_children(command, plan, spec);
	}
	if (st == WEFT_OK) {
		st = pin_children(command, plan, spec, opts->env);
	}
	if (st == WEFT_OK) {
		print_start(plan);
		st = wf_supervise(opts, end);
	}
	wf_free(opts->env, spec, opts->count * sizeof(*spec));
	return st;
}

/* How many trainers a job needs that goes on without one that has died; 0: it does not. */
static unsigned
least_trainers(const struct command *command)
{
	const struct wf_pserver_settings *pserver = &command->pserver_set;
	return pserver->on_trainer_death == WF_ON_DEATH_DROP ? (unsigned)pserver->min_trainers : 0;
}

static struct wf_remote_auto
find_auto(const struct weft_session_opts *session)
{
	return (struct wf_remote_auto){.pins = is_auto(session->pin),
				       .spins = session->spin_ns == WEFT_SPIN_AUTO};
}

static enum weft_status
run(struct command *command, struct wf_env *env, struct wf_supervise_end *end)
{
	struct wf_plan_opts plan;
	struct wf_supervise_opts opts = {.env = env,
					 .program = PROGRAM,
					 .log_dir = command->set.log_dir,
					 .colour = wants_colour(command->set.color),
					 .announce = true,
					 .grace_ns = GRACE_NS,
					 .save_grace_ns = save_grace(command),
					 .restarts = command->restarts,
					 .least_workers = least_trainers(command)};

	enum weft_status st = plan_opts(command, &plan);
	if (st != WEFT_OK || !is_remote(command)) {
		return st == WEFT_OK ? run_here(command, &plan, &opts, end) : st;
	}
	command->remote.opts.version = WEFT_PROJECT_VERSION;
	command->remote.opts.pserver = find_auto(&command->pserver_set.session);
	command->remote.opts.trainer = find_auto(trainer_session(command));
	return wf_remote_run(&command->remote.opts, &plan, &opts, end);
}

static bool
has_snapshots(const struct command *command)
{
	const char *dir = command->pserver_set.snapshot_dir;
	return dir != NULL && dir[0] != '\0';
}

/* From the second start on the job goes on from its own snapshots. With --resume=never it could
 * find those of another job, if it had died before it began. */
static enum weft_status
check_restarts(const struct command *command)
{
	if (command->set.restarts > 0 && has_snapshots(command) &&
	    command->pserver_set.resume == WF_RESUME_NEVER) {
		return wf_fail(WEFT_INVALID,
			       "--restarts goes on from snapshots, and --resume=never does not; "
			       "give --resume=auto, or an empty --snapshot_dir");
	}
	return WEFT_OK;
}

/* A process is started again alone if the pservers wait for it, which they do unless the user has
 * decided otherwise. With `drop` it is only a trainer, which joins the others. */
static enum weft_status
plan_restarts(struct command *command)
{
	const struct wf_options *pserver = &command->tables.pserver;
	bool can_wait = command->set.restarts > 0 && has_snapshots(command);
	bool is_given = wf_options_origin(pserver, "on_trainer_death") != WF_ORIGIN_DEFAULT;

	command->restarts.most = command->set.restarts;
	command->restarts.joiner_grace_ns = JOINER_GRACE_NS;
	command->restarts.alone = can_wait && (!is_given || command->pserver_set.on_trainer_death ==
								    WF_ON_DEATH_WAIT);
	command->restarts.joins = command->set.restarts > 0 &&
				  command->pserver_set.on_trainer_death == WF_ON_DEATH_DROP;
	command->restarts.alone = command->restarts.alone || command->restarts.joins;
	if (command->restarts.alone && !is_given) {
		wf_args_add(&command->split.pserver, "--on_trainer_death=wait");
	}
	return wf_args_check(&command->split.pserver);
}

/* Runs the job, and again, as often as --restarts allows. */
static enum weft_status
run_again(struct command *command, struct wf_env *env, struct wf_supervise_end *end)
{
	struct wf_supervise_restarts *restarts = &command->restarts;
	bool resumes = false;
	enum weft_status st = plan_restarts(command);
	st = st == WEFT_OK ? run(command, env, end) : st;
	while (st == WEFT_OK && end->may_recover && end->restarts < restarts->most) {
		restarts->made = end->restarts + 1;
		fprintf(stderr,
			PROGRAM ": %s\n" PROGRAM ": the job is started again (%llu of %llu)\n",
			end->cause, (unsigned long long)restarts->made,
			(unsigned long long)restarts->most);
		if (!resumes && has_snapshots(command)) {
			resumes = true;
			wf_args_add(&command->split.pserver, RESUME);
			st = wf_args_check(&command->split.pserver);
		}
		st = st == WEFT_OK ? run(command, env, end) : st;
	}
	if (st == WEFT_OK && end->is_done && restarts->most > 0) {
		fprintf(stderr,
			PROGRAM ": %s\n" PROGRAM ": all trainers have ended with 0, so the job is "
				"done, and is not started again\n",
			end->cause);
		*end = (struct wf_supervise_end){.restarts = end->restarts};
	}
	explicit_bzero(command->remote.secret, sizeof(command->remote.secret));
	return st;
}

static int
launch(struct command *command, struct wf_env *env, int argc, char **argv)
{
	struct wf_supervise_end end;

	enum weft_status st = parse(command, argc, argv);
	if (st == WEFT_OK && command->options.help_wanted) {
		return wf_command_print_help(&command->options);
	}
	if (st == WEFT_OK && command->options.print_wanted) {
		return print_options(command);
	}
	if (st == WEFT_OK) {
		wf_cmd_env_warn(PROGRAM, WF_ROLE_UNKNOWN);
		st = wf_remote_set_check(&command->set.remote, command->set.local);
	}
	if (st == WEFT_OK) {
		st = read_hosts(command);
	}
	if (st == WEFT_OK) {
		st = check(command);
	}
	if (st == WEFT_OK) {
		st = check_children(command);
	}
	if (st == WEFT_OK) {
		st = check_restarts(command);
	}
	if (st == WEFT_OK) {
		st = run_again(command, env, &end);
	}
	if (st != WEFT_OK) {
		return wf_command_fail(PROGRAM, st);
	}
	if (end.cause[0] != '\0') {
		wf_outlet_last_words(PROGRAM ": %s", end.cause);
	}
	return end.exit_code;
}

int
wf_cmd_launch(int argc, char **argv)
{
	struct wf_env *env = NULL;

	drop_pservers_variable();
	enum weft_status st = wf_env_system_create(WF_LOG_INFO, STDERR_FILENO, &env);
	if (st != WEFT_OK) {
		return wf_command_fail(PROGRAM, st);
	}
	struct command *command = wf_zalloc(env, sizeof(*command)); /* argument lists are large */
	int code = WF_EXIT_INTERNAL;
	if (command == NULL) {
		st = wf_fail(WEFT_NOMEM, "no memory for the arguments");
		code = wf_command_fail(PROGRAM, st);
	} else {
		code = launch(command, env, argc, argv);
		wf_free(env, command, sizeof(*command));
	}
	wf_env_system_destroy(env);
	return code;
}
