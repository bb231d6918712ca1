/* SPDX-License-Identifier: Apache-2.0 */
/* messages_dense: JOB, STEP, PULL, NACK, INIT, NORM. Layouts: wire/protocol.md. Thread: any; pure
 * functions. */
#include "base/assert.h"
#include "wire/job.h"
#include "wire/messages.h"
#include "wire/shape.h"

#define JOB_FIXED_BYTES 16
#define STEP_BYTES 32
#define PULL_BYTES 6
#define NORM_BYTES (8 * WF_NORM_WIRE_WORDS)
#define NACK_FIXED_BYTES 4
#define INIT_BYTES 12

static const struct wf_shape job_shape = {
	.name = "JOB",
	.service = WF_SERVICE_DENSE,
	.type = WF_MSG_JOB,
	.uses = WF_USE_OFFSET,
	.body_min = JOB_FIXED_BYTES + 1,
	.body_max = JOB_FIXED_BYTES + WF_JOB_PART_MAX,
};

static const struct wf_shape step_shape = {
	.name = "STEP",
	.service = WF_SERVICE_DENSE,
	.type = WF_MSG_STEP,
	.uses = WF_USE_STEP | WF_USE_EPOCH,
	.body_min = STEP_BYTES,
	.body_max = STEP_BYTES,
};

static const struct wf_shape pull_shape = {
	.name = "PULL",
	.service = WF_SERVICE_DENSE,
	.type = WF_MSG_PULL,
	.uses = WF_USE_REQUEST_ID | WF_USE_STEP | WF_USE_SLICE,
	.body_min = PULL_BYTES,
	.body_max = PULL_BYTES,
};

static const struct wf_shape nack_shape = {
	.name = "NACK",
	.service = WF_SERVICE_DENSE,
	.type = WF_MSG_NACK,
	.uses = WF_USE_REQUEST_ID | WF_USE_SLICE,
	.body_min = NACK_FIXED_BYTES,
	.body_max = NACK_FIXED_BYTES + WF_REASON_BYTES - 1,
};

static const struct wf_shape init_shape = {
	.name = "INIT",
	.service = WF_SERVICE_DENSE,
	.type = WF_MSG_INIT,
	.uses = WF_USE_STEP,
	.body_min = INIT_BYTES,
	.body_max = INIT_BYTES,
};

static const struct wf_shape norm_shape = {
	.name = "NORM",
	.service = WF_SERVICE_DENSE,
	.type = WF_MSG_NORM,
	.uses = WF_USE_STEP,
	.body_min = NORM_BYTES,
	.body_max = NORM_BYTES,
};

void
wf_msg_job_encode(const struct wf_msg_job *in, struct wf_msg *out)
{
	WF_ASSERT(in->byte_count >= 1 && in->byte_count <= WF_JOB_PART_MAX);
	WF_ASSERT(in->total_bytes >= in->byte_count && in->total_bytes <= WF_JOB_BYTES_MAX);
	WF_ASSERT(in->offset <= in->total_bytes - in->byte_count);

	struct wf_writer w = wf_shape_begin(&job_shape, out);
	out->head.offset = in->offset;
	wf_put_u64(&w, in->total_bytes);
	wf_put_u64(&w, in->byte_count);
	wf_put_bytes(&w, in->bytes, in->byte_count);
	wf_shape_end(&job_shape, &w, out);
}

enum weft_status
wf_msg_job_decode(const struct wf_head *head, const uint8_t *body, struct wf_msg_job *out)
{
	enum weft_status st = wf_shape_check(&job_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	uint64_t total = wf_get_u64(&r);
	uint64_t count = wf_get_u64(&r);
	if (total > WF_JOB_BYTES_MAX) {
		return wf_refuse("JOB", "total_bytes", total, "at most 16777216");
	}
	if (count != r.bytes - r.used) {
		return wf_refuse("JOB", "byte_count", count, "the bytes that follow it");
	}
	if (head->offset > total || count > total - head->offset) {
		return wf_refuse("JOB", "offset", head->offset,
				 "such that the piece ends within total_bytes");
	}
	*out = (struct wf_msg_job){
		.offset = head->offset,
		.total_bytes = total,
		.bytes = body + r.used,
		.byte_count = (size_t)count,
	};
	return WEFT_OK;
}

void
wf_msg_step_encode(const struct wf_msg_step *in, struct wf_msg *out)
{
	struct wf_writer w = wf_shape_begin(&step_shape, out);
	out->head.step = in->step;
	out->head.epoch = in->epoch;
	wf_put_u64(&w, in->samples);
	wf_put_u32(&w, in->flags);
	wf_put_u32(&w, in->pass);
	wf_put_f64(&w, in->cost);
	wf_put_u64(&w, in->compute_ns);
	wf_shape_end(&step_shape, &w, out);
}

static enum weft_status
check_step(const struct wf_msg_step *step)
{
	bool out_of_data = (step->flags & WF_STEP_OUT_OF_DATA) != 0;

	if (step->step == WF_STEP_NONE) {
		return wf_refuse("STEP", "step", step->step, "the number of a step");
	}
	if ((step->flags & ~(uint32_t)WF_STEP_OUT_OF_DATA) != 0) {
		return wf_refuse("STEP", "flags", step->flags, "0 or 1 (out of data)");
	}
	if (out_of_data && step->samples != 0) {
		return wf_refuse("STEP", "samples", step->samples, "0 when out of data");
	}
	if (!out_of_data && (step->samples == 0 || step->samples > WF_STEP_SAMPLES_MAX)) {
		return wf_refuse("STEP", "samples", step->samples, "1 to 2^40");
	}
	return WEFT_OK;
}

enum weft_status
wf_msg_step_decode(const struct wf_head *head, const uint8_t *body, struct wf_msg_step *out)
{
	enum weft_status st = wf_shape_check(&step_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_msg_step step = {.step = head->step, .epoch = head->epoch};
	step.samples = wf_get_u64(&r);
	step.flags = wf_get_u32(&r);
	step.pass = wf_get_u32(&r);
	step.cost = wf_get_f64(&r);
	step.compute_ns = wf_get_u64(&r);
	WF_ASSERT(wf_reader_done(&r));
	st = check_step(&step);
	if (st != WEFT_OK) {
		return st;
	}
	*out = step;
	return WEFT_OK;
}

void
wf_msg_init_encode(const struct wf_msg_init *in, struct wf_msg *out)
{
	struct wf_writer w = wf_shape_begin(&init_shape, out);
	out->head.step = in->step;
	wf_put_u64(&w, in->samples);
	wf_put_u32(&w, in->sections);
	wf_shape_end(&init_shape, &w, out);
}

enum weft_status
wf_msg_init_decode(const struct wf_head *head, const uint8_t *body, struct wf_msg_init *out)
{
	enum weft_status st = wf_shape_check(&init_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_msg_init init = {.step = head->step};
	init.samples = wf_get_u64(&r);
	init.sections = wf_get_u32(&r);
	WF_ASSERT(wf_reader_done(&r));
	if (init.step > WF_INIT_STEP_MAX) {
		return wf_refuse("INIT", "step", init.step, "below 2^62");
	}
	if (init.samples > INT64_MAX) {
		return wf_refuse("INIT", "samples", init.samples, "below 2^63");
	}
	if (init.sections == 0 || init.sections > WF_SECTIONS_MAX) {
		return wf_refuse("INIT", "sections", init.sections, "1 to 16");
	}
	*out = init;
	return WEFT_OK;
}

void
wf_msg_pull_encode(const struct wf_msg_pull *in, struct wf_msg *out)
{
	struct wf_writer w = wf_shape_begin(&pull_shape, out);
	out->head.request_id = in->request_id;
	out->head.step = in->step;
	out->head.slice = in->first;
	wf_put_u8(&w, in->section);
	wf_put_u8(&w, in->state_idx);
	wf_put_u32(&w, in->count);
	wf_shape_end(&pull_shape, &w, out);
}

static enum weft_status
check_pull(const struct wf_msg_pull *pull)
{
	if (pull->step == WF_STEP_NONE) {
		return wf_refuse("PULL", "step", pull->step, "the number of a step");
	}
	if (pull->section > WF_SECTION_STATE) {
		return wf_refuse("PULL", "section", pull->section, "0 (values) or 1 (state)");
	}
	if (pull->section != WF_SECTION_STATE && pull->state_idx != 0) {
		return wf_refuse("PULL", "state_idx", pull->state_idx, "0 except for state");
	}
	if (pull->count == 0) {
		return wf_refuse("PULL", "count", 0, "1 or more");
	}
	return wf_ordinals_check("PULL", pull->first, pull->count);
}

enum weft_status
wf_msg_pull_decode(const struct wf_head *head, const uint8_t *body, struct wf_msg_pull *out)
{
	enum weft_status st = wf_shape_check(&pull_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_msg_pull pull = {
		.request_id = head->request_id,
		.step = head->step,
		.first = head->slice,
	};
	pull.section = wf_get_u8(&r);
	pull.state_idx = wf_get_u8(&r);
	pull.count = wf_get_u32(&r);
	WF_ASSERT(wf_reader_done(&r));
	st = check_pull(&pull);
	if (st != WEFT_OK) {
		return st;
	}
	*out = pull;
	return WEFT_OK;
}

void
wf_msg_nack_encode(const struct wf_msg_nack *in, struct wf_msg *out)
{
	struct wf_writer w = wf_shape_begin(&nack_shape, out);
	out->head.request_id = in->request_id;
	out->head.slice = in->first;
	wf_refusal_put(&w, in->status, in->reason);
	wf_shape_end(&nack_shape, &w, out);
}

enum weft_status
wf_msg_nack_decode(const struct wf_head *head, const uint8_t *body, struct wf_msg_nack *out)
{
	enum weft_status st = wf_shape_check(&nack_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_msg_nack nack = {.request_id = head->request_id, .first = head->slice};
	st = wf_refusal_get(&r, &nack.status, nack.reason);
	if (st != WEFT_OK) {
		return st;
	}
	*out = nack;
	return WEFT_OK;
}

void
wf_msg_norm_encode(const struct wf_msg_norm *in, struct wf_msg *out)
{
	struct wf_writer w = wf_shape_begin(&norm_shape, out);
	out->head.step = in->step;
	for (unsigned i = 0; i < WF_NORM_WIRE_WORDS; i++) {
		wf_put_u64(&w, in->word[i]);
	}
	wf_shape_end(&norm_shape, &w, out);
}

enum weft_status
wf_msg_norm_decode(const struct wf_head *head, const uint8_t *body, struct wf_msg_norm *out)
{
	enum weft_status st = wf_shape_check(&norm_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_msg_norm norm = {.step = head->step};
	for (unsigned i = 0; i < WF_NORM_WIRE_WORDS; i++) {
		norm.word[i] = wf_get_u64(&r);
	}
	WF_ASSERT(wf_reader_done(&r));
	if (norm.step == 0 || norm.step > INT64_MAX) {
		return wf_refuse("NORM", "step", norm.step, "above 0 and below 2^63");
	}
	*out = norm;
	return WEFT_OK;
}
