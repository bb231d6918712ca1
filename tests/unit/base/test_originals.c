/* SPDX-License-Identifier: Apache-2.0 */
/* The flags of the original: each has an answer, and a command line, a variable and a file get it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/options.h"
#include "base/options_internal.h"

/* Every flag of the original's sources and documents, with the programs that read it. */
static const char trainers[] =
	"port ports_num ports_num_for_sparse nics rdma_tcp pservers num_gradient_servers "
	"trainer_id trainer_count parallel_thread_num small_messages sock_send_buf_size "
	"sock_recv_buf_size start_pserver data_server_port use_old_updater enable_grad_share "
	"grad_share_block_num async_count check_sparse_distribution_in_pserver "
	"show_check_sparse_distribution_log check_sparse_distribution_batches "
	"check_sparse_distribution_unbalance_degree check_sparse_distribution_ratio config "
	"config_args local num_passes start_pass init_model_path load_missing_parameter_strategy "
	"save_dir saving_period saving_period_by_batches save_only_one "
	"loadsave_parameters_in_pserver log_period dot_period show_parameter_stats_period "
	"show_layer_stat test_period test_all_data_in_one_period average_test_period test_pass "
	"test_wait distribute_test model_list predict_file predict_output_dir feat_file "
	"prev_batch_state with_cost beam_size checkgrad_eps job use_gpu gpu_id parallel_nn "
	"allow_only_one_model_on_one_gpu use_mkldnn enable_parallel_vector log_clipping "
	"log_error_clipping seed thread_local_rand_use_global_seed profile_signal "
	"profile_data_file python_path python_bin comment diy_beam_search_prob_so rnn_use_batch "
	"parameter_block_size parameter_block_size_for_sparse memory_threshold_on_load_data";
static const char pservers[] =
	"port ports_num ports_num_for_sparse nics rdma_tcp num_gradient_servers small_messages "
	"sock_send_buf_size sock_recv_buf_size sock_listen_queue_size pserver_num_threads "
	"async_lagged_ratio_min async_lagged_ratio_default log_period_server use_gpu comment "
	"log_barrier_abstract log_barrier_lowest_nodes log_barrier_show_log";

struct values {
	double ratio;
	const char *text;
};

static const struct wf_option table[] = {
	{.name = "async_lagged_grad_discard_ratio",
	 .type = WF_OPTION_F64,
	 .offset = offsetof(struct values, ratio),
	 .initial = "1.5",
	 .means = "the ratio"},
	{.name = "text", .type = WF_OPTION_STRING, .offset = offsetof(struct values, text)},
};

#define COUNT WF_ARRAY_COUNT(table)
#define ARGS_MAX 4

static struct values values;
static enum wf_option_origin origin[COUNT];
static const char *env_name[COUNT];
static struct wf_originals originals;
static struct wf_option_file file;
static struct wf_options options;

static int
set_up(void **state)
{
	(void)state;
	(void)clearenv();
	originals = (struct wf_originals){0};
	options = (struct wf_options){.table = table,
				      .option_count = COUNT,
				      .program = "weft train",
				      .target = &values,
				      .origin = origin,
				      .env_name = env_name,
				      .originals = &originals};
	return 0;
}

/* Parses up to three words; NULL ends them. The values point into copies, until the next call. */
static enum weft_status
parse(const char *first, const char *second, const char *third)
{
	static char text[ARGS_MAX][128];
	const char *given[ARGS_MAX] = {"weft", first, second, third};
	char *argv[ARGS_MAX + 1] = {NULL};
	int argc = 0;
	for (; argc < ARGS_MAX && given[argc] != NULL; argc++) {
		snprintf(text[argc], sizeof(text[argc]), "%s", given[argc]);
		argv[argc] = text[argc];
	}
	return wf_options_parse(&options, argc, argv);
}

static unsigned
rows_of(const char *name, size_t bytes, bool serves)
{
	unsigned count = 0;
	const struct wf_original *row = NULL;
	for (unsigned i = 0; (row = wf_original_at(i)) != NULL; i++) {
		count += strlen(row->name) == bytes && strncmp(row->name, name, bytes) == 0 &&
			 (serves ? row->of_pserver : row->of_trainer);
	}
	return count;
}

static void
check_list(const char *list, bool serves)
{
	for (const char *at = list; *at != '\0'; at += strspn(at, " ")) {
		size_t bytes = strcspn(at, " ");
		if (rows_of(at, bytes, serves) != 1) {
			fail_msg("%.*s has %u rows", (int)bytes, at, rows_of(at, bytes, serves));
		}
		at += bytes;
	}
}

static void
every_flag_of_the_original_has_one_answer(void **state)
{
	(void)state;
	check_list(trainers, false);
	check_list(pservers, true);
	assert_null(wf_original_at(WF_ORIGINALS_MAX));
	const struct wf_original *row = NULL;
	for (unsigned i = 0; (row = wf_original_at(i)) != NULL; i++) {
		assert_true(row->of_trainer || row->of_pserver);
		assert_true(row->answer == WF_ORIGINAL_OPTION || row->text != NULL);
		assert_true((row->answer == WF_ORIGINAL_MAPPED) == (row->to != NULL));
	}
}

/* Each flag that is no option, as its users would give it. */
static void
each_flag_is_accepted_or_refused_with_what_replaces_it(void **state)
{
	(void)state;
	const struct wf_original *row = NULL;
	unsigned answered = 0;
	for (unsigned i = 0; (row = wf_original_at(i)) != NULL; i++) {
		char word[WF_OPTION_NAME_BYTES + 16];
		if (row->answer == WF_ORIGINAL_OPTION) {
			continue;
		}
		originals.serves = !row->of_trainer;
		snprintf(word, sizeof(word), "--%s=7", row->name);
		enum weft_status st = parse(word, NULL, NULL);
		assert_int_equal(st, row->answer == WF_ORIGINAL_REFUSED ? WEFT_INVALID : WEFT_OK);
		if (st != WEFT_OK) {
			assert_non_null(strstr(weft_last_error(), row->name));
			assert_non_null(strstr(weft_last_error(), row->text));
		}
		if (row->answer == WF_ORIGINAL_REFUSED && row->harmless != NULL) {
			snprintf(word, sizeof(word), "--%s=%s", row->name, row->harmless);
			assert_int_equal(parse(word, NULL, NULL), WEFT_OK);
			assert_string_equal(originals.value[i], row->harmless);
		}
		answered++;
	}
	assert_true(answered >= 32);
}

static void
a_flag_is_spelt_like_an_option(void **state)
{
	(void)state;
	assert_int_equal(parse("--use-mkldnn", "--gpu_id", "3"), WEFT_OK);
	assert_int_equal(parse("--no-parallel_nn", NULL, NULL), WEFT_OK);
	assert_int_equal(parse("--parallel_nn=FALSE", "--beam_size=1.0", "--job=Train"), WEFT_OK);
	assert_int_equal(parse("--parallel_nn", NULL, NULL), WEFT_INVALID);
	assert_int_equal(parse("--no-parallel_nn=1", NULL, NULL), WEFT_INVALID);
	assert_int_equal(parse("--gpu_id", NULL, NULL), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "--gpu_id needs a value"));
	assert_int_equal(parse("--no-gpu_id", NULL, NULL), WEFT_INVALID);
	bool next = false;
	assert_true(wf_options_knows(&options, "--gpu_id", &next));
	assert_true(next);
	assert_true(wf_options_knows(&options, "--use_mkldnn", &next));
	assert_false(next);
	/* What is no flag of this command stays unknown; a command without memory knows none. */
	assert_int_equal(parse("--log_barrier_abstract", NULL, NULL), WEFT_INVALID);
	options.originals = NULL;
	assert_int_equal(parse("--use_mkldnn", NULL, NULL), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "unknown option"));
}

static void
a_mapped_flag_sets_the_option(void **state)
{
	char said[512];
	(void)state;
	assert_int_equal(parse("--async_lagged_ratio_default=2.5", NULL, NULL), WEFT_OK);
	assert_true(values.ratio == 2.5);
	assert_int_equal(wf_options_origin(&options, table[0].name), WF_ORIGIN_ARGUMENT);
	assert_int_equal(wf_options_understood(&options, said, sizeof(said)), 2);
	assert_string_equal(said, "async_lagged_grad_discard_ratio=2.5 (argument) the ratio\n"
				  "async_lagged_ratio_default=2.5 (argument) is "
				  "--async_lagged_grad_discard_ratio: the ratio has one name here");
	assert_int_equal(parse("--async_lagged_ratio_default=x", NULL, NULL), WEFT_INVALID);
	originals.serves = true;
	assert_int_equal(parse("--async_lagged_ratio_default=2.5", NULL, NULL), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "--async_lagged_grad_discard_ratio"));
}

static void
variables_get_the_same_answers(void **state)
{
	char said[256];
	(void)state;
	setenv("PADDLE_INIT_USE_MKLDNN", "1", 1);
	assert_int_equal(parse(NULL, NULL, NULL), WEFT_OK);
	assert_int_equal(wf_options_understood(&options, said, sizeof(said)), 1);
	assert_string_equal(said, "use_mkldnn=1 (PADDLE_INIT_USE_MKLDNN) accepted, without "
				  "effect: weft computes with OpenBLAS");
	setenv("PADDLE_INIT_ASYNC_LAGGED_RATIO_DEFAULT", "3", 1);
	assert_int_equal(parse(NULL, NULL, NULL), WEFT_OK);
	assert_true(values.ratio == 3.0);
	setenv("WEFT_ASYNC_LAGGED_GRAD_DISCARD_RATIO", "4", 1);
	assert_int_equal(parse(NULL, NULL, NULL), WEFT_OK);
	assert_true(values.ratio == 4.0);
	unsetenv("WEFT_ASYNC_LAGGED_GRAD_DISCARD_RATIO");
	setenv("PADDLE_INIT_ASYNC_LAGGED_RATIO_DEFAULT", "many", 1);
	assert_int_equal(parse(NULL, NULL, NULL), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "PADDLE_INIT_ASYNC_LAGGED_RATIO_DEFAULT=many"));
	unsetenv("PADDLE_INIT_ASYNC_LAGGED_RATIO_DEFAULT");
	setenv("PADDLE_INIT_JOB", "test", 1);
	assert_int_equal(parse(NULL, NULL, NULL), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "job=test (PADDLE_INIT_JOB)"));
	setenv("PADDLE_INIT_JOB", "", 1); /* counts as not set */
	assert_int_equal(parse(NULL, NULL, NULL), WEFT_OK);
}

static void
a_file_gets_the_same_answers(void **state)
{
	static const char good[] = "use_mkldnn = true\nasync_lagged_ratio_default = 2\n";
	static const char bad[] = "predict_file = x\n";
	(void)state;
	assert_int_equal(parse(NULL, NULL, NULL), WEFT_OK); /* the defaults */
	options.file = &file;
	file.path = "job.conf";
	file.bytes = strlen(good);
	memcpy(file.text, good, sizeof(good));
	assert_int_equal(wf_option_file_parse(&options), WEFT_OK);
	assert_true(values.ratio == 2.0);
	file.bytes = strlen(bad);
	memcpy(file.text, bad, sizeof(bad));
	assert_int_equal(wf_option_file_parse(&options), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "predict_file=x (job.conf)"));
}

static void
lines_that_do_not_fit_are_cut(void **state)
{
	char said[64];
	(void)state;
	assert_int_equal(parse("--use_mkldnn", "--log_clipping", "--gpu_id=1"), WEFT_OK);
	for (size_t bytes = 1; bytes <= sizeof(said); bytes++) {
		memset(said, 'x', sizeof(said));
		(void)wf_options_understood(&options, said, bytes);
		assert_true(memchr(said, '\0', bytes) != NULL);
		assert_true(bytes == sizeof(said) || said[bytes] == 'x');
	}
}

static void
help_lists_the_flags_on_request(void **state)
{
	(void)state;
	assert_int_equal(parse("--help=original", "--nonsense", NULL), WEFT_OK);
	assert_true(options.help_wanted);
	assert_true(options.original_wanted);
	assert_int_equal(parse("--help", NULL, NULL), WEFT_OK);
	assert_false(options.original_wanted);
	options.originals = NULL;
	assert_int_equal(parse("--help=original", NULL, NULL), WEFT_INVALID);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(every_flag_of_the_original_has_one_answer, set_up),
		cmocka_unit_test_setup(each_flag_is_accepted_or_refused_with_what_replaces_it,
				       set_up),
		cmocka_unit_test_setup(a_flag_is_spelt_like_an_option, set_up),
		cmocka_unit_test_setup(a_mapped_flag_sets_the_option, set_up),
		cmocka_unit_test_setup(variables_get_the_same_answers, set_up),
		cmocka_unit_test_setup(a_file_gets_the_same_answers, set_up),
		cmocka_unit_test_setup(lines_that_do_not_fit_are_cut, set_up),
		cmocka_unit_test_setup(help_lists_the_flags_on_request, set_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
