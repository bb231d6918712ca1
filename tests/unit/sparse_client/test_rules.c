/* SPDX-License-Identifier: Apache-2.0 */
/* Every rule of weft/sparse.h with its text: settings, batches, and the consequences of lanes that
 * refuse or break the protocol. Against a scripted pserver in a simulated world. */
#include "stage.h"

#include <stdio.h>
#include <string.h>

#include "wire/partition.h"

/* Settings. */

static struct weft_session *
session_on_paper(uint32_t sparse_ports)
{
	struct weft_session_opts opts;
	struct weft_session *session = NULL;
	weft_session_opts_init(&opts);
	opts.ports_num_for_sparse = sparse_ports;
	assert_int_equal(weft_session_open(&opts, &session), WEFT_OK);
	return session;
}

static void
assert_refused(struct weft_session *session, const struct weft_table_opts *opts,
	       enum weft_status status, const char *text)
{
	struct weft_table *table = NULL;
	assert_int_equal(weft_table_add(session, opts, &table), status);
	if (strstr(weft_last_error(), text) == NULL) {
		print_error("'%s' is not in '%s'\n", text, weft_last_error());
	}
	assert_non_null(strstr(weft_last_error(), text));
	assert_null(table);
}

#define REFUSED(field, value, status, text)                                                        \
	do {                                                                                       \
		struct weft_table_opts opts;                                                       \
		stage_table_opts("t", &opts);                                                      \
		opts.field = (value);                                                              \
		assert_refused(session, &opts, (status), (text));                                  \
	} while (0)

static void
settings_that_cannot_be_are_refused_and_named(void **state)
{
	struct weft_session *session = session_on_paper(1);
	(void)state;
	REFUSED(struct_bytes, 8, WEFT_INVALID, "weft_table_opts of 8 bytes");
	REFUSED(name, NULL, WEFT_INVALID, "its name has 0 characters");
	REFUSED(name, "a b", WEFT_INVALID, "0x20");
	REFUSED(dim, 0, WEFT_INVALID, "dim is 0");
	REFUSED(dim, 4097, WEFT_INVALID, "dim is 4097");
	REFUSED(batch_keys_max, 0, WEFT_INVALID, "batch_keys_max 0");
	REFUSED(batch_keys_max, (1u << 22) + 1, WEFT_INVALID, "batch_keys_max 4194305");
	REFUSED(rest, (enum weft_value_format)9, WEFT_INVALID, "rest 9");
	REFUSED(wire, (enum weft_value_format)9, WEFT_INVALID, "wire 9");
	REFUSED(optimizer.method, "magic", WEFT_INVALID, "magic");
	REFUSED(optimizer.method, NULL, WEFT_INVALID, "optimizer");
	REFUSED(optimizer.schedule, "never", WEFT_INVALID, "never");
	REFUSED(optimizer.learning_rate, -1, WEFT_INVALID, "learning_rate");
	REFUSED(init, "ones", WEFT_INVALID, "init \"ones\"");
	REFUSED(admit_probability, 0, WEFT_INVALID, "admit_probability 0");
	REFUSED(admit_slots, 3, WEFT_INVALID, "admit_slots 3");
	REFUSED(admit_count, 70000, WEFT_INVALID, "admit_count 70000");
	REFUSED(evict_score_least, -1, WEFT_INVALID, "evict_score_least -1");
	REFUSED(evict_at_cap, 1, WEFT_INVALID, "memory_cap_bytes");
	(void)weft_session_close(session);
}

static void
settings_that_do_not_go_together_are_refused(void **state)
{
	struct weft_session *session = session_on_paper(1);
	struct weft_table_opts opts;
	(void)state;
	stage_table_opts("t", &opts);
	opts.vocabulary = 10;
	opts.evict_age_steps = 5;
	assert_refused(session, &opts, WEFT_INVALID, "fixed vocabulary");
	opts.evict_age_steps = 0;
	opts.admit_probability = 0.5;
	assert_refused(session, &opts, WEFT_INVALID, "fixed vocabulary");
	opts.admit_probability = 1;
	opts.admit_count = 2;
	assert_refused(session, &opts, WEFT_INVALID, "fixed vocabulary");
	stage_table_opts("t", &opts);
	opts.optimizer.method = "adam";
	opts.optimizer.dense_equivalent = 1;
	assert_refused(session, &opts, WEFT_UNSUPPORTED, "adam");
	stage_table_opts("t", &opts);
	opts.evict_score_least = 1;
	opts.evict_fade = 2;
	assert_refused(session, &opts, WEFT_INVALID, "evict_fade 2");
	(void)weft_session_close(session);
}

static void
a_table_is_declared_once_before_seal_in_a_session_with_sparse_ports(void **state)
{
	struct weft_session *session = session_on_paper(0);
	struct weft_table_opts opts;
	struct weft_table *table = NULL;
	char name[200];
	(void)state;
	stage_table_opts("t", &opts);
	assert_refused(session, &opts, WEFT_INVALID, "ports_num_for_sparse");
	assert_int_equal(weft_session_seal(session), WEFT_INVALID);
	(void)weft_session_close(session);
	session = session_on_paper(1);
	assert_int_equal(weft_table_add(session, &opts, &table), WEFT_OK);
	assert_string_equal(weft_table_name(table), "t");
	assert_int_equal(weft_table_dim(table), DIM);
	table = NULL;
	assert_refused(session, &opts, WEFT_INVALID, "declared twice");
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	opts.name = name;
	assert_refused(session, &opts, WEFT_INVALID, "199 characters");
	for (int i = 0; i < 40; i++) { /* as many as one likes */
		(void)snprintf(name, sizeof(name), "table%d", i);
		assert_int_equal(weft_table_add(session, &opts, &table), WEFT_OK);
	}
	assert_int_equal(weft_session_seal(session), WEFT_OK);
	table = NULL;
	opts.name = "late";
	assert_refused(session, &opts, WEFT_INVALID, "after weft_session_seal");
	(void)weft_session_close(session);
}

/* Batches. */

static void
ask_wrongly(struct stage *stage)
{
	uint64_t key[KEYS_MAX + 1] = {1, 2, VOCABULARY, 3};
	struct weft_rows *rows[3] = {NULL};
	CHECK_FAILS(stage, weft_rows_pull(stage->table, key, 4, 0, &rows[0]), WEFT_INVALID,
		    "table fixed: batch: key 2 is 1000");
	CHECK_FAILS(stage, weft_rows_pull(stage->table, key, KEYS_MAX + 1, 0, &rows[0]),
		    WEFT_INVALID, "65 keys");
	CHECK_FAILS(stage, weft_rows_pull(stage->table, key, 2, 4, &rows[0]), WEFT_INVALID,
		    "flags 0x4");
	CHECK_FAILS(stage, weft_rows_pull(stage->table, NULL, 2, 0, &rows[0]), WEFT_INVALID,
		    "is NULL");
	CHECK(stage, rows[0] == NULL);
	CHECK(stage, weft_rows_pull(stage->other, key, 4, 0, &rows[0]) == WEFT_OK);
	CHECK(stage, weft_rows_pull(stage->other, key, 4, 0, &rows[1]) == WEFT_OK);
	CHECK(stage, weft_rows_pull(stage->other, key, 4, 0, &rows[2]) == WEFT_AGAIN);
	CHECK(stage, weft_rows_wait(rows[0]) == WEFT_OK);
	weft_rows_free(rows[0]);
	CHECK(stage, weft_rows_pull(stage->other, key, 4, 0, &rows[2]) == WEFT_OK);
	weft_rows_free(rows[1]); /* on its way: given back when the answers are there */
	CHECK(stage, weft_rows_wait(rows[2]) == WEFT_OK);
	weft_rows_free(rows[2]);
	weft_rows_free(NULL);
	CHECK(stage, weft_rows_pull(stage->other, key, 4, 0, &rows[0]) == WEFT_OK);
	CHECK(stage, weft_rows_wait(rows[0]) == WEFT_OK);
}

static void
take_rows_out(struct stage *stage)
{
	const uint64_t key[] = {9, 2, 9};
	float out[3 * DIM];
	struct weft_table_stats stats = {.struct_bytes = sizeof(stats)};
	struct weft_rows *rows = NULL;
	CHECK(stage, weft_rows_pull(stage->other, key, 3, WEFT_ROWS_IN_ORDER, &rows) == WEFT_OK);
	CHECK_FAILS(stage, weft_rows_gather(rows, out), WEFT_INVALID, "before weft_rows_wait");
	CHECK(stage, weft_rows_wait(rows) == WEFT_OK && weft_rows_in_order(rows) == 0);
	CHECK(stage, weft_rows_gather(rows, out) == WEFT_OK);
	for (uint32_t i = 0; i < 3; i++) {
		const float *row = weft_rows_values(rows) + weft_rows_place(rows)[i] * DIM;
		CHECK(stage, memcmp(out + i * DIM, row, DIM * sizeof(*row)) == 0);
	}
	CHECK(stage, weft_table_stats(stage->other, &stats) == WEFT_OK);
	CHECK(stage, stats.copied_bytes == sizeof(out));
}

static void
keys_and_batches_have_limits_that_are_named(void **state)
{
	struct stage stage;
	(void)state;
	stage_set(&stage, ask_wrongly);
	stage_play_well(&stage);
	stage_set(&stage, take_rows_out);
	stage_play_well(&stage);
}

static void
ask_for_nothing(struct stage *stage)
{
	struct weft_rows *rows = NULL;
	struct weft_rows *other = NULL;
	const uint64_t key = 5;
	const float grad[DIM] = {1, 1, 1};
	CHECK(stage, weft_rows_pull(stage->table, NULL, 0, WEFT_ROWS_CREATE, &rows) == WEFT_OK);
	CHECK(stage, weft_rows_wait(rows) == WEFT_OK && weft_rows_count(rows) == 0);
	CHECK(stage, weft_step(stage->session, 1, 0) == WEFT_OK);
	CHECK(stage, weft_rows_push(rows, NULL, NULL, NULL) == WEFT_OK);
	CHECK(stage, weft_wait_all(stage->session) == WEFT_OK); /* the other counts as empty */
	CHECK(stage, stage->seen.steps_applied == 2);           /* on two lanes */
	CHECK(stage, stage->seen.empty_pushes == 2);
	CHECK(stage, weft_rows_pull(stage->other, &key, 1, WEFT_ROWS_CREATE, &other) == WEFT_OK);
	CHECK(stage, weft_rows_wait(other) == WEFT_OK && weft_rows_values(other)[0] == 0);
	CHECK(stage, weft_step(stage->session, 1, 0) == WEFT_OK);
	CHECK(stage, weft_rows_push(other, grad, NULL, NULL) == WEFT_OK);
	CHECK(stage, weft_step(stage->session, 1, 0) == WEFT_AGAIN); /* handed in by this */
	CHECK(stage, weft_wait_all(stage->session) == WEFT_OK);
	CHECK(stage, weft_rows_pull(stage->other, &key, 1, 0, &other) == WEFT_OK);
	CHECK(stage, weft_rows_wait(other) == WEFT_OK && weft_rows_values(other)[0] == -0.5f);
}

static void
a_batch_without_keys_and_a_table_that_is_not_pushed_count_as_empty(void **state)
{
	struct stage stage;
	(void)state;
	stage_set(&stage, ask_for_nothing);
	stage_play_well(&stage);
}

static void
repeat_keys(struct stage *stage)
{
	const uint64_t key[] = {9, 4, 9, 9};
	const float grad[4 * DIM] = {1, 0, 0, 10, 0, 0, 2, 0, 0, 4, 0, 0};
	struct weft_rows *rows = NULL;
	CHECK(stage, weft_rows_pull(stage->table, key, 4, WEFT_ROWS_CREATE, &rows) == WEFT_OK);
	CHECK(stage, weft_rows_count(rows) == 2);
	const uint32_t *place = weft_rows_place(rows);
	CHECK(stage, place[0] == place[2] && place[2] == place[3] && place[0] != place[1]);
	CHECK(stage, weft_rows_keys(rows)[place[1]] == 4);
	CHECK(stage, weft_rows_wait(rows) == WEFT_OK);
	CHECK(stage, weft_step(stage->session, 1, 0) == WEFT_OK);
	CHECK(stage, weft_rows_push(rows, grad, NULL, NULL) == WEFT_OK);
	CHECK(stage, weft_wait_all(stage->session) == WEFT_OK);
	CHECK(stage, weft_rows_pull(stage->table, key, 2, 0, &rows) == WEFT_OK);
	CHECK(stage, weft_rows_wait(rows) == WEFT_OK);
	place = weft_rows_place(rows);
	CHECK(stage, weft_rows_values(rows)[place[0] * DIM] == -3.5f);
	CHECK(stage, weft_rows_values(rows)[place[1] * DIM] == -5.0f);
	CHECK(stage, stage->seen.rows_pushed == 2);
}

static void
gradients_of_repeated_keys_are_added_up(void **state)
{
	struct stage stage;
	(void)state;
	stage_set(&stage, repeat_keys);
	stage_play_well(&stage);
}

static void
push_wrongly(struct stage *stage)
{
	const uint64_t key = 7;
	const float grad[DIM] = {0};
	struct weft_rows *rows = NULL;
	struct weft_rows *next = NULL;
	CHECK(stage, weft_rows_pull(stage->table, &key, 1, WEFT_ROWS_CREATE, &rows) == WEFT_OK);
	CHECK_FAILS(stage, weft_rows_push(rows, grad, NULL, NULL), WEFT_INVALID,
		    "fixed before weft_step");
	CHECK(stage, weft_step(stage->session, 1, 0) == WEFT_OK);
	CHECK_FAILS(stage, weft_rows_push(rows, grad, NULL, NULL), WEFT_INVALID, "not waited for");
	CHECK(stage, weft_rows_wait(rows) == WEFT_OK);
	CHECK_FAILS(stage, weft_rows_push(rows, NULL, NULL, NULL), WEFT_INVALID, "is NULL");
	/* The next batch waits for this step, and so does this trainer. */
	CHECK(stage, weft_rows_pull(stage->table, &key, 1, WEFT_ROWS_CREATE, &next) == WEFT_OK);
	CHECK_FAILS(stage, weft_rows_wait(next), WEFT_INVALID, "has not handed in");
	CHECK(stage, weft_rows_push(rows, grad, NULL, NULL) == WEFT_OK);
	CHECK_FAILS(stage, weft_rows_push(rows, grad, NULL, NULL), WEFT_INVALID, "twice in step 1");
	CHECK_FAILS(stage, weft_rows_wait(next), WEFT_INVALID, "has not handed in");
	weft_rows_free(rows); /* is pushed: stays */
	CHECK(stage, weft_rows_pull(stage->table, &key, 1, 0, &rows) == WEFT_AGAIN);
	CHECK(stage, weft_wait_all(stage->session) == WEFT_OK);
	CHECK(stage, weft_rows_wait(next) == WEFT_OK);
	CHECK_FAILS(stage, weft_rows_push(next, grad, NULL, NULL), WEFT_INVALID, "twice in step 1");
	CHECK(stage, weft_rows_pull(stage->other, &key, 1, 0, &rows) == WEFT_OK);
	CHECK(stage, weft_rows_wait(rows) == WEFT_OK);
	CHECK_FAILS(stage, weft_rows_push(rows, grad, NULL, NULL), WEFT_INVALID,
		    "handed in already");
	CHECK(stage, weft_step(stage->session, 1, 0) == WEFT_OK);
	CHECK(stage, weft_rows_push(next, grad, NULL, NULL) == WEFT_OK);
	CHECK(stage, weft_rows_push(rows, grad, NULL, NULL) == WEFT_OK); /* the last: it leaves */
	CHECK(stage, weft_wait_all(stage->session) == WEFT_OK);
}

static void
a_table_is_pushed_once_a_step_after_its_batch_was_waited_for(void **state)
{
	struct stage stage;
	(void)state;
	stage_set(&stage, push_wrongly);
	stage_play_well(&stage);
}

static void
ask_for_too_much(struct stage *stage)
{
	uint64_t key[KEYS_MAX];
	struct weft_rows *rows = NULL;
	const float grad[KEYS_MAX * DIM] = {0};
	for (uint32_t i = 0; i < KEYS_MAX; i++) {
		key[i] = i;
	}
	CHECK(stage, weft_rows_pull(stage->table, key, 20, WEFT_ROWS_CREATE, &rows) == WEFT_OK);
	CHECK(stage, weft_rows_wait(rows) == WEFT_OK);
	weft_rows_free(rows);
	/* 4 KiB are held: keys of one pull, but not those of two. */
	CHECK(stage, weft_step(stage->session, 1, 0) == WEFT_OK);
	CHECK(stage, weft_rows_pull(stage->table, key, 20, WEFT_ROWS_CREATE, &rows) == WEFT_OK);
	struct weft_rows *more = NULL;
	CHECK_FAILS(stage, weft_rows_pull(stage->other, key, 20, 0, &more), WEFT_INVALID,
		    "keeps up to 4096: make batches smaller");
	CHECK(stage, weft_wait_all(stage->session) == WEFT_OK);
	CHECK(stage, weft_rows_wait(rows) == WEFT_OK);
	CHECK(stage, weft_step(stage->session, 1, 0) == WEFT_OK);
	CHECK(stage, weft_rows_push(rows, grad, NULL, NULL) == WEFT_OK);
	CHECK(stage, weft_wait_all(stage->session) == WEFT_OK);
}

/* Keys of the other table that lane `lane` of two owns, from `first` on. */
static void
find_keys(uint32_t lane, uint64_t first, uint64_t *key, uint32_t count)
{
	for (uint32_t n = 0; n < count; first++) {
		if (wf_partition_lane(wf_partition_of(first), 2) == lane) {
			key[n++] = first;
		}
	}
}

/* Each lane counts what it will keep itself. */
static void
ask_one_lane_for_too_much(struct stage *stage)
{
	uint64_t key[2][20];
	struct weft_rows *rows = NULL;
	struct weft_rows *more = NULL;
	for (uint32_t lane = 0; lane < 2; lane++) {
		find_keys(lane, 0, key[0], 20);
		find_keys(1 - lane, 0, key[1], 20);
		CHECK(stage, weft_step(stage->session, 1, 0) == WEFT_OK);
		CHECK(stage, weft_rows_pull(stage->other, key[0], 20, 0, &rows) == WEFT_OK);
		CHECK_FAILS(stage, weft_rows_pull(stage->other, key[0], 20, 0, &more), WEFT_INVALID,
			    lane == 0 ? "sparse lane 0 would keep" : "sparse lane 1 would keep");
		CHECK(stage, weft_rows_pull(stage->other, key[1], 20, 0, &more) == WEFT_OK);
		CHECK(stage, weft_wait_all(stage->session) == WEFT_OK);
		CHECK(stage, weft_rows_wait(rows) == WEFT_OK && weft_rows_wait(more) == WEFT_OK);
		weft_rows_free(rows);
		weft_rows_free(more);
	}
}

static void
more_than_a_lane_keeps_is_refused_before_it_is_sent(void **state)
{
	void (*const run[])(struct stage *) = {ask_for_too_much, ask_one_lane_for_too_much};
	(void)state;
	for (size_t i = 0; i < sizeof(run) / sizeof(run[0]); i++) {
		struct stage stage;
		stage_set(&stage, run[i]);
		stage.fake.held_bytes = 4096;
		stage_play_well(&stage);
	}
}

static void
count_everything(struct stage *stage)
{
	struct weft_table_stats stats = {.struct_bytes = 1};
	struct weft_table_lane_stats lane = {.struct_bytes = sizeof(lane)};
	struct weft_sparse_stats all = {.struct_bytes = sizeof(all)};
	uint64_t key[KEYS_MAX];
	const float grad[KEYS_MAX * DIM] = {0};
	struct weft_rows *rows = NULL;
	CHECK_FAILS(stage, weft_table_stats(stage->table, &stats), WEFT_INVALID,
		    "struct_bytes is 1, but");
	stats.struct_bytes = sizeof(stats);
	CHECK(stage, weft_table_stats(stage->table, &stats) == WEFT_OK && stats.imbalance == 0);
	for (int n = 0; n < 200; n++) { /* key 3 half of the time */
		for (uint32_t i = 0; i < KEYS_MAX; i++) {
			key[i] = i % 2 == 0 ? 3 : (uint64_t)n * 31 % VOCABULARY;
		}
		CHECK(stage, weft_rows_pull(stage->table, key, KEYS_MAX, 1, &rows) == WEFT_OK);
		CHECK(stage, weft_rows_wait(rows) == WEFT_OK);
		CHECK(stage, weft_step(stage->session, 1, 0) == WEFT_OK);
		CHECK(stage, weft_rows_push(rows, grad, NULL, NULL) == WEFT_OK);
		CHECK(stage, weft_wait_all(stage->session) == WEFT_OK);
	}
	CHECK(stage, weft_table_stats(stage->table, &stats) == WEFT_OK);
	CHECK(stage, stats.batches_pulled == 200 && stats.batches_pushed == 200);
	CHECK(stage, stats.keys_pulled == 200 * KEYS_MAX && stats.keys_pushed == 200 * KEYS_MAX);
	CHECK(stage, stats.rows_pulled == stage->seen.rows_pulled);
	CHECK(stage, stats.rows_pushed == stage->seen.rows_pushed);
	CHECK(stage, stats.row_bytes == stats.rows_pulled * DIM * 4);
	CHECK(stage, stats.grad_bytes == stats.rows_pushed * DIM * 4);
	CHECK(stage, stats.imbalance >= 1 && stats.lane_count == 2);
	CHECK(stage, stats.hot_count > 0 && stats.hot_key[0] == 3);
	CHECK(stage, stats.hot_times[0] > 200 * KEYS_MAX / 4);
	uint64_t sum = 0;
	for (uint32_t l = 0; l < 2; l++) {
		CHECK(stage, weft_table_lane_stats(stage->table, l, &lane) == WEFT_OK);
		sum += lane.rows_pulled;
	}
	CHECK(stage, sum == stats.rows_pulled);
	CHECK_FAILS(stage, weft_table_lane_stats(stage->table, 2, &lane), WEFT_INVALID,
		    "sparse lane 2 of 2");
	CHECK(stage, weft_sparse_stats(stage->session, &all) == WEFT_OK);
	CHECK(stage, all.steps_applied == 200);
	CHECK(stage, all.rows_updated == 200 * 2 * FAKE_ROWS_UPDATED); /* two lanes */
	CHECK(stage, all.pushes_lost == 200 * 2 * FAKE_PUSHES_LOST);
	CHECK(stage, all.grads_nonfinite == 200 * 2 * FAKE_GRADS_NONFINITE);
}

static void
counters_tell_rows_bytes_lanes_and_hot_keys(void **state)
{
	struct stage stage;
	(void)state;
	stage_set(&stage, count_everything);
	stage_play_well(&stage);
}

/* Lanes that refuse. */

static void
be_refused_a_key(struct stage *stage)
{
	const uint64_t key[] = {1, 2, 3, 4, 13};
	const uint64_t good[] = {1, 2, 3, 4};
	const float grad[4 * DIM] = {0};
	struct weft_rows *bad = NULL;
	struct weft_rows *rows = NULL;
	for (int n = 0; n < 20; n++) { /* more than there are requests and slots */
		CHECK(stage, weft_rows_pull(stage->table, key, 5, 1, &bad) == WEFT_OK);
		CHECK_FAILS(stage, weft_rows_wait(bad), WEFT_INVALID,
			    "table fixed, rows of step 0: the script says no");
		weft_rows_free(bad);
	}
	CHECK(stage, weft_rows_pull(stage->table, key, 5, 1, &bad) == WEFT_OK);
	CHECK(stage, weft_rows_wait(bad) == WEFT_INVALID);
	CHECK(stage, weft_rows_pull(stage->table, good, 4, 1, &rows) == WEFT_OK);
	CHECK(stage, weft_rows_wait(rows) == WEFT_OK); /* the connection stays */
	CHECK(stage, weft_step(stage->session, 1, 0) == WEFT_OK);
	CHECK_FAILS(stage, weft_rows_push(bad, grad, NULL, NULL), WEFT_INVALID, "says no");
	CHECK(stage, weft_rows_push(rows, grad, NULL, NULL) == WEFT_OK);
	CHECK(stage, weft_wait_all(stage->session) == WEFT_OK);
}

static void
a_pull_that_a_lane_refuses_fails_and_the_next_one_does_not(void **state)
{
	struct stage stage;
	(void)state;
	stage_set(&stage, be_refused_a_key);
	stage.fake.wrong = FAKE_NACKS_KEY;
	stage.fake.key = 13;
	stage_play_well(&stage);
	assert_true(stage.seen.pulls > 20);
}

/* Rows that never came are not there to be widened, either. */
static void
gather_what_never_came(struct stage *stage)
{
	const bool ends = stage->fake.wrong == FAKE_ANSWERS_SHORT; /* the job */
	const enum weft_status st = ends ? WEFT_PROTOCOL : WEFT_INVALID;
	const uint64_t key = 13;
	float out[DIM];
	struct weft_rows *rows = NULL;
	CHECK(stage, weft_rows_pull(stage->table, &key, 1, 1, &rows) == WEFT_OK);
	CHECK_FAILS(stage, weft_rows_gather(rows, out), WEFT_INVALID, "before weft_rows_wait");
	CHECK_FAILS(stage, weft_rows_wait(rows), st, ends ? "of rows" : "the script says no");
	CHECK_FAILS(stage, weft_rows_gather(rows, out), st,
		    ends ? "bytes of rows" : "table fixed, rows of step 0: the script says no");
}

static void
rows_that_never_came_are_gathered_with_the_reason(void **state)
{
	static const enum weft_value_format wires[] = {WEFT_VALUES_F32, WEFT_VALUES_BF16};
	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct stage stage;
		stage_set(&stage, gather_what_never_came);
		stage.wire = wires[i % 2];
		stage.fake.wrong = i < 2 ? FAKE_NACKS_KEY : FAKE_ANSWERS_SHORT;
		stage.fake.key = 13;
		stage_play_well(&stage);
	}
}

static void
be_refused_at_once(struct stage *stage)
{
	uint64_t key[KEYS_MAX];
	struct weft_rows *rows = NULL;
	unsigned refused = 0;
	for (uint32_t i = 0; i < KEYS_MAX; i++) {
		key[i] = i * 15;
	}
	for (int n = 0; n < 10; n++) {
		CHECK(stage, weft_rows_pull(stage->table, key, KEYS_MAX, 1, &rows) == WEFT_OK);
		refused += weft_rows_wait(rows) != WEFT_OK ? 1 : 0;
		weft_rows_free(rows);
	}
	CHECK(stage, refused > 0);
	CHECK(stage, weft_step(stage->session, 1, 0) == WEFT_OK);
	CHECK(stage, weft_wait_all(stage->session) == WEFT_OK);
}

static void
parts_of_a_refused_pull_are_sent_all_the_same(void **state)
{
	struct stage stage;
	(void)state;
	stage_set(&stage, be_refused_at_once);
	stage.fake.wrong = FAKE_NACKS_AT_HEAD;
	stage.fake.slot_count = 1; /* so that the refusal comes before the last part leaves */
	stage_play_well(&stage);
}

/* Lanes that do wrong: the job ends, naming the lane and what it did. */

static void
a_lane_that_breaks_the_protocol_ends_the_job_and_is_named(void **state)
{
	static const struct {
		enum fake_wrong wrong;
		enum weft_status status;
		const char *text;
	} wrongs[] = {
		{FAKE_NACKS_PUSH, WEFT_INVALID, "step 2: the script says no"},
		{FAKE_CREDITS_TWICE, WEFT_PROTOCOL, "is not in use"},
		{FAKE_ANSWERS_TWICE, WEFT_PROTOCOL, "was not waited for"},
		{FAKE_ANSWERS_OLD_STEP, WEFT_PROTOCOL, "rows of step 8 modulo 256"},
		{FAKE_ANSWERS_SHORT, WEFT_PROTOCOL, "bytes of rows, but part 0 has"},
		{FAKE_CHANGES_UNASKED, WEFT_PROTOCOL, "was not sent ahead"},
		{FAKE_CHANGES_BEYOND, WEFT_PROTOCOL, "CHANGED: row "},
		{FAKE_CHANGES_NARROW, WEFT_PROTOCOL, "CHANGED: row 0 of 11 bytes"},
		{FAKE_CHANGES_OTHER, WEFT_PROTOCOL, "was not sent ahead"},
		{FAKE_AHEAD_TWICE, WEFT_PROTOCOL, "rows of step 0 modulo 256"},
		{FAKE_AHEAD_ANEW, WEFT_PROTOCOL, "may only be corrected, by CHANGED"},
		{FAKE_APPLIES_UNASKED, WEFT_PROTOCOL, "APPLIED: step 77 was not waited for"},
		{FAKE_SMALL_SLOTS, WEFT_MISMATCH, "slots of 128 bytes"},
		{FAKE_SAYS_NONSENSE, WEFT_PROTOCOL, "sparse message of type 99"},
		{FAKE_HOLDS_NOTHING, WEFT_PROTOCOL, "GRANT: a sparse lane holds 0 bytes"},
		{FAKE_ANNOUNCES, WEFT_PROTOCOL, "GRANT: a sparse lane has pushes announced"},
		{FAKE_RESUMES_IN_PARTS, WEFT_PROTOCOL, "RESUME: units 0 and 2 more, the last"},
		{FAKE_GRANTS_TWICE, WEFT_PROTOCOL, "GRANT: kind 1 was not expected"},
	};
	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		struct stage stage;
		stage_set(&stage, stage_keep_the_failure);
		stage.fake.wrong = wrongs[i].wrong;
		stage.fake.step = 2;
		if (wrongs[i].wrong == FAKE_SMALL_SLOTS) {
			stage.fake.slot_bytes = stage.fake.held_bytes = 128;
		}
		stage_play(&stage);
		bool named = strstr(stage.start_text, "sparse lane") != NULL &&
			     strstr(stage.start_text, wrongs[i].text) != NULL;
		if (stage.start != wrongs[i].status || !named) {
			print_error("%zu: status %d, %s\n", i, (int)stage.start, stage.start_text);
		}
		assert_int_equal(stage.start, wrongs[i].status);
		assert_true(named);
	}
}

/* Rows before their step are refused of a lane that was not asked for them. */
static void
rows_that_come_ahead_unasked_end_the_job(void **state)
{
	struct stage stage;
	stage_set(&stage, stage_keep_the_failure);
	stage.asks_none_ahead = true;
	stage.fake.wrong = FAKE_CHANGES_BEYOND;
	stage.fake.step = 2;
	stage_play(&stage);
	assert_int_equal(stage.start, WEFT_PROTOCOL);
	assert_non_null(strstr(stage.start_text, "rows of step 0 modulo 256, but those of 1"));
}

static enum weft_status
no_partition(void *arg, const struct weft_table_partition *partition)
{
	return arg == NULL && partition->record_count == 0 ? WEFT_OK : WEFT_INTERNAL;
}

static enum weft_status
no_record(void *arg, const struct weft_table_record *record)
{
	return arg == NULL && record == NULL ? WEFT_OK : WEFT_INTERNAL;
}

static enum weft_status
empty_partition(void *arg, uint32_t partition, struct weft_table_partition *out)
{
	(void)arg;
	*out = (struct weft_table_partition){.partition = partition};
	return WEFT_OK;
}

static const struct weft_table_reader to_nowhere = {.partition = no_partition, .record = no_record};
static const struct weft_table_writer from_nothing = {.partition = empty_partition};

static void
read_out_of_turn(struct stage *stage)
{
	CHECK(stage, weft_table_record_floats(stage->table) == DIM);
	CHECK(stage, weft_table_counter_count(stage->table) == 0);
	CHECK_FAILS(stage, weft_table_read(stage->table, &to_nowhere), WEFT_NOMEM,
		    "table fixed, sparse lane 0: no memory to list rows");
	/* The session is none the worse for it. */
	CHECK(stage, weft_step(stage->session, 1, 0) == WEFT_OK);
	CHECK_FAILS(stage, weft_table_read(stage->table, &to_nowhere), WEFT_INVALID,
		    "read within step 1");
	CHECK(stage, weft_wait_all(stage->session) == WEFT_OK);
	CHECK_FAILS(stage, weft_table_read(stage->other, &to_nowhere), WEFT_NOMEM, "table any");
	CHECK_FAILS(stage, weft_table_write(stage->table, &from_nothing), WEFT_INVALID,
		    "weft_table_write after weft_session_start, and before the first step");
}

static void
read_nonsense(struct stage *stage)
{
	CHECK_FAILS(stage, weft_table_read(stage->table, &to_nowhere), WEFT_DATA, "a piece of");
}

static void
read_less(struct stage *stage)
{
	CHECK_FAILS(stage, weft_table_read(stage->table, &to_nowhere), WEFT_PROTOCOL,
		    "PUT: 64 bytes came of a run of 65536");
}

static void
a_piece_that_is_shorter_than_it_says_ends_the_job(void **state)
{
	struct stage stage;
	(void)state;
	stage_set(&stage, read_less);
	stage.fake.wrong = FAKE_FETCHES_SHORT;
	stage_play(&stage);
}

static void
records_are_read_between_steps_and_a_refusal_is_told(void **state)
{
	struct stage stage;
	(void)state;
	stage_set(&stage, read_out_of_turn);
	stage.fake.wrong = FAKE_NACKS_CALLS;
	stage_play_well(&stage);
	stage_set(&stage, read_nonsense);
	stage.fake.wrong = FAKE_FETCHES_NONSENSE;
	stage_play_well(&stage);
}

/* arg: how many counters were not 0. */
static enum weft_status
take_counters(void *arg, const struct weft_table_partition *partition)
{
	unsigned *found = arg;
	bool first_of_a_lane = partition->partition == 0 || partition->partition == 512;
	if (partition->counter_count != FAKE_COUNTERS || partition->record_count != 0) {
		return WEFT_INTERNAL;
	}
	for (uint32_t i = 0; i < FAKE_COUNTERS; i++) {
		uint32_t is = partition->counter == NULL ? 0 : partition->counter[i];
		if (is != (first_of_a_lane ? FAKE_COUNTER_FIRST + i : 0)) {
			return WEFT_INTERNAL;
		}
		*found += is != 0 ? 1 : 0;
	}
	return WEFT_OK;
}

static void
read_counters(struct stage *stage)
{
	unsigned found = 0;
	const struct weft_table_reader to = {
		.partition = take_counters, .record = no_record, .arg = &found};
	CHECK(stage, weft_table_counter_count(stage->other) == FAKE_COUNTERS);
	CHECK(stage, weft_table_read(stage->other, &to) == WEFT_OK);
	CHECK(stage, found == 2 * FAKE_COUNTERS);
}

static void
counters_of_admission_are_read_partition_by_partition(void **state)
{
	struct stage stage;
	stage_set(&stage, read_counters);
	stage.fake.wrong = FAKE_FETCHES_COUNTERS;
	stage.admit_slots = FAKE_COUNTERS;
	stage_play_well(&stage);
}

static void
write_in_vain(struct stage *stage)
{
	enum weft_status st = weft_table_write(stage->table, &from_nothing);
	const char *text = weft_last_error();
	if (stage->fake.wrong == FAKE_NACKS_CALLS) {
		CHECK(stage, st == WEFT_NOMEM && strstr(text, "no memory to list rows") != NULL);
	} else {
		CHECK(stage, st != WEFT_OK && strstr(text, "RESTORED") != NULL);
	}
}

static void
rows_that_a_lane_does_not_put_back_are_told(void **state)
{
	static const enum fake_wrong wrongs[] = {FAKE_NACKS_CALLS, FAKE_RESTORES_ANOTHER};
	for (size_t i = 0; i < 2 * sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		struct stage stage;
		stage_set(&stage, write_in_vain);
		stage.fake.wrong = wrongs[i / 2];
		stage.restores = i % 2 == 0; /* else: what the job begins with */
		stage_play_well(&stage);
	}
}

static void
leave_a_call(struct stage *stage)
{
	const char *text = "the call before was interrupted and is unanswered; end the session";
	const uint64_t key = 5;
	struct weft_rows *rows = NULL;
	uint64_t step = 0;
	stage->interrupted = 1;
	if (stage->restores) {
		CHECK(stage, weft_table_write(stage->table, &from_nothing) == WEFT_AGAIN);
	} else {
		CHECK(stage, weft_table_read(stage->table, &to_nowhere) == WEFT_AGAIN);
	}
	stage->interrupted = 0;
	CHECK_FAILS(stage, weft_table_read(stage->other, &to_nowhere), WEFT_INVALID, text);
	CHECK_FAILS(stage, weft_table_write(stage->table, &from_nothing), WEFT_INVALID, text);
	CHECK_FAILS(stage, weft_table_step(stage->table, &step), WEFT_INVALID, text);
	if (!stage->restores) { /* pulls go on; a script begins at step 0 */
		CHECK(stage, weft_rows_pull(stage->table, &key, 1, 1, &rows) == WEFT_OK);
		CHECK(stage, weft_rows_wait(rows) == WEFT_OK);
	}
}

static void
after_a_read_or_write_that_was_left_there_is_no_other(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct stage stage;
		stage_set(&stage, leave_a_call);
		stage.fake.wrong = FAKE_KEEPS_SILENT;
		stage.restores = i == 1;
		stage_play_well(&stage);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_that_cannot_be_are_refused_and_named),
		cmocka_unit_test(settings_that_do_not_go_together_are_refused),
		cmocka_unit_test(
			a_table_is_declared_once_before_seal_in_a_session_with_sparse_ports),
		cmocka_unit_test(keys_and_batches_have_limits_that_are_named),
		cmocka_unit_test(
			a_batch_without_keys_and_a_table_that_is_not_pushed_count_as_empty),
		cmocka_unit_test(gradients_of_repeated_keys_are_added_up),
		cmocka_unit_test(a_table_is_pushed_once_a_step_after_its_batch_was_waited_for),
		cmocka_unit_test(more_than_a_lane_keeps_is_refused_before_it_is_sent),
		cmocka_unit_test(counters_tell_rows_bytes_lanes_and_hot_keys),
		cmocka_unit_test(a_pull_that_a_lane_refuses_fails_and_the_next_one_does_not),
		cmocka_unit_test(rows_that_never_came_are_gathered_with_the_reason),
		cmocka_unit_test(parts_of_a_refused_pull_are_sent_all_the_same),
		cmocka_unit_test(records_are_read_between_steps_and_a_refusal_is_told),
		cmocka_unit_test(a_piece_that_is_shorter_than_it_says_ends_the_job),
		cmocka_unit_test(counters_of_admission_are_read_partition_by_partition),
		cmocka_unit_test(rows_that_a_lane_does_not_put_back_are_told),
		cmocka_unit_test(after_a_read_or_write_that_was_left_there_is_no_other),
		cmocka_unit_test(a_lane_that_breaks_the_protocol_ends_the_job_and_is_named),
		cmocka_unit_test(rows_that_come_ahead_unasked_end_the_job),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
