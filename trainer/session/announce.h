/* SPDX-License-Identifier: Apache-2.0 */
/* announce: what a link has announced, for announce.c and its test alone. Thread: the core's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct wf_announced {
	bool *waits; /* [slice_count] the lane knows, and has not allowed the PUT yet */
	/* Pushes of the step that are to be announced, in order: all that were before have been
	 * when the next step's come, so they begin at 0 again. */
	uint32_t *say; /* [slice_count] */
	uint32_t say_first, say_count;
};
