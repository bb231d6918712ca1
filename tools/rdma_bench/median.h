/* SPDX-License-Identifier: Apache-2.0 */
/* median: of what pairs gave. Thread: any. */
#pragma once

#include <stddef.h>

/* Sorts `values`; the mean of the two in the middle of an even count, which is at least 1. */
double wf_median(double *values, size_t count);
