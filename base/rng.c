/* SPDX-License-Identifier: Apache-2.0 */
/* rng: xoshiro256** and splitmix64, after the authors' description. Thread: the caller's. */
#include "base/rng.h"

#include "base/assert.h"

uint64_t
wf_splitmix64(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15u;
	uint64_t z = *state;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static uint64_t
rotate_left(uint64_t value, unsigned bits)
{
	return (value << bits) | (value >> (64 - bits));
}

void
wf_rng_init(struct wf_rng *rng, uint64_t seed, uint64_t stream)
{
	/* The seed is mixed before the stream joins it, so that (1, 0) and (0, 1) differ. */
	uint64_t state = seed;
	state = wf_splitmix64(&state) ^ stream;
	for (unsigned i = 0; i < WF_ARRAY_COUNT(rng->state); i++) {
		rng->state[i] = wf_splitmix64(&state);
	}
	/* splitmix64 is a bijection of distinct inputs: at most one word is 0, as it must be. */
}

uint64_t
wf_rng_u64(struct wf_rng *rng)
{
	uint64_t *s = rng->state;
	uint64_t result = rotate_left(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate_left(s[3], 45);
	return result;
}

uint64_t
wf_rng_below(struct wf_rng *rng, uint64_t bound)
{
	WF_ASSERT(bound > 0);
	/* 2^64 mod bound values are one too many for some remainders: draw again below them. */
	uint64_t surplus = (0 - bound) % bound;
	uint64_t value = 0;
	do {
		value = wf_rng_u64(rng);
	} while (value < surplus);
	return value % bound;
}

double
wf_rng_f64(struct wf_rng *rng)
{
	return (double)(wf_rng_u64(rng) >> 11) * 0x1.0p-53;
}

void
wf_rng_shuffle(struct wf_rng *rng, uint32_t *index, size_t count)
{
	for (size_t left = count; left > 1; left--) {
		size_t other = (size_t)wf_rng_below(rng, left);
		uint32_t kept = index[left - 1];
		index[left - 1] = index[other];
		index[other] = kept;
	}
}
