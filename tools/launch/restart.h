/* SPDX-License-Identifier: Apache-2.0 */
/* restart: when a process that has died is started again by itself, while the others of its job go
 * on. Thread: the supervisor's. */
#pragma once

#include "base/env.h"

/* A process that dies soon after each start must not keep the machine busy with starts: the delay
 * before the next one doubles as long as it lives shorter than WF_RESTART_LIFE_NS. */
#define WF_RESTART_FIRST_NS (WF_NS_PER_S / 10)
#define WF_RESTART_LONGEST_NS (10 * WF_NS_PER_S)
#define WF_RESTART_LIFE_NS (WF_NS_PER_S)

/* Of one process. */
struct wf_restart {
	uint64_t begun_ns; /* when it was started last */
	uint64_t delay_ns; /* before that start; 0: it was the first one */
	uint64_t due_ns;   /* when it is started again; WF_NEVER: it is not */
};

/* It is started for the first time. */
void wf_restart_init(struct wf_restart *restart, uint64_t now_ns);
/* It has ended, and is to be started again. */
void wf_restart_plan(struct wf_restart *restart, uint64_t now_ns);
/* It is started again, */
void wf_restart_begin(struct wf_restart *restart, uint64_t now_ns);
/* or it is not. */
void wf_restart_cancel(struct wf_restart *restart);
bool wf_restart_is_planned(const struct wf_restart *restart);
