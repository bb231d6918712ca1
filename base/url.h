/* SPDX-License-Identifier: Apache-2.0 */
/* url: host[:port] as users write it: "10.0.0.1", "node7:7164", "[::1]:7164", "::1", "localhost".
 */
#pragma once

#include <stdint.h>

#include "base/status.h"

#define WF_HOST_BYTES 256
#define WF_LOOPBACK "127.0.0.1" /* this host, as default of settings */

struct wf_host {
	char name[WF_HOST_BYTES]; /* without brackets */
	uint16_t port;            /* default_port if the text names none */
};

/* WEFT_INVALID: the message has the text and what is wrong with it. */
enum weft_status wf_host_parse(const char *text, uint16_t default_port,
			       struct wf_host *out) WEFT_MUST_CHECK;
/* "name:port", or "[name]:port" where the name has a colon. `bytes` >= WF_HOST_BYTES + 8. */
void wf_host_format(const struct wf_host *host, char *out, unsigned bytes);
/* Parses a list separated by commas; at most `max` entries; `*count` is their number. Spaces around
 * commas are allowed, empty entries are refused. */
enum weft_status wf_host_list_parse(const char *text, uint16_t default_port, struct wf_host *out,
				    unsigned max, unsigned *count) WEFT_MUST_CHECK;
