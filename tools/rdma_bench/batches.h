/* SPDX-License-Identifier: Apache-2.0 */
/* batches: what rows_pull and rows_step ask for, the product and the limit alike. Thread: the
 * worker's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct wf_env;

#define WF_EXCHANGE_DIM 64u
#define WF_EXCHANGE_BATCH 4096u
#define WF_EXCHANGE_AHEAD 2u /* pulls under way: as many as a table of the library has batches */

/* What the mode of a command selects. An operation is one batch of rows. */
enum wf_exchange_mode {
	WF_EXCHANGE_PULL, /* rows come, and nothing is done with them */
	WF_EXCHANGE_STEP, /* rows come, the batch after it is asked for, gradients go back; AdaGrad
			   */
};

struct wf_exchange_batches {
	uint64_t *key; /* [count * WF_EXCHANGE_BATCH] distinct in a batch, ascending; never 0 */
	float *grad;   /* [WF_EXCHANGE_BATCH * WF_EXCHANGE_DIM] */
	size_t count;
	size_t next;
};

/* Of a table of `rows`, at least two batches; `quick`: few different ones. WEFT_NOMEM. The
 * process's end gives them back. */
enum weft_status wf_exchange_batches(struct wf_env *env, uint64_t rows, bool quick,
				     struct wf_exchange_batches *out) WEFT_MUST_CHECK;
/* Keys of a batch, each time another's. */
const uint64_t *wf_exchange_next(struct wf_exchange_batches *batches);
/* The key of the table's row `number`. Spread over all 64 bits, and not 0 for fewer than 2^32. */
uint64_t wf_exchange_key(uint64_t number);
/* Ascending, as a client sends them. */
void wf_exchange_sort(uint64_t *key, size_t count);
