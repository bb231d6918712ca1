/* SPDX-License-Identifier: Apache-2.0 */
/* change: numbers of tensors' optimizers that the owner changes, and arrays that it replaces, with
 * the next step. change_send.c sends them. Thread: the owner's. */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "kernels/numbers.h"
#include "trainer/session/dense.h"
#include "trainer/session/gate.h"
#include "trainer/session/session.h"

/* Has the job steps that all trainers count alike, and is none under way? */
static enum weft_status
check_job(const struct weft_session *session, const char *name)
{
	const struct wf_job *job = &session->core.job;
	const struct wf_job_tensor *lagging = wf_job_first_lagging(job);
	if (!session->sealed) {
		return wf_fail(WEFT_INVALID, "%s is changed before weft_session_seal", name);
	}
	if (wf_session_has_local_steps(&job->set)) {
		return wf_fail(WEFT_INVALID,
			       "%s: with local steps each trainer applies its gradients itself, "
			       "and nothing of the optimizer can be changed",
			       name);
	}
	if (lagging != NULL) {
		return wf_fail(WEFT_INVALID,
			       "%s: pushes of %s are applied as they arrive, so there is no step "
			       "from which a change is in force for all trainers; use dense_mode "
			       "sync for all tensors",
			       name, lagging->name);
	}
	const struct wf_session_changes *changes = &session->core.changes;
	bool looked = changes->count > 0 && changes->step == 0; /* no step has begun since */
	return session->running && !looked ? wf_exchange_finished(session) : WEFT_OK;
}

static enum weft_status
check_tensor(const struct weft_tensor *tensor)
{
	const struct wf_job_tensor *declared = &tensor->session->core.job.tensor[tensor->idx];
	enum weft_status st = check_job(tensor->session, declared->name);
	if (st == WEFT_OK && !wf_job_has_state(declared)) {
		return wf_fail(WEFT_INVALID, "%s is %s, and has no optimizer", declared->name,
			       declared->is_static ? "static" : "only reduced");
	}
	return st;
}

static enum weft_status
grow(struct weft_session *session)
{
	struct wf_session_changes *changes = &session->core.changes;
	struct wf_env *env = session->core.end.env;
	if (changes->count < changes->capacity) {
		return WEFT_OK;
	}
	uint32_t capacity = changes->capacity > 0 ? 2 * changes->capacity : 64;
	struct wf_change *change = wf_zalloc_array(env, capacity, sizeof(*change));
	if (change == NULL) {
		return wf_fail(WEFT_NOMEM, "session: no memory for %u changes", capacity);
	}
	if (changes->count > 0) {
		memcpy(change, changes->change, changes->count * sizeof(*change));
	}
	wf_free(env, changes->change, changes->capacity * sizeof(*change));
	changes->change = change;
	changes->capacity = capacity;
	return WEFT_OK;
}

/* In its place; one of the same number is replaced. */
static enum weft_status
insert(struct weft_session *session, const struct wf_change *change)
{
	struct wf_session_changes *changes = &session->core.changes;
	if (changes->step != 0) { /* those are in force */
		changes->step = 0;
		changes->count = 0;
	}
	uint32_t at = changes->count;
	while (at > 0 && wf_change_is_before(change, &changes->change[at - 1])) {
		at--;
	}
	if (at > 0 && !wf_change_is_before(&changes->change[at - 1], change)) {
		changes->change[at - 1].value = change->value;
		return WEFT_OK;
	}
	enum weft_status st = grow(session);
	if (st == WEFT_OK) {
		memmove(&changes->change[at + 1], &changes->change[at],
			(changes->count - at) * sizeof(*change));
		changes->change[at] = *change;
		changes->count++;
	}
	return st;
}

static enum weft_status
add(struct weft_tensor *tensor, enum wf_number number, double value)
{
	struct weft_session *session = tensor->session;
	const struct wf_optimizer_opts opts = wf_job_optimizer(&session->core.job);
	enum weft_status st = wf_number_check(&opts, number, value);
	if (st != WEFT_OK) {
		return wf_fail(st, "%s: %s", weft_tensor_name(tensor), weft_last_error());
	}
	return insert(session,
		      &(struct wf_change){.tensor = tensor->idx, .number = number, .value = value});
}

enum weft_status
weft_tensor_change(struct weft_tensor *tensor, const char *name, double value)
{
	WF_ENTER(tensor->session);
	enum wf_number number;
	enum weft_status st = wf_number_parse(name, &number);
	if (st != WEFT_OK) {
		return wf_fail(st, "%s: %s", weft_tensor_name(tensor), weft_last_error());
	}
	st = check_tensor(tensor);
	return st == WEFT_OK ? add(tensor, number, value) : st;
}

enum weft_status
weft_tensor_assign(struct weft_tensor *tensor, uint32_t array)
{
	WF_ENTER(tensor->session);
	const struct wf_job *job = &tensor->session->core.job;
	enum weft_status st = check_tensor(tensor);
	if (st != WEFT_OK) {
		return st;
	}
	if (job->set.dense_wire != WEFT_WIRE_F32) {
		return wf_fail(WEFT_INVALID,
			       "%s: gradients travel in 16 bits, which an array that replaces "
			       "another cannot; use dense_wire f32",
			       weft_tensor_name(tensor));
	}
	if (wf_optimizer_averages(&job->set.optimizer)) {
		return wf_fail(WEFT_INVALID,
			       "%s: averages are kept of its values (average_window), which "
			       "cannot be replaced",
			       weft_tensor_name(tensor));
	}
	return add(tensor, WF_NUMBER_ASSIGNED, array);
}
