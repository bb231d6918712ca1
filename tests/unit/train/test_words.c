/* SPDX-License-Identifier: Apache-2.0 */
/* Running text becomes words as words.h says, the vocabulary comes from the training part alone,
 * and what is no text is refused by line and byte. */
#include "tests/unit/train/text_setup.h"

#include "tests/unit/wire/heap_env.h"
#include "trainer/models/word_counts.h"
#include "trainer/readers/dataset.h"
#include "trainer/readers/letters.h"
#include "trainer/readers/words.h"

/* The words of a text with a blank after each. */
static void
cut_is(struct wf_env *env, const char *text, const char *expected)
{
	struct wf_text made = text_of_bytes(env, text, strlen(text));
	size_t words = 0;
	size_t blanks = 0;

	assert_ok(wf_letters_cut(&made, NULL, &words));
	for (size_t i = 0; i < made.count; i++) {
		if (made.bytes[i] == '\0') {
			made.bytes[i] = ' ';
			blanks++;
		}
	}
	assert_int_equal(made.count, strlen(expected));
	assert_memory_equal(made.bytes, expected, made.count);
	assert_int_equal(words, blanks);
	wf_text_fini(env, &made);
}

static void
words_are_lower_case_letters_with_apostrophes_inside(void **state)
{
	cut_is(*state, "", "");
	cut_is(*state, "Call me Ishmael.", "call me ishmael ");
	cut_is(*state, "years ago\xe2\x80\x94never mind", "years ago never mind ");
	cut_is(*state, "people\xe2\x80\x99s Don't 'Tis whales' ", "people's don't tis whales ");
	cut_is(*state, "'' a'' b'''c", "a b c ");
	cut_is(*state, "rock'n'roll", "rock'n'roll ");
	cut_is(*state, "1851 3rd CHAPTER 2.", "rd chapter ");
	cut_is(*state, "well-known (a_b)", "well known a b ");
	cut_is(*state, "\xef\xbb\xbfThe\r\n\tend\f", "the end ");
	cut_is(*state,
	       "na\xc3\xafve \xe9\xaf\xa8 2\xc3\x97"
	       "3",
	       "na\xc3\xafve \xe9\xaf\xa8 ");
}

static void
what_is_no_text_is_refused_by_line_and_byte(void **state)
{
	static const struct {
		const char *text;
		size_t bytes;
		const char *part;
	} cases[] = {
		{"ab\0cd", 5, "line 1, column 3: \"?\" is a control character"},
		{"ab\n\x7f", 4, "line 2, column 1: \"?\" is a control character"},
		{"ab\nc\n de\xff", 9, "line 3, column 4: \"?\" is not UTF-8"},
		{"\x80", 1, "line 1, column 1: \"?\" is not UTF-8"},
		{"\xc0\x80", 2, "is not UTF-8"},
		{"\xc3", 1, "is not UTF-8"},
		{"a\xe2\x80", 3, "line 1, column 2: \"?\" is not UTF-8"},
		{"\xe2\x28\xa1", 3, "is not UTF-8"},
		{"\xe0\x80\x80", 3, "is not UTF-8"},
		{"\xed\xa0\x80", 3, "is not UTF-8"},
		{"\xf4\x90\x80\x80", 4, "is not UTF-8"},
		{"\xf0\x80\x80\x80", 4, "is not UTF-8"},
		{"\xf8\x80\x80\x80\x80", 5, "is not UTF-8"},
		{"b aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 66,
		 "line 1, column 66: \"a\" is in a word longer than 63"},
		{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'a", 65,
		 "line 1, column 65: \"a\" is in a word longer than 63"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t words = 0;
		struct wf_text made = text_of_bytes(*state, cases[i].text, cases[i].bytes);
		assert_refused(wf_letters_cut(&made, NULL, &words), WEFT_DATA, cases[i].part);
		assert_non_null(strstr(weft_last_error(), "made.txt: "));
		wf_text_fini(*state, &made);
	}
}

static enum weft_status
parse(struct wf_env *env, const char *text, uint32_t vocabulary, struct wf_words *out)
{
	struct wf_text made = text_of_bytes(env, text, strlen(text));
	const struct wf_words_opts opts = {.vocabulary = vocabulary};
	const size_t bytes = made.alloc_bytes;
	enum weft_status st = wf_words_parse(env, &made, &opts, out);
	wf_free(env, made.bytes, bytes);
	return st;
}

#define TEN_WORDS "the sea the whale a sea the ship a man "
#define TRAINING TEN_WORDS TEN_WORDS TEN_WORDS TEN_WORDS

static void
words_are_numbered_by_count_then_bytes(void **state)
{
	static const char *const expected[] = {"<unk>", "the", "a", "sea", "man", "ship", "whale"};
	static const uint32_t counts[] = {0, 12, 8, 8, 4, 4, 4};
	struct wf_words words;

	assert_ok(parse(*state, TRAINING "the new word the sea the sea the sea new", 100, &words));
	assert_int_equal(words.tokens, 50);
	assert_int_equal(words.train_tokens, 40);
	assert_int_equal(words.dictionary->vocabulary, 7);
	for (uint32_t i = 0; i < 7; i++) {
		assert_string_equal(words.dictionary->word[i], expected[i]);
		assert_int_equal(words.dictionary->count[i], counts[i]);
	}
	static const uint32_t start[] = {1, 3, 1, 6, 2, 3, 1, 5, 2, 4};
	assert_memory_equal(words.token, start, sizeof(start));
	/* "new" and "word" are in the test part only, where they have no number. */
	static const uint32_t end[] = {1, 0, 0, 1, 3, 1, 3, 1, 3, 0};
	assert_memory_equal(words.token + 40, end, sizeof(end));
	wf_words_fini(*state, &words);
}

static void
words_beyond_the_cap_are_unknown(void **state)
{
	struct wf_words words;
	assert_ok(parse(*state, TRAINING TEN_WORDS, 3, &words));
	assert_int_equal(words.dictionary->vocabulary, 3);
	assert_string_equal(words.dictionary->word[2], "a");
	assert_int_equal(words.dictionary->count[WF_WORDS_UNKNOWN], 20);
	static const uint32_t start[] = {1, 0, 1, 0, 2, 0, 1, 0, 2, 0};
	assert_memory_equal(words.token, start, sizeof(start));
	wf_words_fini(*state, &words);
}

static void
no_row_spans_the_border_of_training_and_test(void **state)
{
	struct wf_words words;
	assert_ok(parse(*state, TRAINING TEN_WORDS, 100, &words));
	assert_int_equal(words.train_rows, 36);
	assert_int_equal(words.rows, 36 + 6);
	assert_int_equal(wf_words_row_start(&words.runs, 35) + WF_WORDS_CONTEXT, 39);
	assert_int_equal(wf_words_row_start(&words.runs, 36), 40);
	assert_int_equal(wf_words_row_start(&words.runs, 41) + WF_WORDS_CONTEXT, 49);
	wf_words_fini(*state, &words);
}

#define TWELVE_WORDS "a b c d e f g h i j k l "

static void
no_row_has_words_of_two_files(void **state)
{
	static const char *const lines[] = {TWELVE_WORDS TWELVE_WORDS "\n",
					    TWELVE_WORDS "m n o p\n", "q r s\n", "t u v w\n",
					    TWELVE_WORDS "x"};
	static const size_t counts[] = {24, 16, 3, 4, 13};
	const struct wf_words_opts whole = {.vocabulary = 100, .is_whole = true};
	const struct wf_words_opts split = {.vocabulary = 100};
	struct wf_text_piece piece[5];
	struct wf_words words;
	char all[256];
	size_t rows = 0;
	size_t at = 0;

	all[0] = '\0';
	for (size_t i = 0; i < 5; i++) {
		piece[i] = (struct wf_text_piece){.at = strlen(all), .line = 1, .lines = 1};
		snprintf(all + piece[i].at, sizeof(all) - piece[i].at, "%s", lines[i]);
		rows += counts[i] > WF_WORDS_CONTEXT ? counts[i] - WF_WORDS_CONTEXT : 0;
	}
	struct wf_text text = text_of_bytes(*state, all, strlen(all));
	text.piece = piece;
	text.piece_count = 5;
	assert_ok(wf_words_parse(*state, &text, &whole, &words));
	wf_text_fini(*state, &text);
	assert_int_equal(words.tokens, 60);
	assert_int_equal(words.train_tokens, 60);
	assert_int_equal(words.rows, rows);
	assert_int_equal(words.train_rows, rows);
	for (size_t i = 0, row = 0; i < 5; at += counts[i++]) {
		for (size_t word = 0; word + WF_WORDS_CONTEXT < counts[i]; word++, row++) {
			assert_int_equal(wf_words_row_start(&words.runs, row), at + word);
		}
	}
	wf_words_fini(*state, &words);

	/* Four fifths end behind the first word of the last file. */
	text = text_of_bytes(*state, all, strlen(all));
	text.piece = piece;
	text.piece_count = 5;
	assert_ok(wf_words_parse(*state, &text, &split, &words));
	wf_text_fini(*state, &text);
	assert_int_equal(words.train_tokens, 48);
	assert_int_equal(words.train_rows, 20 + 12);
	assert_int_equal(words.rows, 20 + 12 + 8);
	assert_int_equal(wf_words_row_start(&words.runs, 32), 48);
	wf_words_fini(*state, &words);
}

static void
files_too_short_for_a_row_are_refused(void **state)
{
	static const char line[] = "a b c d\n";
	struct wf_text_piece piece[15];
	struct wf_words words;
	char all[15 * sizeof(line)];

	for (size_t i = 0; i < 15; i++) {
		piece[i] = (struct wf_text_piece){.at = i * (sizeof(line) - 1), .line = 1};
		memcpy(all + piece[i].at, line, sizeof(line));
	}
	for (size_t whole = 0; whole < 2; whole++) {
		const struct wf_words_opts opts = {.vocabulary = 9, .is_whole = whole == 1};
		struct wf_text text = text_of_bytes(*state, all, strlen(all));
		text.piece = piece;
		text.piece_count = 15;
		assert_refused(wf_words_parse(*state, &text, &opts, &words), WEFT_DATA,
			       "made.txt: its words to train on are in files of less than 5");
		wf_text_fini(*state, &text);
	}
}

/* The numbers are those of the words that were counted, in whatever portions. */
static void
a_dictionary_of_other_words_numbers_these(void **state)
{
	static const char counted[] = "sea\0the\0sea\0ship\0the\0sea";
	struct wf_dictionary *dictionary;
	struct wf_census census = {0};
	struct wf_words words;

	assert_ok(wf_census_add(*state, &census, "one.txt", counted, 4));
	assert_ok(wf_census_add(*state, &census, "two.txt", counted + 17, 2));
	assert_ok(wf_census_add(*state, &census, "none.txt", "", 0));
	assert_ok(wf_dictionary_create(*state, &census, 3, &dictionary));
	wf_census_fini(*state, &census);
	assert_int_equal(dictionary->vocabulary, 3);
	assert_string_equal(dictionary->word[1], "sea");
	assert_int_equal(dictionary->count[1], 3);
	assert_string_equal(dictionary->word[2], "the");
	assert_int_equal(dictionary->count[WF_WORDS_UNKNOWN], 1);
	assert_int_equal(wf_dictionary_find(dictionary, "ship"), WF_WORDS_UNKNOWN);
	assert_int_equal(wf_dictionary_find(dictionary, "whale"), WF_WORDS_UNKNOWN);

	struct wf_text text = text_of_bytes(*state, TRAINING TEN_WORDS, strlen(TRAINING TEN_WORDS));
	const struct wf_words_opts opts = {.dictionary = dictionary, .is_whole = true};
	assert_ok(wf_words_parse(*state, &text, &opts, &words));
	wf_text_fini(*state, &text);
	assert_ptr_equal(words.dictionary, dictionary);
	static const uint32_t start[] = {2, 1, 2, 0, 0, 1, 2, 0, 0, 0};
	assert_memory_equal(words.token, start, sizeof(start));
	wf_words_fini(*state, &words);
	wf_dictionary_destroy(*state, dictionary);
}

/* Lines of two files, a few of them in a window. */
static struct wf_text
window_of(struct wf_env *env, const char *const lines[], const struct wf_text_piece *piece,
	  size_t pieces)
{
	char all[256] = "";
	for (size_t i = 0; i < pieces; i++) {
		assert_int_equal(piece[i].at, strlen(all));
		snprintf(all + piece[i].at, sizeof(all) - piece[i].at, "%s", lines[i]);
	}
	struct wf_text text = text_of_bytes(env, all, strlen(all));
	text.piece = piece;
	text.piece_count = pieces;
	return text;
}

/* Of the words a to w in two files, rows are made of c to m and of o to u. */
static void
a_row_is_in_the_window_of_its_last_word(void **state)
{
	static const struct wf_words_span span[2] = {
		{.path = "one", .words = 14, .first = 2, .end = 13},
		{.path = "two", .words = 9, .first = 0, .end = 7},
	};
	static const char *const lines[][2] = {{"a b c d\n"},
					       {"1 2 3\n"},
					       {"e f\n"},
					       {"g h i j k l m n\n", "o p\n"},
					       {"q r s t u v w"}};
	static const struct wf_text_piece piece[][2] = {
		{{.path = "one", .line = 1, .lines = 1}},
		{{.path = "one", .line = 2, .lines = 1}},
		{{.path = "one", .line = 3, .lines = 1}},
		{{.path = "one", .line = 4, .lines = 1},
		 {.path = "two", .line = 1, .lines = 1, .at = 16, .file = 1}},
		{{.path = "two", .line = 2, .lines = 1, .file = 1}},
	};
	static const size_t pieces[] = {1, 1, 1, 2, 1};
	static const size_t rows[] = {0, 0, 0, 7, 3};
	static const char first[] = "...co"; /* word of the first row */
	static const char alphabet[] =
		"a\0b\0c\0d\0e\0f\0g\0h\0i\0j\0k\0l\0m\0n\0o\0p\0q\0r\0s\0t\0u\0v\0w";
	struct wf_words_place place = {.span = span, .span_count = 2};
	struct wf_census census = {0};
	struct wf_dictionary *dictionary;
	struct wf_words words;
	assert_ok(wf_census_add(*state, &census, "all", alphabet, 23));
	assert_ok(wf_dictionary_create_in_order(*state, &census, &dictionary));
	wf_census_fini(*state, &census);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct wf_text text = window_of(*state, lines[i], piece[i], pieces[i]);
		assert_ok(wf_words_parse_window(*state, &text, dictionary, &place, &words));
		wf_text_fini(*state, &text);
		assert_int_equal(words.runs.count, pieces[i]);
		assert_int_equal(words.rows, rows[i]);
		for (size_t row = 0; row < rows[i]; row++) {
			const uint32_t *token = words.token + wf_words_row_start(&words.runs, row);
			for (uint32_t word = 0; word <= WF_WORDS_CONTEXT; word++) {
				assert_int_equal(token[word],
						 (uint32_t)(first[i] - 'a') + 1 + row + word);
			}
		}
		wf_words_fini(*state, &words);
	}
	assert_ok(wf_words_end_windows(&place));

	/* A file that has lost its words is noticed by the next one. */
	place = (struct wf_words_place){.span = span, .span_count = 2};
	struct wf_text text = window_of(*state, lines[4], piece[4], 1);
	assert_refused(wf_words_parse_window(*state, &text, dictionary, &place, &words), WEFT_DATA,
		       "one: has 0 words now, and had 14 when it was opened");
	wf_text_fini(*state, &text);
	assert_refused(wf_words_end_windows(&place), WEFT_DATA, "one: has 0 words now");
	wf_dictionary_destroy(*state, dictionary);
}

static void
a_batch_is_four_words_and_the_next(void **state)
{
	struct wf_words words;
	struct wf_bag_batch batch;
	static const uint32_t rows[] = {2, 36};
	static const uint64_t key[] = {1, 6, 2, 3, 1, 3, 1, 6};
	static const uint32_t first[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
	const struct wf_bag_batch_opts opts = {
		.slots = WF_WORDS_CONTEXT, .rows_max = 2, .row_entries_max = WF_WORDS_CONTEXT};

	assert_ok(parse(*state, TRAINING TEN_WORDS, 100, &words));
	assert_ok(wf_bag_batch_init(*state, &opts, &batch));
	wf_words_gather(&words, rows, 2, &batch);
	assert_int_equal(batch.rows, 2);
	assert_memory_equal(batch.key, key, sizeof(key));
	assert_memory_equal(batch.first, first, sizeof(first));
	assert_true(batch.y[0] == 1.0f && batch.y[1] == 2.0f && batch.weight[7] == 1.0f);
	wf_bag_batch_fini(*state, &batch);
	wf_words_fini(*state, &words);
}

static void
too_short_a_text_is_refused(void **state)
{
	const struct wf_words_opts ten = {.vocabulary = 10};
	struct wf_words words;
	assert_refused(parse(*state, "", 10, &words), WEFT_DATA, "made.txt: has 0 words");
	assert_refused(
		parse(*state, TRAINING "only nine words more are in this made text", 10, &words),
		WEFT_DATA, "has 49 words; at least 50");
	assert_refused(wf_words_read(*state, "/nonexistent/file", &ten, &words), WEFT_DATA,
		       "/nonex");
}

static void
too_little_memory_is_said_and_none_is_lost(void **state)
{
	struct wf_word_counts counts;
	struct wf_words words;
	for (unsigned fail_at = 2; fail_at <= 15; fail_at++) { /* 1 is the text itself */
		struct heap_env heap = heap_env_make();
		heap.fail_at = fail_at;
		enum weft_status st = parse(&heap.env, TRAINING TEN_WORDS, 100, &words);
		if (fail_at == 15) { /* all that the words need is there */
			assert_ok(st);
			assert_refused(wf_word_counts_solve(&heap.env, &words, &counts), WEFT_NOMEM,
				       "39 pairs");
			wf_words_fini(&heap.env, &words);
		} else {
			assert_int_equal(st, WEFT_NOMEM);
		}
		assert_int_equal(heap.out_bytes, 0);
	}
}

static void
the_novel_has_these_words(void **state)
{
	const struct wf_words_opts opts = {.vocabulary = WF_WORDS_VOCABULARY_MAX};
	char path[WF_DATA_PATH_BYTES];
	struct wf_words words;

	assert_ok(wf_data_find("moby-dick.txt", path));
	assert_ok(wf_words_read(*state, path, &opts, &words));
	assert_int_equal(words.tokens, 212053);
	assert_int_equal(words.train_tokens, 169642);
	assert_int_equal(words.dictionary->vocabulary, 15453 + 1);
	assert_string_equal(words.dictionary->word[1], "the");
	assert_int_equal(words.dictionary->count[1], 11270);
	assert_string_equal(words.dictionary->word[6], "in");
	assert_int_equal(words.dictionary->count[6], 3384);
	assert_string_equal(words.dictionary->word[15453], "zogranda");
	assert_string_equal(words.dictionary->word[words.token[2]], "call");
	assert_string_equal(words.dictionary->word[words.token[4]], "ishmael");
	wf_words_fini(*state, &words);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_lower_case_letters_with_apostrophes_inside),
		cmocka_unit_test(what_is_no_text_is_refused_by_line_and_byte),
		cmocka_unit_test(words_are_numbered_by_count_then_bytes),
		cmocka_unit_test(words_beyond_the_cap_are_unknown),
		cmocka_unit_test(no_row_spans_the_border_of_training_and_test),
		cmocka_unit_test(no_row_has_words_of_two_files),
		cmocka_unit_test(files_too_short_for_a_row_are_refused),
		cmocka_unit_test(a_dictionary_of_other_words_numbers_these),
		cmocka_unit_test(a_row_is_in_the_window_of_its_last_word),
		cmocka_unit_test(a_batch_is_four_words_and_the_next),
		cmocka_unit_test(too_short_a_text_is_refused),
		cmocka_unit_test(too_little_memory_is_said_and_none_is_lost),
		cmocka_unit_test(the_novel_has_these_words),
	};
	return cmocka_run_group_tests(tests, open_env, close_env);
}
