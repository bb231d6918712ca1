/* SPDX-License-Identifier: Apache-2.0 */
/* fault_post: post accepts fewer operations than given (short) or passes them on in several posts
 * (split), and a cut may fall between two operations. Thread: the transport's owner. */
#include "base/assert.h"
#include "transport/fault/fault_internal.h"

/* How many operations to accept; at least one while no DONE is outstanding, and never more than
 * op_max. */
static unsigned
draw_limit(struct wf_fault_conn *c, unsigned op_count)
{
	struct wf_fault *f = c->fault;
	uint32_t room = f->opts.op_max - c->op_count;
	unsigned limit = op_count < room ? op_count : room;
	unsigned least = c->op_count == 0 ? 1 : 0;
	bool strikes = wf_fault_strikes(f, WF_FAULT_SHORT, WF_FAULT_AT_POST);
	if (strikes && limit > least) {
		limit = (unsigned)wf_fault_draw_between(f, least, limit - 1);
		wf_fault_count(f, WF_FAULT_SHORT);
	}
	return limit;
}

/* Makes one inner post. A cut is drawn for each operation, and happens when the last of them was
 * accepted. */
static enum weft_status
post_part(struct wf_fault_conn *c, const struct wf_op *ops, unsigned part, unsigned *taken)
{
	struct wf_fault *f = c->fault;
	bool cuts = false;
	for (unsigned i = 1; i <= part && !cuts; i++) {
		cuts = wf_fault_strikes_ahead(f, WF_FAULT_CUT, WF_FAULT_AT_OP, i);
		part = cuts ? i : part;
	}
	unsigned got = 0;
	enum weft_status st = wf_transport_post(c->inner, ops, part, &got);
	WF_ASSERT(got <= part);
	for (unsigned i = 0; i < got; i++) {
		const bool may_be_copied = ops[i].kind == WF_OP_PUT && ops[i].copied != NULL;
		c->op_count += may_be_copied && *ops[i].copied ? 0 : 1;
	}
	f->seen[WF_FAULT_AT_OP] += got;
	*taken += got;
	if (cuts && got == part) {
		wf_fault_conn_cut(c);
	}
	return st;
}

static enum weft_status
post_parts(struct wf_fault_conn *c, const struct wf_op *ops, unsigned limit, unsigned *taken)
{
	struct wf_fault *f = c->fault;
	bool splits = limit > 1 && wf_fault_strikes(f, WF_FAULT_SPLIT, WF_FAULT_AT_POST);
	if (splits) {
		wf_fault_count(f, WF_FAULT_SPLIT);
	}
	enum weft_status st = WEFT_OK;
	while (*taken < limit && st == WEFT_OK && !c->cut) {
		unsigned part = limit - *taken;
		if (splits && part > 1) {
			uint64_t most = *taken == 0 ? part - 1 : part;
			part = (unsigned)wf_fault_draw_between(f, 1, most);
		}
		st = post_part(c, ops + *taken, part, taken);
	}
	return st;
}

enum weft_status
wf_fault_post(struct wf_conn *base, const struct wf_op *ops, unsigned op_count, unsigned *taken)
{
	struct wf_fault_conn *c = wf_fault_conn_of(base);
	struct wf_fault *f = c->fault;
	*taken = 0;
	enum weft_status st = wf_fault_check_up(c, "post");
	if (st != WEFT_OK) {
		return st;
	}
	if (op_count == 0) {
		return wf_transport_post(c->inner, ops, 0, taken);
	}
	wf_fault_see(f, WF_FAULT_AT_POST);
	st = post_parts(c, ops, draw_limit(c, op_count), taken);
	while (st == WEFT_OK && *taken < op_count && c->op_count == 0 && !c->cut) {
		/* All were copied: after the AGAIN of a short post no DONE would come. */
		st = post_part(c, ops + *taken, 1, taken);
	}
	if (st == WEFT_CLOSED && *taken > 0) {
		/* Operations accepted so far get their DONE before DOWN; CLOSED would mean that
		 * none was accepted. */
		st = WEFT_AGAIN;
	}
	if (st == WEFT_OK && *taken < op_count) {
		st = WEFT_AGAIN;
	}
	f->posts_again += st == WEFT_AGAIN ? 1 : 0;
	return st;
}
