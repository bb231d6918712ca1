/* SPDX-License-Identifier: Apache-2.0 */
/* address: the value of --status. Thread: any. */
#include <stdio.h>
#include <string.h>

#include "status/http.h"

enum weft_status
wf_status_parse(const char *text, struct wf_host *out)
{
	char full[WF_HOST_BYTES + 16];
	bool is_port = text[0] != '\0' && strspn(text, "0123456789") == strlen(text);
	bool has_room = snprintf(full, sizeof(full), "%s%s", is_port ? WF_LOOPBACK ":" : "", text) <
			(int)sizeof(full);
	bool is_zero = has_room && strlen(full) > 2 && strcmp(full + strlen(full) - 2, ":0") == 0;
	if (is_zero) { /* a port that the system picks; names do not say that elsewhere */
		full[strlen(full) - 1] = '1';
	}
	if (!has_room || wf_host_parse(full, 0, out) != WEFT_OK || out->port == 0) {
		return wf_fail(WEFT_INVALID,
			       "--status=%.200s: takes [ADDR:]PORT, for example 9464 or "
			       "0.0.0.0:9464",
			       text);
	}
	out->port = is_zero ? 0 : out->port;
	return WEFT_OK;
}
