/* SPDX-License-Identifier: Apache-2.0 */
/* libweft: a trainer's side of the parameter exchange fabric.
 *
 * A trainer declares its tensors, starts the session, and then, step after step, hands in gradients
 * and gets fresh parameters back:
 *
 *     weft_session_opts_init(&opts);
 *     weft_session_open(&opts, &s);
 *     weft_tensor_add(s, &(struct weft_tensor_opts){.name = "w", .rows = 13, .cols = 1}, &w);
 *     weft_session_seal(s);                        // arrays exist from here on
 *     fill weft_tensor_param(w);                   // trainer 0's values are everybody's
 *     weft_session_start(s);
 *     for each batch:
 *             compute weft_tensor_grad(w) from weft_tensor_param(w);
 *             weft_exchange(s, samples, cost);     // push all, wait for all
 *     weft_session_close(s);
 *
 * Thread: a session and its tensors belong to the thread that opened it. With WEFT_PROGRESS_THREAD
 * a thread of the session's own moves the bytes; with WEFT_PROGRESS_CALLER they move inside the
 * calls that wait (weft_wait*, weft_exchange, weft_pull*, weft_barrier, weft_reduce, weft_pass_end)
 * and in weft_poll; while a push is unanswered such a caller has to be in one of them again within
 * half of peer_timeout_ns, or its pservers take it for lost. The library is not to be used in a
 * child after fork.
 *
 * No call waits for ever: each ends in success or in a status whose text (weft_last_error) names
 * the peer, what was waited for, and why it did not come. */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

#include <stddef.h>
#include <stdint.h>

#include "weft/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1
#define WEFT_VERSION_PATCH 0

struct weft_session;
struct weft_tensor;

enum weft_progress {
	WEFT_PROGRESS_THREAD = 0, /* a progress thread of the session's own */
	WEFT_PROGRESS_CALLER = 1, /* progress inside the calls that wait */
};

/* When what is pushed to sparse tables is applied. Tensors are synchronous in any case. */
enum weft_sparse_mode {
	WEFT_SPARSE_SYNC = 0,    /* when all trainers have pushed the step: equal bits */
	WEFT_SPARSE_ASYNC = 1,   /* as it comes, on each lane by itself; nobody waits */
	WEFT_SPARSE_BOUNDED = 2, /* as it comes; who is ahead waits for who is behind */
};

enum weft_grad_reduce {
	WEFT_REDUCE_SUM = 0,  /* gradients are summed over trainers, as in the original */
	WEFT_REDUCE_MEAN = 1, /* and divided by the step's exact number of samples */
};

enum weft_log_level {
	WEFT_LOG_DEBUG = 0,
	WEFT_LOG_INFO = 1,
	WEFT_LOG_WARN = 2,
	WEFT_LOG_ERROR = 3,
};

/* The pservers' optimizer. All trainers of a job give the same. Formulas: kernels/README.md. */
struct weft_optimizer_opts {
	const char *method;   /* "sgd", "momentum", "nesterov", "adagrad", "adam", "adamw" */
	double learning_rate; /* > 0 */
	double momentum;      /* momentum, nesterov: [0, 1) */
	double beta1, beta2;  /* adam, adamw: [0, 1) */
	double epsilon;       /* adam, adamw: > 0; adagrad: > 0, inside the root (1e-6 there) */
	double decay;         /* of tensors that name none; L2, for adamw decoupled; >= 0 */
	double clip;          /* gradients are clipped to [-clip, clip]; 0: off */
	const char *schedule; /* "constant", "linear", "warmup" */
	double schedule_a, schedule_b;
};

struct weft_session_opts {
	size_t struct_bytes; /* set by weft_session_opts_init */

	/* The job, the same on every trainer. */
	const char *pservers; /* comma list of host, host:port, [v6]:port; the order counts */
	uint16_t port;        /* of entries that name none: 7164 */
	uint32_t ports_num;   /* dense lanes of each pserver, on consecutive ports: 1 */
	uint32_t ports_num_for_sparse;     /* sparse lanes after them, for weft/sparse.h: 0 */
	uint32_t num_gradient_servers;     /* number of trainers: 1 */
	enum weft_grad_reduce grad_reduce; /* WEFT_REDUCE_SUM */
	int skip_nonfinite;   /* 0: a NaN or Inf in a gradient ends the job; 1: such elements are
				 skipped */
	uint64_t slice_bytes; /* a multiple of 64: 262,144 */
	struct weft_optimizer_opts optimizer;

	/* This trainer. */
	uint32_t trainer_id; /* 0 .. num_gradient_servers - 1, unique in the job */
	/* "auto": shared memory with each pserver of this host, RDMA with others where both have
	 * it, else TCP; "tcp": TCP only; "shm", "verbs" (RDMA): that, or the end with WEFT_MISMATCH
	 * (WEFT_UNAVAILABLE where there is no RDMA device): "auto" */
	const char *transport;
	enum weft_progress progress;
	/* Of the progress thread, and the arrays with it: "auto", "off", a CPU list: "off" */
	const char *pin;
	uint64_t spin_ns;              /* how long to poll before sleeping: 0 */
	uint64_t connect_timeout_ns;   /* until every lane has answered for the first time: 300 s */
	uint64_t reconnect_timeout_ns; /* for a lane that was lost to come back: 3 s */
	uint64_t peer_timeout_ns;      /* silence of a host: 10 s */
	uint64_t
		step_timeout_ns; /* longest wait for a step, pull or reduce; 0: no limit: 1,800 s */
	int keep_state;          /* arrays for the optimizer's state, for weft_tensor_state: 0 */
	/* What the bits depend on (BLAS, threads); a difference between trainers is a warning. */
	const char *numerics;
	/* A line at WEFT_LOG_INFO about what this trainer did, so often and at the end; 0: none,
	 * and no times in weft_session_stats: 0. */
	uint64_t stats_period_ns;
	/* Congestion control of TCP sockets ("cubic"); one that this host or user has not is
	 * refused at weft_session_start, with the list of those it has. "": the system's: "" */
	const char *tcp_congestion;
	enum weft_sparse_mode sparse_mode; /* the same on all trainers: WEFT_SPARSE_SYNC */
	/* BOUNDED: a step ends when the slowest trainer has done at most so many steps fewer: 0 */
	uint32_t sparse_staleness;
	/* Not SYNC: a lane drops a push when so many times the number of trainers pushes of others
	 * came after its rows were read, and counts it with pushes_lost; 0: none: 0 */
	double sparse_discard_ratio;
	/* Settings of RDMA devices, "device=mlx5_0,retry=5"; keys and values: docs of the option
	 * --verbs of weft train. "": as is best: "" */
	const char *verbs;

	/* Log lines, without newline, from any thread of the session. NULL: warnings to stderr. */
	void (*log)(void *arg, enum weft_log_level level, const char *line);
	void *log_arg;

	void *env; /* NULL. Tests give a simulated environment. */
};

struct weft_tensor_opts {
	const char *name;       /* unique in the job; 1..127 printable characters without spaces */
	uint64_t rows;          /* >= 1 */
	uint64_t cols;          /* >= 1; 0 stands for 1 */
	double rate_multiplier; /* of the learning rate; 0 stands for 1 */
	double decay;           /* L2; 0 stands for the job's; negative: none */
	double clip;            /* 0 stands for the job's; negative: none */
	int is_static;          /* never pushed nor updated */
};

/* What a session has done since weft_session_start, on all lanes together. */
struct weft_session_stats {
	size_t struct_bytes; /* set by the caller: sizeof(struct weft_session_stats) */

	/* All that went over its connections, as the transport counts it: heads included. */
	uint64_t sent_bytes, received_bytes;
	uint64_t messages_sent, messages_received;
	uint64_t fast_sent_bytes, fast_received_bytes; /* of them, over a path better than TCP */
	uint64_t paths_broken;             /* such paths that broke while their peer stayed */
	uint64_t puts_sent, puts_received; /* slices: gradients and initial values; answers */

	uint64_t steps;         /* begun by this trainer */
	uint64_t slices_pushed; /* PUT, trainer 0's initial values too; after a cut perhaps twice */
	uint64_t slices_answered; /* pushes whose fresh values are here */
	uint64_t slices_pulled;   /* pulls whose values are here; initial values too */
	uint64_t reconnects;      /* lanes that were lost and came back */

	/* Waits by reason. */
	uint64_t waits_slot; /* a lane's window ran out and more was to be pushed */
	uint64_t waits_post; /* posts of which the transport took less than it was given */

	/* Where the time went of the thread that drives progress, nanoseconds; together all of it.
	 * 0 unless stats_period_ns is above 0. */
	uint64_t poll_time_ns; /* moving bytes and book-keeping */
	uint64_t idle_time_ns; /* asleep, or polling without events */
	uint64_t away_time_ns; /* WEFT_PROGRESS_CALLER: outside the calls that wait */

	/* From the first push or pull to the last answer of what was under way together: mostly a
	 * step. Nanoseconds, at most 1.6 % too high; 0 unless stats_period_ns is above 0. */
	uint64_t exchange_p50_ns, exchange_p99_ns;
};

/* The library's version, "0.1.0". */
WEFT_API const char *weft_version(void);

/* Fill in every default named above. */
WEFT_API void weft_session_opts_init(struct weft_session_opts *opts);

/**
 * Check the options and make a session. No network yet.
 * @param opts borrowed for the call; strings are copied
 * @param out  written on WEFT_OK; ends with weft_session_close or weft_session_abort
 * @return WEFT_OK; WEFT_INVALID: names option, value and remedy; WEFT_NOMEM
 */
WEFT_API enum weft_status weft_session_open(const struct weft_session_opts *opts,
					    struct weft_session **out) WEFT_MUST_CHECK;

/**
 * Declare a tensor (f32 [rows, cols], row-major). All trainers declare the same ones in the same
 * order, before weft_session_seal.
 * @param out written on WEFT_OK; belongs to the session
 * @return WEFT_OK; WEFT_INVALID: bad or repeated name, bad size, or sealed already; WEFT_NOMEM
 */
WEFT_API enum weft_status weft_tensor_add(struct weft_session *session,
					  const struct weft_tensor_opts *opts,
					  struct weft_tensor **out) WEFT_MUST_CHECK;

/**
 * No more tensors: place them, and allocate their arrays, zeroed.
 * @return WEFT_OK; WEFT_INVALID: no tensor, or sealed already; WEFT_NOMEM
 */
WEFT_API enum weft_status weft_session_seal(struct weft_session *session) WEFT_MUST_CHECK;

/* The arrays of a tensor: rows * cols f32, 64-byte aligned, from seal to close. NULL before seal; a
 * static tensor has no gradient. While a push or pull of the tensor is unanswered both are lent:
 * do not write to them, and do not trust what is in the parameters. */
WEFT_API float *weft_tensor_param(struct weft_tensor *tensor);
WEFT_API float *weft_tensor_grad(struct weft_tensor *tensor);
WEFT_API uint64_t weft_tensor_count(const struct weft_tensor *tensor); /* elements */
WEFT_API const char *weft_tensor_name(const struct weft_tensor *tensor);

/**
 * Connect to every lane of every pserver, wait until all agree, and distribute the initial values:
 * trainer 0's parameter arrays. On return the arrays hold them on every trainer. Blocks.
 * @return WEFT_OK; WEFT_TIMEOUT: who was not there within connect_timeout_ns, with the last error;
 *         WEFT_MISMATCH, WEFT_REFUSED: what differs, both values; WEFT_ABORTED: the first cause
 */
WEFT_API enum weft_status weft_session_start(struct weft_session *session) WEFT_MUST_CHECK;

/**
 * Begin the next step: this trainer's share of it has `samples` samples. Never blocks.
 * @param samples >= 1
 * @param cost    summed over the samples; for the pservers' logs only
 * @return WEFT_OK; WEFT_AGAIN: a push of the last step is unanswered, wait for it first;
 *         WEFT_INVALID: no samples, or a tensor of the last step was not pushed,
 * named; WEFT_ABORTED: the first cause
 */
WEFT_API enum weft_status weft_step(struct weft_session *session, uint64_t samples,
				    double cost) WEFT_MUST_CHECK;

/**
 * Hand in the gradient of one tensor for the step begun last. Never blocks. Push in any order;
 * every tensor that is not static is pushed exactly once in each step. Pushing one tensor, waiting
 * for it, and only then pushing the next is allowed only if all trainers push in the same order:
 * waiting in opposite orders on two trainers blocks both, and the wait says so after two seconds.
 * @return WEFT_OK; WEFT_INVALID: static, no step begun, or pushed already in this step;
 *         WEFT_ABORTED: the first cause
 */
WEFT_API enum weft_status weft_push(struct weft_tensor *tensor) WEFT_MUST_CHECK;

/**
 * Wait until the push or pull of a tensor is answered: its parameter array then holds the fresh
 * values and both arrays are the caller's again. Returns at once if nothing is under way. Blocks.
 * @return WEFT_OK; WEFT_TIMEOUT: step_timeout_ns passed, names what was waited for;
 *         WEFT_LOST, WEFT_ABORTED, WEFT_DATA: the job is over, the text is the first cause
 */
WEFT_API enum weft_status weft_wait(struct weft_tensor *tensor) WEFT_MUST_CHECK;
WEFT_API enum weft_status weft_wait_all(struct weft_session *session) WEFT_MUST_CHECK;

/* weft_step, weft_push of every tensor in reverse order of declaration, weft_wait_all. */
WEFT_API enum weft_status weft_exchange(struct weft_session *session, uint64_t samples,
					double cost) WEFT_MUST_CHECK;

/**
 * Fetch current values into the parameter array. Blocks until they are there.
 * @return as weft_wait; WEFT_INVALID: a push of the tensor is unanswered
 */
WEFT_API enum weft_status weft_pull(struct weft_tensor *tensor) WEFT_MUST_CHECK;
WEFT_API enum weft_status weft_pull_all(struct weft_session *session) WEFT_MUST_CHECK;

/**
 * End this trainer's pass. Trainers may end it after different numbers of steps: who is early takes
 * no part in the others' remaining steps. Waits until every trainer has ended the pass; on return
 * all of them hold the same, newest values and begin the next step together. Blocks.
 * @return as weft_wait; WEFT_INVALID: a tensor of the last step was not pushed, named
 */
WEFT_API enum weft_status weft_pass_end(struct weft_session *session) WEFT_MUST_CHECK;

/**
 * Sum small vectors over all trainers, in trainer order (the same bits everywhere). Every trainer
 * makes the same calls in the same order. Blocks.
 * @param value in: this trainer's; out: the sum. [count], count <= 256; 0 is a barrier
 * @return as weft_wait; WEFT_INVALID: count
 */
WEFT_API enum weft_status weft_reduce(struct weft_session *session, double *value,
				      uint32_t count) WEFT_MUST_CHECK;
WEFT_API enum weft_status weft_barrier(struct weft_session *session) WEFT_MUST_CHECK;

/* Make what progress is possible without waiting. Of use with WEFT_PROGRESS_CALLER. */
WEFT_API enum weft_status weft_poll(struct weft_session *session) WEFT_MUST_CHECK;

/* 64-bit digest over every parameter byte, tensors in order of their names. */
WEFT_API enum weft_status weft_digest(struct weft_session *session, uint64_t *out) WEFT_MUST_CHECK;

/**
 * The optimizer's state, for saving and restoring a job. With `keep_state` in the options each
 * tensor that is not static has weft_state_count arrays of its own size beside its parameters, from
 * seal to close (momentum: m; adam: m, v).
 */
WEFT_API uint32_t weft_state_count(const struct weft_session *session);
/* NULL before seal, without keep_state, for a static tensor, or beyond the count. */
WEFT_API float *weft_tensor_state(struct weft_tensor *tensor, uint32_t idx);

/**
 * Fetch current parameters and state of every tensor into their arrays, as they are after the last
 * step of the last pass (call it between weft_pass_end and the next weft_step). Needs keep_state.
 * @return as weft_wait; WEFT_INVALID: without keep_state, or while a push is unanswered
 */
WEFT_API enum weft_status weft_pull_state(struct weft_session *session) WEFT_MUST_CHECK;

/**
 * Trainer 0, between weft_session_seal and weft_session_start: the parameter and state arrays are
 * those of a job that had applied `step` steps over `samples` samples; go on from there. Other
 * trainers need not call it: they learn the step at start, and weft_steps tells it. Needs
 * keep_state where the optimizer has state and step > 0.
 * @return WEFT_OK; WEFT_INVALID: not trainer 0, not sealed, or started already; WEFT_UNSUPPORTED:
 * step > 0 of a session with tables in an asynchronous mode. In a synchronous one each table is
 * given back with weft_table_write (weft/sparse.h), once the session has started.
 */
WEFT_API enum weft_status weft_session_restore(struct weft_session *session, uint64_t step,
					       uint64_t samples) WEFT_MUST_CHECK;

/* Steps begun so far; 0 before the first. After weft_pass_end the same on every trainer. */
WEFT_API uint64_t weft_steps(const struct weft_session *session);

/**
 * What the session has done so far. Blocks for one turn of the progress thread, never for a peer;
 * of use at any time before close, also after a failure.
 * @param out struct_bytes is read, the rest written on WEFT_OK; all 0 before weft_session_start
 * @return WEFT_OK; WEFT_INVALID: struct_bytes is not what this version of the library has
 */
WEFT_API enum weft_status weft_session_stats(struct weft_session *session,
					     struct weft_session_stats *out) WEFT_MUST_CHECK;

/**
 * Say GOODBYE to every lane, wait for the answers (at most reconnect_timeout_ns), free everything.
 * Accepts NULL and a session in any state.
 * A session in the middle of a step ends the job for everybody, for they would wait for it.
 * @return WEFT_OK; else why the job did not end in good order; WEFT_LOST also where only the
 *         acknowledgement of a finished job is missing. The session is gone either way.
 */
WEFT_API enum weft_status weft_session_close(struct weft_session *session);

/* End the job for everybody: `reason` is shown by all members as the first cause. Then free. */
WEFT_API void weft_session_abort(struct weft_session *session, enum weft_status status,
				 const char *reason);

#ifdef __cplusplus
}
#endif
#endif
