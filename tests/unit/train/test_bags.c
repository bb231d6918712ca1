/* SPDX-License-Identifier: Apache-2.0 */
/* The readers of keyed features take the file that comes with weft and the formats as published,
 * and refuse everything else by line, column and value. */
#include "tests/unit/train/text_setup.h"

#include "base/digest.h"
#include "base/rng.h"
#include "kernels/kernels.h"
#include "tests/unit/wire/heap_env.h"
#include "trainer/readers/bags.h"
#include "trainer/readers/dataset.h"

#define STRIKES_HEADER                                                                             \
	"Airport Name,Aircraft Make Model,Effect Amount of damage,Flight Date,"                    \
	"Aircraft Airline Operator,Origin State,Phase of flight,Wildlife Size,Wildlife Species,"   \
	"Time of day,Cost Other,Cost Repair,Cost Total $,Speed IAS in knots\n"
#define STRIKE "A,B-52,None,1990-01-08,M,Texas,Climb,Large,Gull,Day,0,0,0,300\n"
#define CRITEO_COLUMNS 40
#define GENERATED_ROWS 40

typedef enum weft_status parse_function(struct wf_env *env, const struct wf_text *text,
					struct wf_bags *out);

static enum weft_status
parse(parse_function *function, struct wf_env *env, const char *bytes, struct wf_bags *out)
{
	struct wf_text text = text_of_bytes(env, bytes, strlen(bytes));
	enum weft_status st = function(env, &text, out);
	wf_text_fini(env, &text);
	if (st == WEFT_OK) {
		st = wf_bags_split("made.txt", out);
		if (st != WEFT_OK) {
			wf_bags_fini(env, out);
		}
	}
	return st;
}

struct refusal {
	const char *text;
	const char *part; /* of the error */
};

static void
check_refusals(parse_function *function, struct wf_env *env, const struct refusal *cases,
	       size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct wf_bags bags;
		assert_refused(parse(function, env, cases[i].text, &bags), WEFT_DATA,
			       cases[i].part);
		assert_non_null(strstr(weft_last_error(), "made.txt: "));
	}
}

static void
strikes_are_10000_rows_of_8_slots(void **state)
{
	char path[WF_DATA_PATH_BYTES];
	struct wf_bags bags;
	size_t damaged = 0;
	size_t without_speed = 0;

	assert_ok(wf_data_find("birdstrikes.csv", path));
	assert_ok(wf_strikes_read(*state, path, &bags));
	assert_int_equal(bags.rows, 10000);
	assert_int_equal(bags.train_rows, 8000);
	assert_int_equal(bags.slots, 8);
	assert_int_equal(bags.features, 2);
	assert_int_equal(bags.classes, 2);
	assert_int_equal(bags.entries, 80000);
	assert_int_equal(bags.row_entries_max, 8);
	for (size_t row = 0; row < bags.rows; row++) {
		damaged += bags.y[row] == 1.0f;
		without_speed += bags.x[2 * row + 1] == 1.0f;
		assert_true(bags.y[row] == 0.0f || bags.y[row] == 1.0f);
	}
	assert_int_equal(damaged, 1061);
	assert_int_equal(without_speed, 2836);
	assert_true(bags.x[0] == 3.0f && bags.x[1] == 0.0f);
	/* "BARKSDALE AIR FORCE BASE ARPT", "Day": columns 1 and 10 of the first row. */
	assert_true(bags.key[0] == wf_slot_key(0, "BARKSDALE AIR FORCE BASE ARPT", 29));
	assert_true(bags.key[7] == wf_slot_key(7, "Day", 3));
	wf_bags_fini(*state, &bags);
}

static void
a_strike_without_speed_says_so(void **state)
{
	struct wf_bags bags;
	assert_ok(parse(wf_strikes_parse, *state,
			STRIKES_HEADER STRIKE STRIKE STRIKE STRIKE
			"A,B-52,C,1990-01-08,M,Texas,Climb,Large,Gull,Day,0,12,12,\r\n",
			&bags));
	assert_int_equal(bags.rows, 5);
	assert_int_equal(bags.train_rows, 4);
	assert_true(bags.y[4] == 1.0f && bags.x[8] == 0.0f && bags.x[9] == 1.0f);
	wf_bags_fini(*state, &bags);
}

static void
malformed_strikes_are_refused_by_line_column_and_value(void **state)
{
	static const struct refusal cases[] = {
		{"", "line 1: has no header"},
		{"Airport,Aircraft\n", "line 1, column 1: \"Airport\""},
		{STRIKES_HEADER STRIKE, "has 1 rows"},
		{STRIKES_HEADER STRIKE "\n", "line 3: "},
		{STRIKES_HEADER STRIKE "A,B-52,None\n", "line 3: "},
		{STRIKES_HEADER STRIKE STRIKE "A,B-52,None,1990-01-08\n", "line 4: has 4 of 14"},
		{STRIKES_HEADER ",B-52,None,1990-01-08,M,Texas,Climb,Large,Gull,Day,0,0,0,\n",
		 "line 2, column 1: \"\" is empty"},
		{STRIKES_HEADER "A,\"B\",None,1990-01-08,M,Texas,Climb,Large,Gull,Day,0,0,0,\n",
		 "line 2, column 2: \"\"B\"\" is not plain text"},
		{STRIKES_HEADER "A,B-52,none,1990-01-08,M,Texas,Climb,Large,Gull,Day,0,0,0,\n",
		 "line 2, column 3: \"none\" is not one of"},
		{STRIKES_HEADER "A,B-52,None,1990-1-8,M,Texas,Climb,Large,Gull,Day,0,0,0,\n",
		 "line 2, column 4: \"1990-1-8\" is not a date"},
		{STRIKES_HEADER "A,B-52,None,1990-01-081,M,Texas,Climb,Large,Gull,Day,0,0,0,\n",
		 "line 2, column 4: \"1990-01-081\" is not a date"},
		{STRIKES_HEADER "A,B-52,None,1990-01-08,M,Texas,Climb,Large,Gull,Day,x,0,0,\n",
		 "line 2, column 11: \"x\""},
		{STRIKES_HEADER "A,B-52,None,1990-01-08,M,Texas,Climb,Large,Gull,Day,0,-1,0,\n",
		 "line 2, column 12: \"-1\" is not within"},
		{STRIKES_HEADER "A,B-52,None,1990-01-08,M,Texas,Climb,Large,Gull,Day,0,0,0,9.5\n",
		 "line 2, column 14: \"9.5\" is not a whole number"},
		{STRIKES_HEADER "A,B-52,None,1990-01-08,M,Texas,Climb,Large,Gull,Day,0,0,0,,\n",
		 "line 2, column 15: \"\" is one column too many"},
		{STRIKES_HEADER
		 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,B,None,"
		 "1990-01-08,M,Texas,Climb,Large,Gull,Day,0,0,0,\n",
		 "has more than 63 bytes"},
	};
	check_refusals(wf_strikes_parse, *state, cases, sizeof(cases) / sizeof(cases[0]));
}

static void
a_key_is_the_digest_of_slot_and_value(void **state)
{
	struct wf_digest *digest = NULL;
	assert_ok(wf_digest_create(*state, &digest));
	wf_digest_u64(digest, 7);
	wf_digest_string(digest, "68fd1e64");
	assert_true(wf_slot_key(7, "68fd1e64", 8) == wf_digest_value(digest));
	assert_true(wf_slot_key(6, "68fd1e64", 8) != wf_digest_value(digest));
	assert_true(wf_slot_key(7, "68fd1e65", 8) != wf_digest_value(digest));
	wf_digest_reset(digest);
	wf_digest_u64(digest, 7);
	wf_digest_string(digest, "");
	assert_true(wf_slot_key(7, NULL, 0) == wf_digest_value(digest));
	/* Written into saved tables: must never change. */
	assert_true(wf_slot_key(0, "Day", 3) == 0x288d4944ec46bc65ull);
	wf_digest_destroy(digest);
}

/* A generated file in Criteo's layout: not Criteo's data, nothing to learn from. */
static size_t
generate_criteo(char *out, size_t bytes)
{
	struct wf_rng rng;
	size_t used = 0;
	wf_rng_init(&rng, 1, 0);
	for (int row = 0; row < GENERATED_ROWS; row++) {
		used += (size_t)snprintf(out + used, bytes - used, "%d", row % 4 == 0);
		for (int column = 1; column < CRITEO_COLUMNS; column++) {
			bool is_missing = wf_rng_below(&rng, 5) == 0;
			int value = (int)wf_rng_below(&rng, 1000) - (column <= 13 ? 3 : 0);
			char field[16] = "\t";
			if (!is_missing && column <= 13) {
				snprintf(field, sizeof(field), "\t%d", value);
			} else if (!is_missing) {
				snprintf(field, sizeof(field), "\t%08x", (unsigned)value);
			}
			used += (size_t)snprintf(out + used, bytes - used, "%s", field);
		}
		used += (size_t)snprintf(out + used, bytes - used, "\n");
	}
	assert_true(used < bytes);
	return used;
}

static void
a_generated_file_in_criteos_layout_is_read(void **state)
{
	static char made[GENERATED_ROWS * 512];
	struct wf_bags bags;

	(void)generate_criteo(made, sizeof(made));
	assert_ok(parse(wf_criteo_parse, *state, made, &bags));
	assert_int_equal(bags.rows, GENERATED_ROWS);
	assert_int_equal(bags.train_rows, GENERATED_ROWS * 4 / 5);
	assert_int_equal(bags.slots, 26);
	assert_int_equal(bags.features, 26);
	assert_int_equal(bags.entries, GENERATED_ROWS * 26);
	for (size_t row = 0; row < bags.rows; row++) {
		assert_true(bags.y[row] == (row % 4 == 0 ? 1.0f : 0.0f));
	}
	wf_bags_fini(*state, &bags);
}

/* 13 counts and 26 categories, all missing but those given. */
#define NO_COUNTS "\t\t\t\t\t\t\t\t\t\t\t\t\t"
#define NO_CATEGORIES NO_COUNTS NO_COUNTS
#define EMPTY_ROW "0" NO_COUNTS NO_CATEGORIES "\n"

static void
counts_are_squashed_and_missing_ones_flagged(void **state)
{
	struct wf_bags bags;
	assert_ok(parse(wf_criteo_parse, *state,
			"1\t9\t-2\t0\t\t\t\t\t\t\t\t\t\t\t68fd1e64" NO_COUNTS
			"\t\t\t\t\t\t\t\t\t\t\t\t\n" EMPTY_ROW EMPTY_ROW EMPTY_ROW EMPTY_ROW,
			&bags));
	assert_true(bags.x[0] == (float)wf_log_f64(10.0));
	assert_true(bags.x[1] == (float)-wf_log_f64(3.0));
	assert_true(bags.x[2] == 0.0f && bags.x[3] == 0.0f);
	assert_true(bags.x[13] == 0.0f && bags.x[15] == 0.0f && bags.x[16] == 1.0f);
	assert_true(bags.key[0] == wf_slot_key(0, "68fd1e64", 8));
	assert_true(bags.key[1] == wf_slot_key(1, "", 0));
	assert_true(bags.y[0] == 1.0f && bags.y[1] == 0.0f);
	wf_bags_fini(*state, &bags);
}

static void
malformed_criteo_rows_are_refused_by_line_column_and_value(void **state)
{
	static const struct refusal cases[] = {
		{"", "has 0 rows"},
		{EMPTY_ROW, "has 1 rows"},
		{EMPTY_ROW "\n", "line 2: "},
		{NO_COUNTS NO_CATEGORIES "\n\n\n", "line 1, column 1: \"\" is not a label"},
		{"2" NO_COUNTS NO_CATEGORIES "\n", "line 1, column 1: \"2\" is not a label"},
		{EMPTY_ROW "0\t1.5\t\t\t\t\t\t\t\t\t\t\t\t" NO_CATEGORIES "\n",
		 "line 2, column 2: \"1.5\" is not a whole number"},
		{"0\t\t9999999999\t\t\t\t\t\t\t\t\t\t\t" NO_CATEGORIES "\n",
		 "line 1, column 3: \"9999999999\" is not within"},
		{"0" NO_COUNTS "\t68FD1E64" NO_COUNTS "\t\t\t\t\t\t\t\t\t\t\t\t\n",
		 "line 1, column 15: \"68FD1E64\" is not a category"},
		{"0" NO_COUNTS "\t68fd1e6" NO_COUNTS "\t\t\t\t\t\t\t\t\t\t\t\t\n",
		 "line 1, column 15: \"68fd1e6\" is not a category"},
		{"0" NO_COUNTS NO_COUNTS "\t\t\t\t\t\t\t\t\t\t\t\t\n", "line 1: has 39 of 40"},
		{"0" NO_COUNTS NO_CATEGORIES "\t\n", "line 1, column 41: \"\" is one column too"},
		{"0,1,2,3,4,5,6,7,8,9,10,11,12,13,68fd1e64,68fd1e64\n", "line 1: has 1 of 40"},
	};
	check_refusals(wf_criteo_parse, *state, cases, sizeof(cases) / sizeof(cases[0]));
}

static void
libsvm_rows_hold_any_number_of_entries(void **state)
{
	struct wf_bags bags;
	assert_ok(parse(wf_libsvm_parse, *state,
			"+1 1:0.5 3:-2 \n-1\n1 18446744073709551:1e-3\r\n-1 2:1\n-1 1:0", &bags));
	assert_int_equal(bags.rows, 5);
	assert_int_equal(bags.slots, 1);
	assert_int_equal(bags.features, 0);
	assert_int_equal(bags.entries, 5);
	assert_int_equal(bags.row_entries_max, 2);
	static const uint32_t first[] = {0, 2, 2, 3, 4, 5};
	static const uint64_t key[] = {1, 3, 18446744073709551ull, 2, 1};
	static const float weight[] = {0.5f, -2.0f, 1e-3f, 1.0f, 0.0f};
	static const float y[] = {1, 0, 1, 0, 0};
	assert_memory_equal(bags.first, first, sizeof(first));
	assert_memory_equal(bags.key, key, sizeof(key));
	assert_memory_equal(bags.weight, weight, sizeof(weight));
	assert_memory_equal(bags.y, y, sizeof(y));
	wf_bags_fini(*state, &bags);
}

static void
malformed_libsvm_rows_are_refused_by_line_column_and_value(void **state)
{
	static const struct refusal cases[] = {
		{"", "has 0 rows"},
		{"\n", "line 1"},
		{"+1 1:1\n\n", "line 2, column 1: \"\" is not a label"},
		{"2 1:1\n", "line 1, column 1: \"2\" is not a label of two classes"},
		{" +1 1:1\n", "line 1, column 1: \"\" is not a label"},
		{"0 1:1\n1 1:1\n-1 1:1\n", "\"-1\" is a third label: made.txt: line 1 has 0 as"},
		{"-1 1:1\n0 1:1\n",
		 "line 2, column 1: \"0\" is a third label: made.txt: line 1 has -1"},
		{"1 1:1  2:1\n", "line 1, column 3: \"\" is not index:value"},
		{"1 1:1  \n", "line 1, column 3: \"\" is not index:value"},
		{"1 qid:3 1:1\n", "line 1, column 2: \"qid:3\" has no whole number"},
		{"1 0:1\n",
		 "line 1, column 2: \"0:1\" has no whole number from 1 to 9999999999999999999 "},
		{"1 01:1\n", "line 1, column 2: \"01:1\" has no whole number"},
		{"1 :1\n", "line 1, column 2: \":1\" has no whole number"},
		{"1 1 2:1\n", "line 1, column 2: \"1\" is not index:value"},
		{"1 2:1 2:1\n", "line 1, column 3: \"2:1\" has an index that is not greater"},
		{"1 3:1 2:1\n", "line 1, column 3: \"2:1\" has an index that is not greater"},
		{"1 1:\n", "line 1, column 2: \"\" is not a decimal number"},
		{"1 1:nan\n", "line 1, column 2: \"nan\" is not a decimal number"},
		{"1 1:1e31\n", "line 1, column 2: \"1e31\" is not within"},
		{"1 1:2:3\n", "line 1, column 2: \"2:3\" is not a decimal number"},
		{"1 1:1 # note\n", "line 1, column 3: \"#\" is not index:value"},
		{"1 99999999999999999999:1\n",
		 "\"99999999999999999999:1\" has no whole number from 1 to 9999999999999999999 "},
	};
	check_refusals(wf_libsvm_parse, *state, cases, sizeof(cases) / sizeof(cases[0]));
}

static void
a_gathered_batch_is_the_rows_asked_for(void **state)
{
	struct wf_bags bags;
	struct wf_bag_batch batch;
	static const uint32_t rows[] = {4, 0, 1, 0};
	static const uint32_t first[] = {0, 1, 3, 3, 5};
	static const uint64_t key[] = {9, 1, 3, 1, 3};
	static const float weight[] = {4.0f, 0.5f, -2.0f, 0.5f, -2.0f};
	static const float y[] = {0, 1, 0, 1};

	assert_ok(parse(wf_libsvm_parse, *state, "+1 1:0.5 3:-2\n0\n0\n0\n0 9:4\n", &bags));
	const struct wf_bag_batch_opts opts = {
		.slots = bags.slots, .rows_max = 4, .row_entries_max = bags.row_entries_max};
	assert_ok(wf_bag_batch_init(*state, &opts, &batch));
	wf_bags_gather(&bags, rows, 4, &batch);
	assert_int_equal(batch.rows, 4);
	assert_memory_equal(batch.first, first, sizeof(first));
	assert_memory_equal(batch.key, key, sizeof(key));
	assert_memory_equal(batch.weight, weight, sizeof(weight));
	assert_memory_equal(batch.y, y, sizeof(y));
	wf_bag_batch_fini(*state, &batch);
	wf_bags_fini(*state, &bags);
}

static void
too_little_memory_is_said_and_none_is_lost(void **state)
{
	static const char text[] = "+1 1:0.5 3:-2\n0\n0\n0\n0 9:4\n";
	const struct wf_bag_batch_opts opts = {.slots = 1, .rows_max = 2, .row_entries_max = 2};
	struct wf_text made = text_of_bytes(*state, text, sizeof(text) - 1);
	struct heap_env heap = heap_env_make();
	struct wf_bag_batch batch;
	struct wf_bags bags;

	assert_ok(wf_libsvm_parse(&heap.env, &made, &bags));
	wf_bags_fini(&heap.env, &bags);
	assert_ok(wf_bag_batch_init(&heap.env, &opts, &batch));
	wf_bag_batch_fini(&heap.env, &batch);
	assert_int_equal(heap.calls, 10);
	for (unsigned fail_at = 1; fail_at <= 5; fail_at++) {
		heap = heap_env_make();
		heap.fail_at = fail_at;
		assert_refused(wf_libsvm_parse(&heap.env, &made, &bags), WEFT_NOMEM, "5 rows");
		assert_int_equal(heap.out_bytes, 0);
		heap = heap_env_make();
		heap.fail_at = fail_at;
		assert_refused(wf_bag_batch_init(&heap.env, &opts, &batch), WEFT_NOMEM, "2 rows");
		assert_int_equal(heap.out_bytes, 0);
	}
	wf_text_fini(*state, &made);
}

static void
files_are_read_by_name(void **state)
{
	struct wf_bags bags;
	assert_refused(wf_criteo_read(*state, "/nonexistent/file", &bags), WEFT_DATA,
		       "/nonexistent");
	assert_refused(wf_libsvm_read(*state, "/dev/zero", &bags), WEFT_DATA, "regular file");
}

/* Two files, one of them from its first line on: headers are where a file begins, and refusals name
 * the file and its own line. */
static void
a_text_may_consist_of_pieces_of_files(void **state)
{
	static const char good[] = STRIKE STRIKE STRIKES_HEADER STRIKE STRIKE STRIKE;
	static const char bad[] = STRIKE STRIKE STRIKES_HEADER STRIKE "A,B\n";
	struct wf_text_piece piece[] = {
		{.path = "part-0", .line = 41, .lines = 2},
		{.path = "part-1", .at = 2 * strlen(STRIKE), .line = 1, .lines = 4},
	};
	struct wf_bags bags;
	struct wf_text text = text_of_bytes(*state, good, strlen(good));
	text.piece = piece;
	text.piece_count = 2;
	assert_int_equal(wf_text_first_line_count(&text), 1);
	assert_ok(wf_strikes_parse(*state, &text, &bags));
	assert_int_equal(bags.rows, 5);
	wf_bags_fini(*state, &bags);
	piece[1].line = 7; /* then the header is no row */
	assert_refused(wf_strikes_parse(*state, &text, &bags), WEFT_DATA, "part-1: line 7");
	piece[0].line = 1; /* and a row is no header */
	assert_refused(wf_strikes_parse(*state, &text, &bags), WEFT_DATA, "part-0: line 1, column");
	wf_text_fini(*state, &text);

	piece[0].line = 41;
	piece[1].line = 1;
	text = text_of_bytes(*state, bad, strlen(bad));
	text.piece = piece;
	text.piece_count = 2;
	assert_refused(wf_strikes_parse(*state, &text, &bags), WEFT_DATA,
		       "part-1: line 3: has 2 of 14 columns");
	wf_text_fini(*state, &text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strikes_are_10000_rows_of_8_slots),
		cmocka_unit_test(a_strike_without_speed_says_so),
		cmocka_unit_test(malformed_strikes_are_refused_by_line_column_and_value),
		cmocka_unit_test(a_key_is_the_digest_of_slot_and_value),
		cmocka_unit_test(a_generated_file_in_criteos_layout_is_read),
		cmocka_unit_test(counts_are_squashed_and_missing_ones_flagged),
		cmocka_unit_test(malformed_criteo_rows_are_refused_by_line_column_and_value),
		cmocka_unit_test(libsvm_rows_hold_any_number_of_entries),
		cmocka_unit_test(malformed_libsvm_rows_are_refused_by_line_column_and_value),
		cmocka_unit_test(a_gathered_batch_is_the_rows_asked_for),
		cmocka_unit_test(too_little_memory_is_said_and_none_is_lost),
		cmocka_unit_test(files_are_read_by_name),
		cmocka_unit_test(a_text_may_consist_of_pieces_of_files),
	};
	return cmocka_run_group_tests(tests, open_env, close_env);
}
