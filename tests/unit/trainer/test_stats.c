/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of sessions and lanes: in a simulated job without cuts what one side sent is what the
 * other took, to the byte; and what weft_session_stats tells whom. */
#include <inttypes.h>

#include "pserver/lane.h"
#include "tests/support/crew.h"
#include "tests/unit/trainer/fabric.h"
#include "wire/messages.h"
#include "base/settings.h"

#define LANES 2u
#define TRAINERS 2u
#define TENSORS 3u
#define ROWS 40u  /* of each tensor: three slices of 64 bytes at most */
#define SLICES 9u /* of all tensors */
#define STEPS 30u
#define PERIOD_NS (200 * WF_NS_PER_MS)
#define COMPUTE_NS (50 * WF_NS_PER_MS) /* of each step */
#define COUNTERS WF_LANE_COUNTER_COUNT

/* One simulated job, and what its members saw. Written by procs, read when all have returned. */
struct job {
	uint32_t slot_count;
	uint32_t rows;         /* of each tensor; 0: ROWS */
	const char *transport; /* NULL: "sim" */
	bool locks_memory;     /* the second network's transports */
	bool is_async;
	uint64_t slice_bytes;     /* 0: 64 */
	uint64_t max_shard_bytes; /* 0: as a crew has it */
	uint64_t stats_period_ns;
	enum weft_dense_wire wire;
	float gradient; /* of every element */
	uint64_t lane[LANES][COUNTERS];
	struct weft_session_stats trainer[TRAINERS];
	uint64_t elapsed_ns[TRAINERS]; /* start to stats */
	char log[TRAINERS][16384];
};

static void
fill_server(const struct crew *crew, struct wf_server_opts *out)
{
	const struct job *job = crew->run;
	out->session.num_gradient_servers = TRAINERS;
	out->session.stats_period_ns = job->stats_period_ns;
	out->max_shard_bytes =
		job->max_shard_bytes != 0 ? job->max_shard_bytes : out->max_shard_bytes;
}

static void
keep_counters(struct crew *crew, struct wf_server *server)
{
	struct job *job = crew->run;
	for (uint32_t i = 0; i < LANES; i++) {
		wf_stats_snapshot(wf_server_stats(server, i), job->lane[i]);
	}
}

static void
keep_line(void *arg, enum weft_log_level level, const char *line)
{
	const struct crew_seat *seat = arg;
	struct job *job = seat->crew->run;
	char *log = job->log[seat->idx];
	size_t used = strlen(log);
	(void)snprintf(log + used, sizeof(job->log[0]) - used, "%s%s\n",
		       level == WEFT_LOG_INFO ? "" : "not info: ", line);
}

static enum weft_status
open_session(struct crew_seat *seat, struct wf_env *env, struct weft_session **session)
{
	const struct job *job = seat->crew->run;
	static const char *const name[TENSORS] = {"a", "b", "c"};
	struct weft_session_opts opts;
	struct weft_tensor *tensor;
	crew_fill_opts(seat->crew, seat->idx, &opts);
	opts.slice_bytes = job->slice_bytes != 0 ? job->slice_bytes : 64;
	opts.dense_mode = job->is_async ? WEFT_DENSE_ASYNC : WEFT_DENSE_SYNC;
	opts.stats_period_ns = job->stats_period_ns;
	opts.dense_wire = job->wire;
	opts.skip_nonfinite = 1;
	opts.log = keep_line;
	opts.log_arg = seat;
	enum weft_status st = wf_session_open_in(env, &opts, session);
	for (unsigned i = 0; i < TENSORS && st == WEFT_OK; i++) {
		struct weft_tensor_opts declared = {.name = name[i],
						    .rows = job->rows != 0 ? job->rows : ROWS};
		st = weft_tensor_add(*session, &declared, &tensor);
	}
	st = st != WEFT_OK ? st : weft_session_seal(*session);
	for (unsigned i = 0; i < ROWS && st == WEFT_OK; i++) {
		weft_tensor_grad(tensor)[i] = job->gradient; /* of the last */
	}
	return st;
}

static void
compute(struct wf_env *env)
{
	uint64_t until_ns = wf_now_ns(env) + COMPUTE_NS;
	while (wf_now_ns(env) < until_ns) { /* what arrives ends a wait early */
		wf_wait(env, -1, until_ns);
	}
}

static int
run_trainer(struct wf_env *env, void *arg)
{
	struct crew_seat *seat = arg;
	struct job *job = seat->crew->run;
	struct weft_session *session = NULL;
	struct weft_session_stats *stats = &job->trainer[seat->idx];
	stats->struct_bytes = sizeof(*stats);
	enum weft_status st = open_session(seat, env, &session);
	uint64_t start_ns = wf_now_ns(env);
	st = st != WEFT_OK ? st : weft_session_start(session);
	for (unsigned i = 0; i < STEPS && st == WEFT_OK; i++) {
		compute(env);
		st = weft_exchange(session, 1, 0);
	}
	st = st != WEFT_OK ? st : weft_barrier(session);
	st = st != WEFT_OK ? st : weft_session_stats(session, stats);
	job->elapsed_ns[seat->idx] = wf_now_ns(env) - start_ns;
	enum weft_status closed = weft_session_close(session);
	if (st != WEFT_OK || closed != WEFT_OK) {
		crew_complain(seat->crew, "trainer", seat->idx);
	}
	seat->crew->ended += st == WEFT_OK && closed == WEFT_OK ? 1 : 0;
	return 0;
}

static void
run_job(struct job *job)
{
	const char *text = getenv("WEFT_SEED");
	/* With some seeds a trainer is gone before its last acknowledgement has arrived. */
	const uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : 2;
	struct crew crew = {
		.seed = seed,
		.world = {.seed = seed,
			  .delay_min_ns = 10 * WF_NS_PER_US,
			  .delay_max_ns = 900 * WF_NS_PER_US,
			  .second_locks_memory = job->locks_memory,
			  .log_fd = -1},
		.transport = job->transport != NULL ? job->transport : "sim",
		.pservers = 1,
		.trainers = TRAINERS,
		.lanes = LANES,
		.slot_count = job->slot_count,
		.fill_server = fill_server,
		.look = keep_counters,
		.run_trainer = run_trainer,
		.run = job,
	};
	struct wf_world_stats stats;
	enum weft_status st = crew_play(&crew, &stats);
	if (st != WEFT_OK || crew.why[0] != '\0' || crew.ended != TRAINERS) {
		fail_msg("WEFT_SEED=%" PRIu64 ": %s", seed, crew.why);
	}
}

static uint64_t
lanes_sum(const struct job *job, unsigned counter)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < LANES; i++) {
		sum += job->lane[i][counter];
	}
	return sum;
}

static void
what_trainers_sent_is_what_lanes_received(void **state)
{
	static struct job job;
	job = (struct job){.slot_count = 8};
	run_job(&job);
	const struct weft_session_stats *a = &job.trainer[0], *b = &job.trainer[1];
	/* They told their counters before they said GOODBYE, and again that they heard the
	 * answer, to each lane. */
	struct wf_msg goodbye;
	wf_msg_goodbye_encode(&(struct wf_msg_goodbye){.ack = false}, &goodbye);
	uint64_t farewells = 2 * TRAINERS * LANES;
	uint64_t farewell_bytes = farewells * (WF_HEAD_BYTES + goodbye.body_bytes);
	assert_int_equal(lanes_sum(&job, WF_END_TRANSPORT_RECEIVED_BYTES),
			 a->sent_bytes + b->sent_bytes + farewell_bytes);
	assert_int_equal(lanes_sum(&job, WF_END_MESSAGE_RECEIVED_COUNT),
			 a->messages_sent + b->messages_sent + farewells);
	assert_int_equal(lanes_sum(&job, WF_END_PUT_RECEIVED_COUNT), a->puts_sent + b->puts_sent);
	assert_int_equal(lanes_sum(&job, WF_END_PUT_SENT_COUNT),
			 a->puts_received + b->puts_received);
}

static void
puts_are_slices_times_steps_and_trainers(void **state)
{
	static struct job job;
	job = (struct job){.slot_count = 8};
	run_job(&job);
	const struct weft_session_stats *a = &job.trainer[0], *b = &job.trainer[1];
	/* Trainer 0 gives the initial values, trainer 1 pulls them. */
	assert_int_equal(a->puts_sent, SLICES * (STEPS + 1));
	assert_int_equal(a->slices_pushed, a->puts_sent);
	assert_int_equal(a->slices_answered, a->puts_sent);
	assert_int_equal(a->puts_received, a->puts_sent);
	assert_int_equal(a->slices_pulled, 0);
	assert_int_equal(b->puts_sent, SLICES * STEPS);
	assert_int_equal(b->slices_answered, SLICES * STEPS);
	assert_int_equal(b->slices_pulled, SLICES);
	assert_int_equal(b->puts_received, SLICES * (STEPS + 1));
	assert_int_equal(a->steps, STEPS);
	assert_int_equal(a->reconnects + b->reconnects, 0);
	assert_int_equal(lanes_sum(&job, WF_LANE_SLICE_APPLIED_COUNT), SLICES * STEPS);
	assert_int_equal(lanes_sum(&job, WF_LANE_STEP_APPLIED_COUNT), LANES * STEPS);
	assert_int_equal(lanes_sum(&job, WF_LANE_SLICE_PARKED_COUNT), 0); /* 5 slices, 8 slots */
	assert_int_equal(a->waits_slot + b->waits_slot, 0);
	assert_int_equal(lanes_sum(&job, WF_LANE_SLOT_USED_COUNT), 0);
	assert_int_equal(lanes_sum(&job, WF_LANE_SLOT_GRANTED_COUNT), LANES * TRAINERS * 8);
	assert_int_equal(lanes_sum(&job, WF_LANE_PEER_RECONNECTED_COUNT), 0);
	assert_int_equal(lanes_sum(&job, WF_LANE_HELLO_REFUSED_COUNT), 0);
}

static void
with_a_window_of_one_every_push_that_waits_is_parked(void **state)
{
	static struct job job;
	job = (struct job){.slot_count = 1};
	run_job(&job);
	uint64_t parked = lanes_sum(&job, WF_LANE_SLICE_PARKED_COUNT);
	uint64_t waits = lanes_sum(&job, WF_LANE_WAIT_TRAINER_COUNT);
	/* Of two pushes of a slice one is first. */
	assert_int_equal(waits, SLICES * STEPS);
	assert_int_equal(parked, waits + lanes_sum(&job, WF_LANE_WAIT_LENT_COUNT));
	assert_true(lanes_sum(&job, WF_LANE_SLICE_PARKED_BYTES) > 0);
	assert_true(lanes_sum(&job, WF_LANE_SLICE_PARKED_BYTES) <= parked * 64);
	assert_true(lanes_sum(&job, WF_LANE_PARK_PEAK_BYTES) > 0);
	assert_int_equal(lanes_sum(&job, WF_LANE_PARK_USED_BYTES), 0);
	assert_true(job.trainer[0].waits_slot > 0 && job.trainer[1].waits_slot > 0);
}

/* 20 slices of each of 3 tensors on 2 lanes: a window of 32 slots has room for all of a lane's. */
static void
a_window_fits_the_job_where_pushes_stay_at_the_trainer(void **state)
{
	static struct job job;
	job = (struct job){.rows = 320, .transport = "sim"};
	run_job(&job);
	assert_int_equal(lanes_sum(&job, WF_LANE_SLOT_GRANTED_COUNT), LANES * TRAINERS * 8);
	assert_true(lanes_sum(&job, WF_LANE_SLICE_PARKED_COUNT) > 0);
	job = (struct job){.rows = 320, .transport = "sim-auto"};
	run_job(&job);
	assert_int_equal(lanes_sum(&job, WF_LANE_SLOT_GRANTED_COUNT), LANES * TRAINERS * 32);
	assert_int_equal(lanes_sum(&job, WF_LANE_SLICE_PARKED_COUNT), 0);
	assert_int_equal(lanes_sum(&job, WF_LANE_SLICE_APPLIED_COUNT), 60 * STEPS);
	/* A number that was given holds on every path. */
	job = (struct job){.rows = 320, .transport = "sim-auto", .slot_count = 4};
	run_job(&job);
	assert_int_equal(lanes_sum(&job, WF_LANE_SLOT_GRANTED_COUNT), LANES * TRAINERS * 4);
	/* What is applied when it arrives holds no slot. */
	job = (struct job){.rows = 320, .transport = "sim-auto", .is_async = true};
	run_job(&job);
	assert_int_equal(lanes_sum(&job, WF_LANE_SLOT_GRANTED_COUNT), LANES * TRAINERS * 8);
	/* 32 slots of 4 KiB for each trainer are more than --max_shard_bytes allows; 8 are not. */
	job = (struct job){.rows = 320 * 64,
			   .transport = "sim-auto",
			   .slice_bytes = 4096,
			   .max_shard_bytes = 192u << 10};
	run_job(&job);
	assert_int_equal(lanes_sum(&job, WF_LANE_SLOT_GRANTED_COUNT), LANES * TRAINERS * 8);
	job.max_shard_bytes = 0;
	run_job(&job);
	assert_int_equal(lanes_sum(&job, WF_LANE_SLOT_GRANTED_COUNT), LANES * TRAINERS * 32);
	/* Memory that is reserved for wide windows would be locked by a device. */
	job = (struct job){.rows = 320, .transport = "sim-auto", .locks_memory = true};
	run_job(&job);
	assert_int_equal(lanes_sum(&job, WF_LANE_SLOT_GRANTED_COUNT), LANES * TRAINERS * 8);
}

/* Every message is as long as with f32, and every gradient and value half as long; but for the
 * initial values that trainer 0 gives, which are f32. */
static void
in_16_bits_half_the_bytes_of_tensors_travel(void **state)
{
	static struct job plain, halved;
	const uint64_t values = TENSORS * ROWS * sizeof(float);
	for (uint32_t slots = 1; slots <= 8; slots *= 8) {
		plain = (struct job){.slot_count = slots};
		halved = (struct job){.slot_count = slots, .wire = WEFT_WIRE_BF16};
		run_job(&plain);
		run_job(&halved);
		for (uint32_t i = 0; i < TRAINERS; i++) {
			const struct weft_session_stats *a = &plain.trainer[i];
			const struct weft_session_stats *b = &halved.trainer[i];
			assert_int_equal(b->puts_sent, a->puts_sent);
			assert_int_equal(b->messages_sent, a->messages_sent);
			assert_int_equal(a->sent_bytes - b->sent_bytes, STEPS * values / 2);
			assert_int_equal(b->puts_received, a->puts_received);
			assert_int_equal(a->received_bytes - b->received_bytes,
					 (STEPS + 1) * values / 2);
			assert_int_equal(b->gradients_overflowed, 0);
		}
		assert_int_equal(lanes_sum(&halved, WF_LANE_SLICE_PARKED_BYTES) * 2,
				 lanes_sum(&plain, WF_LANE_SLICE_PARKED_BYTES));
	}
}

static void
what_is_too_large_for_16_bits_is_counted_on_both_sides(void **state)
{
	static struct job job;
	job = (struct job){.slot_count = 8, .wire = WEFT_WIRE_F16, .gradient = 65536};
	run_job(&job);
	for (uint32_t i = 0; i < TRAINERS; i++) {
		assert_int_equal(job.trainer[i].gradients_overflowed, ROWS * STEPS);
		assert_non_null(strstr(job.log[i], "not info: "));
	}
	assert_int_equal(lanes_sum(&job, WF_LANE_GRADIENT_SKIPPED_COUNT), ROWS * STEPS);
}

static void
without_a_period_no_time_is_measured_and_no_line_written(void **state)
{
	static struct job job;
	job = (struct job){.slot_count = 8};
	run_job(&job);
	for (uint32_t i = 0; i < TRAINERS; i++) {
		const struct weft_session_stats *s = &job.trainer[i];
		assert_int_equal(s->poll_time_ns + s->idle_time_ns + s->away_time_ns, 0);
		assert_int_equal(s->exchange_p50_ns + s->exchange_p99_ns, 0);
		assert_null(strstr(job.log[i], "stats of"));
	}
	assert_int_equal(lanes_sum(&job, WF_END_IDLE_TIME_NS), 0);
	assert_int_equal(lanes_sum(&job, WF_END_POLL_TIME_NS), 0);
}

static unsigned
lines_with(const char *log, const char *part)
{
	unsigned count = 0;
	for (const char *at = strstr(log, part); at != NULL; at = strstr(at + 1, part)) {
		count++;
	}
	return count;
}

static void
with_a_period_all_time_is_charged_and_lines_are_written(void **state)
{
	static struct job job;
	job = (struct job){.slot_count = 8, .stats_period_ns = PERIOD_NS};
	run_job(&job);
	for (uint32_t i = 0; i < TRAINERS; i++) {
		const struct weft_session_stats *s = &job.trainer[i];
		uint64_t sum = s->poll_time_ns + s->idle_time_ns + s->away_time_ns;
		assert_int_equal(sum, job.elapsed_ns[i]);
		assert_true(s->away_time_ns >= STEPS * COMPUTE_NS); /* it computed */
		assert_true(s->idle_time_ns > 0 && s->idle_time_ns < s->away_time_ns);
		/* There and back, and at most what four frames may take. */
		assert_true(s->exchange_p50_ns >= 20 * WF_NS_PER_US);
		assert_true(s->exchange_p50_ns <= s->exchange_p99_ns);
		uint64_t periods = job.elapsed_ns[i] / PERIOD_NS;
		assert_true(periods >= 6);
		assert_int_equal(lines_with(job.log[i], ": stats of the session, "), 1);
		/* One may come while it says goodbye. */
		assert_in_range(lines_with(job.log[i], ": stats of "), periods + 1, periods + 2);
		assert_int_equal(lines_with(job.log[i], "not info: "), 0);
	}
	assert_true(job.lane[0][WF_END_IDLE_TIME_NS] >= STEPS * COMPUTE_NS);
}

/* Written by the members' threads, read when they have ended. */
static struct weft_session_stats told[TRAINERS];

/* Progress threads, tcp: the numbers are those of the moment. */
static enum weft_status
exchange_and_tell(struct member *member)
{
	struct weft_session_stats *stats = &told[member->id];
	struct weft_session *session = NULL;
	struct weft_tensor *tensor = NULL;
	enum weft_status st = one_tensor(&member->opts, 1000, 0, &session, &tensor);
	for (unsigned i = 0; i < STEPS && st == WEFT_OK; i++) {
		st = weft_exchange(session, 1, 0);
		*stats = (struct weft_session_stats){.struct_bytes = sizeof(*stats)};
		st = st != WEFT_OK ? st : weft_session_stats(session, stats);
		if (st == WEFT_OK && stats->steps != i + 1) {
			st = WEFT_INTERNAL;
		}
	}
	enum weft_status closed = weft_session_close(session);
	return st != WEFT_OK ? st : closed;
}

static void
a_session_with_a_thread_tells_exact_counters_at_once(void **state)
{
	static struct member members[TRAINERS];
	struct fabric fabric;
	fabric_start(&fabric, 1, 2, 0);
	for (uint32_t i = 0; i < TRAINERS; i++) {
		member_init(&members[i], &fabric, i, TRAINERS);
		members[i].run = exchange_and_tell;
		members[i].opts.slice_bytes = 1024;
		members[i].opts.stats_period_ns = WF_NS_PER_S;
	}
	members_run(members, TRAINERS);
	for (uint32_t i = 0; i < TRAINERS; i++) {
		const struct weft_session_stats *s = &told[i];
		assert_ended(&members[i], WEFT_OK, "");
		assert_int_equal(s->puts_sent, 4 * (STEPS + (i == 0 ? 1 : 0)));
		assert_int_equal(s->puts_received, 4 * (STEPS + 1));
		assert_int_equal(s->slices_pulled, i == 0 ? 0 : 4);
		assert_true(s->sent_bytes > 4000ull * STEPS && s->received_bytes > 4000ull * STEPS);
		assert_int_equal(s->away_time_ns, 0);
		assert_true(s->poll_time_ns > 0 && s->exchange_p50_ns > 0);
		assert_text(members[i].log, ": stats of the session, ");
	}
	fabric_stop(&fabric);
}

static void
stats_of_another_size_are_refused_and_before_start_all_are_zero(void **state)
{
	struct weft_session_opts opts;
	struct weft_session *session = NULL;
	struct weft_session_stats stats = {.struct_bytes = sizeof(stats) - 8, .steps = 7};
	weft_session_opts_init(&opts);
	assert_ok(weft_session_open(&opts, &session));
	assert_refused(weft_session_stats(session, &stats), WEFT_INVALID, "struct_bytes");
	assert_true(stats.steps == 7);
	stats.struct_bytes = sizeof(stats);
	assert_ok(weft_session_stats(session, &stats));
	assert_true(stats.steps == 0 && stats.sent_bytes == 0);
	assert_ok(weft_session_close(session));
}

static void
stats_of_a_trainer_are_refused_by_size_and_before_start(void **state)
{
	struct weft_session_opts opts;
	struct weft_session *session = NULL;
	struct weft_trainer_stats stats = {.struct_bytes = sizeof(stats) - 8, .last = 7};
	(void)state;
	weft_session_opts_init(&opts);
	assert_ok(weft_session_open(&opts, &session));
	assert_refused(weft_trainer_stats(session, 0, &stats), WEFT_INVALID, "struct_bytes");
	stats.struct_bytes = sizeof(stats);
	assert_refused(weft_trainer_stats(session, 0, &stats), WEFT_INVALID, "not started");
	assert_true(stats.last == 7);
	uint64_t samples = 7;
	assert_refused(weft_samples(session, &samples), WEFT_INVALID, "not started");
	assert_true(samples == 7);
	assert_ok(weft_session_close(session));
}

/* Nobody listens: the session fails, and still tells, from either kind of progress. */
static void
a_failed_session_still_tells_its_counters(void **state)
{
	for (int progress = WEFT_PROGRESS_THREAD; progress <= WEFT_PROGRESS_CALLER; progress++) {
		struct weft_session_opts opts;
		struct weft_session *session = NULL;
		struct weft_tensor *tensor = NULL;
		struct weft_session_stats stats = {.struct_bytes = sizeof(stats)};
		weft_session_opts_init(&opts);
		opts.pservers = "127.0.0.1:1";
		opts.connect_timeout_ns = 50 * WF_NS_PER_MS;
		opts.stats_period_ns = WF_NS_PER_S;
		opts.progress = (enum weft_progress)progress;
		assert_refused(one_tensor(&opts, 4, 0, &session, &tensor), WEFT_TIMEOUT,
			       "127.0.0.1");
		assert_ok(weft_session_stats(session, &stats));
		assert_true(stats.steps == 0 && stats.messages_sent == 0);
		assert_true(stats.poll_time_ns + stats.idle_time_ns > 0);
		(void)weft_session_close(session);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_trainers_sent_is_what_lanes_received),
		cmocka_unit_test(puts_are_slices_times_steps_and_trainers),
		cmocka_unit_test(with_a_window_of_one_every_push_that_waits_is_parked),
		cmocka_unit_test(a_window_fits_the_job_where_pushes_stay_at_the_trainer),
		cmocka_unit_test(in_16_bits_half_the_bytes_of_tensors_travel),
		cmocka_unit_test(what_is_too_large_for_16_bits_is_counted_on_both_sides),
		cmocka_unit_test(without_a_period_no_time_is_measured_and_no_line_written),
		cmocka_unit_test(with_a_period_all_time_is_charged_and_lines_are_written),
		cmocka_unit_test(a_session_with_a_thread_tells_exact_counters_at_once),
		cmocka_unit_test(stats_of_another_size_are_refused_and_before_start_all_are_zero),
		cmocka_unit_test(stats_of_a_trainer_are_refused_by_size_and_before_start),
		cmocka_unit_test(a_failed_session_still_tells_its_counters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
