/* SPDX-License-Identifier: Apache-2.0 */
/* fake_lane: a scripted pserver for tests of the client: a dense lane without tensors, and sparse
 * lanes over tables, in a simulated process. It follows sparse/exchange.md, as simply as possible,
 * and makes the mistakes that a script selects. Thread: the world's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"
#include "base/status.h"

#define FAKE_TRAINERS_MAX 4u
#define FAKE_LANES_MAX 8u
#define FAKE_PORT 7164u
/* What each lane reports of each step, whatever happened. */
#define FAKE_ROWS_UPDATED 7u
#define FAKE_PUSHES_LOST 3u
#define FAKE_GRADS_NONFINITE 2u
#define FAKE_COUNTERS 8u
#define FAKE_COUNTER_FIRST 300u /* of them; each is one more than the last */

enum fake_wrong {
	FAKE_RIGHT,
	FAKE_NACKS_KEY,        /* a pull of `key` */
	FAKE_NACKS_AT_HEAD,    /* every second pull, before its parts have arrived */
	FAKE_NACKS_PUSH,       /* the push of step `step` */
	FAKE_CREDITS_TWICE,    /* a buffer that is free already */
	FAKE_ANSWERS_TWICE,    /* the first part of a pull */
	FAKE_ANSWERS_OLD_STEP, /* with the tag of another step */
	FAKE_ANSWERS_SHORT,    /* one byte less than its rows */
	FAKE_CHANGES_UNASKED,  /* CHANGED of a part that was not sent ahead */
	FAKE_CHANGES_BEYOND,   /* CHANGED of a row behind the last one of its part */
	FAKE_CHANGES_NARROW,   /* with rows of other lengths */
	FAKE_CHANGES_OTHER,    /* with another step than that of its pull */
	FAKE_AHEAD_TWICE,      /* a part that was sent ahead, once more */
	FAKE_AHEAD_ANEW,       /* the same, the second time as of its step */
	FAKE_APPLIES_UNASKED,  /* APPLIED of a step without a push */
	FAKE_RESUMES_AHEAD,    /* RESUME with a step that was not begun */
	FAKE_SMALL_SLOTS,      /* 128 bytes */
	FAKE_SAYS_NONSENSE,    /* a message of a type that does not exist */
	FAKE_GRANTS_TWICE,
	FAKE_HOLDS_NOTHING,    /* GRANT without bytes to be held */
	FAKE_ANNOUNCES,        /* GRANT with pushes announced, as tensors may have */
	FAKE_RESUMES_IN_PARTS, /* RESUME of two units */
	FAKE_NACKS_CALLS,      /* FETCH and RESTORE */
	FAKE_FETCHES_NONSENSE, /* FETCH is answered with bytes of 1 */
	FAKE_FETCHES_SHORT,    /* with less than its head announces */
	FAKE_FETCHES_COUNTERS, /* nothing wrong: no rows, and counters of its first partition */
	FAKE_RESTORES_ANOTHER, /* RESTORED of another request */
	FAKE_KEEPS_SILENT,     /* FETCH and RESTORE are not answered */
};

struct fake_opts {
	uint32_t pserver_idx, trainers, lanes; /* lanes: sparse ones */
	uint32_t slot_count;
	uint64_t slot_bytes, held_bytes;
	bool credits_early; /* buffers of pulls are given back before the answer */
	enum fake_wrong wrong;
	uint64_t key, step; /* of the wrong */
};

/* What it has received, over all its sparse lanes. */
struct fake_seen {
	uint64_t pulls, pushes, empty_pushes, outs, tables_told;
	uint64_t steps_applied;
	uint64_t rows_pulled, rows_pushed;
	uint64_t delta_parts, raw_parts;
	uint64_t digest;     /* over all rows in order of lanes and keys, when it ended */
	uint32_t parts_most; /* of one message */
	bool ended_well;     /* every trainer had sent GOODBYE */
};

/* Serve one job until `stop` is set. */
void fake_pserver(struct wf_env *env, const struct fake_opts *opts, const bool *stop,
		  struct fake_seen *seen);
