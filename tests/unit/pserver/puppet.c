/* SPDX-License-Identifier: Apache-2.0 */
/* puppet: a scripted trainer. See stage.h. Thread: the test's. */
#include "tests/unit/pserver/stage.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/hello.h"

static const struct peer_ops ops;

static void
fill_hello(const struct puppet *puppet, struct wf_hello *hello)
{
	const struct stage *stage = puppet->stage;
	*hello = hello_in_order();
	hello->pserver_idx = stage->opts.pserver_idx;
	hello->pserver_count = stage->opts.pserver_count;
	hello->lane_idx = puppet->lane;
	hello->lane_count = stage->opts.lanes;
	hello->trainer_id = puppet->trainer;
	hello->trainer_count = stage->opts.trainers;
	hello->incarnation = 1000 + puppet->trainer;
	hello->path = 0; /* peer_connect counts */
	hello->job_digest = wf_job_digest(&stage->job);
	hello->tensors_digest = wf_job_tensors_digest(&stage->job);
	hello->placement_digest = wf_placement_digest(&stage->placement);
	hello->job_bytes = stage->job_byte_count;
	(void)snprintf(hello->host, sizeof(hello->host), "puppet");
	hello->pid = 100 + puppet->trainer;
}

struct puppet *
puppet_add(struct stage *stage, uint32_t trainer, uint32_t lane)
{
	CHECK(stage, stage->puppet_count < STAGE_PUPPETS_MAX);
	struct puppet *puppet = &stage->puppet[stage->puppet_count++];
	puppet->stage = stage;
	puppet->trainer = trainer;
	puppet->lane = lane;
	memset(puppet->have, 0xff, sizeof(puppet->have)); /* WF_STEP_NONE */
	puppet->peer.ops = &ops;
	puppet->peer.to = (struct wf_host){.name = "ps", .port = (uint16_t)(STAGE_PORT + lane)};
	fill_hello(puppet, &puppet->peer.hello);
	peer_open(&puppet->peer, &stage->script, "sim", stage->layout_bytes * 4);
	return puppet;
}

static float *
at_section(struct puppet *puppet, uint32_t section, uint32_t ordinal)
{
	struct stage *stage = puppet->stage;
	const struct wf_slice *slice = stage_slice(stage, puppet->lane, ordinal);
	uint8_t *base = (uint8_t *)puppet->peer.slab.base + section * stage->layout_bytes;
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
	puppet->allowed_count = 0;
	puppet->queue_count = 0;
	peer_connect(&puppet->peer);
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
	peer_send(&puppet->peer, &out);
	msg.offset = half;
	msg.bytes += half;
	msg.byte_count = stage->job_byte_count - half;
	wf_msg_job_encode(&msg, &out);
	peer_send(&puppet->peer, &out);
}

void
puppet_grant(struct puppet *puppet, uint8_t place)
{
	uint64_t bytes = puppet->stage->layout_bytes;
	peer_grant_place(&puppet->peer, place, bytes * place, bytes);
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
	peer_send(&puppet->peer, &out);
}

void
puppet_meet(struct puppet *puppet)
{
	struct stage *stage = puppet->stage;
	const struct peer *peer = &puppet->peer;
	puppet_connect(puppet);
	stage_settle(stage);
	CHECK(stage, peer->up && !peer->down);
	if (script_failed(&stage->script)) {
		return;
	}
	if ((peer->welcome.flags & WF_WELCOME_SEND_JOB) != 0) {
		puppet_send_job(puppet);
		stage_settle(stage);
	}
	CHECK(stage, peer->granted && peer->resumed && !peer->down);
	if (script_failed(&stage->script)) {
		return;
	}
	puppet_grant(puppet, 0);
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
	peer_send(&puppet->peer, &out);
	puppet->step_said = step;
}

void
puppet_say_out(struct puppet *puppet, uint64_t step, uint32_t pass)
{
	const struct wf_msg_step msg = {.step = step, .pass = pass, .flags = WF_STEP_OUT_OF_DATA};
	struct wf_msg out;
	wf_msg_step_encode(&msg, &out);
	peer_send(&puppet->peer, &out);
}

void
puppet_announce(struct puppet *puppet, uint64_t step, uint32_t first, uint32_t count)
{
	const struct wf_msg_runs msg = {
		.step = step, .count = 1, .run = {{.first = first, .count = count}}};
	struct wf_msg out;
	wf_msg_announce_encode(&msg, &out);
	peer_send(&puppet->peer, &out);
}

void
puppet_pull(struct puppet *puppet, uint64_t step, uint32_t first, uint32_t count)
{
	const struct wf_msg_pull msg = {
		.request_id = 5, .step = step, .first = first, .count = count};
	struct wf_msg out;
	wf_msg_pull_encode(&msg, &out);
	peer_send(&puppet->peer, &out);
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
	peer_send(&puppet->peer, &out);
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
	struct wf_grant_key slots_key;
	memcpy(slots_key.bytes, puppet->peer.grant.key, sizeof(slots_key.bytes));
	return (struct wf_op){
		.kind = WF_OP_PUT,
		.cookie = real + 1,
		.region = puppet->peer.region,
		.src = puppet_source(puppet, real),
		.bytes = count * sizeof(float),
		.key = slots_key,
		.tag = wf_tag(ordinal * puppet->stage->opts.slot_count + buffer, step),
	};
}

/* The cookie is the slice whose source is lent. */
static void
post(struct puppet *puppet, const struct wf_op *op)
{
	if (peer_post(&puppet->peer, op)) {
		puppet->lent[op->cookie - 1]++;
	}
}

static void
done(struct peer *peer, uint64_t cookie)
{
	((struct puppet *)peer)->lent[cookie - 1]--;
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
	struct peer *peer = &puppet->peer;
	uint32_t buffer;
	while (puppet->queue_count > 0 && (buffer = peer_free_buffer(peer)) < peer->slot_count) {
		uint32_t ordinal = puppet->queue[puppet->queue_first];
		if (puppet->lent[ordinal] > 0) {
			return;
		}
		fill_source(puppet, ordinal, puppet->queue_step);
		puppet_put(puppet, ordinal, buffer, puppet->queue_step);
		peer->buffer[buffer] = ordinal;
		puppet->queue_first = (puppet->queue_first + 1) % STAGE_SLICES_MAX;
		puppet->queue_count--;
	}
}

void
puppet_continue(struct puppet *puppet, uint64_t step)
{
	struct stage *stage = puppet->stage;
	if (puppet->peer.steps.step == WF_STEP_NONE || puppet->peer.steps.step < step) {
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
	slices -= stage->opts.has_piece ? 1 : 0; /* it comes last, and has no initial values */
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
recv_resume(struct peer *peer)
{
	struct puppet *puppet = (struct puppet *)peer;
	const struct wf_msg_steps *msg = &peer->steps;
	for (uint32_t i = 0; i < msg->count && msg->first + i < STAGE_SLICES_MAX; i++) {
		puppet->received[msg->first + i] = msg->step_of[i];
	}
}

static void
recv_allow(struct puppet *puppet, const struct wf_msg_runs *msg)
{
	for (uint32_t i = 0; i < msg->count; i++) {
		for (uint32_t s = 0; s < msg->run[i].count; s++) {
			CHECK(puppet->stage, puppet->allowed_count < STAGE_SLICES_MAX);
			puppet->allowed[puppet->allowed_count++] = msg->run[i].first + s;
		}
	}
}

static enum weft_status
recv(struct peer *peer, const struct wf_head *head, const uint8_t *body)
{
	struct puppet *puppet = (struct puppet *)peer;
	union {
		struct wf_msg_runs runs;
		struct wf_msg_report reported;
	} msg;
	enum weft_status st = WEFT_PROTOCOL;
	if (head->service != WF_SERVICE_DENSE) {
		return st;
	}
	if (head->type == WF_MSG_ALLOW) {
		st = wf_msg_allow_decode(head, body, &msg.runs);
		if (st == WEFT_OK) {
			recv_allow(puppet, &msg.runs);
		}
	} else if (head->type == WF_MSG_NACK) {
		st = wf_msg_nack_decode(head, body, &puppet->nack);
		puppet->nacks++;
	} else if (head->type == WF_MSG_NORM) {
		st = wf_msg_norm_decode(head, body, &puppet->norm);
		puppet->norms++;
	} else if (head->type == WF_MSG_INIT && !peer->resumed) {
		st = wf_msg_init_decode(head, body, &puppet->init);
		puppet->inits++;
	} else if (head->type == WF_MSG_POSITION && !peer->resumed) {
		st = wf_msg_position_decode(head, body, &puppet->position);
		puppet->positions++;
	} else if (head->type == WF_MSG_TRACE) {
		st = wf_msg_trace_decode(head, body, &puppet->trace);
		puppet->traces++;
	} else if (head->type == WF_MSG_REPORTED) { /* to the first of many that ask at once */
		st = wf_msg_reported_decode(head, body, &msg.reported);
	}
	return st;
}

static void
recv_answer(struct peer *peer, const struct wf_event *event)
{
	struct puppet *puppet = (struct puppet *)peer;
	uint32_t tag = event->put.tag;
	bool sync = wf_job_first_lagging(&puppet->stage->job) == NULL;
	uint32_t ordinal = sync ? wf_tag_slot(tag) : wf_answer_ordinal(tag);
	CHECK(puppet->stage, ordinal < stage_slice_count(puppet->stage, puppet->lane));
	puppet->have[ordinal] = wf_tag_step(tag);
	puppet->answered[puppet->answers % STAGE_SLICES_MAX] = ordinal;
	puppet->answers++;
	puppet->discarded += !sync && (tag & WF_TAG_DISCARDED) != 0 ? 1 : 0;
	peer_free_label(peer, ordinal);
}

static const struct peer_ops ops = {
	.recv = recv, .steps = recv_resume, .put = recv_answer, .done = done};

unsigned
puppet_poll(struct puppet *puppet)
{
	unsigned count = peer_poll(&puppet->peer);
	if (puppet->peer.conn != NULL && puppet->peer.granted) {
		flush_pushes(puppet);
	}
	return count;
}
