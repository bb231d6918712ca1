/* SPDX-License-Identifier: Apache-2.0 */
/* greeting: how a session describes itself and its job when it connects to a lane. Thread: the
 * owner's, before the core starts. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trainer/session/core.h"

enum weft_status
wf_greeting_check(const struct weft_session_opts *opts)
{
	const char *text = opts->compared;
	size_t length = text != NULL ? strlen(text) : 0;
	if (length >= WF_SUMMARY_BYTES) {
		return wf_fail(WEFT_INVALID,
			       "compared: \"%.40s...\" has %zu characters, up to %d are allowed; "
			       "give a digest of what is long",
			       text, length, WF_SUMMARY_BYTES - 1);
	}
	for (size_t i = 0; i < length; i++) {
		bool between = i > 0 && i + 1 < length && text[i + 1] != ' ';
		if (text[i] < ' ' || text[i] > '~' || (text[i] == ' ' && !between)) {
			return wf_fail(
				WEFT_INVALID,
				"compared: byte %zu is 0x%02x; printable ASCII is needed, with one "
				"blank between words and none around them",
				i, (unsigned char)text[i]);
		}
	}
	return WEFT_OK;
}

static const char *
kind_of(const struct wf_job_tensor *tensor)
{
	const char *fixed = tensor->is_static ? ",static" : "";
	return tensor->is_reduced ? ",reduced" : fixed;
}

/* For people: which setting differs, where trainers do not agree. */
static void
summarise(const struct wf_core *core, struct wf_hello *hello)
{
	wf_settings_describe(WEFT_SETTINGS_SESSION, &core->values, ' ', hello->options,
			     sizeof(hello->options));
	size_t used = 0;
	static const char *const mode[] = {
		[WEFT_TENSOR_AS_SESSION] = "",
		[WEFT_TENSOR_SYNC] = ",sync",
		[WEFT_TENSOR_ASYNC] = ",async",
		[WEFT_TENSOR_BOUNDED] = ",bounded",
	};
	for (uint32_t i = 0; i < core->job.tensor_count && used < sizeof(hello->tensors); i++) {
		const struct wf_job_tensor *t = &core->job.tensor[i];
		used += (size_t)snprintf(hello->tensors + used, sizeof(hello->tensors) - used,
					 "%s%s=%" PRIu64 "%s%s", i > 0 ? " " : "", t->name,
					 t->count, kind_of(t), mode[t->mode]);
	}
}

static void
fill_hello(struct wf_core *core)
{
	core->end.hello = (struct wf_hello){
		.version_min = WF_WIRE_VERSION_MIN,
		.version_max = WF_WIRE_VERSION,
		.service = WF_SERVICE_DENSE,
		.pserver_count = core->job.pserver_count,
		.lane_count = core->job.set.ports_num,
		.trainer_id = core->opts.trainer_id,
		.trainer_count = core->job.set.num_gradient_servers,
		.incarnation = core->end.hello.incarnation,
		.epoch = core->values.join ? 1 : 0,
		.job_digest = wf_job_digest(&core->job),
		.tensors_digest = wf_job_tensors_digest(&core->job),
		.placement_digest = wf_placement_digest(&core->placement),
		.numerics_digest = core->end.hello.numerics_digest,
		.job_bytes = core->greeting.job_bytes,
		.msg_bytes_max = WF_MSG_BODY_MAX,
		.put_bytes_max = wf_core_put_bytes_max(core),
		.pid = (uint32_t)getpid(),
	};
	summarise(core, &core->end.hello);
	(void)snprintf(core->end.hello.compared, sizeof(core->end.hello.compared), "%s",
		       core->opts.compared);
	char *host = core->end.hello.host;
	if (gethostname(host, sizeof(core->end.hello.host)) != 0 || host[0] == '\0') {
		(void)snprintf(host, sizeof(core->end.hello.host), "unknown");
	}
	host[sizeof(core->end.hello.host) - 1] = '\0';
}

enum weft_status
wf_greeting_open(struct wf_core *core)
{
	struct wf_session_greeting *greeting = &core->greeting;
	greeting->job_bytes = wf_job_encoded_bytes(&core->job);
	greeting->job = wf_zalloc_array(core->end.env, 1, greeting->job_bytes);
	if (greeting->job == NULL) {
		return wf_fail(WEFT_NOMEM, "session: no memory for the description of %u tensors",
			       core->job.tensor_count);
	}
	wf_job_encode(&core->job, greeting->job);
	fill_hello(core);
	return WEFT_OK;
}

void
wf_greeting_close(struct wf_core *core)
{
	wf_free(core->end.env, core->greeting.job, core->greeting.job_bytes);
	core->greeting.job = NULL;
}
