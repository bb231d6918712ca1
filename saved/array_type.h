/* SPDX-License-Identifier: Apache-2.0 */
/* array_type: the types of elements that arrays in files have, as each format calls them. Thread:
 * any; the table is constant. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum wf_array_type {
	WF_ARRAY_F32,
	WF_ARRAY_F16,
	WF_ARRAY_BF16,
	WF_ARRAY_F64,
	WF_ARRAY_I8,
	WF_ARRAY_I16,
	WF_ARRAY_I32,
	WF_ARRAY_I64,
	WF_ARRAY_U8,
	WF_ARRAY_U16,
	WF_ARRAY_U32,
	WF_ARRAY_U64,
	WF_ARRAY_BOOL,
};
#define WF_ARRAY_TYPES (WF_ARRAY_BOOL + 1u)

struct wf_array_type_about {
	const char *name;        /* in a manifest */
	const char *safetensors; /* its `dtype` */
	const char *npy;         /* its `descr` without the byte order; NULL: NumPy has none */
	unsigned bytes;          /* of an element */
	bool is_float;
};

const struct wf_array_type_about *wf_array_type_about(enum wf_array_type type);
/* Finds the type by its name in a manifest, in safetensors, in npy. false: there is none. */
bool wf_array_type_by_name(const char *name, enum wf_array_type *out);
bool wf_array_type_by_safetensors(const char *name, enum wf_array_type *out);
bool wf_array_type_by_npy(const char *name, enum wf_array_type *out);
