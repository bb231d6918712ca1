/* SPDX-License-Identifier: Apache-2.0 */
/* ceiling: see the header. Thread: the lane's. */
#include "sparse/table/ceiling.h"

#include <inttypes.h>

#include "base/assert.h"

static struct wf_ceiling *
self_of(struct wf_env *env)
{
	return (struct wf_ceiling *)env;
}

static bool
has_room(const struct wf_ceiling *self, size_t bytes)
{
	return bytes <= self->limit_bytes - self->used_bytes;
}

static uint64_t
ceiling_now_ns(struct wf_env *env)
{
	return wf_now_ns(self_of(env)->inner);
}

static uint64_t
ceiling_random(struct wf_env *env)
{
	return wf_random(self_of(env)->inner);
}

static void *
ceiling_alloc(struct wf_env *env, size_t bytes, size_t align)
{
	struct wf_ceiling *self = self_of(env);
	void *memory =
		has_room(self, bytes) ? self->inner->ops->alloc(self->inner, bytes, align) : NULL;
	self->used_bytes += memory != NULL ? bytes : 0;
	self->refused_count += memory == NULL ? 1 : 0;
	return memory;
}

static void
ceiling_free(struct wf_env *env, void *memory, size_t bytes)
{
	struct wf_ceiling *self = self_of(env);
	WF_ASSERT(memory == NULL || bytes <= self->used_bytes);
	self->used_bytes -= memory != NULL ? bytes : 0;
	self->inner->ops->free(self->inner, memory, bytes);
}

static enum weft_status
ceiling_slab_open(struct wf_env *env, size_t bytes, int numa_node, struct wf_slab *out)
{
	struct wf_ceiling *self = self_of(env);
	if (!has_room(self, bytes)) {
		self->refused_count++;
		return wf_fail(WEFT_NOMEM, "%zu bytes more, of %" PRIu64 " that are allowed", bytes,
			       self->limit_bytes);
	}
	enum weft_status st = self->inner->ops->slab_open(self->inner, bytes, numa_node, out);
	self->used_bytes += st == WEFT_OK ? bytes : 0;
	self->refused_count += st == WEFT_OK ? 0 : 1;
	return st;
}

static void
ceiling_slab_close(struct wf_env *env, struct wf_slab *slab)
{
	struct wf_ceiling *self = self_of(env);
	/* Rounded up to pages by the env behind it. */
	self->used_bytes -= slab->bytes < self->used_bytes ? slab->bytes : self->used_bytes;
	self->inner->ops->slab_close(self->inner, slab);
}

static void
ceiling_wait(struct wf_env *env, int fd, uint64_t deadline_ns)
{
	wf_wait(self_of(env)->inner, fd, deadline_ns);
}

static int
ceiling_wait_events(struct wf_env *env, int epoll_fd, uint64_t deadline_ns,
		    struct epoll_event *events, int max)
{
	return wf_wait_events(self_of(env)->inner, epoll_fd, deadline_ns, events, max);
}

static enum weft_status
ceiling_submit(struct wf_env *env, struct wf_task *task)
{
	struct wf_ceiling *self = self_of(env);
	return self->inner->ops->submit(self->inner, task);
}

static void
ceiling_host_id(struct wf_env *env, uint8_t out[WF_HOST_ID_BYTES])
{
	wf_host_id(self_of(env)->inner, out);
}

static void
ceiling_log(struct wf_env *env, enum weft_log_level level, const char *line)
{
	struct wf_ceiling *self = self_of(env);
	self->inner->ops->log(self->inner, level, line);
}

static const struct wf_env_ops ceiling_ops = {
	.now_ns = ceiling_now_ns,
	.random = ceiling_random,
	.alloc = ceiling_alloc,
	.free = ceiling_free,
	.slab_open = ceiling_slab_open,
	.slab_close = ceiling_slab_close,
	.wait = ceiling_wait,
	.wait_events = ceiling_wait_events,
	.submit = ceiling_submit,
	.host_id = ceiling_host_id,
	.log = ceiling_log,
};

void
wf_ceiling_init(struct wf_ceiling *ceiling, struct wf_env *inner, uint64_t limit_bytes)
{
	*ceiling = (struct wf_ceiling){
		.env = {.ops = &ceiling_ops}, .inner = inner, .limit_bytes = limit_bytes};
}
