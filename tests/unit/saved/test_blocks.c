/* SPDX-License-Identifier: Apache-2.0 */
/* A snapshot is read as a pass is: the same bits in exports and in a model's arrays, however its
 * blocks lie. A snapshot of which something is missing, there twice, or in the wrong place is
 * refused before anything of it is used, with file and block. */
#include "tests/unit/saved/faulty.h"

#include "saved/blocks.h"
#include "saved/epochs.h"
#include "saved/import.h"
#include "saved/internal.h"
#include "saved/snapshot.h"
#include "tests/unit/wire/heap_env.h"
#include "wire/little.h"
#include "wire/partition.h"

#define LANES 2u /* of each service */
#define SLICE 3000u
#define DIM 3u
#define STATE 2u
#define KEYS 2000u
#define ROWS_IN_BLOCK 70u
#define COUNTERS 4u
#define STEP 9u
#define BIAS 0u /* the tensors' numbers */
#define W 1u

static const struct wf_snapshot_id snap = {.epoch = 1, .step = STEP};
#define SNAP "epoch-00001-step-0000000009"

static const struct wf_rows_head rows_head = {
	.shape = {.dim = DIM, .state_floats = STATE, .has_score = true},
	.counter_count = COUNTERS,
	.step = STEP,
};

/* A block on its way to a part. */
struct made {
	enum wf_service service;
	uint32_t lane;
	struct wf_part_block block;
	uint8_t *payload;
};

/* What a test changes before it is written. */
struct draft {
	struct made made[2 * WF_PARTITION_COUNT];
	size_t count;
	uint64_t rows; /* as the manifest has them */
};

static struct made *
add(struct draft *draft, enum wf_service service, uint32_t lane, struct wf_part_block block)
{
	struct made *made = &draft->made[draft->count++];

	assert_true(draft->count <= WF_ARRAY_COUNT(draft->made));
	*made = (struct made){service, lane, block, calloc(1, block.bytes + 1)};
	assert_non_null(made->payload);
	return made;
}

static void
add_slice(struct draft *draft, uint32_t item, float *const array[2], uint64_t first, uint64_t count)
{
	const struct wf_part_block block = {
		.kind = WF_PART_SLICE,
		.item = item,
		.first = first,
		.count = count,
		.bytes = 2 * count * sizeof(float),
	};
	struct made *made =
		add(draft, WF_SERVICE_DENSE, (uint32_t)(first / SLICE + item) % LANES, block);

	for (unsigned a = 0; a < 2; a++) {
		for (uint64_t i = 0; i < count; i++) {
			uint32_t bits = 0;
			memcpy(&bits, &array[a][first + i], sizeof(bits));
			wf_store_u32(made->payload + 4 * (a * count + i), bits);
		}
	}
}

/* Key n of the table: floats, stamps and scores follow from it. */
static void
row_of(uint64_t key, float *floats, struct wf_row_record *out)
{
	for (unsigned i = 0; i < DIM + STATE; i++) {
		floats[i] = (float)key * 0.5f + (float)i;
	}
	*out = (struct wf_row_record){
		.key = key * 1000003,
		.stamp = (uint32_t)(key % STEP),
		.born = (uint32_t)(key % 5),
		.show = (float)key,
		.click = 1.0f,
		.floats = floats,
	};
}

static void
put_row(struct made *made, uint64_t place, uint64_t key)
{
	float floats[DIM + STATE];
	struct wf_row_record row;

	row_of(key, floats, &row);
	wf_row_record_put(&rows_head.shape, &row,
			  made->payload + place * wf_row_record_bytes(&rows_head.shape));
}

static void
describe(struct draft *draft, uint32_t lane)
{
	const struct wf_part_table about = {.row = rows_head.shape, .counter_count = COUNTERS};
	const struct wf_part_block block = {.kind = WF_PART_LANE, .bytes = WF_PART_TABLE_BYTES};

	wf_part_table_put(&about, add(draft, WF_SERVICE_SPARSE, lane, block)->payload);
}

static void
add_rows(struct draft *draft)
{
	const size_t bytes = wf_row_record_bytes(&rows_head.shape);

	for (uint64_t first = 0; first < KEYS; first += ROWS_IN_BLOCK) {
		const uint64_t left = KEYS - first;
		const uint64_t count = left < ROWS_IN_BLOCK ? left : ROWS_IN_BLOCK;
		struct made *made =
			add(draft, WF_SERVICE_SPARSE, (uint32_t)(first % LANES),
			    (struct wf_part_block){
				    .kind = WF_PART_ROWS, .count = count, .bytes = count * bytes});
		for (uint64_t i = 0; i < count; i++) {
			put_row(made, i, KEYS - 1 - first - i);
		}
	}
	draft->rows = KEYS;
}

static void
add_counters(struct draft *draft)
{
	for (uint32_t p = 0; p < WF_PARTITION_COUNT; p++) {
		struct made *made = add(draft, WF_SERVICE_SPARSE, wf_partition_lane(p, LANES),
					(struct wf_part_block){.kind = WF_PART_COUNTERS,
							       .first = p,
							       .count = COUNTERS,
							       .bytes = 2ull * COUNTERS});
		for (unsigned i = 0; i < COUNTERS; i++) {
			wf_store_u16(made->payload + 2 * (size_t)i, (uint16_t)(p + i));
		}
	}
}

/* The scene's model and a table; the last slices first. */
static struct draft *
draft_of(const struct scene *scene)
{
	const struct model *model = &scene->model;
	float *const w[2] = {model->tensor[0].value, model->tensor[0].state[0]};
	float *const bias[2] = {model->tensor[1].value, model->tensor[1].state[0]};
	struct draft *draft = calloc(1, sizeof(*draft));

	assert_non_null(draft);
	for (uint64_t end = W_COUNT; end > 0;) {
		const uint64_t first = (end - 1) / SLICE * SLICE;
		add_slice(draft, W, w, first, end - first);
		end = first;
	}
	add_slice(draft, BIAS, bias, 0, BIAS_COUNT);
	add(draft, WF_SERVICE_DENSE, 0,
	    (struct wf_part_block){.kind = WF_PART_NUMBERS, .item = W, .bytes = 64});
	describe(draft, 0);
	describe(draft, 1);
	add_rows(draft);
	add_counters(draft);
	return draft;
}

static void
draft_free(struct draft *draft)
{
	for (size_t i = 0; i < draft->count; i++) {
		free(draft->made[i].payload);
	}
	free(draft);
}

static struct made *
find(struct draft *draft, enum wf_part_kind kind, size_t nth)
{
	size_t i = 0;

	while (draft->made[i].block.kind != kind || nth-- > 0) {
		i++;
		assert_true(i < draft->count);
	}
	return &draft->made[i];
}

static struct wf_part_sum
write_part(struct wf_saved_folder *folder, struct wf_snapshot_id id, const struct draft *draft,
	   uint32_t part)
{
	const enum wf_service service = part < LANES ? WF_SERVICE_DENSE : WF_SERVICE_SPARSE;
	const struct wf_part_head head = {.service = (uint8_t)service,
					  .lane = part % LANES,
					  .lane_count = LANES,
					  .epoch = id.epoch,
					  .step = id.step};
	static struct wf_snapshot_file file;
	struct wf_part_writer *writer = NULL;
	char leaf[WF_MANIFEST_PART_NAME_BYTES];
	struct wf_part_sum sum;

	wf_manifest_part_name(service, part % LANES, leaf);
	assert_ok(wf_snapshot_part_begin(folder, id, leaf, &file));
	assert_ok(wf_part_create(folder->env, &file.spot, &head, &writer));
	enum weft_status st = WEFT_OK;
	for (size_t i = 0; st == WEFT_OK && i < draft->count; i++) {
		const struct made *made = &draft->made[i];
		if (made->service == service && made->lane == part % LANES) {
			st = wf_part_put(writer, &made->block, made->payload);
		}
	}
	assert_ok(wf_part_finish(writer, st, &sum));
	assert_ok(wf_snapshot_part_end(&file, WEFT_OK));
	return sum;
}

static void
write_snapshot_as(struct scene *scene, struct wf_snapshot_id id, const struct draft *draft)
{
	const struct wf_saved_place place = place_of(scene, sound());
	struct wf_manifest_tensor tensor[] = {
		{.name = "bias", .rows = 1, .cols = BIAS_COUNT, .state_count = 1},
		{.name = "w", .rows = 1, .cols = W_COUNT, .state_count = 1},
	};
	struct wf_manifest_table table = {
		.name = "emb", .optimizer = "adagrad", .dim = DIM, .rows = draft->rows};
	struct wf_manifest_part part[2 * LANES];
	const struct wf_manifest manifest = {.about = about_pass(1, id.step),
					     .parts = {.epoch = id.epoch,
						       .dense_lanes = LANES,
						       .sparse_lanes = LANES,
						       .pserver_count = 1,
						       .trainer_count = 1,
						       .part_count = 2 * LANES,
						       .part = part},
					     .tensor_count = 2,
					     .tensor = tensor,
					     .table_count = 1,
					     .table = &table};
	struct wf_saved_folder *folder = NULL;

	assert_ok(wf_snapshot_folder_open(&place, &folder));
	for (uint32_t i = 0; i < 2 * LANES; i++) {
		const struct wf_part_sum sum = write_part(folder, id, draft, i);
		wf_manifest_part_at(&manifest.parts, i, &part[i]);
		part[i].bytes = sum.bytes;
		part[i].crc = sum.crc;
	}
	assert_ok(wf_snapshot_manifest_write(folder, id, &manifest));
	wf_saved_folder_close(folder);
}

static void
write_snapshot(struct scene *scene, struct wf_snapshot_id id)
{
	struct draft *draft = draft_of(scene);

	write_snapshot_as(scene, id, draft);
	draft_free(draft);
}

static enum weft_status
open_snapshot(struct scene *scene, struct wf_saved **out)
{
	return wf_saved_open_any(&scene->failing.env, sound(), at(scene, SNAP, ""), out);
}

static enum weft_status
fill(const struct wf_saved_table *table, struct wf_rows_writer *to)
{
	static uint64_t keys[KEYS];
	float floats[DIM + STATE];
	struct wf_row_record row, other;
	enum weft_status st = WEFT_OK;

	(void)table;
	for (uint32_t p = 0; st == WEFT_OK && p < WF_PARTITION_COUNT; p++) {
		const uint16_t counter[COUNTERS] = {(uint16_t)p, (uint16_t)(p + 1),
						    (uint16_t)(p + 2), (uint16_t)(p + 3)};
		size_t count = 0;
		for (uint64_t key = 0; key < KEYS; key++) { /* the rows' keys ascend with it */
			row_of(key, floats, &other);
			keys[count] = key;
			count += wf_partition_of(other.key) == p;
		}
		st = wf_rows_begin(to, count, counter);
		for (size_t i = 0; st == WEFT_OK && i < count; i++) {
			row_of(keys[i], floats, &row);
			st = wf_rows_put(to, &row);
		}
	}
	return st;
}

static void
save_same_pass(struct scene *scene)
{
	struct wf_saved_tensor tensor[2];
	const struct wf_saved_table table = {
		.name = "emb", .optimizer = "adagrad", .head = rows_head, .fill = fill};
	const struct wf_saved_content content = {
		.tensor = tensor, .tensor_count = 2, .table = &table, .table_count = 1};
	const struct wf_saved_about about = about_pass(1, STEP);

	memcpy(tensor, scene->model.tensor, sizeof(tensor));
	tensor[0].rows = W_COUNT;
	tensor[0].cols = 1;
	tensor[0].shape = "20000";
	tensor[1].shape = "3";
	assert_ok(save_content(scene, wf_saved_posix(), &about, &content));
}

static void
assert_same_files(const char *a, const char *b)
{
	FILE *left = fopen(a, "re");
	FILE *right = fopen(b, "re");
	size_t bytes = 0;
	int byte = 0;

	assert_non_null(left);
	assert_non_null(right);
	do {
		byte = fgetc(left);
		if (byte != fgetc(right)) {
			fail_msg("%s and %s differ at byte %zu", a, b, bytes);
		}
		bytes++;
	} while (byte != EOF);
	assert_true(bytes > W_COUNT * sizeof(float));
	assert_int_equal(fclose(left), 0);
	assert_int_equal(fclose(right), 0);
}

static void
a_snapshot_is_exported_to_the_bytes_of_a_pass_that_has_the_same(void **state)
{
	struct scene *scene = *state;
	struct wf_saved *saved = NULL;
	struct wf_saved *pass = NULL;
	struct wf_snapshot_id id;

	write_snapshot(scene, snap);
	save_same_pass(scene);
	assert_ok(open_snapshot(scene, &saved));
	assert_ok(wf_saved_open_any(&scene->failing.env, sound(), at(scene, "pass-00001", ""),
				    &pass));
	assert_true(wf_saved_snapshot(saved, &id) && id.epoch == 1 && id.step == STEP);
	assert_false(wf_saved_snapshot(pass, &id));
	for (unsigned with_state = 0; with_state < 2; with_state++) {
		assert_ok(wf_saved_export_npz(saved, at(scene, "a", ""), with_state));
		assert_ok(wf_saved_export_npz(pass, at(scene, "b", ""), with_state));
		assert_same_files(at(scene, "a", ""), at(scene, "b", ""));
		assert_ok(wf_saved_export_safetensors(saved, at(scene, "a", ""), with_state));
		assert_ok(wf_saved_export_safetensors(pass, at(scene, "b", ""), with_state));
		assert_same_files(at(scene, "a", ""), at(scene, "b", ""));
	}
	wf_saved_close(pass);
	wf_saved_close(saved);
}

static void
a_snapshot_fills_a_model_of_any_shape(void **state)
{
	struct scene *scene = *state;
	struct wf_import_load load;
	struct wf_import *import = NULL;
	struct wf_saved *saved = NULL;

	write_snapshot(scene, snap);
	assert_ok(open_snapshot(scene, &saved));
	model_init(&scene->loaded, 0.0f);
	assert_refused(wf_saved_load(saved, scene->loaded.tensor, 1, true), WEFT_DATA,
		       "has 2 tensors; this model has 1");
	assert_ok(wf_saved_load(saved, scene->loaded.tensor, 2, true));
	assert_true(model_equals(&scene->model, &scene->loaded));
	wf_saved_close(saved);

	model_init(&scene->loaded, 0.0f);
	assert_ok(wf_import_open(&scene->failing.env, sound(), at(scene, SNAP, ""), WF_IMPORT_AUTO,
				 &import));
	assert_int_equal(wf_import_at(import, W)->cols, 0);
	assert_ok(wf_import_load(import, scene->loaded.tensor, 2, WF_IMPORT_MISSING_FAIL, &load));
	assert_memory_equal(scene->loaded.w[0], scene->model.w[0], sizeof(scene->model.w[0]));
	scene->loaded.tensor[0].rows = 3;
	assert_refused(
		wf_import_load(import, scene->loaded.tensor, 2, WF_IMPORT_MISSING_FAIL, &load),
		WEFT_DATA, "tensor w has 20000 values");
	wf_import_close(import);
	assert_refused(
		wf_import_open(&scene->failing.env, sound(), scene->dir, WF_IMPORT_AUTO, &import),
		WEFT_DATA, "is a folder of snapshots; name one of them, such as");
}

static struct wf_rows_sum
sum_of(const struct wf_saved *saved, uint64_t window_bytes)
{
	const struct wf_block_walk walk = {saved->env, saved->calls, saved->path, &saved->manifest};
	struct wf_rows_reader *rows = NULL;

	assert_ok(wf_blocks_open_rows(&walk, &saved->blocks, 0, window_bytes, &rows));
	assert_ok(wf_rows_read_all(rows));
	const struct wf_rows_sum sum = wf_rows_read_sum(rows);
	wf_rows_close(rows);
	return sum;
}

static void
rows_do_not_depend_on_the_window(void **state)
{
	static const uint64_t window[] = {0, 1, 500, 4000, 50000};
	struct scene *scene = *state;
	struct wf_saved *saved = NULL;

	write_snapshot(scene, snap);
	assert_ok(open_snapshot(scene, &saved));
	const struct wf_rows_sum whole = sum_of(saved, WF_BLOCKS_WINDOW_BYTES);
	assert_int_equal(whole.row_count, KEYS);
	for (size_t i = 0; i < WF_ARRAY_COUNT(window); i++) {
		const struct wf_rows_sum sum = sum_of(saved, window[i]);
		assert_int_equal(sum.row_count, whole.row_count);
		assert_int_equal(sum.crc, whole.crc);
	}
	wf_saved_close(saved);
}

static void
leave_out_a_slice(struct draft *draft)
{
	find(draft, WF_PART_SLICE, 2)->lane = LANES;
}

static void
put_a_slice_twice(struct draft *draft)
{
	struct made *from = find(draft, WF_PART_SLICE, 2);
	struct made *to = add(draft, WF_SERVICE_DENSE, 0, from->block);

	memcpy(to->payload, from->payload, from->block.bytes);
}

static void
put_a_slice_over_another(struct draft *draft)
{
	find(draft, WF_PART_SLICE, 2)->block.first = SLICE;
}

static void
put_a_slice_behind_the_end(struct draft *draft)
{
	find(draft, WF_PART_SLICE, 2)->block.first = W_COUNT - 1;
}

static void
give_a_slice_to_a_tensor_that_is_not(struct draft *draft)
{
	find(draft, WF_PART_SLICE, 2)->block.item = 2;
}

static void
count_fewer_elements(struct draft *draft)
{
	find(draft, WF_PART_SLICE, 2)->block.count--;
}

static void
number_a_tensor_that_is_not(struct draft *draft)
{
	find(draft, WF_PART_NUMBERS, 0)->block.item = 2;
}

static void
put_rows_into_a_dense_part(struct draft *draft)
{
	find(draft, WF_PART_ROWS, 0)->service = WF_SERVICE_DENSE;
}

static void
put_a_slice_into_a_sparse_part(struct draft *draft)
{
	add(draft, WF_SERVICE_SPARSE, 0, find(draft, WF_PART_SLICE, 7)->block); /* the bias */
}

static void
describe_again(struct draft *draft)
{
	describe(draft, 0);
}

static void
describe_later(struct draft *draft)
{
	find(draft, WF_PART_LANE, 0)->lane = LANES;
	describe_again(draft);
}

static void
describe_in_another_way(struct draft *draft)
{
	wf_store_u32(find(draft, WF_PART_LANE, 1)->payload + 20, COUNTERS + 1);
}

static void
describe_another_table(struct draft *draft)
{
	wf_store_u32(find(draft, WF_PART_LANE, 0)->payload + 8, DIM + 1);
}

static void
describe_what_cannot_be(struct draft *draft)
{
	wf_store_u32(find(draft, WF_PART_LANE, 0)->payload + 12, UINT32_MAX);
}

static void
describe_a_table_that_is_not(struct draft *draft)
{
	find(draft, WF_PART_LANE, 0)->block.item = 1;
}

static void
put_a_row_twice(struct draft *draft)
{
	put_row(find(draft, WF_PART_ROWS, 3), 5, 7);
}

static void
put_a_row_of_the_future(struct draft *draft)
{
	wf_store_u32(find(draft, WF_PART_ROWS, 3)->payload + 8, STEP + 1);
}

static void
count_more_rows(struct draft *draft)
{
	find(draft, WF_PART_ROWS, 3)->block.count++;
}

static void
announce_more_rows(struct draft *draft)
{
	draft->rows++;
}

static void
leave_out_counters(struct draft *draft)
{
	find(draft, WF_PART_COUNTERS, 9)->lane = LANES;
}

static void
put_counters_twice(struct draft *draft)
{
	find(draft, WF_PART_COUNTERS, 9)->block.first = 8;
}

static void
put_other_counters(struct draft *draft)
{
	find(draft, WF_PART_COUNTERS, 9)->block.count--;
}

static void
what_does_not_fit_together_is_refused(void **state)
{
	static const struct {
		void (*change)(struct draft *draft);
		const char *why;
	} cases[] = {
		{leave_out_a_slice, "tensor w: no block goes on at element 12000 of 20000"},
		{put_a_slice_twice, "tensor w: no block goes on at element 15000 of 20000"},
		{put_a_slice_over_another, "tensor w: no block goes on at element 6000 of 20000"},
		{put_a_slice_behind_the_end, "has elements that its tensor does not have"},
		{give_a_slice_to_a_tensor_that_is_not, "is of a tensor that the manifest does"},
		{count_fewer_elements, "does not have the bytes of its elements"},
		{number_a_tensor_that_is_not, "is of a tensor that the manifest does not have"},
		{put_rows_into_a_dense_part, "is of a kind that a dense part does not have"},
		{put_a_slice_into_a_sparse_part, "is of a kind that a sparse part does not have"},
		{describe_later, "sparse-0: block 0: comes before the one that describes"},
		{describe_again, "describes its table at another length, or again"},
		{describe_in_another_way, "sparse-1: block 0: describes its table in another"},
		{describe_another_table, "sparse-0: block 0: describes another table"},
		{describe_what_cannot_be, "sparse-0: block 0: describes a table that cannot be"},
		{describe_a_table_that_is_not, "is of a table that the manifest does not have"},
		{put_a_row_twice, "the row of key 7000021 is in two blocks"},
		{put_a_row_of_the_future, "is of a step that was not made yet"},
		{count_more_rows, "does not have the bytes of its rows"},
		{announce_more_rows, "table emb: the parts have 2000 rows and counters of 1024"},
		{leave_out_counters, "table emb: the parts have 2000 rows and counters of 9 part"},
		{put_counters_twice, "table emb: the parts have 2000 rows and counters of 9 part"},
		{put_other_counters, "has other counters than its table"},
	};
	struct scene *scene = *state;
	struct wf_saved *saved = NULL;

	for (size_t i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		struct draft *draft = draft_of(scene);
		cases[i].change(draft);
		write_snapshot_as(scene, snap, draft);
		draft_free(draft);
		assert_refused(open_snapshot(scene, &saved), WEFT_DATA, cases[i].why);
		assert_non_null(strstr(weft_last_error(), SNAP));
		remove_tree(at(scene, SNAP, ""), 2);
	}
}

static void
flip(const char *path, off_t place)
{
	const int fd = open(path, O_RDWR | O_CLOEXEC);
	const off_t from = place < 0 ? lseek(fd, 0, SEEK_END) + place : place;
	uint8_t byte = 0;

	assert_int_equal(pread(fd, &byte, 1, from), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, from), 1);
	assert_int_equal(close(fd), 0);
}

static void
damage_is_refused_with_file_and_block(void **state)
{
	struct scene *scene = *state;
	struct wf_saved *saved = NULL;

	write_snapshot(scene, snap);
	flip(at(scene, SNAP, "dense-1"), 64 + 48 + 100);
	assert_refused(open_snapshot(scene, &saved), WEFT_DATA,
		       SNAP "/dense-1: block 0: checksum of its payload");
	flip(at(scene, SNAP, "dense-1"), 64 + 48 + 100);
	flip(at(scene, SNAP, "sparse-0"), -60);
	assert_refused(open_snapshot(scene, &saved), WEFT_DATA, SNAP "/sparse-0: block ");
	flip(at(scene, SNAP, "sparse-0"), -60);
	assert_ok(open_snapshot(scene, &saved));
	wf_saved_close(saved);
	assert_int_equal(unlink(at(scene, SNAP, "dense-0")), 0);
	assert_refused(open_snapshot(scene, &saved), WEFT_DATA, "dense-0: cannot be opened");
	assert_refused(wf_saved_open(&scene->failing.env, sound(), at(scene, SNAP, ""), &saved),
		       WEFT_DATA, "is a snapshot of pservers, not a pass");
}

/* Whole files again, which have the same places, but other values. */
static void
a_part_that_changes_after_it_was_opened_is_refused(void **state)
{
	struct scene *scene = *state;
	struct wf_saved *saved = NULL;
	struct wf_saved *other = NULL;
	struct draft *draft = draft_of(scene);

	write_snapshot_as(scene, snap, draft);
	assert_ok(open_snapshot(scene, &saved));
	find(draft, WF_PART_SLICE, 1)->payload[3] ^= 1;
	find(draft, WF_PART_ROWS, 1)->payload[30] ^= 1;
	remove_tree(at(scene, SNAP, ""), 2);
	write_snapshot_as(scene, snap, draft);
	draft_free(draft);
	assert_ok(open_snapshot(scene, &other));
	wf_saved_close(other);
	model_init(&scene->loaded, 0.0f);
	assert_refused(wf_saved_load(saved, scene->loaded.tensor, 2, true), WEFT_DATA,
		       "has changed since it was read first");
	assert_refused(wf_saved_export_npz(saved, at(scene, "a", ""), false), WEFT_DATA,
		       "has changed since it was read first");
	assert_int_equal(access(at(scene, "a", ""), F_OK), -1);
	wf_saved_close(saved);
}

static enum weft_status
open_and_load(struct wf_env *env, const struct wf_saved_calls *calls, struct scene *scene)
{
	struct wf_saved *saved = NULL;

	model_init(&scene->loaded, 0.0f);
	enum weft_status st = wf_saved_open_any(env, calls, at(scene, SNAP, ""), &saved);
	if (st == WEFT_OK) {
		st = wf_saved_load(saved, scene->loaded.tensor, 2, true);
	}
	wf_saved_close(saved);
	return st;
}

static void
each_failing_allocation_and_call_is_reported_and_leaks_nothing(void **state)
{
	struct scene *scene = *state;
	enum weft_status st = WEFT_NOMEM;
	unsigned failures = 0;

	write_snapshot(scene, snap);
	for (unsigned nth = 1; st == WEFT_NOMEM; nth += 1 + nth / 4) {
		struct heap_env heap = heap_env_make();
		heap.fail_at = nth;
		st = open_and_load(&heap.env, wf_saved_posix(), scene);
		assert_int_equal(heap.out_bytes, 0);
		failures += st == WEFT_NOMEM;
	}
	assert_ok(st);
	assert_true(model_equals(&scene->model, &scene->loaded));
	assert_true(failures > 8);
	unsigned nth = 0;
	do {
		nth += 1 + nth / 4;
		plan.fault = FAIL_ON;
		plan.error = EIO;
		plan.nth = nth;
		plan.count = 0;
		st = open_and_load(&scene->failing.env, &faulty, scene);
		assert_true(st == WEFT_OK || st == WEFT_IO);
	} while (st != WEFT_OK);
	plan.nth = 0;
	assert_true(nth > 30);
}

static void
record(struct wf_saved_folder *folder, struct wf_epochs *epochs, struct wf_epoch_record record)
{
	assert_ok(wf_epochs_add(folder->env, folder, &record, epochs));
}

static void
expect_newest(struct scene *scene, uint64_t epoch, uint64_t step)
{
	struct wf_saved *saved = NULL;
	struct wf_snapshot_id id = {0};

	assert_ok(wf_saved_open_newest(&scene->failing.env, sound(), at(scene, "", ""), &saved));
	assert_true(wf_saved_snapshot(saved, &id));
	assert_int_equal(id.epoch, epoch);
	assert_int_equal(id.step, step);
	wf_saved_close(saved);
}

static void
of_a_folder_it_is_the_newest_whole_one_of_the_history(void **state)
{
	struct scene *scene = *state;
	const struct wf_saved_place place = place_of(scene, sound());
	struct wf_saved_folder *folder = NULL;
	struct wf_epochs epochs = {0};
	struct wf_saved *saved = NULL;

	write_snapshot(scene, snap);
	write_snapshot(scene, (struct wf_snapshot_id){1, STEP + 3});
	assert_refused(wf_saved_open_newest(&scene->failing.env, sound(), scene->dir, &saved),
		       WEFT_DATA, "none of its 2 snapshots is of the history that remains");
	assert_ok(wf_snapshot_folder_open(&place, &folder));
	record(folder, &epochs, (struct wf_epoch_record){0});
	expect_newest(scene, 1, STEP + 3);
	record(folder, &epochs, (struct wf_epoch_record){.has_base = true, .base = snap});
	expect_newest(scene, 1, STEP);
	write_snapshot(scene, (struct wf_snapshot_id){2, STEP + 1});
	expect_newest(scene, 2, STEP + 1);
	give_name(scene, "epoch-00002-step-0000000010", "epoch-00002-step-0000000011");
	expect_newest(scene, 1, STEP);
	give_name(scene, "epoch-00002-step-0000000011", "epoch-00002-step-0000000010");
	flip(at(scene, "epoch-00002-step-0000000010", "dense-0"), 200);
	expect_newest(scene, 1, STEP);
	record(folder, &epochs, (struct wf_epoch_record){.is_end = true});
	expect_newest(scene, 1, STEP);
	flip(at(scene, SNAP, "dense-0"), 200);
	assert_refused(wf_saved_open_newest(&scene->failing.env, sound(), scene->dir, &saved),
		       WEFT_DATA, "none of the 2 snapshots of its history is whole");
	record(folder, &epochs, (struct wf_epoch_record){0});
	assert_refused(wf_saved_open_newest(&scene->failing.env, sound(), scene->dir, &saved),
		       WEFT_DATA, "none of its 3 snapshots is of the history that remains");
	wf_epochs_fini(folder->env, &epochs);
	wf_saved_folder_close(folder);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SCENE(a_snapshot_is_exported_to_the_bytes_of_a_pass_that_has_the_same),
		WITH_SCENE(a_snapshot_fills_a_model_of_any_shape),
		WITH_SCENE(rows_do_not_depend_on_the_window),
		WITH_SCENE(what_does_not_fit_together_is_refused),
		WITH_SCENE(damage_is_refused_with_file_and_block),
		WITH_SCENE(a_part_that_changes_after_it_was_opened_is_refused),
		WITH_SCENE(each_failing_allocation_and_call_is_reported_and_leaks_nothing),
		WITH_SCENE(of_a_folder_it_is_the_newest_whole_one_of_the_history),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
