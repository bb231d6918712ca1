/* SPDX-License-Identifier: Apache-2.0 */
/* array_type: see array_type.h. Thread: any. */
#include "saved/array_type.h"

#include <stddef.h>
#include <string.h>

#include "base/assert.h"

static const struct wf_array_type_about types[WF_ARRAY_TYPES] = {
	[WF_ARRAY_F32] = {"f32", "F32", "f4", 4, true},
	[WF_ARRAY_F16] = {"f16", "F16", "f2", 2, true},
	[WF_ARRAY_BF16] = {"bf16", "BF16", NULL, 2, true},
	[WF_ARRAY_F64] = {"f64", "F64", "f8", 8, true},
	[WF_ARRAY_I8] = {"i8", "I8", "i1", 1, false},
	[WF_ARRAY_I16] = {"i16", "I16", "i2", 2, false},
	[WF_ARRAY_I32] = {"i32", "I32", "i4", 4, false},
	[WF_ARRAY_I64] = {"i64", "I64", "i8", 8, false},
	[WF_ARRAY_U8] = {"u8", "U8", "u1", 1, false},
	[WF_ARRAY_U16] = {"u16", "U16", "u2", 2, false},
	[WF_ARRAY_U32] = {"u32", "U32", "u4", 4, false},
	[WF_ARRAY_U64] = {"u64", "U64", "u8", 8, false},
	[WF_ARRAY_BOOL] = {"bool", "BOOL", "b1", 1, false},
};

const struct wf_array_type_about *
wf_array_type_about(enum wf_array_type type)
{
	WF_ASSERT(type < WF_ARRAY_TYPES);
	return &types[type];
}

/* `offset` of the name in the table's rows. */
static bool
find(size_t offset, const char *name, enum wf_array_type *out)
{
	for (unsigned i = 0; i < WF_ARRAY_TYPES; i++) {
		const char *own = NULL;
		memcpy(&own, (const char *)&types[i] + offset, sizeof(own));
		if (own != NULL && strcmp(own, name) == 0) {
			*out = (enum wf_array_type)i;
			return true;
		}
	}
	return false;
}

bool
wf_array_type_by_name(const char *name, enum wf_array_type *out)
{
	return find(offsetof(struct wf_array_type_about, name), name, out);
}

bool
wf_array_type_by_safetensors(const char *name, enum wf_array_type *out)
{
	return find(offsetof(struct wf_array_type_about, safetensors), name, out);
}

bool
wf_array_type_by_npy(const char *name, enum wf_array_type *out)
{
	return find(offsetof(struct wf_array_type_about, npy), name, out);
}
