/* SPDX-License-Identifier: Apache-2.0 */
/* registry_members: encode and decode the messages of the registry service that are about members
 * who leave. As in registry_messages.c, one check for each message is both what decode refuses and
 * what encode asserts. Layouts: wire/protocol.md. Thread: any; pure functions. */
#include <string.h>

#include "base/assert.h"
#include "base/limits.h"
#include "wire/registry_messages.h"
#include "wire/shape.h"

#define LOST_FIXED_BYTES 14
#define LEAVE_BYTES 48
#define STANDS_FIXED_BYTES 38
#define LEFT_BYTES 8

static const struct wf_shape lost_shape = {
	.name = "LOST",
	.service = WF_SERVICE_REGISTRY,
	.type = WF_REGISTRY_LOST,
	.body_min = LOST_FIXED_BYTES + 1,
	.body_max = LOST_FIXED_BYTES + WF_REASON_BYTES - 1,
};

static const struct wf_shape leave_shape = {
	.name = "LEAVE",
	.service = WF_SERVICE_REGISTRY,
	.type = WF_REGISTRY_LEAVE,
	.body_min = LEAVE_BYTES,
	.body_max = LEAVE_BYTES,
};

static const struct wf_shape stands_shape = {
	.name = "STANDS",
	.service = WF_SERVICE_REGISTRY,
	.type = WF_REGISTRY_STANDS,
	.body_min = STANDS_FIXED_BYTES,
	.body_max = STANDS_FIXED_BYTES + WF_REASON_BYTES - 1,
};

static const struct wf_shape left_shape = {
	.name = "LEFT",
	.service = WF_SERVICE_REGISTRY,
	.type = WF_REGISTRY_LEFT,
	.body_min = LEFT_BYTES,
	.body_max = LEFT_BYTES,
};

static enum weft_status
check_trainer(const char *message, uint32_t trainer, uint64_t incarnation)
{
	if (trainer >= WF_TRAINER_COUNT_MAX) {
		return wf_refuse(message, "trainer", trainer, "below the most trainers of a job");
	}
	return incarnation != 0 ? WEFT_OK : wf_refuse(message, "incarnation", 0, "not 0");
}

static enum weft_status
check_change(const char *message, uint64_t change)
{
	return change != 0 && change <= INT64_MAX
		       ? WEFT_OK
		       : wf_refuse(message, "change", change, "1 or more, below 2^63");
}

/* Reads the text at the end of a message, which may be empty; `text` is [WF_REASON_BYTES]. */
static enum weft_status
get_text(const char *message, struct wf_reader *r, char *text)
{
	wf_get_string(r, text, WF_REASON_BYTES);
	if (r->bad) {
		return wf_refuse_text(message, "text", r, WF_REASON_BYTES);
	}
	return wf_reader_done(r) ? WEFT_OK : wf_refuse_length(message, r);
}

/* LOST. */

void
wf_registry_lost_encode(const struct wf_registry_lost *in, struct wf_msg *out)
{
	WF_ASSERT(check_trainer("LOST", in->trainer, in->incarnation) == WEFT_OK);
	WF_ASSERT(in->reason[0] != '\0');

	struct wf_writer w = wf_shape_begin(&lost_shape, out);
	wf_put_u64(&w, in->incarnation);
	wf_put_u32(&w, in->trainer);
	wf_put_text(&w, in->reason, sizeof(in->reason));
	wf_shape_end(&lost_shape, &w, out);
}

enum weft_status
wf_registry_lost_decode(const struct wf_head *head, const uint8_t *body,
			struct wf_registry_lost *out)
{
	enum weft_status st = wf_shape_check(&lost_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_registry_lost lost = {.incarnation = wf_get_u64(&r)};
	lost.trainer = wf_get_u32(&r);
	st = check_trainer("LOST", lost.trainer, lost.incarnation);
	st = st == WEFT_OK ? get_text("LOST", &r, lost.reason) : st;
	if (st != WEFT_OK) {
		return st;
	}
	WF_ASSERT(lost.reason[0] != '\0'); /* body_min */
	*out = lost;
	return WEFT_OK;
}

/* LEAVE. */

/* What goes with the flags. */
static enum weft_status
check_leave_flags(const struct wf_registry_leave *leave)
{
	const bool is_half = (leave->flags & WF_REGISTRY_LEAVE_HALF) != 0;
	if (leave->flags > (WF_REGISTRY_LEAVE_HALF | WF_REGISTRY_LEAVE_ALONE) ||
	    (leave->flags != 0 && (!is_half || leave->border == 0))) {
		return wf_refuse("LEAVE", "flags", leave->flags,
				 "HALF, or HALF and ALONE, with a border, or 0");
	}
	if (leave->samples > INT64_MAX || (leave->samples != 0 && !is_half)) {
		return wf_refuse("LEAVE", "samples", leave->samples,
				 "below 2^63, and 0 without HALF");
	}
	return WEFT_OK;
}

static enum weft_status
check_leave(const struct wf_registry_leave *leave)
{
	enum weft_status st = check_change("LEAVE", leave->change);
	st = st == WEFT_OK ? check_trainer("LEAVE", leave->trainer, leave->incarnation) : st;
	if (st == WEFT_OK && leave->applied >= INT64_MAX) {
		st = wf_refuse("LEAVE", "applied", leave->applied, "below 2^63 - 1");
	}
	/* It leaves in the step that was applied last, or in the next one. */
	bool is_near = leave->border == leave->applied || leave->border == leave->applied + 1;
	if (st == WEFT_OK && !is_near && !(leave->border == 0 && leave->applied == 0)) {
		st = wf_refuse("LEAVE", "border", leave->border,
			       "the step applied last, or the next one");
	}
	return st == WEFT_OK ? check_leave_flags(leave) : st;
}

void
wf_registry_leave_encode(const struct wf_registry_leave *in, struct wf_msg *out)
{
	WF_ASSERT(check_leave(in) == WEFT_OK);

	struct wf_writer w = wf_shape_begin(&leave_shape, out);
	wf_put_u64(&w, in->change);
	wf_put_u64(&w, in->incarnation);
	wf_put_u64(&w, in->border);
	wf_put_u64(&w, in->applied);
	wf_put_u64(&w, in->samples);
	wf_put_u32(&w, in->trainer);
	wf_put_u32(&w, in->flags);
	wf_shape_end(&leave_shape, &w, out);
}

enum weft_status
wf_registry_leave_decode(const struct wf_head *head, const uint8_t *body,
			 struct wf_registry_leave *out)
{
	enum weft_status st = wf_shape_check(&leave_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_registry_leave leave = {.change = wf_get_u64(&r)};
	leave.incarnation = wf_get_u64(&r);
	leave.border = wf_get_u64(&r);
	leave.applied = wf_get_u64(&r);
	leave.samples = wf_get_u64(&r);
	leave.trainer = wf_get_u32(&r);
	leave.flags = wf_get_u32(&r);
	WF_ASSERT(wf_reader_done(&r));
	st = check_leave(&leave);
	if (st != WEFT_OK) {
		return st;
	}
	*out = leave;
	return WEFT_OK;
}

/* STANDS. */

static enum weft_status
check_stands(const struct wf_registry_stands *stands)
{
	const uint32_t all =
		WF_REGISTRY_STANDS_READY | WF_REGISTRY_STANDS_COUNTED | WF_REGISTRY_STANDS_ALONE;
	const bool is_counted = (stands->flags & WF_REGISTRY_STANDS_COUNTED) != 0;
	enum weft_status st = check_change("STANDS", stands->change);
	if (st == WEFT_OK && stands->applied >= INT64_MAX) {
		st = wf_refuse("STANDS", "applied", stands->applied, "below 2^63 - 1");
	}
	if (st == WEFT_OK && (stands->flags > all ||
			      ((stands->flags & WF_REGISTRY_STANDS_ALONE) != 0 && !is_counted))) {
		st = wf_refuse("STANDS", "flags", stands->flags,
			       "READY, COUNTED, and ALONE with COUNTED");
	}
	if (st == WEFT_OK &&
	    (stands->samples > INT64_MAX || (stands->samples != 0 && !is_counted))) {
		st = wf_refuse("STANDS", "samples", stands->samples,
			       "below 2^63, and 0 without COUNTED");
	}
	return st;
}

void
wf_registry_stands_encode(const struct wf_registry_stands *in, struct wf_msg *out)
{
	WF_ASSERT(check_stands(in) == WEFT_OK);

	struct wf_writer w = wf_shape_begin(&stands_shape, out);
	wf_put_u64(&w, in->change);
	wf_put_u64(&w, in->applied);
	wf_put_u64(&w, in->received);
	wf_put_u64(&w, in->samples);
	wf_put_u32(&w, in->flags);
	wf_put_text(&w, in->where, sizeof(in->where));
	wf_shape_end(&stands_shape, &w, out);
}

enum weft_status
wf_registry_stands_decode(const struct wf_head *head, const uint8_t *body,
			  struct wf_registry_stands *out)
{
	enum weft_status st = wf_shape_check(&stands_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_registry_stands stands = {.change = wf_get_u64(&r)};
	stands.applied = wf_get_u64(&r);
	stands.received = wf_get_u64(&r);
	stands.samples = wf_get_u64(&r);
	stands.flags = wf_get_u32(&r);
	st = check_stands(&stands);
	st = st == WEFT_OK ? get_text("STANDS", &r, stands.where) : st;
	if (st != WEFT_OK) {
		return st;
	}
	*out = stands;
	return WEFT_OK;
}

/* LEFT. */

void
wf_registry_left_encode(const struct wf_registry_left *in, struct wf_msg *out)
{
	WF_ASSERT(check_change("LEFT", in->change) == WEFT_OK);

	struct wf_writer w = wf_shape_begin(&left_shape, out);
	wf_put_u64(&w, in->change);
	wf_shape_end(&left_shape, &w, out);
}

enum weft_status
wf_registry_left_decode(const struct wf_head *head, const uint8_t *body,
			struct wf_registry_left *out)
{
	enum weft_status st = wf_shape_check(&left_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_registry_left left = {.change = wf_get_u64(&r)};
	WF_ASSERT(wf_reader_done(&r));
	st = check_change("LEFT", left.change);
	if (st != WEFT_OK) {
		return st;
	}
	*out = left;
	return WEFT_OK;
}
