/* SPDX-License-Identifier: Apache-2.0 */
/* env_helper: the one helper thread of the system env, a queue of tasks before it.
 * Thread: any may submit; init and fini on the env's creator. */
#pragma once

#include <pthread.h>
#include <sched.h>

#include "base/env.h"

#define WF_HELPER_CPUS_MAX 65536 /* the kernel refuses a mask smaller than its own */

struct wf_env_helper {
	/* Fixed at init: where its creator may run. */
	cpu_set_t cpus[WF_HELPER_CPUS_MAX / CPU_SETSIZE];
	bool has_cpus;

	pthread_mutex_t lock; /* guards everything below */
	pthread_cond_t changed;
	struct wf_task *first; /* NULL: nothing queued */
	struct wf_task *last;
	bool started;
	bool stopping;
	pthread_t thread; /* if started */
};

enum weft_status wf_env_helper_init(struct wf_env_helper *helper) WEFT_MUST_CHECK;
/* Waits for the running task; queued ones are never run. */
void wf_env_helper_fini(struct wf_env_helper *helper);
enum weft_status wf_env_helper_submit(struct wf_env_helper *helper,
				      struct wf_task *task) WEFT_MUST_CHECK;
