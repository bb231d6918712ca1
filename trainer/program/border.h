/* SPDX-License-Identifier: Apache-2.0 */
/* border: the borders between two steps of a pass, where trainer 0, or a sequential run, saves in
 * the middle of a pass, and where a run ends that SIGTERM or its time limit stops. In a synchronous
 * job no step of any trainer is applied there, because trainer 0's part of it is missing. In other
 * modes trainers are at different batches and none waits: to end the run, each of them ends its
 * pass early. Private to trainer/program. Thread: the run's. */
#pragma once

#include "trainer/program/job.h"

/* Checks the options that save or end at a border. WEFT_INVALID: option, value, remedy. */
enum weft_status wf_border_check(const struct wf_run *job) WEFT_MUST_CHECK;
/* SIGTERM is postponed from now on, if the options say so. */
void wf_border_postpone(const struct wf_run *job);
/* Before a step: whether this process saves after it, in the middle of the pass. The caller finds
 * out whether this is the last batch: then comes the end of the pass, which has its own save. */
bool wf_border_is_near(struct wf_run *job);
/* After a step that is not the last of the pass: whether this trainer ends the pass early. */
bool wf_border_cuts_pass(struct wf_run *job);
/* Before a step: whether this trainer leaves the job after it, which goes on. */
bool wf_border_leaves(const struct wf_run *job);
/* At the end of a pass, before it is saved: notes whether the run ends there. */
void wf_border_look(struct wf_run *job);
/* The pass has ended, for some trainers early: notes that the run ends, and `batch`, the least that
 * any of these has done. */
void wf_border_pass_is_cut(struct wf_run *job, uint64_t batch);
/* After the save: WEFT_OK if the run goes on; otherwise why it ends. `batch` is that of the save,
 * 0 at the end of a pass. */
enum weft_status wf_border_end(struct wf_run *job, uint64_t batch) WEFT_MUST_CHECK;
/* The first batch of the pass that begins. */
uint64_t wf_border_first_batch(const struct wf_run *job);
/* Of a run that begins behind the last batch of each trainer. Returns WEFT_INVALID. */
enum weft_status wf_border_refuse_start(const struct wf_run *job) WEFT_MUST_CHECK;
