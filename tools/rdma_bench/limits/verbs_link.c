/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_link: see verbs_link.h. */
#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "tools/rdma_bench/limits/verbs_link.h"

#define STEP_MS 10000  /* of rdma_cm */
#define LOOK_MS 200    /* between looks at the other side */
#define ACK_TIMEOUT 16 /* 268 ms */
#define RETRIES 6      /* 7 are for ever on some devices */
#define RNR_RETRIES 7
#define RNR_TIMER 12   /* 0.64 ms */
#define ROOM_BYTES 20u /* private data: token, address, key */

static enum weft_status
fail_step(const char *what)
{
	return wf_fail_errno(WEFT_UNAVAILABLE, errno, "raw verbs: %s", what);
}

static enum weft_status
resolve(const char *name, uint16_t port, struct sockaddr_storage *out)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
	struct addrinfo *list = NULL;
	char text[8];
	(void)snprintf(text, sizeof(text), "%u", port);
	int error = getaddrinfo(name, text, &hints, &list);
	if (error != 0) {
		return wf_fail(WEFT_INVALID, "%.60s: %s", name, gai_strerror(error));
	}
	memset(out, 0, sizeof(*out));
	memcpy(out, list->ai_addr, list->ai_addrlen);
	freeaddrinfo(list);
	return WEFT_OK;
}

enum weft_status
wf_bare_link_open(struct wf_bare_link *link, struct wf_peer_end *end)
{
	struct sockaddr_storage at;
	link->end = end;
	enum weft_status st = wf_verbs_calls_get(&link->calls);
	if (st != WEFT_OK) {
		return st;
	}
	link->channel = link->calls->create_event_channel();
	if (link->channel == NULL) {
		return fail_step("the connection manager (/dev/infiniband/rdma_cm)");
	}
	if (end->client) {
		return WEFT_OK;
	}
	st = resolve(end->address, (uint16_t)(end->port + 2), &at);
	if (st != WEFT_OK) {
		return st;
	}
	if (link->calls->create_id(link->channel, &link->listener, NULL, RDMA_PS_TCP) != 0 ||
	    link->calls->bind_addr(link->listener, (struct sockaddr *)&at) != 0 ||
	    link->calls->listen(link->listener, 4) != 0) {
		int err = errno;
		return wf_fail_errno(WEFT_UNAVAILABLE, err, "raw verbs: listen on %s port %u",
				     end->address, end->port + 2);
	}
	return WEFT_OK;
}

/* The next event, which must be `type`; of `id` and `data` what the caller wants. */
struct wanted {
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id; /* of the event */
	uint8_t data[ROOM_BYTES];
	size_t data_bytes;
};

static enum weft_status
await_readable(struct wf_bare_link *link)
{
	struct pollfd wait = {.fd = link->channel->fd, .events = POLLIN};
	enum weft_status st = WEFT_OK;
	for (int left = STEP_MS; st == WEFT_OK && left > 0; left -= LOOK_MS) {
		if (poll(&wait, 1, LOOK_MS) > 0) {
			return WEFT_OK;
		}
		st = wf_peer_control_look(&link->end->control);
	}
	return st != WEFT_OK ? st : wf_fail(WEFT_TIMEOUT, "raw verbs: no connection within 10 s");
}

static enum weft_status
await(struct wf_bare_link *link, struct wanted *wanted)
{
	struct rdma_cm_event *event = NULL;
	enum weft_status st = await_readable(link);
	if (st != WEFT_OK) {
		return st;
	}
	if (link->calls->get_cm_event(link->channel, &event) != 0) {
		return fail_step("the connection manager");
	}
	if (event->event != wanted->type) {
		st = wf_fail(WEFT_UNAVAILABLE, "raw verbs: %s (%d)",
			     link->calls->event_str(event->event), event->status);
	} else {
		const struct rdma_conn_param *param = &event->param.conn;
		wanted->id = event->id;
		wanted->data_bytes = param->private_data_len;
		if (param->private_data != NULL && param->private_data_len >= ROOM_BYTES) {
			memcpy(wanted->data, param->private_data, ROOM_BYTES);
		}
	}
	(void)link->calls->ack_cm_event(event);
	return st;
}

/* ---- the queue pair ---- */

static struct ibv_qp *
create_qp(struct wf_bare_link *link, const struct wf_bare_link_opts *opts, uint32_t inline_bytes)
{
	struct ibv_qp_init_attr init = {
		.send_cq = link->send_cq,
		.recv_cq = link->receive_cq,
		.qp_type = IBV_QPT_RC,
		.cap =
			{
				.max_send_wr = opts->send_count,
				.max_recv_wr = opts->receive_count,
				.max_send_sge = 1,
				.max_recv_sge = 1,
				.max_inline_data = inline_bytes,
			},
	};
	link->inline_bytes = inline_bytes;
	return link->calls->create_qp(link->pd, &init);
}

static enum weft_status
change_state(struct wf_bare_link *link, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr;
	int mask = 0;
	memset(&attr, 0, sizeof(attr));
	attr.qp_state = state;
	if (link->calls->init_qp_attr(link->id, &attr, &mask) != 0) {
		return fail_step("no attributes for the queue pair");
	}
	if ((mask & IBV_QP_ACCESS_FLAGS) != 0) {
		attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	}
	if (!link->iwarp && state == IBV_QPS_RTR) {
		attr.min_rnr_timer = RNR_TIMER;
		mask |= IBV_QP_MIN_RNR_TIMER;
	}
	if (!link->iwarp && state == IBV_QPS_RTS) {
		attr.timeout = ACK_TIMEOUT;
		attr.retry_cnt = RETRIES;
		attr.rnr_retry = RNR_RETRIES;
	}
	errno = link->calls->modify_qp(link->qp, &attr, mask);
	return errno == 0 ? WEFT_OK : fail_step("the queue pair's state");
}

/* On the device that the connection manager found. */
static enum weft_status
make(struct wf_bare_link *link, const struct wf_bare_link_opts *opts)
{
	struct ibv_context *device = link->id->verbs;
	if (device == NULL) {
		return wf_fail(WEFT_UNAVAILABLE, "raw verbs: no RDMA device leads to %s",
			       link->end->address);
	}
	link->name = link->calls->get_device_name(device->device);
	link->iwarp = device->device->transport_type == IBV_TRANSPORT_IWARP;
	link->pd = link->calls->alloc_pd(device);
	if (link->pd != NULL) {
		link->mr = link->calls->reg_mr_iova2(
			link->pd, opts->memory, opts->bytes, (uintptr_t)opts->memory,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	}
	if (link->mr == NULL) {
		return wf_fail_errno(
			WEFT_NOMEM, errno,
			"raw verbs: %zu bytes cannot be registered (ulimit -l says how "
			"much may be locked)",
			opts->bytes);
	}
	int sends = (int)opts->send_count, receives = (int)opts->receive_count;
	link->send_cq = link->calls->create_cq(device, sends, NULL, NULL, 0);
	link->receive_cq = link->calls->create_cq(device, receives, NULL, NULL, 0);
	uint32_t asked = opts->inline_bytes;
	if (link->send_cq != NULL && link->receive_cq != NULL) {
		link->qp = create_qp(link, opts, asked);
		while (link->qp == NULL && asked > 0) {
			asked /= 2;
			link->qp = create_qp(link, opts, asked);
		}
	}
	return link->qp == NULL ? fail_step("a queue pair") : change_state(link, IBV_QPS_INIT);
}

static enum weft_status
start(struct wf_bare_link *link)
{
	if (link->iwarp) {
		return WEFT_OK; /* the kernel does that */
	}
	enum weft_status st = change_state(link, IBV_QPS_RTR);
	return st == WEFT_OK ? change_state(link, IBV_QPS_RTS) : st;
}

/* ---- connecting ---- */

static void
introduce(const struct wf_bare_link *link, const struct wf_bare_link_opts *opts, uint8_t *data,
	  struct rdma_conn_param *out)
{
	uint64_t word[2] = {htole64(link->end->plan.token), htole64((uintptr_t)opts->memory)};
	uint32_t key = htole32(link->mr->rkey);
	memcpy(data, word, sizeof(word));
	memcpy(data + sizeof(word), &key, sizeof(key));
	*out = (struct rdma_conn_param){
		.private_data = data,
		.private_data_len = ROOM_BYTES,
		.responder_resources = 1,
		.initiator_depth = 1,
		.flow_control = 1,
		.retry_count = RETRIES,
		.rnr_retry_count = RNR_RETRIES,
		.qp_num = link->qp->qp_num,
	};
}

static bool
meet(struct wf_bare_link *link, const struct wanted *wanted)
{
	uint64_t word[2];
	uint32_t key;
	memcpy(word, wanted->data, sizeof(word));
	memcpy(&key, wanted->data + sizeof(word), sizeof(key));
	link->remote_at = le64toh(word[1]);
	link->remote_key = le32toh(key);
	return wanted->data_bytes >= ROOM_BYTES && le64toh(word[0]) == link->end->plan.token;
}

static enum weft_status
find_way(struct wf_bare_link *link)
{
	struct sockaddr_storage to, from;
	const char *local = link->end->local;
	struct wanted address = {.type = RDMA_CM_EVENT_ADDR_RESOLVED};
	struct wanted route = {.type = RDMA_CM_EVENT_ROUTE_RESOLVED};
	enum weft_status st = resolve(link->end->address, (uint16_t)(link->end->port + 2), &to);
	if (st == WEFT_OK && local[0] != '\0') {
		st = resolve(local, 0, &from);
	}
	if (st != WEFT_OK) {
		return st;
	}
	if (link->calls->create_id(link->channel, &link->id, NULL, RDMA_PS_TCP) != 0 ||
	    link->calls->resolve_addr(link->id, local[0] != '\0' ? (struct sockaddr *)&from : NULL,
				      (struct sockaddr *)&to, STEP_MS) != 0) {
		return fail_step("no RDMA device leads there");
	}
	st = await(link, &address);
	if (st == WEFT_OK && link->calls->resolve_route(link->id, STEP_MS) != 0) {
		st = fail_step("no route");
	}
	return st == WEFT_OK ? await(link, &route) : st;
}

static enum weft_status
join_client(struct wf_bare_link *link, const struct wf_bare_link_opts *opts)
{
	uint8_t data[ROOM_BYTES];
	struct rdma_conn_param param;
	enum weft_status st = find_way(link);
	if (st == WEFT_OK) {
		st = make(link, opts);
	}
	if (st == WEFT_OK) {
		st = opts->made(link);
	}
	if (st != WEFT_OK) {
		return st;
	}
	struct wanted answer = {.type = link->iwarp ? RDMA_CM_EVENT_ESTABLISHED
						    : RDMA_CM_EVENT_CONNECT_RESPONSE};
	introduce(link, opts, data, &param);
	if (link->calls->connect(link->id, &param) != 0) {
		return fail_step("connect");
	}
	st = await(link, &answer);
	if (st == WEFT_OK && !meet(link, &answer)) {
		st = wf_fail(WEFT_PROTOCOL, "raw verbs: another process answered");
	}
	if (st == WEFT_OK) {
		st = start(link);
	}
	if (st == WEFT_OK && !link->iwarp && link->calls->establish(link->id) != 0) {
		st = fail_step("establish");
	}
	return st;
}

static enum weft_status
join_server(struct wf_bare_link *link, const struct wf_bare_link_opts *opts)
{
	uint8_t data[ROOM_BYTES];
	struct rdma_conn_param param;
	struct wanted request = {.type = RDMA_CM_EVENT_CONNECT_REQUEST};
	struct wanted established = {.type = RDMA_CM_EVENT_ESTABLISHED};
	enum weft_status st = await(link, &request);
	if (st != WEFT_OK) {
		return st;
	}
	link->id = request.id;
	if (!meet(link, &request)) {
		(void)link->calls->reject(link->id, NULL, 0);
		return wf_fail(WEFT_PROTOCOL, "raw verbs: another process connected");
	}
	st = make(link, opts);
	if (st == WEFT_OK) {
		st = opts->made(link);
	}
	if (st == WEFT_OK) {
		st = start(link);
	}
	if (st != WEFT_OK) {
		return st;
	}
	introduce(link, opts, data, &param);
	if (link->calls->accept(link->id, &param) != 0) {
		return fail_step("accept");
	}
	return await(link, &established);
}

enum weft_status
wf_bare_link_join(struct wf_bare_link *link, const struct wf_bare_link_opts *opts)
{
	link->context = opts->context;
	return link->end->client ? join_client(link, opts) : join_server(link, opts);
}

static void
close_queues(struct wf_bare_link *link)
{
	if (link->qp != NULL) {
		(void)link->calls->disconnect(link->id);
		(void)link->calls->destroy_qp(link->qp);
	}
	if (link->send_cq != NULL) {
		(void)link->calls->destroy_cq(link->send_cq);
	}
	if (link->receive_cq != NULL) {
		(void)link->calls->destroy_cq(link->receive_cq);
	}
	if (link->mr != NULL) {
		(void)link->calls->dereg_mr(link->mr);
	}
	if (link->pd != NULL) {
		(void)link->calls->dealloc_pd(link->pd);
	}
}

/* An event left unread in the channel would keep its identifier from being destroyed. */
static void
drain(struct wf_bare_link *link)
{
	struct pollfd wait = {.fd = link->channel->fd, .events = POLLIN};
	struct rdma_cm_event *event = NULL;
	while (poll(&wait, 1, 0) > 0 && link->calls->get_cm_event(link->channel, &event) == 0) {
		(void)link->calls->ack_cm_event(event);
	}
}

void
wf_bare_link_close(struct wf_bare_link *link)
{
	if (link->channel == NULL) {
		return;
	}
	close_queues(link);
	drain(link);
	if (link->id != NULL) {
		(void)link->calls->destroy_id(link->id);
	}
	if (link->listener != NULL) {
		(void)link->calls->destroy_id(link->listener);
	}
	link->calls->destroy_event_channel(link->channel);
	*link = (struct wf_bare_link){0};
}
