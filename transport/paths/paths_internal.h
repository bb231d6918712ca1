/* SPDX-License-Identifier: Apache-2.0 */
/* paths_internal: what the files of paths share.
 *
 * A transport of these has several others: a bootstrap, on which two ends meet, and faster paths,
 * one of which then carries the data. Both are connections of inner transports; what is said
 * between the two ends about paths stands in their hellos and verdicts (wire/path.h), and nowhere
 * else. Thread: the transport's owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/env.h"
#include "transport/loop.h"
#include "transport/ops.h"
#include "transport/places.h"
#include "transport/rdma.h"
#include "transport/regions.h"
#include "wire/path.h"

#define WF_PATHS_LOOK_NS WF_NS_PER_MS          /* how often what has no descriptor is */
#define WF_PATHS_LOOK_TURNS 16u                /* how often the clock is, not at rest */
#define WF_PATHS_LINGER_NS WF_NS_PER_S         /* for what was sent before the bootstrap ended */
#define WF_PATHS_JUDGE_NS (100 * WF_NS_PER_MS) /* who ended: the path, or the peer? */
#define WF_PATHS_SPARE_CONNS 64u               /* inner connections that are ending */
#define WF_PATHS_RDMA_HANDSHAKES 6u  /* times handshake_timeout_ns, for a ticket over verbs */
#define WF_PATHS_BROKEN_MAX 64u      /* paths that broke and are remembered */
#define WF_PATHS_BROKEN_DOUBLINGS 6u /* of the time that such a path is left out */
#define WF_PATHS_WHY_BYTES 160
#define WF_PATHS_PEER_BYTES (WF_HOST_BYTES + 8)

WF_STATIC_ASSERT(WF_BLOB_MAX == WF_PATH_USER_MAX, "a user's blob fits behind a path head");
WF_STATIC_ASSERT(WF_BLOB_ROOM >= WF_PATH_PLAIN_MAX + WF_BLOB_MAX, "and the backends have room");
WF_STATIC_ASSERT(WF_BLOB_ROOM >= WF_PATH_UPGRADE_MAX, "for offers, too");

struct wf_path {
	const struct wf_backend *kind;
	struct wf_transport *inner;       /* NULL: could not be opened */
	uint16_t port;                    /* where it listens; 0: it does not */
	struct wf_rdma_addresses at;      /* rdma: where it does */
	bool regions[WF_REGIONS_MAX + 1]; /* by number, those that `inner` has */
	uint32_t down;                    /* rdma: 1 << idx in `at`: that was said to be down */
	bool quiet;                       /* missing, and nothing to be told unless asked for */
	bool lost;                        /* it was there, and is not used any more */
	struct wf_loop *loop;             /* a member of the transport's; NULL: nobody notices it */
	bool hot;                         /* polled on every turn */
	bool asleep;       /* armed, and it had nothing: what comes makes its descriptor readable */
	uint64_t armed_ns; /* deadline that it gave; WF_NEVER without one */
	uint64_t conns_up, conns_broken;
	char missing[WF_PATH_TEXT_BYTES]; /* why it cannot be used; "": it can */
};

/* A path that broke. */
struct wf_paths_broken {
	struct wf_host peer;
	const struct wf_path *path; /* NULL: nothing is remembered here */
	unsigned times;             /* in a row */
	uint64_t number;            /* of this breaking, of all that were remembered */
	uint64_t at_ns, until_ns;
	char why[WF_PATHS_WHY_BYTES];
};

/* Written by paths_broken.c alone. */
struct wf_paths_broken_list {
	struct wf_paths_broken at[WF_PATHS_BROKEN_MAX];
	uint64_t count; /* ever remembered */
};

/* A path, or rail, breaks. */
struct wf_paths_breaking {
	const struct wf_path *path;
	const struct wf_host *peer;
	const char *why;
	uint64_t now_ns;
	uint64_t up_ns;    /* since when it carried; 0: it never did */
	uint64_t retry_ns; /* how long it is left out the first time */
};

/* What is remembered of the path, and of the rail, that carried a connection: numbers of breakings,
 * 0: nothing. Written by paths_rails.c alone. */
struct wf_paths_blame {
	uint64_t path, rail;
};

/* The offers of the path that is tried. Written by paths_rails.c alone. */
struct wf_paths_rails {
	struct wf_path_offer offer[WF_PATH_OFFERS_MAX]; /* in the order of trying */
	unsigned count, next;
	unsigned idx; /* that is under way, or carries */
};

/* Where to, and how long over which paths. Written by paths_connect.c alone. */
struct wf_paths_attempt {
	struct wf_host to;
	char peer[WF_PATHS_PEER_BYTES]; /* the same, as text */
	uint64_t end_ns;                /* of the whole attempt */
	uint32_t paths;                 /* that are left to be tried: 1 << enum wf_path_id */
};

/* What the two ends have said to each other, until UP. */
struct wf_paths_meeting {
	uint8_t ticket[WF_PATH_ID_BYTES]; /* OFFERED; connecting end: that was offered */
	uint8_t hello[WF_BLOB_MAX];       /* of the user */
	size_t hello_bytes;
	char left_out[WF_PATH_TEXT_BYTES]; /* why paths are; connecting end: by us, else by it */
	uint8_t reason;                    /* ASKED: enum wf_path_reason */
	bool known;                        /* OFFERED: the user knows who it is */
};

/* How a connection ends. `cause` and `why` are what is reported of it, if that is not what the
 * inner connection says; they are written by paths_conn.c alone. */
struct wf_paths_end {
	enum weft_status cause; /* WEFT_OK: none */
	char why[WF_WHY_BYTES];
	bool disconnected; /* by this end: its DOWN is CLOSED */
	bool broke;        /* the path did, and the bootstrap was there */
	bool stranger;     /* refused because of its path head: counted when it has gone */
};

enum wf_paths_state {
	WF_PATHS_BOOTING,   /* connecting end: the bootstrap is under way */
	WF_PATHS_UPGRADING, /* connecting end: an offered path is under way */
	WF_PATHS_JUDGING,   /* connecting end: it failed; is the peer still there? */
	WF_PATHS_OFFERED,   /* accepting end: waits for the ticket; nobody above knows of it */
	WF_PATHS_ASKED,     /* accepting end: UP was delivered, no answer yet */
	WF_PATHS_UP,
	WF_PATHS_DYING,  /* DOWN comes with that of what carries */
	WF_PATHS_FAILED, /* nothing carries; DOWN waits for the next poll */
	WF_PATHS_GONE,   /* DOWN was delivered, or never will be */
};

struct wf_paths;

struct wf_paths_conn {
	struct wf_conn conn; /* first */
	struct wf_paths *t;
	struct wf_paths_conn *next, **prev_next; /* transport's list of all */
	struct wf_place place;                   /* OFFERED: of a newcomer */
	enum wf_paths_state state;
	bool incoming;
	bool was_up;                 /* counted as up */
	struct wf_conn *boot, *fast; /* inner connections, NULL: none; their `user` is this */
	struct wf_conn *carry;       /* UP and DYING: the one of them that carries */
	struct wf_path *path;        /* of `fast`; UP: of `carry` */
	uint64_t deadline_ns;        /* of the state; WF_NEVER: none */
	uint64_t up_ns;
	char path_why[WF_PATHS_WHY_BYTES];
	struct wf_paths_attempt attempt; /* connecting end, as the next two */
	struct wf_paths_rails rails;
	struct wf_paths_blame blame;
	struct wf_paths_meeting meeting;
	struct wf_paths_end end;
};

/* Which paths the next poll looks at, and whether the caller may sleep. Written by the turn's file
 * and by the three functions below. */
struct wf_paths_turn {
	struct wf_path *only; /* that is hot; NULL: there are several */
	unsigned first;       /* path with which the next poll begins */
	unsigned turns;       /* since the clock was looked at */
	bool attention;       /* the next poll is none of the usual */
	bool armed;
	bool passed_by;    /* it may have been armed: it was at rest, and calls went to `only` */
	bool slept;        /* since the armed poll there was none */
	bool changed;      /* which paths are hot is to be found out */
	bool hidden;       /* an event was used up */
	uint64_t now_ns;   /* of the last look at the clock */
	uint64_t look_ns;  /* all are looked at then */
	uint64_t timer_ns; /* nothing is due before; may be early */
	uint64_t armed_ns; /* deadline that arm gave */
};

struct wf_paths {
	struct wf_transport transport; /* first */
	struct wf_transport_opts opts;
	struct wf_transport_info
		info; /* what no inner one counts; the rest is summed up by query */
	uint64_t inner_strangers[WF_PATHS_MAX]; /* as of the last query */
	uint8_t host_id[WF_HOST_ID_BYTES];
	bool must;                          /* run over a fast path or not at all */
	const char *asked;                  /* name of the setting */
	char verbs[WF_RDMA_SETTINGS_BYTES]; /* opts.verbs, for they are the caller's */
	struct wf_path path[WF_PATHS_MAX];  /* the bootstrap first */
	unsigned path_count;
	struct wf_loop loop; /* whose descriptors several share; not opened for one */
	bool shares;
	int wait_fd;

	struct wf_paths_conn *conns;
	struct wf_places places; /* of all but GONE */
	bool dead_waiting;       /* some connection may be freed */
	uint32_t failed_count;
	struct wf_paths_conn no_room; /* `user` of those for which there is no memory */

	struct wf_paths_turn turn;
	struct wf_paths_broken_list broken;
};

static inline struct wf_paths *
wf_paths_of(struct wf_transport *transport)
{
	return (struct wf_paths *)transport;
}

/* The next poll is none of the usual, and comes to this transport. */
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

/* So it is, and which paths are hot may have changed. */
static inline void
wf_paths_changed(struct wf_paths *t)
{
	t->turn.changed = true;
	wf_paths_attend(t);
}

/* A connection has a deadline then. */
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

/* paths_list.c: which paths there are. */
enum weft_status wf_paths_open_all(struct wf_paths *t);
/* After the bootstrap listens, at `at`: the others do. */
enum weft_status wf_paths_listen_all(struct wf_paths *t, const struct wf_host *at);
/* The path of that number that this end can use; NULL. */
struct wf_path *wf_paths_find(struct wf_paths *t, uint8_t id);
/* Those that may be used towards `peer`; `left_out` says why others are not. */
uint32_t wf_paths_towards(struct wf_paths *t, const struct wf_host *peer,
			  char left_out[WF_PATH_TEXT_BYTES]);
/* Add `text` to what says why paths are left out; two of them share the room. */
void wf_paths_left_out(char left_out[WF_PATH_TEXT_BYTES], const char *text);
/* It is left out from now on, for the last error. */
void wf_paths_leave(struct wf_paths *t, struct wf_path *path);

/* paths_broken.c: which paths broke. */
/* What is remembered of the path, or rail, towards `peer`; NULL. */
const struct wf_paths_broken *wf_paths_broken_find(const struct wf_paths_broken_list *list,
						   const struct wf_path *path,
						   const struct wf_host *peer);
/* The path, or rail, to `peer` broke a little while ago. */
bool wf_paths_is_broken(const struct wf_paths *t, const struct wf_path *path,
			const struct wf_host *peer);
/* Remembers it, in the place of whatever broke longest ago where none is free. Returns what is
 * remembered. */
const struct wf_paths_broken *wf_paths_broken_add(struct wf_paths_broken_list *list,
						  const struct wf_paths_breaking *what);
/* It was not the path: forgets the breaking of that number, unless another one is remembered in its
 * place by now. 0 is none. */
void wf_paths_broken_forgive(struct wf_paths_broken_list *list, uint64_t number);

/* paths_conn.c: the states of a connection. */
struct wf_paths_conn *wf_paths_conn_create(struct wf_paths *t, bool incoming);
/* What goes through neither UP nor a caller: out of the count, freed by a later poll. */
void wf_paths_conn_gone(struct wf_paths_conn *m);
/* Free those that have gone; inner connections of theirs may still be ending. */
void wf_paths_conns_reap(struct wf_paths *t);
void wf_paths_conn_free(struct wf_paths_conn *m);
void wf_paths_conn_deadline(struct wf_paths_conn *m, uint64_t deadline_ns);
void wf_paths_conn_state(struct wf_paths_conn *m, enum wf_paths_state state);
/* The inner connection ends, and nobody is told. Accepts NULL. */
void wf_paths_abandon(struct wf_conn *inner, enum wf_disconnect how);
/* What DOWN will say; the first cause stays. */
void wf_paths_conn_cause(struct wf_paths_conn *m, enum weft_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* It has not ended for that: there is no cause any more. What is known of why stays. */
void wf_paths_conn_excuse(struct wf_paths_conn *m);
/* What is known of why something failed, where that is no cause yet. */
void wf_paths_conn_note(struct wf_paths_conn *m, const char *why);
/* End the inner connections; DOWN with the cause follows. */
void wf_paths_conn_kill(struct wf_paths_conn *m);
/* Count it up, over the inner connection `carry` of `path`. */
void wf_paths_conn_up(struct wf_paths_conn *m, struct wf_conn *carry, struct wf_path *path);
/* Make `event`, a DOWN of an inner one, that of `m`. */
void wf_paths_conn_report(struct wf_paths_conn *m, struct wf_event *event);
/* Deliver the DOWN of a FAILED one. */
void wf_paths_conn_report_failed(struct wf_paths_conn *m, struct wf_event *event);

/* paths_down.c: how connections end. */
/* The deadline of the state has come. */
void wf_paths_conn_expire(struct wf_paths_conn *m);
/* An inner connection went DOWN. False: `event` is not for the caller. */
bool wf_paths_conn_inner_down(struct wf_paths_conn *m, struct wf_event *event);
void wf_paths_disconnect(struct wf_conn *conn, enum wf_disconnect how);

/* paths_connect.c: the connecting end, until it is UP. */
enum weft_status wf_paths_connect(struct wf_transport *transport, const struct wf_host *to,
				  const void *hello, size_t hello_bytes, void *user,
				  struct wf_conn **out);
/* An inner connection is UP. False: `event` is not for the caller. */
bool wf_paths_connect_up(struct wf_paths_conn *m, struct wf_event *event);
/* BOOTING: the bootstrap went DOWN. */
bool wf_paths_connect_refused(struct wf_paths_conn *m, struct wf_event *event);
/* UPGRADING: the path went DOWN. */
bool wf_paths_connect_path_down(struct wf_paths_conn *m, struct wf_event *event);
/* JUDGING is over, and the peer is still there: it was the path. */
void wf_paths_connect_again(struct wf_paths_conn *m);

/* paths_rails.c: the offers of one path, and what broke of them. */
/* Take over those of the best path that this end may use. False: there are none. */
bool wf_paths_rails_begin(struct wf_paths_conn *m, const struct wf_path_head *head);
/* Begin an attempt over the next one. False: there is none left, and the cause is set. */
bool wf_paths_rails_next(struct wf_paths_conn *m);
/* The attempt failed. True: one over the next rail is under way. */
bool wf_paths_rails_failed(struct wf_paths_conn *m, const char *why);
/* What carried `m` has broken, or could not be had: the rail where there are others, else the path.
 */
void wf_paths_broke(struct wf_paths_conn *m, const char *why);
/* An attempt ended in silence. Without its bootstrap, the peer has gone: then it was not the path.
 */
void wf_paths_hung(struct wf_paths_conn *m, const char *why);
/* It was not the path. */
void wf_paths_forgive(struct wf_paths_conn *m);

/* paths_accept.c: the accepting end, until it is UP. */
/* An incoming inner connection. False: `event` is not for the caller. */
bool wf_paths_accept(struct wf_paths *t, struct wf_path *path, struct wf_event *event);
enum weft_status wf_paths_answer(struct wf_conn *conn, bool accept, const void *verdict,
				 size_t verdict_bytes);
