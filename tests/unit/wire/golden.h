/* SPDX-License-Identifier: Apache-2.0 */
/* golden: encoded bytes that are kept in tests/fixtures/wire, as lines of 16 hex bytes. A
 * difference means that the wire has changed: peers of another version would not understand it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define GOLDEN_BYTES_MAX 8192

/* Compare `bytes` with the file called `name`; fails the test at the first difference. Then `out`
 * (GOLDEN_BYTES_MAX) has what the file holds; returns how much. With WEFT_REGOLD=1 in the
 * environment the file is written first. */
size_t golden_check(const char *name, const void *bytes, size_t count, uint8_t *out);
