/* SPDX-License-Identifier: Apache-2.0 */
/* service_nack: requests that a lane refuses without closing the connection: the NACKs are listed
 * until the transport accepts them. Thread: the lane's. */
#include <stdio.h>
#include <string.h>

#include "sparse/server/service_internal.h"

bool
wf_nack_add(struct wf_peer *peer, uint64_t request_id, uint64_t step, uint32_t part)
{
	struct wf_sparse_peer *own = peer->own;
	const struct wf_error *why = wf_error_record();
	if (own->nack_count == WF_NACKS_MAX) {
		return false;
	}
	struct wf_sparse_nack *nack = &own->nack[own->nack_count++];
	*nack = (struct wf_sparse_nack){
		.request_id = request_id,
		.step = step,
		.part = part,
		.status = (uint16_t)why->status,
	};
	(void)snprintf(nack->reason, sizeof(nack->reason), "%.*s", WF_REASON_BYTES - 1, why->text);
	wf_stats_add(&peer->lane->stats, WF_LANE_PULL_REFUSED_COUNT, 1);
	wf_peer_due(peer);
	return true;
}

bool
wf_nack_flush(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_sparse_peer *own = peer->own;
	while (own->nack_count > 0) {
		wf_sparse_nack_encode(&own->nack[0], &lane->msg);
		if (!wf_control_send(peer, &lane->msg)) {
			return false;
		}
		own->nack_count--;
		memmove(&own->nack[0], &own->nack[1], own->nack_count * sizeof(own->nack[0]));
	}
	return true;
}
