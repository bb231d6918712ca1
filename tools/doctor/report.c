/* SPDX-License-Identifier: Apache-2.0 */
/* report: see report.h. A finding is a line, and its remedy is the next one. */
#include "tools/doctor/report.h"

#include "base/exit_code.h"
#include "base/json.h"

void
wf_doctor_report_begin(struct wf_doctor_report *report, const char *transport)
{
	if (report->json) {
		fputs("{\n  \"transport\": ", report->out);
		wf_json_print_text(report->out, transport);
		fputs(",\n  \"findings\": [", report->out);
	}
}

static void
add_json(struct wf_doctor_report *report, const struct wf_doctor_finding *finding)
{
	const struct {
		const char *name, *text;
	} fields[] = {
		{"check", finding->check}, {"level", wf_doctor_level_name(finding->level)},
		{"host", report->host},    {"subject", finding->subject},
		{"text", finding->text},   {"remedy", finding->remedy},
	};
	fputs(report->printed == 0 ? "\n    {" : ",\n    {", report->out);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		fprintf(report->out, "%s\"%s\": ", i == 0 ? "" : ", ", fields[i].name);
		wf_json_print_text(report->out, fields[i].text);
	}
	fputc('}', report->out);
}

static void
add_text(const struct wf_doctor_report *report, const struct wf_doctor_finding *finding)
{
	fprintf(report->out, "%-8s %s%s%s: %s\n", wf_doctor_level_name(finding->level),
		report->host, report->host[0] != '\0' ? " " : "", finding->check, finding->text);
	if (finding->remedy[0] != '\0') {
		fprintf(report->out, "         remedy: %s\n", finding->remedy);
	}
}

void
wf_doctor_report_add(void *arg, const struct wf_doctor_finding *finding)
{
	struct wf_doctor_report *report = arg;
	enum wf_doctor_level level =
		finding->level < WF_DOCTOR_LEVELS ? finding->level : WF_DOCTOR_FINDING;
	report->count[level]++;
	if (report->json) {
		add_json(report, finding);
		report->printed++;
	} else if (report->all || level >= WF_DOCTOR_FINDING) {
		add_text(report, finding);
		report->printed++;
	}
}

int
wf_doctor_report_end(struct wf_doctor_report *report)
{
	const unsigned *count = report->count;
	int code = count[WF_DOCTOR_FAILS] > 0     ? WF_EXIT_UNAVAILABLE
		   : count[WF_DOCTOR_FINDING] > 0 ? WF_EXIT_FAILED
						  : WF_EXIT_OK;
	if (report->json) {
		fprintf(report->out,
			"\n  ],\n  \"ok\": %u,\n  \"notes\": %u,\n  \"findings_count\": %u,\n"
			"  \"fails\": %u,\n  \"exit_code\": %d\n}\n",
			count[WF_DOCTOR_OK], count[WF_DOCTOR_NOTE], count[WF_DOCTOR_FINDING],
			count[WF_DOCTOR_FAILS], code);
		return code;
	}
	fprintf(report->out, "%u ok, %u note%s, %u finding%s, %u that cannot work: %s\n",
		count[WF_DOCTOR_OK], count[WF_DOCTOR_NOTE], count[WF_DOCTOR_NOTE] == 1 ? "" : "s",
		count[WF_DOCTOR_FINDING], count[WF_DOCTOR_FINDING] == 1 ? "" : "s",
		count[WF_DOCTOR_FAILS],
		code == WF_EXIT_OK       ? "all works"
		: code == WF_EXIT_FAILED ? "it works, with findings"
					 : "something that was asked for cannot work");
	return code;
}
