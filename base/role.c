/* SPDX-License-Identifier: Apache-2.0 */
/* role: see role.h. Thread: any. */
#include "base/role.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define COMM_BYTES 16u /* the kernel's, with the NUL */
#define RANK_DIGITS 5u

void
wf_role_name_process(const char *role)
{
	const char *given = getenv("WEFT_ROLE");
	const char *rank = getenv("WEFT_RANK");
	char name[COMM_BYTES];

	if (given == NULL || rank == NULL || strcmp(given, role) != 0 || gettid() != getpid()) {
		return;
	}
	size_t digits = strspn(rank, "0123456789");
	if (digits == 0 || digits > RANK_DIGITS || rank[digits] != '\0') {
		return; /* the variable belongs to another program */
	}
	snprintf(name, sizeof(name), "%s %s", role, rank);
	prctl(PR_SET_NAME, name);
}

enum weft_status
wf_role_check_job_name(const char *name)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t bytes = name != NULL ? strspn(name, letters) : 0;

	if (name == NULL || (name[bytes] == '\0' && bytes < WF_JOB_NAME_BYTES && name[0] != '-')) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_INVALID,
		       "job_name=%.80s: must be at most %d letters, digits, '.', '_' and '-', and "
		       "not begin with '-'",
		       name, WF_JOB_NAME_BYTES - 1);
}
