/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of wf_job_decode and of wf_placement_init on accepted jobs. Memory is bounded: what
 * is allocated for a small input stays in proportion to it, and placement refuses a job for which
 * it would not. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/unit/wire/heap_env.h"
#include "wire/placement.h"

#define PLACEMENT_BYTES_MAX (1u << 20)
#define AMPLIFICATION_MAX 8 /* bytes of a decoded job per encoded byte */

static void
check_placement(struct heap_env *heap, const struct wf_job *job)
{
	struct wf_placement p;

	heap->bytes_max = PLACEMENT_BYTES_MAX;
	enum weft_status st = wf_placement_init(&heap->env, job, &p);
	if (st != WEFT_OK) {
		WF_ASSERT(st == WEFT_NOMEM || st == WEFT_INVALID);
		return;
	}
	uint64_t elements = 0;
	for (uint32_t lane = 0; lane < p.lane_count; lane++) {
		elements += p.lane_elements[lane];
	}
	for (uint32_t t = 0; t < job->tensor_count; t++) {
		elements -= job->tensor[t].count;
	}
	WF_ASSERT(elements == 0);
	(void)wf_placement_digest(&p);
	wf_placement_fini(&heap->env, &p);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct heap_env heap = heap_env_make();
	struct wf_job job;

	enum weft_status st = wf_job_decode(&heap.env, data, bytes, &job);
	WF_ASSERT(heap.asked_bytes <= AMPLIFICATION_MAX * bytes);
	if (st != WEFT_OK) {
		WF_ASSERT(weft_last_error()[0] != '\0');
		WF_ASSERT(heap.out_bytes == 0);
		return 0;
	}
	uint8_t *again = malloc(bytes);
	WF_ASSERT(again != NULL);
	WF_ASSERT(wf_job_encoded_bytes(&job) == bytes);
	wf_job_encode(&job, again);
	WF_ASSERT(memcmp(again, data, bytes) == 0);
	free(again);
	check_placement(&heap, &job);
	wf_job_fini(&heap.env, &job);
	WF_ASSERT(heap.out_bytes == 0);
	return 0;
}
