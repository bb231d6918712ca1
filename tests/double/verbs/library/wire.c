/* SPDX-License-Identifier: Apache-2.0 */
/* wire: one socket for each connection. A work request is a message, and its answer is another: the
 * next request is sent when that has arrived. What cannot be written now is kept. Thread: the
 * holder of the lock. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "library.h"

#define READ_BYTES 65536u

static struct library_link *links;
static struct library_link *link_of[FAKE_QPS_MAX]; /* by number of the queue pair */

/* ---- the socket ---- */

static void
grow(uint8_t **at, size_t *room, size_t bytes)
{
	if (bytes <= *room) {
		return;
	}
	size_t wanted = *room == 0 ? READ_BYTES : *room;
	while (wanted < bytes) {
		wanted *= 2;
	}
	uint8_t *more = realloc(*at, wanted);
	WF_ASSERT(more != NULL);
	*at = more;
	*room = wanted;
}

static void
drop_front(uint8_t *at, size_t *held, size_t bytes)
{
	memmove(at, at + bytes, *held - bytes);
	*held -= bytes;
}

static void
hang_up(struct library_link *link)
{
	if (link->watch.fd >= 0) {
		library_unwatch(&link->watch);
		link->out_bytes = 0;
		library_wire_end(link);
	}
}

static void
flush_out(struct library_link *link)
{
	size_t sent = 0;
	while (sent < link->out_bytes) {
		ssize_t n = send(link->watch.fd, link->out + sent, link->out_bytes - sent,
				 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n < 0) {
			break; /* of an end, reading tells */
		}
		sent += (size_t)n;
	}
	drop_front(link->out, &link->out_bytes, sent);
	library_rewatch(&link->watch, EPOLLIN | (link->out_bytes > 0 ? EPOLLOUT : 0u));
}

void
library_send(struct library_link *link, const struct library_message *message, const void *bytes)
{
	if (link->watch.fd < 0) {
		return;
	}
	size_t end = link->out_bytes + sizeof(*message) + message->bytes;
	grow(&link->out, &link->out_room, end);
	memcpy(link->out + link->out_bytes, message, sizeof(*message));
	if (bytes != NULL && message->bytes > 0) {
		memcpy(link->out + link->out_bytes + sizeof(*message), bytes, message->bytes);
	}
	link->out_bytes = end;
	flush_out(link);
}

/* False: the other end has gone. */
static bool
read_in(struct library_link *link)
{
	ssize_t n = 0;
	do {
		grow(&link->in, &link->in_room, link->in_bytes + READ_BYTES);
		n = recv(link->watch.fd, link->in + link->in_bytes, READ_BYTES, MSG_DONTWAIT);
		link->in_bytes += n > 0 ? (size_t)n : 0;
	} while (n > 0 || (n < 0 && errno == EINTR));
	return n < 0 && errno == EAGAIN;
}

static void
take(struct library_link *link, const struct library_message *message, const uint8_t *bytes)
{
	if (message->kind == LIBRARY_WORK || message->kind == LIBRARY_ANSWER) {
		library_wire_take(link, message, bytes);
	} else {
		library_meet_take(link, message, bytes);
	}
}

static void
take_all(struct library_link *link)
{
	struct library_message message;
	size_t at = 0;
	while (link->in_bytes - at >= sizeof(message)) {
		memcpy(&message, link->in + at, sizeof(message));
		if (link->in_bytes - at - sizeof(message) < message.bytes) {
			break;
		}
		take(link, &message, link->in + at + sizeof(message));
		at += sizeof(message) + message.bytes;
	}
	drop_front(link->in, &link->in_bytes, at);
}

static void
on_link(struct library_watch *watch, uint32_t events)
{
	struct library_link *link = (struct library_link *)watch;
	if ((events & EPOLLOUT) != 0) {
		flush_out(link);
	}
	bool goes_on = read_in(link);
	take_all(link);
	if (!goes_on) {
		hang_up(link);
		library_meet_end(link);
	} else if (link->left && link->out_bytes == 0) {
		library_link_destroy(link);
	}
}

void
library_link_leave(struct library_link *link)
{
	link->left = true;
	if (link->out_bytes == 0) {
		library_link_destroy(link);
	}
}

struct library_link *
library_link_create(int fd)
{
	struct library_link *link = calloc(1, sizeof(*link));
	WF_ASSERT(link != NULL);
	link->watch = (struct library_watch){.fd = fd, .ready = on_link};
	link->next = links;
	links = link;
	library_watch(&link->watch, EPOLLIN);
	return link;
}

void
library_link_destroy(struct library_link *link)
{
	struct library_link **at = &links;
	hang_up(link);
	while (*at != link) {
		at = &(*at)->next;
	}
	*at = link->next;
	if (link->qp_num != 0 && link_of[link->qp_num] == link) {
		link_of[link->qp_num] = NULL;
	}
	free(link->in);
	free(link->out);
	free(link);
}

struct library_link *
library_links(void)
{
	return links;
}

void
library_link_bind(struct library_link *link, uint32_t qp_num)
{
	WF_ASSERT(qp_num < FAKE_QPS_MAX);
	link->qp_num = qp_num;
	link_of[qp_num] = link;
}

/* ---- work requests ---- */

static bool
is_up(const struct fake_qp *qp)
{
	return (qp->state == IBV_QPS_RTR || qp->state == IBV_QPS_RTS) && !qp->cut &&
	       !fake_is_dead(qp->qp.context) && fake_down_until_ns(qp->qp.context) == 0;
}

bool
fake_reaches(const struct fake_qp *qp)
{
	const struct library_link *link = link_of[qp->qp.qp_num];
	return link != NULL && link->watch.fd >= 0 && is_up(qp);
}

enum fake_answer
fake_carry(struct fake_qp *qp, const struct fake_packet *packet)
{
	struct library_message message = {.kind = LIBRARY_WORK, .packet = *packet};
	message.bytes = packet->data != NULL ? packet->bytes : 0;
	library_send(link_of[qp->qp.qp_num], &message, packet->data);
	return FAKE_LATER;
}

void
fake_part(struct fake_qp *qp)
{
	struct library_link *link = link_of[qp->qp.qp_num];
	if (link != NULL) {
		library_send(link, &(struct library_message){.kind = LIBRARY_STREAM_ENDS}, NULL);
	}
}

void
library_wire_take(struct library_link *link, const struct library_message *message,
		  const uint8_t *bytes)
{
	struct fake_qp *qp = link_of[link->qp_num] == link ? fake_qp_of[link->qp_num] : NULL;
	struct library_message answer = {.kind = LIBRARY_ANSWER, .answer = FAKE_SILENT};
	if (message->kind == LIBRARY_ANSWER) {
		if (qp != NULL) {
			fake_answered(qp, message->answer);
		}
		return;
	}
	if (qp != NULL && is_up(qp)) {
		struct fake_packet packet = message->packet;
		packet.data = packet.data != NULL ? bytes : NULL;
		answer.answer = fake_arrive(qp, &packet);
	}
	library_send(link, &answer, NULL);
}

void
library_wire_end(struct library_link *link)
{
	struct fake_qp *qp = link_of[link->qp_num] == link ? fake_qp_of[link->qp_num] : NULL;
	if (qp != NULL) {
		fake_answered(qp, FAKE_SILENT);
	}
}
