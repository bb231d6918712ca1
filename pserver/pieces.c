/* SPDX-License-Identifier: Apache-2.0 */
/* pieces: arrays that trainers reduce outside of steps (weft_all_reduce). They come in pieces
 * (wire/piece.h) through a ring of slices. The pushes of such a slice are counted by themselves,
 * from 1, whatever step the lane is in, and all trainers take part in each: the slice is done when
 * all have pushed it. They are summed in trainer order, and each is answered with the sum, which
 * the slice keeps until the next one, for those that lose the answer with their path.
 *
 * In front of the data stands a head that is the same from all. If it is not, trainers make
 * different calls, which ends the job. The head is copied when it arrives, because its sender can
 * still write to it. Thread: the lane's. */
#include "pserver/dense.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/type.h"
#include "kernels/typed.h"
#include "wire/piece.h"

/* A slice of the ring. */
struct wf_piece_sum {
	struct wf_piece head;  /* of the sum under way */
	uint32_t first;        /* the trainer whose push of it came first */
	uint64_t answer_bytes; /* of the PUT of the last result; 0: there is none yet */
};

uint64_t
wf_pieces_table_bytes(const struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	return dense->pieces.count > 0 ? dense->store.stored_count * sizeof(*dense->pieces.sum) : 0;
}

enum weft_status
wf_pieces_alloc(struct wf_lane *lane)
{
	struct wf_dense *dense = lane->own;
	if (dense->pieces.count == 0) {
		return WEFT_OK;
	}
	uint32_t slices = dense->store.stored_count;
	dense->pieces.sum = wf_zalloc_array(lane->env, slices, sizeof(*dense->pieces.sum));
	return dense->pieces.sum != NULL ? WEFT_OK
					 : wf_fail(WEFT_NOMEM, "lane %u: no memory for %u pieces",
						   lane->opts.idx, dense->pieces.count);
}

void
wf_pieces_release(struct wf_lane *lane)
{
	struct wf_dense *dense = lane->own;
	wf_free(lane->env, dense->pieces.sum,
		dense->store.stored_count * sizeof(*dense->pieces.sum));
	dense->pieces = (struct wf_pieces){0};
}

uint64_t
wf_pieces_push_bytes(const struct wf_dense *dense, uint32_t ordinal)
{
	return wf_piece_put_bytes(&dense->pieces.sum[ordinal].head);
}

uint64_t
wf_pieces_answer_bytes(const struct wf_dense *dense, uint32_t ordinal)
{
	return dense->pieces.sum[ordinal].answer_bytes;
}

/* Is this the push that the slice waits for from this trainer? */
static enum weft_status
check_turn(const struct wf_lane *lane, const struct wf_peer *peer, uint32_t ordinal, uint32_t tag)
{
	const struct wf_dense *dense = lane->own;
	uint64_t next = wf_push_of(lane, ordinal, peer->trainer)->next;
	if (next != dense->round[ordinal].next || wf_tag_step(tag) != (uint8_t)next) {
		return wf_fail(
			WEFT_PROTOCOL,
			"PUT: piece %u for push %u (modulo 256), waited for is push %" PRIu64,
			ordinal, wf_tag_step(tag), next);
	}
	return wf_slots_check(&peer->slots, wf_slots_of_tag(&peer->slots, tag));
}

static enum weft_status
read_head(const struct wf_stored *stored, const struct wf_put *put, struct wf_piece *out)
{
	uint8_t head[WF_PIECE_HEAD_BYTES];
	if (put->bytes != 0 && put->bytes < sizeof(head)) {
		return wf_fail(WEFT_PROTOCOL, "PUT: %" PRIu64 " bytes of a piece, its head has %zu",
			       put->bytes, sizeof(head));
	}
	if ((uintptr_t)put->data % sizeof(uint64_t) != 0) {
		return wf_fail(WEFT_PROTOCOL,
			       "PUT: a piece does not begin at a multiple of 8 bytes");
	}
	memcpy(head, put->data, sizeof(head));
	uint64_t most = stored->count * sizeof(float) - sizeof(head);
	enum weft_status st = wf_piece_decode(head, most, out);
	if (st == WEFT_OK && !wf_put_is(put, wf_piece_put_bytes(out))) {
		return wf_fail(WEFT_PROTOCOL, "PUT: %" PRIu64 " bytes of a piece with %" PRIu64,
			       put->bytes, out->bytes);
	}
	return st;
}

/* The trainers make different calls, which none of them can recover from. */
static void
fail_for_difference(struct wf_lane *lane, const struct wf_peer *peer, const struct wf_piece *head,
		    const struct wf_piece_sum *sum)
{
	const struct wf_piece *a = head, *b = &sum->head;
	wf_lane_fail(lane, WEFT_MISMATCH, lane->order.sum.step,
		     "trainer %u reduces %" PRIu64 " bytes of %s in its call %" PRIu64
		     " of all_reduce (%" PRIu64 " of them from byte %" PRIu64
		     "), trainer %u %" PRIu64 " bytes of %s in its call %" PRIu64 " (%" PRIu64
		     " from byte %" PRIu64
		     "): all trainers must make the same calls in the same order",
		     peer->trainer, a->array_bytes, wf_type_name((enum weft_type)a->type), a->call,
		     a->bytes, a->before_bytes, sum->first, b->array_bytes,
		     wf_type_name((enum weft_type)b->type), b->call, b->bytes, b->before_bytes);
}

/* Some trainers have sent more pieces to this lane than others: since when. */
static void
note_wait(struct wf_lane *lane)
{
	struct wf_reduction *reduction = &lane->reduction;
	bool missing = false;
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		missing = missing || lane->peers.all[t].reduce.pieces < reduction->pieces;
	}
	reduction->pieces_since_ns = missing ? wf_now_ns(lane->env) : 0;
}

/* The trainers' data in their order. */
static void
sum_pushes(struct wf_lane *lane, uint32_t ordinal)
{
	struct wf_dense *dense = lane->own;
	struct wf_piece_sum *sum = &dense->pieces.sum[ordinal];
	const struct wf_piece *head = &sum->head;
	const struct wf_push *pushes = wf_push_of(lane, ordinal, 0);
	uint8_t *out = (uint8_t *)wf_store_param(&dense->store, &dense->store.stored[ordinal]);
	const void **data = (const void **)dense->gradient;
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		data[t] = (const uint8_t *)pushes[t].data + WF_PIECE_HEAD_BYTES;
	}
	wf_piece_encode(head, out);
	out += WF_PIECE_HEAD_BYTES;
	wf_typed_sum(dense->store.kernels, (enum weft_type)head->type, out, data, lane->peers.count,
		     head->bytes / wf_type_bytes(head->type));
	sum->answer_bytes = wf_piece_put_bytes(head);
	memset(out + head->bytes, 0, sum->answer_bytes - WF_PIECE_HEAD_BYTES - head->bytes);
}

/* Sums the slice if all of it is here, and no answer of the last sum is still read. */
static void
try_sum(struct wf_lane *lane, uint32_t ordinal)
{
	struct wf_dense *dense = lane->own;
	struct wf_round *round = &dense->round[ordinal];
	if (lane->state != WF_LANE_RUNNING || round->arrived != lane->peers.count) {
		return;
	}
	if (round->lent > 0) {
		lane->turn.awaits_done = true;
		return;
	}
	uint64_t entered = wf_turn_enter(&lane->turn);
	sum_pushes(lane, ordinal);
	(void)wf_turn_leave(&lane->turn, WF_LANE_APPLY_TIME_NS, entered);
	round->next++;
	round->arrived = 0;
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		wf_push_consume(lane, &lane->peers.all[t], wf_push_of(lane, ordinal, t));
		wf_answer_push(&lane->peers.all[t], ordinal);
	}
	wf_stats_add(&lane->stats, WF_LANE_SLICE_APPLIED_COUNT, 1);
	note_wait(lane);
}

enum weft_status
wf_pieces_put(struct wf_lane *lane, struct wf_peer *peer, uint32_t ordinal,
	      const struct wf_put *put)
{
	struct wf_dense *dense = lane->own;
	struct wf_round *round = &dense->round[ordinal];
	struct wf_piece_sum *sum = &dense->pieces.sum[ordinal];
	struct wf_piece head;
	enum weft_status st = check_turn(lane, peer, ordinal, put->tag);
	st = st == WEFT_OK ? read_head(&dense->store.stored[ordinal], put, &head) : st;
	if (st != WEFT_OK) {
		return st;
	}
	if (round->arrived > 0 && !wf_piece_equals(&head, &sum->head)) {
		fail_for_difference(lane, peer, &head, sum);
		return WEFT_OK;
	}
	if (round->arrived == 0) {
		sum->head = head;
		sum->first = peer->trainer;
	}
	uint32_t slot = wf_slots_of_tag(&peer->slots, put->tag);
	struct wf_push *push = wf_push_of(lane, ordinal, peer->trainer);
	push->mine = true;
	push->next++;
	push->data = put->data;
	push->slot = slot;
	wf_slots_hold(&peer->slots, slot, ordinal);
	round->arrived++;
	if (++peer->reduce.pieces > lane->reduction.pieces) {
		lane->reduction.pieces = peer->reduce.pieces;
	}
	if (lane->reduction.pieces_since_ns == 0) {
		note_wait(lane);
	}
	if (wf_reduce_fail_if_left(lane)) {
		return WEFT_OK;
	}
	try_sum(lane, ordinal);
	if (wf_slots_are_full(&peer->slots)) {
		wf_path_park(lane, peer);
	}
	return WEFT_OK;
}

void
wf_pieces_done(struct wf_lane *lane, uint32_t ordinal)
{
	try_sum(lane, ordinal);
}
