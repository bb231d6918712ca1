/* SPDX-License-Identifier: Apache-2.0 */
/* messages_path: GRANT, CREDIT, RESUME, HAVE: what opens a path and keeps its window open, on every
 * service. Layouts: wire/protocol.md. Thread: any; pure functions. */
#include "base/assert.h"
#include "wire/job.h"
#include "wire/messages.h"
#include "wire/shape.h"

#define STEPS_FIXED_BYTES 12
#define GRANT_BYTES (24 + WF_MSG_KEY_BYTES)
#define CREDIT_FIXED_BYTES sizeof(uint32_t)

#define GRANT_ANNOUNCED 1u /* the flags of GRANT */

/* Bits of the flags of RESUME and HAVE. */
enum steps_flag {
	STEPS_LAST = 1 << 0,
	STEPS_INITIALISED = 1 << 1, /* RESUME only */
};

WF_STATIC_ASSERT(sizeof(float) * WF_TENSOR_ELEMENTS_MAX * WF_TENSOR_COUNT_MAX <= WF_PLACE_BYTES_MAX,
		 "the parameters of the largest job fit a place");

static const struct wf_shape resume_shape = {
	.name = "RESUME",
	.service = WF_SERVICE_CONTROL,
	.type = WF_MSG_RESUME,
	.uses = WF_USE_STEP | WF_USE_EPOCH,
	.body_min = STEPS_FIXED_BYTES,
	.body_max = STEPS_FIXED_BYTES + WF_STEPS_PER_MSG * sizeof(uint64_t),
};

static const struct wf_shape have_shape = {
	.name = "HAVE",
	.service = WF_SERVICE_CONTROL,
	.type = WF_MSG_HAVE,
	.uses = WF_USE_STEP,
	.body_min = STEPS_FIXED_BYTES,
	.body_max = STEPS_FIXED_BYTES + WF_STEPS_PER_MSG * sizeof(uint64_t),
};

static const struct wf_shape grant_shape = {
	.name = "GRANT",
	.service = WF_SERVICE_CONTROL,
	.type = WF_MSG_GRANT,
	.body_min = GRANT_BYTES,
	.body_max = GRANT_BYTES,
};

static const struct wf_shape credit_shape = {
	.name = "CREDIT",
	.service = WF_SERVICE_CONTROL,
	.type = WF_MSG_CREDIT,
	.body_min = CREDIT_FIXED_BYTES + sizeof(uint16_t),
	.body_max = CREDIT_FIXED_BYTES + WF_CREDITS_PER_MSG * sizeof(uint16_t),
};

static void
steps_encode(const struct wf_shape *shape, const struct wf_msg_steps *in, uint32_t flags,
	     struct wf_msg *out)
{
	WF_ASSERT(in->count <= WF_STEPS_PER_MSG);
	WF_ASSERT((uint64_t)in->first + in->count <= WF_SLICE_COUNT_MAX);

	struct wf_writer w = wf_shape_begin(shape, out);
	out->head.step = in->step;
	wf_put_u32(&w, flags);
	wf_put_u32(&w, in->first);
	wf_put_u32(&w, in->count);
	for (uint32_t i = 0; i < in->count; i++) {
		wf_put_u64(&w, in->step_of[i]);
	}
	wf_shape_end(shape, &w, out);
}

void
wf_msg_resume_encode(const struct wf_msg_steps *in, struct wf_msg *out)
{
	uint32_t flags = (in->last ? STEPS_LAST : 0u) | (in->initialised ? STEPS_INITIALISED : 0u);
	steps_encode(&resume_shape, in, flags, out);
	out->head.epoch = in->epoch;
}

void
wf_msg_have_encode(const struct wf_msg_steps *in, struct wf_msg *out)
{
	steps_encode(&have_shape, in, in->last ? STEPS_LAST : 0u, out);
}

static enum weft_status
steps_decode(const struct wf_shape *shape, uint32_t flags_known, const struct wf_head *head,
	     const uint8_t *body, struct wf_msg_steps *out)
{
	enum weft_status st = wf_shape_check(shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	uint32_t flags = wf_get_u32(&r);
	uint32_t first = wf_get_u32(&r);
	uint32_t count = wf_get_u32(&r);
	if ((flags & ~flags_known) != 0) {
		return wf_refuse(shape->name, "flags", flags, "of the bits this message has");
	}
	if (count > WF_STEPS_PER_MSG) {
		return wf_refuse(shape->name, "count", count, "0 to 500");
	}
	if (count * sizeof(uint64_t) != r.bytes - r.used) {
		return wf_refuse(shape->name, "count", count, "an eighth of the bytes after it");
	}
	st = wf_ordinals_check(shape->name, first, count);
	if (st != WEFT_OK) {
		return st;
	}
	out->step = head->step;
	out->epoch = head->epoch;
	out->last = (flags & STEPS_LAST) != 0;
	out->initialised = (flags & STEPS_INITIALISED) != 0;
	out->first = first;
	out->count = count;
	for (uint32_t i = 0; i < count; i++) {
		out->step_of[i] = wf_get_u64(&r);
	}
	WF_ASSERT(wf_reader_done(&r));
	return WEFT_OK;
}

enum weft_status
wf_msg_resume_decode(const struct wf_head *head, const uint8_t *body, struct wf_msg_steps *out)
{
	return steps_decode(&resume_shape, STEPS_LAST | STEPS_INITIALISED, head, body, out);
}

enum weft_status
wf_msg_have_decode(const struct wf_head *head, const uint8_t *body, struct wf_msg_steps *out)
{
	return steps_decode(&have_shape, STEPS_LAST, head, body, out);
}

void
wf_msg_grant_encode(const struct wf_msg_grant *in, struct wf_msg *out)
{
	struct wf_writer w = wf_shape_begin(&grant_shape, out);
	wf_put_u8(&w, in->kind);
	wf_put_u8(&w, in->place);
	wf_put_u16(&w, in->announced ? GRANT_ANNOUNCED : 0);
	wf_put_u32(&w, in->slot_count);
	wf_put_u64(&w, in->bytes);
	wf_put_u64(&w, in->held_bytes);
	wf_put_bytes(&w, in->key, sizeof(in->key));
	wf_shape_end(&grant_shape, &w, out);
}

static enum weft_status
check_slots(const struct wf_msg_grant *grant, uint16_t flags)
{
	if ((flags & ~GRANT_ANNOUNCED) != 0) {
		return wf_refuse("GRANT", "flags", flags, "0 or 1 (announced)");
	}
	if (grant->place != 0) {
		return wf_refuse("GRANT", "place", grant->place, "0 for slots");
	}
	if (!wf_is_power_of_two(grant->slot_count) || grant->slot_count > WF_GRANT_SLOT_COUNT_MAX) {
		return wf_refuse("GRANT", "slot_count", grant->slot_count,
				 "a power of two up to 1024");
	}
	if (grant->bytes == 0 || grant->bytes > WF_SLICE_BYTES_MAX) {
		return wf_refuse("GRANT", "bytes", grant->bytes, "1 to 67108864 for a slot");
	}
	if (grant->held_bytes != 0 &&
	    (grant->held_bytes < grant->bytes || grant->held_bytes > WF_PLACE_BYTES_MAX)) {
		return wf_refuse("GRANT", "held_bytes", grant->held_bytes,
				 "0, or the bytes of a slot to 2^58");
	}
	return WEFT_OK;
}

static enum weft_status
check_place(const struct wf_msg_grant *grant, uint16_t flags)
{
	if (flags != 0) {
		return wf_refuse("GRANT", "flags", flags, "0 for a place");
	}
	if (grant->slot_count != 0) {
		return wf_refuse("GRANT", "slot_count", grant->slot_count, "0 for a place");
	}
	if (grant->bytes == 0 || grant->bytes > WF_PLACE_BYTES_MAX) {
		return wf_refuse("GRANT", "bytes", grant->bytes, "1 to 2^58 for a place");
	}
	if (grant->held_bytes != 0) {
		return wf_refuse("GRANT", "held_bytes", grant->held_bytes, "0 for a place");
	}
	return WEFT_OK;
}

enum weft_status
wf_msg_grant_decode(const struct wf_head *head, const uint8_t *body, struct wf_msg_grant *out)
{
	enum weft_status st = wf_shape_check(&grant_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_msg_grant grant = {.kind = wf_get_u8(&r)};
	grant.place = wf_get_u8(&r);
	uint16_t flags = wf_get_u16(&r);
	grant.announced = (flags & GRANT_ANNOUNCED) != 0;
	grant.slot_count = wf_get_u32(&r);
	grant.bytes = wf_get_u64(&r);
	grant.held_bytes = wf_get_u64(&r);
	wf_get_bytes(&r, grant.key, sizeof(grant.key));
	WF_ASSERT(wf_reader_done(&r));
	if (grant.kind != WF_GRANT_WIRE_SLOTS && grant.kind != WF_GRANT_WIRE_PLACE) {
		return wf_refuse("GRANT", "kind", grant.kind, "1 (slots) or 2 (a place)");
	}
	st = grant.kind == WF_GRANT_WIRE_SLOTS ? check_slots(&grant, flags)
					       : check_place(&grant, flags);
	if (st != WEFT_OK) {
		return st;
	}
	*out = grant;
	return WEFT_OK;
}

void
wf_msg_credit_encode(const struct wf_msg_credit *in, struct wf_msg *out)
{
	WF_ASSERT(in->count >= 1 && in->count <= WF_CREDITS_PER_MSG);

	struct wf_writer w = wf_shape_begin(&credit_shape, out);
	wf_put_u32(&w, in->count);
	for (uint32_t i = 0; i < in->count; i++) {
		wf_put_u16(&w, in->buffer[i]);
	}
	wf_shape_end(&credit_shape, &w, out);
}

enum weft_status
wf_msg_credit_decode(const struct wf_head *head, const uint8_t *body, struct wf_msg_credit *out)
{
	enum weft_status st = wf_shape_check(&credit_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	uint32_t count = wf_get_u32(&r);
	if (count == 0 || count > WF_CREDITS_PER_MSG) {
		return wf_refuse("CREDIT", "count", count, "1 to 1024");
	}
	if (count * sizeof(uint16_t) != r.bytes - r.used) {
		return wf_refuse("CREDIT", "count", count, "half of the bytes after it");
	}
	struct wf_reader look = r; /* checks everything before anything is written */
	for (uint32_t i = 0; i < count; i++) {
		uint16_t buffer = wf_get_u16(&look);
		if (buffer >= WF_GRANT_SLOT_COUNT_MAX) {
			return wf_refuse("CREDIT", "buffer", buffer, "below 1024");
		}
	}
	out->count = count;
	for (uint32_t i = 0; i < count; i++) {
		out->buffer[i] = wf_get_u16(&r);
	}
	return WEFT_OK;
}
