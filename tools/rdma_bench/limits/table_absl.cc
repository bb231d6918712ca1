// SPDX-License-Identifier: Apache-2.0
// table_absl: see table_absl.h. Thread: the worker's.
#include "tools/rdma_bench/limits/table_absl.h"

#include <cstring>
#include <new>

#include <absl/container/flat_hash_map.h>

#include "tools/rdma_bench/limits/form.h"

struct wf_absl_map {
	absl::flat_hash_map<uint64_t, uint32_t> row_of;
	const struct wf_bare_table *table;
};

struct wf_absl_map *
wf_absl_map_create(const struct wf_bare_table *table)
{
	try {
		auto *map = new wf_absl_map();
		map->table = table;
		map->row_of.reserve(table->row_count);
		for (uint64_t slot = 0; slot <= table->slot_mask; slot++) {
			if (table->slot[slot].key != 0) {
				map->row_of.emplace(table->slot[slot].key,
						    static_cast<uint32_t>(table->slot[slot].row));
			}
		}
		return map;
	} catch (const std::bad_alloc &) {
		return nullptr;
	}
}

void
wf_absl_map_pull(const struct wf_absl_map *map, const uint64_t *key, size_t count, float *out)
{
	const size_t dim = map->table->dim;
	for (size_t i = 0; i < count; i++) {
		const float *row = map->table->row + map->row_of.find(key[i])->second * 2 * dim;
		std::memcpy(out + i * dim, row, dim * sizeof(*out));
	}
}

void
wf_absl_map_push(const struct wf_absl_map *map, const uint64_t *key, size_t count,
		 const float *grad)
{
	const size_t dim = map->table->dim;
	for (size_t i = 0; i < count; i++) {
		float *row = map->table->row + map->row_of.find(key[i])->second * 2 * dim;
		map->table->form->update(row, grad + i * dim, dim);
	}
}
