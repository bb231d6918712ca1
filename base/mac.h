/* SPDX-License-Identifier: Apache-2.0 */
/* mac: message authentication codes, HMAC-SHA-256 (RFC 2104), computed by nettle. Thread: any; pure
 * functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WF_MAC_BYTES 32

/* Bytes that follow those of the part before. */
struct wf_mac_part {
	const void *at; /* may be NULL if bytes is 0 */
	size_t bytes;
};

/* Writes the code of the parts, one behind the other, under a key of any length. What was derived
 * from the key is wiped. */
void wf_mac(const void *key, size_t key_bytes, const struct wf_mac_part *parts, unsigned part_count,
	    uint8_t out[WF_MAC_BYTES]);

/* Compares in a time that does not depend on where they differ. */
bool wf_mac_is_equal(const uint8_t a[WF_MAC_BYTES], const uint8_t b[WF_MAC_BYTES]);
