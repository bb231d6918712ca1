/* SPDX-License-Identifier: Apache-2.0 */
/* pod: the template of a pod of one role, which the manifests of all kinds have. Thread: any one.
 */
#pragma once

#include "tools/gen/job.h"
#include "tools/gen/yaml.h"

#define WF_GEN_PSERVER "pserver" /* names of the two groups of pods: detectors read them */
#define WF_GEN_TRAINER "trainer"

struct wf_gen_pod {
	bool is_pserver;
	/* Number and count of trainers as the engine's own variables have them: in what --entry
	 * runs they get the original's names too. */
	const char *rank_variable;
	const char *size_variable;
	/* Addresses of all pservers, for trainers; NULL: the engine hands them out. */
	const char *pservers;
	/* Number of trainers; 0: the engine hands it out. */
	uint64_t trainers;
};

/* "template:", with everything in it. */
void wf_gen_pod_template(struct wf_yaml *yaml, const struct wf_gen_job *job,
			 const struct wf_gen_pod *pod);
/* The lines on top of a manifest: what it is, and how it is started; and the job's secret, if the
 * manifest has one. */
void wf_gen_pod_comment(struct wf_yaml *yaml, const struct wf_gen_job *job);
