/* SPDX-License-Identifier: Apache-2.0 */
/* The readers take the files that come with weft, and refuse everything that is not quite such a
 * file by line, column and value. */
#include "tests/unit/train/setup.h"

#include <unistd.h>

#include "base/assert.h"
#include "trainer/readers/csv.h"
#include "trainer/readers/sheet.h"

#define HEADER "crim,zn,indus,chas,nox,rm,age,dis,rad,tax,ptratio,b,lstat,medv\n"

static char scratch[] = "/tmp/weft-readers-XXXXXX";

static void
write_file(const char *text, size_t bytes)
{
	FILE *file = fopen(scratch, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, bytes, file), bytes);
	assert_int_equal(fclose(file), 0);
}

static enum weft_status
read_csv(struct wf_env *env, const char *path, const struct wf_csv_format *format,
	 struct wf_csv *out)
{
	struct wf_text text = {0};
	enum weft_status st = wf_text_read(env, path, &text);
	if (st == WEFT_OK) {
		st = wf_csv_parse(env, &text, format, out);
		wf_text_fini(env, &text);
	}
	return st;
}

static const struct wf_csv_format two_columns = {
	.header = "a,b",
	.separator = ',',
	.columns = 2,
	.target_column = 1,
	.feature = {.min = -10, .max = 10},
	.target = {.min = 0, .max = 3, .is_whole = true},
};

static enum weft_status
read_text(struct wf_env *env, const char *text, struct wf_csv *out)
{
	write_file(text, strlen(text));
	return read_csv(env, scratch, &two_columns, out);
}

static void
values_come_row_by_row(void **state)
{
	struct wf_csv csv;
	assert_ok(read_text(*state, "a,b\n1.5,2\r\n-0.25e1,0", &csv));
	assert_int_equal(csv.rows, 2);
	assert_int_equal(csv.columns, 2);
	assert_true(csv.value[0] == 1.5 && csv.value[1] == 2.0);
	assert_true(csv.value[2] == -2.5 && csv.value[3] == 0.0);
	wf_csv_fini(*state, &csv);
}

static void
malformed_files_are_refused_by_line_column_and_value(void **state)
{
	static const struct {
		const char *text;
		const char *part;
	} cases[] = {
		{"a,c\n1,2\n", "line 1, column 2: \"c\""},
		{"a\n1,2\n", "line 1, column 1: \"a\""},
		{"1,2\n1,2\n", "line 1, column 1: \"1\""},
		{"a,b\n1\n", "line 2: has 1 of 2 columns"},
		{"a,b\n1,2\n\n3,1\n", "line 3: has 1 of 2 columns"},
		{"a,b\n1,2,3\n", "line 2, column 3: \"3\" is one column too many"},
		{"a,b\n1,\n", "line 2, column 2: \"\" is not a decimal number"},
		{"a,b\n1,2\n,1\n", "line 3, column 1: \"\" is not a decimal number"},
		{"a,b\nnan,2\n", "line 2, column 1: \"nan\" is not a decimal number"},
		{"a,b\ninf,2\n", "line 2, column 1: \"inf\""},
		{"a,b\n0x1p3,2\n", "line 2, column 1: \"0x1p3\""},
		{"a,b\n 1,2\n", "line 2, column 1: \" 1\""},
		{"a,b\n1e,2\n", "line 2, column 1: \"1e\""},
		{"a,b\n1.2.3,2\n", "line 2, column 1: \"1.2.3\""},
		{"a,b\n--1,2\n", "line 2, column 1: \"--1\""},
		{"a,b\n1e999,2\n", "line 2, column 1: \"1e999\" is not within -10..10"},
		{"a,b\n10.5,2\n", "line 2, column 1: \"10.5\" is not within -10..10"},
		{"a,b\n1,4\n", "line 2, column 2: \"4\" is not within 0..3"},
		{"a,b\n1,1.5\n", "line 2, column 2: \"1.5\" is not a whole number"},
		{"a,b\n1,2\n1;2\n", "line 3: has 1 of 2 columns"},
		{"a,b\n\x01\x02,2\n", "line 2, column 1: \"??\""},
		{"a,b\n11111111111111111111111111111111,2\n",
		 "column 1: \"111111111111111111111111..."},
		{"a,b\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n", "line 2: has 1 of 2 columns"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wf_csv csv;
		assert_refused(read_text(*state, cases[i].text, &csv), WEFT_DATA, cases[i].part);
		assert_non_null(strstr(weft_last_error(), scratch));
	}
}

static void
a_zero_byte_is_no_number(void **state)
{
	struct wf_csv csv;
	write_file("a,b\n1\0,2\n", 9);
	assert_refused(read_csv(*state, scratch, &two_columns, &csv), WEFT_DATA,
		       "line 2, column 1: \"1?\"");
	/* The header's text ends where the line has the zero byte: nothing after it is looked at.
	 */
	write_file("a,b\0\n1,2\n", 9);
	assert_refused(read_csv(*state, scratch, &two_columns, &csv), WEFT_DATA,
		       "line 1, column 2: \"b?\"");
}

/* Whatever is short is computed, not handed to strtod: the bits are the same. */
static void
numbers_are_rounded_as_strtod_does(void **state)
{
	static const char *const some[] = {"0",
					   "-0",
					   "+7",
					   "-.5",
					   "5.",
					   "0.1",
					   "000.30",
					   "999999999999999",
					   "1e-3",
					   "-1.5E2",
					   "0.30000000000000004",
					   "123456789012345678",
					   "0.000000000000001",
					   "9007199254740993"};
	static const struct wf_number_rule any = {.min = -1e300, .max = 1e300};
	uint64_t x = test_seed();

	for (unsigned i = 0; i < 20000; i++) {
		char number[WF_NUMBER_BYTES_MAX + 1];
		x = x * 6364136223846793005u + 1442695040888963407u;
		const unsigned digits = 1 + (unsigned)(x >> 60);
		const unsigned point = (unsigned)(x >> 56 & 15);
		unsigned count = 0;
		if (x >> 55 & 1) {
			number[count++] = '-';
		}
		for (unsigned digit = 0; digit < digits; digit++) {
			if (digit == point) {
				number[count++] = '.';
			}
			number[count++] = (char)('0' + (x >> (3 * digit)) % 10);
		}
		number[count] = '\0';
		const char *text = i < WF_ARRAY_COUNT(some) ? some[i] : number;
		const struct wf_field field = {.at = text, .count = strlen(text), .path = "made"};
		double value = 7.0;
		const double want = strtod(text, NULL);
		assert_ok(wf_field_number(&field, &any, &value));
		assert_memory_equal(&value, &want, sizeof(value));
	}
}

static void
files_that_cannot_be_read_are_named(void **state)
{
	struct wf_csv csv;
	assert_refused(read_csv(*state, "/nonexistent/file", &two_columns, &csv), WEFT_DATA,
		       "/nonexistent/file");
	assert_refused(read_csv(*state, "/", &two_columns, &csv), WEFT_DATA, "/: ");
	assert_refused(read_csv(*state, "/dev/zero", &two_columns, &csv), WEFT_DATA,
		       "not a regular file");
}

static void
a_file_beyond_the_limit_is_refused_unread(void **state)
{
	struct wf_csv csv;
	write_file("a,b\n", 4);
	assert_int_equal(truncate(scratch, (off_t)WF_TEXT_BYTES_MAX + 1), 0);
	assert_refused(read_csv(*state, scratch, &two_columns, &csv), WEFT_DATA, "at most");
}

static void
a_packed_text_is_what_it_was(void **state)
{
	static const char *const names[] = {"rows.gz", "members.gz", "rows.zst", "frames.zst"};
	const char *fixtures = getenv("WEFT_FIXTURES");
	struct wf_text plain;
	char path[512];

	fixtures = fixtures == NULL ? "tests/fixtures/inputs" : fixtures;
	snprintf(path, sizeof(path), "%s/rows.csv", fixtures);
	assert_ok(wf_text_read(*state, path, &plain));
	assert_int_equal(plain.count, 2380);
	for (size_t i = 0; i < WF_ARRAY_COUNT(names); i++) {
		struct wf_text text;
		snprintf(path, sizeof(path), "%s/%s", fixtures, names[i]);
		assert_ok(wf_text_read(*state, path, &text));
		assert_int_equal(text.count, plain.count);
		assert_memory_equal(text.bytes, plain.bytes, plain.count + 1);
		wf_text_fini(*state, &text);
	}
	wf_text_fini(*state, &plain);
}

/* A frame of zstd without a size, window of 128 KiB, of blocks of 128 KiB zeros: 64 MiB, or a byte
 * more in one more block. */
static void
a_packed_text_beyond_the_limit_is_refused(void **state)
{
	enum { BLOCKS = WF_TEXT_BYTES_MAX / (128 << 10) };
	static char frame[6 + 4 * (BLOCKS + 1)] = {0x28, (char)0xb5, 0x2f, (char)0xfd, 0, 0x38};
	struct wf_text text;

	for (unsigned over = 0; over < 2; over++) {
		const unsigned blocks = BLOCKS + over;
		for (unsigned block = 0; block < blocks; block++) {
			const uint32_t bytes = block == BLOCKS ? 1 : 128u << 10;
			const uint32_t head = bytes << 3 | 1u << 1 | (block + 1 == blocks);
			frame[6 + 4 * block] = (char)(head & 0xff);
			frame[7 + 4 * block] = (char)(head >> 8 & 0xff);
			frame[8 + 4 * block] = (char)(head >> 16);
		}
		write_file(frame, 6 + 4 * blocks);
		if (over == 0) {
			assert_ok(wf_text_read(*state, scratch, &text));
			assert_int_equal(text.count, WF_TEXT_BYTES_MAX);
			wf_text_fini(*state, &text);
		} else {
			assert_refused(wf_text_read(*state, scratch, &text), WEFT_DATA,
				       "has more than 67108864 bytes, unpacked");
		}
	}
}

static void
random_bytes_are_refused_or_read_never_worse(void **state)
{
	static const char alphabet[] = "0123456789.,-+e\n\r a\xff";
	uint64_t x = test_seed();
	for (int round = 0; round < 500; round++) {
		char text[64] = "a,b\n";
		size_t bytes = 4;
		while (bytes < sizeof(text)) {
			x = x * 6364136223846793005u + 1442695040888963407u;
			text[bytes++] = alphabet[(x >> 33) % (sizeof(alphabet) - 1)];
			if ((x >> 57) == 0) {
				break;
			}
		}
		struct wf_csv csv;
		write_file(text, bytes);
		enum weft_status st = read_csv(*state, scratch, &two_columns, &csv);
		if (st == WEFT_OK) {
			assert_true(csv.rows >= 1);
			wf_csv_fini(*state, &csv);
		} else {
			assert_int_equal(st, WEFT_DATA);
			assert_non_null(strstr(weft_last_error(), "line "));
		}
	}
}

static void
housing_is_506_rows_scaled_over_the_whole_file(void **state)
{
	char path[WF_DATA_PATH_BYTES];
	struct wf_dataset data;
	assert_ok(wf_data_find("housing.csv", path));
	assert_ok(wf_sheet_read(*state, path, &(struct wf_sheet_opts){.kind = WF_SHEET_HOUSING},
				&data));
	assert_int_equal(data.rows, 506);
	assert_int_equal(data.train_rows, 404);
	assert_int_equal(data.features, 13);
	assert_int_equal(data.classes, 0);
	assert_true(data.y[0] == 24.0f);
	for (unsigned column = 0; column < 13; column++) {
		double sum = 0.0;
		float min = data.x[column];
		float max = min;
		for (size_t row = 0; row < data.rows; row++) {
			float x = data.x[row * 13 + column];
			sum += (double)x;
			min = x < min ? x : min;
			max = x > max ? x : max;
		}
		assert_true(sum > -1e-4 && sum < 1e-4);                    /* mean 0 */
		assert_true(max - min > 0.99999f && max - min < 1.00001f); /* range 1 */
	}
	wf_dataset_fini(*state, &data);
}

static void
digits_are_1797_rows_of_64_pixels(void **state)
{
	char path[WF_DATA_PATH_BYTES];
	struct wf_dataset data;
	assert_ok(wf_data_find("digits.csv", path));
	assert_ok(wf_sheet_read(*state, path, &(struct wf_sheet_opts){.kind = WF_SHEET_DIGITS},
				&data));
	assert_int_equal(data.rows, 1797);
	assert_int_equal(data.train_rows, 1437);
	assert_int_equal(data.features, 64);
	assert_int_equal(data.classes, 10);
	assert_true(data.x[2] == 5.0f / 16.0f);
	assert_true(data.y[0] == 0.0f && data.y[1] == 1.0f && data.y[1796] == 8.0f);
	wf_dataset_fini(*state, &data);
}

static void
a_column_that_never_changes_cannot_be_scaled(void **state)
{
	char text[2048] = HEADER;
	struct wf_dataset data;
	for (int row = 0; row < 6; row++) {
		size_t used = strlen(text);
		snprintf(text + used, sizeof(text) - used,
			 "%d,7,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d\n", row, row, row, row, row, row,
			 row, row, row, row, row, row, row);
	}
	write_file(text, strlen(text));
	assert_refused(wf_sheet_read(*state, scratch,
				     &(struct wf_sheet_opts){.kind = WF_SHEET_HOUSING}, &data),
		       WEFT_DATA, "column 2: \"7\"");
}

static void
too_few_rows_to_split_are_refused(void **state)
{
	static const char text[] = HEADER "1,2,3,4,5,6,7,8,9,10,11,12,13,14\n";
	struct wf_dataset data;
	write_file(text, sizeof(text) - 1);
	assert_refused(wf_sheet_read(*state, scratch,
				     &(struct wf_sheet_opts){.kind = WF_SHEET_HOUSING}, &data),
		       WEFT_DATA, "has 1 rows");
}

static void
a_data_folder_that_lacks_the_file_is_named(void **state)
{
	char path[WF_DATA_PATH_BYTES];
	assert_refused(wf_data_find("no-such-file.csv", path), WEFT_DATA, "WEFT_DATA_DIR=");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_come_row_by_row),
		cmocka_unit_test(malformed_files_are_refused_by_line_column_and_value),
		cmocka_unit_test(a_zero_byte_is_no_number),
		cmocka_unit_test(numbers_are_rounded_as_strtod_does),
		cmocka_unit_test(files_that_cannot_be_read_are_named),
		cmocka_unit_test(a_file_beyond_the_limit_is_refused_unread),
		cmocka_unit_test(a_packed_text_is_what_it_was),
		cmocka_unit_test(a_packed_text_beyond_the_limit_is_refused),
		cmocka_unit_test(random_bytes_are_refused_or_read_never_worse),
		cmocka_unit_test(housing_is_506_rows_scaled_over_the_whole_file),
		cmocka_unit_test(digits_are_1797_rows_of_64_pixels),
		cmocka_unit_test(a_column_that_never_changes_cannot_be_scaled),
		cmocka_unit_test(too_few_rows_to_split_are_refused),
		cmocka_unit_test(a_data_folder_that_lacks_the_file_is_named),
	};
	int fd = mkstemp(scratch);
	if (fd < 0) {
		perror(scratch);
		return 1;
	}
	close(fd);
	int failed = cmocka_run_group_tests(tests, open_env, close_env);
	unlink(scratch);
	return failed;
}
