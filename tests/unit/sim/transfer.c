/* SPDX-License-Identifier: Apache-2.0 */
/* transfer: the two processes and their worlds. Thread: the world's. */
#include "tests/unit/sim/transfer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"

uint8_t
item_byte(unsigned item)
{
	return (uint8_t)(item + 1);
}

enum weft_status
open_node(struct node *node, struct wf_env *env)
{
	node->env = env;
	struct wf_transport_opts opts = {.env = env, .op_max = 8};
	enum weft_status st = wf_transport_open("sim", &opts, &node->transport);
	if (st != WEFT_OK) {
		return st;
	}
	st = env->ops->slab_open(env, ITEM_COUNT * ITEM_BYTES, -1, &node->slab);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_region region = {node->slab.base, node->slab.bytes, -1};
	return wf_transport_region_add(node->transport, &region, &node->region);
}

void
close_node(struct node *node)
{
	wf_transport_close(node->transport);
	node->env->ops->slab_close(node->env, &node->slab);
}

static void
send_now(struct node *node, uint8_t type, const void *body, size_t body_bytes)
{
	struct wf_head head = {.service = WF_SERVICE_CONTROL, .type = type};
	struct wf_op op = {
		.kind = WF_OP_SEND, .head = &head, .body = body, .body_bytes = body_bytes};
	unsigned taken = 0;
	enum weft_status st = WEFT_AGAIN;
	/* An earlier message may be not DONE yet, and then a post may come back; not for ever. */
	for (unsigned tries = 0; tries < 100 && st == WEFT_AGAIN; tries++) {
		st = wf_transport_post(node->conn, &op, 1, &taken);
	}
	node->violations +=
		st != WEFT_OK && st != WEFT_CLOSED; /* CLOSED: DOWN waits to be polled */
}

static void
grant_to_client(struct node *server)
{
	struct wf_grant grant = {
		.kind = WF_GRANT_PLACE, .region = server->region, .bytes = ITEM_COUNT * ITEM_BYTES};
	struct wf_grant_key key;
	if (wf_transport_grant(server->conn, &grant, &key) != WEFT_OK) {
		server->violations++;
		return;
	}
	memset(server->slab.base, 0, server->slab.bytes);
	server->puts = 0;
	server->msgs = 0;
	send_now(server, MSG_KEY, &key, sizeof(key));
}

/* Count of bytes of an item that have landed. */
static unsigned
landed(const struct node *server, unsigned item)
{
	const uint8_t *base = (const uint8_t *)server->slab.base + item * ITEM_BYTES;
	unsigned count = 0;
	/* Mostly it is all of one byte; memcmp() is many times as fast as the loop. */
	if (memcmp(base, base + 1, ITEM_BYTES - 1) == 0) {
		return base[0] == item_byte(item) ? ITEM_BYTES : 0;
	}
	for (unsigned i = 0; i < ITEM_BYTES; i++) {
		count += base[i] == item_byte(item);
	}
	return count;
}

void
look_for_early_bytes(struct node *server)
{
	static const uint8_t none[ITEM_COUNT * ITEM_BYTES];
	const size_t before = (size_t)server->puts * ITEM_BYTES;
	/* Called each 20 us of the simulation, and mostly there is nothing. */
	if (server->puts >= ITEM_COUNT ||
	    memcmp((const uint8_t *)server->slab.base + before, none, sizeof(none) - before) == 0) {
		return;
	}
	for (unsigned item = server->puts; item < ITEM_COUNT; item++) {
		unsigned count = landed(server, item);
		server->early += count > 0;
		server->partial += count > 0 && count < ITEM_BYTES;
	}
}

static void
on_put(struct node *server, const struct wf_event *event)
{
	if (event->put.tag != wf_tag(server->puts, 1) || server->puts != server->msgs) {
		server->violations++; /* out of order */
	}
	for (unsigned item = 0; item <= server->puts; item++) {
		server->violations += landed(server, item) != ITEM_BYTES;
	}
	server->puts++;
}

static void
on_msg(struct node *node, const struct wf_event *event)
{
	switch (event->msg.head->type) {
	case MSG_KEY:
		memcpy(&node->key, event->msg.body, sizeof(node->key));
		node->has_key = true;
		break;
	case MSG_ITEM:
		node->msgs++;
		node->violations += node->msgs != node->puts || event->msg.head->step != node->msgs;
		if (node->msgs == ITEM_COUNT) {
			send_now(node, MSG_THANKS, NULL, 0);
		}
		break;
	case MSG_THANKS:
		node->thanked = true;
		break;
	default:
		node->violations++;
	}
}

static void
on_up(struct node *node, const struct wf_event *event)
{
	if (event->up.incoming && node->conn != NULL) {
		/* The last connection is not DOWN here yet: the client has to come again. */
		enum weft_status st = wf_transport_answer(event->conn, false, NULL, 0);
		node->violations += st != WEFT_OK && st != WEFT_CLOSED;
		return;
	}
	node->ups++;
	if (event->up.incoming) {
		node->conn = event->conn;
		if (wf_transport_answer(node->conn, true, "welcome", 7) == WEFT_OK) {
			grant_to_client(node);
		}
	}
}

static void
on_down(struct node *node, const struct wf_event *event)
{
	node->violations += node->posted != node->dones; /* each DONE comes before */
	node->downs++;
	node->down_ns = wf_now_ns(node->env);
	node->down_status = event->down.status;
	(void)snprintf(node->why, sizeof(node->why), "%s", event->down.why);
	node->conn = NULL;
	node->has_key = false;
}

static void
on_event(struct node *node, const struct wf_event *event)
{
	if (event->kind != WF_EVENT_UP && event->conn != node->conn) {
		node->violations += event->kind != WF_EVENT_DOWN; /* of one that was refused */
		return;
	}
	switch (event->kind) {
	case WF_EVENT_UP:
		on_up(node, event);
		break;
	case WF_EVENT_DOWN:
		on_down(node, event);
		break;
	case WF_EVENT_MSG:
		on_msg(node, event);
		break;
	case WF_EVENT_PUT:
		on_put(node, event);
		break;
	case WF_EVENT_DONE:
		node->dones += event->done.cookie != 0;
		node->dones_lost += event->done.status != WEFT_OK;
		if (node->peer != NULL && event->done.cookie % 2 == 1) {
			node->early += event->done.cookie / 2 >= node->peer->puts;
		}
		break;
	default:
		node->violations++;
	}
}

unsigned
poll_node(struct node *node)
{
	struct wf_event events[4];
	unsigned count = 0;
	if (wf_transport_poll(node->transport, events, 4, &count) != WEFT_OK) {
		node->violations++;
	}
	for (unsigned i = 0; i < count; i++) {
		on_event(node, &events[i]);
	}
	return count;
}

/* Items 0..: a PUT, then a message that says its number. Cookies 1, 2, 3 and so on. */
void
post_items(struct node *client)
{
	while (client->posted < 2 * ITEM_COUNT) {
		unsigned item = client->posted / 2;
		uint8_t *source = (uint8_t *)client->slab.base + item * ITEM_BYTES;
		struct wf_head head = {
			.service = WF_SERVICE_CONTROL, .type = MSG_ITEM, .step = item + 1};
		struct wf_op op = {.kind = WF_OP_SEND, .cookie = client->posted + 1, .head = &head};
		if (client->posted % 2 == 0) {
			memset(source, item_byte(item), ITEM_BYTES);
			op = (struct wf_op){.kind = WF_OP_PUT,
					    .cookie = client->posted + 1,
					    .region = client->region,
					    .src = source,
					    .bytes = ITEM_BYTES,
					    .key = client->key,
					    .offset = item * ITEM_BYTES,
					    .tag = wf_tag(item, 1)};
		}
		unsigned taken = 0;
		enum weft_status st = wf_transport_post(client->conn, &op, 1, &taken);
		client->posted += taken;
		if (st == WEFT_AGAIN || st == WEFT_CLOSED) {
			client->violations += taken != 0;
			client->violations += st == WEFT_AGAIN && client->posted == client->dones;
			return;
		}
		client->violations += st != WEFT_OK || taken != 1;
	}
}

void
begin_attempt(struct node *client)
{
	struct wf_host to = {.port = PORT};
	(void)snprintf(to.name, sizeof(to.name), "%s", client->server_host);
	client->attempts++;
	client->posted = 0;
	client->dones = 0;
	if (wf_transport_connect(client->transport, &to, "hello", 5, client, &client->conn) !=
	    WEFT_OK) {
		client->violations++;
	}
}

int
run_client(struct wf_env *env, void *arg)
{
	struct node *client = arg;
	if (open_node(client, env) != WEFT_OK) {
		return 1;
	}
	begin_attempt(client);
	while (!client->thanked || client->conn != NULL) {
		if (client->conn == NULL) {
			if (client->attempts >= client->attempts_max) {
				break;
			}
			begin_attempt(client);
		}
		if (client->has_key && client->conn != NULL) {
			post_items(client);
		}
		if (client->thanked && client->conn != NULL && client->dones == client->posted) {
			wf_transport_disconnect(client->conn, WF_DISCONNECT_DRAIN);
		}
		if (poll_node(client) == 0) {
			wf_wait(env, -1, WF_NEVER);
		}
	}
	close_node(client);
	return client->violations == 0 ? 0 : 2;
}

int
run_server(struct wf_env *env, void *arg)
{
	struct node *server = arg;
	struct wf_host at = {.name = "::", .port = PORT};
	uint16_t port = 0;
	if (open_node(server, env) != WEFT_OK ||
	    wf_transport_listen(server->transport, &at, &port) != WEFT_OK || port != PORT) {
		return 1;
	}
	uint64_t end_ns = WF_NEVER;
	while (server->down_status != WEFT_CLOSED && wf_now_ns(env) < end_ns) {
		unsigned count = poll_node(server);
		if (server->conn != NULL) {
			look_for_early_bytes(server);
			end_ns = WF_NEVER;
		} else if (server->downs > 0 && end_ns == WF_NEVER) {
			end_ns = wf_now_ns(env) + 10 * WF_NS_PER_S;
		}
		if (count == 0) {
			/* Look often: what lands apart from events wakes nobody. */
			uint64_t next_ns = wf_now_ns(env) + 20 * WF_NS_PER_US;
			wf_wait(env, -1, server->conn != NULL ? next_ns : end_ns);
		}
	}
	close_node(server);
	return server->violations == 0 ? 0 : 2;
}

/* --- worlds --- */

uint64_t
first_seed(void)
{
	const char *text = getenv("WEFT_SEED");
	return text == NULL ? 1 : strtoull(text, NULL, 0);
}

struct wf_world *
world_of(struct wf_world_opts opts)
{
	struct wf_world *world = NULL;
	opts.log_fd = -1;
	assert_int_equal(wf_world_create(&opts, &world), WEFT_OK);
	return world;
}

struct wf_proc *
spawn(struct wf_world *world, const char *host, uint64_t start_ns,
      int (*run)(struct wf_env *env, void *arg), void *arg)
{
	struct wf_proc *proc = NULL;
	assert_int_equal(wf_world_spawn(world, host, start_ns, run, arg, &proc), WEFT_OK);
	return proc;
}

void
assert_returned(const struct wf_proc *proc, uint64_t seed)
{
	int result = -1;
	bool returned = wf_proc_returned(proc, &result);
	if (!returned || result != 0) {
		print_error("WEFT_SEED=%llu: result %d\n", (unsigned long long)seed, result);
	}
	assert_true(returned);
	assert_int_equal(result, 0);
}

void
assert_run(struct wf_world *world, uint64_t seed)
{
	enum weft_status st = wf_world_run(world, 1000 * WF_NS_PER_S);
	if (st != WEFT_OK) {
		print_error("WEFT_SEED=%llu: %s\n", (unsigned long long)seed, weft_last_error());
	}
	assert_int_equal(st, WEFT_OK);
}

void
transfer(struct wf_world_opts opts, struct transfer *out)
{
	struct wf_world *world = world_of(opts);
	*out = (struct transfer){0};
	out->client.server_host = "server";
	out->client.attempts_max = 1000;
	out->client.peer = &out->server;
	struct wf_proc *server = spawn(world, "server", 0, run_server, &out->server);
	struct wf_proc *client = spawn(world, "client", 0, run_client, &out->client);
	assert_run(world, opts.seed);
	assert_returned(server, opts.seed);
	assert_returned(client, opts.seed);
	wf_world_stats(world, &out->stats);
	wf_world_destroy(world);
}

const struct wf_world_opts calm = {
	.seed = 1, .delay_min_ns = 50 * WF_NS_PER_US, .delay_max_ns = WF_NS_PER_MS};

struct wf_world_opts
rough(uint64_t seed)
{
	return (struct wf_world_opts){
		.seed = seed,
		.delay_min_ns = 5 * WF_NS_PER_US,
		.delay_max_ns = 2 * WF_NS_PER_MS,
		.split_per_mille = 500,
		.cut_per_million = 20000,
		.refuse_per_mille = 200,
		.down_delay_max_ns = 3 * WF_NS_PER_MS,
		.stall_max_ns = WF_NS_PER_MS,
		.stall_per_mille = 50,
	};
}
