/* SPDX-License-Identifier: Apache-2.0 */
/* admit: see admit.h. Thread: the lane's. */
#include "sparse/table/admit.h"

#include "base/assert.h"
#include "base/philox.h"
#include "wire/partition.h"

#define WAYS 3u      /* counters of a key */
#define WAY_BITS 21u /* of its hash, for each */

/* Philox's key for draws: not that of first values. */
#define DRAW_SEED 0x6a09e667f3bcc908u

WF_STATIC_ASSERT(WF_ADMIT_SLOTS_MAX <= 1u << WAY_BITS, "a way reaches every counter");

bool
wf_admit_init(struct wf_admit *admit, struct wf_budget *budget, const struct wf_table_opts *opts)
{
	*admit = (struct wf_admit){
		.budget = budget,
		.least = opts->admit.count,
		.probability = opts->admit.probability,
		.seed = opts->init.seed ^ DRAW_SEED,
		.table = opts->init.table,
		.partition_first = opts->partition_first,
		.partition_count = opts->partition_count,
	};
	const uint32_t slots = wf_admit_slots(&opts->admit);
	if (slots == 0) {
		return true;
	}
	admit->slot = wf_budget_alloc(budget, (size_t)slots * opts->partition_count *
						      sizeof(admit->slot[0]));
	if (admit->slot == NULL) {
		return false;
	}
	admit->slot_count = slots;
	return true;
}

void
wf_admit_fini(struct wf_admit *admit)
{
	if (admit->slot != NULL) {
		wf_budget_give(admit->budget, admit->slot,
			       (size_t)admit->slot_count * admit->partition_count *
				       sizeof(admit->slot[0]));
	}
	*admit = (struct wf_admit){0};
}

uint16_t *
wf_admit_counters(const struct wf_admit *admit, uint32_t partition)
{
	WF_ASSERT(partition - admit->partition_first < admit->partition_count);
	return admit->slot + (size_t)(partition - admit->partition_first) * admit->slot_count;
}

/* The counters of a key's partition. */
static uint16_t *
slots_of(const struct wf_admit *admit, uint64_t mixed)
{
	return wf_admit_counters(admit, wf_partition_of_mixed(mixed));
}

static uint32_t
slot_of_way(const struct wf_admit *admit, uint64_t hash, unsigned way)
{
	return (uint32_t)(hash >> way * WAY_BITS) & (admit->slot_count - 1);
}

void
wf_admit_note(struct wf_admit *admit, uint64_t mixed)
{
	if (admit->slot_count == 0) {
		return;
	}
	uint16_t *slots = slots_of(admit, mixed);
	uint64_t hash = wf_key_mix(mixed ^ admit->seed);
	for (unsigned way = 0; way < WAYS; way++) {
		uint16_t *slot = &slots[slot_of_way(admit, hash, way)];
		*slot = *slot == UINT16_MAX ? UINT16_MAX : (uint16_t)(*slot + 1);
	}
}

static bool
is_counted_in(const struct wf_admit *admit, uint64_t mixed)
{
	const uint16_t *slots = slots_of(admit, mixed);
	uint64_t hash = wf_key_mix(mixed ^ admit->seed);
	for (unsigned way = 0; way < WAYS; way++) {
		if (slots[slot_of_way(admit, hash, way)] < admit->least) {
			return false;
		}
	}
	return true;
}

bool
wf_admit_allows(const struct wf_admit *admit, uint64_t mixed, uint32_t step)
{
	if (admit->slot_count > 0 && !is_counted_in(admit, mixed)) {
		return false;
	}
	if (admit->probability >= 1.0) {
		return true;
	}
	struct wf_philox counter = {{(uint32_t)mixed, (uint32_t)(mixed >> 32), step, admit->table}};
	struct wf_philox bits = wf_philox(counter, admit->seed);
	return (double)bits.word[0] * 0x1p-32 < admit->probability;
}
