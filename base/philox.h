/* SPDX-License-Identifier: Apache-2.0 */
/* philox: counter-based random numbers: Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel
 * random numbers: as easy as 1, 2, 3", 2011. The same counter and key give the same 128 bits on
 * every machine, for every caller and in any order. Thread: any; pure. */
#pragma once

#include <stdint.h>

struct wf_philox {
	uint32_t word[4];
};

/* One block. `counter` as the paper's c0..c3; `key` is k0 (low half) and k1. */
static inline struct wf_philox
wf_philox(struct wf_philox counter, uint64_t key)
{
	uint32_t k0 = (uint32_t)key;
	uint32_t k1 = (uint32_t)(key >> 32);
	uint32_t *c = counter.word;

	for (unsigned round = 0; round < 10; round++) {
		uint64_t a = (uint64_t)0xd2511f53u * c[0];
		uint64_t b = (uint64_t)0xcd9e8d57u * c[2];
		uint32_t c1 = c[1];
		uint32_t c3 = c[3];
		c[0] = (uint32_t)(b >> 32) ^ c1 ^ k0;
		c[1] = (uint32_t)b;
		c[2] = (uint32_t)(a >> 32) ^ c3 ^ k1;
		c[3] = (uint32_t)a;
		k0 += 0x9e3779b9u; /* golden ratio */
		k1 += 0xbb67ae85u; /* sqrt(3) - 1 */
	}
	return counter;
}
