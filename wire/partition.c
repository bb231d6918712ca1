/* SPDX-License-Identifier: Apache-2.0 */
/* partition: ranges of partitions. Thread: any. */
#include "wire/partition.h"

#include "base/assert.h"

uint32_t
wf_partition_first(uint32_t lane, uint32_t lane_count)
{
	WF_ASSERT(lane_count > 0);
	WF_ASSERT(lane <= lane_count);
	return (uint32_t)((uint64_t)lane * WF_PARTITION_COUNT / lane_count);
}

/* The last lane whose range begins at or before the partition: first(lane) <= p means
 * lane * COUNT < (p + 1) * lane_count. */
uint32_t
wf_partition_lane(uint32_t partition, uint32_t lane_count)
{
	WF_ASSERT(lane_count > 0);
	WF_ASSERT(partition < WF_PARTITION_COUNT);
	uint64_t lane = (((uint64_t)partition + 1) * lane_count - 1) / WF_PARTITION_COUNT;
	return (uint32_t)lane;
}

/* The keys of a partition are its low bits plus multiples of WF_PARTITION_COUNT. */
uint64_t
wf_partition_keys(uint32_t partition, uint64_t vocabulary)
{
	WF_ASSERT(partition < WF_PARTITION_COUNT);
	uint64_t low = wf_partition_of_fixed(partition); /* reversing twice changes nothing */
	return vocabulary > low ? (vocabulary - low - 1) / WF_PARTITION_COUNT + 1 : 0;
}
