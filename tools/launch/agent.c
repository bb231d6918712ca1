/* SPDX-License-Identifier: Apache-2.0 */
/* agent: see agent.h. One loop over one epoll: the input, signals, room in the output, and a second
 * epoll with the pipes of the processes, which waits while the output is full. */
#include "tools/launch/agent.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/exit_code.h"
#include "base/outlet.h"
#include "base/signals.h"
#include "tools/launch/agent_internal.h"
#include "tools/launch/restart.h"

#define EVENTS_MAX 32
/* A process that has ended is started again within this time, or never. */
#define IDLE_NS (WF_RESTART_LONGEST_NS + 10 * WF_NS_PER_S)
#define ERR_BYTES ((size_t)1 << 20)
#define READ_ROOM (WF_AGENT_WORD_ROOM + ((size_t)2 << 20)) /* one read, all lines empty */

enum {
	KEY_INPUT,
	KEY_SIGNAL,
	KEY_WAKE,
	KEY_PIPES,
	KEY_FEED, /* of the helper's stdin, while it does not accept all */
};

/* While the helper accepts nothing, its end of the pipe is watched instead of the input, of which
 * then only the end counts. */
static void
wait_for_helper(struct wf_agent *agent)
{
	int fd = wf_agent_helper(agent)->child.process.fd[WF_PROCESS_STDIN];
	struct epoll_event end = {.events = EPOLLRDHUP, .data.u64 = KEY_INPUT};
	struct epoll_event room = {.events = EPOLLOUT, .data.u64 = KEY_FEED};

	if (epoll_ctl(agent->loop.epoll_fd, EPOLL_CTL_MOD, STDIN_FILENO, &end) != 0 ||
	    epoll_ctl(agent->loop.epoll_fd, EPOLL_CTL_ADD, fd, &room) != 0) {
		wf_agent_stop(agent, WF_EXIT_INTERNAL);
	}
}

static void
handle_frames(struct wf_agent *agent)
{
	struct wf_frame frame;
	enum weft_status st = WEFT_OK;

	while (!agent->end.stops && agent->help.data_bytes == 0 && st == WEFT_OK) {
		st = wf_frame_next(&agent->stream, &frame);
		if (st == WEFT_OK) {
			st = wf_agent_on_frame(agent, &frame);
		}
	}
	if (st != WEFT_OK && st != WEFT_AGAIN) {
		fprintf(stderr, WF_AGENT_PROGRAM ": %s\n", weft_last_error());
		wf_agent_stop(agent, wf_exit_code(st));
	} else if (agent->help.data_bytes > 0) {
		wait_for_helper(agent);
	}
}

static void
receive(struct wf_agent *agent)
{
	size_t room;

	if (agent->help.data_bytes > 0) {
		wf_agent_stop(agent, WF_EXIT_OK); /* nobody is there any more */
		return;
	}
	void *to = wf_frame_room(&agent->stream, &room);
	ssize_t got = read(STDIN_FILENO, to, room);
	if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
		wf_agent_stop(agent, WF_EXIT_OK);
		return;
	}
	agent->loop.heard_ns = wf_now_ns(agent->env);
	wf_frame_received(&agent->stream, got > 0 ? (size_t)got : 0);
	handle_frames(agent);
}

/* The helper accepts something, or has closed its stdin. */
static void
on_feed(struct wf_agent *agent)
{
	int fd = wf_agent_helper(agent)->child.process.fd[WF_PROCESS_STDIN];
	struct epoll_event input = {.events = EPOLLIN, .data.u64 = KEY_INPUT};

	wf_agent_feed(agent);
	if (agent->help.data_bytes > 0 || agent->end.stops) {
		return;
	}
	(void)epoll_ctl(agent->loop.epoll_fd, EPOLL_CTL_DEL, fd, NULL); /* it may be closed */
	agent->loop.heard_ns = wf_now_ns(agent->env);
	if (epoll_ctl(agent->loop.epoll_fd, EPOLL_CTL_MOD, STDIN_FILENO, &input) != 0) {
		wf_agent_stop(agent, WF_EXIT_INTERNAL);
		return;
	}
	handle_frames(agent);
}

static void
read_pipes(struct wf_agent *agent)
{
	struct epoll_event events[EVENTS_MAX];

	int count = epoll_wait(agent->loop.pipes_fd, events, EVENTS_MAX, 0);
	for (int i = 0; i < count; i++) {
		uint64_t key = events[i].data.u64;
		if (wf_outlet_room(agent->output.out) < READ_ROOM) {
			(void)epoll_ctl(agent->loop.epoll_fd, EPOLL_CTL_DEL, agent->loop.pipes_fd,
					NULL);
			agent->loop.pipes_wait = true;
			return;
		}
		wf_child_read(&agent->job.resident[key / WF_PROCESS_STREAMS].child,
			      (enum wf_process_stream)(key % WF_PROCESS_STREAMS));
	}
}

static enum weft_status
watch(struct wf_agent *agent, int fd, uint64_t key)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = key};

	if (epoll_ctl(agent->loop.epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
		return wf_fail_errno(WEFT_IO, errno, "epoll_ctl");
	}
	return WEFT_OK;
}

/* Something of the output was written, or cannot be. */
static void
on_wake(struct wf_agent *agent)
{
	uint64_t count;

	(void)!read(agent->loop.wake_fd, &count, sizeof(count));
	if (wf_outlet_error(agent->output.out) != 0) {
		wf_agent_stop(agent, WF_EXIT_OK);
	}
	if (agent->loop.pipes_wait && wf_outlet_room(agent->output.out) >= READ_ROOM) {
		agent->loop.pipes_wait = watch(agent, agent->loop.pipes_fd, KEY_PIPES) != WEFT_OK;
	}
}

static void
on_signals(struct wf_agent *agent)
{
	struct signalfd_siginfo info;

	while (read(agent->loop.signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo != SIGCHLD) {
			wf_agent_stop(agent, WF_EXIT_OK);
		}
	}
}

static void
on_deadline(struct wf_agent *agent)
{
	if (!agent->end.stops) {
		wf_agent_stop(agent, WF_EXIT_OK); /* it has done all */
	} else if (!agent->end.killed) {
		wf_agent_signal_all(agent, SIGKILL);
		agent->end.killed = true;
		agent->end.deadline_ns = wf_now_ns(agent->env) + WF_PROCESS_STUCK_NS;
	} else {
		wf_agent_leave_all(agent);
		agent->end.deadline_ns = WF_NEVER;
	}
}

/* When the launcher counts as gone, unless it sends something. While a helper accepts nothing, its
 * messages are not read. */
static uint64_t
silence_ns(const struct wf_agent *agent)
{
	bool reads = !agent->end.stops && agent->help.data_bytes == 0;
	return reads ? agent->loop.heard_ns + WF_FRAME_SILENCE_NS : WF_NEVER;
}

/* A launcher that has received all and has nothing more to say may be out of reach, and nobody
 * would know. */
static void
look_whether_all_is_done(struct wf_agent *agent)
{
	if (agent->end.stops) {
		return;
	}
	if (!wf_agent_has_done_all(agent)) {
		agent->end.deadline_ns = WF_NEVER; /* a process was started again */
	} else if (agent->end.deadline_ns == WF_NEVER && wf_outlet_flush(agent->output.out, 0)) {
		agent->end.deadline_ns = wf_now_ns(agent->env) + IDLE_NS;
	}
}

static void
turn(struct wf_agent *agent)
{
	struct epoll_event events[4];
	uint64_t silent_ns = silence_ns(agent);

	wf_wait(agent->env, agent->loop.epoll_fd,
		silent_ns < agent->end.deadline_ns ? silent_ns : agent->end.deadline_ns);
	int count = epoll_wait(agent->loop.epoll_fd, events, 4, 0);
	for (int i = 0; i < count; i++) {
		switch (events[i].data.u64) {
		case KEY_INPUT:
			if (!agent->end.stops) {
				receive(agent);
			}
			break;
		case KEY_SIGNAL:
			on_signals(agent);
			break;
		case KEY_WAKE:
			on_wake(agent);
			break;
		case KEY_FEED:
			on_feed(agent);
			break;
		default:
			read_pipes(agent);
			break;
		}
	}
	if (wf_now_ns(agent->env) >= silence_ns(agent)) {
		fprintf(stderr, WF_AGENT_PROGRAM ": the launcher has been silent for %llu s\n",
			WF_FRAME_SILENCE_NS / WF_NS_PER_S);
		wf_agent_stop(agent, WF_EXIT_UNAVAILABLE);
	}
	if (wf_now_ns(agent->env) >= agent->end.deadline_ns) {
		on_deadline(agent);
	}
	wf_agent_reap(agent);
	look_whether_all_is_done(agent);
}

static enum weft_status
open_all(struct wf_agent *agent)
{
	struct wf_outlet_opts out = {.fd = STDOUT_FILENO, .queue_bytes = WF_AGENT_OUT_BYTES};
	const struct wf_outlet_opts err = {
		.fd = STDERR_FILENO, .queue_bytes = ERR_BYTES, .wake_fd = -1};
	sigset_t signals;

	wf_signals_that_stop(&signals);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, &agent->loop.mask_before);
	agent->loop.signal_fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
	agent->loop.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	agent->loop.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	agent->loop.pipes_fd = epoll_create1(EPOLL_CLOEXEC);
	if (agent->loop.signal_fd < 0 || agent->loop.wake_fd < 0 || agent->loop.epoll_fd < 0 ||
	    agent->loop.pipes_fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "descriptors");
	}
	out.wake_fd = agent->loop.wake_fd;
	enum weft_status st = wf_outlet_open(&out, &agent->output.out);
	if (st == WEFT_OK) {
		st = wf_outlet_open(&err, &agent->output.err);
	}
	const int fd[] = {STDIN_FILENO, agent->loop.signal_fd, agent->loop.wake_fd,
			  agent->loop.pipes_fd};
	for (uint64_t i = KEY_INPUT; i <= KEY_PIPES && st == WEFT_OK; i++) {
		st = watch(agent, fd[i], i);
	}
	return st;
}

static void
close_all(struct wf_agent *agent)
{
	const int fd[] = {agent->loop.signal_fd, agent->loop.wake_fd, agent->loop.epoll_fd,
			  agent->loop.pipes_fd};

	for (uint32_t i = 0; agent->job.begun && i <= agent->job.count; i++) {
		struct wf_agent_resident *one = &agent->job.resident[i];
		if (one->child.started) {
			wf_child_fini(&one->child);
		}
		wf_free(agent->env, one->texts, one->texts_bytes);
	}
	wf_free(agent->env, agent->job.resident,
		(agent->job.count + 1) * sizeof(*agent->job.resident));
	wf_reach_close(&agent->reach);
	wf_agent_files_fini(&agent->files);
	wf_outlet_close(agent->output.out);
	wf_outlet_close(agent->output.err);
	for (size_t i = 0; i < WF_ARRAY_COUNT(fd); i++) {
		if (fd[i] >= 0) {
			close(fd[i]);
		}
	}
}

int
wf_agent_run(struct wf_env *env, const char *version, wf_agent_examine *examine)
{
	struct wf_agent *agent = wf_zalloc(env, sizeof(*agent));

	if (agent == NULL) {
		fprintf(stderr, WF_AGENT_PROGRAM ": no memory\n");
		return WF_EXIT_INTERNAL;
	}
	agent->env = env;
	agent->examine = examine;
	agent->loop = (struct wf_agent_loop){
		.epoll_fd = -1, .pipes_fd = -1, .signal_fd = -1, .wake_fd = -1};
	agent->end.deadline_ns = WF_NEVER;
	agent->job.opts = (struct wf_supervise_opts){.env = env,
						     .program = WF_AGENT_PROGRAM,
						     .on_line = wf_agent_on_line,
						     .on_line_arg = agent};
	agent->help.opts = agent->job.opts;
	wf_agent_files_init(&agent->files);
	enum weft_status st = wf_agent_files_keep(&agent->files); /* while there is one thread */
	if (st == WEFT_OK) {
		st = open_all(agent);
	}
	if (st == WEFT_OK) {
		agent->loop.heard_ns = wf_now_ns(env);
		wf_agent_send_hello(agent, version);
		while (!agent->end.stops || wf_agent_any_runs(agent)) {
			turn(agent);
		}
	} else {
		fprintf(stderr, WF_AGENT_PROGRAM ": %s\n", weft_last_error());
		agent->end.exit_code = wf_exit_code(st);
	}
	int code = agent->end.exit_code;
	close_all(agent);
	wf_free(env, agent, sizeof(*agent));
	return code;
}
