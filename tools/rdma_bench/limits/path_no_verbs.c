/* SPDX-License-Identifier: Apache-2.0 */
/* path_no_verbs: a build without the backend "verbs". */
#include "tools/rdma_bench/limits/paths.h"

enum weft_status
wf_bare_verbs_open(struct wf_peer_end *end, struct wf_peer_path **out)
{
	return wf_fail(WEFT_UNSUPPORTED, "this build has no verbs (with_rdma: OFF)");
}

enum weft_status
wf_bare_verbs_join(struct wf_peer_path *path)
{
	return wf_fail(WEFT_UNSUPPORTED, "this build has no verbs (with_rdma: OFF)");
}
