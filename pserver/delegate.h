/* SPDX-License-Identifier: Apache-2.0 */
/* delegate: a pserver's end of its connection to the registrar (registry.h): it connects, again and
 * again, reports where the pserver stands, and does what it is told: look at what the job begins
 * with, begin, take a snapshot.
 *
 * Lives as long as the job of lane 0. Thread: lane 0's. */
#pragma once

#include "pserver/service.h"
#include "pserver/snapshots.h"
#include "wire/registry_messages.h"

struct wf_delegate;

/* What both ends of a connection have alike. */
#define WF_REGISTRY_LOST_NS (3 * WF_NS_PER_S)    /* without a connection, until that is logged */
#define WF_REGISTRY_RETRY_NS (10 * WF_NS_PER_MS) /* for what the transport did not accept */
#define WF_REGISTRY_EARLY_NS (5 * WF_NS_PER_S)   /* for all lanes of the pserver to get the job */
static inline struct wf_registry_id
wf_registry_id_of(const struct wf_snapshot_base *base)
{
	return (struct wf_registry_id){.epoch = base->id.epoch, .step = base->id.step};
}

/* WEFT_INVALID: the pserver does not know the registrar; WEFT_NOMEM */
enum weft_status wf_delegate_open(struct wf_lane *lane, struct wf_delegate **out) WEFT_MUST_CHECK;
void wf_delegate_close(struct wf_delegate *delegate); /* accepts NULL */
/* Something of a connection that is no trainer's, which need not be this one. */
void wf_delegate_event(struct wf_delegate *delegate, const struct wf_event *event);
/* As wf_registry_is_over: in a job that goes back, whether the registrar has recorded its end. */
bool wf_delegate_is_over(struct wf_delegate *delegate, uint64_t now_ns, uint64_t *next_ns);
/* Does what is due, and returns when it wants to be called again. */
uint64_t wf_delegate_look(struct wf_delegate *delegate, uint64_t now_ns);
