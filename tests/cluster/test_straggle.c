/* SPDX-License-Identifier: Apache-2.0 */
/* A job in which one trainer is slow, at computing or at sending, by a delay of virtual time: the
 * lines of the pservers' lanes name it, how long others waited for it, and what with. Thread: one.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "pserver/server.h"
#include "tests/double/sim/world.h"
#include "weft/weft.h"
#include "base/settings.h"

#define TRAINERS 4u
#define LANES 2u
#define STEPS 20u
#define SLOW 2u
#define DELAY_NS (50 * WF_NS_PER_MS)
#define COMPUTE_NS (10 * WF_NS_PER_MS) /* of everybody */
#define SLACK_MS 2.0
#define ROWS 200u

enum where { NOWHERE, COMPUTING, SENDING };

struct member {
	enum where where;                          /* trainer SLOW is slow */
	struct weft_trainer_stats stats[TRAINERS]; /* trainer 0: as the lanes told it */
	uint32_t idx;
	enum weft_status status;
};

static int
run_pserver(struct wf_env *env, void *arg)
{
	struct member *m = arg;
	struct wf_server_opts opts;
	struct wf_server *server = NULL;
	wf_server_opts_init(&opts);
	opts.env = env;
	opts.transport = "sim";
	(void)snprintf(opts.listen.name, sizeof(opts.listen.name), "0.0.0.0");
	opts.ports_num = LANES;
	opts.inline_lanes = true;
	opts.once = true;
	opts.stats_period_ns = 3600 * WF_NS_PER_S; /* the job's table only */
	m->status = wf_server_create(&opts, &server);
	if (m->status == WEFT_OK) {
		m->status = wf_server_run(server);
	}
	wf_server_destroy(server);
	return 0;
}

static enum weft_status
open_session(const struct member *m, struct wf_env *env, struct weft_session **session,
	     struct weft_tensor **tensor)
{
	struct weft_session_opts opts;
	weft_session_opts_init(&opts);
	opts.pservers = "ps";
	opts.ports_num = LANES;
	opts.num_gradient_servers = TRAINERS;
	opts.trainer_id = m->idx;
	opts.transport = "sim";
	opts.slice_bytes = 64;
	opts.progress = WEFT_PROGRESS_CALLER;
	opts.stats_period_ns = 3600 * WF_NS_PER_S;
	enum weft_status st = wf_session_open_in(env, &opts, session);
	if (st == WEFT_OK) {
		st = weft_tensor_add(*session,
				     &(struct weft_tensor_opts){.name = "w", .rows = ROWS}, tensor);
	}
	if (st == WEFT_OK) {
		st = weft_session_seal(*session);
	}
	return st == WEFT_OK ? weft_session_start(*session) : st;
}

static void
spend(struct wf_env *env, uint64_t ns)
{
	uint64_t until_ns = wf_now_ns(env) + ns;
	while (wf_now_ns(env) < until_ns) { /* what comes in the meantime wakes it */
		wf_wait(env, -1, until_ns);
	}
}

static int
run_trainer(struct wf_env *env, void *arg)
{
	struct member *m = arg;
	struct weft_session *session = NULL;
	struct weft_tensor *tensor = NULL;
	bool slow = m->idx == SLOW;
	enum weft_status st = open_session(m, env, &session, &tensor);
	for (uint32_t step = 0; step < STEPS && st == WEFT_OK; step++) {
		spend(env, COMPUTE_NS + (slow && m->where == COMPUTING ? DELAY_NS : 0));
		st = weft_step(session, 1, 0);
		if (st == WEFT_OK) {
			st = weft_push(tensor);
		}
		/* Without a turn of its own nothing is sent. */
		spend(env, slow && m->where == SENDING ? DELAY_NS : 0);
		if (st == WEFT_OK) {
			st = weft_wait_all(session);
		}
	}
	if (st == WEFT_OK) {
		st = weft_pass_end(session);
	}
	for (uint32_t t = 0; t < TRAINERS && st == WEFT_OK && m->idx == 0; t++) {
		m->stats[t].struct_bytes = sizeof(m->stats[t]);
		st = weft_trainer_stats(session, t, &m->stats[t]);
	}
	enum weft_status end = weft_session_close(session);
	m->status = st != WEFT_OK ? st : end;
	return 0;
}

/* Of one lane's line about one trainer. */
struct told {
	bool there;
	unsigned last, steps;
	double behind_next_ms, behind_first_ms, compute_ms, network_ms;
};

/* "lane 0: straggler trainer 2: last 20 of 20 behind_next_ms 50.1 ..." */
static void
read_line(const char *line, struct told told[LANES][TRAINERS])
{
	unsigned lane = 0;
	unsigned trainer = 0;
	struct told t = {.there = true};
	const char *at = strstr(line, "lane ");
	if (at != NULL &&
	    sscanf(at,
		   "lane %u: straggler trainer %u: last %u of %u behind_next_ms %lf "
		   "behind_first_ms %lf compute_ms %lf network_ms %lf",
		   &lane, &trainer, &t.last, &t.steps, &t.behind_next_ms, &t.behind_first_ms,
		   &t.compute_ms, &t.network_ms) == 8 &&
	    lane < LANES && trainer < TRAINERS) {
		told[lane][trainer] = t;
	}
}

static void
play(enum where where, struct told told[LANES][TRAINERS], struct weft_trainer_stats stats[TRAINERS])
{
	struct wf_world_opts opts = {
		.seed = 3,
		.delay_min_ns = 10 * WF_NS_PER_US,
		.delay_max_ns = 200 * WF_NS_PER_US,
		.log_level = WF_LOG_INFO,
		.log_fd = memfd_create("log", MFD_CLOEXEC),
	};
	struct member member[1 + TRAINERS];
	struct wf_world *world = NULL;
	struct wf_proc *proc = NULL;
	char line[1200];
	memset(told, 0, sizeof(struct told) * LANES * TRAINERS);
	assert_int_equal(wf_world_create(&opts, &world), WEFT_OK);
	for (uint32_t i = 0; i <= TRAINERS; i++) {
		char host[16];
		member[i] = (struct member){
			.where = where, .idx = i > 0 ? i - 1 : 0, .status = WEFT_IO};
		(void)snprintf(host, sizeof(host), i == 0 ? "ps" : "tr%u", member[i].idx);
		assert_int_equal(wf_world_spawn(world, host, i * WF_NS_PER_MS,
						i == 0 ? run_pserver : run_trainer, &member[i],
						&proc),
				 WEFT_OK);
	}
	assert_int_equal(wf_world_run(world, 600 * WF_NS_PER_S), WEFT_OK);
	wf_world_destroy(world);
	for (uint32_t i = 0; i <= TRAINERS; i++) {
		assert_int_equal(member[i].status, WEFT_OK);
	}
	memcpy(stats, member[1].stats, sizeof(member[1].stats));
	assert_int_equal(lseek(opts.log_fd, 0, SEEK_SET), 0);
	FILE *log = fdopen(opts.log_fd, "r");
	assert_non_null(log);
	while (fgets(line, sizeof(line), log) != NULL) {
		read_line(line, told);
	}
	(void)fclose(log);
}

static bool
is_near(double ms, uint64_t ns)
{
	return fabs(ms - (double)ns / 1e6) <= SLACK_MS;
}

static double
mean_ms(uint64_t sum_ns, uint64_t count)
{
	return count > 0 ? (double)sum_ns / (double)count / 1e6 : 0;
}

/* What trainer 0 was told of a trainer is what both lanes' lines say. */
static void
check_stats(const struct weft_trainer_stats *stats, const struct told *a, const struct told *b)
{
	assert_int_equal(stats->lane_steps, a->steps + b->steps);
	assert_int_equal(stats->last, a->last + b->last);
	double behind = a->behind_next_ms * a->last + b->behind_next_ms * b->last;
	assert_true(fabs((double)stats->behind_next_ns / 1e6 - behind) <= 0.1);
	assert_true(fabs(mean_ms(stats->compute_ns, stats->split_steps) -
			 (a->compute_ms + b->compute_ms) / 2) <= 0.1);
	assert_true(fabs(mean_ms(stats->network_ns, stats->split_steps) -
			 (a->network_ms + b->network_ms) / 2) <= 0.1);
	assert_true(stats->slices_applied == 0 && stats->lag_max == 0);
}

/* All lanes agree who it is; nobody else is last by more than a few frames. */
static void
check(enum where where, uint64_t compute_ns, uint64_t network_ns)
{
	struct told told[LANES][TRAINERS];
	struct weft_trainer_stats stats[TRAINERS];
	play(where, told, stats);
	for (unsigned lane = 0; lane < LANES; lane++) {
		for (unsigned t = 0; t < TRAINERS; t++) {
			const struct told *of = &told[lane][t];
			bool slow = t == SLOW && where != NOWHERE;
			assert_true(of->there && of->steps == STEPS - 1); /* but the first */
			assert_true(slow ? of->last == STEPS - 1
					 : where == NOWHERE || of->last == 0);
			assert_true(is_near(of->behind_next_ms, slow ? DELAY_NS : 0));
			assert_true(is_near(of->behind_first_ms, slow ? DELAY_NS : 0));
			assert_true(is_near(of->compute_ms, slow ? compute_ns : COMPUTE_NS));
			assert_true(is_near(of->network_ms, slow ? network_ns : 0));
		}
	}
	for (unsigned t = 0; t < TRAINERS; t++) {
		check_stats(&stats[t], &told[0][t], &told[1][t]);
	}
}

static void
a_trainer_that_computes_slowly_is_named_with_compute(void **state)
{
	(void)state;
	check(COMPUTING, COMPUTE_NS + DELAY_NS, 0);
}

static void
a_trainer_that_sends_slowly_is_named_with_network(void **state)
{
	(void)state;
	check(SENDING, COMPUTE_NS, DELAY_NS);
}

static void
nobody_is_named_where_nobody_is_slow(void **state)
{
	(void)state;
	check(NOWHERE, COMPUTE_NS, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_trainer_that_computes_slowly_is_named_with_compute),
		cmocka_unit_test(a_trainer_that_sends_slowly_is_named_with_network),
		cmocka_unit_test(nobody_is_named_where_nobody_is_slow),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
