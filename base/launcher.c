/* SPDX-License-Identifier: Apache-2.0 */
/* launcher: see launcher.h. All readers add to one list; then it is decided which finding counts.
 */
#include "base/launcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/launcher_internal.h"

#define DIGITS_MAX 6u

static const struct {
	const char *name;
	wf_launcher_reader *read;
} readers[] = {
	{"torchrun", wf_launcher_read_torchrun}, {"Open MPI", wf_launcher_read_open_mpi},
	{"Slurm", wf_launcher_read_slurm},       {"PaddlePaddle's job", wf_launcher_read_paddle},
	{"Volcano", wf_launcher_read_volcano},   {"Kubernetes Job", wf_launcher_read_indexed_job},
};

const char *
wf_probe_get(const struct wf_launcher_probe *probe, const char *name)
{
	const char *value = probe->source->get != NULL
				    ? probe->source->get(probe->source->arg, name)
				    : getenv(name);
	return value != NULL && value[0] != '\0' ? value : NULL;
}

bool
wf_probe_number(const char *text, unsigned *out)
{
	size_t digits = strspn(text, "0123456789");
	if (digits == 0 || digits > DIGITS_MAX || text[digits] != '\0') {
		return false;
	}
	*out = 0;
	for (const char *at = text; *at != '\0'; at++) {
		*out = *out * 10 + (unsigned)(*at - '0');
	}
	return true;
}

/* The reason why a value cannot be used; NULL: it can. */
static const char *
objection(enum wf_launcher_fact fact, const char *value)
{
	unsigned number;
	switch (fact) {
	case WF_FACT_RANK:
		return wf_probe_number(value, &number) ? NULL : "it is not a number";
	case WF_FACT_SIZE:
		return wf_probe_number(value, &number) && number > 0 ? NULL
								     : "it is not a number from 1";
	case WF_FACT_PORT:
		return wf_probe_number(value, &number) && number > 0 && number <= 65535
			       ? NULL
			       : "it is not a port number";
	case WF_FACT_ROLE:
	case WF_FACT_PSERVERS:
	case WF_FACT_COUNT:
		return NULL;
	}
	return NULL;
}

void
wf_probe_add(struct wf_launcher_probe *probe, enum wf_launcher_fact fact, const char *from,
	     const char *value, const char *ignored)
{
	struct wf_launcher *out = probe->out;
	size_t room = sizeof(out->text) - out->text_used;

	if (out->count == WF_LAUNCHER_FINDINGS_MAX) {
		return;
	}
	char *text = out->text + out->text_used;
	int wanted = snprintf(text, room, "%s=%s", from, value);
	if (wanted < 0 || (size_t)wanted >= room) {
		text[0] = '\0';
		wanted = snprintf(text, room, "%s=", from);
		ignored = "it is too long";
		if (wanted < 0 || (size_t)wanted >= room) {
			return;
		}
	}
	out->text_used += (size_t)wanted + 1;
	out->finding[out->count++] = (struct wf_launcher_finding){
		.fact = fact,
		.launcher = probe->launcher,
		.text = text,
		.value = text + strlen(from) + 1,
		.ignored = ignored != NULL ? ignored : objection(fact, value),
	};
}

static void
settle(struct wf_launcher *out)
{
	bool known[WF_FACT_COUNT] = {false};

	for (unsigned i = 0; i < out->count; i++) {
		struct wf_launcher_finding *finding = &out->finding[i];
		if (finding->ignored != NULL) {
			continue;
		}
		if (out->role == WF_ROLE_PSERVER && finding->fact == WF_FACT_RANK) {
			finding->ignored = "this process is no trainer";
		} else if (known[finding->fact]) {
			finding->ignored = "another variable above counts";
		} else {
			known[finding->fact] = true;
		}
	}
}

void
wf_launcher_detect(const struct wf_launcher_source *source, enum wf_launcher_role role,
		   struct wf_launcher *out)
{
	struct wf_launcher_probe probe = {.source = source, .out = out};

	memset(out, 0, sizeof(*out));
	out->role = role;
	if (role == WF_ROLE_UNKNOWN) { /* only the job's own variables have it */
		probe.launcher = "";
		wf_launcher_read_paddle(&probe);
		const struct wf_launcher_finding *said = wf_launcher_find(out, WF_FACT_ROLE);
		bool serves = said != NULL && strcmp(said->value, "pserver") == 0;
		memset(out, 0, sizeof(*out));
		out->role = serves ? WF_ROLE_PSERVER : WF_ROLE_TRAINER;
	}
	for (unsigned i = 0; i < WF_ARRAY_COUNT(readers); i++) {
		probe.launcher = readers[i].name;
		readers[i].read(&probe);
	}
	settle(out);
}

const struct wf_launcher_finding *
wf_launcher_find(const struct wf_launcher *launcher, enum wf_launcher_fact fact)
{
	for (unsigned i = 0; i < launcher->count; i++) {
		const struct wf_launcher_finding *finding = &launcher->finding[i];
		if (finding->fact == fact && finding->ignored == NULL) {
			return finding;
		}
	}
	return NULL;
}

const char *
wf_launcher_fact_name(enum wf_launcher_fact fact)
{
	static const char *const names[WF_FACT_COUNT] = {
		[WF_FACT_ROLE] = "role",
		[WF_FACT_RANK] = "trainer_id",
		[WF_FACT_SIZE] = "num_gradient_servers",
		[WF_FACT_PSERVERS] = "pservers",
		[WF_FACT_PORT] = "port",
	};
	WF_ASSERT(fact < WF_FACT_COUNT);
	return names[fact];
}

const struct wf_launcher_finding *
wf_launcher_find_setting(const struct wf_launcher *launcher, const char *name)
{
	for (unsigned fact = WF_FACT_RANK; fact < WF_FACT_COUNT; fact++) {
		if (strcmp(wf_launcher_fact_name(fact), name) == 0) {
			return wf_launcher_find(launcher, fact);
		}
	}
	return NULL;
}
