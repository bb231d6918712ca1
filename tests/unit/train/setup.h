/* SPDX-License-Identifier: Apache-2.0 */
/* setup: what the training tests share: cmocka's order of includes, an env, a seed. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/env.h"

static inline int
open_env(void **state)
{
	struct wf_env *env = NULL;
	enum weft_status st = wf_env_system_create(WF_LOG_WARN, -1, &env);
	*state = env;
	return st == WEFT_OK ? 0 : -1;
}

static inline int
close_env(void **state)
{
	wf_env_system_destroy(*state);
	return 0;
}

/* From WEFT_SEED, else 1. Printed, so that a failure can be repeated. */
static inline uint64_t
test_seed(void)
{
	const char *text = getenv("WEFT_SEED");
	uint64_t seed = text == NULL ? 1 : strtoull(text, NULL, 0);
	print_message("WEFT_SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

/* Fails with the recorded error. */
#define assert_ok(call)                                                                            \
	do {                                                                                       \
		enum weft_status assert_ok_status = (call);                                        \
		if (assert_ok_status != WEFT_OK) {                                                 \
			fail_msg("%s: %s: %s", #call, weft_status_name(assert_ok_status),          \
				 weft_last_error());                                               \
		}                                                                                  \
	} while (0)

/* The call is refused with `status`, and the text has `part` in it. */
#define assert_refused(call, status, part)                                                         \
	do {                                                                                       \
		assert_int_equal((call), (status));                                                \
		if (strstr(weft_last_error(), (part)) == NULL) {                                   \
			fail_msg("\"%s\" is not in \"%s\"", (part), weft_last_error());            \
		}                                                                                  \
	} while (0)
