/* SPDX-License-Identifier: Apache-2.0 */
/* meet: how identifiers of several processes find each other. A listener is a socket named after
 * its port; an identifier that connects to it has a link, over which the messages of the connection
 * manager travel, too. If a process ends, the end of its links stands for the messages that it did
 * not send, as in the kernel. Thread: the holder of the lock. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "library.h"

#define PORT_FIRST 40000u
#define BACKLOG 1024
#define LOST 1 /* status of a message that nobody is told of */

struct listener {
	struct library_watch watch; /* first */
	struct fake_id *id;
};

static struct library_link *
link_of(const struct fake_id *id)
{
	return id->listens ? NULL : id->far;
}

uint32_t
fake_meet_qp_num(const struct fake_id *id)
{
	const struct library_link *link = link_of(id);
	return link != NULL ? link->peer_qp_num : 0;
}

/* ---- listeners ---- */

/* In this network namespace, and gone with the process. */
static socklen_t
name_port(__be16 port, struct sockaddr_un *out)
{
	*out = (struct sockaddr_un){.sun_family = AF_UNIX};
	int n = snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "%s/%u", library_folder(),
			 ntohs(port));
	WF_ASSERT(n > 0 && (size_t)n < sizeof(out->sun_path) - 1);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static void
on_listener(struct library_watch *watch, uint32_t events)
{
	struct listener *listener = (struct listener *)watch;
	int fd = -1;
	while ((fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct library_link *link = library_link_create(fd);
		link->listener = listener->id;
		link->incoming = true;
	}
}

/* 0, or errno. */
static int
bind_port(int fd, __be16 port)
{
	struct sockaddr_un name;
	socklen_t bytes = name_port(port, &name);
	if (bind(fd, (struct sockaddr *)&name, bytes) != 0 || listen(fd, BACKLOG) != 0) {
		return errno;
	}
	return 0;
}

static int
listen_at(struct rdma_cm_id *base, int backlog)
{
	struct fake_id *id = (struct fake_id *)base;
	__be16 *port = fake_cm_port(&base->route.addr.src_storage);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	WF_ASSERT(fd >= 0);
	__be16 tried = *port != 0 ? *port : htons(PORT_FIRST);
	int err = bind_port(fd, tried);
	while (err == EADDRINUSE && *port == 0 && ntohs(tried) < UINT16_MAX) {
		tried = htons((uint16_t)(ntohs(tried) + 1u));
		err = bind_port(fd, tried);
	}
	if (err != 0) {
		(void)close(fd);
		errno = err;
		return -1;
	}
	struct listener *listener = calloc(1, sizeof(*listener));
	WF_ASSERT(listener != NULL);
	*listener = (struct listener){.watch = {.fd = fd, .ready = on_listener}, .id = id};
	library_watch(&listener->watch, EPOLLIN);
	*port = tried;
	id->listens = true;
	id->far = listener;
	return 0;
}

/* Requests that were not read go with it. */
static void
end_listener(struct fake_id *id)
{
	struct listener *listener = id->far;
	struct library_link *link = library_links();
	while (link != NULL) {
		struct library_link *next = link->next;
		if (link->listener == id) {
			library_link_destroy(link);
		}
		link = next;
	}
	library_unwatch(&listener->watch);
	free(listener);
}

/* ---- calls ---- */

static void
send_private(struct library_link *link, struct library_message *message, const void *data,
	     size_t bytes)
{
	message->bytes = (uint32_t)bytes;
	library_send(link, message, data);
}

static void
request(struct fake_id *id, int fd, const struct rdma_conn_param *param)
{
	struct {
		struct sockaddr_storage to;
		uint8_t data[FAKE_REQUEST_BYTES];
	} said = {.to = id->id.route.addr.dst_storage};
	struct library_link *link = library_link_create(fd);
	size_t bytes = fake_now_is()->iwarp ? param->private_data_len : sizeof(said.data);
	WF_ASSERT(param->private_data_len <= sizeof(said.data));
	memcpy(said.data, param->private_data, param->private_data_len);
	link->id = id;
	id->far = link;
	library_link_bind(link, param->qp_num);
	send_private(link,
		     &(struct library_message){.kind = LIBRARY_REQUEST, .qp_num = param->qp_num},
		     &said, sizeof(said.to) + bytes);
}

static int
connect_to(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
	struct fake_id *id = (struct fake_id *)base;
	struct sockaddr_un name;
	id->qp_num = param->qp_num;
	fake_seen.requests++;
	if (fake_cm_is_lost()) {
		return 0;
	}
	socklen_t bytes = name_port(*fake_cm_port(&base->route.addr.dst_storage), &name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	WF_ASSERT(fd >= 0);
	if (connect(fd, (struct sockaddr *)&name, bytes) == 0) {
		request(id, fd, param);
		return 0;
	}
	int err = errno;
	(void)close(fd);
	if (err != EAGAIN) { /* a queue that is full loses it */
		fake_cm_tell(id, RDMA_CM_EVENT_REJECTED,
			     fake_now_is()->iwarp ? -ECONNREFUSED : FAKE_REASON_NOBODY, NULL, 0);
	}
	return 0;
}

/* On iWARP the kernel moves the queue pair. */
static void
start_stream(const struct library_link *link)
{
	struct fake_qp *qp = fake_qp_of[link->qp_num];
	if (qp != NULL && qp->state != IBV_QPS_ERR) {
		qp->peer = link->peer_qp_num;
		qp->state = IBV_QPS_RTS;
	}
}

static int
accept_from(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
	struct fake_id *id = (struct fake_id *)base;
	struct library_link *link = link_of(id);
	struct library_message reply = {.kind = LIBRARY_REPLY, .qp_num = param->qp_num};
	id->qp_num = param->qp_num;
	if (link == NULL) {
		errno = EINVAL;
		return -1;
	}
	id->accepted = true;
	library_link_bind(link, param->qp_num);
	if (fake_now_is()->iwarp) {
		link->linked = true;
		start_stream(link);
		fake_cm_tell(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
	}
	if (!fake_cm_is_lost()) {
		send_private(link, &reply, param->private_data, param->private_data_len);
	}
	return 0;
}

static int
establish(struct rdma_cm_id *base)
{
	struct fake_id *id = (struct fake_id *)base;
	struct library_link *link = link_of(id);
	id->accepted = true;
	if (link != NULL) {
		struct library_message ready = {.kind = LIBRARY_READY,
						.status = fake_cm_is_lost() ? LOST : 0};
		link->linked = true;
		library_send(link, &ready, NULL);
	}
	return 0;
}

static int
reject_from(struct rdma_cm_id *base, const void *data, uint8_t bytes)
{
	struct fake_id *id = (struct fake_id *)base;
	struct library_message no = {.kind = LIBRARY_REJECTION,
				     .status = fake_now_is()->iwarp ? -ECONNRESET
								    : FAKE_REASON_CONSUMER};
	id->rejected = true;
	if (link_of(id) != NULL) {
		send_private(link_of(id), &no, data, bytes);
	}
	return 0;
}

void
fake_meet_disconnect(struct fake_id *id)
{
	if (link_of(id) != NULL) {
		library_send(link_of(id), &(struct library_message){.kind = LIBRARY_DISCONNECTS},
			     NULL);
	}
}

/* ---- what comes ---- */

static void
show_request(struct library_link *link, const struct library_message *message, const uint8_t *bytes)
{
	struct sockaddr_storage to;
	struct fake_id *listener = link->listener;
	if (listener == NULL || message->bytes < sizeof(to)) {
		return;
	}
	memcpy(&to, bytes, sizeof(to));
	struct fake_id *incoming = fake_cm_incoming(listener, &to);
	incoming->far = link;
	link->id = incoming;
	link->listener = NULL;
	link->peer_qp_num = message->qp_num;
	fake_cm_show(incoming, listener, bytes + sizeof(to), message->bytes - sizeof(to));
}

static void
take_reply(struct library_link *link, const struct library_message *message, const uint8_t *bytes)
{
	enum rdma_cm_event_type type = RDMA_CM_EVENT_CONNECT_RESPONSE;
	link->peer_qp_num = message->qp_num;
	if (fake_now_is()->iwarp) {
		type = RDMA_CM_EVENT_ESTABLISHED;
		link->linked = true;
		link->id->accepted = true;
		start_stream(link);
	}
	fake_cm_tell(link->id, type, 0, bytes, message->bytes);
}

static void
tell_the_end(struct library_link *link)
{
	struct fake_qp *qp = link->qp_num != 0 ? fake_qp_of[link->qp_num] : NULL;
	if (fake_now_is()->iwarp && qp != NULL) {
		fake_qp_error(qp);
	}
	if (link->linked) {
		link->linked = false;
		link->ended = true;
		fake_cm_tell(link->id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
	}
}

void
library_meet_take(struct library_link *link, const struct library_message *message,
		  const uint8_t *bytes)
{
	switch (message->kind) {
	case LIBRARY_REQUEST:
		show_request(link, message, bytes);
		return;
	case LIBRARY_WORK:
	case LIBRARY_ANSWER:
		return;
	case LIBRARY_REPLY:
	case LIBRARY_READY:
	case LIBRARY_REJECTION:
	case LIBRARY_DISCONNECTS:
	case LIBRARY_STREAM_ENDS:
		break;
	}
	if (link->id == NULL) {
		return;
	}
	if (message->kind == LIBRARY_REPLY) {
		take_reply(link, message, bytes);
	} else if (message->kind == LIBRARY_READY) {
		link->linked = true;
		if (message->status != LOST) {
			fake_cm_tell(link->id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
		}
	} else if (message->kind == LIBRARY_REJECTION) {
		link->ended = true;
		fake_cm_tell(link->id, RDMA_CM_EVENT_REJECTED, message->status, bytes,
			     message->bytes);
	} else {
		tell_the_end(link);
	}
}

/* The other end was destroyed, with its process perhaps. */
void
library_meet_end(struct library_link *link)
{
	struct fake_id *id = link->id;
	if (id != NULL && link->linked) {
		tell_the_end(link);
	} else if (id != NULL && !link->ended && (!link->incoming || id->accepted)) {
		fake_cm_tell(id, RDMA_CM_EVENT_REJECTED,
			     fake_now_is()->iwarp ? -ECONNRESET : FAKE_REASON_CONSUMER, NULL, 0);
	}
	if (id != NULL) {
		id->withdrawn = !id->accepted;
		id->far = NULL;
	}
	library_link_destroy(link);
}

void
fake_meet_leave(struct fake_id *id)
{
	struct library_link *link = link_of(id);
	if (id->listens) {
		end_listener(id);
	} else if (link != NULL) {
		link->id = NULL;
		library_link_leave(link);
	}
}

void
fake_meet_reset(void)
{
}

void
fake_meet_fill(struct wf_verbs_lib *lib)
{
	lib->connect = connect_to;
	lib->establish = establish;
	lib->listen = listen_at;
	lib->accept = accept_from;
	lib->reject = reject_from;
}
