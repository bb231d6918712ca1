/* SPDX-License-Identifier: Apache-2.0 */
/* Two trainers with progress threads, two pservers with two lanes each, several hundred steps of a
 * model whose gradients depend on its parameters, pushed tensor by tensor: the bits at the end are
 * those of a computation in one thread. */
#include "base/rng.h"
#include "tests/unit/trainer/fabric.h"

#define TENSORS 5
#define STEPS 300
#define PASSES 3
#define TRAINERS 2

static const uint64_t rows[TENSORS] = {7, 64, 1, 200, 33};
static const float momentum = 0.5f, rate = 0.03125f;

/* Pulls every parameter towards a target that each step and trainer sees elsewhere. */
static float
gradient(float w, unsigned tensor, uint64_t at, unsigned step, unsigned trainer)
{
	unsigned noise = (tensor * 7u + (unsigned)at * 13u + step * 29u + trainer * 31u) % 97u;
	return 0.5f * w - 0.01f * (float)noise;
}

static float
initial(unsigned tensor, uint64_t at)
{
	return 0.25f * (float)tensor - 0.001f * (float)at;
}

static enum weft_status
declare(const struct weft_session_opts *opts, struct weft_session **session,
	struct weft_tensor **tensor)
{
	static const char *const name[TENSORS] = {"e", "b", "c", "a", "d"};
	enum weft_status st = weft_session_open(opts, session);
	if (st != WEFT_OK) {
		*session = NULL;
	}
	for (unsigned i = 0; i < TENSORS && st == WEFT_OK; i++) {
		struct weft_tensor_opts declared = {.name = name[i], .rows = rows[i]};
		st = weft_tensor_add(*session, &declared, &tensor[i]);
	}
	st = st != WEFT_OK ? st : weft_session_seal(*session);
	for (unsigned i = 0; i < TENSORS && st == WEFT_OK; i++) {
		for (uint64_t at = 0; at < rows[i]; at++) {
			weft_tensor_param(tensor[i])[at] = initial(i, at);
		}
	}
	return st;
}

/* The same job in one thread, in plain loops; the session only lends arrays and the digest. */
static uint64_t
sequential(void)
{
	struct weft_session_opts opts;
	struct weft_session *session;
	struct weft_tensor *tensor[TENSORS];
	static float m[TENSORS][256];
	uint64_t digest = 0;
	weft_session_opts_init(&opts);
	memset(m, 0, sizeof(m));
	assert_ok(declare(&opts, &session, tensor));
	for (unsigned step = 1; step <= STEPS; step++) {
		for (unsigned i = 0; i < TENSORS; i++) {
			for (uint64_t at = 0; at < rows[i]; at++) {
				float *w = &weft_tensor_param(tensor[i])[at];
				float g = gradient(*w, i, at, step, 0);
				g = g + gradient(*w, i, at, step, 1);
				m[i][at] = momentum * m[i][at] - rate * (g + 0 * *w);
				*w = *w + m[i][at];
			}
		}
	}
	assert_ok(weft_digest(session, &digest));
	assert_ok(weft_session_close(session));
	return digest;
}

/* Each tensor is pushed as soon as its gradient is there, in an order of the trainer's own; in some
 * steps the answers are waited for one by one. */
static enum weft_status
take_step(const struct member *member, struct weft_session *session, struct weft_tensor **tensor,
	  unsigned step)
{
	enum weft_status st = weft_step(session, 1, 0);
	for (unsigned n = 0; n < TENSORS && st == WEFT_OK; n++) {
		unsigned i = member->id == 0 ? n : TENSORS - 1 - n;
		for (uint64_t at = 0; at < rows[i]; at++) {
			float w = weft_tensor_param(tensor[i])[at];
			weft_tensor_grad(tensor[i])[at] = gradient(w, i, at, step, member->id);
		}
		st = weft_push(tensor[i]);
	}
	for (unsigned i = 0; i < TENSORS && st == WEFT_OK && step % 3 == 0; i++) {
		st = weft_wait(tensor[(i + step) % TENSORS]);
	}
	return st != WEFT_OK ? st : weft_wait_all(session);
}

/* Before any other call, which would put the two threads in order. */
static enum weft_status
start(struct weft_session *session, struct weft_tensor **tensor)
{
	enum weft_status st = weft_session_start(session);
	for (unsigned i = 0; i < TENSORS && st == WEFT_OK; i++) {
		for (uint64_t at = 0; at < rows[i]; at++) {
			bool as_initial = weft_tensor_param(tensor[i])[at] == initial(i, at);
			st = as_initial ? st : WEFT_DATA;
		}
	}
	return st;
}

static enum weft_status
train(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *tensor[TENSORS];
	enum weft_status st = declare(&member->opts, &session, tensor);
	st = st != WEFT_OK ? st : start(session, tensor);
	for (unsigned step = 1; step <= STEPS && st == WEFT_OK; step++) {
		st = take_step(member, session, tensor, step);
		double count = 1;
		if (st == WEFT_OK && step % 10 == 0) {
			st = weft_reduce(session, &count, 1);
			member->value[0] += (float)count;
		}
		if (st == WEFT_OK && step % (STEPS / PASSES) == 0) {
			st = weft_pass_end(session);
			st = st != WEFT_OK ? st : weft_pull_all(session);
		}
	}
	st = st != WEFT_OK ? st : weft_digest(session, &member->digest);
	(void)member_note(member, st);
	enum weft_status end = weft_session_close(session);
	return st != WEFT_OK ? st : end;
}

/* refuse=10% at both ends makes 19 of 100 attempts to connect fail. The default of 3 s has room for
 * six attempts and the waits between them, and 0.19^6 is 1 in 20,000 of the reconnects, of which a
 * job has dozens. In 30 s there are more than ten. */
#define RECONNECT_NS (30 * WF_NS_PER_S)

/* What carries the bytes; NULL: the default. */
struct carriers {
	const char *pserver, *trainer;
};

/* Returns what the wrappers injected. */
static struct wf_fault_counts
train_over(struct carriers over, uint64_t spin_ns, enum weft_progress second)
{
	struct fabric fabric;
	struct member member[TRAINERS];
	fabric_start_over(&fabric, over.pserver, 2, 2, spin_ns, RECONNECT_NS);
	for (unsigned i = 0; i < TRAINERS; i++) {
		member_init(&member[i], &fabric, i, TRAINERS);
		member[i].opts.slice_bytes = 64;
		member[i].opts.reconnect_timeout_ns = RECONNECT_NS;
		if (over.trainer != NULL) {
			member[i].opts.transport = over.trainer;
		}
		member[i].opts.spin_ns = spin_ns;
		member[i].opts.progress = i == 0 ? WEFT_PROGRESS_THREAD : second;
		member[i].opts.optimizer.method = "momentum";
		member[i].opts.optimizer.momentum = (double)momentum;
		member[i].opts.optimizer.learning_rate = (double)rate;
		member[i].run = train;
	}
	members_run(member, TRAINERS);
	fabric_stop(&fabric);
	for (unsigned i = 0; i < TRAINERS; i++) {
		assert_ended(&member[i], WEFT_OK, "");
		assert_true(member[i].value[0] == TRAINERS * STEPS / 10);
		assert_true(member[i].digest == sequential());
	}
	for (unsigned i = 0; i < fabric.pserver_count; i++) {
		assert_int_equal(fabric.server[i].status, WEFT_OK);
	}
	return fabric.faults;
}

static void
train_with(uint64_t spin_ns, enum weft_progress second)
{
	struct wf_fault_counts none = train_over((struct carriers){NULL, NULL}, spin_ns, second);
	for (unsigned i = 0; i < WF_FAULT_KINDS; i++) {
		assert_int_equal(none.injected[i], 0);
	}
}

#define FAULTS "delay=2%:2ms,split=30%,short=20%,stall=0.2%:3ms,refuse=10%"
#define CARRIER_BYTES 512

/* "fault(SPEC)+NAME", or a list of two. */
static void
write_carrier(char out[CARRIER_BYTES], const char *spec, const char *name, const char *and_name)
{
	int used = snprintf(out, CARRIER_BYTES, "fault(%s)+%s", spec, name);
	assert_in_range(used, 1, CARRIER_BYTES - 1);
	if (and_name != NULL) {
		(void)snprintf(out + used, (size_t)(CARRIER_BYTES - used), ",fault(%s)+%s", spec,
			       and_name);
	}
}

/* Every kind of fault at both ends, at points that WEFT_SEED decides. Pservers cut by chance,
 * trainers by script: the peer of an end that cuts may see it close, and a trainer that closes
 * after its GOODBYE does not come back. */
static void
train_behind_faults(const char *name, const char *and_name, enum weft_progress second)
{
	const char *text = getenv("WEFT_SEED");
	uint64_t seed = text == NULL ? 1 : strtoull(text, NULL, 0);
	char spec[256], pserver[CARRIER_BYTES], trainer[CARRIER_BYTES];
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 0);
	(void)snprintf(spec, sizeof(spec), "seed=%" PRIu64 ",cut=0.1%%,%s", seed, FAULTS);
	write_carrier(pserver, spec, name, and_name);
	int used =
		snprintf(spec, sizeof(spec), "seed=%" PRIu64 ",refuse@connect:2,%s", seed, FAULTS);
	if (and_name == NULL) { /* one path alone may see so much at the end only */
		(void)snprintf(spec + used, sizeof(spec) - (size_t)used,
			       ",cut@put:%" PRIu64 ",cut@op:%" PRIu64,
			       50 + wf_rng_below(&rng, 1000), 50 + wf_rng_below(&rng, 1000));
	}
	write_carrier(trainer, spec, name, and_name);
	print_message("pservers: %s\ntrainers: %s\n", pserver, trainer);
	struct wf_fault_counts counts = train_over((struct carriers){pserver, trainer}, 0, second);
	for (unsigned i = 0; i < WF_FAULT_KINDS; i++) {
		/* A run that nothing happened to proves nothing. */
		assert_true(counts.injected[i] > 0);
	}
}

static void
threads_that_sleep_end_with_the_bits_of_one_thread(void **state)
{
	(void)state;
	train_with(0, WEFT_PROGRESS_THREAD);
}

static void
threads_that_spin_end_with_the_bits_of_one_thread(void **state)
{
	(void)state;
	train_with(50 * WF_NS_PER_US, WEFT_PROGRESS_THREAD);
}

static void
a_trainer_that_drives_itself_ends_with_the_bits_of_one_thread(void **state)
{
	(void)state;
	train_with(0, WEFT_PROGRESS_CALLER);
}

static void
faults_in_tcp_leave_the_bits_alone(void **state)
{
	(void)state;
	train_behind_faults("tcp", NULL, WEFT_PROGRESS_THREAD);
}

static void
faults_in_shm_leave_the_bits_alone(void **state)
{
	(void)state;
	train_behind_faults("shm", NULL, WEFT_PROGRESS_CALLER);
}

static void
faults_around_all_paths_leave_the_bits_alone(void **state)
{
	(void)state;
	train_behind_faults("auto", NULL, WEFT_PROGRESS_THREAD);
}

static void
faults_in_each_path_leave_the_bits_alone(void **state)
{
	(void)state;
	train_behind_faults("tcp", "shm", WEFT_PROGRESS_CALLER);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_that_sleep_end_with_the_bits_of_one_thread),
		cmocka_unit_test(threads_that_spin_end_with_the_bits_of_one_thread),
		cmocka_unit_test(a_trainer_that_drives_itself_ends_with_the_bits_of_one_thread),
		cmocka_unit_test(faults_in_tcp_leave_the_bits_alone),
		cmocka_unit_test(faults_in_shm_leave_the_bits_alone),
		cmocka_unit_test(faults_around_all_paths_leave_the_bits_alone),
		cmocka_unit_test(faults_in_each_path_leave_the_bits_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
