/* SPDX-License-Identifier: Apache-2.0 */
/* Modes of tensors through the public interface, with threads and sockets: what values come to,
 * what a pass ends with, what is refused. What a mode does under faults: tests/cluster. Thread: the
 * test's, and one of each trainer. */
#include <dirent.h>

#include "tests/unit/trainer/fabric.h"
#include "weft/sparse.h"

#define ROWS 100u
#define STEPS 12u
#define PASSES 3u

struct fixture {
	struct fabric fabric;
	struct member member[2];
};

static int
set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	assert_non_null(f);
	fabric_start(&f->fabric, 2, 2, 0);
	for (uint32_t i = 0; i < 2; i++) {
		member_init(&f->member[i], &f->fabric, i, 2);
		f->member[i].opts.slice_bytes = 64;
		f->member[i].opts.optimizer.learning_rate = 1;
	}
	*state = f;
	return 0;
}

static int
tear_down(void **state)
{
	struct fixture *f = *state;
	fabric_stop(&f->fabric);
	free(f);
	return 0;
}

/* Trainer 1 has fewer steps. Every push takes 1 from each element. */
static enum weft_status
count_down(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *tensor;
	struct weft_session_stats stats = {.struct_bytes = sizeof(stats)};
	enum weft_status st = one_tensor(&member->opts, ROWS, 1000, &session, &tensor);
	for (unsigned pass = 0; pass < PASSES && st == WEFT_OK; pass++) {
		for (unsigned step = 0; step < STEPS - 5 * member->id && st == WEFT_OK; step++) {
			for (unsigned i = 0; i < ROWS; i++) {
				weft_tensor_grad(tensor)[i] = 1;
			}
			st = weft_exchange(session, 1, 0);
		}
		st = st == WEFT_OK ? weft_pass_end(session) : st;
		if (st == WEFT_OK) {
			member->value[pass] = weft_tensor_param(tensor)[ROWS - 1];
		}
	}
	if (st == WEFT_OK) {
		st = weft_session_stats(session, &stats);
	}
	if (st == WEFT_OK) {
		st = weft_digest(session, &member->digest);
	}
	member->steps = stats.slices_discarded;
	(void)member_note(member, st);
	enum weft_status end = weft_session_close(session);
	return st != WEFT_OK ? st : end;
}

static void
run(struct fixture *f, enum weft_dense_mode mode, uint32_t steps)
{
	for (unsigned i = 0; i < 2; i++) {
		struct weft_session_opts *opts = &f->member[i].opts;
		opts->dense_mode = mode;
		opts->dense_staleness = mode == WEFT_DENSE_BOUNDED ? steps : 0;
		opts->local_steps = mode >= WEFT_DENSE_LOCAL ? steps : 0;
		f->member[i].run = count_down;
	}
	members_run(f->member, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_ended(&f->member[i], WEFT_OK, "");
		assert_true(f->member[i].digest == f->member[0].digest);
	}
}

/* What a pass takes away: all steps of both. */
static void
assert_all_counted(const struct fixture *f)
{
	for (unsigned pass = 0; pass < PASSES; pass++) {
		float expected = 1000 - (float)((pass + 1) * (STEPS + STEPS - 5));
		for (unsigned i = 0; i < 2; i++) {
			assert_true(f->member[i].value[pass] == expected);
		}
	}
}

static void
every_mode_counts_each_push_once_and_ends_passes_together(void **state)
{
	struct fixture *f = *state;
	run(f, WEFT_DENSE_SYNC, 0);
	assert_all_counted(f);
	run(f, WEFT_DENSE_ASYNC, 0);
	assert_all_counted(f);
	for (uint32_t staleness = 0; staleness < 3; staleness++) {
		run(f, WEFT_DENSE_BOUNDED, staleness);
		assert_all_counted(f);
	}
	for (uint32_t steps = 1; steps < 6; steps += 2) {
		run(f, WEFT_DENSE_LOCAL, steps); /* sums of steps: the same */
		assert_all_counted(f);
	}
}

/* Every push takes 1 from each element; each answer has at least the trainer's own pushes, and
 * nothing that is not a whole number of pushes. */
static enum weft_status
look_at_answers(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *tensor;
	enum weft_status st = one_tensor(&member->opts, ROWS, 1000, &session, &tensor);
	for (unsigned step = 1; step <= STEPS && st == WEFT_OK; step++) {
		for (unsigned i = 0; i < ROWS; i++) {
			weft_tensor_grad(tensor)[i] = 1;
		}
		st = weft_exchange(session, 1, 0);
		for (unsigned i = 0; i < ROWS && st == WEFT_OK; i++) {
			const float pushes = 1000 - weft_tensor_param(tensor)[i];
			if (!(pushes >= (float)step && pushes <= (float)(step + STEPS)) ||
			    pushes != (float)(unsigned)pushes) {
				st = wf_fail(WEFT_DATA, "step %u: %g pushes", step, (double)pushes);
			}
		}
	}
	(void)member_note(member, st);
	enum weft_status end = weft_session_close(session);
	return st != WEFT_OK ? st : end;
}

static void
answers_have_the_values_as_they_travel(void **state)
{
	struct fixture *f = *state;
	/* Whole numbers up to 2,048 are exact in f16; in bf16 they are not. */
	static const enum weft_dense_wire wire[] = {WEFT_WIRE_F32, WEFT_WIRE_F16};
	for (unsigned w = 0; w < 2; w++) {
		for (unsigned i = 0; i < 2; i++) {
			f->member[i].opts.dense_mode = WEFT_DENSE_ASYNC;
			f->member[i].opts.dense_wire = wire[w];
			f->member[i].run = look_at_answers;
		}
		members_run(f->member, 2);
		for (unsigned i = 0; i < 2; i++) {
			assert_ended(&f->member[i], WEFT_OK, "");
		}
	}
}

static void
a_mean_of_local_steps_is_by_samples(void **state)
{
	struct fixture *f = *state;
	for (unsigned i = 0; i < 2; i++) {
		f->member[i].opts.grad_reduce = WEFT_REDUCE_MEAN;
	}
	run(f, WEFT_DENSE_LOCAL, STEPS);
	/* Steps of one sample each take 1: 12 steps of trainer 0 weigh 12, 7 of trainer 1 weigh 7.
	 */
	float expected = 1000 - (12.0f * 12 + 7.0f * 7) / 19;
	assert_true(f->member[0].value[0] == expected);
}

static void
elastic_trainers_go_on_from_the_center_after_a_pass(void **state)
{
	struct fixture *f = *state;
	for (unsigned i = 0; i < 2; i++) {
		f->member[i].opts.elastic_rate = 0.5;
	}
	run(f, WEFT_DENSE_ELASTIC, STEPS);
	/* One exchange in a pass: c <- c - 0.5 (12 + 7). */
	assert_true(f->member[0].value[0] == 1000 - 9.5f);
	assert_true(f->member[0].value[1] == 1000 - 19.0f);
}

/* Trainer 0 gives its own steps up, and has none to exchange when the pass ends. */
static enum weft_status
step_and_pull(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *tensor;
	enum weft_status st = one_tensor(&member->opts, ROWS, 1000, &session, &tensor);
	for (unsigned step = 0; step < 2 && st == WEFT_OK; step++) {
		for (unsigned i = 0; i < ROWS; i++) {
			weft_tensor_grad(tensor)[i] = 1;
		}
		st = weft_exchange(session, 1, 0);
	}
	member->value[0] = weft_tensor_param(tensor)[0];
	if (st == WEFT_OK && member->id == 0) {
		st = weft_pull(tensor);
	}
	member->value[1] = weft_tensor_param(tensor)[0];
	st = st == WEFT_OK ? weft_pass_end(session) : st;
	member->value[2] = weft_tensor_param(tensor)[0];
	(void)member_note(member, st);
	enum weft_status end = weft_session_close(session);
	return st != WEFT_OK ? st : end;
}

static void
steps_before_a_pull_are_lost_and_the_pass_ends_all_the_same(void **state)
{
	struct fixture *f = *state;
	static const struct {
		enum weft_dense_mode mode;
		enum weft_grad_reduce reduce;
		float end;
	} way[] = {
		/* What trainer 1 moved by; by samples, those of lost steps too; half of it. */
		{WEFT_DENSE_LOCAL, WEFT_REDUCE_SUM, 998},
		{WEFT_DENSE_LOCAL, WEFT_REDUCE_MEAN, 999},
		{WEFT_DENSE_ELASTIC, WEFT_REDUCE_SUM, 999},
	};
	for (unsigned m = 0; m < sizeof(way) / sizeof(way[0]); m++) {
		for (unsigned i = 0; i < 2; i++) {
			f->member[i].opts.dense_mode = way[m].mode;
			f->member[i].opts.grad_reduce = way[m].reduce;
			f->member[i].opts.local_steps = 5;
			f->member[i].opts.elastic_rate = way[m].mode == WEFT_DENSE_LOCAL ? 0 : 0.5;
			f->member[i].run = step_and_pull;
		}
		members_run(f->member, 2);
		for (unsigned i = 0; i < 2; i++) {
			assert_ended(&f->member[i], WEFT_OK, "");
			assert_true(f->member[i].value[0] == 998);
			assert_true(f->member[i].value[1] == (i == 0 ? 1000 : 998));
			assert_true(f->member[i].value[2] == way[m].end);
		}
	}
}

static void
dropped_pushes_are_told_and_the_rest_is_counted(void **state)
{
	struct fixture *f = *state;
	for (unsigned i = 0; i < 2; i++) {
		f->member[i].opts.dense_discard_ratio = 0.5; /* one push of the other's */
	}
	run(f, WEFT_DENSE_ASYNC, 0);
	/* Slices are discarded by themselves: the last one is what is looked at. */
	float most = 1000 - (float)(PASSES * (STEPS + STEPS - 5));
	float value = f->member[0].value[PASSES - 1];
	uint64_t discarded = f->member[0].steps + f->member[1].steps;
	assert_true(value >= most);
	assert_true(value - most <= (float)discarded);
}

static unsigned
count_fds(void)
{
	unsigned count = 0;
	DIR *dir = opendir("/proc/self/fd");
	assert_non_null(dir);
	while (readdir(dir) != NULL) {
		count++;
	}
	assert_int_equal(closedir(dir), 0);
	return count;
}

static void
local_steps_and_tables_do_not_go_together(void **state)
{
	struct fixture *f = *state;
	struct weft_session_opts opts = f->member[0].opts;
	struct weft_table_opts rows;
	struct weft_session *session = NULL;
	struct weft_tensor *tensor;
	struct weft_table *table;
	opts.dense_mode = WEFT_DENSE_LOCAL;
	opts.local_steps = 2;
	opts.ports_num_for_sparse = 1;
	assert_ok(weft_session_open(&opts, &session));
	assert_ok(weft_tensor_add(session, &(struct weft_tensor_opts){.name = "w", .rows = 3},
				  &tensor));
	weft_table_opts_init(&rows);
	rows.name = "rows";
	rows.dim = 2;
	assert_ok(weft_table_add(session, &rows, &table));
	unsigned fds = count_fds();
	for (unsigned i = 0; i < 2; i++) { /* and nothing is left of the try */
		assert_refused(weft_session_seal(session), WEFT_INVALID, "without tables");
		assert_int_equal(count_fds(), fds);
	}
	assert_ok(weft_session_close(session));
}

/* Not finite: the trainer that has it says so, and the other hears why the job ends. */
static enum weft_status
overflow(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *tensor;
	enum weft_status st = one_tensor(&member->opts, ROWS, 1, &session, &tensor);
	for (unsigned step = 0; step < STEPS && st == WEFT_OK; step++) {
		for (unsigned i = 0; i < ROWS; i++) {
			bool bad = member->id == 1 && step == 3;
			weft_tensor_grad(tensor)[i] = bad ? 3e38f * 10 : 1;
		}
		st = weft_exchange(session, 1, 0);
	}
	member->value[0] = (float)st;
	return weft_session_close(session); /* what was the matter is said already */
}

static void
a_local_gradient_that_is_not_finite_ends_the_job(void **state)
{
	struct fixture *f = *state;
	for (unsigned i = 0; i < 2; i++) {
		f->member[i].opts.dense_mode = WEFT_DENSE_LOCAL;
		f->member[i].opts.local_steps = 2;
		f->member[i].run = overflow;
	}
	members_run(f->member, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_ended(&f->member[i], WEFT_DATA, "w from trainer 1");
		assert_text(f->member[i].text, "step 4");
		assert_int_equal((int)f->member[i].value[0], WEFT_DATA);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			every_mode_counts_each_push_once_and_ends_passes_together, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(answers_have_the_values_as_they_travel, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_mean_of_local_steps_is_by_samples, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(elastic_trainers_go_on_from_the_center_after_a_pass,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			steps_before_a_pull_are_lost_and_the_pass_ends_all_the_same, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(dropped_pushes_are_told_and_the_rest_is_counted,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(local_steps_and_tables_do_not_go_together, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_local_gradient_that_is_not_finite_ends_the_job,
						set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
