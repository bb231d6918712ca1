/* SPDX-License-Identifier: Apache-2.0 */
/* change: numbers of a tensor's optimizer that trainers change in the middle of a job, and arrays
 * that they replace. A change is in force from the step that it names on: it comes before the first
 * STEP of that step, so nothing of the step is applied yet, and all of the step before is.
 *
 * All trainers that take part make the same changes. The first to name one appends it to the list
 * of the step; what the others send is compared with the list from its beginning, and their STEP
 * with its end. Whoever differs ends the job, with both values. Those of a trainer that is dropped
 * from a step that nobody else is in are undone: some lanes may not have them.
 *
 * Only in jobs where all tensors are summed: elsewhere the trainers have no step in common. The
 * list is allocated when the first change arrives, which most jobs never see; from then on STEPs
 * are compared with it. Thread: the lane's.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "pserver/apply.h"
#include "pserver/dense.h"

struct named {
	struct wf_change change;
	uint32_t trainer; /* the first that has sent it */
};

/* How much of the list of `step` a trainer has sent. */
struct sent {
	uint64_t step;
	uint32_t count;
};

struct changes {
	uint64_t step; /* of the list */
	uint32_t count;
	bool is_closed; /* a trainer has begun the step: */
	uint32_t closed_by;
	struct sent *sent; /* [peers.count] */
	/* NULL before the first change: */
	struct named *list;         /* [capacity] */
	struct wf_numbers *numbers; /* [tensor_count], the store's */
	/* [tensor_count]: of a tensor in the list, its numbers before that: */
	struct wf_numbers *before;
};

static size_t
capacity(const struct wf_dense *dense)
{
	return (size_t)dense->job.tensor_count * WF_NUMBER_COUNT;
}

/* Those in force, and those before. */
static size_t
numbers_bytes(const struct wf_dense *dense)
{
	return 2 * (size_t)dense->job.tensor_count * sizeof(struct wf_numbers);
}

static uint64_t
changes_bytes(const struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	bool has = dense->store.pushable_count > 0 && dense->async.count == 0 &&
		   !wf_session_has_local_steps(&dense->job.set);
	return has ? sizeof(struct changes) + lane->peers.count * sizeof(struct sent) : 0;
}

static enum weft_status
open_changes(struct wf_feature *self, struct wf_lane *lane)
{
	struct changes *changes = wf_zalloc(lane->env, sizeof(*changes));
	self->state = changes;
	if (changes != NULL) {
		changes->sent =
			wf_zalloc_array(lane->env, lane->peers.count, sizeof(*changes->sent));
	}
	if (changes == NULL || changes->sent == NULL) {
		return wf_fail(WEFT_NOMEM, "lane %u: no memory for changes of %u trainers",
			       lane->opts.idx, lane->peers.count);
	}
	return WEFT_OK;
}

static void
close_changes(struct wf_feature *self, struct wf_lane *lane)
{
	struct wf_dense *dense = lane->own;
	struct changes *changes = self->state;
	if (changes == NULL) {
		return;
	}
	dense->store.numbers = NULL;
	wf_free(lane->env, changes->numbers, numbers_bytes(dense));
	wf_free(lane->env, changes->list, capacity(dense) * sizeof(*changes->list));
	wf_free(lane->env, changes->sent, lane->peers.count * sizeof(*changes->sent));
	wf_free(lane->env, changes, sizeof(*changes));
}

/* Whoever has begun the step before the first change of the job has changed nothing. */
static void
close_for_early(struct changes *changes, const struct wf_lane *lane)
{
	changes->step = lane->order.sum.step;
	for (uint32_t t = 0; t < lane->peers.count && !changes->is_closed; t++) {
		const struct wf_member *member = &lane->peers.all[t].member;
		changes->is_closed = !member->out && member->step_next > changes->step;
		changes->closed_by = t;
	}
}

static bool
alloc_list(const struct wf_feature *self, struct wf_lane *lane)
{
	struct wf_dense *dense = lane->own;
	struct changes *changes = self->state;
	if (changes->list != NULL) {
		return true;
	}
	changes->numbers = wf_zalloc(lane->env, numbers_bytes(dense));
	changes->list = changes->numbers == NULL ? NULL
						 : wf_zalloc_array(lane->env, capacity(dense),
								   sizeof(*changes->list));
	if (changes->list == NULL) {
		wf_free(lane->env, changes->numbers, numbers_bytes(dense));
		changes->numbers = NULL;
		wf_lane_fail(lane, WEFT_NOMEM, lane->order.sum.step,
			     "lane %u: no memory for changes of %u tensors", lane->opts.idx,
			     dense->job.tensor_count);
		return false;
	}
	changes->before = changes->numbers + dense->job.tensor_count;
	dense->store.numbers = changes->numbers;
	close_for_early(changes, lane);
	wf_feature_wake(self, lane);
	return true;
}

enum weft_status
wf_change_load(struct wf_lane *lane, uint32_t tensor, const struct wf_numbers *numbers)
{
	const struct wf_dense *dense = lane->own;
	const struct wf_feature *self = wf_feature_find(lane, &wf_change_hooks);
	if (self == NULL || tensor >= dense->job.tensor_count ||
	    !wf_job_has_state(&dense->job.tensor[tensor])) {
		return wf_fail(WEFT_INVALID, "changes of tensor %u, whose optimizer cannot change",
			       tensor);
	}
	bool known = (numbers->given >> WF_NUMBER_COUNT) == 0 &&
		     numbers->updates_step <= WF_INIT_STEP_MAX;
	enum weft_status st = known ? WEFT_OK : wf_fail(WEFT_DATA, "a number that is not known");
	for (unsigned i = 0; i < WF_NUMBER_COUNT && st == WEFT_OK; i++) {
		if (wf_numbers_have(numbers, (enum wf_number)i)) {
			st = wf_number_check(&dense->store.optimizer, (enum wf_number)i,
					     numbers->value[i]);
		}
	}
	if (st != WEFT_OK) {
		return wf_fail(WEFT_DATA, "changes of %.60s: %.200s",
			       dense->job.tensor[tensor].name, weft_last_error());
	}
	if (!alloc_list(self, lane)) {
		return wf_fail(WEFT_NOMEM, "lane %u: no memory for changes", lane->opts.idx);
	}
	struct changes *changes = self->state;
	changes->numbers[tensor] = *numbers;
	changes->numbers[tensor].assigned_step = 0; /* of a step that is over */
	return WEFT_OK;
}

/* What the peer has sent of the list of the step that the lane is in. */
static struct sent *
sent_of(struct changes *changes, const struct wf_lane *lane, const struct wf_peer *peer)
{
	const uint64_t step = lane->order.sum.step;
	struct sent *sent = &changes->sent[peer->trainer];
	if (changes->step != step) {
		changes->step = step;
		changes->count = 0;
		changes->is_closed = false;
	}
	if (sent->step != step) {
		*sent = (struct sent){.step = step};
	}
	return sent;
}

/* "momentum of w to 0.5" */
static void
format_change(const struct wf_lane *lane, const struct wf_change *change, char *out, size_t bytes)
{
	const struct wf_dense *dense = lane->own;
	(void)snprintf(out, bytes, "%s of %.60s to %.17g",
		       wf_number_name((enum wf_number)change->number),
		       dense->job.tensor[change->tensor].name, change->value);
}

/* One trainer makes the change, another does not. */
static void
fail_alone(struct wf_lane *lane, const struct wf_change *change, uint32_t maker, uint32_t other)
{
	char what[192];
	format_change(lane, change, what, sizeof(what));
	wf_lane_fail(lane, WEFT_MISMATCH, lane->order.sum.step,
		     "step %" PRIu64 ": trainer %u changes %s, trainer %u does not; all trainers "
		     "make the same changes",
		     lane->order.sum.step, maker, what, other);
}

/* The peer's change and the list's at its place differ. */
static void
fail_other(struct wf_lane *lane, const struct named *named, const struct wf_change *change,
	   uint32_t trainer)
{
	if (wf_change_is_before(&named->change, change)) {
		fail_alone(lane, &named->change, named->trainer, trainer);
		return;
	}
	if (wf_change_is_before(change, &named->change)) {
		fail_alone(lane, change, trainer, named->trainer);
		return;
	}
	char what[192];
	format_change(lane, &named->change, what, sizeof(what));
	wf_lane_fail(lane, WEFT_MISMATCH, lane->order.sum.step,
		     "step %" PRIu64 ": trainer %u changes %s, trainer %u to %.17g; all trainers "
		     "make the same changes",
		     lane->order.sum.step, named->trainer, what, trainer, change->value);
}

static bool
is_same(const struct wf_change *a, const struct wf_change *b)
{
	return a->tensor == b->tensor && a->number == b->number &&
	       memcmp(&a->value, &b->value, sizeof(a->value)) == 0;
}

/* The peer's next change is the next one of the list, or is appended. False: the job has ended. */
static bool
record(struct changes *changes, struct wf_lane *lane, const struct wf_peer *peer,
       const struct wf_change *change)
{
	struct wf_dense *dense = lane->own;
	struct sent *sent = sent_of(changes, lane, peer);
	if (sent->count < changes->count) {
		const struct named *named = &changes->list[sent->count++];
		if (!is_same(&named->change, change)) {
			fail_other(lane, named, change, peer->trainer);
			return false;
		}
		return true;
	}
	if (changes->is_closed) {
		fail_alone(lane, change, peer->trainer, changes->closed_by);
		return false;
	}
	WF_ASSERT(changes->count < capacity(dense)); /* they are in order */
	if (changes->count == 0 ||
	    changes->list[changes->count - 1].change.tensor != change->tensor) {
		changes->before[change->tensor] = changes->numbers[change->tensor];
	}
	changes->list[changes->count++] =
		(struct named){.change = *change, .trainer = peer->trainer};
	sent->count++;
	wf_numbers_set(&changes->numbers[change->tensor], (enum wf_number)change->number,
		       change->value, changes->step);
	return true;
}

/* Could a trainer that keeps the rules send it? */
static enum weft_status
check_change(const struct wf_dense *dense, const struct wf_change *change)
{
	const struct wf_store *store = &dense->store;
	if (change->tensor >= dense->job.tensor_count) {
		return wf_fail(WEFT_PROTOCOL, "CHANGE: tensor %u of %u", change->tensor,
			       dense->job.tensor_count);
	}
	const struct wf_job_tensor *tensor = &dense->job.tensor[change->tensor];
	bool known = change->number < WF_NUMBER_COUNT && wf_job_has_state(tensor);
	bool assigns = change->number == WF_NUMBER_ASSIGNED;
	if (!known || (assigns && (store->wire != WEFT_VALUES_F32 ||
				   wf_optimizer_averages(&store->optimizer.set)))) {
		return wf_fail(WEFT_PROTOCOL, "CHANGE: number %u of %.60s, which it does not have",
			       change->number, tensor->name);
	}
	enum weft_status st =
		wf_number_check(&store->optimizer, (enum wf_number)change->number, change->value);
	return st == WEFT_OK ? WEFT_OK : wf_fail(WEFT_PROTOCOL, "CHANGE: %s", weft_last_error());
}

/* It follows what the peer has sent before. */
static bool
is_in_order(struct changes *changes, const struct wf_lane *lane, const struct wf_peer *peer,
	    const struct wf_change *change)
{
	const struct sent *sent = sent_of(changes, lane, peer);
	return sent->count == 0 ||
	       wf_change_is_before(&changes->list[sent->count - 1].change, change);
}

static enum weft_status
recv_change(const struct wf_feature *self, struct wf_lane *lane, struct wf_peer *peer,
	    const struct wf_head *head, const uint8_t *body)
{
	const struct wf_dense *dense = lane->own;
	struct changes *changes = self->state;
	struct wf_msg_changes msg;
	enum weft_status st = wf_msg_change_decode(head, body, &msg);
	if (st != WEFT_OK) {
		return st;
	}
	if (dense->uninitialised > 0 || msg.step != lane->order.sum.step ||
	    peer->member.step_next > msg.step) {
		return wf_fail(WEFT_PROTOCOL,
			       "CHANGE: of step %" PRIu64 ", the lane is in step %" PRIu64
			       " and waits for step %" PRIu64 " of this trainer",
			       msg.step, lane->order.sum.step, peer->member.step_next);
	}
	if (!alloc_list(self, lane)) {
		return WEFT_OK; /* the job has ended */
	}
	for (uint32_t i = 0; i < msg.count; i++) {
		st = check_change(dense, &msg.change[i]);
		if (st != WEFT_OK) {
			return st;
		}
		if (!is_in_order(changes, lane, peer, &msg.change[i])) {
			return wf_fail(WEFT_PROTOCOL, "CHANGE: number %u of tensor %u out of order",
				       msg.change[i].number, msg.change[i].tensor);
		}
		if (!record(changes, lane, peer, &msg.change[i])) {
			return WEFT_OK;
		}
	}
	return WEFT_OK;
}

/* The peer has begun the step: it has sent all of its changes. */
static void
step_said(const struct wf_feature *self, struct wf_lane *lane, struct wf_peer *peer,
	  const struct wf_msg_step *msg)
{
	struct changes *changes = self->state;
	if ((msg->flags & WF_STEP_OUT_OF_DATA) != 0 || msg->step != lane->order.sum.step) {
		return;
	}
	const struct sent *sent = sent_of(changes, lane, peer);
	if (sent->count < changes->count) {
		const struct named *named = &changes->list[sent->count];
		fail_alone(lane, &named->change, named->trainer, peer->trainer);
		return;
	}
	if (!changes->is_closed) {
		changes->is_closed = true;
		changes->closed_by = peer->trainer;
	}
}

/* A trainer that comes back sends the changes of a step that it has not begun here once more. */
static void
path_ends(const struct wf_feature *self, struct wf_lane *lane, struct wf_peer *peer)
{
	struct changes *changes = self->state;
	(void)lane;
	changes->sent[peer->trainer] = (struct sent){0};
}

void
wf_change_drop(struct wf_lane *lane, uint64_t step)
{
	const struct wf_feature *self = wf_feature_find(lane, &wf_change_hooks);
	struct changes *changes = self != NULL ? self->state : NULL;
	if (changes == NULL || changes->list == NULL || changes->step != step) {
		return;
	}
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		const struct sent *sent = &changes->sent[t]; /* zero if it was dropped */
		if (sent->step == step && sent->count > 0) {
			return; /* it is in this step, too, and makes all of them */
		}
	}
	for (uint32_t i = 0; i < changes->count; i++) {
		const uint32_t tensor = changes->list[i].change.tensor;
		changes->numbers[tensor] = changes->before[tensor];
	}
	changes->count = 0;
	changes->is_closed = false;
}

const struct wf_feature_hooks wf_change_hooks = {
	.name = "changes of the optimizer, because pushes are applied on arrival or in local steps",
	.message = WF_MSG_CHANGE,
	.sleeps = true,
	.bytes = changes_bytes,
	.open = open_changes,
	.close = close_changes,
	.recv = recv_change,
	.path_ends = path_ends,
	.step_said = step_said,
};
