/* SPDX-License-Identifier: Apache-2.0 */
/* events: the array into which a poll writes its events. Thread: the transport's owner. */
#pragma once

#include "base/assert.h"
#include "transport/transport.h"

/* The caller's array; `count` of `max` entries are written. */
struct wf_events {
	struct wf_event *at;
	unsigned max, count;
};

static inline bool
wf_events_full(const struct wf_events *events)
{
	return events->count >= events->max;
}

/* Sets the event's connection: `conn`, or the connection as which it is shown. UP and DOWN go to
 * "paths" first, before its user sees them. */
static inline void
wf_event_set_conn(struct wf_event *event, struct wf_conn *conn)
{
	bool told = event->kind <= WF_EVENT_DOWN;
	event->conn = told ? conn : conn->shown;
	if (told) {
		conn->transport->told = true;
	}
}

/* Adds an event of `conn`. There must be room; the caller fills in what an event of this kind has.
 */
static inline struct wf_event *
wf_events_add(struct wf_events *events, struct wf_conn *conn, enum wf_event_kind kind)
{
	WF_ASSERT(events->count < events->max);
	struct wf_event *event = &events->at[events->count++];
	event->kind = kind;
	wf_event_set_conn(event, conn);
	return event;
}
