/* SPDX-License-Identifier: Apache-2.0 */
/* crc32c: CRC-32 with the Castagnoli polynomial (RFC 3720, appendix B.4), SSE4.2 where the
 * processor has it, a table elsewhere; both give the same value. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Continues `crc` (0 to start) over `count` bytes. crc32c("123456789") == 0xe3069283. */
uint32_t wf_crc32c(uint32_t crc, const void *bytes, size_t count);
/* wf_crc32c of something long, some times as fast: for files, whose CRC is what takes the time. */
uint32_t wf_crc32c_long(uint32_t crc, const void *bytes, size_t count);
/* The table form, for processors without SSE4.2 and for tests. */
uint32_t wf_crc32c_table(uint32_t crc, const void *bytes, size_t count);

#define WF_CRC32C_HEAD_BYTES 60u

#if defined(__x86_64__)
/* The instruction itself, for processors that have SSE4.2: the compiler does not inline its builtin
 * into code for those that do not. */
static inline uint64_t
wf_crc32c_step(uint64_t sum, const void *bytes)
{
	const struct {
		uint8_t at[8];
	} *word = bytes;
	__asm__("crc32q %1, %0" : "+r"(sum) : "m"(*word));
	return sum;
}

/* Seven words of eight bytes and one of four. */
static inline uint32_t
wf_crc32c_head_sse42(const uint8_t *bytes)
{
	const struct {
		uint8_t at[4];
	} *rest = (const void *)(bytes + 56);
	uint64_t sum = UINT32_MAX;
#pragma GCC unroll 7
	for (size_t i = 0; i < 7; i++) {
		sum = wf_crc32c_step(sum, bytes + i * 8);
	}
	uint32_t last = (uint32_t)sum;
	__asm__("crc32l %1, %0" : "+r"(last) : "m"(*rest));
	return ~last;
}
#endif

/* wf_crc32c(0, bytes, 60): the CRC of a head, which every message and every PUT has. */
static inline uint32_t
wf_crc32c_head(const uint8_t *bytes)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("sse4.2")) {
		return wf_crc32c_head_sse42(bytes);
	}
#endif
	return wf_crc32c_table(0, bytes, WF_CRC32C_HEAD_BYTES);
}
