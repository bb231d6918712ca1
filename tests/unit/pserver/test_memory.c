/* SPDX-License-Identifier: Apache-2.0 */
/* A dense lane that runs out of memory: starved.h. Thread: the test's. */
#include "tests/unit/pserver/starved.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernels/optimizer.h"
#include "wire/messages.h"
#include "wire/placement.h"

#define TENSORS 2u

static void
make_job(enum weft_dense_mode mode, struct wf_job_tensor *tensor, struct wf_job *out)
{
	tensor[0] = (struct wf_job_tensor){.name = "w", .count = 100, .rate_multiplier = 1};
	tensor[1] = (struct wf_job_tensor){.name = "b", .count = 10, .rate_multiplier = 1};
	*out = (struct wf_job){
		.pserver_count = 1,
		.set = {.num_gradient_servers = 2,
			.ports_num = 1,
			.slice_bytes = 64,
			.dense_mode = mode,
			.optimizer = {.learning_rate = 0.1,
				      .beta1 = 0.9,
				      .beta2 = 0.9,
				      .epsilon = 1e-8}},
		.method = {.kind = WF_SGD},
		.tensor = tensor,
		.tensor_count = TENSORS,
	};
}

static enum weft_dense_mode
mode_of(const struct starved_job *starved)
{
	return *(const enum weft_dense_mode *)starved->arg;
}

static void
describe(const struct starved_job *starved, struct wf_env *env, struct wf_hello *hello)
{
	struct wf_job_tensor tensor[TENSORS];
	struct wf_placement placement;
	struct wf_job job;
	make_job(mode_of(starved), tensor, &job);
	assert_int_equal(wf_placement_init(env, &job, &placement), WEFT_OK);
	hello->service = WF_SERVICE_DENSE;
	hello->job_digest = wf_job_digest(&job);
	hello->tensors_digest = wf_job_tensors_digest(&job);
	hello->placement_digest = wf_placement_digest(&placement);
	hello->job_bytes = wf_job_encoded_bytes(&job);
	wf_placement_fini(env, &placement);
}

static void
send_job(const struct starved_job *starved, struct peer *trainer)
{
	struct wf_job_tensor tensor[TENSORS];
	struct wf_job job;
	uint8_t bytes[512];
	struct wf_msg out;
	make_job(mode_of(starved), tensor, &job);
	const size_t count = wf_job_encoded_bytes(&job);
	assert_true(count <= sizeof(bytes));
	wf_job_encode(&job, bytes);
	const struct wf_msg_job msg = {.total_bytes = count, .bytes = bytes, .byte_count = count};
	wf_msg_job_encode(&msg, &out);
	peer_send(trainer, &out);
}

static void
refuse_each(enum weft_dense_mode mode)
{
	const struct starved_job job = {
		.max_shard_bytes = 1 << 20,
		.describe = describe,
		.send = send_job,
		.arg = &mode,
	};
	starved_refuse_each(&job);
}

static void
each_allocation_of_a_lane_that_fails_is_told_and_leaks_nothing(void **state)
{
	(void)state;
	refuse_each(WEFT_DENSE_SYNC);
}

static void
so_is_each_of_an_asynchronous_job(void **state)
{
	(void)state;
	refuse_each(WEFT_DENSE_ASYNC);
}

static void
a_lane_that_was_never_made_may_be_destroyed(void **state)
{
	(void)state;
	wf_lane_destroy(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_allocation_of_a_lane_that_fails_is_told_and_leaks_nothing),
		cmocka_unit_test(so_is_each_of_an_asynchronous_job),
		cmocka_unit_test(a_lane_that_was_never_made_may_be_destroyed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
