/* SPDX-License-Identifier: Apache-2.0 */
/* keys: u64 keys as bytes: strictly ascending ones as values or as differences, or any order.
 *
 * WF_KEYS_RAW: 8 bytes each, little-endian. WF_KEYS_DELTA: the first key, then each difference to
 * the key before it less 1, in groups of 7 bits, lowest first, all but the last with bit 7 set;
 * nothing is longer than necessary. So each coding has exactly one form for given keys. The sender
 * chooses: keys close together take 1 or 2 bytes as differences, hashes up to 9. WF_KEYS_ANY: as
 * RAW, but in any order, repeated at will: what is pulled in the caller's order. Thread: any; pure
 * functions. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define WF_KEY_BYTES 8u
#define WF_KEY_DELTA_BYTES_MAX 10u /* the most bytes of one key as a difference */

enum wf_key_coding {
	WF_KEYS_RAW = 0,
	WF_KEYS_DELTA = 1,
	WF_KEYS_ANY = 2,
	WF_KEYS_CODING_COUNT = 3,
};

/* The bytes of `count` encoded keys. Here and in encode they must ascend, except for ANY: asserted.
 */
size_t wf_keys_bytes(enum wf_key_coding coding, const uint64_t *key, size_t count);
/* `out` has wf_keys_bytes; returns them. */
size_t wf_keys_encode(enum wf_key_coding coding, const uint64_t *key, size_t count, uint8_t *out);

/* Keys as they were received. */
struct wf_keys_in {
	enum wf_key_coding coding;
	const uint8_t *at;
	size_t bytes; /* all of them belong to keys */
	size_t count;
};

/* Decodes into key[in->count]. WEFT_PROTOCOL: the text names the key (by ordinal) that does not
 * ascend, does not end, is too long or above 64 bits, or the bytes left over; the contents of key[]
 * are then undefined. Bytes that change while they are read give wrong keys at worst: the keys that
 * were checked are those in key[]. */
enum weft_status wf_keys_decode(const struct wf_keys_in *in, uint64_t *key) WEFT_MUST_CHECK;
