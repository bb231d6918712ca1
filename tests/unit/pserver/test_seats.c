/* SPDX-License-Identifier: Apache-2.0 */
/* The lanes of a pserver have one job each, and begin, end and come to the next one at different
 * times: a lane goes on with lane 0's job only if it has that one. Thread: the test's. */
#include "tests/unit/pserver/registrar_rig.h"

#define FIRST ((uint64_t)RIG_TRAINER_INCARNATION) /* of trainer 0 in the first job, and the next */
#define SECOND (FIRST + 1)

static const struct rig_opts lanes = {.dense = 2, .sparse = 1, .resume = WF_RESUME_AUTO};

static enum weft_status
base_of(struct rig *rig, uint32_t lane)
{
	struct wf_snapshot_base base;
	return rig_base(rig, lane, &base);
}

static uint64_t
epoch_of(struct rig *rig, uint32_t lane)
{
	struct wf_snapshot_base base;
	assert_ok(rig_base(rig, lane, &base));
	return base.epoch;
}

static void
leave(struct rig *rig, uint32_t lane)
{
	wf_snapshots_leave(rig->all, rig->seat[lane]);
	rig->seat[lane] = NULL;
}

/* The job on lane 0 only. */
static void
end_on_lane_0(struct rig *rig)
{
	wf_snapshots_end(rig->all);
	wf_registrar_close(rig->registrar);
	rig->registrar = NULL;
	leave(rig, 0);
}

static void
a_lane_waits_until_lane_0_has_its_job(void **state)
{
	struct rig *rig = *state;
	char text[200];
	rig_open(rig, &lanes);
	rig_join_lane(rig, 1, FIRST);
	assert_int_equal(base_of(rig, 1), WEFT_AGAIN);
	wf_snapshots_waits_for(rig->all, text, sizeof(text));
	assert_string_equal(text, "lane 0 to have the job");
	assert_ok(rig_open_registrar(rig));
	(void)rig_look(rig);
	assert_int_equal(epoch_of(rig, 0), 1);
	assert_int_equal(base_of(rig, 1), WEFT_AGAIN); /* nobody has looked whose it is */
	assert_int_equal(rig_match(rig), 2);
	assert_int_equal(epoch_of(rig, 1), 1);
	assert_int_equal(base_of(rig, 2), WEFT_AGAIN);
	rig_join_lane(rig, 2, FIRST);
	assert_int_equal(rig_match(rig), 3);
	assert_int_equal(epoch_of(rig, 2), 1);
}

/* No snapshot is taken without it. */
static void
a_lane_with_a_trainer_that_lane_0_does_not_know_is_not_in(void **state)
{
	struct rig *rig = *state;
	uint64_t highest;
	rig_open(rig, &lanes);
	assert_ok(rig_open_registrar(rig));
	rig_join_lane(rig, 1, FIRST);
	rig_join_lane(rig, 2, SECOND);
	assert_int_equal(rig_match(rig), 2);
	(void)rig_look(rig);
	assert_int_equal(epoch_of(rig, 0), 1);
	assert_int_equal(epoch_of(rig, 1), 1);
	assert_int_equal(base_of(rig, 2), WEFT_AGAIN);
	assert_false(wf_snapshots_highest(rig->all, &highest));
	(void)rig_look(rig);
	assert_int_equal(wf_snapshot_seat_applied(rig->seat[0], 0), 0);
	leave(rig, 2);
	rig_join_lane(rig, 2, FIRST);
	assert_int_equal(rig_match(rig), 3);
	assert_true(wf_snapshots_highest(rig->all, &highest));
	(void)rig_look(rig);
	assert_int_equal(wf_snapshot_seat_applied(rig->seat[0], 0), 10);
}

/* Lane 1 comes to the second job while lane 0 has the first one, or none: what the first one has
 * begun with is nothing to begin with, nor what was decided of it. */
static void
a_lane_that_is_ahead_begins_with_its_own_job(void **state)
{
	struct rig *rig = *state;
	rig_open(rig, &lanes);
	rig_begin(rig);
	(void)rig_look(rig);
	assert_int_equal(epoch_of(rig, 1), 1);
	leave(rig, 1);
	rig_join_lane(rig, 1, SECOND);
	assert_int_equal(base_of(rig, 1), WEFT_AGAIN);
	assert_int_equal(rig_match(rig), 2);
	assert_int_equal(base_of(rig, 1), WEFT_AGAIN);
	end_on_lane_0(rig);
	assert_int_equal(base_of(rig, 1), WEFT_AGAIN);
	assert_ok(rig_open_registrar(rig));
	assert_int_equal(base_of(rig, 1), WEFT_AGAIN);
	assert_int_equal(rig_match(rig), 2); /* lane 2 is still in the first one */
	assert_int_equal(base_of(rig, 1), WEFT_AGAIN);
	assert_int_equal(base_of(rig, 2), WEFT_AGAIN);
	(void)rig_look(rig);
	assert_int_equal(epoch_of(rig, 1), 2);
	assert_int_equal(base_of(rig, 2), WEFT_AGAIN);
	leave(rig, 2);
	rig_join_lane(rig, 2, SECOND);
	assert_int_equal(base_of(rig, 2), WEFT_AGAIN);
	assert_int_equal(rig_match(rig), 3);
	assert_int_equal(epoch_of(rig, 2), 2);
}

/* A lane that still has the first job when lane 0 is in the second is asked for nothing. */
static void
a_lane_that_is_behind_is_not_in_the_next_job(void **state)
{
	struct rig *rig = *state;
	uint64_t highest;
	rig_open(rig, &lanes);
	rig_begin(rig);
	(void)rig_look(rig);
	end_on_lane_0(rig);
	assert_int_equal(base_of(rig, 1), WEFT_AGAIN);
	assert_ok(rig_open_registrar(rig));
	assert_int_equal(rig_match(rig), 1);
	(void)rig_look(rig);
	assert_int_equal(epoch_of(rig, 0), 2);
	assert_int_equal(base_of(rig, 1), WEFT_AGAIN);
	assert_false(wf_snapshots_highest(rig->all, &highest));
}

/* A refusal is of one job. */
static void
a_job_that_was_refused_does_not_end_the_next_one(void **state)
{
	struct rig *rig = *state;
	rig_open(rig, &lanes);
	rig_begin(rig);
	(void)wf_fail(WEFT_DATA, "of the first job");
	wf_snapshots_refuse(rig->all);
	assert_refused(base_of(rig, 0), WEFT_DATA, "of the first job");
	assert_refused(base_of(rig, 1), WEFT_DATA, "of the first job");
	leave(rig, 1);
	rig_join_lane(rig, 1, SECOND);
	assert_int_equal(rig_match(rig), 2);
	assert_int_equal(base_of(rig, 1), WEFT_AGAIN);
	end_on_lane_0(rig);
	assert_ok(rig_open_registrar(rig));
	assert_int_equal(rig_match(rig), 2);
	assert_int_equal(base_of(rig, 0), WEFT_AGAIN);
	(void)rig_look(rig);
	assert_int_equal(epoch_of(rig, 1), 1);
}

/* A border may be named as soon as a lane is in: its tables are known then. */
static void
a_lane_that_is_in_has_its_tables(void **state)
{
	struct rig *rig = *state;
	struct wf_manifest manifest = {0};
	rig_open(rig, &lanes);
	assert_ok(rig_open_registrar(rig));
	rig_join_lane(rig, 1, FIRST);
	assert_ok(wf_snapshots_describe_tables(rig->all, &manifest));
	assert_int_equal(manifest.table_count, 0);
	rig_join_lane(rig, 2, FIRST);
	assert_int_equal(rig_match(rig), 3);
	assert_ok(wf_snapshots_describe_tables(rig->all, &manifest));
	assert_int_equal(manifest.table_count, RIG_TABLES);
	assert_string_equal(manifest.table[2].name, "table-2");
	wf_manifest_fini(&rig->env, &manifest);
	leave(rig, 2);
	assert_ok(wf_snapshots_describe_tables(rig->all, &manifest));
	assert_int_equal(manifest.table_count, 0);
}

/* A lane reports what it has of the border that is wanted, and nothing of the one before. */
static void
a_report_is_of_one_border(void **state)
{
	static struct wf_snapshot_outcome outcome;
	const struct wf_part_sum sum = {.bytes = 5, .crc = 6};
	struct rig *rig = *state;
	rig_open(rig, &lanes);
	rig_begin(rig);
	assert_false(wf_snapshots_outcome(rig->all, 2, 10, &outcome));
	wf_snapshots_report(rig->all, rig->seat[2], 10, &sum);
	assert_false(wf_snapshots_outcome(rig->all, 2, 20, &outcome));
	assert_false(wf_snapshots_outcome(rig->all, 1, 10, &outcome));
	assert_true(wf_snapshots_outcome(rig->all, 2, 10, &outcome));
	assert_int_equal(outcome.error.status, WEFT_OK);
	assert_int_equal(outcome.sum.bytes, 5);
	assert_int_equal(outcome.table_count, RIG_TABLES);
	assert_int_equal(outcome.rows[2], rig_rows(0, 2, 2));
	(void)wf_fail(WEFT_IO, "its disk is full");
	wf_snapshots_report(rig->all, rig->seat[2], 20, NULL);
	assert_true(wf_snapshots_outcome(rig->all, 2, 20, &outcome));
	assert_int_equal(outcome.error.status, WEFT_IO);
	wf_snapshots_report(rig->all, rig->seat[2], 30, &sum);
	assert_true(wf_snapshots_outcome(rig->all, 2, 30, &outcome));
	assert_int_equal(outcome.error.status, WEFT_OK);
	leave(rig, 2);
	rig_join_lane(rig, 2, FIRST);
	assert_false(wf_snapshots_outcome(rig->all, 2, 30, &outcome));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_RIG(a_lane_waits_until_lane_0_has_its_job),
		WITH_RIG(a_lane_with_a_trainer_that_lane_0_does_not_know_is_not_in),
		WITH_RIG(a_lane_that_is_ahead_begins_with_its_own_job),
		WITH_RIG(a_lane_that_is_behind_is_not_in_the_next_job),
		WITH_RIG(a_job_that_was_refused_does_not_end_the_next_one),
		WITH_RIG(a_lane_that_is_in_has_its_tables),
		WITH_RIG(a_report_is_of_one_border),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
