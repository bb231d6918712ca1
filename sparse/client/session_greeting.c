/* SPDX-License-Identifier: Apache-2.0 */
/* session_greeting: what a session says of its tables when it comes to a sparse lane, for people:
 * which setting differs, where trainers do not agree. Thread: the core's. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "sparse/client/session.h"

enum kind {
	F64,
	U64,
	U32,
	U8,
};

#define FIELD(kind, name, field)                                                                   \
	{                                                                                          \
		name, offsetof(struct wf_table_desc, field), kind                                  \
	}

/* Named as in weft/sparse.h, where they stand: said where they are not the defaults, for all of
 * them would be too much. */
static const struct field {
	const char *name;
	size_t offset;
	enum kind kind;
} fields[] = {
	FIELD(U8, "rest", value_rest),
	FIELD(U64, "memory_cap_bytes", memory_cap_bytes),
	FIELD(F64, "momentum", row.set.momentum),
	FIELD(F64, "beta1", row.set.beta1),
	FIELD(F64, "beta2", row.set.beta2),
	FIELD(F64, "rho", row.set.rho),
	FIELD(F64, "epsilon", row.set.epsilon),
	FIELD(F64, "decay", row.set.decay),
	FIELD(F64, "clip", row.set.clip),
	FIELD(F64, "l1", row.set.l1),
	FIELD(F64, "l2", row.set.l2),
	FIELD(F64, "l21", row.set.l21),
	FIELD(F64, "ftrl_beta", row.set.ftrl_beta),
	FIELD(U32, "schedule", row.schedule),
	FIELD(F64, "schedule_a", row.set.schedule_a),
	FIELD(F64, "schedule_b", row.set.schedule_b),
	FIELD(U32, "dense_equivalent", row.set.dense_equivalent),
	FIELD(U32, "init", init.kind),
	FIELD(F64, "init_a", init.a),
	FIELD(F64, "init_b", init.b),
	FIELD(U32, "admit_count", admit.count),
	FIELD(U32, "admit_slots", admit.slot_count),
	FIELD(F64, "admit_probability", admit.probability),
	FIELD(U64, "evict_age_steps", evict.age_steps),
	FIELD(F64, "evict_score_least", evict.score_least),
	FIELD(F64, "evict_show_weight", evict.show_weight),
	FIELD(F64, "evict_click_weight", evict.click_weight),
	FIELD(F64, "evict_fade", evict.fade),
	FIELD(U64, "evict_fade_steps", evict.fade_steps),
	FIELD(U8, "evict_at_cap", evict.at_cap),
};

static void
format(const struct field *field, const struct wf_table_desc *desc, char *out, size_t bytes)
{
	const uint8_t *at = (const uint8_t *)desc + field->offset;
	double number;
	uint64_t wide;
	uint32_t narrow;
	switch (field->kind) {
	case F64:
		memcpy(&number, at, sizeof(number));
		(void)snprintf(out, bytes, "%.9g", number);
		return;
	case U64:
		memcpy(&wide, at, sizeof(wide));
		(void)snprintf(out, bytes, "%" PRIu64, wide);
		return;
	case U32:
		memcpy(&narrow, at, sizeof(narrow));
		(void)snprintf(out, bytes, "%" PRIu32, narrow);
		return;
	case U8:
		(void)snprintf(out, bytes, "%u", *at);
		return;
	}
}

static const char *
wire_of(const struct wf_table_desc *desc)
{
	static const char *const words[WF_VALUE_FORMAT_COUNT] = {
		[WEFT_VALUES_F32] = "",
		[WEFT_VALUES_BF16] = "/bf16",
		[WEFT_VALUES_F16] = "/f16",
	};
	return words[desc->value_wire];
}

/* Returns how much of `out` is used; beyond `bytes`: it was cut. */
static size_t
summarise_table(const struct wf_table_desc *desc, const struct wf_table_desc *defaults, char *out,
		size_t bytes)
{
	size_t used = (size_t)snprintf(
		out, bytes, " %s=%" PRIu32 "%s,%s,%.9g,keys=%" PRIu64 ",seed=%" PRIu64, desc->name,
		desc->dim, wire_of(desc), wf_row_optimizer_name(desc->row.kind),
		desc->row.set.learning_rate, desc->vocabulary, desc->init.seed);
	for (size_t i = 0; i < WF_ARRAY_COUNT(fields) && used < bytes; i++) {
		char value[32];
		char usual[32];
		format(&fields[i], desc, value, sizeof(value));
		format(&fields[i], defaults, usual, sizeof(usual));
		if (strcmp(value, usual) != 0) {
			used += (size_t)snprintf(out + used, bytes - used, ",%s=%s", fields[i].name,
						 value);
		}
	}
	return used;
}

void
wf_client_summarise(const struct wf_client *client, char *out, size_t bytes)
{
	static const char *const mode[] = {[WEFT_SPARSE_SYNC] = "sync",
					   [WEFT_SPARSE_ASYNC] = "async",
					   [WEFT_SPARSE_BOUNDED] = "bounded"};
	const struct weft_session_opts *opts = &client->core->opts;
	struct wf_table_desc defaults;
	wf_client_default_desc(&defaults);
	size_t used = (size_t)snprintf(out, bytes, "sparse_mode=%s", mode[opts->sparse_mode]);
	if (opts->sparse_mode != WEFT_SPARSE_SYNC) {
		used += (size_t)snprintf(out + used, bytes - used, ",%" PRIu32 ",%.9g",
					 opts->sparse_staleness, opts->sparse_discard_ratio);
	}
	for (uint32_t i = 0; i < client->table_count && used < bytes; i++) {
		used += summarise_table(&client->desc[i], &defaults, out + used, bytes - used);
	}
}
