/* SPDX-License-Identifier: Apache-2.0 */
/* Models of other programs: the contents of a file fill a model or a save; what does not follow its
 * format, or does not fit the model, is refused before a value is written, and nothing is left
 * allocated in any case. */
#include "tests/unit/saved/setup.h"

#include <errno.h>
#include <math.h>

#include "saved/import.h"
#include "tests/unit/wire/heap_env.h"
#include "wire/little.h"

#define ROOM 4096u

/* A file being put together. */
struct bytes {
	uint8_t at[ROOM];
	size_t count;
};

static void
add(struct bytes *bytes, const void *from, size_t count)
{
	assert_true(bytes->count + count <= sizeof(bytes->at));
	memcpy(bytes->at + bytes->count, from, count);
	bytes->count += count;
}

static const char *
write_file(const struct scene *scene, const char *name, const struct bytes *bytes)
{
	static char path[200];

	snprintf(path, sizeof(path), "%s/%s", scene->dir, name);
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes->at, 1, bytes->count, file), bytes->count);
	assert_int_equal(fclose(file), 0);
	return path;
}

/* Text and data of a safetensors file. */
static struct bytes
safetensors(const char *header, const void *data, size_t data_bytes)
{
	struct bytes out = {.count = 8};

	wf_store_u64(out.at, strlen(header));
	add(&out, header, strlen(header));
	add(&out, data, data_bytes);
	return out;
}

static struct bytes
parameter(uint32_t format, uint32_t value_bytes, uint64_t count, const void *values, size_t bytes)
{
	struct bytes out = {.count = 16};

	wf_store_u32(out.at, format);
	wf_store_u32(out.at + 4, value_bytes);
	wf_store_u64(out.at + 8, count);
	add(&out, values, bytes);
	return out;
}

static enum weft_status
open_import(const struct scene *scene, const char *path, struct wf_import **out)
{
	return wf_import_open(scene->env, wf_saved_posix(), path, WF_IMPORT_AUTO, out);
}

static const float w_values[6] = {1, 2, 3, 4, 5, 6};
static const char two_arrays[] =
	"{\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
	"\"b\":{\"shape\":[2],\"data_offsets\":[24,32],\"dtype\":\"F32\"}}";

/* w [2, 3] and b [2]. */
static struct wf_import *
open_two(const struct scene *scene)
{
	static const float data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	struct bytes bytes = safetensors(two_arrays, data, sizeof(data));
	struct wf_import *import = NULL;

	assert_ok(open_import(scene, write_file(scene, "two", &bytes), &import));
	assert_int_equal(wf_import_format_of(import), WF_IMPORT_SAFETENSORS);
	return import;
}

static void
arrays_fill_tensors_of_their_names_and_shapes(void **state)
{
	struct wf_import *import = open_two(*state);
	struct wf_import_load load;
	float w[6] = {0}, b[2] = {0};
	const struct wf_saved_tensor tensor[] = {
		{.name = "w", .rows = 2, .cols = 3, .value = w},
		{.name = "b", .rows = 1, .cols = 2, .value = b}, /* a row, there a column */
	};

	assert_ok(wf_import_load(import, tensor, 2, WF_IMPORT_MISSING_FAIL, &load));
	assert_memory_equal(w, w_values, sizeof(w));
	assert_true(b[0] == 7 && b[1] == 8);
	assert_int_equal(load.missing_count, 0);
	assert_int_equal(load.unused_count, 0);
	assert_ok(wf_import_load(import, tensor + 1, 1, WF_IMPORT_MISSING_FAIL, &load));
	assert_int_equal(load.unused_count, 1);
	assert_string_equal(load.unused, "w");
	wf_import_close(import);
}

static void
what_is_missing_ends_the_load_or_stays_or_becomes_zero(void **state)
{
	struct wf_import *import = open_two(*state);
	struct wf_import_load load;
	float w[6] = {0}, more[3] = {-1, -2, -3};
	const struct wf_saved_tensor tensor[] = {
		{.name = "w", .rows = 2, .cols = 3, .value = w},
		{.name = "more", .rows = 3, .cols = 1, .value = more},
	};

	assert_refused(wf_import_load(import, tensor, 2, WF_IMPORT_MISSING_FAIL, &load), WEFT_DATA,
		       "tensor more of this model is missing");
	assert_true(w[0] == 0);
	assert_ok(wf_import_load(import, tensor, 2, WF_IMPORT_MISSING_RAND, &load));
	assert_true(w[5] == 6 && more[0] == -1 && more[2] == -3);
	assert_int_equal(load.missing_count, 1);
	assert_string_equal(load.missing, "more");
	assert_ok(wf_import_load(import, tensor, 2, WF_IMPORT_MISSING_ZERO, &load));
	assert_true(w[5] == 6 && more[0] == 0 && more[1] == 0 && more[2] == 0);
	wf_import_close(import);
}

static void
another_shape_is_refused_with_both_before_a_value_is_written(void **state)
{
	struct wf_import *import = open_two(*state);
	struct wf_import_load load;
	float w[6] = {0}, b[3] = {0};
	struct wf_saved_tensor tensor[] = {
		{.name = "w", .rows = 2, .cols = 3, .value = w},
		{.name = "b", .rows = 3, .cols = 1, .value = b},
	};

	for (unsigned m = WF_IMPORT_MISSING_FAIL; m <= WF_IMPORT_MISSING_ZERO; m++) {
		assert_refused(wf_import_load(import, tensor, 2, (enum wf_import_missing)m, &load),
			       WEFT_DATA, "tensor b is 2 x 1; this model has it 3 x 1");
		assert_true(w[0] == 0 && b[0] == 0);
	}
	tensor[0].rows = 3;
	tensor[0].cols = 2;
	assert_refused(wf_import_load(import, tensor, 2, WF_IMPORT_MISSING_ZERO, &load), WEFT_DATA,
		       "tensor w is 2 x 3; this model has it 3 x 2");
	wf_import_close(import);
}

static void
floats_of_16_and_64_bits_become_floats_of_32(void **state)
{
	struct scene *scene = *state;
	const double doubles[] = {0.1, -1e-50, 1e300};
	const uint16_t halves[] = {0x3c00, 0xc000, 0x0001, 0x8000, 0x7c00, 0x7bff};
	const uint16_t brains[] = {0x3f80, 0xc040};
	struct wf_import *import = NULL;
	struct bytes bytes =
		safetensors("{\"d\":{\"dtype\":\"F64\",\"shape\":[3],\"data_offsets\":[0,24]},"
			    "\"h\":{\"dtype\":\"F16\",\"shape\":[3,2],\"data_offsets\":[24,36]},"
			    "\"s\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[36,40]}}",
			    doubles, sizeof(doubles));
	float value[6];

	add(&bytes, halves, sizeof(halves));
	add(&bytes, brains, sizeof(brains));
	assert_ok(open_import(scene, write_file(scene, "types", &bytes), &import));
	assert_ok(wf_import_read(import, 0, value));
	assert_true(value[0] == 0.1f && value[1] == 0.0f && isinf(value[2]));
	assert_ok(wf_import_read(import, 1, value));
	assert_true(value[0] == 1 && value[1] == -2 && value[2] == 0x1p-24f && value[5] == 65504);
	assert_true(value[3] == 0 && signbit(value[3]) && isinf(value[4]));
	assert_ok(wf_import_read(import, 2, value));
	assert_true(value[0] == 1 && value[1] == -3);
	wf_import_close(import);
}

static void
headers_of_safetensors_that_lie_are_refused(void **state)
{
	static const struct {
		const char *header, *why;
	} cases[] = {
		{"{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", "not within"},
		{"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", "not within"},
		{"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
		 "is truncated"},
		{"{\"v\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
		 "\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
		 "ends at 4"},
		{"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
		 "is at byte 4"},
		{"{\"w\":{\"dtype\":\"F32\",\"shape\":[2]}}", "header"},
		{"{\"w\":{\"dtype\":\"F32\",\"shape\":[02],\"data_offsets\":[0,8]}}", "header"},
		{"{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},}", "header"},
		{"{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}", "header"},
		{"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
		 "\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
		 "w occurs twice"},
		{"{}", "is truncated"},
	};
	struct scene *scene = *state;
	struct wf_import *import = NULL;
	const float data[2] = {1, 2};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bytes bytes = safetensors(cases[i].header, data, sizeof(data));
		assert_refused(open_import(scene, write_file(scene, "lie", &bytes), &import),
			       WEFT_DATA, cases[i].why);
	}
}

static void
arrays_that_cannot_be_a_tensor_are_listed_and_refused_when_wanted(void **state)
{
	static const struct {
		const char *header, *why;
	} cases[] = {
		{"{\"w\":{\"dtype\":\"F8_E5M2\",\"shape\":[8],\"data_offsets\":[0,8]}}",
		 "is not an array of"},
		{"{\"w\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}",
		 "does not have as many"},
		{"{\"w\":{\"dtype\":\"F32\",\"shape\":[0,2],\"data_offsets\":[0,8]}}",
		 "does not have"},
		{"{\"w\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,4],"
		 "\"data_offsets\":[0,8]}}",
		 "has more values than"},
		{"{\"w\":{\"dtype\":\"F32\",\"shape\":[18446744073709551615,2],"
		 "\"data_offsets\":[0,8]}}",
		 "has more values than"},
	};
	struct scene *scene = *state;
	const struct wf_saved_place place = place_of(scene, wf_saved_posix());
	const struct wf_import_save how = {.version = "0.1.0"};
	struct wf_import *import = NULL;
	struct wf_import_load load;
	struct wf_import_saved saved;
	const float data[2] = {1, 2};
	float w[2] = {0};
	const struct wf_saved_tensor tensor = {.name = "w", .rows = 2, .cols = 1, .value = w};
	const struct wf_saved_tensor other = {.name = "o", .rows = 2, .cols = 1, .value = w};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bytes bytes = safetensors(cases[i].header, data, sizeof(data));
		assert_ok(open_import(scene, write_file(scene, "odd", &bytes), &import));
		assert_refused(wf_import_load(import, &tensor, 1, WF_IMPORT_MISSING_ZERO, &load),
			       WEFT_DATA, cases[i].why);
		assert_ok(wf_import_load(import, &other, 1, WF_IMPORT_MISSING_ZERO, &load));
		assert_refused(wf_import_save(import, &place, &how, &saved), WEFT_DATA,
			       cases[i].why);
		wf_import_close(import);
	}
}

/* Which of two is first in the file decides nothing. */
static void
a_name_that_is_there_twice_is_refused_in_either_order(void **state)
{
	/* The second name is shown as the first is written. */
	static const char *const names[][2] = {{"w", "w"}, {"w?", "w\xff"}};
	static const char form[] = "{\"%s\":{\"dtype\":\"%s\",\"shape\":[1],\"data_offsets\":[%s]},"
				   "\"%s\":{\"dtype\":\"%s\",\"shape\":[1],\"data_offsets\":[%s]}}";
	struct scene *scene = *state;
	struct wf_import *import = NULL;
	const float data[3] = {1, 2, 3};
	char header[256];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(header, sizeof(header), form, names[i][0], "F32", "0,4", names[i][1],
			 "I64", "4,12");
		struct bytes bytes = safetensors(header, data, sizeof(data));
		assert_refused(open_import(scene, write_file(scene, "twice", &bytes), &import),
			       WEFT_DATA, "occurs twice");
		snprintf(header, sizeof(header), form, names[i][1], "I64", "0,8", names[i][0],
			 "F32", "8,12");
		bytes = safetensors(header, data, sizeof(data));
		assert_refused(open_import(scene, write_file(scene, "twice", &bytes), &import),
			       WEFT_DATA, "occurs twice");
	}
	/* Two that are shown alike are listed, and are nobody's. */
	snprintf(header, sizeof(header), form, "w\xff\xff", "F32", "0,4", "w\xc3\x28", "F32",
		 "4,8");
	struct bytes bytes = safetensors(header, data, 2 * sizeof(data[0]));
	assert_ok(open_import(scene, write_file(scene, "twice", &bytes), &import));
	assert_int_equal(wf_import_count(import), 2);
	assert_non_null(wf_import_at(import, 0)->objection);
	assert_non_null(wf_import_at(import, 1)->objection);
	wf_import_close(import);
}

static void
a_path_that_is_empty_or_too_long_is_refused(void **state)
{
	struct scene *scene = *state;
	struct wf_import *import = NULL;
	char path[8001];

	memset(path, '/', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_refused(open_import(scene, path, &import), WEFT_INVALID, "must be a path");
	path[WF_SAVED_PATH_BYTES] = '\0';
	assert_refused(open_import(scene, path, &import), WEFT_INVALID, "must be a path");
	assert_refused(open_import(scene, "", &import), WEFT_INVALID, "must be a path");
}

static void
parameter_files_have_values_and_no_shape(void **state)
{
	struct scene *scene = *state;
	struct bytes bytes = parameter(0, 4, 6, w_values, sizeof(w_values));
	struct wf_import *import = NULL;
	struct wf_import_load load;
	float w[6] = {0};
	struct wf_saved_tensor tensor = {.name = "fc", .rows = 3, .cols = 2, .value = w};

	assert_ok(open_import(scene, write_file(scene, "fc", &bytes), &import));
	assert_int_equal(wf_import_format_of(import), WF_IMPORT_PADDLE);
	assert_ok(wf_import_load(import, &tensor, 1, WF_IMPORT_MISSING_FAIL, &load));
	assert_memory_equal(w, w_values, sizeof(w));
	tensor.cols = 3;
	assert_refused(wf_import_load(import, &tensor, 1, WF_IMPORT_MISSING_FAIL, &load), WEFT_DATA,
		       "tensor fc has 6 values; this model has it 3 x 3");
	wf_import_close(import);
	const struct bytes bad[] = {
		parameter(1, 4, 6, w_values, sizeof(w_values)),
		parameter(0, 2, 6, w_values, sizeof(w_values)),
		parameter(0, 4, 7, w_values, sizeof(w_values)),
		parameter(0, 4, 5, w_values, sizeof(w_values)),
		parameter(0, 4, (uint64_t)1 << 62, w_values, sizeof(w_values)),
		parameter(0, 4, 0, w_values, 0),
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_ok(wf_import_open(scene->env, wf_saved_posix(),
					 write_file(scene, "fc", &bad[i]), WF_IMPORT_PADDLE,
					 &import));
		assert_int_equal(wf_import_read(import, 0, w), WEFT_DATA);
		wf_import_close(import);
	}
}

static void
an_import_becomes_a_pass_that_loads_and_keeps_what_is_there(void **state)
{
	struct scene *scene = *state;
	const struct wf_saved_place place = place_of(scene, wf_saved_posix());
	const struct wf_import_save how = {.version = "0.1.0", .pass = 7};
	struct wf_import *import = open_two(scene);
	struct wf_import_saved result;
	struct wf_saved *saved = NULL;
	char path[WF_SAVED_PATH_BYTES];
	float w[6], b[2];
	const struct wf_saved_tensor tensor[] = {
		{.name = "w", .rows = 2, .cols = 3, .value = w},
		{.name = "b", .rows = 2, .cols = 1, .value = b},
	};

	assert_ok(wf_import_save(import, &place, &how, &result));
	assert_int_equal(result.tensor_count, 2);
	assert_int_equal(result.value_count, 8);
	assert_ok(wf_saved_pass_path(scene->dir, 7, path));
	assert_ok(wf_saved_open(scene->env, wf_saved_posix(), path, &saved));
	assert_ok(wf_saved_load(saved, tensor, 2, false));
	assert_memory_equal(w, w_values, sizeof(w));
	assert_string_equal(wf_saved_about(saved)->settings, "imported from safetensors");
	assert_refused(wf_import_save(import, &place, &how, &result), WEFT_INVALID,
		       "exists already");
	wf_saved_close(saved);
	wf_import_close(import);
}

/* As a process leaves it that died while it replaced the pass. */
static void
an_import_does_not_take_the_name_of_a_pass_aside(void **state)
{
	struct scene *scene = *state;
	const struct wf_saved_place place = place_of(scene, wf_saved_posix());
	const struct wf_import_save how = {.version = "0.1.0", .pass = 0};
	struct wf_import *import = open_two(scene);
	struct wf_import_saved result;
	struct wf_saved_about about;
	char path[WF_SAVED_PATH_BYTES];
	char aside[WF_SAVED_PATH_BYTES];

	assert_ok(save_pass(scene, wf_saved_posix(), 0, 42));
	assert_ok(wf_saved_pass_path(scene->dir, 0, path));
	snprintf(aside, sizeof(aside), "%s/.pass-00000.old-%ld", scene->dir, (long)getpid());
	assert_int_equal(rename(path, aside), 0);
	assert_refused(wf_import_save(import, &place, &how, &result), WEFT_INVALID,
		       "exists already");
	assert_ok(load_pass(scene, 0, &about));
	assert_int_equal(about.step, 42);
	assert_true(model_equals(&scene->loaded, &scene->model));
	wf_import_close(import);
}

/* Every export of a pass is a model again, with the same bits. */
static void
exports_come_in_again(void **state)
{
	static enum weft_status (*const exports[])(const struct wf_saved *saved, const char *path,
						   bool with_state) = {
		wf_saved_export_npz,
		wf_saved_export_safetensors,
		wf_saved_export_tar,
		wf_saved_export_paddle,
	};
	struct scene *scene = *state;
	struct wf_saved *saved = NULL;
	char path[WF_SAVED_PATH_BYTES];

	assert_ok(save_pass(scene, wf_saved_posix(), 3, 42));
	assert_ok(wf_saved_pass_path(scene->dir, 3, path));
	assert_ok(wf_saved_open(scene->env, wf_saved_posix(), path, &saved));
	for (size_t i = 0; i < sizeof(exports) / sizeof(exports[0]); i++) {
		struct wf_import *import = NULL;
		struct wf_import_load load;
		model_init(&scene->loaded, 1000.0f);
		snprintf(path, sizeof(path), "%s/export_%zu", scene->dir, i);
		assert_ok(exports[i](saved, path, false));
		assert_ok(open_import(scene, path, &import));
		assert_int_equal(wf_import_count(import), 2);
		assert_ok(wf_import_load(import, scene->loaded.tensor, 2, WF_IMPORT_MISSING_FAIL,
					 &load));
		assert_memory_equal(scene->loaded.w[0], scene->model.w[0],
				    sizeof(scene->model.w[0]));
		assert_memory_equal(scene->loaded.bias[0], scene->model.bias[0],
				    sizeof(scene->model.bias[0]));
		wf_import_close(import);
	}
	wf_saved_close(saved);
}

/* What a folder of parameter files has beside them is passed over on the way in. */
static void
a_folder_for_the_original_has_no_tensor_that_would_be_passed_over(void **state)
{
	static const char *const names[] = {"done", "path.txt", "model.py", "trainer.conf"};
	struct scene *scene = *state;
	char path[WF_SAVED_PATH_BYTES];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct wf_saved *saved = NULL;
		scene->model.tensor[0].name = names[i];
		assert_ok(save_pass(scene, wf_saved_posix(), i, 42));
		assert_ok(wf_saved_pass_path(scene->dir, i, path));
		assert_ok(wf_saved_open(scene->env, wf_saved_posix(), path, &saved));
		snprintf(path, sizeof(path), "%s/folder", scene->dir);
		assert_refused(wf_saved_export_paddle(saved, path, false), WEFT_DATA, names[i]);
		assert_int_equal(access(path, F_OK), -1);
		wf_saved_close(saved);
	}
	assert_int_equal(names_in(scene->dir, true), 0);
}

static ssize_t
failing_pread(int fd, void *bytes, size_t count, off_t at)
{
	(void)fd;
	(void)bytes;
	(void)count;
	(void)at;
	errno = EIO;
	return -1;
}

static void
a_disk_that_fails_is_told_apart_from_damage(void **state)
{
	struct scene *scene = *state;
	struct bytes bytes = safetensors(two_arrays, w_values, sizeof(w_values));
	struct wf_saved_calls calls = *wf_saved_posix();
	struct wf_import *import = NULL;

	calls.pread = failing_pread;
	assert_refused(wf_import_open(scene->env, &calls, write_file(scene, "two", &bytes),
				      WF_IMPORT_AUTO, &import),
		       WEFT_IO, "cannot be read");
}

static void
without_memory_nothing_is_kept(void **state)
{
	struct scene *scene = *state;
	struct wf_saved *saved = NULL;
	char path[WF_SAVED_PATH_BYTES];
	struct heap_env heap = heap_env_make();
	enum weft_status st = WEFT_NOMEM;

	assert_ok(save_pass(scene, wf_saved_posix(), 3, 42));
	assert_ok(wf_saved_pass_path(scene->dir, 3, path));
	assert_ok(wf_saved_open(scene->env, wf_saved_posix(), path, &saved));
	snprintf(path, sizeof(path), "%s/out.npz", scene->dir);
	assert_ok(wf_saved_export_npz(saved, path, false));
	wf_saved_close(saved);
	unsigned fail_at = 0;
	while (st != WEFT_OK) {
		struct wf_import *import = NULL;
		heap.calls = 0;
		heap.fail_at = ++fail_at;
		st = wf_import_open(&heap.env, wf_saved_posix(), path, WF_IMPORT_AUTO, &import);
		assert_true(st == WEFT_OK || st == WEFT_NOMEM);
		if (st == WEFT_OK) {
			wf_import_close(import);
		}
		assert_int_equal(heap.out_bytes, 0);
	}
	assert_true(fail_at > 3); /* the import, the zip's end, the list */
}

#define scene_test(name) cmocka_unit_test_setup_teardown(name, scene_open, scene_close)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		scene_test(arrays_fill_tensors_of_their_names_and_shapes),
		scene_test(what_is_missing_ends_the_load_or_stays_or_becomes_zero),
		scene_test(another_shape_is_refused_with_both_before_a_value_is_written),
		scene_test(floats_of_16_and_64_bits_become_floats_of_32),
		scene_test(headers_of_safetensors_that_lie_are_refused),
		scene_test(arrays_that_cannot_be_a_tensor_are_listed_and_refused_when_wanted),
		scene_test(a_name_that_is_there_twice_is_refused_in_either_order),
		scene_test(a_path_that_is_empty_or_too_long_is_refused),
		scene_test(parameter_files_have_values_and_no_shape),
		scene_test(an_import_becomes_a_pass_that_loads_and_keeps_what_is_there),
		scene_test(an_import_does_not_take_the_name_of_a_pass_aside),
		scene_test(exports_come_in_again),
		scene_test(a_folder_for_the_original_has_no_tensor_that_would_be_passed_over),
		scene_test(a_disk_that_fails_is_told_apart_from_damage),
		scene_test(without_memory_nothing_is_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
