/* SPDX-License-Identifier: Apache-2.0 */
/* zip_crc: see zip_crc.h. Table n is the effect of a byte with n zero bytes behind it. Thread: any.
 */
#include "trainer/saved/zip_crc.h"

#include "wire/little.h"

#define POLYNOMIAL 0xedb88320u

void
wf_zip_crc_init(struct wf_zip_crc *zip)
{
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t crc = byte;
		for (unsigned bit = 0; bit < 8; bit++) {
			crc = crc >> 1 ^ ((crc & 1) != 0 ? POLYNOMIAL : 0);
		}
		zip->table[0][byte] = crc;
	}
	for (unsigned n = 1; n < 8; n++) {
		for (unsigned byte = 0; byte < 256; byte++) {
			uint32_t before = zip->table[n - 1][byte];
			zip->table[n][byte] = before >> 8 ^ zip->table[0][before & 0xff];
		}
	}
}

uint32_t
wf_zip_crc(const struct wf_zip_crc *zip, uint32_t crc, const void *bytes, size_t count)
{
	const uint8_t *at = bytes;

	crc = ~crc;
	for (; count >= 8; count -= 8, at += 8) {
		uint64_t word = wf_load_u64(at) ^ crc;
		crc = 0;
		for (unsigned n = 0; n < 8; n++) {
			crc ^= zip->table[7 - n][word >> 8 * n & 0xff];
		}
	}
	for (; count > 0; count--, at++) {
		crc = crc >> 8 ^ zip->table[0][(crc ^ *at) & 0xff];
	}
	return ~crc;
}
