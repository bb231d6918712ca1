/* SPDX-License-Identifier: Apache-2.0 */
/* settings_rules: the rules between settings of a session, each once. Texts name settings and
 * values as on command lines. Thread: any. */
#include "base/settings.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/optimizer.h"

struct wf_setting_text
wf_setting_text(const struct wf_session_values *values, const char *name)
{
	struct wf_setting_text out;
	unsigned count = 0;
	const struct wf_option *table = wf_settings_rows(WEFT_SETTINGS_SESSION, &count);
	for (unsigned i = 0; i < count; i++) {
		if (strcmp(table[i].name, name) == 0) {
			wf_option_value(&table[i], values, out.text, sizeof(out.text));
			return out;
		}
	}
	WF_ASSERT(false); /* the name is not in the table */
	return out;
}

/* Refuses `name`, which is not at its default, because it "goes with" other settings only. */
static enum weft_status
refuse(const struct wf_session_values *values, const char *name, const char *rule)
{
	return wf_fail(WEFT_INVALID, "%s=%s with dense_mode=%s: %s", name,
		       wf_setting_text(values, name).text,
		       wf_setting_text(values, "dense_mode").text, rule);
}

enum weft_status
wf_session_place_check(const struct weft_session_opts *opts)
{
	if (opts->trainer_id >= opts->num_gradient_servers) {
		return wf_fail(WEFT_INVALID,
			       "trainer_id=%" PRIu32
			       ": must be less than num_gradient_servers=%" PRIu32
			       ", the number of trainers",
			       opts->trainer_id, opts->num_gradient_servers);
	}
	return WEFT_OK;
}

static enum weft_status
check_steps(const struct wf_session_values *values)
{
	const struct weft_session_opts *opts = &values->opts;
	const bool local = wf_session_has_local_steps(opts);
	if (local != (opts->local_steps > 0)) {
		return refuse(values, "local_steps",
			      local ? "give 1 or more"
				    : "it goes with dense_mode=local and dense_mode=elastic");
	}
	if (opts->elastic_rate > 0 && opts->dense_mode != WEFT_DENSE_ELASTIC) {
		return refuse(values, "elastic_rate", "it goes with dense_mode=elastic");
	}
	return WEFT_OK;
}

void
wf_session_set_lag(struct weft_session_opts *opts, uint32_t staleness, double discard_ratio)
{
	if (opts->dense_mode == WEFT_DENSE_ASYNC || opts->dense_mode == WEFT_DENSE_BOUNDED) {
		opts->dense_discard_ratio = discard_ratio;
	}
	if (opts->dense_mode == WEFT_DENSE_BOUNDED) {
		opts->dense_staleness = staleness;
	}
	if (opts->sparse_mode != WEFT_SPARSE_SYNC) {
		opts->sparse_discard_ratio = discard_ratio;
	}
	if (opts->sparse_mode == WEFT_SPARSE_BOUNDED) {
		opts->sparse_staleness = staleness;
	}
}

static enum weft_status
check_lag(const struct wf_session_values *values)
{
	const struct weft_session_opts *opts = &values->opts;
	const bool bounded = opts->dense_mode == WEFT_DENSE_BOUNDED;
	const bool lags = bounded || opts->dense_mode == WEFT_DENSE_ASYNC;
	if (opts->dense_staleness > 0 && !bounded) {
		return refuse(values, "dense_staleness", "it goes with dense_mode=bounded");
	}
	if (opts->dense_discard_ratio > 0 && !lags) {
		return refuse(values, "dense_discard_ratio",
			      "it goes with dense_mode=async and dense_mode=bounded");
	}
	return WEFT_OK;
}

/* Settings of the optimizer that need whole steps of tensors, and why. */
static const struct whole {
	const char *name;
	bool (*is_on)(const struct weft_optimizer_opts *set);
	const char *of_session, *of_tensor, *of_rows;
} wholes[] = {
	{"clip_norm", wf_optimizer_clips_norm,
	 "there is a whole gradient in the synchronous mode only; give 0",
	 "with clip_norm the gradient is of all tensors in one step",
	 "gradients of rows are no part of the norm"},
	{"average_window", wf_optimizer_averages,
	 "averages are kept in the synchronous mode only; give 0",
	 "with average_window averages are of whole steps", "rows of tables have no averages"},
};

/* The first of these that is on; NULL: none. */
static const struct whole *
first_whole(const struct weft_optimizer_opts *set)
{
	for (unsigned i = 0; i < WF_ARRAY_COUNT(wholes); i++) {
		if (wholes[i].is_on(set)) {
			return &wholes[i];
		}
	}
	return NULL;
}

/* With a staleness of 0 a trainer makes the same steps as all others. */
enum weft_status
wf_step_rules_check(const struct wf_session_values *values)
{
	const struct weft_session_opts *opts = &values->opts;
	const bool strict = opts->dense_mode == WEFT_DENSE_SYNC ||
			    (opts->dense_mode == WEFT_DENSE_BOUNDED && opts->dense_staleness == 0);
	const struct whole *whole = strict ? NULL : first_whole(&opts->optimizer);
	return whole != NULL ? refuse(values, whole->name, whole->of_session) : WEFT_OK;
}

const char *
wf_whole_steps_why(const struct weft_optimizer_opts *set)
{
	const struct whole *whole = first_whole(set);
	return whole != NULL ? whole->of_tensor : NULL;
}

enum weft_status
wf_row_rules_check(const struct wf_session_values *values)
{
	const struct whole *whole = first_whole(&values->opts.optimizer);
	return whole == NULL
		       ? WEFT_OK
		       : wf_fail(WEFT_INVALID, "%s=%s: %s", wf_setting_option_name(whole->name),
				 wf_setting_text(values, whole->name).text, whole->of_rows);
}

enum weft_status
wf_mode_rules_check(const struct wf_session_values *values)
{
	const struct weft_session_opts *opts = &values->opts;
	if (opts->dense_rounding != WEFT_ROUND_NEAREST && opts->dense_wire == WEFT_WIRE_F32) {
		return wf_fail(WEFT_INVALID,
			       "dense_rounding=%s: f32 is not rounded; it goes with "
			       "dense_wire=bf16 and f16",
			       wf_setting_text(values, "dense_rounding").text);
	}
	enum weft_status st = check_steps(values);
	return st == WEFT_OK ? check_lag(values) : st;
}

enum weft_status
wf_session_rules_check(const struct wf_session_values *values)
{
	enum weft_status st = wf_mode_rules_check(values);
	return st == WEFT_OK ? wf_step_rules_check(values) : st;
}

#define ELASTIC_SHARE 0.9 /* share of the distance to the center, over all trainers together */

void
wf_session_settle(struct weft_session_opts *opts)
{
	if (opts->dense_mode == WEFT_DENSE_BOUNDED && opts->dense_staleness == 0) {
		/* With a staleness of 0 all trainers make the same steps. */
		opts->dense_mode = WEFT_DENSE_SYNC;
		opts->dense_discard_ratio = 0;
	}
	if (opts->dense_mode == WEFT_DENSE_ELASTIC && opts->elastic_rate == 0) {
		opts->elastic_rate = ELASTIC_SHARE / opts->num_gradient_servers;
	}
}

enum weft_status
wf_session_settled_check(const struct wf_session_values *values)
{
	const struct weft_session_opts *opts = &values->opts;
	if (opts->dense_mode == WEFT_DENSE_BOUNDED && opts->dense_staleness == 0) {
		return refuse(values, "dense_staleness", "it must be above 0");
	}
	if (opts->dense_mode == WEFT_DENSE_ELASTIC && opts->elastic_rate == 0) {
		return refuse(values, "elastic_rate", "it must be above 0");
	}
	return WEFT_OK;
}
