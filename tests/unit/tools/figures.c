/* SPDX-License-Identifier: Apache-2.0 */
/* Results of rdma_bench are read back as they are or refused by name, ratios have the interval of
 * Mann and Whitney, and pictures are whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tools/rdma_bench/figures.h"
#include "tools/rdma_bench/plot.h"
#include "tools/rdma_bench/ratio.h"

#define FIGURE_OF(bytes)                                                                           \
	"{\"name\": \"put_latency\", \"transport\": \"tcp\", \"mode\": \"to and <fro>\", "         \
	"\"bytes\": " bytes ", \"value\": 7.5, \"unit\": \"us\", \"limit\": 6, "                   \
	"\"fraction\": 0.8, \"limited_by\": \"raw\", \"better\": \"lower\", \"p50_us\": null, "    \
	"\"values\": [7, 8], \"fractions\": [0.75, 0.85]}"
#define FILE_OF(results)                                                                           \
	"{\"program\": \"rdma_bench lat\", \"date\": \"today\", \"quick\": false, \"machine\": "   \
	"{\"cpu\": \"a CPU\", \"virtual\": true}, \"versions\": {\"weft\": \"0.1.0\"}, "           \
	"\"results\": [" results "]}"

static struct wf_figures_file file;

static enum weft_status
parse(const char *text)
{
	return wf_figures_parse("a.json", text, strlen(text), &file);
}

static void
a_result_is_read_as_it_is(void **state)
{
	(void)state;
	assert_int_equal(parse(FILE_OF(FIGURE_OF("64") ", " FIGURE_OF("128"))), WEFT_OK);
	assert_int_equal(file.figure_count, 2);
	assert_string_equal(file.cpu, "a CPU");
	assert_string_equal(file.version, "0.1.0");
	assert_string_equal(file.figure[1].mode, "to and <fro>");
	assert_true(file.figure[1].bytes == 128 && file.figure[1].value == 7.5);
	assert_true(file.figure[1].lower_is_better);
	assert_int_equal(file.figure[1].samples.count, 2);
	assert_true(file.figure[1].samples.value[1] == 8);
	assert_true(file.figure[1].samples.fraction[0] == 0.75);
	assert_ptr_equal(wf_figures_find(&file, &file.figure[1]), &file.figure[1]);
}

/* Replaces the first `from` in a whole file by `to`. */
static enum weft_status
parse_with(const char *from, const char *to)
{
	static const char whole[] = FILE_OF(FIGURE_OF("64"));
	char text[2048];
	const char *at = strstr(whole, from);
	assert_non_null(at);
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - whole), whole, to, at + strlen(from));
	return parse(text);
}

static void
what_lies_is_refused_by_name(void **state)
{
	static const struct {
		const char *from, *to, *named;
	} rows[] = {
		{"7.5", "1e400", "value must be a finite number above 0"},
		{"7.5", "NaN", "value must be"},
		{"7.5", "-7.5", "value must be"},
		{"7.5", "0", "value must be"},
		{"7.5", "\"7.5\"", "value must be"},
		{"7.5", "null", "value must be"},
		{"0.8,", "[0.8],", "fraction must be"},
		{"[7, 8]", "7", "values must be a list"},
		{"[7, 8]", "[7, \"8\"]", "values must be a list"},
		{"[7, 8]", "[7]", "fractions must have as many"},
		{"[7, 8]", "[]", "fractions must have as many"},
		{"\"us\"", "12", "unit must be a text"},
		{"\"us\"", "\"\"", "unit must be a text"},
		{"\"us\"", "\"u\\ns\"", "unit must be a text"},
		{"\"us\"", "\"uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu\"",
		 "unit must be a text"},
		{"\"lower\"", "\"faster\"", "better must be"},
		{"\"unit\"", "\"units\"", "unit is missing"},
		{"\"values\"", "\"value\"", "value must be there once"},
		{"\"results\"", "\"other\"", "results is missing"},
		{"[{\"name\"", "[7, {\"name\"", "results must be an object"},
		{"\"rdma_bench lat\"", "\"lstopo\"", "its program is \"lstopo\""},
		{"false", "0", "quick must be true or false"},
		{"{\"cpu\": \"a CPU\", \"virtual\": true}", "[]", "machine must be an object"},
		{"true", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "virtual must be a value"},
		{"}]}", "}]", "must go on"},
		{"}]}", "}]} x", "must end"},
		{"}]}", "}", "results must go on"},
	};
	(void)state;
	for (size_t i = 0; i < WF_ARRAY_COUNT(rows); i++) {
		assert_int_equal(parse_with(rows[i].from, rows[i].to), WEFT_DATA);
		if (strstr(weft_last_error(), rows[i].named) == NULL) {
			fail_msg("row %zu: %s", i, weft_last_error());
		}
	}
	assert_int_equal(parse(FILE_OF(FIGURE_OF("64") ", " FIGURE_OF("64"))), WEFT_DATA);
	assert_non_null(strstr(weft_last_error(), "result 2: name must not be"));
	assert_int_equal(parse(""), WEFT_DATA);
}

/* Of two samples of 1, 2, 4 ... and of these times a factor: how many quotients are outside. */
static void
intervals_have_the_ranks_of_the_tables(void **state)
{
	/* The largest U with a tail of at most 2.5 %, as printed tables of Mann and Whitney have
	 * it; -1: there is none. */
	static const struct {
		unsigned n, m;
		int critical;
	} rows[] = {{3, 3, -1},  {4, 4, 0},    {5, 5, 2},     {7, 7, 8}, {4, 7, 3},
		    {8, 10, 17}, {10, 10, 23}, {20, 20, 127}, {2, 8, 0}};
	double a[20], b[20];
	struct wf_ratio ratio;
	(void)state;
	for (size_t i = 0; i < WF_ARRAY_COUNT(rows); i++) {
		/* Quotients are distinct, so that a rank is visible. */
		for (unsigned k = 0; k < 20; k++) {
			a[k] = 1 + k * 0.01;
			b[k] = 1 + k * 0.000311;
		}
		wf_ratio_estimate(a, rows[i].n, b, rows[i].m, &ratio);
		unsigned below = 0, above = 0;
		for (unsigned x = 0; x < rows[i].n; x++) {
			for (unsigned y = 0; y < rows[i].m; y++) {
				below += b[y] / a[x] < ratio.from;
				above += b[y] / a[x] > ratio.to;
			}
		}
		const int outside = rows[i].critical < 0 ? 0 : rows[i].critical;
		assert_int_equal(below, outside);
		assert_int_equal(above, outside);
		assert_int_equal(ratio.confidence >= WF_RATIO_CONFIDENCE, rows[i].critical >= 0);
	}
}

/* The k of printed tables: the interval runs from the k-th smallest to the k-th largest of n. */
static void
intervals_of_pairs_have_the_ranks_of_the_tables(void **state)
{
	static const struct {
		unsigned n, k;
		bool is_sure;
	} rows[] = {{1, 1, false}, {5, 1, false}, {6, 1, true},  {8, 1, true},
		    {9, 2, true},  {12, 3, true}, {20, 6, true}, {25, 8, true}};
	double fraction[25], samples[WF_SAMPLES_MAX];
	struct wf_ratio ratio;
	(void)state;
	for (size_t i = 0; i < WF_ARRAY_COUNT(rows); i++) {
		for (unsigned k = 0; k < rows[i].n; k++) {
			fraction[k] = 1 + (k * 7 % rows[i].n) * 0.01; /* 7 divides no n */
		}
		wf_ratio_of_pairs(fraction, rows[i].n, &ratio);
		const double outside = 0.01 * (rows[i].k - 1), last = 0.01 * (rows[i].n - 1);
		assert_true(fabs(ratio.from - (1 + outside)) < 1e-9);
		assert_true(fabs(ratio.to - (1 + last - outside)) < 1e-9);
		assert_true(fabs(ratio.middle - (1 + last / 2)) < 1e-9);
		assert_int_equal(ratio.confidence >= WF_RATIO_CONFIDENCE, rows[i].is_sure);
	}
	wf_ratio_of_pairs(fraction, 9, &ratio);
	assert_true(fabs(ratio.confidence - (1 - 2 * 10 / 512.0)) < 1e-9);
	for (unsigned k = 0; k < WF_SAMPLES_MAX; k++) {
		samples[k] = 1 + k * 0.001;
	}
	wf_ratio_of_pairs(samples, WF_SAMPLES_MAX, &ratio);
	assert_true(ratio.confidence >= 0.95 && ratio.confidence < 0.97);
}

static void
a_ratio_is_that_of_the_scales(void **state)
{
	double a[WF_SAMPLES_MAX], b[WF_SAMPLES_MAX];
	struct wf_ratio ratio;
	(void)state;
	for (unsigned i = 0; i < WF_SAMPLES_MAX; i++) {
		a[i] = 1 + (i * 37 % 101) / 1000.0;
		b[i] = 3 * (1 + (i * 53 % 101) / 1000.0);
	}
	wf_ratio_estimate(a, 7, b, 9, &ratio);
	assert_true(ratio.from < 3 && ratio.to > 3 && fabs(ratio.middle - 3) < 0.1);
	wf_ratio_estimate(a, WF_SAMPLES_MAX, b, WF_SAMPLES_MAX, &ratio);
	assert_true(ratio.from < 3 && ratio.to > 3 && ratio.to - ratio.from < 0.05);
	assert_true(ratio.confidence >= 0.95 && ratio.confidence < 0.96);
	wf_ratio_estimate(a, 1, b, 1, &ratio);
	assert_true(ratio.from == ratio.to && ratio.confidence == 0);
}

static char *
draw(const char *text)
{
	char *picture = NULL;
	size_t bytes = 0;
	assert_int_equal(parse(text), WEFT_OK);
	FILE *out = open_memstream(&picture, &bytes);
	assert_non_null(out);
	wf_plot_draw(&file, out);
	assert_int_equal(fclose(out), 0);
	return picture;
}

static void
a_picture_has_axes_units_and_a_legend(void **state)
{
	static const char *const wanted[] = {"prefers-color-scheme:dark", "fraction of the limit",
					     "to and &#60;fro&#62;",      "7.5 of 6 us",
					     "median of the pairs",       "64 B"};
	static const char *const curves[] = {"<path", "size of a message", "us (lower is better)",
					     "its limit: raw", "4 KiB"};
	(void)state;
	char *rows = draw(FILE_OF(FIGURE_OF("64")));
	char *sizes = draw(FILE_OF(FIGURE_OF("64") ", " FIGURE_OF("512") ", " FIGURE_OF("4096")));
	for (size_t i = 0; i < WF_ARRAY_COUNT(wanted); i++) {
		assert_non_null(strstr(rows, wanted[i]));
	}
	for (size_t i = 0; i < WF_ARRAY_COUNT(curves); i++) {
		assert_non_null(strstr(sizes, curves[i]));
	}
	assert_null(strstr(rows, "<path"));
	assert_null(strstr(rows, "<fro>"));
	assert_null(strstr(rows, "nan"));
	assert_null(strstr(sizes, "nan"));
	free(rows);
	free(sizes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_result_is_read_as_it_is),
		cmocka_unit_test(what_lies_is_refused_by_name),
		cmocka_unit_test(intervals_have_the_ranks_of_the_tables),
		cmocka_unit_test(intervals_of_pairs_have_the_ranks_of_the_tables),
		cmocka_unit_test(a_ratio_is_that_of_the_scales),
		cmocka_unit_test(a_picture_has_axes_units_and_a_legend),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
