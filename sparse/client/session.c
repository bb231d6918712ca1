/* SPDX-License-Identifier: Apache-2.0 */
/* session: what a session calls for its tables: memory, start, the end of a step, the end. Thread:
 * the owner's; that of waiting_since and describe_wait is the core's. */
#include "sparse/client/session.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "exchange/buffers.h"

static enum weft_status
seal(struct weft_session *session)
{
	struct wf_client *client = wf_client_of(session);
	const struct wf_tables tables = {
		.grad_reduce = session->core.job.set.grad_reduce,
		.skips_nonfinite = wf_job_skips(&session->core.job),
		.mode = (uint8_t)session->core.opts.sparse_mode,
		.staleness = session->core.opts.sparse_staleness,
		.discard_ratio = session->core.opts.sparse_discard_ratio,
		.table_count = client->tables.count,
		.table = client->tables.desc,
	};
	enum weft_status st = wf_tables_check(&tables);
	if (st == WEFT_OK) {
		st = wf_client_slabs_alloc(client);
	}
	if (st == WEFT_OK && client->link == NULL) {
		client->link = wf_zalloc_array(session->core.end.env, client->lane_count,
					       sizeof(*client->link));
		st = client->link != NULL
			     ? WEFT_OK
			     : wf_fail(WEFT_NOMEM, "session: no memory for %u sparse lanes",
				       client->lane_count);
	}
	if (st != WEFT_OK) {
		wf_client_slabs_release(client);
		return st;
	}
	const uint32_t trainers = session->core.job.set.num_gradient_servers;
	client->judges = client->lane_count > 1 && trainers > 1 &&
			 tables.mode != WEFT_SPARSE_SYNC && tables.discard_ratio * trainers >= 1;
	client->looks_ahead =
		session->core.values.sparse_look_ahead && tables.mode == WEFT_SPARSE_SYNC;
	client->tables.digest = wf_tables_digest(&tables);
	client->tables.bytes = wf_tables_bytes(&tables);
	wf_client_slabs_deal(client);
	return WEFT_OK;
}

static struct wf_link *
lane_link(const struct wf_core *core, uint32_t lane)
{
	const struct wf_client *client = core->service.state;
	client->link[lane] = (struct wf_client_link){0};
	return &client->link[lane].link;
}

static enum weft_status
open_client(struct weft_session *session)
{
	struct wf_client *client = wf_client_of(session);
	client->place.bytes = client->rows.bytes;
	struct wf_transport *transport = session->core.turn.transport;
	enum weft_status st = wf_buffers_add(transport, &client->rows, &client->place.region);
	if (st == WEFT_OK) {
		st = wf_buffers_add(transport, &client->send, &client->send_region);
	}
	client->slot_bytes = UINT64_MAX;
	client->held_bytes = UINT64_MAX;
	atomic_store_explicit(&client->up_busy, 1, memory_order_relaxed); /* B1 */
	return st;
}

/* Makes the batches: they are cut to the lanes' slots, which are known now. */
static enum weft_status
alloc_batches(struct wf_client *client)
{
	for (uint32_t i = 0; i < client->tables.count * WF_CLIENT_BATCHES; i++) {
		struct weft_rows *rows = wf_client_rows(client, i);
		const struct wf_table_desc *desc = &client->tables.desc[rows->table->idx];
		const struct wf_batch_opts opts = {
			.dim = desc->set.dim,
			.format = desc->set.wire,
			.vocabulary = desc->set.vocabulary,
			.lane_count = client->lane_count,
			.keys_max = rows->table->keys_max,
			.part_bytes_max = client->slot_bytes,
			.has_scores = wf_table_has_scores(desc),
			.may_delta = rows->table->may_delta,
		};
		enum weft_status st =
			wf_batch_create(client->session->core.end.env, &opts, &rows->batch);
		if (st != WEFT_OK) {
			return st;
		}
		WF_ASSERT(wf_batch_send_bytes(rows->batch) <= wf_client_send_bytes(rows->table));
		WF_ASSERT(wf_batch_rows_bytes(rows->batch) <= wf_client_rows_bytes(rows->table));
	}
	return WEFT_OK;
}

/* Whether all batches together, pulled or pushed, could exceed what a lane keeps of a trainer. */
static bool
may_run_out(const struct wf_client *client)
{
	uint64_t pulls = 0;
	uint64_t push = 0;
	for (uint32_t i = 0; i < client->tables.count; i++) {
		uint64_t keys = client->tables.table[i]->keys_max;
		pulls += WF_CLIENT_BATCHES * 2 * (keys * WF_KEY_BYTES + 4096);
		push += 2 * wf_client_send_bytes(client->tables.table[i]);
	}
	return pulls > client->held_bytes || push > client->held_bytes;
}

/* Tables are of the step at which the dense lanes begin; where trainer 0 restores the job, they are
 * after that. */
static enum weft_status
check_steps(struct weft_session *session)
{
	const struct wf_core *core = &session->core;
	const uint64_t step = core->start.init.step;
	for (uint32_t i = core->links.dense_count; i < core->links.count; i++) {
		const struct wf_client_link *cl =
			(const struct wf_client_link *)(const void *)core->links.all[i];
		bool restored = step > 0 && !core->start.is_loaded;
		if (!restored && cl->begins_at != step) {
			wf_session_fail(session, WEFT_MISMATCH,
					"the pservers do not begin at the same step: pserver %u "
					"sparse lane %u is at step %" PRIu64
					", the dense lanes at step %" PRIu64
					"; start all pservers with the same snapshot, or all of "
					"them without one",
					cl->link.pserver_idx, cl->link.lane_idx, cl->begins_at,
					step);
			return wf_session_failure(session);
		}
	}
	return WEFT_OK;
}

static enum weft_status
start(struct weft_session *session)
{
	struct wf_client *client = wf_client_of(session);
	enum weft_status st = wf_progress_wait_clear(session, &client->up_busy);
	st = st == WEFT_OK ? check_steps(session) : st;
	if (st == WEFT_OK) {
		st = alloc_batches(client);
	}
	client->step.tight = may_run_out(client);
	return st;
}

/* Frees the batches that were pushed: their step is applied. */
static void
give_back_pushed(struct wf_client *client)
{
	for (uint32_t i = 0; i < client->tables.count && client->step.pushed_count > 0; i++) {
		struct weft_rows *rows = client->step.pushed[i];
		if (rows != NULL) {
			rows->state = WF_ROWS_FREE;
			client->step.pushed[i] = NULL;
			client->step.pushed_count--;
		}
	}
	WF_ASSERT(client->step.pushed_count == 0);
}

static bool
is_busy(const struct weft_session *session)
{
	const struct wf_client *client = wf_client_of(session);
	return atomic_load_explicit(&client->push.busy, memory_order_acquire) != 0; /* B1 */
}

static bool
is_open(const struct weft_session *session)
{
	return session->begun && wf_client_of(session)->step.handed_in != session->step;
}

enum weft_status
wf_client_hand_in(struct weft_session *session)
{
	struct wf_client *client = wf_client_of(session);
	if (!is_open(session)) {
		if (!is_busy(session)) {
			give_back_pushed(client);
		}
		return WEFT_OK;
	}
	enum weft_status st = wf_session_failure(session);
	if (st != WEFT_OK) {
		return st;
	}
	client->step.handed_in = session->step;
	atomic_store_explicit(&client->push.busy, 1, memory_order_relaxed); /* B1 */
	wf_progress_command(session, &(struct wf_command){.kind = WF_COMMAND_SERVICE,
							  .section = WF_CLIENT_PUSH,
							  .a = session->step});
	return WEFT_OK;
}

static enum weft_status
wait_applied(struct weft_session *session)
{
	struct wf_client *client = wf_client_of(session);
	enum weft_status st = wf_progress_wait_clear(session, &client->push.busy);
	if (st == WEFT_OK && !is_open(session)) {
		give_back_pushed(client);
	}
	return st;
}

static enum weft_status
finished(const struct weft_session *session)
{
	if (is_open(session) || is_busy(session)) {
		return wf_fail(WEFT_INVALID, "tables were not %s in step %" PRIu64,
			       is_busy(session) ? "waited for" : "pushed", session->step);
	}
	return WEFT_OK;
}

static enum weft_status
wait_rows(struct weft_session *session)
{
	const struct wf_client *client = wf_client_of(session);
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < client->tables.count * WF_CLIENT_BATCHES && st == WEFT_OK; i++) {
		st = wf_progress_wait_clear(session, &wf_client_rows(client, i)->busy);
	}
	return st;
}

/* Every answer has arrived, or none will. */
static bool
is_drained(struct weft_session *session)
{
	struct wf_client *client = wf_client_of(session);
	bool busy = atomic_load_explicit(&client->call.busy, memory_order_acquire) != 0; /* B1 */
	for (uint32_t i = 0; i < client->tables.count * WF_CLIENT_BATCHES && !busy; i++) {
		busy = atomic_load_explicit(&wf_client_rows(client, i)->busy,
					    memory_order_acquire) != 0; /* B1 */
	}
	return !busy || wf_core_failed(&session->core);
}

/* Answers that arrive after GOODBYE would find no receiver. An interrupted caller waits for them
 * too. */
static void
drain(struct weft_session *session)
{
	wf_progress_wait(session, is_drained);
}

static void
free_batches(struct weft_table *table)
{
	for (uint32_t i = 0; i < WF_CLIENT_BATCHES; i++) {
		wf_batch_destroy(table->rows[i].batch);
		table->rows[i].batch = NULL;
	}
}

static void
reset_table(struct weft_table *table)
{
	free_batches(table);
	for (uint32_t i = 0; i < WF_CLIENT_BATCHES; i++) {
		struct weft_rows *rows = &table->rows[i];
		*rows = (struct weft_rows){.table = table,
					   .idx = rows->idx,
					   .values = rows->values,
					   .send = rows->send,
					   .values_at = rows->values_at};
	}
	table->pushed_step = 0;
}

/* Counters of what was moved stay. */
static void
reset_client(struct weft_session *session)
{
	struct wf_client *client = wf_client_of(session);
	for (uint32_t i = 0; i < client->tables.count; i++) {
		reset_table(client->tables.table[i]);
		client->step.pushed[i] = NULL;
	}
	client->step = (struct wf_client_step){.pushed = client->step.pushed};
	client->call = (struct wf_client_call){0};
	client->push = (struct wf_client_push){0};
	client->pulls = (struct wf_client_pulls){0};
	session->core.service.undone = 0; /* a call may have been open */
	client->started = false;
}

static void
free_table(struct weft_table *table)
{
	struct wf_client *client = table->client;
	struct wf_env *env = client->session->core.end.env;
	free_batches(table);
	wf_free(env, table->share, client->lane_count * sizeof(*table->share));
	wf_free(env, table, sizeof(*table));
}

static void
close_client(struct weft_session *session)
{
	struct wf_client *client = wf_client_of(session);
	struct wf_env *env = session->core.end.env;
	wf_free(env, client->link, client->lane_count * sizeof(*client->link));
	for (uint32_t i = 0; i < client->tables.count; i++) {
		free_table(client->tables.table[i]);
	}
	wf_client_slabs_release(client);
	wf_free(env, client->tables.table, client->tables.capacity * sizeof(struct weft_table *));
	wf_free(env, client->tables.desc, client->tables.capacity * sizeof(*client->tables.desc));
	wf_free(env, client->step.pushed, client->tables.capacity * sizeof(struct weft_rows *));
	wf_free(env, client, sizeof(*client));
	session->core.service.ops = NULL;
	session->core.service.state = NULL;
}

static unsigned
commands_max(const struct weft_session *session)
{
	return wf_client_of(session)->tables.count * WF_CLIENT_BATCHES + 3;
}

/* All lanes are up: lets the owner continue. */
static void
all_up(struct wf_core *core)
{
	struct wf_client *client = core->service.state;
	client->started = true;
	atomic_store_explicit(&client->up_busy, 0, memory_order_release); /* B1 */
}

/* What a client may wait for, several at a time. */
enum waits_for {
	WAITS_FOR_NOTHING,
	WAITS_FOR_LANES, /* to apply the step that was handed in */
	WAITS_FOR_CALL,
	WAITS_FOR_ROWS,
};

static uint64_t
later(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns > b_ns ? a_ns : b_ns;
}

/* Since when the rows wait for lanes. 0: they wait for a step that this trainer has not handed in,
 * which is not a wait. */
static uint64_t
rows_since(const struct wf_client *client, const struct weft_rows *rows)
{
	const struct wf_core *core = client->core;
	bool of_step =
		core->opts.sparse_mode == WEFT_SPARSE_SYNC && rows->wants == core->step.number;
	uint64_t asked_ns = rows->wait.since_ns;
	if (!of_step) {
		return asked_ns;
	}
	uint64_t begun_ns = later(client->push.since_ns, client->push.applied_ns);
	return client->push.step < core->step.number ? 0 : later(asked_ns, begun_ns);
}

/* The rows that have waited longest; NULL: none wait. */
static const struct weft_rows *
oldest_rows(const struct wf_client *client)
{
	for (const struct wf_wait *w = client->pulls.waits.oldest; w != NULL; w = w->newer) {
		const struct weft_rows *rows =
			(const struct weft_rows *)((const char *)w -
						   offsetof(struct weft_rows, wait));
		if (rows_since(client, rows) != 0) {
			return rows;
		}
	}
	return NULL;
}

/* What has waited longest, and since when. */
static enum waits_for
oldest_wait(const struct wf_client *client, uint64_t *since_ns)
{
	const struct weft_rows *rows = oldest_rows(client);
	enum waits_for what = WAITS_FOR_NOTHING;
	*since_ns = WF_NEVER;
	if (client->push.lanes > 0) {
		what = WAITS_FOR_LANES;
		*since_ns = client->push.since_ns;
	}
	if (client->call.open && client->call.since_ns < *since_ns) {
		what = WAITS_FOR_CALL;
		*since_ns = client->call.since_ns;
	}
	if (rows != NULL && rows_since(client, rows) < *since_ns) {
		what = WAITS_FOR_ROWS;
		*since_ns = rows_since(client, rows);
	}
	return what;
}

static uint64_t
waiting_since(const struct wf_core *core)
{
	uint64_t since_ns;
	return oldest_wait(core->service.state, &since_ns) == WAITS_FOR_NOTHING ? 0 : since_ns;
}

static void
describe_push(const struct wf_client *client, char *out, size_t bytes)
{
	bool alone = client->core->job.set.num_gradient_servers == 1;
	uint32_t l = 0;
	while (l + 1 < client->lane_count && !client->link[l].push.waits) {
		l++;
	}
	const struct wf_link *link = &client->link[l].link;
	(void)snprintf(out, bytes,
		       "step %" PRIu64
		       ", tables: pserver %u sparse lane %u has not applied it yet%s",
		       client->push.step, link->pserver_idx, link->lane_idx,
		       alone ? "" : ", another trainer may not have done its part yet");
}

static bool
describe_wait(const struct wf_core *core, char *out, size_t bytes)
{
	const struct wf_client *client = core->service.state;
	const struct weft_rows *rows = oldest_rows(client);
	uint64_t since_ns;
	switch (oldest_wait(client, &since_ns)) {
	case WAITS_FOR_NOTHING:
		return false;
	case WAITS_FOR_LANES:
		describe_push(client, out, bytes);
		return true;
	case WAITS_FOR_CALL:
		(void)snprintf(out, bytes, "tables: sparse lane %u has not %s rows yet",
			       client->call.lane, client->call.fetches ? "sent" : "put back");
		return true;
	case WAITS_FOR_ROWS:
		WF_ASSERT(rows != NULL);
		(void)snprintf(out, bytes,
			       "step %" PRIu64 ", tables: batches that wait for rows: %u",
			       rows->wants, client->pulls.busy);
		return true;
	}
	return false;
}

const struct wf_service_ops wf_client_service = {
	.name = "sparse",
	.link = &wf_client_link_ops,
	.lane_link = lane_link,
	.seal = seal,
	.open = open_client,
	.start = start,
	.hand_in = wf_client_hand_in,
	.wait = wait_applied,
	.wait_answers = wait_rows,
	.is_busy = is_busy,
	.finished = finished,
	.drain = drain,
	.reset = reset_client,
	.close = close_client,
	.commands_max = commands_max,
	.all_up = all_up,
	.command = wf_client_command_run,
	.waiting_since = waiting_since,
	.describe_wait = describe_wait,
	.report = wf_client_report,
};
