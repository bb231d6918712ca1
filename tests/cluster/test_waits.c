/* SPDX-License-Identifier: Apache-2.0 */
/* What trainers and lanes log while they wait, under a virtual clock: nothing in a job of minutes
 * whose waits are short, one by one; and for a long wait what it is for and how long it has lasted,
 * whatever was waited for before. The jobs have tensors, tables, barriers and pass ends. Thread:
 * one. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/settings.h"
#include "sparse/server/service.h"
#include "tests/cluster/killed.h"
#include "weft/sparse.h"

#define TRAINERS 2u
#define TENSORS 4u
#define STEPS 40u
#define LATE_NS (1900 * WF_NS_PER_MS)
#define LINES_MAX 64u
#define LINE_BYTES 512u

/* Times for which trainer 1 keeps trainer 0 waiting, beside those of every step. */
struct plan {
	bool streams;      /* tensors are pushed one after the other; tables have no part */
	bool uneven;       /* trainer 0 has no data, trainer 1 makes all steps alone */
	uint64_t stall_ns; /* of both in step 10, with two tensors pushed */
	bool dribbles;     /* trainer 1 pushes step 11 so, and trainer 0 all at once */
	bool prefetches;   /* rows of the next step are asked for, then a long time is computed */
	uint64_t
		away_ns; /* trainer 0 pushes step 10, sees to it that some of it leaves, and goes */
	uint64_t step_ns[2]; /* before it begins steps 10 and 20 */
	uint64_t reduce_ns;  /* before the barrier after step 30 */
	uint64_t pass_ns;    /* before its end of the pass */
	uint64_t end_ns;     /* before it closes its session, in a job with snapshots */
	bool is_stopped;     /* trainer 0, after this time */
};

struct job {
	struct crew crew;
	struct plan plan;
	struct killed files;              /* with end_ns */
	struct weft_session *first;       /* of trainer 0 */
	char line[LINES_MAX][LINE_BYTES]; /* of waits */
	unsigned line_count;
};

struct member {
	struct job *job;
	uint32_t idx;
	struct wf_env *env;
	struct weft_session *session;
	struct weft_tensor *tensor[TENSORS];
	struct weft_table *table;
};

static enum weft_status
open_session(struct member *m)
{
	static const char *const names[TENSORS] = {"a", "b", "c", "d"};
	struct weft_session_opts opts;
	struct weft_table_opts table;
	crew_fill_opts(&m->job->crew, m->idx, &opts);
	opts.slice_bytes = 64;
	if (m->job->plan.away_ns > 0 && m->idx == 0) {
		opts.step_timeout_ns = m->job->plan.away_ns / 2;
	}
	enum weft_status st = wf_session_open_in(m->env, &opts, &m->session);
	for (uint32_t t = 0; t < TENSORS && st == WEFT_OK; t++) {
		const struct weft_tensor_opts tensor = {.name = names[t], .rows = 40};
		st = weft_tensor_add(m->session, &tensor, &m->tensor[t]);
	}
	weft_table_opts_init(&table);
	table.name = "rows";
	table.dim = 3;
	table.batch_keys_max = 64;
	if (st == WEFT_OK) {
		st = weft_table_add(m->session, &table, &m->table);
	}
	if (st == WEFT_OK) {
		st = weft_session_seal(m->session);
	}
	return st == WEFT_OK ? weft_session_start(m->session) : st;
}

/* The caller drives, so it looks ten times in the time. */
static void
spend(const struct member *m, uint64_t ns)
{
	uint64_t until_ns = wf_now_ns(m->env) + ns;
	uint64_t next_ns;
	while ((next_ns = wf_now_ns(m->env)) < until_ns) {
		next_ns += WF_NS_PER_S / 10;
		wf_wait(m->env, -1, next_ns < until_ns ? next_ns : until_ns);
		enum weft_status st = weft_poll(m->session);
		(void)st; /* the next call says it again */
	}
}

/* A step of six seconds, in which trainer 1 is a second late with each tensor. */
static enum weft_status
push_in_a_stream(const struct member *m, uint64_t stall_ns)
{
	enum weft_status st = WEFT_OK;
	spend(m, m->idx * LATE_NS / 2);
	for (uint32_t t = 0; t < TENSORS && st == WEFT_OK; t++) {
		st = weft_push(m->tensor[t]);
		spend(m, t == 2 ? stall_ns : LATE_NS * 3 / 4);
	}
	return st;
}

static enum weft_status
push_all(const struct member *m, struct weft_rows *rows)
{
	static const float grad[64 * 3];
	enum weft_status st = weft_rows_push(rows, grad, NULL, NULL);
	for (uint32_t t = 0; t < TENSORS && st == WEFT_OK; t++) {
		st = weft_push(m->tensor[t]);
	}
	return st;
}

/* Nothing of what comes meanwhile is taken. */
static void
go_away(const struct member *m, uint64_t ns)
{
	uint64_t until_ns = wf_now_ns(m->env) + ns;
	spend(m, WF_NS_PER_S / 10);
	while (wf_now_ns(m->env) < until_ns) {
		wf_wait(m->env, -1, until_ns);
	}
}

/* What is asked for comes when this trainer has pushed, which is no wait. */
static enum weft_status
compute_with_rows_under_way(const struct member *m, struct weft_rows **next)
{
	static const uint64_t key[2] = {7, 8};
	enum weft_status st = weft_rows_pull(m->table, key, 2, WEFT_ROWS_CREATE, next);
	spend(m, 3 * LATE_NS);
	return st;
}

static enum weft_status
push(const struct member *m, uint32_t step, struct weft_rows *rows)
{
	const struct plan *plan = &m->job->plan;
	if (plan->streams || (plan->dribbles && m->idx == 1 && step == 11)) {
		weft_rows_free(rows);
		return push_in_a_stream(m, step == 10 ? plan->stall_ns : 0);
	}
	return push_all(m, rows);
}

static uint64_t
step_late_ns(const struct member *m, uint32_t step)
{
	const struct plan *plan = &m->job->plan;
	bool late = !plan->streams && m->idx == step % TRAINERS;
	uint64_t ns = late ? LATE_NS : 0;
	if (m->idx == 1 && step == 10) {
		ns += plan->step_ns[0];
	}
	return m->idx == 1 && step == 20 ? ns + plan->step_ns[1] : ns;
}

static enum weft_status
one_step(const struct member *m, uint32_t step)
{
	static const uint64_t key[4] = {1, 2, 3, 40};
	struct weft_rows *rows = NULL;
	struct weft_rows *next = NULL;
	enum weft_status st = weft_rows_pull(m->table, key, 4, WEFT_ROWS_CREATE, &rows);
	if (st == WEFT_OK) {
		st = weft_rows_wait(rows);
	}
	spend(m, step_late_ns(m, step));
	if (st == WEFT_OK) {
		st = weft_step(m->session, 1, 0);
	}
	if (st == WEFT_OK && m->job->plan.prefetches) {
		st = compute_with_rows_under_way(m, &next);
	}
	if (st == WEFT_OK) {
		st = push(m, step, rows);
	}
	if (m->idx == 0 && step == 10 && m->job->plan.away_ns > 0) {
		go_away(m, m->job->plan.away_ns);
	}
	if (st == WEFT_OK) {
		st = weft_wait_all(m->session);
	}
	if (st == WEFT_OK && next != NULL) {
		st = weft_rows_wait(next);
	}
	weft_rows_free(next);
	spend(m, m->idx == 1 && step == 30 ? m->job->plan.reduce_ns : 0);
	spend(m, m->idx != step % TRAINERS ? LATE_NS : 0);
	return st != WEFT_OK || m->job->plan.uneven ? st : weft_barrier(m->session);
}

static int
run_trainer(struct wf_env *env, void *arg)
{
	const struct crew_seat *seat = arg;
	struct member m = {.job = seat->crew->run, .idx = seat->idx, .env = env};
	enum weft_status st = open_session(&m);
	uint32_t steps = m.job->plan.uneven && m.idx == 0 ? 0 : STEPS;
	for (uint32_t step = 1; step <= steps && st == WEFT_OK; step++) {
		st = one_step(&m, step);
	}
	spend(&m, m.idx == 1 ? m.job->plan.pass_ns : 0);
	if (st == WEFT_OK) {
		st = weft_pass_end(m.session);
	}
	spend(&m, m.idx == 1 ? m.job->plan.end_ns : 0);
	m.job->first = m.idx == 0 ? m.session : m.job->first;
	if (m.idx == 1 && m.job->plan.is_stopped) {
		weft_session_stop(m.job->first, SIGTERM);
		spend(&m, m.job->plan.end_ns);
	}
	enum weft_status end = weft_session_close(m.session);
	if (st == WEFT_OK && m.job->plan.is_stopped) {
		end = end == WEFT_ABORTED &&
				      strstr(weft_last_error(), "was stopped by SIGTERM") != NULL
			      ? WEFT_OK
			      : wf_fail(WEFT_INTERNAL, "it ended with %s: %.200s",
					weft_status_name(end), weft_last_error());
	}
	if (st != WEFT_OK || end != WEFT_OK) {
		crew_complain(seat->crew, "trainer", m.idx);
	} else {
		seat->crew->ended++;
	}
	return 0;
}

static void
keep_lines(struct job *job, int fd)
{
	char line[1200];
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	FILE *log = fdopen(fd, "r");
	assert_non_null(log);
	while (fgets(line, sizeof(line), log) != NULL) {
		if (strstr(line, " waits") != NULL && job->line_count < LINES_MAX) {
			(void)snprintf(job->line[job->line_count++], LINE_BYTES, "%.500s", line);
		}
	}
	(void)fclose(log);
}

static void
fill_server(const struct crew *crew, struct wf_server_opts *out)
{
	const struct job *job = crew->run;
	killed_fill_server(&job->files, out);
}

static void
play(const struct plan *plan, struct job *job)
{
	struct wf_world_stats stats;
	*job = (struct job){.plan = *plan, .files = {.keep = 1, .snapshot_steps = STEPS}};
	assert_true(plan->end_ns == 0 || killed_make_dir(&job->files));
	job->crew = (struct crew){
		.seed = 1,
		.world = {.seed = 1,
			  .delay_min_ns = 10 * WF_NS_PER_US,
			  .delay_max_ns = 100 * WF_NS_PER_US,
			  .log_level = WF_LOG_WARN,
			  .log_fd = memfd_create("log", MFD_CLOEXEC)},
		.transport = "sim",
		.pservers = 1,
		.trainers = TRAINERS,
		.slot_count = 4,
		.lanes = 2,
		.sparse = &wf_sparse_service,
		.fill_server = fill_server,
		.run_trainer = run_trainer,
		.run = job,
	};
	enum weft_status st = crew_play(&job->crew, &stats);
	if (plan->end_ns > 0) {
		killed_remove_dir(&job->files);
	}
	keep_lines(job, job->crew.world.log_fd);
	if (plan->is_stopped) { /* the pserver ends with that, too */
		assert_non_null(strstr(job->crew.why, "was stopped by SIGTERM"));
	} else {
		assert_string_equal(job->crew.why, "");
	}
	assert_int_equal(st, WEFT_OK);
	assert_int_equal(job->crew.ended, TRAINERS);
}

/* How many lines have both parts. */
static unsigned
lines_with(const struct job *job, const char *who, const char *what)
{
	unsigned count = 0;
	for (unsigned i = 0; i < job->line_count; i++) {
		const char *at = strstr(job->line[i], who);
		count += at != NULL && strstr(at, what) != NULL ? 1 : 0;
	}
	return count;
}

static void
expect(const struct job *job, unsigned count, const char *who, const char *what)
{
	unsigned have = lines_with(job, who, what);
	for (unsigned i = 0; i < job->line_count && have != count; i++) {
		print_error("%s", job->line[i]);
	}
	if (have != count) {
		print_error("\"%s ... %s\": ", who, what);
	}
	assert_int_equal(have, count);
}

static void
a_job_of_minutes_whose_waits_are_short_says_nothing(void **state)
{
	(void)state;
	struct job job;
	play(&(struct plan){0}, &job);
	expect(&job, 0, "", "waits");
}

/* Steps last, and something is always under way in them, but nothing for long. */
static void
steps_that_last_and_go_on_say_nothing(void **state)
{
	(void)state;
	struct job job;
	play(&(struct plan){.streams = true}, &job);
	expect(&job, 0, "", "waits");
}

static void
a_step_that_does_not_go_on_is_told_though_nobody_has_done_its_part(void **state)
{
	(void)state;
	struct job job;
	play(&(struct plan){.streams = true, .stall_ns = 4 * WF_NS_PER_S}, &job);
	expect(&job, 1, "lane 0: ", "step 10 waits for trainer 0, 1, for 2 s now");
	expect(&job, 1, "", "waits");
}

/* It goes on, but somebody has done its part and waits. */
static void
a_trainer_that_takes_long_to_push_is_named(void **state)
{
	(void)state;
	struct job job;
	play(&(struct plan){.dribbles = true}, &job);
	expect(&job, 1, "lane 0: ", "step 11 waits for trainer 1, for 2 s now");
	expect(&job, 1, "trainer 0 waits, 2 s", "step 11, a: another trainer has not done");
	expect(&job, 0, "", "step 12");
}

/* It waits from its return on: neither is a wait told then, nor is the time for one over. */
static void
a_trainer_that_was_away_has_not_waited(void **state)
{
	(void)state;
	struct job job;
	play(&(struct plan){.away_ns = 28 * WF_NS_PER_S}, &job);
	expect(&job, 0, "trainer 0 waits", "");
	expect(&job, 1, "trainer 1 waits, 14 s", "step 10, b: another trainer");
}

static void
rows_that_are_asked_for_early_are_not_waited_for(void **state)
{
	(void)state;
	struct job job;
	play(&(struct plan){.prefetches = true}, &job);
	expect(&job, 0, "trainer ", " waits, ");
	expect(&job, 1, "lane 0: ", "step 3 waits for trainer 0, 1, for 2 s now");
}

/* The steps in the meantime neither make it younger nor are told in its place. */
static void
a_wait_beside_many_short_ones_is_told_ever_more_rarely(void **state)
{
	(void)state;
	struct job job;
	static const char *const ages[] = {"2", "6", "14", "30", "62"};
	play(&(struct plan){.uneven = true}, &job);
	for (unsigned i = 0; i < 5; i++) {
		char text[64];
		(void)snprintf(text, sizeof(text), "waits for trainer 1, for %s s now", ages[i]);
		expect(&job, 1, "lane 0: a barrier, reduce, all_reduce or pass end ", text);
		(void)snprintf(text, sizeof(text), "waits, %s s of at most", ages[i]);
		expect(&job, 1, "trainer 0 ", text);
	}
	expect(&job, 10, "", "waits");
}

static void
long_waits_are_told_with_their_own_age_and_what_they_are_for(void **state)
{
	(void)state;
	struct job job;
	play(&(struct plan){.step_ns = {4 * WF_NS_PER_S, 8 * WF_NS_PER_S},
			    .reduce_ns = 3 * WF_NS_PER_S,
			    .pass_ns = 4 * WF_NS_PER_S},
	     &job);
	/* Of steps 10 and 20: after 2 s, of the second one after 6 s, too. */
	expect(&job, 1, "trainer 0 waits, 2 s", "step 10, a: another trainer has not done");
	expect(&job, 1, "trainer 0 waits, 2 s", "step 20, a: another trainer has not done");
	expect(&job, 1, "trainer 0 waits, 6 s", "step 20, a: another trainer has not done");
	expect(&job, 1, "trainer 0 waits, 2 s", "step 10, tables: pserver 0 sparse lane 0 has");
	expect(&job, 1, "trainer 0 waits, 2 s", "step 20, tables: pserver 0 sparse lane 0 has");
	expect(&job, 1, "trainer 0 waits, 6 s", "step 20, tables: pserver 0 sparse lane 0 has");
	expect(&job, 1, "trainer 0 waits, 2 s", "step 30, a reduce: another trainer has not");
	expect(&job, 1, "trainer 0 waits, 2 s", "step 40, a reduce: another trainer has not");
	expect(&job, 8, "trainer ", "waits, ");
	expect(&job, 0, "trainer 1 waits", "");
	for (unsigned lane = 0; lane < 3; lane++) { /* a dense one, two sparse ones */
		char who[16];
		(void)snprintf(who, sizeof(who), "lane %u: ", lane);
		expect(&job, 1, who, "step 10 waits for trainer 1, for 2 s now");
		expect(&job, 1, who, "step 20 waits for trainer 1, for 2 s now");
		expect(&job, 1, who, "step 20 waits for trainer 1, for 6 s now");
		expect(&job, lane == 0 ? 5 : 3, who, "waits for");
	}
	expect(&job, 2, "lane 0: ", "pass end waits for trainer 1, for 2 s now");
}

/* With snapshots GOODBYE is answered when all trainers have sent theirs. */
static void
a_trainer_that_has_ended_before_the_others_says_so(void **state)
{
	(void)state;
	struct job job;
	play(&(struct plan){.end_ns = 7 * WF_NS_PER_S}, &job);
	expect(&job, 2, "trainer 0 waits, ",
	       "this trainer is done after step 40, and another one has not ended the job yet");
	expect(&job, 2, "", "waits");
}

/* It does not wait until the others are done, too, nor for a second signal. */
static void
a_trainer_that_is_stopped_while_it_waits_for_the_end_ends(void **state)
{
	(void)state;
	struct job job;
	play(&(struct plan){.end_ns = 3 * WF_NS_PER_S, .is_stopped = true}, &job);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_of_minutes_whose_waits_are_short_says_nothing),
		cmocka_unit_test(steps_that_last_and_go_on_say_nothing),
		cmocka_unit_test(
			a_step_that_does_not_go_on_is_told_though_nobody_has_done_its_part),
		cmocka_unit_test(a_trainer_that_takes_long_to_push_is_named),
		cmocka_unit_test(a_trainer_that_was_away_has_not_waited),
		cmocka_unit_test(rows_that_are_asked_for_early_are_not_waited_for),
		cmocka_unit_test(a_wait_beside_many_short_ones_is_told_ever_more_rarely),
		cmocka_unit_test(long_waits_are_told_with_their_own_age_and_what_they_are_for),
		cmocka_unit_test(a_trainer_that_has_ended_before_the_others_says_so),
		cmocka_unit_test(a_trainer_that_is_stopped_while_it_waits_for_the_end_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
