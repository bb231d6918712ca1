/* SPDX-License-Identifier: Apache-2.0 */
/* table_product: a pserver with one sparse lane and a trainer that uses nothing but the public
 * library, exchanging batches of rows. Thread: main of their workers. */
#include "tools/rdma_bench/table_product.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/env.h"
#include "base/settings.h"
#include "pserver/server.h"
#include "sparse/server/service.h"
#include "tools/rdma_bench/batches.h"
#include "tools/rdma_bench/harness.h"
#include "weft/sparse.h"

#define READY_TIMEOUT_NS (120 * WF_NS_PER_S)
#define PEER_TIMEOUT_NS (600 * WF_NS_PER_S)
#define HOST_BYTES 64
/* Dense and sparse port stand side by side, so the system cannot choose them. */
#define PORT_FIRST 20000u
#define PORT_COUNT 20000u
#define PORT_TRIES 50u

struct trainer_arg {
	const struct wf_exchange_opts *opts;
	char pserver[HOST_BYTES];
};

struct trainer {
	const struct wf_exchange_opts *opts;
	struct weft_session *session;
	struct weft_table *table;
	struct wf_exchange_batches batches;
	struct weft_rows *ahead[WF_EXCHANGE_AHEAD]; /* pulled, oldest first */
	unsigned ahead_count;
};

static enum weft_status
create_server(const struct wf_server_opts *opts, struct wf_env *env, struct wf_server **out)
{
	struct wf_server_opts with_port = *opts;
	enum weft_status st = WEFT_OK;

	for (unsigned i = 0; i < PORT_TRIES; i++) {
		uint64_t pair = wf_random(env) % (PORT_COUNT / 2);
		with_port.listen.port = (uint16_t)(PORT_FIRST + 2 * pair);
		st = wf_server_create(&with_port, out);
		if (st == WEFT_OK) {
			return WEFT_OK;
		}
	}
	return st;
}

static enum weft_status
run_pserver(struct wf_bench_seat *seat, const void *arg)
{
	const struct wf_exchange_opts *opts = arg;
	struct wf_server_opts server_opts;
	struct wf_server *server = NULL;

	wf_server_opts_init(&server_opts);
	server_opts.env = seat->env;
	server_opts.transport = opts->transport;
	server_opts.ports_num_for_sparse = 1;
	server_opts.sparse = &wf_sparse_service;
	server_opts.once = true;
	server_opts.spin_ns = opts->spin_ns;
	server_opts.peer_timeout_ns = PEER_TIMEOUT_NS;
	server_opts.tcp_congestion = opts->congestion;
	enum weft_status st = create_server(&server_opts, seat->env, &server);
	if (st == WEFT_OK) {
		wf_seat_ready(seat, wf_server_port(server, 0));
		st = wf_server_run(server);
	}
	wf_server_destroy(server);
	return st;
}

static enum weft_status
open_job(struct trainer *tr, const struct trainer_arg *arg, struct wf_env *env)
{
	struct weft_session_opts session;
	struct weft_table_opts table;

	weft_session_opts_init(&session);
	session.pservers = arg->pserver;
	session.ports_num_for_sparse = 1;
	session.transport = tr->opts->transport;
	session.progress = WEFT_PROGRESS_CALLER;
	session.spin_ns = tr->opts->spin_ns;
	session.peer_timeout_ns = PEER_TIMEOUT_NS;
	session.tcp_congestion = tr->opts->congestion;
	enum weft_status st = wf_session_open_in(env, &session, &tr->session);
	if (st != WEFT_OK) {
		return st;
	}
	weft_table_opts_init(&table);
	table.name = "rows";
	table.dim = WF_EXCHANGE_DIM;
	table.batch_keys_max = WF_EXCHANGE_BATCH;
	table.optimizer.method = "adagrad";
	st = weft_table_add(tr->session, &table, &tr->table);
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
		weft_rows_pull(tr->table, wf_exchange_next(&tr->batches), WF_EXCHANGE_BATCH,
			       WEFT_ROWS_CREATE, &tr->ahead[tr->ahead_count]);
	tr->ahead_count += st == WEFT_OK;
	return st;
}

/* The oldest batch, whose rows are there. */
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
run_order(void *work, const struct wf_order *order, struct wf_meter *meter)
{
	return order->mode == WF_EXCHANGE_PULL ? run_pulls(work, order->count, meter)
					       : run_steps(work, order->count, meter);
}

static enum weft_status
run_trainer(struct wf_bench_seat *seat, const void *arg)
{
	const struct trainer_arg *trainer = arg;
	struct trainer tr = {.opts = trainer->opts};
	char why[WF_FIGURE_TEXT_BYTES];

	enum weft_status st =
		wf_exchange_batches(seat->env, tr.opts->rows, tr.opts->quick, &tr.batches);
	if (st == WEFT_OK) {
		st = open_job(&tr, trainer, seat->env);
	}
	if (st == WEFT_OK) {
		st = fill_table(&tr, tr.opts->rows);
	}
	if (st == WEFT_OK) {
		const struct wf_duty duty = {.run = run_order, .work = &tr, .batch = 1};
		st = wf_seat_follow(seat, &duty);
	}
	if (st == WEFT_OK) {
		return weft_session_close(tr.session);
	}
	/* The first failure is reported, not what closing adds to it. */
	snprintf(why, sizeof(why), "%s", weft_last_error());
	if (tr.session != NULL) {
		weft_session_abort(tr.session, st, why);
	}
	return wf_fail(st, "%s", why);
}

enum weft_status
wf_exchange_product_start(const struct wf_exchange_opts *opts, struct wf_product *out)
{
	struct trainer_arg arg = {.opts = opts};
	struct wf_figures ready;
	const struct wf_worker_opts pserver = {
		.name = "pserver", .cpu = opts->pserver_cpu, .run = run_pserver, .arg = opts};
	const struct wf_worker_opts trainer = {
		.name = "trainer", .cpu = opts->trainer_cpu, .run = run_trainer, .arg = &arg};

	enum weft_status st = wf_worker_start(&pserver, &out->pserver[0]);
	if (st == WEFT_OK) {
		st = wf_worker_await(&out->pserver[0], READY_TIMEOUT_NS, &ready);
	}
	if (st == WEFT_OK) {
		snprintf(arg.pserver, sizeof(arg.pserver), "127.0.0.1:%u", (unsigned)ready.number);
		st = wf_worker_start(&trainer, &out->trainer[0]);
	}
	if (st == WEFT_OK) {
		st = wf_worker_await(&out->trainer[0], READY_TIMEOUT_NS, &ready);
	}
	out->side.worker[0] = &out->trainer[0];
	out->side.worker_count = 1;
	out->side.bytes = WF_EXCHANGE_BATCH;
	return st;
}
