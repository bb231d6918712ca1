/* SPDX-License-Identifier: Apache-2.0 */
/* remote_options: the options of `weft launch` for several hosts, and what they mean. Thread: main.
 */
#pragma once

#include "base/options.h"
#include "base/secret.h"
#include "tools/launch/remote.h"

#define WF_REMOTE_OPTIONS 11u

/* The values, as a part of the struct that the options of launch are read into. */
struct wf_remote_set {
	const char *hosts;
	const char *hostfile;
	const char *job_dispatch_package;
	const char *job_workspace;
	const char *job_root;
	const char *thirdparty;
	const char *port_range;
	const char *ssh;
	uint16_t ssh_port;
	const char *remote_weft;
	const char *secret_file; /* of jobs on this host, too */
};

/* Writes the rows; `at` is the offset of the struct in the target. */
void wf_remote_options(struct wf_option rows[WF_REMOTE_OPTIONS], size_t at);

/* What remains of them when they have been checked. Large: not for the stack. */
struct wf_remote_job {
	struct wf_hosts hosts;
	uint8_t secret[WF_SECRET_BYTES_MAX];
	struct wf_remote_opts opts; /* but for version, and what is "auto" */
	uint16_t lowest_port;       /* 0: --port */
};

/* Whether the job runs on other hosts, rather than on this one. */
bool wf_remote_set_is_used(const struct wf_remote_set *set);
/* Checks what was given together with --local, or without hosts. WEFT_INVALID. */
enum weft_status wf_remote_set_check(const struct wf_remote_set *set, bool local) WEFT_MUST_CHECK;
/* Reads the list of hosts and the secret, or makes one. `set` is lent to `out`. WEFT_INVALID,
 * WEFT_IO. */
enum weft_status wf_remote_set_read(const struct wf_remote_set *set,
				    struct wf_remote_job *out) WEFT_MUST_CHECK;
