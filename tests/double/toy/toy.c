/* SPDX-License-Identifier: Apache-2.0 */
/* toy: a transport over two pipes, one in each direction, which carry frames: a head (wire/head.h)
 * and body_bytes behind it. The connecting end makes both, writes its hello into one, and passes
 * the peer's ends through a Unix socket, which is closed after that. A pipe takes up to PIPE_BUF
 * bytes as a whole or not at all, so hello, verdict and CLOSE are never cut; and what was written
 * stays readable when the writer has closed, so none lingers. Thread: the transport's owner. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "tests/double/toy/toy.h"
#include "transport/doors.h"
#include "transport/life.h"
#include "wire/head.h"
#include "wire/path.h"

#define BUFFER_BYTES 65536u
#define OPS_MAX 64u        /* taken and not DONE, where op_max is not less */
#define PORT_COUNT 0x8000u /* the upper half of all, that port 0 picks from */

WF_STATIC_ASSERT(WF_HEAD_BYTES + WF_BLOB_ROOM <= PIPE_BUF, "hello and verdict go in as a whole");

/* Types of frames of service TRANSPORT. */
enum frame {
	FRAME_FIRST = 1, /* of either end; body: the hello, or the verdict of one that accepts */
	FRAME_REFUSE,    /* the only one of an end that does not; body: the verdict */
	FRAME_PUT,       /* slice: tag, region: grant, offset, request_id: nonce; body: the bytes */
	FRAME_CLOSE,     /* the last of either end; instead of an answer, body: why */
};

/* As pipe2 gives them; PEER_OUT and PEER_IN until they are passed. Accepting end: IN is the socket
 * that the pipes come through until they are here. */
enum { IN, PEER_OUT, PEER_IN, OUT, FD_COUNT };

/* An operation that was taken. */
struct entry {
	uint64_t cookie;
	const uint8_t *body; /* SEND: the copy */
	uint64_t body_bytes;
	uint8_t head[WF_HEAD_BYTES], copy[WF_MSG_BODY_MAX];
};

struct toy_conn {
	struct wf_life life; /* first */
	struct wf_loop_ready ready;
	struct wf_loop_source source; /* of both pipes, and of the socket that they come through */
	int fd[FD_COUNT];             /* -1: none */
	bool readable, writable;      /* no call said EAGAIN since the last edge */
	bool put_open, stalled;       /* stalled: a whole frame waits for room for its event */
	uint64_t posted, sent, done;  /* entry i is at i % OPS_MAX */
	uint64_t out_bytes;           /* of entry `sent` that are in the pipe */
	uint32_t begin, end;          /* of what is in the buffer */
	uint32_t heads_used;          /* of this poll; the next one is for decoding */
	struct wf_head heads[BUFFER_BYTES / WF_HEAD_BYTES + 1];
	struct wf_landing put; /* while put_open */
	uint8_t blob[WF_BLOB_ROOM];
	struct entry entry[OPS_MAX];
	uint8_t buffer[BUFFER_BYTES]; /* events point into it until the next poll */
};

struct toy {
	struct wf_medium medium; /* first */
	struct wf_doors doors;
};

static struct toy_conn *
conn_of(struct wf_life *life)
{
	return (struct toy_conn *)life;
}

static void
ready(struct wf_life *life)
{
	wf_loop_push(&life->medium->loop, &conn_of(life)->ready);
}

/* As much as the pipe takes. 0: it is full, or nobody reads it; then reading finds the end, behind
 * what the peer wrote before it went. */
static size_t
pipe_write(struct toy_conn *c, const void *at, size_t bytes)
{
	ssize_t n = write(c->fd[OUT], at, bytes);
	c->writable = n >= 0;
	c->life.medium->info.bytes_sent += n > 0 ? (uint64_t)n : 0;
	return n > 0 ? (size_t)n : 0;
}

/* Between two entries only. False: nothing of it went in. */
static bool
control_write(struct toy_conn *c, enum frame type, const void *body, size_t bytes)
{
	uint8_t frame[WF_HEAD_BYTES + WF_BLOB_ROOM];
	const struct wf_head head = {.type = (uint8_t)type, .body_bytes = bytes};
	wf_head_encode(&head, frame);
	memcpy(frame + WF_HEAD_BYTES, bytes > 0 ? body : "", bytes);
	return pipe_write(c, frame, WF_HEAD_BYTES + bytes) > 0;
}

static void
flush(struct toy_conn *c)
{
	struct wf_transport_info *info = &c->life.medium->info;
	/* A peer that reads all the while does not keep others waiting. */
	for (unsigned i = 0; i < 2 * OPS_MAX && c->writable && c->sent < c->posted; i++) {
		const struct entry *entry = &c->entry[c->sent % OPS_MAX];
		uint64_t end = WF_HEAD_BYTES + entry->body_bytes;
		uint64_t out = c->out_bytes;
		out += out < WF_HEAD_BYTES
			       ? pipe_write(c, entry->head + out, WF_HEAD_BYTES - out)
			       : pipe_write(c, entry->body + (out - WF_HEAD_BYTES), end - out);
		c->out_bytes = out < end ? out : 0;
		if (out == end) {
			c->sent++;
			(*(entry->body != entry->copy ? &info->puts_sent : &info->msgs_sent))++;
		}
	}
}

/* From DYING on, of all that was taken. */
static bool
finish(struct wf_life *life, struct wf_events *events)
{
	struct toy_conn *c = conn_of(life);
	uint64_t end = life->state < WF_LIFE_DYING ? c->sent : c->posted;
	for (; c->done < end && !wf_events_full(events); c->done++) {
		struct wf_event *event = wf_events_add(events, &life->conn, WF_EVENT_DONE);
		event->done.cookie = c->entry[c->done % OPS_MAX].cookie;
		event->done.status = c->done < c->sent ? WEFT_OK : WEFT_LOST;
	}
	return c->done == c->posted;
}

static void
entry_fill(struct entry *entry, const struct wf_op *op)
{
	struct wf_head head = {.type = FRAME_PUT, .slice = op->tag, .offset = op->offset};
	entry->cookie = op->cookie;
	entry->body_bytes = op->kind == WF_OP_PUT ? op->bytes : op->body_bytes;
	if (op->kind == WF_OP_PUT) {
		wf_grant_key_read(&op->key, &head.region, &head.request_id);
		entry->body = op->src;
	} else {
		head = *op->head;
		head.version = 0;
		bool has_crc = (head.flags & WF_HEAD_PAYLOAD_CRC) != 0;
		head.payload_crc = has_crc ? wf_crc32c(0, op->body, op->body_bytes) : 0;
		entry->body = entry->copy;
		memcpy(entry->copy, op->body_bytes > 0 ? op->body : "", op->body_bytes);
	}
	head.body_bytes = entry->body_bytes;
	wf_head_encode(&head, entry->head);
}

static enum weft_status
toy_post(struct wf_conn *conn, const struct wf_op *ops, unsigned op_count, unsigned *taken)
{
	struct toy_conn *c = conn_of(wf_life_of(conn));
	struct wf_medium *medium = c->life.medium;
	uint32_t max = medium->opts.op_max < OPS_MAX ? medium->opts.op_max : OPS_MAX;
	enum weft_status st = wf_life_check_up(&c->life, "post to");
	for (; st == WEFT_OK && *taken < op_count; ++*taken) {
		const struct wf_op *op = &ops[*taken];
		if (op->kind == WF_OP_PUT &&
		    !wf_regions_hold(&medium->regions, op->region, op->src, op->bytes)) {
			return wf_fail(WEFT_INVALID, "put: not in region %u", op->region);
		}
		if (c->posted - c->done == max) {
			medium->info.posts_again++;
			return WEFT_AGAIN;
		}
		entry_fill(&c->entry[c->posted++ % OPS_MAX], op);
		ready(&c->life);
	}
	return st;
}

/* What is there, into the buffer. False: the pipe is dry, or the connection down. */
static bool
pipe_read(struct toy_conn *c)
{
	ssize_t n = read(c->fd[IN], c->buffer + c->end, BUFFER_BYTES - c->end);
	if (n > 0) {
		c->end += (uint32_t)n;
		c->life.medium->info.bytes_received += (uint64_t)n;
		c->life.heard_bytes += c->life.state == WF_LIFE_SHAKING ? (uint32_t)n : 0;
		wf_places_spoke(&c->life.medium->places, &c->life.place);
	} else if (n < 0 && errno == EAGAIN) {
		c->readable = false;
	} else {
		wf_life_lost(&c->life, WEFT_LOST, "the peer closed without warning");
	}
	return n > 0;
}

/* The first frame of the peer is here. */
static void
shake(struct toy_conn *c, const struct wf_head *head, const uint8_t *body)
{
	bool refused = !c->life.incoming && head->type == FRAME_REFUSE;
	if (!c->life.incoming && head->type == FRAME_CLOSE) {
		char text[WF_WHY_BYTES];
		wf_peer_text(body, head->body_bytes, text);
		wf_life_down(&c->life, WEFT_UNAVAILABLE, "closed instead of answering: %s", text);
	} else if ((head->type == FRAME_FIRST || refused) &&
		   head->body_bytes <= c->life.medium->opts.blob_max) {
		memcpy(c->blob, body, head->body_bytes);
		wf_life_decide(&c->life, c->blob, head->body_bytes, refused);
	} else {
		wf_life_down(&c->life, WEFT_PROTOCOL, "its first frame has type %u", head->type);
	}
}

static void
put_begin(struct toy_conn *c, const struct wf_head *head)
{
	const struct wf_put_claim claim = {.grant = head->region,
					   .tag = head->slice,
					   .nonce = head->request_id,
					   .offset = head->offset,
					   .bytes = head->body_bytes};
	bool fits = claim.bytes > 0 && claim.bytes <= c->life.medium->opts.put_bytes_max;
	enum weft_status st = fits ? wf_grants_open(&c->life.grants, &claim, &c->put)
				   : wf_put_claim_refuse(claim, "its length is not allowed");
	if (st != WEFT_OK) {
		wf_life_down(&c->life, WEFT_PROTOCOL, "%s", weft_last_error());
	}
	c->put_open = st == WEFT_OK;
}

/* What of it is here, to where it belongs. False: more is to come. */
static bool
put_go_on(struct toy_conn *c, struct wf_events *events)
{
	uint32_t here = c->end - c->begin;
	uint32_t n = here < c->put.left ? here : (uint32_t)c->put.left;
	memcpy(c->put.at, c->buffer + c->begin, n);
	c->begin += n;
	c->put.at += n;
	c->put.left -= n;
	c->stalled = c->put.left == 0 && wf_events_full(events);
	if (c->put.left > 0 || c->stalled) {
		return false;
	}
	wf_grants_landed(&c->life.grants, &c->put,
			 wf_events_add(events, &c->life.conn, WF_EVENT_PUT));
	c->put_open = false;
	c->life.medium->info.puts_received++;
	return true;
}

/* False: it is not all here, or there is no room for its event, or it was the last. */
static bool
frame_parse(struct toy_conn *c, struct wf_events *events)
{
	const enum wf_life_state state = c->life.state;
	const uint8_t *at = c->buffer + c->begin;
	uint32_t here = c->end - c->begin;
	struct wf_head *head = &c->heads[c->heads_used];
	if (here < WF_HEAD_BYTES) {
		return false;
	}
	bool sound = wf_head_decode(at, UINT64_MAX, head) == WEFT_OK;
	bool ours = sound && head->service == WF_SERVICE_TRANSPORT;
	bool is_put = ours && head->type == FRAME_PUT && state == WF_LIFE_UP;
	bool fits = sound && (is_put || head->body_bytes <= WF_MSG_BODY_MAX);
	uint32_t bytes = WF_HEAD_BYTES + (is_put || !fits ? 0 : (uint32_t)head->body_bytes);
	bool is_msg = fits && !ours && state == WF_LIFE_UP;
	c->stalled = is_msg && here >= bytes && wf_events_full(events);
	if ((fits && here < bytes) || c->stalled) {
		return false;
	}
	if (is_put) {
		put_begin(c, head);
	} else if (is_msg) {
		struct wf_event *event = wf_events_add(events, &c->life.conn, WF_EVENT_MSG);
		event->msg.head = head;
		event->msg.body = at + WF_HEAD_BYTES;
		c->heads_used++;
		c->life.medium->info.msgs_received++;
	} else if (fits && ours && state == WF_LIFE_SHAKING) {
		shake(c, head, at + WF_HEAD_BYTES);
	} else if (fits && ours && head->type == FRAME_CLOSE) {
		wf_life_down(&c->life, WEFT_CLOSED, "closed by the peer");
	} else {
		wf_life_down(&c->life, WEFT_PROTOCOL, "it sent a frame that is not allowed here");
	}
	c->begin += bytes;
	return c->life.state == state;
}

/* Once in a poll, for it moves what is in the buffer; one buffer full is what a poll takes in. */
static void
receive(struct toy_conn *c, struct wf_events *events)
{
	const enum wf_life_state state = c->life.state;
	memmove(c->buffer, c->buffer + c->begin, c->end - c->begin);
	c->end -= c->begin;
	c->begin = 0;
	c->heads_used = 0;
	c->stalled = false;
	c->put_open = c->put_open && state == WF_LIFE_UP;
	do {
		c->begin = state == WF_LIFE_DRAINING ? c->end : c->begin; /* the peer can go on */
		while (c->put_open ? put_go_on(c, events) : frame_parse(c, events)) {
		}
	} while (c->life.state == state && !c->stalled && c->readable && c->end < BUFFER_BYTES &&
		 pipe_read(c));
}

static void
notify(struct wf_loop_source *source, uint32_t mask)
{
	struct toy_conn *c = WF_LOOP_OWNER(source, struct toy_conn, source);
	c->readable = c->readable || (mask & (EPOLLIN | EPOLLHUP)) != 0;
	c->writable = c->writable || (mask & EPOLLOUT) != 0;
	ready(&c->life);
}

static struct toy_conn *
conn_init(struct wf_life *life)
{
	struct toy_conn *c = conn_of(life);
	c->source.notify = notify;
	c->writable = true;
	memset(c->fd, 0xff, sizeof(c->fd));
	return c;
}

static void
close_fds(struct toy_conn *c, unsigned first, unsigned last)
{
	for (unsigned i = first; i <= last; i++) {
		wf_loop_close_fd(&c->life.medium->loop, &c->fd[i]); /* -1 does nothing */
	}
}

static bool
watch_pipes(struct toy_conn *c)
{
	struct wf_loop *loop = &c->life.medium->loop;
	return wf_loop_watch(loop, c->fd[IN], EPOLLIN | EPOLLET, &c->source) == WEFT_OK &&
	       wf_loop_watch(loop, c->fd[OUT], EPOLLOUT | EPOLLET, &c->source) == WEFT_OK;
}

/* A socket that listens at `at`, a name of the abstract namespace, or is connected to who does; or
 * -errno. */
static int
door_socket(const struct wf_host *at, bool listens)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	const struct sockaddr *address = (const struct sockaddr *)&name;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	(void)snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "weft-toy %u %.90s", at->port,
		       at->name); /* the end of a long name does not count */
	if (listens ? bind(fd, address, sizeof(name)) == 0 && listen(fd, WF_DOORS_BACKLOG) == 0
		    : connect(fd, address, sizeof(name)) == 0) {
		return fd;
	}
	int err = errno;
	(void)close(fd);
	return -err;
}

/* Two descriptors beside one byte: sent, or received. 0, or errno. */
static int
pass_pipes(int socket_fd, int pair[2], bool send)
{
	char byte = 0;
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {0};
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control};
	msg.msg_controllen = sizeof(control);
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
	*head = (struct cmsghdr){CMSG_LEN(2 * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
	memcpy(CMSG_DATA(head), pair, 2 * sizeof(int));
	ssize_t n = send ? sendmsg(socket_fd, &msg, MSG_NOSIGNAL)
			 : recvmsg(socket_fd, &msg, MSG_CMSG_CLOEXEC);
	head = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	if (!send && head != NULL) {
		memcpy(pair, CMSG_DATA(head), head->cmsg_len - CMSG_LEN(0));
	}
	return n < 0 ? errno : 0;
}

static int
dial(struct toy_conn *c, const void *hello, size_t hello_bytes)
{
	if (pipe2(&c->fd[IN], O_NONBLOCK | O_CLOEXEC) != 0 ||
	    pipe2(&c->fd[PEER_IN], O_NONBLOCK | O_CLOEXEC) != 0) {
		return errno;
	}
	if (!watch_pipes(c) || !control_write(c, FRAME_FIRST, hello, hello_bytes)) {
		return ENOMEM;
	}
	int fd = door_socket(&c->life.to, false);
	int err = fd < 0 ? -fd : pass_pipes(fd, &c->fd[PEER_OUT], true);
	if (fd >= 0) {
		(void)close(fd);
	}
	close_fds(c, PEER_OUT, PEER_IN); /* as long as they are open here, nothing ends */
	return err;
}

static enum weft_status
toy_connect(struct wf_transport *transport, const struct wf_host *to, const void *hello,
	    size_t hello_bytes, void *user, struct wf_conn **out)
{
	struct wf_life *life = NULL;
	enum weft_status st = wf_life_begin(wf_medium_of(transport), to, user, &life);
	if (st != WEFT_OK) {
		return st;
	}
	int err = dial(conn_init(life), hello, hello_bytes);
	if (err == 0) {
		wf_life_enter(life, WF_LIFE_SHAKING);
	} else {
		wf_life_down(life, WEFT_UNAVAILABLE, "%s", strerror(err));
	}
	*out = &life->conn;
	return WEFT_OK;
}

/* Somebody stands at the door; its pipes follow. */
static void
let_in(struct wf_medium *medium, int fd, const struct sockaddr_storage *peer,
       const struct wf_door *door)
{
	char text[WF_LIFE_PEER_BYTES];
	(void)snprintf(text, sizeof(text), "peer at %s:%u", door->at.name, door->at.port);
	struct wf_life *life = wf_life_come(medium, text);
	if (life == NULL) {
		(void)close(fd);
		return;
	}
	conn_init(life)->fd[IN] = fd;
	if (wf_loop_watch(&medium->loop, fd, EPOLLIN | EPOLLET, &conn_of(life)->source) !=
	    WEFT_OK) {
		wf_life_down(life, WEFT_NOMEM, "%s", weft_last_error());
	}
}

static void
receive_pipes(struct toy_conn *c)
{
	int pair[2] = {-1, -1};
	if (pass_pipes(c->fd[IN], pair, false) == EAGAIN) {
		c->readable = false;
		return;
	}
	wf_loop_close_fd(&c->life.medium->loop, &c->fd[IN]);
	c->fd[OUT] = pair[0];
	c->fd[IN] = pair[1];
	if (pair[0] < 0 || pair[1] < 0 || !watch_pipes(c)) {
		wf_life_down(&c->life, WEFT_PROTOCOL, "it brought no pipes that can be watched");
	}
}

/* Nothing else is in the pipe, so there is room; or nobody reads it, which reading finds. */
static bool
answer(struct wf_life *life, bool accept, const void *verdict, size_t verdict_bytes)
{
	(void)control_write(conn_of(life), accept ? FRAME_FIRST : FRAME_REFUSE, verdict,
			    verdict_bytes);
	return true;
}

static void
deny(struct wf_life *life, const char *why)
{
	(void)control_write(conn_of(life), FRAME_CLOSE, why, strlen(why));
}

/* It dials at once, and is in CONNECTING for no longer than that. */
static const char *
late(struct wf_life *life)
{
	return "not connected";
}

static void
turn(struct wf_life *life, struct wf_events *events)
{
	struct toy_conn *c = conn_of(life);
	if (c->fd[OUT] < 0) {
		receive_pipes(c);
	}
	flush(c);
	(void)finish(life, events);
	if (life->state == WF_LIFE_DRAINING && c->sent == c->posted && c->writable &&
	    control_write(c, FRAME_CLOSE, NULL, 0)) {
		wf_life_lost(life, WEFT_CLOSED, "");
	}
	if (c->fd[OUT] >= 0) {
		receive(c, events);
	}
}

static void
on_handshake(struct wf_life *life)
{
	conn_of(life)->readable = true;
	turn(life, NULL); /* the first frame brings no event by itself */
	ready(life);
}

static void
cut(struct wf_life *life, enum wf_life_state before)
{
	struct toy_conn *c = conn_of(life);
	if (life->disconnected && before == WF_LIFE_UP && c->out_bytes == 0) {
		(void)control_write(c, FRAME_CLOSE, NULL, 0);
	}
	close_fds(c, IN, OUT);
}

static bool
is_held(struct wf_life *life)
{
	return conn_of(life)->ready.queued;
}

static void
fini(struct wf_life *life)
{
	close_fds(conn_of(life), IN, OUT);
}

static const struct wf_life_ops life_ops = {
	.conn_bytes = sizeof(struct toy_conn),
	.ready = ready,
	.visit = turn,
	.late = late,
	.answer = answer,
	.on_handshake = on_handshake,
	.deny = deny,
	.cut = cut,
	.finish = finish,
	.is_held = is_held,
	.fini = fini,
};

static enum weft_status
toy_poll(struct wf_transport *transport, struct wf_event *at, unsigned max, unsigned *event_count)
{
	struct toy *t = (struct toy *)transport;
	struct wf_loop *loop = &t->medium.loop;
	struct wf_events events = {.at = at, .max = max};
	wf_loop_begin(loop);
	wf_medium_reap(&t->medium);
	while (!wf_loop_collect(loop)) {
	}
	if (wf_loop_timer_is_due(loop)) {
		wf_medium_expire(&t->medium, wf_loop_now_ns(loop));
		wf_doors_expire(&t->doors, wf_loop_now_ns(loop));
	}
	wf_doors_accept(&t->doors);
	for (unsigned left = loop->ready_count; left > 0 && !wf_events_full(&events); left--) {
		struct toy_conn *c = WF_LOOP_OWNER(wf_loop_pop(loop), struct toy_conn, ready);
		wf_life_visit(&c->life, &events);
		bool sends = c->done < c->sent || (c->writable && c->sent < c->posted);
		if (c->fd[IN] >= 0 && (c->readable || c->stalled || sends)) {
			ready(&c->life);
		}
	}
	*event_count = events.count;
	if (wf_loop_end(loop, events.count)) {
		loop->left = wf_doors_are_due(&t->doors);
		wf_loop_rest(loop);
	}
	return WEFT_OK;
}

static bool
toy_arm(struct wf_transport *transport, uint64_t *deadline_ns)
{
	struct wf_loop *loop = &wf_medium_of(transport)->loop;
	*deadline_ns = loop->timer_ns;
	wf_loop_arm(loop, false, *deadline_ns);
	return false;
}

static int
toy_wait_fd(struct wf_transport *transport)
{
	return wf_medium_of(transport)->loop.epoll_fd;
}

static void
toy_wake(struct wf_transport *transport)
{
	wf_loop_kick(&wf_medium_of(transport)->loop);
}

static enum weft_status
toy_region_add(struct wf_transport *transport, const struct wf_region *region, uint32_t *out)
{
	return wf_regions_add(&wf_medium_of(transport)->regions, "toy", region, out);
}

static void
toy_region_remove(struct wf_transport *transport, uint32_t region)
{
	wf_regions_remove(&wf_medium_of(transport)->regions, region);
}

static void
toy_release(struct wf_conn *conn, uint32_t slot)
{
	uint32_t buffer = 0;
	(void)wf_grants_release(&wf_life_of(conn)->grants, slot, &buffer);
}

static enum weft_status
toy_listen(struct wf_transport *transport, const struct wf_host *at, uint16_t *port)
{
	struct wf_host here = *at;
	int fd = -EADDRINUSE;
	for (uint32_t i = 0; i < (at->port == 0 ? PORT_COUNT : 1) && fd == -EADDRINUSE; i++) {
		uint16_t any = (uint16_t)(PORT_COUNT + wf_random(transport->env) % PORT_COUNT);
		here.port = at->port == 0 ? any : at->port;
		fd = door_socket(&here, true);
	}
	if (fd < 0) {
		return wf_fail_errno(fd == -EADDRINUSE ? WEFT_UNAVAILABLE : WEFT_IO, -fd,
				     "listen on %s:%u", here.name, here.port);
	}
	enum weft_status st = wf_doors_add(&((struct toy *)transport)->doors, &fd, 1, &here);
	*port = st == WEFT_OK ? here.port : *port;
	return st;
}

static void
toy_close(struct wf_transport *transport)
{
	struct toy *t = (struct toy *)transport;
	wf_medium_end_all(&t->medium);
	wf_doors_close(&t->doors);
	wf_loop_close(&t->medium.loop);
	wf_free(transport->env, t, sizeof(*t));
}

static const struct wf_transport_ops toy_ops = {
	.name = "toy",
	.close = toy_close,
	.query = wf_medium_query,
	.region_add = toy_region_add,
	.region_remove = toy_region_remove,
	.grant = wf_life_grant,
	.release = toy_release,
	.listen = toy_listen,
	.answer = wf_life_answer,
	.connect = toy_connect,
	.disconnect = wf_life_disconnect,
	.path = wf_path_alone,
	.post = toy_post,
	.poll = toy_poll,
	.wait_fd = toy_wait_fd,
	.arm = toy_arm,
	.wait = wf_wait_on_fd,
	.wake = toy_wake,
};

static enum weft_status
toy_open(const struct wf_transport_opts *opts, struct wf_transport **out)
{
	struct toy *t = wf_zalloc(opts->env, sizeof(*t));
	if (t == NULL) {
		return wf_fail(WEFT_NOMEM, "toy: %zu bytes", sizeof(*t));
	}
	(void)signal(SIGPIPE, SIG_IGN); /* of a pipe whose reader has gone, EPIPE is enough */
	wf_medium_init(&t->medium, &toy_ops, &life_ops, opts);
	t->doors = (struct wf_doors){.medium = &t->medium, .adopt = let_in};
	enum weft_status st = wf_loop_open(&t->medium.loop);
	if (st != WEFT_OK) {
		toy_close(&t->medium.transport);
		return st;
	}
	*out = &t->medium.transport;
	return WEFT_OK;
}

const struct wf_backend wf_backend_toy = {
	.name = "toy",
	.open = toy_open,
	.is_path = true,
	.path_id = WF_PATH_OTHER,
	.one_host = true,
	.why = "both ends are on one host",
};
