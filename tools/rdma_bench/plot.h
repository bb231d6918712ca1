/* SPDX-License-Identifier: Apache-2.0 */
/* plot: rdma_bench plot: a picture of a result of rdma_bench, as SVG. Thread: main. */
#pragma once

#include <stdio.h>

#include "tools/rdma_bench/figures.h"

int wf_plot_command(int argc, char **argv);
/* Draws the file: curves over the sizes where it has some, else a row for each figure. */
void wf_plot_draw(const struct wf_figures_file *file, FILE *out);
