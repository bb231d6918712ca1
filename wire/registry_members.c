/* SPDX-License-Identifier: Apache-2.0 */
/* registry_members: encode and decode the messages of the registry service that are about members
 * who leave or join. As in registry_messages.c, one check for each message is both what decode
 * refuses and what encode asserts. Layouts: wire/protocol.md. Thread: any; pure functions. */
#include <string.h>

#include "base/assert.h"
#include "base/limits.h"
#include "wire/registry_messages.h"
#include "wire/shape.h"

#define LOST_FIXED_BYTES 18
#define MEMBER_BYTES 48
#define STANDS_FIXED_BYTES 54
#define SETTLED_BYTES 8
#define COMES_BYTES 12

static const struct wf_shape lost_shape = {
	.name = "LOST",
	.service = WF_SERVICE_REGISTRY,
	.type = WF_REGISTRY_LOST,
	.body_min = LOST_FIXED_BYTES + 1,
	.body_max = LOST_FIXED_BYTES + WF_REASON_BYTES - 1,
};

static const struct wf_shape member_shape = {
	.name = "MEMBER",
	.service = WF_SERVICE_REGISTRY,
	.type = WF_REGISTRY_MEMBER,
	.body_min = MEMBER_BYTES,
	.body_max = MEMBER_BYTES,
};

static const struct wf_shape stands_shape = {
	.name = "STANDS",
	.service = WF_SERVICE_REGISTRY,
	.type = WF_REGISTRY_STANDS,
	.body_min = STANDS_FIXED_BYTES,
	.body_max = STANDS_FIXED_BYTES + WF_REASON_BYTES - 1,
};

static const struct wf_shape settled_shape = {
	.name = "SETTLED",
	.service = WF_SERVICE_REGISTRY,
	.type = WF_REGISTRY_SETTLED,
	.body_min = SETTLED_BYTES,
	.body_max = SETTLED_BYTES,
};

static const struct wf_shape comes_shape = {
	.name = "COMES",
	.service = WF_SERVICE_REGISTRY,
	.type = WF_REGISTRY_COMES,
	.body_min = COMES_BYTES,
	.body_max = COMES_BYTES,
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

static enum weft_status
check_lost(const struct wf_registry_lost *lost)
{
	enum weft_status st = check_trainer("LOST", lost->trainer, lost->incarnation);
	return st != WEFT_OK || lost->flags <= WF_REGISTRY_LOST_WILLING
		       ? st
		       : wf_refuse("LOST", "flags", lost->flags, "WILLING, or 0");
}

void
wf_registry_lost_encode(const struct wf_registry_lost *in, struct wf_msg *out)
{
	WF_ASSERT(check_lost(in) == WEFT_OK);
	WF_ASSERT(in->reason[0] != '\0');

	struct wf_writer w = wf_shape_begin(&lost_shape, out);
	wf_put_u64(&w, in->incarnation);
	wf_put_u32(&w, in->trainer);
	wf_put_u32(&w, in->flags);
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
	lost.flags = wf_get_u32(&r);
	st = check_lost(&lost);
	st = st == WEFT_OK ? get_text("LOST", &r, lost.reason) : st;
	if (st != WEFT_OK) {
		return st;
	}
	WF_ASSERT(lost.reason[0] != '\0'); /* body_min */
	*out = lost;
	return WEFT_OK;
}

/* MEMBER. */

/* What goes with the flags of one that leaves. */
static enum weft_status
check_leaver(const struct wf_registry_member *member)
{
	const uint32_t half = WF_REGISTRY_MEMBER_HALF | WF_REGISTRY_MEMBER_ALONE;
	const bool is_half = (member->flags & WF_REGISTRY_MEMBER_HALF) != 0;
	const bool has_half = (member->flags & half) != 0;
	if ((member->flags & ~(half | WF_REGISTRY_MEMBER_WILLING)) != 0 ||
	    (has_half && (!is_half || member->border == 0))) {
		return wf_refuse("MEMBER", "flags", member->flags,
				 "HALF, or HALF and ALONE, with a border, and WILLING or not; or "
				 "JOINS");
	}
	if (member->samples != 0 && !is_half) {
		return wf_refuse("MEMBER", "samples", member->samples, "0 without HALF or JOINS");
	}
	/* It leaves in the step that was applied last, or in the next one. */
	bool is_near = member->border == member->applied || member->border == member->applied + 1;
	return is_near || (member->border == 0 && member->applied == 0)
		       ? WEFT_OK
		       : wf_refuse("MEMBER", "border", member->border,
				   "the step applied last, or the next one");
}

/* It joins after a step that was applied. */
static enum weft_status
check_joiner(const struct wf_registry_member *member)
{
	const bool asks = member->border == 0;
	if (asks ? member->applied != 0
		 : member->applied == 0 || member->border != member->applied + 1) {
		return wf_refuse("MEMBER", "border", member->border,
				 "the step after the one applied last, which is 1 or more");
	}
	if (member->applied > WF_INIT_STEP_MAX) {
		return wf_refuse("MEMBER", "applied", member->applied, "a step that INIT can name");
	}
	return !asks || member->samples == 0
		       ? WEFT_OK
		       : wf_refuse("MEMBER", "samples", member->samples, "0 without a border");
}

static enum weft_status
check_member(const struct wf_registry_member *member)
{
	enum weft_status st = check_change("MEMBER", member->change);
	st = st == WEFT_OK ? check_trainer("MEMBER", member->trainer, member->incarnation) : st;
	if (st == WEFT_OK && member->applied >= INT64_MAX) {
		st = wf_refuse("MEMBER", "applied", member->applied, "below 2^63 - 1");
	}
	if (st == WEFT_OK && member->samples > INT64_MAX) {
		st = wf_refuse("MEMBER", "samples", member->samples, "below 2^63");
	}
	if (st != WEFT_OK) {
		return st;
	}
	return member->flags == WF_REGISTRY_MEMBER_JOINS ? check_joiner(member)
							 : check_leaver(member);
}

void
wf_registry_member_encode(const struct wf_registry_member *in, struct wf_msg *out)
{
	WF_ASSERT(check_member(in) == WEFT_OK);

	struct wf_writer w = wf_shape_begin(&member_shape, out);
	wf_put_u64(&w, in->change);
	wf_put_u64(&w, in->incarnation);
	wf_put_u64(&w, in->border);
	wf_put_u64(&w, in->applied);
	wf_put_u64(&w, in->samples);
	wf_put_u32(&w, in->trainer);
	wf_put_u32(&w, in->flags);
	wf_shape_end(&member_shape, &w, out);
}

enum weft_status
wf_registry_member_decode(const struct wf_head *head, const uint8_t *body,
			  struct wf_registry_member *out)
{
	enum weft_status st = wf_shape_check(&member_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_registry_member member = {.change = wf_get_u64(&r)};
	member.incarnation = wf_get_u64(&r);
	member.border = wf_get_u64(&r);
	member.applied = wf_get_u64(&r);
	member.samples = wf_get_u64(&r);
	member.trainer = wf_get_u32(&r);
	member.flags = wf_get_u32(&r);
	WF_ASSERT(wf_reader_done(&r));
	st = check_member(&member);
	if (st != WEFT_OK) {
		return st;
	}
	*out = member;
	return WEFT_OK;
}

/* STANDS. */

static enum weft_status
check_stands(const struct wf_registry_stands *stands)
{
	const uint32_t all = WF_REGISTRY_STANDS_READY | WF_REGISTRY_STANDS_COUNTED |
			     WF_REGISTRY_STANDS_ALONE | WF_REGISTRY_STANDS_SHARED;
	const bool is_counted = (stands->flags & WF_REGISTRY_STANDS_COUNTED) != 0;
	enum weft_status st = check_change("STANDS", stands->change);
	if (st == WEFT_OK && stands->applied >= INT64_MAX) {
		st = wf_refuse("STANDS", "applied", stands->applied, "below 2^63 - 1");
	}
	if (st == WEFT_OK && (stands->flags > all ||
			      ((stands->flags & WF_REGISTRY_STANDS_ALONE) != 0 && !is_counted))) {
		st = wf_refuse("STANDS", "flags", stands->flags,
			       "READY, COUNTED, SHARED, and ALONE with COUNTED");
	}
	if (st == WEFT_OK &&
	    (stands->samples > INT64_MAX || (stands->samples != 0 && !is_counted))) {
		st = wf_refuse("STANDS", "samples", stands->samples,
			       "below 2^63, and 0 without COUNTED");
	}
	if (st == WEFT_OK && stands->total > INT64_MAX) {
		st = wf_refuse("STANDS", "total", stands->total, "below 2^63");
	}
	if (st == WEFT_OK && stands->highest >= INT64_MAX) {
		st = wf_refuse("STANDS", "highest", stands->highest, "below 2^63 - 1");
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
	wf_put_u64(&w, in->total);
	wf_put_u64(&w, in->highest);
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
	stands.total = wf_get_u64(&r);
	stands.highest = wf_get_u64(&r);
	stands.flags = wf_get_u32(&r);
	st = check_stands(&stands);
	st = st == WEFT_OK ? get_text("STANDS", &r, stands.where) : st;
	if (st != WEFT_OK) {
		return st;
	}
	*out = stands;
	return WEFT_OK;
}

/* SETTLED. */

void
wf_registry_settled_encode(const struct wf_registry_settled *in, struct wf_msg *out)
{
	WF_ASSERT(check_change("SETTLED", in->change) == WEFT_OK);

	struct wf_writer w = wf_shape_begin(&settled_shape, out);
	wf_put_u64(&w, in->change);
	wf_shape_end(&settled_shape, &w, out);
}

enum weft_status
wf_registry_settled_decode(const struct wf_head *head, const uint8_t *body,
			   struct wf_registry_settled *out)
{
	enum weft_status st = wf_shape_check(&settled_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_registry_settled left = {.change = wf_get_u64(&r)};
	WF_ASSERT(wf_reader_done(&r));
	st = check_change("SETTLED", left.change);
	if (st != WEFT_OK) {
		return st;
	}
	*out = left;
	return WEFT_OK;
}

/* COMES. */

void
wf_registry_comes_encode(const struct wf_registry_comes *in, struct wf_msg *out)
{
	WF_ASSERT(check_trainer("COMES", in->trainer, in->incarnation) == WEFT_OK);

	struct wf_writer w = wf_shape_begin(&comes_shape, out);
	wf_put_u64(&w, in->incarnation);
	wf_put_u32(&w, in->trainer);
	wf_shape_end(&comes_shape, &w, out);
}

enum weft_status
wf_registry_comes_decode(const struct wf_head *head, const uint8_t *body,
			 struct wf_registry_comes *out)
{
	enum weft_status st = wf_shape_check(&comes_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_registry_comes comes = {.incarnation = wf_get_u64(&r)};
	comes.trainer = wf_get_u32(&r);
	WF_ASSERT(wf_reader_done(&r));
	st = check_trainer("COMES", comes.trainer, comes.incarnation);
	if (st != WEFT_OK) {
		return st;
	}
	*out = comes;
	return WEFT_OK;
}
