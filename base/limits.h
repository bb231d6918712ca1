/* SPDX-License-Identifier: Apache-2.0 */
/* limits: how large a job may be, for settings and for what travels; numbers of kinds. */
#pragma once

#define WF_TRAINER_COUNT_MAX 65536
#define WF_PSERVER_LANES_MAX 256 /* dense lanes of one pserver; sparse ones: one fewer */
#define WF_SLICE_BYTES_MIN 64    /* slices are multiples of it */
#define WF_SLICE_BYTES_MAX (64ull << 20)
#define WF_VALUE_FORMAT_COUNT 3 /* of enum weft_value_format */
