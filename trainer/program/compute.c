/* SPDX-License-Identifier: Apache-2.0 */
/* The compute threads. Everything that they share is guarded by `lock`: the owner fills in the work
 * and raises `round`; each thread runs it once, and the last one to finish wakes the owner. */
#include "trainer/program/compute.h"

#include <cblas.h>
#include <pthread.h>
#include <string.h>

#include "base/assert.h"

struct part {
	struct wf_compute *compute;
	unsigned idx; /* 0: the owner's */
	pthread_t thread;
	float *work;                       /* wf_model_work_count(work_rows) */
	float *grad[WF_MODEL_TENSORS_MAX]; /* part 0: the caller's arrays */
	size_t rows;                       /* of this batch; 0: nothing to do */
	double cost;
};

struct wf_compute {
	/* Fixed before the threads start. */
	struct wf_env *env;
	const struct wf_model *model;
	const struct wf_pin *pin;
	unsigned part_count;
	struct part *part; /* [part_count] */
	float *memory;     /* all parts' arrays */
	size_t memory_bytes;
	unsigned thread_count; /* started ones, without the owner */

	/* The work. Written by the owner under `lock` before `round` is raised. */
	struct wf_batch batch;
	const float *const *param;

	pthread_mutex_t lock;
	pthread_cond_t begin; /* round has been raised */
	pthread_cond_t end;   /* busy has become 0 */
	uint64_t round;
	unsigned busy;
	bool is_stopping;
};

/* What a model with tables is given for the rows from `first` on. */
static struct wf_model_bags
bags_from(const struct wf_batch *batch, size_t first)
{
	const struct wf_bag_batch *rows = batch->rows;

	return (struct wf_model_bags){
		.first = rows->first == NULL ? NULL : rows->first + first * rows->slots,
		.place = batch->place,
		.weight = rows->weight,
		.row = batch->row,
		.entry_grad = batch->entry_grad,
		.score = batch->score == NULL ? NULL : batch->score + first,
	};
}

static void
compute_part(struct part *part)
{
	const struct wf_compute *compute = part->compute;
	const struct wf_batch *batch = &compute->batch;
	size_t first = batch->rows->rows * part->idx / compute->part_count;
	size_t end = batch->rows->rows * (part->idx + 1) / compute->part_count;

	part->rows = end - first;
	part->cost = 0.0;
	if (part->rows == 0) {
		return;
	}
	const struct wf_model_bags bags = bags_from(batch, first);
	const struct wf_model_call call = {
		.param = compute->param,
		.grad = part->grad,
		.x = batch->rows->x + first * batch->rows->features,
		.y = batch->rows->y + first,
		.rows = part->rows,
		.work = part->work,
		.bags = compute->model->table_count > 0 ? &bags : NULL,
	};
	part->cost = compute->model->ops->gradient(compute->model, &call);
}

static void *
thread_main(void *arg)
{
	struct part *part = arg;
	struct wf_compute *compute = part->compute;
	uint64_t done = 0;

	if (compute->pin != NULL && wf_pin_self(compute->pin, part->idx) != WEFT_OK) {
		wf_log(compute->env, WF_LOG_WARN, "compute thread %u is not pinned: %s", part->idx,
		       weft_last_error());
	}
	pthread_mutex_lock(&compute->lock);
	for (;;) {
		while (compute->round == done && !compute->is_stopping) {
			pthread_cond_wait(&compute->begin, &compute->lock);
		}
		if (compute->is_stopping) {
			break;
		}
		done = compute->round;
		pthread_mutex_unlock(&compute->lock);
		compute_part(part);
		pthread_mutex_lock(&compute->lock);
		if (--compute->busy == 0) {
			pthread_cond_signal(&compute->end);
		}
	}
	pthread_mutex_unlock(&compute->lock);
	return NULL;
}

/* The number of floats to allocate for an array so that the next one starts on its own cache
 * line. */
static size_t
padded(size_t count)
{
	return (count + 15) / 16 * 16;
}

/* One allocation for everything: each part's work array, and gradients of all parts but the first.
 */
static enum weft_status
alloc_memory(struct wf_compute *compute, size_t work_rows)
{
	const struct wf_model *model = compute->model;
	size_t work = padded(wf_model_work_count(model, work_rows));
	size_t grads = 0;

	for (unsigned t = 0; t < model->tensor_count; t++) {
		grads += padded(wf_model_tensor_count(model, t));
	}
	compute->memory_bytes =
		(work * compute->part_count + grads * (compute->part_count - 1)) * sizeof(float);
	compute->memory = wf_zalloc(compute->env, compute->memory_bytes);
	if (compute->memory == NULL) {
		return wf_fail(WEFT_NOMEM, "compute threads: %zu bytes", compute->memory_bytes);
	}
	float *at = compute->memory;
	for (unsigned p = 0; p < compute->part_count; p++) {
		struct part *part = &compute->part[p];
		part->work = at;
		at += work;
		for (unsigned t = 0; p > 0 && t < model->tensor_count; t++) {
			part->grad[t] = at;
			at += padded(wf_model_tensor_count(model, t));
		}
	}
	WF_ASSERT((size_t)(at - compute->memory) * sizeof(float) == compute->memory_bytes);
	return WEFT_OK;
}

static enum weft_status
start_threads(struct wf_compute *compute)
{
	for (unsigned p = 1; p < compute->part_count; p++) {
		int err = pthread_create(&compute->part[p].thread, NULL, thread_main,
					 &compute->part[p]);
		if (err != 0) {
			return wf_fail_errno(
				WEFT_NOMEM, err,
				"compute thread %u of %u: choose a smaller trainer_count", p,
				compute->part_count);
		}
		compute->thread_count++;
	}
	return WEFT_OK;
}

enum weft_status
wf_compute_create(struct wf_env *env, const struct wf_compute_opts *opts, struct wf_compute **out)
{
	struct wf_compute *compute = wf_zalloc(env, sizeof(*compute));

	WF_ASSERT(opts->thread_count >= 1 && opts->thread_count <= WF_COMPUTE_THREADS_MAX);
	if (compute == NULL) {
		return wf_fail(WEFT_NOMEM, "compute: %zu bytes", sizeof(*compute));
	}
	/* One BLAS thread per compute thread: the bits depend on it. Process-wide, the same each
	 * time. */
	openblas_set_num_threads(1);
	compute->env = env;
	compute->model = opts->model;
	compute->pin = opts->pin;
	compute->part_count = opts->thread_count;
	pthread_mutex_init(&compute->lock, NULL);
	pthread_cond_init(&compute->begin, NULL);
	pthread_cond_init(&compute->end, NULL);
	enum weft_status st = WEFT_OK;
	compute->part = wf_zalloc_array(env, opts->thread_count, sizeof(*compute->part));
	if (compute->part == NULL) {
		st = wf_fail(WEFT_NOMEM, "compute: %u threads", opts->thread_count);
		goto fail;
	}
	for (unsigned p = 0; p < compute->part_count; p++) {
		compute->part[p].compute = compute;
		compute->part[p].idx = p;
	}
	size_t part_rows = opts->batch_rows / opts->thread_count + 1;
	st = alloc_memory(compute,
			  part_rows > WF_COMPUTE_TEST_ROWS ? part_rows : WF_COMPUTE_TEST_ROWS);
	if (st != WEFT_OK) {
		goto fail;
	}
	st = start_threads(compute);
	if (st != WEFT_OK) {
		goto fail;
	}
	*out = compute;
	return WEFT_OK;
fail:
	wf_compute_destroy(compute);
	return st;
}

void
wf_compute_destroy(struct wf_compute *compute)
{
	if (compute == NULL) {
		return;
	}
	pthread_mutex_lock(&compute->lock);
	compute->is_stopping = true;
	pthread_cond_broadcast(&compute->begin);
	pthread_mutex_unlock(&compute->lock);
	for (unsigned p = 1; p <= compute->thread_count; p++) {
		pthread_join(compute->part[p].thread, NULL);
	}
	pthread_cond_destroy(&compute->end);
	pthread_cond_destroy(&compute->begin);
	pthread_mutex_destroy(&compute->lock);
	wf_free(compute->env, compute->memory, compute->memory_bytes);
	wf_free(compute->env, compute->part, compute->part_count * sizeof(*compute->part));
	wf_free(compute->env, compute, sizeof(*compute));
}

/* grad = part 0's + part 1's + ..., skipping parts that had no rows. */
static void
sum_parts(struct wf_compute *compute, float *const *grad)
{
	const float *in[WF_COMPUTE_THREADS_MAX];

	for (unsigned t = 0; t < compute->model->tensor_count; t++) {
		unsigned count = 0;
		for (unsigned p = 0; p < compute->part_count; p++) {
			if (compute->part[p].rows > 0) {
				in[count++] = compute->part[p].grad[t];
			}
		}
		compute->model->kernels->sum(grad[t], in, count,
					     wf_model_tensor_count(compute->model, t));
	}
}

/* Part 0 is empty when there are fewer rows than threads: its array then receives another's sum. */
static void
run_parts(struct wf_compute *compute)
{
	if (compute->thread_count == 0) {
		compute_part(&compute->part[0]);
		return;
	}
	pthread_mutex_lock(&compute->lock);
	compute->busy = compute->thread_count;
	compute->round++;
	pthread_cond_broadcast(&compute->begin);
	pthread_mutex_unlock(&compute->lock);
	compute_part(&compute->part[0]);
	pthread_mutex_lock(&compute->lock);
	while (compute->busy > 0) {
		pthread_cond_wait(&compute->end, &compute->lock);
	}
	pthread_mutex_unlock(&compute->lock);
}

double
wf_compute_gradient(struct wf_compute *compute, const struct wf_batch *batch,
		    const float *const *param, float *const *grad)
{
	double cost = 0.0;

	WF_ASSERT(batch->rows->rows >= 1);
	WF_ASSERT(batch->rows->features == compute->model->features);
	compute->batch = *batch; /* the threads read it after taking the lock */
	compute->param = param;
	memcpy(compute->part[0].grad, grad, compute->model->tensor_count * sizeof(*grad));
	run_parts(compute);
	if (compute->part_count > 1) {
		sum_parts(compute, grad);
	}
	for (unsigned p = 0; p < compute->part_count; p++) {
		cost += compute->part[p].cost;
	}
	return cost;
}

double
wf_compute_test(struct wf_compute *compute, const struct wf_batch *batch, const float *const *param)
{
	const struct wf_model_bags bags = bags_from(batch, 0);
	const struct wf_model_call call = {
		.param = param,
		.x = batch->rows->x,
		.y = batch->rows->y,
		.rows = batch->rows->rows,
		.work = compute->part[0].work,
		.bags = compute->model->table_count > 0 ? &bags : NULL,
	};
	WF_ASSERT(call.rows >= 1 && call.rows <= WF_COMPUTE_TEST_ROWS);
	return compute->model->ops->test(compute->model, &call);
}
