/* SPDX-License-Identifier: Apache-2.0 */
/* report: what a run found, for people or for programs. Thread: main. */
#pragma once

#include <stdio.h>

#include "tools/rdma_bench/bench.h"

/* A table, a line for each figure. */
void wf_report_table(const struct wf_bench *bench, FILE *out);
/* One JSON object (RFC 8259); its keys: docs/benchmark.md. */
void wf_report_json(const struct wf_bench *bench, FILE *out);
