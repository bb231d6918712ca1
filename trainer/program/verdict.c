/* SPDX-License-Identifier: Apache-2.0 */
/* verdict: the last line of a run: the quality of a model with tables (measure.c), beside that of
 * counting, or of a simpler model, on the same split. Thread: the run's. */
#include <stdio.h>

#include "trainer/models/word_counts.h"
#include "trainer/program/job.h"

#define LINE_BYTES 256
#define BASELINE_RATE 0.1 /* chosen as the model's own settings: data/README.md */

/* Why words are not counted, although that is wanted; NULL: they are. */
static const char *
why_not_counted(const struct wf_run *job)
{
	if (job->data.set[0].is_streamed) {
		return "the data is larger than memory";
	}
	if (job->opts->test_list != NULL && job->opts->test_list[0] != '\0') {
		return "the test rows are in files of their own";
	}
	return job->data.split != WF_SPLIT_ROWS && job->opts->session.num_gradient_servers > 1
		       ? "trainers have files of their own"
		       : NULL;
}

static enum weft_status
conclude_words(struct wf_run *job)
{
	const double perplexity = wf_exp_f64(job->figures.test);
	const bool is_wanted = !job->opts->validate && job->opts->baseline;
	const char *why = why_not_counted(job);
	struct wf_word_counts counts;
	char line[LINE_BYTES];

	if (is_wanted && why != NULL) {
		wf_log(job->env, WF_LOG_INFO, "the baseline is left out: %s", why);
	}
	if (!is_wanted || why != NULL) {
		snprintf(line, sizeof(line), "perplexity %.4f", perplexity);
		return job->sink->line(job->sink->arg, line);
	}
	enum weft_status st = wf_word_counts_solve(job->env, &job->data.source->words, &counts);
	if (st != WEFT_OK) {
		return st;
	}
	snprintf(line, sizeof(line), "perplexity %.4f unigram %.4f bigram %.4f", perplexity,
		 counts.unigram, counts.bigram);
	return job->sink->line(job->sink->arg, line);
}

/* The lines of the passes of a baseline are for nobody. */
static enum weft_status
drop_line(void *arg, const char *line)
{
	(void)arg;
	(void)line;
	return WEFT_OK;
}

/* The same data, passes and trainers, in this process: without embedding and hidden layers the
 * model is logistic regression. */
static enum weft_status
train_baseline(const struct wf_run *job, double *out)
{
	struct wf_train_opts opts = *job->opts;
	const struct wf_train_sink sink = {.line = drop_line};
	struct wf_run baseline;

	opts.embedding = 0;
	opts.hidden = "";
	opts.session.optimizer.method = "adagrad";
	opts.sparse_optimizer = "adagrad";
	opts.sparse_l21 = 0.0;
	opts.dense_equivalent = false;
	opts.sparse_wire = "f32";
	opts.sparse_rest = "f32";
	opts.session.optimizer.learning_rate = BASELINE_RATE;
	opts.sparse_learning_rate = BASELINE_RATE;
	opts.sequential = true;
	opts.session.dense_mode = WEFT_DENSE_SYNC;
	opts.tensor_modes = "";
	opts.session.dense_wire = WEFT_WIRE_F32;
	opts.session.dense_rounding = WEFT_ROUND_NEAREST;
	opts.session.sparse_mode = WEFT_SPARSE_SYNC;
	opts.staleness = 0;
	opts.session.trainer_id = 0;
	opts.seed = job->seed;
	opts.baseline = false;
	opts.log_period = 0;
	opts.dot_period = 0;
	opts.test_period = 0;
	opts.save_dir = NULL;
	opts.init_model_path = NULL;
	opts.start_pass = 0;
	opts.start_batch = 0;
	opts.saving_period_by_batches = 0;
	opts.save_on_term = false;
	opts.time_limit_ns = 0;
	enum weft_status st = wf_run_init(&baseline, &opts, job->env, &sink);
	if (st == WEFT_OK) {
		st = wf_run_run_sequential(&baseline);
	}
	*out = baseline.figures.auc;
	wf_run_fini(&baseline);
	return st;
}

/* Why there is no baseline, although one is wanted; NULL: there is. It would read a streamed set
 * once more in each of its passes, and cannot read what only other trainers have. */
static const char *
why_not(const struct wf_run *job)
{
	for (uint32_t i = 0; i < job->data.set_count; i++) {
		if (job->data.set[i].is_streamed) {
			return "the data is larger than memory";
		}
	}
	return job->data.split == WF_SPLIT_MINE && !job->is_sequential &&
			       job->opts->session.num_gradient_servers > 1
		       ? "other trainers have data of their own"
		       : NULL;
}

static enum weft_status
conclude_classes(struct wf_run *job)
{
	const bool is_logistic = job->opts->embedding == 0 && job->model.layer_count <= 1;
	const char *why = why_not(job);
	double logistic = 0.0;
	char line[LINE_BYTES];

	if (!is_logistic && job->opts->baseline && why != NULL) {
		wf_log(job->env, WF_LOG_INFO, "the baseline is left out: %s", why);
	}
	if (is_logistic || !job->opts->baseline || why != NULL) {
		snprintf(line, sizeof(line), "auc %.4f", job->figures.auc);
		return job->sink->line(job->sink->arg, line);
	}
	enum weft_status st = train_baseline(job, &logistic);
	if (st != WEFT_OK) {
		return st;
	}
	snprintf(line, sizeof(line), "auc %.4f logistic regression %.4f", job->figures.auc,
		 logistic);
	return job->sink->line(job->sink->arg, line);
}

enum weft_status
wf_run_conclude(struct wf_run *job)
{
	switch (job->data.source->kind) {
	case WF_SOURCE_WORDS:
		return conclude_words(job);
	case WF_SOURCE_BAGS:
		return conclude_classes(job);
	case WF_SOURCE_DATASET:
		break;
	}
	return WEFT_OK;
}
