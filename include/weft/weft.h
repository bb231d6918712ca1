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
 * Thread: one at a time, whichever: a call orders what earlier callers did before it. One beside
 * another thread's, or in a child of fork, is refused (WEFT_INVALID). weft_session_stop alone may
 * be called at any time; weft_rows_free does nothing there, and what else returns no status is not
 * checked. No thread may begin a call once weft_session_close or weft_session_abort has begun. With
 * WEFT_PROGRESS_THREAD data is transferred inside the calls that wait, and between them by a thread
 * that the session owns. With WEFT_PROGRESS_CALLER there is no such thread: data is transferred
 * only inside the calls that wait (weft_wait*, weft_exchange, weft_pull*, weft_barrier,
 * weft_reduce, weft_pass_end) and in weft_poll. Between those calls such a caller may be away for
 * as long as it likes; the other trainers then wait for it.
 *
 * In a child of fork the arrays are private: the child reads and writes them as its own memory, and
 * the parent does not see it. What the child has not written shows the parent's values of the
 * moment; a child that is to have those of the fork copies them before.
 *
 * No call waits for ever. Each ends in success or in a status whose text (weft_last_error) names
 * the peer, what was waited for, and why it did not arrive. */
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
	WEFT_PROGRESS_THREAD = 0, /* the session has a progress thread */
	WEFT_PROGRESS_CALLER = 1, /* progress happens inside the calls that wait */
};

/* When the pushed gradients of tensors are applied. */
enum weft_dense_mode {
	WEFT_DENSE_SYNC = 0, /* when all trainers have pushed the step; the bits are reproducible */
	WEFT_DENSE_ASYNC = 1,   /* each slice by itself as it arrives; nobody waits */
	WEFT_DENSE_BOUNDED = 2, /* as ASYNC, but a trainer that is ahead waits for the slowest */
	/* Each trainer steps by itself with its own gradients. After local_steps of its steps, and
	 * at the end of a pass, the parameters of all trainers are averaged. Only for sessions
	 * without tables. */
	WEFT_DENSE_LOCAL = 3,
	/* As LOCAL, but each trainer keeps its own parameters, and an exchange only moves trainer
	 * and a common center towards each other (EASGD). At the end of a pass every trainer
	 * continues from the center. */
	WEFT_DENSE_ELASTIC = 4,
};

/* The mode of a single tensor. */
enum weft_tensor_mode {
	WEFT_TENSOR_AS_SESSION = 0, /* the session's dense_mode */
	WEFT_TENSOR_SYNC = 1,       /* as WEFT_DENSE_SYNC */
	WEFT_TENSOR_ASYNC = 2,      /* as WEFT_DENSE_ASYNC */
	WEFT_TENSOR_BOUNDED = 3,    /* as WEFT_DENSE_BOUNDED */
};

/* When the pushed gradients of tables are applied; for tensors see enum weft_dense_mode. */
enum weft_sparse_mode {
	WEFT_SPARSE_SYNC = 0,    /* when all trainers have pushed the step; reproducible bits */
	WEFT_SPARSE_ASYNC = 1,   /* on each lane by itself as they arrive; nobody waits */
	WEFT_SPARSE_BOUNDED = 2, /* as ASYNC, but a trainer that is ahead waits for the slowest */
};

/* The format in which gradients and values of tensors travel. A 16-bit format halves the bytes in
 * each direction. Both are then rounded once: a gradient as it leaves the trainer (see
 * weft_rounding), a value as it leaves the lane, to nearest, ties to even. Lanes widen gradients to
 * f32, and sum and apply them in f32; parameters and optimizer state stay f32 there. All trainers
 * therefore compute with the same rounded values, while updates that are too small to change a
 * rounded value still accumulate on the lane (weft_tensor_exact). */
enum weft_dense_wire {
	WEFT_WIRE_F32 = 0,
	WEFT_WIRE_BF16 = 1, /* the range of f32, 8 bits of precision */
	/* 11 bits of precision, up to 65,504. A larger gradient becomes infinite, is handled as
	 * skip_nonfinite says, and is counted (weft_session_stats). A larger value ends the job. */
	WEFT_WIRE_F16 = 2,
};

enum weft_rounding {
	WEFT_ROUND_NEAREST = 0, /* ties to even */
	/* Up or down at random, so that the expected value is the gradient itself and small
	 * gradients beside large ones are not lost. Each element of each step draws from its own
	 * random numbers, derived from rounding_seed. It costs almost a nanosecond per element. */
	WEFT_ROUND_STOCHASTIC = 1,
};

enum weft_grad_reduce {
	WEFT_REDUCE_SUM = 0,  /* gradients are summed over trainers, as in the original */
	WEFT_REDUCE_MEAN = 1, /* the sum is divided by the step's exact number of samples */
};

/* The type of the elements of an array that weft_all_reduce sums. */
enum weft_type {
	WEFT_TYPE_F32 = 0,
	WEFT_TYPE_F64 = 1,
	WEFT_TYPE_BF16 = 2, /* the upper half of an f32 */
	WEFT_TYPE_F16 = 3,  /* IEEE binary16 */
	WEFT_TYPE_I32 = 4,  /* integers have two's complement, and wrap */
	WEFT_TYPE_I64 = 5,
};

enum weft_log_level {
	WEFT_LOG_DEBUG = 0,
	WEFT_LOG_INFO = 1,
	WEFT_LOG_WARN = 2,
	WEFT_LOG_ERROR = 3,
};

/* The pservers' optimizer; the same on all trainers of a job. Formulas: kernels/formulas.md. */
struct weft_optimizer_opts {
	/* "sgd", "torch_sgd", "momentum", "torch_momentum", "nesterov", "adagrad",
	 * "decayed_adagrad", "rmsprop", "adadelta", "adam", "torch_adam", "adamw", "torch_adamw",
	 * "adamax". Default: "sgd". */
	const char *method;
	double learning_rate; /* at least 0. Default: 0.001. */
	/* momentum, torch_momentum, torch_sgd, nesterov: [0, 1). Default: 0. */
	double momentum;
	double beta1, beta2; /* adam, adamw, adamax and torch's: [0, 1). Defaults: 0.9, 0.999. */
	/* Above 0. In adam, adamw and adamax it is added to the root of the second mean as it is,
	 * in torch_adam and torch_adamw to that of the mean corrected for bias, as PyTorch has it.
	 * The other methods add it inside the root, where 1e-6 is usual. Default: 1e-8. */
	double epsilon;
	double decay; /* L2 of tensors that set none; decoupled in the adamws; >= 0. Default: 0. */
	double clip;  /* gradients are clipped to [-clip, clip]; 0 turns it off. Default: 0. */
	/* "constant", "linear", "warmup", "poly", "caffe_poly", "exp", "discexp", "manual",
	 * "pass_manual". Default: "constant". */
	const char *schedule;
	/* Parameters of the schedules other than constant, manual and pass_manual. Default: 0. */
	double schedule_a, schedule_b;
	/* For manual and pass_manual: "1000:1.0,2000:0.5" multiplies learning_rate by 1.0 up to
	 * 1,000 samples (or passes), then by 0.5; at most 32 pairs. NULL stands for "". */
	const char *schedule_args;
	/* For pass_manual: the number of passes before this session's first. Default: 0. */
	uint64_t first_pass;
	double rho; /* decayed_adagrad, rmsprop, adadelta: [0, 1). Default: 0.95. */
	double l1;  /* of tensors that set none; >= 0. Default: 0. */
	/* Above 0, the pservers keep averages of all values over the last steps, for
	 * weft_tensor_average. The value is the share of all steps that an average covers, 0.001 to
	 * 1. Only with WEFT_DENSE_SYNC; rows of tables have no averages. Default: 0. */
	double average_window;
	uint64_t max_average_window; /* the most steps in an average; 0: no limit. Default: 0. */
	/* Above 0, the whole reduced gradient of a step (all tensors that are not static, together)
	 * is scaled down to this norm if it is longer, before anything else is done with it. This
	 * takes one more round trip, and no push is answered before all have arrived. Rows of
	 * tables are not included. Only with WEFT_DENSE_SYNC. Default: 0. */
	double clip_norm;
};

#define WEFT_SPIN_AUTO UINT64_MAX

struct weft_session_opts {
	/* The size of the caller's struct, set by weft_session_opts_init. If it is smaller than the
	 * library's, the caller was built with an older header, and the fields that it lacks keep
	 * their defaults. If it is larger, everything behind the library's fields must be 0. */
	size_t struct_bytes;

	/* The job; the same on every trainer. */

	/* A comma-separated list of host, host:port or [v6]:port. The order matters. */
	const char *pservers;
	uint16_t port;      /* of pservers that name none. Default: 7164. */
	uint32_t ports_num; /* dense lanes of each pserver, on consecutive ports. Default: 1. */
	/* Sparse lanes of each pserver, on the ports after those (weft/sparse.h). Default: 0. */
	uint32_t ports_num_for_sparse;
	uint32_t num_gradient_servers;     /* the number of trainers. Default: 1. */
	enum weft_grad_reduce grad_reduce; /* Default: WEFT_REDUCE_SUM. */
	/* 0: a NaN or Inf in a gradient ends the job. 1: such elements are skipped. Default: 0. */
	int skip_nonfinite;
	uint64_t slice_bytes; /* tensors are cut into slices; a multiple of 64. Default: 262,144. */
	struct weft_optimizer_opts optimizer;
	/* What else must be the same on all trainers for the results to be right, as words that the
	 * program chooses: "seed=1 batch_size=32 data=9f86d081884c7d65". At most 255 printable
	 * characters, with single blanks between words; for something long, such as data, use a
	 * digest. A trainer whose words differ from those of the first trainer that has any is
	 * refused with WEFT_MISMATCH, and the text shows the first word that differs, with both
	 * values. With "" nothing is compared. Default: "". */
	const char *compared;

	/* This trainer. */

	uint32_t trainer_id; /* 0 .. num_gradient_servers - 1, unique in the job */
	/* "auto": shared memory with each pserver on this host, RDMA with the others if both ends
	 * have it, otherwise TCP. "tcp": TCP only. "shm", "verbs" (RDMA): only that; if it cannot
	 * be used the session ends with WEFT_MISMATCH, or with WEFT_UNAVAILABLE if there is no RDMA
	 * device. Default: "auto". */
	const char *transport;
	enum weft_progress progress; /* Default: WEFT_PROGRESS_THREAD. */
	/* Places progress thread and arrays: "auto", "off", or a list of CPUs. Default: "off". */
	const char *pin;
	/* How long a wait polls before it sleeps, up to 1 s; 0 sleeps at once. WEFT_SPIN_AUTO polls
	 * for as long as recent waits make it worthwhile, up to 100 us, if there are CPUs for it.
	 * Default: WEFT_SPIN_AUTO. */
	uint64_t spin_ns;
	uint64_t connect_timeout_ns;   /* until every lane has answered once. Default: 300 s. */
	uint64_t reconnect_timeout_ns; /* until a lost lane must be back. Default: 3 s. */
	/* How long a host (not a process) may be silent; at least 1 ms. Default: 10 s. */
	uint64_t peer_timeout_ns;
	/* The longest wait for a step, pull or reduce. 0 means no limit. Default: 1,800 s. */
	uint64_t step_timeout_ns;
	/* How long to wait for a pserver whose process does not run (stopped, swapped out,
	 * starved). Meanwhile the log names it; after that the session ends with WEFT_TIMEOUT.
	 * step_timeout_ns limits the wait as well; 0 stands for it. Default: 0. */
	uint64_t stall_timeout_ns;
	int keep_state; /* 1: allocate arrays for weft_tensor_state. Default: 0. */
	/* What the bits of this trainer's results depend on (BLAS, threads). If trainers differ
	 * here, that is only a warning. */
	const char *numerics;
	/* How often, and at the end, a line at WEFT_LOG_INFO reports what this trainer did. With 0
	 * there is no such line, and weft_session_stats has no times. Default: 0. */
	uint64_t stats_period_ns;
	/* Congestion control of the TCP sockets, for example "cubic". If it is not available to
	 * this host or user, weft_session_start fails with a list of those that are. "" keeps the
	 * system's. Default: "". */
	const char *tcp_congestion;
	enum weft_sparse_mode
		sparse_mode; /* the same on all trainers. Default: WEFT_SPARSE_SYNC. */
	/* For BOUNDED: the most steps that the slowest trainer may be behind when a step ends.
	 * Default: 0. */
	uint32_t sparse_staleness;
	/* Not with SYNC. A push is dropped, by all lanes or by none, and counted as pushes_lost, if
	 * its lag reaches this value times the number of trainers (rounded down). Its lag is the
	 * number of pushes of others that have arrived at the first sparse lane since its rows were
	 * read. If the product is 1 or more and there are several sparse lanes, a step takes one
	 * more round trip. 0 drops nothing. Default: 0. */
	double sparse_discard_ratio;
	/* The same on all trainers. In all modes but SYNC each push is a step of the optimizer by
	 * itself, and WEFT_REDUCE_MEAN divides by this trainer's samples alone. Default:
	 * WEFT_DENSE_SYNC. */
	enum weft_dense_mode dense_mode;
	/* For BOUNDED: a step is answered when the slowest trainer is at most this many steps
	 * behind. 0 is the same as WEFT_DENSE_SYNC. Default: 0. */
	uint32_t dense_staleness;
	/* For ASYNC and BOUNDED: a slice is not applied if its lag reaches this value times the
	 * number of trainers (rounded down). Its lag is the number of pushes of others that have
	 * been applied to it since this trainer's values were read. It is answered with fresh
	 * values all the same, and counted (weft_session_stats). If the product is 0 every slice is
	 * applied. Default: 0. */
	double dense_discard_ratio;
	/* For LOCAL and ELASTIC: the number of steps of a trainer between two exchanges, at least
	 * 1; in other modes 0. weft_push then applies the gradient to the parameter array itself,
	 * in the caller's thread; a step with an exchange changes the gradient array.
	 * WEFT_REDUCE_MEAN weighs trainers by samples; with WEFT_REDUCE_SUM the steps of all
	 * trainers are added. Each trainer has its own optimizer state, and weft_state_count is 0.
	 * weft_pull fetches the center: steps since the last exchange are lost, but their samples
	 * still count in the mean. Default: 0. */
	uint32_t local_steps;
	/* For ELASTIC: the share of their distance by which a trainer and the center move towards
	 * each other in an exchange, above 0 and at most 1; 0 stands for 0.9 /
	 * num_gradient_servers. Above 1 / num_gradient_servers the center overshoots the trainers'
	 * mean. Default: 0. */
	double elastic_rate;
	/* Settings of RDMA devices, "device=mlx5_0,retry=5"; the keys are those of the option
	 * --verbs of weft train. "" leaves the choice to the library. Default: "". */
	const char *verbs;

	/* Receives log lines, without a newline, from any thread of the session, whose calls are
	 * refused in it. NULL: warnings go to stderr. */
	void (*log)(void *arg, enum weft_log_level level, const char *line);
	void *log_arg;

	/* Called by the thread that waits, at most every 20 ms and at least every 120 ms. If it
	 * returns anything but 0, the call stops waiting and returns WEFT_AGAIN, while the
	 * operation continues. weft_wait, weft_wait_all and weft_rows_wait may be called again;
	 * after weft_exchange and weft_pull call weft_wait or weft_wait_all; after any other call
	 * only weft_session_close and weft_session_abort are allowed. In the callback all
	 * calls of the session are refused. NULL: waits are not interrupted. Default: NULL. */
	int (*interrupted)(void *arg);
	void *interrupted_arg;

	/* The same on all trainers, as is dense_rounding. In a 16-bit format a session uses half as
	 * much memory again, for gradients and values on their way; shared memory too then reads
	 * gradients from there and not from the caller's arrays. Default: WEFT_WIRE_F32. */
	enum weft_dense_wire dense_wire;
	/* How gradients are rounded to 16 bits. Default: WEFT_ROUND_NEAREST. */
	enum weft_rounding dense_rounding;
	/* The seed of WEFT_ROUND_STOCHASTIC. Trainers that share a seed still round independently
	 * of each other. Default: 0. */
	uint64_t rounding_seed;

	/* 1: the arrays of tensors and the values of rows (weft/sparse.h) stay mapped, with their
	 * contents, after the session has ended; for languages whose arrays outlive the object they
	 * came from. They then belong to the process, and munmap frees them. Default: 0. */
	int keep_arrays;

	/* Settings that were set by name; they win over the fields above, and are borrowed for the
	 * call. This struct does not grow any more: settings of later versions are reached this
	 * way. NULL: none. Default: NULL. */
	const struct weft_settings *settings;
};

struct weft_tensor_opts {
	const char *name;       /* unique in the job; 1..127 printable characters without spaces */
	uint64_t rows;          /* at least 1 */
	uint64_t cols;          /* at least 1; 0 stands for 1 */
	double rate_multiplier; /* multiplies the learning rate; 0 stands for 1 */
	double decay;           /* L2; 0 stands for the job's; negative: none */
	double clip;            /* 0 stands for the job's; negative: none */
	int is_static;          /* 1: never pushed nor updated */
	double l1;              /* 0 stands for the job's; negative: none */
	/* A mode of its own, other than the session's. Not for a static tensor, nor with
	 * WEFT_DENSE_LOCAL or _ELASTIC, clip_norm or average_window. A step is over when all its
	 * tensors are answered. So beside a synchronous tensor no trainer gets more than one step
	 * ahead, but an asynchronous one is answered, and can be used, before the slowest trainer
	 * has arrived. Default: WEFT_TENSOR_AS_SESSION. */
	enum weft_tensor_mode mode;
	uint32_t staleness;   /* for WEFT_TENSOR_BOUNDED; see dense_staleness. Default: 0. */
	double discard_ratio; /* with a mode of its own; see dense_discard_ratio. Default: 0. */
	/* Where tensors wait for the same thing, the higher priority goes first: slices to be
	 * pushed, for a slot or the network; answers of a pserver, for the network; room in its
	 * inbox. A push that has begun is not overtaken. Useful if one layer is needed before the
	 * others (weft_wait of the first while the rest is under way). The same on all trainers; it
	 * changes no bit of a synchronous tensor. Default: 0. */
	int32_t priority;
	/* 1: the tensor is only reduced. A push is answered with the sum (or mean: grad_reduce) of
	 * all trainers' pushes of the step, in the parameter array, and no optimizer runs. The sum
	 * is exactly ((g0 + g1) + g2) + ... in f32, over the trainers that take part in the step in
	 * the order of their numbers; for the mean it is then divided, in f32, by the step's
	 * samples. The bits are the same everywhere. NaN and Inf are passed on and end no job. The
	 * tensor is synchronous whatever the mode of the others; the lanes keep its last result and
	 * no state. weft_session_start distributes trainer 0's array, as for any tensor; weft_pull
	 * fetches the last result. Not with is_static, rate_multiplier, decay, clip, l1, mode,
	 * clip_norm, WEFT_DENSE_LOCAL, _ELASTIC, or a dense_wire of 16 bits. Default: 0. */
	int is_reduced;
	/* Settings that were set by name (WEFT_SETTINGS_TENSOR), as in weft_session_opts. This
	 * struct does not grow any more. What has no field: `shape`, the tensor's dimensions for
	 * saved passes and exports, such as "4,3,3,3" or "7", or "()" for a scalar; at most 32, of
	 * rows * cols elements; "": rows and cols. `in_place` (0, 1): a reduced tensor's answer
	 * comes into its gradient, which is its parameter array. Default: NULL, none. */
	const struct weft_settings *settings;
};

/* What a session has done since weft_session_start, summed over all lanes. */
struct weft_session_stats {
	size_t struct_bytes; /* set by the caller: sizeof(struct weft_session_stats) */

	/* Everything that its connections carried, as the transport counts it, heads included. */
	uint64_t sent_bytes, received_bytes;
	uint64_t messages_sent, messages_received;
	/* The part of these bytes that was carried by a path faster than TCP. */
	uint64_t fast_sent_bytes, fast_received_bytes;
	uint64_t paths_broken;             /* such paths that broke while their peer stayed */
	uint64_t puts_sent, puts_received; /* slices: gradients and initial values; answers */

	uint64_t steps;            /* begun by this trainer */
	uint64_t slices_pushed;    /* and initial values; after a reconnect perhaps counted twice */
	uint64_t slices_answered;  /* pushes whose fresh values have arrived */
	uint64_t slices_discarded; /* answered pushes that came too late: dense_discard_ratio */
	uint64_t slices_pulled;    /* pulls whose values have arrived; initial values too */
	uint64_t reconnects;       /* lanes that were lost and came back */

	/* WEFT_WIRE_F16, _BF16: finite elements of gradients that were too large for the format. */
	uint64_t gradients_overflowed;

	/* Waits by reason. */
	uint64_t waits_slot; /* a lane's window was full and more was to be pushed */
	uint64_t waits_post; /* the transport accepted only a part of what was posted */

	/* Where the thread that drives progress spent its time, in nanoseconds; the three add up to
	 * all of it. 0 unless stats_period_ns is above 0. */
	uint64_t poll_time_ns; /* transferring data and bookkeeping */
	uint64_t idle_time_ns; /* asleep, or polling without events */
	uint64_t away_time_ns; /* WEFT_PROGRESS_CALLER: outside the calls that wait */

	/* Percentiles of the time from the first push or pull to the last answer of those that
	 * were under way together, mostly a step. Nanoseconds, at most 1.6 % too high; 0 unless
	 * stats_period_ns is above 0. */
	uint64_t exchange_p50_ns, exchange_p99_ns;
};

/* What the lanes know about one trainer since the job began, summed over the lanes that receive
 * pushes. Times are measured only by pservers with a stats_period; otherwise they, and what is
 * counted with them, are 0. The first step of a pass is not counted. */
struct weft_trainer_stats {
	size_t struct_bytes; /* set by the caller: sizeof(struct weft_trainer_stats) */

	/* Synchronous tensors: arrivals at a lane, on the lane's clock. */
	uint64_t lane_steps;      /* steps of lanes in which arrivals were compared */
	uint64_t apply_ns;        /* from the last arrival to the end of those steps */
	uint64_t last;            /* those in which this trainer arrived last */
	uint64_t behind_next_ns;  /* how long after the trainer before it, in total */
	uint64_t behind_first_ns; /* how long after the first trainer, in total */
	uint64_t split_steps;     /* steps of lanes that the next two fields cover */
	uint64_t compute_ns;      /* between answers and pushes, on the trainer's clock */
	uint64_t network_ns;      /* the rest: on the network, and whatever delayed it */

	/* Asynchronous and bounded tensors: slices that it pushed. */
	uint64_t slices_applied, slices_discarded;
	uint64_t lag_sum, lag_max; /* of all these slices; see dense_discard_ratio */
};

/* The library's version, "0.1.0". */
WEFT_API const char *weft_version(void);

/* Which struct a set of settings belongs to. */
enum weft_settings_kind {
	WEFT_SETTINGS_SESSION = 0, /* weft_session_opts */
	WEFT_SETTINGS_TENSOR = 1,  /* weft_tensor_opts: also shape, in_place; no name, rows, cols */
	WEFT_SETTINGS_TABLE = 2,   /* weft_table_opts: all but its name and dim */
};

/**
 * Create a set of settings by name, as texts: for programs that read settings from somewhere, and
 * for settings that have no field in the struct of their kind. Names are those of the fields,
 * without "_ns" at the end ("spin", "connect_timeout"), "optimizer" for its method, and the
 * original's names ("adam_beta1"). Values are written as on command lines: "20ms", "64KiB", "1e-3",
 * "true", and for an enum the last word of its constants ("mean", "bounded"; "session" for
 * WEFT_TENSOR_AS_SESSION).
 * Thread: one at a time. Settings may be used for any number of sessions, tensors or tables.
 * @param kind which struct they belong to
 * @param out  written on WEFT_OK, with every setting at its default; ends with
 *             weft_settings_destroy
 * @return WEFT_OK; WEFT_INVALID: there is no such kind; WEFT_NOMEM
 */
WEFT_API enum weft_status weft_settings_create(enum weft_settings_kind kind,
					       struct weft_settings **out) WEFT_MUST_CHECK;

/**
 * Set one setting. Rules between settings are checked by weft_session_open, weft_tensor_add and
 * weft_table_add.
 * @param value copied; NULL: unset it, so that the struct's field counts again
 * @return WEFT_OK; WEFT_INVALID: there is no such setting (the text names the nearest), or it
 *         cannot have that value (the text says which it can), and nothing has changed; WEFT_NOMEM
 */
WEFT_API enum weft_status weft_settings_set(struct weft_settings *settings, const char *name,
					    const char *value) WEFT_MUST_CHECK;

/**
 * Set trainer_id, num_gradient_servers, pservers and port to what the launcher of this process says
 * in the environment, as far as they were not set before: torchrun, Open MPI, Slurm, Volcano,
 * PaddlePaddle's jobs, indexed jobs of Kubernetes. `weft env` shows what that is. Of several
 * launchers the innermost one counts. Without a launcher nothing is set.
 * @param settings of a session
 * @return WEFT_OK; WEFT_INVALID: they are of another kind, or a value is not allowed (the text
 *         names variable and value); WEFT_NOMEM
 */
WEFT_API enum weft_status
weft_settings_set_by_launcher(struct weft_settings *settings) WEFT_MUST_CHECK;

/**
 * Get the value of one setting as a text: what was set, otherwise the default.
 * @param out   [bytes]; a longer text is cut
 * @param bytes above 0
 * @return WEFT_OK; WEFT_INVALID: there is no such setting
 */
WEFT_API enum weft_status weft_settings_get(const struct weft_settings *settings, const char *name,
					    char *out, size_t bytes) WEFT_MUST_CHECK;

/* The names of all settings of a kind, for idx from 0; NULL after the last one, and for a kind that
 * does not exist. The text belongs to the library. */
WEFT_API const char *weft_settings_name(enum weft_settings_kind kind, unsigned idx);

/* Accepts NULL. Sessions, tensors and tables that were made with them are not affected. */
WEFT_API void weft_settings_destroy(struct weft_settings *settings);

/* Fill in every default named above. In C and C++ the name is a macro that passes the size of the
 * caller's struct, so that a library whose struct is larger writes nothing beyond it. The function
 * of this name, for languages without macros, writes as much as the library's struct has. */
WEFT_API void weft_session_opts_init(struct weft_session_opts *opts);
WEFT_API void weft_session_opts_init_sized(struct weft_session_opts *opts, size_t struct_bytes);
#define weft_session_opts_init(opts) weft_session_opts_init_sized((opts), sizeof(*(opts)))

/**
 * Check the options and create a session. It does not use the network yet. In a trainer that `weft
 * launch` started, the process is then named "trainer N" in the system's list of processes.
 * @param opts borrowed for the call; strings are copied
 * @param out  written on WEFT_OK; ends with weft_session_close or weft_session_abort
 * @return WEFT_OK; WEFT_INVALID: the text names option, value and remedy; WEFT_NOMEM
 */
WEFT_API enum weft_status weft_session_open(const struct weft_session_opts *opts,
					    struct weft_session **out) WEFT_MUST_CHECK;

/**
 * Declare a tensor (f32 [rows, cols], row-major). All trainers declare the same ones in the same
 * order, before weft_session_seal.
 * @param out written on WEFT_OK; belongs to the session
 * @return WEFT_OK; WEFT_INVALID: a bad or repeated name, a bad size, or the session is sealed;
 *         WEFT_NOMEM
 */
WEFT_API enum weft_status weft_tensor_add(struct weft_session *session,
					  const struct weft_tensor_opts *opts,
					  struct weft_tensor **out) WEFT_MUST_CHECK;

/**
 * End the declarations: place the tensors, and allocate their arrays, zeroed.
 * @return WEFT_OK; WEFT_INVALID: nothing is declared, or the session is sealed; WEFT_NOMEM
 */
WEFT_API enum weft_status weft_session_seal(struct weft_session *session) WEFT_MUST_CHECK;

/* The arrays of a tensor: rows * cols f32, 64-byte aligned, from weft_session_seal to
 * weft_session_close. NULL before; a static tensor has no gradient. While a push or pull of the
 * tensor is unanswered both arrays are lent to the library: do not write to them, and do not rely
 * on the contents of the parameters. */
WEFT_API float *weft_tensor_param(struct weft_tensor *tensor);
WEFT_API float *weft_tensor_grad(struct weft_tensor *tensor);
WEFT_API uint64_t weft_tensor_count(const struct weft_tensor *tensor); /* elements */
WEFT_API const char *weft_tensor_name(const struct weft_tensor *tensor);

/**
 * Connect to every lane of every pserver, agree on the job, and distribute the initial values,
 * which are trainer 0's parameter arrays. On return this trainer's arrays hold them. Other trainers
 * may not have arrived yet; the first step or weft_barrier waits for them. Blocks.
 * @return WEFT_OK; WEFT_TIMEOUT: the text names what did not answer within connect_timeout_ns, with
 *         the last error; WEFT_MISMATCH, WEFT_REFUSED: the text says what differs, with both
 *         values; WEFT_ABORTED: the text is the first cause
 */
WEFT_API enum weft_status weft_session_start(struct weft_session *session) WEFT_MUST_CHECK;

/**
 * Begin the next step; this trainer's share of it has `samples` samples. Never blocks.
 * @param samples at least 1
 * @param cost    summed over the samples; it may be sent to the pservers, and nothing depends on it
 * @return WEFT_OK; WEFT_AGAIN: a push of the last step is unanswered, wait for it first;
 *         WEFT_INVALID: no samples, or a tensor of the last step was not pushed (it is named);
 *         WEFT_ABORTED: the text is the first cause
 */
WEFT_API enum weft_status weft_step(struct weft_session *session, uint64_t samples,
				    double cost) WEFT_MUST_CHECK;

/**
 * Push the gradient of one tensor for the current step. Never blocks. Every tensor that is not
 * static is pushed exactly once in each step, in any order. To push one tensor, wait for it, and
 * only then push the next is allowed only if all trainers push in the same order: if two trainers
 * wait in opposite orders both are blocked, and the wait says so after two seconds. With clip_norm
 * push all tensors before the first wait.
 * @return WEFT_OK; WEFT_INVALID: the tensor is static, no step has begun, it has been pushed in
 *         this step, or its pull is unanswered; WEFT_DATA: with local_steps, the gradient is not
 *         finite, and the job is over; WEFT_ABORTED: the text is the first cause
 */
WEFT_API enum weft_status weft_push(struct weft_tensor *tensor) WEFT_MUST_CHECK;

/**
 * Wait until the push or pull of a tensor is answered. Its parameter array then holds the fresh
 * values, and both arrays are the caller's again. Returns at once if nothing is under way. Blocks.
 * @return WEFT_OK; WEFT_TIMEOUT: step_timeout_ns has passed; the text names what was waited for;
 *         WEFT_LOST, WEFT_ABORTED, WEFT_DATA: the job is over, and the text is the first cause
 */
WEFT_API enum weft_status weft_wait(struct weft_tensor *tensor) WEFT_MUST_CHECK;
WEFT_API enum weft_status weft_wait_all(struct weft_session *session) WEFT_MUST_CHECK;

/* weft_step, weft_push of every tensor in reverse order of declaration, weft_wait_all. */
WEFT_API enum weft_status weft_exchange(struct weft_session *session, uint64_t samples,
					double cost) WEFT_MUST_CHECK;

/**
 * Fetch the current values into the parameter array. Blocks until they have arrived.
 * @return as weft_wait; WEFT_INVALID: a push of the tensor is unanswered
 */
WEFT_API enum weft_status weft_pull(struct weft_tensor *tensor) WEFT_MUST_CHECK;
WEFT_API enum weft_status weft_pull_all(struct weft_session *session) WEFT_MUST_CHECK;

/**
 * End this trainer's pass. Trainers may end it after different numbers of steps; one that ends
 * early takes no part in the remaining steps of the others. Waits until every trainer has ended the
 * pass. On return all of them hold the same, newest values, and begin the next step together.
 * Blocks.
 * @return as weft_wait; WEFT_INVALID: a tensor of the last step was not pushed (it is named)
 */
WEFT_API enum weft_status weft_pass_end(struct weft_session *session) WEFT_MUST_CHECK;

/**
 * Sum small vectors over all trainers, in the order of their numbers, so that the bits are the same
 * everywhere. Every trainer makes the same calls in the same order. Blocks.
 * @param value in: this trainer's; out: the sum. [count], count <= 256; 0 is a barrier
 * @return as weft_wait; WEFT_INVALID: count is too large
 */
WEFT_API enum weft_status weft_reduce(struct weft_session *session, double *value,
				      uint32_t count) WEFT_MUST_CHECK;
WEFT_API enum weft_status weft_barrier(struct weft_session *session) WEFT_MUST_CHECK;

/**
 * Sum an array of any size over all trainers, in place, whether or not it was declared. The sum is
 * ((a0 + a1) + a2) + ... in the order of the trainers' numbers, each addition rounded to the type
 * (to nearest, ties to even) and integers wrapping, so that the bits are those of a sequential sum
 * and the same everywhere. NaN and Inf pass. The array travels through a ring of pieces on all
 * dense lanes, which the setting all_reduce_ring declares (weft_settings_set; the same on all
 * trainers; not with a dense_wire of 16 bits): its bytes are what may be under way at a time. Every
 * trainer makes the same calls in the same order; those that differ in size, type or operation end
 * the job, and the text names both trainers. Trainers that are out of data take part as the others
 * do, and a call may be made while pushes of tensors are under way. Blocks.
 * @param array in: this trainer's; out: the result. [count] of `type`, aligned for it
 * @param count elements; 0 moves nothing, and counts as a call
 * @param how   WEFT_REDUCE_SUM; WEFT_REDUCE_MEAN: the sum divided by the number of trainers, in
 *              f64 for f64 and in f32 for the others, then rounded to the type; not for integers
 * @return as weft_wait; WEFT_INVALID: all_reduce_ring is 0, or integers have no mean; after
 *         anything but WEFT_OK and WEFT_INVALID parts of the array may be summed already
 */
WEFT_API enum weft_status weft_all_reduce(struct weft_session *session, void *array, uint64_t count,
					  enum weft_type type,
					  enum weft_grad_reduce how) WEFT_MUST_CHECK;

/**
 * Change numbers of the optimizer for one tensor, from the next weft_step on: all of them or, if
 * one is refused, none. Never blocks. All trainers that take part in that step make the same
 * changes before it, in any order: a difference ends the job with WEFT_MISMATCH, and the text names
 * step, tensor, trainers and values. Nothing of it is saved with a pass. Only where all tensors are
 * synchronous, and not with local steps.
 * @param names  [count] as in struct weft_optimizer_opts: "learning_rate" (before the schedule and
 *               the tensor's rate_multiplier), "momentum", "beta1", "beta2", "rho", "epsilon",
 *               "decay", "clip", "l1"; of torch_sgd "dampening", "nesterov" (0 or 1); "updates":
 *               the steps that the optimizer has applied before the next one, for bias correction
 * @param values [count]; of a name that occurs again the last one counts
 * @return WEFT_OK; WEFT_INVALID: the session is not sealed, something is unanswered, the tensor is
 *         static or reduced, pushes of a tensor are applied as they arrive, the optimizer has no
 *         such number, or not this value; the text names it; WEFT_NOMEM; else why the job is over
 */
WEFT_API enum weft_status weft_tensor_change_numbers(struct weft_tensor *tensor,
						     const char *const *names, const double *values,
						     uint32_t count) WEFT_MUST_CHECK;
/* The same of one number. */
WEFT_API enum weft_status weft_tensor_change(struct weft_tensor *tensor, const char *name,
					     double value) WEFT_MUST_CHECK;

/**
 * Replace an array of a tensor in the next step: what trainer 0 pushes of it (the first trainer, if
 * 0 is out of data) becomes the array, bit by bit, and the optimizer applies nothing to the tensor.
 * The others push too, and it is not used. For the optimizer, and only for it, the step does not
 * count. All trainers call it, as weft_tensor_change. Not with 16 bits or average_window.
 * @param array 0: the values; 1 + i: array i of the state, as weft_tensor_state has it
 * @return as weft_tensor_change; WEFT_INVALID also if the optimizer has no such array
 */
WEFT_API enum weft_status weft_tensor_assign(struct weft_tensor *tensor,
					     uint32_t array) WEFT_MUST_CHECK;

/* Make what progress is possible without waiting. Useful with WEFT_PROGRESS_CALLER. */
WEFT_API enum weft_status weft_poll(struct weft_session *session) WEFT_MUST_CHECK;

/* Compute a 64-bit digest over every byte of the parameter arrays, tensors in the order of their
 * names; with a dense_wire of 16 bits, over the rounded values that trainers compute with. */
WEFT_API enum weft_status weft_digest(struct weft_session *session, uint64_t *out) WEFT_MUST_CHECK;

/**
 * The optimizer's state, for saving and restoring a job. With `keep_state` in the options each
 * tensor that is neither static nor reduced has weft_state_count arrays of its own size beside its
 * parameters, from seal to close (momentum: m; adam: m, v; average_window: three more at the end).
 */
WEFT_API uint32_t weft_state_count(const struct weft_session *session);
/* NULL before seal, without keep_state, for a static or reduced tensor, or beyond the count. */
WEFT_API float *weft_tensor_state(struct weft_tensor *tensor, uint32_t idx);

/**
 * A tensor's values as the pservers have them, in f32, for saving, as of the last weft_pull_state.
 * With WEFT_WIRE_F32 this is weft_tensor_param itself.
 * @return [weft_tensor_count]; NULL before seal, or with 16 bits and without keep_state
 */
WEFT_API float *weft_tensor_exact(struct weft_tensor *tensor);

/**
 * Fetch the current parameters and state of every tensor into their arrays, as they are after the
 * last step of the last pass. Call it between weft_pass_end and the next weft_step; in a
 * synchronous job between any two steps of a pass as well, for which weft_samples says more. Needs
 * keep_state.
 * @return as weft_wait; WEFT_INVALID: without keep_state, or while a push is unanswered
 */
WEFT_API enum weft_status weft_pull_state(struct weft_session *session) WEFT_MUST_CHECK;

/**
 * Compute the average of a tensor's values over the last steps, as average_window says, for testing
 * and saving; as of the last weft_pull_state. For a static or reduced tensor, and before the first
 * step, the average is its values. It is computed from the last three arrays of state.
 * @param out [weft_tensor_count]
 * @return WEFT_OK; WEFT_INVALID: without average_window, or before a successful weft_pull_state
 */
WEFT_API enum weft_status weft_tensor_average(struct weft_tensor *tensor,
					      float *out) WEFT_MUST_CHECK;

/**
 * Continue a saved job. Trainer 0 calls it between weft_session_seal and weft_session_start, when
 * the parameter and state arrays hold the values of a job that had applied `step` steps over
 * `samples` samples. The other trainers need not call it: they receive the step at the start, and
 * weft_steps returns it. Needs keep_state if the optimizer has state and step is above 0. Tables
 * are restored with weft_table_write (weft/sparse.h) once the session has started.
 * @return WEFT_OK; WEFT_INVALID: not trainer 0, or the session is not sealed, or has started
 */
WEFT_API enum weft_status weft_session_restore(struct weft_session *session, uint64_t step,
					       uint64_t samples) WEFT_MUST_CHECK;

/**
 * Save the values of all tensors and tables with the optimizer's state as a pass: a folder
 * `dir`/pass-00000 of the kind that `weft train --save_dir` writes. All trainers call it together,
 * between weft_pass_end and the next weft_step; trainer 0 writes, and nobody returns before it has.
 * The number of the pass is that of the passes which this session has ended, and of those before it
 * by weft_session_load or first_pass, less 1; a pass of that number is replaced. It appears whole
 * or not at all, and is on the disk at the return. Trainer 0 needs keep_state. Not with
 * local_steps, where each trainer has its own state. Blocks.
 * @param dir the folder of passes, which is created if its parent exists; used on trainer 0 alone
 * @return WEFT_OK; WEFT_INVALID: with local_steps, within a pass, or trainer 0 lacks keep_state;
 *         WEFT_IO, WEFT_UNAVAILABLE and others: trainer 0 could not save, where the text has the
 *         path and the reason, and the job can go on; otherwise as weft_wait
 */
WEFT_API enum weft_status weft_session_save(struct weft_session *session,
					    const char *dir) WEFT_MUST_CHECK;

/**
 * Continue the job of a saved pass: values, state and rows, steps and samples. All trainers call it
 * between weft_session_seal and weft_session_start. Trainer 0 reads, checks every byte, and fills
 * its arrays. The start distributes them, writes the rows, and returns everywhere when all of that
 * is done. Tensors and tables have to be those of the pass, by name, rows, cols and, where both
 * have one, shape, with the same optimizer. Trainer 0 needs keep_state. Blocks on the disk.
 * @param dir a saved pass, or a folder of passes, of which the last one counts, or a snapshot, of
 *            which docs/restart.md says what is not read; used on trainer 0 alone
 * @return WEFT_OK; WEFT_DATA: the file, tensor or table, and what differs or is damaged;
 *         WEFT_MISMATCH: the optimizer; WEFT_IO: file and reason; WEFT_INVALID: not between seal
 *         and start, with local_steps, or without keep_state; WEFT_NOMEM. After a failure arrays
 *         may have been written.
 */
WEFT_API enum weft_status weft_session_load(struct weft_session *session,
					    const char *dir) WEFT_MUST_CHECK;

/* The number of steps begun so far. After weft_pass_end it is the same on every trainer. With
 * local_steps it counts exchanges, including the one at the end of a pass. */
WEFT_API uint64_t weft_steps(const struct weft_session *session);

/**
 * Fetch the number of samples, of all trainers, in the steps up to weft_steps, those before
 * weft_session_restore included: what that has to be given by a job that continues here. In a
 * synchronous job no trainer's next step is applied while this trainer's part of it is missing, so
 * trainer 0 may save between any two of its steps: weft_pull_state, and this. Blocks until the
 * lanes have answered.
 * @return WEFT_OK; WEFT_INVALID: a step is under way, other trainers have gone on without this one,
 *         which is out of data, trainers have steps of their own (in a mode that is not
 *         synchronous), or no tensor is pushed; otherwise as weft_wait
 */
WEFT_API enum weft_status weft_samples(struct weft_session *session, uint64_t *out) WEFT_MUST_CHECK;

/**
 * Report what the session has done so far. Blocks for one turn of the progress thread, never for a
 * peer. May be called at any time before close, also after a failure.
 * @param out struct_bytes is read, the rest written on WEFT_OK; all 0 before weft_session_start
 * @return WEFT_OK; WEFT_INVALID: struct_bytes is not what this version of the library has
 */
WEFT_API enum weft_status weft_session_stats(struct weft_session *session,
					     struct weft_session_stats *out) WEFT_MUST_CHECK;

/**
 * Fetch what the lanes have counted about a trainer. Blocks until they have answered. Best called
 * after weft_pass_end, when no trainer is in the middle of a step.
 * @param trainer_id below num_gradient_servers; any trainer may ask about any
 * @param out        struct_bytes is read, the rest written on WEFT_OK
 * @return WEFT_OK; WEFT_INVALID: struct_bytes is not what this version of the library has, or there
 *         is no such trainer; WEFT_AGAIN: interrupted; otherwise why the session has failed
 */
WEFT_API enum weft_status weft_trainer_stats(struct weft_session *session, uint32_t trainer_id,
					     struct weft_trainer_stats *out) WEFT_MUST_CHECK;

/**
 * Send GOODBYE to every lane, wait for the answers (at most reconnect_timeout_ns), and free
 * everything. Accepts NULL and a session in any state. Closing in the middle of a step, or of an
 * interrupted call in which others wait, ends the job for all, which would wait for this trainer.
 * @return WEFT_OK; otherwise why the job did not end in good order. WEFT_LOST is also returned if
 *         only the acknowledgement of a finished job is missing. The session is gone in any case
 *         but WEFT_AGAIN: another thread is in a call of it, or this is a child of fork.
 */
WEFT_API enum weft_status weft_session_close(struct weft_session *session);

/* End the job for all members and free the session. All members show `reason` as the first cause.
 * Returns WEFT_OK, or WEFT_AGAIN as weft_session_close; weft_session_stop ends the other call. */
WEFT_API enum weft_status weft_session_abort(struct weft_session *session, enum weft_status status,
					     const char *reason);

/**
 * End the job for all members because a signal has stopped this program. All members show "trainer
 * 1 (host nodea, pid 12) was stopped by SIGTERM" as the first cause. Calls that have to wait return
 * WEFT_ABORTED, and so do later ones; the session still has to be closed. WEFT_PROGRESS_THREAD does
 * that at once, WEFT_PROGRESS_CALLER when the owner next makes progress: in weft_poll, close, or a
 * call that has to wait, and until then the others return WEFT_OK. If the program dies of the
 * signal before, the other members see a trainer that was lost. Any thread, and a signal handler,
 * may call it, but not beside close or abort: it never blocks, and preserves errno.
 * @param session       NULL: nothing happens
 * @param signal_number the signal, for example SIGTERM
 */
WEFT_API void weft_session_stop(struct weft_session *session, int signal_number);

#ifdef __cplusplus
}
#endif
#endif
