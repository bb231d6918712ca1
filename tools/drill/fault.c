/* SPDX-License-Identifier: Apache-2.0 */
/* fault: see fault.h. */
#include "tools/drill/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "saved/snapshot.h"
#include "tools/drill/space.h"

#define STEPS_EACH "20" /* between two snapshots */
#define SNAPSHOTS_BEFORE 2u
#define PAUSE_NS (3 * WF_NS_PER_S)

struct wf_drill_play {
	const struct wf_drill_opts *opts;
	struct wf_drill_run *run;
	struct wf_args args;               /* of launch */
	char trainer[WF_DRILL_NAME_BYTES]; /* the one with the highest number */
	char pserver[WF_DRILL_NAME_BYTES];
	uint64_t fault_ns;
	uint64_t recovered_ns; /* set by the script, if it is not the first new step */
	uint64_t damaged_step; /* of the snapshot that was damaged; 0: none was */
	struct wf_drill_space space;
};

/* ---- waiting ---- */

static bool
has_snapshots(const struct wf_drill_run *run)
{
	return run->facts.snapshots >= SNAPSHOTS_BEFORE;
}

static bool
is_noticed(const struct wf_drill_run *run)
{
	return run->facts.sign_ns != 0;
}

static bool
is_beyond(const struct wf_drill_run *run)
{
	return run->facts.beyond_ns != 0;
}

static bool
is_never(const struct wf_drill_run *run)
{
	(void)run;
	return false;
}

/* Waits for one event, as long as the limit allows; `what` names it. */
static enum weft_status
await(struct wf_drill_play *play, wf_drill_question *question, const char *what)
{
	const uint64_t limit_ns = play->opts->limit_ns;
	enum weft_status st =
		wf_drill_run_await(play->run, question, wf_now_ns(play->run->env) + limit_ns);
	if (st == WEFT_TIMEOUT) {
		return wf_fail(WEFT_TIMEOUT, "no %s within %.0f s", what,
			       (double)limit_ns / (double)WF_NS_PER_S);
	}
	if (st != WEFT_CLOSED) {
		return st;
	}
	if (wf_drill_run_exit_code(play->run) == 0) {
		return wf_fail(WEFT_CLOSED,
			       "the job ended before there was a %s; give more "
			       "--num_passes",
			       what);
	}
	const struct wf_error last = *wf_error_record();
	return wf_fail(WEFT_CLOSED, "no %s: %.400s", what, last.text);
}

static enum weft_status
start(struct wf_drill_play *play)
{
	return wf_drill_run_start(play->run, &play->args);
}

static enum weft_status
start_and_await_snapshots(struct wf_drill_play *play)
{
	enum weft_status st = start(play);
	return st == WEFT_OK ? await(play, has_snapshots, "second snapshot") : st;
}

/* The job is over, because of the fault, and begins again with the same command line. */
static enum weft_status
await_end(struct wf_drill_play *play)
{
	enum weft_status st = await(play, NULL, "end of the job after the fault");
	if (st == WEFT_OK && wf_drill_run_exit_code(play->run) == 0) {
		return wf_fail(WEFT_CLOSED, "the job ended before the fault; give more "
					    "--num_passes");
	}
	if (st == WEFT_OK) {
		wf_drill_facts_freeze(&play->run->facts);
	}
	return st;
}

/* The fault comes now: what was lost before is not its. */
static void
mark_fault(struct wf_drill_play *play)
{
	play->run->facts.snapshots_failed = 0;
	play->fault_ns = wf_now_ns(play->run->env);
}

static enum weft_status
break_it(struct wf_drill_play *play, const char *victim, int signal_number)
{
	mark_fault(play);
	return wf_drill_run_signal(play->run, victim, signal_number);
}

/* ---- the scripts ---- */

static enum weft_status
kill_member(struct wf_drill_play *play, const char *victim)
{
	enum weft_status st = start_and_await_snapshots(play);
	if (st == WEFT_OK) {
		wf_drill_facts_watch(&play->run->facts, victim, victim);
		st = break_it(play, victim, SIGKILL);
	}
	return st == WEFT_OK ? await(play, is_beyond, "recovery") : st;
}

static enum weft_status
play_trainer(struct wf_drill_play *play)
{
	return kill_member(play, play->trainer);
}

static enum weft_status
play_pserver(struct wf_drill_play *play)
{
	return kill_member(play, play->pserver);
}

static enum weft_status
play_registrar(struct wf_drill_play *play)
{
	return kill_member(play, "pserver 0");
}

static enum weft_status
play_pause(struct wf_drill_play *play)
{
	enum weft_status st = start_and_await_snapshots(play);
	if (st == WEFT_OK) {
		wf_drill_facts_watch(&play->run->facts, play->trainer, play->trainer);
		st = break_it(play, play->trainer, SIGSTOP);
	}
	if (st == WEFT_OK) {
		st = await(play, is_noticed, "line that names the paused trainer");
	}
	if (st == WEFT_OK) {
		st = wf_drill_run_await(play->run, is_never, play->fault_ns + PAUSE_NS);
		st = st == WEFT_TIMEOUT ? WEFT_OK : st;
	}
	if (st == WEFT_OK) {
		wf_drill_facts_freeze(&play->run->facts);
		st = wf_drill_run_signal(play->run, play->trainer, SIGCONT);
	}
	return st == WEFT_OK ? await(play, is_beyond, "recovery") : st;
}

/* All links of the job at once: nothing arrives anywhere, and no connection ends. */
static enum weft_status
play_link(struct wf_drill_play *play)
{
	enum weft_status st = start_and_await_snapshots(play);
	if (st == WEFT_OK) {
		wf_drill_facts_watch(&play->run->facts, " W ", NULL);
		mark_fault(play);
		st = wf_drill_space_set_link(false);
	}
	if (st == WEFT_OK) {
		st = await(play, is_noticed, "line of somebody who misses another one");
	}
	if (st == WEFT_OK) {
		st = wf_drill_run_await(play->run, is_never, play->fault_ns + PAUSE_NS);
		st = st == WEFT_TIMEOUT ? WEFT_OK : st;
	}
	if (st == WEFT_OK) {
		wf_drill_facts_freeze(&play->run->facts);
		st = wf_drill_space_set_link(true);
	}
	return st == WEFT_OK ? await(play, is_beyond, "recovery") : st;
}

static enum weft_status
flip_a_byte(const char *path)
{
	char byte = 0;
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "%.300s: cannot be opened", path);
	}
	const off_t at = lseek(fd, 0, SEEK_END) / 2;
	bool done = pread(fd, &byte, 1, at) == 1;
	byte = (char)(byte ^ 1);
	done = done && pwrite(fd, &byte, 1, at) == 1;
	const int err = errno;
	if (close(fd) != 0 || !done) {
		return wf_fail_errno(WEFT_IO, err, "%.300s: cannot be changed", path);
	}
	return WEFT_OK;
}

/* Changes a byte of the newest snapshot's first part. */
static enum weft_status
damage_newest(struct wf_drill_play *play)
{
	struct wf_env *env = play->run->env;
	char dir[WF_DRILL_PATH_BYTES];
	char path[WF_SAVED_PATH_BYTES];
	struct wf_snapshot_list list = {0};
	struct wf_snapshot *snapshot = NULL;

	snprintf(dir, sizeof(dir), "%.2000s/snapshots", play->opts->dir);
	enum weft_status st = wf_snapshot_list(env, wf_saved_posix(), dir, &list);
	if (st == WEFT_OK && list.count < SNAPSHOTS_BEFORE) {
		st = wf_fail(WEFT_DATA, "%.300s: has %" PRIu32 " snapshots, not %u", dir,
			     list.count, SNAPSHOTS_BEFORE);
	}
	if (st == WEFT_OK) {
		play->damaged_step = list.id[0].step;
		st = wf_snapshot_open(env, wf_saved_posix(), dir, list.id[0], &snapshot);
	}
	if (st == WEFT_OK) {
		st = wf_snapshot_part_path(snapshot, 0, path);
	}
	if (st == WEFT_OK) {
		st = flip_a_byte(path);
	}
	wf_snapshot_close(snapshot);
	wf_snapshot_list_fini(env, &list);
	return st;
}

static enum weft_status
play_corrupt(struct wf_drill_play *play)
{
	enum weft_status st = start_and_await_snapshots(play);
	if (st == WEFT_OK) {
		st = break_it(play, play->trainer, SIGKILL);
	}
	if (st == WEFT_OK) {
		st = await_end(play);
	}
	if (st == WEFT_OK) {
		st = damage_newest(play);
	}
	if (st == WEFT_OK) {
		wf_drill_facts_watch(&play->run->facts, " cannot be used, and the one before it is",
				     NULL);
		mark_fault(play);
		st = start(play);
	}
	return st == WEFT_OK ? await(play, is_beyond, "recovery") : st;
}

static enum weft_status
play_disk(struct wf_drill_play *play)
{
	struct wf_drill_facts *facts = &play->run->facts;
	uint64_t noticed_ns = 0;
	enum weft_status st = start_and_await_snapshots(play);
	if (st == WEFT_OK) {
		/* A border that was named too late costs a snapshot, too, with another reason. */
		wf_drill_facts_watch(facts, strerror(EFBIG), NULL);
		mark_fault(play);
		st = wf_drill_run_let_write(play->run, false);
	}
	if (st == WEFT_OK) {
		st = await(play, is_noticed, "line about the snapshot that cannot be written");
		noticed_ns = facts->sign_ns;
	}
	if (st == WEFT_OK) {
		st = wf_drill_run_let_write(play->run, true);
		/* Those that were on their way when the disk came back may still fail. */
		wf_drill_facts_watch(facts, " I snapshot of step ", NULL);
	}
	if (st == WEFT_OK) {
		st = await(play, is_noticed, "snapshot after that");
		play->recovered_ns = facts->sign_ns;
	}
	facts->sign_ns = noticed_ns;
	return st;
}

static enum weft_status
play_stop(struct wf_drill_play *play)
{
	enum weft_status st = start_and_await_snapshots(play);
	if (st == WEFT_OK) {
		wf_drill_facts_watch(&play->run->facts, WF_DRILL_LAUNCH ": ", NULL);
		st = break_it(play, WF_DRILL_LAUNCH, SIGTERM);
	}
	if (st == WEFT_OK) {
		st = await_end(play);
	}
	if (st == WEFT_OK) {
		st = start(play);
	}
	return st == WEFT_OK ? await(play, is_beyond, "recovery") : st;
}

static const struct wf_drill_fault faults[] = {
	{"trainer", "kill -9 of the last trainer", play_trainer, WF_DRILL_BY_LAUNCH, false},
	{"pserver", "kill -9 of the last pserver", play_pserver, WF_DRILL_BY_LAUNCH, false},
	{"registrar", "kill -9 of pserver 0, which decides for all", play_registrar,
	 WF_DRILL_BY_LAUNCH, false},
	{"pause", "SIGSTOP of the last trainer, SIGCONT 3 s later", play_pause, WF_DRILL_BY_NOBODY,
	 false},
	{"link", "no link for 3 s: network namespace, needs root; over TCP", play_link,
	 WF_DRILL_BY_NOBODY, true},
	{"corrupt", "a byte of the newest snapshot changes between two starts", play_corrupt,
	 WF_DRILL_BY_DRILL, false},
	{"disk", "no pserver can write to a file until a snapshot fails", play_disk,
	 WF_DRILL_BY_NOBODY, false},
	{"stop", "SIGTERM of weft launch, and the same command again", play_stop, WF_DRILL_BY_DRILL,
	 false},
};

const struct wf_drill_fault *
wf_drill_fault_at(unsigned idx)
{
	return idx < WF_ARRAY_COUNT(faults) ? &faults[idx] : NULL;
}

const struct wf_drill_fault *
wf_drill_fault_find(const char *name, size_t bytes)
{
	for (size_t i = 0; i < WF_ARRAY_COUNT(faults); i++) {
		if (strlen(faults[i].name) == bytes && strncmp(faults[i].name, name, bytes) == 0) {
			return &faults[i];
		}
	}
	return NULL;
}

/* ---- the play ---- */

/* Log lines have to be complete, whatever the environment asks for. */
static enum weft_status
write_command(struct wf_drill_play *play, const struct wf_drill_fault *fault)
{
	const struct wf_drill_opts *opts = play->opts;
	const bool is_by_drill = fault != NULL && fault->restarted == WF_DRILL_BY_DRILL;
	struct wf_args *args = &play->args;

	wf_args_init(args);
	wf_args_add(args, "weft");
	wf_args_add(args, "launch");
	wf_args_add(args, "--local");
	wf_args_add(args, "--pservers=%" PRIu64, opts->pservers);
	wf_args_add(args, "--trainers=%" PRIu64, opts->trainers);
	wf_args_add(args, "--ports_num=%u", WF_DRILL_LANES);
	wf_args_add(args, "--ports_num_for_sparse=0");
	wf_args_add(args, "--port=%" PRIu64, opts->port);
	wf_args_add(args, "--transport=%s",
		    fault != NULL && fault->cuts_link ? "tcp" : opts->transport);
	wf_args_add(args, "--slice_bytes=256"); /* small enough for slices on every lane */
	wf_args_add(args, "--color=never");
	wf_args_add(args, "--log_level=info");
	wf_args_add(args, "--restarts=%" PRIu64, is_by_drill ? 0 : opts->restarts);
	wf_args_add(args, "--snapshot_dir=%s/snapshots", opts->dir);
	wf_args_add(args, "--snapshot_steps=" STEPS_EACH);
	wf_args_add(args, "--resume=auto");
	wf_args_add(args, "--");
	wf_args_add(args, "train");
	wf_args_add(args, "mlp");
	wf_args_add(args, "--num_passes=%" PRIu64, opts->passes);
	wf_args_add(args, "--log_period=1");
	wf_args_add(args, "--dot_period=0");
	return wf_args_check(args);
}

/* The job ends by itself now. */
static enum weft_status
await_good_end(struct wf_drill_play *play)
{
	enum weft_status st = await(play, NULL, "end of the job");
	if (st == WEFT_OK && wf_drill_run_exit_code(play->run) != 0) {
		return wf_fail(WEFT_ABORTED, "exit code %d: %.400s",
			       wf_drill_run_exit_code(play->run), play->run->facts.last);
	}
	return st;
}

/* Whether the job went on in the way in which it has to. */
static enum weft_status
check_way(const struct wf_drill_play *play, const struct wf_drill_fault *fault)
{
	const struct wf_drill_facts *facts = &play->run->facts;
	const bool is_restarted = fault != NULL && fault->restarted != WF_DRILL_BY_NOBODY;

	/* Those that stay may notice a death one after the other, and go back more than once. */
	if (is_restarted && facts->resumed == 0) {
		return wf_fail(WEFT_DATA, "the job did not go on from a snapshot");
	}
	if (fault != NULL && fault->restarted == WF_DRILL_BY_LAUNCH && play->run->replaced != 1) {
		return wf_fail(WEFT_DATA, "%u processes were started again, not 1",
			       play->run->replaced);
	}
	if (!is_restarted && facts->restarts + facts->resumed > 0) {
		return wf_fail(WEFT_DATA, "the job was started again");
	}
	if (play->damaged_step != 0 && facts->resumed_step >= play->damaged_step) {
		return wf_fail(WEFT_DATA, "the damaged snapshot of step %" PRIu64 " was used",
			       play->damaged_step);
	}
	return WEFT_OK;
}

static void
fill_in(const struct wf_drill_play *play, struct wf_drill_row *out)
{
	const struct wf_drill_facts *facts = &play->run->facts;
	const uint64_t recovered_ns =
		play->recovered_ns != 0 ? play->recovered_ns : facts->beyond_ns;

	*out = (struct wf_drill_row){
		.detected_ns = facts->sign_ns == 0 ? WF_NEVER : facts->sign_ns - play->fault_ns,
		.recovered_ns = recovered_ns == 0 ? WF_NEVER : recovered_ns - play->fault_ns,
		.snapshots_lost = play->damaged_step != 0 ? facts->snapshots_damaged
							  : facts->snapshots_failed,
		.snapshots = facts->snapshots,
	};
	if (facts->resumed > 0 && facts->made > facts->resumed_step) {
		out->repeated = facts->made - facts->resumed_step;
	}
	snprintf(out->digest, sizeof(out->digest), "%s", facts->digest);
}

static enum weft_status
play_it(const struct wf_drill_fault *fault, struct wf_drill_play *play)
{
	enum weft_status st = fault == NULL ? start(play) : fault->play(play);
	if (st == WEFT_OK) {
		st = await_good_end(play);
	}
	return st == WEFT_OK ? check_way(play, fault) : st;
}

enum weft_status
wf_drill_fault_play(const struct wf_drill_fault *fault, const struct wf_drill_opts *opts,
		    struct wf_drill_run *run, struct wf_drill_row *out)
{
	struct wf_drill_play *play = wf_zalloc(run->env, sizeof(*play)); /* arguments are large */
	char log[WF_DRILL_PATH_BYTES];

	if (play == NULL) {
		return wf_fail(WEFT_NOMEM, "no memory for the arguments");
	}
	*out = (struct wf_drill_row){0};
	play->opts = opts;
	play->run = run;
	snprintf(play->trainer, sizeof(play->trainer), "trainer %" PRIu64, opts->trainers - 1);
	snprintf(play->pserver, sizeof(play->pserver), "pserver %" PRIu64, opts->pservers - 1);
	snprintf(log, sizeof(log), "%.2000s/log", opts->dir);
	enum weft_status st = write_command(play, fault);
	if (st == WEFT_OK) {
		st = wf_drill_run_reset(run, log);
	}
	if (st == WEFT_OK && fault != NULL && fault->cuts_link) {
		st = wf_drill_space_enter(&play->space);
		out->is_skipped = st == WEFT_UNSUPPORTED;
	}
	if (st == WEFT_OK) {
		st = play_it(fault, play);
		const struct wf_error why = *wf_error_record();
		wf_drill_run_stop(run);
		fill_in(play, out);
		if (st != WEFT_OK) {
			snprintf(out->failure, sizeof(out->failure), "%.511s", why.text);
		}
		st = run->signal_number != 0
			     ? wf_fail(WEFT_ABORTED, "stopped by %s", strsignal(run->signal_number))
			     : WEFT_OK;
	}
	if (out->is_skipped) {
		snprintf(out->failure, sizeof(out->failure), "%.511s", weft_last_error());
		st = WEFT_OK;
	}
	wf_drill_space_leave(&play->space);
	wf_free(run->env, play, sizeof(*play));
	return st;
}
