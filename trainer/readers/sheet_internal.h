/* SPDX-License-Identifier: Apache-2.0 */
/* The header of any table. Thread: the caller's. */
#pragma once

#include "trainer/readers/sheet.h"

/* Fills in format and header. On failure nothing is left. As wf_sheet_open. */
enum weft_status wf_columns_open(struct wf_env *env, const struct wf_text *text,
				 const struct wf_sheet_opts *opts,
				 struct wf_sheet *sheet) WEFT_MUST_CHECK;
