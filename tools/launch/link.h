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
/* A start, SIGTERM and SIGKILL for each process of the largest job: 44 bytes. A process is started
 * again only when its host has said that it has ended, so what waits does not grow. */
#define WF_LINK_QUEUE_BYTES 16384u

struct wf_child;

/* What its agent says at first. */
struct wf_link_hello {
	bool received;
	char version[64];
	char ssh_address[64]; /* that ssh has connected to; "": unknown */
	uint32_t cpu_count;
};

/* The reply to the last request. */
struct wf_link_reply {
	bool received;
	enum weft_status status;
	char text[WF_LINK_TEXT_BYTES];
};

/* Signs of life, to the agent and from it. */
struct wf_link_life {
	uint64_t alive_ns; /* when the next ALIVE is due */
	uint64_t heard_ns; /* when something was last received */
	bool sends;        /* a request is half written, which an ALIVE must not cut */
	/* Set by remote: called while the link waits, at least every WF_FRAME_ALIVE_NS. */
	void (*on_wait)(void *arg);
	void *on_wait_arg;
};

/* What the supervisor sends: starts and signals. It never waits for a host that receives nothing,
 * because the others have to get theirs. */
struct wf_link_queue {
	size_t used, sent;    /* bytes; all that were sent are dropped together */
	bool watched;         /* site.fd is readable, too, when some of it can be written */
	uint64_t progress_ns; /* when something was last written, or there was nothing to write */
	uint8_t bytes[WF_LINK_QUEUE_BYTES];
};

struct wf_link {
	struct wf_site site; /* the first member: ops find the link by it */
	struct wf_env *env;
	struct wf_process ssh;
	struct wf_lines errors;              /* of ssh */
	char last_error[WF_LINK_TEXT_BYTES]; /* what ssh printed last */
	struct wf_child **child; /* [child_count] processes of this host, by their number there */
	unsigned child_count;
	struct wf_outlet *err; /* of the supervisor, once it runs */
	bool lost;
	char why[WF_LINK_TEXT_BYTES]; /* when lost */
	struct wf_link_hello hello;
	struct wf_link_reply reply;
	struct wf_link_life life;
	struct wf_frame_stream stream;
	struct wf_frame_writer writer; /* of requests */
	struct wf_link_queue queue;
};

/* `name` lives as long as the link. */
void wf_link_init(struct wf_link *link, struct wf_env *env, const char *name);
/* Starts ssh. */
enum weft_status wf_link_open(struct wf_link *link, const struct wf_args *ssh) WEFT_MUST_CHECK;
/* Sends the request in link->writer, and waits until it is written, while no supervisor runs.
 * WEFT_UNAVAILABLE: the connection is lost. */
enum weft_status wf_link_send(struct wf_link *link) WEFT_MUST_CHECK;
/* Waits for the first words of the agent, in link->hello. WEFT_UNAVAILABLE: the connection is lost,
 * or silent until `deadline_ns`; WEFT_UNSUPPORTED: another version. */
enum weft_status wf_link_await_hello(struct wf_link *link, const char *version,
				     uint64_t deadline_ns) WEFT_MUST_CHECK;
/* Waits for the reply to a request, whose text is link->reply.text. Any status that the agent gave,
 * with the host's name before its words. */
enum weft_status wf_link_await(struct wf_link *link, uint64_t deadline_ns) WEFT_MUST_CHECK;
/* Sends ALIVE when it is due, and loses the link if its agent has been silent for too long, or
 * receives nothing. */
void wf_link_pulse(struct wf_link *link);
/* The supervisor, its children and its outlets are gone. */
void wf_link_detach(struct wf_link *link);
/* Closes the connection, upon which the agent ends; ssh has until `deadline_ns` for that. */
void wf_link_close(struct wf_link *link, uint64_t deadline_ns);
