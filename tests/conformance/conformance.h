/* SPDX-License-Identifier: Apache-2.0 */
/* conformance: what the cases stand on. A case opens nodes (a transport each), lets them talk, and
 * checks what they saw. It may not ask which backend it is on: harness.c alone knows.
 * Thread: one; cases never block, they pump. */
#pragma once

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/rng.h"
#include "transport/transport.h"

#define NODE_MAX 8
#define NODE_REGION_BYTES (24u << 20)

/* An event as it was seen, with what it pointed to. */
struct seen {
	enum wf_event_kind kind;
	struct wf_conn *conn;
	bool used;               /* an await has taken it */
	bool incoming;           /* UP */
	enum weft_status status; /* DOWN, DONE */
	char why[WF_WHY_BYTES];  /* DOWN */
	uint64_t cookie;         /* DONE */
	uint32_t tag;            /* PUT */
	const uint8_t *data;     /* PUT into a slot: live until release */
	uint64_t put_bytes;      /* PUT */
	struct wf_head head;     /* MSG */
	uint8_t *bytes;          /* blob of UP and DOWN, body of MSG; a copy */
	size_t byte_count;
};

/* A place among the events of a node, and how many of a kind and a connection are before it. */
struct cursor {
	const struct wf_conn *conn; /* NULL: any */
	size_t at;
	unsigned before;
};

struct node {
	struct wf_transport *transport;
	struct wf_host at; /* where it listens; port 0: nowhere */
	struct wf_slab slab;
	uint8_t *memory; /* NODE_REGION_BYTES, its region */
	uint32_t region;
	struct seen *seen;
	size_t seen_count, seen_max;
	struct cursor counted[WF_EVENT_DONE + 1];   /* by kind; conf_count */
	struct cursor looked_at[WF_EVENT_DONE + 1]; /* conf_nth */
};

struct conf {
	struct wf_env *env;
	const char *transport;   /* name to open */
	const char *paths;       /* opts.paths */
	const char *secret_file; /* of nodes that are given none of their own; NULL: none */
	const char *host;        /* where nodes listen */
	bool private_memory;     /* regions have no memfd */
	bool says_bytes;         /* the medium knows how long a PUT was */
	bool loses_reasons;      /* a refusal may arrive without its text */
	const char *verbs;       /* settings of RDMA devices, or NULL */
	uint64_t hasty_ns;       /* a short attempt to connect, in which a hello still arrives */
	uint64_t seed;
	struct wf_rng rng;
	struct node node[NODE_MAX];
	unsigned node_count;
	unsigned poll_max; /* events asked of one poll */
	bool failed;       /* a helper has complained already */
};

struct wf_world;

/* A backend that one program of the cases has besides those that are built in: on a device that is
 * none, in a simulated world. Its URLs are the prefix and a kind. */
struct conf_extra {
	const char *prefix;
	const char *transport;                          /* the backend that stands on it */
	bool (*begin)(const char *kind, uint64_t seed); /* false: there is no such kind */
	void (*enter)(struct wf_world *world);
	const char *(*end)(void); /* NULL: nothing is left; else what, in words */
};

extern const struct conf_extra *conf_extra; /* NULL: none */

/* A connection between two nodes, both ends. */
struct pair {
	struct node *server, *client;
	struct wf_conn *sc, *cc; /* the server's end, the client's end */
};

struct conf_case {
	const char *name;
	bool (*run)(struct conf *t);
};

#define CASE(function)                                                                             \
	{                                                                                          \
#function, function                                                                \
	}

/* Ends the function, which returns bool, with false. */
#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                 \
			return false;                                                              \
		}                                                                                  \
	} while (0)

extern const struct conf_case conf_connect_cases[];
extern const struct conf_case conf_end_cases[];
extern const struct conf_case conf_event_cases[];
extern const struct conf_case conf_grant_cases[];
extern const struct conf_case conf_op_cases[];
extern const struct conf_case conf_traffic_cases[];

/* harness.c */
/* This machine has what the URL needs; else complains. */
bool conf_can_run(const char *url);
/* Run the body of a case in the env that belongs to the URL. */
bool conf_run(const char *url, uint64_t seed, bool (*body)(struct conf *t));

/* nodes.c; those that return a pointer or bool complain themselves. */
/* `opts` may be NULL; its env is filled in. */
struct node *conf_node(struct conf *t, const struct wf_transport_opts *opts);
/* A node that listens. */
struct node *conf_server(struct conf *t, const struct wf_transport_opts *opts);
void conf_node_close(struct conf *t, struct node *n);
/* Forget what the node has seen: its connections are about to be others at the same addresses. */
void conf_forget(struct node *n);
/* Poll each node once, waiting a little when nothing came. */
void conf_pump(struct conf *t);
/* As conf_pump, for one node alone, without waiting. Returns how many events came. */
unsigned conf_poll(struct conf *t, struct node *n);
/* Sleep a moment, as a caller between two empty polls. */
void conf_rest(struct conf *t);
/* Pump until nothing has come for a good while. */
void conf_settle(struct conf *t);
/* Pump until `n` has seen an event of `kind` (of `conn` if not NULL) that no await has taken. */
struct seen *conf_await(struct conf *t, struct node *n, const struct wf_conn *conn,
			enum wf_event_kind kind);
/* How many have been seen, taken or not. */
unsigned conf_count(struct node *n, const struct wf_conn *conn, enum wf_event_kind kind);
/* The idx-th of them; NULL. */
struct seen *conf_nth(struct node *n, const struct wf_conn *conn, enum wf_event_kind kind,
		      unsigned idx);
/* Pump until so many have been seen. */
bool conf_await_count(struct conf *t, struct node *n, const struct wf_conn *conn,
		      enum wf_event_kind kind, unsigned count);

/* A connection that is UP at both ends. */
bool conf_join(struct conf *t, struct node *server, struct node *client, struct pair *out);
/* Two fresh nodes, joined. */
bool conf_pair(struct conf *t, const struct wf_transport_opts *opts, struct pair *out);

/* A place or slots at the start of the node's region. */
bool conf_grant_place(struct node *n, struct wf_conn *conn, uint64_t offset, uint64_t bytes,
		      struct wf_grant_key *key);
bool conf_grant_slots(struct node *n, struct wf_conn *conn, uint64_t slot_bytes,
		      uint32_t slot_count, struct wf_grant_key *key);
/* A message whose body is `bytes` bytes made from `mark`. */
enum weft_status conf_send(struct wf_conn *conn, uint64_t mark, size_t bytes);
/* conf_send, pumping through AGAIN. */
bool conf_send_all(struct conf *t, struct wf_conn *conn, uint64_t mark, size_t bytes);
/* Is it the message that conf_send made from `mark`? */
bool conf_is_message(const struct seen *seen, uint64_t mark, size_t bytes);
struct wf_op conf_put_op(const struct node *n, const struct wf_grant_key *key, uint64_t src_offset,
			 uint64_t bytes, uint64_t cookie);
/* Post one operation; true when it was taken. */
bool conf_post(struct wf_conn *conn, const struct wf_op *op);
/* conf_post, pumping through AGAIN. */
bool conf_post_all(struct conf *t, struct wf_conn *conn, const struct wf_op *op);
/* Bytes that depend on `mark` and place. */
void conf_fill(uint8_t *out, size_t bytes, uint64_t mark);
bool conf_is_filled(const uint8_t *in, size_t bytes, uint64_t mark);
/* Each cookie below `count` has come with exactly one DONE. */
bool conf_is_done_once(struct node *n, const struct wf_conn *conn, unsigned count);
