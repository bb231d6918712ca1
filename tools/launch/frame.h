/* SPDX-License-Identifier: Apache-2.0 */
/* frame: the messages between `weft launch` and its agents on other hosts (agent.h), over the
 * standard input and output of ssh: a header of 8 bytes (type, three zeros, length of the body),
 * then numbers of 4 bytes and texts (length, bytes, NUL), little endian. Both sides treat what they
 * receive as hostile. Thread: any one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "tools/launch/args.h"

#define WF_FRAME_VERSION 4u
#define WF_FRAME_HEAD_BYTES 8u
#define WF_FRAME_BODY_BYTES 262144u /* the longest body */

enum wf_frame_type {
	/* Agent to launcher. */
	WF_FRAME_HELLO = 1, /* version of frames, version of weft, CPUs; the first one */
	WF_FRAME_REPLY,     /* status, text: to each request, in order */
	WF_FRAME_STARTED,   /* process, pid */
	WF_FRAME_LINE,      /* process, stream, text; WF_FRAME_AGENT: of a hook */
	WF_FRAME_ENDED,     /* process, wait status; nothing of it follows before another START */
	/* Launcher to agent: requests. */
	WF_FRAME_WORKSPACE, /* enum wf_workspace, path, numbers of node and processes; the first */
	WF_FRAME_PACKAGE,   /* the folder in the workspace: "" or "thirdparty"; data follows */
	WF_FRAME_DATA,      /* bytes of a tar file: no reply; an empty one ends it: a reply */
	WF_FRAME_HOOK,      /* runs the hook of the thirdparty folder */
	WF_FRAME_RESOLVE,   /* name; the reply has its addresses with blanks between them */
	WF_FRAME_LISTEN,    /* addresses, lowest and highest port, count; the reply: "addr port" */
	WF_FRAME_REACH,     /* count, then address and port of each */
	/* Number, name, log, program ("": weft), arguments, variables, a further argument from the
	 * second start on ("": none). */
	WF_FRAME_PROCESS,
	WF_FRAME_SECRET, /* bytes */
	/* No replies. */
	WF_FRAME_START,  /* process: one that was never started, or has ended */
	WF_FRAME_SIGNAL, /* process, signal */
	WF_FRAME_ALIVE,  /* nothing; the agent sends one back */
	/* Requests of weft doctor. */
	WF_FRAME_EXAMINE, /* index, transport, MiB; the reply: a finding of weft doctor there */
	WF_FRAME_PATH,    /* address and port of a listener; the reply: "MTU segment ACKED" */
	WF_FRAME_CLOCK,   /* nothing; the reply: nanoseconds since 1970 */
	WF_FRAME_TYPE_END,
};

#define WF_FRAME_AGENT UINT32_MAX /* instead of a process */

/* A launcher sends ALIVE so often, and each side ends the link when it has received nothing for the
 * longer time: the other host may have lost its power, which TCP alone shows after a quarter of an
 * hour, or never. */
#define WF_FRAME_ALIVE_NS (10 * WF_NS_PER_S)
#define WF_FRAME_SILENCE_NS (120 * WF_NS_PER_S)

enum wf_workspace {
	WF_WORKSPACE_NONE,  /* processes run in the folder in which the agent was started */
	WF_WORKSPACE_THERE, /* a folder that is there already */
	WF_WORKSPACE_NEW,
	WF_WORKSPACE_END,
};

/* A frame that is being written. */
struct wf_frame_writer {
	size_t used; /* with the header */
	bool overflow;
	uint8_t bytes[WF_FRAME_HEAD_BYTES + WF_FRAME_BODY_BYTES];
};

void wf_frame_begin(struct wf_frame_writer *writer, enum wf_frame_type type);
void wf_frame_add_number(struct wf_frame_writer *writer, uint32_t number);
void wf_frame_add_text(struct wf_frame_writer *writer, const char *text);
void wf_frame_add_texts(struct wf_frame_writer *writer, const struct wf_args *texts);
void wf_frame_add_bytes(struct wf_frame_writer *writer, const void *bytes, size_t count);
/* Fills in the header. WEFT_INVALID: the frame is too long. */
enum weft_status wf_frame_end(struct wf_frame_writer *writer) WEFT_MUST_CHECK;

/* A frame that has been received; `body` and the texts in it live in the stream until the next
 * call. What is read past the end of a body is 0 or "", and `bad` is set. */
struct wf_frame {
	enum wf_frame_type type;
	uint8_t *body;
	size_t left; /* bytes of the body not yet read */
	bool bad;
	char nothing[1]; /* the text that is returned instead of a bad one */
};

uint32_t wf_frame_read_number(struct wf_frame *frame);
/* A text without a NUL in it; never NULL. */
char *wf_frame_read_text(struct wf_frame *frame);
/* Borrows the texts. Too many of them are bad. */
void wf_frame_read_texts(struct wf_frame *frame, struct wf_args *out);
/* WEFT_PROTOCOL: the body is malformed, or longer than what was read of it. */
enum weft_status wf_frame_check(const struct wf_frame *frame) WEFT_MUST_CHECK;

/* Bytes that arrive, cut into frames. */
struct wf_frame_stream {
	size_t used, done; /* bytes received; of these, those of frames that were returned */
	uint8_t bytes[WF_FRAME_HEAD_BYTES + WF_FRAME_BODY_BYTES + 1];
};

/* Where `*room` bytes can be received to. There is always room when wf_frame_next returned
 * WEFT_AGAIN. */
void *wf_frame_room(struct wf_frame_stream *stream, size_t *room);
void wf_frame_received(struct wf_frame_stream *stream, size_t bytes);
/* The next frame. WEFT_AGAIN: it is not complete; WEFT_PROTOCOL: it is none. */
enum weft_status wf_frame_next(struct wf_frame_stream *stream,
			       struct wf_frame *out) WEFT_MUST_CHECK;
