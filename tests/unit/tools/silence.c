/* SPDX-License-Identifier: Apache-2.0 */
/* The two ends of a link when the other one is silent, under a clock that runs ahead whenever
 * nothing is to be read: the agent in a process of its own, and a link with cat in the place of ssh
 * and agent. Thread: main. */
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
	bool stands;     /* for now */
	bool nags;       /* the user sends another signal before each jump */
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
	struct pollfd one = {fd, POLLIN, 0};

	(void)env;
	if (poll(&one, 1, clock_.stands ? -1 : clock_.patience_ms) > 0) {
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
	int code = wf_agent_run(&clock_.env, "1");
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_agent_ends_after_its_launcher_was_silent_and_not_before),
		cmocka_unit_test(a_link_is_lost_when_its_agent_is_silent_and_not_before),
		cmocka_unit_test(a_link_is_lost_when_its_host_receives_nothing),
		cmocka_unit_test(what_waits_for_a_host_arrives_once_and_in_order),
		cmocka_unit_test(a_signal_ends_a_job_whose_hosts_are_all_stuck_as_fast_as_with_one),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
