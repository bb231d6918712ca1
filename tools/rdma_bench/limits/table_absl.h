/* SPDX-License-Identifier: Apache-2.0 */
/* table_absl: abseil's flat_hash_map from key to row, looked up key by key, as a program would
 * that has not thought of memory. The rows are those of a bare table. Only where abseil is
 * installed. Thread: the worker's. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tools/rdma_bench/limits/table.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wf_absl_map;

/* All keys of the bare table, whose rows it has. NULL: no memory. The end of the process gives it
 * back. */
struct wf_absl_map *wf_absl_map_create(const struct wf_bare_table *table);
/* As those of a bare table. */
void wf_absl_map_pull(const struct wf_absl_map *map, const uint64_t *key, size_t count, float *out);
void wf_absl_map_push(const struct wf_absl_map *map, const uint64_t *key, size_t count,
		      const float *grad);

#ifdef __cplusplus
}
#endif
