/* SPDX-License-Identifier: Apache-2.0 */
/* weft drill: what happens to a running job when something of it fails, tried and measured on this
 * machine. Thread: main, the only one. */
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/outlet.h"
#include "tools/command.h"
#include "tools/drill/fault.h"
#include "tools/launch/ports.h"
#include "transport/address.h"

#define PROGRAM "weft drill"
#define FAULTS_MAX 16u
#define MEMBERS_MAX 8 /* of each role */
#define LINE_BYTES 1024
#define READER_NS (10 * WF_NS_PER_S) /* patience with a reader of stdout */
#define PASSES_FIRST 40u
#define PASSES_MOST (PASSES_FIRST << 8)
/* So that a fault after the second comes while the job trains, and a snapshot after it as well,
 * even if the disk is ten times as slow then. */
#define SNAPSHOTS_WANTED 24u
#define OPEN_FOLDERS 16 /* descriptors for removing a tree */

struct settings {
	uint64_t pservers;
	uint64_t trainers;
	const char *transport;
	const char *dir;
	const char *faults;
	uint64_t num_passes;
	uint64_t restarts;
	uint64_t limit_ns;
	uint64_t port;
};

#define FIELD(name) offsetof(struct settings, name)

static const struct wf_option table[] = {
	{.name = "pservers",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(pservers),
	 .initial = "2",
	 .min = 1,
	 .max = MEMBERS_MAX,
	 .help = "Pservers of the job. With 1 of them it is pserver 0 that dies each time."},
	{.name = "trainers",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(trainers),
	 .initial = "2",
	 .min = 2,
	 .max = MEMBERS_MAX,
	 .help = "Trainers of the job."},
	{.name = "transport",
	 .type = WF_OPTION_CHOICE,
	 .offset = FIELD(transport),
	 .initial = "auto",
	 .choices = "auto|tcp|shm|verbs",
	 .help = "What carries the data."},
	{.name = "dir",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(dir),
	 .metavar = "DIR",
	 .help = "Folder for the snapshots and the log of each run, which stay there. Without it "
		 "they are in a temporary folder, which is removed at the end."},
	{.name = "faults",
	 .type = WF_OPTION_STRING,
	 .offset = FIELD(faults),
	 .metavar = "NAME[,NAME...]",
	 .help = "Faults to try, in this order. Without it all of them are tried."},
	{.name = "num_passes",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(num_passes),
	 .max = 1000000,
	 .help = "Passes over the data. 0: as many as this machine needs for 12 snapshots."},
	{.name = "restarts",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(restarts),
	 .initial = "1",
	 .max = 100,
	 .help = "How often weft launch may start a process again. 0 shows what happens "
		 "without. After corrupt and stop the drill starts it."},
	{.name = "limit",
	 .type = WF_OPTION_DURATION,
	 .offset = FIELD(limit_ns),
	 .initial = "120s",
	 .min = WF_NS_PER_S,
	 .max = 86400 * WF_NS_PER_S,
	 .help = "How long the drill waits for each event: a snapshot, the recovery, the end of "
		 "the "
		 "job."},
	{.name = "port",
	 .type = WF_OPTION_U64,
	 .offset = FIELD(port),
	 .initial = "7164",
	 .min = 1,
	 .max = 65000,
	 .help = "Port from which to look for free ports."},
};

struct context {
	struct settings set;
	struct wf_env *env;
	struct wf_drill_run run;
	const struct wf_drill_fault *fault[FAULTS_MAX]; /* [fault_count] */
	unsigned fault_count;
	char dir[WF_DRILL_PATH_BYTES];
	bool is_temporary;
	uint64_t passes;
	char digest[WF_DRILL_DIGEST_BYTES]; /* of the undisturbed run */
};

static void
list_faults(FILE *out)
{
	const struct wf_drill_fault *fault;

	for (unsigned i = 0; (fault = wf_drill_fault_at(i)) != NULL; i++) {
		fprintf(out, "  %-10s %s\n", fault->name, fault->summary);
	}
}

static const struct wf_help help = {
	.usage = "weft drill [options]",
	.about = "Trains the model mlp with weft launch on this host, first undisturbed, then once "
		 "for each fault, and prints a row for each: how the job survives, in which time, "
		 "and whether it ends with the same parameters, bit for bit. A fault comes after "
		 "the second snapshot, and there is a snapshot after every 20th step.\n\n"
		 "detected in: from the fault to the first line of weft launch, or of a process "
		 "that survives, that names the dead or paused one; for corrupt and disk that "
		 "names the snapshot; for stop the first line of weft launch.\n\n"
		 "recovered in: from the fault to the first step that is later than all that were "
		 "made before it; so the time in which steps are repeated counts, and so do the 3 "
		 "seconds of pause. For disk it is the next snapshot. For corrupt the clock starts "
		 "at the second start, when the byte has been changed.\n\n"
		 "steps repeated: the last step before the fault that a trainer had made, minus "
		 "the step of the snapshot that the job went on from. lost: snapshots that were "
		 "damaged or could not be written. digest: same, or the two digests.\n\n"
		 "For disk the limit of file sizes of the pservers (RLIMIT_FSIZE) is set to 0 and "
		 "back: that stops root as well, where removing the right to write would not. "
		 "Cutting a link needs network namespaces and root, and is left out. Only "
		 "loopback is used. Ctrl-C stops everything and leaves no process behind.",
	.examples = "  weft drill\n"
		    "  weft drill --faults=trainer,corrupt --dir=drill",
	.list_title = "Faults",
	.print_list = list_faults,
	.exit_codes = "   0  each fault ended with the digest of the undisturbed run\n"
		      "   1  one did not\n"
		      "  64  an option is wrong\n"
		      "  69  no ports are free, or the undisturbed run failed\n"
		      "  70  an internal error\n"
		      "  74  input or output failed\n"
		      " 128  plus the number of the signal that stopped the drill",
};

/* Nobody can be kept waiting by a reader of stdout for ever: a signal has to end the drill. */
static __attribute__((format(printf, 1, 2))) enum weft_status
print_row(const char *format, ...)
{
	char text[LINE_BYTES];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text) - 1, format, args);
	va_end(args);
	const size_t bytes = strlen(text);
	text[bytes] = '\n';
	return wf_outlet_write(STDOUT_FILENO, text, bytes + 1, READER_NS)
		       ? WEFT_OK
		       : wf_fail(WEFT_IO, "stdout cannot be written");
}

/* ---- folders ---- */

static int
remove_one(const char *path, const struct stat *info, int type, struct FTW *at)
{
	(void)info;
	(void)type;
	(void)at;
	return remove(path);
}

static enum weft_status
open_dir(struct context *context)
{
	const char *above = getenv("TMPDIR");

	if (context->set.dir != NULL && context->set.dir[0] != '\0') {
		if (strlen(context->set.dir) > WF_DRILL_PATH_BYTES / 2) {
			return wf_fail(WEFT_INVALID, "--dir: the path is longer than %u bytes",
				       WF_DRILL_PATH_BYTES / 2);
		}
		snprintf(context->dir, sizeof(context->dir), "%s", context->set.dir);
		return mkdir(context->dir, 0777) == 0 || errno == EEXIST
			       ? WEFT_OK
			       : wf_fail_errno(WEFT_IO, errno, "--dir=%.300s", context->dir);
	}
	snprintf(context->dir, sizeof(context->dir), "%.1000s/weft-drill-XXXXXX",
		 above != NULL && above[0] == '/' ? above : "/tmp");
	if (mkdtemp(context->dir) == NULL) {
		return wf_fail_errno(WEFT_IO, errno, "%.300s: cannot be made; give --dir",
				     context->dir);
	}
	context->is_temporary = true;
	return WEFT_OK;
}

static void
close_dir(struct context *context)
{
	if (context->is_temporary &&
	    nftw(context->dir, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS) != 0) {
		wf_outlet_last_words(PROGRAM ": %s cannot be removed: %s", context->dir,
				     strerror(errno));
	}
}

/* ---- runs ---- */

/* Runs the job in a folder of its own. */
static enum weft_status
run_job(struct context *context, const struct wf_drill_fault *fault, const char *name,
	struct wf_drill_row *out)
{
	const struct settings *set = &context->set;
	char dir[WF_DRILL_PATH_BYTES + 64];
	struct wf_host at;

	snprintf(dir, sizeof(dir), "%s/%s", context->dir, name);
	if (mkdir(dir, 0777) != 0) {
		return wf_fail_errno(errno == EEXIST ? WEFT_INVALID : WEFT_IO, errno,
				     "%.400s: cannot be made; give another --dir", dir);
	}
	enum weft_status st = wf_host_parse(wf_address_loopback(), (uint16_t)set->port, &at);
	if (st == WEFT_OK) {
		st = wf_ports_find(&at, (unsigned)set->pservers * WF_DRILL_LANES);
	}
	if (st != WEFT_OK) {
		return st;
	}
	const struct wf_drill_opts opts = {
		.pservers = set->pservers,
		.trainers = set->trainers,
		.restarts = set->restarts,
		.passes = context->passes,
		.port = at.port,
		.limit_ns = set->limit_ns,
		.transport = set->transport,
		.dir = dir,
	};
	return wf_drill_fault_play(fault, &opts, &context->run, out);
}

/* The run that the others are compared with. Without --num_passes it is also the measure of how
 * many passes a fault needs: the time of a snapshot is the disk's, that of a pass the processor's.
 */
static enum weft_status
run_undisturbed(struct context *context)
{
	struct wf_drill_row row;
	char name[32];

	context->passes = context->set.num_passes != 0 ? context->set.num_passes : PASSES_FIRST;
	for (;;) {
		snprintf(name, sizeof(name), "undisturbed-%" PRIu64, context->passes);
		enum weft_status st = run_job(context, NULL, name, &row);
		if (st != WEFT_OK) {
			return st;
		}
		if (row.failure[0] != '\0' || row.digest[0] == '\0') {
			return wf_fail(WEFT_ABORTED, "the undisturbed run: %.400s",
				       row.failure[0] != '\0' ? row.failure : "no digest");
		}
		if (context->set.num_passes != 0 || row.snapshots >= SNAPSHOTS_WANTED ||
		    context->passes >= PASSES_MOST) {
			break;
		}
		context->passes *= 2;
	}
	snprintf(context->digest, sizeof(context->digest), "%s", row.digest);
	context->run.facts.steps_each = context->run.facts.batch_max;
	return WEFT_OK;
}

/* ---- rows ---- */

static const char *
format_time(uint64_t ns, char out[32])
{
	if (ns == WF_NEVER) {
		snprintf(out, 32, "-");
	} else {
		snprintf(out, 32, "%.3f s", (double)ns / (double)WF_NS_PER_S);
	}
	return out;
}

static const char *
format_lost(uint64_t snapshots, char out[32])
{
	if (snapshots == 0) {
		snprintf(out, 32, "nothing");
	} else {
		snprintf(out, 32, "%" PRIu64 " snapshot%s", snapshots, snapshots == 1 ? "" : "s");
	}
	return out;
}

static enum weft_status
print_head(const struct context *context)
{
	const struct settings *set = &context->set;

	enum weft_status st = print_row(
		"mlp: %" PRIu64 " pserver%s, %" PRIu64 " trainers, transport %s; %" PRIu64
		" passes of %" PRIu64 " steps, digest %s",
		set->pservers, set->pservers == 1 ? "" : "s", set->trainers, set->transport,
		context->passes, context->run.facts.steps_each, context->digest);
	return st == WEFT_OK ? print_row("%-10s %12s %13s %15s  %-12s  %s", "fault", "detected in",
					 "recovered in", "steps repeated", "lost", "digest")
			     : st;
}

static enum weft_status
print_fault(const struct context *context, const char *name, const struct wf_drill_row *row,
	    bool *is_good)
{
	char detected[32];
	char recovered[32];
	char lost[32];

	*is_good = row->failure[0] == '\0' && strcmp(row->digest, context->digest) == 0;
	if (row->is_skipped) {
		return print_row("%-10s %12s  skipped: %s", name, "-", row->failure);
	}
	if (row->failure[0] != '\0') {
		return print_row("%-10s %12s  FAILED: %s", name,
				 format_time(row->detected_ns, detected), row->failure);
	}
	return print_row("%-10s %12s %13s %15" PRIu64 "  %-12s  %s%s%s", name,
			 format_time(row->detected_ns, detected),
			 format_time(row->recovered_ns, recovered), row->repeated,
			 format_lost(row->snapshots_lost, lost), *is_good ? "same" : row->digest,
			 *is_good ? "" : " and not ", *is_good ? "" : context->digest);
}

static enum weft_status
drill(struct context *context, unsigned *good, unsigned *skipped)
{
	struct wf_drill_row row;
	bool is_good = false;

	enum weft_status st = run_undisturbed(context);
	if (st == WEFT_OK) {
		st = print_head(context);
	}
	for (unsigned i = 0; i < context->fault_count && st == WEFT_OK; i++) {
		const char *name = context->fault[i]->name;
		st = run_job(context, context->fault[i], name, &row);
		if (st == WEFT_OK) {
			st = print_fault(context, name, &row, &is_good);
			*good += is_good;
			*skipped += row.is_skipped;
		}
	}
	if (st == WEFT_OK) {
		st = print_row("%u of %u faults ended with the digest of the undisturbed run%s",
			       *good, context->fault_count - *skipped,
			       *skipped > 0 ? "; others were skipped" : "");
	}
	return st;
}

/* ---- the command ---- */

/* Adds the fault of that name. WEFT_INVALID: there is none, or it is there already. */
static enum weft_status
add_fault(struct context *context, const char *name, size_t bytes)
{
	const struct wf_drill_fault *fault = wf_drill_fault_find(name, bytes);

	if (fault == NULL) {
		return wf_fail(WEFT_INVALID,
			       "--faults: there is no fault '%.*s'; weft drill --help lists them",
			       bytes < 40 ? (int)bytes : 40, name);
	}
	for (unsigned i = 0; i < context->fault_count; i++) {
		if (context->fault[i] == fault) {
			return wf_fail(WEFT_INVALID, "--faults: %s is given twice", fault->name);
		}
	}
	WF_ASSERT(context->fault_count < FAULTS_MAX);
	context->fault[context->fault_count++] = fault;
	return WEFT_OK;
}

static enum weft_status
read_faults(struct context *context)
{
	const char *at = context->set.faults;
	const struct wf_drill_fault *fault;
	enum weft_status st = WEFT_OK;

	for (unsigned i = 0; at == NULL && (fault = wf_drill_fault_at(i)) != NULL; i++) {
		st = add_fault(context, fault->name, strlen(fault->name));
	}
	while (at != NULL && st == WEFT_OK) {
		const size_t bytes = strcspn(at, ",");
		st = add_fault(context, at, bytes);
		at = at[bytes] == ',' ? at + bytes + 1 : NULL;
	}
	return st;
}

static int
drill_in_dir(struct context *context)
{
	unsigned good = 0;
	unsigned skipped = 0;

	enum weft_status st = wf_drill_run_open(context->env, &context->run);
	if (st == WEFT_OK) {
		st = open_dir(context);
	}
	if (st == WEFT_OK) {
		st = drill(context, &good, &skipped);
	}
	int code = good + skipped == context->fault_count ? WF_EXIT_OK : WF_EXIT_FAILED;
	if (st != WEFT_OK) {
		const int signal_number = context->run.signal_number;
		code = wf_command_fail(PROGRAM, st);
		code = signal_number != 0 ? WF_EXIT_SIGNAL + signal_number : code;
	}
	close_dir(context);
	wf_drill_run_close(&context->run);
	return code;
}

static enum weft_status
parse(struct context *context, struct wf_options *options, int argc, char **argv)
{
	enum weft_status st = wf_options_parse(options, argc, argv);
	if (st == WEFT_OK && !options->help_wanted && !options->print_wanted) {
		st = read_faults(context);
	}
	return st;
}

int
wf_cmd_drill(int argc, char **argv)
{
	struct wf_env *env = NULL;
	enum wf_option_origin origin[WF_ARRAY_COUNT(table)];
	const char *env_name[WF_ARRAY_COUNT(table)];
	struct wf_option_file file;
	struct wf_options options = {.table = table,
				     .option_count = (unsigned)WF_ARRAY_COUNT(table),
				     .program = PROGRAM,
				     .help = &help,
				     .origin = origin,
				     .env_name = env_name,
				     .file = &file};

	wf_command_drop_job_variables(PROGRAM);
	enum weft_status st = wf_env_system_create(WF_LOG_INFO, STDERR_FILENO, &env);
	if (st != WEFT_OK) {
		return wf_command_fail(PROGRAM, st);
	}
	struct context *context = wf_zalloc(env, sizeof(*context)); /* large */
	int code = WF_EXIT_OK;
	if (context == NULL) {
		st = wf_fail(WEFT_NOMEM, "no memory");
	} else {
		context->env = env;
		options.target = &context->set;
		st = parse(context, &options, argc, argv);
	}
	if (st != WEFT_OK) {
		code = wf_command_fail(PROGRAM, st);
	} else if (options.help_wanted) {
		code = wf_command_print_help(&options);
	} else if (options.print_wanted) {
		code = wf_command_print_options(&options);
	} else {
		code = drill_in_dir(context);
	}
	if (context != NULL) {
		wf_free(env, context, sizeof(*context));
	}
	wf_env_system_destroy(env);
	return code;
}
