/* SPDX-License-Identifier: Apache-2.0 */
/* fake_peer: the other end of a queue pair, in the same process: what is sent arrives at once.
 * Thread: one. */
#include "fake_internal.h"

static struct fake_qp *
peer_of(const struct fake_qp *qp)
{
	struct fake_qp *to = qp->peer < FAKE_QPS_MAX ? fake_qp_of[qp->peer] : NULL;
	return to != NULL && to->peer == qp->qp.qp_num ? to : NULL;
}

bool
fake_reaches(const struct fake_qp *qp)
{
	const struct fake_qp *to = peer_of(qp);
	return to != NULL && (to->state == IBV_QPS_RTR || to->state == IBV_QPS_RTS) && !qp->cut &&
	       !to->cut && !fake_is_dead(to->qp.context) &&
	       fake_down_until_ns(qp->qp.context) == 0 && fake_down_until_ns(to->qp.context) == 0;
}

enum fake_answer
fake_carry(struct fake_qp *qp, const struct fake_packet *packet)
{
	return fake_arrive(peer_of(qp), packet);
}

void
fake_part(struct fake_qp *qp)
{
	struct fake_qp *peer = peer_of(qp);
	if (peer != NULL) {
		fake_qp_error(peer);
		fake_cm_ended(peer->qp.qp_num);
	}
}
