/* SPDX-License-Identifier: Apache-2.0 */
/* outlet: a queue of lines to a descriptor that may be slow, full, stopped or closed.
 *
 * Any thread puts lines into the queue and never waits for the descriptor. A thread that belongs to
 * the outlet writes them in order, several whole lines together, in pieces that a pipe accepts at
 * once. A line that finds the queue full is dropped and counted; a line that says how many were
 * dropped stands in their place as soon as the outlet can write again. The descriptor may be shared
 * with other processes, so O_NONBLOCK is never set on it. Instead the thread calls poll(2) before
 * each write; if another writer was faster, this thread waits, and not the one that logs.
 *
 * To have its lines written before something else happens (a line on another descriptor, the end of
 * the process) a thread flushes, which is bounded. exit(3), a failed assertion and, in programs
 * that ask for it, fatal signals flush all outlets of the process; _exit(2) and SIGKILL do not. In
 * a child of fork(2), which does not have the outlet's thread, the thread that puts a line writes
 * it. If the system cannot create a thread, lines are written when somebody flushes or closes.
 *
 * Thread: any, except for open and close, which belong to the owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define WF_OUTLET_PATIENCE_NS 1000000000ull /* how long the end of a process waits */
#define WF_OUTLET_LINE_BYTES 8192u          /* the longest line, with its newline */
/* What each line takes in the queue besides its own bytes. */
#define WF_OUTLET_HEAD_BYTES 16u

struct wf_outlet;

struct wf_outlet_opts {
	int fd;             /* lent until close */
	size_t queue_bytes; /* address space; pages are touched as the queue fills */
	/* Formats a line, with its newline, that reports `count` dropped lines. Called by the
	 * thread that writes: the outlet's, or the one that flushes or closes. NULL: no report. */
	void (*format_dropped)(uint64_t count, char *line, size_t bytes);
	int wake_fd; /* an eventfd, lent until close, to which 1 is added after each write; -1: none
		      */
};

enum weft_status wf_outlet_open(const struct wf_outlet_opts *opts,
				struct wf_outlet **out) WEFT_MUST_CHECK;
/* Writes the rest of the queue while the descriptor accepts it: it gives up after a second without
 * progress, and after five seconds in all. Accepts NULL. */
void wf_outlet_close(struct wf_outlet *outlet);
/* Queues a line, which ends with a newline. Returns false if it was dropped for lack of room. */
bool wf_outlet_put(struct wf_outlet *outlet, const char *line, size_t bytes);
/* The number of bytes that fit into the queue, WF_OUTLET_HEAD_BYTES of each line included. */
size_t wf_outlet_room(struct wf_outlet *outlet);
/* Waits until everything put so far is written or lost. Returns false if nothing was written for
 * `patience_ns` (WF_NEVER: without limit), or after five times that long in all. */
bool wf_outlet_flush(struct wf_outlet *outlet, uint64_t patience_ns);
/* The errno of the first write that failed; 0: none has. */
int wf_outlet_error(struct wf_outlet *outlet);

/* A format_dropped for lines that begin without a prefix. */
void wf_outlet_format_dropped(uint64_t count, char *line, size_t bytes);

/* Flushes all open outlets. May be called in a signal handler. */
void wf_outlets_flush(uint64_t patience_ns);
/* For programs, to be called first. SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT then flush all
 * outlets before they end the process, unless they already have a handler. Those of the descriptors
 * 0, 1 and 2 that are closed are opened on /dev/null (1 for reading only), so that no line can end
 * up in a socket or a file that was given such a number. */
void wf_outlets_serve_program(void);

/* Writes without an outlet while the descriptor accepts bytes, and gives up after `patience_ns`
 * without progress. May be called in a signal handler. */
bool wf_outlet_write(int fd, const char *bytes, size_t count, uint64_t patience_ns);
/* Writes one line and a newline to stderr in the same way, for a program whose outlet is closed or
 * not open yet. Gives up after WF_OUTLET_PATIENCE_NS. */
void wf_outlet_last_words(const char *format, ...) __attribute__((format(printf, 1, 2)));
