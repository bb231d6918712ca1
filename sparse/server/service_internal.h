/* SPDX-License-Identifier: Apache-2.0 */
/* service_internal: the structs of the sparse service, shared by its files only.
 *
 * service.c         which message and which part goes where
 * service_tables.c  the tables of the job, and all memory
 * service_nack.c    refusals that cost no connection
 * service_push.c    pushes: parts, what is kept of them, the apply
 * service_pull.c    pulls: keys, rows gathered for answers
 * service_view.c    asynchronous modes: how old the rows of a push are
 * service_save.c    rows with their state, fetched and put back
 * service_send.c    everything it sends
 * service_report.c  what its lines say
 *
 * Nothing here is taken after the job was opened, but by tables that grow. Thread: the lane's. */
#pragma once

#include "pserver/service.h"
#include "sparse/table/ceiling.h"
#include "sparse/table/scan.h"
#include "sparse/table/table.h"
#include "wire/sparse_messages.h"
#include "wire/tables.h"

#define WF_PULLS_MAX 16u /* unanswered, of one trainer */
#define WF_VIEWS_MAX 4u  /* steps for which the time of reading their rows is known */
/* Refusals of one trainer that are not sent yet: for all that it may have unanswered (pulls, a
 * push, a FETCH or RESTORE), and for the pull beyond the limit, which is refused. */
#define WF_NACKS_MAX (WF_PULLS_MAX + 3u)
#define WF_KEYS_OF_CELL 511u  /* keys are kept in cells of 4 KiB */
#define WF_WIDE_FLOATS 16384u /* some rows of the longest kind, many of short ones */
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
	uint32_t touched; /* cells beyond were never used */
	uint32_t free_first, free_count;
};

struct wf_pull_part {
	uint16_t table;
	uint32_t slot; /* of its keys; WF_SLOT_NONE: returned by CREDIT */
	uint32_t row_count;
	uint64_t offset; /* bytes, in the trainer's rows */
};

/* A pull, from its message to the gathering of its last part. */
struct wf_pull {
	uint64_t request_id;
	uint64_t step;
	bool create;
	bool is_due; /* its step is applied, and all its keys are here */
	uint32_t part_count;
	uint32_t next;    /* part to be gathered */
	uint32_t first;   /* cell of the next key */
	uint32_t last;    /* cell that keys are added to */
	uint32_t read_at; /* key within the first cell */
	uint32_t write_at;
	struct wf_pull_part part[WF_SPARSE_PARTS_MAX];
};

/* A part of a push. */
struct wf_push_part {
	uint32_t table;
	uint32_t row_count;
	/* Followed by show and click, if there are scores: in the window, or in its room. */
	const float *grad;
	const uint64_t *key; /* in the keep */
	uint8_t *room;       /* there, too, for the rest of it */
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
	bool refused; /* got NACK: its PUTs come all the same */
	bool last;    /* PUSH */
	uint64_t step;
	uint32_t next, count; /* parts */
	struct wf_pull *pull; /* PULL */
	uint32_t uncredited;  /* PULL: slots whose keys are copied, and are not given back */
	struct wf_sparse_part part[WF_SPARSE_PARTS_MAX];
};

/* An answer that is gathered and not yet accepted by the transport. */
struct wf_answer {
	bool due;
	uint32_t buffer;
	uint64_t bytes, offset;
	uint32_t tag;
};

/* Asynchronous: after how many pushes the rows of a batch were read. */
struct wf_view {
	uint64_t step;   /* that the pull named */
	uint64_t others; /* pushes of other trainers applied by then */
	bool is_set;
	bool has_rows; /* else it is the end of the step */
};

/* The pulls of a trainer: service_pull.c's. They are forgotten at DOWN. */
struct wf_pulls {
	struct wf_pull *pull;                /* [WF_PULLS_MAX] */
	struct wf_pull *order[WF_PULLS_MAX]; /* the first `count` are in use, oldest first */
	uint32_t count;
	struct wf_key_cells cells;
};

/* The push of a step: of step_next while it comes, of step_next - 1 when it is complete.
 * service_push.c's. */
struct wf_push_coming {
	bool begun, complete;
	bool refused; /* it was refused by NACK: its parts up to its last message are ignored */
	struct wf_step_said said;
	struct wf_push_part *part; /* [parts_max], the first `count` are here */
	uint32_t count;
	uint8_t *keep; /* [held_bytes] keys, and what is copied aside */
	uint64_t keep_used;
	uint32_t *rows; /* [table_count] */
};

/* Asynchronous: how old the rows of a push are: service_view.c's. */
struct wf_push_lag {
	struct wf_view view[WF_VIEWS_MAX]; /* by step */
	uint32_t verdict; /* of the push under way, as in its flags; 0: the lane computes it */
	/* For all tables. discarded: the push under way came too late: one verdict for all of
	 * it. */
	struct wf_order_view pushes;
};

/* What a trainer fetches and puts back: service_save.c's. It is forgotten at DOWN. */
struct wf_save_asked {
	bool fetching; /* a FETCH is not gathered */
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
	struct wf_answer answer;
	struct wf_save_asked save;
	bool applied_due;

	struct wf_push_coming push;
	struct wf_push_lag lag;
	struct wf_sparse_applied applied; /* the last one in which it takes part; step 0: none */
};

/* One table of the job on this lane. */
struct wf_served {
	struct wf_table *table; /* NULL: no partition falls to this lane */
	struct wf_row_opts row;
	uint32_t partition_first, partition_count;
	uint32_t row_bytes;   /* values, as sent */
	uint32_t front_bytes; /* of a row in a PUSH: all but the key, */
	uint32_t kept_bytes;  /* and of that as it is kept, in f32 */
	/* How values travel in 16 bits; NULL: in f32. */
	const struct wf_row_half *half;
	uint32_t rows_max;            /* that one trainer may push in a step */
	bool tends;                   /* rows can expire */
	struct wf_table_batch *batch; /* [batches_max] of the step being applied */
};

/* What trainer 0 fetches and puts back. */
struct wf_save {
	struct wf_scan *scan; /* NULL: none; of `table` after `step` */
	uint32_t table;
	uint64_t step;
	uint64_t version;      /* that it is of: it holds as long as that is the lane's */
	bool prepared;         /* partitions can be read */
	struct wf_peer *asker; /* while there is a scan */
	uint64_t restored_by;  /* incarnation; 0: nothing was put back */
	uint64_t restored_id;  /* the last request whose rows are in */
	float floats[WF_ROW_RECORD_FLOATS_MAX];
	uint16_t counter[WF_RUN_BYTES_MAX / 2];
};

/* How large a lane's memory for one trainer is: service_tables.c's, from the job's limits. */
struct wf_sparse_sizes {
	uint32_t slot_count;
	uint64_t slot_bytes;
	uint64_t held_bytes; /* of a push, and of the keys of pulls */
	uint32_t parts_max;  /* of a push */
};

/* Memory of the trainers: service_tables.c's. */
struct wf_rooms {
	struct wf_slab keep; /* [peers.count] of held_bytes, of pushes */
	struct wf_slab keys; /* [peers.count] of held_bytes, of pulls */
};

/* Asynchronous modes: what the lag of a push is counted in. */
struct wf_sparse_async {
	uint64_t pushes; /* that were applied */
	struct wf_order_terms terms;
};

/* Scratch of an apply: parts are dealt to their tables. service_push.c's. */
struct wf_deal {
	struct wf_table_batch *batch; /* [peers.count * parts_max] */
	uint32_t *next;               /* [desc_count] */
};

/* The look for rows whose time is over, after each step: service_push.c's. */
struct wf_tending {
	uint32_t table; /* the next one */
	uint64_t rows;  /* still to be looked at */
};

/* lane->own. */
struct wf_sparse {
	struct wf_tables tables;
	struct wf_table_desc *desc; /* [desc_count], as they come */
	uint32_t desc_count, desc_received;
	struct wf_served *served;    /* [desc_count] */
	struct wf_ceiling ceiling;   /* of the tables' memory */
	struct wf_sparse_peer *peer; /* [peers.count]: lane->peers.own, from alloc on */

	struct wf_sparse_sizes size;
	struct wf_staging answers; /* a window for each trainer, in slots of slot_bytes */
	struct wf_rooms rooms;

	uint64_t version; /* step of the tables; asynchronous: pushes of all, dropped ones too */
	struct wf_sparse_async async;
	uint32_t due_pulls; /* that are not gathered to the end: no step is applied meanwhile */
	struct wf_deal deal;
	struct wf_save save;
	struct wf_tending tend;
	uint64_t *key_scratch;      /* [WF_SPARSE_ROWS_MAX or what fits a slot] of a pull's part */
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
/* Refuses part `part` of a message with the recorded failure as the reason. False: too many
 * refusals wait to be sent. */
bool wf_nack_add(struct wf_peer *peer, uint64_t request_id, uint64_t step, uint32_t part);
/* Sends them. False: the transport accepts no more. */
bool wf_nack_flush(struct wf_lane *lane, struct wf_peer *peer);

/* service_tables.c */
/* A key of a part that is not this lane's, or not in the vocabulary: recorded as WEFT_INVALID. */
enum weft_status wf_sparse_check_keys(const struct wf_sparse *sparse,
				      const struct wf_sparse_part *part,
				      const uint64_t *key) WEFT_MUST_CHECK;
/* Record what the table has just refused once more, with its name, and with max_shard_bytes if the
 * ceiling has refused more than `refused` times by now. Returns the status of the refusal. */
enum weft_status wf_sparse_fail_table(const struct wf_sparse *sparse, uint32_t idx,
				      uint64_t refused) WEFT_MUST_CHECK;
enum weft_status wf_sparse_on_table(struct wf_lane *lane, struct wf_peer *peer,
				    const struct wf_head *head,
				    const struct wf_sparse_table *msg) WEFT_MUST_CHECK;
/* Frees what a job allocated, also if it is half allocated. */
void wf_sparse_release(struct wf_lane *lane);

/* service_report.c */
void wf_sparse_gather(struct wf_lane *lane);
void wf_sparse_words(const struct wf_lane *lane, const struct wf_report_line *line, char *out,
		     size_t bytes);
void wf_sparse_lines(struct wf_lane *lane, bool job_ends);
/* A job ends: logs each table that has evicted or refused rows. */
void wf_sparse_log_gone(const struct wf_lane *lane);

/* service_push.c */
enum weft_status wf_push_begin(struct wf_lane *lane, struct wf_peer *peer,
			       const struct wf_sparse_push *msg) WEFT_MUST_CHECK;
/* The next part of it has come. */
enum weft_status wf_push_part(struct wf_lane *lane, struct wf_peer *peer, uint32_t slot,
			      const void *data) WEFT_MUST_CHECK;
/* Copy the gradients of part `idx` aside, so that its slot is free again. Returns bytes. */
uint64_t wf_push_park(struct wf_lane *lane, struct wf_peer *peer, uint32_t idx);
/* DOWN: what is not complete is dropped. */
void wf_push_path_ends(struct wf_lane *lane, struct wf_peer *peer);
/* Applies the step, if everything is here. */
void wf_push_try_apply(struct wf_lane *lane);
/* A bounded piece of looking for rows whose time is over. */
bool wf_push_tend(struct wf_lane *lane);

static inline bool
wf_sparse_is_async(const struct wf_sparse *sparse)
{
	return sparse->tables.mode != WEFT_SPARSE_SYNC;
}

/* service_view.c */
/* Rows are read for what comes after `step`. */
void wf_view_note_rows(const struct wf_sparse *sparse, struct wf_sparse_peer *own, uint64_t step);
/* A batch that will have no rows here is as old as the end of the step before it. */
void wf_view_note_end(const struct wf_sparse *sparse, struct wf_sparse_peer *own, uint64_t step);
/* A trainer that is out of data waits for the others, and reads no rows before they are done. */
void wf_view_forget_end(struct wf_sparse_peer *own, uint64_t step);
/* A push of `step` begins, computed from rows that were read for the step before: own->lag.pushes
 * is how old they are, and decides whether it comes too late. */
void wf_view_judge(const struct wf_sparse *sparse, struct wf_sparse_peer *own, uint64_t step);

/* service_pull.c */
enum weft_status wf_pull_begin(struct wf_lane *lane, struct wf_peer *peer,
			       const struct wf_sparse_pull *msg) WEFT_MUST_CHECK;
enum weft_status wf_pull_part(struct wf_lane *lane, struct wf_peer *peer, uint32_t slot,
			      const void *data) WEFT_MUST_CHECK;
/* All pulls that wait for `step` are due. */
void wf_pull_step_is_applied(struct wf_lane *lane, uint64_t step);
/* Gather and post. The caller looks whether a step waited for the last pull that was due. */
enum wf_flush wf_pull_flush(struct wf_lane *lane, struct wf_peer *peer);
void wf_pull_done(struct wf_lane *lane, uint64_t cookie);
void wf_pull_path_ends(struct wf_lane *lane, struct wf_peer *peer);

/* service_save.c */
enum weft_status wf_save_fetch(struct wf_lane *lane, struct wf_peer *peer,
			       const struct wf_sparse_fetch *msg) WEFT_MUST_CHECK;
/* A bounded piece of listing rows. Whether there is more. */
bool wf_save_work(struct wf_lane *lane);
/* Whether a fetch of the peer can be gathered. */
bool wf_save_is_due(const struct wf_lane *lane, const struct wf_sparse_peer *own);
/* Gathers it into an answer buffer of the peer, which has a free one. Sets own->answer, or refuses
 * the fetch. */
void wf_save_gather(struct wf_lane *lane, struct wf_peer *peer);
enum weft_status wf_save_restore(struct wf_lane *lane, struct wf_peer *peer,
				 const struct wf_sparse_restore *msg) WEFT_MUST_CHECK;
enum weft_status wf_save_restore_part(struct wf_lane *lane, struct wf_peer *peer, uint32_t slot,
				      const void *data) WEFT_MUST_CHECK;
void wf_save_path_ends(struct wf_lane *lane, struct wf_peer *peer);
void wf_save_release(struct wf_sparse *sparse);

/* service_send.c */
enum wf_flush wf_sparse_flush(struct wf_lane *lane, struct wf_peer *peer);
