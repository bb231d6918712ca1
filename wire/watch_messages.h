/* SPDX-License-Identifier: Apache-2.0 */
/* watch_messages: what a pserver tells of itself and of its job to whoever may ask: records, and
 * the messages of the WATCH service that carry them.
 *
 * A watcher is a connection to lane 0 of a pserver, which is no member of the job. It sends ASK;
 * the lane answers with RECORDs and one END, all with the request_id of the question, before it
 * reads the next one. A new kind of question needs no new message: it has a number, two arguments,
 * and records of kinds of its own.
 *
 * type   from     head fields used  body
 * ASK    watcher  request_id        question, two arguments
 * RECORD lane     request_id        kind, lane, number, values, texts
 * END    lane     request_id        records sent, status, reason
 *
 * A record is numbers and texts; its kind says how many, and an enum below what each is. Times are
 * nanoseconds; those that end in AT_NS are of the pserver's clock, which only another such time can
 * be compared with. Counters begin with the process. Thread: any; pure functions. */
#pragma once

#include <stdint.h>

#include "wire/messages.h"

enum wf_watch_message {
	WF_WATCH_ASK = 1,
	WF_WATCH_RECORD = 2,
	WF_WATCH_END = 3,
};

enum wf_watch_question {
	WF_WATCH_STATUS = 1, /* every record below; no arguments */
	/* What all members do in the next steps: WF_WATCH_TRACED records, when they have been
	 * recorded; none as long as they have not, so it is asked again. Arguments: steps and a
	 * flag; a number that the watcher has chosen for this recording. */
	WF_WATCH_TRACE = 2,
};

enum wf_watch_kind {
	WF_WATCH_PSERVER = 1,
	WF_WATCH_LANE = 2,
	WF_WATCH_MEMBER = 3, /* one trainer, as one lane sees it */
	WF_WATCH_TABLE = 4,  /* one table, on one lane */
	WF_WATCH_NEWS = 5,   /* something has become of a trainer, or of the job */
	WF_WATCH_TRACED = 6, /* a part of what one lane or trainer has done; not of the status */
};
#define WF_WATCH_KIND_MAX WF_WATCH_TRACED

#define WF_WATCH_BUCKETS 16u /* of times of steps; the last one is without end */
#define WF_WATCH_HOT_KEYS 8u

enum wf_watch_pserver {
	WF_PSERVER_AT_NS,
	WF_PSERVER_START_AT_NS,
	WF_PSERVER_PID,
	WF_PSERVER_DENSE_LANES,
	WF_PSERVER_SPARSE_LANES,
	WF_PSERVER_PORT, /* of lane 0 */
	WF_PSERVER_IDX,  /* in its job */
	WF_PSERVER_COUNT,
	WF_PSERVER_HAS_SNAPSHOTS,  /* it takes snapshots */
	WF_PSERVER_SNAPSHOT_COUNT, /* written since the start, as far as this pserver knows */
	WF_PSERVER_SNAPSHOT_FAILED_COUNT,
	WF_PSERVER_SNAPSHOT_STEP,  /* the newest; 0: none yet */
	WF_PSERVER_SNAPSHOT_AT_NS, /* when it was complete */
	WF_PSERVER_VALUES,
};
enum wf_watch_pserver_text {
	WF_PSERVER_VERSION,
	WF_PSERVER_HOST,
	WF_PSERVER_TEXTS,
};

enum wf_watch_job {
	WF_WATCH_JOB_NONE, /* no trainer has come */
	WF_WATCH_JOB_RUNNING,
	WF_WATCH_JOB_FINISHED,
	WF_WATCH_JOB_FAILED,
};

enum wf_watch_lane {
	WF_WLANE_AT_NS, /* when this was true */
	WF_WLANE_JOB,   /* enum wf_watch_job */
	WF_WLANE_IS_SPARSE,
	WF_WLANE_PORT,
	WF_WLANE_JOB_NS, /* age of the job; 0: there is none */
	WF_WLANE_TRAINERS,
	WF_WLANE_TRAINERS_UP,
	WF_WLANE_TRAINERS_LOST,
	WF_WLANE_TRAINERS_GONE,
	WF_WLANE_MEMBERS, /* records of trainers; the others are only counted */
	WF_WLANE_TABLES,  /* records of tables */
	WF_WLANE_NEWS, /* news of the job since the lane was first asked; the last ones are kept */
	WF_WLANE_STEP, /* the last one applied; of the foremost trainer where each has its own */
	WF_WLANE_PASS,
	WF_WLANE_SAMPLES,
	WF_WLANE_IS_TIMED, /* times are measured */
	/* For how long it has waited: for trainers to come, for what others push before answers may
	 * go, for gradients of the step, for a reduce or a barrier. 0: it does not. */
	WF_WLANE_WAIT_START_NS,
	WF_WLANE_WAIT_HOLDS_NS,
	WF_WLANE_WAIT_STEP_NS,
	WF_WLANE_WAIT_REDUCE_NS,
	WF_WLANE_SPLIT_STEPS,    /* steps whose time was split */
	WF_WLANE_SPLIT_APPLY_NS, /* of them, from the last gradient to the end; a sum */
	WF_WLANE_STEP_P50_NS,    /* from the first STEP of a step to the end, since the start */
	WF_WLANE_STEP_P99_NS,
	WF_WLANE_STEP_SUM_NS, /* of all steps timed, within 1 % */
	WF_WLANE_BUCKET,      /* steps up to wf_watch_bucket_ns(i): WF_WATCH_BUCKETS sums */
	WF_WLANE_BUCKET_LAST = WF_WLANE_BUCKET + WF_WATCH_BUCKETS - 1,
	WF_WLANE_STEPS, /* counters from here on, unless they are marked as gauges */
	WF_WLANE_SLICES_APPLIED,
	WF_WLANE_SLICES_DISCARDED,
	WF_WLANE_NONFINITE,
	WF_WLANE_RECEIVED_BYTES,
	WF_WLANE_SENT_BYTES,
	WF_WLANE_MESSAGES_RECEIVED,
	WF_WLANE_MESSAGES_SENT,
	WF_WLANE_PUTS_RECEIVED,
	WF_WLANE_PUTS_SENT,
	WF_WLANE_SLOTS_USED,    /* gauge */
	WF_WLANE_SLOTS_GRANTED, /* gauge */
	WF_WLANE_SLOT_BYTES,    /* gauge: windows */
	WF_WLANE_SHARD_BYTES,   /* gauge: parameters and state, or tables */
	WF_WLANE_PARK_BYTES,    /* gauge: gradients copied aside */
	WF_WLANE_PARK_PEAK_BYTES,
	WF_WLANE_SLICES_PARKED,
	WF_WLANE_PARKED_BYTES,
	WF_WLANE_WAITS_TRAINER,
	WF_WLANE_WAITS_LENT,
	WF_WLANE_WAITS_POST,
	WF_WLANE_WAITS_ANNOUNCE,
	WF_WLANE_WAITS_INBOX,
	WF_WLANE_WAITS_SNAPSHOT,
	WF_WLANE_RECONNECTS,
	WF_WLANE_REFUSED,
	WF_WLANE_STRANGERS,
	WF_WLANE_POLL_NS, /* the thread's time; 0 without times */
	WF_WLANE_IDLE_NS,
	WF_WLANE_APPLY_NS,
	WF_WLANE_PARK_NS,
	WF_WLANE_STRAGGLER_NS, /* steps waited so long for their last trainer */
	WF_WLANE_GATHER_NS,
	WF_WLANE_KEYS_PULLED,
	WF_WLANE_KEYS_PUSHED,
	WF_WLANE_ROWS_UPDATED,
	WF_WLANE_PULLS_HELD,
	WF_WLANE_PUSHES_DISCARDED,
	WF_WLANE_PULLS_REFUSED,
	WF_WLANE_VALUES,
};
enum wf_watch_lane_text {
	WF_WLANE_WAIT,     /* "step 7 waits for trainer 1"; "": it waits for nothing */
	WF_WLANE_CAUSE,    /* with which its job has failed; "": it has not */
	WF_WLANE_STRANGER, /* the last connection that was closed before a valid hello */
	WF_WLANE_TEXTS,
};

enum wf_watch_state {
	WF_WATCH_ABSENT, /* it has not come */
	WF_WATCH_UP,
	WF_WATCH_LOST, /* its connection is gone, and it has time to come back */
	WF_WATCH_GONE, /* it has said goodbye */
};

/* Bits: in which ways the lane waits for a trainer. */
enum wf_watch_wait {
	WF_WATCH_WAIT_START = 1 << 0,
	WF_WATCH_WAIT_HOLDS = 1 << 1,
	WF_WATCH_WAIT_STEP = 1 << 2,
	WF_WATCH_WAIT_REDUCE = 1 << 3,
};

enum wf_watch_member {
	WF_MEMBER_STATE, /* enum wf_watch_state */
	WF_MEMBER_PID,
	WF_MEMBER_STEP, /* the last one that it has announced */
	WF_MEMBER_PASS,
	WF_MEMBER_SAMPLES, /* of that step */
	WF_MEMBER_IS_OUT,  /* of data, in this pass */
	WF_MEMBER_WAITS,   /* enum wf_watch_wait */
	WF_MEMBER_SILENT_NS,
	WF_MEMBER_PATH,      /* how many connections of it the lane has seen, this one included */
	WF_MEMBER_SLOTS,     /* of its window that hold gradients */
	WF_MEMBER_LEFT_NS,   /* LOST: time that it has to come back */
	WF_MEMBER_LAST,      /* steps in which it was the last to arrive */
	WF_MEMBER_NEXT_NS,   /* of these, after the one before it; a sum, as all that follow */
	WF_MEMBER_FIRST_NS,  /* and after the first one */
	WF_MEMBER_ARRIVED,   /* steps with the next two: */
	WF_MEMBER_ARRIVE_NS, /* from the end of the step before to its last gradient */
	WF_MEMBER_AHEAD_NS,  /* from that to the last gradient of the last trainer */
	WF_MEMBER_SPLIT,     /* steps with the next two, which are what ARRIVE_NS is made of: */
	WF_MEMBER_COMPUTE_NS,
	WF_MEMBER_NETWORK_NS,
	WF_MEMBER_VALUES,
};
enum wf_watch_member_text {
	WF_MEMBER_HOST,
	WF_MEMBER_PATH_NAME, /* "shm" */
	WF_MEMBER_PATH_WHY,
	WF_MEMBER_NOTE, /* why it is lost, or not here, or what it lacks */
	WF_MEMBER_TEXTS,
};

enum wf_watch_table {
	WF_TAB_ROWS,  /* gauge, as the next two */
	WF_TAB_BYTES, /* of memory */
	WF_TAB_ROW_BYTES,
	WF_TAB_BORN,
	WF_TAB_REFUSED,
	WF_TAB_EVICTED,
	WF_TAB_LOOKED_UP,
	WF_TAB_MISSED,
	WF_TAB_PUSHED,
	WF_TAB_UPDATED,
	WF_TAB_UNADMITTED,
	WF_TAB_LOST,
	WF_TAB_ZIPF_MILLI, /* exponent of the law of its keys, x 1,000; UINT64_MAX: not known */
	WF_TAB_HOT_COUNT,  /* keys that follow */
	WF_TAB_HOT_KEY,
	WF_TAB_HOT_KEY_LAST = WF_TAB_HOT_KEY + WF_WATCH_HOT_KEYS - 1,
	WF_TAB_HOT_TIMES, /* about how many times each was asked for */
	WF_TAB_HOT_TIMES_LAST = WF_TAB_HOT_TIMES + WF_WATCH_HOT_KEYS - 1,
	WF_TAB_VALUES,
};
enum wf_watch_table_text {
	WF_TAB_NAME,
	WF_TAB_TEXTS,
};

enum wf_watch_what {
	WF_NEWS_JOB_BEGAN,
	WF_NEWS_JOB_ENDED, /* well */
	WF_NEWS_JOB_FAILED,
	WF_NEWS_JOINED,
	WF_NEWS_LOST,
	WF_NEWS_BACK,
	WF_NEWS_LEFT,
	WF_NEWS_COUNT,
};

enum wf_watch_news {
	WF_NEWS_NUMBER, /* of all, from 1 */
	WF_NEWS_AT_NS,
	WF_NEWS_WHAT, /* enum wf_watch_what */
	WF_NEWS_TRAINER,
	WF_NEWS_VALUES,
};
enum wf_watch_news_text {
	WF_NEWS_HOST, /* of the trainer; "": of the job */
	WF_NEWS_WHY,
	WF_NEWS_TEXTS,
};

/* The first argument of WF_WATCH_TRACE. */
#define WF_WATCH_TRACE_STEPS 0xffffffffull
#define WF_WATCH_TRACE_TRAINERS (1ull << 32) /* of trainers too, not only of this pserver */

#define WF_WATCH_TRACE_EVENTS 20u /* of a record, at most */
#define WF_WATCH_TRACE_WORDS 4u /* of an event: at_ns; value; step, slice << 32; peer, what << 32 */

/* `lane`: the lane's number; `idx`: the trainer's. Records of one member follow each other. */
enum wf_watch_traced {
	WF_WTRACE_IS_TRAINER,
	WF_WTRACE_PSERVER, /* number of the pserver in its job */
	WF_WTRACE_TOTAL,   /* events of this member */
	WF_WTRACE_DROPPED, /* older ones, which its ring did not keep */
	WF_WTRACE_COUNT,   /* of this record */
	WF_WTRACE_EVENT,
	WF_WTRACE_VALUES = WF_WTRACE_EVENT + WF_WATCH_TRACE_EVENTS * WF_WATCH_TRACE_WORDS,
};
enum wf_watch_traced_text {
	WF_WTRACE_HOST, /* of a trainer */
	WF_WTRACE_TEXTS,
};

#define WF_WATCH_VALUES_MAX 88u
#define WF_WATCH_TEXTS_MAX 4u

/* Whole words, so that it can be published under a sequence lock. */
struct wf_watch_record {
	uint64_t kind; /* enum wf_watch_kind */
	uint64_t lane; /* below WF_LANE_COUNT_MAX; 0 for the pserver's own */
	uint64_t idx;  /* of the trainer, the table, or 0; below 2^32 */
	uint64_t value[WF_WATCH_VALUES_MAX];
	char text[WF_WATCH_TEXTS_MAX][WF_REASON_BYTES];
};
#define WF_WATCH_RECORD_WORDS (sizeof(struct wf_watch_record) / sizeof(uint64_t))

struct wf_watch_ask {
	uint64_t request_id; /* above 0 */
	uint16_t question;   /* enum wf_watch_question */
	uint64_t argument[2];
};

struct wf_watch_answer {
	uint64_t request_id; /* above 0 */
	struct wf_watch_record record;
};

struct wf_watch_end {
	uint64_t request_id; /* above 0 */
	uint64_t count;      /* of RECORDs */
	uint16_t status;     /* enum weft_status; WEFT_OK: that was everything */
	char reason[WF_REASON_BYTES];
};

/* The values and texts of a record of that kind. */
unsigned wf_watch_value_count(uint64_t kind);
unsigned wf_watch_text_count(uint64_t kind);
/* The longest time of a step in that bucket; UINT64_MAX of the last one. */
uint64_t wf_watch_bucket_ns(unsigned bucket);

/* The rules of encode and decode are those of wire/messages.h. An ASK of a question that is not
 * known is decoded, and answered with an END that says so. */
void wf_watch_ask_encode(const struct wf_watch_ask *in, struct wf_msg *out);
void wf_watch_answer_encode(const struct wf_watch_answer *in, struct wf_msg *out);
void wf_watch_end_encode(const struct wf_watch_end *in, struct wf_msg *out);
enum weft_status wf_watch_ask_decode(const struct wf_head *head, const uint8_t *body,
				     struct wf_watch_ask *out) WEFT_MUST_CHECK;
enum weft_status wf_watch_answer_decode(const struct wf_head *head, const uint8_t *body,
					struct wf_watch_answer *out) WEFT_MUST_CHECK;
enum weft_status wf_watch_end_decode(const struct wf_head *head, const uint8_t *body,
				     struct wf_watch_end *out) WEFT_MUST_CHECK;
