/* SPDX-License-Identifier: Apache-2.0 */
/* svg: the marks of a picture in SVG 1.1. Colours belong to classes, which change with the reader's
 * preference for light or dark. Lengths are pixels from the upper left corner. Thread: main. */
#pragma once

#include <stdio.h>

struct wf_svg {
	FILE *out;
	double width, height;
	unsigned point_count; /* of the path that is open */
};

/* `what` describes the picture to those who do not see it. */
void wf_svg_begin(struct wf_svg *svg, const char *what);
void wf_svg_end(struct wf_svg *svg);
void wf_svg_line(struct wf_svg *svg, double x1, double y1, double x2, double y2,
		 const char *classes);
void wf_svg_dot(struct wf_svg *svg, double x, double y, double radius, const char *classes);
/* Any text: what is not printable ASCII becomes a question mark. */
void wf_svg_text(struct wf_svg *svg, double x, double y, const char *classes, const char *text);
void wf_svg_path_begin(struct wf_svg *svg);
void wf_svg_path_point(struct wf_svg *svg, double x, double y);
void wf_svg_path_end(struct wf_svg *svg, const char *classes);
