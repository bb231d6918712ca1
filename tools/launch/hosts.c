/* SPDX-License-Identifier: Apache-2.0 */
/* hosts: see hosts.h. */
#include "tools/launch/hosts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define ENTRY_BYTES (WF_HOST_BYTES + WF_HOSTS_USER_BYTES + 16)
#define LINE_BYTES 1024

/* What ssh and a shell take for a name, and for nothing else. */
static bool
is_plain(const char *text, const char *more)
{
	static const char always[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "0123456789._-";

	if (text[0] == '-' || text[0] == '\0') {
		return false;
	}
	for (; *text != '\0'; text++) {
		if (strchr(always, *text) == NULL && strchr(more, *text) == NULL) {
			return false;
		}
	}
	return true;
}

static enum weft_status
parse_host(const char *text, struct wf_launch_host *out)
{
	const char *at = strrchr(text, '@');
	const char *host = at != NULL ? at + 1 : text;

	memset(out, 0, sizeof(*out));
	if (at != NULL) {
		snprintf(out->user, sizeof(out->user), "%.*s", (int)(at - text), text);
		if ((size_t)(at - text) >= sizeof(out->user) || !is_plain(out->user, "")) {
			return wf_fail(WEFT_INVALID, "'%.80s' is no host: %s", text,
				       "the user's name before @ has letters, digits, '.', '_' "
				       "and '-'");
		}
	}
	enum weft_status st = wf_host_parse(host, 0, &out->at);
	if (st == WEFT_OK && !is_plain(out->at.name, ":%")) {
		st = wf_fail(WEFT_INVALID,
			     "'%.80s' is no host: its name has letters, digits, '.', '_' and '-', "
			     "and does not begin with '-'",
			     text);
	}
	return st;
}

static bool
is_same(const struct wf_launch_host *a, const struct wf_launch_host *b)
{
	return strcmp(a->user, b->user) == 0 && strcmp(a->at.name, b->at.name) == 0 &&
	       a->at.port == b->at.port;
}

static enum weft_status
add(struct wf_hosts *hosts, const char *text, unsigned long slots)
{
	struct wf_launch_host host;
	unsigned idx = 0;

	enum weft_status st = parse_host(text, &host);
	if (st != WEFT_OK) {
		return st;
	}
	if (slots > WF_HOSTS_MAX - hosts->entry_count) {
		return wf_fail(WEFT_INVALID, "more than %u hosts and slots", WF_HOSTS_MAX);
	}
	while (idx < hosts->count && !is_same(&hosts->host[idx], &host)) {
		idx++;
	}
	if (idx == hosts->count) {
		hosts->host[hosts->count++] = host;
	}
	for (unsigned long i = 0; i < slots; i++) {
		hosts->entry[hosts->entry_count++] = (uint16_t)idx;
	}
	return WEFT_OK;
}

static enum weft_status
check_any(const struct wf_hosts *hosts, const char *from)
{
	return hosts->count > 0 ? WEFT_OK : wf_fail(WEFT_INVALID, "%s: there is no host", from);
}

/* Copies `bytes` of text without the blanks around it. False: it does not fit. */
static bool
copy_trimmed(const char *text, size_t bytes, char *out, size_t room)
{
	static const char blanks[] = " \t\r";

	while (bytes > 0 && strchr(blanks, text[0]) != NULL) {
		text++;
		bytes--;
	}
	while (bytes > 0 && strchr(blanks, text[bytes - 1]) != NULL) {
		bytes--;
	}
	if (bytes >= room) {
		return false;
	}
	memcpy(out, text, bytes);
	out[bytes] = '\0';
	return true;
}

enum weft_status
wf_hosts_parse(const char *list, struct wf_hosts *out)
{
	memset(out, 0, sizeof(*out));
	for (const char *at = list;;) {
		char entry[ENTRY_BYTES];
		size_t bytes = strcspn(at, ",");
		if (!copy_trimmed(at, bytes, entry, sizeof(entry))) {
			return wf_fail(WEFT_INVALID, "--hosts: '%.80s...' is too long", at);
		}
		if (entry[0] == '\0') {
			return wf_fail(WEFT_INVALID, "--hosts=%.200s: an entry is empty", list);
		}
		enum weft_status st = add(out, entry, 1);
		if (st != WEFT_OK) {
			const struct wf_error why = *wf_error_record();
			return wf_fail(st, "--hosts: %.400s", why.text);
		}
		if (at[bytes] == '\0') {
			return WEFT_OK;
		}
		at += bytes + 1;
	}
}

/* "gpu1 slots=2"; an empty line is no entry. */
static enum weft_status
parse_line(char *line, struct wf_hosts *out)
{
	static const char blanks[] = " \t";
	unsigned long slots = 1;
	char *rest = NULL;
	char *entry = strtok_r(line, blanks, &rest);

	if (entry == NULL) {
		return WEFT_OK;
	}
	for (char *word; (word = strtok_r(NULL, blanks, &rest)) != NULL;) {
		char *end = NULL;
		if (strncmp(word, "slots=", 6) != 0 || word[6] < '0' || word[6] > '9') {
			return wf_fail(WEFT_INVALID,
				       "'%.80s' is not understood; a host may be followed by "
				       "slots=N",
				       word);
		}
		errno = 0;
		slots = strtoul(word + 6, &end, 10);
		if (*end != '\0' || errno != 0 || slots == 0 || slots > WF_HOSTS_MAX) {
			return wf_fail(WEFT_INVALID, "'%.80s': slots takes a number from 1 to %u",
				       word, WF_HOSTS_MAX);
		}
	}
	return add(out, entry, slots);
}

enum weft_status
wf_hosts_parse_file(const char *path, const char *text, struct wf_hosts *out)
{
	unsigned number = 1;

	memset(out, 0, sizeof(*out));
	for (const char *at = text; *at != '\0'; number++) {
		char line[LINE_BYTES];
		size_t bytes = strcspn(at, "\n");
		size_t used = strcspn(at, "#\n");
		if (!copy_trimmed(at, used, line, sizeof(line))) {
			return wf_fail(WEFT_INVALID, "%.200s:%u: the line is too long", path,
				       number);
		}
		enum weft_status st = parse_line(line, out);
		if (st != WEFT_OK) {
			const struct wf_error why = *wf_error_record();
			return wf_fail(st, "%.200s:%u: %.250s", path, number, why.text);
		}
		at += bytes + (at[bytes] == '\n');
	}
	return check_any(out, path);
}

enum weft_status
wf_hosts_read(const char *path, struct wf_hosts *out)
{
	static char text[WF_HOSTS_FILE_BYTES + 1];

	FILE *file = fopen(path, "re");
	if (file == NULL) {
		return wf_fail_errno(WEFT_IO, errno, "--hostfile=%.200s", path);
	}
	size_t bytes = fread(text, 1, sizeof(text), file);
	bool failed = ferror(file) != 0;
	fclose(file);
	if (failed) {
		return wf_fail_errno(WEFT_IO, errno, "--hostfile=%.200s", path);
	}
	if (bytes > WF_HOSTS_FILE_BYTES || memchr(text, '\0', bytes) != NULL) {
		return wf_fail(WEFT_INVALID, "--hostfile=%.200s: this is no list of hosts", path);
	}
	text[bytes] = '\0';
	return wf_hosts_parse_file(path, text, out);
}

enum weft_status
wf_hosts_check_path(const char *path)
{
	if (!is_plain(path, "/+")) {
		return wf_fail(WEFT_INVALID,
			       "--remote_weft=%.200s: a path of letters, digits, '.', '_', '-', "
			       "'+' and '/' is allowed, because a shell reads it",
			       path);
	}
	return WEFT_OK;
}
