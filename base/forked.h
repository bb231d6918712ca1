/* SPDX-License-Identifier: Apache-2.0 */
/* forked: what children of fork(2) must not have of their parent. Descriptors of connections are
 * closed in a child, or a peer would learn of the parent's end only when the last child has ended
 * too. Mappings of memfds become private there, at the same addresses: what the child writes stays
 * its own. A page that it has not written shows what the parent has in it at
 * that moment: to copy all mappings for every worker of a data loader would cost their memory and
 * time again. Thread: any. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* A shared mapping that a child must not write through. The caller's memory, kept until it is
 * removed. */
struct wf_forked_map {
	void *base;
	size_t bytes;
	int memfd; /* open until the mapping is removed */
	bool listed;
	struct wf_forked_map *next;
	struct wf_forked_map **link; /* what points at this one */
};

/* Lists the mapping, whose first three fields are set. */
enum weft_status wf_forked_add(struct wf_forked_map *map) WEFT_MUST_CHECK;
/* Accepts one that is not listed, as none is any more in a child. */
void wf_forked_remove(struct wf_forked_map *map);
/* Makes the mapping private in this process, for when no other process uses the memory any more,
 * and removes it: later children get copies, as of all private memory. */
void wf_forked_keep(struct wf_forked_map *map);

#define WF_FORKED_FDS 65536 /* larger descriptors stay open in children */

/* Has children close their copies of this descriptor; of one that is listed already too. */
enum weft_status wf_forked_add_fd(int fd) WEFT_MUST_CHECK;
/* Before the descriptor is closed. Accepts one that is not listed. */
void wf_forked_remove_fd(int fd);

extern _Atomic unsigned wf_forks; /* relaxed: written where there is one thread only */
/* The number of forks between the process that used this library first and this one. An object
 * that noted another number when it was made belongs to a parent. */
static inline unsigned
wf_forked_depth(void)
{
	return atomic_load_explicit(&wf_forks, memory_order_relaxed);
}
