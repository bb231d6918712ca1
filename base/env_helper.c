/* SPDX-License-Identifier: Apache-2.0 */
/* env_helper: the helper thread of the system env. Started at the first submit, so that a program
 * that never needs it has none. Thread: see the header. */
#include "base/env_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/assert.h"

static void
lock(struct wf_env_helper *helper)
{
	int err = pthread_mutex_lock(&helper->lock);
	WF_ASSERT(err == 0);
}

static void
unlock(struct wf_env_helper *helper)
{
	int err = pthread_mutex_unlock(&helper->lock);
	WF_ASSERT(err == 0);
}

/* Waits for the next task. NULL: the thread has to stop. */
static struct wf_task *
next_task(struct wf_env_helper *helper)
{
	struct wf_task *task = NULL;
	lock(helper);
	while (!helper->stopping && helper->first == NULL) {
		(void)pthread_cond_wait(&helper->changed, &helper->lock);
	}
	if (!helper->stopping) {
		task = helper->first;
		helper->first = task->next;
		if (helper->first == NULL) {
			helper->last = NULL;
		}
	}
	unlock(helper);
	return task;
}

static void
wake(int fd)
{
	const uint64_t one = 1;
	ssize_t n = 0;
	do {
		n = write(fd, &one, sizeof(one));
	} while (n < 0 && errno == EINTR);
	/* EAGAIN: the counter is at its maximum, so its reader was woken long ago. */
}

/* Once `done` is set the owner may free the task and close its fd at any moment. So the wake-up
 * uses a duplicate descriptor: the number of a closed one might be reused. */
static void
run_task(struct wf_task *task)
{
	int wake_fd = task->wake_fd;
	int own_fd = -1;
	task->run(task);
	if (wake_fd >= 0) {
		own_fd = fcntl(wake_fd, F_DUPFD_CLOEXEC, 0);
	}
	atomic_store_explicit(&task->done, true, memory_order_release); /* owner's acquire */
	if (own_fd >= 0) {
		wake(own_fd);
		(void)close(own_fd);
	} else if (wake_fd >= 0) {
		wake(wake_fd); /* out of descriptors: a lost wake-up would be worse */
	}
}

static void *
helper_main(void *arg)
{
	struct wf_env_helper *helper = arg;
	if (helper->has_cpus) {
		/* Not on the CPU of the lane that happened to submit the first task. */
		(void)sched_setaffinity(0, sizeof(helper->cpus), helper->cpus);
	}
	for (;;) {
		struct wf_task *task = next_task(helper);
		if (task == NULL) {
			return NULL;
		}
		run_task(task);
	}
}

/* Starts the thread. Under the lock. Signals are blocked: they are for the program's own threads.
 */
static int
start(struct wf_env_helper *helper)
{
	sigset_t all;
	sigset_t before;
	(void)sigfillset(&all);
	int err = pthread_sigmask(SIG_SETMASK, &all, &before);
	WF_ASSERT(err == 0);
	int started = pthread_create(&helper->thread, NULL, helper_main, helper);
	err = pthread_sigmask(SIG_SETMASK, &before, NULL);
	WF_ASSERT(err == 0);
	if (started == 0) {
		(void)pthread_setname_np(helper->thread, "weft-helper");
		helper->started = true;
	}
	return started;
}

enum weft_status
wf_env_helper_init(struct wf_env_helper *helper)
{
	*helper = (struct wf_env_helper){0};
	helper->has_cpus = sched_getaffinity(0, sizeof(helper->cpus), helper->cpus) == 0;
	int err = pthread_mutex_init(&helper->lock, NULL);
	if (err != 0) {
		return wf_fail_errno(WEFT_NOMEM, err, "env: mutex");
	}
	err = pthread_cond_init(&helper->changed, NULL);
	if (err != 0) {
		(void)pthread_mutex_destroy(&helper->lock);
		return wf_fail_errno(WEFT_NOMEM, err, "env: condition");
	}
	return WEFT_OK;
}

void
wf_env_helper_fini(struct wf_env_helper *helper)
{
	lock(helper);
	helper->stopping = true;
	bool started = helper->started;
	(void)pthread_cond_signal(&helper->changed);
	unlock(helper);
	if (started) {
		int err = pthread_join(helper->thread, NULL);
		WF_ASSERT(err == 0);
	}
	(void)pthread_cond_destroy(&helper->changed);
	(void)pthread_mutex_destroy(&helper->lock);
}

enum weft_status
wf_env_helper_submit(struct wf_env_helper *helper, struct wf_task *task)
{
	WF_ASSERT(task->run != NULL);
	/* The lock orders it before the helper's read. */
	atomic_store_explicit(&task->done, false, memory_order_relaxed);
	task->next = NULL;

	lock(helper);
	int err = helper->started ? 0 : start(helper);
	if (err == 0) {
		if (helper->last != NULL) {
			helper->last->next = task;
		} else {
			helper->first = task;
		}
		helper->last = task;
		(void)pthread_cond_signal(&helper->changed);
	}
	unlock(helper);
	if (err != 0) {
		return wf_fail_errno(WEFT_NOMEM, err, "env: starting the helper thread");
	}
	return WEFT_OK;
}
