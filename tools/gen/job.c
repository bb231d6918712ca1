/* SPDX-License-Identifier: Apache-2.0 */
/* job: see job.h. */
#include "tools/gen/job.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/env.h"

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"
#define GRACE_EXTRA_S 5u
#define SLURM_GRACE_S 65535u /* the most that sbatch --signal takes */

/* A name of a host in DNS has at most 63 bytes. The longest that a controller makes of a job's name
 * is NAME-trainer-0-4095-xxxxx. */
#define MANIFEST_NAME_BYTES 42u
#define SCRIPT_NAME_BYTES 63u /* the most that weft pserver --job_name takes */

static bool
is_given(const char *text)
{
	return text != NULL && text[0] != '\0';
}

/* Whether all characters are from the list, and there is one. */
static bool
consists_of(const char *text, const char *characters)
{
	return text[0] != '\0' && text[strspn(text, characters)] == '\0';
}

/* What is longer would be cut, by weft or by whoever reads what it writes. */
static enum weft_status
check_length(const char *option, const char *text, size_t bytes, size_t most)
{
	return bytes <= most ? WEFT_OK
			     : wf_fail(WEFT_INVALID, "--%s=%.80s...: %zu bytes, %zu are the most",
				       option, text, bytes, most);
}

/* ---- values in lists ---- */

enum weft_status
wf_gen_add_variable(struct wf_gen_job *job, const char *text)
{
	size_t name_bytes = strcspn(text, "=");

	if (text[name_bytes] != '=' || name_bytes == 0 || strchr(DIGITS, text[0]) != NULL ||
	    strspn(text, LOWER UPPER DIGITS "_") != name_bytes) {
		return wf_fail(WEFT_INVALID, "--env=%.80s: must be NAME=VALUE", text);
	}
	enum weft_status st = check_length("env", text, name_bytes, WF_GEN_NAME_BYTES);
	if (st != WEFT_OK) {
		return st;
	}
	if (job->variable_count == WF_GEN_VARIABLES_MAX) {
		return wf_fail(WEFT_INVALID, "--env: %u variables are the most",
			       WF_GEN_VARIABLES_MAX);
	}
	job->variable[job->variable_count++] = (struct wf_gen_variable){
		.name = text, .name_bytes = name_bytes, .value = text + name_bytes + 1};
	return WEFT_OK;
}

static enum weft_status
refuse_volume(const char *text)
{
	return wf_fail(WEFT_INVALID,
		       "--volume=%.120s: must be pvc:CLAIM:/path or host:/folder:/path, and may "
		       "end with :ro",
		       text);
}

enum weft_status
wf_gen_add_volume(struct wf_gen_job *job, const char *text)
{
	struct wf_gen_volume volume = {.is_claim = strncmp(text, "pvc:", 4) == 0};

	if (!volume.is_claim && strncmp(text, "host:", 5) != 0) {
		return refuse_volume(text);
	}
	volume.source = text + (volume.is_claim ? 4 : 5);
	volume.source_bytes = strcspn(volume.source, ":");
	if (volume.source[volume.source_bytes] != ':') {
		return refuse_volume(text);
	}
	volume.path = volume.source + volume.source_bytes + 1;
	volume.path_bytes = strcspn(volume.path, ":");
	const char *rest = volume.path + volume.path_bytes;
	volume.is_read_only = strcmp(rest, ":ro") == 0;
	bool good_source = volume.is_claim
				   ? volume.source_bytes > 0 && strspn(volume.source, LOWER DIGITS
								       "-.") == volume.source_bytes
				   : volume.source[0] == '/';
	if (!good_source || volume.path[0] != '/' || (rest[0] != '\0' && !volume.is_read_only)) {
		return refuse_volume(text);
	}
	enum weft_status st = check_length("volume", text, volume.source_bytes, WF_GEN_PATH_BYTES);
	if (st == WEFT_OK) {
		st = check_length("volume", text, volume.path_bytes, WF_GEN_PATH_BYTES);
	}
	if (st != WEFT_OK) {
		return st;
	}
	if (job->volume_count == WF_GEN_VOLUMES_MAX) {
		return wf_fail(WEFT_INVALID, "--volume: %u volumes are the most",
			       WF_GEN_VOLUMES_MAX);
	}
	for (unsigned i = 0; i < job->volume_count; i++) {
		if (job->volume[i].path_bytes == volume.path_bytes &&
		    strncmp(job->volume[i].path, volume.path, volume.path_bytes) == 0) {
			return wf_fail(WEFT_INVALID,
				       "--volume=%.120s: another volume has this path already",
				       text);
		}
	}
	job->volume[job->volume_count++] = volume;
	return WEFT_OK;
}

/* ---- checks ---- */

/* A name that becomes part of the names of hosts, in manifests; a word, in scripts. */
static enum weft_status
check_name(const struct wf_gen_job *job)
{
	const char *name = job->set.job_name;
	size_t bytes = strlen(name);

	if ((job->kind & WF_GEN_SCRIPTS) != 0) {
		if (consists_of(name, LOWER UPPER DIGITS "._-") && bytes <= SCRIPT_NAME_BYTES) {
			return WEFT_OK;
		}
		return wf_fail(WEFT_INVALID,
			       "--job_name=%.80s: must be letters, digits, '.', '_' and '-', %u "
			       "of them at most",
			       name, SCRIPT_NAME_BYTES);
	}
	if (consists_of(name, LOWER DIGITS "-") && strchr(LOWER, name[0]) != NULL &&
	    name[bytes - 1] != '-' && bytes <= MANIFEST_NAME_BYTES) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_INVALID,
		       "--job_name=%.80s: must be lower-case letters, digits and '-', begin with "
		       "a letter, end with a letter or a digit, and have at most %u of them, as "
		       "the names of the job's hosts begin with it",
		       name, MANIFEST_NAME_BYTES);
}

/* "2", "500m", "1.5Gi": what Kubernetes calls a quantity. */
static enum weft_status
check_quantity(const char *option, const char *text)
{
	static const char *const units[] = {"",  "m",  "k",  "M",  "G",  "T",  "P",
					    "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
	if (!is_given(text)) {
		return WEFT_OK;
	}
	size_t digits = strspn(text, DIGITS);
	const char *unit = text + digits;
	bool is_zero = strspn(text, "0.") == digits;
	if (unit[0] == '.') {
		size_t decimals = strspn(unit + 1, DIGITS);
		is_zero = strspn(text, "0.") == digits + 1 + decimals;
		digits = decimals > 0 ? digits : 0;
		unit += 1 + decimals;
	}
	for (size_t i = 0; i < WF_ARRAY_COUNT(units) && digits > 0 && !is_zero; i++) {
		if (strcmp(unit, units[i]) == 0) {
			return WEFT_OK;
		}
	}
	return wf_fail(WEFT_INVALID,
		       "--%s=%.80s: must be a number above 0, with a unit that Kubernetes knows, "
		       "such as 2, 500m or 1Gi",
		       option, text);
}

/* Slurm hands out whole cores. */
static enum weft_status
check_cores(const char *option, const char *text)
{
	if (!is_given(text) || (consists_of(text, DIGITS) && text[0] != '0' && strlen(text) <= 5)) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_INVALID, "--%s=%.80s: must be a whole number of cores for Slurm",
		       option, text);
}

static enum weft_status
check_resources(const struct wf_gen_job *job)
{
	const struct wf_gen_settings *set = &job->set;

	if (job->kind == WF_GEN_SLURM) {
		enum weft_status st = check_cores("cpu", set->cpu);
		return st == WEFT_OK ? check_cores("pscpu", set->pscpu) : st;
	}
	const struct {
		const char *option, *text;
	} quantities[] = {
		{"cpu", set->cpu},
		{"memory", set->memory},
		{"pscpu", set->pscpu},
		{"psmemory", set->psmemory},
	};
	enum weft_status st = WEFT_OK;
	for (size_t i = 0; i < WF_ARRAY_COUNT(quantities) && st == WEFT_OK; i++) {
		st = check_quantity(quantities[i].option, quantities[i].text);
	}
	return st;
}

static enum weft_status
check_program(const struct wf_gen_job *job)
{
	const struct wf_gen_settings *set = &job->set;

	if (job->program_count == 0 && !is_given(set->entry)) {
		return wf_fail(WEFT_INVALID, "no program is given for the trainers; end with -- "
					     "train MODEL, or with a program of yours: -- python3 "
					     "train.py");
	}
	if (job->program_count > 0 && is_given(set->entry)) {
		return wf_fail(WEFT_INVALID, "--entry and what follows -- are both the trainers' "
					     "program; give one of them");
	}
	if (job->is_built_in && set->gpu > 0) {
		return wf_fail(WEFT_INVALID,
			       "--gpu=%" PRIu64 ": the built-in models have no GPU code; give "
			       "--gpu=0, or a program of yours",
			       set->gpu);
	}
	return WEFT_OK;
}

static enum weft_status
check_secret(const struct wf_gen_job *job)
{
	if (job->set.secret && is_given(job->set.secret_file)) {
		return wf_fail(WEFT_INVALID, "--secret makes a new secret and --secret_file names "
					     "one that is there; give one of them");
	}
	const char *file = job->set.secret_file;
	return is_given(file) ? check_length("secret_file", file, strlen(file), WF_GEN_PATH_BYTES)
			      : WEFT_OK;
}

/* The signal that Slurm sends before the limit of time. */
static enum weft_status
check_grace(const struct wf_gen_job *job)
{
	uint64_t grace_s = wf_gen_grace_s(job);

	if (job->kind != WF_GEN_SLURM || job->set.time_limit_ns == 0 || grace_s <= SLURM_GRACE_S) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_INVALID,
		       "--term_grace is %" PRIu64 " s, and with --time_limit Slurm allows %u s at "
		       "most",
		       grace_s - GRACE_EXTRA_S, SLURM_GRACE_S - GRACE_EXTRA_S);
}

/* Lines of a script that are no commands: they end where the line does. */
static enum weft_status
check_lines(const struct wf_gen_job *job)
{
	const struct {
		const char *option, *text;
	} lines[] = {
		{"queue", job->set.queue},
		{"sbatch", job->set.sbatch},
	};
	for (size_t i = 0; i < WF_ARRAY_COUNT(lines); i++) {
		if (is_given(lines[i].text) && strpbrk(lines[i].text, "\r\n") != NULL) {
			return wf_fail(WEFT_INVALID, "--%s: must be one line", lines[i].option);
		}
	}
	return WEFT_OK;
}

static enum weft_status
check_places(const struct wf_gen_job *job)
{
	const struct wf_gen_settings *set = &job->set;
	bool is_manifest = (job->kind & WF_GEN_MANIFESTS) != 0;

	if (is_manifest && !is_given(set->image)) {
		return wf_fail(WEFT_INVALID,
			       "--image is missing: the container image that has weft and the "
			       "trainers' program");
	}
	if (is_manifest && is_given(set->workdir) && set->workdir[0] != '/') {
		return wf_fail(WEFT_INVALID,
			       "%.200s: must be an absolute path in the container; weft copies no "
			       "files: put them into the image, or on a volume (--volume)",
			       set->workdir);
	}
	enum weft_status st =
		check_length("listen", set->listen, strlen(set->listen), WF_GEN_NAME_BYTES);
	if (st != WEFT_OK) {
		return st;
	}
	uint64_t lanes = (uint64_t)set->ports_num + set->ports_num_for_sparse;
	/* In a script several pservers can have one host, and ports one after another there. */
	uint64_t most = is_manifest ? 1 : job->pservers;
	if (set->port + most * lanes - 1 > 65535) {
		return wf_fail(WEFT_INVALID,
			       "--port=%u: the pservers may need %" PRIu64
			       " ports, which would go past 65535; use a lower port",
			       set->port, most * lanes);
	}
	return WEFT_OK;
}

enum weft_status
wf_gen_job_settle(struct wf_gen_job *job)
{
	struct wf_gen_settings *set = &job->set;

	job->pservers = set->pservers > 0 ? set->pservers : set->trainers;
	job->is_built_in = job->program_count > 0 && strcmp(job->program[0], "train") == 0;
	enum weft_status (*const checks[])(const struct wf_gen_job *) = {
		check_program, check_name,  check_resources, check_secret,
		check_grace,   check_lines, check_places,
	};
	enum weft_status st = WEFT_OK;
	if (is_given(set->env)) {
		st = wf_gen_add_variable(job, set->env);
	}
	if (st == WEFT_OK && is_given(set->volume)) {
		st = wf_gen_add_volume(job, set->volume);
	}
	for (size_t i = 0; i < WF_ARRAY_COUNT(checks) && st == WEFT_OK; i++) {
		st = checks[i](job);
	}
	return st;
}

uint64_t
wf_gen_grace_s(const struct wf_gen_job *job)
{
	return (job->set.term_grace_ns + WF_NS_PER_S - 1) / WF_NS_PER_S + GRACE_EXTRA_S;
}
