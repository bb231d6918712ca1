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
 * bytes move inside the calls that wait, and a thread of the session's own moves them while the
 * caller is away. With WEFT_PROGRESS_CALLER there is no such thread: they move only inside the
 * calls that wait (weft_wait*, weft_exchange, weft_pull*, weft_barrier, weft_reduce, weft_pass_end)
 * and in weft_poll; between them such a caller may stay away for as long as it likes, and the step
 * waits for it. The library is not to be used in a child after fork.
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
struct weft_settings;
struct weft_tensor;

enum weft_progress {
	WEFT_PROGRESS_THREAD = 0, /* a progress thread of the session's own */
	WEFT_PROGRESS_CALLER = 1, /* progress inside the calls that wait */
};

/* When what is pushed of tensors is applied. */
enum weft_dense_mode {
	WEFT_DENSE_SYNC = 0,    /* when all trainers have pushed it in this step: equal bits */
	WEFT_DENSE_ASYNC = 1,   /* each slice as it comes, by itself; nobody waits */
	WEFT_DENSE_BOUNDED = 2, /* likewise, but who is ahead waits for who is behind */
	/* Each trainer makes steps of its own with its gradients alone; after local_steps of them,
	 * and at the end of a pass, parameters are averaged. Sessions without tables only. */
	WEFT_DENSE_LOCAL = 3,
	/* Likewise, but each trainer keeps its own parameters, and is only drawn towards a center
	 * that all draw towards them (EASGD); at the end of a pass it goes on from the center. */
	WEFT_DENSE_ELASTIC = 4,
};

/* The mode of one tensor. */
enum weft_tensor_mode {
	WEFT_TENSOR_AS_SESSION = 0, /* what dense_mode of the session says */
	WEFT_TENSOR_SYNC = 1,       /* as WEFT_DENSE_SYNC */
	WEFT_TENSOR_ASYNC = 2,
	WEFT_TENSOR_BOUNDED = 3,
};

/* When what is pushed to sparse tables is applied; of tensors: enum weft_dense_mode. */
enum weft_sparse_mode {
	WEFT_SPARSE_SYNC = 0,    /* when all trainers have pushed the step: equal bits */
	WEFT_SPARSE_ASYNC = 1,   /* as it comes, on each lane by itself; nobody waits */
	WEFT_SPARSE_BOUNDED = 2, /* as it comes; who is ahead waits for who is behind */
};

/* What gradients and values of tensors travel as. In 16 bits they are half the bytes each way, and
 * are rounded once each way: a gradient as it leaves (weft_rounding), a value as it is answered, to
 * nearest, ties to even. Lanes widen gradients and sum and apply them in f32 as ever; parameters
 * and state stay f32 there. So trainers compute with rounded values, all with the same ones, and
 * what an update is too small to move here still adds up there (weft_tensor_exact). */
enum weft_dense_wire {
	WEFT_WIRE_F32 = 0,
	WEFT_WIRE_BF16 = 1, /* the range of f32, 8 bits of precision */
	/* 11 bits of precision, up to 65,504. A larger gradient becomes infinite, and is treated as
	 * skip_nonfinite says (and counted: weft_session_stats); a larger value ends the job. */
	WEFT_WIRE_F16 = 2,
};

enum weft_rounding {
	WEFT_ROUND_NEAREST = 0, /* ties to even */
	/* Up or down by chance, so that the mean is the gradient itself: small gradients beside
	 * large ones do not get lost. Each element of each step has chance of its own, from
	 * rounding_seed; it costs the trainer most of a nanosecond an element. */
	WEFT_ROUND_STOCHASTIC = 1,
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
	/* "sgd", "momentum", "torch_momentum", "nesterov", "adagrad", "decayed_adagrad", "rmsprop",
	 * "adadelta", "adam", "adamw", "adamax" */
	const char *method;
	double learning_rate; /* > 0 */
	double momentum;      /* momentum, torch_momentum, nesterov: [0, 1) */
	double beta1, beta2;  /* adam, adamw, adamax: [0, 1) */
	double epsilon;       /* > 0; adam, adamw, adamax; of the others with one, inside the root,
				 where 1e-6 is usual */
	double decay;         /* of tensors that name none; L2, for adamw decoupled; >= 0 */
	double clip;          /* gradients are clipped to [-clip, clip]; 0: off */
	/* "constant", "linear", "warmup", "poly", "caffe_poly", "exp", "discexp", "manual",
	 * "pass_manual" */
	const char *schedule;
	double schedule_a, schedule_b; /* of all but constant and the last two */
	/* Of these two: "1000:1.0,2000:0.5": up to 1,000 samples (passes) learning_rate times 1.0,
	 * then times 0.5; at most 32. NULL stands for "" */
	const char *schedule_args;
	uint64_t first_pass; /* of pass_manual: passes before this session's first: 0 */
	double rho;          /* decayed_adagrad, rmsprop, adadelta: [0, 1): 0.95 */
	double l1;           /* of tensors that name none; >= 0: 0 */
	/* Above 0: the pservers keep averages of all values over the last steps, as many as this
	 * share of all steps, for weft_tensor_average; 0.001 to 1; WEFT_DENSE_SYNC only; rows of
	 * tables have none: 0 */
	double average_window;
	uint64_t max_average_window; /* steps it has at most, >= 1; 0: no limit: 0 */
	/* Above 0: before anything else the whole reduced gradient of a step, tensors that are not
	 * static together, is shortened to this norm if it is longer. It takes one round more: no
	 * push is answered before all are there. Rows of tables are no part of it. WEFT_DENSE_SYNC
	 * only: 0 */
	double clip_norm;
};

#define WEFT_SPIN_AUTO UINT64_MAX

struct weft_session_opts {
	/* Set by weft_session_opts_init: how large the caller's struct is. Where it is smaller than
	 * the library's, the caller was built with an older header, and what it does not have keeps
	 * its default. Where it is larger, what lies behind has to be 0. */
	size_t struct_bytes;

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
	/* What else has to be the same on all trainers for the results to be right, as words of the
	 * program's own: "seed=1 batch_size=32 data=9f86d081884c7d65". Up to 255 printable
	 * characters, one blank between words; of what is long, such as data, a digest. A trainer
	 * whose words are not those of the first that has any is refused with WEFT_MISMATCH, which
	 * names the first word that differs, as both have it. "": not compared: "" */
	const char *compared;

	/* This trainer. */
	uint32_t trainer_id; /* 0 .. num_gradient_servers - 1, unique in the job */
	/* "auto": shared memory with each pserver of this host, RDMA with others where both have
	 * it, else TCP; "tcp": TCP only; "shm", "verbs" (RDMA): that, or the end with WEFT_MISMATCH
	 * (WEFT_UNAVAILABLE where there is no RDMA device): "auto" */
	const char *transport;
	enum weft_progress progress;
	/* Of the progress thread, and the arrays with it: "auto", "off", a CPU list: "off" */
	const char *pin;
	/* How long a wait polls before it sleeps; up to 1 s; 0: not at all. WEFT_SPIN_AUTO: as long
	 * as recent waits make it worthwhile, up to 100 us, where there are CPUs for it:
	 * WEFT_SPIN_AUTO */
	uint64_t spin_ns;
	uint64_t connect_timeout_ns;   /* until every lane has answered for the first time: 300 s */
	uint64_t reconnect_timeout_ns; /* for a lane that was lost to come back: 3 s */
	uint64_t peer_timeout_ns;      /* silence of a host (not of a process), from 1 ms: 10 s */
	/* Longest wait for a step, pull or reduce. 0 means no limit. Default: 1,800 s. */
	uint64_t step_timeout_ns;
	/* A pserver that takes no turns (stopped, swapped out, starved) is named in the log, and
	 * waited for so long; then the session ends with WEFT_TIMEOUT. 0: as step_timeout_ns,
	 * which is a limit in any case: 0 */
	uint64_t stall_timeout_ns;
	int keep_state; /* arrays for the optimizer's state, for weft_tensor_state: 0 */
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
	/* Not SYNC: a push is dropped, by all lanes or by none, when so many times the number of
	 * trainers pushes of others came to the first sparse lane after its rows were read there,
	 * and counted with pushes_lost. Where that is 1 or more, and there are several sparse
	 * lanes, a step takes a round trip more; 0: none: 0 */
	double sparse_discard_ratio;
	/* The same on all trainers: WEFT_DENSE_SYNC. In the other modes every push is a step of the
	 * optimizer, and WEFT_REDUCE_MEAN divides by the samples of this trainer alone. */
	enum weft_dense_mode dense_mode;
	/* BOUNDED: the answer to a step comes when the slowest trainer has pushed at most so many
	 * steps fewer. 0 is the same as WEFT_DENSE_SYNC: 0 */
	uint32_t dense_staleness;
	/* ASYNC, BOUNDED: a pushed slice is not applied when so many times the number of trainers,
	 * rounded down, pushes of others were applied to it after the values that this trainer has
	 * were read. It is answered all the same, with fresh values, and counted
	 * (weft_session_stats). Where that comes to 0 all are applied: 0 */
	double dense_discard_ratio;
	/* LOCAL, ELASTIC: steps of a trainer from one exchange to the next, at least 1; else 0. A
	 * push is then applied by the call, in the caller's thread, to the parameter array; from a
	 * step with an exchange the gradient array comes back changed. The mean is taken by
	 * samples; with WEFT_REDUCE_SUM the steps of all trainers are added up. State of the
	 * optimizer is each trainer's own, and weft_state_count is 0. weft_pull gives the center:
	 * steps since the last exchange are lost, but in the mean their samples still weigh: 0 */
	uint32_t local_steps;
	/* ELASTIC: the part of their distance by which a trainer and the center move in an
	 * exchange, above 0, at most 1; 0 stands for 0.9 / num_gradient_servers. With more than 1 /
	 * num_gradient_servers the center overshoots the trainers' mean: 0 */
	double elastic_rate;
	/* Settings of RDMA devices, "device=mlx5_0,retry=5"; keys and values: docs of the option
	 * --verbs of weft train. "": as is best: "" */
	const char *verbs;

	/* Log lines, without newline, from any thread of the session. NULL: warnings to stderr. */
	void (*log)(void *arg, enum weft_log_level level, const char *line);
	void *log_arg;

	/* Asked by the thread that waits: no more often than every 20 ms, and at least every
	 * 120 ms. Not 0: the call gives up waiting and returns WEFT_AGAIN; what it waited for goes
	 * on. weft_wait, weft_wait_all and weft_rows_wait may be called again; after weft_exchange
	 * and weft_pull these two go on; after any other call only weft_session_close and
	 * weft_session_abort are left. It may call no function of the session. NULL: waits are not
	 * interrupted: NULL */
	int (*interrupted)(void *arg);
	void *interrupted_arg;

	/* The same on all trainers, like the next: WEFT_WIRE_F32. In another format a session has
	 * half as much memory again for gradients and values on their way: shared memory too reads
	 * gradients from there, not from the caller's arrays. */
	enum weft_dense_wire dense_wire;
	enum weft_rounding dense_rounding; /* of gradients, in 16 bits: WEFT_ROUND_NEAREST */
	/* Of WEFT_ROUND_STOCHASTIC. Trainers that share a seed still round independently of each
	 * other. Default: 0. */
	uint64_t rounding_seed;

	/* 1: the arrays of tensors and the values of rows (weft/sparse.h) stay mapped where they
	 * are, with what is in them, after the session is gone: for languages whose arrays outlive
	 * what they were taken from. They are the process's then; munmap gives them back: 0 */
	int keep_arrays;

	/* What was set by name, which wins over the fields above; borrowed for the call. The struct
	 * does not grow any more: settings that come with later versions are reached here. NULL:
	 * nothing: NULL */
	const struct weft_settings *settings;
};

struct weft_tensor_opts {
	const char *name;       /* unique in the job; 1..127 printable characters without spaces */
	uint64_t rows;          /* >= 1 */
	uint64_t cols;          /* >= 1; 0 stands for 1 */
	double rate_multiplier; /* of the learning rate; 0 stands for 1 */
	double decay;           /* L2; 0 stands for the job's; negative: none */
	double clip;            /* 0 stands for the job's; negative: none */
	int is_static;          /* never pushed nor updated */
	double l1;              /* 0 stands for the job's; negative: none */
	/* Another mode than the session's for this tensor. Not of a static one, nor with
	 * WEFT_DENSE_LOCAL or _ELASTIC, clip_norm or average_window. A step is over when all its
	 * tensors are answered: beside a synchronous tensor nobody is more than one step ahead, but
	 * one of these is answered, and of use, before the slowest trainer has come: 0 */
	enum weft_tensor_mode mode;
	uint32_t staleness;   /* of WEFT_TENSOR_BOUNDED; as dense_staleness: 0 */
	double discard_ratio; /* of a mode of its own; as dense_discard_ratio: 0 */
	/* Higher goes first where tensors wait for the same: slices to be pushed, for a slot or the
	 * network; answers at a pserver, for the network; room in its inbox. A push under way is
	 * not overtaken. Of use where a layer is waited for before others (weft_wait of the first
	 * while the rest is under way). All trainers give the same; no bit of a synchronous tensor
	 * depends on it: 0 */
	int32_t priority;
	/* 1: only reduced: a push is answered with the sum of all trainers' pushes of the step (or
	 * the mean: grad_reduce), in the parameter array, and nothing is applied. Exactly
	 * ((g0 + g1) + g2) + ... in f32, from the first trainer to the last of those that take part
	 * in the step, for the mean then divided, in f32, by the step's samples: the same bits
	 * everywhere. NaN and Inf pass, and end no job. It is synchronous beside other tensors of
	 * any mode; the lanes keep its last result and no state. weft_session_start makes trainer
	 * 0's array everybody's, as of any tensor; weft_pull gives the last result. Not with
	 * is_static, rate_multiplier, decay, clip, l1, mode, clip_norm, WEFT_DENSE_LOCAL, _ELASTIC,
	 * or a dense_wire of 16 bits: 0 */
	int is_reduced;
	/* What was set by name (WEFT_SETTINGS_TENSOR), as in weft_session_opts; the struct does not
	 * grow any more. NULL: nothing: NULL */
	const struct weft_settings *settings;
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
	uint64_t slices_answered;  /* pushes whose fresh values are here */
	uint64_t slices_discarded; /* of them, those that came too late: dense_discard_ratio */
	uint64_t slices_pulled;    /* pulls whose values are here; initial values too */
	uint64_t reconnects;       /* lanes that were lost and came back */

	/* WEFT_WIRE_F16, _BF16: elements of gradients that were finite, and too large for it */
	uint64_t gradients_overflowed;

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

/* What the lanes know of one trainer since the job began, added up over the lanes that are pushed
 * to. Times are measured by pservers with a stats_period; else they and what is counted with them
 * are 0. The first step of a pass is not counted. */
struct weft_trainer_stats {
	size_t struct_bytes; /* set by the caller: sizeof(struct weft_trainer_stats) */

	/* Synchronous tensors: arrivals at a lane, on its clock. */
	uint64_t lane_steps;      /* steps of lanes in which arrivals were compared, */
	uint64_t apply_ns;        /* and from the last arrival to the end of these */
	uint64_t last;            /* of these, those in which this trainer came last, */
	uint64_t behind_next_ns;  /* so long after the one before it, together, */
	uint64_t behind_first_ns; /* and after the first */
	uint64_t split_steps;     /* its steps of lanes with the next two: */
	uint64_t compute_ns;      /* between answers and pushes, on its own clock; and the rest, */
	uint64_t network_ns;      /* on the way and whatever kept it */

	/* Asynchronous and bounded ones: slices that it pushed. */
	uint64_t slices_applied, slices_discarded;
	uint64_t lag_sum, lag_max; /* of all these: dense_discard_ratio */
};

/* The library's version, "0.1.0". */
WEFT_API const char *weft_version(void);

/* What settings are of. */
enum weft_settings_kind {
	WEFT_SETTINGS_SESSION = 0, /* weft_session_opts */
	WEFT_SETTINGS_TENSOR = 1,  /* weft_tensor_opts: all but its name, rows and cols */
	WEFT_SETTINGS_TABLE = 2,   /* weft_table_opts: all but its name and dim */
};

/**
 * Settings by name, as texts, for programs that read them from somewhere, and for settings that
 * have no field in the struct of their kind. Names are those of its fields, without "_ns" at their
 * end ("spin", "connect_timeout"), "optimizer" for its method, and those that the original has
 * ("adam_beta1"). Values are as on command lines: "20ms", "64KiB", "1e-3", "true", and the last
 * words of an enum ("mean", "bounded"; "session" for WEFT_TENSOR_AS_SESSION).
 * Thread: one at a time. Settings may be used for any number of sessions, tensors or tables.
 * @param kind what they are of
 * @param out  written on WEFT_OK: every setting at its default; ends with weft_settings_destroy
 * @return WEFT_OK; WEFT_INVALID: there is no such kind; WEFT_NOMEM
 */
WEFT_API enum weft_status weft_settings_create(enum weft_settings_kind kind,
					       struct weft_settings **out) WEFT_MUST_CHECK;

/**
 * Set one. What two settings rule together is checked by weft_session_open, weft_tensor_add and
 * weft_table_add.
 * @param value copied; NULL: not set any more, the struct's field counts
 * @return WEFT_OK; WEFT_INVALID: there is no such setting (the text has the nearest name), or it
 *         cannot have that value (and which it can); nothing has changed then; WEFT_NOMEM
 */
WEFT_API enum weft_status weft_settings_set(struct weft_settings *settings, const char *name,
					    const char *value) WEFT_MUST_CHECK;

/**
 * The value of one as a text: what was set, else the default.
 * @param out   [bytes]; a longer text is cut
 * @param bytes > 0
 * @return WEFT_OK; WEFT_INVALID: there is no such setting
 */
WEFT_API enum weft_status weft_settings_get(const struct weft_settings *settings, const char *name,
					    char *out, size_t bytes) WEFT_MUST_CHECK;

/* The name of each setting of a kind, for idx from 0; NULL behind the last one, and of a kind that
 * there is not. It belongs to the library. */
WEFT_API const char *weft_settings_name(enum weft_settings_kind kind, unsigned idx);

/* Accepts NULL. Sessions, tensors and tables that were made with them go on. */
WEFT_API void weft_settings_destroy(struct weft_settings *settings);

/* Fill in every default named above. In C and C++ the name is a macro, which says how large the
 * caller's struct is: a library whose struct is larger writes no byte beyond that. The function of
 * this name, for languages without macros, writes as much as the library's struct has. */
WEFT_API void weft_session_opts_init(struct weft_session_opts *opts);
WEFT_API void weft_session_opts_init_sized(struct weft_session_opts *opts, size_t struct_bytes);
#define weft_session_opts_init(opts) weft_session_opts_init_sized((opts), sizeof(*(opts)))

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
 * Connect to every lane of every pserver, agree on the job, and distribute the initial values:
 * trainer 0's parameter arrays. On return the arrays of this trainer hold them. Other trainers may
 * still be on their way: what waits for them is the first step, or weft_barrier. Blocks.
 * @return WEFT_OK; WEFT_TIMEOUT: who was not there within connect_timeout_ns, with the last error;
 *         WEFT_MISMATCH, WEFT_REFUSED: what differs, both values; WEFT_ABORTED: the first cause
 */
WEFT_API enum weft_status weft_session_start(struct weft_session *session) WEFT_MUST_CHECK;

/**
 * Begin the next step: this trainer's share of it has `samples` samples. Never blocks.
 * @param samples >= 1
 * @param cost    summed over the samples; told to the pservers, and nothing depends on it
 * @return WEFT_OK; WEFT_AGAIN: a push of the last step is unanswered, wait for it first;
 *         WEFT_INVALID: no samples, or a tensor of the last step was not pushed (it is named);
 *         WEFT_ABORTED: the first cause
 */
WEFT_API enum weft_status weft_step(struct weft_session *session, uint64_t samples,
				    double cost) WEFT_MUST_CHECK;

/**
 * Hand in the gradient of one tensor for the step begun last. Never blocks. Push in any order;
 * every tensor that is not static is pushed exactly once in each step. Pushing one tensor, waiting
 * for it, and only then pushing the next is allowed only if all trainers push in the same order:
 * waiting in opposite orders on two trainers blocks both, and the wait says so after two seconds.
 * With clip_norm all tensors are pushed before the first wait.
 * @return WEFT_OK; WEFT_INVALID: static, no step begun, or pushed already in this step;
 *         WEFT_DATA: with local_steps, the gradient is not finite: the job is over;
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

/* 64-bit digest over every byte of the parameter arrays, tensors in order of their names; with a
 * dense_wire of 16 bits: of the rounded values that trainers compute with. */
WEFT_API enum weft_status weft_digest(struct weft_session *session, uint64_t *out) WEFT_MUST_CHECK;

/**
 * The optimizer's state, for saving and restoring a job. With `keep_state` in the options each
 * tensor that is neither static nor reduced has weft_state_count arrays of its own size beside its
 * parameters, from seal to close (momentum: m; adam: m, v; with average_window three more behind
 * them).
 */
WEFT_API uint32_t weft_state_count(const struct weft_session *session);
/* NULL before seal, without keep_state, for a static or reduced tensor, or beyond the count. */
WEFT_API float *weft_tensor_state(struct weft_tensor *tensor, uint32_t idx);

/**
 * A tensor's values as the pservers have them, in f32, for saving: as of the last weft_pull_state.
 * With WEFT_WIRE_F32 that is weft_tensor_param itself.
 * @return [weft_tensor_count]; NULL before seal, or with 16 bits and without keep_state
 */
WEFT_API float *weft_tensor_exact(struct weft_tensor *tensor);

/**
 * Fetch current parameters and state of every tensor into their arrays, as they are after the last
 * step of the last pass (call it between weft_pass_end and the next weft_step). Needs keep_state.
 * @return as weft_wait; WEFT_INVALID: without keep_state, or while a push is unanswered
 */
WEFT_API enum weft_status weft_pull_state(struct weft_session *session) WEFT_MUST_CHECK;

/**
 * The average of a tensor's values after each of the last steps, as average_window says, for tests
 * and for saving; as of the last weft_pull_state. Of a static or reduced tensor, and before the
 * first step, its values. With average_window the last three arrays of state are what it is
 * computed from.
 * @param out [weft_tensor_count]
 * @return WEFT_OK; WEFT_INVALID: without average_window, or no weft_pull_state has ended well
 */
WEFT_API enum weft_status weft_tensor_average(struct weft_tensor *tensor,
					      float *out) WEFT_MUST_CHECK;

/**
 * Trainer 0, between weft_session_seal and weft_session_start: the parameter and state arrays are
 * those of a job that had applied `step` steps over `samples` samples; go on from there. Other
 * trainers need not call it: they learn the step at start, and weft_steps tells it. Needs
 * keep_state where the optimizer has state and step > 0.
 * Each table is given back with weft_table_write (weft/sparse.h), once the session has started.
 * @return WEFT_OK; WEFT_INVALID: not trainer 0, not sealed, or started already
 */
WEFT_API enum weft_status weft_session_restore(struct weft_session *session, uint64_t step,
					       uint64_t samples) WEFT_MUST_CHECK;

/* Steps begun so far; 0 before the first. After weft_pass_end the same on every trainer. With
 * local_steps: exchanges, one at the end of a pass included. */
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
 * Ask the lanes what they know of a trainer. Blocks until they have answered; best after
 * weft_pass_end, when nobody is in the middle of a step.
 * @param trainer_id below num_gradient_servers; any trainer may ask for any
 * @param out        struct_bytes is read, the rest written on WEFT_OK
 * @return WEFT_OK; WEFT_INVALID: struct_bytes is not what this version of the library has, or there
 *         is no such trainer; WEFT_AGAIN: interrupted; else why the session has failed
 */
WEFT_API enum weft_status weft_trainer_stats(struct weft_session *session, uint32_t trainer_id,
					     struct weft_trainer_stats *out) WEFT_MUST_CHECK;

/**
 * Say GOODBYE to every lane, wait for the answers (at most reconnect_timeout_ns), free everything.
 * Accepts NULL and a session in any state.
 * A session in the middle of a step, or of a call that was interrupted and that others wait in,
 * ends the job for everybody, for they would wait for it.
 * @return WEFT_OK; else why the job did not end in good order; WEFT_LOST also where only the
 *         acknowledgement of a finished job is missing. The session is gone either way.
 */
WEFT_API enum weft_status weft_session_close(struct weft_session *session);

/* End the job for everybody: `reason` is shown by all members as the first cause. Then free. */
WEFT_API void weft_session_abort(struct weft_session *session, enum weft_status status,
				 const char *reason);

/**
 * A signal has stopped the program: end the job for everybody. All members show "trainer 1 (host
 * nodea, pid 12) was stopped by SIGTERM" as the first cause. Calls that wait, and all later ones,
 * are WEFT_ABORTED; the session is still to be closed. With WEFT_PROGRESS_THREAD the others hear it
 * at once. With WEFT_PROGRESS_CALLER they hear it when the owner next moves the session's bytes, in
 * weft_poll say, for nobody else may: a program that dies of the signal before that is to the
 * others a trainer that was lost. weft_session_close after it says so, too, in the place of
 * GOODBYE. The only function of a session that any thread may call, and a signal handler: it never
 * blocks, and keeps errno. It must not run at the same time as weft_session_close or
 * weft_session_abort.
 * @param session       NULL: nothing happens
 * @param signal_number what stopped it, SIGTERM say
 */
WEFT_API void weft_session_stop(struct weft_session *session, int signal_number);

#ifdef __cplusplus
}
#endif
#endif
