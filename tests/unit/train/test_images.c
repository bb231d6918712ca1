/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of idx files become rows of pixels and classes, packed or not; what is not exactly of the
 * format, or does not fit together, is refused by file. */
#include "tests/unit/train/setup.h"

#include <errno.h>
#include <unistd.h>

#include <zlib.h>

#include "trainer/program/source.h"
#include "trainer/readers/idx.h"

struct scene {
	struct wf_env *env;
	char dir[64];
};

static const char *const names[] = {
	"train-images-idx3-ubyte",
	"train-labels-idx1-ubyte",
	"t10k-images-idx3-ubyte",
	"t10k-labels-idx1-ubyte",
};

/* Three images of 2 x 2 to train on, one to test with. */
static const uint8_t train_images[] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0,   0, 2, 0,  0,
				       0, 2, 0, 1, 2, 3, 4, 5, 6, 255, 8, 9, 10, 11};
static const uint8_t train_labels[] = {0, 0, 8, 1, 0, 0, 0, 3, 0, 2, 1};
static const uint8_t test_images[] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 9, 8, 7, 6};
static const uint8_t test_labels[] = {0, 0, 8, 1, 0, 0, 0, 1, 2};

static void
path_of(const struct scene *scene, unsigned file, bool is_packed, char out[128])
{
	snprintf(out, 128, "%s/%s%s", scene->dir, names[file], is_packed ? ".gz" : "");
}

/* Without ".gz" the bytes are as they are. */
static void
put(const struct scene *scene, unsigned file, bool is_packed, const uint8_t *bytes, size_t count)
{
	char path[128];

	path_of(scene, file, is_packed, path);
	gzFile to = gzopen(path, is_packed ? "wb" : "wbT");
	assert_non_null(to);
	assert_int_equal(gzwrite(to, bytes, (unsigned)count), (int)count);
	assert_int_equal(gzclose(to), Z_OK);
}

static void
put_all(const struct scene *scene, bool is_packed)
{
	put(scene, 0, is_packed, train_images, sizeof(train_images));
	put(scene, 1, is_packed, train_labels, sizeof(train_labels));
	put(scene, 2, is_packed, test_images, sizeof(test_images));
	put(scene, 3, is_packed, test_labels, sizeof(test_labels));
}

static void
remove_files(const struct scene *scene)
{
	char path[128];

	for (unsigned i = 0; i < 8; i++) {
		path_of(scene, i / 2, i % 2 != 0, path);
		(void)unlink(path);
	}
}

static int
open_scene(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	*state = scene;
	if (scene == NULL || wf_env_system_create(WF_LOG_WARN, -1, &scene->env) != WEFT_OK) {
		return -1;
	}
	snprintf(scene->dir, sizeof(scene->dir), "/tmp/weft_images_XXXXXX");
	return mkdtemp(scene->dir) == NULL ? -1 : 0;
}

static int
close_scene(void **state)
{
	struct scene *scene = *state;

	remove_files(scene);
	rmdir(scene->dir);
	wf_env_system_destroy(scene->env);
	free(scene);
	return 0;
}

static void
images_packed_or_not_are_rows_of_pixels_in_order(void **state)
{
	struct scene *scene = *state;

	for (unsigned packed = 0; packed < 2; packed++) {
		struct wf_dataset dataset;
		float x[4];
		remove_files(scene);
		put_all(scene, packed != 0);
		assert_ok(wf_images_read(scene->env, scene->dir, &dataset));
		assert_int_equal(dataset.rows, 4);
		assert_int_equal(dataset.train_rows, 3);
		assert_int_equal(dataset.features, 4);
		assert_int_equal(dataset.classes, 3);
		wf_dataset_row(&dataset, 1, x);
		assert_true(x[0] == (float)(4 / 255.0) && x[3] == 1.0f);
		wf_dataset_row(&dataset, 3, x);
		assert_true(x[0] == (float)(9 / 255.0) && x[3] == (float)(6 / 255.0));
		assert_true(dataset.y[0] == 0 && dataset.y[1] == 2 && dataset.y[3] == 2);
		wf_dataset_fini(scene->env, &dataset);
	}
}

static void
a_batch_has_the_rows_that_are_asked_for(void **state)
{
	struct scene *scene = *state;
	const struct wf_source_opts opts = {.path = scene->dir, .format = "idx"};
	static const uint32_t row[] = {3, 0};
	struct wf_source source;
	struct wf_bag_batch batch;

	put_all(scene, true);
	assert_ok(wf_source_read_digits(scene->env, &opts, &source));
	assert_ok(wf_source_batch_init(scene->env, &source, 2, &batch));
	wf_source_gather(&source, row, 2, &batch);
	assert_true(batch.x[0] == (float)(9 / 255.0) && batch.x[4] == 0.0f);
	assert_true(batch.y[0] == 2 && batch.y[1] == 0);
	wf_bag_batch_fini(scene->env, &batch);
	wf_source_fini(scene->env, &source);
}

static void
a_file_that_is_not_to_the_byte_what_its_header_says_is_refused(void **state)
{
	static const struct {
		size_t at;
		uint8_t byte;
		const char *why;
	} cases[] = {
		{0, 1, "begins with 01 00 08 03"},  {2, 13, "begins with 00 00 0d 03"},
		{3, 1, "begins with 00 00 08 01"},  {7, 0, "gives 0 bytes"},
		{4, 255, "gives 0 bytes, or more"}, {5, 1, "gives more bytes than it can hold"},
		{7, 4, "ends too early"},           {7, 2, "has more bytes"},
	};
	struct scene *scene = *state;
	struct wf_idx idx;
	char path[128];

	path_of(scene, 0, false, path);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t bytes[sizeof(train_images)];
		memcpy(bytes, train_images, sizeof(bytes));
		bytes[cases[i].at] = cases[i].byte;
		put(scene, 0, false, bytes, sizeof(bytes));
		assert_refused(wf_idx_read(scene->env, path, 3, &idx), WEFT_DATA, cases[i].why);
	}
	for (size_t count = 0; count < sizeof(train_images); count++) {
		put(scene, 0, false, train_images, count);
		assert_refused(wf_idx_read(scene->env, path, 3, &idx), WEFT_DATA, path);
	}
}

static void
a_packed_file_that_is_cut_or_damaged_is_refused(void **state)
{
	struct scene *scene = *state;
	struct wf_idx idx;
	uint8_t bytes[256];
	char path[128];

	path_of(scene, 0, true, path);
	put(scene, 0, true, train_images, sizeof(train_images));
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	const size_t count = fread(bytes, 1, sizeof(bytes), file);
	assert_int_equal(fclose(file), 0);
	for (size_t cut = 0; cut < count; cut++) {
		put(scene, 0, false, bytes, cut);
		char plain[128];
		path_of(scene, 0, false, plain);
		assert_refused(wf_idx_read(scene->env, plain, 3, &idx), WEFT_DATA, plain);
	}
	memset(bytes + count, 0, 2);
	put(scene, 0, false, bytes, count + 2);
	path_of(scene, 0, false, path);
	assert_refused(wf_idx_read(scene->env, path, 3, &idx), WEFT_DATA, "more bytes follow");
	bytes[count - 6] ^= 1; /* of the checksum */
	put(scene, 0, false, bytes, count);
	path_of(scene, 0, false, path);
	assert_refused(wf_idx_read(scene->env, path, 3, &idx), WEFT_DATA, "damaged");
}

static void
files_that_do_not_fit_together_are_refused(void **state)
{
	static const uint8_t two_labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 0, 2};
	static const uint8_t wide_image[] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0,
					     0, 1, 0, 0, 0, 4, 9, 8, 7, 6};
	static const uint8_t new_label[] = {0, 0, 8, 1, 0, 0, 0, 1, 3};
	struct scene *scene = *state;
	struct wf_dataset dataset;
	char path[128];

	remove_files(scene);
	put_all(scene, false);
	put(scene, 1, false, two_labels, sizeof(two_labels));
	assert_refused(wf_images_read(scene->env, scene->dir, &dataset), WEFT_DATA,
		       "has 2 labels for 3 images");
	put_all(scene, false);
	put(scene, 2, false, wide_image, sizeof(wide_image));
	assert_refused(wf_images_read(scene->env, scene->dir, &dataset), WEFT_DATA,
		       "have 2 x 2 pixels, the test images 1 x 4");
	put_all(scene, false);
	put(scene, 3, false, new_label, sizeof(new_label));
	assert_refused(wf_images_read(scene->env, scene->dir, &dataset), WEFT_DATA,
		       "label 3 of test image 0");
	path_of(scene, 3, false, path);
	assert_int_equal(unlink(path), 0);
	assert_refused(wf_images_read(scene->env, scene->dir, &dataset), WEFT_DATA,
		       "t10k-labels-idx1-ubyte: no such file, with .gz or without");
	assert_null(strstr(wf_error_record()->text, strerror(ENOENT)));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(images_packed_or_not_are_rows_of_pixels_in_order),
		cmocka_unit_test(a_batch_has_the_rows_that_are_asked_for),
		cmocka_unit_test(a_file_that_is_not_to_the_byte_what_its_header_says_is_refused),
		cmocka_unit_test(a_packed_file_that_is_cut_or_damaged_is_refused),
		cmocka_unit_test(files_that_do_not_fit_together_are_refused),
	};
	return cmocka_run_group_tests(tests, open_scene, close_scene);
}
