/* SPDX-License-Identifier: Apache-2.0 */
/* svg: see svg.h. */
#include "tools/rdma_bench/svg.h"

/* Colours keep a contrast of 4.5 to their ground, also for readers who do not tell red from green:
 * Okabe and Ito's, darkened for light ground and lightened for dark. */
static const char style[] =
	"<style>\n"
	"text{font-family:system-ui,'DejaVu Sans',sans-serif;fill:#1f2328}\n"
	".paper{fill:#fff}.title{font-size:18px;font-weight:600}\n"
	".note{font-size:12px;fill:#57606a}.label{font-size:12px}\n"
	".middle{text-anchor:middle}.end{text-anchor:end}\n"
	".grid{stroke:#d8dee4;stroke-width:1}.limit{stroke:#1f2328;stroke-width:2}\n"
	".wanted{stroke:#b3530a;stroke-width:3}.range{stroke:#7fb2e5;stroke-width:4}\n"
	".pair{fill:#0b62b0;fill-opacity:.55}.weft{fill:#0b62b0}\n"
	".curve{fill:none;stroke-width:2}.raw{stroke-dasharray:6 4;stroke-width:1.5}\n"
	".c0{stroke:#0b62b0}.c1{stroke:#b3530a}.c2{stroke:#00724f}.c3{stroke:#8a3a78}\n"
	".d0{fill:#0b62b0}.d1{fill:#b3530a}.d2{fill:#00724f}.d3{fill:#8a3a78}\n"
	"@media (prefers-color-scheme:dark){text{fill:#e6edf3}.note{fill:#9da7b1}\n"
	".paper{fill:#0d1117}.grid{stroke:#30363d}.limit{stroke:#e6edf3}\n"
	".wanted{stroke:#f0a35e}.range{stroke:#2c5f93}.pair,.weft{fill:#79b8ff}\n"
	".c0{stroke:#79b8ff}.c1{stroke:#f0a35e}.c2{stroke:#4cc9a0}.c3{stroke:#dd9ccb}\n"
	".d0{fill:#79b8ff}.d1{fill:#f0a35e}.d2{fill:#4cc9a0}.d3{fill:#dd9ccb}}\n"
	"</style>\n";

static void
print_escaped(FILE *out, const char *text)
{
	for (; *text != '\0'; text++) {
		const char c = *text;
		if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'') {
			fprintf(out, "&#%d;", c);
		} else {
			fputc(c >= ' ' && c <= '~' ? c : '?', out);
		}
	}
}

void
wf_svg_begin(struct wf_svg *svg, const char *what)
{
	fprintf(svg->out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
		"width=\"%.0f\" height=\"%.0f\" role=\"img\">\n<title>",
		svg->width, svg->height, svg->width, svg->height);
	print_escaped(svg->out, what);
	fprintf(svg->out, "</title>\n%s<rect class=\"paper\" width=\"100%%\" height=\"100%%\"/>\n",
		style);
}

void
wf_svg_end(struct wf_svg *svg)
{
	fputs("</svg>\n", svg->out);
}

void
wf_svg_line(struct wf_svg *svg, double x1, double y1, double x2, double y2, const char *classes)
{
	fprintf(svg->out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
		classes, x1, y1, x2, y2);
}

void
wf_svg_dot(struct wf_svg *svg, double x, double y, double radius, const char *classes)
{
	fprintf(svg->out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>\n", classes, x,
		y, radius);
}

void
wf_svg_text(struct wf_svg *svg, double x, double y, const char *classes, const char *text)
{
	fprintf(svg->out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", classes, x, y);
	print_escaped(svg->out, text);
	fputs("</text>\n", svg->out);
}

void
wf_svg_path_begin(struct wf_svg *svg)
{
	svg->point_count = 0;
	fputs("<path d=\"", svg->out);
}

void
wf_svg_path_point(struct wf_svg *svg, double x, double y)
{
	fprintf(svg->out, "%s%.1f %.1f", svg->point_count++ == 0 ? "M" : " L", x, y);
}

void
wf_svg_path_end(struct wf_svg *svg, const char *classes)
{
	fprintf(svg->out, "\" class=\"%s\"/>\n", classes);
}
