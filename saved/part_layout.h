/* SPDX-License-Identifier: Apache-2.0 */
/* part_layout: the places of fields in a part of a snapshot, and which heads and blocks there can
 * be, for its writer and its reader. Private to this folder. Thread: any. */
#pragma once

#include "saved/part.h"

#define WF_PART_MAGIC "weftpart"
#define WF_PART_HEAD_BYTES 64u
#define WF_PART_HEAD_CRC_AT 60u
#define WF_PART_BLOCK_HEAD_BYTES 48u
#define WF_PART_BLOCK_CRC_AT 44u
#define WF_PART_CRC_BYTES 4u
#define WF_PART_END 0u /* the kind of the end mark */

/* Why no part can have this head; NULL: one can. */
const char *wf_part_head_objection(const struct wf_part_head *head);
/* Why no part can have this block; NULL: one can. */
const char *wf_part_block_objection(const struct wf_part_block *block);
