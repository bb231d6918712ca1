/* SPDX-License-Identifier: Apache-2.0 */
/* screen: a summary as text for a terminal, or as one row. Thread: the caller's. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "status/summary.h"

struct wf_screen {
	FILE *out;
	bool has_colour;
	unsigned columns; /* lines are cut after so many */
	unsigned rows;    /* trainers, tables and news are left out below; 0: no limit */
	const char *end;  /* of a line: "\n", or with what clears the rest of it */
};

void wf_screen_show(const struct wf_screen *screen, const struct wf_picture *picture,
		    const struct wf_summary *summary);
/* One row of figures; with `is_first` a row of their names before it. */
void wf_screen_row(FILE *out, const struct wf_summary *summary, bool is_first);
