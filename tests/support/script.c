/* SPDX-License-Identifier: Apache-2.0 */
/* script: see the header. Thread: the test's. */
#include "tests/support/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/double/sim/world.h"

#define LIMIT_NS (10000 * WF_NS_PER_S) /* of virtual time */

void
script_check(struct script *script, bool holds, const char *what, const char *file, int line)
{
	if (!holds && !script_failed(script)) {
		(void)snprintf(script->failure, sizeof(script->failure), "%s:%d: %s (%.150s)", file,
			       line, what, weft_last_error());
	}
}

void
script_check_says(struct script *script, const char *text, const char *part, const char *file,
		  int line)
{
	char what[400];
	(void)snprintf(what, sizeof(what), "\"%.200s\" does not say \"%.100s\"", text, part);
	script_check(script, strstr(text, part) != NULL, what, file, line);
}

void
script_run(struct script *script, uint64_t ns)
{
	uint64_t now = wf_now_ns(script->env);
	uint64_t end = now + ns;
	uint64_t period = ns / 60 + 1;
	while (now < end && !script_failed(script)) {
		if (!script->turn(script)) {
			wf_wait(script->env, -1, now + period < end ? now + period : end);
		}
		now = wf_now_ns(script->env);
	}
}

void
script_settle(struct script *script)
{
	script_run(script, SETTLE_NS);
}

static int
run_body(struct wf_env *env, void *arg)
{
	struct script *script = arg;
	script->env = env;
	script->body(script);
	return 0;
}

static enum weft_status
run_world(struct script *script, struct wf_world *world)
{
	struct wf_proc *proc = NULL;
	bool alone = script->beside == NULL;
	enum weft_status st = WEFT_OK;
	if (!alone) {
		st = wf_world_spawn(world, "ps", 0, script->beside, script, &proc);
	}
	if (st == WEFT_OK) {
		st = wf_world_spawn(world, alone ? "ps" : "tr", WF_NS_PER_MS, run_body, script,
				    &proc);
	}
	return st == WEFT_OK ? wf_world_run(world, LIMIT_NS) : st;
}

bool
script_play(struct script *script, uint64_t seed)
{
	const char *text = getenv("WEFT_SEED");
	const struct wf_world_opts opts = {
		.seed = text != NULL ? strtoull(text, NULL, 0) : seed,
		.delay_min_ns = 10 * WF_NS_PER_US,
		.delay_max_ns = WF_NS_PER_MS,
		.split_per_mille = 300,
		.down_delay_max_ns = 2 * WF_NS_PER_MS,
		.log_level = WF_LOG_DEBUG,
		.log_fd = getenv("WEFT_STAGE_LOG") != NULL ? 2 : -1,
	};
	struct wf_world *world = NULL;
	enum weft_status st = wf_world_create(&opts, &world);
	if (st == WEFT_OK) {
		st = run_world(script, world);
	}
	script_check(script, st == WEFT_OK, st == WEFT_OK ? "" : weft_last_error(), "world", 0);
	if (script_failed(script)) {
		(void)fprintf(stderr, "%s; repeat: WEFT_SEED=%llu\n", script->failure,
			      (unsigned long long)opts.seed);
	}
	wf_world_destroy(world);
	return !script_failed(script);
}
