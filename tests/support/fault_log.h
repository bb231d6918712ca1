/* SPDX-License-Identifier: Apache-2.0 */
/* fault_log: the log lines of fault wrappers when they are closed, for tests that do not hold the
 * transports themselves. Thread: the caller's. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/fault/fault.h"

/* Adds the numbers of the line, if it is such a line. */
static inline void
wf_fault_log_add(const char *line, struct wf_fault_counts *counts)
{
	const char *at = strstr(line, "transport fault: injected");
	for (unsigned i = 0; i < WF_FAULT_KINDS && at != NULL; i++) {
		char name[16];
		(void)snprintf(name, sizeof(name), " %s ",
			       wf_fault_kind_name((enum wf_fault_kind)i));
		at = strstr(at, name);
		if (at != NULL) {
			counts->injected[i] += strtoull(at + strlen(name), NULL, 10);
		}
	}
}
