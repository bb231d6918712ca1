/* SPDX-License-Identifier: Apache-2.0 */
/* shm_handshake: from connect(2) or accept(2) to UP. The connecting end makes the segment and sends
 * it with its hello; the accepting end answers with its verdict. Each looks at who the other is
 * before it says or maps anything. Thread: the transport's owner. */
#include "transport/shm/shm_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void
set_blob(struct wf_shm_packet *packet, enum wf_shm_packet_type type, const void *blob, size_t bytes)
{
	WF_ASSERT(bytes <= WF_BLOB_ROOM);
	packet->type = (uint16_t)type;
	packet->blob_bytes = (uint32_t)bytes;
	if (bytes > 0) {
		memcpy(packet->blob, blob, bytes);
	}
}

enum weft_status
wf_shm_connect(struct wf_transport *transport, const struct wf_host *to, const void *hello,
	       size_t hello_bytes, void *user, struct wf_conn **out)
{
	struct wf_shm *t = wf_shm_of(transport);
	if (t->places.conn_count >= t->opts.conn_max) {
		return wf_fail(WEFT_NOMEM, "connect to %s: this end has its %u connections",
			       to->name, t->opts.conn_max);
	}
	struct wf_shm_conn *c = wf_shm_conn_create(t, false);
	if (c == NULL) {
		return wf_fail(WEFT_NOMEM, "connect to %s: %zu bytes", to->name, sizeof(*c));
	}
	c->to = *to;
	wf_host_format(to, c->peer, WF_HOST_BYTES + 8);
	enum weft_status st = wf_shm_conn_buffers(c);
	if (st == WEFT_OK) {
		st = wf_shm_segment_create(c);
	}
	if (st != WEFT_OK) {
		wf_shm_conn_destroy(c);
		return st;
	}
	c->visible = true;
	c->conn.user = user;
	c->attempt_ns = wf_now_ns(transport->env) + t->opts.connect_timeout_ns;
	wf_shm_conn_deadline(c, c->attempt_ns);
	set_blob(&c->shake, WF_SHM_HELLO, hello, hello_bytes);
	c->shake.bytes = sizeof(*c->segment);
	if (wf_shm_name_check("connect to", to, false) != WEFT_OK) {
		wf_shm_conn_down(c, WEFT_UNAVAILABLE, "%s", weft_last_error());
	} else {
		wf_shm_connect_try(c);
	}
	*out = &c->conn;
	return WEFT_OK;
}

static void
unreachable(struct wf_shm_conn *c, int err)
{
	if (err == ECONNREFUSED) {
		wf_shm_conn_down(c, WEFT_UNAVAILABLE,
				 "nobody listens there with shm in this network namespace");
	} else {
		wf_shm_conn_down(c, WEFT_UNAVAILABLE, "%s", strerror(err));
	}
}

/* The socket is connected: see who is there, and say hello. */
static void
say_hello(struct wf_shm_conn *c)
{
	pid_t pid = 0;
	if (wf_shm_peer_check(c->fd, &pid) != WEFT_OK) {
		wf_shm_conn_down(c, WEFT_UNAVAILABLE, "%s", weft_last_error());
		return;
	}
	int err = wf_shm_watch(c->t, c->fd, &c->source) == WEFT_OK
			  ? wf_shm_send(c->fd, &c->shake, c->segment_fd)
			  : ENOMEM;
	if (err != 0 && err != ECONNRESET && err != EPIPE) {
		unreachable(c, err);
		return;
	}
	/* Who closed at once may have said why: reading finds it. */
	(void)close(c->segment_fd);
	c->segment_fd = -1;
	c->state = WF_SHM_SHAKING;
	wf_shm_conn_deadline(c, c->attempt_ns);
}

void
wf_shm_connect_try(struct wf_shm_conn *c)
{
	if (c->fd < 0) {
		c->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	}
	if (c->fd < 0) {
		unreachable(c, errno);
		return;
	}
	struct sockaddr_un address;
	socklen_t bytes = wf_shm_address(c->to.port, &address);
	if (connect(c->fd, (const struct sockaddr *)&address, bytes) == 0) {
		say_hello(c);
		return;
	}
	if (errno != EAGAIN && errno != EINTR) {
		unreachable(c, errno);
		return;
	}
	uint64_t retry_ns = wf_now_ns(c->t->transport.env) + WF_SHM_CONNECT_RETRY_NS;
	wf_shm_conn_deadline(c, retry_ns < c->attempt_ns ? retry_ns : c->attempt_ns);
}

void
wf_shm_conn_deny(struct wf_shm_conn *c, enum weft_status status)
{
	struct wf_shm_packet packet = {0};
	set_blob(&packet, WF_SHM_DENY, weft_last_error(), strlen(weft_last_error()));
	(void)wf_shm_send(c->fd, &packet, -1);
	wf_shm_conn_down(c, status, "%s", weft_last_error());
}

/* Accepting end: the first packet. */
static void
take_hello(struct wf_shm_conn *c, const struct wf_shm_mail *mail)
{
	pid_t pid = 0;
	enum weft_status st = WEFT_OK;
	if (mail->packet.type != WF_SHM_HELLO) {
		st = wf_fail(WEFT_PROTOCOL, "its first packet has type %u", mail->packet.type);
	} else if (mail->packet.blob_bytes > c->t->opts.blob_max) {
		st = wf_fail(WEFT_PROTOCOL, "its hello has %u bytes", mail->packet.blob_bytes);
	} else if (mail->packet.bytes != sizeof(*c->segment)) {
		st = wf_fail(WEFT_PROTOCOL,
			     "its segment has %llu bytes, not %zu; start both ends from one "
			     "installation",
			     (unsigned long long)mail->packet.bytes, sizeof(*c->segment));
	} else if (mail->fd_lost) {
		st = wf_fail(WEFT_UNAVAILABLE,
			     "no room: the listener has no descriptor left for its memory; raise "
			     "the limit of open files there (ulimit -n), or try again");
	} else if (mail->fd < 0) {
		st = wf_fail(WEFT_PROTOCOL, "its hello came without a descriptor");
	}
	if (st == WEFT_OK) {
		st = wf_shm_peer_check(c->fd, &pid);
	}
	if (st == WEFT_OK) {
		st = wf_shm_segment_adopt(c, mail->fd);
	}
	if (st == WEFT_OK) {
		st = wf_shm_conn_buffers(c);
	}
	if (st != WEFT_OK) {
		wf_shm_conn_deny(c, st);
		return;
	}
	size_t used = strlen(c->peer);
	snprintf(c->peer + used, sizeof(c->peer) - used, " (pid %d)", (int)pid);
	memcpy(&c->shake, &mail->packet, sizeof(c->shake));
	wf_places_keep(&c->t->places, &c->place);
	c->state = WF_SHM_DECIDED;
}

/* Connecting end: the answer. */
static void
take_answer(struct wf_shm_conn *c, const struct wf_shm_mail *mail)
{
	const struct wf_shm_packet *packet = &mail->packet;
	if (packet->type == WF_SHM_DENY) {
		char text[WF_WHY_BYTES];
		wf_peer_text(packet->blob, packet->blob_bytes, text);
		wf_shm_conn_down(c, WEFT_UNAVAILABLE, "sent away: %s", text);
		return;
	}
	if (packet->type != WF_SHM_ACCEPT && packet->type != WF_SHM_REFUSE) {
		wf_shm_conn_down(c, WEFT_PROTOCOL, "its first packet has type %u", packet->type);
		return;
	}
	if (packet->blob_bytes > c->t->opts.blob_max) {
		wf_shm_conn_down(c, WEFT_PROTOCOL, "its verdict has %u bytes", packet->blob_bytes);
		return;
	}
	memcpy(&c->shake, packet, sizeof(c->shake));
	c->state = WF_SHM_DECIDED;
}

static bool
awaits_packet(const struct wf_shm_conn *c)
{
	return c->state == WF_SHM_SHAKING || c->state == WF_SHM_WAITING;
}

void
wf_shm_shake_read(struct wf_shm_conn *c)
{
	struct wf_shm_mail mail;
	memset(&mail.packet, 0, sizeof(mail.packet));
	for (unsigned i = 0; i < WF_SHM_MAIL_BUDGET && c->readable && awaits_packet(c); i++) {
		int got = wf_shm_receive_mail(c->fd, &mail);
		if (got == 0) {
			c->readable = false;
		} else if (got == -1) {
			c->readable = false;
			c->eof = true;
			wf_shm_conn_ended(c, WF_SHM_OPEN);
		} else if (got == -2) {
			wf_shm_conn_down(c, WEFT_PROTOCOL, "%s", weft_last_error());
		} else if (mail.wake && c->incoming && c->state == WF_SHM_SHAKING) {
			wf_shm_conn_down(c, WEFT_PROTOCOL, "its first packet is a wake-up");
		} else if (mail.wake) {
			continue;
		} else if (c->state == WF_SHM_WAITING) {
			wf_shm_conn_down(c, WEFT_PROTOCOL, "spoke before it was answered");
		} else if (c->incoming) {
			take_hello(c, &mail);
		} else {
			take_answer(c, &mail);
		}
		if (got == 1 && mail.fd >= 0) {
			(void)close(mail.fd);
		}
	}
	if (c->readable) { /* who floods it with wake-ups */
		c->t->work_left = true;
	}
}

static void
count_up(struct wf_shm_conn *c)
{
	c->state = WF_SHM_UP;
	c->was_up = true;
	c->deadline_ns = WF_NEVER;
	c->t->up_count++;
	c->t->info.conns_up++;
}

void
wf_shm_shake_emit(struct wf_shm_conn *c, struct wf_events *events)
{
	if (!c->incoming && c->shake.type == WF_SHM_REFUSE) {
		wf_shm_conn_down(c, WEFT_REFUSED, "refused by the peer");
		return;
	}
	if (wf_events_full(events)) {
		return;
	}
	if (c->incoming && !wf_places_take(&c->t->places, &c->place)) {
		wf_shm_conn_deny(c, wf_fail(WEFT_UNAVAILABLE,
					    "no room beside %u connections; try again",
					    c->t->places.conn_count));
		return;
	}
	struct wf_event *event = wf_events_add(events, &c->conn, WF_EVENT_UP);
	event->up.incoming = c->incoming;
	event->up.blob = c->shake.blob;
	event->up.blob_bytes = c->shake.blob_bytes;
	if (c->incoming) {
		c->visible = true;
		c->state = WF_SHM_WAITING;
		c->deadline_ns = WF_NEVER;
	} else {
		count_up(c);
	}
}

static enum weft_status
check_waiting(const struct wf_shm_conn *c)
{
	if (c->state == WF_SHM_WAITING) {
		return WEFT_OK;
	}
	if (c->state >= WF_SHM_DYING) {
		return wf_fail(WEFT_CLOSED, "answer to %s: the connection has gone", c->peer);
	}
	return wf_fail(WEFT_INVALID, "answer to %s: it does not wait for one", c->peer);
}

enum weft_status
wf_shm_answer(struct wf_conn *conn, bool accept, const void *verdict, size_t verdict_bytes)
{
	struct wf_shm_conn *c = wf_shm_conn_of(conn);
	enum weft_status st = check_waiting(c);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_shm_packet packet = {0};
	set_blob(&packet, accept ? WF_SHM_ACCEPT : WF_SHM_REFUSE, verdict, verdict_bytes);
	int err = wf_shm_send(c->fd, &packet, -1);
	if (accept) {
		count_up(c);
		if (err != 0) {
			c->readable = true; /* reading finds how it ended */
		}
		return WEFT_OK;
	}
	wf_places_refuse(&c->t->places, &c->place);
	c->disconnected = true;
	wf_shm_conn_down(c, WEFT_CLOSED, "refused by this end");
	return WEFT_OK;
}
