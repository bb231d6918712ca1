/* SPDX-License-Identifier: Apache-2.0 */
/* What is saved loads again; anything else is refused by file. */
#include "tests/unit/saved/setup.h"

#include <errno.h>
#include <fcntl.h>

#include "base/assert.h"

static void
path_in_pass(const struct scene *scene, uint64_t pass, const char *file, char *out)
{
	char dir[WF_SAVED_PATH_BYTES];

	assert_ok(wf_saved_pass_path(scene->dir, pass, dir));
	assert_ok(wf_saved_join(dir, file, out));
}

static size_t
read_bytes(const char *path, uint8_t *out, size_t room)
{
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	size_t bytes = fread(out, 1, room, file);
	assert_int_equal(fclose(file), 0);
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
values_and_state_come_back_whatever_the_order_of_tensors(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_about about;

	assert_ok(save_pass(scene, wf_saved_posix(), 3, 42));
	assert_ok(load_pass(scene, 3, &about));
	assert_true(model_equals(&scene->model, &scene->loaded));
	assert_int_equal(about.pass, 3);
	assert_int_equal(about.step, 42);
	assert_int_equal(about.samples, 420);
	assert_string_equal(about.optimizer, "momentum");
	assert_string_equal(about.settings, "rate=1");
	assert_int_equal(names_in(scene->dir, false), 1);
}

static void
a_save_of_the_same_pass_replaces_the_older_one(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_about about;

	assert_ok(save_pass(scene, wf_saved_posix(), 3, 42));
	model_init(&scene->model, 9.0f);
	assert_ok(save_pass(scene, wf_saved_posix(), 3, 43));
	assert_ok(load_pass(scene, 3, &about));
	assert_int_equal(about.step, 43);
	assert_true(model_equals(&scene->model, &scene->loaded));
	assert_int_equal(names_in(scene->dir, false), 1);
}

static void
older_passes_are_removed_and_nothing_else(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_about about;
	char other[200];

	for (uint64_t pass = 0; pass < 4; pass++) {
		assert_ok(save_pass(scene, wf_saved_posix(), pass, pass + 1));
	}
	snprintf(other, sizeof(other), "%s/pass-1", scene->dir);
	assert_int_equal(mkdir(other, 0777), 0);
	assert_ok(remove_older(scene, 2));
	assert_int_equal(names_in(scene->dir, false), 3);
	assert_ok(load_pass(scene, 2, &about));
	assert_ok(load_pass(scene, 3, &about));
}

static void
the_golden_directory_loads(void **state)
{
	static const float w[] = {1, 2, 3, 4, 5};
	struct scene *scene = *state;
	struct wf_saved *saved = NULL;
	float value[2][6], states[2][6];
	char path[WF_SAVED_PATH_BYTES];
	struct wf_saved_tensor tensor[2] = {
		{.name = "w", .rows = 2, .cols = 3, .value = value[0], .state_count = 1},
		{.name = "bias", .rows = 1, .cols = 3, .value = value[1], .state_count = 1},
	};

	tensor[0].state[0] = states[0];
	tensor[1].state[0] = states[1];
	const char *fixtures = getenv("WEFT_FIXTURES");
	assert_ok(wf_saved_join(fixtures == NULL ? "tests/fixtures/saved" : fixtures, "pass-00002",
				path));
	assert_ok(wf_saved_open(&scene->failing.env, wf_saved_posix(), path, &saved));
	assert_int_equal(wf_saved_about(saved)->samples, 123456789012);
	assert_ok(wf_saved_load(saved, tensor, 2, true));
	assert_memory_equal(value[0], w, sizeof(w));
	assert_true(value[0][5] > 3e38f);
	assert_true(value[1][0] == 0.5f && value[1][2] > 0.0f && value[1][2] < 1e-37f);
	assert_true(states[0][5] == -6.0f && states[1][0] == 1.0f);
	wf_saved_close(saved);
}

/* A pass is refused for `path`, and no array was touched. */
static void
expect_damage(struct scene *scene, const char *path)
{
	static struct model untouched;
	struct wf_saved_about about;

	model_init(&untouched, 0.0f);
	assert_refused(load_pass(scene, 0, &about), WEFT_DATA, path);
	assert_true(model_equals(&scene->loaded, &untouched));
}

static void
damaged_files_are_refused_by_name(void **state)
{
	static const char *const files[] = {"manifest", "w", "w.state0", "bias", "bias.state0"};
	static uint8_t bytes[4 * W_COUNT + 64];
	struct scene *scene = *state;
	struct wf_saved_about about;
	char path[WF_SAVED_PATH_BYTES];

	assert_ok(save_pass(scene, wf_saved_posix(), 0, 1));
	for (size_t f = 0; f < WF_ARRAY_COUNT(files); f++) {
		path_in_pass(scene, 0, files[f], path);
		const size_t count = read_bytes(path, bytes, sizeof(bytes));
		assert_in_range(count, 17, sizeof(bytes) - 1);

		assert_int_equal(unlink(path), 0);
		expect_damage(scene, path);
		write_bytes(path, bytes, 0);
		expect_damage(scene, path);
		write_bytes(path, bytes, count - 1);
		expect_damage(scene, path);
		bytes[count] = 0;
		write_bytes(path, bytes, count + 1);
		expect_damage(scene, path);
		for (size_t at = 0; at < count; at += count / 16) {
			bytes[at] ^= 0x10;
			write_bytes(path, bytes, count);
			expect_damage(scene, path);
			bytes[at] ^= 0x10;
		}
		assert_int_equal(unlink(path), 0);
		assert_int_equal(mkdir(path, 0777), 0);
		assert_refused(load_pass(scene, 0, &about), WEFT_DATA, "not a regular file");
		assert_int_equal(rmdir(path), 0);
		write_bytes(path, bytes, count);
		assert_ok(load_pass(scene, 0, &about));
	}
	assert_refused(load_pass(scene, 1, &about), WEFT_DATA, "pass-00001");
}

static void
another_models_tensors_are_refused_before_anything_is_written(void **state)
{
	struct scene *scene = *state;
	struct wf_saved *saved = NULL;
	struct model *to = &scene->loaded;
	struct model before;
	char path[WF_SAVED_PATH_BYTES];

	assert_ok(save_pass(scene, wf_saved_posix(), 0, 1));
	assert_ok(wf_saved_pass_path(scene->dir, 0, path));
	assert_ok(wf_saved_open(&scene->failing.env, wf_saved_posix(), path, &saved));
	model_init(to, 0.0f);
	before = *to;
	to->tensor[1].name = "b";
	assert_refused(wf_saved_load(saved, to->tensor, 2, true), WEFT_DATA, "tensor b of this");
	to->tensor[1] = before.tensor[1];
	to->tensor[1].rows = 1;
	to->tensor[1].cols = 3;
	assert_refused(wf_saved_load(saved, to->tensor, 2, true), WEFT_DATA, "bias is 3 x 1");
	to->tensor[1] = before.tensor[1];
	to->tensor[1].state_count = 0;
	assert_refused(wf_saved_load(saved, to->tensor, 2, true), WEFT_DATA, "1 state arrays");
	to->tensor[1] = before.tensor[1];
	assert_refused(wf_saved_load(saved, to->tensor, 1, true), WEFT_DATA, "has 2 tensors");
	assert_true(model_equals(to, &before));

	assert_ok(wf_saved_load(saved, to->tensor, 2, false));
	assert_memory_equal(to->w[0], scene->model.w[0], sizeof(to->w[0]));
	assert_memory_equal(to->w[1], before.w[1], sizeof(to->w[1])); /* state was not asked for */
	wf_saved_close(saved);
}

/* Old passes, and programs that give none, have no shapes: then rows and columns decide. */
static void
shapes_are_saved_and_compared_where_both_have_one(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_tensor *from = scene->model.tensor;
	struct wf_saved_tensor *to = scene->loaded.tensor;
	struct wf_saved *saved = NULL;
	char path[WF_SAVED_PATH_BYTES];

	from[0].shape = "2,100,100";
	from[1].shape = "3";
	assert_ok(save_pass(scene, wf_saved_posix(), 0, 1));
	assert_ok(wf_saved_pass_path(scene->dir, 0, path));
	assert_ok(wf_saved_open(&scene->failing.env, wf_saved_posix(), path, &saved));
	model_init(&scene->loaded, 0.0f);
	assert_ok(wf_saved_load(saved, to, 2, true));
	assert_true(model_equals(&scene->model, &scene->loaded));
	to[0].shape = "2,100,100";
	assert_ok(wf_saved_load(saved, to, 2, true));
	to[0].shape = "2,10000";
	assert_refused(wf_saved_load(saved, to, 2, true), WEFT_DATA,
		       "tensor w has the shape 2,100,100; this model has it as 2,10000");
	wf_saved_close(saved);

	from[0].shape = "2,100,101";
	assert_refused(save_pass(scene, wf_saved_posix(), 1, 1), WEFT_INVALID,
		       "tensor w: shape 2,100,101 is not one of 20000 elements");
	from[0].shape = "2x10000";
	assert_refused(save_pass(scene, wf_saved_posix(), 1, 1), WEFT_INVALID, "shape 2x10000");
	from[0].shape = from[1].shape = ""; /* of a save without shapes */
	assert_ok(save_pass(scene, wf_saved_posix(), 0, 1));
	assert_ok(wf_saved_open(&scene->failing.env, wf_saved_posix(), path, &saved));
	assert_ok(wf_saved_load(saved, to, 2, true));
	wf_saved_close(saved);
}

static void
texts_and_names_that_cannot_be_saved_are_refused(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_about about = about_pass(0, 1);
	struct wf_saved_tensor *tensor = scene->model.tensor;
	const struct wf_saved_content content = {.tensor = tensor, .tensor_count = 2};

	tensor[1].name = "";
	assert_refused(save_content(scene, wf_saved_posix(), &about, &content), WEFT_INVALID,
		       "a name is empty");
	tensor[1].name = "w";
	assert_refused(save_content(scene, wf_saved_posix(), &about, &content), WEFT_INVALID,
		       "twice");
	tensor[1].name = "bias";
	snprintf(about.settings, sizeof(about.settings), "a\nb");
	assert_refused(save_content(scene, wf_saved_posix(), &about, &content), WEFT_INVALID,
		       "settings");
	assert_int_equal(names_in(scene->dir, false), 0);
}

/* As a process leaves it that dies while it writes a pass: with or without all of its files. */
static void
leave_half(struct scene *scene, uint64_t pass, const char *name)
{
	char from[200], to[200], file[300];

	assert_ok(save_pass(scene, wf_saved_posix(), pass, 1));
	snprintf(from, sizeof(from), "%s/pass-%05u", scene->dir, (unsigned)pass);
	snprintf(to, sizeof(to), "%s/%s", scene->dir, name);
	assert_int_equal(rename(from, to), 0);
	snprintf(file, sizeof(file), "%s/w", to);
	assert_int_equal(unlink(file), 0);
}

static void
what_interrupted_saves_left_goes_and_other_names_stay(void **state)
{
	struct scene *scene = *state;
	char path[200];

	snprintf(path, sizeof(path), "%s/.pass-00009.tmp-", scene->dir);
	assert_int_equal(mkdir(path, 0777), 0);
	snprintf(path, sizeof(path), "%s/.pass-00009.tmp-x", scene->dir);
	assert_int_equal(mkdir(path, 0777), 0);
	snprintf(path, sizeof(path), "%s/.pass-9.tmp-1", scene->dir);
	assert_int_equal(mkdir(path, 0777), 0);
	leave_half(scene, 7, ".pass-00007.tmp-1");
	leave_half(scene, 8, ".pass-00008.tmp-4711"); /* as an older weft called it */
	snprintf(path, sizeof(path), "%s/.pass-00006.tmp-2", scene->dir);
	assert_int_equal(mkdir(path, 0777), 0);
	assert_ok(save_pass(scene, wf_saved_posix(), 0, 1));
	assert_int_equal(names_in(scene->dir, true), 3);
}

static void
the_older_save_that_a_dead_process_put_aside_is_found(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_about about;
	char final[200];
	char aside[200];

	assert_ok(save_pass(scene, wf_saved_posix(), 7, 5));
	snprintf(final, sizeof(final), "%s/pass-00007", scene->dir);
	snprintf(aside, sizeof(aside), "%s/.pass-00007.old-1", scene->dir);
	assert_int_equal(rename(final, aside), 0);
	assert_refused(load_pass(scene, 6, &about), WEFT_DATA, "pass-00006");
	assert_int_equal(names_in(scene->dir, true), 1); /* who reads leaves other passes alone */
	assert_ok(load_pass(scene, 7, &about));
	assert_int_equal(about.step, 5);
	assert_int_equal(names_in(scene->dir, true), 0);

	/* With a newer one under its name it has served. */
	assert_int_equal(rename(final, aside), 0);
	assert_ok(save_pass(scene, wf_saved_posix(), 8, 7));
	assert_int_equal(rename(final, aside), 0);
	assert_int_equal(mkdir(final, 0777), 0);
	assert_ok(save_pass(scene, wf_saved_posix(), 7, 6));
	assert_ok(load_pass(scene, 7, &about));
	assert_int_equal(about.step, 6);
	/* What stood there before was no save that could take its place. */
	assert_int_equal(names_in(scene->dir, true), 1);
	assert_ok(save_pass(scene, wf_saved_posix(), 8, 7));
	assert_int_equal(names_in(scene->dir, true), 0);
}

static void
an_export_has_length_header_and_all_values(void **state)
{
	static uint8_t bytes[8 * W_COUNT + 2000];
	struct scene *scene = *state;
	struct wf_saved *saved = NULL;
	char path[WF_SAVED_PATH_BYTES];
	uint64_t header = 0;
	const char wanted[] =
		"\"bias\":{\"dtype\":\"F32\",\"shape\":[3,1],\"data_offsets\":[0,12]},"
		"\"w\":{\"dtype\":\"F32\",\"shape\":[2,10000],"
		"\"data_offsets\":[12,80012]}}";

	assert_ok(save_pass(scene, wf_saved_posix(), 0, 1));
	assert_ok(wf_saved_pass_path(scene->dir, 0, path));
	assert_ok(wf_saved_open(&scene->failing.env, wf_saved_posix(), path, &saved));
	snprintf(path, sizeof(path), "%s/out", scene->dir);
	for (unsigned again = 0; again < 2; again++) {
		assert_ok(wf_saved_export_safetensors(saved, path, false));
	}
	size_t count = read_bytes(path, bytes, sizeof(bytes));
	for (unsigned i = 0; i < 8; i++) {
		header |= (uint64_t)bytes[i] << 8 * i;
	}
	assert_int_equal(header % 8, 0);
	assert_int_equal(count, 8 + header + 4 * (BIAS_COUNT + W_COUNT));
	assert_memory_equal(bytes + 8 + header, scene->model.bias[0], 4 * BIAS_COUNT);
	assert_memory_equal(bytes + 8 + header + 12, scene->model.w[0], 4 * W_COUNT);
	bytes[8 + header] = '\0';
	assert_non_null(strstr((const char *)bytes + 8, wanted));
	assert_ok(wf_saved_export_safetensors(saved, path, true));
	assert_int_equal(names_in(scene->dir, true), 0);

	snprintf(path, sizeof(path), "%s/no_folder/out", scene->dir);
	assert_refused(wf_saved_export_safetensors(saved, path, false), WEFT_IO, "no_folder");
	snprintf(path, sizeof(path), "%s/pass-00000", scene->dir);
	assert_refused(wf_saved_export_safetensors(saved, path, false), WEFT_IO, "pass-00000");
	assert_int_equal(names_in(scene->dir, true), 0);
	wf_saved_close(saved);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SCENE(values_and_state_come_back_whatever_the_order_of_tensors),
		WITH_SCENE(a_save_of_the_same_pass_replaces_the_older_one),
		WITH_SCENE(older_passes_are_removed_and_nothing_else),
		WITH_SCENE(the_golden_directory_loads),
		WITH_SCENE(damaged_files_are_refused_by_name),
		WITH_SCENE(another_models_tensors_are_refused_before_anything_is_written),
		WITH_SCENE(shapes_are_saved_and_compared_where_both_have_one),
		WITH_SCENE(texts_and_names_that_cannot_be_saved_are_refused),
		WITH_SCENE(what_interrupted_saves_left_goes_and_other_names_stay),
		WITH_SCENE(the_older_save_that_a_dead_process_put_aside_is_found),
		WITH_SCENE(an_export_has_length_header_and_all_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
