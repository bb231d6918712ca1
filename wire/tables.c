/* SPDX-License-Identifier: Apache-2.0 */
/* tables: the description of a job's sparse tables. Thread: any; not on the data path. */
#include "wire/tables.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/digest.h"
#include "wire/name.h"
#include "wire/settings.h"
#include "wire/shape.h"

#define TABLE "table"

#define FIXED_BYTES 236 /* bytes before the name */
/* Offsets of fields that are no settings, or texts: */
#define DIM_AT 0
#define OPTIMIZER_AT 24
#define SCHEDULE_AT 28
#define INIT_AT 32

enum weft_status
wf_table_desc_check(const struct wf_table_desc *table)
{
	enum weft_status st = wf_name_check(TABLE, table->name);
	if (st != WEFT_OK) {
		return st;
	}
	if (table->set.dim == 0 || table->set.dim > WF_TABLE_DIM_MAX) {
		return wf_fail(WEFT_INVALID,
			       TABLE " %s: dim is %" PRIu32 ", must be 1 to %u values", table->name,
			       table->set.dim, WF_TABLE_DIM_MAX);
	}
	st = wf_settings_check_wire(WEFT_SETTINGS_TABLE, &table->set);
	return st == WEFT_OK ? WEFT_OK
			     : wf_fail(st, TABLE " %s: %s", table->name, weft_last_error());
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
	uint8_t fixed[FIXED_BYTES] = {0};

	wf_settings_encode(WEFT_SETTINGS_TABLE, &table->set, fixed);
	wf_store_u32(fixed + DIM_AT, table->set.dim);
	wf_store_u32(fixed + OPTIMIZER_AT, table->optimizer);
	wf_store_u32(fixed + SCHEDULE_AT, table->schedule);
	wf_store_u32(fixed + INIT_AT, table->init);
	wf_put_bytes(w, fixed, sizeof(fixed));
	wf_put_string(w, table->name);
}

enum weft_status
wf_table_desc_get(struct wf_reader *r, struct wf_table_desc *out)
{
	uint8_t fixed[FIXED_BYTES];
	struct wf_table_desc table = {0};

	wf_get_bytes(r, fixed, sizeof(fixed));
	if (r->bad) {
		return wf_refuse_length(TABLE, r);
	}
	enum weft_status st = wf_settings_decode(WEFT_SETTINGS_TABLE, TABLE, fixed, &table.set);
	if (st != WEFT_OK) {
		return st;
	}
	table.set.dim = wf_load_u32(fixed + DIM_AT);
	table.optimizer = wf_load_u32(fixed + OPTIMIZER_AT);
	table.schedule = wf_load_u32(fixed + SCHEDULE_AT);
	table.init = wf_load_u32(fixed + INIT_AT);
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
	wf_put_u8(&fixed, tables->skips_nonfinite ? 1 : 0);
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
