/* SPDX-License-Identifier: Apache-2.0 */
/* jobset: a JobSet, jobset.x-k8s.io/v1alpha2, of two indexed jobs. The index is a trainer's number,
 * which base/launcher.c reads; hosts have names that follow from those of the set, the job and the
 * index, so the addresses of the pservers are known here. Thread: any one. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/env.h"
#include "base/exit_code.h"
#include "tools/gen/pod.h"

/* Another try does not mend what these exit codes mean. */
static void
print_failure_policy(struct wf_yaml *yaml)
{
	static const int final[] = {WF_EXIT_USAGE, WF_EXIT_DATA, WF_EXIT_PERM};

	wf_yaml_map(yaml, "podFailurePolicy");
	wf_yaml_list(yaml, "rules");
	wf_yaml_item(yaml);
	wf_yaml_text(yaml, "action", "FailJob");
	wf_yaml_map(yaml, "onExitCodes");
	wf_yaml_text(yaml, "operator", "In");
	wf_yaml_list(yaml, "values");
	for (size_t i = 0; i < WF_ARRAY_COUNT(final); i++) {
		wf_yaml_item_number(yaml, (uint64_t) final[i]);
	}
	wf_yaml_map_end(yaml);
	wf_yaml_item_end(yaml);
	wf_yaml_map_end(yaml);
}

static void
print_job(struct wf_yaml *yaml, const struct wf_gen_job *job, bool is_pserver, const char *pservers)
{
	uint64_t count = is_pserver ? job->pservers : job->set.trainers;
	const struct wf_gen_pod pod = {
		.is_pserver = is_pserver,
		.rank_variable = "JOB_COMPLETION_INDEX",
		.size_variable = "WEFT_NUM_GRADIENT_SERVERS",
		.pservers = pservers,
		.trainers = job->set.trainers,
	};

	wf_yaml_item(yaml);
	wf_yaml_text(yaml, "name", is_pserver ? WF_GEN_PSERVER : WF_GEN_TRAINER);
	wf_yaml_number(yaml, "replicas", 1);
	wf_yaml_map(yaml, "template");
	wf_yaml_map(yaml, "spec");
	wf_yaml_text(yaml, "completionMode", "Indexed");
	wf_yaml_number(yaml, "completions", count);
	wf_yaml_number(yaml, "parallelism", count);
	wf_yaml_number(yaml, "backoffLimit", 0); /* one pod that fails is the end of the job */
	print_failure_policy(yaml);
	wf_gen_pod_template(yaml, job, &pod);
	wf_yaml_map_end(yaml);
	wf_yaml_map_end(yaml);
	wf_yaml_item_end(yaml);
}

static void
print_policies(struct wf_yaml *yaml, const struct wf_gen_job *job)
{
	wf_yaml_map(yaml, "network");
	wf_yaml_truth(yaml, "enableDNSHostnames", true);
	wf_yaml_truth(yaml, "publishNotReadyAddresses", true);
	wf_yaml_map_end(yaml);
	wf_yaml_map(yaml, "successPolicy");
	wf_yaml_text(yaml, "operator", "All");
	wf_yaml_list(yaml, "targetReplicatedJobs");
	wf_yaml_item_text(yaml, WF_GEN_TRAINER);
	wf_yaml_map_end(yaml);
	wf_yaml_map(yaml, "failurePolicy");
	wf_yaml_number(yaml, "maxRestarts", job->set.restarts);
	wf_yaml_list(yaml, "rules");
	wf_yaml_item(yaml);
	wf_yaml_text(yaml, "name", "final");
	wf_yaml_text(yaml, "action", "FailJobSet");
	wf_yaml_list(yaml, "onJobFailureReasons");
	wf_yaml_item_text(yaml, "PodFailurePolicy");
	wf_yaml_item_end(yaml);
	wf_yaml_map_end(yaml);
}

static void
print_set(struct wf_yaml *yaml, const struct wf_gen_job *job, const char *pservers)
{
	wf_gen_pod_comment(yaml, job);
	wf_yaml_text(yaml, "apiVersion", "jobset.x-k8s.io/v1alpha2");
	wf_yaml_text(yaml, "kind", "JobSet");
	wf_yaml_map(yaml, "metadata");
	wf_yaml_text(yaml, "name", job->set.job_name);
	wf_yaml_map_end(yaml);
	wf_yaml_map(yaml, "spec");
	print_policies(yaml, job);
	wf_yaml_list(yaml, "replicatedJobs");
	print_job(yaml, job, true, pservers);
	print_job(yaml, job, false, pservers);
	wf_yaml_map_end(yaml);
}

enum weft_status
wf_gen_jobset(const struct wf_gen_job *job, FILE *out)
{
	struct wf_yaml yaml = {.out = out};
	const char *name = job->set.job_name;
	char *pservers = NULL;
	size_t bytes = 0;
	FILE *list = open_memstream(&pservers, &bytes);

	if (list == NULL) {
		return wf_fail(WEFT_NOMEM, "no memory for the addresses of the pservers");
	}
	for (uint64_t i = 0; i < job->pservers; i++) {
		fprintf(list, "%s%s-" WF_GEN_PSERVER "-0-%" PRIu64 ".%s:%u", i > 0 ? "," : "", name,
			i, name, job->set.port);
	}
	bool written = ferror(list) == 0;
	written = fclose(list) == 0 && written;
	if (written) {
		print_set(&yaml, job, pservers);
	}
	free(pservers);
	return written ? wf_yaml_check(&yaml)
		       : wf_fail(WEFT_NOMEM, "no memory for the addresses of the pservers");
}
