/* SPDX-License-Identifier: Apache-2.0 */
/* exports: the names of libibverbs and librdmacm. Each call, those through a device's own table
 * included, is the fake's, under the lock. Thread: any. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "library.h"

#undef ibv_get_device_list
#undef ibv_query_port

#define EXPORT __attribute__((visibility("default")))
#define CALL(type, call)                                                                           \
	do {                                                                                       \
		library_enter();                                                                   \
		type result = (call);                                                              \
		library_leave();                                                                   \
		return result;                                                                     \
	} while (false)
#define CALL_VOID(call)                                                                            \
	do {                                                                                       \
		library_enter();                                                                   \
		(call);                                                                            \
		library_leave();                                                                   \
	} while (false)

static struct wf_verbs_lib fake;
static struct ibv_context_ops inner;

/* ---- through the device's own table ---- */

static int
poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
	CALL(int, inner.poll_cq(cq, count, wc));
}

static int
req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	CALL(int, inner.req_notify_cq(cq, solicited_only));
}

static int
post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	CALL(int, inner.post_send(qp, wr, bad));
}

static int
post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	CALL(int, inner.post_recv(qp, wr, bad));
}

static int
post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	CALL(int, inner.post_srq_recv(srq, wr, bad));
}

static struct ibv_mw *
alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	CALL(struct ibv_mw *, inner.alloc_mw(pd, type));
}

static int
dealloc_mw(struct ibv_mw *mw)
{
	CALL(int, inner.dealloc_mw(mw));
}

__attribute__((constructor)) static void
fill(void)
{
	fake_device_fill(&fake);
	fake_memory_fill(&fake, &fake_ops);
	fake_queues_fill(&fake, &fake_ops);
	fake_ops.post_send = fake_post_send;
	fake_cm_fill(&fake);
	inner = fake_ops;
	fake_ops.poll_cq = poll_cq;
	fake_ops.req_notify_cq = req_notify_cq;
	fake_ops.post_send = post_send;
	fake_ops.post_recv = post_recv;
	fake_ops.post_srq_recv = post_srq_recv;
	fake_ops.alloc_mw = alloc_mw;
	fake_ops.dealloc_mw = dealloc_mw;
}

/* ---- libibverbs ---- */

EXPORT struct ibv_device **
ibv_get_device_list(int *count)
{
	struct ibv_device **list = NULL;
	library_enter();
	list = fake.get_device_list(count);
	if (!library_has_device()) {
		list[0] = NULL;
		*count = 0;
	}
	library_leave();
	return list;
}

EXPORT void
ibv_free_device_list(struct ibv_device **list)
{
	CALL_VOID(fake.free_device_list(list));
}

EXPORT const char *
ibv_get_device_name(struct ibv_device *device)
{
	CALL(const char *, fake.get_device_name(device));
}

EXPORT struct ibv_context *
ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *context = NULL;
	library_enter();
	if (library_has_device()) {
		context = fake.open_device(device);
	} else {
		errno = ENODEV;
	}
	library_leave();
	return context;
}

EXPORT int
ibv_fork_init(void)
{
	return 0; /* its memory is the program's own */
}

EXPORT int
ibv_close_device(struct ibv_context *context)
{
	CALL(int, fake.close_device(context));
}

EXPORT int
ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	CALL(int, fake.query_device(context, attr));
}

EXPORT int
ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	CALL(int, fake.query_port(context, port, attr));
}

EXPORT ssize_t
_ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max_entries,
		     uint32_t flags, size_t entry_bytes)
{
	CALL(ssize_t, fake.query_gid_table(context, entries, max_entries, flags, entry_bytes));
}

EXPORT struct ibv_pd *
ibv_alloc_pd(struct ibv_context *context)
{
	CALL(struct ibv_pd *, fake.alloc_pd(context));
}

EXPORT int
ibv_dealloc_pd(struct ibv_pd *pd)
{
	CALL(int, fake.dealloc_pd(pd));
}

EXPORT struct ibv_mr *
ibv_reg_mr_iova2(struct ibv_pd *pd, void *base, size_t bytes, uint64_t iova, unsigned int access)
{
	CALL(struct ibv_mr *, fake.reg_mr_iova2(pd, base, bytes, iova, access));
}

EXPORT int
ibv_dereg_mr(struct ibv_mr *mr)
{
	CALL(int, fake.dereg_mr(mr));
}

EXPORT struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *context)
{
	CALL(struct ibv_comp_channel *, fake.create_comp_channel(context));
}

EXPORT int
ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	CALL(int, fake.destroy_comp_channel(channel));
}

EXPORT struct ibv_cq *
ibv_create_cq(struct ibv_context *context, int entries, void *cq_context,
	      struct ibv_comp_channel *channel, int vector)
{
	CALL(struct ibv_cq *, fake.create_cq(context, entries, cq_context, channel, vector));
}

EXPORT int
ibv_destroy_cq(struct ibv_cq *cq)
{
	CALL(int, fake.destroy_cq(cq));
}

EXPORT int
ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	CALL(int, fake.get_cq_event(channel, cq, cq_context));
}

EXPORT void
ibv_ack_cq_events(struct ibv_cq *cq, unsigned int count)
{
	CALL_VOID(fake.ack_cq_events(cq, count));
}

EXPORT struct ibv_srq *
ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	CALL(struct ibv_srq *, fake.create_srq(pd, attr));
}

EXPORT int
ibv_destroy_srq(struct ibv_srq *srq)
{
	CALL(int, fake.destroy_srq(srq));
}

EXPORT struct ibv_qp *
ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	CALL(struct ibv_qp *, fake.create_qp(pd, attr));
}

EXPORT int
ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	CALL(int, fake.modify_qp(qp, attr, mask));
}

EXPORT int
ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	CALL(int, fake.query_qp(qp, attr, mask, init));
}

EXPORT int
ibv_destroy_qp(struct ibv_qp *qp)
{
	CALL(int, fake.destroy_qp(qp));
}

EXPORT int
ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	CALL(int, fake.get_async_event(context, event));
}

EXPORT void
ibv_ack_async_event(struct ibv_async_event *event)
{
	CALL_VOID(fake.ack_async_event(event));
}

EXPORT const char *
ibv_wc_status_str(enum ibv_wc_status status)
{
	CALL(const char *, fake.wc_status_str(status));
}

EXPORT const char *
ibv_event_type_str(enum ibv_event_type type)
{
	CALL(const char *, fake.event_type_str(type));
}

/* ---- librdmacm ---- */

/* Those of loopback lead to no device. */
static bool
leads_to_device(const struct sockaddr *address)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;
	if (!library_has_device()) {
		return false;
	}
	return address->sa_family == AF_INET6 ? !IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr)
					      : ntohl(v4->sin_addr.s_addr) >> 24 != 127;
}

EXPORT int
rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *address)
{
	int result = -1;
	library_enter();
	if (leads_to_device(address)) {
		result = fake.bind_addr(id, address);
	} else {
		errno = ENODEV;
	}
	library_leave();
	return result;
}

EXPORT int
rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *source, struct sockaddr *to,
		  int timeout_ms)
{
	int result = 0;
	library_enter();
	if (leads_to_device(to)) {
		result = fake.resolve_addr(id, source, to, timeout_ms);
	} else {
		fake_cm_tell((struct fake_id *)id, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV, NULL, 0);
	}
	library_leave();
	return result;
}

EXPORT struct ibv_context **
rdma_get_devices(int *count)
{
	CALL(struct ibv_context **, fake.get_devices(count));
}

EXPORT void
rdma_free_devices(struct ibv_context **list)
{
	CALL_VOID(fake.free_devices(list));
}

EXPORT struct rdma_event_channel *
rdma_create_event_channel(void)
{
	CALL(struct rdma_event_channel *, fake.create_event_channel());
}

EXPORT void
rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	CALL_VOID(fake.destroy_event_channel(channel));
}

EXPORT int
rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
	       enum rdma_port_space ps)
{
	CALL(int, fake.create_id(channel, id, context, ps));
}

EXPORT int
rdma_destroy_id(struct rdma_cm_id *id)
{
	CALL(int, fake.destroy_id(id));
}

EXPORT int
rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	CALL(int, fake.resolve_route(id, timeout_ms));
}

EXPORT int
rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	CALL(int, fake.connect(id, param));
}

EXPORT int
rdma_establish(struct rdma_cm_id *id)
{
	CALL(int, fake.establish(id));
}

EXPORT int
rdma_listen(struct rdma_cm_id *id, int backlog)
{
	CALL(int, fake.listen(id, backlog));
}

EXPORT int
rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	CALL(int, fake.accept(id, param));
}

EXPORT int
rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t data_bytes)
{
	CALL(int, fake.reject(id, data, data_bytes));
}

EXPORT int
rdma_disconnect(struct rdma_cm_id *id)
{
	CALL(int, fake.disconnect(id));
}

EXPORT int
rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	CALL(int, fake.get_cm_event(channel, event));
}

EXPORT int
rdma_ack_cm_event(struct rdma_cm_event *event)
{
	CALL(int, fake.ack_cm_event(event));
}

EXPORT const char *
rdma_event_str(enum rdma_cm_event_type type)
{
	CALL(const char *, fake.event_str(type));
}

EXPORT __be16
rdma_get_src_port(struct rdma_cm_id *id)
{
	CALL(__be16, fake.get_src_port(id));
}

EXPORT int
rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	CALL(int, fake.init_qp_attr(id, attr, mask));
}

EXPORT int
rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t bytes)
{
	CALL(int, fake.set_option(id, level, name, value, bytes));
}
