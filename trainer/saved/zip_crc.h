/* SPDX-License-Identifier: Apache-2.0 */
/* zip_crc: CRC-32 with the polynomial of zip files (ISO 3309), which has no instruction of its own:
 * eight tables, eight bytes at a time. Thread: any; pure functions. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct wf_zip_crc {
	uint32_t table[8][256];
};

void wf_zip_crc_init(struct wf_zip_crc *zip);
/* Continue `crc` (0 to start) over `count` bytes. Of "123456789": 0xcbf43926. */
uint32_t wf_zip_crc(const struct wf_zip_crc *zip, uint32_t crc, const void *bytes, size_t count);
