/* SPDX-License-Identifier: Apache-2.0 */
/* limits: how large a job may be, for settings and for messages; numbers of kinds. */
#pragma once

#include <stdint.h>

#define WF_TRAINER_COUNT_MAX 65536
#define WF_PSERVER_LANES_MAX 256 /* dense lanes of one pserver; sparse ones: one fewer */
#define WF_SLICE_BYTES_MIN 64    /* slices are multiples of it */
#define WF_SLICE_BYTES_MAX (64ull << 20)
#define WF_VALUE_FORMAT_COUNT 3       /* of enum weft_value_format */
#define WF_BATCH_KEYS_MAX (1u << 22)  /* of one batch of a table, repetitions counted */
#define WF_ADMIT_COUNT_MAX UINT16_MAX /* the most occurrences of a key that are counted */
#define WF_ADMIT_SLOTS_MAX (1u << 20)
#define WF_TABLE_STEP_MAX ((uint64_t)UINT32_MAX - 1) /* the highest step in the stamp of a row */
