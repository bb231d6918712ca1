/* SPDX-License-Identifier: Apache-2.0 */
/* keys: keys to and from bytes. Thread: any; pure functions. */
#include "wire/keys.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/assert.h"
#include "wire/little.h"

#define GROUP_BITS 7u
#define GROUP_MORE 0x80u
/* The tenth group holds the one remaining bit of 64. */
#define LAST_GROUP (WF_KEY_DELTA_BYTES_MAX - 1u)

/* The value that is written for key[i] as a difference. */
static uint64_t
step_to(const uint64_t *key, size_t i)
{
	if (i == 0) {
		return key[0];
	}
	WF_ASSERT(key[i] > key[i - 1]);
	return key[i] - key[i - 1] - 1;
}

static size_t
group_count(uint64_t value)
{
	unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);
	return (bits + GROUP_BITS - 1) / GROUP_BITS;
}

size_t
wf_keys_bytes(enum wf_key_coding coding, const uint64_t *key, size_t count)
{
	size_t bytes = 0;

	WF_ASSERT((unsigned)coding < WF_KEYS_CODING_COUNT);
	if (coding != WF_KEYS_DELTA) {
		return count * WF_KEY_BYTES;
	}
	for (size_t i = 0; i < count; i++) {
		bytes += group_count(step_to(key, i));
	}
	return bytes;
}

static bool
ascends(const uint64_t *key, size_t count)
{
	bool all = true;
	for (size_t i = 1; i < count; i++) {
		all &= key[i] > key[i - 1];
	}
	return all;
}

static size_t
encode_raw(const uint64_t *key, size_t count, uint8_t *out)
{
	for (size_t i = 0; i < count; i++) {
		wf_store_u64(out + i * WF_KEY_BYTES, key[i]);
	}
	return count * WF_KEY_BYTES;
}

size_t
wf_keys_encode(enum wf_key_coding coding, const uint64_t *key, size_t count, uint8_t *out)
{
	size_t used = 0;

	WF_ASSERT((unsigned)coding < WF_KEYS_CODING_COUNT);
	if (coding != WF_KEYS_DELTA) {
		WF_ASSERT(coding == WF_KEYS_ANY || ascends(key, count));
		return encode_raw(key, count, out);
	}
	for (size_t i = 0; i < count; i++) {
		uint64_t left = step_to(key, i);
		for (; left >= GROUP_MORE; left >>= GROUP_BITS) {
			out[used++] = (uint8_t)(left | GROUP_MORE);
		}
		out[used++] = (uint8_t)left;
	}
	return used;
}

static enum weft_status
refuse_key(size_t i, const char *what)
{
	return wf_fail(WEFT_PROTOCOL, "keys: key %zu %s", i, what);
}

static enum weft_status
decode_raw(const struct wf_keys_in *in, uint64_t *key)
{
	if (in->count > in->bytes / WF_KEY_BYTES || in->bytes != in->count * WF_KEY_BYTES) {
		return wf_fail(WEFT_PROTOCOL, "keys: %zu keys in %zu bytes, must be 8 bytes each",
			       in->count, in->bytes);
	}
	for (size_t i = 0; i < in->count; i++) {
		key[i] = wf_load_u64(in->at + i * WF_KEY_BYTES);
	}
	if (in->coding == WF_KEYS_ANY || ascends(key, in->count)) {
		return WEFT_OK;
	}
	size_t i = 1;
	while (key[i] > key[i - 1]) {
		i++;
	}
	return refuse_key(i, "is not above the key before it");
}

/* Reads one difference from *used on. Returns NULL, or what is wrong with it. */
static const char *
get_step(const struct wf_keys_in *in, size_t *used, uint64_t *out)
{
	uint64_t value = 0;

	for (unsigned group = 0; group <= LAST_GROUP; group++) {
		if (*used == in->bytes) {
			return "does not end";
		}
		uint8_t byte = in->at[(*used)++];
		if (group == LAST_GROUP && byte > 1) {
			return "is above 64 bits";
		}
		value |= (uint64_t)(byte & (GROUP_MORE - 1)) << (group * GROUP_BITS);
		if ((byte & GROUP_MORE) == 0) {
			*out = value;
			return byte == 0 && group > 0 ? "is longer than it has to be" : NULL;
		}
	}
	return "is above 64 bits";
}

static enum weft_status
decode_delta(const struct wf_keys_in *in, uint64_t *key)
{
	uint64_t previous = 0;
	size_t used = 0;

	if (in->count > in->bytes) {
		return wf_fail(WEFT_PROTOCOL,
			       "keys: %zu keys in %zu bytes, must be at least a byte each",
			       in->count, in->bytes);
	}
	for (size_t i = 0; i < in->count; i++) {
		uint64_t step = 0;
		const char *wrong = get_step(in, &used, &step);
		if (wrong != NULL) {
			return refuse_key(i, wrong);
		}
		if (i > 0 && step >= UINT64_MAX - previous) {
			return refuse_key(i, "is above 64 bits");
		}
		previous = i > 0 ? previous + step + 1 : step;
		key[i] = previous;
	}
	if (used != in->bytes) {
		return wf_fail(WEFT_PROTOCOL, "keys: %zu keys take %zu bytes, but there are %zu",
			       in->count, used, in->bytes);
	}
	return WEFT_OK;
}

enum weft_status
wf_keys_decode(const struct wf_keys_in *in, uint64_t *key)
{
	if (in->coding == WF_KEYS_RAW || in->coding == WF_KEYS_ANY) {
		return decode_raw(in, key);
	}
	if (in->coding == WF_KEYS_DELTA) {
		return decode_delta(in, key);
	}
	return wf_fail(WEFT_PROTOCOL,
		       "keys: coding is %u, must be 0 (raw), 1 (differences) or 2 (any order)",
		       (unsigned)in->coding);
}
