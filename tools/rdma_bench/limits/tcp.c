/* SPDX-License-Identifier: Apache-2.0 */
/* tcp: raw sockets: a ping-pong of 64 bytes, and a push-pull of a tensor in slices. One
 * connection, made before the workers are. Thread: the workers' own, where nothing else is said. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/rdma_bench/limits/limit.h"
#include "tools/rdma_bench/meter.h"
#include "transport/tcp/tcp_congestion.h"

struct end {
	int fd;
	bool spin;
	uint64_t bytes, slice_bytes;
};

static enum weft_status
fail_stream(const char *what)
{
	return wf_fail_errno(WEFT_LOST, errno, "the raw socket: %s", what);
}

static void
set_options(int fd, const char *congestion)
{
	int one = 1;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	wf_tcp_congestion_set(fd, congestion);
}

enum weft_status
wf_limit_connect_pair(const char *congestion, int fd[2])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	fd[1] = -1;
	if (listener >= 0 && fd[0] >= 0) {
		set_options(listener, congestion);
		set_options(fd[0], congestion);
		if (bind(listener, (const struct sockaddr *)&at, sizeof(at)) == 0 &&
		    listen(listener, 1) == 0 &&
		    getsockname(listener, (struct sockaddr *)&at, &bytes) == 0 &&
		    connect(fd[0], (const struct sockaddr *)&at, sizeof(at)) == 0) {
			fd[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		}
	}
	int err = errno;
	if (listener >= 0) {
		close(listener);
	}
	if (fd[1] < 0) {
		if (fd[0] >= 0) {
			close(fd[0]);
		}
		return wf_fail_errno(WEFT_IO, err, "a raw TCP connection over loopback");
	}
	set_options(fd[1], congestion);
	return WEFT_OK;
}

void
wf_limit_close_pair(int a, int b)
{
	if (a >= 0) {
		close(a);
	}
	if (b >= 0) {
		close(b);
	}
}

static bool
is_for_later(ssize_t n)
{
	return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

static enum weft_status
receive_message(const struct end *end, uint8_t *message)
{
	int flags = end->spin ? MSG_DONTWAIT : MSG_WAITALL;
	for (size_t have = 0; have < WF_LIMIT_MESSAGE_BYTES;) {
		ssize_t n = recv(end->fd, message + have, WF_LIMIT_MESSAGE_BYTES - have, flags);
		if (n > 0) {
			have += (size_t)n;
		} else if (!is_for_later(n)) {
			return fail_stream("recv");
		}
	}
	return WEFT_OK;
}

static enum weft_status
send_message(const struct end *end, const uint8_t *message)
{
	ssize_t n = send(end->fd, message, WF_LIMIT_MESSAGE_BYTES, MSG_NOSIGNAL);
	return n == (ssize_t)WF_LIMIT_MESSAGE_BYTES ? WEFT_OK : fail_stream("send");
}

static enum weft_status
ping_client(struct wf_bench_seat *seat, const void *arg)
{
	uint8_t message[WF_LIMIT_MESSAGE_BYTES] = {1};
	struct wf_meter meter;
	struct wf_order order;
	enum weft_status st = wf_meter_init(&meter, seat->env);
	wf_seat_ready(seat, 0);
	while (st == WEFT_OK && wf_seat_order(seat, &order)) {
		struct wf_figures figures;
		wf_meter_begin(&meter, 1);
		for (uint64_t i = 0; i < order.count && st == WEFT_OK; i++) {
			st = send_message(arg, message);
			if (st == WEFT_OK) {
				st = receive_message(arg, message);
			}
			wf_meter_mark(&meter);
		}
		wf_meter_figures(&meter, order.count, &figures);
		if (st == WEFT_OK) {
			wf_seat_report(seat, &figures);
		}
	}
	return st;
}

static enum weft_status
ping_server(struct wf_bench_seat *seat, const void *arg)
{
	uint8_t message[WF_LIMIT_MESSAGE_BYTES];
	struct wf_order order;
	enum weft_status st = WEFT_OK;
	wf_seat_ready(seat, 0);
	while (st == WEFT_OK && wf_seat_order(seat, &order)) {
		const struct wf_figures figures = {.count = order.count};
		for (uint64_t i = 0; i < order.count && st == WEFT_OK; i++) {
			st = receive_message(arg, message);
			if (st == WEFT_OK) {
				st = send_message(arg, message);
			}
		}
		if (st == WEFT_OK) {
			wf_seat_report(seat, &figures);
		}
	}
	return st;
}

/* One step of a push-pull: bytes of the tensor that have gone out and come in at this end. */
struct duplex {
	const struct end *end;
	uint64_t out, in;
};

/* Take what is there, up to `end_at`. Sets `*moved`. */
static enum weft_status
take_in(struct duplex *d, void *to, uint64_t bytes, bool *moved)
{
	ssize_t n = recv(d->end->fd, to, bytes, MSG_DONTWAIT);
	if (n > 0) {
		d->in += (uint64_t)n;
		*moved = true;
		return WEFT_OK;
	}
	return is_for_later(n) ? WEFT_OK : fail_stream("recv");
}

static enum weft_status
put_out(struct duplex *d, const void *from, uint64_t bytes, bool *moved)
{
	ssize_t n = send(d->end->fd, from, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n > 0) {
		d->out += (uint64_t)n;
		*moved = true;
		return WEFT_OK;
	}
	return is_for_later(n) ? WEFT_OK : fail_stream("send");
}

/* Nothing moved: sleep until something can, unless this end spins. */
static void
wait_to_move(const struct duplex *d, bool to_send)
{
	struct pollfd wait = {.fd = d->end->fd, .events = POLLIN};
	wait.events = (short)(to_send ? POLLIN | POLLOUT : POLLIN);
	if (!d->end->spin) {
		(void)poll(&wait, 1, -1);
	}
}

static enum weft_status
client_step(const struct end *end, const uint8_t *grad, uint8_t *param)
{
	struct duplex d = {.end = end};
	enum weft_status st = WEFT_OK;
	while (st == WEFT_OK && d.in < end->bytes) {
		bool moved = false;
		uint64_t answered = d.in - d.in % end->slice_bytes;
		uint64_t allowed = answered + WF_LIMIT_WINDOW * end->slice_bytes;
		allowed = allowed < end->bytes ? allowed : end->bytes;
		if (d.out < allowed) {
			st = put_out(&d, grad + d.out, allowed - d.out, &moved);
		}
		if (st == WEFT_OK) {
			st = take_in(&d, param + d.in, end->bytes - d.in, &moved);
		}
		if (!moved) {
			wait_to_move(&d, d.out < allowed);
		}
	}
	return st;
}

static enum weft_status
server_step(const struct end *end, const struct wf_kernels *kernels, uint8_t *slots, uint8_t *store)
{
	struct duplex d = {.end = end};
	uint64_t applied = 0; /* bytes of whole slices */
	enum weft_status st = WEFT_OK;
	while (st == WEFT_OK && d.out < end->bytes) {
		bool moved = false;
		uint64_t within = d.in % end->slice_bytes;
		uint64_t slot = d.in / end->slice_bytes % WF_LIMIT_WINDOW;
		uint8_t *at = slots + slot * end->slice_bytes;
		if (d.in < end->bytes) {
			st = take_in(&d, at + within, end->slice_bytes - within, &moved);
		}
		if (d.in >= applied + end->slice_bytes) {
			wf_limit_apply(kernels, (float *)(void *)(store + applied),
				       (const float *)(void *)at, end->slice_bytes);
			applied += end->slice_bytes;
		}
		if (st == WEFT_OK && d.out < applied) {
			st = put_out(&d, store + d.out, applied - d.out, &moved);
		}
		if (!moved) {
			wait_to_move(&d, d.out < applied);
		}
	}
	return st;
}

static enum weft_status
tcp_client(struct wf_bench_seat *seat, const void *arg)
{
	const struct end *end = arg;
	struct wf_slab grad = {0}, param = {0};
	struct wf_meter meter;
	struct wf_order order;
	enum weft_status st = wf_meter_init(&meter, seat->env);
	if (st == WEFT_OK) {
		st = seat->env->ops->slab_open(seat->env, end->bytes, -1, &grad);
	}
	if (st == WEFT_OK) {
		st = seat->env->ops->slab_open(seat->env, end->bytes, -1, &param);
	}
	if (st != WEFT_OK) {
		return st;
	}
	wf_limit_fill(grad.base, end->bytes, 0.5f);
	wf_limit_fill(param.base, end->bytes, 1);
	wf_seat_ready(seat, 0);
	while (st == WEFT_OK && wf_seat_order(seat, &order)) {
		struct wf_figures figures;
		wf_meter_begin(&meter, 1);
		for (uint64_t i = 0; i < order.count && st == WEFT_OK; i++) {
			st = client_step(end, grad.base, param.base);
			wf_meter_mark(&meter);
		}
		wf_meter_figures(&meter, order.count, &figures);
		if (st == WEFT_OK) {
			wf_seat_report(seat, &figures);
		}
	}
	return st;
}

static enum weft_status
tcp_server(struct wf_bench_seat *seat, const void *arg)
{
	const struct end *end = arg;
	const struct wf_kernels *kernels = wf_kernels_best();
	struct wf_slab store = {0}, slots = {0};
	struct wf_order order;
	enum weft_status st = seat->env->ops->slab_open(seat->env, end->bytes, -1, &store);
	if (st == WEFT_OK) {
		st = seat->env->ops->slab_open(seat->env, end->slice_bytes * WF_LIMIT_WINDOW, -1,
					       &slots);
	}
	if (st != WEFT_OK) {
		return st;
	}
	wf_limit_fill(store.base, end->bytes, 1);
	wf_limit_fill(slots.base, end->slice_bytes * WF_LIMIT_WINDOW, 0);
	wf_seat_ready(seat, 0);
	while (st == WEFT_OK && wf_seat_order(seat, &order)) {
		const struct wf_figures figures = {.count = order.count};
		for (uint64_t i = 0; i < order.count && st == WEFT_OK; i++) {
			st = server_step(end, kernels, slots.base, store.base);
		}
		if (st == WEFT_OK) {
			wf_seat_report(seat, &figures);
		}
	}
	return st;
}

/* Benchmark's thread. */
static enum weft_status
start(const struct wf_limit_opts *opts, const struct wf_limit_pair *loops, struct wf_limit *out)
{
	int fd[2];
	enum weft_status st = wf_limit_connect_pair(opts->congestion, fd);
	if (st != WEFT_OK) {
		return st;
	}
	struct end client = {.fd = fd[0],
			     .spin = opts->spin,
			     .bytes = opts->bytes,
			     .slice_bytes = opts->slice_bytes};
	struct end server = client;
	server.fd = fd[1];
	struct wf_limit_pair pair = *loops;
	pair.client_arg = &client;
	pair.server_arg = &server;
	out->env = opts->env;
	st = wf_limit_start_pair(opts, &pair, out);
	wf_limit_close_pair(fd[0], fd[1]); /* the workers have theirs */
	return st;
}

enum weft_status
wf_limit_ping_start(const struct wf_limit_opts *opts, struct wf_limit *out)
{
	const struct wf_limit_pair loops = {.client = ping_client, .server = ping_server};
	return start(opts, &loops, out);
}

enum weft_status
wf_limit_tcp_start(const struct wf_limit_opts *opts, struct wf_limit *out)
{
	const struct wf_limit_pair loops = {.client = tcp_client, .server = tcp_server};
	return start(opts, &loops, out);
}
