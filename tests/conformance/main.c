/* SPDX-License-Identifier: Apache-2.0 */
/* main: runs every case of the contract (transport/contract.md) on the backend that argv[1] names.
 * WEFT_SEED chooses the chances; the arguments after that, if any, are the cases to run.
 * Thread: the main one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/conformance/conformance.h"

#define CASE_MAX 128
#define SEED_DEFAULT 1

struct run {
	const char *url;
	uint64_t seed;
	const struct conf_case *which;
};

static void
run_case(void **state)
{
	const struct run *run = *state;
	bool passed = conf_run(run->url, run->seed, run->which->run);
	if (!passed) {
		fprintf(stderr, "to see it again: WEFT_SEED=%" PRIu64 " conformance %s %s\n",
			run->seed, run->url, run->which->name);
	}
	assert_true(passed);
}

/* `only`: a list of names that ends with NULL; an empty one stands for all cases. */
static bool
is_asked_for(const char *name, char *const *only)
{
	bool is_asked = *only == NULL;

	for (; *only != NULL && !is_asked; only++) {
		is_asked = strcmp(*only, name) == 0;
	}
	return is_asked;
}

static size_t
add_cases(const struct conf_case *cases, char *const *only, const struct run *common,
	  struct run *runs, size_t count)
{
	for (; cases->name != NULL; cases++) {
		if (is_asked_for(cases->name, only)) {
			assert_true(count < CASE_MAX);
			runs[count] = *common;
			runs[count++].which = cases;
		}
	}
	return count;
}

int
main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr,
			"usage: conformance "
			"[secret+][fault+]tcp|tcp6|shm|shm-copy|sim|paths[-LIST] "
			"[CASE...]; conformance_fake fake-KIND [CASE...]; conformance_toy toy "
			"[CASE...]\n");
		return 64;
	}
	if (!conf_can_run(argv[1])) {
		return 77;
	}
	const char *seed = getenv("WEFT_SEED");
	struct run common = {
		.url = argv[1],
		.seed = seed == NULL ? SEED_DEFAULT : strtoull(seed, NULL, 0),
	};
	static const struct conf_case *const groups[] = {
		conf_connect_cases, conf_op_cases,  conf_event_cases,
		conf_grant_cases,   conf_end_cases, conf_traffic_cases,
	};
	static struct run runs[CASE_MAX];
	static struct CMUnitTest tests[CASE_MAX];
	size_t count = 0;
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		count = add_cases(groups[i], argv + 2, &common, runs, count);
	}
	for (size_t i = 0; i < count; i++) {
		tests[i] = (struct CMUnitTest){
			.name = runs[i].which->name,
			.test_func = run_case,
			.initial_state = &runs[i],
		};
	}
	/* A case that is asked for and is not there. */
	const bool is_wrong = argc > 2 && count != (size_t)argc - 2;
	return is_wrong ? 64 : _cmocka_run_group_tests(common.url, tests, count, NULL, NULL);
}
