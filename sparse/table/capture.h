/* SPDX-License-Identifier: Apache-2.0 */
/* capture: the state of a table at a border, the moment after one step and before the next, copied
 * out while later steps are applied. Thread: the lane's.
 *
 * A row is copied before it first changes or goes, or when the walk over all rows comes to it,
 * whichever is first; a bit for each row tells which have been copied. So a push has to wait for
 * copies of its own rows only, and no row is copied twice. (Groups of neighbouring rows would need
 * fewer bits. But keys are spread evenly, and a push of a few thousand would have to copy as many
 * groups, which is much of the table at once.) Admission's counters are copied by partition.
 *
 * What is copied leaves in blocks, through a sink that may be full. Rows gather in `pending` until
 * there is a block of them. Before a push is applied, wf_capture_copy_before makes every copy that
 * the push needs; if the sink is full, nothing of the push has been applied, and the copies count.
 * Rows that are evicted go to `pending`, too: room for them is made before.
 *
 * The copy has the rows that were live at the border: those without an update that a lookup created
 * later are left out, which changes no visible value.
 *
 * A copy may be a *delta* of the one before it: it has the rows that were born or updated since the
 * border of that one, which their own stamps show, and the keys of those that are gone, which a
 * list has (gone.h); of one key a row counts, and not that it was gone before. Counters are
 * complete in each copy. */
#pragma once

#include "sparse/table/scan.h"
#include "sparse/table/table.h"

struct wf_capture;

struct wf_capture_block {
	/* Of a partition, u16; or keys of rows that are gone, u64; otherwise records of rows
	 * (wire/row_record.h). */
	bool has_counters, has_gone;
	uint32_t first; /* partition; of rows, and of keys: number of the block, from 0 */
	uint32_t count; /* counters, keys or rows */
	uint64_t bytes;
};

/* Embedded in what the callee needs. */
struct wf_capture_sink {
	/* Where the payload of the block is to be written, or NULL: there is no room yet. */
	void *(*claim)(struct wf_capture_sink *sink, const struct wf_capture_block *block);
	/* The payload of the block that was claimed last is written. */
	void (*add)(struct wf_capture_sink *sink);
};

struct wf_capture_opts {
	struct wf_table *table;       /* lent until destroy */
	struct wf_capture_sink *sink; /* lent until destroy */
	uint64_t block_bytes;         /* of rows in a block, about; some rows are in each */
	/* Room for rows evicted at the cap; 0: 8 MiB. A push whose new keys might need more waits
	 * for the whole copy. */
	uint64_t evicted_bytes_max;
	bool has_deltas; /* lists what goes, so that a copy may be a delta */
};

enum wf_capture_news {
	WF_CAPTURE_MORE, /* there is more to copy */
	WF_CAPTURE_FULL, /* the sink has no room */
	WF_CAPTURE_DONE, /* all is copied and in the sink */
	/* The same, but a row that is gone could not be listed: the delta is not to be used. */
	WF_CAPTURE_SHORT,
};

/* Allocates from the table's env, not from its cap. WEFT_UNSUPPORTED: the table cannot go on from a
 * copy (wf_table_set_step); WEFT_NOMEM. */
enum weft_status wf_capture_create(const struct wf_capture_opts *opts,
				   struct wf_capture **out) WEFT_MUST_CHECK;
void wf_capture_destroy(struct wf_capture *capture); /* accepts NULL */
/* The bytes of the longest block. */
uint64_t wf_capture_longest(const struct wf_capture *capture);

/* The border is now. None is under way. `base`: the border of the copy of which this one is a
 * delta; 0: it is complete. WEFT_UNAVAILABLE: that was not the last one, or what is gone since is
 * not known; a complete one is possible. WEFT_NOMEM. After a failure nothing has begun. */
enum weft_status wf_capture_begin(struct wf_capture *capture, uint64_t base) WEFT_MUST_CHECK;
/* From begin until DONE or end. */
bool wf_capture_is_on(const struct wf_capture *capture);
/* To be called before each push while a capture is under way: copies what the push will change.
 * false: the sink is full; the push must not be applied before another call returns true. */
bool wf_capture_copy_before(struct wf_capture *capture,
			    const struct wf_table_push *push) WEFT_MUST_CHECK;
/* Copies more, about `bytes` of the table. */
enum wf_capture_news wf_capture_copy_some(struct wf_capture *capture, uint64_t bytes);
/* Gives up what is under way, if anything. */
void wf_capture_end(struct wf_capture *capture);
/* Rows that were live at the border, as far as the copy has come; a delta has not all of them. */
uint64_t wf_capture_rows(const struct wf_capture *capture);

/* ---- for the files of the table, while a capture is under way ---- */

/* The most rows that go when a key gets a row: its own, which has expired, and at the cap one for
 * memory and one for a place in the index. */
#define WF_CAPTURE_GONE_OF_KEY 3u
/* Whether `rows` rows may go: there is room for copies of them. */
bool wf_capture_may_remove(struct wf_capture *capture, uint64_t rows);
/* The row is about to go. */
void wf_capture_remove(struct wf_capture *capture, uint32_t row);
/* Whether wf_capture_copy_before has returned true for a push of the step. */
bool wf_capture_is_ready(const struct wf_capture *capture, uint64_t step);
