/* SPDX-License-Identifier: Apache-2.0 */
/* membership: what lane 0 of pserver 0, the registrar, decides about trainers that are lost, leave
 * or join, for all lanes of all pservers: rules 2, 4 and 5 of docs/architecture.md, section 4. One
 * change after the other: all pservers report where they stand (STANDS), the border follows from
 * that, and the next change begins when all have it (SETTLED). A pserver that is not connected is
 * waited for.
 *
 * Lives as long as the job of lane 0. Thread: lane 0's. */
#pragma once

#include "pserver/service.h"
#include "wire/registry_messages.h"

struct wf_membership;

/* WEFT_NOMEM */
enum weft_status wf_membership_open(struct wf_lane *lane,
				    struct wf_membership **out) WEFT_MUST_CHECK;
void wf_membership_close(struct wf_membership *self); /* accepts NULL */
/* Does what is due, and returns when it wants to be called again. It may end the lane's job. */
uint64_t wf_membership_look(struct wf_membership *self, uint64_t now_ns);
/* Messages of pserver `idx`. WEFT_PROTOCOL: it was not asked for that. */
enum weft_status wf_membership_on_lost(struct wf_membership *self, uint32_t idx,
				       const struct wf_registry_lost *msg) WEFT_MUST_CHECK;
enum weft_status wf_membership_on_comes(struct wf_membership *self, uint32_t idx,
					const struct wf_registry_comes *msg) WEFT_MUST_CHECK;
enum weft_status wf_membership_on_stands(struct wf_membership *self, uint32_t idx,
					 const struct wf_registry_stands *msg) WEFT_MUST_CHECK;
enum weft_status wf_membership_on_settled(struct wf_membership *self, uint32_t idx,
					  const struct wf_registry_settled *msg) WEFT_MUST_CHECK;
/* What the pserver has not answered yet; NULL: nothing. */
const struct wf_registry_member *wf_membership_order(const struct wf_membership *self,
						     uint32_t idx);
