/* SPDX-License-Identifier: Apache-2.0 */
/* helper: an env whose helper does all at once, nothing before somebody waits, or refuses; and
 * which counts memory. Thread: one, and the helper's, which is mostly the test's own. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdatomic.h>
#include <stdbool.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/ahead.h"
#include "tests/support/failing_env.h"

enum helper {
	AT_ONCE,   /* all is done when submit returns */
	HELD_BACK, /* nothing is done until somebody waits for it */
	REFUSED,   /* there is no thread */
	SYSTEMS,   /* the system env's thread */
};

struct ground {
	struct wf_failing_env failing; /* first: its env is this one's */
	struct wf_env_ops ops;
	enum helper helper;
	struct wf_task *held[4];
	unsigned held_count;
	unsigned submitted, waited;
};

static struct wf_env *inner;
static struct ground ground;

static inline void
end_task(struct wf_task *task)
{
	task->run(task);
	atomic_store_explicit(&task->done, true, memory_order_release);
}

static inline enum weft_status
submit(struct wf_env *env, struct wf_task *task)
{
	(void)env;
	ground.submitted++;
	if (ground.helper == REFUSED) {
		return wf_fail(WEFT_NOMEM, "no thread");
	}
	atomic_store_explicit(&task->done, false, memory_order_relaxed);
	if (ground.helper == AT_ONCE) {
		end_task(task);
	} else {
		assert_true(ground.held_count < WF_ARRAY_COUNT(ground.held));
		ground.held[ground.held_count++] = task;
	}
	return WEFT_OK;
}

static inline void
wait_for(struct wf_env *env, int fd, uint64_t deadline_ns)
{
	(void)env;
	(void)fd;
	(void)deadline_ns;
	assert_true(ground.held_count > 0);
	ground.waited++;
	while (ground.held_count > 0) {
		end_task(ground.held[--ground.held_count]);
	}
}

static inline struct wf_env *
begin(enum helper helper)
{
	ground = (struct ground){.helper = helper};
	wf_failing_env_init(&ground.failing, inner);
	wf_failing_env_fail(&ground.failing, 0, false);
	ground.ops = *ground.failing.env.ops;
	if (helper != SYSTEMS) {
		ground.ops.submit = submit;
		ground.ops.wait = wait_for;
	}
	ground.failing.env.ops = &ground.ops;
	return &ground.failing.env;
}

static inline int
set_up(void **state)
{
	(void)state;
	return wf_env_system_create(WF_LOG_WARN, -1, &inner) == WEFT_OK ? 0 : -1;
}

static inline int
tear_down(void **state)
{
	bool clean = wf_failing_env_is_clean(&ground.failing);
	(void)state;
	wf_env_system_destroy(inner);
	return clean ? 0 : -1;
}

/* Linux 5.14 can, older ones and emulators cannot. */
static inline bool
system_can(void)
{
	struct wf_ahead ahead;
	void *at = inner->ops->alloc(inner, WF_AHEAD_LEAST_BYTES, 64);
	assert_non_null(at);
	wf_ahead_init(&ahead, begin(AT_ONCE));
	wf_ahead_begin(&ahead, at, WF_AHEAD_LEAST_BYTES);
	bool can = wf_ahead_is_free(&ahead);
	assert_int_equal(wf_ahead_reached(&ahead), can ? WF_AHEAD_LEAST_BYTES : 0);
	wf_ahead_fini(&ahead);
	wf_free(inner, at, WF_AHEAD_LEAST_BYTES);
	return can;
}
