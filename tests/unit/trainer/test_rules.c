/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of a started session, seen by one trainer. With WEFT_PROGRESS_CALLER nothing moves
 * between its calls, so that what is unanswered stays unanswered. */
#include "tests/unit/trainer/fabric.h"
#include "tests/support/failing_env.h"
#include "trainer/session/announce.h"
#include "trainer/session/dense.h"
#include "trainer/session/session.h"
#include "transport/paths/paths_internal.h"
#include "weft/members.h"
#include "weft/restart.h"

struct fixture {
	struct fabric fabric;
	struct member member;
};

static int
set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	assert_non_null(f);
	fabric_start(&f->fabric, 1, 1, 0);
	member_init(&f->member, &f->fabric, 0, 1);
	f->member.opts.progress = WEFT_PROGRESS_CALLER;
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

/* Two tensors "a" and "b" and one static "s", started. */
static void
start_three(const struct weft_session_opts *opts, struct weft_session **session,
	    struct weft_tensor **tensor)
{
	assert_ok(weft_session_open(opts, session));
	for (unsigned i = 0; i < 3; i++) {
		char name[2] = {"abs"[i], '\0'};
		struct weft_tensor_opts declared = {.name = name, .rows = 4, .is_static = i == 2};
		assert_ok(weft_tensor_add(*session, &declared, &tensor[i]));
	}
	assert_ok(weft_session_seal(*session));
	assert_ok(weft_session_start(*session));
}

static void
pushes_follow_steps(void **state)
{
	struct fixture *f = *state;
	struct weft_session *session;
	struct weft_tensor *tensor[3];
	start_three(&f->member.opts, &session, tensor);
	assert_refused(weft_push(tensor[0]), WEFT_INVALID, "push of a before weft_step");
	assert_refused(weft_step(session, 0, 0), WEFT_INVALID, "0 samples");
	assert_text(weft_last_error(), "end the pass");
	assert_refused(weft_step(session, 1ull << 41, 0), WEFT_INVALID, "2199023255552 samples");
	assert_int_equal(weft_steps(session), 0); /* what is refused begins nothing */
	assert_ok(weft_step(session, 1, 0));
	assert_int_equal(weft_steps(session), 1);
	assert_refused(weft_push(tensor[2]), WEFT_INVALID, "push of s, which is static");
	assert_ok(weft_push(tensor[0]));
	assert_refused(weft_push(tensor[0]), WEFT_INVALID, "push of a twice in step 1");
	assert_refused(weft_step(session, 1, 0), WEFT_INVALID, "tensor b was not pushed in step 1");
	assert_refused(weft_pass_end(session), WEFT_INVALID, "tensor b was not pushed in step 1");
	assert_ok(weft_push(tensor[1]));
	assert_ok(weft_wait_all(session));
	assert_refused(weft_push(tensor[1]), WEFT_INVALID, "push of b twice in step 1");
	assert_ok(weft_pass_end(session));
	assert_refused(weft_push(tensor[1]), WEFT_INVALID, "push of b before weft_step");
	assert_ok(weft_session_close(session));
}

static void
a_step_waits_for_the_answers_of_the_last(void **state)
{
	struct fixture *f = *state;
	struct weft_session *session;
	struct weft_tensor *tensor[3];
	start_three(&f->member.opts, &session, tensor);
	assert_ok(weft_step(session, 1, 0));
	assert_ok(weft_push(tensor[0]));
	assert_ok(weft_push(tensor[1]));
	assert_int_equal(weft_step(session, 1, 0), WEFT_AGAIN);
	assert_int_equal(weft_steps(session), 1);
	assert_ok(weft_wait(tensor[1]));
	assert_ok(weft_wait(tensor[1])); /* at once: nothing is under way */
	assert_ok(weft_wait(tensor[0]));
	assert_ok(weft_step(session, 1, 0));
	assert_int_equal(weft_steps(session), 2);
	assert_ok(weft_push(tensor[0]));
	assert_ok(weft_push(tensor[1]));
	assert_ok(weft_wait_all(session));
	assert_ok(weft_session_close(session));
}

static void
a_pull_is_refused_while_a_push_is_unanswered(void **state)
{
	struct fixture *f = *state;
	struct weft_session *session;
	struct weft_tensor *tensor[3];
	start_three(&f->member.opts, &session, tensor);
	assert_ok(weft_step(session, 1, 0));
	assert_ok(weft_push(tensor[1]));
	assert_refused(weft_pull(tensor[1]), WEFT_INVALID, "pull of b while its push");
	assert_refused(weft_pull_all(session), WEFT_INVALID, "pull of b while its push");
	assert_ok(weft_push(tensor[0])); /* the refused pull_all has begun nothing */
	assert_ok(weft_wait_all(session));
	weft_tensor_param(tensor[2])[1] = 5;
	assert_ok(weft_pull(tensor[2])); /* also of a static one */
	assert_true(weft_tensor_param(tensor[2])[1] == 0);
	assert_ok(weft_pull_all(session));
	assert_ok(weft_session_close(session));
}

static void
polling_moves_a_session_that_its_caller_drives(void **state)
{
	struct fixture *f = *state;
	struct weft_session *session;
	struct weft_tensor *tensor[3];
	start_three(&f->member.opts, &session, tensor);
	assert_ok(weft_step(session, 1, 0));
	assert_ok(weft_push(tensor[0]));
	assert_ok(weft_push(tensor[1]));
	enum weft_status st;
	while ((st = weft_step(session, 1, 0)) == WEFT_AGAIN) {
		assert_ok(weft_poll(session));
	}
	assert_ok(st);
	assert_ok(weft_push(tensor[0]));
	assert_ok(weft_push(tensor[1]));
	assert_ok(weft_wait_all(session));
	assert_ok(weft_session_close(session));
}

static void
a_reduce_takes_256_values_and_no_more(void **state)
{
	struct fixture *f = *state;
	struct weft_session *session;
	struct weft_tensor *tensor;
	double value[257];
	assert_ok(one_tensor(&f->member.opts, 4, 0, &session, &tensor));
	for (unsigned i = 0; i < 257; i++) {
		value[i] = i + 0.5;
	}
	assert_refused(weft_reduce(session, value, 257), WEFT_INVALID, "257 values, 256 at most");
	assert_ok(weft_reduce(session, value, 256));
	for (unsigned i = 0; i < 257; i++) {
		assert_true(value[i] == i + 0.5); /* the sum over one trainer */
	}
	assert_ok(weft_barrier(session));
	assert_ok(weft_session_close(session));
}

static void
a_session_starts_once(void **state)
{
	struct fixture *f = *state;
	struct weft_session *session;
	struct weft_tensor *tensor, *late = NULL;
	assert_ok(one_tensor(&f->member.opts, 4, 0, &session, &tensor));
	assert_refused(weft_session_start(session), WEFT_INVALID, "started already");
	assert_refused(weft_tensor_add(session,
				       &(struct weft_tensor_opts){.name = "late", .rows = 1},
				       &late),
		       WEFT_INVALID, "after weft_session_seal");
	assert_ok(weft_exchange(session, 1, 0)); /* nothing is broken */
	assert_ok(weft_session_close(session));
}

static void
two_sessions_live_in_one_process(void **state)
{
	struct fixture *f = *state;
	struct fabric other;
	struct weft_session *session[2];
	struct weft_tensor *tensor[2];
	fabric_start(&other, 1, 2, 0);
	struct weft_session_opts opts = f->member.opts;
	opts.progress = WEFT_PROGRESS_THREAD;
	assert_ok(one_tensor(&opts, 100, 1, &session[0], &tensor[0]));
	opts.pservers = other.pservers;
	opts.ports_num = 2;
	opts.optimizer.learning_rate = 0.5;
	assert_ok(one_tensor(&opts, 100, 2, &session[1], &tensor[1]));
	for (unsigned i = 0; i < 2; i++) {
		weft_tensor_grad(tensor[i])[99] = 1;
	}
	for (unsigned step = 0; step < 4; step++) {
		assert_ok(weft_exchange(session[0], 1, 0));
		assert_ok(weft_exchange(session[1], 1, 0));
	}
	assert_true(weft_tensor_param(tensor[1])[99] == 0); /* 2 - 4 * 0.5 */
	assert_true(weft_tensor_param(tensor[1])[98] == 2);
	assert_true(weft_tensor_param(tensor[0])[98] == 1);
	assert_ok(weft_session_close(session[0]));
	assert_ok(weft_exchange(session[1], 1, 0));
	assert_ok(weft_session_close(session[1]));
	fabric_stop(&other);
}

static void
an_unknown_transport_is_named_with_those_there_are(void **state)
{
	struct fixture *f = *state;
	struct weft_session *session;
	struct weft_tensor *tensor;
	f->member.opts.transport = "carrier-pigeon";
	assert_refused(one_tensor(&f->member.opts, 4, 0, &session, &tensor), WEFT_UNSUPPORTED,
		       "carrier-pigeon");
	assert_text(weft_last_error(), "tcp");
	assert_ok(weft_session_close(session)); /* it never ran */
}

static void
a_job_may_follow_another(void **state)
{
	struct fixture *f = *state;
	struct weft_session *session;
	struct weft_tensor *tensor;
	for (unsigned job = 0; job < 3; job++) {
		f->member.opts.progress =
			job % 2 == 0 ? WEFT_PROGRESS_THREAD : WEFT_PROGRESS_CALLER;
		assert_ok(one_tensor(&f->member.opts, 10 + job, (float)job, &session, &tensor));
		assert_true(weft_tensor_param(tensor)[9 + job] == (float)job);
		assert_ok(weft_exchange(session, 1, 0));
		assert_ok(weft_session_close(session));
	}
}

/* A whole job with this env. */
static enum weft_status
whole_job(const struct member *member, struct wf_env *env)
{
	struct weft_session_opts opts = member->opts;
	struct weft_session *session = NULL;
	struct weft_tensor *tensor;
	struct weft_settings *settings;
	assert_ok(weft_settings_create(WEFT_SETTINGS_SESSION, &settings));
	wf_settings_set_env(settings, env);
	opts.settings = settings;
	enum weft_status st = one_tensor(&opts, 40, 1, &session, &tensor);
	if (st == WEFT_OK) {
		st = weft_exchange(session, 1, 0);
	}
	if (st == WEFT_OK) {
		st = weft_session_close(session);
	} else {
		weft_session_abort(session, st, weft_last_error());
	}
	weft_settings_destroy(settings);
	return st;
}

/* Each try needs pservers that remember no failed job. */
static void
running_out_of_memory_ends_a_job_and_leaks_nothing(void **state)
{
	struct wf_env *env;
	struct wf_failing_env failing;
	unsigned refused = 0;
	(void)state;
	assert_ok(wf_env_system_create(WF_LOG_WARN, -1, &env));
	wf_failing_env_init(&failing, env);
	for (uint64_t nth = 1;; nth++) {
		struct fabric fabric;
		struct member member;
		fabric_start(&fabric, 1, 1, 0);
		member_init(&member, &fabric, 0, 1);
		member.opts.progress = nth % 2 == 0 ? WEFT_PROGRESS_CALLER : WEFT_PROGRESS_THREAD;
		wf_failing_env_fail(&failing, nth, false);
		enum weft_status st = whole_job(&member, &failing.env);
		fabric_stop(&fabric);
		assert_true(wf_failing_env_is_clean(&failing));
		if (failing.failed == 0) {
			assert_int_equal(st, WEFT_OK);
			break;
		}
		/* A connection that finds no memory may be tried again. */
		if (st != WEFT_NOMEM && st != WEFT_OK) {
			fail_msg("allocation %llu: %s: %s", (unsigned long long)nth,
				 weft_status_name(st), weft_last_error());
		}
		refused += st == WEFT_NOMEM ? 1 : 0;
	}
	assert_true(refused > 20);
	wf_env_system_destroy(env);
}

/* One tensor, momentum, state kept or not; sealed, not started. */
static void
seal_one(struct weft_session_opts *opts, int keep_state, struct weft_session **session,
	 struct weft_tensor **tensor)
{
	opts->optimizer.method = "momentum";
	opts->optimizer.momentum = 0.5;
	opts->keep_state = keep_state;
	const struct weft_tensor_opts declared = {.name = "a", .rows = 4};
	assert_ok(weft_session_open(opts, session));
	assert_ok(weft_tensor_add(*session, &declared, tensor));
	assert_refused(weft_session_restore(*session, 1, 1), WEFT_INVALID, "weft_session_seal");
	assert_null(weft_tensor_state(*tensor, 0));
	assert_ok(weft_session_seal(*session));
}

static void
state_is_there_only_where_it_is_kept(void **state)
{
	struct fixture *f = *state;
	struct weft_session *session;
	struct weft_tensor *tensor;
	seal_one(&f->member.opts, 0, &session, &tensor);
	assert_int_equal(weft_state_count(session), 1);
	assert_null(weft_tensor_state(tensor, 0));
	assert_refused(weft_session_restore(session, 1, 1), WEFT_INVALID, "set keep_state");
	assert_ok(weft_session_restore(session, 0, 0)); /* a beginning needs no state */
	assert_ok(weft_session_start(session));
	assert_refused(weft_pull_state(session), WEFT_INVALID, "set keep_state");
	assert_refused(weft_session_restore(session, 0, 0), WEFT_INVALID, "weft_session_start");
	assert_ok(weft_session_close(session));
}

static void
a_restored_job_goes_on_with_its_momentum(void **state)
{
	struct fixture *f = *state;
	struct weft_session *session;
	struct weft_tensor *tensor;
	f->member.opts.optimizer.learning_rate = 1;
	seal_one(&f->member.opts, 1, &session, &tensor);
	assert_null(weft_tensor_state(tensor, 1));
	for (int i = 0; i < 4; i++) {
		weft_tensor_param(tensor)[i] = 10;
		weft_tensor_state(tensor, 0)[i] = 2;
	}
	assert_ok(weft_session_restore(session, 41, 410));
	assert_ok(weft_session_start(session));
	assert_int_equal(weft_steps(session), 41);
	for (int i = 0; i < 4; i++) {
		weft_tensor_grad(tensor)[i] = 0.25f;
	}
	assert_ok(weft_exchange(session, 1, 0));
	assert_int_equal(weft_steps(session), 42);
	assert_ok(weft_pass_end(session));
	assert_ok(weft_pull_state(session));
	/* m = 0.5 * 2 - 1 * 0.25; w = 10 + m */
	assert_true(weft_tensor_state(tensor, 0)[3] == 0.75f);
	assert_true(weft_tensor_param(tensor)[3] == 10.75f);
	assert_ok(weft_session_close(session));
}

/* In the middle of a step. */
static void
calls_after_a_failure_return_it(void **state)
{
	struct fixture *f = *state;
	struct weft_session *session;
	struct weft_tensor *tensor[3];
	start_three(&f->member.opts, &session, tensor);
	assert_ok(weft_step(session, 1, 0));
	assert_ok(weft_push(tensor[0]));
	wf_core_fail(&session->core, WEFT_LOST, "a pserver was lost");
	assert_refused(weft_tensor_change(tensor[0], "decay", 1), WEFT_LOST, "a pserver was lost");
	assert_refused(weft_tensor_assign(tensor[0], 0), WEFT_LOST, "a pserver was lost");
	assert_refused(weft_session_leave(session), WEFT_LOST, "a pserver was lost");
	assert_refused(weft_push(tensor[1]), WEFT_LOST, "a pserver was lost");
	assert_refused(weft_wait_all(session), WEFT_LOST, "a pserver was lost");
	assert_refused(weft_session_close(session), WEFT_LOST, "a pserver was lost");
}

static void
samples_are_counted_with_pushes_of_tensors_alone(void **state)
{
	struct fixture *f = *state;
	const struct weft_tensor_opts declared = {.name = "s", .rows = 4, .is_static = 1};
	struct weft_session *session;
	struct weft_tensor *tensor;
	uint64_t samples = 7;
	assert_ok(weft_session_open(&f->member.opts, &session));
	assert_ok(weft_tensor_add(session, &declared, &tensor));
	assert_ok(weft_session_seal(session));
	assert_ok(weft_session_start(session));
	assert_refused(weft_samples(session, &samples), WEFT_INVALID, "this job pushes no tensor");
	assert_true(samples == 7);
	assert_ok(weft_session_close(session));
}

static void
only_trainer_0_restores(void **state)
{
	struct fixture *f = *state;
	struct weft_session *session;
	struct weft_tensor *tensor;
	f->member.opts.trainer_id = 1;
	f->member.opts.num_gradient_servers = 2;
	seal_one(&f->member.opts, 1, &session, &tensor);
	assert_refused(weft_session_restore(session, 1, 1), WEFT_INVALID,
		       "trainer 0 restores for all");
	assert_ok(weft_session_close(session));
}

static enum weft_status
recv_allow(struct wf_dense_link *link, const struct wf_msg_runs *msg)
{
	struct wf_msg out;
	wf_msg_allow_encode(msg, &out);
	const struct wf_event event = {.kind = WF_EVENT_MSG,
				       .msg = {.head = &out.head, .body = out.body}};
	return wf_link_features_recv(link, &event);
}

static void
an_allow_of_what_was_not_announced_is_refused(void **state)
{
	(void)state;
	static struct wf_core core;
	uint32_t queue[2];
	bool waits[2] = {true, false};
	struct wf_dense_slice slice[2] = {{.step = 4}, {.step = 4}};
	struct wf_announced announced = {.waits = waits};
	struct wf_dense_link link = {.link = {.end = &core.end},
				     .slice = slice,
				     .slice_count = 2,
				     .queue = {.ordinal = queue, .capacity = 2}};
	struct wf_msg_runs msg = {.step = 4, .count = 1, .run = {{.count = 1}}};
	assert_refused(recv_allow(&link, &msg), WEFT_PROTOCOL, "was not announced");
	link.feature[WF_FEATURE_ANNOUNCE] = &announced;
	msg.step = 5;
	assert_refused(recv_allow(&link, &msg), WEFT_PROTOCOL, "slice 0 of 2 in step 5");
	msg.step = 4;
	msg.run[0] = (struct wf_run){.first = 1, .count = 1};
	assert_refused(recv_allow(&link, &msg), WEFT_PROTOCOL, "slice 1 of 2 in step 4");
	msg.run[0] = (struct wf_run){.first = 2, .count = 1};
	assert_refused(recv_allow(&link, &msg), WEFT_PROTOCOL, "slice 2 of 2");
	msg.run[0] = (struct wf_run){.first = 0, .count = 1};
	assert_ok(recv_allow(&link, &msg));
	assert_int_equal(link.queue.count, 1);
	assert_int_equal(queue[0], 0);
	assert_refused(recv_allow(&link, &msg), WEFT_PROTOCOL, "was not announced");
}

#define rule(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* How long this session leaves a broken path out, as its transport has it. */
static uint64_t
path_retry_ns(const struct weft_session_opts *opts)
{
	struct weft_session *session;
	struct weft_tensor *tensor[3];
	start_three(opts, &session, tensor);
	const struct wf_paths *paths = (const struct wf_paths *)session->core.turn.transport;
	uint64_t found = paths->opts.path_retry_ns;
	assert_ok(weft_session_close(session));
	return found;
}

static void
a_position_has_256_bytes_at_most_and_travels_with_steps(void **state)
{
	static const char bytes[WEFT_POSITION_BYTES_MAX + 1];
	struct fixture *f = *state;
	struct weft_resumed resumed;
	struct weft_session *session;
	struct weft_tensor *tensor[3];
	assert_ok(weft_session_open(&f->member.opts, &session));
	assert_refused(weft_session_position(session, bytes, 1), WEFT_INVALID,
		       "session: not started");
	assert_false(weft_session_resumed(session, &resumed));
	assert_ok(weft_session_close(session));
	start_three(&f->member.opts, &session, tensor);
	assert_refused(weft_session_position(session, bytes, sizeof(bytes)), WEFT_INVALID,
		       "position of 257 bytes, 256 at most");
	assert_ok(weft_session_position(session, bytes, sizeof(bytes) - 1));
	assert_ok(weft_session_position(session, NULL, 0));
	assert_ok(weft_exchange(session, 1, 0));
	assert_false(weft_session_resumed(session, &resumed)); /* it is the first job */
	assert_ok(weft_session_close(session));
}

static void
a_position_is_refused_where_the_first_lane_gets_no_steps(void **state)
{
	struct fixture *f = *state;
	struct weft_session *session;
	struct weft_tensor *tensor;
	const struct weft_tensor_opts declared = {.name = "s", .rows = 4, .is_static = 1};
	assert_ok(weft_session_open(&f->member.opts, &session));
	assert_ok(weft_tensor_add(session, &declared, &tensor));
	assert_ok(weft_session_seal(session));
	assert_ok(weft_session_start(session));
	assert_refused(weft_session_position(session, "a", 1), WEFT_UNSUPPORTED,
		       "to which this job pushes no tensor");
	assert_ok(weft_session_close(session));
}

/* path_retry has no field in the public struct. */
static void
a_setting_that_has_a_name_alone_is_used(void **state)
{
	struct fixture *f = *state;
	struct weft_settings *settings;
	assert_ok(weft_settings_create(WEFT_SETTINGS_SESSION, &settings));
	f->member.opts.settings = settings;
	assert_true(path_retry_ns(&f->member.opts) == 10 * WF_NS_PER_S);
	assert_ok(weft_settings_set(settings, "path_retry", "1234ms"));
	assert_true(path_retry_ns(&f->member.opts) == 1234 * WF_NS_PER_MS);
	assert_refused(weft_settings_set(settings, "path_retry", "2h"), WEFT_INVALID,
		       "path_retry=2h: must be a duration");
	assert_refused(weft_settings_set(settings, "path_retry", "61m"), WEFT_INVALID,
		       "from 0s to 60m");
	weft_settings_destroy(settings);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		rule(pushes_follow_steps),
		rule(a_step_waits_for_the_answers_of_the_last),
		rule(a_pull_is_refused_while_a_push_is_unanswered),
		rule(polling_moves_a_session_that_its_caller_drives),
		rule(a_reduce_takes_256_values_and_no_more),
		rule(a_session_starts_once),
		rule(two_sessions_live_in_one_process),
		rule(an_unknown_transport_is_named_with_those_there_are),
		rule(a_job_may_follow_another),
		rule(state_is_there_only_where_it_is_kept),
		rule(a_restored_job_goes_on_with_its_momentum),
		rule(calls_after_a_failure_return_it),
		rule(samples_are_counted_with_pushes_of_tensors_alone),
		rule(only_trainer_0_restores),
		rule(a_position_has_256_bytes_at_most_and_travels_with_steps),
		rule(a_position_is_refused_where_the_first_lane_gets_no_steps),
		rule(a_setting_that_has_a_name_alone_is_used),
		cmocka_unit_test(an_allow_of_what_was_not_announced_is_refused),
		cmocka_unit_test(running_out_of_memory_ends_a_job_and_leaks_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
