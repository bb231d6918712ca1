/* SPDX-License-Identifier: Apache-2.0 */
/* Rows fetched from a sparse lane with state and stamps, and restored to another: pieces,
 * reconnects, what is refused and what costs the connection. Thread: the test's. */
#include "tests/unit/sparse_service/ground.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "wire/little.h"
#include "wire/partition.h"
#include "wire/row_record.h"

#define RUNS_MAX 64u
#define RUN_BYTES 512u
#define PIECE_AT 8192u /* in the doll's rows */

static const uint64_t low[] = {3, 17, 40, 99, 1000};
static const uint64_t high[] = {3, 40, 41, 500, 1000, 1u << 20, 1ull << 60};
static const uint64_t names[] = {0, 1, 5, 1024, 2047};

static const struct wish first[] = {
	{.table = 0, .key = low, .count = 5, .scale = 1},
	{.table = 1, .key = names, .count = 5, .scale = 2, .offset = 4096},
};
static const struct wish second[] = {
	{.table = 0, .key = high, .count = 7, .scale = -3},
	{.table = 1, .key = names, .count = 5, .scale = 1, .offset = 4096},
};

/* Runs of both tables, as they came. */
static struct run {
	uint32_t table, lane_first, bytes;
	uint8_t at[RUN_BYTES];
} runs[RUNS_MAX];
static uint32_t run_count;
static uint64_t request_id = 100;

static void
say_fetch(struct doll *doll, const struct wf_sparse_fetch *fetch)
{
	struct wf_msg msg;
	wf_sparse_fetch_encode(fetch, &msg);
	peer_send(&doll->peer, &msg);
}

static struct wf_sparse_fetch
fetch_of(uint32_t table, uint64_t step, uint32_t partition)
{
	return (struct wf_sparse_fetch){
		.request_id = ++request_id,
		.step = step,
		.table = table,
		.pass = 1,
		.from = {.partition = partition, .kind = WF_RUN_COUNTERS},
		.bytes = 128,
		.offset = PIECE_AT,
	};
}

static void
say_restore(struct doll *doll, const struct wf_sparse_restore *restore, const uint8_t *run)
{
	struct wf_msg msg;
	wf_sparse_restore_encode(restore, &msg);
	peer_send(&doll->peer, &msg);
	if (restore->bytes > 0) {
		doll->peer.buffer[0] = restore->request_id << 8;
		doll_put_raw(doll,
			     wf_sparse_put_tag(0, doll->peer.grant.slot_count, 0, restore->step),
			     run, restore->bytes);
	}
}

static struct wf_sparse_restore
restore_of(const struct run *run, uint64_t step)
{
	return (struct wf_sparse_restore){
		.request_id = ++request_id,
		.step = step,
		.samples = 4,
		.table_step = step,
		.table = run->table,
		.bytes = run->bytes,
	};
}

static void
cut(struct doll *doll)
{
	wf_transport_disconnect(doll->peer.conn, WF_DISCONNECT_NOW);
	ground_settle(doll->ground);
	CHECK(doll->ground, doll->peer.down);
}

/* All of a lane's table, in small pieces, each of which is asked for twice: the second time on
 * another path. */
static void
fetch_all(struct doll *doll, uint32_t table, uint64_t step, uint32_t begin, uint32_t end)
{
	struct ground *ground = doll->ground;
	struct wf_sparse_fetch fetch = fetch_of(table, step, begin);
	while (fetch.from.partition < end && run_count < RUNS_MAX &&
	       !script_failed(&ground->script)) {
		const uint8_t *piece = (const uint8_t *)doll_rows(doll, PIECE_AT);
		uint8_t before[128];
		struct wf_run_head head;
		uint32_t answers = doll->answers;
		say_fetch(doll, &fetch);
		ground_settle(ground);
		CHECK(ground, doll->answers == answers + 1 && doll->nacks == 0);
		memcpy(before, piece, sizeof(before));
		cut(doll);
		doll_meet(doll);
		say_fetch(doll, &fetch);
		ground_settle(ground);
		CHECK(ground, doll->answers == answers + 2);
		wf_run_head_get(piece, &head);
		CHECK(ground, head.request_id == fetch.request_id && head.bytes <= fetch.bytes);
		CHECK(ground, memcmp(before, piece, head.bytes) == 0);
		if (script_failed(&ground->script) || head.bytes > sizeof(before)) {
			return;
		}
		struct run *run = &runs[run_count];
		run->table = table;
		run->lane_first = begin;
		run->bytes = head.bytes - WF_RUN_HEAD_BYTES;
		memcpy(run->at, piece + WF_RUN_HEAD_BYTES, run->bytes);
		run_count += run->bytes > 0 ? 1 : 0;
		fetch.request_id = ++request_id;
		fetch.from = head.next;
	}
}

static void
save(struct ground *ground)
{
	struct doll *doll = doll_add(ground, 0, 0);
	doll_meet(doll);
	doll_push(doll, 1, first, 2);
	ground_settle(ground);
	doll_push(doll, 2, second, 2);
	ground_settle(ground);
	CHECK(ground, doll->applieds == 2);
	run_count = 0;
	fetch_all(doll, 0, 2, 0, WF_PARTITION_COUNT);
	CHECK(ground, run_count >= 4); /* 9 rows of 48 bytes and more */
	uint32_t words = run_count;
	fetch_all(doll, 1, 2, 0, WF_PARTITION_COUNT);
	CHECK(ground, run_count > words);
	/* The lane goes on. */
	doll_push(doll, 3, first, 2);
	ground_settle(ground);
	CHECK(ground, doll->applieds == 3);
}

static void
put_all_back(struct doll *doll)
{
	struct ground *ground = doll->ground;
	for (uint32_t i = 0; i < run_count; i++) {
		const struct wf_sparse_restore restore = restore_of(&runs[i], 2);
		say_restore(doll, &restore, runs[i].at);
		if (i % 2 == 0) { /* RESTORED may be lost with the path */
			ground_settle(ground);
			cut(doll);
			doll_meet(doll);
			say_restore(doll, &restore, runs[i].at);
		}
		ground_settle(ground);
		CHECK(ground, doll->nacks == 0);
		CHECK(ground, doll->restored.request_id == restore.request_id);
		CHECK(ground, i % 2 == 0 ? doll->restored.rows == 0 : doll->restored.rows > 0);
	}
}

static void
go_on(struct ground *ground)
{
	struct doll *doll = doll_add(ground, 0, 0);
	doll_meet(doll);
	put_all_back(doll);
	ground_model_step(ground, 1, 2, first, 2);
	ground_model_step(ground, 2, 2, second, 2);
	doll_pull(doll, 1, 2, second, 2);
	ground_settle(ground);
	CHECK(ground, ground_rows_are_right(ground, doll, &second[0]));
	CHECK(ground, ground_rows_are_right(ground, doll, &second[1]));
	doll_push(doll, 3, first, 2);
	ground_settle(ground);
	CHECK(ground, doll->applieds == 1 && doll->applied.step == 3);
	ground_model_step(ground, 3, 2, first, 2);
	doll_pull(doll, 2, 3, first, 2);
	ground_settle(ground);
	CHECK(ground, ground_rows_are_right(ground, doll, &first[0]));
	CHECK(ground, ground_rows_are_right(ground, doll, &first[1]));
}

static void
a_lane_goes_on_with_the_rows_that_another_had(void **state)
{
	const struct ground_opts opts = {.trainers = 1};
	(void)state;
	ground_play(&opts, save);
	ground_play(&opts, go_on);
}

static bool
is_refused(struct doll *doll, enum weft_status status, const char *text)
{
	ground_settle(doll->ground);
	if (doll->nacks != 1 || doll->nack[0].request_id != request_id ||
	    doll->nack[0].status != status || strstr(doll->nack[0].reason, text) == NULL) {
		print_error("%u refusals, status %u, \"%s\"\n", doll->nacks, doll->nack[0].status,
			    doll->nack[0].reason);
		return false;
	}
	doll->nacks = 0;
	return !doll->peer.down;
}

static void
be_refused(struct ground *ground)
{
	struct doll *a = doll_add(ground, 0, 0);
	struct doll *b = doll_add(ground, 1, 0);
	const uint8_t nothing[64] = {0};
	const struct run none = {.table = 0, .bytes = 64};
	doll_meet(a);
	doll_meet(b);
	struct wf_sparse_fetch fetch = fetch_of(0, 0, 0);
	say_fetch(b, &fetch);
	CHECK(ground, is_refused(b, WEFT_INVALID, "only trainer 0 sends it"));
	fetch = fetch_of(0, 1, 0);
	say_fetch(a, &fetch);
	CHECK(ground, is_refused(a, WEFT_INVALID, "of step 1, but 0 is the last"));
	fetch = fetch_of(0, 0, WF_PARTITION_COUNT / 2);
	say_fetch(a, &fetch);
	CHECK(ground, is_refused(a, WEFT_INVALID, "another lane"));
	struct wf_sparse_restore restore = restore_of(&none, 2);
	say_restore(b, &restore, nothing);
	CHECK(ground, is_refused(b, WEFT_INVALID, "only trainer 0 sends it"));
	CHECK(ground, b->peer.buffer[0] == PEER_BUFFER_FREE);
	restore = restore_of(&none, 1ull << 40);
	say_restore(a, &restore, nothing);
	CHECK(ground, is_refused(a, WEFT_INVALID, "is above the limit"));
	restore = restore_of(&none, 2);
	say_restore(a, &restore, nothing); /* a section of kind 0 */
	CHECK(ground, is_refused(a, WEFT_DATA, "kind 0"));
	CHECK(ground, a->peer.buffer[0] == PEER_BUFFER_FREE);
	restore = restore_of(&none, 3);
	say_restore(a, &restore, nothing);
	CHECK(ground, is_refused(a, WEFT_INVALID, "used already"));
}

static void
what_cannot_be_fetched_or_put_back_is_refused(void **state)
{
	const struct ground_opts opts = {.trainers = 2, .lanes = 2};
	(void)state;
	ground_play(&opts, be_refused);
}

static void
come_too_late(struct ground *ground)
{
	struct doll *doll = doll_add(ground, 0, 0);
	doll_meet(doll);
	doll_pull(doll, 1, 0, first, 1);
	ground_settle(ground);
	struct wf_sparse_restore restore = restore_of(&runs[0], 2);
	say_restore(doll, &restore, runs[0].at);
	CHECK(ground, is_refused(doll, WEFT_INVALID, "before the first pull"));
}

static void
put_twice(struct ground *ground)
{
	struct doll *doll = doll_add(ground, 0, 0);
	doll_meet(doll);
	struct wf_sparse_restore restore = restore_of(&runs[0], 2);
	say_restore(doll, &restore, runs[0].at);
	ground_settle(ground);
	CHECK(ground, doll->restored.request_id == request_id && doll->restored.rows > 0);
	restore = restore_of(&runs[0], 2);
	say_restore(doll, &restore, runs[0].at);
	CHECK(ground, is_refused(doll, WEFT_INVALID, "stands twice"));
}

static void
rows_are_put_back_once_and_before_all_else(void **state)
{
	const struct ground_opts opts = {.trainers = 1};
	(void)state;
	ground_play(&opts, save);
	ground_play(&opts, come_too_late);
	ground_play(&opts, put_twice);
}

/* Steps of their own, and a lane that counts pushes: the one that was dropped, too. */
static void
save_apart(struct ground *ground)
{
	struct wf_run_head head;
	struct doll *a = doll_add(ground, 0, 0);
	struct doll *b = doll_add(ground, 1, 0);
	doll_meet(a);
	doll_meet(b);
	doll_pull(a, 1, 0, first, 2);
	ground_settle(ground);
	doll_push(b, 1, second, 2);
	ground_settle(ground);
	doll_push(b, 2, first, 2);
	ground_settle(ground);
	doll_push(a, 1, first, 2); /* two of others since its rows were read: dropped */
	ground_settle(ground);
	CHECK(ground, a->applieds == 1 && a->applied.pushes_lost == 10 && b->applieds == 2);
	run_count = 0;
	struct wf_sparse_fetch fetch = fetch_of(0, 2, 0);
	say_fetch(a, &fetch);
	ground_settle(ground);
	wf_run_head_get((const uint8_t *)doll_rows(a, PIECE_AT), &head);
	CHECK(ground, a->answers == 3 && head.request_id == request_id && head.step == 3);
	fetch_all(a, 0, 2, 0, WF_PARTITION_COUNT);
	fetch_all(a, 1, 2, 0, WF_PARTITION_COUNT);
	/* Who goes on while tables are read makes that fail, before and amid the pieces. */
	fetch = fetch_of(0, 2, 0);
	say_fetch(a, &fetch);
	ground_settle(ground);
	struct wf_sparse_push push;
	doll_fill_push(b, 3, first, 2, &push);
	push.pass = 1;
	doll_say_push(b, &push);
	doll_put(b, 0, 0, 3, &first[0]);
	doll_put(b, 0, 1, 3, &first[1]);
	ground_settle(ground);
	CHECK(ground, b->applieds == 3);
	fetch = fetch_of(0, 2, 0);
	say_fetch(a, &fetch);
	CHECK(ground, is_refused(a, WEFT_INVALID, "another trainer has begun the next pass"));
}

static void
go_on_apart(struct ground *ground)
{
	struct doll *a = doll_add(ground, 0, 0);
	struct doll *b = doll_add(ground, 1, 0);
	doll_meet(a);
	doll_meet(b);
	for (uint32_t i = 0; i < run_count; i++) {
		struct wf_sparse_restore restore = restore_of(&runs[i], 2);
		restore.table_step = 3;
		say_restore(a, &restore, runs[i].at);
		ground_settle(ground);
		CHECK(ground, a->nacks == 0 && a->restored.rows > 0);
	}
	ground_model_step(ground, 1, 2, second, 2);
	ground_model_step(ground, 2, 2, first, 2);
	doll_pull(b, 1, 2, second, 2);
	ground_settle(ground);
	CHECK(ground, ground_rows_are_right(ground, b, &second[0]));
	CHECK(ground, ground_rows_are_right(ground, b, &second[1]));
	doll_push(b, 3, first, 2);
	ground_settle(ground);
	CHECK(ground, b->applieds == 1 && b->applied.step == 3);
	ground_model_step(ground, 4, 2, first, 2);
	doll_pull(b, 2, 3, first, 2);
	ground_settle(ground);
	CHECK(ground, ground_rows_are_right(ground, b, &first[0]));
}

/* A push of another trainer that is applied while rows are being listed. */
static void
push_while_rows_are_listed(struct ground *ground)
{
	struct doll *a = doll_add(ground, 0, 0);
	struct doll *b = doll_add(ground, 1, 0);
	doll_meet(a);
	doll_meet(b);
	ground->lanes_rest = true; /* both come in one turn */
	struct wf_sparse_fetch fetch = fetch_of(0, 0, 0);
	say_fetch(a, &fetch);
	ground_settle(ground);
	doll_push(b, 1, first, 2);
	ground_settle(ground);
	ground->lanes_rest = false;
	CHECK(ground, is_refused(a, WEFT_INVALID, "another trainer has begun the next pass"));
	CHECK(ground, b->applieds == 1);
	fetch = fetch_of(0, 0, 0);
	say_fetch(a, &fetch);
	ground_settle(ground);
	CHECK(ground, a->answers == 1 && a->nacks == 0);
}

static void
a_push_while_rows_are_listed_is_told(void **state)
{
	const struct ground_opts opts = {.trainers = 2, .mode = WEFT_SPARSE_ASYNC};
	(void)state;
	ground_play(&opts, push_while_rows_are_listed);
}

static void
an_asynchronous_lane_is_saved_between_passes(void **state)
{
	const struct ground_opts opts = {
		.trainers = 2, .mode = WEFT_SPARSE_ASYNC, .discard_ratio = 1};
	(void)state;
	ground_play(&opts, save_apart);
	ground_play(&opts, go_on_apart);
}

/* Rows to begin with: at step 0, and of a synchronous job at its own steps only. */
static void
begin_with_rows(struct ground *ground)
{
	struct doll *doll = doll_add(ground, 0, 0);
	struct run run = runs[0];
	doll_meet(doll);
	struct wf_sparse_restore restore = restore_of(&run, 2);
	restore.table_step = 3;
	say_restore(doll, &restore, run.at);
	CHECK(ground, is_refused(doll, WEFT_INVALID, "saved by an asynchronous job"));
	wf_store_u32(run.at + 8,
		     1); /* the first row of the section, with values and adagrad's sums */
	run.bytes = WF_RUN_SECTION_BYTES + 16 + 2 * GROUND_DIM * sizeof(float);
	memset(run.at + WF_RUN_SECTION_BYTES + 8, 0, 8); /* no stamp, no birth */
	restore = restore_of(&run, 0);
	say_restore(doll, &restore, run.at);
	ground_settle(ground);
	CHECK(ground, doll->nacks == 0 && doll->restored.request_id == request_id);
	CHECK(ground, doll->restored.rows == 1);
	doll_push(doll, 1, first, 2);
	ground_settle(ground);
	CHECK(ground, doll->applieds == 1 && doll->applied.step == 1);
}

static void
a_job_may_begin_with_rows(void **state)
{
	const struct ground_opts opts = {.trainers = 1};
	(void)state;
	ground_play(&opts, save);
	ground_play(&opts, begin_with_rows);
}

/* A row whose time is over as soon as it is put is a row all the same: what comes after it may not
 * set the lane's steps anew. */
static void
begin_with_a_row_that_is_over(struct ground *ground)
{
	struct doll *doll = doll_add(ground, 0, 0);
	struct run run = {.table = 0};
	const struct wf_row_shape shape = {
		.dim = GROUND_DIM, .state_floats = GROUND_DIM, .has_score = true};
	static const float floats[2 * GROUND_DIM];
	const struct wf_row_record row = {.key = 3, .stamp = 1, .floats = floats};
	const struct wf_run_section section = {
		.partition = wf_partition_of(row.key), .kind = WF_RUN_ROWS, .count = 1};
	doll_meet(doll);
	wf_run_section_put(&section, run.at);
	wf_row_record_put(&shape, &row, run.at + WF_RUN_SECTION_BYTES);
	run.bytes = WF_RUN_SECTION_BYTES + (uint32_t)wf_row_record_bytes(&shape);
	struct wf_sparse_restore restore = restore_of(&run, 0);
	restore.table_step = 3;
	say_restore(doll, &restore, run.at);
	ground_settle(ground);
	CHECK(ground, doll->nacks == 0 && doll->restored.rows == 1);
	restore = restore_of(&run, 0);
	restore.table_step = 4;
	say_restore(doll, &restore, run.at);
	CHECK(ground, is_refused(doll, WEFT_INVALID, "have been used already"));
}

static void
a_row_that_is_over_at_once_is_put_once(void **state)
{
	const struct ground_opts opts = {
		.trainers = 1, .mode = WEFT_SPARSE_ASYNC, .has_scores = true};
	(void)state;
	ground_play(&opts, begin_with_a_row_that_is_over);
}

/* One of the tables cannot begin at that step, while rows of another are listed: none begins there,
 * and the lane goes on. */
static void
begin_where_one_table_cannot(struct ground *ground)
{
	const struct run none = {.table = 0};
	ground->desc[0].set.admit_count = 2; /* counters, so that a listing has several pieces */
	ground->desc[0].set.admit_slots = 8;
	ground->desc[1].optimizer = WF_ROW_SGD;
	ground->desc[1].schedule = WF_SCHEDULE_LINEAR;
	ground->desc[1].set.optimizer.dense_equivalent = 1;
	ground->desc[1].set.optimizer.decay = 0.125;
	ground->desc[1].set.optimizer.schedule_a = 0.125;
	struct doll *doll = doll_add(ground, 0, 0);
	doll_meet(doll);
	struct wf_sparse_fetch fetch = fetch_of(0, 0, 0);
	say_fetch(doll, &fetch);
	ground_settle(ground);
	CHECK(ground, doll->answers == 1 && doll->nacks == 0);
	const struct wf_sparse_restore restore = restore_of(&none, 5);
	say_restore(doll, &restore, NULL);
	CHECK(ground, is_refused(doll, WEFT_UNSUPPORTED, "go on with a constant one"));
	fetch = fetch_of(0, 0, 0);
	say_fetch(doll, &fetch);
	ground_settle(ground);
	CHECK(ground, doll->answers == 2 && doll->nacks == 0);
	doll_push(doll, 1, first, 2);
	ground_settle(ground);
	CHECK(ground, doll->applieds == 1 && doll->applied.step == 1);
}

/* A listing that was begun before a row was put back does not have it. */
static void
list_what_was_put_back(struct ground *ground)
{
	struct run run = {.table = 0};
	const struct wf_row_shape shape = {.dim = GROUND_DIM, .state_floats = GROUND_DIM};
	static const float floats[2 * GROUND_DIM];
	const struct wf_row_record row = {.key = 3, .floats = floats};
	const struct wf_run_section section = {
		.partition = wf_partition_of(row.key), .kind = WF_RUN_ROWS, .count = 1};
	struct wf_run_head head;
	ground->desc[0].set.admit_count = 2;
	ground->desc[0].set.admit_slots = 8;
	struct doll *doll = doll_add(ground, 0, 0);
	doll_meet(doll);
	struct wf_sparse_fetch fetch = fetch_of(0, 0, section.partition);
	fetch.from.kind = WF_RUN_ROWS;
	say_fetch(doll, &fetch);
	ground_settle(ground);
	wf_run_head_get((const uint8_t *)doll_rows(doll, PIECE_AT), &head);
	CHECK(ground, doll->answers == 1 && head.next.partition > section.partition);
	wf_run_section_put(&section, run.at);
	wf_row_record_put(&shape, &row, run.at + WF_RUN_SECTION_BYTES);
	run.bytes = WF_RUN_SECTION_BYTES + (uint32_t)wf_row_record_bytes(&shape);
	const struct wf_sparse_restore restore = restore_of(&run, 0);
	say_restore(doll, &restore, run.at);
	ground_settle(ground);
	CHECK(ground, doll->nacks == 0 && doll->restored.rows == 1);
	fetch.request_id = ++request_id;
	say_fetch(doll, &fetch);
	ground_settle(ground);
	const uint8_t *piece = (const uint8_t *)doll_rows(doll, PIECE_AT);
	CHECK(ground, doll->answers == 2 && doll->nacks == 0);
	CHECK(ground, memcmp(piece + WF_RUN_HEAD_BYTES, run.at, WF_RUN_SECTION_BYTES) == 0);
}

static void
a_restore_is_of_all_tables_and_of_what_is_listed(void **state)
{
	const struct ground_opts opts = {.trainers = 1};
	(void)state;
	ground_play(&opts, begin_where_one_table_cannot);
	ground_play(&opts, list_what_was_put_back);
}

static void
overstep(struct ground *ground)
{
	struct doll *doll = doll_add(ground, 0, 0);
	doll_meet(doll);
	struct wf_sparse_fetch fetch = fetch_of(0, 0, 0);
	fetch.offset = GROUND_ROWS_BYTES - 127;
	say_fetch(doll, &fetch);
	ground_settle(ground);
	CHECK(ground, doll->peer.down);
	CHECK(ground,
	      strstr(ground->lane[0]->peers.all[0].lost.why, "128 bytes at offset 65409") != NULL);
}

static void
overfill(struct ground *ground)
{
	struct doll *doll = doll_add(ground, 0, 0);
	const struct run long_run = {.bytes = 2048};
	struct wf_msg msg;
	doll_meet(doll);
	const struct wf_sparse_restore restore = restore_of(&long_run, 2);
	wf_sparse_restore_encode(&restore, &msg);
	peer_send(&doll->peer, &msg);
	ground_settle(ground);
	CHECK(ground, doll->peer.down);
	CHECK(ground,
	      strstr(ground->lane[0]->peers.all[0].lost.why, "2048 bytes in a slot") != NULL);
}

static void
what_goes_beyond_the_room_costs_the_connection(void **state)
{
	const struct ground_opts opts = {.trainers = 1};
	(void)state;
	ground_play(&opts, overstep);
	ground_play(&opts, overfill);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lane_goes_on_with_the_rows_that_another_had),
		cmocka_unit_test(what_cannot_be_fetched_or_put_back_is_refused),
		cmocka_unit_test(rows_are_put_back_once_and_before_all_else),
		cmocka_unit_test(an_asynchronous_lane_is_saved_between_passes),
		cmocka_unit_test(a_push_while_rows_are_listed_is_told),
		cmocka_unit_test(a_job_may_begin_with_rows),
		cmocka_unit_test(a_row_that_is_over_at_once_is_put_once),
		cmocka_unit_test(a_restore_is_of_all_tables_and_of_what_is_listed),
		cmocka_unit_test(what_goes_beyond_the_room_costs_the_connection),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
