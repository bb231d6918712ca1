/* SPDX-License-Identifier: Apache-2.0 */
/* What the registrar decides: when a job begins and with what, what each pserver is to do, which
 * reports count, what a manifest has, what is kept, and when the end is recorded. Thread: the
 * test's. */
#include "tests/unit/pserver/registrar_rig.h"

#define REFUSED(call, status, part) assert_refused((call), (status), (part))

static const struct rig_opts three = {.pservers = 3, .dense = 1, .sparse = 1};
static const struct rig_opts two = {.pservers = 2, .dense = 1, .sparse = 0, .steps = 1};

static void
check_waits_for(struct rig *rig, const char *part)
{
	char text[200];
	wf_snapshots_waits_for(rig->all, text, sizeof(text));
	if (strstr(text, part) == NULL) {
		fail_msg("\"%s\" is not in \"%s\"", part, text);
	}
}

static void
check_log(const struct rig *rig, const char *part)
{
	if (strstr(rig->log, part) == NULL) {
		fail_msg("\"%s\" is not in the log: %s", part, rig->log);
	}
}

static bool
is_idle(const struct wf_registrar_orders *orders)
{
	return !orders->load && !orders->run && orders->border == 0;
}

/* ---- the beginning ---- */

static void
check_nobody_begins(struct rig *rig)
{
	struct wf_snapshot_base base;
	(void)rig_look(rig);
	for (uint32_t i = 0; i < rig_lanes(rig); i++) {
		assert_int_equal(rig_base(rig, i, &base), WEFT_AGAIN);
	}
	assert_false(rig_has_record(rig, 1));
}

static void
nothing_runs_before_all_pservers_have_come_and_loaded(void **state)
{
	struct rig *rig = *state;
	rig_open(rig, &three);
	rig_begin(rig);
	check_nobody_begins(rig);
	check_waits_for(rig, "pserver 1 to come");
	assert_ok(rig_join(rig, 1, 901, 0));
	check_nobody_begins(rig);
	check_waits_for(rig, "pserver 2 to come");
	assert_ok(rig_join(rig, 2, 902, 0));
	check_nobody_begins(rig);
	check_waits_for(rig, "pserver 1 to look at");
	assert_ok(rig_loaded(rig, 1));
	check_nobody_begins(rig);
	check_waits_for(rig, "pserver 2 to look at");
	wf_registrar_lose(rig->registrar, 1);
	assert_ok(rig_loaded(rig, 2));
	check_nobody_begins(rig);
	check_waits_for(rig, "pserver 1 to come");
	assert_ok(rig_join(rig, 1, 901, 0));
	check_nobody_begins(rig);
	assert_ok(rig_loaded(rig, 1));
	(void)rig_look(rig);
	assert_true(rig_has_record(rig, 1));
}

/* Rule 11. */
static void
the_record_is_there_before_any_lane_serves(void **state)
{
	struct rig *rig = *state;
	for (uint32_t pservers = 1; pservers <= RIG_PSERVERS_MAX; pservers++) {
		struct rig_opts opts = {.pservers = pservers, .dense = 2, .resume = WF_RESUME_AUTO};
		struct wf_snapshot_base base;
		rig_open(rig, &opts);
		rig_begin(rig);
		rig->watches_base = true;
		rig->base_before = WEFT_OK;
		rig_run(rig);
		rig->watches_base = false;
		assert_int_equal(rig->base_before, WEFT_AGAIN);
		assert_true(rig_has_record(rig, pservers));
		for (uint32_t i = 0; i < rig_lanes(rig); i++) {
			assert_ok(rig_base(rig, i, &base));
			assert_int_equal(base.epoch, pservers);
			assert_int_equal(base.id.step, 0);
		}
		rig_close(rig);
	}
}

static void
a_registrar_whose_record_another_one_made_begins_nothing(void **state)
{
	struct rig *rig = *state;
	struct wf_snapshot_base base;
	rig_open(rig, &(struct rig_opts){0});
	rig_begin(rig);
	write_text(at(rig->scene, "record-00001", ""), "made by another one\n");
	(void)rig_look(rig);
	REFUSED(rig_base(rig, 0, &base), WEFT_IO, "record-00001: exists already");
	assert_true(text_is(at(rig->scene, "record-00001", ""), "made by another one\n"));
}

static void
each_pserver_is_ordered_what_it_lacks(void **state)
{
	struct rig *rig = *state;
	struct wf_registrar_orders orders;
	rig_open(rig, &two);
	rig_begin(rig);
	assert_ok(rig_join(rig, 1, 901, 0));
	orders = wf_registrar_orders(rig->registrar, 1);
	assert_true(is_idle(&orders)); /* nobody has looked who is here */
	(void)rig_look(rig);
	orders = wf_registrar_orders(rig->registrar, 1);
	assert_true(orders.load && !orders.run && orders.border == 0);
	assert_int_equal(orders.base.epoch, 1);
	assert_int_equal(orders.crc, 0);
	assert_ok(rig_loaded(rig, 1));
	orders = wf_registrar_orders(rig->registrar, 1);
	assert_true(is_idle(&orders));
	(void)rig_look(rig);
	orders = wf_registrar_orders(rig->registrar, 1);
	assert_true(!orders.load && orders.run && orders.border == 0);
	wf_registrar_lose(rig->registrar, 1);
	assert_ok(rig_join(rig, 1, 901, 7)); /* it serves in an epoch that there is not */
	assert_true(wf_registrar_orders(rig->registrar, 1).run);
	wf_registrar_lose(rig->registrar, 1);
	assert_ok(rig_join(rig, 1, 901, 1));
	orders = wf_registrar_orders(rig->registrar, 1);
	assert_true(is_idle(&orders));
	uint64_t border = rig_name_border(rig);
	orders = wf_registrar_orders(rig->registrar, 1);
	assert_true(!orders.load && !orders.run && orders.border == border);
	rig->holds_tasks = true;
	rig_write_own(rig, border);
	assert_ok(rig_part(rig, 1, 0, border));
	orders = wf_registrar_orders(rig->registrar, 1);
	assert_true(is_idle(&orders));
	(void)rig_look(rig);
	orders = wf_registrar_orders(rig->registrar, 1);
	assert_true(is_idle(&orders)); /* the manifest is being written */
}

/* Rule 14, of jobs that cannot go back: the place is that process's. */
static void
the_place_of_a_pserver_is_one_process(void **state)
{
	struct rig *rig = *state;
	rig_open(rig, &two);
	rig_begin(rig);
	assert_ok(rig_join(rig, 1, 901, 0));
	REFUSED(rig_join(rig, 1, 902, 0), WEFT_REFUSED, "another process was pserver 1");
	(void)rig_look(rig);
	assert_ok(rig_loaded(rig, 1));
	wf_registrar_lose(rig->registrar, 1);
	assert_ok(rig_join(rig, 1, 902, 0)); /* it has loaded nothing */
	check_nobody_begins(rig);
	assert_true(wf_registrar_orders(rig->registrar, 1).load);
	assert_ok(rig_loaded(rig, 1));
	(void)rig_look(rig);
	wf_registrar_lose(rig->registrar, 1);
	REFUSED(rig_join(rig, 1, 903, 0), WEFT_REFUSED, "another process was pserver 1");
	REFUSED(rig_join(rig, 1, 901, 0), WEFT_REFUSED, "another process was pserver 1");
	assert_ok(rig_join(rig, 1, 902, 1));
}

static void
a_pserver_with_other_lanes_is_refused(void **state)
{
	struct rig *rig = *state;
	const struct wf_registry_join dense = {.dense_lanes = 2, .sparse_lanes = 1};
	const struct wf_registry_join sparse = {.dense_lanes = 1, .sparse_lanes = 2};
	rig_open(rig, &three);
	rig_begin(rig);
	REFUSED(wf_registrar_join(rig->registrar, 1, 901, &dense), WEFT_MISMATCH,
		"2 dense and 1 sparse lanes, pserver 0 has 1 and 1");
	REFUSED(wf_registrar_join(rig->registrar, 1, 901, &sparse), WEFT_MISMATCH,
		"1 dense and 2 sparse lanes, pserver 0 has 1 and 1");
	check_nobody_begins(rig);
	check_waits_for(rig, "pserver 1 to come");
}

static void
who_was_not_asked_has_not_loaded(void **state)
{
	struct rig *rig = *state;
	const struct wf_registry_loaded first = {.epoch = 1};
	const struct wf_registry_loaded second = {.epoch = 2};
	const struct wf_registry_loaded based = {.epoch = 1, .base = {.epoch = 1, .step = 5}};
	const struct wf_registry_bad bad = {.epoch = 2, .reason = "no"};
	rig_open(rig, &two);
	rig_begin(rig);
	assert_ok(rig_join(rig, 1, 901, 0));
	REFUSED(wf_registrar_on_loaded(rig->registrar, 1, &first), WEFT_PROTOCOL, "not asked");
	(void)rig_look(rig);
	REFUSED(wf_registrar_on_loaded(rig->registrar, 1, &second), WEFT_PROTOCOL, "not asked");
	REFUSED(wf_registrar_on_loaded(rig->registrar, 1, &based), WEFT_PROTOCOL, "not asked");
	REFUSED(wf_registrar_on_bad(rig->registrar, 1, &bad), WEFT_PROTOCOL, "not asked");
	check_nobody_begins(rig);
	assert_ok(wf_registrar_on_loaded(rig->registrar, 1, &first));
	assert_ok(wf_registrar_on_loaded(rig->registrar, 1, &first));
	(void)rig_look(rig);
	REFUSED(wf_registrar_on_loaded(rig->registrar, 1, &first), WEFT_PROTOCOL, "not asked");
	REFUSED(wf_registrar_on_bad(rig->registrar, 1, &bad), WEFT_PROTOCOL, "not asked");
}

static void
a_pserver_that_cannot_load_ends_the_job(void **state)
{
	struct rig *rig = *state;
	struct wf_snapshot_base base;
	const struct wf_registry_bad bad = {.epoch = 1, .reason = "there is no such file"};
	rig_open(rig, &two);
	rig_begin(rig);
	assert_ok(rig_join(rig, 1, 901, 0));
	(void)rig_look(rig);
	assert_ok(wf_registrar_on_bad(rig->registrar, 1, &bad));
	(void)rig_look(rig);
	REFUSED(rig_base(rig, 0, &base), WEFT_DATA, "pserver 1 cannot go on");
	REFUSED(rig_base(rig, 0, &base), WEFT_DATA, "there is no such file");
	assert_false(rig_has_record(rig, 1));
}

static void
who_has_not_come_at_the_deadline_ends_the_job(void **state)
{
	struct rig *rig = *state;
	struct wf_snapshot_base base;
	rig_open(rig, &three);
	rig_begin(rig);
	assert_ok(rig_join(rig, 1, 901, 0));
	rig->now_ns += RIG_DEADLINE_NS - 1;
	uint64_t next_ns = rig_look(rig);
	assert_true(next_ns > rig->now_ns && next_ns < rig->now_ns + WF_NS_PER_S);
	check_nobody_begins(rig);
	rig->now_ns++;
	(void)rig_look(rig);
	REFUSED(rig_base(rig, 0, &base), WEFT_TIMEOUT, "pserver 1 did not come to pserver 0");
	REFUSED(rig_base(rig, 1, &base), WEFT_TIMEOUT, "--registrar=HOST:PORT");
	assert_false(rig_has_record(rig, 1));
}

/* ---- parts ---- */

/* The part is refused, and pserver 1 is still asked for its parts. */
static void
check_part_refused(struct rig *rig, const struct wf_registry_part *part, const char *why)
{
	REFUSED(wf_registrar_on_part(rig->registrar, 1, part), WEFT_PROTOCOL, why);
	assert_int_not_equal(wf_registrar_orders(rig->registrar, 1).border, 0);
}

static void
begin_to_three(struct rig *rig, uint64_t *border)
{
	rig_open(rig, &three);
	rig_begin(rig);
	rig_run(rig);
	for (uint32_t i = 1; i < 3; i++) {
		wf_registrar_lose(rig->registrar, i);
		assert_ok(rig_join(rig, i, 900 + i, 1));
	}
	*border = rig_name_border(rig);
}

static void
a_part_of_a_lane_of_another_pserver_is_refused(void **state)
{
	struct rig *rig = *state;
	uint64_t border;
	begin_to_three(rig, &border);
	const struct wf_registry_part dense = rig_part_of(rig, 1, 0, border);
	const struct wf_registry_part sparse = rig_part_of(rig, 1, 1, border);
	static const uint32_t lanes[] = {0, 2, 3, WF_LANE_COUNT_MAX - 1};
	for (size_t i = 0; i < WF_ARRAY_COUNT(lanes); i++) {
		struct wf_registry_part part = dense;
		part.lane = lanes[i];
		check_part_refused(rig, &part, "is none of pserver 1");
		part = sparse;
		part.lane = lanes[i];
		check_part_refused(rig, &part, "is none of pserver 1");
	}
	struct wf_registry_part part = sparse;
	part.table_count = RIG_TABLES + 1;
	check_part_refused(rig, &part, "with 4 tables is none of pserver 1");
	part = sparse;
	part.table_count = 0;
	part.count = 0;
	check_part_refused(rig, &part, "with 0 tables is none of pserver 1");
	assert_ok(wf_registrar_on_part(rig->registrar, 1, &dense));
	assert_ok(wf_registrar_on_part(rig->registrar, 1, &sparse));
	assert_int_equal(wf_registrar_orders(rig->registrar, 1).border, 0);
	assert_int_equal(wf_registrar_orders(rig->registrar, 2).border, border);
}

static void
a_job_without_sparse_lanes_has_no_sparse_parts(void **state)
{
	struct rig *rig = *state;
	rig_open(rig, &two);
	rig_begin(rig);
	rig_run(rig);
	uint64_t border = rig_name_border(rig);
	struct wf_registry_part part = rig_part_of(rig, 1, 0, border);
	part.service = WF_SERVICE_SPARSE;
	check_part_refused(rig, &part, "is none of pserver 1");
}

static void
a_part_of_another_snapshot_counts_nothing(void **state)
{
	struct rig *rig = *state;
	uint64_t border;
	begin_to_three(rig, &border);
	struct wf_registry_part part = rig_part_of(rig, 1, 0, border);
	assert_ok(rig_part(rig, 1, 1, border));
	part.border = border + 1;
	assert_ok(wf_registrar_on_part(rig->registrar, 1, &part));
	assert_ok(rig_failed(rig, 1, border + 1, "of another one"));
	part.border = border;
	part.epoch++;
	assert_ok(wf_registrar_on_part(rig->registrar, 1, &part));
	struct wf_registry_failed failed = {.epoch = 2, .border = border, .reason = "another one"};
	assert_ok(wf_registrar_on_failed(rig->registrar, 1, &failed));
	assert_int_equal(wf_registrar_orders(rig->registrar, 1).border, border);
	part.epoch--;
	assert_ok(wf_registrar_on_part(rig->registrar, 1, &part));
	assert_int_equal(wf_registrar_orders(rig->registrar, 1).border, 0);
}

/* The rows of a table in the manifest of the snapshot. */
static uint64_t
manifest_rows(struct rig *rig, uint64_t border, uint32_t table)
{
	struct wf_snapshot *snapshot = NULL;
	assert_ok(wf_snapshot_open(&rig->env, wf_saved_posix(), rig->scene->dir,
				   wf_snapshots_id(rig->all, border), &snapshot));
	const struct wf_manifest *manifest = wf_snapshot_manifest(snapshot);
	assert_int_equal(manifest->table_count, RIG_TABLES);
	uint64_t rows = manifest->table[table].rows;
	wf_snapshot_close(snapshot);
	return rows;
}

static uint64_t
rows_of_all(uint32_t table)
{
	return rig_rows(0, 1, table) + rig_rows(1, 1, table) + rig_rows(2, 1, table);
}

/* Tables in order, from the first on again after a lost connection, and all of it twice: rows count
 * once. */
static void
rows_of_a_part_that_comes_again_count_once(void **state)
{
	struct rig *rig = *state;
	uint64_t border;
	begin_to_three(rig, &border);
	rig_write_own(rig, border);
	const struct wf_registry_part all = rig_part_of(rig, 1, 1, border);
	struct wf_registry_part first = all;
	first.count = 1;
	struct wf_registry_part rest = all;
	rest.first = 1;
	rest.count = 2;
	memcpy(rest.rows, all.rows + 1, 2 * sizeof(*rest.rows));
	struct wf_registry_part last = rest;
	last.first = 2;
	last.count = 1;
	last.rows[0] = all.rows[2];
	check_part_refused(rig, &rest, "tables from 1 on, and 0 is next");
	assert_ok(wf_registrar_on_part(rig->registrar, 1, &first));
	check_part_refused(rig, &last, "tables from 2 on, and 1 is next");
	wf_registrar_lose(rig->registrar, 1);
	assert_ok(rig_join(rig, 1, 901, 1));
	assert_ok(wf_registrar_on_part(rig->registrar, 1, &first));
	assert_ok(wf_registrar_on_part(rig->registrar, 1, &rest));
	assert_ok(wf_registrar_on_part(rig->registrar, 1, &first));
	assert_ok(rig_part(rig, 1, 0, border));
	(void)rig_look(rig);
	assert_int_equal(wf_registrar_orders(rig->registrar, 1).border, border);
	assert_ok(wf_registrar_on_part(rig->registrar, 1, &rest));
	REFUSED(wf_registrar_on_part(rig->registrar, 1, &last), WEFT_PROTOCOL,
		"tables from 2 on, and 3 is next");
	assert_ok(rig_part(rig, 2, 0, border));
	assert_ok(rig_part(rig, 2, 1, border));
	(void)rig_look(rig);
	assert_true(rig_has_snapshot(rig, wf_snapshots_id(rig->all, border)));
	for (uint32_t t = 0; t < RIG_TABLES; t++) {
		assert_int_equal(manifest_rows(rig, border, t), rows_of_all(t));
	}
	uint64_t next = rig_snapshot(rig); /* and not in addition to those of the one before */
	for (uint32_t t = 0; t < RIG_TABLES; t++) {
		assert_int_equal(manifest_rows(rig, next, t), rows_of_all(t));
	}
}

static void
a_pserver_that_fails_costs_the_snapshot_only(void **state)
{
	struct rig *rig = *state;
	rig_open(rig, &two);
	rig_begin(rig);
	rig_run(rig);
	uint64_t lead = rig_name_border(rig);
	rig_write_own(rig, lead);
	assert_ok(rig_failed(rig, 1, lead, "its disk is full"));
	assert_true(rig_has_directory(rig, wf_snapshots_id(rig->all, lead)));
	(void)rig_look(rig);
	assert_false(rig_has_directory(rig, wf_snapshots_id(rig->all, lead)));
	check_log(rig, "the training goes on: pserver 1: its disk is full");
	assert_int_equal(rig_name_border(rig), lead + 2 * lead);
	rig_write_own(rig, 3 * lead);
	(void)wf_fail(WEFT_IO, "the own disk is full");
	wf_snapshots_report(rig->all, rig->seat[0], 3 * lead, NULL);
	assert_ok(rig_part(rig, 1, 0, 3 * lead));
	(void)rig_look(rig);
	assert_false(rig_has_directory(rig, wf_snapshots_id(rig->all, 3 * lead)));
	check_log(rig, "the training goes on: the own disk is full");
	assert_int_equal(rig_name_border(rig), 3 * lead + 4 * lead);
	assert_int_equal(rig_snapshot(rig), 7 * lead);
	assert_int_equal(rig_name_border(rig), 7 * lead + lead); /* all is well again */
}

/* ---- manifests ---- */

static uint32_t
pserver_of(const struct rig_opts *opts, uint32_t place, uint32_t *lane)
{
	uint32_t dense = opts->pservers * opts->dense;
	if (place < dense) {
		*lane = place % opts->dense;
		return place / opts->dense;
	}
	*lane = opts->dense + (place - dense) % opts->sparse;
	return (place - dense) / opts->sparse;
}

static void
check_manifest(struct rig *rig, const struct wf_manifest *manifest, uint64_t border)
{
	const struct rig_opts *opts = &rig->opts;
	const struct wf_manifest_parts *parts = &manifest->parts;
	assert_int_equal(manifest->about.step, border);
	assert_int_equal(manifest->about.samples, 10 * border);
	assert_int_equal(manifest->about.pass, 1);
	assert_int_equal(parts->epoch, wf_snapshots_id(rig->all, border).epoch);
	assert_int_equal(parts->part_count, opts->pservers * rig_lanes(rig));
	assert_int_equal(parts->position[0].bytes, 2);
	for (uint32_t i = 0; i < parts->part_count; i++) {
		uint32_t lane;
		assert_int_equal(parts->part[i].pserver, pserver_of(opts, i, &lane));
	}
	assert_int_equal(manifest->table_count, opts->sparse > 0 ? RIG_TABLES : 0);
	for (uint32_t t = 0; t < manifest->table_count; t++) {
		uint64_t rows = 0;
		for (uint32_t i = 0; i < parts->part_count; i++) {
			uint32_t lane;
			uint32_t idx = pserver_of(opts, i, &lane);
			rows += lane < opts->dense ? 0 : rig_rows(idx, lane, t);
		}
		assert_int_equal(manifest->table[t].rows, rows);
		assert_int_equal(manifest->table[t].dim, 4 + t);
	}
}

/* Sizes and checksums at each place are those of the files with its name, which differ. */
static void
manifests_have_what_each_lane_has_reported(void **state)
{
	struct rig *rig = *state;
	for (uint32_t shape = 0; shape < 9; shape++) {
		const struct rig_opts opts = {.pservers = 1 + shape % 3,
					      .dense = 1 + shape / 3 % 3,
					      .sparse = (shape + 1) % 4 % 3,
					      .resume = WF_RESUME_NEVER};
		rig_open(rig, &opts);
		rig_begin(rig);
		rig_run(rig);
		for (unsigned i = 0; i < 2; i++) {
			struct wf_snapshot *snapshot = NULL;
			uint64_t border = rig_snapshot(rig); /* and verified */
			assert_ok(wf_snapshot_open(&rig->env, wf_saved_posix(), rig->scene->dir,
						   wf_snapshots_id(rig->all, border), &snapshot));
			check_manifest(rig, wf_snapshot_manifest(snapshot), border);
			wf_snapshot_close(snapshot);
		}
		rig_close(rig);
	}
}

/* ---- what is kept, and gone on from ---- */

static void
begin_alone(struct rig *rig, const struct rig_opts *opts)
{
	rig_open(rig, opts);
	rig_begin(rig);
	rig_run(rig);
}

static void
as_many_snapshots_are_kept_as_are_wanted(void **state)
{
	struct rig *rig = *state;
	const struct rig_opts opts = {.keep = 2, .resume = WF_RESUME_AUTO};
	const struct wf_snapshot_id of_first = {.epoch = 1, .step = 10};
	begin_alone(rig, &opts);
	for (uint64_t step = 10; step <= 50; step += 10) {
		assert_int_equal(rig_snapshot(rig), step);
		for (uint64_t old = 10; old <= step; old += 10) {
			const struct wf_snapshot_id id = {.epoch = 1, .step = old};
			assert_int_equal(rig_has_snapshot(rig, id), old + 10 >= step);
			assert_int_equal(rig_has_directory(rig, id), old + 10 >= step);
		}
	}
	rig_close(rig);
	/* A snapshot that nothing goes on from any more is not counted, and stays. */
	const struct rig_opts never = {.keep = 1, .resume = WF_RESUME_NEVER};
	begin_alone(rig, &never);
	assert_int_equal(rig_snapshot(rig), 10);
	assert_int_equal(rig_snapshot(rig), 20);
	assert_false(rig_has_directory(rig, (struct wf_snapshot_id){.epoch = 2, .step = 10}));
	assert_true(rig_has_snapshot(rig, (struct wf_snapshot_id){.epoch = 1, .step = 40}));
	assert_true(rig_has_snapshot(rig, (struct wf_snapshot_id){.epoch = 1, .step = 50}));
	assert_false(rig_has_directory(rig, of_first));
}

/* Turns a byte of a file. */
static void
damage(const struct rig *rig, struct wf_snapshot_id id, const char *leaf)
{
	char name[WF_SNAPSHOT_LEAF_BYTES];
	wf_snapshot_name(id, name);
	FILE *file = fopen(at(rig->scene, name, leaf), "r+e");
	assert_non_null(file);
	assert_int_equal(fseek(file, 40, SEEK_SET), 0);
	int byte = fgetc(file);
	assert_int_equal(fseek(file, 40, SEEK_SET), 0);
	assert_true(fputc(byte ^ 1, file) != EOF);
	assert_int_equal(fclose(file), 0);
}

static uint64_t
base_step(struct rig *rig)
{
	struct wf_snapshot_base base;
	(void)rig_look(rig);
	assert_ok(rig_base(rig, 0, &base));
	return base.id.step;
}

static void
a_job_goes_on_from_the_newest_snapshot_that_is_whole(void **state)
{
	struct rig *rig = *state;
	const struct rig_opts opts = {.keep = 3, .resume = WF_RESUME_AUTO};
	begin_alone(rig, &opts);
	for (unsigned i = 0; i < 3; i++) {
		(void)rig_snapshot(rig);
	}
	rig_close(rig);
	rig_open(rig, &opts);
	rig_begin(rig);
	assert_int_equal(base_step(rig), 30);
	rig_close(rig);
	damage(rig, (struct wf_snapshot_id){.epoch = 1, .step = 30}, "dense-0");
	rig_open(rig, &opts);
	rig_begin(rig);
	assert_int_equal(base_step(rig), 20);
	check_log(rig, "the snapshot of step 30 in epoch 1 cannot be used");
	rig_close(rig);
	damage(rig, (struct wf_snapshot_id){.epoch = 1, .step = 20}, "manifest");
	damage(rig, (struct wf_snapshot_id){.epoch = 1, .step = 10}, "dense-0");
	rig_open(rig, &opts);
	REFUSED(rig_open_registrar(rig), WEFT_DATA,
		"none of the 2 snapshots of its history is whole");
}

/* What the others are told to load is what the first one has read. */
static void
others_load_what_the_registrar_has_chosen(void **state)
{
	struct rig *rig = *state;
	const struct rig_opts opts = {
		.pservers = 2, .sparse = 1, .dense = 1, .resume = WF_RESUME_AUTO};
	struct wf_snapshot *snapshot = NULL;
	uint32_t crc = 0;
	begin_alone(rig, &opts);
	const struct wf_snapshot_id id = wf_snapshots_id(rig->all, rig_snapshot(rig));
	rig_close(rig);
	rig_open(rig, &opts);
	rig_begin(rig);
	assert_ok(rig_join(rig, 1, 901, 0));
	(void)rig_look(rig);
	const struct wf_registrar_orders orders = wf_registrar_orders(rig->registrar, 1);
	assert_ok(wf_snapshot_open(&rig->env, wf_saved_posix(), rig->scene->dir, id, &snapshot));
	assert_ok(wf_snapshot_crc(snapshot, &crc));
	wf_snapshot_close(snapshot);
	assert_true(orders.load);
	assert_int_equal(orders.base.epoch, 2);
	assert_int_equal(orders.base.id.epoch, id.epoch);
	assert_int_equal(orders.base.id.step, id.step);
	assert_int_equal(orders.samples, 10 * id.step);
	assert_int_equal(orders.crc, crc);
	assert_int_not_equal(crc, 0);
}

static enum weft_status
check_start(struct rig *rig, enum wf_resume resume)
{
	rig_open(rig, &(struct rig_opts){.resume = resume});
	enum weft_status st = wf_registrar_check_start(&rig->env, rig->all);
	rig_close(rig);
	return st;
}

static void
a_start_asks_where_there_is_something_to_go_on_from(void **state)
{
	static const enum wf_resume all[] = {WF_RESUME_ASK, WF_RESUME_AUTO, WF_RESUME_NEVER};
	struct rig *rig = *state;
	const struct rig_opts opts = {.resume = WF_RESUME_AUTO};
	for (size_t i = 0; i < WF_ARRAY_COUNT(all); i++) {
		assert_ok(check_start(rig, all[i])); /* nothing is there */
	}
	begin_alone(rig, &opts);
	rig_close(rig);
	assert_ok(check_start(rig, WF_RESUME_ASK)); /* a job began, and has no snapshot */
	begin_alone(rig, &opts);
	(void)rig_snapshot(rig);
	rig_close(rig);
	REFUSED(check_start(rig, WF_RESUME_ASK), WEFT_INVALID, "step 10 in epoch 2");
	REFUSED(check_start(rig, WF_RESUME_ASK), WEFT_INVALID, "--resume=auto");
	assert_ok(check_start(rig, WF_RESUME_AUTO));
	assert_ok(check_start(rig, WF_RESUME_NEVER));
	begin_alone(rig, &(struct rig_opts){.resume = WF_RESUME_NEVER});
	struct wf_snapshot_base base;
	assert_ok(rig_base(rig, 0, &base));
	assert_int_equal(base.id.step, 0);
	assert_int_equal(base.epoch, 3);
	rig_close(rig);
	begin_alone(rig, &opts);
	(void)rig_snapshot(rig);
	rig_end(rig, true);
	rig_close(rig);
	assert_ok(check_start(rig, WF_RESUME_ASK)); /* that job has ended */
}

static void
the_end_is_recorded_after_a_good_end_only(void **state)
{
	struct rig *rig = *state;
	rig_open(rig, &(struct rig_opts){.pservers = 2, .resume = WF_RESUME_AUTO});
	rig_begin(rig);
	(void)rig_look(rig);
	rig_end(rig, true); /* before it has begun */
	assert_string_equal(rig_newest_record(rig), "none");
	rig_begin(rig);
	rig_run(rig);
	rig_end(rig, false);
	assert_string_equal(rig_newest_record(rig), "job");
	rig_begin(rig);
	rig_run(rig);
	rig_end(rig, true);
	assert_string_equal(rig_newest_record(rig), "end");
	assert_true(rig_has_record(rig, 3) && !rig_has_record(rig, 4));
}

static void
the_end_of_a_job_waits_for_its_last_snapshot(void **state)
{
	struct rig *rig = *state;
	begin_alone(rig, &(struct rig_opts){0});
	uint64_t border = rig_name_border(rig);
	const struct wf_snapshot_id id = wf_snapshots_id(rig->all, border);
	rig->holds_tasks = true;
	rig_write_own(rig, border);
	uint64_t next_ns = rig_look(rig);
	assert_true(next_ns > rig->now_ns && next_ns < rig->now_ns + WF_NS_PER_S);
	assert_non_null(rig->held);
	assert_false(rig_has_snapshot(rig, id));
	rig_end(rig, false);
	assert_true(rig_has_snapshot(rig, id));
}

static void
a_border_is_due_by_time(void **state)
{
	struct rig *rig = *state;
	begin_alone(rig, &(struct rig_opts){.period_ns = 5 * WF_NS_PER_S});
	rig->now_ns += 5 * WF_NS_PER_S - 1;
	(void)rig_look(rig);
	assert_int_equal(wf_snapshot_seat_applied(rig->seat[0], 7), 0);
	rig->now_ns++;
	assert_int_equal(rig_snapshot(rig), 9);
	(void)rig_look(rig);
	assert_int_equal(wf_snapshot_seat_applied(rig->seat[0], 11), 0);
	rig->now_ns += 5 * WF_NS_PER_S;
	assert_int_equal(rig_name_border(rig), 13);
}

/* There is no border to wait for: it is ordered for the lanes as they are, at a moment that lane 0
 * allows, when a step has been made since the last one. */
static void
a_vector_is_ordered_when_lane_0_allows_it(void **state)
{
	struct rig *rig = *state;
	begin_alone(rig, &(struct rig_opts){.is_vector = true, .steps = 4});
	const struct {
		uint64_t step;
		bool may;
		uint64_t ordered;
	} turns[] = {{3, true, 0}, {5, false, 0}, {6, true, 6}};
	for (unsigned i = 0; i < WF_ARRAY_COUNT(turns); i++) {
		(void)wf_snapshot_seat_applied(rig->seat[0], turns[i].step);
		wf_registrar_allow(rig->registrar, turns[i].may);
		(void)rig_look(rig);
		assert_int_equal(wf_snapshot_seat_applied(rig->seat[0], turns[i].step),
				 turns[i].ordered);
	}
	rig_write_own(rig, 6);
	(void)rig_look(rig);
	(void)rig_look(rig);
	assert_true(rig_has_snapshot(rig, wf_snapshots_id(rig->all, 6)));
	assert_int_equal(wf_snapshot_seat_applied(rig->seat[0], 7), 0);
	(void)rig_look(rig);
	assert_int_equal(wf_snapshot_seat_applied(rig->seat[0], 8), 0);
	(void)rig_look(rig);
	assert_int_equal(wf_snapshot_seat_applied(rig->seat[0], 8), 8);
}

/* The lanes of others are known of by messages only, and steps pass while one is under way. */
static void
a_border_of_several_pservers_is_named_further_ahead(void **state)
{
	struct rig *rig = *state;
	for (uint32_t pservers = 1; pservers <= 2; pservers++) {
		rig_open(rig, &(struct rig_opts){.pservers = pservers,
						 .period_ns = WF_NS_PER_S,
						 .resume = WF_RESUME_NEVER});
		rig_begin(rig);
		rig_run(rig);
		(void)rig_look(rig);
		for (uint64_t ms = 100; ms <= 1000; ms += 100) {
			rig->now_ns += 100 * WF_NS_PER_MS;
			(void)wf_snapshot_seat_applied(rig->seat[0], ms);
			(void)rig_look(rig);
		}
		uint64_t border = wf_snapshot_seat_applied(rig->seat[0], 1000);
		assert_int_equal(border, pservers == 1 ? 1002 : 1002 + 20);
		rig_close(rig);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_RIG(nothing_runs_before_all_pservers_have_come_and_loaded),
		WITH_RIG(the_record_is_there_before_any_lane_serves),
		WITH_RIG(a_registrar_whose_record_another_one_made_begins_nothing),
		WITH_RIG(each_pserver_is_ordered_what_it_lacks),
		WITH_RIG(the_place_of_a_pserver_is_one_process),
		WITH_RIG(a_pserver_with_other_lanes_is_refused),
		WITH_RIG(who_was_not_asked_has_not_loaded),
		WITH_RIG(a_pserver_that_cannot_load_ends_the_job),
		WITH_RIG(who_has_not_come_at_the_deadline_ends_the_job),
		WITH_RIG(a_part_of_a_lane_of_another_pserver_is_refused),
		WITH_RIG(a_job_without_sparse_lanes_has_no_sparse_parts),
		WITH_RIG(a_part_of_another_snapshot_counts_nothing),
		WITH_RIG(rows_of_a_part_that_comes_again_count_once),
		WITH_RIG(a_pserver_that_fails_costs_the_snapshot_only),
		WITH_RIG(manifests_have_what_each_lane_has_reported),
		WITH_RIG(as_many_snapshots_are_kept_as_are_wanted),
		WITH_RIG(a_job_goes_on_from_the_newest_snapshot_that_is_whole),
		WITH_RIG(others_load_what_the_registrar_has_chosen),
		WITH_RIG(a_start_asks_where_there_is_something_to_go_on_from),
		WITH_RIG(the_end_is_recorded_after_a_good_end_only),
		WITH_RIG(the_end_of_a_job_waits_for_its_last_snapshot),
		WITH_RIG(a_border_is_due_by_time),
		WITH_RIG(a_vector_is_ordered_when_lane_0_allows_it),
		WITH_RIG(a_border_of_several_pservers_is_named_further_ahead),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
