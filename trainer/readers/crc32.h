/* SPDX-License-Identifier: Apache-2.0 */
/* crc32: the CRC-32 of zlib, gzip and RecordIO (IEEE 802.3), several times as fast as zlib's where
 * the processor multiplies without carries. zlib's speed would be what limits reading of snappy.
 * Thread: any. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* wf_crc32("123456789") == 0xcbf43926. */
uint32_t wf_crc32(const void *bytes, size_t count);
