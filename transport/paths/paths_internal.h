/* SPDX-License-Identifier: Apache-2.0 */
/* paths_internal: what the files of paths share.
 *
 * This transport contains several others: a bootstrap, on which two ends meet, and faster paths,
 * one of which then carries the data. Both are connections of inner transports; the two ends
 * negotiate paths in their hellos and verdicts (wire/path.h), and nowhere else. Thread: the
 * transport's owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/env.h"
#include "base/mac.h"
#include "transport/loop.h"
#include "transport/ops.h"
#include "transport/places.h"
#include "transport/rdma.h"
#include "transport/regions.h"
#include "wire/path.h"

#define WF_PATHS_LOOK_NS WF_NS_PER_MS /* how often paths without a descriptor are polled */
#define WF_PATHS_LOOK_TURNS 16u /* turns between two readings of the clock while not at rest */
#define WF_PATHS_LINGER_NS WF_NS_PER_S /* time for what was sent before the bootstrap ended */
/* Time to find out whether the path or the peer ended. */
#define WF_PATHS_JUDGE_NS (100 * WF_NS_PER_MS)
#define WF_PATHS_SPARE_CONNS 64u    /* places for inner connections that are ending */
#define WF_PATHS_RDMA_HANDSHAKES 6u /* multiple of handshake_timeout_ns for a ticket over verbs */
#define WF_PATHS_BROKEN_MAX 64u     /* paths that broke and are remembered */
/* The most doublings of the time for which such a path is left out. */
#define WF_PATHS_BROKEN_DOUBLINGS 6u
#define WF_PATHS_WHY_BYTES 160
#define WF_PATHS_PEER_BYTES (WF_HOST_BYTES + 8)

WF_STATIC_ASSERT(WF_BLOB_MAX == WF_PATH_USER_MAX, "a user's blob fits behind a path head");
WF_STATIC_ASSERT(WF_BLOB_ROOM >= WF_PATH_PLAIN_MAX + WF_BLOB_MAX, "and the backends have room");
WF_STATIC_ASSERT(WF_BLOB_ROOM >= WF_PATH_UPGRADE_MAX, "for offers, too");

struct wf_path {
	const struct wf_backend *kind;
	struct wf_transport *inner;       /* NULL: it could not be opened */
	uint16_t port;                    /* where it listens; 0: it does not */
	struct wf_rdma_addresses at;      /* rdma: the addresses at which it listens */
	bool regions[WF_REGIONS_MAX + 1]; /* by number: whether `inner` has the region */
	uint32_t down;        /* rdma: bit 1 << idx in `at`: it was reported to be down */
	bool quiet;           /* missing, and not reported unless the user requested it */
	bool lost;            /* it was open, and is not used any more */
	struct wf_loop *loop; /* a member of the transport's loop; NULL: no look notices it */
	bool hot;             /* polled on every turn */
	bool asleep; /* armed after an empty poll: anything new makes its descriptor readable */
	uint64_t armed_ns; /* deadline that its arm returned; WF_NEVER: none */
	uint64_t conns_up, conns_broken;
	char missing[WF_PATH_TEXT_BYTES]; /* why it cannot be used; "": it can */
};

/* A path that broke. */
struct wf_paths_broken {
	struct wf_host peer;
	const struct wf_path *path; /* NULL: the entry is free */
	unsigned times;             /* in a row */
	uint64_t number;            /* the number of this entry, counted over all that were added */
	uint64_t at_ns, until_ns;
	char why[WF_PATHS_WHY_BYTES];
};

/* Written by paths_broken.c alone. */
struct wf_paths_broken_list {
	struct wf_paths_broken at[WF_PATHS_BROKEN_MAX];
	uint64_t count; /* entries ever added */
};

/* A path, or rail, that breaks. */
struct wf_paths_breaking {
	const struct wf_path *path;
	const struct wf_host *peer;
	const char *why;
	uint64_t now_ns;
	uint64_t up_ns;    /* since when it carried; 0: it never carried */
	uint64_t retry_ns; /* how long it is left out after the first break */
};

/* The entries in the list of broken paths about the path, and the rail, that carried a connection:
 * their numbers, 0: none. */
struct wf_paths_blame {
	uint64_t path, rail;
};

/* The offers of the path that is being tried. Written by paths_rails.c alone. */
struct wf_paths_rails {
	struct wf_path_offer offer[WF_PATH_OFFERS_MAX]; /* in the order of trying */
	unsigned count, next;
	unsigned idx; /* the offer that is under way, or carries */
	struct wf_paths_blame blame;
};

/* The destination, the deadline and the paths of an attempt. Written by paths_connect.c alone. */
struct wf_paths_attempt {
	struct wf_host to;
	char peer[WF_PATHS_PEER_BYTES]; /* `to` as text */
	uint64_t end_ns;                /* end of the whole attempt */
	uint32_t paths;                 /* paths not tried yet: bits 1 << enum wf_path_id */
};

/* What the two ends have exchanged before UP. */
struct wf_paths_meeting {
	/* OFFERED: the ticket that was issued; connecting end: the one received. */
	uint8_t ticket[WF_PATH_ID_BYTES];
	uint8_t hello[WF_BLOB_MAX]; /* the user's */
	size_t hello_bytes;
	/* Why paths are left out: at the connecting end by us, otherwise by the peer. */
	char left_out[WF_PATH_TEXT_BYTES];
	uint8_t reason; /* ASKED: enum wf_path_reason */
	bool known;     /* OFFERED: the user knows the sender of the hello */
};

/* What a connection proves where the job has a secret. Only paths_secret.c knows what is in it. */
struct wf_paths_proof {
	bool has_key;
	uint8_t nonce[WF_PATH_AUTH_BYTES]; /* connecting end: its own */
	uint8_t key[WF_MAC_BYTES];         /* of this connection */
};

/* How a connection ends. `cause` and `why` are reported in its DOWN instead of those of the inner
 * connection, if they are set; they are written by paths_conn.c alone. */
struct wf_paths_end {
	enum weft_status cause; /* WEFT_OK: none */
	char why[WF_WHY_BYTES];
	bool disconnected; /* by this end: its DOWN is CLOSED */
	bool broke;        /* the path broke while the bootstrap was up */
	/* Refused because of its path head: counted as a stranger when it has gone. */
	bool stranger;
};

enum wf_paths_state {
	WF_PATHS_BOOTING,   /* connecting end: the bootstrap is under way */
	WF_PATHS_UPGRADING, /* connecting end: an offered path is under way */
	/* Connecting end: the path failed; finding out whether the peer is still there. */
	WF_PATHS_JUDGING,
	WF_PATHS_OFFERED, /* accepting end: waits for the ticket; not shown to the user yet */
	WF_PATHS_ASKED,   /* accepting end: UP was delivered, no answer yet */
	WF_PATHS_UP,
	WF_PATHS_DYING,  /* DOWN comes with that of the inner connection that carries */
	WF_PATHS_FAILED, /* no inner connection carries; the next poll delivers DOWN */
	WF_PATHS_GONE,   /* DOWN was delivered, or never will be */
};

struct wf_paths;

struct wf_paths_conn {
	struct wf_conn conn; /* first */
	struct wf_paths *t;
	struct wf_paths_conn *next, **prev_next; /* transport's list of all */
	struct wf_place place;                   /* OFFERED: a newcomer's place */
	enum wf_paths_state state;
	bool incoming;
	bool was_up;                 /* counted as up */
	struct wf_conn *boot, *fast; /* inner connections, NULL: none; their `user` points here */
	struct wf_conn *carry;       /* UP and DYING: the one that carries */
	struct wf_path *path;        /* of `fast`; UP: of `carry` */
	uint64_t deadline_ns;        /* of the state; WF_NEVER: none */
	uint64_t up_ns;
	char path_why[WF_PATHS_WHY_BYTES];
	struct wf_paths_attempt attempt; /* connecting end, as the next */
	struct wf_paths_rails rails;
	struct wf_paths_meeting meeting;
	struct wf_paths_proof *proof; /* with a secret of the job; NULL: none */
	struct wf_paths_end end;
};

/* The connections of a transport. Written by paths_conn.c. */
struct wf_paths_conns {
	struct wf_paths_conn *first;
	struct wf_places places; /* of all except GONE */
	bool dead_waiting;       /* one may be freed */
	uint32_t failed_count;
	struct wf_paths_conn no_room; /* `user` of inner connections for which there is no memory */
};

/* Which paths the next poll polls, and whether the caller may sleep. Written by paths_turn.c and by
 * the three functions below. */
struct wf_paths_turn {
	struct wf_path *only; /* the only hot path; NULL: there are several */
	unsigned first;       /* path with which the next poll begins */
	unsigned turns;       /* since the clock was read */
	bool attention;       /* the next poll has extra work */
	bool armed;
	/* It was at rest, so that calls went to `only`, which may have been armed. */
	bool passed_by;
	bool slept;        /* there was no poll since the armed one */
	bool changed;      /* the set of hot paths has to be recomputed */
	bool hidden;       /* this poll consumed an event */
	uint64_t now_ns;   /* the last reading of the clock */
	uint64_t look_ns;  /* when all paths are polled next */
	uint64_t timer_ns; /* nothing is due before; may be early */
	uint64_t armed_ns; /* deadline that arm gave */
};

struct wf_paths {
	struct wf_transport transport; /* first */
	struct wf_transport_opts opts;
	struct wf_transport_info info; /* what no inner transport counts; query adds up the rest */
	uint64_t inner_strangers[WF_PATHS_MAX]; /* as of the last query */
	uint8_t host_id[WF_HOST_ID_BYTES];
	struct wf_paths_guard *guard;       /* with a secret of the job; NULL: none */
	bool must;                          /* a fast path has to carry, or the connection fails */
	const char *asked;                  /* name of the setting */
	char verbs[WF_RDMA_SETTINGS_BYTES]; /* copy of opts.verbs, which is the caller's */
	struct wf_path path[WF_PATHS_MAX];  /* the bootstrap first */
	unsigned path_count;
	/* Whose descriptor several paths share; not opened for a single path. */
	struct wf_loop loop;
	bool shares;
	int wait_fd;

	struct wf_paths_conns conns;
	struct wf_paths_turn turn;
	struct wf_paths_broken_list broken;
};

static inline struct wf_paths *
wf_paths_of(struct wf_transport *transport)
{
	return (struct wf_paths *)transport;
}

/* Makes the next poll come to this transport, and do its extra work. */
static inline void
wf_paths_attend(struct wf_paths *t)
{
	if (t->transport.active != &t->transport) {
		t->transport.active = &t->transport;
		t->transport.rest_ns = WF_NEVER;
		t->turn.passed_by = true;
		t->turn.armed_ns = WF_NEVER;
	}
	t->turn.attention = true;
}

/* The same, and the set of hot paths may have changed. */
static inline void
wf_paths_changed(struct wf_paths *t)
{
	t->turn.changed = true;
	wf_paths_attend(t);
}

/* Lowers the timer to a connection's deadline. */
static inline void
wf_paths_timer_before(struct wf_paths *t, uint64_t deadline_ns)
{
	if (deadline_ns < t->turn.timer_ns) {
		t->turn.timer_ns = deadline_ns;
	}
}

static inline struct wf_paths_conn *
wf_paths_conn_of(struct wf_conn *conn)
{
	return (struct wf_paths_conn *)conn;
}

static inline uint32_t
wf_paths_bit(const struct wf_path *path)
{
	return 1u << path->kind->path_id;
}

/* paths_turn.c: the transport's poll, arm, wake and sift. */
enum weft_status wf_paths_poll(struct wf_transport *transport, struct wf_event *events,
			       unsigned max, unsigned *event_count);
bool wf_paths_arm(struct wf_transport *transport, uint64_t *deadline_ns);
void wf_paths_wake(struct wf_transport *transport); /* by any thread */
unsigned wf_paths_sift(struct wf_transport *transport, struct wf_event *events, unsigned count);

/* paths_list.c: the paths of a transport. */
enum weft_status wf_paths_open_all(struct wf_paths *t);
/* The bootstrap listens at `at`: makes the other paths listen. */
enum weft_status wf_paths_listen_all(struct wf_paths *t, const struct wf_host *at);
/* The path with that number, if this end can use it; otherwise NULL. */
struct wf_path *wf_paths_find(struct wf_paths *t, uint8_t id);
/* The bits of the paths that may be used towards `peer`; `left_out` tells why the others may not.
 */
uint32_t wf_paths_towards(struct wf_paths *t, const struct wf_host *peer,
			  char left_out[WF_PATH_TEXT_BYTES]);
/* Adds `text` to the reasons why paths are left out; two reasons share the space. */
void wf_paths_left_out(char left_out[WF_PATH_TEXT_BYTES], const char *text);
/* Leaves the path out from now on; the reason is the last error. */
void wf_paths_leave(struct wf_paths *t, struct wf_path *path);

/* paths_broken.c: the list of paths that broke. */
/* The entry about the path, or rail, towards `peer`; NULL if there is none. */
const struct wf_paths_broken *wf_paths_broken_find(const struct wf_paths_broken_list *list,
						   const struct wf_path *path,
						   const struct wf_host *peer);
/* Whether the path, or rail, to `peer` broke recently and is left out. */
bool wf_paths_is_broken(const struct wf_paths *t, const struct wf_path *path,
			const struct wf_host *peer);
/* Adds an entry, or replaces the oldest one if none is free. Returns the entry. */
const struct wf_paths_broken *wf_paths_broken_add(struct wf_paths_broken_list *list,
						  const struct wf_paths_breaking *what);
/* It was not the path's fault: removes the entry with that number, unless it has been replaced. 0
 * is no entry. */
void wf_paths_broken_forgive(struct wf_paths_broken_list *list, uint64_t number);

/* paths_conn.c: the states of a connection. */
struct wf_paths_conn *wf_paths_conn_create(struct wf_paths *t, bool incoming);
/* Marks a connection that is not shown any more as GONE: it leaves the count, and a later poll
 * frees it. */
void wf_paths_conn_gone(struct wf_paths_conn *m);
/* Frees those that are GONE; their inner connections may still be ending. */
void wf_paths_conns_reap(struct wf_paths *t);
void wf_paths_conn_free(struct wf_paths_conn *m);
void wf_paths_conn_deadline(struct wf_paths_conn *m, uint64_t deadline_ns);
void wf_paths_conn_state(struct wf_paths_conn *m, enum wf_paths_state state);
/* Ends an inner connection without an event. Accepts NULL. */
void wf_paths_abandon(struct wf_conn *inner, enum wf_disconnect how);
/* Sets the status and text of DOWN; the first cause is kept. */
void wf_paths_conn_cause(struct wf_paths_conn *m, enum weft_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Clears the cause, which was not why it ended; the text is kept. */
void wf_paths_conn_excuse(struct wf_paths_conn *m);
/* Records why something failed that is not a cause yet. */
void wf_paths_conn_note(struct wf_paths_conn *m, const char *why);
/* Ends the inner connections; DOWN with the cause follows. */
void wf_paths_conn_kill(struct wf_paths_conn *m);
/* Makes the connection UP, carried by the inner connection `carry` of `path`, and counts it. */
void wf_paths_conn_up(struct wf_paths_conn *m, struct wf_conn *carry, struct wf_path *path);
/* Turns `event`, the DOWN of an inner connection, into that of `m`. */
void wf_paths_conn_report(struct wf_paths_conn *m, struct wf_event *event);
/* Delivers the DOWN of a FAILED connection. */
void wf_paths_conn_report_failed(struct wf_paths_conn *m, struct wf_event *event);

/* paths_down.c: how connections end. */
/* The deadline of the state has passed. */
void wf_paths_conn_expire(struct wf_paths_conn *m);
/* Handles the DOWN of an inner connection. Returns false if `event` is not for the caller. */
bool wf_paths_conn_inner_down(struct wf_paths_conn *m, struct wf_event *event);
void wf_paths_disconnect(struct wf_conn *conn, enum wf_disconnect how);

/* paths_connect.c: the connecting end, until it is UP. */
enum weft_status wf_paths_connect(struct wf_transport *transport, const struct wf_host *to,
				  const void *hello, size_t hello_bytes, void *user,
				  struct wf_conn **out);
/* Handles the UP of an inner connection. Returns false if `event` is not for the caller. */
bool wf_paths_connect_up(struct wf_paths_conn *m, struct wf_event *event);
/* BOOTING: the bootstrap went DOWN. */
bool wf_paths_connect_refused(struct wf_paths_conn *m, struct wf_event *event);
/* UPGRADING: the path went DOWN. */
bool wf_paths_connect_path_down(struct wf_paths_conn *m, struct wf_event *event);
/* JUDGING is over, and the peer is still there: the path failed. Connects again without it. */
void wf_paths_connect_again(struct wf_paths_conn *m);

/* paths_secret.c: the job's secret, and what a connection proves with it. */
/* `secret_file`: NULL or "": none, and nothing below does anything. */
enum weft_status wf_paths_guard_open(struct wf_paths *t, const char *secret_file);
void wf_paths_guard_close(struct wf_paths *t);
/* What one connection proves; NULL without a secret. WEFT_NOMEM. */
enum weft_status wf_paths_proof_open(const struct wf_paths *t,
				     struct wf_paths_proof **out) WEFT_MUST_CHECK;
/* Both accept NULL. The first wipes key and nonce, as the second does. */
void wf_paths_proof_clear(struct wf_paths_proof *proof);
void wf_paths_proof_close(const struct wf_paths *t, struct wf_paths_proof *proof);
enum wf_paths_word {
	WF_PATHS_WORD_HELLO,
	WF_PATHS_WORD_VERDICT, /* on the bootstrap */
	WF_PATHS_WORD_TICKET,
	WF_PATHS_WORD_PATH_VERDICT,
};
/* The flag of heads that are going to be sealed. */
uint8_t wf_paths_seal_flag(const struct wf_paths_conn *m);
/* Connecting end: copies the nonce that it knocked with; zeros without a secret. */
void wf_paths_copy_nonce(const struct wf_paths_conn *m, uint8_t out[WF_PATH_AUTH_BYTES]);
/* Writes the code of `bytes` bytes into the head at their beginning. Nothing without a key. */
void wf_paths_seal(const struct wf_paths_conn *m, enum wf_paths_word word, uint8_t *blob,
		   size_t bytes);
/* Whether the peer has sealed them; without a secret: whether it has not. `head` is decoded of
 * them. */
bool wf_paths_is_sealed(const struct wf_paths_conn *m, enum wf_paths_word word,
			const struct wf_path_head *head, const uint8_t *blob, size_t bytes);
/* Connecting end: begins anew with a nonce. Returns the bytes of the KNOCK. */
size_t wf_paths_knock(struct wf_paths_conn *m, uint8_t *out);
/* Connecting end: derives the key. Returns false if it is no challenge, or none was due. */
bool wf_paths_accept_challenge(struct wf_paths_conn *m, const struct wf_path_head *head);
/* Accepting end: answers a KNOCK. Returns false if it is none, or there is no secret. */
bool wf_paths_challenge(struct wf_paths *t, const struct wf_event *event);
/* Accepting end, with a secret: whether the sender of a HELLO has proved that it has it, too; then
 * the connection has its key. */
bool wf_paths_admits(struct wf_paths_conn *m, const struct wf_path_head *hello, const uint8_t *blob,
		     size_t bytes);

/* paths_rails.c: the offers of one path, and which of them broke. */
/* Copies the offers of the best path that this end may use. Returns false if there are none. */
bool wf_paths_rails_begin(struct wf_paths_conn *m, const struct wf_path_head *head);
/* Begins an attempt over the next offer. Returns false if none is left; the cause is then set. */
bool wf_paths_rails_next(struct wf_paths_conn *m);
/* The attempt failed. Returns true if one over the next rail is under way. */
bool wf_paths_rails_failed(struct wf_paths_conn *m, const char *why);
/* What carried `m` broke, or could not be established: the rail if there are others, otherwise the
 * path.
 */
void wf_paths_broke(struct wf_paths_conn *m, const char *why);
/* An attempt ended without an answer. If the bootstrap has gone too, the peer has gone, and it was
 * not the path's fault.
 */
void wf_paths_hung(struct wf_paths_conn *m, const char *why);
/* The break was not the path's fault. */
void wf_paths_forgive(struct wf_paths_conn *m);

/* paths_accept.c: the accepting end, until it is UP. */
/* Handles an incoming inner connection. Returns false if `event` is not for the caller. */
bool wf_paths_accept(struct wf_paths *t, struct wf_path *path, struct wf_event *event);
enum weft_status wf_paths_answer(struct wf_conn *conn, bool accept, const void *verdict,
				 size_t verdict_bytes);
