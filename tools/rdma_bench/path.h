/* SPDX-License-Identifier: Apache-2.0 */
/* path: how bytes go from one end of `rdma_bench lat`, `bw` or `rate` to the other: what weft's
 * path and the raw ones have in common, and all of the benchmark that a raw one may know. The loops
 * over a path are in peer_loop.c. Thread: main; there is no other. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tools/rdma_bench/congestion.h"
#include "tools/rdma_bench/peer_control.h"
#include "tools/rdma_bench/peer_words.h"

struct wf_env;
struct wf_peer_settings;

#define WF_PEER_TOGETHER 32u     /* operations handed over at a time */
#define WF_PEER_ADDRESS_BYTES 64 /* an address in figures, perhaps with a scope */
#define WF_PEER_VERBS_BYTES 256  /* settings of a transport */

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
	char congestion[WF_BENCH_CONGESTION_BYTES];
};

struct wf_peer_path;

/* Numbers of messages begin with 0 in each leg. */
struct wf_peer_path_ops {
	/* What the figure belongs to: "raw WRITE with immediate"; of weft: "weft". */
	const char *(*name)(const struct wf_peer_path *path, const struct wf_peer_leg *leg);
	/* Begins a leg: path->leg is set, and all counters are 0. */
	void (*begin)(struct wf_peer_path *path);
	/* Sends messages `first`, `first` + 1, ...; `*taken` is the number of messages sent,
	 * possibly 0. */
	enum weft_status (*send)(struct wf_peer_path *path, uint64_t first, uint64_t count,
				 uint64_t *taken);
	/* Reports to the peer that `count` messages of this leg have arrived. If `*taken` is false
	 * the call must be repeated. */
	enum weft_status (*report)(struct wf_peer_path *path, uint64_t count, bool *taken);
	/* Collects what has happened: calls wf_peer_on_message and updates done, peer_has, busy and
	 * moved. */
	enum weft_status (*progress)(struct wf_peer_path *path);
	void (*close)(struct wf_peer_path *path);
};

/* The memory of messages, which are sent from `src` and arrive in `dst`, one behind the other. */
struct wf_peer_areas {
	uint8_t *src, *dst;  /* set by the path when it is opened */
	uint64_t half_bytes; /* of each */
	/* Of the leg. A path's `begin` may set stride and count_max. */
	uint64_t stride;           /* from one message to the next */
	uint64_t count, count_max; /* of messages; the count is a power of two */
};

/* Since when nothing has happened. */
struct wf_peer_idle {
	uint32_t polls;
	uint64_t since_ns; /* 0: not known */
};

struct wf_peer_path {
	const struct wf_peer_path_ops *ops;
	struct wf_peer_end *end;
	struct wf_peer_areas areas;

	/* Of the leg. */
	const struct wf_peer_leg *leg;
	uint64_t room;     /* messages that the peer may not have reported yet; 0: no limit */
	uint64_t prepared; /* messages whose bytes are written */
	uint64_t sent, done, received;
	uint64_t peer_has, told;
	uint64_t busy; /* operations of the path's own that are not over */
	bool moved;    /* something happened */
	struct wf_peer_idle idle;

	struct wf_peer_report verified; /* by --verify, since the path was opened */
	uint32_t *table;                /* that updates go to */
};

/* What all paths begin with. */
enum weft_status wf_peer_path_init(struct wf_peer_path *path, const struct wf_peer_path_ops *ops,
				   struct wf_peer_end *end) WEFT_MUST_CHECK;
void wf_peer_path_fini(struct wf_peer_path *path);
/* The next message is here, at `data`. WEFT_PROTOCOL: there should be none. */
enum weft_status wf_peer_on_message(struct wf_peer_path *path, const uint8_t *data) WEFT_MUST_CHECK;
/* Opens one more TCP connection between the two ends of this run, both of which call this; the
 * server closes others. */
enum weft_status wf_peer_join(struct wf_peer_end *end, int *fd) WEFT_MUST_CHECK;

/* Bytes from the first area to that of message `number`. */
static inline uint64_t
wf_peer_area_offset(const struct wf_peer_areas *areas, uint64_t number)
{
	return (number & (areas->count - 1)) * areas->stride;
}

static inline uint8_t *
wf_peer_src(const struct wf_peer_path *path, uint64_t number)
{
	return path->areas.src + wf_peer_area_offset(&path->areas, number);
}

static inline uint8_t *
wf_peer_dst(const struct wf_peer_path *path, uint64_t number)
{
	return path->areas.dst + wf_peer_area_offset(&path->areas, number);
}
