/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from a run's options: which of them go together, and what they mean for tensors and
 * rows. Thread: the run's. */
#include <inttypes.h>
#include <string.h>

#include "base/role.h"
#include "base/settings.h"
#include "base/status.h"
#include "trainer/program/job.h"
#include "trainer/program/tensor_modes.h"

static enum weft_status
check_members(const struct wf_train_opts *opts)
{
	enum weft_status st = wf_session_place_check(&opts->session);
	if (st != WEFT_OK) {
		return st;
	}
	if ((opts->sequential || opts->local) && opts->session.trainer_id > 0) {
		return wf_fail(WEFT_INVALID,
			       "trainer_id=%" PRIu32
			       " with sequential or local: one process plays all "
			       "trainers; leave trainer_id out",
			       opts->session.trainer_id);
	}
	if (opts->trainer_count < 1 || opts->trainer_count > WF_COMPUTE_THREADS_MAX) {
		return wf_fail(WEFT_INVALID,
			       "trainer_count=%" PRIu64
			       ": must be 1 to %u (compute threads of one trainer)",
			       opts->trainer_count, WF_COMPUTE_THREADS_MAX);
	}
	if (opts->seed == 0 && opts->session.num_gradient_servers > 1 && !opts->sequential &&
	    !opts->local) {
		return wf_fail(WEFT_INVALID,
			       "seed=0: each of %" PRIu32
			       " trainers would draw its own; give all of them the same seed",
			       opts->session.num_gradient_servers);
	}
	return WEFT_OK;
}

/* What trainers keep for themselves is neither saved nor exchanged. */
static enum weft_status
check_local_job(const struct wf_run *job)
{
	const struct wf_train_opts *opts = job->opts;
	bool saves = opts->save_dir != NULL && opts->save_dir[0] != '\0';

	if (!wf_session_has_local_steps(&opts->session)) {
		return WEFT_OK;
	}
	if (job->kind->has_tables) {
		return wf_fail(WEFT_INVALID,
			       "dense_mode=%s: the model %s has tables, which take part in every "
			       "step; give sync, async or bounded",
			       wf_setting_text(&opts->values, "dense_mode").text, job->kind->name);
	}
	if ((saves || opts->start_pass > 0) &&
	    wf_optimizer_state_count(job->terms.optimizer.method.kind) > 0) {
		return wf_fail(WEFT_INVALID,
			       "save_dir, start_pass: with dense_mode=%s each trainer has its own "
			       "state of the optimizer %s, which is not saved; give optimizer=sgd, "
			       "or leave them out",
			       wf_setting_text(&opts->values, "dense_mode").text,
			       opts->session.optimizer.method);
	}
	return WEFT_OK;
}

static enum weft_status
check_modes(const struct wf_train_opts *opts)
{
	bool dense = opts->session.dense_mode == WEFT_DENSE_BOUNDED || wf_tensor_modes_bound(opts);
	bool sparse = opts->session.sparse_mode == WEFT_SPARSE_BOUNDED;

	if (opts->staleness > 0 && !dense && !sparse) {
		return wf_fail(WEFT_INVALID,
			       "staleness=%" PRIu64
			       ": needs dense_mode=bounded, sparse_mode=bounded or a tensor of "
			       "mode bounded",
			       opts->staleness);
	}
	if ((opts->sequential || opts->local || opts->closed_form) &&
	    opts->session.dense_mode != WEFT_DENSE_SYNC) {
		return wf_fail(WEFT_INVALID,
			       "dense_mode=%s: a single process makes its steps one after the "
			       "other; leave this out with sequential, local and closed_form",
			       wf_setting_text(&opts->values, "dense_mode").text);
	}
	if ((opts->sequential || opts->local || opts->closed_form) && wf_tensor_modes_given(opts)) {
		return wf_fail(WEFT_INVALID,
			       "tensor_modes=%.100s: a single process makes its steps one after "
			       "the other; leave this out with sequential, local and closed_form",
			       opts->tensor_modes);
	}
	enum weft_status st = wf_tensor_modes_check(opts);
	return st == WEFT_OK ? wf_session_rules_check(&opts->values) : st;
}

/* What tables ask of a job. */
static enum weft_status
check_tables(const struct wf_run *job)
{
	const struct wf_train_opts *opts = job->opts;

	enum weft_status st = wf_row_rules_check(&opts->values);
	if (st != WEFT_OK) {
		return wf_fail(st, "%s; leave it out with the model %s", weft_last_error(),
			       job->kind->name);
	}
	if ((opts->sequential || opts->local) && opts->session.sparse_mode != WEFT_SPARSE_SYNC) {
		return wf_fail(WEFT_INVALID,
			       "sparse_mode=%s: a single process makes its steps one after the "
			       "other; leave this out with sequential and local",
			       wf_setting_text(&opts->values, "sparse_mode").text);
	}
	if (job->is_sequential || opts->closed_form) {
		return WEFT_OK;
	}
	if (opts->session.ports_num_for_sparse == 0) {
		return wf_fail(WEFT_INVALID,
			       "ports_num_for_sparse=0: the model %s has tables, which need sparse "
			       "ports; give --ports_num_for_sparse=1, or more, to pservers "
			       "and trainers alike",
			       job->kind->name);
	}
	return WEFT_OK;
}

static enum weft_status
check_gone(const struct wf_train_opts *opts)
{
	enum weft_status st = wf_role_check_job_name(opts->job_name);
	if (st != WEFT_OK) {
		return st;
	}
	if (opts->use_gpu) {
		return wf_fail(WEFT_INVALID, "use_gpu=True: weft computes on CPUs only; leave the "
					     "option out, or give use_gpu=False");
	}
	if (opts->rdma_tcp != NULL && strcmp(opts->rdma_tcp, "rdma") == 0) {
		return wf_fail(WEFT_INVALID,
			       "rdma_tcp=rdma: RDMA is chosen with transport=verbs or auto; give "
			       "rdma_tcp=tcp with it, or leave the option out");
	}
	return WEFT_OK;
}

/* Epsilon inside the root; a method without one gets the library's default, as other trainers do.
 */
static bool
has_ada_epsilon(enum wf_optimizer kind)
{
	return kind == WF_ADAGRAD || kind == WF_DECAYED_ADAGRAD || kind == WF_RMSPROP ||
	       kind == WF_ADADELTA;
}

/* The session's optimizer, with what the program knows of it. */
static enum weft_status
set_optimizer(struct wf_run *job)
{
	const struct wf_train_opts *opts = job->opts;
	struct weft_optimizer_opts *session = &job->terms.session_optimizer;
	enum wf_optimizer kind;

	*session = opts->session.optimizer;
	enum weft_status st = wf_optimizer_parse(session->method, &kind);
	if (st != WEFT_OK) {
		return st;
	}
	session->epsilon = has_ada_epsilon(kind) ? opts->ada_epsilon : opts->adam_epsilon;
	if (strcmp(session->schedule, "pass_manual") == 0) {
		session->first_pass = opts->start_pass;
	}
	st = wf_optimizer_read(session, &job->terms.optimizer);
	if (st == WEFT_OK && job->terms.optimizer.method.segment_count > 0 &&
	    job->terms.optimizer.method.schedule != WF_SCHEDULE_MANUAL &&
	    job->terms.optimizer.method.schedule != WF_SCHEDULE_PASS_MANUAL) {
		return wf_fail(WEFT_INVALID,
			       "learning_rate_args=%.80s: is for the schedules manual and "
			       "pass_manual, not for %s",
			       session->schedule_args, session->schedule);
	}
	return st;
}

static enum weft_value_format
rest_by_name(const char *name)
{
	if (strcmp(name, "bf16") == 0) {
		return WEFT_VALUES_BF16;
	}
	return strcmp(name, "f16") == 0 ? WEFT_VALUES_F16 : WEFT_VALUES_F32;
}

/* Of the tensors. */
static void
set_wire(struct wf_run *job)
{
	static const enum weft_value_format form[] = {[WEFT_WIRE_F32] = WEFT_VALUES_F32,
						      [WEFT_WIRE_BF16] = WEFT_VALUES_BF16,
						      [WEFT_WIRE_F16] = WEFT_VALUES_F16};
	job->terms.dense_wire = form[job->opts->session.dense_wire];
	job->terms.is_drawing = job->opts->session.dense_rounding == WEFT_ROUND_STOCHASTIC;
}

/* Of the tables' rows. */
static enum weft_status
set_row_optimizer(struct wf_run *job)
{
	const struct wf_train_opts *opts = job->opts;
	struct wf_row_opts *row = &job->terms.row_optimizer;

	*row = wf_row_like(&job->terms.optimizer);
	enum weft_status st = wf_row_optimizer_parse(opts->sparse_optimizer, &row->kind);
	if (st != WEFT_OK) {
		return st;
	}
	const bool is_adam = row->kind == WF_ROW_ADAM || row->kind == WF_ROW_ADAM_ROWWISE;
	row->set.learning_rate = opts->sparse_learning_rate;
	row->set.rho = opts->rmsprop_rho;
	row->set.epsilon = is_adam ? opts->adam_epsilon : opts->ada_epsilon;
	row->set.decay = opts->sparse_decay;
	row->set.l1 = opts->sparse_l1;
	row->set.l2 = opts->sparse_l2;
	row->set.l21 = opts->sparse_l21;
	row->set.ftrl_beta = opts->ftrl_beta;
	row->set.dense_equivalent = opts->dense_equivalent;
	job->terms.row_rest = rest_by_name(opts->sparse_rest);
	job->terms.row_wire = rest_by_name(opts->sparse_wire);
	st = wf_row_check(row);
	if (st != WEFT_OK) {
		const struct wf_error why = *wf_error_record();
		return wf_fail(st, "sparse_optimizer: %.400s", why.text);
	}
	return WEFT_OK;
}

enum weft_status
wf_run_terms_read(struct wf_run *job)
{
	const struct wf_train_opts *opts = job->opts;

	job->terms.is_mean = opts->session.grad_reduce == WEFT_REDUCE_MEAN;
	job->terms.is_skipping = wf_session_skips(&opts->session);
	enum weft_status st = check_gone(opts);
	if (st == WEFT_OK) {
		st = check_modes(opts);
	}
	if (st == WEFT_OK) {
		st = check_members(opts);
	}
	if (st == WEFT_OK) {
		st = set_optimizer(job);
	}
	if (st == WEFT_OK) {
		set_wire(job);
		st = check_local_job(job);
	}
	if (st == WEFT_OK && job->kind->has_tables) {
		st = check_tables(job);
	}
	return st == WEFT_OK && job->kind->has_tables ? set_row_optimizer(job) : st;
}

bool
wf_run_is_sync(const struct wf_run *job)
{
	const struct weft_session_opts *session = &job->opts->session;

	return session->dense_mode == WEFT_DENSE_SYNC && !wf_tensor_modes_given(job->opts) &&
	       (!job->kind->has_tables || session->sparse_mode == WEFT_SPARSE_SYNC);
}
