/* SPDX-License-Identifier: Apache-2.0 */
/* The two ends of a link when the other one is silent or receives nothing, and processes that do
 * not end, under a clock that runs ahead whenever nothing is to be read: the agent in a process of
 * its own, and a link with cat in the place of ssh and agent. Thread: main. */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/exit_code.h"
#include "tools/launch/agent.h"
#include "tools/launch/child.h"
#include "tools/launch/link.h"

#define LONG_NS (10 * WF_FRAME_SILENCE_NS)
#define STEP_NS (WF_FRAME_SILENCE_NS - WF_NS_PER_S)

/* An env of the system whose clock jumps to the end of each wait for which nothing comes. */
struct jumping {
	struct wf_env env;
	struct wf_env_ops ops;
	struct wf_env *system;
	uint64_t now_ns;
	int patience_ms; /* of the real clock, for what is under way */
	int input;       /* where signs of life are written to ... */
	unsigned signs;  /* ... so many of them, just in time */
	bool stands;     /* until `ready` can be read */
	int ready;       /* -1: until somebody changes `stands` */
	void (*on_ready)(void);
	bool nags; /* the user sends another signal before each jump */
};

static struct jumping clock_;

static uint64_t
now_ns(struct wf_env *env)
{
	(void)env;
	return clock_.now_ns;
}

static void *
alloc(struct wf_env *env, size_t bytes, size_t align)
{
	(void)env;
	return clock_.system->ops->alloc(clock_.system, bytes, align);
}

static void
release(struct wf_env *env, void *memory, size_t bytes)
{
	(void)env;
	clock_.system->ops->free(clock_.system, memory, bytes);
}

static void
send_sign(void)
{
	static const uint8_t alive[WF_FRAME_HEAD_BYTES] = {WF_FRAME_ALIVE};

	clock_.signs--;
	clock_.now_ns += STEP_NS;
	assert_int_equal(write(clock_.input, alive, sizeof(alive)), sizeof(alive));
}

static void
jump(struct wf_env *env, int fd, uint64_t deadline_ns)
{
	struct pollfd either[] = {{fd, POLLIN, 0}, {clock_.stands ? clock_.ready : -1, POLLIN, 0}};

	(void)env;
	int count = poll(either, 2, clock_.stands ? -1 : clock_.patience_ms);
	if (either[1].revents != 0) {
		clock_.stands = false;
		clock_.on_ready();
	}
	if (count > 0) {
		return;
	}
	if (clock_.nags) {
		raise(SIGTERM);
	}
	if (clock_.signs > 0) {
		send_sign();
	} else if (deadline_ns == WF_NEVER || clock_.now_ns > LONG_NS) {
		_exit(99); /* it would wait for ever */
	} else if (clock_.now_ns < deadline_ns) {
		clock_.now_ns = deadline_ns;
	}
}

static void
start_clock(int patience_ms)
{
	memset(&clock_, 0, sizeof(clock_));
	assert_int_equal(wf_env_system_create(WF_LOG_ERROR, -1, &clock_.system), WEFT_OK);
	clock_.ops = *clock_.system->ops;
	clock_.ops.now_ns = now_ns;
	clock_.ops.alloc = alloc;
	clock_.ops.free = release;
	clock_.ops.wait = jump;
	clock_.env.ops = &clock_.ops;
	clock_.now_ns = 1;
	clock_.patience_ms = patience_ms;
	clock_.ready = -1;
}

static void
stop_clock(void)
{
	wf_env_system_destroy(clock_.system);
}

/* Returns the exit code of the agent, or 98 if it ended at another time than it should. */
static int
be_agent(unsigned signs)
{
	int input[2];
	int output[2];

	if (pipe(input) != 0 || pipe(output) != 0) {
		return 97;
	}
	start_clock(0);
	clock_.input = input[1];
	clock_.signs = signs;
	if (dup2(input[0], STDIN_FILENO) < 0 || dup2(output[1], STDOUT_FILENO) < 0) {
		return 97;
	}
	int code = wf_agent_run(&clock_.env, "1", NULL);
	return clock_.now_ns == 1 + signs * STEP_NS + WF_FRAME_SILENCE_NS ? code : 98;
}

static void
an_agent_ends_after_its_launcher_was_silent_and_not_before(void **state)
{
	(void)state;
	for (unsigned signs = 0; signs <= 3; signs++) {
		int status = 0;
		pid_t pid = fork();
		if (pid == 0) {
			_exit(be_agent(signs));
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), WF_EXIT_UNAVAILABLE);
	}
}

static void
pulse(void *arg)
{
	wf_link_pulse(arg);
}

/* cat sends back the hello that it gets, and each sign of life. */
static void
open_link(struct wf_link *link)
{
	struct wf_args cat;

	wf_link_init(link, &clock_.env, "host");
	link->life.on_wait = pulse;
	link->life.on_wait_arg = link;
	wf_args_init(&cat);
	wf_args_add(&cat, "cat");
	assert_int_equal(wf_link_open(link, &cat), WEFT_OK);
	wf_frame_begin(&link->writer, WF_FRAME_HELLO);
	wf_frame_add_number(&link->writer, WF_FRAME_VERSION);
	wf_frame_add_text(&link->writer, "1");
	wf_frame_add_number(&link->writer, 2);
	wf_frame_add_text(&link->writer, "");
	assert_int_equal(wf_link_send(link), WEFT_OK);
	assert_int_equal(wf_link_await_hello(link, "1", LONG_NS), WEFT_OK);
}

static void
a_link_is_lost_when_its_agent_is_silent_and_not_before(void **state)
{
	static struct wf_link link;

	(void)state;
	start_clock(100);
	open_link(&link);
	assert_int_equal(wf_link_await(&link, 2 * WF_FRAME_SILENCE_NS), WEFT_UNAVAILABLE);
	assert_non_null(strstr(weft_last_error(), "no answer in time"));
	assert_true(clock_.now_ns >= 2 * WF_FRAME_SILENCE_NS);
	wf_link_close(&link, 0);
	stop_clock();

	start_clock(100);
	open_link(&link);
	wf_process_signal(&link.ssh, SIGSTOP);
	clock_.patience_ms = 10;
	assert_int_equal(wf_link_await(&link, 2 * WF_FRAME_SILENCE_NS), WEFT_UNAVAILABLE);
	assert_non_null(strstr(weft_last_error(), "silent"));
	wf_link_close(&link, 0);
	stop_clock();
}

/* ---- hosts that receive nothing ---- */

#define STUCK_COUNT 16u
#define GRACE_NS (5 * WF_NS_PER_S)

static struct wf_link stuck[STUCK_COUNT];
static struct wf_child *stuck_child[STUCK_COUNT][1];
static struct wf_site *site[STUCK_COUNT];
static struct wf_child_spec spec[STUCK_COUNT + 1];

/* A host whose pipe is full, and stays so until the reader is continued; then all that was sent
 * comes back. */
static void
open_stuck_link(unsigned idx)
{
	static const uint8_t alive[WF_FRAME_HEAD_BYTES] = {WF_FRAME_ALIVE};
	struct wf_link *link = &stuck[idx];

	open_link(link);
	wf_process_signal(&link->ssh, SIGSTOP);
	while (write(link->ssh.fd[WF_PROCESS_STDIN], alive, sizeof(alive)) > 0) {
	}
	link->child = stuck_child[idx];
	link->child_count = 1;
	stuck_child[idx][0] = NULL;
	site[idx] = &link->site;
	spec[idx] = (struct wf_child_spec){.site = &link->site};
	snprintf(spec[idx].name, sizeof(spec[idx].name), "trainer %u", idx);
}

static void
interrupt(void *arg, const char *line)
{
	(void)arg;
	assert_string_equal(line, "started");
	clock_.stands = false;
	raise(SIGINT);
}

/* The process of this host, cat, is started after those of the others, and stopped after them. */
static void
end_stuck_job(bool nags)
{
	struct wf_supervise_opts opts = {.env = &clock_.env,
					 .spec = spec,
					 .count = STUCK_COUNT + 1,
					 .program = "test",
					 .grace_ns = GRACE_NS,
					 .on_stdout = interrupt,
					 .site = site,
					 .site_count = STUCK_COUNT};
	struct wf_child_spec *here = &spec[STUCK_COUNT];
	struct wf_supervise_end end;

	start_clock(100);
	for (unsigned i = 0; i < STUCK_COUNT; i++) {
		open_stuck_link(i);
	}
	uint64_t begin_ns = clock_.now_ns;
	clock_.stands = true;
	clock_.nags = nags;
	*here = (struct wf_child_spec){
		.name = "pserver 0", .program = "sh", .owns_stdout = true, .has_stdin = true};
	wf_args_init(&here->args);
	wf_args_add(&here->args, "sh");
	wf_args_add(&here->args, "-c");
	wf_args_add(&here->args, "echo started; exec cat");
	assert_int_equal(wf_supervise(&opts, &end), WEFT_OK);
	assert_int_equal(end.exit_code, 128 + (nags ? SIGTERM : SIGINT));
	assert_in_range(clock_.now_ns - begin_ns, 0, 2 * GRACE_NS);
	clock_.nags = false;
	for (unsigned i = 0; i < STUCK_COUNT; i++) {
		wf_link_close(&stuck[i], 0);
	}
	stop_clock();
}

static void
a_signal_ends_a_job_whose_hosts_are_all_stuck_as_fast_as_with_one(void **state)
{
	(void)state;
	end_stuck_job(false);
	end_stuck_job(true);
}

static void
a_link_is_lost_when_its_host_receives_nothing(void **state)
{
	struct wf_child child = {.spec = &spec[0], .started = true};
	uint64_t begin_ns;

	(void)state;
	start_clock(100);
	open_stuck_link(0);
	begin_ns = clock_.now_ns;
	assert_int_equal(site[0]->ops->start(site[0], &child, NULL), WEFT_OK);
	assert_int_equal(clock_.now_ns, begin_ns);
	clock_.now_ns = begin_ns + 60 * WF_NS_PER_S - 1;
	site[0]->ops->tick(site[0]);
	assert_false(child.over);
	clock_.now_ns++;
	site[0]->ops->tick(site[0]);
	assert_true(child.over);
	assert_non_null(strstr(child.last_error, "nothing that is sent arrives there"));
	wf_link_close(&stuck[0], 0);
	stop_clock();
}

/* A process in the place of ssh writes all that it receives to a file. */
static void
what_waits_for_a_host_arrives_once_and_in_order(void **state)
{
	static struct wf_link link;
	static uint8_t got[(1 << 20) + 100]; /* more than a pipe */
	static struct wf_child *children[1];
	static const uint8_t wanted[] = {WF_FRAME_START,  0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0,
					 WF_FRAME_SIGNAL, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0,
					 SIGTERM,         0, 0, 0};
	struct wf_child_spec one = {.name = "trainer 0", .site = &link.site};
	struct wf_child child = {.spec = &one, .started = true};
	struct wf_args sh;
	size_t alives = 0;
	ssize_t count;

	(void)state;
	FILE *file = tmpfile();
	assert_non_null(file);
	start_clock(0);
	wf_link_init(&link, &clock_.env, "host");
	link.child = children;
	link.child_count = 1;
	wf_args_init(&sh);
	wf_args_add(&sh, "sh");
	wf_args_add(&sh, "-c");
	wf_args_add(&sh, "cat >&%d; exit", fileno(file));
	assert_int_equal(wf_link_open(&link, &sh), WEFT_OK);
	wf_process_signal(&link.ssh, SIGSTOP);
	while (write(link.ssh.fd[WF_PROCESS_STDIN], got, 8) > 0) {
		alives++;
	}
	assert_int_equal(link.site.ops->start(&link.site, &child, NULL), WEFT_OK);
	link.site.ops->signal(&link.site, &child, SIGTERM);
	assert_int_equal(link.queue.used, sizeof(wanted));
	wf_process_signal(&link.ssh, SIGCONT);
	while (!link.lost && link.queue.used > 0) {
		struct pollfd ready = {link.site.fd, POLLIN, 0};
		assert_int_equal(poll(&ready, 1, -1), 1);
		link.site.ops->on_ready(&link.site);
	}
	assert_string_equal(link.why, "");
	wf_process_close(&link.ssh, WF_PROCESS_STDIN);
	while (!link.ssh.ended) {
		(void)wf_process_reap(&link.ssh);
	}
	count = pread(fileno(file), got, sizeof(got), 0);
	assert_int_equal(count, alives * 8 + sizeof(wanted));
	assert_memory_equal(got + alives * 8, wanted, sizeof(wanted));
	wf_link_close(&link, 0);
	(void)fclose(file);
	stop_clock();
}

/* ---- a process that SIGKILL does not end, as one in state D ---- */

static int ready[2]; /* the process, and what keeps it, are there; both ends are inherited */
static int over[2];  /* the end of the test; the end that writes is this process's alone */

/* `test stuck READY OVER`: a process that another one traces is no zombie for its parent, however
 * dead it is, until the tracer lets it go. */
static int
be_stuck(char **words)
{
	int ready_fd = (int)strtol(words[0], NULL, 10);
	int over_fd = (int)strtol(words[1], NULL, 10);
	pid_t pid = getpid();
	char byte;

	(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	if (fork() == 0) {
		setsid();
		close(STDOUT_FILENO);
		close(STDERR_FILENO);
		byte = ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0 ? 'y' : 'n';
		(void)!write(ready_fd, &byte, 1);
		(void)!read(over_fd, &byte, 1);
		_exit(0);
	}
	for (;;) {
		pause();
	}
}

static void
open_stuck_pipes(void)
{
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe2(over, O_CLOEXEC), 0);
	assert_int_equal(fcntl(over[0], F_SETFD, 0), 0);
}

static void
add_stuck_args(struct wf_args *out)
{
	wf_args_init(out);
	wf_args_add(out, "test");
	wf_args_add(out, "stuck");
	wf_args_add(out, "%d", ready[1]);
	wf_args_add(out, "%d", over[0]);
}

/* Lets it go, and waits for it. Returns false if it could not be kept on this machine. */
static bool
close_stuck_pipes(void)
{
	char byte = 'n';

	assert_int_equal(read(ready[0], &byte, 1), 1);
	for (int i = 0; i < 2; i++) {
		close(over[1 - i]); /* the end that keeps it first */
		close(ready[i]);
	}
	while (waitpid(-1, NULL, 0) > 0) {
	}
	return byte == 'y';
}

static void
ask_to_stop(void)
{
	raise(SIGINT);
}

static void
go_on(void)
{
}

/* Returns how long it took, from the moment at which all was there. */
static uint64_t
supervise_stuck(void (*on_ready)(void), struct wf_supervise_end *out)
{
	struct wf_supervise_opts opts = {.env = &clock_.env,
					 .spec = spec,
					 .count = 2,
					 .program = "test",
					 .grace_ns = GRACE_NS};

	open_stuck_pipes();
	start_clock(100);
	clock_.stands = true;
	clock_.ready = ready[0];
	clock_.on_ready = on_ready;
	spec[0] = (struct wf_child_spec){.name = "trainer 0", .program = "true", .is_worker = true};
	wf_args_init(&spec[0].args);
	wf_args_add(&spec[0].args, "true");
	spec[1] = (struct wf_child_spec){.name = "pserver 0"};
	add_stuck_args(&spec[1].args);
	uint64_t begin_ns = clock_.now_ns;
	assert_int_equal(wf_supervise(&opts, out), WEFT_OK);
	uint64_t took_ns = clock_.now_ns - begin_ns;
	stop_clock();
	if (!close_stuck_pipes()) {
		skip(); /* this process may not trace others */
	}
	return took_ns;
}

static void
a_process_that_sigkill_does_not_end_is_left_and_counted(void **state)
{
	struct wf_supervise_end end;

	(void)state;
	assert_int_equal(supervise_stuck(ask_to_stop, &end), GRACE_NS + WF_PROCESS_STUCK_NS);
	assert_int_equal(end.exit_code, 128 + SIGINT);
	assert_non_null(strstr(end.cause, "1 of 2 processes did not end on SIGKILL"));
	assert_int_equal(supervise_stuck(go_on, &end),
			 10 * WF_NS_PER_S + GRACE_NS + WF_PROCESS_STUCK_NS);
	assert_int_equal(end.exit_code, WF_EXIT_IO);
	assert_non_null(strstr(end.cause, "1 of 2 processes did not end on SIGKILL"));
}

/* Returns the exit code of an agent whose only process is stuck when it has to stop, or 98 if it
 * ended at another time than it should. */
static int
be_agent_of_stuck(void)
{
	static struct wf_frame_writer writer;
	struct wf_args args;
	struct wf_args none;
	char self[4096] = "";
	int input[2];
	int output[2];

	if (pipe(input) != 0 || pipe(output) != 0 || fcntl(input[1], F_SETFD, FD_CLOEXEC) != 0 ||
	    readlink("/proc/self/exe", self, sizeof(self) - 1) <= 0) {
		return 97;
	}
	add_stuck_args(&args);
	wf_args_init(&none);
	wf_frame_begin(&writer, WF_FRAME_WORKSPACE);
	wf_frame_add_number(&writer, WF_WORKSPACE_NONE);
	wf_frame_add_text(&writer, "");
	wf_frame_add_number(&writer, 0);
	wf_frame_add_number(&writer, 1);
	bool good = wf_frame_end(&writer) == WEFT_OK;
	good = write(input[1], writer.bytes, writer.used) == (ssize_t)writer.used && good;
	wf_frame_begin(&writer, WF_FRAME_PROCESS);
	wf_frame_add_number(&writer, 0);
	wf_frame_add_text(&writer, "trainer 0");
	wf_frame_add_text(&writer, "train");
	wf_frame_add_text(&writer, self);
	wf_frame_add_texts(&writer, &args);
	wf_frame_add_texts(&writer, &none);
	wf_frame_add_text(&writer, "");
	good = wf_frame_end(&writer) == WEFT_OK && good;
	good = write(input[1], writer.bytes, writer.used) == (ssize_t)writer.used && good;
	wf_frame_begin(&writer, WF_FRAME_START);
	wf_frame_add_number(&writer, 0);
	good = wf_frame_end(&writer) == WEFT_OK && good;
	good = write(input[1], writer.bytes, writer.used) == (ssize_t)writer.used && good;
	start_clock(100);
	clock_.stands = true;
	clock_.ready = ready[0];
	clock_.on_ready = ask_to_stop;
	if (!good || dup2(input[0], STDIN_FILENO) < 0 || dup2(output[1], STDOUT_FILENO) < 0) {
		return 97;
	}
	int code = wf_agent_run(&clock_.env, "1", NULL);
	return clock_.now_ns == 1 + GRACE_NS + WF_PROCESS_STUCK_NS ? code : 98;
}

static void
an_agent_leaves_a_process_that_sigkill_does_not_end(void **state)
{
	int status = 0;

	(void)state;
	open_stuck_pipes();
	pid_t pid = fork();
	if (pid == 0) {
		close(over[1]);
		_exit(be_agent_of_stuck());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!close_stuck_pipes()) {
		skip(); /* this process may not trace others */
	}
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), WF_EXIT_OK);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_agent_ends_after_its_launcher_was_silent_and_not_before),
		cmocka_unit_test(a_link_is_lost_when_its_agent_is_silent_and_not_before),
		cmocka_unit_test(a_link_is_lost_when_its_host_receives_nothing),
		cmocka_unit_test(what_waits_for_a_host_arrives_once_and_in_order),
		cmocka_unit_test(a_process_that_sigkill_does_not_end_is_left_and_counted),
		cmocka_unit_test(an_agent_leaves_a_process_that_sigkill_does_not_end),
		cmocka_unit_test(a_signal_ends_a_job_whose_hosts_are_all_stuck_as_fast_as_with_one),
	};

	if (argc == 4 && strcmp(argv[1], "stuck") == 0) {
		return be_stuck(argv + 2);
	}
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
