/* SPDX-License-Identifier: Apache-2.0 */
/* agent: see agent.h. One loop over one epoll: the input, signals, room in the output, and a second
 * epoll with the pipes of the processes, which waits while the output is full. */
#include "tools/launch/agent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/exit_code.h"
#include "base/outlet.h"
#include "base/pin.h"
#include "base/signals.h"
#include "tools/launch/agent_internal.h"

#define EVENTS_MAX 32
#define GRACE_NS (5 * WF_NS_PER_S)
#define IDLE_NS (10 * WF_NS_PER_S)
#define OUT_BYTES ((size_t)32 << 20) /* address space of the queue of stdout */
#define ERR_BYTES ((size_t)1 << 20)
#define WORD_ROOM ((size_t)1 << 20) /* not for lines: for replies, and the ends of processes */
#define READ_ROOM (WORD_ROOM + ((size_t)2 << 20)) /* one read of a pipe, all lines empty */
#define REAP_ROOM ((size_t)8 << 20)               /* what both pipes usually hold at the end */

enum {
	KEY_INPUT,
	KEY_SIGNAL,
	KEY_WAKE,
	KEY_PIPES,
	KEY_FEED, /* of the helper's stdin, while it does not accept all */
};

static void stop(struct wf_agent *agent, int exit_code);

/* ---- what it sends ---- */

static bool
send_frame(struct wf_agent *agent)
{
	struct wf_frame_writer *writer = &agent->output.writer;
	enum weft_status st = wf_frame_end(writer);

	WF_ASSERT(st == WEFT_OK && writer->used <= WF_OUTLET_LINE_BYTES);
	return wf_outlet_put(agent->output.out, (const char *)writer->bytes, writer->used);
}

/* What is not a line fits into WORD_ROOM, unless the launcher requests without reading. */
static void
send_word(struct wf_agent *agent)
{
	if (!send_frame(agent)) {
		stop(agent, WF_EXIT_UNAVAILABLE);
	}
}

void
wf_agent_send_numbers(struct wf_agent *agent, enum wf_frame_type type, uint32_t a, uint32_t b)
{
	wf_frame_begin(&agent->output.writer, type);
	wf_frame_add_number(&agent->output.writer, a);
	wf_frame_add_number(&agent->output.writer, b);
	send_word(agent);
}

static void
begin_line(struct wf_agent *agent, uint32_t number, enum wf_process_stream stream, const char *text)
{
	wf_frame_begin(&agent->output.writer, WF_FRAME_LINE);
	wf_frame_add_number(&agent->output.writer, number);
	wf_frame_add_number(&agent->output.writer, stream);
	wf_frame_add_text(&agent->output.writer, text);
}

void
wf_agent_send_line(struct wf_agent *agent, uint32_t number, enum wf_process_stream stream,
		   const char *text)
{
	begin_line(agent, number, stream, text);
	size_t room = wf_outlet_room(agent->output.out);
	size_t wanted = agent->output.writer.used + WF_OUTLET_HEAD_BYTES + WORD_ROOM;
	agent->output.lost_count += room < wanted || !send_frame(agent);
}

/* The reply to a request; `text` is that of success. */
void
wf_agent_reply(struct wf_agent *agent, enum weft_status st, const char *text)
{
	char shown[WF_AGENT_REPLY_BYTES];

	snprintf(shown, sizeof(shown), "%s", st == WEFT_OK ? text : weft_last_error());
	wf_frame_begin(&agent->output.writer, WF_FRAME_REPLY);
	wf_frame_add_number(&agent->output.writer, st);
	wf_frame_add_text(&agent->output.writer, shown);
	send_word(agent);
}

void
wf_agent_send_alive(struct wf_agent *agent)
{
	if (wf_outlet_room(agent->output.out) >= OUT_BYTES / 2) {
		wf_frame_begin(&agent->output.writer, WF_FRAME_ALIVE);
		(void)send_frame(agent);
	}
}

static void
send_hello(struct wf_agent *agent, const char *version)
{
	char address[64] = "";
	const char *connection = getenv("SSH_CONNECTION"); /* client, its port, server, its port */

	if (connection == NULL || sscanf(connection, "%*s %*s %63s", address) != 1 ||
	    wf_reach_is_loopback(address)) {
		address[0] = '\0';
	}
	wf_frame_begin(&agent->output.writer, WF_FRAME_HELLO);
	wf_frame_add_number(&agent->output.writer, WF_FRAME_VERSION);
	wf_frame_add_text(&agent->output.writer, version);
	wf_frame_add_number(&agent->output.writer, wf_pin_cpu_count());
	wf_frame_add_text(&agent->output.writer, address);
	send_word(agent);
}

/* ---- processes ---- */

struct wf_agent_resident *
wf_agent_helper(struct wf_agent *agent)
{
	return &agent->job.resident[agent->job.count];
}

static uint32_t
number_of(const struct wf_agent *agent, const struct wf_child *child)
{
	for (uint32_t i = 0; i < agent->job.count; i++) {
		if (child == &agent->job.resident[i].child) {
			return i;
		}
	}
	return WF_FRAME_AGENT;
}

static void
on_line(void *arg, struct wf_child *child, enum wf_process_stream stream, const char *line)
{
	struct wf_agent *agent = arg;
	uint32_t number = number_of(agent, child);
	char named[WF_LINE_BYTES];

	if (number != WF_FRAME_AGENT) {
		wf_agent_send_line(agent, number, stream, line);
		return;
	}
	int wanted = snprintf(named, sizeof(named), "%s: %s", child->spec->name, line);
	WF_ASSERT(wanted > 0);
	wf_agent_send_line(agent, number, stream, named);
}

bool
wf_agent_runs(const struct wf_child *child)
{
	return child->started && !child->ended;
}

enum weft_status
wf_agent_start(struct wf_agent *agent, struct wf_agent_resident *resident)
{
	struct wf_child *child = &resident->child;
	uint64_t key = (uint64_t)(resident - agent->job.resident) * WF_PROCESS_STREAMS;

	wf_child_init(child,
		      resident == wf_agent_helper(agent) ? &agent->help.opts : &agent->job.opts,
		      &resident->spec, 0);
	child->err = agent->output.err;
	enum weft_status st = wf_child_start(child, &agent->loop.mask_before);
	for (unsigned s = WF_PROCESS_STDOUT; st == WEFT_OK && s < WF_PROCESS_STREAMS; s++) {
		struct epoll_event event = {.events = EPOLLIN, .data.u64 = key + s};
		if (epoll_ctl(agent->loop.pipes_fd, EPOLL_CTL_ADD, child->process.fd[s], &event) !=
		    0) {
			st = wf_fail_errno(WEFT_IO, errno, "epoll_ctl");
		}
	}
	if (st != WEFT_OK) {
		wf_child_signal(child, SIGKILL);
	}
	return st;
}

/* tar or a hook; its end is the reply to the request. */
enum weft_status
wf_agent_start_helper(struct wf_agent *agent, const char *name, const char *const *argv,
		      bool has_stdin)
{
	struct wf_agent_resident *one = wf_agent_helper(agent);

	if (one->child.started) {
		wf_child_fini(&one->child); /* the one before it */
	}
	memset(&one->spec, 0, sizeof(one->spec));
	snprintf(one->spec.name, sizeof(one->spec.name), "%s", name);
	one->spec.has_stdin = has_stdin;
	one->spec.program = argv[0];
	wf_args_init(&one->spec.variables);
	wf_args_init(&one->spec.args);
	for (unsigned i = 0; argv[i] != NULL; i++) {
		wf_args_add(&one->spec.args, "%s", argv[i]);
	}
	enum weft_status st = wf_args_check(&one->spec.args);
	if (st == WEFT_OK) {
		st = wf_agent_start(agent, one);
	}
	agent->help.runs = st == WEFT_OK;
	return st;
}

void
wf_agent_finish_help(struct wf_agent *agent)
{
	const struct wf_child *child = &wf_agent_helper(agent)->child;
	enum weft_status st = WEFT_OK;

	/* tar ends at the end of its archive, which may be before that of the data. */
	if (!agent->help.runs || !child->ended || agent->help.takes_data) {
		return;
	}
	int code = wf_child_exit_code(child);
	if (code != 0) {
		st = wf_fail(WEFT_IO, "%s ended with exit code %d: %.400s", child->spec->name, code,
			     child->last_error[0] != '\0' ? child->last_error
							  : "it printed nothing");
	}
	agent->help.runs = false;
	wf_agent_reply(agent, st, "");
}

static void
on_process_end(struct wf_agent *agent, uint32_t number)
{
	struct wf_child *child = &agent->job.resident[number].child;

	if (agent->output.lost_count > 0) {
		char text[96];
		snprintf(text, sizeof(text), WF_AGENT_PROGRAM ": %llu lines were lost",
			 (unsigned long long)agent->output.lost_count);
		agent->output.lost_count = 0;
		begin_line(agent, number, WF_PROCESS_STDERR, text);
		send_word(agent);
	}
	wf_agent_send_numbers(agent, WF_FRAME_ENDED, number, (uint32_t)child->wait_status);
}

/* After SIGKILL nothing waits for a reader: what does not fit is lost. */
static bool
can_reap(const struct wf_agent *agent)
{
	return (agent->end.stops && agent->end.deadline_ns == WF_NEVER) ||
	       wf_outlet_room(agent->output.out) >= REAP_ROOM;
}

static void
reap(struct wf_agent *agent)
{
	for (uint32_t i = 0; agent->job.begun && i <= agent->job.count; i++) {
		struct wf_child *child = &agent->job.resident[i].child;
		if (!wf_agent_runs(child) || !can_reap(agent) || !wf_child_reap(child)) {
			continue;
		}
		if (i < agent->job.count) {
			on_process_end(agent, i);
		} else {
			wf_agent_finish_help(agent);
		}
	}
}

static bool
any_runs(const struct wf_agent *agent)
{
	for (uint32_t i = 0; agent->job.begun && i <= agent->job.count; i++) {
		if (wf_agent_runs(&agent->job.resident[i].child)) {
			return true;
		}
	}
	return false;
}

/* Each process of the job has been started, and has ended. */
static bool
has_done_all(const struct wf_agent *agent)
{
	for (uint32_t i = 0; i < agent->job.count; i++) {
		if (!agent->job.resident[i].child.ended) {
			return false;
		}
	}
	return agent->job.count > 0;
}

static void
signal_all(struct wf_agent *agent, int signal_number)
{
	for (uint32_t i = 0; agent->job.begun && i <= agent->job.count; i++) {
		if (wf_agent_runs(&agent->job.resident[i].child)) {
			wf_child_signal(&agent->job.resident[i].child, signal_number);
		}
	}
}

static void
stop(struct wf_agent *agent, int exit_code)
{
	if (!agent->end.stops) {
		agent->end.stops = true;
		agent->end.exit_code = exit_code;
		agent->end.deadline_ns = wf_now_ns(agent->env) + GRACE_NS;
		(void)epoll_ctl(agent->loop.epoll_fd, EPOLL_CTL_DEL, STDIN_FILENO, NULL);
		if (agent->help.data_bytes > 0) {
			agent->help.data_bytes = 0;
			wf_process_close(&wf_agent_helper(agent)->child.process, WF_PROCESS_STDIN);
		}
		signal_all(agent, SIGTERM);
	}
}

/* ---- the loop ---- */

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
		stop(agent, WF_EXIT_INTERNAL);
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
		stop(agent, wf_exit_code(st));
	} else if (agent->help.data_bytes > 0) {
		wait_for_helper(agent);
	}
}

static void
receive(struct wf_agent *agent)
{
	size_t room;

	if (agent->help.data_bytes > 0) {
		stop(agent, WF_EXIT_OK); /* nobody is there any more */
		return;
	}
	void *to = wf_frame_room(&agent->stream, &room);
	ssize_t got = read(STDIN_FILENO, to, room);
	if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
		stop(agent, WF_EXIT_OK);
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
		stop(agent, WF_EXIT_INTERNAL);
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
		stop(agent, WF_EXIT_OK);
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
			stop(agent, WF_EXIT_OK);
		}
	}
}

static void
on_deadline(struct wf_agent *agent)
{
	if (agent->end.stops) {
		signal_all(agent, SIGKILL);
		agent->end.deadline_ns = WF_NEVER;
	} else {
		stop(agent, WF_EXIT_OK); /* it has done all */
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
		stop(agent, WF_EXIT_UNAVAILABLE);
	}
	if (wf_now_ns(agent->env) >= agent->end.deadline_ns) {
		on_deadline(agent);
	}
	reap(agent);
	/* A launcher that has received all and has nothing more to say may be out of reach, and
	 * nobody would know. */
	if (!agent->end.stops && agent->end.deadline_ns == WF_NEVER && has_done_all(agent) &&
	    wf_outlet_flush(agent->output.out, 0)) {
		agent->end.deadline_ns = wf_now_ns(agent->env) + IDLE_NS;
	}
}

static enum weft_status
open_all(struct wf_agent *agent)
{
	struct wf_outlet_opts out = {.fd = STDOUT_FILENO, .queue_bytes = OUT_BYTES};
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
wf_agent_run(struct wf_env *env, const char *version)
{
	struct wf_agent *agent = wf_zalloc(env, sizeof(*agent));

	if (agent == NULL) {
		fprintf(stderr, WF_AGENT_PROGRAM ": no memory\n");
		return WF_EXIT_INTERNAL;
	}
	agent->env = env;
	agent->loop = (struct wf_agent_loop){
		.epoll_fd = -1, .pipes_fd = -1, .signal_fd = -1, .wake_fd = -1};
	agent->end.deadline_ns = WF_NEVER;
	agent->job.opts = (struct wf_supervise_opts){
		.env = env, .program = WF_AGENT_PROGRAM, .on_line = on_line, .on_line_arg = agent};
	agent->help.opts = agent->job.opts;
	wf_agent_files_init(&agent->files);
	enum weft_status st = wf_agent_files_keep(&agent->files); /* while there is one thread */
	if (st == WEFT_OK) {
		st = open_all(agent);
	}
	if (st == WEFT_OK) {
		agent->loop.heard_ns = wf_now_ns(env);
		send_hello(agent, version);
		while (!agent->end.stops || any_runs(agent)) {
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
