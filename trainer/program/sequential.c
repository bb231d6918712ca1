/* SPDX-License-Identifier: Apache-2.0 */
/* All trainers of a job played in turn by one thread, without a fabric: the oracle that distributed
 * runs are held against. It shares kernels and models with them, and nothing of session, wire or
 * pserver: gradients are summed in trainer order, slice by slice, and applied in the same pass.
 * Thread: the run's. */
#include "trainer/program/job.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/digest.h"
#include "kernels/average.h"
#include "kernels/norm.h"
#include "trainer/program/border.h"
#include "trainer/program/local_tables.h"
#include "trainer/program/rounded.h"
#include "trainer/program/saving.h"

struct member {
	struct wf_feed feed;
	float *grad[WF_MODEL_TENSORS_MAX];
	uint64_t samples;      /* of this step; 0: out of data */
	struct wf_tally tally; /* of this pass */
};

struct run {
	struct wf_run *job;
	uint32_t member_count;
	struct member *member;              /* [member_count] */
	float *param[WF_MODEL_TENSORS_MAX]; /* what trainers compute with, */
	float *exact[WF_MODEL_TENSORS_MAX]; /* and what pservers have: the same arrays with f32 */
	float *state[WF_STATE_MAX][WF_MODEL_TENSORS_MAX];
	const float **slice_grad; /* [member_count] of the slice being applied */
	float *memory;
	size_t memory_bytes;
	uint64_t samples_before;               /* applied before this step */
	uint64_t updates;                      /* steps applied, with this one */
	struct wf_average average;             /* if there are averages */
	float *averaged[WF_MODEL_TENSORS_MAX]; /* their values at the end of the pass */
	uint64_t skipped;                      /* elements not finite, in this pass */
	struct wf_digest *digest;
	struct wf_bag_batch rows;       /* of the batch being computed */
	struct wf_local_tables *tables; /* NULL: the model has none */
};

/* Lays the tensors out from `*at`, each on its own cache line, and moves `*at` past them. */
static void
place(const struct wf_model *model, float **at, float **array)
{
	for (unsigned t = 0; t < model->tensor_count; t++) {
		array[t] = *at;
		*at += (wf_model_tensor_count(model, t) + 15) / 16 * 16;
	}
}

static enum weft_status
alloc_memory(struct run *run)
{
	const struct wf_model *model = &run->job->model;
	struct wf_env *env = run->job->env;
	unsigned states = wf_state_count(&run->job->terms.optimizer);
	float *array[WF_MODEL_TENSORS_MAX];
	float *at = NULL;
	size_t one = 0;

	for (unsigned t = 0; t < model->tensor_count; t++) {
		one += (wf_model_tensor_count(model, t) + 15) / 16 * 16;
	}
	run->member = wf_zalloc_array(env, run->member_count, sizeof(*run->member));
	run->slice_grad = wf_zalloc_array(env, run->member_count, sizeof(*run->slice_grad));
	const size_t arrays = 2 + states + (wf_run_rounds(run->job) ? 1 : 0) + run->member_count;
	run->memory_bytes = one * arrays * sizeof(float);
	run->memory = wf_zalloc(env, run->memory_bytes);
	if (run->member == NULL || run->slice_grad == NULL || run->memory == NULL) {
		return wf_fail(WEFT_NOMEM, "%u trainers with %zu parameters each",
			       run->member_count, one);
	}
	at = run->memory;
	place(model, &at, run->param);
	memcpy(run->exact, run->param, sizeof(run->exact));
	if (wf_run_rounds(run->job)) {
		place(model, &at, run->exact);
	}
	for (unsigned s = 0; s < states; s++) {
		place(model, &at, run->state[s]);
	}
	place(model, &at, run->averaged);
	for (uint32_t i = 0; i < run->member_count; i++) {
		place(model, &at, array);
		memcpy(run->member[i].grad, array, sizeof(array));
	}
	return WEFT_OK;
}

/* What the step left, as it is answered. */
static enum weft_status
round_values(struct run *run)
{
	const struct wf_run *job = run->job;
	enum weft_status st = WEFT_OK;

	for (unsigned t = 0; wf_run_rounds(job) && st == WEFT_OK && t < job->model.tensor_count;
	     t++) {
		st = wf_run_round_values(job, t, run->exact[t], run->param[t]);
	}
	return st;
}

static enum weft_status
run_init(struct run *run)
{
	struct wf_run *job = run->job;
	enum weft_status st = alloc_memory(run);

	for (uint32_t i = 0; st == WEFT_OK && i < run->member_count; i++) {
		st = wf_run_feed_init(job, i, &run->member[i].feed);
	}
	if (st == WEFT_OK) {
		st = wf_digest_create(job->env, &run->digest);
	}
	if (st == WEFT_OK) {
		st = wf_run_batch_init(job, &run->rows);
	}
	if (st == WEFT_OK && job->model.table_count > 0) {
		st = wf_local_tables_create(job, run->member_count, &run->tables);
	}
	if (st != WEFT_OK) {
		return st;
	}
	job->model.ops->init(&job->model, job->seed, run->exact);
	const struct wf_run_arrays arrays = {
		.param = run->exact, .state = run->state, .tables = run->tables};
	struct wf_run_past past;
	st = wf_run_restore(job, &arrays, &past);
	if (st == WEFT_OK) {
		run->updates = past.step;
		run->samples_before = past.samples;
		st = round_values(run);
	}
	if (wf_optimizer_averages(&job->terms.optimizer.set)) {
		wf_average_begin(&job->terms.optimizer, run->updates, &run->average);
	}
	return st;
}

static void
run_fini(struct run *run)
{
	struct wf_env *env = run->job->env;

	wf_local_tables_destroy(run->tables);
	wf_bag_batch_fini(env, &run->rows);
	wf_digest_destroy(run->digest);
	for (uint32_t i = 0; run->member != NULL && i < run->member_count; i++) {
		wf_feed_fini(&run->member[i].feed);
	}
	wf_free(env, run->member, run->member_count * sizeof(*run->member));
	wf_free(env, run->slice_grad, run->member_count * sizeof(*run->slice_grad));
	wf_free(env, run->memory, run->memory_bytes);
}

/* Of the batch that one trainer has put together: its cost, and its gradients where the step finds
 * them. */
static enum weft_status
compute_batch(struct run *run, uint32_t trainer, double *cost)
{
	struct wf_run *job = run->job;
	struct member *member = &run->member[trainer];
	struct wf_batch batch = {.rows = &run->rows};

	memcpy(batch.entry_grad, job->batches.entry_grad, sizeof(batch.entry_grad));
	if (run->tables != NULL) {
		enum weft_status st = wf_local_tables_pull(run->tables, &batch);
		if (st != WEFT_OK) {
			return st;
		}
	}
	*cost = wf_compute_gradient(job->compute, &batch, (const float *const *)run->param,
				    member->grad);
	wf_run_round_gradients(job, trainer, run->updates + 1, member->grad);
	if (run->tables != NULL) {
		wf_local_tables_push(run->tables, trainer, &batch);
	}
	return WEFT_OK;
}

/* Gradients of the step's batches, trainer by trainer. `*out` is the step's samples, 0 when all
 * trainers are out of data. */
static enum weft_status
compute_step(struct run *run, uint64_t *out)
{
	uint64_t samples = 0;

	for (uint32_t i = 0; i < run->member_count; i++) {
		struct member *member = &run->member[i];
		double cost = 0.0;
		member->samples = 0;
		enum weft_status st = wf_feed_next(&member->feed, &run->rows);
		if (st == WEFT_OK && run->rows.rows == 0) {
			continue;
		}
		if (st == WEFT_OK) {
			st = compute_batch(run, i, &cost);
		}
		if (st != WEFT_OK) {
			return st;
		}
		member->samples = run->rows.rows;
		member->tally.cost += cost;
		member->tally.samples += (double)member->samples;
		samples += member->samples;
	}
	*out = samples;
	return WEFT_OK;
}

/* Gradients of one slice in trainer order, in slice_grad; returns how many. */
static unsigned
collect_gradients(struct run *run, unsigned tensor, size_t first)
{
	unsigned count = 0;

	for (uint32_t i = 0; i < run->member_count; i++) {
		if (run->member[i].samples > 0) {
			run->slice_grad[count++] = run->member[i].grad[tensor] + first;
		}
	}
	return count;
}

/* What sums are divided by, so that the gradient's norm is within its limit. */
static double
norm_divisor(struct run *run, double divisor)
{
	const struct wf_run *job = run->job;
	const size_t slice = job->opts->session.slice_bytes / sizeof(float);
	struct wf_norm norm = {0};

	if (!wf_optimizer_clips_norm(&job->terms.optimizer.set)) {
		return divisor;
	}
	for (unsigned t = 0; t < job->model.tensor_count; t++) {
		const size_t count = wf_model_tensor_count(&job->model, t);
		for (size_t first = 0; first < count; first += slice) {
			unsigned grads = collect_gradients(run, t, first);
			size_t here = count - first < slice ? count - first : slice;
			wf_norm_add(&norm, wf_norm_squares(run->slice_grad, grads, here));
		}
	}
	return wf_norm_divisor(&norm, divisor, wf_optimizer_norm_max(&job->terms.optimizer.set));
}

/* Applies one slice of one tensor; returns the number of elements that were not finite. */
static size_t
apply_slice(struct run *run, struct wf_apply *apply, unsigned tensor, size_t first)
{
	enum wf_optimizer kind = run->job->terms.optimizer.method.kind;

	apply->grad_count = collect_gradients(run, tensor, first);
	apply->grad = run->slice_grad;
	apply->param = run->exact[tensor] + first;
	for (unsigned s = 0; s < wf_optimizer_state_count(kind); s++) {
		apply->state[s] = run->state[s][tensor] + first;
	}
	return run->job->kernels->apply[kind](apply);
}

/* The sums of averages follow the optimizer's state. */
static float **
sums_of(struct run *run, unsigned tensor, float *out[WF_AVERAGE_SUMS])
{
	unsigned first = wf_optimizer_state_count(run->job->terms.optimizer.method.kind);

	for (unsigned i = 0; i < WF_AVERAGE_SUMS; i++) {
		out[i] = run->state[first + i][tensor];
	}
	return out;
}

/* The step has been applied. */
static void
add_averages(struct run *run)
{
	const struct wf_run *job = run->job;
	float *sum[WF_AVERAGE_SUMS];

	if (!wf_optimizer_averages(&job->terms.optimizer.set)) {
		return;
	}
	wf_average_next(&run->average);
	for (unsigned t = 0; t < job->model.tensor_count; t++) {
		wf_average_add(job->kernels, &run->average, run->exact[t], sums_of(run, t, sum),
			       wf_model_tensor_count(&job->model, t));
	}
}

static void
compute_averages(struct run *run)
{
	const struct wf_run *job = run->job;
	float *sum[WF_AVERAGE_SUMS];

	for (unsigned t = 0; t < job->model.tensor_count; t++) {
		wf_average_value(&run->average, run->exact[t],
				 (const float *const *)sums_of(run, t, sum), run->averaged[t],
				 wf_model_tensor_count(&job->model, t));
	}
}

static enum weft_status
apply_step(struct run *run, uint64_t samples)
{
	const struct wf_run *job = run->job;
	const size_t slice = job->opts->session.slice_bytes / sizeof(float);
	struct wf_apply apply = {
		.clip = (float)job->terms.optimizer.set.clip,
		.decay = (float)job->terms.optimizer.set.decay,
		.l1 = (float)job->terms.optimizer.set.l1,
	};

	run->updates++;
	wf_apply_divide_by(&apply,
			   norm_divisor(run, job->terms.is_mean ? (double)(float)samples : 1.0));
	wf_apply_scalars(&job->terms.optimizer,
			 wf_learning_rate(&job->terms.optimizer, run->samples_before, samples,
					  job->pass - job->opts->start_pass),
			 run->updates, &apply);
	for (unsigned t = 0; t < job->model.tensor_count; t++) {
		const size_t count = wf_model_tensor_count(&job->model, t);
		size_t bad = 0;
		for (size_t first = 0; first < count; first += slice) {
			apply.count = count - first < slice ? count - first : slice;
			bad += apply_slice(run, &apply, t, first);
		}
		run->skipped += bad;
		if (bad > 0 && !job->terms.is_skipping) {
			return wf_fail(
				WEFT_DATA,
				"tensor %s: %zu of %zu elements or their gradients are not finite "
				"in step %" PRIu64
				"; a smaller learning_rate may help, nonfinite=skip "
				"leaves such elements out",
				job->model.tensor[t].name, bad, count, run->updates);
		}
	}
	add_averages(run);
	enum weft_status st = round_values(run);
	if (st == WEFT_OK && run->tables != NULL) {
		const struct wf_local_step step = {
			.step = run->updates,
			.samples_before = run->samples_before,
			.samples = samples,
		};
		st = wf_local_tables_apply(run->tables, &step, &run->skipped);
	}
	run->samples_before += samples;
	return st;
}

/* As weft_digest: every parameter byte, tensors in order of their names. */
static uint64_t
digest_of(struct run *run)
{
	const struct wf_model *model = &run->job->model;
	bool is_done[WF_MODEL_TENSORS_MAX] = {false};

	wf_digest_reset(run->digest);
	for (unsigned i = 0; i < model->tensor_count; i++) {
		unsigned next = WF_MODEL_TENSORS_MAX;
		for (unsigned t = 0; t < model->tensor_count; t++) {
			if (!is_done[t] &&
			    (next == WF_MODEL_TENSORS_MAX ||
			     strcmp(model->tensor[t].name, model->tensor[next].name) < 0)) {
				next = t;
			}
		}
		WF_ASSERT(next < model->tensor_count);
		size_t count = wf_model_tensor_count(model, next);
		is_done[next] = true;
		wf_digest_string(run->digest, model->tensor[next].name);
		wf_digest_u64(run->digest, count);
		wf_digest_bytes(run->digest, run->param[next], count * sizeof(float));
	}
	return wf_digest_value(run->digest);
}

static struct wf_view
view_of(struct run *run)
{
	return (struct wf_view){
		.param = (const float *const *)run->param,
		.rows = wf_local_tables_rows,
		.arg = run->tables,
	};
}

static void
save(struct run *run, uint64_t batch)
{
	const struct wf_run_arrays arrays = {
		.param = run->exact,
		.state = run->state,
		.average = batch == 0 && wf_optimizer_averages(&run->job->terms.optimizer.set)
				   ? run->averaged
				   : NULL,
		.tables = run->tables,
	};

	wf_run_save(run->job, &arrays,
		    (struct wf_run_past){
			    .step = run->updates, .samples = run->samples_before, .batch = batch});
}

/* Whether some trainer has another batch in this pass. */
static enum weft_status
find_next(struct run *run, bool *out)
{
	enum weft_status st = WEFT_OK;

	*out = false;
	for (uint32_t i = 0; st == WEFT_OK && !*out && i < run->member_count; i++) {
		st = wf_feed_has_next(&run->member[i].feed, out);
	}
	return st;
}

/* Steps until all trainers are out of data. */
static enum weft_status
run_steps(struct run *run)
{
	const struct wf_view view = view_of(run);
	enum weft_status st = WEFT_OK;

	while (st == WEFT_OK) {
		uint64_t samples = 0;
		const bool is_border = wf_border_is_near(run->job);
		st = compute_step(run, &samples);
		if (st != WEFT_OK || samples == 0) {
			return st;
		}
		st = apply_step(run, samples);
		if (st == WEFT_OK) {
			st = wf_run_batch_done(run->job, &run->member[0].tally, &view, true);
		}
		bool has_next = false;
		if (st == WEFT_OK && is_border) {
			st = find_next(run, &has_next);
		}
		if (st == WEFT_OK && has_next) {
			save(run, run->job->batch);
			st = wf_border_end(run->job, run->job->batch);
		}
	}
	return st;
}

static enum weft_status
begin_pass(struct run *run)
{
	struct wf_run *job = run->job;
	bool has_next = true;
	enum weft_status st = WEFT_OK;

	job->batch = wf_border_first_batch(job);
	run->skipped = 0;
	for (uint32_t i = 0; st == WEFT_OK && i < run->member_count; i++) {
		wf_feed_begin(&run->member[i].feed, job->seed, job->pass);
		st = wf_feed_skip(&run->member[i].feed, job->batch);
		run->member[i].tally = (struct wf_tally){0};
	}
	if (st == WEFT_OK && job->batch > 0) {
		st = find_next(run, &has_next);
	}
	return st == WEFT_OK && !has_next ? wf_border_refuse_start(job) : st;
}

static enum weft_status
run_pass(struct run *run)
{
	struct wf_run *job = run->job;
	struct wf_view view = view_of(run);
	struct wf_tally total = {0};

	enum weft_status st = begin_pass(run);
	if (st == WEFT_OK) {
		st = run_steps(run);
	}
	if (st != WEFT_OK) {
		return st;
	}
	for (uint32_t i = 0; i < run->member_count; i++) {
		total.cost += run->member[i].tally.cost;
		total.samples += run->member[i].tally.samples;
	}
	if (run->skipped > 0) {
		wf_log(job->env, WF_LOG_WARN,
		       "pass %" PRIu64 ": %" PRIu64 " gradient elements were not finite, skipped",
		       job->pass, run->skipped);
	}
	view.digest = digest_of(run);
	if (wf_optimizer_averages(&job->terms.optimizer.set)) {
		compute_averages(run);
		view.param = (const float *const *)run->averaged;
	}
	return wf_run_report(job, &total, &view);
}

static enum weft_status
save_pass(struct run *run)
{
	wf_border_look(run->job);
	if (wf_run_is_save_due(run->job)) {
		save(run, 0);
	}
	return wf_border_end(run->job, 0);
}

enum weft_status
wf_run_run_sequential(struct wf_run *job)
{
	struct run run = {
		.job = job,
		.member_count = (uint32_t)job->opts->session.num_gradient_servers,
	};
	const struct wf_train_watch *watch = job->opts->save_on_term ? job->sink->watch : NULL;
	enum weft_status st = run_init(&run);
	if (watch != NULL) {
		watch->begins(NULL);
		wf_border_postpone(job);
	}
	for (job->pass = job->opts->start_pass; st == WEFT_OK && job->pass < job->opts->num_passes;
	     job->pass++) {
		st = run_pass(&run);
		if (st == WEFT_OK) {
			st = save_pass(&run);
		}
	}
	if (st == WEFT_OK) {
		const struct wf_view view = view_of(&run);
		st = wf_run_measure(job, &view);
	}
	if (watch != NULL) {
		watch->ends();
		watch->over(st);
	}
	if (run.tables != NULL) {
		wf_local_tables_report(run.tables);
	}
	run_fini(&run);
	return st;
}
