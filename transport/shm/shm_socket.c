/* SPDX-License-Identifier: Apache-2.0 */
/* shm_socket: packets, descriptors and wake-ups on the Unix socket of a connection. Every call
 * passes MSG_DONTWAIT itself, because the other process may change the flags of a shared
 * descriptor. Thread: the transport's owner. */
#include "transport/shm/shm_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/syscalls.h"

#define FDS_MAX 2 /* a control buffer for one has room for two */

int
wf_shm_send(int fd, const struct wf_shm_packet *packet, int pass_fd)
{
	WF_ASSERT(packet->blob_bytes <= WF_BLOB_ROOM);
	struct wf_shm_packet copy = *packet;
	copy.magic = WF_SHM_MAGIC;
	copy.version = WF_SHM_VERSION;
	struct iovec iov = {.iov_base = &copy, .iov_len = WF_SHM_PACKET_BYTES + packet->blob_bytes};
	alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	if (pass_fd >= 0) {
		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
		struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &pass_fd, sizeof(int));
	}
	ssize_t n = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	return n < 0 ? errno : 0;
}

void
wf_shm_send_wake(int fd)
{
	uint8_t byte = 1;
	ssize_t n = wf_sys_send(fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	(void)n; /* EAGAIN: enough bytes are queued to wake it; otherwise reading finds its end */
}

/* Keeps one descriptor, and closes any others that came with it. */
static int
keep_fd(struct msghdr *msg)
{
	int kept = -1;
	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg); cmsg != NULL;
	     cmsg = CMSG_NXTHDR(msg, cmsg)) {
		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS) {
			continue;
		}
		size_t count = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd = -1;
			memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(int), sizeof(int));
			if (kept >= 0) {
				(void)close(kept);
			}
			kept = fd;
		}
	}
	return kept;
}

enum weft_status
wf_shm_packet_check(const struct wf_shm_packet *packet, size_t bytes)
{
	if (bytes < WF_SHM_PACKET_BYTES) {
		return wf_fail(WEFT_PROTOCOL, "a packet of %zu bytes; %zu are the least", bytes,
			       WF_SHM_PACKET_BYTES);
	}
	if (packet->magic != WF_SHM_MAGIC) {
		return wf_fail(WEFT_PROTOCOL, "a packet with magic %#x, not %#x", packet->magic,
			       WF_SHM_MAGIC);
	}
	if (packet->version != WF_SHM_VERSION) {
		return wf_fail(WEFT_PROTOCOL,
			       "speaks version %u of shm, this end %u; start both from one "
			       "installation",
			       packet->version, WF_SHM_VERSION);
	}
	if (packet->blob_bytes > WF_BLOB_ROOM ||
	    packet->blob_bytes != bytes - WF_SHM_PACKET_BYTES) {
		return wf_fail(WEFT_PROTOCOL, "a packet of %zu bytes says that %u follow its head",
			       bytes, packet->blob_bytes);
	}
	return WEFT_OK;
}

/* What recvmsg needs to fill one mail. */
struct room {
	struct iovec iov;
	alignas(struct cmsghdr) char control[CMSG_SPACE(FDS_MAX * sizeof(int))];
};

static struct msghdr
make_room(struct room *room, struct wf_shm_mail *mail)
{
	room->iov = (struct iovec){.iov_base = &mail->packet, .iov_len = sizeof(mail->packet)};
	return (struct msghdr){.msg_iov = &room->iov,
			       .msg_iovlen = 1,
			       .msg_control = room->control,
			       .msg_controllen = sizeof(room->control)};
}

/* `bytes` were received, 0: the end. Returns as wf_shm_receive_mail does. */
static int
open_mail(struct msghdr *msg, size_t bytes, struct wf_shm_mail *out)
{
	out->fd = keep_fd(msg);
	out->fd_lost = out->fd < 0 && (msg->msg_flags & MSG_CTRUNC) != 0;
	out->wake = bytes == 1 && out->fd < 0;
	if (out->wake || (bytes > 0 && wf_shm_packet_check(&out->packet, bytes) == WEFT_OK)) {
		return 1;
	}
	if (out->fd >= 0) {
		(void)close(out->fd);
	}
	return bytes > 0 ? -2 : -1;
}

int
wf_shm_receive_mail(int fd, struct wf_shm_mail *out)
{
	struct room room;
	struct msghdr msg;
	ssize_t n = -1;
	/* ECONNRESET is reported once, before what the peer had sent: it closed with unread mail.
	 */
	for (int tries = 0; tries < 3 && n < 0; tries++) {
		msg = make_room(&room, out);
		n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (n < 0 && errno != EINTR && errno != ECONNRESET) {
			return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
		}
	}
	return n < 0 ? -1 : open_mail(&msg, (size_t)n, out);
}

static void
on_packet(struct wf_shm_conn *c, const struct wf_shm_mail *mail)
{
	const struct wf_shm_packet *packet = &mail->packet;
	if (packet->type != WF_SHM_REGION) {
		wf_life_down(&c->life, WEFT_PROTOCOL, "a packet of type %u", packet->type);
	} else if (mail->fd_lost) {
		wf_life_down(&c->life, WEFT_LOST,
			     "this process has no descriptor left for its region %u; raise the "
			     "limit of open files (ulimit -n)",
			     packet->region & 0xff);
	} else if (mail->fd < 0) {
		wf_life_down(&c->life, WEFT_PROTOCOL, "its region %u came without a descriptor",
			     packet->region & 0xff);
	} else if (c->life.state == WF_LIFE_UP) {
		enum weft_status st =
			wf_shm_foreign_add(c, packet->region, packet->bytes, mail->fd);
		if (st != WEFT_OK) {
			wf_life_down(&c->life, st == WEFT_PROTOCOL ? st : WEFT_LOST, "%s",
				     weft_last_error());
		}
	}
}

/* `got`: as wf_shm_receive_mail returned it, with the mail if it is 1. */
static void
handle_mail(struct wf_shm_conn *c, int got, const struct wf_shm_mail *mail)
{
	if (got == 0) {
		c->readable = false;
		c->rings_unread = 0;
	} else if (got == -1) {
		c->readable = false;
		c->eof = true;
	} else if (got == -2) {
		wf_life_down(&c->life, WEFT_PROTOCOL, "%s", weft_last_error());
	} else if (!mail->wake) {
		on_packet(c, mail);
	}
	if (got == 1 && mail->fd >= 0) {
		(void)close(mail->fd);
	}
}

/* Reads in one call what has woken this end lately. An error is left to who reads on. */
static void
read_rings(struct wf_shm_conn *c)
{
	struct wf_shm_mail mail[WF_SHM_RINGS_READ];
	struct room room[WF_SHM_RINGS_READ];
	struct mmsghdr msg[WF_SHM_RINGS_READ];
	for (unsigned i = 0; i < WF_SHM_RINGS_READ; i++) {
		msg[i] = (struct mmsghdr){.msg_hdr = make_room(&room[i], &mail[i])};
	}
	int count = recvmmsg(c->fd, msg, WF_SHM_RINGS_READ, MSG_DONTWAIT | MSG_CMSG_CLOEXEC, NULL);
	for (int i = 0; i < count; i++) {
		int got = open_mail(&msg[i].msg_hdr, msg[i].msg_len, &mail[i]);
		if (!c->eof && c->life.state < WF_LIFE_DYING) {
			handle_mail(c, got, &mail[i]);
		} else if (got == 1 && mail[i].fd >= 0) {
			(void)close(mail[i].fd);
		}
	}
}

void
wf_shm_read_socket(struct wf_shm_conn *c)
{
	for (; c->rings_unread >= WF_SHM_RINGS_READ && c->readable && c->life.state == WF_LIFE_UP;
	     c->rings_unread -= WF_SHM_RINGS_READ) {
		read_rings(c);
	}
	for (unsigned i = 0; i < WF_SHM_MAIL_BUDGET && c->readable && c->life.state < WF_LIFE_DYING;
	     i++) {
		struct wf_shm_mail mail;
		handle_mail(c, wf_shm_receive_mail(c->fd, &mail), &mail);
	}
	if (c->readable) {
		c->t->medium.loop.left = true;
	}
}
