/* SPDX-License-Identifier: Apache-2.0 */
/* weft ckpt: what is in a folder of snapshots or saved passes. Thread: main. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/overview.h"
#include "saved/manifest.h"
#include "saved/saved.h"
#include "saved/snapshot.h"
#include "tools/command.h"
#include "tools/progress/progress.h"

#define EXIT_CODES                                                                                 \
	"  64  an option or argument is wrong\n"                                                   \
	"  65  something is damaged: the output or the last line says what\n"                      \
	"  70  an internal error\n"                                                                \
	"  74  input or output failed"
#define LIST_LINE "%-28s %5s %10s %10s %5s %12s %7s %6s %5s %16s\n"
#define ABOUT_ONE                                                                                  \
	"DIR/NAME is a snapshot of pservers or a pass that weft train saved; of a folder that "    \
	"has several it is the newest snapshot, or the last pass if there is no snapshot."

struct verb {
	const char *name;
	const char *summary; /* a line of the overview */
	const char *program;
	struct wf_help help;
	enum weft_status (*work)(struct wf_env *env, const char *path);
};

static bool
has_manifest(const char *path)
{
	char name[WF_SAVED_PATH_BYTES];
	struct stat info;

	return wf_saved_join(path, WF_MANIFEST_FILE, name) == WEFT_OK && stat(name, &info) == 0;
}

/* What the files of it have together; a manifest may claim more than can be counted. */
static uint64_t
bytes_of(const struct wf_manifest *manifest)
{
	double sum = 0;

	for (uint32_t i = 0; i < manifest->parts.part_count; i++) {
		sum += (double)manifest->parts.part[i].bytes;
	}
	for (uint32_t i = 0; !wf_manifest_is_snapshot(manifest) && i < manifest->tensor_count;
	     i++) {
		const struct wf_manifest_tensor *tensor = &manifest->tensor[i];
		sum += (double)wf_manifest_file_bytes(tensor->rows, tensor->cols) *
		       (1 + tensor->state_count);
	}
	for (uint32_t i = 0; i < manifest->table_count; i++) {
		sum += (double)manifest->table[i].bytes;
	}
	for (uint32_t i = 0; i < manifest->aside_count; i++) {
		sum += (double)manifest->aside[i].bytes;
	}
	return sum < (double)INT64_MAX ? (uint64_t)sum : INT64_MAX;
}

/* The snapshot on which one builds is of the same epoch. */
static void
print_one(const char *name, const struct wf_manifest *manifest)
{
	char epoch[24] = "-";
	char base[24] = "-";

	if (wf_manifest_is_snapshot(manifest)) {
		snprintf(epoch, sizeof(epoch), "%" PRIu64, manifest->parts.epoch);
	}
	if (manifest->parts.base_step != 0) {
		snprintf(base, sizeof(base), "%" PRIu64, manifest->parts.base_step);
	}
	printf("%-28s %5s %10" PRIu64 " %10s %5" PRIu64 " %12" PRIu64 " %7" PRIu32 " %6" PRIu32
	       " %5" PRIu32 " %16" PRIu64 "\n",
	       name, epoch, manifest->about.step, base, manifest->about.pass,
	       manifest->about.samples, manifest->tensor_count, manifest->table_count,
	       manifest->parts.part_count, bytes_of(manifest));
}

/* A line of the list. Damage is counted; everything else ends the work. */
static enum weft_status
list_one(struct wf_env *env, const char *dir, const char *name, unsigned *damaged)
{
	char path[WF_SAVED_PATH_BYTES];
	struct wf_manifest manifest;

	enum weft_status st = wf_saved_join(dir, name, path);
	if (st == WEFT_OK) {
		st = wf_manifest_load(env, wf_saved_posix(), path, &manifest);
	}
	if (st == WEFT_DATA) {
		(*damaged)++;
		printf(LIST_LINE, name, "-", "-", "-", "-", "-", "-", "-", "-", "damaged");
		fprintf(stderr, "%s\n", weft_last_error());
		return WEFT_OK;
	}
	if (st != WEFT_OK) {
		return st;
	}
	print_one(name, &manifest);
	wf_manifest_fini(env, &manifest);
	return WEFT_OK;
}

static enum weft_status
list_snapshots(struct wf_env *env, const char *dir, unsigned *count, unsigned *damaged)
{
	struct wf_snapshot_list list;
	char name[WF_SNAPSHOT_LEAF_BYTES];

	enum weft_status st = wf_snapshot_list(env, wf_saved_posix(), dir, &list);
	if (st != WEFT_OK) {
		return st;
	}
	for (uint32_t i = 0; st == WEFT_OK && i < list.count; i++) {
		wf_snapshot_name(list.id[i], name);
		st = list_one(env, dir, name, damaged);
		(*count)++;
	}
	wf_snapshot_list_fini(env, &list);
	return st;
}

static enum weft_status
list_passes(struct wf_env *env, const char *dir, unsigned *count, unsigned *damaged)
{
	char path[WF_SAVED_PATH_BYTES];
	enum weft_status st = WEFT_OK;
	uint64_t pass = UINT64_MAX;

	while (st == WEFT_OK) {
		st = wf_saved_find_before(wf_saved_posix(), dir, pass, &pass);
		if (st == WEFT_OK) {
			st = wf_saved_pass_path(dir, pass, path);
		}
		if (st == WEFT_OK) {
			st = list_one(env, dir, strrchr(path, '/') + 1, damaged);
			(*count)++;
		}
	}
	return st == WEFT_DATA ? WEFT_OK : st; /* no other pass */
}

static enum weft_status
list(struct wf_env *env, const char *dir)
{
	unsigned count = 0;
	unsigned damaged = 0;

	printf(LIST_LINE, "name", "epoch", "step", "base", "pass", "samples", "tensors", "tables",
	       "parts", "bytes");
	enum weft_status st = list_snapshots(env, dir, &count, &damaged);
	if (st == WEFT_OK) {
		st = list_passes(env, dir, &count, &damaged);
	}
	if (st == WEFT_OK && count == 0) {
		return wf_fail(WEFT_DATA, "%s: has no snapshot and no saved pass", dir);
	}
	return st == WEFT_OK && damaged > 0
		       ? wf_fail(WEFT_DATA, "%s: %u of %u cannot be used: their lines say damaged",
				 dir, damaged, count)
		       : st;
}

/* The path of the one that is meant: itself, or the newest in a folder. `out` is
 * [WF_SAVED_PATH_BYTES]. */
static enum weft_status
find(struct wf_env *env, const char *path, char *out)
{
	char name[WF_SNAPSHOT_LEAF_BYTES];
	char full[PATH_MAX];
	struct wf_snapshot_list list;
	uint64_t pass = 0;

	if (realpath(path, full) == NULL) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be opened", path);
	}
	if (has_manifest(full)) {
		snprintf(out, WF_SAVED_PATH_BYTES, "%s", full);
		return WEFT_OK;
	}
	enum weft_status st = wf_snapshot_list(env, wf_saved_posix(), full, &list);
	if (st != WEFT_OK) {
		return st;
	}
	if (list.count > 0) {
		wf_snapshot_name(list.id[0], name);
		st = wf_saved_join(full, name, out);
	} else {
		st = wf_saved_find_last(wf_saved_posix(), full, &pass);
		st = st == WEFT_DATA ? wf_fail(WEFT_DATA,
					       "%s: has neither a manifest nor a snapshot or saved "
					       "pass",
					       path)
				     : st;
		st = st == WEFT_OK ? wf_saved_pass_path(full, pass, out) : st;
	}
	wf_snapshot_list_fini(env, &list);
	return st;
}

static void
show_about(const struct wf_manifest *manifest)
{
	const struct wf_saved_about *about = &manifest->about;
	const struct wf_manifest_parts *parts = &manifest->parts;

	printf("version %s\n", about->version);
	if (wf_manifest_is_snapshot(manifest)) {
		printf("epoch %" PRIu64 "\n", parts->epoch);
	}
	if (parts->base_step != 0) {
		printf("base_step %" PRIu64 "\n", parts->base_step);
	}
	printf("pass %" PRIu64 "\n", about->pass);
	if (about->batch > 0) {
		printf("batch %" PRIu64 "\n", about->batch);
	}
	printf("step %" PRIu64 "\nsamples %" PRIu64 "\n", about->step, about->samples);
	printf("optimizer %s\nsettings %s\n", about->optimizer, about->settings);
	if (wf_manifest_is_snapshot(manifest)) {
		printf("pservers %" PRIu32 "\ndense_lanes %" PRIu32 "\nsparse_lanes %" PRIu32
		       "\ntrainers %" PRIu32 "\n",
		       parts->pserver_count, parts->dense_lanes * parts->pserver_count,
		       parts->sparse_lanes * parts->pserver_count, parts->trainer_count);
		printf("kind %s\n", parts->is_vector ? "vector" : "border");
	}
}

static void
show_content(const struct wf_manifest *manifest)
{
	for (uint32_t i = 0; i < manifest->tensor_count; i++) {
		const struct wf_manifest_tensor *tensor = &manifest->tensor[i];
		printf("tensor %s rows %" PRIu64 " cols %" PRIu64 " states %" PRIu32 "%s%s\n",
		       tensor->name, tensor->rows, tensor->cols, tensor->state_count,
		       tensor->shape[0] == '\0' ? "" : " shape ", tensor->shape);
	}
	for (uint32_t i = 0; i < manifest->table_count; i++) {
		const struct wf_manifest_table *table = &manifest->table[i];
		printf("table %s optimizer %s values %" PRIu32 " rows %" PRIu64 "\n", table->name,
		       table->optimizer, table->dim, table->rows);
	}
	for (uint32_t i = 0; i < manifest->aside_count; i++) {
		const struct wf_manifest_aside *aside = &manifest->aside[i];
		printf("aside %s type %s shape %s\n", aside->name,
		       wf_array_type_about(aside->type)->name, aside->shape);
	}
}

static void
show_parts(const struct wf_manifest_parts *parts)
{
	for (uint32_t i = 0; i < parts->position_count; i++) {
		const struct wf_manifest_position *position = &parts->position[i];
		printf("position %" PRIu32 " %s", position->trainer,
		       position->bytes == 0 ? "-" : "");
		for (uint32_t b = 0; b < position->bytes; b++) {
			printf("%02x", position->position[b]);
		}
		if (parts->is_vector) {
			printf(" step %" PRIu64 " made %" PRIu64, position->step, position->made);
		}
		printf("\n");
	}
	for (uint32_t i = 0; i < parts->part_count; i++) {
		const struct wf_manifest_part *part = &parts->part[i];
		printf("part %s pserver %" PRIu32 " bytes %" PRIu64 " crc32c %08" PRIx32 "\n",
		       part->name, part->pserver, part->bytes, part->crc);
	}
}

static enum weft_status
show(struct wf_env *env, const char *path)
{
	char found[WF_SAVED_PATH_BYTES];
	struct wf_manifest manifest;

	enum weft_status st = find(env, path, found);
	if (st == WEFT_OK) {
		st = wf_manifest_load(env, wf_saved_posix(), found, &manifest);
	}
	if (st != WEFT_OK) {
		return st;
	}
	printf("name %s\n", strrchr(found, '/') + 1);
	show_about(&manifest);
	show_content(&manifest);
	show_parts(&manifest.parts);
	wf_manifest_fini(env, &manifest);
	return WEFT_OK;
}

/* A line for each part, whatever the others are. */
static enum weft_status
verify_parts(const struct wf_snapshot *snapshot, const char *path, struct wf_progress *progress)
{
	const struct wf_manifest_parts *parts = &wf_snapshot_manifest(snapshot)->parts;
	uint32_t damaged = 0;

	wf_progress_add_total(progress, bytes_of(wf_snapshot_manifest(snapshot)));
	for (uint32_t i = 0; i < parts->part_count; i++) {
		enum weft_status st = wf_snapshot_verify_part(snapshot, i);
		if (st != WEFT_OK && st != WEFT_DATA) {
			return st;
		}
		damaged += st != WEFT_OK;
		wf_progress_hide(progress);
		printf("%-12s %16" PRIu64 " %s%s\n", parts->part[i].name, parts->part[i].bytes,
		       st == WEFT_OK ? "ok" : "damaged ", st == WEFT_OK ? "" : weft_last_error());
	}
	return damaged == 0
		       ? WEFT_OK
		       : wf_fail(WEFT_DATA, "%s: %" PRIu32 " of %" PRIu32 " parts cannot be used",
				 path, damaged, parts->part_count);
}

/* Lines of the snapshots on which it builds follow their names. */
static enum weft_status
verify_links(const struct wf_snapshot *snapshot, const char *path, struct wf_progress *progress)
{
	struct wf_snapshot_id id;
	char name[WF_SNAPSHOT_LEAF_BYTES];
	struct wf_snapshot *open = NULL;
	const struct wf_snapshot *at = snapshot;

	enum weft_status st = verify_parts(at, path, progress);
	while (st == WEFT_OK && wf_snapshot_base(at, &id)) {
		struct wf_snapshot *base = NULL;
		st = wf_snapshot_open_base(at, &base);
		if (st == WEFT_OK) {
			wf_snapshot_close(open);
			open = base;
			at = base;
			wf_snapshot_name(id, name);
			printf("builds on %s\n", name);
			st = verify_parts(at, name, progress);
		}
	}
	wf_snapshot_close(open);
	return st;
}

static enum weft_status
verify_pass(struct wf_env *env, const char *path, struct wf_progress *progress)
{
	struct wf_saved *saved = NULL;

	wf_progress_add_total(progress, wf_progress_size(path));
	enum weft_status st = wf_saved_open(env, wf_saved_posix(), path, &saved);
	wf_progress_hide(progress);
	if (st == WEFT_OK) {
		printf("%s ok\n", strrchr(path, '/') + 1);
	}
	wf_saved_close(saved);
	return st;
}

static enum weft_status
verify_found(struct wf_env *env, char found[WF_SAVED_PATH_BYTES], struct wf_progress *progress)
{
	struct wf_snapshot *snapshot = NULL;
	struct wf_snapshot_id id;

	char *slash = strrchr(found, '/');
	if (!wf_snapshot_of_name(slash + 1, &id)) {
		return verify_pass(env, found, progress);
	}
	*slash = '\0';
	enum weft_status st = wf_snapshot_open(env, wf_saved_posix(),
					       found[0] == '\0' ? "/" : found, id, &snapshot);
	*slash = '/';
	if (st == WEFT_OK) {
		st = verify_links(snapshot, found, progress);
	}
	wf_snapshot_close(snapshot);
	return st;
}

static enum weft_status
verify(struct wf_env *env, const char *path)
{
	const struct wf_progress_opts shown = {
		.env = env, .program = "weft ckpt verify", .what = "reading"};
	char found[WF_SAVED_PATH_BYTES];

	enum weft_status st = find(env, path, found);
	if (st == WEFT_OK) {
		struct wf_progress *progress = wf_progress_start(&shown);
		st = verify_found(env, found, progress);
		wf_progress_stop(progress);
	}
	return st;
}

static const struct verb verbs[] = {
	{"list",
	 "list the snapshots and saved passes of a folder",
	 "weft ckpt list",
	 {.usage = "weft ckpt list DIR",
	  .about =
		  "Lists the snapshots of a folder, newest first, and then its saved passes: name, "
		  "epoch, step, pass, samples, how many tensors, tables and parts, and bytes. "
		  "Only manifests are read. A pass has no epoch and no parts.",
	  .examples = "  weft ckpt list out",
	  .exit_codes = "   0  the list is complete\n" EXIT_CODES},
	 list},
	{"show",
	 "print what the manifest of one of them has",
	 "weft ckpt show",
	 {.usage = "weft ckpt show DIR[/NAME]",
	  .about = "Prints what the manifest has, one line each: settings, tensors, tables; of a "
		   "snapshot also lanes, positions and parts. " ABOUT_ONE,
	  .examples = "  weft ckpt show out\n"
		      "  weft ckpt show out/pass-00004",
	  .exit_codes = "   0  it is printed\n" EXIT_CODES},
	 show},
	{"verify",
	 "read every byte of one, and compare it with its checksums",
	 "weft ckpt verify",
	 {.usage = "weft ckpt verify DIR[/NAME]",
	  .about =
		  "Reads every byte, and compares it with checksums and manifest. Of a snapshot it "
		  "prints a line for each part: name, bytes, ok or damaged, and the "
		  "reason; then the same of each snapshot on which it builds. " ABOUT_ONE,
	  .examples = "  weft ckpt verify out\n"
		      "  weft ckpt verify out/pass-00004",
	  .exit_codes = "   0  nothing is damaged\n" EXIT_CODES},
	 verify},
};

static struct wf_overview_row
overview_row(unsigned idx)
{
	return idx < WF_ARRAY_COUNT(verbs)
		       ? (struct wf_overview_row){verbs[idx].name, verbs[idx].summary}
		       : (struct wf_overview_row){0};
}

static const struct wf_overview overview = {
	.program = "weft ckpt",
	.usage = "weft ckpt list|show|verify DIR",
	.about = "Looks at snapshots that pservers made, and at passes that weft train saved.",
	.examples = "  weft ckpt list out\n"
		    "  weft ckpt verify out/pass-00004",
	.list_title = "Verbs",
	.row = overview_row,
	.closing = "Each has --help: weft ckpt verify --help",
};

static enum weft_status
work(const struct wf_options *options)
{
	const struct verb *verb = options->target;
	struct wf_env *env = NULL;

	if (options->positional_count == 0) {
		return wf_fail(WEFT_INVALID, "the folder is missing; see %s --help", verb->program);
	}
	enum weft_status st = wf_env_system_create(WF_LOG_WARN, STDERR_FILENO, &env);
	if (st != WEFT_OK) {
		return st;
	}
	st = verb->work(env, options->positional[0]);
	wf_env_system_destroy(env);
	return st;
}

static int
run_verb(struct verb verb, int argc, char **argv)
{
	const char *dir[1] = {NULL};
	struct wf_options options = {
		.program = verb.program,
		.help = &verb.help,
		.target = &verb,
		.positional = dir,
		.positional_max = WF_ARRAY_COUNT(dir),
	};

	return wf_command_run(work, &options, argc, argv);
}

int
wf_cmd_ckpt(int argc, char **argv)
{
	if (argc < 2) {
		wf_overview_print(&overview, stderr);
		return WF_EXIT_USAGE;
	}
	if (wf_overview_answers(&overview, argv[1])) {
		return WF_EXIT_OK;
	}
	for (size_t i = 0; i < WF_ARRAY_COUNT(verbs); i++) {
		if (strcmp(argv[1], verbs[i].name) == 0) {
			return run_verb(verbs[i], argc - 1, argv + 1);
		}
	}
	fprintf(stderr, "weft ckpt: there is no verb '%.100s'; see: weft ckpt --help\n", argv[1]);
	return WF_EXIT_USAGE;
}
