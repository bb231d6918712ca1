/* SPDX-License-Identifier: Apache-2.0 */
/* harness: the one place that knows which backend a case runs on. "tcp" and "tcp6" run in the
 * system's env over loopback, "shm" there too, "shm-copy" with memory that cannot be shared, "sim"
 * as a process of a simulated world.
 * Thread: the main one; the simulated process is a coroutine of it. */
#include "tests/conformance/conformance.h"

#include <stdlib.h>

#include "transport/sim/world.h"

#define SIM_HOST "alpha"
#define SIM_LIMIT_NS (3600 * WF_NS_PER_S) /* of virtual time */

struct job {
	struct conf conf;
	bool (*body)(struct conf *t);
	bool passed;
};

static int
run_in_env(struct wf_env *env, void *arg)
{
	struct job *job = arg;
	struct conf *t = &job->conf;
	t->env = env;
	t->poll_max = 64;
	wf_rng_init(&t->rng, t->seed, 0);
	job->passed = job->body(t) && !t->failed;
	while (t->node_count > 0) {
		conf_node_close(t, &t->node[--t->node_count]);
	}
	return 0;
}

static bool
run_on_system(struct job *job)
{
	struct wf_env *env = NULL;
	if (wf_env_system_create(WF_LOG_ERROR, 2, &env) != WEFT_OK) {
		fprintf(stderr, "env: %s\n", weft_last_error());
		return false;
	}
	run_in_env(env, job);
	wf_env_system_destroy(env);
	return job->passed;
}

static bool
run_in_world(struct job *job)
{
	struct wf_world_opts opts = {
		.seed = job->conf.seed,
		.delay_min_ns = 1 * WF_NS_PER_US,
		.delay_max_ns = 500 * WF_NS_PER_US,
		.split_per_mille = 500,
		.log_level = WF_LOG_ERROR,
		.log_fd = 2,
	};
	struct wf_world *world = NULL;
	struct wf_proc *proc = NULL;
	bool ran = wf_world_create(&opts, &world) == WEFT_OK &&
		   wf_world_spawn(world, SIM_HOST, 0, run_in_env, job, &proc) == WEFT_OK &&
		   wf_world_run(world, SIM_LIMIT_NS) == WEFT_OK;
	if (!ran) {
		fprintf(stderr, "world: %s\n", weft_last_error());
	}
	wf_world_destroy(world);
	return ran && job->passed;
}

bool
conf_run(const char *url, uint64_t seed, bool (*body)(struct conf *t))
{
	struct job *job = calloc(1, sizeof(*job));
	if (job == NULL) {
		return false;
	}
	job->conf.seed = seed;
	job->body = body;
	bool passed = false;
	if (strcmp(url, "sim") == 0) {
		job->conf.transport = "sim";
		job->conf.host = SIM_HOST;
		passed = run_in_world(job);
	} else {
		job->conf.transport = strncmp(url, "shm", 3) == 0 ? "shm" : "tcp";
		job->conf.private_memory = strcmp(url, "shm-copy") == 0;
		job->conf.host = strcmp(url, "tcp6") == 0 ? "::1" : "127.0.0.1";
		passed = run_on_system(job);
	}
	free(job);
	return passed;
}
