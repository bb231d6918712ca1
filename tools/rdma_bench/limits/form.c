/* SPDX-License-Identifier: Apache-2.0 */
/* form: see form.h. Built once for each kind of processor, with the flags for it; WF_LIMIT_FORM is
 * that one's name. Thread: any. */
#include "tools/rdma_bench/limits/form.h"

#include <string.h>

#include "tools/rdma_bench/limits/table.h"

#ifndef WF_LIMIT_FORM
#define WF_LIMIT_FORM wf_limit_form_plain
#endif

static void
sum_sgd(float *param, const float *const *grad, size_t count, float rate)
{
	const float *a = grad[0], *b = grad[1], *c = grad[2], *d = grad[3];
	for (size_t i = 0; i < count; i++) {
		param[i] -= rate * (((a[i] + b[i]) + c[i]) + d[i]);
	}
}

static void
sgd(float *param, const float *grad, size_t count, float rate)
{
	for (size_t i = 0; i < count; i++) {
		param[i] -= rate * grad[i];
	}
}

static void
sum_rows(float *sum, const float *grad, const uint32_t *place, size_t count, size_t dim)
{
	uint32_t next = 0; /* the place that has no gradient yet */
	for (size_t i = 0; i < count; i++, grad += dim) {
		float *restrict to = sum + place[i] * dim;
		if (place[i] == next) {
			memcpy(to, grad, dim * sizeof(*to));
			next++;
			continue;
		}
		for (size_t j = 0; j < dim; j++) {
			to[j] += grad[j];
		}
	}
}

/* ---- rows ---- */

#define AT_ONCE 256u   /* keys whose slots are sent for together */
#define ROWS_AHEAD 12u /* rows on their way */
#define LINE_FLOATS 16u

static inline uint64_t
hash_of(uint64_t key)
{
	key = (key ^ key >> 32) * 0x9fb21c651e98df25u;
	return key ^ key >> 29;
}

static inline void
send_for(const float *row, size_t floats)
{
	for (size_t at = 0; at < floats; at += LINE_FLOATS) {
		__builtin_prefetch(row + at);
	}
}

/* Rows of up to AT_ONCE keys. */
static inline void
find(const struct wf_bare_table *table, const uint64_t *key, size_t count, size_t floats,
     float **row)
{
	uint64_t at[AT_ONCE];

	for (size_t i = 0; i < count; i++) {
		at[i] = hash_of(key[i]) & table->slot_mask;
		__builtin_prefetch(&table->slot[at[i]]);
	}
	for (size_t i = 0; i < count; i++) {
		uint64_t slot = at[i];
		while (table->slot[slot].key != key[i]) {
			slot = (slot + 1) & table->slot_mask;
		}
		row[i] = table->row + table->slot[slot].row * 2 * table->dim;
		if (i < ROWS_AHEAD) {
			send_for(row[i], floats);
		}
	}
}

static void
pull(const struct wf_bare_table *table, const uint64_t *key, size_t count, float *out)
{
	const size_t dim = table->dim;
	float *row[AT_ONCE];

	for (size_t first = 0; first < count; first += AT_ONCE) {
		const size_t part = count - first < AT_ONCE ? count - first : AT_ONCE;
		find(table, key + first, part, dim, row);
		for (size_t i = 0; i < part; i++, out += dim) {
			if (i + ROWS_AHEAD < part) {
				send_for(row[i + ROWS_AHEAD], dim);
			}
			memcpy(out, row[i], dim * sizeof(*out));
		}
	}
}

static inline void
adagrad(float *restrict w, const float *restrict g, size_t dim)
{
	float *restrict a = w + dim;

	for (size_t j = 0; j < dim; j++) {
		a[j] += g[j] * g[j];
		w[j] -= WF_LIMIT_ROW_RATE * g[j] / __builtin_sqrtf(a[j] + WF_LIMIT_ROW_EPSILON);
	}
}

static void
push(const struct wf_bare_table *table, const uint64_t *key, size_t count, const float *grad)
{
	const size_t dim = table->dim;
	float *row[AT_ONCE];

	for (size_t first = 0; first < count; first += AT_ONCE) {
		const size_t part = count - first < AT_ONCE ? count - first : AT_ONCE;
		find(table, key + first, part, 2 * dim, row);
		for (size_t i = 0; i < part; i++, grad += dim) {
			if (i + ROWS_AHEAD < part) {
				send_for(row[i + ROWS_AHEAD], 2 * dim);
			}
			adagrad(row[i], grad, dim);
		}
	}
}

static void
update(float *row, const float *grad, size_t dim)
{
	adagrad(row, grad, dim);
}

static void
insert(struct wf_bare_table *table, const uint64_t *key, size_t count)
{
	uint64_t at[AT_ONCE];

	for (size_t first = 0; first < count; first += AT_ONCE) {
		const size_t part = count - first < AT_ONCE ? count - first : AT_ONCE;
		for (size_t i = 0; i < part; i++) {
			at[i] = hash_of(key[first + i]) & table->slot_mask;
			__builtin_prefetch(&table->slot[at[i]], 1);
		}
		for (size_t i = 0; i < part; i++) {
			uint64_t slot = at[i];
			while (table->slot[slot].key != 0) {
				slot = (slot + 1) & table->slot_mask;
			}
			table->slot[slot] = (struct wf_bare_slot){key[first + i], table->row_count};
			memset(table->row + table->row_count * 2 * table->dim, 0,
			       2 * table->dim * sizeof(*table->row));
			table->row_count++;
		}
	}
}

#define SLOTS_AHEAD 32u

/* The slots of a run of keys ahead are on their way. */
static void
grow(struct wf_bare_table *table, struct wf_bare_slot *slot, uint64_t slot_count)
{
	const struct wf_bare_slot *old = table->slot;
	const uint64_t mask = slot_count - 1;

	for (uint64_t i = 0; old != NULL && i <= table->slot_mask; i++) {
		if (i + SLOTS_AHEAD <= table->slot_mask) {
			__builtin_prefetch(&slot[hash_of(old[i + SLOTS_AHEAD].key) & mask], 1);
		}
		if (old[i].key == 0) {
			continue;
		}
		uint64_t at = hash_of(old[i].key) & mask;
		while (slot[at].key != 0) {
			at = (at + 1) & mask;
		}
		slot[at] = old[i];
	}
	table->slot = slot;
	table->slot_mask = mask;
}

const struct wf_limit_form WF_LIMIT_FORM = {
	.sum_sgd = sum_sgd,
	.sgd = sgd,
	.sum_rows = sum_rows,
	.pull = pull,
	.push = push,
	.update = update,
	.insert = insert,
	.grow = grow,
};
