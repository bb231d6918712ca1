/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the results that rdma_bench compare and plot read: whatever is accepted can be
 * compared with itself and drawn. */
#include <math.h>
#include <stdio.h>

#include "base/assert.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/rdma_bench/figures.h"
#include "tools/rdma_bench/plot.h"
#include "tools/rdma_bench/ratio.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct wf_figures_file file;
	static FILE *nowhere;

	if (nowhere == NULL) {
		nowhere = fopen("/dev/null", "we");
		WF_ASSERT(nowhere != NULL);
	}
	if (wf_figures_parse("input", (const char *)data, bytes, &file) != WEFT_OK) {
		WF_ASSERT(weft_last_error()[0] != '\0');
		return 0;
	}
	WF_ASSERT(file.figure_count > 0 && file.figure_count <= WF_FIGURES_MAX);
	for (unsigned i = 0; i < file.figure_count; i++) {
		const struct wf_figure *f = &file.figure[i];
		struct wf_ratio ratio;
		WF_ASSERT(f->value > 0 && isfinite(f->value) && f->samples.count <= WF_SAMPLES_MAX);
		if (f->samples.count > 0) {
			wf_ratio_estimate(f->samples.value, f->samples.count, f->samples.value,
					  f->samples.count, &ratio);
			WF_ASSERT(ratio.from <= ratio.middle && ratio.middle <= ratio.to);
		}
	}
	wf_plot_draw(&file, nowhere);
	return 0;
}
