/* SPDX-License-Identifier: Apache-2.0 */
/* machine: what a result was measured on. Thread: the benchmark's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define WF_MACHINE_TEXT_BYTES 128

struct wf_machine {
	char cpu[WF_MACHINE_TEXT_BYTES];    /* as /proc/cpuinfo names it; "": it does not */
	char kernel[WF_MACHINE_TEXT_BYTES]; /* "Linux 6.1.0" */
	char arch[WF_MACHINE_TEXT_BYTES];
	char congestion[WF_MACHINE_TEXT_BYTES]; /* the system's own */
	char date[WF_MACHINE_TEXT_BYTES];       /* now, UTC */
	bool virtual_machine;
	unsigned cpu_count; /* installed */
	uint64_t memory_bytes;
};

void wf_machine_describe(struct wf_machine *out);
