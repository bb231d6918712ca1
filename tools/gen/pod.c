/* SPDX-License-Identifier: Apache-2.0 */
/* pod: see pod.h. */
#include "tools/gen/pod.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/env.h"
#include "base/url.h"
#include "tools/gen/secret.h"

#define NUMBER_BYTES 32
#define PROBE_PERIOD_S 2
#define PROBE_FAILURES 150 /* so that a pserver has five minutes to listen */
#define ENTRY_BYTES 1024

static bool
is_given(const char *text)
{
	return text != NULL && text[0] != '\0';
}

/* Copies a text that is not terminated. It fits: wf_gen_job_settle has seen to it. */
static const char *
terminated(char *out, size_t bytes, const char *text, size_t text_bytes)
{
	WF_ASSERT(text_bytes < bytes);
	snprintf(out, bytes, "%.*s", (int)text_bytes, text);
	return out;
}

static void
print_variable(struct wf_yaml *yaml, const char *name, const char *value)
{
	wf_yaml_item(yaml);
	wf_yaml_text(yaml, "name", name);
	wf_yaml_text(yaml, "value", value);
	wf_yaml_item_end(yaml);
}

static void
print_number_variable(struct wf_yaml *yaml, const char *name, uint64_t number)
{
	char value[NUMBER_BYTES];
	snprintf(value, sizeof(value), "%" PRIu64, number);
	print_variable(yaml, name, value);
}

static void
print_environment(struct wf_yaml *yaml, const struct wf_gen_job *job, const struct wf_gen_pod *pod)
{
	const struct wf_gen_settings *set = &job->set;
	char name[WF_GEN_NAME_BYTES + 1];
	char first[WF_HOST_BYTES + 8];

	wf_yaml_list(yaml, "env");
	yaml->doubles_dollars = true;
	print_variable(yaml, "WEFT_JOB_NAME", set->job_name);
	print_number_variable(yaml, "WEFT_PORT", set->port);
	print_number_variable(yaml, "WEFT_PORTS_NUM", set->ports_num);
	print_number_variable(yaml, "WEFT_PORTS_NUM_FOR_SPARSE", set->ports_num_for_sparse);
	if (pod->trainers > 0) {
		print_number_variable(yaml, "WEFT_NUM_GRADIENT_SERVERS", pod->trainers);
	}
	if (!pod->is_pserver && pod->pservers != NULL) {
		print_variable(yaml, "WEFT_PSERVERS", pod->pservers);
	}
	if (pod->is_pserver && pod->pservers != NULL && job->pservers > 1) {
		size_t bytes = strcspn(pod->pservers, ",");
		print_variable(yaml, "WEFT_REGISTRAR",
			       terminated(first, sizeof(first), pod->pservers, bytes));
	}
	if (wf_gen_has_secret(job)) {
		print_variable(yaml, "WEFT_SECRET_FILE", WF_GEN_SECRET_PATH);
	}
	if (set->save_on_term) {
		uint64_t grace_ms = set->term_grace_ns / WF_NS_PER_MS;
		char grace[NUMBER_BYTES];
		snprintf(grace, sizeof(grace), "%" PRIu64 "ms", grace_ms);
		print_variable(yaml, "WEFT_SAVE_ON_TERM", "true");
		print_variable(yaml, "WEFT_TERM_GRACE", grace);
	}
	if (!pod->is_pserver && set->num_passes > 0) {
		print_number_variable(yaml, "PADDLE_INIT_NUM_PASSES", set->num_passes);
	}
	for (unsigned i = 0; i < job->variable_count; i++) {
		const struct wf_gen_variable *variable = &job->variable[i];
		print_variable(yaml,
			       terminated(name, sizeof(name), variable->name, variable->name_bytes),
			       variable->value);
	}
	yaml->doubles_dollars = false;
}

/* The job's own command line of a shell. The original's client set these variables for it. */
static void
print_entry(struct wf_yaml *yaml, const struct wf_gen_job *job, const struct wf_gen_pod *pod)
{
	char before[ENTRY_BYTES];

	snprintf(before, sizeof(before),
		 "export PADDLE_INIT_TRAINER_ID=\"$%s\" PADDLE_INIT_NUM_GRADIENT_SERVERS=\"$%s\"; "
		 "eval \"$1\"",
		 pod->rank_variable, pod->size_variable);
	wf_yaml_item_text(yaml, "sh");
	wf_yaml_item_text(yaml, "-c");
	wf_yaml_item_text(yaml, before);
	wf_yaml_item_text(yaml, "sh");
	wf_yaml_item_text(yaml, job->set.entry);
}

static void
print_pserver_command(struct wf_yaml *yaml, const struct wf_gen_job *job)
{
	const struct wf_gen_settings *set = &job->set;
	char text[512];

	wf_yaml_item_text(yaml, set->weft);
	wf_yaml_item_text(yaml, "pserver");
	snprintf(text, sizeof(text), "--listen=%s", set->listen);
	wf_yaml_item_text(yaml, text);
	snprintf(text, sizeof(text), "--port=%u", set->port);
	wf_yaml_item_text(yaml, text);
	snprintf(text, sizeof(text), "--ports_num=%u", set->ports_num);
	wf_yaml_item_text(yaml, text);
	snprintf(text, sizeof(text), "--ports_num_for_sparse=%u", set->ports_num_for_sparse);
	wf_yaml_item_text(yaml, text);
	snprintf(text, sizeof(text), "--num_gradient_servers=%" PRIu64, set->trainers);
	wf_yaml_item_text(yaml, text);
	wf_yaml_item_text(yaml, "--once");
}

static void
print_command(struct wf_yaml *yaml, const struct wf_gen_job *job, const struct wf_gen_pod *pod)
{
	wf_yaml_list(yaml, "command");
	yaml->doubles_dollars = true;
	if (pod->is_pserver) {
		print_pserver_command(yaml, job);
	} else if (is_given(job->set.entry)) {
		print_entry(yaml, job, pod);
	} else {
		if (job->is_built_in) {
			wf_yaml_item_text(yaml, job->set.weft);
		}
		for (unsigned i = 0; i < job->program_count; i++) {
			wf_yaml_item_text(yaml, job->program[i]);
		}
	}
	yaml->doubles_dollars = false;
}

/* The first lane listens when all do. The probe ends when it succeeds: a pserver logs whoever
 * connects and says nothing, and one that goes on for the whole job would fill its log. */
static void
print_ports(struct wf_yaml *yaml, const struct wf_gen_settings *set)
{
	wf_yaml_list(yaml, "ports");
	for (unsigned i = 0; i < set->ports_num + set->ports_num_for_sparse; i++) {
		wf_yaml_item(yaml);
		wf_yaml_number(yaml, "containerPort", set->port + i);
		wf_yaml_item_end(yaml);
	}
	wf_yaml_map(yaml, "startupProbe");
	wf_yaml_map(yaml, "tcpSocket");
	wf_yaml_number(yaml, "port", set->port);
	wf_yaml_map_end(yaml);
	wf_yaml_number(yaml, "periodSeconds", PROBE_PERIOD_S);
	wf_yaml_number(yaml, "failureThreshold", PROBE_FAILURES);
	wf_yaml_map_end(yaml);
}

/* What is asked for is what is used: limits are the same. */
static void
print_resources(struct wf_yaml *yaml, const char *cpu, const char *memory, uint64_t gpu)
{
	static const char *const parts[] = {"requests", "limits"};

	if (!is_given(cpu) && !is_given(memory) && gpu == 0) {
		return;
	}
	wf_yaml_map(yaml, "resources");
	for (size_t i = 0; i < WF_ARRAY_COUNT(parts); i++) {
		wf_yaml_map(yaml, parts[i]);
		if (is_given(cpu)) {
			wf_yaml_text(yaml, "cpu", cpu);
		}
		if (is_given(memory)) {
			wf_yaml_text(yaml, "memory", memory);
		}
		if (gpu > 0) {
			char number[NUMBER_BYTES];
			snprintf(number, sizeof(number), "%" PRIu64, gpu);
			wf_yaml_text(yaml, "nvidia.com/gpu", number);
		}
		wf_yaml_map_end(yaml);
	}
	wf_yaml_map_end(yaml);
}

static void
print_mounts(struct wf_yaml *yaml, const struct wf_gen_job *job)
{
	char name[NUMBER_BYTES];
	char path[WF_GEN_PATH_BYTES + 1];

	if (job->volume_count == 0 && !wf_gen_has_secret(job)) {
		return;
	}
	wf_yaml_list(yaml, "volumeMounts");
	if (wf_gen_has_secret(job)) {
		wf_gen_secret_mount(yaml);
	}
	for (unsigned i = 0; i < job->volume_count; i++) {
		const struct wf_gen_volume *volume = &job->volume[i];
		snprintf(name, sizeof(name), "volume-%u", i);
		wf_yaml_item(yaml);
		wf_yaml_text(yaml, "name", name);
		wf_yaml_text(yaml, "mountPath",
			     terminated(path, sizeof(path), volume->path, volume->path_bytes));
		if (volume->is_read_only) {
			wf_yaml_truth(yaml, "readOnly", true);
		}
		wf_yaml_item_end(yaml);
	}
}

static void
print_volumes(struct wf_yaml *yaml, const struct wf_gen_job *job)
{
	char name[NUMBER_BYTES];
	char source[WF_GEN_PATH_BYTES + 1];

	if (job->volume_count == 0 && !wf_gen_has_secret(job)) {
		return;
	}
	wf_yaml_list(yaml, "volumes");
	if (wf_gen_has_secret(job)) {
		wf_gen_secret_volume(yaml, job);
	}
	for (unsigned i = 0; i < job->volume_count; i++) {
		const struct wf_gen_volume *volume = &job->volume[i];
		snprintf(name, sizeof(name), "volume-%u", i);
		terminated(source, sizeof(source), volume->source, volume->source_bytes);
		wf_yaml_item(yaml);
		wf_yaml_text(yaml, "name", name);
		wf_yaml_map(yaml, volume->is_claim ? "persistentVolumeClaim" : "hostPath");
		wf_yaml_text(yaml, volume->is_claim ? "claimName" : "path", source);
		wf_yaml_map_end(yaml);
		wf_yaml_item_end(yaml);
	}
}

static void
print_container(struct wf_yaml *yaml, const struct wf_gen_job *job, const struct wf_gen_pod *pod)
{
	const struct wf_gen_settings *set = &job->set;

	wf_yaml_list(yaml, "containers");
	wf_yaml_item(yaml);
	wf_yaml_text(yaml, "name", pod->is_pserver ? WF_GEN_PSERVER : WF_GEN_TRAINER);
	wf_yaml_text(yaml, "image", set->image);
	print_command(yaml, job, pod);
	if (!pod->is_pserver && is_given(set->workdir)) {
		wf_yaml_text(yaml, "workingDir", set->workdir);
	}
	print_environment(yaml, job, pod);
	if (pod->is_pserver) {
		print_ports(yaml, set);
		print_resources(yaml, set->pscpu, set->psmemory, 0);
	} else {
		print_resources(yaml, set->cpu, set->memory, set->gpu);
	}
	print_mounts(yaml, job);
	wf_yaml_item_end(yaml);
}

void
wf_gen_pod_template(struct wf_yaml *yaml, const struct wf_gen_job *job,
		    const struct wf_gen_pod *pod)
{
	wf_yaml_map(yaml, "template");
	wf_yaml_map(yaml, "spec");
	/* A process that ended in an error does not start again alone: the job does, as a whole. */
	wf_yaml_text(yaml, "restartPolicy", "Never");
	wf_yaml_number(yaml, "terminationGracePeriodSeconds", wf_gen_grace_s(job));
	if (is_given(job->set.registry)) {
		wf_yaml_list(yaml, "imagePullSecrets");
		wf_yaml_item(yaml);
		wf_yaml_text(yaml, "name", job->set.registry);
		wf_yaml_item_end(yaml);
	}
	print_container(yaml, job, pod);
	print_volumes(yaml, job);
	wf_yaml_map_end(yaml);
	wf_yaml_map_end(yaml);
}

void
wf_gen_pod_comment(struct wf_yaml *yaml, const struct wf_gen_job *job)
{
	/* What breaks a job whose manifest is changed by hand. */
	const char *note =
		job->kind == WF_GEN_JOBSET
			? "Leave replicas at 1: a trainer's number is its index in the one Job "
			  "'" WF_GEN_TRAINER "',\nand each further Job would count from 0 again."
			: "Leave the tasks their names, " WF_GEN_PSERVER " and " WF_GEN_TRAINER
			  ": weft looks for the variables\nthat Volcano names after them, such "
			  "as VC_PSERVER_HOSTS.";
	char text[1024];

	snprintf(text, sizeof(text),
		 "A job of weft: pservers: %" PRIu64 ", trainers: %" PRIu64
		 ". Start it with: kubectl apply -f FILE\n"
		 "Watch it with:  kubectl get pods; kubectl logs -f %s-trainer-0%s\n"
		 "End it with:    kubectl delete -f FILE\n%s",
		 job->pservers, job->set.trainers, job->set.job_name,
		 job->kind == WF_GEN_JOBSET ? "-0-..." : "", note);
	wf_yaml_comment(yaml, text);
	wf_gen_secret_comment(yaml, job);
	wf_gen_secret_document(yaml, job);
}
