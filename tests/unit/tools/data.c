/* SPDX-License-Identifier: Apache-2.0 */
/* weft data: windows of records and their order, lines of any length from a file, and the numbered
 * files of a set, which appear together or not at all. */
#include "tests/unit/train/setup.h"

#include <dirent.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/wire/heap_env.h"
#include "tools/data/source.h"
#include "tools/data/target.h"
#include "tools/data/window.h"

static struct wf_record
record_of(const char *text)
{
	return (struct wf_record){.bytes = (const uint8_t *)text, .count = strlen(text)};
}

static void
fill(struct wf_window *window, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		char text[16];
		snprintf(text, sizeof(text), "%u", i);
		const struct wf_record record = record_of(text);
		assert_ok(wf_window_add(window, &record));
	}
}

/* The numbers in the order of the window; each is there once. */
static void
order_of(const struct wf_window *window, unsigned *out)
{
	bool seen[64] = {false};

	for (size_t i = 0; i < window->count; i++) {
		struct wf_record record = wf_window_record(window, i);
		char text[16] = "";
		memcpy(text, record.bytes, record.count);
		out[i] = (unsigned)strtoul(text, NULL, 10);
		assert_true(out[i] < 64 && !seen[out[i]]);
		seen[out[i]] = true;
	}
}

static void
the_order_of_a_window_is_its_seeds_and_its_numbers(void **state)
{
	struct heap_env heap = heap_env_make();
	unsigned order[4][64];

	for (unsigned i = 0; i < 4; i++) {
		struct wf_window window = {.env = &heap.env, .bytes_max = 4096};
		window.seed = i == 2 ? 8 : 7;
		if (i == 3) {
			wf_window_next(&window);
		}
		fill(&window, 64);
		wf_window_shuffle(&window);
		order_of(&window, order[i]);
		wf_window_fini(&window);
	}
	assert_memory_equal(order[0], order[1], sizeof(order[0]));
	assert_memory_not_equal(order[0], order[2], sizeof(order[0]));
	assert_memory_not_equal(order[0], order[3], sizeof(order[0]));
	assert_int_equal(heap.out_bytes, 0);
}

static void
a_window_is_full_by_its_bytes_and_holds_one_record_of_any_length(void **state)
{
	struct heap_env heap = heap_env_make();
	const size_t each = sizeof(struct wf_window_entry);
	struct wf_window window = {.env = &heap.env, .bytes_max = 2 * (each + 10)};
	const struct wf_record record = record_of("0123456789");

	assert_false(wf_window_is_full(&window, 1000));
	assert_ok(wf_window_add(&window, &record));
	assert_false(wf_window_is_full(&window, 10));
	assert_true(wf_window_is_full(&window, 11));
	wf_window_next(&window);
	assert_false(wf_window_is_full(&window, 1000));
	assert_int_equal(window.number, 1);
	wf_window_fini(&window);
	assert_int_equal(heap.out_bytes, 0);
}

static void
lines_of_any_length_come_whole(void **state)
{
	static const size_t lengths[] = {0, 1, 262143, 262144, 262145, 3, 900000, 0, 5};
	struct heap_env heap = heap_env_make();
	struct wf_source *source = NULL;
	struct wf_record record;
	char path[64];
	int fd = memfd_create("text", MFD_CLOEXEC);
	FILE *file = fdopen(fd, "w");

	assert_non_null(file);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		for (size_t j = 0; j < lengths[i]; j++) {
			fputc('a' + (int)((i + j) % 26), file);
		}
		fputs(i == 8 ? "" : "\n", file); /* the last line has none */
	}
	assert_int_equal(fflush(file), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_ok(wf_source_open(&heap.env, path, &source));
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		assert_ok(wf_source_read(source, &record));
		assert_int_equal(record.count, lengths[i]);
		for (size_t j = 0; j < lengths[i]; j += 1 + j / 2) {
			assert_int_equal(record.bytes[j], 'a' + (int)((i + j) % 26));
		}
	}
	assert_ok(wf_source_read(source, &record));
	assert_null(record.bytes);
	wf_source_close(source);
	fclose(file);
	assert_int_equal(heap.out_bytes, 0);
}

/* Two lines of zeros, the first of the most bytes that one may have. */
static void
a_line_above_the_limit_is_refused(void **state)
{
	const off_t limit = WF_SOURCE_LINE_BYTES_MAX;
	struct heap_env heap = heap_env_make();

	for (off_t more = 0; more < 2; more++) {
		struct wf_source *source = NULL;
		struct wf_record record;
		char path[64];
		int fd = memfd_create("text", MFD_CLOEXEC);
		assert_int_equal(ftruncate(fd, 2 * limit + 1 + more), 0); /* no feed at its end */
		assert_int_equal(pwrite(fd, "\n", 1, limit), 1);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		assert_ok(wf_source_open(&heap.env, path, &source));
		assert_ok(wf_source_read(source, &record));
		assert_int_equal(record.count, limit);
		if (more == 0) {
			assert_ok(wf_source_read(source, &record));
			assert_int_equal(record.count, limit);
		} else {
			assert_refused(wf_source_read(source, &record), WEFT_DATA,
				       "line 2: has more than 67108864 bytes");
		}
		wf_source_close(source);
		assert_int_equal(close(fd), 0);
	}
	assert_int_equal(heap.out_bytes, 0);
}

static unsigned
files_in(const char *folder)
{
	DIR *dir = opendir(folder);
	unsigned count = 0;

	assert_non_null(dir);
	for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
		count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	}
	closedir(dir);
	return count;
}

static void
remove_file(const char *folder, const char *name)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(unlink(path), 0);
}

static void
the_files_of_a_set_appear_together_or_not_at_all(void **state)
{
	struct wf_env *env = *state;
	char folder[] = "/tmp/weft_target_XXXXXX";
	char prefix[64];

	assert_non_null(mkdtemp(folder));
	snprintf(prefix, sizeof(prefix), "%s/set", folder);
	for (unsigned finishes = 0; finishes < 2; finishes++) {
		struct wf_target *target = NULL;
		const struct wf_target_opts opts = {
			.prefix = prefix, .files = 2, .form = {.compressor = "gzip"}};
		const struct wf_record record = record_of("a line");
		assert_ok(wf_target_open(env, &opts, &target));
		assert_ok(wf_target_next(target));
		assert_ok(wf_target_write(target, &record));
		assert_ok(wf_target_next(target));
		assert_ok(wf_target_write(target, &record));
		assert_int_equal(files_in(folder), 2); /* both under hidden names */
		if (finishes != 0) {
			assert_ok(wf_target_finish(target));
		}
		wf_target_close(target);
		assert_int_equal(files_in(folder), 2 * finishes);
	}
	remove_file(folder, "set-00000-of-00002");
	remove_file(folder, "set-00001-of-00002");
	rmdir(folder);
}

static void
a_file_that_appears_while_a_set_is_written_is_left_alone(void **state)
{
	struct wf_env *env = *state;
	char folder[] = "/tmp/weft_target_XXXXXX";
	char path[128];
	char prefix[64];
	struct wf_target *target = NULL;
	struct stat info;

	assert_non_null(mkdtemp(folder));
	snprintf(prefix, sizeof(prefix), "%s/set", folder);
	snprintf(path, sizeof(path), "%s-00000-of-00001", prefix);
	const struct wf_target_opts opts = {
		.prefix = prefix, .files = 1, .form = {.is_recordio = true, .compressor = "none"}};
	const struct wf_record record = record_of("a record");
	assert_ok(wf_target_open(env, &opts, &target));
	assert_ok(wf_target_next(target));
	assert_ok(wf_target_write(target, &record));
	FILE *other = fopen(path, "w");
	assert_non_null(other);
	fputs("other", other);
	fclose(other);
	assert_refused(wf_target_finish(target), WEFT_IO,
		       "set-00000-of-00001: cannot get its name");
	wf_target_close(target);
	assert_int_equal(stat(path, &info), 0);
	assert_int_equal(info.st_size, 5);
	assert_int_equal(files_in(folder), 1);
	remove_file(folder, "set-00000-of-00001");
	rmdir(folder);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_order_of_a_window_is_its_seeds_and_its_numbers),
		cmocka_unit_test(a_window_is_full_by_its_bytes_and_holds_one_record_of_any_length),
		cmocka_unit_test(lines_of_any_length_come_whole),
		cmocka_unit_test(a_line_above_the_limit_is_refused),
		cmocka_unit_test_setup_teardown(the_files_of_a_set_appear_together_or_not_at_all,
						open_env, close_env),
		cmocka_unit_test_setup_teardown(
			a_file_that_appears_while_a_set_is_written_is_left_alone, open_env,
			close_env),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
