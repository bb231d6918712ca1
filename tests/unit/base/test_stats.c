/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of stats: values on one thread, and what another one sees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>

#include "base/stats.h"

enum { PUT_SENT_COUNT, PUT_SENT_BYTES, SLOT_USED_COUNT, COUNTER_COUNT };
static const char *const name[COUNTER_COUNT] = {"put_sent_count", "put_sent_bytes",
						"slot_used_count"};

static void
counters_begin_at_zero_and_add_up(void **state)
{
	struct wf_stats stats;
	uint64_t all[COUNTER_COUNT] = {9, 9, 9};
	wf_stats_init(&stats, name, COUNTER_COUNT);
	wf_stats_snapshot(&stats, all);
	assert_true(all[0] == 0 && all[1] == 0 && all[2] == 0);
	wf_stats_add(&stats, PUT_SENT_COUNT, 1);
	wf_stats_add(&stats, PUT_SENT_BYTES, 1ull << 40);
	wf_stats_add(&stats, PUT_SENT_BYTES, 24);
	wf_stats_add(&stats, PUT_SENT_COUNT, 0);
	assert_true(wf_stats_get(&stats, PUT_SENT_COUNT) == 1);
	assert_true(wf_stats_get(&stats, PUT_SENT_BYTES) == (1ull << 40) + 24);
	assert_true(wf_stats_get(&stats, SLOT_USED_COUNT) == 0);
	assert_string_equal(wf_stats_name(&stats, PUT_SENT_BYTES), "put_sent_bytes");
	wf_stats_snapshot(&stats, all);
	assert_true(all[0] == 1 && all[1] == (1ull << 40) + 24 && all[2] == 0);
}

static void
a_gauge_falls_and_a_peak_does_not(void **state)
{
	struct wf_stats stats;
	wf_stats_init(&stats, name, COUNTER_COUNT);
	wf_stats_set(&stats, SLOT_USED_COUNT, 7);
	wf_stats_set(&stats, SLOT_USED_COUNT, 3);
	assert_true(wf_stats_get(&stats, SLOT_USED_COUNT) == 3);
	wf_stats_raise(&stats, SLOT_USED_COUNT, 5);
	wf_stats_raise(&stats, SLOT_USED_COUNT, 4);
	assert_true(wf_stats_get(&stats, SLOT_USED_COUNT) == 5);
}

#define EVENTS 200000u

static void *
count_events(void *arg)
{
	struct wf_stats *stats = arg;
	for (unsigned i = 0; i < EVENTS; i++) {
		wf_stats_add(stats, PUT_SENT_COUNT, 1);
		wf_stats_add(stats, PUT_SENT_BYTES, 64);
	}
	return NULL;
}

static void
another_thread_sees_counters_grow_and_never_a_torn_one(void **state)
{
	struct wf_stats stats;
	uint64_t all[COUNTER_COUNT], last = 0, last_bytes = 0;
	pthread_t writer;
	wf_stats_init(&stats, name, COUNTER_COUNT);
	assert_int_equal(pthread_create(&writer, NULL, count_events, &stats), 0);
	do {
		wf_stats_snapshot(&stats, all);
		assert_true(all[PUT_SENT_COUNT] >= last && all[PUT_SENT_COUNT] <= EVENTS);
		assert_true(all[PUT_SENT_BYTES] >= last_bytes && all[PUT_SENT_BYTES] % 64 == 0);
		last = all[PUT_SENT_COUNT];
		last_bytes = all[PUT_SENT_BYTES];
	} while (last < EVENTS);
	assert_int_equal(pthread_join(writer, NULL), 0);
	assert_true(wf_stats_get(&stats, PUT_SENT_BYTES) == 64 * (uint64_t)EVENTS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_begin_at_zero_and_add_up),
		cmocka_unit_test(a_gauge_falls_and_a_peak_does_not),
		cmocka_unit_test(another_thread_sees_counters_grow_and_never_a_torn_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
