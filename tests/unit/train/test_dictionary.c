/* SPDX-License-Identifier: Apache-2.0 */
/* A file of words gives them the numbers of its lines; what is no such file is refused by line. */
#include "tests/unit/train/setup.h"

#include <unistd.h>

#include "tests/unit/wire/heap_env.h"
#include "trainer/readers/dictionary.h"

#define LETTERS_63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static char path[] = "/tmp/weft-dictionary-XXXXXX";

static int
open_file(void **state)
{
	const int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
	return open_env(state);
}

static int
close_file(void **state)
{
	assert_int_equal(unlink(path), 0);
	return close_env(state);
}

static void
write_file(const char *bytes, size_t count)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, count, file), count);
	assert_int_equal(fclose(file), 0);
}

static void
a_word_has_the_number_of_its_line(void **state)
{
	static const char *const texts[] = {
		"whale\nna\xc3\xafve\ndon't\n" LETTERS_63 "\n",
		"whale\r\nna\xc3\xafve\r\ndon't\r\n" LETTERS_63, /* no last line feed */
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct wf_dictionary *dictionary;
		write_file(texts[i], strlen(texts[i]));
		assert_ok(wf_dictionary_read(*state, path, &dictionary));
		assert_int_equal(dictionary->vocabulary, 5);
		assert_string_equal(dictionary->word[0], "<unk>");
		assert_string_equal(dictionary->word[1], "whale");
		assert_int_equal(wf_dictionary_find(dictionary, "whale"), 1);
		assert_int_equal(wf_dictionary_find(dictionary, "na\xc3\xafve"), 2);
		assert_int_equal(wf_dictionary_find(dictionary, "don't"), 3);
		assert_int_equal(wf_dictionary_find(dictionary, LETTERS_63), 4);
		assert_int_equal(wf_dictionary_find(dictionary, "ship"), WF_WORDS_UNKNOWN);
		wf_dictionary_destroy(*state, dictionary);
	}
}

static void
what_is_no_dictionary_is_refused_by_line(void **state)
{
	static const struct {
		const char *text;
		size_t bytes;
		const char *part;
	} cases[] = {
		{"", 0, ": is empty; a dictionary has a word in each line"},
		{"the\nsea\nthe\n", 12, ": line 3, column 1: \"the\" is in line 1, too"},
		{"the\n\nsea\n", 9, ": line 2, column 1: \"\" is no word"},
		{"the\nSea\n", 8, ": line 2, column 1: \"Sea\" is no word"},
		{"the\nsea ship\n", 13, ": line 2, column 1: \"sea ship\" is no word"},
		{"the\nsea\t12\n", 11, ": line 2, column 1: \"sea?12\" is no word"},
		{"<unk>\nthe\n", 10, ": line 1, column 1: \"<unk>\" is no word"},
		{"'tis\n", 5, ": line 1, column 1: \"'tis\" is no word"},
		{"don\xe2\x80\x99t\n", 8, ": line 1, column 1: \"don???t\" is no word"},
		{"\xef\xbb\xbfthe\n", 7, ": line 1, column 1: \"???the\" is no word"},
		{"the\ns\xff\n", 7, ": line 2, column 2: \"?\" is not UTF-8"},
		{"the\ns\0a\n", 8, ": line 2, column 2: \"?\" is a control character"},
		{"the\n" LETTERS_63 "a\n", 69, "\" is longer than the 63 bytes of a word"},
		{"\x1f\x8b\x08\x00", 4, path},
	};
	struct wf_dictionary *dictionary;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		write_file(cases[i].text, cases[i].bytes);
		assert_refused(wf_dictionary_read(*state, path, &dictionary), WEFT_DATA,
			       cases[i].part);
		assert_non_null(strstr(weft_last_error(), path));
	}
	assert_refused(wf_dictionary_read(*state, "/nonexistent/file", &dictionary), WEFT_DATA,
		       "/nonexistent/file");
}

/* A dictionary has at most 2^20 - 1 words, one less than the numbers. */
static void
a_dictionary_has_no_more_words_than_numbers(void **state)
{
	struct wf_dictionary *dictionary;
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	for (uint32_t i = 0; i < WF_WORDS_VOCABULARY_MAX - 1; i++) {
		for (uint32_t digit = 0; digit < 5; digit++) {
			assert_true(fputc('a' + (int)(i >> 4 * digit & 15), file) != EOF);
		}
		assert_true(fputc('\n', file) != EOF);
	}
	assert_int_equal(fflush(file), 0);
	assert_ok(wf_dictionary_read(*state, path, &dictionary));
	assert_int_equal(dictionary->vocabulary, WF_WORDS_VOCABULARY_MAX);
	assert_int_equal(wf_dictionary_find(dictionary, "aaaaa"), 1);
	assert_int_equal(wf_dictionary_find(dictionary, "opppp"), WF_WORDS_VOCABULARY_MAX - 1);
	wf_dictionary_destroy(*state, dictionary);
	assert_true(fputs("one\n", file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_refused(wf_dictionary_read(*state, path, &dictionary), WEFT_DATA,
		       ": line 1048576, column 1: \"one\" is behind the 1048575 words");
}

static void
too_little_memory_is_refused_and_none_is_lost(void **state)
{
	enum weft_status st = WEFT_NOMEM;
	(void)state;
	write_file("the\nsea\n", 8);
	for (unsigned fail_at = 1; st != WEFT_OK; fail_at++) {
		struct heap_env heap = heap_env_make();
		struct wf_dictionary *dictionary = NULL;
		assert_true(fail_at < 40);
		heap.fail_at = fail_at;
		st = wf_dictionary_read(&heap.env, path, &dictionary);
		assert_true(st == WEFT_OK || st == WEFT_NOMEM);
		wf_dictionary_destroy(&heap.env, dictionary);
		assert_int_equal(heap.out_bytes, 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_word_has_the_number_of_its_line),
		cmocka_unit_test(what_is_no_dictionary_is_refused_by_line),
		cmocka_unit_test(a_dictionary_has_no_more_words_than_numbers),
		cmocka_unit_test(too_little_memory_is_refused_and_none_is_lost),
	};
	return cmocka_run_group_tests(tests, open_file, close_file);
}
