/* SPDX-License-Identifier: Apache-2.0 */
/* rows: the hand-written loops: batches of rows over one TCP connection, and over a piece of
 * memory that both have. The server has the product's table and nothing else: no parts, no slots,
 * no checks, no other trainers. Both ends spin. Thread: the workers' own, where nothing else is
 * said. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "sparse/server/table.h"
#include "tools/rdma_bench/meter.h"
#include "tools/rdma_bench/table_exchange.h"

#define LINE_BYTES 128u /* two lines: a processor may fetch the neighbour */
#define ARRAYS_AT 4096u
#define KEY_BYTES ((size_t)WF_EXCHANGE_BATCH * sizeof(uint64_t))
#define ROW_BYTES ((size_t)WF_EXCHANGE_BATCH * WF_EXCHANGE_DIM * sizeof(float))

/* One batch on its way, in shared memory or, over TCP, at one end. */
struct batch {
	uint64_t key[WF_EXCHANGE_BATCH];  /* asked for */
	uint64_t back[WF_EXCHANGE_BATCH]; /* of the gradients, which go with the batch before */
	float grad[WF_EXCHANGE_BATCH * WF_EXCHANGE_DIM];
	float row[WF_EXCHANGE_BATCH * WF_EXCHANGE_DIM];
};

/* At the beginning of the shared memory; zeroed. */
struct shared {
	/* T1: batches asked for, with the gradients of the one before; client: store release;
	 * server: load acquire. */
	_Alignas(LINE_BYTES) _Atomic uint64_t asked;
	/* T2: batches answered; server: store release; client: load acquire. */
	_Alignas(LINE_BYTES) _Atomic uint64_t answered;
};
WF_STATIC_ASSERT(sizeof(struct shared) <= ARRAYS_AT, "batches begin on a page of their own");

struct end {
	const struct wf_exchange_opts *opts;
	int fd;                /* TCP: of this end; else -1 */
	struct shared *shared; /* NULL: TCP */
	struct batch *batch;   /* [WF_EXCHANGE_AHEAD] in shared memory; TCP: of this end */
};

/* TCP. */

static enum weft_status
receive_all(const struct end *end, void *to, size_t bytes)
{
	for (size_t have = 0; have < bytes;) {
		ssize_t n = recv(end->fd, (char *)to + have, bytes - have, MSG_DONTWAIT);
		if (n > 0) {
			have += (size_t)n;
		} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
			return wf_fail_errno(WEFT_LOST, errno, "the raw socket: recv");
		}
	}
	return WEFT_OK;
}

static enum weft_status
send_all(const struct end *end, const void *from, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t n = send(end->fd, (const char *)from + done, bytes - done,
				 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n >= 0) {
			done += (size_t)n;
		} else if (errno != EAGAIN && errno != EINTR) {
			return wf_fail_errno(WEFT_LOST, errno, "the raw socket: send");
		}
	}
	return WEFT_OK;
}

/* Hand-over of one batch, the nth of all, either way and over either medium. */

static enum weft_status
ask(const struct end *end, uint64_t nth, const uint64_t *key, const uint64_t *back,
    const float *grad)
{
	struct batch *batch = &end->batch[nth % WF_EXCHANGE_AHEAD];

	if (end->shared != NULL) {
		memcpy(batch->key, key, KEY_BYTES);
		if (back != NULL) {
			memcpy(batch->back, back, KEY_BYTES);
			memcpy(batch->grad, grad, ROW_BYTES);
		}
		atomic_store_explicit(&end->shared->asked, nth + 1, memory_order_release); /* T1 */
		return WEFT_OK;
	}
	enum weft_status st = send_all(end, key, KEY_BYTES);
	if (st == WEFT_OK && back != NULL) {
		st = send_all(end, back, KEY_BYTES);
	}
	return st == WEFT_OK && back != NULL ? send_all(end, grad, ROW_BYTES) : st;
}

static enum weft_status
take_asked(const struct end *end, uint64_t nth, bool with_grad)
{
	struct batch *batch = &end->batch[nth % WF_EXCHANGE_AHEAD];

	if (end->shared != NULL) {
		while (atomic_load_explicit(&end->shared->asked, memory_order_acquire) <= nth) {
			/* T1 */
		}
		return WEFT_OK;
	}
	enum weft_status st = receive_all(end, batch->key, KEY_BYTES);
	if (st == WEFT_OK && with_grad) {
		st = receive_all(end, batch->back, KEY_BYTES);
	}
	return st == WEFT_OK && with_grad ? receive_all(end, batch->grad, ROW_BYTES) : st;
}

static enum weft_status
answer(const struct end *end, uint64_t nth)
{
	if (end->shared != NULL) {
		atomic_store_explicit(&end->shared->answered, nth + 1,
				      memory_order_release); /* T2 */
		return WEFT_OK;
	}
	return send_all(end, end->batch[nth % WF_EXCHANGE_AHEAD].row, ROW_BYTES);
}

static enum weft_status
take_answer(const struct end *end, uint64_t nth)
{
	if (end->shared != NULL) {
		while (atomic_load_explicit(&end->shared->answered, memory_order_acquire) <= nth) {
			/* T2 */
		}
		return WEFT_OK;
	}
	return receive_all(end, end->batch[nth % WF_EXCHANGE_AHEAD].row, ROW_BYTES);
}

/* The client. `*nth`: batches asked for in all orders so far. */

static enum weft_status
client_pulls(const struct end *end, struct wf_exchange_batches *batches, struct wf_meter *meter,
	     uint64_t count, uint64_t *nth)
{
	enum weft_status st = WEFT_OK;
	uint64_t asked = 0;

	for (uint64_t i = 0; st == WEFT_OK && i < count; i++) {
		for (; st == WEFT_OK && asked < count && asked < i + WF_EXCHANGE_AHEAD; asked++) {
			st = ask(end, *nth + asked, wf_exchange_next(batches), NULL, NULL);
		}
		if (st == WEFT_OK) {
			st = take_answer(end, *nth + i);
		}
		wf_meter_mark(meter);
	}
	*nth += count;
	return st;
}

/* A batch is asked for with the gradients of the one before, and answered after they are applied;
 * the first and the last one of an order have none beside them. */
static enum weft_status
client_steps(const struct end *end, struct wf_exchange_batches *batches, struct wf_meter *meter,
	     uint64_t count, uint64_t *nth)
{
	const uint64_t *key = wf_exchange_next(batches);
	enum weft_status st = ask(end, *nth, key, NULL, NULL);

	for (uint64_t i = 0; st == WEFT_OK && i < count; i++) {
		st = take_answer(end, *nth + i);
		const uint64_t *back = key;
		key = wf_exchange_next(batches);
		if (st == WEFT_OK) {
			st = ask(end, *nth + i + 1, key, back, batches->grad);
		}
		wf_meter_mark(meter);
	}
	if (st == WEFT_OK) {
		st = take_answer(end, *nth + count);
	}
	*nth += count + 1;
	return st;
}

static enum weft_status
client(struct wf_bench_seat *seat, const void *arg)
{
	const struct end *end = arg;
	struct wf_exchange_batches batches;
	struct wf_meter meter;
	struct wf_order order;
	uint64_t nth = 0;

	enum weft_status st = wf_meter_init(&meter, seat->env);
	if (st == WEFT_OK) {
		st = wf_exchange_batches(end->opts, seat->env, &batches);
	}
	if (st == WEFT_OK) {
		wf_seat_ready(seat, 0);
	}
	while (st == WEFT_OK && wf_seat_order(seat, &order)) {
		struct wf_figures figures;
		wf_meter_begin(&meter, 1);
		st = order.mode == WF_EXCHANGE_PULL
			     ? client_pulls(end, &batches, &meter, order.count, &nth)
			     : client_steps(end, &batches, &meter, order.count, &nth);
		wf_meter_figures(&meter, order.count, &figures);
		if (st == WEFT_OK) {
			wf_seat_report(seat, &figures);
		}
	}
	return st;
}

/* The server. */

static enum weft_status
look_up(struct wf_table *table, const uint64_t *key, float *out)
{
	const struct wf_table_lookup lookup = {
		.key = key, .count = WF_EXCHANGE_BATCH, .out = out, .create = true};
	return wf_table_lookup(table, &lookup);
}

static enum weft_status
open_table(const struct end *end, struct wf_env *env, struct wf_table **out)
{
	struct wf_table_opts opts = {
		.dim = WF_EXCHANGE_DIM,
		.partition_count = 1024,
		.entries_max = WF_EXCHANGE_BATCH,
		.index_seed = wf_random(env),
		.row = wf_row_defaults(),
		.admit = {.probability = 1.0},
	};
	uint64_t key[WF_EXCHANGE_BATCH];

	opts.row.kind = WF_ROW_ADAGRAD;
	enum weft_status st = wf_table_create(env, &opts, out);
	for (uint64_t first = 0; st == WEFT_OK && first < end->opts->rows;
	     first += WF_EXCHANGE_BATCH) {
		for (uint64_t i = 0; i < WF_EXCHANGE_BATCH; i++) {
			key[i] = wf_exchange_key((first + i) % end->opts->rows);
		}
		st = look_up(*out, key, end->batch[0].row);
	}
	return st;
}

static enum weft_status
apply(struct wf_table *table, const struct batch *batch)
{
	const struct wf_table_batch pushed = {
		.key = batch->back, .grad = batch->grad, .count = WF_EXCHANGE_BATCH};
	const struct wf_table_push push = {.step = wf_table_step(table) + 1,
					   .rate = 0.001,
					   .divisor = 1.0f,
					   .batch = &pushed,
					   .batch_count = 1};
	return wf_table_push(table, &push);
}

static enum weft_status
serve(const struct end *end, struct wf_table *table, uint64_t nth, bool with_grad)
{
	struct batch *batch = &end->batch[nth % WF_EXCHANGE_AHEAD];

	enum weft_status st = take_asked(end, nth, with_grad);
	if (st == WEFT_OK && with_grad) {
		st = apply(table, batch);
	}
	if (st == WEFT_OK) {
		st = look_up(table, batch->key, batch->row);
	}
	return st == WEFT_OK ? answer(end, nth) : st;
}

static enum weft_status
server(struct wf_bench_seat *seat, const void *arg)
{
	const struct end *end = arg;
	struct wf_table *table = NULL;
	struct wf_order order;
	uint64_t nth = 0;

	enum weft_status st = open_table(end, seat->env, &table);
	if (st == WEFT_OK) {
		wf_seat_ready(seat, 0);
	}
	while (st == WEFT_OK && wf_seat_order(seat, &order)) {
		const struct wf_figures figures = {.count = order.count};
		const bool steps = order.mode == WF_EXCHANGE_STEP;
		const uint64_t batches = order.count + (steps ? 1 : 0);
		for (uint64_t i = 0; st == WEFT_OK && i < batches; i++) {
			st = serve(end, table, nth++, steps && i > 0);
		}
		if (st == WEFT_OK) {
			wf_seat_report(seat, &figures);
		}
	}
	return st;
}

/* Benchmark's thread. */

/* Memory that both processes have; over TCP each uses a half of it. */
static enum weft_status
make_ends(const struct wf_exchange_opts *opts, struct wf_limit *limit, struct end end[2])
{
	const bool is_tcp = strcmp(opts->transport, "tcp") == 0;
	const size_t bytes = ARRAYS_AT + 2 * WF_EXCHANGE_AHEAD * sizeof(struct batch);
	int fd[2] = {-1, -1};

	enum weft_status st = opts->env->ops->slab_open(opts->env, bytes, -1, &limit->memory);
	if (st != WEFT_OK) {
		limit->memory = (struct wf_slab){0};
		return st;
	}
	char *base = limit->memory.base;
	if (is_tcp) {
		st = wf_limit_connect_pair(opts->congestion, fd);
	}
	for (unsigned i = 0; i < 2; i++) {
		end[i] = (struct end){.opts = opts, .fd = fd[i]};
		end[i].shared = is_tcp ? NULL : (struct shared *)(void *)base;
		end[i].batch = (struct batch *)(void *)(base + ARRAYS_AT);
		end[i].batch += is_tcp ? i * WF_EXCHANGE_AHEAD : 0;
	}
	return st;
}

enum weft_status
wf_exchange_limit_start(const struct wf_exchange_opts *opts, struct wf_limit *out)
{
	const struct wf_limit_opts limit_opts = {.env = opts->env,
						 .client_cpu = opts->trainer_cpu,
						 .server_cpu = opts->pserver_cpu,
						 .spin = true,
						 .bytes = WF_EXCHANGE_BATCH,
						 .congestion = opts->congestion};
	struct end end[2];
	const struct wf_limit_pair pair = {
		.client = client, .server = server, .client_arg = &end[0], .server_arg = &end[1]};

	out->env = opts->env;
	end[0].fd = -1;
	end[1].fd = -1;
	enum weft_status st = make_ends(opts, out, end);
	if (st == WEFT_OK) {
		st = wf_limit_start_pair(&limit_opts, &pair, out);
	}
	wf_limit_close_pair(end[0].fd, end[1].fd);
	return st;
}
