/* SPDX-License-Identifier: Apache-2.0 */
/* hosts: several hosts as a job on them would meet them: each examined by its own agent, and then
 * what is between them. Nothing is started but the agents of weft launch. Thread: main. */
#pragma once

#include "base/env.h"
#include "tools/doctor/report.h"
#include "tools/launch/remote.h"

struct wf_doctor_hosts {
	struct wf_env *env;
	const struct wf_doctor_ask *ask;
	struct wf_remote_opts *remote; /* hosts, ssh, weft, version */
	uint32_t ports_num, ports_num_for_sparse;
	struct wf_doctor_report *report;
};

/* WEFT_NOMEM, WEFT_INVALID: too many ports. What hosts lack is a finding. */
enum weft_status wf_doctor_hosts_run(const struct wf_doctor_hosts *hosts) WEFT_MUST_CHECK;
/* What an agent says of its host: wf_agent_examine. */
void wf_doctor_examine(uint32_t idx, const char *transport, uint32_t memory_mib, char *out,
		       size_t bytes);
/* The inverse of the line that wf_doctor_examine writes; false: it is none. */
bool wf_doctor_parse_line(const char *line, struct wf_doctor_finding *out);
