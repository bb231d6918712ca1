/* SPDX-License-Identifier: Apache-2.0 */
/* service_internal: the structs of the sparse service, shared by its files only.
 *
 * service.c         hands each message and each part to the file that handles it
 * service_tables.c  the tables of the job, and all memory
 * service_check.c   keys and failures of a table
 * service_nack.c    refusals that cost no connection
 * service_push.c    pushes: parts, what is kept of them, the apply
 * service_pull.c    pulls: when they are answered
 * service_gather.c  their keys, and rows gathered for answers
 * service_ahead.c   parts of a pull that are sent before its step, and what corrects them
 * service_view.c    asynchronous modes: how old the rows of a push are
 * service_save.c    rows with their state, fetched and put back
 * service_load.c    tables out of the parts of a snapshot
 * service_snapshot.c   the lane's part of one
 * service_send.c    everything it sends
 * service_report.c  its log lines
 * service_trace.c   what it adds to a recording
 * service_watch.c   a table for whoever watches
 *
 * Nothing here allocates once the job is open, except tables that grow. Thread: the lane's. */
#pragma once

#include "base/trace.h"
#include "pserver/service.h"
#include "saved/part_table.h"
#include "sparse/table/ceiling.h"
#include "sparse/table/scan.h"
#include "sparse/table/table.h"
#include "wire/sparse_messages.h"
#include "wire/tables.h"

struct wf_snapshot;        /* saved/snapshot.h */
struct wf_sparse_snapshot; /* service_snapshot.c */

#define WF_PULLS_MAX 16u /* unanswered pulls of one trainer */
#define WF_VIEWS_MAX 4u  /* steps of a trainer whose reads are remembered */
/* Refusals of one trainer that wait to be sent: one for each request that it may have unanswered
 * (pulls, a push, a FETCH or RESTORE), and one for the pull beyond the limit. */
#define WF_NACKS_MAX (WF_PULLS_MAX + 3u)
#define WF_KEYS_OF_CELL 511u  /* keys are kept in cells of 4 KiB */
#define WF_WIDE_FLOATS 16384u /* values that are rounded at a time: 4 or more of the longest rows */
#define WF_CELL_NONE UINT32_MAX

/* Keys of a pull: a list of cells, read from its beginning. */
struct wf_key_cell {
	uint64_t key[WF_KEYS_OF_CELL];
	uint32_t next; /* cell, or WF_CELL_NONE */
	uint32_t reserved;
};
WF_STATIC_ASSERT(sizeof(struct wf_key_cell) == 4096, "a page");

struct wf_key_cells {
	struct wf_key_cell *cell; /* [count] */
	uint32_t count;
	uint32_t touched; /* cells from here on were never used */
	uint32_t free_first, free_count;
};

struct wf_pull_part {
	uint16_t table;
	uint32_t slot; /* that its keys lie in; WF_SLOT_NONE: CREDIT has returned it */
	uint32_t row_count;
	uint64_t offset; /* bytes from the start of the trainer's granted range */
};

/* A key of a pull. */
struct wf_key_cursor {
	uint32_t cell; /* WF_CELL_NONE: there is none */
	uint32_t at;   /* in the cell */
};

/* What has been sent of a pull before its step is applied. service_ahead.c owns it. */
struct wf_pull_ahead {
	bool allowed;              /* more may be sent */
	bool judged;               /* whether it was worth while */
	uint32_t sent;             /* parts from the first on */
	struct wf_key_cursor from; /* the first key of the next one; not set before the first */
	uint32_t row;              /* of the part that is being corrected: the next one */
};

/* A pull, from its message to the gathering of its last part. */
struct wf_pull {
	uint64_t request_id;
	uint64_t step;
	bool create;
	bool is_due; /* its step is applied, and all its keys are here */
	uint32_t part_count;
	uint32_t next;             /* part to gather next */
	struct wf_key_cursor from; /* its first key */
	uint32_t last;             /* cell that keys are added to */
	uint32_t write_at;
	struct wf_pull_ahead ahead;
	struct wf_pull_part part[WF_SPARSE_PARTS_MAX];
};

/* A part of a push. */
struct wf_push_part {
	uint32_t table;
	uint32_t row_count;
	/* Gradients, then show and click if the table has scores; in the window, or in `room`. */
	const float *grad;
	const uint64_t *key; /* [row_count], in the trainer's keep */
	uint8_t *room;       /* in the keep, too: for gradients and scores */
};

/* The message whose PUTs are coming. */
enum wf_incoming_kind {
	WF_INCOMING_NONE,
	WF_INCOMING_PUSH,
	WF_INCOMING_PULL,
	WF_INCOMING_RESTORE,
};

struct wf_incoming {
	enum wf_incoming_kind kind;
	bool refused; /* by NACK: its PUTs come nevertheless */
	bool last;    /* PUSH: the last message of the push */
	uint64_t step;
	uint32_t next, count; /* part expected next, and how many the message lists */
	struct wf_pull *pull; /* PULL: what its keys are added to */
	uint32_t uncredited;  /* PULL: slots whose keys are copied and that were not returned */
	struct wf_sparse_part part[WF_SPARSE_PARTS_MAX];
};

/* An answer that is gathered and not yet accepted by the transport. */
struct wf_answer {
	bool due;
	uint32_t buffer;
	uint64_t bytes, offset;
	uint32_t tag;
};

/* Asynchronous modes: how many pushes of others had been applied when a batch's rows were read. */
struct wf_view {
	uint64_t step;   /* named by the pull */
	uint64_t others; /* pushes of other trainers applied by then */
	bool is_set;
	bool has_rows; /* false: none were read here, and the end of the step counts */
};

/* Whether it is worth while to send a trainer's rows ahead. service_ahead.c owns it. */
struct wf_ahead_use {
	uint32_t rest;   /* pulls for which nothing is sent ahead */
	uint32_t rested; /* the last number of them */
};

/* The pulls of a trainer, until DOWN. service_pull.c owns them. */
struct wf_pulls {
	struct wf_pull *pull;                /* [WF_PULLS_MAX] */
	struct wf_pull *order[WF_PULLS_MAX]; /* the first `count` are in use, oldest first */
	uint32_t count;
	struct wf_key_cells cells;
};

/* The push of a step: of member.step_next while it arrives, of step_next - 1 once it is complete.
 * service_push.c owns it. */
struct wf_push_coming {
	bool begun, complete;
	bool refused; /* by NACK: its parts are ignored up to its last message */
	struct wf_step_said said;
	struct wf_push_part *part; /* [parts_max], the first `count` have arrived */
	uint32_t count;
	uint8_t *keep;      /* [held_bytes] keys, and gradients that are copied aside */
	uint64_t keep_used; /* bytes */
	uint32_t *rows;     /* [desc_count] rows of each table that the push has announced */
};

/* Asynchronous modes: how old the rows of a push are. service_view.c owns it. */
struct wf_push_lag {
	struct wf_view view[WF_VIEWS_MAX]; /* by step */
	uint32_t verdict; /* of the push under way, as in its flags; 0: the lane computes it */
	/* Over all tables. pushes.discarded: the push under way came too late, and is dropped. */
	struct wf_order_view pushes;
};

/* What a trainer fetches and puts back, until DOWN. service_save.c owns it. */
struct wf_save_asked {
	bool fetching; /* a FETCH waits to be gathered */
	struct wf_sparse_fetch fetch;
	struct wf_sparse_restore restore; /* whose PUT is coming */
	bool restored_due;
	struct wf_sparse_restored restored;
};

/* One trainer as the service sees it: peer->own. */
struct wf_sparse_peer {
	/* Path: forgotten at DOWN. */
	struct wf_incoming incoming;
	uint32_t nack_count;
	struct wf_sparse_nack nack[WF_NACKS_MAX];
	struct wf_pulls pulls;
	struct wf_ahead_use use; /* of what was sent ahead */
	struct wf_answer answer;
	struct wf_save_asked save;
	bool applied_due;
	bool in_place; /* the trainer reads what is PUT where it lies */

	struct wf_push_coming push;
	struct wf_push_lag lag;
	struct wf_sparse_applied applied; /* of the last step with a push of it; step 0: none */
};

/* One table of the job on this lane. */
struct wf_served {
	struct wf_table *table; /* NULL: no partition falls to this lane */
	struct wf_row_opts row;
	uint32_t partition_first, partition_count;
	uint32_t row_bytes;   /* of a row's values, as sent */
	uint32_t front_bytes; /* of a row in a PUSH without its key, as sent */
	uint32_t kept_bytes;  /* of the same in f32, as kept */
	/* Conversions for values that travel in 16 bits; NULL: they travel in f32. */
	const struct wf_row_half *half;
	uint32_t rows_max;            /* that one trainer may push in a step */
	bool tends;                   /* rows can expire */
	uint32_t item;                /* its number in the manifest of a snapshot */
	struct wf_table_batch *batch; /* [deal.next[idx]] of the step being applied */
};

/* What trainer 0 fetches and puts back. */
struct wf_save {
	struct wf_scan *scan; /* of `table` after `step`; NULL: none */
	uint32_t table;
	uint64_t step;
	uint64_t version;      /* the lane's when the scan was made, which is void at any other */
	bool prepared;         /* partitions can be read */
	struct wf_peer *asker; /* while there is a scan */
	uint64_t restored_by;  /* incarnation of the trainer; 0: nothing was put back */
	uint64_t restored_id;  /* last RESTORE whose rows are in the tables */
	float floats[WF_ROW_RECORD_FLOATS_MAX];
	uint16_t counter[WF_RUN_BYTES_MAX / 2];
};

/* A lane's memory for one trainer, from the job's limits. service_tables.c sets it. */
struct wf_sparse_sizes {
	uint32_t slot_count;
	uint64_t slot_bytes;
	uint64_t held_bytes; /* for a push, and as much for the keys of pulls */
	uint32_t parts_max;  /* parts of a push */
};

/* Memory for what trainers send. service_tables.c owns it. */
struct wf_rooms {
	struct wf_slab keep; /* [peers.count] x held_bytes: pushes */
	struct wf_slab keys; /* [peers.count] x held_bytes: keys of pulls */
};

/* Asynchronous modes: what the lag of a push is measured by. */
struct wf_sparse_async {
	uint64_t pushes; /* of all trainers that were applied */
	struct wf_order_terms terms;
};

/* Scratch of an apply, in which parts are dealt to their tables. service_push.c owns it. */
struct wf_deal {
	struct wf_table_batch *batch; /* [peers.count * parts_max] */
	uint32_t *next;               /* [desc_count] parts of each table */
};

#define WF_PUSHED_BITS (1u << 19)

/* What corrects the rows that were sent ahead. service_ahead.c owns it. */
struct wf_corrections {
	/* [WF_PUSHED_BITS / 64] keys that the step applied last has pushed, as far as something was
	 * sent ahead of it: a bit for each, by its hash, so that a key that was not pushed may seem
	 * to be. */
	uint64_t *pushed;
	struct wf_sparse_changed msg; /* scratch of one encode, with keys and values of its rows */
	uint64_t key[WF_SPARSE_CHANGED_MAX];
	float row[WF_MSG_BODY_MAX / sizeof(float)];
};

/* The search for expired rows after each step. service_push.c owns it. */
struct wf_tending {
	uint32_t table; /* searched next */
	uint64_t rows;  /* still to be examined */
};

/* lane->own. */
struct wf_sparse {
	struct wf_tables tables;
	struct wf_table_desc *desc; /* [desc_count], in the order of their TABLE messages */
	uint32_t desc_count, desc_received;
	struct wf_served *served;    /* [desc_count] */
	struct wf_ceiling ceiling;   /* of the tables' memory */
	struct wf_sparse_peer *peer; /* [peers.count]: lane->peers.own; NULL before alloc_memory */

	struct wf_sparse_sizes size;
	struct wf_staging answers; /* a window for each trainer, in slots of slot_bytes */
	struct wf_rooms rooms;

	/* The step of the tables; in asynchronous modes the pushes of all trainers, dropped ones
	 * included. */
	uint64_t version;
	struct wf_sparse_async async;
	uint32_t due_pulls; /* not gathered to the end; no step is applied while there are any */
	/* The step that other lanes have applied for a trainer which is gone, and that nobody else
	 * is in; 0: none. */
	uint64_t skips;
	struct wf_deal deal;
	struct wf_corrections corrections;
	struct wf_save save;
	struct wf_sparse_snapshot *snapshot; /* service_snapshot.c owns it; NULL: none are taken */
	struct wf_tending tend;
	uint64_t *key_scratch;      /* [size.slot_bytes / WF_KEY_BYTES] keys of a pull's part */
	float wide[WF_WIDE_FLOATS]; /* rows before they are rounded for an answer */
	struct wf_log_limit nonfinite_log;
	union { /* scratch */
		struct wf_sparse_push push;
		struct wf_sparse_pull pull;
	} msg;
};

static inline struct wf_sparse *
wf_sparse_of(const struct wf_lane *lane)
{
	return lane->own;
}

/* service_nack.c */
/* Refuses part `part` of a message with the recorded failure as the reason. False: WF_NACKS_MAX
 * refusals already wait to be sent. */
bool wf_nack_add(struct wf_peer *peer, uint64_t request_id, uint64_t step, uint32_t part);
/* Sends the refusals that wait. False: the transport accepts no more. */
bool wf_nack_flush(struct wf_lane *lane, struct wf_peer *peer);

/* service_check.c */
/* WEFT_INVALID, recorded: a key of the part belongs to another lane, or is outside the
 * vocabulary. */
enum weft_status wf_sparse_check_keys(const struct wf_sparse *sparse,
				      const struct wf_sparse_part *part,
				      const uint64_t *key) WEFT_MUST_CHECK;
/* Records the last failure again with the table's name, and with max_shard_bytes if the ceiling has
 * refused memory more than `refused` times in all. Returns the status of that failure. */
enum weft_status wf_sparse_fail_table(const struct wf_sparse *sparse, uint32_t idx,
				      uint64_t refused) WEFT_MUST_CHECK;

/* service_tables.c */
enum weft_status wf_sparse_on_table(struct wf_lane *lane, struct wf_peer *peer,
				    const struct wf_head *head,
				    const struct wf_sparse_table *msg) WEFT_MUST_CHECK;
/* The service's `begin`. */
enum weft_status wf_sparse_begin(struct wf_lane *lane,
				 const struct wf_msg_init *init) WEFT_MUST_CHECK;
/* Frees what a job has allocated, all of it or half. */
void wf_sparse_release(struct wf_lane *lane);

/* service_report.c */
void wf_sparse_gather(struct wf_lane *lane);
void wf_sparse_words(const struct wf_lane *lane, const struct wf_report_line *line, char *out,
		     size_t bytes);
void wf_sparse_lines(struct wf_lane *lane, bool job_ends);
/* Logs, at the end of a job, each table that has evicted or refused rows. */
void wf_sparse_log_gone(const struct wf_lane *lane);

/* service_watch.c */
bool wf_sparse_watch(const struct wf_lane *lane, uint32_t idx, struct wf_watch_record *out);

/* service_trace.c */
void wf_sparse_trace(const struct wf_lane *lane, struct wf_trace *ring);

/* Records an event of a step's rows, if the lane is recorded. */
static inline void
wf_sparse_note(const struct wf_lane *lane, enum wf_trace_what what, uint32_t peer, uint64_t step,
	       uint64_t value)
{
	if (__builtin_expect(lane->trace.ring != NULL, 0)) {
		wf_trace_note(lane->trace.ring, what, peer, 0, step, value);
	}
}

/* service_push.c */
enum weft_status wf_push_begin(struct wf_lane *lane, struct wf_peer *peer,
			       const struct wf_sparse_push *msg) WEFT_MUST_CHECK;
/* Receives the next part of the push, which lies at `data` in `slot`. */
enum weft_status wf_push_part(struct wf_lane *lane, struct wf_peer *peer, uint32_t slot,
			      const void *data) WEFT_MUST_CHECK;
/* Copies the gradients of part `idx` aside, so that its slot is free again. Returns their bytes. */
uint64_t wf_push_park(struct wf_lane *lane, struct wf_peer *peer, uint32_t idx);
/* Drops a push that is not complete, at DOWN. */
void wf_push_path_ends(struct wf_lane *lane, struct wf_peer *peer);
/* The service's stands, drop and enter. */
void wf_push_stands(const struct wf_lane *lane, const struct wf_peer *peer, uint64_t *applied,
		    uint64_t *received);
void wf_push_drop(struct wf_lane *lane, struct wf_peer *peer);
void wf_push_enter(struct wf_lane *lane, struct wf_peer *peer);
/* Applies the step if every push of it is complete. */
void wf_push_try_apply(struct wf_lane *lane);
/* Examines a bounded number of rows for expired ones. True: more are to be examined. */
bool wf_push_tend(struct wf_lane *lane);

static inline bool
wf_sparse_is_async(const struct wf_sparse *sparse)
{
	return sparse->tables.mode != WEFT_SPARSE_SYNC;
}

/* service_view.c */
/* Notes that rows are read for the batch that follows `step`. */
void wf_view_note_rows(const struct wf_sparse *sparse, struct wf_sparse_peer *own, uint64_t step);
/* Notes the end of `step`: a batch without rows on this lane is as old as that. */
void wf_view_note_end(const struct wf_sparse *sparse, struct wf_sparse_peer *own, uint64_t step);
/* Drops that note: a trainer that is out of data waits for the others, and reads no rows before
 * they are done. */
void wf_view_forget_end(struct wf_sparse_peer *own, uint64_t step);
/* Judges a push of `step`, which was computed from rows read for the step before: sets
 * own->lag.pushes to how old these are, and whether the push comes too late. */
void wf_view_judge(const struct wf_sparse *sparse, struct wf_sparse_peer *own, uint64_t step);

/* service_pull.c */
enum weft_status wf_pull_begin(struct wf_lane *lane, struct wf_peer *peer,
			       const struct wf_sparse_pull *msg) WEFT_MUST_CHECK;
enum weft_status wf_pull_part(struct wf_lane *lane, struct wf_peer *peer, uint32_t slot,
			      const void *data) WEFT_MUST_CHECK;
/* Makes all pulls that wait for `step` due. */
void wf_pull_step_is_applied(struct wf_lane *lane, uint64_t step);
/* Only an answer that waits for a free buffer waits for a DONE. */
static inline void
wf_pull_look_for_buffers(struct wf_lane *lane)
{
	const struct wf_sparse *sparse = lane->own;
	lane->turn.awaits_done = sparse->answers.used_up > 0;
}
/* Gathers answers and posts them. The caller checks whether a step waited for the last due pull. */
enum wf_flush wf_pull_flush(struct wf_lane *lane, struct wf_peer *peer);
void wf_pull_done(struct wf_lane *lane, uint64_t cookie);
void wf_pull_path_ends(struct wf_lane *lane, struct wf_peer *peer);

/* service_gather.c */
/* The cells that so many keys take. */
uint32_t wf_keys_cells(uint64_t keys);
/* Copies keys to the end of the pull's; there is room. */
void wf_keys_add(struct wf_key_cells *cells, struct wf_pull *pull, const uint64_t *key,
		 uint32_t count);
/* Forgets pull number `at`. */
void wf_pull_drop(struct wf_sparse *sparse, struct wf_sparse_peer *own, uint32_t at);

/* Rows to gather. */
struct wf_gather {
	const struct wf_key_cells *cells;
	uint16_t table;
	uint32_t row_count;
	bool create;
	bool ahead; /* keys that all have rows, or nothing */
	bool past;  /* past the caches, where that is possible */
};

/* Moves the cursor on by so many keys. */
static inline void
wf_keys_step(const struct wf_key_cells *cells, struct wf_key_cursor *from, uint32_t count)
{
	from->at += count;
	while (from->at >= WF_KEYS_OF_CELL) {
		from->at -= WF_KEYS_OF_CELL;
		from->cell = cells->cell[from->cell].next;
	}
}

/* Gathers rows into `out`, as they are sent, and moves the cursor on. Ahead: WEFT_AGAIN, not
 * recorded: wf_table_look_ahead found that it cannot be. */
enum weft_status wf_pull_gather(struct wf_sparse *sparse, const struct wf_gather *what,
				struct wf_key_cursor *from, uint8_t *out) WEFT_MUST_CHECK;
/* Whether the rows of a part are written past the caches. */
bool wf_pull_goes_past(const struct wf_sparse *sparse, const struct wf_sparse_peer *own,
		       const struct wf_pull_part *part);
/* Keys before `to` are not needed any more. */
void wf_pull_give_keys(struct wf_key_cells *cells, struct wf_pull *pull, struct wf_key_cursor to);
/* The buffer has the rows of part `idx` as they are after `step`: they are to be PUT. */
void wf_pull_answer(const struct wf_sparse *sparse, struct wf_sparse_peer *own,
		    const struct wf_pull *pull, uint32_t idx, uint32_t buffer, uint64_t step);
/* The next part of pull number `at` is answered. */
void wf_pull_part_ends(struct wf_sparse *sparse, struct wf_sparse_peer *own, uint32_t at);

/* service_ahead.c */
/* A pull begins, whose trainer allows it, or not. */
void wf_pull_ahead_begin(const struct wf_sparse *sparse, struct wf_pull *pull, bool allowed);
static inline bool
wf_pull_ahead_has_next(const struct wf_pull *pull)
{
	return pull->next < pull->ahead.sent;
}
/* Whether wf_pull_ahead_send may find something. */
bool wf_pull_ahead_may_send(const struct wf_lane *lane, const struct wf_peer *peer);
/* Gathers the next part that may be sent ahead into own->answer. False: there is none. */
bool wf_pull_ahead_send(struct wf_lane *lane, struct wf_peer *peer);
/* A push of the peer has arrived: more may be sent ahead, if its step is not applied yet. */
void wf_pull_ahead_go_on(struct wf_lane *lane, struct wf_peer *peer);
/* A step is applied: notes which keys it has pushed, which are dealt to their tables, if anything
 * was sent ahead of it. */
void wf_pull_ahead_note_step(struct wf_lane *lane, uint64_t step);
/* Sends what corrects the next part of pull number `at`, as far as one message has room. False: the
 * transport accepts no more. */
bool wf_pull_ahead_end_part(struct wf_lane *lane, struct wf_peer *peer, uint32_t at);

/* service_save.c */
enum weft_status wf_save_fetch(struct wf_lane *lane, struct wf_peer *peer,
			       const struct wf_sparse_fetch *msg) WEFT_MUST_CHECK;
/* Lists a bounded number of rows for a fetch. True: more are to be listed. */
bool wf_save_work(struct wf_lane *lane);
/* Whether a fetch of the peer can be gathered. */
bool wf_save_is_due(const struct wf_lane *lane, const struct wf_sparse_peer *own);
/* Gathers that fetch into an answer buffer of the peer, one of which must be free. Sets
 * own->answer, or refuses the fetch. */
void wf_save_gather(struct wf_lane *lane, struct wf_peer *peer);
enum weft_status wf_save_restore(struct wf_lane *lane, struct wf_peer *peer,
				 const struct wf_sparse_restore *msg) WEFT_MUST_CHECK;
enum weft_status wf_save_restore_part(struct wf_lane *lane, struct wf_peer *peer, uint32_t slot,
				      const void *data) WEFT_MUST_CHECK;
void wf_save_path_ends(struct wf_lane *lane, struct wf_peer *peer);
void wf_save_release(struct wf_sparse *sparse);

/* service_snapshot.c */
/* What a part has of a table of the job. */
struct wf_part_table wf_sparse_shape_of(const struct wf_sparse *sparse, uint32_t idx);
/* The tables are there, and the pserver takes snapshots: opens what they need. WEFT_UNSUPPORTED:
 * not with this job; WEFT_INVALID; WEFT_NOMEM. */
enum weft_status wf_sparse_snapshot_open(struct wf_lane *lane) WEFT_MUST_CHECK;
void wf_sparse_snapshot_close(struct wf_lane *lane);
/* Whether the step may be applied, whose pushes are dealt to their tables: what they change has
 * been copied. False: it is tried again when there is room. */
bool wf_sparse_snapshot_may_apply(struct wf_lane *lane, uint64_t step);
void wf_sparse_snapshot_applied(struct wf_lane *lane, uint64_t step);
/* The service's tick; `retry` tries again what waits. */
void wf_sparse_snapshot_tick(struct wf_lane *lane, uint64_t now_ns,
			     void (*retry)(struct wf_lane *lane));

/* service_load.c */
/* Before the first step. WEFT_MISMATCH: it is not of these tables; WEFT_DATA; WEFT_IO; WEFT_NOMEM.
 */
enum weft_status wf_sparse_load(struct wf_lane *lane,
				const struct wf_snapshot *from) WEFT_MUST_CHECK;

/* service_send.c */
enum wf_flush wf_sparse_flush(struct wf_lane *lane, struct wf_peer *peer);
