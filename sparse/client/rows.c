/* SPDX-License-Identifier: Apache-2.0 */
/* rows: one batch of a table: pull, wait, push, give back. Thread: the owner's. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "sparse/client/session.h"
#include "trainer/session/gate.h"

/* A lane keeps keys of pulls in pages of this many: struct wf_key_cell of sparse/server. */
#define PAGE_BYTES 4096u
#define KEYS_OF_PAGE 511u
#define WIDEN_BLOCK 512u /* values that are widened at a time */

static bool
is_under_way(const struct weft_rows *rows)
{
	return atomic_load_explicit(&rows->busy, memory_order_acquire) != 0; /* B1 */
}

/* Widens to f32, from the first value on. The received values lie so far behind that none is
 * overwritten before it is read. */
static void
widen(struct weft_rows *rows)
{
	const struct wf_row_half *half = &wf_kernels_best()->rows->half[wf_client_format(rows)];
	const uint8_t *from = (const uint8_t *)rows->values + wf_client_landing(rows);
	size_t count = wf_client_landed_bytes(rows) / sizeof(uint16_t);
	uint16_t block[WIDEN_BLOCK];
	for (size_t at = 0; at < count; at += WIDEN_BLOCK) {
		size_t n = count - at < WIDEN_BLOCK ? count - at : WIDEN_BLOCK;
		memcpy(block, from + at * sizeof(uint16_t), n * sizeof(uint16_t));
		half->widen(rows->values + at, block, n);
	}
	rows->narrow = false;
	rows->table->copied_bytes += count * sizeof(float);
}

/* Whether this is the pull of the last table for its step: then nothing more is likely to come. */
static bool
is_last_pull(const struct weft_rows *rows)
{
	struct wf_client_step *step = &rows->table->client->step;
	step->pulled_count = step->pulled_for == rows->wants ? step->pulled_count : 0;
	step->pulled_for = rows->wants;
	step->pulled_count++;
	return step->pulled_count >= rows->table->client->tables.count;
}

/* An unused batch; NULL: there is none. */
static struct weft_rows *
find_free(struct weft_table *table)
{
	for (uint32_t i = 0; i < WF_CLIENT_BATCHES; i++) {
		struct weft_rows *rows = &table->rows[i];
		bool left = rows->state == WF_ROWS_ABANDONED && !is_under_way(rows);
		if (rows->state == WF_ROWS_FREE || left) {
			rows->state = WF_ROWS_FREE;
			return rows;
		}
	}
	return NULL;
}

/* Bytes that a lane keeps of a push, by its own rule: keys, then the rest of each part. */
static uint64_t
push_bytes(const struct weft_rows *rows, uint32_t lane)
{
	const struct wf_table_desc *desc = &rows->table->client->tables.desc[rows->table->idx];
	uint64_t kept = wf_table_kept_bytes(desc);
	uint64_t sum = 0;
	for (uint32_t i = rows->view.lane_part[lane]; i < rows->view.lane_part[lane + 1]; i++) {
		uint64_t row_count = rows->view.part[i].row_count;
		sum += wf_client_aligned(row_count * WF_KEY_BYTES) +
		       wf_client_aligned(row_count * kept);
	}
	return sum;
}

/* Bytes that a lane keeps of a pull: pages of keys, the last page of each message not full. */
static uint64_t
pull_bytes(const struct weft_rows *rows, uint32_t lane)
{
	uint64_t row_count = rows->view.lane_first[lane + 1] - rows->view.lane_first[lane];
	uint64_t parts = rows->view.lane_part[lane + 1] - rows->view.lane_part[lane];
	uint64_t pages = row_count / KEYS_OF_PAGE + parts / WF_SPARSE_PARTS_MAX + 1;
	return row_count == 0 ? 0 : pages * PAGE_BYTES;
}

static bool
counts(const struct weft_rows *rows, bool push)
{
	return push ? rows->state == WF_ROWS_PUSHED
		    : rows->state != WF_ROWS_FREE && is_under_way(rows);
}

static uint64_t
bytes_of(const struct weft_rows *rows, uint32_t lane, bool push)
{
	return push ? push_bytes(rows, lane) : pull_bytes(rows, lane);
}

/* Checks what the lane would keep of this trainer, in pushes or in pulls, with `extra`. */
static enum weft_status
check_held_on(const struct weft_rows *extra, uint32_t lane, bool push)
{
	const struct wf_client *client = extra->table->client;
	uint64_t sum = bytes_of(extra, lane, push);
	for (uint32_t i = 0; i < client->tables.count * WF_CLIENT_BATCHES; i++) {
		const struct weft_rows *rows = wf_client_rows(client, i);
		sum += rows != extra && counts(rows, push) ? bytes_of(rows, lane, push) : 0;
	}
	if (sum <= client->held_bytes) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_INVALID,
		       "table %s: sparse lane %u would keep %" PRIu64
		       " bytes of this trainer's %s, but it keeps up to %" PRIu64
		       ": make batches smaller, or use more sparse lanes",
		       weft_table_name(extra->table), lane, sum, push ? "push" : "pulls",
		       client->held_bytes);
}

static enum weft_status
check_held(const struct weft_rows *rows, bool push)
{
	const struct wf_client *client = rows->table->client;
	enum weft_status st = WEFT_OK;
	for (uint32_t l = 0; l < client->lane_count && client->step.tight && st == WEFT_OK; l++) {
		st = check_held_on(rows, l, push);
	}
	return st;
}

static enum weft_status
fill(struct weft_rows *rows, const uint64_t *key, uint32_t count, unsigned flags)
{
	bool in_order = (flags & WEFT_ROWS_IN_ORDER) != 0;
	enum weft_status st = in_order ? wf_batch_fill_in_order(rows->batch, key, count)
				       : wf_batch_fill(rows->batch, key, count);
	if (st != WEFT_OK) {
		return wf_fail(st, "table %s: %s", weft_table_name(rows->table), weft_last_error());
	}
	wf_batch_view(rows->batch, &rows->view);
	return check_held(rows, false);
}

enum weft_status
weft_rows_pull(struct weft_table *table, const uint64_t *key, uint32_t count, unsigned flags,
	       struct weft_rows **out)
{
	WF_ENTER(table->client->session);
	struct weft_session *session = table->client->session;
	enum weft_status st = wf_exchange_check_running(session);
	if (st != WEFT_OK) {
		return st;
	}
	if ((flags & ~(unsigned)(WEFT_ROWS_CREATE | WEFT_ROWS_IN_ORDER)) != 0) {
		return wf_fail(WEFT_INVALID,
			       "table %s: flags 0x%x: WEFT_ROWS_CREATE and WEFT_ROWS_IN_ORDER are "
			       "known",
			       weft_table_name(table), flags);
	}
	if (key == NULL && count > 0) {
		return wf_fail(WEFT_INVALID, "table %s: the array of %u keys is NULL",
			       weft_table_name(table), count);
	}
	struct weft_rows *rows = find_free(table);
	if (rows == NULL) {
		return WEFT_AGAIN;
	}
	st = fill(rows, key, count, flags);
	if (st != WEFT_OK) {
		return st;
	}
	wf_batch_put_keys(rows->batch, rows->send);
	rows->state = WF_ROWS_PULLED;
	rows->wants = session->step;
	rows->flags = flags;
	rows->narrow = wf_client_format(rows) != WEFT_VALUES_F32;
	rows->status = WEFT_OK;
	wf_client_count_pull(rows, key);
	const bool is_last = is_last_pull(rows);
	*out = rows;
	if (rows->view.row_count > 0) {
		atomic_store_explicit(&rows->busy, 1, memory_order_relaxed); /* B1 */
		wf_progress_command(session, &(struct wf_command){.kind = WF_COMMAND_SERVICE,
								  .section = WF_CLIENT_PULL,
								  .tensor = rows->idx});
		wf_progress_send(session, rows->view.row_count * sizeof(uint64_t));
	}
	if (is_last) { /* so that the lanes work on it while the caller computes */
		wf_progress_turn(session);
	}
	return WEFT_OK;
}

static enum weft_status
status_of(const struct weft_rows *rows)
{
	if (rows->status == WEFT_OK) {
		return WEFT_OK;
	}
	return wf_fail(rows->status, "table %s, rows of step %" PRIu64 ": %s",
		       weft_table_name(rows->table), rows->wants, rows->reason);
}

enum weft_status
weft_rows_wait(struct weft_rows *rows)
{
	WF_ENTER(rows->table->client->session);
	struct wf_client *client = rows->table->client;
	struct weft_session *session = client->session;
	bool sync = session->core.opts.sparse_mode == WEFT_SPARSE_SYNC;
	bool open = session->begun && client->step.handed_in != session->step;
	if (is_under_way(rows) && sync && open && rows->wants == session->step) {
		return wf_fail(WEFT_INVALID,
			       "table %s: rows of step %" PRIu64 " are waited for, which this "
			       "trainer has not handed in: push every table, or call "
			       "weft_wait_all first",
			       weft_table_name(rows->table), session->step);
	}
	enum weft_status st = wf_progress_wait_clear(session, &rows->busy);
	if (st == WEFT_OK) {
		st = status_of(rows);
	}
	if (st == WEFT_OK && rows->narrow) {
		widen(rows);
	}
	return st;
}

uint32_t
weft_rows_count(const struct weft_rows *rows)
{
	return rows->view.row_count;
}

const uint64_t *
weft_rows_keys(const struct weft_rows *rows)
{
	return rows->view.key;
}

const uint32_t *
weft_rows_place(const struct weft_rows *rows)
{
	return rows->view.place;
}

const float *
weft_rows_values(const struct weft_rows *rows)
{
	return rows->values;
}

int
weft_rows_in_order(const struct weft_rows *rows)
{
	return rows->view.is_straight;
}

enum weft_status
weft_rows_gather(const struct weft_rows *rows, float *out)
{
	WF_ENTER(rows->table->client->session);
	const size_t dim = weft_table_dim(rows->table);
	bool is_there = rows->state != WF_ROWS_FREE && !is_under_way(rows);
	if (is_there && rows->status != WEFT_OK) {
		return status_of(rows);
	}
	if (!is_there || rows->narrow) {
		enum weft_status st = wf_exchange_check_running(rows->table->client->session);
		return st != WEFT_OK ? st
				     : wf_fail(WEFT_INVALID,
					       "table %s: rows are gathered before weft_rows_wait",
					       weft_table_name(rows->table));
	}
	for (uint32_t i = 0; i < rows->view.key_count; i++) {
		memcpy(out + i * dim, rows->values + rows->view.place[i] * dim, dim * sizeof(*out));
	}
	rows->table->copied_bytes += rows->view.key_count * dim * sizeof(*out);
	return WEFT_OK;
}

static enum weft_status
check_push(const struct weft_rows *rows, const float *grad)
{
	const struct weft_table *table = rows->table;
	const struct wf_client *client = table->client;
	const struct weft_session *session = client->session;
	const char *name = weft_table_name(table);
	if (!session->begun) {
		return wf_fail(WEFT_INVALID, "push of table %s before weft_step", name);
	}
	if (table->pushed_step == session->step) {
		return wf_fail(WEFT_INVALID, "push of table %s twice in step %" PRIu64, name,
			       session->step);
	}
	if (client->step.handed_in == session->step) {
		return wf_fail(WEFT_INVALID,
			       "push of table %s: step %" PRIu64 " is handed in already, with an "
			       "empty push of this table",
			       name, session->step);
	}
	if (rows->state != WF_ROWS_PULLED || is_under_way(rows)) {
		return wf_fail(WEFT_INVALID,
			       "push of table %s: the batch was not waited for, or is pushed or "
			       "freed already",
			       name);
	}
	if (grad == NULL && rows->view.key_count > 0) {
		return wf_fail(WEFT_INVALID, "push of table %s: the array of gradients is NULL",
			       name);
	}
	enum weft_status st = status_of(rows);
	return st == WEFT_OK ? check_held(rows, true) : st;
}

enum weft_status
weft_rows_push(struct weft_rows *rows, const float *grad, const float *show, const float *click)
{
	WF_ENTER(rows->table->client->session);
	struct weft_table *table = rows->table;
	struct wf_client *client = table->client;
	struct weft_session *session = client->session;
	enum weft_status st = wf_exchange_check_running(session);
	if (st == WEFT_OK) {
		st = check_push(rows, grad);
	}
	if (st != WEFT_OK) {
		return st;
	}
	const struct wf_batch_grads grads = {.grad = grad, .show = show, .click = click};
	wf_batch_put_grads(rows->batch, &grads, rows->send);
	rows->state = WF_ROWS_PUSHED;
	table->pushed_step = session->step;
	client->step.pushed[table->idx] = rows;
	client->step.pushed_count++;
	wf_client_count_push(rows);
	if (client->step.pushed_count < client->tables.count) {
		return WEFT_OK;
	}
	st = wf_client_hand_in(session);
	if (st == WEFT_OK) {
		wf_progress_send(session, (uint64_t)rows->view.row_count *
						  client->tables.desc[table->idx].set.dim *
						  sizeof(float));
	}
	return st;
}

void
weft_rows_free(struct weft_rows *rows)
{
	if (rows == NULL) {
		return;
	}
	const struct wf_visit visit = wf_gate_enter(rows->table->client->session);
	if (visit.status == WEFT_OK && rows->state == WF_ROWS_PULLED) {
		rows->state = is_under_way(rows) ? WF_ROWS_ABANDONED : WF_ROWS_FREE;
	}
	wf_gate_leave(&visit);
}
