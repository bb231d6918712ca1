/* SPDX-License-Identifier: Apache-2.0 */
/* space: a network of its own for a job, whose only link can be cut: a network namespace, which has
 * a loopback interface and nothing else. Processes that this thread starts are in it. Needs the
 * right to make one, as root has it. Thread: main. */
#pragma once

#include <stdbool.h>

#include "base/status.h"

struct wf_drill_space {
	bool is_entered;
	int before_fd; /* the namespace to go back to */
};

/* `space` is zeroed. WEFT_UNSUPPORTED: there is no right to do it, or no such thing here. */
enum weft_status wf_drill_space_enter(struct wf_drill_space *space) WEFT_MUST_CHECK;
/* Cuts the link, or mends it. WEFT_IO */
enum weft_status wf_drill_space_set_link(bool is_up) WEFT_MUST_CHECK;
/* Accepts one that was not entered. */
void wf_drill_space_leave(struct wf_drill_space *space);
