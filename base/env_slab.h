/* SPDX-License-Identifier: Apache-2.0 */
/* env_slab: memfd-backed memory of the system env, at the NUMA node that was asked for (numa.h).
 * Thread: any. */
#pragma once

#include <pthread.h>

#include "base/env.h"
#include "base/numa.h"

#define WF_SLAB_HUGE_BYTES ((size_t)2 << 20) /* from here on a slab asks for huge pages */
#define WF_SLABS_BOUND_MAX 64u               /* further ones are preferred */

/* Slabs that are bound to a node. Their pages that are not touched yet are promised to them, but
 * the kernel still counts them as free there. */
struct wf_env_slabs {
	pthread_mutex_t lock;
	unsigned bound_count; /* the fields from here on are guarded by the lock */
	struct {
		int memfd; /* the slab's own */
		int node;
		size_t bytes;
	} bound[WF_SLABS_BOUND_MAX];
};

/* Shared memory is a file to the kernel, and the limit of their sizes counts for it (WEFT_IO).
 * Checked before the kernel is asked, which would send SIGXFSZ. `what` has so many bytes. */
enum weft_status wf_memfd_check_limit(const char *what, size_t bytes) WEFT_MUST_CHECK;
enum weft_status wf_env_slabs_init(struct wf_env_slabs *slabs) WEFT_MUST_CHECK;
void wf_env_slabs_fini(struct wf_env_slabs *slabs);
/* Whether the kernel gives memfds huge pages on request; `word` receives the kernel's setting
 * ("never"; "": unknown). Pages of the hugetlb pool cannot be used: a peer that receives such a
 * memfd may find pages missing, and refuses it (transport/shm). */
bool wf_env_slab_is_huge(char *word, size_t bytes);
/* As the ops slab_open, slab_close and slab_keep of struct wf_env_ops. `env` gets log
 * lines, and gives the list's entry. */
enum weft_status wf_env_slab_open(struct wf_env_slabs *slabs, struct wf_env *env, size_t bytes,
				  int numa_node, struct wf_slab *out) WEFT_MUST_CHECK;
void wf_env_slab_close(struct wf_env_slabs *slabs, struct wf_env *env, struct wf_slab *slab);
void wf_env_slab_keep(struct wf_env_slabs *slabs, struct wf_env *env, struct wf_slab *slab);
/* Of all slabs of the process that are open, touched or not. */
uint64_t wf_env_slab_bytes(void);
