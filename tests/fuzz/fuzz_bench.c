/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the heads and bodies that one end of `rdma_bench lat`, `bw` and `rate` reads from
 * the other. The first byte selects which. */
#include <string.h>

#include "base/assert.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/rdma_bench/peer_words.h"

static void
head(const uint8_t *data, size_t bytes)
{
	struct wf_peer_head head;
	if (bytes >= WF_PEER_HEAD_BYTES && wf_peer_head_decode(data, &head) == WEFT_OK) {
		WF_ASSERT(head.body_bytes <= WF_PEER_BODY_MAX);
		WF_ASSERT(head.type >= WF_PEER_PLAN && head.type <= WF_PEER_WORD_MAX);
	}
}

static void
leg(const uint8_t *data, size_t bytes)
{
	const struct wf_peer_plan plan = {.bytes_max = 65536, .depth = 16};
	struct wf_peer_leg leg, turned;
	uint8_t again[WF_PEER_BODY_MAX];
	if (wf_peer_leg_decode(data, bytes, &plan, &leg) != WEFT_OK) {
		return;
	}
	WF_ASSERT(leg.bytes > 0 && leg.bytes <= plan.bytes_max);
	turned = leg; /* as the client has it */
	turned.send_count = leg.receive_count;
	turned.receive_count = leg.send_count;
	WF_ASSERT(wf_peer_leg_encode(&turned, again) == bytes && memcmp(again, data, bytes) == 0);
}

static void
plan(const uint8_t *data, size_t bytes)
{
	struct wf_peer_plan plan;
	uint8_t again[WF_PEER_BODY_MAX];
	if (wf_peer_plan_decode(data, bytes, &plan) == WEFT_OK) {
		WF_ASSERT(plan.bytes_max <= WF_PEER_BYTES_MAX && plan.depth <= WF_PEER_DEPTH_MAX);
		WF_ASSERT(wf_peer_plan_encode(&plan, again) == bytes &&
			  memcmp(again, data, bytes) == 0);
	}
}

static void
rest(const uint8_t *data, size_t bytes)
{
	struct wf_peer_offer offer;
	struct wf_peer_report report;
	if (wf_peer_offer_decode(data, bytes, &offer) == WEFT_OK) {
		WF_ASSERT(memchr(offer.address, '\0', sizeof(offer.address)) != NULL);
	}
	(void)!wf_peer_report_decode(data, bytes, &report);
	WF_ASSERT(wf_peer_failure_decode(data, bytes) != WEFT_OK);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	if (bytes == 0) {
		return 0;
	}
	switch (data[0] % 4) {
	case 0:
		head(data + 1, bytes - 1);
		break;
	case 1:
		leg(data + 1, bytes - 1);
		break;
	case 2:
		plan(data + 1, bytes - 1);
		break;
	default:
		rest(data + 1, bytes - 1);
		break;
	}
	return 0;
}
