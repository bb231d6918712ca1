/* SPDX-License-Identifier: Apache-2.0 */
/* messages_control: GOODBYE, ABORT, REDUCE, REDUCED, BEAT, ABSENT. Layouts: wire/protocol.md.
 * Thread: any; pure functions. */
#include "base/assert.h"
#include "wire/messages.h"
#include "wire/shape.h"

#define GOODBYE_BYTES 4
#define ABORT_FIXED_BYTES 6
#define REDUCE_FIXED_BYTES 4
#define BEAT_BYTES 8
#define ABSENT_FIXED_BYTES 14

/* The flags of GOODBYE: one of them, or none. */
#define GOODBYE_ACK 1u
#define GOODBYE_LEAVES 2u

/* The flags of BEAT. */
#define BEAT_ASKS 1u
#define BEAT_ITSELF 2u

static const struct wf_shape goodbye_shape = {
	.name = "GOODBYE",
	.service = WF_SERVICE_CONTROL,
	.type = WF_MSG_GOODBYE,
	.body_min = GOODBYE_BYTES,
	.body_max = GOODBYE_BYTES,
};

static const struct wf_shape abort_shape = {
	.name = "ABORT",
	.service = WF_SERVICE_CONTROL,
	.type = WF_MSG_ABORT,
	.uses = WF_USE_STEP,
	.body_min = ABORT_FIXED_BYTES,
	.body_max = ABORT_FIXED_BYTES + WF_MEMBER_NAME_BYTES - 1 + WF_REASON_BYTES - 1,
};

static const struct wf_shape reduce_shape = {
	.name = "REDUCE",
	.service = WF_SERVICE_CONTROL,
	.type = WF_MSG_REDUCE,
	.uses = WF_USE_REQUEST_ID | WF_USE_STEP,
	.body_min = REDUCE_FIXED_BYTES,
	.body_max = REDUCE_FIXED_BYTES + WF_REDUCE_MAX * sizeof(double),
};

static const struct wf_shape reduced_shape = {
	.name = "REDUCED",
	.service = WF_SERVICE_CONTROL,
	.type = WF_MSG_REDUCED,
	.uses = WF_USE_REQUEST_ID | WF_USE_STEP,
	.body_min = REDUCE_FIXED_BYTES,
	.body_max = REDUCE_FIXED_BYTES + WF_REDUCE_MAX * sizeof(double),
};

static const struct wf_shape beat_shape = {
	.name = "BEAT",
	.service = WF_SERVICE_CONTROL,
	.type = WF_MSG_BEAT,
	.body_min = BEAT_BYTES,
	.body_max = BEAT_BYTES,
};

static const struct wf_shape absent_shape = {
	.name = "ABSENT",
	.service = WF_SERVICE_CONTROL,
	.type = WF_MSG_ABSENT,
	.body_min = ABSENT_FIXED_BYTES,
	.body_max = ABSENT_FIXED_BYTES + WF_REASON_BYTES - 1,
};

void
wf_msg_goodbye_encode(const struct wf_msg_goodbye *in, struct wf_msg *out)
{
	WF_ASSERT(!in->ack || !in->leaves);

	struct wf_writer w = wf_shape_begin(&goodbye_shape, out);
	wf_put_u32(&w, in->ack ? GOODBYE_ACK : in->leaves ? GOODBYE_LEAVES : 0);
	wf_shape_end(&goodbye_shape, &w, out);
}

enum weft_status
wf_msg_goodbye_decode(const struct wf_head *head, const uint8_t *body, struct wf_msg_goodbye *out)
{
	enum weft_status st = wf_shape_check(&goodbye_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	uint32_t flags = wf_get_u32(&r);
	WF_ASSERT(wf_reader_done(&r));
	if (flags > GOODBYE_LEAVES) {
		return wf_refuse("GOODBYE", "flags", flags, "0, 1 (heard) or 2 (leaves)");
	}
	out->ack = flags == GOODBYE_ACK;
	out->leaves = flags == GOODBYE_LEAVES;
	return WEFT_OK;
}

void
wf_msg_abort_encode(const struct wf_msg_abort *in, struct wf_msg *out)
{
	struct wf_writer w = wf_shape_begin(&abort_shape, out);
	out->head.step = in->step;
	wf_put_u16(&w, in->status);
	wf_put_text(&w, in->who, sizeof(in->who));
	wf_put_text(&w, in->reason, sizeof(in->reason));
	wf_shape_end(&abort_shape, &w, out);
}

enum weft_status
wf_msg_abort_decode(const struct wf_head *head, const uint8_t *body, struct wf_msg_abort *out)
{
	enum weft_status st = wf_shape_check(&abort_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_msg_abort abort_msg = {.step = head->step};
	abort_msg.status = wf_get_u16(&r);
	st = wf_status_check("ABORT", "status", abort_msg.status);
	if (st != WEFT_OK) {
		return st;
	}
	wf_get_string(&r, abort_msg.who, sizeof(abort_msg.who));
	if (r.bad) {
		return wf_refuse_text("ABORT", "who", &r, sizeof(abort_msg.who));
	}
	wf_get_string(&r, abort_msg.reason, sizeof(abort_msg.reason));
	if (r.bad) {
		return wf_refuse_text("ABORT", "reason", &r, sizeof(abort_msg.reason));
	}
	if (!wf_reader_done(&r)) {
		return wf_refuse_length("ABORT", &r);
	}
	*out = abort_msg;
	return WEFT_OK;
}

static void
values_encode(const struct wf_shape *shape, const struct wf_msg_reduce *in, struct wf_msg *out)
{
	WF_ASSERT(in->count <= WF_REDUCE_MAX);

	struct wf_writer w = wf_shape_begin(shape, out);
	out->head.request_id = in->request_id;
	out->head.step = in->step;
	wf_put_u32(&w, in->count);
	for (uint32_t i = 0; i < in->count; i++) {
		wf_put_f64(&w, in->value[i]);
	}
	wf_shape_end(shape, &w, out);
}

static enum weft_status
values_decode(const struct wf_shape *shape, const struct wf_head *head, const uint8_t *body,
	      struct wf_msg_reduce *out)
{
	enum weft_status st = wf_shape_check(shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	uint32_t count = wf_get_u32(&r);
	if (head->request_id == 0) {
		return wf_refuse(shape->name, "request_id", 0, "1 or more");
	}
	if (head->step == WF_STEP_NONE) {
		return wf_refuse(shape->name, "step", head->step, "the number of a step");
	}
	if (count > WF_REDUCE_MAX) {
		return wf_refuse(shape->name, "count", count, "0 to 256");
	}
	if (count * sizeof(double) != r.bytes - r.used) {
		return wf_refuse(shape->name, "count", count, "an eighth of the bytes after it");
	}
	out->request_id = head->request_id;
	out->step = head->step;
	out->count = count;
	for (uint32_t i = 0; i < count; i++) {
		out->value[i] = wf_get_f64(&r);
	}
	WF_ASSERT(wf_reader_done(&r));
	return WEFT_OK;
}

void
wf_msg_reduce_encode(const struct wf_msg_reduce *in, struct wf_msg *out)
{
	values_encode(&reduce_shape, in, out);
}

void
wf_msg_reduced_encode(const struct wf_msg_reduce *in, struct wf_msg *out)
{
	values_encode(&reduced_shape, in, out);
}

enum weft_status
wf_msg_reduce_decode(const struct wf_head *head, const uint8_t *body, struct wf_msg_reduce *out)
{
	return values_decode(&reduce_shape, head, body, out);
}

enum weft_status
wf_msg_reduced_decode(const struct wf_head *head, const uint8_t *body, struct wf_msg_reduce *out)
{
	return values_decode(&reduced_shape, head, body, out);
}

void
wf_msg_absent_encode(const struct wf_msg_absent *in, struct wf_msg *out)
{
	struct wf_writer w = wf_shape_begin(&absent_shape, out);
	wf_put_u32(&w, in->trainer);
	wf_put_u64(&w, in->silent_ns);
	wf_put_text(&w, in->reason, sizeof(in->reason));
	wf_shape_end(&absent_shape, &w, out);
}

enum weft_status
wf_msg_absent_decode(const struct wf_head *head, const uint8_t *body, struct wf_msg_absent *out)
{
	enum weft_status st = wf_shape_check(&absent_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_msg_absent absent = {.trainer = wf_get_u32(&r)};
	absent.silent_ns = wf_get_u64(&r);
	wf_get_string(&r, absent.reason, sizeof(absent.reason));
	if (r.bad) {
		return wf_refuse_text("ABSENT", "reason", &r, sizeof(absent.reason));
	}
	if (!wf_reader_done(&r)) {
		return wf_refuse_length("ABSENT", &r);
	}
	if (absent.silent_ns > INT64_MAX) {
		return wf_refuse("ABSENT", "silent_ns", absent.silent_ns, "below 2^63");
	}
	if (absent.silent_ns > 0 && absent.reason[0] == '\0') {
		return wf_refuse("ABSENT", "silent_ns", absent.silent_ns, "0 without a reason");
	}
	*out = absent;
	return WEFT_OK;
}

void
wf_msg_beat_encode(const struct wf_msg_beat *in, struct wf_msg *out)
{
	struct wf_writer w = wf_shape_begin(&beat_shape, out);
	wf_put_u32(&w, (in->asks ? BEAT_ASKS : 0) | (in->itself ? BEAT_ITSELF : 0));
	wf_put_u32(&w, in->pid);
	wf_shape_end(&beat_shape, &w, out);
}

enum weft_status
wf_msg_beat_decode(const struct wf_head *head, const uint8_t *body, struct wf_msg_beat *out)
{
	enum weft_status st = wf_shape_check(&beat_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	uint32_t flags = wf_get_u32(&r);
	uint32_t pid = wf_get_u32(&r);
	WF_ASSERT(wf_reader_done(&r));
	if ((flags & ~(BEAT_ASKS | BEAT_ITSELF)) != 0) {
		return wf_refuse("BEAT", "flags", flags, "0 to 3 (asks, by itself)");
	}
	*out = (struct wf_msg_beat){
		.asks = (flags & BEAT_ASKS) != 0,
		.itself = (flags & BEAT_ITSELF) != 0,
		.pid = pid,
	};
	return WEFT_OK;
}
