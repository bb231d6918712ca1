/* SPDX-License-Identifier: Apache-2.0 */
/* fake_tables: tables of the scripted pserver: pulls, pushes, steps. Thread: the world's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "fake_internal.h"
#include "wire/partition.h"

#define RUN_BYTES 64u   /* of what answers FETCH, mostly nonsense */
#define RUN_BYTES_AT 8u /* in its head: how many they are */

/* Of data in the pass of the step under way. */
static bool
is_out(const struct lane *lane, const struct member *p)
{
	return p->out_of_data && p->out_pass == lane->pass;
}

static bool
is_missing(const struct lane *lane, const struct member *p)
{
	return !is_out(lane, p) && p->received != lane->applied + 1;
}

static struct wf_grant_key
rows_key_of(const struct member *p)
{
	struct wf_grant_key key;
	memcpy(key.bytes, p->peer.grant.key, sizeof(key.bytes));
	return key;
}

static void
credit(struct member *p, const uint16_t *buffer, uint32_t count)
{
	struct wf_msg_credit msg = {.count = count};
	struct wf_msg out;
	memcpy(msg.buffer, buffer, count * sizeof(*buffer));
	wf_msg_credit_encode(&msg, &out);
	peer_send(&p->peer, &out);
}

static void
nack(struct lane *lane, struct member *p, uint64_t request_id, uint64_t step)
{
	struct wf_sparse_nack msg = {
		.request_id = request_id, .step = step, .status = WEFT_INVALID};
	struct wf_msg out;
	(void)snprintf(msg.reason, sizeof(msg.reason), "the script says no");
	wf_sparse_nack_encode(&msg, &out);
	peer_send(&p->peer, &out);
	lane->nacked++;
}

static void
say_changed(struct member *p, const struct pull *pull, uint64_t step, uint32_t row,
	    uint32_t row_bytes)
{
	static const uint8_t values[64] = {0};
	const struct wf_sparse_changed msg = {
		.request_id = pull->id,
		.step = step,
		.last = true,
		.row_count = 1,
		.row_bytes = row_bytes,
		.row = {row},
		.values = values,
	};
	struct wf_msg out;
	wf_sparse_changed_encode(&msg, &out);
	peer_send(&p->peer, &out);
}

/* A part came ahead: what is wrong with the rest. */
static void
change_wrongly(const struct lane *lane, struct member *p, const struct pull *pull)
{
	const struct part *part = &pull->list.part[0];
	const uint32_t row_bytes = wf_table_row_bytes(&lane->desc[part->at.table]);
	if (lane->opts->wrong == FAKE_CHANGES_UNASKED) {
		say_changed(p, pull, pull->step, 0, row_bytes);
	} else if (lane->opts->wrong == FAKE_CHANGES_BEYOND) {
		say_changed(p, pull, pull->step, part->at.row_count, row_bytes);
	} else if (lane->opts->wrong == FAKE_CHANGES_NARROW) {
		say_changed(p, pull, pull->step, 0, row_bytes - 1);
	} else if (lane->opts->wrong == FAKE_CHANGES_OTHER) {
		say_changed(p, pull, pull->step + 1, 0, row_bytes);
	}
}

static void
answer(struct lane *lane, struct member *p, struct pull *pull)
{
	size_t used = 0;
	uint8_t *area = p->gather + (size_t)(pull - p->pull) * GATHER_BYTES;
	bool old = lane->opts->wrong == FAKE_ANSWERS_OLD_STEP && pull->step > 0;
	bool anew = lane->opts->wrong == FAKE_AHEAD_ANEW && pull->step > 0;
	bool again = anew || (lane->opts->wrong == FAKE_AHEAD_TWICE && pull->step > 0);
	bool changes = lane->opts->wrong == FAKE_CHANGES_BEYOND ||
		       lane->opts->wrong == FAKE_CHANGES_NARROW ||
		       lane->opts->wrong == FAKE_CHANGES_OTHER;
	bool ahead = again || (changes && pull->step > 0);
	for (uint32_t i = 0; i < pull->list.count; i++) {
		struct part *part = &pull->list.part[i];
		size_t bytes = part->at.row_count * wf_table_row_bytes(&lane->desc[part->at.table]);
		const struct wf_table_lookup lookup = {
			.key = part->key,
			.count = part->at.row_count,
			.out = (float *)(area + used),
			.create = (pull->flags & WF_SPARSE_PULL_CREATE) != 0,
		};
		WF_ASSERT(used + bytes <= GATHER_BYTES);
		fake_must(wf_table_lookup(lane->table[part->at.table], &lookup));
		bool cut = lane->opts->wrong == FAKE_ANSWERS_SHORT;
		bool twice = i == 0 && (lane->opts->wrong == FAKE_ANSWERS_TWICE || again);
		for (int times = twice ? 2 : 1; times > 0; times--) {
			bool early = ahead && !(anew && times == 1);
			const struct wf_op op = {
				.kind = WF_OP_PUT,
				.cookie = (uint64_t)(pull - p->pull) + 1,
				.region = lane->answers_region,
				.src = area + used,
				.bytes = cut ? bytes - 1 : bytes,
				.key = rows_key_of(p),
				.offset = part->at.offset,
				.tag = wf_sparse_answer_tag(pull->id, i,
							    lane->applied + (old ? 7 : 0) - early),
			};
			pull->in_flight++;
			(void)peer_post(&p->peer, &op);
		}
		used += bytes;
	}
	if (pull->step > 0) {
		change_wrongly(lane, p, pull);
	}
	fake_free_list(&pull->list);
	pull->whole = false; /* used until its PUTs are DONE */
}

static void
answer_due(struct lane *lane)
{
	for (uint32_t t = 0; t < lane->opts->trainers; t++) {
		struct member *p = &lane->member[t];
		/* the older first */
		for (uint32_t n = 0; n < PULLS_MAX; n++) {
			struct pull *best = NULL;
			for (uint32_t i = 0; i < PULLS_MAX; i++) {
				struct pull *pull = &p->pull[i];
				if (pull->whole && pull->step <= lane->applied &&
				    (best == NULL || pull->id < best->id)) {
					best = pull;
				}
			}
			if (best != NULL) {
				answer(lane, p, best);
			}
		}
	}
}

static size_t
list_batches(struct lane *lane, uint32_t table, struct wf_table_batch *out)
{
	size_t n = 0;
	for (uint32_t t = 0; t < lane->opts->trainers; t++) {
		const struct batch_list *list = &lane->member[t].push;
		for (uint32_t i = 0; i < list->count; i++) {
			const struct part *part = &list->part[i];
			if (part->at.table != table) {
				continue;
			}
			out[n++] = (struct wf_table_batch){
				.key = part->key,
				.grad = part->grad,
				.count = part->at.row_count,
				.show = part->show,
				.click = part->click,
			};
		}
	}
	return n;
}

static void
apply_table(struct lane *lane, uint32_t t, uint64_t samples)
{
	static struct wf_table_batch batch[4096];
	size_t count = list_batches(lane, t, batch);
	struct wf_row_opts row = wf_table_row(&lane->desc[t]);
	const struct wf_table_push push = {
		.step = lane->applied + 1,
		.rate = wf_row_rate(&row, lane->samples_before, samples),
		.divisor = lane->mean ? (float)samples : 1.0f,
		.batch = batch,
		.batch_count = count,
	};
	fake_must(wf_table_push(lane->table[t], &push));
}

void
fake_say_applied(struct member *p)
{
	struct wf_msg out;
	wf_sparse_applied_encode(&p->lane->said, &out);
	peer_send(&p->peer, &out);
}

/* The step that everybody who has data has pushed. */
static bool
apply(struct lane *lane)
{
	uint64_t samples = 0;
	bool anybody = false;
	for (uint32_t t = 0; t < lane->opts->trainers; t++) {
		const struct member *p = &lane->member[t];
		if (p->peer.hello.incarnation == 0 || is_missing(lane, p)) {
			return false;
		}
		anybody = anybody || !is_out(lane, p);
		samples += is_out(lane, p) ? 0 : p->samples;
	}
	if (!anybody) {
		return false;
	}
	for (uint32_t t = 0; t < lane->table_count; t++) {
		apply_table(lane, t, samples);
	}
	lane->applied++;
	lane->samples_before += samples;
	lane->seen->steps_applied++;
	lane->said = (struct wf_sparse_applied){
		.step = lane->applied,
		.samples = samples,
		.rows_updated = FAKE_ROWS_UPDATED,
		.pushes_lost = FAKE_PUSHES_LOST,
		.grads_nonfinite = FAKE_GRADS_NONFINITE,
	};
	for (uint32_t t = 0; t < lane->opts->trainers; t++) {
		struct member *p = &lane->member[t];
		fake_free_list(&p->push);
		if (p->had && !is_out(lane, p)) {
			fake_say_applied(p);
		}
	}
	return true;
}

static void
recv_table(struct lane *lane, struct member *p, const struct wf_head *head, const uint8_t *body)
{
	struct wf_sparse_table msg;
	fake_must(wf_sparse_table_decode(head, body, &msg));
	WF_ASSERT(p->loading && msg.idx == p->tables_told && msg.table_count <= TABLES_MAX);
	lane->desc[p->tables_told++] = msg.table;
	lane->seen->tables_told++;
	lane->mean = msg.grad_reduce == WEFT_REDUCE_MEAN;
	if (p->tables_told < msg.table_count) {
		return;
	}
	p->loading = false;
	lane->table_count = msg.table_count;
	uint32_t lanes = p->peer.hello.pserver_count * p->peer.hello.lane_count;
	uint32_t global = p->peer.hello.pserver_idx * p->peer.hello.lane_count + lane->idx;
	for (uint32_t t = 0; t < lane->table_count; t++) {
		const struct wf_table_desc *d = &lane->desc[t];
		struct wf_table_opts opts = {
			.dim = d->set.dim,
			.vocabulary = d->set.vocabulary,
			.partition_first = wf_partition_first(global, lanes),
			.partition_count = wf_partition_first(global + 1, lanes) -
					   wf_partition_first(global, lanes),
			.entries_max = 1u << 20,
			.row = wf_table_row(d),
			.init = {.kind = (enum wf_init_kind)d->init,
				 .a = d->set.init_a,
				 .b = d->set.init_b,
				 .seed = d->set.init_seed,
				 .table = t},
			.admit = {.probability = 1},
			.evict = {.score_least = d->set.evict_score_least,
				  .show_weight = d->set.evict_show_weight,
				  .click_weight = d->set.evict_click_weight,
				  .fade = d->set.evict_fade,
				  .fade_steps = d->set.evict_fade_steps},
		};
		fake_must(wf_table_create(lane->env, &opts, &lane->table[t]));
	}
	for (uint32_t t = 0; t < lane->opts->trainers; t++) {
		if (lane->member[t].peer.conn != NULL) {
			fake_resume(&lane->member[t]);
		}
	}
}

void
fake_recv_have(struct peer *peer)
{
	struct member *p = (struct member *)peer;
	const struct lane *lane = p->lane;
	const struct wf_msg_steps *msg = &peer->steps;
	if (!lane->sparse) {
		return;
	}
	WF_ASSERT(msg->first == 0 && msg->count == 1 && msg->last);
	uint64_t heard = msg->step_of[0] == WF_STEP_NONE ? 0 : msg->step_of[0];
	WF_ASSERT(peer->granted && !p->had);
	p->had = true;
	if (lane->applied > heard && p->received == lane->applied) {
		fake_say_applied(p);
	}
}

static void
end_push(struct lane *lane, struct member *p)
{
	const struct wf_sparse_push *msg = &p->push_msg;
	p->coming = 0;
	if ((msg->flags & WF_SPARSE_PUSH_LAST) == 0) {
		return;
	}
	p->received = msg->step;
	p->samples = msg->samples;
	if (lane->opts->wrong == FAKE_NACKS_PUSH && msg->step == lane->opts->step) {
		nack(lane, p, 0, msg->step);
	}
	while (apply(lane)) {
	}
	answer_due(lane);
}

static void
recv_push(struct lane *lane, struct member *p, const struct wf_head *head, const uint8_t *body)
{
	struct wf_sparse_push *msg = &p->push_msg;
	fake_must(wf_sparse_push_decode(head, body, msg));
	WF_ASSERT(p->peer.granted && p->coming == 0);
	if ((msg->flags & WF_SPARSE_PUSH_OUT_OF_DATA) != 0) {
		lane->seen->outs += p->out_of_data ? 0 : 1;
		p->out_of_data = true;
		p->out_pass = msg->pass;
		while (apply(lane)) {
		}
		answer_due(lane);
		return;
	}
	WF_ASSERT(msg->step == lane->applied + 1);
	WF_ASSERT(p->received < msg->step);
	p->out_of_data = false;
	lane->pass = msg->pass;
	p->coming = WF_SPARSE_PUSH;
	p->part_next = 0;
	lane->seen->pushes++;
	lane->seen->empty_pushes += msg->part_count == 0 ? 1 : 0;
	lane->seen->parts_most =
		msg->part_count > lane->seen->parts_most ? msg->part_count : lane->seen->parts_most;
	if (msg->part_count == 0) {
		end_push(lane, p);
	}
}

static void
recv_pull(struct lane *lane, struct member *p, const struct wf_head *head, const uint8_t *body)
{
	struct wf_sparse_pull *msg = &p->pull_msg;
	fake_must(wf_sparse_pull_decode(head, body, msg));
	WF_ASSERT(p->peer.granted && p->coming == 0);
	WF_ASSERT(msg->step <= lane->applied + 1);
	p->pull_now = NULL;
	for (uint32_t i = 0; i < PULLS_MAX; i++) {
		p->pull_now = p->pull[i].used ? p->pull_now : &p->pull[i];
	}
	WF_ASSERT(p->pull_now != NULL); /* two are unanswered at most */
	*p->pull_now = (struct pull){
		.used = true, .id = msg->request_id, .step = msg->step, .flags = msg->flags};
	p->coming = WF_SPARSE_PULL;
	p->part_next = 0;
	lane->seen->pulls++;
	lane->seen->parts_most =
		msg->part_count > lane->seen->parts_most ? msg->part_count : lane->seen->parts_most;
	p->nacked = lane->opts->wrong == FAKE_NACKS_AT_HEAD && msg->request_id % 2 == 0;
	if (p->nacked) {
		nack(lane, p, msg->request_id, msg->step);
	}
}

static uint64_t *
read_keys(const struct wf_sparse_part *part, const uint8_t *at)
{
	uint64_t *key = calloc(part->row_count, sizeof(*key));
	const struct wf_keys_in in = {
		.coding = (enum wf_key_coding)part->coding,
		.at = at,
		.bytes = part->key_bytes,
		.count = part->row_count,
	};
	fake_must(wf_keys_decode(&in, key));
	return key;
}

static float *
read_floats(const uint8_t *at, size_t count)
{
	float *out = calloc(count, sizeof(*out));
	memcpy(out, at, count * sizeof(*out));
	return out;
}

static bool
has_key(const struct batch_list *list, uint64_t key)
{
	for (uint32_t i = 0; i < list->count; i++) {
		for (uint32_t k = 0; k < list->part[i].at.row_count; k++) {
			if (list->part[i].key[k] == key) {
				return true;
			}
		}
	}
	return false;
}

static void
end_pull(struct lane *lane, struct member *p)
{
	struct pull *pull = p->pull_now;
	p->coming = 0;
	pull->whole = true;
	bool key = lane->opts->wrong == FAKE_NACKS_KEY && has_key(&pull->list, lane->opts->key);
	if (key) {
		nack(lane, p, pull->id, pull->step);
	}
	if (key || p->nacked) {
		credit(p, &p->last_buffer, 1);
		fake_free_list(&pull->list);
		*pull = (struct pull){0};
		return;
	}
	if (lane->opts->credits_early || pull->step > lane->applied) {
		credit(p, &p->last_buffer, 1);
	}
	if (lane->opts->wrong == FAKE_CREDITS_TWICE) {
		credit(p, &p->last_buffer, 1);
		credit(p, &p->last_buffer, 1);
	}
	if (lane->opts->wrong == FAKE_APPLIES_UNASKED) {
		lane->said.step = 77;
		fake_say_applied(p);
	}
	answer_due(lane);
}

static void
recv_pull_part(struct lane *lane, struct member *p, const uint8_t *data)
{
	const struct wf_sparse_part *at = &p->pull_msg.part[p->part_next++];
	struct part *part = fake_add_part(&p->pull_now->list, at);
	part->key = read_keys(at, data);
	lane->seen->rows_pulled += at->row_count;
	lane->seen->delta_parts += at->coding == WF_KEYS_DELTA ? 1 : 0;
	lane->seen->raw_parts += at->coding == WF_KEYS_RAW ? 1 : 0;
	if (p->part_next < p->pull_msg.part_count) {
		credit(p, &p->last_buffer, 1); /* with few slots they are needed twice */
		return;
	}
	end_pull(lane, p);
}

static void
recv_push_part(struct lane *lane, struct member *p, const uint8_t *data)
{
	const struct wf_sparse_part *at = &p->push_msg.part[p->part_next++];
	const struct wf_table_desc *desc = &lane->desc[at->table];
	size_t floats = (size_t)at->row_count * desc->set.dim;
	struct part *part = fake_add_part(&p->push, at);
	part->grad = read_floats(data, floats);
	data += floats * sizeof(float);
	if (wf_table_has_scores(desc)) {
		part->show = read_floats(data, at->row_count);
		data += at->row_count * sizeof(float);
		part->click = read_floats(data, at->row_count);
		data += at->row_count * sizeof(float);
	}
	part->key = read_keys(at, data);
	lane->seen->rows_pushed += at->row_count;
	if (p->part_next == p->push_msg.part_count) {
		end_push(lane, p);
	}
}

void
fake_recv_put(struct member *p, const struct wf_event *event)
{
	struct lane *lane = p->lane;
	uint32_t slot = wf_tag_slot(event->put.tag);
	uint32_t buffer = slot % lane->opts->slot_count;
	uint32_t i = slot / lane->opts->slot_count;
	WF_ASSERT(p->coming != 0 && i == p->part_next);
	p->last_buffer = (uint16_t)buffer;
	if (p->coming == WF_SPARSE_PULL) {
		WF_ASSERT(wf_tag_step(event->put.tag) == (uint8_t)p->pull_msg.step);
		wf_transport_release(p->peer.conn, slot); /* copied below, before the next poll */
		recv_pull_part(lane, p, event->put.data);
		return;
	}
	WF_ASSERT(wf_tag_step(event->put.tag) == (uint8_t)p->push_msg.step);
	bool more = p->part_next + 1 < p->push_msg.part_count;
	wf_transport_release(p->peer.conn, slot);
	if (more) { /* parked at once */
		credit(p, &p->last_buffer, 1);
	}
	recv_push_part(lane, p, event->put.data);
}

void
fake_done(struct member *p, uint64_t cookie)
{
	struct pull *pull = &p->pull[cookie - 1];
	if (pull->used && pull->in_flight > 0 && --pull->in_flight == 0) {
		pull->used = false;
	}
}

static void
nack_call(struct member *p, uint64_t request_id, uint64_t step)
{
	struct wf_msg out;
	struct wf_sparse_nack nack = {.request_id = request_id, .step = step, .status = WEFT_NOMEM};
	(void)snprintf(nack.reason, sizeof(nack.reason), "no memory to list rows");
	wf_sparse_nack_encode(&nack, &out);
	peer_send(&p->peer, &out);
}

/* All that the lane has in one piece. */
static void
put_counters(const struct lane *lane, const struct wf_sparse_fetch *fetch, uint8_t *out)
{
	const struct wf_run_head head = {
		.request_id = fetch->request_id,
		.bytes = WF_RUN_HEAD_BYTES + WF_RUN_SECTION_BYTES + 2 * FAKE_COUNTERS,
		.next = {.partition = wf_partition_first(lane->idx + 1, lane->opts->lanes),
			 .kind = WF_RUN_COUNTERS},
	};
	const struct wf_run_section section = {.partition = fetch->from.partition,
					       .kind = WF_RUN_COUNTERS,
					       .count = FAKE_COUNTERS};
	WF_ASSERT(head.bytes == RUN_BYTES);
	wf_run_head_put(&head, out);
	wf_run_section_put(&section, out + WF_RUN_HEAD_BYTES);
	for (size_t i = 0; i < FAKE_COUNTERS; i++) {
		wf_store_u16(out + WF_RUN_HEAD_BYTES + WF_RUN_SECTION_BYTES + 2 * i,
			     (uint16_t)(FAKE_COUNTER_FIRST + i));
	}
}

static void
recv_fetch(struct lane *lane, struct member *p, const struct wf_head *head, const uint8_t *body)
{
	struct wf_sparse_fetch fetch;
	fake_must(wf_sparse_fetch_decode(head, body, &fetch));
	if (lane->opts->wrong == FAKE_NACKS_CALLS) {
		nack_call(p, fetch.request_id, fetch.step);
		return;
	}
	if (lane->opts->wrong == FAKE_KEEPS_SILENT) {
		return;
	}
	memset(p->gather, 1, RUN_BYTES);
	bool says_more = lane->opts->wrong == FAKE_FETCHES_SHORT;
	wf_store_u32(p->gather + RUN_BYTES_AT, says_more ? WF_RUN_BYTES_MAX : RUN_BYTES);
	if (lane->opts->wrong == FAKE_FETCHES_COUNTERS) {
		put_counters(lane, &fetch, p->gather);
	}
	const struct wf_op op = {
		.kind = WF_OP_PUT,
		.region = lane->answers_region,
		.src = p->gather,
		.bytes = RUN_BYTES,
		.key = rows_key_of(p),
		.offset = fetch.offset,
		.tag = wf_sparse_answer_tag(fetch.request_id, WF_SPARSE_FETCH_PART, fetch.step),
	};
	(void)peer_post(&p->peer, &op);
}

/* Nothing is put: it is only said. */
static void
recv_restore(struct lane *lane, struct member *p, const struct wf_head *head, const uint8_t *body)
{
	struct wf_sparse_restore restore;
	struct wf_msg out;
	fake_must(wf_sparse_restore_decode(head, body, &restore));
	WF_ASSERT(restore.bytes == 0);
	if (lane->opts->wrong == FAKE_NACKS_CALLS) {
		nack_call(p, restore.request_id, restore.step);
		return;
	}
	if (lane->opts->wrong == FAKE_KEEPS_SILENT) {
		return;
	}
	const struct wf_sparse_restored restored = {.request_id = restore.request_id + 1};
	wf_sparse_restored_encode(&restored, &out);
	peer_send(&p->peer, &out);
}

void
fake_recv_sparse(struct member *p, const struct wf_head *head, const uint8_t *body)
{
	struct lane *lane = p->lane;
	switch (head->type) {
	case WF_SPARSE_TABLE:
		recv_table(lane, p, head, body);
		break;
	case WF_SPARSE_PUSH:
		recv_push(lane, p, head, body);
		break;
	case WF_SPARSE_PULL:
		recv_pull(lane, p, head, body);
		break;
	case WF_SPARSE_FETCH:
		recv_fetch(lane, p, head, body);
		break;
	case WF_SPARSE_RESTORE:
		recv_restore(lane, p, head, body);
		break;
	default:
		WF_ASSERT(false);
	}
}
