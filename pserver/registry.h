/* SPDX-License-Identifier: Apache-2.0 */
/* registry: the connections between the registrar (lane 0 of pserver 0) and the other pservers of a
 * job, one for each, and what lane 0 of a pserver does over them. They are made through the lanes'
 * own ports, with a HELLO of the service "registry", and are authenticated like all others of the
 * job. Messages: wire/registry_messages.h. A connection keeps nothing: what is lost with it is sent
 * again on the next one.
 *
 * Lives as long as the job of lane 0. Thread: lane 0's. */
#pragma once

#include "pserver/registrar.h"
#include "pserver/service.h"

struct wf_registry;

/* `about`: of the job, as for wf_registrar_open; owned from here on; NULL: no snapshots are taken.
 * WEFT_INVALID: this pserver does not know the registrar; and as wf_registrar_open. */
enum weft_status wf_registry_open(struct wf_lane *lane, struct wf_manifest *about,
				  struct wf_registry **out) WEFT_MUST_CHECK;
/* The job has ended well. */
void wf_registry_end(struct wf_registry *registry);
/* All trainers of this pserver have left. Whether the job has ended, as far as is known here; else
 * `*next_ns` is when it is to be asked again. */
bool wf_registry_is_over(struct wf_registry *registry, uint64_t now_ns, uint64_t *next_ns);
/* The job is over. Accepts NULL. */
void wf_registry_close(struct wf_registry *registry);
/* The service's `registry`. */
void wf_registry_event(struct wf_registry *registry, const struct wf_event *event,
		       const struct wf_hello *hello);
/* Does what is due, and returns when it wants to be called again. */
uint64_t wf_registry_look(struct wf_registry *registry, uint64_t now_ns);
/* Where snapshots are vectors of versions: whether one may be ordered in the next look. */
void wf_registry_allow(struct wf_registry *registry, bool may_order);
/* Lane 0 has come to the border: as wf_registrar_note; NULL: another pserver does that. */
struct wf_manifest_position *wf_registry_note(struct wf_registry *registry, uint64_t border,
					      const struct wf_snapshot_moment *moment);
