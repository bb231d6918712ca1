/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots that build on each other, as the registrar orders, keeps and chooses them. Thread: the
 * test's. */
#include "tests/unit/pserver/registrar_rig.h"

/* Snapshots of steps 10, 20, ..., of which each third is complete. */
static const struct rig_opts thirds = {.sparse = 1, .full = 3, .keep = 2, .resume = WF_RESUME_AUTO};

static void
begin(struct rig *rig, const struct rig_opts *opts)
{
	rig_open(rig, opts);
	rig_begin(rig);
	rig_run(rig);
}

static struct wf_snapshot_id
id_of(uint64_t step)
{
	return (struct wf_snapshot_id){.epoch = 1, .step = step};
}

/* The step on which the snapshot builds. */
static uint64_t
base_of(struct rig *rig, uint64_t step)
{
	struct wf_snapshot *snapshot = NULL;
	struct wf_snapshot_id base;
	assert_ok(wf_snapshot_open(&rig->env, wf_saved_posix(), rig->scene->dir,
				   wf_snapshots_id(rig->all, step), &snapshot));
	(void)wf_snapshot_base(snapshot, &base);
	wf_snapshot_close(snapshot);
	return base.step;
}

static void
each_nth_snapshot_is_complete(void **state)
{
	static const uint64_t base[] = {0, 10, 20, 0, 40, 50, 0};
	struct rig *rig = *state;
	begin(rig, &thirds);
	for (unsigned i = 0; i < WF_ARRAY_COUNT(base); i++) {
		assert_int_equal(rig_name_border(rig), 10 * (i + 1));
		assert_int_equal(wf_snapshots_delta(rig->all), base[i]);
		(void)rig_snapshot(rig);
		assert_int_equal(base_of(rig, 10 * (i + 1)), base[i]);
	}
	assert_non_null(strstr(rig->log, "snapshot of step 60 in epoch 1, changes only:"));
	assert_non_null(strstr(rig->log, "snapshot of step 70 in epoch 1:"));
}

static void
check_all_complete(struct rig *rig, const struct rig_opts *opts)
{
	begin(rig, opts);
	for (uint64_t step = 10; step <= 30; step += 10) {
		assert_int_equal(rig_snapshot(rig), step);
		assert_int_equal(base_of(rig, step), 0);
	}
	rig_close(rig);
}

static void
without_the_option_or_without_tables_all_are_complete(void **state)
{
	const struct rig_opts off = {.sparse = 1, .resume = WF_RESUME_NEVER};
	const struct rig_opts dense = {.full = 3, .resume = WF_RESUME_NEVER};
	check_all_complete(*state, &off);
	check_all_complete(*state, &dense);
}

static void
the_order_for_the_others_names_what_it_builds_on(void **state)
{
	struct rig *rig = *state;
	struct rig_opts opts = thirds;
	opts.pservers = 2;
	begin(rig, &opts);
	(void)rig_name_border(rig);
	assert_int_equal(wf_registrar_orders(rig->registrar, 1).builds_on, 0);
	uint64_t first = rig_snapshot(rig);
	(void)rig_name_border(rig);
	assert_int_equal(wf_registrar_orders(rig->registrar, 1).builds_on, first);
}

/* And what was gone before it is in no list any more. */
static void
the_snapshot_after_one_that_failed_is_complete(void **state)
{
	struct rig *rig = *state;
	begin(rig, &thirds);
	(void)rig_snapshot(rig);
	uint64_t border = rig_name_border(rig);
	assert_int_equal(wf_snapshots_delta(rig->all), 10);
	rig_write_own(rig, border);
	(void)wf_fail(WEFT_IO, "the disk is full");
	wf_snapshots_report(rig->all, rig->seat[1], border, NULL);
	(void)rig_look(rig);
	assert_false(rig_has_directory(rig, id_of(border)));
	border = rig_snapshot(rig);
	assert_int_equal(base_of(rig, border), 0);
	assert_int_equal(base_of(rig, rig_snapshot(rig)), border);
}

static void
what_a_kept_snapshot_builds_on_is_kept(void **state)
{
	/* The oldest one that is there after the snapshots of 10, 20, ... */
	static const uint64_t oldest[] = {10, 10, 10, 10, 40, 40, 40, 70};
	struct rig *rig = *state;
	begin(rig, &thirds);
	for (unsigned i = 0; i < WF_ARRAY_COUNT(oldest); i++) {
		const uint64_t newest = rig_snapshot(rig);
		for (uint64_t step = 10; step <= newest; step += 10) {
			assert_int_equal(rig_has_snapshot(rig, id_of(step)), step >= oldest[i]);
			assert_int_equal(rig_has_directory(rig, id_of(step)), step >= oldest[i]);
		}
	}
}

static void
remove_manifest(const struct rig *rig, uint64_t step)
{
	char name[WF_SNAPSHOT_LEAF_BYTES];
	wf_snapshot_name(id_of(step), name);
	assert_int_equal(unlink(at(rig->scene, name, "manifest")), 0);
}

/* What cannot be loaded does not count. */
static void
a_snapshot_whose_chain_is_broken_is_not_one_of_those_kept(void **state)
{
	struct rig *rig = *state;
	begin(rig, &thirds);
	for (unsigned i = 0; i < 5; i++) {
		(void)rig_snapshot(rig); /* 10 20 30, 40 50 */
	}
	assert_true(rig_has_snapshot(rig, id_of(40)));
	assert_false(rig_has_directory(rig, id_of(30)));
	remove_manifest(rig, 40);
	assert_int_equal(rig_snapshot(rig), 60); /* builds on 50, which builds on nothing now */
	assert_int_equal(rig_snapshot(rig), 70); /* is complete */
	assert_true(rig_has_directory(rig, id_of(50)));
	assert_true(rig_has_directory(rig, id_of(60)));
	assert_int_equal(rig_snapshot(rig), 80);
	assert_false(rig_has_directory(rig, id_of(50)));
	assert_false(rig_has_directory(rig, id_of(60)));
}

/* Turns a byte of a file. */
static void
damage(const struct rig *rig, uint64_t step, const char *leaf)
{
	char name[WF_SNAPSHOT_LEAF_BYTES];
	wf_snapshot_name(id_of(step), name);
	FILE *file = fopen(at(rig->scene, name, leaf), "r+e");
	assert_non_null(file);
	assert_int_equal(fseek(file, 40, SEEK_SET), 0);
	int byte = fgetc(file);
	assert_int_equal(fseek(file, 40, SEEK_SET), 0);
	assert_true(fputc(byte ^ 1, file) != EOF);
	assert_int_equal(fclose(file), 0);
}

/* Snapshots of 10 (complete), 20, 30, 40 (complete), 50 and 60, one damaged: the step with which a
 * job goes on then. */
static uint64_t
choose_after(struct rig *rig, uint64_t step, const char *leaf)
{
	struct wf_snapshot_base base = {0};
	struct rig_opts opts = thirds;
	opts.keep = 6;
	begin(rig, &opts);
	for (unsigned i = 0; i < 6; i++) {
		(void)rig_snapshot(rig);
	}
	rig_close(rig);
	damage(rig, step, leaf);
	rig->log[0] = '\0';
	rig_open(rig, &opts);
	rig_begin(rig);
	(void)rig_look(rig);
	assert_ok(rig_base(rig, 0, &base));
	return base.id.step;
}

static void
a_damaged_last_link_costs_itself(void **state)
{
	struct rig *rig = *state;
	assert_int_equal(choose_after(rig, 60, "sparse-0"), 50);
	assert_non_null(strstr(rig->log, "step-0000000060/sparse-0"));
}

static void
a_damaged_link_costs_all_that_builds_on_it(void **state)
{
	struct rig *rig = *state;
	assert_int_equal(choose_after(rig, 50, "sparse-0"), 40);
	assert_non_null(strstr(rig->log, "the snapshot of step 60 in epoch 1 cannot be used"));
	assert_non_null(strstr(rig->log, "step-0000000050/sparse-0"));
}

static void
a_damaged_complete_one_costs_its_chain(void **state)
{
	struct rig *rig = *state;
	assert_int_equal(choose_after(rig, 40, "manifest"), 30);
	assert_non_null(strstr(rig->log, "builds on step 40, which cannot be used"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_RIG(each_nth_snapshot_is_complete),
		WITH_RIG(without_the_option_or_without_tables_all_are_complete),
		WITH_RIG(the_order_for_the_others_names_what_it_builds_on),
		WITH_RIG(the_snapshot_after_one_that_failed_is_complete),
		WITH_RIG(what_a_kept_snapshot_builds_on_is_kept),
		WITH_RIG(a_snapshot_whose_chain_is_broken_is_not_one_of_those_kept),
		WITH_RIG(a_damaged_last_link_costs_itself),
		WITH_RIG(a_damaged_link_costs_all_that_builds_on_it),
		WITH_RIG(a_damaged_complete_one_costs_its_chain),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
