/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs of each mode, over seeded delays, cuts, refusals and stalls, in a storm of crashes, one-way
 * and two-way partitions, pauses, leaps of clocks and disk faults. What is shorter than the limits
 * changes nothing: each push counts once, and the bits are those of the computation. What is longer
 * ends the job within a bound, with an error that names somebody; and a job with snapshots, started
 * again and again, in the end ends well. After each loss of power all snapshots that are there are
 * whole. At the end the program prints how many faults of each class have hit somebody, and fails
 * below the floor. Usage: test_survive FIRST COUNT MODE (sync, async, bounded, sparse, snapshots);
 * WEFT_SEED=S runs one seed, WEFT_LONG ten times as many, with floors ten times as high, and
 * WEFT_CLUSTER_LOG=1 shows the log lines of all processes. Thread: one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "saved/snapshot.h"
#include "tests/cluster/counted.h"
#include "tests/cluster/storm.h"
#include "tests/double/disk/disk.h"
#include "tests/support/sweep.h"

#define RUNS_MAX 5u /* of a job with snapshots, of which nothing happens in the last */
#define FAIL_PER_MILLE_MAX 60u

/* Of each mode in the check; all modes together have a thousand. */
static const uint64_t floors[STORM_CLASSES] = {200, 200, 200, 200, 200, 0, 20};
#define DISK_FLOOR 1000u

/* By seed. */
static const enum storm_force forces[] = {STORM_SHORT,   STORM_LONG,    STORM_HARSH,
					  STORM_CRASHES, STORM_CRASHES, STORM_HUNGER};

struct job {
	struct counted counted;
	struct wf_rng rng;
	enum storm_force force;
	bool disk_fails;
	uint64_t within_ns;
};

const struct wf_saved_calls *__real_wf_saved_posix(void);
const struct wf_saved_calls *__wrap_wf_saved_posix(void);

const struct wf_saved_calls *
__wrap_wf_saved_posix(void)
{
	return disk_calls();
}

static void
disturb(struct crew *crew, struct wf_world *world, struct wf_proc *const *proc)
{
	struct job *job = (struct job *)crew->run; /* its first member */
	storm_begin(&job->rng, job->force, job->within_ns, crew, world, proc);
}

static void
complain(struct job *job, const char *who, const char *text)
{
	char *why = job->counted.crew.why;
	if (why[0] == '\0') {
		(void)snprintf(why, sizeof(job->counted.crew.why), "%s: %.200s", who, text);
	}
}

/* Whether a failure names somebody, or the disk's file. */
static bool
names_somebody(const char *text)
{
	static const char *const names[] = {"trainer ", "pserver ", "ps0", "ps1",
					    "ps2",      "tr0",      "tr1", "weft-snapshot"};
	for (size_t i = 0; i < WF_ARRAY_COUNT(names); i++) {
		if (strstr(text, names[i]) != NULL) {
			return true;
		}
	}
	return false;
}

/* A failure that nothing here may cause. Where reading fails, a snapshot looks damaged. */
static bool
is_odd(const struct job *job, const struct counted_end *end)
{
	const bool unread = job->disk_fails && strstr(end->text, "weft-snapshot") != NULL;
	return (end->status == WEFT_DATA && !unread) || end->status == WEFT_PROTOCOL ||
	       end->status == WEFT_INTERNAL || end->status == WEFT_INVALID;
}

/* A trainer that has begun to connect has to describe the job within the time that it would have to
 * come back, which two partitions and a pause exceed: then a pserver gives the job up before it has
 * begun. */
static bool
never_began(const struct job *job)
{
	for (uint32_t t = 0; t < job->counted.crew.trainers; t++) {
		const char *text = job->counted.end[t].text;
		if (strstr(text, "came in time") != NULL ||
		    strstr(text, "did not answer within") != NULL ||
		    strstr(text, "did not begin the job in time") != NULL) {
			return true;
		}
	}
	return false;
}

/* How each trainer ended. `must`: well. Its work is done when it has trained: what comes after may
 * be cut off by a long partition. */
static void
check_trainer(struct job *job, uint32_t idx, bool must)
{
	const struct counted_end *end = &job->counted.end[idx];
	char who[48];
	(void)snprintf(who, sizeof(who), "trainer %u, %s", idx, weft_status_name(end->status));
	if (must && !end->trained) {
		complain(job, who, end->returned ? end->text : "it has not ended");
	}
	if (!end->returned || end->status == WEFT_OK) {
		return;
	}
	if (is_odd(job, end)) {
		complain(job, who, end->text);
	}
	if (!names_somebody(end->text) && end->status != WEFT_NOMEM) {
		complain(job, "an error that names nobody", end->text);
	}
}

/* Plays the job once. `must`: it has to end well. Returns whether all trainers have trained. */
static bool
play(struct job *job, enum storm_force force, bool must, uint64_t sum[STORM_CLASSES])
{
	struct counted *counted = &job->counted;
	struct wf_world_stats stats = {0};
	bool trained = true;
	counted_reset(counted);
	counted->crew.disturb = disturb;
	job->force = force;
	enum weft_status st = crew_play(&counted->crew, &stats);
	for (uint32_t t = 0; t < counted->crew.trainers; t++) {
		check_trainer(job, t, must && !(force == STORM_LONG && never_began(job)));
		trained = trained && counted->end[t].trained;
	}
	storm_count(&stats, sum);
	return st == WEFT_OK && trained;
}

/* A storm within the time that the job took without one. */
static void
play_in_storm(struct job *job, uint64_t sum[STORM_CLASSES])
{
	const enum storm_force force = forces[job->counted.crew.seed % WF_ARRAY_COUNT(forces)];
	(void)play(job, force, force == STORM_SHORT || force == STORM_LONG, sum);
}

/* All snapshots that are there are whole: what a manifest names is on the disk before it. */
static void
verify_all(struct job *job, struct wf_env *env)
{
	const struct wf_saved_calls *calls = __real_wf_saved_posix();
	struct wf_snapshot_list list;
	enum weft_status st = wf_snapshot_list(env, calls, job->counted.job.dir, &list);
	for (uint32_t i = 0; i < list.count && st == WEFT_OK; i++) {
		struct wf_snapshot *snapshot = NULL;
		st = wf_snapshot_open(env, calls, job->counted.job.dir, list.id[i], &snapshot);
		st = st == WEFT_OK ? wf_snapshot_verify(snapshot) : st;
		wf_snapshot_close(snapshot);
	}
	wf_snapshot_list_fini(env, &list);
	if (st != WEFT_OK) {
		complain(job, "after a loss of power", weft_last_error());
	}
}

/* Between two runs, sometimes power is lost. */
static void
lose_power(struct job *job, struct wf_env *env)
{
	disk_set_failing(0);
	if (wf_rng_below(&job->rng, 4) == 0) {
		disk_sync();
		return;
	}
	disk_crash();
	verify_all(job, env);
}

/* Again and again, until it ends well. Most jobs have disks that fail. */
static void
play_with_snapshots(struct job *job, struct wf_env *env, uint64_t sum[STORM_CLASSES])
{
	struct counted *counted = &job->counted;
	const bool is_bad = wf_rng_below(&job->rng, 4) != 0;
	const uint32_t rate = 1 + (uint32_t)wf_rng_below(&job->rng, FAIL_PER_MILLE_MAX);
	bool ended = false;
	for (uint32_t run = 0; run < RUNS_MAX && !ended && counted->crew.why[0] == '\0'; run++) {
		const uint64_t turn = counted->crew.seed + run;
		const bool is_last = run + 1 == RUNS_MAX;
		const enum storm_force force =
			is_last ? STORM_NONE : forces[turn % WF_ARRAY_COUNT(forces)];
		counted->crew.lanes = 1 + (uint32_t)(turn % 3);
		counted->crew.world.seed = counted->crew.seed * 16 + run;
		job->disk_fails = is_bad && !is_last;
		disk_set_failing(job->disk_fails ? rate : 0);
		ended = play(job, force, force <= STORM_LONG && !job->disk_fails, sum);
		lose_power(job, env);
	}
}

static bool
begin_disk(struct job *job, char grave[64])
{
	const char *root = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	(void)snprintf(grave, 64, "%s/weft-grave-XXXXXX", root);
	if (!killed_make_dir(&job->counted.job) || mkdtemp(grave) == NULL) {
		return false;
	}
	const struct disk_opts opts = {
		.below = __real_wf_saved_posix(), .grave = grave, .seed = job->counted.crew.seed};
	disk_begin(&opts);
	return true;
}

static void
check_seed(struct job *job, struct wf_env *env, uint64_t sum[STORM_CLASSES])
{
	char grave[64];
	if (!play(job, STORM_NONE, true, sum) || job->counted.crew.why[0] != '\0') {
		return;
	}
	job->within_ns = job->counted.crew.end_ns;
	if (job->counted.mode != COUNTED_SNAPSHOTS) {
		play_in_storm(job, sum);
		return;
	}
	if (!begin_disk(job, grave)) {
		complain(job, "folder", "cannot be made");
		return;
	}
	play_with_snapshots(job, env, sum);
	const struct disk_counts counts = disk_counts();
	sum[STORM_DISK] += counts.failed + counts.torn + counts.dropped;
	disk_end();
	killed_remove_dir(&job->counted.job);
	(void)rmdir(grave);
}

/* Connections are not cut besides where a partition may take almost all of the time that they have
 * to come back. */
static void
draw(uint64_t seed, enum counted_mode mode, struct job *out)
{
	memset(out, 0, sizeof(*out));
	wf_rng_init(&out->rng, seed, 74);
	counted_draw(&out->rng, seed, mode, &out->counted);
	const bool calm = mode == COUNTED_SNAPSHOTS || seed % WF_ARRAY_COUNT(forces) == 1;
	crew_draw_world(&out->rng, calm, 3000, 100, &out->counted.crew);
}

static enum counted_mode
parse_mode(int argc, char **argv)
{
	static const char *const names[COUNTED_MODES] = {"sync", "async", "bounded", "sparse",
							 "snapshots"};
	uint32_t mode = 0;
	while (argc > 3 && mode + 1 < COUNTED_MODES && strcmp(argv[3], names[mode]) != 0) {
		mode++;
	}
	return (enum counted_mode)mode;
}

/* Whether what has happened is enough. */
static bool
check_floors(const char *mode, const struct wf_sweep *sweep, const uint64_t sum[STORM_CLASSES])
{
	uint64_t least[STORM_CLASSES];
	const uint64_t times = getenv("WEFT_LONG") != NULL ? 10 : 1;
	for (uint32_t i = 0; i < STORM_CLASSES; i++) {
		least[i] = wf_sweep_floor(sweep, floors[i] * times);
	}
	if (strcmp(mode, "snapshots") == 0) {
		least[STORM_DISK] = wf_sweep_floor(sweep, DISK_FLOOR * times);
	}
	return storm_floors(mode, sum, least);
}

int
main(int argc, char **argv)
{
	const struct wf_sweep sweep = wf_sweep_of(argc, argv, 400, 10);
	const char *name = argc > 3 ? argv[3] : "sync";
	uint64_t sum[STORM_CLASSES] = {0};
	uint64_t failed = 0, resumed = 0;
	struct wf_env *env = NULL;
	if (wf_env_system_create(WF_LOG_WARN, 2, &env) != WEFT_OK) {
		return 1;
	}
	for (uint64_t seed = sweep.first; seed < sweep.first + sweep.count; seed++) {
		struct job job;
		draw(seed, parse_mode(argc, argv), &job);
		check_seed(&job, env, sum);
		resumed += job.counted.job.resumed;
		if (job.counted.crew.why[0] != '\0') {
			failed++;
			(void)printf("FAILED seed %" PRIu64 " (%s, %u pservers, %u lanes, %u "
				     "trainers, %s, storm %d): %s; repeat: WEFT_SEED=%" PRIu64
				     " test_survive 1 1 %s\n",
				     seed, name, job.counted.crew.pservers, job.counted.crew.lanes,
				     job.counted.crew.trainers, job.counted.crew.transport,
				     (int)job.force, job.counted.crew.why, seed, name);
		}
	}
	wf_env_system_destroy(env);
	(void)printf("%" PRIu64 " seeds, %" PRIu64 " failed, %" PRIu64
		     " trainers began with a snapshot\n",
		     sweep.count, failed, resumed);
	return check_floors(name, &sweep, sum) && failed == 0 ? 0 : 1;
}
