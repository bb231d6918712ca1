/* SPDX-License-Identifier: Apache-2.0 */
/* rows: batches of rows over one TCP connection, or over memory that both ends share. The server
 * has a bare table and nothing else: no parts, no slots, no checks, no other trainers. Keys as they
 * are drawn are merged by the client, which sums their gradients, and are not sorted. Both ends
 * spin. Thread: the workers' own, unless a comment says otherwise. */
#include <stddef.h>
#include <string.h>

#include "base/status.h"
#include "tools/rdma_bench/batches.h"
#include "tools/rdma_bench/limits/form.h"
#include "tools/rdma_bench/limits/line.h"
#include "tools/rdma_bench/limits/loop.h"
#include "tools/rdma_bench/limits/memory.h"
#include "tools/rdma_bench/limits/merge.h"
#include "tools/rdma_bench/limits/socket.h"
#include "tools/rdma_bench/limits/table.h"

#define BATCHES_AT 4096u
/* Whole lines, so that what follows in the stream lies there as it does in memory: on AMD's Zen 3
 * the kernel copies at a twentieth of its speed where it lies a few bytes further in its page. */
#define LINE_BYTES 64u
#define KEY_BYTES(keys)                                                                            \
	(((size_t)(keys) * sizeof(uint64_t) + LINE_BYTES - 1) & ~(size_t)(LINE_BYTES - 1))
#define ROW_BYTES(keys) ((size_t)(keys)*WF_EXCHANGE_DIM * sizeof(float))

/* How much of a batch is used. Over TCP it goes first, with the keys. */
struct counts {
	uint32_t keys; /* requested */
	uint32_t back; /* gradients */
	uint8_t rest[LINE_BYTES - 2 * sizeof(uint32_t)];
};

/* One batch on its way, in shared memory or, over TCP, at one end. */
struct batch {
	struct counts counts;
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
_Static_assert(WF_EXCHANGE_BATCH <= WF_LIMIT_MERGE_MAX, "a batch can be merged");

/* What a client asks for with one batch, and the place of each of its keys. */
struct keys {
	const uint64_t *key;
	uint32_t count;
	const uint32_t *place; /* NULL: each key once */
};

struct end {
	const struct wf_limit_opts *opts;
	int fd;                /* TCP: of this end; else -1 */
	struct shared *shared; /* NULL: TCP */
	struct batch *batch;   /* [WF_EXCHANGE_AHEAD] in shared memory; TCP: of this end */
	uint64_t nth;          /* batches requested in earlier commands */
	struct wf_exchange_batches batches; /* the client's */
	struct wf_limit_merge *merge;       /* [2] the client's: of successive batches */
	float *sum;                         /* the client's, over TCP: gradients of each key */
	uint32_t mode;                      /* of the command */
	struct wf_bare_table table;         /* the server's */
};

static struct batch *
batch_of(const struct end *end, uint64_t nth)
{
	return &end->batch[nth % WF_EXCHANGE_AHEAD];
}

/* ---- handing over one batch, the nth of all ---- */

/* Gradients of each key once, at `out`, or where they are already. */
static const float *
sum_grads(const struct end *end, const struct keys *back, float *out)
{
	const float *grad = end->batches.grad;
	if (back->place == NULL) {
		return grad;
	}
	end->table.form->sum_rows(out, grad, back->place, WF_EXCHANGE_BATCH, WF_EXCHANGE_DIM);
	return out;
}

/* Over shared memory. `back` NULL: no gradients go with it. */
static void
put_batch(const struct end *end, struct batch *batch, const struct keys *keys,
	  const struct keys *back)
{
	batch->counts =
		(struct counts){.keys = keys->count, .back = back != NULL ? back->count : 0};
	memcpy(batch->key, keys->key, KEY_BYTES(keys->count));
	if (back == NULL) {
		return;
	}
	memcpy(batch->back, back->key, KEY_BYTES(back->count));
	const float *grad = sum_grads(end, back, batch->grad);
	if (grad != batch->grad) {
		memcpy(batch->grad, grad, ROW_BYTES(back->count));
	}
}

static enum weft_status
ask(const struct end *end, uint64_t nth, const struct keys *keys, const struct keys *back)
{
	if (end->shared != NULL) {
		put_batch(end, batch_of(end, nth), keys, back);
		wf_line_publish(&end->shared->asked, nth + 1);
		return WEFT_OK;
	}
	struct batch *batch = batch_of(end, nth);
	batch->counts =
		(struct counts){.keys = keys->count, .back = back != NULL ? back->count : 0};
	memcpy(batch->key, keys->key, KEY_BYTES(keys->count));
	enum weft_status st = wf_socket_put_all(
		end->fd, batch, offsetof(struct batch, key) + KEY_BYTES(keys->count), true);
	if (st == WEFT_OK && back != NULL) {
		st = wf_socket_put_all(end->fd, back->key, KEY_BYTES(back->count), true);
	}
	return st == WEFT_OK && back != NULL
		       ? wf_socket_put_all(end->fd, sum_grads(end, back, end->sum),
					   ROW_BYTES(back->count), true)
		       : st;
}

static enum weft_status
await_asked(const struct end *end, uint64_t nth)
{
	if (end->shared != NULL) {
		(void)wf_line_await(&end->shared->asked, nth + 1);
		return WEFT_OK;
	}
	struct batch *batch = batch_of(end, nth);
	const struct counts *counts = &batch->counts;
	enum weft_status st =
		wf_socket_get_all(end->fd, &batch->counts, sizeof(batch->counts), true);
	if (st == WEFT_OK) {
		st = wf_socket_get_all(end->fd, batch->key, KEY_BYTES(counts->keys), true);
	}
	if (st == WEFT_OK && counts->back > 0) {
		st = wf_socket_get_all(end->fd, batch->back, KEY_BYTES(counts->back), true);
	}
	return st == WEFT_OK && counts->back > 0
		       ? wf_socket_get_all(end->fd, batch->grad, ROW_BYTES(counts->back), true)
		       : st;
}

static enum weft_status
answer(const struct end *end, uint64_t nth)
{
	if (end->shared != NULL) {
		wf_line_publish(&end->shared->answered, nth + 1);
		return WEFT_OK;
	}
	const struct batch *batch = batch_of(end, nth);
	return wf_socket_put_all(end->fd, batch->row, ROW_BYTES(batch->counts.keys), true);
}

static enum weft_status
await_answer(const struct end *end, uint64_t nth)
{
	if (end->shared != NULL) {
		(void)wf_line_await(&end->shared->answered, nth + 1);
		return WEFT_OK;
	}
	struct batch *batch = batch_of(end, nth);
	return wf_socket_get_all(end->fd, batch->row, ROW_BYTES(batch->counts.keys), true);
}

/* ---- the client, which does not look at the rows ---- */

/* The keys of the next batch, the nth of all: valid until the next but one. */
static struct keys
next_keys(struct end *end, uint64_t nth)
{
	const uint64_t *key = wf_exchange_next(&end->batches, end->mode);
	if (!wf_exchange_is_drawn(end->mode)) {
		return (struct keys){.key = key, .count = WF_EXCHANGE_BATCH};
	}
	struct wf_limit_merge *merge = &end->merge[nth % 2];
	wf_limit_merge(merge, key, WF_EXCHANGE_BATCH);
	return (struct keys){.key = merge->key, .count = merge->count, .place = merge->place};
}

static enum weft_status
pull(struct end *end, uint64_t count, struct wf_meter *meter)
{
	enum weft_status st = WEFT_OK;
	uint64_t asked = 0;
	for (uint64_t i = 0; st == WEFT_OK && i < count; i++) {
		for (; st == WEFT_OK && asked < count && asked < i + WF_EXCHANGE_AHEAD; asked++) {
			const struct keys keys = next_keys(end, end->nth + asked);
			st = ask(end, end->nth + asked, &keys, NULL);
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
	struct keys keys = next_keys(end, end->nth);
	enum weft_status st = ask(end, end->nth, &keys, NULL);
	for (uint64_t i = 0; st == WEFT_OK && i < count; i++) {
		st = await_answer(end, end->nth + i);
		const struct keys back = keys;
		keys = next_keys(end, end->nth + i + 1);
		if (st == WEFT_OK) {
			st = ask(end, end->nth + i + 1, &keys, &back);
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
	struct end *end = work;
	end->mode = order->mode;
	return wf_exchange_is_step(order->mode) ? step(end, order->count, meter)
						: pull(end, order->count, meter);
}

static enum weft_status
run_client(struct wf_bench_seat *seat, const void *arg)
{
	struct end end = *(const struct end *)arg;
	const struct wf_duty duty = {.run = use, .work = &end, .batch = 1};
	end.table.form = wf_limit_form_best();
	end.merge = wf_limit_map(2 * sizeof(*end.merge), false, -1);
	end.sum = wf_limit_map(ROW_BYTES(WF_EXCHANGE_BATCH), false, -1);
	if (end.merge == NULL || end.sum == NULL) {
		return wf_fail(WEFT_NOMEM, "a limit's client");
	}
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
	const uint64_t count = order->count + (wf_exchange_is_step(order->mode) ? 1 : 0);
	enum weft_status st = WEFT_OK;
	(void)meter;
	for (uint64_t i = 0; st == WEFT_OK && i < count; i++, end->nth++) {
		struct batch *batch = batch_of(end, end->nth);
		st = await_asked(end, end->nth);
		if (st == WEFT_OK && batch->counts.back > 0) {
			form->push(&end->table, batch->back, batch->counts.back, batch->grad);
		}
		if (st == WEFT_OK) {
			form->pull(&end->table, batch->key, batch->counts.keys, batch->row);
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
