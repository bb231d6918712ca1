/* SPDX-License-Identifier: Apache-2.0 */
/* A delta is read with the snapshots on which it builds: of each key the newest row counts, and
 * none that is gone. A chain that lies about what it builds on, or about its rows, is refused
 * before anything of it is used. */
#include "tests/unit/saved/setup.h"

#include "base/crc32c.h"
#include "saved/internal.h"
#include "saved/snapshot.h"
#include "wire/little.h"

#define KEYS_MAX 8u

/* A row has this one value; it was updated in `stamp`, and is older than all snapshots. */
struct row {
	uint64_t key;
	float value;
	uint32_t stamp;
};

/* What a test writes: a table of one sparse lane. */
struct link {
	uint64_t step, base; /* 0: complete */
	struct row row[KEYS_MAX];
	uint64_t gone[KEYS_MAX];
	uint64_t row_count, gone_count;
	uint64_t rows; /* as the manifest has them */
	const char *table;
	uint32_t state_floats;
	uint64_t vocabulary;
	bool is_split; /* each row in a block of its own */
};

static void
put(struct wf_part_writer *writer, enum wf_part_kind kind, uint64_t first, uint64_t count,
    const uint8_t *payload, uint64_t bytes)
{
	const struct wf_part_block block = {
		.kind = kind, .first = first, .count = count, .bytes = bytes};

	assert_ok(wf_part_put(writer, &block, payload));
}

static void
put_rows(struct wf_part_writer *writer, const struct link *link, const struct wf_row_shape *shape)
{
	const size_t bytes = wf_row_record_bytes(shape);
	const uint64_t each = link->is_split ? 1 : link->row_count;
	uint8_t *payload = calloc(KEYS_MAX, bytes);

	assert_non_null(payload);
	for (uint64_t i = 0; i < link->row_count; i++) {
		float floats[2] = {link->row[i].value, 0};
		const struct wf_row_record row = {
			.key = link->row[i].key, .stamp = link->row[i].stamp, .floats = floats};
		wf_row_record_put(shape, &row, payload + i * bytes);
	}
	for (uint64_t i = 0; i < link->row_count; i += each) {
		put(writer, WF_PART_ROWS, i, each, payload + i * bytes, each * bytes);
	}
	free(payload);
}

static void
fill_sparse(struct wf_part_writer *writer, const struct link *link)
{
	const struct wf_row_shape shape = {.dim = 1, .state_floats = link->state_floats};
	const struct wf_part_table about = {.row = shape, .vocabulary = link->vocabulary};
	uint8_t bytes[KEYS_MAX * sizeof(uint64_t)];

	wf_part_table_put(&about, bytes);
	put(writer, WF_PART_LANE, 0, 0, bytes, WF_PART_TABLE_BYTES);
	put_rows(writer, link, &shape);
	for (uint64_t i = 0; i < link->gone_count; i++) {
		wf_store_u64(bytes + i * sizeof(uint64_t), link->gone[i]);
	}
	if (link->gone_count > 0) {
		put(writer, WF_PART_GONE, 0, link->gone_count, bytes,
		    link->gone_count * sizeof(uint64_t));
	}
}

static void
write_part(struct wf_saved_folder *folder, const struct link *link, enum wf_service service,
	   struct wf_manifest_part *out)
{
	static struct wf_snapshot_file file;
	const struct wf_part_head head = {
		.service = (uint8_t)service, .lane_count = 1, .epoch = 1, .step = link->step};
	struct wf_part_writer *writer = NULL;
	struct wf_part_sum sum;

	assert_ok(wf_snapshot_part_begin(folder, (struct wf_snapshot_id){1, link->step}, out->name,
					 &file));
	assert_ok(wf_part_create(folder->env, &file.spot, &head, &writer));
	if (service == WF_SERVICE_SPARSE) {
		fill_sparse(writer, link);
	}
	assert_ok(wf_part_finish(writer, WEFT_OK, &sum));
	assert_ok(wf_snapshot_part_end(&file, WEFT_OK));
	out->bytes = sum.bytes;
	out->crc = sum.crc;
}

static void
write_link(struct scene *scene, const struct link *link)
{
	const struct wf_saved_place place = place_of(scene, wf_saved_posix());
	struct wf_manifest_table table = {.optimizer = "sgd", .dim = 1, .rows = link->rows};
	struct wf_manifest_part part[2];
	const struct wf_manifest manifest = {.about = about_pass(1, link->step),
					     .parts = {.epoch = 1,
						       .base_step = link->base,
						       .dense_lanes = 1,
						       .sparse_lanes = 1,
						       .pserver_count = 1,
						       .trainer_count = 1,
						       .part_count = 2,
						       .part = part},
					     .table_count = 1,
					     .table = &table};
	struct wf_saved_folder *folder = NULL;

	snprintf(table.name, sizeof(table.name), "%s", link->table != NULL ? link->table : "emb");
	assert_ok(wf_snapshot_folder_open(&place, &folder));
	for (uint32_t i = 0; i < 2; i++) {
		wf_manifest_part_at(&manifest.parts, i, &part[i]);
		write_part(folder, link, i == 0 ? WF_SERVICE_DENSE : WF_SERVICE_SPARSE, &part[i]);
	}
	assert_ok(wf_snapshot_manifest_write(folder, (struct wf_snapshot_id){1, link->step},
					     &manifest));
	wf_saved_folder_close(folder);
}

static enum weft_status
open_step(struct scene *scene, uint64_t step, struct wf_saved **out)
{
	char path[WF_SAVED_PATH_BYTES];
	char name[WF_SNAPSHOT_LEAF_BYTES];

	wf_snapshot_name((struct wf_snapshot_id){1, step}, name);
	assert_ok(wf_saved_join(scene->dir, name, path));
	return wf_saved_open_any(&scene->failing.env, wf_saved_posix(), path, out);
}

static void
refuses(struct scene *scene, uint64_t step, const char *part)
{
	struct wf_saved *saved = NULL;

	assert_refused(open_step(scene, step, &saved), WEFT_DATA, part);
	assert_true(wf_failing_env_is_clean(&scene->failing));
}

/* The complete snapshot of step 10: rows 1 to 4, with the values 1 to 4. */
static const struct link complete = {
	.step = 10,
	.row = {{1, 1, 5}, {2, 2, 5}, {3, 3, 9}, {4, 4, 1}},
	.row_count = 4,
	.rows = 4,
};
/* Step 20: row 2 is updated, 3 is gone, 5 and 6 are new, 4 went and came back. */
static const struct link second = {
	.step = 20,
	.base = 10,
	.row = {{2, 20, 12}, {5, 50, 20}, {4, 40, 18}, {6, 60, 11}},
	.gone = {3, 4},
	.row_count = 4,
	.gone_count = 2,
	.rows = 5,
	.is_split = true,
};
/* Step 30: row 5 is gone, 3 is back. */
static const struct link third = {
	.step = 30,
	.base = 20,
	.row = {{3, 300, 30}},
	.gone = {5},
	.row_count = 1,
	.gone_count = 1,
	.rows = 5,
};

static void
write_chain(struct scene *scene)
{
	write_link(scene, &complete);
	write_link(scene, &second);
	write_link(scene, &third);
}

/* The value of each key, 0: it has no row. */
static void
read_values(const struct wf_saved *saved, uint64_t window_bytes, float out[KEYS_MAX])
{
	const struct wf_block_walk walk = {saved->env, saved->calls, saved->path, &saved->manifest};
	struct wf_rows_reader *rows = NULL;
	struct wf_rows_partition partition;
	struct wf_row_record row;

	memset(out, 0, KEYS_MAX * sizeof(*out));
	assert_ok(wf_blocks_open_rows(&walk, &saved->blocks, 0, window_bytes, &rows));
	while (wf_rows_next_partition(rows, &partition) == WEFT_OK) {
		for (uint64_t i = 0; i < partition.row_count; i++) {
			assert_ok(wf_rows_next(rows, &row));
			assert_in_range(row.key, 1, KEYS_MAX - 1);
			out[row.key] = row.floats[0];
		}
	}
	wf_rows_close(rows);
}

static void
of_each_key_the_newest_row_counts_and_none_that_is_gone(void **state)
{
	static const float wanted[][KEYS_MAX] = {
		{0, 1, 2, 3, 4}, {0, 1, 20, 0, 40, 50, 60}, {0, 1, 20, 300, 40, 0, 60}};
	static const uint64_t window[] = {0, 60, WF_BLOCKS_WINDOW_BYTES};
	struct scene *scene = *state;
	struct wf_saved *saved = NULL;
	float got[KEYS_MAX];

	write_chain(scene);
	for (uint64_t i = 0; i < 3; i++) {
		assert_ok(open_step(scene, 10 * (i + 1), &saved));
		for (size_t w = 0; w < WF_ARRAY_COUNT(window); w++) {
			read_values(saved, window[w], got);
			assert_memory_equal(got, wanted[i], sizeof(got));
		}
		wf_saved_close(saved);
	}
}

/* From wherever its folder is named, and also where it has another name. */
static void
what_it_builds_on_is_beside_it(void **state)
{
	struct scene *scene = *state;
	struct wf_saved *saved = NULL;
	char name[WF_SAVED_PATH_BYTES], other[WF_SAVED_PATH_BYTES];
	char before[WF_SAVED_PATH_BYTES];

	write_chain(scene);
	assert_non_null(getcwd(before, sizeof(before)));
	assert_int_equal(chdir(scene->dir), 0);
	assert_ok(wf_saved_open_any(&scene->failing.env, wf_saved_posix(),
				    "epoch-00001-step-0000000030/", &saved));
	wf_saved_close(saved);
	assert_int_equal(chdir("epoch-00001-step-0000000030"), 0);
	assert_ok(wf_saved_open_any(&scene->failing.env, wf_saved_posix(), ".", &saved));
	wf_saved_close(saved);
	assert_int_equal(chdir(before), 0);
	assert_ok(wf_saved_join(scene->dir, "epoch-00001-step-0000000030", name));
	assert_ok(wf_saved_join(scene->dir, "kept", other));
	assert_int_equal(rename(name, other), 0);
	assert_ok(wf_saved_open_any(&scene->failing.env, wf_saved_posix(), other, &saved));
	wf_saved_close(saved);
}

/* What each chain says of itself beside the complete snapshot, and why it is refused. */
static void
a_chain_that_lies_is_refused(void **state)
{
	struct scene *scene = *state;
	struct {
		struct link link;
		const char *part;
	} cases[12];
	size_t count = 0;

	for (size_t i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		cases[i].link = second;
	}
	cases[count].link.base = 9;
	cases[count++].part = "builds on step 9, which cannot be used: ";
	cases[count].link.rows = 6;
	cases[count++].part = "with the snapshots on which it builds it has 5 rows, not 6";
	cases[count].link.rows = 4;
	cases[count++].part = "with the snapshots on which it builds it has 5 rows, not 4";
	cases[count].link.row[0].stamp = 10; /* as old as the base */
	cases[count++].part = "has a row that has not changed since the snapshot";
	cases[count].link.row[0].stamp = 99;
	cases[count++].part = "is of a step that was not made yet";
	cases[count].link.row[1].key = 2;
	cases[count++].part = "the row of key 2 is in two blocks";
	cases[count].link.table = "other";
	cases[count++].part = "has other tables";
	cases[count].link.state_floats = 1;
	cases[count++].part = "table emb is not as in ";
	cases[count].link.vocabulary = 100;
	cases[count++].part = "has keys of rows that are gone, which it cannot have";
	cases[count].link.base = 0;
	cases[count++].part = "has keys of rows that are gone, which it cannot have";
	write_link(scene, &complete);
	for (size_t i = 0; i < count; i++) {
		cases[i].link.step = 20 + i;
		write_link(scene, &cases[i].link);
		refuses(scene, cases[i].link.step, cases[i].part);
	}
}

/* Writes over the line "base 1 OLD" of the manifest of a step; both numbers have two digits. */
static void
forge_base(struct scene *scene, uint64_t step, const char *with)
{
	char path[WF_SAVED_PATH_BYTES];
	char text[4096] = "";

	snprintf(path, sizeof(path), "%s/epoch-00001-step-%010llu/manifest", scene->dir,
		 (unsigned long long)step);
	FILE *file = fopen(path, "r+e");
	assert_non_null(file);
	assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
	char *line = strstr(text, "\nbase 1 ");
	char *sum = strstr(text, "\ncrc32c ");
	assert_true(line != NULL && sum != NULL);
	memcpy(line + 8, with, 2);
	snprintf(sum + 8, 10, "%08x\n", (unsigned)wf_crc32c(0, text, (size_t)(sum + 1 - text)));
	assert_int_equal(fseek(file, 0, SEEK_SET), 0);
	assert_int_equal(fputs(text, file) >= 0, true);
	assert_int_equal(fclose(file), 0);
}

static void
a_loop_and_a_missing_or_damaged_link_are_refused(void **state)
{
	struct scene *scene = *state;
	char path[WF_SAVED_PATH_BYTES], aside[WF_SAVED_PATH_BYTES];

	write_chain(scene);
	/* 20 builds on 30, which builds on 20; 20 builds on itself. */
	forge_base(scene, 20, "30");
	refuses(scene, 30, "which cannot be used: ");
	refuses(scene, 20, "must be an earlier step of the same epoch");
	forge_base(scene, 20, "20");
	refuses(scene, 30, "must be an earlier step of the same epoch");
	forge_base(scene, 20, "10");
	/* 30 builds on 10, and misses what 20 has. */
	forge_base(scene, 30, "10");
	refuses(scene, 30, "with the snapshots on which it builds it has 4 rows, not 5");
	forge_base(scene, 30, "20");
	/* The manifest of 10 in the place of 20. */
	assert_ok(wf_saved_join(scene->dir, "epoch-00001-step-0000000020", path));
	assert_ok(wf_saved_join(scene->dir, "aside", aside));
	assert_int_equal(rename(path, aside), 0);
	refuses(scene, 30, "builds on step 20, which cannot be used: ");
	assert_int_equal(symlink("epoch-00001-step-0000000010", path), 0);
	refuses(scene, 30, "is not the manifest of this snapshot");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rename(aside, path), 0);
	/* One bit of the oldest. */
	snprintf(path, sizeof(path), "%s/epoch-00001-step-0000000010/sparse-0", scene->dir);
	FILE *file = fopen(path, "r+e");
	assert_non_null(file);
	assert_int_equal(fseek(file, 64 + 48 + WF_PART_TABLE_BYTES + 4 + 48 + 3, SEEK_SET), 0);
	assert_int_equal(fputc('x', file), 'x');
	assert_int_equal(fclose(file), 0);
	refuses(scene, 30, "sparse-0: block 1: checksum of its payload");
}

static void
each_failing_allocation_is_reported_and_leaks_nothing(void **state)
{
	struct scene *scene = *state;
	struct wf_saved *saved = NULL;
	enum weft_status st = WEFT_NOMEM;

	write_chain(scene);
	for (uint64_t nth = 1; st != WEFT_OK; nth++) {
		wf_failing_env_fail(&scene->failing, nth, false);
		st = open_step(scene, 30, &saved);
		if (st != WEFT_OK) {
			assert_int_equal(st, WEFT_NOMEM);
			assert_true(wf_failing_env_is_clean(&scene->failing));
		}
	}
	assert_int_equal(scene->failing.failed, 0);
	wf_saved_close(saved);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SCENE(of_each_key_the_newest_row_counts_and_none_that_is_gone),
		WITH_SCENE(what_it_builds_on_is_beside_it),
		WITH_SCENE(a_chain_that_lies_is_refused),
		WITH_SCENE(a_loop_and_a_missing_or_damaged_link_are_refused),
		WITH_SCENE(each_failing_allocation_is_reported_and_leaks_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
