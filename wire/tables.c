/* SPDX-License-Identifier: Apache-2.0 */
/* tables: the description of a job's sparse tables. Thread: any; not on the data path. */
#include "wire/tables.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/digest.h"
#include "wire/shape.h"

#define TABLE "table"

/* Every f64 of a table, in the order of the wire. */
#define F64(field)                                                                                 \
	{                                                                                          \
#field, offsetof(struct wf_table_desc, field)                                      \
	}
#define ROW(field)                                                                                 \
	{                                                                                          \
		"row." #field, offsetof(struct wf_table_desc, row.set.field)                       \
	}
static const struct number {
	const char *name;
	size_t offset;
} numbers[] = {
	ROW(learning_rate),
	ROW(momentum),
	ROW(beta1),
	ROW(beta2),
	ROW(rho),
	ROW(epsilon),
	ROW(decay),
	ROW(clip),
	ROW(l1),
	ROW(l2),
	ROW(l21),
	ROW(ftrl_beta),
	ROW(schedule_a),
	ROW(schedule_b),
	F64(init.a),
	F64(init.b),
	F64(admit.probability),
	F64(evict.score_least),
	F64(evict.show_weight),
	F64(evict.click_weight),
	F64(evict.fade),
};

static double
number_of(const struct wf_table_desc *table, const struct number *number)
{
	double value;
	memcpy(&value, (const uint8_t *)table + number->offset, sizeof(value));
	return value;
}

static enum weft_status
check_name(const char *name)
{
	size_t length = strnlen(name, WF_TENSOR_NAME_BYTES);

	if (length == 0 || length == WF_TENSOR_NAME_BYTES) {
		return wf_fail(WEFT_INVALID, TABLE ": its name has %zu characters, must be 1 to %d",
			       length, WF_TENSOR_NAME_BYTES - 1);
	}
	for (size_t i = 0; i < length; i++) {
		uint8_t byte = (uint8_t)name[i];
		if (byte <= 0x20 || byte > 0x7e) {
			return wf_fail(WEFT_INVALID,
				       TABLE ": byte %zu of its name is 0x%02x, must be printable "
					     "ASCII and no space",
				       i, byte);
		}
	}
	return WEFT_OK;
}

static enum weft_status
invalid(const struct wf_table_desc *table, const char *field, uint64_t value, const char *rule)
{
	return wf_fail(WEFT_INVALID, TABLE " %s: %s is %" PRIu64 ", must be %s", table->name, field,
		       value, rule);
}

enum weft_status
wf_table_desc_check(const struct wf_table_desc *table)
{
	enum weft_status st = check_name(table->name);
	if (st != WEFT_OK) {
		return st;
	}
	if (table->dim == 0 || table->dim > WF_TABLE_DIM_MAX) {
		return invalid(table, "dim", table->dim, "1 to 4096 values");
	}
	if (table->value_rest >= WF_VALUE_FORMAT_COUNT) {
		return invalid(table, "value_rest", table->value_rest, "0 f32, 1 bf16 or 2 f16");
	}
	if (table->value_wire >= WF_VALUE_FORMAT_COUNT) {
		return invalid(table, "value_wire", table->value_wire, "0 f32, 1 bf16 or 2 f16");
	}
	for (size_t i = 0; i < WF_ARRAY_COUNT(numbers); i++) {
		double value = number_of(table, &numbers[i]);
		if (!isfinite(value)) {
			return wf_fail(WEFT_INVALID, TABLE " %s: %s is %g, must be finite",
				       table->name, numbers[i].name, value);
		}
	}
	return WEFT_OK;
}

enum weft_status
wf_tables_check_mode(const struct wf_tables *tables)
{
	if (tables->mode > WEFT_SPARSE_BOUNDED) {
		return wf_fail(WEFT_INVALID,
			       TABLE "s: mode is %u, must be 0 (sync), 1 (async) or 2 (bounded)",
			       tables->mode);
	}
	if (tables->staleness > 0 && tables->mode != WEFT_SPARSE_BOUNDED) {
		return wf_fail(WEFT_INVALID,
			       TABLE "s: staleness is %" PRIu32 " in mode %u, must be 0",
			       tables->staleness, tables->mode);
	}
	bool lag = tables->mode != WEFT_SPARSE_SYNC;
	if (!(tables->discard_ratio >= 0 && tables->discard_ratio <= (lag ? 1e6 : 0))) {
		return wf_fail(WEFT_INVALID, TABLE "s: discard_ratio is %g, must be 0%s",
			       tables->discard_ratio, lag ? " to 1,000,000" : " in mode 0");
	}
	return WEFT_OK;
}

enum weft_status
wf_tables_check(const struct wf_tables *tables)
{
	if (tables->table_count == 0 || tables->table_count > WF_TABLE_COUNT_MAX) {
		return wf_fail(WEFT_INVALID, TABLE "s: there are %" PRIu32 ", must be 1 to %u",
			       tables->table_count, WF_TABLE_COUNT_MAX);
	}
	enum weft_status mode = wf_tables_check_mode(tables);
	if (mode != WEFT_OK) {
		return mode;
	}
	for (uint32_t i = 0; i < tables->table_count; i++) {
		enum weft_status st = wf_table_desc_check(&tables->table[i]);
		if (st != WEFT_OK) {
			return st;
		}
		for (uint32_t j = 0; j < i; j++) {
			if (strcmp(tables->table[i].name, tables->table[j].name) == 0) {
				return wf_fail(WEFT_INVALID,
					       TABLE " %s: two tables have this name, each needs "
						     "its own",
					       tables->table[i].name);
			}
		}
	}
	return WEFT_OK;
}

void
wf_table_desc_put(struct wf_writer *w, const struct wf_table_desc *table)
{
	wf_put_u32(w, table->dim);
	wf_put_u64(w, table->vocabulary);
	wf_put_u64(w, table->memory_cap_bytes);
	wf_put_u8(w, table->value_rest);
	wf_put_u8(w, table->value_wire);
	wf_put_u8(w, table->row.set.dense_equivalent != 0 ? 1 : 0);
	wf_put_u8(w, table->evict.at_cap ? 1 : 0);
	wf_put_u32(w, (uint32_t)table->row.kind);
	wf_put_u32(w, (uint32_t)table->row.schedule);
	wf_put_u32(w, table->init.kind);
	wf_put_u64(w, table->init.seed);
	wf_put_u32(w, table->admit.count);
	wf_put_u32(w, table->admit.slot_count);
	wf_put_u64(w, table->evict.age_steps);
	wf_put_u64(w, table->evict.fade_steps);
	for (size_t i = 0; i < WF_ARRAY_COUNT(numbers); i++) {
		wf_put_f64(w, number_of(table, &numbers[i]));
	}
	wf_put_string(w, table->name);
}

/* A u8 that is 0 or 1. */
static bool
get_flag(struct wf_reader *r, uint8_t *wrong)
{
	uint8_t value = wf_get_u8(r);
	*wrong = value > 1 ? value : *wrong;
	return value == 1;
}

enum weft_status
wf_table_desc_get(struct wf_reader *r, struct wf_table_desc *out)
{
	struct wf_table_desc table = {0};
	uint8_t wrong = 0;

	table.dim = wf_get_u32(r);
	table.vocabulary = wf_get_u64(r);
	table.memory_cap_bytes = wf_get_u64(r);
	table.value_rest = wf_get_u8(r);
	table.value_wire = wf_get_u8(r);
	table.row.set.dense_equivalent = get_flag(r, &wrong);
	table.evict.at_cap = get_flag(r, &wrong);
	table.row.kind = (enum wf_row_optimizer)wf_get_u32(r);
	table.row.schedule = (enum wf_schedule)wf_get_u32(r);
	table.init.kind = wf_get_u32(r);
	table.init.seed = wf_get_u64(r);
	table.admit.count = wf_get_u32(r);
	table.admit.slot_count = wf_get_u32(r);
	table.evict.age_steps = wf_get_u64(r);
	table.evict.fade_steps = wf_get_u64(r);
	for (size_t i = 0; i < WF_ARRAY_COUNT(numbers); i++) {
		double value = wf_get_f64(r);
		memcpy((uint8_t *)&table + numbers[i].offset, &value, sizeof(value));
	}
	if (r->bad) {
		return wf_refuse_length(TABLE, r);
	}
	if (wrong != 0) {
		return wf_refuse(TABLE, "dense_equivalent or at_cap", wrong, "0 or 1");
	}
	wf_get_string(r, table.name, sizeof(table.name));
	if (r->bad) {
		return wf_refuse_text(TABLE, "its name", r, sizeof(table.name));
	}
	if (wf_table_desc_check(&table) != WEFT_OK) {
		return wf_fail(WEFT_PROTOCOL, "%s", weft_last_error());
	}
	*out = table;
	return WEFT_OK;
}

uint64_t
wf_tables_digest(const struct wf_tables *tables)
{
	uint8_t bytes[WF_TABLE_BYTES_MAX + sizeof(uint64_t)];
	uint64_t digest = 0;
	struct wf_writer fixed = {.base = bytes, .capacity = sizeof(bytes)};

	wf_put_u8(&fixed, (uint8_t)tables->grad_reduce);
	wf_put_u8(&fixed, (uint8_t)tables->nonfinite);
	wf_put_u32(&fixed, tables->table_count);
	wf_put_u8(&fixed, tables->mode);
	wf_put_u32(&fixed, tables->staleness);
	wf_put_f64(&fixed, tables->discard_ratio);
	digest = wf_digest_of(bytes, fixed.used);
	for (uint32_t i = 0; i < tables->table_count; i++) {
		struct wf_writer w = {.base = bytes, .capacity = sizeof(bytes)};
		wf_put_u64(&w, digest);
		wf_table_desc_put(&w, &tables->table[i]);
		WF_ASSERT(!w.bad);
		digest = wf_digest_of(bytes, w.used);
	}
	return digest;
}

uint64_t
wf_tables_bytes(const struct wf_tables *tables)
{
	uint8_t bytes[WF_TABLE_BYTES_MAX];
	uint64_t sum = 0;
	for (uint32_t i = 0; i < tables->table_count; i++) {
		struct wf_writer w = {.base = bytes, .capacity = sizeof(bytes)};
		wf_table_desc_put(&w, &tables->table[i]);
		WF_ASSERT(!w.bad);
		sum += WF_TABLE_FIXED_BYTES + w.used;
	}
	return sum;
}
