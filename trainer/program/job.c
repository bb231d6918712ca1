/* SPDX-License-Identifier: Apache-2.0 */
/* Setting up and taking down a run, and its lines. Thread: the run's. */
#include "trainer/program/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "trainer/program/saving.h"

#define LINE_BYTES 160

static enum weft_status
check_members(const struct wf_train_opts *opts)
{
	if (opts->num_gradient_servers < 1 || opts->num_gradient_servers > UINT32_MAX) {
		return wf_fail(WEFT_INVALID,
			       "num_gradient_servers=%" PRIu64 ": has to be 1..%u (the number of "
			       "trainers)",
			       opts->num_gradient_servers, UINT32_MAX);
	}
	if (opts->trainer_id >= opts->num_gradient_servers) {
		return wf_fail(WEFT_INVALID,
			       "trainer_id=%" PRIu64
			       ": has to be less than num_gradient_servers=%" PRIu64
			       ", the number of trainers",
			       opts->trainer_id, opts->num_gradient_servers);
	}
	if ((opts->sequential || opts->local) && opts->trainer_id > 0) {
		return wf_fail(WEFT_INVALID,
			       "trainer_id=%" PRIu64
			       " with sequential or local: one process plays all "
			       "trainers; leave trainer_id out",
			       opts->trainer_id);
	}
	if (opts->trainer_count < 1 || opts->trainer_count > WF_COMPUTE_THREADS_MAX) {
		return wf_fail(WEFT_INVALID,
			       "trainer_count=%" PRIu64 ": has to be 1..%u (compute threads of one "
			       "trainer)",
			       opts->trainer_count, WF_COMPUTE_THREADS_MAX);
	}
	if (opts->slice_bytes < 64 || opts->slice_bytes % 64 != 0) {
		return wf_fail(WEFT_INVALID,
			       "slice_bytes=%" PRIu64 ": has to be a multiple of 64, and not 0",
			       opts->slice_bytes);
	}
	return WEFT_OK;
}

static enum weft_status
check_gone(const struct wf_train_opts *opts)
{
	if (opts->use_gpu) {
		return wf_fail(WEFT_INVALID, "use_gpu=True: weft computes on CPUs only; leave the "
					     "option out, or give use_gpu=False");
	}
	if (opts->rdma_tcp != NULL && strcmp(opts->rdma_tcp, "rdma") == 0) {
		return wf_fail(WEFT_INVALID,
			       "rdma_tcp=rdma: RDMA is asked for with transport=verbs, or auto; "
			       "give rdma_tcp=tcp with it, or leave the option out");
	}
	return WEFT_OK;
}

static enum weft_status
take_optimizer(struct wf_run *job)
{
	const struct wf_train_opts *opts = job->opts;
	struct wf_optimizer_opts *optimizer = &job->optimizer;

	*optimizer = wf_optimizer_defaults();
	enum weft_status st = wf_optimizer_parse(opts->optimizer, &optimizer->kind);
	if (st == WEFT_OK) {
		st = wf_schedule_parse(opts->learning_rate_schedule, &optimizer->schedule);
	}
	if (st != WEFT_OK) {
		return st;
	}
	optimizer->learning_rate = opts->learning_rate;
	optimizer->momentum = opts->momentum;
	optimizer->beta1 = opts->adam_beta1;
	optimizer->beta2 = opts->adam_beta2;
	optimizer->epsilon = optimizer->kind == WF_ADAGRAD ? opts->ada_epsilon : opts->adam_epsilon;
	optimizer->decay = opts->l2;
	optimizer->clip = opts->gradient_clipping_threshold;
	optimizer->schedule_a = opts->learning_rate_decay_a;
	optimizer->schedule_b = opts->learning_rate_decay_b;
	return wf_optimizer_check(optimizer);
}

static enum weft_status
read_data(struct wf_run *job)
{
	char path[WF_DATA_PATH_BYTES];
	const char *file = job->opts->data;

	if (file == NULL || file[0] == '\0') {
		enum weft_status st = wf_data_find(job->kind->data_file, path);
		if (st != WEFT_OK) {
			return st;
		}
		file = path;
	}
	return job->kind->read(job->env, file, &job->dataset);
}

/* The largest batch is trainer 0's: its shard is never smaller than another's. */
static enum weft_status
take_batch_memory(struct wf_run *job)
{
	struct wf_shard shard;
	enum weft_status st = wf_run_shard(job, 0, &shard);
	if (st != WEFT_OK) {
		return st;
	}
	job->batch_rows = shard.batch_rows;
	wf_shard_fini(job->env, &shard);
	job->x = wf_zalloc_array(job->env, job->batch_rows * job->dataset.features, sizeof(float));
	job->y = wf_zalloc_array(job->env, job->batch_rows, sizeof(float));
	if (job->x == NULL || job->y == NULL) {
		return wf_fail(WEFT_NOMEM, "a batch of %zu rows", job->batch_rows);
	}
	return WEFT_OK;
}

static enum weft_status
make_model(struct wf_run *job)
{
	const struct wf_model_opts model_opts = {
		.features = job->dataset.features,
		.classes = job->dataset.classes,
		.hidden = job->opts->hidden == NULL ? job->kind->hidden : job->opts->hidden,
		.kernels = job->kernels,
	};
	enum weft_status st = job->kind->init(&model_opts, &job->model);
	if (st != WEFT_OK) {
		return st;
	}
	st = take_batch_memory(job);
	if (st != WEFT_OK) {
		return st;
	}
	unsigned threads = (unsigned)job->opts->trainer_count;
	bool has_progress_thread =
		!job->is_sequential && strcmp(job->opts->progress, "thread") == 0;
	st = wf_pin_create(job->env, job->opts->pin, threads + has_progress_thread, &job->pin);
	if (st != WEFT_OK) {
		return st;
	}
	return wf_compute_create(job->env,
				 &(struct wf_compute_opts){.model = &job->model,
							   .thread_count = threads,
							   .batch_rows = job->batch_rows,
							   .pin = job->pin},
				 &job->compute);
}

enum weft_status
wf_run_init(struct wf_run *job, const struct wf_train_opts *opts, struct wf_env *env,
	    const struct wf_train_sink *sink)
{
	*job = (struct wf_run){
		.opts = opts,
		.sink = sink,
		.env = env,
		.kernels = wf_kernels_best(),
		.is_mean = strcmp(opts->grad_reduce, "mean") == 0,
		.is_skipping = strcmp(opts->nonfinite, "skip") == 0,
		.is_sequential = opts->sequential || opts->local,
		.seed = opts->seed,
	};
	enum weft_status st = wf_kind_by_name(opts->model, &job->kind);
	if (st == WEFT_OK) {
		st = check_gone(opts);
	}
	if (st == WEFT_OK) {
		st = check_members(opts);
	}
	if (st == WEFT_OK) {
		st = take_optimizer(job);
	}
	if (st == WEFT_OK) {
		st = read_data(job);
	}
	if (st == WEFT_OK && !opts->closed_form) {
		st = wf_run_check_saving(job);
	}
	if (st == WEFT_OK && !opts->closed_form) {
		st = make_model(job);
	}
	if (st == WEFT_OK && job->seed == 0) {
		job->seed = wf_random(env) | 1;
		wf_log(env, WF_LOG_INFO, "seed %" PRIu64 " (drawn)", job->seed);
	}
	return st;
}

void
wf_run_fini(struct wf_run *job)
{
	wf_compute_destroy(job->compute);
	wf_pin_destroy(job->pin);
	wf_free(job->env, job->y, job->batch_rows * sizeof(float));
	wf_free(job->env, job->x, job->batch_rows * job->dataset.features * sizeof(float));
	wf_dataset_fini(job->env, &job->dataset);
}

enum weft_status
wf_run_shard(const struct wf_run *job, uint32_t trainer, struct wf_shard *out)
{
	return wf_shard_init(job->env,
			     &(struct wf_shard_opts){
				     .dataset = &job->dataset,
				     .trainer = trainer,
				     .trainers = (uint32_t)job->opts->num_gradient_servers,
				     .batch_size = job->opts->batch_size,
			     },
			     out);
}

uint64_t
wf_run_gradient(struct wf_run *job, const struct wf_shard *shard, const float *const *param,
		float *const *grad, double *cost)
{
	const struct wf_batch batch = {
		.x = job->x,
		.y = job->y,
		.rows = wf_shard_gather(shard, job->batch, job->x, job->y),
	};
	*cost = wf_compute_gradient(job->compute, &batch, param, grad);
	return batch.rows;
}

void
wf_run_batch_done(struct wf_run *job, const struct wf_tally *tally, const float *const *param,
		  bool is_reporter)
{
	const struct wf_train_opts *opts = job->opts;

	job->batch++;
	if (opts->dot_period != 0 && job->batch % opts->dot_period == 0 && job->sink->dot != NULL) {
		job->sink->dot(job->sink->arg);
	}
	if (opts->log_period != 0 && job->batch % opts->log_period == 0) {
		wf_log(job->env, WF_LOG_INFO, "pass %" PRIu64 " batch %" PRIu64 " cost %.8g",
		       job->pass, job->batch, tally->cost / tally->samples);
	}
	if (is_reporter && opts->test_period != 0 && job->batch % opts->test_period == 0) {
		wf_log(job->env, WF_LOG_INFO, "pass %" PRIu64 " batch %" PRIu64 " test %.8g",
		       job->pass, job->batch, wf_compute_test(job->compute, &job->dataset, param));
	}
}

/* A NaN's sign depends on how it came about: it is not shown. */
static double
unsigned_nan(double value)
{
	return value != value ? __builtin_nan("") : value;
}

enum weft_status
wf_run_report(struct wf_run *job, const struct wf_tally *tally, const float *const *param,
	      uint64_t digest)
{
	char line[LINE_BYTES];
	double test = wf_compute_test(job->compute, &job->dataset, param);

	WF_ASSERT(tally->samples > 0.0);
	snprintf(line, sizeof(line), "pass %" PRIu64 " cost %.8g test %.8g digest %016" PRIx64,
		 job->pass, unsigned_nan(tally->cost / tally->samples), unsigned_nan(test), digest);
	return job->sink->line(job->sink->arg, line);
}
