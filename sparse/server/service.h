/* SPDX-License-Identifier: Apache-2.0 */
/* service: the sparse service of a lane: tables on a sparse port. The messages on a connection:
 * sparse/exchange.md. Thread: the lane's. */
#pragma once

#include "pserver/service.h"

/* For wf_server_opts.sparse. */
extern const struct wf_lane_service wf_sparse_service;

/* Counters of one table of the lane's job, for tests and tools on the lane's thread; NULL: there is
 * no such table here. */
struct wf_table;
const struct wf_table *wf_sparse_service_table(const struct wf_lane *lane, uint32_t table);
