/* SPDX-License-Identifier: Apache-2.0 */
/* cases_op: C13 to C20, which operations post accepts and how they complete. Thread: the case's. */
#include "tests/conformance/conformance.h"

/* Nobody polls meanwhile, so nothing can be DONE. */
static bool
full_queue_says_again_and_recovers(struct conf *t)
{
	struct wf_transport_opts opts = {.op_max = 8};
	struct pair p;
	CHECK(conf_pair(t, &opts, &p));
	unsigned taken_all = 0;
	enum weft_status st = WEFT_OK;
	while (st == WEFT_OK && taken_all < 100) {
		st = conf_send(p.cc, taken_all, 3000);
		taken_all += st == WEFT_OK ? 1 : 0;
	}
	CHECK(st == WEFT_AGAIN && taken_all >= 1 && taken_all <= 8);
	uint8_t body[8] = {0};
	struct wf_head head = {.service = WF_SERVICE_CONTROL};
	struct wf_op ops[20];
	for (unsigned i = 0; i < 20; i++) {
		ops[i] = (struct wf_op){
			.kind = WF_OP_SEND, .cookie = 1000 + i, .head = &head, .body = body};
		ops[i].body_bytes = sizeof(body);
	}
	CHECK(conf_await_count(t, p.client, p.cc, WF_EVENT_DONE, taken_all));
	unsigned taken = 99;
	CHECK(wf_transport_post(p.cc, ops, 20, &taken) == WEFT_AGAIN);
	CHECK(taken >= 1 && taken <= 8);
	CHECK(conf_await_count(t, p.client, p.cc, WF_EVENT_DONE, taken_all + taken));
	CHECK(conf_await_count(t, p.server, p.sc, WF_EVENT_MSG, taken_all + taken));
	for (uint64_t i = 0; i < 50; i++) {
		CHECK(conf_send_all(t, p.cc, i, 100));
	}
	CHECK(conf_await_count(t, p.server, p.sc, WF_EVENT_MSG, taken_all + taken + 50));
	struct wf_transport_info info;
	wf_transport_query(p.client->transport, &info);
	CHECK(info.posts_again >= 2);
	return true;
}

static bool
message_is_copied_when_taken(struct conf *t)
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	uint8_t body[500];
	conf_fill(body, sizeof(body), 9);
	struct wf_head head = {.service = WF_SERVICE_DENSE, .type = 7, .request_id = 9};
	struct wf_op op = {
		.kind = WF_OP_SEND, .head = &head, .body = body, .body_bytes = sizeof(body)};
	CHECK(conf_post(p.cc, &op));
	memset(body, 0xee, sizeof(body));
	memset(&head, 0xee, sizeof(head));
	memset(&op, 0xee, sizeof(op));
	CHECK(conf_is_message(conf_await(t, p.server, p.sc, WF_EVENT_MSG), 9, 500));
	return true;
}

static bool
put_source_is_free_after_done(struct conf *t)
{
	struct pair p;
	struct wf_grant_key key;
	const uint64_t bytes = 600000;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(conf_grant_place(p.server, p.sc, 0, bytes, &key));
	conf_fill(p.client->memory, bytes, 4);
	struct wf_op put = conf_put_op(p.client, &key, 0, bytes, 77);
	CHECK(conf_post(p.cc, &put));
	struct seen *done = conf_await(t, p.client, p.cc, WF_EVENT_DONE);
	CHECK(done != NULL && done->cookie == 77 && done->status == WEFT_OK);
	memset(p.client->memory, 0xee, bytes);
	CHECK(conf_await(t, p.server, p.sc, WF_EVENT_PUT) != NULL);
	CHECK(conf_is_filled(p.server->memory, bytes, 4));
	return true;
}

/* PUTs of many sizes, some of which may be copied; the sources of those that are copied are
 * overwritten at once. All arrive, and there is a DONE of each of the others. */
static bool
put_source_is_free_where_it_was_copied(struct conf *t)
{
	enum { PUTS = 200, BYTES_MAX = 6000 };
	struct pair p;
	struct wf_grant_key key;
	unsigned lent = 0;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(conf_grant_place(p.server, p.sc, 0, PUTS * BYTES_MAX, &key));
	uint64_t size[PUTS];
	for (unsigned i = 0; i < PUTS; i++) {
		size[i] = 1 + wf_rng_below(&t->rng, i % 2 == 0 ? 256 : BYTES_MAX);
		conf_fill(p.client->memory + i * BYTES_MAX, size[i], i);
		bool copied = false;
		struct wf_op put = conf_put_op(p.client, &key, i * BYTES_MAX, size[i], i);
		put.offset = i * BYTES_MAX;
		put.copied = i % 5 == 0 ? NULL : &copied;
		CHECK(conf_post_all(t, p.cc, &put));
		lent += copied ? 0 : 1;
		if (copied) {
			memset(p.client->memory + i * BYTES_MAX, 0xee, size[i]);
		}
	}
	CHECK(lent >= PUTS / 5);
	CHECK(conf_await_count(t, p.server, p.sc, WF_EVENT_PUT, PUTS));
	CHECK(conf_await_count(t, p.client, p.cc, WF_EVENT_DONE, lent));
	conf_settle(t);
	CHECK(conf_count(p.client, p.cc, WF_EVENT_DONE) == lent);
	for (unsigned i = 0; i < PUTS; i++) {
		CHECK(conf_is_filled(p.server->memory + i * BYTES_MAX, size[i], i));
	}
	return true;
}

/* Nor when the connection ends before they are on their way. */
static bool
copied_puts_get_no_done(struct conf *t)
{
	struct pair p;
	struct wf_grant_key key;
	unsigned lent = 0;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(conf_grant_place(p.server, p.sc, 0, 16u << 20, &key));
	for (unsigned i = 0; i < 20; i++) {
		bool copied = false;
		uint64_t bytes = i % 2 == 0 ? 64 : 16u << 20;
		struct wf_op put = conf_put_op(p.client, &key, 0, bytes, lent);
		put.copied = &copied;
		CHECK(conf_post(p.cc, &put));
		lent += copied ? 0 : 1;
	}
	conf_poll(t, p.client);
	wf_transport_disconnect(p.cc, WF_DISCONNECT_NOW);
	CHECK(conf_await(t, p.client, p.cc, WF_EVENT_DOWN) != NULL);
	CHECK(conf_is_done_once(p.client, p.cc, lent));
	CHECK(p.client->seen[p.client->seen_count - 1].kind == WF_EVENT_DOWN);
	return true;
}

/* Posts PUTs that may be copied, some at a time, until not all are taken. Returns how many were. */
static unsigned
post_copied_until_again(const struct pair *p, const struct wf_grant_key *key, unsigned most,
			unsigned *lent)
{
	enum { TOGETHER = 4, BYTES = 256 };
	unsigned posted = 0, taken = TOGETHER;
	while (taken == TOGETHER && posted < most) {
		struct wf_op op[TOGETHER];
		bool copied[TOGETHER] = {false};
		for (unsigned i = 0; i < TOGETHER; i++) {
			op[i] = conf_put_op(p->client, key, 0, BYTES, 0);
			op[i].copied = &copied[i];
		}
		(void)!wf_transport_post(p->cc, op, TOGETHER, &taken);
		for (unsigned i = 0; i < taken; i++) {
			*lent += copied[i] ? 0 : 1;
		}
		posted += taken;
	}
	return posted;
}

/* While nobody polls, the queue fills up with PUTs that may be copied. However many of them were,
 * a post that does not take all promises a DONE. */
static bool
full_queue_of_copied_puts_recovers(struct conf *t)
{
	enum { PUTS_MAX = 200000, ROUNDS = 100 };
	const struct wf_transport_opts opts = {.op_max = 8};
	struct pair p;
	struct wf_grant_key key;
	unsigned posted = 0, lent = 0;
	CHECK(conf_pair(t, &opts, &p));
	CHECK(conf_grant_place(p.server, p.sc, 0, 256, &key));
	for (unsigned round = 0; round < ROUNDS && posted < PUTS_MAX; round++) {
		posted += post_copied_until_again(&p, &key, PUTS_MAX, &lent);
		CHECK(posted >= PUTS_MAX || conf_count(p.client, p.cc, WF_EVENT_DONE) < lent);
		CHECK(conf_await_count(t, p.client, p.cc, WF_EVENT_DONE, lent));
	}
	CHECK(conf_await_count(t, p.server, p.sc, WF_EVENT_PUT, posted));
	conf_settle(t);
	CHECK(conf_count(p.client, p.cc, WF_EVENT_DONE) == lent);
	return true;
}

static bool
every_operation_taken_is_done_once(struct conf *t)
{
	struct pair p;
	struct wf_grant_key key;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(conf_grant_place(p.server, p.sc, 0, 1 << 20, &key));
	unsigned count = 0;
	for (int i = 0; i < 300; i++, count++) {
		if (wf_rng_below(&t->rng, 2) == 0) {
			size_t bytes = (size_t)wf_rng_below(&t->rng, 4033);
			CHECK(conf_send_all(t, p.cc, count, bytes));
		} else {
			uint64_t bytes = 1 + wf_rng_below(&t->rng, 50000);
			struct wf_op put = conf_put_op(p.client, &key, 0, bytes, count);
			CHECK(conf_post_all(t, p.cc, &put));
		}
	}
	CHECK(conf_await_count(t, p.client, p.cc, WF_EVENT_DONE, count));
	/* A single one, with nothing behind it. */
	CHECK(conf_send(p.cc, count++, 1) == WEFT_OK);
	CHECK(conf_await_count(t, p.client, p.cc, WF_EVENT_DONE, count));
	conf_settle(t);
	CHECK(conf_is_done_once(p.client, p.cc, count));
	for (unsigned i = 0; i < count; i++) {
		CHECK(conf_nth(p.client, p.cc, WF_EVENT_DONE, i)->status == WEFT_OK);
	}
	return true;
}

static bool
operations_cut_off_by_down_are_done_before_it(struct conf *t)
{
	struct pair p;
	struct wf_grant_key key;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(conf_grant_place(p.server, p.sc, 0, 16u << 20, &key));
	for (unsigned i = 0; i < 20; i++) {
		struct wf_op put = conf_put_op(p.client, &key, 0, 16u << 20, i);
		CHECK(conf_post(p.cc, &put));
	}
	conf_poll(t, p.client);
	wf_transport_disconnect(p.cc, WF_DISCONNECT_NOW);
	struct seen *down = conf_await(t, p.client, p.cc, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_CLOSED);
	CHECK(conf_is_done_once(p.client, p.cc, 20));
	unsigned lost = 0;
	for (unsigned i = 0; i < 20; i++) {
		const struct seen *done = conf_nth(p.client, p.cc, WF_EVENT_DONE, i);
		CHECK(done->status == WEFT_OK || done->status == WEFT_LOST);
		lost += done->status == WEFT_LOST ? 1 : 0;
	}
	CHECK(lost > 0);
	CHECK(p.client->seen[p.client->seen_count - 1].kind == WF_EVENT_DOWN);
	return true;
}

static bool
is_invalid(struct wf_conn *conn, const struct wf_op *op)
{
	unsigned taken = 99;
	return wf_transport_post(conn, op, 1, &taken) == WEFT_INVALID && taken == 0;
}

static bool
bad_messages_are_invalid(const struct pair *p)
{
	static const uint8_t body[WF_MSG_BODY_MAX + 1];
	struct wf_head head = {.service = WF_SERVICE_CONTROL};
	const struct wf_op good = {.kind = WF_OP_SEND, .head = &head, .body = body};
	struct wf_op op = good;
	op.head = NULL;
	CHECK(is_invalid(p->cc, &op));
	op = good;
	op.body_bytes = sizeof(body);
	CHECK(is_invalid(p->cc, &op));
	op.body = NULL;
	op.body_bytes = 1;
	CHECK(is_invalid(p->cc, &op));
	op = good;
	head.service = WF_SERVICE_TRANSPORT;
	CHECK(is_invalid(p->cc, &op));
	head.service = WF_SERVICE_CONTROL;
	head.flags = 0x80;
	CHECK(is_invalid(p->cc, &op));
	return true;
}

static bool
bad_puts_are_invalid(const struct pair *p, const struct wf_grant_key *key)
{
	const struct wf_op good = conf_put_op(p->client, key, 0, 100, 1);
	struct wf_op op = good;
	op.bytes = 0;
	CHECK(is_invalid(p->cc, &op));
	op = good;
	op.src = NULL;
	CHECK(is_invalid(p->cc, &op));
	op = good;
	op.region = p->client->region + 1;
	CHECK(is_invalid(p->cc, &op));
	op = good;
	op.src = p->client->memory + NODE_REGION_BYTES - 99;
	CHECK(is_invalid(p->cc, &op));
	op.bytes = UINT64_MAX;
	CHECK(is_invalid(p->cc, &op));
	op = good;
	op.src = p->client->memory - 1;
	CHECK(is_invalid(p->cc, &op));
	return true;
}

static bool
operations_against_the_rules_are_invalid(struct conf *t)
{
	struct pair p;
	struct wf_grant_key key;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(conf_grant_place(p.server, p.sc, 0, 100, &key));
	CHECK(bad_messages_are_invalid(&p));
	CHECK(bad_puts_are_invalid(&p, &key));
	struct wf_head head = {.service = WF_SERVICE_CONTROL};
	struct wf_op ops[4];
	for (unsigned i = 0; i < 4; i++) {
		ops[i] = (struct wf_op){.kind = WF_OP_SEND, .cookie = i, .head = &head};
	}
	ops[2].head = NULL;
	enum weft_status st = WEFT_AGAIN;
	unsigned taken = 0;
	for (int i = 0; i < 100 && st == WEFT_AGAIN; i++) {
		unsigned more = 99;
		st = wf_transport_post(p.cc, ops + taken, 4 - taken, &more);
		taken += more;
	}
	CHECK(st == WEFT_INVALID && taken == 2);
	CHECK(conf_await_count(t, p.server, p.sc, WF_EVENT_MSG, 2));
	CHECK(conf_await_count(t, p.client, p.cc, WF_EVENT_DONE, 2));
	conf_settle(t);
	CHECK(conf_count(p.server, p.sc, WF_EVENT_MSG) == 2);
	CHECK(conf_count(p.client, p.cc, WF_EVENT_DONE) == 2);
	return true;
}

static bool
post_after_disconnect_is_closed(struct conf *t)
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	wf_transport_disconnect(p.cc, WF_DISCONNECT_DRAIN);
	CHECK(conf_send(p.cc, 1, 10) == WEFT_CLOSED);
	wf_transport_disconnect(p.sc, WF_DISCONNECT_NOW);
	unsigned taken = 99;
	struct wf_head head = {.service = WF_SERVICE_CONTROL};
	struct wf_op op = {.kind = WF_OP_SEND, .head = &head};
	CHECK(wf_transport_post(p.sc, &op, 1, &taken) == WEFT_CLOSED);
	CHECK(taken == 0);
	return true;
}

static bool
grant_after_disconnect_is_closed(struct conf *t)
{
	struct pair p;
	struct wf_grant_key key;
	CHECK(conf_pair(t, NULL, &p));
	const struct wf_grant to_client = {
		.kind = WF_GRANT_PLACE, .region = p.client->region, .bytes = 64};
	const struct wf_grant to_server = {
		.kind = WF_GRANT_PLACE, .region = p.server->region, .bytes = 64};
	wf_transport_disconnect(p.cc, WF_DISCONNECT_DRAIN);
	CHECK(wf_transport_grant(p.cc, &to_client, &key) == WEFT_CLOSED);
	wf_transport_disconnect(p.sc, WF_DISCONNECT_NOW);
	CHECK(wf_transport_grant(p.sc, &to_server, &key) == WEFT_CLOSED);
	return true;
}

const struct conf_case conf_op_cases[] = {
	CASE(full_queue_says_again_and_recovers),
	CASE(message_is_copied_when_taken),
	CASE(put_source_is_free_after_done),
	CASE(put_source_is_free_where_it_was_copied),
	CASE(copied_puts_get_no_done),
	CASE(full_queue_of_copied_puts_recovers),
	CASE(every_operation_taken_is_done_once),
	CASE(operations_cut_off_by_down_are_done_before_it),
	CASE(operations_against_the_rules_are_invalid),
	CASE(post_after_disconnect_is_closed),
	CASE(grant_after_disconnect_is_closed),
	{0},
};
