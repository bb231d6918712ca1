/* SPDX-License-Identifier: Apache-2.0 */
/* cases_traffic: C53, what no other case thinks of. Two ends that keep the contract do at the same
 * time whatever it allows, by chance. Every byte arrives, in order, and what is lent comes back
 * once.
 * Thread: the case's. */
#include "tests/conformance/conformance.h"

#include <stdlib.h>

#define SOURCES 4u               /* regions of an end that come and go */
#define CHUNKS 4u                /* of a region: PUTs out of it at a time */
#define CHUNK_BYTES (600u << 10) /* more than two slices have by default */
#define TARGETS 8u               /* of this size in a grant: PUTs into it at a time */
#define POSTED 400u              /* operations of an end */
#define UNDER_WAY 64u
#define TURN_ACTS 6u
#define TURNS_IDLE 20u /* for which an end polls seldom */
#define POLL_MAX 64u
#define LIMIT_NS (60 * WF_NS_PER_S)

/* What was posted; the cookie is its number. The peer's events come in the same order. */
struct posted {
	bool is_put, is_lent;
	unsigned source, chunk; /* PUT */
	unsigned target;        /* PUT */
	size_t bytes;
	uint64_t mark;
};

/* A region that PUTs are made from. */
struct source {
	struct wf_slab slab;
	uint32_t region;
	bool is_there;
	bool is_lent[CHUNKS];
};

/* What has arrived in a slot and was not released. */
struct held {
	const uint8_t *data; /* NULL: nothing */
	size_t bytes;
	uint64_t mark;
};

struct end {
	struct node *node;
	struct wf_conn *conn;
	struct end *peer;
	bool has_slots;          /* else a place */
	struct wf_grant_key key; /* of the peer's grant */
	struct source source[SOURCES];
	struct posted posted[POSTED];
	unsigned posted_count, lent_count;
	unsigned arrived;             /* of those of the peer */
	bool is_target_busy[TARGETS]; /* of the peer's grant */
	struct held held[TARGETS];    /* of its own slots */
	size_t seen;                  /* events of the node that were looked at */
};

static bool
chance(struct conf *t, unsigned of)
{
	return wf_rng_below(&t->rng, of) == 0;
}

/* ---- regions that come and go ---- */

static bool
add_source(struct conf *t, struct end *e, struct source *s)
{
	if (t->env->ops->slab_open(t->env, CHUNKS * CHUNK_BYTES, -1, &s->slab) != WEFT_OK) {
		return false;
	}
	const bool has_memfd = !t->private_memory && !chance(t, 4);
	const struct wf_region region = {.base = s->slab.base,
					 .bytes = CHUNKS * CHUNK_BYTES,
					 .memfd = has_memfd ? s->slab.memfd : -1};
	s->is_there = true;
	return wf_transport_region_add(e->node->transport, &region, &s->region) == WEFT_OK;
}

static void
remove_source(struct conf *t, struct end *e, struct source *s)
{
	wf_transport_region_remove(e->node->transport, s->region);
	t->env->ops->slab_close(t->env, &s->slab);
	s->is_there = false;
}

static bool
change_source(struct conf *t, struct end *e)
{
	struct source *s = &e->source[wf_rng_below(&t->rng, SOURCES)];
	if (!s->is_there) {
		return add_source(t, e, s);
	}
	bool is_lent = false;
	for (unsigned i = 0; i < CHUNKS; i++) {
		is_lent |= s->is_lent[i];
	}
	if (!is_lent) {
		remove_source(t, e, s);
	}
	return true;
}

/* ---- sending ---- */

/* Small ones, those at which backends change their ways, and whole chunks. */
static size_t
draw_bytes(struct conf *t)
{
	switch (wf_rng_below(&t->rng, 7)) {
	case 0:
		return 1 + wf_rng_below(&t->rng, 64);
	case 1:
		return 4090 + wf_rng_below(&t->rng, 12);
	case 2:
		return (256u << 10) - 64 * wf_rng_below(&t->rng, 3);
	case 3:
	case 4:
		return 1 + wf_rng_below(&t->rng, CHUNK_BYTES);
	default:
		return 1 + wf_rng_below(&t->rng, 4096);
	}
}

static struct posted *
next_posted(struct conf *t, struct end *e, bool is_put)
{
	struct posted *next = &e->posted[e->posted_count];
	*next = (struct posted){.is_put = is_put,
				.mark = e->posted_count + (e->has_slots ? POSTED : 0)};
	next->bytes = is_put ? draw_bytes(t) : wf_rng_below(&t->rng, WF_MSG_BODY_MAX + 1);
	return next;
}

/* False: it broke the contract. AGAIN does not. */
static bool
post_message(struct conf *t, struct end *e)
{
	const struct posted *message = next_posted(t, e, false);
	enum weft_status st = conf_send(e->conn, message->mark, message->bytes);
	if (st == WEFT_OK) {
		e->posted[e->posted_count++].is_lent = true; /* its DONE comes, too */
		e->lent_count++;
	}
	return st == WEFT_OK || st == WEFT_AGAIN;
}

static bool
post_put(struct conf *t, struct end *e)
{
	struct posted *put = next_posted(t, e, true);
	put->source = (unsigned)wf_rng_below(&t->rng, SOURCES);
	put->chunk = (unsigned)wf_rng_below(&t->rng, CHUNKS);
	put->target = (unsigned)wf_rng_below(&t->rng, TARGETS);
	struct source *s = &e->source[put->source];
	if (!s->is_there || s->is_lent[put->chunk] || e->is_target_busy[put->target]) {
		return true;
	}
	uint8_t *chunk = (uint8_t *)s->slab.base + (size_t)put->chunk * CHUNK_BYTES;
	uint8_t *src = chunk + wf_rng_below(&t->rng, CHUNK_BYTES - put->bytes + 1);
	conf_fill(src, put->bytes, put->mark);
	bool copied = false;
	const struct wf_op op = {
		.kind = WF_OP_PUT,
		.cookie = e->posted_count,
		.region = s->region,
		.src = src,
		.bytes = put->bytes,
		.copied = chance(t, 2) ? &copied : NULL,
		.key = e->key,
		.offset = e->peer->has_slots ? 0 : (uint64_t)put->target * CHUNK_BYTES,
		.tag = wf_tag(put->target, 0),
	};
	unsigned taken = 0;
	enum weft_status st = wf_transport_post(e->conn, &op, 1, &taken);
	if (taken == 0) {
		return st == WEFT_AGAIN;
	}
	e->posted_count++;
	e->is_target_busy[put->target] = true;
	put->is_lent = !copied;
	s->is_lent[put->chunk] = !copied;
	e->lent_count += copied ? 0 : 1;
	if (copied) {
		memset(chunk, 0xee, CHUNK_BYTES);
	}
	return st == WEFT_OK || st == WEFT_AGAIN;
}

/* ---- receiving ---- */

static bool
on_done(struct end *e, const struct seen *done)
{
	uint64_t number = done->cookie >= POSTED ? done->cookie - POSTED : done->cookie;
	CHECK(number < e->posted_count && done->status == WEFT_OK);
	struct posted *op = &e->posted[number];
	CHECK(op->is_lent);
	op->is_lent = false;
	e->lent_count--;
	if (op->is_put) {
		struct source *s = &e->source[op->source];
		s->is_lent[op->chunk] = false;
		memset((uint8_t *)s->slab.base + (size_t)op->chunk * CHUNK_BYTES, 0xee,
		       CHUNK_BYTES);
	}
	return true;
}

static bool
on_put(const struct conf *t, struct end *e, const struct posted *op, const struct seen *put)
{
	CHECK(op->is_put && put->tag == wf_tag(op->target, 0));
	CHECK(!t->says_bytes || put->put_bytes == op->bytes);
	CHECK((put->data != NULL) == e->has_slots);
	const uint8_t *place = e->node->memory + (size_t)op->target * CHUNK_BYTES;
	CHECK(conf_is_filled(e->has_slots ? put->data : place, op->bytes, op->mark));
	if (e->has_slots) {
		CHECK(e->held[op->target].data == NULL);
		e->held[op->target] =
			(struct held){.data = put->data, .bytes = op->bytes, .mark = op->mark};
	} else {
		e->peer->is_target_busy[op->target] = false;
	}
	return true;
}

static bool
on_event(const struct conf *t, struct end *e, const struct seen *seen)
{
	if (seen->kind == WF_EVENT_DONE) {
		return on_done(e, seen);
	}
	CHECK(seen->kind == WF_EVENT_MSG || seen->kind == WF_EVENT_PUT);
	CHECK(e->arrived < e->peer->posted_count);
	const struct posted *op = &e->peer->posted[e->arrived++];
	if (seen->kind == WF_EVENT_PUT) {
		return on_put(t, e, op, seen);
	}
	CHECK(!op->is_put && conf_is_message(seen, op->mark, op->bytes));
	return true;
}

static bool
look(const struct conf *t, struct end *e)
{
	const struct seen *down = conf_nth(e->node, e->conn, WF_EVENT_DOWN, 0);
	if (down != NULL) { /* its DONEs would be the first to fail */
		fprintf(stderr, "down: %s\n", down->why);
		return false;
	}
	for (; e->seen < e->node->seen_count; e->seen++) {
		CHECK(on_event(t, e, &e->node->seen[e->seen]));
	}
	return true;
}

static bool
poll_end(struct conf *t, struct end *e)
{
	t->poll_max = 1 + (unsigned)wf_rng_below(&t->rng, POLL_MAX);
	(void)conf_poll(t, e->node);
	return look(t, e);
}

/* Until then they have to be there. */
static bool
release_slot(struct end *e, unsigned slot)
{
	const struct held *held = &e->held[slot];
	if (held->data == NULL) {
		return true;
	}
	CHECK(conf_is_filled(held->data, held->bytes, held->mark));
	e->held[slot].data = NULL;
	wf_transport_release(e->conn, slot);
	e->peer->is_target_busy[slot] = false;
	return true;
}

/* ---- all of it, by chance ---- */

static bool
act(struct conf *t, struct end *e)
{
	switch (wf_rng_below(&t->rng, 8)) {
	case 0:
		return change_source(t, e);
	case 1:
	case 2:
		return release_slot(e, (unsigned)wf_rng_below(&t->rng, TARGETS));
	case 3:
	case 4:
		return e->posted_count == POSTED || e->lent_count >= UNDER_WAY ||
		       post_message(t, e);
	default:
		return e->posted_count == POSTED || e->lent_count >= UNDER_WAY || post_put(t, e);
	}
}

/* An end that is `idle` polls one time of eight. */
static bool
turn(struct conf *t, struct end ends[2], unsigned idle)
{
	for (unsigned acts = (unsigned)wf_rng_below(&t->rng, TURN_ACTS + 1); acts > 0; acts--) {
		CHECK(act(t, &ends[wf_rng_below(&t->rng, 2)]));
	}
	unsigned came = 0;
	for (unsigned i = 0; i < 2; i++) {
		if (i != idle || chance(t, 8)) {
			const size_t before = ends[i].node->seen_count;
			CHECK(poll_end(t, &ends[i]));
			came += ends[i].node->seen_count > before ? 1 : 0;
		}
	}
	if (came == 0) {
		conf_rest(t);
	}
	return !t->failed;
}

static bool
is_over(const struct end *e)
{
	return e->posted_count == POSTED && e->lent_count == 0 &&
	       e->peer->arrived == e->posted_count;
}

static bool
send_traffic(struct conf *t, struct end ends[2])
{
	const uint64_t limit_ns = wf_now_ns(t->env) + LIMIT_NS;
	while (!is_over(&ends[0]) || !is_over(&ends[1])) {
		const unsigned idle = (unsigned)wf_rng_below(&t->rng, 4); /* 2, 3: neither */
		for (unsigned i = 0; i < TURNS_IDLE; i++) {
			CHECK(turn(t, ends, idle));
		}
		CHECK(wf_now_ns(t->env) < limit_ns);
	}
	return true;
}

static bool
open_end(struct conf *t, struct end *e, struct node *node, struct wf_conn *conn)
{
	e->node = node;
	e->conn = conn;
	e->seen = node->seen_count;
	for (unsigned i = 0; i < SOURCES; i++) {
		CHECK(add_source(t, e, &e->source[i]));
	}
	return true;
}

static void
close_end(struct conf *t, struct end *e)
{
	conf_node_close(t, e->node);
	for (unsigned i = 0; i < SOURCES; i++) {
		if (e->source[i].is_there) {
			t->env->ops->slab_close(t->env, &e->source[i].slab);
		}
	}
}

static bool
run_traffic(struct conf *t, struct end ends[2])
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	struct end *server = &ends[0];
	struct end *client = &ends[1];
	*server = (struct end){.peer = client, .has_slots = true};
	*client = (struct end){.peer = server};
	CHECK(open_end(t, server, p.server, p.sc) && open_end(t, client, p.client, p.cc));
	CHECK(conf_grant_slots(p.server, p.sc, CHUNK_BYTES, TARGETS, &client->key));
	CHECK(conf_grant_place(p.client, p.cc, 0, TARGETS * CHUNK_BYTES, &server->key));
	const bool passed = send_traffic(t, ends);
	t->poll_max = POLL_MAX;
	close_end(t, server);
	close_end(t, client);
	return passed;
}

static bool
whatever_is_allowed_arrives_whole_and_in_order(struct conf *t)
{
	struct end *ends = calloc(2, sizeof(*ends));
	CHECK(ends != NULL);
	const bool passed = run_traffic(t, ends);
	free(ends);
	return passed;
}

const struct conf_case conf_traffic_cases[] = {
	CASE(whatever_is_allowed_arrives_whole_and_in_order),
	{0},
};
