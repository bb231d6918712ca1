/* SPDX-License-Identifier: Apache-2.0 */
/* fake_habits: the kinds of devices, what happens by chance, the clock, and the count of what there
 * is. What each kind does was read in its provider's sources (rdma-core, Linux). Thread: one; the
 * counts of memory are the helper's, too. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "fake_internal.h"

#define PASS_NS 100u /* what a call takes at least */

const struct fake_habits fake_habits[] = {
	{.name = "kind",
	 .windows = true,
	 .shared_queue = true,
	 .says_last = true,
	 .poll_error = -2,
	 .inline_max = 256,
	 .cqe_max = 1 << 20},
	{.name = "mlx5",
	 .windows = true,
	 .shared_queue = true,
	 .purges = true,
	 .says_last = true,
	 .counts_queues = true,
	 .poll_error = -2,
	 .vendor_id = 0x2c9,
	 .inline_max = 256,
	 .cqe_max = 4194303},
	/* In RoCE mode. Windows of type 1 only, which weft does not use. */
	{.name = "irdma",
	 .purges = true,
	 .first_piece = true,
	 .counts_queues = true,
	 .poll_error = -22,
	 .vendor_id = 0x8086,
	 .inline_max = 101,
	 .cqe_max = 1048574},
	{.name = "bnxt",
	 .windows = true,
	 .shared_queue = true,
	 .purges = true,
	 .says_last = true,
	 .counts_queues = true,
	 .poll_error = -22,
	 .vendor_id = 0x14e4,
	 .inline_max = 96,
	 .cqe_max = 256},
	{.name = "cxgb4",
	 .iwarp = true,
	 .purges = true,
	 .shared_queue = true,
	 .poll_error = -61,
	 .vendor_id = 0x1425,
	 .inline_max = 64,
	 .cqe_max = 32767},
	{.name = "rxe",
	 .windows = true,
	 .shared_queue = true,
	 .poll_error = -22,
	 .vendor_id = 0xffffff,
	 .inline_max = 256,
	 .cqe_max = 32767},
	/* Adaptive routing, several paths, and the smallest queues that will do. */
	{.name = "anyorder",
	 .windows = true,
	 .shared_queue = true,
	 .purges = true,
	 .says_last = true,
	 .any_order = true,
	 .poll_error = -2,
	 .inline_max = 64,
	 .cqe_max = 160},
	{.name = NULL},
};

struct fake_device fake_device;
struct fake_seen fake_seen;
struct fake_happened fake_happened;

static const struct fake_habits *habits = &fake_habits[0];
static struct fake_knobs knobs;
static struct wf_rng rng;
static unsigned break_count;
static _Atomic uint64_t makings;
static struct fake_host host;
static uint64_t device_ns; /* ahead of the clock by what was asked since */
static uint64_t due_ns = WF_NEVER;
static bool turning;
static _Atomic unsigned things[FAKE_THINGS];
static _Atomic uint64_t locked_bytes;

bool
fake_be(const char *name)
{
	for (const struct fake_habits *h = fake_habits; h->name != NULL; h++) {
		if (strcmp(h->name, name) == 0) {
			habits = h;
			return true;
		}
	}
	return false;
}

const struct fake_habits *
fake_now_is(void)
{
	return habits;
}

/* ---- chance ---- */

static uint32_t
rate_below(struct wf_rng *from, uint32_t end)
{
	return (uint32_t)wf_rng_below(from, end);
}

static void
draw_breaks(struct wf_rng *from, uint32_t breaks, struct fake_knobs *out)
{
	bool is_short = wf_rng_below(from, 3) == 0; /* of memory: each reception asks for some */
	out->nomem_per_mille = is_short ? 1 + rate_below(from, 3 * breaks) : 0;
	out->cm_lost_per_mille = rate_below(from, 100 + 25 * breaks);
	out->breaks_max = 1 + rate_below(from, 8);
	out->cut_per_million = rate_below(from, 2000 * breaks);
	out->fatal_per_million = rate_below(from, 1000 * breaks);
	out->remove_per_million = rate_below(from, 1000 * breaks);
	out->port_per_million = rate_below(from, 1000 * breaks);
	out->gid_per_million = rate_below(from, 1000 * breaks);
	out->poll_per_million = rate_below(from, 1000 * breaks);
	out->port_ns = 4 * WF_NS_PER_S;
}

void
fake_draw_knobs(uint64_t seed, uint32_t delays, uint32_t breaks, struct fake_knobs *out)
{
	struct wf_rng from;
	wf_rng_init(&from, seed, 22);
	*out = (struct fake_knobs){
		.seed = wf_rng_u64(&from),
		.work_ns = wf_rng_below(&from, delays * 100 * WF_NS_PER_US),
		.completion_ns = wf_rng_below(&from, delays * 500 * WF_NS_PER_US),
		.cm_ns = wf_rng_below(&from, 5 * WF_NS_PER_MS),
		.register_ns = wf_rng_below(&from, 2 * WF_NS_PER_S),
		.late_per_mille = rate_below(&from, 1000),
		.dry_per_mille = rate_below(&from, delays * 50),
		.unwoken_per_mille = rate_below(&from, delays * 20),
		.cm_twice_per_mille = rate_below(&from, 500),
	};
	if (breaks > 0) {
		draw_breaks(&from, breaks, out);
	}
}

void
fake_turn_knobs(const struct fake_knobs *to)
{
	knobs = to != NULL ? *to : (struct fake_knobs){0};
	fake_happened = (struct fake_happened){0};
	break_count = 0;
	atomic_store_explicit(&makings, 0, memory_order_relaxed);
	wf_rng_init(&rng, knobs.seed, 21);
}

const struct fake_knobs *
fake_knobs_now(void)
{
	return &knobs;
}

/* Regions are made on the helper's thread, too. */
static pthread_mutex_t chance_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t
draw_below(uint64_t end)
{
	(void)pthread_mutex_lock(&chance_lock);
	uint64_t drawn = wf_rng_below(&rng, end);
	(void)pthread_mutex_unlock(&chance_lock);
	return drawn;
}

bool
fake_chance(uint32_t rate, uint32_t of)
{
	return rate > 0 && draw_below(of) < rate;
}

uint64_t
fake_draw(uint64_t most)
{
	return most == 0 ? 0 : draw_below(most + 1);
}

bool
fake_breaks(uint32_t per_million)
{
	bool now = break_count < knobs.breaks_max && fake_chance(per_million, 1000000);
	break_count += now ? 1 : 0;
	return now;
}

bool
fake_nomem(void)
{
	uint64_t making = atomic_fetch_add_explicit(&makings, 1, memory_order_relaxed) + 1;
	bool now = making == knobs.nomem_at || fake_chance(knobs.nomem_per_mille, 1000);
	if (now) {
		(void)pthread_mutex_lock(&chance_lock);
		fake_happened.nomem++;
		(void)pthread_mutex_unlock(&chance_lock);
	}
	errno = now ? ENOMEM : errno;
	return now;
}

/* ---- time ---- */

static uint64_t
clock_ns(void)
{
	struct timespec now;
	if (host.now_ns != NULL) {
		return host.now_ns();
	}
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * WF_NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t
fake_now_ns(void)
{
	uint64_t now_ns = clock_ns();
	device_ns = now_ns > device_ns ? now_ns : device_ns;
	return device_ns;
}

/* Who asks again and again in one turn of a virtual clock sees the device go on. */
void
fake_pass(void)
{
	device_ns += PASS_NS;
}

void
fake_live_in(const struct fake_host *in)
{
	host = in != NULL ? *in : (struct fake_host){0};
	device_ns = 0;
	due_ns = WF_NEVER;
}

bool
fake_takes_time(void)
{
	return host.now_ns != NULL;
}

void
fake_due(uint64_t at_ns)
{
	if (at_ns < due_ns) {
		due_ns = at_ns;
		if (host.alarm != NULL) {
			host.alarm(at_ns);
		}
	}
}

void
fake_turn(void)
{
	uint64_t now_ns = fake_now_ns();
	if (turning || now_ns < due_ns) {
		return;
	}
	turning = true;
	due_ns = WF_NEVER; /* what is left is told again */
	fake_wire_turn(now_ns);
	fake_queues_turn(now_ns);
	fake_device_turn(now_ns);
	fake_cm_turn(now_ns);
	turning = false;
}

void *
fake_self(void)
{
	return host.self != NULL ? host.self() : NULL;
}

void
fake_ring(int fd, void *owner)
{
	uint64_t one = 1;
	ssize_t n = write(fd, &one, sizeof(one));
	WF_ASSERT(n == sizeof(one));
	if (host.wake != NULL && owner != NULL) {
		host.wake(owner);
	}
}

void
fake_register_takes(uint64_t bytes)
{
	if (host.task_takes != NULL && knobs.register_ns > 0 && bytes > 1u << 20) {
		fake_happened.slow++;
		host.task_takes(fake_draw(knobs.register_ns));
	}
}

/* ---- what there is ---- */

void
fake_made(enum fake_thing thing)
{
	atomic_fetch_add_explicit(&things[thing], 1, memory_order_relaxed); /* counts only */
}

void *
fake_make(enum fake_thing thing, size_t bytes)
{
	if (fake_nomem()) {
		return NULL;
	}
	void *made = calloc(1, bytes);
	WF_ASSERT(made != NULL);
	fake_made(thing);
	return made;
}

void
fake_unmade(enum fake_thing thing)
{
	unsigned before = atomic_fetch_sub_explicit(&things[thing], 1, memory_order_relaxed);
	WF_ASSERT(before > 0);
}

void
fake_hold(struct fake_holds *holds)
{
	atomic_fetch_add_explicit(&holds->count, 1, memory_order_relaxed); /* counts only */
}

void
fake_let_go(struct fake_holds *holds)
{
	unsigned before = atomic_fetch_sub_explicit(&holds->count, 1, memory_order_relaxed);
	WF_ASSERT(before > 0);
}

bool
fake_is_held(const struct fake_holds *holds)
{
	return atomic_load_explicit(&holds->count, memory_order_relaxed) > 0;
}

bool
fake_lock(uint64_t bytes, bool queue)
{
	uint64_t counted = queue && !habits->counts_queues ? 0 : bytes;
	uint64_t before = atomic_fetch_add_explicit(&locked_bytes, counted, memory_order_relaxed);
	if (fake_device.memlock_bytes == 0 || before + counted <= fake_device.memlock_bytes) {
		return true;
	}
	fake_seen.memlock_bytes = before + counted;
	fake_unlock(bytes, queue);
	errno = ENOMEM;
	return false;
}

void
fake_unlock(uint64_t bytes, bool queue)
{
	uint64_t counted = queue && !habits->counts_queues ? 0 : bytes;
	atomic_fetch_sub_explicit(&locked_bytes, counted, memory_order_relaxed);
}

const char *
fake_left_over(char *out, size_t bytes)
{
	static const char *const names[FAKE_THINGS] = {
		"devices",       "domains",     "regions",
		"windows",       "channels",    "completion queues",
		"shared queues", "queue pairs", "channels of the connection manager",
		"identifiers"};
	size_t used = 0;
	out[0] = '\0';
	for (unsigned i = 0; i < FAKE_THINGS && used < bytes; i++) {
		unsigned count = atomic_load_explicit(&things[i], memory_order_relaxed);
		if (count > 0) {
			used += (size_t)snprintf(out + used, bytes - used, "%u %s are left. ",
						 count, names[i]);
		}
	}
	if (fake_seen.lost > 0 && used < bytes) {
		used += (size_t)snprintf(out + used, bytes - used,
					 "%u receive buffers are lost for good. ", fake_seen.lost);
	}
	if (fake_seen.stale > 0 && used < bytes) {
		used += (size_t)snprintf(out + used, bytes - used,
					 "%u WRITEs of memory that nobody meant. ",
					 fake_seen.stale);
	}
	return used > 0 ? out : NULL;
}

void
fake_reset(void)
{
	habits = &fake_habits[0];
	fake_turn_knobs(NULL);
	fake_live_in(NULL);
	fake_device = (struct fake_device){
		.vectors = 4, .speed = 32, .width = 2, .state = IBV_PORT_ACTIVE};
	fake_seen = (struct fake_seen){.vector = -1};
	for (unsigned i = 0; i < FAKE_THINGS; i++) {
		atomic_store_explicit(&things[i], 0, memory_order_relaxed);
	}
	atomic_store_explicit(&locked_bytes, 0, memory_order_relaxed);
	fake_memory_reset();
	fake_queues_reset();
	fake_device_reset();
	fake_cm_reset();
}
