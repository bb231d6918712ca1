/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_server: the real pserver as a process of a fleet: see fleet.h. Thread: one. */
#include <stdio.h>

#include "pserver/server.h"
#include "tests/support/fleet.h"

void
fleet_server_opts(struct wf_env *env, const char *transport, struct wf_server_opts *out)
{
	wf_server_opts_init(out);
	out->env = env;
	out->session.transport = transport;
	(void)snprintf(out->listen.name, sizeof(out->listen.name), "0.0.0.0");
	out->inline_lanes = true;
	out->once = true;
}

void
fleet_serve(struct fleet_seat *seat, const struct wf_server_opts *opts,
	    void (*look)(struct fleet_seat *seat, struct wf_server *server))
{
	struct wf_server *server = NULL;
	enum weft_status st = wf_server_create(opts, &server);
	if (st == WEFT_OK) {
		st = wf_server_run(server);
	}
	fleet_note(seat, opts->env, st);
	if (st == WEFT_OK && look != NULL) {
		look(seat, server);
	}
	wf_server_destroy(server);
}
