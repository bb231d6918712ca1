/* SPDX-License-Identifier: Apache-2.0 */
/* little: integers to and from little-endian bytes, wherever they lie. Written out so that
 * compilers make one move of each on a little-endian machine. Thread: any. */
#pragma once

#include <stdint.h>

static inline void
wf_store_u16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)value;
	at[1] = (uint8_t)(value >> 8);
}

static inline void
wf_store_u32(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)value;
	at[1] = (uint8_t)(value >> 8);
	at[2] = (uint8_t)(value >> 16);
	at[3] = (uint8_t)(value >> 24);
}

static inline void
wf_store_u64(uint8_t *at, uint64_t value)
{
	at[0] = (uint8_t)value;
	at[1] = (uint8_t)(value >> 8);
	at[2] = (uint8_t)(value >> 16);
	at[3] = (uint8_t)(value >> 24);
	at[4] = (uint8_t)(value >> 32);
	at[5] = (uint8_t)(value >> 40);
	at[6] = (uint8_t)(value >> 48);
	at[7] = (uint8_t)(value >> 56);
}

static inline uint16_t
wf_load_u16(const uint8_t *at)
{
	return (uint16_t)(at[0] | at[1] << 8);
}

static inline uint32_t
wf_load_u32(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

static inline uint64_t
wf_load_u64(const uint8_t *at)
{
	return (uint64_t)at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 |
	       (uint64_t)at[3] << 24 | (uint64_t)at[4] << 32 | (uint64_t)at[5] << 40 |
	       (uint64_t)at[6] << 48 | (uint64_t)at[7] << 56;
}
