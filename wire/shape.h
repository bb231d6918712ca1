/* SPDX-License-Identifier: Apache-2.0 */
/* shape: what all encoders and decoders of this folder share: the outer shape of a message, texts,
 * and how a field is refused. Private to wire. Thread: any; pure functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "wire/bytes.h"
#include "wire/head.h"
#include "wire/messages.h"

/* Fields of the head that a message uses. All others are 0, and refused when not. */
enum wf_head_use {
	WF_USE_REQUEST_ID = 1 << 0,
	WF_USE_STEP = 1 << 1,
	WF_USE_SLICE = 1 << 2,
	WF_USE_OFFSET = 1 << 3,
	WF_USE_EPOCH = 1 << 4,
};

struct wf_shape {
	const char *name; /* "RESUME" */
	uint8_t service;  /* enum wf_service */
	uint8_t type;
	uint8_t uses;    /* enum wf_head_use */
	size_t body_min; /* bytes */
	size_t body_max; /* bytes */
};

/* Starts a message: its head is zero except for service and type. */
static inline struct wf_writer
wf_shape_begin(const struct wf_shape *shape, struct wf_msg *out)
{
	WF_ASSERT(shape->body_max <= sizeof(out->body));
	out->head = (struct wf_head){.service = shape->service, .type = shape->type};
	return (struct wf_writer){.base = out->body, .capacity = shape->body_max};
}

/* Everything is written: sets the length in the head. */
static inline void
wf_shape_end(const struct wf_shape *shape, const struct wf_writer *w, struct wf_msg *out)
{
	WF_ASSERT(!w->bad);
	WF_ASSERT(w->used >= shape->body_min);
	out->body_bytes = w->used;
	out->head.body_bytes = w->used;
}

/* Checks service, type, unused fields and length. WEFT_PROTOCOL. */
enum weft_status wf_shape_check(const struct wf_shape *shape,
				const struct wf_head *head) WEFT_MUST_CHECK;

/* Writes a text of our own: cut to capacity - 1 characters, with '?' for what wf_get_string would
 * refuse. */
void wf_put_text(struct wf_writer *w, const char *text, size_t capacity);

/* WEFT_PROTOCOL "RESUME: count is 501, must be 0 to 500". */
enum weft_status wf_refuse(const char *message, const char *field, uint64_t value,
			   const char *rule);
/* WEFT_PROTOCOL for a text that wf_get_string refused. */
enum weft_status wf_refuse_text(const char *message, const char *field, const struct wf_reader *r,
				size_t capacity);
/* WEFT_PROTOCOL for bytes that are too few or too many. */
enum weft_status wf_refuse_length(const char *message, const struct wf_reader *r);
/* WEFT_PROTOCOL unless `status` can be recorded as a failure. */
enum weft_status wf_status_check(const char *message, const char *field,
				 uint16_t status) WEFT_MUST_CHECK;

/* The end of the body of every NACK: u16 status, str reason. When decoding refuses, `reason`
 * [WF_REASON_BYTES] may hold a part of it. */
void wf_refusal_put(struct wf_writer *w, uint16_t status, const char *reason);
enum weft_status wf_refusal_get(struct wf_reader *r, uint16_t *status,
				char *reason) WEFT_MUST_CHECK;
/* Checks that `first` .. first + count - 1 are ordinals of slices on one lane. */
enum weft_status wf_ordinals_check(const char *message, uint32_t first,
				   uint32_t count) WEFT_MUST_CHECK;

/* A reader of the body, after wf_shape_check. */
static inline struct wf_reader
wf_body_reader(const struct wf_head *head, const uint8_t *body)
{
	return (struct wf_reader){.base = body, .bytes = (size_t)head->body_bytes};
}

static inline bool
wf_is_power_of_two(uint64_t value)
{
	return value != 0 && (value & (value - 1)) == 0;
}
