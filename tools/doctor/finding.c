/* SPDX-License-Identifier: Apache-2.0 */
/* What a check asks about its task, and how it adds a finding. Thread: any one. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/doctor/doctor_internal.h"

/* What files say may hold anything; a terminal must not obey it. */
static void
copy_printable(char *out, size_t bytes, const char *text)
{
	(void)snprintf(out, bytes, "%s", text);
	for (char *at = out; *at != '\0'; at++) {
		unsigned char c = (unsigned char)*at;
		*at = (char)(c < 0x20 || c >= 0x7f ? '?' : c);
	}
}

void
wf_doctor_add(const struct wf_doctor *doctor, const struct wf_doctor_about *about,
	      const char *format, ...)
{
	struct wf_doctor_finding finding;
	char text[WF_DOCTOR_TEXT_BYTES];
	va_list args;
	memset(&finding, 0, sizeof(finding)); /* it is written to a pipe, padding included */
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	finding.level = about->level;
	copy_printable(finding.check, sizeof(finding.check), doctor->check->name);
	copy_printable(finding.text, sizeof(finding.text), text);
	if (about->subject != NULL) {
		copy_printable(finding.subject, sizeof(finding.subject), about->subject);
	}
	if (about->remedy != NULL) {
		copy_printable(finding.remedy, sizeof(finding.remedy), about->remedy);
	}
	doctor->sink(doctor->arg, &finding);
}

bool
wf_doctor_is_here(const struct wf_doctor *doctor)
{
	return doctor->ask->root[0] == '\0';
}

bool
wf_doctor_wants(const struct wf_doctor *doctor, const char *transport)
{
	return strcmp(doctor->ask->transport, transport) == 0;
}

bool
wf_doctor_may_use(const struct wf_doctor *doctor, const char *transport)
{
	return wf_doctor_wants(doctor, transport) || wf_doctor_wants(doctor, "auto");
}

enum wf_doctor_level
wf_doctor_grade(const struct wf_doctor *doctor, const char *transport, enum wf_doctor_level less)
{
	return wf_doctor_wants(doctor, transport) ? WF_DOCTOR_FAILS : less;
}
