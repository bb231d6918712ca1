/* SPDX-License-Identifier: Apache-2.0 */
/* job: what the two ways of training share: data, model, compute threads, batches, and the lines
 * that a pass ends with. Private to trainer/program. Thread: the run's. */
#pragma once

#include "base/env.h"
#include "base/pin.h"
#include "kernels/kernels.h"
#include "kernels/rows.h"
#include "trainer/program/compute.h"
#include "trainer/program/feed.h"
#include "trainer/program/kind.h"
#include "trainer/program/train.h"

struct wf_auc_row;
struct wf_exam;
struct wf_saved_folder;

/* What follows from the options: terms.c. */
struct wf_run_terms {
	struct wf_optimizer_opts optimizer;
	struct weft_optimizer_opts session_optimizer; /* the same, for the session */
	struct wf_row_opts row_optimizer;  /* of a model with tables: that of their rows, */
	enum weft_value_format row_rest;   /* how these are kept, */
	enum weft_value_format row_wire;   /* and how they and their gradients travel */
	enum weft_value_format dense_wire; /* how gradients and values of tensors travel, */
	bool is_drawing;                   /* and that gradients are rounded by chance */
	bool is_mean;                      /* grad_reduce */
	bool is_skipping;                  /* nonfinite */
};

/* Memory for a batch: batches.c. */
struct wf_run_batches {
	size_t rows_max;                        /* of the largest batch of any trainer */
	size_t entries_max;                     /* the most that it can have; 0 without tables */
	float *entry_grad[WF_MODEL_TABLES_MAX]; /* [entries_max, width] of the batch computed */
	float *entry_click; /* [entries_max] likewise, for scores; NULL: there are none */
};

/* Where passes are saved, and which could not be: saving.c. */
struct wf_run_saving {
	/* Open and locked from the checks to the end; NULL: this process does not save there. */
	struct wf_saved_folder *folder;
	struct wf_saved_folder *average_folder;
	char words[40]; /* "words=COUNT,DIGEST" of a model whose rows are words: saving_words.h */
	uint64_t failures; /* saves that failed */
	bool is_last_lost; /* the last save failed */
	uint64_t first_unsaved_pass;
	struct wf_error first_failure;
};

/* The rows of a run, and whose they are: data.c. */
struct wf_run_data {
	enum wf_split split;
	struct wf_dictionary *dictionary; /* of --dictionary; NULL: words are counted */
	/* [set_count] this trainer's; in a sequential run, if they have sets of their own, all
	 * trainers'. */
	struct wf_set *set;
	uint32_t set_count;
	const struct wf_source *source; /* what is known of all rows of the first one */
	struct wf_set test_set;         /* of --test_list, */
	bool has_test_set;              /* if it is given and this process tests */
};

/* Whether the run ends at the next border between two steps: border.h. */
struct wf_run_border {
	uint64_t start_ns; /* of the run, for time_limit */
	enum wf_run_end {
		WF_RUN_GOES_ON,
		WF_RUN_IS_STOPPED,     /* by SIGTERM, with save_on_term */
		WF_RUN_IS_OUT_OF_TIME, /* time_limit */
		WF_RUN_IS_CUT,         /* another trainer has ended its pass for such a reason */
	} end;
	bool is_cutting; /* this trainer ends its pass early */
	uint64_t batch;  /* of the save of a pass that has ended early; 0: it has not */
};

/* What the last line of the run says of the model: verdict.c. */
struct wf_run_figures {
	double test; /* figure of the last pass's line */
	double auc;  /* measured at the end, where the model is a classifier with tables */
};

struct wf_run {
	const struct wf_train_opts *opts; /* lent for the run */
	const struct wf_train_sink *sink; /* lent for the run */
	struct wf_env *env;
	const struct wf_kind *kind;
	const struct wf_kernels *kernels;
	struct wf_run_terms terms;
	bool is_sequential;
	uint64_t seed;

	struct wf_run_data data;
	struct wf_model model;
	struct wf_pin *pin; /* places 0.. of the compute threads, then the progress thread's */
	struct wf_compute *compute;
	struct wf_run_batches batches;
	struct wf_exam *exam; /* what testing needs: exam.c */

	uint64_t first_pass,
		first_batch; /* where the run begins: those of the options, or resume.c's */
	uint64_t pass;       /* current, from 0 */
	uint64_t batch;      /* batches done in this pass */
	struct wf_run_border border;

	struct wf_run_figures figures;
	struct wf_run_saving saving;
};

/* Whether this process is trainer 0 or plays it: it alone tests, prints results and saves. */
static inline bool
wf_run_is_first(const struct wf_run *job)
{
	return job->is_sequential || job->opts->session.trainer_id == 0;
}

/* What a trainer has done in a pass. */
struct wf_tally {
	double cost; /* summed over the samples */
	double samples;
};

/* The current values of the model, for tests and digests. Lent for the call. */
struct wf_view {
	const float *const *param; /* one array per tensor */
	uint64_t digest; /* of these, as weft_digest has it; for the line of a pass only */
	/* The rows of `count` keys, out [count, width]; keys without a row give the values they
	 * would be born with. `count` is at most wf_run_lookup_max. */
	enum weft_status (*rows)(void *arg, unsigned table, const uint64_t *key, uint32_t count,
				 float *out);
	void *arg;
};

/* Checks the options, reads the data, creates model and threads. wf_run_fini ends the job whatever
 * it returns. */
enum weft_status wf_run_init(struct wf_run *job, const struct wf_train_opts *opts,
			     struct wf_env *env, const struct wf_train_sink *sink) WEFT_MUST_CHECK;
void wf_run_fini(struct wf_run *job);
/* Called after each batch: prints dots, log lines and tests as often as the periods require.
 * `is_reporter`: trainer 0. */
enum weft_status wf_run_batch_done(struct wf_run *job, const struct wf_tally *tally,
				   const struct wf_view *view, bool is_reporter) WEFT_MUST_CHECK;
/* The line of a pass, by trainer 0. */
enum weft_status wf_run_report(struct wf_run *job, const struct wf_tally *tally,
			       const struct wf_view *view) WEFT_MUST_CHECK;

/* terms.c. Checks the options against one another; WEFT_INVALID names those that do not go
 * together. */
enum weft_status wf_run_terms_read(struct wf_run *job) WEFT_MUST_CHECK;
/* Whether each step is one of all trainers. */
bool wf_run_is_sync(const struct wf_run *job);

/* data.c. Opens the sets that the options name. WEFT_INVALID: option, value, remedy; otherwise as
 * wf_set_open, with the trainer whose data it is. close accepts what is half open. */
enum weft_status wf_run_open_data(struct wf_run *job) WEFT_MUST_CHECK;
void wf_run_close_data(struct wf_run *job);
/* What a trainer has. */
const struct wf_set *wf_run_set_of(const struct wf_run *job, uint32_t trainer);
struct wf_shard_opts wf_run_shard(const struct wf_run *job, uint32_t trainer);

/* batches.c */
/* Allocates for the largest batch, once data and model are known. fini accepts what is half
 * initialised. */
enum weft_status wf_run_batches_init(struct wf_run *job) WEFT_MUST_CHECK;
void wf_run_batches_fini(struct wf_run *job);
/* Whether a thread reads streamed data while this one computes. */
bool wf_run_reads_ahead(const struct wf_run *job);
/* The batches of a trainer; ends with wf_feed_fini, also if this fails. */
enum weft_status wf_run_feed_init(const struct wf_run *job, uint32_t trainer,
				  struct wf_feed *out) WEFT_MUST_CHECK;
/* Memory for a batch of any trainer; ends with wf_bag_batch_fini. */
enum weft_status wf_run_batch_init(const struct wf_run *job,
				   struct wf_bag_batch *out) WEFT_MUST_CHECK;
/* batches.entry_click, where there are scores: 1 for each key of a row of the positive class, else
 * 0. */
void wf_run_fill_clicks(const struct wf_run *job, const struct wf_bag_batch *rows);

/* exam.c. The largest number of keys that a view is asked for at once. */
uint32_t wf_run_lookup_max(const struct wf_run *job);
enum weft_status wf_exam_create(struct wf_run *job, struct wf_exam **out) WEFT_MUST_CHECK;
void wf_exam_destroy(struct wf_run *job, struct wf_exam *exam); /* accepts NULL */
/* The rows that it is tested on. */
size_t wf_exam_rows(const struct wf_run *job);
/* The model's test figure, a mean over the test rows. `auc` [auc_max] receives score and class of
 * the first rows; NULL with 0. */
enum weft_status wf_exam_test(struct wf_run *job, const struct wf_view *view,
			      struct wf_auc_row *auc, size_t auc_max, double *out) WEFT_MUST_CHECK;
/* Over the dense tensors and, of a model with tables, over the rows of keys, tables in order of
 * their names, keys ascending: all keys that the data has, or, if that is streamed, those of the
 * first block of the test rows. */
enum weft_status wf_exam_digest(struct wf_run *job, const struct wf_view *view,
				uint64_t *out) WEFT_MUST_CHECK;

/* Called after the last pass, by trainer 0: the quality of the model beside its baselines.
 * measure.c evaluates the model while its rows can be pulled; verdict.c prints. */
enum weft_status wf_run_measure(struct wf_run *job, const struct wf_view *view) WEFT_MUST_CHECK;
enum weft_status wf_run_conclude(struct wf_run *job) WEFT_MUST_CHECK;

/* compared.c: words for what must be the same on all trainers besides what the session compares,
 * for weft_session_opts. `out` has WF_COMPARED_BYTES. WEFT_NOMEM. */
#define WF_COMPARED_BYTES 256u
enum weft_status wf_run_compared(const struct wf_run *job, char *out) WEFT_MUST_CHECK;
/* Says which file or column of this trainer a refusal for other data is about; "": that is not
 * known. false: data is not why. */
bool wf_run_explain_data(const struct wf_run *job, const char *refusal, char *out, size_t bytes);

/* sequential.c */
enum weft_status wf_run_run_sequential(struct wf_run *job) WEFT_MUST_CHECK;
/* fabric.c */
enum weft_status wf_run_run_fabric(struct wf_run *job) WEFT_MUST_CHECK;
