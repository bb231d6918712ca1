/* SPDX-License-Identifier: Apache-2.0 */
/* agent_processes: the processes of an agent, what it sends about them, and how it ends them. The
 * loop (agent.c) and the requests (agent_requests.c) stand on it. Thread: main. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/assert.h"
#include "base/exit_code.h"
#include "base/outlet.h"
#include "base/pin.h"
#include "tools/launch/agent_internal.h"

#define GRACE_NS (5 * WF_NS_PER_S)
#define REAP_ROOM ((size_t)8 << 20) /* what both pipes usually hold at the end */

/* ---- what it sends ---- */

static bool
send_frame(struct wf_agent *agent)
{
	struct wf_frame_writer *writer = &agent->output.writer;
	enum weft_status st = wf_frame_end(writer);

	WF_ASSERT(st == WEFT_OK && writer->used <= WF_OUTLET_LINE_BYTES);
	return wf_outlet_put(agent->output.out, (const char *)writer->bytes, writer->used);
}

/* What is not a line fits into WF_AGENT_WORD_ROOM, unless the launcher requests without reading. */
static void
send_word(struct wf_agent *agent)
{
	if (!send_frame(agent)) {
		wf_agent_stop(agent, WF_EXIT_UNAVAILABLE);
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
	size_t wanted = agent->output.writer.used + WF_OUTLET_HEAD_BYTES + WF_AGENT_WORD_ROOM;
	agent->output.lost_count += room < wanted || !send_frame(agent);
}

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
	if (wf_outlet_room(agent->output.out) >= WF_AGENT_OUT_BYTES / 2) {
		wf_frame_begin(&agent->output.writer, WF_FRAME_ALIVE);
		(void)send_frame(agent);
	}
}

void
wf_agent_send_hello(struct wf_agent *agent, const char *version)
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

void
wf_agent_on_line(void *arg, struct wf_child *child, enum wf_process_stream stream, const char *line)
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
			     wf_child_last_words(child));
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
	return agent->end.killed || wf_outlet_room(agent->output.out) >= REAP_ROOM;
}

void
wf_agent_reap(struct wf_agent *agent)
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

bool
wf_agent_any_runs(const struct wf_agent *agent)
{
	for (uint32_t i = 0; agent->job.begun && i <= agent->job.count; i++) {
		if (wf_agent_runs(&agent->job.resident[i].child)) {
			return true;
		}
	}
	return false;
}

/* Each process of the job has been started, and has ended. */
bool
wf_agent_has_done_all(const struct wf_agent *agent)
{
	for (uint32_t i = 0; i < agent->job.count; i++) {
		if (!agent->job.resident[i].child.ended) {
			return false;
		}
	}
	return agent->job.count > 0;
}

void
wf_agent_signal_all(struct wf_agent *agent, int signal_number)
{
	for (uint32_t i = 0; agent->job.begun && i <= agent->job.count; i++) {
		if (wf_agent_runs(&agent->job.resident[i].child)) {
			wf_child_signal(&agent->job.resident[i].child, signal_number);
		}
	}
}

void
wf_agent_leave_all(struct wf_agent *agent)
{
	char text[256];

	for (uint32_t i = 0; agent->job.begun && i <= agent->job.count; i++) {
		if (wf_child_leave(&agent->job.resident[i].child, text, sizeof(text))) {
			fprintf(stderr, WF_AGENT_PROGRAM ": %s\n", text);
		}
	}
}

void
wf_agent_stop(struct wf_agent *agent, int exit_code)
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
		wf_agent_signal_all(agent, SIGTERM);
	}
}
