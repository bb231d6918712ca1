/* SPDX-License-Identifier: Apache-2.0 */
/* shape: see shape.h. Thread: any. */
#include "base/shape.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

/* The product of the dimensions that are not 0, which bounds the shape of an empty array too. */
static uint64_t
extent(const struct wf_shape *shape)
{
	uint64_t product = 1;

	for (unsigned i = 0; i < shape->dims; i++) {
		product *= shape->dim[i] == 0 ? 1 : shape->dim[i];
	}
	return product;
}

bool
wf_shape_add(struct wf_shape *shape, uint64_t dim)
{
	if (shape->dims == WF_SHAPE_DIMS_MAX ||
	    (dim > 0 && extent(shape) > (uint64_t)INT64_MAX / dim)) {
		return false;
	}
	shape->dim[shape->dims++] = dim;
	return true;
}

uint64_t
wf_shape_elements(const struct wf_shape *shape)
{
	uint64_t product = 1;

	for (unsigned i = 0; i < shape->dims; i++) {
		product *= shape->dim[i];
	}
	return product;
}

/* Digits without a leading zero, at `*at`, which moves on. */
static bool
parse_dim(const char **at, uint64_t *out)
{
	const char *from = *at;
	uint64_t value = 0;

	for (; **at >= '0' && **at <= '9'; (*at)++) {
		const uint64_t digit = (uint64_t)(**at - '0');
		if (value > ((uint64_t)INT64_MAX - digit) / 10) {
			return false;
		}
		value = value * 10 + digit;
	}
	*out = value;
	return *at > from && (*from != '0' || *at == from + 1);
}

bool
wf_shape_parse(const char *text, struct wf_shape *out)
{
	uint64_t dim = 0;

	out->dims = 0;
	if (strcmp(text, WF_SHAPE_SCALAR) == 0) {
		return true;
	}
	while (parse_dim(&text, &dim) && wf_shape_add(out, dim)) {
		if (*text == '\0') {
			return true;
		}
		if (*text++ != ',') {
			return false;
		}
	}
	return false;
}

void
wf_shape_format(const struct wf_shape *shape, char *out)
{
	size_t used = 0;

	snprintf(out, WF_SHAPE_TEXT_BYTES, "%s", WF_SHAPE_SCALAR);
	for (unsigned i = 0; i < shape->dims; i++) {
		used += (size_t)snprintf(out + used, WF_SHAPE_TEXT_BYTES - used, "%s%" PRIu64,
					 i == 0 ? "" : ",", shape->dim[i]);
		WF_ASSERT(used < WF_SHAPE_TEXT_BYTES);
	}
}
