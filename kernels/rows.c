/* SPDX-License-Identifier: Apache-2.0 */
/* rows: settings of row optimizers, the scalars of a step, and steps without a gradient. Thread:
 * any. */
#include "kernels/rows.h"

#include <stdbool.h>
#include <string.h>

#include "base/assert.h"
#include "base/settings.h"
#include "kernels/kernels.h"

static const char *const names[WF_ROW_OPTIMIZER_COUNT] = {
	[WF_ROW_SGD] = "sgd",
	[WF_ROW_MOMENTUM] = "momentum",
	[WF_ROW_SPARSE_MOMENTUM] = "sparse_momentum",
	[WF_ROW_ADAGRAD] = "adagrad",
	[WF_ROW_ADAGRAD_ROWWISE] = "adagrad_rowwise",
	[WF_ROW_RMSPROP] = "rmsprop",
	[WF_ROW_ADAM] = "adam",
	[WF_ROW_ADAM_ROWWISE] = "adam_rowwise",
	[WF_ROW_FTRL] = "ftrl",
	[WF_ROW_FTRL_GROUP] = "ftrl_group",
};

struct wf_row_opts
wf_row_defaults(void)
{
	struct weft_table_opts table;
	wf_table_defaults(&table);
	struct wf_row_opts out = {.set = table.optimizer};
	enum weft_status st = wf_row_optimizer_parse(out.set.method, &out.kind);
	WF_ASSERT(st == WEFT_OK && strcmp(out.set.schedule, "constant") == 0);
	out.set.method = out.set.schedule = NULL;
	return out;
}

struct wf_row_opts
wf_row_like(const struct wf_optimizer_opts *dense)
{
	struct wf_row_opts out = wf_row_defaults();
	out.schedule = dense->method.schedule;
	out.set.momentum = dense->set.momentum;
	out.set.beta1 = dense->set.beta1;
	out.set.beta2 = dense->set.beta2;
	out.set.clip = dense->set.clip;
	out.set.schedule_a = dense->set.schedule_a;
	out.set.schedule_b = dense->set.schedule_b;
	return out;
}

/* The settings that a row optimizer shares with a dense one. */
static struct wf_optimizer_opts
common_opts(const struct wf_row_opts *opts)
{
	return (struct wf_optimizer_opts){
		.method = {.kind = WF_SGD, .schedule = opts->schedule},
		.set = {.learning_rate = opts->set.learning_rate,
			.momentum = opts->set.momentum,
			.beta1 = opts->set.beta1,
			.beta2 = opts->set.beta2,
			.epsilon = opts->set.epsilon,
			.decay = opts->set.decay,
			.clip = opts->set.clip,
			.schedule_a = opts->set.schedule_a,
			.schedule_b = opts->set.schedule_b},
	};
}

static bool
is_ftrl(enum wf_row_optimizer kind)
{
	return kind == WF_ROW_FTRL || kind == WF_ROW_FTRL_GROUP;
}

static bool
has_momentum(enum wf_row_optimizer kind)
{
	return kind == WF_ROW_MOMENTUM || kind == WF_ROW_SPARSE_MOMENTUM;
}

static enum weft_status
check_field(const char *field, double value, double below)
{
	if (value >= 0.0 && value < below) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_INVALID, "%s %g: give a number from 0 to below %g", field, value,
		       below);
}

static enum weft_status
check_fields(const struct wf_row_opts *opts)
{
	const double large = 1e30; /* squares and their sums stay finite as f64 */
	enum weft_status st = WEFT_OK;

	if ((st = check_field("rho", opts->set.rho, 1.0)) != WEFT_OK ||
	    (st = check_field("l1", opts->set.l1, large)) != WEFT_OK ||
	    (st = check_field("l2", opts->set.l2, large)) != WEFT_OK ||
	    (st = check_field("l21", opts->set.l21, large)) != WEFT_OK ||
	    (st = check_field("ftrl_beta", opts->set.ftrl_beta, large)) != WEFT_OK) {
		return st;
	}
	if (is_ftrl(opts->kind) && opts->set.decay != 0.0) {
		return wf_fail(WEFT_INVALID, "decay %g of %s: give 0, ftrl has l2 for it",
			       opts->set.decay, names[opts->kind]);
	}
	if (!is_ftrl(opts->kind) && opts->set.l21 != 0.0) {
		return wf_fail(WEFT_INVALID, "l21 %g of %s: give 0, only ftrl_group has it",
			       opts->set.l21, names[opts->kind]);
	}
	return WEFT_OK;
}

static enum weft_status
no_closed_form(const struct wf_row_opts *opts, const char *why)
{
	return wf_fail(WEFT_UNSUPPORTED,
		       "steps missed by a row of %s have no closed form: %s, or take lazy rows",
		       names[opts->kind], why);
}

/* Whether a step without a gradient depends on the rate of that step. */
static bool
motion_has_rate(const struct wf_row_opts *opts)
{
	return opts->set.decay != 0.0 || opts->set.l1 != 0.0 || opts->set.l2 != 0.0;
}

static bool
is_adagrad(enum wf_row_optimizer kind)
{
	return kind == WF_ROW_ADAGRAD || kind == WF_ROW_ADAGRAD_ROWWISE;
}

static enum weft_status
check_closed_form(const struct wf_row_opts *opts)
{
	const bool constant = opts->schedule == WF_SCHEDULE_CONSTANT;

	if (opts->kind == WF_ROW_ADAM || opts->kind == WF_ROW_ADAM_ROWWISE) {
		return no_closed_form(opts, "give sgd, momentum, adagrad, rmsprop or ftrl");
	}
	if (is_ftrl(opts->kind)) {
		return WEFT_OK; /* values are a function of the state, which stays */
	}
	if (opts->kind == WF_ROW_RMSPROP && opts->set.decay != 0.0) {
		return no_closed_form(opts, "give decay 0"); /* its root changes */
	}
	if (is_adagrad(opts->kind) && opts->set.decay != 0.0 && opts->set.l1 != 0.0) {
		return no_closed_form(opts, "give decay 0 or l1 0");
	}
	if (is_adagrad(opts->kind) && opts->set.decay != 0.0 && !constant) {
		return no_closed_form(opts, "give decay 0 or schedule constant");
	}
	if (has_momentum(opts->kind) && opts->set.l1 != 0.0) {
		return no_closed_form(opts, "give l1 0");
	}
	if (opts->set.learning_rate * opts->set.decay >= 1.0) {
		return no_closed_form(opts, "give a decay below 1 / learning_rate");
	}
	return WEFT_OK;
}

/* Tables have no segments, and FTRL divides by its rate. */
static enum weft_status
check_row_schedule(const struct wf_row_opts *opts)
{
	if (opts->set.learning_rate == 0.0 && is_ftrl(opts->kind)) {
		return wf_fail(WEFT_INVALID,
			       "learning_rate 0 of %s: it divides by its rate; give one above 0",
			       names[opts->kind]);
	}
	if (opts->schedule == WF_SCHEDULE_MANUAL || opts->schedule == WF_SCHEDULE_PASS_MANUAL) {
		return wf_fail(WEFT_UNSUPPORTED,
			       "schedule %s: rows of tables have none by hand; give constant, "
			       "linear, warmup, poly, caffe_poly, exp or discexp",
			       wf_schedule_name(opts->schedule));
	}
	if (opts->schedule == WF_SCHEDULE_CAFFE_POLY && is_ftrl(opts->kind)) {
		return wf_fail(WEFT_UNSUPPORTED,
			       "schedule caffe_poly: ends at a rate of 0, by which %s would "
			       "divide; give poly, exp or discexp",
			       names[opts->kind]);
	}
	if (opts->schedule == WF_SCHEDULE_LINEAR && is_ftrl(opts->kind) &&
	    opts->set.schedule_a > 0.0 && !(opts->set.schedule_b > 0.0)) {
		return wf_fail(WEFT_UNSUPPORTED,
			       "schedule linear: ends at a rate of schedule_b, 0, by which %s "
			       "would divide; give a schedule_b above 0",
			       names[opts->kind]);
	}
	return WEFT_OK;
}

enum weft_status
wf_row_check(const struct wf_row_opts *opts)
{
	struct wf_optimizer_opts common = common_opts(opts);

	if ((unsigned)opts->kind >= WF_ROW_OPTIMIZER_COUNT) {
		return wf_fail(WEFT_INVALID, "row optimizer %d: give a number from 0 to %d",
			       (int)opts->kind, WF_ROW_OPTIMIZER_COUNT - 1);
	}
	enum weft_status st = check_row_schedule(opts);
	if (st == WEFT_OK) {
		st = wf_optimizer_check(&common);
	}
	if (st == WEFT_OK) {
		st = check_fields(opts);
	}
	if (st == WEFT_OK && (opts->set.dense_equivalent || opts->kind == WF_ROW_SPARSE_MOMENTUM)) {
		st = check_closed_form(opts);
	}
	return st;
}

const char *
wf_row_optimizer_name(enum wf_row_optimizer kind)
{
	WF_ASSERT((unsigned)kind < WF_ROW_OPTIMIZER_COUNT);
	return names[kind];
}

enum weft_status
wf_row_optimizer_parse(const char *name, enum wf_row_optimizer *out)
{
	for (unsigned i = 0; name != NULL && i < WF_ROW_OPTIMIZER_COUNT; i++) {
		if (strcmp(name, names[i]) == 0) {
			*out = (enum wf_row_optimizer)i;
			return WEFT_OK;
		}
	}
	return wf_fail(WEFT_INVALID,
		       "row optimizer \"%.32s\" is not known: give sgd, momentum, sparse_momentum, "
		       "adagrad, adagrad_rowwise, rmsprop, adam, adam_rowwise, ftrl or ftrl_group",
		       name == NULL ? "" : name);
}

size_t
wf_row_state_floats(enum wf_row_optimizer kind, size_t dim)
{
	switch (kind) {
	case WF_ROW_SGD:
		return 0;
	case WF_ROW_MOMENTUM:
	case WF_ROW_SPARSE_MOMENTUM:
	case WF_ROW_ADAGRAD:
		return dim;
	case WF_ROW_ADAGRAD_ROWWISE:
		return 1;
	case WF_ROW_ADAM_ROWWISE:
		return dim + 1;
	case WF_ROW_RMSPROP:
	case WF_ROW_ADAM:
	case WF_ROW_FTRL:
	case WF_ROW_FTRL_GROUP:
		return 2 * dim;
	case WF_ROW_OPTIMIZER_COUNT:
		break;
	}
	WF_ASSERT(false && "no such row optimizer");
	return 0;
}

double
wf_row_rate(const struct wf_row_opts *opts, uint64_t samples_before, uint64_t samples)
{
	struct wf_optimizer_opts common = common_opts(opts);
	return wf_learning_rate(&common, samples_before, samples, 0);
}

void
wf_row_scalars_fill(const struct wf_row_opts *opts, double rate, float divisor, uint64_t updates,
		    struct wf_row_scalars *out)
{
	struct wf_optimizer_opts common = common_opts(opts);
	struct wf_apply dense = {0};
	bool adam = opts->kind == WF_ROW_ADAM || opts->kind == WF_ROW_ADAM_ROWWISE;

	common.method.kind = adam ? WF_ADAM : WF_SGD;
	wf_apply_scalars(&common, rate, updates, &dense);
	*out = (struct wf_row_scalars){
		.divisor = divisor,
		.clip = (float)opts->set.clip,
		.rate = dense.rate,
		.decay = (float)opts->set.decay,
		.momentum = dense.momentum,
		.beta1 = dense.beta1,
		.beta2 = dense.beta2,
		.rho = (float)opts->set.rho,
		.square_share = 1.0f - (float)opts->set.rho,
		.epsilon = dense.epsilon,
		.drop = is_ftrl(opts->kind) ? 0.0f : dense.plain_rate * (float)opts->set.l1,
		.shrink = is_ftrl(opts->kind) ? 1.0f : (float)(1.0 / (1.0 + rate * opts->set.l2)),
		.l1 = (float)opts->set.l1,
		.l2 = (float)opts->set.l2,
		.l21 = (float)opts->set.l21,
		.ftrl_beta = (float)opts->set.ftrl_beta,
	};
}

static bool
moves(const struct wf_row_opts *opts)
{
	return opts->set.dense_equivalent || opts->kind == WF_ROW_SPARSE_MOMENTUM;
}

bool
wf_row_motion_varies(const struct wf_row_opts *opts)
{
	return moves(opts) && motion_has_rate(opts) && !is_ftrl(opts->kind) &&
	       opts->schedule != WF_SCHEDULE_CONSTANT;
}

/* Uses the kernels' numbers, rounded to f32: a shrink of 0.9995 is off by 3e-8 as f32, which a
 * thousand steps turn into 3e-5. */
struct wf_row_motion
wf_row_motion_at(const struct wf_row_opts *opts, double rate)
{
	struct wf_row_motion motion = {.kind = WF_ROW_STILL, .ww = 1.0, .mm = 1.0, .steps = 1};
	struct wf_row_scalars k;

	if (!moves(opts) || is_ftrl(opts->kind)) {
		return motion;
	}
	wf_row_scalars_fill(opts, rate, 1.0f, 1, &k);
	const double decayed = (double)k.rate * (double)k.decay;
	const double shrink = (double)k.shrink;
	if (has_momentum(opts->kind)) {
		/* m = mu m - rate decay w; w = (w + m) shrink */
		motion.kind = WF_ROW_LINEAR;
		motion.mm = (double)k.momentum;
		motion.mw = -decayed;
		motion.wm = motion.mm * shrink;
		motion.ww = (1.0 + motion.mw) * shrink;
	} else if (is_adagrad(opts->kind) && opts->set.decay != 0.0) {
		motion.kind = opts->kind == WF_ROW_ADAGRAD ? WF_ROW_ROOTED : WF_ROW_ROOTED_ROWWISE;
		motion.mw = -decayed;
		motion.ww = shrink;
		motion.epsilon = k.epsilon;
	} else if (motion_has_rate(opts) || opts->kind == WF_ROW_RMSPROP) {
		motion.kind = opts->kind == WF_ROW_RMSPROP ? WF_ROW_FADE : WF_ROW_SHRINK;
		motion.mm = opts->kind == WF_ROW_RMSPROP ? (double)k.rho : 1.0;
		motion.ww = (1.0 - decayed) * shrink;
		motion.drop = (double)k.drop * shrink;
	}
	return motion;
}

struct wf_row_motion
wf_row_motion_of(const struct wf_row_opts *opts)
{
	return wf_row_motion_at(opts, opts->set.learning_rate);
}

static bool
is_rooted(const struct wf_row_motion *motion)
{
	return motion->kind == WF_ROW_ROOTED || motion->kind == WF_ROW_ROOTED_ROWWISE;
}

struct wf_row_motion
wf_row_motion_chain(const struct wf_row_motion *a, const struct wf_row_motion *b)
{
	WF_ASSERT(!is_rooted(a) && a->kind == b->kind);
	return (struct wf_row_motion){
		.kind = a->kind,
		.ww = b->ww * a->ww + b->wm * a->mw,
		.wm = b->ww * a->wm + b->wm * a->mm,
		.mw = b->mw * a->ww + b->mm * a->mw,
		.mm = b->mw * a->wm + b->mm * a->mm,
		.drop = b->ww * a->drop + b->drop,
		.steps = a->steps + b->steps,
	};
}

struct wf_row_motion
wf_row_motion_power(const struct wf_row_motion *step, uint64_t steps)
{
	struct wf_row_motion power = {.kind = step->kind, .ww = 1.0, .mm = 1.0};
	struct wf_row_motion square = *step;

	if (is_rooted(step)) {
		square.steps *= steps;
		return square;
	}
	for (; steps > 0 && step->kind != WF_ROW_STILL; steps >>= 1) {
		if ((steps & 1) != 0) {
			power = wf_row_motion_chain(&power, &square);
		}
		square = wf_row_motion_chain(&square, &square);
	}
	return power;
}

/* A value that reaches zero stays there: if it went below on the way, it is below at the end. */
static inline float
shrunk(const struct wf_row_motion *motion, float w)
{
	double size = (double)(w < 0.0f ? -w : w) * motion->ww - motion->drop;
	float rest = (float)(size > 0.0 ? size : 0.0);
	return w != w ? w : (w < 0.0f ? -rest : rest);
}

/* The factor that one accumulator applies to its values. */
static double
rooted_factor(const struct wf_row_motion *motion, float accumulator)
{
	const double root = (double)__builtin_sqrtf(accumulator + motion->epsilon);
	double square = (1.0 + motion->mw / root) * motion->ww;
	double power = 1.0;

	for (uint64_t steps = motion->steps; steps > 0; steps >>= 1) {
		power = (steps & 1) != 0 ? power * square : power;
		square *= square;
	}
	return power;
}

static void
look_rooted(const struct wf_row_motion *motion, float *out, const float *row, size_t dim)
{
	const bool rowwise = motion->kind == WF_ROW_ROOTED_ROWWISE;
	const float *accumulator = row + dim;
	double factor = 1.0;

	for (size_t i = 0; i < dim && motion->steps > 0; i++) {
		if (!rowwise || i == 0) {
			factor = rooted_factor(motion, accumulator[i]);
		}
		out[i] = (float)((double)row[i] * factor);
	}
	if (motion->steps == 0 && out != row) {
		memcpy(out, row, dim * sizeof(*out));
	}
}

void
wf_row_look(const struct wf_row_motion *motion, float *out, const float *row, size_t dim)
{
	const float *m = row + dim;

	switch (motion->kind) {
	case WF_ROW_SHRINK:
	case WF_ROW_FADE:
		for (size_t i = 0; i < dim; i++) {
			out[i] = shrunk(motion, row[i]);
		}
		return;
	case WF_ROW_LINEAR:
		for (size_t i = 0; i < dim; i++) {
			double w = (double)row[i];
			out[i] = (float)(motion->ww * w + motion->wm * (double)m[i]);
		}
		return;
	case WF_ROW_ROOTED:
	case WF_ROW_ROOTED_ROWWISE:
		look_rooted(motion, out, row, dim);
		return;
	case WF_ROW_STILL:
		memcpy(out, row, dim * sizeof(*out));
		return;
	}
}

void
wf_row_move(const struct wf_row_motion *motion, float *row, size_t dim)
{
	float *m = row + dim;

	switch (motion->kind) {
	case WF_ROW_STILL:
		return;
	case WF_ROW_SHRINK:
		wf_row_look(motion, row, row, dim);
		return;
	case WF_ROW_LINEAR:
		for (size_t i = 0; i < dim; i++) {
			double w = (double)row[i];
			double next = motion->mw * w + motion->mm * (double)m[i];
			row[i] = (float)(motion->ww * w + motion->wm * (double)m[i]);
			m[i] = (float)next;
		}
		return;
	case WF_ROW_FADE:
		wf_row_look(motion, row, row, dim);
		for (size_t i = 0; i < 2 * dim; i++) {
			m[i] = (float)((double)m[i] * motion->mm);
		}
		return;
	case WF_ROW_ROOTED:
	case WF_ROW_ROOTED_ROWWISE:
		look_rooted(motion, row, row, dim);
		return;
	}
}
