/* SPDX-License-Identifier: Apache-2.0 */
/* stage: one trainer with two tables against a scripted pserver, in a simulated world. What the
 * trainer does is the test's: a script (tests/support/script.h). Thread: the one that runs the
 * test.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_lane.h"
#include "tests/support/script.h"
#include "weft/sparse.h"

#define DIM 3u
#define KEYS_MAX 64u
#define VOCABULARY 1000u

struct stage {
	struct script script; /* first: its functions cast back */
	struct fake_opts fake;
	struct fake_seen seen;
	bool stop;
	bool restores;        /* step 7 */
	bool asks_none_ahead; /* no rows ahead of their step */
	enum weft_value_format wire;
	uint32_t admit_slots; /* of the other table, which admits by count; 0: it admits all */
	int interrupted;      /* 1: waits are left */
	void (*run)(struct stage *stage);
	struct weft_session *session;
	struct weft_table *table; /* VOCABULARY keys */
	struct weft_table *other; /* any keys */
	enum weft_status start;
	char start_text[512];
};

/* The call ends with that status, and its text has `text` in it. */
#define CHECK_FAILS(stage, call, status, text)                                                     \
	stage_check_fails((stage), (call), (status), (text), __FILE__, __LINE__)
void stage_check_fails(struct stage *stage, enum weft_status got, enum weft_status want,
		       const char *text, const char *file, int line);
/* A table of DIM values, sgd with rate 0.5. */
void stage_table_opts(const char *name, struct weft_table_opts *opts);
/* Two lanes that do nothing wrong, and a trainer that does `run`. */
void stage_set(struct stage *stage, void (*run)(struct stage *stage));
void stage_play(struct stage *stage);
/* To run: two steps, whose first failure is kept as that of the start. */
void stage_keep_the_failure(struct stage *stage);
/* Everything is well up to `run`. */
void stage_play_well(struct stage *stage);
