/* SPDX-License-Identifier: Apache-2.0 */
/* memory: for hand-written loops. Thread: any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Memory, zeroed and untouched, in huge pages if there are some. With `fd` -1 it is private to this
 * process, or, with `shared`, common with its children; otherwise it is that behind the descriptor.
 * NULL: no memory, and errno. */
void *wf_limit_map(size_t bytes, bool shared, int fd);
/* Accepts NULL. */
void wf_limit_unmap(void *base, size_t bytes);
/* An array of this process's own, `value` everywhere; the end of the process gives it back.
 * WEFT_NOMEM */
enum weft_status wf_limit_floats(uint64_t bytes, float value, float **out) WEFT_MUST_CHECK;
void wf_limit_fill(float *array, uint64_t bytes, float value);
