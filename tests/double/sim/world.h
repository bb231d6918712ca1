/* SPDX-License-Identifier: Apache-2.0 */
/* world: a cluster in one process: virtual clock, seeded random numbers, simulated processes, a
 * network.
 *
 * A simulated process ("proc") is a coroutine with its own env. It runs until its env->wait passes
 * the turn; the world then advances the virtual clock to the next thing that is due. The same seed
 * gives the same run, to the bit. Transports named "sim", opened with a proc's env, communicate
 * over the world's network; those named "sim2" over a second one, which has the same hosts but its
 * own cuts and refusals. Thread: the one that created the world. */
#pragma once

#include "base/env.h"

struct wf_world;
struct wf_proc;

/* Where to be away for reconnect_timeout, 3 s, would end a job: an end makes some seven attempts
 * within it, and all of them fail once in ten million times at most. */
#define WF_WORLD_REFUSE_PER_MILLE_MAX 100u

struct wf_world_opts {
	uint64_t seed;
	/* Network, all drawn from the seed. Nanoseconds of virtual time. */
	uint64_t delay_min_ns,
		delay_max_ns;      /* of each frame; different connections reorder freely */
	uint32_t split_per_mille;  /* PUTs that land in several parts */
	uint32_t cut_per_million;  /* frames after which their connection is cut */
	uint32_t cut_max;          /* cuts in the whole run; 0: as many as the rate gives */
	uint32_t refuse_per_mille; /* connects that fail as if no process listened */
	/* The same three of the second network. */
	uint32_t second_cut_per_million, second_cut_max, second_refuse_per_mille;
	uint64_t down_delay_max_ns; /* how late each end notices a cut */
	/* How often a proc's turn comes late by up to this much. */
	uint64_t stall_max_ns;
	uint32_t stall_per_mille;
	bool second_locks_memory; /* transports of the second network say that they do */
	bool writes_lent;         /* a process that writes to a lent buffer is not ended for it */
	enum weft_log_level log_level;
	int log_fd; /* -1: logs are dropped */
};

enum weft_status wf_world_create(const struct wf_world_opts *opts,
				 struct wf_world **out) WEFT_MUST_CHECK;
void wf_world_destroy(struct wf_world *world); /* accepts NULL; procs that still run are dropped */

/* Start `run(env, arg)` as a process on host `host`; its transports reach others by host name.
 * Its first turn comes after `start_ns` of virtual time. */
enum weft_status wf_world_spawn(struct wf_world *world, const char *host, uint64_t start_ns,
				int (*run)(struct wf_env *env, void *arg), void *arg,
				struct wf_proc **out) WEFT_MUST_CHECK;
/* As kill -9: it gets no further turn, its connections are reset, its listeners are gone, its
 * memory is released with the world. May be called between runs, or from another proc. */
void wf_world_kill(struct wf_world *world, struct wf_proc *proc);
/* kill -9 it at virtual time `when_ns`. */
void wf_world_kill_at(struct wf_world *world, struct wf_proc *proc, uint64_t when_ns);
/* What one host sends to another from begin_ns to end_ns arrives later, as TCP sends again what was
 * not acknowledged; nobody connects meanwhile. An end that hears nothing for the peer timeout of
 * its transport goes down. On both networks. */
struct wf_world_partition {
	const char *from, *to; /* hosts; lent until the world is destroyed */
	bool both;             /* nor does what `to` sends to `from` */
	uint64_t begin_ns, end_ns;
};
void wf_world_partition(struct wf_world *world, const struct wf_world_partition *partition);
/* The process gets no turn from begin_ns to end_ns, as after SIGSTOP: its connections stay, and
 * bytes still arrive. Later ones must begin later. */
void wf_world_pause(struct wf_world *world, struct wf_proc *proc, uint64_t begin_ns,
		    uint64_t end_ns);
/* At when_ns the clock of the process leaps forward, as after a suspended guest goes on. */
void wf_world_leap(struct wf_world *world, struct wf_proc *proc, uint64_t when_ns, uint64_t by_ns);
/* From begin_ns to end_ns `per_mille` of its allocations fail. Later ones must begin later. */
void wf_world_starve(struct wf_world *world, struct wf_proc *proc, uint32_t per_mille,
		     uint64_t begin_ns, uint64_t end_ns);
/* Cut every connection between two hosts, now; they may come back at once. */
void wf_world_cut(struct wf_world *world, const char *host_a, const char *host_b);
/* Those of one network: 0 or 1. */
void wf_world_cut_net(struct wf_world *world, unsigned net, const char *host_a, const char *host_b);
/* Runs until every proc has returned or been killed. WEFT_TIMEOUT: virtual time `until_ns` was
 * reached first; the text names the procs that still run. May be called again with a later time. */
enum weft_status wf_world_run(struct wf_world *world, uint64_t until_ns) WEFT_MUST_CHECK;

/* What `run` returned. */
bool wf_proc_returned(const struct wf_proc *proc, int *result);
uint64_t wf_world_now_ns(const struct wf_world *world);

struct wf_world_stats {
	uint64_t turns, frames, cuts, refusals, splits, stalls;
	uint64_t second_cuts, second_refusals; /* of those, on the second network */
	/* What hit somebody: a partition that held up a frame, a pause that put off a turn, a leap
	 * or a kill of a process that had begun and not ended. */
	uint64_t one_way_partitions, two_way_partitions, pauses, leaps, kills;
	uint64_t starved;      /* allocations that failed */
	uint64_t silences;     /* ends of connections that went down in a partition */
	uint64_t trace_digest; /* over every delivery: two runs of a seed agree */
};
void wf_world_stats(const struct wf_world *world, struct wf_world_stats *out);
