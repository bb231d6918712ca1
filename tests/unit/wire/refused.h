/* SPDX-License-Identifier: Apache-2.0 */
/* refused: checks that a status and its text are the expected ones. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"

static inline void
assert_refused(enum weft_status st, enum weft_status expected, const char *text)
{
	if (st != expected) {
		fail_msg("status is %d instead of %d (wanted: %s), last text: %s", (int)st,
			 (int)expected, text, weft_last_error());
	}
	if (strstr(weft_last_error(), text) == NULL) {
		fail_msg("text \"%s\" does not say \"%s\"", weft_last_error(), text);
	}
}

/* A part of an encoded form and what to put there instead. */
struct patch {
	size_t at;    /* byte */
	size_t bytes; /* 1, 2, 4 or 8 */
	uint64_t value;
	const char *text; /* the expected text of the refusal */
};

static inline void
patch_apply(const struct patch *patch, uint8_t *bytes)
{
	for (size_t i = 0; i < patch->bytes; i++) {
		bytes[patch->at + i] = (uint8_t)(patch->value >> (8 * i));
	}
}
