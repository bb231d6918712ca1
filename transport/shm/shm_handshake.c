/* SPDX-License-Identifier: Apache-2.0 */
/* shm_handshake: from connect(2) or accept(2) to UP. The connecting end creates the segment and
 * sends it with its hello; the accepting end answers with its verdict. Each checks the other's
 * identity before it sends or maps anything. Thread: the transport's owner. */
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
	struct wf_life *life = NULL;
	enum weft_status st = wf_life_begin(wf_medium_of(transport), to, user, &life);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_shm_conn *c = wf_shm_conn_of(&life->conn);
	wf_shm_conn_init(c);
	st = wf_shm_conn_buffers(c);
	if (st == WEFT_OK) {
		st = wf_shm_segment_create(c);
	}
	if (st != WEFT_OK) {
		wf_life_destroy(life);
		return st;
	}
	set_blob(&c->shake, WF_SHM_HELLO, hello, hello_bytes);
	c->shake.bytes = sizeof(*c->segment);
	if (wf_shm_name_check("connect to", to, false) != WEFT_OK) {
		wf_life_down(&c->life, WEFT_UNAVAILABLE, "%s", weft_last_error());
	} else {
		wf_shm_connect_try(c);
	}
	*out = &life->conn;
	return WEFT_OK;
}

static void
unreachable(struct wf_shm_conn *c, int err)
{
	if (err == ECONNREFUSED) {
		wf_life_down(&c->life, WEFT_UNAVAILABLE,
			     "nobody listens there with shm in this network namespace");
	} else {
		wf_life_down(&c->life, WEFT_UNAVAILABLE, "%s", strerror(err));
	}
}

/* The socket is connected: checks the peer's identity, and sends the hello. */
static void
send_hello(struct wf_shm_conn *c)
{
	pid_t pid = 0;
	if (wf_shm_peer_check(c->fd, &pid) != WEFT_OK) {
		wf_life_down(&c->life, WEFT_UNAVAILABLE, "%s", weft_last_error());
		return;
	}
	int err = wf_loop_watch(&c->t->medium.loop, c->fd, WF_SHM_EDGES, &c->source) == WEFT_OK
			  ? wf_shm_send(c->fd, &c->shake, c->segment_fd)
			  : ENOMEM;
	if (err != 0 && err != ECONNRESET && err != EPIPE) {
		unreachable(c, err);
		return;
	}
	/* A peer that closed at once may have sent the reason: reading finds it. */
	(void)close(c->segment_fd);
	c->segment_fd = -1;
	wf_life_enter(&c->life, WF_LIFE_SHAKING);
	wf_life_deadline(&c->life, c->life.attempt_ns);
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
	socklen_t bytes = wf_shm_address(c->life.to.port, &address);
	if (connect(c->fd, (const struct sockaddr *)&address, bytes) == 0) {
		send_hello(c);
		return;
	}
	if (errno != EAGAIN && errno != EINTR) {
		unreachable(c, errno);
		return;
	}
	uint64_t retry_ns = wf_now_ns(c->t->medium.transport.env) + WF_SHM_CONNECT_RETRY_NS;
	wf_life_deadline(&c->life, retry_ns < c->life.attempt_ns ? retry_ns : c->life.attempt_ns);
}

void
wf_shm_deny(struct wf_life *life, const char *why)
{
	struct wf_shm_packet packet = {0};
	set_blob(&packet, WF_SHM_DENY, why, strlen(why));
	(void)wf_shm_send(wf_shm_conn_of(&life->conn)->fd, &packet, -1);
}

/* Accepting end: handles the first packet. */
static void
on_hello(struct wf_shm_conn *c, const struct wf_shm_mail *mail)
{
	pid_t pid = 0;
	enum weft_status st = WEFT_OK;
	if (mail->packet.type != WF_SHM_HELLO) {
		st = wf_fail(WEFT_PROTOCOL, "its first packet has type %u", mail->packet.type);
	} else if (mail->packet.blob_bytes > c->t->medium.opts.blob_max) {
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
		wf_life_turn_away(&c->life, st, "%s", weft_last_error());
		return;
	}
	size_t used = strlen(c->life.peer);
	snprintf(c->life.peer + used, sizeof(c->life.peer) - used, " (pid %d)", (int)pid);
	memcpy(&c->shake, &mail->packet, sizeof(c->shake));
	wf_life_decide(&c->life, c->shake.blob, c->shake.blob_bytes, false);
}

/* Connecting end: handles the answer. */
static void
on_answer(struct wf_shm_conn *c, const struct wf_shm_mail *mail)
{
	const struct wf_shm_packet *packet = &mail->packet;
	if (packet->type == WF_SHM_DENY) {
		char text[WF_WHY_BYTES];
		wf_peer_text(packet->blob, packet->blob_bytes, text);
		wf_life_down(&c->life, WEFT_UNAVAILABLE, "sent away: %s", text);
		return;
	}
	if (packet->type != WF_SHM_ACCEPT && packet->type != WF_SHM_REFUSE) {
		wf_life_down(&c->life, WEFT_PROTOCOL, "its first packet has type %u", packet->type);
		return;
	}
	if (packet->blob_bytes > c->t->medium.opts.blob_max) {
		wf_life_down(&c->life, WEFT_PROTOCOL, "its verdict has %u bytes",
			     packet->blob_bytes);
		return;
	}
	memcpy(&c->shake, packet, sizeof(c->shake));
	wf_life_decide(&c->life, c->shake.blob, c->shake.blob_bytes, packet->type == WF_SHM_REFUSE);
}

static bool
awaits_packet(const struct wf_shm_conn *c)
{
	return c->life.state == WF_LIFE_SHAKING || c->life.state == WF_LIFE_WAITING;
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
			wf_life_down(&c->life, WEFT_PROTOCOL, "%s", weft_last_error());
		} else if (mail.wake && c->life.incoming && c->life.state == WF_LIFE_SHAKING) {
			wf_life_down(&c->life, WEFT_PROTOCOL, "its first packet is a wake-up");
		} else if (mail.wake) {
			continue;
		} else if (c->life.state == WF_LIFE_WAITING) {
			wf_life_down(&c->life, WEFT_PROTOCOL, "sent data before it was answered");
		} else if (c->life.incoming) {
			on_hello(c, &mail);
		} else {
			on_answer(c, &mail);
		}
		if (got == 1 && mail.fd >= 0) {
			(void)close(mail.fd);
		}
	}
	if (c->readable) { /* a peer that floods it with wake-ups */
		c->t->medium.loop.left = true;
	}
}

bool
wf_shm_answer(struct wf_life *life, bool accept, const void *verdict, size_t verdict_bytes)
{
	struct wf_shm_conn *c = wf_shm_conn_of(&life->conn);
	struct wf_shm_packet packet = {0};
	set_blob(&packet, accept ? WF_SHM_ACCEPT : WF_SHM_REFUSE, verdict, verdict_bytes);
	if (wf_shm_send(c->fd, &packet, -1) != 0) {
		c->readable = true; /* reading finds out how it ended */
	}
	return true;
}
