/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of wf_fault_spec_parse: an accepted SPEC keeps its limits, a refusal has a reason. */
#include <string.h>

#include "base/assert.h"
#include "base/env.h"
#include "tests/fuzz/fuzz_target.h"
#include "transport/fault/fault_spec.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct wf_fault_spec spec;
	if (wf_fault_spec_parse((const char *)data, bytes, &spec) != WEFT_OK) {
		WF_ASSERT(strncmp(weft_last_error(), "transport fault: ", 17) == 0);
		return 0;
	}
	for (unsigned i = 0; i < WF_FAULT_KINDS; i++) {
		bool lasts = i == WF_FAULT_DELAY || i == WF_FAULT_STALL;
		WF_ASSERT(spec.chance[i] <= WF_FAULT_CHANCE_ALL);
		WF_ASSERT(spec.lasts_ns[i] <= (lasts ? 60 * WF_NS_PER_S : 0));
		WF_ASSERT(!lasts || spec.chance[i] == 0 || spec.lasts_ns[i] > 0);
	}
	WF_ASSERT(spec.rule_count <= WF_FAULT_RULES_MAX);
	for (unsigned i = 0; i < spec.rule_count; i++) {
		const struct wf_fault_rule *rule = &spec.rule[i];
		WF_ASSERT((unsigned)rule->kind < WF_FAULT_KINDS);
		WF_ASSERT((unsigned)rule->point < WF_FAULT_POINTS);
		WF_ASSERT(rule->first > 0 && rule->first <= rule->last);
		WF_ASSERT(rule->lasts_ns <= 60 * WF_NS_PER_S);
	}
	return 0;
}
