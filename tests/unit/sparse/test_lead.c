/* SPDX-License-Identifier: Apache-2.0 */
/* Rows are got ready before they are used, in stretches that lie in one piece of memory; each row
 * is counted once as ready or cleared, and memory is allocated by the number of rows alone.
 * Thread: one. */
#include "sparse/table/lead.h"

#include "tests/unit/sparse/helper.h"

#define ROW_BYTES 1024u
#define SLAB_BYTES (1u << 20)
#define ROWS 60000u

struct seen {
	uint32_t room[ROWS / 1000]; /* as rows are used */
	uint64_t cleared_bytes, readied_bytes;
	unsigned submitted;
};

/* Rows are used one by one, and looked after as wf_rows_alloc does. */
static void
use_all(struct wf_env *env, struct wf_env *helper, uint64_t cap_bytes, struct seen *seen)
{
	struct wf_budget budget = {.env = env, .cap_bytes = cap_bytes};
	struct wf_slabs slabs;
	struct wf_lead lead;
	uint32_t used = 0;

	*seen = (struct seen){0};
	wf_slabs_init(&slabs, &budget, ROW_BYTES, SLAB_BYTES, 0);
	wf_lead_init(&lead, helper, 4u << 20);
	while (used < ROWS) {
		if (used == slabs.room_count && !wf_slabs_add(&slabs)) {
			break;
		}
		wf_lead_note_use(&lead, &slabs, used++);
		if (used >= lead.look_at) {
			wf_lead_look(&lead, &slabs, used);
		}
		assert_true(lead.look_at > used);
		assert_true(lead.ready_end <= lead.asked_end && lead.asked_end <= slabs.room_count);
		if (used % 1000 == 0) {
			seen->room[used / 1000 - 1] = slabs.room_count;
		}
	}
	seen->cleared_bytes = lead.cleared_bytes;
	seen->readied_bytes = lead.readied_bytes;
	seen->submitted = ground.submitted;
	/* What is ready and not used yet is in the one sum alone. */
	uint32_t ready = lead.ready_end > used ? lead.ready_end - used : 0;
	assert_int_equal(lead.cleared_bytes + lead.readied_bytes,
			 (uint64_t)(used + ready) * ROW_BYTES);
	wf_lead_fini(&lead);
	wf_slabs_fini(&slabs);
	assert_int_equal(budget.used_bytes, 0);
}

static void
who_has_no_helper_takes_memory_when_it_is_needed(void **state)
{
	struct seen seen;
	(void)state;
	use_all(begin(REFUSED), NULL, UINT64_MAX, &seen);
	assert_int_equal(seen.readied_bytes, 0);
	assert_int_equal(seen.submitted, 0);
	assert_int_equal(seen.cleared_bytes, (uint64_t)ROWS * ROW_BYTES);
	for (uint32_t i = 0; i < WF_ARRAY_COUNT(seen.room); i++) {
		uint32_t used = (i + 1) * 1000;
		assert_true(seen.room[i] < used + 3 * SLAB_BYTES / ROW_BYTES);
	}
}

static void
rows_are_ready_before_they_are_used(void **state)
{
	struct seen seen;
	(void)state;
	if (!system_can()) {
		skip();
	}
	struct wf_env *env = begin(AT_ONCE);
	use_all(env, env, UINT64_MAX, &seen);
	/* An eighth of 8 MiB is the least that is got ready. */
	assert_true(seen.cleared_bytes <= 10u << 20);
	assert_true(seen.submitted > 10);
}

static void
memory_is_taken_by_the_number_of_rows_alone(void **state)
{
	struct seen seen[3];
	(void)state;
	for (uint64_t cap = 16u << 20; cap <= 80u << 20; cap += 16u << 20) {
		for (int helper = AT_ONCE; helper <= REFUSED; helper++) {
			struct wf_env *env = begin((enum helper)helper);
			use_all(env, env, cap, &seen[helper]);
			assert_memory_equal(seen[helper].room, seen[0].room, sizeof(seen[0].room));
			assert_true(wf_failing_env_is_clean(&ground.failing));
		}
		/* Nobody who comes never, or refuses, is asked again. */
		assert_int_equal(seen[HELD_BACK].submitted, 1);
		assert_int_equal(seen[REFUSED].submitted, 1);
		assert_int_equal(seen[REFUSED].readied_bytes, 0);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_has_no_helper_takes_memory_when_it_is_needed),
		TEST(rows_are_ready_before_they_are_used),
		TEST(memory_is_taken_by_the_number_of_rows_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
