/* SPDX-License-Identifier: Apache-2.0 */
/* Sets that are read in windows: every row of a part comes once in each pass, at the number that it
 * has in the set, with and without a thread that reads ahead, which gives the same blocks; files
 * come in another order in each pass; and a stream can be left at any time. */
#include "tests/unit/train/setup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/wire/heap_env.h"
#include "trainer/program/feed.h"
#include "trainer/readers/windows.h"

#define FILES 5u
#define ROWS 400u
#define TRAIN_ROWS (ROWS * 4 / 5)

struct scene {
	struct wf_env *env;
	char dir[32];
	char items[64];
	struct wf_set set; /* streamed */
};

/* Row r of the set has the label r % 2 and one key, r + 1. */
static void
write_rows(const char *path, unsigned first, unsigned count)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	for (unsigned row = first; row < first + count; row++) {
		assert_true(fprintf(file, "%s %u:1\n", row % 2 == 1 ? "+1" : "-1", row + 1) > 0);
	}
	assert_int_equal(fclose(file), 0);
}

static struct wf_set_opts
opts_of(const struct scene *scene)
{
	return (struct wf_set_opts){
		.items = scene->items,
		.source = {.path = scene->items, .format = "libsvm"},
		.read = wf_source_read_bags,
		.can_stream = true,
		.trainers = 1,
		.window_bytes = 1024,
	};
}

static struct timespec
changed_of(const char *path)
{
	struct stat about;
	assert_int_equal(stat(path, &about), 0);
	return about.st_mtim;
}

static void
set_changed(const char *path, struct timespec changed)
{
	const struct timespec times[2] = {changed, changed};
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static int
open_scene(void **state)
{
	static const unsigned counts[FILES] = {90, 7, 200, 1, 102};
	struct scene *scene = calloc(1, sizeof(*scene));
	unsigned row = 0;
	assert_non_null(scene);
	assert_int_equal(open_env((void **)&scene->env), 0);
	(void)snprintf(scene->dir, sizeof(scene->dir), "/tmp/weft-stream-XXXXXX");
	assert_non_null(mkdtemp(scene->dir));
	for (unsigned i = 0; i < FILES; i++) {
		char path[64];
		(void)snprintf(path, sizeof(path), "%s/part-%u", scene->dir, i);
		write_rows(path, row, counts[i]);
		row += counts[i];
	}
	(void)snprintf(scene->items, sizeof(scene->items), "%s", scene->dir);
	const struct wf_set_opts opts = opts_of(scene);
	assert_ok(wf_set_open(scene->env, &opts, &scene->set));
	*state = scene;
	return 0;
}

static int
close_scene(void **state)
{
	struct scene *scene = *state;
	wf_set_close(scene->env, &scene->set);
	for (unsigned i = 0; i < FILES; i++) {
		char path[64];
		(void)snprintf(path, sizeof(path), "%s/part-%u", scene->dir, i);
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(rmdir(scene->dir), 0);
	void *env = scene->env;
	assert_int_equal(close_env(&env), 0);
	free(scene);
	return 0;
}

static void
a_set_knows_its_rows_without_having_them(void **state)
{
	const struct scene *scene = *state;
	assert_true(scene->set.is_streamed);
	assert_int_equal(scene->set.source.rows, ROWS);
	assert_int_equal(scene->set.source.train_rows, TRAIN_ROWS);
	assert_int_equal(scene->set.source.row_entries_max, 1);
	assert_int_equal(scene->set.source.slots, 1);
	assert_int_equal(scene->set.source.bags.rows, 0);
	assert_int_equal(scene->set.files.count, FILES);
	assert_int_equal(scene->set.file[4].first_row, 298);
}

/* Appends the numbers of a pass's rows to `row`; returns how many. */
static size_t
walk_pass(struct wf_walk *walk, uint64_t pass, uint64_t *row)
{
	struct wf_block block;
	size_t count = 0;
	uint64_t idx = 0;
	wf_walk_begin(walk, 3, pass);
	for (;;) {
		assert_ok(wf_walk_next(walk, &block));
		if (block.rows == 0) {
			break;
		}
		assert_int_equal(block.idx, idx++);
		size_t rows = 0;
		for (size_t i = 0; i < block.piece_count; i++) {
			const struct wf_piece *piece = &block.piece[i];
			assert_int_equal(piece->first, rows);
			for (size_t at = 0; at < piece->count; at++) {
				const uint64_t number = piece->row + at;
				assert_int_equal(block.source->bags.key[piece->first + at],
						 number + 1);
				assert_true(block.source->bags.y[piece->first + at] ==
					    (float)(number % 2));
				row[count++] = number;
			}
			rows += piece->count;
		}
		assert_int_equal(rows, block.rows);
		assert_int_equal(rows, block.source->rows);
	}
	assert_true(idx > (count > 100 ? 2 : 0));
	assert_ok(wf_walk_next(walk, &block));
	assert_int_equal(block.rows, 0);
	return count;
}

static void
check_part(const struct scene *scene, enum wf_part part, uint64_t ahead_until, size_t from,
	   size_t to)
{
	static uint64_t ahead_row[2][ROWS];
	static uint64_t row[2][ROWS];
	struct wf_walk ahead;
	struct wf_walk walk;
	assert_ok(wf_walk_init(scene->env, &scene->set, part, ahead_until, &ahead));
	assert_ok(wf_walk_init(scene->env, &scene->set, part, 0, &walk));
	for (unsigned pass = 0; pass < 2; pass++) {
		unsigned times[ROWS] = {0};
		assert_int_equal(walk_pass(&walk, pass, row[pass]), to - from);
		assert_int_equal(walk_pass(&ahead, pass, ahead_row[pass]), to - from);
		for (size_t i = 0; i < to - from; i++) {
			times[row[pass][i]]++;
		}
		for (size_t i = 0; i < ROWS; i++) {
			assert_int_equal(times[i], i >= from && i < to);
		}
	}
	assert_memory_equal(row, ahead_row, sizeof(row));
	/* Another pass than the one that has been begun meanwhile. */
	assert_int_equal(walk_pass(&walk, 7, row[1]), to - from);
	assert_int_equal(walk_pass(&ahead, 7, ahead_row[1]), to - from);
	assert_memory_equal(row, ahead_row, sizeof(row));
	/* Those to train on come in another order. */
	const bool is_same = memcmp(row[0], row[1], (to - from) * sizeof(row[0][0])) == 0;
	assert_true(is_same == (part != WF_PART_TRAIN));
	wf_walk_fini(&ahead);
	wf_walk_fini(&walk);
}

static void
each_row_of_a_part_comes_once_in_a_pass(void **state)
{
	/* Within a pass, into the next one, and into one that is never asked for. */
	for (uint64_t until = 1; until <= 3; until++) {
		check_part(*state, WF_PART_TRAIN, until, 0, TRAIN_ROWS);
	}
	check_part(*state, WF_PART_TEST, 1, TRAIN_ROWS, ROWS);
	check_part(*state, WF_PART_ALL, 1, 0, ROWS);
}

static void
batches_of_trainers_have_each_row_once(void **state)
{
	const struct scene *scene = *state;
	unsigned times[ROWS] = {0};
	for (uint32_t trainer = 0; trainer < 3; trainer++) {
		struct wf_feed feed;
		struct wf_bag_batch batch;
		const struct wf_shard_opts shard = {
			.trainer = trainer, .idx = trainer, .count = 3, .batch_size = 8};
		const struct wf_feed_opts opts = {
			.set = &scene->set, .shard = &shard, .rows_max = 8, .ahead_until = 5};
		assert_ok(wf_feed_init(scene->env, &opts, &feed));
		assert_ok(wf_source_batch_init(scene->env, &scene->set.source, 8, &batch));
		wf_feed_begin(&feed, 3, 1);
		for (;;) {
			assert_ok(wf_feed_next(&feed, &batch));
			if (batch.rows == 0) {
				break;
			}
			for (size_t i = 0; i < batch.rows; i++) {
				const uint64_t row = batch.key[i] - 1;
				assert_int_equal(row % 3, trainer);
				times[row]++;
			}
		}
		wf_bag_batch_fini(scene->env, &batch);
		wf_feed_fini(&feed);
	}
	for (size_t i = 0; i < ROWS; i++) {
		assert_int_equal(times[i], i < TRAIN_ROWS);
	}
}

/* At any moment: before the first block, with one in use, and from within a pass into the next. */
static void
a_stream_can_be_left_at_any_time(void **state)
{
	const struct scene *scene = *state;
	static uint64_t row[ROWS];
	for (unsigned blocks = 0; blocks < 4; blocks++) {
		struct wf_walk walk;
		struct wf_block block;
		assert_ok(wf_walk_init(scene->env, &scene->set, WF_PART_TRAIN, 4, &walk));
		for (unsigned round = 0; round < blocks; round++) {
			wf_walk_begin(&walk, 3, round);
			for (unsigned i = 0; i < blocks; i++) {
				assert_ok(wf_walk_next(&walk, &block));
				assert_int_equal(block.idx, i);
			}
		}
		if (blocks % 2 == 1) {
			assert_int_equal(walk_pass(&walk, 9, row), TRAIN_ROWS);
		}
		wf_walk_fini(&walk);
	}
}

/* By its size, or by the time alone. */
static void
a_file_that_changes_ends_the_pass(void **state)
{
	struct scene *scene = *state;
	char path[64];
	struct wf_block block = {0};
	(void)snprintf(path, sizeof(path), "%s/part-2", scene->dir);
	const struct timespec changed = changed_of(path);
	for (unsigned i = 0; i < 4; i++) {
		const unsigned ahead = i % 2;
		struct wf_walk walk;
		enum weft_status st = WEFT_OK;
		assert_ok(wf_walk_init(scene->env, &scene->set, WF_PART_TRAIN, ahead, &walk));
		write_rows(path, 97, i < 2 ? 199 : 200); /* one less, or the same */
		set_changed(path, (struct timespec){.tv_sec = 1});
		wf_walk_begin(&walk, 3, 0);
		do {
			st = wf_walk_next(&walk, &block);
		} while (st == WEFT_OK && block.rows > 0);
		assert_refused(st, WEFT_DATA, "part-2: was changed after it was listed");
		wf_walk_fini(&walk);
		write_rows(path, 97, 200);
		set_changed(path, changed);
	}
}

static void
what_a_set_cannot_be_is_refused(void **state)
{
	struct scene *scene = *state;
	struct wf_set set;
	struct wf_set_opts opts = opts_of(scene);
	opts.can_stream = false;
	assert_refused(wf_set_open(scene->env, &opts, &set), WEFT_INVALID, "data_window=1024");
	opts = opts_of(scene);
	opts.split = WF_SPLIT_FILES;
	opts.trainers = 6;
	assert_refused(wf_set_open(scene->env, &opts, &set), WEFT_INVALID,
		       "data_split=files: 5 files for 6 trainers");
	opts.trainers = 5;
	opts.trainer = 3;
	assert_refused(wf_set_open(scene->env, &opts, &set), WEFT_DATA, "has 1 rows; at least 5");
	opts.trainer = 1;
	assert_ok(wf_set_open(scene->env, &opts, &set));
	assert_int_equal(set.source.rows, 7);
	assert_int_equal(set.files.count, 1);
	assert_int_equal(set.listed_count, 5);
	assert_false(set.is_streamed);
	wf_set_close(scene->env, &set);
}

static enum weft_status
count_rows(struct wf_env *env, void *arg, struct wf_text *text)
{
	size_t *rows = arg;
	(void)env;
	*rows += wf_text_line_count(text);
	text->count = 0;
	return WEFT_OK;
}

static void
windows_are_visited_to_the_last_whatever_is_left_of_one(void **state)
{
	const struct scene *scene = *state;
	size_t rows = 0;
	assert_ok(wf_windows_visit(scene->env, &scene->set.files, 1024, count_rows, &rows));
	assert_int_equal(rows, ROWS);
}

/* --- tables of numbers --- */

#define TABLE_FILES 3u
#define TABLE_ROWS 120u
#define NAME_BYTES 1000u /* a header that fills a window alone */

/* Three files with a header each; row r has the features r * 0.37 and -r, and the class r % 3. */
static void
write_table(const char *dir, char items[64])
{
	static const unsigned end[TABLE_FILES] = {50, 50, TABLE_ROWS};
	char name[NAME_BYTES + 1];
	unsigned row = 0;
	memset(name, 'n', NAME_BYTES);
	name[NAME_BYTES] = '\0';
	(void)snprintf(items, 64, "%s/table-*", dir);
	for (unsigned i = 0; i < TABLE_FILES; i++) {
		char path[64];
		(void)snprintf(path, sizeof(path), "%s/table-%u", dir, i);
		FILE *file = fopen(path, "w");
		assert_non_null(file);
		assert_true(fprintf(file, "a,%s,class\n", name) > 0);
		for (; row < end[i]; row++) {
			assert_true(fprintf(file, "%.2f,-%u,%u\n", row * 0.37, row, row % 3) > 0);
		}
		assert_int_equal(fclose(file), 0);
	}
}

static void
remove_table(const char *dir)
{
	for (unsigned i = 0; i < TABLE_FILES; i++) {
		char path[64];
		(void)snprintf(path, sizeof(path), "%s/table-%u", dir, i);
		assert_int_equal(unlink(path), 0);
	}
}

static struct wf_set_opts
table_opts(const char *items, bool is_scaled, uint64_t window_bytes)
{
	return (struct wf_set_opts){
		.items = items,
		.source = {.path = items, .format = "csv", .is_scaled = is_scaled},
		.read = wf_source_read_digits,
		.open_sheet = wf_source_open_digits,
		.can_stream = true,
		.trainers = 1,
		.window_bytes = window_bytes,
	};
}

/* Each row of the walk has the bits of the row of that number in `whole`. */
static size_t
compare_rows(struct wf_walk *walk, const struct wf_dataset *whole)
{
	struct wf_block block;
	size_t count = 0;
	for (;;) {
		assert_ok(wf_walk_next(walk, &block));
		if (block.rows == 0) {
			return count;
		}
		for (size_t i = 0; i < block.piece_count; i++) {
			const struct wf_piece *piece = &block.piece[i];
			const struct wf_dataset *rows = &block.source->dataset;
			if (piece->count == 0) {
				continue;
			}
			assert_memory_equal(rows->x + piece->first * rows->features,
					    whole->x + piece->row * rows->features,
					    piece->count * rows->features * sizeof(float));
			assert_memory_equal(rows->y + piece->first, whole->y + piece->row,
					    piece->count * sizeof(float));
			count += piece->count;
		}
	}
}

static void
rows_of_a_table_are_those_that_it_has_in_memory(void **state)
{
	const struct scene *scene = *state;
	char items[64];
	write_table(scene->dir, items);
	for (unsigned scaled = 0; scaled < 2; scaled++) {
		const struct wf_set_opts in_memory = table_opts(items, scaled == 1, 0);
		const struct wf_set_opts in_windows = table_opts(items, scaled == 1, 1024);
		struct wf_set whole;
		struct wf_set set;
		struct wf_walk walk;
		assert_ok(wf_set_open(scene->env, &in_memory, &whole));
		assert_ok(wf_set_open(scene->env, &in_windows, &set));
		assert_false(whole.is_streamed);
		assert_true(set.is_streamed);
		assert_int_equal(set.source.rows, TABLE_ROWS);
		assert_int_equal(set.source.train_rows, whole.source.train_rows);
		assert_int_equal(set.source.features, 2);
		assert_int_equal(set.source.classes, 3);
		for (uint64_t ahead = 0; ahead < 2; ahead++) {
			assert_ok(wf_walk_init(scene->env, &set, WF_PART_ALL, ahead, &walk));
			wf_walk_begin(&walk, 3, 0);
			assert_int_equal(compare_rows(&walk, &whole.source.dataset), TABLE_ROWS);
			wf_walk_fini(&walk);
		}
		wf_set_close(scene->env, &set);
		wf_set_close(scene->env, &whole);
	}
	remove_table(scene->dir);
}

/* A class that no row had when all were looked at would be one that the model has not. */
static void
a_table_whose_classes_change_ends_the_pass(void **state)
{
	const struct scene *scene = *state;
	char items[64];
	char path[64];
	struct wf_set set;
	struct wf_walk walk;
	struct wf_block block = {0};
	write_table(scene->dir, items);
	const struct wf_set_opts opts = table_opts(items, false, 1024);
	assert_ok(wf_set_open(scene->env, &opts, &set));
	(void)snprintf(path, sizeof(path), "%s/table-2", scene->dir);
	const struct timespec changed = changed_of(path);
	FILE *file = fopen(path, "r+");
	assert_non_null(file);
	assert_int_equal(fseek(file, -2, SEEK_END), 0);
	assert_int_equal(fputc('7', file), '7');
	assert_int_equal(fclose(file), 0);
	set_changed(path, changed); /* as if nobody had */
	assert_ok(wf_walk_init(scene->env, &set, WF_PART_ALL, 0, &walk));
	wf_walk_begin(&walk, 3, 0);
	enum weft_status st = WEFT_OK;
	do {
		st = wf_walk_next(&walk, &block);
	} while (st == WEFT_OK && block.rows > 0);
	assert_refused(st, WEFT_DATA, "table-2: line 71, column 3: \"7\" is not within 0..2");
	wf_walk_fini(&walk);
	wf_set_close(scene->env, &set);
	remove_table(scene->dir);
}

/* --- running text --- */

#define TEXT_FILES 6u
#define TEXT_WORDS 1500u

/* Files of so many words, of 40 different ones, in lines of all lengths: some have fewer words than
 * a row, some windows have none at all. */
static void
write_text(const char *dir, char items[64])
{
	static const unsigned end[TEXT_FILES] = {500, 503, 503, 1100, 1104, TEXT_WORDS};
	uint64_t state = test_seed();
	unsigned word = 0;
	(void)snprintf(items, 64, "%s/text-*", dir);
	for (unsigned i = 0; i < TEXT_FILES; i++) {
		char path[64];
		(void)snprintf(path, sizeof(path), "%s/text-%u", dir, i);
		FILE *file = fopen(path, "w");
		assert_non_null(file);
		for (; word < end[i]; word++) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			const unsigned which = (unsigned)(state >> 33) % 40;
			assert_true(fprintf(file, "%c%.*s%s", 'a' + (int)(which % 20),
					    (int)(which / 20 * 30),
					    "abcdefghijklmnopqrstuvwxyzabcd",
					    (state >> 40) % 7 == 0 ? "\n" : " ") > 0);
			if (word % 400 == 399) {
				assert_true(fprintf(file, "\n%0900d\n%0900d\n", 1, 2) > 0);
			}
		}
		assert_int_equal(fclose(file), 0);
	}
}

static void
remove_text(const char *dir)
{
	for (unsigned i = 0; i < TEXT_FILES; i++) {
		char path[64];
		(void)snprintf(path, sizeof(path), "%s/text-%u", dir, i);
		assert_int_equal(unlink(path), 0);
	}
}

static struct wf_set_opts
text_opts(const char *items, uint64_t window_bytes)
{
	return (struct wf_set_opts){
		.items = items,
		.source = {.path = items, .vocabulary = 30},
		.read = wf_source_read_words,
		.can_stream = true,
		.has_words = true,
		.trainers = 1,
		.window_bytes = window_bytes,
	};
}

/* Each row of a part comes once, with the words that it has in memory. */
static void
check_text(struct wf_env *env, const struct wf_set *set, const struct wf_set *whole,
	   enum wf_part part, uint64_t ahead)
{
	struct wf_walk walk;
	struct wf_block block;
	uint64_t first = 0;
	uint64_t end = 0;
	wf_set_part(whole, part, &first, &end);
	unsigned char *seen = calloc(end + 1, 1);
	assert_non_null(seen);
	assert_ok(wf_walk_init(env, set, part, ahead, &walk));
	for (uint64_t pass = 0; pass < 2; pass++) {
		size_t rows = 0;
		size_t blocks = 0;
		wf_walk_begin(&walk, 3, pass);
		assert_ok(wf_walk_next(&walk, &block));
		for (; block.rows > 0; blocks++) {
			const struct wf_words *words = &block.source->words;
			for (size_t i = 0; i < block.piece_count; i++) {
				const struct wf_piece *piece = &block.piece[i];
				for (size_t at = 0; at < piece->count; at++, rows++) {
					const uint64_t row = piece->row + at;
					assert_true(row >= first && row < end);
					assert_int_equal(seen[row]++, pass);
					const size_t here =
						wf_words_row_start(&words->runs, piece->first + at);
					const size_t there =
						wf_words_row_start(&whole->source.words.runs, row);
					assert_memory_equal(words->token + here,
							    whole->source.words.token + there,
							    (WF_WORDS_CONTEXT + 1) *
								    sizeof(uint32_t));
				}
			}
			assert_ok(wf_walk_next(&walk, &block));
		}
		assert_int_equal(rows, end - first);
		assert_true(blocks > 1);
	}
	wf_walk_fini(&walk);
	free(seen);
}

static void
rows_of_text_are_those_that_it_has_in_memory(void **state)
{
	const struct scene *scene = *state;
	static const struct {
		bool is_whole, is_validating;
	} cases[] = {{false, false}, {true, false}, {false, true}, {true, true}};
	char items[64];
	write_text(scene->dir, items);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wf_set_opts in_memory = text_opts(items, 0);
		struct wf_set_opts in_windows = text_opts(items, 1024);
		struct wf_set whole;
		struct wf_set set;
		in_memory.source.is_whole = in_windows.source.is_whole = cases[i].is_whole;
		in_memory.source.is_validating = in_windows.source.is_validating =
			cases[i].is_validating;
		assert_ok(wf_set_open(scene->env, &in_memory, &whole));
		assert_ok(wf_set_open(scene->env, &in_windows, &set));
		assert_false(whole.is_streamed);
		assert_true(set.is_streamed);
		assert_null(set.source.words.token);
		assert_int_equal(set.source.rows, whole.source.rows);
		assert_int_equal(set.source.train_rows, whole.source.train_rows);
		assert_int_equal(set.source.classes, whole.source.classes);
		assert_int_equal(set.source.key_count, whole.source.key_count);
		for (uint64_t ahead = 0; ahead < 3; ahead += 2) {
			check_text(scene->env, &set, &whole, WF_PART_TRAIN, ahead);
			check_text(scene->env, &set, &whole, WF_PART_ALL, ahead);
			if (set.source.train_rows < set.source.rows) {
				check_text(scene->env, &set, &whole, WF_PART_TEST, ahead);
			}
		}
		wf_set_close(scene->env, &set);
		wf_set_close(scene->env, &whole);
	}
	remove_text(scene->dir);
}

/* With the words of one file more, less, or none. */
static void
text_that_changes_ends_the_pass(void **state)
{
	const struct scene *scene = *state;
	static const struct {
		unsigned file;
		const char *text, *part;
	} cases[] = {
		{3, "", "text-3: was changed after it was listed"},
		{5, "a b c d e f\n", "text-5: was changed"},
		{0, NULL, "text-0: was changed"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wf_set set;
		struct wf_walk walk;
		struct wf_block block = {0};
		enum weft_status st = WEFT_OK;
		char items[64];
		char path[64];
		write_text(scene->dir, items);
		const struct wf_set_opts opts = text_opts(items, 1024);
		assert_ok(wf_set_open(scene->env, &opts, &set));
		(void)snprintf(path, sizeof(path), "%s/text-%u", scene->dir, cases[i].file);
		FILE *file = fopen(path, cases[i].text == NULL ? "a" : "w");
		assert_non_null(file);
		assert_true(fputs(cases[i].text == NULL ? "more" : cases[i].text, file) >= 0);
		assert_int_equal(fclose(file), 0);
		assert_ok(wf_walk_init(scene->env, &set, WF_PART_ALL, 0, &walk));
		wf_walk_begin(&walk, 3, 0);
		do {
			st = wf_walk_next(&walk, &block);
		} while (st == WEFT_OK && block.rows > 0);
		assert_refused(st, WEFT_DATA, cases[i].part);
		wf_walk_fini(&walk);
		wf_set_close(scene->env, &set);
		remove_text(scene->dir);
	}
}

/* An env that knows the most memory that was in use at a time. */
struct meter {
	struct heap_env heap;
	size_t peak_bytes;
};

static void *
meter_alloc(struct wf_env *env, size_t bytes, size_t align)
{
	struct meter *meter = (struct meter *)env;
	void *memory = heap_env_alloc(env, bytes, align);
	if (meter->heap.out_bytes > meter->peak_bytes) {
		meter->peak_bytes = meter->heap.out_bytes;
	}
	return memory;
}

static void
drop_log(struct wf_env *env, enum weft_log_level level, const char *line)
{
	(void)env;
	(void)level;
	(void)line;
}

#define METER_WINDOW (256u << 10)
#define CONSTANT_BYTES (512u << 10) /* what a file being read needs, and the rest */

/* The most memory that a pass over so many lines of the shortest words takes. */
static size_t
peak_of(const struct scene *scene, unsigned lines)
{
	static const struct wf_env_ops ops = {
		.alloc = meter_alloc, .free = heap_env_free, .log = drop_log};
	struct meter meter = {.heap = {.env = {.ops = &ops}}};
	struct wf_env *env = &meter.heap.env;
	struct wf_set set;
	struct wf_walk walk;
	struct wf_block block;
	size_t rows = 0;
	char path[64];
	(void)snprintf(path, sizeof(path), "%s/long", scene->dir);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	for (unsigned i = 0; i < lines; i++) {
		assert_true(fputs("a b c d e f g h\n", file) >= 0);
	}
	assert_int_equal(fclose(file), 0);
	const struct wf_set_opts opts = text_opts(path, METER_WINDOW);
	assert_ok(wf_set_open(env, &opts, &set));
	assert_ok(wf_walk_init(env, &set, WF_PART_TRAIN, 0, &walk));
	wf_walk_begin(&walk, 3, 0);
	do {
		assert_ok(wf_walk_next(&walk, &block));
		rows += block.rows;
	} while (block.rows > 0);
	assert_int_equal(rows, set.source.train_rows);
	wf_walk_fini(&walk);
	wf_set_close(env, &set);
	assert_int_equal(meter.heap.out_bytes, 0);
	assert_int_equal(unlink(path), 0);
	return meter.peak_bytes;
}

static void
memory_does_not_grow_with_the_text(void **state)
{
	const size_t bytes = peak_of(*state, 60000); /* 4 windows */
	assert_int_equal(peak_of(*state, 360000), bytes);
	print_message("%zu bytes\n", bytes);
	assert_true(bytes <= 6 * METER_WINDOW + CONSTANT_BYTES);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_set_knows_its_rows_without_having_them),
		cmocka_unit_test(each_row_of_a_part_comes_once_in_a_pass),
		cmocka_unit_test(batches_of_trainers_have_each_row_once),
		cmocka_unit_test(a_stream_can_be_left_at_any_time),
		cmocka_unit_test(a_file_that_changes_ends_the_pass),
		cmocka_unit_test(what_a_set_cannot_be_is_refused),
		cmocka_unit_test(windows_are_visited_to_the_last_whatever_is_left_of_one),
		cmocka_unit_test(rows_of_a_table_are_those_that_it_has_in_memory),
		cmocka_unit_test(a_table_whose_classes_change_ends_the_pass),
		cmocka_unit_test(rows_of_text_are_those_that_it_has_in_memory),
		cmocka_unit_test(text_that_changes_ends_the_pass),
		cmocka_unit_test(memory_does_not_grow_with_the_text),
	};
	return cmocka_run_group_tests(tests, open_scene, close_scene);
}
