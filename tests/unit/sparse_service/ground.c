/* SPDX-License-Identifier: Apache-2.0 */
/* ground: see the header. Thread: the test's. */
#include "tests/unit/sparse_service/ground.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/half.h"

#define SETTLE_NS (60 * WF_NS_PER_MS) /* all that is under way has arrived */

void
ground_check(struct ground *ground, bool holds, const char *what, const char *file, int line)
{
	if (!holds && ground->failure[0] == '\0') {
		(void)snprintf(ground->failure, sizeof(ground->failure), "%s:%d: %s", file, line,
			       what);
	}
}

/* --- tables --- */

static void
make_tables(struct ground *ground)
{
	for (uint32_t i = 0; i < GROUND_TABLES; i++) {
		struct wf_table_desc *desc = &ground->desc[i];
		*desc = (struct wf_table_desc){
			.dim = GROUND_DIM,
			.row = {.kind = WF_ROW_ADAGRAD, .learning_rate = 0.5, .epsilon = 1e-6},
			.init = {.kind = WF_INIT_UNIFORM, .a = -1, .b = 1, .seed = 9 + i},
			.admit = {.probability = 1},
		};
		(void)snprintf(desc->name, sizeof(desc->name), i == 0 ? "words" : "names");
	}
	ground->desc[1].vocabulary = GROUND_VOCABULARY;
	ground->desc[0].memory_cap_bytes = ground->opts.memory_cap_bytes;
	ground->desc[0].value_wire = (uint8_t)ground->opts.value_wire;
	if (ground->opts.has_scores) {
		ground->desc[0].evict.score_least = 0.5;
		ground->desc[0].evict.show_weight = 1;
		ground->desc[0].evict.click_weight = 1;
		ground->desc[0].evict.fade = 0.5;
		ground->desc[0].evict.fade_steps = 1;
	}
	ground->tables = (struct wf_tables){
		.grad_reduce = ground->opts.grad_reduce,
		.nonfinite = ground->opts.nonfinite,
		.mode = (uint8_t)ground->opts.mode,
		.staleness = ground->opts.staleness,
		.discard_ratio = ground->opts.discard_ratio,
		.table_count = GROUND_TABLES,
		.table = ground->desc,
	};
}

static void
make_models(struct ground *ground)
{
	for (uint32_t i = 0; i < GROUND_TABLES; i++) {
		struct wf_table_opts opts = {
			.dim = GROUND_DIM,
			.vocabulary = ground->desc[i].vocabulary,
			.partition_count = WF_PARTITION_COUNT,
			.entries_max = 4096,
			.index_seed = 3,
			.row = wf_row_defaults(),
			.init = {.kind = WF_INIT_UNIFORM,
				 .a = -1,
				 .b = 1,
				 .seed = 9 + i,
				 .table = i},
			.admit = {.probability = 1},
		};
		opts.row.kind = WF_ROW_ADAGRAD;
		opts.row.learning_rate = 0.5;
		opts.row.epsilon = 1e-6;
		if (i == 0 && ground->opts.has_scores) {
			opts.evict = (struct wf_evict_opts){.score_least = 0.5,
							    .show_weight = 1,
							    .click_weight = 1,
							    .fade = 0.5,
							    .fade_steps = 1};
		}
		CHECK(ground, wf_table_create(ground->env, &opts, &ground->model[i]) == WEFT_OK);
	}
}

/* A value of a table as the other end has it, by half.h's definition; returns how many bytes it
 * takes at `out`, which may be NULL. */
static size_t
travel(const struct ground *ground, uint32_t table, float *value, uint8_t *out)
{
	uint16_t half;
	switch ((enum weft_value_format)ground->desc[table].value_wire) {
	case WEFT_VALUES_BF16:
		half = wf_bf16_of(*value);
		*value = wf_f32_of_bf16(half);
		break;
	case WEFT_VALUES_F16:
		half = wf_f16_of(*value);
		*value = wf_f32_of_f16(half);
		break;
	case WEFT_VALUES_F32:
	default:
		if (out != NULL) {
			memcpy(out, value, sizeof(*value));
		}
		return sizeof(*value);
	}
	if (out != NULL) {
		memcpy(out, &half, sizeof(half));
	}
	return sizeof(half);
}

float
ground_gradient(uint64_t key, uint32_t element, float scale)
{
	return scale * (0.1f + 0.01f * (float)(key % 97)) + 0.003f * (float)element;
}

void
ground_model_step(struct ground *ground, uint64_t step, uint64_t samples, const struct wish *wish,
		  uint32_t count)
{
	static float grad[16][GROUND_KEYS_MAX * GROUND_DIM];
	static float ones[GROUND_KEYS_MAX], zeros[GROUND_KEYS_MAX];
	bool mean = ground->opts.grad_reduce == WEFT_REDUCE_MEAN;
	for (uint32_t k = 0; k < GROUND_KEYS_MAX; k++) {
		ones[k] = 1;
	}
	for (uint32_t t = 0; t < GROUND_TABLES; t++) {
		struct wf_table_batch batch[16];
		uint32_t batches = 0;
		for (uint32_t i = 0; i < count; i++) {
			for (uint32_t k = 0; wish[i].table == t && k < wish[i].count; k++) {
				for (uint32_t e = 0; e < GROUND_DIM; e++) {
					float *value = &grad[i][k * GROUND_DIM + e];
					*value = ground_gradient(wish[i].key[k], e, wish[i].scale);
					(void)travel(ground, t, value, NULL);
				}
			}
			if (wish[i].table == t && wish[i].count > 0) {
				batch[batches++] = (struct wf_table_batch){.key = wish[i].key,
									   .grad = grad[i],
									   .count = wish[i].count,
									   .show = ones,
									   .click = zeros};
			}
		}
		const struct wf_table_push push = {
			.step = step,
			.rate = 0.5,
			.divisor = mean ? (float)samples : 1,
			.batch = batch,
			.batch_count = batches,
		};
		CHECK(ground, wf_table_push(ground->model[t], &push) == WEFT_OK);
	}
}

bool
ground_rows_are_right(struct ground *ground, const struct doll *doll, const struct wish *wish)
{
	static float rows[GROUND_KEYS_MAX * GROUND_DIM];
	const struct wf_table_lookup lookup = {
		.key = wish->key, .count = wish->count, .out = rows, .create = true};
	if (wf_table_lookup(ground->model[wish->table], &lookup) != WEFT_OK) {
		return false;
	}
	static uint8_t bytes[sizeof(rows)];
	size_t at = 0;
	for (uint32_t i = 0; i < wish->count * GROUND_DIM; i++) {
		at += travel(ground, wish->table, &rows[i], &bytes[at]);
	}
	return memcmp(bytes, doll_rows(doll, wish->offset), at) == 0;
}

/* --- dolls: saying --- */

struct doll *
doll_add(struct ground *ground, uint32_t trainer, uint32_t lane)
{
	struct doll *doll = &ground->doll[ground->doll_count++];
	doll->ground = ground;
	doll->trainer = trainer;
	doll->lane = lane;
	doll->hello = (struct wf_hello){
		.version_min = WF_WIRE_VERSION_MIN,
		.version_max = WF_WIRE_VERSION,
		.service = WF_SERVICE_SPARSE,
		.lane_idx = lane,
		.pserver_count = 1,
		.lane_count = ground->opts.lanes,
		.trainer_id = trainer,
		.trainer_count = ground->opts.trainers,
		.incarnation = 1000 + trainer,
		.job_digest = 5,
		.tensors_digest = wf_tables_digest(&ground->tables),
		.job_bytes = wf_tables_bytes(&ground->tables),
		.msg_bytes_max = WF_MSG_BODY_MAX,
		.put_bytes_max = 1 << 20,
		.host = "doll",
		.pid = 100 + trainer,
	};
	const struct wf_transport_opts opts = {.env = ground->env, .paths = "sim"};
	CHECK(ground, wf_transport_open("mux", &opts, &doll->transport) == WEFT_OK);
	CHECK(ground, ground->env->ops->slab_open(ground->env, 16 * GROUND_ROWS_BYTES, -1,
						  &doll->slab) == WEFT_OK);
	const struct wf_region region = {doll->slab.base, doll->slab.bytes, -1};
	CHECK(ground, wf_transport_region_add(doll->transport, &region, &doll->region) == WEFT_OK);
	return doll;
}

void
doll_connect(struct doll *doll)
{
	struct wf_host to = {.port = (uint16_t)(GROUND_PORT + doll->lane)};
	(void)snprintf(to.name, sizeof(to.name), "ps");
	uint8_t hello[WF_HELLO_MAX];
	doll->hello.path++;
	size_t used = wf_hello_encode(&doll->hello, hello);
	doll->up = false;
	doll->down = false;
	doll->granted = false;
	doll->resumed = false;
	memset(doll->buffer_used, 0, sizeof(doll->buffer_used));
	CHECK(doll->ground, wf_transport_connect(doll->transport, &to, hello, used, doll,
						 &doll->conn) == WEFT_OK);
}

/* One operation, as often as it takes; none when the connection has gone. */
static void
post(struct doll *doll, const struct wf_op *op)
{
	for (unsigned tries = 0; tries < 1000 && doll->conn != NULL; tries++) {
		unsigned taken = 0;
		enum weft_status st = wf_transport_post(doll->conn, op, 1, &taken);
		CHECK(doll->ground, st != WEFT_INVALID);
		if (taken == 1 || st == WEFT_CLOSED || st == WEFT_INVALID) {
			return;
		}
		ground_run(doll->ground, WF_NS_PER_MS);
	}
}

void
doll_send(struct doll *doll, const struct wf_msg *msg)
{
	const struct wf_op op = {
		.kind = WF_OP_SEND,
		.head = &msg->head,
		.body = msg->body,
		.body_bytes = msg->body_bytes,
	};
	post(doll, &op);
}

void
doll_send_table(struct doll *doll, uint32_t idx)
{
	struct ground *ground = doll->ground;
	const struct wf_sparse_table table = {
		.idx = idx,
		.table_count = GROUND_TABLES,
		.grad_reduce = (uint8_t)ground->tables.grad_reduce,
		.nonfinite = (uint8_t)ground->tables.nonfinite,
		.mode = ground->tables.mode,
		.staleness = ground->tables.staleness,
		.discard_ratio = ground->tables.discard_ratio,
		.table = ground->desc[idx],
	};
	struct wf_msg msg;
	wf_sparse_table_encode(&table, &msg);
	doll_send(doll, &msg);
}

void
doll_grant(struct doll *doll)
{
	const struct wf_grant grant = {
		.kind = WF_GRANT_PLACE, .region = doll->region, .bytes = GROUND_ROWS_BYTES};
	struct wf_grant_key key = {0};
	struct wf_sparse_grant say = {.kind = WF_SPARSE_GRANT_ROWS,
				      .slot_bytes = GROUND_ROWS_BYTES};
	struct wf_msg msg;
	CHECK(doll->ground,
	      doll->conn != NULL && wf_transport_grant(doll->conn, &grant, &key) == WEFT_OK);
	memcpy(say.key, key.bytes, sizeof(say.key));
	wf_sparse_grant_encode(&say, &msg);
	doll_send(doll, &msg);
}

void
doll_have(struct doll *doll, uint64_t step, uint64_t applied)
{
	const struct wf_sparse_have say = {.step = step, .applied = applied};
	struct wf_msg msg;
	wf_sparse_have_encode(&say, &msg);
	doll_send(doll, &msg);
}

void
doll_meet(struct doll *doll)
{
	struct ground *ground = doll->ground;
	doll_connect(doll);
	ground_settle(ground);
	CHECK(ground, doll->up && !doll->down);
	if (ground->failure[0] != '\0') {
		return;
	}
	for (uint32_t i = 0; (doll->welcome.flags & WF_WELCOME_SEND_JOB) != 0 && i < GROUND_TABLES;
	     i++) {
		doll_send_table(doll, i);
	}
	ground_settle(ground);
	CHECK(ground, doll->granted && doll->resumed && !doll->down);
	if (ground->failure[0] != '\0') {
		return;
	}
	doll_grant(doll);
	uint64_t heard = doll->applieds > 0 ? doll->applied.step : WF_STEP_NONE;
	doll_have(doll, heard, heard);
	ground_settle(ground);
}

static struct wf_sparse_part
part_of(const struct wish *wish, bool pull)
{
	return (struct wf_sparse_part){
		.table = (uint16_t)wish->table,
		.coding = wish->coding,
		.row_count = wish->count,
		.key_bytes = (uint32_t)wf_keys_bytes((enum wf_key_coding)wish->coding, wish->key,
						     wish->count),
		.offset = pull ? wish->offset : 0,
	};
}

void
doll_fill_push(const struct doll *doll, uint64_t step, const struct wish *wish, uint32_t count,
	       struct wf_sparse_push *out)
{
	*out = (struct wf_sparse_push){
		.step = step,
		.samples = 2 + doll->trainer,
		.flags = WF_SPARSE_PUSH_LAST,
		.part_count = count,
	};
	for (uint32_t i = 0; i < count; i++) {
		out->part[i] = part_of(&wish[i], false);
	}
}

void
doll_fill_pull(const struct doll *doll, uint64_t id, uint64_t step, const struct wish *wish,
	       uint32_t count, struct wf_sparse_pull *out)
{
	*out = (struct wf_sparse_pull){
		.request_id = id,
		.step = step,
		.flags = WF_SPARSE_PULL_CREATE,
		.part_count = count,
	};
	for (uint32_t i = 0; i < count; i++) {
		out->part[i] = part_of(&wish[i], true);
	}
}

void
doll_say_push(struct doll *doll, const struct wf_sparse_push *push)
{
	struct wf_msg msg;
	wf_sparse_push_encode(push, &msg);
	doll_send(doll, &msg);
}

void
doll_say_pull(struct doll *doll, const struct wf_sparse_pull *pull)
{
	struct wf_msg msg;
	wf_sparse_pull_encode(pull, &msg);
	doll_send(doll, &msg);
}

void
doll_put_raw(struct doll *doll, uint32_t tag, const void *bytes, size_t count)
{
	size_t half = 8 * GROUND_ROWS_BYTES;
	if (doll->send_at + count + 64 > half) {
		doll->send_at = 0; /* long DONE */
	}
	uint8_t *at = (uint8_t *)doll->slab.base + half + doll->send_at;
	memcpy(at, bytes, count);
	doll->send_at += (count + 63) / 64 * 64;
	struct wf_op op = {
		.kind = WF_OP_PUT,
		.region = doll->region,
		.src = at,
		.bytes = count,
		.tag = tag,
	};
	memcpy(op.key.bytes, doll->grant.key, sizeof(op.key.bytes));
	post(doll, &op);
}

static uint32_t
free_buffer(struct doll *doll)
{
	for (unsigned tries = 0; tries < 100; tries++) {
		for (uint32_t i = 0; i < doll->grant.slot_count; i++) {
			if (!doll->buffer_used[i]) {
				return i;
			}
		}
		ground_run(doll->ground, WF_NS_PER_MS);
	}
	CHECK(doll->ground, !"a buffer became free");
	return 0;
}

void
doll_put(struct doll *doll, uint64_t request, uint32_t part, uint64_t step, const struct wish *wish)
{
	static uint8_t bytes[65536];
	size_t at = 0;
	for (uint32_t k = 0; request == 0 && k < wish->count; k++) {
		for (uint32_t e = 0; e < GROUND_DIM; e++) {
			float value = ground_gradient(wish->key[k], e, wish->scale);
			at += travel(doll->ground, wish->table, &value, &bytes[at]);
		}
	}
	bool scores = request == 0 && wish->table == 0 && doll->ground->opts.has_scores;
	for (uint32_t k = 0; scores && k < 2 * wish->count; k++) {
		float value = k < wish->count ? 1 : 0;
		memcpy(&bytes[at], &value, sizeof(value));
		at += sizeof(value);
	}
	at += wf_keys_encode((enum wf_key_coding)wish->coding, wish->key, wish->count, &bytes[at]);
	uint32_t buffer = free_buffer(doll);
	doll->buffer_used[buffer] = true;
	doll->buffer_request[buffer] = request;
	doll->buffer_part[buffer] = part;
	doll_put_raw(doll, wf_sparse_put_tag(part, doll->grant.slot_count, buffer, step), bytes,
		     at);
}

void
doll_push(struct doll *doll, uint64_t step, const struct wish *wish, uint32_t count)
{
	struct wf_sparse_push push;
	doll_fill_push(doll, step, wish, count, &push);
	doll_say_push(doll, &push);
	for (uint32_t i = 0; i < count; i++) {
		doll_put(doll, 0, i, step, &wish[i]);
	}
}

void
doll_pull(struct doll *doll, uint64_t id, uint64_t step, const struct wish *wish, uint32_t count)
{
	struct wf_sparse_pull pull;
	doll_fill_pull(doll, id, step, wish, count, &pull);
	doll_say_pull(doll, &pull);
	for (uint32_t i = 0; i < count; i++) {
		doll_put(doll, id, i, step, &wish[i]);
	}
}

void
doll_say_out(struct doll *doll, uint64_t step, uint32_t pass)
{
	const struct wf_sparse_push push = {
		.step = step,
		.pass = pass,
		.flags = WF_SPARSE_PUSH_LAST | WF_SPARSE_PUSH_OUT_OF_DATA,
	};
	doll_say_push(doll, &push);
}

void
doll_goodbye(struct doll *doll)
{
	const struct wf_msg_goodbye say = {.ack = false};
	struct wf_msg msg;
	wf_msg_goodbye_encode(&say, &msg);
	doll_send(doll, &msg);
}

const float *
doll_rows(const struct doll *doll, uint64_t offset)
{
	return (const float *)(const void *)((const uint8_t *)doll->slab.base + offset);
}

/* --- dolls: hearing --- */

static void
free_buffers(struct doll *doll, uint64_t request, uint32_t part)
{
	for (uint32_t i = 0; i < GROUND_SLOTS_MAX; i++) {
		bool its = doll->buffer_request[i] == request &&
			   (request == 0 || doll->buffer_part[i] == part);
		doll->buffer_used[i] = doll->buffer_used[i] && !its;
	}
}

static void
hear_credit(struct doll *doll, const struct wf_msg_credit *msg)
{
	for (uint32_t i = 0; i < msg->count; i++) {
		CHECK(doll->ground, msg->buffer[i] < doll->grant.slot_count);
		CHECK(doll->ground, doll->buffer_used[msg->buffer[i]]);
		doll->buffer_used[msg->buffer[i]] = false;
		doll->credits++;
	}
}

static enum weft_status
hear_sparse(struct doll *doll, const struct wf_head *head, const uint8_t *body)
{
	struct wf_msg_credit credit;
	struct wf_sparse_nack nack;
	enum weft_status st = WEFT_PROTOCOL;
	if (head->type == WF_SPARSE_GRANT) {
		st = wf_sparse_grant_decode(head, body, &doll->grant);
		doll->granted = st == WEFT_OK;
	} else if (head->type == WF_SPARSE_RESUME) {
		st = wf_sparse_resume_decode(head, body, &doll->resume);
		doll->resumed = st == WEFT_OK;
	} else if (head->type == WF_SPARSE_CREDIT) {
		st = wf_sparse_credit_decode(head, body, &credit);
		if (st == WEFT_OK) {
			hear_credit(doll, &credit);
		}
	} else if (head->type == WF_SPARSE_NACK) {
		st = wf_sparse_nack_decode(head, body, &nack);
		doll->nack[doll->nacks++ % GROUND_NACKS_MAX] = nack;
	} else if (head->type == WF_SPARSE_RESTORED) {
		st = wf_sparse_restored_decode(head, body, &doll->restored);
	} else if (head->type == WF_SPARSE_APPLIED) {
		st = wf_sparse_applied_decode(head, body, &doll->applied);
		doll->applieds++;
		free_buffers(doll, 0, 0);
	}
	return st;
}

static enum weft_status
hear_control(struct doll *doll, const struct wf_head *head, const uint8_t *body)
{
	struct wf_msg_goodbye goodbye;
	enum weft_status st = WEFT_PROTOCOL;
	if (head->type == WF_MSG_GOODBYE) {
		st = wf_msg_goodbye_decode(head, body, &goodbye);
		doll->goodbye_heard = st == WEFT_OK && goodbye.ack;
		if (doll->goodbye_heard) { /* heard that it was heard */
			struct wf_msg out;
			wf_msg_goodbye_encode(&goodbye, &out);
			doll_send(doll, &out);
		}
	} else if (head->type == WF_MSG_ABSENT) {
		st = wf_msg_absent_decode(head, body, &doll->absent);
	} else if (head->type == WF_MSG_ABORT) {
		st = wf_msg_abort_decode(head, body, &doll->abort);
		doll->aborted = true;
	}
	return st;
}

static void
hear_answer(struct doll *doll, uint32_t tag)
{
	doll->answer_tag[doll->answers++ % 64] = tag;
	for (uint32_t i = 0; i < GROUND_SLOTS_MAX; i++) {
		uint64_t request = doll->buffer_request[i];
		if (request != 0 && (request & 0xffff) == wf_tag_slot(tag) >> 8 &&
		    doll->buffer_part[i] == (wf_tag_slot(tag) & 0xff)) {
			doll->buffer_used[i] = false;
			doll->buffer_request[i] = 0;
		}
	}
}

static void
hear(struct doll *doll, const struct wf_event *event)
{
	if (event->conn != doll->conn || event->kind == WF_EVENT_DONE) {
		return;
	}
	enum weft_status st = WEFT_OK;
	switch (event->kind) {
	case WF_EVENT_UP:
		doll->up = true;
		st = wf_welcome_decode(event->up.blob, event->up.blob_bytes, &doll->welcome);
		break;
	case WF_EVENT_DOWN:
		doll->down = true;
		doll->conn = NULL;
		if (event->down.status == WEFT_REFUSED) {
			st = wf_welcome_decode(event->down.blob, event->down.blob_bytes,
					       &doll->welcome);
		}
		break;
	case WF_EVENT_MSG:
		st = event->msg.head->service == WF_SERVICE_SPARSE
			     ? hear_sparse(doll, event->msg.head, event->msg.body)
			     : hear_control(doll, event->msg.head, event->msg.body);
		break;
	case WF_EVENT_PUT:
		hear_answer(doll, event->put.tag);
		break;
	case WF_EVENT_DONE:
	default:
		break;
	}
	CHECK(doll->ground, st == WEFT_OK);
}

unsigned
doll_poll(struct doll *doll)
{
	struct wf_event events[16];
	unsigned count = 0;
	CHECK(doll->ground, wf_transport_poll(doll->transport, events, 16, &count) == WEFT_OK);
	for (unsigned i = 0; i < count; i++) {
		hear(doll, &events[i]);
	}
	return count;
}

/* --- the world --- */

static void
open_lane(struct ground *ground, uint32_t idx)
{
	const struct ground_opts *opts = &ground->opts;
	const struct wf_lane_opts lane = {
		.env = ground->env,
		.service = &wf_sparse_service,
		.transport = "sim",
		.listen = {.name = "::", .port = (uint16_t)(GROUND_PORT + idx)},
		.idx = 1 + idx,
		.service_idx = idx,
		.lane_count = opts->lanes,
		.max_trainers = 64,
		.numa_node = -1,
		.incarnation = 77,
		.slot_count = opts->slot_count,
		.slot_bytes_max = opts->slot_bytes,
		.max_shard_bytes = opts->max_shard_bytes,
		.reconnect_timeout_ns = 3 * WF_NS_PER_S,
		.peer_timeout_ns = 10 * WF_NS_PER_S,
		.connect_timeout_ns = 300 * WF_NS_PER_S,
		.stats_period_ns = opts->stats_period_ns,
	};
	CHECK(ground, wf_lane_create(&lane, &ground->lane[idx]) == WEFT_OK);
}

static bool
turn(struct ground *ground)
{
	bool busy = false;
	for (uint32_t i = 0; i < ground->opts.lanes && !ground->lanes_rest; i++) {
		busy = wf_lane_poll(ground->lane[i]) || busy;
	}
	for (uint32_t i = 0; i < ground->doll_count; i++) {
		busy = doll_poll(&ground->doll[i]) > 0 || busy;
	}
	return busy;
}

void
ground_run(struct ground *ground, uint64_t ns)
{
	uint64_t now = wf_now_ns(ground->env);
	uint64_t end = now + ns;
	uint64_t period = ns / 60 + 1;
	while (now < end && ground->failure[0] == '\0') {
		if (!turn(ground)) {
			wf_wait(ground->env, -1, now + period < end ? now + period : end);
		}
		now = wf_now_ns(ground->env);
	}
}

void
ground_settle(struct ground *ground)
{
	ground_run(ground, SETTLE_NS);
}

static int
run_script(struct wf_env *env, void *arg)
{
	struct ground *ground = arg;
	ground->env = env;
	make_tables(ground);
	make_models(ground);
	for (uint32_t i = 0; i < ground->opts.lanes; i++) {
		open_lane(ground, i);
	}
	ground->script(ground);
	for (uint32_t i = 0; i < ground->doll_count; i++) {
		wf_transport_close(ground->doll[i].transport);
		env->ops->slab_close(env, &ground->doll[i].slab);
	}
	for (uint32_t i = 0; i < ground->opts.lanes; i++) {
		wf_lane_destroy(ground->lane[i]);
	}
	for (uint32_t i = 0; i < GROUND_TABLES; i++) {
		wf_table_destroy(ground->model[i]);
	}
	return 0;
}

static void
fill_opts(struct ground_opts *opts)
{
	opts->lanes = opts->lanes == 0 ? 1 : opts->lanes;
	opts->slot_count = opts->slot_count == 0 ? 4 : opts->slot_count;
	opts->slot_bytes = opts->slot_bytes == 0 ? 1024 : opts->slot_bytes;
	opts->max_shard_bytes = opts->max_shard_bytes == 0 ? 64 << 20 : opts->max_shard_bytes;
}

void
ground_play(const struct ground_opts *opts, void (*script)(struct ground *ground))
{
	const char *seed = getenv("WEFT_SEED");
	struct wf_world_opts world_opts = {
		.seed = seed != NULL ? strtoull(seed, NULL, 0) : 1 + opts->seed,
		.delay_min_ns = 10 * WF_NS_PER_US,
		.delay_max_ns = WF_NS_PER_MS,
		.split_per_mille = 300,
		.down_delay_max_ns = 2 * WF_NS_PER_MS,
		.log_level = WF_LOG_DEBUG,
		.log_fd = getenv("WEFT_STAGE_LOG") != NULL ? 2 : -1,
	};
	struct ground *ground = calloc(1, sizeof(*ground));
	struct wf_world *world = NULL;
	struct wf_proc *proc = NULL;
	assert_non_null(ground);
	ground->opts = *opts;
	fill_opts(&ground->opts);
	ground->script = script;
	enum weft_status st = wf_world_create(&world_opts, &world);
	if (st == WEFT_OK) {
		st = wf_world_spawn(world, "ps", 0, run_script, ground, &proc);
	}
	if (st == WEFT_OK) {
		st = wf_world_run(world, 10000 * WF_NS_PER_S);
	}
	ground_check(ground, st == WEFT_OK, st == WEFT_OK ? "" : weft_last_error(), "world", 0);
	bool failed = ground->failure[0] != '\0';
	if (failed) {
		print_error("%s; repeat: WEFT_SEED=%llu\n", ground->failure,
			    (unsigned long long)world_opts.seed);
	}
	wf_world_destroy(world);
	free(ground);
	assert_false(failed);
}

static void
commit(struct ground *ground)
{
	struct doll *doll = doll_add(ground, 0, 0);
	doll_meet(doll);
	ground->opts.act(doll);
	ground_settle(ground);
	CHECK(ground, doll->down);
	const char *why = ground->lane[0]->peer[0].lost_why;
	if (strstr(why, ground->opts.says) == NULL) {
		char text[400];
		(void)snprintf(text, sizeof(text), "\"%.150s\" does not say \"%.100s\"", why,
			       ground->opts.says);
		ground_check(ground, false, text, __FILE__, __LINE__);
	}
	doll_connect(doll);
	ground_settle(ground);
	CHECK(ground, doll->welcome.refusal == WEFT_PROTOCOL);
}

void
ground_offend(uint64_t seed, void (*act)(struct doll *doll), const char *says)
{
	const struct ground_opts opts = {.trainers = 1, .seed = seed, .act = act, .says = says};
	ground_play(&opts, commit);
}
