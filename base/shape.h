/* SPDX-License-Identifier: Apache-2.0 */
/* shape: the dimensions of an array as a text with a single spelling: "4,3,3,3", "7", and "()" for
 * a scalar. The limits are NumPy's: at most 32 dimensions, and the product of those that are not 0
 * is a number of 63 bits. Thread: any; pure functions. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define WF_SHAPE_DIMS_MAX 32u
/* The longest text, with its NUL: a product of 63 bits has at most 19 digits more than dimensions,
 * and there are 31 commas. */
#define WF_SHAPE_TEXT_BYTES 96u
#define WF_SHAPE_SCALAR "()"

struct wf_shape {
	unsigned dims;
	uint64_t dim[WF_SHAPE_DIMS_MAX];
};

/* Adds a dimension behind the others. false: there are 32, or the product is too large; the shape
 * is as it was. */
bool wf_shape_add(struct wf_shape *shape, uint64_t dim);
/* The number of elements; 1 of a scalar. */
uint64_t wf_shape_elements(const struct wf_shape *shape);
/* false: the text is no shape in its one spelling; `out` is then undefined. */
bool wf_shape_parse(const char *text, struct wf_shape *out);
/* `out` is [WF_SHAPE_TEXT_BYTES]. */
void wf_shape_format(const struct wf_shape *shape, char *out);
