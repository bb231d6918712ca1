/* SPDX-License-Identifier: Apache-2.0 */
/* forked: the list of mappings, the set of descriptors, and the handlers of pthread_atfork(3). The
 * thread that forks has the lock while it forks, so that the child finds a list that no thread was
 * changing. In the child nothing runs but system calls. */
#include "base/forked.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int once_err;               /* of pthread_atfork */
static struct wf_forked_map *maps; /* guarded by the lock */
/* A bit of each descriptor that children close. Relaxed: a bit is set after the descriptor was
 * opened and cleared before it is closed, so a child that misses a change keeps a copy too many. */
static _Atomic uint64_t fds[WF_FORKED_FDS / 64];
_Atomic unsigned wf_forks;

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
close_fds(void)
{
	for (int i = 0; i < WF_FORKED_FDS / 64; i++) {
		uint64_t word = atomic_load_explicit(&fds[i], memory_order_relaxed);
		atomic_store_explicit(&fds[i], 0, memory_order_relaxed);
		for (; word != 0; word &= word - 1) {
			(void)close(64 * i + __builtin_ctzll(word));
		}
	}
}

static void
in_child(void)
{
	close_fds();
	while (maps != NULL) {
		struct wf_forked_map *map = maps;
		separate(map);
		maps = map->next;
		map->listed = false;
	}
	atomic_store_explicit(&wf_forks, wf_forked_depth() + 1, memory_order_relaxed);
	release_list();
}

static void
register_handlers(void)
{
	once_err = pthread_atfork(claim_list, release_list, in_child);
}

static enum weft_status
have_handlers(void)
{
	int err = pthread_once(&once, register_handlers);
	WF_ASSERT(err == 0);
	return once_err == 0 ? WEFT_OK : wf_fail_errno(WEFT_NOMEM, once_err, "pthread_atfork");
}

enum weft_status
wf_forked_add(struct wf_forked_map *map)
{
	enum weft_status st = have_handlers();
	if (st != WEFT_OK) {
		return st;
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

enum weft_status
wf_forked_add_fd(int fd)
{
	enum weft_status st = have_handlers();
	if (st == WEFT_OK && fd >= 0 && fd < WF_FORKED_FDS) {
		atomic_fetch_or_explicit(&fds[fd / 64], 1ull << fd % 64, memory_order_relaxed);
	}
	return st;
}

void
wf_forked_remove_fd(int fd)
{
	if (fd >= 0 && fd < WF_FORKED_FDS) {
		atomic_fetch_and_explicit(&fds[fd / 64], ~(1ull << fd % 64), memory_order_relaxed);
	}
}
