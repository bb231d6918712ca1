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
	if (poll(&one, 1, clock_.patience_ms) > 0) {
		return;
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_agent_ends_after_its_launcher_was_silent_and_not_before),
		cmocka_unit_test(a_link_is_lost_when_its_agent_is_silent_and_not_before),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
