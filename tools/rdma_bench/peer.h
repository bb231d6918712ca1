/* SPDX-License-Identifier: Apache-2.0 */
/* peer: `rdma_bench lat`, `bw` and `rate`: two processes, on one host or on two, that send to each
 * other through a transport of weft and, in turn with that, without weft.
 *
 * peer_options.c  what a user may set          peer_address.c  which address a device has
 * peer_control.c  the socket between the two   peer_words.c    the messages on it
 * peer_join.c  one more of those               path.h          what a path is
 * peer_server.c, peer_client.c  the two ends   peer_report.c   what is printed
 * peer_loop.c  to and fro, and streams, over any path; peer_weft.c and limits/path_*.c  the paths.
 * Thread: main; there is no other. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"
#include "tools/rdma_bench/meter.h"
#include "tools/rdma_bench/path.h"
#include "tools/rdma_bench/peer_options.h"

/* peer_loop.c */
/* Runs one leg, to its end at this end. `meter`: the client's; otherwise NULL. */
enum weft_status wf_peer_leg_run(struct wf_peer_path *path, const struct wf_peer_leg *leg,
				 struct wf_meter *meter) WEFT_MUST_CHECK;

/* peer_weft.c */
/* The path through weft. The server opens it before it sends its offer; then both join. */
enum weft_status wf_peer_weft_open(struct wf_peer_end *end,
				   struct wf_peer_path **out) WEFT_MUST_CHECK;
enum weft_status wf_peer_weft_join(struct wf_peer_path *path) WEFT_MUST_CHECK;

/* peer_address.c */
/* RDMA: which device, and which address of it; into end->verbs and end->local. */
enum weft_status wf_peer_address_find(struct wf_peer_end *end) WEFT_MUST_CHECK;

/* peer_server.c, peer_client.c */
enum weft_status wf_peer_serve(struct wf_peer_end *end, bool *right) WEFT_MUST_CHECK;
struct wf_peer_run;
enum weft_status wf_peer_measure(struct wf_peer_end *end, struct wf_peer_run *out) WEFT_MUST_CHECK;
