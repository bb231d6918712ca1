/* SPDX-License-Identifier: Apache-2.0 */
/* weft pserver: options in, one server out. Thread: main runs the server; one more waits for
 * signals that ask to stop, so that no signal handler and no global is needed. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/role.h"
#include "base/signals.h"
#include "pserver/server.h"
#include "sparse/server/service.h"
#include "tools/command.h"
#include "tools/doctor/start.h"
#include "tools/observe.h"
#include "tools/pserver_options.h"
#include "tools/ready.h"
#include "transport/address.h"

#define PROGRAM "weft pserver"
#define UNDERSTOOD_BYTES 2000u
#define NEWCOMERS_MIN 4
#define NEWCOMERS_MAX 64

struct command {
	struct wf_pserver_settings set;
	struct wf_options options;
	struct wf_option table[WF_PSERVER_OPTION_MAX];
	enum wf_option_origin origin[WF_PSERVER_OPTION_MAX];
	const char *env_name[WF_PSERVER_OPTION_MAX];
	struct wf_launcher launcher;
	struct wf_option_file file;
	struct wf_originals originals;
	char registrar[WF_HOST_BYTES + 8]; /* the first pserver that a launcher names; "": none */
};

/* Waits for the signals that ask to stop. */
struct stopper {
	/* Fixed before the thread starts. */
	struct wf_server *server;
	sigset_t signals;
	uint64_t echo_ms; /* the same signal within this time is an echo */
	pthread_t thread;
	/* Shared. */
	_Atomic bool finished;  /* main: store release; stopper: load acquire */
	bool ended_job;         /* main's: a signal stopped the server in a job */
	_Atomic uint64_t asked; /* the thread's: wf_stop_asked */
};

static const struct wf_help_group groups[] = {
	{"Ports and addresses", "port ports_num ports_num_for_sparse listen"},
	{"Job", "num_gradient_servers max_trainers once ready_file job_name save_on_term "
		"term_grace"},
	{"Memory", "max_shard_bytes inbox_bytes slot_count"},
	{"Snapshots", "snapshot_dir registrar snapshot_period snapshot_steps snapshot_bytes "
		      "snapshot_rate snapshot_full keep resume on_trainer_death min_trainers"},
	{.title = WF_HEADING_TRANSPORT},
	{WF_HEADING_TIME_LIMITS, "stall_timeout"},
	{"Log, and what can be seen from outside", "log_level stats_period status"},
	{"Accepted for command lines of the original, PaddlePaddle v0.10",
	 "nics rdma_tcp use_gpu comment small_messages sock_send_buf_size sock_recv_buf_size "
	 "sock_listen_queue_size pserver_num_threads log_period_server"},
};

static const struct wf_help help = {
	.usage = "weft pserver [options]",
	.about =
		"Holds a share of a job's parameters: sums the trainers' gradients in the order of "
		"their numbers, applies the optimizer, and sends the new values back.\n\n"
		"SIGTERM, SIGINT or SIGHUP stops it; the members of its job then learn which "
		"process was stopped by which signal. A second signal ends it at once.",
	.examples = "  weft pserver                  one trainer, on loopback, port 7164\n"
		    "  weft pserver --port=7164 --ports_num=2 --num_gradient_servers=4\n"
		    "  weft pserver --listen=0.0.0.0 --num_gradient_servers=4 --pin=auto\n"
		    "  weft pserver --once           ends with its first job",
	.group = groups,
	.group_count = (unsigned)WF_ARRAY_COUNT(groups),
	.exit_codes = "   0  the job has ended well, or a signal came while there was none\n"
		      "  64  an option is wrong\n"
		      "  65  bad data\n"
		      "  69  a peer was lost, or the address is in use\n"
		      "  70  an internal error\n"
		      "  74  input or output failed\n"
		      "  75  a signal stopped it in a job\n"
		      "  77  not permitted",
};

static enum weft_status
parse(struct command *command, int argc, char **argv)
{
	struct wf_options *options = &command->options;

	options->table = command->table;
	options->option_count = wf_pserver_options(command->table);
	options->program = PROGRAM;
	options->help = &help;
	options->target = &command->set;
	options->origin = command->origin;
	options->env_name = command->env_name;
	options->file = &command->file;
	command->originals.serves = true;
	options->originals = &command->originals;
	wf_launcher_detect(&(struct wf_launcher_source){0}, WF_ROLE_PSERVER, &command->launcher);
	options->launcher = &command->launcher;
	wf_session_defaults(&command->set.values);
	return wf_options_parse(options, argc, argv);
}

/* The IPv4 address of a network device. */
static enum weft_status
address_of_nic(const char *nic, struct wf_host *out)
{
	struct ifaddrs *list;
	char have[256] = "";
	size_t used = 0;
	bool found = false;

	if (getifaddrs(&list) != 0) {
		return wf_fail_errno(WEFT_IO, errno, "--nics=%s: network devices", nic);
	}
	for (struct ifaddrs *i = list; i != NULL && !found; i = i->ifa_next) {
		if (i->ifa_addr == NULL || i->ifa_addr->sa_family != AF_INET) {
			continue;
		}
		struct sockaddr_in address;
		memcpy(&address, i->ifa_addr, sizeof(address));
		found = strcmp(i->ifa_name, nic) == 0 &&
			inet_ntop(AF_INET, &address.sin_addr, out->name, sizeof(out->name)) != NULL;
		int wrote = snprintf(have + used, sizeof(have) - used, " %s", i->ifa_name);
		used = wrote > 0 && used + (size_t)wrote < sizeof(have) ? used + (size_t)wrote
									: used;
	}
	freeifaddrs(list);
	if (!found) {
		return wf_fail(
			WEFT_INVALID,
			"--nics=%s: no network device of that name has an IPv4 address (there "
			"are:%s); name one, or give --listen=ADDR",
			nic, have);
	}
	return WEFT_OK;
}

/* Whether the address to listen on is what a launcher calls that of this process. */
static bool
is_by_launcher(const struct command *command)
{
	return wf_options_origin(&command->options, "listen") == WF_ORIGIN_LAUNCHER;
}

static enum weft_status
choose_address(const struct command *command, struct wf_host *out)
{
	const struct wf_pserver_settings *set = &command->set;
	uint16_t port = set->session.port;
	bool by_user = set->listen != NULL && !is_by_launcher(command);
	bool by_nic = !by_user && set->nics != NULL && set->nics[0] != '\0';

	if (by_nic && strchr(set->nics, ',') != NULL) {
		return wf_fail(
			WEFT_INVALID,
			"--nics=%s: a pserver listens on one address; name one device, start "
			"one pserver for each, or give --listen=0.0.0.0",
			set->nics);
	}
	if (by_nic) {
		out->port = port;
		return address_of_nic(set->nics, out);
	}
	enum weft_status st =
		wf_host_parse(set->listen != NULL ? set->listen : wf_address_loopback(), port, out);
	if (st == WEFT_OK && out->port != port) {
		return wf_fail(
			WEFT_INVALID,
			"--listen=%s names port %u and --port is %u; give the port with --port",
			set->listen, out->port, port);
	}
	return st;
}

/* Where pserver 0 listens, if a launcher lists the pservers and no option says it. */
static enum weft_status
find_registrar(struct command *command)
{
	const struct wf_launcher_finding *said =
		wf_launcher_find_setting(&command->launcher, "pservers");
	struct wf_host first;
	char text[WF_HOST_BYTES + 8];
	bool is_given = command->set.registrar != NULL && command->set.registrar[0] != '\0';
	bool has_snapshots =
		command->set.snapshot_dir != NULL && command->set.snapshot_dir[0] != '\0';
	if (is_given || !has_snapshots || said == NULL || said->ignored != NULL) {
		return WEFT_OK;
	}
	(void)snprintf(text, sizeof(text), "%.*s", (int)strcspn(said->value, ","), said->value);
	enum weft_status st = wf_host_parse(text, command->set.session.port, &first);
	if (st == WEFT_OK) {
		wf_host_format(&first, command->registrar, sizeof(command->registrar));
		command->set.registrar = command->registrar;
	}
	return st;
}

/* Each trainer needs two or three descriptors on each lane, so the limit is raised as far as this
 * user may raise it. Connections that were not admitted use at most an eighth of it, on each of the
 * paths. */
static uint32_t
newcomer_max(const struct wf_pserver_settings *set)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0) {
		return 0; /* the default */
	}
	if (files.rlim_cur < files.rlim_max) {
		rlim_t before = files.rlim_cur;
		files.rlim_cur = files.rlim_max;
		files.rlim_cur = setrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_max : before;
	}
	uint64_t each =
		files.rlim_cur / 8 / (set->session.ports_num + set->session.ports_num_for_sparse);
	return each < NEWCOMERS_MIN   ? NEWCOMERS_MIN
	       : each > NEWCOMERS_MAX ? NEWCOMERS_MAX
				      : (uint32_t)each;
}

static enum weft_status
server_opts(const struct command *command, struct wf_env *env, struct wf_server_opts *out)
{
	const struct wf_pserver_settings *set = &command->set;

	wf_server_opts_init(out);
	out->env = env;
	out->values = set->values;
	out->sparse = &wf_sparse_service;
	out->max_trainers = (uint32_t)set->max_trainers;
	out->newcomer_max = newcomer_max(set);
	out->once = set->once;
	out->is_watched = set->status != NULL && set->status[0] != '\0';
	out->version = WEFT_PROJECT_VERSION;
	out->stop_grace_ns = set->save_on_term ? set->term_grace_ns : 0;
	out->slot_count = (uint32_t)set->slot_count;
	out->max_shard_bytes = set->max_shard_bytes;
	out->inbox_bytes = set->inbox_bytes;
	out->snapshots = (struct wf_snapshots_opts){
		.dir = set->snapshot_dir,
		.registrar = set->registrar,
		.period_ns = set->snapshot_period_ns,
		.steps = set->snapshot_steps,
		.ring_bytes = set->snapshot_bytes,
		.rate = set->snapshot_rate,
		.full = (uint32_t)set->snapshot_full,
		.keep = (uint32_t)set->keep,
		.resume = set->resume,
		.goes_back = set->on_trainer_death == WF_ON_DEATH_WAIT,
	};
	out->min_trainers =
		set->on_trainer_death == WF_ON_DEATH_DROP ? (uint32_t)set->min_trainers : 0;
	return choose_address(command, &out->listen);
}

static void *
stopper_main(void *arg)
{
	struct stopper *stopper = arg;
	int signal_number;

	while (sigwait(&stopper->signals, &signal_number) == 0) {
		if (atomic_load_explicit(&stopper->finished,
					 memory_order_acquire)) { /* S1: stopper_end */
			return NULL;
		}
		enum wf_stop_ask ask =
			wf_stop_asked_within(&stopper->asked, signal_number, stopper->echo_ms);
		if (ask == WF_STOP_FIRST) {
			wf_server_stop_by(stopper->server, signal_number);
		} else if (ask == WF_STOP_AGAIN) {
			_exit(WF_EXIT_SIGNAL + signal_number); /* no more waiting */
		}
	}
	return NULL;
}

/* Before any other thread exists: all inherit the blocked signals. */
static void
stopper_block(struct stopper *stopper)
{
	wf_signals_that_stop(&stopper->signals);
	pthread_sigmask(SIG_BLOCK, &stopper->signals, NULL);
}

static enum weft_status
stopper_start(struct stopper *stopper, struct wf_server *server)
{
	stopper->server = server;
	int err = pthread_create(&stopper->thread, NULL, stopper_main, stopper);
	if (err != 0) {
		return wf_fail_errno(WEFT_NOMEM, err, "the thread that waits for signals");
	}
	return WEFT_OK;
}

static void
stopper_end(struct stopper *stopper)
{
	atomic_store_explicit(&stopper->finished, true,
			      memory_order_release); /* S1: stopper_main */
	pthread_kill(stopper->thread, SIGTERM);
	pthread_join(stopper->thread, NULL);
}

/* The original's options of the command line, and how they were understood. */
static void
log_start(const struct command *command, struct wf_env *env, const struct wf_server *server)
{
	char what[512];
	char asked[UNDERSTOOD_BYTES];

	wf_server_describe(server, what, sizeof(what));
	wf_log_lines(env, WF_LOG_INFO, "", what);
	(void)wf_options_understood(&command->options, asked, sizeof(asked));
	wf_log_lines(env, WF_LOG_INFO, "understood ", asked);
	if (command->set.use_gpu) {
		wf_log(env, WF_LOG_WARN,
		       "use_gpu=true from %s is ignored here: a pserver has no use for a GPU; "
		       "trainers refuse it",
		       wf_options_origin(&command->options, "use_gpu") == WF_ORIGIN_FILE
			       ? command->options.config
			       : "the environment");
	}
}

/* That all lanes listen, to whoever waits for it. */
static enum weft_status
announce(const struct command *command, const struct wf_server_opts *opts, struct wf_env *env,
	 const struct wf_server *server, struct wf_ready *ready)
{
	char text[WF_HOST_BYTES + 8];
	struct wf_host at = opts->listen;

	at.port = wf_server_port(server, 0);
	wf_host_format(&at, text, sizeof(text));
	return wf_ready_announce(ready, env, command->set.ready_file, text);
}

/* Who has not given the address should learn where it is from. */
static enum weft_status
name_source(const struct command *command, enum weft_status st)
{
	const struct wf_launcher_finding *said =
		wf_launcher_find(&command->launcher, WF_FACT_LISTEN);

	if (said == NULL || !is_by_launcher(command)) {
		return st;
	}
	const struct wf_error error = *wf_error_record();
	return wf_fail(st, "%.300s; the address is that of %.100s, and --listen=ADDR gives another",
		       error.text, said->text);
}

/* Findings of weft doctor that matter for this pserver. */
static void
warn_at_start(const struct command *command, const struct wf_server_opts *opts)
{
	const struct weft_session_opts *session = &command->set.session;
	const struct wf_doctor_ask ask = {
		.root = "",
		.transport = session->transport != NULL ? session->transport : "auto",
		.tcp_congestion = session->tcp_congestion,
		.listen = opts->listen.name,
		.lanes = session->ports_num + session->ports_num_for_sparse,
		.trainers = session->num_gradient_servers,
		.memory_bytes = WF_DOCTOR_START_BYTES,
	};

	wf_doctor_warn_at_start(PROGRAM, &ask);
}

static enum weft_status
serve(const struct command *command, struct wf_env *env, struct stopper *stopper)
{
	struct wf_server_opts opts;
	struct wf_server *server = NULL;

	enum weft_status st = server_opts(command, env, &opts);
	if (st != WEFT_OK) {
		return st;
	}
	warn_at_start(command, &opts);
	st = wf_server_create(&opts, &server);
	if (st != WEFT_OK) {
		return name_source(command, st);
	}
	log_start(command, env, server);
	struct wf_ready ready = {0};
	struct wf_observer *observer = NULL;
	st = wf_observer_start(env, server, command->set.status, &observer);
	if (st != WEFT_OK) {
		wf_server_destroy(server);
		return st;
	}
	st = announce(command, &opts, env, server, &ready);
	if (st == WEFT_OK) {
		st = stopper_start(stopper, server);
	}
	if (st == WEFT_OK) {
		st = wf_server_run(server);
		stopper_end(stopper);
		stopper->ended_job = wf_server_ended_job(server);
	}
	wf_ready_withdraw(&ready, env);
	wf_observer_stop(observer);
	wf_server_destroy(server);
	return st;
}

int
wf_cmd_pserver(int argc, char **argv)
{
	struct command command = {0};
	struct stopper stopper = {0};
	struct wf_env *env = NULL;

	wf_role_name_process("pserver");
	enum weft_status st = parse(&command, argc, argv);
	if (st == WEFT_OK && command.options.help_wanted) {
		return wf_command_print_help(&command.options);
	}
	if (st == WEFT_OK && command.options.print_wanted) {
		return wf_command_print_options(&command.options);
	}
	if (st == WEFT_OK) {
		wf_cmd_env_warn(PROGRAM, WF_ROLE_PSERVER);
		st = wf_pserver_options_check(&command.options);
	}
	if (st == WEFT_OK) {
		st = find_registrar(&command);
	}
	stopper_block(&stopper);
	stopper.echo_ms = command.set.save_on_term ? WF_STOP_ECHO_SAVING_MS : WF_STOP_ECHO_MS;
	if (st == WEFT_OK) {
		st = wf_env_system_create(command.set.log_level, STDERR_FILENO, &env);
	}
	if (st == WEFT_OK) {
		st = serve(&command, env, &stopper);
	}
	wf_env_system_destroy(env);
	int code = st == WEFT_OK ? WF_EXIT_OK : wf_command_fail(PROGRAM, st);
	return stopper.ended_job ? WF_EXIT_AGAIN : code;
}
