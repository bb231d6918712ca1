/* SPDX-License-Identifier: Apache-2.0 */
/* secret: the job's secret in a manifest: a volume from an object that the user makes of a file, or
 * an object of new random bytes in the manifest itself. The processes find it by WEFT_SECRET_FILE.
 * Thread: any one. */
#pragma once

#include "tools/gen/job.h"
#include "tools/gen/yaml.h"

/* Where the containers have it. */
#define WF_GEN_SECRET_PATH "/etc/weft/secret"

/* Makes the bytes, if the job is to have new ones. WEFT_INTERNAL: the system has none to give. */
enum weft_status wf_gen_secret_make(struct wf_gen_job *job) WEFT_MUST_CHECK;
/* Whether the job has one. */
bool wf_gen_has_secret(const struct wf_gen_job *job);

/* A document of its own, for new bytes; nothing for a file. */
void wf_gen_secret_document(struct wf_yaml *yaml, const struct wf_gen_job *job);
/* A line of a comment with the command that makes the object of a file; nothing for new bytes. */
void wf_gen_secret_comment(struct wf_yaml *yaml, const struct wf_gen_job *job);
/* Items of lists. */
void wf_gen_secret_mount(struct wf_yaml *yaml);
void wf_gen_secret_volume(struct wf_yaml *yaml, const struct wf_gen_job *job);
