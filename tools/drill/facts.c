/* SPDX-License-Identifier: Apache-2.0 */
/* facts: see facts.h. */
#include "tools/drill/facts.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool
wf_drill_is_line_of(const char *line, const char *name)
{
	const size_t bytes = strlen(name);
	const char *rest = line + bytes;

	return strncmp(line, name, bytes) == 0 &&
	       (strncmp(rest, " | ", 3) == 0 || strncmp(rest, ": ", 2) == 0);
}

/* "trainer 1" is not in "trainer 12". */
static bool
has_sign(const char *line, const char *sign)
{
	const size_t bytes = strlen(sign);
	const bool is_number = isdigit((unsigned char)sign[bytes - 1]) != 0;

	for (const char *at = strstr(line, sign); at != NULL; at = strstr(at + 1, sign)) {
		if (!is_number || !isdigit((unsigned char)at[bytes])) {
			return true;
		}
	}
	return false;
}

void
wf_drill_facts_watch(struct wf_drill_facts *facts, const char *sign, const char *except)
{
	facts->sign = sign;
	facts->except = except;
	facts->sign_ns = 0;
}

void
wf_drill_facts_freeze(struct wf_drill_facts *facts)
{
	facts->made = facts->step > facts->made ? facts->step : facts->made;
	facts->step = 0;
	facts->is_frozen = true;
}

void
wf_drill_facts_on_result(struct wf_drill_facts *facts, const char *line)
{
	char digest[WF_DRILL_DIGEST_BYTES];

	if (sscanf(line, "pass %*u cost %*f test %*f digest %16[0-9a-f]", digest) == 1) {
		snprintf(facts->digest, sizeof(facts->digest), "%s", digest);
	}
}

/* "trainer 0 | 2026-11-20 07:16:18.123 I pass 1 batch 7 cost 0.63" */
static void
look_for_step(struct wf_drill_facts *facts, const char *line, uint64_t now_ns)
{
	const char *at = strstr(line, " I pass ");
	uint64_t pass;
	uint64_t batch;

	if (strncmp(line, "trainer ", 8) != 0 || at == NULL ||
	    sscanf(at, " I pass %" SCNu64 " batch %" SCNu64 " cost", &pass, &batch) != 2) {
		return;
	}
	facts->batch_max = batch > facts->batch_max ? batch : facts->batch_max;
	const uint64_t step = facts->steps_each == 0 ? 0 : pass * facts->steps_each + batch;
	facts->step = step > facts->step ? step : facts->step;
	if (facts->is_frozen && facts->beyond_ns == 0 && step > facts->made) {
		facts->beyond_ns = now_ns;
	}
}

/* "3 more snapshots failed before that of step 80", or "(3 more failed before it)"; 0: no such. */
static uint64_t
count_unsaid(const char *line)
{
	const char *at = strstr(line, " more snapshots failed before");
	uint64_t count = 0;

	at = at != NULL ? at : strstr(line, " more failed before it)");
	for (; at != NULL && at > line && isdigit((unsigned char)at[-1]); at--) {
	}
	return at != NULL && sscanf(at, "%" SCNu64, &count) == 1 ? count : 0;
}

static void
look_for_snapshot(struct wf_drill_facts *facts, const char *line)
{
	static const char goes_on[] = "the job goes on from the snapshot of step ";
	const char *at = strstr(line, goes_on);

	facts->snapshots_failed += count_unsaid(line);
	if (at != NULL && sscanf(at + strlen(goes_on), "%" SCNu64, &facts->resumed_step) == 1) {
		facts->resumed++;
	} else if (strstr(line, " I snapshot of step ") != NULL) {
		facts->snapshots++;
	} else if (strstr(line, "there is no snapshot of step ") != NULL) {
		facts->snapshots_failed++;
	} else if (strstr(line, " cannot be used, and the one before it is") != NULL) {
		facts->snapshots_damaged++;
	}
}

void
wf_drill_facts_on_line(struct wf_drill_facts *facts, const char *line, uint64_t now_ns)
{
	if (line[0] == '\0') {
		return;
	}
	snprintf(facts->last, sizeof(facts->last), "%s", line);
	if (facts->sign != NULL && facts->sign_ns == 0 && has_sign(line, facts->sign) &&
	    (facts->except == NULL || !wf_drill_is_line_of(line, facts->except))) {
		facts->sign_ns = now_ns;
	}
	if (strncmp(line, "pserver 0 | ", 12) == 0) {
		look_for_snapshot(facts, line);
	} else if (strstr(line, WF_DRILL_LAUNCH ": ") == line &&
		   strstr(line, " is started again (") != NULL) {
		facts->restarts++;
		wf_drill_facts_freeze(facts);
	} else {
		look_for_step(facts, line, now_ns);
	}
}
