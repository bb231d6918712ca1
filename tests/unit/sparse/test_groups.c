/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients of a row stand together, in trainer order, whatever the stamps of rows were before.
 * Thread: one. */
#include "base/assert.h"
#include "base/rng.h"
#include "sparse/table/groups.h"
#include "tests/unit/sparse/bed.h"

#define ROWS 12u
#define BATCHES 3u
#define ENTRIES 40u /* of a batch, at most */

struct row {
	struct wf_row_head head;
};

static struct bed_budget bed;
static struct row row[ROWS];
static float grad[BATCHES][ENTRIES];

static int
set_up(void **state)
{
	(void)state;
	return bed_budget_init(&bed);
}

static int
tear_down(void **state)
{
	(void)state;
	return bed_budget_fini(&bed);
}

/* The row of entry e of batch b; ROWS: it has none. */
struct drawn {
	uint32_t of[BATCHES][ENTRIES];
	struct wf_table_batch batch[BATCHES];
	struct wf_table_push push;
	size_t entries;
};

static void
draw(struct wf_rng *rng, struct wf_groups *groups, struct drawn *out)
{
	*out = (struct drawn){.push = {.batch = out->batch, .batch_count = BATCHES}};
	for (uint32_t r = 0; r < ROWS; r++) { /* also what looks like a group */
		row[r].head.stamp = (uint32_t)wf_rng_below(rng, 2 * ROWS);
	}
	for (uint32_t b = 0; b < BATCHES; b++) {
		out->batch[b] = (struct wf_table_batch){.grad = grad[b],
							.count = wf_rng_below(rng, ENTRIES + 1)};
		for (size_t e = 0; e < out->batch[b].count; e++) {
			uint32_t r = (uint32_t)wf_rng_below(rng, ROWS + 1);
			out->of[b][e] = r;
			groups->entry_row[out->entries++] = r == ROWS ? NULL : &row[r].head;
		}
	}
}

/* The gradients that go to row r, in trainer order, are those of its group. */
static void
check_row(const struct wf_groups *groups, const struct drawn *drawn, uint32_t r, uint32_t stamp)
{
	uint32_t group = row[r].head.stamp;
	uint32_t at = 0;
	bool has = wf_groups_have(groups, &row[r].head);

	for (uint32_t b = 0; b < BATCHES; b++) {
		for (size_t e = 0; e < drawn->batch[b].count; e++) {
			if (drawn->of[b][e] != r) {
				continue;
			}
			assert_true(has);
			assert_ptr_equal(groups->row[group], &row[r].head);
			assert_int_equal(groups->stamp[group], stamp);
			assert_ptr_equal(groups->entry_grad[groups->first[group] + at],
					 &grad[b][e]);
			at++;
		}
	}
	assert_int_equal(has, at > 0);
	assert_true(!has || groups->first[group] + at == groups->first[group + 1]);
	assert_true(has || row[r].head.stamp == stamp);
}

static void
gradients_of_a_row_stand_together_in_trainer_order(void **state)
{
	struct wf_groups groups;
	struct wf_rng rng;
	(void)state;
	wf_rng_init(&rng, 1, 0);
	assert_true(wf_groups_init(&groups, &bed.budget, BATCHES * ENTRIES));
	for (unsigned round = 0; round < 2000; round++) {
		struct drawn drawn;
		uint32_t stamp[ROWS];
		draw(&rng, &groups, &drawn);
		for (uint32_t r = 0; r < ROWS; r++) {
			stamp[r] = row[r].head.stamp;
		}
		(void)wf_groups_gather(&groups, drawn.entries);
		wf_groups_sort(&groups, &drawn.push, drawn.entries, 1);
		for (uint32_t r = 0; r < ROWS; r++) {
			check_row(&groups, &drawn, r, stamp[r]);
		}
		groups.count = 0;
	}
	wf_groups_fini(&groups, &bed.budget);
}

/* Each entry has a row of its own: nothing has to be sorted. */
static void
groups_are_straight_where_each_entry_has_its_own(void **state)
{
	const struct wf_table_batch batch[2] = {{.grad = grad[0], .count = 2},
						{.grad = grad[1], .count = ROWS - 3}};
	const struct wf_table_push push = {.batch = batch, .batch_count = 2};
	struct wf_groups groups;
	(void)state;
	assert_true(wf_groups_init(&groups, &bed.budget, ROWS));
	for (uint32_t r = 0; r < ROWS; r++) {
		row[r].head.stamp = r;
		groups.entry_row[r] = &row[r].head;
	}
	assert_true(wf_groups_gather(&groups, ROWS - 1));
	assert_int_equal(groups.count, ROWS - 1);
	wf_groups_list(&groups, &push, 1);
	for (uint32_t e = 0; e < ROWS - 1; e++) {
		assert_ptr_equal(groups.entry_grad[e], e < 2 ? &grad[0][e] : &grad[1][e - 2]);
	}
	assert_false(wf_groups_have(&groups, &row[ROWS - 1].head));
	assert_int_equal(wf_groups_of(&groups, &row[3].head), 3);
	assert_int_equal(wf_groups_of(&groups, &row[ROWS - 1].head), ROWS - 1);
	groups.count = 0;
	groups.entry_row[1] = &row[0].head;
	assert_false(wf_groups_gather(&groups, 2));
	groups.count = 0;
	groups.entry_row[1] = NULL;
	assert_false(wf_groups_gather(&groups, 2));
	wf_groups_fini(&groups, &bed.budget);
}

static void
what_was_taken_is_given_back_wherever_memory_ends(void **state)
{
	struct wf_groups groups;
	bool made = false;
	(void)state;
	for (uint64_t nth = 1; !made; nth++) {
		wf_failing_env_fail(&bed.failing, nth, false);
		made = wf_groups_init(&groups, &bed.budget, 100);
		assert_int_equal(made, nth > 6);
		wf_groups_fini(&groups, &bed.budget);
		assert_int_equal(bed.budget.used_bytes, 0);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(gradients_of_a_row_stand_together_in_trainer_order),
		TEST(groups_are_straight_where_each_entry_has_its_own),
		TEST(what_was_taken_is_given_back_wherever_memory_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
