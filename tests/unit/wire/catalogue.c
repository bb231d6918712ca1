/* SPDX-License-Identifier: Apache-2.0 */
/* catalogue: every message with its coders behind one signature and a sample. */
#include "tests/unit/wire/catalogue.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

#define CODERS_OF(coder, message, member)                                                          \
	static void encode_##message(const union any_message *in, struct wf_msg *out)              \
	{                                                                                          \
		coder##_encode(&in->member, out);                                                  \
	}                                                                                          \
	static enum weft_status decode_##message(const struct wf_head *head, const uint8_t *body,  \
						 union any_message *out)                           \
	{                                                                                          \
		return coder##_decode(head, body, &out->member);                                   \
	}
#define CODERS(message, member) CODERS_OF(wf_msg_##message, message, member)
#define SPARSE_CODERS(message, member) CODERS_OF(wf_sparse_##message, sparse_##message, member)
#define REGISTRY_CODERS(message) CODERS_OF(wf_registry_##message, registry_##message, message)
#define WATCH_CODERS(message) CODERS_OF(wf_watch_##message, watch_##message, message)

CODERS(job, job)
CODERS(resume, steps)
CODERS(have, steps)
CODERS(grant, grant)
CODERS(credit, credit)
CODERS(step, step)
CODERS(pull, pull)
CODERS(nack, nack)
CODERS(init, init)
CODERS(norm, norm)
CODERS(change, change)
CODERS(position, position)
CODERS(announce, runs)
CODERS(allow, runs)
CODERS(report, report)
CODERS(reported, report)
CODERS(trace, trace)
CODERS(traced, traced)
CODERS(goodbye, goodbye)
CODERS(beat, beat)
CODERS(abort, abort)
CODERS(reduce, reduce)
CODERS(reduced, reduce)
CODERS(absent, absent)
SPARSE_CODERS(table, table)
SPARSE_CODERS(push, push)
SPARSE_CODERS(pull, sparse_pull)
SPARSE_CODERS(applied, applied)
SPARSE_CODERS(nack, sparse_nack)
SPARSE_CODERS(fetch, fetch)
SPARSE_CODERS(restore, restore)
SPARSE_CODERS(restored, restored)
SPARSE_CODERS(changed, changed)
REGISTRY_CODERS(join)
REGISTRY_CODERS(load)
REGISTRY_CODERS(loaded)
REGISTRY_CODERS(bad)
REGISTRY_CODERS(run)
REGISTRY_CODERS(snapshot)
REGISTRY_CODERS(part)
REGISTRY_CODERS(failed)
REGISTRY_CODERS(lost)
REGISTRY_CODERS(comes)
REGISTRY_CODERS(member)
REGISTRY_CODERS(stands)
REGISTRY_CODERS(settled)
WATCH_CODERS(ask)
WATCH_CODERS(answer)
WATCH_CODERS(end)

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
	out->grant.bytes = 262144;
	out->grant.held_bytes = 0x123456789b;
	for (unsigned i = 0; i < WF_MSG_KEY_BYTES; i++) {
		out->grant.key[i] = (uint8_t)(0xa0 + i);
	}
}

static void
sample_grant_place(union any_message *out)
{
	sample_grant(out);
	out->grant.kind = WF_GRANT_WIRE_PLACE;
	out->grant.place = 2;
	out->grant.slot_count = 0;
	out->grant.bytes = 0x123456789a;
	out->grant.held_bytes = 0;
}

static void
sample_grant_announced(union any_message *out)
{
	sample_grant(out);
	out->grant.announced = true;
	out->grant.held_bytes = 0;
}

static void
sample_announce(union any_message *out)
{
	out->runs.step = 0x0102030405;
	out->runs.count = 3;
	out->runs.run[0] = (struct wf_run){.first = 7, .count = 1};
	out->runs.run[1] = (struct wf_run){.first = 0, .count = 5};
	out->runs.run[2] = (struct wf_run){.first = 0x1ffffe, .count = 2};
}

static void
sample_report(union any_message *out)
{
	out->report.request_id = 0x21;
	out->report.trainer = 0x1234;
}

static void
sample_reported(union any_message *out)
{
	sample_report(out);
	for (unsigned i = 0; i < WF_REPORT_VALUES; i++) {
		out->report.value[i] = 0x0102030405060700 + i;
	}
}

static void
sample_trace(union any_message *out)
{
	out->trace.request_id = 0x31;
	out->trace.clock_ns = 0x0102030405060708;
	out->trace.stops = true;
}

static void
sample_traced(union any_message *out)
{
	out->traced.request_id = 0x32;
	out->traced.dropped = 0x1112131415161718;
	out->traced.total = 0x7654;
	out->traced.count = 1;
	out->traced.last = true;
	out->traced.event[0] = (struct wf_trace_event){.at_ns = 0x2122232425262728,
						       .value = 0x3132333435363738,
						       .step = 0x41424344,
						       .slice = 0x51525354,
						       .peer = 0x61626364,
						       .what = WF_TRACE_APPLIED};
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
		.compute_ns = 1234567890123,
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
sample_norm(union any_message *out)
{
	out->norm.step = 0x0102030405;
	for (uint64_t i = 0; i < WF_NORM_WIRE_WORDS; i++) {
		out->norm.word[i] = 0x1112131415161718 + i;
	}
}

static void
sample_change(union any_message *out)
{
	out->change.step = 0x0102030405;
	out->change.count = 3;
	out->change.change[0] = (struct wf_change){.tensor = 1, .number = 0, .value = 0.05};
	out->change.change[1] = (struct wf_change){.tensor = 1, .number = 11, .value = 100};
	out->change.change[2] = (struct wf_change){.tensor = 65535, .number = 4, .value = -0.5};
}

static void
sample_position(union any_message *out)
{
	static const uint8_t bytes[] = {0x02, 0x01, 0x00, 0x00, 0xde, 0x00, 0xef};
	out->position.step = 0x0102030405;
	out->position.count = sizeof(bytes);
	memcpy(out->position.bytes, bytes, sizeof(bytes));
}

static void
sample_goodbye(union any_message *out)
{
	out->goodbye.ack = true;
}

static void
sample_beat(union any_message *out)
{
	out->beat = (struct wf_msg_beat){.asks = true, .itself = true, .pid = 0x01020304};
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
sample_absent(union any_message *out)
{
	out->absent.trainer = 1;
	out->absent.silent_ns = 4100000000;
	snprintf(out->absent.reason, sizeof(out->absent.reason), "(host b, pid 7) rests");
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

static void
sample_sparse_table(union any_message *out)
{
	out->table = (struct wf_sparse_table){
		.idx = 2,
		.table_count = 3,
		.grad_reduce = 1,
		.mode = WEFT_SPARSE_BOUNDED,
		.staleness = 3,
		.discard_ratio = 1.5,
	};
	struct wf_table_desc *t = &out->table.table;
	*t = (struct wf_table_desc){
		.name = "words",
		.optimizer = 3,
		.schedule = 1,
		.init = 1,
		.set = {.dim = 32,
			.vocabulary = 0x0102030405,
			.memory_cap_bytes = 0x1122334455,
			.wire = WEFT_VALUES_BF16,
			.optimizer = {.dense_equivalent = true,
				      .learning_rate = 0.125,
				      .momentum = 0.5,
				      .beta1 = 0.9,
				      .beta2 = 0.999,
				      .rho = 0.95,
				      .epsilon = 1e-6,
				      .decay = 1e-4,
				      .clip = 5.0,
				      .l1 = 1.0,
				      .l2 = 2.0,
				      .l21 = 3.0,
				      .ftrl_beta = 4.0,
				      .schedule_a = 6.0,
				      .schedule_b = 7.0},
			.init_a = -0.1,
			.init_b = 0.1,
			.init_seed = 0xa1a2a3a4a5a6a7a8,
			.admit_count = 3,
			.admit_slots = 4096,
			.admit_probability = 0.75,
			.evict_age_steps = 1000,
			.evict_fade_steps = 10,
			.evict_score_least = 0.5,
			.evict_show_weight = 1.5,
			.evict_click_weight = 2.5,
			.evict_fade = 0.98,
			.evict_at_cap = true},
	};
}

static void
sample_sparse_push(union any_message *out)
{
	out->push.step = 41;
	out->push.epoch = 2;
	out->push.samples = 404;
	out->push.flags = WF_SPARSE_PUSH_LAST;
	out->push.pass = 9;
	out->push.part_count = 2;
	out->push.part[0] = (struct wf_sparse_part){
		.table = 0x0102, .coding = WF_KEYS_DELTA, .row_count = 4096, .key_bytes = 5000};
	out->push.part[1] = (struct wf_sparse_part){.table = 3, .row_count = 7, .key_bytes = 56};
}

static void
sample_sparse_pull(union any_message *out)
{
	struct wf_sparse_pull *pull = &out->sparse_pull;
	pull->request_id = 0x0a0b0c0d0e0f1011;
	pull->step = 17;
	pull->flags = WF_SPARSE_PULL_CREATE;
	pull->part_count = 2;
	pull->part[0] = (struct wf_sparse_part){
		.table = 1, .row_count = 0x010203, .key_bytes = 0x081018, .offset = 0x1122334455};
	pull->part[1] = (struct wf_sparse_part){
		.table = 1, .coding = WF_KEYS_DELTA, .row_count = 3, .key_bytes = 3};
}

static void
sample_sparse_applied(union any_message *out)
{
	out->applied = (struct wf_sparse_applied){
		.step = 41,
		.samples = 808,
		.rows_updated = 0x010203040506,
		.pushes_lost = 1,
		.grads_nonfinite = 2,
	};
}

static void
sample_sparse_nack(union any_message *out)
{
	struct wf_sparse_nack *nack = &out->sparse_nack;
	nack->request_id = 77;
	nack->step = 40;
	nack->part = 191;
	nack->status = WEFT_INVALID;
	snprintf(nack->reason, sizeof(nack->reason), "key 9 of a vocabulary of 9");
}

static void
sample_sparse_fetch(union any_message *out)
{
	out->fetch = (struct wf_sparse_fetch){
		.request_id = 0x31,
		.step = 40,
		.table = 3,
		.from = {.partition = 1023, .kind = WF_RUN_ROWS, .key = 0x0102030405060708},
		.bytes = 65536,
		.pass = 0x11121314,
		.offset = 0x0a0b0c0d0e,
	};
}

static void
sample_sparse_restore(union any_message *out)
{
	out->restore = (struct wf_sparse_restore){
		.request_id = 0x32,
		.step = 40,
		.samples = 0x010203,
		.table_step = 0x0405,
		.table = 3,
		.bytes = 0x1f0,
	};
}

static void
sample_sparse_restored(union any_message *out)
{
	out->restored = (struct wf_sparse_restored){.request_id = 0x32, .rows = 0x0102};
}

static void
sample_sparse_changed(union any_message *out)
{
	static const uint8_t values[2][8] = {{1, 2, 3, 4, 5, 6, 7, 8}, {9, 10, 11, 12, 13, 14, 15}};
	out->changed = (struct wf_sparse_changed){
		.request_id = 0x33,
		.step = 40,
		.part = 191,
		.last = true,
		.row_count = 2,
		.row_bytes = 8,
		.row = {0x0102, 0x010203},
		.values = values[0],
	};
}

static void
sample_registry_join(union any_message *out)
{
	out->join = (struct wf_registry_join){
		.serves = 0x0102030405060708,
		.loaded_epoch = 0x1112131415161718,
		.loaded = {.epoch = 0x1112131415161717, .step = 0x2122232425262728},
		.dense_lanes = 0x0100,
		.sparse_lanes = 3,
	};
}

static void
sample_registry_load(union any_message *out)
{
	out->load = (struct wf_registry_load){
		.epoch = 0x0102030405060708,
		.base = {.epoch = 0x0102030405060707, .step = 0x1112131415161718},
		.crc = 0xa1a2a3a4,
	};
}

static void
sample_registry_loaded(union any_message *out)
{
	out->loaded = (struct wf_registry_loaded){
		.epoch = 3,
		.base = {.epoch = 2, .step = 0x1112131415161718},
	};
}

static void
sample_registry_bad(union any_message *out)
{
	out->bad.epoch = 3;
	out->bad.base = (struct wf_registry_id){.epoch = 1, .step = 500};
	snprintf(out->bad.reason, sizeof(out->bad.reason), "dense-1: block 7 is damaged");
}

static void
sample_registry_run(union any_message *out)
{
	out->run = (struct wf_registry_run){
		.epoch = 3,
		.base = {.epoch = 2, .step = 500},
		.samples = 0x0102030405060708,
	};
}

static void
sample_registry_snapshot(union any_message *out)
{
	out->snapshot = (struct wf_registry_snapshot){
		.epoch = 3, .border = 0x0102030405060708, .base = 0x0102030405060707};
}

static void
sample_registry_part(union any_message *out)
{
	out->part.epoch = 3;
	out->part.border = 0x0102030405060708;
	out->part.service = WF_SERVICE_SPARSE;
	out->part.lane = 0xfffe;
	out->part.bytes = 0x1112131415161718;
	out->part.crc = 0xa1a2a3a4;
	out->part.table_count = 0x0203;
	out->part.first = 0x0201;
	out->part.count = 2;
	out->part.rows[0] = 0x010203040506;
	out->part.rows[1] = 0;
}

static void
sample_registry_part_dense(union any_message *out)
{
	out->part.epoch = 1;
	out->part.border = 20;
	out->part.service = WF_SERVICE_DENSE;
	out->part.lane = 1;
	out->part.bytes = 4096;
	out->part.crc = 7;
}

static void
sample_registry_failed(union any_message *out)
{
	out->failed.epoch = 3;
	out->failed.border = 0x0102030405060708;
	snprintf(out->failed.reason, sizeof(out->failed.reason), "lane 1 has passed step 9");
}

static void
sample_registry_lost(union any_message *out)
{
	out->lost.incarnation = 0x0102030405060708;
	out->lost.trainer = 0xfffe;
	out->lost.flags = WF_REGISTRY_LOST_WILLING;
	snprintf(out->lost.reason, sizeof(out->lost.reason), "trainer 3 leaves");
}

static void
sample_registry_comes(union any_message *out)
{
	out->comes =
		(struct wf_registry_comes){.incarnation = 0x0102030405060708, .trainer = 0xfffe};
}

static void
sample_registry_member(union any_message *out)
{
	out->member = (struct wf_registry_member){
		.change = 0x0102030405060708,
		.incarnation = 0x1112131415161718,
		.border = 0x2122232425262728,
		.applied = 0x2122232425262728,
		.samples = 0x3132333435363738,
		.trainer = 0xfffe,
		.flags = WF_REGISTRY_MEMBER_HALF | WF_REGISTRY_MEMBER_ALONE,
	};
}

static void
sample_registry_member_joins(union any_message *out)
{
	out->member = (struct wf_registry_member){
		.change = 2,
		.incarnation = 7,
		.border = 10,
		.applied = 9,
		.samples = 0x3132333435363738,
		.trainer = 1,
		.flags = WF_REGISTRY_MEMBER_JOINS,
	};
}

static void
sample_registry_stands(union any_message *out)
{
	out->stands.change = 0x0102030405060708;
	out->stands.applied = 0x1112131415161718;
	out->stands.received = UINT64_MAX;
	out->stands.samples = 0x2122232425262728;
	out->stands.total = 0x3132333435363738;
	out->stands.highest = 0x4142434445464748;
	out->stands.flags = WF_REGISTRY_STANDS_READY | WF_REGISTRY_STANDS_COUNTED |
			    WF_REGISTRY_STANDS_ALONE | WF_REGISTRY_STANDS_SHARED;
	snprintf(out->stands.where, sizeof(out->stands.where), "lane 0, 2");
}

static void
sample_registry_settled(union any_message *out)
{
	out->settled = (struct wf_registry_settled){.change = 0x0102030405060708};
}

static void
sample_watch_ask(union any_message *out)
{
	out->ask = (struct wf_watch_ask){
		.request_id = 5,
		.question = WF_WATCH_STATUS,
		.argument = {0x0102030405060708, 0x1112131415161718},
	};
}

static void
sample_watch_answer(union any_message *out)
{
	struct wf_watch_record *record = &out->answer.record;
	out->answer.request_id = 6;
	record->kind = WF_WATCH_NEWS;
	record->lane = 0x0102;
	record->idx = 0x11121314;
	record->value[WF_NEWS_NUMBER] = 0x2122232425262728;
	record->value[WF_NEWS_WHAT] = WF_NEWS_LOST;
	record->value[WF_NEWS_TRAINER] = 3;
	snprintf(record->text[WF_NEWS_HOST], sizeof(record->text[0]), "nodea");
	snprintf(record->text[WF_NEWS_WHY], sizeof(record->text[0]), "reset by peer");
}

static void
sample_watch_end(union any_message *out)
{
	out->end.request_id = 7;
	out->end.count = 0x0102030405060708;
	out->end.status = WEFT_UNSUPPORTED;
	snprintf(out->end.reason, sizeof(out->end.reason), "question 9");
}

#define ENTRY(in_service, in_type, message, in_sample)                                             \
	{                                                                                          \
		.name = #message, .service = in_service, .type = in_type, .sample = in_sample,     \
		.encode = encode_##message, .decode = decode_##message                             \
	}
#define DENSE(type, message) ENTRY(WF_SERVICE_DENSE, type, message, sample_##message)
#define CONTROL(type, message) ENTRY(WF_SERVICE_CONTROL, type, message, sample_##message)
#define SPARSE(type, message) ENTRY(WF_SERVICE_SPARSE, type, message, sample_##message)
#define REGISTRY(type, message) ENTRY(WF_SERVICE_REGISTRY, type, message, sample_##message)
#define WATCH(type, message) ENTRY(WF_SERVICE_WATCH, type, message, sample_##message)

const struct catalogue_entry catalogue[] = {
	DENSE(WF_MSG_JOB, job),
	DENSE(WF_MSG_STEP, step),
	DENSE(WF_MSG_PULL, pull),
	DENSE(WF_MSG_NACK, nack),
	DENSE(WF_MSG_INIT, init),
	DENSE(WF_MSG_NORM, norm),
	DENSE(WF_MSG_CHANGE, change),
	DENSE(WF_MSG_POSITION, position),
	DENSE(WF_MSG_ANNOUNCE, announce),
	ENTRY(WF_SERVICE_DENSE, WF_MSG_ALLOW, allow, sample_announce),
	DENSE(WF_MSG_REPORT, report),
	DENSE(WF_MSG_REPORTED, reported),
	DENSE(WF_MSG_TRACE, trace),
	DENSE(WF_MSG_TRACED, traced),
	CONTROL(WF_MSG_GOODBYE, goodbye),
	CONTROL(WF_MSG_BEAT, beat),
	CONTROL(WF_MSG_ABORT, abort),
	CONTROL(WF_MSG_ABSENT, absent),
	CONTROL(WF_MSG_REDUCE, reduce),
	ENTRY(WF_SERVICE_CONTROL, WF_MSG_REDUCED, reduced, sample_reduce),
	CONTROL(WF_MSG_RESUME, resume),
	CONTROL(WF_MSG_HAVE, have),
	CONTROL(WF_MSG_GRANT, grant),
	{
		.name = "grant_place",
		.service = WF_SERVICE_CONTROL,
		.type = WF_MSG_GRANT,
		.sample = sample_grant_place,
		.encode = encode_grant,
		.decode = decode_grant,
	},
	{
		.name = "grant_announced",
		.service = WF_SERVICE_CONTROL,
		.type = WF_MSG_GRANT,
		.sample = sample_grant_announced,
		.encode = encode_grant,
		.decode = decode_grant,
	},
	CONTROL(WF_MSG_CREDIT, credit),
	SPARSE(WF_SPARSE_TABLE, sparse_table),
	SPARSE(WF_SPARSE_PUSH, sparse_push),
	SPARSE(WF_SPARSE_PULL, sparse_pull),
	SPARSE(WF_SPARSE_APPLIED, sparse_applied),
	SPARSE(WF_SPARSE_NACK, sparse_nack),
	SPARSE(WF_SPARSE_FETCH, sparse_fetch),
	SPARSE(WF_SPARSE_RESTORE, sparse_restore),
	SPARSE(WF_SPARSE_RESTORED, sparse_restored),
	SPARSE(WF_SPARSE_CHANGED, sparse_changed),
	REGISTRY(WF_REGISTRY_JOIN, registry_join),
	REGISTRY(WF_REGISTRY_LOAD, registry_load),
	REGISTRY(WF_REGISTRY_LOADED, registry_loaded),
	REGISTRY(WF_REGISTRY_BAD, registry_bad),
	REGISTRY(WF_REGISTRY_RUN, registry_run),
	REGISTRY(WF_REGISTRY_SNAPSHOT, registry_snapshot),
	REGISTRY(WF_REGISTRY_PART, registry_part),
	{
		.name = "registry_part_dense",
		.service = WF_SERVICE_REGISTRY,
		.type = WF_REGISTRY_PART,
		.sample = sample_registry_part_dense,
		.encode = encode_registry_part,
		.decode = decode_registry_part,
	},
	REGISTRY(WF_REGISTRY_FAILED, registry_failed),
	REGISTRY(WF_REGISTRY_LOST, registry_lost),
	REGISTRY(WF_REGISTRY_COMES, registry_comes),
	REGISTRY(WF_REGISTRY_MEMBER, registry_member),
	{
		.name = "registry_member_joins",
		.service = WF_SERVICE_REGISTRY,
		.type = WF_REGISTRY_MEMBER,
		.sample = sample_registry_member_joins,
		.encode = encode_registry_member,
		.decode = decode_registry_member,
	},
	REGISTRY(WF_REGISTRY_STANDS, registry_stands),
	REGISTRY(WF_REGISTRY_SETTLED, registry_settled),
	WATCH(WF_WATCH_ASK, watch_ask),
	WATCH(WF_WATCH_RECORD, watch_answer),
	WATCH(WF_WATCH_END, watch_end),
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
