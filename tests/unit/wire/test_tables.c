/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of wire/tables: what is refused, and what a digest tells apart. Encoded tables are tested
 * as the message TABLE. */
#include <math.h>
#include <stdio.h>

#include "base/settings.h"
#include "tests/unit/wire/refused.h"
#include "wire/tables.h"

static struct wf_table_desc
table_named(const char *name)
{
	struct wf_table_desc table = {.set = {.dim = 4, .evict_fade = 1.0}};
	snprintf(table.name, sizeof(table.name), "%s", name);
	return table;
}

static void
a_wrong_field_is_named_with_its_table(void **state)
{
	struct wf_table_desc t = table_named("users");
	assert_int_equal(wf_table_desc_check(&t), WEFT_OK);
	t.set.dim = 0;
	assert_refused(wf_table_desc_check(&t), WEFT_INVALID, "table users: dim is 0");
	t.set.dim = WF_TABLE_DIM_MAX + 1;
	assert_refused(wf_table_desc_check(&t), WEFT_INVALID, "table users: dim is 4097");
	t = table_named("users");
	t.set.rest = (enum weft_value_format)3;
	assert_refused(wf_table_desc_check(&t), WEFT_INVALID,
		       "table users: rest 3: must be one of f32|bf16|f16");
	t = table_named("users");
	t.set.wire = (enum weft_value_format)3;
	assert_refused(wf_table_desc_check(&t), WEFT_INVALID,
		       "table users: wire 3: must be one of f32|bf16|f16");
	t = table_named("users");
	t.set.optimizer.l21 = (double)INFINITY;
	assert_refused(wf_table_desc_check(&t), WEFT_INVALID,
		       "table users: l21 inf: must be a number");
	t = table_named("");
	assert_refused(wf_table_desc_check(&t), WEFT_INVALID, "has 0 characters");
	t = table_named("two words");
	assert_refused(wf_table_desc_check(&t), WEFT_INVALID, "byte 3 of its name is 0x20");
	memset(t.name, 'n', sizeof(t.name));
	assert_refused(wf_table_desc_check(&t), WEFT_INVALID, "has 128 characters");
}

/* The table of settings has places for some, tables.c for others. */
static void
each_byte_in_front_of_the_name_has_one_place(void **state)
{
	static const unsigned other[] = {0, 24, 28, 32}; /* 4 bytes each */
	uint8_t map[236] = {0};
	unsigned count = 0;
	const struct wf_option *rows = wf_settings_rows(WEFT_SETTINGS_TABLE, &count);

	for (unsigned i = 0; i < count; i++) {
		for (unsigned k = 0; k < rows[i].wire.bytes; k++) {
			assert_true(rows[i].wire.at + k < sizeof(map));
			map[rows[i].wire.at + k]++;
		}
		/* What travels, or is a text that a number stands for, is shared. */
		bool is_text = rows[i].type == WF_OPTION_STRING || rows[i].type == WF_OPTION_CHOICE;
		assert_int_equal(rows[i].is_shared, rows[i].wire.bytes > 0 || is_text);
	}
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		for (unsigned k = 0; k < 4; k++) {
			map[other[i] + k]++;
		}
	}
	for (size_t i = 0; i < sizeof(map); i++) {
		assert_int_equal(map[i], 1);
	}
}

static void
tables_are_counted_and_names_are_unique(void **state)
{
	struct wf_table_desc table[] = {table_named("a"), table_named("b"), table_named("a")};
	struct wf_tables tables = {.table = table, .table_count = 2};

	assert_int_equal(wf_tables_check(&tables), WEFT_OK);
	tables.table_count = 3;
	assert_refused(wf_tables_check(&tables), WEFT_INVALID, "table a: two tables");
	table[2].set.dim = 0;
	assert_refused(wf_tables_check(&tables), WEFT_INVALID, "table a: dim");
	tables.table_count = 0;
	assert_refused(wf_tables_check(&tables), WEFT_INVALID, "tables: there are 0");
	tables.table_count = WF_TABLE_COUNT_MAX + 1;
	assert_refused(wf_tables_check(&tables), WEFT_INVALID, "tables: there are 1025");
}

/* Number by number, byte by byte: whatever is changed in a description changes the digest. */
static void
every_setting_is_in_the_digest(void **state)
{
	struct wf_table_desc table[] = {table_named("a"), table_named("b")};
	struct wf_tables tables = {.table = table, .table_count = 2};
	uint64_t digest = wf_tables_digest(&tables);
	struct wf_table_desc *t = &table[1];
	double *const number[] = {
		&t->set.optimizer.learning_rate,
		&t->set.optimizer.momentum,
		&t->set.optimizer.beta1,
		&t->set.optimizer.beta2,
		&t->set.optimizer.rho,
		&t->set.optimizer.epsilon,
		&t->set.optimizer.decay,
		&t->set.optimizer.clip,
		&t->set.optimizer.l1,
		&t->set.optimizer.l2,
		&t->set.optimizer.l21,
		&t->set.optimizer.ftrl_beta,
		&t->set.optimizer.schedule_a,
		&t->set.optimizer.schedule_b,
		&t->set.init_a,
		&t->set.init_b,
		&t->set.admit_probability,
		&t->set.evict_score_least,
		&t->set.evict_show_weight,
		&t->set.evict_click_weight,
		&t->set.evict_fade,
	};
	for (size_t i = 0; i < sizeof(number) / sizeof(number[0]); i++) {
		*number[i] += 0.5;
		assert_true(wf_tables_digest(&tables) != digest);
		*number[i] -= 0.5;
	}
	uint32_t *const count[] = {&t->set.dim, &t->optimizer,       &t->schedule,
				   &t->init,    &t->set.admit_count, &t->set.admit_slots};
	for (size_t i = 0; i < sizeof(count) / sizeof(count[0]); i++) {
		*count[i] += 1;
		assert_true(wf_tables_digest(&tables) != digest);
		*count[i] -= 1;
	}
	uint64_t *const large[] = {&t->set.vocabulary, &t->set.memory_cap_bytes, &t->set.init_seed,
				   &t->set.evict_age_steps, &t->set.evict_fade_steps};
	for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
		*large[i] += 1ull << 40;
		assert_true(wf_tables_digest(&tables) != digest);
		*large[i] -= 1ull << 40;
	}
	t->set.optimizer.dense_equivalent = 1;
	assert_true(wf_tables_digest(&tables) != digest);
	t->set.optimizer.dense_equivalent = 0;
	t->set.evict_at_cap = true;
	assert_true(wf_tables_digest(&tables) != digest);
	t->set.evict_at_cap = false;
	t->set.rest = WEFT_VALUES_BF16;
	assert_true(wf_tables_digest(&tables) != digest);
	t->set.rest = WEFT_VALUES_F32;
	t->set.wire = WEFT_VALUES_BF16;
	assert_true(wf_tables_digest(&tables) != digest);
	t->set.wire = WEFT_VALUES_F32;
	assert_true(wf_tables_digest(&tables) == digest);
}

static void
order_number_and_common_settings_are_in_the_digest(void **state)
{
	struct wf_table_desc table[] = {table_named("a"), table_named("b"), table_named("a")};
	struct wf_tables tables = {.table = table, .table_count = 2};
	uint64_t digest = wf_tables_digest(&tables);

	tables.table = table + 1;
	assert_true(wf_tables_digest(&tables) != digest);
	tables.table = table;
	tables.table_count = 1;
	assert_true(wf_tables_digest(&tables) != digest);
	tables.table_count = 2;
	tables.grad_reduce = WEFT_REDUCE_MEAN;
	assert_true(wf_tables_digest(&tables) != digest);
	tables.grad_reduce = WEFT_REDUCE_SUM;
	tables.skips_nonfinite = true;
	assert_true(wf_tables_digest(&tables) != digest);
	tables.skips_nonfinite = false;
	tables.mode = WEFT_SPARSE_BOUNDED;
	assert_true(wf_tables_digest(&tables) != digest);
	uint64_t bounded = wf_tables_digest(&tables);
	tables.staleness = 1;
	assert_true(wf_tables_digest(&tables) != bounded);
	tables.staleness = 0;
	tables.discard_ratio = 1.5;
	assert_true(wf_tables_digest(&tables) != bounded);
	tables.discard_ratio = 0;
	tables.mode = WEFT_SPARSE_SYNC;
	assert_true(wf_tables_digest(&tables) == digest);
	/* Pinned: peers compare it. */
	assert_true(digest == 0x520233140e6286b8);
}

static void
rows_on_the_wire_are_as_wide_as_their_format(void **state)
{
	struct wf_table_desc t = table_named("a");
	assert_int_equal(wf_table_row_bytes(&t), 16);
	t.set.wire = WEFT_VALUES_F16;
	assert_int_equal(wf_table_row_bytes(&t), 8);
	assert_false(wf_table_has_scores(&t));
	t.set.evict_score_least = 0.1;
	assert_true(wf_table_has_scores(&t));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wrong_field_is_named_with_its_table),
		cmocka_unit_test(each_byte_in_front_of_the_name_has_one_place),
		cmocka_unit_test(tables_are_counted_and_names_are_unique),
		cmocka_unit_test(every_setting_is_in_the_digest),
		cmocka_unit_test(order_number_and_common_settings_are_in_the_digest),
		cmocka_unit_test(rows_on_the_wire_are_as_wide_as_their_format),
	};
	return cmocka_run_group_tests_name("wire tables", tests, NULL, NULL);
}
