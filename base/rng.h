/* SPDX-License-Identifier: Apache-2.0 */
/* rng: reproducible random numbers from a 64-bit seed: xoshiro256** seeded by splitmix64 (Blackman
 * and Vigna, "Scrambled linear pseudorandom number generators", 2021). Thread: the caller's. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct wf_rng {
	uint64_t state[4];
};

/* Streams with different (seed, stream) are independent for our purposes. */
void wf_rng_init(struct wf_rng *rng, uint64_t seed, uint64_t stream);
uint64_t wf_rng_u64(struct wf_rng *rng);
/* Uniform in [0, bound), without bias; bound > 0. */
uint64_t wf_rng_below(struct wf_rng *rng, uint64_t bound);
/* Uniform in [0, 1): 53 random bits times 2^-53. */
double wf_rng_f64(struct wf_rng *rng);
/* Fisher-Yates over `count` indices. */
void wf_rng_shuffle(struct wf_rng *rng, uint32_t *index, size_t count);
/* One splitmix64 step: also a good 64-bit mixer. */
uint64_t wf_splitmix64(uint64_t *state);
