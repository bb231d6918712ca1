/* SPDX-License-Identifier: Apache-2.0 */
/* peer: `rdma_bench lat`, `bw` and `rate`: two processes, on one host or on two, that send to each
 * other through a transport of weft and, in turn with that, without weft.
 *
 * peer_options.c  what a user may say          peer_address.c  which address a device has
 * peer_control.c  the socket between the two   peer_words.c    what they say on it
 * peer_server.c, peer_client.c  the two ends   peer_report.c   what is printed
 * peer_loop.c  to and fro, and streams, over any path; peer_weft.c and limits/path_*.c  the paths.
 * Thread: main; there is no other. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"
#include "tools/rdma_bench/meter.h"
#include "tools/rdma_bench/peer_control.h"
#include "tools/rdma_bench/peer_options.h"
#include "tools/rdma_bench/peer_words.h"
#include "transport/tcp/tcp_congestion.h"

#define WF_PEER_PORTS 3u              /* control and sockets; weft; raw verbs */
#define WF_PEER_TOGETHER 32u          /* operations handed over at a time */
#define WF_PEER_ADDRESS_BYTES 64      /* an address in figures, perhaps with a scope */
#define WF_PEER_HALF_BYTES (1u << 20) /* least memory of one direction */

/* One end of the run. */
struct wf_peer_end {
	struct wf_env *env;
	const struct wf_peer_settings *set;
	bool client;
	struct wf_peer_control control;
	struct wf_peer_plan plan;
	/* Where the server's listeners are; of the client: where it goes to. */
	char address[WF_PEER_ADDRESS_BYTES];
	uint16_t port;                     /* of control; those of the paths follow */
	char verbs[WF_PEER_VERBS_BYTES];   /* settings of the transport */
	char local[WF_PEER_ADDRESS_BYTES]; /* RDMA: of the device that is wanted; "": any */
	char congestion[WF_TCP_CONGESTION_BYTES];
};

struct wf_peer_path;

/* How bytes go. Numbers of messages begin with 0 in each leg. */
struct wf_peer_path_ops {
	/* What the figure is of: "raw WRITE with immediate"; of weft: "weft". */
	const char *(*name)(const struct wf_peer_path *path, const struct wf_peer_leg *leg);
	/* A leg begins: path->leg is set, and numbers are 0. */
	void (*begin)(struct wf_peer_path *path);
	/* Send messages `first`, `first` + 1, ...; `*taken`: how many could be, also 0. */
	enum weft_status (*send)(struct wf_peer_path *path, uint64_t first, uint64_t count,
				 uint64_t *taken);
	/* Say that `count` messages have come in this leg. false in `*taken`: not now. */
	enum weft_status (*tell)(struct wf_peer_path *path, uint64_t count, bool *taken);
	/* Look what has happened: wf_peer_take, done, peer_has, busy, moved. */
	enum weft_status (*progress)(struct wf_peer_path *path);
	void (*close)(struct wf_peer_path *path);
};

struct wf_peer_path {
	const struct wf_peer_path_ops *ops;
	struct wf_peer_end *end;
	/* Messages come out of `src` and end up in `dst`, `areas` of them one behind the other. */
	uint8_t *src, *dst;
	uint64_t half_bytes; /* of each */

	/* Of the leg. */
	const struct wf_peer_leg *leg;
	uint64_t stride;
	uint64_t areas, areas_max; /* a power of two */
	uint64_t room;             /* messages that the peer may not have told of; 0: no limit */
	uint64_t prepared;         /* messages whose bytes are there */
	uint64_t sent, done, received;
	uint64_t peer_has, told;
	uint64_t busy; /* operations of the path's own that are not over */
	bool moved;    /* something happened */
	uint32_t idle_polls;
	uint64_t idle_ns; /* since when nothing happened; 0: not known */

	/* Of --verify, since the path was opened. */
	uint64_t checked, wrong;
	uint64_t wrong_number, wrong_at; /* of the first */

	uint32_t *table; /* that updates go to */
};

#define WF_PEER_TABLE_SLOTS 65536u

/* peer_loop.c */
/* Memory, and what all paths begin with. `shared`: both halves lie there already. */
enum weft_status wf_peer_path_init(struct wf_peer_path *path, const struct wf_peer_path_ops *ops,
				   struct wf_peer_end *end) WEFT_MUST_CHECK;
void wf_peer_path_fini(struct wf_peer_path *path);
uint64_t wf_peer_half_bytes(const struct wf_peer_plan *plan);
/* Run one leg, to its end at this end. `meter`: of the client's; NULL else. */
enum weft_status wf_peer_leg_run(struct wf_peer_path *path, const struct wf_peer_leg *leg,
				 struct wf_meter *meter) WEFT_MUST_CHECK;
/* The next message is here, at `data`. WEFT_PROTOCOL: there should be none. */
enum weft_status wf_peer_take(struct wf_peer_path *path, const uint8_t *data) WEFT_MUST_CHECK;
/* Messages that come without an event of their own. */
static inline uint8_t *
wf_peer_src(const struct wf_peer_path *path, uint64_t number)
{
	return path->src + (number & (path->areas - 1)) * path->stride;
}

static inline uint8_t *
wf_peer_dst(const struct wf_peer_path *path, uint64_t number)
{
	return path->dst + (number & (path->areas - 1)) * path->stride;
}

/* The paths. `listen` at the server, before it says what it offers; then `join` at both. */
enum weft_status wf_peer_weft_open(struct wf_peer_end *end,
				   struct wf_peer_path **out) WEFT_MUST_CHECK;
enum weft_status wf_peer_weft_join(struct wf_peer_path *path) WEFT_MUST_CHECK;
enum weft_status wf_bare_open(struct wf_peer_end *end, struct wf_peer_offer *offer,
			      struct wf_peer_path **out) WEFT_MUST_CHECK;
enum weft_status wf_bare_join(struct wf_peer_path *path,
			      const struct wf_peer_offer *offer) WEFT_MUST_CHECK;

/* peer_address.c */
/* RDMA: which device, and which address of it; into end->verbs and end->local. */
enum weft_status wf_peer_address_find(struct wf_peer_end *end) WEFT_MUST_CHECK;

/* peer_server.c, peer_client.c */
enum weft_status wf_peer_serve(struct wf_peer_end *end, bool *right) WEFT_MUST_CHECK;
struct wf_peer_run;
enum weft_status wf_peer_measure(struct wf_peer_end *end, struct wf_peer_run *out) WEFT_MUST_CHECK;
