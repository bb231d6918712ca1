/* SPDX-License-Identifier: Apache-2.0 */
/* pattern: see pattern.h. */
#include "tools/rdma_bench/pattern.h"

#include <string.h>

#define WORD_BYTES 8u

/* The finalizer of splitmix64: neighbours in, nothing alike out. */
static uint64_t
word_of(uint64_t number, uint64_t idx)
{
	uint64_t z = number * 0x9e3779b97f4a7c15u + idx * 0xd1b54a32d192ed03u + 1;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static uint64_t
piece(uint64_t bytes, uint64_t at)
{
	return bytes - at < WORD_BYTES ? bytes - at : WORD_BYTES;
}

void
wf_pattern_fill(uint8_t *at, uint64_t bytes, uint64_t number)
{
	for (uint64_t i = 0; i < bytes; i += WORD_BYTES) {
		uint64_t word = word_of(number, i / WORD_BYTES);
		memcpy(at + i, &word, piece(bytes, i));
	}
}

uint64_t
wf_pattern_check(const uint8_t *at, uint64_t bytes, uint64_t number)
{
	for (uint64_t i = 0; i < bytes; i += WORD_BYTES) {
		uint64_t word = word_of(number, i / WORD_BYTES);
		uint64_t count = piece(bytes, i);
		uint8_t wanted[WORD_BYTES];
		memcpy(wanted, &word, sizeof(wanted));
		if (memcmp(at + i, wanted, count) == 0) {
			continue;
		}
		uint64_t right = 0;
		while (at[i + right] == wanted[right]) {
			right++;
		}
		return i + right;
	}
	return bytes;
}
