/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs with a secret: who meets, who does not, and what a stranger between the two ends can do with
 * what he has heard: alter it, cut it, send it again, later, elsewhere or back. One thread. */
#include <fcntl.h>
#include <unistd.h>

#include "base/mac.h"
#include "tests/unit/paths/paths_rig.h"
#include "transport/paths/paths_internal.h"

static char root[64];
static char ours[128];   /* the file with the secret of the job */
static char theirs[128]; /* that of another one */

static void
write_file(const char *name, char byte, char out[128])
{
	char bytes[32];
	memset(bytes, byte, sizeof(bytes));
	(void)snprintf(out, 128, "%s/%s", root, name);
	int fd = open(out, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
	assert_int_equal(close(fd), 0);
}

static int
set_up(void **state)
{
	(void)snprintf(root, sizeof(root), "/tmp/weft_paths_secret_XXXXXX");
	assert_non_null(mkdtemp(root));
	write_file("ours", 'o', ours);
	write_file("theirs", 't', theirs);
	return 0;
}

static int
tear_down(void **state)
{
	(void)unlink(ours);
	(void)unlink(theirs);
	return rmdir(root);
}

/* `secret`: NULL: none. */
static struct node *
server_with(struct conf *t, const char *secret)
{
	const struct wf_transport_opts opts = {.secret_file = secret};
	return conf_server(t, &opts);
}

static struct node *
client_with(struct conf *t, const char *secret)
{
	const struct wf_transport_opts opts = {.secret_file = secret};
	return conf_node(t, &opts);
}

/* A node that speaks without path heads. */
static struct node *
raw_node(struct conf *t)
{
	const char *usual = t->transport;
	const struct wf_transport_opts opts = {.blob_max = WF_BLOB_ROOM};
	t->transport = "sim";
	struct node *n = conf_node(t, &opts);
	t->transport = usual;
	return n;
}

static uint64_t
strangers_of(const struct node *n, char last[WF_WHY_BYTES])
{
	struct wf_transport_info info;
	wf_transport_query(n->transport, &info);
	memcpy(last, info.last_stranger, WF_WHY_BYTES);
	return info.strangers_refused;
}

static bool
meet(struct conf *t)
{
	struct node *server = server_with(t, ours);
	struct node *client = client_with(t, ours);
	struct pair p;
	CHECK(server != NULL && client != NULL);
	for (unsigned i = 0; i < 3; i++) {
		char last[WF_WHY_BYTES];
		CHECK(conf_join(t, server, client, &p));
		CHECK(conf_send_all(t, p.cc, i, 100) && conf_send_all(t, p.sc, i, 200));
		CHECK(conf_is_message(conf_await(t, server, p.sc, WF_EVENT_MSG), i, 100));
		CHECK(conf_is_message(conf_await(t, client, p.cc, WF_EVENT_MSG), i, 200));
		CHECK(strangers_of(server, last) == 0);
		/* The key of the connection is not kept where a core dump would have it. */
		static const struct wf_paths_proof none;
		CHECK(memcmp(wf_paths_conn_of(p.cc)->proof, &none, sizeof(none)) == 0);
		CHECK(memcmp(wf_paths_conn_of(p.sc)->proof, &none, sizeof(none)) == 0);
	}
	return true;
}

static void
members_with_the_same_secret_meet_on_every_path(void **state)
{
	static const char *const urls[] = {"paths-sim", "paths-sim-auto", "paths-tcp", "paths"};
	for (unsigned i = 0; i < WF_ARRAY_COUNT(urls); i++) {
		run_on(urls[i], meet);
	}
}

static const struct {
	const char *server, *client;
	const char *why; /* at the client */
	const char *log; /* at the server */
} strange[] = {
	{ours, theirs, "another secret than this end: compare the files of --secret_file",
	 "another secret"},
	{ours, NULL, "this end has none: give this end --secret_file", "does not prove"},
	{NULL, ours, "it has no secret, and this end demands one", "started without --secret_file"},
};
static unsigned strange_idx;

static bool
miss(struct conf *t)
{
	char last[WF_WHY_BYTES];
	struct node *server = server_with(t, strange[strange_idx].server);
	struct node *client = client_with(t, strange[strange_idx].client);
	struct wf_conn *conn = NULL;
	CHECK(server != NULL && client != NULL);
	CHECK(wf_transport_connect(client->transport, &server->at, "hi", 2, NULL, &conn) ==
	      WEFT_OK);
	struct seen *down = conf_await(t, client, conn, WF_EVENT_DOWN);
	CHECK(ended_with(down, WEFT_REFUSED, strange[strange_idx].why));
	CHECK(down->byte_count == 0);
	conf_settle(t);
	CHECK(strangers_of(server, last) == 1);
	CHECK(strstr(last, strange[strange_idx].log) != NULL);
	CHECK(conf_count(server, NULL, WF_EVENT_UP) == 0);
	CHECK(server->seen_count == 0);
	return true;
}

static void
others_are_refused_and_learn_what_to_check(void **state)
{
	static const char *const urls[] = {"paths-sim-auto", "paths-tcp"};
	for (unsigned i = 0; i < 2 * WF_ARRAY_COUNT(strange); i++) {
		strange_idx = i / 2;
		run_on(urls[i % 2], miss);
	}
}

/* ---- a stranger between two ends ---- */

/* A server, a client that believes the relay to be the server, and the relay's two ends. */
struct relay {
	struct node *server, *client, *front, *back;
	struct wf_conn *conn;  /* the client's */
	struct wf_conn *asked; /* the relay's connection from the client, which waits */
	uint8_t hello[WF_BLOB_ROOM];
	size_t hello_bytes;
};

static bool
relay_open(struct conf *t, struct relay *r)
{
	*r = (struct relay){
		.server = server_with(t, ours),
		.client = client_with(t, ours),
		.front = raw_node(t),
		.back = raw_node(t),
	};
	CHECK(r->server != NULL && r->client != NULL && r->front != NULL && r->back != NULL);
	snprintf(r->front->at.name, sizeof(r->front->at.name), "%s", t->host);
	return wf_transport_listen(r->front->transport, &r->front->at, &r->front->at.port) ==
	       WEFT_OK;
}

/* Sends a hello to `to`, and returns its refusal or welcome. */
static struct seen *
say(struct conf *t, struct node *raw, const struct node *to, const void *blob, size_t bytes)
{
	struct wf_conn *conn = NULL;
	if (wf_transport_connect(raw->transport, &to->at, blob, bytes, NULL, &conn) != WEFT_OK) {
		return NULL;
	}
	return conf_await(t, raw, conn, WF_EVENT_DOWN);
}

/* What the client says next to the relay. */
static bool
listen_in(struct conf *t, struct relay *r, unsigned kind)
{
	struct wf_path_head head;
	size_t used = 0;
	struct seen *up = conf_await(t, r->front, NULL, WF_EVENT_UP);
	CHECK(up != NULL && up->incoming);
	r->asked = up->conn;
	memcpy(r->hello, up->bytes, up->byte_count);
	r->hello_bytes = up->byte_count;
	CHECK(wf_path_decode(r->hello, r->hello_bytes, &head, &used) == WEFT_OK);
	CHECK(head.kind == kind);
	return true;
}

/* The client knocks, and has got the server's challenge from the relay, which then has the client's
 * hello. */
static bool
capture_hello(struct conf *t, struct relay *r)
{
	CHECK(wf_transport_connect(r->client->transport, &r->front->at, "the user's hello", 16,
				   NULL, &r->conn) == WEFT_OK);
	CHECK(listen_in(t, r, WF_PATH_KNOCK));
	struct seen *down = say(t, r->back, r->server, r->hello, r->hello_bytes);
	CHECK(down != NULL && down->status == WEFT_REFUSED);
	CHECK(down->byte_count == WF_PATH_HEAD_BYTES + 2 && down->bytes[6] == WF_PATH_CHALLENGE);
	CHECK(wf_transport_answer(r->asked, false, down->bytes, down->byte_count) == WEFT_OK);
	return listen_in(t, r, WF_PATH_HELLO);
}

/* The one refusal: the same bytes for all causes. */
static bool
is_refused(struct conf *t, struct node *raw, struct node *server, const void *blob, size_t bytes)
{
	const struct wf_path_head no = {.kind = WF_PATH_NO, .reason = WF_PATH_SECRET};
	uint8_t expected[WF_BLOB_ROOM];
	size_t count = wf_path_encode(&no, expected);
	struct seen *down = say(t, raw, server, blob, bytes);
	CHECK(down != NULL && down->status == WEFT_REFUSED);
	CHECK(down->byte_count == count && memcmp(down->bytes, expected, count) == 0);
	CHECK(conf_count(server, NULL, WF_EVENT_UP) == 0);
	return true;
}

/* The server shows a connection with the user's hello. */
static bool
is_shown(struct conf *t, struct node *raw, struct node *server, const void *blob, size_t bytes)
{
	struct wf_conn *conn = NULL;
	CHECK(wf_transport_connect(raw->transport, &server->at, blob, bytes, NULL, &conn) ==
	      WEFT_OK);
	struct seen *up = conf_await(t, server, NULL, WF_EVENT_UP);
	CHECK(up != NULL && up->byte_count == 16);
	CHECK(memcmp(up->bytes, "the user's hello", 16) == 0);
	return true;
}

static bool
alter_hello(struct conf *t)
{
	struct relay r;
	CHECK(relay_open(t, &r) && capture_hello(t, &r));
	for (size_t bit = 0; bit < 8 * r.hello_bytes; bit += bit < 8 * 100 ? 3 : 1) {
		r.hello[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (!is_refused(t, r.back, r.server, r.hello, r.hello_bytes)) {
			fprintf(stderr, "bit %zu of byte %zu\n", bit % 8, bit / 8);
			return false;
		}
		r.hello[bit / 8] ^= (uint8_t)(1u << bit % 8);
		conf_forget(r.back);
	}
	for (size_t bytes = 0; bytes < r.hello_bytes; bytes += 7) {
		CHECK(is_refused(t, r.back, r.server, r.hello, bytes));
	}
	CHECK(is_refused(t, r.back, r.server, r.hello, r.hello_bytes - 1));
	r.hello[r.hello_bytes] = 0;
	CHECK(is_refused(t, r.back, r.server, r.hello, r.hello_bytes + 1));
	/* Unaltered, it is good. */
	return is_shown(t, r.back, r.server, r.hello, r.hello_bytes);
}

static void
no_bit_of_a_hello_can_be_altered(void **state)
{
	run_on("paths-sim", alter_hello);
}

/* To another lane of the same job first, then once where it belongs. */
static bool
repeat_hello(struct conf *t)
{
	struct relay r;
	CHECK(relay_open(t, &r));
	struct node *lane = server_with(t, ours);
	struct node *job = server_with(t, theirs);
	CHECK(lane != NULL && job != NULL && capture_hello(t, &r));
	CHECK(is_refused(t, r.back, lane, r.hello, r.hello_bytes));
	CHECK(is_refused(t, r.back, job, r.hello, r.hello_bytes));
	CHECK(is_shown(t, r.back, r.server, r.hello, r.hello_bytes));
	conf_forget(r.server);
	for (unsigned i = 0; i < 3; i++) {
		CHECK(is_refused(t, r.back, r.server, r.hello, r.hello_bytes));
	}
	return true;
}

static void
a_hello_is_good_once_and_at_one_lane(void **state)
{
	run_on("paths-sim", repeat_hello);
}

/* Until the clock is that much later. */
static void
let_pass(struct conf *t, uint64_t span_ns)
{
	uint64_t until_ns = wf_now_ns(t->env) + span_ns;
	while (wf_now_ns(t->env) < until_ns) {
		wf_wait(t->env, -1, until_ns);
	}
}

/* handshake_timeout and connect_timeout are 5 s each, so a nonce is given out for 10 s and good for
 * 20 s at most. */
static bool
wait_with_hello(struct conf *t)
{
	struct relay r;
	CHECK(relay_open(t, &r) && capture_hello(t, &r));
	let_pass(t, 9 * WF_NS_PER_S);
	uint8_t first[WF_BLOB_ROOM];
	size_t bytes = r.hello_bytes;
	memcpy(first, r.hello, bytes);
	let_pass(t, 12 * WF_NS_PER_S);
	CHECK(is_refused(t, r.back, r.server, first, bytes));
	/* Another, of which more than a period passes, but not two. */
	CHECK(capture_hello(t, &r));
	let_pass(t, 11 * WF_NS_PER_S);
	CHECK(is_shown(t, r.back, r.server, r.hello, r.hello_bytes));
	conf_forget(r.server);
	return is_refused(t, r.back, r.server, r.hello, r.hello_bytes);
}

static void
a_hello_grows_old(void **state)
{
	run_on("paths-sim", wait_with_hello);
}

/* Each kind of head, in clear, with a code of nothing, and garbage. */
static bool
say_without_secret(struct conf *t)
{
	struct relay r;
	uint8_t blob[WF_BLOB_ROOM + 1] = {0};
	CHECK(relay_open(t, &r));
	CHECK(is_refused(t, r.back, r.server, NULL, 0));
	memset(blob, 'x', sizeof(blob));
	CHECK(is_refused(t, r.back, r.server, blob, WF_BLOB_ROOM));
	for (uint8_t kind = 0; kind <= WF_PATH_KIND_MAX + 1; kind++) {
		for (uint8_t flags = 0; flags < 4 && kind != WF_PATH_KNOCK; flags++) {
			struct wf_path_head head = {.kind = kind, .flags = flags};
			size_t used = wf_path_encode(&head, blob);
			CHECK(is_refused(t, r.back, r.server, blob, used));
			CHECK(is_refused(t, r.back, r.server, blob, used + 9));
		}
	}
	CHECK(r.server->seen_count == 0);
	return true;
}

static void
the_refusal_has_the_same_bytes_for_all(void **state)
{
	run_on("paths-sim-auto", say_without_secret);
}

/* The server's own words do not open it, nor the client's the client. */
static bool
reflect(struct conf *t)
{
	struct relay r;
	CHECK(relay_open(t, &r) && capture_hello(t, &r));
	/* The client's hello as its verdict. */
	CHECK(wf_transport_answer(r.asked, true, r.hello, r.hello_bytes) == WEFT_OK);
	CHECK(ended_with(conf_await(t, r.client, r.conn, WF_EVENT_DOWN), WEFT_PROTOCOL,
			 "not sealed"));
	/* And made into one: the same code, the kind of a verdict. */
	CHECK(capture_hello(t, &r));
	r.hello[6] = WF_PATH_HERE;
	CHECK(wf_transport_answer(r.asked, true, r.hello, r.hello_bytes) == WEFT_OK);
	struct seen *down = conf_await(t, r.client, r.conn, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_PROTOCOL);
	/* A knock is welcomed, or answered with a knock. */
	CHECK(wf_transport_connect(r.client->transport, &r.front->at, "hi", 2, NULL, &r.conn) ==
	      WEFT_OK);
	CHECK(listen_in(t, &r, WF_PATH_KNOCK));
	const struct wf_path_head here = {.kind = WF_PATH_HERE};
	uint8_t blob[WF_BLOB_ROOM];
	size_t used = wf_path_encode(&here, blob);
	CHECK(wf_transport_answer(r.asked, true, blob, used) == WEFT_OK);
	CHECK(ended_with(conf_await(t, r.client, r.conn, WF_EVENT_DOWN), WEFT_PROTOCOL,
			 "not sealed"));
	CHECK(conf_count(r.client, NULL, WF_EVENT_UP) == 0);
	return true;
}

static void
what_an_end_said_proves_nothing_to_it(void **state)
{
	run_on("paths-sim", reflect);
}

/* The relay passes the hello on, and has the server's welcome. */
static bool
capture_welcome(struct conf *t, struct relay *r, uint8_t out[WF_BLOB_ROOM], size_t *bytes)
{
	struct wf_conn *conn = NULL;
	CHECK(capture_hello(t, r));
	CHECK(wf_transport_connect(r->back->transport, &r->server->at, r->hello, r->hello_bytes,
				   NULL, &conn) == WEFT_OK);
	struct seen *up = conf_await(t, r->server, NULL, WF_EVENT_UP);
	CHECK(up != NULL && wf_transport_answer(up->conn, true, "welcome", 7) == WEFT_OK);
	up = conf_await(t, r->back, conn, WF_EVENT_UP);
	CHECK(up != NULL);
	memcpy(out, up->bytes, up->byte_count);
	*bytes = up->byte_count;
	return true;
}

static bool
alter_welcome(struct conf *t)
{
	struct relay r;
	uint8_t before[WF_BLOB_ROOM];
	uint8_t welcome[WF_BLOB_ROOM];
	size_t before_bytes = 0;
	size_t bytes = 0;
	CHECK(relay_open(t, &r) && capture_welcome(t, &r, before, &before_bytes));
	/* In the place of one of these, that of the connection before. */
	for (size_t i = 0; i < before_bytes + 3; i++) {
		CHECK(capture_welcome(t, &r, welcome, &bytes));
		CHECK(bytes == before_bytes);
		if (i < bytes) {
			welcome[i] ^= (uint8_t)(1u << i % 8);
		} else if (i == bytes) {
			memcpy(welcome, before, bytes);
		} else {
			bytes += i == bytes + 1 ? 1 : -1;
		}
		CHECK(wf_transport_answer(r.asked, true, welcome, bytes) == WEFT_OK);
		struct seen *down = conf_await(t, r.client, r.conn, WF_EVENT_DOWN);
		if (down == NULL || down->status != WEFT_PROTOCOL) {
			fprintf(stderr, "byte %zu\n", i);
			return false;
		}
		CHECK(conf_count(r.client, NULL, WF_EVENT_UP) == 0);
		conf_forget(r.back);
		conf_forget(r.server);
		conf_forget(r.client);
		conf_forget(r.front);
	}
	CHECK(capture_welcome(t, &r, welcome, &bytes));
	CHECK(wf_transport_answer(r.asked, true, welcome, bytes) == WEFT_OK);
	struct seen *up = conf_await(t, r.client, r.conn, WF_EVENT_UP);
	CHECK(up != NULL && up->byte_count == 7 && memcmp(up->bytes, "welcome", 7) == 0);
	return true;
}

static void
no_byte_of_a_welcome_can_be_altered(void **state)
{
	run_on("paths-sim", alter_welcome);
}

/* The code as another implementation of the page would compute it. */
static void
seal(const char *word, const uint8_t knocker[32], const uint8_t challenger[32], uint8_t *blob,
     size_t bytes)
{
	uint8_t content[32];
	uint8_t key[32];
	static const char purpose[] = "weft: the key of a job, 1";
	memset(content, 'o', sizeof(content));
	wf_mac(content, 32, &(struct wf_mac_part){purpose, strlen(purpose)}, 1, key);
	const struct wf_mac_part nonces[] = {{"connection", 10}, {knocker, 32}, {challenger, 32}};
	uint8_t of_conn[32];
	wf_mac(key, 32, nonces, 3, of_conn);
	memset(blob + 32, 0, 32);
	const struct wf_mac_part all[] = {{word, strlen(word) + 1}, {blob, bytes}};
	uint8_t code[32];
	wf_mac(of_conn, 32, all, 2, code);
	memcpy(blob + 32, code, 32);
}

/* A peer of the test's own, with the secret, that wants the other path. */
static bool
get_offer(struct conf *t, struct node *raw, struct node *server, const uint8_t knocker[32],
	  uint8_t challenger[32], struct wf_path_head *out)
{
	uint8_t blob[WF_BLOB_ROOM];
	struct wf_path_head knock = {.kind = WF_PATH_KNOCK};
	struct wf_path_head head = {
		.kind = WF_PATH_HELLO, .flags = WF_PATH_SEALED, .paths = 1u << WF_PATH_OTHER};
	size_t used = 0;
	struct wf_conn *conn = NULL;
	memcpy(knock.auth, knocker, 32);
	struct seen *down = say(t, raw, server, blob, wf_path_encode(&knock, blob));
	CHECK(down != NULL && wf_path_decode(down->bytes, down->byte_count, out, &used) == WEFT_OK);
	memcpy(challenger, out->auth, 32);
	memcpy(head.nonce, knocker, 32);
	used = wf_path_encode(&head, blob);
	memcpy(blob + used, "user", 4);
	seal("hello", knocker, challenger, blob, used + 4);
	CHECK(wf_transport_connect(raw->transport, &server->at, blob, used + 4, NULL, &conn) ==
	      WEFT_OK);
	struct seen *up = conf_await(t, raw, conn, WF_EVENT_UP);
	CHECK(up != NULL && wf_path_decode(up->bytes, up->byte_count, out, &used) == WEFT_OK);
	CHECK(out->kind == WF_PATH_UPGRADE && (out->flags & WF_PATH_SEALED) != 0);
	/* The offer is sealed as well, as this end computes it. */
	memcpy(blob, up->bytes, up->byte_count);
	seal("verdict", knocker, challenger, blob, up->byte_count);
	CHECK(memcmp(blob, up->bytes, up->byte_count) == 0);
	return true;
}

static bool
show_tickets(struct conf *t)
{
	struct node *server = server_with(t, ours);
	struct node *boot = raw_node(t);
	const char *usual = t->transport;
	const struct wf_transport_opts room = {.blob_max = WF_BLOB_ROOM};
	t->transport = "sim2";
	struct node *fast = conf_node(t, &room);
	t->transport = usual;
	uint8_t knocker[32] = "the nonce of who knocks";
	uint8_t challenger[32];
	uint8_t blob[WF_BLOB_ROOM];
	struct wf_path_head offer;
	CHECK(server != NULL && boot != NULL && fast != NULL);
	CHECK(get_offer(t, boot, server, knocker, challenger, &offer));
	struct wf_path_head ticket = {.kind = WF_PATH_TICKET, .path = WF_PATH_OTHER};
	memcpy(ticket.id, offer.id, sizeof(ticket.id));
	struct node to = {.at = server->at};
	to.at.port = offer.offer[0].port;
	/* Without a code, with one of another word, and with a bit that differs: as if unknown. */
	for (unsigned i = 0; i < 4 + 32; i++) {
		struct wf_path_head no;
		ticket.flags = i == 0 ? 0 : WF_PATH_SEALED;
		size_t used = wf_path_encode(&ticket, blob);
		if (i > 0) {
			seal(i == 1   ? "hello"
			     : i == 2 ? "path verdict"
				      : "ticket",
			     knocker, challenger, blob, used);
		}
		blob[i == 3 ? 8 : i > 3 ? 28 + i : 0] ^= i >= 3 ? 1 : 0;
		struct seen *down = say(t, fast, &to, blob, used);
		CHECK(down != NULL && down->status == WEFT_REFUSED);
		CHECK(wf_path_decode(down->bytes, down->byte_count, &no, &used) == WEFT_OK);
		CHECK(no.kind == WF_PATH_NO && no.flags == 0);
		CHECK(strcmp(no.text, "its ticket is unknown") == 0);
		CHECK(conf_count(server, NULL, WF_EVENT_UP) == 0);
	}
	/* It is still good for who has it. */
	ticket.flags = WF_PATH_SEALED;
	size_t used = wf_path_encode(&ticket, blob);
	struct wf_conn *conn = NULL;
	seal("ticket", knocker, challenger, blob, used);
	CHECK(wf_transport_connect(fast->transport, &to.at, blob, used, NULL, &conn) == WEFT_OK);
	struct seen *up = conf_await(t, server, NULL, WF_EVENT_UP);
	CHECK(up != NULL && up->byte_count == 4 && memcmp(up->bytes, "user", 4) == 0);
	CHECK(wf_transport_answer(up->conn, true, "yes", 3) == WEFT_OK);
	up = conf_await(t, fast, conn, WF_EVENT_UP);
	CHECK(up != NULL);
	memcpy(blob, up->bytes, up->byte_count);
	seal("path verdict", knocker, challenger, blob, up->byte_count);
	CHECK(memcmp(blob, up->bytes, up->byte_count) == 0);
	return true;
}

static void
a_ticket_is_good_with_its_code_alone(void **state)
{
	run_on("paths-sim-auto", show_tickets);
}

/* A connection has one place at most, whoever knocks, and stays. */
static bool
crowd(struct conf *t)
{
	const struct wf_transport_opts one = {
		.conn_max = 1, .newcomer_max = 4, .secret_file = ours};
	struct node *server = conf_server(t, &one);
	struct node *client = client_with(t, ours);
	struct node *raw = raw_node(t);
	struct pair p;
	uint8_t blob[WF_BLOB_ROOM];
	CHECK(server != NULL && client != NULL && raw != NULL);
	for (unsigned i = 0; i < 200; i++) {
		struct wf_conn *conn = NULL;
		struct wf_path_head head = {.kind = i % 2 == 0 ? WF_PATH_KNOCK : WF_PATH_HELLO};
		CHECK(wf_transport_connect(raw->transport, &server->at, blob,
					   wf_path_encode(&head, blob), NULL, &conn) == WEFT_OK);
	}
	CHECK(conf_join(t, server, client, &p));
	return true;
}

static void
strangers_keep_no_member_out(void **state)
{
	run_on("paths-sim-auto", crowd);
}

/* More than a nonce is given out for, within a moment: the one of the beginning is not good again.
 */
static bool
come_often(struct conf *t)
{
	struct relay r;
	struct pair p;
	CHECK(relay_open(t, &r) && capture_hello(t, &r));
	CHECK(is_shown(t, r.back, r.server, r.hello, r.hello_bytes));
	for (unsigned i = 0; i < 2300; i++) {
		CHECK(conf_join(t, r.server, r.client, &p));
		wf_transport_disconnect(p.cc, WF_DISCONNECT_NOW);
		CHECK(conf_await(t, r.server, p.sc, WF_EVENT_DOWN) != NULL);
		CHECK(conf_await(t, r.client, p.cc, WF_EVENT_DOWN) != NULL);
		conf_forget(r.server);
		conf_forget(r.client);
		if (i % 100 == 99) {
			CHECK(is_refused(t, r.back, r.server, r.hello, r.hello_bytes));
		}
	}
	return true;
}

static void
a_hello_is_remembered_however_many_come(void **state)
{
	run_on("paths-sim", come_often);
}

static bool
open_others(struct conf *t)
{
	const struct wf_transport_opts opts = {.env = t->env, .secret_file = ours};
	struct wf_transport *out = NULL;
	CHECK(wf_transport_open("sim", &opts, &out) == WEFT_UNSUPPORTED);
	CHECK(strstr(weft_last_error(), "secret_file") != NULL);
	const struct wf_transport_opts none = {.env = t->env, .secret_file = "/nowhere"};
	CHECK(wf_transport_open("paths", &none, &out) == WEFT_IO);
	CHECK(strstr(weft_last_error(), "/nowhere") != NULL);
	return out == NULL;
}

static void
a_secret_that_cannot_be_used_is_refused(void **state)
{
	run_on("paths-sim", open_others);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_with_the_same_secret_meet_on_every_path),
		cmocka_unit_test(others_are_refused_and_learn_what_to_check),
		cmocka_unit_test(no_bit_of_a_hello_can_be_altered),
		cmocka_unit_test(a_hello_is_good_once_and_at_one_lane),
		cmocka_unit_test(a_hello_grows_old),
		cmocka_unit_test(the_refusal_has_the_same_bytes_for_all),
		cmocka_unit_test(what_an_end_said_proves_nothing_to_it),
		cmocka_unit_test(no_byte_of_a_welcome_can_be_altered),
		cmocka_unit_test(a_ticket_is_good_with_its_code_alone),
		cmocka_unit_test(strangers_keep_no_member_out),
		cmocka_unit_test(a_hello_is_remembered_however_many_come),
		cmocka_unit_test(a_secret_that_cannot_be_used_is_refused),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
