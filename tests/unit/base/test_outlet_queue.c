/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of an outlet by itself: what comes out, in which batches, and what is counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/outlet_queue.h"

#define QUEUE_BYTES (2 * (WF_OUTLET_LINE_BYTES + WF_OUTLET_HEAD_BYTES))

struct fixture {
	struct wf_outlet_queue queue;
	struct wf_outlet_batch batch;
	char text[QUEUE_BYTES];
	char line[WF_OUTLET_LINE_BYTES];
};

static int
set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	assert_non_null(f);
	f->queue.text = f->text;
	f->queue.bytes = QUEUE_BYTES;
	*state = f;
	return 0;
}

static int
tear_down(void **state)
{
	free(*state);
	return 0;
}

static bool
put(struct fixture *f, char letter, size_t bytes)
{
	memset(f->line, letter, bytes);
	return wf_outlet_queue_put(&f->queue, f->line, bytes);
}

static void
expect_batch(struct fixture *f, uint64_t dropped, uint64_t lines, size_t bytes)
{
	wf_outlet_queue_pop(&f->queue, &f->batch);
	assert_int_equal(f->batch.dropped, dropped);
	assert_int_equal(f->batch.lines, lines);
	assert_int_equal(f->batch.bytes, bytes);
}

static void
lines_come_out_whole_and_in_order(void **state)
{
	struct fixture *f = *state;
	assert_true(wf_outlet_queue_is_empty(&f->queue));
	assert_true(put(f, 'a', 3) && put(f, 'b', 1) && put(f, 'c', 2));
	assert_false(wf_outlet_queue_is_empty(&f->queue));
	expect_batch(f, 0, 3, 6);
	assert_memory_equal(f->batch.text, "aaabcc", 6);
	assert_true(wf_outlet_queue_is_empty(&f->queue));
	expect_batch(f, 0, 0, 0);
}

static void
a_batch_is_what_a_pipe_accepts_and_a_longer_line_goes_alone(void **state)
{
	struct fixture *f = *state;
	assert_true(put(f, 'a', 4000) && put(f, 'b', 96) && put(f, 'c', 1));
	expect_batch(f, 0, 2, 4096);
	expect_batch(f, 0, 1, 1);
	assert_true(put(f, 'd', WF_OUTLET_LINE_BYTES) && put(f, 'e', 1));
	expect_batch(f, 0, 1, WF_OUTLET_LINE_BYTES);
	expect_batch(f, 0, 1, 1);
}

/* Each round leaves the next line at another place, the end of the ring among them. */
static void
lines_go_around_the_end_of_the_ring(void **state)
{
	struct fixture *f = *state;
	for (unsigned i = 0; i < 200; i++) {
		const size_t bytes = 1 + i * 37 % 1000;
		const char letter = (char)('a' + i % 26);
		assert_true(put(f, letter, bytes) && put(f, '.', 5));
		expect_batch(f, 0, 2, bytes + 5);
		for (size_t b = 0; b < bytes; b++) {
			assert_int_equal(f->batch.text[b], letter);
		}
		assert_memory_equal(f->batch.text + bytes, ".....", 5);
	}
	assert_true(wf_outlet_queue_put_at(&f->queue) > 3 * QUEUE_BYTES);
}

static void
what_does_not_fit_is_counted_before_the_line_that_follows(void **state)
{
	struct fixture *f = *state;
	assert_true(put(f, 'a', WF_OUTLET_LINE_BYTES) && put(f, 'b', WF_OUTLET_LINE_BYTES - 100));
	assert_int_equal(wf_outlet_queue_room(&f->queue), 100);
	assert_false(put(f, 'x', 101 - WF_OUTLET_HEAD_BYTES));
	assert_false(put(f, 'x', 2000));
	assert_true(put(f, 'c', 100 - WF_OUTLET_HEAD_BYTES)); /* as much as there is room for */
	assert_int_equal(wf_outlet_queue_room(&f->queue), 0);
	assert_false(put(f, 'x', 1));
	expect_batch(f, 0, 1, WF_OUTLET_LINE_BYTES);
	expect_batch(f, 0, 1, WF_OUTLET_LINE_BYTES - 100);
	expect_batch(f, 2, 1, 100 - WF_OUTLET_HEAD_BYTES);
	expect_batch(f, 1, 0, 0); /* no line came after the last one that was dropped */
	expect_batch(f, 0, 0, 0);
}

static void
a_batch_ends_where_lines_were_dropped(void **state)
{
	struct fixture *f = *state;
	assert_true(put(f, 'a', 1));
	f->queue.dropped = 3;
	assert_true(put(f, 'b', 2));
	expect_batch(f, 0, 1, 1);
	expect_batch(f, 3, 1, 2);
}

static void
done_follows_settle_and_what_was_lost_is_reported_once(void **state)
{
	struct fixture *f = *state;
	assert_true(put(f, 'a', 1) && put(f, 'b', 1));
	const uint64_t end = wf_outlet_queue_put_at(&f->queue);
	assert_int_equal(end, 2 + 2 * WF_OUTLET_HEAD_BYTES);
	expect_batch(f, 0, 2, 2);
	assert_int_equal(wf_outlet_queue_done_at(&f->queue), 0);
	wf_outlet_queue_settle(&f->queue, 2, false);
	assert_int_equal(wf_outlet_queue_done_at(&f->queue), end);
	assert_true(put(f, 'c', 1));
	expect_batch(f, 2, 1, 1);
	wf_outlet_queue_settle(&f->queue, 0, false);
	expect_batch(f, 0, 0, 0);
}

static void
giving_up_empties_the_queue(void **state)
{
	struct fixture *f = *state;
	assert_true(put(f, 'a', 1) && put(f, 'b', 5000));
	expect_batch(f, 0, 1, 1);
	wf_outlet_queue_settle(&f->queue, 1, true);
	assert_true(wf_outlet_queue_is_empty(&f->queue));
	assert_int_equal(wf_outlet_queue_done_at(&f->queue), wf_outlet_queue_put_at(&f->queue));
	assert_int_equal(wf_outlet_queue_room(&f->queue), QUEUE_BYTES);
}

#define queue(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		queue(lines_come_out_whole_and_in_order),
		queue(a_batch_is_what_a_pipe_accepts_and_a_longer_line_goes_alone),
		queue(lines_go_around_the_end_of_the_ring),
		queue(what_does_not_fit_is_counted_before_the_line_that_follows),
		queue(a_batch_ends_where_lines_were_dropped),
		queue(done_follows_settle_and_what_was_lost_is_reported_once),
		queue(giving_up_empties_the_queue),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
