/* SPDX-License-Identifier: Apache-2.0 */
/* settings: the settings in descriptions of jobs and tables, as bytes. The tables of settings
 * (base/settings.c) determine which travel, and at which offsets. Thread: any; not on the data
 * path. */
#pragma once

#include "base/settings.h"

/* Writes the bytes of `out` that are settings of that kind. `values`: the struct of that kind. */
void wf_settings_encode(enum weft_settings_kind kind, const void *values, uint8_t *out);
/* The inverse; settings that do not travel are unchanged. `message` begins the text of a refusal.
 * WEFT_PROTOCOL: a byte is neither true nor false; nothing else is checked. */
enum weft_status wf_settings_decode(enum weft_settings_kind kind, const char *message,
				    const uint8_t *in, void *values) WEFT_MUST_CHECK;
