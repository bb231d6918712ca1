/* SPDX-License-Identifier: Apache-2.0 */
/* rows: batches of rows over one TCP connection, or over memory that both ends share. The server
 * has a bare table and nothing else: no parts, no slots, no checks, no other trainers. Both ends
 * spin. Thread: the workers' own, unless a comment says otherwise. */
#include <string.h>

#include "base/status.h"
#include "tools/rdma_bench/batches.h"
#include "tools/rdma_bench/limits/form.h"
#include "tools/rdma_bench/limits/line.h"
#include "tools/rdma_bench/limits/loop.h"
#include "tools/rdma_bench/limits/memory.h"
#include "tools/rdma_bench/limits/socket.h"
#include "tools/rdma_bench/limits/table.h"

#define BATCHES_AT 4096u
#define KEY_BYTES ((size_t)WF_EXCHANGE_BATCH * sizeof(uint64_t))
#define ROW_BYTES ((size_t)WF_EXCHANGE_BATCH * WF_EXCHANGE_DIM * sizeof(float))

/* One batch on its way, in shared memory or, over TCP, at one end. */
struct batch {
	uint64_t key[WF_EXCHANGE_BATCH];  /* requested */
	uint64_t back[WF_EXCHANGE_BATCH]; /* of the gradients, which go with the batch after */
	float grad[WF_EXCHANGE_BATCH * WF_EXCHANGE_DIM];
	float row[WF_EXCHANGE_BATCH * WF_EXCHANGE_DIM];
};

/* At the beginning of the shared memory. */
struct shared {
	struct wf_line asked;    /* batches, with the gradients of the one before */
	struct wf_line answered; /* batches */
};
_Static_assert(sizeof(struct shared) <= BATCHES_AT, "batches begin on a page of their own");

struct end {
	const struct wf_limit_opts *opts;
	int fd;                /* TCP: of this end; else -1 */
	struct shared *shared; /* NULL: TCP */
	struct batch *batch;   /* [WF_EXCHANGE_AHEAD] in shared memory; TCP: of this end */
	uint64_t nth;          /* batches requested in earlier commands */
	struct wf_exchange_batches batches; /* the client's */
	struct wf_bare_table table;         /* the server's */
};

static struct batch *
batch_of(const struct end *end, uint64_t nth)
{
	return &end->batch[nth % WF_EXCHANGE_AHEAD];
}

/* ---- handing over one batch, the nth of all ---- */

/* `back` NULL: no gradients go with it. */
static enum weft_status
ask(const struct end *end, uint64_t nth, const uint64_t *key, const uint64_t *back)
{
	const float *grad = end->batches.grad;
	if (end->shared != NULL) {
		struct batch *batch = batch_of(end, nth);
		memcpy(batch->key, key, KEY_BYTES);
		if (back != NULL) {
			memcpy(batch->back, back, KEY_BYTES);
			memcpy(batch->grad, grad, ROW_BYTES);
		}
		wf_line_publish(&end->shared->asked, nth + 1);
		return WEFT_OK;
	}
	enum weft_status st = wf_socket_put_all(end->fd, key, KEY_BYTES, true);
	if (st == WEFT_OK && back != NULL) {
		st = wf_socket_put_all(end->fd, back, KEY_BYTES, true);
	}
	return st == WEFT_OK && back != NULL ? wf_socket_put_all(end->fd, grad, ROW_BYTES, true)
					     : st;
}

static enum weft_status
await_asked(const struct end *end, uint64_t nth, bool with_grad)
{
	if (end->shared != NULL) {
		(void)wf_line_await(&end->shared->asked, nth + 1);
		return WEFT_OK;
	}
	struct batch *batch = batch_of(end, nth);
	enum weft_status st = wf_socket_get_all(end->fd, batch->key, KEY_BYTES, true);
	if (st == WEFT_OK && with_grad) {
		st = wf_socket_get_all(end->fd, batch->back, KEY_BYTES, true);
	}
	return st == WEFT_OK && with_grad ? wf_socket_get_all(end->fd, batch->grad, ROW_BYTES, true)
					  : st;
}

static enum weft_status
answer(const struct end *end, uint64_t nth)
{
	if (end->shared != NULL) {
		wf_line_publish(&end->shared->answered, nth + 1);
		return WEFT_OK;
	}
	return wf_socket_put_all(end->fd, batch_of(end, nth)->row, ROW_BYTES, true);
}

static enum weft_status
await_answer(const struct end *end, uint64_t nth)
{
	if (end->shared != NULL) {
		(void)wf_line_await(&end->shared->answered, nth + 1);
		return WEFT_OK;
	}
	return wf_socket_get_all(end->fd, batch_of(end, nth)->row, ROW_BYTES, true);
}

/* ---- the client, which does not look at the rows ---- */

static enum weft_status
pull(struct end *end, uint64_t count, struct wf_meter *meter)
{
	enum weft_status st = WEFT_OK;
	uint64_t asked = 0;
	for (uint64_t i = 0; st == WEFT_OK && i < count; i++) {
		for (; st == WEFT_OK && asked < count && asked < i + WF_EXCHANGE_AHEAD; asked++) {
			st = ask(end, end->nth + asked, wf_exchange_next(&end->batches), NULL);
		}
		if (st == WEFT_OK) {
			st = await_answer(end, end->nth + i);
		}
		wf_meter_mark(meter);
	}
	end->nth += count;
	return st;
}

/* A batch is requested together with the gradients of the one before, and answered after they are
 * applied; the first and the last request of a command have no gradients. */
static enum weft_status
step(struct end *end, uint64_t count, struct wf_meter *meter)
{
	const uint64_t *key = wf_exchange_next(&end->batches);
	enum weft_status st = ask(end, end->nth, key, NULL);
	for (uint64_t i = 0; st == WEFT_OK && i < count; i++) {
		st = await_answer(end, end->nth + i);
		const uint64_t *back = key;
		key = wf_exchange_next(&end->batches);
		if (st == WEFT_OK) {
			st = ask(end, end->nth + i + 1, key, back);
		}
		wf_meter_mark(meter);
	}
	if (st == WEFT_OK) {
		st = await_answer(end, end->nth + count);
	}
	end->nth += count + 1;
	return st;
}

static enum weft_status
use(void *work, const struct wf_work_order *order, struct wf_meter *meter)
{
	return order->mode == WF_EXCHANGE_PULL ? pull(work, order->count, meter)
					       : step(work, order->count, meter);
}

static enum weft_status
run_client(struct wf_bench_seat *seat, const void *arg)
{
	struct end end = *(const struct end *)arg;
	const struct wf_duty duty = {.run = use, .work = &end, .batch = 1};
	enum weft_status st =
		wf_exchange_batches(seat->env, end.opts->rows, end.opts->quick, &end.batches);
	return st == WEFT_OK ? wf_seat_follow(seat, &duty) : st;
}

/* ---- the server ---- */

static enum weft_status
open_table(struct end *end)
{
	const uint64_t rows = end->opts->rows;
	uint64_t key[WF_EXCHANGE_BATCH];
	bool has_memory = wf_bare_table_open(&end->table, rows, WF_EXCHANGE_DIM);
	for (uint64_t first = 0; has_memory && first < rows; first += WF_EXCHANGE_BATCH) {
		uint64_t count =
			rows - first < WF_EXCHANGE_BATCH ? rows - first : WF_EXCHANGE_BATCH;
		for (uint64_t i = 0; i < count; i++) {
			key[i] = wf_exchange_key(first + i);
		}
		has_memory = wf_bare_table_insert(&end->table, key, count);
	}
	return has_memory ? WEFT_OK
			  : wf_fail(WEFT_NOMEM, "a limit's table of %llu rows",
				    (unsigned long long)rows);
}

static enum weft_status
serve(void *work, const struct wf_work_order *order, struct wf_meter *meter)
{
	struct end *end = work;
	const struct wf_limit_form *form = end->table.form;
	const bool steps = order->mode == WF_EXCHANGE_STEP;
	const uint64_t count = order->count + (steps ? 1 : 0);
	enum weft_status st = WEFT_OK;
	(void)meter;
	for (uint64_t i = 0; st == WEFT_OK && i < count; i++, end->nth++) {
		struct batch *batch = batch_of(end, end->nth);
		const bool with_grad = steps && i > 0;
		st = await_asked(end, end->nth, with_grad);
		if (st == WEFT_OK && with_grad) {
			form->push(&end->table, batch->back, WF_EXCHANGE_BATCH, batch->grad);
		}
		if (st == WEFT_OK) {
			form->pull(&end->table, batch->key, WF_EXCHANGE_BATCH, batch->row);
			st = answer(end, end->nth);
		}
	}
	return st;
}

static enum weft_status
run_server(struct wf_bench_seat *seat, const void *arg)
{
	struct end end = *(const struct end *)arg;
	const struct wf_duty duty = {.run = serve, .work = &end, .batch = 1};
	enum weft_status st = open_table(&end);
	return st == WEFT_OK ? wf_seat_follow(seat, &duty) : st;
}

/* Benchmark's thread. Over TCP each end uses a half of the memory. */
enum weft_status
wf_limit_rows_start(const struct wf_limit_opts *opts, struct wf_limit *out)
{
	int fd[2] = {-1, -1};
	enum weft_status st =
		wf_limit_share(out, BATCHES_AT + 2 * WF_EXCHANGE_AHEAD * sizeof(struct batch));
	if (st == WEFT_OK && opts->over_tcp) {
		st = wf_socket_pair(opts->congestion, fd);
	}
	if (st != WEFT_OK) {
		return st;
	}
	struct batch *batch = (struct batch *)(void *)((char *)out->shared + BATCHES_AT);
	const struct end server = {.opts = opts,
				   .fd = fd[0],
				   .shared = opts->over_tcp ? NULL : out->shared,
				   .batch = batch};
	struct end client = server;
	client.fd = fd[1];
	client.batch += opts->over_tcp ? WF_EXCHANGE_AHEAD : 0;
	const struct wf_limit_part part[] = {
		{"the limit's server", opts->server_cpu, run_server, &server},
		{"the limit's client", opts->client_cpu, run_client, &client},
	};
	st = wf_limit_start(opts, part, 2, out);
	out->side.bytes = WF_EXCHANGE_BATCH;
	wf_socket_close_pair(fd);
	return st;
}
