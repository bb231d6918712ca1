/* SPDX-License-Identifier: Apache-2.0 */
/* report: findings as text and as JSON, and the exit code. Thread: any one. */
#pragma once

#include <stdio.h>

#include "tools/doctor/doctor.h"

struct wf_doctor_report {
	FILE *out;
	bool json;
	bool all;         /* text: also what works */
	const char *host; /* of the findings that follow; "": this one */
	unsigned count[WF_DOCTOR_LEVELS];
	unsigned printed;
};

/* Before the first finding; `transport` is what was asked for. */
void wf_doctor_report_begin(struct wf_doctor_report *report, const char *transport);
/* A sink of findings; `arg` is the report. */
void wf_doctor_report_add(void *arg, const struct wf_doctor_finding *finding);
/* After the last one. Returns the exit code: 0, 1 if there are findings, 69 if something that was
 * asked for cannot work. */
int wf_doctor_report_end(struct wf_doctor_report *report);
