/* SPDX-License-Identifier: Apache-2.0 */
/* type: see type.h. Thread: any. */
#include "base/type.h"

#include "base/assert.h"

static const struct {
	const char *name;
	size_t bytes;
} types[] = {
	[WEFT_TYPE_F32] = {"f32", 4}, [WEFT_TYPE_F64] = {"f64", 8}, [WEFT_TYPE_BF16] = {"bf16", 2},
	[WEFT_TYPE_F16] = {"f16", 2}, [WEFT_TYPE_I32] = {"i32", 4}, [WEFT_TYPE_I64] = {"i64", 8},
};
WF_STATIC_ASSERT(WF_ARRAY_COUNT(types) == WF_TYPE_COUNT, "one row for each type");

size_t
wf_type_bytes(uint32_t type)
{
	return type < WF_TYPE_COUNT ? types[type].bytes : 0;
}

const char *
wf_type_name(enum weft_type type)
{
	WF_ASSERT((unsigned)type < WF_TYPE_COUNT);
	return types[type].name;
}

bool
wf_type_is_integer(enum weft_type type)
{
	return type == WEFT_TYPE_I32 || type == WEFT_TYPE_I64;
}
