/* SPDX-License-Identifier: Apache-2.0 */
/* world: the virtual clock, the turns of the procs, and how they end. Thread: its creator's. */
#include "tests/double/sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tests/double/sim/sim.h"

#define PORT_FIRST 49152u
#define NS_TEXT_BYTES 32
#define IDLE_WAITS_MAX 10u /* doublings of WF_SIM_TURN_NS */

void *
wf_sim_zalloc(size_t bytes)
{
	void *memory = calloc(1, bytes);
	WF_ASSERT(memory != NULL);
	return memory;
}

uint64_t
wf_sim_draw(struct wf_world *world, uint64_t low, uint64_t high)
{
	WF_ASSERT(low <= high);
	return high == low ? low : low + wf_rng_below(&world->rng, high - low + 1);
}

bool
wf_sim_chance(struct wf_world *world, uint64_t rate, uint64_t of)
{
	return rate > 0 && wf_rng_below(&world->rng, of) < rate;
}

void
wf_sim_trace(struct wf_world *world, uint64_t value)
{
	uint64_t state = world->stats.trace_digest ^ value;
	world->stats.trace_digest = wf_splitmix64(&state);
}

static bool
is_over(const struct wf_proc *proc)
{
	return proc->state == WF_PROC_RETURNED || proc->state == WF_PROC_KILLED;
}

/* A proc that ends leaves the network; its connections are reset. */
static void
leave_network(struct wf_proc *proc)
{
	wf_due_cancel(&proc->world->heap, &proc->resume);
	wf_due_cancel(&proc->world->heap, &proc->kill);
	while (proc->transports != NULL) {
		wf_sim_transport_vanish(proc->transports);
	}
	wf_sim_env_drop_tasks(proc);
}

static void
run_proc(void *arg)
{
	struct wf_proc *proc = arg;
	proc->result = proc->run(&proc->env, proc->arg);
	proc->state = WF_PROC_RETURNED;
}

/* The thread's error record belongs to whose turn it is. */
static void
enter(struct wf_proc *proc)
{
	struct wf_error *record = wf_error_record();
	struct wf_error outer = *record;
	*record = proc->error;
	wf_fiber_enter(&proc->fiber);
	proc->error = *record;
	*record = outer;
}

static void
take_turn(struct wf_due *due)
{
	struct wf_proc *proc = WF_SIM_OUTER(struct wf_proc, resume, due);
	struct wf_world *world = proc->world;
	WF_ASSERT(world->running == NULL && proc->state == WF_PROC_WAITING);
	uint64_t until_ns = wf_sim_paused_until(proc);
	if (until_ns != 0) {
		wf_due_add(&world->heap, &proc->resume, until_ns);
		return;
	}
	proc->begun = true;
	world->stats.turns++;
	wf_sim_trace(world, world->now_ns);
	wf_sim_trace(world, proc->idx);
	proc->state = WF_PROC_RUNNING;
	proc->turn_ns = world->now_ns;
	proc->clock_reads = 0;
	proc->woken = false;
	world->running = proc;
	enter(proc);
	world->running = NULL;
	if (proc->state == WF_PROC_RETURNED) {
		leave_network(proc);
		wf_sim_env_forget(proc);
		wf_fiber_fini(&proc->fiber);
	}
}

/* Turns of one proc are some time apart, or two that answer each other would stop the clock. */
static void
schedule_turn(struct wf_proc *proc, uint64_t at_ns)
{
	struct wf_world *world = proc->world;
	uint64_t earliest_ns = proc->turn_ns + WF_SIM_TURN_NS;
	at_ns = at_ns < earliest_ns ? earliest_ns : at_ns;
	if (world->opts.stall_max_ns > 0 &&
	    wf_sim_chance(world, world->opts.stall_per_mille, 1000)) {
		world->stats.stalls++;
		at_ns += wf_sim_draw(world, 1, world->opts.stall_max_ns);
	}
	wf_due_add(&world->heap, &proc->resume, at_ns);
}

void
wf_sim_wake(struct wf_proc *proc)
{
	if (proc->woken || is_over(proc)) {
		return;
	}
	proc->woken = true;
	if (proc->state != WF_PROC_WAITING) {
		return; /* its next wait ends at once */
	}
	uint64_t now_ns = proc->world->now_ns;
	if (proc->resume.place == 0 || proc->resume.at_ns > now_ns + WF_SIM_TURN_NS) {
		schedule_turn(proc, now_ns);
	}
}

void
wf_sim_hasten(struct wf_proc *proc, uint64_t by_ns)
{
	uint64_t now_ns = proc->world->now_ns;
	if (proc->state != WF_PROC_WAITING || !proc->begun || proc->deadline_ns == WF_NEVER) {
		return;
	}
	uint64_t left_ns = proc->deadline_ns > now_ns ? proc->deadline_ns - now_ns : 0;
	proc->deadline_ns = now_ns + (left_ns > by_ns ? left_ns - by_ns : 0);
	if (proc->resume.place == 0 || proc->resume.at_ns > proc->deadline_ns) {
		schedule_turn(proc, proc->deadline_ns);
	}
}

void
wf_sim_pass_turn(struct wf_proc *proc, uint64_t at_ns)
{
	struct wf_world *world = proc->world;
	WF_ASSERT(world->running == proc);
	proc->state = WF_PROC_WAITING;
	proc->since_ns = world->now_ns;
	proc->deadline_ns = at_ns;
	at_ns = at_ns < world->now_ns ? world->now_ns : at_ns;
	if (proc->woken) {
		proc->idle_waits = 0;
		at_ns = world->now_ns;
	} else if (proc->ready > 0) {
		/* Events are left, so this wait is short; less so for a proc that goes on leaving
		 * them, or the run would consist of its turns. */
		uint64_t pause_ns = (uint64_t)WF_SIM_TURN_NS << proc->idle_waits;
		proc->idle_waits += proc->idle_waits < IDLE_WAITS_MAX;
		at_ns = at_ns - world->now_ns < pause_ns ? at_ns : world->now_ns + pause_ns;
	}
	if (at_ns != WF_NEVER) {
		schedule_turn(proc, at_ns);
	}
	wf_fiber_leave(&proc->fiber);
	WF_ASSERT(proc->state == WF_PROC_RUNNING);
}

enum weft_status
wf_world_create(const struct wf_world_opts *opts, struct wf_world **out)
{
	if (opts->delay_min_ns > opts->delay_max_ns) {
		return wf_fail(WEFT_INVALID, "world: delay_min_ns %llu is above delay_max_ns %llu",
			       (unsigned long long)opts->delay_min_ns,
			       (unsigned long long)opts->delay_max_ns);
	}
	if (opts->split_per_mille > 1000 || opts->refuse_per_mille > 1000 ||
	    opts->second_refuse_per_mille > 1000 || opts->stall_per_mille > 1000 ||
	    opts->cut_per_million > 1000000 || opts->second_cut_per_million > 1000000) {
		return wf_fail(WEFT_INVALID, "world: a rate is above 1,000 per mille");
	}
	struct wf_world *world = wf_sim_zalloc(sizeof(*world));
	world->opts = *opts;
	world->port_next = PORT_FIRST;
	wf_rng_init(&world->rng, opts->seed, 0);
	*out = world;
	return WEFT_OK;
}

void
wf_world_destroy(struct wf_world *world)
{
	if (world == NULL) {
		return;
	}
	WF_ASSERT(world->running == NULL);
	for (struct wf_proc *proc = world->procs; proc != NULL; proc = proc->next) {
		if (!is_over(proc)) {
			wf_world_kill(world, proc);
		}
	}
	while (world->links != NULL) {
		wf_sim_link_free(world->links);
	}
	WF_ASSERT(world->listeners == NULL);
	while (world->procs != NULL) {
		struct wf_proc *proc = world->procs;
		world->procs = proc->next;
		wf_sim_env_release(proc);
		wf_fiber_fini(&proc->fiber);
		free(proc);
	}
	wf_sim_faults_free(world);
	wf_due_heap_fini(&world->heap);
	free(world);
}

static void
kill_now(struct wf_due *due)
{
	struct wf_proc *proc = WF_SIM_OUTER(struct wf_proc, kill, due);
	wf_world_kill(proc->world, proc);
}

enum weft_status
wf_world_spawn(struct wf_world *world, const char *host, uint64_t start_ns,
	       int (*run)(struct wf_env *env, void *arg), void *arg, struct wf_proc **out)
{
	if (strlen(host) == 0 || strlen(host) >= WF_HOST_BYTES) {
		return wf_fail(WEFT_INVALID, "world: host name \"%.64s\" is empty or too long",
			       host);
	}
	struct wf_proc *proc = wf_sim_zalloc(sizeof(*proc));
	enum weft_status st = wf_fiber_init(&proc->fiber, run_proc, proc);
	if (st != WEFT_OK) {
		free(proc);
		return st;
	}
	proc->world = world;
	proc->idx = world->proc_count++;
	(void)snprintf(proc->host, sizeof(proc->host), "%s", host);
	proc->run = run;
	proc->arg = arg;
	proc->state = WF_PROC_WAITING;
	proc->resume.fire = take_turn;
	proc->kill.fire = kill_now;
	wf_rng_init(&proc->rng, world->opts.seed, 1 + (uint64_t)proc->idx);
	wf_sim_env_init(proc);
	struct wf_proc **at = &world->procs;
	while (*at != NULL) {
		at = &(*at)->next;
	}
	*at = proc;
	proc->since_ns = world->now_ns;
	proc->deadline_ns = start_ns > world->now_ns ? start_ns : world->now_ns;
	wf_due_add(&world->heap, &proc->resume, proc->deadline_ns);
	*out = proc;
	return WEFT_OK;
}

void
wf_world_kill(struct wf_world *world, struct wf_proc *proc)
{
	WF_ASSERT(proc->world == world);
	WF_ASSERT(world->running != proc); /* a proc that wants to end returns */
	if (is_over(proc)) {
		return;
	}
	proc->state = WF_PROC_KILLED;
	world->stats.kills += proc->begun ? 1 : 0;
	leave_network(proc);
	wf_sim_trace(world, world->now_ns);
}

void
wf_world_kill_at(struct wf_world *world, struct wf_proc *proc, uint64_t when_ns)
{
	WF_ASSERT(proc->world == world);
	if (!is_over(proc)) {
		wf_due_add(&world->heap, &proc->kill,
			   when_ns > world->now_ns ? when_ns : world->now_ns);
	}
}

static bool
is_at(const struct wf_sim_conn *conn, const char *host)
{
	return conn != NULL && strcmp(conn->transport->proc->host, host) == 0;
}

static bool
joins(const struct wf_sim_link *link, const char *host_a, const char *host_b)
{
	for (unsigned side = 0; side < 2; side++) {
		/* An end that is not there yet is where the attempt leads to. */
		bool other_is_b = link->end[!side] != NULL
					  ? is_at(link->end[!side], host_b)
					  : side == 0 && strcmp(link->target.name, host_b) == 0;
		if (is_at(link->end[side], host_a) && other_is_b) {
			return true;
		}
	}
	return false;
}

void
wf_world_cut_net(struct wf_world *world, unsigned net, const char *host_a, const char *host_b)
{
	for (struct wf_sim_link *link = world->links; link != NULL; link = link->next) {
		bool between = joins(link, host_a, host_b) || joins(link, host_b, host_a);
		if (between && link->net == net) {
			wf_sim_link_cut(link);
		}
	}
}

void
wf_world_cut(struct wf_world *world, const char *host_a, const char *host_b)
{
	for (unsigned net = 0; net < WF_SIM_NETS; net++) {
		wf_world_cut_net(world, net, host_a, host_b);
	}
}

static void
format_ns(uint64_t at_ns, char out[NS_TEXT_BYTES])
{
	if (at_ns == WF_NEVER) {
		(void)snprintf(out, NS_TEXT_BYTES, "never");
		return;
	}
	(void)snprintf(out, NS_TEXT_BYTES, "%llu.%09llu s",
		       (unsigned long long)(at_ns / WF_NS_PER_S),
		       (unsigned long long)(at_ns % WF_NS_PER_S));
}

/* ": ps0 waits since 0.1 s for an arrival; ..." for each proc that has not ended. */
static void
describe_waiting(const struct wf_world *world, char *out, size_t bytes)
{
	size_t used = 0;
	out[0] = '\0';
	for (const struct wf_proc *proc = world->procs; proc != NULL; proc = proc->next) {
		if (is_over(proc)) {
			continue;
		}
		char since[NS_TEXT_BYTES];
		char until[NS_TEXT_BYTES];
		format_ns(proc->since_ns, since);
		format_ns(proc->deadline_ns, until);
		int n = snprintf(out + used, bytes - used, "; %s (proc %u) waits since %s for %s%s",
				 proc->host, proc->idx, since,
				 proc->deadline_ns == WF_NEVER ? "an arrival" : "time ",
				 proc->deadline_ns == WF_NEVER ? "" : until);
		if (n < 0 || (size_t)n >= bytes - used) {
			return; /* the first ones fill the line */
		}
		used += (size_t)n;
	}
}

static enum weft_status
fail_running(const struct wf_world *world, const char *what)
{
	char waiting[WF_ERROR_BYTES];
	char now[NS_TEXT_BYTES];
	describe_waiting(world, waiting, sizeof(waiting));
	format_ns(world->now_ns, now);
	return wf_fail(WEFT_TIMEOUT, "world of seed %llu: %s at %s%s",
		       (unsigned long long)world->opts.seed, what, now, waiting);
}

static bool
all_over(const struct wf_world *world)
{
	for (const struct wf_proc *proc = world->procs; proc != NULL; proc = proc->next) {
		if (!is_over(proc)) {
			return false;
		}
	}
	return true;
}

enum weft_status
wf_world_run(struct wf_world *world, uint64_t until_ns)
{
	WF_ASSERT(world->running == NULL);
	while (!all_over(world)) {
		struct wf_due *due = wf_due_first(&world->heap);
		if (due == NULL) {
			return fail_running(world, "deadlock, nothing is due");
		}
		if (due->at_ns > until_ns) {
			world->now_ns = until_ns > world->now_ns ? until_ns : world->now_ns;
			return fail_running(world, "not done");
		}
		wf_due_cancel(&world->heap, due);
		if (due->at_ns > world->now_ns) {
			world->now_ns = due->at_ns;
		}
		due->fire(due);
	}
	return WEFT_OK;
}

bool
wf_proc_returned(const struct wf_proc *proc, int *result)
{
	if (proc->state != WF_PROC_RETURNED) {
		return false;
	}
	*result = proc->result;
	return true;
}

uint64_t
wf_world_now_ns(const struct wf_world *world)
{
	return world->now_ns;
}

void
wf_world_stats(const struct wf_world *world, struct wf_world_stats *out)
{
	*out = world->stats;
}
