/* SPDX-License-Identifier: Apache-2.0 */
/* Philox4x32-10 gives what its authors published (Random123's known-answer vectors). Thread: one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/philox.h"

static const struct {
	struct wf_philox counter;
	uint32_t k0, k1;
	struct wf_philox want;
} vectors[] = {
	{{{0, 0, 0, 0}}, 0, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
	{{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
	 0xffffffff,
	 0xffffffff,
	 {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
	{{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
	 0xa4093822,
	 0x299f31d0,
	 {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
};

static void
philox_gives_the_published_vectors(void **state)
{
	for (size_t i = 0; i < WF_ARRAY_COUNT(vectors); i++) {
		uint64_t key = (uint64_t)vectors[i].k1 << 32 | vectors[i].k0;
		struct wf_philox got = wf_philox(vectors[i].counter, key);
		assert_memory_equal(&got, &vectors[i].want, sizeof(got));
	}
}

static void
every_bit_of_counter_and_key_matters(void **state)
{
	const struct wf_philox zero = {{0}};
	const struct wf_philox start = wf_philox(zero, 0);

	for (unsigned bit = 0; bit < 128 + 64; bit++) {
		struct wf_philox counter = zero;
		uint64_t key = 0;
		if (bit < 128) {
			counter.word[bit / 32] = 1u << bit % 32;
		} else {
			key = (uint64_t)1 << (bit - 128);
		}
		struct wf_philox got = wf_philox(counter, key);
		for (unsigned word = 0; word < 4; word++) {
			assert_int_not_equal(got.word[word], start.word[word]);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(philox_gives_the_published_vectors),
		cmocka_unit_test(every_bit_of_counter_and_key_matters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
