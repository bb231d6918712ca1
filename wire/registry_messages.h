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
 * LOST     pserver    it has lost a trainer, and the reason
 * LEAVE    registrar  a trainer is to be dropped: report where your lanes stand and hold; then from
 *                     which step on it takes part no more
 * STANDS   pserver    where its lanes stand, which hold
 * LEFT     pserver    its lanes have the border, and go on */
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
	WF_REGISTRY_LEAVE = 10,
	WF_REGISTRY_STANDS = 11,
	WF_REGISTRY_LEFT = 12,
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

struct wf_registry_lost {
	uint64_t incarnation;         /* of the trainer's process, not 0 */
	uint32_t trainer;             /* < WF_TRAINER_COUNT_MAX */
	char reason[WF_REASON_BYTES]; /* not empty */
};

#define WF_REGISTRY_LEAVE_HALF 0x01u  /* lanes have applied step `border` with it, others cannot */
#define WF_REGISTRY_LEAVE_ALONE 0x02u /* and nobody else takes part in that step */

/* One change of the members. */
struct wf_registry_leave {
	uint64_t change;      /* its number, from 1 */
	uint64_t incarnation; /* of the trainer's process, not 0 */
	uint64_t border;  /* the first step without it; 0: not known yet, report where you stand */
	uint64_t applied; /* the highest step that a lane has applied; 0 with border 0 */
	uint64_t samples; /* HALF: its samples of step `border`, at most INT64_MAX; else 0 */
	uint32_t trainer; /* < WF_TRAINER_COUNT_MAX */
	uint32_t flags;   /* WF_REGISTRY_LEAVE_...; ALONE only with HALF, both only with a border */
};

#define WF_REGISTRY_STANDS_READY 0x01u   /* the job has begun on all lanes that have it */
#define WF_REGISTRY_STANDS_COUNTED 0x02u /* the trainer is counted in step `applied` */
#define WF_REGISTRY_STANDS_ALONE 0x04u   /* and nobody else is */

struct wf_registry_stands {
	uint64_t change;
	uint64_t applied;  /* the highest step that a lane has applied, or a part of it */
	uint64_t received; /* the lowest step of the trainer that a lane has received whole */
	uint64_t samples;  /* COUNTED: its samples of step `applied`, at most INT64_MAX; else 0 */
	uint32_t flags;    /* WF_REGISTRY_STANDS_... */
	char where[WF_REASON_BYTES]; /* COUNTED: the lanes that have counted it; else empty */
};

struct wf_registry_left {
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
void wf_registry_leave_encode(const struct wf_registry_leave *in, struct wf_msg *out);
void wf_registry_stands_encode(const struct wf_registry_stands *in, struct wf_msg *out);
void wf_registry_left_encode(const struct wf_registry_left *in, struct wf_msg *out);

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
enum weft_status wf_registry_leave_decode(const struct wf_head *head, const uint8_t *body,
					  struct wf_registry_leave *out) WEFT_MUST_CHECK;
enum weft_status wf_registry_stands_decode(const struct wf_head *head, const uint8_t *body,
					   struct wf_registry_stands *out) WEFT_MUST_CHECK;
enum weft_status wf_registry_left_decode(const struct wf_head *head, const uint8_t *body,
					 struct wf_registry_left *out) WEFT_MUST_CHECK;
