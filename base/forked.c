/* SPDX-License-Identifier: Apache-2.0 */
/* forked: the list of mappings, and the handlers of pthread_atfork(3). The thread that forks has
 * the lock while it forks, so that the child finds a list that no thread was changing. In the child
 * nothing runs but system calls. */
#include "base/forked.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "base/assert.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int once_err;               /* of pthread_atfork */
static struct wf_forked_map *maps; /* guarded by the lock */
static _Atomic unsigned depth;     /* relaxed: written where there is one thread only */

static void
claim_list(void)
{
	int err = pthread_mutex_lock(&lock);
	WF_ASSERT(err == 0);
}

static void
release_list(void)
{
	int err = pthread_mutex_unlock(&lock);
	WF_ASSERT(err == 0);
}

/* libibverbs may have kept the memory out of the child (MADV_DONTFORK). MS_ASYNC does nothing but
 * find such holes. */
static bool
is_mapped(const struct wf_forked_map *map)
{
	return msync(map->base, map->bytes, MS_ASYNC) == 0 || errno != ENOMEM;
}

/* Where nothing else is by now. */
static void
fill_hole(const struct wf_forked_map *map)
{
	void *got = mmap(map->base, map->bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED_NOREPLACE, map->memfd, (off_t)0);
	if (got != MAP_FAILED && got != map->base) { /* before Linux 4.17 an address is a hint */
		(void)munmap(got, map->bytes);
	}
}

/* The private mapping exists before it replaces the shared one, which is lost only if that
 * succeeds. */
static bool
replace(const struct wf_forked_map *map)
{
	void *got = mmap(NULL, map->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE,
			 map->memfd, (off_t)0);
	if (got == MAP_FAILED) {
		return false;
	}
	if (mremap(got, map->bytes, map->bytes, MREMAP_MAYMOVE | MREMAP_FIXED, map->base) ==
	    MAP_FAILED) {
		(void)munmap(got, map->bytes);
		return false;
	}
	return true;
}

/* If there is no private mapping the child can only read, or else not even that: it must not change
 * what its parent trains with. */
static void
separate(const struct wf_forked_map *map)
{
	if (!is_mapped(map)) {
		fill_hole(map);
	} else if (!replace(map) && mprotect(map->base, map->bytes, PROT_READ) != 0) {
		(void)munmap(map->base, map->bytes);
	}
}

static void
in_child(void)
{
	while (maps != NULL) {
		struct wf_forked_map *map = maps;
		separate(map);
		maps = map->next;
		map->listed = false;
	}
	atomic_store_explicit(&depth, wf_forked_depth() + 1, memory_order_relaxed);
	release_list();
}

static void
register_handlers(void)
{
	once_err = pthread_atfork(claim_list, release_list, in_child);
}

enum weft_status
wf_forked_add(struct wf_forked_map *map)
{
	int err = pthread_once(&once, register_handlers);
	WF_ASSERT(err == 0);
	if (once_err != 0) {
		return wf_fail_errno(WEFT_NOMEM, once_err, "pthread_atfork");
	}
	claim_list();
	map->listed = true;
	map->next = maps;
	map->link = &maps;
	if (maps != NULL) {
		maps->link = &map->next;
	}
	maps = map;
	release_list();
	return WEFT_OK;
}

static void
unlist(struct wf_forked_map *map)
{
	if (!map->listed) {
		return;
	}
	*map->link = map->next;
	if (map->next != NULL) {
		map->next->link = map->link;
	}
	map->listed = false;
}

void
wf_forked_remove(struct wf_forked_map *map)
{
	claim_list();
	unlist(map);
	release_list();
}

void
wf_forked_keep(struct wf_forked_map *map)
{
	claim_list();
	if (map->listed) {
		(void)replace(map); /* otherwise later children share it, and no job uses it */
		unlist(map);
	}
	release_list();
}

unsigned
wf_forked_depth(void)
{
	return atomic_load_explicit(&depth, memory_order_relaxed);
}
