/* SPDX-License-Identifier: Apache-2.0 */
/* tensor: the tensors of a session: how they are declared, and where their arrays are. Thread: the
 * owner's. */
#include "trainer/session/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "trainer/session/gate.h"

enum weft_status
wf_tensors_grow(struct weft_session *session)
{
	struct wf_job *job = &session->core.job;
	uint32_t old = session->tensor_capacity;
	if (job->tensor_count < old) {
		return WEFT_OK;
	}
	uint32_t capacity = old == 0 ? 16 : old * 2;
	struct weft_tensor **tensor =
		wf_zalloc_array(session->core.end.env, capacity, sizeof(struct weft_tensor *));
	struct wf_job_tensor *declared =
		wf_zalloc_array(session->core.end.env, capacity, sizeof(*declared));
	struct wf_names names;
	if (tensor == NULL || declared == NULL ||
	    wf_names_init(session->core.end.env, capacity, &names) != WEFT_OK) {
		wf_free(session->core.end.env, tensor, capacity * sizeof(struct weft_tensor *));
		wf_free(session->core.end.env, declared, capacity * sizeof(*declared));
		return wf_fail(WEFT_NOMEM, "session: no memory for %u tensors", capacity);
	}
	if (old > 0) {
		memcpy(tensor, session->tensor, old * sizeof(struct weft_tensor *));
		memcpy(declared, job->tensor, old * sizeof(*declared));
	}
	wf_free(session->core.end.env, session->tensor, old * sizeof(struct weft_tensor *));
	wf_free(session->core.end.env, job->tensor, old * sizeof(*declared));
	session->tensor = tensor;
	session->tensor_capacity = capacity;
	job->tensor = declared;
	wf_names_fini(session->core.end.env, &session->names);
	session->names = names;
	for (uint32_t i = 0; i < job->tensor_count; i++) { /* where they are now */
		(void)wf_names_add(&session->names, job->tensor[i].name);
	}
	return WEFT_OK;
}

static enum weft_status
check_name(const char *name)
{
	size_t length = name != NULL ? strlen(name) : 0;
	if (length == 0 || length >= WF_TENSOR_NAME_BYTES) {
		return wf_fail(WEFT_INVALID,
			       "tensor \"%.40s%s\": its name has %zu characters, 1 to %d are "
			       "allowed",
			       length > 0 ? name : "", length > 40 ? "..." : "", length,
			       WF_TENSOR_NAME_BYTES - 1);
	}
	for (size_t i = 0; i < length; i++) {
		if (name[i] <= 0x20 || name[i] > 0x7e) {
			return wf_fail(WEFT_INVALID,
				       "tensor \"%s\": byte %zu of its name is 0x%02x; printable "
				       "ASCII without spaces is needed",
				       name, i, (unsigned char)name[i]);
		}
	}
	return WEFT_OK;
}

/* The setting `shape`. */
static enum weft_status
check_shape(const struct wf_tensor_values *values, uint64_t count)
{
	struct wf_shape shape;
	if (values->shape[0] == '\0') {
		return WEFT_OK;
	}
	if (!wf_shape_parse(values->shape, &shape)) {
		return wf_fail(WEFT_INVALID,
			       "tensor %s: shape %.100s: must be up to %u dimensions like 4,3,3,3, "
			       "or () for a scalar",
			       values->opts.name, values->shape, WF_SHAPE_DIMS_MAX);
	}
	if (wf_shape_elements(&shape) != count) {
		return wf_fail(WEFT_INVALID,
			       "tensor %s: shape %.100s has %" PRIu64
			       " elements, rows and cols are %" PRIu64,
			       values->opts.name, values->shape, wf_shape_elements(&shape), count);
	}
	return WEFT_OK;
}

static enum weft_status
check_tensor(struct weft_session *session, const struct wf_tensor_values *values)
{
	const struct wf_job *job = &session->core.job;
	const struct weft_tensor_opts *opts = &values->opts;
	uint64_t cols = opts->cols == 0 ? 1 : opts->cols;
	if (session->sealed) {
		return wf_fail(WEFT_INVALID, "tensor %s is added after weft_session_seal",
			       opts->name != NULL ? opts->name : "");
	}
	enum weft_status st = check_name(opts->name);
	if (st != WEFT_OK) {
		return st;
	}
	if (wf_names_find(&session->names, opts->name) != WF_NAMES_NONE) {
		return wf_fail(WEFT_INVALID, "tensor %s is declared twice", opts->name);
	}
	if (opts->rows == 0 || cols > WF_TENSOR_ELEMENTS_MAX ||
	    opts->rows > WF_TENSOR_ELEMENTS_MAX / cols) {
		return wf_fail(WEFT_INVALID,
			       "tensor %s: %" PRIu64 " x %" PRIu64 " elements, 1 to %llu are "
			       "allowed",
			       opts->name, opts->rows, cols, WF_TENSOR_ELEMENTS_MAX);
	}
	if (job->tensor_count == WF_TENSOR_COUNT_MAX) {
		return wf_fail(WEFT_INVALID, "tensor %s: more than %u tensors", opts->name,
			       WF_TENSOR_COUNT_MAX);
	}
	if (values->in_place && opts->is_reduced == 0) {
		return wf_fail(
			WEFT_INVALID,
			"tensor %s: in_place: the answers to a tensor that is not reduced are "
			"its parameters; set is_reduced, too",
			opts->name);
	}
	st = wf_settings_check(WEFT_SETTINGS_TENSOR, values);
	return st == WEFT_OK ? check_shape(values, opts->rows * cols)
			     : wf_fail(st, "tensor %s: %s", opts->name, weft_last_error());
}

/* 0 means the job's setting, which the job keeps as a negative number; a negative number means
 * none. */
static double
own_or_job(double value)
{
	if (value > 0) {
		return value;
	}
	return value == 0 ? -1 : 0;
}

/* As the job's description has it. */
static enum weft_status
describe_tensor(const struct wf_job *job, const struct weft_tensor_opts *opts,
		struct wf_job_tensor *out)
{
	*out = (struct wf_job_tensor){
		.count = opts->rows * (opts->cols == 0 ? 1 : opts->cols),
		.rate_multiplier = opts->rate_multiplier == 0 ? 1 : opts->rate_multiplier,
		.decay = own_or_job(opts->decay),
		.clip = own_or_job(opts->clip),
		.l1 = own_or_job(opts->l1),
		.priority = opts->priority,
	};
	(void)snprintf(out->name, sizeof(out->name), "%s", opts->name);
	return wf_modes_fill_tensor(job, opts, out);
}

enum weft_status
weft_tensor_add(struct weft_session *session, const struct weft_tensor_opts *given,
		struct weft_tensor **out)
{
	WF_ENTER(session);
	struct wf_job *job = &session->core.job;
	struct wf_job_tensor declared;
	struct wf_tensor_values values = {.opts = *given, .shape = ""};
	const struct weft_tensor_opts *opts = &values.opts;
	enum weft_status st = wf_settings_apply(given->settings, WEFT_SETTINGS_TENSOR, &values);
	if (st == WEFT_OK) {
		st = check_tensor(session, &values);
	}
	if (st == WEFT_OK) {
		st = describe_tensor(job, opts, &declared);
		declared.is_in_place = values.in_place;
	}
	if (st == WEFT_OK) {
		st = wf_tensors_grow(session);
	}
	if (st != WEFT_OK) {
		return st;
	}
	struct weft_tensor *tensor = wf_zalloc(session->core.end.env, sizeof(*tensor));
	if (tensor == NULL) {
		return wf_fail(WEFT_NOMEM, "tensor %s: %zu bytes", opts->name, sizeof(*tensor));
	}
	*tensor = (struct weft_tensor){
		.session = session,
		.idx = job->tensor_count,
		.rows = opts->rows,
		.cols = opts->cols == 0 ? 1 : opts->cols,
	};
	(void)snprintf(tensor->shape, sizeof(tensor->shape), "%s", values.shape);
	session->tensor[job->tensor_count] = tensor;
	job->tensor[job->tensor_count++] = declared;
	(void)wf_names_add(&session->names, job->tensor[tensor->idx].name);
	*out = tensor;
	return WEFT_OK;
}

float *
weft_tensor_param(struct weft_tensor *tensor)
{
	const struct wf_core *core = &tensor->session->core;
	if (!tensor->session->sealed) {
		return NULL;
	}
	return (float *)((char *)core->memory.section[0].base + core->memory.offset[tensor->idx]);
}

float *
weft_tensor_grad(struct weft_tensor *tensor)
{
	const struct wf_core *core = &tensor->session->core;
	if (!tensor->session->sealed || core->job.tensor[tensor->idx].is_static) {
		return NULL;
	}
	if (core->job.tensor[tensor->idx].is_in_place) {
		return weft_tensor_param(tensor);
	}
	return (float *)((char *)core->memory.grad.base + core->memory.offset[tensor->idx]);
}

uint64_t
weft_tensor_count(const struct weft_tensor *tensor)
{
	return tensor->session->core.job.tensor[tensor->idx].count;
}

const char *
weft_tensor_name(const struct weft_tensor *tensor)
{
	return tensor->session->core.job.tensor[tensor->idx].name;
}
