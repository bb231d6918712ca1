/* SPDX-License-Identifier: Apache-2.0 */
/* role: which member of a job this process is, as its launcher says: WEFT_ROLE ("pserver" or
 * "trainer") and WEFT_RANK (its number among those, from 0); and what the name of a job may be. */
#pragma once

#include "base/status.h"

#define WF_JOB_NAME_BYTES 64 /* with its NUL */

/* Name the process "trainer 0" in the system's list of processes, if its launcher says that it has
 * this role. Without a launcher, and on any thread but the main one, nothing changes. */
void wf_role_name_process(const char *role);
/* Checks --job_name, which goes to logs and lists of processes: letters, digits, and . _ - in
 * between; NULL and "" are no name. WEFT_INVALID. */
enum weft_status wf_role_check_job_name(const char *name) WEFT_MUST_CHECK;
