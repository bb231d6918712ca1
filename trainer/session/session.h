/* SPDX-License-Identifier: Apache-2.0 */
/* session: what the public API hands out, and how it reaches its core.
 *
 * session.c   options, start and end; tensor.c  tensors; exchange.c  steps, pushes, waits;
 * progress.c  who drives the core: a thread of its own, fed by a ring of commands, or the caller.
 * Thread: the owner's, but for struct wf_progress's shared fields. */
#pragma once

#include <pthread.h>

#include "base/names.h"
#include "base/pin.h"
#include "base/ring.h"
#include "base/settings.h"
#include "base/shape.h"
#include "trainer/session/core.h"
#include "trainer/session/local.h"
#include "trainer/session/service.h"
#include "weft/weft.h"

/* Commands under way at a time: one for each tensor, and a few of the session's own. */
#define WF_COMMANDS_OWN 16u

enum wf_command_kind {
	WF_COMMAND_START,
	WF_COMMAND_STEP,  /* a: samples, cost */
	WF_COMMAND_PUSH,  /* tensor, a: step */
	WF_COMMAND_PIECE, /* tensor, section: bytes, a: pushes of this piece so far, with this */
	WF_COMMAND_PULL,  /* tensor, section, a: step */
	WF_COMMAND_OUT,
	WF_COMMAND_NEXT_PASS, /* a: step */
	WF_COMMAND_REDUCE,
	WF_COMMAND_STATS,
	WF_COMMAND_OTHERS,  /* a: trainer */
	WF_COMMAND_LEAVE,   /* a: not 0: the job goes on */
	WF_COMMAND_FAIL,    /* a: status; the reason is in the session */
	WF_COMMAND_STOP,    /* heed stopped_by */
	WF_COMMAND_SERVICE, /* the service's: tensor: which, section, a: as it likes */
};

struct wf_command {
	enum wf_command_kind kind;
	uint32_t tensor;
	unsigned section;
	uint64_t a;
	double cost;
};

/* Which thread is in the core: it polls, runs commands, reads and writes fields that are not
 * shared. It changes between two polls, and between two calls. */
enum wf_driver {
	WF_DRIVER_NONE,
	WF_DRIVER_THREAD,
	WF_DRIVER_OWNER,
};

/* With WEFT_PROGRESS_THREAD. The owner drives while it is in a call that waits, or that has
 * something to send; the thread drives while there is something to do and the owner is away, and
 * sleeps otherwise. progress.c has the owner's side, progress_thread.c the thread's. */
struct wf_progress {
	bool threaded;
	bool started; /* the thread runs */
	pthread_t thread;
	struct wf_ring *ring; /* commands that found the thread driving */
	struct wf_pin *pin;
	int poll_fd; /* epoll over command_fd and the transport's descriptor; the thread sleeps on
			it */
	int command_fd;  /* eventfd, never read: each write is an edge that wakes the thread */
	int handover_fd; /* eventfd: the thread has released the core, which the owner wants */
	/* command_fd, for the stop of the session; -1: nothing to wake. Owner: store release; any
	 * thread or signal handler: load acquire. */
	_Atomic int wake_fd;
	uint64_t asked_ns; /* owner: the last call of the caller's `interrupted` */

	bool watched; /* driver: events wake the thread, if it sleeps */

	/* Shared. All seq_cst: each side stores its own word, then looks at the other's. */
	_Atomic uint32_t driver;   /* enum wf_driver (D1, D2) */
	_Atomic uint32_t commands; /* owner: put into the ring so far (D1) */
	_Atomic uint32_t wanted;   /* owner: 1 before it sleeps until the core is free (D2) */
	_Atomic uint64_t until_ns; /* thread: before it sleeps, until when at the latest (D3) */
	_Atomic uint32_t stop;     /* owner: end the thread */
};

struct weft_tensor {
	struct weft_session *session;
	uint32_t idx;
	uint64_t rows, cols;             /* as declared */
	char shape[WF_SHAPE_TEXT_BYTES]; /* "": rows and columns */
	uint64_t pushed_step; /* last step it was pushed in, of those the trainer counts */
	uint64_t state_step;  /* the step after which its state was pulled, in synchronous jobs */
	/* Of local steps: local.c. */
	bool base_known; /* the value before them is kept */
	bool is_offered; /* an exchange is under way, or answered and not looked at */
};

/* The pieces of weft_all_reduce. They are tensors of the job behind those that were declared.
 * all_reduce.c's. */
struct wf_ring_of_pieces {
	uint32_t count;      /* 0: there is no ring */
	uint64_t data_bytes; /* that a piece holds */
	uint64_t call;       /* calls so far */
	uint64_t pushed;     /* pieces so far: number n goes through piece n % count */
};

/* What saving and loading (trainer/passes) keep at a session. */
struct wf_session_past {
	uint64_t samples;     /* of this trainer's steps in this session */
	uint64_t pass_count;  /* passes ended in this session */
	bool is_loaded;       /* weft_session_load was called; on trainer 0: */
	uint64_t old_samples; /* of all trainers, before this session */
	uint64_t next_pass;   /* the number after that of the pass that was loaded */
	/* Called when weft_session_start has reached all lanes; NULL: nothing is left to do. */
	enum weft_status (*start)(struct weft_session *session);
	void (*close)(void *state); /* accepts NULL; NULL: there is no state */
	void *state;
};

/* gate.h's. */
struct wf_gate {
	_Atomic uintptr_t thread; /* the one that is in a call; 0: none (G1) */
	unsigned forks;           /* wf_forked_depth() of the process that opened the session */
};

struct weft_session {
	bool own_env;
	struct wf_gate gate;
	struct wf_core core;
	struct wf_progress progress;
	struct weft_tensor **tensor; /* [tensor_capacity] */
	uint32_t tensor_capacity;
	struct wf_names names;               /* of tensors; in core.job */
	struct wf_host *pserver;             /* [pserver_count] */
	char *strings[WF_SETTING_TEXTS_MAX]; /* copies of the settings' texts */
	bool sealed, started, core_open;
	bool running;      /* the core has received START */
	bool begun;        /* a step, in this pass */
	uint32_t unpushed; /* begun: tensors that were not pushed in that step and take part */
	bool resumed;      /* it has begun with a state that the lanes had */
	/* The call that has begun an operation of all members and has not completed it; NULL:
	 * none. */
	const char *within;
	/* Begun by this trainer or, after a pass, by anybody; of local steps: exchanges. */
	uint64_t step;
	uint64_t known_step; /* step that is applied on all lanes, for which a pull asks */
	bool has_state;      /* a pull of state has ended well */
	/* That of the next step, until that begins. */
	bool position_given;
	struct wf_msg_position position;
	struct wf_session_past past;
	struct wf_local local; /* of local steps only */
	struct wf_ring_of_pieces pieces;
	char fail_reason[WF_REASON_BYTES];
};

/* begin.c */
/* Opens the core, and joins the job: weft_session_start without its checks. */
enum weft_status wf_session_begin(struct weft_session *session) WEFT_MUST_CHECK;
/* The session has failed: until every connection is down, or the second for its ABORT is over. */
void wf_session_await_quiet(struct weft_session *session);

/* restore.c */
enum weft_status wf_restore_give(struct weft_session *session) WEFT_MUST_CHECK;

/* position.c */
/* A step that is sent to the lanes begins: the position that was given travels with it. */
void wf_position_begin_step(struct weft_session *session);
/* All lanes were reached: the session goes on where the state with which they begin was kept. */
void wf_position_resume(struct weft_session *session);

/* modes.c */
/* Fills in what a tensor is and when it is applied. WEFT_INVALID: it cannot be that. */
enum weft_status wf_modes_fill_tensor(const struct wf_job *job, const struct weft_tensor_opts *opts,
				      struct wf_job_tensor *tensor) WEFT_MUST_CHECK;

/* The tensors that were declared, which are the first ones of the job. */
static inline uint32_t
wf_session_tensor_count(const struct weft_session *session)
{
	return session->core.job.tensor_count - session->pieces.count;
}

/* all_reduce.c */
/* Adds the pieces to the job when the session is sealed. WEFT_INVALID, WEFT_NOMEM. */
enum weft_status wf_pieces_declare(struct weft_session *session) WEFT_MUST_CHECK;
/* Sealing has failed: the job is as it was declared. */
void wf_pieces_undeclare(struct weft_session *session);

/* tensor.c */
/* Room for one more tensor in the arrays, and for its name. */
enum weft_status wf_tensors_grow(struct weft_session *session) WEFT_MUST_CHECK;

/* exchange.c */
/* Records why nothing can be exchanged now. */
enum weft_status wf_exchange_refuse(const struct weft_session *session) __attribute__((cold));
static inline enum weft_status
wf_exchange_check_running(const struct weft_session *session)
{
	bool runs = session->running && !wf_core_failed(&session->core);
	return runs ? WEFT_OK : wf_exchange_refuse(session);
}
/* Everything begun has been pushed and answered; else WEFT_INVALID names a tensor or a call. */
enum weft_status wf_exchange_finished(const struct weft_session *session) WEFT_MUST_CHECK;

/* progress.c */
void wf_progress_init(struct weft_session *session);
enum weft_status wf_progress_open(struct weft_session *session) WEFT_MUST_CHECK;
/* Ends the thread; it may be opened again. Accepts a session that never opened it. */
void wf_progress_end(struct weft_session *session);
void wf_progress_close(struct weft_session *session); /* for good, from any state */
/* Hands a command to the core. What it sends leaves with the next wf_progress_send or wait, within
 * a tenth of a second at the latest. */
void wf_progress_command(struct weft_session *session, const struct wf_command *command);
/* The two commands of each exchange. */
void wf_progress_step(struct weft_session *session, uint64_t samples, double cost);
void wf_progress_push(struct weft_session *session, uint32_t tensor, uint64_t step);
/* The owner returns to its own work after commands that move `bytes`: by the return they are on
 * their way, or the thread handles them. */
void wf_progress_send(struct weft_session *session, uint64_t bytes);
/* Waits until `*word` is 0 or the session fails; WEFT_AGAIN: the caller's `interrupted` ended the
 * wait. */
enum weft_status wf_progress_wait_clear(struct weft_session *session,
					const _Atomic uint32_t *word) WEFT_MUST_CHECK;
/* Waits until `done` returns true, which is called between turns, also for a failed session. */
void wf_progress_wait(struct weft_session *session, bool (*done)(struct weft_session *));
/* If a signal has stopped the program, the core has failed for it by the return. */
void wf_progress_heed_stop(struct weft_session *session);
/* One turn, if the caller drives. */
void wf_progress_turn(struct weft_session *session);
/* progress_thread.c */
enum weft_status wf_progress_thread_start(struct weft_session *session) WEFT_MUST_CHECK;
/* The recorded failure of the core. */
enum weft_status wf_session_failure(const struct weft_session *session);
/* Fails the core with this text, unless it has failed; at the return it has. */
void wf_session_fail(struct weft_session *session, enum weft_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
