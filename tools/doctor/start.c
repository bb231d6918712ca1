/* SPDX-License-Identifier: Apache-2.0 */
/* start: see start.h. */
#include "tools/doctor/start.h"

#include <stdio.h>

static void
print_finding(void *arg, const struct wf_doctor_finding *finding)
{
	const char *program = arg;
	if (finding->level >= WF_DOCTOR_FINDING) {
		fprintf(stderr, "%s: %s: %s%s%s\n", program, finding->check, finding->text,
			finding->remedy[0] != '\0' ? "; remedy: " : "", finding->remedy);
	}
}

void
wf_doctor_warn_at_start(const char *program, const struct wf_doctor_ask *ask)
{
	char name[64];
	(void)snprintf(name, sizeof(name), "%s", program);
	wf_doctor_run_at_start(ask, print_finding, name);
}
