/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_target: what every target defines. libFuzzer calls it with inputs of its making, or
 * replay_main.c with the files of the corpus. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Returns 0. Whatever the bytes are, it neither crashes nor breaks an assertion. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
