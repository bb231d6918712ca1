/* SPDX-License-Identifier: Apache-2.0 */
/* start: what weft pserver and weft train print of the checks when they start: only findings that
 * matter for what was asked, one line each. Thread: main. */
#pragma once

#include "tools/doctor/doctor.h"

/* The memory that even a small job needs, where nobody has said how much it is. */
#define WF_DOCTOR_START_BYTES (64ull << 20)

/* Prints on stderr, after the name of the program. */
void wf_doctor_warn_at_start(const char *program, const struct wf_doctor_ask *ask);
