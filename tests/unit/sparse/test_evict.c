/* SPDX-License-Identifier: Apache-2.0 */
/* Which keys get a row, and which rows are evicted: by count, probability, age and score; each of
 * them counted. Thread: one. */
#include "tests/unit/sparse/bed.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "sparse/table/rules.h"

#define KEYS 1000u

static struct wf_env *env;
static uint64_t key[KEYS];
static float grad[KEYS][4];
static float out[KEYS][4];

static int
open_env(void **state)
{
	for (uint64_t i = 0; i < KEYS; i++) {
		key[i] = i * 0x9e3779b97f4a7c15u;
		grad[i][0] = 1.0f;
	}
	return wf_env_system_create(WF_LOG_WARN, -1, &env) == WEFT_OK ? 0 : -1;
}

static int
close_env(void **state)
{
	wf_env_system_destroy(env);
	return 0;
}

static bool
is_zero(const float *row)
{
	return row[0] == 0.0f && row[1] == 0.0f && row[2] == 0.0f && row[3] == 0.0f;
}

static void
a_key_is_admitted_at_its_third_push(void **state)
{
	struct wf_table_opts opts = bed_opts();
	opts.admit.count = 3;
	struct wf_table *table = bed_table(env, &opts);
	float want[4];

	for (uint64_t step = 1; step <= 3; step++) {
		assert_int_equal(bed_look(table, key, 1, out[0], true), WEFT_OK);
		assert_true(is_zero(out[0]));
		assert_int_equal(bed_stat(table, WF_TABLE_ROWS_LIVE), 0);
		assert_int_equal(bed_push(table, step, key, 1, grad[0]), WEFT_OK);
		assert_int_equal(bed_stat(table, WF_TABLE_PUSHES_UNADMITTED), step);
	}
	assert_int_equal(bed_stat(table, WF_TABLE_ROWS_LIVE), 1);
	assert_int_equal(bed_look(table, key, 1, out[0], true), WEFT_OK);
	wf_init_values(&opts.init, key[0], want, 4);
	assert_memory_equal(out[0], want, sizeof(want));
	assert_int_equal(bed_push(table, 4, key, 1, grad[0]), WEFT_OK);
	assert_int_equal(bed_look(table, key, 1, out[0], true), WEFT_OK);
	assert_true(out[0][0] == want[0] - 1.0f);
	assert_int_equal(bed_stat(table, WF_TABLE_PUSHES_UNADMITTED), 3);
	wf_table_destroy(table);
}

static void
pushes_of_several_trainers_count_one_by_one(void **state)
{
	struct wf_table_opts opts = bed_opts();
	opts.admit.count = 3;
	struct wf_table *table = bed_table(env, &opts);
	struct wf_table_batch batch[3];
	struct wf_table_push push = {
		.step = 1, .rate = 1.0, .divisor = 1.0f, .batch = batch, .batch_count = 3};

	for (size_t b = 0; b < 3; b++) {
		batch[b] = (struct wf_table_batch){.key = key, .grad = grad[0], .count = b + 1};
	}
	assert_int_equal(wf_table_push(table, &push), WEFT_OK);
	assert_int_equal(bed_stat(table, WF_TABLE_ROWS_LIVE), 1); /* key 0, three times */
	assert_int_equal(bed_stat(table, WF_TABLE_PUSHES_UNADMITTED), 6);
	wf_table_destroy(table);
}

static void
admission_by_probability_takes_its_share_and_always_the_same(void **state)
{
	struct wf_table_opts opts = bed_opts();
	opts.admit.probability = 0.25;
	uint64_t live[2];

	for (unsigned run = 0; run < 2; run++) {
		opts.index_seed = run;
		struct wf_table *table = bed_table(env, &opts);
		assert_int_equal(bed_push(table, 1, key, KEYS, grad[0]), WEFT_OK);
		live[run] = bed_stat(table, WF_TABLE_ROWS_LIVE);
		/* 250, deviation 13.7 */
		assert_in_range(live[run], 250 - 82, 250 + 82);
		assert_int_equal(bed_push(table, 2, key, KEYS, grad[0]), WEFT_OK);
		/* 437.5, deviation 15.7: at each push anew */
		assert_in_range(bed_stat(table, WF_TABLE_ROWS_LIVE), 438 - 94, 438 + 94);
		wf_table_destroy(table);
	}
	assert_int_equal(live[0], live[1]);
}

static void
a_row_goes_when_it_was_not_updated_for_long(void **state)
{
	struct wf_table_opts opts = bed_opts();
	opts.evict.age_steps = 10;
	struct wf_table *table = bed_table(env, &opts);

	assert_int_equal(bed_push(table, 1, key, KEYS, grad[0]), WEFT_OK);
	assert_int_equal(bed_push(table, 11, key, 1, grad[0]), WEFT_OK);
	wf_table_tend(table, KEYS);
	assert_int_equal(bed_stat(table, WF_TABLE_ROWS_LIVE), KEYS);
	assert_int_equal(bed_push(table, 12, key, 1, grad[0]), WEFT_OK);
	/* Gone at once, though nobody tended: its first values again. */
	assert_int_equal(bed_look(table, key + 1, 1, out[0], false), WEFT_OK);
	float want[4];
	wf_init_values(&opts.init, key[1], want, 4);
	assert_memory_equal(out[0], want, sizeof(want));
	/* Tending is as much work as it is given. */
	wf_table_tend(table, 100);
	assert_in_range(bed_stat(table, WF_TABLE_ROWS_LIVE), KEYS - 100, KEYS - 99);
	wf_table_tend(table, KEYS);
	assert_int_equal(bed_stat(table, WF_TABLE_ROWS_LIVE), 1);
	assert_int_equal(bed_stat(table, WF_TABLE_EVICTED_BY_AGE), KEYS - 1);
	wf_table_destroy(table);
}

/* A row that was only ever looked at is as old as its birth. */
static void
a_row_that_nobody_updates_ages_from_its_birth(void **state)
{
	struct wf_table_opts opts = bed_opts();
	opts.evict.age_steps = 5;
	struct wf_table *table = bed_table(env, &opts);
	assert_int_equal(wf_table_set_step(table, 100), WEFT_OK);
	assert_int_equal(bed_look(table, key, 1, out[0], true), WEFT_OK);
	assert_int_equal(bed_push(table, 105, NULL, 0, NULL), WEFT_OK);
	wf_table_tend(table, 10);
	assert_int_equal(bed_stat(table, WF_TABLE_ROWS_LIVE), 1);
	assert_int_equal(bed_push(table, 106, NULL, 0, NULL), WEFT_OK);
	wf_table_tend(table, 10);
	assert_int_equal(bed_stat(table, WF_TABLE_ROWS_LIVE), 0);
	wf_table_destroy(table);
}

static void
a_row_pushed_after_its_time_begins_anew(void **state)
{
	struct wf_table_opts opts = bed_opts();
	opts.evict.age_steps = 10;
	struct wf_table *table = bed_table(env, &opts);
	float want[4];

	assert_int_equal(bed_push(table, 1, key, 1, grad[0]), WEFT_OK);
	assert_int_equal(bed_push(table, 12, NULL, 0, NULL), WEFT_OK);
	assert_int_equal(bed_push(table, 13, key, 1, grad[0]), WEFT_OK);
	assert_int_equal(bed_look(table, key, 1, out[0], false), WEFT_OK);
	wf_init_values(&opts.init, key[0], want, 4);
	assert_true(out[0][0] == want[0] - 1.0f);
	assert_int_equal(bed_stat(table, WF_TABLE_EVICTED_BY_AGE), 1);
	assert_int_equal(bed_stat(table, WF_TABLE_ROWS_BORN), 2);
	wf_table_destroy(table);
}

static void
shows_and_clicks_fade_until_a_row_goes(void **state)
{
	struct wf_table_opts opts = bed_opts();
	opts.evict = (struct wf_evict_opts){.score_least = 1.0,
					    .show_weight = 0.25,
					    .click_weight = 1.0,
					    .fade = 0.5,
					    .fade_steps = 10};
	struct wf_table *table = bed_table(env, &opts);
	const float show[3] = {4.0f, 4.0f, 16.0f};
	const float click[3] = {0.0f, 4.0f, 0.0f};
	struct wf_table_batch batch = {
		.key = key, .grad = grad[0], .count = 3, .show = show, .click = click};
	struct wf_table_push push = {
		.step = 1, .rate = 1.0, .divisor = 1.0f, .batch = &batch, .batch_count = 1};
	uint64_t cursor = 0;
	struct wf_table_row row;

	/* Scores 1, 4 and 4; each halves at steps 10, 20, 30. */
	assert_int_equal(wf_table_push(table, &push), WEFT_OK);
	assert_int_equal(bed_push(table, 9, NULL, 0, NULL), WEFT_OK);
	wf_table_tend(table, 10);
	assert_int_equal(bed_stat(table, WF_TABLE_ROWS_LIVE), 3);
	assert_int_equal(bed_push(table, 10, NULL, 0, NULL), WEFT_OK);
	wf_table_tend(table, 10);
	assert_int_equal(bed_stat(table, WF_TABLE_ROWS_LIVE), 2);
	/* Two more shows: 16 / 4 + 2 */
	push.step = 20;
	batch.key = key + 2;
	batch.count = 2;
	batch.show = NULL;
	batch.click = NULL;
	const uint64_t twice[2] = {key[2], key[2]};
	batch.key = twice;
	assert_int_equal(wf_table_push(table, &push), WEFT_OK);
	assert_int_equal(bed_push(table, 30, NULL, 0, NULL), WEFT_OK);
	wf_table_tend(table, 10);
	/* 4 / 8 is gone, 6 / 2 / 4 is gone too. */
	assert_int_equal(bed_stat(table, WF_TABLE_ROWS_LIVE), 0);
	assert_int_equal(bed_stat(table, WF_TABLE_EVICTED_BY_SCORE), 3);
	assert_false(wf_table_next(table, &cursor, &row));
	wf_table_destroy(table);
}

static void
scores_come_out_with_their_rows(void **state)
{
	struct wf_table_opts opts = bed_opts();
	opts.evict = (struct wf_evict_opts){
		.score_least = 0.1, .show_weight = 1.0, .fade = 0.5, .fade_steps = 4};
	struct wf_table *table = bed_table(env, &opts);
	uint64_t cursor = 0;
	struct wf_table_row row;

	assert_int_equal(bed_push(table, 3, key, 1, grad[0]), WEFT_OK);
	assert_int_equal(bed_push(table, 4, key, 1, grad[0]), WEFT_OK);
	assert_true(wf_table_next(table, &cursor, &row));
	assert_true(row.show == 1.5f && row.click == 0.0f);
	assert_int_equal(row.stamp, 4);
	assert_int_equal(row.born, 0);
	wf_table_destroy(table);
}

static void
admission_has_limits_that_may_be_reached(void **state)
{
	const struct wf_admit_opts most = {
		.count = WF_ADMIT_COUNT_MAX, .slot_count = WF_ADMIT_SLOTS_MAX, .probability = 1};
	struct wf_admit_opts over[] = {most, most, most, most, most};
	(void)state;
	assert_int_equal(wf_admit_check(&most), WEFT_OK);
	over[0].count++;
	over[1].slot_count *= 2;
	over[2].slot_count--;
	over[3].probability = 1.0625;
	over[4].probability = 0;
	for (size_t i = 0; i < sizeof(over) / sizeof(over[0]); i++) {
		assert_int_equal(wf_admit_check(&over[i]), WEFT_INVALID);
	}
}

static void
refuses(struct wf_admit_opts admit, struct wf_evict_opts evict, uint64_t vocabulary,
	const char *said)
{
	assert_int_equal(wf_table_rules_check(&admit, &evict, vocabulary, 0), WEFT_INVALID);
	assert_string_equal(weft_last_error(), said);
}

static void
settings_that_do_not_go_together_are_refused_by_name(void **state)
{
	const struct weft_table_opts set = {.admit_count = 3,
					    .admit_probability = 0.5,
					    .admit_slots = 8,
					    .evict_age_steps = 7,
					    .evict_score_least = 2,
					    .evict_show_weight = 0.25,
					    .evict_click_weight = 1,
					    .evict_fade = 0.5,
					    .evict_fade_steps = 9,
					    .evict_at_cap = 5};
	const struct wf_admit_opts admit = wf_admit_of(&set), all = {.probability = 1};
	struct wf_evict_opts evict = wf_evict_of(&set), never = {0};
	(void)state;
	assert_true(admit.count == 3 && admit.probability == 0.5 && admit.slot_count == 8);
	assert_true(evict.age_steps == 7 && evict.score_least == 2 && evict.show_weight == 0.25 &&
		    evict.click_weight == 1 && evict.fade == 0.5 && evict.fade_steps == 9 &&
		    evict.at_cap);
	assert_int_equal(wf_table_rules_check(&admit, &evict, 0, 1), WEFT_OK);
	assert_int_equal(wf_table_rules_check(&all, &never, 1, 0), WEFT_OK);
	refuses(admit, evict, 0, "evict_at_cap needs memory_cap_bytes above 0");
	const char *fixed = "a fixed vocabulary has all its rows from the start: leave out "
			    "admission and eviction";
	refuses((struct wf_admit_opts){.count = 2, .probability = 1}, never, 1, fixed);
	refuses((struct wf_admit_opts){.count = 1, .probability = 0.5}, never, 1, fixed);
	refuses(all, (struct wf_evict_opts){.age_steps = 1}, 1, fixed);
	refuses((struct wf_admit_opts){0}, never, 0, "admit_probability 0: give above 0, up to 1");
	evict.fade_steps = 0;
	refuses(all, evict, 0,
		"evict_fade 0.5 every 0 steps: give above 0 up to 1, and at least 1 step");
	evict.show_weight = -1;
	refuses(all, evict, 0,
		"evict_show_weight -1, evict_click_weight 1: give 0 or more, below 1e+30");
	evict.score_least = 0; /* then nobody looks at these */
	evict.at_cap = false;
	assert_int_equal(wf_table_rules_check(&all, &evict, 0, 0), WEFT_OK);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_is_admitted_at_its_third_push),
		cmocka_unit_test(settings_that_do_not_go_together_are_refused_by_name),
		cmocka_unit_test(pushes_of_several_trainers_count_one_by_one),
		cmocka_unit_test(admission_by_probability_takes_its_share_and_always_the_same),
		cmocka_unit_test(admission_has_limits_that_may_be_reached),
		cmocka_unit_test(a_row_goes_when_it_was_not_updated_for_long),
		cmocka_unit_test(a_row_that_nobody_updates_ages_from_its_birth),
		cmocka_unit_test(a_row_pushed_after_its_time_begins_anew),
		cmocka_unit_test(shows_and_clicks_fade_until_a_row_goes),
		cmocka_unit_test(scores_come_out_with_their_rows),
	};
	return cmocka_run_group_tests(tests, open_env, close_env);
}
