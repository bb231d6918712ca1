/* SPDX-License-Identifier: Apache-2.0 */
/* counted: a job whose every value can be computed: trainers count their pushes in a tensor and in
 * the rows of a table, and sum gradients of their own in another tensor, whose bits depend on the
 * order of the sum. After each step a trainer compares what it has received: each push counts once,
 * each step changes a slice once, no slice has values of two versions, and sums have the bits of
 * the computation without a fabric. Thread: one. */
#pragma once

#include "tests/cluster/killed.h"
#include "tests/support/crew.h"
#include "weft/sparse.h"
#include "weft/weft.h"

#define COUNTED_STEPS_MAX 40u
#define COUNTED_FLOATS_MAX 400u

enum counted_mode {
	COUNTED_SYNC,
	COUNTED_ASYNC,
	COUNTED_BOUNDED,
	COUNTED_SPARSE,    /* a table besides, all synchronous */
	COUNTED_SNAPSHOTS, /* synchronous, one job in eight with a table; with snapshots */
	COUNTED_MODES,
};

/* How a trainer ended. */
struct counted_end {
	bool returned; /* else it was killed */
	bool trained;  /* all steps, and the end of the pass */
	enum weft_status status;
	char text[256];
};

struct counted {
	/* The test's. */
	struct crew crew;
	struct killed job; /* snapshots; dir "": none */
	enum counted_mode mode;
	uint32_t floats;    /* of each tensor */
	uint32_t staleness; /* BOUNDED */
	uint32_t steps[CREW_TRAINERS_MAX];

	/* What happens in a run. */
	uint32_t pushed[CREW_TRAINERS_MAX]; /* steps that it has begun to push */
	struct counted_end end[CREW_TRAINERS_MAX];
};

/* A job of this mode. */
void counted_draw(struct wf_rng *rng, uint64_t seed, enum counted_mode mode, struct counted *out);
/* Before each run of it. */
void counted_reset(struct counted *run);
