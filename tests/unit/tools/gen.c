/* SPDX-License-Identifier: Apache-2.0 */
/* What weft gen writes, text by text: scalars and structure of YAML, words of a shell. Whether
 * others read them as they were meant is tested in tests/programs/gen.py. Thread: main. */
#include <stdarg.h>
#include <stdbool.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/assert.h"
#include "tools/gen/shell.h"
#include "tools/gen/yaml.h"

struct page {
	char *text;
	size_t bytes;
	struct wf_yaml yaml;
};

static void
page_open(struct page *page)
{
	*page = (struct page){0};
	page->yaml.out = open_memstream(&page->text, &page->bytes);
	assert_non_null(page->yaml.out);
}

static void
page_is(struct page *page, const char *wanted)
{
	assert_int_equal(fclose(page->yaml.out), 0);
	assert_string_equal(page->text, wanted);
	free(page->text);
}

static void
a_text_is_plain_only_where_it_can_be_nothing_else(void **state)
{
	static const struct {
		const char *text, *wanted;
	} cases[] = {
		{"weft", "k: weft\n"},
		{"/data/day_0", "k: /data/day_0\n"},
		{"registry/weft.x-1", "k: registry/weft.x-1\n"},
		{"", "k: \"\"\n"},
		{"yes", "k: \"yes\"\n"},
		{"No", "k: \"No\"\n"},
		{"NULL", "k: \"NULL\"\n"},
		{"y", "k: \"y\"\n"},
		{"yess", "k: yess\n"},
		{"12", "k: \"12\"\n"},
		{"1e3", "k: \"1e3\"\n"},
		{".5", "k: \".5\"\n"},
		{"-x", "k: \"-x\"\n"},
		{"~", "k: \"~\"\n"},
		{"a b", "k: \"a b\"\n"},
		{"a:b", "k: \"a:b\"\n"},
		{"a\n\tb\r", "k: \"a\\n\\tb\\U0000000D\"\n"},
		{"\x1b[1m\x7f", "k: \"\\U0000001B[1m\\U0000007F\"\n"},
		{"a\"\\b", "k: \"a\\\"\\\\b\"\n"},
		{"\xe6\x95\xb0", "k: \"\xe6\x95\xb0\"\n"},
		{"\xc2\x85", "k: \"\\U00000085\"\n"},
		{"\xe2\x80\xa8", "k: \"\\U00002028\"\n"},
		{"\xef\xbb\xbf", "k: \"\\U0000FEFF\"\n"},
		{"\xf0\x9f\x98\x80", "k: \"\xf0\x9f\x98\x80\"\n"},
		{"$(A) $$", "k: \"$(A) $$\"\n"},
	};

	(void)state;
	for (size_t i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		struct page page;
		page_open(&page);
		wf_yaml_text(&page.yaml, "k", cases[i].text);
		assert_int_equal(wf_yaml_check(&page.yaml), WEFT_OK);
		page_is(&page, cases[i].wanted);
	}
}

static void
what_is_no_utf8_is_refused(void **state)
{
	static const char *const cases[] = {
		"\xff",             /* no first byte */
		"a\x80",            /* a following byte alone */
		"\xc3",             /* cut off */
		"\xe2\x80",         /* cut off */
		"\xc0\x80",         /* NUL, longer than necessary */
		"\xe0\x80\x80",     /* the same */
		"\xed\xa0\x80",     /* a surrogate */
		"\xf4\x90\x80\x80", /* past the last character */
		"\xf8\x88\x80\x80\x80",
	};

	(void)state;
	for (size_t i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		struct page page;
		page_open(&page);
		wf_yaml_item_text(&page.yaml, cases[i]);
		assert_int_equal(wf_yaml_check(&page.yaml), WEFT_INVALID);
		assert_non_null(strstr(weft_last_error(), "UTF-8"));
		assert_int_equal(fclose(page.yaml.out), 0);
		free(page.text);
	}
}

static void
dollars_are_doubled_where_they_would_begin_an_expansion(void **state)
{
	struct page page;

	(void)state;
	page_open(&page);
	page.yaml.doubles_dollars = true;
	wf_yaml_item_text(&page.yaml, "$A ${A} $(A) $$ $$(A) $");
	page_is(&page, "- \"$A ${A} $$(A) $$$ $$$$(A) $\"\n");
}

static void
maps_and_lists_stand_in_each_other(void **state)
{
	struct page page;
	struct wf_yaml *yaml = &page.yaml;

	(void)state;
	page_open(&page);
	wf_yaml_comment(yaml, "one\ntwo");
	wf_yaml_map(yaml, "spec");
	wf_yaml_number(yaml, "count", 3);
	wf_yaml_empty_list(yaml, "none");
	wf_yaml_list(yaml, "items");
	wf_yaml_item(yaml);
	wf_yaml_map(yaml, "first");
	wf_yaml_truth(yaml, "good", true);
	wf_yaml_map_end(yaml);
	wf_yaml_list(yaml, "values");
	wf_yaml_item_number(yaml, 1);
	wf_yaml_item_text(yaml, "a");
	wf_yaml_item_end(yaml);
	wf_yaml_item(yaml);
	wf_yaml_text(yaml, "name", "b");
	wf_yaml_item_end(yaml);
	wf_yaml_map_end(yaml);
	wf_yaml_document(yaml);
	wf_yaml_text(yaml, "kind", "Secret");
	assert_int_equal(wf_yaml_check(yaml), WEFT_OK);
	page_is(&page, "# one\n# two\n"
		       "spec:\n"
		       "  count: 3\n"
		       "  none: []\n"
		       "  items:\n"
		       "  - first:\n"
		       "      good: true\n"
		       "    values:\n"
		       "    - 1\n"
		       "    - a\n"
		       "  - name: b\n"
		       "---\n"
		       "kind: Secret\n");
}

static void
words_of_a_shell_are_quoted_where_they_must_be(void **state)
{
	static const char *const words[] = {
		"python3", "--x=1,2", "--x=a b", "A=b", "", "it's", "$HOME", "~", "a\nb", "-",
	};
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	(void)state;
	assert_non_null(out);
	for (size_t i = 0; i < WF_ARRAY_COUNT(words); i++) {
		wf_shell_word(out, words[i]);
		fputc(' ', out);
	}
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, "python3 --x=1,2 '--x=a b' 'A=b' '' 'it'\\''s' '$HOME' '~' "
				  "'a\nb' - ");
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_is_plain_only_where_it_can_be_nothing_else),
		cmocka_unit_test(what_is_no_utf8_is_refused),
		cmocka_unit_test(dollars_are_doubled_where_they_would_begin_an_expansion),
		cmocka_unit_test(maps_and_lists_stand_in_each_other),
		cmocka_unit_test(words_of_a_shell_are_quoted_where_they_must_be),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
