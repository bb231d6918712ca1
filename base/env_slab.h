/* SPDX-License-Identifier: Apache-2.0 */
/* env_slab: memfd-backed memory of the system env. Thread: any. */
#pragma once

#include "base/env.h"

/* As the ops slab_open and slab_close of struct wf_env_ops. `env` gets log lines only. */
enum weft_status wf_env_slab_open(struct wf_env *env, size_t bytes, int numa_node,
				  struct wf_slab *out) WEFT_MUST_CHECK;
void wf_env_slab_close(struct wf_env *env, struct wf_slab *slab);
