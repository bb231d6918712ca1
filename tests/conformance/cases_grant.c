/* SPDX-License-Identifier: Apache-2.0 */
/* cases_grant: C29 to C37, what a peer may touch. Thread: the case's. */
#include "tests/conformance/conformance.h"

#define GUARD 4096u    /* bytes around what is granted */
#define GRANTED 10000u /* bytes */

/* The first byte is, and each is as the one before it. In one call: a loop over 24 MB takes long
 * where each access is instrumented or emulated. */
static bool
is_zero(const uint8_t *bytes, uint64_t count)
{
	return count == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, count - 1) == 0);
}

/* `put` must take its connection down on both ends, and leave the server's memory as it was, but
 * for `bytes` from `from` on, which were granted. */
static bool
takes_down(struct conf *t, const struct pair *p, const struct wf_op *put, uint64_t from,
	   uint64_t bytes)
{
	CHECK(conf_post(p->cc, put));
	struct seen *down = conf_await(t, p->server, p->sc, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_PROTOCOL);
	down = conf_await(t, p->client, p->cc, WF_EVENT_DOWN);
	CHECK(down != NULL);
	CHECK(down->status == WEFT_PROTOCOL || down->status == WEFT_LOST);
	CHECK(is_zero(p->server->memory, from));
	CHECK(is_zero(p->server->memory + from + bytes, NODE_REGION_BYTES - from - bytes));
	CHECK(conf_count(p->client, p->cc, WF_EVENT_DONE) == 1);
	CHECK(conf_count(p->server, p->sc, WF_EVENT_PUT) == 0);
	return true;
}

struct outside {
	uint64_t offset, bytes;
};

static const struct outside outsides[] = {
	{GRANTED, 1},           {GRANTED - 1, 2},
	{0, GRANTED + 1},       {1, GRANTED},
	{UINT64_MAX, 1},        {UINT64_MAX, 2},
	{UINT64_MAX - 99, 200}, {UINT64_MAX - 4095, 4096 + 100},
	{1ull << 63, 100},      {(uint64_t)0 - GUARD, GUARD},
};

static bool
put_outside_its_place_takes_the_connection_down(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	memset(client->memory, 0x5a, 2 * GRANTED);
	for (size_t i = 0; i < sizeof(outsides) / sizeof(outsides[0]); i++) {
		struct pair p;
		struct wf_grant_key key;
		conf_forget(server);
		conf_forget(client);
		CHECK(conf_join(t, server, client, &p));
		CHECK(conf_grant_place(server, p.sc, GUARD, GRANTED, &key));
		struct wf_op put = conf_put_op(client, &key, 0, outsides[i].bytes, i);
		put.offset = outsides[i].offset;
		CHECK(takes_down(t, &p, &put, GUARD, GRANTED));
	}
	return true;
}

/* Each of these PUTs into a slot takes a connection of its own down. */
static bool
each_takes_its_connection_down(struct conf *t, const struct outside *bad, size_t count)
{
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	memset(client->memory, 0x5a, 2 * GRANTED);
	for (size_t i = 0; i < count; i++) {
		struct pair p;
		struct wf_grant_key key;
		conf_forget(server);
		conf_forget(client);
		CHECK(conf_join(t, server, client, &p));
		CHECK(conf_grant_slots(server, p.sc, GRANTED, 4, &key));
		struct wf_op put = conf_put_op(client, &key, 0, bad[i].bytes, i);
		put.offset = bad[i].offset;
		put.tag = wf_tag(1, 0);
		CHECK(takes_down(t, &p, &put, GRANTED, GRANTED));
	}
	return true;
}

static bool
put_outside_its_slot_takes_the_connection_down(struct conf *t)
{
	return each_takes_its_connection_down(t, outsides, sizeof(outsides) / sizeof(outsides[0]));
}

/* Whoever holds a slot reads it from its beginning. */
static bool
put_into_the_middle_of_a_slot_takes_the_connection_down(struct conf *t)
{
	static const struct outside within[] = {
		{1, 1}, {4, 100}, {GRANTED - 4, 4}, {64, GRANTED - 64}};
	return each_takes_its_connection_down(t, within, sizeof(within) / sizeof(within[0]));
}

static bool
put_under_an_unknown_key_takes_the_connection_down(struct conf *t)
{
	static const uint8_t fills[] = {0x00, 0x01, 0x7f, 0xff};
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	memset(client->memory, 0x5a, GRANTED);
	for (size_t i = 0; i < sizeof(fills); i++) {
		struct pair p;
		struct wf_grant_key key, unknown;
		conf_forget(server);
		conf_forget(client);
		CHECK(conf_join(t, server, client, &p));
		CHECK(conf_grant_place(server, p.sc, 0, GRANTED, &key));
		memset(&unknown, fills[i], sizeof(unknown));
		struct wf_op put = conf_put_op(client, &unknown, 0, 10, i);
		CHECK(takes_down(t, &p, &put, 0, 0));
	}
	return true;
}

static bool
key_of_another_connection_takes_the_connection_down(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	memset(client->memory, 0x5a, GRANTED);
	struct pair owner, thief;
	struct wf_grant_key owners, thiefs;
	CHECK(conf_join(t, server, client, &owner));
	CHECK(conf_join(t, server, client, &thief));
	CHECK(conf_grant_place(server, owner.sc, 0, GRANTED, &owners));
	CHECK(conf_grant_place(server, thief.sc, GRANTED, GRANTED, &thiefs));
	struct wf_op put = conf_put_op(client, &owners, 0, 10, 1);
	CHECK(takes_down(t, &thief, &put, 0, 0));
	put = conf_put_op(client, &owners, 0, 10, 2);
	CHECK(conf_post(owner.cc, &put));
	CHECK(conf_await(t, server, owner.sc, WF_EVENT_PUT) != NULL);
	return true;
}

/* Two full turns around the buffers, released in time. */
static bool
slots_cycle_through_their_buffers(struct conf *t)
{
	struct pair p;
	struct wf_grant_key key;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(conf_grant_slots(p.server, p.sc, 5000, 8, &key));
	const uint8_t *buffer[8] = {0};
	for (uint32_t slot = 0; slot < 40; slot++) {
		const uint64_t from = slot % 8 * 5000; /* a backend may lend the source itself */
		conf_fill(p.client->memory + from, 5000, slot);
		struct wf_op put = conf_put_op(p.client, &key, from, 5000, slot);
		put.tag = wf_tag(slot, slot);
		CHECK(conf_post(p.cc, &put));
		struct seen *event = conf_await(t, p.server, p.sc, WF_EVENT_PUT);
		CHECK(event != NULL && event->tag == wf_tag(slot, slot));
		CHECK(event->data != NULL && conf_is_filled(event->data, 5000, slot));
		buffer[slot % 8] = event->data;
		wf_transport_release(p.sc, slot);
		CHECK(conf_await(t, p.client, p.cc, WF_EVENT_DONE) != NULL);
	}
	CHECK(buffer[0] != buffer[1]);
	return true;
}

static bool
slot_bytes_stay_until_release(struct conf *t)
{
	struct pair p;
	struct wf_grant_key key;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(conf_grant_slots(p.server, p.sc, 60000, 16, &key));
	for (uint32_t slot = 0; slot < 16; slot++) {
		conf_fill(p.client->memory + slot * 60000, 60000, slot);
		struct wf_op put = conf_put_op(p.client, &key, slot * 60000, 60000, slot);
		put.tag = wf_tag(slot, 0);
		CHECK(conf_post_all(t, p.cc, &put));
	}
	CHECK(conf_await_count(t, p.server, p.sc, WF_EVENT_PUT, 16));
	for (uint64_t i = 0; i < 100; i++) {
		CHECK(conf_send_all(t, p.cc, i, 4000));
	}
	CHECK(conf_await_count(t, p.server, p.sc, WF_EVENT_MSG, 100));
	for (uint32_t slot = 0; slot < 16; slot++) {
		const struct seen *event = conf_nth(p.server, p.sc, WF_EVENT_PUT, slot);
		CHECK(event->tag == wf_tag(slot, 0));
		CHECK(conf_is_filled(event->data, 60000, slot));
		wf_transport_release(p.sc, slot);
	}
	return true;
}

/* Is it what the medium says of a PUT of `bytes`: that, or, where it knows of none, nothing? */
static bool
is_told(const struct conf *t, const struct seen *event, uint64_t bytes)
{
	return event != NULL && event->put_bytes == (t->says_bytes ? bytes : 0);
}

/* PUTs that are shorter than their slot, from the last bytes of the sender's memory. What is told
 * may be read; where nothing is, the slot may be as a whole. */
static bool
put_event_says_how_many_bytes_may_be_read(struct conf *t)
{
	const uint64_t sizes[] = {1, 100, 5000, 40000, 60000};
	struct pair p;
	struct wf_grant_key slots, place;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(conf_grant_slots(p.server, p.sc, 60000, 4, &slots));
	CHECK(conf_grant_place(p.client, p.cc, 0, 60000, &place));
	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const uint64_t from = NODE_REGION_BYTES - sizes[i];
		conf_fill(p.client->memory + from, sizes[i], i);
		struct wf_op put = conf_put_op(p.client, &slots, from, sizes[i], i);
		put.tag = wf_tag(i, 0);
		CHECK(conf_post(p.cc, &put));
		const struct seen *event = conf_await(t, p.server, p.sc, WF_EVENT_PUT);
		CHECK(is_told(t, event, sizes[i]) && conf_is_filled(event->data, sizes[i], i));
		const volatile uint8_t *slot = event->data;
		for (uint64_t at = 0; at < (event->put_bytes > 0 ? sizes[i] : 60000); at++) {
			(void)slot[at];
		}
		wf_transport_release(p.sc, i);
		CHECK(conf_await(t, p.client, p.cc, WF_EVENT_DONE) != NULL);
		put = conf_put_op(p.server, &place, from, sizes[i], i);
		put.offset = 60000 - sizes[i];
		CHECK(conf_post(p.sc, &put));
		CHECK(is_told(t, conf_await(t, p.client, p.cc, WF_EVENT_PUT), sizes[i]));
		CHECK(conf_await(t, p.server, p.sc, WF_EVENT_DONE) != NULL);
	}
	return true;
}

/* The sender goes without a word and uses its buffer for something else at once: who holds the slot
 * still has the bytes when it handles its DOWN. */
static bool
slot_bytes_stay_through_the_end(struct conf *t)
{
	struct pair p;
	struct wf_grant_key key;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(conf_grant_slots(p.server, p.sc, 60000, 4, &key));
	conf_fill(p.client->memory, 60000, 1);
	struct wf_op put = conf_put_op(p.client, &key, 0, 60000, 1);
	put.tag = wf_tag(1, 0);
	CHECK(conf_post(p.cc, &put));
	const struct seen *event = conf_await(t, p.server, p.sc, WF_EVENT_PUT);
	CHECK(event != NULL);
	const uint8_t *data = event->data;
	wf_transport_disconnect(p.cc, WF_DISCONNECT_NOW);
	unsigned downs = 0;
	for (int i = 0; i < 100000 && downs < 2; i++) {
		conf_poll(t, p.client);
		if (conf_count(p.client, p.cc, WF_EVENT_DOWN) == 1) {
			memset(p.client->memory, 0xee, 60000);
		}
		unsigned before = conf_count(p.server, p.sc, WF_EVENT_DOWN);
		conf_poll(t, p.server);
		unsigned after = conf_count(p.server, p.sc, WF_EVENT_DOWN);
		CHECK(before == 1 || conf_is_filled(data, 60000, 1));
		downs = after + conf_count(p.client, p.cc, WF_EVENT_DOWN);
		conf_rest(t);
	}
	CHECK(downs == 2);
	CHECK(conf_count(p.client, p.cc, WF_EVENT_DONE) == 1);
	return true;
}

static bool
slot_reused_before_release_takes_the_connection_down(struct conf *t)
{
	struct pair p;
	struct wf_grant_key key;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(conf_grant_slots(p.server, p.sc, 1000, 4, &key));
	conf_fill(p.client->memory, 1000, 1);
	struct wf_op put = conf_put_op(p.client, &key, 0, 1000, 1);
	put.tag = wf_tag(2, 0);
	CHECK(conf_post(p.cc, &put));
	CHECK(conf_await(t, p.server, p.sc, WF_EVENT_PUT) != NULL);
	put.tag = wf_tag(6, 0);
	CHECK(conf_post(p.cc, &put));
	struct seen *down = conf_await(t, p.server, p.sc, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_PROTOCOL);
	down = conf_await(t, p.client, p.cc, WF_EVENT_DOWN);
	CHECK(down != NULL);
	CHECK(down->status == WEFT_PROTOCOL || down->status == WEFT_LOST);
	CHECK(conf_count(p.server, p.sc, WF_EVENT_PUT) == 1);
	return true;
}

static bool
put_over_the_limit_takes_the_connection_down(struct conf *t)
{
	struct wf_transport_opts opts = {.put_bytes_max = 5000};
	struct node *server = conf_server(t, &opts);
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	struct pair p;
	struct wf_grant_key key;
	CHECK(conf_join(t, server, client, &p));
	CHECK(conf_grant_place(server, p.sc, 0, GRANTED, &key));
	struct wf_op put = conf_put_op(client, &key, 0, 5000, 0);
	CHECK(conf_post(p.cc, &put));
	CHECK(conf_await(t, server, p.sc, WF_EVENT_PUT) != NULL);
	put = conf_put_op(client, &key, 0, 5001, 1);
	CHECK(conf_post(p.cc, &put));
	struct seen *down = conf_await(t, server, p.sc, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_PROTOCOL);
	CHECK(conf_await(t, client, p.cc, WF_EVENT_DOWN) != NULL);
	CHECK(conf_count(server, p.sc, WF_EVENT_PUT) == 1);
	return true;
}

static bool
grants_die_with_down(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	memset(client->memory, 0x5a, GRANTED);
	struct pair p;
	struct wf_grant_key old, fresh;
	CHECK(conf_join(t, server, client, &p));
	CHECK(conf_grant_place(server, p.sc, 0, GRANTED, &old));
	wf_transport_disconnect(p.cc, WF_DISCONNECT_NOW);
	CHECK(conf_await(t, server, p.sc, WF_EVENT_DOWN) != NULL);
	CHECK(conf_await(t, client, p.cc, WF_EVENT_DOWN) != NULL);
	conf_settle(t);
	conf_forget(server);
	conf_forget(client);
	CHECK(conf_join(t, server, client, &p));
	CHECK(conf_grant_place(server, p.sc, 0, GRANTED, &fresh));
	struct wf_op put = conf_put_op(client, &old, 0, 100, 1);
	CHECK(takes_down(t, &p, &put, 0, 0));
	return true;
}

static bool
one_end_grants_places_or_slots(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	struct pair p;
	struct wf_grant_key key;
	CHECK(conf_join(t, server, client, &p));
	CHECK(conf_grant_place(server, p.sc, 0, 100, &key));
	CHECK(!conf_grant_slots(server, p.sc, 100, 4, &key));
	CHECK(conf_grant_place(server, p.sc, 0, 100, &key));
	CHECK(conf_grant_slots(client, p.cc, 100, 4, &key));
	CHECK(!conf_grant_slots(client, p.cc, 100, 4, &key));
	CHECK(!conf_grant_place(client, p.cc, 1000, 4, &key));
	return true;
}

static bool
grants_outside_their_region_are_invalid(struct conf *t)
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	struct wf_grant_key key;
	const uint64_t end = NODE_REGION_BYTES;
	CHECK(!conf_grant_place(p.server, p.sc, end, 1, &key));
	CHECK(!conf_grant_place(p.server, p.sc, 0, end + 1, &key));
	CHECK(!conf_grant_place(p.server, p.sc, 1, end, &key));
	CHECK(!conf_grant_place(p.server, p.sc, UINT64_MAX, 2, &key));
	CHECK(!conf_grant_place(p.server, p.sc, 2, UINT64_MAX, &key));
	CHECK(!conf_grant_place(p.server, p.sc, 0, 0, &key));
	CHECK(!conf_grant_slots(p.server, p.sc, 100, 0, &key));
	CHECK(!conf_grant_slots(p.server, p.sc, 100, 3, &key));
	CHECK(!conf_grant_slots(p.server, p.sc, 100, 2 * WF_SLOT_COUNT_MAX, &key));
	CHECK(!conf_grant_slots(p.server, p.sc, end / 4 + 1, 4, &key));
	CHECK(!conf_grant_slots(p.server, p.sc, UINT64_MAX / 2 + 1, 2, &key));
	struct wf_grant grant = {
		.kind = WF_GRANT_PLACE, .region = p.server->region + 1, .bytes = 1};
	CHECK(wf_transport_grant(p.sc, &grant, &key) == WEFT_INVALID);
	CHECK(conf_grant_slots(p.server, p.sc, end / WF_SLOT_COUNT_MAX, WF_SLOT_COUNT_MAX, &key));
	return true;
}

static bool
connection_bears_many_grants(struct conf *t)
{
	enum { COUNT = 64 };
	static struct wf_grant_key key[COUNT];
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	for (uint64_t i = 0; i < COUNT; i++) {
		CHECK(conf_grant_place(p.server, p.sc, i * 1000, 1000, &key[i]));
	}
	for (uint64_t i = COUNT; i-- > 0;) {
		conf_fill(p.client->memory + i * 1000, 1000, i);
		struct wf_op put = conf_put_op(p.client, &key[i], i * 1000, 1000, i);
		CHECK(conf_post_all(t, p.cc, &put));
	}
	CHECK(conf_await_count(t, p.server, p.sc, WF_EVENT_PUT, COUNT));
	for (uint64_t i = 0; i < COUNT; i++) {
		CHECK(conf_is_filled(p.server->memory + i * 1000, 1000, i));
	}
	enum weft_status st = WEFT_OK;
	for (int i = 0; i < 100000 && st == WEFT_OK; i++) {
		struct wf_grant grant = {
			.kind = WF_GRANT_PLACE, .region = p.server->region, .bytes = 1};
		st = wf_transport_grant(p.sc, &grant, &key[0]);
	}
	CHECK(st == WEFT_NOMEM);
	return true;
}

const struct conf_case conf_grant_cases[] = {
	CASE(put_outside_its_place_takes_the_connection_down),
	CASE(put_outside_its_slot_takes_the_connection_down),
	CASE(put_into_the_middle_of_a_slot_takes_the_connection_down),
	CASE(put_under_an_unknown_key_takes_the_connection_down),
	CASE(key_of_another_connection_takes_the_connection_down),
	CASE(slots_cycle_through_their_buffers),
	CASE(slot_bytes_stay_until_release),
	CASE(slot_bytes_stay_through_the_end),
	CASE(put_event_says_how_many_bytes_may_be_read),
	CASE(slot_reused_before_release_takes_the_connection_down),
	CASE(put_over_the_limit_takes_the_connection_down),
	CASE(grants_die_with_down),
	CASE(one_end_grants_places_or_slots),
	CASE(grants_outside_their_region_are_invalid),
	CASE(connection_bears_many_grants),
	{0},
};
