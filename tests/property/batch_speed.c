/* SPDX-License-Identifier: Apache-2.0 */
/* What a client's batch costs, by hand: batch_speed [KEYS] [DIM] [LANES]. Prints nanoseconds of the
 * thread's time for each of the caller's keys: to fill it, and to sum gradients into it. Thread:
 * one.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/env.h"
#include "base/rng.h"
#include "sparse/client/batch.h"
#include "wire/partition.h"

#define ROUNDS 200u

static double
cpu_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static uint32_t
number_of(const char *text, uint32_t missing)
{
	return text != NULL ? (uint32_t)strtoul(text, NULL, 10) : missing;
}

/* Keys below 10 M, uniform or mostly low ones (the square of the square); as they are or mixed; or
 * each once and in order. */
static void
draw_keys(uint64_t *key, uint32_t count, unsigned kind, uint64_t round)
{
	struct wf_rng rng;
	wf_rng_init(&rng, kind, round);
	for (uint32_t i = 0; i < count; i++) {
		double x = wf_rng_f64(&rng);
		x = kind % 2 == 1 ? x * x * x * x : x;
		key[i] = (uint64_t)(x * 1e7);
		key[i] = kind == 4 ? 7 * (uint64_t)i : kind >= 2 ? wf_key_mix(key[i]) : key[i];
	}
}

static void
measure(struct wf_batch *batch, const struct wf_batch_opts *opts, unsigned kind)
{
	static const char *const names[] = {"uniform", "skewed", "uniform, 64 bits",
					    "skewed, 64 bits", "ascending"};
	uint32_t count = opts->keys_max;
	uint64_t *key = calloc(count, sizeof(*key));
	float *grad = calloc(count, opts->dim * sizeof(float));
	size_t bytes = (wf_batch_send_bytes(batch) + 127) / 64 * 64;
	uint8_t *send = aligned_alloc(64, bytes);
	struct wf_batch_view view = {0};
	double fill = 0, keys = 0, grads = 0;

	if (key == NULL || grad == NULL || send == NULL) {
		abort();
	}
	for (size_t i = 0; i < (size_t)count * opts->dim; i++) {
		grad[i] = 1.0f; /* in memory of its own, not in the page of zeros */
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		draw_keys(key, count, kind, round);
		double start = cpu_ns();
		if (wf_batch_fill(batch, key, count) != WEFT_OK) {
			abort();
		}
		double filled = cpu_ns();
		wf_batch_put_keys(batch, send);
		double put = cpu_ns();
		wf_batch_put_grads(batch, &(struct wf_batch_grads){.grad = grad}, send);
		fill += filled - start;
		keys += put - filled;
		grads += cpu_ns() - put;
	}
	wf_batch_view(batch, &view);
	double each = (double)ROUNDS * count;
	printf("%-18s rows %7" PRIu32 "  fill %5.1f  keys %5.1f  gradients %5.1f ns a key\n",
	       names[kind], view.row_count, fill / each, keys / each, grads / each);
	free(key);
	free(grad);
	free(send);
}

int
main(int argc, char **argv)
{
	struct wf_batch_opts opts = {
		.keys_max = number_of(argc > 1 ? argv[1] : NULL, 4096),
		.dim = number_of(argc > 2 ? argv[2] : NULL, 64),
		.lane_count = number_of(argc > 3 ? argv[3] : NULL, 1),
		.part_bytes_max = 256 * 1024,
		.may_delta = true,
	};
	struct wf_env *env = NULL;
	struct wf_batch *batch = NULL;

	if (wf_env_system_create(WF_LOG_ERROR, 2, &env) != WEFT_OK ||
	    wf_batch_create(env, &opts, &batch) != WEFT_OK) {
		fprintf(stderr, "%s\n", weft_last_error());
		return 1;
	}
	for (unsigned kind = 0; kind < 5; kind++) {
		measure(batch, &opts, kind);
	}
	wf_batch_destroy(batch);
	wf_env_system_destroy(env);
	return 0;
}
