/* SPDX-License-Identifier: Apache-2.0 */
/* failing_env: see the header. Thread: any. */
#include "tests/support/failing_env.h"

#include <stdatomic.h>

#include "base/assert.h"

static struct wf_failing_env *
self_of(struct wf_env *env)
{
	return (struct wf_failing_env *)env;
}

static uint64_t
add(_Atomic uint64_t *counter, uint64_t value)
{
	return atomic_fetch_add_explicit(counter, value, memory_order_relaxed) + value;
}

static uint64_t
look(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static bool
must_fail(struct wf_failing_env *self)
{
	uint64_t nth = add(&self->asked, 1);
	if (self->fail_nth == 0 || nth < self->fail_nth ||
	    (nth > self->fail_nth && !self->fail_on)) {
		return false;
	}
	(void)add(&self->failed, 1);
	return true;
}

static void
took(struct wf_failing_env *self, size_t bytes)
{
	(void)add(&self->live_count, 1);
	(void)add(&self->live_bytes, bytes);
}

static void
gave_back(struct wf_failing_env *self, size_t bytes)
{
	WF_ASSERT(look(&self->live_count) > 0);
	(void)add(&self->live_count, UINT64_MAX); /* minus 1 */
	(void)add(&self->live_bytes, (uint64_t)0 - bytes);
}

static uint64_t
failing_now_ns(struct wf_env *env)
{
	return wf_now_ns(self_of(env)->inner);
}

static uint64_t
failing_random(struct wf_env *env)
{
	return wf_random(self_of(env)->inner);
}

static void *
failing_alloc(struct wf_env *env, size_t bytes, size_t align)
{
	struct wf_failing_env *self = self_of(env);
	if (must_fail(self)) {
		return NULL;
	}
	void *memory = self->inner->ops->alloc(self->inner, bytes, align);
	if (memory != NULL) {
		took(self, bytes);
	}
	return memory;
}

static void
failing_free(struct wf_env *env, void *memory, size_t bytes)
{
	struct wf_failing_env *self = self_of(env);
	if (memory != NULL) {
		gave_back(self, bytes);
	}
	self->inner->ops->free(self->inner, memory, bytes);
}

static enum weft_status
failing_slab_open(struct wf_env *env, size_t bytes, int numa_node, struct wf_slab *out)
{
	struct wf_failing_env *self = self_of(env);
	if (must_fail(self)) {
		return wf_fail(WEFT_NOMEM, "slab of %zu bytes: the test says no", bytes);
	}
	enum weft_status st = self->inner->ops->slab_open(self->inner, bytes, numa_node, out);
	if (st == WEFT_OK) {
		took(self, out->bytes);
	}
	return st;
}

static void
failing_slab_close(struct wf_env *env, struct wf_slab *slab)
{
	struct wf_failing_env *self = self_of(env);
	if (slab->base != NULL) {
		gave_back(self, slab->bytes);
	}
	self->inner->ops->slab_close(self->inner, slab);
}

static void
failing_wait(struct wf_env *env, int fd, uint64_t deadline_ns)
{
	wf_wait(self_of(env)->inner, fd, deadline_ns);
}

static int
failing_wait_events(struct wf_env *env, int epoll_fd, uint64_t deadline_ns,
		    struct epoll_event *events, int max)
{
	return wf_wait_events(self_of(env)->inner, epoll_fd, deadline_ns, events, max);
}

static enum weft_status
failing_submit(struct wf_env *env, struct wf_task *task)
{
	struct wf_env *inner = self_of(env)->inner;
	return inner->ops->submit(inner, task);
}

static void
failing_host_id(struct wf_env *env, uint8_t out[WF_HOST_ID_BYTES])
{
	wf_host_id(self_of(env)->inner, out);
}

static void
failing_log(struct wf_env *env, enum weft_log_level level, const char *line)
{
	struct wf_env *inner = self_of(env)->inner;
	inner->ops->log(inner, level, line);
}

static const struct wf_env_ops failing_ops = {
	.now_ns = failing_now_ns,
	.random = failing_random,
	.alloc = failing_alloc,
	.free = failing_free,
	.slab_open = failing_slab_open,
	.slab_close = failing_slab_close,
	.wait = failing_wait,
	.wait_events = failing_wait_events,
	.submit = failing_submit,
	.host_id = failing_host_id,
	.log = failing_log,
};

void
wf_failing_env_init(struct wf_failing_env *failing, struct wf_env *inner)
{
	failing->env.ops = &failing_ops;
	failing->inner = inner;
	atomic_init(&failing->live_count, 0);
	atomic_init(&failing->live_bytes, 0);
	wf_failing_env_fail(failing, 0, false);
}

void
wf_failing_env_fail(struct wf_failing_env *failing, uint64_t nth, bool and_after)
{
	atomic_store_explicit(&failing->asked, 0, memory_order_relaxed);
	atomic_store_explicit(&failing->failed, 0, memory_order_relaxed);
	failing->fail_nth = nth;
	failing->fail_on = and_after;
}

bool
wf_failing_env_is_clean(const struct wf_failing_env *failing)
{
	return look(&failing->live_count) == 0 && look(&failing->live_bytes) == 0;
}
