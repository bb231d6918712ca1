/* SPDX-License-Identifier: Apache-2.0 */
/* path_shared: memory that two processes share, without weft: each message is copied once, straight
 * to its destination, and a counter on its own cache line announces it. It is the limit of the
 * transport shm. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/rdma_bench/limits/line.h"
#include "tools/rdma_bench/limits/memory.h"
#include "tools/rdma_bench/limits/paths.h"

#define HEAD_BYTES 4096u

/* What one end writes and the other reads; numbers only grow, over all legs. */
struct way {
	struct wf_line published; /* messages that have been sent */
	struct wf_line taken;     /* messages of the other direction that have been consumed */
};

struct shared {
	uint64_t token;
	struct way way[2]; /* the server's, the client's */
};
_Static_assert(sizeof(struct shared) <= HEAD_BYTES, "messages begin on a page of their own");

struct shared_path {
	struct wf_peer_path path; /* first */
	int memfd;                /* the server's; else -1 */
	struct shared *shared;    /* NULL: not yet */
	struct way *own, *other;
	uint8_t *remote;            /* the other end's dst */
	uint64_t out_base, in_base; /* messages of earlier legs */
};

static struct shared_path *
shared_of(struct wf_peer_path *path)
{
	return (struct shared_path *)path;
}

static const char *
shared_name(const struct wf_peer_path *path, const struct wf_peer_leg *leg)
{
	return leg->ping && leg->bytes <= 64 ? "cache line" : "memcpy";
}

static void
shared_begin(struct wf_peer_path *path)
{
	struct shared_path *s = shared_of(path);
	path->room = path->leg->ping ? 0 : WF_PEER_DEPTH_MAX;
	s->out_base = wf_line_read(&s->own->published);
	s->in_base = wf_line_read(&s->own->taken);
}

static enum weft_status
shared_send(struct wf_peer_path *path, uint64_t first, uint64_t count, uint64_t *taken)
{
	struct shared_path *s = shared_of(path);
	for (uint64_t i = first; i < first + count; i++) {
		uint8_t *src = wf_peer_src(path, i);
		memcpy(s->remote + (src - path->areas.src), src, path->leg->bytes);
		wf_line_publish(&s->own->published, s->out_base + i + 1);
	}
	*taken = count;
	path->done += count;
	path->moved = true;
	return WEFT_OK;
}

static enum weft_status
shared_report(struct wf_peer_path *path, uint64_t count, bool *taken)
{
	struct shared_path *s = shared_of(path);
	wf_line_publish(&s->own->taken, s->in_base + count);
	*taken = true;
	return WEFT_OK;
}

static enum weft_status
shared_progress(struct wf_peer_path *path)
{
	struct shared_path *s = shared_of(path);
	enum weft_status st = WEFT_OK;
	uint64_t there = wf_line_read(&s->other->published) - s->in_base;
	while (st == WEFT_OK && path->received < there) {
		st = wf_peer_on_message(path, wf_peer_dst(path, path->received));
	}
	if (path->leg->ping && st == WEFT_OK) {
		if (path->moved) { /* for the next leg */
			wf_line_publish(&s->own->taken, s->in_base + path->received);
		}
		return WEFT_OK;
	}
	uint64_t has = wf_line_read(&s->other->taken);
	path->moved = path->moved || path->peer_has != has - s->out_base;
	path->peer_has = has - s->out_base;
	return st;
}

static uint64_t
shared_bytes(const struct shared_path *s)
{
	return HEAD_BYTES + 2 * s->path.areas.half_bytes;
}

static void
shared_close(struct wf_peer_path *path)
{
	struct shared_path *s = shared_of(path);
	wf_limit_unmap(s->shared, shared_bytes(s));
	if (s->memfd >= 0) {
		close(s->memfd);
	}
	wf_limit_unmap(path->areas.src, path->areas.half_bytes);
	wf_bare_destroy(path);
}

static const struct wf_peer_path_ops shared_ops = {
	.name = shared_name,
	.begin = shared_begin,
	.send = shared_send,
	.report = shared_report,
	.progress = shared_progress,
	.close = shared_close,
};

/* The head, then the messages to the server, then those to the client. WEFT_UNAVAILABLE */
static enum weft_status
map_shared(struct shared_path *s, int fd)
{
	uint64_t half = s->path.areas.half_bytes;
	bool client = s->path.end->client;
	uint8_t *base = wf_limit_map(shared_bytes(s), true, fd);
	if (base == NULL) {
		return wf_fail_errno(WEFT_UNAVAILABLE, errno,
				     "the server's memory cannot be mapped");
	}
	s->shared = (struct shared *)(void *)base;
	s->own = &s->shared->way[client ? 1 : 0];
	s->other = &s->shared->way[client ? 0 : 1];
	s->path.areas.dst = base + HEAD_BYTES + (client ? half : 0);
	s->remote = base + HEAD_BYTES + (client ? 0 : half);
	return WEFT_OK;
}

static enum weft_status
make_shared(struct shared_path *s, struct wf_peer_offer *offer)
{
	s->memfd = memfd_create("raw path", MFD_CLOEXEC);
	if (s->memfd < 0 || ftruncate(s->memfd, (off_t)shared_bytes(s)) != 0) {
		return wf_fail_errno(WEFT_NOMEM, errno, "a raw path: shared memory");
	}
	enum weft_status st = map_shared(s, s->memfd);
	if (st == WEFT_OK) {
		memset(s->shared, 0, shared_bytes(s));
		s->shared->token = s->path.end->plan.token;
		offer->pid = (uint64_t)getpid();
		offer->fd = (uint64_t)s->memfd;
	}
	return st;
}

enum weft_status
wf_bare_shared_open(struct wf_peer_end *end, struct wf_peer_offer *offer, struct wf_peer_path **out)
{
	float *memory;
	enum weft_status st = wf_bare_create(end, &shared_ops, sizeof(struct shared_path), out);
	if (st != WEFT_OK) {
		return st;
	}
	struct shared_path *s = shared_of(*out);
	s->memfd = -1;
	st = wf_limit_floats(s->path.areas.half_bytes, 1, &memory);
	if (st == WEFT_OK) {
		s->path.areas.src = (uint8_t *)memory;
	}
	return st == WEFT_OK && !end->client ? make_shared(s, offer) : st;
}

enum weft_status
wf_bare_shared_join(struct wf_peer_path *path, const struct wf_peer_offer *offer)
{
	struct shared_path *s = shared_of(path);
	struct stat status;
	char name[64];
	if (!path->end->client) {
		return WEFT_OK;
	}
	(void)snprintf(name, sizeof(name), "/proc/%llu/fd/%llu", (unsigned long long)offer->pid,
		       (unsigned long long)offer->fd);
	int fd = open(name, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		return wf_fail_errno(WEFT_UNAVAILABLE, errno,
				     "the server's memory (%s): is it on this host, and of this "
				     "user?",
				     name);
	}
	enum weft_status st = WEFT_OK;
	if (fstat(fd, &status) != 0 || (uint64_t)status.st_size < shared_bytes(s)) {
		st = wf_fail(WEFT_UNAVAILABLE, "%s is not the server's memory", name);
	}
	if (st == WEFT_OK) {
		st = map_shared(s, fd);
	}
	close(fd);
	if (st == WEFT_OK && s->shared->token != path->end->plan.token) {
		st = wf_fail(WEFT_UNAVAILABLE, "%s is not the server's memory: is it on this host?",
			     name);
	}
	return st;
}
