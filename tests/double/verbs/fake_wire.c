/* SPDX-License-Identifier: Apache-2.0 */
/* fake_wire: what a work request does. Each queue pair carries out its own in order, at once or
 * when its time has come; where it arrives, keys and bounds are checked, and a receive buffer must
 * be there. How it gets to the other end is fake_peer.c's. Thread: one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake_internal.h"

#define RNR_NS 640000u /* as timer 12 says */
#define WORK_NS 1000u  /* of a work request, beside its bytes */
#define BYTES_PER_NS 10u
#define RNR_FOR_EVER 7u
#define LAST_NS (20 * WF_NS_PER_US) /* until the device says that a queue pair takes no more */

/* What became of the first work request. */
struct verdict {
	enum ibv_wc_status status;
	uint64_t wait_ns; /* it is tried again then; 0: it is over */
};

static const struct verdict over = {.status = IBV_WC_SUCCESS};

static struct verdict
failed(enum ibv_wc_status status)
{
	return (struct verdict){.status = status};
}

/* ---- arriving ---- */

void
fake_place(struct fake_qp *qp)
{
	while (qp->late != NULL) { /* the last that came is the first */
		struct fake_late *late = qp->late;
		qp->late = late->next;
		memcpy(late->to, late->data, late->bytes);
		free(late);
	}
}

void
fake_place_all(void)
{
	for (unsigned i = 0; i < FAKE_QPS_MAX; i++) {
		if (fake_qp_of[i] != NULL) {
			fake_place(fake_qp_of[i]);
		}
	}
}

static void
write_to(struct fake_qp *qp, uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	if (!fake_now_is()->any_order && !fake_chance(fake_knobs_now()->late_per_mille, 1000)) {
		memcpy(to, from, bytes);
		return;
	}
	struct fake_late *late = malloc(sizeof(*late) + bytes);
	WF_ASSERT(late != NULL);
	*late = (struct fake_late){.next = qp->late, .to = to, .bytes = bytes};
	memcpy(late->data, from, bytes);
	qp->late = late;
	fake_happened.late++;
}

static struct fake_receive
take_receive(struct fake_receives *r)
{
	struct fake_receive first = r->at[r->head];
	WF_ASSERT(r->count > 0);
	r->head = (r->head + 1) % r->depth;
	r->count--;
	return first;
}

static void
deliver(struct fake_qp *to, const struct fake_packet *packet)
{
	struct fake_receives *r = fake_receives_of(to);
	struct fake_receive receive = take_receive(r);
	struct fake_entry entry = {.source = r,
				   .wc = {.wr_id = receive.wr_id,
					  .qp_num = to->qp.qp_num,
					  .byte_len = packet->bytes,
					  .opcode = IBV_WC_RECV}};
	if (packet->opcode == IBV_WR_SEND) {
		WF_ASSERT(packet->bytes <= receive.bytes);
		if (packet->bytes > 0) {
			memcpy(receive.data, packet->data, packet->bytes);
		}
	} else {
		entry.wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
		entry.wc.wc_flags = IBV_WC_WITH_IMM;
		entry.wc.imm_data = packet->imm_data;
	}
	fake_complete(to->qp.recv_cq, &entry);
}

static bool
takes_buffer(enum ibv_wr_opcode opcode)
{
	return opcode != IBV_WR_RDMA_WRITE;
}

enum fake_answer
fake_arrive(struct fake_qp *to, const struct fake_packet *packet)
{
	if (takes_buffer(packet->opcode) && fake_receives_of(to)->count == 0) {
		fake_seen.dry++;
		if (fake_now_is()->iwarp) {
			fake_qp_error(to);
		}
		return FAKE_DRY;
	}
	if (packet->opcode != IBV_WR_SEND && packet->bytes > 0) {
		uint8_t *at = fake_find(packet->rkey, packet->remote_addr, packet->bytes, &to->qp);
		if (at == NULL || packet->data == NULL) {
			fake_qp_error(to);
			return FAKE_REFUSED;
		}
		write_to(to, at, packet->data, packet->bytes);
	}
	if (takes_buffer(packet->opcode)) {
		deliver(to, packet);
	}
	return FAKE_TAKEN;
}

/* ---- the end of a queue pair ---- */

static void
complete_work(struct fake_qp *qp, enum ibv_wc_status status)
{
	const struct fake_work *work = &qp->work[qp->head];
	uint64_t position = qp->posted - qp->count + 1;
	if (status != IBV_WC_SUCCESS || (work->wr.send_flags & IBV_SEND_SIGNALED) != 0) {
		fake_complete(qp->qp.send_cq, &(struct fake_entry){.wc = {.wr_id = work->wr.wr_id,
									  .status = status,
									  .qp_num = qp->qp.qp_num},
								   .position = position});
	}
	qp->head = (qp->head + 1) % qp->depth;
	qp->count--;
}

static void
flush(struct fake_qp *qp)
{
	while (qp->count > 0) {
		complete_work(qp, IBV_WC_WR_FLUSH_ERR);
	}
	while (qp->own.count > 0) {
		struct fake_receive first = take_receive(&qp->own);
		fake_complete(qp->qp.recv_cq,
			      &(struct fake_entry){.source = &qp->own,
						   .wc = {.wr_id = first.wr_id,
							  .status = IBV_WC_WR_FLUSH_ERR,
							  .qp_num = qp->qp.qp_num}});
	}
}

/* It takes no more receive buffers of a shared queue, and has told of those that it took. */
static void
say_last(const struct fake_qp *qp)
{
	uint64_t at_ns = fake_now_ns();
	if (qp->qp.srq == NULL || !fake_now_is()->says_last || fake_device.silent_last) {
		return;
	}
	if (fake_takes_time()) {
		at_ns = (qp->last_ns > at_ns ? qp->last_ns : at_ns) + LAST_NS;
	}
	fake_tell(qp->qp.context,
		  &(struct ibv_async_event){.element.qp = (struct ibv_qp *)(uintptr_t)&qp->qp,
					    .event_type = IBV_EVENT_QP_LAST_WQE_REACHED},
		  at_ns);
}

void
fake_qp_error(struct fake_qp *qp)
{
	bool was_linked = qp->state == IBV_QPS_RTR || qp->state == IBV_QPS_RTS;
	if (qp->state == IBV_QPS_ERR) {
		return;
	}
	qp->state = IBV_QPS_ERR;
	qp->asks = false;
	flush(qp);
	if (was_linked) {
		say_last(qp);
	}
	if (fake_now_is()->iwarp && was_linked) {
		fake_part(qp); /* the stream between them has ended */
	}
}

/* ---- work requests ---- */

/* Nobody acknowledges: so many tries of so long each. */
static struct verdict
ask_in_vain(struct fake_qp *qp)
{
	uint64_t now_ns = fake_now_ns();
	uint64_t down_ns = fake_down_until_ns(qp->qp.context);
	if (fake_now_is()->iwarp || !fake_takes_time()) {
		return failed(fake_now_is()->iwarp ? IBV_WC_WR_FLUSH_ERR : IBV_WC_RETRY_EXC_ERR);
	}
	if (qp->silent_ns == 0) {
		qp->silent_ns = now_ns + (4096ull << qp->timeout) * (qp->retry_count + 1u);
	}
	if (now_ns >= qp->silent_ns) {
		return failed(IBV_WC_RETRY_EXC_ERR);
	}
	uint64_t again_ns = now_ns + (4096ull << qp->timeout);
	again_ns = down_ns > now_ns && down_ns < again_ns ? down_ns : again_ns;
	return (struct verdict){.wait_ns = again_ns < qp->silent_ns ? again_ns : qp->silent_ns};
}

/* No buffer there. */
static struct verdict
knock_again(struct fake_qp *qp)
{
	if (fake_now_is()->iwarp) {
		return failed(IBV_WC_WR_FLUSH_ERR);
	}
	if (qp->rnr_retry != RNR_FOR_EVER && qp->rnr_left-- == 0) {
		return failed(IBV_WC_RNR_RETRY_EXC_ERR);
	}
	return (struct verdict){.wait_ns = fake_now_ns() + RNR_NS};
}

/* What the device reads. NULL: nothing. irdma takes the first piece of a WRITE whatever their
 * number is. */
static const uint8_t *
source_of(const struct fake_work *work, uint32_t *bytes)
{
	bool stale = !work->memory && work->sge.length > 0 &&
		     work->wr.opcode == IBV_WR_RDMA_WRITE && fake_now_is()->first_piece;
	*bytes = work->memory || stale ? work->sge.length : 0;
	fake_seen.stale += stale ? 1 : 0;
	if (*bytes == 0) {
		return NULL;
	}
	if ((work->wr.send_flags & IBV_SEND_INLINE) != 0) {
		return work->copy;
	}
	const uint8_t *from = fake_find(work->sge.lkey, work->sge.addr, *bytes, NULL);
	WF_ASSERT(from != NULL || stale);
	return from;
}

static struct verdict
judge(struct fake_qp *qp, enum fake_answer answer)
{
	if (answer == FAKE_SILENT) {
		return ask_in_vain(qp);
	}
	qp->silent_ns = 0;
	if (answer == FAKE_NAGGED) {
		return (struct verdict){.wait_ns = fake_now_ns() + RNR_NS};
	}
	if (answer == FAKE_DRY) {
		return knock_again(qp);
	}
	qp->rnr_left = qp->rnr_retry;
	return answer == FAKE_REFUSED ? failed(IBV_WC_REM_ACCESS_ERR) : over;
}

static enum fake_answer
carry_out(struct fake_qp *qp, struct fake_work *work)
{
	const struct ibv_send_wr *wr = &work->wr;
	struct fake_packet packet = {.opcode = wr->opcode,
				     .imm_data = wr->imm_data,
				     .rkey = wr->wr.rdma.rkey,
				     .remote_addr = wr->wr.rdma.remote_addr};
	fake_maybe_break(qp);
	if (!fake_reaches(qp)) {
		return FAKE_SILENT;
	}
	packet.data = source_of(work, &packet.bytes);
	bool nagged = takes_buffer(wr->opcode) && !work->nagged && !fake_now_is()->iwarp &&
		      fake_chance(fake_knobs_now()->dry_per_mille, 1000);
	if (nagged) {
		work->nagged = true;
		fake_happened.dry++;
		return FAKE_NAGGED;
	}
	return fake_carry(qp, &packet);
}

/* The first work request goes on as it was answered. */
static void
go_on(struct fake_qp *qp, enum fake_answer answer)
{
	if (qp->count == 0) {
		return; /* it ended with its peer */
	}
	if (answer == FAKE_LATER) {
		qp->asks = true;
		return;
	}
	struct verdict verdict = judge(qp, answer);
	if (verdict.wait_ns > 0) {
		qp->work[qp->head].ready_ns = verdict.wait_ns;
		return;
	}
	complete_work(qp, verdict.status);
	if (verdict.status != IBV_WC_SUCCESS) {
		fake_qp_error(qp);
	}
}

static void
run(struct fake_qp *qp)
{
	uint64_t now_ns = fake_now_ns();
	while (qp->count > 0 && qp->state == IBV_QPS_RTS && !qp->asks &&
	       !fake_is_dead(qp->qp.context)) {
		struct fake_work *work = &qp->work[qp->head];
		if (work->ready_ns > now_ns) {
			fake_due(work->ready_ns);
			return;
		}
		if (work->wr.opcode == IBV_WR_BIND_MW) {
			fake_bind(&work->wr, &qp->qp);
			complete_work(qp, IBV_WC_SUCCESS);
		} else {
			go_on(qp, carry_out(qp, work));
		}
	}
}

void
fake_answered(struct fake_qp *qp, enum fake_answer answer)
{
	if (qp->asks && !fake_is_dead(qp->qp.context)) {
		qp->asks = false;
		go_on(qp, answer);
		run(qp);
	}
}

void
fake_wire_turn(uint64_t now_ns)
{
	for (unsigned i = 0; i < FAKE_QPS_MAX; i++) {
		struct fake_qp *qp = fake_qp_of[i];
		if (qp != NULL && qp->count > 0) {
			run(qp);
		}
	}
}

/* On a wire of 80 Gb/s. */
static uint64_t
time_of(const struct fake_work *work)
{
	return WORK_NS + (work->memory ? work->sge.length / BYTES_PER_NS : 0);
}

static void
keep(struct fake_qp *qp, const struct ibv_send_wr *wr)
{
	struct fake_work *work = &qp->work[(qp->head + qp->count) % qp->depth];
	const struct fake_work *before =
		qp->count > 0 ? &qp->work[(qp->head + qp->count - 1) % qp->depth] : NULL;
	uint64_t begin_ns = fake_now_ns() + fake_draw(fake_knobs_now()->work_ns);
	*work = (struct fake_work){.wr = *wr, .memory = wr->num_sge > 0};
	if (wr->sg_list != NULL) {
		work->sge = wr->sg_list[0];
	}
	begin_ns = before != NULL && before->ready_ns > begin_ns ? before->ready_ns : begin_ns;
	work->ready_ns = begin_ns + (fake_takes_time() ? time_of(work) : 0);
	if ((wr->send_flags & IBV_SEND_INLINE) != 0 && work->memory) {
		WF_ASSERT(work->sge.length <= fake_now_is()->inline_max);
		memcpy(work->copy, (const void *)(uintptr_t)work->sge.addr, work->sge.length);
	}
	qp->count++;
	qp->posted++;
}

int
fake_post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)base;
	fake_seen.send_calls++;
	for (; wr != NULL; wr = wr->next) {
		*bad = wr;
		if ((wr->opcode == IBV_WR_BIND_MW && (wr->num_sge != 0 || wr->imm_data != 0)) ||
		    (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_ERR)) {
			return EINVAL; /* as rxe */
		}
		if (qp->posted - qp->released >= qp->depth) {
			return ENOMEM;
		}
		keep(qp, wr);
		fake_seen.work_requests++;
		if (qp->state == IBV_QPS_ERR) {
			flush(qp);
		} else {
			run(qp);
		}
	}
	return 0;
}
