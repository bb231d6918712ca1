/* SPDX-License-Identifier: Apache-2.0 */
/* weft demo: a whole job on real data, and proof that it did what it should: against the same
 * training in one process, and against a figure that is known. Thread: main, the only one. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "tools/command.h"
#include "tools/launch/plan.h"
#include "tools/launch/ports.h"

#define PROGRAM "weft demo"
#define GRACE_NS (5 * WF_NS_PER_S)
#define PSERVERS 2
#define LANES 2 /* dense ports of each pserver */
#define TRAINERS 2
#define CHILDREN (PSERVERS + TRAINERS)
#define TOLERANCE 0.01 /* of the closed form's figure */

extern char **environ;

struct demo {
	const char *name;
	const char *summary;
	const char *model;
	const char *slice_bytes; /* small enough for slices on every lane; NULL: the default */
	unsigned show_every;     /* passes between two lines */
	bool has_closed_form;
	double test_max; /* without a closed form: what the test figure has to stay under */
};

static const struct demo demos[] = {
	{
		.name = "linear",
		.summary = "least squares on the Boston housing data, 506 x 13, beside the closed "
			   "form",
		.model = "linear",
		.show_every = 100,
		.has_closed_form = true,
	},
	{
		.name = "mlp",
		.summary = "one hidden layer and softmax on the UCI digits, 1,797 x 64",
		.model = "mlp",
		.slice_bytes = "256",
		.show_every = 5,
		.test_max = 0.10,
	},
};

struct settings {
	uint64_t port;
	const char *transport;
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
	 .help = "Where to start looking for free ports."},
	{.name = "transport",
	 .type = WF_OPTION_CHOICE,
	 .offset = FIELD(transport),
	 .initial = "auto",
	 .choices = "auto|tcp|shm|verbs",
	 .help = "What carries the bytes; the digests do not depend on it."},
	{.name = "log_dir",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(log_dir),
	 .metavar = "DIR",
	 .help = "File the lines of all processes there."},
};

/* The figures of a pass. */
struct figures {
	bool seen;
	unsigned long pass;
	double train;
	double test;
	char digest[20]; /* 16 hexadecimal digits */
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
	int signal_code;            /* 128 + the signal that stopped it; 0: none */
	struct wf_child_spec *spec; /* [CHILDREN] */
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

static int
print_help(const struct wf_options *options)
{
	fputs("  weft demo            the first of the demos below\n"
	      "  weft demo mlp\n"
	      "\n"
	      "Starts two pservers with two dense ports each and two trainers on this host, trains "
	      "on\n"
	      "real data, and compares: the parameters with those of the same training in one\n"
	      "process, bit for bit, and the errors with what they should be. PASS and exit code "
	      "0\n"
	      "only if all agrees; FAIL and 1 if not.\n"
	      "\n"
	      "Demos:\n",
	      stdout);
	list_demos(stdout);
	fputs("\n", stdout);
	wf_options_print_help(options, stdout);
	return WF_EXIT_OK;
}

/* Settings of another job would make this another demo. */
static void
drop_job_variables(void)
{
	static const char prefix[] = "PADDLE_INIT_";
	unsigned dropped = 0;

	for (char **i = environ; *i != NULL;) {
		char name[128];
		size_t bytes = strcspn(*i, "=");
		if (strncmp(*i, prefix, sizeof(prefix) - 1) != 0 || bytes >= sizeof(name)) {
			i++;
			continue;
		}
		memcpy(name, *i, bytes);
		name[bytes] = '\0';
		unsetenv(name); /* moves the next one here */
		dropped++;
	}
	if (dropped > 0) {
		fprintf(stderr, PROGRAM ": %u PADDLE_INIT_ variables are not used here\n", dropped);
	}
}

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

static void
take_pass_line(void *arg, const char *line)
{
	struct context *context = arg;
	const struct figures *now = &context->current;

	if (!read_pass_line(line, &context->current) || !context->show) {
		return;
	}
	if (context->live) {
		printf("\r  pass %4lu   cost %12.6f   test %12.6f ", now->pass, now->train,
		       now->test);
		fflush(stdout);
		context->open_line = true;
	} else if ((now->pass + 1) % context->demo->show_every == 0) {
		printf("  pass %4lu   cost %12.6f   test %12.6f\n", now->pass, now->train,
		       now->test);
	}
}

/* "closed form train 22.78 test 32.80" */
static void
take_closed_form(void *arg, const char *line)
{
	struct context *context = arg;
	struct figures got = {.seen = true};

	if (sscanf(line, "closed form train %lf test %lf", &got.train, &got.test) == 2) {
		context->current = got;
	}
}

/* Run what stands in context->spec; the figures read last are the result. */
static enum weft_status
run(struct context *context, unsigned count, void (*on_stdout)(void *, const char *),
    struct figures *out)
{
	struct wf_supervise_end end;
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
	enum weft_status st = wf_supervise(&opts, &end);
	if (context->open_line) {
		printf("\n");
		context->open_line = false;
	}
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
common_train_args(const struct demo *demo, struct wf_args *args)
{
	wf_args_init(args);
	wf_args_add(args, "train");
	wf_args_add(args, "%s", demo->model);
	wf_args_add(args, "--log_period=0");
	wf_args_add(args, "--dot_period=0");
	if (demo->slice_bytes != NULL) {
		wf_args_add(args, "--slice_bytes=%s", demo->slice_bytes);
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
		.ports_num = LANES,
		.listen = context->at,
		.pserver_args = &pserver_args,
		.trainer_args = &trainer_args,
	};

	wf_args_init(&pserver_args);
	wf_args_add(&pserver_args, "pserver");
	wf_args_add(&pserver_args, "--log_level=error");
	wf_args_add(&pserver_args, "--transport=%s", context->set.transport);
	common_train_args(context->demo, &trainer_args);
	wf_args_add(&trainer_args, "--transport=%s", context->set.transport);
	enum weft_status st = wf_plan_job(&plan, context->spec);
	if (st != WEFT_OK) {
		return st;
	}
	(void)wf_plan_spin(&plan);
	context->show = true;
	return run(context, CHILDREN, take_pass_line, out);
}

static enum weft_status
run_sequential(struct context *context, struct figures *out)
{
	struct wf_args args;

	common_train_args(context->demo, &args);
	wf_args_add(&args, "--sequential");
	wf_args_add(&args, "--num_gradient_servers=%d", TRAINERS);
	enum weft_status st = wf_plan_alone("sequential", &args, context->spec);
	if (st != WEFT_OK) {
		return st;
	}
	context->show = false;
	return run(context, 1, take_pass_line, out);
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
	return run(context, 1, take_closed_form, out);
}

static bool
compare_digests(const struct figures *job, const struct figures *alone)
{
	bool equal = strcmp(job->digest, alone->digest) == 0;

	printf("\n  digest of the parameters\n"
	       "    distributed %s\n"
	       "    sequential  %s   %s\n",
	       job->digest, alone->digest, equal ? "equal" : "DIFFERENT");
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
	       "    apart       %10.4f%% %10.4f%%   at most %.0f%%\n",
	       job->train, job->test, closed->train, closed->test, 100.0 * train, 100.0 * test,
	       100.0 * TOLERANCE);
	/* Written so that a NaN is not within. */
	return train <= TOLERANCE && test <= TOLERANCE;
}

static bool
compare_bound(const struct figures *job, double test_max)
{
	printf("\n  test error %.4f of the rows wrong, has to be below %.4f\n", job->test,
	       test_max);
	return job->test < test_max;
}

static enum weft_status
play(struct context *context, bool *passed)
{
	const struct demo *demo = context->demo;
	struct figures job;
	struct figures alone;
	struct figures closed;

	enum weft_status st = wf_ports_find(&context->at, PSERVERS * LANES);
	if (st != WEFT_OK) {
		return st;
	}
	printf("%s: %s\n  %d pservers with %d dense ports each on %s ports %u-%u, %d trainers, "
	       "transport %s\n",
	       demo->name, demo->summary, PSERVERS, LANES, context->at.name, context->at.port,
	       context->at.port + PSERVERS * LANES - 1, TRAINERS, context->set.transport);
	st = run_distributed(context, &job);
	if (st == WEFT_OK) {
		st = run_sequential(context, &alone);
	}
	if (st == WEFT_OK && demo->has_closed_form) {
		st = run_closed_form(context, &closed);
	}
	if (st != WEFT_OK) {
		return st;
	}
	bool good = demo->has_closed_form ? compare_closed_form(&job, &closed)
					  : compare_bound(&job, demo->test_max);
	*passed = compare_digests(&job, &alone) && good;
	return WEFT_OK;
}

static int
demonstrate(struct context *context)
{
	bool passed = false;

	enum weft_status st = wf_host_parse("127.0.0.1", (uint16_t)context->set.port, &context->at);
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
		printf("FAIL\n");
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
	struct wf_options options = {.table = table,
				     .option_count = (unsigned)WF_ARRAY_COUNT(table),
				     .program = PROGRAM,
				     .target = &context.set,
				     .origin = origin,
				     .env_name = env_name,
				     .positional = name,
				     .positional_max = 1};

	drop_job_variables();
	enum weft_status st = wf_options_parse(&options, argc, argv);
	if (st != WEFT_OK) {
		return wf_command_fail(PROGRAM, st);
	}
	if (options.help_wanted) {
		return print_help(&options);
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
