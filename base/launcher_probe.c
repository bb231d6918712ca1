/* SPDX-License-Identifier: Apache-2.0 */
/* launcher_probe: what the readers of all launchers stand on: variables, numbers, findings. Thread:
 * the caller's. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/launcher_internal.h"

#define DIGITS_MAX 6u
#define MASTER_BYTES 8192u

extern char **environ;

const char *const *
wf_probe_variables(const struct wf_launcher_probe *probe)
{
	static const char *const none[] = {NULL};

	if (probe->source->variables != NULL) {
		return probe->source->variables;
	}
	return environ != NULL ? (const char *const *)environ : none;
}

const char *
wf_probe_get(const struct wf_launcher_probe *probe, const char *name)
{
	size_t bytes = strlen(name);

	for (const char *const *i = wf_probe_variables(probe); *i != NULL; i++) {
		if (strncmp(*i, name, bytes) == 0 && (*i)[bytes] == '=') {
			return (*i)[bytes + 1] != '\0' ? *i + bytes + 1 : NULL;
		}
	}
	return NULL;
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

unsigned
wf_probe_count_entries(const char *list)
{
	unsigned count = 1;
	for (; *list != '\0'; list++) {
		count += *list == ',';
	}
	return count;
}

static bool
is_address(const char *text)
{
	struct in6_addr room; /* for an IPv4 address, too */
	return inet_pton(AF_INET, text, &room) == 1 || inet_pton(AF_INET6, text, &room) == 1;
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
	case WF_FACT_PSERVER_COUNT:
		return wf_probe_number(value, &number) && number > 0 ? NULL
								     : "it is not a number from 1";
	case WF_FACT_PORT:
		return wf_probe_number(value, &number) && number > 0 && number <= 65535
			       ? NULL
			       : "it is not a port number";
	case WF_FACT_LISTEN:
		return is_address(value) ? NULL : "it is not an IP address";
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

	if (out->count == WF_LAUNCHER_FINDINGS_MAX || room == 0) {
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

void
wf_probe_add_master(struct wf_launcher_probe *probe, const char *name)
{
	const char *host = wf_probe_get(probe, name);
	char text[MASTER_BYTES];

	if (host == NULL) {
		return;
	}
	bool is_v6 = strchr(host, ':') != NULL && host[0] != '[';
	int wanted =
		snprintf(text, sizeof(text), "%s%s%s", is_v6 ? "[" : "", host, is_v6 ? "]" : "");
	wf_probe_add(probe, WF_FACT_PSERVERS, name, text,
		     wanted < 0 || (size_t)wanted >= sizeof(text) ? "it is too long" : NULL);
}

const char *
wf_probe_size_objection(const struct wf_launcher_probe *probe)
{
	return probe->out->role == WF_ROLE_PSERVER
		       ? "it counts the group of this process, which is no trainer"
		       : NULL;
}

bool
wf_probe_add_group(struct wf_launcher_probe *probe, const struct wf_probe_groups *groups,
		   unsigned own, unsigned rank)
{
	bool serves = probe->out->role == WF_ROLE_PSERVER;
	unsigned before = 0;
	char text[16];

	for (unsigned i = 0; i < own; i++) {
		before += groups->counts[i];
	}
	if (rank < before || rank - before >= groups->counts[own]) {
		return false;
	}
	snprintf(text, sizeof(text), "%u", rank - before);
	wf_probe_add(probe, WF_FACT_RANK, groups->rank_name, text, NULL);
	snprintf(text, sizeof(text), "%u", groups->counts[serves ? 1 - own % 2 : own]);
	wf_probe_add(probe, WF_FACT_SIZE, groups->size_name, text,
		     serves && groups->group_count > 2 ? groups->too_many : NULL);
	return true;
}
