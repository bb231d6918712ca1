/* SPDX-License-Identifier: Apache-2.0 */
/* beats: which trainers take no turns. A lane sends BEAT to trainers that it waits for, if they
 * have declared that they take turns by themselves: one whose caller moves its bytes may be away
 * for as long as it computes. Thread: the lane's. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "pserver/members.h"
#include "pserver/service.h"

/* Whether the lane waits in each way. */
struct waits {
	bool in[WF_LANE_AWAITS_COUNT];
};

static struct waits
find_waits(const struct wf_lane *lane)
{
	struct waits waits;
	for (enum wf_lane_awaits kind = 0; kind < WF_LANE_AWAITS_COUNT; kind++) {
		waits.in[kind] = wf_waits_since(lane, kind) != 0;
	}
	return waits;
}

static bool
wait_on(const struct waits *waits, const struct wf_lane *lane, const struct wf_peer *peer)
{
	bool any = false;
	for (enum wf_lane_awaits kind = 0; kind < WF_LANE_AWAITS_COUNT; kind++) {
		any = any || (waits->in[kind] && wf_waits_on(lane, kind, peer));
	}
	return any;
}

static bool
is_judged(const struct wf_peer *peer)
{
	return peer->state == WF_PEER_UP && peer->conn != NULL && !peer->closing &&
	       peer->beat.itself;
}

/* The trainer that has been silent longest of those waited for, if it is long enough to be
 * reported. */
static const struct wf_peer *
find_silent(const struct wf_lane *lane, const struct waits *waits)
{
	const struct wf_peer *longest = NULL;
	uint64_t longest_ns = 0;
	for (uint32_t i = 0; i < lane->peers.count; i++) {
		const struct wf_peer *peer = &lane->peers.all[i];
		uint64_t silent_ns = wf_beat_silent_ns(&peer->beat, &lane->waits.beats);
		if (silent_ns > longest_ns && is_judged(peer) && wait_on(waits, lane, peer)) {
			longest = peer;
			longest_ns = silent_ns;
		}
	}
	return longest_ns > 0 && wf_beat_is_silent(&longest->beat, &lane->waits.beats) ? longest
										       : NULL;
}

void
wf_lane_beats_look(struct wf_lane *lane, uint64_t now_ns)
{
	wf_beat_clock_look(&lane->waits.beats, now_ns);
	const struct waits waiting = find_waits(lane);
	for (uint32_t i = 0; i < lane->peers.count; i++) {
		struct wf_peer *peer = &lane->peers.all[i];
		if (peer->conn == NULL) {
			continue; /* nobody to ask, and the memory of who never came is not touched
				   */
		}
		bool waits = is_judged(peer) && wait_on(&waiting, lane, peer);
		if (wf_beat_look(&peer->beat, &lane->waits.beats, waits)) {
			wf_peer_due(peer);
		}
		uint64_t limit_ns = lane->opts.stall_timeout_ns;
		if (waits && limit_ns != 0 &&
		    wf_beat_silent_ns(&peer->beat, &lane->waits.beats) >= limit_ns) {
			char who[WF_REASON_BYTES];
			char reason[WF_REASON_BYTES];
			wf_peer_describe(peer, who, sizeof(who));
			(void)snprintf(reason, sizeof(reason),
				       "%.120s %s for %.1f s in step %" PRIu64
				       ": is it stopped? stall_timeout is the limit",
				       who, wf_beat_lacks(&peer->beat), (double)limit_ns / 1e9,
				       lane->order.sum.step);
			if (!wf_members_lose(lane, peer, reason)) {
				wf_lane_fail(lane, WEFT_TIMEOUT, lane->order.sum.step, "%s",
					     reason);
				return;
			}
		}
	}
	const struct wf_peer *silent = find_silent(lane, &waiting);
	wf_absent_note_silent(lane, silent != NULL ? silent->trainer + 1 : 0);
}

enum weft_status
wf_peer_on_beat(struct wf_lane *lane, struct wf_peer *peer, const struct wf_event *event)
{
	struct wf_msg_beat msg;
	enum weft_status st = wf_msg_beat_decode(event->msg.head, event->msg.body, &msg);
	if (st != WEFT_OK) {
		return st;
	}
	peer->beat.itself = msg.itself;
	peer->beat.pid = msg.pid;
	peer->beat.answer_due = peer->beat.answer_due || msg.asks;
	if (peer->beat.answer_due) {
		wf_peer_due(peer);
	}
	return WEFT_OK;
}

bool
wf_peer_beat_flush(struct wf_lane *lane, struct wf_peer *peer)
{
	const struct wf_msg_beat msg = {
		.asks = peer->beat.ask_due, .itself = true, .pid = (uint32_t)getpid()};
	wf_msg_beat_encode(&msg, &lane->msg);
	if (!wf_send(peer->conn, &lane->msg, msg.asks ? WF_BEAT_COOKIE : 0)) {
		return false;
	}
	peer->beat.ask_due = false;
	peer->beat.answer_due = false;
	return true;
}

void
wf_lane_beats_describe(const struct wf_lane *lane, enum wf_lane_awaits kind, char *out,
		       size_t bytes)
{
	struct waits waiting = {0};
	waiting.in[kind] = true;
	if (kind == WF_LANE_AWAITS_START) {
		waiting = find_waits(lane);
	}
	const struct wf_peer *longest = find_silent(lane, &waiting);
	char who[WF_REASON_BYTES];
	char silent[64];
	out[0] = '\0';
	if (longest != NULL &&
	    wf_beat_describe(&longest->beat, &lane->waits.beats, silent, sizeof(silent))) {
		wf_peer_describe(longest, who, sizeof(who));
		(void)snprintf(out, bytes, "; %.120s%s", who, silent);
	}
}
