/* SPDX-License-Identifier: Apache-2.0 */
/* Options: defaults by model, the original's names, refusals; and what statuses exit with. */
#include "tests/unit/train/setup.h"

#include "trainer/program/command.h"
#include "trainer/program/kind.h"
#include "base/exit_code.h"

#define ARGS_MAX 8

static struct wf_train_command command;

/* Words with blanks between them. */
static enum weft_status
parse(const char *line)
{
	static char text[256];
	char *argv[ARGS_MAX + 1] = {NULL};
	int argc = 0;
	snprintf(text, sizeof(text), "%s", line);
	char *rest;
	for (char *word = strtok_r(text, " ", &rest); word != NULL;
	     word = strtok_r(NULL, " ", &rest)) {
		assert_true(argc < ARGS_MAX);
		argv[argc++] = word;
	}
	return wf_train_command_parse(&command, NULL, argc, argv);
}

static void
what_is_done_with_nonfinite_values_is_the_sessions_setting(void **state)
{
	assert_ok(parse("weft-train linear --nonfinite=skip"));
	assert_true(wf_session_skips(&command.opts.session));
	assert_ok(parse("weft-train linear --nonfinite=abort"));
	assert_false(wf_session_skips(&command.opts.session));
}

/* The names are in a file of their own, for programs without the models. */
static void
the_names_of_models_are_those_of_the_table(void **state)
{
	const struct wf_kind *found;
	const struct wf_kind *kind;
	unsigned count = 0;
	for (; (kind = wf_kind_at(count)) != NULL; count++) {
		assert_ok(wf_kind_by_name(kind->name, &found));
		assert_ptr_equal(found, kind);
	}
	assert_refused(wf_kind_by_name("lin", &found), WEFT_INVALID,
		       "model lin: there is no such model; give one of: linear, mlp, ngram, ctr");
	assert_refused(wf_kind_by_name(NULL, &found), WEFT_INVALID, "the model is missing");
	for (const char *at = strstr(weft_last_error(), ": "); at != NULL; at = strchr(at, ',')) {
		at += 2;
		count--;
	}
	assert_int_equal(count, 0); /* as many as the message lists */
}

static void
defaults_depend_on_the_model(void **state)
{
	assert_ok(parse("weft-train linear"));
	assert_int_equal(command.opts.num_passes, 400);
	assert_int_equal(command.opts.batch_size, 0);
	assert_true(command.opts.session.optimizer.learning_rate == 1.0);
	assert_true(command.opts.session.optimizer.momentum == 0.9);
	assert_string_equal(command.opts.session.optimizer.method, "momentum");
	assert_int_equal(command.opts.session.grad_reduce, WEFT_REDUCE_MEAN);
	assert_false(wf_session_skips(&command.opts.session));
	assert_int_equal(command.opts.session.slice_bytes, 262144);
	assert_int_equal(command.opts.session.port, 7164);
	assert_ok(parse("weft-train mlp"));
	assert_int_equal(command.opts.batch_size, 32);
	assert_ok(parse("weft-train ngram"));
	assert_string_equal(command.opts.session.optimizer.method, "adagrad");
	assert_string_equal(command.opts.sparse_optimizer, "adagrad");
	assert_int_equal(command.opts.embedding, 32);
	assert_int_equal(command.opts.vocabulary, 2000);
	assert_ok(parse("weft-train ctr --optimizer=sgd --embedding=0 --hidden="));
	assert_string_equal(command.opts.session.optimizer.method, "sgd");
	assert_int_equal(command.opts.embedding, 0);
	assert_string_equal(command.opts.hidden, "");
	assert_string_equal(command.opts.format, "strikes");
	assert_true(command.opts.baseline);
}

static void
options_win_over_a_models_defaults(void **state)
{
	assert_ok(parse("weft-train mlp --batch-size=0 --learning_rate 0.5 --num_passes=3"));
	assert_int_equal(command.opts.batch_size, 0);
	assert_true(command.opts.session.optimizer.learning_rate == 0.5);
	assert_int_equal(command.opts.num_passes, 3);
}

static void
the_originals_environment_is_taken_and_said(void **state)
{
	char said[512];
	assert_int_equal(setenv("PADDLE_INIT_TRAINER_COUNT", "3", 1), 0);
	assert_int_equal(setenv("PADDLE_INIT_USE_GPU", "False", 1), 0);
	assert_ok(parse("weft-train linear"));
	assert_int_equal(command.opts.trainer_count, 3);
	assert_false(command.opts.use_gpu);
	assert_true(wf_options_understood(&command.options, said, sizeof(said)) >= 1);
	assert_non_null(strstr(said, "trainer_count=3 (PADDLE_INIT_TRAINER_COUNT)"));
	assert_ok(parse("weft-train linear --trainer_count=2"));
	assert_int_equal(command.opts.trainer_count, 2);
	assert_int_equal(unsetenv("PADDLE_INIT_TRAINER_COUNT"), 0);
	assert_int_equal(unsetenv("PADDLE_INIT_USE_GPU"), 0);
}

static void
is_async_and_local_steps_choose_a_mode_where_none_is_given(void **state)
{
	(void)state;
	assert_ok(parse("weft-train mlp"));
	assert_int_equal(command.opts.session.dense_mode, WEFT_DENSE_SYNC);
	assert_ok(parse("weft-train ctr --is_async"));
	assert_int_equal(command.opts.session.dense_mode, WEFT_DENSE_ASYNC);
	assert_int_equal(command.opts.session.sparse_mode, WEFT_SPARSE_ASYNC);
	assert_ok(parse("weft-train ctr --is_async --dense_mode=bounded"));
	assert_int_equal(command.opts.session.dense_mode, WEFT_DENSE_BOUNDED);
	assert_ok(parse("weft-train mlp --local_steps=4"));
	assert_int_equal(command.opts.session.dense_mode, WEFT_DENSE_LOCAL);
	assert_ok(parse("weft-train mlp --local_steps=4 --dense_mode=elastic"));
	assert_int_equal(command.opts.session.dense_mode, WEFT_DENSE_ELASTIC);
	assert_refused(parse("weft-train mlp --dense_mode=eventually"), WEFT_INVALID, "elastic");
	assert_refused(parse("weft-train mlp --elastic_rate=2"), WEFT_INVALID, "elastic_rate");
}

static void
learning_method_is_the_originals_word_for_optimizer(void **state)
{
	assert_ok(parse("weft-train mlp --optimizer=adam"));
	assert_string_equal(command.opts.session.optimizer.method, "adam");
	assert_ok(parse("weft-train mlp --learning_method=torch_momentum --optimizer=adam"));
	assert_string_equal(command.opts.session.optimizer.method, "torch_momentum");
	assert_ok(parse("weft-train ctr --learning_method=rmsprop"));
	assert_string_equal(command.opts.session.optimizer.method, "rmsprop");
}

/* Whichever of its names the command line has. */
static void
the_command_line_wins_over_another_name_in_the_environment(void **state)
{
	assert_int_equal(setenv("PADDLE_INIT_LEARNING_METHOD", "adam", 1), 0);
	assert_ok(parse("weft-train ngram"));
	assert_string_equal(command.opts.session.optimizer.method, "adam");
	assert_ok(parse("weft-train ngram --optimizer=sgd"));
	assert_string_equal(command.opts.session.optimizer.method, "sgd");
	assert_int_equal(unsetenv("PADDLE_INIT_LEARNING_METHOD"), 0);
	assert_int_equal(setenv("WEFT_LOCAL", "1", 1), 0);
	assert_ok(parse("weft-train linear --no-sequential"));
	assert_false(command.opts.sequential || command.opts.local);
	assert_int_equal(unsetenv("WEFT_LOCAL"), 0);
	assert_int_equal(setenv("WEFT_SEQUENTIAL", "1", 1), 0);
	assert_ok(parse("weft-train linear --no-local"));
	assert_false(command.opts.sequential || command.opts.local);
	assert_ok(parse("weft-train linear --local"));
	assert_true(command.opts.sequential || command.opts.local);
	assert_int_equal(unsetenv("WEFT_SEQUENTIAL"), 0);
	assert_int_equal(setenv("WEFT_DENSE_MODE", "bounded", 1), 0);
	assert_int_equal(setenv("WEFT_SPARSE_MODE", "bounded", 1), 0);
	assert_ok(parse("weft-train ctr --is_async"));
	assert_int_equal(command.opts.session.dense_mode, WEFT_DENSE_ASYNC);
	assert_int_equal(command.opts.session.sparse_mode, WEFT_SPARSE_ASYNC);
	assert_int_equal(unsetenv("WEFT_DENSE_MODE"), 0);
	assert_int_equal(unsetenv("WEFT_SPARSE_MODE"), 0);
}

static void
nothing_is_saved_or_loaded_unless_asked_for(void **state)
{
	assert_ok(parse("weft-train mlp"));
	assert_null(command.opts.save_dir);
	assert_null(command.opts.init_model_path);
	assert_int_equal(command.opts.saving_period, 1);
	assert_int_equal(command.opts.start_pass, 0);
	assert_false(command.opts.save_only_one);
	assert_ok(parse("weft-train mlp --save_dir=out --start_pass=3 --save_only_one"));
	assert_string_equal(command.opts.save_dir, "out");
	assert_int_equal(command.opts.start_pass, 3);
	assert_true(command.opts.save_only_one);
}

static void
bad_command_lines_are_refused(void **state)
{
	assert_refused(parse("weft-train"), WEFT_INVALID, "linear, mlp, ngram, ctr");
	assert_refused(parse("weft-train tree"), WEFT_INVALID, "tree");
	assert_refused(parse("weft-train linear mlp"), WEFT_INVALID, "mlp");
	assert_refused(parse("weft-train linear --num_pases=3"), WEFT_INVALID, "num_passes");
	assert_refused(parse("weft-train linear --num_passes=0"), WEFT_INVALID, "num_passes");
	assert_refused(parse("weft-train linear --slice_bytes=100"), WEFT_INVALID,
		       "slice_bytes=100: must be a size like 4096, 64KiB, 8M or 1GiB, from 64 to "
		       "64MiB, a multiple of 64");
	assert_refused(parse("weft-train linear --num_gradient_servers=0"), WEFT_INVALID,
		       "num_gradient_servers=0: must be a whole number, from 1 to 65536");
	assert_refused(parse("weft-train linear --grad_reduce=max"), WEFT_INVALID, "mean");
	assert_refused(parse("weft-train linear --nonfinite=true"), WEFT_INVALID, "abort");
	assert_refused(parse("weft-train linear --trainer_count=1000"), WEFT_INVALID, "1000");
	assert_refused(parse("weft-train linear --learning_rate=-1"), WEFT_INVALID,
		       "learning_rate");
	assert_refused(parse("weft-train ctr --format=parquet"), WEFT_INVALID, "libsvm");
	assert_refused(parse("weft-train ngram --vocabulary=1"), WEFT_INVALID, "vocabulary");
	assert_refused(parse("weft-train linear --saving_period=0"), WEFT_INVALID, "saving_period");
	assert_refused(parse("weft-train ctr --ports_num=257"), WEFT_INVALID, "ports_num");
	assert_refused(parse("weft-train ctr --ports_num_for_sparse=256"), WEFT_INVALID,
		       "ports_num_for_sparse");
	assert_refused(parse("weft-train ctr --sparse_wire=f64"), WEFT_INVALID, "bf16");
	assert_refused(parse("weft-train mlp --optimizer=rprop"), WEFT_INVALID, "decayed_adagrad");
	assert_refused(parse("weft-train mlp --learning_method=add"), WEFT_INVALID, "adamax");
	assert_refused(parse("weft-train mlp --ada_rou=2"), WEFT_INVALID, "ada_rou");
	assert_refused(parse("weft-train mlp --l1=-1"), WEFT_INVALID, "l1");
	assert_refused(parse("weft-train mlp --learning_rate_schedule=cosine"), WEFT_INVALID,
		       "pass_manual");
}

static void
help_needs_no_model(void **state)
{
	char *text = NULL;
	size_t bytes = 0;
	assert_ok(parse("weft-train --help"));
	assert_true(command.options.help_wanted);
	FILE *out = open_memstream(&text, &bytes);
	assert_non_null(out);
	wf_train_command_help(&command, out);
	assert_int_equal(fclose(out), 0);
	assert_non_null(strstr(text, "--num_gradient_servers"));
	assert_non_null(strstr(text, "mlp"));
	free(text);
}

/* A group without names shows the options that have its title for a heading. */
static const char *
names_of(const struct wf_help_group *group)
{
	return group->options != NULL ? group->options : "";
}

static bool
is_title(const char *heading)
{
	for (unsigned i = 0; i < wf_train_help.group_count; i++) {
		if (strcmp(wf_train_help.group[i].title, heading) == 0) {
			return true;
		}
	}
	return false;
}

/* How often a name stands in all groups of the help. */
static unsigned
times_grouped(const char *name)
{
	const struct wf_help *help = &wf_train_help;
	unsigned times = 0;
	for (unsigned i = 0; i < help->group_count; i++) {
		const char *at = names_of(&help->group[i]);
		for (; *at != '\0'; at += strspn(at, " ")) {
			size_t bytes = strcspn(at, " ");
			times += bytes == strlen(name) && memcmp(at, name, bytes) == 0;
			at += bytes;
		}
	}
	return times;
}

static bool
is_option(const char *name, size_t bytes)
{
	for (unsigned i = 0; i < command.options.option_count; i++) {
		const char *own = command.options.table[i].name;
		if (strlen(own) == bytes && memcmp(own, name, bytes) == 0) {
			return true;
		}
	}
	return false;
}

static void
groups_of_the_help_name_options_that_exist_and_each_once(void **state)
{
	assert_ok(parse("weft-train --help"));
	const struct wf_help *help = &wf_train_help;
	for (unsigned i = 0; i < help->group_count; i++) {
		const char *at = names_of(&help->group[i]);
		for (; *at != '\0'; at += strspn(at, " ")) {
			size_t bytes = strcspn(at, " ");
			if (!is_option(at, bytes)) {
				fail_msg("there is no option '%.*s'", (int)bytes, at);
			}
			at += bytes;
		}
	}
	for (unsigned i = 0; i < command.options.option_count; i++) {
		if (times_grouped(command.options.table[i].name) > 1) {
			fail_msg("%s stands in two groups", command.options.table[i].name);
		}
		const char *heading = command.options.table[i].heading;
		assert_true(heading == NULL || is_title(heading));
	}
}

static void
statuses_exit_as_documented(void **state)
{
	assert_int_equal(wf_exit_code(WEFT_OK), 0);
	assert_int_equal(wf_exit_code(WEFT_INVALID), 64);
	assert_int_equal(wf_exit_code(WEFT_DATA), 65);
	assert_int_equal(wf_exit_code(WEFT_UNAVAILABLE), 69);
	assert_int_equal(wf_exit_code(WEFT_TIMEOUT), 69);
	assert_int_equal(wf_exit_code(WEFT_LOST), 69);
	assert_int_equal(wf_exit_code(WEFT_NOMEM), 70);
	assert_int_equal(wf_exit_code(WEFT_INTERNAL), 70);
	assert_int_equal(wf_exit_code(WEFT_IO), 74);
	assert_int_equal(wf_exit_code(WEFT_AGAIN), 75);
	assert_int_equal(wf_exit_code(WEFT_PERM), 77);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_done_with_nonfinite_values_is_the_sessions_setting),
		cmocka_unit_test(the_names_of_models_are_those_of_the_table),
		cmocka_unit_test(defaults_depend_on_the_model),
		cmocka_unit_test(options_win_over_a_models_defaults),
		cmocka_unit_test(the_originals_environment_is_taken_and_said),
		cmocka_unit_test(is_async_and_local_steps_choose_a_mode_where_none_is_given),
		cmocka_unit_test(learning_method_is_the_originals_word_for_optimizer),
		cmocka_unit_test(the_command_line_wins_over_another_name_in_the_environment),
		cmocka_unit_test(nothing_is_saved_or_loaded_unless_asked_for),
		cmocka_unit_test(bad_command_lines_are_refused),
		cmocka_unit_test(help_needs_no_model),
		cmocka_unit_test(groups_of_the_help_name_options_that_exist_and_each_once),
		cmocka_unit_test(statuses_exit_as_documented),
	};
	return cmocka_run_group_tests(tests, open_env, close_env);
}
