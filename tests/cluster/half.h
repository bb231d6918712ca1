/* SPDX-License-Identifier: Apache-2.0 */
/* half: a crew of two pservers and two trainers, in which trainer 1 pushes its last step to pserver
 * 0 alone, and dies: a step that may be counted in half. Thread: one. */
#pragma once

#include "tests/support/crew.h"

#define HALF_LAST 3u /* step of trainer 1 */
#define HALF_STEP_NS (WF_NS_PER_S / 10)
#define HALF_KILL_NS (HALF_LAST * HALF_STEP_NS + HALF_STEP_NS / 2)
#define HALF_LOST_NS (HALF_KILL_NS + 3 * WF_NS_PER_S) /* reconnect_timeout */

/* Fills in everything but what trainers do. The log goes to a descriptor, which half_end closes. */
void half_begin(struct crew *crew);
void half_end(const struct crew *crew);
/* What happens to trainer 1: a test that has a `disturb` of its own calls it there. */
void half_disturb(struct crew *crew, struct wf_world *world, struct wf_proc *const *proc);
/* To begin a step at its time. */
void half_wait_until(struct wf_env *env, uint64_t when_ns);
/* What goes from one to the other arrives when the time is over. */
void half_delay(struct wf_world *world, const char *from, const char *to, uint64_t begin_ns,
		uint64_t end_ns);
bool half_has_line(const struct crew *crew, const char *line);
