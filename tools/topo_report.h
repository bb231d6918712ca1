/* SPDX-License-Identifier: Apache-2.0 */
/* topo_report: a machine and a plan for it, for people and for programs. Thread: any one. */
#pragma once

#include <stdio.h>

#include "tools/launch/seating.h"

struct wf_topo_report {
	const struct wf_topo *topo;
	const char *name; /* of the machine */
	const struct wf_seating_job *job;
	const struct wf_seating *seating;
	uint32_t port; /* of the first pserver's first lane */
};

void wf_topo_report_text(const struct wf_topo_report *report, FILE *out);
void wf_topo_report_json(const struct wf_topo_report *report, FILE *out);
