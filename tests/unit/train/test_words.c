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

	assert_ok(wf_letters_cut(&made, &words));
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
		assert_refused(wf_letters_cut(&made, &words), WEFT_DATA, cases[i].part);
		assert_non_null(strstr(weft_last_error(), "made.txt: "));
		wf_text_fini(*state, &made);
	}
}

static enum weft_status
parse(struct wf_env *env, const char *text, uint32_t vocabulary, struct wf_words *out)
{
	struct wf_text made = text_of_bytes(env, text, strlen(text));
	enum weft_status st = wf_words_parse(env, &made, vocabulary, out);
	assert_null(made.bytes); /* taken, whatever became of it */
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
	assert_int_equal(words.vocabulary, 7);
	for (uint32_t i = 0; i < 7; i++) {
		assert_string_equal(words.word[i], expected[i]);
		assert_int_equal(words.count[i], counts[i]);
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
	assert_int_equal(words.vocabulary, 3);
	assert_string_equal(words.word[2], "a");
	assert_int_equal(words.count[WF_WORDS_UNKNOWN], 20);
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
	assert_int_equal(wf_words_row_start(&words, 35) + WF_WORDS_CONTEXT, 39);
	assert_int_equal(wf_words_row_start(&words, 36), 40);
	assert_int_equal(wf_words_row_start(&words, 41) + WF_WORDS_CONTEXT, 49);
	wf_words_fini(*state, &words);
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
	struct wf_words words;
	assert_refused(parse(*state, "", 10, &words), WEFT_DATA, "made.txt: has 0 words");
	assert_refused(
		parse(*state, TRAINING "only nine words more are in this made text", 10, &words),
		WEFT_DATA, "has 49 words; at least 50");
	assert_refused(wf_words_read(*state, "/nonexistent/file", 10, &words), WEFT_IO, "/nonex");
}

static void
too_little_memory_is_said_and_none_is_lost(void **state)
{
	struct wf_word_counts counts;
	struct wf_words words;
	for (unsigned fail_at = 2; fail_at <= 9; fail_at++) { /* 1 is the text itself */
		struct heap_env heap = heap_env_make();
		heap.fail_at = fail_at;
		enum weft_status st = parse(&heap.env, TRAINING TEN_WORDS, 100, &words);
		if (fail_at == 9) { /* all that the words need is there */
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
	char path[WF_DATA_PATH_BYTES];
	struct wf_words words;

	assert_ok(wf_data_find("moby-dick.txt", path));
	assert_ok(wf_words_read(*state, path, WF_WORDS_VOCABULARY_MAX, &words));
	assert_int_equal(words.tokens, 212053);
	assert_int_equal(words.train_tokens, 169642);
	assert_int_equal(words.vocabulary, 15453 + 1);
	assert_string_equal(words.word[1], "the");
	assert_int_equal(words.count[1], 11270);
	assert_string_equal(words.word[6], "in");
	assert_int_equal(words.count[6], 3384);
	assert_string_equal(words.word[15453], "zogranda");
	assert_string_equal(words.word[words.token[2]], "call");
	assert_string_equal(words.word[words.token[4]], "ishmael");
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
		cmocka_unit_test(a_batch_is_four_words_and_the_next),
		cmocka_unit_test(too_short_a_text_is_refused),
		cmocka_unit_test(too_little_memory_is_said_and_none_is_lost),
		cmocka_unit_test(the_novel_has_these_words),
	};
	return cmocka_run_group_tests(tests, open_env, close_env);
}
