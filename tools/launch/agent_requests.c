/* SPDX-License-Identifier: Apache-2.0 */
/* agent_requests: what a launcher may ask of an agent. Every request is checked as if a stranger
 * had sent it: a mistake in it ends the agent. Thread: main. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/exit_code.h"
#include "tools/launch/agent_internal.h"
#include "tools/launch/program.h"

#define PROCESSES_MAX 1024u /* on one host */
#define REACH_NS (5 * WF_NS_PER_S)
#define PATH_NS (3 * WF_NS_PER_S) /* a lost packet is sent again after 1 s */

static enum weft_status
on_workspace(struct wf_agent *agent, struct wf_frame *frame)
{
	uint32_t kind = wf_frame_read_number(frame);
	const char *path = wf_frame_read_text(frame);
	uint32_t node = wf_frame_read_number(frame);
	uint32_t count = wf_frame_read_number(frame);

	enum weft_status st = wf_frame_check(frame);
	if (st != WEFT_OK || kind >= WF_WORKSPACE_END || agent->job.begun ||
	    count > PROCESSES_MAX) {
		return wf_fail(WEFT_PROTOCOL, "the first request is malformed, or a second one");
	}
	agent->job.resident = wf_zalloc_array(agent->env, count + 1, sizeof(*agent->job.resident));
	if (agent->job.resident == NULL) {
		return wf_fail(WEFT_NOMEM, "no memory for %u processes", count);
	}
	agent->job.count = count;
	agent->job.begun = true;
	st = wf_agent_workspace(&agent->files, (enum wf_workspace)kind, path, node);
	if (st == WEFT_OK && agent->files.workspace[0] != '\0') {
		agent->job.opts.log_dir = "log";
	}
	wf_agent_reply(agent, st, agent->files.workspace);
	return WEFT_OK;
}

static enum weft_status
on_package(struct wf_agent *agent, struct wf_frame *frame)
{
	bool is_third = strcmp(wf_frame_read_text(frame), "thirdparty") == 0;
	/* tar makes no link before all else is there, so that no file goes through one. A package
	 * that was a workspace itself has files of that job. */
	const char *const argv[] = {"tar",
				    "-x",
				    "-p",
				    "--no-overwrite-dir",
				    "--no-same-owner",
				    "--exclude=./nodefile",
				    "--exclude=./log",
				    "-f",
				    "-",
				    "-C",
				    is_third ? "thirdparty" : ".",
				    NULL};

	enum weft_status st = wf_frame_check(frame);
	if (st != WEFT_OK || agent->files.workspace[0] == '\0') {
		return wf_fail(WEFT_PROTOCOL, "a package, and no workspace");
	}
	st = is_third ? wf_agent_folder("thirdparty") : WEFT_OK;
	if (st == WEFT_OK) {
		st = wf_agent_start_helper(agent, "tar", argv, true);
	}
	agent->help.takes_data = st == WEFT_OK;
	if (st != WEFT_OK) {
		fprintf(stderr, WF_AGENT_PROGRAM ": %s\n", weft_last_error());
	}
	return st;
}

/* What the helper does not accept now waits in the stream, and no input is read meanwhile. */
void
wf_agent_feed(struct wf_agent *agent)
{
	struct wf_process *helper = &wf_agent_helper(agent)->child.process;

	while (agent->help.data_bytes > 0) {
		ssize_t put = write(helper->fd[WF_PROCESS_STDIN], agent->help.data,
				    agent->help.data_bytes);
		if (put > 0) {
			agent->help.data += put;
			agent->help.data_bytes -= (size_t)put;
		} else if (errno == EAGAIN) {
			return;
		} else if (errno != EINTR) {
			wf_process_close(helper, WF_PROCESS_STDIN); /* its end says why */
			agent->help.data_bytes = 0;
		}
	}
}

static enum weft_status
on_data(struct wf_agent *agent, struct wf_frame *frame)
{
	if (!agent->help.takes_data) {
		return wf_fail(WEFT_PROTOCOL, "data, and no package");
	}
	if (frame->left == 0) {
		agent->help.takes_data = false;
		wf_process_close(&wf_agent_helper(agent)->child.process, WF_PROCESS_STDIN);
		wf_agent_finish_help(agent);
	} else {
		agent->help.data = frame->body;
		agent->help.data_bytes = frame->left;
		wf_agent_feed(agent);
	}
	return WEFT_OK;
}

/* The hook defines private_script, or simply does its work. */
static enum weft_status
on_hook(struct wf_agent *agent, struct wf_frame *frame)
{
	static const char script[] =
		"set -e; . ./thirdparty/before_hook.sh; "
		"if declare -F private_script >/dev/null; then private_script \"$@\"; fi";
	char third[WF_AGENT_PATH_BYTES + 16];
	const char *const argv[] = {
		"bash", "-c", script, "before_hook", third, agent->files.workspace, NULL};

	enum weft_status st = wf_frame_check(frame);
	if (st != WEFT_OK || agent->files.workspace[0] == '\0') {
		return wf_fail(WEFT_PROTOCOL, "a hook, and no workspace");
	}
	snprintf(third, sizeof(third), "%s/thirdparty", agent->files.workspace);
	st = wf_agent_start_helper(agent, "before_hook", argv, false);
	if (st != WEFT_OK) {
		wf_agent_reply(agent, st, "");
	}
	return WEFT_OK;
}

static enum weft_status
on_resolve(struct wf_agent *agent, struct wf_frame *frame)
{
	char addresses[WF_AGENT_REPLY_BYTES] = "";
	const char *name = wf_frame_read_text(frame);

	enum weft_status st = wf_frame_check(frame);
	if (st == WEFT_OK) {
		wf_agent_reply(agent, wf_reach_resolve(name, addresses, sizeof(addresses)),
			       addresses);
	}
	return st;
}

static enum weft_status
on_listen(struct wf_agent *agent, struct wf_frame *frame)
{
	struct wf_host at = {0};
	char text[WF_HOST_BYTES + 8] = "";
	const char *addresses = wf_frame_read_text(frame);
	uint32_t lowest = wf_frame_read_number(frame);
	uint32_t highest = wf_frame_read_number(frame);
	uint32_t count = wf_frame_read_number(frame);

	enum weft_status st = wf_frame_check(frame);
	if (st != WEFT_OK || lowest == 0 || lowest > highest || highest > UINT16_MAX) {
		return wf_fail(WEFT_PROTOCOL, "a request to listen is malformed");
	}
	st = wf_reach_listen(&agent->reach, addresses, (uint16_t)lowest, (uint16_t)highest, count,
			     &at);
	snprintf(text, sizeof(text), "%s %u", at.name, at.port);
	wf_agent_reply(agent, st, text);
	return WEFT_OK;
}

static enum weft_status
on_reach(struct wf_agent *agent, struct wf_frame *frame)
{
	struct wf_reach_result result;
	char text[WF_AGENT_REPLY_BYTES] = "";
	uint32_t count = wf_frame_read_number(frame);

	if (count > WF_ARRAY_COUNT(agent->host)) {
		return wf_fail(WEFT_PROTOCOL, "too many hosts to be reached");
	}
	for (uint32_t i = 0; i < count && !frame->bad; i++) {
		snprintf(agent->host[i].name, sizeof(agent->host[i].name), "%s",
			 wf_frame_read_text(frame));
		agent->host[i].port = (uint16_t)wf_frame_read_number(frame);
	}
	enum weft_status st = wf_frame_check(frame);
	if (st != WEFT_OK) {
		return st;
	}
	st = wf_reach_connect(agent->env, agent->host, count, wf_now_ns(agent->env) + REACH_NS,
			      &result);
	if (st == WEFT_OK && result.failed < count) {
		snprintf(text, sizeof(text), "%u %s", result.failed, result.why);
	}
	wf_agent_reply(agent, st, text);
	return WEFT_OK;
}

static enum weft_status
on_examine(struct wf_agent *agent, struct wf_frame *frame)
{
	char text[WF_AGENT_REPLY_BYTES] = "";
	uint32_t idx = wf_frame_read_number(frame);
	const char *transport = wf_frame_read_text(frame);
	uint32_t memory_mib = wf_frame_read_number(frame);

	enum weft_status st = wf_frame_check(frame);
	if (st == WEFT_OK && agent->examine != NULL) {
		agent->examine(idx, transport, memory_mib, text, sizeof(text));
	}
	if (st == WEFT_OK) {
		wf_agent_reply(agent, WEFT_OK, text);
	}
	return st;
}

static enum weft_status
on_path(struct wf_agent *agent, struct wf_frame *frame)
{
	struct wf_host at = {0};
	struct wf_reach_path path;
	char text[64] = "";

	snprintf(at.name, sizeof(at.name), "%s", wf_frame_read_text(frame));
	at.port = (uint16_t)wf_frame_read_number(frame);
	enum weft_status st = wf_frame_check(frame);
	if (st != WEFT_OK) {
		return st;
	}
	st = wf_reach_measure(agent->env, &at, wf_now_ns(agent->env) + PATH_NS, &path);
	snprintf(text, sizeof(text), "%u %u %u", path.mtu, path.segment, path.acknowledged);
	wf_agent_reply(agent, st, text);
	return WEFT_OK;
}

static enum weft_status
on_clock(struct wf_agent *agent, struct wf_frame *frame)
{
	struct timespec now = {0};
	char text[32];

	enum weft_status st = wf_frame_check(frame);
	if (st == WEFT_OK) {
		(void)clock_gettime(CLOCK_REALTIME, &now);
		snprintf(text, sizeof(text), "%lld", now.tv_sec * 1000000000ll + now.tv_nsec);
		wf_agent_reply(agent, WEFT_OK, text);
	}
	return st;
}

static enum weft_status
on_secret(struct wf_agent *agent, struct wf_frame *frame)
{
	enum weft_status st = wf_agent_secret(&agent->files, frame->body, frame->left);

	memset(frame->body, 0, frame->left);
	wf_agent_reply(agent, st, "");
	return WEFT_OK;
}

static bool
is_file_name(const char *text)
{
	return text[0] != '\0' && text[0] != '.' && strchr(text, '/') == NULL;
}

static enum weft_status
check_variables(const struct wf_args *variables)
{
	for (unsigned i = 0; i < variables->count; i++) {
		if (strchr(variables->argv[i], '=') == NULL) {
			return wf_fail(WEFT_PROTOCOL, "a variable has no value");
		}
	}
	return WEFT_OK;
}

/* Its texts point into `frame`, which the resident owns. */
static enum weft_status
plan(struct wf_agent_resident *one, struct wf_frame *frame)
{
	struct wf_child_spec *spec = &one->spec;
	const char *name = wf_frame_read_text(frame);
	const char *log = wf_frame_read_text(frame);
	const char *program = wf_frame_read_text(frame);

	snprintf(spec->name, sizeof(spec->name), "%s", name);
	snprintf(spec->log, sizeof(spec->log), "%s", log);
	spec->program = program[0] != '\0' ? program : NULL;
	wf_frame_read_texts(frame, &spec->args);
	wf_frame_read_texts(frame, &spec->variables);
	const char *again = wf_frame_read_text(frame);
	spec->again = again[0] != '\0' ? again : NULL;
	enum weft_status st = wf_frame_check(frame);
	if (st == WEFT_OK && (!is_file_name(name) || !is_file_name(log) || spec->args.count == 0)) {
		st = wf_fail(WEFT_PROTOCOL, "a process is malformed");
	}
	return st == WEFT_OK ? check_variables(&spec->variables) : st;
}

static enum weft_status
on_process(struct wf_agent *agent, struct wf_frame *frame)
{
	char found[WF_AGENT_PATH_BYTES];
	uint32_t number = wf_frame_read_number(frame);

	if (frame->bad || number >= agent->job.count || agent->job.resident[number].planned) {
		return wf_fail(WEFT_PROTOCOL, "a process has an impossible number");
	}
	struct wf_agent_resident *one = &agent->job.resident[number];
	one->texts_bytes = frame->left + 1;
	one->texts = wf_zalloc(agent->env, one->texts_bytes);
	if (one->texts == NULL) {
		return wf_fail(WEFT_NOMEM, "no memory for the arguments of a process");
	}
	memcpy(one->texts, frame->body, frame->left);
	frame->body = one->texts;
	enum weft_status st = plan(one, frame);
	if (st != WEFT_OK) {
		return st;
	}
	one->planned = true;
	if (one->spec.program != NULL) {
		st = wf_program_find(one->spec.program, found, sizeof(found));
	}
	wf_agent_reply(agent, st, "");
	return WEFT_OK;
}

static enum weft_status
on_start(struct wf_agent *agent, struct wf_frame *frame)
{
	uint32_t number = wf_frame_read_number(frame);

	enum weft_status st = wf_frame_check(frame);
	if (st != WEFT_OK || number >= agent->job.count || !agent->job.resident[number].planned ||
	    wf_agent_runs(&agent->job.resident[number].child)) {
		return wf_fail(WEFT_PROTOCOL, "a process cannot be started");
	}
	struct wf_agent_resident *one = &agent->job.resident[number];
	struct wf_child *child = &one->child;
	wf_reach_close(&agent->reach);
	if (child->started) {
		wf_child_fini(child);
		child->started = false;
		st = wf_child_add_again(&one->spec);
	}
	st = st == WEFT_OK ? wf_agent_start(agent, one) : st;
	if (st == WEFT_OK) {
		wf_agent_send_numbers(agent, WF_FRAME_STARTED, number, (uint32_t)child->pid);
		return WEFT_OK;
	}
	wf_agent_send_line(agent, number, WF_PROCESS_STDERR, weft_last_error());
	if (!child->started) {
		wf_agent_send_numbers(agent, WF_FRAME_ENDED, number,
				      W_EXITCODE(WF_EXIT_INTERNAL, 0));
		child->started = child->ended = true;
	}
	return WEFT_OK;
}

static enum weft_status
on_signal(struct wf_agent *agent, struct wf_frame *frame)
{
	uint32_t number = wf_frame_read_number(frame);
	uint32_t signal_number = wf_frame_read_number(frame);

	enum weft_status st = wf_frame_check(frame);
	if (st != WEFT_OK || number >= agent->job.count || signal_number == 0 ||
	    signal_number > 64) {
		return wf_fail(WEFT_PROTOCOL, "a signal is malformed");
	}
	if (wf_agent_runs(&agent->job.resident[number].child)) {
		wf_child_signal(&agent->job.resident[number].child, (int)signal_number);
	}
	return WEFT_OK;
}

static enum weft_status
on_alive(struct wf_agent *agent, struct wf_frame *frame)
{
	wf_agent_send_alive(agent);
	return wf_frame_check(frame);
}

typedef enum weft_status request_fn(struct wf_agent *agent, struct wf_frame *frame);

enum weft_status
wf_agent_on_frame(struct wf_agent *agent, struct wf_frame *frame)
{
	static request_fn *const handlers[WF_FRAME_TYPE_END] = {
		[WF_FRAME_WORKSPACE] = on_workspace, [WF_FRAME_PACKAGE] = on_package,
		[WF_FRAME_DATA] = on_data,           [WF_FRAME_HOOK] = on_hook,
		[WF_FRAME_RESOLVE] = on_resolve,     [WF_FRAME_LISTEN] = on_listen,
		[WF_FRAME_REACH] = on_reach,         [WF_FRAME_PROCESS] = on_process,
		[WF_FRAME_EXAMINE] = on_examine,     [WF_FRAME_PATH] = on_path,
		[WF_FRAME_CLOCK] = on_clock,         [WF_FRAME_SECRET] = on_secret,
		[WF_FRAME_START] = on_start,         [WF_FRAME_SIGNAL] = on_signal,
		[WF_FRAME_ALIVE] = on_alive,
	};

	bool fits = frame->type == WF_FRAME_ALIVE ||
		    ((frame->type == WF_FRAME_WORKSPACE || agent->job.begun) &&
		     (frame->type == WF_FRAME_DATA || !agent->help.runs));
	if (handlers[frame->type] == NULL || !fits) {
		return wf_fail(WEFT_PROTOCOL, "a request of type %u at the wrong time",
			       frame->type);
	}
	return handlers[frame->type](agent, frame);
}
