/* SPDX-License-Identifier: Apache-2.0 */
/* remote_internal: the hosts of a job and what leads to them, for those who run a job there and
 * those who only look whether one could run. Thread: main. */
#pragma once

#include "tools/launch/link.h"
#include "tools/launch/reach.h"
#include "tools/launch/remote.h"

#define WF_REMOTE_NAME_BYTES (WF_HOST_BYTES + 8)

struct wf_remote_node {
	struct wf_link link;
	char name[WF_REMOTE_NAME_BYTES];
	uint32_t pservers, processes; /* how many it has */
	uint32_t threads;             /* that move bytes */
};

struct wf_remote {
	const struct wf_remote_opts *opts;
	struct wf_plan_opts *plan;
	struct wf_env *env;
	const char *program;         /* opens lines */
	struct wf_remote_node *node; /* [count] */
	unsigned count;
	struct wf_site **site;      /* [count] */
	struct wf_host *pserver_at; /* [plan->pservers] */
	struct wf_child_spec *spec; /* [spec_count] */
	unsigned spec_count;
	bool is_one_machine; /* one host, or addresses of loopback alone */
	uint64_t stamp;      /* random, of the workspace's name */
};

/* Makes room for all that opts and plan have. Close it in any case. */
enum weft_status wf_remote_open(struct wf_remote *remote) WEFT_MUST_CHECK;
void wf_remote_close(struct wf_remote *remote);
/* The command that starts the agent of one host. */
enum weft_status wf_remote_plan_ssh(const struct wf_remote *remote,
				    const struct wf_launch_host *host,
				    struct wf_args *out) WEFT_MUST_CHECK;
/* Lets the agent of a host listen on the ports of its pservers, and learns their addresses. */
enum weft_status wf_remote_place(struct wf_remote *remote, unsigned idx) WEFT_MUST_CHECK;
