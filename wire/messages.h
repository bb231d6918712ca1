/* SPDX-License-Identifier: Apache-2.0 */
/* messages: the bodies of the messages between trainer and lane, and their heads.
 *
 * Each message has one struct, one encode and one decode. encode fills head and body for
 * wf_op; decode takes what a MSG event delivers and returns WEFT_PROTOCOL, naming message, field
 * and value, for anything the struct's comments do not allow, unread bytes included. Arrays are
 * decoded into the caller's struct: nothing is allocated.
 *
 * type     service  from     head fields used         body
 * JOB      dense    trainer  offset                   total, bytes of the encoded job
 * RESUME   dense    lane     step, epoch              flags, first, count, last steps received
 * HAVE     dense    trainer  step                     flags, first, count, last steps answered
 * GRANT    dense    both     -                        kind, geometry and key
 * CREDIT   dense    lane     -                        slots that were released early
 * STEP     dense    trainer  step, epoch              samples, flags, pass, cost
 * PULL     dense    trainer  request_id, step, slice  section, count
 * NACK     dense    lane     request_id, slice        status, reason
 * GOODBYE  control  both     -                        flags
 * ABORT    control  both     step                     status, who, reason
 * REDUCE   control  trainer  request_id, step         values
 * REDUCED  control  lane     request_id, step         values
 *
 * Fields of the head that a message does not use are 0 and refused when not; version, body_bytes,
 * flags and CRCs are the transport's. Flags of a message stand in its body. Byte tables and rules:
 * wire/README.md. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/head.h"
#include "wire/hello.h"

enum wf_dense_type {
	WF_MSG_JOB = 1,
	WF_MSG_RESUME = 2,
	WF_MSG_HAVE = 3,
	WF_MSG_GRANT = 4,
	WF_MSG_CREDIT = 5,
	WF_MSG_STEP = 6,
	WF_MSG_PULL = 7,
	WF_MSG_NACK = 8,
	WF_MSG_INIT = 9,
};

enum wf_control_type {
	WF_MSG_GOODBYE = 1,
	WF_MSG_ABORT = 2,
	WF_MSG_REDUCE = 3,
	WF_MSG_REDUCED = 4,
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

/* RESUME: per slice of the lane (by on_lane ordinal) the last step received; HAVE: the last step
 * answered. Several messages cover all slices, in order; the last has `last` set. `none` stands for
 * "nothing yet, not even the initial values". */
#define WF_STEP_NONE UINT64_MAX

struct wf_msg_steps {
	uint64_t step;  /* RESUME: last STEP message received from this trainer, or WF_STEP_NONE;
			 * HAVE: last step begun, or WF_STEP_NONE */
	uint64_t epoch; /* RESUME */
	bool last;
	bool initialised; /* RESUME: the lane has all initial values */
	uint32_t first;   /* ordinal of step_of[0]; first + count <= WF_SLICE_COUNT_MAX */
	uint32_t count;   /* 0..WF_STEPS_PER_MSG */
	uint64_t step_of[WF_STEPS_PER_MSG];
};

#define WF_MSG_KEY_BYTES 32
#define WF_GRANT_SLOT_COUNT_MAX 1024 /* so that one CREDIT can name every slot */

enum wf_grant_wire {
	WF_GRANT_WIRE_SLOTS = 1,  /* lane: where gradients may be put */
	WF_GRANT_WIRE_VALUES = 2, /* trainer: parameters, laid out as the job's tensors */
	WF_GRANT_WIRE_STATE = 3,  /* trainer: one array of optimizer state, same layout */
};

/* slot id of a slice's push: on_lane * slot_count + buffer; of a place: on_lane. */
struct wf_msg_grant {
	uint8_t kind;
	uint8_t state_idx;   /* STATE: which array; else 0 */
	uint32_t slot_count; /* SLOTS; a power of two <= WF_GRANT_SLOT_COUNT_MAX; else 0 */
	uint64_t slot_bytes; /* SLOTS: of one, <= WF_SLICE_BYTES_MAX; VALUES, STATE: of the whole
			      * range; never 0 */
	uint8_t key[WF_MSG_KEY_BYTES];
};

#define WF_CREDITS_PER_MSG 1024

/* Slots whose bytes were copied aside; they may be PUT into again before the slice is answered. */
struct wf_msg_credit {
	uint32_t count;                      /* 1..WF_CREDITS_PER_MSG */
	uint16_t buffer[WF_CREDITS_PER_MSG]; /* each < WF_GRANT_SLOT_COUNT_MAX */
};

enum wf_step_flag {
	WF_STEP_OUT_OF_DATA = 1 << 0, /* no push from this step to the end of the pass */
};

#define WF_STEP_SAMPLES_MAX (1ull << 40) /* so that no sum over trainers overflows */

/* Once per step, trainer and lane, before the first PUT of the step on that connection. */
struct wf_msg_step {
	uint64_t step; /* not WF_STEP_NONE */
	uint64_t epoch;
	uint64_t samples; /* in this trainer's share of the step; <= WF_STEP_SAMPLES_MAX; 0 with
			   * OUT_OF_DATA and only then */
	uint32_t pass;
	uint32_t flags;
	double cost; /* summed over the samples; for logs only, so any bits are taken */
};

enum wf_section {
	WF_SECTION_VALUES = 0,
	WF_SECTION_STATE = 1, /* + state_idx */
};

/* Ask for `count` slices from ordinal `first`, as they are once `step` has been applied. Answered
 * by one PUT each, tag = (ordinal, step that was applied), into the VALUES or STATE grant. */
struct wf_msg_pull {
	uint64_t request_id;
	uint64_t step;  /* not WF_STEP_NONE; 0: as soon as there are values */
	uint32_t first; /* ordinal on the lane; first + count <= WF_SLICE_COUNT_MAX */
	uint32_t count; /* > 0 */
	uint8_t section;
	uint8_t state_idx; /* STATE: below the optimizer's number of state arrays; else 0 */
};

/* Trainer 0, before it PUTs the first initial values of a job that goes on: after `step` steps over
 * `samples` samples. Each slice then comes as `sections` PUTs, values first, then each array of
 * state; the slice waits for them as for steps 0 - (sections - 1) .. 0, modulo 2^64, and then for
 * step + 1. Without INIT: step 0, samples 0, one section. */
struct wf_msg_init {
	uint64_t step;
	uint64_t samples;
	uint32_t sections; /* 1..WF_SECTIONS_MAX */
};

#define WF_SECTIONS_MAX 16

/* The lane will not do what was asked. */
struct wf_msg_nack {
	uint64_t request_id;
	uint32_t first;
	uint16_t status; /* enum weft_status, neither OK nor AGAIN */
	char reason[WF_REASON_BYTES];
};

struct wf_msg_goodbye {
	bool ack; /* false: I am done; true: heard, and in turn: heard that you heard */
};

/* The job is over; everybody shows `reason`, the first cause. */
struct wf_msg_abort {
	uint16_t status;                /* enum weft_status, neither OK nor AGAIN */
	uint64_t step;                  /* where the sender was; WF_STEP_NONE: not even begun */
	char who[WF_MEMBER_NAME_BYTES]; /* "trainer 1", "pserver 0": who found it */
	char reason[WF_REASON_BYTES];
};

#define WF_REDUCE_MAX 256 /* values; 0: a barrier */

/* request_id counts a trainer's reductions from 1; all trainers make the same ones in the same
 * order. The answer is the sum in trainer order, and the highest step any trainer has begun. */
struct wf_msg_reduce {
	uint64_t request_id; /* never 0 */
	uint64_t step; /* REDUCE: last step begun by the sender; REDUCED: highest of all; 0: none
			* yet; not WF_STEP_NONE */
	uint32_t count;
	double value[WF_REDUCE_MAX]; /* any bits; NaN is the application's business */
};

/* Counts above their limit are the caller's error and asserted. Characters of texts that are not
 * printable ASCII are sent as '?'. */
void wf_msg_job_encode(const struct wf_msg_job *in, struct wf_msg *out);
void wf_msg_resume_encode(const struct wf_msg_steps *in, struct wf_msg *out);
void wf_msg_have_encode(const struct wf_msg_steps *in, struct wf_msg *out);
void wf_msg_grant_encode(const struct wf_msg_grant *in, struct wf_msg *out);
void wf_msg_credit_encode(const struct wf_msg_credit *in, struct wf_msg *out);
void wf_msg_step_encode(const struct wf_msg_step *in, struct wf_msg *out);
void wf_msg_pull_encode(const struct wf_msg_pull *in, struct wf_msg *out);
void wf_msg_nack_encode(const struct wf_msg_nack *in, struct wf_msg *out);
void wf_msg_init_encode(const struct wf_msg_init *in, struct wf_msg *out);
void wf_msg_goodbye_encode(const struct wf_msg_goodbye *in, struct wf_msg *out);
void wf_msg_abort_encode(const struct wf_msg_abort *in, struct wf_msg *out);
void wf_msg_reduce_encode(const struct wf_msg_reduce *in, struct wf_msg *out);
void wf_msg_reduced_encode(const struct wf_msg_reduce *in, struct wf_msg *out);

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
enum weft_status wf_msg_goodbye_decode(const struct wf_head *head, const uint8_t *body,
				       struct wf_msg_goodbye *out) WEFT_MUST_CHECK;
enum weft_status wf_msg_abort_decode(const struct wf_head *head, const uint8_t *body,
				     struct wf_msg_abort *out) WEFT_MUST_CHECK;
enum weft_status wf_msg_reduce_decode(const struct wf_head *head, const uint8_t *body,
				      struct wf_msg_reduce *out) WEFT_MUST_CHECK;
enum weft_status wf_msg_reduced_decode(const struct wf_head *head, const uint8_t *body,
				       struct wf_msg_reduce *out) WEFT_MUST_CHECK;
