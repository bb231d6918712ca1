/* SPDX-License-Identifier: Apache-2.0 */
/* mac: see mac.h. Thread: any. */
#include "base/mac.h"

#include <string.h>

#include <nettle/hmac.h>
#include <nettle/memops.h>

#include "base/assert.h"

WF_STATIC_ASSERT(WF_MAC_BYTES == SHA256_DIGEST_SIZE, "the whole code, not cut");

void
wf_mac(const void *key, size_t key_bytes, const struct wf_mac_part *parts, unsigned part_count,
       uint8_t out[WF_MAC_BYTES])
{
	struct hmac_sha256_ctx hmac;
	hmac_sha256_set_key(&hmac, key_bytes, key);
	for (unsigned i = 0; i < part_count; i++) {
		if (parts[i].bytes > 0) {
			hmac_sha256_update(&hmac, parts[i].bytes, parts[i].at);
		}
	}
	hmac_sha256_digest(&hmac, WF_MAC_BYTES, out);
	explicit_bzero(&hmac, sizeof(hmac));
}

bool
wf_mac_is_equal(const uint8_t a[WF_MAC_BYTES], const uint8_t b[WF_MAC_BYTES])
{
	return memeql_sec(a, b, WF_MAC_BYTES) != 0;
}
