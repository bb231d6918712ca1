/* SPDX-License-Identifier: Apache-2.0 */
/* greeting: what a session says of itself and of its job when it comes to a lane. Thread: the
 * owner's, before the core starts. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trainer/core.h"

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

/* What came later than the rest, in all summaries alike: words are compared by their places. */
static void
summarise_rest(const struct wf_core *core, struct wf_hello *hello)
{
	const struct wf_job *job = &core->job;
	const struct weft_optimizer_opts *o = &core->opts.optimizer;
	static const char *const mode[] = {
		[WF_DENSE_SYNC] = "sync",       [WF_DENSE_ASYNC] = "async",
		[WF_DENSE_BOUNDED] = "bounded", [WF_DENSE_LOCAL] = "local",
		[WF_DENSE_ELASTIC] = "elastic",
	};
	static const char *const wire[] = {"f32", "bf16", "f16", "bf16,stochastic",
					   "f16,stochastic"};
	bool draws = job->rounding == WF_ROUND_STOCHASTIC;
	size_t used = strlen(hello->options);
	(void)snprintf(hello->options + used, sizeof(hello->options) - used,
		       " dense_wire=%s mode=%s,%u,%.9g,%u,%.9g rho=%.9g l1=%.9g norm=%.9g "
		       "average=%.9g,%" PRIu64 " first_pass=%" PRIu64 " args=%s",
		       wire[job->wire + (draws ? 2 : 0)], mode[job->mode], job->staleness,
		       job->discard_ratio, job->local_steps, job->elastic_rate, o->rho, o->l1,
		       o->clip_norm, o->average_window, o->max_average_window, o->first_pass,
		       o->schedule_args);
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
	const struct weft_session_opts *opts = &core->opts;
	const struct weft_optimizer_opts *o = &opts->optimizer;
	(void)snprintf(hello->options, sizeof(hello->options),
		       "slice_bytes=%" PRIu64 " grad_reduce=%s nonfinite=%s optimizer=%s "
		       "learning_rate=%.9g momentum=%.9g l2=%.9g clip=%.9g schedule=%s,%.9g,%.9g "
		       "beta=%.9g,%.9g epsilon=%.9g",
		       opts->slice_bytes, opts->grad_reduce == WEFT_REDUCE_MEAN ? "mean" : "sum",
		       opts->skip_nonfinite != 0 ? "skip" : "abort", o->method, o->learning_rate,
		       o->momentum, o->decay, o->clip, o->schedule, o->schedule_a, o->schedule_b,
		       o->beta1, o->beta2, o->epsilon);
	summarise_rest(core, hello);
	size_t used = 0;
	static const char *const mode[] = {
		[WF_TENSOR_AS_JOB] = "",
		[WF_TENSOR_SYNC] = ",sync",
		[WF_TENSOR_ASYNC] = ",async",
		[WF_TENSOR_BOUNDED] = ",bounded",
	};
	for (uint32_t i = 0; i < core->job.tensor_count && used < sizeof(hello->tensors); i++) {
		const struct wf_job_tensor *t = &core->job.tensor[i];
		used += (size_t)snprintf(hello->tensors + used, sizeof(hello->tensors) - used,
					 "%s%s=%" PRIu64 "%s%s", i > 0 ? " " : "", t->name,
					 t->count, kind_of(t), mode[t->mode]);
	}
}

void
wf_link_fill_hello(struct wf_core *core)
{
	core->hello = (struct wf_hello){
		.version_min = WF_WIRE_VERSION_MIN,
		.version_max = WF_WIRE_VERSION,
		.service = WF_SERVICE_DENSE,
		.pserver_count = core->job.pserver_count,
		.lane_count = core->job.lane_count,
		.trainer_id = core->opts.trainer_id,
		.trainer_count = core->job.trainer_count,
		.incarnation = core->incarnation,
		.job_digest = wf_job_digest(&core->job),
		.tensors_digest = wf_job_tensors_digest(&core->job),
		.placement_digest = wf_placement_digest(&core->placement),
		.numerics_digest = core->numerics_digest,
		.job_bytes = core->job_byte_count,
		.msg_bytes_max = WF_MSG_BODY_MAX,
		.put_bytes_max = wf_core_put_bytes_max(core),
		.pid = (uint32_t)getpid(),
	};
	summarise(core, &core->hello);
	(void)snprintf(core->hello.compared, sizeof(core->hello.compared), "%s",
		       core->opts.compared);
	char *host = core->hello.host;
	if (gethostname(host, sizeof(core->hello.host)) != 0 || host[0] == '\0') {
		(void)snprintf(host, sizeof(core->hello.host), "unknown");
	}
	host[sizeof(core->hello.host) - 1] = '\0';
}
