/* SPDX-License-Identifier: Apache-2.0 */
/* http_none: in the place of http.c where libmicrohttpd is not there. */
#include "status/http.h"

enum weft_status
wf_status_start(const struct wf_status_opts *opts, struct wf_status_server **out)
{
	(void)out;
	return wf_fail(
		WEFT_UNSUPPORTED,
		"--status=%.200s: this weft was built without libmicrohttpd (-Dstatus), which "
		"serves the page; `weft status` and `weft top` need no page",
		opts->listen.name);
}

uint16_t
wf_status_port(const struct wf_status_server *server)
{
	(void)server;
	return 0;
}

void
wf_status_stop(struct wf_status_server *server)
{
	(void)server;
}
