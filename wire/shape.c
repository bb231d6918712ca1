/* SPDX-License-Identifier: Apache-2.0 */
/* shape: what all encoders and decoders of this folder share. Thread: any; pure functions. */
#include "wire/shape.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "wire/job.h"

/* Refuses a message in which a field that it does not use is not 0. */
static enum weft_status
refuse_unused(const struct wf_shape *shape, const struct wf_head *head)
{
	const struct {
		const char *name;
		uint64_t value;
		unsigned use;
	} field[] = {
		{"request_id", head->request_id, WF_USE_REQUEST_ID},
		{"step", head->step, WF_USE_STEP},
		{"slice", head->slice, WF_USE_SLICE},
		{"region", head->region, 0},
		{"offset", head->offset, WF_USE_OFFSET},
		{"epoch", head->epoch, WF_USE_EPOCH},
	};
	for (size_t i = 0; i < WF_ARRAY_COUNT(field); i++) {
		if ((shape->uses & field[i].use) == 0 && field[i].value != 0) {
			return wf_refuse(shape->name, field[i].name, field[i].value,
					 "0, for it is not used");
		}
	}
	WF_ASSERT(false && "all of them are used or 0");
	return WEFT_PROTOCOL;
}

/* The fields that the message does not use, combined in one word: 0 if all are 0. */
static uint64_t
unused_bits(const struct wf_shape *shape, const struct wf_head *head)
{
	uint64_t bits = head->region;
	bits |= (shape->uses & WF_USE_REQUEST_ID) != 0 ? 0 : head->request_id;
	bits |= (shape->uses & WF_USE_STEP) != 0 ? 0 : head->step;
	bits |= (shape->uses & WF_USE_SLICE) != 0 ? 0 : head->slice;
	bits |= (shape->uses & WF_USE_OFFSET) != 0 ? 0 : head->offset;
	bits |= (shape->uses & WF_USE_EPOCH) != 0 ? 0 : head->epoch;
	return bits;
}

enum weft_status
wf_shape_check(const struct wf_shape *shape, const struct wf_head *head)
{
	if (head->service != shape->service || head->type != shape->type) {
		return wf_fail(WEFT_PROTOCOL, "%s: service is %u and type %u, must be %u and %u",
			       shape->name, head->service, head->type, shape->service, shape->type);
	}
	if (unused_bits(shape, head) != 0) {
		return refuse_unused(shape, head);
	}
	if (head->body_bytes < shape->body_min || head->body_bytes > shape->body_max) {
		return wf_fail(WEFT_PROTOCOL, "%s: body_bytes is %" PRIu64 ", must be %zu to %zu",
			       shape->name, head->body_bytes, shape->body_min, shape->body_max);
	}
	return WEFT_OK;
}

void
wf_put_text(struct wf_writer *w, const char *text, size_t capacity)
{
	WF_ASSERT(capacity > 0 && capacity <= UINT16_MAX);
	size_t length = strnlen(text, capacity - 1);
	wf_put_u16(w, (uint16_t)length);
	for (size_t i = 0; i < length; i++) {
		uint8_t byte = (uint8_t)text[i];
		wf_put_u8(w, byte < 0x20 || byte > 0x7e ? (uint8_t)'?' : byte);
	}
}

enum weft_status
wf_refuse(const char *message, const char *field, uint64_t value, const char *rule)
{
	return wf_fail(WEFT_PROTOCOL, "%s: %s is %" PRIu64 ", must be %s", message, field, value,
		       rule);
}

enum weft_status
wf_refuse_text(const char *message, const char *field, const struct wf_reader *r, size_t capacity)
{
	return wf_fail(WEFT_PROTOCOL,
		       "%s: %s, before byte %zu of %zu, is cut off, longer than %zu characters or "
		       "not printable ASCII",
		       message, field, r->used, r->bytes, capacity - 1);
}

enum weft_status
wf_refuse_length(const char *message, const struct wf_reader *r)
{
	if (r->bad) {
		return wf_fail(WEFT_PROTOCOL, "%s: it ends early, after %zu bytes", message,
			       r->bytes);
	}
	return wf_fail(WEFT_PROTOCOL, "%s: its fields take %zu bytes, but it has %zu", message,
		       r->used, r->bytes);
}

enum weft_status
wf_status_check(const char *message, const char *field, uint16_t status)
{
	if (status == WEFT_OK || status == WEFT_AGAIN || status >= WEFT_STATUS_COUNT) {
		return wf_refuse(message, field, status, "the number of a failure, 2 to 17");
	}
	return WEFT_OK;
}

void
wf_refusal_put(struct wf_writer *w, uint16_t status, const char *reason)
{
	wf_put_u16(w, status);
	wf_put_text(w, reason, WF_REASON_BYTES);
}

enum weft_status
wf_refusal_get(struct wf_reader *r, uint16_t *status, char *reason)
{
	*status = wf_get_u16(r);
	enum weft_status st = wf_status_check("NACK", "status", *status);
	if (st != WEFT_OK) {
		return st;
	}
	wf_get_string(r, reason, WF_REASON_BYTES);
	if (r->bad) {
		return wf_refuse_text("NACK", "reason", r, WF_REASON_BYTES);
	}
	return wf_reader_done(r) ? WEFT_OK : wf_refuse_length("NACK", r);
}

enum weft_status
wf_ordinals_check(const char *message, uint32_t first, uint32_t count)
{
	if ((uint64_t)first + count > WF_SLICE_COUNT_MAX) {
		return wf_refuse(message, "first + count", (uint64_t)first + count,
				 "at most 2097152");
	}
	return WEFT_OK;
}
