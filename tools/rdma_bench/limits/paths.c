/* SPDX-License-Identifier: Apache-2.0 */
/* paths: which of the raw paths it is. */
#include "tools/rdma_bench/limits/paths.h"

enum weft_status
wf_bare_open(struct wf_peer_end *end, struct wf_peer_offer *offer, struct wf_peer_path **out)
{
	switch (end->plan.over) {
	case WF_PEER_TCP:
		return wf_bare_socket_open(end, out);
	case WF_PEER_SHM:
		return wf_bare_shared_open(end, offer, out);
	case WF_PEER_VERBS:
		return wf_bare_verbs_open(end, out);
	}
	return wf_fail(WEFT_INTERNAL, "transport %d", (int)end->plan.over);
}

enum weft_status
wf_bare_join(struct wf_peer_path *path, const struct wf_peer_offer *offer)
{
	switch (path->end->plan.over) {
	case WF_PEER_TCP:
		return wf_bare_socket_join(path);
	case WF_PEER_SHM:
		return wf_bare_shared_join(path, offer);
	case WF_PEER_VERBS:
		return wf_bare_verbs_join(path);
	}
	return wf_fail(WEFT_INTERNAL, "transport %d", (int)path->end->plan.over);
}
