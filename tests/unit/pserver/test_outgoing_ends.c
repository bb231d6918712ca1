/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever fails while a part goes to the disk, and whenever it is given up or closed, nothing of
 * it is left, the reason is there, and the next part is whole. */
#include "tests/unit/pserver/outgoing_bench.h"

#include <semaphore.h>

/* The part has failed, and nothing is left of it. */
static void
assert_failed(struct bench *b, enum weft_status status, const char *why)
{
	assert_int_equal(wf_outgoing_state(b->out), WF_OUTGOING_FAILED);
	const struct wf_error *error = wf_outgoing_failure(b->out);
	assert_int_equal(error->status, status);
	if (strstr(error->text, why) == NULL) {
		fail_msg("\"%s\" is not in \"%s\"", why, error->text);
	}
	assert_int_equal(names_in(b->scene->dir, false), 0);
}

/* After rest the next part is as whole as any. */
static void
assert_next_is_whole(struct bench *b)
{
	plan.nth = 0;
	wf_outgoing_rest(b->out);
	assert_int_equal(wf_outgoing_state(b->out), WF_OUTGOING_IDLE);
	begin(b);
	for (unsigned i = 0; i < 5; i++) {
		assert_true(add(b, 100));
		(void)pump(b);
	}
	assert_int_equal(finish(b), WF_OUTGOING_DURABLE);
	assert_part(b, NULL, 100, 5);
	wf_outgoing_rest(b->out);
}

/* A part of several tasks and several writes of the file. */
static enum wf_outgoing_state
play_part(struct bench *b)
{
	begin(b);
	for (unsigned i = 0; i < 7; i++) {
		assert_true(add(b, 100000));
		(void)pump(b);
		if (wf_outgoing_state(b->out) == WF_OUTGOING_FAILED) {
			return WF_OUTGOING_FAILED;
		}
	}
	return finish(b);
}

static void
a_failing_call_leaves_nothing_and_names_the_reason(void **state)
{
	struct bench b;
	unsigned failures = 0;

	open_bench(&b, *state, wf_outgoing_ring_bytes(100000), 0);
	for (unsigned nth = 1;; nth++) {
		plan.fault = FAIL_ONCE;
		plan.error = ENOSPC;
		plan.nth = nth;
		plan.count = 0;
		enum wf_outgoing_state end = play_part(&b);
		const bool is_over = plan.count < nth;
		if (end == WF_OUTGOING_FAILED) {
			assert_failed(&b, WEFT_IO, strerror(ENOSPC));
			assert_non_null(strstr(wf_outgoing_failure(b.out)->text, b.scene->dir));
			failures++;
		} else { /* the close of a directory may fail unnoticed */
			plan.nth = 0;
			assert_part(&b, NULL, 100000, 7);
		}
		assert_next_is_whole(&b);
		if (is_over) {
			assert_int_equal(end, WF_OUTGOING_DURABLE);
			break;
		}
	}
	/* mkdir, open, sync, create, 3 writes, sync, close, name, sync */
	assert_true(failures >= 11);
	close_bench(&b);
}

static void
a_part_that_has_its_name_already_fails_and_the_other_stays(void **state)
{
	struct bench b;

	open_bench(&b, *state, 1000 * UNIT, 0);
	begin(&b);
	assert_true(add(&b, 77));
	assert_int_equal(finish(&b), WF_OUTGOING_DURABLE);
	wf_outgoing_rest(b.out);
	begin(&b);
	assert_true(add(&b, 88));
	assert_int_equal(finish(&b), WF_OUTGOING_FAILED);
	assert_non_null(strstr(wf_outgoing_failure(b.out)->text, "exists already"));
	assert_int_equal(names_in(at(b.scene, DIRECTORY, ""), false), 1);
	assert_ok(wf_snapshot_remove_parts(b.folder, snap));
	assert_next_is_whole(&b);
	close_bench(&b);
}

static void
without_memory_or_a_helper_nothing_is_left_and_nothing_leaks(void **state)
{
	struct scene *scene = *state;
	struct bench b;

	open_bench(&b, scene, 1000 * UNIT, 0);
	struct wf_outgoing *more = NULL;
	const struct wf_outgoing_opts opts = {.env = &scene->failing.env,
					      .folder = b.folder,
					      .ring_bytes = 4096,
					      .numa_node = -1};
	for (uint64_t nth = 1; nth <= 2; nth++) {
		wf_failing_env_fail(&scene->failing, nth, false);
		assert_int_equal(wf_outgoing_open(&opts, &more), WEFT_NOMEM);
	}
	wf_failing_env_fail(&scene->failing, 1, false);
	begin(&b);
	assert_true(add(&b, 100));
	assert_int_equal(finish(&b), WF_OUTGOING_FAILED);
	wf_failing_env_fail(&scene->failing, 0, false);
	assert_failed(&b, WEFT_NOMEM, PART_NAME);
	assert_next_is_whole(&b);
	begin(&b);
	assert_true(add(&b, 100));
	helper.is_broken = true;
	(void)pump(&b);
	helper.is_broken = false;
	assert_failed(&b, WEFT_NOMEM, "no helper thread");
	assert_next_is_whole(&b);
	close_bench(&b);
}

/* How far a part is that is given up. */
enum stage { NOTHING, ADDED, CLAIMED, WRITTEN, QUEUED, ENDED, STAGES };

static void
bring_to(struct bench *b, enum stage stage)
{
	const struct wf_part_block block = block_of(1, 300000);

	begin(b);
	if (stage >= ADDED) {
		assert_true(add(b, 300000));
	}
	if (stage >= WRITTEN) {
		(void)pump(b);
		assert_true(names_in(b->scene->dir, false) == 1);
		assert_true(add(b, 300000));
	}
	if (stage == CLAIMED) {
		assert_non_null(wf_outgoing_claim(b->out, &block));
	}
	if (stage == QUEUED) {
		helper.holds = true;
		(void)pump(b);
		assert_non_null(helper.held);
	}
	if (stage == ENDED) {
		wf_outgoing_end(b->out);
	}
}

static void
a_part_that_is_given_up_leaves_nothing(void **state)
{
	struct bench b;

	open_bench(&b, *state, 1u << 20, 0);
	for (enum stage stage = NOTHING; stage < STAGES; stage++) {
		bring_to(&b, stage);
		wf_outgoing_give_up(b.out);
		assert_int_equal(wf_outgoing_state(b.out), WF_OUTGOING_ENDING);
		if (helper.held != NULL) {
			(void)pump(&b); /* it waits for the task */
			assert_int_equal(wf_outgoing_state(b.out), WF_OUTGOING_ENDING);
			run_held();
			helper.holds = false;
		}
		(void)pump(&b);
		(void)pump(&b);
		assert_failed(&b, WEFT_CLOSED, "given up");
		wf_outgoing_give_up(b.out); /* it is no more than that */
		assert_failed(&b, WEFT_CLOSED, "given up");
		assert_next_is_whole(&b);
	}
	close_bench(&b);
}

static void
close_leaves_nothing_of_a_part_that_is_not_durable(void **state)
{
	for (enum stage stage = NOTHING; stage < STAGES; stage++) {
		struct bench b;
		open_bench(&b, *state, 1u << 20, 0);
		bring_to(&b, stage);
		const bool is_held = helper.held != NULL;
		close_bench(&b);
		assert_int_equal(helper.waits > 0, is_held);
		assert_int_equal(names_in(b.scene->dir, false), 0);
	}
	wf_outgoing_close(NULL);
}

static void
close_keeps_a_part_that_is_durable(void **state)
{
	struct bench b;
	struct wf_part_head head;
	struct wf_part_sum sum;

	open_bench(&b, *state, 1000 * UNIT, 0);
	begin(&b);
	assert_true(add(&b, 100));
	assert_int_equal(finish(&b), WF_OUTGOING_DURABLE);
	close_bench(&b);
	assert_ok(wf_part_check(&b.scene->failing.env, wf_saved_posix(),
				at(b.scene, DIRECTORY, PART_NAME), &head, &sum));
	assert_int_equal(sum.blocks, 1);
}

/* ---- with the system's helper thread ---- */

static sem_t entered, leave;

/* The write of the helper thread, which does not end before somebody waits for it. */
static ssize_t
slow_write(int fd, const void *bytes, size_t count)
{
	WF_ASSERT(sem_post(&entered) == 0 && sem_wait(&leave) == 0);
	return wf_saved_posix()->write(fd, bytes, count);
}

static void
post_and_wait(struct wf_env *env, int fd, uint64_t deadline_ns)
{
	struct wf_failing_env *failing = (struct wf_failing_env *)env;

	if (helper.waits++ == 0) {
		assert_int_equal(sem_post(&leave), 0);
	}
	helper.now_ns = deadline_ns;
	wf_wait(failing->inner, fd, wf_now_ns(failing->inner) + WF_NS_PER_MS);
}

static enum weft_status
inner_submit(struct wf_env *env, struct wf_task *task)
{
	struct wf_failing_env *failing = (struct wf_failing_env *)env;

	return failing->inner->ops->submit(failing->inner, task);
}

static void
close_waits_for_the_task_that_runs(void **state)
{
	struct wf_saved_calls calls = *sound();
	struct bench b;

	assert_int_equal(sem_init(&entered, 0, 0), 0);
	assert_int_equal(sem_init(&leave, 0, 0), 0);
	open_bench(&b, *state, 1u << 20, 0);
	calls.write = slow_write;
	b.folder->calls = &calls;
	b.ops.submit = inner_submit;
	b.ops.wait = post_and_wait;
	begin(&b);
	assert_true(add(&b, 300000));
	(void)pump(&b);
	assert_int_equal(sem_wait(&entered), 0); /* the thread is in the middle of the file */
	assert_int_equal(names_in(b.scene->dir, false), 1);
	close_bench(&b);
	assert_true(helper.waits > 0);
	assert_int_equal(names_in(b.scene->dir, false), 0);
	assert_int_equal(sem_destroy(&entered), 0);
	assert_int_equal(sem_destroy(&leave), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SCENE(a_failing_call_leaves_nothing_and_names_the_reason),
		WITH_SCENE(a_part_that_has_its_name_already_fails_and_the_other_stays),
		WITH_SCENE(without_memory_or_a_helper_nothing_is_left_and_nothing_leaks),
		WITH_SCENE(a_part_that_is_given_up_leaves_nothing),
		WITH_SCENE(close_leaves_nothing_of_a_part_that_is_not_durable),
		WITH_SCENE(close_keeps_a_part_that_is_durable),
		WITH_SCENE(close_waits_for_the_task_that_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
