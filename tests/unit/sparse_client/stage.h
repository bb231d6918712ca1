/* SPDX-License-Identifier: Apache-2.0 */
/* stage: one trainer with two tables against a scripted pserver, in a simulated world.
 *
 * What the trainer does is the test's, in a process of its own: assertions would leave it, so it
 * notes the first thing that is not as it should be. Thread: the one that runs the test. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/env.h"
#include "fake_lane.h"
#include "weft/sparse.h"

#define DIM 3u
#define KEYS_MAX 64u
#define VOCABULARY 1000u

struct stage {
	struct fake_opts fake;
	struct fake_seen seen;
	bool stop;
	bool restores; /* step 7 */
	enum weft_value_format wire;
	uint32_t admit_slots; /* of the other table, which admits by count; 0: it admits all */
	int interrupted;      /* 1: waits are left */
	void (*run)(struct stage *stage);
	struct wf_env *env;
	struct weft_session *session;
	struct weft_table *table; /* VOCABULARY keys */
	struct weft_table *other; /* any keys */
	enum weft_status start;
	char start_text[512];
	char wrong[512]; /* "": nothing */
};

#define EXPECT(stage, condition) stage_expect(stage, condition, __LINE__, #condition)
#define EXPECT_FAIL(stage, call, status, text)                                                     \
	stage_expect_fail(stage, (call), (status), (text), __LINE__)

void stage_expect(struct stage *stage, bool condition, int line, const char *what);
void stage_expect_fail(struct stage *stage, enum weft_status got, enum weft_status want,
		       const char *text, int line);
/* A table of DIM values, sgd with rate 0.5. */
void stage_table_opts(const char *name, struct weft_table_opts *opts);
/* Two lanes that do nothing wrong, and a trainer that does `run`. */
void stage_set(struct stage *stage, void (*run)(struct stage *stage));
void stage_play(struct stage *stage);
/* Everything is well up to `run`. */
void stage_play_well(struct stage *stage);
