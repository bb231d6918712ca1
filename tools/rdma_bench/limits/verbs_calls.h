/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_calls: the calls of libibverbs and librdmacm that verbs_link.c makes, loaded at run time,
 * so that one program runs with and without the libraries. Posting and polling are inline in
 * <infiniband/verbs.h> and reach the device without them. Thread: any. */
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "base/status.h"

/* Names as in the libraries, without ibv_ and rdma_. */
#define WF_VERBS_CALLS(IBV, CM)                                                                    \
	IBV(alloc_pd)                                                                              \
	IBV(create_cq)                                                                             \
	IBV(create_qp)                                                                             \
	IBV(dealloc_pd)                                                                            \
	IBV(dereg_mr)                                                                              \
	IBV(destroy_cq)                                                                            \
	IBV(destroy_qp)                                                                            \
	IBV(get_device_name)                                                                       \
	IBV(modify_qp)                                                                             \
	IBV(reg_mr_iova2)                                                                          \
	IBV(wc_status_str)                                                                         \
	CM(accept)                                                                                 \
	CM(ack_cm_event)                                                                           \
	CM(bind_addr)                                                                              \
	CM(connect)                                                                                \
	CM(create_event_channel)                                                                   \
	CM(create_id)                                                                              \
	CM(destroy_event_channel)                                                                  \
	CM(destroy_id)                                                                             \
	CM(disconnect)                                                                             \
	CM(establish)                                                                              \
	CM(event_str)                                                                              \
	CM(get_cm_event)                                                                           \
	CM(init_qp_attr)                                                                           \
	CM(listen)                                                                                 \
	CM(reject)                                                                                 \
	CM(resolve_addr)                                                                           \
	CM(resolve_route)

#define WF_VERBS_CALL_IBV(call) __typeof__(&ibv_##call) call;
#define WF_VERBS_CALL_CM(call) __typeof__(&rdma_##call) call;
struct wf_verbs_calls {
	WF_VERBS_CALLS(WF_VERBS_CALL_IBV, WF_VERBS_CALL_CM)
};

/* Loads them at the first call, and keeps them. WEFT_UNSUPPORTED names what is missing. */
enum weft_status wf_verbs_calls_get(const struct wf_verbs_calls **out) WEFT_MUST_CHECK;
