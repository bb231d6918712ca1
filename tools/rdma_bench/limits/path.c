/* SPDX-License-Identifier: Apache-2.0 */
/* path: the common part of every raw path. */
#include "tools/rdma_bench/limits/paths.h"

#include <stdlib.h>

enum weft_status
wf_bare_create(struct wf_peer_end *end, const struct wf_peer_path_ops *ops, size_t bytes,
	       struct wf_peer_path **out)
{
	struct wf_peer_path *path = calloc(1, bytes);
	if (path == NULL) {
		return wf_fail(WEFT_NOMEM, "a raw path: %zu bytes", bytes);
	}
	enum weft_status st = wf_peer_path_init(path, ops, end);
	if (st != WEFT_OK) {
		free(path);
		return st;
	}
	*out = path;
	return WEFT_OK;
}

void
wf_bare_destroy(struct wf_peer_path *path)
{
	wf_peer_path_fini(path);
	free(path);
}
