/* SPDX-License-Identifier: Apache-2.0 */
/* batches: see batches.h. */
#include "tools/rdma_bench/batches.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/env.h"
#include "base/rng.h"
#include "kernels/kernels.h"

#define BATCHES 128u
#define QUICK_BATCHES 4u
#define DRAW_SEED 11u
#define ZIPF_EXPONENT 1.05
#define SPREAD 2654435761u /* a prime: rows that are drawn most lie apart */

uint64_t
wf_exchange_key(uint64_t number)
{
	uint64_t state = (number + 1) * 0x9e3779b97f4a7c15u;
	return wf_splitmix64(&state);
}

/* Ranks of Zipf's law, from 0: rejection from its hull. */
static uint64_t
draw_rank(struct wf_rng *rng, uint64_t rows)
{
	const double s = ZIPF_EXPONENT;
	const double total = (wf_pow_f64((double)rows + 1.0, 1.0 - s) - 1.0) / (1.0 - s);
	for (;;) {
		double u = wf_rng_f64(rng) * total;
		double x = wf_pow_f64(1.0 + u * (1.0 - s), 1.0 / (1.0 - s));
		uint64_t rank = (uint64_t)x;
		double keep = wf_pow_f64(x / (double)rank, s) * wf_pow_f64(0.5, s);
		if (rank >= 1 && rank <= rows && wf_rng_f64(rng) < keep) {
			return rank - 1;
		}
	}
}

uint64_t
wf_exchange_draw(struct wf_rng *rng, uint64_t rows)
{
	return draw_rank(rng, rows) * SPREAD % rows;
}

static int
compare_keys(const void *a, const void *b)
{
	uint64_t x, y;
	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return (x > y) - (x < y);
}

void
wf_exchange_sort(uint64_t *key, size_t count)
{
	qsort(key, count, sizeof(*key), compare_keys);
}

/* Runs of numbers that go round the table: distinct, and after mixing anywhere. */
static void
fill_keys(struct wf_exchange_batches *batches, uint64_t rows)
{
	WF_ASSERT(rows >= 2 * WF_EXCHANGE_BATCH);
	for (size_t i = 0; i < batches->count * WF_EXCHANGE_BATCH; i++) {
		batches->key[i] = wf_exchange_key(i % rows);
	}
	for (size_t b = 0; b < batches->count; b++) {
		wf_exchange_sort(batches->key + b * WF_EXCHANGE_BATCH, WF_EXCHANGE_BATCH);
	}
}

static void
draw_keys(struct wf_exchange_batches *batches, uint64_t rows)
{
	struct wf_rng rng;

	wf_rng_init(&rng, DRAW_SEED, 0);
	for (size_t i = 0; i < batches->count * WF_EXCHANGE_BATCH; i++) {
		batches->drawn[i] = wf_exchange_key(wf_exchange_draw(&rng, rows));
	}
}

enum weft_status
wf_exchange_batches(struct wf_env *env, uint64_t rows, bool quick, struct wf_exchange_batches *out)
{
	const size_t floats = (size_t)WF_EXCHANGE_BATCH * WF_EXCHANGE_DIM;

	*out = (struct wf_exchange_batches){.count = quick ? QUICK_BATCHES : BATCHES};
	out->key = wf_zalloc_array(env, out->count * WF_EXCHANGE_BATCH, sizeof(*out->key));
	out->grad = wf_zalloc_array(env, floats, sizeof(*out->grad));
	out->drawn = wf_zalloc_array(env, out->count * WF_EXCHANGE_BATCH, sizeof(*out->drawn));
	if (out->key == NULL || out->grad == NULL || out->drawn == NULL) {
		return wf_fail(WEFT_NOMEM, "batches of keys");
	}
	for (size_t i = 0; i < floats; i++) {
		out->grad[i] = (float)(i % 17) * 0.01f - 0.08f;
	}
	fill_keys(out, rows);
	draw_keys(out, rows);
	return WEFT_OK;
}

const uint64_t *
wf_exchange_next(struct wf_exchange_batches *batches, uint32_t mode)
{
	const uint64_t *key = wf_exchange_is_drawn(mode) ? batches->drawn : batches->key;
	return key + batches->next++ % batches->count * WF_EXCHANGE_BATCH;
}
