/* SPDX-License-Identifier: Apache-2.0 */
/* session: the tables of a session, which weft/sparse.h hands out, and how their batches travel.
 * sparse/exchange.md has the protocol.
 *
 * table.c  settings, weft_table_add; rows.c  a batch: pull, wait, push; session.c  what the
 * session asks for (trainer/session/service.h); session_memory.c  its slabs; session_link.c
 * greeting and messages of a link; session_flow.c  pulls and pushes on it; session_answer.c  what
 * comes back; records.c  weft_table_read and _write; session_call.c  their messages;
 * session_stats.c  counters and what follows from them; session_trace.c  what is recorded.
 * Thread: as each struct says, the owner's or the core's (the thread that drives progress).
 * Commands pass data from the owner to the core; `busy`, `push.busy` and `up_busy` pass it back
 * (B1 of trainer/session/threads.md). */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"
#include "sparse/client/batch.h"
#include "sparse/table/hot.h"
#include "trainer/session/session.h"
#include "weft/sparse.h"
#include "wire/sparse_messages.h"
#include "wire/tables.h"

#define WF_CLIENT_BATCHES 2u             /* of a table: one is computed on, one is on its way */
#define WF_CLIENT_REQUESTS 8u            /* unanswered pulls of a lane */
#define WF_CLIENT_PIECE WF_RUN_BYTES_MAX /* room for rows with their state, each way */
#define WF_CLIENT_SLOT_MIN 1024u         /* bytes of a slot; the send buffers are sized for it */

struct wf_client;

/* A batch, from its pull until it is freed or its step is waited for. */
enum wf_rows_state {
	WF_ROWS_FREE,
	WF_ROWS_PULLED,
	WF_ROWS_PUSHED,
	WF_ROWS_ABANDONED, /* freed by the caller while the answers are under way */
};

struct weft_rows {
	/* Fixed at start. */
	struct weft_table *table;
	uint32_t idx; /* of the table x WF_CLIENT_BATCHES + 0 or 1 */
	struct wf_batch *batch;
	float *values;      /* what the caller reads, in the slab of rows */
	uint8_t *send;      /* the batch's send buffer, in the slab that is sent from */
	uint64_t values_at; /* bytes from the start of the slab of rows */

	/* Owner's. The core reads view, wants and flags of batches that are busy or handed in. */
	enum wf_rows_state state;
	struct wf_batch_view view;
	uint64_t wants; /* step as of which the rows are pulled */
	unsigned flags; /* enum weft_rows_flag */
	bool narrow;    /* values are still as received, in 16 bits each */

	_Atomic uint32_t busy; /* shared: as wf_core_tensor.busy */
	/* Core's while busy. */
	struct wf_wait wait;     /* in client->pulls.waits */
	uint32_t unanswered;     /* parts */
	uint32_t in_flight;      /* PUTs of keys that are not DONE */
	enum weft_status status; /* OK, or the first refusal of a lane; owner's when not busy */
	char reason[WF_REASON_BYTES];
};

/* Counters of a table's share on one lane. One writer, the owner; relaxed, because they publish
 * nothing. */
enum wf_share {
	WF_SHARE_ROWS_PULLED,
	WF_SHARE_ROWS_PUSHED,
	WF_SHARE_KEY_BYTES,
	WF_SHARE_ROW_BYTES,
	WF_SHARE_GRAD_BYTES,
	WF_SHARE_COUNT,
};

struct wf_lane_share {
	_Atomic uint64_t count[WF_SHARE_COUNT];
};

struct weft_table {
	struct wf_client *client;
	uint32_t idx;
	uint32_t keys_max;
	bool may_delta; /* keys may be sent as differences */
	struct weft_rows rows[WF_CLIENT_BATCHES];

	/* Owner's. */
	uint64_t pushed_step;
	uint64_t batches_pulled, batches_pushed, keys_pulled, keys_pushed;
	uint64_t copied_bytes; /* of received values: widened, or gathered for the caller */
	struct wf_hot hot;
	struct wf_lane_share *share; /* [lane_count] */
	/* Shared, for the stats lines: relaxed. */
	_Atomic int64_t zipf_milli; /* Zipf's exponent x 1,000; -1,000: not known yet */
	_Atomic uint64_t hottest_key, hottest_times;
};

/* A part of a message under way; a part of a pull, until it is answered. */
struct wf_part_ref {
	struct weft_rows *rows;
	uint32_t part; /* of its view */
	uint32_t slot; /* of the lane, in which it lies; or WF_SLOT_NONE */
	bool sent, answered;
	bool ahead; /* its rows are here as they are before the step */
};

/* A PULL that is not answered. Core's. */
struct wf_pull_request {
	bool open;
	bool begun;    /* its message was begun on this path */
	bool refused;  /* by NACK: closed when the last of its PUTs has left */
	bool repeated; /* on another path: the answer may be of a later step */
	bool ahead;    /* the lane may send parts ahead of the step */
	uint64_t id;
	uint64_t step;
	unsigned flags;
	uint32_t part_count, unanswered;
	struct wf_part_ref part[WF_SPARSE_PARTS_MAX];
};

/* The parts of a lane whose rows are still to be pulled. */
struct wf_pull_wish {
	struct weft_rows *rows;
	uint32_t next, end; /* parts */
};

struct wf_pull_wishes {
	struct wf_pull_wish *wish; /* [wish_capacity] ring */
	uint32_t first, count;
};

/* A lane's share of client->push. */
struct wf_lane_push {
	bool left;            /* some of its messages are not begun yet */
	bool waits;           /* for APPLIED */
	bool held;            /* until the first lane has judged it */
	bool said;            /* some of it was sent, on some path */
	uint32_t table, next; /* where the next message begins: table, part of the lane */
	uint64_t applied;     /* last APPLIED received; 0: none */
};

enum wf_sending {
	WF_SENDING_NOTHING,
	WF_SENDING_PULL,
	WF_SENDING_PUSH,
	WF_SENDING_CALL,
};

/* One sparse lane. Core's. */
struct wf_client_link {
	struct wf_link link; /* first: functions of the payload cast back */
	struct wf_client *client;
	uint32_t lane;      /* over all pservers */
	uint64_t begins_at; /* the step that the lane was at when it was first reached */

	/* Path: forgotten at DOWN. */
	uint32_t tables_sent;

	/* The message that is being sent, with its PUTs; nothing else is sent in between. */
	enum wf_sending sending;
	bool head_sent;
	bool starved; /* it waits for a slot, and that is counted */
	uint32_t put_next, put_count;
	struct wf_pull_request *sent_request; /* PULL */
	struct wf_part_ref push_part[WF_SPARSE_PARTS_MAX];
	/* Lists of slots in use: of a push, of refused pulls, and of rows that are put back. */
	uint32_t push_slots;
	uint32_t refused_slots;
	uint32_t call_slots;
	bool push_is_last;

	struct wf_pull_request request[WF_CLIENT_REQUESTS];
	uint64_t request_id; /* last given */
	struct wf_pull_wishes wishes;

	struct wf_lane_push push;
};

/* A FETCH or RESTORE. The owner fills it in, and reads the result when it is no longer busy. */
struct wf_client_call {
	bool fetches;
	uint32_t lane, table;
	uint64_t step;
	struct wf_run_cursor from; /* FETCH */
	uint64_t samples;          /* RESTORE */
	uint64_t table_step;       /* RESTORE */
	uint32_t bytes;            /* RESTORE: length of the run at the end of the send slab */

	_Atomic uint32_t busy; /* shared: as weft_rows.busy */
	/* Core's while busy. */
	bool open;
	bool begun; /* on this path */
	bool answered;
	uint64_t since_ns;  /* time of the request */
	uint32_t in_flight; /* PUTs that are not DONE */
	uint64_t id;
	enum weft_status status; /* OK, or the lane's refusal */
	char reason[WF_REASON_BYTES];
};

struct wf_client_counts {
	_Atomic uint64_t steps_applied, rows_updated, pushes_lost, grads_nonfinite;
	_Atomic uint64_t waits_slot, pulls_repeated, pushes_repeated;
	_Atomic uint64_t parts_ahead; /* that were sent ahead of their step, and corrected */
};

/* The tables of a session. Fixed at seal. */
struct wf_client_tables {
	uint32_t count, capacity;
	struct weft_table **table;  /* [capacity] */
	struct wf_table_desc *desc; /* [capacity] */
	uint64_t digest, bytes;     /* of their descriptions */
};

/* What the step begun last has pushed. Owner's; the core reads pushed while push.busy. */
struct wf_client_step {
	uint64_t handed_in;    /* last step */
	uint64_t pulled_for;   /* the step of the last pull, */
	uint32_t pulled_count; /* and how many pulls have asked for it */
	uint32_t pushed_count;
	struct weft_rows **pushed; /* [table_count] in the step begun last; NULL: nothing */
	bool tight;                /* batches could exceed held_bytes of a lane: check each */
	bool warned;
};

/* The push of the last step that was handed in, over all lanes. Core's, but for busy. */
struct wf_client_push {
	_Atomic uint32_t busy;     /* shared: a step is handed in and not applied on every lane */
	uint64_t step;             /* last one handed in */
	uint32_t lanes;            /* that have not applied it */
	uint32_t verdict;          /* enum wf_sparse_push_flag: the first lane's; 0: none yet */
	uint32_t in_flight;        /* PUTs of it that are not DONE */
	uint64_t since_ns;         /* when the step was handed in */
	uint64_t applied_ns;       /* when every lane had applied it; its rows come after that */
	struct wf_sparse_push msg; /* scratch of one encode */
};

/* Core's. */
struct wf_client_pulls {
	uint32_t busy;                    /* rows */
	struct wf_wait_list waits;        /* of rows */
	struct wf_sparse_pull msg;        /* scratch of one encode */
	struct wf_sparse_changed changed; /* of one decode */
};

struct wf_client {
	struct weft_session *session;
	struct wf_core *core;
	struct wf_client_tables tables;
	uint32_t lane_count; /* over all pservers */
	bool judges;         /* asynchronous, and a push may be dropped: the first lane decides */
	bool looks_ahead;    /* lanes may send rows ahead of their step */
	struct wf_slab rows, send;
	struct wf_answer_place place; /* the slab of rows */
	uint32_t send_region;
	struct wf_client_link *link;     /* [lane_count], from seal on */
	uint64_t slot_bytes, held_bytes; /* least of all lanes; core's until up_busy is 0 */
	bool started;

	struct wf_client_step step;

	struct wf_client_call call;

	_Atomic uint32_t up_busy; /* shared: a lane has not sent its GRANT yet */
	struct wf_client_push push;
	struct wf_client_pulls pulls;
	struct wf_client_counts counts;    /* one writer, the core; relaxed: they publish nothing */
	uint64_t reported[WF_SHARE_COUNT]; /* by the last stats line */
};

enum wf_client_command {
	WF_CLIENT_PULL, /* tensor: rows->idx */
	WF_CLIENT_PUSH, /* a: step */
	WF_CLIENT_CALL,
};

static inline struct wf_client *
wf_client_of(const struct weft_session *session)
{
	return session->core.service.state;
}

/* The client's struct of a link whose functions are wf_client_link_ops. */
static inline struct wf_client_link *
wf_client_link_of(struct wf_link *link)
{
	return (struct wf_client_link *)link;
}

static inline struct weft_rows *
wf_client_rows(const struct wf_client *client, uint32_t idx)
{
	return &client->tables.table[idx / WF_CLIENT_BATCHES]->rows[idx % WF_CLIENT_BATCHES];
}

/* Single-writer counters. */
static inline void
wf_count(_Atomic uint64_t *counter, uint64_t amount)
{
	uint64_t was = atomic_load_explicit(counter, memory_order_relaxed);
	atomic_store_explicit(counter, was + amount, memory_order_relaxed);
}

static inline uint64_t
wf_counted(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* The format in which the values of a batch travel. */
static inline enum weft_value_format
wf_client_format(const struct weft_rows *rows)
{
	return rows->table->client->tables.desc[rows->table->idx].set.wire;
}

/* The bytes of values that a batch receives. */
static inline uint64_t
wf_client_landed_bytes(const struct weft_rows *rows)
{
	const struct wf_table_desc *desc = &rows->table->client->tables.desc[rows->table->idx];
	return (uint64_t)rows->view.row_count * wf_table_row_bytes(desc);
}

/* session.c */
extern const struct wf_service_ops wf_client_service;
enum weft_status wf_client_hand_in(struct weft_session *session) WEFT_MUST_CHECK;

/* session_memory.c */
/* `bytes` rounded up to WF_BATCH_ALIGN. */
uint64_t wf_client_aligned(uint64_t bytes);
/* One batch's share of the slab of rows, in bytes. */
uint64_t wf_client_rows_bytes(const struct weft_table *table);
/* One batch's share of the send slab, in bytes: the most that it can send. */
uint64_t wf_client_send_bytes(const struct weft_table *table);
/* Where in its share the answers of a batch land, in bytes: at the end, if they are narrower than
 * what the caller reads, because they are widened from the beginning on. */
uint64_t wf_client_landing(const struct weft_rows *rows);
/* Allocates the slabs of all tables, at seal; slabs_release frees what a failure leaves. */
enum weft_status wf_client_slabs_alloc(struct wf_client *client) WEFT_MUST_CHECK;
void wf_client_slabs_release(struct wf_client *client);
/* Gives each batch its share of both slabs. */
void wf_client_slabs_deal(struct wf_client *client);

/* session_greeting.c */
/* Describes the mode and the tables, for people. */
void wf_client_describe(const struct wf_client *client, char *out, size_t bytes);

/* session_link.c */
extern const struct wf_link_ops wf_client_link_ops;

/* session_trace.c: called while the trainer is recorded. */
void wf_client_note_push(const struct wf_client_link *cl, enum wf_trace_what what)
	__attribute__((cold));
void wf_client_note_pull(const struct wf_client_link *cl, const struct wf_pull_request *request,
			 enum wf_trace_what what) __attribute__((cold));

static inline bool
wf_client_is_recorded(const struct wf_client *client)
{
	return __builtin_expect(client->core->trace.on != NULL, 0);
}

/* Cookies of PUTs: of a push, of a RESTORE; otherwise the rows' idx, of a pull. */
#define WF_CLIENT_COOKIE_PUSH (1u << 31)
#define WF_CLIENT_COOKIE_CALL (1u << 30)

static inline void
wf_client_due(struct wf_client_link *cl)
{
	wf_link_due(&cl->link);
}

static inline const struct wf_batch_part *
wf_client_part(const struct wf_part_ref *ref)
{
	return &ref->rows->view.part[ref->part];
}

/* session_flow.c */
void wf_client_command_run(struct wf_core *core, const struct wf_command *command);
bool wf_client_flow_flush(struct wf_link *link); /* as wf_link_ops.flush */
void wf_client_flow_forget(struct wf_client_link *cl);

/* session_answer.c */
/* Ends a refused request, all PUTs of which have left. */
void wf_client_give_up(struct wf_client_link *cl, struct wf_pull_request *request);
enum weft_status wf_client_answer(struct wf_link *link, const struct wf_put *put) WEFT_MUST_CHECK;
void wf_client_done(struct wf_link *link, uint32_t what);
enum weft_status wf_client_applied(struct wf_client_link *cl,
				   const struct wf_sparse_applied *msg) WEFT_MUST_CHECK;
enum weft_status wf_client_changed(struct wf_client_link *cl,
				   const struct wf_sparse_changed *msg) WEFT_MUST_CHECK;
enum weft_status wf_client_refused(struct wf_client_link *cl,
				   const struct wf_sparse_nack *msg) WEFT_MUST_CHECK;

/* session_call.c */
/* The bytes that a lane PUTs for a part of a PULL. */
static inline uint64_t
wf_client_answer_bytes(const struct wf_client *client, const struct wf_part_ref *ref)
{
	return (uint64_t)ref->rows->view.part[ref->part].row_count *
	       wf_table_row_bytes(&client->tables.desc[ref->rows->table->idx]);
}
/* The piece that FETCH requests, where the lane PUTs it: the last bytes of the slab of rows. */
static inline const uint8_t *
wf_client_piece(const struct wf_client *client)
{
	return (const uint8_t *)client->rows.base + client->rows.bytes - WF_CLIENT_PIECE;
}
void wf_client_call_begin(struct wf_client *client);
/* Whether the call has to be sent on this link. */
bool wf_client_call_is_unasked(const struct wf_client_link *cl);
void wf_client_call_encode(struct wf_client_link *cl); /* into core->end.msg */
void wf_client_call_finish(struct wf_client *client);
enum weft_status wf_client_fetched(struct wf_client_link *cl,
				   const struct wf_put *put) WEFT_MUST_CHECK;
enum weft_status wf_client_restored(struct wf_client_link *cl,
				    const struct wf_sparse_restored *msg) WEFT_MUST_CHECK;
/* Ends the call with the lane's refusal. False: the refusal is of a pull. */
bool wf_client_call_refused(struct wf_client_link *cl, const struct wf_sparse_nack *msg);
void wf_client_call_forget(struct wf_client_link *cl);

/* session_stats.c */
void wf_client_count_pull(struct weft_rows *rows, const uint64_t *key);
void wf_client_count_push(struct weft_rows *rows);
void wf_client_report(struct wf_core *core, bool whole, char *out, size_t bytes);
