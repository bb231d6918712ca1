/* SPDX-License-Identifier: Apache-2.0 */
/* transport: two operations, five events, the same meaning on every backend.
 *
 * The contract is transport/contract.md, sentence by sentence; tests/conformance has a test for
 * each. A transport belongs to one thread at a time, and so do its connections; it may be passed on
 * between two calls. Nothing here blocks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/env.h"
#include "base/status.h"
#include "base/url.h"
#include "wire/head.h"

#define WF_CONN_MAX_LIMIT 65536u
#define WF_BLOB_MAX 1024        /* bytes of a hello or a verdict */
#define WF_SLOT_COUNT_MAX 1024u /* slots one end grants on one connection */
#define WF_GRANT_KEY_BYTES 32
#define WF_WHY_BYTES 256

struct wf_event;
struct wf_loop; /* transport/loop.h */
struct wf_transport_ops;

/* First member of each backend's own struct. */
struct wf_transport {
	const struct wf_transport_ops *ops;
	struct wf_env *env;
	size_t blob_max; /* bytes of a hello or verdict; set by wf_transport_open, from its opts */
	/* The transport that is polled, armed and waited for: itself, or, for one that chooses
	 * among others ("paths"), the inner transport if only that one needs attention. Set by
	 * wf_transport_open, then by that backend. */
	struct wf_transport *active;
	/* For "paths", while `active` is an inner transport. Called when a poll of that one brought
	 * `count` events and UP or DOWN is among them, or when the clock has to be checked.
	 * Translates the events in place, and returns how many are left. */
	unsigned (*sift)(struct wf_transport *transport, struct wf_event *events, unsigned count);
	/* It has nothing to do before this time; WF_NEVER while `active` is itself. */
	uint64_t rest_ns;
	unsigned passes_left; /* polls until sift is called regardless of events */
	/* Set by a poll that delivers UP or DOWN, or that finds something for another transport
	 * with the same descriptor. Cleared by "paths". */
	bool told;
};

/* First member of each backend's own connection. Made by connect, or by the UP event of an incoming
 * connection; gone with the poll that follows the poll which delivered its DOWN. */
struct wf_conn {
	struct wf_transport *transport;
	void *user; /* the upper layer's; set by connect, or by the handler of UP */
	/* The connection that carries it, with its ops: itself, or, for a connection of "paths",
	 * from UP to DOWN the connection of the chosen path. */
	const struct wf_transport_ops *ops;
	struct wf_conn *carrier;
	/* The connection that its MSG, PUT and DONE belong to: itself, or the one it carries. */
	struct wf_conn *shown;
};

/* The most polls that go past "paths" to its active transport before sift is called. */
#define WF_PASSED_MAX 16u

struct wf_session_values; /* base/settings.h */

struct wf_transport_opts {
	struct wf_env *env;
	/* The most connections that this end began, or that were shown or accepted; 0: 1,024. */
	uint32_t conn_max;
	/* The most incoming connections besides those: before their hello has arrived, and after
	 * they were refused; 0: 64. The one that has been silent for longest makes room. */
	uint32_t newcomer_max;
	/* Whether the user knows the sender of this hello (as given to connect). A connection that
	 * is known is never dropped to make room. NULL: none is known. */
	bool (*knows)(void *knows_arg, const uint8_t *hello, size_t hello_bytes);
	void *knows_arg;
	uint32_t op_max;               /* operations posted and not DONE, per connection; 0: 256 */
	uint64_t put_bytes_max;        /* longest PUT this end accepts; 0: 64 MiB */
	uint64_t peer_timeout_ns;      /* silence of a host; 0: 10 s */
	uint64_t connect_timeout_ns;   /* one attempt, name look-up included; 0: 5 s */
	uint64_t handshake_timeout_ns; /* from accepted to hello complete; 0: 5 s */
	/* Congestion control of TCP sockets, copied; NULL or "": the system's. Other media ignore
	 * it. */
	const char *congestion;
	size_t blob_max; /* 0: WF_BLOB_MAX; more, up to WF_BLOB_ROOM, is for what wraps a backend */
	/* "paths": which media may carry connections ("auto", "tcp", "shm", "verbs"); NULL: "auto".
	 * Media ignore it. */
	const char *paths;
	/* Settings of RDMA devices ("device=mlx5_0,retry=5"), see transport/verbs; NULL: defaults.
	 */
	const char *verbs;
	/* "paths": the file with the job's secret (base/secret.h), read by open; NULL or "": none.
	 * Other backends refuse it, for they cannot use it. */
	const char *secret_file;
	/* The loop whose descriptors a medium shares with the other media of one transport; NULL:
	 * it has its own. Set by "paths". */
	struct wf_loop *loop;
	uint64_t path_retry_ns; /* "paths": how long a path that broke is not used; 0: 10 s */
};

/* Copies a user's settings of a transport; texts are those of `values`. */
void wf_transport_opts_set(const struct wf_session_values *values, struct wf_transport_opts *opts);

#define WF_PATHS_MAX 6u /* the most paths that one transport may have, and offer */

/* What one path of a transport has done since open. */
struct wf_path_counts {
	const char *name; /* of the backend that carries the connection */
	uint64_t conns_up, conns_broken;
	uint64_t bytes_sent, bytes_received;
};

/* Which path carries a connection. Texts live as long as the connection. */
struct wf_path_info {
	const char *name; /* of the backend */
	const char *why;  /* for a connection that is UP: why this path was chosen */
	bool in_place; /* UP: what the peer PUTs into slots stays in its memory, but small PUTs */
};

struct wf_transport_info {
	const char *name;       /* "tcp" */
	uint64_t put_bytes_max; /* of this end */
	bool in_place;          /* connections may be so (wf_path_info), now or later */
	bool locks_memory;      /* regions stay in memory, used or not, as devices need them */
	/* Counters since open. */
	uint64_t conns_up;
	uint64_t conns_down;
	uint64_t strangers_refused; /* connections closed before a valid hello */
	uint64_t protocol_errors;   /* connections taken down because of what the peer sent */
	uint64_t bytes_sent, bytes_received;
	uint64_t msgs_sent, msgs_received;
	uint64_t puts_sent, puts_received;
	uint64_t posts_again;             /* posts that accepted fewer operations than given */
	uint64_t wakeups_lost;            /* verbs: events that a device did not deliver */
	char last_stranger[WF_WHY_BYTES]; /* the peer that was refused last, and why; "" if none */
	/* By path, the bootstrap first; a medium reports itself. */
	struct wf_path_counts path[WF_PATHS_MAX];
	unsigned path_count;
};

/* Memory from which PUTs are read, or into which they are written, as a backend needs to know it.
 */
struct wf_region {
	void *base;
	size_t bytes;
	int memfd; /* backing memfd, -1 if none */
};

enum wf_grant_kind {
	WF_GRANT_PLACE, /* an address range: bytes end up there */
	WF_GRANT_SLOTS, /* slot_count buffers: bytes are where the PUT event says, until released */
};

struct wf_grant {
	enum wf_grant_kind kind;
	uint32_t region;     /* of this transport; SLOTS: memory the backend may use for them */
	uint64_t offset;     /* within the region */
	uint64_t bytes;      /* PLACE: of the range; SLOTS: of one slot */
	uint32_t slot_count; /* SLOTS: a power of two, at most WF_SLOT_COUNT_MAX */
};

/* Opaque, except to the backend that made it and the same backend at the peer. */
struct wf_grant_key {
	uint8_t bytes[WF_GRANT_KEY_BYTES];
};

enum wf_op_kind {
	WF_OP_SEND,
	WF_OP_PUT,
};

struct wf_op {
	enum wf_op_kind kind;
	uint64_t cookie; /* comes back with DONE */
	/* SEND: copied by post. The backend sets version, body_bytes and CRCs of the head. */
	const struct wf_head *head;
	const void *body;  /* may be NULL when body_bytes is 0 */
	size_t body_bytes; /* <= WF_MSG_BODY_MAX */
	/* PUT: [src, src + bytes) lies in `region` and is lent until DONE. `copied`: where post may
	 * report that it has copied the bytes: they are not lent then, and no DONE follows. The
	 * caller sets it to false first. NULL: DONE follows in any case. */
	bool *copied;
	uint32_t region;
	const void *src;
	uint64_t bytes;
	struct wf_grant_key key; /* the peer's */
	uint64_t offset;         /* PLACE: within the grant; SLOTS: 0 */
	uint32_t tag;            /* wf_tag(slot, step); SLOTS: slot % slot_count is the buffer */
};

enum wf_event_kind {
	WF_EVENT_UP = 1,
	WF_EVENT_DOWN,
	WF_EVENT_MSG,
	WF_EVENT_PUT,
	WF_EVENT_DONE,
};

/* A PUT that has arrived. `data`: the bytes in a slot, until wf_transport_release; NULL for a
 * place, which the tag identifies. `bytes`: how many arrived, from the beginning of the slot; 0 if
 * the medium does not report it (verbs). The receiver knows how many are due: wf_put_is. */
struct wf_put {
	uint32_t tag;
	const void *data;
	uint64_t bytes;
};

/* Whether it can be the expected PUT of `due` bytes. If the medium does not report the number, it
 * is assumed to be: the whole slot may be read, and belongs to that peer alone. */
static inline bool
wf_put_is(const struct wf_put *put, uint64_t due)
{
	return put->bytes == due || put->bytes == 0;
}

/* Pointers in an event live until the next poll of the transport. */
struct wf_event {
	enum wf_event_kind kind;
	struct wf_conn *conn;
	union {
		/* incoming: a peer's hello; the connection waits for wf_transport_answer. Otherwise
		 * the peer accepted, and this is its verdict. */
		struct {
			bool incoming;
			const uint8_t *blob;
			size_t blob_bytes;
		} up;
		/* CLOSED: the peer's or our own orderly close. REFUSED: blob is the verdict.
		 * LOST: reset or closed without warning. TIMEOUT. PROTOCOL. UNAVAILABLE: no
		 * connection came about. */
		struct {
			enum weft_status status;
			const char *why; /* one line that names the peer's address */
			const uint8_t *blob;
			size_t blob_bytes;
		} down;
		struct {
			const struct wf_head *head;
			const uint8_t *body;
		} msg;
		struct wf_put put;
		/* OK, or LOST when the connection went down first; either way the buffer is free.
		 */
		struct {
			uint64_t cookie;
			enum weft_status status;
		} done;
	};
};

enum wf_disconnect {
	WF_DISCONNECT_DRAIN, /* posted operations are sent first, for at most one second */
	WF_DISCONNECT_NOW,
};

/* What a backend implements. All slots are mandatory; none has an optional meaning: what a medium
 * lacks, its backend makes up for. Only the functions below call a slot: they check the arguments,
 * once for all backends. */
struct wf_transport_ops {
	const char *name;
	void (*close)(struct wf_transport *transport);
	/* A medium leaves path_count 0: transport.c fills in the paths. */
	void (*query)(struct wf_transport *transport, struct wf_transport_info *out);
	enum weft_status (*region_add)(struct wf_transport *transport,
				       const struct wf_region *region, uint32_t *out);
	void (*region_remove)(struct wf_transport *transport, uint32_t region);
	enum weft_status (*grant)(struct wf_conn *conn, const struct wf_grant *grant,
				  struct wf_grant_key *out);
	void (*release)(struct wf_conn *conn, uint32_t slot);
	enum weft_status (*listen)(struct wf_transport *transport, const struct wf_host *at,
				   uint16_t *port);
	enum weft_status (*answer)(struct wf_conn *conn, bool accept, const void *verdict,
				   size_t verdict_bytes);
	enum weft_status (*connect)(struct wf_transport *transport, const struct wf_host *to,
				    const void *hello, size_t hello_bytes, void *user,
				    struct wf_conn **out);
	void (*disconnect)(struct wf_conn *conn, enum wf_disconnect how);
	/* A backend that is a single path uses wf_path_alone. */
	void (*path)(struct wf_conn *conn, struct wf_path_info *out);
	enum weft_status (*post)(struct wf_conn *conn, const struct wf_op *ops, unsigned op_count,
				 unsigned *taken);
	enum weft_status (*poll)(struct wf_transport *transport, struct wf_event *events,
				 unsigned max, unsigned *event_count);
	int (*wait_fd)(struct wf_transport *transport);
	bool (*arm)(struct wf_transport *transport, uint64_t *deadline_ns);
	/* wf_wait_on_fd, or a cheaper wait that also collects what ended it. */
	void (*wait)(struct wf_transport *transport, uint64_t deadline_ns);
	/* Ends the caller's wait, or its next one, at once. Any thread may call it, through
	 * wf_transport_kick. A wrapper calls it too, because it may have consumed everything that
	 * an armed poll brought, or have set a deadline of its own since. */
	void (*wake)(struct wf_transport *transport);
};

/* Opens the backend called `name` ("tcp", "paths"). WEFT_UNSUPPORTED: the text lists the backends.
 * "fault(SPEC)+NAME" wraps any of them in faults, for tests: transport/fault/README.md. */
enum weft_status wf_transport_open(const char *name, const struct wf_transport_opts *opts,
				   struct wf_transport **out) WEFT_MUST_CHECK;
/* Whether the libraries of the backend "verbs" are installed. WEFT_UNSUPPORTED: the text says which
 * is missing. */
enum weft_status wf_rdma_probe(void) WEFT_MUST_CHECK;
/* Takes every connection down at once, without events. Accepts NULL. */
void wf_transport_close(struct wf_transport *transport);
void wf_transport_query(struct wf_transport *transport, struct wf_transport_info *out);

/* Writes " tcp_sent_bytes 1 tcp_received_bytes 2 shm_sent_bytes ... paths_broken 0" to `out`: what
 * was counted since `then`, the paths of an earlier query of the same transport. */
void wf_transport_paths_format(const struct wf_transport_info *now,
			       const struct wf_path_counts *then, char *out, size_t bytes);

/* Adds memory from which PUTs are read, or into which they are written. Use few large regions:
 * verbs registers each. */
enum weft_status wf_transport_region_add(struct wf_transport *transport,
					 const struct wf_region *region,
					 uint32_t *out) WEFT_MUST_CHECK;
/* No part of the region may be lent or granted on a connection that is UP. */
void wf_transport_region_remove(struct wf_transport *transport, uint32_t region);

/* Lets the peer of `conn` PUT. One end of a connection grants either places or slots, and slots
 * once. A grant ends with DOWN. The caller sends the key to the peer in a message. */
enum weft_status wf_transport_grant(struct wf_conn *conn, const struct wf_grant *grant,
				    struct wf_grant_key *out) WEFT_MUST_CHECK;
/* SLOTS: the receiver does not need the buffer `slot % slot_count` any more; the peer may PUT there
 * again, which the caller reports to it. */
static inline void
wf_transport_release(struct wf_conn *conn, uint32_t slot)
{
	conn->ops->release(conn->carrier, slot);
}

/* Listens on host:port; port 0 picks one. WEFT_UNAVAILABLE: the address is in use; the text has
 * address and remedy. */
enum weft_status wf_transport_listen(struct wf_transport *transport, const struct wf_host *at,
				     uint16_t *port) WEFT_MUST_CHECK;
/* Accepts or refuses an incoming connection, with a verdict. If it is refused, DOWN follows. */
enum weft_status wf_transport_answer(struct wf_conn *conn, bool accept, const void *verdict,
				     size_t verdict_bytes) WEFT_MUST_CHECK;
/* Begins one attempt, which ends in UP or DOWN. */
enum weft_status wf_transport_connect(struct wf_transport *transport, const struct wf_host *to,
				      const void *hello, size_t hello_bytes, void *user,
				      struct wf_conn **out) WEFT_MUST_CHECK;
/* DOWN follows, with status CLOSED. May be called in any state, more than once. */
void wf_transport_disconnect(struct wf_conn *conn, enum wf_disconnect how);

/* What carries the bytes of `conn`, and why: for a log line when it comes UP. */
void wf_transport_path(struct wf_conn *conn, struct wf_path_info *out);

/* Whether a SEND keeps to the rules of struct wf_op. */
bool wf_send_is_valid(const struct wf_op *op);
/* Fails with WEFT_INVALID; the text says what is wrong. */
enum weft_status wf_op_refuse(const struct wf_op *op) __attribute__((cold)) WEFT_MUST_CHECK;

static inline bool
wf_op_is_valid(const struct wf_op *op)
{
	return op->kind == WF_OP_PUT ? op->src != NULL && op->bytes > 0 : wf_send_is_valid(op);
}

/* What follows is inlined where each exchange needs it. */

/* Posts operations in order; `*taken` is the number accepted. OK: all. AGAIN: fewer; post the rest
 * after a DONE of this connection. CLOSED: none, the connection is going down. INVALID: it is not
 * UP, or an operation breaks the rules of struct wf_op; `*taken` were accepted before it. */
WEFT_MUST_CHECK static inline enum weft_status
wf_transport_post(struct wf_conn *conn, const struct wf_op *ops, unsigned op_count, unsigned *taken)
{
	unsigned valid = 0;
	while (valid < op_count && wf_op_is_valid(&ops[valid])) {
		valid++;
	}
	*taken = 0;
	/* Called also if no operation is valid: CLOSED takes precedence over INVALID. */
	enum weft_status st = conn->ops->post(conn->carrier, ops, valid, taken);
	WF_ASSERT(*taken <= valid);
	return st != WEFT_OK || valid == op_count ? st : wf_op_refuse(&ops[valid]);
}
/* Makes progress and writes up to `max` events. Never blocks. OK also if there are none. */
WEFT_MUST_CHECK static inline enum weft_status
wf_transport_poll(struct wf_transport *transport, struct wf_event *events, unsigned max,
		  unsigned *event_count)
{
	WF_ASSERT(max > 0);
	struct wf_transport *active = transport->active;
	enum weft_status st = active->ops->poll(active, events, max, event_count);
	if (active != transport && (active->told || --transport->passes_left == 0)) {
		*event_count = transport->sift(transport, events, *event_count);
	}
	return st;
}
/* The one descriptor that becomes readable when an armed transport has something to poll; -1 if
 * only the env can wait, as in the simulated network. Constant from open to close. */
int wf_transport_wait_fd(struct wf_transport *transport);
/* Before sleeping: arm, poll once more, and sleep if that was empty. Returns true if everything
 * posted is on its way and a poll would bring nothing but DONEs; a caller that needs none of them
 * sleeps at once. `*deadline_ns`: when to poll even if the fd stays quiet; WF_NEVER: never. */
static inline bool
wf_transport_arm(struct wf_transport *transport, uint64_t *deadline_ns)
{
	struct wf_transport *active = transport->active;
	bool quiet = active->ops->arm(active, deadline_ns);
	*deadline_ns = *deadline_ns < transport->rest_ns ? *deadline_ns : transport->rest_ns;
	return quiet;
}
/* Sleeps after arm, on wait_fd, until the deadline that arm returned. A caller that waits for other
 * descriptors too waits on wait_fd and those itself. */
static inline void
wf_transport_wait(struct wf_transport *transport, uint64_t deadline_ns)
{
	transport->active->ops->wait(transport->active, deadline_ns);
}
/* Ends the owner's wait, or its next one, at once. Any thread may call this while the transport is
 * open. */
void wf_transport_kick(struct wf_transport *transport);
