/* SPDX-License-Identifier: Apache-2.0 */
/* agent_internal: what the files of an agent share: agent.c has the loop; it stands on
 * agent_requests.c, which serves the launcher, and both on agent_processes.c. Thread: main. */
#pragma once

#include "tools/launch/agent.h"
#include "tools/launch/agent_files.h"
#include "tools/launch/child.h"
#include "tools/launch/frame.h"
#include "tools/launch/reach.h"

#define WF_AGENT_PROGRAM "weft _node"
#define WF_AGENT_REPLY_BYTES 1024
#define WF_AGENT_OUT_BYTES ((size_t)32 << 20) /* address space of the queue of stdout */
/* Of it, not for lines: for replies, and the ends of processes. */
#define WF_AGENT_WORD_ROOM ((size_t)1 << 20)

/* One of the job's, or the helper: tar or a hook. */
struct wf_agent_resident {
	struct wf_child child;
	struct wf_child_spec spec;
	void *texts; /* that arguments and variables point into */
	size_t texts_bytes;
	bool planned;
};

/* The processes of the job. agent_requests.c plans them, agent_processes.c does the rest. */
struct wf_agent_job {
	bool begun; /* the first request is there */
	struct wf_supervise_opts opts;
	struct wf_agent_resident *resident; /* [count + 1] the last one is the helper */
	uint32_t count;
};

/* The request that the helper carries out. */
struct wf_agent_help {
	struct wf_supervise_opts opts; /* its lines are not filed */
	bool runs;                     /* its end is the reply */
	bool takes_data; /* it is tar, and more data may follow: agent_requests.c alone writes it */
	const uint8_t *data; /* [data_bytes] of the stream, which it has not accepted yet */
	size_t data_bytes;
};

/* What it sends. agent.c opens it, agent_processes.c alone writes to it. */
struct wf_agent_output {
	struct wf_outlet *out, *err;
	struct wf_frame_writer writer;
	uint64_t lost_count; /* lines for which there was no room */
};

/* What the loop waits for. Written by agent.c alone. */
struct wf_agent_loop {
	int epoll_fd, pipes_fd, signal_fd, wake_fd;
	bool pipes_wait;      /* until the output has room */
	sigset_t mask_before; /* the processes get it */
	uint64_t heard_ns;    /* when something was last received, or could be again */
};

struct wf_agent_end {
	bool stops;
	bool killed; /* its processes got SIGKILL */
	int exit_code;
	uint64_t deadline_ns; /* of the end, when it stops, or has done all; WF_NEVER: none */
};

struct wf_agent {
	struct wf_env *env;
	wf_agent_examine *examine; /* NULL: it does not */
	struct wf_agent_files files;
	struct wf_frame_stream stream;               /* the input */
	struct wf_reach reach;                       /* until the processes are started */
	struct wf_host host[WF_REACH_LISTENERS_MAX]; /* to be connected to */
	struct wf_agent_job job;
	struct wf_agent_help help;
	struct wf_agent_output output;
	struct wf_agent_loop loop;
	struct wf_agent_end end;
};

/* agent_processes.c */
/* What it sends. The loop keeps room for it in the queue of stdout. */
void wf_agent_send_hello(struct wf_agent *agent, const char *version);
void wf_agent_send_numbers(struct wf_agent *agent, enum wf_frame_type type, uint32_t a, uint32_t b);
void wf_agent_send_line(struct wf_agent *agent, uint32_t number, enum wf_process_stream stream,
			const char *text);
/* Replies to an ALIVE, unless other bytes wait for the launcher anyway. */
void wf_agent_send_alive(struct wf_agent *agent);
/* The reply to a request; `text` is that of success, the record of the last failure the other. */
void wf_agent_reply(struct wf_agent *agent, enum weft_status st, const char *text);

struct wf_agent_resident *wf_agent_helper(struct wf_agent *agent);
bool wf_agent_runs(const struct wf_child *child);
bool wf_agent_any_runs(const struct wf_agent *agent);
/* Whether each process of the job has been started, and has ended. */
bool wf_agent_has_done_all(const struct wf_agent *agent);
enum weft_status wf_agent_start(struct wf_agent *agent,
				struct wf_agent_resident *resident) WEFT_MUST_CHECK;
/* tar or a hook; its end is the reply to the request. */
enum weft_status wf_agent_start_helper(struct wf_agent *agent, const char *name,
				       const char *const *argv, bool has_stdin) WEFT_MUST_CHECK;
/* Replies, if the helper has ended and nothing more is to be sent to it. */
void wf_agent_finish_help(struct wf_agent *agent);
/* Sends a line of a process; `arg` is the agent. */
void wf_agent_on_line(void *arg, struct wf_child *child, enum wf_process_stream stream,
		      const char *line);
/* Reports the processes that have ended, as far as there is room for their last lines. */
void wf_agent_reap(struct wf_agent *agent);
void wf_agent_signal_all(struct wf_agent *agent, int signal_number);
/* Gives up the processes that SIGKILL has not ended. */
void wf_agent_leave_all(struct wf_agent *agent);
/* Ends all processes with SIGTERM; a deadline is set for SIGKILL. The first call counts. */
void wf_agent_stop(struct wf_agent *agent, int exit_code);

/* agent_requests.c */
/* Writes what the helper accepts of agent->help.data. */
void wf_agent_feed(struct wf_agent *agent);
/* Serves one request. Not OK: the launcher is none, or there is no memory; the agent ends. */
enum weft_status wf_agent_on_frame(struct wf_agent *agent, struct wf_frame *frame) WEFT_MUST_CHECK;
