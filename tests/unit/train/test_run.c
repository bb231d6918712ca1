/* SPDX-License-Identifier: Apache-2.0 */
/* Whole sequential runs: what they end with, and that they end with the same bits again. */
#include "tests/unit/train/setup.h"

#include <math.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/failing_env.h"
#include "trainer/program/command.h"
#include "trainer/readers/dataset.h"

#define ARGS_MAX 16
#define LINE_BYTES 256

/* What a run printed. */
struct output {
	unsigned lines;
	char last[LINE_BYTES];
	double cost, test;
	char digest[17];
	unsigned fail_at;         /* line that cannot be written; 0: none */
	unsigned first_pass;      /* of the first line */
	char verdict[LINE_BYTES]; /* the last line that is no pass's */
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
	} else {
		snprintf(output->verdict, sizeof(output->verdict), "%s", line);
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
	assert_ok(wf_train_command_parse(&command, NULL, argc, argv));
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
a_schedule_by_hand_counts_samples_or_passes(void **state)
{
	static const char line[] =
		"mlp --sequential --optimizer=sgd --batch_size=0 --num_passes=%d "
		"--learning_rate_schedule=%s --learning_rate_args=%s";
	static const char *const by[][2] = {{"manual", "1:1,2:0"}, {"pass_manual", "1:1,2:0"}};
	for (size_t i = 0; i < 2; i++) {
		char one[256];
		char four[256];
		snprintf(one, sizeof(one), line, i == 0 ? 1 : 2, by[i][0], by[i][1]);
		snprintf(four, sizeof(four), line, 4, by[i][0], by[i][1]);
		assert_string_equal(run(*state, one).digest, run(*state, four).digest);
	}
	assert_string_not_equal(
		run(*state, "mlp --sequential --optimizer=sgd --batch_size=0 --num_passes=1")
			.digest,
		run(*state, "mlp --sequential --optimizer=sgd --batch_size=0 --num_passes=2")
			.digest);
}

static void
l1_makes_small_parameters_zero(void **state)
{
	const struct output without = run(*state, "linear --sequential");
	const struct output with = run(*state, "linear --sequential --l1=0.05");
	const struct output all = run(*state, "linear --sequential --l1=1e6");
	assert_string_not_equal(without.digest, with.digest);
	assert_true(all.cost > with.cost && with.cost > without.cost);
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

/* The first lines of the novel, so that a run takes no time. */
static const char *
short_text(char folder[32], char path[64])
{
	char whole[WF_DATA_PATH_BYTES];
	char line[512];
	FILE *in = NULL;
	FILE *out = NULL;

	make_folder(folder);
	snprintf(path, 64, "%s/text", folder);
	assert_ok(wf_data_find("moby-dick.txt", whole));
	in = fopen(whole, "r");
	out = fopen(path, "w");
	assert_true(in != NULL && out != NULL);
	for (int i = 0; i < 300 && fgets(line, sizeof(line), in) != NULL; i++) {
		assert_true(fputs(line, out) >= 0);
	}
	assert_int_equal(fclose(out), 0);
	assert_int_equal(fclose(in), 0);
	return path;
}

#define NGRAM                                                                                      \
	"ngram --sequential --vocabulary=60 --hidden=12 --embedding=6 --num_passes=2 --data=%s %s"

/* A run of ngram on a short text. */
static struct output
run_ngram(struct wf_env *env, const char *more)
{
	char folder[32];
	char path[64];
	char line[400];

	snprintf(line, sizeof(line), NGRAM, short_text(folder, path), more);
	const struct output output = run(env, line);
	remove_folder(folder);
	return output;
}

static void
ngram_tells_perplexities_and_neighbours(void **state)
{
	double model = 0.0;
	double unigram = 0.0;
	double bigram = 0.0;
	const struct output output = run_ngram(*state, "--nearest=the,zzz,i");

	assert_int_equal(output.lines, 2 + 2 + 1);
	assert_int_equal(sscanf(output.verdict, "perplexity %lf unigram %lf bigram %lf", &model,
				&unigram, &bigram),
			 3);
	assert_true(model > 1.0 && bigram > 1.0 && bigram < unigram);
	/* Those of a validating run come from other rows, and are not told. */
	const struct output validating = run_ngram(*state, "--validate --nearest=");
	assert_int_equal(sscanf(validating.verdict, "perplexity %lf unigram", &model), 1);
	assert_null(strstr(validating.verdict, "unigram"));
	assert_int_equal(validating.lines, 3);
	assert_true(validating.test != output.test);
}

static void
tables_end_with_the_same_bits_and_are_in_the_digest(void **state)
{
	const struct output one = run_ngram(*state, "--num_gradient_servers=3 --seed=4");
	const struct output again = run_ngram(*state, "--num_gradient_servers=3 --seed=4");
	assert_string_equal(one.digest, again.digest);
	assert_string_equal(one.verdict, again.verdict);
	/* What changes rows only changes the digest of the first pass too. */
	const struct output other = run_ngram(
		*state, "--num_gradient_servers=3 --seed=4 --num_passes=1 --optimizer=sgd "
			"--learning_rate=1e-30");
	const struct output another = run_ngram(
		*state, "--num_gradient_servers=3 --seed=4 --num_passes=1 --optimizer=sgd "
			"--learning_rate=1e-30 --sparse_learning_rate=1e-20");
	assert_string_not_equal(other.digest, another.digest);
}

static void
every_optimizer_of_rows_learns(void **state)
{
	static const char *const more[] = {
		"--sparse_optimizer=sgd --sparse_learning_rate=1",
		"--sparse_optimizer=momentum",
		"--sparse_optimizer=sparse_momentum --momentum=0.5",
		"--sparse_optimizer=adagrad_rowwise",
		"--sparse_optimizer=rmsprop --sparse_learning_rate=0.001",
		"--sparse_optimizer=adam --sparse_learning_rate=0.01",
		"--sparse_optimizer=adam_rowwise --sparse_learning_rate=0.01",
		"--sparse_optimizer=ftrl --sparse_l1=0.0001",
		"--sparse_optimizer=ftrl_group --sparse_l21=0.0001",
		"--sparse_optimizer=sgd --sparse_decay=0.001 --dense_equivalent",
	};
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
		/* Below log 60, which is what knowing nothing costs. */
		assert_true(run_ngram(*state, more[i]).cost < 4.0);
	}
}

/* What 16 bits on the wire may cost: a hundredth of what f32 comes to. */
static void
values_that_travel_in_16_bits_learn_as_well(void **state)
{
	static const char *const wires[] = {"--sparse_wire=bf16", "--sparse_wire=f16"};
	const struct output plain = run_ngram(*state, "");
	double auc = 0.0;
	const struct output ctr = run(*state, "ctr --sequential --no-baseline");

	assert_int_equal(sscanf(ctr.verdict, "auc %lf", &auc), 1);
	for (size_t i = 0; i < sizeof(wires) / sizeof(wires[0]); i++) {
		double rounded = 0.0;
		char line[80];
		const struct output output = run_ngram(*state, wires[i]);
		assert_string_not_equal(output.digest, plain.digest);
		assert_true(fabs(output.cost - plain.cost) < 0.01 * plain.cost);
		snprintf(line, sizeof(line), "ctr --sequential --no-baseline %s", wires[i]);
		assert_int_equal(sscanf(run(*state, line).verdict, "auc %lf", &rounded), 1);
		assert_true(fabs(rounded - auc) < 0.01 * auc);
	}
}

/* What 16 bits may cost tensors: a hundredth of f32's cost after the same passes, and a twentieth
 * of its test figure, which is of rounded values; whichever way gradients are rounded. */
static void
tensors_that_travel_in_16_bits_learn_as_well(void **state)
{
	static const char *const models[] = {"linear", "mlp",
					     "mlp --optimizer=adam --learning_rate=0.002"};
	static const char *const wires[] = {"bf16", "f16", "bf16 --dense_rounding=stochastic",
					    "f16 --dense_rounding=stochastic"};
	char line[192];

	for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++) {
		snprintf(line, sizeof(line), "%s --sequential --num_gradient_servers=2 --seed=5",
			 models[m]);
		const struct output plain = run(*state, line);
		for (size_t i = 0; i < sizeof(wires) / sizeof(wires[0]); i++) {
			snprintf(line, sizeof(line),
				 "%s --sequential --num_gradient_servers=2 --seed=5 "
				 "--dense_wire=%s",
				 models[m], wires[i]);
			const struct output rounded = run(*state, line);
			assert_string_not_equal(rounded.digest, plain.digest);
			assert_true(fabs(rounded.cost - plain.cost) < 0.01 * plain.cost);
			assert_true(fabs(rounded.test - plain.test) < 0.05 * plain.test);
		}
	}
}

static void
ctr_tells_its_auc_beside_logistic_regression(void **state)
{
	double auc = 0.0;
	double logistic = 0.0;
	double alone = 0.0;
	const struct output output = run(*state, "ctr --sequential --num_gradient_servers=2");

	assert_int_equal(sscanf(output.verdict, "auc %lf logistic regression %lf", &auc, &logistic),
			 2);
	assert_true(auc > 0.74 && logistic > 0.74);
	const struct output baseline = run(*state, "ctr --sequential --num_gradient_servers=2 "
						   "--embedding=0 --hidden= --learning_rate=0.1 "
						   "--sparse_learning_rate=0.1");
	assert_int_equal(sscanf(baseline.verdict, "auc %lf", &alone), 1);
	assert_null(strstr(baseline.verdict, "logistic"));
	assert_true(alone == logistic);
	assert_true(run(*state, "ctr --sequential --no-baseline --test_period=200").test ==
		    run(*state, "ctr --sequential").test);
}

/* What only the model's own settings of rows make sense with, or would change, is not the
 * baseline's. */
static void
the_baseline_has_optimizers_of_its_own(void **state)
{
	static const char *const more[] = {
		"--sparse_optimizer=ftrl_group --sparse_l21=1e-4",
		"--sparse_optimizer=sgd --sparse_decay=1e-9 --sparse_l1=1e-9 --dense_equivalent",
		"--sparse_wire=bf16 --sparse_rest=bf16",
	};
	char line[300];

	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
		double auc = 0.0;
		double logistic = 0.0;
		double alone = 0.0;
		snprintf(line, sizeof(line), "ctr --sequential --num_passes=1 %s", more[i]);
		const struct output output = run(*state, line);
		assert_int_equal(
			sscanf(output.verdict, "auc %lf logistic regression %lf", &auc, &logistic),
			2);
		const struct output baseline =
			run(*state, "ctr --sequential --num_passes=1 --embedding=0 --hidden= "
				    "--learning_rate=0.1 --sparse_learning_rate=0.1");
		assert_int_equal(sscanf(baseline.verdict, "auc %lf", &alone), 1);
		assert_true(fabs(alone - logistic) < 1e-4);
	}
}

static void
ctr_admits_and_evicts(void **state)
{
	const struct output all = run(*state, "ctr --sequential --no-baseline");
	const struct output few = run(*state, "ctr --sequential --no-baseline --admit_count=20");
	const struct output old = run(*state, "ctr --sequential --no-baseline --evict_age=3");
	assert_string_not_equal(all.digest, few.digest);
	assert_string_not_equal(all.digest, old.digest);
	/* What was shown and clicked often stays: a score that nothing falls below changes no bit.
	 */
	const struct output kept = run(*state, "ctr --sequential --no-baseline --evict_score=1e-9");
	const struct output low =
		run(*state, "ctr --sequential --no-baseline --evict_score=3 --evict_fade=0.5");
	const struct output clicked =
		run(*state, "ctr --sequential --no-baseline --evict_score=3 --evict_fade=0.5 "
			    "--evict_click_weight=100");
	assert_string_equal(all.digest, kept.digest);
	assert_string_not_equal(all.digest, low.digest);
	assert_string_not_equal(low.digest, clicked.digest);
}

static void
a_memory_cap_of_tables_is_kept_and_ends_no_run(void **state)
{
	const struct output free = run(*state, "ctr --sequential --no-baseline");
	const struct output roomy =
		run(*state, "ctr --sequential --no-baseline --table_memory=1MiB --evict_at_cap");
	const struct output tight =
		run(*state, "ctr --sequential --no-baseline --table_memory=75KiB");
	assert_string_equal(free.digest, roomy.digest);
	assert_string_not_equal(free.digest, tight.digest);
	/* Too little for a table at all. */
	struct output output = {0};
	assert_refused(try(*state, "ctr --sequential --table_memory=30KiB", &output), WEFT_INVALID,
		       "cap");
}

static void
ctr_reads_libsvm(void **state)
{
	char folder[32];
	char line[200];

	make_folder(folder);
	snprintf(line, sizeof(line), "%s/rows", folder);
	FILE *out = fopen(line, "w");
	assert_non_null(out);
	for (int i = 0; i < 500; i++) {
		fprintf(out, "%s %d:1 %d:0.5\n", i % 3 == 0 ? "+1" : "-1", 1 + i % 3, 10 + i % 7);
	}
	assert_int_equal(fclose(out), 0);
	snprintf(line, sizeof(line),
		 "ctr --sequential --format=libsvm --data=%s/rows --sparse_learning_rate=0.5",
		 folder);
	const struct output output = run(*state, line);
	remove_folder(folder);
	assert_non_null(strstr(output.verdict, "auc 1.0000"));
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
		"ctr --sequential --num_passes=1 --batch_size=2000 --no-baseline",
	};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		const struct output whole = run(*state, lines[i]);
		struct wf_failing_env failing;
		uint64_t nth = 0;
		wf_failing_env_init(&failing, *state);
		do {
			struct output output = {0};
			wf_failing_env_fail(&failing, ++nth, false);
			enum weft_status st = try(&failing.env, lines[i], &output);
			/* A table can do without some of what it asks for. */
			if (st == WEFT_OK) {
				assert_string_equal(output.last, whole.last);
				assert_string_equal(output.digest, whole.digest);
			} else {
				assert_int_equal(st, WEFT_NOMEM);
			}
			assert_true(st == WEFT_OK || failing.failed != 0);
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
		{"linear --use_gpu=True", "CPUs"},
		{"linear --rdma_tcp=rdma", "rdma_tcp=tcp"},
		{"linear --sequential --hidden=3", "mlp"},
		{"linear --sequential --embedding=3", "embedding=3: the model linear has no table"},
		{"mlp --sequential --embedding=3", "embedding=3: the model mlp has no table"},
		{"linear --sequential --format=idx", "format=idx: the model linear does not read"},
		{"linear --sequential --format=strikes", "format=strikes: the model linear"},
		{"mlp --sequential --format=libsvm", "format=libsvm: the model mlp"},
		{"ngram --sequential --format=csv", "format=csv: the model ngram"},
		{"linear --sequential --pin=zebra", "zebra"},
		{"linear --sequential --momentum=1", "momentum"},
		{"mlp --closed_form", "linear has one"},
		{"ctr --closed_form", "linear has one"},
		{"ngram --sequential --embedding=0", "embedding=0"},
		{"ctr --sequential --format=criteo", "format=criteo"},
		{"ctr --sequential --admit_probability=0", "probability"},
		{"ngram --sequential --evict_age=3", "vocabulary"},
		{"ngram --sequential --evict_score=1", "vocabulary"},
		{"ctr --sequential --evict_at_cap", "cap"},
		{"ctr --sequential --init_model_path=nothing --sparse_optimizer=ftrl", "state"},
		{"ctr --num_passes=1", "ports_num_for_sparse=1"},
		{"mlp --dense_rounding=stochastic", "dense_wire=bf16 and f16"},
		{"mlp --staleness=2", "dense_mode=bounded"},
		{"mlp --sequential --is_async", "dense_mode=async"},
		{"mlp --dense_mode=local", "local_steps=0"},
		{"mlp --dense_mode=async --local_steps=2", "local_steps=2"},
		{"mlp --local_steps=2 --elastic_rate=0.1", "dense_mode=elastic"},
		{"mlp --local_steps=2 --optimizer=momentum --save_dir=nothing", "optimizer=sgd"},
		{"ctr --ports_num_for_sparse=1 --local_steps=2", "tables"},
		{"ctr --ports_num_for_sparse=1 --num_gradient_servers=2 --seed=0", "seed=0"},
		{"mlp --num_gradient_servers=2 --seed=0", "seed=0"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct output output = {0};
		assert_refused(try(*state, cases[i].line, &output), WEFT_INVALID, cases[i].part);
		assert_int_equal(output.lines, 0);
	}
	struct output output = {0};
	assert_refused(
		try(*state, "ctr --sequential --sparse_optimizer=adam --dense_equivalent", &output),
		WEFT_UNSUPPORTED, "sparse_optimizer");
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
tables_go_on_with_the_bits_of_a_run_that_did_not_stop(void **state)
{
	static const char *const more[] = {
		"--sparse_optimizer=adagrad",
		"--sparse_optimizer=adam --admit_count=3 --evict_age=30",
		"--evict_score=1.5 --evict_fade=0.9 --evict_fade_steps=20",
		"--sparse_optimizer=sparse_momentum --momentum=0.5 --sparse_learning_rate=0.01",
		"--sparse_optimizer=ftrl --embedding=0 --hidden=",
	};
	char folder[32];
	char line[250];

	make_folder(folder);
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
		struct output resumed = {.first_pass = 1};
		int bytes = snprintf(line, sizeof(line),
				     "ctr --sequential --num_gradient_servers=2 --no-baseline %s",
				     more[i]);
		snprintf(line + bytes, sizeof(line) - (size_t)bytes, " --num_passes=2");
		const struct output whole = run(*state, line);
		snprintf(line + bytes, sizeof(line) - (size_t)bytes,
			 " --num_passes=1 --save_dir=%s", folder);
		(void)run(*state, line);
		snprintf(line + bytes, sizeof(line) - (size_t)bytes,
			 " --num_passes=2 --save_dir=%s --start_pass=1", folder);
		assert_ok(try(*state, line, &resumed));
		assert_string_equal(resumed.digest, whole.digest);
		assert_string_equal(resumed.verdict, whole.verdict);
	}
	/* State of another optimizer is no beginning. */
	struct output output = {0};
	snprintf(line, sizeof(line),
		 "ctr --sequential --embedding=0 --hidden= --num_passes=2 --save_dir=%s "
		 "--start_pass=1 --sparse_optimizer=sgd",
		 folder);
	assert_refused(try(*state, line, &output), WEFT_DATA, "ftrl");
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
		cmocka_unit_test(a_schedule_by_hand_counts_samples_or_passes),
		cmocka_unit_test(l1_makes_small_parameters_zero),
		cmocka_unit_test(sum_does_not_divide_by_the_samples),
		cmocka_unit_test(ngram_tells_perplexities_and_neighbours),
		cmocka_unit_test(tables_end_with_the_same_bits_and_are_in_the_digest),
		cmocka_unit_test(every_optimizer_of_rows_learns),
		cmocka_unit_test(values_that_travel_in_16_bits_learn_as_well),
		cmocka_unit_test(tensors_that_travel_in_16_bits_learn_as_well),
		cmocka_unit_test(ctr_tells_its_auc_beside_logistic_regression),
		cmocka_unit_test(the_baseline_has_optimizers_of_its_own),
		cmocka_unit_test(ctr_admits_and_evicts),
		cmocka_unit_test(a_memory_cap_of_tables_is_kept_and_ends_no_run),
		cmocka_unit_test(ctr_reads_libsvm),
		cmocka_unit_test(gradients_that_are_not_finite_end_the_job_or_are_skipped),
		cmocka_unit_test(a_result_that_cannot_be_written_ends_the_run),
		cmocka_unit_test(running_out_of_memory_is_refused_and_leaks_nothing),
		cmocka_unit_test(settings_that_cannot_be_are_refused),
		cmocka_unit_test(a_run_that_goes_on_ends_with_the_bits_of_one_that_did_not_stop),
		cmocka_unit_test(tables_go_on_with_the_bits_of_a_run_that_did_not_stop),
		cmocka_unit_test(a_pass_that_is_not_there_is_bad_data),
	};
	return cmocka_run_group_tests(tests, open_env, close_env);
}
