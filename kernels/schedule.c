/* SPDX-License-Identifier: Apache-2.0 */
/* schedule: the learning rate of a step as a function of samples and passes, and the limits of its
 * settings. pow is this folder's own, so that all lanes compute the same bits. Thread: any. */
#include "kernels/optimizer.h"

#include <float.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "kernels/kernels.h"
#include "kernels/limits.h"

static const char *const names[WF_SCHEDULE_COUNT] = {
	[WF_SCHEDULE_CONSTANT] = "constant",       [WF_SCHEDULE_LINEAR] = "linear",
	[WF_SCHEDULE_WARMUP] = "warmup",           [WF_SCHEDULE_POLY] = "poly",
	[WF_SCHEDULE_CAFFE_POLY] = "caffe_poly",   [WF_SCHEDULE_EXP] = "exp",
	[WF_SCHEDULE_DISCEXP] = "discexp",         [WF_SCHEDULE_MANUAL] = "manual",
	[WF_SCHEDULE_PASS_MANUAL] = "pass_manual",
};

const char *
wf_schedule_name(enum wf_schedule schedule)
{
	WF_ASSERT((unsigned)schedule < WF_SCHEDULE_COUNT);
	return names[schedule];
}

enum weft_status
wf_schedule_parse(const char *name, enum wf_schedule *out)
{
	for (unsigned i = 0; name != NULL && i < WF_SCHEDULE_COUNT; i++) {
		if (strcmp(name, names[i]) == 0) {
			*out = (enum wf_schedule)i;
			return WEFT_OK;
		}
	}
	return wf_fail(WEFT_INVALID,
		       "schedule \"%.32s\" is not known: give constant, linear, warmup, poly, "
		       "caffe_poly, exp, discexp, manual or pass_manual",
		       name == NULL ? "" : name);
}

/* The meaning of a and b in each schedule; NULL: it has none. */
static const struct {
	const char *a, *b;
} arguments[WF_SCHEDULE_COUNT] = {
	[WF_SCHEDULE_LINEAR] = {"schedule_a (of schedule linear: loss of rate per sample)",
				"schedule_b (of schedule linear: the least rate)"},
	[WF_SCHEDULE_WARMUP] = {"schedule_a (of schedule warmup: samples until the full rate)",
				NULL},
	[WF_SCHEDULE_POLY] = {"schedule_a (of schedule poly: growth of the base per sample)",
			      "schedule_b (of schedule poly: the exponent)"},
	[WF_SCHEDULE_CAFFE_POLY] = {"schedule_a (of schedule caffe_poly: samples until the rate "
				    "is 0)",
				    "schedule_b (of schedule caffe_poly: the exponent)"},
	[WF_SCHEDULE_EXP] = {"schedule_a (of schedule exp: what is left after schedule_b samples)",
			     "schedule_b (of schedule exp: samples)"},
	[WF_SCHEDULE_DISCEXP] = {"schedule_a (of schedule discexp: what is left after schedule_b "
				 "samples)",
				 "schedule_b (of schedule discexp: samples)"},
};

/* A base above 1 would end in an infinite rate. */
static enum weft_status
check_base(const char *field, double value)
{
	if (value >= (double)FLT_MIN && value <= 1.0) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_INVALID, "%s %g: give a number above 0, and at most 1", field, value);
}

static enum weft_status
check_segments(const struct wf_optimizer_opts *opts)
{
	const char *name = names[opts->method.schedule];

	if (opts->method.segment_count < 1 || opts->method.segment_count > WF_SEGMENTS_MAX) {
		return wf_fail(WEFT_INVALID,
			       "schedule %s has %" PRIu32
			       " segments: give 1 to %d, as until:factor,until:factor",
			       name, opts->method.segment_count, WF_SEGMENTS_MAX);
	}
	for (uint32_t i = 0; i < opts->method.segment_count; i++) {
		const struct wf_segment *segment = &opts->method.segment[i];
		if (i > 0 && segment->until <= opts->method.segment[i - 1].until) {
			return wf_fail(WEFT_INVALID,
				       "schedule %s: a segment until %" PRIu64
				       " follows one until %" PRIu64 ": give them in order",
				       name, segment->until, opts->method.segment[i - 1].until);
		}
		enum weft_status st = wf_check_not_negative("factor of a segment", segment->factor);
		if (st == WEFT_OK && opts->set.learning_rate * segment->factor > (double)FLT_MAX) {
			st = wf_fail(WEFT_INVALID, "factor of a segment %g: give a smaller one",
				     segment->factor);
		}
		if (st != WEFT_OK) {
			return st;
		}
	}
	return WEFT_OK;
}

enum weft_status
wf_schedule_check(const struct wf_optimizer_opts *opts)
{
	enum weft_status st = WEFT_OK;

	if ((unsigned)opts->method.schedule >= WF_SCHEDULE_COUNT) {
		return wf_fail(WEFT_INVALID, "schedule %d: give a number from 0 to %d",
			       (int)opts->method.schedule, WF_SCHEDULE_COUNT - 1);
	}
	const char *a = arguments[opts->method.schedule].a;
	const char *b = arguments[opts->method.schedule].b;
	switch (opts->method.schedule) {
	case WF_SCHEDULE_CONSTANT:
	case WF_SCHEDULE_COUNT:
		return WEFT_OK;
	case WF_SCHEDULE_LINEAR:
	case WF_SCHEDULE_POLY:
		st = wf_check_not_negative(a, opts->set.schedule_a);
		return st == WEFT_OK ? wf_check_not_negative(b, opts->set.schedule_b) : st;
	case WF_SCHEDULE_WARMUP:
		return wf_check_positive(a, opts->set.schedule_a);
	case WF_SCHEDULE_CAFFE_POLY:
		st = wf_check_positive(a, opts->set.schedule_a);
		return st == WEFT_OK ? wf_check_not_negative(b, opts->set.schedule_b) : st;
	case WF_SCHEDULE_EXP:
	case WF_SCHEDULE_DISCEXP:
		st = check_base(a, opts->set.schedule_a);
		return st == WEFT_OK ? wf_check_positive(b, opts->set.schedule_b) : st;
	case WF_SCHEDULE_MANUAL:
	case WF_SCHEDULE_PASS_MANUAL:
		return check_segments(opts);
	}
	return st;
}

static enum weft_status
bad_segment(const char *text, const char *at)
{
	return wf_fail(
		WEFT_INVALID,
		"segments \"%.80s\", at \"%.20s\": give up to %d of until:factor, with commas "
		"between, as 1000:1,2000:0.5",
		text, at, WF_SEGMENTS_MAX);
}

/* strtoull and strtod also accept blanks, signs and "inf". */
static bool
begins_number(const char *at)
{
	return (*at >= '0' && *at <= '9') || *at == '.';
}

enum weft_status
wf_segments_parse(const char *text, struct wf_segment *out, uint32_t *out_count)
{
	const char *at = text;
	uint32_t count = 0;

	while (*at != '\0') {
		char *end = NULL;
		if (count == WF_SEGMENTS_MAX || !begins_number(at) || *at == '.') {
			return bad_segment(text, at);
		}
		unsigned long long until = strtoull(at, &end, 10);
		if (end == at || end - at > 19 || *end != ':' || !begins_number(end + 1)) {
			return bad_segment(text, at);
		}
		const char *factor = end + 1;
		out[count++] = (struct wf_segment){.until = until, .factor = strtod(factor, &end)};
		bool more = *end == ',' && end[1] != '\0';
		if (end == factor || (*end != '\0' && !more)) {
			return bad_segment(text, at);
		}
		at = more ? end + 1 : end;
	}
	*out_count = count;
	return WEFT_OK;
}

static double
factor_at(const struct wf_optimizer_opts *opts, uint64_t n)
{
	uint32_t last = opts->method.segment_count - 1;
	uint32_t i = 0;

	WF_ASSERT(opts->method.segment_count > 0);
	while (i < last && n > opts->method.segment[i].until) {
		i++;
	}
	return opts->method.segment[i].factor;
}

/* From 2^53 on an f64 has no fraction. */
static double
whole(double x)
{
	return x < 0x1p53 ? (double)(uint64_t)x : x;
}

double
wf_scheduled_rate(const struct wf_optimizer_opts *opts, uint64_t samples_before, uint64_t samples,
		  uint64_t pass)
{
	const double rate = opts->set.learning_rate;
	const double a = opts->set.schedule_a;
	const double b = opts->set.schedule_b;
	const double n = (double)samples_before;

	switch (opts->method.schedule) {
	case WF_SCHEDULE_CONSTANT: /* wf_learning_rate's */
		break;
	case WF_SCHEDULE_LINEAR:
		return rate - a * n > b ? rate - a * n : b;
	case WF_SCHEDULE_WARMUP:
		return (n + (double)samples) / a < 1.0 ? rate * ((n + (double)samples) / a) : rate;
	case WF_SCHEDULE_POLY:
		return rate * wf_pow_f64(1.0 + a * n, -b);
	case WF_SCHEDULE_CAFFE_POLY:
		return n < a ? rate * wf_pow_f64(1.0 - n / a, b) : 0.0;
	case WF_SCHEDULE_EXP:
		return rate * wf_pow_f64(a, n / b);
	case WF_SCHEDULE_DISCEXP:
		return rate * wf_pow_f64(a, whole(n / b));
	case WF_SCHEDULE_MANUAL:
		return rate * factor_at(opts, samples_before);
	case WF_SCHEDULE_PASS_MANUAL:
		return rate * factor_at(opts, opts->set.first_pass + pass);
	case WF_SCHEDULE_COUNT:
		break;
	}
	WF_ASSERT(false && "no such schedule");
	return 0.0;
}
