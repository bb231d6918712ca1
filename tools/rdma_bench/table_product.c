/* SPDX-License-Identifier: Apache-2.0 */
/* table_product: see table_product.h. */
#include "tools/rdma_bench/table_product.h"

#include "base/assert.h"
#include "tools/rdma_bench/batches.h"
#include "tools/rdma_bench/harness.h"
#include "weft/sparse.h"

struct trainer {
	struct weft_session *session;
	struct weft_table *table;
	struct wf_exchange_batches batches;
	uint32_t mode;                              /* of the command */
	struct weft_rows *ahead[WF_EXCHANGE_AHEAD]; /* pulled, oldest first */
	unsigned ahead_count;
};

static enum weft_status
begin_job(struct trainer *tr)
{
	struct weft_table_opts table;
	weft_table_opts_init(&table);
	table.name = "rows";
	table.dim = WF_EXCHANGE_DIM;
	table.batch_keys_max = WF_EXCHANGE_BATCH;
	table.optimizer.method = "adagrad";
	enum weft_status st = weft_table_add(tr->session, &table, &tr->table);
	if (st == WEFT_OK) {
		st = weft_session_seal(tr->session);
	}
	return st == WEFT_OK ? weft_session_start(tr->session) : st;
}

/* Every row of the table is born. */
static enum weft_status
fill_table(struct trainer *tr, uint64_t rows)
{
	uint64_t key[WF_EXCHANGE_BATCH];
	enum weft_status st = WEFT_OK;

	for (uint64_t first = 0; st == WEFT_OK && first < rows; first += WF_EXCHANGE_BATCH) {
		struct weft_rows *batch = NULL;
		for (uint64_t i = 0; i < WF_EXCHANGE_BATCH; i++) {
			key[i] = wf_exchange_key((first + i) % rows);
		}
		st = weft_rows_pull(tr->table, key, WF_EXCHANGE_BATCH, WEFT_ROWS_CREATE, &batch);
		if (st == WEFT_OK) {
			st = weft_rows_wait(batch);
		}
		weft_rows_free(batch);
	}
	return st;
}

static enum weft_status
pull_next(struct trainer *tr)
{
	WF_ASSERT(tr->ahead_count < WF_EXCHANGE_AHEAD);
	enum weft_status st =
		weft_rows_pull(tr->table, wf_exchange_next(&tr->batches, tr->mode),
			       WF_EXCHANGE_BATCH, WEFT_ROWS_CREATE, &tr->ahead[tr->ahead_count]);
	tr->ahead_count += st == WEFT_OK;
	return st;
}

/* The oldest batch whose rows have arrived. */
static enum weft_status
wait_oldest(struct trainer *tr, struct weft_rows **out)
{
	WF_ASSERT(tr->ahead_count > 0);
	*out = tr->ahead[0];
	tr->ahead[0] = tr->ahead[1];
	tr->ahead_count--;
	return weft_rows_wait(*out);
}

static enum weft_status
run_pulls(struct trainer *tr, uint64_t count, struct wf_meter *meter)
{
	enum weft_status st = WEFT_OK;

	for (uint64_t i = 0; st == WEFT_OK && i < count; i++) {
		struct weft_rows *rows = NULL;
		while (st == WEFT_OK && tr->ahead_count < WF_EXCHANGE_AHEAD &&
		       i + tr->ahead_count < count) {
			st = pull_next(tr);
		}
		if (st == WEFT_OK) {
			st = wait_oldest(tr, &rows);
		}
		weft_rows_free(rows);
		wf_meter_mark(meter);
	}
	return st;
}

static enum weft_status
run_steps(struct trainer *tr, uint64_t count, struct wf_meter *meter)
{
	enum weft_status st = pull_next(tr);

	for (uint64_t i = 0; st == WEFT_OK && i < count; i++) {
		struct weft_rows *rows = NULL;
		st = wait_oldest(tr, &rows);
		if (st == WEFT_OK) {
			st = weft_step(tr->session, 1, 0);
		}
		if (st == WEFT_OK && i + 1 < count) {
			st = pull_next(tr);
		}
		if (st == WEFT_OK) {
			st = weft_rows_push(rows, tr->batches.grad, NULL, NULL);
		}
		if (st == WEFT_OK) {
			st = weft_wait_all(tr->session);
		}
		wf_meter_mark(meter);
	}
	return st;
}

static enum weft_status
run_order(void *work, const struct wf_work_order *order, struct wf_meter *meter)
{
	struct trainer *tr = work;
	tr->mode = order->mode;
	return wf_exchange_is_step(order->mode) ? run_steps(tr, order->count, meter)
						: run_pulls(tr, order->count, meter);
}

enum weft_status
wf_table_product_run(struct wf_bench_seat *seat, struct weft_session *session,
		     const struct wf_product_opts *opts)
{
	struct trainer tr = {.session = session};
	const struct wf_duty duty = {.run = run_order, .work = &tr, .batch = 1};
	enum weft_status st = wf_exchange_batches(seat->env, opts->rows, opts->quick, &tr.batches);
	if (st == WEFT_OK) {
		st = begin_job(&tr);
	}
	if (st == WEFT_OK) {
		st = fill_table(&tr, opts->rows);
	}
	return st == WEFT_OK ? wf_seat_follow(seat, &duty) : st;
}
