/* SPDX-License-Identifier: Apache-2.0 */
/* What is made of recordings: clocks, pushes, the verdict, and files. The recordings are invented:
 * two trainers and two lanes, whose steps take known times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/trace/pftrace.h"
#include "tools/trace/why.h"

#define MS 1000000ull
#define STEPS 8u
#define TRAINERS 2u
#define LANES 2u                /* dense, and as many sparse ones, which follow them */
#define ROWS 100u               /* that a trainer asks a sparse lane for, and pushes to it */
#define HOTTEST 4711u           /* the key that sparse lane 3 is asked for most */
#define FAR_OFF 123456789012ull /* by which the clock of trainer 1 is ahead */

/* Times of trainer 1, or lane 1, that differ; in ns. */
struct job {
	uint64_t compute, out, in, lane, queue, faults, bytes;
	uint64_t trainer_queue, devices;
	uint64_t rows, more_rows; /* sparse lane 3 answers so much later, and for so many more */
	uint64_t often;           /* trainer 1 computes by so much longer in every other step */
	bool has_small;           /* messages that are not delayed */
	bool has_rows;            /* two sparse lanes */
};

static void
add(struct wf_recording *recording, struct wf_recording_member *member, uint64_t at_ns,
    enum wf_trace_what what, uint32_t peer, uint32_t step, uint64_t value)
{
	bool is_ahead = member->is_trainer && member->idx == 1;
	const struct wf_trace_event event = {
		.at_ns = at_ns + (is_ahead ? FAR_OFF : 0),
		.value = value,
		.step = step,
		.peer = peer,
		.what = (uint16_t)what,
	};
	assert_int_equal(wf_recording_add(recording, member, &event), WEFT_OK);
}

/* Members move when one is added. */
static void
note(struct wf_recording *recording, bool is_trainer, uint32_t idx, uint64_t at_ns,
     enum wf_trace_what what, uint32_t peer, uint32_t step, uint64_t value)
{
	struct wf_recording_member *member = wf_recording_member(recording, is_trainer, 0, idx);
	assert_non_null(member);
	add(recording, member, at_ns, what, peer, step, value);
}

static void
note_usage(struct wf_recording *recording, const struct job *job, uint64_t at_ns, uint64_t steps)
{
	for (uint32_t i = 0; i < TRAINERS; i++) {
		note(recording, true, i, at_ns, WF_TRACE_CPU_NS, 0, 0, steps * 30 * MS);
		note(recording, true, i, at_ns, WF_TRACE_MAJOR_FAULTS, 0, 0,
		     i == 1 ? steps * job->faults : 0);
		note(recording, true, i, at_ns, WF_TRACE_RUN_QUEUE_NS, 0, 0,
		     i == 1 ? steps * job->trainer_queue : 0);
		note(recording, true, i, at_ns, WF_TRACE_DEVICES, 0, 0, i == 1 ? job->devices : 0);
		note(recording, false, i, at_ns, WF_TRACE_CPU_NS, 0, 0, steps * MS);
		note(recording, false, i, at_ns, WF_TRACE_RUN_QUEUE_NS, 0, 0,
		     i == 1 ? steps * job->queue : 0);
	}
}

/* Rows as they are after the step before, for which the trainer waits. */
static void
note_rows(struct wf_recording *recording, const struct job *job, uint64_t start[TRAINERS],
	  uint32_t step)
{
	for (uint32_t t = 0; t < TRAINERS; t++) {
		for (uint32_t l = LANES; l < 2 * LANES; l++) {
			bool is_slow = l == 2 * LANES - 1;
			uint64_t given = start[t] + MS + (is_slow ? job->rows : 0);
			uint32_t place = wf_trace_lane(0, l);
			note(recording, true, t, start[t], WF_TRACE_ROWS_ASKED, place, step - 1, 0);
			note(recording, false, l, start[t] + MS / 2, WF_TRACE_ROWS_PULLED, t,
			     step - 1, ROWS + (is_slow ? job->more_rows : 0));
			note(recording, true, t, given, WF_TRACE_ROWS_ANSWERED, place, step - 1, 0);
		}
		start[t] += MS + job->rows;
	}
}

/* One step; each trainer begins when it has its last answers. */
static void
note_step(struct wf_recording *recording, const struct job *job, uint64_t start[TRAINERS],
	  uint32_t step)
{
	uint64_t arrived[2 * LANES] = {0};
	uint32_t lanes = job->has_rows ? 2 * LANES : LANES;
	if (job->has_rows) {
		note_rows(recording, job, start, step);
	}
	for (uint32_t t = 0; job->has_small && t < TRAINERS;
	     t++) { /* what a slow link lets through */
		note(recording, true, t, start[t], WF_TRACE_STEP_BEGUN, 0, step, 1);
		note(recording, false, 0, start[t] + MS / 5, WF_TRACE_STEP_ARRIVED, t, step, 0);
		note(recording, true, t, start[t] + MS / 5, WF_TRACE_MARKED, wf_trace_lane(0, 0),
		     step, start[t]);
	}
	for (uint32_t t = 0; t < TRAINERS; t++) {
		uint64_t pushed = start[t] + 30 * MS + (t == 1 ? job->compute : 0) +
				  (t == 1 && step % 2 == 0 ? job->often : 0);
		for (uint32_t l = 0; l < lanes; l++) {
			uint32_t place = wf_trace_lane(0, l);
			uint64_t at =
				pushed + MS + (t == 1 ? job->out : 0) + (l == 1 ? job->lane : 0);
			uint64_t bytes = 1000 + (l == 1 ? job->bytes : 0);
			note(recording, true, t, pushed, WF_TRACE_QUEUED, place, step, bytes);
			note(recording, true, t, pushed + 1000, WF_TRACE_POSTED, place, step,
			     bytes);
			uint64_t rows = l < LANES ? 0 : ROWS + (l == 3 ? job->more_rows : 0);
			note(recording, false, l, at, WF_TRACE_ARRIVED, t, step, rows);
			arrived[l] = at > arrived[l] ? at : arrived[l];
		}
	}
	for (uint32_t l = 0; l < lanes; l++) {
		note(recording, false, l, arrived[l] + MS, WF_TRACE_APPLIED, WF_TRACE_ALL, step, 0);
		for (uint32_t t = 0; t < TRAINERS; t++) {
			uint64_t at = arrived[l] + 2 * MS + (t == 1 ? job->in : 0);
			note(recording, true, t, at, WF_TRACE_ANSWERED, wf_trace_lane(0, l), step,
			     0);
			start[t] = at > start[t] ? at : start[t];
		}
	}
}

static void
invent(struct wf_recording *recording, const struct job *job)
{
	uint64_t at[TRAINERS] = {1000 * MS, 1000 * MS};
	wf_recording_init(recording, wf_env_memory());
	recording->steps = STEPS;
	for (uint32_t i = 0; i < TRAINERS; i++) {
		assert_non_null(wf_recording_member(recording, false, 0, i));
		assert_non_null(wf_recording_member(recording, true, 0, i));
	}
	note_usage(recording, job, at[0], 0);
	for (uint32_t step = 1; step <= STEPS; step++) {
		note_step(recording, job, at, step);
	}
	note_usage(recording, job, at[1], STEPS);
	for (uint32_t l = LANES; job->has_rows && l < 2 * LANES; l++) {
		note(recording, false, l, at[1], WF_TRACE_SERVICE, WF_TRACE_ALL, STEPS, 3);
		note(recording, false, l, at[1], WF_TRACE_HOT_KEY, 0, STEPS, HOTTEST);
	}
}

/* Judges, and frees it. */
static struct wf_why
judge(struct wf_recording *recording, uint32_t lanes)
{
	struct wf_pushes pushes;
	struct wf_why why;
	wf_recording_align(recording);
	assert_int_equal(wf_pushes_find(recording, &pushes), WEFT_OK);
	assert_int_equal(pushes.posted, STEPS * TRAINERS * lanes);
	assert_int_equal(pushes.applied, pushes.posted);
	assert_int_equal(pushes.end_step - pushes.first_step, STEPS);
	assert_int_equal(wf_why_find(recording, &pushes, &why), WEFT_OK);
	assert_true(why.line_count <= WF_WHY_LINES);
	wf_pushes_fini(&pushes);
	return why;
}

static const struct {
	struct job job;
	enum wf_why_kind kind;
	bool of_trainer;
} cases[] = {
	{{0}, WF_WHY_NOBODY, false},
	{{.has_rows = true}, WF_WHY_NOBODY, false},
	/* Its mean is 30 ms longer, but it is the last one in half of the steps only. */
	{{.often = 60 * MS}, WF_WHY_NOBODY, false},
	{{.compute = 5 * MS}, WF_WHY_NOBODY, false}, /* less than a fifth of a step */
	{{.compute = 60 * MS}, WF_WHY_COMPUTE, true},
	{{.compute = 200 * MS}, WF_WHY_COMPUTE, true}, /* it sleeps: 30 ms of CPU in 230 */
	{{.compute = 200 * MS, .devices = 1}, WF_WHY_DEVICE, true},
	{{.compute = 60 * MS, .devices = 1}, WF_WHY_COMPUTE, true}, /* 30 of 90 */
	{{.compute = 60 * MS, .trainer_queue = 58 * MS}, WF_WHY_NO_CPU, true},
	{{.compute = 60 * MS, .has_rows = true}, WF_WHY_COMPUTE, true},
	/* It waits for a CPU in two thirds of the time that it seems to be on the way. */
	{{.out = 60 * MS, .trainer_queue = 40 * MS, .has_small = true}, WF_WHY_NOBODY, false},
	{{.out = 60 * MS, .queue = 40 * MS, .has_small = true}, WF_WHY_NOBODY, false},
	{{.compute = 60 * MS, .faults = 500}, WF_WHY_PAGING, true},
	{{.out = 60 * MS, .has_small = true}, WF_WHY_OUT, true},
	{{.in = 60 * MS, .has_small = true}, WF_WHY_IN, true},
	{{.out = 60 * MS}, WF_WHY_NETWORK, true}, /* its clock may be wrong by half of that */
	{{.out = 30 * MS, .in = 30 * MS, .has_small = true}, WF_WHY_NETWORK, true},
	{{.compute = 30 * MS, .out = 30 * MS, .has_small = true}, WF_WHY_NOBODY, false},
	{{.lane = 60 * MS}, WF_WHY_LANE, false},
	{{.lane = 60 * MS, .queue = 58 * MS}, WF_WHY_NO_CPU, false},
	{{.lane = 60 * MS, .bytes = 30000}, WF_WHY_IMBALANCE, false},
	{{.lane = 60 * MS, .bytes = 2000}, WF_WHY_LANE, false}, /* these take 6 ms at lane 0 */
};

static void
the_member_and_the_cause_are_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wf_recording recording;
		invent(&recording, &cases[i].job);
		struct wf_why why = judge(&recording, cases[i].job.has_rows ? 2 * LANES : LANES);
		if (why.kind != cases[i].kind) {
			fail_msg("case %zu: %s", i, why.line[0]);
		}
		if (why.kind != WF_WHY_NOBODY) {
			assert_int_equal(recording.member[why.member].idx, 1);
			assert_int_equal(why.is_trainer, cases[i].of_trainer);
			assert_true(why.share >= 0.8);
		}
		wf_recording_fini(&recording);
	}
}

static void
a_sparse_lane_that_is_asked_for_more_rows_is_named_with_its_keys(void **state)
{
	(void)state;
	for (uint32_t heavy = 0; heavy < 2; heavy++) {
		struct wf_recording recording;
		invent(&recording, &(struct job){.has_rows = true,
						 .rows = 60 * MS,
						 .more_rows = heavy * 20 * ROWS});
		for (uint32_t i = 0; i < recording.count; i++) {
			struct wf_recording_member *member = &recording.member[i];
			for (uint32_t k = 0; k < member->count; k++) {
				bool is_hot = member->event[k].what == WF_TRACE_HOT_KEY;
				member->event[k].slice = is_hot && member->idx == 3 ? 250 : 0;
			}
		}
		struct wf_why why = judge(&recording, 2 * LANES);
		assert_int_equal(why.kind, heavy ? WF_WHY_HOT_KEYS : WF_WHY_LANE);
		assert_int_equal(recording.member[why.member].idx, 3);
		assert_false(why.is_trainer);
		assert_int_equal(why.hot_count, heavy);
		if (heavy) {
			assert_int_equal(why.hot[0].key, HOTTEST);
			assert_int_equal(why.hot[0].thousandths, 250);
			assert_non_null(strstr(why.line[0], "4711 (25.0 %)"));
		}
		wf_recording_fini(&recording);
	}
}

static void
waits_for_rows_are_no_computing(void **state)
{
	struct wf_recording recording;
	struct wf_pushes pushes;
	struct wf_why why;
	(void)state;
	invent(&recording, &(struct job){.has_rows = true, .rows = 60 * MS});
	wf_recording_align(&recording);
	assert_int_equal(wf_pushes_find(&recording, &pushes), WEFT_OK);
	assert_int_equal(wf_why_find(&recording, &pushes, &why), WEFT_OK);
	for (uint32_t i = 2; i < why.line_count; i++) {
		char who[2][16];
		unsigned number[2];
		double compute, rows;
		assert_int_equal(sscanf(why.line[i], " %15s %u %15s %u %lf %lf", who[0], &number[0],
					who[1], &number[1], &compute, &rows),
				 6);
		assert_true(compute > 29.9 && compute < 30.1);
		double expected = number[1] == 3 ? 61 : number[1] == 2 ? 1 : 0;
		assert_true(rows > expected - 0.1 && rows < expected + 0.1);
	}
	wf_pushes_fini(&pushes);
	wf_recording_fini(&recording);
}

/* Aligns it, and frees it. */
static void
assert_aligned(struct wf_recording *recording)
{
	wf_recording_align(recording);
	for (uint32_t i = 0; i < recording->count; i++) {
		const struct wf_recording_member *member = &recording->member[i];
		int64_t expected = member->is_trainer && member->idx == 1 ? -(int64_t)FAR_OFF : 0;
		int64_t wrong = member->offset_ns - expected;
		assert_true(member->has_clock);
		assert_true((uint64_t)llabs(wrong) <= member->error_ns);
		assert_true(member->error_ns <= 2 * MS);
	}
	wf_recording_fini(recording);
}

static void
clocks_that_differ_are_brought_to_one_within_the_error_that_is_stated(void **state)
{
	struct wf_recording recording;
	(void)state;
	invent(&recording, &(struct job){0});
	assert_aligned(&recording);
}

/* Of lane 1, and in what lane 0 says of its own: no difference of them can be computed with. */
static void
times_that_no_clock_has_say_nothing(void **state)
{
	struct wf_recording recording;
	(void)state;
	invent(&recording, &(struct job){.has_small = true});
	for (uint32_t i = 0; i < recording.count; i++) {
		struct wf_recording_member *member = &recording.member[i];
		for (uint32_t k = 0; k < member->count; k++) {
			struct wf_trace_event *event = &member->event[k];
			bool is_mark = event->what == WF_TRACE_MARKED;
			event->value += is_mark ? UINT64_C(1) << 62 : 0;
			event->at_ns +=
				!member->is_trainer && member->idx == 1 ? UINT64_C(1) << 63 : 0;
		}
	}
	assert_aligned(&recording);
}

static void
a_direction_within_the_error_of_the_clock_is_not_named(void **state)
{
	struct wf_recording recording;
	struct wf_pushes pushes;
	struct wf_why why;
	(void)state;
	invent(&recording, &(struct job){.out = 60 * MS, .has_small = true});
	wf_recording_align(&recording);
	for (uint32_t i = 0; i < recording.count; i++) {
		recording.member[i].error_ns = 40 * MS; /* 20 there and 40 back are as likely */
	}
	assert_int_equal(wf_pushes_find(&recording, &pushes), WEFT_OK);
	assert_int_equal(wf_why_find(&recording, &pushes, &why), WEFT_OK);
	assert_int_equal(why.kind, WF_WHY_NETWORK);
	wf_pushes_fini(&pushes);
	wf_recording_fini(&recording);
}

static void
a_file_has_the_recording_and_what_is_damaged_is_refused(void **state)
{
	char path[] = "weft-trace-XXXXXX";
	struct wf_recording recording, again;
	struct wf_pushes pushes;
	(void)state;
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	invent(&recording, &(struct job){.out = 60 * MS, .has_small = true});
	wf_recording_align(&recording);
	assert_int_equal(wf_pushes_find(&recording, &pushes), WEFT_OK);
	assert_int_equal(wf_pftrace_write(path, &recording, &pushes), WEFT_OK);
	wf_pushes_fini(&pushes);
	wf_recording_init(&again, wf_env_memory());
	again.steps = STEPS;
	assert_int_equal(wf_pftrace_read(path, &again), WEFT_OK);
	assert_int_equal(again.count, recording.count);
	struct wf_why why = judge(&again, LANES);
	assert_int_equal(why.kind, WF_WHY_OUT);
	wf_recording_fini(&again);
	off_t bytes = lseek(fd, 0, SEEK_END);
	for (off_t cut = bytes - 1; cut > 0; cut -= 1 + cut / 40) {
		assert_int_equal(ftruncate(fd, cut), 0);
		wf_recording_init(&again, wf_env_memory());
		again.steps = STEPS;
		enum weft_status st = wf_pftrace_read(path, &again);
		assert_true(st == WEFT_DATA || st == WEFT_OK); /* it may end between two packets */
		wf_recording_fini(&again);
	}
	for (off_t at = 0; at < 400; at++) {
		assert_int_equal(pwrite(fd, "\xff", 1, at), 1);
		wf_recording_init(&again, wf_env_memory());
		assert_int_equal(wf_pftrace_read(path, &again), WEFT_DATA);
		wf_recording_fini(&again);
	}
	wf_recording_fini(&recording);
	(void)close(fd);
	(void)unlink(path);
}

static void
without_two_whole_steps_there_is_no_answer(void **state)
{
	struct wf_recording recording;
	struct wf_pushes pushes;
	struct wf_why why;
	(void)state;
	wf_recording_init(&recording, wf_env_memory());
	recording.steps = STEPS;
	note(&recording, false, 0, MS, WF_TRACE_ARRIVED, 0, 1, 0);
	note(&recording, true, 0, MS, WF_TRACE_POSTED, wf_trace_lane(0, 0), 1, 8);
	wf_recording_align(&recording);
	assert_int_equal(wf_pushes_find(&recording, &pushes), WEFT_OK);
	assert_int_equal(wf_why_find(&recording, &pushes, &why), WEFT_DATA);
	wf_pushes_fini(&pushes);
	wf_recording_fini(&recording);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_member_and_the_cause_are_named),
		cmocka_unit_test(a_sparse_lane_that_is_asked_for_more_rows_is_named_with_its_keys),
		cmocka_unit_test(waits_for_rows_are_no_computing),
		cmocka_unit_test(
			clocks_that_differ_are_brought_to_one_within_the_error_that_is_stated),
		cmocka_unit_test(times_that_no_clock_has_say_nothing),
		cmocka_unit_test(a_direction_within_the_error_of_the_clock_is_not_named),
		cmocka_unit_test(a_file_has_the_recording_and_what_is_damaged_is_refused),
		cmocka_unit_test(without_two_whole_steps_there_is_no_answer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
