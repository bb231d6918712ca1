/* SPDX-License-Identifier: Apache-2.0 */
/* local: steps that a trainer makes by itself, and what it exchanges after every few of them. The
 * trainer applies its own gradient with the optimizer and kernels that a lane would, to its own
 * parameters; the lanes keep a *center*, which is what all agreed on last. After local_steps steps,
 * and at the end of a pass:
 *
 *   LOCAL    pushes (base - x), base being the center it had last, x its parameters. The center
 *            moves by the mean of the differences, by samples (or by their sum: grad_reduce), and
 *            x = center. One step of SGD between exchanges is the synchronous mode, but for the
 *            rounding of the difference. (Local SGD; the original's num_batches_per_send_parameter
 *            with center_parameter_update_method average.)
 *   ELASTIC  pushes a (base - x), keeps x + a (base - x), and adds up what the others push:
 *            x_i <- x_i - a (x_i - c),  c <- c + a sum_i (x_i - c)
 *            Zhang, Choromanska, LeCun, "Deep learning with Elastic Averaging SGD", 2015, equations
 *            (2) and (3), with the step's own gradients applied before. At the end of a pass
 *            everybody goes on from the center (the original goes on from x).
 *
 * Lanes add in trainer order, as in the synchronous mode, whose exchange this is: bits do not
 * depend on arrival. State of the optimizer is each trainer's own, and is never exchanged. Thread:
 * the owner's. */
#include "trainer/session/local.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "trainer/session/session.h"
#include "wire/layout.h"

static bool
is_elastic(const struct weft_session *session)
{
	return session->core.job.set.dense_mode == WEFT_DENSE_ELASTIC;
}

enum weft_status
wf_local_open(struct weft_session *session)
{
	const struct wf_core *core = &session->core;
	struct wf_local *local = &session->local;
	struct wf_env *env = session->core.end.env;
	uint64_t bytes = core->memory.grad.bytes;
	if (core->service.ops != NULL) {
		return wf_fail(WEFT_INVALID,
			       "dense_mode WEFT_DENSE_LOCAL or _ELASTIC: it goes with "
			       "sessions without tables only");
	}
	local->kernels = wf_kernels_best();
	local->state_count = wf_optimizer_state_count(core->job.method.kind);
	enum weft_status st = env->ops->slab_open(env, bytes, -1, &local->base);
	if (st == WEFT_OK && is_elastic(session)) {
		st = env->ops->slab_open(env, bytes, -1, &local->kept);
	}
	for (unsigned i = 0; i < local->state_count && st == WEFT_OK; i++) {
		st = env->ops->slab_open(env, bytes, -1, &local->state[i]);
	}
	return st;
}

void
wf_local_close(struct weft_session *session)
{
	struct wf_local *local = &session->local;
	struct wf_slab *slab[2 + WF_STATE_MAX] = {&local->base, &local->kept};
	for (unsigned i = 0; i < WF_STATE_MAX; i++) {
		slab[2 + i] = &local->state[i];
	}
	for (unsigned i = 0; i < WF_ARRAY_COUNT(slab); i++) {
		if (slab[i]->base != NULL) {
			session->core.end.env->ops->slab_close(session->core.end.env, slab[i]);
		}
		*slab[i] = (struct wf_slab){0};
	}
}

void
wf_local_begin(struct weft_session *session, uint64_t samples, double cost)
{
	struct wf_local *local = &session->local;
	local->samples_before += local->samples;
	local->samples = samples;
	local->step++;
	local->since_samples += samples;
	local->since_cost += cost;
	local->since++;
}

bool
wf_local_exchanges(const struct weft_session *session)
{
	return session->local.since >= session->core.job.set.local_steps;
}

void
wf_local_pass_ends(struct weft_session *session)
{
	session->local.pass++;
}

uint64_t
wf_local_reset_samples(struct weft_session *session)
{
	struct wf_local *local = &session->local;
	local->told_samples = local->since_samples;
	local->since_samples = 0;
	local->since_cost = 0;
	local->since = 0;
	return local->told_samples;
}

static float *
array_of(const struct weft_tensor *tensor, const struct wf_slab *slab)
{
	return (float *)((char *)slab->base + tensor->session->core.memory.offset[tensor->idx]);
}

static void
copy(const struct weft_tensor *tensor, float *to, const float *from)
{
	memcpy(to, from, weft_tensor_count(tensor) * sizeof(float));
}

/* As a lane does, with this trainer's gradient alone. For the rate, other trainers are assumed to
 * have as many samples. */
static void
fill_apply(struct weft_tensor *tensor, const float *const *gradient, struct wf_apply *out)
{
	const struct weft_session *session = tensor->session;
	const struct wf_local *local = &session->local;
	const struct wf_job *job = &session->core.job;
	const struct wf_job_tensor *own = &job->tensor[tensor->idx];
	const struct wf_optimizer_opts o = wf_job_optimizer(job);
	uint64_t before = session->core.start.init.samples +
			  local->samples_before * job->set.num_gradient_servers;
	double rate = wf_learning_rate(&o, before, local->samples * job->set.num_gradient_servers,
				       local->pass);
	*out = (struct wf_apply){
		.param = weft_tensor_param(tensor),
		.grad = gradient,
		.grad_count = 1,
		.count = own->count,
		.divisor = wf_job_is_mean(job) ? (float)local->samples : 1.0f,
		.decay = (float)(own->decay < 0 ? o.set.decay : own->decay),
		.clip = (float)(own->clip < 0 ? o.set.clip : own->clip),
		.l1 = (float)(own->l1 < 0 ? o.set.l1 : own->l1),
	};
	for (unsigned i = 0; i < local->state_count; i++) {
		out->state[i] = array_of(tensor, &local->state[i]);
	}
	wf_apply_scalars(&o, rate * own->rate_multiplier, local->step, out);
}

/* Before the first step since an exchange, or since a pull, the parameters are the center. */
static void
know_base(struct weft_tensor *tensor)
{
	if (!tensor->base_known) {
		copy(tensor, array_of(tensor, &tensor->session->local.base),
		     weft_tensor_param(tensor));
		tensor->base_known = true;
	}
}

enum weft_status
wf_local_apply(struct weft_tensor *tensor)
{
	struct wf_local *local = &tensor->session->local;
	const struct wf_job *job = &tensor->session->core.job;
	const float *const gradient[] = {weft_tensor_grad(tensor)};
	struct wf_apply apply;
	know_base(tensor);
	fill_apply(tensor, gradient, &apply);
	size_t bad = local->kernels->apply[job->method.kind](&apply);
	if (bad > 0 && !wf_job_skips(job)) {
		return wf_fail(WEFT_DATA,
			       "%zu values of the gradient of %.60s from trainer %u, or of what "
			       "comes of it, are NaN or infinite in its step %" PRIu64
			       "; lower the learning rate, clip, or run with --nonfinite=skip",
			       bad, weft_tensor_name(tensor), tensor->session->core.opts.trainer_id,
			       local->step);
	}
	return WEFT_OK;
}

void
wf_local_offer(struct weft_tensor *tensor)
{
	struct weft_session *session = tensor->session;
	const struct wf_job *job = &session->core.job;
	float *param = weft_tensor_param(tensor);
	float *push = weft_tensor_grad(tensor);
	const float *base = array_of(tensor, &session->local.base);
	uint64_t count = weft_tensor_count(tensor);
	bool elastic = is_elastic(session);
	bool mean = !elastic && wf_job_is_mean(job);
	float share = mean ? (float)session->local.told_samples : 1.0f;
	float *kept = elastic ? array_of(tensor, &session->local.kept) : NULL;
	WF_ASSERT(!tensor->is_offered);
	know_base(tensor); /* pulled since its last step: it has not moved */
	share = elastic ? (float)job->set.elastic_rate : share;
	for (uint64_t i = 0; i < count; i++) {
		push[i] = share * (base[i] - param[i]);
		if (elastic) {
			kept[i] = param[i] + push[i];
		}
	}
	tensor->is_offered = true;
}

void
wf_local_settle(struct weft_tensor *tensor)
{
	struct wf_local *local = &tensor->session->local;
	if (!tensor->is_offered) {
		return;
	}
	tensor->is_offered = false;
	tensor->base_known = false; /* the array now holds the center */
	if (is_elastic(tensor->session)) {
		float *param = weft_tensor_param(tensor);
		copy(tensor, array_of(tensor, &local->base), param);
		copy(tensor, param, array_of(tensor, &local->kept));
		tensor->base_known = true;
	}
}
