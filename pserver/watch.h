/* SPDX-License-Identifier: Apache-2.0 */
/* watch: connections of those who ask how the job is (wire/watch_messages.h), at lane 0. They are
 * no members of the job: nothing waits for them, and nothing of the job changes by them. What they
 * cost is bounded: WF_WATCHERS_MAX at a time, one question each, and a few records every other
 * millisecond for all of them together. They are answered out of what the lanes show (view.h).
 * Thread: the lane's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "transport/transport.h"

#define WF_WATCHERS_MAX 8u

struct wf_lane;
struct wf_watchers; /* of a lane to which one has come */

/* A connection with such a hello is UP: accepts or refuses it. */
void wf_watch_up(struct wf_lane *lane, struct wf_conn *conn);
/* Whether it is an event of a watcher's connection, which is handled then. */
bool wf_watch_event(struct wf_lane *lane, const struct wf_event *event);
/* The clock was read: sends what is due, and says when there is more to do
 * (wf_turn_tick_before). */
void wf_watch_look(struct wf_lane *lane, uint64_t now_ns);
/* The lane is about to be destroyed; its connections are gone. */
void wf_watch_close(struct wf_lane *lane);
