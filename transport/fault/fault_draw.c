/* SPDX-License-Identifier: Apache-2.0 */
/* fault_draw: decides by scripts and chances what happens now. All random numbers come from one
 * generator, in the order of the calls, and nothing is drawn for a fault whose chance is 0. Thread:
 * the transport's owner. */
#include "base/assert.h"
#include "transport/fault/fault_internal.h"

void
wf_fault_see(struct wf_fault *f, enum wf_fault_point point)
{
	WF_ASSERT(point != WF_FAULT_AT_MS);
	f->seen[point]++;
}

static const struct wf_fault_rule *
find_rule(const struct wf_fault *f, enum wf_fault_kind kind, enum wf_fault_point point,
	  uint64_t number)
{
	for (unsigned i = 0; i < f->spec.rule_count; i++) {
		const struct wf_fault_rule *rule = &f->spec.rule[i];
		if (rule->kind == kind && rule->point == point && number >= rule->first &&
		    number <= rule->last) {
			return rule;
		}
	}
	return NULL;
}

static bool
chance(struct wf_fault *f, enum wf_fault_kind kind)
{
	uint32_t of_million = f->spec.chance[kind];
	return of_million > 0 && wf_rng_below(&f->rng, WF_FAULT_CHANCE_ALL) < of_million;
}

bool
wf_fault_strikes_ahead(struct wf_fault *f, enum wf_fault_kind kind, enum wf_fault_point point,
		       uint64_t ahead)
{
	bool by_script = find_rule(f, kind, point, f->seen[point] + ahead) != NULL;
	return chance(f, kind) || by_script;
}

bool
wf_fault_strikes(struct wf_fault *f, enum wf_fault_kind kind, enum wf_fault_point point)
{
	return wf_fault_strikes_ahead(f, kind, point, 0);
}

uint64_t
wf_fault_draw_between(struct wf_fault *f, uint64_t low, uint64_t high)
{
	WF_ASSERT(low <= high);
	return low == high ? low : low + wf_rng_below(&f->rng, high - low + 1);
}

uint64_t
wf_fault_draw_delay(struct wf_fault *f, enum wf_fault_point point)
{
	const struct wf_fault_rule *rule = find_rule(f, WF_FAULT_DELAY, point, f->seen[point]);
	if (rule != NULL) {
		return rule->lasts_ns;
	}
	if (!chance(f, WF_FAULT_DELAY)) {
		return 0;
	}
	return wf_fault_draw_between(f, 1, f->spec.lasts_ns[WF_FAULT_DELAY]);
}

void
wf_fault_count(struct wf_fault *f, enum wf_fault_kind kind)
{
	f->counts.injected[kind]++;
}

void
wf_fault_stall(struct wf_fault *f, uint64_t lasts_ns)
{
	f->stall_until_ns = f->now_ns + lasts_ns;
	wf_fault_count(f, WF_FAULT_STALL);
}

static uint64_t
rule_ns(const struct wf_fault *f, const struct wf_fault_rule *rule)
{
	return f->open_ns + rule->first * WF_NS_PER_MS;
}

uint64_t
wf_fault_next_rule_ns(const struct wf_fault *f)
{
	uint64_t next_ns = WF_NEVER;
	for (unsigned i = 0; i < f->spec.rule_count; i++) {
		const struct wf_fault_rule *rule = &f->spec.rule[i];
		if (rule->point == WF_FAULT_AT_MS && !f->fired[i] && rule_ns(f, rule) < next_ns) {
			next_ns = rule_ns(f, rule);
		}
	}
	return next_ns;
}

const struct wf_fault_rule *
wf_fault_next_rule(struct wf_fault *f)
{
	for (unsigned i = 0; i < f->spec.rule_count; i++) {
		const struct wf_fault_rule *rule = &f->spec.rule[i];
		if (rule->point == WF_FAULT_AT_MS && !f->fired[i] &&
		    rule_ns(f, rule) <= f->now_ns) {
			f->fired[i] = true;
			return rule;
		}
	}
	return NULL;
}

const struct wf_fault_rule *
wf_fault_stall_rule(const struct wf_fault *f)
{
	return find_rule(f, WF_FAULT_STALL, WF_FAULT_AT_POLL, f->seen[WF_FAULT_AT_POLL]);
}
