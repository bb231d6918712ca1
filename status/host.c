/* SPDX-License-Identifier: Apache-2.0 */
/* host: see host.h. */
#include "status/host.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

static bool
is_numeric(const char *name)
{
	unsigned char address[sizeof(struct in6_addr)];
	return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

bool
wf_status_host_is_ours(const char *host, const struct wf_host *listen, bool is_loopback,
		       const char *own_name)
{
	static const char *const loopback[] = {"localhost", "127.0.0.1", "::1"};
	struct wf_host asked;
	if (host == NULL || wf_host_parse(host, 80, &asked) != WEFT_OK) {
		return false;
	}
	if (asked.port != listen->port) {
		return false;
	}
	for (size_t i = 0; i < sizeof(loopback) / sizeof(loopback[0]); i++) {
		if (strcasecmp(asked.name, loopback[i]) == 0) {
			return true;
		}
	}
	if (strcasecmp(asked.name, listen->name) == 0) {
		return true;
	}
	return !is_loopback && (is_numeric(asked.name) || strcasecmp(asked.name, own_name) == 0);
}
