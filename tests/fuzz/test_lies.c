/* SPDX-License-Identifier: Apache-2.0 */
/* One lie in a whole job, at either end: it is refused by name, and costs its sender the
 * connection. A peer PUTs exactly what is due, or nothing of it is read. Thread: the test's. */
#include "tests/fuzz/lying_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "tests/fuzz/liar.h"
#include "wire/little.h"

enum { MODE, WIRE, FEATURES, SPARSE, TABLES, DEEDS, STEPS = 8, ROUGH = 11 }; /* of a scene */

struct lie {
	const char *name;
	enum lying_who who;
	uint8_t scene[LYING_SCENE_BYTES];
	uint8_t what; /* enum liar_what, of all operations */
	uint64_t value;
	const char *says;
};

static const struct lie lies[] = {
	{"a slice of 4 bytes", LYING_TRAINER, {0}, LIAR_PUT_BYTES, 4, "PUT: 4 bytes of slice"},
	{"a slice of a bf16 wire of 64 bytes",
	 LYING_TRAINER,
	 {[WIRE] = 1},
	 LIAR_PUT_BYTES,
	 64,
	 "PUT: 64 bytes of slice"},
	{"a part of keys of 4 bytes",
	 LYING_TRAINER,
	 {[SPARSE] = 1},
	 LIAR_PUT_BYTES,
	 4,
	 "PUT: part 0 has 4 bytes, but its message says"},
	{"rows that are put back of 4 bytes",
	 LYING_TRAINER,
	 {[SPARSE] = 1, [DEEDS] = 1, [10] = 0},
	 LIAR_PUT_BYTES,
	 4,
	 "PUT:"},
	{"an answer of 4 bytes",
	 LYING_PSERVER,
	 {0},
	 LIAR_PUT_BYTES,
	 4,
	 "broke the protocol: PUT: 4 bytes of a slice of"},
	{"an answer of a bf16 wire of 64 bytes",
	 LYING_PSERVER,
	 {[WIRE] = 1},
	 LIAR_PUT_BYTES,
	 64,
	 "broke the protocol: PUT: 64 bytes of a slice of"},
	{"an answer that is beyond the values",
	 LYING_PSERVER,
	 {0},
	 LIAR_PUT_OFFSET,
	 1ull << 32,
	 "outside its grant"},
	{"rows of 4 bytes",
	 LYING_PSERVER,
	 {[SPARSE] = 1},
	 LIAR_PUT_BYTES,
	 4,
	 "broke the protocol: PUT: 4 bytes of"},
};

static void
play(const struct lie *lie)
{
	uint8_t input[LYING_SCENE_BYTES + LIAR_LIE_BYTES];
	uint8_t *said = input + LYING_SCENE_BYTES;
	struct lying_end end;
	memcpy(input, lie->scene, LYING_SCENE_BYTES);
	input[10] = lie->scene[DEEDS] == 0; /* who lies: trainer 1, or, to put back, 0 */
	wf_store_u16(said, LIAR_ALL);
	said[2] = lie->what;
	said[3] = 0;
	wf_store_u64(said + 4, lie->value);
	lying_job_run(input, sizeof(input), lie->who, &end);
	/* The honest ones tell what it was. */
	const char *honest = lie->who == LYING_PSERVER ? end.trainer_text[0] : end.pserver_text;
	if (strstr(honest, lie->says) == NULL) {
		print_error("%s: \"%s\" does not say \"%s\"\n", lie->name, honest, lie->says);
	}
	assert_non_null(strstr(honest, lie->says));
}

static void
what_is_not_due_is_refused_by_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		play(&lies[i]);
	}
}

static void
assert_ends_well(const uint8_t scene[LYING_SCENE_BYTES], enum lying_who who)
{
	struct lying_end end;
	lying_job_run(scene, LYING_SCENE_BYTES, who, &end);
	if (end.trainer[0] != WEFT_OK) {
		print_error("%s\n", end.trainer_text[0]);
	}
	assert_int_equal(end.pserver, WEFT_OK);
	assert_int_equal(end.trainer[0], WEFT_OK);
	assert_int_equal(end.trainer[1], WEFT_OK);
}

/* The same jobs, without a lie, end well, and so do those that change what they began with. */
static void
the_truth_is_believed(void **state)
{
	static const uint8_t changes[][LYING_SCENE_BYTES] = {
		{[STEPS] = 1, [ROUGH] = 32},
		{[STEPS] = 1, [SPARSE] = 1, [DEEDS] = 32, [ROUGH] = 32 + 64},
		{[STEPS] = 1, [FEATURES] = 4, [ROUGH] = 1 + 32},
		{[STEPS] = 1, [WIRE] = 1, [ROUGH] = 32},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		assert_ends_well(lies[i].scene, lies[i].who);
	}
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		assert_ends_well(changes[i], LYING_TRAINER);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_due_is_refused_by_name),
		cmocka_unit_test(the_truth_is_believed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
