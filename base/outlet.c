/* SPDX-License-Identifier: Apache-2.0 */
/* outlet: see outlet.h. Thread: any; the struct's comments say which fields belong to which thread.
 */
#include "base/outlet.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/env.h"
#include "base/outlet_queue.h"

#define OUTLETS_MAX 32  /* outlets that a failed assertion can find; others work as well */
#define LOOK_MS 100     /* the timeout of one poll of a descriptor that accepts nothing */
#define PATIENCES_MAX 5 /* the most patiences in one flush that progresses slowly */
#define SAID_BYTES 256
#define LAST_WORDS_BYTES 2048

struct wf_outlet {
	/* Fixed at open. */
	struct wf_outlet_opts opts;
	pid_t pid;
	size_t map_bytes;
	bool has_cpus;
	cpu_set_t cpus; /* the CPUs on which the opener could run */

	pthread_mutex_t lock;
	/* Under the lock. */
	pthread_cond_t changed; /* the writer waits on it for lines, or the end */
	pthread_cond_t moved;   /* others wait on it until lines are out, or the writer has ended */
	pthread_t thread;
	bool started;
	bool ended;           /* nothing is written any more */
	bool abandoned;       /* nothing waits for the writer: it frees the memory */
	bool broken;          /* the last write failed */
	int error;            /* errno of the first that did */
	uint64_t progress_ns; /* when something was last written, or the queue was empty */
	uint64_t closing_ns;  /* when closing began; 0: it has not */
	/* Without a thread of its own: when the thread that helps stops writing; 0: none helps. */
	uint64_t helper_end_ns;
	struct wf_outlet_queue queue;

	struct wf_outlet_batch batch; /* belongs to the writer, or to the helping thread */
};

/* Two globals, for code that has no pointer to an outlet: a failed assertion, exit(3), a signal
 * handler. Threads that look through the list are counted first, and an outlet's memory stays until
 * there are none (O1). */
static _Atomic(struct wf_outlet *) outlets[OUTLETS_MAX];
static _Atomic unsigned lookers;

static uint64_t
now_ns(void)
{
	struct timespec ts = {0};
	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * WF_NS_PER_S + (uint64_t)ts.tv_nsec;
}

static uint64_t
after(uint64_t since_ns, uint64_t wait_ns)
{
	return wait_ns > WF_NEVER - since_ns ? WF_NEVER : since_ns + wait_ns;
}

/* When a flush that began at `begin_ns` gives up. */
static uint64_t
give_up_ns(uint64_t begin_ns, uint64_t progress_ns, uint64_t patience_ns)
{
	uint64_t idle = after(progress_ns, patience_ns);
	uint64_t all = patience_ns > WF_NEVER / PATIENCES_MAX
			       ? WF_NEVER
			       : after(begin_ns, PATIENCES_MAX * patience_ns);
	return idle < all ? idle : all;
}

/* Whether this is the process of the outlet's thread. In a child of fork the thread does not exist,
 * and the lock may be held by no thread. */
static bool
is_here(const struct wf_outlet *o)
{
	return o->pid == getpid();
}

static void
lock(struct wf_outlet *o)
{
	int err = pthread_mutex_lock(&o->lock);
	WF_ASSERT(err == 0);
}

static void
unlock(struct wf_outlet *o)
{
	int err = pthread_mutex_unlock(&o->lock);
	WF_ASSERT(err == 0);
}

/* Waits for `moved`. Under the lock. WF_NEVER: without limit. */
static void
wait_moved(struct wf_outlet *o, uint64_t deadline_ns)
{
	if (deadline_ns == WF_NEVER) {
		(void)pthread_cond_wait(&o->moved, &o->lock);
		return;
	}
	const struct timespec at = {.tv_sec = (time_t)(deadline_ns / WF_NS_PER_S),
				    .tv_nsec = (long)(deadline_ns % WF_NS_PER_S)};
	(void)pthread_cond_timedwait(&o->moved, &o->lock, &at);
}

/* Under the lock. Whether there is something to write. After a failed write the next line triggers
 * a retry. */
static bool
has_news(const struct wf_outlet *o)
{
	const struct wf_outlet_queue *q = &o->queue;
	bool lost = o->opts.format_dropped != NULL && q->dropped + q->lost > 0;
	return !wf_outlet_queue_is_empty(q) || (lost && !o->broken);
}

/* ---- writing: the outlet's thread ---- */

static bool
gives_up(struct wf_outlet *o)
{
	lock(o);
	bool over = o->abandoned || (o->helper_end_ns != 0 && now_ns() >= o->helper_end_ns) ||
		    (o->closing_ns != 0 &&
		     now_ns() >= give_up_ns(o->closing_ns, o->progress_ns, WF_OUTLET_PATIENCE_NS));
	unlock(o);
	return over;
}

/* write(2), whose failures are only errors: no SIGPIPE for a reader that has gone, and no SIGXFSZ
 * for a file at its size limit. The outlet's thread blocks all signals, but other threads write as
 * well. Async-signal-safe. */
static ssize_t
write_quietly(int fd, const char *bytes, size_t count)
{
	static const int caused[] = {SIGPIPE, SIGXFSZ};
	const struct timespec at_once = {0};
	sigset_t pending;
	sigset_t ours;
	sigset_t before;

	(void)sigpending(&pending);
	(void)sigemptyset(&ours);
	for (size_t i = 0; i < WF_ARRAY_COUNT(caused); i++) {
		/* Otherwise it was pending before, and is not ours. */
		if (sigismember(&pending, caused[i]) == 0) {
			(void)sigaddset(&ours, caused[i]);
		}
	}
	(void)pthread_sigmask(SIG_BLOCK, &ours, &before);
	ssize_t n = write(fd, bytes, count);
	int err = errno;
	if (n < 0 && (err == EPIPE || err == EFBIG)) {
		(void)sigtimedwait(&ours, NULL, &at_once);
	}
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = err;
	return n;
}

/* Returns 0, or the errno for which the rest was not written; EAGAIN: nothing is accepted, and the
 * outlet is closed, or the helping thread has waited long enough. */
static int
write_all(struct wf_outlet *o, const char *bytes, size_t count)
{
	while (count > 0) {
		struct pollfd ready = {.fd = o->opts.fd, .events = POLLOUT};
		int n_ready = poll(&ready, 1, LOOK_MS);
		if (gives_up(o)) {
			return EAGAIN;
		}
		if (n_ready <= 0) {
			continue;
		}
		/* No more than a pipe accepts at once if poll reports it as writable. */
		ssize_t n = write_quietly(o->opts.fd, bytes, count < PIPE_BUF ? count : PIPE_BUF);
		if (n < 0 && errno == EAGAIN) {
			/* Another process has set O_NONBLOCK and filled the pipe first. */
			(void)poll(NULL, 0, 1);
		} else if (n < 0 && errno != EINTR) {
			return errno;
		}
		bytes += n > 0 ? n : 0;
		count -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int
write_batch(struct wf_outlet *o)
{
	int err = 0;
	if (o->batch.dropped > 0 && o->opts.format_dropped != NULL) {
		char line[SAID_BYTES];
		o->opts.format_dropped(o->batch.dropped, line, sizeof(line));
		err = write_all(o, line, strnlen(line, sizeof(line)));
		o->batch.dropped = err == 0 ? 0 : o->batch.dropped;
	}
	return err != 0 ? err : write_all(o, o->batch.text, o->batch.bytes);
}

/* Under the lock. The batch that was removed from the queue is written or lost. */
static void
settle(struct wf_outlet *o, int err)
{
	o->broken = err != 0;
	o->error = o->error != 0 ? o->error : err;
	/* Too late for the remaining lines. */
	const bool late = err == EAGAIN && (o->closing_ns != 0 || o->abandoned);
	wf_outlet_queue_settle(&o->queue, err == 0 ? 0 : o->batch.dropped + o->batch.lines, late);
	o->progress_ns = now_ns();
	(void)pthread_cond_broadcast(&o->moved);
	if (o->opts.wake_fd >= 0 && !o->abandoned) {
		const uint64_t one = 1;
		/* EAGAIN: the counter is at its maximum, so its reader was woken long ago. */
		(void)!write(o->opts.wake_fd, &one, sizeof(one));
	}
}

static void
release(struct wf_outlet *o)
{
	(void)pthread_cond_destroy(&o->changed);
	(void)pthread_cond_destroy(&o->moved);
	(void)pthread_mutex_destroy(&o->lock);
	int err = munmap(o, o->map_bytes);
	WF_ASSERT(err == 0);
}

/* Writes until the outlet is closed and everything is written, or nothing can be. Under the lock.
 */
static void
write_until_closed(struct wf_outlet *o)
{
	for (;;) {
		while (!has_news(o) && o->closing_ns == 0) {
			(void)pthread_cond_wait(&o->changed, &o->lock);
		}
		if (!has_news(o)) {
			return;
		}
		wf_outlet_queue_pop(&o->queue, &o->batch);
		unlock(o);
		int err = write_batch(o);
		lock(o);
		settle(o, err);
		if (err == EAGAIN) {
			return;
		}
	}
}

static void *
writer_main(void *arg)
{
	struct wf_outlet *o = arg;
	if (o->has_cpus) {
		/* Not on the CPU of the lane that happened to log first. */
		(void)sched_setaffinity(0, sizeof(o->cpus), &o->cpus);
	}
	lock(o);
	write_until_closed(o);
	o->ended = true;
	bool abandoned = o->abandoned;
	(void)pthread_cond_broadcast(&o->moved);
	unlock(o);
	if (abandoned) {
		release(o);
	}
	return NULL;
}

/* Starts the thread. Under the lock. Signals are blocked, SIGPIPE and SIGXFSZ too: they are for the
 * program's own threads. If no thread can be created now, the next line tries again. */
static void
start(struct wf_outlet *o)
{
	sigset_t all;
	sigset_t before;
	(void)sigfillset(&all);
	int err = pthread_sigmask(SIG_SETMASK, &all, &before);
	WF_ASSERT(err == 0);
	o->started = pthread_create(&o->thread, NULL, writer_main, o) == 0;
	err = pthread_sigmask(SIG_SETMASK, &before, NULL);
	WF_ASSERT(err == 0);
	if (o->started) {
		(void)pthread_setname_np(o->thread, "weft-outlet");
	}
}

/* Under the lock. If no thread can be created, a thread that waits for lines writes them: nothing
 * is removed from the queue before the descriptor accepts it. Returns when byte `target` of the
 * history is out, or `end_ns` has passed. Returns false if another thread has to write. */
static bool
help(struct wf_outlet *o, uint64_t target, uint64_t end_ns)
{
	if (o->started || o->helper_end_ns != 0 || o->closing_ns != 0) {
		return false;
	}
	o->helper_end_ns = end_ns;
	while (o->queue.popped_at < target && now_ns() < end_ns && o->closing_ns == 0) {
		struct pollfd ready = {.fd = o->opts.fd, .events = POLLOUT};
		unlock(o);
		int n_ready = poll(&ready, 1, LOOK_MS);
		lock(o);
		if (n_ready > 0) {
			wf_outlet_queue_pop(&o->queue, &o->batch);
			unlock(o);
			int err = write_batch(o);
			lock(o);
			settle(o, err);
		}
	}
	o->helper_end_ns = 0;
	(void)pthread_cond_broadcast(&o->moved);
	return true;
}

/* ---- any thread ---- */

static void
enlist(struct wf_outlet *o)
{
	for (unsigned i = 0; i < OUTLETS_MAX; i++) {
		struct wf_outlet *none = NULL;
		if (atomic_compare_exchange_strong_explicit(&outlets[i], &none, o,
							    memory_order_seq_cst,
							    memory_order_relaxed)) { /* O1 */
			return;
		}
	}
}

static void
delist(struct wf_outlet *o)
{
	for (unsigned i = 0; i < OUTLETS_MAX; i++) {
		struct wf_outlet *self = o;
		if (atomic_compare_exchange_strong_explicit(&outlets[i], &self, NULL,
							    memory_order_seq_cst,
							    memory_order_relaxed)) { /* O1 */
			break;
		}
	}
	/* O1: either they have counted themselves, or they do not find it any more. */
	while (atomic_load_explicit(&lookers, memory_order_seq_cst) > 0) {
		(void)poll(NULL, 0, 1);
	}
}

static enum weft_status
init_locks(struct wf_outlet *o)
{
	pthread_condattr_t attr;
	int err = pthread_condattr_init(&attr);
	if (err == 0) {
		err = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
		err = err != 0 ? err : pthread_mutex_init(&o->lock, NULL);
		err = err != 0 ? err : pthread_cond_init(&o->changed, &attr);
		err = err != 0 ? err : pthread_cond_init(&o->moved, &attr);
		(void)pthread_condattr_destroy(&attr);
	}
	return err == 0 ? WEFT_OK : wf_fail_errno(WEFT_NOMEM, err, "outlet: locks");
}

enum weft_status
wf_outlet_open(const struct wf_outlet_opts *opts, struct wf_outlet **out)
{
	WF_ASSERT(opts->fd >= 0);
	WF_ASSERT(opts->queue_bytes >= WF_OUTLET_LINE_BYTES + WF_OUTLET_HEAD_BYTES);
	size_t bytes = sizeof(struct wf_outlet) + opts->queue_bytes;
	struct wf_outlet *o = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				   -1, (off_t)0);
	if (o == MAP_FAILED) {
		return wf_fail_errno(WEFT_NOMEM, errno, "outlet: %zu bytes", bytes);
	}
	o->opts = *opts;
	o->pid = getpid();
	o->map_bytes = bytes;
	o->queue.text = (char *)(o + 1);
	o->queue.bytes = opts->queue_bytes;
	o->has_cpus = sched_getaffinity(0, sizeof(o->cpus), &o->cpus) == 0;
	enum weft_status st = init_locks(o);
	if (st != WEFT_OK) {
		(void)munmap(o, bytes);
		return st;
	}
	enlist(o);
	*out = o;
	return WEFT_OK;
}

/* Under the lock: waits until the writer has ended. If it blocks in a write although poll reported
 * room, this waits no longer than the writer would have waited for poll: the writer ends by itself
 * later. */
static void
await_end(struct wf_outlet *o)
{
	while (o->started && !o->ended && !o->abandoned) {
		uint64_t deadline_ns =
			give_up_ns(o->closing_ns, o->progress_ns, WF_OUTLET_PATIENCE_NS) +
			3 * LOOK_MS * WF_NS_PER_MS;
		o->abandoned = now_ns() >= deadline_ns;
		if (!o->abandoned) {
			wait_moved(o, deadline_ns);
		}
	}
}

void
wf_outlet_close(struct wf_outlet *outlet)
{
	struct wf_outlet *o = outlet;
	if (o == NULL) {
		return;
	}
	delist(o);
	if (!is_here(o)) {
		(void)munmap(o, o->map_bytes);
		return;
	}
	lock(o);
	o->closing_ns = now_ns();
	o->progress_ns = o->closing_ns;
	(void)pthread_cond_signal(&o->changed);
	if (!o->started) {
		write_until_closed(o); /* there were no lines, or no thread could be created */
	}
	await_end(o);
	bool started = o->started;
	bool abandoned = o->abandoned;
	pthread_t thread = o->thread;
	unlock(o);
	if (abandoned) {
		(void)pthread_detach(thread);
		return;
	}
	if (started) {
		int err = pthread_join(thread, NULL);
		WF_ASSERT(err == 0);
	}
	release(o);
}

bool
wf_outlet_put(struct wf_outlet *outlet, const char *line, size_t bytes)
{
	struct wf_outlet *o = outlet;
	WF_ASSERT(bytes > 0 && bytes <= WF_OUTLET_LINE_BYTES);
	if (!is_here(o)) {
		return wf_outlet_write(o->opts.fd, line, bytes, WF_OUTLET_PATIENCE_NS);
	}
	lock(o);
	bool idle = wf_outlet_queue_put_at(&o->queue) == wf_outlet_queue_done_at(&o->queue);
	bool fits = wf_outlet_queue_put(&o->queue, line, bytes);
	if (fits) {
		o->progress_ns = idle ? now_ns() : o->progress_ns;
		(void)pthread_cond_signal(&o->changed);
	}
	if (!o->started && o->helper_end_ns == 0) {
		start(o);
	}
	unlock(o);
	return fits;
}

size_t
wf_outlet_room(struct wf_outlet *outlet)
{
	if (!is_here(outlet)) {
		return outlet->opts.queue_bytes; /* the outlet does not belong to this process */
	}
	lock(outlet);
	size_t bytes = wf_outlet_queue_room(&outlet->queue);
	unlock(outlet);
	return bytes;
}

bool
wf_outlet_flush(struct wf_outlet *outlet, uint64_t patience_ns)
{
	struct wf_outlet *o = outlet;
	if (!is_here(o)) {
		return true; /* nothing was queued by this process */
	}
	uint64_t begin_ns = now_ns();
	lock(o);
	uint64_t target = wf_outlet_queue_put_at(&o->queue);
	while (wf_outlet_queue_done_at(&o->queue) < target) {
		uint64_t deadline_ns = give_up_ns(begin_ns, o->progress_ns, patience_ns);
		if (now_ns() >= deadline_ns) {
			break;
		}
		if (!o->started && o->helper_end_ns == 0) {
			start(o);
		}
		if (!help(o, target, deadline_ns)) {
			wait_moved(o, deadline_ns);
		}
	}
	bool done = wf_outlet_queue_done_at(&o->queue) >= target;
	unlock(o);
	return done;
}

int
wf_outlet_error(struct wf_outlet *outlet)
{
	if (!is_here(outlet)) {
		return 0;
	}
	lock(outlet);
	int error = outlet->error;
	unlock(outlet);
	return error;
}

void
wf_outlet_format_dropped(uint64_t count, char *line, size_t bytes)
{
	(void)snprintf(line, bytes,
		       "%" PRIu64 " line%s of the log %s dropped: the reader was too slow\n", count,
		       count == 1 ? "" : "s", count == 1 ? "was" : "were");
}

/* ---- without a pointer to an outlet ---- */

/* Does not wait for the lock: its holder may be the thread that crashed. The outlet's thread writes
 * and this only watches, except for an outlet that has no thread. */
static void
watch_until_done(struct wf_outlet *o, uint64_t patience_ns)
{
	uint64_t target = wf_outlet_queue_put_at(&o->queue);
	uint64_t begin_ns = now_ns();
	if (is_here(o) && pthread_mutex_trylock(&o->lock) == 0) {
		(void)help(o, target, after(begin_ns, patience_ns));
		unlock(o);
	}
	uint64_t progress_ns = begin_ns;
	uint64_t before = 0;
	while (is_here(o)) {
		uint64_t done = wf_outlet_queue_done_at(&o->queue);
		uint64_t now = now_ns();
		progress_ns = done != before ? now : progress_ns;
		before = done;
		if (done >= target || now >= give_up_ns(begin_ns, progress_ns, patience_ns)) {
			return;
		}
		(void)poll(NULL, 0, 1);
	}
}

void
wf_outlets_flush(uint64_t patience_ns)
{
	(void)atomic_fetch_add_explicit(&lookers, 1, memory_order_seq_cst); /* O1 */
	for (unsigned i = 0; i < OUTLETS_MAX; i++) {
		struct wf_outlet *o =
			atomic_load_explicit(&outlets[i], memory_order_seq_cst); /* O1 */
		if (o != NULL) {
			watch_until_done(o, patience_ns);
		}
	}
	(void)atomic_fetch_sub_explicit(&lookers, 1, memory_order_seq_cst); /* O1 */
}

/* Threads that were looking when a process forked do not exist in its child. */
static void
forget_lookers(void)
{
	atomic_store_explicit(&lookers, 0, memory_order_relaxed); /* one thread alone */
}

__attribute__((constructor)) static void
watch_forks(void)
{
	(void)pthread_atfork(NULL, NULL, forget_lookers);
}

/* exit(3) with outlets still open, by a program that did not close its sessions. */
__attribute__((destructor)) static void
flush_at_exit(void)
{
	wf_outlets_flush(WF_OUTLET_PATIENCE_NS);
}

static void
on_crash(int number, siginfo_t *info, void *context)
{
	wf_outlets_flush(WF_OUTLET_PATIENCE_NS);
	/* The signal was sent by a process: it would not be raised again by itself. */
	if (info->si_code <= 0) {
		(void)raise(number);
	}
}

static void
flush_on_crash(void)
{
	static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
	struct sigaction flush = {.sa_sigaction = on_crash,
				  .sa_flags = SA_SIGINFO | SA_RESETHAND | SA_NODEFER};
	(void)sigemptyset(&flush.sa_mask);
	for (size_t i = 0; i < WF_ARRAY_COUNT(fatal); i++) {
		struct sigaction now;
		bool free = sigaction(fatal[i], NULL, &now) == 0 &&
			    (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL;
		if (free) {
			(void)sigaction(fatal[i], &flush, NULL);
		}
	}
}

void
wf_outlets_serve_program(void)
{
	/* open(2) returns the lowest free number: going upwards, that is the one that was closed.
	 * Printing to a closed stdout stays an error. */
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		int mode = fd == STDERR_FILENO ? O_WRONLY : O_RDONLY;
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", mode) != fd) {
			break; /* nothing else can be done */
		}
	}
	flush_on_crash();
}

bool
wf_outlet_write(int fd, const char *bytes, size_t count, uint64_t patience_ns)
{
	uint64_t progress_ns = now_ns();
	int look_ms =
		patience_ns < LOOK_MS * WF_NS_PER_MS ? (int)(patience_ns / WF_NS_PER_MS) : LOOK_MS;
	while (count > 0) {
		struct pollfd ready = {.fd = fd, .events = POLLOUT};
		int n = poll(&ready, 1, look_ms);
		if (n > 0 && (ready.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) {
			return false; /* there is no reader */
		}
		size_t piece = count < PIPE_BUF ? count : PIPE_BUF;
		ssize_t wrote = n > 0 ? write_quietly(fd, bytes, piece) : 0;
		if (wrote < 0 && errno != EINTR && errno != EAGAIN) {
			return false;
		}
		if (wrote > 0) {
			bytes += wrote;
			count -= (size_t)wrote;
			progress_ns = now_ns();
		} else if (now_ns() >= after(progress_ns, patience_ns)) {
			return false;
		}
	}
	return true;
}

void
wf_outlet_last_words(const char *format, ...)
{
	char line[LAST_WORDS_BYTES];
	va_list args;
	va_start(args, format);
	int wanted = vsnprintf(line, sizeof(line) - 1, format, args);
	va_end(args);
	size_t bytes = wanted < 0 ? 0 : strlen(line);
	line[bytes] = '\n';
	(void)wf_outlet_write(STDERR_FILENO, line, bytes + 1, WF_OUTLET_PATIENCE_NS);
}
