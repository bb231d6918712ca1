/* SPDX-License-Identifier: Apache-2.0 */
/* name: what tensors and tables may be called. Thread: any; not on the data path. */
#pragma once

#include "wire/job.h"

/* WEFT_INVALID: `name` is empty, has no NUL, or has a byte that is a space or not printable ASCII.
 * The text begins with `what`: "tensor 3", "table". */
enum weft_status wf_name_check(const char *what,
			       const char name[WF_TENSOR_NAME_BYTES]) WEFT_MUST_CHECK;
