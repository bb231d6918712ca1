/* SPDX-License-Identifier: Apache-2.0 */
/* A table's rows are read as they were saved; anything else is refused by file and reason, both
 * when it is written and when it is read. */
#include "tests/unit/saved/setup.h"

#include <zlib.h>

#include "base/crc32c.h"
#include "saved/rows_layout.h"
#include "wire/little.h"
#include "wire/partition.h"

#define DIM 3u
#define STATE 2u
#define KEYS 5000u
#define FILE_ROOM (1u << 20)
#define COUNTERS 4u

static const struct wf_rows_head plain_head = {
	.shape = {.dim = DIM, .state_floats = STATE, .has_score = true},
	.counter_count = COUNTERS,
	.step = 9,
};

/* Key n of a table: floats, stamps and scores follow from it. */
static void
row_of(uint64_t key, float *floats, struct wf_row_record *out)
{
	for (unsigned i = 0; i < DIM + STATE; i++) {
		floats[i] = (float)key * 0.5f + (float)i;
	}
	*out = (struct wf_row_record){
		.key = key,
		.stamp = (uint32_t)(key % 10),
		.born = (uint32_t)(key % 5),
		.show = (float)key,
		.click = 1.0f,
		.floats = floats,
	};
}

static uint32_t
count_of(uint32_t partition)
{
	uint32_t count = 0;

	for (uint64_t key = 0; key < KEYS; key++) {
		count += wf_partition_of(key) == partition;
	}
	return count;
}

static enum weft_status
fill(const struct wf_saved_table *table, struct wf_rows_writer *to)
{
	float floats[DIM + STATE];
	struct wf_row_record row;
	enum weft_status st = WEFT_OK;

	for (uint32_t p = 0; st == WEFT_OK && p < WF_PARTITION_COUNT; p++) {
		const uint16_t counter[COUNTERS] = {(uint16_t)p, 1, 2, 3};
		st = wf_rows_begin(to, count_of(p), counter);
		for (uint64_t key = 0; st == WEFT_OK && key < KEYS; key++) {
			if (wf_partition_of(key) == p) {
				row_of(key, floats, &row);
				st = wf_rows_put(to, &row);
			}
		}
	}
	assert_ptr_equal(table->source, &plain_head);
	return st;
}

static struct wf_saved_table
table_of(const char *name)
{
	return (struct wf_saved_table){.name = name,
				       .optimizer = "adagrad",
				       .head = plain_head,
				       .fill = fill,
				       .source = (void *)(uintptr_t)&plain_head};
}

static enum weft_status
save(struct scene *scene, const struct wf_saved_content *content)
{
	const struct wf_saved_about about = about_pass(1, 9);

	return save_content(scene, wf_saved_posix(), &about, content);
}

/* A pass of the model's tensors and one table. */
static void
save_both(struct scene *scene)
{
	const struct wf_saved_table table = table_of("emb");
	const struct wf_saved_content content = {.tensor = scene->model.tensor,
						 .tensor_count = 2,
						 .table = &table,
						 .table_count = 1};

	assert_ok(save(scene, &content));
}

static enum weft_status
open_pass(struct scene *scene, struct wf_saved **out)
{
	char path[WF_SAVED_PATH_BYTES];

	assert_ok(wf_saved_pass_path(scene->dir, 1, path));
	return wf_saved_open(&scene->failing.env, wf_saved_posix(), path, out);
}

static void
path_of_rows(const struct scene *scene, char *out)
{
	snprintf(out, WF_SAVED_PATH_BYTES, "%s/pass-00001/emb.rows", scene->dir);
}

static void
every_row_comes_back_by_partition_and_key(void **state)
{
	struct scene *scene = *state;
	const struct wf_saved_table table = table_of("emb");
	struct wf_saved *saved = NULL;
	struct wf_rows_reader *rows = NULL;
	struct wf_rows_partition partition;
	struct wf_row_record row, want;
	float floats[DIM + STATE];
	uint32_t count = 0;

	save_both(scene);
	assert_ok(open_pass(scene, &saved));
	assert_int_equal(wf_saved_table_count(saved), 1);
	assert_ok(wf_saved_load(saved, scene->model.tensor, 2, true));
	assert_ok(wf_saved_open_table(saved, &table, &rows));
	assert_int_equal(wf_rows_head(rows)->step, 9);
	for (uint32_t p = 0; p < WF_PARTITION_COUNT; p++) {
		assert_ok(wf_rows_next_partition(rows, &partition));
		assert_int_equal(partition.partition, p);
		assert_int_equal(partition.counter[0], p);
		assert_int_equal(partition.counter[3], 3);
		for (uint64_t i = 0; i < partition.row_count; i++, count++) {
			assert_ok(wf_rows_next(rows, &row));
			row_of(row.key, floats, &want);
			assert_memory_equal(row.floats, floats, sizeof(floats));
			assert_int_equal(row.stamp, want.stamp);
			assert_int_equal(row.born, want.born);
			assert_true(row.show == want.show && row.click == want.click);
		}
	}
	assert_int_equal(wf_rows_next_partition(rows, &partition), WEFT_CLOSED);
	assert_int_equal(count, KEYS);
	wf_rows_close(rows);
	wf_saved_close(saved);
}

static void
a_save_of_tables_only_opens(void **state)
{
	struct scene *scene = *state;
	const struct wf_saved_table table[2] = {table_of("z"), table_of("a")};
	const struct wf_saved_content content = {.table = table, .table_count = 2};
	struct wf_saved *saved = NULL;

	assert_ok(save(scene, &content));
	assert_ok(open_pass(scene, &saved));
	assert_int_equal(wf_saved_table_count(saved), 2);
	assert_refused(wf_saved_load(saved, scene->model.tensor, 2, true), WEFT_DATA, "is missing");
	wf_saved_close(saved);
}

static void
a_table_of_other_settings_is_not_given(void **state)
{
	struct scene *scene = *state;
	struct wf_saved *saved = NULL;
	struct wf_rows_reader *rows = NULL;
	struct wf_saved_table table = table_of("emb");

	save_both(scene);
	assert_ok(open_pass(scene, &saved));
	table.optimizer = "adam";
	assert_refused(wf_saved_open_table(saved, &table, &rows), WEFT_DATA, "adagrad");
	table = table_of("other");
	assert_refused(wf_saved_open_table(saved, &table, &rows), WEFT_DATA, "other");
	table = table_of("emb");
	table.head.shape.dim = DIM + 1;
	assert_refused(wf_saved_open_table(saved, &table, &rows), WEFT_DATA, "this one has 4");
	table = table_of("emb");
	table.head.vocabulary = 7;
	assert_refused(wf_saved_open_table(saved, &table, &rows), WEFT_DATA, "vocabulary 0");
	table = table_of("emb");
	table.head.counter_count = 0;
	assert_refused(wf_saved_open_table(saved, &table, &rows), WEFT_DATA, "4 counters");
	assert_null(rows);
	wf_saved_close(saved);
}

static size_t
read_bytes(const char *path, uint8_t *out, size_t room)
{
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	size_t bytes = fread(out, 1, room, file);
	assert_int_equal(fclose(file), 0);
	assert_true(bytes < room);
	return bytes;
}

static void
write_bytes(const char *path, const uint8_t *bytes, size_t count)
{
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, count, file), count);
	assert_int_equal(fclose(file), 0);
}

static void
any_byte_that_is_flipped_is_found(void **state)
{
	struct scene *scene = *state;
	static uint8_t bytes[FILE_ROOM];
	struct wf_saved *saved = NULL;
	struct wf_rows_sum sum;
	char path[WF_SAVED_PATH_BYTES];

	save_both(scene);
	path_of_rows(scene, path);
	size_t count = read_bytes(path, bytes, sizeof(bytes));
	for (size_t at = 0; at < count; at += at < 300 ? 1 : 997) {
		bytes[at] ^= 0x10;
		write_bytes(path, bytes, count);
		assert_refused(open_pass(scene, &saved), WEFT_DATA, "emb.rows");
		/* Without the manifest too, but for where a second file is needed to tell. */
		assert_refused(
			wf_rows_check(&scene->failing.env, wf_saved_posix(), path, NULL, &sum),
			WEFT_DATA, "emb.rows");
		bytes[at] ^= 0x10;
	}
	write_bytes(path, bytes, count);
	assert_ok(open_pass(scene, &saved));
	wf_saved_close(saved);
}

static void
a_file_that_is_cut_or_goes_on_is_refused(void **state)
{
	struct scene *scene = *state;
	static uint8_t bytes[FILE_ROOM];
	struct wf_saved *saved = NULL;
	char path[WF_SAVED_PATH_BYTES];

	save_both(scene);
	path_of_rows(scene, path);
	size_t count = read_bytes(path, bytes, sizeof(bytes));
	for (size_t left = 0; left < count; left += left < 100 ? 1 : 9973) {
		write_bytes(path, bytes, left);
		assert_refused(open_pass(scene, &saved), WEFT_DATA, "emb.rows");
	}
	write_bytes(path, bytes, count - 1);
	assert_refused(open_pass(scene, &saved), WEFT_DATA, "too early");
	bytes[count] = 0;
	write_bytes(path, bytes, count + 1);
	assert_refused(open_pass(scene, &saved), WEFT_DATA, "after its end");
	assert_int_equal(unlink(path), 0);
	assert_refused(open_pass(scene, &saved), WEFT_DATA, "emb.rows");
}

static void
a_file_of_another_save_is_refused(void **state)
{
	struct scene *scene = *state;
	const struct wf_saved_table table[2] = {table_of("emb"), table_of("too")};
	const struct wf_saved_content content = {.table = table, .table_count = 2};
	static uint8_t bytes[FILE_ROOM];
	struct wf_saved *saved = NULL;
	char path[WF_SAVED_PATH_BYTES];

	assert_ok(save(scene, &content));
	path_of_rows(scene, path);
	size_t count = read_bytes(path, bytes, sizeof(bytes));
	/* Another counter, with a checksum of the partition that is right. */
	uint8_t *section = bytes + 64;
	const uint64_t rows = wf_load_u64(section + 8);
	const size_t section_bytes =
		16 + 2 * COUNTERS + rows * wf_row_record_bytes(&plain_head.shape);
	wf_store_u16(section + 16, 777);
	wf_store_u32(section + section_bytes,
		     wf_saved_crc_stored(wf_crc32c(0, section, section_bytes)));
	write_bytes(path, bytes, count);
	assert_refused(open_pass(scene, &saved), WEFT_DATA, "the manifest has");
}

static void
the_writer_takes_no_row_that_the_reader_would_refuse(void **state)
{
	struct scene *scene = *state;
	struct wf_rows_writer *rows = NULL;
	struct wf_rows_sum sum;
	struct wf_row_record row;
	float floats[DIM + STATE];
	char path[WF_SAVED_PATH_BYTES];
	uint64_t key = 0, next = 1;
	const struct wf_saved_spot spot = {wf_saved_posix(), AT_FDCWD, path};

	while (wf_partition_of(key) != 0) {
		key++;
	}
	for (next = key + 1; wf_partition_of(next) != 0;) {
		next++;
	}
	snprintf(path, sizeof(path), "%s/file", scene->dir);
	assert_ok(wf_rows_create(&scene->failing.env, &spot, &plain_head, &rows));
	assert_ok(wf_rows_begin(rows, 2, NULL));
	row_of(next, floats, &row);
	assert_ok(wf_rows_put(rows, &row));
	row_of(key, floats, &row);
	assert_refused(wf_rows_put(rows, &row), WEFT_INVALID, "does not ascend");
	row_of(next, floats, &row);
	assert_refused(wf_rows_put(rows, &row), WEFT_INVALID, "does not ascend");
	row_of(UINT64_MAX, floats, &row);
	assert_refused(wf_rows_put(rows, &row), WEFT_INVALID, "another partition");
	row_of(next, floats, &row);
	row.stamp = 10;
	assert_refused(wf_rows_begin(rows, 0, NULL), WEFT_INVALID, "lacks 1 rows");
	assert_refused(wf_rows_finish(rows, WEFT_OK, &sum), WEFT_INVALID, "lacks");
	assert_int_equal(unlink(path), 0);
	assert_ok(wf_rows_create(&scene->failing.env, &spot, &plain_head, &rows));
	assert_ok(wf_rows_begin(rows, 1, NULL));
	assert_refused(wf_rows_put(rows, &row), WEFT_INVALID, "was not made yet");
	row.stamp = 9;
	assert_ok(wf_rows_put(rows, &row));
	assert_refused(wf_rows_put(rows, &row), WEFT_INVALID,
		       "is one more than the partition announced");
	assert_refused(wf_rows_finish(rows, WEFT_OK, &sum), WEFT_INVALID, "1 of 1024");
}

static void
heads_that_no_table_has_are_refused(void **state)
{
	struct scene *scene = *state;
	struct wf_rows_writer *rows = NULL;
	struct wf_rows_head head = plain_head;
	char path[WF_SAVED_PATH_BYTES];
	const struct wf_saved_spot spot = {wf_saved_posix(), AT_FDCWD, path};

	snprintf(path, sizeof(path), "%s/file", scene->dir);
	head.shape.dim = 0;
	assert_refused(wf_rows_create(&scene->failing.env, &spot, &head, &rows), WEFT_INVALID,
		       "rows of 0 values");
	head = plain_head;
	head.shape.state_floats = 2 * DIM + 2;
	assert_refused(wf_rows_create(&scene->failing.env, &spot, &head, &rows), WEFT_INVALID,
		       "8 floats of state");
	head = plain_head;
	head.counter_count = WF_ROWS_COUNTERS_MAX + 1;
	assert_refused(wf_rows_create(&scene->failing.env, &spot, &head, &rows), WEFT_INVALID,
		       "counters");
	assert_int_equal(names_in(scene->dir, false), 0);
	assert_int_equal(wf_rows_file_bytes(&plain_head, UINT64_MAX / 8), 0);
}

static enum weft_status
fill_then_fail(const struct wf_saved_table *table, struct wf_rows_writer *to)
{
	enum weft_status st = fill(table, to);
	return st == WEFT_OK ? wf_fail(WEFT_LOST, "the lane has gone") : st;
}

static void
a_source_that_fails_leaves_nothing_behind(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_table table = table_of("emb");
	const struct wf_saved_content content = {.table = &table, .table_count = 1};

	table.fill = fill_then_fail;
	assert_refused(save(scene, &content), WEFT_LOST, "the lane has gone");
	assert_int_equal(names_in(scene->dir, false), 0);
}

static void
without_memory_a_table_is_neither_saved_nor_opened(void **state)
{
	struct scene *scene = *state;
	const struct wf_saved_table table = table_of("emb");
	const struct wf_saved_content content = {.table = &table, .table_count = 1};
	struct wf_saved *saved = NULL;
	unsigned refused = 0;

	for (unsigned nth = 1;; nth++) {
		wf_failing_env_fail(&scene->failing, nth, false);
		enum weft_status st = save(scene, &content);
		if (st == WEFT_OK) {
			break;
		}
		assert_int_equal(st, WEFT_NOMEM);
		assert_int_equal(names_in(scene->dir, false), 0);
		refused++;
	}
	for (unsigned nth = 1;; nth++) {
		wf_failing_env_fail(&scene->failing, nth, false);
		enum weft_status st = open_pass(scene, &saved);
		if (st == WEFT_OK) {
			break;
		}
		assert_int_equal(st, WEFT_NOMEM);
		refused++;
	}
	wf_saved_close(saved);
	assert_true(refused > 6);
}

/* Where a needle lies in a file, behind `from`. */
static const uint8_t *
find(const uint8_t *from, const uint8_t *end, const char *needle)
{
	const uint8_t *at = memmem(from, (size_t)(end - from), needle, strlen(needle));
	if (at == NULL) {
		fail_msg("%s is not there", needle);
	}
	return at;
}

static void
safetensors_has_keys_and_values_of_tables(void **state)
{
	struct scene *scene = *state;
	static uint8_t bytes[FILE_ROOM];
	struct wf_saved *saved = NULL;
	char path[WF_SAVED_PATH_BYTES];

	save_both(scene);
	assert_ok(open_pass(scene, &saved));
	snprintf(path, sizeof(path), "%s/file", scene->dir);
	assert_ok(wf_saved_export_safetensors(saved, path, false));
	size_t count = read_bytes(path, bytes, sizeof(bytes));
	const uint8_t *end = bytes + count;
	(void)find(bytes, end, "\"emb.keys\":{\"dtype\":\"U64\",\"shape\":[5000]");
	(void)find(bytes, end, "\"emb.values\":{\"dtype\":\"F32\",\"shape\":[5000,3]");
	/* The last array: the values of the last key of the last partition. */
	uint64_t key = KEYS;
	uint32_t last = WF_PARTITION_COUNT - 1;
	while (wf_partition_of(--key) != last) {
		last -= key == 0;
		key = key == 0 ? KEYS : key;
	}
	float floats[DIM + STATE];
	struct wf_row_record row;
	row_of(key, floats, &row);
	assert_memory_equal(end - DIM * sizeof(float), floats, DIM * sizeof(float));
	assert_ok(wf_saved_export_safetensors(saved, path, true));
	count = read_bytes(path, bytes, sizeof(bytes));
	end = bytes + count;
	(void)find(bytes, end, "\"emb.state\":{\"dtype\":\"F32\",\"shape\":[5000,2]");
	(void)find(bytes, end, "\"emb.stamp\":{\"dtype\":\"U32\",\"shape\":[5000]");
	(void)find(bytes, end, "\"emb.click\":{\"dtype\":\"F32\",\"shape\":[5000]");
	wf_saved_close(saved);
}

/* The bytes of an entry, by its local header: after its name and the zip64 field. */
static const uint8_t *
entry_of(const uint8_t *bytes, const uint8_t *end, const char *name, uint64_t *entry_bytes)
{
	const uint8_t *at = find(bytes, end, name) - 30;

	assert_int_equal(wf_load_u32(at), 0x04034b50);
	assert_int_equal(wf_load_u16(at + 8), 0); /* stored */
	*entry_bytes = wf_load_u64(at + 30 + strlen(name) + 4);
	const uint8_t *data = at + 30 + strlen(name) + wf_load_u16(at + 28);
	assert_true(*entry_bytes <= (uint64_t)(end - data));
	assert_int_equal(wf_load_u32(at + 14), crc32_z(0, data, *entry_bytes));
	return data;
}

static void
npz_has_an_npy_file_for_each_array(void **state)
{
	struct scene *scene = *state;
	static uint8_t bytes[FILE_ROOM];
	struct wf_saved *saved = NULL;
	char path[WF_SAVED_PATH_BYTES];
	uint64_t entry_bytes = 0;

	save_both(scene);
	assert_ok(open_pass(scene, &saved));
	snprintf(path, sizeof(path), "%s/file.npz", scene->dir);
	assert_ok(wf_saved_export_npz(saved, path, false));
	size_t count = read_bytes(path, bytes, sizeof(bytes));
	const uint8_t *end = bytes + count;
	const uint8_t *npy = entry_of(bytes, end, "bias.npy", &entry_bytes);
	assert_int_equal(entry_bytes, 128 + BIAS_COUNT * sizeof(float));
	assert_memory_equal(npy, "\x93NUMPY\x01", 7);
	assert_int_equal(wf_load_u16(npy + 8), 118);
	assert_int_equal(npy[127], '\n');
	(void)find(npy, npy + 128, "'descr': '<f4', 'fortran_order': False, 'shape': (3, 1), }");
	assert_memory_equal(npy + 128, scene->model.bias[0], BIAS_COUNT * sizeof(float));
	npy = entry_of(bytes, end, "emb.keys.npy", &entry_bytes);
	(void)find(npy, npy + 128, "'<u8', 'fortran_order': False, 'shape': (5000,), }");
	assert_int_equal(entry_bytes, 128 + KEYS * sizeof(uint64_t));
	assert_int_equal(wf_load_u32(end - 22), 0x06054b50);
	/* bias, w, emb.keys, emb.values */
	assert_int_equal(wf_load_u64(end - 22 - 20 - 56 + 24), 4);
	wf_saved_close(saved);
}

static void
an_array_of_a_table_named_as_a_tensor_is_not_exported(void **state)
{
	struct scene *scene = *state;
	const struct wf_saved_table table = table_of("emb");
	struct wf_saved_tensor tensor = scene->model.tensor[1];
	const struct wf_saved_content content = {
		.tensor = &tensor, .tensor_count = 1, .table = &table, .table_count = 1};
	struct wf_saved *saved = NULL;
	char path[WF_SAVED_PATH_BYTES];

	tensor.name = "emb.keys";
	assert_ok(save(scene, &content));
	assert_ok(open_pass(scene, &saved));
	snprintf(path, sizeof(path), "%s/file", scene->dir);
	assert_refused(wf_saved_export_npz(saved, path, false), WEFT_DATA, "emb.keys");
	assert_refused(wf_saved_export_safetensors(saved, path, false), WEFT_DATA, "emb.keys");
	wf_saved_close(saved);
}

#define scene_test(name) cmocka_unit_test_setup_teardown(name, scene_open, scene_close)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		scene_test(every_row_comes_back_by_partition_and_key),
		scene_test(a_save_of_tables_only_opens),
		scene_test(a_table_of_other_settings_is_not_given),
		scene_test(any_byte_that_is_flipped_is_found),
		scene_test(a_file_that_is_cut_or_goes_on_is_refused),
		scene_test(a_file_of_another_save_is_refused),
		scene_test(the_writer_takes_no_row_that_the_reader_would_refuse),
		scene_test(heads_that_no_table_has_are_refused),
		scene_test(a_source_that_fails_leaves_nothing_behind),
		scene_test(without_memory_a_table_is_neither_saved_nor_opened),
		scene_test(safetensors_has_keys_and_values_of_tables),
		scene_test(npz_has_an_npy_file_for_each_array),
		scene_test(an_array_of_a_table_named_as_a_tensor_is_not_exported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
