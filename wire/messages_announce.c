/* SPDX-License-Identifier: Apache-2.0 */
/* messages_announce: ANNOUNCE and ALLOW, for a lane with a small inbox. Layouts: wire/protocol.md.
 * Thread: any; pure functions. */
#include "base/assert.h"
#include "wire/job.h"
#include "wire/messages.h"
#include "wire/shape.h"

#define RUNS_FIXED_BYTES 4
#define RUN_BYTES 8

static const struct wf_shape announce_shape = {
	.name = "ANNOUNCE",
	.service = WF_SERVICE_DENSE,
	.type = WF_MSG_ANNOUNCE,
	.uses = WF_USE_STEP,
	.body_min = RUNS_FIXED_BYTES + RUN_BYTES,
	.body_max = RUNS_FIXED_BYTES + WF_RUNS_PER_MSG * RUN_BYTES,
};

static const struct wf_shape allow_shape = {
	.name = "ALLOW",
	.service = WF_SERVICE_DENSE,
	.type = WF_MSG_ALLOW,
	.uses = WF_USE_STEP,
	.body_min = RUNS_FIXED_BYTES + RUN_BYTES,
	.body_max = RUNS_FIXED_BYTES + WF_RUNS_PER_MSG * RUN_BYTES,
};

static void
runs_encode(const struct wf_shape *shape, const struct wf_msg_runs *in, struct wf_msg *out)
{
	WF_ASSERT(in->count >= 1 && in->count <= WF_RUNS_PER_MSG);
	struct wf_writer w = wf_shape_begin(shape, out);
	out->head.step = in->step;
	wf_put_u32(&w, in->count);
	for (uint32_t i = 0; i < in->count; i++) {
		wf_put_u32(&w, in->run[i].first);
		wf_put_u32(&w, in->run[i].count);
	}
	wf_shape_end(shape, &w, out);
}

static enum weft_status
check_run(const struct wf_shape *shape, const struct wf_run *run)
{
	uint64_t end = (uint64_t)run->first + run->count;
	if (run->count == 0) {
		return wf_refuse(shape->name, "slices of a run", 0, "1 or more");
	}
	if (end > WF_SLICE_COUNT_MAX) {
		return wf_refuse(shape->name, "first + count", end, "at most 2097152");
	}
	return WEFT_OK;
}

static struct wf_run
get_run(struct wf_reader *r)
{
	struct wf_run run;
	run.first = wf_get_u32(r);
	run.count = wf_get_u32(r);
	return run;
}

static enum weft_status
runs_decode(const struct wf_shape *shape, const struct wf_head *head, const uint8_t *body,
	    struct wf_msg_runs *out)
{
	enum weft_status st = wf_shape_check(shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	uint32_t count = wf_get_u32(&r);
	if (count == 0 || count > WF_RUNS_PER_MSG) {
		return wf_refuse(shape->name, "count", count, "1 to 500");
	}
	if (head->body_bytes != RUNS_FIXED_BYTES + (uint64_t)count * RUN_BYTES) {
		return wf_refuse(shape->name, "count", count, "an eighth of the bytes after it");
	}
	if (head->step == 0 || head->step > INT64_MAX) {
		return wf_refuse(shape->name, "step", head->step, "above 0 and below 2^63");
	}
	struct wf_reader look = r; /* checks everything before anything is written */
	for (uint32_t i = 0; i < count; i++) {
		struct wf_run run = get_run(&look);
		st = check_run(shape, &run);
		if (st != WEFT_OK) {
			return st;
		}
	}
	out->step = head->step;
	out->count = count;
	for (uint32_t i = 0; i < count; i++) {
		out->run[i] = get_run(&r);
	}
	WF_ASSERT(wf_reader_done(&r));
	return WEFT_OK;
}

void
wf_msg_announce_encode(const struct wf_msg_runs *in, struct wf_msg *out)
{
	runs_encode(&announce_shape, in, out);
}

void
wf_msg_allow_encode(const struct wf_msg_runs *in, struct wf_msg *out)
{
	runs_encode(&allow_shape, in, out);
}

enum weft_status
wf_msg_announce_decode(const struct wf_head *head, const uint8_t *body, struct wf_msg_runs *out)
{
	return runs_decode(&announce_shape, head, body, out);
}

enum weft_status
wf_msg_allow_decode(const struct wf_head *head, const uint8_t *body, struct wf_msg_runs *out)
{
	return runs_decode(&allow_shape, head, body, out);
}
