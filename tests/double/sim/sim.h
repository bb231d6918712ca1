/* SPDX-License-Identifier: Apache-2.0 */
/* sim: what the parts of the simulated world know of each other. Private to tests/double/sim.
 *
 * The world is a test instrument: where its own memory runs out it ends with an assertion.
 * Thread: the world's. */
#pragma once

#include <stddef.h>

#include "base/rng.h"
#include "base/status.h"
#include "base/url.h"
#include "transport/ops.h"
#include "transport/places.h"
#include "tests/double/sim/due.h"
#include "tests/double/sim/fiber.h"
#include "tests/double/sim/world.h"

#define WF_SIM_TURN_NS 1000u /* the least virtual time between two turns of a proc */

/* The struct around one of its members. */
#define WF_SIM_OUTER(type, member, pointer)                                                        \
	((type *)(void *)((char *)(void *)(pointer)-offsetof(type, member)))

/* --- world and procs --- */

enum wf_proc_state {
	WF_PROC_WAITING, /* or not yet started */
	WF_PROC_RUNNING,
	WF_PROC_RETURNED,
	WF_PROC_KILLED,
};

struct wf_sim_block;
struct wf_sim_slab;
struct wf_sim_task;
struct wf_sim_transport;
struct wf_sim_listener;
struct wf_sim_link;
struct wf_sim_partition;
struct wf_sim_pause;
struct wf_sim_leap;
struct wf_sim_hunger;

struct wf_proc {
	struct wf_env env; /* first: ops cast back */
	struct wf_world *world;
	struct wf_proc *next; /* of the world, in order of spawning */
	uint32_t idx;         /* in order of spawning */
	char host[WF_HOST_BYTES];
	int (*run)(struct wf_env *env, void *arg);
	void *arg;
	int result; /* of run; good once RETURNED */

	enum wf_proc_state state;
	struct wf_fiber fiber;
	struct wf_error error; /* the thread's record while it is not its turn */
	struct wf_due resume;
	struct wf_due kill;
	uint64_t turn_ns;     /* when its last turn began */
	uint64_t since_ns;    /* WAITING: since when */
	uint64_t deadline_ns; /* WAITING: until when */
	uint32_t ready;       /* events that wait in its transports */
	bool woken;           /* an event has arrived since the last wait ended */
	uint32_t idle_waits;  /* in a row, that left events and brought none */
	uint32_t clock_reads; /* in this turn */
	uint64_t task_ns;     /* additional duration of the running task */
	uint64_t ahead_ns;    /* of its clock, before the world's */
	bool begun;           /* it has had a turn */

	struct wf_rng rng;
	struct wf_sim_block *blocks; /* what its env handed out */
	struct wf_sim_slab *slabs;
	struct wf_sim_task *tasks; /* run, not yet marked done */
	struct wf_sim_transport *transports;
};

struct wf_world {
	struct wf_world_opts opts;
	struct wf_rng rng;
	uint64_t now_ns;
	struct wf_due_heap heap;
	struct wf_proc *procs;
	uint32_t proc_count;
	struct wf_proc *running; /* NULL: the world itself */
	struct wf_world_stats stats;

	struct wf_sim_link *links;
	struct wf_sim_listener *listeners;
	struct wf_sim_partition *partitions;
	struct wf_sim_pause *pauses;
	struct wf_sim_leap *leaps;
	struct wf_sim_hunger *hungers;
	uint64_t link_count;    /* ever made */
	uint32_t cuts_drawn[2]; /* by cut_per_million, of each network */
	uint32_t port_next;     /* for listen on port 0 */
};

/* Never NULL. For the world's own objects; procs use their env. */
void *wf_sim_zalloc(size_t bytes);
/* Uniform in [low, high]. */
uint64_t wf_sim_draw(struct wf_world *world, uint64_t low, uint64_t high);
/* True `rate` times in `of`; nothing is drawn at rate 0. */
bool wf_sim_chance(struct wf_world *world, uint64_t rate, uint64_t of);
/* Put a value into the digest of the run. */
void wf_sim_trace(struct wf_world *world, uint64_t value);
/* A proc has something to look at: its wait ends. */
void wf_sim_wake(struct wf_proc *proc);
/* The proc passes its turn until `at_ns` or a wake. */
void wf_sim_pass_turn(struct wf_proc *proc, uint64_t at_ns);
/* The clock of a proc that waits has leapt: what it waits for comes so much earlier. */
void wf_sim_hasten(struct wf_proc *proc, uint64_t by_ns);

/* --- faults.c: partitions, pauses, leaps, memory --- */

/* Whether an allocation of a proc fails now. */
bool wf_sim_is_starved(struct wf_proc *proc);

/* When a frame that would arrive on that side of a link at `at_ns` does arrive. */
uint64_t wf_sim_clear_ns(struct wf_sim_link *link, unsigned to, uint64_t at_ns);
/* The end of the pause in which a proc is now; 0: it is in none. */
uint64_t wf_sim_paused_until(struct wf_proc *proc);
void wf_sim_faults_free(struct wf_world *world);

/* --- env_sim.c --- */

void wf_sim_env_init(struct wf_proc *proc);
/* The proc behind an env; NULL if it is not one of a world. */
struct wf_proc *wf_sim_proc_of(struct wf_env *env);
void wf_sim_env_drop_tasks(struct wf_proc *proc);
/* Give back all that the env handed out. */
void wf_sim_env_release(struct wf_proc *proc);
/* Forget it, so that a leak checker sees what a proc that returned did not free. */
void wf_sim_env_forget(struct wf_proc *proc);

/* --- the network --- */

#define WF_SIM_NETS 2u /* "sim" is 0, "sim2" is 1 */
#define WF_SIM_REGION_MAX 1024u
#define WF_SIM_GRANT_MAX 4096u /* of one end */

/* An event that waits in a transport; embedded in the object that it reports. */
struct wf_sim_event {
	struct wf_sim_event *next;
	struct wf_sim_event *prev;
	enum wf_event_kind kind;
	bool queued;
	struct wf_sim_conn *conn;
};

enum wf_sim_frame_kind {
	WF_SIM_HELLO,
	WF_SIM_VERDICT,
	WF_SIM_REFUSAL,
	WF_SIM_MSG,
	WF_SIM_PUT,
	WF_SIM_FIN,
};

enum wf_sim_part_state {
	WF_SIM_UNREAD,
	WF_SIM_READ, /* out of the source, under way */
	WF_SIM_LANDED,
};

/* A piece of a PUT with its own schedule. */
struct wf_sim_part {
	struct wf_due due; /* reading, then landing */
	struct wf_sim_frame *frame;
	enum wf_sim_part_state state;
	uint64_t offset;
	uint64_t bytes;
	uint64_t land_ns;
};

#define WF_SIM_PART_MAX 8u

/* A frame on its way from one end to the other. It lives until its event is consumed, or until no
 * end is left to see it. */
struct wf_sim_frame {
	struct wf_due due; /* its event at the receiver */
	struct wf_sim_event event;
	struct wf_sim_frame *next; /* of its direction, in post order; then of `spent` */
	struct wf_sim_frame *prev;
	struct wf_sim_link *link;
	unsigned to; /* side */
	enum wf_sim_frame_kind kind;
	bool lost;            /* its event will not come */
	const char *bad;      /* what is wrong with a PUT, or NULL */
	struct wf_sim_op *op; /* PUT: NULL after its DONE */
	/* MSG */
	struct wf_head head;
	/* PUT */
	uint32_t tag;
	bool in_slot;
	uint8_t *target; /* in the receiver's region */
	uint64_t bytes;
	const uint8_t *source;
	struct wf_sim_part part[WF_SIM_PART_MAX];
	unsigned part_count;
	/* HELLO, VERDICT, REFUSAL, MSG: the payload; PUT: the bytes read so far. */
	size_t body_bytes;
	uint8_t body[];
};

/* An operation that was accepted and is not DONE. */
struct wf_sim_op {
	struct wf_due due;
	struct wf_sim_event event;
	struct wf_sim_op *next; /* of its connection */
	struct wf_sim_op *prev;
	uint64_t cookie;
	enum weft_status status;
	struct wf_sim_frame *frame; /* PUT: NULL once the frame is gone */
	uint32_t region;            /* PUT */
	const void *source;         /* PUT; NULL for SEND */
	uint64_t bytes;
	uint32_t source_crc; /* when it was accepted */
};

enum wf_sim_conn_state {
	WF_SIM_CONNECTING, /* no verdict yet */
	WF_SIM_ANSWERED,   /* the verdict is here, its UP is not delivered */
	WF_SIM_INCOMING,   /* waits for answer */
	WF_SIM_UP,
	WF_SIM_CLOSING, /* disconnect was called */
	WF_SIM_DOWN,    /* DOWN is queued */
};

enum wf_sim_slot_state {
	WF_SIM_SLOT_FREE,
	WF_SIM_SLOT_FLYING, /* a PUT is on its way there */
	WF_SIM_SLOT_HELD,   /* delivered, not released */
};

struct wf_sim_grant {
	struct wf_grant grant;
	uint64_t nonce;
	uint8_t *base;
};

/* One end of a link. */
struct wf_sim_conn {
	struct wf_conn base; /* first: calls cast back */
	struct wf_sim_transport *transport;
	struct wf_sim_conn *next; /* of its transport, or of `gone` */
	struct wf_place place;
	struct wf_sim_conn *prev;
	struct wf_sim_link *link;
	unsigned side; /* 0: called connect */
	enum wf_sim_conn_state state;
	bool asked; /* INCOMING: UP was delivered */
	char peer[WF_HOST_BYTES + 8];

	struct wf_due attempt; /* connect_timeout_ns */
	struct wf_due down;
	struct wf_sim_event down_event;
	enum weft_status down_status;
	char why[WF_WHY_BYTES];
	uint8_t blob[WF_BLOB_ROOM]; /* of a refusal */
	size_t blob_bytes;

	struct wf_sim_op *ops; /* in post order */
	struct wf_sim_op *ops_tail;
	uint32_t op_count;

	struct wf_sim_grant *grants; /* what the peer may PUT into */
	uint32_t grant_count;
	uint32_t grant_capacity;
	uint8_t *slots; /* enum wf_sim_slot_state of each; NULL: none granted */
	uint32_t slot_count;
};

/* What flies towards one end. */
struct wf_sim_dir {
	struct wf_sim_frame *head;
	struct wf_sim_frame *tail;
	uint64_t last_ns;   /* when the last frame's event comes */
	uint64_t cutoff_ns; /* events after this do not come; WF_NEVER: the link is whole */
};

struct wf_sim_link {
	struct wf_sim_link *next; /* of the world */
	struct wf_sim_link *prev;
	struct wf_world *world;
	uint64_t id;
	unsigned net;
	const char *caller; /* host of side 0; of the proc */
	struct wf_host target;
	struct wf_due cut;
	struct wf_sim_conn *end[2]; /* NULL: not there yet, or gone */
	struct wf_sim_dir dir[2];   /* by the side they lead to */
};

struct wf_sim_listener {
	struct wf_sim_listener *next;
	struct wf_sim_transport *transport;
	uint16_t port;
};

struct wf_sim_transport {
	struct wf_transport base; /* first: calls cast back */
	struct wf_world *world;
	struct wf_proc *proc;
	unsigned net;
	struct wf_sim_transport *next; /* of its proc */
	struct wf_transport_opts opts;
	struct wf_transport_info info;
	struct wf_sim_conn *conns;
	struct wf_places places;
	struct wf_sim_conn *gone;   /* DOWN delivered, freed by the next poll */
	struct wf_sim_frame *spent; /* delivered, freed by the next poll */
	struct wf_sim_event *first;
	struct wf_sim_event *last;
	uint32_t event_count;
	struct wf_region regions[WF_SIM_REGION_MAX];
	uint32_t region_count;
};

/* sim.c: the table of the backend. */
extern const struct wf_backend wf_backend_sim;
extern const struct wf_backend wf_backend_sim2; /* its second network */
void wf_sim_event_push(struct wf_sim_conn *conn, struct wf_sim_event *event,
		       enum wf_event_kind kind);
/* Nothing if it is not queued. */
void wf_sim_event_drop(struct wf_sim_event *event);
/* Drops and frees what is queued for `conn` (NULL: for all) except DONE and DOWN. */
void wf_sim_events_purge(struct wf_sim_transport *transport, const struct wf_sim_conn *conn);
/* Everything of a transport that the world holds; its own memory stays. */
void wf_sim_transport_vanish(struct wf_sim_transport *transport);

/* sim_conn.c: one end. */
struct wf_sim_conn *wf_sim_conn_create(struct wf_sim_transport *transport, struct wf_sim_link *link,
				       unsigned side);
/* Out of its link and its transport, without events; the peer notices. Memory stays. */
void wf_sim_conn_detach(struct wf_sim_conn *conn);
void wf_sim_conn_free(struct wf_sim_conn *conn);
/* DOWN at `at_ns`, unless an earlier one is due. */
void wf_sim_conn_down_at(struct wf_sim_conn *conn, uint64_t at_ns, enum weft_status status,
			 const char *what);
/* It will notice, in its own time, that the link is broken. Accepts NULL. */
void wf_sim_conn_lose(struct wf_sim_conn *conn, enum weft_status status, const char *what);
/* The peer broke the rules: DOWN with PROTOCOL, now; the peer may learn the reason, or only be
 * reset. */
void wf_sim_conn_refuse(struct wf_sim_conn *conn, const char *what);
void wf_sim_conn_close(struct wf_sim_conn *conn, enum wf_disconnect how);
/* Take one operation; WEFT_INVALID: its source is outside its region. */
enum weft_status wf_sim_conn_take(struct wf_sim_conn *conn, const struct wf_op *op);
void wf_sim_op_free(struct wf_sim_op *op);

/* sim_grant.c: what one end allows the other to write. */
enum weft_status wf_sim_grant_make(struct wf_sim_conn *conn, const struct wf_grant *grant,
				   struct wf_grant_key *out);
/* Finds where a PUT of the peer of `conn` would land, into `frame`; or returns what is wrong with
 * it. */
void wf_sim_grant_resolve(struct wf_sim_conn *conn, const struct wf_op *op,
			  struct wf_sim_frame *frame);
/* The event of a PUT into a slot is delivered: the bytes after it may not be read until the release
 * or the end of the connection. */
void wf_sim_grant_hold(struct wf_sim_conn *conn, const struct wf_sim_frame *frame);
void wf_sim_grant_release(struct wf_sim_conn *conn, uint32_t slot);
/* The connection is gone. */
void wf_sim_grants_free(struct wf_sim_conn *conn);

/* sim_net.c: links and frames. */
struct wf_sim_link *wf_sim_link_create(struct wf_world *world, unsigned net,
				       const struct wf_host *target);
/* Free it if both ends are gone. */
void wf_sim_link_settle(struct wf_sim_link *link);
void wf_sim_link_free(struct wf_sim_link *link);
void wf_sim_link_cut(struct wf_sim_link *link);
/* A frame towards `to`, not yet under way. */
struct wf_sim_frame *wf_sim_frame_create(struct wf_sim_link *link, unsigned to,
					 enum wf_sim_frame_kind kind, size_t body_bytes);
/* Send it: its event comes after those of all frames sent before it. */
void wf_sim_frame_send(struct wf_sim_frame *frame);
/* Cut the PUT into parts; each is read by `read_by_ns` and lands before the event. */
void wf_sim_frame_scatter(struct wf_sim_frame *frame, uint64_t read_by_ns);
/* Reads the bytes of the source that are still unread. */
void wf_sim_frame_read(struct wf_sim_frame *frame);
void wf_sim_frame_free(struct wf_sim_frame *frame);
/* No event after the first frame towards `to` whose source was not read in full. */
void wf_sim_dir_drop_unread(struct wf_sim_link *link, unsigned to);
void wf_sim_dir_clear(struct wf_sim_link *link, unsigned to);
struct wf_sim_listener *wf_sim_listener_find(struct wf_world *world, unsigned net, const char *host,
					     uint16_t port);
