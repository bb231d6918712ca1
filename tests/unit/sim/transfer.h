/* SPDX-License-Identifier: Apache-2.0 */
/* transfer: a client process that PUTs items into a place of a server process, each followed by a
 * message, and books of what both saw. Thread: the world's; a procedure in a proc reports by
 * counters and its result, never by an assertion of the test framework. */
#pragma once

#include "tests/double/sim/world.h"
#include "transport/transport.h"

#define PORT 7000
#define ITEM_BYTES 100u
#define ITEM_COUNT 24u /* PUTs of a transfer; a message follows each */
#define MSG_KEY 1
#define MSG_ITEM 2
#define MSG_THANKS 3

/* One process of a transfer: a client PUTs items into a place of a server. */
struct node {
	struct wf_env *env;
	struct wf_transport *transport;
	struct wf_conn *conn;
	struct wf_slab slab;
	uint32_t region;
	const char *server_host; /* client */
	unsigned attempts_max;   /* client; 0: one */

	unsigned attempts;
	unsigned posted; /* operations accepted */
	struct wf_grant_key key;
	bool has_key;
	bool thanked;

	unsigned ups, downs, puts, msgs, dones, dones_lost;
	unsigned early; /* client: DONE before the server had the item; server: bytes before events
			 */
	unsigned partial;    /* server: looks that saw a part of an item */
	unsigned violations; /* of what must hold in any run */
	unsigned after_down; /* server: bytes that changed after DOWN */
	enum weft_status down_status;
	char why[WF_WHY_BYTES];
	struct node *peer; /* its counters; read only */
	uint64_t down_ns;
};

struct transfer {
	struct node client;
	struct node server;
	struct wf_world_stats stats;
};

extern const struct wf_world_opts calm; /* no faults */

/* What all bytes of an item are; never 0. */
uint8_t item_byte(unsigned item);
/* Opens its transport, and adds a slab as its region. */
enum weft_status open_node(struct node *node, struct wf_env *env);
void close_node(struct node *node);
/* Polls once and handles the events; returns their number. */
unsigned poll_node(struct node *node);
void post_items(struct node *client);
void begin_attempt(struct node *client);
/* Connects, PUTs all items, each followed by a message, until the server acknowledges. */
int run_client(struct wf_env *env, void *arg);
/* Until a client has closed in good order, or 10 s after the last connection went down. */
int run_server(struct wf_env *env, void *arg);
/* Server: counts items whose bytes have arrived without their event. */
void look_for_early_bytes(struct node *server);
/* WEFT_SEED, or 1. */
uint64_t first_seed(void);
struct wf_world *world_of(struct wf_world_opts opts);
struct wf_proc *spawn(struct wf_world *world, const char *host, uint64_t start_ns,
		      int (*run)(struct wf_env *env, void *arg), void *arg);
void assert_returned(const struct wf_proc *proc, uint64_t seed);
void assert_run(struct wf_world *world, uint64_t seed);
/* One world, one client that comes back after each cut, one server; all must end well. */
void transfer(struct wf_world_opts opts, struct transfer *out);
/* Every fault there is. */
struct wf_world_opts rough(uint64_t seed);
