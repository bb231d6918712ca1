/* SPDX-License-Identifier: Apache-2.0 */
/* outlet: lines on their way to a descriptor that may be slow, full, stopped or gone.
 *
 * Any thread puts lines into a queue, and never waits for the descriptor; a thread of the outlet's
 * own writes them, in the order in which they were put, whole lines together in pieces that a pipe
 * takes at once. What finds the queue full is dropped and counted, and where it would have stood
 * the outlet says so as soon as it can write again. The descriptor may be shared with other
 * processes, so it is never set to O_NONBLOCK: the thread looks with poll(2) before each write, and
 * where another writer was faster it is this thread that waits, not who logs.
 *
 * Who wants its lines to be out before something else (a line on another descriptor, the end of the
 * process) flushes, which is bounded. exit(3), a failed assertion and, in programs that ask for it,
 * fatal signals wait in the same way for all outlets of the process; _exit(2) and SIGKILL do not.
 * In a child of fork(2), where the thread is not, lines are written at once by who puts them. Where
 * the system has no thread to give, they are written by who flushes or closes.
 *
 * Thread: any, but for open and close: the owner's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define WF_OUTLET_PATIENCE_NS 1000000000ull /* a second: of who has to go */
#define WF_OUTLET_LINE_BYTES 8192u          /* of one line, its newline included */
/* Between lines and the queue's end there is nothing else but this, for each line. */
#define WF_OUTLET_HEAD_BYTES 16u

struct wf_outlet;

struct wf_outlet_opts {
	int fd;             /* lent until close */
	size_t queue_bytes; /* address space; pages are touched as the queue fills */
	/* Write a line, with its newline, that says that `count` lines were dropped. Called by
	 * who writes: the outlet's thread, or who flushes or closes. NULL: it is not said. */
	void (*format_dropped)(uint64_t count, char *line, size_t bytes);
	int wake_fd; /* an eventfd, lent until close: 1 is added after each write; -1: none */
};

enum weft_status wf_outlet_open(const struct wf_outlet_opts *opts,
				struct wf_outlet **out) WEFT_MUST_CHECK;
/* Writes what is left, as long as the descriptor takes it: no longer than a second without any of
 * it taken, and five seconds in all. Accepts NULL. */
void wf_outlet_close(struct wf_outlet *outlet);
/* Queue a line, which ends with its newline. false: there is no room, and it was dropped. */
bool wf_outlet_put(struct wf_outlet *outlet, const char *line, size_t bytes);
/* Bytes that the queue takes, heads of lines included. */
size_t wf_outlet_room(struct wf_outlet *outlet);
/* Wait until everything put so far is written or lost; false: nothing was written for `patience_ns`
 * (WF_NEVER: wait on), or five times that were over. */
bool wf_outlet_flush(struct wf_outlet *outlet, uint64_t patience_ns);
/* errno of the first write that failed; 0: none. */
int wf_outlet_error(struct wf_outlet *outlet);

/* A format_dropped without anything before it. */
void wf_outlet_format_dropped(uint64_t count, char *line, size_t bytes);

/* A flush of all open outlets; may be called in a signal handler. */
void wf_outlets_flush(uint64_t patience_ns);
/* For programs, first of all: SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT flush all outlets before
 * they end the process, unless somebody handles them already; and of the descriptors 0, 1 and 2
 * those that are closed get /dev/null (1 for reading only), so that no line ever ends up in a
 * socket or a file that got such a number. */
void wf_outlets_serve_program(void);

/* For last words, without any outlet: writes as long as the descriptor takes it, and gives up when
 * it has taken nothing for `patience_ns`. May be called in a signal handler. */
bool wf_outlet_write(int fd, const char *bytes, size_t count, uint64_t patience_ns);
/* The same of one line on stderr, to which a newline is added: what a program says when its outlet
 * is closed, or before it has one. Gives up after WF_OUTLET_PATIENCE_NS. */
void wf_outlet_last_words(const char *format, ...) __attribute__((format(printf, 1, 2)));
