/* SPDX-License-Identifier: Apache-2.0 */
/* keys: u64 keys as bytes: strictly ascending, as they are or as differences; or in any order.
 *
 * WF_KEYS_RAW: 8 bytes each, little-endian. WF_KEYS_DELTA: the first key, then each difference to
 * the key before it less 1, in groups of 7 bits, lowest first, all but the last with bit 7 set;
 * nothing longer than it has to be. So either coding has one form of given keys. What suits is the
 * sender's choice: keys close together take 1 or 2 bytes as differences, hashes up to 9.
 * WF_KEYS_ANY: as RAW, but in any order, repeated at will: what is pulled in the caller's order.
 * Thread: any; pure functions. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define WF_KEY_BYTES 8u
#define WF_KEY_DELTA_BYTES_MAX 10u /* of one key as a difference */

enum wf_key_coding {
	WF_KEYS_RAW = 0,
	WF_KEYS_DELTA = 1,
	WF_KEYS_ANY = 2,
	WF_KEYS_CODING_COUNT = 3,
};

/* What `count` keys take. They ascend, here and in encode, but for ANY: asserted. */
size_t wf_keys_bytes(enum wf_key_coding coding, const uint64_t *key, size_t count);
/* `out` has wf_keys_bytes; returns them. */
size_t wf_keys_encode(enum wf_key_coding coding, const uint64_t *key, size_t count, uint8_t *out);

/* Keys as they came. */
struct wf_keys_in {
	enum wf_key_coding coding;
	const uint8_t *at;
	size_t bytes; /* all of them belong to keys */
	size_t count;
};

/* Into key[in->count]. WEFT_PROTOCOL names the key (by ordinal) that does not ascend, does not end,
 * is too long or above 64 bits, or the bytes left over; key[] then holds anything. Bytes that
 * change while they are read give wrong keys at worst: what was checked is what stands in key[]. */
enum weft_status wf_keys_decode(const struct wf_keys_in *in, uint64_t *key) WEFT_MUST_CHECK;
