/* SPDX-License-Identifier: Apache-2.0 */
/* outgoing_bench: one part of a snapshot on its way through a ring. The clock is the test's, tasks
 * run when the test wants it, and system calls fail (tests/unit/saved/faulty.h). What was put in is
 * compared with what is on the disk. Thread: the test's. */
#pragma once

#include "tests/unit/saved/faulty.h"

#include <stdatomic.h>

#include "pserver/outgoing.h"
#include "wire/head.h"

#define UNIT 64u /* of the ring: a record is a description of one and a payload of whole ones */
#define PART_NAME "dense-1"
#define DIRECTORY "epoch-00003-step-0000000180"

static const struct wf_snapshot_id snap = {.epoch = 3, .step = 180};
static const struct wf_part_head lane_1 = {
	.service = WF_SERVICE_DENSE,
	.lane = 1,
	.lane_count = 4,
	.epoch = 3,
	.step = 180,
	.job_digest = 0x0123456789abcdef,
};

/* The env's clock and helper thread. */
static struct {
	uint64_t now_ns;
	bool holds;           /* tasks wait for run_held, or for somebody who waits for them */
	bool is_broken;       /* there is no helper thread */
	struct wf_task *held; /* one at a time */
	unsigned waits, tasks;
} helper;

static inline void
run_held(void)
{
	struct wf_task *task = helper.held;

	assert_non_null(task);
	helper.held = NULL;
	task->run(task);
	atomic_store_explicit(&task->done, true, memory_order_release);
}

static inline uint64_t
own_now_ns(struct wf_env *env)
{
	(void)env;
	return helper.now_ns;
}

static inline enum weft_status
own_submit(struct wf_env *env, struct wf_task *task)
{
	(void)env;
	assert_null(helper.held);
	if (helper.is_broken) {
		return wf_fail(WEFT_NOMEM, "no helper thread");
	}
	helper.tasks++;
	helper.held = task;
	if (!helper.holds) {
		run_held();
	}
	return WEFT_OK;
}

static inline void
own_wait(struct wf_env *env, int fd, uint64_t deadline_ns)
{
	(void)env;
	(void)fd;
	helper.waits++;
	helper.now_ns = deadline_ns;
	if (helper.held != NULL) {
		run_held();
	}
}

/* What a test works with. */
struct bench {
	struct scene *scene;
	struct wf_env_ops ops; /* of scene->failing.env, over these: */
	const struct wf_env_ops *inner;
	struct wf_saved_folder *folder;
	struct wf_outgoing *out;
	uint64_t blocks; /* that were added */
};

static inline void
open_bench(struct bench *b, struct scene *scene, uint64_t ring_bytes, uint64_t rate)
{
	const struct wf_saved_place place = place_of(scene, sound());

	*b = (struct bench){.scene = scene, .inner = scene->failing.env.ops};
	b->ops = *b->inner;
	memset(&helper, 0, sizeof(helper));
	helper.now_ns = 1000 * WF_NS_PER_S;
	b->ops.now_ns = own_now_ns;
	b->ops.submit = own_submit;
	b->ops.wait = own_wait;
	scene->failing.env.ops = &b->ops;
	assert_ok(wf_snapshot_folder_open(&place, &b->folder));
	const struct wf_outgoing_opts opts = {.env = &scene->failing.env,
					      .folder = b->folder,
					      .ring_bytes = ring_bytes,
					      .rate = rate,
					      .numa_node = -1};
	assert_ok(wf_outgoing_open(&opts, &b->out));
}

static inline void
close_bench(struct bench *b)
{
	wf_outgoing_close(b->out);
	b->folder->calls = sound();
	wf_saved_folder_close(b->folder);
	b->scene->failing.env.ops = b->inner;
	assert_null(helper.held);
}

static inline void
begin(struct bench *b)
{
	b->blocks = 0;
	wf_outgoing_begin(b->out, snap, PART_NAME, &lane_1);
	assert_int_equal(wf_outgoing_state(b->out), WF_OUTGOING_OPEN);
}

static inline uint64_t
pump(struct bench *b)
{
	return wf_outgoing_pump(b->out, helper.now_ns);
}

static inline struct wf_part_block
block_of(uint64_t number, uint64_t bytes)
{
	return (struct wf_part_block){.kind = 1 + (uint32_t)(number % 5),
				      .item = (uint32_t)(number * 7),
				      .first = number * 1000,
				      .count = number % 91,
				      .bytes = bytes};
}

/* Byte `at` of the payload of block `number`. */
static inline uint8_t
byte_of(uint64_t number, uint64_t at)
{
	return (uint8_t)(number * 131 + at * 7 + (at >> 8));
}

/* Adds a block, if there is room. */
static inline bool
add(struct bench *b, uint64_t bytes)
{
	const struct wf_part_block block = block_of(b->blocks, bytes);
	uint8_t *payload = wf_outgoing_claim(b->out, &block);

	if (payload == NULL) {
		return false;
	}
	assert_int_equal((uintptr_t)payload % UNIT, 0);
	for (uint64_t i = 0; i < bytes; i++) {
		payload[i] = byte_of(b->blocks, i);
	}
	wf_outgoing_add(b->out);
	b->blocks++;
	return true;
}

/* Ends the part, and lets all be written. */
static inline enum wf_outgoing_state
finish(struct bench *b)
{
	wf_outgoing_end(b->out);
	for (unsigned i = 0; i < 100000 && wf_outgoing_state(b->out) == WF_OUTGOING_ENDING; i++) {
		helper.now_ns = pump(b);
		if (helper.held != NULL) {
			run_held();
		}
	}
	return wf_outgoing_state(b->out);
}

/* The part is durable, and has `count` blocks with the bytes that were put in; the payload of block
 * i has bytes[i], or `always` where that is NULL. The snapshot is removed afterwards. */
static inline void
assert_part(struct bench *b, const uint64_t *bytes, uint64_t always, uint64_t count)
{
	struct wf_part_reader *reader = NULL;
	struct wf_part_block block;
	static uint8_t payload[1u << 20];

	assert_int_equal(wf_outgoing_state(b->out), WF_OUTGOING_DURABLE);
	assert_int_equal(names_in(at(b->scene, DIRECTORY, ""), false), 1);
	assert_ok(wf_part_open(&b->scene->failing.env, wf_saved_posix(),
			       at(b->scene, DIRECTORY, PART_NAME), &reader));
	assert_memory_equal(wf_part_head(reader), &lane_1, sizeof(lane_1));
	for (uint64_t i = 0; i < count; i++) {
		const struct wf_part_block want = block_of(i, bytes != NULL ? bytes[i] : always);
		assert_ok(wf_part_next(reader, &block));
		assert_memory_equal(&block, &want, sizeof(want));
		assert_true(block.bytes <= sizeof(payload));
		assert_ok(wf_part_read(reader, payload, (size_t)block.bytes));
		for (uint64_t k = 0; k < block.bytes; k++) {
			if (payload[k] != byte_of(i, k)) {
				fail_msg("byte %llu of block %llu is another one",
					 (unsigned long long)k, (unsigned long long)i);
			}
		}
	}
	assert_int_equal(wf_part_next(reader, &block), WEFT_CLOSED);
	const struct wf_part_sum sum = wf_outgoing_sum(b->out);
	const struct wf_part_sum read = wf_part_sum(reader);
	assert_int_equal(sum.bytes, read.bytes);
	assert_int_equal(sum.blocks, count);
	assert_int_equal(sum.crc, read.crc);
	wf_part_close(reader);
	assert_ok(wf_snapshot_remove_parts(b->folder, snap));
}
