/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of numbers with a header are read whatever their width, separator and target; what does
 * not fit the header is refused by file, line, column and value. */
#include "tests/unit/train/text_setup.h"

#include "base/assert.h"
#include "tests/unit/wire/heap_env.h"
#include "trainer/readers/csv.h"
#include "trainer/readers/sheet.h"

static const struct wf_sheet_opts plain = {.kind = WF_SHEET_COLUMNS};
static const struct wf_sheet_opts classes = {.kind = WF_SHEET_COLUMNS, .has_classes = true};

static enum weft_status
parse(struct wf_env *env, const char *bytes, const struct wf_sheet_opts *opts,
      struct wf_dataset *out)
{
	struct wf_text text = text_of_bytes(env, bytes, strlen(bytes));
	enum weft_status st = wf_sheet_parse_whole(env, &text, opts, out);
	wf_text_fini(env, &text);
	return st;
}

/* Features of row `row`, and its target. */
static void
assert_row(const struct wf_dataset *dataset, size_t row, const float *x, float y)
{
	assert_memory_equal(dataset->x + row * dataset->features, x,
			    dataset->features * sizeof(*x));
	assert_true(dataset->y[row] == y);
}

static void
columns_are_features_and_the_last_one_is_the_target(void **state)
{
	static const float first[] = {1.5f, -2.0f};
	static const float last[] = {5.0f, 500.0f};
	struct wf_dataset dataset;

	assert_ok(parse(*state, "a,b,price\n1.5,-2,3\n2,2,2\r\n3,3,3\n4,4,4\n5,5e2,-0.25", &plain,
			&dataset));
	assert_int_equal(dataset.features, 2);
	assert_int_equal(dataset.classes, 0);
	assert_int_equal(dataset.rows, 5);
	assert_int_equal(dataset.train_rows, 4);
	assert_row(&dataset, 0, first, 3.0f);
	assert_row(&dataset, 4, last, -0.25f);
	wf_dataset_fini(*state, &dataset);
}

static void
the_target_is_found_by_its_name(void **state)
{
	static const char *const names[] = {"a", "b", "c, d"};
	static const float x[][2] = {{2, 3}, {1, 3}, {1, 2}};
	struct wf_dataset dataset;

	for (unsigned i = 0; i < 3; i++) {
		const struct wf_sheet_opts opts = {.kind = WF_SHEET_COLUMNS, .target = names[i]};
		assert_ok(parse(*state, "a,\"b\",\"c, d\"\n1,2,3\n1,2,3\n1,2,3\n1,2,3\n1,2,3\n",
				&opts, &dataset));
		assert_row(&dataset, 4, x[i], (float)(i + 1));
		wf_dataset_fini(*state, &dataset);
	}
	assert_refused(parse(*state, "a,b\n1,2\n",
			     &(struct wf_sheet_opts){.kind = WF_SHEET_COLUMNS, .target = "z"},
			     &dataset),
		       WEFT_DATA, "made.txt: line 1: no column is named z; there are a, b");
	assert_refused(parse(*state,
			     "a\1,bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,"
			     "s,t,u,v,w,x,y,z,A,B,C,D,E,F,G,H,I,J,K,L,M,N,O,P,Q,R,S,T,U,V,W,"
			     "XXXXXXXXXXXXXXXXXXXXXX,YYYYYYYYYYYYYYYYYYYYYY,Z,Z\n",
			     &(struct wf_sheet_opts){.kind = WF_SHEET_COLUMNS, .target = "none"},
			     &dataset),
		       WEFT_DATA, "there are a?, bbbbbbbbbbbbbbbbbbbbbbbb, c, d,");
	assert_non_null(strstr(wf_error_record()->text, ", W, XXXXXXXXXXXXXXXXXXXXXX and 3 more"));
	assert_refused(parse(*state, "a,a\n1,2\n",
			     &(struct wf_sheet_opts){.kind = WF_SHEET_COLUMNS, .target = "a"},
			     &dataset),
		       WEFT_DATA, "has 2 columns named a");
}

static void
separator_quotes_and_mark_are_those_of_the_header(void **state)
{
	static const char *const texts[] = {
		"a;b\n1;2\n1;2\n1;2\n1;2\n1;2\n",
		"a\tb\n1\t2\n1\t2\n1\t2\n1\t2\n1\t2\n",
		"\xef\xbb\xbf\"a\",b\n\"1\",\"2\"\n1,\"2\"\n\"1\",2\r\n1,2\n1,\"2\"\r\n",
		"\"a,x\";\"b \"\"quoted\"\"\"\n1;2\n1;2\n1;2\n1;2\n1;2\n",
	};
	static const float x[] = {1};
	struct wf_dataset dataset;

	for (unsigned i = 0; i < 4; i++) {
		assert_ok(parse(*state, texts[i], &plain, &dataset));
		assert_int_equal(dataset.features, 1);
		for (size_t row = 0; row < 5; row++) {
			assert_row(&dataset, row, x, 2.0f);
		}
		wf_dataset_fini(*state, &dataset);
	}
	for (unsigned i = 0; i < 4; i++) {
		static const char *const targets[] = {"b \"quoted\"", "b \"\"quoted\"\"",
						      "b \"quoted", "b \"quoted\" "};
		const struct wf_sheet_opts opts = {.kind = WF_SHEET_COLUMNS, .target = targets[i]};
		enum weft_status st = parse(*state, texts[3], &opts, &dataset);
		assert_int_equal(st, i == 0 ? WEFT_OK : WEFT_DATA);
		if (st == WEFT_OK) {
			wf_dataset_fini(*state, &dataset);
		}
	}
	assert_ok(parse(*state, texts[2],
			&(struct wf_sheet_opts){.kind = WF_SHEET_COLUMNS, .target = "a"},
			&dataset));
	assert_true(dataset.y[0] == 1.0f);
	wf_dataset_fini(*state, &dataset);
}

static void
classes_are_counted(void **state)
{
	struct wf_dataset dataset;

	assert_ok(parse(*state, "a,label\n1,0\n1,3\n1,1\n1,0\n1,1\n", &classes, &dataset));
	assert_int_equal(dataset.classes, 4);
	wf_dataset_fini(*state, &dataset);
	assert_refused(parse(*state, "a,l\n1,0\n1,0\n1,0\n1,0\n1,0\n", &classes, &dataset),
		       WEFT_DATA, "made.txt: the target is 0 in every row");
}

static void
features_are_scaled_by_the_range_of_all_rows(void **state)
{
	static const float x[] = {-0.5f, 0.5f, 0.0f, 0.0f, 0.0f};
	struct wf_dataset dataset;

	assert_ok(parse(
		*state, "y,a\n9,1\n8,3\n7,2\n6,2\n5,2\n",
		&(struct wf_sheet_opts){.kind = WF_SHEET_COLUMNS, .target = "y", .is_scaled = true},
		&dataset));
	assert_memory_equal(dataset.x, x, sizeof(x));
	assert_true(dataset.y[0] == 9.0f);
	wf_dataset_fini(*state, &dataset);
	assert_refused(parse(*state, "a,b,y\n1,2,3\n2,2,3\n3,2,3\n4,2,3\n5,2,3\n",
			     &(struct wf_sheet_opts){.kind = WF_SHEET_COLUMNS, .is_scaled = true},
			     &dataset),
		       WEFT_DATA, "column 2: \"2\" is the same in every row");
}

static void
what_does_not_fit_is_refused_by_line_column_and_value(void **state)
{
	static const struct {
		const char *text;
		bool has_classes;
		const char *part;
	} cases[] = {
		{"", false, "line 1: has no header"},
		{"a\n1\n", false, "line 1: is no header of at least two names"},
		{"\n", false, "line 1: is no header of at least two names"},
		{"1,2\n3,4\n", false, "line 1: is no header, its fields are numbers"},
		{"a,b;c\n", false, "line 1: has two of comma, semicolon and tab"},
		{"a,,c\n", false, "line 1, column 2: \"\" is no name"},
		{",a\n0,1\n", false, "line 1, column 1: \"\" is no name"},
		{"a,\"\"\n", false, "column 2: \"\" is no name"},
		{"a,\"b\n", false, "line 1, column 2: \"\"b\" does not end with its closing"},
		{"\"a\"b,c\n", false, "line 1, column 1: \"\"a\"b\" does not end with its"},
		{"a,b\n", false, "has no rows of data"},
		{"a,b\n1,2\n3\n", false, "line 3: has 1 of 2 columns"},
		{"a,b\n1,2,3\n", false, "line 2, column 3: \"3\" is one column too many"},
		{"a,b\n1,\n", false, "line 2, column 2: \"\" is not a decimal number"},
		{"a,b\nx,1\n", false, "line 2, column 1: \"x\" is not a decimal number"},
		{"a;b\n1,5;1\n", false, "line 2, column 1: \"1,5\" is not a decimal number"},
		{"a,b\n\"1,2\n", false, "line 2, column 1: \"\"1\" has no closing quote"},
		{"a,b\n\"1\"2,2\n", false, "line 2, column 1: \"2\" stands behind a closing"},
		{"a,b\n1,\"2\n", false, "line 2, column 2: \"\"2\" has no closing quote"},
		{"a,b\n1,\"2\"\"\"\n", false, "line 2, column 2: \"2\"\"\" is not a decimal"},
		{"a,b\n1e31,2\n", false, "line 2, column 1: \"1e31\" is not within"},
		{"a,b\n1,2\n1,2\n1,2\n1,2\n", false, "has 4 rows; at least 5"},
		{"a,b\n1,-1\n", true, "\"-1\" is not within 0..4095; classes are numbered from 0"},
		{"a,b\n1,4096\n", true, "\"4096\" is not within 0..4095"},
		{"a,b\n1,0.5\n", true, "\"0.5\" is not a whole number; classes are numbered"},
		{"a,b\n1,cat\n", true,
		 "\"cat\" is not a decimal number; classes are numbered from 0: give each a "
		 "number"},
	};
	struct wf_dataset dataset;

	for (size_t i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		assert_refused(parse(*state, cases[i].text,
				     cases[i].has_classes ? &classes : &plain, &dataset),
			       WEFT_DATA, cases[i].part);
		assert_non_null(strstr(weft_last_error(), "made.txt: "));
	}
}

/* Three files as one text, the second of which is cut into windows somewhere. */
static void
all_files_of_a_set_have_the_header_of_the_first(void **state)
{
	static const char bytes[] = "a;b\n1;2\n3;4\na;b\n5;6\n7;8\na;b\n9;9\n";
	const struct wf_text_piece piece[] = {
		{.path = "one", .at = 0, .line = 1, .lines = 3, .file = 0},
		{.path = "two", .at = 12, .line = 1, .lines = 3, .file = 1},
		{.path = "three", .at = 24, .line = 1, .lines = 2, .file = 2},
	};
	static const float x[] = {1, 3, 5, 7, 9};
	struct wf_dataset dataset;

	struct wf_text text = text_of_bytes(*state, bytes, sizeof(bytes) - 1);
	text.piece = piece;
	text.piece_count = 3;
	assert_ok(wf_sheet_parse_whole(*state, &text, &plain, &dataset));
	assert_int_equal(dataset.rows, 5);
	assert_memory_equal(dataset.x, x, sizeof(x));
	wf_dataset_fini(*state, &dataset);
	text.bytes[26] = 'c';
	assert_refused(wf_sheet_parse_whole(*state, &text, &plain, &dataset), WEFT_DATA,
		       "three: line 1, column 2: \"c\" is not what the header must have");
	text.bytes[26] = 'b';
	text.bytes[18] = 'x';
	assert_refused(wf_sheet_parse_whole(*state, &text, &plain, &dataset), WEFT_DATA,
		       "two: line 2, column 2: \"x\"");
	wf_text_fini(*state, &text);
}

static void
as_many_columns_as_the_limit_are_read(void **state)
{
	static char bytes[WF_CSV_COLUMNS_MAX * 2 * 8];
	struct wf_dataset dataset;
	size_t used = 0;

	for (unsigned over = 0; over < 2; over++) {
		const unsigned columns = WF_CSV_COLUMNS_MAX + over;
		used = 0;
		for (unsigned line = 0; line < 6; line++) {
			for (unsigned column = 0; column < columns; column++) {
				bytes[used++] = line == 0 ? 'x' : '1';
				bytes[used++] = column + 1 == columns ? '\n' : ',';
			}
		}
		bytes[used] = '\0';
		if (over == 0) {
			assert_ok(parse(*state, bytes, &plain, &dataset));
			assert_int_equal(dataset.features, WF_CSV_COLUMNS_MAX - 1);
			wf_dataset_fini(*state, &dataset);
		} else {
			assert_refused(parse(*state, bytes, &plain, &dataset), WEFT_DATA,
				       "line 1, column 4097: \"x\" is one column too many");
		}
	}
}

static void
without_memory_nothing_is_left_over(void **state)
{
	unsigned failures = 0;

	for (unsigned fail_at = 2;; fail_at++) { /* the first is the text's */
		struct heap_env heap = heap_env_make();
		struct wf_dataset dataset;
		heap.fail_at = fail_at;
		enum weft_status st =
			parse(&heap.env, "a,b\n1,0\n1,1\n1,2\n1,0\n1,1\n", &classes, &dataset);
		if (st == WEFT_OK) {
			wf_dataset_fini(&heap.env, &dataset);
		}
		assert_int_equal(heap.out_bytes, 0);
		if (st == WEFT_OK) {
			break;
		}
		assert_int_equal(st, WEFT_NOMEM);
		failures++;
	}
	assert_int_equal(failures, 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_features_and_the_last_one_is_the_target),
		cmocka_unit_test(the_target_is_found_by_its_name),
		cmocka_unit_test(separator_quotes_and_mark_are_those_of_the_header),
		cmocka_unit_test(classes_are_counted),
		cmocka_unit_test(features_are_scaled_by_the_range_of_all_rows),
		cmocka_unit_test(what_does_not_fit_is_refused_by_line_column_and_value),
		cmocka_unit_test(all_files_of_a_set_have_the_header_of_the_first),
		cmocka_unit_test(as_many_columns_as_the_limit_are_read),
		cmocka_unit_test(without_memory_nothing_is_left_over),
	};
	return cmocka_run_group_tests(tests, open_env, close_env);
}
