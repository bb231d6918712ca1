/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of ordinals that wait for the same: as they came, or by priority. Thread: one. */
#include "wire/priority.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define CAPACITY 4u

static void
pops(struct wf_ordinal_ring *ring, const uint32_t *ordinals, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(*wf_ordinal_ring_at(ring, 0), ordinals[i]);
		assert_int_equal(wf_ordinal_ring_pop(ring), ordinals[i]);
	}
	assert_int_equal(ring->count, 0);
}

/* From every place that the ring may begin at. */
static void
without_priorities_they_go_as_they_came(void **state)
{
	(void)state;
	uint32_t places[CAPACITY];
	const uint32_t ordinals[CAPACITY] = {2, 0, 3, 1};
	for (uint32_t first = 0; first < CAPACITY; first++) {
		struct wf_ordinal_ring ring = {
			.ordinal = places, .capacity = CAPACITY, .first = first};
		for (uint32_t i = 0; i < CAPACITY; i++) {
			wf_ordinal_ring_push(&ring, ordinals[i]);
			assert_int_equal(*wf_ordinal_ring_at(&ring, i), ordinals[i]);
		}
		pops(&ring, ordinals, CAPACITY);
		assert_int_equal(ring.first, first);
	}
}

static void
higher_priority_goes_first_and_the_same_as_they_came(void **state)
{
	(void)state;
	uint32_t places[CAPACITY];
	const int32_t priority[CAPACITY] = {-1, 7, 7, 0};
	const uint32_t sorted[CAPACITY] = {2, 1, 3, 0};
	for (uint32_t first = 0; first < CAPACITY; first++) {
		struct wf_ordinal_ring ring = {.ordinal = places,
					       .capacity = CAPACITY,
					       .first = first,
					       .priority = priority};
		wf_ordinal_ring_push(&ring, 3);
		wf_ordinal_ring_push(&ring, 2);
		wf_ordinal_ring_push(&ring, 0);
		wf_ordinal_ring_push(&ring, 1);
		pops(&ring, sorted, CAPACITY);
	}
}

/* Those behind the first `count` are let be, whatever their priority. */
static void
one_is_brought_to_its_place_among_the_first(void **state)
{
	(void)state;
	uint32_t places[CAPACITY] = {0, 3, 1, 2};
	const int32_t priority[CAPACITY] = {-1, 7, 7, 0};
	const uint32_t expected[CAPACITY] = {1, 0, 3, 2};
	struct wf_ordinal_ring ring = {
		.ordinal = places, .capacity = CAPACITY, .count = CAPACITY, .priority = priority};
	*wf_ordinal_ring_at(&ring, 1) = 1;
	*wf_ordinal_ring_at(&ring, 2) = 3;
	wf_priority_sift(&ring, 2);
	pops(&ring, expected, CAPACITY);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_priorities_they_go_as_they_came),
		cmocka_unit_test(higher_priority_goes_first_and_the_same_as_they_came),
		cmocka_unit_test(one_is_brought_to_its_place_among_the_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
