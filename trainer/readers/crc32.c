/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32: zlib's, of what base/crc_fold.h leaves of a message. Thread: any. */
#include "trainer/readers/crc32.h"

#include <zlib.h>

#include "base/crc_fold.h"

#define PIECE_BYTES_MAX (1u << 30) /* zlib counts in 32 bits */

static uint32_t
crc32_zlib(uint32_t crc, const uint8_t *at, size_t count)
{
	while (count > 0) {
		size_t piece = count < PIECE_BYTES_MAX ? count : PIECE_BYTES_MAX;
		crc = (uint32_t)crc32(crc, at, (uInt)piece);
		at += piece;
		count -= piece;
	}
	return crc;
}

#if defined(__x86_64__)

WF_CRC_FOLDED static uint32_t
crc32_folded(const uint8_t *at, size_t count)
{
	static const struct wf_crc_factors factors = {
		.by_256 = {0x11542778a, 0x1322d1430},
		.by_64 = {0x154442bd4, 0x1c6e41596},
		.by_16 = {0x1751997d0, 0x0ccaa009e},
	};
	struct wf_crc_folded folded = wf_crc_fold(&factors, UINT32_MAX, at, count);
	/* zlib inverts what it is given: this is a register of 0. */
	uint32_t crc = crc32_zlib(UINT32_MAX, folded.bytes, sizeof(folded.bytes));
	return crc32_zlib(crc, folded.rest, (size_t)(at + count - folded.rest));
}

uint32_t
wf_crc32(const void *bytes, size_t count)
{
	return wf_crc_can_fold(count) ? crc32_folded(bytes, count) : crc32_zlib(0, bytes, count);
}

#else

uint32_t
wf_crc32(const void *bytes, size_t count)
{
	return crc32_zlib(0, bytes, count);
}

#endif
