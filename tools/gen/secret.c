/* SPDX-License-Identifier: Apache-2.0 */
/* secret: see secret.h. */
#include "tools/gen/secret.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/assert.h"

#define KEY "secret"    /* the name of the file in the object */
#define VOLUME "secret" /* the name of the volume in a pod */
#define MODE 0400u      /* weft refuses a file that others may read */
#define NAME_BYTES 128

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* The form that objects of Kubernetes have for bytes. */
static void
encode_base64(const unsigned char *in, size_t bytes, char *out)
{
	for (size_t i = 0; i < bytes; i += 3) {
		size_t left = bytes - i;
		uint32_t group = (uint32_t)in[i] << 16;
		group |= left > 1 ? (uint32_t)in[i + 1] << 8 : 0;
		group |= left > 2 ? in[i + 2] : 0;
		*out++ = alphabet[group >> 18];
		*out++ = alphabet[group >> 12 & 63];
		*out++ = left > 1 ? alphabet[group >> 6 & 63] : '=';
		*out++ = left > 2 ? alphabet[group & 63] : '=';
	}
	*out = '\0';
}

enum weft_status
wf_gen_secret_make(struct wf_gen_job *job)
{
	unsigned char bytes[WF_GEN_SECRET_BYTES];

	if (!job->set.secret) {
		return WEFT_OK;
	}
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
		return wf_fail_errno(WEFT_INTERNAL, errno, "no random bytes for the secret");
	}
	encode_base64(bytes, sizeof(bytes), job->secret);
	explicit_bzero(bytes, sizeof(bytes));
	return WEFT_OK;
}

bool
wf_gen_has_secret(const struct wf_gen_job *job)
{
	const char *file = job->set.secret_file;
	return job->set.secret || (file != NULL && file[0] != '\0');
}

static const char *
object_name(const struct wf_gen_job *job, char out[NAME_BYTES])
{
	snprintf(out, NAME_BYTES, "%s-secret", job->set.job_name);
	return out;
}

void
wf_gen_secret_document(struct wf_yaml *yaml, const struct wf_gen_job *job)
{
	char name[NAME_BYTES];

	if (!job->set.secret) {
		return;
	}
	wf_yaml_text(yaml, "apiVersion", "v1");
	wf_yaml_text(yaml, "kind", "Secret");
	wf_yaml_map(yaml, "metadata");
	wf_yaml_text(yaml, "name", object_name(job, name));
	wf_yaml_map_end(yaml);
	wf_yaml_map(yaml, "data");
	wf_yaml_text(yaml, KEY, job->secret);
	wf_yaml_map_end(yaml);
	wf_yaml_document(yaml);
}

/* A name with a character that a comment or a terminal may take for something is not repeated. */
void
wf_gen_secret_comment(struct wf_yaml *yaml, const struct wf_gen_job *job)
{
	static const char harmless[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "0123456789._-/+=@,:";
	const char *file = job->set.secret_file;
	char name[NAME_BYTES];
	char text[WF_GEN_PATH_BYTES + 256];

	if (file == NULL || file[0] == '\0') {
		return;
	}
	snprintf(text, sizeof(text),
		 "Before that: kubectl create secret generic %s --from-file=" KEY "=%s",
		 object_name(job, name), file[strspn(file, harmless)] == '\0' ? file : "FILE");
	wf_yaml_comment(yaml, text);
}

/* A part of the volume, because a whole one has links in it, which weft does not follow. */
void
wf_gen_secret_mount(struct wf_yaml *yaml)
{
	wf_yaml_item(yaml);
	wf_yaml_text(yaml, "name", VOLUME);
	wf_yaml_text(yaml, "mountPath", WF_GEN_SECRET_PATH);
	wf_yaml_text(yaml, "subPath", KEY);
	wf_yaml_truth(yaml, "readOnly", true);
	wf_yaml_item_end(yaml);
}

void
wf_gen_secret_volume(struct wf_yaml *yaml, const struct wf_gen_job *job)
{
	char name[NAME_BYTES];

	wf_yaml_item(yaml);
	wf_yaml_text(yaml, "name", VOLUME);
	wf_yaml_map(yaml, "secret");
	wf_yaml_text(yaml, "secretName", object_name(job, name));
	wf_yaml_number(yaml, "defaultMode", MODE);
	wf_yaml_map_end(yaml);
	wf_yaml_item_end(yaml);
}
