/* SPDX-License-Identifier: Apache-2.0 */
/* crc32c: CRC-32 with the Castagnoli polynomial (RFC 3720, appendix B.4), SSE4.2 where the
 * processor has it, a table elsewhere; both give the same value. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Continues `crc` (0 to start) over `count` bytes. crc32c("123456789") == 0xe3069283. */
uint32_t wf_crc32c(uint32_t crc, const void *bytes, size_t count);
#define WF_CRC32C_HEAD_BYTES 60u
/* wf_crc32c(0, bytes, 60): the CRC of a head, which every message and every PUT has. The constant
 * count turns the loop into a dozen instructions. */
uint32_t wf_crc32c_head(const void *bytes);
/* wf_crc32c of something long, some times as fast: for files, whose CRC is what takes the time. */
uint32_t wf_crc32c_long(uint32_t crc, const void *bytes, size_t count);
/* The table form, for tests. */
uint32_t wf_crc32c_table(uint32_t crc, const void *bytes, size_t count);
