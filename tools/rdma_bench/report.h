/* SPDX-License-Identifier: Apache-2.0 */
/* report: what a run found, for people or for programs. Thread: main. */
#pragma once

#include <stdio.h>

#include "tools/rdma_bench/bench.h"
#include "tools/rdma_bench/machine.h"

/* A table, a line for each figure. */
void wf_report_table(const struct wf_bench *bench, FILE *out);
/* One JSON object (RFC 8259); its keys: docs/benchmark.md. */
void wf_report_json(const struct wf_bench *bench, FILE *out);

/* "64 KiB", "4 MiB"; "65 B" where neither fits. */
void wf_report_bytes(uint64_t bytes, char *out, size_t room);

/* Parts of such an object. */
/* "key": "text", */
void wf_report_key(FILE *out, const char *key, const char *text);
/* "key": value, of a number that has a meaning above 0 only; else null. */
void wf_report_positive(FILE *out, const char *key, double value);
/* The keys values and fractions, the last ones of a result. */
void wf_report_samples(FILE *out, const struct wf_samples *samples);
/* The keys machine and versions. */
void wf_report_machine(FILE *out, const struct wf_machine *m);
