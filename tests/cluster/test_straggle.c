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

#include "tests/support/crew.h"
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

struct run {
	enum where where;                          /* trainer SLOW is slow */
	struct weft_trainer_stats stats[TRAINERS]; /* as the lanes told them to trainer 0 */
};

static void
fill_server(const struct crew *crew, struct wf_server_opts *out)
{
	out->session.stats_period_ns = 3600 * WF_NS_PER_S; /* the job's table only */
}

static enum weft_status
open_session(const struct crew_seat *seat, struct wf_env *env, struct weft_session **session,
	     struct weft_tensor **tensor)
{
	struct weft_session_opts opts;
	crew_fill_opts(seat->crew, seat->idx, &opts);
	opts.slice_bytes = 64;
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
	const struct crew_seat *seat = arg;
	struct run *run = seat->crew->run;
	struct weft_session *session = NULL;
	struct weft_tensor *tensor = NULL;
	bool slow = seat->idx == SLOW;
	enum weft_status st = open_session(seat, env, &session, &tensor);
	for (uint32_t step = 0; step < STEPS && st == WEFT_OK; step++) {
		spend(env, COMPUTE_NS + (slow && run->where == COMPUTING ? DELAY_NS : 0));
		st = weft_step(session, 1, 0);
		if (st == WEFT_OK) {
			st = weft_push(tensor);
		}
		/* Without a turn of its own nothing is sent. */
		spend(env, slow && run->where == SENDING ? DELAY_NS : 0);
		if (st == WEFT_OK) {
			st = weft_wait_all(session);
		}
	}
	if (st == WEFT_OK) {
		st = weft_pass_end(session);
	}
	for (uint32_t t = 0; t < TRAINERS && st == WEFT_OK && seat->idx == 0; t++) {
		run->stats[t].struct_bytes = sizeof(run->stats[t]);
		st = weft_trainer_stats(session, t, &run->stats[t]);
	}
	enum weft_status end = weft_session_close(session);
	if (st != WEFT_OK || end != WEFT_OK) {
		crew_complain(seat->crew, "trainer", seat->idx);
	}
	seat->crew->ended += st == WEFT_OK && end == WEFT_OK ? 1 : 0;
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
	struct run run = {.where = where};
	struct crew crew = {
		.seed = 3,
		.world = {.seed = 3,
			  .delay_min_ns = 10 * WF_NS_PER_US,
			  .delay_max_ns = 200 * WF_NS_PER_US,
			  .log_level = WF_LOG_INFO,
			  .log_fd = memfd_create("log", MFD_CLOEXEC)},
		.transport = "sim",
		.pservers = 1,
		.trainers = TRAINERS,
		.lanes = LANES,
		.fill_server = fill_server,
		.run_trainer = run_trainer,
		.run = &run,
	};
	struct wf_world_stats ignored;
	char line[1200];
	memset(told, 0, sizeof(struct told) * LANES * TRAINERS);
	enum weft_status st = crew_play(&crew, &ignored);
	assert_string_equal(crew.why, "");
	assert_int_equal(st, WEFT_OK);
	assert_int_equal(crew.ended, TRAINERS);
	memcpy(stats, run.stats, sizeof(run.stats));
	assert_int_equal(lseek(crew.world.log_fd, 0, SEEK_SET), 0);
	FILE *log = fdopen(crew.world.log_fd, "r");
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
