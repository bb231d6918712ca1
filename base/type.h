/* SPDX-License-Identifier: Apache-2.0 */
/* type: the types that elements of an array may have (enum weft_type). Thread: any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/weft.h"

#define WF_TYPE_COUNT (WEFT_TYPE_I64 + 1u)

/* The bytes of an element; 0: there is no such type. */
size_t wf_type_bytes(uint32_t type);
/* "f32" and so on. */
const char *wf_type_name(enum weft_type type);
bool wf_type_is_integer(enum weft_type type);
