/* SPDX-License-Identifier: Apache-2.0 */
/* url: parsing and printing of host[:port], without look-ups. Thread: any. */
#include "base/url.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

/* Part of a longer text. */
struct span {
	const char *at;
	size_t bytes;
};

#define QUOTE_BYTES 80 /* bytes of a refused text that an error repeats */

static int
quote_bytes(struct span text)
{
	return (int)(text.bytes < QUOTE_BYTES ? text.bytes : QUOTE_BYTES);
}

static enum weft_status
refuse(struct span text, const char *why)
{
	return wf_fail(WEFT_INVALID, "address \"%.*s\": %s", quote_bytes(text), text.at, why);
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_name_char(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
	       c == '.' || c == '_';
}

/* "fe80::1", "fe80::1%eth0". */
static bool
is_ipv6(const char *name)
{
	char plain[INET6_ADDRSTRLEN];
	struct in6_addr address;
	size_t bytes = strcspn(name, "%");
	if (bytes >= sizeof(plain)) {
		return false;
	}
	memcpy(plain, name, bytes);
	plain[bytes] = '\0';
	const char *scope = name + bytes;
	if (*scope == '%') {
		scope++;
		if (*scope == '\0') {
			return false;
		}
		for (; *scope != '\0'; scope++) {
			if (!is_name_char(*scope)) {
				return false;
			}
		}
	}
	return inet_pton(AF_INET6, plain, &address) == 1;
}

static enum weft_status
parse_port(struct span text, struct span digits, uint16_t *out)
{
	uint32_t port = 0;
	if (digits.bytes == 0) {
		return refuse(text, "no port after the colon");
	}
	for (size_t i = 0; i < digits.bytes; i++) {
		if (!is_digit(digits.at[i])) {
			return refuse(text, "the port is not a number; it must be 1 to 65535");
		}
		port = port * 10 + (uint32_t)(digits.at[i] - '0');
		if (port > UINT16_MAX) {
			break;
		}
	}
	if (port == 0 || port > UINT16_MAX) {
		return refuse(text, "the port must be 1 to 65535");
	}
	*out = (uint16_t)port;
	return WEFT_OK;
}

static enum weft_status
set_name(struct span text, struct span name, struct wf_host *host)
{
	if (name.bytes == 0) {
		return refuse(text, "no host name");
	}
	if (name.bytes >= WF_HOST_BYTES) {
		return wf_fail(WEFT_INVALID,
			       "address \"%.*s...\": a host name of %zu bytes, at most %d",
			       quote_bytes(text), text.at, name.bytes, WF_HOST_BYTES - 1);
	}
	if (memchr(name.at, '\0', name.bytes) != NULL) {
		return refuse(text, "a NUL byte in the host name");
	}
	memcpy(host->name, name.at, name.bytes);
	host->name[name.bytes] = '\0';
	return WEFT_OK;
}

/* "[v6]" or "[v6]:port" */
static enum weft_status
parse_bracketed(struct span text, struct wf_host *host)
{
	const char *end = memchr(text.at, ']', text.bytes);
	if (end == NULL) {
		return refuse(text, "\"]\" is missing");
	}
	struct span name = {text.at + 1, (size_t)(end - text.at) - 1};
	struct span rest = {end + 1, text.bytes - name.bytes - 2};
	enum weft_status st = set_name(text, name, host);
	if (st != WEFT_OK) {
		return st;
	}
	if (!is_ipv6(host->name)) {
		return refuse(text, "no IPv6 address between the brackets");
	}
	if (rest.bytes == 0) {
		return WEFT_OK;
	}
	if (rest.at[0] != ':') {
		return refuse(text, "after \"]\" only :port may follow");
	}
	return parse_port(text, (struct span){rest.at + 1, rest.bytes - 1}, &host->port);
}

/* "name", "name:port", "1.2.3.4:port" */
static enum weft_status
parse_name(struct span text, const char *colon, struct wf_host *host)
{
	struct span name = {text.at, colon == NULL ? text.bytes : (size_t)(colon - text.at)};
	for (size_t i = 0; i < name.bytes; i++) {
		if (!is_name_char(name.at[i])) {
			return refuse(text, "not a host name; write host, host:port or [v6]:port");
		}
	}
	enum weft_status st = set_name(text, name, host);
	if (st != WEFT_OK || colon == NULL) {
		return st;
	}
	return parse_port(text, (struct span){colon + 1, text.bytes - name.bytes - 1}, &host->port);
}

/* "::1": all colons, so no room for a port. */
static enum weft_status
parse_bare_ipv6(struct span text, struct wf_host *host)
{
	enum weft_status st = set_name(text, text, host);
	if (st != WEFT_OK) {
		return st;
	}
	if (!is_ipv6(host->name)) {
		return refuse(text, "several colons, but no IPv6 address; write host:port or "
				    "[v6]:port");
	}
	return WEFT_OK;
}

static enum weft_status
parse_span(struct span text, uint16_t default_port, struct wf_host *out)
{
	struct wf_host host = {.port = default_port};
	enum weft_status st = WEFT_OK;
	if (text.bytes == 0) {
		return wf_fail(WEFT_INVALID, "address: empty; write host, host:port or [v6]:port");
	}
	const char *colon = memchr(text.at, ':', text.bytes);
	if (text.at[0] == '[') {
		st = parse_bracketed(text, &host);
	} else if (colon != NULL &&
		   memchr(colon + 1, ':', text.bytes - (size_t)(colon - text.at) - 1) != NULL) {
		st = parse_bare_ipv6(text, &host);
	} else {
		st = parse_name(text, colon, &host);
	}
	if (st == WEFT_OK) {
		*out = host;
	}
	return st;
}

enum weft_status
wf_host_parse(const char *text, uint16_t default_port, struct wf_host *out)
{
	return parse_span((struct span){text, strlen(text)}, default_port, out);
}

void
wf_host_format(const struct wf_host *host, char *out, unsigned bytes)
{
	WF_ASSERT(bytes >= WF_HOST_BYTES + 8);
	bool brackets = strchr(host->name, ':') != NULL;
	(void)snprintf(out, bytes, "%s%s%s:%u", brackets ? "[" : "", host->name,
		       brackets ? "]" : "", (unsigned)host->port);
}

static struct span
trim(struct span text)
{
	while (text.bytes > 0 && text.at[0] == ' ') {
		text.at++;
		text.bytes--;
	}
	while (text.bytes > 0 && text.at[text.bytes - 1] == ' ') {
		text.bytes--;
	}
	return text;
}

/* Parses one entry of the list after another; with `out` NULL it only checks them. */
static enum weft_status
walk_list(const char *text, uint16_t default_port, struct wf_host *out, unsigned max,
	  unsigned *count)
{
	unsigned idx = 0;
	for (const char *at = text;; at++, idx++) {
		struct span entry = trim((struct span){at, strcspn(at, ",")});
		struct wf_host host;
		if (idx >= max) {
			return wf_fail(WEFT_INVALID, "address list: more than %u entries", max);
		}
		if (entry.bytes == 0 && idx == 0 && at[0] == '\0') {
			return wf_fail(WEFT_INVALID, "the address list is empty; write host, "
						     "host:port or [v6]:port");
		}
		if (entry.bytes == 0) {
			return wf_fail(WEFT_INVALID,
				       "address list \"%.*s\": entry %u is empty; write host, "
				       "host:port or [v6]:port between commas",
				       QUOTE_BYTES, text, idx + 1);
		}
		enum weft_status st = parse_span(entry, default_port, &host);
		if (st != WEFT_OK) {
			return st;
		}
		if (out != NULL) {
			out[idx] = host;
		}
		at += strcspn(at, ",");
		if (*at == '\0') {
			*count = idx + 1;
			return WEFT_OK;
		}
	}
}

enum weft_status
wf_host_list_parse(const char *text, uint16_t default_port, struct wf_host *out, unsigned max,
		   unsigned *count)
{
	unsigned checked = 0;
	enum weft_status st = walk_list(text, default_port, NULL, max, &checked);
	if (st != WEFT_OK) {
		return st;
	}
	return walk_list(text, default_port, out, max, count);
}
