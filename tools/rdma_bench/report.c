/* SPDX-License-Identifier: Apache-2.0 */
/* report: see report.h. */
#include "tools/rdma_bench/report.h"

#include <inttypes.h>

#include "base/json.h"
#include "kernels/kernels.h"
#include "tools/rdma_bench/machine.h"
#include "tools/rdma_bench/ratio.h"

/* Targets are met or missed as printed: two decimals are what a pair is worth. */
#define ROUNDING 0.005

static bool
is_met(const struct wf_result *r)
{
	return r->fraction >= r->target - ROUNDING;
}

static unsigned
kept(const struct wf_result *r)
{
	return r->pairs[r->placement];
}

void
wf_report_bytes(uint64_t bytes, char *out, size_t room)
{
	if (bytes >= 1024 && bytes % 1024 == 0) {
		bool mebi = bytes % (1u << 20) == 0;
		(void)snprintf(out, room, "%" PRIu64 " %s", mebi ? bytes >> 20 : bytes >> 10,
			       mebi ? "MiB" : "KiB");
	} else {
		(void)snprintf(out, room, "%" PRIu64 " B", bytes);
	}
}

/* "7 near", "7 far of 9" */
static void
format_pairs(const struct wf_result *r, char *out, size_t room)
{
	unsigned all = 0;
	for (unsigned i = 0; i < WF_PLACEMENT_COUNT; i++) {
		all += r->pairs[i];
	}
	const char *where = wf_placement_name(r->placement);
	if (all == kept(r)) {
		snprintf(out, room, "%u %s", all, where);
	} else {
		snprintf(out, room, "%u %s of %u", kept(r), where, all);
	}
}

/* "0.81-0.86": where the fraction is, with the confidence of the head; "0.81-0.86?": with less. */
static void
format_interval(const struct wf_result *r, char *out, size_t room)
{
	struct wf_ratio ratio;
	if (r->samples.count == 0) {
		snprintf(out, room, "-");
		return;
	}
	wf_ratio_of_pairs(r->samples.fraction, r->samples.count, &ratio);
	snprintf(out, room, "%.2f-%.2f%s", ratio.from, ratio.to,
		 ratio.confidence < WF_RATIO_CONFIDENCE ? "?" : "");
}

static void
print_head(const struct wf_bench *bench, FILE *out)
{
	struct wf_machine m;
	wf_machine_describe(&m);
	fprintf(out, "rdma_bench self: weft %s, kernels %s; %s, %u CPUs%s, %s; %s\n",
		WEFT_PROJECT_VERSION, wf_kernels_best()->name, m.cpu[0] != '\0' ? m.cpu : m.arch,
		m.cpu_count, m.virtual_machine ? " (virtual)" : "", m.kernel, m.date);
	fprintf(out, "cpus %d and %d, tcp congestion control %s%s\n\n", bench->cpu[0],
		bench->cpu[1], bench->congestion[0] != '\0' ? bench->congestion : m.congestion,
		bench->set.quick ? "; QUICK: these figures mean nothing" : "");
}

void
wf_report_table(const struct wf_bench *bench, FILE *out)
{
	print_head(bench, out);
	fprintf(out, "%-18s %-6s %-17s %7s %8s %8s %-4s %8s %-11s %6s  %-19s %s\n", "name", "over",
		"mode", "bytes", "value", "limit", "unit", "fraction", "between", "wanted",
		"limited by", "pairs");
	for (unsigned i = 0; i < bench->result_count; i++) {
		const struct wf_result *r = &bench->result[i];
		char bytes[32], pairs[48], interval[48];
		wf_report_bytes(r->bytes, bytes, sizeof(bytes));
		format_pairs(r, pairs, sizeof(pairs));
		format_interval(r, interval, sizeof(interval));
		fprintf(out,
			"%-18s %-6s %-17s %7s %8.3f %8.3f %-4s %7.2f%s %-11s %6.2f  %-19s %s\n",
			r->name, r->transport, r->mode, bytes, r->value, r->limit, r->unit,
			r->fraction, is_met(r) ? " " : "!", interval, r->target, r->limited_by,
			pairs);
	}
}

void
wf_report_key(FILE *out, const char *key, const char *text)
{
	fprintf(out, "\"%s\": ", key);
	wf_json_print_text(out, text);
	fputs(", ", out);
}

void
wf_report_positive(FILE *out, const char *key, double value)
{
	if (value > 0) {
		fprintf(out, "\"%s\": %.6g, ", key, value);
	} else {
		fprintf(out, "\"%s\": null, ", key);
	}
}

static void
print_numbers(FILE *out, const char *key, const double *number, unsigned count)
{
	fprintf(out, "\"%s\": [", key);
	for (unsigned i = 0; i < count; i++) {
		fprintf(out, "%s%.6g", i > 0 ? ", " : "", number[i]);
	}
	fputc(']', out);
}

void
wf_report_samples(FILE *out, const struct wf_samples *samples)
{
	print_numbers(out, "values", samples->value, samples->count);
	fputs(", ", out);
	print_numbers(out, "fractions", samples->fraction, samples->count);
}

static void
print_pairs(const struct wf_result *r, FILE *out)
{
	fprintf(out, "\"kept\": %u, \"pairs\": {", kept(r));
	for (unsigned i = 0; i < WF_PLACEMENT_COUNT; i++) {
		fprintf(out, "%s\"%s\": %u", i > 0 ? ", " : "",
			wf_placement_name((enum wf_placement)i), r->pairs[i]);
	}
	fputs("}, ", out);
}

/* null: it was not measured in pairs. */
static void
print_interval(const struct wf_result *r, FILE *out)
{
	struct wf_ratio ratio;
	if (r->samples.count == 0) {
		fputs("\"fraction_from\": null, \"fraction_to\": null, "
		      "\"fraction_confidence\": null, ",
		      out);
		return;
	}
	wf_ratio_of_pairs(r->samples.fraction, r->samples.count, &ratio);
	fprintf(out,
		"\"fraction_from\": %.6g, \"fraction_to\": %.6g, \"fraction_confidence\": %.4f, ",
		ratio.from, ratio.to, ratio.confidence);
}

static void
print_result(const struct wf_result *r, FILE *out)
{
	fputs("    {", out);
	wf_report_key(out, "name", r->name);
	wf_report_key(out, "transport", r->transport);
	wf_report_key(out, "mode", r->mode);
	fprintf(out, "\"bytes\": %" PRIu64 ", \"value\": %.6g, ", r->bytes, r->value);
	wf_report_key(out, "unit", r->unit);
	fprintf(out, "\"limit\": %.6g, \"fraction\": %.6g, ", r->limit, r->fraction);
	print_interval(r, out);
	wf_report_key(out, "limited_by", r->limited_by);
	wf_report_key(out, "better", r->lower_is_better ? "lower" : "higher");
	fprintf(out, "\"target\": %.4f, \"met\": %s, ", r->target, is_met(r) ? "true" : "false");
	wf_report_positive(out, "p50_us", r->p50_us);
	wf_report_positive(out, "p99_us", r->p99_us);
	wf_report_positive(out, "limit_p50_us", r->limit_p50_us);
	wf_report_positive(out, "limit_p99_us", r->limit_p99_us);
	print_pairs(r, out);
	wf_report_key(out, "placement", wf_placement_name(r->placement));
	wf_report_positive(out, "probe_ns", r->probe_ns);
	if (r->foreign_cores < 0) {
		fputs("\"foreign_cores\": null, ", out);
	} else {
		fprintf(out, "\"foreign_cores\": %.3f, ", r->foreign_cores);
	}
	wf_report_samples(out, &r->samples);
	fputc('}', out);
}

void
wf_report_machine(FILE *out, const struct wf_machine *m)
{
	fputs("  \"machine\": {", out);
	wf_report_key(out, "cpu", m->cpu);
	wf_report_key(out, "arch", m->arch);
	fprintf(out, "\"virtual\": %s, \"cpu_count\": %u, \"memory_bytes\": %" PRIu64 "},\n",
		m->virtual_machine ? "true" : "false", m->cpu_count, m->memory_bytes);
	fputs("  \"versions\": {", out);
	wf_report_key(out, "weft", WEFT_PROJECT_VERSION);
	wf_report_key(out, "kernels", wf_kernels_best()->name);
	wf_report_key(out, "system", m->kernel);
	fputs("\"compiler\": ", out);
	wf_json_print_text(out, WEFT_COMPILER);
	fputs("}", out);
}

void
wf_report_json(const struct wf_bench *bench, FILE *out)
{
	struct wf_machine m;
	wf_machine_describe(&m);
	fputs("{", out);
	wf_report_key(out, "program", "rdma_bench self");
	wf_report_key(out, "date", m.date);
	fprintf(out, "\"quick\": %s,\n", bench->set.quick ? "true" : "false");
	wf_report_machine(out, &m);
	fputs(",\n  \"tcp_congestion\": ", out);
	wf_json_print_text(out, bench->congestion[0] != '\0' ? bench->congestion : m.congestion);
	fputs(", \"tcp_congestion_of_system\": ", out);
	wf_json_print_text(out, m.congestion);
	fprintf(out, ",\n  \"cpus\": [%d, %d], \"seconds\": %.3g, \"results\": [\n", bench->cpu[0],
		bench->cpu[1], (double)bench->set.seconds_ns / 1e9);
	for (unsigned i = 0; i < bench->result_count; i++) {
		print_result(&bench->result[i], out);
		fputs(i + 1 < bench->result_count ? ",\n" : "\n", out);
	}
	fputs("  ]}\n", out);
}
