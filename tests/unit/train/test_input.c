/* SPDX-License-Identifier: Apache-2.0 */
/* A file is read as it was before it was packed, by whatever packed it; what is truncated, damaged
 * or has rubbish behind it is refused with its path and the offset. The packed files were written
 * by Python's gzip module and the command zstd. */
#include "tests/unit/train/setup.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "tests/unit/wire/heap_env.h"
#include "trainer/readers/input.h"

#define ROWS_BYTES 2380u
#define FILE_BYTES_MAX 4096u

struct scene {
	struct wf_env *env;
	char dir[64];
	int file;      /* that a test writes: in memory, for thousands of times */
	char path[96]; /* its path */
	char rows[ROWS_BYTES];
};

static const char *
fixture(const char *name, char out[512])
{
	const char *fixtures = getenv("WEFT_FIXTURES");
	snprintf(out, 512, "%s/%s", fixtures == NULL ? "tests/fixtures/inputs" : fixtures, name);
	return out;
}

static size_t
load(const char *path, char out[FILE_BYTES_MAX])
{
	FILE *from = fopen(path, "rb");
	assert_non_null(from);
	size_t count = fread(out, 1, FILE_BYTES_MAX, from);
	assert_true(count < FILE_BYTES_MAX);
	fclose(from);
	return count;
}

static void
put(const struct scene *scene, const char *bytes, size_t count)
{
	FILE *to = fopen(scene->path, "wb");
	assert_non_null(to);
	assert_int_equal(fwrite(bytes, 1, count, to), count);
	assert_int_equal(fclose(to), 0);
}

static int
open_scene(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	char path[512];
	char rows[FILE_BYTES_MAX];

	*state = scene;
	if (scene == NULL || wf_env_system_create(WF_LOG_WARN, -1, &scene->env) != WEFT_OK) {
		return -1;
	}
	snprintf(scene->dir, sizeof(scene->dir), "/tmp/weft_input_XXXXXX");
	if (mkdtemp(scene->dir) == NULL) {
		return -1;
	}
	scene->file = memfd_create("input", MFD_CLOEXEC);
	snprintf(scene->path, sizeof(scene->path), "/proc/self/fd/%d", scene->file);
	if (load(fixture("rows.csv", path), rows) != ROWS_BYTES) {
		return -1;
	}
	memcpy(scene->rows, rows, ROWS_BYTES);
	return 0;
}

static int
close_scene(void **state)
{
	struct scene *scene = *state;

	close(scene->file);
	rmdir(scene->dir);
	wf_env_system_destroy(scene->env);
	free(scene);
	return 0;
}

/* Reads a file, `room` bytes at once, and closes it. */
static enum weft_status
read_by(struct wf_env *env, const char *path, size_t room, char *out, size_t *count)
{
	struct wf_input *input;
	size_t got = 1;

	*count = 0;
	enum weft_status st = wf_input_open(env, path, &input);
	if (st != WEFT_OK) {
		return st;
	}
	while (st == WEFT_OK && got > 0) {
		char bytes[FILE_BYTES_MAX];
		assert_true(room <= sizeof(bytes));
		st = wf_input_read(input, bytes, room, &got);
		if (st == WEFT_OK) {
			assert_true(got <= room && *count + got <= FILE_BYTES_MAX);
			memcpy(out + *count, bytes, got);
			*count += got;
		}
	}
	wf_input_close(input);
	return st;
}

static enum weft_status
read_file(const struct scene *scene)
{
	char bytes[FILE_BYTES_MAX];
	size_t count;
	return read_by(scene->env, scene->path, 1000, bytes, &count);
}

static void
a_file_is_what_it_was_before_it_was_packed(void **state)
{
	static const struct {
		const char *name, *format;
	} files[] = {
		{"rows.csv", "plain"}, {"rows.gz", "gzip"},    {"members.gz", "gzip"},
		{"rows.zst", "zstd"},  {"frames.zst", "zstd"}, {"window27.zst", "zstd"},
	};
	static const size_t rooms[] = {1, 2, 3, 100, 1000, FILE_BYTES_MAX};
	struct scene *scene = *state;
	char path[512];
	char bytes[FILE_BYTES_MAX];

	for (size_t i = 0; i < 6; i++) {
		struct wf_input *input;
		assert_ok(wf_input_open(scene->env, fixture(files[i].name, path), &input));
		assert_string_equal(wf_input_format(input), files[i].format);
		assert_int_equal(wf_input_file_bytes(input), load(path, bytes));
		assert_true(wf_input_bytes_max(input) >= ROWS_BYTES);
		wf_input_close(input);
		for (size_t k = 0; k < 6; k++) {
			size_t count;
			assert_ok(read_by(scene->env, path, rooms[k], bytes, &count));
			assert_int_equal(count, ROWS_BYTES);
			assert_memory_equal(bytes, scene->rows, ROWS_BYTES);
		}
	}
}

/* Wherever a packed file is cut, somebody notices, save where a member or frame ends. */
static void
a_truncated_file_is_refused_with_its_path_and_offset(void **state)
{
	static const struct {
		const char *name;
		size_t ends; /* cuts that leave whole members or frames, the empty file apart */
	} files[] = {{"rows.gz", 0}, {"members.gz", 2}, {"rows.zst", 0}, {"frames.zst", 4}};
	struct scene *scene = *state;
	char packed[FILE_BYTES_MAX];
	char path[512];

	for (size_t i = 0; i < 4; i++) {
		const size_t bytes = load(fixture(files[i].name, path), packed);
		size_t whole = 0;
		for (size_t cut = 4; cut < bytes; cut++) {
			put(scene, packed, cut);
			enum weft_status st = read_file(scene);
			if (st == WEFT_OK) {
				whole++;
				continue;
			}
			assert_int_equal(st, WEFT_DATA);
			char want[160];
			snprintf(want, sizeof(want), "%s: offset ", scene->path);
			assert_non_null(strstr(weft_last_error(), want));
			assert_non_null(strstr(weft_last_error(), " of "));
		}
		assert_int_equal(whole, files[i].ends);
	}
	put(scene, packed, 1000);
	assert_refused(read_file(scene), WEFT_DATA, "offset 1000 of 1000: the zstd data end");
	load(fixture("rows.gz", path), packed);
	put(scene, packed, 1000);
	assert_refused(read_file(scene), WEFT_DATA, "offset 1000 of 1000: the gzip data end");
}

static void
what_follows_the_packed_data_is_refused(void **state)
{
	static const char *const names[] = {"rows.gz", "rows.zst"};
	static const char *const behind[] = {"x", "more", "\0\0\0\0\0\0\0"};
	struct scene *scene = *state;
	char packed[FILE_BYTES_MAX];
	char path[512];

	for (size_t i = 0; i < 2; i++) {
		const size_t bytes = load(fixture(names[i], path), packed);
		for (size_t k = 0; k < 3; k++) {
			char want[64];
			const size_t count = k == 2 ? 7 : strlen(behind[k]);
			memcpy(packed + bytes, behind[k], count);
			put(scene, packed, bytes + count);
			snprintf(want, sizeof(want), "offset %zu of %zu: the ", bytes,
				 bytes + count);
			assert_refused(read_file(scene), WEFT_DATA, want);
			assert_refused(read_file(scene), WEFT_DATA,
				       "are over, but more bytes follow");
		}
	}
}

/* With a checksum in the file, no bit of the data can change unseen. */
static void
a_flipped_bit_does_not_pass(void **state)
{
	static const struct {
		const char *name;
		size_t first; /* byte behind the head, whose time and name are not checked */
	} files[] = {{"rows.gz", 19}, {"rows.zst", 6}};
	struct scene *scene = *state;
	char packed[FILE_BYTES_MAX];
	char bytes[FILE_BYTES_MAX];
	char path[512];
	size_t refused = 0;

	for (size_t i = 0; i < 2; i++) {
		const size_t count = load(fixture(files[i].name, path), packed);
		for (size_t at = files[i].first; at < count; at++) {
			size_t got;
			packed[at] ^= 0x10;
			put(scene, packed, count);
			packed[at] ^= 0x10;
			enum weft_status st = read_by(scene->env, scene->path, 1000, bytes, &got);
			refused += st == WEFT_DATA;
			/* Bits that stand for nothing exist; those that do are checked. */
			if (st == WEFT_OK) {
				assert_int_equal(got, ROWS_BYTES);
				assert_memory_equal(bytes, scene->rows, ROWS_BYTES);
			}
		}
	}
	assert_true(refused > 2200);
}

static void
a_window_beyond_the_limit_is_refused_with_the_remedy(void **state)
{
	struct scene *scene = *state;
	char bytes[FILE_BYTES_MAX];
	char path[512];
	size_t count;

	assert_refused(read_by(scene->env, fixture("window.zst", path), 1000, bytes, &count),
		       WEFT_DATA, "a window of more than 128 MiB; compress it with --long=27");
}

static void
an_empty_file_has_no_bytes(void **state)
{
	struct scene *scene = *state;
	char bytes[FILE_BYTES_MAX];
	size_t count = 1;

	put(scene, "", 0);
	assert_ok(read_by(scene->env, scene->path, 1000, bytes, &count));
	assert_int_equal(count, 0);
}

/* Recognised by their first bytes, which these do not have. */
static void
a_file_too_short_to_be_packed_is_plain(void **state)
{
	struct scene *scene = *state;
	char bytes[FILE_BYTES_MAX];
	size_t count;

	put(scene, "\x1f", 1);
	assert_ok(read_by(scene->env, scene->path, 1000, bytes, &count));
	assert_int_equal(count, 1);
	put(scene, "\x28\xb5\x2f", 3);
	assert_ok(read_by(scene->env, scene->path, 1000, bytes, &count));
	assert_int_equal(count, 3);
	put(scene, "\x1f\x8b", 2);
	assert_refused(read_file(scene), WEFT_DATA, "offset 2 of 2: the gzip data end too early");
}

static void
a_file_that_shrinks_is_refused_and_one_that_grows_is_not_read_on(void **state)
{
	struct scene *scene = *state;
	struct wf_input *input;
	char bytes[FILE_BYTES_MAX];
	size_t got;
	static char large[200u << 10]; /* more than is read at once */

	memset(large, 'a', sizeof(large));
	for (size_t room = 100; room <= FILE_BYTES_MAX; room += 1000) {
		put(scene, large, sizeof(large));
		assert_ok(wf_input_open(scene->env, scene->path, &input));
		assert_int_equal(truncate(scene->path, (off_t)(150u << 10)), 0);
		enum weft_status st = WEFT_OK;
		size_t all = 0;
		while (st == WEFT_OK) {
			st = wf_input_read(input, bytes, room, &got);
			assert_true(st != WEFT_OK || got > 0);
			all += st == WEFT_OK ? got : 0;
		}
		assert_refused(st, WEFT_DATA, "153600 of 204800 bytes are left");
		assert_true(all <= 150u << 10);
		wf_input_close(input);
	}
	put(scene, scene->rows, 1000);
	assert_ok(wf_input_open(scene->env, scene->path, &input));
	put(scene, scene->rows, ROWS_BYTES);
	assert_ok(wf_input_read(input, bytes, sizeof(bytes), &got));
	assert_int_equal(got, 1000);
	assert_ok(wf_input_read(input, bytes, sizeof(bytes), &got));
	assert_int_equal(got, 0);
	wf_input_close(input);
}

static void
what_is_no_regular_file_is_refused_at_once(void **state)
{
	struct scene *scene = *state;
	struct wf_input *input;

	assert_refused(wf_input_open(scene->env, "/nonexistent/file", &input), WEFT_DATA,
		       "/nonexistent/file: cannot be opened: No such file");
	assert_refused(wf_input_open(scene->env, "/dev/zero", &input), WEFT_DATA,
		       "/dev/zero: is not a regular file");
	assert_refused(wf_input_open(scene->env, scene->dir, &input), WEFT_DATA,
		       "is not a regular file");
	char pipe_path[96];
	snprintf(pipe_path, sizeof(pipe_path), "%s/pipe", scene->dir);
	assert_int_equal(mkfifo(pipe_path, 0600), 0);
	assert_refused(wf_input_open(scene->env, pipe_path, &input), WEFT_DATA,
		       "is not a regular file");
	assert_int_equal(unlink(pipe_path), 0);
}

/* A block of one repeated byte is the most that a file can hold for its size. */
static void
what_a_file_unpacks_to_needs_no_memory(void **state)
{
	struct heap_env heap = heap_env_make();
	/* A frame of zstd without a size, window of 128 KiB, 8 blocks of 128 KiB zeros. */
	char frame[6 + 8 * 4] = {(char)0x28, (char)0xb5, 0x2f, (char)0xfd, 0, 0x38};
	struct scene *scene = *state;
	struct wf_input *input;
	char bytes[FILE_BYTES_MAX];
	uint64_t all = 0;
	size_t got = 1;

	for (unsigned block = 0; block < 8; block++) {
		const uint32_t head = (128u << 10) << 3 | 1u << 1 | (block == 7);
		frame[6 + 4 * block] = (char)(head & 0xff);
		frame[7 + 4 * block] = (char)(head >> 8 & 0xff);
		frame[8 + 4 * block] = (char)(head >> 16);
	}
	put(scene, frame, sizeof(frame));
	assert_ok(wf_input_open(&heap.env, scene->path, &input));
	assert_true(wf_input_bytes_max(input) >= 1u << 20);
	assert_true(wf_input_bytes_max(input) < 2u << 20);
	const size_t asked_bytes = heap.asked_bytes;
	while (got > 0) {
		assert_ok(wf_input_read(input, bytes, sizeof(bytes), &got));
		all += got;
	}
	assert_int_equal(all, 1u << 20);
	assert_true(asked_bytes < 140u << 10);
	assert_int_equal(heap.asked_bytes, asked_bytes);
	wf_input_close(input);
	assert_int_equal(heap.out_bytes, 0);
}

static void
what_other_programs_packed_is_refused_by_their_names(void **state)
{
	static const struct {
		const char *name;
		const char *bytes;
		size_t count;
	} cases[] = {
		{"bzip2", "BZh91AY&SY\x12\x34\x56\x78", 14},
		{"bzip2", "BZh1\x17\x72\x45\x38\x50\x90\0\0\0\0", 14}, /* of nothing */
		{"xz", "\xfd\x37zXZ\0\0\4", 8},
		{"lz4", "\x04\x22\x4d\x18\x64\x40", 6},
		{"zip", "PK\x03\x04\x14\0", 6},
	};
	static const char *const texts[] = {"BZh9", "BZh91AY&SX", "PK", "zXZ", "BZh,a\n1,2\n"};
	struct scene *scene = *state;
	struct wf_input *input;
	char why[64];

	for (unsigned i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		put(scene, cases[i].bytes, cases[i].count);
		snprintf(why, sizeof(why), ": is packed with %s, which is not read", cases[i].name);
		assert_refused(wf_input_open(scene->env, scene->path, &input), WEFT_DATA, why);
	}
	for (unsigned i = 0; i < WF_ARRAY_COUNT(texts); i++) {
		put(scene, texts[i], strlen(texts[i]));
		assert_ok(wf_input_open(scene->env, scene->path, &input));
		assert_string_equal(wf_input_format(input), "plain");
		wf_input_close(input);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_file_is_what_it_was_before_it_was_packed,
						open_scene, close_scene),
		cmocka_unit_test_setup_teardown(
			a_truncated_file_is_refused_with_its_path_and_offset, open_scene,
			close_scene),
		cmocka_unit_test_setup_teardown(what_follows_the_packed_data_is_refused, open_scene,
						close_scene),
		cmocka_unit_test_setup_teardown(a_flipped_bit_does_not_pass, open_scene,
						close_scene),
		cmocka_unit_test_setup_teardown(
			a_window_beyond_the_limit_is_refused_with_the_remedy, open_scene,
			close_scene),
		cmocka_unit_test_setup_teardown(an_empty_file_has_no_bytes, open_scene,
						close_scene),
		cmocka_unit_test_setup_teardown(a_file_too_short_to_be_packed_is_plain, open_scene,
						close_scene),
		cmocka_unit_test_setup_teardown(
			a_file_that_shrinks_is_refused_and_one_that_grows_is_not_read_on,
			open_scene, close_scene),
		cmocka_unit_test_setup_teardown(what_is_no_regular_file_is_refused_at_once,
						open_scene, close_scene),
		cmocka_unit_test_setup_teardown(what_a_file_unpacks_to_needs_no_memory, open_scene,
						close_scene),
		cmocka_unit_test_setup_teardown(
			what_other_programs_packed_is_refused_by_their_names, open_scene,
			close_scene),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
