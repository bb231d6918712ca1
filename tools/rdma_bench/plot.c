/* SPDX-License-Identifier: Apache-2.0 */
/* plot: see plot.h. The picture holds its colours for light and dark itself, and needs no font that
 * the reader does not have: texts have room for wide letters. */
#include "tools/rdma_bench/plot.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "tools/rdma_bench/median.h"
#include "tools/rdma_bench/svg.h"

#define WIDTH 960.0
#define MARGIN 24.0
#define HEAD 78.0 /* title, second line, legend */
/* Rows. */
#define ROW 24.0
#define NAMES 400.0 /* columns of names, in front of the axis */
#define VALUES 190.0
#define FAR_FACTOR 3.0
#define FRACTION_MAX 1000.0
/* Curves. */
#define CURVES_HEIGHT 470.0
#define LEFT 84.0
#define RIGHT 36.0
#define FOOT 62.0
#define SERIES_MAX 16u
#define SIZES_LEAST 3u /* with fewer sizes a curve shows nothing */

static void
format_bytes(double bytes, char *out, size_t room)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
	unsigned unit = 0;

	while (unit < 3 && bytes >= 1024 && fmod(bytes, 1024) == 0) {
		bytes /= 1024;
		unit++;
	}
	(void)snprintf(out, room, "%.6g %s", bytes, units[unit]);
}

static void
draw_head(struct wf_svg *svg, const struct wf_figures_file *file, const char *what)
{
	char line[4 * WF_FIGURES_TEXT_BYTES + 64];

	(void)snprintf(line, sizeof(line), "%s: %s", file->program, what);
	wf_svg_text(svg, MARGIN, 30, "title", line);
	(void)snprintf(line, sizeof(line), "weft %s, %s, %s%s", file->version, file->cpu,
		       file->date, file->quick ? "; QUICK: these figures mean nothing" : "");
	wf_svg_text(svg, MARGIN, 50, "note", line);
}

/* ---- rows ---- */

/* The axis of fractions, from 0 to the end. */
struct scale {
	double left, width, end, step;
};

static double
at(const struct scale *scale, double fraction)
{
	const double part = fraction / scale->end;
	return scale->left + scale->width * (part < 1 ? part : 1);
}

/* The end of the axis: beyond all that is wanted, and beyond all figures but those that are far
 * from most others, so that one of them does not press the rest together. */
static double
axis_end(const struct wf_figures_file *file)
{
	double fraction[WF_FIGURES_MAX];
	double most = 1;

	for (unsigned i = 0; i < file->figure_count; i++) {
		fraction[i] = file->figure[i].fraction;
		most = file->figure[i].target > most ? file->figure[i].target : most;
	}
	(void)wf_median(fraction, file->figure_count); /* sorts them */
	const double usual = FAR_FACTOR * fraction[(file->figure_count - 1) / 2];
	const double largest = fraction[file->figure_count - 1];
	most = fmax(most, fmin(usual, largest));
	return fmin(most, FRACTION_MAX) * 1.05;
}

static struct scale
fraction_scale(const struct wf_figures_file *file)
{
	static const double steps[] = {0.1, 0.2, 0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500};
	struct scale scale = {.left = MARGIN + NAMES, .width = WIDTH - 2 * MARGIN - NAMES - VALUES};
	const double end = axis_end(file);
	size_t i = 0;

	while (i + 1 < WF_ARRAY_COUNT(steps) && end / steps[i] > 6) {
		i++;
	}
	scale.step = steps[i];
	scale.end = ceil(end / scale.step) * scale.step;
	return scale;
}

static void
draw_fraction_axis(struct wf_svg *svg, const struct scale *scale, double top, double bottom)
{
	char label[16];

	for (unsigned i = 0; i * scale->step <= scale->end * 1.0001; i++) {
		const double x = at(scale, i * scale->step);
		(void)snprintf(label, sizeof(label), "%.6g", i * scale->step);
		wf_svg_line(svg, x, top, x, bottom, "grid");
		wf_svg_text(svg, x, bottom + 18, "label middle", label);
	}
	wf_svg_line(svg, at(scale, 1), top, at(scale, 1), bottom, "limit");
	wf_svg_text(svg, scale->left + scale->width / 2, bottom + 38, "label middle",
		    "fraction of the limit that weft reaches (1: as fast as the limit; right is "
		    "better)");
}

static void
draw_row(struct wf_svg *svg, const struct scale *scale, const struct wf_figure *f, double y)
{
	char bytes[32], value[64];
	double from = f->fraction, to = f->fraction;

	format_bytes(f->bytes, bytes, sizeof(bytes));
	wf_svg_text(svg, MARGIN, y + 4, "label", f->name);
	wf_svg_text(svg, MARGIN + 138, y + 4, "label", f->transport);
	wf_svg_text(svg, MARGIN + 196, y + 4, "label", f->mode);
	wf_svg_text(svg, MARGIN + NAMES - 14, y + 4, "label end", bytes);
	for (unsigned i = 0; i < f->samples.count; i++) {
		const double fraction = f->samples.fraction[i];
		from = fraction < from ? fraction : from;
		to = fraction > to ? fraction : to;
	}
	wf_svg_line(svg, at(scale, from), y, at(scale, to), y, "range");
	for (unsigned i = 0; i < f->samples.count; i++) {
		wf_svg_dot(svg, at(scale, f->samples.fraction[i]), y, 2.5, "pair");
	}
	wf_svg_dot(svg, at(scale, f->fraction), y, 5, "weft");
	if (f->fraction > scale->end) {
		(void)snprintf(value, sizeof(value), "%.3g, off the scale", f->fraction);
		wf_svg_text(svg, at(scale, f->fraction) - 10, y - 6, "label end", value);
	}
	if (f->target > 0) {
		wf_svg_line(svg, at(scale, f->target), y - 8, at(scale, f->target), y + 8,
			    "wanted");
	}
	(void)snprintf(value, sizeof(value), "%.4g of %.4g %.8s", f->value, f->limit, f->unit);
	wf_svg_text(svg, WIDTH - MARGIN, y + 4, "label end", value);
}

static void
draw_rows(const struct wf_figures_file *file, FILE *out)
{
	const struct scale scale = fraction_scale(file);
	const double bottom = HEAD + 34 + file->figure_count * ROW;
	struct wf_svg svg = {.out = out, .width = WIDTH, .height = bottom + FOOT};

	wf_svg_begin(&svg, "How much of its limit each figure of weft reaches");
	draw_head(&svg, file, "how much of its limit each figure reaches");
	wf_svg_dot(&svg, MARGIN + 6, HEAD, 5, "weft");
	wf_svg_text(&svg, MARGIN + 18, HEAD + 4, "label", "median of the pairs");
	wf_svg_dot(&svg, MARGIN + 176, HEAD, 2.5, "pair");
	wf_svg_text(&svg, MARGIN + 186, HEAD + 4, "label", "one pair");
	wf_svg_line(&svg, MARGIN + 268, HEAD - 8, MARGIN + 268, HEAD + 8, "wanted");
	wf_svg_text(&svg, MARGIN + 278, HEAD + 4, "label", "wanted");
	wf_svg_line(&svg, MARGIN + 350, HEAD - 8, MARGIN + 350, HEAD + 8, "limit");
	wf_svg_text(&svg, MARGIN + 360, HEAD + 4, "label", "the limit");
	wf_svg_text(&svg, WIDTH - MARGIN, HEAD + 4, "label end", "value of limit");
	draw_fraction_axis(&svg, &scale, HEAD + 18, bottom);
	for (unsigned i = 0; i < file->figure_count; i++) {
		draw_row(&svg, &scale, &file->figure[i], HEAD + 34 + i * ROW);
	}
	wf_svg_end(&svg);
}

/* ---- curves ---- */

/* Figures that differ in size alone. */
struct series {
	const struct wf_figure *first;
	const struct wf_figure *point[WF_FIGURES_MAX];
	unsigned count;
};

struct curves {
	struct series series[SERIES_MAX];
	unsigned count;
	double x_from, x_to, y_from, y_to; /* logarithms, of 2 and of 10 */
};

static bool
is_of(const struct series *series, const struct wf_figure *f)
{
	return strcmp(series->first->name, f->name) == 0 &&
	       strcmp(series->first->mode, f->mode) == 0 &&
	       strcmp(series->first->transport, f->transport) == 0 &&
	       strcmp(series->first->unit, f->unit) == 0;
}

static void
widen(double value, double *from, double *to)
{
	*from = value < *from ? value : *from;
	*to = value > *to ? value : *to;
}

static void
add_point(struct curves *curves, struct series *series, const struct wf_figure *f)
{
	series->point[series->count++] = f;
	widen(log2(f->bytes), &curves->x_from, &curves->x_to);
	widen(log10(f->value), &curves->y_from, &curves->y_to);
	widen(log10(f->limit), &curves->y_from, &curves->y_to);
	for (unsigned i = 0; i < f->samples.count; i++) {
		widen(log10(f->samples.value[i]), &curves->y_from, &curves->y_to);
	}
}

/* Sorts the figures into series; false: not all are on curves with sizes enough and one unit. */
static bool
find_curves(const struct wf_figures_file *file, struct curves *out)
{
	*out = (struct curves){
		.x_from = HUGE_VAL, .x_to = -HUGE_VAL, .y_from = HUGE_VAL, .y_to = -HUGE_VAL};
	for (unsigned f = 0; f < file->figure_count; f++) {
		const struct wf_figure *figure = &file->figure[f];
		unsigned i = 0;
		while (i < out->count && !is_of(&out->series[i], figure)) {
			i++;
		}
		if (i == SERIES_MAX || strcmp(figure->unit, file->figure[0].unit) != 0) {
			return false;
		}
		out->series[i].first = i == out->count ? figure : out->series[i].first;
		out->count += i == out->count;
		add_point(out, &out->series[i], figure);
	}
	for (unsigned i = 0; i < out->count; i++) {
		if (out->series[i].count < SIZES_LEAST) {
			return false;
		}
	}
	return out->x_to > out->x_from;
}

static double
x_of(const struct curves *curves, double bytes)
{
	const double part = (log2(bytes) - curves->x_from) / (curves->x_to - curves->x_from);
	return LEFT + part * (WIDTH - LEFT - RIGHT);
}

static double
y_of(const struct curves *curves, double top, double value)
{
	const double part = (log10(value) - curves->y_from) / (curves->y_to - curves->y_from);
	return top + (1 - part) * CURVES_HEIGHT;
}

/* Whole decades, but at least one. */
static void
round_up(struct curves *curves)
{
	curves->y_from = floor(curves->y_from);
	curves->y_to = ceil(curves->y_to);
	if (curves->y_to <= curves->y_from) {
		curves->y_to = curves->y_from + 1;
	}
}

static void
draw_curve_axes(struct wf_svg *svg, const struct curves *curves, double top, const char *unit)
{
	static const double parts[] = {1, 2, 5};
	const double bottom = top + CURVES_HEIGHT;
	const double decades = curves->y_to - curves->y_from;
	char label[48];

	for (double decade = curves->y_from; decade <= curves->y_to && decades < 100; decade++) {
		for (size_t i = 0; i < WF_ARRAY_COUNT(parts); i++) {
			const double value = parts[i] * pow(10, decade);
			if ((i > 0 && (decade == curves->y_to || decades > 4))) {
				continue;
			}
			const double y = y_of(curves, top, value);
			(void)snprintf(label, sizeof(label), "%.6g", value);
			wf_svg_line(svg, LEFT, y, WIDTH - RIGHT, y, "grid");
			wf_svg_text(svg, LEFT - 8, y + 4, "label end", label);
		}
	}
	const double step = curves->x_to - curves->x_from > 16 ? 2 : 1;
	for (double x = ceil(curves->x_from); x <= curves->x_to; x += step) {
		const double place = x_of(curves, exp2(x));
		format_bytes(exp2(x), label, sizeof(label));
		wf_svg_line(svg, place, top, place, bottom, "grid");
		wf_svg_text(svg, place, bottom + 18, "label middle", label);
	}
	wf_svg_text(svg, LEFT + (WIDTH - LEFT - RIGHT) / 2, bottom + 42, "label middle",
		    "size of a message");
	(void)snprintf(label, sizeof(label), "%.8s (%s is better)", unit,
		       curves->series[0].first->lower_is_better ? "lower" : "higher");
	wf_svg_text(svg, LEFT - 8, top - 12, "label", label);
}

static void
draw_curve(struct wf_svg *svg, const struct curves *curves, unsigned idx, double top)
{
	const struct series *series = &curves->series[idx];
	char style[32];

	(void)snprintf(style, sizeof(style), "curve c%u raw", idx % 4);
	wf_svg_path_begin(svg);
	for (unsigned i = 0; i < series->count; i++) {
		const struct wf_figure *f = series->point[i];
		wf_svg_path_point(svg, x_of(curves, f->bytes), y_of(curves, top, f->limit));
	}
	wf_svg_path_end(svg, style);
	(void)snprintf(style, sizeof(style), "curve c%u", idx % 4);
	wf_svg_path_begin(svg);
	for (unsigned i = 0; i < series->count; i++) {
		const struct wf_figure *f = series->point[i];
		wf_svg_path_point(svg, x_of(curves, f->bytes), y_of(curves, top, f->value));
	}
	wf_svg_path_end(svg, style);
	for (unsigned i = 0; i < series->count; i++) {
		const struct wf_figure *f = series->point[i];
		double from = f->value, to = f->value;
		for (unsigned p = 0; p < f->samples.count; p++) {
			widen(f->samples.value[p], &from, &to);
		}
		const double x = x_of(curves, f->bytes);
		wf_svg_line(svg, x, y_of(curves, top, from), x, y_of(curves, top, to), style);
		(void)snprintf(style, sizeof(style), "d%u", idx % 4);
		wf_svg_dot(svg, x, y_of(curves, top, f->value), 3.5, style);
		(void)snprintf(style, sizeof(style), "curve c%u", idx % 4);
	}
}

static void
draw_curve_legend(struct wf_svg *svg, const struct curves *curves)
{
	char text[3 * WF_FIGURES_TEXT_BYTES + 16], style[32];

	for (unsigned i = 0; i < curves->count; i++) {
		const struct wf_figure *f = curves->series[i].first;
		const double y = HEAD + i * 20;
		(void)snprintf(style, sizeof(style), "curve c%u", i % 4);
		wf_svg_line(svg, MARGIN, y, MARGIN + 34, y, style);
		(void)snprintf(style, sizeof(style), "d%u", i % 4);
		wf_svg_dot(svg, MARGIN + 17, y, 3.5, style);
		(void)snprintf(text, sizeof(text), "%s, %s, over %s", f->name, f->mode,
			       f->transport);
		wf_svg_text(svg, MARGIN + 44, y + 4, "label", text);
		(void)snprintf(style, sizeof(style), "curve c%u raw", i % 4);
		wf_svg_line(svg, WIDTH / 2, y, WIDTH / 2 + 34, y, style);
		(void)snprintf(text, sizeof(text), "its limit: %s", f->limited_by);
		wf_svg_text(svg, WIDTH / 2 + 44, y + 4, "label", text);
	}
}

static void
draw_curves(const struct wf_figures_file *file, struct curves *curves, FILE *out)
{
	const double top = HEAD + curves->count * 20 + 30;
	struct wf_svg svg = {.out = out, .width = WIDTH, .height = top + CURVES_HEIGHT + FOOT};

	round_up(curves);
	wf_svg_begin(&svg, "Figures of weft over the size of a message, and their limits");
	draw_head(&svg, file, "over the size of a message; bars: the range of the pairs");
	draw_curve_legend(&svg, curves);
	draw_curve_axes(&svg, curves, top, file->figure[0].unit);
	for (unsigned i = 0; i < curves->count; i++) {
		draw_curve(&svg, curves, i, top);
	}
	wf_svg_end(&svg);
}

void
wf_plot_draw(const struct wf_figures_file *file, FILE *out)
{
	static struct curves curves;

	if (find_curves(file, &curves)) {
		draw_curves(file, &curves, out);
	} else {
		draw_rows(file, out);
	}
}
