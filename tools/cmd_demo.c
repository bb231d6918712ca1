/* SPDX-License-Identifier: Apache-2.0 */
/* weft demo: a whole job on real data, compared with the same training in one process and with a
 * known figure. Thread: main, the only one. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/outlet.h"
#include "tools/command.h"
#include "tools/launch/plan.h"
#include "tools/launch/ports.h"
#include "transport/address.h"

#define PROGRAM "weft demo"
#define GRACE_NS (5 * WF_NS_PER_S)
#define PSERVERS 2
#define LANES 2 /* ports of each pserver, dense and sparse together */
#define TRAINERS 2
#define CHILDREN (PSERVERS + TRAINERS)
#define OUT_QUEUE_BYTES ((size_t)256 << 10)
#define TOLERANCE 0.01 /* of the closed form's figure */
#define CLEARLY 0.75   /* of the unigram's perplexity: below that it is beaten clearly */
#define AUC_MIN 0.75   /* chance is 0.5 */

/* What a trained model is held against, besides the sequential run. */
enum yardstick {
	CLOSED_FORM,
	TEST_BOUND, /* test_max */
	WORD_COUNTS,
	LOGISTIC_REGRESSION,
};

struct demo {
	const char *name;
	const char *summary;
	const char *model;
	const char *more[2];   /* options of the trainers; NULL: none */
	unsigned sparse_ports; /* of the LANES */
	unsigned show_every;   /* passes between two lines */
	enum yardstick yardstick;
	double test_max; /* limit of the test figure */
};

static const struct demo demos[] = {
	{
		.name = "linear",
		.summary = "least squares on the Boston housing data, 506 x 13",
		.model = "linear",
		.show_every = 100,
		.yardstick = CLOSED_FORM,
	},
	{
		.name = "mlp",
		.summary = "one hidden layer and softmax on the UCI digits, 1,797 x 64",
		.model = "mlp",
		.more = {"--slice_bytes=256"}, /* small enough for slices on every lane */
		.show_every = 5,
		.yardstick = TEST_BOUND,
		.test_max = 0.10,
	},
	{
		.name = "words",
		.summary = "the next word of Moby-Dick from four before it (word2vec)",
		.model = "ngram",
		.more = {"--num_passes=2"}, /* three are a little better, and take longer */
		.sparse_ports = 1,
		.show_every = 1,
		.yardstick = WORD_COUNTS,
	},
	{
		.name = "strikes",
		.summary = "damage by bird strikes, from keyed features (wide and deep)",
		.model = "ctr",
		.sparse_ports = 1,
		.show_every = 1,
		.yardstick = LOGISTIC_REGRESSION,
	},
};

struct settings {
	uint64_t port;
	uint64_t num_passes;
	const char *transport;
	const char *verbs;
	const char *log_dir;
};

#define FIELD(name) offsetof(struct settings, name)

static const struct wf_option table[] = {
	{.name = "port",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(port),
	 .initial = "7164",
	 .min = 1,
	 .max = 65000,
	 .help = "Port from which to look for free ports."},
	{.name = "num_passes",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(num_passes),
	 .help = "Passes over the data. 0: as many as the demo needs for its figures."},
	{.name = "transport",
	 .type = WF_OPTION_CHOICE,
	 .offset = FIELD(transport),
	 .initial = "auto",
	 .choices = "auto|tcp|shm|verbs",
	 .help = "What carries the data; the digests do not depend on it."},
	{.name = "verbs",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(verbs),
	 .metavar = "KEY=VALUE[,KEY=VALUE...]",
	 .help = "Settings of RDMA devices, as for weft pserver."},
	{.name = "log_dir",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(log_dir),
	 .metavar = "DIR",
	 .help = "Write the lines of all processes to files in this folder."},
};

/* The figures of a pass. */
struct figures {
	bool seen;
	unsigned long pass;
	double train;
	double test;
	char digest[20]; /* 16 hexadecimal digits */
};

/* The results of a model with tables, and of its baselines. */
struct verdict {
	bool seen;
	double model;
	double baseline; /* unigram's perplexity; logistic regression's AUC */
	double bigram;
};

struct context {
	const struct demo *demo;
	struct settings set;
	struct wf_env *env;
	struct wf_host at;
	bool show;      /* passes as they come */
	bool live;      /* on a terminal: one line, rewritten */
	bool open_line; /* that line has no newline yet */
	struct figures current;
	struct verdict verdict;     /* of the run that printed one */
	int signal_code;            /* 128 + the signal that stopped it; 0: none */
	struct wf_child_spec *spec; /* [CHILDREN] */
	struct wf_outlet *out;      /* stdout, while a job runs */
};

static const struct demo *
find_demo(const char *name)
{
	for (size_t i = 0; i < WF_ARRAY_COUNT(demos); i++) {
		if (strcmp(demos[i].name, name) == 0) {
			return &demos[i];
		}
	}
	return NULL;
}

static void
list_demos(FILE *out)
{
	for (size_t i = 0; i < WF_ARRAY_COUNT(demos); i++) {
		fprintf(out, "  %-10s %s%s\n", demos[i].name, demos[i].summary,
			i == 0 ? " (default)" : "");
	}
}

static const struct wf_help help = {
	.usage = "weft demo [NAME] [options]",
	.about =
		"Starts two pservers with two ports each (for models with tables one of them is "
		"sparse) and two trainers on this host, trains a model on real data, and compares: "
		"parameters and rows with those of the same training in one process, bit for bit, "
		"and the figures with what they should be. It prints PASS and ends with exit code "
		"0 only if everything agrees; otherwise it prints FAIL and ends with 1.",
	.examples = "  weft demo             the first of the demos below\n"
		    "  weft demo mlp",
	.list_title = "Demos",
	.print_list = list_demos,
};

/* "pass 3 cost 12.34 test 15.6 digest 9f86d081884c7d65" */
static bool
read_pass_line(const char *line, struct figures *out)
{
	struct figures got = {.seen = true};

	if (sscanf(line, "pass %lu cost %lf test %lf digest %16[0-9a-f]", &got.pass, &got.train,
		   &got.test, got.digest) != 4) {
		return false;
	}
	*out = got;
	return true;
}

/* "perplexity 110.12 unigram 200.63 bigram 125.71", "auc 0.7812 logistic regression 0.7801" */
static bool
read_verdict(const char *line, struct verdict *out)
{
	struct verdict got = {.seen = true};

	if (sscanf(line, "perplexity %lf unigram %lf bigram %lf", &got.model, &got.baseline,
		   &got.bigram) != 3 &&
	    sscanf(line, "auc %lf logistic regression %lf", &got.model, &got.baseline) != 2) {
		return false;
	}
	*out = got;
	return true;
}

/* While the job runs its lines go through an outlet: printing could block on the reader, and a
 * blocked thread handles no signal and reads no line of the children. */
static __attribute__((format(printf, 2, 3))) void
show(const struct context *context, const char *format, ...)
{
	char text[WF_OUTLET_LINE_BYTES];
	va_list args;

	va_start(args, format);
	int wanted = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (wanted > 0) {
		(void)wf_outlet_put(context->out, text, strlen(text));
	}
	if (wf_outlet_error(context->out) == EPIPE) {
		(void)raise(SIGPIPE); /* as printing would have */
	}
}

static void
end_open_line(struct context *context)
{
	if (context->open_line) {
		show(context, "\n");
		context->open_line = false;
	}
}

static void
parse_pass_line(void *arg, const char *line)
{
	struct context *context = arg;
	const struct figures *now = &context->current;

	if (!read_pass_line(line, &context->current)) {
		if (!read_verdict(line, &context->verdict) && context->show) {
			end_open_line(context);
			show(context, "  %s\n", line);
		}
		return;
	}
	if (!context->show) {
		return;
	}
	if (context->live) {
		show(context, "\r  pass %4lu   cost %12.6f   test %12.6f ", now->pass, now->train,
		     now->test);
		context->open_line = true;
	} else if ((now->pass + 1) % context->demo->show_every == 0) {
		show(context, "  pass %4lu   cost %12.6f   test %12.6f\n", now->pass, now->train,
		     now->test);
	}
}

/* "closed form train 22.78 test 32.80" */
static void
parse_closed_form(void *arg, const char *line)
{
	struct context *context = arg;
	struct figures got = {.seen = true};

	if (sscanf(line, "closed form train %lf test %lf", &got.train, &got.test) == 2) {
		context->current = got;
	}
}

/* Runs the command in context->spec; the figures read last are the result. */
static enum weft_status
run(struct context *context, unsigned count, void (*on_stdout)(void *, const char *),
    struct figures *out)
{
	struct wf_supervise_end end;
	const struct wf_outlet_opts lines = {.fd = STDOUT_FILENO,
					     .queue_bytes = OUT_QUEUE_BYTES,
					     .format_dropped = wf_outlet_format_dropped,
					     .wake_fd = -1};
	const struct wf_supervise_opts opts = {
		.env = context->env,
		.spec = context->spec,
		.count = count,
		.program = PROGRAM,
		.log_dir = context->set.log_dir,
		.quiet = true,
		.grace_ns = GRACE_NS,
		.on_stdout = on_stdout,
		.on_stdout_arg = context,
	};

	context->current = (struct figures){0};
	(void)fflush(stdout);
	enum weft_status st = wf_outlet_open(&lines, &context->out);
	if (st != WEFT_OK) {
		return st;
	}
	st = wf_supervise(&opts, &end);
	end_open_line(context);
	if (st != WEFT_OK || end.exit_code <= WF_EXIT_SIGNAL) {
		(void)wf_outlet_flush(context->out, WF_NEVER);
	}
	wf_outlet_close(context->out);
	if (st != WEFT_OK) {
		return st;
	}
	if (end.exit_code > WF_EXIT_SIGNAL) {
		context->signal_code = end.exit_code;
	}
	if (end.exit_code != 0) {
		return wf_fail(WEFT_ABORTED, "%s", end.cause);
	}
	if (!context->current.seen) {
		return wf_fail(WEFT_INTERNAL, "%s ended well but printed no result line",
			       context->spec[count - 1].name);
	}
	*out = context->current;
	return WEFT_OK;
}

static void
common_train_args(const struct context *context, struct wf_args *args)
{
	const struct demo *demo = context->demo;

	wf_args_init(args);
	wf_args_add(args, "train");
	wf_args_add(args, "%s", demo->model);
	wf_args_add(args, "--log_period=0");
	wf_args_add(args, "--dot_period=0");
	for (size_t i = 0; i < WF_ARRAY_COUNT(demo->more) && demo->more[i] != NULL; i++) {
		wf_args_add(args, "%s", demo->more[i]);
	}
	if (context->set.num_passes > 0) {
		wf_args_add(args, "--num_passes=%" PRIu64, context->set.num_passes);
	}
}

static void
add_verbs(const struct settings *set, struct wf_args *args)
{
	if (set->verbs != NULL) {
		wf_args_add(args, "--verbs=%s", set->verbs);
	}
}

static enum weft_status
run_distributed(struct context *context, struct figures *out)
{
	struct wf_args pserver_args;
	struct wf_args trainer_args;
	const struct wf_plan_opts plan = {
		.pservers = PSERVERS,
		.trainers = TRAINERS,
		.ports_num = LANES - context->demo->sparse_ports,
		.ports_num_for_sparse = context->demo->sparse_ports,
		.listen = context->at,
		.pserver_args = &pserver_args,
		.trainer_args = &trainer_args,
	};

	wf_args_init(&pserver_args);
	wf_args_add(&pserver_args, "pserver");
	wf_args_add(&pserver_args, "--log_level=error");
	wf_args_add(&pserver_args, "--transport=%s", context->set.transport);
	add_verbs(&context->set, &pserver_args);
	common_train_args(context, &trainer_args);
	wf_args_add(&trainer_args, "--transport=%s", context->set.transport);
	add_verbs(&context->set, &trainer_args);
	enum weft_status st = wf_plan_job(&plan, context->spec);
	if (st != WEFT_OK) {
		return st;
	}
	context->show = true;
	return run(context, CHILDREN, parse_pass_line, out);
}

static enum weft_status
run_sequential(struct context *context, struct figures *out)
{
	struct wf_args args;

	common_train_args(context, &args);
	wf_args_add(&args, "--sequential");
	wf_args_add(&args, "--no-baseline");
	wf_args_add(&args, "--nearest=");
	wf_args_add(&args, "--num_gradient_servers=%d", TRAINERS);
	enum weft_status st = wf_plan_alone("sequential", &args, context->spec);
	if (st != WEFT_OK) {
		return st;
	}
	context->show = false;
	return run(context, 1, parse_pass_line, out);
}

static enum weft_status
run_closed_form(struct context *context, struct figures *out)
{
	struct wf_args args;

	wf_args_init(&args);
	wf_args_add(&args, "train");
	wf_args_add(&args, "%s", context->demo->model);
	wf_args_add(&args, "--closed_form");
	enum weft_status st = wf_plan_alone("closed form", &args, context->spec);
	if (st != WEFT_OK) {
		return st;
	}
	return run(context, 1, parse_closed_form, out);
}

static bool
compare_digests(const struct demo *demo, const struct figures *job, const struct figures *alone)
{
	bool equal = strcmp(job->digest, alone->digest) == 0;

	printf("\n  digest of the parameters%s\n"
	       "    distributed %s\n"
	       "    sequential  %s   %s\n",
	       demo->sparse_ports > 0 ? " and rows" : "", job->digest, alone->digest,
	       equal ? "equal" : "DIFFERENT");
	return equal;
}

static bool
compare_closed_form(const struct figures *job, const struct figures *closed)
{
	double train = fabs(job->train - closed->train) / closed->train;
	double test = fabs(job->test - closed->test) / closed->test;

	printf("\n                      train        test   mean squared error\n"
	       "    weft         %10.2f  %10.2f\n"
	       "    closed form  %10.2f  %10.2f\n"
	       "    difference  %10.4f%% %10.4f%%   at most %.0f%%\n",
	       job->train, job->test, closed->train, closed->test, 100.0 * train, 100.0 * test,
	       100.0 * TOLERANCE);
	/* Written so that a NaN is not within. */
	return train <= TOLERANCE && test <= TOLERANCE;
}

static bool
compare_bound(const struct figures *job, double test_max)
{
	printf("\n  test error %.4f of the rows wrong; must be below %.4f\n", job->test, test_max);
	return job->test < test_max;
}

static bool
compare_words(const struct verdict *verdict)
{
	printf("\n  perplexity over the test words, lower is better\n"
	       "    weft, four words before  %8.2f\n"
	       "    bigram, interpolated     %8.2f\n"
	       "    unigram                  %8.2f   %.2f of it; must be below %.2f\n",
	       verdict->model, verdict->bigram, verdict->baseline,
	       verdict->model / verdict->baseline, CLEARLY);
	return verdict->model < CLEARLY * verdict->baseline;
}

/* With so few damaged rows to test on an AUC is known to about 0.02, so the two are shown side by
 * side, and the model is held against chance. */
static bool
compare_classes(const struct verdict *verdict)
{
	printf("\n  area under the ROC curve over the test rows; must be above %.2f\n"
	       "    weft, wide and deep      %8.4f\n"
	       "    logistic regression      %8.4f   trained in one process\n",
	       AUC_MIN, verdict->model, verdict->baseline);
	return verdict->model > AUC_MIN;
}

static void
print_start(const struct context *context)
{
	const struct demo *demo = context->demo;
	const struct wf_host *at = &context->at;
	char ports[64];

	if (demo->sparse_ports == 0) {
		snprintf(ports, sizeof(ports), "%d dense ports", LANES);
	} else {
		snprintf(ports, sizeof(ports), "%u dense and %u sparse port",
			 LANES - demo->sparse_ports, demo->sparse_ports);
	}
	printf("%s: %s\n  %d pservers with %s each on %s, ports %u-%u, %d trainers, transport %s\n",
	       demo->name, demo->summary, PSERVERS, ports, at->name, at->port,
	       at->port + PSERVERS * LANES - 1, TRAINERS, context->set.transport);
}

/* Whether the model is as good as it should be, compared with its baselines. */
static enum weft_status
compare(struct context *context, const struct figures *job, bool *good)
{
	const struct verdict *verdict = &context->verdict;
	struct figures closed;
	enum weft_status st = WEFT_OK;

	switch (context->demo->yardstick) {
	case CLOSED_FORM:
		st = run_closed_form(context, &closed);
		*good = st == WEFT_OK && compare_closed_form(job, &closed);
		return st;
	case TEST_BOUND:
		*good = compare_bound(job, context->demo->test_max);
		return WEFT_OK;
	case WORD_COUNTS:
	case LOGISTIC_REGRESSION:
		break;
	}
	if (!verdict->seen) {
		return wf_fail(WEFT_INTERNAL,
			       "the job ended well but printed no figures of its quality");
	}
	*good = context->demo->yardstick == WORD_COUNTS ? compare_words(verdict)
							: compare_classes(verdict);
	return WEFT_OK;
}

static enum weft_status
play(struct context *context, bool *passed)
{
	struct figures job;
	struct figures alone;
	bool good = false;

	enum weft_status st = wf_ports_find(&context->at, PSERVERS * LANES);
	if (st != WEFT_OK) {
		return st;
	}
	print_start(context);
	st = run_distributed(context, &job);
	if (st == WEFT_OK) {
		st = run_sequential(context, &alone);
	}
	if (st == WEFT_OK) {
		st = compare(context, &job, &good);
	}
	if (st != WEFT_OK) {
		return st;
	}
	*passed = compare_digests(context->demo, &job, &alone) && good;
	return WEFT_OK;
}

static int
demonstrate(struct context *context)
{
	bool passed = false;

	enum weft_status st =
		wf_host_parse(wf_address_loopback(), (uint16_t)context->set.port, &context->at);
	context->spec = wf_zalloc_array(context->env, CHILDREN, sizeof(*context->spec));
	if (st == WEFT_OK && context->spec == NULL) {
		st = wf_fail(WEFT_NOMEM, "no memory for %d processes", CHILDREN);
	}
	if (st == WEFT_OK) {
		st = play(context, &passed);
	}
	if (context->spec != NULL) {
		wf_free(context->env, context->spec, CHILDREN * sizeof(*context->spec));
	}
	if (st != WEFT_OK) {
		(void)wf_command_fail(PROGRAM, st);
		/* Bounded: after a signal a slow reader must not delay the end. */
		(void)wf_outlet_write(STDOUT_FILENO, "FAIL\n", 5, WF_OUTLET_PATIENCE_NS);
		return context->signal_code != 0 ? context->signal_code : WF_EXIT_FAILED;
	}
	printf("\n%s\n", passed ? "PASS" : "FAIL");
	return passed ? WF_EXIT_OK : WF_EXIT_FAILED;
}

int
wf_cmd_demo(int argc, char **argv)
{
	struct context context = {.demo = &demos[0], .live = isatty(STDOUT_FILENO) == 1};
	enum wf_option_origin origin[WF_ARRAY_COUNT(table)];
	const char *env_name[WF_ARRAY_COUNT(table)];
	const char *name[1];
	struct wf_option_file file;
	struct wf_options options = {.table = table,
				     .option_count = (unsigned)WF_ARRAY_COUNT(table),
				     .program = PROGRAM,
				     .help = &help,
				     .target = &context.set,
				     .origin = origin,
				     .env_name = env_name,
				     .file = &file,
				     .positional = name,
				     .positional_max = 1};

	wf_command_drop_job_variables(PROGRAM);
	enum weft_status st = wf_options_parse(&options, argc, argv);
	if (st == WEFT_OK && options.help_wanted) {
		return wf_command_print_help(&options);
	}
	if (st == WEFT_OK && options.print_wanted) {
		return wf_command_print_options(&options);
	}
	if (st == WEFT_OK) {
		st = wf_command_check_verbs(context.set.verbs);
	}
	if (st != WEFT_OK) {
		return wf_command_fail(PROGRAM, st);
	}
	if (options.positional_count == 1) {
		context.demo = find_demo(name[0]);
	}
	if (context.demo == NULL) {
		fprintf(stderr, PROGRAM ": there is no demo '%s'; there are:\n", name[0]);
		list_demos(stderr);
		return WF_EXIT_USAGE;
	}
	st = wf_env_system_create(WF_LOG_INFO, STDERR_FILENO, &context.env);
	if (st != WEFT_OK) {
		return wf_command_fail(PROGRAM, st);
	}
	int code = demonstrate(&context);
	wf_env_system_destroy(context.env);
	return code;
}
