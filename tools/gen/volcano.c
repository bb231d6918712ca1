/* SPDX-License-Identifier: Apache-2.0 */
/* volcano: a Job of Volcano, batch.volcano.sh/v1alpha1. Its plugins env and svc give each pod its
 * number, and the hosts of each task, which base/launcher.c reads. Thread: any one.
 *
 * The whole job starts or waits (minAvailable), starts again if a pod is lost (--restarts), and is
 * done when the trainers are. The policies stand in the order in which they are tried. */
#include "base/assert.h"
#include "base/exit_code.h"
#include "tools/gen/pod.h"

static void
print_policy(struct wf_yaml *yaml, const char *event, const char *action)
{
	wf_yaml_item(yaml);
	wf_yaml_text(yaml, "event", event);
	wf_yaml_text(yaml, "action", action);
	wf_yaml_item_end(yaml);
}

/* Another try does not mend what these exit codes mean. */
static void
print_policies(struct wf_yaml *yaml, const struct wf_gen_job *job)
{
	const char *action = job->set.restarts > 0 ? "RestartJob" : "TerminateJob";
	static const int final[] = {WF_EXIT_USAGE, WF_EXIT_DATA, WF_EXIT_PERM};

	wf_yaml_list(yaml, "policies");
	for (size_t i = 0; i < WF_ARRAY_COUNT(final); i++) {
		wf_yaml_item(yaml);
		wf_yaml_number(yaml, "exitCode", (uint64_t) final[i]);
		wf_yaml_text(yaml, "action", "TerminateJob");
		wf_yaml_item_end(yaml);
	}
	print_policy(yaml, "PodEvicted", action);
	print_policy(yaml, "PodFailed", action);
}

static void
print_task(struct wf_yaml *yaml, const struct wf_gen_job *job, bool is_pserver)
{
	const struct wf_gen_pod pod = {
		.is_pserver = is_pserver,
		.rank_variable = "VC_TASK_INDEX",
		.size_variable = "VC_TRAINER_NUM",
	};

	wf_yaml_item(yaml);
	wf_yaml_text(yaml, "name", is_pserver ? WF_GEN_PSERVER : WF_GEN_TRAINER);
	wf_yaml_number(yaml, "replicas", is_pserver ? job->pservers : job->set.trainers);
	if (!is_pserver) {
		wf_yaml_list(yaml, "policies");
		print_policy(yaml, "TaskCompleted", "CompleteJob");
	}
	wf_gen_pod_template(yaml, job, &pod);
	wf_yaml_item_end(yaml);
}

enum weft_status
wf_gen_volcano(const struct wf_gen_job *job, FILE *out)
{
	struct wf_yaml yaml = {.out = out};

	wf_gen_pod_comment(&yaml, job);
	wf_yaml_text(&yaml, "apiVersion", "batch.volcano.sh/v1alpha1");
	wf_yaml_text(&yaml, "kind", "Job");
	wf_yaml_map(&yaml, "metadata");
	wf_yaml_text(&yaml, "name", job->set.job_name);
	wf_yaml_map_end(&yaml);
	wf_yaml_map(&yaml, "spec");
	wf_yaml_text(&yaml, "schedulerName", "volcano");
	wf_yaml_number(&yaml, "minAvailable", job->pservers + job->set.trainers);
	if (job->set.restarts > 0) { /* Volcano takes 0 for its default */
		wf_yaml_number(&yaml, "maxRetry", job->set.restarts);
	}
	if (job->set.queue != NULL && job->set.queue[0] != '\0') {
		wf_yaml_text(&yaml, "queue", job->set.queue);
	}
	wf_yaml_map(&yaml, "plugins");
	wf_yaml_empty_list(&yaml, "env");
	/* Names are known before pods are ready: a pserver is ready when it listens, and trainers
	 * look for it from their start. */
	wf_yaml_list(&yaml, "svc");
	wf_yaml_item_text(&yaml, "--publish-not-ready-addresses=true");
	wf_yaml_map_end(&yaml);
	print_policies(&yaml, job);
	wf_yaml_list(&yaml, "tasks");
	print_task(&yaml, job, true);
	print_task(&yaml, job, false);
	wf_yaml_map_end(&yaml);
	return wf_yaml_check(&yaml);
}
