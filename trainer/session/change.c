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

#define CHANGES_FIRST 64u /* room for as many at first; at least WF_NUMBER_COUNT */

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
	enum weft_status st = session->running ? wf_exchange_check_running(session) : WEFT_OK;
	return st == WEFT_OK && session->running && !looked ? wf_exchange_finished(session) : st;
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

/* Room for all numbers of one tensor. */
static enum weft_status
reserve(struct weft_session *session)
{
	struct wf_session_changes *changes = &session->core.changes;
	struct wf_env *env = session->core.end.env;
	if (changes->capacity - changes->count >= WF_NUMBER_COUNT) {
		return WEFT_OK;
	}
	uint32_t capacity = changes->capacity > 0 ? 2 * changes->capacity : CHANGES_FIRST;
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

/* In its place, for which there is room; one of the same number is replaced. */
static void
insert(struct wf_session_changes *changes, const struct wf_change *change)
{
	uint32_t at = changes->count;
	while (at > 0 && wf_change_is_before(change, &changes->change[at - 1])) {
		at--;
	}
	if (at > 0 && !wf_change_is_before(&changes->change[at - 1], change)) {
		changes->change[at - 1].value = change->value;
		return;
	}
	WF_ASSERT(changes->count < changes->capacity);
	memmove(&changes->change[at + 1], &changes->change[at],
		(changes->count - at) * sizeof(*change));
	changes->change[at] = *change;
	changes->count++;
}

/* All that were checked. */
static enum weft_status
insert_all(struct weft_tensor *tensor, const struct wf_numbers *numbers)
{
	struct wf_session_changes *changes = &tensor->session->core.changes;
	enum weft_status st = reserve(tensor->session);
	if (st != WEFT_OK) {
		return st;
	}
	if (changes->step != 0) { /* those are in force */
		changes->step = 0;
		changes->count = 0;
	}
	for (enum wf_number i = 0; i < WF_NUMBER_COUNT; i++) {
		if (wf_numbers_have(numbers, i)) {
			insert(changes, &(struct wf_change){.tensor = tensor->idx,
							    .number = i,
							    .value = numbers->value[i]});
		}
	}
	return WEFT_OK;
}

/* Adds a number to those that are to be changed. */
static enum weft_status
check_number(const struct weft_tensor *tensor, enum wf_number number, double value,
	     struct wf_numbers *out)
{
	const struct wf_optimizer_opts opts = wf_job_optimizer(&tensor->session->core.job);
	enum weft_status st = wf_number_check(&opts, number, value);
	if (st != WEFT_OK) {
		return wf_fail(st, "%s: %s", weft_tensor_name(tensor), weft_last_error());
	}
	out->value[number] = value;
	out->given |= 1u << number;
	return WEFT_OK;
}

static enum weft_status
check_named(const struct weft_tensor *tensor, const char *name, double value,
	    struct wf_numbers *out)
{
	enum wf_number number;
	enum weft_status st = wf_number_parse(name, &number);
	if (st != WEFT_OK) {
		return wf_fail(st, "%s: %s", weft_tensor_name(tensor), weft_last_error());
	}
	return check_number(tensor, number, value, out);
}

enum weft_status
weft_tensor_change_numbers(struct weft_tensor *tensor, const char *const *names,
			   const double *values, uint32_t count)
{
	WF_ENTER(tensor->session);
	struct wf_numbers numbers = {0};
	enum weft_status st = check_tensor(tensor);
	for (uint32_t i = 0; i < count && st == WEFT_OK; i++) {
		st = check_named(tensor, names[i], values[i], &numbers);
	}
	return st == WEFT_OK ? insert_all(tensor, &numbers) : st;
}

enum weft_status
weft_tensor_change(struct weft_tensor *tensor, const char *name, double value)
{
	return weft_tensor_change_numbers(tensor, &name, &value, 1);
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
	struct wf_numbers numbers = {0};
	st = check_number(tensor, WF_NUMBER_ASSIGNED, array, &numbers);
	return st == WEFT_OK ? insert_all(tensor, &numbers) : st;
}
