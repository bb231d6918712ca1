/* SPDX-License-Identifier: Apache-2.0 */
/* service_push: receives pushes and applies steps. A push is complete with its last part; a step is
 * applied when the pushes of all trainers that take part in it are complete. Thread: the lane's. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "pserver/members.h"
#include "sparse/server/service_internal.h"

#define KEEP_ALIGN 64u
#define TEND_ROWS 1024u       /* examined between two polls */
#define TEND_ROWS_LEAST 1024u /* examined after each step, of each table whose rows can expire */

static uint64_t
aligned(uint64_t bytes)
{
	return (bytes + KEEP_ALIGN - 1) & ~(uint64_t)(KEEP_ALIGN - 1);
}

/* Bytes of a part in the keep: keys first, then room for the rest. */
static uint64_t
keep_bytes(const struct wf_served *served, uint32_t row_count)
{
	return aligned((uint64_t)row_count * WF_KEY_BYTES) +
	       aligned((uint64_t)row_count * served->kept_bytes);
}

/* Whether the part's gradients lie outside the window, whether or not its slot is returned. */
static bool
is_kept(const struct wf_push_part *part)
{
	return (const void *)part->grad == (const void *)part->room;
}

uint64_t
wf_push_park(struct wf_lane *lane, struct wf_peer *peer, uint32_t idx)
{
	const struct wf_sparse *sparse = lane->own;
	struct wf_sparse_peer *own = peer->own;
	struct wf_push_part *part = &own->push.part[idx];
	if (peer->conn == NULL && !own->push.complete) {
		return 0;
	}
	uint64_t bytes = (uint64_t)part->row_count * sparse->served[part->table].kept_bytes;
	if (!is_kept(part)) {
		memcpy(part->room, part->grad, bytes);
		part->grad = (const float *)(const void *)part->room;
	}
	wf_stats_raise(&lane->stats, WF_LANE_PARK_PEAK_BYTES, own->push.keep_used);
	return bytes;
}

static void
forget_push(struct wf_sparse *sparse, struct wf_sparse_peer *own)
{
	own->push.begun = false;
	own->push.refused = false;
	own->push.complete = false;
	own->lag.pushes.discarded = false;
	own->push.count = 0;
	own->push.keep_used = 0;
	memset(own->push.rows, 0, sparse->desc_count * sizeof(*own->push.rows));
}

void
wf_push_path_ends(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_sparse_peer *own = peer->own;
	if (!own->push.complete) {
		forget_push(lane->own, own);
	}
}

/* Checks of a PUSH. */

/* Refuses parts that only a faulty trainer sends: the connection ends. */
static enum weft_status
check_parts(const struct wf_sparse *sparse, const struct wf_sparse_push *msg)
{
	for (uint32_t i = 0; i < msg->part_count; i++) {
		const struct wf_sparse_part *part = &msg->part[i];
		if (part->table >= sparse->desc_count) {
			return wf_fail(WEFT_PROTOCOL,
				       "PUSH: part %u is of table %u, but there are %u", i,
				       part->table, sparse->desc_count);
		}
		const struct wf_served *served = &sparse->served[part->table];
		uint64_t bytes = (uint64_t)part->row_count * (served->front_bytes + WF_KEY_BYTES);
		if (bytes > sparse->size.slot_bytes) {
			return wf_fail(WEFT_PROTOCOL,
				       "PUSH: part %u of %u rows x (%u bytes + key) does not fit a "
				       "slot of %" PRIu64 " bytes",
				       i, part->row_count, served->front_bytes,
				       sparse->size.slot_bytes);
		}
	}
	return WEFT_OK;
}

/* WEFT_INVALID: the push exceeds this lane's bounds, from part *part_idx on. */
static enum weft_status
check_bounds(const struct wf_sparse *sparse, struct wf_sparse_peer *own,
	     const struct wf_sparse_push *msg, uint32_t *part_idx)
{
	uint64_t used = own->push.keep_used;
	*part_idx = 0;
	if (own->push.count + msg->part_count > sparse->size.parts_max) {
		return wf_fail(WEFT_INVALID,
			       "step %" PRIu64 " has more than %u parts for this lane; push fewer "
			       "tables in a step, or larger parts",
			       msg->step, sparse->size.parts_max);
	}
	enum weft_status st = WEFT_OK;
	uint32_t i = 0;
	for (; i < msg->part_count && st == WEFT_OK; i++) {
		const struct wf_sparse_part *part = &msg->part[i];
		const struct wf_served *served = &sparse->served[part->table];
		*part_idx = i;
		used += keep_bytes(served, part->row_count);
		own->push.rows[part->table] += part->row_count;
		if (used > sparse->size.held_bytes) {
			st = wf_fail(WEFT_INVALID,
				     "the push of step %" PRIu64 " takes more than the %" PRIu64
				     " bytes that this lane holds for a trainer; make batches "
				     "smaller, or use more sparse lanes",
				     msg->step, sparse->size.held_bytes);
		} else if (own->push.rows[part->table] > served->rows_max) {
			st = wf_fail(WEFT_INVALID,
				     "table %.60s: step %" PRIu64
				     " pushes more than %u rows; make batches smaller, use more "
				     "sparse lanes, or raise --max_shard_bytes or the "
				     "table's memory cap",
				     sparse->desc[part->table].name, msg->step, served->rows_max);
		}
	}
	for (uint32_t j = 0; st != WEFT_OK && j < i; j++) { /* count as not received */
		own->push.rows[msg->part[j].table] -= msg->part[j].row_count;
	}
	return st;
}

static void
expect_parts(struct wf_sparse_peer *own, const struct wf_sparse_push *msg, bool refused)
{
	own->incoming.kind = WF_INCOMING_PUSH;
	own->incoming.refused = refused;
	own->incoming.last = (msg->flags & WF_SPARSE_PUSH_LAST) != 0;
	own->incoming.step = msg->step;
	own->incoming.next = 0;
	own->incoming.count = msg->part_count;
	memcpy(own->incoming.part, msg->part, msg->part_count * sizeof(msg->part[0]));
}

/* Refuses a push as a whole, with one NACK: what has arrived of it is dropped, and the rest is
 * ignored. */
static enum weft_status
refuse_push(struct wf_lane *lane, struct wf_peer *peer, const struct wf_sparse_push *msg,
	    uint32_t part)
{
	struct wf_sparse_peer *own = peer->own;
	if (!own->push.refused && !wf_nack_add(peer, 0, msg->step, part)) {
		return wf_fail(WEFT_PROTOCOL, "PUSH: too many refusals");
	}
	wf_slots_credit_all(&peer->slots, peer->conn);
	forget_push(lane->own, own);
	own->push.refused = (msg->flags & WF_SPARSE_PUSH_LAST) == 0;
	if (msg->part_count > 0) {
		expect_parts(own, msg, true);
	}
	return WEFT_OK;
}

/* The apply. */

static bool
takes_part(const struct wf_lane *lane, const struct wf_peer *only, uint32_t trainer)
{
	const struct wf_sparse *sparse = lane->own;
	return sparse->peer[trainer].push.complete && (only == NULL || only->trainer == trainer);
}

/* Deals the parts to their tables, ordered by trainer, then by part. */
static void
gather_batches(struct wf_lane *lane, const struct wf_peer *only)
{
	struct wf_sparse *sparse = lane->own;
	uint32_t *next = sparse->deal.next;
	memset(next, 0, sparse->desc_count * sizeof(*next));
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		const struct wf_sparse_peer *own = &sparse->peer[t];
		for (uint32_t i = 0; takes_part(lane, only, t) && i < own->push.count; i++) {
			next[own->push.part[i].table]++;
		}
	}
	uint32_t first = 0;
	for (uint32_t i = 0; i < sparse->desc_count; i++) {
		sparse->served[i].batch = &sparse->deal.batch[first];
		first += next[i];
		next[i] = 0;
	}
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		const struct wf_sparse_peer *own = &sparse->peer[t];
		for (uint32_t i = 0; takes_part(lane, only, t) && i < own->push.count; i++) {
			const struct wf_push_part *part = &own->push.part[i];
			const struct wf_table_desc *desc = &sparse->desc[part->table];
			struct wf_served *served = &sparse->served[part->table];
			const float *scores = part->grad + (size_t)part->row_count * desc->set.dim;
			bool has_scores = wf_table_has_scores(desc);
			served->batch[next[part->table]++] = (struct wf_table_batch){
				.key = part->key,
				.grad = part->grad,
				.count = part->row_count,
				.show = has_scores ? scores : NULL,
				.click = has_scores ? scores + part->row_count : NULL,
			};
		}
	}
}

static uint64_t
stat_of(const struct wf_served *served, enum wf_table_stat stat)
{
	return wf_stats_get(wf_table_stats(served->table), stat);
}

/* Ends the job or logs, as `nonfinite` says, and names the first trainer whose gradients of the
 * table are not finite; the sum alone may have overflowed. */
static void
report_nonfinite(struct wf_lane *lane, uint32_t table, uint64_t bad, uint64_t step)
{
	struct wf_sparse *sparse = lane->own;
	const struct wf_kernels *kernels = wf_kernels_best();
	const struct wf_table_desc *desc = &sparse->desc[table];
	uint32_t culprit = UINT32_MAX;
	for (uint32_t t = 0; t < lane->peers.count && culprit == UINT32_MAX; t++) {
		const struct wf_sparse_peer *own = &sparse->peer[t];
		for (uint32_t i = 0; own->push.complete && i < own->push.count; i++) {
			const struct wf_push_part *part = &own->push.part[i];
			size_t count = (size_t)part->row_count * desc->set.dim;
			if (part->table == table &&
			    kernels->count_nonfinite(part->grad, count) > 0) {
				culprit = t;
			}
		}
	}
	char who[64] = "the sum over trainers, or what comes of it,";
	if (culprit != UINT32_MAX) {
		(void)snprintf(who, sizeof(who), "trainer %u", culprit);
	}
	wf_stats_add(&lane->stats, WF_LANE_GRADIENT_SKIPPED_COUNT, bad);
	if (!sparse->tables.skips_nonfinite) {
		wf_lane_fail(lane, WEFT_DATA, step,
			     "%" PRIu64
			     " values of the gradients of table %.60s from %s are NaN or "
			     "infinite in step %" PRIu64
			     "; lower the learning rate, clip, or run with --nonfinite=skip",
			     bad, desc->name, who, step);
		return;
	}
	if (wf_log_limit_pass(&sparse->nonfinite_log, wf_now_ns(lane->env), WF_NS_PER_S)) {
		wf_log(lane->env, WF_LOG_WARN,
		       "lane %u: %" PRIu64 " values of the gradients of table %s from %s are NaN "
		       "or infinite in step %" PRIu64 ": skipped",
		       lane->opts.idx, bad, desc->name, who, step);
	}
}

/* Fails for new rows that found no memory in the lane. A cap that was set for the table is policy,
 * and what is lost at it is only counted. Nobody wished for a lane that is full, and rows lost
 * there would show as nothing but other values. */
static enum weft_status
check_unborn(const struct wf_lane *lane, uint32_t idx, uint64_t rows, bool by_lane)
{
	const struct wf_sparse *sparse = lane->own;
	const struct wf_table_desc *desc = &sparse->desc[idx];
	if (rows == 0 || (desc->set.memory_cap_bytes > 0 && !by_lane)) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_NOMEM,
		       "table %.60s: %" PRIu64
		       " new rows found no memory: --max_shard_bytes leaves %" PRIu64
		       " bytes for tables; raise it, use more sparse lanes, or evict at a memory "
		       "cap",
		       desc->name, rows, sparse->ceiling.limit_bytes);
}

/* Applies the step to one table, even if nothing was pushed to it: rows that move by themselves,
 * and ages, count the table's steps, which may not depend on which keys belong to this lane. */
static enum weft_status
apply_table(struct wf_lane *lane, uint32_t idx, struct wf_sparse_applied *out)
{
	const struct wf_sparse *sparse = lane->own;
	const struct wf_served *served = &sparse->served[idx];
	const struct wf_step_sum *sum = &lane->order.sum;
	bool mean = sparse->tables.grad_reduce == WEFT_REDUCE_MEAN;
	/* Rates follow from all samples, a mean from those that are in the sum. */
	uint64_t summed = out->samples - (sum->heard > 0 ? sum->gone_samples : 0);
	const struct wf_table_push push = {
		.step = sparse->version,
		.rate = wf_row_rate(&served->row, sum->samples_before, out->samples),
		.divisor = mean ? (float)summed : 1.0f,
		.batch = served->batch,
		.batch_count = sparse->deal.next[idx],
	};
	uint64_t updated = stat_of(served, WF_TABLE_ROWS_UPDATED);
	uint64_t lost = stat_of(served, WF_TABLE_PUSHES_LOST);
	uint64_t nonfinite = stat_of(served, WF_TABLE_GRADS_NONFINITE);
	uint64_t unborn = stat_of(served, WF_TABLE_ROWS_REFUSED);
	uint64_t refused = sparse->ceiling.refused_count;
	enum weft_status st = wf_table_push(served->table, &push);
	if (st != WEFT_OK) {
		return wf_sparse_fail_table(sparse, idx, refused);
	}
	out->rows_updated += stat_of(served, WF_TABLE_ROWS_UPDATED) - updated;
	out->pushes_lost += stat_of(served, WF_TABLE_PUSHES_LOST) - lost;
	nonfinite = stat_of(served, WF_TABLE_GRADS_NONFINITE) - nonfinite;
	out->grads_nonfinite += nonfinite;
	if (nonfinite > 0) {
		report_nonfinite(lane, idx, nonfinite, out->step);
	}
	unborn = stat_of(served, WF_TABLE_ROWS_REFUSED) - unborn;
	return check_unborn(lane, idx, unborn, sparse->ceiling.refused_count > refused);
}

/* The push is applied: frees its slots, and makes APPLIED due. */
static void
consume_push(struct wf_lane *lane, struct wf_peer *peer, const struct wf_sparse_applied *applied)
{
	struct wf_sparse_peer *own = peer->own;
	wf_slots_free_all(&peer->slots, peer->conn); /* APPLIED returns it */
	forget_push(lane->own, own);
	own->applied = *applied;
	own->applied_due =
		wf_path_has_unit(peer, 0); /* otherwise HAVE will report whether it lacks this */
	wf_peer_due(peer);
}

static void
plan_tending(struct wf_lane *lane, uint64_t rows_updated)
{
	struct wf_sparse *sparse = lane->own;
	uint32_t tables = 0;
	for (uint32_t i = 0; i < sparse->desc_count; i++) {
		tables += sparse->served[i].tends && sparse->served[i].table != NULL ? 1 : 0;
	}
	/* Twice as many as were touched, to visit all rows before their number doubles. */
	sparse->tend.rows = tables > 0 ? tables * TEND_ROWS_LEAST + 2 * rows_updated : 0;
	lane->turn.works = lane->turn.works || sparse->tend.rows > 0; /* a scan may want it, too */
}

/* Applies the complete push of `peer`, or of all trainers if it is NULL, as step `number` of the
 * tables. False: the job has failed. */
static bool
apply_pushes(struct wf_lane *lane, const struct wf_peer *peer, uint64_t number,
	     struct wf_sparse_applied *applied)
{
	struct wf_sparse *sparse = lane->own;
	sparse->version = number;
	gather_batches(lane, peer);
	for (uint32_t i = 0; i < sparse->desc_count; i++) {
		if (sparse->served[i].table == NULL) {
			continue;
		}
		enum weft_status st = apply_table(lane, i, applied);
		if (st != WEFT_OK) {
			wf_lane_fail(lane, st, applied->step, "step %" PRIu64 ": %.220s",
				     applied->step, weft_last_error());
			return false;
		}
	}
	wf_stats_add(&lane->stats, WF_LANE_ROW_UPDATED_COUNT, applied->rows_updated);
	plan_tending(lane, applied->rows_updated);
	return lane->state == WF_LANE_RUNNING;
}

static void
apply_step(struct wf_lane *lane)
{
	const struct wf_step_sum *sum = &lane->order.sum;
	uint64_t step = sum->step;
	struct wf_sparse_applied applied = {.step = step,
					    .samples = sum->samples + sum->gone_samples};
	uint64_t entered = wf_turn_enter(&lane->turn);
	bool runs = apply_pushes(lane, NULL, step, &applied);
	uint64_t applied_ns = wf_turn_leave(&lane->turn, WF_LANE_APPLY_TIME_NS, entered);
	if (!runs) {
		return;
	}
	wf_sparse_note(lane, WF_TRACE_APPLIED, WF_TRACE_ALL, step, applied.rows_updated);
	wf_pull_ahead_note_step(lane, step);
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		struct wf_peer *peer = &lane->peers.all[t];
		const struct wf_sparse_peer *own = peer->own;
		if (own->push.complete) {
			consume_push(lane, peer, &applied);
		}
	}
	wf_step_is_done(lane, applied_ns);
	wf_sparse_note(lane, WF_TRACE_STEP_DONE, WF_TRACE_ALL, step, 0);
	if (lane->opts.snapshots != NULL) {
		wf_sparse_snapshot_applied(lane, step);
	}
	wf_pull_step_is_applied(lane, step);
}

/* Whether nothing has to be copied before the step changes it. */
static bool
may_apply(struct wf_lane *lane)
{
	if (lane->opts.snapshots == NULL) {
		return true;
	}
	gather_batches(lane, NULL);
	return wf_sparse_snapshot_may_apply(lane, lane->order.sum.step);
}

/* Whether the lane may go on to the next step at all. */
static bool
may_go_on(struct wf_lane *lane)
{
	const struct wf_sparse *sparse = lane->own;
	return lane->state == WF_LANE_RUNNING && sparse->due_pulls == 0 &&
	       (lane->opts.members == NULL || !wf_members_hold(lane)) && may_apply(lane);
}

/* A step that is skipped is applied, too, without gradients, and with the samples that other lanes
 * have counted: the tables of all lanes count the same steps, and have the same rates in them. */
void
wf_push_try_apply(struct wf_lane *lane)
{
	const struct wf_sparse *sparse = lane->own;
	const struct wf_step_sum *sum = &lane->order.sum;
	if (sparse->skips != 0 && sum->step == sparse->skips && sum->heard == 0 &&
	    may_go_on(lane)) {
		apply_step(lane);
	}
	uint32_t members = wf_order_taking_part(&lane->order);
	if (sum->heard > 0 && sum->heard == members && may_go_on(lane)) {
		apply_step(lane);
	}
}

void
wf_push_stands(const struct wf_lane *lane, const struct wf_peer *peer, uint64_t *applied,
	       uint64_t *received)
{
	*applied = lane->order.sum.step - 1;
	*received = peer->member.step_next - 1;
}

void
wf_push_drop(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_sparse *sparse = lane->own;
	const struct wf_peer_leaving *leaving = &peer->leaving;
	forget_push(lane->own, peer->own);
	if (wf_sparse_is_async(sparse)) {
		return; /* answers that waited for it are looked at again */
	}
	sparse->skips = leaving->alone ? leaving->border : sparse->skips;
	wf_push_try_apply(lane);
}

void
wf_push_enter(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_sparse_peer *own = peer->own;
	forget_push(lane->own, own);
	own->applied_due = false;
	own->applied = (struct wf_sparse_applied){0};
	own->lag.verdict = 0;
	memset(own->lag.view, 0, sizeof(own->lag.view));
}

/* Asynchronous modes: a push is applied when it is complete, and tables count pushes instead of
 * steps. */

/* Counts a push that is not applied. Returns its (key, gradient) pairs. */
static uint64_t
discard(struct wf_lane *lane, const struct wf_sparse_peer *own)
{
	uint64_t pairs = 0;
	for (uint32_t i = 0; i < own->push.count; i++) {
		pairs += own->push.part[i].row_count;
	}
	wf_stats_add(&lane->stats, WF_LANE_PUSH_DISCARDED_COUNT, 1);
	return pairs;
}

/* Looks again at trainers whose APPLIED is held back: they may no longer be too far ahead. */
static void
wake_others(struct wf_lane *lane)
{
	const struct wf_sparse *sparse = lane->own;
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		if (sparse->peer[t].applied_due) {
			wf_peer_due(&lane->peers.all[t]);
		}
	}
}

static void
finish_as_it_comes(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_sparse *sparse = lane->own;
	struct wf_sparse_peer *own = peer->own;
	const struct wf_step_said *said = &own->push.said;
	if (said->out) {
		wf_view_forget_end(own, peer->member.step_next - 1);
		wake_others(lane);
		return;
	}
	struct wf_sparse_applied applied = {
		.step = said->step, .samples = said->samples, .dropped = own->lag.pushes.discarded};
	/* A dropped push is a step without gradients, so that all lanes count the same steps. */
	own->push.complete = !own->lag.pushes.discarded;
	uint64_t entered = wf_turn_enter(&lane->turn);
	bool runs = apply_pushes(lane, peer, sparse->version + 1, &applied);
	(void)wf_turn_leave(&lane->turn, WF_LANE_APPLY_TIME_NS, entered);
	if (!runs) {
		return;
	}
	if (own->lag.pushes.discarded) {
		applied.pushes_lost += discard(lane, own);
	} else {
		own->lag.pushes.own++;
		sparse->async.pushes++;
		wf_stats_add(&lane->stats, WF_LANE_STEP_APPLIED_COUNT, 1);
	}
	lane->order.sum.samples_before += said->samples;
	wf_view_note_end(sparse, own, said->step);
	wf_sparse_note(lane, WF_TRACE_APPLIED, peer->trainer, said->step, applied.rows_updated);
	consume_push(lane, peer, &applied);
	wake_others(lane);
}

/* Receiving a push. */

static uint64_t
rows_of(const struct wf_sparse *sparse, const struct wf_sparse_peer *own)
{
	uint64_t rows = 0;
	for (uint32_t i = 0; i < sparse->desc_count; i++) {
		rows += own->push.rows[i];
	}
	return rows;
}

static void
note_push(const struct wf_lane *lane, const struct wf_peer *peer)
{
	const struct wf_sparse_peer *own = peer->own;
	if (lane->trace.ring != NULL && !own->push.said.out) {
		wf_sparse_note(lane, WF_TRACE_ARRIVED, peer->trainer, own->push.said.step,
			       rows_of(lane->own, own));
	}
}

/* The last part of the last message has arrived. */
static enum weft_status
finish_push(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_sparse_peer *own = peer->own;
	enum wf_step_news news;
	enum weft_status st = wf_step_record(lane, peer, &own->push.said, &news);
	if (st != WEFT_OK) {
		return st;
	}
	own->push.begun = false;
	note_push(lane, peer);
	if (wf_sparse_is_async(lane->own)) {
		finish_as_it_comes(lane, peer);
		return WEFT_OK;
	}
	own->push.complete = !own->push.said.out;
	wf_push_try_apply(lane);
	if (own->push.complete) {
		wf_stats_add(&lane->stats, WF_LANE_WAIT_TRAINER_COUNT, 1);
	}
	return WEFT_OK;
}

/* Checks that all messages of one push are equal except for their parts. */
static enum weft_status
check_same(const struct wf_sparse_peer *own, const struct wf_step_said *said)
{
	const struct wf_step_said *first = &own->push.said;
	bool goes_on = own->push.begun || own->push.refused;
	if (goes_on && (said->step != first->step || said->samples != first->samples ||
			said->pass != first->pass)) {
		return wf_fail(WEFT_PROTOCOL,
			       "PUSH %" PRIu64 " of pass %u with %" PRIu64
			       " samples, while PUSH %" PRIu64 " of pass %u with %" PRIu64
			       " samples is not complete",
			       said->step, said->pass, said->samples, first->step, first->pass,
			       first->samples);
	}
	return WEFT_OK;
}

/* Checks that only asynchronous modes have a verdict on the lag, the same in all messages. */
static enum weft_status
check_verdict(const struct wf_sparse *sparse, const struct wf_sparse_peer *own,
	      const struct wf_sparse_push *msg)
{
	uint32_t verdict = wf_sparse_push_verdict(msg);
	if (verdict != 0 && !wf_sparse_is_async(sparse)) {
		return wf_fail(WEFT_PROTOCOL,
			       "PUSH %" PRIu64 ": flags %u carry a verdict, in a synchronous job",
			       msg->step, msg->flags);
	}
	if (own->push.begun && verdict != own->lag.verdict) {
		return wf_fail(WEFT_PROTOCOL,
			       "PUSH %" PRIu64 ": flags %u carry another verdict than before",
			       msg->step, msg->flags);
	}
	return WEFT_OK;
}

enum weft_status
wf_push_begin(struct wf_lane *lane, struct wf_peer *peer, const struct wf_sparse_push *msg)
{
	struct wf_sparse *sparse = lane->own;
	struct wf_sparse_peer *own = peer->own;
	const struct wf_step_said said = {
		.message = "PUSH",
		.step = msg->step,
		.epoch = msg->epoch,
		.samples = msg->samples,
		.pass = msg->pass,
		.out = (msg->flags & WF_SPARSE_PUSH_OUT_OF_DATA) != 0,
	};
	enum wf_step_news news;
	enum weft_status st = wf_order_check(&lane->order, &peer->member, &said, &news);
	if (st == WEFT_OK) {
		st = check_same(own, &said);
	}
	if (st == WEFT_OK) {
		st = check_verdict(sparse, own, msg);
	}
	if (st == WEFT_OK) {
		st = check_parts(sparse, msg);
	}
	if (st != WEFT_OK) {
		return st;
	}
	if (news == WF_STEP_AGAIN && !said.out) {
		return wf_fail(WEFT_PROTOCOL, "PUSH %" PRIu64 " was received before", msg->step);
	}
	if (news == WF_STEP_AGAIN) {
		return WEFT_OK; /* repeated after a reconnect */
	}
	uint32_t part = 0;
	own->push.said = said;
	if (own->push.refused || check_bounds(sparse, own, msg, &part) != WEFT_OK) {
		return refuse_push(lane, peer, msg, part);
	}
	if (!own->push.begun && wf_sparse_is_async(sparse)) {
		own->lag.verdict = wf_sparse_push_verdict(msg);
		wf_view_judge(sparse, own, msg->step);
	}
	own->push.begun = true;
	if (msg->part_count == 0) {
		return finish_push(lane, peer);
	}
	expect_parts(own, msg, false);
	return WEFT_OK;
}

/* Copies the keys out of the slot, where the sender could still change them, then checks them. */
static enum weft_status
copy_keys(const struct wf_sparse *sparse, const struct wf_sparse_part *part, const uint8_t *data,
	  uint64_t *key)
{
	const struct wf_served *served = &sparse->served[part->table];
	const struct wf_keys_in in = {
		.coding = (enum wf_key_coding)part->coding,
		.at = data + (size_t)part->row_count * served->front_bytes,
		.bytes = part->key_bytes,
		.count = part->row_count,
	};
	enum weft_status st = wf_keys_decode(&in, key);
	if (st != WEFT_OK) {
		return st;
	}
	st = wf_sparse_check_keys(sparse, part, key);
	if (st != WEFT_OK) {
		struct wf_error why = *wf_error_record();
		return wf_fail(WEFT_PROTOCOL, "PUSH: %.200s", why.text);
	}
	return WEFT_OK;
}

/* Widens gradients that arrive in 16 bits into their room at once: they are summed as f32. */
static void
keep_wide(const struct wf_sparse *sparse, struct wf_push_part *part)
{
	const struct wf_table_desc *desc = &sparse->desc[part->table];
	const struct wf_served *served = &sparse->served[part->table];
	size_t count = (size_t)part->row_count * desc->set.dim;
	if (served->half == NULL) {
		return;
	}
	const uint8_t *from = (const uint8_t *)part->grad;
	served->half->widen((float *)(void *)part->room, (const uint16_t *)(const void *)from,
			    count);
	memcpy(part->room + count * sizeof(float), from + count * sizeof(uint16_t),
	       part->row_count * wf_table_score_bytes(desc));
	part->grad = (const float *)(const void *)part->room;
}

enum weft_status
wf_push_part(struct wf_lane *lane, struct wf_peer *peer, uint32_t slot, const void *data)
{
	const struct wf_sparse *sparse = lane->own;
	struct wf_sparse_peer *own = peer->own;
	struct wf_incoming *incoming = &own->incoming;
	const struct wf_sparse_part *part = &incoming->part[incoming->next];
	if ((uintptr_t)data % sizeof(float) != 0) {
		return wf_fail(WEFT_PROTOCOL,
			       "PUT: part %u does not begin at a multiple of 4 bytes",
			       incoming->next);
	}
	uint64_t *key = (uint64_t *)(void *)(own->push.keep + own->push.keep_used);
	enum weft_status st = copy_keys(sparse, part, data, key);
	if (st != WEFT_OK) {
		return st;
	}
	own->push.part[own->push.count] = (struct wf_push_part){
		.table = part->table,
		.row_count = part->row_count,
		.grad = data,
		.key = key,
		.room = (uint8_t *)key + aligned((uint64_t)part->row_count * WF_KEY_BYTES),
	};
	keep_wide(sparse, &own->push.part[own->push.count]);
	own->push.keep_used += keep_bytes(&sparse->served[part->table], part->row_count);
	WF_ASSERT(own->push.keep_used <= sparse->size.held_bytes);
	wf_slots_hold(&peer->slots, slot, own->push.count++);
	wf_stats_add(&lane->stats, WF_LANE_KEY_PUSHED_COUNT, part->row_count);
	if (++incoming->next == incoming->count) {
		incoming->kind = WF_INCOMING_NONE;
		st = incoming->last ? finish_push(lane, peer) : WEFT_OK;
		wf_pull_ahead_go_on(lane, peer);
	}
	if (st == WEFT_OK && wf_slots_are_full(&peer->slots)) {
		wf_path_park(lane, peer);
	}
	return st;
}

bool
wf_push_tend(struct wf_lane *lane)
{
	struct wf_sparse *sparse = lane->own;
	for (uint32_t i = 0; sparse->tend.rows > 0 && i < sparse->desc_count; i++) {
		uint32_t idx = sparse->tend.table;
		sparse->tend.table = idx + 1 < sparse->desc_count ? idx + 1 : 0;
		const struct wf_served *served = &sparse->served[idx];
		if (served->tends && served->table != NULL) {
			wf_table_tend(served->table, TEND_ROWS);
			sparse->tend.rows -=
				sparse->tend.rows < TEND_ROWS ? sparse->tend.rows : TEND_ROWS;
			break;
		}
	}
	return sparse->tend.rows > 0;
}
