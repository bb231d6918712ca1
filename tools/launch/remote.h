/* SPDX-License-Identifier: Apache-2.0 */
/* remote: runs the processes of one job on several hosts. An agent is started on each by ssh; all
 * have to have the same version, and every host has to reach every pserver, before the first
 * process is started. Thread: main. */
#pragma once

#include "tools/launch/hosts.h"
#include "tools/launch/plan.h"

/* What is set to "auto", and therefore follows from how many processes a host has. */
struct wf_remote_auto {
	bool pins, spins;
};

struct wf_remote_opts {
	const struct wf_hosts *hosts; /* pserver i and trainer i are at entry i, and around again */
	const char *ssh;              /* the command and its options, with blanks between them */
	uint32_t ssh_port;            /* of hosts that have none; 0: ssh's own */
	const char *weft;             /* the program on the other hosts: wf_hosts_check_path */
	const char *version;
	const char *package;   /* a folder to be copied to all hosts; NULL: none */
	const char *workspace; /* one that is there already; NULL: none */
	const char *root;      /* a workspace is made here for a package */
	const char *third;     /* a folder with before_hook.sh, to be copied too; NULL: none */
	uint16_t highest_port; /* from plan->listen.port on; 0: as many as are needed */
	const void *secret;    /* [secret_bytes] of the job */
	size_t secret_bytes;
	struct wf_remote_auto pserver, trainer;
};

/* Runs the job from the start to the end. `plan` and `supervise` are complete but for the addresses
 * of pservers, and the processes. */
enum weft_status wf_remote_run(const struct wf_remote_opts *opts, struct wf_plan_opts *plan,
			       struct wf_supervise_opts *supervise,
			       struct wf_supervise_end *out) WEFT_MUST_CHECK;
