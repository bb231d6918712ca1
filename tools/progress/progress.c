/* SPDX-License-Identifier: Apache-2.0 */
/* progress: see progress.h. */
#include "tools/progress/progress.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"

#define FIRST_BAR_NS WF_NS_PER_S
#define NEXT_BAR_NS (WF_NS_PER_S / 5)
#define LINE_NS (10 * WF_NS_PER_S)
#define BAR_COLUMNS 24u
#define LINE_BYTES 200u
#define CLEAR "\r\033[K"

struct wf_progress {
	struct wf_progress_opts opts;
	bool is_terminal;
	uint64_t begin_ns, begin_bytes;
	pthread_t thread;
	/* Under the lock. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stops;
	bool is_drawn; /* a bar stands on the terminal */
};

/* What the system has counted; false: it does not. */
static bool
count_bytes(bool of_writes, uint64_t *out)
{
	char text[512];
	const char *name = of_writes ? "wchar: " : "rchar: ";
	const int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		return false;
	}
	const ssize_t bytes = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	if (bytes <= 0) {
		return false;
	}
	text[bytes] = '\0';
	const char *at = strstr(text, name);
	if (at == NULL) {
		return false;
	}
	*out = strtoull(at + strlen(name), NULL, 10);
	return true;
}

static void
format_bytes(uint64_t bytes, char *out, size_t room)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
	double number = (double)bytes / 1024;
	unsigned unit = 0;

	while (unit < 3 && number >= 1024) {
		number /= 1024;
		unit++;
	}
	(void)snprintf(out, room, "%.1f %s", number, units[unit]);
}

/* ", 0:12 left"; nothing where it cannot be told. */
static void
format_left(uint64_t done, uint64_t total, uint64_t elapsed_ns, char *out, size_t room)
{
	out[0] = '\0';
	if (done > 0 && done < total) {
		const double left =
			(double)(total - done) / (double)done * (double)elapsed_ns / 1e9;
		if (left < 360000) {
			const unsigned seconds = (unsigned)(left + 0.5);
			(void)snprintf(out, room, ", %u:%02u left", seconds / 60, seconds % 60);
		}
	}
}

void
wf_progress_format(const struct wf_progress_opts *opts, uint64_t done, uint64_t elapsed_ns,
		   bool with_bar, char *out, size_t bytes)
{
	char bar[BAR_COLUMNS + 1], of[32], all[32], left[32];
	const uint64_t total = opts->total;

	done = total > 0 && done > total ? total : done;
	format_bytes(done, of, sizeof(of));
	format_bytes(total, all, sizeof(all));
	format_left(done, total, elapsed_ns, left, sizeof(left));
	if (total == 0) {
		(void)snprintf(out, bytes, "%s: %s: %s after %u s", opts->program, opts->what, of,
			       (unsigned)(elapsed_ns / WF_NS_PER_S));
		return;
	}
	const double part = (double)done / (double)total;
	if (!with_bar) {
		(void)snprintf(out, bytes, "%s: %s: %.0f %%, %s of %s%s", opts->program, opts->what,
			       part * 100, of, all, left);
		return;
	}
	const unsigned full = (unsigned)(part * BAR_COLUMNS);
	memset(bar, ' ', BAR_COLUMNS);
	memset(bar, '#', full);
	bar[BAR_COLUMNS] = '\0';
	(void)snprintf(out, bytes, "%s: %s %3.0f %% [%s] %s of %s%s", opts->program, opts->what,
		       part * 100, bar, of, all, left);
}

static void
clear(struct wf_progress *progress)
{
	if (progress->is_drawn) {
		(void)fputs(CLEAR, stderr);
		(void)fflush(stderr);
		progress->is_drawn = false;
	}
}

static void
draw(struct wf_progress *progress)
{
	char line[LINE_BYTES];
	uint64_t bytes = 0;

	if (!count_bytes(progress->opts.of_writes, &bytes)) {
		return;
	}
	wf_progress_format(&progress->opts, bytes - progress->begin_bytes,
			   wf_now_ns(progress->opts.env) - progress->begin_ns,
			   progress->is_terminal, line, sizeof(line));
	if (progress->is_terminal) {
		(void)fprintf(stderr, CLEAR "%s", line);
		(void)fflush(stderr);
		progress->is_drawn = true;
	} else {
		(void)fprintf(stderr, "%s\n", line);
	}
}

/* Waits, under the lock. false: it is to end. */
static bool
wait_for(struct wf_progress *progress, uint64_t wait_ns)
{
	struct timespec until;
	int timed_out = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	const uint64_t nanoseconds = (uint64_t)until.tv_nsec + wait_ns;
	until.tv_sec += (time_t)(nanoseconds / WF_NS_PER_S);
	until.tv_nsec = (long)(nanoseconds % WF_NS_PER_S);
	while (!progress->stops && timed_out == 0) {
		timed_out = pthread_cond_timedwait(&progress->changed, &progress->lock, &until);
	}
	return !progress->stops;
}

static void *
look(void *arg)
{
	struct wf_progress *progress = arg;
	uint64_t wait_ns = progress->is_terminal ? FIRST_BAR_NS : LINE_NS;

	(void)pthread_mutex_lock(&progress->lock);
	while (wait_for(progress, wait_ns)) {
		draw(progress);
		wait_ns = progress->is_terminal ? NEXT_BAR_NS : LINE_NS;
	}
	(void)pthread_mutex_unlock(&progress->lock);
	return NULL;
}

/* A thread that no signal interrupts: they belong to the work. */
static bool
start_thread(struct wf_progress *progress)
{
	sigset_t all, before;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	const int failed = pthread_create(&progress->thread, NULL, look, progress);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return failed == 0;
}

struct wf_progress *
wf_progress_start(const struct wf_progress_opts *opts)
{
	struct wf_progress *progress = wf_zalloc(opts->env, sizeof(*progress));
	const char *term = getenv("TERM");
	pthread_condattr_t clock;

	if (progress == NULL) {
		return NULL;
	}
	progress->opts = *opts;
	progress->is_terminal =
		isatty(STDERR_FILENO) == 1 && (term == NULL || strcmp(term, "dumb") != 0);
	progress->begin_ns = wf_now_ns(opts->env);
	(void)pthread_mutex_init(&progress->lock, NULL);
	(void)pthread_condattr_init(&clock);
	(void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&progress->changed, &clock);
	(void)pthread_condattr_destroy(&clock);
	if (count_bytes(opts->of_writes, &progress->begin_bytes) && start_thread(progress)) {
		return progress;
	}
	(void)pthread_cond_destroy(&progress->changed);
	(void)pthread_mutex_destroy(&progress->lock);
	wf_free(opts->env, progress, sizeof(*progress));
	return NULL;
}

void
wf_progress_add_total(struct wf_progress *progress, uint64_t bytes)
{
	if (progress != NULL) {
		(void)pthread_mutex_lock(&progress->lock);
		progress->opts.total += bytes;
		(void)pthread_mutex_unlock(&progress->lock);
	}
}

void
wf_progress_hide(struct wf_progress *progress)
{
	if (progress != NULL) {
		(void)pthread_mutex_lock(&progress->lock);
		clear(progress);
		(void)pthread_mutex_unlock(&progress->lock);
	}
}

void
wf_progress_stop(struct wf_progress *progress)
{
	if (progress == NULL) {
		return;
	}
	(void)pthread_mutex_lock(&progress->lock);
	progress->stops = true;
	clear(progress);
	(void)pthread_cond_signal(&progress->changed);
	(void)pthread_mutex_unlock(&progress->lock);
	(void)pthread_join(progress->thread, NULL);
	(void)pthread_cond_destroy(&progress->changed);
	(void)pthread_mutex_destroy(&progress->lock);
	wf_free(progress->opts.env, progress, sizeof(*progress));
}

uint64_t
wf_progress_size(const char *path)
{
	struct stat info;
	uint64_t bytes = 0;
	DIR *folder = NULL;
	const struct dirent *entry = NULL;

	if (stat(path, &info) != 0) {
		return 0;
	}
	if (S_ISREG(info.st_mode)) {
		return (uint64_t)info.st_size;
	}
	folder = opendir(path);
	while (folder != NULL && (entry = readdir(folder)) != NULL) {
		if (fstatat(dirfd(folder), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(info.st_mode)) {
			bytes += (uint64_t)info.st_size;
		}
	}
	if (folder != NULL) {
		(void)closedir(folder);
	}
	return bytes;
}
