/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_task: rdma_connect, which on iWARP blocks while the kernel connects a TCP stream: there it
 * runs on the env's helper thread. Thread: the transport's owner, but for `run`, which touches its
 * task only. */
#include <errno.h>
#include <stdatomic.h>

#include "transport/verbs/verbs_internal.h"

#define TASK_LOOK_NS (20 * WF_NS_PER_US)

static void
run(struct wf_task *base)
{
	struct wf_verbs_task *task = (struct wf_verbs_task *)base; /* first member */
	task->error = task->lib->connect(task->id, &task->param) == 0 ? 0 : errno;
}

void
wf_verbs_task_run(struct wf_verbs_task *task)
{
	run(&task->task);
}

enum weft_status
wf_verbs_task_start(struct wf_verbs_task *task, struct wf_env *env, int wake_fd)
{
	task->task = (struct wf_task){.run = run, .wake_fd = wake_fd};
	enum weft_status st = env->ops->submit(env, &task->task);
	task->running = st == WEFT_OK;
	return st;
}

bool
wf_verbs_task_ended(struct wf_verbs_task *task)
{
	if (!task->running ||
	    !atomic_load_explicit(&task->task.done, memory_order_acquire)) { /* env's release */
		return false;
	}
	task->running = false;
	return true;
}

void
wf_verbs_task_await(struct wf_verbs_task *task, struct wf_env *env)
{
	while (task->running && !wf_verbs_task_ended(task)) {
		wf_wait(env, -1, wf_now_ns(env) + TASK_LOOK_NS);
	}
}
