/* SPDX-License-Identifier: Apache-2.0 */
/* fake_lane: connections of the scripted pserver, and what every lane sends. Thread: the
 * world's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/digest.h"
#include "fake_internal.h"
#include "wire/partition.h"

void
fake_must(enum weft_status st)
{
	if (st != WEFT_OK) {
		(void)fprintf(stderr, "fake lane: %s\n", weft_last_error());
		abort();
	}
}

/* What the peers hold, too. */
static void
must_hold(const struct script *script)
{
	if (script_failed(script)) {
		(void)fprintf(stderr, "fake lane: %s\n", script->failure);
		abort();
	}
}

void
fake_free_list(struct batch_list *list)
{
	for (uint32_t i = 0; i < list->count; i++) {
		free(list->part[i].key);
		free(list->part[i].grad);
		free(list->part[i].show);
		free(list->part[i].click);
	}
	free(list->part);
	*list = (struct batch_list){0};
}

struct part *
fake_add_part(struct batch_list *list, const struct wf_sparse_part *at)
{
	list->part = realloc(list->part, (list->count + 1) * sizeof(*list->part));
	list->part[list->count] = (struct part){.at = *at};
	return &list->part[list->count++];
}

static struct wf_welcome
welcome(const struct lane *lane, bool send_job)
{
	return (struct wf_welcome){
		.version = WF_WIRE_VERSION,
		.flags = send_job ? WF_WELCOME_SEND_JOB : 0,
		.incarnation = lane->incarnation,
		.slot_count = lane->opts->slot_count,
		.msg_bytes_max = WF_MSG_BODY_MAX,
		.put_bytes_max = WF_SLICE_BYTES_MAX,
	};
}

/* The job is there: slots, and how far this trainer is. */
void
fake_resume(struct member *p)
{
	const struct lane *lane = p->lane;
	struct wf_msg out;
	if (!lane->sparse) {
		const struct wf_msg_steps steps = {.step = WF_STEP_NONE, .last = true};
		wf_msg_resume_encode(&steps, &out);
		peer_send(&p->peer, &out);
		return;
	}
	uint32_t t = (uint32_t)(p - lane->member);
	uint64_t bytes = lane->opts->slot_bytes * lane->opts->slot_count;
	const struct wf_grant grant = {
		.kind = WF_GRANT_SLOTS,
		.region = lane->slots_region,
		.offset = t * bytes,
		.bytes = lane->opts->slot_bytes,
		.slot_count = lane->opts->slot_count,
	};
	if (wf_transport_grant(p->peer.conn, &grant, &p->slots_key) != WEFT_OK) {
		return; /* on its way down */
	}
	struct wf_msg_grant msg = {
		.kind = WF_GRANT_WIRE_SLOTS,
		.announced = lane->opts->wrong == FAKE_ANNOUNCES,
		.slot_count = lane->opts->slot_count,
		.bytes = lane->opts->slot_bytes,
		.held_bytes = lane->opts->wrong == FAKE_HOLDS_NOTHING ? 0 : lane->opts->held_bytes,
	};
	memcpy(msg.key, p->slots_key.bytes, sizeof(msg.key));
	wf_msg_grant_encode(&msg, &out);
	peer_send(&p->peer, &out);
	if (lane->opts->wrong == FAKE_GRANTS_TWICE) {
		peer_send(&p->peer, &out);
	}
	bool ahead = lane->opts->wrong == FAKE_RESUMES_AHEAD && p->received > 0;
	const struct wf_msg_steps r = {
		.step = ahead              ? p->received + 5
			: p->received == 0 ? WF_STEP_NONE
					   : p->received,
		.last = true,
		.count = lane->opts->wrong == FAKE_RESUMES_IN_PARTS ? 2 : 1,
		.step_of = {lane->applied == 0 ? WF_STEP_NONE : lane->applied},
	};
	wf_msg_resume_encode(&r, &out);
	peer_send(&p->peer, &out);
	if (lane->opts->wrong == FAKE_SAYS_NONSENSE) {
		out.head.service = WF_SERVICE_SPARSE;
		out.head.type = 99;
		peer_send(&p->peer, &out);
	}
}

static void
up(struct lane *lane, const struct wf_event *event)
{
	struct wf_hello hello;
	fake_must(wf_hello_decode(event->up.blob, event->up.blob_bytes, &hello));
	WF_ASSERT(hello.trainer_id < lane->opts->trainers);
	WF_ASSERT(hello.service == (lane->sparse ? WF_SERVICE_SPARSE : WF_SERVICE_DENSE));
	WF_ASSERT(hello.lane_idx == lane->idx);
	struct member *p = &lane->member[hello.trainer_id];
	if (p->peer.conn != NULL) { /* the old path is not down yet: not now */
		struct wf_welcome w = {.refusal = WEFT_UNAVAILABLE, .reason = "the old path"};
		uint8_t bytes[WF_HELLO_MAX];
		size_t used = wf_welcome_encode(&w, bytes);
		fake_must(wf_transport_answer(event->conn, false, bytes, used));
		return;
	}
	bool wanted = lane->sparse ? lane->table_count == 0 || lane->table[0] == NULL : false;
	for (uint32_t t = 0; t < lane->opts->trainers; t++) {
		wanted = wanted && !lane->member[t].loading;
	}
	p->loading = wanted;
	p->tables_told = 0;
	const struct wf_welcome w = welcome(lane, wanted);
	peer_accept(&p->peer, event->conn, &hello, &w);
	if (!wanted && (!lane->sparse || lane->table[0] != NULL)) {
		fake_resume(p);
	}
}

static void
down(struct peer *peer)
{
	struct member *p = (struct member *)peer;
	p->loading = false;
	p->had = false;
	p->coming = 0;
	if (p->push.count > 0 && p->received < p->push_msg.step) {
		fake_free_list(&p->push); /* not whole */
	}
	for (uint32_t i = 0; i < PULLS_MAX; i++) {
		fake_free_list(&p->pull[i].list);
		p->pull[i] = (struct pull){0};
	}
}

static void
recv_reduce(struct lane *lane, struct member *p, const struct wf_head *head, const uint8_t *body)
{
	fake_must(wf_msg_reduce_decode(head, body, &p->reduce));
	struct wf_msg out;
	if (p->reduce.request_id == lane->reduced.request_id) { /* said again */
		wf_msg_reduced_encode(&lane->reduced, &out);
		peer_send(&p->peer, &out);
		return;
	}
	p->reduces = true;
	struct wf_msg_reduce sum = p->reduce;
	for (uint32_t i = 0; i < sum.count; i++) {
		sum.value[i] = 0;
	}
	for (uint32_t t = 0; t < lane->opts->trainers; t++) {
		const struct member *q = &lane->member[t];
		if (!q->reduces || q->reduce.request_id != sum.request_id) {
			return;
		}
		sum.step = q->reduce.step > sum.step ? q->reduce.step : sum.step;
		for (uint32_t i = 0; i < sum.count; i++) {
			sum.value[i] += q->reduce.value[i];
		}
	}
	lane->reduced = sum;
	wf_msg_reduced_encode(&sum, &out);
	for (uint32_t t = 0; t < lane->opts->trainers; t++) {
		lane->member[t].reduces = false;
		peer_send(&lane->member[t].peer, &out);
	}
}

static enum weft_status
recv(struct peer *peer, const struct wf_head *head, const uint8_t *body)
{
	struct member *p = (struct member *)peer;
	if (head->service == WF_SERVICE_CONTROL && head->type == WF_MSG_REDUCE) {
		recv_reduce(p->lane, p, head, body);
	} else if (head->service == WF_SERVICE_CONTROL) {
		return WEFT_PROTOCOL;
	} else if (p->lane->sparse) { /* of a dense lane HAVE, STEP: nothing is here */
		fake_recv_sparse(p, head, body);
	}
	return WEFT_OK;
}

static void
put(struct peer *peer, const struct wf_event *event)
{
	fake_recv_put((struct member *)peer, event);
}

static void
done(struct peer *peer, uint64_t cookie)
{
	fake_done((struct member *)peer, cookie);
}

static const struct peer_ops ops = {
	.recv = recv, .steps = fake_recv_have, .put = put, .done = done, .down = down};

static void
open_lane(struct lane *lane, struct wf_env *env, const struct fake_opts *opts, uint32_t port_idx)
{
	struct wf_transport_opts t = {.env = env, .paths = "sim"};
	struct wf_host at = {.port = (uint16_t)(FAKE_PORT + port_idx)};
	(void)snprintf(at.name, sizeof(at.name), "0.0.0.0");
	lane->env = env;
	lane->opts = opts;
	lane->sparse = port_idx > 0;
	lane->idx = lane->sparse ? port_idx - 1 : 0;
	lane->incarnation = wf_random(env) | 1;
	fake_must(wf_transport_open("paths", &t, &lane->transport));
	fake_must(wf_transport_listen(lane->transport, &at, &lane->port));
	uint64_t slots = opts->slot_bytes * opts->slot_count * opts->trainers;
	uint64_t answers = (uint64_t)GATHER_BYTES * PULLS_MAX * opts->trainers;
	fake_must(env->ops->slab_open(env, slots, -1, &lane->slots));
	fake_must(env->ops->slab_open(env, answers, -1, &lane->answers));
	const struct wf_region a = {lane->slots.base, lane->slots.bytes, lane->slots.memfd};
	const struct wf_region b = {lane->answers.base, lane->answers.bytes, lane->answers.memfd};
	fake_must(wf_transport_region_add(lane->transport, &a, &lane->slots_region));
	fake_must(wf_transport_region_add(lane->transport, &b, &lane->answers_region));
	for (uint32_t i = 0; i < opts->trainers; i++) {
		struct member *p = &lane->member[i];
		p->lane = lane;
		p->peer.ops = &ops;
		peer_open_at(&p->peer, lane->script, lane->transport);
		p->gather = (uint8_t *)lane->answers.base + (uint64_t)i * PULLS_MAX * GATHER_BYTES;
	}
}

static void
add_digest(const struct lane *lane, struct wf_digest *digest)
{
	for (uint32_t t = 0; t < lane->table_count && lane->table[t] != NULL; t++) {
		uint64_t cursor = 0;
		uint64_t sum = 0;
		struct wf_table_row row;
		size_t bytes = wf_table_row_floats(lane->table[t]) * sizeof(float);
		while (wf_table_next(lane->table[t], &cursor, &row)) {
			sum += wf_key_mix(row.key ^ wf_digest_of(row.floats, bytes));
		}
		wf_digest_u64(digest, sum);
	}
}

static void
close_lane(struct lane *lane)
{
	for (uint32_t i = 0; i < lane->opts->trainers; i++) {
		down(&lane->member[i].peer);
		fake_free_list(&lane->member[i].push);
		peer_close(&lane->member[i].peer);
	}
	for (uint32_t t = 0; t < lane->table_count; t++) {
		wf_table_destroy(lane->table[t]);
	}
	wf_transport_close(lane->transport);
	lane->env->ops->slab_close(lane->env, &lane->slots);
	lane->env->ops->slab_close(lane->env, &lane->answers);
}

static bool
is_over(const struct lane *lane)
{
	for (uint32_t t = 0; t < lane->opts->trainers; t++) {
		const struct peer *peer = &lane->member[t].peer;
		if ((!peer->goodbye_heard && !peer->aborted) || peer->conn != NULL) {
			return false;
		}
	}
	return true;
}

static unsigned
turn(struct lane *lane)
{
	struct wf_event event[16];
	unsigned count = 0;
	for (uint32_t t = 0; t < lane->opts->trainers; t++) {
		peer_flush(&lane->member[t].peer);
	}
	fake_must(wf_transport_poll(lane->transport, event, 16, &count));
	for (unsigned i = 0; i < count; i++) {
		struct peer *peer = event[i].conn->user;
		if (event[i].kind == WF_EVENT_UP) {
			up(lane, &event[i]);
		} else if (peer != NULL) {
			peer_event(peer, &event[i]);
		}
	}
	return count;
}

void
fake_pserver(struct wf_env *env, const struct fake_opts *opts, const bool *stop,
	     struct fake_seen *seen)
{
	struct lane *lane = calloc(1 + opts->lanes, sizeof(*lane));
	struct script script = {.env = env};
	bool over = false;
	for (uint32_t i = 0; i <= opts->lanes; i++) {
		lane[i].seen = seen;
		lane[i].script = &script;
		open_lane(&lane[i], env, opts, i);
	}
	while (!*stop) {
		unsigned events = 0;
		over = true;
		for (uint32_t i = 0; i <= opts->lanes; i++) {
			events += turn(&lane[i]);
			over = over && is_over(&lane[i]);
		}
		must_hold(&script);
		if (events == 0) {
			uint64_t deadline = wf_now_ns(env) + WF_NS_PER_MS;
			for (uint32_t i = 0; i <= opts->lanes; i++) {
				uint64_t due;
				wf_transport_arm(lane[i].transport, &due);
				deadline = due < deadline ? due : deadline;
			}
			wf_wait(env, -1, deadline);
		}
	}
	struct wf_digest *digest = NULL;
	fake_must(wf_digest_create(env, &digest));
	for (uint32_t i = 1; i <= opts->lanes; i++) {
		add_digest(&lane[i], digest);
	}
	seen->digest = wf_digest_value(digest);
	seen->ended_well = over;
	wf_digest_destroy(digest);
	for (uint32_t i = 0; i <= opts->lanes; i++) {
		close_lane(&lane[i]);
	}
	free(lane);
}
