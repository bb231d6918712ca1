/* SPDX-License-Identifier: Apache-2.0 */
/* registry_messages: the bodies of the messages between the registrar, which is lane 0 of pserver
 * 0, and the other pservers of a job, and their heads. What they are for: docs/model/rollback.md.
 * The rules of encode and decode are those of wire/messages.h; no message uses a field of the head.
 *
 * type     from       body
 * JOIN     pserver    where it stands; the first message on each connection
 * LOAD     registrar  the epoch that is to begin, and the snapshot it begins with
 * LOADED   pserver    all parts of that are in its memory
 * BAD      pserver    it cannot be loaded, and the reason
 * RUN      registrar  the epoch has begun
 * SNAPSHOT registrar  the border of the next snapshot, and that on which it builds
 * PART     pserver    the part of one lane is durable
 * FAILED   pserver    it has no parts of that border, and the reason
 * LOST     pserver    it has lost a trainer, or one leaves, and the reason
 * MEMBER   registrar  a trainer leaves or joins: report where your lanes stand and hold; then from
 *                     which step on
 * STANDS   pserver    where its lanes stand
 * SETTLED  pserver    its lanes have that step
 * COMES    pserver    a process asks for the empty place of a trainer
 */
#pragma once

#include <stdint.h>

#include "wire/job.h"
#include "wire/messages.h"

enum wf_registry_message {
	WF_REGISTRY_JOIN = 1,
	WF_REGISTRY_LOAD = 2,
	WF_REGISTRY_LOADED = 3,
	WF_REGISTRY_BAD = 4,
	WF_REGISTRY_RUN = 5,
	WF_REGISTRY_SNAPSHOT = 6,
	WF_REGISTRY_PART = 7,
	WF_REGISTRY_FAILED = 8,
	WF_REGISTRY_LOST = 9,
	WF_REGISTRY_MEMBER = 10,
	WF_REGISTRY_STANDS = 11,
	WF_REGISTRY_SETTLED = 12,
	WF_REGISTRY_COMES = 13,
};

/* Every epoch and every step is below 2^63; an epoch is 1 or more where 0 is not allowed. */

/* A snapshot; both 0: none. An epoch begins with one of a lower epoch. */
struct wf_registry_id {
	uint64_t epoch, step;
};

struct wf_registry_join {
	uint64_t serves;              /* the epoch in which the pserver serves; 0: none */
	uint64_t loaded_epoch;        /* the epoch for which it has loaded; 0: none */
	struct wf_registry_id loaded; /* what it has loaded for that epoch */
	uint32_t dense_lanes;         /* of the pserver, 1..WF_PSERVER_LANES_MAX */
	uint32_t sparse_lanes;        /* likewise, one fewer at most */
};

struct wf_registry_load {
	uint64_t epoch;
	struct wf_registry_id base;
	uint32_t crc; /* CRC32C of the manifest of the base; 0 without a base */
};

struct wf_registry_loaded {
	uint64_t epoch;
	struct wf_registry_id base;
};

struct wf_registry_bad {
	uint64_t epoch;
	struct wf_registry_id base;
	char reason[WF_REASON_BYTES]; /* not empty */
};

struct wf_registry_run {
	uint64_t epoch;
	struct wf_registry_id base;
	uint64_t samples; /* of all steps up to the base, at most INT64_MAX */
};

struct wf_registry_snapshot {
	uint64_t epoch;
	uint64_t border; /* 1 or more */
	uint64_t base;   /* border of the snapshot of which it is a delta, below it; 0: complete */
};

#define WF_REGISTRY_ROWS_MAX 256u /* tables of one PART */
/* Rows that a lane can have of one table: the sum over all lanes of a job stays below 2^63. */
#define WF_REGISTRY_TABLE_ROWS_MAX ((1ull << 47) - 1)

/* PART: one for a dense lane. Those of a sparse lane cover its tables in order, and differ in
 * `first`, `count` and `rows` only; without tables there is one, too. */
struct wf_registry_part {
	uint64_t epoch;
	uint64_t border;      /* 1 or more */
	uint64_t bytes;       /* of the part's file, 1..INT64_MAX */
	uint32_t crc;         /* CRC32C of the file */
	uint32_t lane;        /* among the service's lanes of all pservers; < WF_LANE_COUNT_MAX */
	uint8_t service;      /* WF_SERVICE_DENSE or WF_SERVICE_SPARSE */
	uint16_t table_count; /* in the part, at most WF_TABLE_COUNT_MAX; dense: 0 */
	uint16_t first;       /* the table of rows[0]; < table_count, or 0 */
	uint16_t count;       /* 1..WF_REGISTRY_ROWS_MAX; 0 without tables */
	uint64_t rows[WF_REGISTRY_ROWS_MAX]; /* [count], at most WF_REGISTRY_TABLE_ROWS_MAX each */
};

struct wf_registry_failed {
	uint64_t epoch;
	uint64_t border;              /* 1 or more */
	char reason[WF_REASON_BYTES]; /* not empty */
};

#define WF_REGISTRY_LOST_WILLING 0x01u /* it leaves on purpose, and all its steps are answered */

struct wf_registry_lost {
	uint64_t incarnation;         /* of the trainer's process, not 0 */
	uint32_t trainer;             /* < WF_TRAINER_COUNT_MAX */
	uint32_t flags;               /* WF_REGISTRY_LOST_... */
	char reason[WF_REASON_BYTES]; /* not empty */
};

struct wf_registry_comes {
	uint64_t incarnation; /* of the trainer's process, not 0 */
	uint32_t trainer;     /* < WF_TRAINER_COUNT_MAX */
};

#define WF_REGISTRY_MEMBER_HALF 0x01u  /* lanes have applied step `border` with it, others cannot */
#define WF_REGISTRY_MEMBER_ALONE 0x02u /* and nobody else takes part in that step */
#define WF_REGISTRY_MEMBER_WILLING 0x04u /* it leaves on purpose */
#define WF_REGISTRY_MEMBER_JOINS 0x08u   /* it joins; otherwise it leaves or is dropped */

/* One change of the members. */
struct wf_registry_member {
	uint64_t change;      /* its number, from 1 */
	uint64_t incarnation; /* of the trainer's process, not 0 */
	/* The first step without it, or, JOINS, with it, then 2 or more; 0: not known yet, report
	 * where you stand. */
	uint64_t border;
	uint64_t applied; /* the highest step that a lane has applied; 0 with border 0 */
	/* HALF: its samples of step `border`; JOINS, with a border: the samples of all steps before
	 * it; at most INT64_MAX. Else 0. */
	uint64_t samples;
	uint32_t trainer; /* < WF_TRAINER_COUNT_MAX */
	/* WF_REGISTRY_MEMBER_...; ALONE only with HALF, both only with a border; JOINS alone. */
	uint32_t flags;
};

#define WF_REGISTRY_STANDS_READY 0x01u   /* the job has begun on all lanes that have it */
#define WF_REGISTRY_STANDS_COUNTED 0x02u /* the trainer is counted in step `applied` */
#define WF_REGISTRY_STANDS_ALONE 0x04u   /* and nobody else is */
#define WF_REGISTRY_STANDS_SHARED 0x08u  /* a lane has steps that all trainers make together */

struct wf_registry_stands {
	uint64_t change;
	uint64_t applied;  /* the highest step that a lane has applied, or a part of it */
	uint64_t received; /* the lowest step of the trainer that a lane has received whole */
	uint64_t samples;  /* COUNTED: its samples of step `applied`, at most INT64_MAX; else 0 */
	uint64_t total;    /* of all trainers, of the steps up to `applied`; at most INT64_MAX */
	uint64_t highest;  /* the highest step that a trainer has begun which counts its own */
	uint32_t flags;    /* WF_REGISTRY_STANDS_... */
	char where[WF_REASON_BYTES]; /* COUNTED: the lanes that have counted it; else empty */
};

struct wf_registry_settled {
	uint64_t change;
};

/* The fields must be in the ranges above. Texts are cut, and sent with '?' for what cannot be
 * shown. */
void wf_registry_join_encode(const struct wf_registry_join *in, struct wf_msg *out);
void wf_registry_load_encode(const struct wf_registry_load *in, struct wf_msg *out);
void wf_registry_loaded_encode(const struct wf_registry_loaded *in, struct wf_msg *out);
void wf_registry_bad_encode(const struct wf_registry_bad *in, struct wf_msg *out);
void wf_registry_run_encode(const struct wf_registry_run *in, struct wf_msg *out);
void wf_registry_snapshot_encode(const struct wf_registry_snapshot *in, struct wf_msg *out);
void wf_registry_part_encode(const struct wf_registry_part *in, struct wf_msg *out);
void wf_registry_failed_encode(const struct wf_registry_failed *in, struct wf_msg *out);

void wf_registry_lost_encode(const struct wf_registry_lost *in, struct wf_msg *out);
void wf_registry_member_encode(const struct wf_registry_member *in, struct wf_msg *out);
void wf_registry_stands_encode(const struct wf_registry_stands *in, struct wf_msg *out);
void wf_registry_settled_encode(const struct wf_registry_settled *in, struct wf_msg *out);
void wf_registry_comes_encode(const struct wf_registry_comes *in, struct wf_msg *out);

enum weft_status wf_registry_join_decode(const struct wf_head *head, const uint8_t *body,
					 struct wf_registry_join *out) WEFT_MUST_CHECK;
enum weft_status wf_registry_load_decode(const struct wf_head *head, const uint8_t *body,
					 struct wf_registry_load *out) WEFT_MUST_CHECK;
enum weft_status wf_registry_loaded_decode(const struct wf_head *head, const uint8_t *body,
					   struct wf_registry_loaded *out) WEFT_MUST_CHECK;
enum weft_status wf_registry_bad_decode(const struct wf_head *head, const uint8_t *body,
					struct wf_registry_bad *out) WEFT_MUST_CHECK;
enum weft_status wf_registry_run_decode(const struct wf_head *head, const uint8_t *body,
					struct wf_registry_run *out) WEFT_MUST_CHECK;
enum weft_status wf_registry_snapshot_decode(const struct wf_head *head, const uint8_t *body,
					     struct wf_registry_snapshot *out) WEFT_MUST_CHECK;
enum weft_status wf_registry_part_decode(const struct wf_head *head, const uint8_t *body,
					 struct wf_registry_part *out) WEFT_MUST_CHECK;
enum weft_status wf_registry_failed_decode(const struct wf_head *head, const uint8_t *body,
					   struct wf_registry_failed *out) WEFT_MUST_CHECK;
enum weft_status wf_registry_lost_decode(const struct wf_head *head, const uint8_t *body,
					 struct wf_registry_lost *out) WEFT_MUST_CHECK;
enum weft_status wf_registry_member_decode(const struct wf_head *head, const uint8_t *body,
					   struct wf_registry_member *out) WEFT_MUST_CHECK;
enum weft_status wf_registry_stands_decode(const struct wf_head *head, const uint8_t *body,
					   struct wf_registry_stands *out) WEFT_MUST_CHECK;
enum weft_status wf_registry_settled_decode(const struct wf_head *head, const uint8_t *body,
					    struct wf_registry_settled *out) WEFT_MUST_CHECK;
enum weft_status wf_registry_comes_decode(const struct wf_head *head, const uint8_t *body,
					  struct wf_registry_comes *out) WEFT_MUST_CHECK;
