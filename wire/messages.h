/* SPDX-License-Identifier: Apache-2.0 */
/* messages: the bodies of the messages between trainer and lane, and their heads.
 *
 * Each message has one struct, one encode function and one decode function. encode fills in head
 * and body for a wf_op. decode reads what a MSG event delivers; for anything that the struct's
 * comments do not allow, unread bytes included, it returns WEFT_PROTOCOL, and the text names
 * message, field and value. Arrays are decoded into the caller's struct: nothing is allocated.
 *
 * type     service  from     head fields used         body
 * JOB      dense    trainer  offset                   total, bytes of the encoded job
 * STEP     dense    trainer  step, epoch              samples, flags, pass, cost
 * PULL     dense    trainer  request_id, step, slice  section, count
 * NACK     dense    lane     request_id, slice        status, reason
 * NORM     dense    both     step                     sum of squares
 * ANNOUNCE dense    trainer  step                     slices that are ready to be pushed
 * ALLOW    dense    lane     step                     announced slices that may be pushed now
 * CHANGE   dense    trainer  step                     numbers of optimizers that change in the step
 * POSITION dense    both     step                     how far a trainer has come in its data
 * REPORT   dense    trainer  request_id               a trainer to report about, or the job
 * REPORTED dense    lane     request_id               what the lane knows about it
 * TRACE    dense    lane     request_id               record, go on, or stop and send
 * TRACED   dense    trainer  request_id               events that were recorded
 * GOODBYE  control  both     -                        flags
 * ABORT    control  both     step                     status, who, reason
 * REDUCE   control  trainer  request_id, step         values
 * REDUCED  control  lane     request_id, step         values
 * BEAT     control  both     -                        flags, pid
 * ABSENT   control  lane     -                        trainer, silent_ns, reason
 * RESUME   control  lane     step, epoch              flags, first, count, last steps received
 * HAVE     control  trainer  step                     flags, first, count, last steps answered
 * GRANT    control  both     -                        kind, geometry and key
 * CREDIT   control  lane     -                        slots that were released early
 *
 * Fields of the head that a message does not use are 0, and refused if they are not; version,
 * body_bytes, flags and CRCs belong to the transport. Flags of a message are in its body. Tables of
 * bytes, and rules: wire/protocol.md. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/trace.h"
#include "wire/head.h"
#include "wire/hello.h"
#include "wire/little.h"

enum wf_dense_type {
	WF_MSG_JOB = 1, /* 2 to 5 were used by version 1 of the wire */
	WF_MSG_STEP = 6,
	WF_MSG_PULL = 7,
	WF_MSG_NACK = 8,
	WF_MSG_INIT = 9,
	WF_MSG_NORM = 10,
	WF_MSG_ANNOUNCE = 11,
	WF_MSG_ALLOW = 12,
	WF_MSG_REPORT = 13,
	WF_MSG_REPORTED = 14,
	WF_MSG_CHANGE = 15,
	WF_MSG_POSITION = 16,
	WF_MSG_TRACE = 17,
	WF_MSG_TRACED = 18,
};

enum wf_control_type {
	WF_MSG_GOODBYE = 1,
	WF_MSG_ABORT = 2,
	WF_MSG_REDUCE = 3,
	WF_MSG_REDUCED = 4,
	WF_MSG_BEAT = 5,
	WF_MSG_ABSENT = 6,
	WF_MSG_RESUME = 7,
	WF_MSG_HAVE = 8,
	WF_MSG_GRANT = 9,
	WF_MSG_CREDIT = 10,
};

/* Encoded message, ready for WF_OP_SEND. */
struct wf_msg {
	struct wf_head head;
	size_t body_bytes;
	uint8_t body[WF_MSG_BODY_MAX];
};

#define WF_JOB_PART_MAX (WF_MSG_BODY_MAX - 16)

/* A piece of the encoded job. */
struct wf_msg_job {
	uint64_t offset;      /* of the piece */
	uint64_t total_bytes; /* of the job; <= WF_JOB_BYTES_MAX */
	const uint8_t *bytes; /* decode: points into the body */
	size_t byte_count;    /* 1..WF_JOB_PART_MAX; offset + byte_count <= total_bytes */
};

#define WF_STEPS_PER_MSG 500

/* RESUME and HAVE: how far a lane and a trainer have come with each unit, when a path begins. A
 * dense lane has one unit for each of its slices, by ordinal; a sparse lane has one unit, the push.
 * RESUME has the last step that the lane received or, for a push of rows, applied. HAVE has the
 * last step that was answered. Several messages cover all units, in order; the last has `last` set.
 * WF_STEP_NONE means "nothing yet, not even the initial values". */
#define WF_STEP_NONE UINT64_MAX

struct wf_msg_steps {
	uint64_t step;  /* RESUME: the last step that this trainer has joined (STEP), or pushed
			 * completely (PUSH); HAVE: the last step begun; 0 or WF_STEP_NONE: none */
	uint64_t epoch; /* RESUME */
	bool last;
	bool initialised; /* RESUME: the lane has all initial values; always true for a sparse lane
			   */
	uint32_t first;   /* ordinal of step_of[0]; first + count <= WF_SLICE_COUNT_MAX */
	uint32_t count;   /* 0..WF_STEPS_PER_MSG */
	uint64_t step_of[WF_STEPS_PER_MSG];
};

#define WF_MSG_KEY_BYTES 32
#define WF_GRANT_SLOT_COUNT_MAX 1024 /* one CREDIT can then name every slot */
#define WF_PLACE_BYTES_MAX (1ull << 58)

enum wf_grant_wire {
	WF_GRANT_WIRE_SLOTS = 1, /* lane: slots for pushes and for keys of pulls */
	WF_GRANT_WIRE_PLACE = 2, /* trainer: a range for answers */
};

/* Bit in the tag of an answer, in an asynchronous mode: the push came too late and was not applied.
 * The values are fresh all the same. Ordinals do not use this bit (WF_SLICE_COUNT_MAX). */
#define WF_TAG_DISCARDED (1u << 31)

/* The slot id of a tag is ordinal * slot_count + slot for the push of a slice, and the ordinal for
 * an answer. For parts of rows: wire/sparse_messages.h. */
static inline uint32_t
wf_answer_ordinal(uint32_t tag)
{
	return wf_tag_slot(tag & ~WF_TAG_DISCARDED);
}

struct wf_msg_grant {
	uint8_t kind;   /* enum wf_grant_wire */
	uint8_t place;  /* PLACE: 0: parameters, laid out as the job's tensors, or rows; 1 + i:
			 * array i of optimizer state, laid out as the parameters; SLOTS: 0 */
	bool announced; /* SLOTS: pushes of steps have to be announced, and are PUT when allowed */
	uint32_t slot_count; /* SLOTS: a power of two <= WF_GRANT_SLOT_COUNT_MAX; PLACE: 0 */
	uint64_t bytes;      /* SLOTS: of one slot, <= WF_SLICE_BYTES_MAX; PLACE: of the range, <=
			      * WF_PLACE_BYTES_MAX; never 0 */
	/* SLOTS: the most bytes that the lane holds for one trainer outside the slots: parts of an
	 * unfinished push, and keys of unanswered pulls. At least the bytes of a slot, at most
	 * WF_PLACE_BYTES_MAX; 0: the lane holds none of these. PLACE: 0. */
	uint64_t held_bytes;
	uint8_t key[WF_MSG_KEY_BYTES];
};

#define WF_CREDITS_PER_MSG 1024

/* Slots that are free again before their contents are answered, because the lane has copied them or
 * does not need them. */
struct wf_msg_credit {
	uint32_t count;                      /* 1..WF_CREDITS_PER_MSG */
	uint16_t buffer[WF_CREDITS_PER_MSG]; /* each < WF_GRANT_SLOT_COUNT_MAX */
};

#define WF_RUNS_PER_MSG 500

/* Consecutive slices of a lane, by ordinal. */
struct wf_run {
	uint32_t first; /* first + count <= WF_SLICE_COUNT_MAX */
	uint32_t count; /* never 0 */
};

/* For slots that were granted with `announced`. ANNOUNCE: slices whose gradients of `step` are
 * ready, after STEP, in the order in which they became ready; it is forgotten with the connection.
 * ALLOW: those of them that may be PUT now. */
struct wf_msg_runs {
	uint64_t step;  /* neither 0 nor WF_STEP_NONE */
	uint32_t count; /* 1..WF_RUNS_PER_MSG */
	struct wf_run run[WF_RUNS_PER_MSG];
};

/* Appends a slice. Returns false if there is no room for another run. */
static inline bool
wf_runs_add(struct wf_msg_runs *runs, uint32_t ordinal)
{
	struct wf_run *last = runs->count > 0 ? &runs->run[runs->count - 1] : NULL;
	if (last != NULL && last->first + last->count == ordinal) {
		last->count++;
		return true;
	}
	if (runs->count == WF_RUNS_PER_MSG) {
		return false;
	}
	runs->run[runs->count++] = (struct wf_run){.first = ordinal, .count = 1};
	return true;
}

#define WF_CHANGES_PER_MSG 250

/* A number of a tensor's optimizer that has another value from a step on. */
struct wf_change {
	uint32_t tensor; /* of the job; below WF_TENSOR_COUNT_MAX */
	uint32_t number; /* enum wf_number of kernels/numbers.h */
	double value;    /* any bits */
};

/* The order in which they travel. */
static inline bool
wf_change_is_before(const struct wf_change *a, const struct wf_change *b)
{
	return a->tensor != b->tensor ? a->tensor < b->tensor : a->number < b->number;
}

/* CHANGE: sent before the STEP of `step`, on the same connection; several messages if there are
 * more. */
struct wf_msg_changes {
	uint64_t step;  /* neither 0 nor WF_STEP_NONE */
	uint32_t count; /* 1..WF_CHANGES_PER_MSG */
	struct wf_change change[WF_CHANGES_PER_MSG];
};

#define WF_POSITION_PASS_BYTES 4
#define WF_POSITION_BYTES_MAX (WF_POSITION_PASS_BYTES + 256)

/* POSITION: where a trainer's data is. From a trainer to lane 0 of pserver 0, before the STEP of
 * `step` on the same connection: with its share of that step its data is at this position. From
 * that lane, before RESUME, to a trainer that has made no step of a job that began with a state
 * which the lanes had: the trainer's position in that state. The first bytes are a pass (u32, as in
 * STEP; a lane sends the highest of all trainers), the others the program's own. */
struct wf_msg_position {
	uint64_t step;                        /* not above INT64_MAX; 0: there is none */
	uint32_t count;                       /* 0..WF_POSITION_BYTES_MAX */
	uint8_t bytes[WF_POSITION_BYTES_MAX]; /* [count] */
};

/* Its pass; 0: none. */
static inline uint32_t
wf_position_pass(const struct wf_msg_position *position)
{
	return position->count >= WF_POSITION_PASS_BYTES ? wf_load_u32(position->bytes) : 0;
}

enum wf_step_flag {
	WF_STEP_OUT_OF_DATA = 1 << 0, /* no push from this step to the end of the pass */
};

#define WF_STEP_SAMPLES_MAX (1ull << 40) /* no sum over trainers can overflow then */

/* STEP: sent once per step, trainer and lane, before the first PUT of the step on that connection.
 */
struct wf_msg_step {
	uint64_t step; /* not WF_STEP_NONE */
	uint64_t epoch;
	uint64_t samples; /* in this trainer's share of the step; <= WF_STEP_SAMPLES_MAX; 0 if and
			   * only if OUT_OF_DATA is set */
	uint32_t pass;
	uint32_t flags;
	double cost; /* summed over the samples; only for logs, so any bits are accepted */
	/* The time from the previous answers to the last push, in the sender's step before this
	 * one; 0: not measured. Only for logs. */
	uint64_t compute_ns;
};

enum wf_section {
	WF_SECTION_VALUES = 0,
	WF_SECTION_STATE = 1, /* + state_idx */
};

/* PULL: asks for `count` slices from ordinal `first` on, as they are once `step` has been applied.
 * Each is answered by one PUT into the place of the section; its tag is the ordinal and the step
 * that was applied. */
struct wf_msg_pull {
	uint64_t request_id;
	uint64_t step;  /* not WF_STEP_NONE; 0: as soon as there are values */
	uint32_t first; /* ordinal on the lane; first + count <= WF_SLICE_COUNT_MAX */
	uint32_t count; /* > 0 */
	uint8_t section;
	uint8_t state_idx; /* STATE: below the optimizer's number of state arrays; else 0 */
};

/* INIT: sent by trainer 0 before it PUTs the first initial values of a job that continues after
 * `step` steps over `samples` samples. Each slice is then sent as `sections` PUTs: its values, and
 * then each array of state. The lane treats them as the steps 0 - (sections - 1) .. 0, modulo 2^64,
 * of the slice, after which it expects step + 1. Without INIT: step 0, samples 0, one section. The
 * lane sends it to each trainer on each path: after RESUME where the values came from trainer 0;
 * before RESUME where the job began with a state that the lane had, so that nobody sends values. */
struct wf_msg_init {
	uint64_t step; /* at most WF_INIT_STEP_MAX */
	uint64_t samples;
	uint32_t sections; /* 1..WF_SECTIONS_MAX */
};

/* No later step can reach 2^63; numbers from there on stand for sections. */
#define WF_INIT_STEP_MAX ((1ull << 62) - 1)
#define WF_SECTIONS_MAX 16

/* NACK: the lane refuses a request. */
struct wf_msg_nack {
	uint64_t request_id;
	uint32_t first;
	uint16_t status; /* enum weft_status, neither OK nor AGAIN */
	char reason[WF_REASON_BYTES];
};

#define WF_NORM_WIRE_WORDS 11

/* NORM: the exact sum of the squares of the step's summed gradients (struct wf_norm of
 * kernels/norm.h). A lane sends that of its slices, once all pushes of the step have arrived; a
 * trainer sends the sum over all lanes. */
struct wf_msg_norm {
	uint64_t step; /* neither 0 nor WF_STEP_NONE */
	uint64_t word[WF_NORM_WIRE_WORDS];
};

/* What a lane knows about a trainer since the job began: sums, except for the last one. A lane that
 * does not measure times reports 0. */
enum wf_report_value {
	WF_REPORT_STEPS,           /* steps of the lane in which arrivals were compared */
	WF_REPORT_APPLY_NS,        /* in these, from the last arrival to the end */
	WF_REPORT_LAST,            /* those of them in which the trainer arrived last */
	WF_REPORT_BEHIND_NEXT_NS,  /* in those, how long after the trainer before it */
	WF_REPORT_BEHIND_FIRST_NS, /* and how long after the first trainer */
	WF_REPORT_SPLIT,           /* its steps whose time is known by parts: the next two */
	WF_REPORT_COMPUTE_NS,
	WF_REPORT_NETWORK_NS,
	WF_REPORT_APPLIED,   /* slices of its pushes that were applied on arrival */
	WF_REPORT_DISCARDED, /* or were discarded */
	WF_REPORT_LAG_SUM,   /* the lag of all of these */
	WF_REPORT_LAG_MAX,
	WF_REPORT_VALUES,
};

/* In the place of a trainer: the job. The values, of which the others are 0: */
#define WF_REPORT_OF_JOB UINT32_MAX
enum wf_report_job_value {
	/* Steps of all trainers that the lane has applied; 0 where each trainer has its own. */
	WF_REPORT_JOB_STEPS,
	WF_REPORT_JOB_SAMPLES, /* of all trainers in these */
};

/* REPORT: a trainer asks what the lane knows about a trainer. REPORTED: the answer. */
struct wf_msg_report {
	uint64_t request_id;              /* never 0 */
	uint32_t trainer;                 /* or WF_REPORT_OF_JOB */
	uint64_t value[WF_REPORT_VALUES]; /* REPORTED only */
};

/* TRACE: lane 0 of a pserver asks a trainer to record what it does, as long as `stops` is false,
 * and then to send what it has recorded, once. It is repeated while the trainer records, and says
 * each time what the lane's clock shows. */
struct wf_msg_trace {
	uint64_t request_id; /* of the recording; never 0 */
	uint64_t clock_ns;   /* the lane's, when the message was made */
	bool stops;
};

#define WF_TRACED_MAX 125 /* events of a message */

/* TRACED: a part of what a trainer has recorded, in order. Without events: it records from now on,
 * or, with `last`, it has recorded nothing. */
struct wf_msg_traced {
	uint64_t request_id; /* never 0 */
	uint64_t dropped;    /* events that the ring did not keep */
	uint32_t total;      /* of all messages; at most WF_TRACE_EVENTS */
	uint32_t count;      /* at most WF_TRACED_MAX, and `total` */
	bool last;
	struct wf_trace_event event[WF_TRACED_MAX];
};

struct wf_msg_goodbye {
	bool ack;    /* false: the sender is done; true: acknowledges the other end's, or its ack */
	bool leaves; /* without ack: the trainer leaves, and the job goes on */
};

/* ABORT: the job is over; every member shows `reason`, the first cause. */
struct wf_msg_abort {
	uint16_t status;                /* enum weft_status, neither OK nor AGAIN */
	uint64_t step;                  /* where the sender was; WF_STEP_NONE: it had not begun */
	char who[WF_MEMBER_NAME_BYTES]; /* the member that found it: "trainer 1", "pserver 0" */
	char reason[WF_REASON_BYTES];
};

/* ABSENT: why a trainer that the job waits for is not connected, or that it takes no turns. */
struct wf_msg_absent {
	uint32_t trainer;
	uint64_t silent_ns; /* how long it has taken no turns when this was sent; below 2^63; 0: it
			     * is not connected */
	/* "refused: ...", or "(host nodea, pid 12) has not taken a turn". "" with silent_ns 0: no
	 * trainer is absent any more. */
	char reason[WF_REASON_BYTES];
};

#define WF_REDUCE_MAX 256 /* values; 0: a barrier */

/* REDUCE and REDUCED. request_id counts a trainer's reductions from 1; all trainers make the same
 * ones in the same order. The answer has the sum in trainer order, and the highest step that any
 * trainer has begun. */
struct wf_msg_reduce {
	uint64_t request_id; /* never 0 */
	uint64_t step; /* REDUCE: the last step that the sender has begun; REDUCED: the highest of
			* all; 0: none yet; not WF_STEP_NONE */
	uint32_t count;
	double value[WF_REDUCE_MAX]; /* any bits, NaN included */
};

/* BEAT: the sender takes turns. */
struct wf_msg_beat {
	bool asks;    /* it wants a BEAT of the receiver */
	bool itself;  /* a thread of its own takes turns; false: only its caller does */
	uint32_t pid; /* for texts */
};

/* Counts above their limit are asserted. Characters of texts that are not printable ASCII are sent
 * as
 * '?'. */
void wf_msg_job_encode(const struct wf_msg_job *in, struct wf_msg *out);
void wf_msg_resume_encode(const struct wf_msg_steps *in, struct wf_msg *out);
void wf_msg_have_encode(const struct wf_msg_steps *in, struct wf_msg *out);
void wf_msg_grant_encode(const struct wf_msg_grant *in, struct wf_msg *out);
void wf_msg_credit_encode(const struct wf_msg_credit *in, struct wf_msg *out);
void wf_msg_step_encode(const struct wf_msg_step *in, struct wf_msg *out);
void wf_msg_pull_encode(const struct wf_msg_pull *in, struct wf_msg *out);
void wf_msg_nack_encode(const struct wf_msg_nack *in, struct wf_msg *out);
void wf_msg_init_encode(const struct wf_msg_init *in, struct wf_msg *out);
void wf_msg_norm_encode(const struct wf_msg_norm *in, struct wf_msg *out);
void wf_msg_announce_encode(const struct wf_msg_runs *in, struct wf_msg *out);
void wf_msg_report_encode(const struct wf_msg_report *in, struct wf_msg *out);
void wf_msg_reported_encode(const struct wf_msg_report *in, struct wf_msg *out);
void wf_msg_change_encode(const struct wf_msg_changes *in, struct wf_msg *out);
void wf_msg_position_encode(const struct wf_msg_position *in, struct wf_msg *out);
void wf_msg_allow_encode(const struct wf_msg_runs *in, struct wf_msg *out);
void wf_msg_trace_encode(const struct wf_msg_trace *in, struct wf_msg *out);
void wf_msg_traced_encode(const struct wf_msg_traced *in, struct wf_msg *out);
void wf_msg_goodbye_encode(const struct wf_msg_goodbye *in, struct wf_msg *out);
void wf_msg_abort_encode(const struct wf_msg_abort *in, struct wf_msg *out);
void wf_msg_reduce_encode(const struct wf_msg_reduce *in, struct wf_msg *out);
void wf_msg_reduced_encode(const struct wf_msg_reduce *in, struct wf_msg *out);
void wf_msg_beat_encode(const struct wf_msg_beat *in, struct wf_msg *out);
void wf_msg_absent_encode(const struct wf_msg_absent *in, struct wf_msg *out);

/* `head` and `body` as in a MSG event; head->body_bytes is the body's length. `out` is written on
 * WEFT_OK only. */
enum weft_status wf_msg_job_decode(const struct wf_head *head, const uint8_t *body,
				   struct wf_msg_job *out) WEFT_MUST_CHECK;
enum weft_status wf_msg_resume_decode(const struct wf_head *head, const uint8_t *body,
				      struct wf_msg_steps *out) WEFT_MUST_CHECK;
enum weft_status wf_msg_have_decode(const struct wf_head *head, const uint8_t *body,
				    struct wf_msg_steps *out) WEFT_MUST_CHECK;
enum weft_status wf_msg_grant_decode(const struct wf_head *head, const uint8_t *body,
				     struct wf_msg_grant *out) WEFT_MUST_CHECK;
enum weft_status wf_msg_credit_decode(const struct wf_head *head, const uint8_t *body,
				      struct wf_msg_credit *out) WEFT_MUST_CHECK;
enum weft_status wf_msg_step_decode(const struct wf_head *head, const uint8_t *body,
				    struct wf_msg_step *out) WEFT_MUST_CHECK;
enum weft_status wf_msg_pull_decode(const struct wf_head *head, const uint8_t *body,
				    struct wf_msg_pull *out) WEFT_MUST_CHECK;
enum weft_status wf_msg_nack_decode(const struct wf_head *head, const uint8_t *body,
				    struct wf_msg_nack *out) WEFT_MUST_CHECK;
enum weft_status wf_msg_init_decode(const struct wf_head *head, const uint8_t *body,
				    struct wf_msg_init *out) WEFT_MUST_CHECK;
enum weft_status wf_msg_norm_decode(const struct wf_head *head, const uint8_t *body,
				    struct wf_msg_norm *out) WEFT_MUST_CHECK;
enum weft_status wf_msg_report_decode(const struct wf_head *head, const uint8_t *body,
				      struct wf_msg_report *out) WEFT_MUST_CHECK;
enum weft_status wf_msg_reported_decode(const struct wf_head *head, const uint8_t *body,
					struct wf_msg_report *out) WEFT_MUST_CHECK;
enum weft_status wf_msg_announce_decode(const struct wf_head *head, const uint8_t *body,
					struct wf_msg_runs *out) WEFT_MUST_CHECK;
enum weft_status wf_msg_allow_decode(const struct wf_head *head, const uint8_t *body,
				     struct wf_msg_runs *out) WEFT_MUST_CHECK;
enum weft_status wf_msg_change_decode(const struct wf_head *head, const uint8_t *body,
				      struct wf_msg_changes *out) WEFT_MUST_CHECK;
enum weft_status wf_msg_position_decode(const struct wf_head *head, const uint8_t *body,
					struct wf_msg_position *out) WEFT_MUST_CHECK;
enum weft_status wf_msg_trace_decode(const struct wf_head *head, const uint8_t *body,
				     struct wf_msg_trace *out) WEFT_MUST_CHECK;
enum weft_status wf_msg_traced_decode(const struct wf_head *head, const uint8_t *body,
				      struct wf_msg_traced *out) WEFT_MUST_CHECK;
enum weft_status wf_msg_goodbye_decode(const struct wf_head *head, const uint8_t *body,
				       struct wf_msg_goodbye *out) WEFT_MUST_CHECK;
enum weft_status wf_msg_abort_decode(const struct wf_head *head, const uint8_t *body,
				     struct wf_msg_abort *out) WEFT_MUST_CHECK;
enum weft_status wf_msg_reduce_decode(const struct wf_head *head, const uint8_t *body,
				      struct wf_msg_reduce *out) WEFT_MUST_CHECK;
enum weft_status wf_msg_reduced_decode(const struct wf_head *head, const uint8_t *body,
				       struct wf_msg_reduce *out) WEFT_MUST_CHECK;
enum weft_status wf_msg_beat_decode(const struct wf_head *head, const uint8_t *body,
				    struct wf_msg_beat *out) WEFT_MUST_CHECK;
enum weft_status wf_msg_absent_decode(const struct wf_head *head, const uint8_t *body,
				      struct wf_msg_absent *out) WEFT_MUST_CHECK;
