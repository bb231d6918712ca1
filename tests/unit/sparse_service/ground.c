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

#include "base/settings.h"
#include "kernels/half.h"
#include "tests/support/hello.h"

/* --- tables --- */

static void
make_tables(struct ground *ground)
{
	for (uint32_t i = 0; i < GROUND_TABLES; i++) {
		struct wf_table_desc *desc = &ground->desc[i];
		*desc = (struct wf_table_desc){
			.optimizer = WF_ROW_ADAGRAD,
			.init = WF_INIT_UNIFORM,
			.set = {.dim = GROUND_DIM,
				.optimizer = {.learning_rate = 0.5, .epsilon = 1e-6},
				.init_a = -1,
				.init_b = 1,
				.init_seed = 9 + i,
				.admit_probability = 1},
		};
		(void)snprintf(desc->name, sizeof(desc->name), i == 0 ? "words" : "names");
	}
	ground->desc[1].set.vocabulary = GROUND_VOCABULARY;
	ground->desc[0].set.memory_cap_bytes = ground->opts.memory_cap_bytes;
	ground->desc[0].set.wire = ground->opts.value_wire;
	if (ground->opts.has_scores) {
		ground->desc[0].set.evict_score_least = 0.5;
		ground->desc[0].set.evict_show_weight = 1;
		ground->desc[0].set.evict_click_weight = 1;
		ground->desc[0].set.evict_fade = 0.5;
		ground->desc[0].set.evict_fade_steps = 1;
	}
	ground->tables = (struct wf_tables){
		.grad_reduce = ground->opts.grad_reduce,
		.skips_nonfinite = ground->opts.skips_nonfinite,
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
			.vocabulary = ground->desc[i].set.vocabulary,
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
		opts.row.set.learning_rate = 0.5;
		opts.row.set.epsilon = 1e-6;
		if (i == 0 && ground->opts.has_scores) {
			opts.evict = (struct wf_evict_opts){.score_least = 0.5,
							    .show_weight = 1,
							    .click_weight = 1,
							    .fade = 0.5,
							    .fade_steps = 1};
		}
		CHECK(ground,
		      wf_table_create(ground->script.env, &opts, &ground->model[i]) == WEFT_OK);
	}
}

/* A value of a table as the other end has it, by half.h's definition; returns how many bytes it
 * takes at `out`, which may be NULL. */
static size_t
travel(const struct ground *ground, uint32_t table, float *value, uint8_t *out)
{
	uint16_t half;
	switch (ground->desc[table].set.wire) {
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

static const struct peer_ops ops;

static void
fill_hello(const struct doll *doll, struct wf_hello *hello)
{
	const struct ground *ground = doll->ground;
	*hello = hello_in_order();
	hello->service = WF_SERVICE_SPARSE;
	hello->lane_idx = doll->lane;
	hello->lane_count = ground->opts.lanes;
	hello->trainer_id = doll->trainer;
	hello->trainer_count = ground->opts.trainers;
	hello->incarnation = 1000 + doll->trainer;
	hello->path = 0; /* peer_connect counts */
	hello->job_digest = 5;
	hello->tensors_digest = wf_tables_digest(&ground->tables);
	hello->job_bytes = wf_tables_bytes(&ground->tables);
	(void)snprintf(hello->host, sizeof(hello->host), "doll");
	hello->pid = 100 + doll->trainer;
}

struct doll *
doll_add(struct ground *ground, uint32_t trainer, uint32_t lane)
{
	struct doll *doll = &ground->doll[ground->doll_count++];
	doll->ground = ground;
	doll->trainer = trainer;
	doll->lane = lane;
	doll->peer.ops = &ops;
	doll->peer.to = (struct wf_host){.name = "ps", .port = (uint16_t)(GROUND_PORT + lane)};
	fill_hello(doll, &doll->peer.hello);
	peer_open(&doll->peer, &ground->script, "sim", 16 * GROUND_ROWS_BYTES);
	return doll;
}

void
doll_send_table(struct doll *doll, uint32_t idx)
{
	struct ground *ground = doll->ground;
	const struct wf_sparse_table table = {
		.idx = idx,
		.table_count = GROUND_TABLES,
		.grad_reduce = (uint8_t)ground->tables.grad_reduce,
		.nonfinite = ground->tables.skips_nonfinite ? 1 : 0,
		.mode = ground->tables.mode,
		.staleness = ground->tables.staleness,
		.discard_ratio = ground->tables.discard_ratio,
		.table = ground->desc[idx],
	};
	struct wf_msg msg;
	wf_sparse_table_encode(&table, &msg);
	peer_send(&doll->peer, &msg);
}

void
doll_grant(struct doll *doll)
{
	peer_grant_place(&doll->peer, 0, 0, GROUND_ROWS_BYTES);
}

void
doll_have(struct doll *doll, uint64_t step, uint64_t applied)
{
	const struct wf_msg_steps say = {
		.step = step, .last = true, .count = 1, .step_of = {applied}};
	struct wf_msg msg;
	wf_msg_have_encode(&say, &msg);
	peer_send(&doll->peer, &msg);
}

void
doll_meet(struct doll *doll)
{
	struct ground *ground = doll->ground;
	struct peer *peer = &doll->peer;
	peer_connect(peer);
	ground_settle(ground);
	CHECK(ground, peer->up && !peer->down);
	if (script_failed(&ground->script)) {
		return;
	}
	bool asked = (peer->welcome.flags & WF_WELCOME_SEND_JOB) != 0;
	for (uint32_t i = 0; asked && i < GROUND_TABLES; i++) {
		doll_send_table(doll, i);
	}
	ground_settle(ground);
	CHECK(ground, peer->granted && peer->resumed && !peer->down);
	if (script_failed(&ground->script)) {
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
	peer_send(&doll->peer, &msg);
}

void
doll_say_pull(struct doll *doll, const struct wf_sparse_pull *pull)
{
	struct wf_msg msg;
	wf_sparse_pull_encode(pull, &msg);
	peer_send(&doll->peer, &msg);
}

void
doll_put_raw(struct doll *doll, uint32_t tag, const void *bytes, size_t count)
{
	size_t half = 8 * GROUND_ROWS_BYTES;
	if (doll->send_at + count + 64 > half) {
		doll->send_at = 0; /* long DONE */
	}
	uint8_t *at = (uint8_t *)doll->peer.slab.base + half + doll->send_at;
	memcpy(at, bytes, count);
	doll->send_at += (count + 63) / 64 * 64;
	struct wf_op op = {
		.kind = WF_OP_PUT,
		.region = doll->peer.region,
		.src = at,
		.bytes = count,
		.tag = tag,
	};
	memcpy(op.key.bytes, doll->peer.grant.key, sizeof(op.key.bytes));
	(void)peer_post(&doll->peer, &op);
}

static uint32_t
free_buffer(struct doll *doll)
{
	for (unsigned tries = 0; tries < 100; tries++) {
		uint32_t buffer = peer_free_buffer(&doll->peer);
		if (buffer < doll->peer.slot_count) {
			return buffer;
		}
		ground_run(doll->ground, WF_NS_PER_MS);
	}
	CHECK(doll->ground, !"a buffer became free");
	return 0;
}

static uint64_t
label_of(uint64_t request, uint32_t part)
{
	return request << 8 | part;
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
	doll->peer.buffer[buffer] = label_of(request, part);
	doll_put_raw(doll, wf_sparse_put_tag(part, doll->peer.grant.slot_count, buffer, step),
		     bytes, at);
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

const float *
doll_rows(const struct doll *doll, uint64_t offset)
{
	return (const float *)(const void *)((const uint8_t *)doll->peer.slab.base + offset);
}

/* --- dolls: hearing --- */

/* APPLIED: all that was pushed has left its buffers. */
static void
free_pushes(struct peer *peer)
{
	for (uint32_t i = 0; i < peer->slot_count; i++) {
		if (peer->buffer[i] < label_of(1, 0)) {
			peer->buffer[i] = PEER_BUFFER_FREE;
		}
	}
}

void
doll_correct(struct doll *doll, uint64_t offset)
{
	const struct wf_sparse_changed *changed = &doll->changed;
	uint8_t *at = (uint8_t *)doll->peer.slab.base + offset;
	for (uint32_t i = 0; i < changed->row_count; i++) {
		memcpy(at + (size_t)changed->row[i] * changed->row_bytes,
		       doll->changed_values + (size_t)i * changed->row_bytes, changed->row_bytes);
	}
}

static enum weft_status
recv(struct peer *peer, const struct wf_head *head, const uint8_t *body)
{
	struct doll *doll = (struct doll *)peer;
	struct wf_sparse_nack nack;
	enum weft_status st = WEFT_PROTOCOL;
	if (head->service != WF_SERVICE_SPARSE) {
		return st;
	}
	if (head->type == WF_SPARSE_NACK) {
		st = wf_sparse_nack_decode(head, body, &nack);
		doll->nack[doll->nacks++ % GROUND_NACKS_MAX] = nack;
	} else if (head->type == WF_SPARSE_RESTORED) {
		st = wf_sparse_restored_decode(head, body, &doll->restored);
	} else if (head->type == WF_SPARSE_CHANGED) {
		st = wf_sparse_changed_decode(head, body, &doll->changed);
		doll->changes++;
		memcpy(doll->changed_values, doll->changed.values,
		       (size_t)doll->changed.row_count * doll->changed.row_bytes);
		doll->changed_rows += doll->changed.row_count;
		if (doll->correct_at > 0) {
			doll_correct(doll, doll->correct_at);
		}
	} else if (head->type == WF_SPARSE_APPLIED) {
		st = wf_sparse_applied_decode(head, body, &doll->applied);
		doll->applieds++;
		free_pushes(peer);
	}
	return st;
}

/* The tag has the low 16 bits of the request, and the part. */
static void
recv_answer(struct peer *peer, const struct wf_event *event)
{
	struct doll *doll = (struct doll *)peer;
	uint32_t tag = event->put.tag;
	doll->answer_tag[doll->answers++ % 64] = tag;
	for (uint32_t i = 0; i < peer->slot_count; i++) {
		uint64_t label = peer->buffer[i];
		if (label >= label_of(1, 0) && (label & 0xffffff) == wf_tag_slot(tag)) {
			peer->buffer[i] = PEER_BUFFER_FREE;
		}
	}
}

static const struct peer_ops ops = {.recv = recv, .put = recv_answer};

/* --- the process --- */

static void
open_lane(struct ground *ground, uint32_t idx)
{
	const struct ground_opts *opts = &ground->opts;
	struct wf_session_values network;
	wf_session_defaults(&network);
	network.opts.transport = "sim";
	const struct wf_lane_opts lane = {
		.env = ground->script.env,
		.service = &wf_sparse_service,
		.network = &network,
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
		.connect_timeout_ns = 300 * WF_NS_PER_S,
		.stats_period_ns = opts->stats_period_ns,
	};
	CHECK(ground, wf_lane_create(&lane, &ground->lane[idx]) == WEFT_OK);
}

static bool
turn(struct script *script)
{
	struct ground *ground = (struct ground *)script;
	bool busy = false;
	for (uint32_t i = 0; i < ground->opts.lanes && !ground->lanes_rest; i++) {
		busy = wf_lane_poll(ground->lane[i]) || busy;
	}
	for (uint32_t i = 0; i < ground->doll_count; i++) {
		busy = peer_poll(&ground->doll[i].peer) > 0 || busy;
	}
	return busy;
}

static void
body(struct script *script)
{
	struct ground *ground = (struct ground *)script;
	make_tables(ground);
	make_models(ground);
	for (uint32_t i = 0; i < ground->opts.lanes; i++) {
		open_lane(ground, i);
	}
	ground->run(ground);
	for (uint32_t i = 0; i < ground->doll_count; i++) {
		peer_close(&ground->doll[i].peer);
	}
	for (uint32_t i = 0; i < ground->opts.lanes; i++) {
		wf_lane_destroy(ground->lane[i]);
	}
	for (uint32_t i = 0; i < GROUND_TABLES; i++) {
		wf_table_destroy(ground->model[i]);
	}
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
ground_play(const struct ground_opts *opts, void (*run)(struct ground *ground))
{
	struct ground *ground = calloc(1, sizeof(*ground));
	assert_non_null(ground);
	ground->opts = *opts;
	fill_opts(&ground->opts);
	ground->run = run;
	ground->script = (struct script){.turn = turn, .body = body};
	bool passed = script_play(&ground->script, 1 + opts->seed);
	free(ground);
	assert_true(passed);
}

static void
commit(struct ground *ground)
{
	struct doll *doll = doll_add(ground, 0, 0);
	doll_meet(doll);
	ground->opts.act(doll);
	ground_settle(ground);
	CHECK(ground, doll->peer.down);
	CHECK_SAYS(ground, ground->lane[0]->peers.all[0].lost.why, ground->opts.says);
	peer_connect(&doll->peer);
	ground_settle(ground);
	CHECK(ground, doll->peer.welcome.refusal == WEFT_PROTOCOL);
}

void
ground_offend(uint64_t seed, void (*act)(struct doll *doll), const char *says)
{
	const struct ground_opts opts = {.trainers = 1, .seed = seed, .act = act, .says = says};
	ground_play(&opts, commit);
}
