/* SPDX-License-Identifier: Apache-2.0 */
/* outgoing: see outgoing.h. The lane writes `head`, the helper thread `tail`; both count bytes from
 * the beginning of the part, and the place in the ring is the rest of the division by its size. A
 * record, a block's description and its payload, is contiguous: what is left before the end of the
 * ring is skipped where a record does not fit. Thread: the lane's, but for what the task calls. */
#include "pserver/outgoing.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/ahead.h"
#include "base/assert.h"

#define ALIGN 64u
#define READY_BYTES ((uint64_t)128 << 20) /* of the ring, in one task */
#define READY_NS (10 * WF_NS_PER_MS)      /* between two looks whether it is over */
#define RETRY_NS WF_NS_PER_MS             /* between two looks at the helper thread */
#define AHEAD_NS (WF_NS_PER_S / 10)       /* the rate is held over this time */

/* In front of each payload. */
struct record {
	struct wf_part_block block;
	uint64_t bytes; /* of the record, and of the rest of the ring that is skipped after it */
	bool is_skip;   /* nothing follows before the ring's end */
};
WF_STATIC_ASSERT(sizeof(struct record) <= ALIGN, "a record's payload is aligned");

struct wf_outgoing {
	struct wf_task task; /* first: run is called with it */
	struct wf_outgoing_opts opts;
	struct wf_slab slab;
	struct wf_ahead ahead;        /* makes the ring present before the first part: */
	uint64_t ready_bytes;         /* requested so far */
	enum wf_outgoing_state state; /* the lane's view */

	/* The part, fixed from begin to rest. */
	struct wf_snapshot_id id;
	char leaf[WF_SNAPSHOT_LEAF_BYTES];
	struct wf_part_head part_head;
	uint64_t begin_ns;

	_Atomic uint64_t head;  /* lane: store release; helper: load acquire; O1 */
	_Atomic uint64_t tail;  /* helper: store release; lane: load acquire; O2 */
	_Atomic uint64_t limit; /* lane: how far the rate allows; relaxed, carries no data */
	_Atomic bool ended;     /* lane: store release: head is final; helper: load acquire; O3 */
	_Atomic bool given_up;  /* lane: relaxed, carries no data */
	uint64_t claimed;       /* bytes of the record that was claimed; 0: none */
	bool submitted;         /* the task is queued, runs, or has run and was not looked at */

	/* The helper thread's while the task is submitted; the lane's otherwise. */
	bool is_open;
	bool is_over; /* durable or failed */
	struct wf_snapshot_file file;
	struct wf_part_writer *writer;
	struct wf_part_sum sum;
	struct wf_error error; /* status OK: none */
};

static uint64_t
record_bytes(uint64_t payload_bytes)
{
	return ALIGN + ((payload_bytes + ALIGN - 1) & ~(uint64_t)(ALIGN - 1));
}

uint64_t
wf_outgoing_ring_bytes(uint64_t payload_bytes)
{
	/* With one of them in the ring another one fits before or behind it, or after it. */
	return 2 * record_bytes(payload_bytes);
}

/* ---- the helper thread ---- */

static enum weft_status
open_part(struct wf_outgoing *out)
{
	enum weft_status st =
		wf_snapshot_part_begin(out->opts.folder, out->id, out->leaf, &out->file);
	if (st != WEFT_OK) {
		return st;
	}
	st = wf_part_create(out->opts.env, &out->file.spot, &out->part_head, &out->writer);
	if (st != WEFT_OK) {
		return wf_snapshot_part_end(&out->file, st);
	}
	out->is_open = true;
	return WEFT_OK;
}

/* Ends the part's file; `st` is the result of writing it. */
static void
close_part(struct wf_outgoing *out, enum weft_status st)
{
	if (out->is_open) {
		out->is_open = false;
		st = wf_part_finish(out->writer, st, &out->sum);
		st = wf_snapshot_part_end(&out->file, st);
	}
	if (st != WEFT_OK) {
		out->error = *wf_error_record();
	}
	out->is_over = true;
}

/* Writes records up to `end`. */
static enum weft_status
write_records(struct wf_outgoing *out, uint64_t end)
{
	const uint64_t ring = out->opts.ring_bytes;
	uint64_t tail = atomic_load_explicit(&out->tail, memory_order_relaxed);
	enum weft_status st = WEFT_OK;
	while (tail < end && st == WEFT_OK) {
		const char *at = (const char *)out->slab.base + tail % ring;
		struct record record;
		memcpy(&record, at, sizeof(record));
		if (!record.is_skip) {
			st = wf_part_put(out->writer, &record.block, at + ALIGN);
		}
		tail += record.bytes;
		atomic_store_explicit(&out->tail, tail, memory_order_release); /* O2 */
	}
	return st;
}

static void
run(struct wf_task *task)
{
	struct wf_outgoing *out = (struct wf_outgoing *)task;
	bool ended = atomic_load_explicit(&out->ended, memory_order_acquire);   /* O3 */
	uint64_t head = atomic_load_explicit(&out->head, memory_order_acquire); /* O1 */
	uint64_t limit = atomic_load_explicit(&out->limit, memory_order_relaxed);
	enum weft_status st = out->is_open ? WEFT_OK : open_part(out);
	if (st == WEFT_OK && atomic_load_explicit(&out->given_up, memory_order_relaxed)) {
		st = wf_fail(WEFT_CLOSED, "the snapshot was given up");
	}
	if (st == WEFT_OK) {
		st = write_records(out, head < limit ? head : limit);
	}
	bool is_all = ended && atomic_load_explicit(&out->tail, memory_order_relaxed) == head;
	if (st != WEFT_OK || is_all) {
		close_part(out, st);
	}
}

/* ---- the lane ---- */

enum weft_status
wf_outgoing_open(const struct wf_outgoing_opts *opts, struct wf_outgoing **out)
{
	struct wf_outgoing *outgoing = wf_zalloc(opts->env, sizeof(*outgoing));
	if (outgoing == NULL) {
		return wf_fail(WEFT_NOMEM, "snapshot: %zu bytes", sizeof(*outgoing));
	}
	outgoing->opts = *opts;
	outgoing->opts.ring_bytes = opts->ring_bytes & ~(uint64_t)(ALIGN - 1);
	outgoing->task.run = run;
	outgoing->task.wake_fd = -1;
	enum weft_status st = opts->env->ops->slab_open(opts->env, outgoing->opts.ring_bytes,
							opts->numa_node, &outgoing->slab);
	if (st != WEFT_OK) {
		wf_free(opts->env, outgoing, sizeof(*outgoing));
		return st;
	}
	wf_ahead_init(&outgoing->ahead, opts->env);
	if (opts->before != NULL && opts->before->bytes > 0) {
		wf_ahead_begin(&outgoing->ahead, opts->before->base, opts->before->bytes);
	}
	*out = outgoing;
	return WEFT_OK;
}

/* Looks whether the task has run. */
static bool
is_busy(struct wf_outgoing *out)
{
	if (out->submitted && atomic_load_explicit(&out->task.done, memory_order_acquire)) {
		out->submitted = false;
	}
	return out->submitted;
}

void
wf_outgoing_close(struct wf_outgoing *outgoing)
{
	if (outgoing == NULL) {
		return;
	}
	struct wf_env *env = outgoing->opts.env;
	atomic_store_explicit(&outgoing->given_up, true, memory_order_relaxed);
	while (is_busy(outgoing)) {
		wf_wait(env, -1, wf_now_ns(env) + RETRY_NS);
	}
	if (outgoing->is_open) {
		close_part(outgoing, wf_fail(WEFT_CLOSED, "the job has ended"));
	}
	wf_ahead_fini(&outgoing->ahead);
	wf_slab_release(env, &outgoing->slab, false);
	wf_free(env, outgoing, sizeof(*outgoing));
}

enum wf_outgoing_state
wf_outgoing_state(const struct wf_outgoing *outgoing)
{
	return outgoing->state;
}

void
wf_outgoing_begin(struct wf_outgoing *outgoing, struct wf_snapshot_id id, const char *leaf,
		  const struct wf_part_head *head)
{
	WF_ASSERT(outgoing->state == WF_OUTGOING_IDLE && !outgoing->submitted);
	outgoing->id = id;
	(void)snprintf(outgoing->leaf, sizeof(outgoing->leaf), "%s", leaf);
	outgoing->part_head = *head;
	outgoing->begin_ns = wf_now_ns(outgoing->opts.env);
	atomic_store_explicit(&outgoing->head, 0, memory_order_relaxed);
	atomic_store_explicit(&outgoing->tail, 0, memory_order_relaxed);
	atomic_store_explicit(&outgoing->ended, false, memory_order_relaxed);
	atomic_store_explicit(&outgoing->given_up, false, memory_order_relaxed);
	outgoing->is_over = false;
	outgoing->error = (struct wf_error){0};
	outgoing->state = WF_OUTGOING_OPEN;
}

/* Puts a record at the ring's place of `head` and returns what is behind its description. */
static void *
lay_record(struct wf_outgoing *out, uint64_t head, const struct record *record)
{
	char *at = (char *)out->slab.base + head % out->opts.ring_bytes;
	memcpy(at, record, sizeof(*record));
	return at + ALIGN;
}

void *
wf_outgoing_claim(struct wf_outgoing *outgoing, const struct wf_part_block *block)
{
	WF_ASSERT(outgoing->state == WF_OUTGOING_OPEN && outgoing->claimed == 0);
	const uint64_t ring = outgoing->opts.ring_bytes;
	const uint64_t bytes = record_bytes(block->bytes);
	WF_ASSERT(bytes <= ring / 2);
	uint64_t head = atomic_load_explicit(&outgoing->head, memory_order_relaxed);
	uint64_t tail = atomic_load_explicit(&outgoing->tail, memory_order_acquire); /* O2 */
	uint64_t left = ring - head % ring; /* before the ring's end */
	uint64_t skip = left < bytes ? left : 0;
	if (bytes + skip > ring - (head - tail)) {
		return NULL;
	}
	if (skip > 0) {
		const struct record rest = {.bytes = skip, .is_skip = true};
		(void)lay_record(outgoing, head, &rest);
		head += skip;
		atomic_store_explicit(&outgoing->head, head, memory_order_release); /* O1 */
	}
	outgoing->claimed = bytes;
	return lay_record(outgoing, head, &(struct record){.block = *block, .bytes = bytes});
}

void
wf_outgoing_add(struct wf_outgoing *outgoing)
{
	WF_ASSERT(outgoing->claimed > 0);
	uint64_t head = atomic_load_explicit(&outgoing->head, memory_order_relaxed);
	atomic_store_explicit(&outgoing->head, head + outgoing->claimed,
			      memory_order_release); /* O1 */
	outgoing->claimed = 0;
}

void
wf_outgoing_end(struct wf_outgoing *outgoing)
{
	WF_ASSERT(outgoing->state == WF_OUTGOING_OPEN && outgoing->claimed == 0);
	outgoing->state = WF_OUTGOING_ENDING;
	atomic_store_explicit(&outgoing->ended, true, memory_order_release); /* O3 */
}

void
wf_outgoing_give_up(struct wf_outgoing *outgoing)
{
	if (outgoing->state == WF_OUTGOING_OPEN || outgoing->state == WF_OUTGOING_ENDING) {
		outgoing->claimed = 0;
		outgoing->state = WF_OUTGOING_ENDING;
		atomic_store_explicit(&outgoing->given_up, true, memory_order_relaxed);
	}
}

/* How far the part may be written now. */
static uint64_t
limit_at(const struct wf_outgoing *out, uint64_t now_ns)
{
	if (out->opts.rate == 0) {
		return UINT64_MAX;
	}
	double seconds = (double)(now_ns - out->begin_ns + AHEAD_NS) / (double)WF_NS_PER_S;
	double bytes = seconds * (double)out->opts.rate;
	return bytes < 0x1p64 ? (uint64_t)bytes : UINT64_MAX;
}

static void
submit(struct wf_outgoing *out)
{
	atomic_store_explicit(&out->task.done, false, memory_order_relaxed);
	out->submitted = true;
	enum weft_status st = out->opts.env->ops->submit(out->opts.env, &out->task);
	if (st != WEFT_OK) {
		out->submitted = false;
		close_part(out, st);
	}
}

/* Requests the next stretch of the ring. In a step that copies all slices the lane would otherwise
 * wait while the system finds and clears its pages. */
static uint64_t
make_ready(struct wf_outgoing *out, uint64_t now_ns)
{
	const uint64_t left = out->opts.ring_bytes - out->ready_bytes;
	if (left == 0 || out->ahead.ended) {
		return WF_NEVER;
	}
	if (wf_ahead_is_free(&out->ahead)) {
		const uint64_t bytes = left < READY_BYTES ? left : READY_BYTES;
		wf_ahead_begin(&out->ahead, (char *)out->slab.base + out->ready_bytes, bytes);
		out->ready_bytes += bytes;
	}
	return now_ns + READY_NS;
}

uint64_t
wf_outgoing_pump(struct wf_outgoing *outgoing, uint64_t now_ns)
{
	if (outgoing->state != WF_OUTGOING_OPEN && outgoing->state != WF_OUTGOING_ENDING) {
		return make_ready(outgoing, now_ns);
	}
	uint64_t limit = limit_at(outgoing, now_ns);
	atomic_store_explicit(&outgoing->limit, limit, memory_order_relaxed);
	if (!is_busy(outgoing) && !outgoing->is_over) {
		uint64_t tail = atomic_load_explicit(&outgoing->tail, memory_order_relaxed);
		uint64_t head = atomic_load_explicit(&outgoing->head, memory_order_relaxed);
		bool may_write = tail < head && tail < limit;
		bool may_end = outgoing->state == WF_OUTGOING_ENDING && tail == head;
		bool given_up = atomic_load_explicit(&outgoing->given_up, memory_order_relaxed);
		if (may_write || may_end || given_up) {
			submit(outgoing);
			(void)is_busy(outgoing); /* in a simulation it has run */
		}
	}
	if (!outgoing->submitted && outgoing->is_over) {
		outgoing->state = outgoing->error.status == WEFT_OK ? WF_OUTGOING_DURABLE
								    : WF_OUTGOING_FAILED;
		return now_ns;
	}
	return now_ns + RETRY_NS;
}

struct wf_part_sum
wf_outgoing_sum(const struct wf_outgoing *outgoing)
{
	WF_ASSERT(outgoing->state == WF_OUTGOING_DURABLE);
	return outgoing->sum;
}

const struct wf_error *
wf_outgoing_failure(const struct wf_outgoing *outgoing)
{
	WF_ASSERT(outgoing->state == WF_OUTGOING_FAILED);
	return &outgoing->error;
}

void
wf_outgoing_rest(struct wf_outgoing *outgoing)
{
	WF_ASSERT(outgoing->state == WF_OUTGOING_DURABLE || outgoing->state == WF_OUTGOING_FAILED);
	WF_ASSERT(!outgoing->submitted);
	outgoing->state = WF_OUTGOING_IDLE;
}
