/* SPDX-License-Identifier: Apache-2.0 */
/* turns: see turns.h. */
#include "tools/rdma_bench/turns.h"

#include <string.h>

#include "tools/rdma_bench/median.h"

/* A pair; the side that begins changes from pair to pair. */
static enum weft_status
run_pair(struct wf_bench *bench, const struct wf_turns *turns, bool product_first, double *value,
	 double *limit)
{
	enum weft_status st = product_first ? turns->run(bench, turns->product, value)
					    : turns->run(bench, turns->limit, limit);
	if (st == WEFT_OK) {
		st = product_first ? turns->run(bench, turns->limit, limit)
				   : turns->run(bench, turns->product, value);
	}
	return st;
}

enum weft_status
wf_turns_run(struct wf_bench *bench, const struct wf_turns *turns, struct wf_result *out)
{
	const unsigned pairs = (unsigned)bench->set.pairs;
	double limit[WF_SAMPLES_MAX], sorted[WF_SAMPLES_MAX];
	struct wf_samples *samples = &out->samples;

	for (unsigned i = 0; i < pairs; i++) {
		enum weft_status st =
			run_pair(bench, turns, i % 2 == 0, &samples->value[i], &limit[i]);
		if (st != WEFT_OK) {
			return st;
		}
		samples->fraction[i] = out->lower_is_better ? limit[i] / samples->value[i]
							    : samples->value[i] / limit[i];
	}
	samples->count = pairs;
	out->pairs[WF_PLACEMENT_ONE] = pairs;
	out->limit = wf_median(limit, pairs);
	memcpy(sorted, samples->value, sizeof(sorted));
	out->value = wf_median(sorted, pairs);
	memcpy(sorted, samples->fraction, sizeof(sorted));
	out->fraction = wf_median(sorted, pairs);
	return WEFT_OK;
}
