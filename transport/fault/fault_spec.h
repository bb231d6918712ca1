/* SPDX-License-Identifier: Apache-2.0 */
/* fault_spec: the faults that a wrapper injects, as written between "fault(" and ")". The grammar
 * is in transport/fault/README.md. Thread: any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define WF_FAULT_RULES_MAX 16u      /* scripted items of one SPEC */
#define WF_FAULT_SPEC_BYTES 512u    /* the longest text of a SPEC */
#define WF_FAULT_CHANCE_ALL 1000000 /* chances are parts of a million */

/* The SPEC of `fault+NAME`. All of its faults keep to the contract. */
#define WF_FAULT_SPEC_DEFAULT "seed=1,delay=30%:2ms,split=30%,short=20%,stall=1%:5ms"

enum wf_fault_kind {
	WF_FAULT_REFUSE,
	WF_FAULT_DELAY,
	WF_FAULT_CUT,
	WF_FAULT_SPLIT,
	WF_FAULT_SHORT,
	WF_FAULT_STALL,
};
#define WF_FAULT_KINDS 6u

/* What a rule counts, on one transport, from 1. */
enum wf_fault_point {
	WF_FAULT_AT_CONNECT, /* calls of connect */
	WF_FAULT_AT_ACCEPT,  /* incoming connections */
	WF_FAULT_AT_POST,    /* calls of post with at least one operation */
	WF_FAULT_AT_OP,      /* operations accepted */
	WF_FAULT_AT_POLL,    /* polls that looked for something new */
	WF_FAULT_AT_UP,      /* events of the inner transport */
	WF_FAULT_AT_MSG,
	WF_FAULT_AT_PUT,
	WF_FAULT_AT_DONE,
	WF_FAULT_AT_DOWN,
	WF_FAULT_AT_MS, /* milliseconds since open; once, not a range */
};
#define WF_FAULT_POINTS 11u

struct wf_fault_rule {
	enum wf_fault_kind kind;
	enum wf_fault_point point;
	uint64_t first, last; /* inclusive */
	uint64_t lasts_ns;    /* DELAY, STALL: exactly this long */
};

struct wf_fault_spec {
	uint64_t seed;
	uint32_t chance[WF_FAULT_KINDS];   /* parts of WF_FAULT_CHANCE_ALL */
	uint64_t lasts_ns[WF_FAULT_KINDS]; /* DELAY: at most; STALL: exactly; else 0 */
	struct wf_fault_rule rule[WF_FAULT_RULES_MAX];
	unsigned rule_count;
};

/* WEFT_INVALID: the text names the item, what is wrong with it, and what would be right. */
enum weft_status wf_fault_spec_parse(const char *text, size_t bytes,
				     struct wf_fault_spec *out) WEFT_MUST_CHECK;
/* "refuse", "delay"... */
const char *wf_fault_kind_name(enum wf_fault_kind kind);
