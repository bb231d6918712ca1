/* SPDX-License-Identifier: Apache-2.0 */
/* init: the first values of a row, a function of (seed, table, key, column) alone. They depend
 * neither on the first request nor on other rows of the table. Thread: any; pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "kernels/rows.h"

enum wf_init_kind {
	WF_INIT_ZERO = 0,
	WF_INIT_UNIFORM = 1, /* from a to b, in 2^24 steps */
	WF_INIT_NORMAL = 2,  /* mean a, standard deviation b */
	WF_INIT_COUNT = 3,
};

struct wf_init {
	enum wf_init_kind kind;
	double a, b;
	uint64_t seed;
	uint32_t table; /* number in the job */
};

/* WEFT_INVALID names field, value and limit. */
enum weft_status wf_init_check(const struct wf_init *init) WEFT_MUST_CHECK;
/* Arguments of the kernels' `uniform`, for a row of kind WF_INIT_UNIFORM. */
struct wf_row_uniform wf_init_uniform(const struct wf_init *init);
void wf_init_values(const struct wf_init *init, uint64_t key, float *out, size_t dim);
/* The normal number that a share of (bits + 1/2) / 2^32 of all lie below: Wichura's AS 241 in its
 * shorter form, about 7 digits. */
double wf_init_normal(uint32_t bits);
