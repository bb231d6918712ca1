/* SPDX-License-Identifier: Apache-2.0 */
/* service: what every lane does, and what the service on it does. A lane has one service from its
 * making on: the dense one lives in this folder (dense.h), the sparse one in sparse/server.
 *
 * Of every lane:
 * lane.c    the turn: events, deadlines
 * end.c     how a path and the job end, and for which cause
 * admit.c   who may come in, coming back
 * start.c   with what a job begins, and when
 * peers.c   the trainers of the job: their memory, and who they are
 * members_lane.c  a trainer that is dropped or leaves while the job goes on
 * members_join.c  one that joins
 * absent.c  who has not come in, and why, and who is silent: told to the others
 * step.c    steps counted and measured
 * waits.c   who is waited for, and since when
 * path.c    windows and places granted, RESUME and HAVE, CREDIT, parking
 * control.c GOODBYE, ABORT and REDUCE, heard and said
 * beats.c   who takes no turns
 * reduce.c  the N-way reduce and the barrier (lane 0 of pserver 0)
 * report.c  counters that are gathered, and the lines about them
 * trace.c   what is recorded for whoever asks
 * view.c    what is shown to whoever watches
 * watch.c   who asks for that
 *
 * The service: descriptions of the job, messages of its number, PUTs, memory, and all that it
 * sends. Thread: the lane's. */
#pragma once

#include "base/assert.h"
#include "base/beats.h"
#include "base/spin.h"
#include "base/waits.h"
#include "exchange/buffers.h"
#include "exchange/cursors.h"
#include "exchange/order.h"
#include "exchange/places.h"
#include "exchange/report.h"
#include "exchange/send.h"
#include "exchange/slots.h"
#include "exchange/staging.h"
#include "exchange/turn.h"
#include "pserver/lane.h"
#include "transport/transport.h"
#include "wire/messages.h"

#define WF_HELD_MAX 256 /* hellos that wait for the job's description, one of each trainer */
#define WF_OPS_PER_POST 16
#define WF_REGISTRY_CONNS_MAX 4096u /* of a lane with other pservers (registry.h) */

struct wf_peer;
struct wf_trace;        /* base/trace.h */
struct wf_watch_record; /* wire/watch_messages.h */
struct wf_watchers;     /* watch.h */
struct wf_snapshot;     /* saved/snapshot.h */

/* How much of what is due to one peer a service has sent. */
enum wf_flush {
	WF_FLUSH_DONE,
	WF_FLUSH_LEFT, /* something waits, but not for the transport */
	WF_FLUSH_FULL, /* the transport accepts no more: try again after a DONE */
};

/* All mandatory but those that may be NULL. */
struct wf_lane_service {
	uint8_t number;      /* enum wf_service */
	const char *name;    /* "dense" */
	const char *payload; /* "tensors" */
	const char *ports;   /* the option that counts its lanes: "ports_num" */

	size_t own_bytes;  /* of lane->own, zeroed when the lane is made */
	size_t peer_bytes; /* of peer->own, zeroed when the job opens */

	/* The description of a job comes from the trainer that is `loading`, as messages of the
	 * service. When it is known to be within the limits, wf_peers_begin_all is called, and then
	 * its memory is allocated; when everything is there, wf_admit_job_is_here. release frees
	 * what the job allocated, also if it is half allocated; lane->own is zero again. */
	void (*release)(struct wf_lane *lane);
	/* The peer is UP and the job is ready; NULL: nothing is to be done. DOWN, after what lay in
	 * the window was parked: forget what belonged to the path. */
	void (*path_begins)(struct wf_lane *lane, struct wf_peer *peer);
	void (*path_ends)(struct wf_lane *lane, struct wf_peer *peer);

	/* Sends what comes before RESUME on a new path, once. NULL: nothing does. False: the
	 * transport accepts no more. */
	bool (*open_path)(struct wf_lane *lane, struct wf_peer *peer);

	/* The step of this unit that is waited for from the peer. 0: none yet, and what comes
	 * before the first step. */
	uint64_t (*next)(const struct wf_lane *lane, const struct wf_peer *peer, uint32_t unit);
	/* On a new path the peer reports that it waits for the answer of step `next` of this unit,
	 * has those before, and has begun step `begun`: sends again the answers that it lacks. A
	 * failure is an offence of the peer, as in the next two functions. */
	enum weft_status (*has)(struct wf_lane *lane, struct wf_peer *peer, uint32_t unit,
				uint64_t next, uint64_t begun);
	enum weft_status (*message)(struct wf_lane *lane, struct wf_peer *peer,
				    const struct wf_head *head, const uint8_t *body);
	enum weft_status (*put)(struct wf_lane *lane, struct wf_peer *peer,
				const struct wf_put *put);
	/* Copy aside what the peer's window holds as `word` (wf_slots_hold): it lies in no slot
	 * from here on. Returns bytes; 0: it goes with the path, which has ended. */
	uint64_t (*park)(struct wf_lane *lane, struct wf_peer *peer, uint32_t word);
	/* A PUT with this cookie is DONE; 0 is no PUT. */
	void (*done)(struct wf_lane *lane, uint64_t cookie);
	/* Sends what is due: flags and cursors become operations. */
	enum wf_flush (*flush)(struct wf_lane *lane, struct wf_peer *peer);
	/* Sends only what was queued with wf_peer_owes, which is the most frequent case; nothing to
	 * a peer without a path. Returns whether something is left. NULL: the service queues
	 * nothing so. */
	bool (*flush_owed)(struct wf_lane *lane, struct wf_peer *peer);
	/* Something to do beside events, a bounded piece of it; NULL: never. Whether there is more.
	 */
	bool (*work)(struct wf_lane *lane);

	/* Of a pserver that takes snapshots: what the lane has of this one goes into its memory,
	 * which is allocated. begin follows. */
	enum weft_status (*load)(struct wf_lane *lane, const struct wf_snapshot *from);
	/* The job begins: after the step of `init`, whose state is in the lane's memory, or, with
	 * NULL, with what trainer 0 sends. Sets what follows from that, and logs what the lane has.
	 * A failure ends the job. */
	enum weft_status (*begin)(struct wf_lane *lane, const struct wf_msg_init *init);
	/* Something of a connection between pservers: its UP, with the hello of one that comes in,
	 * which is to be answered; its messages; its DOWN. And of connections that belong to no
	 * trainer any more, which is to be ignored. NULL: the service has none of them. */
	void (*registry)(struct wf_lane *lane, const struct wf_event *event,
			 const struct wf_hello *hello);
	/* All trainers have sent GOODBYE, and those of a lane that ends together are not answered
	 * yet. NULL: nothing is to be done. */
	void (*ended)(struct wf_lane *lane);
	/* Whether it is known that the job has ended, and not this life of it alone. Called for a
	 * lane that is FINISHED, until it returns true; it says when it wants to be called again
	 * (wf_turn_tick_before). NULL: it is. */
	bool (*is_over)(struct wf_lane *lane, uint64_t now_ns);
	/* Where the lane stands, which has steps of its order: the highest step that is applied, or
	 * a part of it, and the lowest that is here whole of the peer. */
	void (*stands)(const struct wf_lane *lane, const struct wf_peer *peer, uint64_t *applied,
		       uint64_t *received);
	/* The peer, whose path is down, was dropped from the order: drops what it has pushed and is
	 * not applied, and applies what waited for that. */
	void (*drop)(struct wf_lane *lane, struct wf_peer *peer);
	/* The peer becomes a member with the step of peer->joining: it has pushed nothing so far,
	 * and its next path begins with what the job has before that step. */
	void (*enter)(struct wf_lane *lane, struct wf_peer *peer);
	/* Something may be applied again: wf_members_hold was true. */
	void (*go_on)(struct wf_lane *lane);
	/* The clock was looked at while the job runs; NULL: nothing depends on it. */
	void (*tick)(struct wf_lane *lane, uint64_t now_ns);

	/* Updates the service's gauges; appends its fields to a line, with a blank before each; and
	 * writes its own lines. */
	void (*gather)(struct wf_lane *lane);
	void (*words)(const struct wf_lane *lane, const struct wf_report_line *line, char *out,
		      size_t bytes);
	void (*lines)(struct wf_lane *lane, bool job_ends);
	/* Somebody watches from now on: times are on. NULL: nothing follows from that. */
	void (*measure)(struct wf_lane *lane);
	/* Fills the record of table `idx`, which is empty so far. False: there are no more. NULL:
	 * there are none. */
	bool (*watch)(const struct wf_lane *lane, uint32_t idx, struct wf_watch_record *out);
	/* The recording of the lane (trace.h) ends: adds what it has counted. NULL: nothing. */
	void (*trace)(const struct wf_lane *lane, struct wf_trace *ring);
};

enum wf_peer_state {
	WF_PEER_ABSENT, /* never seen, or it gave up before it had sent anything */
	WF_PEER_UP,
	WF_PEER_LOST, /* has until lost.deadline_ns to come back */
	WF_PEER_GONE, /* has sent GOODBYE */
};

/* A connection whose hello is good and that is not answered yet: the job still arrives from another
 * trainer, or an older path of the same one is not DOWN; or it could not be answered, and its DOWN
 * is awaited. */
struct wf_held {
	struct wf_conn *conn;
	struct wf_hello hello;
};

/* A path that was lost: end.c notes why, admit.c until when the trainer may come back. */
struct wf_peer_loss {
	uint64_t deadline_ns;   /* LOST: it has until then to come back */
	bool offended;          /* it broke the protocol: it is not admitted again */
	char why[WF_WHY_BYTES]; /* "": not known yet */
};

/* The job's description, which one trainer sends: admit.c's. */
struct wf_peer_loading {
	bool is_due;          /* it is this one, on this path */
	uint64_t deadline_ns; /* deadline of the whole message */
	uint64_t looked_ns;   /* when the lane compared it with the clock last */
};

/* What opens a path: path.c's. */
struct wf_opening {
	bool grant_due;                /* of the window */
	struct wf_cursor resume, have; /* what is sent and received about units */
};

/* GOODBYE: control.c's. */
struct wf_peer_farewell {
	bool answer_due; /* on this path */
	bool is_over;    /* GONE, and has received the acknowledgement: it will not reconnect */
};

/* A trainer that is dropped or leaves: members_lane.c's. */
struct wf_peer_leaving {
	uint64_t border; /* ordered: the first step without it */
	bool asked;      /* it is lost here or leaves, as the registrar knows */
	bool has_left;   /* it has sent that it leaves, */
	bool is_willing; /* or the registrar has: its path does not end before it is dropped */
	bool ordered;
	bool alone; /* nobody else takes part in step `border`, which has parts of it */
	bool is_dropped;
};

/* A process that joins in the place of a trainer: members_join.c's. */
struct wf_peer_joining {
	bool ordered;         /* and not a member yet */
	uint64_t border;      /* the first step with it */
	uint64_t incarnation; /* of the process */
	uint64_t samples;     /* of all trainers, before the border */
};

/* The members of a job that goes on when it has lost one: members_lane.c's. */
struct wf_lane_members {
	uint64_t seen;          /* number of the order that it has followed last */
	uint64_t unanswered;    /* it, if it has a border and is not answered; else 0 */
	uint64_t applied;       /* the highest step that was applied anywhere at the last change */
	uint32_t leaving_count; /* peers that are ordered to leave, and not dropped */
	uint32_t joining_count; /* peers that are ordered to join, and are no members yet */
	uint32_t pass_ended;    /* the last pass that has ended; lane 0 of pserver 0 knows */
	bool holds;             /* from its report to the border */
	bool is_unsettled;      /* not all lanes have dropped one; lane 0 of pserver 0 knows */
};

/* One trainer's request to the reduce. */
struct wf_reduce_part {
	bool answer_due; /* the result is to be sent, on this path */
	uint64_t before; /* reduces before it joined: its own requests count from there */
	uint64_t id;     /* last request received */
	uint64_t step;
	double value[WF_REDUCE_MAX];
	uint64_t pieces; /* of arrays (weft_all_reduce) that it has sent to this lane */
};

/* One trainer as one lane sees it. */
struct wf_peer {
	struct wf_lane *lane;
	void *own;               /* the service's */
	struct wf_due due;       /* in lane->turn */
	uint32_t trainer;        /* id */
	struct wf_member member; /* in lane->order */
	enum wf_peer_state state;
	struct wf_hello hello;    /* of the newest connection */
	struct wf_conn *conn;     /* UP or going DOWN; NULL: none */
	struct wf_held successor; /* waits for `conn` to be DOWN, or to join; its conn NULL: none */
	bool closing;             /* conn is being disconnected */
	bool has_joined;          /* it has sent something, on this path or an older one */
	bool came_later;          /* it has joined while the job went on */
	struct wf_beat beat;      /* of conn */
	struct wf_peer_loss lost;
	struct wf_peer_leaving leaving;
	struct wf_peer_joining joining;

	struct wf_slots slots; /* its window */
	struct wf_opening opening;
	struct wf_answer_places places; /* that it has granted */

	/* Path: forgotten at DOWN. */
	struct wf_peer_loading loading;
	struct wf_peer_farewell farewell;
	bool abort_due, absent_due;
	struct wf_reduce_part reduce;
};

/* The trainers of a job: of peers.c. Entries that have not begun are untouched, so that they use
 * addresses and no memory, because the number comes from an unverified hello. All zeroes is ABSENT.
 */
struct wf_peers {
	struct wf_peer *all; /* [count] */
	void *own;           /* [count] of service->peer_bytes: their `own` */
	uint32_t count;      /* 0: there is no job */
	uint32_t gone_count; /* of them, those that sent GOODBYE */
};

/* The memory of the peers' windows: [peers.count][slot_count] slots. On a path that leaves pushes
 * in the trainer's memory (wf_path_info.in_place) a window has all of them, on others
 * opts.slot_count. */
struct wf_windows {
	uint64_t slot_bytes; /* 0: there are none */
	uint32_t slot_count;
	uint64_t held_bytes; /* limit in GRANT of one trainer's pushes; 0: none is sent */
	bool announced;      /* flag in GRANT: pushes are announced */
	struct wf_buffers inbox;
	struct wf_msg_steps steps; /* scratch of one encode, like the next */
	struct wf_msg_credit credit;
};

/* The reduce of all trainers: reduce.c's, as wf_reduce_part is. */
struct wf_reduction {
	uint64_t id; /* completed */
	uint64_t step;
	uint32_t count;
	double value[WF_REDUCE_MAX];
	uint32_t pending_count; /* values of the one under way */
	uint64_t since_ns;      /* its first request; 0: none is under way */
	/* Pieces of arrays, on each lane: the most that a trainer has sent, and since when some of
	 * these are missing from others; 0: none is. */
	uint64_t pieces, pieces_since_ns;
	struct wf_msg_reduce msg; /* scratch of one encode */
};

/* The end of a job on this lane: end.c's. */
struct wf_lane_end {
	bool complete;    /* no connection is left */
	bool rolled_back; /* the life of the job before this one has ended so */
	bool holds;       /* FINISHED, and whether all of the job has ended is not known yet */
	struct wf_lane_cause cause;
	uint64_t deadline_ns; /* connections that are left by then are cut */
};

/* The hello that opened the job, with which the others are compared: admit.c's. */
struct wf_admission {
	bool is_open;           /* a trainer was admitted */
	struct wf_hello first;  /* of the first trainer admitted */
	struct wf_hello spoken; /* of the first one that has words to compare; else zeroed */
	bool numerics_said;     /* that a trainer computes otherwise was logged */
	uint64_t start_ns;      /* when the first trainer connected */
	uint64_t deadline_ns;   /* all trainers there by then */
};

/* What a lane may wait for, several at a time. */
enum wf_lane_awaits {
	WF_LANE_AWAITS_START, /* a trainer is missing, or the state with which the job begins is not
			     * here */
	WF_LANE_AWAITS_HOLDS, /* answers that wait for what others push */
	WF_LANE_AWAITS_STEP,
	WF_LANE_AWAITS_REDUCE,
};
#define WF_LANE_AWAITS_COUNT (WF_LANE_AWAITS_REDUCE + 1u)

#define WF_ABSENTEES_MAX 8u /* that are remembered; the log has all */

/* A trainer that has never been admitted, of which something is known. */
struct wf_absentee {
	uint32_t trainer;
	enum weft_status status; /* that the job ends with */
	uint64_t deadline_ns;    /* to join; later it ends a job that cannot have run */
	char why[WF_REASON_BYTES];
};

/* Connections of those who are not in: admit.c's. */
struct wf_newcomers {
	/* Good hellos that wait for the job's description, until the job fails. */
	uint32_t held_count;
	struct wf_held held[WF_HELD_MAX]; /* the first `held_count` */
	/* Lines about those that are refused or closed: it costs their peers nothing to come. */
	struct wf_log_limit warnings;
	uint64_t strangers_look_ns; /* next look at the transport's counters */
	uint64_t strangers_said;
};

/* The job as the service has it from its description. */
struct wf_described {
	uint64_t received_bytes; /* of the description, of first.job_bytes */
	bool is_here;            /* all of it, and the memory is allocated */
	bool is_ready;           /* and it is known with what the job begins: paths may begin */
	/* Set by the service when the job is here. */
	bool has_steps; /* trainers send steps to this lane */
	/* No step of the job ends without every trainer, and no reduce. */
	bool needs_all;
	uint32_t unit_count;  /* units whose steps RESUME and HAVE report */
	uint32_t place_count; /* places that a trainer may grant */
	const char *owed;     /* what trainer 0 owes before the first step; NULL: nothing */
};

/* What is known of trainers that the job waits for: absent.c's. */
struct wf_absences {
	struct wf_absentee known[WF_ABSENTEES_MAX]; /* the first `count` */
	uint32_t count;
	uint32_t silent; /* 1 + the trainer that takes no turns, as reported to others; 0: none */
	/* As `needs_all` of the lane: another lane reports it for what this lane does not know;
	 * read once this one has run. */
	bool others_need_all;
};

/* Whom the job waits for: waits.c has the ways, beats.c who is silent, absent.c who is not here. */
struct wf_lane_waits {
	struct wf_wait_gate gate[WF_LANE_AWAITS_COUNT]; /* of "waits for" lines */
	struct wf_beat_clock beats;
	struct wf_absences absent;
};

/* What the lane says of itself beside its counters: report.c's. */
struct wf_lane_report {
	struct wf_hist step_time;
	struct wf_report lines;
};

/* What the lane does, while it is recorded: trace.c's. */
struct wf_lane_trace {
	struct wf_trace *ring; /* NULL: it is not recorded */
	uint64_t recording;    /* its number; 0: none */
};

struct wf_lane {
	struct wf_owner owner; /* the thread that polls */
	/* Its awaits_done: the service may be waiting for a DONE. True until the service clears
	 * it. */
	struct wf_turn turn;
	struct wf_env *env;
	struct wf_lane_opts opts;
	const struct wf_lane_service *service;
	void *own; /* the service's */
	uint16_t port;

	enum wf_lane_job state; /* FINISHED and FAILED begin the end; end.complete completes it */
	struct wf_lane_end end;

	/* Job. */
	struct wf_admission admission;
	struct wf_described job;

	struct wf_peers peers;
	struct wf_windows windows; /* the peers' */
	struct wf_order order;     /* of peers' members */
	struct wf_reduction reduction;

	struct wf_newcomers newcomers;
	struct wf_lane_waits waits;
	struct wf_lane_members members;

	struct wf_watchers *watchers; /* watch.c's; NULL: none has come */
	struct wf_stats stats;
	struct wf_lane_report report;
	struct wf_lane_trace trace;
	struct wf_msg msg; /* scratch of one encode */
};

/* end.c */
/* Closes the path; the recorded failure is the reason. */
void wf_peer_end_path(struct wf_peer *peer);
/* Closes one connection for what it sent; the recorded failure is the reason. */
void wf_lane_offence(struct wf_lane *lane, struct wf_peer *peer);
/* Whether a line about a connection that is refused or closed may be logged now; those that may not
 * are counted, and their number is logged. */
bool wf_lane_may_warn(struct wf_lane *lane);
void wf_lane_fail(struct wf_lane *lane, enum weft_status status, uint64_t step, const char *format,
		  ...) __attribute__((format(printf, 4, 5)));
/* The status with which the loss of a member ends the job: WEFT_ROLLED_BACK if it goes back. */
static inline enum weft_status
wf_lane_loss(const struct wf_lane *lane)
{
	return lane->opts.rejoin_timeout_ns > 0 ? WEFT_ROLLED_BACK : WEFT_LOST;
}
/* Whether GOODBYE is answered when all trainers have sent theirs and the end is recorded. */
static inline bool
wf_lane_ends_together(const struct wf_lane *lane)
{
	return lane->opts.idx == 0 && lane->opts.snapshots != NULL &&
	       lane->admission.first.pserver_idx == 0;
}
/* All trainers have sent GOODBYE: the job is over when they have received the acknowledgement. */
void wf_end_finish(struct wf_lane *lane);
/* The transport has failed with `st`: no message can be sent, and no connection is left. */
void wf_end_at_once(struct wf_lane *lane, enum weft_status st);
/* The job is FINISHED or FAILED: is no connection of it left? */
bool wf_end_look(struct wf_lane *lane, uint64_t now);
/* It has ended, and the lane may have another. */
void wf_end_forget(struct wf_lane *lane);

/* An event of a connection without a trainer. */
static inline void
wf_lane_registry(struct wf_lane *lane, const struct wf_event *event, const struct wf_hello *hello)
{
	if (lane->service->registry != NULL) {
		lane->service->registry(lane, event, hello);
	}
}

/* Something is to be sent: the next turn does. */
static inline void
wf_peer_due(struct wf_peer *peer)
{
	wf_turn_due(&peer->lane->turn, &peer->due);
}

/* The same for what the service's flush_owed sends. The peer's path is open. */
static inline void
wf_peer_owes(struct wf_peer *peer)
{
	wf_turn_owes(&peer->lane->turn, &peer->due);
}

/* The bytes of a slot of its window are no longer needed, and CREDIT returns it. */
static inline void
wf_peer_credit(struct wf_peer *peer, uint32_t slot)
{
	wf_slots_credit(&peer->slots, peer->conn, slot);
	wf_peer_due(peer);
}

/* peers.c */
/* Memory for `count` trainers. WEFT_NOMEM. */
enum weft_status wf_peers_open(struct wf_lane *lane, uint32_t count) WEFT_MUST_CHECK;
void wf_peers_close(struct wf_lane *lane); /* accepts none */
/* The memory of a trainer's state is touched. */
struct wf_peer *wf_peers_begin(struct wf_lane *lane, uint32_t trainer);
/* Likewise of all of them: the description is within the limits. */
void wf_peers_begin_all(struct wf_lane *lane);
/* Somebody is to send the job's description. */
bool wf_peers_is_loading(const struct wf_peers *peers);
/* Whose newer connection, which is held, it is; NULL: nobody's. */
struct wf_peer *wf_peers_find_successor(const struct wf_peers *peers, const struct wf_conn *conn);
/* Whether its successor is a newer path of the same process, which goes on as soon as `conn` is
 * DOWN. Another process waits for a border, which lets it in (members_join.c). */
bool wf_peer_has_newer_path(const struct wf_peer *peer);
/* Those that `listed` is true of: "1, 3 and 5 more". */
void wf_peers_list(const struct wf_lane *lane,
		   bool (*listed)(const struct wf_lane *lane, const struct wf_peer *peer),
		   char *out, size_t bytes);
/* "trainer 1 (host nodea, pid 12)" */
void wf_peer_describe(const struct wf_peer *peer, char *out, size_t bytes);

/* admit.c */
void wf_admit_up(struct wf_lane *lane, const struct wf_event *event);
void wf_admit_down(struct wf_lane *lane, const struct wf_event *event);
/* `peer` has sent the whole description, with the result `st`: the job runs, or ends. */
void wf_admit_job_is_here(struct wf_lane *lane, struct wf_peer *peer, enum weft_status st);
void wf_admit_release_job(struct wf_lane *lane);
/* Is it the hello of a trainer that is, or was, in the lane's job? For its transport. */
bool wf_admit_knows(void *lane, const uint8_t *hello, size_t hello_bytes);
/* NULL: it was refused, is held, or was superseded. */
static inline struct wf_peer *
wf_admit_peer_of(const struct wf_lane *lane, const struct wf_conn *conn)
{
	struct wf_peer *peer = conn->user;
	if (peer != NULL && peer->conn != conn) {
		return NULL;
	}
	WF_ASSERT(peer == NULL || peer->lane == lane);
	return peer;
}

/* The peer has become a member, and its successor is its process: accepts it. */
void wf_admit_enter(struct wf_lane *lane, struct wf_peer *peer);

/* start.c */
/* The description is here, or the clock was read: begins the job if it is known with what. */
void wf_start_look(struct wf_lane *lane);

/* absent.c and admit.c: of one trainer, refused by one lane and gone from the others, so much
 * earlier ends the former, and the refusal is why the job ends. */
#define WF_REFUSAL_FIRST_NS (WF_NS_PER_S / 2)

/* absent.c: of trainers that were never here, the others' messages and the end of the job; and the
 * messages about one that is here. */
/* The recorded failure is why `hello` was refused. */
void wf_absent_note_refusal(struct wf_lane *lane, const struct wf_hello *hello);
/* Its hello was valid, and its connection ended, with the status `how`, before it had joined. */
void wf_absent_note_gone(struct wf_lane *lane, const struct wf_hello *hello, enum weft_status how,
			 const char *text);
/* Something is known that is sent to the trainers that are here. */
bool wf_absent_is_any(const struct wf_lane *lane);
/* The job is over. */
void wf_absent_release(struct wf_lane *lane);
/* The trainer has joined. */
void wf_absent_forget(struct wf_lane *lane, uint32_t trainer);
/* Why it is not admitted; "": unknown. */
const char *wf_absent_why(const struct wf_lane *lane, uint32_t trainer);
/* A step was applied, or part of one, of a job that can do without some. */
bool wf_lane_has_run(const struct wf_lane *lane);
/* Ends the job if a missing trainer has not joined in time. */
void wf_absent_check(struct wf_lane *lane, uint64_t now);
/* Trainer `silent` - 1 takes no turns, and is waited for; 0: no trainer is, any more. */
void wf_absent_note_silent(struct wf_lane *lane, uint32_t silent);
/* The current state is due to the peer. flush: false: the transport accepts no more. */
void wf_absent_send(struct wf_lane *lane, struct wf_peer *peer);
bool wf_absent_flush(struct wf_lane *lane, struct wf_peer *peer);

/* step.c */
/* A trainer that has left does not push any more. */
void wf_step_fail_if_left(struct wf_lane *lane, uint64_t step);
/* What follows for the lane from the member's step `step`, which the order has counted. */
static inline void
wf_step_begins(struct wf_lane *lane, uint64_t step)
{
	struct wf_step_sum *sum = &lane->order.sum;
	if (lane->turn.times.on && sum->heard == 1 && sum->since_ns == 0) {
		sum->since_ns = wf_now_ns(lane->env);
	}
	if (lane->peers.gone_count > 0) {
		wf_step_fail_if_left(lane, step);
	}
}
/* wf_order_on_step, and what follows from it for the lane. */
static inline enum weft_status
wf_step_record(struct wf_lane *lane, struct wf_peer *peer, const struct wf_step_said *said,
	       enum wf_step_news *out)
{
	enum weft_status st = wf_order_on_step(&lane->order, &peer->member, said, out);
	/* A trainer that is out of data begins no step, because one that has left could be missing
	 * in it. */
	if (st == WEFT_OK && *out != WF_STEP_AGAIN && !said->out) {
		wf_step_begins(lane, said->step);
	}
	return st;
}
/* All of the step is applied. */
void wf_step_is_done(struct wf_lane *lane, uint64_t applied_ns);

/* waits.c */
/* Called when the clock was read: whether a trainer waits for others now. */
void wf_waits_look(struct wf_lane *lane);
/* Since when the lane has waited for trainers in this way; 0: it waits for none. */
uint64_t wf_waits_since(const struct wf_lane *lane, enum wf_lane_awaits kind);
/* The same for what is reported: as long as a trainer is missing, that wait. */
uint64_t wf_waits_reported_since(const struct wf_lane *lane, enum wf_lane_awaits kind);
/* Whether, when it does, it waits for this peer, too. */
bool wf_waits_on(const struct wf_lane *lane, enum wf_lane_awaits kind, const struct wf_peer *peer);
/* What it waits for, e.g. "step 7 waits for trainer 1, 3". */
void wf_waits_describe(const struct wf_lane *lane, enum wf_lane_awaits kind, char *out,
		       size_t bytes);

/* beats.c */
/* Called when the clock was read: sends BEAT to trainers that are waited for. One that is silent
 * for stall_timeout ends the job. */
void wf_lane_beats_look(struct wf_lane *lane, uint64_t now_ns);
enum weft_status wf_peer_on_beat(struct wf_lane *lane, struct wf_peer *peer,
				 const struct wf_event *event) WEFT_MUST_CHECK;
/* Sends BEAT and its answer. False: the transport accepts no more. */
bool wf_peer_beat_flush(struct wf_lane *lane, struct wf_peer *peer);
/* "; trainer 1 (host nodea, pid 12) has not taken a turn for 4 s", for the one that has been silent
 * longest of those waited for in this way, or with START in any; "": there is none. */
void wf_lane_beats_describe(const struct wf_lane *lane, enum wf_lane_awaits kind, char *out,
			    size_t bytes);

/* path.c */
/* The windows of all trainers, with at most `slot_count` slots of `slot_bytes`; a power of two, at
 * least opts.slot_count. */
enum weft_status wf_path_open(struct wf_lane *lane, uint32_t slot_count,
			      uint64_t slot_bytes) WEFT_MUST_CHECK;
void wf_path_close(struct wf_lane *lane); /* accepts a state that is half allocated, or not at all
					   * */
/* The peer is UP, and the job ready. */
void wf_path_begins(struct wf_lane *lane, struct wf_peer *peer);
/* DOWN: forget what belonged to the path, and copy aside what lies in the window. */
void wf_path_ends(struct wf_lane *lane, struct wf_peer *peer);
enum weft_status wf_path_recv_grant(struct wf_lane *lane, struct wf_peer *peer,
				    const struct wf_msg_grant *msg) WEFT_MUST_CHECK;
enum weft_status wf_path_recv_have(struct wf_lane *lane, struct wf_peer *peer,
				   const struct wf_msg_steps *msg) WEFT_MUST_CHECK;
/* GRANT, RESUME or CREDIT is due. */
static inline bool
wf_path_is_due(const struct wf_peer *peer)
{
	return peer->opening.grant_due || wf_cursor_is_open(&peer->opening.resume) ||
	       peer->slots.credit_count > 0;
}
/* Sends them. CREDIT precedes what frees slots by itself, so that it never names one that is in use
 * again. False: the transport accepts no more. */
bool wf_path_flush(struct wf_lane *lane, struct wf_peer *peer);
/* HAVE has reported the unit on this path: its answers may be sent without a request. */
static inline bool
wf_path_has_unit(const struct wf_peer *peer, uint32_t unit)
{
	return unit < peer->opening.have.next;
}
/* Copy aside all that the window holds: it is full, or the path has ended. */
void wf_path_park(struct wf_lane *lane, struct wf_peer *peer);
/* Bring the gauges of slots up to date. */
void wf_path_gather(struct wf_lane *lane);

/* control.c */
enum weft_status wf_control_on_message(struct wf_lane *lane, struct wf_peer *peer,
				       const struct wf_event *event) WEFT_MUST_CHECK;
/* A path is UP: GOODBYE may be sent again on it. */
void wf_control_path_begins(struct wf_peer *peer);
/* DOWN: what is due is dropped with the path. */
void wf_control_path_ends(struct wf_peer *peer);
/* Send whatever is due, the service's too. Returns whether something is left. */
bool wf_control_flush(struct wf_lane *lane, struct wf_peer *peer);
/* Ends the job if all trainers have left. */
void wf_control_finish_if_left(struct wf_lane *lane);
/* False: the transport accepts no more. */
static inline bool
wf_control_send(struct wf_peer *peer, const struct wf_msg *msg)
{
	return wf_send(peer->conn, msg, 0);
}

/* report.c */
void wf_lane_report_init(struct wf_lane *lane);
/* Bring the counters up to date that the transport and the service keep. */
void wf_lane_report_gather(struct wf_lane *lane);
/* Measures times from here on, if it does not yet. */
void wf_lane_report_measure(struct wf_lane *lane);
/* The figures in the lines about the job count from here on. */
void wf_lane_report_job_begins(struct wf_lane *lane);
void wf_lane_report_job_ends(struct wf_lane *lane);
/* The line that is due at report.next_ns. */
void wf_lane_report_period(struct wf_lane *lane, uint64_t now);

/* reduce.c */
enum weft_status wf_reduce_on_message(struct wf_lane *lane, struct wf_peer *peer,
				      const struct wf_msg_reduce *msg) WEFT_MUST_CHECK;
/* Sends the result. False: the transport accepts no more. */
bool wf_reduce_flush(struct wf_lane *lane, struct wf_peer *peer);
/* DOWN: an answer that is due goes with the path. */
void wf_reduce_path_ends(struct wf_peer *peer);
/* The reduce, or the pieces of an array, that are under way wait for this trainer; if nothing is,
 * the next reduce. */
static inline bool
wf_reduce_lacks(const struct wf_lane *lane, const struct wf_peer *peer)
{
	const struct wf_reduction *reduction = &lane->reduction;
	bool reduces = reduction->since_ns != 0 || reduction->pieces_since_ns == 0;
	reduces = reduces && !peer->leaving.is_dropped;
	return (reduces && peer->reduce.id == reduction->id) ||
	       peer->reduce.pieces < reduction->pieces;
}
/* Since when; 0: nothing is under way. */
static inline uint64_t
wf_reduce_since(const struct wf_lane *lane)
{
	const struct wf_reduction *reduction = &lane->reduction;
	uint64_t a = reduction->since_ns, b = reduction->pieces_since_ns;
	return a == 0 || (b != 0 && b < a) ? b : a;
}
/* A trainer joins. What the one before it has sent to the reduce under way is forgotten: the new
 * one does this part. */
void wf_reduce_enter(struct wf_lane *lane, struct wf_peer *peer);
/* A trainer was dropped, whose part the reduce may have waited for. */
void wf_reduce_try_complete(struct wf_lane *lane);
/* A trainer that has left cannot do its part any more: fails the lane. Returns whether one has. */
bool wf_reduce_fail_if_left(struct wf_lane *lane);
