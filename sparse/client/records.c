/* SPDX-License-Identifier: Apache-2.0 */
/* records: weft_table_read and weft_table_write: the rows of a table with their state, to the
 * caller and back, partition by partition. Pieces have room of their own at the ends of the two
 * slabs. Thread: the owner's. */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "kernels/rows.h"
#include "sparse/client/session.h"
#include "trainer/session/gate.h"
#include "wire/little.h"
#include "wire/partition.h"

static const struct wf_table_desc *
desc_of(const struct weft_table *table)
{
	return &table->client->tables.desc[table->idx];
}

static struct wf_row_shape
shape_of(const struct weft_table *table)
{
	const struct wf_table_desc *desc = desc_of(table);
	return (struct wf_row_shape){
		.dim = desc->set.dim,
		.state_floats = (uint32_t)wf_row_state_floats(
			(enum wf_row_optimizer)desc->optimizer, desc->set.dim),
		.has_score = wf_table_has_scores(desc),
	};
}

uint32_t
weft_table_record_floats(const struct weft_table *table)
{
	const struct wf_row_shape shape = shape_of(table);
	return shape.dim + shape.state_floats;
}

static enum weft_status
check_caller(struct weft_table *table, const char *what)
{
	struct wf_client *client = table->client;
	struct weft_session *session = client->session;
	enum weft_status st = wf_exchange_check_running(session);
	if (st != WEFT_OK) {
		return st;
	}
	if (session->core.opts.trainer_id != 0) {
		return wf_fail(WEFT_INVALID,
			       "table %s: %s by trainer %u: only trainer 0 may do it, for all",
			       weft_table_name(table), what, session->core.opts.trainer_id);
	}
	if (client->step.handed_in != session->step && session->begun) {
		return wf_fail(WEFT_INVALID, "table %s: %s within step %" PRIu64 ": end it first",
			       weft_table_name(table), what, session->step);
	}
	if (atomic_load_explicit(&client->call.busy, memory_order_acquire) != 0) { /* B1 */
		return wf_fail(WEFT_INVALID,
			       "table %s: %s: the call before was interrupted and is unanswered; "
			       "end the session",
			       weft_table_name(table), what);
	}
	return wf_progress_wait_clear(session, &client->push.busy);
}

/* Sends the call to a lane, and waits for the answer. */
static enum weft_status
call(struct weft_table *table, uint32_t lane)
{
	struct wf_client *client = table->client;
	struct wf_client_call *asked = &client->call;
	asked->lane = lane;
	asked->table = table->idx;
	asked->step = client->session->step;
	asked->samples = client->core->start.init.samples;
	atomic_store_explicit(&asked->busy, 1, memory_order_relaxed); /* B1 */
	wf_progress_command(client->session, &(struct wf_command){.kind = WF_COMMAND_SERVICE,
								  .section = WF_CLIENT_CALL});
	enum weft_status st = wf_progress_wait_clear(client->session, &asked->busy);
	if (st == WEFT_OK && asked->status != WEFT_OK) {
		return wf_fail(asked->status, "table %s, sparse lane %u: %s",
			       weft_table_name(table), lane, asked->reason);
	}
	return st;
}

/* Reading. */

/* The partition that is being assembled. */
struct reading {
	struct weft_table *table;
	const struct weft_table_reader *to;
	struct wf_row_shape shape;
	size_t record;
	uint32_t partition; /* the next one, or the one that is here in part */
	uint16_t *counter;  /* [counter_count] */
	uint32_t counter_count;
	uint8_t *rows; /* [capacity] bytes of records */
	size_t used, capacity;
	float *floats;
	uint32_t step; /* of the table, on all lanes alike */
	bool has_step;
};

static enum weft_status
grow(struct reading *r, size_t more)
{
	struct wf_env *env = r->table->client->session->core.end.env;
	if (more <= r->capacity - r->used) {
		return WEFT_OK;
	}
	size_t capacity =
		r->capacity + more > 2 * r->capacity ? r->capacity + more : 2 * r->capacity;
	uint8_t *rows = wf_zalloc(env, capacity);
	if (rows == NULL) {
		return wf_fail(WEFT_NOMEM, "table %s: no memory for %zu bytes of partition %u",
			       weft_table_name(r->table), capacity, r->partition);
	}
	if (r->used > 0) {
		memcpy(rows, r->rows, r->used);
	}
	wf_free(env, r->rows, r->capacity);
	r->rows = rows;
	r->capacity = capacity;
	return WEFT_OK;
}

static enum weft_status
give_row(struct reading *r, size_t at)
{
	struct wf_row_record row;
	wf_row_record_get(&r->shape, r->rows + at, r->floats, &row);
	const struct weft_table_record out = {
		.key = row.key,
		.stamp = row.stamp,
		.born = row.born,
		.show = row.show,
		.click = row.click,
		.floats = row.floats,
	};
	return r->to->record(r->to->arg, &out);
}

/* Gives the caller all partitions before `end`. */
static enum weft_status
give_until(struct reading *r, uint32_t end)
{
	enum weft_status st = WEFT_OK;
	for (; r->partition < end && st == WEFT_OK; r->partition++) {
		const struct weft_table_partition out = {
			.partition = r->partition,
			.record_count = r->used / r->record,
			.counter = r->counter_count > 0 ? r->counter : NULL,
			.counter_count = r->counter_count,
		};
		st = r->to->partition(r->to->arg, &out);
		for (size_t at = 0; at < r->used && st == WEFT_OK; at += r->record) {
			st = give_row(r, at);
		}
		r->used = 0;
		memset(r->counter, 0, r->counter_count * sizeof(*r->counter));
	}
	return st;
}

static enum weft_status
read_section(struct reading *r, const struct wf_run_section *section)
{
	if (section->partition < r->partition) {
		return wf_fail(WEFT_DATA, "partition %u follows partition %u", section->partition,
			       r->partition);
	}
	enum weft_status st = give_until(r, section->partition);
	if (st != WEFT_OK) {
		return st;
	}
	if (section->kind == WF_RUN_COUNTERS) {
		if (section->count != r->counter_count) {
			return wf_fail(WEFT_DATA,
				       "%u counters of admission, but the table declares %u",
				       section->count, r->counter_count);
		}
		for (uint32_t i = 0; i < section->count; i++) {
			r->counter[i] = wf_load_u16(section->at + 2 * (size_t)i);
		}
		return WEFT_OK;
	}
	st = grow(r, section->bytes);
	if (st == WEFT_OK && section->bytes > 0) {
		memcpy(r->rows + r->used, section->at, section->bytes);
		r->used += section->bytes;
	}
	return st;
}

static bool
is_further(const struct wf_run_cursor *next, const struct wf_run_cursor *from)
{
	if (next->partition != from->partition) {
		return next->partition > from->partition;
	}
	return next->kind == WF_RUN_ROWS &&
	       (from->kind == WF_RUN_COUNTERS || next->key > from->key);
}

/* Reads the piece that has arrived, and moves `from` to what follows. */
static enum weft_status
read_piece(struct reading *r, struct wf_run_cursor *from, uint32_t end)
{
	struct wf_client *client = r->table->client;
	const uint8_t *piece = wf_client_piece(client);
	struct wf_run_head head;
	uint64_t used = WF_RUN_HEAD_BYTES;
	wf_run_head_get(piece, &head);
	if (head.request_id != client->call.id || head.bytes < WF_RUN_HEAD_BYTES ||
	    head.bytes > WF_CLIENT_PIECE || head.next.partition > end ||
	    !is_further(&head.next, from)) {
		return wf_fail(WEFT_DATA, "a piece of %u bytes goes on at partition %u of %u",
			       head.bytes, head.next.partition, end);
	}
	if (r->has_step && head.step != r->step) {
		return wf_fail(WEFT_DATA,
			       "lanes have tables of steps %u and %u: let all trainers wait "
			       "(weft_barrier) until the tables are read",
			       r->step, head.step);
	}
	r->step = head.step;
	r->has_step = true;
	enum weft_status st = WEFT_OK;
	while (used < head.bytes && st == WEFT_OK) {
		struct wf_run_section section;
		st = wf_run_section_get(&r->shape, piece, head.bytes, &used, &section);
		if (st == WEFT_OK) {
			st = section.partition < end ? read_section(r, &section)
						     : wf_fail(WEFT_DATA, "partition %u of %u",
							       section.partition, end);
		}
	}
	*from = head.next;
	return st;
}

static enum weft_status
read_lane(struct reading *r, uint32_t lane)
{
	struct wf_client *client = r->table->client;
	const uint32_t end = wf_partition_first(lane + 1, client->lane_count);
	struct wf_run_cursor from = {
		.partition = wf_partition_first(lane, client->lane_count),
		.kind = WF_RUN_COUNTERS,
	};
	enum weft_status st = WEFT_OK;
	while (from.partition < end && st == WEFT_OK) {
		client->call.fetches = true;
		client->call.from = from;
		st = call(r->table, lane);
		if (st == WEFT_OK) {
			st = read_piece(r, &from, end);
		}
	}
	return st == WEFT_OK ? give_until(r, end) : st;
}

enum weft_status
weft_table_step(struct weft_table *table, uint64_t *out)
{
	WF_ENTER(table->client->session);
	struct wf_client *client = table->client;
	struct wf_run_head head;
	enum weft_status st = check_caller(table, "step");
	if (st != WEFT_OK) {
		return st;
	}
	if (client->session->core.opts.sparse_mode == WEFT_SPARSE_SYNC) {
		*out = client->session->step;
		return WEFT_OK;
	}
	/* The first piece names the step, too, and a read that follows finds the rows listed. */
	client->call.fetches = true;
	client->call.from = (struct wf_run_cursor){.kind = WF_RUN_COUNTERS};
	st = call(table, 0);
	if (st == WEFT_OK) {
		wf_run_head_get(wf_client_piece(client), &head);
		*out = head.step;
	}
	return st;
}

enum weft_status
weft_table_read(struct weft_table *table, const struct weft_table_reader *to)
{
	WF_ENTER(table->client->session);
	struct wf_env *env = table->client->session->core.end.env;
	struct reading r = {.table = table, .to = to, .shape = shape_of(table)};
	enum weft_status st = check_caller(table, "read");
	if (st != WEFT_OK) {
		return st;
	}
	const size_t floats = (size_t)weft_table_record_floats(table) * sizeof(float);
	r.record = wf_row_record_bytes(&r.shape);
	r.counter_count = weft_table_counter_count(table);
	r.counter = wf_zalloc_array(env, (size_t)r.counter_count + 1, sizeof(*r.counter));
	r.floats = wf_zalloc(env, floats);
	if (r.counter == NULL || r.floats == NULL) {
		st = wf_fail(WEFT_NOMEM, "table %s: no memory for a record",
			     weft_table_name(table));
	}
	for (uint32_t l = 0; l < table->client->lane_count && st == WEFT_OK; l++) {
		st = read_lane(&r, l);
	}
	wf_free(env, r.counter, ((size_t)r.counter_count + 1) * sizeof(*r.counter));
	wf_free(env, r.floats, floats);
	wf_free(env, r.rows, r.capacity);
	return st;
}

/* Writing. */

struct writing {
	struct weft_table *table;
	struct wf_row_shape shape;
	uint8_t *piece;
	uint32_t used, bytes; /* of the piece */
	uint32_t section_at;  /* offset of the open section of rows; none if section_rows is 0 */
	uint32_t section_rows;
	uint32_t partition, lane;
};

static void
end_section(struct writing *w)
{
	if (w->section_rows > 0) {
		const struct wf_run_section section = {
			.partition = w->partition, .kind = WF_RUN_ROWS, .count = w->section_rows};
		wf_run_section_put(&section, w->piece + w->section_at);
	}
	w->section_rows = 0;
}

static enum weft_status
send_piece(struct writing *w)
{
	struct wf_client_call *asked = &w->table->client->call;
	end_section(w);
	asked->fetches = false;
	asked->bytes = w->used;
	w->used = 0;
	return call(w->table, w->lane);
}

/* Makes room for this many more bytes, in this piece or the next. */
static enum weft_status
make_room(struct writing *w, uint64_t bytes)
{
	if (bytes > w->bytes) {
		return wf_fail(WEFT_UNSUPPORTED,
			       "table %s: the next row with its state, or the counters of a "
			       "partition, take more than %u bytes: give the pservers larger slots",
			       weft_table_name(w->table), w->bytes);
	}
	return bytes > w->bytes - w->used ? send_piece(w) : WEFT_OK;
}

static enum weft_status
write_counters(struct writing *w, const struct weft_table_partition *part)
{
	if (part->counter == NULL || part->counter_count == 0) {
		return WEFT_OK;
	}
	enum weft_status st = make_room(w, WF_RUN_SECTION_BYTES + 2ull * part->counter_count);
	if (st != WEFT_OK) {
		return st;
	}
	const struct wf_run_section section = {
		.partition = w->partition, .kind = WF_RUN_COUNTERS, .count = part->counter_count};
	wf_run_section_put(&section, w->piece + w->used);
	w->used += WF_RUN_SECTION_BYTES;
	for (uint32_t i = 0; i < part->counter_count; i++, w->used += 2) {
		wf_store_u16(w->piece + w->used, part->counter[i]);
	}
	return WEFT_OK;
}

static enum weft_status
write_record(struct writing *w, const struct weft_table_record *in)
{
	const uint32_t record = (uint32_t)wf_row_record_bytes(&w->shape);
	const struct wf_row_record row = {
		.key = in->key,
		.stamp = in->stamp,
		.born = in->born,
		.show = in->show,
		.click = in->click,
		.floats = in->floats,
	};
	enum weft_status st = make_room(w, WF_RUN_SECTION_BYTES + record);
	if (st != WEFT_OK) {
		return st;
	}
	if (w->section_rows == 0) {
		w->section_at = w->used;
		w->used += WF_RUN_SECTION_BYTES;
	}
	wf_row_record_put(&w->shape, &row, w->piece + w->used);
	w->used += record;
	w->section_rows++;
	return WEFT_OK;
}

static enum weft_status
write_partition(struct writing *w, const struct weft_table_writer *from)
{
	struct weft_table_partition part = {0};
	enum weft_status st = from->partition(from->arg, w->partition, &part);
	if (st == WEFT_OK) {
		st = write_counters(w, &part);
	}
	for (uint64_t i = 0; i < part.record_count && st == WEFT_OK; i++) {
		struct weft_table_record record;
		st = from->record(from->arg, &record);
		if (st == WEFT_OK) {
			st = write_record(w, &record);
		}
	}
	end_section(w);
	return st;
}

enum weft_status
weft_table_write(struct weft_table *table, const struct weft_table_writer *from)
{
	WF_ENTER(table->client->session);
	struct wf_client *client = table->client;
	enum weft_status st = check_caller(table, "write");
	if (st != WEFT_OK) {
		return st;
	}
	const struct weft_session *session = client->session;
	if (session->begun || session->step != client->core->start.init.step) {
		return wf_fail(WEFT_INVALID,
			       "table %s: call weft_table_write after weft_session_start, and "
			       "before the first step",
			       weft_table_name(table));
	}
	client->call.table_step = from->step > 0 ? from->step : session->step;
	struct writing w = {
		.table = table,
		.shape = shape_of(table),
		.piece = (uint8_t *)client->send.base + client->send.bytes - WF_CLIENT_PIECE,
		.bytes = client->slot_bytes < WF_CLIENT_PIECE ? (uint32_t)client->slot_bytes
							      : WF_CLIENT_PIECE,
	};
	for (; w.lane < client->lane_count && st == WEFT_OK; w.lane++) {
		w.partition = wf_partition_first(w.lane, client->lane_count);
		uint32_t end = wf_partition_first(w.lane + 1, client->lane_count);
		for (; w.partition < end && st == WEFT_OK; w.partition++) {
			st = write_partition(&w, from);
		}
		st = st == WEFT_OK ? send_piece(&w)
				   : st; /* it carries the step, even without rows */
	}
	return st;
}
