/* SPDX-License-Identifier: Apache-2.0 */
/* text_setup: texts in memory for tests of readers. */
#pragma once

#include "tests/unit/train/setup.h"
#include "trainer/readers/text.h"

/* Ends with wf_text_fini, or with the reader that owns it. */
static inline struct wf_text
text_of_bytes(struct wf_env *env, const char *bytes, size_t count)
{
	struct wf_text text = {.path = "made.txt", .count = count, .alloc_bytes = count + 1};
	text.bytes = wf_zalloc(env, text.alloc_bytes);
	assert_non_null(text.bytes);
	memcpy(text.bytes, bytes, count);
	return text;
}
