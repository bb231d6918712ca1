/* SPDX-License-Identifier: Apache-2.0 */
/* job: check, encode, decode and digest the job description. Thread: any; not on the data path. */
#include "wire/job.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/digest.h"
#include "wire/bytes.h"
#include "wire/name.h"
#include "wire/piece.h"
#include "wire/settings.h"
#include "wire/shape.h"

#define JOB "job"
#define JOB_FIXED_BYTES 185 /* bytes before segments and tensors */
/* Offsets of fields that are no settings: */
#define PSERVERS_AT 4
#define KIND_AT 22
#define SCHEDULE_AT 26
#define SEGMENTS_AT 177 /* number of segments */
#define COUNT_AT 181    /* number of tensors; the job's digest covers the bytes before it */
#define SEGMENT_BYTES 16
#define TENSOR_BYTES_MIN 61 /* bytes of a tensor whose name has one character */
#define TENSOR_BYTES_MAX (TENSOR_BYTES_MIN - 1 + WF_TENSOR_NAME_BYTES - 1)
#define KIND_STATIC 1 /* kind of a tensor; 0: updated */
#define KIND_REDUCED 2
#define KIND_PIECE 3        /* of the ring of weft_all_reduce */
#define NAMES_PER_PASS 2048 /* names per pass of the search for duplicates */

/* Checks what a tensor that is only reduced cannot be combined with. */
static enum weft_status
check_reduced(const struct wf_job *job, const struct wf_job_tensor *tensor)
{
	const char *why = NULL;
	const char *remedy = "";

	if (tensor->is_static) {
		why = "it is static, and never pushed; leave one of the two 0";
	} else if (tensor->mode != WEFT_TENSOR_AS_SESSION) {
		why = "it is reduced when all trainers have pushed it, in any mode; leave mode 0";
	} else if (wf_session_has_local_steps(&job->set)) {
		why = "with dense_mode=local or elastic trainers exchange what they have moved; "
		      "use dense_mode=sync";
	} else if (wf_optimizer_clips_norm(&job->set.optimizer)) {
		why = wf_whole_steps_why(&job->set.optimizer);
		remedy = "; leave is_reduced 0";
	} else if (job->set.dense_wire != WEFT_WIRE_F32) {
		why = "in 16 bits results would be rounded; use dense_wire=f32";
	}
	return why == NULL || !tensor->is_reduced
		       ? WEFT_OK
		       : wf_fail(WEFT_INVALID, "tensor %s: is_reduced: %s%s", tensor->name, why,
				 remedy);
}

static enum weft_status
refuse_mode(const struct wf_job_tensor *tensor, const char *why)
{
	static const char *const word[] = {[WEFT_TENSOR_AS_SESSION] = "0",
					   [WEFT_TENSOR_SYNC] = "sync",
					   [WEFT_TENSOR_ASYNC] = "async",
					   [WEFT_TENSOR_BOUNDED] = "bounded"};
	return wf_fail(WEFT_INVALID, "tensor %s: mode %s: %s; leave it 0", tensor->name,
		       word[tensor->mode], why);
}

enum weft_status
wf_job_check_terms(const struct wf_job *job, const struct wf_job_tensor *tensor)
{
	const bool bounded = tensor->mode == WEFT_TENSOR_BOUNDED;
	const bool lags = bounded || tensor->mode == WEFT_TENSOR_ASYNC;
	const bool own = tensor->mode != WEFT_TENSOR_AS_SESSION;

	if ((unsigned)tensor->mode > WEFT_TENSOR_BOUNDED) {
		return wf_fail(
			WEFT_INVALID,
			"tensor %s: mode %u: 0, 1 (sync), 2 (async) or 3 (bounded) is needed",
			tensor->name, (unsigned)tensor->mode);
	}
	if (tensor->staleness > 0 && !bounded) {
		return wf_fail(WEFT_INVALID,
			       "tensor %s: staleness %" PRIu32
			       ": it goes with the mode bounded; leave it 0",
			       tensor->name, tensor->staleness);
	}
	if (!(tensor->discard_ratio >= 0 && tensor->discard_ratio <= (lags ? 1e6 : 0))) {
		return wf_fail(WEFT_INVALID, "tensor %s: discard_ratio %.9g: %s", tensor->name,
			       tensor->discard_ratio,
			       lags ? "0 to 1,000,000 is allowed"
				    : "it goes with the modes async and bounded; leave it 0");
	}
	enum weft_status st = check_reduced(job, tensor);
	if (st != WEFT_OK || !own) {
		return st;
	}
	if (tensor->is_static) {
		return refuse_mode(tensor, "it is static, and never pushed");
	}
	return wf_session_has_local_steps(&job->set)
		       ? refuse_mode(tensor, "with dense_mode=local or elastic trainers exchange "
					     "all tensors together")
		       : WEFT_OK;
}

enum weft_status
wf_job_check_steps(const struct wf_job *job, const struct wf_job_tensor *tensor)
{
	const bool lags = tensor->mode == WEFT_TENSOR_ASYNC ||
			  (tensor->mode == WEFT_TENSOR_BOUNDED && tensor->staleness > 0);

	const char *why = lags ? wf_whole_steps_why(&job->set.optimizer) : NULL;
	return why != NULL ? refuse_mode(tensor, why) : WEFT_OK;
}

struct wf_job_terms
wf_job_terms_of(const struct wf_job *job, const struct wf_job_tensor *tensor)
{
	static const enum weft_dense_mode mode[] = {[WEFT_TENSOR_SYNC] = WEFT_DENSE_SYNC,
						    [WEFT_TENSOR_ASYNC] = WEFT_DENSE_ASYNC,
						    [WEFT_TENSOR_BOUNDED] = WEFT_DENSE_BOUNDED};

	if (tensor->is_static || tensor->is_reduced) {
		return (struct wf_job_terms){.mode = WEFT_DENSE_SYNC};
	}
	if (tensor->mode == WEFT_TENSOR_AS_SESSION) {
		return (struct wf_job_terms){job->set.dense_mode, job->set.dense_staleness,
					     job->set.dense_discard_ratio};
	}
	return (struct wf_job_terms){mode[tensor->mode], tensor->staleness, tensor->discard_ratio};
}

const struct wf_job_tensor *
wf_job_first_lagging(const struct wf_job *job)
{
	for (uint32_t i = 0; i < job->tensor_count; i++) {
		const struct wf_job_terms terms = wf_job_terms_of(job, &job->tensor[i]);
		if (wf_job_terms_lag(&terms)) {
			return &job->tensor[i];
		}
	}
	return NULL;
}

bool
wf_job_has_priorities(const struct wf_job *job)
{
	for (uint32_t i = 1; i < job->tensor_count; i++) {
		if (job->tensor[i].priority != job->tensor[0].priority) {
			return true;
		}
	}
	return false;
}

/* A piece is one slice, with more in it than its head, and travels as it is. */
static enum weft_status
check_piece(const struct wf_job *job, const struct wf_job_tensor *tensor)
{
	if (tensor->count * sizeof(float) != job->set.slice_bytes ||
	    job->set.slice_bytes < WF_PIECE_SLICE_BYTES_MIN) {
		return wf_fail(WEFT_INVALID,
			       "tensor %s: a piece of %" PRIu64
			       " elements, it must have all %" PRIu64
			       " bytes of a slice, at least %u",
			       tensor->name, tensor->count, job->set.slice_bytes,
			       WF_PIECE_SLICE_BYTES_MIN);
	}
	return job->set.dense_wire == WEFT_WIRE_F32
		       ? WEFT_OK
		       : wf_fail(WEFT_INVALID,
				 "all_reduce_ring: arrays travel as they are; use dense_wire=f32, "
				 "or reduce bf16 or f16 arrays");
}

static enum weft_status
check_tensor(const struct wf_job *job, const struct wf_job_tensor *tensor, uint32_t idx)
{
	char what[32];
	(void)snprintf(what, sizeof(what), "tensor %" PRIu32, idx);
	enum weft_status st = wf_name_check(what, tensor->name);
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
		{"l1", tensor->l1},
	};
	for (size_t i = 0; i < WF_ARRAY_COUNT(number); i++) {
		if (!isfinite(number[i].value)) {
			return wf_fail(WEFT_INVALID, "tensor %s: %s is %g, must be finite",
				       tensor->name, number[i].name, number[i].value);
		}
	}
	st = wf_job_check_terms(job, tensor);
	st = st == WEFT_OK && tensor->is_piece ? check_piece(job, tensor) : st;
	if (st == WEFT_OK && tensor->mode == WEFT_TENSOR_BOUNDED && tensor->staleness == 0) {
		st = wf_fail(WEFT_INVALID,
			     "tensor %s: staleness is 0, must be above 0 with the mode bounded",
			     tensor->name);
	}
	return st;
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Compares names first .. first + count - 1 with each other and with all later ones. */
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

/* Sorts a part at a time, so that nothing is allocated and no choice of names makes it slow. */
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
invalid(const char *field, uint64_t value, const char *rule)
{
	return wf_fail(WEFT_INVALID, JOB ": %s is %" PRIu64 ", must be %s", field, value, rule);
}

static enum weft_status
check_method(const struct wf_method *method)
{
	if (method->segment_count > WF_SEGMENTS_MAX) {
		return wf_fail(WEFT_INVALID,
			       "job: the number of segments is %" PRIu32 ", must be at most %d",
			       method->segment_count, WF_SEGMENTS_MAX);
	}
	for (uint32_t i = 0; i < method->segment_count; i++) {
		if (!isfinite(method->segment[i].factor)) {
			return wf_fail(WEFT_INVALID,
				       "job: factor of segment %" PRIu32 " is %g, must be finite",
				       i, method->segment[i].factor);
		}
	}
	return WEFT_OK;
}

static enum weft_status
check_settings(const struct wf_job *job)
{
	enum weft_status st = wf_settings_check_wire(WEFT_SETTINGS_SESSION, &job->values);
	if (st == WEFT_OK) {
		st = wf_mode_rules_check(&job->values);
	}
	if (st == WEFT_OK) {
		st = wf_session_settled_check(&job->values);
	}
	return st == WEFT_OK ? check_method(&job->method) : st;
}

static enum weft_status
check_fixed(const struct wf_job *job)
{
	uint64_t lanes = (uint64_t)job->pserver_count * job->set.ports_num;

	if (lanes == 0 || lanes > WF_LANE_COUNT_MAX) {
		return wf_fail(WEFT_INVALID,
			       JOB ": %" PRIu32 " pservers with ports_num %" PRIu32
				   " each, the product must be 1 to %d",
			       job->pserver_count, job->set.ports_num, WF_LANE_COUNT_MAX);
	}
	if (job->tensor_count > WF_TENSOR_COUNT_MAX) {
		return invalid("the number of tensors", job->tensor_count, "at most 65536");
	}
	return check_settings(job);
}

enum weft_status
wf_job_check(const struct wf_job *job)
{
	enum weft_status st = check_fixed(job);
	if (st != WEFT_OK) {
		return st;
	}
	for (uint32_t i = 0; i < job->tensor_count; i++) {
		st = check_tensor(job, &job->tensor[i], i);
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
	size_t bytes = JOB_FIXED_BYTES + (size_t)job->method.segment_count * SEGMENT_BYTES;
	for (uint32_t i = 0; i < job->tensor_count; i++) {
		bytes += TENSOR_BYTES_MIN - 1 + strnlen(job->tensor[i].name, WF_TENSOR_NAME_BYTES);
	}
	return bytes;
}

/* Writes everything before the number of tensors. */
static void
put_fixed(struct wf_writer *w, const struct wf_job *job)
{
	uint8_t fixed[COUNT_AT] = {0};
	const struct wf_method *method = &job->method;

	wf_settings_encode(WEFT_SETTINGS_SESSION, &job->values, fixed);
	wf_store_u32(fixed + PSERVERS_AT, job->pserver_count);
	wf_store_u32(fixed + KIND_AT, (uint32_t)method->kind);
	wf_store_u32(fixed + SCHEDULE_AT, (uint32_t)method->schedule);
	wf_store_u32(fixed + SEGMENTS_AT, method->segment_count);
	wf_put_bytes(w, fixed, sizeof(fixed));
}

static void
put_segments(struct wf_writer *w, const struct wf_method *method)
{
	for (uint32_t i = 0; i < method->segment_count; i++) {
		wf_put_u64(w, method->segment[i].until);
		wf_put_f64(w, method->segment[i].factor);
	}
}

static uint8_t
kind_of(const struct wf_job_tensor *tensor)
{
	if (tensor->is_piece) {
		return KIND_PIECE;
	}
	uint8_t fixed = tensor->is_static ? KIND_STATIC : 0;
	return tensor->is_reduced ? KIND_REDUCED : fixed;
}

static void
put_tensor(struct wf_writer *w, const struct wf_job_tensor *tensor)
{
	wf_put_u64(w, tensor->count);
	wf_put_f64(w, tensor->rate_multiplier);
	wf_put_f64(w, tensor->decay);
	wf_put_f64(w, tensor->clip);
	wf_put_f64(w, tensor->l1);
	wf_put_u8(w, kind_of(tensor));
	wf_put_u8(w, (uint8_t)tensor->mode);
	wf_put_u32(w, tensor->staleness);
	wf_put_f64(w, tensor->discard_ratio);
	wf_put_u32(w, (uint32_t)tensor->priority);
	wf_put_string(w, tensor->name);
}

void
wf_job_encode(const struct wf_job *job, uint8_t *out)
{
	struct wf_writer w = {.base = out, .capacity = wf_job_encoded_bytes(job)};

	put_fixed(&w, job);
	wf_put_u32(&w, job->tensor_count);
	WF_ASSERT(w.used == JOB_FIXED_BYTES);
	put_segments(&w, &job->method);
	for (uint32_t i = 0; i < job->tensor_count; i++) {
		put_tensor(&w, &job->tensor[i]);
	}
	WF_ASSERT(!w.bad);
	WF_ASSERT(w.used == w.capacity);
}

/* The caller has checked that there are JOB_FIXED_BYTES. */
static enum weft_status
get_fixed(struct wf_reader *r, struct wf_job *job)
{
	uint8_t fixed[COUNT_AT];
	struct wf_method *method = &job->method;

	wf_get_bytes(r, fixed, sizeof(fixed));
	job->tensor_count = wf_get_u32(r);
	WF_ASSERT(!r->bad);
	job->pserver_count = wf_load_u32(fixed + PSERVERS_AT);
	method->kind = (enum wf_optimizer)wf_load_u32(fixed + KIND_AT);
	method->schedule = (enum wf_schedule)wf_load_u32(fixed + SCHEDULE_AT);
	method->segment_count = wf_load_u32(fixed + SEGMENTS_AT);
	return wf_settings_decode(WEFT_SETTINGS_SESSION, JOB, fixed, &job->values);
}

static enum weft_status
get_segments(struct wf_reader *r, struct wf_method *method)
{
	if (method->segment_count > WF_SEGMENTS_MAX) {
		return wf_refuse(JOB, "the number of segments", method->segment_count,
				 "at most 32");
	}
	for (uint32_t i = 0; i < method->segment_count; i++) {
		method->segment[i].until = wf_get_u64(r);
		method->segment[i].factor = wf_get_f64(r);
	}
	return r->bad ? wf_refuse_length(JOB, r) : WEFT_OK;
}

static enum weft_status
get_tensor(struct wf_reader *r, struct wf_job_tensor *tensor)
{
	tensor->count = wf_get_u64(r);
	tensor->rate_multiplier = wf_get_f64(r);
	tensor->decay = wf_get_f64(r);
	tensor->clip = wf_get_f64(r);
	tensor->l1 = wf_get_f64(r);
	uint8_t kind = wf_get_u8(r);
	uint8_t mode = wf_get_u8(r);
	tensor->staleness = wf_get_u32(r);
	tensor->discard_ratio = wf_get_f64(r);
	tensor->priority = (int32_t)wf_get_u32(r);
	if (r->bad) {
		return wf_refuse_length(JOB, r);
	}
	if (kind > KIND_PIECE) {
		return wf_refuse(JOB, "kind of a tensor", kind, "0 to 3");
	}
	if (mode > WEFT_TENSOR_BOUNDED) {
		return wf_refuse(JOB, "mode of a tensor", mode, "0 to 3");
	}
	tensor->mode = (enum weft_tensor_mode)mode;
	tensor->is_static = kind == KIND_STATIC || kind == KIND_PIECE;
	tensor->is_piece = kind == KIND_PIECE;
	tensor->is_reduced = kind == KIND_REDUCED;
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

/* A fault that wf_job_check finds in a peer's job is a protocol error. */
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
		return wf_refuse(JOB, "its length", bytes, "185 to 16777216");
	}
	enum weft_status st = get_fixed(&r, &job);
	if (st == WEFT_OK) {
		st = get_segments(&r, &job.method);
	}
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
	uint8_t bytes[JOB_FIXED_BYTES + WF_SEGMENTS_MAX * SEGMENT_BYTES];
	struct wf_writer w = {.base = bytes, .capacity = sizeof(bytes)};

	put_fixed(&w, job);
	put_segments(&w, &job->method);
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
