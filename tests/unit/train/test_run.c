/* SPDX-License-Identifier: Apache-2.0 */
/* Whole sequential runs: what they end with, and that they end with the same bits again. */
#include "tests/unit/train/setup.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/failing_env.h"
#include "trainer/program/command.h"

#define ARGS_MAX 12
#define LINE_BYTES 160

/* What a run printed. */
struct output {
	unsigned lines;
	char last[LINE_BYTES];
	double cost, test;
	char digest[17];
	unsigned fail_at;    /* line that cannot be written; 0: none */
	unsigned first_pass; /* of the first line */
};

static enum weft_status
take_line(void *arg, const char *line)
{
	struct output *output = arg;
	unsigned long long pass = 0;
	output->lines++;
	if (output->lines == output->fail_at) {
		return wf_fail(WEFT_IO, "no more paper");
	}
	snprintf(output->last, sizeof(output->last), "%s", line);
	if (strncmp(line, "pass ", 5) == 0) {
		assert_int_equal(sscanf(line, "pass %llu cost %lf test %lf digest %16s", &pass,
					&output->cost, &output->test, output->digest),
				 4);
		assert_int_equal(pass, output->first_pass + output->lines - 1);
		assert_int_equal(strlen(output->digest), 16);
		assert_int_equal(strspn(output->digest, "0123456789abcdef"), 16);
	}
	return WEFT_OK;
}

static enum weft_status
try(struct wf_env *env, const char *line, struct output *output)
{
	static struct wf_train_command command;
	static char text[512];
	char *argv[ARGS_MAX + 1] = {NULL};
	int argc = 0;
	snprintf(text, sizeof(text), "weft-train %s", line);
	char *rest;
	for (char *word = strtok_r(text, " ", &rest); word != NULL;
	     word = strtok_r(NULL, " ", &rest)) {
		assert_true(argc < ARGS_MAX);
		argv[argc++] = word;
	}
	assert_ok(wf_train_command_parse(&command, argc, argv));
	const struct wf_train_sink sink = {.line = take_line, .arg = output};
	return wf_train_run(&command.opts, env, &sink);
}

static struct output
run(struct wf_env *env, const char *line)
{
	struct output output = {0};
	assert_ok(try(env, line, &output));
	return output;
}

static void
linear_comes_within_one_percent_of_the_closed_form(void **state)
{
	double train = 0.0;
	double test = 0.0;
	const struct output closed = run(*state, "linear --closed_form");
	assert_int_equal(sscanf(closed.last, "closed form train %lf test %lf", &train, &test), 2);
	for (int trainers = 1; trainers <= 3; trainers++) {
		char line[80];
		snprintf(line, sizeof(line), "linear --sequential --num_gradient_servers=%d",
			 trainers);
		const struct output output = run(*state, line);
		assert_int_equal(output.lines, 400);
		assert_true(output.cost < 1.01 * train && output.cost > 0.99 * train);
		assert_true(output.test < 1.01 * test && output.test > 0.99 * test);
	}
}

static void
mlp_reads_most_digits(void **state)
{
	assert_true(run(*state, "mlp --sequential").test < 0.12);
	assert_true(run(*state, "mlp --sequential --num_gradient_servers=4").test < 0.12);
	assert_true(run(*state, "mlp --sequential --hidden=32,16").test < 0.2);
}

static void
every_optimizer_learns(void **state)
{
	assert_true(run(*state, "mlp --sequential --optimizer=adam --learning_rate=0.002").test <
		    0.12);
	assert_true(run(*state, "mlp --sequential --optimizer=sgd --learning_rate=0.5").test <
		    0.12);
}

static void
the_same_seed_ends_with_the_same_bits(void **state)
{
	static const char line[] = "mlp --sequential --num_passes=2 --num_gradient_servers=3 "
				   "--seed=5 --slice_bytes=256";
	const struct output first = run(*state, line);
	const struct output again = run(*state, line);
	assert_string_equal(first.last, again.last);
}

static void
another_seed_ends_with_other_bits(void **state)
{
	const struct output first = run(*state, "mlp --sequential --num_passes=1 --seed=5");
	const struct output other = run(*state, "mlp --sequential --num_passes=1 --seed=6");
	assert_string_not_equal(first.digest, other.digest);
}

static void
the_size_of_slices_changes_no_bit(void **state)
{
	const struct output small =
		run(*state,
		    "mlp --sequential --num_passes=2 --num_gradient_servers=2 --slice_bytes=64");
	const struct output large =
		run(*state,
		    "mlp --sequential --num_passes=2 --num_gradient_servers=2 --slice_bytes=1M");
	assert_string_equal(small.last, large.last);
}

static void
two_compute_threads_learn_as_well(void **state)
{
	static const char line[] = "linear --sequential --trainer_count=2";
	const struct output first = run(*state, line);
	const struct output again = run(*state, line);
	assert_string_equal(first.last, again.last);
	assert_true(first.cost < 23.0 && first.test < 33.13);
}

static void
more_trainers_than_rows_is_no_error(void **state)
{
	const struct output output =
		run(*state, "linear --sequential --num_gradient_servers=405 --num_passes=2");
	assert_int_equal(output.lines, 2);
}

static void
a_schedule_counts_the_samples_applied(void **state)
{
	/* The rate comes down to 0 after 500 samples: no step of a later pass changes a bit. */
	static const char line[] = "mlp --sequential --optimizer=sgd --num_passes=%d "
				   "--learning_rate_schedule=linear --learning_rate_decay_a=1e-4";
	char one[256];
	char three[256];
	snprintf(one, sizeof(one), line, 1);
	snprintf(three, sizeof(three), line, 3);
	assert_string_equal(run(*state, one).digest, run(*state, three).digest);
}

static void
sum_does_not_divide_by_the_samples(void **state)
{
	/* The same step but for rounding: a rate 404 times smaller, of a sum over 404 rows. */
	const struct output sum = run(*state, "linear --sequential --num_passes=50 "
					      "--grad_reduce=sum --learning_rate=0.0024752475");
	const struct output mean = run(*state, "linear --sequential --num_passes=50");
	assert_true(sum.cost / mean.cost < 1.001 && sum.cost / mean.cost > 0.999);
}

static void
gradients_that_are_not_finite_end_the_job_or_are_skipped(void **state)
{
	struct output output = {0};
	assert_refused(try(*state, "mlp --sequential --learning_rate=1e25 --num_passes=2", &output),
		       WEFT_DATA, "not finite");
	assert_non_null(strstr(weft_last_error(), "fc"));
	output = (struct output){0};
	assert_ok(try(*state,
		      "mlp --sequential --learning_rate=1e25 --num_passes=1 --nonfinite=skip",
		      &output));
	assert_int_equal(output.lines, 1);
}

static void
a_result_that_cannot_be_written_ends_the_run(void **state)
{
	struct output output = {.fail_at = 2};
	assert_refused(try(*state, "linear --sequential", &output), WEFT_IO, "no more paper");
	assert_int_equal(output.lines, 2);
}

static void
running_out_of_memory_is_refused_and_leaks_nothing(void **state)
{
	static const char *const lines[] = {
		"linear --sequential --num_passes=1 --num_gradient_servers=2 --trainer_count=2",
		"linear --closed_form",
	};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct wf_failing_env failing;
		uint64_t nth = 0;
		wf_failing_env_init(&failing, *state);
		do {
			struct output output = {0};
			wf_failing_env_fail(&failing, ++nth, false);
			enum weft_status st = try(&failing.env, lines[i], &output);
			assert_int_equal(st, failing.failed == 0 ? WEFT_OK : WEFT_NOMEM);
			assert_true(wf_failing_env_is_clean(&failing));
		} while (failing.failed != 0);
		assert_true(nth > 3);
	}
}

static void
settings_that_cannot_be_are_refused(void **state)
{
	static const struct {
		const char *line;
		const char *part;
	} cases[] = {
		{"linear --trainer_id=2 --num_gradient_servers=2", "trainer_id=2"},
		{"linear --sequential --slice_bytes=100", "slice_bytes=100"},
		{"linear --use_gpu=True", "CPUs"},
		{"linear --rdma_tcp=rdma", "rdma_tcp=tcp"},
		{"linear --sequential --hidden=3", "mlp"},
		{"linear --sequential --pin=zebra", "zebra"},
		{"linear --sequential --momentum=1", "momentum"},
		{"mlp --closed_form", "linear has one"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct output output = {0};
		assert_refused(try(*state, cases[i].line, &output), WEFT_INVALID, cases[i].part);
		assert_int_equal(output.lines, 0);
	}
}

/* A folder of its own; the caller removes what is in it. */
static void
make_folder(char path[32])
{
	snprintf(path, 32, "/tmp/weft-run-XXXXXX");
	assert_non_null(mkdtemp(path));
}

static void
remove_folder(const char *path)
{
	char command_line[64];
	pid_t child = 0;
	char *argv[] = {(char[]){"rm"}, (char[]){"-rf"}, command_line, NULL};

	snprintf(command_line, sizeof(command_line), "%s", path);
	assert_int_equal(posix_spawnp(&child, "rm", NULL, NULL, argv, NULL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void
a_run_that_goes_on_ends_with_the_bits_of_one_that_did_not_stop(void **state)
{
	static const char *const optimizers[] = {"sgd",     "momentum", "nesterov",
						 "adagrad", "adam",     "adamw"};
	char folder[32];
	char line[250];

	make_folder(folder);
	for (size_t i = 0; i < sizeof(optimizers) / sizeof(optimizers[0]); i++) {
		struct output resumed = {.first_pass = 2};
		int bytes = snprintf(line, sizeof(line),
				     "mlp --sequential --num_gradient_servers=3 --optimizer=%s "
				     "--learning_rate=0.01",
				     optimizers[i]);

		snprintf(line + bytes, sizeof(line) - (size_t)bytes, " --num_passes=4");
		const struct output whole = run(*state, line);
		snprintf(line + bytes, sizeof(line) - (size_t)bytes,
			 " --num_passes=2 --save_dir=%s", folder);
		(void)run(*state, line);
		snprintf(line + bytes, sizeof(line) - (size_t)bytes,
			 " --num_passes=4 --save_dir=%s --start_pass=2", folder);
		assert_ok(try(*state, line, &resumed));
		assert_string_equal(resumed.last, whole.last);
		assert_int_equal(resumed.lines, 2);
	}
	remove_folder(folder);
}

static void
a_pass_that_is_not_there_is_bad_data(void **state)
{
	char folder[32];
	char line[250];
	struct output output = {0};

	make_folder(folder);
	snprintf(line, sizeof(line), "linear --sequential --save_dir=%s --start_pass=4", folder);
	assert_refused(try(*state, line, &output), WEFT_DATA, "pass-00003");
	snprintf(line, sizeof(line), "linear --sequential --init_model_path=%s", folder);
	assert_refused(try(*state, line, &output), WEFT_DATA, "manifest");
	assert_int_equal(output.lines, 0);
	remove_folder(folder);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(linear_comes_within_one_percent_of_the_closed_form),
		cmocka_unit_test(mlp_reads_most_digits),
		cmocka_unit_test(every_optimizer_learns),
		cmocka_unit_test(the_same_seed_ends_with_the_same_bits),
		cmocka_unit_test(another_seed_ends_with_other_bits),
		cmocka_unit_test(the_size_of_slices_changes_no_bit),
		cmocka_unit_test(two_compute_threads_learn_as_well),
		cmocka_unit_test(more_trainers_than_rows_is_no_error),
		cmocka_unit_test(a_schedule_counts_the_samples_applied),
		cmocka_unit_test(sum_does_not_divide_by_the_samples),
		cmocka_unit_test(gradients_that_are_not_finite_end_the_job_or_are_skipped),
		cmocka_unit_test(a_result_that_cannot_be_written_ends_the_run),
		cmocka_unit_test(running_out_of_memory_is_refused_and_leaks_nothing),
		cmocka_unit_test(settings_that_cannot_be_are_refused),
		cmocka_unit_test(a_run_that_goes_on_ends_with_the_bits_of_one_that_did_not_stop),
		cmocka_unit_test(a_pass_that_is_not_there_is_bad_data),
	};
	return cmocka_run_group_tests(tests, open_env, close_env);
}
