/* SPDX-License-Identifier: Apache-2.0 */
/* fleet: the processes of one job in a simulated world: pservers on the hosts ps0, ps1, ... and
 * trainers on tr0, tr1, ... It starts them, kills one of them where a test wants that, runs the
 * world to its end and keeps how each ended. What a process does is the test's. Thread: one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"
#include "tests/double/sim/world.h"

#define FLEET_PSERVERS_MAX 4u
#define FLEET_TRAINERS_MAX 8u
#define FLEET_NOBODY UINT32_MAX
#define FLEET_ALL (UINT32_MAX - 1)
#define FLEET_LIVES_MAX 8u

/* How one process ended. */
struct fleet_end {
	bool returned; /* else it was killed, or still runs */
	enum weft_status status;
	uint64_t when_ns;
	char text[WF_ERROR_BYTES]; /* of a status that is not WEFT_OK */
};

/* A process is killed, and started again. */
struct fleet_life {
	uint32_t process; /* pservers, then trainers */
	uint64_t kill_ns, again_ns;
};

struct fleet;

/* The argument of a process. */
struct fleet_seat {
	struct fleet *fleet;
	uint32_t idx; /* of the pserver, or of the trainer */
	struct fleet_end *end;
	struct wf_proc *proc;
};

struct fleet {
	/* The test's. */
	struct wf_world_opts world;
	uint32_t pservers, trainers;
	int (*run_pserver)(struct wf_env *env, void *seat);
	int (*run_trainer)(struct wf_env *env, void *seat);
	void *run; /* the test's, for these */
	/* When process i begins, pservers first; called once for each, in order. NULL: at i ms. */
	uint64_t (*start_ns)(struct fleet *fleet, uint32_t i);
	void (*enter)(struct wf_world *world); /* before they begin; NULL: nothing */
	/* The same with the processes, pservers first: what is to happen to them. NULL: nothing. */
	void (*disturb)(struct fleet *fleet, struct wf_world *world, struct wf_proc *const *proc);
	uint64_t until_ns; /* virtual time by which all must have ended */
	/* kill -9 at kill_ns. With kill_ns 0 no process is killed. */
	uint32_t kill_pserver, kill_trainer; /* FLEET_NOBODY: none; FLEET_ALL */
	uint64_t kill_ns;
	/* The same, and what is killed is started again, unless it had ended. Those of one process
	 * are in the order of time. */
	struct fleet_life life[FLEET_LIVES_MAX];
	uint32_t lives;

	/* What happened. */
	struct fleet_end pserver[FLEET_PSERVERS_MAX], trainer[FLEET_TRAINERS_MAX];
	struct wf_world_stats stats;
	uint64_t end_ns; /* virtual time at which the last of them had ended */
	bool timed_out;
	char stuck[WF_ERROR_BYTES]; /* timed_out: the processes that still ran */
};

/* Runs the job until all have ended. WEFT_TIMEOUT: a process has not ended by until_ns, and `stuck`
 * names it. Another failure: the world could not be created. */
enum weft_status fleet_run(struct fleet *fleet) WEFT_MUST_CHECK;
/* Called by a process: it ends with this status, and with the text of the last failure. */
void fleet_note(struct fleet_seat *seat, struct wf_env *env, enum weft_status status);

struct wf_server;
struct wf_server_opts;

/* Options of a pserver of a fleet: one job, and all lanes in the thread of its process. */
void fleet_server_opts(struct wf_env *env, const char *transport, struct wf_server_opts *out);
/* Run a pserver until its job is over and note its end. `look`: at a server whose job ended well,
 * before it is destroyed; NULL: no look. */
void fleet_serve(struct fleet_seat *seat, const struct wf_server_opts *opts,
		 void (*look)(struct fleet_seat *seat, struct wf_server *server));
