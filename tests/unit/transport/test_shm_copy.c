/* SPDX-License-Identifier: Apache-2.0 */
/* The copy that goes past the caches copies what memcpy does, wherever both ends begin and end in
 * a line, and nothing beside it. Thread: the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "transport/shm/shm_copy.h"

#define LINE 64u
#define ROOM (8u * LINE)
#define UNSET 0xA5u

static uint8_t from[ROOM];
static uint8_t to[ROOM];

static void
check_one(uint32_t first_from, uint32_t first_to, uint32_t bytes)
{
	memset(to, UNSET, sizeof(to));
	wf_shm_copy_past(to + first_to, from + first_from, bytes);
	for (uint32_t i = 0; i < ROOM; i++) {
		bool within = i >= first_to && i - first_to < bytes;
		uint8_t wanted = within ? from[first_from + i - first_to] : UNSET;
		assert_int_equal(to[i], wanted);
	}
}

static void
every_beginning_and_every_end(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < ROOM; i++) {
		from[i] = (uint8_t)(i * 7 + i / LINE);
	}
	for (uint32_t at = 0; at < LINE; at++) {
		for (uint32_t bytes = 0; bytes <= 4 * LINE; bytes += bytes < 2 * LINE ? 1 : 13) {
			check_one(at % 8, at, bytes);
			check_one((at * 5) % LINE, at, bytes);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_beginning_and_every_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
