/* SPDX-License-Identifier: Apache-2.0 */
/* pattern: what --verify sends: bytes that show which message they belong to, and which place in
 * it. Thread: any. */
#pragma once

#include <stdint.h>

/* `number`: which message of the run this is. */
void wf_pattern_fill(uint8_t *at, uint64_t bytes, uint64_t number);
/* How many bytes from the first on are right: `bytes` if all are. */
uint64_t wf_pattern_check(const uint8_t *at, uint64_t bytes, uint64_t number);
