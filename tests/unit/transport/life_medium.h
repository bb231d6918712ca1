/* SPDX-License-Identifier: Apache-2.0 */
/* life_medium: a scripted medium, under a clock that the test sets, for tests of the life of a
 * connection. Thread: the test's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "transport/life.h"

#define MEDIUM_CONNS 2u
#define MEDIUM_NEWCOMERS 2u
#define MEDIUM_EVENTS 4u
#define MS WF_NS_PER_MS

extern uint64_t medium_now_ns;

/* The calls that it received. */
struct medium_did {
	unsigned ready, visit, late, up, answer, deny, cut, finish, fini;
	enum wf_life_state cut_from;
	unsigned logged; /* lines */
	char last_log[WF_WHY_BYTES];
	char denied[WF_WHY_BYTES];
};
extern struct medium_did did;

/* Its reactions. */
struct medium_will {
	bool may_show, answer_is_sent, finishes, is_held, answer_takes_down;
	enum wf_life_state answer_leads; /* where the answer leads to; CONNECTING: nowhere */
	bool visit_decides;              /* the peer's hello or verdict comes with a visit */
	bool hear_decides;               /* and with a look before it is sent away */
	const char *missing;
	uint64_t next_try_ns; /* 0: none */
};
extern struct medium_will will;

extern const struct wf_life_ops medium_life_ops;
extern struct wf_medium medium;
extern struct wf_event event[MEDIUM_EVENTS];
extern struct wf_events events; /* of the last visit */

void medium_begin(void);
/* Everything is freed, and the books are even. */
void medium_end(void);
/* CONNECTING. */
struct wf_life *medium_conn(bool incoming);
/* In that state, by the way that leads there. */
struct wf_life *medium_conn_in(enum wf_life_state state, bool incoming);
/* One visit, with room for this many events. */
void medium_visit(struct wf_life *life, unsigned max);
