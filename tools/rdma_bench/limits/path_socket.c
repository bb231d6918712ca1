/* SPDX-License-Identifier: Apache-2.0 */
/* path_socket: a TCP connection without weft, which both ends poll: the limit of the transport tcp.
 * Messages are consecutive bytes; what is posted together is sent in one call. */
#include <unistd.h>

#include "tools/rdma_bench/limits/memory.h"
#include "tools/rdma_bench/limits/paths.h"
#include "tools/rdma_bench/limits/socket.h"

struct socket_path {
	struct wf_peer_path path; /* first */
	int fd;
	uint64_t bytes_in;  /* of messages, in this leg */
	uint64_t bytes_out; /* of messages, in this leg */
};

static struct socket_path *
socket_of(struct wf_peer_path *path)
{
	return (struct socket_path *)path;
}

static const char *
socket_name(const struct wf_peer_path *path, const struct wf_peer_leg *leg)
{
	return "raw socket";
}

static void
socket_begin(struct wf_peer_path *path)
{
	struct socket_path *s = socket_of(path);
	path->areas.stride = path->leg->bytes;
	path->areas.count_max = UINT64_MAX;
	s->bytes_in = 0;
	s->bytes_out = 0;
}

/* Parts of a message count when all of it has gone. */
static enum weft_status
socket_send(struct wf_peer_path *path, uint64_t first, uint64_t count, uint64_t *taken)
{
	struct socket_path *s = socket_of(path);
	uint64_t end = (first + count) * path->leg->bytes;
	uint64_t ring_bytes = path->areas.count * path->areas.stride;
	uint64_t at = s->bytes_out % ring_bytes;
	uint64_t bytes = end - s->bytes_out;
	bytes = bytes < ring_bytes - at ? bytes : ring_bytes - at;
	uint64_t before = s->bytes_out;
	enum weft_status st = wf_socket_put(s->fd, path->areas.src + at, bytes, &s->bytes_out);
	*taken = s->bytes_out / path->leg->bytes - first;
	path->done += *taken;
	path->moved = path->moved || s->bytes_out != before;
	return st;
}

static enum weft_status
socket_report(struct wf_peer_path *path, uint64_t count, bool *taken)
{
	static const uint8_t byte = 1;
	uint64_t done = 0;
	enum weft_status st = wf_socket_put(socket_of(path)->fd, &byte, 1, &done);
	*taken = done == 1;
	return st;
}

/* One byte follows all messages: the other end has received all of them. */
static enum weft_status
get_byte(struct wf_peer_path *path)
{
	uint8_t byte = 0;
	uint64_t done = 0;
	enum weft_status st = wf_socket_get(socket_of(path)->fd, &byte, 1, &done);
	if (done == 1) {
		path->peer_has = path->leg->send_count;
		path->moved = true;
	}
	return st;
}

static enum weft_status
socket_progress(struct wf_peer_path *path)
{
	struct socket_path *s = socket_of(path);
	const struct wf_peer_leg *leg = path->leg;
	if (path->received == leg->receive_count) {
		return leg->ping ? WEFT_OK : get_byte(path);
	}
	uint64_t ring_bytes = path->areas.count * path->areas.stride;
	uint64_t at = s->bytes_in % ring_bytes;
	uint64_t bytes = leg->receive_count * leg->bytes - s->bytes_in;
	bytes = bytes < ring_bytes - at ? bytes : ring_bytes - at;
	uint64_t before = s->bytes_in;
	enum weft_status st = wf_socket_get(s->fd, path->areas.dst + at, bytes, &s->bytes_in);
	path->moved = path->moved || s->bytes_in != before;
	while (st == WEFT_OK && (path->received + 1) * leg->bytes <= s->bytes_in) {
		st = wf_peer_on_message(path, wf_peer_dst(path, path->received));
	}
	return st;
}

static void
socket_close(struct wf_peer_path *path)
{
	struct socket_path *s = socket_of(path);
	if (s->fd >= 0) {
		close(s->fd);
	}
	wf_limit_unmap(path->areas.src, 2 * path->areas.half_bytes);
	wf_bare_destroy(path);
}

static const struct wf_peer_path_ops socket_ops = {
	.name = socket_name,
	.begin = socket_begin,
	.send = socket_send,
	.report = socket_report,
	.progress = socket_progress,
	.close = socket_close,
};

enum weft_status
wf_bare_socket_open(struct wf_peer_end *end, struct wf_peer_path **out)
{
	float *memory;
	enum weft_status st = wf_bare_create(end, &socket_ops, sizeof(struct socket_path), out);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_peer_path *path = *out;
	socket_of(path)->fd = -1;
	st = wf_limit_floats(2 * path->areas.half_bytes, 1, &memory);
	if (st == WEFT_OK) {
		path->areas.src = (uint8_t *)memory;
		path->areas.dst = path->areas.src + path->areas.half_bytes;
	}
	return st;
}

enum weft_status
wf_bare_socket_join(struct wf_peer_path *path)
{
	struct socket_path *s = socket_of(path);
	struct wf_peer_end *end = path->end;
	enum weft_status st = wf_peer_join(end, &s->fd);
	if (st == WEFT_OK) {
		wf_socket_set_up(s->fd, end->congestion);
	}
	return st;
}
