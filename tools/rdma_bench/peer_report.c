/* SPDX-License-Identifier: Apache-2.0 */
/* peer_report: what a client prints. */
#include <inttypes.h>

#include "base/json.h"
#include "tools/rdma_bench/peer_run.h"
#include "tools/rdma_bench/report.h"

static const char *const kinds[] = {
	[WF_PEER_LAT] = "lat", [WF_PEER_BW] = "bw", [WF_PEER_RATE] = "rate"};

static void
print_figure(const struct wf_peer_figure *f, FILE *out)
{
	char bytes[32], spread[32];
	wf_report_bytes(f->bytes, bytes, sizeof(bytes));
	(void)snprintf(spread, sizeof(spread), "%.2f-%.2f", f->fraction_min, f->fraction_max);
	fprintf(out, "%-14s %-10s %8s %9.4g %9.4g %-4s %8.2f %11s  %-17s", f->name, f->mode, bytes,
		f->value, f->limit, f->unit, f->fraction, spread, f->limited_by);
	if (f->p50_us > 0) {
		fprintf(out, " %.4g %.4g %.4g", f->p50_us, f->p99_us, f->p999_us);
	}
	putc('\n', out);
}

void
wf_peer_report_table(const struct wf_peer_run *run, FILE *out)
{
	const struct wf_peer_settings *set = run->end->set;
	fprintf(out, "rdma_bench %s over %s with %s: weft %s, %" PRIu64 " pair%s%s\n\n",
		kinds[set->kind], run->transport, run->end->address, WEFT_PROJECT_VERSION,
		set->pairs, set->pairs == 1 ? "" : "s",
		set->verify ? "; checking each byte, which takes time" : "");
	fprintf(out, "%-14s %-10s %8s %9s %9s %-4s %8s %11s  %-17s%s\n", "name", "mode", "bytes",
		"value", "limit", "unit", "fraction", "of pairs", "limited by",
		set->kind == WF_PEER_LAT ? " p50 p99 p99.9" : "");
	for (unsigned i = 0; i < run->figure_count; i++) {
		print_figure(&run->figure[i], out);
	}
	if (set->verify && run->verified.wrong == 0) {
		fprintf(out, "\n%" PRIu64 " messages were checked and are intact\n",
			run->verified.checked);
	}
}

static void
print_json(const struct wf_peer_run *run, const struct wf_peer_figure *f, FILE *out)
{
	fputs("    {", out);
	wf_report_key(out, "name", f->name);
	wf_report_key(out, "transport", run->transport);
	wf_report_key(out, "mode", f->mode);
	fprintf(out, "\"bytes\": %" PRIu64 ", \"iterations\": %" PRIu64 ", \"value\": %.6g, ",
		f->bytes, f->count, f->value);
	wf_report_key(out, "unit", f->unit);
	fprintf(out, "\"limit\": %.6g, \"fraction\": %.6g, ", f->limit, f->fraction);
	wf_report_key(out, "limited_by", f->limited_by);
	wf_report_key(out, "better", f->lower_is_better ? "lower" : "higher");
	wf_report_positive(out, "p50_us", f->p50_us);
	wf_report_positive(out, "p99_us", f->p99_us);
	wf_report_positive(out, "p999_us", f->p999_us);
	wf_report_positive(out, "limit_p50_us", f->limit_p50_us);
	wf_report_positive(out, "limit_p99_us", f->limit_p99_us);
	wf_report_positive(out, "limit_p999_us", f->limit_p999_us);
	fprintf(out, "\"fraction_min\": %.6g, \"fraction_max\": %.6g, \"kept\": %" PRIu64 ", ",
		f->fraction_min, f->fraction_max, run->end->set->pairs);
	wf_report_samples(out, &f->samples);
	fputc('}', out);
}

void
wf_peer_report_json(const struct wf_peer_run *run, FILE *out)
{
	const struct wf_peer_end *end = run->end;
	char program[32];
	struct wf_machine m;
	wf_machine_describe(&m);
	(void)snprintf(program, sizeof(program), "rdma_bench %s", kinds[end->set->kind]);
	fputs("{", out);
	wf_report_key(out, "program", program);
	fputs("\"date\": ", out);
	wf_json_print_text(out, m.date);
	fputs(",\n", out);
	wf_report_machine(out, &m);
	fputs(",\n  ", out);
	wf_report_key(out, "transport", run->transport);
	wf_report_key(out, "server", end->address);
	wf_report_key(out, "tcp_congestion", end->congestion);
	fprintf(out, "\"pairs\": %" PRIu64 ", \"tx_depth\": %" PRIu64 ",\n  \"verify\": ",
		end->set->pairs, end->set->depth);
	if (end->set->verify) {
		fprintf(out, "{\"checked\": %" PRIu64 ", \"wrong\": %" PRIu64 "}",
			run->verified.checked, run->verified.wrong);
	} else {
		fputs("null", out);
	}
	fputs(", \"results\": [\n", out);
	for (unsigned i = 0; i < run->figure_count; i++) {
		print_json(run, &run->figure[i], out);
		fputs(i + 1 < run->figure_count ? ",\n" : "\n", out);
	}
	fputs("  ]}\n", out);
}
