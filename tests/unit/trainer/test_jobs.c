/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs of two trainers: who disagrees, who is missing, who ends early, who aborts. */
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/trainer/fabric.h"
#include "wire/messages.h"

#define PAIR 2
#define ROWS 64 /* four slices of 64 bytes: every lane has some */

struct fixture {
	struct fabric fabric;
	struct member member[PAIR];
};

static int
set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	assert_non_null(f);
	fabric_start(&f->fabric, 2, 1, 0);
	for (uint32_t i = 0; i < PAIR; i++) {
		member_init(&f->member[i], &f->fabric, i, PAIR);
		f->member[i].opts.slice_bytes = 64;
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

static void
run_pair(struct fixture *f, enum weft_status (*run)(struct member *))
{
	for (unsigned i = 0; i < PAIR; i++) {
		f->member[i].run = run;
	}
	members_run(f->member, PAIR);
}

/* Of trainers who have come to the job: a wait that has a short limit begins when all have, however
 * long that takes. */
static pthread_barrier_t all_are_in;

static void
run_pair_together(struct fixture *f, enum weft_status (*run)(struct member *))
{
	assert_int_equal(pthread_barrier_init(&all_are_in, NULL, PAIR), 0);
	run_pair(f, run);
	assert_int_equal(pthread_barrier_destroy(&all_are_in), 0);
}

/* Ten steps and a good end. */
static enum weft_status
train(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *tensor;
	enum weft_status st = one_tensor(&member->opts, ROWS, 1, &session, &tensor);
	for (unsigned i = 0; i < 10 && st == WEFT_OK; i++) {
		st = weft_exchange(session, 1, 0);
	}
	(void)member_note(member, st);
	enum weft_status end = weft_session_close(session);
	return st != WEFT_OK ? st : end;
}

#define SLICE_ROWS 16u
#define MANY_ROWS (2 * SLICE_ROWS * (2 * WF_STEPS_PER_MSG + 10)) /* over two pservers */

/* value[0]: elements that are not what three steps make of them. */
static enum weft_status
train_many_slices(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *tensor;
	enum weft_status st = one_tensor(&member->opts, MANY_ROWS, 1, &session, &tensor);
	for (unsigned step = 0; step < 3 && st == WEFT_OK; step++) {
		for (uint32_t i = 0; i < MANY_ROWS; i++) {
			weft_tensor_grad(tensor)[i] = (float)(i % 8);
		}
		st = weft_exchange(session, 1, 0);
	}
	for (uint32_t i = 0; i < MANY_ROWS && st == WEFT_OK; i++) {
		float expected = 1 - 3 * PAIR * 0.125f * (float)(i % 8);
		member->value[0] += weft_tensor_param(tensor)[i] == expected ? 0 : 1;
	}
	(void)member_note(member, st);
	enum weft_status end = weft_session_close(session);
	return st != WEFT_OK ? st : end;
}

static void
a_lane_may_have_more_slices_than_one_message_tells_of(void **state)
{
	struct fixture *f = *state;
	for (unsigned i = 0; i < PAIR; i++) {
		f->member[i].opts.optimizer.learning_rate = 0.125;
	}
	run_pair(f, train_many_slices);
	for (unsigned i = 0; i < PAIR; i++) {
		assert_ended(&f->member[i], WEFT_OK, "");
		assert_true(f->member[i].value[0] == 0);
	}
}

/* Trainer 0 aborts in mid-job; trainer 1 trains until it hears, and then asks for more. */
static enum weft_status
abort_or_train(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *tensor;
	enum weft_status st = one_tensor(&member->opts, ROWS, 1, &session, &tensor);
	for (unsigned i = 0; st == WEFT_OK; i++) {
		if (i == 3 && member->id == 0) {
			weft_session_abort(session, WEFT_DATA, "line 7 of data.csv is no number");
			return WEFT_OK;
		}
		st = weft_exchange(session, 1, 0);
	}
	(void)member_note(member, st);
	for (unsigned call = 0; call < 5; call++) {
		enum weft_status again = call == 0   ? weft_step(session, 1, 0)
					 : call == 1 ? weft_pull(tensor)
					 : call == 2 ? weft_barrier(session)
					 : call == 3 ? weft_pass_end(session)
						     : weft_poll(session);
		bool same = again == st && strcmp(weft_last_error(), member->text) == 0;
		member->steps += same ? 1 : 0;
	}
	member->steps += weft_session_close(session) == st ? 1 : 0;
	return st;
}

static void
the_first_cause_reaches_every_trainer_and_stays(void **state)
{
	struct fixture *f = *state;
	run_pair(f, abort_or_train);
	assert_int_equal(f->member[0].status, WEFT_OK);
	assert_ended(&f->member[1], WEFT_DATA, "trainer 0");
	assert_text(f->member[1].text, "line 7 of data.csv is no number");
	assert_int_equal(f->member[1].steps, 6); /* every later call says the same */
}

static void
a_pserver_that_nobody_started_is_named_when_time_is_up(void **state)
{
	struct fixture *f = *state;
	struct member *member = &f->member[0];
	char list[64];
	/* A port that is bound and not listened on refuses, and stays ours. */
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t bytes = sizeof(at);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &bytes), 0);
	(void)snprintf(list, sizeof(list), "127.0.0.1:%u", ntohs(at.sin_port));
	member->opts.pservers = list;
	member->opts.connect_timeout_ns = WF_NS_PER_S;
	member->run = train;
	members_run(member, 1);
	(void)close(fd);
	assert_ended(member, WEFT_TIMEOUT, "pserver 0 lane 0");
	assert_text(member->text, list);
	assert_text(member->text, "did not answer within 1.0 s");
	assert_text(member->text, "refused"); /* the last error */
}

/* Trainer 0 is there; `other` comes and is refused with all of these in its text; then trainer 1 as
 * it should be comes, and both train to the end. */
static void
disagrees(struct fixture *f, struct member *other, const char *field, const char *mine,
	  const char *theirs)
{
	struct weft_session *session;
	struct weft_tensor *tensor;
	assert_ok(one_tensor(&f->member[0].opts, ROWS, 1, &session, &tensor));
	other->run = train;
	members_run(other, 1);
	assert_ended(other, WEFT_MISMATCH, field);
	assert_text(other->text, mine);
	assert_text(other->text, theirs);
	f->member[1].run = train;
	members_start(&f->member[1], 1);
	for (unsigned i = 0; i < 10; i++) {
		assert_ok(weft_exchange(session, 1, 0));
	}
	assert_ok(weft_session_close(session));
	members_join(&f->member[1], 1);
	assert_ended(&f->member[1], WEFT_OK, "");
}

static void
another_number_of_trainers_is_refused(void **state)
{
	struct fixture *f = *state;
	struct member other = f->member[1];
	other.opts.num_gradient_servers = 3;
	disagrees(f, &other, "num_gradient_servers", "3", "2");
}

static void
another_slice_size_is_refused(void **state)
{
	struct fixture *f = *state;
	struct member other = f->member[1];
	other.opts.slice_bytes = 128;
	disagrees(f, &other, "has slice_bytes=", "slice_bytes=128", "slice_bytes=64");
}

static void
another_wire_is_refused(void **state)
{
	struct fixture *f = *state;
	struct member other = f->member[1];
	other.opts.dense_wire = WEFT_WIRE_BF16;
	disagrees(f, &other, "has dense_wire=", "dense_wire=bf16", "dense_wire=f32");
}

static void
another_optimizer_is_refused(void **state)
{
	struct fixture *f = *state;
	struct member other = f->member[1];
	other.opts.optimizer.learning_rate = 0.125;
	disagrees(f, &other, "has learning_rate=", "learning_rate=0.125", "learning_rate=0.");
}

static void
another_way_to_train_is_refused_by_its_name(void **state)
{
	struct fixture *f = *state;
	struct member other = f->member[1];
	other.opts.dense_mode = WEFT_DENSE_ASYNC;
	disagrees(f, &other, "has dense_mode=async,", "dense_mode=async", "dense_mode=sync");
	other = f->member[1];
	other.opts.optimizer.clip_norm = 2;
	disagrees(f, &other, "has global_norm_clipping_threshold=2", "_threshold=2",
		  "_threshold=0");
	other = f->member[1];
	other.opts.optimizer.average_window = 0.5;
	disagrees(f, &other, "has average_window=0.5", "average_window=0.5", "average_window=0:");
	other = f->member[1];
	other.opts.optimizer.first_pass = 3;
	disagrees(f, &other, "has first_pass=3", "first_pass=3", "first_pass=0");
}

static void
another_number_of_lanes_is_refused(void **state)
{
	struct fixture *f = *state;
	struct member other = f->member[1];
	other.opts.ports_num = 2;
	disagrees(f, &other, "ports_num", "2", "1");
}

static enum weft_status
train_other_tensors(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *tensor;
	enum weft_status st = one_tensor(&member->opts, ROWS + 1, 1, &session, &tensor);
	(void)member_note(member, st);
	(void)weft_session_close(session);
	return st;
}

static void
other_tensors_are_refused(void **state)
{
	struct fixture *f = *state;
	struct weft_session *session;
	struct weft_tensor *tensor;
	assert_ok(one_tensor(&f->member[0].opts, ROWS, 1, &session, &tensor));
	f->member[1].run = train_other_tensors;
	members_run(&f->member[1], 1);
	assert_ended(&f->member[1], WEFT_MISMATCH, "=65, trainer 0");
	assert_text(f->member[1].text, "=64: declare the same tensors");
	weft_session_abort(session, WEFT_ABORTED, "the test is over");
}

static void
a_trainer_id_that_is_used_twice_is_refused_naming_both(void **state)
{
	struct fixture *f = *state;
	struct member other = f->member[0];
	char pid[32];
	(void)snprintf(pid, sizeof(pid), "pid %d", (int)getpid());
	disagrees(f, &other, "trainer_id 0 is used by two processes", pid, "its own trainer_id");
}

/* How many batches each trainer has in each pass. */
#define PASSES 4
static const unsigned batches[PAIR][PASSES] = {{3, 0, 0, 1}, {5, 2, 0, 1}};

static enum weft_status
train_unevenly(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *tensor;
	member->opts.optimizer.learning_rate = 1.0 / 32;
	enum weft_status st = one_tensor(&member->opts, ROWS, 1, &session, &tensor);
	for (unsigned pass = 0; pass < PASSES && st == WEFT_OK; pass++) {
		for (unsigned i = 0; i < batches[member->id][pass] && st == WEFT_OK; i++) {
			for (unsigned at = 0; at < ROWS; at++) {
				weft_tensor_grad(tensor)[at] = (float)(member->id + 1);
			}
			st = weft_exchange(session, 1, 0);
		}
		st = st != WEFT_OK ? st : weft_pass_end(session);
		member->value[pass] = weft_tensor_param(tensor)[ROWS - 1];
		member->value[PASSES + pass] = (float)weft_steps(session);
	}
	if (st == WEFT_OK) {
		st = weft_digest(session, &member->digest);
	}
	enum weft_status end = weft_session_close(session);
	return st != WEFT_OK ? st : end;
}

static void
passes_may_have_different_numbers_of_steps(void **state)
{
	struct fixture *f = *state;
	/* Sums of gradients: 3 where both take part, 2 where trainer 1 is alone. */
	static const float sum[PASSES] = {3 * 3 + 2 * 2, 17, 17, 20};
	static const float steps[PASSES] = {5, 7, 7, 8};
	for (unsigned caller = 0; caller < 2; caller++) {
		for (unsigned i = 0; i < PAIR; i++) {
			f->member[i].opts.progress =
				caller == 1 ? WEFT_PROGRESS_CALLER : WEFT_PROGRESS_THREAD;
		}
		run_pair(f, train_unevenly);
		for (unsigned i = 0; i < PAIR; i++) {
			assert_ended(&f->member[i], WEFT_OK, "");
			for (unsigned pass = 0; pass < PASSES; pass++) {
				assert_true(f->member[i].value[pass] == 1 - sum[pass] / 32);
				assert_true(f->member[i].value[PASSES + pass] == steps[pass]);
			}
		}
		assert_true(f->member[0].digest == f->member[1].digest);
	}
}

/* Trainer 0 waits for "a" before it pushes "b", trainer 1 the other way round; "c" is on its way.
 */
static enum weft_status
wait_crosswise(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *tensor[3];
	static const char *const names[] = {"a", "b", "c"};
	enum weft_status st = weft_session_open(&member->opts, &session);
	for (unsigned i = 0; i < 3 && st == WEFT_OK; i++) {
		struct weft_tensor_opts declared = {.name = names[i], .rows = ROWS};
		st = weft_tensor_add(session, &declared, &tensor[i]);
	}
	st = st != WEFT_OK ? st : weft_session_seal(session);
	st = st != WEFT_OK ? st : weft_session_start(session);
	(void)pthread_barrier_wait(&all_are_in);
	st = st != WEFT_OK ? st : weft_step(session, 1, 0);
	for (unsigned i = 0; i < 2 && st == WEFT_OK; i++) {
		st = weft_push(tensor[i ^ member->id]);
		st = st != WEFT_OK || i > 0 ? st : weft_push(tensor[2]);
		st = st != WEFT_OK ? st : weft_wait(tensor[i ^ member->id]);
	}
	(void)member_note(member, st);
	weft_session_abort(session, st, "the text of the failure is what counts");
	return st;
}

static void
waiting_in_opposite_orders_ends_with_a_text_that_says_so(void **state)
{
	struct fixture *f = *state;
	f->member[0].opts.step_timeout_ns = 300 * WF_NS_PER_MS;
	run_pair_together(f, wait_crosswise);
	for (unsigned i = 0; i < PAIR; i++) { /* trainer 1 is told the first cause */
		assert_ended(&f->member[i], WEFT_TIMEOUT, "no answer within 0.3 s");
		assert_text(f->member[i].text, "step 1, a");
		assert_text(f->member[i].text, "b is not under way here");
		assert_text(f->member[i].text, "both wait for ever");
	}
}

static enum weft_status
leave_or_train(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *tensor;
	enum weft_status st = one_tensor(&member->opts, ROWS, 1, &session, &tensor);
	for (unsigned i = 0; i < (member->id == 0 ? 10 : 4) && st == WEFT_OK; i++) {
		st = weft_exchange(session, 1, 0);
	}
	(void)member_note(member, st);
	enum weft_status end = weft_session_close(session);
	return st != WEFT_OK ? st : end;
}

static void
a_trainer_that_leaves_early_is_named_to_the_others(void **state)
{
	struct fixture *f = *state;
	run_pair(f, leave_or_train);
	assert_ended(&f->member[0], WEFT_LOST, "trainer 1 left in good order");
	assert_text(f->member[0].text, "step 5");
}

/* Trainer 1 begins a step and closes without its push. */
static enum weft_status
close_in_a_step(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *tensor;
	enum weft_status st = one_tensor(&member->opts, ROWS, 1, &session, &tensor);
	st = st != WEFT_OK ? st : weft_exchange(session, 1, 0);
	if (st == WEFT_OK && member->id == 0) {
		st = weft_exchange(session, 1, 0);
		(void)member_note(member, st);
		return weft_session_close(session);
	}
	st = st != WEFT_OK ? st : weft_step(session, 1, 0);
	if (st != WEFT_OK) { /* of trainer 0 too, if the end overtakes its first exchange */
		(void)member_note(member, st);
		(void)weft_session_close(session);
		return st;
	}
	return weft_session_close(session);
}

static void
a_close_in_the_middle_of_a_step_ends_the_job_for_all(void **state)
{
	struct fixture *f = *state;
	run_pair(f, close_in_a_step);
	assert_ended(&f->member[1], WEFT_ABORTED, "trainer 1 closed its session");
	assert_text(f->member[1].text, "tensor w was not pushed in step 2");
	assert_ended(&f->member[0], WEFT_ABORTED, "trainer 1 closed its session");
}

/* Trainer 1 ends its pass where trainer 0 is at a barrier. */
static enum weft_status
end_pass_or_wait(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *tensor;
	enum weft_status st = one_tensor(&member->opts, ROWS, 1, &session, &tensor);
	st = st != WEFT_OK ? st : weft_exchange(session, 1, 0);
	if (st == WEFT_OK) {
		st = member->id == 0 ? weft_barrier(session) : weft_pass_end(session);
	}
	(void)member_note(member, st);
	(void)weft_session_close(session);
	return st;
}

static void
a_pass_end_does_not_meet_a_barrier(void **state)
{
	struct fixture *f = *state;
	run_pair(f, end_pass_or_wait);
	for (unsigned i = 0; i < PAIR; i++) {
		assert_ended(&f->member[i], WEFT_MISMATCH, "same calls in the same order");
	}
}

static enum weft_status
reduce(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *tensor;
	double value[3] = {member->id + 1, 0.1 * (member->id + 1), -1};
	enum weft_status st = one_tensor(&member->opts, ROWS, 1, &session, &tensor);
	for (unsigned i = 0; i < 5 && st == WEFT_OK; i++) {
		st = weft_reduce(session, value, 3);
		st = st != WEFT_OK ? st : weft_barrier(session);
	}
	for (unsigned i = 0; i < 3; i++) {
		member->value[i] = (float)value[i];
	}
	if (st == WEFT_OK && member->arg != NULL) {
		st = weft_reduce(session, value, member->id == 0 ? 2 : 3);
	}
	(void)member_note(member, st);
	enum weft_status end = weft_session_close(session);
	return st != WEFT_OK ? st : end;
}

static void
a_reduce_gives_everybody_the_same_sum(void **state)
{
	struct fixture *f = *state;
	run_pair(f, reduce);
	/* 3, then doubled by each of four more. */
	static const double sum[] = {48, (0.1 + 0.2) * 16, -32};
	for (unsigned i = 0; i < PAIR; i++) {
		assert_ended(&f->member[i], WEFT_OK, "");
		for (unsigned at = 0; at < 3; at++) {
			assert_true(f->member[i].value[at] == (float)sum[at]);
		}
	}
}

static void
reduces_of_different_lengths_end_the_job(void **state)
{
	struct fixture *f = *state;
	f->member[0].arg = f->member[1].arg = f;
	run_pair(f, reduce);
	for (unsigned i = 0; i < PAIR; i++) {
		assert_ended(&f->member[i], WEFT_MISMATCH, "same calls in the same order");
	}
}

/* Aborts a session that has failed already: what the others are told is the failure. */
static enum weft_status
time_out(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *tensor;
	enum weft_status st = one_tensor(&member->opts, ROWS, 1, &session, &tensor);
	(void)pthread_barrier_wait(&all_are_in);
	if (st == WEFT_OK && member->id == 0) {
		st = weft_exchange(session, 1, 0);
	}
	st = st != WEFT_OK ? st : weft_barrier(session); /* trainer 1 takes no step */
	(void)member_note(member, st);
	weft_session_abort(session, WEFT_INTERNAL, "something that came later");
	return st;
}

static void
an_abort_after_a_failure_still_tells_the_failure(void **state)
{
	struct fixture *f = *state;
	f->member[0].opts.step_timeout_ns = 200 * WF_NS_PER_MS;
	run_pair_together(f, time_out);
	for (unsigned i = 0; i < PAIR; i++) {
		assert_ended(&f->member[i], WEFT_TIMEOUT, "no answer within 0.2 s");
	}
}

#define job(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		job(the_first_cause_reaches_every_trainer_and_stays),
		job(a_lane_may_have_more_slices_than_one_message_tells_of),
		job(a_pserver_that_nobody_started_is_named_when_time_is_up),
		job(another_number_of_trainers_is_refused),
		job(another_slice_size_is_refused),
		job(another_wire_is_refused),
		job(another_optimizer_is_refused),
		job(another_way_to_train_is_refused_by_its_name),
		job(another_number_of_lanes_is_refused),
		job(other_tensors_are_refused),
		job(a_trainer_id_that_is_used_twice_is_refused_naming_both),
		job(passes_may_have_different_numbers_of_steps),
		job(waiting_in_opposite_orders_ends_with_a_text_that_says_so),
		job(a_trainer_that_leaves_early_is_named_to_the_others),
		job(a_close_in_the_middle_of_a_step_ends_the_job_for_all),
		job(a_pass_end_does_not_meet_a_barrier),
		job(a_reduce_gives_everybody_the_same_sum),
		job(reduces_of_different_lengths_end_the_job),
		job(an_abort_after_a_failure_still_tells_the_failure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
