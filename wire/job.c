/* SPDX-License-Identifier: Apache-2.0 */
/* job: check, encode, decode and digest the job description. Thread: any; not on the data path. */
#include "wire/job.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/digest.h"
#include "wire/bytes.h"
#include "wire/shape.h"

#define JOB "job"
#define JOB_FIXED_BYTES 106 /* in front of the tensors */
#define TENSOR_BYTES_MIN 36 /* of a tensor whose name has one character */
#define TENSOR_BYTES_MAX (TENSOR_BYTES_MIN - 1 + WF_TENSOR_NAME_BYTES - 1)
#define NAMES_PER_PASS 2048 /* of the search for names that come twice */

static enum weft_status
check_name(const struct wf_job_tensor *tensor, uint32_t idx)
{
	size_t length = strnlen(tensor->name, WF_TENSOR_NAME_BYTES);

	if (length == 0 || length == WF_TENSOR_NAME_BYTES) {
		return wf_fail(WEFT_INVALID,
			       "tensor %" PRIu32 ": its name has %zu characters, must be 1 to %d",
			       idx, length, WF_TENSOR_NAME_BYTES - 1);
	}
	for (size_t i = 0; i < length; i++) {
		uint8_t byte = (uint8_t)tensor->name[i];
		if (byte <= 0x20 || byte > 0x7e) {
			return wf_fail(WEFT_INVALID,
				       "tensor %" PRIu32
				       ": byte %zu of its name is 0x%02x, must be "
				       "printable ASCII and no space",
				       idx, i, byte);
		}
	}
	return WEFT_OK;
}

static enum weft_status
check_tensor(const struct wf_job_tensor *tensor, uint32_t idx)
{
	enum weft_status st = check_name(tensor, idx);
	if (st != WEFT_OK) {
		return st;
	}
	if (tensor->count == 0 || tensor->count > WF_TENSOR_ELEMENTS_MAX) {
		return wf_fail(WEFT_INVALID,
			       "tensor %s: count is %" PRIu64 " elements, must be 1 to %llu",
			       tensor->name, tensor->count, WF_TENSOR_ELEMENTS_MAX);
	}
	const struct {
		const char *name;
		double value;
	} number[] = {
		{"rate_multiplier", tensor->rate_multiplier},
		{"decay", tensor->decay},
		{"clip", tensor->clip},
	};
	for (size_t i = 0; i < WF_ARRAY_COUNT(number); i++) {
		if (!isfinite(number[i].value)) {
			return wf_fail(WEFT_INVALID, "tensor %s: %s is %g, must be finite",
				       tensor->name, number[i].name, number[i].value);
		}
	}
	return WEFT_OK;
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names first .. first + count - 1 among themselves and against all later ones. */
static enum weft_status
check_names_from(const struct wf_job *job, uint32_t first, uint32_t count)
{
	const char *name[NAMES_PER_PASS];
	const char *twice = NULL;

	for (uint32_t i = 0; i < count; i++) {
		name[i] = job->tensor[first + i].name;
	}
	qsort(name, count, sizeof(name[0]), compare_names);
	for (uint32_t i = 1; i < count && twice == NULL; i++) {
		twice = strcmp(name[i - 1], name[i]) == 0 ? name[i] : NULL;
	}
	for (uint32_t t = first + count; t < job->tensor_count && twice == NULL; t++) {
		const char *other = job->tensor[t].name;
		if (bsearch(&other, name, count, sizeof(name[0]), compare_names) != NULL) {
			twice = other;
		}
	}
	if (twice != NULL) {
		return wf_fail(WEFT_INVALID,
			       "tensor %s: two tensors have this name, each needs its own", twice);
	}
	return WEFT_OK;
}

/* Sorted a part at a time, so that no memory is taken and no names make it slow. */
static enum weft_status
check_names_unique(const struct wf_job *job)
{
	for (uint32_t first = 0; first < job->tensor_count; first += NAMES_PER_PASS) {
		uint32_t left = job->tensor_count - first;
		uint32_t count = left < NAMES_PER_PASS ? left : NAMES_PER_PASS;
		enum weft_status st = check_names_from(job, first, count);
		if (st != WEFT_OK) {
			return st;
		}
	}
	return WEFT_OK;
}

static enum weft_status
check_optimizer(const struct wf_job_optimizer *o)
{
	const struct {
		const char *name;
		double value;
	} number[] = {
		{"learning_rate", o->learning_rate},
		{"momentum", o->momentum},
		{"beta1", o->beta1},
		{"beta2", o->beta2},
		{"epsilon", o->epsilon},
		{"decay", o->decay},
		{"clip", o->clip},
		{"schedule_a", o->schedule_a},
		{"schedule_b", o->schedule_b},
	};
	for (size_t i = 0; i < WF_ARRAY_COUNT(number); i++) {
		if (!isfinite(number[i].value)) {
			return wf_fail(WEFT_INVALID, JOB ": %s is %g, must be finite",
				       number[i].name, number[i].value);
		}
	}
	return WEFT_OK;
}

static enum weft_status
invalid(const char *field, uint64_t value, const char *rule)
{
	return wf_fail(WEFT_INVALID, JOB ": %s is %" PRIu64 ", must be %s", field, value, rule);
}

static enum weft_status
check_members(const struct wf_job *job)
{
	uint64_t lanes = (uint64_t)job->pserver_count * job->lane_count;

	if (job->trainer_count == 0 || job->trainer_count > WF_TRAINER_COUNT_MAX) {
		return invalid("num_gradient_servers", job->trainer_count, "1 to 65536");
	}
	if (lanes == 0 || lanes > WF_LANE_COUNT_MAX) {
		return wf_fail(WEFT_INVALID,
			       JOB ": %" PRIu32 " pservers with ports_num %" PRIu32
				   " each, the product must be 1 to %d",
			       job->pserver_count, job->lane_count, WF_LANE_COUNT_MAX);
	}
	return WEFT_OK;
}

static enum weft_status
check_fixed(const struct wf_job *job)
{
	enum weft_status st = check_members(job);
	if (st != WEFT_OK) {
		return st;
	}
	if (job->slice_bytes < WF_SLICE_BYTES_MIN || job->slice_bytes > WF_SLICE_BYTES_MAX ||
	    job->slice_bytes % 64 != 0) {
		return invalid("slice_bytes", job->slice_bytes, "a multiple of 64, 64 to 67108864");
	}
	if ((unsigned)job->grad_reduce > WF_REDUCE_MEAN) {
		return invalid("grad_reduce", (unsigned)job->grad_reduce, "0 (sum) or 1 (mean)");
	}
	if ((unsigned)job->nonfinite > WF_NONFINITE_SKIP) {
		return invalid("nonfinite", (unsigned)job->nonfinite, "0 (abort) or 1 (skip)");
	}
	if (job->tensor_count > WF_TENSOR_COUNT_MAX) {
		return invalid("the number of tensors", job->tensor_count, "at most 65536");
	}
	return check_optimizer(&job->optimizer);
}

enum weft_status
wf_job_check(const struct wf_job *job)
{
	enum weft_status st = check_fixed(job);
	if (st != WEFT_OK) {
		return st;
	}
	for (uint32_t i = 0; i < job->tensor_count; i++) {
		st = check_tensor(&job->tensor[i], i);
		if (st != WEFT_OK) {
			return st;
		}
	}
	size_t bytes = wf_job_encoded_bytes(job);
	if (bytes > WF_JOB_BYTES_MAX) {
		return invalid("its encoded form in bytes", bytes,
			       "at most 16777216: use fewer tensors or shorter names");
	}
	return check_names_unique(job);
}

size_t
wf_job_encoded_bytes(const struct wf_job *job)
{
	size_t bytes = JOB_FIXED_BYTES;
	for (uint32_t i = 0; i < job->tensor_count; i++) {
		bytes += TENSOR_BYTES_MIN - 1 + strnlen(job->tensor[i].name, WF_TENSOR_NAME_BYTES);
	}
	return bytes;
}

static void
put_fixed(struct wf_writer *w, const struct wf_job *job)
{
	const struct wf_job_optimizer *o = &job->optimizer;

	wf_put_u32(w, job->trainer_count);
	wf_put_u32(w, job->pserver_count);
	wf_put_u32(w, job->lane_count);
	wf_put_u64(w, job->slice_bytes);
	wf_put_u8(w, (uint8_t)job->grad_reduce);
	wf_put_u8(w, (uint8_t)job->nonfinite);
	wf_put_u32(w, o->kind);
	wf_put_u32(w, o->schedule);
	wf_put_f64(w, o->learning_rate);
	wf_put_f64(w, o->momentum);
	wf_put_f64(w, o->beta1);
	wf_put_f64(w, o->beta2);
	wf_put_f64(w, o->epsilon);
	wf_put_f64(w, o->decay);
	wf_put_f64(w, o->clip);
	wf_put_f64(w, o->schedule_a);
	wf_put_f64(w, o->schedule_b);
}

static void
put_tensor(struct wf_writer *w, const struct wf_job_tensor *tensor)
{
	wf_put_u64(w, tensor->count);
	wf_put_f64(w, tensor->rate_multiplier);
	wf_put_f64(w, tensor->decay);
	wf_put_f64(w, tensor->clip);
	wf_put_u8(w, tensor->is_static ? 1 : 0);
	wf_put_string(w, tensor->name);
}

void
wf_job_encode(const struct wf_job *job, uint8_t *out)
{
	struct wf_writer w = {.base = out, .capacity = wf_job_encoded_bytes(job)};

	put_fixed(&w, job);
	wf_put_u32(&w, job->tensor_count);
	WF_ASSERT(w.used == JOB_FIXED_BYTES);
	for (uint32_t i = 0; i < job->tensor_count; i++) {
		put_tensor(&w, &job->tensor[i]);
	}
	WF_ASSERT(!w.bad);
	WF_ASSERT(w.used == w.capacity);
}

/* The caller has seen that JOB_FIXED_BYTES are there. Enums: WEFT_PROTOCOL. */
static enum weft_status
get_fixed(struct wf_reader *r, struct wf_job *job)
{
	struct wf_job_optimizer *o = &job->optimizer;

	job->trainer_count = wf_get_u32(r);
	job->pserver_count = wf_get_u32(r);
	job->lane_count = wf_get_u32(r);
	job->slice_bytes = wf_get_u64(r);
	uint8_t grad_reduce = wf_get_u8(r);
	uint8_t nonfinite = wf_get_u8(r);
	o->kind = wf_get_u32(r);
	o->schedule = wf_get_u32(r);
	o->learning_rate = wf_get_f64(r);
	o->momentum = wf_get_f64(r);
	o->beta1 = wf_get_f64(r);
	o->beta2 = wf_get_f64(r);
	o->epsilon = wf_get_f64(r);
	o->decay = wf_get_f64(r);
	o->clip = wf_get_f64(r);
	o->schedule_a = wf_get_f64(r);
	o->schedule_b = wf_get_f64(r);
	job->tensor_count = wf_get_u32(r);
	WF_ASSERT(!r->bad);
	if (grad_reduce > WF_REDUCE_MEAN) {
		return wf_refuse(JOB, "grad_reduce", grad_reduce, "0 (sum) or 1 (mean)");
	}
	if (nonfinite > WF_NONFINITE_SKIP) {
		return wf_refuse(JOB, "nonfinite", nonfinite, "0 (abort) or 1 (skip)");
	}
	job->grad_reduce = (enum wf_grad_reduce)grad_reduce;
	job->nonfinite = (enum wf_nonfinite)nonfinite;
	return WEFT_OK;
}

static enum weft_status
get_tensor(struct wf_reader *r, struct wf_job_tensor *tensor)
{
	tensor->count = wf_get_u64(r);
	tensor->rate_multiplier = wf_get_f64(r);
	tensor->decay = wf_get_f64(r);
	tensor->clip = wf_get_f64(r);
	uint8_t is_static = wf_get_u8(r);
	if (r->bad) {
		return wf_refuse_length(JOB, r);
	}
	if (is_static > 1) {
		return wf_refuse(JOB, "is_static of a tensor", is_static, "0 or 1");
	}
	tensor->is_static = is_static == 1;
	wf_get_string(r, tensor->name, sizeof(tensor->name));
	if (r->bad) {
		return wf_refuse_text(JOB, "the name of a tensor", r, sizeof(tensor->name));
	}
	return WEFT_OK;
}

static enum weft_status
get_tensors(struct wf_reader *r, struct wf_job *job)
{
	for (uint32_t i = 0; i < job->tensor_count; i++) {
		enum weft_status st = get_tensor(r, &job->tensor[i]);
		if (st != WEFT_OK) {
			return st;
		}
	}
	if (!wf_reader_done(r)) {
		return wf_refuse_length(JOB, r);
	}
	return WEFT_OK;
}

/* What wf_job_check finds in a peer's job is the peer's fault. */
static enum weft_status
check_decoded(const struct wf_job *job)
{
	if (wf_job_check(job) == WEFT_OK) {
		return WEFT_OK;
	}
	struct wf_error found = *wf_error_record();
	return wf_fail(WEFT_PROTOCOL, "%s", found.text);
}

static enum weft_status
check_room(const struct wf_job *job, const struct wf_reader *r)
{
	uint64_t fits = (r->bytes - r->used) / TENSOR_BYTES_MIN;

	if (job->tensor_count > WF_TENSOR_COUNT_MAX) {
		return wf_refuse(JOB, "the number of tensors", job->tensor_count, "at most 65536");
	}
	if (job->tensor_count > fits) {
		return wf_fail(WEFT_PROTOCOL,
			       JOB ": it names %" PRIu32 " tensors, its %zu bytes hold %" PRIu64
				   " at most",
			       job->tensor_count, r->bytes, fits);
	}
	return WEFT_OK;
}

enum weft_status
wf_job_decode(struct wf_env *env, const uint8_t *in, size_t bytes, struct wf_job *out)
{
	struct wf_reader r = {.base = in, .bytes = bytes};
	struct wf_job job = {0};

	if (bytes < JOB_FIXED_BYTES || bytes > WF_JOB_BYTES_MAX) {
		return wf_refuse(JOB, "its length", bytes, "106 to 16777216");
	}
	enum weft_status st = get_fixed(&r, &job);
	if (st != WEFT_OK) {
		return st;
	}
	st = check_room(&job, &r);
	if (st != WEFT_OK) {
		return st;
	}
	if (job.tensor_count > 0) {
		job.tensor = wf_zalloc_array(env, job.tensor_count, sizeof(job.tensor[0]));
	}
	if (job.tensor == NULL && job.tensor_count > 0) {
		return wf_fail(WEFT_NOMEM, JOB ": no memory for %" PRIu32 " tensors",
			       job.tensor_count);
	}
	st = get_tensors(&r, &job);
	if (st != WEFT_OK) {
		goto fail;
	}
	st = check_decoded(&job);
	if (st != WEFT_OK) {
		goto fail;
	}
	*out = job;
	return WEFT_OK;
fail:
	wf_job_fini(env, &job);
	return st;
}

void
wf_job_fini(struct wf_env *env, struct wf_job *job)
{
	wf_free(env, job->tensor, job->tensor_count * sizeof(job->tensor[0]));
	*job = (struct wf_job){0};
}

uint64_t
wf_job_digest(const struct wf_job *job)
{
	uint8_t bytes[JOB_FIXED_BYTES];
	struct wf_writer w = {.base = bytes, .capacity = sizeof(bytes)};

	put_fixed(&w, job);
	WF_ASSERT(!w.bad);
	return wf_digest_of(bytes, w.used);
}

/* A chain: digest of (digest so far, encoded tensor), beginning with their number. */
uint64_t
wf_job_tensors_digest(const struct wf_job *job)
{
	uint64_t digest = job->tensor_count;

	for (uint32_t i = 0; i < job->tensor_count; i++) {
		uint8_t bytes[sizeof(digest) + TENSOR_BYTES_MAX];
		struct wf_writer w = {.base = bytes, .capacity = sizeof(bytes)};

		wf_put_u64(&w, digest);
		put_tensor(&w, &job->tensor[i]);
		WF_ASSERT(!w.bad);
		digest = wf_digest_of(bytes, w.used);
	}
	return digest;
}
