/* SPDX-License-Identifier: Apache-2.0 */
/* compare: see compare.h. */
#include "tools/rdma_bench/compare.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/json.h"
#include "tools/command.h"
#include "tools/rdma_bench/figures.h"
#include "tools/rdma_bench/ratio.h"

#define PROGRAM "rdma_bench compare"
#define OF_FRACTION 0u

enum verdict { BETTER, SAME, UNCLEAR, WORSE, NO_PAIRS, VERDICT_COUNT };

static const char *const verdicts[] = {
	[BETTER] = "better", [SAME] = "same",         [UNCLEAR] = "unclear",
	[WORSE] = "worse",   [NO_PAIRS] = "no pairs",
};

struct settings {
	uint32_t of;
	double tolerance;
	bool json;
};

/* One figure of both files. The ratio is above 1 where b is better. */
struct row {
	const struct wf_figure *a, *b;
	double a_value, b_value;
	struct wf_ratio ratio;
	enum verdict verdict;
};

struct comparison {
	const struct settings *set;
	struct wf_figures_file file[2];
	struct row row[WF_FIGURES_MAX];
	unsigned row_count;
	unsigned count[VERDICT_COUNT];
};

#define AT(field) offsetof(struct settings, field)

static const struct wf_option table[] = {
	{.name = "of",
	 .type = WF_OPTION_ENUM,
	 .offset = AT(of),
	 .bytes = sizeof(uint32_t),
	 .initial = "fraction",
	 .choices = "fraction|value",
	 .help = "What is compared: fraction is the part of the limit that was reached, each pair "
		 "beside the limit of the same moment, so that a machine that was faster or busier "
		 "on one of the days changes little; value is the figure itself."},
	{.name = "tolerance",
	 .type = WF_OPTION_F64,
	 .offset = AT(tolerance),
	 .initial = "0.02",
	 .fmin = 0,
	 .fmax = 0.5,
	 .help = "How far a ratio may be from 1 and still be called the same."},
	{.name = "json",
	 .type = WF_OPTION_BOOL,
	 .offset = AT(json),
	 .help = "Print one JSON object on stdout instead of the table."},
};

static const struct wf_help help = {
	.usage = "rdma_bench compare A.json B.json [options]",
	.about =
		"Compares two results of rdma_bench --json, of self, lat, bw or rate, figure by "
		"figure. The ratio is how many times as good B is as A: above 1, B is better, also "
		"where less is better. It is the median of the quotients of all pairs of B and A, "
		"and the interval covers it with a confidence of 95 %, by the distribution of Mann "
		"and Whitney's U: no distribution of the pairs is assumed. "
		"Of 40 figures that are all the same, 1 or 2 intervals miss 1 by chance.\n\n"
		"A figure is worse or better if its whole interval is beyond the tolerance, the "
		"same if its whole interval is within, and unclear otherwise; with fewer than 4 "
		"pairs on either side it is always unclear. Figures that were not measured in "
		"pairs, or that only one file has, are named and decide nothing.",
	.examples = "  rdma_bench self --json > before.json\n"
		    "  rdma_bench self --json > after.json       with another build\n"
		    "  rdma_bench compare before.json after.json",
	.exit_codes = "   0  no figure is worse\n"
		      "   1  at least one figure is worse\n"
		      "  64  an option or argument is wrong\n"
		      "  65  a file is no result of rdma_bench, or has no figure of the other one\n"
		      "  74  input or output failed",
};

static enum verdict
judge(const struct wf_ratio *ratio, double tolerance)
{
	if (ratio->confidence < WF_RATIO_CONFIDENCE) {
		return UNCLEAR;
	}
	if (ratio->to < 1 - tolerance) {
		return WORSE;
	}
	if (ratio->from > 1 + tolerance) {
		return BETTER;
	}
	return ratio->from >= 1 - tolerance && ratio->to <= 1 + tolerance ? SAME : UNCLEAR;
}

static void
fill_row(const struct settings *set, const struct wf_figure *a, const struct wf_figure *b,
	 struct row *row)
{
	const bool of_fraction = set->of == OF_FRACTION;
	/* Where less is better, a is divided by b. */
	const bool inverted = !of_fraction && a->lower_is_better;
	const struct wf_samples *under = inverted ? &b->samples : &a->samples;
	const struct wf_samples *over = inverted ? &a->samples : &b->samples;

	*row = (struct row){
		.a = a,
		.b = b,
		.a_value = of_fraction ? a->fraction : a->value,
		.b_value = of_fraction ? b->fraction : b->value,
		.verdict = NO_PAIRS,
	};
	if (under->count > 0 && over->count > 0) {
		wf_ratio_estimate(of_fraction ? under->fraction : under->value, under->count,
				  of_fraction ? over->fraction : over->value, over->count,
				  &row->ratio);
		row->verdict = judge(&row->ratio, set->tolerance);
	}
}

static enum weft_status
compare(struct comparison *all)
{
	const struct wf_figures_file *a = &all->file[0], *b = &all->file[1];

	for (unsigned i = 0; i < 2; i++) {
		if (all->file[i].quick) {
			return wf_fail(WEFT_DATA,
				       "%s: was measured with --quick, which measures nothing",
				       all->file[i].path);
		}
	}
	for (unsigned i = 0; i < a->figure_count; i++) {
		const struct wf_figure *other = wf_figures_find(b, &a->figure[i]);
		if (other != NULL && other->lower_is_better != a->figure[i].lower_is_better) {
			return wf_fail(WEFT_DATA,
				       "%s of %s is better where it is \"%s\", and of %s where it "
				       "is \"%s\"",
				       other->name, a->path, a->figure[i].better, b->path,
				       other->better);
		}
		if (other != NULL) {
			struct row *row = &all->row[all->row_count++];
			fill_row(all->set, &a->figure[i], other, row);
			all->count[row->verdict]++;
		}
	}
	return all->row_count > 0
		       ? WEFT_OK
		       : wf_fail(WEFT_DATA, "%s and %s have no figure in common", a->path, b->path);
}

/* On stderr: what the table does not show. */
static void
print_notes(const struct comparison *all)
{
	const struct wf_figures_file *a = &all->file[0], *b = &all->file[1];

	if (strcmp(a->cpu, b->cpu) != 0) {
		fprintf(stderr, PROGRAM ": the machines differ: %s is of \"%s\", %s of \"%s\"\n",
			a->path, a->cpu, b->path, b->cpu);
	}
	for (unsigned side = 0; side < 2; side++) {
		const struct wf_figures_file *own = &all->file[side];
		for (unsigned i = 0; i < own->figure_count; i++) {
			const struct wf_figure *f = &own->figure[i];
			if (wf_figures_find(&all->file[1 - side], f) == NULL) {
				fprintf(stderr,
					PROGRAM ": only %s has %s over %s, %s, %.0f bytes\n",
					own->path, f->name, f->transport, f->mode, f->bytes);
			}
		}
	}
}

static void
print_table(const struct comparison *all)
{
	const char *of = all->set->of == OF_FRACTION ? "fraction" : "value";

	printf("A: %s, weft %s, %s\nB: %s, weft %s, %s\n\n", all->file[0].path,
	       all->file[0].version, all->file[0].date, all->file[1].path, all->file[1].version,
	       all->file[1].date);
	printf("%-18s %-6s %-17s %10s %9s %9s %-8s %6s  %-15s %s\n", "name", "over", "mode",
	       "bytes", "A", "B", of, "ratio", "95 % interval", "verdict");
	for (unsigned i = 0; i < all->row_count; i++) {
		const struct row *row = &all->row[i];
		char interval[32] = "-", ratio[16] = "-";
		if (row->verdict != NO_PAIRS) {
			snprintf(ratio, sizeof(ratio), "%.3f", row->ratio.middle);
			snprintf(interval, sizeof(interval), "%.3f to %.3f%s", row->ratio.from,
				 row->ratio.to,
				 row->ratio.confidence < WF_RATIO_CONFIDENCE ? " ?" : "");
		}
		printf("%-18s %-6s %-17s %10.0f %9.4g %9.4g %-8s %6s  %-15s %s\n", row->a->name,
		       row->a->transport, row->a->mode, row->a->bytes, row->a_value, row->b_value,
		       all->set->of == OF_FRACTION ? "" : row->a->unit, ratio, interval,
		       verdicts[row->verdict]);
	}
	printf("\n%u better, %u same, %u unclear, %u worse\n", all->count[BETTER], all->count[SAME],
	       all->count[UNCLEAR] + all->count[NO_PAIRS], all->count[WORSE]);
}

static void
print_text(const char *key, const char *text)
{
	printf("\"%s\": ", key);
	wf_json_print_text(stdout, text);
	fputs(", ", stdout);
}

static void
print_json(const struct comparison *all)
{
	fputc('{', stdout);
	print_text("program", PROGRAM);
	print_text("a", all->file[0].path);
	print_text("b", all->file[1].path);
	print_text("of", all->set->of == OF_FRACTION ? "fraction" : "value");
	printf("\"tolerance\": %.6g, \"worse\": %u, \"figures\": [\n", all->set->tolerance,
	       all->count[WORSE]);
	for (unsigned i = 0; i < all->row_count; i++) {
		const struct row *row = &all->row[i];
		fputs("  {", stdout);
		print_text("name", row->a->name);
		print_text("transport", row->a->transport);
		print_text("mode", row->a->mode);
		printf("\"bytes\": %.0f, \"a\": %.6g, \"b\": %.6g, ", row->a->bytes, row->a_value,
		       row->b_value);
		if (row->verdict == NO_PAIRS) {
			fputs("\"ratio\": null, \"interval\": null, \"confidence\": null, ",
			      stdout);
		} else {
			printf("\"ratio\": %.6g, \"interval\": [%.6g, %.6g], \"confidence\": "
			       "%.4f, ",
			       row->ratio.middle, row->ratio.from, row->ratio.to,
			       row->ratio.confidence);
		}
		fputs("\"verdict\": ", stdout);
		wf_json_print_text(stdout, verdicts[row->verdict]);
		puts(i + 1 < all->row_count ? "}," : "}");
	}
	puts("]}");
}

/* `*code`: of the exit, when all went well. */
static enum weft_status
run(const struct wf_options *options, int *code)
{
	static struct comparison all; /* too large for a stack; there is one */

	if (options->positional_count < 2) {
		return wf_fail(WEFT_INVALID, "two files are needed; see " PROGRAM " --help");
	}
	all.set = options->target;
	enum weft_status st = wf_figures_load(options->positional[0], &all.file[0]);
	if (st == WEFT_OK) {
		st = wf_figures_load(options->positional[1], &all.file[1]);
	}
	if (st == WEFT_OK) {
		st = compare(&all);
	}
	if (st != WEFT_OK) {
		return st;
	}
	print_notes(&all);
	if (all.set->json) {
		print_json(&all);
	} else {
		print_table(&all);
	}
	*code = all.count[WORSE] > 0 ? WF_EXIT_FAILED : WF_EXIT_OK;
	return WEFT_OK;
}

int
wf_compare_command(int argc, char **argv)
{
	struct settings set = {0};
	enum wf_option_origin origin[WF_ARRAY_COUNT(table)];
	const char *env_name[WF_ARRAY_COUNT(table)];
	const char *path[2] = {NULL};
	struct wf_options options = {
		.table = table,
		.option_count = (unsigned)WF_ARRAY_COUNT(table),
		.program = PROGRAM,
		.help = &help,
		.target = &set,
		.origin = origin,
		.env_name = env_name,
		.positional = path,
		.positional_max = 2,
	};
	int code = WF_EXIT_OK;

	enum weft_status st = wf_options_parse(&options, argc, argv);
	if (st == WEFT_OK && options.help_wanted) {
		return wf_command_print_help(&options);
	}
	if (st == WEFT_OK) {
		st = run(&options, &code);
	}
	return st == WEFT_OK ? code : wf_command_fail(PROGRAM, st);
}
