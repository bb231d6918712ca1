/* SPDX-License-Identifier: Apache-2.0 */
/* paths: paths without weft, that it is measured against. Thread: main. */
#pragma once

#include "tools/rdma_bench/peer.h"

/* Both halves in memory of the path's own, touched. */
enum weft_status wf_bare_memory_of(struct wf_peer_path *path, struct wf_slab *slab) WEFT_MUST_CHECK;

enum weft_status wf_bare_socket_open(struct wf_peer_end *end,
				     struct wf_peer_path **out) WEFT_MUST_CHECK;
enum weft_status wf_bare_socket_join(struct wf_peer_path *path) WEFT_MUST_CHECK;

/* The server makes the memory, and offers it. */
enum weft_status wf_bare_shared_open(struct wf_peer_end *end, struct wf_peer_offer *offer,
				     struct wf_peer_path **out) WEFT_MUST_CHECK;
enum weft_status wf_bare_shared_join(struct wf_peer_path *path,
				     const struct wf_peer_offer *offer) WEFT_MUST_CHECK;

/* WEFT_UNSUPPORTED where the backend "verbs" is not built in. */
enum weft_status wf_bare_verbs_open(struct wf_peer_end *end,
				    struct wf_peer_path **out) WEFT_MUST_CHECK;
enum weft_status wf_bare_verbs_join(struct wf_peer_path *path) WEFT_MUST_CHECK;
