/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of wire/tables: what is refused, and what a digest tells apart. Encoded tables are tested
 * as the message TABLE. */
#include <math.h>
#include <stdio.h>

#include "tests/unit/wire/refused.h"
#include "wire/tables.h"

static struct wf_table_desc
table_named(const char *name)
{
	struct wf_table_desc table = {.dim = 4, .evict = {.fade = 1.0}};
	snprintf(table.name, sizeof(table.name), "%s", name);
	return table;
}

static void
a_wrong_field_is_named_with_its_table(void **state)
{
	struct wf_table_desc t = table_named("users");
	assert_int_equal(wf_table_desc_check(&t), WEFT_OK);
	t.dim = 0;
	assert_refused(wf_table_desc_check(&t), WEFT_INVALID, "table users: dim is 0");
	t.dim = WF_TABLE_DIM_MAX + 1;
	assert_refused(wf_table_desc_check(&t), WEFT_INVALID, "table users: dim is 4097");
	t = table_named("users");
	t.value_rest = 3;
	assert_refused(wf_table_desc_check(&t), WEFT_INVALID, "value_rest is 3");
	t = table_named("users");
	t.value_wire = 3;
	assert_refused(wf_table_desc_check(&t), WEFT_INVALID, "value_wire is 3");
	t = table_named("users");
	t.row.set.l21 = (double)INFINITY;
	assert_refused(wf_table_desc_check(&t), WEFT_INVALID, "row.l21 is inf, must be finite");
	t = table_named("");
	assert_refused(wf_table_desc_check(&t), WEFT_INVALID, "has 0 characters");
	t = table_named("two words");
	assert_refused(wf_table_desc_check(&t), WEFT_INVALID, "byte 3 of its name is 0x20");
	memset(t.name, 'n', sizeof(t.name));
	assert_refused(wf_table_desc_check(&t), WEFT_INVALID, "has 128 characters");
}

static void
tables_are_counted_and_names_are_unique(void **state)
{
	struct wf_table_desc table[] = {table_named("a"), table_named("b"), table_named("a")};
	struct wf_tables tables = {.table = table, .table_count = 2};

	assert_int_equal(wf_tables_check(&tables), WEFT_OK);
	tables.table_count = 3;
	assert_refused(wf_tables_check(&tables), WEFT_INVALID, "table a: two tables");
	table[2].dim = 0;
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
		&t->row.set.learning_rate,
		&t->row.set.momentum,
		&t->row.set.beta1,
		&t->row.set.beta2,
		&t->row.set.rho,
		&t->row.set.epsilon,
		&t->row.set.decay,
		&t->row.set.clip,
		&t->row.set.l1,
		&t->row.set.l2,
		&t->row.set.l21,
		&t->row.set.ftrl_beta,
		&t->row.set.schedule_a,
		&t->row.set.schedule_b,
		&t->init.a,
		&t->init.b,
		&t->admit.probability,
		&t->evict.score_least,
		&t->evict.show_weight,
		&t->evict.click_weight,
		&t->evict.fade,
	};
	for (size_t i = 0; i < sizeof(number) / sizeof(number[0]); i++) {
		*number[i] += 0.5;
		assert_true(wf_tables_digest(&tables) != digest);
		*number[i] -= 0.5;
	}
	uint32_t *const count[] = {&t->dim,       &t->row.kind,    &t->row.schedule,
				   &t->init.kind, &t->admit.count, &t->admit.slot_count};
	for (size_t i = 0; i < sizeof(count) / sizeof(count[0]); i++) {
		*count[i] += 1;
		assert_true(wf_tables_digest(&tables) != digest);
		*count[i] -= 1;
	}
	uint64_t *const large[] = {&t->vocabulary, &t->memory_cap_bytes, &t->init.seed,
				   &t->evict.age_steps, &t->evict.fade_steps};
	for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
		*large[i] += 1ull << 40;
		assert_true(wf_tables_digest(&tables) != digest);
		*large[i] -= 1ull << 40;
	}
	t->row.set.dense_equivalent = 1;
	assert_true(wf_tables_digest(&tables) != digest);
	t->row.set.dense_equivalent = 0;
	t->evict.at_cap = true;
	assert_true(wf_tables_digest(&tables) != digest);
	t->evict.at_cap = false;
	t->value_rest = 1;
	assert_true(wf_tables_digest(&tables) != digest);
	t->value_rest = 0;
	t->value_wire = 1;
	assert_true(wf_tables_digest(&tables) != digest);
	t->value_wire = 0;
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
	tables.nonfinite = WF_NONFINITE_SKIP;
	assert_true(wf_tables_digest(&tables) != digest);
	tables.nonfinite = WF_NONFINITE_ABORT;
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
	t.value_wire = WEFT_VALUES_F16;
	assert_int_equal(wf_table_row_bytes(&t), 8);
	assert_false(wf_table_has_scores(&t));
	t.evict.score_least = 0.1;
	assert_true(wf_table_has_scores(&t));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wrong_field_is_named_with_its_table),
		cmocka_unit_test(tables_are_counted_and_names_are_unique),
		cmocka_unit_test(every_setting_is_in_the_digest),
		cmocka_unit_test(order_number_and_common_settings_are_in_the_digest),
		cmocka_unit_test(rows_on_the_wire_are_as_wide_as_their_format),
	};
	return cmocka_run_group_tests_name("wire tables", tests, NULL, NULL);
}
