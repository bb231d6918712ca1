/* SPDX-License-Identifier: Apache-2.0 */
/* tcp: raw sockets: a ping-pong of 64 bytes, and a push-pull of a tensor in slices. The one
 * connection is made before the workers start. Thread: the workers' own, unless a comment says
 * otherwise. */
#include <poll.h>

#include "base/status.h"
#include "tools/rdma_bench/limits/form.h"
#include "tools/rdma_bench/limits/loop.h"
#include "tools/rdma_bench/limits/memory.h"
#include "tools/rdma_bench/limits/socket.h"

struct end {
	int fd;
	const struct wf_limit_opts *opts;
	bool is_client;
	/* Push-pull. Client: gradients and parameters; server: slots and parameters. */
	const struct wf_limit_form *form;
	float *in, *param;
};

/* To and fro: the client begins. */
static enum weft_status
ping(void *work, const struct wf_work_order *order, struct wf_meter *meter)
{
	const struct end *end = work;
	const bool spin = end->opts->spin;
	uint8_t message[WF_LIMIT_MESSAGE_BYTES] = {1};
	enum weft_status st = WEFT_OK;
	for (uint64_t i = 0; i < order->count && st == WEFT_OK; i++) {
		if (end->is_client) {
			st = wf_socket_put_all(end->fd, message, sizeof(message), spin);
		}
		if (st == WEFT_OK) {
			st = wf_socket_get_all(end->fd, message, sizeof(message), spin);
		}
		if (st == WEFT_OK && !end->is_client) {
			st = wf_socket_put_all(end->fd, message, sizeof(message), spin);
		}
		if (end->is_client) {
			wf_meter_mark(meter);
		}
	}
	return st;
}

/* Nothing moved: sleep until something can, unless this end spins. */
static void
wait_to_move(const struct end *end, bool to_send)
{
	struct pollfd wait = {.fd = end->fd, .events = POLLIN};
	wait.events = (short)(to_send ? POLLIN | POLLOUT : POLLIN);
	if (!end->opts->spin) {
		(void)poll(&wait, 1, -1);
	}
}

static uint64_t
min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static enum weft_status
client_step(const struct end *end)
{
	const uint64_t bytes = end->opts->bytes, slice_bytes = end->opts->slice_bytes;
	const uint8_t *grad = (const uint8_t *)end->in;
	uint8_t *param = (uint8_t *)end->param;
	uint64_t out = 0, in = 0;
	enum weft_status st = WEFT_OK;
	while (st == WEFT_OK && in < bytes) {
		uint64_t before = out + in;
		uint64_t answered = in - in % slice_bytes;
		uint64_t allowed = min_u64(answered + WF_LIMIT_WINDOW * slice_bytes, bytes);
		if (out < allowed) {
			st = wf_socket_put(end->fd, grad + out, allowed - out, &out);
		}
		if (st == WEFT_OK) {
			st = wf_socket_get(end->fd, param + in, bytes - in, &in);
		}
		if (out + in == before) {
			wait_to_move(end, out < allowed);
		}
	}
	return st;
}

static enum weft_status
server_step(const struct end *end)
{
	const uint64_t bytes = end->opts->bytes, slice_bytes = end->opts->slice_bytes;
	const uint64_t slice_floats = slice_bytes / sizeof(float);
	uint64_t out = 0, in = 0;
	uint64_t applied = 0; /* bytes of whole slices */
	enum weft_status st = WEFT_OK;
	while (st == WEFT_OK && out < bytes) {
		uint64_t before = out + in, within = in % slice_bytes;
		float *slot = end->in + in / slice_bytes % WF_LIMIT_WINDOW * slice_floats;
		if (in < bytes) {
			st = wf_socket_get(end->fd, (uint8_t *)slot + within, slice_bytes - within,
					   &in);
		}
		if (in >= applied + slice_bytes) {
			end->form->sgd(end->param + applied / sizeof(float), slot, slice_floats,
				       WF_LIMIT_RATE);
			applied += slice_bytes;
		}
		if (st == WEFT_OK && out < applied) {
			st = wf_socket_put(end->fd, (const uint8_t *)end->param + out,
					   applied - out, &out);
		}
		if (out + in == before) {
			wait_to_move(end, out < applied);
		}
	}
	return st;
}

static enum weft_status
push_pull(void *work, const struct wf_work_order *order, struct wf_meter *meter)
{
	const struct end *end = work;
	enum weft_status st = WEFT_OK;
	for (uint64_t i = 0; i < order->count && st == WEFT_OK; i++) {
		st = end->is_client ? client_step(end) : server_step(end);
		if (end->is_client) {
			wf_meter_mark(meter);
		}
	}
	return st;
}

static enum weft_status
run_ping(struct wf_bench_seat *seat, const void *arg)
{
	struct end end = *(const struct end *)arg;
	const struct wf_duty duty = {.run = ping, .work = &end, .batch = 1};
	return wf_seat_follow(seat, &duty);
}

static enum weft_status
run_push_pull(struct wf_bench_seat *seat, const void *arg)
{
	struct end end = *(const struct end *)arg;
	const struct wf_limit_opts *opts = end.opts;
	const struct wf_duty duty = {.run = push_pull, .work = &end, .batch = 1};
	uint64_t in_bytes = end.is_client ? opts->bytes : WF_LIMIT_WINDOW * opts->slice_bytes;
	end.form = wf_limit_form_best();
	enum weft_status st = wf_limit_floats(in_bytes, 0.5f, &end.in);
	if (st == WEFT_OK) {
		st = wf_limit_floats(opts->bytes, 1, &end.param);
	}
	return st == WEFT_OK ? wf_seat_follow(seat, &duty) : st;
}

/* Benchmark's thread. */
static enum weft_status
start(const struct wf_limit_opts *opts,
      enum weft_status (*run)(struct wf_bench_seat *seat, const void *arg), struct wf_limit *out)
{
	int fd[2];
	enum weft_status st = wf_socket_pair(opts->congestion, fd);
	if (st != WEFT_OK) {
		return st;
	}
	const struct end server = {.fd = fd[0], .opts = opts};
	const struct end client = {.fd = fd[1], .opts = opts, .is_client = true};
	const struct wf_limit_part part[] = {
		{"the limit's server", opts->server_cpu, run, &server},
		{"the limit's client", opts->client_cpu, run, &client},
	};
	st = wf_limit_start(opts, part, 2, out);
	wf_socket_close_pair(fd); /* the workers have theirs */
	return st;
}

enum weft_status
wf_limit_ping_start(const struct wf_limit_opts *opts, struct wf_limit *out)
{
	return start(opts, run_ping, out);
}

enum weft_status
wf_limit_tcp_start(const struct wf_limit_opts *opts, struct wf_limit *out)
{
	return start(opts, run_push_pull, out);
}
