/* SPDX-License-Identifier: Apache-2.0 */
/* peer_words: the messages between the two ends of a run, as bytes: little-endian, each a frame
 * of 16 bytes of head (magic, version, type, bytes that follow) and at most WF_PEER_BODY_MAX more.
 * The head is the same in all versions. Thread: any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define WF_PEER_MAGIC 0x42524657u /* "WFRB" */
#define WF_PEER_VERSION 1u        /* of frames, plans, and what legs mean */
#define WF_PEER_HEAD_BYTES 16u
#define WF_PEER_BODY_MAX 512u
#define WF_PEER_BYTES_MAX (8ull << 20)  /* of a PUT */
#define WF_PEER_MESSAGE_MAX 4032u       /* of a SEND, as weft carries it */
#define WF_PEER_COUNT_MAX 1000000000ull /* messages of a leg */
#define WF_PEER_DEPTH_MAX 128u          /* of them, under way */
#define WF_PEER_UPDATE_BYTES 8u         /* an update of a slot: u32 place, u32 what to add */
#define WF_PEER_TEXT_BYTES 384          /* of a failure that one end reports to the other */

enum wf_peer_word {
	WF_PEER_PLAN = 1, /* client, first */
	WF_PEER_OFFER,    /* server: it is ready for that */
	WF_PEER_JOIN,     /* client, first on a second connection: raw sockets */
	WF_PEER_GO,       /* client: the next leg */
	WF_PEER_READY,    /* server: it has begun */
	WF_PEER_REPORT,   /* server: it is over */
	WF_PEER_BYE,      /* client: that was all */
	WF_PEER_FAIL,     /* either: what went wrong at its end */
	WF_PEER_WORD_MAX = WF_PEER_FAIL,
};

enum wf_peer_over {
	WF_PEER_TCP,
	WF_PEER_SHM,
	WF_PEER_VERBS,
	WF_PEER_OVER_MAX = WF_PEER_VERBS,
};

enum wf_peer_op {
	WF_PEER_PUT,  /* into memory that the other end granted */
	WF_PEER_SEND, /* a message */
	WF_PEER_OP_MAX = WF_PEER_SEND,
};

struct wf_peer_head {
	uint16_t version;
	enum wf_peer_word type;
	uint32_t body_bytes;
};

struct wf_peer_plan {
	uint64_t token; /* shows that it is this client */
	enum wf_peer_over over;
	uint64_t bytes_max; /* of a message */
	uint32_t depth;     /* messages under way */
};

struct wf_peer_offer {
	char address[64]; /* that the paths' listeners are at */
	uint64_t pid;     /* shm: of the server, and */
	uint64_t fd;      /* its descriptor of the memory */
};

/* The same at both ends but for the counts, which are the sending and the receiving end's. */
struct wf_peer_leg {
	bool bare;    /* without weft */
	bool ping;    /* to and fro, one at a time; else streams */
	bool verify;  /* each message has its pattern */
	bool updates; /* and is updates, which the receiver applies */
	enum wf_peer_op op;
	uint64_t bytes;                     /* of a message */
	uint64_t send_count, receive_count; /* of the end that has this */
	bool client;                        /* this end goes first, and keeps time */
	uint32_t batch;                     /* ping: operations of one sample; the client's */
};

/* What --verify found. */
struct wf_peer_report {
	uint64_t checked, wrong;         /* messages */
	uint64_t wrong_number, wrong_at; /* of the first that is wrong: which, and at which byte */
};

void wf_peer_head_encode(const struct wf_peer_head *head, uint8_t out[WF_PEER_HEAD_BYTES]);
/* WEFT_PROTOCOL: not rdma_bench. Any version is accepted; the caller reports what is wrong. */
enum weft_status wf_peer_head_decode(const uint8_t in[WF_PEER_HEAD_BYTES],
				     struct wf_peer_head *out) WEFT_MUST_CHECK;

/* Bodies. `out` has room for WF_PEER_BODY_MAX; the length is returned. */
size_t wf_peer_plan_encode(const struct wf_peer_plan *plan, uint8_t *out);
enum weft_status wf_peer_plan_decode(const uint8_t *in, size_t bytes,
				     struct wf_peer_plan *out) WEFT_MUST_CHECK;
size_t wf_peer_offer_encode(const struct wf_peer_offer *offer, uint8_t *out);
enum weft_status wf_peer_offer_decode(const uint8_t *in, size_t bytes,
				      struct wf_peer_offer *out) WEFT_MUST_CHECK;
/* As the client has it; decoded, as the server is to have it. Held against `plan`. */
size_t wf_peer_leg_encode(const struct wf_peer_leg *leg, uint8_t *out);
enum weft_status wf_peer_leg_decode(const uint8_t *in, size_t bytes,
				    const struct wf_peer_plan *plan,
				    struct wf_peer_leg *out) WEFT_MUST_CHECK;
size_t wf_peer_report_encode(const struct wf_peer_report *report, uint8_t *out);
enum weft_status wf_peer_report_decode(const uint8_t *in, size_t bytes,
				       struct wf_peer_report *out) WEFT_MUST_CHECK;
size_t wf_peer_failure_encode(enum weft_status status, const char *text, uint8_t *out);
/* Records it as this end's failure, and returns its status; WEFT_PROTOCOL where it makes no sense.
 */
enum weft_status wf_peer_failure_decode(const uint8_t *in, size_t bytes) WEFT_MUST_CHECK;
