/* SPDX-License-Identifier: Apache-2.0 */
/* catalogue: every message with its coders behind one signature and a sample. */
#include "tests/unit/wire/catalogue.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

#define CODERS(message, member)                                                                    \
	static void encode_##message(const union any_message *in, struct wf_msg *out)              \
	{                                                                                          \
		wf_msg_##message##_encode(&in->member, out);                                       \
	}                                                                                          \
	static enum weft_status decode_##message(const struct wf_head *head, const uint8_t *body,  \
						 union any_message *out)                           \
	{                                                                                          \
		return wf_msg_##message##_decode(head, body, &out->member);                        \
	}

CODERS(job, job)
CODERS(resume, steps)
CODERS(have, steps)
CODERS(grant, grant)
CODERS(credit, credit)
CODERS(step, step)
CODERS(pull, pull)
CODERS(nack, nack)
CODERS(init, init)
CODERS(goodbye, goodbye)
CODERS(abort, abort)
CODERS(reduce, reduce)
CODERS(reduced, reduce)

static void
sample_job(union any_message *out)
{
	static const uint8_t piece[] = {0xde, 0xad, 0xbe, 0xef, 0x01};
	out->job = (struct wf_msg_job){
		.offset = 0x1000,
		.total_bytes = 0x2030,
		.bytes = piece,
		.byte_count = sizeof(piece),
	};
}

static void
sample_resume(union any_message *out)
{
	out->steps.step = 0x1122334455667788;
	out->steps.epoch = 3;
	out->steps.last = true;
	out->steps.initialised = true;
	out->steps.first = 500;
	out->steps.count = 3;
	out->steps.step_of[0] = 7;
	out->steps.step_of[1] = WF_STEP_NONE;
	out->steps.step_of[2] = 0x0102030405060708;
}

static void
sample_have(union any_message *out)
{
	sample_resume(out);
	out->steps.epoch = 0;
	out->steps.last = false;
	out->steps.initialised = false;
}

static void
sample_grant(union any_message *out)
{
	out->grant.kind = WF_GRANT_WIRE_SLOTS;
	out->grant.slot_count = 8;
	out->grant.slot_bytes = 262144;
	for (unsigned i = 0; i < WF_MSG_KEY_BYTES; i++) {
		out->grant.key[i] = (uint8_t)(0xa0 + i);
	}
}

static void
sample_grant_state(union any_message *out)
{
	sample_grant(out);
	out->grant.kind = WF_GRANT_WIRE_STATE;
	out->grant.state_idx = 1;
	out->grant.slot_count = 0;
	out->grant.slot_bytes = 0x123456789a;
}

static void
sample_credit(union any_message *out)
{
	out->credit.count = 3;
	out->credit.buffer[0] = 0;
	out->credit.buffer[1] = 1023;
	out->credit.buffer[2] = 0x0102;
}

static void
sample_step(union any_message *out)
{
	out->step = (struct wf_msg_step){
		.step = 41,
		.epoch = 2,
		.samples = 404,
		.pass = 9,
		.cost = -12.375,
	};
}

static void
sample_pull(union any_message *out)
{
	out->pull = (struct wf_msg_pull){
		.request_id = 0x0a0b0c0d0e0f1011,
		.step = 17,
		.first = 5,
		.count = 0x00010203,
		.section = WF_SECTION_STATE,
		.state_idx = 1,
	};
}

static void
sample_nack(union any_message *out)
{
	out->nack.request_id = 77;
	out->nack.first = 6;
	out->nack.status = WEFT_UNSUPPORTED;
	snprintf(out->nack.reason, sizeof(out->nack.reason), "sgd keeps no state");
}

static void
sample_init(union any_message *out)
{
	out->init = (struct wf_msg_init){
		.step = 0x0102030405,
		.samples = 0x1112131415161718,
		.sections = 3,
	};
}

static void
sample_goodbye(union any_message *out)
{
	out->goodbye.ack = true;
}

static void
sample_abort(union any_message *out)
{
	out->abort.status = WEFT_LOST;
	out->abort.step = 1234;
	snprintf(out->abort.who, sizeof(out->abort.who), "pserver 0");
	snprintf(out->abort.reason, sizeof(out->abort.reason), "trainer 1 did not come back");
}

static void
sample_reduce(union any_message *out)
{
	out->reduce.request_id = 5;
	out->reduce.step = 88;
	out->reduce.count = 3;
	out->reduce.value[0] = 1.0;
	out->reduce.value[1] = -0.1;
	out->reduce.value[2] = 0x1p-1074;
}

#define ENTRY(in_service, in_type, message, in_sample)                                             \
	{                                                                                          \
		.name = #message, .service = in_service, .type = in_type, .sample = in_sample,     \
		.encode = encode_##message, .decode = decode_##message                             \
	}
#define DENSE(type, message) ENTRY(WF_SERVICE_DENSE, type, message, sample_##message)
#define CONTROL(type, message) ENTRY(WF_SERVICE_CONTROL, type, message, sample_##message)

const struct catalogue_entry catalogue[] = {
	DENSE(WF_MSG_JOB, job),
	DENSE(WF_MSG_RESUME, resume),
	DENSE(WF_MSG_HAVE, have),
	DENSE(WF_MSG_GRANT, grant),
	{
		.name = "grant_state",
		.service = WF_SERVICE_DENSE,
		.type = WF_MSG_GRANT,
		.sample = sample_grant_state,
		.encode = encode_grant,
		.decode = decode_grant,
	},
	DENSE(WF_MSG_CREDIT, credit),
	DENSE(WF_MSG_STEP, step),
	DENSE(WF_MSG_PULL, pull),
	DENSE(WF_MSG_NACK, nack),
	DENSE(WF_MSG_INIT, init),
	CONTROL(WF_MSG_GOODBYE, goodbye),
	CONTROL(WF_MSG_ABORT, abort),
	CONTROL(WF_MSG_REDUCE, reduce),
	ENTRY(WF_SERVICE_CONTROL, WF_MSG_REDUCED, reduced, sample_reduce),
};

const size_t catalogue_count = WF_ARRAY_COUNT(catalogue);

const struct catalogue_entry *
catalogue_find(uint8_t service, uint8_t type)
{
	for (size_t i = 0; i < catalogue_count; i++) {
		if (catalogue[i].service == service && catalogue[i].type == type) {
			return &catalogue[i];
		}
	}
	return NULL;
}
