/* SPDX-License-Identifier: Apache-2.0 */
/* What honest trainers ask of a sparse lane: rows, steps, reconnects, the end. Every row is
 * compared with a table on which the same steps are done in one piece. Thread: the test's. */
#include "tests/unit/sparse_service/ground.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const uint64_t low[] = {3, 17, 40, 99, 1000};
static const uint64_t high[] = {3, 40, 41, 500, 1000, 1u << 20, 1ull << 60};
static const uint64_t names[] = {0, 1, 5, 1024, 2047};

#define WISH(table_, keys, scale_, offset_)                                                        \
	{                                                                                          \
		.table = (table_), .key = (keys), .count = sizeof(keys) / sizeof((keys)[0]),       \
		.scale = (scale_), .offset = (offset_),                                            \
	}

static uint64_t
counted(const struct ground *ground, enum wf_lane_counter counter)
{
	return wf_stats_get(wf_lane_stats(ground->lane[0]), counter);
}

static void
pulls_first_rows(struct ground *ground)
{
	const struct wish wish[] = {WISH(0, low, 0, 0), WISH(1, names, 0, 4096)};
	struct doll *doll = doll_add(ground, 0, 0);
	doll_meet(doll);
	CHECK(ground, doll->peer.steps.step == 0 && doll->peer.steps.step_of[0] == 0);
	doll_pull(doll, 1, 0, wish, 2);
	ground_settle(ground);
	CHECK(ground, doll->answers == 2 && doll->nacks == 0 && doll->peer.credits == 0);
	CHECK(ground, doll->answer_tag[0] == wf_sparse_answer_tag(1, 0, 0));
	CHECK(ground, ground_rows_are_right(ground, doll, &wish[0]));
	CHECK(ground, ground_rows_are_right(ground, doll, &wish[1]));
	CHECK(ground, counted(ground, WF_LANE_KEY_PULLED_COUNT) == 10);
}

static void
a_pull_is_answered_with_first_values(void **state)
{
	const struct ground_opts opts = {.trainers = 1};
	ground_play(&opts, pulls_first_rows);
}

/* Two trainers push; the later one first. */
static void
push_both(struct ground *ground)
{
	const struct wish zero[] = {WISH(0, low, 1, 0), WISH(1, names, 2, 4096)};
	const struct wish one[] = {WISH(0, high, -3, 0)};
	const struct wish both[] = {zero[0], zero[1], one[0]};
	struct doll *a = doll_add(ground, 0, 0);
	struct doll *b = doll_add(ground, 1, 0);
	doll_meet(a);
	doll_meet(b);
	for (uint64_t step = 1; step <= 3; step++) {
		doll_push(b, step, one, 1);
		ground_settle(ground);
		CHECK(ground, a->applieds == step - 1 && b->applieds == step - 1);
		CHECK(ground, counted(ground, WF_LANE_WAIT_TRAINER_COUNT) == step);
		doll_push(a, step, zero, 2);
		ground_settle(ground);
		CHECK(ground, counted(ground, WF_LANE_WAIT_TRAINER_COUNT) == step);
		ground_model_step(ground, step, 5, both, 3);
		CHECK(ground, a->applieds == step && b->applieds == step);
		CHECK(ground, a->applied.step == step && a->applied.samples == 5);
		CHECK(ground, a->applied.rows_updated == 5 + 7 - 3 + 5);
		doll_pull(b, step, step, both, 2);
		doll_pull(a, step, step, one, 1);
		ground_settle(ground);
		CHECK(ground, ground_rows_are_right(ground, b, &both[0]));
		CHECK(ground, ground_rows_are_right(ground, b, &both[1]));
		CHECK(ground, ground_rows_are_right(ground, a, &one[0]));
	}
	CHECK(ground,
	      wf_stats_get(wf_lane_stats(ground->lane[0]), WF_LANE_STEP_APPLIED_COUNT) == 3);
	CHECK(ground, counted(ground, WF_LANE_KEY_PUSHED_COUNT) == 3 * (5 + 5 + 7));
	CHECK(ground, counted(ground, WF_LANE_ROW_UPDATED_COUNT) == 3 * (5 + 7 - 3 + 5));
	doll_push(b, 4, NULL, 0);
	ground_settle(ground);
	CHECK(ground, counted(ground, WF_LANE_WAIT_TRAINER_COUNT) == 4);
	doll_push(a, 4, NULL, 0);
	ground_settle(ground);
	CHECK(ground, counted(ground, WF_LANE_WAIT_TRAINER_COUNT) == 4 && b->applieds == 4);
	peer_goodbye(&a->peer);
	peer_goodbye(&b->peer);
	ground_settle(ground);
	CHECK(ground, a->peer.goodbye_heard && b->peer.goodbye_heard);
	wf_transport_disconnect(a->peer.conn, WF_DISCONNECT_DRAIN);
	wf_transport_disconnect(b->peer.conn, WF_DISCONNECT_DRAIN);
	ground_run(ground, 5 * WF_NS_PER_S);
	CHECK(ground, wf_lane_job_state(ground->lane[0]) == WF_LANE_FINISHED);
	wf_lane_reset(ground->lane[0]);
	CHECK(ground, wf_lane_job_state(ground->lane[0]) == WF_LANE_IDLE);
}

static void
steps_are_applied_once_in_trainer_order(void **state)
{
	const struct ground_opts opts = {.trainers = 2};
	ground_play(&opts, push_both);
}

static void
a_mean_divides_by_the_samples_of_the_step(void **state)
{
	const struct ground_opts opts = {.trainers = 2, .grad_reduce = WEFT_REDUCE_MEAN};
	ground_play(&opts, push_both);
}

static void
show_and_click_travel_with_the_rows(void **state)
{
	const struct ground_opts opts = {.trainers = 2, .has_scores = true};
	ground_play(&opts, push_both);
}

/* The rows of step 1 are asked for before it is pushed. */
static void
prefetch(struct ground *ground)
{
	const struct wish wish[] = {WISH(0, low, 1, 0)};
	const struct wish next[] = {WISH(0, high, 1, 4096)};
	struct doll *doll = doll_add(ground, 0, 0);
	doll_meet(doll);
	doll_pull(doll, 1, 0, wish, 1);
	doll_pull(doll, 2, 1, next, 1);
	ground_settle(ground);
	CHECK(ground, doll->answers == 1 && doll->peer.credits == 1);
	CHECK(ground, ground_rows_are_right(ground, doll, &wish[0]));
	CHECK(ground, counted(ground, WF_LANE_PULL_HELD_COUNT) == 1);
	doll_push(doll, 1, wish, 1);
	ground_settle(ground);
	ground_model_step(ground, 1, 2, wish, 1);
	CHECK(ground, doll->applieds == 1 && doll->answers == 2);
	CHECK(ground, doll->answer_tag[1] == wf_sparse_answer_tag(2, 0, 1));
	CHECK(ground, ground_rows_are_right(ground, doll, &next[0]));
}

static void
a_pull_of_the_step_under_way_is_held_until_it_is_applied(void **state)
{
	const struct ground_opts opts = {.trainers = 1};
	ground_play(&opts, prefetch);
}

/* More parts than the window has slots, of a trainer that then waits for the other. */
static void
push_many(struct ground *ground)
{
	static uint64_t key[11][20];
	struct wish wish[12];
	const struct wish other[] = {WISH(0, high, 5, 0)};
	for (uint32_t p = 0; p < 11; p++) {
		for (uint32_t k = 0; k < 20; k++) {
			key[p][k] = p * 1000 + k * 7;
		}
		wish[p] = (struct wish){.table = 0,
					.key = key[p],
					.count = 20,
					.scale = 1,
					.coding = p % 2 == 0 ? WF_KEYS_RAW : WF_KEYS_DELTA,
					.offset = p * 20ull * GROUND_DIM * sizeof(float)};
	}
	wish[11] = other[0];
	struct doll *a = doll_add(ground, 0, 0);
	struct doll *b = doll_add(ground, 1, 0);
	doll_meet(a);
	doll_meet(b);
	doll_push(a, 1, wish, 11);
	ground_settle(ground);
	CHECK(ground, a->peer.credits == 8 && a->applieds == 0);
	CHECK(ground, counted(ground, WF_LANE_SLICE_PARKED_COUNT) == 8);
	doll_pull(a, 1, 1, wish, 11); /* held: one slot is free, and CREDIT has to free it again */
	ground_settle(ground);
	CHECK(ground, a->peer.credits == 8 + 3 + 11 || a->peer.credits == 8 + 11);
	doll_push(b, 1, other, 1);
	ground_settle(ground);
	ground_model_step(ground, 1, 5, wish, 12);
	CHECK(ground, a->applieds == 1 && b->applieds == 1 && a->answers == 11);
	for (uint32_t p = 0; p < 11; p++) {
		CHECK(ground, ground_rows_are_right(ground, a, &wish[p]));
	}
}

static void
parts_that_wait_are_copied_aside_when_the_window_is_full(void **state)
{
	const struct ground_opts opts = {.trainers = 2};
	ground_play(&opts, push_many);
}

/* There and back; sums are of f32. */
static void
values_in_16_bits_are_rounded_once_each_way(void **state)
{
	for (int format = WEFT_VALUES_BF16; format <= WEFT_VALUES_F16; format++) {
		struct ground_opts opts = {.trainers = 1,
					   .value_wire = (enum weft_value_format)format};
		ground_play(&opts, pulls_first_rows);
		opts.trainers = 2;
		ground_play(&opts, push_both);
		ground_play(&opts, push_many);
		opts.has_scores = true;
		ground_play(&opts, push_both);
	}
}

/* A push in two messages, the second with the last parts. */
static void
push_in_two_messages(struct ground *ground)
{
	const struct wish wish[] = {WISH(0, low, 1, 0), WISH(1, names, 2, 4096)};
	struct doll *doll = doll_add(ground, 0, 0);
	struct wf_sparse_push push;
	doll_meet(doll);
	doll_fill_push(doll, 1, &wish[0], 1, &push);
	push.flags = 0;
	doll_say_push(doll, &push);
	doll_put(doll, 0, 0, 1, &wish[0]);
	ground_settle(ground);
	CHECK(ground, doll->applieds == 0);
	doll_push(doll, 1, &wish[1], 1);
	ground_settle(ground);
	ground_model_step(ground, 1, 2, wish, 2);
	CHECK(ground, doll->applieds == 1 && doll->applied.rows_updated == 10);
	doll_pull(doll, 1, 1, wish, 2);
	ground_settle(ground);
	CHECK(ground, ground_rows_are_right(ground, doll, &wish[0]));
	CHECK(ground, ground_rows_are_right(ground, doll, &wish[1]));
	doll_push(doll, 2, NULL, 0);
	ground_settle(ground);
	CHECK(ground, doll->applieds == 2 && doll->applied.rows_updated == 0);
}

static void
a_push_may_take_several_messages_or_be_empty(void **state)
{
	const struct ground_opts opts = {.trainers = 1};
	ground_play(&opts, push_in_two_messages);
}

static void
run_out(struct ground *ground)
{
	const struct wish wish[] = {WISH(0, low, 1, 0)};
	const struct wish other[] = {WISH(0, high, 3, 0)};
	const struct wish both[] = {wish[0], other[0]};
	struct doll *a = doll_add(ground, 0, 0);
	struct doll *b = doll_add(ground, 1, 0);
	doll_meet(a);
	doll_meet(b);
	doll_push(a, 1, wish, 1);
	doll_say_out(b, 1, 0);
	ground_settle(ground);
	ground_model_step(ground, 1, 2, wish, 1);
	CHECK(ground, a->applieds == 1 && b->applieds == 0 && a->applied.samples == 2);
	doll_say_out(b, 1, 0); /* again, as after a reconnect */
	doll_push(a, 2, wish, 1);
	ground_settle(ground);
	ground_model_step(ground, 2, 2, wish, 1);
	CHECK(ground, a->applieds == 2);
	/* The next pass: both. */
	struct wf_sparse_push push;
	doll_fill_push(b, 3, other, 1, &push);
	push.pass = 1;
	doll_say_push(b, &push);
	doll_put(b, 0, 0, 3, &other[0]);
	doll_fill_push(a, 3, wish, 1, &push);
	push.pass = 1;
	doll_say_push(a, &push);
	doll_put(a, 0, 0, 3, &wish[0]);
	ground_settle(ground);
	ground_model_step(ground, 3, 5, both, 2);
	CHECK(ground, a->applieds == 3 && b->applieds == 1 && b->applied.step == 3);
	doll_pull(b, 1, 3, both, 2);
	ground_settle(ground);
	CHECK(ground, ground_rows_are_right(ground, b, &both[1]));
}

static void
who_is_out_of_data_counts_as_empty_until_the_next_pass(void **state)
{
	const struct ground_opts opts = {.trainers = 2};
	ground_play(&opts, run_out);
}

static void
cut(struct doll *doll)
{
	wf_transport_disconnect(doll->peer.conn, WF_DISCONNECT_NOW);
	ground_settle(doll->ground);
	CHECK(doll->ground, doll->peer.down);
}

/* A push that is whole survives its path; one that is not is dropped, and so are pulls. */
static void
reconnect(struct ground *ground)
{
	const struct wish wish[] = {WISH(0, low, 1, 0), WISH(1, names, 2, 4096)};
	const struct wish other[] = {WISH(0, high, 3, 0)};
	const struct wish both[] = {wish[0], wish[1], other[0]};
	struct doll *a = doll_add(ground, 0, 0);
	struct doll *b = doll_add(ground, 1, 0);
	struct wf_sparse_push push;
	doll_meet(a);
	doll_meet(b);
	doll_push(a, 1, wish, 2);
	doll_pull(a, 1, 1, wish, 2);
	doll_fill_push(b, 1, other, 1, &push);
	push.flags = 0;
	doll_say_push(b, &push);
	doll_put(b, 0, 0, 1, &other[0]); /* its last message does not come */
	ground_settle(ground);
	cut(a);
	cut(b);
	CHECK(ground, counted(ground, WF_LANE_SLICE_PARKED_COUNT) == 2); /* all of a's, no other */
	doll_meet(a);
	CHECK(ground, a->peer.steps.step == 1 && a->peer.steps.step_of[0] == 0);
	doll_meet(b);
	CHECK(ground, b->peer.steps.step == 0);
	doll_push(b, 1, other, 1);
	ground_settle(ground);
	ground_model_step(ground, 1, 5, both, 3);
	CHECK(ground, a->applieds == 1 && b->applieds == 1 && a->answers == 0);
	doll_pull(a, 1, 1, wish, 2); /* again */
	ground_settle(ground);
	CHECK(ground, a->answers == 2 && ground_rows_are_right(ground, a, &wish[0]));
	CHECK(ground, ground_rows_are_right(ground, a, &wish[1]));
	CHECK(ground, counted(ground, WF_LANE_PEER_RECONNECTED_COUNT) == 2);
}

static void
a_push_that_is_whole_outlives_its_path(void **state)
{
	const struct ground_opts opts = {.trainers = 2};
	ground_play(&opts, reconnect);
}

/* APPLIED was lost with the path: HAVE tells that it is lacking. */
static void
hear_again(struct ground *ground)
{
	const struct wish wish[] = {WISH(0, low, 1, 0)};
	struct doll *doll = doll_add(ground, 0, 0);
	doll_meet(doll);
	doll_push(doll, 1, wish, 1);
	ground_settle(ground);
	CHECK(ground, doll->applieds == 1);
	cut(doll);
	doll->applieds = 0; /* as if it had not been heard */
	doll_meet(doll);
	CHECK(ground, doll->peer.steps.step == 1 && doll->peer.steps.step_of[0] == 1);
	CHECK(ground, doll->applieds == 1 && doll->applied.step == 1);
	cut(doll);
	doll_meet(doll);
	CHECK(ground, doll->applieds == 1);
}

static void
applied_is_said_again_to_who_lacks_it(void **state)
{
	const struct ground_opts opts = {.trainers = 1};
	ground_play(&opts, hear_again);
}

static void
look_without_creating(struct ground *ground)
{
	const struct wish wish[] = {WISH(0, low, 1, 0)};
	struct doll *doll = doll_add(ground, 0, 0);
	struct wf_sparse_pull pull;
	doll_meet(doll);
	doll_fill_pull(doll, 1, 0, wish, 1, &pull);
	pull.flags = 0;
	doll_say_pull(doll, &pull);
	doll_put(doll, 1, 0, 0, &wish[0]);
	ground_settle(ground);
	const struct wf_table *table = wf_sparse_service_table(ground->lane[0], 0);
	CHECK(ground, wf_stats_get(wf_table_stats(table), WF_TABLE_ROWS_LIVE) == 0);
	CHECK(ground, ground_rows_are_right(ground, doll, &wish[0]));
	doll_pull(doll, 2, 0, wish, 1);
	ground_settle(ground);
	CHECK(ground, wf_stats_get(wf_table_stats(table), WF_TABLE_ROWS_LIVE) == 5);
}

static void
evaluation_bears_no_rows(void **state)
{
	const struct ground_opts opts = {.trainers = 1};
	ground_play(&opts, look_without_creating);
}

/* A long pull over few answer buffers: parts follow as buffers become free. */
static void
pull_long(struct ground *ground)
{
	static uint64_t key[24][40];
	struct wish wish[24];
	for (uint32_t p = 0; p < 24; p++) {
		for (uint32_t k = 0; k < 40; k++) {
			key[p][k] = p * 1000ull + k;
		}
		wish[p] = (struct wish){.table = 0,
					.key = key[p],
					.count = 40,
					.scale = 1,
					.coding = WF_KEYS_DELTA,
					.offset = p * 40ull * GROUND_DIM * sizeof(float)};
	}
	struct doll *doll = doll_add(ground, 0, 0);
	doll_meet(doll);
	doll_pull(doll, 70000, 1, wish, 24); /* keys of several cells */
	doll_push(doll, 1, wish, 7);
	ground_settle(ground);
	ground_model_step(ground, 1, 2, wish, 7);
	CHECK(ground, doll->applieds == 1 && doll->answers == 24);
	for (uint32_t p = 0; p < 24; p++) {
		CHECK(ground, ground_rows_are_right(ground, doll, &wish[p]));
		CHECK(ground, doll->answer_tag[p] == wf_sparse_answer_tag(70000, p, 1));
	}
	const struct wf_sparse *sparse = ground->lane[0]->own;
	const struct wf_key_cells *cells = &sparse->peer[0].pulls.cells;
	CHECK(ground, cells->free_count == cells->count && sparse->due_pulls == 0);
}

static void
a_long_pull_is_answered_part_by_part(void **state)
{
	const struct ground_opts opts = {.trainers = 1, .slot_count = 2};
	ground_play(&opts, pull_long);
}

/* The path ends while an answer is gathered that the transport has not accepted. */
static void
lose_an_answer(struct ground *ground)
{
	struct doll *doll = doll_add(ground, 0, 0);
	doll_meet(doll);
	struct wf_sparse *sparse = ground->lane[0]->own;
	struct wf_sparse_peer *own = &sparse->peer[0];
	own->answer =
		(struct wf_answer){.due = true, .buffer = wf_staging_claim(&sparse->answers, 0)};
	CHECK(ground, !wf_staging_has_free(&sparse->answers, 0));
	wf_transport_disconnect(doll->peer.conn, WF_DISCONNECT_NOW);
	ground_settle(ground);
	CHECK(ground, !own->answer.due && wf_staging_has_free(&sparse->answers, 0));
}

static void
the_buffer_of_an_answer_that_was_not_posted_is_released(void **state)
{
	const struct ground_opts opts = {.trainers = 1, .slot_count = 1};
	ground_play(&opts, lose_an_answer);
}

/* The same steps on two lanes: each key goes to its own. */
static void
push_to_two_lanes(struct ground *ground)
{
	struct doll *doll[2];
	uint64_t key[2][300];
	uint32_t count[2] = {0, 0};
	for (uint64_t k = 0; k < 300; k++) {
		uint32_t lane = wf_partition_lane(wf_partition_of(k), 2);
		key[lane][count[lane]++] = k;
	}
	CHECK(ground, count[0] > 100 && count[1] > 100);
	struct wish all[16];
	uint32_t parts[2] = {0, 0};
	uint32_t total = 0;
	for (uint32_t lane = 0; lane < 2; lane++) {
		doll[lane] = doll_add(ground, 0, lane);
		doll_meet(doll[lane]);
		for (uint32_t at = 0; at < count[lane]; at += 40) {
			uint32_t left = count[lane] - at;
			all[total++] = (struct wish){.table = 0,
						     .key = &key[lane][at],
						     .count = left < 40 ? left : 40,
						     .scale = 1,
						     .offset = at * GROUND_DIM * sizeof(float)};
			parts[lane]++;
		}
	}
	for (uint64_t step = 1; step <= 2; step++) {
		doll_push(doll[1], step, &all[parts[0]], parts[1]);
		doll_push(doll[0], step, all, parts[0]);
		ground_settle(ground);
		ground_model_step(ground, step, 2, all, total);
		CHECK(ground, doll[0]->applieds == step && doll[1]->applieds == step);
	}
	doll_pull(doll[0], 1, 2, all, parts[0]);
	doll_pull(doll[1], 1, 2, &all[parts[0]], parts[1]);
	ground_settle(ground);
	for (uint32_t i = 0; i < total; i++) {
		CHECK(ground, ground_rows_are_right(ground, doll[i < parts[0] ? 0 : 1], &all[i]));
	}
}

static void
two_lanes_give_the_rows_of_one(void **state)
{
	const struct ground_opts opts = {.trainers = 1, .lanes = 2};
	ground_play(&opts, push_to_two_lanes);
}

static void
lose_rows(struct ground *ground)
{
	static uint64_t key[10][40];
	struct wish wish[10];
	struct doll *doll = doll_add(ground, 0, 0);
	uint64_t lost = 0;
	doll_meet(doll);
	for (uint64_t step = 1; step <= 15; step++) {
		for (uint32_t p = 0; p < 10; p++) {
			for (uint32_t k = 0; k < 40; k++) {
				key[p][k] = step * 10000 + p * 100 + k;
			}
			wish[p] = (struct wish){.table = 0, .key = key[p], .count = 40, .scale = 1};
		}
		doll_push(doll, step, wish, 10);
		ground_settle(ground);
		CHECK(ground, doll->applieds == step);
		CHECK(ground, doll->applied.rows_updated + doll->applied.pushes_lost == 400);
		lost += doll->applied.pushes_lost;
	}
	CHECK(ground, lost > 0 && lost < 6000);
}

static void
pairs_without_memory_are_told(void **state)
{
	/* Room for what the table needs for itself, and some rows. */
	const struct ground_opts opts = {.trainers = 1, .memory_cap_bytes = 300 << 10};
	ground_play(&opts, lose_rows);
}

static void
outgrow_the_lane(struct ground *ground)
{
	static uint64_t key[10][40];
	struct wish wish[10];
	struct doll *doll = doll_add(ground, 0, 0);
	uint64_t step = 0;
	doll_meet(doll);
	while (!doll->peer.aborted && step < 1000) {
		for (uint32_t i = 0; i < 400; i++) {
			key[i / 40][i % 40] = step * 400 + i;
		}
		for (uint32_t p = 0; p < 10; p++) {
			wish[p] = (struct wish){.table = 0, .key = key[p], .count = 40, .scale = 1};
		}
		doll_push(doll, ++step, wish, 10);
		ground_settle(ground);
		CHECK(ground, doll->peer.resumed && doll->applied.pushes_lost == 0);
	}
	CHECK(ground, doll->peer.aborted && doll->peer.abort.status == WEFT_NOMEM);
	CHECK(ground, doll->applieds == step - 1);
	CHECK(ground, strstr(doll->peer.abort.reason, "table words") != NULL);
	CHECK(ground, strstr(doll->peer.abort.reason, "raise it") != NULL);
}

static void
without_a_cap_no_pair_is_lost_the_job_ends(void **state)
{
	/* Room for both tables, and some rows. */
	const struct ground_opts opts = {.trainers = 1, .max_shard_bytes = 10 << 20};
	ground_play(&opts, outgrow_the_lane);
	/* A cap that the lane has no room for changes nothing. */
	const struct ground_opts capped = {
		.trainers = 1, .max_shard_bytes = 10 << 20, .memory_cap_bytes = 1ull << 30};
	ground_play(&capped, outgrow_the_lane);
}

static uint32_t
events(const struct wf_trace *ring, enum wf_trace_what what, uint32_t peer, uint64_t value)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < wf_trace_kept(ring); i++) {
		const struct wf_trace_event *event = wf_trace_at(ring, i);
		count +=
			event->what == what && event->peer == peer && event->value == value ? 1 : 0;
	}
	return count;
}

/* Two steps of two trainers are recorded, and the end of the recording. */
static void
record_steps(struct ground *ground)
{
	static struct wf_trace ring;
	const struct wish a[] = {WISH(0, low, 1, 0)};
	const struct wish b[] = {WISH(0, high, 1, 0)};
	struct wf_lane *lane = ground->lane[0];
	for (uint32_t t = 0; t < 2; t++) {
		doll_meet(doll_add(ground, t, 0));
	}
	ring = (struct wf_trace){.env = lane->env};
	lane->trace.ring = &ring;
	for (uint64_t step = 1; step <= 2; step++) {
		doll_pull(&ground->doll[0], step, step - 1, a, 1);
		doll_push(&ground->doll[0], step, a, 1);
		doll_push(&ground->doll[1], step, b, 1);
		ground_settle(ground);
	}
	CHECK(ground, events(&ring, WF_TRACE_ROWS_PULLED, 0, 5) == 2);
	CHECK(ground, events(&ring, WF_TRACE_ARRIVED, 0, 5) == 2);
	CHECK(ground, events(&ring, WF_TRACE_ARRIVED, 1, 7) == 2);
	CHECK(ground, events(&ring, WF_TRACE_APPLIED, WF_TRACE_ALL, 9) == 2);
	CHECK(ground, events(&ring, WF_TRACE_STEP_DONE, WF_TRACE_ALL, 0) == 2);
	CHECK(ground, events(&ring, WF_TRACE_ANSWER_POSTED, 0, 0) == 2);
	CHECK(ground, events(&ring, WF_TRACE_ANSWER_POSTED, 1, 0) == 2);
	for (uint64_t i = 0; i < 200; i++) { /* one key of 64 is counted */
		doll_pull(&ground->doll[0], 3 + i, 2, a, 1);
		ground_settle(ground);
	}
	lane->service->trace(lane, &ring);
	uint32_t hot = 0;
	for (size_t i = 0; i < sizeof(low) / sizeof(low[0]); i++) {
		hot += events(&ring, WF_TRACE_HOT_KEY, 0, low[i]);
	}
	CHECK(ground, hot == 4);
	lane->trace.ring = NULL;
}

static void
what_a_lane_records_of_rows_is_complete(void **state)
{
	const struct ground_opts opts = {.trainers = 2};
	(void)state;
	ground_play(&opts, record_steps);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pull_is_answered_with_first_values),
		cmocka_unit_test(steps_are_applied_once_in_trainer_order),
		cmocka_unit_test(a_mean_divides_by_the_samples_of_the_step),
		cmocka_unit_test(show_and_click_travel_with_the_rows),
		cmocka_unit_test(a_pull_of_the_step_under_way_is_held_until_it_is_applied),
		cmocka_unit_test(parts_that_wait_are_copied_aside_when_the_window_is_full),
		cmocka_unit_test(values_in_16_bits_are_rounded_once_each_way),
		cmocka_unit_test(a_push_may_take_several_messages_or_be_empty),
		cmocka_unit_test(who_is_out_of_data_counts_as_empty_until_the_next_pass),
		cmocka_unit_test(a_push_that_is_whole_outlives_its_path),
		cmocka_unit_test(applied_is_said_again_to_who_lacks_it),
		cmocka_unit_test(evaluation_bears_no_rows),
		cmocka_unit_test(a_long_pull_is_answered_part_by_part),
		cmocka_unit_test(the_buffer_of_an_answer_that_was_not_posted_is_released),
		cmocka_unit_test(two_lanes_give_the_rows_of_one),
		cmocka_unit_test(pairs_without_memory_are_told),
		cmocka_unit_test(without_a_cap_no_pair_is_lost_the_job_ends),
		cmocka_unit_test(what_a_lane_records_of_rows_is_complete),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
