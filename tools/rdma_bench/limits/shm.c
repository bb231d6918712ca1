/* SPDX-License-Identifier: Apache-2.0 */
/* shm: two processes and a piece of memory: a cache line to and fro, and a push-pull of a
 * tensor. Both ends spin. Thread: the workers' own, where nothing else is said. */
#include <stdatomic.h>
#include <string.h>

#include "base/assert.h"
#include "tools/rdma_bench/limits/limit.h"
#include "tools/rdma_bench/meter.h"

#define LINE_BYTES 128u /* two lines: a processor may fetch the neighbour */
#define ARRAYS_AT 4096u

/* At the beginning of the shared memory; zeroed. */
struct shared {
	/* L1: slices published; client: store release; server: load acquire. */
	_Alignas(LINE_BYTES) _Atomic uint64_t published;
	/* L2: slices answered; server: store release; client: load acquire. */
	_Alignas(LINE_BYTES) _Atomic uint64_t answered;
	/* L3: the line of the ping-pong; odd: the server's turn. Both: store release, load acquire
	 * of what the other stored. */
	_Alignas(LINE_BYTES) _Atomic uint64_t turn;
};
WF_STATIC_ASSERT(sizeof(struct shared) <= ARRAYS_AT, "arrays begin on a page of their own");

struct rig {
	struct shared *shared;
	float *grad;   /* of the client, in shared memory */
	float *values; /* in shared memory: the client's parameters, or the server's */
	bool client_copies;
	uint64_t bytes, slice_bytes;
};

static void
line_serve(struct shared *shared, uint64_t count)
{
	uint64_t turn = atomic_load_explicit(&shared->turn, memory_order_acquire); /* L3 */
	turn -= turn % 2; /* the client may have begun */
	for (uint64_t i = 0; i < count; i++, turn += 2) {
		while (atomic_load_explicit(&shared->turn, memory_order_acquire) != turn + 1) {
			/* L3 */
		}
		atomic_store_explicit(&shared->turn, turn + 2, memory_order_release); /* L3 */
	}
}

static void
line_go(struct shared *shared, uint64_t count, struct wf_meter *meter)
{
	uint64_t turn = atomic_load_explicit(&shared->turn, memory_order_acquire); /* L3 */
	for (uint64_t i = 0; i < count; i++, turn += 2) {
		atomic_store_explicit(&shared->turn, turn + 1, memory_order_release); /* L3 */
		while (atomic_load_explicit(&shared->turn, memory_order_acquire) != turn + 2) {
			/* L3 */
		}
		if ((i + 1) % WF_LINE_BATCH == 0) {
			wf_meter_mark(meter);
		}
	}
}

/* What has been answered; those are copied out, if the client does that. `done`: within the step.
 */
static uint64_t
take_answers(const struct rig *rig, uint8_t *param, uint64_t before, uint64_t done)
{
	uint64_t answered =
		atomic_load_explicit(&rig->shared->answered, memory_order_acquire); /* L2 */
	for (; rig->client_copies && before + done < answered; done++) {
		memcpy(param + done * rig->slice_bytes,
		       (const uint8_t *)rig->values + done * rig->slice_bytes, rig->slice_bytes);
	}
	return answered - before;
}

/* All slices of one step, at most a window of them unanswered. */
static void
publish_step(const struct rig *rig, uint8_t *param, uint64_t before)
{
	uint64_t slices = rig->bytes / rig->slice_bytes;
	uint64_t done = 0;
	for (uint64_t i = 0; i < slices; i++) {
		while (i - done >= WF_LIMIT_WINDOW) {
			done = take_answers(rig, param, before, done);
		}
		atomic_store_explicit(&rig->shared->published, before + i + 1,
				      memory_order_release); /* L1 */
	}
	while (done < slices) {
		done = take_answers(rig, param, before, done);
	}
}

/* Sum straight out of the client's gradients. */
static void
serve_step(const struct rig *rig, const struct wf_kernels *kernels, float *store, uint64_t before)
{
	struct shared *shared = rig->shared;
	uint64_t slices = rig->bytes / rig->slice_bytes;
	uint64_t published = before;
	for (uint64_t i = 0; i < slices; i++) {
		uint64_t at = i * rig->slice_bytes / sizeof(float);
		while (published <= before + i) {
			published = atomic_load_explicit(&shared->published,
							 memory_order_acquire); /* L1 */
		}
		wf_limit_apply(kernels, store + at, rig->grad + at, rig->slice_bytes);
		if (!rig->client_copies) {
			memcpy(rig->values + at, store + at, rig->slice_bytes);
		}
		atomic_store_explicit(&shared->answered, before + i + 1,
				      memory_order_release); /* L2 */
	}
}

/* Parameters of an end that has its own, touched. */
static enum weft_status
own_values(struct wf_env *env, const struct rig *rig, bool wanted, float **out)
{
	struct wf_slab slab = {0};
	*out = rig->values;
	if (!wanted || rig->bytes == 0) {
		return WEFT_OK;
	}
	enum weft_status st = env->ops->slab_open(env, rig->bytes, -1, &slab);
	if (st == WEFT_OK) {
		*out = slab.base;
		wf_limit_fill(*out, rig->bytes, 1);
	}
	return st;
}

static enum weft_status
client(struct wf_bench_seat *seat, const void *arg)
{
	const struct rig *rig = arg;
	uint64_t slices = rig->bytes > 0 ? rig->bytes / rig->slice_bytes : 0;
	uint64_t before = 0;
	float *param = NULL;
	struct wf_meter meter;
	struct wf_order order;
	enum weft_status st = wf_meter_init(&meter, seat->env);
	if (st == WEFT_OK) {
		st = own_values(seat->env, rig, rig->client_copies, &param);
	}
	wf_limit_fill(rig->grad, rig->bytes, 0.5f);
	wf_limit_fill(rig->values, rig->bytes, 1);
	wf_seat_ready(seat, 0);
	while (st == WEFT_OK && wf_seat_order(seat, &order)) {
		struct wf_figures figures;
		wf_meter_begin(&meter, slices > 0 ? 1 : WF_LINE_BATCH);
		if (slices == 0) {
			line_go(rig->shared, order.count, &meter);
		}
		for (uint64_t i = 0; i < order.count && slices > 0; i++) {
			publish_step(rig, (uint8_t *)param, before);
			before += slices;
			wf_meter_mark(&meter);
		}
		wf_meter_figures(&meter, order.count, &figures);
		wf_seat_report(seat, &figures);
	}
	return st;
}

static enum weft_status
server(struct wf_bench_seat *seat, const void *arg)
{
	const struct rig *rig = arg;
	uint64_t slices = rig->bytes > 0 ? rig->bytes / rig->slice_bytes : 0;
	uint64_t before = 0;
	const struct wf_kernels *kernels = wf_kernels_best();
	float *store = NULL;
	struct wf_order order;
	enum weft_status st = own_values(seat->env, rig, !rig->client_copies, &store);
	if (st != WEFT_OK) {
		return st;
	}
	wf_seat_ready(seat, 0);
	while (wf_seat_order(seat, &order)) {
		const struct wf_figures figures = {.count = order.count};
		if (slices == 0) {
			line_serve(rig->shared, order.count);
		}
		for (uint64_t i = 0; i < order.count && slices > 0; i++) {
			serve_step(rig, kernels, store, before);
			before += slices;
		}
		wf_seat_report(seat, &figures);
	}
	return WEFT_OK;
}

/* Benchmark's thread. */
static enum weft_status
start(const struct wf_limit_opts *opts, uint64_t bytes, struct wf_limit *out)
{
	out->env = opts->env;
	enum weft_status st =
		opts->env->ops->slab_open(opts->env, ARRAYS_AT + 2 * bytes, -1, &out->memory);
	if (st != WEFT_OK) {
		return st;
	}
	uint8_t *arrays = (uint8_t *)out->memory.base + ARRAYS_AT;
	const struct rig rig = {
		.shared = out->memory.base,
		.grad = (float *)(void *)arrays,
		.values = (float *)(void *)(arrays + bytes),
		.client_copies = opts->client_copies,
		.bytes = bytes,
		.slice_bytes = opts->slice_bytes,
	};
	const struct wf_limit_pair pair = {
		.client = client,
		.server = server,
		.client_arg = &rig,
		.server_arg = &rig,
	};
	st = wf_limit_start_pair(opts, &pair, out);
	out->side.multiple = bytes > 0 ? 1 : WF_LINE_BATCH;
	return st;
}

enum weft_status
wf_limit_line_start(const struct wf_limit_opts *opts, struct wf_limit *out)
{
	return start(opts, 0, out);
}

enum weft_status
wf_limit_shm_start(const struct wf_limit_opts *opts, struct wf_limit *out)
{
	return start(opts, opts->bytes, out);
}
