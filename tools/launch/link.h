/* SPDX-License-Identifier: Apache-2.0 */
/* link: the connection to the agent (agent.h) on one host: a process of ssh, whose input and output
 * carry frames. It is a site of the supervisor. Before the processes are started, requests are
 * sent and their replies awaited, one after the other. Thread: main. */
#pragma once

#include "tools/launch/frame.h"
#include "tools/launch/lines.h"
#include "tools/launch/process.h"
#include "tools/launch/supervise.h"

#define WF_LINK_TEXT_BYTES 1024u

struct wf_child;

struct wf_link {
	struct wf_site site; /* the first member: ops find the link by it */
	struct wf_env *env;
	const char *program; /* opens the launcher's own lines */
	struct wf_process ssh;
	struct wf_child **child; /* [child_count] processes of this host, by their number there */
	unsigned child_count;
	struct wf_outlet *err; /* of the supervisor, once it runs */
	/* Set by remote: called while the link waits, at least every WF_FRAME_ALIVE_NS. */
	void (*on_wait)(void *arg);
	void *on_wait_arg;
	bool greeted;      /* its agent has sent its first words */
	bool sends;        /* a frame is half written */
	uint64_t alive_ns; /* when the next ALIVE is due */
	uint64_t heard_ns; /* when something was last received */
	bool lost;
	char why[WF_LINK_TEXT_BYTES];        /* when lost */
	char last_error[WF_LINK_TEXT_BYTES]; /* what ssh printed last */
	bool replied;
	enum weft_status reply;
	char text[WF_LINK_TEXT_BYTES]; /* of the last reply */
	/* What its agent said at first. */
	char version[64];
	char ssh_address[64]; /* that ssh has connected to; "": unknown */
	uint32_t cpu_count;
	struct wf_lines errors;
	struct wf_frame_stream stream;
	struct wf_frame_writer writer; /* of requests */
};

/* `name` lives as long as the link. */
void wf_link_init(struct wf_link *link, struct wf_env *env, const char *program, const char *name);
/* Starts ssh. */
enum weft_status wf_link_open(struct wf_link *link, const struct wf_args *ssh) WEFT_MUST_CHECK;
/* Sends the frame in link->writer. WEFT_UNAVAILABLE: the connection is lost. */
enum weft_status wf_link_send(struct wf_link *link) WEFT_MUST_CHECK;
/* Waits for the first words of the agent, in version, cpu_count and ssh_address. WEFT_UNAVAILABLE:
 * the connection is lost, or silent until `deadline_ns`; WEFT_UNSUPPORTED: another version. */
enum weft_status wf_link_await_hello(struct wf_link *link, const char *version,
				     uint64_t deadline_ns) WEFT_MUST_CHECK;
/* Waits for the reply to a request, whose text is link->text. Any status that the agent gave, with
 * the host's name before its words. */
enum weft_status wf_link_await(struct wf_link *link, uint64_t deadline_ns) WEFT_MUST_CHECK;
/* Sends ALIVE when it is due, and loses the link if its agent has been silent for too long. */
void wf_link_pulse(struct wf_link *link);
/* The supervisor, its children and its outlets are gone. */
void wf_link_detach(struct wf_link *link);
/* Closes the connection, upon which the agent ends; ssh has until `deadline_ns` for that. */
void wf_link_close(struct wf_link *link, uint64_t deadline_ns);
