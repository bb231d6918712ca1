/* SPDX-License-Identifier: Apache-2.0 */
/* Names of any bytes become names of files and come back; arrays that are no tensors are kept as
 * they are, from the file of another program to the next one. */
#include "tests/unit/saved/setup.h"

#include "base/assert.h"
#include "base/options.h"
#include "saved/import.h"
#include "saved/names.h"
#include "wire/little.h"

static void
names_are_escaped_and_come_back(void **state)
{
	static const struct {
		const char *name, *file;
	} cases[] = {
		{"fc1_w", "fc1_w"},
		{"___fc_layer_0__.w0", "___fc_layer_0__.w0"},
		{"conv 1/w", "conv%201%2Fw"},
		{"\xc3\xa4", "%C3%A4"},
		{".hidden", "%2Ehidden"},
		{"../w", "%2E.%2Fw"},
		{"w.state0", "w%2Estate0"},
		{"a.rows.b", "a%2Erows.b"},
		{"manifest", "%6Danifest"},
		{"manifests", "manifests"},
		{"50%", "50%"},
		{"%41", "%2541"},
		{"%4a", "%4a"},
		{"%%41", "%%2541"},
		{"%/", "%%2F"},
		{"%4/1", "%4%2F1"},
		{"\n\x7f", "%0A%7F"},
	};
	char file[WF_SAVED_NAME_BYTES], name[WF_SAVED_NAME_BYTES];

	(void)state;
	for (size_t i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		assert_ok(wf_saved_name_encode(cases[i].name, strlen(cases[i].name), file));
		assert_string_equal(file, cases[i].file);
		assert_true(wf_saved_name_is_file(file));
		assert_int_equal(wf_saved_name_decode(file, name), strlen(cases[i].name));
		assert_string_equal(name, cases[i].name);
		assert_ok(wf_saved_name_settle(file, name));
		assert_string_equal(name, file);
	}
	assert_refused(wf_saved_name_encode("", 0, file), WEFT_INVALID, "empty");
	assert_refused(wf_saved_name_encode("a\0b", 3, file), WEFT_INVALID, "a byte of 0");
}

/* Every name of two bytes, and of three of those that mean something here. */
static void
no_two_names_have_one_file(void **state)
{
	static const char some[] = "%2FA4/. manifestrow";
	char file[WF_SAVED_NAME_BYTES], again[WF_SAVED_NAME_BYTES], name[4] = "";

	(void)state;
	for (unsigned i = 1; i < 65536; i++) {
		name[0] = (char)(i & 255);
		name[1] = (char)(i >> 8);
		if (name[0] != '\0') {
			const size_t bytes = name[1] == '\0' ? 1 : 2;
			assert_ok(wf_saved_name_encode(name, bytes, file));
			assert_true(wf_saved_name_is_file(file));
			assert_int_equal(wf_saved_name_decode(file, again), bytes);
			assert_memory_equal(again, name, bytes);
		}
	}
	const size_t count = sizeof(some) - 1;
	for (size_t i = 0; i < count * count * count; i++) {
		name[0] = some[i % count];
		name[1] = some[i / count % count];
		name[2] = some[i / count / count];
		assert_ok(wf_saved_name_encode(name, 3, file));
		assert_true(wf_saved_name_is_file(file));
		assert_int_equal(wf_saved_name_decode(file, again), 3);
		assert_string_equal(again, name);
	}
}

static void
names_that_are_too_long_are_refused_by_their_escaped_length(void **state)
{
	char name[WF_SAVED_NAME_BYTES], file[WF_SAVED_NAME_BYTES];

	(void)state;
	memset(name, 'a', sizeof(name));
	assert_ok(wf_saved_name_encode(name, WF_SAVED_NAME_BYTES - 1, file));
	assert_refused(wf_saved_name_encode(name, WF_SAVED_NAME_BYTES, file), WEFT_INVALID,
		       "more than 239 bytes");
	name[0] = ' ';
	assert_refused(wf_saved_name_encode(name, WF_SAVED_NAME_BYTES - 2, file), WEFT_INVALID,
		       "more than 239 bytes");
	assert_ok(wf_saved_name_encode(name, WF_SAVED_NAME_BYTES - 3, file));
}

static void
text_that_is_no_utf8_is_found(void **state)
{
	static const char *const good[] = {"",
					   "a",
					   "\xc3\xa4",
					   "\xe2\x82\xac",
					   "\xf0\x9f\x98\x80",
					   "\xf4\x8f\xbf\xbf",
					   "\xed\x9f\xbf",
					   "\xee\x80\x80"};
	static const char *const bad[] = {"\x80",
					  "\xc3",
					  "\xc0\x80",
					  "\xc1\xbf",
					  "\xe0\x9f\xbf",
					  "\xed\xa0\x80",
					  "\xf0\x8f\xbf\xbf",
					  "\xf4\x90\x80\x80",
					  "\xf5\x80\x80\x80",
					  "\xe2\x82",
					  "a\xff",
					  "\xe2(\xa1"};

	(void)state;
	for (size_t i = 0; i < WF_ARRAY_COUNT(good); i++) {
		assert_true(wf_saved_name_is_utf8(good[i], strlen(good[i])));
	}
	for (size_t i = 0; i < WF_ARRAY_COUNT(bad); i++) {
		assert_false(wf_saved_name_is_utf8(bad[i], strlen(bad[i])));
	}
}

/* What a state dict has: weights, a counter, a mask, halves, and something empty. */
static const char header[] =
	"{\"bn 1/count\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
	"\"w\":{\"dtype\":\"F32\",\"shape\":[2,1,1],\"data_offsets\":[8,16]},"
	"\"half\":{\"dtype\":\"BF16\",\"shape\":[1,3],\"data_offsets\":[16,22]},"
	"\"mask\":{\"dtype\":\"BOOL\",\"shape\":[2],\"data_offsets\":[22,24]},"
	"\"none\":{\"dtype\":\"F32\",\"shape\":[3,0,2],\"data_offsets\":[24,24]},"
	"\"\\ud83d\\ude00\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[24,25]}}";

#define DATA_BYTES 25u

static void
write_arrays(const char *path, const char *head)
{
	uint8_t bytes[8 + 1000 + DATA_BYTES];
	const size_t head_bytes = strlen(head);
	const size_t count = 8 + head_bytes + DATA_BYTES;

	assert_true(count <= sizeof(bytes));
	wf_store_u64(bytes, head_bytes);
	memcpy(bytes + 8, head, head_bytes);
	for (unsigned i = 0; i < DATA_BYTES; i++) {
		bytes[count - DATA_BYTES + i] = (uint8_t)(200 - i);
	}
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, count, file), count);
	assert_int_equal(fclose(file), 0);
}

static void
write_state_dict(const char *path)
{
	write_arrays(path, header);
}

/* Import the file as a pass of this number. */
static enum weft_status
import_pass(struct scene *scene, const char *path, const struct wf_import_save *how,
	    struct wf_import_saved *out)
{
	const struct wf_saved_place place = place_of(scene, wf_saved_posix());
	struct wf_import *import = NULL;

	assert_ok(wf_import_open(&scene->failing.env, wf_saved_posix(), path, WF_IMPORT_AUTO,
				 &import));
	enum weft_status st = wf_import_save(import, &place, how, out);
	wf_import_close(import);
	return st;
}

/* The array has these properties, and the bytes that write_state_dict gave it. */
static void
check_array(struct wf_import *import, const char *file, const char *shape, unsigned first,
	    unsigned bytes)
{
	uint8_t raw[16] = {0};
	uint32_t i = 0;

	while (strcmp(wf_import_at(import, i)->name, file) != 0) {
		i++;
	}
	assert_null(wf_import_at(import, i)->objection);
	assert_string_equal(wf_import_at(import, i)->shape, shape);
	assert_ok(wf_import_read_raw(import, i, raw));
	for (unsigned k = 0; k < bytes; k++) {
		assert_int_equal(raw[k], 200 - first - k);
	}
	assert_int_equal(raw[bytes], 0);
}

static void
arrays_of_other_types_are_kept_and_given_back(void **state)
{
	struct scene *scene = *state;
	const struct wf_import_save how = {.version = "0.1.0"};
	struct wf_import_saved result;
	struct wf_saved *saved = NULL;
	struct wf_import *import = NULL;
	char dict[200], out[200], path[WF_SAVED_PATH_BYTES];

	snprintf(dict, sizeof(dict), "%s/dict", scene->dir);
	snprintf(out, sizeof(out), "%s/out", scene->dir);
	write_state_dict(dict);
	assert_ok(import_pass(scene, dict, &how, &result));
	assert_int_equal(result.tensor_count, 1);
	assert_int_equal(result.aside_count, 5);
	assert_ok(wf_saved_pass_path(scene->dir, 0, path));
	assert_ok(wf_saved_open(&scene->failing.env, wf_saved_posix(), path, &saved));
	assert_int_equal(wf_saved_aside_count(saved), 5);
	assert_ok(wf_saved_export_safetensors(saved, out, true));
	assert_ok(wf_import_open(&scene->failing.env, wf_saved_posix(), out, WF_IMPORT_AUTO,
				 &import));
	assert_int_equal(wf_import_count(import), 6);
	check_array(import, "bn%201%2Fcount", "()", 0, 8);
	check_array(import, "w", "2,1,1", 8, 8);
	check_array(import, "half", "1,3", 16, 6);
	check_array(import, "mask", "2", 22, 2);
	check_array(import, "none", "3,0,2", 24, 0);
	check_array(import, "%F0%9F%98%80", "1", 24, 1);
	wf_import_close(import);

	assert_refused(wf_saved_export_npz(saved, out, false), WEFT_DATA,
		       "array half is of bf16, which NumPy does not have");
	assert_refused(wf_saved_export_tar(saved, out, false), WEFT_INVALID, "keeps arrays aside");
	assert_refused(wf_saved_export_paddle(saved, out, false), WEFT_INVALID, "--skip");
	wf_saved_close(saved);
}

/* What weft export --state writes of a table, and an array of such a name without a table. */
static const char table_header[] =
	"{\"t.keys\":{\"dtype\":\"U64\",\"shape\":[1],\"data_offsets\":[0,8]},"
	"\"t.values\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[8,12]},"
	"\"t.state\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[12,16]},"
	"\"t.stamp\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[16,17]},"
	"\"t.born\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[17,18]},"
	"\"t.show\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[18,19]},"
	"\"t.click\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[19,20]},"
	"\"alone.state\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[20,24]},"
	"\".born\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[24,25]}}";

static void
state_of_rows_is_left_out(void **state)
{
	struct scene *scene = *state;
	const struct wf_import_save how = {.version = "0.1.0"};
	struct wf_import_saved result;
	char path[200];

	snprintf(path, sizeof(path), "%s/table", scene->dir);
	write_arrays(path, table_header);
	assert_ok(import_pass(scene, path, &how, &result));
	assert_int_equal(result.state_count, 5);
	assert_int_equal(result.tensor_count, 2); /* t.values, alone.state */
	assert_int_equal(result.aside_count, 2);  /* t.keys, .born */
}

/* A model takes the floats of a pass, whatever their type, and refuses what is none. */
static void
floats_aside_fill_a_model_and_other_arrays_do_not(void **state)
{
	struct scene *scene = *state;
	const struct wf_import_save how = {.version = "0.1.0"};
	struct wf_import_saved result;
	struct wf_import *import = NULL;
	struct wf_import_load load;
	char dict[200], path[WF_SAVED_PATH_BYTES];
	float value[3] = {0};
	struct wf_saved_tensor tensor = {.name = "half", .rows = 1, .cols = 3, .value = value};

	snprintf(dict, sizeof(dict), "%s/dict", scene->dir);
	write_state_dict(dict);
	assert_ok(import_pass(scene, dict, &how, &result));
	assert_ok(wf_saved_pass_path(scene->dir, 0, path));
	assert_ok(wf_import_open(&scene->failing.env, wf_saved_posix(), path, WF_IMPORT_AUTO,
				 &import));
	assert_ok(wf_import_load(import, &tensor, 1, WF_IMPORT_MISSING_FAIL, &load));
	const uint32_t bits = (uint32_t)183 << 24 | (uint32_t)184 << 16; /* the first two bytes */
	assert_memory_equal(&value[0], &bits, sizeof(bits));
	tensor.name = "mask";
	assert_refused(wf_import_load(import, &tensor, 1, WF_IMPORT_MISSING_FAIL, &load), WEFT_DATA,
		       "mask is not an array of floats, but of bool");
	tensor.name = "none";
	assert_refused(wf_import_load(import, &tensor, 1, WF_IMPORT_MISSING_FAIL, &load), WEFT_DATA,
		       "tensor none is 0 x 1; this model has it 1 x 3");
	wf_import_close(import);
}

static void
patterns_of_names_choose_arrays(void **state)
{
	struct scene *scene = *state;
	const struct wf_option_list all = {.count = 1, .text = {"*"}};
	const struct wf_option_list some = {.count = 2, .text = {"bn */c*", "w"}};
	const struct wf_option_list wrong = {.count = 2, .text = {"w", "v*"}};
	struct wf_import_save how = {.version = "0.1.0", .only = &some};
	struct wf_import_saved result;
	char dict[200];

	snprintf(dict, sizeof(dict), "%s/dict", scene->dir);
	write_state_dict(dict);
	assert_ok(import_pass(scene, dict, &how, &result));
	assert_int_equal(result.tensor_count, 1);
	assert_int_equal(result.aside_count, 1);
	assert_int_equal(result.skipped_count, 4);
	how = (struct wf_import_save){
		.version = "0.1.0", .pass = 1, .skip = &some, .converts = true};
	assert_ok(import_pass(scene, dict, &how, &result));
	assert_int_equal(result.tensor_count, 1); /* half, as f32 */
	assert_int_equal(result.aside_count, 3);
	how.pass = 2;
	how.skip = &all;
	assert_refused(import_pass(scene, dict, &how, &result), WEFT_INVALID, "nothing is left");
	how.skip = &wrong;
	assert_refused(import_pass(scene, dict, &how, &result), WEFT_INVALID, "skip=v*: ");
	how.skip = NULL;
	how.only = &wrong;
	assert_refused(import_pass(scene, dict, &how, &result), WEFT_INVALID, "only=v*: ");
}

static void
damage_of_an_array_aside_is_found(void **state)
{
	struct scene *scene = *state;
	const struct wf_import_save how = {.version = "0.1.0"};
	struct wf_import_saved result;
	struct wf_saved *saved = NULL;
	char dict[200], path[WF_SAVED_PATH_BYTES], file[WF_SAVED_PATH_BYTES];

	snprintf(dict, sizeof(dict), "%s/dict", scene->dir);
	write_state_dict(dict);
	assert_ok(import_pass(scene, dict, &how, &result));
	assert_ok(wf_saved_pass_path(scene->dir, 0, path));
	assert_ok(wf_saved_join(path, "mask", file));
	write_text(file, "ab");
	assert_refused(wf_saved_open(&scene->failing.env, wf_saved_posix(), path, &saved),
		       WEFT_DATA, "mask: checksum");
	write_text(file, "abc");
	assert_refused(wf_saved_open(&scene->failing.env, wf_saved_posix(), path, &saved),
		       WEFT_DATA, "mask: has 3 bytes; must have 2");
	assert_int_equal(unlink(file), 0);
	assert_refused(wf_saved_open(&scene->failing.env, wf_saved_posix(), path, &saved),
		       WEFT_DATA, "mask");
}

/* A session's tensors may have names that no file can have. */
static void
tensors_of_any_name_are_saved_and_found(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_about about;

	scene->model.tensor[0].name = "layer/w.state0";
	scene->model.tensor[1].name = "%C3%A4"; /* as Python has it from one of its own names */
	assert_ok(save_pass(scene, wf_saved_posix(), 0, 1));
	assert_refused(load_pass(scene, 0, &about), WEFT_DATA, "tensor w of this model is missing");
	scene->model.tensor[1].name = "layer%2Fw%2Estate0";
	assert_refused(save_pass(scene, wf_saved_posix(), 0, 1), WEFT_INVALID,
		       "tensor layer%2Fw%2Estate0: occurs twice");
	struct wf_saved *saved = NULL;
	char path[WF_SAVED_PATH_BYTES];
	assert_ok(wf_saved_pass_path(scene->dir, 0, path));
	assert_ok(wf_saved_open(&scene->failing.env, wf_saved_posix(), path, &saved));
	scene->model.tensor[1].name = "%C3%A4";
	assert_ok(wf_saved_load(saved, scene->model.tensor, 2, true));
	wf_saved_close(saved);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_escaped_and_come_back),
		cmocka_unit_test(no_two_names_have_one_file),
		cmocka_unit_test(names_that_are_too_long_are_refused_by_their_escaped_length),
		cmocka_unit_test(text_that_is_no_utf8_is_found),
		WITH_SCENE(arrays_of_other_types_are_kept_and_given_back),
		WITH_SCENE(state_of_rows_is_left_out),
		WITH_SCENE(floats_aside_fill_a_model_and_other_arrays_do_not),
		WITH_SCENE(patterns_of_names_choose_arrays),
		WITH_SCENE(damage_of_an_array_aside_is_found),
		WITH_SCENE(tensors_of_any_name_are_saved_and_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
