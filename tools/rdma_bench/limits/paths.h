/* SPDX-License-Identifier: Apache-2.0 */
/* paths: raw ones, that weft's is measured against. Thread: main. */
#pragma once

#include "tools/rdma_bench/path.h"

/* The path over plan.over. The server opens it before it sends its offer; then both join. */
enum weft_status wf_bare_open(struct wf_peer_end *end, struct wf_peer_offer *offer,
			      struct wf_peer_path **out) WEFT_MUST_CHECK;
enum weft_status wf_bare_join(struct wf_peer_path *path,
			      const struct wf_peer_offer *offer) WEFT_MUST_CHECK;

/* path.c: a path of `bytes`, zeroed except for `ops` and `end`; free(3) releases it. */
enum weft_status wf_bare_create(struct wf_peer_end *end, const struct wf_peer_path_ops *ops,
				size_t bytes, struct wf_peer_path **out) WEFT_MUST_CHECK;
/* The other way. */
void wf_bare_destroy(struct wf_peer_path *path);

enum weft_status wf_bare_socket_open(struct wf_peer_end *end,
				     struct wf_peer_path **out) WEFT_MUST_CHECK;
enum weft_status wf_bare_socket_join(struct wf_peer_path *path) WEFT_MUST_CHECK;

/* The server creates the memory and offers it. */
enum weft_status wf_bare_shared_open(struct wf_peer_end *end, struct wf_peer_offer *offer,
				     struct wf_peer_path **out) WEFT_MUST_CHECK;
enum weft_status wf_bare_shared_join(struct wf_peer_path *path,
				     const struct wf_peer_offer *offer) WEFT_MUST_CHECK;

/* WEFT_UNSUPPORTED where the backend "verbs" is not built in. */
enum weft_status wf_bare_verbs_open(struct wf_peer_end *end,
				    struct wf_peer_path **out) WEFT_MUST_CHECK;
enum weft_status wf_bare_verbs_join(struct wf_peer_path *path) WEFT_MUST_CHECK;
