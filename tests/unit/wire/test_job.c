/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of wire/job. */
#include <math.h>
#include <stdio.h>

#include "tests/unit/wire/golden.h"
#include "tests/unit/wire/heap_env.h"
#include "tests/unit/wire/refused.h"
#include "base/settings.h"
#include "wire/layout.h"

#define FIXED_BYTES 185
#define COUNT_AT (FIXED_BYTES - 4)
#define MODE_AT (FIXED_BYTES - 83)
#define RHO_AT (FIXED_BYTES - 58)
#define SEGMENTS_AT FIXED_BYTES /* two */
#define TENSOR_AT (SEGMENTS_AT + 32)
#define SAMPLE_BYTES (TENSOR_AT + 3 * 60 + 7)
#define TENSOR_COUNT 3

/* `tensor` has TENSOR_COUNT entries and keeps the tensors. */
static struct wf_job
sample(struct wf_job_tensor *tensor)
{
	memset(tensor, 0, TENSOR_COUNT * sizeof(*tensor));
	tensor[0] = (struct wf_job_tensor){
		.name = "w", .count = 13, .rate_multiplier = 1, .decay = -1, .clip = -1, .l1 = -1};
	tensor[1] = (struct wf_job_tensor){.name = "b",
					   .count = 1,
					   .rate_multiplier = 2,
					   .decay = 0,
					   .clip = 0.5,
					   .mode = WEFT_TENSOR_BOUNDED,
					   .staleness = 2,
					   .discard_ratio = 2.5,
					   .priority = -7};
	tensor[2] = (struct wf_job_tensor){.name = "scale", .count = 1ull << 40, .is_static = true};
	return (struct wf_job){
		.pserver_count = 3,
		.set = {.num_gradient_servers = 2,
			.ports_num = 4,
			.slice_bytes = 262144,
			.grad_reduce = WEFT_REDUCE_MEAN,
			.skip_nonfinite = 7, /* true, as in C; it travels as 1 */
			.optimizer = {.learning_rate = 0.1,
				      .momentum = 0.9,
				      .beta1 = 0.8,
				      .beta2 = 0.999,
				      .epsilon = 1e-8,
				      .decay = 1e-4,
				      .clip = 10,
				      .schedule_a = 1e-3,
				      .schedule_b = -0.0,
				      .rho = 0.95,
				      .l1 = 1e-5,
				      .average_window = 0.5,
				      .max_average_window = 1000,
				      .first_pass = 3,
				      .clip_norm = 5},
			.dense_mode = WEFT_DENSE_BOUNDED,
			.dense_staleness = 3,
			.dense_discard_ratio = 1.5,
			.dense_wire = WEFT_WIRE_F16,
			.dense_rounding = WEFT_ROUND_STOCHASTIC},
		.method = {.kind = 2,
			   .schedule = 1,
			   .segment = {{100, 1}, {200, 0.5}},
			   .segment_count = 2},
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
				    4 * sizeof(double));
		assert_int_equal(a->tensor[i].is_static, b->tensor[i].is_static);
		assert_int_equal(a->tensor[i].is_reduced, b->tensor[i].is_reduced);
		assert_int_equal(a->tensor[i].mode, b->tensor[i].mode);
		assert_int_equal(a->tensor[i].staleness, b->tensor[i].staleness);
		assert_true(a->tensor[i].discard_ratio == b->tensor[i].discard_ratio);
		assert_int_equal(a->tensor[i].priority, b->tensor[i].priority);
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
	assert_int_equal(count, SAMPLE_BYTES);
	wf_job_encode(&in, bytes);
	assert_int_equal(golden_check("job_description", bytes, count, held), count);
	assert_int_equal(wf_job_decode(&heap.env, held, count, &out), WEFT_OK);
	assert_true(out.set.num_gradient_servers == 2 && out.pserver_count == 3 &&
		    out.set.ports_num == 4);
	assert_true(out.set.slice_bytes == 262144);
	assert_int_equal(out.set.grad_reduce, WEFT_REDUCE_MEAN);
	assert_int_equal(out.set.skip_nonfinite, 1);
	assert_memory_equal(&out.set.optimizer, &in.set.optimizer, sizeof(in.set.optimizer));
	assert_memory_equal(&out.method, &in.method, sizeof(in.method));
	assert_same_tensors(&in, &out);
	wf_job_fini(&heap.env, &out);
	assert_null(out.tensor);
	assert_int_equal(heap.out_bytes, 0);
	wf_job_fini(&heap.env, &out); /* zeroed: nothing to do */
}

/* The table of settings has places for some, job.c for others. */
static void
each_byte_in_front_of_the_segments_has_one_place(void **state)
{
	static const struct {
		unsigned at, bytes;
	} other[] = {{4, 4}, {22, 4}, {26, 4}, {177, 4}, {181, 4}};
	uint8_t map[185] = {0};
	unsigned count = 0;
	const struct wf_option *table = wf_settings_rows(WEFT_SETTINGS_SESSION, &count);

	for (unsigned i = 0; i < count; i++) {
		for (unsigned k = 0; k < table[i].wire.bytes; k++) {
			assert_true(table[i].wire.at + k < sizeof(map));
			map[table[i].wire.at + k]++;
		}
	}
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		for (unsigned k = 0; k < other[i].bytes; k++) {
			map[other[i].at + k]++;
		}
	}
	for (size_t i = 0; i < sizeof(map); i++) {
		assert_int_equal(map[i], 1);
	}
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
	struct wf_job out = {.pserver_count = 99};
	uint8_t bytes[GOLDEN_BYTES_MAX] = {0};
	size_t count = wf_job_encoded_bytes(&in);

	wf_job_encode(&in, bytes);
	for (size_t n = 0; n < count; n++) {
		assert_refused(wf_job_decode(&heap.env, bytes, n, &out), WEFT_PROTOCOL, "job: ");
	}
	assert_refused(wf_job_decode(&heap.env, bytes, count + 1, &out), WEFT_PROTOCOL,
		       "its fields take 404 bytes, but it has 405");
	assert_refused(wf_job_decode(&heap.env, bytes, WF_JOB_BYTES_MAX + 1, &out), WEFT_PROTOCOL,
		       "its length is 16777217");
	assert_int_equal(heap.out_bytes, 0);
	assert_true(out.pserver_count == 99);
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
		{COUNT_AT, 4, 0, "its fields take 217 bytes, but it has 404"},
		{COUNT_AT, 4, 65537, "the number of tensors is 65537"},
		{COUNT_AT, 4, UINT32_MAX, "the number of tensors is 4294967295"},
		{COUNT_AT, 4, 65536, "names 65536 tensors, its 404 bytes hold 3 at most"},
		{COUNT_AT, 4, 4, "names 4 tensors"},
	};
	for (size_t i = 0; i < sizeof(patch) / sizeof(patch[0]); i++) {
		wf_job_encode(&in, bytes);
		patch_apply(&patch[i], bytes);
		assert_refused(wf_job_decode(&heap.env, bytes, SAMPLE_BYTES, &out), WEFT_PROTOCOL,
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
	assert_refused(wf_job_decode(&heap.env, bytes, SAMPLE_BYTES, &out), WEFT_NOMEM,
		       "no memory for 3 tensors");
}

static void
refuse_each(const struct patch *patch, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct heap_env heap = heap_env_make();
		struct wf_job_tensor tensor[TENSOR_COUNT];
		struct wf_job in = sample(tensor);
		struct wf_job out;
		uint8_t bytes[GOLDEN_BYTES_MAX];
		wf_job_encode(&in, bytes);
		patch_apply(&patch[i], bytes);
		assert_refused(wf_job_decode(&heap.env, bytes, SAMPLE_BYTES, &out), WEFT_PROTOCOL,
			       patch[i].text);
		assert_int_equal(heap.out_bytes, 0);
	}
}

#define NAN_BITS 0x7ff8000000000000ull
#define INF_BITS 0x7ff0000000000000ull

static void
each_wrong_field_in_the_bytes_is_named(void **state)
{
	static const struct patch patch[] = {
		{0, 4, 0, "num_gradient_servers 0: must be"},
		{0, 4, 65537, "num_gradient_servers 65537: must be"},
		{4, 4, 0, "0 pservers"},
		{4, 4, 0x40000001, "1073741825 pservers"}, /* times 4: 4 in 32 bits */
		{8, 4, 0, "ports_num 0"},
		{8, 4, 65536, "ports_num 65536"},
		{12, 8, 0, "slice_bytes 0: must be"},
		{12, 8, 96, "slice_bytes 96: must be"},
		{12, 8, (64u << 20) + 64, "slice_bytes 67108928: must be"},
		{20, 1, 2, "grad_reduce 2: must be one of sum|mean"},
		{21, 1, 255, "skip_nonfinite is 255, must be 0 or 1"},
		{30, 8, NAN_BITS, "learning_rate nan: must be"},
		{38, 8, INF_BITS, "momentum inf: must be"},
		{46, 8, NAN_BITS, "beta1"},
		{54, 8, NAN_BITS, "beta2"},
		{62, 8, NAN_BITS, "epsilon"},
		{70, 8, INF_BITS | 1ull << 63, "decay -inf: must be"},
		{78, 8, NAN_BITS, "clip"},
		{86, 8, NAN_BITS, "schedule_a"},
		{94, 8, INF_BITS, "schedule_b"},
		{MODE_AT, 1, 5, "dense_mode 5: must be one of"},
		{MODE_AT, 1, 0,
		 "dense_staleness=3 with dense_mode=sync: it goes with dense_mode=bounded"},
		{MODE_AT + 1, 4, 0,
		 "dense_staleness=0 with dense_mode=bounded: it must be above 0"},
		{MODE_AT + 5, 8, NAN_BITS, "dense_discard_ratio nan: must be"},
		{MODE_AT + 5, 8, INF_BITS, "dense_discard_ratio inf: must be"},
		{MODE_AT + 13, 4, 1, "local_steps=1 with dense_mode=bounded: it goes with"},
		{MODE_AT + 17, 8, NAN_BITS, "elastic_rate nan: must be"},
		{RHO_AT, 8, NAN_BITS, "rho nan: must be"},
		{RHO_AT + 8, 8, INF_BITS, "l1 inf: must be"},
		{RHO_AT + 16, 8, NAN_BITS, "average_window nan: must be"},
		{RHO_AT + 40, 8, INF_BITS, "clip_norm inf: must be"},
		{RHO_AT + 48, 1, 3, "dense_wire 3: must be one of f32|bf16|f16"},
		{RHO_AT + 48, 1, 0, "dense_rounding=stochastic: f32 is not rounded"},
		{RHO_AT + 49, 1, 2, "dense_rounding 2: must be one of"},
		{RHO_AT + 50, 4, 33, "the number of segments is 33, must be at most 32"},
		{RHO_AT + 50, 4, UINT32_MAX, "the number of segments is 4294967295"},
		{RHO_AT + 50, 4, 32, "it ends early, after 404 bytes"},
		{SEGMENTS_AT + 8, 8, NAN_BITS, "factor of segment 0 is nan"},
		{SEGMENTS_AT + 24, 8, INF_BITS, "factor of segment 1 is inf"},
	};
	refuse_each(patch, sizeof(patch) / sizeof(patch[0]));
}

static void
each_wrong_field_of_a_tensor_is_named(void **state)
{
	static const struct patch patch[] = {
		{TENSOR_AT, 8, 0, "tensor w: count is 0"},
		{TENSOR_AT, 8, (1ull << 40) + 1, "tensor w: count is 1099511627777"},
		{TENSOR_AT + 8, 8, NAN_BITS, "tensor w: rate_multiplier is nan"},
		{TENSOR_AT + 16, 8, INF_BITS, "tensor w: decay is inf"},
		{TENSOR_AT + 24, 8, NAN_BITS, "tensor w: clip"},
		{TENSOR_AT + 32, 8, NAN_BITS, "tensor w: l1"},
		{TENSOR_AT + 40, 1, 4, "kind of a tensor is 4, must be 0 to 3"},
		{TENSOR_AT + 40, 1, 3, "tensor w: a piece of 13 elements"},
		{TENSOR_AT + 40, 1, 2, "tensor w: is_reduced: with clip_norm"},
		{TENSOR_AT + 41, 1, 4, "mode of a tensor is 4"},
		{TENSOR_AT + 41, 1, 3, "tensor w: staleness is 0, must be above 0 with"},
		{TENSOR_AT + 42, 4, 1, "tensor w: staleness 1: it goes with"},
		{TENSOR_AT + 46, 8, NAN_BITS, "tensor w: discard_ratio nan: it goes with"},
		{TENSOR_AT + 46, 8, 1, "tensor w: discard_ratio 4.94065646e-324: it goes with"},
		{TENSOR_AT + 60 + 60 + 1 + 1 + 41, 1, 2, "tensor scale: mode async: it is static"},
		{TENSOR_AT + 58, 2, 128, "name of a tensor"},
		{TENSOR_AT + 60, 1, ' ', "byte 0 of its name is 0x20"},
		{TENSOR_AT + 60, 1, 0, "name of a tensor"},
		{TENSOR_AT + 60, 1, 0xc3, "name of a tensor"},
		{TENSOR_AT + 60, 1, 'b', "tensor b: two tensors have this name"},
	};
	refuse_each(patch, sizeof(patch) / sizeof(patch[0]));
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
CHANGE(trainers, job->set.num_gradient_servers++)
CHANGE(pservers, job->pserver_count++)
CHANGE(lanes, job->set.ports_num++)
CHANGE(slice_bytes, job->set.slice_bytes += 64)
CHANGE(reduce, job->set.grad_reduce = WEFT_REDUCE_SUM)
CHANGE(nonfinite, job->set.skip_nonfinite = 0)
CHANGE(kind, job->method.kind++)
CHANGE(schedule, job->method.schedule++)
CHANGE(rate, job->set.optimizer.learning_rate = nextafter(0.1, 1))
CHANGE(momentum, job->set.optimizer.momentum = 0)
CHANGE(beta1, job->set.optimizer.beta1 = 0)
CHANGE(beta2, job->set.optimizer.beta2 = 0)
CHANGE(epsilon, job->set.optimizer.epsilon = 0)
CHANGE(decay, job->set.optimizer.decay = 0)
CHANGE(clip, job->set.optimizer.clip = 0)
CHANGE(schedule_a, job->set.optimizer.schedule_a = 0)
CHANGE(schedule_b, job->set.optimizer.schedule_b = 1)
CHANGE(rho, job->set.optimizer.rho = 0)
CHANGE(l1, job->set.optimizer.l1 = 0)
CHANGE(window, job->set.optimizer.average_window = 0)
CHANGE(average_max, job->set.optimizer.max_average_window++)
CHANGE(first_pass, job->set.optimizer.first_pass++)
CHANGE(clip_norm, job->set.optimizer.clip_norm = 0)
CHANGE(until, job->method.segment[1].until++)
CHANGE(factor, job->method.segment[1].factor = 0)
CHANGE(segments, job->method.segment_count--)
CHANGE(wire, job->set.dense_wire = WEFT_WIRE_BF16)
CHANGE(rounding, job->set.dense_rounding = WEFT_ROUND_NEAREST)
CHANGE(name, job->tensor[1].name[0] = 'c')
CHANGE(longer_name, job->tensor[1].name[1] = 'b')
CHANGE(count, job->tensor[0].count++)
CHANGE(multiplier, job->tensor[0].rate_multiplier = 3)
CHANGE(tensor_decay, job->tensor[0].decay = 0)
CHANGE(tensor_clip, job->tensor[0].clip = 0)
CHANGE(tensor_l1, job->tensor[0].l1 = 0)
CHANGE(is_static, job->tensor[2].is_static = false)
CHANGE(is_reduced, job->tensor[0].is_reduced = true)
CHANGE(tensor_mode, job->tensor[0].mode = WEFT_TENSOR_SYNC)
CHANGE(tensor_staleness, job->tensor[1].staleness++)
CHANGE(tensor_ratio, job->tensor[1].discard_ratio = 0)
CHANGE(tensor_priority, job->tensor[1].priority = 7)
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
		change_trainers,    change_pservers,   change_lanes, change_slice_bytes,
		change_reduce,      change_nonfinite,  change_kind,  change_schedule,
		change_rate,        change_momentum,   change_beta1, change_beta2,
		change_epsilon,     change_decay,      change_clip,  change_schedule_a,
		change_schedule_b,  change_rho,        change_l1,    change_window,
		change_average_max, change_first_pass, change_until, change_factor,
		change_segments,    change_clip_norm,  change_wire,  change_rounding,
	};
	change_fn *const of_tensors[] = {
		change_name,         change_longer_name,     change_count,
		change_multiplier,   change_tensor_decay,    change_tensor_clip,
		change_tensor_l1,    change_is_static,       change_fewer,
		swap_tensors,        change_tensor_mode,     change_tensor_staleness,
		change_tensor_ratio, change_tensor_priority, change_is_reduced,
	};
	assert_digest_sees(change_nothing, false, false);
	for (size_t i = 0; i < sizeof(of_job) / sizeof(of_job[0]); i++) {
		assert_digest_sees(of_job[i], true, false);
	}
	for (size_t i = 0; i < sizeof(of_tensors) / sizeof(of_tensors[0]); i++) {
		assert_digest_sees(of_tensors[i], false, true);
	}
}

/* A tensor has the terms of the job, or its own; a static one lags in no job. */
static void
terms_are_the_tensors_own_or_the_jobs(void **state)
{
	struct wf_job_tensor tensor[TENSOR_COUNT];
	struct wf_job job = sample(tensor);
	struct wf_job_terms terms = wf_job_terms_of(&job, &tensor[0]);

	assert_int_equal(terms.mode, WEFT_DENSE_BOUNDED);
	assert_true(terms.staleness == 3 && terms.discard_ratio == 1.5);
	terms = wf_job_terms_of(&job, &tensor[1]);
	assert_int_equal(terms.mode, WEFT_DENSE_BOUNDED);
	assert_true(terms.staleness == 2 && terms.discard_ratio == 2.5);
	terms = wf_job_terms_of(&job, &tensor[2]);
	assert_int_equal(terms.mode, WEFT_DENSE_SYNC);
	assert_ptr_equal(wf_job_first_lagging(&job), &tensor[0]);
	tensor[0].mode = WEFT_TENSOR_SYNC;
	assert_ptr_equal(wf_job_first_lagging(&job), &tensor[1]);
	tensor[1].mode = WEFT_TENSOR_SYNC;
	assert_null(wf_job_first_lagging(&job));
}

/* Its kind has a value of its own where a tensor says whether it is static. */
static void
a_reduced_tensor_is_synchronous_in_every_job(void **state)
{
	struct heap_env heap = heap_env_make();
	struct wf_job_tensor tensor[TENSOR_COUNT];
	struct wf_job job = sample(tensor);
	uint8_t bytes[GOLDEN_BYTES_MAX];
	uint8_t held[GOLDEN_BYTES_MAX];
	struct wf_job out;

	job.set.optimizer.clip_norm = 0;
	job.set.dense_wire = WEFT_WIRE_F32;
	job.set.dense_rounding = WEFT_ROUND_NEAREST;
	tensor[0].is_reduced = true;
	assert_int_equal(wf_job_check(&job), WEFT_OK);
	assert_int_equal(wf_job_terms_of(&job, &tensor[0]).mode, WEFT_DENSE_SYNC);
	assert_false(wf_job_has_state(&tensor[0]) || wf_job_has_state(&tensor[2]));
	assert_true(wf_job_has_state(&tensor[1]));
	wf_job_encode(&job, bytes);
	assert_int_equal(golden_check("job_reduced", bytes, SAMPLE_BYTES, held), SAMPLE_BYTES);
	assert_int_equal(held[TENSOR_AT + 40], 2);
	assert_int_equal(held[TENSOR_AT + 60 + 60 + 1 + 1 + 40], 1); /* the static one */
	assert_int_equal(wf_job_decode(&heap.env, held, SAMPLE_BYTES, &out), WEFT_OK);
	assert_same_tensors(&job, &out);
	wf_job_fini(&heap.env, &out);
}

static void
assert_not_reduced(struct wf_job job, const char *why)
{
	struct wf_job_tensor tensor[TENSOR_COUNT];

	memcpy(tensor, job.tensor, sizeof(tensor));
	job.tensor = tensor;
	job.set.optimizer.clip_norm = why[0] == 'c' ? 5 : 0;
	job.set.dense_wire = why[0] == 'r' ? WEFT_WIRE_BF16 : WEFT_WIRE_F32;
	job.set.dense_rounding = WEFT_ROUND_NEAREST;
	assert_refused(wf_job_check(&job), WEFT_INVALID, "tensor w: is_reduced: ");
	assert_refused(wf_job_check(&job), WEFT_INVALID, why);
}

static void
a_reduced_tensor_is_no_part_of_what_cannot_be_reduced(void **state)
{
	struct wf_job_tensor tensor[TENSOR_COUNT];
	struct wf_job job = sample(tensor);

	tensor[0].is_reduced = true;
	assert_not_reduced(
		job, "clip_norm the gradient is of all tensors in one step; leave is_reduced 0");
	assert_not_reduced(job, "results would be rounded");
	tensor[0].is_static = true;
	assert_not_reduced(job, "it is static, and never pushed");
	tensor[0].is_static = false;
	tensor[0].mode = WEFT_TENSOR_SYNC;
	assert_not_reduced(job, "in any mode; leave mode 0");
	tensor[0].mode = WEFT_TENSOR_AS_SESSION;
	job.set.dense_mode = WEFT_DENSE_LOCAL;
	job.set.local_steps = 2;
	job.set.dense_staleness = 0;
	job.set.dense_discard_ratio = 0;
	assert_not_reduced(job, "exchange what they have moved");
}

static void
local_steps_leave_no_tensor_a_mode_of_its_own(void **state)
{
	struct wf_job_tensor tensor[TENSOR_COUNT];
	struct wf_job job = sample(tensor);

	job.set.dense_mode = WEFT_DENSE_LOCAL;
	job.set.local_steps = 2;
	job.set.dense_staleness = 0;
	job.set.dense_discard_ratio = 0;
	assert_refused(wf_job_check(&job), WEFT_INVALID,
		       "tensor b: mode bounded: with dense_mode=local");
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
		cmocka_unit_test(each_byte_in_front_of_the_segments_has_one_place),
		cmocka_unit_test(digests_are_the_golden_ones),
		cmocka_unit_test(no_other_length_is_taken),
		cmocka_unit_test(a_count_that_does_not_fit_takes_no_memory),
		cmocka_unit_test(without_memory_nothing_is_decoded),
		cmocka_unit_test(each_wrong_field_in_the_bytes_is_named),
		cmocka_unit_test(each_wrong_field_of_a_tensor_is_named),
		cmocka_unit_test(a_name_is_printable_short_and_not_empty),
		cmocka_unit_test(a_repeated_name_is_found_wherever_it_stands),
		cmocka_unit_test(the_largest_job_is_taken_and_a_larger_refused),
		cmocka_unit_test(tensors_lie_one_behind_the_other_at_multiples_of_64_bytes),
		cmocka_unit_test(terms_are_the_tensors_own_or_the_jobs),
		cmocka_unit_test(a_reduced_tensor_is_synchronous_in_every_job),
		cmocka_unit_test(a_reduced_tensor_is_no_part_of_what_cannot_be_reduced),
		cmocka_unit_test(local_steps_leave_no_tensor_a_mode_of_its_own),
		cmocka_unit_test(every_field_is_in_one_of_the_two_digests),
	};
	return cmocka_run_group_tests_name("wire job", tests, NULL, NULL);
}
