/* SPDX-License-Identifier: Apache-2.0 */
/* figures: the JSON that rdma_bench --json printed, read back. Nothing in a file is trusted: what
 * is missing, of another type or out of range is refused, by its name and place. Thread: main. */
#pragma once

#include <stddef.h>

#include "base/status.h"
#include "tools/rdma_bench/result.h"

#define WF_FIGURES_MAX 256u
#define WF_FIGURES_TEXT_BYTES 64u

struct wf_figure {
	char name[WF_FIGURES_TEXT_BYTES], transport[WF_FIGURES_TEXT_BYTES];
	char mode[WF_FIGURES_TEXT_BYTES], unit[WF_FIGURES_TEXT_BYTES];
	char limited_by[WF_FIGURES_TEXT_BYTES], better[WF_FIGURES_TEXT_BYTES];
	double bytes, value, limit, fraction;
	double target; /* 0: none */
	bool lower_is_better;
	struct wf_samples samples; /* count 0: the figure was not measured in pairs */
};

struct wf_figures_file {
	const char *path; /* as the user gave it */
	char program[WF_FIGURES_TEXT_BYTES], date[WF_FIGURES_TEXT_BYTES];
	char cpu[2 * WF_FIGURES_TEXT_BYTES], version[WF_FIGURES_TEXT_BYTES];
	bool quick;
	struct wf_figure figure[WF_FIGURES_MAX];
	unsigned figure_count;
};

/* WEFT_IO: it cannot be read; WEFT_DATA: what is wrong in it, and where. */
enum weft_status wf_figures_load(const char *path, struct wf_figures_file *out) WEFT_MUST_CHECK;
/* The same of a text, which messages call `path`. */
enum weft_status wf_figures_parse(const char *path, const char *text, size_t bytes,
				  struct wf_figures_file *out) WEFT_MUST_CHECK;
/* The figure that measures the same as `figure`; NULL: the file has none. */
const struct wf_figure *wf_figures_find(const struct wf_figures_file *file,
					const struct wf_figure *figure);
