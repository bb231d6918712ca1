/* SPDX-License-Identifier: Apache-2.0 */
/* messages_report: REPORT and REPORTED, what a lane knows about a trainer or the job.
 * Layouts: wire/protocol.md. Thread: any; pure functions. */
#include "base/assert.h"
#include "wire/job.h"
#include "wire/messages.h"
#include "wire/shape.h"

static const struct wf_shape report_shape = {
	.name = "REPORT",
	.service = WF_SERVICE_DENSE,
	.type = WF_MSG_REPORT,
	.uses = WF_USE_REQUEST_ID,
	.body_min = 4,
	.body_max = 4,
};

static const struct wf_shape reported_shape = {
	.name = "REPORTED",
	.service = WF_SERVICE_DENSE,
	.type = WF_MSG_REPORTED,
	.uses = WF_USE_REQUEST_ID,
	.body_min = 4 + WF_REPORT_VALUES * 8,
	.body_max = 4 + WF_REPORT_VALUES * 8,
};

static enum weft_status
check(const char *name, uint64_t request_id, uint32_t trainer)
{
	if (request_id == 0) {
		return wf_refuse(name, "request_id", 0, "above 0");
	}
	if (trainer >= WF_TRAINER_COUNT_MAX && trainer != WF_REPORT_OF_JOB) {
		return wf_refuse(name, "trainer", trainer,
				 "below 65536, or 4294967295 for the job");
	}
	return WEFT_OK;
}

void
wf_msg_report_encode(const struct wf_msg_report *in, struct wf_msg *out)
{
	struct wf_writer w = wf_shape_begin(&report_shape, out);
	out->head.request_id = in->request_id;
	wf_put_u32(&w, in->trainer);
	wf_shape_end(&report_shape, &w, out);
}

enum weft_status
wf_msg_report_decode(const struct wf_head *head, const uint8_t *body, struct wf_msg_report *out)
{
	enum weft_status st = wf_shape_check(&report_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_msg_report report = {.request_id = head->request_id};
	report.trainer = wf_get_u32(&r);
	WF_ASSERT(wf_reader_done(&r));
	st = check("REPORT", report.request_id, report.trainer);
	if (st != WEFT_OK) {
		return st;
	}
	*out = report;
	return WEFT_OK;
}

void
wf_msg_reported_encode(const struct wf_msg_report *in, struct wf_msg *out)
{
	struct wf_writer w = wf_shape_begin(&reported_shape, out);
	out->head.request_id = in->request_id;
	wf_put_u32(&w, in->trainer);
	for (unsigned i = 0; i < WF_REPORT_VALUES; i++) {
		wf_put_u64(&w, in->value[i]);
	}
	wf_shape_end(&reported_shape, &w, out);
}

enum weft_status
wf_msg_reported_decode(const struct wf_head *head, const uint8_t *body, struct wf_msg_report *out)
{
	enum weft_status st = wf_shape_check(&reported_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_msg_report report = {.request_id = head->request_id};
	report.trainer = wf_get_u32(&r);
	for (unsigned i = 0; i < WF_REPORT_VALUES; i++) {
		report.value[i] = wf_get_u64(&r);
	}
	WF_ASSERT(wf_reader_done(&r));
	st = check("REPORTED", report.request_id, report.trainer);
	if (st != WEFT_OK) {
		return st;
	}
	*out = report;
	return WEFT_OK;
}
