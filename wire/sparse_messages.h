/* SPDX-License-Identifier: Apache-2.0 */
/* sparse_messages: the bodies of the messages between a trainer and a sparse lane, and their heads.
 * What they are for, step by step: sparse/exchange.md. The messages of the control
 * service, GRANT, CREDIT, RESUME and HAVE among them, are those of wire/messages.h; so are the
 * rules of encode and decode.
 *
 * type     from     head fields used         body
 * TABLE    trainer  slice                    one table of the job, and how many there are
 * PUSH     trainer  step, epoch              samples, flags, pass, parts; their PUTs follow
 * PULL     trainer  request_id, step         flags, parts; their PUTs follow
 * APPLIED  lane     step                     the outcome of the step
 * NACK     lane     request_id, step, slice  status, reason
 * FETCH    trainer  request_id, step, slice  cursor and room; a run is PUT there
 * RESTORE  trainer  request_id, step, slice  samples, bytes; a run follows as one PUT, if any
 * RESTORED lane     request_id               rows that were restored
 * CHANGED  lane     request_id, step, slice  rows of a part of a PULL, sent ahead, that changed */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/keys.h"
#include "wire/messages.h"
#include "wire/table_run.h"
#include "wire/tables.h"

enum wf_sparse_type {
	WF_SPARSE_TABLE = 1, /* 2 to 5 were used by version 1 of the wire */
	WF_SPARSE_PUSH = 6,
	WF_SPARSE_PULL = 7,
	WF_SPARSE_APPLIED = 8,
	WF_SPARSE_NACK = 9,
	WF_SPARSE_FETCH = 10,
	WF_SPARSE_RESTORE = 11,
	WF_SPARSE_RESTORED = 12,
	WF_SPARSE_CHANGED = 13,
};

/* TABLE: sent if WELCOME asks for the job: all tables, in order. */
struct wf_sparse_table {
	uint32_t idx;         /* of this one; < table_count */
	uint32_t table_count; /* 1..WF_TABLE_COUNT_MAX; the same in each */
	uint8_t grad_reduce;  /* enum weft_grad_reduce; the same in each */
	uint8_t nonfinite;    /* 0: the job ends; 1: skipped; the same in each */
	/* Enum weft_sparse_mode; the same in each, as are the next two: struct wf_tables. */
	uint8_t mode;
	uint32_t staleness;
	double discard_ratio;
	struct wf_table_desc table;
};

/* A part: keys of one table for one lane, with their rows if there are any; it fits a slot. The
 * lane's slot holds in this order: for a PUSH the gradient rows, then (for a table with scores)
 * show and click, f32 each; then, for both, the keys. */
struct wf_sparse_part {
	uint16_t table;     /* < WF_TABLE_COUNT_MAX */
	uint8_t coding;     /* of the keys: enum wf_key_coding; not ANY in a PUSH */
	uint32_t row_count; /* 1..WF_SPARSE_ROWS_MAX */
	uint32_t key_bytes; /* RAW, ANY: 8 a key; DELTA: 1 a key or more, fewer than 8 */
	uint64_t offset;    /* PULL: of the first row in the range granted; PUSH: 0 */
};

#define WF_SPARSE_PARTS_MAX 192u      /* of one message; a part has 8 bits of a tag */
#define WF_SPARSE_ROWS_MAX (1u << 20) /* of one message, over its parts */
#define WF_SPARSE_RANGE_MAX WF_PLACE_BYTES_MAX

enum wf_sparse_push_flag {
	WF_SPARSE_PUSH_LAST = 1 << 0,        /* no more parts of this step */
	WF_SPARSE_PUSH_OUT_OF_DATA = 1 << 1, /* no push from this step to the end of the pass */
	/* The first lane's verdict on its lag, at most one of the two; without it this lane judges.
	 */
	WF_SPARSE_PUSH_APPLY = 1 << 2,
	WF_SPARSE_PUSH_DROP = 1 << 3,
};

#define WF_SPARSE_PUSH_VERDICT ((uint32_t)WF_SPARSE_PUSH_APPLY | WF_SPARSE_PUSH_DROP)

/* PUSH: what a trainer has for a step. Each sparse lane gets one, without parts if it owns none of
 * the keys; several only if the parts do not fit into one. samples, pass and OUT_OF_DATA are the
 * same in each. */
struct wf_sparse_push {
	uint64_t step; /* not 0, not WF_STEP_NONE */
	uint64_t epoch;
	/* In this trainer's share of the step, 1..WF_STEP_SAMPLES_MAX; 0 if and only if OUT_OF_DATA
	 * is set. */
	uint64_t samples;
	uint32_t flags; /* OUT_OF_DATA only with LAST */
	uint32_t pass;
	uint32_t part_count; /* 0 only with LAST, and always with OUT_OF_DATA */
	struct wf_sparse_part part[WF_SPARSE_PARTS_MAX];
};

static inline uint32_t
wf_sparse_push_verdict(const struct wf_sparse_push *push)
{
	return push->flags & WF_SPARSE_PUSH_VERDICT;
}

enum wf_sparse_pull_flag {
	WF_SPARSE_PULL_CREATE = 1 << 0, /* keys without a row get one, if the table admits them */
	/* The lane may send parts ahead, as their rows are before the step, and correct them. */
	WF_SPARSE_PULL_AHEAD = 1 << 1,
};

/* PULL: asks for rows as they are once `step` has been applied. */
struct wf_sparse_pull {
	uint64_t request_id; /* counts a trainer's pulls of this lane from 1; never 0 */
	uint64_t step;       /* not WF_STEP_NONE; 0: as soon as there are tables */
	uint32_t flags;
	uint32_t part_count; /* 1..WF_SPARSE_PARTS_MAX */
	struct wf_sparse_part part[WF_SPARSE_PARTS_MAX];
};

/* APPLIED: the step is applied on this lane, and the push of the next may follow. Counts are those
 * of the lane for the step, over all tables and trainers. */
struct wf_sparse_applied {
	uint64_t step;    /* not 0, not WF_STEP_NONE */
	uint64_t samples; /* of all trainers */
	uint64_t rows_updated;
	uint64_t pushes_lost;     /* (key, gradient) pairs dropped for lack of memory */
	uint64_t grads_nonfinite; /* elements */
	bool dropped;             /* asynchronous: this push was dropped for its lag */
};

/* NACK: the lane refuses a request. */
struct wf_sparse_nack {
	uint64_t request_id; /* of a PULL; 0: a PUSH */
	uint64_t step;       /* of the PULL or PUSH */
	uint32_t part;       /* ordinal in its message; < WF_SPARSE_PARTS_MAX */
	uint16_t status;     /* enum weft_status, neither OK nor AGAIN */
	char reason[WF_REASON_BYTES];
};

/* FETCH: asks for rows with all of their state, as they are after `step`. */
struct wf_sparse_fetch {
	uint64_t request_id;
	uint64_t step;  /* the last one applied; not WF_STEP_NONE */
	uint32_t table; /* < WF_TABLE_COUNT_MAX */
	uint32_t pass;  /* the pass of the next push */
	struct wf_run_cursor from;
	uint32_t bytes;  /* room for head and sections, WF_RUN_BYTES_MIN..WF_RUN_BYTES_MAX */
	uint64_t offset; /* offset of that room in the range granted */
};

/* RESTORE: before the first step: continue as a lane that has applied `step`, with these rows. */
struct wf_sparse_restore {
	uint64_t request_id;
	uint64_t step;    /* not WF_STEP_NONE; 0: the job begins with these rows */
	uint64_t samples; /* of all steps up to it, at most INT64_MAX */
	/* The step to which the rows' stamps refer; in a synchronous job: step. */
	uint64_t table_step;
	uint32_t table; /* < WF_TABLE_COUNT_MAX */
	uint32_t bytes; /* of the sections in the PUT that follows; 0: none follows */
};

struct wf_sparse_restored {
	uint64_t request_id;
	uint64_t rows;
};

#define WF_RUN_BYTES_MIN 128u
#define WF_RUN_BYTES_MAX (1u << 16)
#define WF_SPARSE_FETCH_PART 255u /* the part in the tag of a fetched run */

/* CHANGED: rows of a part that was sent ahead, which may differ after the step. The message with
 * `last` ends the part: all other rows of it are as they were sent. */
#define WF_SPARSE_CHANGED_MAX 256u

struct wf_sparse_changed {
	uint64_t request_id; /* of the PULL, not 0 */
	uint64_t step;       /* the step of the PULL, which is applied; not 0, not WF_STEP_NONE */
	uint32_t part;       /* ordinal in its message; < WF_SPARSE_PARTS_MAX */
	bool last;
	uint32_t row_count; /* 0 only with `last` */
	uint32_t row_bytes; /* of one row, as in a PUT; 1..WF_SPARSE_CHANGED_BYTES_MAX */
	uint32_t row[WF_SPARSE_CHANGED_MAX]; /* which rows of the part, ascending */
	const uint8_t *values; /* [row_count * row_bytes]; decoded: within the body, lent with it */
};

#define WF_SPARSE_CHANGED_FIXED_BYTES 9u
#define WF_SPARSE_CHANGED_BYTES_MAX                                                                \
	(WF_MSG_BODY_MAX - WF_SPARSE_CHANGED_FIXED_BYTES - sizeof(uint32_t))

/* How many rows of so many bytes fit a CHANGED: 0 if a single one does not. */
static inline uint32_t
wf_sparse_changed_most(uint64_t row_bytes)
{
	const uint64_t room = WF_MSG_BODY_MAX - WF_SPARSE_CHANGED_FIXED_BYTES;
	const uint64_t most = room / (sizeof(uint32_t) + row_bytes);
	return most < WF_SPARSE_CHANGED_MAX ? (uint32_t)most : WF_SPARSE_CHANGED_MAX;
}

/* Tags. To a lane: any free buffer, the part's ordinal in its message, the message's step. */
static inline uint32_t
wf_sparse_put_tag(uint32_t part, uint32_t slot_count, uint32_t buffer, uint64_t step)
{
	return wf_tag(part * slot_count + buffer, step);
}

/* To a trainer: the request's low 16 bits, the part's ordinal, the step that was applied: that of
 * the PULL, or, of a part that is sent ahead, the one before it. */
static inline uint32_t
wf_sparse_answer_tag(uint64_t request_id, uint32_t part, uint64_t step)
{
	return wf_tag((uint32_t)(request_id & 0xffff) << 8 | part, step);
}

void wf_sparse_table_encode(const struct wf_sparse_table *in, struct wf_msg *out);
void wf_sparse_push_encode(const struct wf_sparse_push *in, struct wf_msg *out);
void wf_sparse_pull_encode(const struct wf_sparse_pull *in, struct wf_msg *out);
void wf_sparse_applied_encode(const struct wf_sparse_applied *in, struct wf_msg *out);
void wf_sparse_nack_encode(const struct wf_sparse_nack *in, struct wf_msg *out);
void wf_sparse_fetch_encode(const struct wf_sparse_fetch *in, struct wf_msg *out);
void wf_sparse_restore_encode(const struct wf_sparse_restore *in, struct wf_msg *out);
void wf_sparse_restored_encode(const struct wf_sparse_restored *in, struct wf_msg *out);
void wf_sparse_changed_encode(const struct wf_sparse_changed *in, struct wf_msg *out);

enum weft_status wf_sparse_table_decode(const struct wf_head *head, const uint8_t *body,
					struct wf_sparse_table *out) WEFT_MUST_CHECK;
enum weft_status wf_sparse_push_decode(const struct wf_head *head, const uint8_t *body,
				       struct wf_sparse_push *out) WEFT_MUST_CHECK;
enum weft_status wf_sparse_pull_decode(const struct wf_head *head, const uint8_t *body,
				       struct wf_sparse_pull *out) WEFT_MUST_CHECK;
enum weft_status wf_sparse_applied_decode(const struct wf_head *head, const uint8_t *body,
					  struct wf_sparse_applied *out) WEFT_MUST_CHECK;
enum weft_status wf_sparse_nack_decode(const struct wf_head *head, const uint8_t *body,
				       struct wf_sparse_nack *out) WEFT_MUST_CHECK;
enum weft_status wf_sparse_fetch_decode(const struct wf_head *head, const uint8_t *body,
					struct wf_sparse_fetch *out) WEFT_MUST_CHECK;
enum weft_status wf_sparse_restore_decode(const struct wf_head *head, const uint8_t *body,
					  struct wf_sparse_restore *out) WEFT_MUST_CHECK;
enum weft_status wf_sparse_restored_decode(const struct wf_head *head, const uint8_t *body,
					   struct wf_sparse_restored *out) WEFT_MUST_CHECK;
enum weft_status wf_sparse_changed_decode(const struct wf_head *head, const uint8_t *body,
					  struct wf_sparse_changed *out) WEFT_MUST_CHECK;
