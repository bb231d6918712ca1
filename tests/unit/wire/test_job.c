/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of wire/job. */
#include <math.h>
#include <stdio.h>

#include "tests/unit/wire/golden.h"
#include "tests/unit/wire/heap_env.h"
#include "tests/unit/wire/refused.h"
#include "wire/job.h"
#include "wire/layout.h"

#define FIXED_BYTES 106
#define TENSOR_COUNT 3

/* `tensor` has TENSOR_COUNT entries and keeps the tensors. */
static struct wf_job
sample(struct wf_job_tensor *tensor)
{
	memset(tensor, 0, TENSOR_COUNT * sizeof(*tensor));
	tensor[0] = (struct wf_job_tensor){
		.name = "w", .count = 13, .rate_multiplier = 1, .decay = -1, .clip = -1};
	tensor[1] = (struct wf_job_tensor){
		.name = "b", .count = 1, .rate_multiplier = 2, .decay = 0, .clip = 0.5};
	tensor[2] = (struct wf_job_tensor){.name = "scale", .count = 1ull << 40, .is_static = true};
	return (struct wf_job){
		.trainer_count = 2,
		.pserver_count = 3,
		.lane_count = 4,
		.slice_bytes = 262144,
		.grad_reduce = WF_REDUCE_MEAN,
		.nonfinite = WF_NONFINITE_SKIP,
		.optimizer = {.kind = 2,
			      .schedule = 1,
			      .learning_rate = 0.1,
			      .momentum = 0.9,
			      .beta1 = 0.8,
			      .beta2 = 0.999,
			      .epsilon = 1e-8,
			      .decay = 1e-4,
			      .clip = 10,
			      .schedule_a = 1e-3,
			      .schedule_b = -0.0},
		.tensor = tensor,
		.tensor_count = TENSOR_COUNT,
	};
}

static void
assert_same_tensors(const struct wf_job *a, const struct wf_job *b)
{
	assert_int_equal(a->tensor_count, b->tensor_count);
	for (uint32_t i = 0; i < a->tensor_count; i++) {
		assert_string_equal(a->tensor[i].name, b->tensor[i].name);
		assert_true(a->tensor[i].count == b->tensor[i].count);
		assert_memory_equal(&a->tensor[i].rate_multiplier, &b->tensor[i].rate_multiplier,
				    3 * sizeof(double));
		assert_int_equal(a->tensor[i].is_static, b->tensor[i].is_static);
	}
}

static void
a_job_is_its_golden_bytes(void **state)
{
	struct heap_env heap = heap_env_make();
	struct wf_job_tensor tensor[TENSOR_COUNT];
	struct wf_job in = sample(tensor);
	struct wf_job out;
	uint8_t bytes[GOLDEN_BYTES_MAX];
	uint8_t held[GOLDEN_BYTES_MAX];

	assert_int_equal(wf_job_check(&in), WEFT_OK);
	size_t count = wf_job_encoded_bytes(&in);
	assert_int_equal(count, FIXED_BYTES + 3 * 35 + 7);
	wf_job_encode(&in, bytes);
	assert_int_equal(golden_check("job_description", bytes, count, held), count);
	assert_int_equal(wf_job_decode(&heap.env, held, count, &out), WEFT_OK);
	assert_true(out.trainer_count == 2 && out.pserver_count == 3 && out.lane_count == 4);
	assert_true(out.slice_bytes == 262144);
	assert_int_equal(out.grad_reduce, WF_REDUCE_MEAN);
	assert_int_equal(out.nonfinite, WF_NONFINITE_SKIP);
	assert_memory_equal(&out.optimizer, &in.optimizer, sizeof(in.optimizer));
	assert_same_tensors(&in, &out);
	wf_job_fini(&heap.env, &out);
	assert_null(out.tensor);
	assert_int_equal(heap.out_bytes, 0);
	wf_job_fini(&heap.env, &out); /* zeroed: nothing to do */
}

static void
digests_are_the_golden_ones(void **state)
{
	struct wf_job_tensor tensor[TENSOR_COUNT];
	struct wf_job job = sample(tensor);
	uint64_t digest[2] = {wf_job_digest(&job), wf_job_tensors_digest(&job)};
	uint8_t bytes[16];
	uint8_t held[GOLDEN_BYTES_MAX];

	for (size_t i = 0; i < 16; i++) {
		bytes[i] = (uint8_t)(digest[i / 8] >> (8 * (i % 8)));
	}
	golden_check("job_digests", bytes, sizeof(bytes), held);
}

static void
no_other_length_is_taken(void **state)
{
	struct heap_env heap = heap_env_make();
	struct wf_job_tensor tensor[TENSOR_COUNT];
	struct wf_job in = sample(tensor);
	struct wf_job out = {.trainer_count = 99};
	uint8_t bytes[GOLDEN_BYTES_MAX] = {0};
	size_t count = wf_job_encoded_bytes(&in);

	wf_job_encode(&in, bytes);
	for (size_t n = 0; n < count; n++) {
		assert_refused(wf_job_decode(&heap.env, bytes, n, &out), WEFT_PROTOCOL, "job: ");
	}
	assert_refused(wf_job_decode(&heap.env, bytes, count + 1, &out), WEFT_PROTOCOL,
		       "its fields take 218 bytes, but it has 219");
	assert_refused(wf_job_decode(&heap.env, bytes, WF_JOB_BYTES_MAX + 1, &out), WEFT_PROTOCOL,
		       "its length is 16777217");
	assert_int_equal(heap.out_bytes, 0);
	assert_true(out.trainer_count == 99);
}

static void
a_count_that_does_not_fit_takes_no_memory(void **state)
{
	struct heap_env heap = heap_env_make();
	struct wf_job_tensor tensor[TENSOR_COUNT];
	struct wf_job in = sample(tensor);
	struct wf_job out;
	uint8_t bytes[GOLDEN_BYTES_MAX];
	const struct patch patch[] = {
		{102, 4, 0, "its fields take 106 bytes, but it has 218"},
		{102, 4, 65537, "the number of tensors is 65537"},
		{102, 4, UINT32_MAX, "the number of tensors is 4294967295"},
		{102, 4, 65536, "names 65536 tensors, its 218 bytes hold 3 at most"},
		{102, 4, 4, "names 4 tensors"},
	};
	for (size_t i = 0; i < sizeof(patch) / sizeof(patch[0]); i++) {
		wf_job_encode(&in, bytes);
		patch_apply(&patch[i], bytes);
		assert_refused(wf_job_decode(&heap.env, bytes, 218, &out), WEFT_PROTOCOL,
			       patch[i].text);
	}
	assert_int_equal(heap.calls, 0);
}

static void
without_memory_nothing_is_decoded(void **state)
{
	struct heap_env heap = heap_env_make();
	struct wf_job_tensor tensor[TENSOR_COUNT];
	struct wf_job in = sample(tensor);
	struct wf_job out;
	uint8_t bytes[GOLDEN_BYTES_MAX];

	wf_job_encode(&in, bytes);
	heap.fail_at = 1;
	assert_refused(wf_job_decode(&heap.env, bytes, 218, &out), WEFT_NOMEM,
		       "no memory for 3 tensors");
}

static void
each_wrong_field_in_the_bytes_is_named(void **state)
{
	const uint64_t nan_bits = 0x7ff8000000000000;
	const uint64_t inf_bits = 0x7ff0000000000000;
	const struct patch patch[] = {
		{0, 4, 0, "num_gradient_servers is 0"},
		{0, 4, 65537, "num_gradient_servers is 65537"},
		{4, 4, 0, "0 pservers"},
		{4, 4, 0x40000001, "1073741825 pservers"}, /* times 4: 4 in 32 bits */
		{8, 4, 0, "ports_num 0"},
		{8, 4, 65536, "ports_num 65536"},
		{12, 8, 0, "slice_bytes is 0"},
		{12, 8, 96, "slice_bytes is 96"},
		{12, 8, (64u << 20) + 64, "slice_bytes is 67108928"},
		{20, 1, 2, "grad_reduce is 2"},
		{21, 1, 255, "nonfinite is 255"},
		{30, 8, nan_bits, "learning_rate is nan"},
		{38, 8, inf_bits, "momentum is inf"},
		{46, 8, nan_bits, "beta1"},
		{54, 8, nan_bits, "beta2"},
		{62, 8, nan_bits, "epsilon"},
		{70, 8, inf_bits | 1ull << 63, "decay is -inf"},
		{78, 8, nan_bits, "clip"},
		{86, 8, nan_bits, "schedule_a"},
		{94, 8, inf_bits, "schedule_b"},
		{106, 8, 0, "tensor w: count is 0"},
		{106, 8, (1ull << 40) + 1, "tensor w: count is 1099511627777"},
		{114, 8, nan_bits, "tensor w: rate_multiplier is nan"},
		{122, 8, inf_bits, "tensor w: decay is inf"},
		{130, 8, nan_bits, "tensor w: clip"},
		{138, 1, 2, "is_static of a tensor is 2"},
		{139, 2, 128, "name of a tensor"},
		{141, 1, ' ', "byte 0 of its name is 0x20"},
		{141, 1, 0, "name of a tensor"},
		{141, 1, 0xc3, "name of a tensor"},
		{141, 1, 'b', "tensor b: two tensors have this name"},
	};
	for (size_t i = 0; i < sizeof(patch) / sizeof(patch[0]); i++) {
		struct heap_env heap = heap_env_make();
		struct wf_job_tensor tensor[TENSOR_COUNT];
		struct wf_job in = sample(tensor);
		struct wf_job out;
		uint8_t bytes[GOLDEN_BYTES_MAX];
		wf_job_encode(&in, bytes);
		patch_apply(&patch[i], bytes);
		assert_refused(wf_job_decode(&heap.env, bytes, 218, &out), WEFT_PROTOCOL,
			       patch[i].text);
		assert_int_equal(heap.out_bytes, 0);
	}
}

static void
a_name_is_printable_short_and_not_empty(void **state)
{
	struct wf_job_tensor tensor[TENSOR_COUNT];
	struct wf_job job = sample(tensor);

	memset(tensor[1].name, 'x', WF_TENSOR_NAME_BYTES);
	assert_refused(wf_job_check(&job), WEFT_INVALID,
		       "tensor 1: its name has 128 characters, must be 1 to 127");
	tensor[1].name[WF_TENSOR_NAME_BYTES - 1] = '\0';
	assert_int_equal(wf_job_check(&job), WEFT_OK);
	tensor[1].name[3] = '\n';
	assert_refused(wf_job_check(&job), WEFT_INVALID, "tensor 1: byte 3 of its name is 0x0a");
	tensor[1].name[0] = '\0';
	assert_refused(wf_job_check(&job), WEFT_INVALID, "tensor 1: its name has 0 characters");
}

static void
a_repeated_name_is_found_wherever_it_stands(void **state)
{
	const uint32_t count = 5000; /* more than are sorted at a time */
	const uint32_t pair[][2] = {{0, 1},       {0, 2047},    {0, 2048},    {100, 4999},
				    {2047, 2048}, {2048, 4095}, {4096, 4999}, {4998, 4999}};
	struct wf_job_tensor small[TENSOR_COUNT];
	struct wf_job job = sample(small);

	job.tensor_count = count;
	job.tensor = calloc(count, sizeof(job.tensor[0]));
	assert_non_null(job.tensor);
	for (uint32_t i = 0; i < count; i++) {
		job.tensor[i].count = 1;
		snprintf(job.tensor[i].name, WF_TENSOR_NAME_BYTES, "t%u", (i * 7919) % count);
	}
	assert_int_equal(wf_job_check(&job), WEFT_OK);
	for (size_t i = 0; i < sizeof(pair) / sizeof(pair[0]); i++) {
		char kept[WF_TENSOR_NAME_BYTES];
		char *name = job.tensor[pair[i][1]].name;
		memcpy(kept, name, sizeof(kept));
		memcpy(name, job.tensor[pair[i][0]].name, sizeof(kept));
		assert_refused(wf_job_check(&job), WEFT_INVALID, name);
		memcpy(name, kept, sizeof(kept));
	}
	free(job.tensor);
}

static void
the_largest_job_is_taken_and_a_larger_refused(void **state)
{
	struct heap_env heap = heap_env_make();
	struct wf_job_tensor small[TENSOR_COUNT];
	struct wf_job job = sample(small);
	struct wf_job out;

	job.tensor_count = WF_TENSOR_COUNT_MAX;
	job.tensor = calloc(job.tensor_count, sizeof(job.tensor[0]));
	assert_non_null(job.tensor);
	for (uint32_t i = 0; i < job.tensor_count; i++) {
		job.tensor[i].count = 1;
		snprintf(job.tensor[i].name, WF_TENSOR_NAME_BYTES, "%0127u", i);
	}
	size_t count = wf_job_encoded_bytes(&job);
	uint8_t *bytes = malloc(count);
	assert_non_null(bytes);
	assert_true(count < WF_JOB_BYTES_MAX);
	wf_job_encode(&job, bytes);
	assert_int_equal(wf_job_decode(&heap.env, bytes, count, &out), WEFT_OK);
	assert_same_tensors(&job, &out);
	assert_true(wf_job_tensors_digest(&job) == wf_job_tensors_digest(&out));
	wf_job_fini(&heap.env, &out);
	job.tensor_count++;
	assert_refused(wf_job_check(&job), WEFT_INVALID, "the number of tensors is 65537");
	free(bytes);
	free(job.tensor);
}

/* One change for each field; NULL past the last. */
typedef void change_fn(struct wf_job *job);

static void
assert_digest_sees(change_fn *change, bool in_job, bool in_tensors)
{
	struct wf_job_tensor tensor[TENSOR_COUNT];
	struct wf_job_tensor changed_tensor[TENSOR_COUNT];
	struct wf_job job = sample(tensor);
	struct wf_job changed = sample(changed_tensor);

	change(&changed);
	assert_int_equal(wf_job_digest(&job) != wf_job_digest(&changed), in_job);
	assert_int_equal(wf_job_tensors_digest(&job) != wf_job_tensors_digest(&changed),
			 in_tensors);
}

#define CHANGE(name, statement)                                                                    \
	static void change_##name(struct wf_job *job)                                              \
	{                                                                                          \
		statement;                                                                         \
	}

CHANGE(nothing, (void)job)
CHANGE(trainers, job->trainer_count++)
CHANGE(pservers, job->pserver_count++)
CHANGE(lanes, job->lane_count++)
CHANGE(slice_bytes, job->slice_bytes += 64)
CHANGE(reduce, job->grad_reduce = WF_REDUCE_SUM)
CHANGE(nonfinite, job->nonfinite = WF_NONFINITE_ABORT)
CHANGE(kind, job->optimizer.kind++)
CHANGE(schedule, job->optimizer.schedule++)
CHANGE(rate, job->optimizer.learning_rate = nextafter(0.1, 1))
CHANGE(momentum, job->optimizer.momentum = 0)
CHANGE(beta1, job->optimizer.beta1 = 0)
CHANGE(beta2, job->optimizer.beta2 = 0)
CHANGE(epsilon, job->optimizer.epsilon = 0)
CHANGE(decay, job->optimizer.decay = 0)
CHANGE(clip, job->optimizer.clip = 0)
CHANGE(schedule_a, job->optimizer.schedule_a = 0)
CHANGE(schedule_b, job->optimizer.schedule_b = 1)
CHANGE(name, job->tensor[1].name[0] = 'c')
CHANGE(longer_name, job->tensor[1].name[1] = 'b')
CHANGE(count, job->tensor[0].count++)
CHANGE(multiplier, job->tensor[0].rate_multiplier = 3)
CHANGE(tensor_decay, job->tensor[0].decay = 0)
CHANGE(tensor_clip, job->tensor[0].clip = 0)
CHANGE(is_static, job->tensor[2].is_static = false)
CHANGE(fewer, job->tensor_count--)

static void
swap_tensors(struct wf_job *job)
{
	struct wf_job_tensor kept = job->tensor[0];
	job->tensor[0] = job->tensor[1];
	job->tensor[1] = kept;
}

static void
every_field_is_in_one_of_the_two_digests(void **state)
{
	change_fn *const of_job[] = {
		change_trainers,   change_pservers,  change_lanes, change_slice_bytes,
		change_reduce,     change_nonfinite, change_kind,  change_schedule,
		change_rate,       change_momentum,  change_beta1, change_beta2,
		change_epsilon,    change_decay,     change_clip,  change_schedule_a,
		change_schedule_b,
	};
	change_fn *const of_tensors[] = {
		change_name,       change_longer_name,  change_count,
		change_multiplier, change_tensor_decay, change_tensor_clip,
		change_is_static,  change_fewer,        swap_tensors,
	};
	assert_digest_sees(change_nothing, false, false);
	for (size_t i = 0; i < sizeof(of_job) / sizeof(of_job[0]); i++) {
		assert_digest_sees(of_job[i], true, false);
	}
	for (size_t i = 0; i < sizeof(of_tensors) / sizeof(of_tensors[0]); i++) {
		assert_digest_sees(of_tensors[i], false, true);
	}
}

static void
tensors_lie_one_behind_the_other_at_multiples_of_64_bytes(void **state)
{
	struct wf_job_tensor tensor[TENSOR_COUNT];
	struct wf_job job = sample(tensor); /* 13, 1 and 2^40 elements */
	uint64_t offset[TENSOR_COUNT];

	assert_true(wf_layout_offsets(&job, offset) == 128 + (1ull << 42));
	assert_true(offset[0] == 0 && offset[1] == 64 && offset[2] == 128);
	assert_true(wf_layout_bytes(16) == 64);
	assert_true(wf_layout_bytes(17) == 128);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_is_its_golden_bytes),
		cmocka_unit_test(digests_are_the_golden_ones),
		cmocka_unit_test(no_other_length_is_taken),
		cmocka_unit_test(a_count_that_does_not_fit_takes_no_memory),
		cmocka_unit_test(without_memory_nothing_is_decoded),
		cmocka_unit_test(each_wrong_field_in_the_bytes_is_named),
		cmocka_unit_test(a_name_is_printable_short_and_not_empty),
		cmocka_unit_test(a_repeated_name_is_found_wherever_it_stands),
		cmocka_unit_test(the_largest_job_is_taken_and_a_larger_refused),
		cmocka_unit_test(tensors_lie_one_behind_the_other_at_multiples_of_64_bytes),
		cmocka_unit_test(every_field_is_in_one_of_the_two_digests),
	};
	return cmocka_run_group_tests_name("wire job", tests, NULL, NULL);
}
