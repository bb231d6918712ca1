/* SPDX-License-Identifier: Apache-2.0 */
/* What a run reads: the split, also of a validating run, the keys there are, and batches out of
 * every kind of file. */
#include "tests/unit/train/setup.h"

#include <unistd.h>

#include "trainer/program/source.h"

static void
write_file(char path[32], const char *text)
{
	snprintf(path, 32, "/tmp/weft-source-XXXXXX");
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(close(fd), 0);
}

static struct wf_source
read_libsvm(struct wf_env *env, bool is_validating)
{
	char path[32];
	struct wf_source source;

	write_file(path, "+1 5:1 9:2\n-1 7:0.5\n+1 5:3\n-1\n+1 4294967297:1\n"
			 "-1 5:1\n+1 2:1\n-1 3:1\n+1 5:1\n-1 4:1\n");
	assert_ok(wf_source_read_bags(env,
				      &(struct wf_source_opts){.path = path,
							       .format = "libsvm",
							       .is_validating = is_validating},
				      &source));
	assert_int_equal(unlink(path), 0);
	return source;
}

static void
the_split_is_the_readers_and_a_validating_run_leaves_the_test_rows_alone(void **state)
{
	struct wf_source source = read_libsvm(*state, false);
	assert_int_equal(source.rows, 10);
	assert_int_equal(source.train_rows, 8);
	wf_source_fini(*state, &source);
	source = read_libsvm(*state, true);
	assert_int_equal(source.rows, 8);
	assert_int_equal(source.train_rows, 6);
	wf_source_fini(*state, &source);
	wf_source_fini(*state, &source);
}

static uint64_t
digest_of(struct wf_env *env, struct wf_source *source)
{
	uint64_t digest = 0;
	assert_ok(wf_source_digest(env, source, &digest));
	wf_source_fini(env, source);
	return digest;
}

static uint64_t
digest_of_bags(struct wf_env *env, const char *text)
{
	char path[32];
	struct wf_source source;
	write_file(path, text);
	assert_ok(wf_source_read_bags(
		env, &(struct wf_source_opts){.path = path, .format = "libsvm"}, &source));
	assert_int_equal(unlink(path), 0);
	return digest_of(env, &source);
}

static uint64_t
digest_of_words(struct wf_env *env, const char *text, uint64_t vocabulary)
{
	char path[32];
	char thrice[256]; /* enough words */
	struct wf_source source;
	(void)snprintf(thrice, sizeof(thrice), "%s %s %s", text, text, text);
	write_file(path, thrice);
	assert_ok(wf_source_read_words(
		env, &(struct wf_source_opts){.path = path, .vocabulary = vocabulary}, &source));
	assert_int_equal(unlink(path), 0);
	return digest_of(env, &source);
}

static uint64_t
digest_of_digits(struct wf_env *env, unsigned pixel, unsigned label)
{
	char path[32];
	char text[4000];
	struct wf_source source;
	size_t used = 0;
	for (unsigned row = 0; row < 10; row++) {
		for (unsigned i = 0; i < 64; i++) {
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%u,",
						 row == 9 && i == 63 ? pixel : i % 17);
		}
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%u\n",
					 row == 9 ? label : row);
	}
	write_file(path, text);
	assert_ok(wf_source_read_digits(env, &(struct wf_source_opts){.path = path}, &source));
	assert_int_equal(unlink(path), 0);
	return digest_of(env, &source);
}

/* Of what was read: neither of the file's name nor of how it says the same. */
static void
a_digest_sees_each_value_that_is_read(void **state)
{
	static const char *const bags[] = {
		"+1 5:1 9:2\n-1 7:0.5\n+1 5:3\n-1 2:1\n+1 3:1\n",
		"-1 5:1 9:2\n-1 7:0.5\n+1 5:3\n-1 2:1\n+1 3:1\n", /* a label */
		"+1 5:1 9:2\n-1 7:0.5\n+1 5:3\n-1 2:1\n+1 4:1\n", /* a key, of a test row */
		"+1 5:1 9:2\n-1 7:0.5\n+1 5:3\n-1 2:1\n+1 3:2\n", /* a weight */
		"+1 5:1\n-1 7:0.5 9:2\n+1 5:3\n-1 2:1\n+1 3:1\n", /* whose a key is */
	};
	struct wf_env *env = *state;
	for (size_t i = 0; i < sizeof(bags) / sizeof(bags[0]); i++) {
		uint64_t digest = digest_of_bags(env, bags[i]);
		assert_true((digest == digest_of_bags(env, bags[0])) == (i == 0));
	}
	assert_true(digest_of_bags(env, "1 5:1.0 9:2\n-1 7:0.5\n+1 5:3\n-1 2:1.00\n1 3:1\n") ==
		    digest_of_bags(env, bags[0]));

	const char *words = "a b c a b d a b c d e f a b c d e f a b c d e f g h i j";
	const char *others = "a b c b a d a b c d e f a b c d e f a b c d e f g h i j";
	assert_true(digest_of_words(env, words, 40) == digest_of_words(env, words, 40));
	assert_true(digest_of_words(env, words, 40) != digest_of_words(env, others, 40));
	assert_true(digest_of_words(env, words, 4) != digest_of_words(env, words, 3));
	assert_true(digest_of_words(env, words, 40) !=
		    digest_of_words(env, "x b c x b d x b c d e f x b c d e f x b c d e f g h i j",
				    40));

	assert_true(digest_of_digits(env, 3, 4) == digest_of_digits(env, 3, 4));
	assert_true(digest_of_digits(env, 3, 4) != digest_of_digits(env, 2, 4));
	assert_true(digest_of_digits(env, 3, 4) != digest_of_digits(env, 3, 5));
}

static void
keys_are_listed_once_and_ascending(void **state)
{
	static const uint64_t want[] = {2, 3, 4, 5, 7, 9, 4294967297};
	struct wf_source source = read_libsvm(*state, false);
	struct wf_key_list keys;
	assert_ok(wf_source_list_keys(*state, &source, &keys));
	assert_int_equal(keys.count, sizeof(want) / sizeof(want[0]));
	assert_memory_equal(keys.key, want, sizeof(want));
	wf_key_list_fini(*state, &keys);
	wf_source_fini(*state, &source);
}

static void
words_are_keys_of_a_fixed_vocabulary(void **state)
{
	char path[WF_DATA_PATH_BYTES];
	struct wf_source source;
	struct wf_key_list keys;
	struct wf_bag_batch batch;
	static const uint32_t row[] = {3, 0};

	assert_ok(wf_data_find("moby-dick.txt", path));
	assert_ok(wf_source_read_words(
		*state, &(struct wf_source_opts){.path = path, .vocabulary = 30}, &source));
	assert_int_equal(source.key_count, 30);
	assert_int_equal(source.classes, 30);
	assert_int_equal(source.slots, WF_WORDS_CONTEXT);
	assert_ok(wf_source_list_keys(*state, &source, &keys));
	assert_int_equal(keys.count, 30);
	assert_int_equal(keys.key[29], 29);
	wf_key_list_fini(*state, &keys);
	assert_ok(wf_source_batch_init(*state, &source, 2, &batch));
	wf_source_gather(&source, row, 2, &batch);
	assert_int_equal(batch.rows, 2);
	assert_int_equal(batch.first[8], 8);
	assert_int_equal(batch.key[0], source.words.token[3]);
	assert_int_equal(batch.key[7], source.words.token[3]);
	wf_bag_batch_fini(*state, &batch);
	wf_source_fini(*state, &source);
}

static void
rows_of_numbers_have_no_keys(void **state)
{
	char path[WF_DATA_PATH_BYTES];
	struct wf_source source;
	struct wf_bag_batch batch;
	static const uint32_t row[] = {400, 2};

	assert_ok(wf_data_find("housing.csv", path));
	assert_ok(wf_source_read_housing(*state, &(struct wf_source_opts){.path = path}, &source));
	assert_int_equal(source.slots, 0);
	assert_int_equal(source.row_entries_max, 0);
	assert_ok(wf_source_batch_init(*state, &source, 2, &batch));
	wf_source_gather(&source, row, 2, &batch);
	assert_memory_equal(batch.x, source.dataset.x + 400 * 13, 13 * sizeof(float));
	assert_memory_equal(batch.x + 13, source.dataset.x + 2 * 13, 13 * sizeof(float));
	assert_true(batch.y[0] == source.dataset.y[400] && batch.y[1] == source.dataset.y[2]);
	wf_bag_batch_fini(*state, &batch);
	wf_source_fini(*state, &source);
}

static void
what_cannot_be_read_is_refused(void **state)
{
	struct wf_source source;
	const struct wf_source_opts none = {
		.path = "no/such/file", .format = "zebra", .vocabulary = 1};
	assert_refused(wf_source_read_bags(*state, &none, &source), WEFT_INVALID, "zebra");
	assert_refused(wf_source_read_words(*state, &none, &source), WEFT_INVALID, "vocabulary=1");
	assert_refused(wf_source_read_digits(*state, &none, &source), WEFT_DATA, "no/such/file");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			the_split_is_the_readers_and_a_validating_run_leaves_the_test_rows_alone),
		cmocka_unit_test(a_digest_sees_each_value_that_is_read),
		cmocka_unit_test(keys_are_listed_once_and_ascending),
		cmocka_unit_test(words_are_keys_of_a_fixed_vocabulary),
		cmocka_unit_test(rows_of_numbers_have_no_keys),
		cmocka_unit_test(what_cannot_be_read_is_refused),
	};
	return cmocka_run_group_tests(tests, open_env, close_env);
}
