/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce: sums of arrays that need not be declared. An array is cut into pieces, which go round
 * a ring of tensors of one slice each: piece n of all calls is copied into the gradient array of
 * tensor n % count behind a head (wire/piece.h), pushed, and its sum copied back out of the
 * parameter array when the lane has answered. So as many pieces are under way as the ring has.
 * Thread: the owner's. */
#include "trainer/session/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/type.h"
#include "kernels/typed.h"
#include "trainer/session/gate.h"
#include "wire/piece.h"

#define PIECES_MIN 2u /* one is under way while the other is copied */
#define NAME "all_reduce["

/* One call. */
struct call {
	struct weft_session *session;
	uint8_t *array;
	struct wf_piece head; /* of the whole array: bytes and before_bytes are each piece's own */
	uint64_t sent_bytes, summed_bytes;
	uint64_t first; /* number of its first piece */
	double divisor; /* 0: none */
};

static uint32_t
piece_count(const struct weft_session *session)
{
	uint64_t ring = session->core.values.all_reduce_ring;
	uint64_t slice = session->core.job.set.slice_bytes;
	uint64_t count = (ring + slice - 1) / slice;
	return ring > 0 && count < PIECES_MIN ? PIECES_MIN : (uint32_t)count;
}

enum weft_status
wf_pieces_declare(struct weft_session *session)
{
	struct wf_job *job = &session->core.job;
	uint32_t wanted = piece_count(session);
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < wanted && st == WEFT_OK; i++) {
		st = job->tensor_count < WF_TENSOR_COUNT_MAX
			     ? wf_tensors_grow(session)
			     : wf_fail(WEFT_INVALID,
				       "all_reduce_ring: %u pieces, more than %u tensors; lower it "
				       "or raise slice_bytes",
				       wanted, WF_TENSOR_COUNT_MAX);
		if (st != WEFT_OK) {
			break;
		}
		struct wf_job_tensor *piece = &job->tensor[job->tensor_count];
		*piece = (struct wf_job_tensor){
			.count = job->set.slice_bytes / sizeof(float),
			.rate_multiplier = 1,
			.is_static = true,
			.is_piece = true,
		};
		(void)snprintf(piece->name, sizeof(piece->name), NAME "%u]", i);
		job->tensor_count++;
		session->pieces.count++;
	}
	session->pieces.data_bytes = job->set.slice_bytes - WF_PIECE_HEAD_BYTES;
	if (st != WEFT_OK) {
		wf_pieces_undeclare(session);
	}
	return st;
}

void
wf_pieces_undeclare(struct weft_session *session)
{
	session->core.job.tensor_count -= session->pieces.count;
	session->pieces.count = 0;
}

/* Which tensor of the job the piece with this number goes through. */
static uint32_t
tensor_of(const struct weft_session *session, uint64_t number)
{
	return wf_session_tensor_count(session) + (uint32_t)(number % session->pieces.count);
}

static uint8_t *
array_of(const struct wf_slab *slab, const struct wf_core *core, uint32_t tensor)
{
	return (uint8_t *)slab->base + core->memory.offset[tensor];
}

/* The piece that begins `before` bytes behind the beginning of the array. */
static struct wf_piece
piece_at(const struct call *call, uint64_t before)
{
	struct wf_piece piece = call->head;
	uint64_t left = piece.array_bytes - before;
	uint64_t most = call->session->pieces.data_bytes;
	piece.before_bytes = before;
	piece.bytes = left < most ? left : most;
	return piece;
}

static void
push_next(struct call *call)
{
	struct weft_session *session = call->session;
	struct wf_core *core = &session->core;
	const struct wf_piece piece = piece_at(call, call->sent_bytes);
	uint64_t number = session->pieces.pushed++;
	uint32_t tensor = tensor_of(session, number);
	uint8_t *out = array_of(&core->memory.grad, core, tensor);
	wf_piece_encode(&piece, out);
	memcpy(out + WF_PIECE_HEAD_BYTES, call->array + piece.before_bytes, piece.bytes);
	memset(out + WF_PIECE_HEAD_BYTES + piece.bytes, 0,
	       wf_piece_put_bytes(&piece) - WF_PIECE_HEAD_BYTES - piece.bytes);
	call->sent_bytes += piece.bytes;
	atomic_store_explicit(&core->flow.tensor[tensor].busy, 1, memory_order_relaxed);
	wf_progress_command(session,
			    &(struct wf_command){.kind = WF_COMMAND_PIECE,
						 .tensor = tensor,
						 .section = (unsigned)wf_piece_put_bytes(&piece),
						 .a = number / session->pieces.count + 1});
	wf_progress_send(session, piece.bytes);
}

/* Waits for the first piece that is not summed yet, and copies its sum. */
static enum weft_status
recv_next(struct call *call, uint64_t number)
{
	struct weft_session *session = call->session;
	struct wf_core *core = &session->core;
	const struct wf_piece piece = piece_at(call, call->summed_bytes);
	uint32_t tensor = tensor_of(session, number);
	enum weft_status st = wf_progress_wait_clear(session, &core->flow.tensor[tensor].busy);
	if (st != WEFT_OK) {
		return st;
	}
	const uint8_t *from = array_of(&core->memory.section[0], core, tensor);
	const uint8_t *sent = array_of(&core->memory.grad, core, tensor);
	if (memcmp(from, sent, WF_PIECE_HEAD_BYTES) != 0) {
		wf_session_fail(session, WEFT_PROTOCOL,
				"all_reduce: a pserver has answered piece %" PRIu64
				" with another one",
				number);
		return wf_session_failure(session);
	}
	enum weft_type type = (enum weft_type)piece.type;
	uint8_t *to = call->array + piece.before_bytes;
	memcpy(to, from + WF_PIECE_HEAD_BYTES, piece.bytes);
	if (call->divisor > 0) {
		wf_typed_divide(wf_kernels_best(), type, to, call->divisor,
				piece.bytes / wf_type_bytes(piece.type));
	}
	call->summed_bytes += piece.bytes;
	return WEFT_OK;
}

static enum weft_status
check_call(const struct weft_session *session, uint64_t count, enum weft_type type,
	   enum weft_grad_reduce how)
{
	enum weft_status st = wf_exchange_check_running(session);
	if (st != WEFT_OK) {
		return st;
	}
	if (session->pieces.count == 0) {
		return wf_fail(WEFT_INVALID,
			       "all_reduce: the session has no ring of pieces; set "
			       "all_reduce_ring, for example to 4MiB, on all trainers");
	}
	if (session->within != NULL) {
		return wf_fail(WEFT_INVALID, "all_reduce: %s has not come to its end",
			       session->within);
	}
	if (wf_type_bytes((uint32_t)type) == 0) {
		return wf_fail(WEFT_INVALID, "all_reduce: type %u: 0 to %u are known",
			       (unsigned)type, WF_TYPE_COUNT - 1);
	}
	if (count > WF_TENSOR_ELEMENTS_MAX) {
		return wf_fail(WEFT_INVALID, "all_reduce: %" PRIu64 " elements, %llu at most",
			       count, WF_TENSOR_ELEMENTS_MAX);
	}
	if ((how != WEFT_REDUCE_SUM && how != WEFT_REDUCE_MEAN) ||
	    (how == WEFT_REDUCE_MEAN && wf_type_is_integer(type))) {
		return wf_fail(WEFT_INVALID,
			       "all_reduce: integers have a sum only; reduce %s with "
			       "WEFT_REDUCE_SUM, and divide",
			       wf_type_name(type));
	}
	return WEFT_OK;
}

/* All pieces of the array. */
static enum weft_status
run(struct call *call)
{
	struct weft_session *session = call->session;
	enum weft_status st = WEFT_OK;
	uint64_t number = call->first;
	while (call->summed_bytes < call->head.array_bytes && st == WEFT_OK) {
		while (call->sent_bytes < call->head.array_bytes &&
		       session->pieces.pushed - number < session->pieces.count) {
			push_next(call);
		}
		st = recv_next(call, number++);
	}
	return st;
}

enum weft_status
weft_all_reduce(struct weft_session *session, void *array, uint64_t count, enum weft_type type,
		enum weft_grad_reduce how)
{
	WF_ENTER(session);
	enum weft_status st = check_call(session, count, type, how);
	if (st != WEFT_OK) {
		return st;
	}
	struct call call = {
		.session = session,
		.array = array,
		.head = {.type = (uint32_t)type,
			 .call = ++session->pieces.call,
			 .array_bytes = count * wf_type_bytes((uint32_t)type)},
		.first = session->pieces.pushed,
		.divisor = how == WEFT_REDUCE_MEAN
				   ? (double)session->core.job.set.num_gradient_servers
				   : 0,
	};
	session->within = __func__;
	st = run(&call);
	session->within = st == WEFT_OK ? NULL : session->within;
	return st;
}
