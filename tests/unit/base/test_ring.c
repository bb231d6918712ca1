/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of ring: limits on one thread, order and content across two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "base/ring.h"
#include "tests/support/failing_env.h"

static struct wf_env *env;

static int
set_up(void **state)
{
	return wf_env_system_create(WF_LOG_ERROR, -1, &env) == WEFT_OK ? 0 : -1;
}

static int
tear_down(void **state)
{
	wf_env_system_destroy(env);
	return 0;
}

static void
a_ring_takes_exactly_its_number_of_items(void **state)
{
	struct wf_ring *ring = NULL;
	uint32_t item = 0;
	assert_int_equal(wf_ring_create(env, 4, sizeof(item), &ring), WEFT_OK);
	assert_true(wf_ring_is_empty(ring));
	assert_false(wf_ring_pop(ring, &item));
	/* Round and round: the places are used again and again. */
	for (uint32_t round = 0; round < 10; round++) {
		for (uint32_t i = 0; i < 4; i++) {
			item = round * 4 + i;
			assert_true(wf_ring_push(ring, &item));
			assert_false(wf_ring_is_empty(ring));
		}
		assert_false(wf_ring_push(ring, &item));
		for (uint32_t i = 0; i < 4; i++) {
			assert_true(wf_ring_pop(ring, &item));
			assert_int_equal(item, round * 4 + i);
		}
		assert_false(wf_ring_pop(ring, &item));
		assert_true(wf_ring_is_empty(ring));
	}
	wf_ring_destroy(ring);
}

static void
a_ring_of_one_item_works(void **state)
{
	struct wf_ring *ring = NULL;
	char item = 'a';
	assert_int_equal(wf_ring_create(env, 1, 1, &ring), WEFT_OK);
	assert_true(wf_ring_push(ring, &item));
	assert_false(wf_ring_push(ring, &item));
	item = 'b';
	assert_true(wf_ring_pop(ring, &item));
	assert_int_equal(item, 'a');
	wf_ring_destroy(ring);
}

static void
items_of_odd_sizes_do_not_touch_each_other(void **state)
{
	struct wf_ring *ring = NULL;
	unsigned char item[13];
	assert_int_equal(wf_ring_create(env, 8, sizeof(item), &ring), WEFT_OK);
	for (int i = 0; i < 8; i++) {
		memset(item, i + 1, sizeof(item));
		assert_true(wf_ring_push(ring, item));
	}
	for (int i = 0; i < 8; i++) {
		unsigned char expected[13];
		memset(expected, i + 1, sizeof(expected));
		assert_true(wf_ring_pop(ring, item));
		assert_memory_equal(item, expected, sizeof(item));
	}
	wf_ring_destroy(ring);
}

static void
bad_sizes_are_refused(void **state)
{
	struct wf_ring *ring = NULL;
	assert_int_equal(wf_ring_create(env, 0, 4, &ring), WEFT_INVALID);
	assert_int_equal(wf_ring_create(env, 3, 4, &ring), WEFT_INVALID);
	assert_int_equal(wf_ring_create(env, 4, 0, &ring), WEFT_INVALID);
	assert_int_equal(wf_ring_create(env, SIZE_MAX / 2 + 1, 4, &ring), WEFT_NOMEM);
	assert_int_equal(wf_ring_create(env, SIZE_MAX / 2 + 1, 1, &ring), WEFT_NOMEM);
	assert_null(ring);
}

static void
a_ring_gives_back_its_memory(void **state)
{
	struct wf_failing_env failing;
	struct wf_ring *ring = NULL;
	wf_failing_env_init(&failing, env);
	wf_failing_env_fail(&failing, 1, false);
	assert_int_equal(wf_ring_create(&failing.env, 8, 8, &ring), WEFT_NOMEM);
	assert_null(ring);
	assert_int_equal(wf_ring_create(&failing.env, 8, 8, &ring), WEFT_OK);
	assert_false(wf_failing_env_is_clean(&failing));
	wf_ring_destroy(ring);
	wf_ring_destroy(NULL);
	assert_true(wf_failing_env_is_clean(&failing));
}

/* On a loaded machine the two share a CPU, and a ring that is full, or empty, costs the time slices
 * of all others. So most go through a long ring; a short one is full again and again. */
#define MANY 200000u
#define LONG 1024u
#define SHORT 16u
#define MANY_IN_SHORT 4000u

struct message {
	uint64_t number;
	uint64_t payload[3]; /* each a function of number: a torn item shows */
};

struct producer {
	struct wf_ring *ring;
	uint64_t count; /* of its messages */
};

static void *
produce(void *arg)
{
	const struct producer *producer = arg;
	for (uint64_t i = 0; i < producer->count; i++) {
		struct message m = {i, {i * 3, ~i, i ^ 0x5555}};
		while (!wf_ring_push(producer->ring, &m)) {
			(void)sched_yield();
		}
	}
	return NULL;
}

static void
pass(size_t items, uint64_t count)
{
	struct wf_ring *ring = NULL;
	pthread_t thread;
	assert_int_equal(wf_ring_create(env, items, sizeof(struct message), &ring), WEFT_OK);
	struct producer producer = {ring, count};
	assert_int_equal(pthread_create(&thread, NULL, produce, &producer), 0);
	for (uint64_t i = 0; i < count; i++) {
		struct message m;
		while (wf_ring_is_empty(ring)) {
			(void)sched_yield();
		}
		assert_true(wf_ring_pop(ring, &m)); /* the consumer's "not empty" is final */
		assert_true(m.number == i);
		assert_true(m.payload[0] == i * 3);
		assert_true(m.payload[1] == ~i);
		assert_true(m.payload[2] == (i ^ 0x5555));
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(wf_ring_is_empty(ring));
	wf_ring_destroy(ring);
}

static void
two_threads_pass_everything_whole_and_in_order(void **state)
{
	pass(LONG, MANY);
	pass(SHORT, MANY_IN_SHORT);
}

#define FEW 1000u

static void *
produce_few(void *arg)
{
	struct wf_ring *ring = arg;
	for (uint64_t i = 0; i < FEW; i++) {
		while (!wf_ring_push(ring, &i)) {
			(void)sched_yield();
		}
	}
	return NULL;
}

/* Nothing but push and pop puts the two in order: ThreadSanitizer sees whether that is enough. */
static void
pop_alone_is_enough_to_see_an_item(void **state)
{
	struct wf_ring *ring = NULL;
	pthread_t producer;
	assert_int_equal(wf_ring_create(env, 4, sizeof(uint64_t), &ring), WEFT_OK);
	assert_int_equal(pthread_create(&producer, NULL, produce_few, ring), 0);
	for (uint64_t i = 0; i < FEW; i++) {
		uint64_t item = UINT64_MAX;
		while (!wf_ring_pop(ring, &item)) {
			(void)sched_yield();
		}
		assert_true(item == i);
	}
	assert_int_equal(pthread_join(producer, NULL), 0);
	wf_ring_destroy(ring);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ring_takes_exactly_its_number_of_items),
		cmocka_unit_test(a_ring_of_one_item_works),
		cmocka_unit_test(items_of_odd_sizes_do_not_touch_each_other),
		cmocka_unit_test(bad_sizes_are_refused),
		cmocka_unit_test(a_ring_gives_back_its_memory),
		cmocka_unit_test(two_threads_pass_everything_whole_and_in_order),
		cmocka_unit_test(pop_alone_is_enough_to_see_an_item),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
