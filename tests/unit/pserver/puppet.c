/* SPDX-License-Identifier: Apache-2.0 */
/* puppet: a trainer that says what it is told to say. See stage.h. Thread: the test's. */
#include "tests/unit/pserver/stage.h"

#include <stdio.h>
#include <string.h>

#define TRIES_MAX 1000

struct puppet *
puppet_add(struct stage *stage, uint32_t trainer, uint32_t lane)
{
	CHECK(stage, stage->puppet_count < STAGE_PUPPETS_MAX);
	struct puppet *puppet = &stage->puppet[stage->puppet_count++];
	puppet->stage = stage;
	puppet->trainer = trainer;
	puppet->lane = lane;
	puppet->tamper_at = INT32_MIN;
	puppet->hello = (struct wf_hello){
		.version_min = WF_WIRE_VERSION_MIN,
		.version_max = WF_WIRE_VERSION,
		.service = WF_SERVICE_DENSE,
		.lane_idx = lane,
		.pserver_count = 1,
		.lane_count = stage->opts.lanes,
		.trainer_id = trainer,
		.trainer_count = stage->opts.trainers,
		.incarnation = 1000 + trainer,
		.job_digest = wf_job_digest(&stage->job),
		.tensors_digest = wf_job_tensors_digest(&stage->job),
		.placement_digest = wf_placement_digest(&stage->placement),
		.job_bytes = stage->job_byte_count,
		.msg_bytes_max = WF_MSG_BODY_MAX,
		.put_bytes_max = 1 << 20,
		.host = "puppet",
		.pid = 100 + trainer,
	};
	memset(puppet->have, 0xff, sizeof(puppet->have)); /* WF_STEP_NONE */
	const struct wf_transport_opts opts = {.env = stage->env, .paths = "sim"};
	CHECK(stage, wf_transport_open("mux", &opts, &puppet->transport) == WEFT_OK);
	CHECK(stage, stage->env->ops->slab_open(stage->env, stage->layout_bytes * 4, -1,
						&puppet->slab) == WEFT_OK);
	const struct wf_region region = {puppet->slab.base, puppet->slab.bytes, -1};
	CHECK(stage,
	      wf_transport_region_add(puppet->transport, &region, &puppet->region) == WEFT_OK);
	return puppet;
}

static float *
at_section(struct puppet *puppet, uint32_t section, uint32_t ordinal)
{
	struct stage *stage = puppet->stage;
	const struct wf_slice *slice = stage_slice(stage, puppet->lane, ordinal);
	uint8_t *base = (uint8_t *)puppet->slab.base + section * stage->layout_bytes;
	return (float *)(void *)(base + stage->place[slice->tensor]) + slice->first;
}

float *
puppet_values(struct puppet *puppet, uint32_t ordinal)
{
	return at_section(puppet, 0, ordinal);
}

float *
puppet_state(struct puppet *puppet, uint32_t idx, uint32_t ordinal)
{
	return at_section(puppet, 1 + idx, ordinal);
}

float *
puppet_source(struct puppet *puppet, uint32_t ordinal)
{
	return at_section(puppet, 3, ordinal);
}

bool
puppet_values_are_right(struct puppet *puppet)
{
	struct stage *stage = puppet->stage;
	for (uint32_t i = 0; i < stage_slice_count(stage, 0); i++) {
		uint64_t bytes = stage_slice(stage, 0, i)->count * sizeof(float);
		if (memcmp(puppet_values(puppet, i), stage->value[i], bytes) != 0) {
			return false;
		}
	}
	return true;
}

/* --- saying --- */

void
puppet_connect(struct puppet *puppet)
{
	struct stage *stage = puppet->stage;
	struct wf_host to = {.port = (uint16_t)(STAGE_PORT + puppet->lane)};
	(void)snprintf(to.name, sizeof(to.name), "ps");
	uint8_t hello[WF_HELLO_MAX];
	puppet->hello.path++;
	int used = (int)wf_hello_encode(&puppet->hello, hello);
	if (puppet->tamper_at != INT32_MIN) {
		int at = puppet->tamper_at < 0 ? used + puppet->tamper_at : puppet->tamper_at;
		hello[at] = puppet->tamper_byte;
	}
	puppet->up = false;
	puppet->down = false;
	puppet->slots_granted = false;
	puppet->allowed_count = 0;
	puppet->resumed = false;
	puppet->queue_count = 0;
	for (uint32_t i = 0; i < WF_GRANT_SLOT_COUNT_MAX; i++) {
		puppet->buffer[i] = WF_BUFFER_FREE;
	}
	CHECK(stage, wf_transport_connect(puppet->transport, &to, hello, (size_t)used, puppet,
					  &puppet->conn) == WEFT_OK);
}

/* One operation, as often as it takes; none when the connection has gone. */
static void
post(struct puppet *puppet, const struct wf_op *op)
{
	for (unsigned tries = 0; tries < TRIES_MAX && puppet->conn != NULL; tries++) {
		unsigned taken = 0;
		enum weft_status st = wf_transport_post(puppet->conn, op, 1, &taken);
		CHECK(puppet->stage, st != WEFT_INVALID);
		if (taken == 1 && op->cookie != 0) {
			puppet->lent[op->cookie - 1]++;
		}
		if (taken == 1 || st == WEFT_CLOSED || st == WEFT_INVALID) {
			return;
		}
		stage_run(puppet->stage, WF_NS_PER_MS);
	}
}

void
puppet_send(struct puppet *puppet, const struct wf_msg *msg)
{
	const struct wf_op op = {
		.kind = WF_OP_SEND,
		.head = &msg->head,
		.body = msg->body,
		.body_bytes = msg->body_bytes,
	};
	post(puppet, &op);
}

void
puppet_send_job(struct puppet *puppet)
{
	struct stage *stage = puppet->stage;
	struct wf_msg out;
	size_t half = stage->job_byte_count / 2; /* in two pieces */
	struct wf_msg_job msg = {
		.total_bytes = stage->job_byte_count,
		.bytes = stage->job_bytes,
		.byte_count = half,
	};
	wf_msg_job_encode(&msg, &out);
	puppet_send(puppet, &out);
	msg.offset = half;
	msg.bytes += half;
	msg.byte_count = stage->job_byte_count - half;
	wf_msg_job_encode(&msg, &out);
	puppet_send(puppet, &out);
}

void
puppet_grant(struct puppet *puppet, uint8_t kind, uint8_t state_idx)
{
	uint64_t bytes = puppet->stage->layout_bytes;
	const struct wf_grant grant = {
		.kind = WF_GRANT_PLACE,
		.region = puppet->region,
		.offset = kind == WF_GRANT_WIRE_STATE ? bytes * (1 + state_idx) : 0,
		.bytes = bytes,
	};
	struct wf_grant_key key;
	if (puppet->conn == NULL || wf_transport_grant(puppet->conn, &grant, &key) != WEFT_OK) {
		CHECK(puppet->stage, !"granted");
		return;
	}
	struct wf_msg_grant msg = {.kind = kind, .state_idx = state_idx, .slot_bytes = bytes};
	struct wf_msg out;
	memcpy(msg.key, key.bytes, sizeof(msg.key));
	wf_msg_grant_encode(&msg, &out);
	puppet_send(puppet, &out);
}

void
puppet_have(struct puppet *puppet)
{
	struct wf_msg_steps msg = {
		.last = true,
		.count = stage_slice_count(puppet->stage, puppet->lane),
	};
	struct wf_msg out;
	memcpy(msg.step_of, puppet->have, msg.count * sizeof(msg.step_of[0]));
	wf_msg_have_encode(&msg, &out);
	puppet_send(puppet, &out);
}

void
puppet_meet(struct puppet *puppet)
{
	struct stage *stage = puppet->stage;
	puppet_connect(puppet);
	stage_settle(stage);
	CHECK(stage, puppet->up && !puppet->down);
	if (stage->failure[0] != '\0') {
		return;
	}
	if ((puppet->welcome.flags & WF_WELCOME_SEND_JOB) != 0) {
		puppet_send_job(puppet);
		stage_settle(stage);
	}
	CHECK(stage, puppet->slots_granted && puppet->resumed && !puppet->down);
	if (stage->failure[0] != '\0') {
		return;
	}
	puppet_grant(puppet, WF_GRANT_WIRE_VALUES, 0);
	puppet_have(puppet);
	stage_settle(stage);
}

void
puppet_say_step(struct puppet *puppet, uint64_t step, uint32_t pass)
{
	const struct wf_msg_step msg = {.step = step,
					.samples = stage_samples(puppet->trainer),
					.pass = pass,
					.compute_ns = puppet->compute_ns};
	struct wf_msg out;
	wf_msg_step_encode(&msg, &out);
	puppet_send(puppet, &out);
	puppet->step_said = step;
}

void
puppet_say_out(struct puppet *puppet, uint64_t step, uint32_t pass)
{
	const struct wf_msg_step msg = {.step = step, .pass = pass, .flags = WF_STEP_OUT_OF_DATA};
	struct wf_msg out;
	wf_msg_step_encode(&msg, &out);
	puppet_send(puppet, &out);
}

void
puppet_announce(struct puppet *puppet, uint64_t step, uint32_t first, uint32_t count)
{
	const struct wf_msg_runs msg = {
		.step = step, .count = 1, .run = {{.first = first, .count = count}}};
	struct wf_msg out;
	wf_msg_announce_encode(&msg, &out);
	puppet_send(puppet, &out);
}

void
puppet_pull(struct puppet *puppet, uint64_t step, uint32_t first, uint32_t count)
{
	const struct wf_msg_pull msg = {
		.request_id = 5, .step = step, .first = first, .count = count};
	struct wf_msg out;
	wf_msg_pull_encode(&msg, &out);
	puppet_send(puppet, &out);
}

void
puppet_reduce(struct puppet *puppet, uint64_t id, uint32_t count, double value)
{
	struct wf_msg_reduce msg = {.request_id = id, .step = puppet->step_said, .count = count};
	struct wf_msg out;
	for (uint32_t i = 0; i < count; i++) {
		msg.value[i] = value + i;
	}
	wf_msg_reduce_encode(&msg, &out);
	puppet_send(puppet, &out);
}

void
puppet_beat(struct puppet *puppet, bool asks, bool itself)
{
	const struct wf_msg_beat msg = {.asks = asks, .itself = itself, .pid = puppet->hello.pid};
	struct wf_msg out;
	wf_msg_beat_encode(&msg, &out);
	puppet_send(puppet, &out);
}

void
puppet_goodbye(struct puppet *puppet)
{
	const struct wf_msg_goodbye msg = {.ack = false};
	struct wf_msg out;
	wf_msg_goodbye_encode(&msg, &out);
	puppet_send(puppet, &out);
}

void
puppet_disconnect(struct puppet *puppet)
{
	if (puppet->conn != NULL) {
		wf_transport_disconnect(puppet->conn, WF_DISCONNECT_DRAIN);
	}
}

/* --- pushing --- */

static void
fill_source(struct puppet *puppet, uint32_t ordinal, uint64_t step)
{
	float *source = puppet_source(puppet, ordinal);
	uint64_t count = stage_slice(puppet->stage, puppet->lane, ordinal)->count;
	for (uint32_t e = 0; e < count; e++) {
		source[e] = stage_gradient(puppet->trainer, step, ordinal, e);
	}
}

static struct wf_op
put_of(struct puppet *puppet, uint32_t ordinal, uint32_t buffer, uint64_t step)
{
	uint32_t slices = stage_slice_count(puppet->stage, puppet->lane);
	uint32_t real = ordinal < slices ? ordinal : 0;
	uint64_t count = stage_slice(puppet->stage, puppet->lane, real)->count;
	return (struct wf_op){
		.kind = WF_OP_PUT,
		.cookie = real + 1,
		.region = puppet->region,
		.src = puppet_source(puppet, real),
		.bytes = count * sizeof(float),
		.key = puppet->slots_key,
		.tag = wf_tag(ordinal * puppet->stage->opts.slot_count + buffer, step),
	};
}

void
puppet_put(struct puppet *puppet, uint32_t ordinal, uint32_t buffer, uint64_t step)
{
	struct wf_op op = put_of(puppet, ordinal, buffer, step);
	post(puppet, &op);
}

void
puppet_put_bytes(struct puppet *puppet, uint32_t ordinal, uint64_t step, uint64_t offset,
		 uint64_t bytes)
{
	struct wf_op op = put_of(puppet, ordinal, 0, step);
	op.offset = offset;
	op.bytes = bytes;
	post(puppet, &op);
}

void
puppet_push(struct puppet *puppet, uint32_t ordinal, uint64_t step)
{
	CHECK(puppet->stage, puppet->queue_count < STAGE_SLICES_MAX);
	puppet->queue_step = step;
	puppet->queue[(puppet->queue_first + puppet->queue_count) % STAGE_SLICES_MAX] = ordinal;
	puppet->queue_count++;
}

static void
flush_pushes(struct puppet *puppet)
{
	for (uint32_t b = 0; b < puppet->stage->opts.slot_count && puppet->queue_count > 0; b++) {
		if (puppet->buffer[b] != WF_BUFFER_FREE) {
			continue;
		}
		uint32_t ordinal = puppet->queue[puppet->queue_first];
		if (puppet->lent[ordinal] > 0) {
			return;
		}
		fill_source(puppet, ordinal, puppet->queue_step);
		struct wf_op op = put_of(puppet, ordinal, b, puppet->queue_step);
		unsigned taken = 0;
		if (wf_transport_post(puppet->conn, &op, 1, &taken) != WEFT_OK) {
			return;
		}
		puppet->lent[ordinal]++;
		puppet->buffer[b] = ordinal;
		puppet->queue_first = (puppet->queue_first + 1) % STAGE_SLICES_MAX;
		puppet->queue_count--;
	}
}

void
puppet_continue(struct puppet *puppet, uint64_t step)
{
	struct stage *stage = puppet->stage;
	if (puppet->resume_step == WF_STEP_NONE || puppet->resume_step < step) {
		puppet_say_step(puppet, step, 0);
	}
	for (uint32_t i = 0; i < stage_slice_count(stage, puppet->lane); i++) {
		bool lacks = puppet->received[i] == WF_STEP_NONE || puppet->received[i] < step;
		if (lacks && !stage_is_static(stage, puppet->lane, i)) {
			puppet_push(puppet, i, step);
		}
	}
}

void
puppet_initialise(struct puppet *puppet)
{
	struct stage *stage = puppet->stage;
	uint32_t slices = stage_slice_count(stage, puppet->lane);
	if (puppet->trainer != 0) {
		puppet_pull(puppet, 0, 0, slices);
		return;
	}
	for (uint32_t i = 0; i < slices; i++) {
		puppet_push(puppet, i, 0);
		for (uint32_t e = 0; puppet->lane == 0 && e < STAGE_SLICE_FLOATS; e++) {
			stage->value[i][e] = stage_gradient(0, 0, i, e);
		}
	}
}

void
puppets_begin(struct stage *stage)
{
	CHECK(stage, stage->puppet_count == 0);
	for (uint32_t t = 0; t < stage->opts.trainers; t++) {
		puppet_meet(puppet_add(stage, t, 0));
	}
	for (uint32_t t = 0; t < stage->opts.trainers; t++) {
		puppet_initialise(&stage->puppet[t]);
	}
	stage_settle(stage);
}

/* --- hearing --- */

static void
hear_resume(struct puppet *puppet, const struct wf_msg_steps *msg)
{
	for (uint32_t i = 0; i < msg->count && msg->first + i < STAGE_SLICES_MAX; i++) {
		puppet->received[msg->first + i] = msg->step_of[i];
	}
	puppet->resume_step = msg->step;
	puppet->resumed = msg->last;
	puppet->initialised = msg->initialised;
}

static void
hear_credit(struct puppet *puppet, const struct wf_msg_credit *msg)
{
	for (uint32_t i = 0; i < msg->count; i++) {
		CHECK(puppet->stage, msg->buffer[i] < puppet->stage->opts.slot_count);
		CHECK(puppet->stage, puppet->buffer[msg->buffer[i]] != WF_BUFFER_FREE);
		puppet->buffer[msg->buffer[i]] = WF_BUFFER_FREE;
		puppet->credits++;
	}
}

static void
hear_allow(struct puppet *puppet, const struct wf_msg_runs *msg)
{
	for (uint32_t i = 0; i < msg->count; i++) {
		for (uint32_t s = 0; s < msg->run[i].count; s++) {
			CHECK(puppet->stage, puppet->allowed_count < STAGE_SLICES_MAX);
			puppet->allowed[puppet->allowed_count++] = msg->run[i].first + s;
		}
	}
}

static enum weft_status
hear_dense(struct puppet *puppet, const struct wf_event *event)
{
	const struct wf_head *head = event->msg.head;
	union {
		struct wf_msg_grant grant;
		struct wf_msg_steps resume;
		struct wf_msg_credit credit;
		struct wf_msg_nack nack;
		struct wf_msg_runs runs;
	} msg;
	enum weft_status st = WEFT_PROTOCOL;
	if (head->type == WF_MSG_GRANT) {
		st = wf_msg_grant_decode(head, event->msg.body, &msg.grant);
		memcpy(puppet->slots_key.bytes, msg.grant.key, sizeof(msg.grant.key));
		puppet->slots_granted = st == WEFT_OK;
		puppet->slots_kind = msg.grant.kind;
	} else if (head->type == WF_MSG_RESUME) {
		st = wf_msg_resume_decode(head, event->msg.body, &msg.resume);
		if (st == WEFT_OK) {
			hear_resume(puppet, &msg.resume);
		}
	} else if (head->type == WF_MSG_CREDIT) {
		st = wf_msg_credit_decode(head, event->msg.body, &msg.credit);
		if (st == WEFT_OK) {
			hear_credit(puppet, &msg.credit);
		}
	} else if (head->type == WF_MSG_ALLOW) {
		st = wf_msg_allow_decode(head, event->msg.body, &msg.runs);
		if (st == WEFT_OK) {
			hear_allow(puppet, &msg.runs);
		}
	} else if (head->type == WF_MSG_NACK) {
		st = wf_msg_nack_decode(head, event->msg.body, &puppet->nack);
		puppet->nacks++;
	} else if (head->type == WF_MSG_NORM) {
		st = wf_msg_norm_decode(head, event->msg.body, &puppet->norm);
		puppet->norms++;
	}
	return st;
}

static enum weft_status
hear_control(struct puppet *puppet, const struct wf_event *event)
{
	const struct wf_head *head = event->msg.head;
	struct wf_msg_goodbye goodbye;
	enum weft_status st = WEFT_PROTOCOL;
	if (head->type == WF_MSG_GOODBYE) {
		st = wf_msg_goodbye_decode(head, event->msg.body, &goodbye);
		puppet->goodbye_heard = st == WEFT_OK && goodbye.ack;
		if (puppet->goodbye_heard) { /* heard that it was heard */
			struct wf_msg out;
			wf_msg_goodbye_encode(&goodbye, &out);
			puppet_send(puppet, &out);
		}
	} else if (head->type == WF_MSG_ABORT) {
		st = wf_msg_abort_decode(head, event->msg.body, &puppet->abort);
		puppet->aborted = true;
	} else if (head->type == WF_MSG_ABSENT) {
		st = wf_msg_absent_decode(head, event->msg.body, &puppet->absent);
		puppet->absents++;
	} else if (head->type == WF_MSG_REDUCED) {
		st = wf_msg_reduced_decode(head, event->msg.body, &puppet->reduced);
		puppet->reduced_count++;
	} else if (head->type == WF_MSG_BEAT) {
		st = wf_msg_beat_decode(head, event->msg.body, &puppet->beat);
		puppet->beats++;
		if (puppet->beat.asks && !puppet->asleep) {
			puppet_beat(puppet, false, true);
		}
	}
	return st;
}

static void
hear_answer(struct puppet *puppet, uint32_t tag)
{
	bool sync = wf_job_first_lagging(&puppet->stage->job) == NULL;
	uint32_t ordinal = sync ? wf_tag_slot(tag) : wf_answer_ordinal(tag);
	CHECK(puppet->stage, ordinal < stage_slice_count(puppet->stage, puppet->lane));
	puppet->have[ordinal] = wf_tag_step(tag);
	puppet->answered[puppet->answers % STAGE_SLICES_MAX] = ordinal;
	puppet->answers++;
	puppet->discarded += !sync && (tag & WF_TAG_DISCARDED) != 0 ? 1 : 0;
	for (uint32_t b = 0; b < puppet->stage->opts.slot_count; b++) {
		if (puppet->buffer[b] == ordinal) {
			puppet->buffer[b] = WF_BUFFER_FREE;
		}
	}
}

static void
hear(struct puppet *puppet, const struct wf_event *event)
{
	if (event->kind == WF_EVENT_DONE && event->done.cookie != 0) {
		puppet->lent[event->done.cookie - 1]--;
	}
	if (event->conn != puppet->conn || event->kind == WF_EVENT_DONE) {
		return;
	}
	enum weft_status st = WEFT_OK;
	switch (event->kind) {
	case WF_EVENT_UP:
		puppet->up = true;
		st = wf_welcome_decode(event->up.blob, event->up.blob_bytes, &puppet->welcome);
		break;
	case WF_EVENT_DOWN:
		puppet->down = true;
		puppet->down_status = event->down.status;
		puppet->conn = NULL;
		if (event->down.status == WEFT_REFUSED) {
			st = wf_welcome_decode(event->down.blob, event->down.blob_bytes,
					       &puppet->welcome);
		}
		break;
	case WF_EVENT_MSG:
		st = event->msg.head->service == WF_SERVICE_DENSE ? hear_dense(puppet, event)
								  : hear_control(puppet, event);
		break;
	case WF_EVENT_PUT:
		hear_answer(puppet, event->put.tag);
		break;
	case WF_EVENT_DONE:
	default:
		break;
	}
	CHECK(puppet->stage, st == WEFT_OK);
}

unsigned
puppet_poll(struct puppet *puppet)
{
	struct wf_event events[16];
	unsigned count = 0;
	CHECK(puppet->stage, wf_transport_poll(puppet->transport, events, 16, &count) == WEFT_OK);
	for (unsigned i = 0; i < count; i++) {
		hear(puppet, &events[i]);
	}
	if (puppet->conn != NULL && puppet->slots_granted) {
		flush_pushes(puppet);
	}
	return count;
}
