/* SPDX-License-Identifier: Apache-2.0 */
/* job_settings: the settings in a job's description. The table of settings (base/settings.c) says
 * which they are, and at which bytes they travel. Thread: any; not on the data path. */
#pragma once

#include "base/settings.h"
#include "wire/job.h"

#define WF_JOB_SETTINGS_BYTES 177 /* at the beginning of a description; some are not settings */

/* The settings of a session that are a job's; the others stay as they are. */
void wf_job_set(const struct weft_session_opts *opts, struct wf_job *job);
/* The other way; the other settings are 0. */
void wf_job_settings(const struct wf_job *job, struct wf_session_values *out);

/* Of `out` [WF_JOB_SETTINGS_BYTES], the bytes that are settings. */
void wf_job_settings_put(const struct wf_job *job, uint8_t *out);
/* The other way. WEFT_PROTOCOL: a byte that is neither true nor false; else nothing is checked. */
enum weft_status wf_job_settings_get(const uint8_t *in, struct wf_job *job) WEFT_MUST_CHECK;
/* Each by itself, what they rule together, and the segments of the schedule. WEFT_INVALID. */
enum weft_status wf_job_check_settings(const struct wf_job *job) WEFT_MUST_CHECK;
