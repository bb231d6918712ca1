/* SPDX-License-Identifier: Apache-2.0 */
/* train: one training run of a built-in model, either as one trainer of a job (over libweft) or
 * sequentially, with every trainer's part played in turn and no fabric at all. Both end with the
 * same bits.
 *
 * Thread: the caller's. With trainer_count 1 no thread is started here; with progress "caller" the
 * session starts none either, so that a simulated process can call this. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"
#include "base/settings.h"

/* Settings. command.h fills them from a command line; texts are lent for the run. */
struct wf_train_opts {
	const char *model; /* "linear", "mlp", "ngram", "ctr" */
	/* Files as of wf_files_list; NULL or "": what comes with weft. */
	const char *data;
	const char *train_list; /* the original's word for it */
	const char *test_list;  /* to test on; NULL or "": a fifth of the data */
	const char *data_split; /* "rows", "files", "mine"; NULL: rows */
	uint64_t data_window;   /* bytes of text; 0: the defaults of set.h */
	const char *format;     /* of the files */
	const char *target;     /* csv: name of the target's column; NULL or "": the last one */
	const char *scale;      /* csv: "none", "range"; NULL: none */
	const char *hidden;
	uint64_t embedding;     /* width of a table's rows; ctr 0: wide part only */
	uint64_t vocabulary;    /* ngram: words of the vocabulary */
	const char *dictionary; /* ngram: a file of all of them; NULL or "": they are counted */
	const char *nearest;    /* ngram: words whose neighbours are printed; NULL: some */
	bool validate;          /* test on a part of the training rows */
	bool baseline;          /* print the baselines of models with tables */

	uint64_t num_passes;
	uint64_t log_period;  /* batches; 0: never */
	uint64_t dot_period;  /* batches; 0: never */
	uint64_t test_period; /* batches; 0: at the end of each pass only */
	uint64_t seed;        /* 0: drawn */
	uint64_t batch_size;  /* rows of one trainer; 0: all */

	const char *learning_method;      /* the original's word for optimizer; NULL: not given */
	double adam_epsilon, ada_epsilon; /* one of which the optimizer uses */

	/* Of tables' rows; momentum, betas, epsilons, schedule and clipping are those above. */
	const char *sparse_optimizer;
	double sparse_learning_rate;
	double sparse_l1, sparse_l2, sparse_l21;
	double sparse_decay;
	double rmsprop_rho, ftrl_beta;
	const char *sparse_rest; /* "f32", "bf16", "f16" */
	const char *sparse_wire; /* likewise */
	bool dense_equivalent;
	uint64_t admit_count;
	double admit_probability;
	uint64_t evict_age; /* steps; 0: never */
	double evict_score; /* 0: never */
	double evict_show_weight, evict_click_weight, evict_fade;
	uint64_t evict_fade_steps;
	bool evict_at_cap;
	uint64_t table_memory; /* bytes of one table on one lane; 0: no cap */

	const char *tensor_modes; /* of single ones; NULL or "": none */
	bool is_async;            /* the original's word for both */
	uint64_t staleness;
	double async_lagged_grad_discard_ratio;

	const char *save_dir;              /* NULL or "": nothing is saved */
	uint64_t saving_period;            /* passes; 0: never */
	uint64_t saving_period_by_batches; /* batches in a pass; 0: only at its end */
	uint64_t start_pass;    /* continue after the saved pass before this one; 0: begin */
	uint64_t start_batch;   /* continue in the middle of start_pass; 0: at its beginning */
	uint64_t time_limit_ns; /* from the start of the run; 0: none */
	const char *job_name;   /* NULL or "": none */
	bool save_on_term;
	bool leave_on_term;
	uint64_t term_grace_ns;
	const char *init_model_path;                 /* NULL or "": none */
	const char *load_missing_parameter_strategy; /* "fail", "rand", "zero"; NULL: fail */
	bool save_only_one;

	uint64_t trainer_count; /* compute threads */
	/* Of the session, as far as they are options; pin is of the compute threads, too. */
	union {
		struct weft_session_opts session;
		struct wf_session_values values; /* the same, with what has no field there */
	};

	bool sequential;
	bool local; /* the original's word for it */
	bool closed_form;
	bool use_gpu;

	/* The original's, without effect. */
	const char *rdma_tcp, *nics, *comment;
	bool small_messages, use_old_updater;
	uint64_t parallel_thread_num, sock_send_buf_size, sock_recv_buf_size;
};

/* Callbacks for a thread that may stop the session of a job (weft_session_stop). All mandatory. */
struct wf_train_watch {
	void (*begins)(struct weft_session *session); /* before the first wait */
	void (*ends)(void); /* in any case: the session must not be used after it */
	void (*over)(enum weft_status status);
	/* From now on a SIGTERM does not stop the run at once, but after `grace_ns`. */
	void (*postpone)(uint64_t grace_ns);
	bool (*is_stopping)(void); /* a SIGTERM came since then */
	void (*stop)(void);        /* what it postponed: stop the session now */
};

struct wf_train_sink {
	/* A result line, without newline. A status other than WEFT_OK ends the run with it. */
	enum weft_status (*line)(void *arg, const char *line);
	void (*dot)(void *arg);             /* every dot_period batches; NULL: none wanted */
	const struct wf_train_watch *watch; /* NULL: none */
	/* Becomes true if the time limit has ended the run; NULL: nobody asks. */
	bool *is_out_of_time;
	void *arg;
};

/**
 * Trains, and passes trainer 0's result lines to the sink:
 *     pass 0 cost 12.34 test 15.6 digest 9f86d081884c7d65
 * and after the last pass of a model with tables its quality beside that of its baselines:
 *     nearest whale: fish 0.71 ship 0.66 boat 0.62 animal 0.60 shark 0.58
 *     perplexity 110.1234 unigram 200.6290 bigram 125.7091
 *     auc 0.7812 logistic regression 0.7801
 * Passes count from 0. Blocks until the last pass is over.
 * @return WEFT_OK; WEFT_INVALID: option, value, remedy; WEFT_DATA: data file, saved model, or
 *         gradients that are not finite; WEFT_IO also if training has finished but a pass could
 *         not be saved; otherwise the status of the session (weft.h). wf_fail records the details
 */
enum weft_status wf_train_run(const struct wf_train_opts *opts, struct wf_env *env,
			      const struct wf_train_sink *sink) WEFT_MUST_CHECK;
