/* SPDX-License-Identifier: Apache-2.0 */
/* refuse: how whoever asks for a place is told that there is none, and why: the failure that is
 * recorded (base/status.h). Its connection ends. Thread: the lane's. */
#pragma once

#include <stdbool.h>

struct wf_conn;
struct wf_lane;

/* `job_is_over`: the failure is the first cause of the job's end. */
void wf_refuse_unlogged(struct wf_conn *conn, bool job_is_over);
/* No trainer but a `who`, "pserver" or "watcher". It is logged, unless it is to try again
 * (WEFT_UNAVAILABLE). */
void wf_refuse_other(struct wf_lane *lane, struct wf_conn *conn, const char *who);
/* A pserver that takes this lane for the registrar. */
void wf_refuse_other_port(struct wf_lane *lane, struct wf_conn *conn);
