/* SPDX-License-Identifier: Apache-2.0 */
/* supervise: see supervise.h. One loop over one epoll: pipes, a signalfd, and room for
 * results. */
#include "tools/launch/supervise.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/exit_code.h"
#include "base/outlet.h"
#include "base/signals.h"
#include "tools/launch/child.h"
#include "tools/launch/restart.h"

#define EVENTS_MAX 32
#define SIGNAL_KEY                                                                                 \
	UINT64_MAX /* epoll data of the signalfd; else child * WF_PROCESS_STREAMS + stream */
#define WAKE_KEY (UINT64_MAX - 1) /* of wake_fd */
#define SITE_KEY (1ull << 32)     /* and upwards: of the sites */
#define ERR_QUEUE_BYTES ((size_t)1 << 20)
#define OUT_QUEUE_BYTES (8 * WF_CHILD_STDOUT_ROOM) /* address space */
#define SAY_BYTES (WF_CAUSE_BYTES + 64)
#define MEANING_BYTES 64
#define LINGER_NS (10 * WF_NS_PER_S) /* for children that are not workers, after the last worker */
#define USAGE_GRACE_NS (WF_NS_PER_S)

enum phase {
	PHASE_RUN,
	PHASE_LINGER, /* the workers have ended well */
	PHASE_FAIL,   /* one failed, the others may notice by themselves */
	PHASE_TERM,
	PHASE_KILL,
};

struct job {
	const struct wf_supervise_opts *opts;
	struct wf_child *child; /* [opts->count] */
	struct wf_outlet *err;  /* lines of this process and of the children; drops what nobody
				 * reads */
	struct wf_outlet *out;  /* results: drops nothing, for we stop reading before it is full */
	int stalled_fd; /* stdout of a child, or its site, not read for that reason; -1: none */
	uint64_t stalled_key;
	int epoll_fd;
	int signal_fd;
	int wake_fd; /* eventfd of `out` */
	sigset_t signals;
	sigset_t mask_before;

	enum phase phase;
	uint64_t phase_ns;            /* how long the phase may last, or WF_NEVER */
	uint64_t deadline_ns;         /* of the phase */
	uint64_t tick_ns;             /* the next one of the sites; WF_NEVER: there are none */
	int signal_number;            /* signal that asked to stop, or 0 */
	_Atomic uint64_t asked;       /* wf_stop_asked */
	const struct wf_child *cause; /* child that failed first, or NULL */
	unsigned left_count;          /* children that SIGKILL has not ended */
	struct wf_restart *restart;   /* [opts->count] */
	uint64_t restarts;            /* made, with opts->restarts.made */
};

static void
print_line(const struct job *job, const char *text)
{
	char line[SAY_BYTES];

	int bytes = snprintf(line, sizeof(line), "%s: %s\n", job->opts->program, text);
	WF_ASSERT(bytes > 0 && (size_t)bytes < sizeof(line));
	(void)wf_outlet_put(job->err, line, (size_t)bytes);
}

static enum weft_status
watch(struct job *job, int fd, uint64_t key)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = key};

	if (epoll_ctl(job->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
		return wf_fail_errno(WEFT_IO, errno, "epoll_ctl");
	}
	return WEFT_OK;
}

static enum weft_status
open_signals(struct job *job)
{
	wf_signals_that_stop(&job->signals); /* blocked, they come even if they are ignored */
	sigaddset(&job->signals, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &job->signals, &job->mask_before) != 0) {
		return wf_fail_errno(WEFT_INTERNAL, errno, "sigprocmask");
	}
	job->signal_fd = signalfd(-1, &job->signals, SFD_NONBLOCK | SFD_CLOEXEC);
	if (job->signal_fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "signalfd");
	}
	job->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (job->epoll_fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "epoll_create1");
	}
	enum weft_status st = watch(job, job->signal_fd, SIGNAL_KEY);
	if (st == WEFT_OK) {
		st = watch(job, job->wake_fd, WAKE_KEY);
	}
	for (unsigned i = 0; i < job->opts->site_count && st == WEFT_OK; i++) {
		st = watch(job, job->opts->site[i]->fd, SITE_KEY + i);
	}
	return st;
}

static enum weft_status
open_output(struct job *job)
{
	const struct wf_outlet_opts err = {.fd = STDERR_FILENO,
					   .queue_bytes = ERR_QUEUE_BYTES,
					   .format_dropped = wf_outlet_format_dropped,
					   .wake_fd = -1};
	struct wf_outlet_opts out = {.fd = STDOUT_FILENO, .queue_bytes = OUT_QUEUE_BYTES};

	job->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (job->wake_fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "eventfd");
	}
	out.wake_fd = job->wake_fd;
	enum weft_status st = wf_outlet_open(&err, &job->err);
	if (st == WEFT_OK) {
		st = wf_outlet_open(&out, &job->out);
	}
	for (unsigned i = 0; i < job->opts->count; i++) {
		job->child[i].err = job->err;
		job->child[i].out = job->out;
	}
	return st;
}

static enum weft_status
make_log_dir(const struct wf_supervise_opts *opts)
{
	if (opts->log_dir != NULL && mkdir(opts->log_dir, 0777) != 0 && errno != EEXIST) {
		return wf_fail_errno(WEFT_IO, errno, "--log_dir=%s", opts->log_dir);
	}
	return WEFT_OK;
}

static enum weft_status
watch_streams(struct job *job, unsigned idx)
{
	const struct wf_process *process = &job->child[idx].process;
	enum weft_status st = WEFT_OK;

	for (unsigned s = 0; st == WEFT_OK && s < WF_PROCESS_STREAMS; s++) {
		if (process->fd[s] >= 0) {
			st = watch(job, process->fd[s], (uint64_t)idx * WF_PROCESS_STREAMS + s);
		}
	}
	return st;
}

static enum weft_status
start_all(struct job *job)
{
	enum weft_status st = WEFT_OK;

	for (unsigned i = 0; i < job->opts->count && st == WEFT_OK; i++) {
		wf_restart_init(&job->restart[i], wf_now_ns(job->opts->env));
		st = wf_child_start(&job->child[i], &job->mask_before);
		if (st == WEFT_OK) {
			st = watch_streams(job, i);
		}
	}
	return st;
}

static void
signal_all(struct job *job, int signal_number)
{
	for (unsigned i = 0; i < job->opts->count; i++) {
		wf_child_signal(&job->child[i], signal_number);
	}
}

static void
enter(struct job *job, enum phase phase, uint64_t after_ns)
{
	job->phase = phase;
	job->phase_ns = after_ns;
	job->deadline_ns = after_ns == WF_NEVER ? WF_NEVER : wf_now_ns(job->opts->env) + after_ns;
	for (unsigned i = 0; i < job->opts->count; i++) {
		wf_restart_cancel(&job->restart[i]); /* the job ends */
	}
	if (phase == PHASE_TERM) {
		signal_all(job, SIGTERM);
	} else if (phase == PHASE_KILL) {
		signal_all(job, SIGKILL);
	}
}

/* A process of this host survives SIGKILL only in the kernel. A site may be out of reach. */
static void
kill_all(struct job *job)
{
	enter(job, PHASE_KILL,
	      job->opts->site_count > 0 ? job->opts->grace_ns : WF_PROCESS_STUCK_NS);
}

static bool
all_ended(const struct job *job, bool workers_only)
{
	for (unsigned i = 0; i < job->opts->count; i++) {
		const struct wf_child *child = &job->child[i];
		bool is_over = child->ended && !wf_restart_is_planned(&job->restart[i]);
		if (!is_over && (!workers_only || child->spec->is_worker)) {
			return false;
		}
	}
	return true;
}

/* Whether a process of weft's own would end with this code again. */
static bool
is_for_good(int exit_code)
{
	return exit_code == WF_EXIT_USAGE || exit_code == WF_EXIT_DATA || exit_code == WF_EXIT_PERM;
}

static bool
may_recover(const struct wf_child *child)
{
	return child->spec->program != NULL || !is_for_good(wf_child_exit_code(child));
}

static void
describe_cause(const struct wf_child *cause, struct wf_supervise_end *out)
{
	bool has_last = cause->last_error[0] != '\0';
	const char *last = has_last ? cause->last_error : "it printed nothing";

	if (WIFSIGNALED(cause->wait_status)) {
		int number = WTERMSIG(cause->wait_status);
		snprintf(out->cause, sizeof(out->cause),
			 "%s (pid %d) was killed by signal %d (%s); %s%.512s", cause->spec->name,
			 (int)cause->pid, number, strsignal(number),
			 has_last ? "its last line: " : "", last);
	} else {
		int code = WEXITSTATUS(cause->wait_status);
		char meaning[MEANING_BYTES] = ""; /* the exit codes of another program have their
						   * own meaning */
		if (cause->spec->program == NULL) {
			snprintf(meaning, sizeof(meaning), " (%s)", wf_exit_meaning(code));
		}
		snprintf(out->cause, sizeof(out->cause), "%s ended with exit code %d%s: %.512s",
			 cause->spec->name, code, meaning, last);
	}
}

/* A child that ended with "peer unavailable" may have noticed the failure of another one a moment
 * before this process did: then the other one is the cause. */
static bool
is_better_cause(const struct job *job, const struct wf_child *child)
{
	if (job->cause == NULL) {
		return true;
	}
	return wf_child_exit_code(job->cause) == WF_EXIT_UNAVAILABLE &&
	       wf_child_exit_code(child) != WF_EXIT_UNAVAILABLE;
}

/* The job ends because of it. */
static void
fail_job(struct job *job, const struct wf_child *child)
{
	int code = wf_child_exit_code(child);

	if (is_better_cause(job, child)) {
		job->cause = child;
	}
	if (job->phase == PHASE_RUN || job->phase == PHASE_LINGER) {
		/* A mistake in the options is not something that peers could notice. */
		enter(job, PHASE_FAIL,
		      code == WF_EXIT_USAGE && job->opts->grace_ns > USAGE_GRACE_NS
			      ? USAGE_GRACE_NS
			      : job->opts->grace_ns);
	}
}

/* ---- starting one again ---- */

/* Whether starting this one again lets the job go on: nobody stops it, and all others are there. */
static bool
can_restart(const struct job *job, const struct wf_child *child)
{
	for (unsigned i = 0; i < job->opts->count; i++) {
		if (job->child[i].ended && wf_child_exit_code(&job->child[i]) == 0) {
			return false;
		}
	}
	return job->opts->restarts.alone && job->phase == PHASE_RUN && child->spec->site == NULL &&
	       may_recover(child);
}

/* Whether one more start is allowed, besides those that are planned. */
static bool
has_restart_left(const struct job *job)
{
	uint64_t count = job->restarts;

	for (unsigned i = 0; i < job->opts->count; i++) {
		count += wf_restart_is_planned(&job->restart[i]);
	}
	return count < job->opts->restarts.most;
}

static void
note_end(struct job *job, unsigned idx)
{
	const struct wf_child *child = &job->child[idx];
	struct wf_supervise_end end;

	if (wf_child_exit_code(child) == 0 || child->stopped) {
		return;
	}
	if (!can_restart(job, child) || !has_restart_left(job)) {
		fail_job(job, child);
		return;
	}
	describe_cause(child, &end);
	print_line(job, end.cause);
	wf_restart_plan(&job->restart[idx], wf_now_ns(job->opts->env));
}

static void
restart(struct job *job, unsigned idx)
{
	struct wf_child_spec *spec = &job->opts->spec[idx];
	struct wf_child *child = &job->child[idx];
	char text[SAY_BYTES - 64];

	wf_restart_begin(&job->restart[idx], wf_now_ns(job->opts->env));
	if (!can_restart(job, child)) {
		fail_job(job, child);
		return;
	}
	if (spec->again != NULL) {
		wf_args_add(&spec->args, "%s", spec->again);
		spec->again = NULL;
	}
	if (job->stalled_fd >= 0 && job->stalled_key / WF_PROCESS_STREAMS == idx) {
		job->stalled_fd = -1; /* it is closed, and may be another's number */
	}
	snprintf(text, sizeof(text), "%s is started again (%" PRIu64 " of %" PRIu64 ")", spec->name,
		 job->restarts + 1, job->opts->restarts.most);
	print_line(job, text);
	enum weft_status st = wf_args_check(&spec->args);
	st = st == WEFT_OK ? wf_child_restart(child, &job->mask_before) : st;
	if (st != WEFT_OK) {
		print_line(job, weft_last_error());
		fail_job(job, child);
		return;
	}
	job->restarts++;
	if (watch_streams(job, idx) != WEFT_OK) {
		print_line(job, weft_last_error());
		wf_process_signal(&child->process, SIGKILL); /* which is one more death of it */
	}
}

static void
restart_due(struct job *job)
{
	for (unsigned i = 0; i < job->opts->count; i++) {
		if (wf_restart_is_planned(&job->restart[i]) &&
		    wf_now_ns(job->opts->env) >= job->restart[i].due_ns) {
			restart(job, i);
		}
	}
}

/* ---- the loop ---- */

static void
reap(struct job *job)
{
	for (unsigned i = 0; i < job->opts->count; i++) {
		if (wf_child_reap(&job->child[i])) {
			note_end(job, i);
		}
	}
	if (job->phase == PHASE_RUN && all_ended(job, true)) {
		enter(job, PHASE_LINGER, LINGER_NS);
	}
}

static void
handle_signals(struct job *job)
{
	struct signalfd_siginfo info;

	while (read(job->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			continue; /* several become one: reap looks at all */
		}
		if (wf_stop_asked(&job->asked, (int)info.ssi_signo) == WF_STOP_ECHO) {
			continue;
		}
		job->signal_number = (int)info.ssi_signo;
		if (job->phase == PHASE_KILL) {
			continue; /* nothing is left to do but to wait until its deadline */
		}
		if (job->phase == PHASE_TERM) {
			kill_all(job);
			continue;
		}
		char text[128];
		snprintf(text, sizeof(text),
			 "%s: stopping %u processes; a second signal stops them at once",
			 strsignal(job->signal_number), job->opts->count);
		print_line(job, text);
		/* Children save on SIGTERM, which is what they get for any of these signals. */
		enter(job, PHASE_TERM, job->opts->grace_ns + job->opts->save_grace_ns);
	}
}

/* What SIGKILL has not ended is given up. */
static void
give_up(struct job *job)
{
	char text[SAY_BYTES - 64];

	job->deadline_ns = WF_NEVER;
	for (unsigned i = 0; i < job->opts->site_count; i++) {
		job->opts->site[i]->ops->abandon(job->opts->site[i]);
	}
	for (unsigned i = 0; i < job->opts->count; i++) {
		if (wf_child_leave(&job->child[i], text, sizeof(text))) {
			print_line(job, text);
			job->left_count++;
		}
	}
	reap(job);
}

/* Names those that have not ended on SIGTERM. A pid is one of the host where the process runs. */
static void
name_killed(const struct job *job)
{
	char text[SAY_BYTES - 64];

	for (unsigned i = 0; i < job->opts->count; i++) {
		const struct wf_child *child = &job->child[i];
		const struct wf_site *site = child->spec->site;
		if (!child->ended) {
			snprintf(text, sizeof(text),
				 "%.100s (pid %d%s%.200s) has not ended within %.3f s of SIGTERM "
				 "and is killed",
				 child->spec->name, (int)child->pid, site != NULL ? " on " : "",
				 site != NULL ? site->name : "",
				 (double)job->phase_ns / (double)WF_NS_PER_S);
			print_line(job, text);
		}
	}
}

static void
on_deadline(struct job *job)
{
	switch (job->phase) {
	case PHASE_RUN:
		break;
	case PHASE_KILL:
		give_up(job);
		break;
	case PHASE_LINGER:
		print_line(job, "all trainers have ended; stopping the pservers");
		enter(job, PHASE_TERM, job->opts->grace_ns);
		break;
	case PHASE_FAIL:
		enter(job, PHASE_TERM, job->opts->grace_ns);
		break;
	case PHASE_TERM:
		name_killed(job);
		kill_all(job);
		break;
	}
}

/* The reader of stdout is gone (weft launch ... | head), so the rest is not wanted. */
static void
check_stdout(struct job *job)
{
	if (wf_outlet_error(job->out) != 0 && job->phase == PHASE_RUN) {
		job->signal_number = SIGPIPE;
		enter(job, PHASE_TERM, job->opts->grace_ns);
	}
}

/* Results are not dropped: if nobody reads them, their child waits, as it would without the
 * launcher; at a site, everything there waits. `child` is the one that `fd` brings results of. */
static bool
stalls(struct job *job, const struct wf_child *child, int fd, uint64_t key)
{
	if (job->opts->on_stdout != NULL || !child->spec->owns_stdout ||
	    wf_outlet_room(job->out) >= 2 * WF_CHILD_STDOUT_ROOM) {
		return false;
	}
	if (epoll_ctl(job->epoll_fd, EPOLL_CTL_DEL, fd, NULL) == 0) {
		job->stalled_fd = fd;
		job->stalled_key = key;
	}
	return true;
}

/* The child whose results a site brings, or any other one of it. */
static const struct wf_child *
find_child_at(const struct job *job, const struct wf_site *site)
{
	const struct wf_child *found = &job->child[0];

	for (unsigned i = 0; i < job->opts->count; i++) {
		const struct wf_child *child = &job->child[i];
		if (child->spec->site == site && child->spec->owns_stdout) {
			return child;
		}
		found = child->spec->site == site ? child : found;
	}
	return found;
}

static void
handle_wake(struct job *job)
{
	int fd = job->stalled_fd;
	uint64_t count;

	(void)!read(job->wake_fd, &count, sizeof(count));
	if (fd < 0 || wf_outlet_room(job->out) < 2 * WF_CHILD_STDOUT_ROOM) {
		return;
	}
	job->stalled_fd = -1;
	if (job->stalled_key < SITE_KEY &&
	    job->child[job->stalled_key / WF_PROCESS_STREAMS].process.fd[WF_PROCESS_STDOUT] != fd) {
		return; /* it has ended, and its last lines have been read */
	}
	if (watch(job, fd, job->stalled_key) != WEFT_OK) {
		print_line(job, weft_last_error());
	}
}

static void
handle_site(struct job *job, uint64_t key)
{
	struct wf_site *site = job->opts->site[key - SITE_KEY];

	if (!stalls(job, find_child_at(job, site), site->fd, key)) {
		site->ops->on_ready(site);
	}
}

static void
handle_child(struct job *job, uint64_t key)
{
	struct wf_child *child = &job->child[key / WF_PROCESS_STREAMS];
	enum wf_process_stream stream = (enum wf_process_stream)(key % WF_PROCESS_STREAMS);

	if (stream != WF_PROCESS_STDOUT || !stalls(job, child, child->process.fd[stream], key)) {
		wf_child_read(child, stream);
	}
}

static void
handle_events(struct job *job)
{
	struct epoll_event events[EVENTS_MAX];

	int count = epoll_wait(job->epoll_fd, events, EVENTS_MAX, 0);
	for (int i = 0; i < count; i++) {
		uint64_t key = events[i].data.u64;
		if (key == SIGNAL_KEY) {
			handle_signals(job);
		} else if (key == WAKE_KEY) {
			handle_wake(job);
		} else if (key >= SITE_KEY) {
			handle_site(job, key);
		} else {
			handle_child(job, key);
		}
	}
	check_stdout(job);
}

static void
tick_sites(struct job *job)
{
	uint64_t now_ns = wf_now_ns(job->opts->env);

	if (now_ns < job->tick_ns) {
		return;
	}
	for (unsigned i = 0; i < job->opts->site_count; i++) {
		job->opts->site[i]->ops->tick(job->opts->site[i]);
	}
	job->tick_ns = now_ns + WF_SITE_TICK_NS;
}

/* When there is something to do even if nothing happens. */
static uint64_t
find_next_ns(const struct job *job)
{
	uint64_t next_ns = job->tick_ns < job->deadline_ns ? job->tick_ns : job->deadline_ns;

	for (unsigned i = 0; i < job->opts->count; i++) {
		next_ns = job->restart[i].due_ns < next_ns ? job->restart[i].due_ns : next_ns;
	}
	return next_ns;
}

static void
watch_to_the_end(struct job *job)
{
	while (!all_ended(job, false)) {
		wf_wait(job->opts->env, job->epoll_fd, find_next_ns(job));
		handle_events(job);
		tick_sites(job);
		reap(job);
		restart_due(job);
		if (wf_now_ns(job->opts->env) >= job->deadline_ns) {
			on_deadline(job);
		}
	}
}

/* A start that failed half way: nothing of it may stay. */
static void
kill_started(struct job *job)
{
	for (unsigned i = 0; i < job->opts->count; i++) {
		job->child[i].ended = !job->child[i].started;
	}
	kill_all(job);
	watch_to_the_end(job);
}

/* Whether the work is done, whatever becomes of the others. */
static bool
have_workers_done(const struct job *job)
{
	bool done = true;

	for (unsigned i = 0; i < job->opts->count && done; i++) {
		const struct wf_child *child = &job->child[i];
		done = !child->spec->is_worker || (child->ended && wf_child_exit_code(child) == 0);
	}
	return done;
}

static void
describe_end(const struct job *job, struct wf_supervise_end *out)
{
	*out = (struct wf_supervise_end){.exit_code = WF_EXIT_OK, .restarts = job->restarts};
	if (job->cause != NULL) {
		describe_cause(job->cause, out);
		out->exit_code = wf_child_exit_code(job->cause);
		out->is_done = have_workers_done(job);
		out->may_recover = !out->is_done && may_recover(job->cause);
	} else if (job->signal_number == SIGPIPE) {
		out->exit_code = WF_EXIT_IO;
		snprintf(out->cause, sizeof(out->cause),
			 "stdout cannot be written; the job was stopped");
	} else if (job->signal_number != 0 && job->left_count > 0) {
		out->exit_code = WF_EXIT_SIGNAL + job->signal_number;
		snprintf(out->cause, sizeof(out->cause), "stopped by %s; %u of %u processes %s",
			 strsignal(job->signal_number), job->left_count, job->opts->count,
			 "did not end on SIGKILL and are left behind");
	} else if (job->left_count > 0) {
		out->exit_code = WF_EXIT_IO;
		snprintf(out->cause, sizeof(out->cause), "%u of %u processes %s", job->left_count,
			 job->opts->count, "did not end on SIGKILL and are left behind");
	} else if (job->signal_number != 0) {
		out->exit_code = WF_EXIT_SIGNAL + job->signal_number;
		snprintf(out->cause, sizeof(out->cause), "stopped by %s; all processes have ended",
			 strsignal(job->signal_number));
	}
}

/* As long as the reader accepts some of it; what it accepted before this does not count. */
static bool
write_while_taken(const struct job *job)
{
	struct wf_env *env = job->opts->env;
	uint64_t deadline_ns = wf_now_ns(env) + WF_OUTLET_PATIENCE_NS;
	uint64_t count;

	while (!wf_outlet_flush(job->out, 0)) {
		wf_wait(env, job->wake_fd, deadline_ns);
		if (read(job->wake_fd, &count, sizeof(count)) == (ssize_t)sizeof(count)) {
			deadline_ns = wf_now_ns(env) + WF_OUTLET_PATIENCE_NS;
		} else if (wf_now_ns(env) >= deadline_ns) {
			return false;
		}
	}
	return true;
}

/* Results that are still queued are waited for, as printing them would have done: Ctrl-C and
 * SIGTERM have their default action again. After one of these they are waited for while the reader
 * makes progress. */
static void
finish_output(struct job *job)
{
	sigprocmask(SIG_SETMASK, &job->mask_before, NULL);
	if (job->signal_number == 0) {
		(void)wf_outlet_flush(job->out, WF_NEVER);
		job->signal_number = wf_outlet_error(job->out) != 0 ? SIGPIPE : 0;
	} else if (!write_while_taken(job)) {
		print_line(job, "nobody reads stdout: results that were not yet written are lost");
	}
}

static void
close_job(struct job *job)
{
	wf_outlet_close(job->out);
	wf_outlet_close(job->err);
	if (job->wake_fd >= 0) {
		close(job->wake_fd);
	}
	for (unsigned i = 0; i < job->opts->count; i++) {
		wf_child_fini(&job->child[i]);
	}
	if (job->epoll_fd >= 0) {
		close(job->epoll_fd);
	}
	if (job->signal_fd >= 0) {
		close(job->signal_fd);
		sigprocmask(SIG_SETMASK, &job->mask_before, NULL);
	}
	wf_free(job->opts->env, job->restart, job->opts->count * sizeof(*job->restart));
	wf_free(job->opts->env, job->child, job->opts->count * sizeof(*job->child));
}

enum weft_status
wf_supervise(const struct wf_supervise_opts *opts, struct wf_supervise_end *out)
{
	struct job job = {.opts = opts,
			  .epoll_fd = -1,
			  .signal_fd = -1,
			  .wake_fd = -1,
			  .stalled_fd = -1,
			  .phase = PHASE_RUN,
			  .deadline_ns = WF_NEVER,
			  .tick_ns = opts->site_count > 0 ? 0 : WF_NEVER,
			  .restarts = opts->restarts.made};

	WF_ASSERT(opts->count >= 1);
	job.child = wf_zalloc_array(opts->env, opts->count, sizeof(*job.child));
	job.restart = wf_zalloc_array(opts->env, opts->count, sizeof(*job.restart));
	if (job.child == NULL || job.restart == NULL) {
		wf_free(opts->env, job.restart, opts->count * sizeof(*job.restart));
		wf_free(opts->env, job.child, opts->count * sizeof(*job.child));
		return wf_fail(WEFT_NOMEM, "no memory for %u processes", opts->count);
	}
	for (unsigned i = 0; i < opts->count; i++) {
		wf_child_init(&job.child[i], opts, &opts->spec[i], i);
		wf_restart_cancel(&job.restart[i]);
	}
	enum weft_status st = make_log_dir(opts);
	if (st == WEFT_OK) {
		st = open_output(&job);
	}
	if (st == WEFT_OK) {
		st = open_signals(&job);
	}
	if (st == WEFT_OK) {
		st = start_all(&job);
	}
	if (st == WEFT_OK) {
		watch_to_the_end(&job);
		finish_output(&job);
		describe_end(&job, out);
	} else {
		kill_started(&job);
	}
	close_job(&job);
	return st;
}
