/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of keys: a byte of coding, two of their number, then the bytes of the keys. Accepted
 * keys ascend, and encode to the same bytes. */
#include <string.h>

#include "base/assert.h"
#include "tests/fuzz/fuzz_target.h"
#include "wire/keys.h"
#include "wire/little.h"

#define FIXED_BYTES 3u

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static uint64_t key[UINT16_MAX];
	static uint8_t again[UINT16_MAX * WF_KEY_DELTA_BYTES_MAX];

	if (bytes < FIXED_BYTES) {
		return 0;
	}
	struct wf_keys_in in = {
		.coding = (enum wf_key_coding)data[0],
		.count = wf_load_u16(data + 1),
		.at = data + FIXED_BYTES,
		.bytes = bytes - FIXED_BYTES,
	};
	if (wf_keys_decode(&in, key) != WEFT_OK) {
		WF_ASSERT(weft_last_error()[0] != '\0');
		return 0;
	}
	for (size_t i = 1; in.coding != WF_KEYS_ANY && i < in.count; i++) {
		WF_ASSERT(key[i] > key[i - 1]);
	}
	WF_ASSERT(wf_keys_bytes(in.coding, key, in.count) == in.bytes);
	WF_ASSERT(wf_keys_encode(in.coding, key, in.count, again) == in.bytes);
	WF_ASSERT(in.bytes == 0 || memcmp(again, in.at, in.bytes) == 0);
	return 0;
}
