/* SPDX-License-Identifier: Apache-2.0 */
/* partition: which partition and which lane a sparse key belongs to: pure functions of the key and
 * of the number of sparse lanes, the same on both ends and in every version of the protocol. What N
 * lanes saved per partition, M lanes load. Thread: any.
 *
 * Unlimited keys are mixed (splitmix64's finaliser, a bijection), and the ten highest bits are the
 * partition. Keys of a fixed vocabulary are dealt round by their ten lowest bits, in reversed
 * order, so that neighbours, which tend to be alike in frequency, go to lanes far apart; what is
 * left of the key is the row within the partition. A lane owns a contiguous range of partitions;
 * ranges differ by one at most. Lanes beyond the number of partitions own none. */
#pragma once

#include <stdint.h>

#define WF_PARTITION_BITS 10u
#define WF_PARTITION_COUNT (1u << WF_PARTITION_BITS)

/* Every value of `key` is legal. Bits are spread well: the mixed key serves as a hash. */
static inline uint64_t
wf_key_mix(uint64_t key)
{
	key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9u;
	key = (key ^ (key >> 27)) * 0x94d049bb133111ebu;
	return key ^ (key >> 31);
}

/* Of a table with unlimited keys. */
static inline uint32_t
wf_partition_of_mixed(uint64_t mixed)
{
	return (uint32_t)(mixed >> (64 - WF_PARTITION_BITS));
}

static inline uint32_t
wf_partition_of(uint64_t key)
{
	return wf_partition_of_mixed(wf_key_mix(key));
}

/* Of a table with keys 0 .. n - 1. */
static inline uint32_t
wf_partition_of_fixed(uint64_t key)
{
	uint32_t low = (uint32_t)key & (WF_PARTITION_COUNT - 1);
	uint32_t reversed = 0;
	for (unsigned bit = 0; bit < WF_PARTITION_BITS; bit++) {
		reversed |= (low >> bit & 1u) << (WF_PARTITION_BITS - 1 - bit);
	}
	return reversed;
}

/* First partition of a lane; lane_count gives WF_PARTITION_COUNT. `lane` counts over all pservers,
 * pserver_idx * ports_num_for_sparse + lane_idx; lane <= lane_count. */
uint32_t wf_partition_first(uint32_t lane, uint32_t lane_count);
/* The lane that owns a partition. */
uint32_t wf_partition_lane(uint32_t partition, uint32_t lane_count);
/* Keys 0 .. vocabulary - 1 that fall into a partition. */
uint64_t wf_partition_keys(uint32_t partition, uint64_t vocabulary);
