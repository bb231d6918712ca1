/* SPDX-License-Identifier: Apache-2.0 */
/* peers: the trainers of a job at a lane, which are numbered from 0: their memory, and who they
 * are. Thread: the lane's. */
#include "pserver/service.h"

#include <stdio.h>

enum weft_status
wf_peers_open(struct wf_lane *lane, uint32_t count)
{
	struct wf_peers *peers = &lane->peers;
	peers->count = count;
	peers->all = wf_zalloc_array(lane->env, count, sizeof(*peers->all));
	peers->own = wf_zalloc_array(lane->env, count, lane->service->peer_bytes);
	if (peers->all == NULL || peers->own == NULL) {
		wf_peers_close(lane);
		return wf_fail(WEFT_NOMEM, "lane %u: no memory for %u trainers", lane->opts.idx,
			       count);
	}
	lane->order.first = &peers->all[0].member;
	lane->order.stride = sizeof(peers->all[0]);
	lane->order.count = count;
	lane->order.staleness = WF_ORDER_NEVER;
	return WEFT_OK;
}

void
wf_peers_close(struct wf_lane *lane)
{
	struct wf_peers *peers = &lane->peers;
	lane->order = (struct wf_order){0};
	wf_free(lane->env, peers->own, peers->count * lane->service->peer_bytes);
	wf_free(lane->env, peers->all, peers->count * sizeof(*peers->all));
	*peers = (struct wf_peers){0};
}

struct wf_peer *
wf_peers_begin(struct wf_lane *lane, uint32_t trainer)
{
	struct wf_peer *peer = &lane->peers.all[trainer];
	if (peer->lane == NULL) {
		peer->lane = lane;
		peer->trainer = trainer;
		peer->member.step_next = 1;
		peer->own = (char *)lane->peers.own + trainer * lane->service->peer_bytes;
	}
	return peer;
}

void
wf_peers_begin_all(struct wf_lane *lane)
{
	for (uint32_t i = 0; i < lane->peers.count; i++) {
		(void)wf_peers_begin(lane, i);
	}
}

bool
wf_peers_is_loading(const struct wf_peers *peers)
{
	for (uint32_t i = 0; i < peers->count; i++) {
		if (peers->all[i].loading.is_due) {
			return true;
		}
	}
	return false;
}

struct wf_peer *
wf_peers_find_successor(const struct wf_peers *peers, const struct wf_conn *conn)
{
	for (uint32_t i = 0; i < peers->count; i++) {
		if (peers->all[i].successor.conn == conn) {
			return &peers->all[i];
		}
	}
	return NULL;
}

bool
wf_peer_has_newer_path(const struct wf_peer *peer)
{
	const struct wf_held *successor = &peer->successor;
	return successor->conn != NULL && successor->hello.incarnation == peer->hello.incarnation;
}

void
wf_peer_describe(const struct wf_peer *peer, char *out, size_t bytes)
{
	(void)snprintf(out, bytes, "trainer %u (host %s, pid %u)", peer->trainer, peer->hello.host,
		       peer->hello.pid);
}

void
wf_peers_list(const struct wf_lane *lane,
	      bool (*listed)(const struct wf_lane *lane, const struct wf_peer *peer), char *out,
	      size_t bytes)
{
	size_t used = 0;
	unsigned more = 0;
	out[0] = '\0';
	for (uint32_t i = 0; i < lane->peers.count; i++) {
		if (!listed(lane, &lane->peers.all[i])) {
			continue;
		}
		if (used + 32 > bytes) {
			more++;
			continue;
		}
		used += (size_t)snprintf(out + used, bytes - used, "%s%u", used > 0 ? ", " : "", i);
	}
	if (more > 0) {
		(void)snprintf(out + used, bytes - used, " and %u more", more);
	}
}
