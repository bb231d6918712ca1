/* SPDX-License-Identifier: Apache-2.0 */
/* engine: the device of this process. Its thread waits for sockets, for the clock, and for word
 * that the device's folder in /sys has come or gone. When the process ends, the books are written
 * down. Thread: its own, and all that call the library. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "library.h"

#define DEVICES "/sys/class/infiniband"
#define DEVICE DEVICES "/fake0"
#define PORTS DEVICE "/ports"
#define PORT PORTS "/1"
#define FOLDER_BYTES 80u /* what the name of a socket has room for */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock. */
static bool started;
static pid_t pid; /* who started it: a child that forked has no device */
static char folder[FOLDER_BYTES];
static int epoll_fd;
static struct library_watch *watches;
static uint64_t serials;
static bool has_device;
static bool port_is_up = true;
static struct library_watch clock_watch, folder_watch;

/* ---- what is waited for ---- */

void
library_watch(struct library_watch *watch, uint32_t events)
{
	watch->serial = ++serials;
	watch->next = watches;
	watches = watch;
	struct epoll_event event = {.events = events, .data.u64 = watch->serial};
	int err = epoll_ctl(epoll_fd, EPOLL_CTL_ADD, watch->fd, &event);
	WF_ASSERT(err == 0);
}

void
library_rewatch(struct library_watch *watch, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.u64 = watch->serial};
	(void)epoll_ctl(epoll_fd, EPOLL_CTL_MOD, watch->fd, &event);
}

void
library_unwatch(struct library_watch *watch)
{
	struct library_watch **at = &watches;
	while (*at != watch) {
		at = &(*at)->next;
	}
	*at = watch->next;
	(void)close(watch->fd); /* epoll forgets it by that */
	watch->fd = -1;
}

static struct library_watch *
find(uint64_t serial)
{
	struct library_watch *watch = watches;
	while (watch != NULL && watch->serial != serial) {
		watch = watch->next;
	}
	return watch;
}

static void *
run(void *unused)
{
	struct epoll_event event;
	for (;;) {
		if (epoll_wait(epoll_fd, &event, 1, -1) < 1) {
			continue;
		}
		(void)pthread_mutex_lock(&lock);
		struct library_watch *watch = find(event.data.u64);
		if (watch != NULL) {
			watch->ready(watch, event.events);
		}
		fake_turn();
		(void)pthread_mutex_unlock(&lock);
	}
	return NULL;
}

/* ---- the clock ---- */

static uint64_t
now_ns(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * WF_NS_PER_S + (uint64_t)now.tv_nsec;
}

static void
alarm_at(uint64_t at_ns)
{
	struct itimerspec at = {.it_value = {.tv_sec = (time_t)(at_ns / WF_NS_PER_S),
					     .tv_nsec = (long)(at_ns % WF_NS_PER_S)}};
	(void)timerfd_settime(clock_watch.fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static void
on_clock(struct library_watch *watch, uint32_t events)
{
	uint64_t count = 0;
	(void)!read(watch->fd, &count, sizeof(count)); /* what is due is done behind this */
}

/* ---- the device's folder ---- */

/* "4: ACTIVE"; a device that says nothing is up. */
static bool
read_port(void)
{
	char text[16] = "";
	int fd = open(PORT "/state", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0) {
		(void)close(fd);
	}
	return n <= 0 || strtol(text, NULL, 10) == 4;
}

/* From above: what is made behind the look at a folder is an event of that one. */
static void
watch_folders(void)
{
	static const char *const folders[] = {DEVICES, DEVICE, PORTS, PORT};
	for (unsigned i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		(void)inotify_add_watch(folder_watch.fd, folders[i],
					IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
						IN_CLOSE_WRITE);
	}
}

static void
look(void)
{
	bool had = has_device;
	bool was_up = port_is_up;
	watch_folders();
	has_device = access(DEVICE, F_OK) == 0;
	port_is_up = read_port();
	if (had && !has_device) {
		fake_device_remove(NULL);
	} else if (was_up != port_is_up) {
		fake_device_port(NULL, port_is_up);
	}
}

static void
on_folder(struct library_watch *watch, uint32_t events)
{
	uint8_t some[4096];
	(void)!read(watch->fd, some, sizeof(some));
	look();
}

/* ---- the beginning ---- */

static void
watch_all(void)
{
	clock_watch.ready = on_clock;
	clock_watch.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	library_watch(&clock_watch, EPOLLIN);
	folder_watch.ready = on_folder;
	folder_watch.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	library_watch(&folder_watch, EPOLLIN);
	look();
}

static void
read_environment(void)
{
	const char *at = getenv("WEFT_FAKE_RDMA");
	const char *kind = getenv("WEFT_FAKE_RDMA_KIND");
	const char *seed = getenv("WEFT_FAKE_RDMA_SEED");
	const char *breaks = getenv("WEFT_FAKE_RDMA_BREAKS");
	WF_ASSERT(at != NULL && strlen(at) < sizeof(folder));
	memcpy(folder, at, strlen(at) + 1);
	if (kind != NULL) {
		bool known = fake_be(kind);
		WF_ASSERT(known);
	}
	if (seed != NULL && seed[0] != '\0') {
		struct fake_knobs knobs;
		fake_draw_knobs(strtoull(seed, NULL, 10), 1,
				breaks != NULL ? (uint32_t)strtoul(breaks, NULL, 10) : 0, &knobs);
		fake_turn_knobs(&knobs);
	}
}

static void
start(void)
{
	static const struct fake_host host = {.now_ns = now_ns, .alarm = alarm_at};
	pthread_t thread;
	sigset_t all, before;
	started = true;
	pid = getpid();
	fake_reset();
	read_environment();
	fake_live_in(&host);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	watch_all();
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the program's */
	int err = pthread_create(&thread, NULL, run, NULL);
	WF_ASSERT(err == 0);
	(void)pthread_detach(thread);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void
library_enter(void)
{
	(void)pthread_mutex_lock(&lock);
	if (!started) {
		start();
	}
}

void
library_leave(void)
{
	(void)pthread_mutex_unlock(&lock);
}

bool
library_has_device(void)
{
	return has_device;
}

const char *
library_folder(void)
{
	return folder;
}

/* ---- the end ---- */

/* FOLDER/books.PID: what is left, or "nothing is left"; then what there was. */
__attribute__((destructor)) static void
close_books(void)
{
	char path[FOLDER_BYTES + 32];
	char left[512];
	(void)pthread_mutex_lock(&lock); /* for good */
	if (!started || pid != getpid()) {
		return;
	}
	(void)snprintf(path, sizeof(path), "%s/books.%d", folder, (int)pid);
	const char *what = fake_left_over(left, sizeof(left));
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd >= 0) {
		const struct fake_happened *h = &fake_happened;
		(void)dprintf(
			fd,
			"%s: %s: %swork_requests %u connections %u late %" PRIu64 " dry %" PRIu64
			" unwoken %" PRIu64 " cm_lost %" PRIu64 " cm_twice %" PRIu64
			" nomem %" PRIu64 " cuts %" PRIu64 " fatals %" PRIu64 " removals %" PRIu64
			" ports %" PRIu64 " gids %" PRIu64 " polls %" PRIu64 "\n",
			program_invocation_short_name, fake_now_is()->name,
			what != NULL ? what : "nothing is left. ", fake_seen.work_requests,
			fake_seen.requests, h->late, h->dry, h->unwoken, h->cm_lost, h->cm_twice,
			h->nomem, h->cuts, h->fatals, h->removals, h->ports, h->gids, h->polls);
		(void)close(fd);
	}
}
