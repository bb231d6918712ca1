/* SPDX-License-Identifier: Apache-2.0 */
/* conf_fake: cases of a test's own on the fake, as tests/conformance runs its cases. Thread: one.
 */
#pragma once

#include "tests/conformance/conformance.h"

/* By WEFT_SEED, or seed 1. False: it failed, and has said why. */
bool conf_fake_run(const char *url, bool (*body)(struct conf *t));
/* All ends take their turns for so long. */
void conf_fake_pass(struct conf *t, uint64_t span_ns);
