/* SPDX-License-Identifier: Apache-2.0 */
/* batches: what rows_pull and rows_step ask for, the product and the limit alike. Thread: the
 * worker's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct wf_env;
struct wf_rng;

#define WF_EXCHANGE_DIM 64u
#define WF_EXCHANGE_BATCH 4096u
#define WF_EXCHANGE_AHEAD 2u /* pulls under way: as many as a table of the library has batches */

/* What the mode of a command selects. An operation is one batch of rows. */
enum wf_exchange_mode {
	WF_EXCHANGE_PULL, /* rows come, and nothing is done with them */
	WF_EXCHANGE_STEP, /* rows come, the batch after it is asked for, gradients go back; AdaGrad
			   */
	WF_EXCHANGE_DRAWN = 2, /* added to either: keys as they are drawn */
};

/* The keys of batches: distinct and ascending, and as users draw them: by Zipf's law, in any order,
 * repeated. None is 0. */
struct wf_exchange_batches {
	uint64_t *key;   /* [count * WF_EXCHANGE_BATCH] ascending */
	uint64_t *drawn; /* [count * WF_EXCHANGE_BATCH] */
	float *grad;     /* [WF_EXCHANGE_BATCH * WF_EXCHANGE_DIM], of each key as it is given */
	size_t count;
	size_t next;
};

/* Of a table of `rows`, at least two batches; `quick`: few different ones. WEFT_NOMEM. The
 * process's end gives them back. */
enum weft_status wf_exchange_batches(struct wf_env *env, uint64_t rows, bool quick,
				     struct wf_exchange_batches *out) WEFT_MUST_CHECK;
/* Keys of a batch for that mode, each time another's. */
const uint64_t *wf_exchange_next(struct wf_exchange_batches *batches, uint32_t mode);
static inline bool
wf_exchange_is_step(uint32_t mode)
{
	return (mode & WF_EXCHANGE_STEP) != 0;
}
static inline bool
wf_exchange_is_drawn(uint32_t mode)
{
	return (mode & WF_EXCHANGE_DRAWN) != 0;
}
/* The number of a row out of so many, by Zipf's law with exponent 1.05; those that are drawn most
 * lie apart. */
uint64_t wf_exchange_draw(struct wf_rng *rng, uint64_t rows);
/* The key of the table's row `number`. Spread over all 64 bits, and not 0 for fewer than 2^32. */
uint64_t wf_exchange_key(uint64_t number);
/* Ascending, as a client sends them. */
void wf_exchange_sort(uint64_t *key, size_t count);
