/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that send what transport/paths never sends: garbage, tickets of others, tickets twice. One
 * thread. */
#include "tests/unit/paths/paths_rig.h"

/* A node that speaks without path heads. */
static struct node *
raw_node(struct conf *t, const char *backend)
{
	const char *usual = t->transport;
	const struct wf_transport_opts opts = {.blob_max = WF_BLOB_ROOM};
	t->transport = backend;
	struct node *n = conf_node(t, &opts);
	t->transport = usual;
	return n;
}

static struct wf_conn *
say(struct node *n, const struct wf_host *to, const void *blob, size_t bytes)
{
	struct wf_conn *conn = NULL;
	return wf_transport_connect(n->transport, to, blob, bytes, NULL, &conn) == WEFT_OK ? conn
											   : NULL;
}

/* Refused by the path, not by the user, with that text; and counted. */
static bool
is_turned_away(struct conf *t, struct node *server, struct node *raw, struct wf_conn *conn,
	       const char *why)
{
	static uint64_t counted;
	struct wf_path_head head;
	struct wf_transport_info info;
	size_t used = 0;
	wf_transport_query(server->transport, &info);
	counted = info.strangers_refused;
	struct seen *down = conf_await(t, raw, conn, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_REFUSED);
	CHECK(wf_path_decode(down->bytes, down->byte_count, &head, &used) == WEFT_OK);
	CHECK(head.kind == WF_PATH_NO && strstr(head.text, why) != NULL);
	conf_settle(t);
	wf_transport_query(server->transport, &info);
	CHECK(info.strangers_refused == 1 + counted && strstr(info.last_stranger, why) != NULL);
	return true;
}

static bool
say_garbage(struct conf *t)
{
	struct pair good;
	uint8_t blob[WF_BLOB_ROOM];
	CHECK(conf_pair(t, NULL, &good));
	struct node *raw = raw_node(t, "sim");
	CHECK(raw != NULL);
	CHECK(is_turned_away(t, good.server, raw, say(raw, &good.server->at, NULL, 0),
			     "ends early"));
	memset(blob, 'x', sizeof(blob));
	CHECK(is_turned_away(t, good.server, raw, say(raw, &good.server->at, blob, sizeof(blob)),
			     "magic"));
	struct wf_path_head head = {.kind = WF_PATH_HERE};
	size_t used = wf_path_encode(&head, blob);
	CHECK(is_turned_away(t, good.server, raw, say(raw, &good.server->at, blob, used),
			     "a hello of kind 3"));
	head.kind = WF_PATH_HELLO;
	used = wf_path_encode(&head, blob);
	blob[40] = 1; /* of auth */
	CHECK(is_turned_away(t, good.server, raw, say(raw, &good.server->at, blob, used),
			     "not sealed"));
	CHECK(conf_count(good.server, NULL, WF_EVENT_UP) == 1);
	CHECK(conf_send_all(t, good.cc, 1, 100));
	CHECK(conf_is_message(conf_await(t, good.server, good.sc, WF_EVENT_MSG), 1, 100));
	return true;
}

static void
garbage_is_refused_and_counted(void **state)
{
	(void)state;
	run_on("paths-sim-auto", say_garbage);
}

/* Say hello as transport/paths would, for an offer that is not waited for. */
static struct wf_conn *
ask_for_offer(struct node *raw, struct node *server, const char *user)
{
	uint8_t blob[WF_BLOB_ROOM];
	struct wf_path_head head = {.kind = WF_PATH_HELLO, .paths = 1u << WF_PATH_OTHER};
	size_t used = wf_path_encode(&head, blob);
	memcpy(blob + used, user, 4);
	return say(raw, &server->at, blob, used + 4);
}

/* The same, and take what is offered. */
static bool
get_offer(struct conf *t, struct node *raw, struct node *server, struct wf_path_head *out)
{
	size_t used = 0;
	struct seen *up = conf_await(t, raw, ask_for_offer(raw, server, "user"), WF_EVENT_UP);
	CHECK(up != NULL);
	CHECK(wf_path_decode(up->bytes, up->byte_count, out, &used) == WEFT_OK);
	CHECK(out->kind == WF_PATH_UPGRADE && out->offer_count == 1);
	CHECK(out->offer[0].path == WF_PATH_OTHER && out->offer[0].port != 0);
	return true;
}

static struct wf_conn *
show_ticket(struct node *raw, struct node *server, const struct wf_path_head *offer,
	    const uint8_t *ticket)
{
	uint8_t blob[WF_BLOB_ROOM];
	struct wf_path_head head = {.kind = WF_PATH_TICKET, .path = WF_PATH_OTHER};
	struct wf_host to = server->at;
	memcpy(head.id, ticket, sizeof(head.id));
	to.port = offer->offer[0].port;
	return say(raw, &to, blob, wf_path_encode(&head, blob));
}

/* A server, and somebody who speaks without path heads on both of its paths, with an offer. */
struct offered {
	struct node *server, *boot, *fast;
	struct wf_path_head offer;
};

static bool
be_offered(struct conf *t, const struct wf_transport_opts *opts, struct offered *out)
{
	out->server = conf_server(t, opts);
	out->boot = raw_node(t, "sim");
	out->fast = raw_node(t, "sim2");
	CHECK(out->server != NULL && out->boot != NULL && out->fast != NULL);
	return get_offer(t, out->boot, out->server, &out->offer);
}

static struct wf_conn *
come(const struct offered *o)
{
	return show_ticket(o->fast, o->server, &o->offer, o->offer.id);
}

static bool
use_tickets(struct conf *t)
{
	struct offered o;
	uint8_t wrong[WF_PATH_ID_BYTES];
	CHECK(be_offered(t, NULL, &o));
	CHECK(conf_count(o.server, NULL, WF_EVENT_UP) == 0);
	memcpy(wrong, o.offer.id, sizeof(wrong));
	wrong[7] ^= 1;
	CHECK(is_turned_away(t, o.server, o.fast, show_ticket(o.fast, o.server, &o.offer, wrong),
			     "its ticket is unknown"));
	memset(wrong, 0, sizeof(wrong));
	CHECK(is_turned_away(t, o.server, o.fast, show_ticket(o.fast, o.server, &o.offer, wrong),
			     "its ticket is unknown"));
	struct wf_conn *conn = come(&o);
	struct seen *up = conf_await(t, o.server, NULL, WF_EVENT_UP);
	CHECK(up != NULL && up->incoming && up->byte_count == 4 &&
	      memcmp(up->bytes, "user", 4) == 0);
	CHECK(wf_transport_answer(up->conn, true, "yes", 3) == WEFT_OK);
	CHECK(conf_await(t, o.fast, conn, WF_EVENT_UP) != NULL);
	CHECK(is_turned_away(t, o.server, o.fast, come(&o), "its ticket is unknown"));
	return true;
}

static void
a_ticket_is_good_once_and_no_other_is(void **state)
{
	(void)state;
	run_on("paths-sim-auto", use_tickets);
}

static bool
end_before_ticket(struct conf *t)
{
	struct offered o;
	CHECK(be_offered(t, NULL, &o));
	conf_node_close(t, o.boot); /* the bootstrap goes */
	conf_settle(t);
	CHECK(is_turned_away(t, o.server, o.fast, come(&o), "its ticket is unknown"));
	CHECK(conf_count(o.server, NULL, WF_EVENT_UP) == 0 &&
	      conf_count(o.server, NULL, WF_EVENT_DOWN) == 0);
	return true;
}

static void
a_ticket_dies_with_its_bootstrap(void **state)
{
	(void)state;
	run_on("paths-sim-auto", end_before_ticket);
}

/* Nobody shows the ticket: the attempt is forgotten, and nobody above has heard of it. */
static bool
wait_for_ticket(struct conf *t)
{
	const struct wf_transport_opts hasty = {.handshake_timeout_ns = 20 * WF_NS_PER_MS,
						.conn_max = 1};
	struct node *server = conf_server(t, &hasty);
	struct node *boot = raw_node(t, "sim");
	struct node *client = conf_node(t, NULL);
	struct wf_path_head offer;
	struct pair p;
	CHECK(server != NULL && boot != NULL && client != NULL);
	CHECK(get_offer(t, boot, server, &offer));
	CHECK(conf_await(t, boot, NULL, WF_EVENT_DOWN) != NULL);
	CHECK(server->seen_count == 0);
	CHECK(conf_join(t, server, client, &p)); /* it has the only place */
	return true;
}

static void
a_ticket_that_nobody_shows_expires(void **state)
{
	(void)state;
	run_on("paths-sim-auto", wait_for_ticket);
}

static bool
knows_a_user(void *arg, const uint8_t *hello, size_t bytes)
{
	return bytes == 4 && memcmp(hello, arg, 4) == 0;
}

/* Many take an offer and never come; who is known keeps what it was offered, and who is not takes
 * nobody's place that has come. */
static bool
take_offers_and_stay_away(struct conf *t)
{
	char user[] = "user";
	const struct wf_transport_opts few = {
		.conn_max = 2, .newcomer_max = 3, .knows = knows_a_user, .knows_arg = user};
	struct offered o;
	struct wf_transport_info info;
	struct pair p;
	CHECK(be_offered(t, &few, &o)); /* it says "user" */
	struct node *client = conf_node(t, NULL);
	CHECK(client != NULL);
	for (unsigned i = 0; i < 40; i++) {
		CHECK(ask_for_offer(o.boot, o.server, "none") != NULL);
		conf_settle(t);
	}
	wf_transport_query(o.server->transport, &info);
	CHECK(info.strangers_refused == 38);
	CHECK(strstr(info.last_stranger, "no room") != NULL);
	CHECK(conf_join(t, o.server, client, &p));
	CHECK(come(&o) != NULL);
	CHECK(conf_await_count(t, o.server, NULL, WF_EVENT_UP, 2));
	return true;
}

static void
who_takes_an_offer_and_stays_away_keeps_nobody_out(void **state)
{
	(void)state;
	run_on("paths-sim-auto", take_offers_and_stay_away);
}

/* The path's own end takes 2 s here, as it may where the peer puts it off. */
static bool
refuse_on_path(struct conf *t)
{
	struct offered o;
	CHECK(be_offered(t, NULL, &o));
	struct wf_conn *conn = come(&o);
	struct seen *up = conf_await(t, o.server, NULL, WF_EVENT_UP);
	CHECK(up != NULL && wf_transport_answer(up->conn, false, "no", 2) == WEFT_OK);
	CHECK(conf_await(t, o.boot, NULL, WF_EVENT_DOWN) != NULL);
	CHECK(conf_count(o.server, NULL, WF_EVENT_DOWN) == 0);
	struct seen *down = conf_await(t, o.fast, conn, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_REFUSED);
	return conf_await(t, o.server, NULL, WF_EVENT_DOWN) != NULL;
}

static void
bootstrap_of_who_is_refused_on_a_path_ends_at_once(void **state)
{
	(void)state;
	run_on("paths-sim,fault(delay@down:1:2s)+sim2", refuse_on_path);
}

/* Two were offered a path while there was room for one. */
static bool
come_second(struct conf *t)
{
	const struct wf_transport_opts one = {.conn_max = 1};
	struct offered o;
	struct wf_path_head second;
	struct wf_path_head no;
	size_t used = 0;
	CHECK(be_offered(t, &one, &o) && get_offer(t, o.boot, o.server, &second));
	CHECK(come(&o) != NULL);
	CHECK(conf_await(t, o.server, NULL, WF_EVENT_UP) != NULL);
	struct wf_conn *late = show_ticket(o.fast, o.server, &second, second.id);
	struct seen *down = conf_await(t, o.fast, late, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_REFUSED);
	CHECK(wf_path_decode(down->bytes, down->byte_count, &no, &used) == WEFT_OK);
	CHECK(no.kind == WF_PATH_NO && no.reason == WF_PATH_FULL);
	CHECK(strstr(no.text, "no room beside 1 connections") != NULL);
	return true;
}

static void
whose_ticket_finds_no_room_is_told_so(void **state)
{
	(void)state;
	run_on("paths-sim-auto", come_second);
}

/* A node that listens without path heads. */
static bool
listen_raw(struct conf *t, struct node *raw)
{
	snprintf(raw->at.name, sizeof(raw->at.name), "%s", t->host);
	return wf_transport_listen(raw->transport, &raw->at, &raw->at.port) == WEFT_OK;
}

static bool
answer_with(struct wf_conn *conn, bool accept, const struct wf_path_head *head)
{
	uint8_t blob[WF_BLOB_ROOM];
	size_t used = wf_path_encode(head, blob);
	return wf_transport_answer(conn, accept, blob, used) == WEFT_OK;
}

/* The ticket is refused for want of room, and the bootstrap stays: nobody goes there once more, for
 * there is none on it either. */
static bool
have_no_room(struct conf *t)
{
	struct node *boot = raw_node(t, "sim");
	struct node *fast = raw_node(t, "sim2");
	struct node *client = conf_node(t, NULL);
	struct wf_conn *conn = NULL;
	CHECK(boot != NULL && fast != NULL && client != NULL);
	CHECK(listen_raw(t, boot) && listen_raw(t, fast));
	CHECK(wf_transport_connect(client->transport, &boot->at, "hi", 2, NULL, &conn) == WEFT_OK);
	struct seen *up = conf_await(t, boot, NULL, WF_EVENT_UP);
	const struct wf_path_head offer = {
		.kind = WF_PATH_UPGRADE,
		.offer_count = 1,
		.offer[0] = {.path = WF_PATH_OTHER, .port = fast->at.port},
	};
	CHECK(up != NULL && answer_with(up->conn, true, &offer));
	up = conf_await(t, fast, NULL, WF_EVENT_UP);
	const struct wf_path_head full = {
		.kind = WF_PATH_NO, .reason = WF_PATH_FULL, .text = "no room beside 7 connections"};
	CHECK(up != NULL && answer_with(up->conn, false, &full));
	CHECK(ended_with(conf_await(t, client, conn, WF_EVENT_DOWN), WEFT_UNAVAILABLE,
			 "no room beside 7 connections"));
	conf_settle(t);
	return conf_count(boot, NULL, WF_EVENT_UP) == 1;
}

static void
who_is_told_that_there_is_no_room_asks_no_other_path(void **state)
{
	(void)state;
	run_on("paths-sim-auto", have_no_room);
}

static bool
speak_on_bootstrap(struct conf *t)
{
	struct offered o;
	CHECK(be_offered(t, NULL, &o));
	(void)come(&o);
	struct seen *up = conf_await(t, o.server, NULL, WF_EVENT_UP);
	CHECK(up != NULL && wf_transport_answer(up->conn, true, NULL, 0) == WEFT_OK);
	struct seen *here = conf_nth(o.boot, NULL, WF_EVENT_UP, 0);
	CHECK(here != NULL && conf_send_all(t, here->conn, 1, 10));
	CHECK(ended_with(conf_await(t, o.server, up->conn, WF_EVENT_DOWN), WEFT_PROTOCOL,
			 "nothing to say"));
	return true;
}

static void
who_speaks_on_a_bootstrap_that_carries_nothing_is_taken_down(void **state)
{
	(void)state;
	run_on("paths-sim-auto", speak_on_bootstrap);
}

/* Another host's id, and one that is unknown: memory is not offered. */
static bool
say_other_hosts(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	struct node *raw = raw_node(t, "tcp");
	CHECK(server != NULL && raw != NULL);
	for (uint8_t id = 0; id < 2; id++) {
		uint8_t blob[WF_BLOB_ROOM];
		struct wf_path_head head = {.kind = WF_PATH_HELLO, .paths = 1u << WF_PATH_SHM};
		size_t used = 0;
		memset(head.id, id, sizeof(head.id));
		struct wf_conn *conn = say(raw, &server->at, blob, wf_path_encode(&head, blob));
		struct seen *up = conf_await(t, server, NULL, WF_EVENT_UP);
		CHECK(up != NULL && is_over(up->conn, "tcp",
					    id == 0 ? "whether both ends are on one host is unknown"
						    : "on another host"));
		CHECK(wf_transport_answer(up->conn, true, "yes", 3) == WEFT_OK);
		up = conf_await(t, raw, conn, WF_EVENT_UP);
		CHECK(up != NULL);
		CHECK(wf_path_decode(up->bytes, up->byte_count, &head, &used) == WEFT_OK);
		CHECK(head.kind == WF_PATH_HERE &&
		      head.reason == (id == 0 ? WF_PATH_MISSING : WF_PATH_OTHER_HOST));
		CHECK(up->byte_count == used + 3 && memcmp(up->bytes + used, "yes", 3) == 0);
	}
	return true;
}

static void
memory_is_offered_within_one_host_only(void **state)
{
	(void)state;
	run_on("paths", say_other_hosts);
}

/* A server without path heads: whatever it answers is none. */
static bool
answer_without_heads(struct conf *t)
{
	struct node *raw = raw_node(t, "sim");
	struct node *client = conf_node(t, NULL);
	CHECK(raw != NULL && client != NULL);
	CHECK(listen_raw(t, raw));
	for (int accept = 0; accept < 2; accept++) {
		struct wf_conn *conn = NULL;
		CHECK(wf_transport_connect(client->transport, &raw->at, "hi", 2, NULL, &conn) ==
		      WEFT_OK);
		struct seen *up = conf_await(t, raw, NULL, WF_EVENT_UP);
		CHECK(up != NULL && up->byte_count > 64);
		CHECK(wf_transport_answer(up->conn, accept != 0, "what?", 5) == WEFT_OK);
		CHECK(ended_with(conf_await(t, client, conn, WF_EVENT_DOWN), WEFT_PROTOCOL,
				 "path head"));
	}
	CHECK(conf_count(client, NULL, WF_EVENT_UP) == 0);
	return true;
}

static void
an_answer_without_heads_is_a_breach(void **state)
{
	(void)state;
	run_on("paths-sim-auto", answer_without_heads);
}

/* A server that writes path heads by hand: it offers this, and the client is UPGRADING or is down.
 */
static bool
offer_by_hand(struct conf *t, const struct wf_path_head *offer, struct node **boot,
	      struct node **client, struct wf_conn **conn, struct wf_conn **boot_conn)
{
	*boot = raw_node(t, "sim");
	*client = conf_node(t, NULL);
	CHECK(*boot != NULL && *client != NULL && listen_raw(t, *boot));
	CHECK(wf_transport_connect((*client)->transport, &(*boot)->at, "hi", 2, NULL, conn) ==
	      WEFT_OK);
	struct seen *up = conf_await(t, *boot, NULL, WF_EVENT_UP);
	CHECK(up != NULL);
	*boot_conn = up->conn;
	return answer_with(up->conn, true, offer);
}

/* Paths that this end has not, has not named, and that no number of bits holds. */
static bool
offer_other_paths(struct conf *t)
{
	static const uint8_t path[] = {WF_PATH_SHM, WF_PATH_VERBS, 4, 31, 32, 35, 64, 255};
	for (size_t i = 0; i < WF_ARRAY_COUNT(path); i++) {
		struct wf_path_head offer = {.kind = WF_PATH_UPGRADE,
					     .offer_count = 1,
					     .offer = {{.path = path[i], .port = 7164}}};
		struct node *boot = NULL;
		struct node *client = NULL;
		struct wf_conn *conn = NULL;
		struct wf_conn *boot_conn = NULL;
		CHECK(offer_by_hand(t, &offer, &boot, &client, &conn, &boot_conn));
		uint64_t from_ns = wf_now_ns(t->env);
		CHECK(ended_with(conf_await(t, client, conn, WF_EVENT_DOWN), WEFT_PROTOCOL,
				 "none of the paths asked for"));
		CHECK(wf_now_ns(t->env) < from_ns + WF_NS_PER_S); /* no time has to pass for it */
		conf_node_close(t, boot);
		conf_node_close(t, client);
		t->node_count -= 2;
	}
	return true;
}

static void
an_offer_of_paths_that_were_not_asked_for_is_a_breach(void **state)
{
	(void)state;
	run_on("paths-sim-auto", offer_other_paths);
}

/* What the listener's verdict says, in the words of who reads it at the connecting end. */
static bool
stay_on_bootstrap(struct conf *t)
{
	static const struct {
		uint8_t reason;
		const char *text;
		const char *wanted;
	} verdict[] = {
		{WF_PATH_ONLY, "", "peer offers sim only"},
		{WF_PATH_OTHER_HOST, "", "on another host"},
		{WF_PATH_MISSING, "sim2: it rains", "peer says: sim2: it rains"},
		{WF_PATH_PEER_LEFT, "", "the two ends have no other path in common"},
	};
	for (size_t i = 0; i < WF_ARRAY_COUNT(verdict); i++) {
		struct wf_path_head here = {.kind = WF_PATH_HERE, .reason = verdict[i].reason};
		struct wf_path_info info;
		struct node *boot = NULL;
		struct node *client = NULL;
		struct wf_conn *conn = NULL;
		struct wf_conn *boot_conn = NULL;
		(void)snprintf(here.text, sizeof(here.text), "%s", verdict[i].text);
		CHECK(offer_by_hand(t, &here, &boot, &client, &conn, &boot_conn));
		CHECK(conf_await(t, client, conn, WF_EVENT_UP) != NULL);
		wf_transport_path(conn, &info);
		assert_string_equal(info.why, verdict[i].wanted);
		conf_node_close(t, boot);
		conf_node_close(t, client);
		t->node_count -= 2;
	}
	return true;
}

static void
who_connects_says_why_the_bootstrap_carries(void **state)
{
	(void)state;
	run_on("paths-sim-auto", stay_on_bootstrap);
}

/* The bootstrap ends while the path is silent: it is not waited for as long as for an answer. */
static bool
end_while_upgrading(struct conf *t)
{
	struct node *fast = raw_node(t, "sim2");
	CHECK(fast != NULL && listen_raw(t, fast));
	struct wf_path_head offer = {.kind = WF_PATH_UPGRADE,
				     .offer_count = 1,
				     .offer = {{.path = WF_PATH_OTHER, .port = fast->at.port}}};
	struct node *boot = NULL;
	struct node *client = NULL;
	struct wf_conn *conn = NULL;
	struct wf_conn *boot_conn = NULL;
	CHECK(offer_by_hand(t, &offer, &boot, &client, &conn, &boot_conn));
	CHECK(conf_await(t, fast, NULL, WF_EVENT_UP) != NULL); /* and is not answered */
	uint64_t from_ns = wf_now_ns(t->env);
	wf_transport_disconnect(boot_conn, WF_DISCONNECT_NOW);
	CHECK(ended_with(conf_await(t, client, conn, WF_EVENT_DOWN), WEFT_UNAVAILABLE, ""));
	uint64_t took_ns = wf_now_ns(t->env) - from_ns;
	CHECK(took_ns >= WF_NS_PER_S && took_ns < 2 * WF_NS_PER_S);
	return true;
}

static void
a_silent_path_is_given_up_soon_after_its_bootstrap(void **state)
{
	(void)state;
	run_on("paths-sim-auto", end_while_upgrading);
}

/* A hello that is longer than a user's: only transport/paths takes it. */
static bool
say_too_much(struct conf *t)
{
	static const char *const backend[] = {"tcp", "shm"};
	static const uint8_t blob[WF_BLOB_MAX + 1];
	for (size_t i = 0; i < WF_ARRAY_COUNT(backend); i++) {
		t->transport = backend[i];
		struct node *server = conf_server(t, NULL);
		struct node *raw = raw_node(t, backend[i]);
		CHECK(server != NULL && raw != NULL);
		struct wf_conn *conn = say(raw, &server->at, blob, sizeof(blob));
		CHECK(conf_await(t, raw, conn, WF_EVENT_DOWN) != NULL);
		conf_settle(t);
		struct wf_transport_info info;
		wf_transport_query(server->transport, &info);
		CHECK(server->seen_count == 0 && info.strangers_refused == 1);
	}
	return true;
}

static void
no_other_backend_takes_a_hello_over_the_limit(void **state)
{
	(void)state;
	run_on("paths", say_too_much);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(garbage_is_refused_and_counted),
		cmocka_unit_test(a_ticket_is_good_once_and_no_other_is),
		cmocka_unit_test(a_ticket_dies_with_its_bootstrap),
		cmocka_unit_test(a_ticket_that_nobody_shows_expires),
		cmocka_unit_test(who_takes_an_offer_and_stays_away_keeps_nobody_out),
		cmocka_unit_test(bootstrap_of_who_is_refused_on_a_path_ends_at_once),
		cmocka_unit_test(whose_ticket_finds_no_room_is_told_so),
		cmocka_unit_test(who_is_told_that_there_is_no_room_asks_no_other_path),
		cmocka_unit_test(who_speaks_on_a_bootstrap_that_carries_nothing_is_taken_down),
		cmocka_unit_test(memory_is_offered_within_one_host_only),
		cmocka_unit_test(an_answer_without_heads_is_a_breach),
		cmocka_unit_test(an_offer_of_paths_that_were_not_asked_for_is_a_breach),
		cmocka_unit_test(who_connects_says_why_the_bootstrap_carries),
		cmocka_unit_test(a_silent_path_is_given_up_soon_after_its_bootstrap),
		cmocka_unit_test(no_other_backend_takes_a_hello_over_the_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
