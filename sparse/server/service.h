/* SPDX-License-Identifier: Apache-2.0 */
/* service: the sparse service of a lane, which serves tables on a sparse port. sparse/exchange.md
 * has the messages of a connection. Thread: the lane's. */
#pragma once

#include "pserver/service.h"

/* For wf_server_opts.sparse. */
extern const struct wf_lane_service wf_sparse_service;

/* Table number `table` of the lane's job, for tests and tools on the lane's thread; NULL: this lane
 * has no such table. */
struct wf_table;
const struct wf_table *wf_sparse_service_table(const struct wf_lane *lane, uint32_t table);
