/* SPDX-License-Identifier: Apache-2.0 */
/* path_shared: memory that two processes share, without weft: each message is copied once, straight
 * to where the receiver wants it, and a counter on a cache line of its own says so. What the
 * transport shm is held against. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "tools/rdma_bench/limits/paths.h"

#define LINE_BYTES 128u /* two lines: a processor may fetch the neighbour */
#define HEAD_BYTES 4096u

/* What one end writes and the other reads; numbers only grow, over all legs. */
struct way {
	/* S1: messages that are there; writer: store release; reader: load acquire. */
	_Alignas(LINE_BYTES) _Atomic uint64_t published;
	/* S2: messages of the other way that have been taken; store release, load acquire. */
	_Alignas(LINE_BYTES) _Atomic uint64_t taken;
};

struct shared {
	uint64_t token;
	struct way way[2]; /* the server's, the client's */
};
WF_STATIC_ASSERT(sizeof(struct shared) <= HEAD_BYTES, "messages begin on a page of their own");

struct shared_path {
	struct wf_peer_path path; /* first */
	struct wf_slab slab;      /* src, and of the server what is shared, behind */
	struct shared *shared;
	size_t mapped_bytes; /* of the client's mapping; 0: the slab's */
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
	s->out_base = atomic_load_explicit(&s->own->published, memory_order_relaxed); /* S1: own */
	s->in_base = atomic_load_explicit(&s->own->taken, memory_order_relaxed);      /* S2: own */
}

static enum weft_status
shared_send(struct wf_peer_path *path, uint64_t first, uint64_t count, uint64_t *taken)
{
	struct shared_path *s = shared_of(path);
	for (uint64_t i = first; i < first + count; i++) {
		uint8_t *src = wf_peer_src(path, i);
		memcpy(s->remote + (src - path->src), src, path->leg->bytes);
		atomic_store_explicit(&s->own->published, s->out_base + i + 1,
				      memory_order_release); /* S1 */
	}
	*taken = count;
	path->done += count;
	path->moved = true;
	return WEFT_OK;
}

static enum weft_status
shared_tell(struct wf_peer_path *path, uint64_t count, bool *taken)
{
	struct shared_path *s = shared_of(path);
	atomic_store_explicit(&s->own->taken, s->in_base + count, memory_order_release); /* S2 */
	*taken = true;
	return WEFT_OK;
}

static enum weft_status
shared_progress(struct wf_peer_path *path)
{
	struct shared_path *s = shared_of(path);
	enum weft_status st = WEFT_OK;
	uint64_t there = atomic_load_explicit(&s->other->published, memory_order_acquire) -
			 s->in_base; /* S1 */
	while (st == WEFT_OK && path->received < there) {
		st = wf_peer_take(path, wf_peer_dst(path, path->received));
	}
	if (path->leg->ping && st == WEFT_OK) {
		if (path->moved) { /* for the next leg */
			atomic_store_explicit(&s->own->taken, s->in_base + path->received,
					      memory_order_release); /* S2 */
		}
		return WEFT_OK;
	}
	uint64_t has = atomic_load_explicit(&s->other->taken, memory_order_acquire); /* S2 */
	path->moved = path->moved || path->peer_has != has - s->out_base;
	path->peer_has = has - s->out_base;
	return st;
}

static void
shared_close(struct wf_peer_path *path)
{
	struct shared_path *s = shared_of(path);
	struct wf_env *env = path->end->env;
	if (s->mapped_bytes > 0) {
		(void)munmap(s->shared, s->mapped_bytes);
	}
	if (s->slab.base != NULL) {
		env->ops->slab_close(env, &s->slab);
	}
	wf_peer_path_fini(path);
	wf_free(env, s, sizeof(*s));
}

static const struct wf_peer_path_ops shared_ops = {
	.name = shared_name,
	.begin = shared_begin,
	.send = shared_send,
	.tell = shared_tell,
	.progress = shared_progress,
	.close = shared_close,
};

/* `base`: the head, then what comes to the server, then what comes to the client. */
static void
lay_out(struct shared_path *s, uint8_t *base)
{
	uint64_t half = s->path.half_bytes;
	bool client = s->path.end->client;
	s->shared = (struct shared *)(void *)base;
	s->own = &s->shared->way[client ? 1 : 0];
	s->other = &s->shared->way[client ? 0 : 1];
	s->path.dst = base + HEAD_BYTES + (client ? half : 0);
	s->remote = base + HEAD_BYTES + (client ? 0 : half);
}

static uint64_t
shared_bytes(const struct shared_path *s)
{
	return HEAD_BYTES + 2 * s->path.half_bytes;
}

enum weft_status
wf_bare_shared_open(struct wf_peer_end *end, struct wf_peer_offer *offer, struct wf_peer_path **out)
{
	struct shared_path *s = wf_zalloc(end->env, sizeof(*s));
	if (s == NULL) {
		return wf_fail(WEFT_NOMEM, "a path: %zu bytes", sizeof(*s));
	}
	*out = &s->path;
	enum weft_status st = wf_peer_path_init(&s->path, &shared_ops, end);
	uint64_t shared = end->client ? 0 : shared_bytes(s);
	if (st == WEFT_OK) {
		st = end->env->ops->slab_open(end->env, shared + s->path.half_bytes, -1, &s->slab);
	}
	if (st != WEFT_OK) {
		return st;
	}
	uint8_t *base = s->slab.base;
	memset(base, 0, shared + s->path.half_bytes);
	s->path.src = base + shared;
	if (!end->client) {
		lay_out(s, base);
		s->shared->token = end->plan.token;
		offer->pid = (uint64_t)getpid();
		offer->fd = (uint64_t)s->slab.memfd;
	}
	return WEFT_OK;
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
	void *base = MAP_FAILED;
	if (fstat(fd, &status) == 0 && (uint64_t)status.st_size >= shared_bytes(s)) {
		base = mmap(NULL, shared_bytes(s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	}
	close(fd);
	if (base == MAP_FAILED) {
		return wf_fail(WEFT_UNAVAILABLE, "the server's memory (%s) cannot be mapped", name);
	}
	lay_out(s, base);
	s->mapped_bytes = shared_bytes(s);
	if (s->shared->token != path->end->plan.token) {
		return wf_fail(WEFT_UNAVAILABLE,
			       "%s is not the server's memory: is it on this host?", name);
	}
	return WEFT_OK;
}
