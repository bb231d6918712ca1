/* SPDX-License-Identifier: Apache-2.0 */
/* little: integers to and from little-endian bytes, wherever they lie. Copies of a fixed length:
 * each is one move on a little-endian machine, also between others, where GCC 12 makes vectors of
 * bytes that are stored one by one. Thread: any. */
#pragma once

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline void
wf_store_u16(uint8_t *at, uint16_t value)
{
	value = htole16(value);
	memcpy(at, &value, sizeof(value));
}

static inline void
wf_store_u32(uint8_t *at, uint32_t value)
{
	value = htole32(value);
	memcpy(at, &value, sizeof(value));
}

static inline void
wf_store_u64(uint8_t *at, uint64_t value)
{
	value = htole64(value);
	memcpy(at, &value, sizeof(value));
}

static inline uint16_t
wf_load_u16(const uint8_t *at)
{
	uint16_t value;
	memcpy(&value, at, sizeof(value));
	return le16toh(value);
}

static inline uint32_t
wf_load_u32(const uint8_t *at)
{
	uint32_t value;
	memcpy(&value, at, sizeof(value));
	return le32toh(value);
}

static inline uint64_t
wf_load_u64(const uint8_t *at)
{
	uint64_t value;
	memcpy(&value, at, sizeof(value));
	return le64toh(value);
}
