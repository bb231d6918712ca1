/* SPDX-License-Identifier: Apache-2.0 */
/* shm: two processes with shared memory: a cache line back and forth, and a push-pull of a tensor.
 * Both ends spin. Thread: the workers' own, unless a comment says otherwise. */
#include <string.h>

#include "base/status.h"
#include "tools/rdma_bench/limits/form.h"
#include "tools/rdma_bench/limits/line.h"
#include "tools/rdma_bench/limits/loop.h"
#include "tools/rdma_bench/limits/memory.h"

#define ARRAYS_AT 4096u

/* At the beginning of the shared memory. */
struct shared {
	struct wf_line turn;      /* of the ping-pong, both write it; odd: the server's turn */
	struct wf_line published; /* slices of the client's */
	struct wf_line answered;  /* slices of the server's */
};
_Static_assert(sizeof(struct shared) <= ARRAYS_AT, "arrays begin on a page of their own");

struct end {
	const struct wf_limit_opts *opts;
	bool is_client;
	struct shared *shared;
	float *grad;   /* of the client, in shared memory */
	float *values; /* in shared memory: the client's parameters, or the server's */
	const struct wf_limit_form *form;
	float *param;    /* this end's, in shared memory or not */
	uint64_t before; /* slices of earlier steps */
};

/* ---- a cache line ---- */

static void
line_serve(struct shared *shared, uint64_t count)
{
	uint64_t turn = wf_line_read(&shared->turn);
	turn -= turn % 2; /* the client may have begun */
	for (uint64_t i = 0; i < count; i++, turn += 2) {
		(void)wf_line_await(&shared->turn, turn + 1);
		wf_line_publish(&shared->turn, turn + 2);
	}
}

static void
line_go(struct shared *shared, uint64_t count, struct wf_meter *meter)
{
	uint64_t turn = wf_line_read(&shared->turn);
	for (uint64_t i = 0; i < count; i++, turn += 2) {
		wf_line_publish(&shared->turn, turn + 1);
		(void)wf_line_await(&shared->turn, turn + 2);
		if ((i + 1) % WF_LINE_BATCH == 0) {
			wf_meter_mark(meter);
		}
	}
}

static enum weft_status
line(void *work, const struct wf_work_order *order, struct wf_meter *meter)
{
	const struct end *end = work;
	if (end->is_client) {
		line_go(end->shared, order->count, meter);
	} else {
		line_serve(end->shared, order->count);
	}
	return WEFT_OK;
}

static enum weft_status
run_line(struct wf_bench_seat *seat, const void *arg)
{
	struct end end = *(const struct end *)arg;
	const struct wf_duty duty = {.run = line, .work = &end, .batch = WF_LINE_BATCH};
	return wf_seat_follow(seat, &duty);
}

/* ---- push-pull ---- */

/* What has been answered; those are copied out, if the client does that. `done`: within the step.
 */
static uint64_t
copy_answers(const struct end *end, uint64_t done)
{
	const uint64_t floats = end->opts->slice_bytes / sizeof(float);
	uint64_t answered = wf_line_read(&end->shared->answered);
	for (; end->opts->client_copies && end->before + done < answered; done++) {
		memcpy(end->param + done * floats, end->values + done * floats,
		       end->opts->slice_bytes);
	}
	return answered - end->before;
}

/* All slices of one step, at most a window of them unanswered. */
static void
client_step(const struct end *end, uint64_t slices)
{
	uint64_t done = 0;
	for (uint64_t i = 0; i < slices; i++) {
		while (i - done >= WF_LIMIT_WINDOW) {
			done = copy_answers(end, done);
		}
		wf_line_publish(&end->shared->published, end->before + i + 1);
	}
	while (done < slices) {
		done = copy_answers(end, done);
	}
}

/* Straight out of the client's gradients. */
static void
server_step(const struct end *end, uint64_t slices)
{
	const uint64_t floats = end->opts->slice_bytes / sizeof(float);
	uint64_t published = end->before;
	for (uint64_t i = 0; i < slices; i++) {
		uint64_t at = i * floats;
		if (published <= end->before + i) {
			published = wf_line_await(&end->shared->published, end->before + i + 1);
		}
		end->form->sgd(end->param + at, end->grad + at, floats, WF_LIMIT_RATE);
		if (!end->opts->client_copies) {
			memcpy(end->values + at, end->param + at, end->opts->slice_bytes);
		}
		wf_line_publish(&end->shared->answered, end->before + i + 1);
	}
}

static enum weft_status
push_pull(void *work, const struct wf_work_order *order, struct wf_meter *meter)
{
	struct end *end = work;
	uint64_t slices = end->opts->bytes / end->opts->slice_bytes;
	for (uint64_t i = 0; i < order->count; i++, end->before += slices) {
		if (end->is_client) {
			client_step(end, slices);
			wf_meter_mark(meter);
		} else {
			server_step(end, slices);
		}
	}
	return WEFT_OK;
}

static enum weft_status
run_push_pull(struct wf_bench_seat *seat, const void *arg)
{
	struct end end = *(const struct end *)arg;
	const struct wf_limit_opts *opts = end.opts;
	const struct wf_duty duty = {.run = push_pull, .work = &end, .batch = 1};
	enum weft_status st = WEFT_OK;
	end.form = wf_limit_form_best();
	end.param = end.values;
	if (end.is_client == opts->client_copies) {
		st = wf_limit_floats(opts->bytes, 1, &end.param);
	}
	if (end.is_client) {
		wf_limit_fill(end.grad, opts->bytes, 0.5f);
		wf_limit_fill(end.values, opts->bytes, 1);
	}
	return st == WEFT_OK ? wf_seat_follow(seat, &duty) : st;
}

/* Benchmark's thread. */
static enum weft_status
start(const struct wf_limit_opts *opts, uint64_t bytes,
      enum weft_status (*run)(struct wf_bench_seat *seat, const void *arg), struct wf_limit *out)
{
	enum weft_status st = wf_limit_share(out, ARRAYS_AT + 2 * bytes);
	if (st != WEFT_OK) {
		return st;
	}
	float *arrays = (float *)out->shared + ARRAYS_AT / sizeof(float);
	const struct end server = {.opts = opts,
				   .shared = out->shared,
				   .grad = arrays,
				   .values = arrays + bytes / sizeof(float)};
	struct end client = server;
	client.is_client = true;
	const struct wf_limit_part part[] = {
		{"the limit's server", opts->server_cpu, run, &server},
		{"the limit's client", opts->client_cpu, run, &client},
	};
	return wf_limit_start(opts, part, 2, out);
}

enum weft_status
wf_limit_line_start(const struct wf_limit_opts *opts, struct wf_limit *out)
{
	enum weft_status st = start(opts, 0, run_line, out);
	out->side.multiple = WF_LINE_BATCH;
	return st;
}

enum weft_status
wf_limit_shm_start(const struct wf_limit_opts *opts, struct wf_limit *out)
{
	return start(opts, opts->bytes, run_push_pull, out);
}
