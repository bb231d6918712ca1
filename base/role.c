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
