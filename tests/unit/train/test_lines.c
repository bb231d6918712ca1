/* SPDX-License-Identifier: Apache-2.0 */
/* Windows have whole lines, in the order of the files, each once; what is in them depends on files
 * and window size alone, and pieces say which file and line each line is. */
#include "tests/unit/train/setup.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/rng.h"
#include "trainer/readers/lines.h"

#define FILES 4u
#define LINES 300u /* of all files */
#define PATH_BYTES 64u

struct scene {
	struct wf_env *env;
	char dir[32];
	char path[FILES][PATH_BYTES];
	size_t count[FILES]; /* lines */
};

static void
write_file(const char *path, const char *bytes, size_t count)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, count, file), count);
	assert_int_equal(fclose(file), 0);
}

/* "FILE LINE xxx...", of any length up to 90. */
static size_t
make_line(size_t file, size_t line, char *out)
{
	struct wf_rng rng;
	size_t used = (size_t)snprintf(out, 32, "%zu %zu ", file, line);
	wf_rng_init(&rng, 7, file * LINES + line);
	const size_t more = (size_t)wf_rng_below(&rng, 80);
	memset(out + used, 'x', more);
	used += more;
	out[used++] = '\n';
	return used;
}

static int
open_scene(void **state)
{
	static const size_t counts[FILES] = {120, 0, 1, 179};
	static char bytes[LINES * 100];
	struct scene *scene = calloc(1, sizeof(*scene));
	assert_non_null(scene);
	assert_int_equal(open_env((void **)&scene->env), 0);
	(void)snprintf(scene->dir, sizeof(scene->dir), "/tmp/weft-lines-XXXXXX");
	assert_non_null(mkdtemp(scene->dir));
	for (size_t i = 0; i < FILES; i++) {
		size_t used = 0;
		for (size_t line = 1; line <= counts[i]; line++) {
			used += make_line(i, line, bytes + used);
		}
		scene->count[i] = counts[i];
		(void)snprintf(scene->path[i], PATH_BYTES, "%s/part-%zu", scene->dir, i);
		write_file(scene->path[i], bytes, i == 3 ? used - 1 : used); /* no last line feed */
	}
	*state = scene;
	return 0;
}

static int
close_scene(void **state)
{
	struct scene *scene = *state;
	for (size_t i = 0; i < FILES; i++) {
		(void)unlink(scene->path[i]);
	}
	assert_int_equal(rmdir(scene->dir), 0);
	void *env = scene->env;
	assert_int_equal(close_env(&env), 0);
	free(scene);
	return 0;
}

static void
fill_spans(const struct scene *scene, struct wf_span span[FILES])
{
	for (size_t i = 0; i < FILES; i++) {
		span[i] = (struct wf_span){.path = scene->path[i], .first = 1, .last = SIZE_MAX};
	}
}

/* The lines of a window are those that its pieces announce. Adds them to `seen` [file][line]. */
static void
check_window(const struct scene *scene, const struct wf_text *text, unsigned char *seen)
{
	struct wf_cut cut = {.text = text, .separator = ' '};
	size_t lines = 0;
	assert_true(text->bytes[text->count] == '\0' && text->bytes[text->count - 1] == '\n');
	while (wf_cut_line(&cut)) {
		char want[128];
		const struct wf_text_piece *piece = &text->piece[cut.piece - 1];
		const size_t count = make_line(piece->file, cut.line, want);
		assert_ptr_equal(cut.path, scene->path[piece->file]);
		assert_int_equal((size_t)(cut.end - cut.at) + 1, count);
		assert_memory_equal(cut.at, want, count - 1);
		seen[piece->file * LINES + cut.line]++;
		lines++;
	}
	for (size_t i = 0; i < text->piece_count; i++) {
		assert_true(text->piece[i].lines > 0);
		lines -= text->piece[i].lines;
	}
	assert_int_equal(lines, 0);
}

/* Reads all windows; returns how many there were. */
static size_t
read_all(const struct scene *scene, struct wf_lines *lines, const struct wf_span *span,
	 size_t window, unsigned char *seen)
{
	struct wf_text text;
	size_t windows = 0;
	memset(seen, 0, FILES * LINES);
	wf_lines_begin(lines, span, FILES);
	for (;;) {
		assert_ok(wf_lines_next(lines, &text));
		if (text.count == 0) {
			break;
		}
		assert_true(text.count <= window + 1);
		check_window(scene, &text, seen);
		windows++;
	}
	assert_true(wf_lines_is_over(lines));
	assert_ok(wf_lines_next(lines, &text));
	assert_int_equal(text.count, 0);
	return windows;
}

static void
each_line_is_in_one_window_whatever_their_size(void **state)
{
	const struct scene *scene = *state;
	struct wf_span span[FILES];
	unsigned char seen[FILES * LINES];
	fill_spans(scene, span);
	for (size_t window = WF_WINDOW_BYTES_MIN; window < 40000; window += 1 + window / 7) {
		struct wf_lines *lines;
		assert_ok(wf_lines_open(scene->env, window, &lines));
		size_t windows = read_all(scene, lines, span, window, seen);
		for (size_t i = 0; i < FILES; i++) {
			for (size_t line = 1; line < LINES; line++) {
				assert_int_equal(seen[i * LINES + line], line <= scene->count[i]);
			}
		}
		assert_true(window > 1200 || windows > 10);
		assert_true(window < 20000 || windows == 1);
		/* Again, after a pass that stopped in the middle. */
		struct wf_text text;
		wf_lines_begin(lines, span, FILES);
		assert_ok(wf_lines_next(lines, &text));
		assert_int_equal(read_all(scene, lines, span, window, seen), windows);
		wf_lines_close(lines);
	}
}

static void
a_span_has_its_lines_alone(void **state)
{
	const struct scene *scene = *state;
	struct wf_span span[FILES];
	unsigned char seen[FILES * LINES];
	struct wf_lines *lines;
	fill_spans(scene, span);
	span[0].first = 50;
	span[0].last = 70;
	span[2].first = 2; /* behind its last one */
	span[3].first = 179;
	span[3].last = 179;
	assert_ok(wf_lines_open(scene->env, 1500, &lines));
	assert_true(read_all(scene, lines, span, 1500, seen) >= 1);
	for (size_t line = 1; line < LINES; line++) {
		assert_int_equal(seen[line], line >= 50 && line <= 70);
		assert_int_equal(seen[2 * LINES + line], 0);
		assert_int_equal(seen[3 * LINES + line], line == 179);
	}
	wf_lines_close(lines);
}

static void
what_does_not_fit_is_refused(void **state)
{
	const struct scene *scene = *state;
	struct wf_span span[FILES];
	struct wf_text text;
	struct wf_lines *lines;
	char path[PATH_BYTES];
	static char long_line[3000];
	fill_spans(scene, span);
	assert_ok(wf_lines_open(scene->env, 2000, &lines));

	span[2].last = 2; /* it has one */
	wf_lines_begin(lines, span + 2, 1);
	assert_refused(wf_lines_next(lines, &text), WEFT_DATA, "part-2: has 1 lines now");

	(void)snprintf(path, sizeof(path), "%s/long", scene->dir);
	memset(long_line, 'y', sizeof(long_line));
	memcpy(long_line, "one\ntwo\n", 8);
	write_file(path, long_line, sizeof(long_line));
	const struct wf_span other = {.path = path, .first = 1, .last = SIZE_MAX};
	wf_lines_begin(lines, &other, 1);
	assert_ok(wf_lines_next(lines, &text));
	assert_int_equal(text.count, 8);
	assert_refused(wf_lines_next(lines, &text), WEFT_DATA,
		       "long: line 3: has more than the 2000 bytes of a window");
	assert_int_equal(unlink(path), 0);

	wf_lines_begin(lines, span + 1, 1); /* the empty file */
	assert_ok(wf_lines_next(lines, &text));
	assert_int_equal(text.count, 0);
	assert_string_equal(text.path, scene->path[1]);

	const struct wf_span none = {.path = "no/such/file", .first = 1, .last = SIZE_MAX};
	wf_lines_begin(lines, &none, 1);
	assert_refused(wf_lines_next(lines, &text), WEFT_DATA, "no/such/file");
	wf_lines_close(lines);
}

static void
a_scan_counts_what_a_file_has(void **state)
{
	const struct scene *scene = *state;
	struct wf_scan scan;
	char path[PATH_BYTES];
	static const char text[] = "a:b:c\n:::::\n:";
	assert_ok(wf_lines_scan(scene->env, scene->path[3], ':', &scan));
	assert_int_equal(scan.lines, 179);
	assert_int_equal(scan.marks_max, 0);
	assert_ok(wf_lines_scan(scene->env, scene->path[1], ':', &scan));
	assert_int_equal(scan.lines, 0);
	assert_int_equal(scan.bytes, 0);
	(void)snprintf(path, sizeof(path), "%s/marks", scene->dir);
	write_file(path, text, strlen(text));
	assert_ok(wf_lines_scan(scene->env, path, ':', &scan));
	assert_int_equal(scan.lines, 3);
	assert_int_equal(scan.marks_max, 5);
	assert_true(scan.zero_line == 0 && scan.minus_line == 0);
	assert_int_equal(scan.bytes, strlen(text));
	assert_int_equal(scan.crc, wf_crc32c(0, text, strlen(text)));
	static const char labels[] = "1 0:0\n-1 2:1\n\n0 1:1\n-1\n0";
	write_file(path, labels, strlen(labels));
	assert_ok(wf_lines_scan(scene->env, path, ':', &scan));
	assert_true(scan.minus_line == 2 && scan.zero_line == 4);
	assert_int_equal(unlink(path), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_line_is_in_one_window_whatever_their_size),
		cmocka_unit_test(a_span_has_its_lines_alone),
		cmocka_unit_test(what_does_not_fit_is_refused),
		cmocka_unit_test(a_scan_counts_what_a_file_has),
	};
	return cmocka_run_group_tests(tests, open_scene, close_scene);
}
