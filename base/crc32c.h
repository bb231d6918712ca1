/* SPDX-License-Identifier: Apache-2.0 */
/* crc32c: CRC-32 with the Castagnoli polynomial (RFC 3720, appendix B.4), SSE4.2 where the
 * processor has it, a table elsewhere; both give the same value. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Continue `crc` (0 to start) over `count` bytes. crc32c("123456789") == 0xe3069283. */
uint32_t wf_crc32c(uint32_t crc, const void *bytes, size_t count);
/* The table form, for tests. */
uint32_t wf_crc32c_table(uint32_t crc, const void *bytes, size_t count);
