/* SPDX-License-Identifier: Apache-2.0 */
/* border: the borders between two steps of a pass, where trainer 0, or a sequential run, saves in
 * the middle of a pass, and where a run ends that SIGTERM or its time limit stops. In a synchronous
 * job no step of any trainer is applied there, because trainer 0's part of it is missing. Private
 * to trainer/program. Thread: the run's. */
#pragma once

#include "trainer/program/job.h"

/* Checks the options that save or end at a border. WEFT_INVALID: option, value, remedy. */
enum weft_status wf_border_check(const struct wf_run *job) WEFT_MUST_CHECK;
/* SIGTERM is postponed from now on, if the options say so. */
void wf_border_postpone(const struct wf_run *job);
/* Before a step: whether this process saves after it, in the middle of the pass. */
bool wf_border_is_near(struct wf_run *job);
/* At the end of a pass, before it is saved: notes whether the run ends there. */
void wf_border_look(struct wf_run *job);
/* After the save: WEFT_OK if the run goes on; otherwise why it ends. `batch` is that of the save,
 * 0 at the end of a pass. */
enum weft_status wf_border_end(struct wf_run *job, uint64_t batch) WEFT_MUST_CHECK;
/* The first batch of the pass that begins. */
uint64_t wf_border_first_batch(const struct wf_run *job);
/* Samples of all trainers from the first batch of this pass to `batch`. */
uint64_t wf_border_samples(const struct wf_run *job, uint64_t batch);
